"""Figures 2 to 6 of Wu et al. 2016 (random binning features), Theorem 1 against kappa R, and the
predicted speed-up: ours solid with filled marks, the authors' dashed and hollow.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter

import numpy as np

from rfx.features.binning import sample_grids
from rfx.papers.wu2016 import curves as wu2016
from rfx.reporting import style
from rfx.reporting.cells import Builder, good, grouped_by, labelled, needed
from rfx.reporting.figures import (
    Chart,
    Curve,
    Panel,
    in_lines,
    level,
    mean_curve,
    positive_curve,
    through,
    upright,
)

# Figure 2 as printed: rows, grids, bins. sigma is not printed; 6.8 results in about the same number
# of bins for rows drawn uniformly from the unit square.
_ROWS, _GRIDS, _BINS, _GAMMA = 200, 10, 395, 6.8
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
# The columns of panels of Figures 3 and 4: quantities, label of the axis, and whether the axis is
# logarithmic.
_SWEPT = (
    (("test", "train"), "", False),
    (("seconds",), "training, seconds", True),
    (("bins",), "bins D (training rows)", True),
)
_KAPPA = (("kappa",), "kappa = D / R", False)
_TARGET: style.Look = {"color": "0.5", "linewidth": 0.8, "linestyle": ":"}
_EDGE: style.Look = {"color": "0.5", "linewidth": 0.7}
_BORDER: style.Look = {"color": "0.8", "linewidth": 0.5, "zorder": 0}
_DOTTED: style.Look = {"color": "0.6", "linewidth": 0.9, "linestyle": ":"}
_METHODS = {"sparse-rb": "random binning (sparse-rb)", "sparse-rf": "random Fourier (sparse-rf)"}


def sweep(name, title, x_axis, columns, rows, setting) -> Chart:
    """Figures 3 and 4: test and training performance, training seconds and bins over 1/sigma or R,
    a line of panels per data set with rows.
    """
    found = [curve for curve in wu2016.compared(rows, name, setting) if curve.ours]
    exact = {
        curve.dataset: curve.authors[0]["test"]
        for curve in wu2016.compared([], "fig5", setting)
        if 0 in curve.authors
    }
    panels = []
    for curve in needed(found, f"wu2016-{name}"):
        x_label = x_axis if curve is found[-1] else ""
        of_exact = exact.get(curve.dataset)
        panels.append(_line_of_sweep(name, curve, columns, x_label, of_exact))
    return _chart(name, title, panels, rows, setting)


def _line_of_sweep(name, curve, columns, x_label, exact) -> list[Panel]:
    """The panels of one data set in a sweep; the first has the title."""
    title = wu2016.heading(curve.dataset)
    if name != "fig3":
        title += _gammas(curve)
    panels: list[Panel] = []
    for quantities, label, log in columns:
        drawn = list(_swept(curve, name, quantities, exact))
        dress = partial(_dress, name=name, quantities=quantities, log=log)
        y_label = label or wu2016.metric(curve.dataset)
        panels.append(Panel("" if panels else title, x_label, y_label, drawn, dress=dress))
    return panels


def _gammas(curve) -> str:
    return f"; 1/sigma = {wu2016.span(curve.ends('gamma'), '{:.3g}'.format)}"


def _dress(axes, name, quantities, log) -> None:
    """The axes of a sweep. A panel of bins at one R also has an axis for kappa."""
    _scale(axes, name != "fig3", log)
    if name == "fig3" and "bins" in quantities:
        right = axes.secondary_yaxis("right", functions=(_kappa_of_bins, _bins_of_kappa))
        right.set_ylabel("kappa = D / R")
        style.plain_ticks(right.yaxis)
    if "kappa" in quantities:
        axes.set_ylim(bottom=0)


def _kappa_of_bins(bins):
    return bins / 128


def _bins_of_kappa(kappa):
    return kappa * 128


def _swept(curve, name, quantities, exact) -> Iterator[Curve]:
    """The curves of one panel of a sweep; exact: test performance of the authors' exact kernel."""
    for quantity in quantities:
        look = quantity if quantity in ("test", "train") else ""
        gid = style.identifier(name, curve.dataset, quantity)
        yield from _both(curve, quantity, gid, look, look or "seconds, bins, kappa")
    tests = curve.series("ours", "test")
    if "test" in quantities and tests:
        best = (min if curve.dataset in wu2016.REGRESSION else max)(tests, key=tests.__getitem__)
        square = {"linestyle": "", "marker": "s", "markersize": 8, "markerfacecolor": "none"}
        look = square | {"color": style.colour(style.look("test"))}
        yield Curve([best], [tests[best]], look, "best test, ours")
    if "test" in quantities and exact:
        gid = style.identifier(name, curve.dataset, "exact", "authors")
        yield level(exact, _DOTTED | {"color": "black"}, "test, authors' exact kernel", gid)


