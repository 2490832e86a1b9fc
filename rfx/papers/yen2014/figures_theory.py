"""Corollary 1 of Yen et al. 2014 as a figure: the objective of Sparse-RF above its limit, against D, under the bound."""

from rfx.papers.yen2014 import theory
from rfx.reporting import style


def corollary1(rows, setting=None):
    """A panel for each data set and kernel: the mean over the seeds, its slope, the bound, and F(0), above which that is vacuous."""
    found = theory.cases(rows, setting)
    columns = min(2, len(found))
    figure, grid = style.grid(-(-len(found) // columns), columns, 3.0)
    panels = [axes for line in grid for axes in line]
    for axes, case in zip(panels, found):
        _panel(axes, case)
    for axes in panels[len(found) :]:
        axes.remove()
    used = [row for row in rows if row["params"].get("label") == theory.LABEL and row["status"] == "ok"]
    title = "Yen et al. 2014, Corollary 1: the objective of Sparse-RF against the number of features"
    style.finish(figure, title, [*theory.NOTES, style.machines(used)])
    return figure


def _panel(axes, case):
    excess, reference, name = case.excess, case.reference, f"corollary1-{case.dataset}-{case.kernel}"
    sizes, means, deviations = excess.above()
    look = style.look("sparse-rf")
    low = [max(mean - sd, 0.05 * mean) for mean, sd in zip(means, deviations)]
    style.band(axes, sizes, low, [mean + sd for mean, sd in zip(means, deviations)], "sparse-rf")
    axes.plot(sizes, means, label="Sparse-RF, mean and deviation over the seeds", gid=f"{name}-ours", **look)
    places = [2**k for k in range(4, 25)]
    bounds = [(place, reference.bound(place, case.curvature) - excess.limit) for place in places]
    bounds = [(place, value) for place, value in bounds if value < float("inf")]
    axes.plot(*zip(*bounds), color="black", linestyle="--", linewidth=1.0, label="bound of Corollary 1", gid=f"{name}-bound")
    axes.axhline(reference.zero - excess.limit, color="#AA4466", linewidth=0.9, linestyle=":", label="F(0): a bound above is vacuous")
    if reference.value > excess.limit:
        axes.axhline(reference.value - excess.limit, color="0.4", linewidth=0.9, linestyle="-.", label="F*: exact kernel, lam ||w*||$_2$")
    style.log_scale(axes, "x", 2)
    style.log_values(axes)
    axes.set_xlabel("features D")
    axes.set_ylabel("F less its limit")
    slope = "" if excess.slope is None else f", slope {excess.slope:.2f}"
    style.head(axes, f"{case.dataset}, {case.kernel}{slope}")


FIGURES = {"corollary1": corollary1}
