"""Figure 2 of Wu et al. 2016 (a grid and its features), Theorem 1 against kappa R, and the
predicted speed-up compared with Figure 6.
"""

import numpy as np

from rfx.errors import DataError
from rfx.features.binning import sample_grids
from rfx.papers.wu2016 import curves as wu2016
from rfx.papers.wu2016 import theory
from rfx.papers.wu2016.figures import speedup_curve
from rfx.reporting import style
from rfx.reporting.builders import Builder
from rfx.reporting.charts import Chart, Curve, Panel, upright

# Figure 2 as printed: rows, grids, bins. sigma is not printed; 6.8 results in about the same number
# of bins for rows drawn uniformly from the unit square.
_ROWS, _GRIDS, _BINS, _GAMMA = 200, 10, 395, 6.8


def figure2(rows) -> Chart:
    """A grid over rows in the plane, each bin with its own colour, and the feature matrix Z of ten
    such grids.
    """
    X = np.random.default_rng(0).random((_ROWS, 2))
    grids = sample_grids("laplacian", 2, _GRIDS, 0, gamma=_GAMMA)
    ids, bins = grids.number(X)
    total = bins.starts[-1]
    notes = [
        f"{_ROWS} rows from the unit square, R = {_GRIDS} grids, 1/sigma = {_GAMMA:g}, kappa = D/R"
        f" = {total / _GRIDS:.1f}. Printed: N = {_ROWS}, R = {_GRIDS}, D = {_BINS},"
        f" {_ROWS * _GRIDS:,} non-zeros; its rows and sigma are not; this sigma is ours, for about"
        " as many bins."
    ]
    title = "Wu et al. 2016, Figure 2: the sparse feature matrix of random binning"
    return Chart(
        title, notes, [[_place(X, grids, ids, bins), _matrix(ids, bins)]], 3.4, legend=False
    )


