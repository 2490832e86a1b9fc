"""Tables for Sinha and Duchi 2016: Table 1 (learnt and random features), the numbers behind the
figures, and the comparison of features selected by their scores with features learnt jointly with
the weights.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from rfx.papers.sinha2016 import curves
from rfx.papers.sinha2016.curves import mean
from rfx.records.run import seconds_train
from rfx.reporting.cells import (
    LEGEND,
    Builder,
    Cell,
    Line,
    Mean,
    Methods,
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
    shown,
    tidy,
    verdict_of,
    with_paper,
    words,
)
from rfx.reporting.tables import failures, machines

_OF_GRID: Methods = {1: "lkrf", 2: "lkrf", 3: "rf", 4: "rf", 5: "lkrf"}
_TITLES: Methods = {title: method for method, title in curves.METHODS.items()}
_SEEDS = "Errors in percent and seconds are means over the seeds, ± the standard deviation."
_TIMES = "Seconds are of the whole training: pool, scores, maximisation, features and fit."
_HOW = {
    True: "on the TEST rows (the paper's selection)",
    False: "by validation on the training rows, for each seed",
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
        place = {"setting": setting, "dataset": dataset, "stands_for": stands_for or None}
        for line in best:
            compared += [line.error, line.seconds]
            cells += [place | cell for cell in line.tidy]
        if not any(both.values()):
            continue
        title = f"{dataset}: substitute for {stands_for}, not comparable" if stands_for else dataset
        over_sizes = f"{title}: over the number D of features"
        sections.append(_grid(over_sizes, both, dataset=dataset, methods=_OF_GRID))
        sections.append(_prices(dataset, both))
        of_best = f"{dataset}: best D {_HOW[setting != 'tuned']}, ours / paper"
        known = [line for line in best if line.n_seeds]
        sections.append(section(of_best, known, Best, dataset=dataset, methods=_TITLES))
        cells += [place | cell for cell in _cells(both, dataset, book)]
    notes = [f"Setting {setting}: {curves.SETTINGS[setting]}", *_TABLE1_NOTES]
    notes += failures(own)
    notes += machines(own)
    return Table(
        name="sinha2016-table1",
        title="Sinha and Duchi 2016, Table 1: learning kernels with random features",
        sections=sections,
        notes=notes,
        cells=tidy(cells, table="sinha2016-table1"),
        compared=with_paper(compared),
    )


@dataclass(frozen=True)
class GridLine:
    """Error and seconds of both methods for one number of features."""

    place: Cell = shown("D", count)
    error: Mean | None = shown("ours, error", decimals(2), "decimals")
    seconds: Mean | None = shown("s", short)
    random_error: Mean | None = shown("random, error", decimals(2), "decimals")
    random_seconds: Mean | None = shown("s", short)
    size: Mean | None = shown("ours, features", decimals(0))


def _grid(title: str, both: Mapping[str, curves.Points], **more: Any) -> Section:
    """Error and seconds of both methods for each number of features."""
    places = {place for points in both.values() for place in points}
    support = ["support"] if "support" in places else []
    lines = []
    for place in [*sorted(places - {"support"}), *support]:
        learned, random = (both[method].get(place, []) for method in ("lkrf", "rf"))
        line = GridLine(
            place=_place(place, learned),
            error=_mean(curves.test, learned),
            seconds=_mean(seconds_train, learned),
            random_error=_mean(curves.test, random),
            random_seconds=_mean(seconds_train, random),
            size=_mean(curves.size, learned),
        )
        lines.append(line)
    return section(title, lines, GridLine, **more)


def _mean(quantity: Callable[[Row], float | None], rows: Iterable[Row]) -> Mean | None:
    """The mean of a quantity over the rows that have it."""
    return mean_if_any(map(quantity, rows))


@dataclass(frozen=True)
class Price:
    """The D and the seconds that each method needs to reach a test error."""

    error: Cell = shown("error")
    size: Cell | None = shown("ours, D")
    seconds: float | None = shown("s", short)
    random_size: Cell | None = shown("random, D")
    random_seconds: float | None = shown("s", short)
    ratio: float | None = shown("random / ours", short)


def _prices(dataset: str, both: Mapping[str, curves.Points]) -> Section:
    """The cost of given test errors."""
    wanted = curves.targets(dataset, both.values())
    lines = [_price(both, error) for error in wanted]
    title = f"{dataset}: seconds to reach a test error"
    return section(title, lines, Price, dataset=dataset, methods=_OF_GRID)


def _price(both: Mapping[str, curves.Points], wanted: float) -> Price:
    size, seconds = _cost(both["lkrf"], wanted)
    random_size, random_seconds = _cost(both["rf"], wanted)
    ratio = None
    if seconds is not None and random_seconds is not None:
        ratio = random_seconds / seconds
    error = number(wanted, general, note=" %")
    return Price(error, size, seconds, random_size, random_seconds, ratio)


def _cost(points: curves.Points, wanted: float) -> tuple[Cell | None, float | None]:
    """The D and the seconds of the fastest point that reaches a test error."""
    reached = curves.reach(points, wanted)
    if reached is None:
        return None, None
    return _place(*reached), mean(seconds_train, reached.rows)


def _place(place: curves.Size, rows: Sequence[Row]) -> Cell:
    """The requested D, or the number of features in the whole support."""
    if isinstance(place, str):
        return words(f"support, {mean(curves.size, rows):.0f}")
    return number(place, count)


@dataclass(frozen=True)
class Best:
    """The best over D: its D, error and seconds next to the printed values."""

    key: str
    n_seeds: int
    method: str = shown("method")
    size: Cell | Mean | None = shown("D", decimals(0), "decimals")
    error: Cell = shown("error, %")
    seconds: Cell = shown("seconds")

    @property
    def tidy(self) -> list[Line]:
        """The lines of CSV and JSON."""
        place = {"method": self.key, "n_features": "best"}
        lines = []
        for name, cell in (("error", self.error), ("seconds", self.seconds)):
            numbers = {"ours": cell.value, "paper": cell.paper, "verdict": cell.verdict}
            lines.append(place | {"field": name} | numbers | {"seeds": self.n_seeds})
        return lines


def _best(dataset: str, method: str, points: curves.Points, setting: str, book: Mapping) -> Best:
    """The best over D, on held-out training rows or, if the setting requires it, on the test rows;
    only the error has a verdict.
    """
    size: Cell | Mean | None
    if setting == "tuned":
        rows = curves.validated(points)
        size = _mean(curves.size, rows)
    else:
        place, rows = curves.best(points) or (0, [])
        size = _place(place, rows)
    ours, seconds = _mean(curves.test, rows), _mean(seconds_train, rows)
    paper = book.get((dataset, "", method, "error"))
    paper_seconds = book.get((dataset, "", method, "seconds"))
    verdict = verdict_of(ours, paper, "low", "percent")
    error = Cell(ours, decimals(2), "decimals", paper, pair=True, verdict=verdict)
    title, n_seeds = curves.METHODS[method], len(rows)
    return Best(
        method, n_seeds, title, size, error, Cell(seconds, short, paper=paper_seconds, pair=True)
    )


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


@dataclass(frozen=True)
class DimensionLine:
    """The errors of the Gaussian and of the optimised kernel at one dimension."""

    d: curves.Size = shown("d", str)
    train_error: Mean | None = shown("GK, train", decimals(2), "decimals")
    error: Mean | None = shown("GK, test", decimals(2), "decimals")
    optimised_train_error: Mean | None = shown("OK, train", decimals(2), "decimals")
    optimised_error: Mean | None = shown("OK, test", decimals(2), "decimals")
    size: Mean | None = shown("support", decimals(0))


_FIGURE1_NOTE = (
    "GK: 350 random features of the Gaussian kernel. OK: the support of the optimised distribution."
)


def figure1(rows: Sequence[Row]) -> Table:
    """Training and test error of the Gaussian and of the optimised kernel over the dimension."""
    own = labelled(rows, "fig1")
    found = curves.by_dimension(own)
    lines = []
    for d in sorted(set().union(*found.values())):
        gaussian, optimised = (found.get(method, {}).get(d, []) for method in ("rf", "lkrf"))
        line = DimensionLine(
            d=d,
            train_error=_mean(curves.train, gaussian),
            error=_mean(curves.test, gaussian),
            optimised_train_error=_mean(curves.train, optimised),
            optimised_error=_mean(curves.test, optimised),
            size=_mean(curves.size, optimised),
        )
        lines.append(line)
    cells = _cells(found, "sphere", {}, place="d")
    place = {"setting": None, "dataset": "sphere", "stands_for": None}
    return Table(
        name="sinha2016-fig1",
        title=(
            "Sinha and Duchi 2016, learning a kernel: x ~ N(0, I), y = sign(||x|| - sqrt d),"
            " logistic regression, error in percent"
        ),
        sections=[section("", lines, DimensionLine)],
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
        place: Line = {"setting": None, "dataset": dataset, "stands_for": None}
        cells += [place | cell for cell in _cells(both, dataset, {})]
    return Table(
        "sinha2016-fig2",
        "Sinha and Duchi 2016, feature selection: ridge on chosen and on random coordinates, error"
        " in percent",
        sections,
        [_SEEDS, _TIMES, *failures(own), *machines(own)],
        tidy(cells, table="sinha2016-fig2"),
    )


@dataclass(frozen=True)
class JointLine:
    """The means of one way to choose the features: by scores, or jointly with the weights."""

    method: str
    n_seeds: int
    features: str = shown("features")
    rho_share: float = shown("rho / N_w", general)
    size: Mean | None = shown("D", count)
    error: Mean | None = shown("error", decimals(2), "decimals")
    choice: Mean | None = shown("choice, s", short)
    training: Mean | None = shown("training, s", short)

    def tidy(self, dataset: str) -> Line:
        """The line of CSV and JSON."""
        place = {"dataset": dataset, "method": self.method, "rho_share": self.rho_share}
        error = {"field": "error", "ours": self.error, "paper": None}
        return place | {"seeds": self.n_seeds} | error


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
        ways = grouped((_way(row), row) for row in runs)
        lines = [_joint_line(way, ways[way]) for way in sorted(ways, key=itemgetter(0, 1))]
        sections.append(section(dataset, lines, JointLine))
        cells += [line.tidy(dataset) for line in lines]
    return Table(
        name="sinha2016-joint",
        title="Sinha and Duchi 2016: features by scores and by joint optimisation",
        sections=sections,
        notes=[*_JOINT_NOTES, *failures(own), *machines(own)],
        cells=tidy(cells, table="sinha2016-joint"),
    )


class Way(NamedTuple):
    """A way to choose the features: turns of the joint optimisation (0: by scores), rho / N_w, and
    the rows of the joint optimisation.
    """

    turns: int
    rho_share: float
    n_rows: int


def _way(row: Row) -> Way:
    turns = row.params.get("joint") or 0
    n_rows = row.params.get("joint_rows") if turns else 0
    return Way(turns, row.params["rho_share"], n_rows or 0)


def _joint_line(way: Way, rows: Sequence[Row]) -> JointLine:
    method, features = "scores", "by scores"
    if way.turns:
        method, features = "joint", f"joint, {way.turns} turns on {count(way.n_rows)} rows"
    return JointLine(
        method=method,
        n_seeds=len(rows),
        features=features,
        rho_share=way.rho_share,
        size=_mean(curves.size, rows),
        error=_mean(curves.test, rows),
        choice=_mean(choice_seconds, rows),
        training=_mean(seconds_train, rows),
    )


def choice_seconds(row: Row) -> float:
    """Processor seconds to choose the features, by joint optimisation or by scores; of a row that
    was not timed again, seconds by the clock.
    """
    params = row.params
    least = params.get("least_seconds_cpu_choice")
    if least is not None:
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
