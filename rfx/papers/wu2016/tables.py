"""Table 1 of Wu et al. 2016 (random binning features), and the numbers behind its Figures 3 to 6,
Theorem 1 and equations 29 and 30 as tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from rfx import lazy
from rfx.data import registry
from rfx.papers.wu2016 import curves as wu2016
from rfx.reporting.cells import (
    DASH,
    LEGEND,
    Builder,
    Cell,
    Format,
    Line,
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
    number,
    printed,
    section,
    short,
    tidy,
    with_paper,
)
from rfx.reporting.effects import Frame
from rfx.reporting.tables import failures, machines

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
_TITLES = {title: method for method, title in wu2016.METHODS.items()}
_METHODS = {method: Format(title) for method, title in wu2016.METHODS.items()}
_ACOUSTIC = (
    "acoustic: the paper's 78,823 training rows are the file's; the authors' programs report 38"
    " fewer, 78,785."
)


def table1(rows: Sequence[Row]) -> Table:
    """The sizes of the data sets, counted in the training and test data, next to the
    printed ones.
    """
    book = printed(__package__, "table1")
    own = [row for row in good(rows) if row.split == "wu2016" and row.dataset in wu2016.DATA]
    counted = {row.dataset: row for row in own}
    lines = []
    for name, stands_for in wu2016.DATA.items():
        is_printed = not stands_for and (name, "", "", "n_train") in book
        if name in counted or is_printed:
            lines += [_property(name, field, counted.get(name), book) for field in _PROPERTIES]
    cells = lazy.pandas.DataFrame(lines)
    sizes = crossed(cells, ["dataset"], "field")
    sizes["heading"] = [wu2016.heading(name) for name in sizes["dataset"]]
    sizes["files"] = [_rows_in_files(name) for name in sizes["dataset"]]
    formats = {"heading": Format("data set")}
    formats |= {field: Format(heading) for field, heading in _PROPERTIES.items()}
    formats |= {"files": Format("rows in its files")}
    notes = [_PAIRS]
    for name, of_name in cells.groupby("dataset", sort=False):
        notes += _mismatches(str(name), of_name, name in counted)
    notes += ["A regression set has one class, as in the paper.", _ACOUSTIC]
    ours = [row for row in rows if row.dataset in wu2016.DATA]
    return Table(
        name="wu2016-table1",
        title="Wu et al. 2016, Table 1: properties of the data sets",
        sections=[section("", sizes, formats)],
        notes=notes + failures(wu2016.of_figure(ours, "table1")) + machines(counted.values()),
        cells=tidy(lines, "cell", table="wu2016-table1"),
        compared=with_paper(cells["cell"]),
    )


def _rows_in_files(name: str) -> str:
    return ", ".join(f"{file.role} {count(file.rows)}" for file in registry.get(name).files)


def _property(name: str, field: str, row: Row | None, book: Mapping) -> Line:
    """Our count of a property of a data set next to the paper's, with a verdict that the text does
    not mark.
    """
    paper = book.get((name, "", "", field))
    ours = row.get(field) if row else None
    if row and field == "n_classes":
        ours = max(1, row.params.get("n_classes") or 0)
    verdict = None
    if ours is not None and paper is not None:
        verdict = "equal" if ours == paper else "differs"
    return {
        "dataset": name,
        "stands_for": wu2016.DATA[name] or None,
        "field": field,
        "ours": ours,
        "paper": paper,
        "verdict": verdict,
        "cell": number(ours, count, paper=paper, pair=True, verdict=verdict, marked=False),
    }


def _mismatches(name: str, cells: Frame, is_counted: bool) -> list[str]:
    """The notes on counts that differ from the printed ones, and on how the split draws rows from
    the files, if the paper does not specify its rows.
    """
    notes = []
    for line in cells[cells["verdict"] == "differs"].itertuples():
        heading, ours = _PROPERTIES[line.field], count(line.cell.value)
        printed_count = line.cell.paper.text
        notes.append(
            f"Mismatch: {name}: {heading} is {ours} in the data, {printed_count} in the paper."
        )
    drawn = _how_drawn(name)
    return [*notes, f"{name}: {drawn}"] if drawn and is_counted else notes


def _how_drawn(name: str) -> str:
    """How the split draws rows from the files; empty if the paper specifies its rows."""
    info = registry.get(name)
    split = info.splits["wu2016"]
    if split.pool:
        return "which rows are for training is not said; the file is cut by rfx's own seed."
    there = sum(info.file(role).rows for role in split.train)
    if not split.n_train or split.n_train >= there:
        return ""
    return (
        f"{count(split.n_train)} of the training file's {count(there)} rows are drawn by rfx's own"
        " seed; which ones the paper took is not said."
    )


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
        lines = [
            {"dataset": curve.dataset, "method": "rb", self.axis: place} | _pair(curve, place, name)
            for curve in swept
            for place, name in product(curve.places, _SWEPT)
        ]
        cells = lazy.pandas.DataFrame(lines)
        sections = [self.section(curve, cells) for curve in _shown(swept)]
        compared = with_paper(cells["cell"])
        return _table(self.figure, self.title, setting, rows, sections, lines, compared)

    def section(self, curve: wu2016.Curve, cells: Frame) -> Section:
        """The section of one data set."""
        own = crossed(cells[cells["dataset"] == curve.dataset], [self.axis], "field")
        formats = {self.axis: self.format}
        formats |= {name: Format(form.heading) for name, form in _SWEPT.items()}
        gammas = "" if self.axis == "gamma" else f"; gamma = 1/sigma = {_gammas(curve)}"
        title = f"{wu2016.heading(curve.dataset)} ({wu2016.metric(curve.dataset)}{gammas})"
        methods = dict.fromkeys(range(1, len(formats)), "rb")
        return section(title, own, formats, dataset=curve.dataset, methods=methods)


def _shown(curves: Sequence[wu2016.Curve]) -> list[wu2016.Curve]:
    """The curves of data sets for which we have rows; if there are no rows at all, the authors'
    curves of all data sets.
    """
    ours = {curve.dataset for curve in curves if curve.ours}
    return [curve for curve in curves if not ours or curve.dataset in ours]


def _gammas(curve: wu2016.Curve) -> str:
    """Ours / the authors' if they differ."""
    both = (curve.ends("gamma"), curve.series("authors", "gamma").values())
    texts = [wu2016.span(gammas, "{:.3g}".format) or DASH for gammas in both]
    return " / ".join(dict.fromkeys(texts))


