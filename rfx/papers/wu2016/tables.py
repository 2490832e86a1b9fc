"""Table 1 of Wu et al. 2016 (random binning features), and the numbers behind its Figures 3 to 6,
Theorem 1 and equations 29 and 30 as tables.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from rfx.data import registry
from rfx.papers.wu2016 import curves as wu2016
from rfx.reporting.cells import (
    DASH,
    LEGEND,
    Builder,
    Cell,
    Format,
    Line,
    Mean,
    Methods,
    Printed,
    Row,
    Section,
    Table,
    count,
    crossed,
    decimals,
    general,
    good,
    grouped_by,
    labelled,
    lines_of,
    number,
    printed,
    section,
    short,
    shown,
    tidy,
    with_paper,
)
from rfx.reporting.effects import Frame
from rfx.reporting.tables import failures, machines

SPLIT = "wu2016"
_PROPERTIES = {"n_train": "N train", "n_test": "N test", "n_inputs": "d", "n_classes": "classes"}
_PAIRS = "Every cell is ours / paper; a dash: not run, or not printed."
_CURVES = (
    "Every cell is ours / authors' plot data; a dash: not run, or not there; *: the solver did not"
    " converge."
)
_score = decimals(4)

# name in wu2016.QUANTITIES -> heading, format
_SWEPT = {
    "test": Format("test", _score),
    "train": Format("train", _score),
    "seconds": Format("training, s", short),
    "bins": Format("bins D", count),
    "kappa": Format("kappa", short),
}
_COMPARED = {
    "test": Format("test", _score),
    "seconds": Format("training, s", short),
    "memory": Format("memory, MiB", count),
}
_TITLES: Methods = {title: method for method, title in wu2016.METHODS.items()}
_METHODS = {method: Format(title) for method, title in wu2016.METHODS.items()}
_ACOUSTIC = (
    "acoustic: the paper's 78,823 training rows are the file's; the authors' programs report 38"
    " fewer, 78,785."
)


def table1(rows: Sequence[Row]) -> Table:
    """The sizes of the data sets, counted in the training and test data, next to the
    printed ones.
    """
    own = [row for row in good(rows) if row.split == SPLIT and row.dataset in wu2016.DATA]
    counted = {row.dataset: row for row in own}
    book = printed(__package__, "table1")
    lines: list[Property] = []
    for name, stands_for in wu2016.DATA.items():
        is_printed = not stands_for and (name, "", "", "n_train") in book
        if name in counted or is_printed:
            lines += [_property(name, field, counted.get(name), book) for field in _PROPERTIES]
    cells = lines_of(lines)
    sizes = crossed(cells, ["dataset"], "field")
    sizes["heading"] = sizes.dataset.map(wu2016.heading)
    sizes["files"] = sizes.dataset.map(_rows_in_files)
    formats = {"heading": Format("data set")}
    formats |= {field: Format(heading) for field, heading in _PROPERTIES.items()}
    formats |= {"files": Format("rows in its files")}
    notes = [_PAIRS]
    for name, of_name in grouped_by(lines, "dataset").items():
        notes += _mismatches(name, of_name, name in counted)
    notes += ["A regression set has one class, as in the paper.", _ACOUSTIC]
    ours = [row for row in rows if row.dataset in wu2016.DATA]
    notes += failures(wu2016.of_figure(ours, "table1"))
    notes += machines(counted.values())
    return Table(
        name="wu2016-table1",
        title="Wu et al. 2016, Table 1: properties of the data sets",
        sections=[section("", sizes, formats)],
        notes=notes,
        cells=tidy(lines, "cell", table="wu2016-table1"),
        compared=with_paper(cells.cell),
    )


def _rows_in_files(name: str) -> str:
    return ", ".join(f"{file.role} {count(file.rows)}" for file in registry.get(name).files)


@dataclass(frozen=True)
class Property:
    """Our count of a property of a data set next to the paper's, with a verdict that the text does
    not mark.
    """

    dataset: str
    stands_for: str | None
    field: str
    ours: int | None
    paper: Printed | None
    verdict: str | None
    cell: Cell


def _property(name: str, field: str, row: Row | None, book: Mapping) -> Property:
    paper = book.get((name, "", "", field))
    ours = row.get(field) if row else None
    if row and field == "n_classes":
        ours = max(1, row.params.n_classes or 0)
    verdict = None
    if ours is not None and paper is not None:
        verdict = "equal" if ours == paper else "differs"
    cell = number(ours, count, paper=paper, pair=True, verdict=verdict, marked=False)
    stands_for = wu2016.DATA[name] or None
    return Property(name, stands_for, field, ours, paper, verdict, cell)


def _mismatches(name: str, lines: Iterable[Property], is_counted: bool) -> list[str]:
    """The notes on counts that differ from the printed ones, and on how the split draws rows from
    the files, if the paper does not specify its rows.
    """
    notes = []
    for line in lines:
        if line.verdict == "differs" and line.ours is not None and line.paper is not None:
            both = f"{count(line.ours)} in the data, {line.paper.text} in the paper"
            notes.append(f"Mismatch: {name}: {_PROPERTIES[line.field]} is {both}.")
    drawn = _how_drawn(name)
    return [*notes, f"{name}: {drawn}"] if drawn and is_counted else notes


def _how_drawn(name: str) -> str:
    """How the split draws rows from the files; empty if the paper specifies its rows."""
    info = registry.get(name)
    split = info.splits[SPLIT]
    if split.pool:
        return "which rows are for training is not said; the file is cut by rfx's own seed."
    there = sum(info.file(role).rows for role in split.train)
    if not split.n_train or split.n_train >= there:
        return ""
    drawn = f"{count(split.n_train)} of the training file's {count(there)} rows"
    return f"{drawn} are drawn by rfx's own seed; which ones the paper took is not said."


@dataclass(frozen=True)
class Swept:
    """Maker of the table of figure 3 or 4: one section per data set, one line per place on the
    axis.
    """

    figure: str
    title: str
    axis: str
    format: Format

    @property
    def builder(self) -> Builder:
        settings = wu2016.settings(self.figure)
        return Builder(f"wu2016-{self.figure}", self.make, settings, unrun=self.unrun)

    def unrun(self) -> list[Cell]:
        """The cells with numbers of the authors if there are no runs."""
        return self.make([], next(iter(wu2016.SETTINGS))).compared

    def make(self, rows: Sequence[Row], setting: str) -> Table:
        """The table of one setting."""
        swept = wu2016.compared(rows, self.figure, setting)
        lines: list[Line] = []
        for curve in swept:
            of_curve = {"dataset": curve.dataset, "method": "rb"}
            for place, name in product(curve.places, _SWEPT):
                lines.append(of_curve | {self.axis: place} | vars(_pair(curve, place, name)))
        cells = lines_of(lines)
        sections = [self.section(curve, cells) for curve in _shown(swept)]
        compared = with_paper(cells.cell)
        return _table(self.figure, self.title, setting, rows, sections, lines, compared)

    def section(self, curve: wu2016.Curve, cells: Frame) -> Section:
        """The section of one data set."""
        own = crossed(cells[cells.dataset == curve.dataset], [self.axis], "field")
        formats = {self.axis: self.format}
        formats |= {name: Format(form.heading) for name, form in _SWEPT.items()}
        gammas = "" if self.axis == "gamma" else f"; gamma = 1/sigma = {_gammas(curve)}"
        title = f"{wu2016.heading(curve.dataset)} ({wu2016.metric(curve.dataset)}{gammas})"
        methods: Methods = dict.fromkeys(range(1, len(formats)), "rb")
        return section(title, own, formats, dataset=curve.dataset, methods=methods)


def _shown(curves: Sequence[wu2016.Curve]) -> list[wu2016.Curve]:
    """The curves of data sets for which we have rows; if there are no rows at all, the authors'
    curves of all data sets.
    """
    ours = {curve.dataset for curve in curves if curve.ours}
    return [curve for curve in curves if not ours or curve.dataset in ours]


def _gammas(curve: wu2016.Curve) -> str:
    """Ours / the authors' if they differ."""
    ours = wu2016.span(curve.ends("gamma"), "{:.3g}".format)
    authors = wu2016.span(curve.series("authors", "gamma").values(), "{:.3g}".format)
    return " / ".join(dict.fromkeys([ours or DASH, authors or DASH]))


