"""The table `map-convergence`: the numbers of the figure of that name; it makes them itself."""

from rfx.plans.catalogue import alone
from rfx.reporting import convergence
from rfx.reporting.tables import DASH, Section, Table, count

_SHOWN = (16, 64, 256, 1024)


@alone
def map_convergence(rows, setting=None) -> Table:
    """Each map's median error at some numbers of features, and its slope with its noise."""
    convergence.refuse_setting(setting)
    sections, cells = [], []
    for family, members in convergence.measure_all().items():
        lines = []
        for one in members:
            errors = dict(zip(one.sizes.tolist(), one.medians.tolist()))
            shown = [f"{errors[size]:.4f}" if size in errors else DASH for size in _SHOWN]
            lines.append([one.name, one.kernel, *shown, f"{one.slope:.2f} ± {one.noise:.2f}"])
            cells += [{"table": "map-convergence", "family": family, "map": one.name, "kernel": one.kernel, "n_features": size,
                       "error": error, "slope": one.slope, "slope_sd": one.noise} for size, error in errors.items()]  # fmt: skip
        sections.append(Section(family, ["map", "kernel", *(f"D = {count(size)}" for size in _SHOWN), "slope"], lines, 2))
    return Table("map-convergence", "Error of the kernel estimated by random features", sections, list(convergence.NOTES), cells)


TABLES = {"map-convergence": map_convergence}
