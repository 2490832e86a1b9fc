"""Figure 1 of Dai et al. 2014, the ripple and the costs as figures, on the paper's axes with its
quoted numbers as lines.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from rfx.papers.dai2014 import curves as dai
from rfx.reporting import style
from rfx.reporting.cells import Builder, Row
from rfx.reporting.effects import Column, Frame
from rfx.reporting.figures import Chart, Curve, Panel, level, through

_SAMPLES = ("mnist", "cifar10", "imagenet", "qm7", "molecularspace")
_DOTTED: style.Look = {"linestyle": ":", "linewidth": 1}
_EXACT = ("gaussian", "laplacian")


def figure1(name, rows) -> Chart:
    """Error against seconds of training, a panel for each criterion; against rows for digits,
    images and molecules.
    """
    by = dai.by_criterion(dai.of(rows, name))
    first = {}
    for key, methods in by.items():
        first[key] = [runs[0] for runs in methods.values()]
    keys = [key for key in by if key not in _EXACT] or [""]
    panels = [_panel(name, key, _in_panel(key, first)) for key in keys]
    all_rows = [row for rows_of in first.values() for row in rows_of]
    note = "Seconds are of the steps, without Nystrom's preprocessing. Of several seeds the first."
    title = f"Dai et al. 2014, Figure 1: {name}"
    return Chart(title, [note, style.machines(all_rows)], [panels], 3.2)


def _in_panel(key: str, first: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows in the panel of a criterion. Exact kernels have no curve and are lines in the panel
    of the methods that are trained on the same Coulomb matrices.
    """
    shown = (key, *_EXACT) if key in ("", "rows") else (key,)
    return [row for other in first if other in shown for row in first[other]]


def _panel(name: str, key: str, rows: Sequence[Row]) -> Panel:
    """The runs with one criterion, and the numbers that the paper quotes for their methods, on the
    paper's axes, extended if ours need it.
    """
    axis = "samples" if name in _SAMPLES else "seconds"
    lines = [dai.curve(row, axis) for row in rows]
    (left, right), (low, high) = dai.AXES[name]
    places = [place for line in lines for place in line.index] or [left]
    left = min(left, *places)
    right = max(right, *places) * 1.1
    drawn: list[Curve] = []
    marks: list[Curve] = []
    for row, line in zip(rows, lines):
        curve = _curve(name, row, line)
        drawn.append(curve)
        paper = dai.quoted(name, row.method)
        if paper is not None:
            dotted = _DOTTED | {"color": style.colour(curve.look)}
            drawn.append(level(paper, dotted))
            # the paper does not give the place on the axis: side by side, near the right end
            place = right * 0.8 * 0.6 ** len(marks)
            mark = style.printed(row.method)
            words = f"{curve.label}, paper"
            marks.append(Curve([place], [paper], mark, words, f"{curve.gid}-paper"))
    errors = [dai.error(row) for row in rows]

    def dress(axes):
        bottom, top = min(low, *errors) * 0.95, max(high, *(error * 1.05 for error in errors))
        axes.set(xscale="log", xlim=(left, right), ylim=(bottom, top))

    x_axis = "training rows" if axis == "samples" else "training, seconds"
    y_axis = dai.unit(name).replace("error", "test error")
    return Panel(dai.criterion_words(key), x_axis, y_axis, [*drawn, *marks], dress=dress)


def _curve(name: str, row: Row, line: Column) -> Curve:
    """The errors of a run; a horizontal line for a method without steps."""
    look = style.look(row.method)
    words = dai.METHODS.get(row.method, row.method)
    if row.method == "kernel":
        words = f"{words} {dai.criterion_words(dai.criterion_of(row))}".strip()
    label, gid = style.plain(words), style.identifier("fig1", name, row.method)
    if line.empty:
        return level(dai.error(row), {"color": style.colour(look)}, label, gid)
    return Curve([*line.index], [*line], look | {"markersize": 3}, label, gid)


def synthetic(rows) -> Chart:
    """E|f_t - f*|^2 against steps for every nu, with the slope -1 of Theorem 4; a panel for each
    kind of steps.
    """
    dai.of(rows, "synthetic")
    y_axis, panels = "E|f$_t$(x) - f*(x)|$^2$", []
    for kind, words in dai.STEPS.items():
        drawn = _distances(dai.ripple(rows, kind))
        if drawn or kind == "theorem":
            panels.append(Panel(f"steps {words}", "steps t", y_axis, drawn, dress=style.log_both))
    title = "Dai et al. 2014: the ripple, distance to the exact solution of the same nu"
    return Chart(title, [], [panels], 3.4)


_COLOURS, _MARKS = ("#332288", "#D55E00", "#009E73", "#56B4E9"), "oshv"


def _distances(by_nu: Mapping[float, dai.Ripple]) -> list[Curve]:
    """The mean distance for each nu, and the slope -1 through its end."""
    drawn = []
    for number, (nu, ripple) in enumerate(sorted(by_nu.items(), reverse=True)):
        mean = ripple.mean
        slope = ripple.slope(mean)
        words = f"nu = {nu:g}" if slope is None else f"nu = {nu:g}, slope {slope:.2f}"
        colour, mark = _COLOURS[number % 4], _MARKS[number % 4]
        marks: style.Look = {"color": colour, "marker": mark, "markersize": 3}
        gid = f"synthetic-{ripple.kind}-nu-{nu:g}"
        drawn.append(Curve(mean.index, mean, marks, words, gid))
        last = mean.index[-1]
        line = {end: mean.iloc[-1] * last / end for end in (last / 16, last)}
        dotted: style.Look = {"color": colour, "linestyle": ":"}
        drawn.append(through(line, dotted, "" if number else "slope -1"))
    return drawn


def complexity(rows) -> Chart:
    """Preprocessing, training, prediction and storage against the number of rows."""
    costs = dai.costs(rows)
    panels = []
    for cost, words in dai.WORDS.items():
        lines = costs[costs[cost] > 0].groupby(level=0, sort=False)
        drawn = [_cost_curve(cost, str(method), line) for method, line in lines]
        title = dai.title_of_cost(cost)
        panels.append(Panel(title, "rows n = features", words, drawn, dress=style.log_both))
    notes = [style.machines(dai.of(rows, "complexity"))]
    return Chart("Dai et al. 2014: computation and storage", notes, [panels], 2.8)


def _cost_curve(cost: str, method: str, line: Frame) -> Curve:
    label = style.plain(dai.METHODS.get(method, method))
    return Curve(line.n, line[cost], style.look(method), label, f"complexity-{cost}-{method}")


def _figure1_builder(name: str) -> Builder:
    return Builder(f"dai2014-fig1-{name}", partial(figure1, name))


FIGURES = {f"fig1-{name}": _figure1_builder(name) for name in dai.DATA} | {
    "synthetic": Builder("dai2014-synthetic", synthetic),
    "complexity": Builder("dai2014-complexity", complexity),
}