def _scale(axes, by_size, log) -> None:
    """The axes of a sweep over R, in powers of two, or over gamma."""
    if by_size:
        axes.set_xscale("log", base=2)
        axes.set_xticks(_SIZES, [str(size) for size in _SIZES], rotation=45)
    else:
        style.log_places(axes)
    if log:
        style.log_values(axes)


def figure5(rows, setting) -> Chart:
    """Test performance and training seconds over R, and seconds and memory over test
    performance, of all methods.
    """
    found = wu2016.compared(rows, "fig5", setting)
    by_data = grouped_by(found, "dataset")
    present = {name: own for name, own in by_data.items() if any(map(attrgetter("ours"), own))}
    needed(present, "wu2016-fig5")
    panels = [_compared(dataset, own) for dataset, own in present.items()]
    title = "Wu et al. 2016, Figure 5: random binning beside other approximations of the kernel"
    return _chart("fig5", title, panels, rows, setting, [f"Memory: {wu2016.MEMORY}", _COMPILED])


_COMPILED = (
    "Seconds of ours are of a new process, which first loads its compiled code (some tenths of a"
    " second)."
)


def _compared(dataset, curves) -> list[Panel | None]:
    """The panels of one data set of figure 5."""
    metric, gid = wu2016.metric(dataset), partial(style.identifier, "fig5", dataset)
    wanted = next((wu2016.target(curve) for curve in curves if curve.method == "rb"), None)
    line: list[Panel | None] = []
    for quantity, label in (("test", f"test {metric}"), ("seconds", "training, seconds")):
        drawn: list[Curve] = []
        for curve in curves:
            drawn += _over_size(curve, quantity, gid(curve.method, quantity))
        dress = partial(_scale, by_size=True, log=quantity == "seconds")
        line.append(Panel("" if line else wu2016.heading(dataset), "R", label, drawn, dress=dress))

    def dress_by_test(axes) -> None:
        style.log_values(axes)
        if dataset in wu2016.REGRESSION:
            axes.invert_xaxis()

    for quantity, label in (("seconds", "training, seconds"), ("memory", "memory, MiB")):
        drawn = []
        for curve in curves:
            drawn += _cost(curve, quantity, gid(curve.method, quantity, "by-test"))
        if wanted is not None:
            drawn.append(upright(wanted, _TARGET, "the authors' rb at R = 128", gid("target")))
        x_axis = f"test {metric}, better to the right"
        line.append(Panel("", x_axis, label, drawn, dress=dress_by_test))
    return line


def _both(curve, quantity, gid, look, words, last=math.inf) -> Iterator[Curve]:
    """The authors' and our curve of one quantity, ours with its standard deviation over the seeds,
    up to the place `last`; a cross over each of our points whose solver did not converge.
    """
    authors = _up_to(last, curve.series("authors", quantity))
    ours = _up_to(last, curve.means(quantity))
    if authors:
        faint, text = style.look(look, "authors"), style.label(words, "authors")
        yield through(authors, faint, text, f"{gid}-authors")
    if ours:
        yield mean_curve(ours, style.look(look), style.label(words, "ours"), f"{gid}-ours")
    unsolved = {
        place: mean.value for place, mean in ours.items() if curve.converged(place) is False
    }
    if unsolved and quantity in ("test", "train"):
        cross = {"linestyle": "", "marker": "x", "markersize": 4.5, "color": "0.25", "zorder": 3}
        yield through(unsolved, cross, "ours, not converged")


def _up_to(last: float, series: Mapping) -> dict:
    return {place: value for place, value in series.items() if place <= last}


