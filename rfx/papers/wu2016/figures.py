"""Figures 2 to 6 of Wu et al. 2016 (random binning features), Theorem 1 against kappa R, and the
predicted speed-up: ours solid with filled marks, the authors' dashed and hollow.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rfx.features.binning import sample_grids
from rfx.papers.wu2016 import curves as wu2016
from rfx.papers.wu2016 import theory
from rfx.reporting import style
from rfx.reporting.builders import Builder, needed
from rfx.reporting.charts import Chart, Curve, Panel, in_lines, level, upright

# Figure 2 as printed: rows, grids, bins. sigma is not printed; 6.8 results in about the same number
# of bins for rows drawn uniformly from the unit square.
_ROWS, _GRIDS, _BINS, _GAMMA = 200, 10, 395, 6.8
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class _Column:
    """A column of panels of a sweep: its quantities, the axis label, and whether the axis is
    logarithmic.
    """

    names: tuple[str, ...]
    label: str
    log: bool = True


_SWEPT = (
    _Column(("test", "train"), "", False),
    _Column(("seconds",), "training, seconds"),
    _Column(("bins",), "bins D (training rows)"),
)


def figure3(rows, setting) -> Chart:
    """Test and training performance, training seconds and bins over 1/sigma, a line of panels per
    data set.
    """
    title = "Wu et al. 2016, Figure 3: random binning (rb) while sigma varies, R = 128"
    panels = _sweep(rows, "fig3", setting, "1/sigma of exp(-||x - y||$_1$ / sigma)", _SWEPT)
    return _chart(
        title,
        setting,
        panels,
        [row for row in wu2016.of_figure(rows, "fig3", setting) if row["status"] == "ok"],
    )


def figure4(rows, setting) -> Chart:
    """The same over R at one sigma, with kappa = D/R."""
    title = "Wu et al. 2016, Figure 4: random binning (rb) while R varies, sigma fixed"
    panels = _sweep(
        rows, "fig4", setting, "grids R", (*_SWEPT, _Column(("kappa",), "kappa = D / R", False))
    )
    return _chart(
        title,
        setting,
        panels,
        [row for row in wu2016.of_figure(rows, "fig4", setting) if row["status"] == "ok"],
    )


def _sweep(rows, name, setting, axis_label, columns) -> list[list[Panel | None]]:
    """A line of panels for each data set with rows."""
    swept = [curve for curve in wu2016.sweep(rows, name, setting) if curve.ours]
    drawn = needed(swept, f"wu2016-{name}")
    exact = {
        curve.dataset: curve.authors.get(0)
        for curve in wu2016.comparison([], setting)
        if curve.method == "kernel"
    }
    lines = []
    for curve in drawn:
        line: list[Panel | None] = []
        for column in columns:
            own = _swept(curve, name, column, exact.get(curve.dataset) or {})
            heads = (
                axis_label if curve is drawn[-1] else "",
                column.label or wu2016.metric(curve.dataset),
            )
            line.append(
                Panel("" if line else _title(curve, name), *heads, own, dress=_dress(name, column))
            )
        lines.append(line)
    return lines


def _title(curve, name) -> str:
    gammas = wu2016.span([gamma for point in curve.ours.values() for gamma in point["gammas"]])
    return wu2016.heading(curve.dataset) + ("" if name == "fig3" else f"; 1/sigma = {gammas}")


def _swept(curve, name, column, exact) -> list[Curve]:
    """The curves of one panel of a sweep; exact: the authors' exact kernel."""
    found: list[Curve] = []
    for quantity in column.names:
        look = quantity if style.known(quantity) else ""
        found += _both(
            curve,
            quantity,
            style.identifier(name, curve.dataset, quantity),
            look,
            look or "seconds, bins, kappa",
        )
    if "test" in column.names:
        found += _best(curve)
        if exact:
            gid = style.identifier(name, curve.dataset, "exact", "authors")
            found.append(
                level(
                    exact["test"],
                    "test, authors' exact kernel",
                    gid,
                    color="black",
                    linewidth=0.9,
                    linestyle=":",
                )
            )
    return found


def _dress(name, column):
    """The axes of a sweep: over gamma, or over R in powers of two. A panel of bins at one R also
    has an axis for kappa.
    """

    def dress(axes):
        _scale(axes, "log" if name == "fig3" else "R", column.log)
        if name == "fig3" and "bins" in column.names:
            right = axes.secondary_yaxis(
                "right", functions=(lambda bins: bins / 128, lambda kappa: kappa * 128)
            )
            right.set_ylabel("kappa = D / R")
            style.plain_ticks(right.yaxis)
        if "kappa" in column.names:
            axes.set_ylim(bottom=0)

    return dress