@dataclass(frozen=True)
class Pair:
    """Ours next to the authors', as a line of CSV and JSON but for `cell`."""

    field: str
    ours: float | None
    paper: float | None
    converged: bool | None
    verdict: str | None
    cell: Cell


def _pair(curve: wu2016.Curve, place: float, name: str) -> Pair:
    """A quantity at one place: performance with its noise over the seeds, and test performance with
    a verdict.
    """
    authors = curve.authors.get(place, {}).get(name)
    # written with as many digits as ours
    paper = None if authors is None else float(authors)
    cell = Cell(
        ours=curve.ours.get(place, {}).get(name),
        write=(_SWEPT | _COMPARED)[name].write,
        around="deviation" if name in ("test", "train") else "",
        paper=paper,
        pair=True,
        verdict=curve.judged(place, name),
        converged=curve.converged(place),
        marked=name == "test",
    )
    return Pair(name, cell.value, paper, cell.converged, cell.verdict, cell)


_FIGURE5 = "Wu et al. 2016, Figure 5: random binning beside other approximations of the kernel"
_FIGURE5_NOTES = (
    (
        "To reach a test performance: the quickest run that does; the authors' other methods go up"
        " to R = 65,536."
    ),
    f"Memory: {wu2016.MEMORY}",
)


def figure5(rows: Sequence[Row], setting: str) -> Table:
    """Test performance, training time and memory of all methods over R, and the cost of a given
    test performance for each.
    """
    found = wu2016.compared(rows, "fig5", setting)
    shown_data = {curve.dataset for curve in _shown(found)}
    sections: list[Section] = []
    lines: list[Line] = []
    compared: list[Cell] = []
    for dataset, own in grouped_by(found, "dataset").items():
        curves = {method: wu2016.Curve(dataset, method) for method in wu2016.METHODS}
        curves |= {curve.method: curve for curve in own}
        points = _figure5_points(curves)
        known = [point for point in points if point.place in curves[point.method].places]
        compared += [point.pair.cell for point in known]
        lines += tidy([point.tidy for point in known], dataset=dataset)
        if dataset not in shown_data:
            continue
        sections.append(_all_methods(dataset, points))
        wanted = wu2016.target(curves["rb"])
        if wanted is not None:
            both = product(_COSTS, curves.values())
            costs = [_cost(curve, name, wanted) for name, curve in both]
            sections.append(_reached(dataset, wanted, costs))
            lines += tidy(costs, "heading", dataset=dataset)
    with_authors = with_paper(compared)
    return _table("fig5", _FIGURE5, setting, rows, sections, lines, with_authors, _FIGURE5_NOTES)


