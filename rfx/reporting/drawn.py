"""The numbers behind a figure: every point of every curve, band, level line and heat map that is drawn, as one flat table.

They are taken from the figure itself, so that they are what a reader sees, to the last digit.
"""

import csv
import io

from rfx.records.sheet import safe
from rfx.reporting import style

COLUMNS = ("panel", "x_axis", "y_axis", "curve", "id", "x", "y", "low", "high", "value")


def numbers(figure) -> list[dict]:
    """A line for each point that is drawn, panel after panel: names as in COLUMNS.

    curve: as the legend has it; id: its identifier in the SVG file. x is None for a level line, y for an upright one; low and high
    are the band or bar around a point, value is that of a heat map's cell. Lines without a name, such as grid lines, are left out.
    """
    found = []
    for axes in figure.axes:
        place = _place(figure, axes)
        bands, bars = _bands(axes), _bars(axes)
        for line in axes.get_lines():
            name, gid = bars.get(line, (line.get_label(), None))[0], line.get_gid()
            if name.startswith("_") and gid is None:
                continue
            around = bars[line][1] if line in bars else _around(line, bands)
            points = _points(axes, line)
            found += [
                place | {"curve": "" if name.startswith("_") else name, "id": gid or "", "x": x, "y": y} | around.get(x, {})
                for x, y in points
            ]
        found += [place | one for one in _spots(axes)]
    return found


def written(figure) -> bytes:
    """The same as a CSV file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for one in numbers(figure):
        texts = {name: safe(style.written(value)) for name, value in one.items() if isinstance(value, str)}
        writer.writerow({name: "" if value is None else value for name, value in one.items()} | texts)
    return out.getvalue().encode()


def is_written(path) -> bool:
    """Is the file such a CSV file?"""
    with open(path, "rb") as handle:
        return handle.readline().strip() == ",".join(COLUMNS).encode()


def _place(figure, axes) -> dict:
    """What a panel is called, and its axes; what it shares with its neighbours is written beside those alone."""
    spec = axes.get_subplotspec()
    beside = [one for one in figure.axes if spec is not None and one.get_subplotspec() is not None]
    line = [one for one in beside if one.get_subplotspec().rowspan.start == spec.rowspan.start]
    column = [one for one in beside if one.get_subplotspec().colspan.start == spec.colspan.start]
    own = lambda one: one.get_title(loc="left") or one.get_title()
    return {
        "panel": next((own(one) for one in (axes, *line, *column) if own(one)), ""),
        "x_axis": next((one.get_xlabel() for one in (axes, *reversed(column)) if one.get_xlabel()), ""),
        "y_axis": next((one.get_ylabel() for one in (axes, *line) if one.get_ylabel()), ""),
    }


def _points(axes, line) -> list[tuple]:
    """(x, y) of a line; of a level line (None, y), of an upright one (x, None)."""
    xs, ys = line.get_xdata(orig=True), line.get_ydata(orig=True)
    if line.get_transform() == axes.get_yaxis_transform(which="grid"):
        return [(None, _plain(ys[0]))]
    if line.get_transform() == axes.get_xaxis_transform(which="grid"):
        return [(_plain(xs[0]), None)]
    return [(_plain(x), _plain(y)) for x, y in zip(xs, ys)]


def _plain(value):
    return value.item() if hasattr(value, "item") else value


def _bands(axes) -> list[tuple]:
    """(colour, x -> low and high) of every band between two curves."""
    from matplotlib.collections import PolyCollection

    found = []
    for band in axes.collections:
        if isinstance(band, PolyCollection):
            around: dict = {}
            for x, y in (vertex for path in band.get_paths() for vertex in path.vertices):
                one = around.setdefault(float(x), {"low": float(y), "high": float(y)})
                one["low"], one["high"] = min(one["low"], float(y)), max(one["high"], float(y))
            found.append((tuple(band.get_facecolor()[0][:3]), around))
    return found


def _around(line, bands) -> dict:
    """The band in the colour of a line that has its places."""
    from matplotlib.colors import to_rgb

    xs = {float(x) for x in line.get_xdata(orig=True) if isinstance(_plain(x), (int, float))}
    colour = to_rgb(line.get_color())
    return next((around for shade, around in bands if shade == colour and set(around) <= xs), {})


def _bars(axes) -> dict:
    """The line of every curve with error bars: its name, and x -> low and high."""
    found = {}
    for container in axes.containers:
        line, _, bars = container.lines if hasattr(container, "has_yerr") else (None, None, ())
        segments = [segment for bar in bars for segment in bar.get_segments() if len(segment)]
        if line is not None:
            around = {float(one[0][0]): {"low": float(one[0][1]), "high": float(one[1][1])} for one in segments}
            found[line] = (container.get_label(), around)
    return found


def _spots(axes) -> list[dict]:
    """The points of the scatters of a panel, and the cells of its heat maps, whose places are what their ticks say."""
    from matplotlib.collections import PathCollection

    found = []
    for drawn in axes.collections:
        if isinstance(drawn, PathCollection):
            name = {"curve": "" if drawn.get_label().startswith("_") else drawn.get_label(), "id": drawn.get_gid() or ""}
            found += [name | {"x": _plain(x), "y": _plain(y)} for x, y in drawn.get_offsets()]
    across, lines = ([tick.get_text() for tick in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis))
    for image in axes.images:
        for i, line in enumerate(image.get_array().filled(float("nan")).tolist()):
            found += [{"x": across[j], "y": lines[i], "value": value} for j, value in enumerate(line) if value == value]
    return found
