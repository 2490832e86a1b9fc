"""Tables for Sinha and Duchi 2016: Table 1 (learnt and random features), the numbers behind the
figures, and the comparison of features selected by their scores with features learnt jointly with
the weights.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from rfx.papers.sinha2016 import curves
from rfx.papers.sinha2016.curves import mean
from rfx.records.run import seconds_train
from rfx.reporting.cells import (
    LEGEND,
    Builder,
    Cell,
    Format,
    Line,
    Mean,
    Row,
    Section,
    Table,
    count,
    decimals,
    general,
    good,
    grouped,
    grouped_by,
    labelled,
    mean_if_any,
    means_of,
    number,
    printed,
    section,
    short,
    tidy,
    verdict_of,
    with_paper,
    words,
)
from rfx.reporting.tables import failures, machines

_OF_GRID = {1: "lkrf", 2: "lkrf", 3: "rf", 4: "rf", 5: "lkrf"}
_TITLES = {title: method for method, title in curves.METHODS.items()}
_SEEDS = "Errors in percent and seconds are means over the seeds, ± the standard deviation."
_TIMES = "Seconds are of the whole training: pool, scores, maximisation, features and fit."
_HOW = {
    True: "on the TEST rows (the paper's selection)",
    False: "by validation on the training rows, for each seed",
}
_ERROR = Format("error", decimals(2), "decimals")
_BEST = {
    "method": Format("method"),
    "D": Format("D", decimals(0), "decimals"),
    "error": Format("error, %"),
    "seconds": Format("seconds"),
}
_TABLE1_NOTES = (
    _SEEDS,
    LEGEND,
    _TIMES,
    (
        "support: all features with a positive probability, once; below it D features drawn from"
        " the distribution."
    ),
    "The seconds of validation are not among them, and are in the rows as seconds_validation.",
)


def table1(rows: Sequence[Row], setting: str) -> Table:
    """Error and time of our features and of random features over D, the cost of given errors, and
    the best over D next to the printed values.
    """
    own = labelled(rows, curves.label("table1", setting))
    book, found = printed(__package__, "table1"), curves.by_size(own)
    sections, cells, compared = [], [], []
    for dataset, stands_for in curves.DATA.items():
        both = {method: found.get((dataset, method), {}) for method in curves.METHODS}
        numbers = {} if stands_for else book
        best = [_best(dataset, method, both[method], setting, numbers) for method in both]
        compared += [line[name] for line in best for name in ("error", "seconds")]
        place = {"setting": setting, "dataset": dataset, "stands_for": stands_for or None}
        cells += [place | cell for line in best for cell in _tidy_best(line)]
        if not any(both.values()):
            continue
        title = f"{dataset}: substitute for {stands_for}, not comparable" if stands_for else dataset
        over_sizes = f"{title}: over the number D of features"
        sections.append(_grid(over_sizes, both, dataset=dataset, methods=_OF_GRID))
        sections.append(_prices(dataset, both))
        of_best = f"{dataset}: best D {_HOW[setting != 'tuned']}, ours / paper"
        shown = [line for line in best if line["rows"]]
        sections.append(section(of_best, shown, _BEST, dataset=dataset, methods=_TITLES))
        cells += [place | cell for cell in _cells(both, dataset, book)]
    return Table(
        name="sinha2016-table1",
        title="Sinha and Duchi 2016, Table 1: learning kernels with random features",
        sections=sections,
        notes=[
            f"Setting {setting}: {curves.SETTINGS[setting]}",
            *_TABLE1_NOTES,
            *failures(own),
            *machines(own),
        ],
        cells=tidy(cells, table="sinha2016-table1"),
        compared=with_paper(compared),
    )


_GRID = {
    "D": Format("D", count),
    "lkrf error": Format("ours, error", decimals(2), "decimals"),
    "lkrf seconds": Format("s", short),
    "rf error": Format("random, error", decimals(2), "decimals"),
    "rf seconds": Format("s", short),
    "lkrf size": Format("ours, features", decimals(0)),
}


def _grid(title: str, both: Mapping[str, curves.Points], **more: Any) -> Section:
    """Error and seconds of both methods for each number of features."""
    places = {place for points in both.values() for place in points}
    support = ["support"] if "support" in places else []
    lines = []
    for place in [*sorted(places - {"support"}), *support]:
        rows_of = {method: points.get(place, []) for method, points in both.items()}
        lines.append(_means(rows_of) | {"D": _place(place, rows_of["lkrf"])})
    return section(title, lines, _GRID, **more)


def _means(rows_of: Mapping[str, Sequence[Row]]) -> dict[str, Mean | None]:
    """The mean of each quantity of each method, such as "lkrf error"."""
    quantities = curves.QUANTITIES | {"size": curves.size}
    means: dict[str, Mean | None] = {}
    for method, rows in rows_of.items():
        of_method = means_of(rows, quantities)
        means |= {f"{method} {name}": mean for name, mean in of_method.items()}
    return means


_PRICES = {
    "error": Format("error"),
    "lkrf D": Format("ours, D"),
    "lkrf seconds": Format("s", short),
    "rf D": Format("random, D"),
    "rf seconds": Format("s", short),
    "ratio": Format("random / ours", short),
}


def _prices(dataset: str, both: Mapping[str, curves.Points]) -> Section:
    """The cost of given test errors."""
    wanted = curves.targets(dataset, both.values())
    lines = [_price(both, error) for error in wanted]
    title = f"{dataset}: seconds to reach a test error"
    return section(title, lines, _PRICES, dataset=dataset, methods=_OF_GRID)


def _price(both: Mapping[str, curves.Points], wanted: float) -> Line:
    """The D and the seconds that each method needs to reach a test error."""
    line: Line = {"error": number(wanted, general, note=" %")}
    seconds = {}
    for method, points in both.items():
        reached = curves.reach(points, wanted)
        if reached is not None:
            place, rows = reached
            seconds[method] = mean(seconds_train, rows)
            line |= {f"{method} D": _place(place, rows), f"{method} seconds": seconds[method]}
    if len(seconds) == 2:
        line["ratio"] = seconds["rf"] / seconds["lkrf"]
    return line


def _place(place: Any, rows: Sequence[Row]) -> Cell:
    """The requested D, or the number of features in the whole support."""
    if place == "support":
        return words(f"support, {mean(curves.size, rows):.0f}")
    return number(place, count)


def _best(dataset: str, method: str, points: curves.Points, setting: str, book: Mapping) -> Line:
    """The best over D, on held-out training rows or, if the setting requires it, on the test rows:
    D, error and seconds next to the printed values; only the error has a verdict.
    """
    if setting == "tuned":
        rows = curves.validated(points)
        size: Any = mean_if_any(map(curves.size, rows))
    else:
        place, rows = curves.best(points) or (0, [])
        size = _place(place, rows)
    means = means_of(rows, curves.QUANTITIES)
    error, seconds = (book.get((dataset, "", method, name)) for name in ("error", "seconds"))
    verdict = verdict_of(means["error"], error, "low", "percent")
    beside = partial(Cell, pair=True)
    return {
        "key": method,
        "method": curves.METHODS[method],
        "D": size,
        "rows": rows,
        "error": beside(means["error"], decimals(2), "decimals", error, verdict=verdict),
        "seconds": beside(means["seconds"], short, paper=seconds),
    }


def _tidy_best(line: Line) -> list[Line]:
    """The lines of CSV and JSON of the best D: error and seconds."""
    cells = []
    for name in ("error", "seconds"):
        cell = line[name]
        numbers = {"ours": cell.value, "paper": cell.paper, "verdict": cell.verdict}
        place = {"method": line["key"], "n_features": "best", "field": name}
        cells.append(place | numbers | {"seeds": len(line["rows"])})
    return cells


def _cells(
    both: Mapping[str, curves.Points], dataset: str, book: Mapping, place: str = "n_features"
) -> list[Line]:
    """The means as lines of CSV and JSON."""
    cells = []
    for method, points in both.items():
        for at, rows in points.items():
            of_place = {"method": method, place: at, "seeds": len(rows)}
            means = means_of(rows, curves.QUANTITIES)
            for name, ours in means.items():
                if ours is not None:
                    paper = book.get((dataset, "", method, name))
                    cells.append(of_place | {"field": name, "ours": ours, "paper": paper})
    return cells


_FIGURE1 = {
    "d": Format("d", str),
    "rf train_error": Format("GK, train", decimals(2), "decimals"),
    "rf error": Format("GK, test", decimals(2), "decimals"),
    "lkrf train_error": Format("OK, train", decimals(2), "decimals"),
    "lkrf error": Format("OK, test", decimals(2), "decimals"),
    "lkrf size": Format("support", decimals(0)),
}
_FIGURE1_NOTE = (
    "GK: 350 random features of the Gaussian kernel. OK: the support of the optimised distribution."
)


def figure1(rows: Sequence[Row]) -> Table:
    """Training and test error of the Gaussian and of the optimised kernel over the dimension."""
    own = labelled(rows, "fig1")
    found = curves.by_dimension(own)
    lines = []
    for d in sorted(set().union(*found.values())):
        rows_of = {method: found.get(method, {}).get(d, []) for method in curves.METHODS}
        lines.append(_means(rows_of) | {"d": d})
    cells = _cells(found, "sphere", {}, place="d")
    place = {"setting": None, "dataset": "sphere", "stands_for": None}
    return Table(
        name="sinha2016-fig1",
        title=(
            "Sinha and Duchi 2016, learning a kernel: x ~ N(0, I), y = sign(||x|| - sqrt d),"
            " logistic regression, error in percent"
        ),
        sections=[section("", lines, _FIGURE1)],
        notes=[_FIGURE1_NOTE, _SEEDS, *failures(own), *machines(own)],
        cells=tidy(cells, table="sinha2016-fig1", **place),
    )


def figure2(rows: Sequence[Row]) -> Table:
    """Error and time of selected and of random coordinates and words over D."""
    own = labelled(rows, "fig2")
    found = curves.by_size(own)
    sections, cells = [], []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        both = {method: found.get((dataset, method), {}) for method in curves.METHODS}
        sections.append(_grid(dataset, both))
        place = {"setting": None, "dataset": dataset, "stands_for": None}
        cells += [place | cell for cell in _cells(both, dataset, {})]
    return Table(
        "sinha2016-fig2",
        "Sinha and Duchi 2016, feature selection: ridge on chosen and on random coordinates, error"
        " in percent",
        sections,
        [_SEEDS, _TIMES, *failures(own), *machines(own)],
        tidy(cells, table="sinha2016-fig2"),
    )


_JOINT = {
    "features": Format("features"),
    "rho_share": Format("rho / N_w", general),
    "size": Format("D", count),
    "error": _ERROR,
    "choice": Format("choice, s", short),
    "training": Format("training, s", short),
}
_JOINT_NOTES = (
    (
        "by scores: of all training rows. joint: by alternating minimisation over the pool and the"
        " weights, on that many rows; the final weights are of all rows."
    ),
    (
        "Errors in percent; means over the seeds, ± the standard deviation. The paper's numbers"
        " could not be read and are not shown."
    ),
)


def joint(rows: Sequence[Row]) -> Table:
    """Error, number of features and seconds of selection by scores and of joint optimisation, one
    section per data set.
    """
    own = labelled(rows, "joint")
    sections, cells = [], []
    for dataset, runs in grouped_by(good(own), "dataset").items():
        ways = grouped((_way(row.params), row) for row in runs)
        lines = [_joint_line(way, ways[way]) for way in sorted(ways, key=itemgetter(0, 1))]
        sections.append(section(dataset, lines, _JOINT))
        cells += [_tidy_joint(dataset, line) for line in lines]
    return Table(
        name="sinha2016-joint",
        title="Sinha and Duchi 2016: features by scores and by joint optimisation",
        sections=sections,
        notes=[*_JOINT_NOTES, *failures(own), *machines(own)],
        cells=tidy(cells, table="sinha2016-joint"),
    )


def _way(params: Mapping) -> tuple[int, float, int]:
    """Turns of the joint optimisation, rho / N_w, and its rows; 0 by scores."""
    turns = params.get("joint") or 0
    return turns, params["rho_share"], (turns and params.get("joint_rows")) or 0


def _joint_line(way: tuple[int, float, int], rows: Sequence[Row]) -> Line:
    """The means of one way to choose the features."""
    turns, share, n_rows = way
    quantities = {
        "size": curves.size,
        "error": curves.test,
        "choice": choice_seconds,
        "training": seconds_train,
    }
    return means_of(rows, quantities) | {
        "method": "joint" if turns else "scores",
        "features": f"joint, {turns} turns on {count(n_rows)} rows" if turns else "by scores",
        "rho_share": share,
        "seeds": len(rows),
    }


def _tidy_joint(dataset: str, line: Line) -> Line:
    names = ("method", "rho_share", "seeds")
    place = {"dataset": dataset} | {name: line[name] for name in names}
    return place | {"field": "error", "ours": line["error"], "paper": None}


def choice_seconds(row: Row) -> float:
    """Processor seconds to choose the features, by joint optimisation or by scores; of a row that
    was not timed again, seconds by the clock.
    """
    params = row.params
    if (least := params.get("least_seconds_cpu_choice")) is not None:
        return least
    return params.get("seconds_joint") or params["seconds_scores"] + params["seconds_maximise"]


def _unrun_table1() -> list[Cell]:
    return table1([], "tuned").compared


TABLES = {
    "table1": Builder("sinha2016-table1", table1, curves.settings("table1"), unrun=_unrun_table1),
    "fig1": Builder("sinha2016-fig1", figure1),
    "fig2": Builder("sinha2016-fig2", figure2),
    "joint": Builder("sinha2016-joint", joint),
}