@dataclass(frozen=True)
class Point:
    """A quantity of one method at one R of figure 5; the exact kernel's place is 0."""

    method: str
    place: float
    pair: Pair

    @property
    def tidy(self) -> Line:
        """The line of CSV and JSON, and the cell."""
        return {"method": self.method, "n_features": self.place or None} | vars(self.pair)

    @property
    def shown(self) -> Line:
        """The cell with the labels of its line and its column."""
        size = count(self.place) if self.place else "all"
        heading = _COMPARED[self.pair.field].heading
        return {"R": size, "heading": heading, "method": self.method, "cell": self.pair.cell}


def _figure5_points(curves: Mapping[str, wu2016.Curve]) -> list[Point]:
    """The points of one data set of figure 5."""
    places = {place for curve in curves.values() for place in curve.places if place <= 1024}
    # the exact kernel, at 0, uses every row: it comes last
    ordered = sorted(places - {0}) + sorted(places & {0})
    points = []
    for place, name, method in product(ordered, _COMPARED, curves):
        points.append(Point(method, place, _pair(curves[method], place, name)))
    return points


def _all_methods(dataset: str, points: Sequence[Point]) -> Section:
    """The section of one data set of figure 5."""
    cells = crossed([point.shown for point in points], ["R", "heading"], "method")
    cells["R"] = cells.R.mask(cells.R.duplicated(), "")
    title = f"{wu2016.heading(dataset)} ({wu2016.metric(dataset)})"
    formats = {"R": Format("R"), "heading": Format("")} | _METHODS
    return section(title, cells, formats, 2, dataset=dataset, methods=_TITLES)


