"""Figure 2 of Wu et al. 2016 (a grid and its features), Theorem 1 against kappa R, and the predicted speed-up beside Figure 6's."""

import numpy as np

from rfx.errors import DataError
from rfx.features.binning import sample_grids
from rfx.papers.wu2016 import curves as wu2016
from rfx.papers.wu2016 import theory
from rfx.plans.catalogue import alone, of_plan
from rfx.reporting import style

# Figure 2 as printed: rows, grids, bins; sigma is not. 6.8 gives about as many bins for rows drawn uniformly from the unit square.
_ROWS, _GRIDS, _BINS, _GAMMA = 200, 10, 395, 6.8


@alone
def figure2(rows, setting=None):
    """A grid over rows in the plane, each bin with a colour of its own, and the feature matrix Z of ten such grids."""
    wu2016.refuse_setting("fig2", setting)
    X = np.random.default_rng(0).random((_ROWS, 2))
    grids = sample_grids("laplacian", 2, _GRIDS, 0, gamma=_GAMMA)
    ids, bins = grids.number(X)
    figure, (line,) = style.grid(1, 2, 3.4)
    place, matrix = line
    counts = np.diff(bins.starts)
    shown = int(np.argsort(counts)[_GRIDS // 2])
    for axis, draw in enumerate((place.axvline, place.axhline)):
        width, offset = grids.widths[shown, axis], grids.offsets[shown, axis]
        for edge in range(int(np.floor(-offset / width)), int(np.ceil((1 - offset) / width)) + 1):
            draw(offset + edge * width, color="0.5", linewidth=0.7)
    # neighbouring numbers far apart in colour
    place.scatter(X[:, 0], X[:, 1], c=(ids[shown].astype(np.int64) * 7) % 20, cmap="tab20", s=9, gid="fig2-rows", zorder=3)
    place.set_xlim(0, 1)
    place.set_ylim(0, 1)
    place.set_aspect("equal")
    place.grid(visible=False)
    place.set_xlabel("x$_1$")
    place.set_ylabel("x$_2$")
    style.head(place, f"one grid: {counts[shown]} bins with rows")
    columns = (ids + bins.starts[:-1, None]).ravel()
    matrix.plot(columns, np.tile(np.arange(_ROWS), _GRIDS), linestyle="", marker=".", markersize=1.2, color="#0072B2", gid="fig2-z")
    for start in bins.starts[1:-1]:
        matrix.axvline(start - 0.5, color="0.8", linewidth=0.5, zorder=0)
    matrix.set_xlim(-0.5, bins.starts[-1] - 0.5)
    matrix.set_ylim(_ROWS - 0.5, -0.5)
    matrix.grid(visible=False)
    matrix.set_xlabel("bins, grid after grid")
    matrix.set_ylabel("rows")
    style.head(matrix, f"Z: {_ROWS} x {bins.starts[-1]}, {ids.size:,} non-zeros")
    notes = [
        f"{_ROWS} rows from the unit square, R = {_GRIDS} grids, 1/sigma = {_GAMMA:g}, kappa = D/R = {bins.starts[-1] / _GRIDS:.1f}. "
        f"Printed: N = {_ROWS}, R = {_GRIDS}, D = {_BINS}, {_ROWS * _GRIDS:,} non-zeros; its rows and sigma are not; this sigma "
        "is ours, for about as many bins."
    ]
    style.finish(figure, "Wu et al. 2016, Figure 2: the sparse feature matrix of random binning", notes, legend=False)
    return figure


def theorem1(rows, setting=None):
    """Panels for L1 and L2, a line a data set: what the objective has above its limit, in units of beta ||w*||^2."""
    found = theory.cases(rows, setting)
    names = list(dict.fromkeys(case.dataset for case in found))
    figure, grid = style.grid(len(names), 2, 3.0)
    for line, name in zip(grid, names):
        for axes, penalty in zip(line, ("L1", "L2")):
            _panel(axes, [case for case in found if (case.dataset, case.penalty) == (name, penalty)], penalty)
            style.head(axes, f"{name}, {penalty}")
    used = [row for row in rows if row["params"].get("label") == theory.LABEL and row["status"] == "ok"]
    title = "Wu et al. 2016, Theorem 1: the objective of random binning against kappa R"
    style.finish(figure, title, [*theory.NOTES, style.machines(used)])
    return figure


def _panel(axes, own, penalty):
    products = []
    for number, case in enumerate(own):
        sizes, means, deviations = case.points()
        slope = case.slope()
        known = [(size * case.kappa, mean / case.scale, sd / case.scale) for size, mean, sd in zip(sizes, means, deviations) if mean > 0]
        if not known:
            continue
        products += [product for product, *_ in known]
        look = style.numbered(number)
        label = f"1/sigma = {case.gamma:g}"
        places, values, spreads = zip(*known)
        gid = style.identifier("theorem1", case.dataset, penalty, f"{case.gamma:g}")
        axes.plot(places, values, label=label, gid=gid, **look)
        low = [max(value - spread, 0.05 * value) for value, spread in zip(values, spreads)]
        axes.fill_between(
            places, low, [value + spread for value, spread in zip(values, spreads)], color=look["color"], alpha=0.15, linewidth=0
        )
        if slope is not None:
            axes.annotate(
                f"{slope:.2f}", (places[-1], values[-1]), xytext=(4, -2), textcoords="offset points", fontsize=7, color=look["color"]
            )
    if penalty == "L1" and products:
        ends = np.array([min(products), max(products)])
        axes.plot(ends, 2 / ends, color="black", linestyle="--", linewidth=1.0, label="2 / (kappa R), the bound's last term for c = 0")
    style.log_scale(axes, "x")
    style.plain_ticks(axes.xaxis)
    style.log_values(axes)
    axes.set_xlabel("kappa R")
    axes.set_ylabel(f"above the limit / beta ||w*||$^2$, {penalty}")


@of_plan("fig6")
def speedup(rows, setting=None):
    """Equation 29 for every data set of Figure 6 over threads, and the measured speed-ups on it; equation 30's limit as text."""
    wu2016.refuse_setting("speedup", setting)
    sizes = theory.sizes(rows)
    drawn = [curve for curve in wu2016.speedups(rows) if any(point["speedup"] for point in curve.ours.values())]
    drawn = [curve for curve in drawn if (curve.dataset, curve.method) in sizes]
    if not drawn:
        raise DataError(
            "the results file has no finished rows of wu2016-fig6 with one thread and with several; rfx run wu2016-fig6 makes them"
        )
    figure, ((axes,),) = style.grid(1, 1, 4.2)
    most = max(8, *(place for curve in drawn for place in curve.ours))
    threads = np.arange(1, int(2 * most) + 1)
    axes.plot(threads, threads, color="0.6", linestyle=":", linewidth=0.9, label="as many times as threads")
    for number, curve in enumerate(drawn):
        grids, bins = sizes[curve.dataset, curve.method]
        look = style.numbered(number)
        ratios = [theory.predicted(count, grids, bins) for count in threads]
        words = f"{curve.dataset}, {curve.method}, kappa {bins / grids:,.0f}"
        axes.plot(threads, ratios, label=f"{words}: equation 29", gid=style.identifier("speedup", curve.dataset, curve.method, "predicted"),
                  **look | {"marker": "", "linestyle": "--"})  # fmt: skip
        places, values = curve.series("ours", "speedup")
        ranges = [[max(0.0, value - curve.ours[place]["low"]) for place, value in zip(places, values)],
                  [max(0.0, curve.ours[place]["high"] - value) for place, value in zip(places, values)]]  # fmt: skip
        bars = axes.errorbar(places, values, yerr=ranges, capsize=3, label=f"{words}: measured", **look | {"linestyle": "-"})
        bars.lines[0].set_gid(style.identifier("speedup", curve.dataset, curve.method, "ours"))
    style.log_scale(axes, "x", 2)
    style.log_scale(axes, "y", 2)
    for axis in (axes.xaxis, axes.yaxis):
        style.plain_ticks(axis)
    axes.set_xlabel("threads")
    axes.set_ylabel("speed-up")
    used = [row for row in wu2016.of_figure(rows, "fig6") if row["status"] == "ok"]
    style.finish(
        figure, "Wu et al. 2016, equations 29 and 30: predicted and measured speed-up", [*theory.SPEEDUP_NOTES, style.machines(used)]
    )
    return figure


FIGURES = {"fig2": figure2, "theorem1": theorem1, "speedup": speedup}
