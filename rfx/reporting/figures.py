"""Charts as values, their drawing, and the figures of a folder."""

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rfx import files, lazy
from rfx.errors import DataError, UsageError, or_near
from rfx.fitting.pipeline import Pipeline
from rfx.plans import catalogue
from rfx.records.results import safe
from rfx.reporting import style
from rfx.reporting.cells import Mean
from rfx.runs.explain import Dependence, Explanation

# ----------------------------------------------------------------------
# Figures as values: curves in panels. One function draws them, and another writes them as the lines
# of a CSV file.
#
# A figure's builder computes a `Chart`; nothing is read back from a drawing. `style` defines its
# appearance.

COLUMNS = ("panel", "x_axis", "y_axis", "curve", "id", "x", "y", "low", "high", "value")

Places = Sequence | np.ndarray
# x -> lowest and highest value at that point
Around = Mapping[Any, tuple[float, float]]


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
    look: Mapping[str, Any]
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
        missing = [None] * (self.kind in ("level", "upright"))
        return list(zip(*(np.asarray(ends).tolist() or missing for ends in (self.x, self.y))))


def level(y: float, label: str = "", gid: str = "", **look) -> Curve:
    """A horizontal line."""
    return Curve((), (y,), look, label, gid, kind="level")


def upright(x: float, label: str = "", gid: str = "", **look) -> Curve:
    """A vertical line."""
    return Curve((x,), (), look, label, gid, kind="upright")


def through(points: Mapping[Any, float], look, label: str = "", gid: str = "", **more) -> Curve:
    """A curve through points, y by x."""
    return Curve([*points], [*points.values()], look, label, gid, **more)


def mean_curve(means: Mapping[Any, Mean | None], look, label: str = "", gid: str = "") -> Curve:
    """The known means at each place, with a band of one standard deviation if any has one."""
    known = {place: mean for place, mean in means.items() if mean is not None}
    deviates = any(mean.sd for mean in known.values())
    around = {place: mean.around for place, mean in known.items() if deviates}
    points = {place: mean.value for place, mean in known.items()}
    return through(points, look, label, gid, around=around)


def positive_curve(
    means: Mapping[Any, Mean], look, label: str, gid: str, scale: float = 1.0
) -> Curve:
    """Positive means over `scale`, for a logarithmic axis: with a band of one standard deviation
    that ends above zero.
    """
    known = {place: mean for place, mean in means.items() if mean.value > 0}
    around = {
        place: (max(mean.around[0], 0.05 * mean.value) / scale, mean.around[1] / scale)
        for place, mean in known.items()
    }
    values = [mean.value / scale for mean in known.values()]
    return Curve([*known], values, look, label, gid, around)


@dataclass(frozen=True)
class Heat:
    """A heat map: values[i][j] at the i-th of `up` and the j-th of `across`, which label the axes;
    nan: no value.
    """

    across: list[str]
    up: list[str]
    values: Any
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
    dress: Callable[[Any], None] | None = None
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
                continue
            if panel.heat is not None:
                _heat(figure, axes, panel.heat)
            for curve in panel.curves:
                _draw(axes, curve)
            axes.set(xlabel=panel.x_axis, ylabel=panel.y_axis)
            axes.set_title(style.plain(panel.title), loc="left", fontweight="bold")
            if panel.dress:
                panel.dress(axes)
            axes.set_visible(not panel.hidden)
    style.finish(figure, chart.title, chart.notes, chart.legend)
    return figure


def _draw(axes, curve: Curve) -> None:
    named = {name: text for name, text in (("label", curve.label), ("gid", curve.gid)) if text}
    look = {**curve.look, **named}
    if curve.kind == "level":
        axes.axhline(curve.y[0], **look)
    elif curve.kind == "upright":
        axes.axvline(curve.x[0], **look)
    elif curve.kind == "spots":
        axes.scatter(curve.x, curve.y, **look)
    else:
        axes.plot(curve.x, curve.y, **look)
        if curve.around:
            ends = np.array([*curve.around.values()]).T
            places, colour = [*curve.around], curve.look["color"]
            if curve.error == "band":
                axes.fill_between(places, *ends, color=colour, alpha=0.18, linewidth=0)
            else:
                axes.vlines(places, *ends, color=colour, linewidth=1)


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
    return [
        _place(chart, i, j) | point
        for i, line in enumerate(chart.panels)
        for j, panel in enumerate(line)
        if panel is not None
        for point in _of_panel(panel)
    ]