_COSTS = {
    "R": Format("R", count),
    "seconds": Format("training, s", short),
    "memory": Format("memory, MiB", count),
}


@dataclass(frozen=True)
class Cost:
    """A cost of a method to be as good as the authors' rb at R = 128, as a line of CSV and JSON but
    for `cell` and `heading`.
    """

    method: str
    n_features: None
    field: str
    ours: float | None
    paper: float | None
    cell: Cell
    heading: str


def _cost(curve: wu2016.Curve, name: str, wanted: float) -> Cost:
    form, field = _COSTS[name], f"{name} to reach {wanted:g}"
    ours = _cost_of(curve, "ours", name, wanted)
    authors = _cost_of(curve, "authors", name, wanted)
    paper = authors and float(authors)
    cell = number(ours, form.write, paper=paper, pair=True)
    return Cost(curve.method, None, field, ours, paper, cell, form.heading)


def _cost_of(curve: wu2016.Curve, whose: str, name: str, wanted: float) -> float | None:
    place = wu2016.reach(curve, whose, wanted)
    if place is None:
        return None
    return (place or None) if name == "R" else curve.series(whose, name).get(place)


def _reached(dataset: str, wanted: float, costs: Iterable[Cost]) -> Section:
    """The section of each method's costs to be as good as the authors' rb at R = 128."""
    performance = f"a test {wu2016.metric(dataset)} of {wanted:.4f}"
    title = f"{dataset}: to reach {performance}, the authors' rb at R = 128"
    cells = crossed(costs, ["heading"], "method")
    formats = {"heading": Format("")} | _METHODS
    return section(title, cells, formats, dataset=dataset, methods=_TITLES)


def _table(
    figure: str,
    title: str,
    setting: str,
    rows: Sequence[Row],
    sections: list[Section],
    lines: Sequence[Line],
    compared: list[Cell],
    notes: Sequence[str] = (),
) -> Table:
    """A table of our numbers next to the authors' plot data, with the notes common to all."""
    own = wu2016.of_figure(rows, figure, setting)
    used = good(own)
    n_seeds = len({row.seed for row in used})
    all_notes = [_CURVES, f"Setting {setting}: {wu2016.SETTINGS[setting]}", *notes]
    if n_seeds > 1:
        means = f"means over up to {n_seeds} seeds, ± their standard deviation"
        all_notes += [f"Ours: {means}; without it a single run.", LEGEND]
    if used:
        all_notes.append(f"lambda: {wu2016.lambdas(used, by_method=figure == 'fig5')}")
    all_notes += [f"Differs from the paper: {text}" for text in wu2016.AUTHORS]
    all_notes += failures(own)
    all_notes += machines(own)
    name = f"wu2016-{figure}"
    title = f"{title}; setting: {setting}"
    tidied = tidy(lines, "cell", table=name, setting=setting)
    return Table(name, title, sections, all_notes, tidied, compared)


@dataclass(frozen=True)
class TimedLine:
    """One point of figure 6."""

    dataset: str = shown("data set")
    method: str = shown("method")
    threads: int = shown("threads", count)
    seconds: Cell = shown("training, s")
    speedup: Mean | None = shown("speed-up", decimals(2), "range")
    steps: float = shown("passes", count)
    kappa: float | None = shown("kappa", short)
    runs: int = shown("runs", count)


_FIGURE6_NOTES = (
    (
        "Medians over the seeds; speed-up: a seed's time with one thread over its time with"
        " several, its range in brackets."
    ),
    "Times are of the passes over the columns, to the same relative duality gap.",
    "The authors' speed-ups are in no file that we have.",
)


