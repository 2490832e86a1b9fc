"""Tables for Sinha and Duchi 2016: Table 1 (learnt and random features), the numbers behind the
figures, and the comparison of features selected by their scores with features learnt jointly with
the weights.
"""

from statistics import mean

from rfx.papers.sinha2016 import curves
from rfx.records.result import complete, seconds_train
from rfx.reporting.builders import Builder
from rfx.reporting.cells import Cell, Section, Table, count, decimals, general, number, short, words
from rfx.reporting.printed import printed
from rfx.reporting.seeds import LEGEND, verdict
from rfx.reporting.tables import failures, machines

_OF_GRID = {1: "lkrf", 2: "lkrf", 3: "rf", 4: "rf", 5: "lkrf"}
_GRID = ["D", "ours, error", "s", "random, error", "s", "ours, features"]
_WAYS = ["features", "rho / N_w", "D", "error", "choice, s", "training, s"]
_SEEDS = "Errors in percent and seconds are means over the seeds, ± the standard deviation."
_TIMES = "Seconds are of the whole training: pool, scores, maximisation, features and fit."


def table1(rows, setting) -> Table:
    """Error and time of our features and of random features over D, the cost of given errors, and
    the best over D next to the printed values.
    """
    own = curves.of(rows, curves.label("table1", setting))
    book, found = printed(__package__, "table1"), curves.by_size(own)
    sections, cells, compared = [], [], []
    for dataset, stands_for in curves.DATA.items():
        both = {method: found.get((dataset, method), {}) for method in curves.METHODS}
        selected, beside = _selected(dataset, stands_for, both, book, setting)
        cells += [line for _, line in beside]
        compared += [cell for cell, _ in beside if cell.paper is not None]
        if not any(both.values()):
            continue
        title = f"{dataset}: substitute for {stands_for}, not comparable" if stands_for else dataset
        sections.append(
            Section(
                f"{title}: over the number D of features", _GRID, _grid(both), 1, dataset, _OF_GRID
            )
        )
        sections.append(_prices(dataset, both))
        sections.append(selected)
        cells += _cells("table1", setting, dataset, stands_for, both, book)
    notes = [
        f"Setting {setting}: {curves.SETTINGS[setting]}",
        _SEEDS,
        LEGEND,
        _TIMES,
        (
            "support: all features with a positive probability, once; below it D features drawn"
            " from the distribution."
        ),
        "The seconds of validation are not among them, and are in the rows as seconds_validation.",
    ]
    return Table(
        "sinha2016-table1",
        "Sinha and Duchi 2016, Table 1: learning kernels with random features",
        sections,
        notes + failures(own) + machines([row for row in own if row["status"] == "ok"]),
        cells,
        compared,
    )


def _grid(both) -> list[list[Cell]]:
    lines = []
    places = sorted({place for points in both.values() for place in points if place != "support"})
    support = both["lkrf"].get("support")
    for place in [*places, *(["support"] if support else [])]:
        size = number(
            mean(both["lkrf"][place].size) if place in both["lkrf"] else None, decimals(0)
        )
        name = _place(place, support if place == "support" else None)
        lines.append(
            [
                name,
                *(
                    cell
                    for points in both.values()
                    for cell in _error_and_seconds(points.get(place))
                ),
                size,
            ]
        )
    return lines


def _error_and_seconds(point) -> list[Cell]:
    return (
        [Cell(), Cell()]
        if point is None
        else [_error(point.test), number(mean(point.seconds), short)]
    )


def _error(values) -> Cell:
    """An error in percent, the mean with its standard deviation over the seeds."""
    return Cell(curves.over(values) if values else None, decimals(2), "decimals")


def _prices(dataset, both) -> Section:
    """The cost of given test errors."""
    lines = []
    for wanted in curves.targets(dataset, list(both.values())):
        line: list[Cell] = [number(wanted, general, note=" %")]
        seconds: list[float] = []
        for points in both.values():
            reached = curves.reach(points, wanted)
            if reached is None:
                line += [Cell(), Cell()]
                continue
            seconds.append(mean(reached[1].seconds))
            line += [_place(*reached), number(seconds[-1], short)]
        lines.append([*line, number(seconds[1] / seconds[0] if len(seconds) == 2 else None, short)])
    return Section(
        f"{dataset}: seconds to reach a test error",
        ["error", "ours, D", "s", "random, D", "s", "random / ours"],
        lines,
        dataset=dataset,
        methods=_OF_GRID,
    )