def _of_panel(panel: Panel) -> Iterator[dict]:
    for curve in sorted(panel.curves, key=lambda curve: curve.kind == "spots"):
        for x, y in curve.points if curve.label or curve.gid else ():
            low, high = curve.around.get(x, (None, None))
            yield {"curve": curve.label, "id": curve.gid, "x": x, "y": y, "low": low, "high": high}
    heat = panel.heat or Heat([], [], [], "", "")
    for up, line in zip(heat.up, heat.values):
        for across, value in zip(heat.across, line):
            if value == value:
                yield {"x": across, "y": up, "value": float(value)}


def _place(chart: Chart, i: int, j: int) -> dict:
    """The title of a panel, and its axes. Labels that it shares with its neighbours are written
    only next to those.
    """
    line, column = chart.panels[i], [other[j] for other in chart.panels]
    first = lambda name, panels: next(filter(None, (getattr(one, name, "") for one in panels)), "")
    return {
        "panel": style.plain(first("title", [line[j], *line, *column])),
        "x_axis": first("x_axis", [line[j], *reversed(column)]),
        "y_axis": first("y_axis", [line[j], *line]),
    }


def written(chart: Chart) -> bytes:
    """The numbers as a CSV file."""
    table = lazy.pandas.DataFrame(numbers(chart), columns=COLUMNS, dtype=object)
    plain = lambda value: safe(style.written(value)) if isinstance(value, str) else value
    return table.map(plain).to_csv(index=False, lineterminator="\n").encode()