def figure6(rows: Sequence[Row]) -> Table:
    """Seconds and speed-up of parallel coordinate descent over threads."""
    points = wu2016.timed(rows)
    own = wu2016.of_figure(rows, "fig6")
    lines = map(_timed_line, points)
    return Table(
        name="wu2016-fig6",
        title=(
            "Wu et al. 2016, Figure 6: speed-up of parallel randomised coordinate descent (L1)"
            " over threads"
        ),
        sections=[section("", lines, TimedLine, 3)],
        notes=[*_FIGURE6_NOTES, *failures(own), *machines(own)],
        cells=[line for one in points for line in _tidy_timed(one)],
    )


def _timed_line(one: wu2016.Timed) -> TimedLine:
    seconds = number(one.seconds, short, converged=one.converged)
    place = (one.dataset, one.method, one.threads)
    return TimedLine(*place, seconds, one.speedup, one.steps, one.kappa, one.runs)


def _tidy_timed(one: wu2016.Timed) -> list[Line]:
    """A line of CSV and JSON for each quantity of a point of figure 6."""
    speedup = one.speedup
    quantities = {
        "seconds": one.seconds,
        "speedup": speedup and speedup.value,
        "low": speedup and speedup.low,
        "high": speedup and speedup.high,
        "steps": one.steps,
        "kappa": one.kappa,
        "runs": one.runs,
    }
    place: Line = {"table": "wu2016-fig6", "dataset": one.dataset}
    place |= {"method": one.method, "threads": one.threads}
    lines = []
    for name, ours in quantities.items():
        lines.append(place | {"field": name, "ours": ours, "converged": one.converged})
    return lines


@dataclass(frozen=True, kw_only=True)
class SpeedupLine:
    """Equations 29 and 30 beside the measurement."""

    dataset: str = shown("data set")
    method: str = shown("method")
    grids: int = shown("R", count)
    bins: int = shown("D", count)
    kappa: float = shown("kappa", short)
    threads: int = shown("threads", count)
    predicted: float = shown("equation 29", decimals(2))
    ours: Mean | None = shown("measured", decimals(2), "range")
    limit: float = shown("equation 30", short)

    @property
    def tidy(self) -> Line:
        """The line of CSV and JSON."""
        place = {"dataset": self.dataset, "method": self.method, "threads": self.threads}
        return place | {"kappa": self.kappa, "predicted": self.predicted, "ours": self.ours}


def speedup(rows: Sequence[Row]) -> Table:
    """Each data set and method of Figure 6: predicted and measured speed-up by threads, and the
    prediction of equation 30 with kappa + 1 threads.
    """
    lines = [_speedup_line(one) for one in wu2016.timed(rows)]
    own = wu2016.of_figure(rows, "fig6")
    return Table(
        name="wu2016-speedup",
        title="Wu et al. 2016, equations 29 and 30: predicted and measured speed-up of parallel"
        " coordinate descent",
        sections=[section("", lines, SpeedupLine, 2)],
        notes=[*wu2016.SPEEDUP_NOTES, *failures(own), *machines(own)],
        cells=tidy([line.tidy for line in lines], table="wu2016-speedup"),
    )


def _speedup_line(one: wu2016.Timed) -> SpeedupLine:
    kappa = one.bins / one.grids
    return SpeedupLine(
        dataset=one.dataset,
        method=one.method,
        grids=one.grids,
        bins=round(one.bins),
        kappa=kappa,
        threads=one.threads,
        predicted=wu2016.predicted(one.threads, one.grids, one.bins),
        ours=one.speedup,
        limit=wu2016.limit(1.0, kappa),
    )


@dataclass(frozen=True, kw_only=True)
class CaseLine:
    """The slope of a case of Theorem 1, and what its bound is made of."""

    dataset: str = shown("data set")
    penalty: str = shown("penalty")
    gamma: float = shown("1/sigma", general)
    kappa: float = shown("kappa", short)
    slope: float | None = shown("slope", decimals(2))
    norm: float = shown("||w*||", "{:.3g}".format)
    zero: float = shown("F(0)", decimals(4))
    value: float = shown("F(w*)", decimals(4))
    limit: float = shown("limit", decimals(4))
    wasted: int | None = shown("c", count)