def figure5(rows, setting) -> Chart:
    """Test performance and training seconds over R, and seconds and memory over test
    performance, of all methods.
    """
    by_data: dict[str, list[wu2016.Curve]] = {}
    found = wu2016.comparison(rows, setting)
    present = {curve.dataset for curve in found if curve.ours}
    for curve in found:
        if curve.dataset in present:
            by_data.setdefault(curve.dataset, []).append(curve)
    panels = [_compared(*item) for item in needed(by_data, "wu2016-fig5").items()]
    used = [row for row in wu2016.of_figure(rows, "fig5", setting) if row["status"] == "ok"]
    title = "Wu et al. 2016, Figure 5: random binning beside other approximations of the kernel"
    loading = (
        "Seconds of ours are of a new process, which first loads its compiled code (some tenths of"
        " a second)."
    )
    return _chart(title, setting, panels, used, [f"Memory: {wu2016.MEMORY}", loading])


def _compared(dataset, own) -> list[Panel | None]:
    """The panels of one data set of figure 5."""
    metric = wu2016.metric(dataset)
    line: list[Panel | None] = []
    for quantity, label in (("test", f"test {metric}"), ("seconds", "training, seconds")):
        drawn: list[Curve] = []
        for curve in own:
            words, gid = (
                wu2016.METHODS[curve.method],
                style.identifier("fig5", dataset, curve.method, quantity),
            )
            if curve.method == "kernel":
                drawn += _level(curve, quantity, gid, words)
            else:
                drawn += _both(curve, quantity, gid, curve.method, words, _SIZES[-1])
        heading = "" if line else wu2016.heading(dataset)
        line.append(
            Panel(
                heading,
                "R",
                label,
                drawn,
                dress=partial(_scale, kind="R", log=quantity == "seconds"),
            )
        )
    wanted = next((wu2016.target(curve) for curve in own if curve.method == "rb"), None)
    for quantity, label in (("seconds", "training, seconds"), ("memory", "memory, MiB")):
        drawn = []
        for curve in own:
            gid = style.identifier("fig5", dataset, curve.method, quantity, "by-test")
            drawn += _cost(curve, quantity, gid, wu2016.METHODS[curve.method])
        if wanted is not None:
            gid = style.identifier("fig5", dataset, "target")
            drawn.append(
                upright(
                    wanted,
                    "the authors' rb at R = 128",
                    gid,
                    color="0.5",
                    linewidth=0.8,
                    linestyle=":",
                )
            )
        line.append(
            Panel(
                "",
                f"test {metric}, better to the right",
                label,
                drawn,
                dress=partial(_by_test, dataset=dataset),
            )
        )
    return line


def _by_test(axes, dataset) -> None:
    style.log_values(axes)
    if dataset in wu2016.REGRESSION:
        axes.invert_xaxis()


def figure6(rows) -> Chart:
    """Speed-up of parallel randomised coordinate descent over threads; the authors' numbers are not
    published.
    """
    drawn: dict[str, list[wu2016.Curve]] = {}
    for curve in wu2016.speedups(rows):
        if any(point["speedup"] for point in curve.ours.values()):
            drawn.setdefault(curve.dataset, []).append(curve)
    needed(drawn, "wu2016-fig6")
    panels = in_lines([_sped(dataset, own) for dataset, own in drawn.items()], min(4, len(drawn)))
    used = [row for row in wu2016.of_figure(rows, "fig6") if row["status"] == "ok"]
    title = "Wu et al. 2016, Figure 6: speed-up of parallel coordinate descent (L1); ours only"
    remark = (
        "Marks: medians over the seeds, bars: their range. Seconds of the passes to the same"
        " relative duality gap."
    )
    return _chart(title, None, panels, used, [remark], 2.6)


def _sped(dataset, own) -> Panel:
    """The speed-ups on one data set."""
    threads = sorted({place for curve in own for place in curve.ours})
    names = {"sparse-rb": "random binning (sparse-rb)", "sparse-rf": "random Fourier (sparse-rf)"}
    curves = [
        Curve(
            threads,
            threads,
            {"color": "0.6", "linewidth": 0.9, "linestyle": ":"},
            "as many times as threads",
        )
    ]
    curves += [
        speedup_curve(
            curve,
            style.look(curve.method),
            names[curve.method],
            style.identifier("fig6", dataset, curve.method, "ours"),
        )
        for curve in own
    ]

    def dress(axes):
        axes.set_xticks(threads, [f"{place:g}" for place in threads])
        axes.set_ylim(bottom=0)

    kappas = [
        f"kappa {point['kappa']:,.0f}"
        for curve in own
        for point in list(curve.ours.values())[:1]
        if point["kappa"]
    ]
    title = "; ".join([dataset + (" (subset)" if wu2016.DATA[dataset] else ""), *kappas])
    return Panel(title, "threads", "speed-up", curves, dress=dress)


