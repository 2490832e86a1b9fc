"""Charts as values, their drawing, and the figures of a folder; the figure of `rfx explain`; and
figures of any results file: the score against lambda, over a grid of two options, against
features, and against seconds, and the surface of `rfx tune`.
"""

import importlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar

import numpy as np

from rfx import files, lazy
from rfx.errors import DataError, UsageError, or_near
from rfx.fitting.pipeline import Pipeline
from rfx.measures import less_is_better
from rfx.plans import catalogue
from rfx.records.results import safe_text
from rfx.reporting import columns, style
from rfx.reporting.cells import (
    Mean,
    Row,
    good,
    grouped,
    grouped_by,
    labelled,
    mean_if_any,
    mean_of,
    variants,
)
from rfx.runs.explain import Dependence, Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# ----------------------------------------------------------------------
# Figures as values: curves in panels. One function draws them, and another writes them as the lines
# of a CSV file.
#
# A figure's builder computes a `Chart`; nothing is read back from a drawing. `style` defines its
# appearance.

COLUMNS = ("panel", "x_axis", "y_axis", "curve", "id", "x", "y", "low", "high", "value")

Places: TypeAlias = Sequence | np.ndarray
Place = TypeVar("Place", bound=float)
Range: TypeAlias = tuple[float, float]
# x -> lowest and highest value at that point
Around: TypeAlias = Mapping[float, Range]


@dataclass(frozen=True)
class Curve:
    """Points that belong together in one panel.

    Attributes
    ----------
    x, y : sequence or array
        The points. A horizontal line has no x, a vertical one no y.
    look : mapping
        Keyword arguments of `axes.plot`, or of the function that draws this kind.
    label : str
        Its text in the legend. A curve with neither label nor gid is drawn, but not written.
    gid : str
        Its identifier in the SVG file.
    around : mapping
        x to the lowest and highest value at that point, if these are known.
    error : str
        How this range is drawn.
    kind : str
        A line through the points, a horizontal or vertical line through the panel, or spots.
    """

    x: Places
    y: Places
    look: style.Look
    label: str = ""
    gid: str = ""
    around: Around = field(default_factory=dict)
    error: Literal["band", "bars"] = "band"
    kind: Literal["line", "level", "upright", "spots"] = "line"

    @property
    def points(self) -> list[tuple]:
        """(x, y) of each point, with None for the missing coordinate of a horizontal or vertical
        line.
        """
        xs, ys = np.asarray(self.x).tolist(), np.asarray(self.y).tolist()
        if self.kind == "level":
            xs = [None]
        elif self.kind == "upright":
            ys = [None]
        return list(zip(xs, ys))


def level(y: float, look: style.Look, label: str = "", gid: str = "") -> Curve:
    """A horizontal line."""
    return Curve((), (y,), look, label, gid, kind="level")


def upright(x: float, look: style.Look, label: str = "", gid: str = "") -> Curve:
    """A vertical line."""
    return Curve((x,), (), look, label, gid, kind="upright")


def through(
    points: Mapping[Place, float], look: style.Look, label: str = "", gid: str = ""
) -> Curve:
    """A curve through points, y by x."""
    return Curve([*points], [*points.values()], look, label, gid)


def mean_curve(
    means: Mapping[Place, Mean | None], look: style.Look, label: str = "", gid: str = ""
) -> Curve:
    """The known means at each place, with a band of one standard deviation if any has one."""
    known = {place: mean for place, mean in means.items() if mean is not None}
    around: dict[float, Range] = {}
    if any(mean.sd for mean in known.values()):
        around = {place: mean.around for place, mean in known.items()}
    values = [mean.value for mean in known.values()]
    return Curve([*known], values, look, label, gid, around)


def positive_curve(
    means: Mapping[Place, Mean], look: style.Look, label: str, gid: str, scale: float = 1.0
) -> Curve:
    """Positive means over `scale`, for a logarithmic axis: with a band of one standard deviation
    that ends above zero.
    """
    values: dict[Place, float] = {}
    around: dict[float, Range] = {}
    for place, mean in means.items():
        if mean.value > 0:
            low, high = mean.around
            low = max(low, 0.05 * mean.value)
            values[place] = mean.value / scale
            around[place] = low / scale, high / scale
    return Curve([*values], [*values.values()], look, label, gid, around)


