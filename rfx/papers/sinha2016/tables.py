"""Tables for Sinha and Duchi 2016: Table 1 (learnt and random features), the numbers behind the
figures, and the comparison of features selected by their scores with features learnt jointly with
the weights.
"""

from statistics import mean

from rfx.papers.sinha2016 import curves
from rfx.records.result import complete, seconds_train
from rfx.reporting.builders import Builder
from rfx.reporting.cells import (
    Cell,
    Section,
    Table,
    count,
    decimals,
    general,
    grid,
    number,
    short,
    words,
)
from rfx.reporting.printed import printed
from rfx.reporting.seeds import LEGEND, mean_of, verdict
from rfx.reporting.tables import failures, machines

_OF_GRID = {1: "lkrf", 2: "lkrf", 3: "rf", 4: "rf", 5: "lkrf"}
_GRID = ["D", "ours, error", "s", "random, error", "s", "ours, features"]
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
        heading = f"{title}: over the number D of features"
        sections.append(_grid(heading, both, dataset=dataset, methods=_OF_GRID))
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
        notes + _of_rows(own),
        cells,
        compared,
    )


def _grid(title, both, **more) -> Section:
    """Error and seconds of both methods for each number of features."""
    support = both["lkrf"].get("support")
    places = sorted({place for points in both.values() for place in points if place != "support"})
    error = lambda method: lambda place: _error(getattr(both[method].get(place), "test", ()))
    seconds = lambda method: (
        lambda place: number(
            mean(both[method][place].seconds) if place in both[method] else None, short
        )
    )
    lines = [
        [
            _place(place, support),
            *(make(method)(place) for method in ("lkrf", "rf") for make in (error, seconds)),
            _size(both["lkrf"].get(place)),
        ]
        for place in [*places, *(["support"] if support else [])]
    ]
    return Section(title, _GRID, lines, **more)


def _error(values) -> Cell:
    """An error in percent, the mean with its standard deviation over the seeds."""
    return Cell(mean_of(values) if values else None, decimals(2), "decimals")


def _prices(dataset, both) -> Section:
    """The cost of given test errors."""
    lines = []
    for wanted in curves.targets(dataset, list(both.values())):
        reached = [curves.reach(points, wanted) for points in both.values()]
        seconds = [mean(one[1].seconds) for one in reached if one]
        costs = [
            cell
            for one in reached
            for cell in (
                (_place(*one), number(mean(one[1].seconds), short)) if one else (Cell(), Cell())
            )
        ]
        share = seconds[1] / seconds[0] if len(seconds) == 2 else None
        lines.append([number(wanted, general, note=" %"), *costs, number(share, short)])
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
                else Cell(mean_of(point.size), decimals(0), "decimals")
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
        (None, None) if point is None else (mean_of(point.test), mean_of(point.seconds))
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
    errors = lambda method, part: lambda d: _error(getattr(found.get(method, {}).get(d), part, ()))
    columns = {
        "d": lambda d: words(str(d)),
        "GK, train": errors("rf", "train"),
        "GK, test": errors("rf", "test"),
        "OK, train": errors("lkrf", "train"),
        "OK, test": errors("lkrf", "test"),
        "support": lambda d: _size(found.get("lkrf", {}).get(d)),
    }
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
        *_of_rows(own),
    ]
    sections = [grid("", columns, sorted(set().union(*found.values())))]
    return Table("sinha2016-fig1", title, sections, notes, cells)


def _size(point) -> Cell:
    """The mean number of features."""
    return number(mean(point.size) if point else None, decimals(0))


def _of_rows(rows) -> list[str]:
    """The notes on failed runs and on the machines of the others."""
    return failures(rows) + machines([row for row in rows if row["status"] == "ok"])


def figure2(rows) -> Table:
    """Error and time of selected and of random coordinates and words over D."""
    own = curves.of(rows, "fig2")
    found = curves.by_size(own)
    both = {
        dataset: {method: found.get((dataset, method), {}) for method in curves.METHODS}
        for dataset, _ in found
    }
    title = (
        "Sinha and Duchi 2016, feature selection: ridge on chosen and on random coordinates, error"
        " in percent"
    )
    return Table(
        "sinha2016-fig2",
        title,
        [_grid(dataset, points) for dataset, points in both.items()],
        [_SEEDS, _TIMES, *_of_rows(own)],
        [cell for name, points in both.items() for cell in _cells("fig2", None, name, "", points)],
    )


def joint(rows) -> Table:
    """Error, number of features and seconds of selection by scores and of joint optimisation, one
    section per data set.
    """
    own = curves.of(rows, "joint")
    good = [row for row in own if row["status"] == "ok"]
    groups: dict[str, dict[tuple, list[dict]]] = {}
    for row in complete(good, "score", "n_features", "seconds_fit", "params.rho_share"):
        turns, sample = (row["params"].get(name) for name in ("joint", "joint_rows"))
        way = (turns or 0, row["params"]["rho_share"], sample if turns else None)
        if sample or not turns:
            groups.setdefault(row["dataset"], {}).setdefault(way, []).append(row)
    mean_of = lambda value: lambda way: number(mean(map(value, way[1])), short)
    columns = {
        "features": lambda way: words(
            f"joint, {way[0][0]} turns on {count(way[0][2])} rows" if way[0][0] else "by scores"
        ),
        "rho / N_w": lambda way: number(way[0][1], general),
        "D": lambda way: number(round(mean(row["n_features"] for row in way[1])), count),
        "error": lambda way: _error([100 * (1 - row["score"]) for row in way[1]]),
        "choice, s": mean_of(choice_seconds),
        "training, s": mean_of(lambda row: seconds_train(row) or 0.0),
    }
    ordered = {
        dataset: sorted(ways.items(), key=lambda way: way[0][:2])
        for dataset, ways in groups.items()
    }
    cells = [
        {
            "table": "sinha2016-joint",
            "dataset": dataset,
            "method": "joint" if turns else "scores",
            "rho_share": share,
            "seeds": len(rows_of),
            "field": "error",
            "ours": mean(100 * (1 - row["score"]) for row in rows_of),
            "paper": None,
        }
        for dataset, ways in ordered.items()
        for (turns, share, _), rows_of in ways
    ]
    notes = [
        (
            "by scores: of all training rows. joint: by alternating minimisation over the pool and"
            " the weights, on that many rows; the final weights are of all rows."
        ),
        (
            "Errors in percent; means over the seeds, ± the standard deviation. The paper's numbers"
            " could not be read and are not shown."
        ),
        *failures(own),
        *machines(good),
    ]
    sections = [grid(dataset, columns, ways) for dataset, ways in ordered.items()]
    title = "Sinha and Duchi 2016: features by scores and by joint optimisation"
    return Table("sinha2016-joint", title, sections, notes, cells)


def choice_seconds(row) -> float:
    """Seconds to choose the features, by joint optimisation or by scores."""
    params = row["params"]
    return params.get("seconds_joint") or params["seconds_scores"] + params["seconds_maximise"]


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