def _pair(curve: wu2016.Curve, place: float, name: str) -> Line:
    """Ours next to the authors' at one place: performance with its noise over the seeds, and test
    performance with a verdict.
    """
    authors = curve.authors.get(place, {}).get(name)
    cell = Cell(
        curve.ours.get(place, {}).get(name),
        (_SWEPT | _COMPARED)[name].write,
        "deviation" if name in ("test", "train") else "",
        # written with as many digits as ours
        None if authors is None else float(authors),
        pair=True,
        verdict=curve.judged(place, name),
        converged=curve.converged(place),
        marked=name == "test",
    )
    return {
        "field": name,
        "ours": cell.value,
        "paper": cell.paper,
        "converged": cell.converged,
        "verdict": cell.verdict,
        "cell": cell,
    }


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
    shown = {curve.dataset for curve in _shown(found)}
    sections: list[Section] = []
    tidy_lines: list[Line] = []
    compared: list[Cell] = []
    for dataset, own in grouped_by(found, "dataset").items():
        curves = {method: wu2016.Curve(dataset, method) for method in wu2016.METHODS}
        curves |= {curve.method: curve for curve in own}
        lines = _figure5_lines(curves)
        known = [line for line in lines if line["place"] in curves[line["method"]].places]
        compared += [line["cell"] for line in known]
        tidy_lines += tidy(known, "place", "R", "heading", dataset=dataset)
        if dataset not in shown:
            continue
        sections.append(_all_methods(dataset, lines))
        wanted = wu2016.target(curves["rb"])
        if wanted is not None:
            costs = [
                _cost(curves[method], name, wanted) for name, method in product(_COSTS, curves)
            ]
            sections.append(_reached(dataset, wanted, costs))
            tidy_lines += tidy(costs, "heading", dataset=dataset)
    return _table(
        "fig5", _FIGURE5, setting, rows, sections, tidy_lines, with_paper(compared), _FIGURE5_NOTES
    )