def is_written(path: Path) -> bool:
    """Whether the file is such a CSV file."""
    return path.read_bytes().partition(b"\n")[0].strip() == ",".join(COLUMNS).encode()


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
_STYLE: dict[Any, Any] = {
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
    return files.Kind(
        f"a figure of rfx in {form.upper()}",
        lambda path: (
            is_written(path)
            if form == "csv"
            else _MARKS[form] in path.read_bytes()[: None if form == "pdf" else 4096]
        ),
    )


def draw(
    name: str,
    rows: Sequence[Mapping] | Pipeline,
    output=None,
    setting: str | None = None,
    builders: Mapping[str, Callable] | None = None,
    inputs=(),
    force: bool = False,
) -> list[Path]:
    """Draw the figure `name` from result rows, or from a model, as PNG, SVG and PDF, and write its
    numbers as CSV.

    Returns the paths of these files. builders: the figures, name to builder; default: the general
    ones. output: a folder (an existing one, or a name that ends in /), or the files' name with or
    without .png or .svg; default: NAME in the current folder. The CSV file is STEM.figure.csv, to
    distinguish it from results files. inputs, force: see files.guard; figures of rfx are replaced
    without confirmation. Each file is written completely or not at all. Raises UsageError if there
    is no such figure or a file must not be replaced. Raises DataError if no row belongs to it, the
    model has nothing to draw, or a file can't be written.
    """
    builders = catalogue.figures() if builders is None else builders
    if name not in builders:
        raise UsageError(f"there is no figure {name}{or_near(name, builders)}")
    folder = str(output).endswith(os.sep) or Path(output or "").is_dir()
    stem = Path(output or "") / name if folder else Path(output or name)
    if stem.suffix.lower().removeprefix(".") in FORMATS and not folder:
        stem = stem.with_suffix("")
    for path, form in zip(_targets(stem), FORMATS):
        files.guard(("--output", path), inputs, _kind(form), force)
    with styled():
        chart = builders[name](rows, setting)
        return save(chart, paint(chart), stem)


def guard_one(path, inputs=(), force: bool = False) -> None:
    """Raise UsageError if the name of a figure's file has no known format, or if the file must not
    be replaced. inputs, force: see files.guard.
    """
    files.guard(("--figure", path), inputs, _kind(_form(path)), force)


def draw_one(chart: Chart, path) -> None:
    """Draw a chart into one file in the format of its name; the file is written completely or not
    at all.

    Raises DataError if it can't be written.
    """
    try:
        with styled(), files.whole(path) as handle:
            _draw_into(paint(chart), handle, _form(path))
    except OSError as error:
        raise DataError(f"{path} can't be written: {error.strerror}") from error


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

    Raises DataError if a file can't be written.
    """
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for path, form in zip(_targets(stem), FORMATS):
            with files.whole(path) as handle:
                if form == "csv":
                    handle.write(written(chart))
                else:
                    _draw_into(figure, handle, form)
            # the layout takes as long as drawing, and is the same in all formats
            figure.set_layout_engine("none")
    except OSError as error:
        raise DataError(
            f"{stem} can't be written: {error.strerror}; give another --output"
        ) from error
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
    n_columns, n_outputs = len(explained.importances), len(explained.outputs)
    panels = [_bars(explained), *(_panel(one, explained) for one in explained.dependences)]
    drawn = f" of {explained.n_given:,}, drawn by seed {explained.seed}" * (
        explained.n_rows < explained.n_given
    )
    classes = f"Those {MOST_OUTPUTS} of {n_outputs:,} classes are drawn whose means differ most."
    notes = {
        f"{explained.n_rows:,} rows{drawn}. Importance: by how much the {explained.metric}"
        f" ({explained.error:.4g}) rises when a column is shuffled, the mean of {explained.repeats}"
        " shuffles. Of the columns that tell nothing, 95 % have 0 in their interval.": True,
        f"The first {MOST} of {n_columns:,} columns.": n_columns > MOST,
        f"Partial dependence: the mean {explained.response} where all rows have the same value.": (
            bool(explained.dependences)
        ),
        classes: bool(explained.dependences) and n_outputs > MOST_OUTPUTS,
    }
    return Chart(
        "What the predictions depend on",
        [note for note, applies in notes.items() if applies],
        in_lines(panels, min(len(panels), IN_A_LINE)),
        max(2.2, 0.7 + 0.14 * min(MOST, n_columns)),
    )


def _bars(explained: Explanation) -> Panel:
    shown = explained.importances[:MOST]
    places, top = np.arange(len(shown), 0, -1).tolist(), len(shown) + 0.6
    bar = {"color": style.numbered(0)["color"], "linewidth": 6, "solid_capstyle": "butt"}
    line = {"color": "0.15", "linewidth": 1.1}
    dots = {"color": "0.15", "marker": "o", "linestyle": "none", "markersize": 2.5}
    curves = [
        curve
        for one, place in zip(shown, places)
        for curve in (
            Curve([0.0, one.mean], [place, place], bar | {"alpha": 0.55}),
            Curve([one.low, one.high], [place, place], line),
        )
    ]
    curves += [
        Curve([one.mean for one in shown], places, dots, gid="importance"),
        Curve([0.0, 0.0], [0.4, top], {"color": "0.4", "linewidth": 0.7}),
    ]

    def dress(axes) -> None:
        axes.set_yticks(places, [_name(one.name) for one in shown])
        axes.set_ylim(0.4, top)

    return Panel("Importance", f"rise of the {explained.metric}", "", curves, dress=dress)


def _panel(one: Dependence, explained: Explanation) -> Panel:
    several, places = len(explained.outputs) > 1, list(range(len(one.grid)))
    numbers, unordered = one.kind == "numbers", one.kind == "categories"
    marks = {"linestyle": "none"} if unordered else {}
    curves = [
        Curve(
            one.grid if numbers else places,
            one.means[:, place],
            style.numbered(number) | marks,
            style.plain(explained.outputs[place]) if several else "",
            style.identifier("dependence", one.name, explained.outputs[place]),
        )
        for number, place in enumerate(explained.widest(MOST_OUTPUTS))
    ]

    def dress(axes) -> None:
        step = 1 if unordered else max(1, len(places) // 5)
        texts = [_name(str(value)) for value in one.grid]
        axes.set_xticks(places[::step], texts[::step], rotation=45, ha="right")

    of = f" of {style.plain(explained.outputs[0])}" if not several and explained.outputs[0] else ""
    y_axis = f"mean {explained.response}{of}"
    return Panel(one.name, "", y_axis, curves, dress=None if numbers else dress)


def _name(text: str) -> str:
    return style.plain(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
