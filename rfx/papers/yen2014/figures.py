"""Figures for Yen et al. 2014. Figure 1: objective and test error of Sparse-RF and boosting against
training time, with the kernel's line. Corollary 1: the objective of Sparse-RF above its limit
against D, with the bound.
"""

from functools import partial

from rfx import lazy
from rfx.papers.yen2014 import curves as yen
from rfx.reporting import style
from rfx.reporting.cells import (
    Builder,
    good,
    labelled,
    mean_of,
)
from rfx.reporting.figures import Chart, Curve, Panel, in_lines, level, positive_curve, through

_QUANTITIES = {"objective": "objective / N", "error": "test error"}
_LOOKS = {
    "boosting-exact": style.look("boosting") | {"marker": "+", "markersize": 6, "linestyle": ":"}
}
_KERNEL: style.Look = {"color": "black", "linestyle": "--", "linewidth": 1}
_ZERO: style.Look = {"color": "#AA4466", "linewidth": 0.9, "linestyle": ":"}
_MACHINE: style.Look = {"color": "0.4", "linewidth": 0.9, "linestyle": "-."}
_BOUND: style.Look = {"color": "black", "linestyle": "--", "linewidth": 1.0}
_DASHED = (
    "Dashed: (lambda_N/N) ||w*||_2 + mean loss of the kernel machine, and its error, means over its"
    " seeds. Bands are lowest to highest over the seeds."
)


def figure1(rows) -> Chart:
    """A column of panels for each data set, objective above error; the band is the range over the
    seeds.
    """
    panels = yen.figure1(rows)
    first = next(iter(panels))
    settings, used, objectives, errors = [], [], [], []
    for name, panel in panels.items():
        objectives.append(_panel(name, panel, "objective", name == first))
        errors.append(_panel(name, panel, "error", name == first))
        lam, n_train = panel.rows[0].lam, panel.rows[0].n_train
        settings.append(f"{yen.DATA[name]}: lambda_N = {lam:g}, N = {n_train:,}.")
        used += panel.rows
    return Chart(
        title="Yen et al. 2014, Figure 1: Sparse-RF and boosting, perceptrons +-1",
        notes=[" ".join(settings), _DASHED, style.machines(used)],
        panels=[objectives, errors],
        height=2.5,
    )


def _panel(name: str, panel: yen.Panel, quantity: str, is_first: bool) -> Panel:
    """Objective or error of one data set; the first has the name of the y axis."""
    drawn = [_curve(name, key, runs, quantity) for key, runs in panel.curves.items()]
    if panel.line is not None:
        drawn.append(_level_of_machine(name, panel.line, quantity))
    y_axis = _QUANTITIES[quantity] if is_first else ""
    dress = partial(_dress, name=name, panel=panel, quantity=quantity)
    if quantity == "error":
        return Panel("", "training, processor seconds", y_axis, drawn, dress=dress)
    return Panel(yen.DATA[name], "", y_axis, drawn, dress=dress)


def _curve(name: str, key: str, runs: yen.Curves, quantity: str) -> Curve:
    """The mean over the seeds, with their range."""
    at, values = runs.band(quantity)
    look = (_LOOKS.get(key) or style.look(key)) | {"markevery": max(1, len(at) // 8)}
    gid = style.identifier("figure1", name, key, quantity)
    lowest, highest = values.min(axis=0), values.max(axis=0)
    around = dict(zip(at.tolist(), zip(lowest.tolist(), highest.tolist())))
    return Curve(at, values.mean(axis=0), look, yen.CURVES[key], gid, around)


def _level_of_machine(name: str, line: yen.Line, quantity: str) -> Curve:
    """The objective or the error of the kernel machine, the mean over its seeds."""
    values = [1 - row.score for row in line.rows]
    if quantity == "objective":
        values = [*line.bounds.values()]
    gid = style.identifier("figure1", name, "kernel", quantity)
    mean = mean_of(values).value
    return level(mean, _KERNEL, "Kernel", gid)


def _dress(axes, name: str, panel: yen.Panel, quantity: str) -> None:
    """Seconds from the first step to the end of the paper's axis, or of ours; the paper's limits of
    objective and error, extended if ours need it.
    """
    steps = lazy.pandas.concat(run for runs in panel.curves.values() for run in runs.runs.values())
    times, values = steps.seconds, steps[quantity]
    low, high, right = values.min(), values.max(), 1.0
    if name in yen.AXES:
        (_, right), *limits = yen.AXES[name]
        printed_low, printed_high = limits[list(_QUANTITIES).index(quantity)]
        low, high = min(printed_low, low), max(printed_high, high)
    margin = 0.03 * (high - low)
    axes.set(
        xscale="log",
        xlim=(max(1e-2, times.min()) * 0.8, max(right, times.max()) * 1.1),
        ylim=(low - margin, high + margin),
    )


def corollary1(rows) -> Chart:
    """A panel for each data set and kernel: the mean over the seeds, its slope, the bound, and
    F(0), above which the bound is vacuous.
    """
    found = yen.cases(rows)
    machines = style.machines(good(labelled(rows, yen.COROLLARY1)))
    return Chart(
        title=yen.COROLLARY_TITLE,
        notes=[*yen.COROLLARY_NOTES, machines],
        panels=in_lines([_bounded(case) for case in found], min(2, len(found))),
        height=3.0,
    )


def _bounded(case: yen.Case) -> Panel:
    excess, reference, limit = case.excess, case.reference, case.excess.limit
    gid = partial(style.identifier, "corollary1", case.dataset, case.kernel)
    words = "Sparse-RF, mean and deviation over the seeds"
    drawn = [positive_curve(excess.above, style.look("sparse-rf"), words, gid("ours"))]
    means = {size: mean.value for size, mean in case.rf.above.items() if mean.value > 0}
    if means:
        words = "RF above the exact kernel machine"
        drawn.append(through(means, style.look("rf"), words, gid("rf")))
    sizes = [2**power for power in range(4, 25)]
    bounds = {size: reference.bound(size) - limit for size in sizes if size > reference.wasted}
    drawn.append(through(bounds, _BOUND, "bound of Corollary 1", gid("bound")))
    if reference.zero > limit:
        words = "F(0): a bound above is vacuous"
        drawn.append(level(reference.zero - limit, _ZERO, words))
    if reference.value > limit:
        words = "F*: exact kernel, lam ||w*||$_2$"
        drawn.append(level(reference.value - limit, _MACHINE, words))
    slope = "" if excess.slope is None else f", slope {excess.slope:.2f}"
    title = f"{case.dataset}, {case.kernel}{slope}"
    dress = partial(style.log_both, base=2)
    return Panel(title, "features D", "F less its limit", drawn, dress=dress)


FIGURES = {
    "figure1": Builder("yen2014-figure1", figure1),
    "corollary1": Builder("yen2014-corollary1", corollary1),
}