@dataclass(frozen=True)
class Heat:
    """A heat map: values[i][j] at the i-th of `up` and the j-th of `across`, which label the axes;
    nan: no value.
    """

    across: list[str]
    up: list[str]
    values: np.ndarray
    bar: str
    colours: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes. dress: a function applied to the axes after everything is drawn, for scales
    and limits; hidden: they keep their space but are not shown.
    """

    title: str = ""
    x_axis: str = ""
    y_axis: str = ""
    curves: Sequence[Curve] = ()
    heat: Heat | None = None
    dress: "Callable[[Axes], None] | None" = None
    hidden: bool = False


@dataclass(frozen=True)
class Chart:
    """A figure: panels by line, None for an empty place. legend: one for all panels; False if each
    panel has its own.
    """

    title: str
    notes: Sequence[str]
    panels: Sequence[Sequence[Panel | None]]
    height: float = 2.1
    legend: bool = True

    def __iter__(self) -> Iterator[Panel]:
        """The panels that are not None."""
        return (panel for line in self.panels for panel in line if panel is not None)

    @property
    def labels(self) -> list[str]:
        """The named curves in drawing order."""
        labels = [curve.label for panel in self for curve in panel.curves]
        return [label for label in dict.fromkeys(labels) if label and not label.startswith("_")]


def in_lines(
    panels: Sequence[Panel], columns: int, rest: Panel | None = None
) -> list[list[Panel | None]]:
    """Panels in lines with this number of columns; `rest` fills the last line."""
    filled: list[Panel | None] = [*panels, *[rest] * (-len(panels) % columns)]
    return [filled[start : start + columns] for start in range(0, len(filled), columns)]


# ------------------------------------------------------------------------------------------ drawing


def paint(chart: Chart):
    """The matplotlib figure of a chart."""
    figure, grid = style.grid(len(chart.panels), len(chart.panels[0]), chart.height)
    for line, panels in zip(grid, chart.panels):
        for axes, panel in zip(line, panels):
            if panel is None:
                axes.remove()
            else:
                _paint(figure, axes, panel)
    style.finish(figure, chart.title, chart.notes, chart.legend)
    return figure


def _paint(figure, axes, panel: Panel) -> None:
    if panel.heat is not None:
        _heat(figure, axes, panel.heat)
    for curve in panel.curves:
        _draw(axes, curve)
    axes.set(xlabel=panel.x_axis, ylabel=panel.y_axis)
    axes.set_title(style.plain(panel.title), loc="left", fontweight="bold")
    if panel.dress:
        panel.dress(axes)
    axes.set_visible(not panel.hidden)


def _draw(axes, curve: Curve) -> None:
    look = dict(curve.look)
    if curve.label:
        look["label"] = curve.label
    if curve.gid:
        look["gid"] = curve.gid
    if curve.kind == "level":
        axes.axhline(curve.y[0], **look)
    elif curve.kind == "upright":
        axes.axvline(curve.x[0], **look)
    elif curve.kind == "spots":
        axes.scatter(curve.x, curve.y, **look)
    else:
        axes.plot(curve.x, curve.y, **look)
        if curve.around:
            _draw_around(axes, curve)


def _draw_around(axes, curve: Curve) -> None:
    """The band or the bars around a line."""
    places, colour = [*curve.around], style.colour(curve.look)
    low, high = np.array([*curve.around.values()]).T
    if curve.error == "band":
        axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    else:
        axes.vlines(places, low, high, color=colour, linewidth=1)


def _heat(figure, axes, heat: Heat) -> None:
    image = axes.imshow(heat.values, origin="lower", aspect="auto", cmap=heat.colours)
    figure.colorbar(image, ax=axes, label=heat.bar)
    axes.set_xticks(range(len(heat.across)), heat.across, rotation=45)
    axes.set_yticks(range(len(heat.up)), heat.up)
    axes.grid(False)


# ------------------------------------------------------------------------------------------ numbers


def numbers(chart: Chart) -> list[dict]:
    """A line for each point of each panel, with the names in COLUMNS.

    curve: its text in the legend; id: its identifier in the SVG file. x is None for a horizontal
    line, and y for a vertical one. low and high are the band or bar around a point. value is that
    of a heat map's cell.
    """
    lines = []
    for i, panels in enumerate(chart.panels):
        for j, panel in enumerate(panels):
            if panel is not None:
                place = _place(chart, i, j)
                lines += [place | point for point in _of_panel(panel)]
    return lines


def _of_panel(panel: Panel) -> Iterator[dict]:
    named = [curve for curve in panel.curves if curve.label or curve.gid]
    for curve in sorted(named, key=lambda curve: curve.kind == "spots"):
        for x, y in curve.points:
            low, high = curve.around.get(x, (None, None))
            point = {"curve": curve.label, "id": curve.gid, "x": x, "y": y}
            yield point | {"low": low, "high": high}
    if panel.heat is not None:
        for up, line in zip(panel.heat.up, panel.heat.values):
            for across, value in zip(panel.heat.across, line):
                if not math.isnan(value):
                    yield {"x": across, "y": up, "value": float(value)}


def _place(chart: Chart, i: int, j: int) -> dict:
    """The title of a panel, and its axes. Labels that it shares with its neighbours are written
    only next to those.
    """
    line = [panel or Panel() for panel in chart.panels[i]]
    column = [panels[j] or Panel() for panels in chart.panels]
    own = line[j]
    title = _first_text(panel.title for panel in (own, *line, *column))
    x_axis = _first_text(panel.x_axis for panel in (own, *reversed(column)))
    y_axis = _first_text(panel.y_axis for panel in (own, *line))
    return {"panel": style.plain(title), "x_axis": x_axis, "y_axis": y_axis}


def _first_text(texts: Iterable[str]) -> str:
    """The first text that is not empty, or ""."""
    return next(filter(None, texts), "")


def written(chart: Chart) -> bytes:
    """The numbers as a CSV file."""
    table = lazy.pandas.DataFrame(numbers(chart), columns=COLUMNS, dtype=object)
    return table.map(safe_text).to_csv(index=False, lineterminator="\n").encode()


# ----------------------------------------------------------------------
# Figures: the rows of a results file plotted in the layout of a paper, with the authors' curve if
# it is available.
#
# `rfx.plans.catalogue` finds the figures. A figure is a chart, and `style` defines
# its appearance. matplotlib is imported only when something is drawn, and never opens a window.

FORMATS = ("png", "svg", "pdf", "csv")
DPI = 150
# The same rows result in the same file: it has no date, and its identifiers are not random. Letters
# are drawn as paths, so that the file looks the same on every machine.
_STYLE: style.Look = {
    "svg.hashsalt": "rfx",
    "svg.fonttype": "path",
    "font.family": style.FONT,
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
}
_METADATA = {
    "png": {"Software": "rfx"},
    "svg": {"Date": None, "Creator": "rfx"},
    "pdf": {"CreationDate": None, "Creator": "rfx"},
}
# the form of the metadata in the file: in the first kilobytes, or in a PDF anywhere
_MARKS = {"png": b"Software\0rfx", "svg": b"<dc:title>rfx</dc:title>", "pdf": b"/Creator (rfx)"}


def _kind(form: str) -> files.Kind:
    """The kind of files that are figures drawn by rfx in this format."""

    def is_drawn(path: Path) -> bool:
        content = path.read_bytes()
        if form == "csv":
            return content.startswith(",".join(COLUMNS).encode())
        return _MARKS[form] in (content if form == "pdf" else content[:4096])

    return files.Kind(f"a figure of rfx in {form.upper()}", is_drawn)


def draw(
    name: str,
    rows: Sequence[Mapping] | Pipeline,
    output=None,
    setting: str | None = None,
    builders: Mapping[str, Callable] | None = None,
    force: bool = False,
) -> list[Path]:
    """Draw the figure `name` from result rows, or from a model, as PNG, SVG and PDF, and write its
    numbers as CSV.

    Returns the paths of these files. builders: the figures, name to builder; default: the general
    ones. output: a folder, or the files' name with .png, .svg or .pdf; default: the current folder.
    The CSV file is STEM.figure.csv, to distinguish it from results files. force: see files.guard;
    figures of rfx are replaced without confirmation. Each file is written completely or not at all.
    Raises UsageError if there is no such figure or a file must not be replaced. Raises DataError if
    no row belongs to it, or the model has nothing to draw.
    """
    builders = catalogue.figures() if builders is None else builders
    if name not in builders:
        raise UsageError(f"there is no figure {name}{or_near(name, builders)}")
    path = Path(output or "")
    is_file = path.suffix.lower().removeprefix(".") in FORMATS
    stem = path.with_suffix("") if is_file else path / name
    for path, form in zip(_targets(stem), FORMATS):
        files.guard(("--output", path), (), _kind(form), force)
    with styled():
        chart = builders[name](rows, setting)
        return save(chart, paint(chart), stem)


def guard_one(path, force: bool) -> None:
    """Raise UsageError if the name of a figure's file has no known format, or if the file must not
    be replaced. force: see files.guard.
    """
    files.guard(("--figure", path), (), _kind(_form(path)), force)


def draw_one(chart: Chart, path) -> None:
    """Draw a chart into one file in the format of its name; the file is written completely or not
    at all.
    """
    with styled(), files.whole(path) as handle:
        _draw_into(paint(chart), handle, _form(path))


def _form(path) -> str:
    """The format from the name of a figure's file."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in _METADATA:
        endings = ", ".join(f".{one}" for one in _METADATA)
        raise UsageError(f"--figure is {path}, but its name must end in one of {endings}")
    return form