@dataclass(frozen=True, kw_only=True)
class SizeLine:
    """The objective of a case at one R, as a line of CSV and JSON but for `size` and `scaled`."""

    dataset: str = shown("data set")
    penalty: str = shown("penalty")
    gamma: float = shown("1/sigma", general)
    n_grids: int = shown("R", count)
    kappa: float
    size: float = shown("kappa R", short)
    objective: float = shown("objective", decimals(5))
    above: float = shown("above the limit", decimals(5))
    scaled: float = shown("x kappa R / (beta ||w*||^2)", "{:.3g}".format)
    bound: Cell = shown("bound")
    slope: float | None
    scale: float


_THEOREM1_NOTE = (
    "Objectives are divided by the number of rows. The theorem promises a last but one column below"
    " 2 as long as F is above F(w*); vacuous: a bound above F(0)."
)


def theorem1(rows: Sequence[Row]) -> Table:
    """A section for each data set, penalty and gamma: R, kappa R, the distance above the limit, the
    bound's last term, and the bound.
    """
    found = wu2016.cases(rows)
    points = []
    for case in found:
        for size, mean in case.excess.above.items():
            points.append(_size_line(case, size, mean.value))
    own = labelled(rows, wu2016.THEOREM1)
    of_slopes = "slopes against R, and what the bound is made of"
    slopes = section(of_slopes, map(_case_line, found), CaseLine, 3)
    return Table(
        name="wu2016-theorem1",
        title="Wu et al. 2016, Theorem 1: the objective of random binning against kappa R",
        sections=[slopes, section("all R", points, SizeLine, 4)],
        notes=[*wu2016.THEOREM_NOTES, _THEOREM1_NOTE, *failures(own), *machines(own)],
        cells=tidy(points, "size", "scaled", table="wu2016-theorem1"),
    )


def _case_line(case: wu2016.Case) -> CaseLine:
    reference = case.reference
    return CaseLine(
        dataset=case.dataset,
        penalty=case.penalty,
        gamma=case.gamma,
        kappa=reference.kappa,
        slope=case.excess.slope,
        norm=reference.norm,
        zero=reference.zero,
        value=reference.value,
        limit=case.excess.limit,
        wasted=case.wasted,
    )


def _size_line(case: wu2016.Case, size: int, above: float) -> SizeLine:
    reference = case.reference
    return SizeLine(
        dataset=case.dataset,
        penalty=case.penalty,
        gamma=case.gamma,
        n_grids=size,
        kappa=reference.kappa,
        size=reference.kappa * size,
        objective=case.excess.limit + above,
        above=above,
        scaled=above / reference.scale * reference.kappa * size,
        bound=case.bound_cell(size),
        slope=case.excess.slope,
        scale=reference.scale,
    )


SWEPT_GAMMA = Swept(
    "fig3",
    "Wu et al. 2016, Figure 3: random binning while sigma varies, R = 128",
    "gamma",
    Format("1/sigma", general),
)
SWEPT_GRIDS = Swept(
    "fig4",
    "Wu et al. 2016, Figure 4: random binning while R varies, sigma fixed",
    "n_grids",
    Format("R", count),
)


def _unrun_table1() -> list[Cell]:
    return table1([]).compared


def _unrun_figure5() -> list[Cell]:
    return figure5([], "paper").compared


TABLES = {
    "theorem1": Builder("wu2016-theorem1", theorem1),
    "speedup": Builder("wu2016-speedup", speedup, plan="fig6"),
    "table1": Builder("wu2016-table1", table1, unrun=_unrun_table1),
    "fig3": SWEPT_GAMMA.builder,
    "fig4": SWEPT_GRIDS.builder,
    "fig5": Builder("wu2016-fig5", figure5, wu2016.settings("fig5"), unrun=_unrun_figure5),
    "fig6": Builder("wu2016-fig6", figure6),
}
