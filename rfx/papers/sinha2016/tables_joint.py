"""Features by their scores beside features learnt together with the weights, as Sinha and Duchi 2016 compare them, as a table."""

from statistics import mean

from rfx.papers.sinha2016 import curves
from rfx.records.result import having, seconds_train
from rfx.reporting.tables import Section, Table, count, failures, machines, short

_HEADINGS = ["features", "rho / N_w", "D", "error", "choice, s", "training, s"]


def joint(rows, setting=None) -> Table:
    """Error, number of features and seconds by scores and by joint optimisation, a section a data set."""
    curves.refuse_setting("joint", setting)
    own = curves.of(rows, "joint")
    good = [row for row in own if row["status"] == "ok"]
    good = having(good, "score", "n_features", "seconds_fit", "params.rho_share")
    groups: dict[str, dict[tuple, list[dict]]] = {}
    for row in good:
        params = row["params"]
        if params.get("joint") and not params.get("joint_rows"):
            continue
        way = params.get("joint"), params.get("joint_rows") if params.get("joint") else None, params["rho_share"]
        groups.setdefault(row["dataset"], {}).setdefault(way, []).append(row)
    sections, cells = [], []
    for dataset, ways in groups.items():
        order = sorted(ways.items(), key=lambda item: (item[0][0] or 0, item[0][2]))
        sections.append(Section(dataset, _HEADINGS, [_line(*item) for item in order]))
        cells += [_cell(dataset, *item) for item in order]
    notes = [
        "by scores: of all training rows. joint: by alternating minimisation over the pool and the weights, on that many rows; the final "
        "weights are of all rows.",
        "Errors in percent; means over the seeds, ± the standard deviation. The paper's numbers could not be read and are not shown.",
    ]
    title = "Sinha and Duchi 2016: features by scores and by joint optimisation"
    return Table("sinha2016-joint", title, sections, notes + failures(own) + machines(good), cells)


def _error(row) -> float:
    return 100 * (1 - row["score"])


def _choice(row) -> float:
    params = row["params"]
    return params.get("seconds_joint") or params["seconds_scores"] + params["seconds_maximise"]


def _line(way, rows) -> list[str]:
    turns, sample, share = way
    name = f"joint, {turns} turns on {count(sample)} rows" if turns else "by scores"
    sizes, errors = mean(row["n_features"] for row in rows), curves.spread([_error(row) for row in rows])
    return [name, f"{share:g}", count(round(sizes)), errors, *(short(mean(map(pick, rows))) for pick in (_choice, seconds_train))]


def _cell(dataset, way, rows) -> dict:
    turns, _, share = way
    shared = {"table": "sinha2016-joint", "dataset": dataset, "method": "joint" if turns else "scores", "rho_share": share}
    return shared | {"seeds": len(rows), "field": "error", "ours": mean(map(_error, rows)), "paper": None}


TABLES = {"joint": joint}