def styled():
    """Context in which figures are drawn and written: rfx's own style."""
    return lazy.matplotlib.rc_context(_STYLE)


def save(chart: Chart, figure, stem: Path) -> list[Path]:
    """Write a chart and its drawn figure in all FORMATS, and return the paths. Each file is written
    completely or not at all.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    for path, form in zip(_targets(stem), FORMATS):
        with files.whole(path) as handle:
            if form == "csv":
                handle.write(written(chart))
            else:
                _draw_into(figure, handle, form)
        # the layout takes as long as drawing, and is the same in all formats
        figure.set_layout_engine("none")
    return _targets(stem)


def _targets(stem: Path) -> list[Path]:
    ends = ("figure.csv" if form == "csv" else form for form in FORMATS)
    return [stem.with_name(f"{stem.name}.{end}") for end in ends]


def _draw_into(figure, handle, form: str) -> None:
    """Draw a figure once, in a format, into an open file.

    `savefig` draws twice: first without output, for layouts that a drawing may change.
    """
    name = {"png": "Agg", "svg": "SVG", "pdf": "Pdf"}[form]
    backend = importlib.import_module(f"matplotlib.backends.backend_{name.lower()}")
    # vector formats count in points
    figure.dpi = DPI if form == "png" else 72
    canvas = getattr(backend, f"FigureCanvas{name}")(figure)
    getattr(canvas, f"print_{form}")(handle, metadata=_METADATA[form])


# ----------------------------------------------------------------------
# The figure of `rfx explain`: the importance of columns with intervals, and partial dependence.

# Maximum columns and outputs drawn, panels in a line, and characters of a name at an axis.
MOST, MOST_OUTPUTS, IN_A_LINE, LONGEST = 15, 8, 3, 24


def chart(explained: Explanation) -> Chart:
    """The figure of an explained: bars, and a panel for each column with partial dependence."""
    panels = [_bars(explained), *(_panel(one, explained) for one in explained.dependences)]
    lines = in_lines(panels, min(len(panels), IN_A_LINE))
    height = max(2.2, 0.7 + 0.14 * min(MOST, len(explained.importances)))
    return Chart("What the predictions depend on", _notes(explained), lines, height)


def _notes(explained: Explanation) -> list[str]:
    n_columns, n_outputs = len(explained.importances), len(explained.outputs)
    rows = f"{explained.n_rows:,} rows"
    if explained.n_rows < explained.n_given:
        rows += f" of {explained.n_given:,}, drawn by seed {explained.seed}"
    notes = [
        f"{rows}. Importance: by how much the {explained.metric} ({explained.error:.4g}) rises when"
        f" a column is shuffled, the mean of {explained.repeats} shuffles. Of the columns that tell"
        " nothing, 95 % have 0 in their interval."
    ]
    if n_columns > MOST:
        notes.append(f"The first {MOST} of {n_columns:,} columns.")
    if explained.dependences:
        mean = f"the mean {explained.response} where all rows have the same value"
        notes.append(f"Partial dependence: {mean}.")
    if explained.dependences and n_outputs > MOST_OUTPUTS:
        classes = f"Those {MOST_OUTPUTS} of {n_outputs:,} classes"
        notes.append(f"{classes} are drawn whose means differ most.")
    return notes


_BAR: style.Look = {"linewidth": 6, "solid_capstyle": "butt", "alpha": 0.55}
_INTERVAL: style.Look = {"color": "0.15", "linewidth": 1.1}
_DOTS: style.Look = {"color": "0.15", "marker": "o", "linestyle": "none", "markersize": 2.5}
_ZERO: style.Look = {"color": "0.4", "linewidth": 0.7}


def _bars(explained: Explanation) -> Panel:
    shown = explained.importances[:MOST]
    places, top = np.arange(len(shown), 0, -1).tolist(), len(shown) + 0.6
    bar = _BAR | {"color": style.colour(style.numbered(0))}
    curves = []
    for one, place in zip(shown, places):
        curves.append(Curve([0.0, one.mean], [place, place], bar))
        curves.append(Curve([one.low, one.high], [place, place], _INTERVAL))
    means = [one.mean for one in shown]
    curves.append(Curve(means, places, _DOTS, gid="importance"))
    curves.append(Curve([0.0, 0.0], [0.4, top], _ZERO))

    def dress(axes) -> None:
        axes.set_yticks(places, [_name(one.name) for one in shown])
        axes.set_ylim(0.4, top)

    return Panel("Importance", f"rise of the {explained.metric}", "", curves, dress=dress)


def _panel(one: Dependence, explained: Explanation) -> Panel:
    outputs, y_axis = explained.outputs, f"mean {explained.response}"
    if len(outputs) == 1 and outputs[0]:
        y_axis += f" of {style.plain(outputs[0])}"
    has_numbers, is_unordered = one.kind == "numbers", one.kind == "categories"
    places = list(range(len(one.grid)))
    curves = []
    for number, output in enumerate(explained.widest(MOST_OUTPUTS)):
        look = style.numbered(number)
        if is_unordered:
            look["linestyle"] = "none"
        label = style.plain(outputs[output]) if len(outputs) > 1 else ""
        gid = style.identifier("dependence", one.name, outputs[output])
        at = one.grid if has_numbers else places
        curves.append(Curve(at, one.means[:, output], look, label, gid))

    def dress(axes) -> None:
        step = 1 if is_unordered else max(1, len(places) // 5)
        texts = [_name(str(value)) for value in one.grid]
        axes.set_xticks(places[::step], texts[::step], rotation=45, ha="right")

    return Panel(one.name, "", y_axis, curves, dress=None if has_numbers else dress)


def _name(text: str) -> str:
    return style.plain(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


# ----------------------------------------------------------------------
# Figures of any results file.

# Maximum panels; a file with more data sets is narrowed by --setting or by rfx run --only.
MOST_PANELS = 12
# Maximum inputs drawn.
MOST_INPUTS = 40
SIZES = ("n_features", "n_grids", "block_size")


def lambda_path(rows, setting=None) -> Chart:
    """Score and model size against lambda, a line per method. Each point is the mean over the runs
    of a line with the same lambda, such as several seeds.
    """
    rows = _scored(rows, setting)
    # lambdas chosen by the runs themselves are not a path
    lams = [run.get("lam") for run in columns.of(rows).requested]
    return _curves(rows, lams, "lambda", "Score and size along lambda", sizes=True)


def features(rows, setting=None) -> Chart:
    """Score against the number of features (of grids, of rows in a block), a line per method."""
    rows = _scored(rows, setting)
    sizes = [_size_of(run) for run in columns.of(rows).values]
    return _curves(rows, sizes, "features D, grids or rows of a block R", "Score against size")


def _size_of(run: Mapping[str, object]) -> int | None:
    sizes = (run.get(name) for name in SIZES)
    return next((size for size in sizes if isinstance(size, int)), None)


def pareto(rows, setting=None) -> Chart:
    """Score against training seconds, a point for each group of runs that differ only in the seed.
    The line is the Pareto front: nothing faster is better.
    """
    rows = _scored(rows, setting)
    panels: dict[tuple[str, str], dict[str, list[_Timed]]] = {_panel_of(row): {} for row in rows}
    for group in variants(rows):
        first, panel = group[0], panels[_panel_of(group[0])]
        seconds = mean_of([columns.outcome(row, "seconds_train") for row in group])
        score = mean_of([row.score for row in group])
        panel.setdefault(columns.method(first), []).append(_Timed(seconds.value, score))
    looks = style.looks(method for costs in panels.values() for method in costs)
    drawn = [_costs(name, metric, costs, looks) for (name, metric), costs in _few(panels).items()]
    note = f"{_PARETO_NOTE} {style.machines(rows)}"
    lines = in_lines(drawn, min(3, len(drawn)), Panel(hidden=True))
    return Chart("Score against training time, and the Pareto front", [note], lines)


class _Timed(NamedTuple):
    """The seconds of training and the score of runs that differ only in the seed."""

    seconds: float
    score: Mean


_PARETO_NOTE = (
    "Up is better; of rmse down. A point: the mean over runs that differ in the seed alone, with"
    " one standard deviation of the score. Seconds include choosing options."
)
_FRONT: style.Look = {
    "color": "0.4",
    "linewidth": 0.9,
    "drawstyle": "steps-post",
    "zorder": 0,
}


def _costs(
    name: str,
    metric: str,
    costs: Mapping[str, Sequence[_Timed]],
    looks: Mapping[str, style.Look],
) -> Panel:
    """The scores of each method on one data set against their seconds, and the front."""
    points = [(one.seconds, one.score.value) for timed in costs.values() for one in timed]
    xs, ys = zip(*_front(points, metric))
    curves = [Curve(xs, ys, _FRONT, "Pareto front", style.identifier("front", name))]
    for method, timed in costs.items():
        seconds = [one.seconds for one in timed]
        scores = [one.score.value for one in timed]
        around = {one.seconds: one.score.around for one in timed if one.score.sd is not None}
        spots = looks[method] | {"linestyle": "none"}
        gid = style.identifier("points", name, method)
        curves.append(Curve(seconds, scores, spots, style.plain(method), gid, around, "bars"))
    return Panel(name, "training, s", style.plain(metric), curves, dress=style.log_places)


def _front(points: Iterable[tuple], metric: str) -> list[tuple]:
    """The (seconds, score) for which no equally fast point is better, ordered by seconds."""
    sign = -1 if less_is_better(metric) else 1
    ordered = sorted(points, key=lambda point: (point[0], -sign * point[1]))
    best = itertools.accumulate((sign * score for _, score in ordered), max, initial=-np.inf)
    return [point for point, before in zip(ordered, best) if sign * point[1] > before]


# ------------------------------------------------------------------------------------------- lines


def _scored(rows: Iterable[Row], setting: str | None) -> list[Row]:
    """The rows with a score, of one setting if requested."""
    scored = [row for row in good(rows) if row.score is not None]
    scored = scored if setting is None else labelled(scored, setting)
    if not scored:
        where = "" if setting is None else f" in setting {setting}"
        raise DataError(f"no row of the results file has a score{where}")
    return scored


def _panel_of(row: Row) -> tuple[str, str]:
    return row.dataset, row.metric or "score"


def _few(panels: Mapping, what: str = "data sets") -> Mapping:
    """The panels, unless they are too many to draw."""
    if len(panels) > MOST_PANELS:
        raise UsageError(
            f"the results file has {len(panels)} {what}, of which {MOST_PANELS} at most can be"
            " drawn at once; narrow it with --setting"
        )
    return panels


def _curves(rows, places: Iterable, label: str, title: str, sizes: bool = False) -> Chart:
    """A column of panels for each data set: the score, and the model's size if known, against
    `places`.

    A line for each method and each combination of other inputs that vary among its runs, except the
    seed and the sizes.
    """
    panels = _lines_of_panels(rows, places, ("gamma",) if sizes else ("gamma", "lam"))
    if not panels:
        raise DataError(f"no data set has scores at several values of {label}")
    looks = style.looks(text for lines in _few(panels).values() for text in lines)

    upper, lower = [], []
    for (dataset, metric), lines in panels.items():
        scores = _drawn(lines, "score", dataset, looks)
        models = _drawn(lines, "model_size", dataset, looks)
        of_scores = partial(Panel, dataset, y_axis=style.plain(metric), curves=scores)
        if sizes and models:
            upper.append(of_scores(dress=style.log_places))
            lower.append(Panel("", label, "model size", models, dress=style.log_both))
        else:
            upper.append(of_scores(x_axis=label, dress=style.log_places))
            lower.append(Panel(y_axis="model size", hidden=True))
    notes = [f"A band is one standard deviation over the seeds. {style.machines(rows)}"]
    if all(panel.hidden for panel in lower):
        return Chart(title, notes, [upper])
    return Chart(title, notes, [upper, lower])


# The words of a line -> place -> the rows there.
_Lines: TypeAlias = dict[str, dict[float, list[Row]]]


def _lines_of_panels(
    rows: Sequence[Row], places: Iterable, last: Sequence[str]
) -> dict[tuple[str, str], _Lines]:
    """The lines of each data set and metric that has several places. last: the inputs that come
    last in the words of a line, if they vary.
    """
    inputs = columns.of(rows, requested=True)
    hidden = ("lam", "gamma", "seed", "threads", *SIZES)
    names = [name for name in inputs.varying if name not in hidden]
    names += [name for name in last if name in inputs.varying]
    panels: dict[tuple[str, str], _Lines] = {}
    for row, place, values in zip(rows, places, inputs.requested):
        if _is_number(place):
            words = [columns.method(row)]
            for name in names:
                if values.get(name) is not None:
                    written = columns.written(name, values[name])
                    words.append(f"{columns.heading(name)} {written}")
            lines = panels.setdefault(_panel_of(row), {})
            line = lines.setdefault(", ".join(words), {})
            line.setdefault(place, []).append(row)
    return {name: lines for name, lines in panels.items() if len(set().union(*lines.values())) > 1}


def _drawn(lines: _Lines, quantity: str, dataset: str, looks: Mapping) -> list[Curve]:
    """The curves of a quantity that have points: the mean at each place, with a band of one
    standard deviation if there are several runs.
    """
    curves = []
    for text, line in lines.items():
        means = {}
        for place in sorted(line):
            means[place] = mean_if_any(row[quantity] for row in line[place])
        gid = style.identifier(quantity, dataset, text)
        curves.append(mean_curve(means, looks[text], style.plain(text), gid))
    return [curve for curve in curves if curve.points]


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# -------------------------------------------------------------------------------------------- grids

_STAR: style.Look = {
    "marker": "*",
    "color": "white",
    "markeredgecolor": "black",
    "markersize": 9,
    "linestyle": "none",
}


@dataclass(frozen=True)
class Grid:
    """Scores over two options for one data set and method.

    Attributes
    ----------
    options : pair of str
        Their headings, on the y axis and on the x axis.
    cells : mapping
        (first, second) to the score.
    metric : str or None
    low : bool
        Whether a low score is better.
    gid : str
        The identifier of the best cell's star in the SVG file.
    """

    title: str
    options: tuple[str, str]
    cells: Mapping[tuple[float, float], float]
    metric: str | None
    low: bool
    gid: str = ""

    @property
    def panel(self) -> Panel:
        """A heat map with a star on the best cell."""
        up = sorted({y for y, _ in self.cells})
        across = sorted({x for _, x in self.cells})
        values = np.full((len(up), len(across)), np.nan)
        for (y, x), score in self.cells.items():
            values[up.index(y), across.index(x)] = score
        best = np.nanargmin(values) if self.low else np.nanargmax(values)
        best_y, best_x = np.unravel_index(best, values.shape)
        names = [f"{value:.3g}" for value in across], [f"{value:.3g}" for value in up]
        colours = "viridis_r" if self.low else "viridis"
        heat = Heat(*names, values, style.plain(self.metric or "score"), colours)
        y_axis, x_axis = self.options
        return Panel(
            self.title, x_axis, y_axis, [Curve([best_x], [best_y], _STAR, gid=self.gid)], heat
        )


def surface(rows, setting=None) -> Chart:
    """The score over a grid of two options as a heat map, with the best marked; for a single run,
    the values that its validation tried.
    """
    rows = _scored(rows, setting)
    grids = _grids(rows) or _validated(rows)
    if not grids:
        raise DataError(
            "a grid needs runs of one method and data set that vary in two options, or one whose"
            " options validation chose"
        )
    panels = [one.panel for one in _few(grids, what="grids").values()]
    note = "The star is the best cell; a star at the edge asks for a larger grid."
    lines = in_lines(panels, min(2, len(panels)), Panel(hidden=True))
    return Chart("Score over a grid", [note], lines, 2.6)


# data set, method and metric -> its grid
_Grids: TypeAlias = dict[tuple[str, str, str | None], Grid]


def _grids(rows: Sequence[Row]) -> _Grids:
    """The grid of each data set and method whose runs vary in two numeric options."""
    groups = grouped(
        ((row.dataset, columns.method(row), row.metric), (row.score, values))
        for row, values in zip(rows, columns.of(rows).requested)
    )
    grids = {}
    for case, runs in groups.items():
        dataset, method, metric = case
        pair = _two_options([values for _, values in runs])
        if pair is None:
            continue
        first, second = pair
        scores = grouped(((values.get(first), values.get(second)), score) for score, values in runs)
        means = {}
        for (y, x), own in scores.items():
            if _is_number(y) and _is_number(x):
                means[y, x] = float(np.mean(own))
        headings = columns.heading(first), columns.heading(second)
        low = less_is_better(metric)
        grids[case] = Grid(f"{dataset}, {method}", headings, means, metric, low)
    return grids


def _two_options(runs: Sequence[Mapping[str, object]]) -> tuple[str, str] | None:
    """The first two options in whose numbers runs vary; None if there are fewer."""
    others = [name for run in runs for name, value in run.items() if _is_number(value)]
    varying = []
    for name in dict.fromkeys(("gamma", "lam", *SIZES, *others)):
        numbers = {run[name] for run in runs if _is_number(run.get(name))}
        if len(numbers) > 1 and name not in ("seed", "threads"):
            varying.append(name)
    return (varying[0], varying[1]) if len(varying) > 1 else None


def _validated(rows: Sequence[Row]) -> _Grids:
    """The grid that the validation of runs tried, if it had two options; the newest run of each
    data set and method.
    """
    grids: _Grids = {}
    choices = ((row, choice) for row in rows for choice in row.params.choices)
    for row, choice in choices:
        has_numbers = all(_is_number(value) for tried in choice.tried for value in tried)
        if len(choice.options) != 2 or not has_numbers:
            continue
        cells = {(y, x): error for y, x, error in choice.tried if math.isfinite(error)}
        if cells:
            first, second = map(columns.heading, choice.options)
            title = f"{row.dataset}, {row.method}: validation"
            grid = Grid(title, (first, second), cells, choice.error, low=True)
            grids[row.dataset, row.method, None] = grid
    return grids


def tune(rows, setting=None) -> Chart:
    """The surface of `rfx tune`, the score over bandwidth and lambda, with a panel for each method
    and kernel. It shows the scores of the last round that the method reached, at its size with the
    most trials, with the best marked.
    """
    trials = [row for row in good(rows) if _is_trial(row)]
    groups = grouped_by(trials, "dataset", "method", "kernel")
    if not groups:
        raise DataError(
            "the results file has no trials over a bandwidth; rfx tune --results FILE makes them"
        )
    panels = []
    for (dataset, method, kernel), own in groups.items():
        title = f"{dataset}: {method}, {kernel}" if kernel else f"{dataset}: {method}"
        panels.append(_trials(title, own).panel)
    notes = ["Held-out scores; white: not tried.", style.machines([rows[-1]])]
    lines = in_lines(panels, min(3, len(panels)))
    return Chart("Search over bandwidth and lambda", notes, lines, 2.8)


def _is_trial(row: Row) -> bool:
    """Whether a row is a trial of `rfx tune` over a bandwidth, with a score."""
    if not str(row.params.get("label")).startswith("tune "):
        return False
    return bool(_path(row)) and _is_number(row.params.get("gamma"))


def _path(row: Row) -> dict[float, float]:
    """lambda -> the score of a trial there, where it is known."""
    return {lam: score for lam, score in row.params["path"] if score is not None}


def _trials(title: str, rows: Sequence[Row]) -> Grid:
    """The scores of the trials of a method."""
    rounds = grouped((row.params["round"], row) for row in rows)
    last = rounds[max(rounds)]
    sizes = [
        row.params.get("n_grids") or row.params.get("block_size") or row.n_features for row in last
    ]
    common = max(sizes, key=sizes.count)
    cells: dict[tuple[float, float], float] = {}
    for row, size in zip(last, sizes):
        if size == common:
            cells |= {(lam, row.params["gamma"]): score for lam, score in _path(row).items()}
    bandwidth = f"gamma (size {common})" if common else "gamma"
    metric = rows[0].metric
    low = less_is_better(metric)
    return Grid(title, ("lambda", bandwidth), cells, metric, low, "tune-best")


FIGURES: dict[str, Callable] = {
    "lambda": lambda_path,
    "features": features,
    "grid": surface,
    "pareto": pareto,
    "tune": tune,
}


# ------------------------------------------------------------------------------------ of a model


def importance(model: Pipeline, setting: None = None) -> Chart:
    """The inputs by their share of the learnt metric, the largest first; DataError if there is
    none.
    """
    importances = model.importances()
    if importances is None:
        raise DataError(
            "the model has no learnt metric, which measures the importance of its inputs; train it"
            " with --metric diagonal or full"
        )
    order = np.argsort(-importances, kind="stable")[:MOST_INPUTS]
    shares, names = importances[order], np.asarray(model.input_names(), object)[order]
    places = np.arange(len(order), 0, -1)
    curves = [Curve([0.0, share], [place, place], _STEM) for share, place in zip(shares, places)]
    dots = style.numbered(0) | {"linestyle": "none"}
    curves.append(Curve(shares, places, dots, gid="importance"))

    def dress(axes) -> None:
        axes.set_yticks(places, names)
        axes.set_xlim(left=0.0)

    notes = [_SHARES]
    if len(importances) > len(order):
        notes.append(f"The first {len(order)} of {len(importances)} inputs.")
    panel = Panel("", "share of the metric", "", curves, dress=dress)
    return Chart("What the predictions change with", notes, [[panel]], 0.8 + 0.16 * len(order))


_STEM: style.Look = {"color": "0.7", "linewidth": 0.9}
_SHARES = (
    "The average squared gradient of the predictions by each scaled input, as a share of all: how"
    " much predictions change with an input, not what changes them."
)
# Figures of a model rather than of rows, by name.
OF_MODELS = {"importance": importance}