def _figure5_lines(curves: Mapping[str, wu2016.Curve]) -> list[Line]:
    """The cells of one data set of figure 5."""
    places = {place for curve in curves.values() for place in curve.places if place <= 1024}
    # the exact kernel, at 0, uses every row: it comes last
    ordered = sorted(places - {0}) + sorted(places & {0})
    lines = []
    for place, name, method in product(ordered, _COMPARED, curves):
        of = {"method": method, "n_features": place or None, "place": place}
        shown = {"R": count(place) if place else "all", "heading": _COMPARED[name].heading}
        lines.append(of | shown | _pair(curves[method], place, name))
    return lines


def _all_methods(dataset: str, lines: Sequence[Line]) -> Section:
    """The section of one data set of figure 5."""
    cells = crossed(lazy.pandas.DataFrame(lines), ["R", "heading"], "method")
    cells["R"] = cells["R"].mask(cells["R"].duplicated(), "")
    title = f"{wu2016.heading(dataset)} ({wu2016.metric(dataset)})"
    formats = {"R": Format("R"), "heading": Format("")} | _METHODS
    return section(title, cells, formats, 2, dataset=dataset, methods=_TITLES)


_COSTS = {"R": Format("R", count), "seconds": _COMPARED["seconds"], "memory": _COMPARED["memory"]}


def _cost(curve: wu2016.Curve, name: str, wanted: float) -> Line:
    """A cost of a method to be as good as the authors' rb at R = 128."""
    form = _COSTS[name]
    ours, paper = (_cost_of(curve, whose, name, wanted) for whose in ("ours", "authors"))
    cell = number(ours, form.write, paper=paper and float(paper), pair=True)
    return {
        "method": curve.method,
        "n_features": None,
        "field": f"{name} to reach {wanted:g}",
        "ours": ours,
        "paper": cell.paper,
        "cell": cell,
        "heading": form.heading,
    }


def _cost_of(curve: wu2016.Curve, whose: str, name: str, wanted: float) -> float | None:
    place = wu2016.reach(curve, whose, wanted)
    if place is None:
        return None
    return (place or None) if name == "R" else curve.series(whose, name).get(place)


def _reached(dataset: str, wanted: float, costs: Sequence[Line]) -> Section:
    """The section of each method's costs to be as good as the authors' rb at R = 128."""
    title = (
        f"{dataset}: to reach a test {wu2016.metric(dataset)} of {wanted:.4f}, the authors' rb at R"
        " = 128"
    )
    cells = crossed(lazy.pandas.DataFrame(costs), ["heading"], "method")
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
    runs = len({row.seed for row in used})
    all_notes = [_CURVES, f"Setting {setting}: {wu2016.SETTINGS[setting]}", *notes]
    if runs > 1:
        means = f"means over up to {runs} seeds, ± their standard deviation"
        all_notes += [f"Ours: {means}; without it a single run.", LEGEND]
    if used:
        all_notes.append(f"lambda: {wu2016.lambdas(used, by_method=figure == 'fig5')}")
    all_notes += [f"Differs from the paper: {text}" for text in wu2016.AUTHORS]
    name = f"wu2016-{figure}"
    return Table(
        name=name,
        title=f"{title}; setting: {setting}",
        sections=sections,
        notes=all_notes + failures(own) + machines(own),
        cells=tidy(lines, "cell", table=name, setting=setting),
        compared=compared,
    )


_TIMED = {
    "dataset": Format("data set"),
    "method": Format("method"),
    "threads": Format("threads", count),
}
_FIGURE6 = _TIMED | {
    "seconds": Format("training, s"),
    "speedup": Format("speed-up", decimals(2), "range"),
    "steps": Format("passes", count),
    "kappa": Format("kappa", short),
    "runs": Format("runs", count),
}
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
    lines = []
    for one in points:
        seconds = number(one.seconds, short, converged=one.converged)
        lines.append(vars(one) | {"seconds": seconds})
    return Table(
        name="wu2016-fig6",
        title=(
            "Wu et al. 2016, Figure 6: speed-up of parallel randomised coordinate descent (L1)"
            " over threads"
        ),
        sections=[section("", lines, _FIGURE6, 3)],
        notes=[*_FIGURE6_NOTES, *failures(own), *machines(own)],
        cells=[line for one in points for line in _tidy_timed(one)],
    )


