"""Figures for Yen et al. 2014. Figure 1: objective and test error of Sparse-RF and boosting against
training time, with the kernel's line. Corollary 1: the objective of Sparse-RF above its limit
against D, with the bound.
"""

from functools import partial

from rfx.papers.yen2014 import figure1 as yen
from rfx.papers.yen2014 import theory
from rfx.reporting import style
from rfx.reporting.builders import Builder
from rfx.reporting.charts import Chart, Curve, Panel, in_lines, level
from rfx.reporting.seeds import mean_of

_QUANTITIES = ((1, "objective / N", "objective"), (2, "test error", "error"))
_LOOKS = {
    "boosting-exact": style.look("boosting") | {"marker": "+", "markersize": 6, "linestyle": ":"}
}


def figure1(rows) -> Chart:
    """A column of panels for each data set, objective above error; the band is the range over the
    seeds.
    """
    panels = yen.found(rows)
    lines = [
        [
            _panel(name, curves, line, of, first=not place)
            for place, (name, (curves, line)) in enumerate(panels.items())
        ]
        for of in _QUANTITIES
    ]
    firsts = {name: next(iter(curves.values())) for name, (curves, _) in panels.items()}
    said = [
        f"{yen.DATA[name]}: lambda_N = {first.lam:g}, N = {first.n:,}."
        for name, first in firsts.items()
    ]
    notes = [
        " ".join(said),
        (
            "Dashed: (lambda_N/N) ||w*||_2 + mean loss of the kernel machine, and its error, means"
            " over its seeds. Bands are lowest to highest over the seeds."
        ),
        style.machines(
            [row for curves, _ in panels.values() for runs in curves.values() for row in runs.rows]
        ),
    ]
    return Chart(
        "Yen et al. 2014, Figure 1: Sparse-RF and boosting, perceptrons +-1", notes, lines, 2.5
    )


def _panel(name, curves, line, of, first) -> Panel:
    """Objective or error of one data set."""
    quantity, words, short = of
    drawn = []
    for key, runs in curves.items():
        at, mean, low, high = (values.tolist() for values in runs.band(quantity))
        look = (_LOOKS.get(key) or style.look(key)) | {"markevery": max(1, len(at) // 8)}
        around = dict(zip(at, zip(low, high)))
        drawn.append(
            Curve(
                at,
                mean,
                look,
                yen.CURVES[key],
                style.identifier("figure1", name, key, short),
                around,
            )
        )
    if line is not None:
        value = mean_of(line.bounds if short == "objective" else line.errors).value
        gid = style.identifier("figure1", name, "kernel", short)
        drawn.append(level(value, "Kernel", gid, color="black", linestyle="--", linewidth=1))
    title, x_axis = (
        (yen.DATA[name], "") if short == "objective" else ("", "training, processor seconds")
    )
    return Panel(
        title,
        x_axis,
        words if first else "",
        drawn,
        dress=partial(_limits, name=name, quantity=quantity, curves=curves),
    )


def _limits(axes, name, quantity, curves):
    """Seconds from the first step to the end of the paper's axis, or of ours; the paper's limits of
    objective and error, extended if ours need it.
    """
    times = [run[0] for runs in curves.values() for run in runs.runs]
    values = [
        value
        for runs in curves.values()
        for run in runs.runs
        for value in (run[quantity].min(), run[quantity].max())
    ]
    (_, right), *limits = yen.AXES.get(
        name, ((0, 1), (max(values), min(values)), (max(values), min(values)))
    )
    low, high = limits[quantity - 1]
    axes.set_xscale("log")
    axes.set_xlim(
        max(1e-2, min(time[0] for time in times)) * 0.8,
        max(right, *(time[-1] for time in times)) * 1.1,
    )
    room = 0.03 * (max(high, *values) - min(low, *values))
    axes.set_ylim(min(low, *values) - room, max(high, *values) + room)


def corollary1(rows) -> Chart:
    """A panel for each data set and kernel: the mean over the seeds, its slope, the bound, and
    F(0), above which the bound is vacuous.
    """
    found = theory.cases(rows)
    used = [
        row for row in rows if row["params"].get("label") == theory.LABEL and row["status"] == "ok"
    ]
    title = (
        "Yen et al. 2014, Corollary 1: the objective of Sparse-RF against the number of features"
    )
    panels = in_lines([_bounded(case) for case in found], min(2, len(found)))
    return Chart(title, [*theory.NOTES, style.machines(used)], panels, 3.0)


def _bounded(case) -> Panel:
    excess, reference, name = (
        case.excess,
        case.reference,
        f"corollary1-{case.dataset}-{case.kernel}",
    )
    sizes, means, deviations = excess.above()
    around = {
        size: (max(mean - sd, 0.05 * mean), mean + sd)
        for size, mean, sd in zip(sizes, means, deviations)
    }
    words = "Sparse-RF, mean and deviation over the seeds"
    drawn = [Curve(sizes, means, style.look("sparse-rf"), words, f"{name}-ours", around)]
    if case.rf is not None:
        points = [(size, case.rf_above(size).value) for size in case.rf.values]
        at, above = zip(*((size, value) for size, value in points if value > 0))
        words = "RF above the exact kernel machine"
        drawn.append(Curve(at, above, style.look("rf"), words, f"{name}-rf"))
    bounds = {2**k: reference.bound(2**k, case.curvature) - excess.limit for k in range(4, 25)}
    bounds = {size: bound for size, bound in bounds.items() if bound < float("inf")}
    look = {"color": "black", "linestyle": "--", "linewidth": 1.0}
    drawn.append(
        Curve(list(bounds), list(bounds.values()), look, "bound of Corollary 1", f"{name}-bound")
    )
    zero = reference.zero - excess.limit
    drawn.append(
        level(zero, "F(0): a bound above is vacuous", color="#AA4466", linewidth=0.9, linestyle=":")
    )
    if reference.value > excess.limit:
        words = "F*: exact kernel, lam ||w*||$_2$"
        drawn.append(
            level(reference.value - excess.limit, words, color="0.4", linewidth=0.9, linestyle="-.")
        )
    slope = "" if excess.slope is None else f", slope {excess.slope:.2f}"
    return Panel(
        f"{case.dataset}, {case.kernel}{slope}",
        "features D",
        "F less its limit",
        drawn,
        dress=_log_both,
    )


def _log_both(axes) -> None:
    style.log_scale(axes, "x", 2)
    style.log_values(axes)


FIGURES = {
    name: Builder(f"yen2014-{name}", make)
    for name, make in (("figure1", figure1), ("corollary1", corollary1))
}