def _over_size(curve, quantity, gid) -> Iterator[Curve]:
    """A quantity over R. The exact kernel has no R: a horizontal line."""
    if curve.method != "kernel":
        words = wu2016.METHODS[curve.method]
        yield from _both(curve, quantity, gid, curve.method, words, _SIZES[-1])
        return
    for whose, dashes, alpha in (("authors", "--", 0.65), ("ours", "-", 1.0)):
        look: style.Look = {"color": "black", "linestyle": dashes}
        look |= {"linewidth": 1.0, "alpha": alpha}
        words = style.label(wu2016.METHODS["kernel"], whose)
        for value in list(curve.series(whose, quantity).values())[:1]:
            yield level(value, look, words, f"{gid}-{whose}")


def _cost(curve, quantity, gid) -> Iterator[Curve]:
    """A quantity against the test performance reached, along increasing R."""
    for whose in ("authors", "ours"):
        tests = curve.series(whose, "test")
        costs = {
            place: value for place, value in curve.series(whose, quantity).items() if place in tests
        }
        look = style.look(curve.method, whose)
        if curve.method == "kernel":
            look = look | {"markersize": 7}
        if costs:
            reached = [tests[place] for place in costs]
            words = style.label(wu2016.METHODS[curve.method], whose)
            yield Curve(reached, [*costs.values()], look, words, f"{gid}-{whose}")


def _chart(
    name: str, title: str, panels: Sequence, rows, setting=None, remarks=(), height=2.1
) -> Chart:
    """The chart with the notes common to all figures."""
    used = good(wu2016.of_figure(rows, name, setting))
    runs = len({row.seed for row in used})
    notes = [f"lambda: {wu2016.lambdas(used, by_method=setting is None)}."]
    if setting is not None:
        title = f"{title}; setting: {setting}"
        notes.insert(0, f"Setting {setting}: {wu2016.SETTINGS[setting]}")
        if runs > 1:
            notes.append(f"Ours: means over up to {runs} seeds, bands: their standard deviation.")
        has_letter = any(row.dataset == "letter" for row in used)
        letter = "; their letter lacks its Z" if has_letter else ""
        notes.append(f"Authors': their plot data, lambda 0.01, 16 cores at 2.93 GHz{letter}.")
    machines = style.machines(used, threads=setting is not None)
    return Chart(title, [*notes, *remarks, machines], panels, height)


# ----------------------------------------------------------------------------------------- speed-up


def _measured(points, look, label, gid) -> Curve:
    """The median speed-ups over the seeds, with their range as bars."""
    known = {one.threads: one.speedup for one in points if one.speedup}
    around: dict[float, tuple[float, float]] = {}
    for threads, mean in known.items():
        around[threads] = mean.low, mean.high
    values = [mean.value for mean in known.values()]
    return Curve([*known], values, look, label, gid, around, "bars")


def _by_case(rows, what="finished rows") -> dict[tuple[str, str], list[wu2016.Timed]]:
    """(data set, method) -> its points, if any has a speed-up."""
    groups = grouped_by(wu2016.timed(rows), "dataset", "method")
    groups = {case: own for case, own in groups.items() if any(map(attrgetter("speedup"), own))}
    return needed(groups, "wu2016-fig6", what)


def figure6(rows) -> Chart:
    """Speed-up of parallel randomised coordinate descent over threads; the authors' numbers are not
    published.
    """
    found = _by_case(rows)
    datasets = dict.fromkeys(dataset for dataset, _ in found)
    panels = [_sped(dataset, found) for dataset in datasets]
    title = "Wu et al. 2016, Figure 6: speed-up of parallel coordinate descent (L1); ours only"
    lines = in_lines(panels, min(4, len(panels)))
    return _chart("fig6", title, lines, rows, None, [_MEDIANS], 2.6)


_MEDIANS = (
    "Marks: medians over the seeds, bars: their range. Seconds of the passes to the same relative"
    " duality gap."
)


