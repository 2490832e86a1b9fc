"""Figure 1 of Dai et al. 2014, the ripple and the costs as figures, on the paper's axes with its
quoted numbers as lines.
"""

from functools import partial

from rfx.papers.dai2014 import curves as dai
from rfx.reporting import style
from rfx.reporting.cells import Builder, Row
from rfx.reporting.figures import Chart, Curve, Panel, level, through

_SAMPLES = ("mnist", "cifar10", "imagenet", "qm7", "molecularspace")
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


def _in_panel(key, first) -> list[Row]:
    """The rows in the panel of a criterion. Exact kernels have no curve and are lines in the panel
    of the methods that are trained on the same Coulomb matrices.
    """
    shown = (key, *_EXACT) if key in ("", "rows") else (key,)
    return [row for other in first if other in shown for row in first[other]]


def _panel(name, key, chosen) -> Panel:
    """The runs with one criterion, and the numbers that the paper quotes for their methods."""
    axis = "samples" if name in _SAMPLES else "seconds"
    lines = {id(row): dai.curve(row, axis) for row in chosen}
    # the paper's axes, extended if ours need it
    (left, right), (low, high) = dai.AXES[name]
    places = [place for line in lines.values() for place in line] or [left]
    left, right = min(left, *places), max(right, *places) * 1.1
    errors = [dai.error(row) for row in chosen]
    drawn: list[Curve] = []
    quoted: list[Curve] = []
    for row in chosen:
        method, line, look = row.method, lines[id(row)], style.look(row.method)
        kernel = dai.criterion_words(dai.criterion_of(row)) if method == "kernel" else ""
        words = style.plain(f"{dai.METHODS.get(method, method)} {kernel}".strip())
        gid, colour = style.identifier("fig1", name, method), look["color"]
        drawn.append(
            Curve([*line], [*line.values()], look | {"markersize": 3}, words, gid)
            if line
            else level(dai.error(row), {"color": colour}, words, gid)
        )
        if (paper := dai.quoted(name, method)) is not None:
            dotted: style.Look = {"color": colour, "linestyle": ":", "linewidth": 1}
            drawn.append(level(paper, dotted))
            # the paper does not give the place on the axis: side by side, near the right end
            at, mark = right * 0.8 * 0.6 ** len(quoted), style.printed(method)
            quoted.append(Curve([at], [paper], mark, f"{words}, paper", f"{gid}-paper"))

    def dress(axes):
        bottom, top = min(low, *errors) * 0.95, max(high, *(error * 1.05 for error in errors))
        axes.set(xscale="log", xlim=(left, right), ylim=(bottom, top))

    return Panel(
        dai.criterion_words(key),
        "training rows" if axis == "samples" else "training, seconds",
        dai.unit(name).replace("error", "test error"),
        [*drawn, *quoted],
        dress=dress,
    )


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


def _distances(by_nu) -> list[Curve]:
    """The mean distance for each nu, and the slope -1 through its end."""
    drawn = []
    for number, (nu, ripple) in enumerate(sorted(by_nu.items(), reverse=True)):
        mean, slope = ripple.mean, ripple.slope(ripple.mean)
        look = {"color": ("#332288", "#D55E00", "#009E73", "#56B4E9")[number % 4]}
        marks = look | {"marker": "oshv"[number % 4], "markersize": 3}
        words = f"nu = {nu:g}" + ("" if slope is None else f", slope {slope:.2f}")
        ends = [mean.index[-1] / 16, mean.index[-1]]
        line = {end: mean.iloc[-1] * ends[1] / end for end in ends}
        drawn += [
            Curve(mean.index, mean, marks, words, f"synthetic-{ripple.kind}-nu-{nu:g}"),
            through(line, look | {"linestyle": ":"}, "" if number else "slope -1"),
        ]
    return drawn


def complexity(rows) -> Chart:
    """Preprocessing, training, prediction and storage against the number of rows."""
    costs = dai.costs(rows)
    panels = []
    for cost, (words, _) in dai.COSTS.items():
        lines = costs[costs[cost] > 0].groupby(level=0, sort=False)
        drawn = [_cost_curve(cost, str(method), line) for method, line in lines]
        title = words.partition(",")[0]
        panels.append(Panel(title, "rows n = features", words, drawn, dress=style.log_both))
    notes = [style.machines(dai.of(rows, "complexity"))]
    return Chart("Dai et al. 2014: computation and storage", notes, [panels], 2.8)


def _cost_curve(cost: str, method: str, line) -> Curve:
    label, gid = style.plain(dai.METHODS.get(method, method)), f"complexity-{cost}-{method}"
    return Curve(line["n"], line[cost], style.look(method), label, gid)


FIGURES = {
    f"fig1-{name}": Builder(f"dai2014-fig1-{name}", partial(figure1, name)) for name in dai.DATA
} | {
    "synthetic": Builder("dai2014-synthetic", synthetic),
    "complexity": Builder("dai2014-complexity", complexity),
}