def speedup_curve(curve, look, label, gid) -> Curve:
    """The median speed-ups over the seeds, with their range as bars."""
    places, values = curve.series("ours", "speedup")
    around = {place: (curve.ours[place]["low"], curve.ours[place]["high"]) for place in places}
    return Curve(places, values, look, label, gid, around, "bars")


# ------------------------------------------------------------------------------------------- curves


def _both(curve, quantity, gid, look, words, last=math.inf) -> Iterable[Curve]:
    """The authors' and our curve of one quantity, ours with its standard deviation over the seeds,
    up to the place `last`.
    """
    around = {
        place: (low, high) for place, low, high in zip(*curve.band(quantity)) if place <= last
    }
    for whose in ("authors", "ours"):
        points = [
            (place, value) for place, value in zip(*curve.series(whose, quantity)) if place <= last
        ]
        if points:
            xs, ys = zip(*points)
            band = around if whose == "ours" else {}
            yield Curve(
                xs, ys, style.look(look, whose), style.label(words, whose), f"{gid}-{whose}", band
            )
    # a cross over each of our points whose solver did not converge
    unsolved = [
        place
        for place, point in curve.ours.items()
        if point["converged"] is False and point.get(quantity) is not None
    ]
    places = [place for place in unsolved if place <= last]
    if places and quantity in ("test", "train"):
        cross = {"linestyle": "", "marker": "x", "markersize": 4.5, "color": "0.25", "zorder": 3}
        yield Curve(
            places, [curve.ours[place][quantity] for place in places], cross, "ours, not converged"
        )


def _best(curve) -> Iterable[Curve]:
    """A square around our best test performance."""
    places, values = curve.series("ours", "test")
    if places:
        best = values.index((min if curve.dataset in wu2016.REGRESSION else max)(values))
        look = {
            "linestyle": "",
            "marker": "s",
            "markersize": 8,
            "markerfacecolor": "none",
            "color": style.look("test")["color"],
        }
        yield Curve([places[best]], [values[best]], look, "best test, ours")


def _level(curve, quantity, gid, words) -> Iterable[Curve]:
    """The exact kernel has no R: a horizontal line."""
    for whose, dashes in (("authors", "--"), ("ours", "-")):
        _, values = curve.series(whose, quantity)
        if values:
            look = {
                "color": "black",
                "linestyle": dashes,
                "linewidth": 1.0,
                "alpha": 0.65 if whose == "authors" else 1.0,
            }
            yield level(values[0], style.label(words, whose), f"{gid}-{whose}", **look)


def _cost(curve, quantity, gid, words) -> Iterable[Curve]:
    """A quantity against the test performance reached, along increasing R."""
    for whose in ("authors", "ours"):
        places, values = curve.series(whose, quantity)
        known = [
            (getattr(curve, whose)[place].get("test"), value)
            for place, value in zip(places, values)
        ]
        known = [pair for pair in known if pair[0] is not None]
        if known:
            xs, ys = zip(*known)
            look = style.look(curve.method, whose) | (
                {"markersize": 7} if curve.method == "kernel" else {}
            )
            yield Curve(xs, ys, look, style.label(words, whose), f"{gid}-{whose}")


def _scale(axes, kind, log):
    """The axes of a sweep: over gamma ("log") or over R, in powers of two."""
    if kind == "R":
        style.sizes_axis(axes, _SIZES)
    else:
        style.log_scale(axes, "x")
        style.plain_ticks(axes.xaxis)
    if log:
        style.log_values(axes)


def _chart(title, setting, panels, rows, remarks=(), height=2.1) -> Chart:
    """The chart with the notes common to all figures."""
    notes = [] if setting is None else [f"Setting {setting}: {wu2016.SETTINGS[setting]}"]
    notes.append(f"lambda: {wu2016.lambdas(rows, by_method=setting is None)}.")
    runs = len({row["seed"] for row in rows})
    if setting is not None and runs > 1:
        notes.append(f"Ours: means over up to {runs} seeds, bands: their standard deviation.")
    if setting is not None:
        letter = any(row["dataset"] == "letter" for row in rows)
        notes.append(
            "Authors': their plot data, lambda 0.01, 16 cores at 2.93 GHz"
            + ("; their letter lacks its Z." if letter else ".")
        )
    title = title if setting is None else f"{title}; setting: {setting}"
    return Chart(
        title, [*notes, *remarks, style.machines(rows, threads=setting is not None)], panels, height
    )


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
            _excess(
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


def _excess(name, penalty, own) -> Panel:
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
    needed(drawn, "wu2016-fig6", "rows with one thread and with several")
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
    "fig3": Builder("wu2016-fig3", figure3, wu2016.settings("fig3")),
    "fig4": Builder("wu2016-fig4", figure4, wu2016.settings("fig4")),
    "fig5": Builder("wu2016-fig5", figure5, wu2016.settings("fig5")),
    "fig6": Builder("wu2016-fig6", figure6),
}