def _place(X, grids, ids, bins) -> Panel:
    """One grid over the rows in the plane, the one with the median number of bins."""
    counts = np.diff(bins.starts)
    shown = int(np.argsort(counts)[_GRIDS // 2])
    edges = []
    for axis in (0, 1):
        width, offset = grids.widths[shown, axis], grids.offsets[shown, axis]
        for edge in range(int(np.floor(-offset / width)), int(np.ceil((1 - offset) / width)) + 1):
            at, look = offset + edge * width, {"color": "0.5", "linewidth": 0.7}
            edges.append(
                Curve((), (at,), look, kind="level")
                if axis
                else Curve((at,), (), look, kind="upright")
            )
    # neighbouring numbers have very different colours
    look = {"c": (ids[shown].astype(np.int64) * 7) % 20, "cmap": "tab20", "s": 9, "zorder": 3}
    spots = Curve(X[:, 0], X[:, 1], look, gid="fig2-rows", kind="spots")

    def dress(axes):
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_aspect("equal")
        axes.grid(visible=False)

    return Panel(
        f"one grid: {counts[shown]} bins with rows", "x$_1$", "x$_2$", [*edges, spots], dress=dress
    )


def _matrix(ids, bins) -> Panel:
    """The nonzeros of the feature matrix of all grids."""
    total = bins.starts[-1]
    look = {"linestyle": "", "marker": ".", "markersize": 1.2, "color": "#0072B2"}
    columns = (ids + bins.starts[:-1, None]).ravel()
    entries = Curve(columns, np.tile(np.arange(_ROWS), _GRIDS), look, gid="fig2-z")
    borders = [
        upright(start - 0.5, color="0.8", linewidth=0.5, zorder=0) for start in bins.starts[1:-1]
    ]

    def dress(axes):
        axes.set_xlim(-0.5, total - 0.5)
        axes.set_ylim(_ROWS - 0.5, -0.5)
        axes.grid(visible=False)

    title = f"Z: {_ROWS} x {total}, {ids.size:,} non-zeros"
    return Panel(title, "bins, grid after grid", "rows", [entries, *borders], dress=dress)


def theorem1(rows) -> Chart:
    """Panels for L1 and L2, a line per data set: the objective's distance above its limit, in units
    of beta ||w*||^2.
    """
    found = theory.cases(rows)
    names = dict.fromkeys(case.dataset for case in found)
    panels = [
        [
            _panel(
                name,
                penalty,
                [case for case in found if (case.dataset, case.penalty) == (name, penalty)],
            )
            for penalty in ("L1", "L2")
        ]
        for name in names
    ]
    used = [
        row for row in rows if row["params"].get("label") == theory.LABEL and row["status"] == "ok"
    ]
    title = "Wu et al. 2016, Theorem 1: the objective of random binning against kappa R"
    return Chart(title, [*theory.NOTES, style.machines(used)], panels, 3.0)


def _panel(name, penalty, own) -> Panel:
    """A curve for each gamma, with its slope at the end."""
    curves, slopes = [], []
    for number, case in enumerate(own):
        known = [
            (size * case.kappa, mean / case.scale, sd / case.scale)
            for size, mean, sd in zip(*case.points())
            if mean > 0
        ]
        if not known:
            continue
        places, values, _ = zip(*known)
        around = {place: (max(value - sd, 0.05 * value), value + sd) for place, value, sd in known}
        gid = style.identifier("theorem1", case.dataset, penalty, f"{case.gamma:g}")
        curves.append(
            Curve(
                places,
                values,
                style.numbered(number),
                f"1/sigma = {case.gamma:g}",
                gid,
                around,
                shade=0.15,
            )
        )
        slopes.append((case.slope(), (places[-1], values[-1])))
    products = [place for curve in curves for place in curve.x]
    looks = [curve.look["color"] for curve in curves]
    if penalty == "L1" and products:
        ends = np.array([min(products), max(products)])
        look = {"color": "black", "linestyle": "--", "linewidth": 1.0}
        curves.append(Curve(ends, 2 / ends, look, "2 / (kappa R), the bound's last term for c = 0"))

    def dress(axes):
        for (slope, end), colour in zip(slopes, looks):
            if slope is not None:
                axes.annotate(
                    f"{slope:.2f}",
                    end,
                    xytext=(4, -2),
                    textcoords="offset points",
                    fontsize=7,
                    color=colour,
                )
        style.log_scale(axes, "x")
        style.plain_ticks(axes.xaxis)
        style.log_values(axes)

    return Panel(
        f"{name}, {penalty}",
        "kappa R",
        f"above the limit / beta ||w*||$^2$, {penalty}",
        curves,
        dress=dress,
    )


def speedup(rows) -> Chart:
    """Equation 29 for every data set of Figure 6 over threads, with the measured speed-ups; the
    limit of equation 30 as text.
    """
    sizes = theory.sizes(rows)
    drawn = [
        curve
        for curve in wu2016.speedups(rows)
        if any(point["speedup"] for point in curve.ours.values())
    ]
    drawn = [curve for curve in drawn if (curve.dataset, curve.method) in sizes]
    if not drawn:
        raise DataError(
            "the results file has no finished rows of wu2016-fig6 with one thread and with several;"
            " rfx run wu2016-fig6 makes them"
        )
    most = max(8, *(place for curve in drawn for place in curve.ours))
    threads = list(range(1, int(2 * most) + 1))
    curves = [
        Curve(
            threads,
            threads,
            {"color": "0.6", "linestyle": ":", "linewidth": 0.9},
            "as many times as threads",
        )
    ]
    for number, curve in enumerate(drawn):
        grids, bins = sizes[curve.dataset, curve.method]
        look = style.numbered(number)
        words = f"{curve.dataset}, {curve.method}, kappa {bins / grids:,.0f}"
        ratios = [theory.predicted(count, grids, bins) for count in threads]
        gid = style.identifier("speedup", curve.dataset, curve.method)
        curves.append(
            Curve(
                threads,
                ratios,
                look | {"marker": "", "linestyle": "--"},
                f"{words}: equation 29",
                f"{gid}-predicted",
            )
        )
        curves.append(speedup_curve(curve, look, f"{words}: measured", f"{gid}-ours"))
    used = [row for row in wu2016.of_figure(rows, "fig6") if row["status"] == "ok"]
    title = "Wu et al. 2016, equations 29 and 30: predicted and measured speed-up"
    panel = Panel("", "threads", "speed-up", curves, dress=_log_both)
    return Chart(title, [*theory.SPEEDUP_NOTES, style.machines(used)], [[panel]], 4.2)


def _log_both(axes) -> None:
    style.log_scale(axes, "x", 2)
    style.log_scale(axes, "y", 2)
    for axis in (axes.xaxis, axes.yaxis):
        style.plain_ticks(axis)


FIGURES = {
    "fig2": Builder("wu2016-fig2", figure2, alone=True),
    "theorem1": Builder("wu2016-theorem1", theorem1),
    "speedup": Builder("wu2016-speedup", speedup, plan="fig6"),
}
