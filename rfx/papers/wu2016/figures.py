"""Figures 3 to 6 of Wu et al. 2016 (random binning features): ours solid with filled marks, the authors' dashed and hollow."""

from rfx.errors import DataError
from rfx.papers.wu2016 import curves as wu2016
from rfx.reporting import style

_UNSOLVED = "x"
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)


_SWEPT = (
    style.Panel(("test", "train"), "", False),
    style.Panel(("seconds",), "training, seconds"),
    style.Panel(("bins",), "bins D (training rows)"),
)


def figure3(rows, setting=None):
    """Test and train performance, training seconds and bins over 1/sigma, a line of panels a data set."""
    title = "Wu et al. 2016, Figure 3: random binning (rb) while sigma varies, R = 128"
    return _sweep(rows, "fig3", setting, title, "1/sigma of exp(-||x - y||$_1$ / sigma)", _SWEPT)


def figure4(rows, setting=None):
    """The same over R at one sigma, with kappa = D/R."""
    panels = (*_SWEPT, style.Panel(("kappa",), "kappa = D / R", False))
    return _sweep(rows, "fig4", setting, "Wu et al. 2016, Figure 4: random binning (rb) while R varies, sigma fixed", "grids R", panels)


def _sweep(rows, name, setting, title, axis_label, panels):
    setting = wu2016.choose_setting(rows, name, setting)
    drawn = [curve for curve in wu2016.sweep(rows, name, setting) if curve.ours]
    _refuse_nothing(drawn, name, setting)
    exact = {curve.dataset: curve.authors.get(0) for curve in wu2016.comparison([], setting) if curve.method == "kernel"}
    figure, grid = style.grid(len(drawn), len(panels))
    for line, curve in zip(grid, drawn):
        for axes, panel in zip(line, panels):
            for quantity in panel.names:
                look = quantity if style.known(quantity) else ""
                _both(axes, curve, quantity, style.identifier(name, curve.dataset, quantity), look, look or "seconds, bins, kappa")
            if "test" in panel.names:
                _mark_best(axes, curve)
                if exact.get(curve.dataset):
                    axes.axhline(
                        exact[curve.dataset]["test"],
                        color="black",
                        linewidth=0.9,
                        linestyle=":",
                        label="test, authors' exact kernel",
                        gid=style.identifier(name, curve.dataset, "exact", "authors"),
                    )
            _scale(axes, "log" if name == "fig3" else "R", panel.log)
            if name == "fig3" and "bins" in panel.names:
                right = axes.secondary_yaxis("right", functions=(lambda bins: bins / 128, lambda kappa: kappa * 128))
                right.set_ylabel("kappa = D / R")
                style.plain_ticks(right.yaxis)
            axes.set_ylabel(panel.label or wu2016.metric(curve.dataset))
            if "kappa" in panel.names:
                axes.set_ylim(bottom=0)
            axes.set_xlabel(axis_label if curve is drawn[-1] else "")
        gammas = wu2016.span([gamma for point in curve.ours.values() for gamma in point["gammas"]])
        style.head(line[0], wu2016.heading(curve.dataset) + ("" if name == "fig3" else f"; 1/sigma = {gammas}"))
    _finish(figure, title, setting, [row for row in wu2016.of_figure(rows, name, setting) if row["status"] == "ok"])
    return figure