def _place(place, point) -> Cell:
    """The requested D, or the number of features in the whole support."""
    return words(f"support, {mean(point.size):.0f}") if place == "support" else number(place, count)


def _selected(dataset, stands_for, both, book, setting) -> tuple[Section, list[tuple[Cell, dict]]]:
    """The best over D, on held-out training rows or, if the setting requires it, on the test rows:
    ours / printed. Returns the section, and the cells with their lines of CSV and JSON.
    """
    lines, known, by_test = [], [], setting != "tuned"
    for method, points in both.items():
        if by_test:
            place, point = curves.best(points) or (None, None)
        else:
            place, point = None, curves.validated(points)
        error, seconds = _beside(
            point,
            (
                {}
                if stands_for
                else {name: book.get((dataset, "", method, name)) for name in ("error", "seconds")}
            ),
        )
        of = {
            "table": "sinha2016-table1",
            "setting": setting,
            "dataset": dataset,
            "stands_for": stands_for or None,
            "method": method,
            "n_features": "best",
        }
        for name, cell in (("error", error), ("seconds", seconds)):
            tidy = {"field": name, "ours": cell.value, "paper": cell.paper, "verdict": cell.verdict}
            known.append((cell, of | tidy | {"seeds": 0 if point is None else len(point.test)}))
        if point is not None:
            size = (
                _place(place, point)
                if by_test
                else Cell(curves.over(point.size), decimals(0), "decimals")
            )
            lines.append([words(curves.METHODS[method]), size, error, seconds])
    how = (
        "on the TEST rows (the paper's selection)"
        if by_test
        else "by validation on the training rows, for each seed"
    )
    heads, titles = (
        ["method", "D", "error, %", "seconds"],
        {title: method for method, title in curves.METHODS.items()},
    )
    return (
        Section(f"{dataset}: best D {how}, ours / paper", heads, lines, 1, dataset, titles),
        known,
    )


def _beside(point, paper) -> tuple[Cell, Cell]:
    """Error and seconds of a point next to the printed values; only the error has a verdict."""
    error, seconds = (
        (None, None) if point is None else (curves.over(point.test), curves.over(point.seconds))
    )
    return (
        Cell(
            error,
            decimals(2),
            "decimals",
            paper.get("error"),
            pair=True,
            verdict=verdict(error, paper.get("error"), "low", "percent"),
        ),
        Cell(seconds, short, paper=paper.get("seconds"), pair=True),
    )


def _cells(table, setting, dataset, stands_for, both, book=None) -> list[dict]:
    cells = []
    for method, points in both.items():
        for place, point in points.items():
            shared = {
                "table": f"sinha2016-{table}",
                "setting": setting,
                "dataset": dataset,
                "stands_for": stands_for or None,
                "method": method,
                "n_features": place,
                "seeds": len(point.test),
            }
            for name, values in (
                ("error", point.test),
                ("train_error", point.train),
                ("seconds", point.seconds),
            ):
                if values:
                    paper = book.get((dataset, "", method, name)) if book else None
                    cells.append(shared | {"field": name, "ours": mean(values), "paper": paper})
    return cells


def figure1(rows) -> Table:
    """Training and test error of the Gaussian and of the optimised kernel over the dimension."""
    own = curves.of(rows, "fig1")
    found = curves.by_dimension(own)
    gk, ok = found.get("rf", {}), found.get("lkrf", {})
    lines = []
    for d in sorted({*gk, *ok}):
        points = [points.get(d) for points in (gk, ok)]
        line = [
            _error(values)
            for point in points
            for values in ((point.train, point.test) if point else ((), ()))
        ]
        lines.append(
            [words(str(d)), *line, number(mean(ok[d].size) if d in ok else None, decimals(0))]
        )
    section = Section("", ["d", "GK, train", "GK, test", "OK, train", "OK, test", "support"], lines)
    cells = [
        cell | {"d": cell.pop("n_features")}
        for method, points in found.items()
        for cell in _cells("fig1", None, "sphere", "", {method: points})
    ]
    title = (
        "Sinha and Duchi 2016, learning a kernel: x ~ N(0, I), y = sign(||x|| - sqrt d), logistic"
        " regression, error in percent"
    )
    notes = [
        (
            "GK: 350 random features of the Gaussian kernel. OK: the support of the optimised"
            " distribution."
        ),
        _SEEDS,
    ]
    return Table(
        "sinha2016-fig1",
        title,
        [section],
        notes + failures(own) + machines([row for row in own if row["status"] == "ok"]),
        cells,
    )


