"""Tables for Sinha and Duchi 2016: Table 1 (learnt and random features), the numbers behind the
figures, and the comparison of features selected by their scores with features learnt jointly with
the weights.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rfx.papers.sinha2016 import curves
from rfx.papers.sinha2016.curves import mean
from rfx.records.run import seconds_train
from rfx.reporting.cells import (
    LEGEND,
    Builder,
    Cell,
    Printed,
    Row,
    Section,
    Table,
    count,
    decimals,
    general,
    good,
    grid,
    grouped,
    labelled,
    mean_cell,
    mean_if_any,
    number,
    printed,
    short,
    verdict_of,
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
_ERROR = mean_cell(curves.test, decimals(2), "decimals")
_SECONDS = mean_cell(seconds_train, short)
_SIZE = mean_cell(curves.size, decimals(0))


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
        best = [
            _best(points, setting, method, lambda name: numbers.get((dataset, "", method, name)))
            for method, points in both.items()
        ]
        compared += [cell for one in best for cell in one[3:] if cell.paper is not None]
        names: dict[str, Any] = {
            "setting": setting,
            "dataset": dataset,
            "stands_for": stands_for or None,
        }
        cells += [
            {"table": "sinha2016-table1", **names, "method": method, "n_features": "best"}
            | {"field": name, "ours": cell.value, "paper": cell.paper, "verdict": cell.verdict}
            | {"seeds": len(of)}
            for method, _, of, *pair in best
            for name, cell in zip(("error", "seconds"), pair)
        ]
        if any(both.values()):
            title = (
                f"{dataset}: substitute for {stands_for}, not comparable" if stands_for else dataset
            )
            sections += [
                _grid(
                    f"{title}: over the number D of features",
                    both,
                    dataset=dataset,
                    methods=_OF_GRID,
                ),
                _prices(dataset, both),
                grid(
                    f"{dataset}: best D {_HOW[setting != 'tuned']}, ours / paper",
                    _OF_BEST,
                    [one for one in best if one[2]],
                    dataset=dataset,
                    methods=_TITLES,
                ),
            ]
            cells += _cells("table1", both, **names, book=book)
    return Table(
        name="sinha2016-table1",
        title="Sinha and Duchi 2016, Table 1: learning kernels with random features",
        sections=sections,
        notes=[
            f"Setting {setting}: {curves.SETTINGS[setting]}",
            _SEEDS,
            LEGEND,
            _TIMES,
            (
                "support: all features with a positive probability, once; below it D features drawn"
                " from the distribution."
            ),
            (
                "The seconds of validation are not among them, and are in the rows as"
                " seconds_validation."
            ),
            *failures(own),
            *machines(own),
        ],
        cells=cells,
        compared=compared,
    )


def _grid(title: str, both: Mapping[str, curves.Points], **more: Any) -> Section:
    """Error and seconds of both methods for each number of features."""
    support = both["lkrf"].get("support", [])
    places = sorted({place for points in both.values() for place in points if place != "support"})
    of = lambda method, make: lambda place: make(both[method].get(place, ()))
    section = grid(
        title,
        {
            "D": lambda place: _place(place, support),
            "ours, error": of("lkrf", _ERROR),
            "s": of("lkrf", _SECONDS),
            "random, error": of("rf", _ERROR),
            "s ": of("rf", _SECONDS),
            "ours, features": of("lkrf", _SIZE),
        },
        [*places, *["support"] * bool(support)],
        **more,
    )
    section.columns = [heading.strip() for heading in section.columns]
    return section


def _prices(dataset: str, both: Mapping[str, curves.Points]) -> Section:
    """The cost of given test errors."""

    def line(wanted: float) -> list[Cell]:
        reached = [curves.reach(points, wanted) for points in both.values()]
        seconds = [mean(seconds_train, one[1]) for one in reached if one]
        costs = [(_place(*one), _SECONDS(one[1])) if one else (Cell(), Cell()) for one in reached]
        share = seconds[1] / seconds[0] if len(seconds) == 2 else None
        pairs = [cell for pair in costs for cell in pair]
        return [number(wanted, general, note=" %"), *pairs, number(share, short)]

    return Section(
        f"{dataset}: seconds to reach a test error",
        ["error", "ours, D", "s", "random, D", "s", "random / ours"],
        [*map(line, curves.targets(dataset, both.values()))],
        dataset=dataset,
        methods=_OF_GRID,
    )


def _place(place: Any, rows: Sequence[Row]) -> Cell:
    """The requested D, or the number of features in the whole support."""
    if place == "support":
        return words(f"support, {mean(curves.size, rows):.0f}")
    return number(place, count)


def _best(
    points: curves.Points, setting: str, method: str, paper: Callable[[str], Printed | None]
) -> tuple[str, Cell, list[Row], Cell, Cell]:
    """The best over D, on held-out training rows or, if the setting requires it, on the test rows:
    method, D, rows, and error and seconds next to the printed values; only the error has a verdict.
    """
    if setting == "tuned":
        rows = curves.validated(points)
        size = mean_cell(curves.size, decimals(0), "decimals")(rows)
    else:
        place, rows = curves.best(points) or (0, [])
        size = _place(place, rows)
    error, price = _ERROR(rows), paper("error")
    return (
        method,
        size,
        rows,
        error._replace(
            paper=price, pair=True, verdict=verdict_of(error.ours, price, "low", "percent")
        ),
        _SECONDS(rows)._replace(paper=paper("seconds"), pair=True),
    )


_OF_BEST: dict[str, Callable[[Any], Cell]] = {
    "method": lambda of: words(curves.METHODS[of[0]]),
    "D": lambda of: of[1],
    "error, %": lambda of: of[3],
    "seconds": lambda of: of[4],
}


def _cells(
    table: str,
    both: Mapping[str, curves.Points],
    dataset: str,
    setting: str | None = None,
    stands_for: str | None = None,
    book: Mapping = {},
    place: str = "n_features",
) -> list[dict[str, Any]]:
    """The means as lines of CSV and JSON."""
    return [
        {"table": f"sinha2016-{table}", "setting": setting, "dataset": dataset}
        | {"stands_for": stands_for, "method": method, place: at, "seeds": len(rows)}
        | {"field": name, "ours": ours.value, "paper": book.get((dataset, "", method, name))}
        for method, points in both.items()
        for at, rows in points.items()
        for name, quantity in curves.QUANTITIES.items()
        if (ours := mean_if_any(map(quantity, rows)))
    ]


def figure1(rows: Sequence[Row]) -> Table:
    """Training and test error of the Gaussian and of the optimised kernel over the dimension."""
    own = labelled(rows, "fig1")
    found = curves.by_dimension(own)
    train = mean_cell(curves.train, decimals(2), "decimals")
    of = lambda method, make: lambda d: make(found.get(method, {}).get(d, ()))
    return Table(
        name="sinha2016-fig1",
        title=(
            "Sinha and Duchi 2016, learning a kernel: x ~ N(0, I), y = sign(||x|| - sqrt d),"
            " logistic regression, error in percent"
        ),
        sections=[
            grid(
                "",
                {
                    "d": lambda d: words(str(d)),
                    "GK, train": of("rf", train),
                    "GK, test": of("rf", _ERROR),
                    "OK, train": of("lkrf", train),
                    "OK, test": of("lkrf", _ERROR),
                    "support": of("lkrf", _SIZE),
                },
                sorted(set().union(*found.values())),
            )
        ],
        notes=[
            (
                "GK: 350 random features of the Gaussian kernel. OK: the support of the optimised"
                " distribution."
            ),
            _SEEDS,
            *failures(own),
            *machines(own),
        ],
        cells=_cells("fig1", found, "sphere", place="d"),
    )


def figure2(rows: Sequence[Row]) -> Table:
    """Error and time of selected and of random coordinates and words over D."""
    own = labelled(rows, "fig2")
    found = curves.by_size(own)
    both = {
        dataset: {method: found.get((dataset, method), {}) for method in curves.METHODS}
        for dataset, _ in found
    }
    return Table(
        "sinha2016-fig2",
        "Sinha and Duchi 2016, feature selection: ridge on chosen and on random coordinates, error"
        " in percent",
        [_grid(dataset, points) for dataset, points in both.items()],
        [_SEEDS, _TIMES, *failures(own), *machines(own)],
        [cell for name, points in both.items() for cell in _cells("fig2", points, name)],
    )


def joint(rows: Sequence[Row]) -> Table:
    """Error, number of features and seconds of selection by scores and of joint optimisation, one
    section per data set.
    """
    own = labelled(rows, "joint")
    ways = grouped(((row["dataset"], _way(row["params"])), row) for row in good(own))
    by_data = grouped((dataset, (way, of)) for (dataset, way), of in ways.items())
    of = lambda make: lambda way: make(way[1])
    ordered = {dataset: sorted(own, key=lambda way: way[0][:2]) for dataset, own in by_data.items()}
    return Table(
        name="sinha2016-joint",
        title="Sinha and Duchi 2016: features by scores and by joint optimisation",
        sections=[
            grid(
                dataset,
                {
                    "features": lambda way: words(
                        f"joint, {way[0][0]} turns on {count(way[0][2])} rows"
                        if way[0][0]
                        else "by scores"
                    ),
                    "rho / N_w": lambda way: number(way[0][1], general),
                    "D": of(mean_cell(curves.size, count)),
                    "error": of(_ERROR),
                    "choice, s": of(mean_cell(choice_seconds, short)),
                    "training, s": of(_SECONDS),
                },
                ways,
            )
            for dataset, ways in ordered.items()
        ],
        notes=[
            (
                "by scores: of all training rows. joint: by alternating minimisation over the pool"
                " and the weights, on that many rows; the final weights are of all rows."
            ),
            (
                "Errors in percent; means over the seeds, ± the standard deviation. The paper's"
                " numbers could not be read and are not shown."
            ),
            *failures(own),
            *machines(own),
        ],
        cells=[
            {
                "table": "sinha2016-joint",
                "dataset": dataset,
                "method": "joint" if turns else "scores",
                "rho_share": share,
                "seeds": len(rows_of),
                "field": "error",
                "ours": mean(curves.test, rows_of),
                "paper": None,
            }
            for dataset, ways in ordered.items()
            for (turns, share, _), rows_of in ways
        ],
    )


def _way(params: Mapping[str, Any]) -> tuple[int, float, int]:
    """Turns of the joint optimisation, rho / N_w, and its rows; 0 by scores."""
    turns = params.get("joint") or 0
    return turns, params["rho_share"], (turns and params.get("joint_rows")) or 0


def choice_seconds(row: Row) -> float:
    """Processor seconds to choose the features, by joint optimisation or by scores; of a row that
    was not timed again, seconds by the clock.
    """
    params = row["params"]
    if (least := params.get("least_seconds_cpu_choice")) is not None:
        return least
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