def figure5(rows, setting=None):
    """Test performance and training seconds over R, and seconds and memory over test performance, of all methods."""
    setting = wu2016.choose_setting(rows, "fig5", setting)
    by_data: dict[str, list[wu2016.Curve]] = {}
    ours = wu2016.comparison(rows, setting)
    present = {curve.dataset for curve in ours if curve.ours}
    for curve in ours:
        if curve.dataset in present:
            by_data.setdefault(curve.dataset, []).append(curve)
    _refuse_nothing(by_data, "fig5", setting)
    figure, grid = style.grid(len(by_data), 4)
    for line, (dataset, own) in zip(grid, by_data.items()):
        for curve in own:
            words = wu2016.METHODS[curve.method]
            for axes, quantity in zip(line[:2], ("test", "seconds")):
                if curve.method == "kernel":
                    _level(axes, curve, quantity, style.identifier("fig5", dataset, curve.method, quantity), words)
                else:
                    _both(axes, curve, quantity, style.identifier("fig5", dataset, curve.method, quantity), curve.method, words, _SIZES[-1])
            for axes, quantity in zip(line[2:], ("seconds", "memory")):
                _cost(axes, curve, quantity, style.identifier("fig5", dataset, curve.method, quantity, "by-test"), words)
        wanted = next((wu2016.target(curve) for curve in own if curve.method == "rb"), None)
        for axes in line[2:]:
            style.log_values(axes)
            axes.set_xlabel(f"test {wu2016.metric(dataset)}, better to the right")
            if wanted is not None:
                axes.axvline(
                    wanted,
                    color="0.5",
                    linewidth=0.8,
                    linestyle=":",
                    label="the authors' rb at R = 128",
                    gid=style.identifier("fig5", dataset, "target"),
                )
            if dataset in wu2016.REGRESSION:
                axes.invert_xaxis()
        for axes, log in zip(line[:2], (False, True)):
            _scale(axes, "R", log)
            axes.set_xlabel("R")
        labels = (f"test {wu2016.metric(dataset)}", "training, seconds", "training, seconds", "memory, MiB")
        for axes, label in zip(line, labels):
            axes.set_ylabel(label)
        style.head(line[0], wu2016.heading(dataset))
    used = [row for row in wu2016.of_figure(rows, "fig5", setting) if row["status"] == "ok"]
    title = "Wu et al. 2016, Figure 5: random binning beside other approximations of the kernel"
    loading = "Seconds of ours are of a new process, which first loads its compiled code (some tenths of a second)."
    _finish(figure, title, setting, used, [f"Memory: {wu2016.MEMORY}", loading])
    return figure