def _sped(dataset, found) -> Panel:
    """The speed-ups on one data set."""
    methods = {method: own for (name, method), own in found.items() if name == dataset}
    threads = sorted({one.threads for own in methods.values() for one in own})
    kappas = [f"kappa {own[0].kappa:,.0f}" for own in methods.values() if own[0].kappa]
    gid = partial(style.identifier, "fig6", dataset)

    def dress(axes):
        axes.set_xticks(threads, [f"{place:g}" for place in threads])
        axes.set_ylim(bottom=0)

    curves = [Curve(threads, threads, _DOTTED, "as many times as threads")]
    for method, own in methods.items():
        look, words = style.look(method), _METHODS[method]
        curves.append(_measured(own, look, words, gid(method, "ours")))
    name = f"{dataset} (subset)" if wu2016.DATA[dataset] else dataset
    return Panel("; ".join([name, *kappas]), "threads", "speed-up", curves, dress=dress)


def speedup(rows) -> Chart:
    """Equation 29 for every data set of Figure 6 over threads, with the measured speed-ups; the
    limit of equation 30 as text.
    """
    found = _by_case(rows, "rows with one thread and with several")
    most = max(8, *(one.threads for own in found.values() for one in own))
    threads = list(range(1, 2 * most + 1))
    curves = [Curve(threads, threads, _DOTTED, "as many times as threads")]
    for number, ((dataset, method), own) in enumerate(found.items()):
        grids, bins, look = own[0].grids, own[0].bins, style.numbered(number)
        words = f"{dataset}, {method}, kappa {bins / grids:,.0f}"
        gid = style.identifier("speedup", dataset, method)
        ratios = [wu2016.predicted(count, grids, bins) for count in threads]
        dashed = look | {"marker": "", "linestyle": "--"}
        curves += [
            Curve(threads, ratios, dashed, f"{words}: equation 29", f"{gid}-predicted"),
            _measured(own, look, f"{words}: measured", f"{gid}-ours"),
        ]
    title = "Wu et al. 2016, equations 29 and 30: predicted and measured speed-up"
    machines = style.machines(good(wu2016.of_figure(rows, "fig6")))
    panel = Panel("", "threads", "speed-up", curves, dress=partial(style.log_both, base=2))
    return Chart(title, [*wu2016.SPEEDUP_NOTES, machines], [[panel]], 4.2)


# ----------------------------------------------------------------------------- Figure 2, Theorem 1


def figure2(rows) -> Chart:
    """A grid over rows in the plane, each bin with its own colour, and the feature matrix Z of ten
    such grids.
    """
    X = np.random.default_rng(0).random((_ROWS, 2))
    grids = sample_grids("laplacian", 2, _GRIDS, 0, gamma=_GAMMA)
    ids, bins = grids.number(X)
    kappa = bins.starts[-1] / _GRIDS
    note = (
        f"{_ROWS} rows from the unit square, R = {_GRIDS} grids, 1/sigma = {_GAMMA:g}, kappa = D/R"
        f" = {kappa:.1f}. Printed: N = {_ROWS}, R = {_GRIDS}, D = {_BINS}, {_ROWS * _GRIDS:,}"
        " non-zeros; its rows and sigma are not; this sigma is ours, for about as many bins."
    )
    return Chart(
        title="Wu et al. 2016, Figure 2: the sparse feature matrix of random binning",
        notes=[note],
        panels=[[_place(X, grids, ids, bins), _matrix(ids, bins)]],
        height=3.4,
        legend=False,
    )


