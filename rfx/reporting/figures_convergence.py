"""The figure `map-convergence`: kernel error against the number of features, of every map; it makes its own numbers."""

from rfx.plans.catalogue import alone
from rfx.reporting import convergence, style


@alone
def map_convergence(rows, setting=None):
    """A panel for each family of maps: the median error over the seeds, the range over them as a band, the slope in the legend."""
    convergence.refuse_setting(setting)
    found = convergence.measure_all()
    figure, grid = style.grid(2, 2, height=3.6)
    for axes, (family, members) in zip([axes for line in grid for axes in line], found.items()):
        for number, one in enumerate(members):
            look = style.numbered(number)
            axes.fill_between(one.sizes, one.errors.min(axis=1), one.errors.max(axis=1), color=look["color"], alpha=0.12, linewidth=0)
            axes.plot(
                one.sizes, one.medians, label=f"{one.name}: {one.slope:.2f}", gid=style.identifier("map-convergence", one.name), **look
            )
        first = max(members, key=lambda one: one.medians[0])
        sizes = first.sizes[[0, -1]]
        axes.plot(sizes, first.medians[0] * (sizes / sizes[0]) ** -0.5, color="0.5", linestyle=":", linewidth=0.9, label="slope -1/2")
        style.sizes_axis(axes, convergence.SIZES)
        style.log_values(axes)
        axes.set_xlabel("features D (grids, landmarks)")
        axes.set_ylabel("relative error of the kernel")
        axes.legend(loc="lower left", frameon=False, fontsize=6.5)
        style.head(axes, family)
    title = "Error of the kernel that random features estimate, and its slope"
    style.finish(figure, title, convergence.NOTES, legend=False)
    return figure


FIGURES = {"map-convergence": map_convergence}