def figure6(rows, setting=None):
    """Speed-up of parallel randomised coordinate descent over threads; the authors' numbers are in no file that we have."""
    wu2016.refuse_setting("fig6", setting)
    drawn: dict[str, list[wu2016.Curve]] = {}
    for curve in wu2016.speedups(rows):
        if any(point["speedup"] for point in curve.ours.values()):
            drawn.setdefault(curve.dataset, []).append(curve)
    _refuse_nothing(drawn, "fig6", None)
    columns = min(4, len(drawn))
    figure, grid = style.grid(-(-len(drawn) // columns), columns, 2.6)
    cells = [axes for line in grid for axes in line]
    names = {"sparse-rb": "random binning (sparse-rb)", "sparse-rf": "random Fourier (sparse-rf)"}
    for axes, (dataset, own) in zip(cells, drawn.items()):
        threads = sorted({place for curve in own for place in curve.ours})
        axes.plot(threads, threads, color="0.6", linewidth=0.9, linestyle=":", label="as many times as threads")
        for curve in own:
            places, values = curve.series("ours", "speedup")
            spread = [[value - curve.ours[place]["low"] for place, value in zip(places, values)],
                      [curve.ours[place]["high"] - value for place, value in zip(places, values)]]  # fmt: skip
            bars = axes.errorbar(places, values, yerr=spread, **style.look(curve.method), capsize=3, label=names[curve.method])
            bars.lines[0].set_gid(style.identifier("fig6", dataset, curve.method, "ours"))
        axes.set_xticks(threads, [f"{place:g}" for place in threads])
        axes.set_xlabel("threads")
        axes.set_ylabel("speed-up")
        axes.set_ylim(bottom=0)
        kappas = [f"kappa {point['kappa']:,.0f}" for curve in own for point in list(curve.ours.values())[:1] if point["kappa"]]
        style.head(axes, "; ".join([dataset + (" (subset)" if wu2016.DATA[dataset] else ""), *kappas]))
    for axes in cells[len(drawn) :]:
        axes.remove()
    used = [row for row in wu2016.of_figure(rows, "fig6") if row["status"] == "ok"]
    _finish(
        figure,
        "Wu et al. 2016, Figure 6: speed-up of parallel coordinate descent (L1); ours only",
        None,
        used,
        ["Marks: medians over the seeds, bars: their range. Seconds of the passes to the same relative duality gap."],
    )
    return figure


# ---------------------------------------------------------------------------------------------------- drawing


def _refuse_nothing(drawn, name, setting):
    if not drawn:
        which = f" with setting {setting}" if setting else ""
        raise DataError(f"the results file has no finished rows of wu2016-{name}{which}; rfx run wu2016-{name} makes them")


def _both(axes, curve, quantity, gid, look, words, last=None):
    """Ours and the authors' curve of one quantity, up to the place `last`."""
    for whose in ("authors", "ours"):
        places, values = curve.series(whose, quantity)
        if last is not None:
            values = values[: sum(place <= last for place in places)]
            places = places[: len(values)]
        if places:
            axes.plot(places, values, gid=f"{gid}-{whose}", label=style.label(words, whose), **style.look(look, whose))
    places, low, high = curve.band(quantity)
    if places:
        shown = len(places) if last is None else sum(place <= last for place in places)
        style.band(axes, places[:shown], low[:shown], high[:shown], look)
    _cross_out(axes, curve, quantity, look, last)


def _cross_out(axes, curve, quantity, look, last):
    """A cross over every point of ours whose solver did not converge."""
    places = [
        place
        for place, point in curve.ours.items()
        if point["converged"] is False and point.get(quantity) is not None and (last is None or place <= last)
    ]
    if places and quantity in ("test", "train"):
        axes.plot(places, [curve.ours[place][quantity] for place in places], linestyle="", marker=_UNSOLVED, markersize=4.5, color="0.25",
                  label="ours, not converged", zorder=3)  # fmt: skip


def _mark_best(axes, curve):
    places, values = curve.series("ours", "test")
    if places:
        best = values.index((min if curve.dataset in wu2016.REGRESSION else max)(values))
        axes.plot([places[best]], [values[best]], linestyle="", marker="s", markersize=8, markerfacecolor="none",
                  color=style.look("test")["color"], label="best test, ours")  # fmt: skip


def _level(axes, curve, quantity, gid, words):
    """The exact kernel has no R: a level line."""
    for whose, dashes in (("authors", "--"), ("ours", "-")):
        _, values = curve.series(whose, quantity)
        if values:
            axes.axhline(values[0], color="black", linestyle=dashes, linewidth=1.0, alpha=0.65 if whose == "authors" else 1.0,
                         gid=f"{gid}-{whose}", label=style.label(words, whose))  # fmt: skip


def _cost(axes, curve, quantity, gid, words):
    """A quantity over the test performance it buys, along growing R."""
    for whose in ("authors", "ours"):
        places, values = curve.series(whose, quantity)
        known = [(getattr(curve, whose)[place].get("test"), value) for place, value in zip(places, values)]
        known = [pair for pair in known if pair[0] is not None]
        if known:
            look = style.look(curve.method, whose) | ({"markersize": 7} if curve.method == "kernel" else {})
            axes.plot(*zip(*known), gid=f"{gid}-{whose}", label=style.label(words, whose), **look)


def _scale(axes, kind, log):
    """The axes of a sweep: over gamma ("log") or over R, in powers of two."""
    if kind == "R":
        style.sizes_axis(axes, _SIZES)
    else:
        style.log_scale(axes, "x")
        style.plain_ticks(axes.xaxis)
    if log:
        style.log_values(axes)


def _finish(figure, title, setting, rows, remarks=()):
    notes = [] if setting is None else [f"Setting {setting}: {wu2016.SETTINGS[setting]}"]
    notes.append(f"lambda: {wu2016.lambdas(rows, by_method=setting is None)}.")
    runs = len({row["seed"] for row in rows})
    if setting is not None and runs > 1:
        notes.append(f"Ours: means over up to {runs} seeds, bands: their standard deviation.")
    if setting is not None:
        letter = any(row["dataset"] == "letter" for row in rows)
        notes.append("Authors': their plot data, lambda 0.01, 16 cores at 2.93 GHz" + ("; their letter lacks its Z." if letter else "."))
    title = title if setting is None else f"{title}; setting: {setting}"
    style.finish(figure, title, [*notes, *remarks, style.machines(rows, threads=setting is not None)])


FIGURES = {"fig3": figure3, "fig4": figure4, "fig5": figure5, "fig6": figure6}