def _place(X, grids, ids, bins) -> Panel:
    """One grid over the rows in the plane, the one with the median number of bins."""
    counts = np.diff(bins.starts)
    shown = int(np.argsort(counts)[_GRIDS // 2])
    edges = []
    lines: tuple[Callable[..., Curve], ...] = (upright, level)
    for line, width, offset in zip(lines, grids.widths[shown], grids.offsets[shown]):
        numbers = range(int(np.floor(-offset / width)), int(np.ceil((1 - offset) / width)) + 1)
        edges += [line(offset + edge * width, _EDGE) for edge in numbers]
    # neighbouring numbers have very different colours
    look = {"c": (ids[shown].astype(np.int64) * 7) % 20, "cmap": "tab20", "s": 9, "zorder": 3}
    spots = Curve(X[:, 0], X[:, 1], look, gid="fig2-rows", kind="spots")
    dress = partial(_bare, xlim=(0, 1), ylim=(0, 1), aspect="equal")
    title = f"one grid: {counts[shown]} bins with rows"
    return Panel(title, "x$_1$", "x$_2$", [*edges, spots], dress=dress)


def _bare(axes, **limits) -> None:
    """Axes with these limits, without a grid."""
    axes.set(**limits)
    axes.grid(visible=False)


def _matrix(ids, bins) -> Panel:
    """The nonzeros of the feature matrix of all grids."""
    total = bins.starts[-1]
    look = {"linestyle": "", "marker": ".", "markersize": 1.2, "color": "#0072B2"}
    columns = (ids + bins.starts[:-1, None]).ravel()
    borders = [upright(start - 0.5, _BORDER) for start in bins.starts[1:-1]]
    return Panel(
        f"Z: {_ROWS} x {total}, {ids.size:,} non-zeros",
        "bins, grid after grid",
        "rows",
        [Curve(columns, np.tile(np.arange(_ROWS), _GRIDS), look, gid="fig2-z"), *borders],
        dress=partial(_bare, xlim=(-0.5, total - 0.5), ylim=(_ROWS - 0.5, -0.5)),
    )


def theorem1(rows) -> Chart:
    """Panels for L1 and L2, a line per data set: the objective's distance above its limit, in units
    of beta ||w*||^2.
    """
    by_data = grouped_by(wu2016.cases(rows), "dataset")
    machines = style.machines(good(labelled(rows, wu2016.THEOREM1)))
    panels = []
    for name, cases in by_data.items():
        by_penalty = grouped_by(cases, "penalty")
        line = [_excess(name, penalty, by_penalty.get(penalty, [])) for penalty in ("L1", "L2")]
        panels.append(line)
    title = "Wu et al. 2016, Theorem 1: the objective of random binning against kappa R"
    return Chart(title, [*wu2016.THEOREM_NOTES, machines], panels, 3.0)


def _excess(name, penalty, cases) -> Panel:
    """A curve for each gamma, with its slope at the end."""
    gid = partial(style.identifier, "theorem1", name, penalty)
    curves = []
    for number, case in enumerate(cases):
        above, kappa = case.excess.above, case.reference.kappa
        means = {size * kappa: mean for size, mean in above.items()}
        look, words = style.numbered(number), f"1/sigma = {case.gamma:g}"
        scale = case.reference.scale
        curves.append(positive_curve(means, look, words, gid(f"{case.gamma:g}"), scale))
    drawn = {curve.gid: curve for curve in curves if curve.x}
    places = [place for curve in drawn.values() for place in curve.x]
    bound = {end: 2 / end for end in (min(places), max(places))} if places else {}
    if penalty == "L1" and places:
        look = {"color": "black", "linestyle": "--", "linewidth": 1.0}
        drawn[""] = through(bound, look, "2 / (kappa R), the bound's last term for c = 0")

    def dress(axes):
        shift = {"xytext": (4, -2), "textcoords": "offset points", "fontsize": 7}
        for case, curve in zip(cases, curves):
            slope = case.excess.slope
            if curve.x and slope is not None:
                end, colour = curve.points[-1], style.colour(curve.look)
                axes.annotate(f"{slope:.2f}", end, color=colour, **shift)
        style.log_both(axes)

    return Panel(
        f"{name}, {penalty}",
        "kappa R",
        f"above the limit / beta ||w*||$^2$, {penalty}",
        [*drawn.values()],
        dress=dress,
    )


def _swept_builder(name: str, title: str, x_axis: str, columns) -> Builder:
    return Builder(
        f"wu2016-{name}", partial(sweep, name, title, x_axis, columns), wu2016.settings(name)
    )


FIGURES = {
    "fig2": Builder("wu2016-fig2", figure2, alone=True),
    "theorem1": Builder("wu2016-theorem1", theorem1),
    "speedup": Builder("wu2016-speedup", speedup, plan="fig6"),
    "fig3": _swept_builder(
        "fig3",
        "Wu et al. 2016, Figure 3: random binning (rb) while sigma varies, R = 128",
        "1/sigma of exp(-||x - y||$_1$ / sigma)",
        _SWEPT,
    ),
    "fig4": _swept_builder(
        "fig4",
        "Wu et al. 2016, Figure 4: random binning (rb) while R varies, sigma fixed",
        "grids R",
        (*_SWEPT, _KAPPA),
    ),
    "fig5": Builder("wu2016-fig5", figure5, wu2016.settings("fig5")),
    "fig6": Builder("wu2016-fig6", figure6),
}
