"""Figures for Yen et al. 2014. Figure 1: objective and test error of Sparse-RF and boosting against
training time, with the kernel's line. Corollary 1: the objective of Sparse-RF above its limit
against D, with the bound.
"""

import math
from functools import partial
from typing import Any

import numpy as np

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
_ZERO: dict[str, Any] = {"color": "#AA4466", "linewidth": 0.9, "linestyle": ":"}
_MACHINE: dict[str, Any] = {"color": "0.4", "linewidth": 0.9, "linestyle": "-."}
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
    objectives = [_panel(name, *of, "objective", name == first) for name, of in panels.items()]
    errors = [_panel(name, *of, "error", name == first) for name, of in panels.items()]
    settings, used = [], []
    for name, (curves, _) in panels.items():
        own = [row for runs in curves.values() for row in runs.rows]
        lam, n_train = own[0].lam, own[0].n_train
        settings.append(f"{yen.DATA[name]}: lambda_N = {lam:g}, N = {n_train:,}.")
        used += own
    return Chart(
        title="Yen et al. 2014, Figure 1: Sparse-RF and boosting, perceptrons +-1",
        notes=[" ".join(settings), _DASHED, style.machines(used)],
        panels=[objectives, errors],
        height=2.5,
    )


def _panel(name, curves, line, quantity, first) -> Panel:
    """Objective or error of one data set; the first has the name of the y axis."""
    drawn = []
    for key, runs in curves.items():
        at, values = runs.band(quantity)
        look = (_LOOKS.get(key) or style.look(key)) | {"markevery": max(1, len(at) // 8)}
        gid = style.identifier("figure1", name, key, quantity)
        ends = zip(values.min(axis=0).tolist(), values.max(axis=0).tolist())
        around = dict(zip(at.tolist(), ends))
        drawn.append(Curve(at, values.mean(axis=0), look, yen.CURVES[key], gid, around))
    if line is not None:
        errors = [1 - row.score for row in line.rows]
        value = mean_of([*line.bounds.values()] if quantity == "objective" else errors).value
        gid = style.identifier("figure1", name, "kernel", quantity)
        drawn.append(level(value, "Kernel", gid, color="black", linestyle="--", linewidth=1))

    def dress(axes) -> None:
        """Seconds from the first step to the end of the paper's axis, or of ours; the paper's
        limits of objective and error, extended if ours need it.
        """
        runs = [run for runs in curves.values() for run in runs.runs.values()]
        values = np.concatenate([run[quantity] for run in runs])
        times = np.concatenate([run["seconds"] for run in runs])
        room = (float(values.max()), float(values.min()))
        (_, right), *limits = yen.AXES.get(name, ((0, 1), room, room))
        low, high = limits[list(_QUANTITIES).index(quantity)]
        low, high = min(low, values.min()), max(high, values.max())
        margin = 0.03 * (high - low)
        axes.set(
            xscale="log",
            xlim=(max(1e-2, times.min()) * 0.8, max(right, times.max()) * 1.1),
            ylim=(low - margin, high + margin),
        )

    below = quantity == "error"
    return Panel(
        "" if below else yen.DATA[name],
        "training, processor seconds" if below else "",
        _QUANTITIES[quantity] if first else "",
        drawn,
        dress=dress,
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
    means = {size: one.value for size, one in case.rf.above.items() if one.value > 0}
    if means:
        drawn.append(
            through(means, style.look("rf"), "RF above the exact kernel machine", gid("rf"))
        )
    bounds = {2**k: reference.bound(2**k) - limit for k in range(4, 25)}
    bounds = {size: bound for size, bound in bounds.items() if bound < math.inf}
    look = {"color": "black", "linestyle": "--", "linewidth": 1.0}
    drawn.append(through(bounds, look, "bound of Corollary 1", gid("bound")))
    if reference.zero > limit:
        zero = level(reference.zero - limit, "F(0): a bound above is vacuous", **_ZERO)
        drawn.append(zero)
    if reference.value > limit:
        machine = level(reference.value - limit, "F*: exact kernel, lam ||w*||$_2$", **_MACHINE)
        drawn.append(machine)
    slope = "" if excess.slope is None else f", slope {excess.slope:.2f}"
    return Panel(
        f"{case.dataset}, {case.kernel}{slope}",
        "features D",
        "F less its limit",
        drawn,
        dress=partial(style.log_both, base=2),
    )


FIGURES = {
    "figure1": Builder("yen2014-figure1", figure1),
    "corollary1": Builder("yen2014-corollary1", corollary1),
}
