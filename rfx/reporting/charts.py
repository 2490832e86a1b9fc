"""Figures as values: curves in panels. One function draws them, and another writes them as the
lines of a CSV file.

A figure's builder computes a `Chart`; nothing is read back from a drawing. `style` defines its
appearance.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rfx import lazy
from rfx.records.sheet import safe
from rfx.reporting import style
from rfx.reporting.seeds import Mean

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