def _tidy_timed(one: wu2016.Timed) -> list[Line]:
    """A line of CSV and JSON for each quantity of a point of figure 6."""
    quantities = {
        "seconds": one.seconds,
        "speedup": one.speedup and one.speedup.value,
        "low": one.speedup and one.speedup.low,
        "high": one.speedup and one.speedup.high,
        "steps": one.steps,
        "kappa": one.kappa,
        "runs": one.runs,
    }
    place = {"dataset": one.dataset, "method": one.method, "threads": one.threads}
    lines = [{"field": name, "ours": ours} for name, ours in quantities.items()]
    return [
        {"table": "wu2016-fig6"} | place | line | {"converged": one.converged} for line in lines
    ]


_SPEEDUP = {
    "dataset": Format("data set"),
    "method": Format("method"),
    "grids": Format("R", count),
    "bins": Format("D", count),
    "kappa": Format("kappa", short),
    "threads": Format("threads", count),
    "predicted": Format("equation 29", decimals(2)),
    "ours": Format("measured", decimals(2), "range"),
    "limit": Format("equation 30", short),
}


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
        sections=[section("", lines, _SPEEDUP, 2)],
        notes=[*wu2016.SPEEDUP_NOTES, *failures(own), *machines(own)],
        cells=tidy(lines, "grids", "bins", "limit", table="wu2016-speedup"),
    )


def _speedup_line(one: wu2016.Timed) -> Line:
    kappa = one.bins / one.grids
    return {
        "dataset": one.dataset,
        "method": one.method,
        "threads": one.threads,
        "kappa": kappa,
        "predicted": wu2016.predicted(one.threads, one.grids, one.bins),
        "ours": one.speedup,
        "grids": one.grids,
        "bins": round(one.bins),
        "limit": wu2016.limit(1.0, kappa),
    }


_CASE = {
    "dataset": Format("data set"),
    "penalty": Format("penalty"),
    "gamma": Format("1/sigma", general),
}
_SLOPES = _CASE | {
    "kappa": Format("kappa", short),
    "slope": Format("slope", decimals(2)),
    "norm": Format("||w*||", "{:.3g}".format),
    "zero": Format("F(0)", decimals(4)),
    "value": Format("F(w*)", decimals(4)),
    "limit": Format("limit", decimals(4)),
    "wasted": Format("c", count),
}
_SIZES = _CASE | {
    "n_grids": Format("R", count),
    "size": Format("kappa R", short),
    "objective": Format("objective", decimals(5)),
    "above": Format("above the limit", decimals(5)),
    "scaled": Format("x kappa R / (beta ||w*||^2)", "{:.3g}".format),
    "bound": Format("bound"),
}
_THEOREM1_NOTE = (
    "Objectives are divided by the number of rows. The theorem promises a last but one column below"
    " 2 as long as F is above F(w*); vacuous: a bound above F(0)."
)


def theorem1(rows: Sequence[Row]) -> Table:
    """A section for each data set, penalty and gamma: R, kappa R, the distance above the limit, the
    bound's last term, and the bound.
    """
    found = wu2016.cases(rows)
    points = [
        _theorem1_line(case, size, mean.value)
        for case in found
        for size, mean in case.excess.above.items()
    ]
    own = labelled(rows, wu2016.THEOREM1)
    of_slopes = "slopes against R, and what the bound is made of"
    slopes = section(of_slopes, map(_slopes_line, found), _SLOPES, 3)
    return Table(
        name="wu2016-theorem1",
        title="Wu et al. 2016, Theorem 1: the objective of random binning against kappa R",
        sections=[slopes, section("all R", points, _SIZES, 4)],
        notes=[*wu2016.THEOREM_NOTES, _THEOREM1_NOTE, *failures(own), *machines(own)],
        cells=tidy(points, "size", "scaled", table="wu2016-theorem1"),
    )


def _slopes_line(case: wu2016.Case) -> Line:
    """The slope of a case, and what its bound is made of."""
    more = {"slope": case.excess.slope, "limit": case.excess.limit, "wasted": case.wasted}
    return vars(case.reference) | vars(case) | more


def _theorem1_line(case: wu2016.Case, size: int, above: float) -> Line:
    """The objective of a case at one R."""
    reference = case.reference
    return {
        "dataset": case.dataset,
        "penalty": case.penalty,
        "gamma": case.gamma,
        "n_grids": size,
        "kappa": reference.kappa,
        "objective": case.excess.limit + above,
        "above": above,
        "bound": case.bound_cell(size),
        "slope": case.excess.slope,
        "scale": reference.scale,
        "size": reference.kappa * size,
        "scaled": above / reference.scale * reference.kappa * size,
    }


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