def figure2(rows) -> Table:
    """Error and time of selected and of random coordinates and words over D."""
    own = curves.of(rows, "fig2")
    found = curves.by_size(own)
    sections, cells = [], []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        both = {method: found.get((dataset, method), {}) for method in curves.METHODS}
        sections.append(Section(dataset, _GRID, _grid(both)))
        cells += _cells("fig2", None, dataset, "", both)
    notes = [_SEEDS, _TIMES]
    title = (
        "Sinha and Duchi 2016, feature selection: ridge on chosen and on random coordinates, error"
        " in percent"
    )
    return Table(
        "sinha2016-fig2",
        title,
        sections,
        notes + failures(own) + machines([row for row in own if row["status"] == "ok"]),
        cells,
    )


def joint(rows) -> Table:
    """Error, number of features and seconds of selection by scores and of joint optimisation, one
    section per data set.
    """
    own = curves.of(rows, "joint")
    good = [row for row in own if row["status"] == "ok"]
    good = complete(good, "score", "n_features", "seconds_fit", "params.rho_share")
    groups: dict[str, dict[tuple, list[dict]]] = {}
    for row in good:
        params = row["params"]
        if params.get("joint") and not params.get("joint_rows"):
            continue
        way = (
            params.get("joint"),
            params.get("joint_rows") if params.get("joint") else None,
            params["rho_share"],
        )
        groups.setdefault(row["dataset"], {}).setdefault(way, []).append(row)
    sections, cells = [], []
    for dataset, ways in groups.items():
        order = sorted(ways.items(), key=lambda item: (item[0][0] or 0, item[0][2]))
        sections.append(Section(dataset, _WAYS, [_way(*item) for item in order]))
        cells += [_tidy(dataset, *item) for item in order]
    notes = [
        (
            "by scores: of all training rows. joint: by alternating minimisation over the pool and"
            " the weights, on that many rows; the final weights are of all rows."
        ),
        (
            "Errors in percent; means over the seeds, ± the standard deviation. The paper's numbers"
            " could not be read and are not shown."
        ),
    ]
    title = "Sinha and Duchi 2016: features by scores and by joint optimisation"
    return Table("sinha2016-joint", title, sections, notes + failures(own) + machines(good), cells)


def _error_of(row) -> float:
    return 100 * (1 - row["score"])


def _choice(row) -> float:
    params = row["params"]
    return params.get("seconds_joint") or params["seconds_scores"] + params["seconds_maximise"]


def _way(way, rows) -> list[Cell]:
    turns, sample, share = way
    name = f"joint, {turns} turns on {count(sample)} rows" if turns else "by scores"
    size = round(mean(row["n_features"] for row in rows))
    times = (mean(map(_choice, rows)), mean(seconds_train(row) or 0.0 for row in rows))
    return [
        words(name),
        number(share, general),
        number(size, count),
        _error([_error_of(row) for row in rows]),
        *(number(seconds, short) for seconds in times),
    ]


def _tidy(dataset, way, rows) -> dict:
    turns, _, share = way
    shared = {
        "table": "sinha2016-joint",
        "dataset": dataset,
        "method": "joint" if turns else "scores",
        "rho_share": share,
    }
    return shared | {
        "seeds": len(rows),
        "field": "error",
        "ours": mean(map(_error_of, rows)),
        "paper": None,
    }


TABLES = {
    "table1": Builder(
        "sinha2016-table1",
        table1,
        curves.settings("table1"),
        unrun=lambda: table1([], "tuned").compared,
    ),
    "fig1": Builder("sinha2016-fig1", figure1),
    "fig2": Builder("sinha2016-fig2", figure2),
    "joint": Builder("sinha2016-joint", joint),
}
