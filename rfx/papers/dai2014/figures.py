"""Figure 1 of Dai et al. 2014, the ripple and the costs as figures, on the paper's axes with its quoted numbers as lines."""

from functools import partial

from rfx.papers.dai2014 import curves as dai
from rfx.reporting import style

_SAMPLES = ("mnist", "cifar10", "imagenet", "qm7", "molecularspace")


def figure1(name, rows, setting=None):
    """Error against seconds of training, a panel for each criterion; against rows for digits, images and molecules."""
    dai.refuse_setting(f"fig1-{name}", setting)
    found = dai.of(rows, name)
    # exact kernels, which have no curve, are lines in the panel of the others
    panels = [key for key in dai.criteria(found) if key not in ("gaussian", "laplacian")] or [""]
    axis = "samples" if name in _SAMPLES else "seconds"
    figure, grid = style.grid(1, len(panels), height=3.2)
    for axes, key in zip(grid[0], panels):
        # the exact kernels of the Coulomb matrices belong to what is trained on these
        beside = ("gaussian", "laplacian") if key in ("", "rows") else ()
        chosen = [run for run in found if dai.criterion_of(run) in (key, *beside)]
        quoted = []
        for run in chosen:
            places, errors = run.curve(axis)
            look = style.look(run.method)
            kernel = dai.criterion_words(dai.criterion_of(run)) if run.method == "kernel" else ""
            words = style.plain(f"{dai.METHODS.get(run.method, run.method)} {kernel}".strip())
            if places:
                axes.plot(places, errors, label=words, markersize=3, gid=style.identifier("fig1", name, run.method), **look)
            else:
                axes.axhline(run.error, label=words, color=look["color"], gid=style.identifier("fig1", name, run.method))
            paper = dai.quoted(name, run.method)
            if paper is not None:
                axes.axhline(paper, color=look["color"], linestyle=":", linewidth=1)
                quoted.append((paper, f"{words}, paper", run.method))
        _limits(axes, name, chosen, axis)
        for number, (paper, words, method) in enumerate(quoted):
            # the paper does not say where on the axis: beside one another, near the right end
            place = axes.get_xlim()[1] * 0.8 * 0.6**number
            axes.plot([place], [paper], label=words, gid=style.identifier("fig1", name, method, "paper"), **style.printed(method))
        axes.set_xlabel("training rows" if axis == "samples" else "training, seconds")
        axes.set_ylabel(dai.unit(name).replace("error", "test error"))
        if dai.criterion_words(key):
            style.head(axes, dai.criterion_words(key))
    notes = ["Seconds are of the steps, without Nystrom's preprocessing.", style.machines([run.row for run in found])]
    style.finish(figure, f"Dai et al. 2014, Figure 1: {name}", notes)
    return figure


def _limits(axes, name, chosen, axis):
    """The paper's axes, wider where ours need it."""
    (left, right), (low, high) = dai.AXES[name]
    places = [place for run in chosen for place in run.curve(axis)[0]] or [left]
    errors = [run.error for run in chosen]
    axes.set_xscale("log")
    axes.set_xlim(min(left, *places), max(right, *places) * 1.1)
    axes.set_ylim(min(low, *errors) * 0.95, max(high, *(error * 1.05 for error in errors)))


def synthetic(rows, setting=None):
    """E|f_t - f*|^2 against steps for every nu, with the slope -1 of theorem 4."""
    dai.refuse_setting("synthetic", setting)
    dai.of(rows, "synthetic")
    figure, grid = style.grid(1, 1, height=3.4)
    axes = grid[0][0]
    for number, (nu, seeds) in enumerate(sorted(dai.ripple(rows).items(), reverse=True)):
        steps, values = dai.mean_curve(seeds)
        colour = ("#332288", "#D55E00", "#009E73", "#56B4E9")[number % 4]
        rate = dai.rate(seeds)
        words = f"nu = {nu:g}" + ("" if rate is None else f", slope {rate:.2f}")
        axes.plot(steps, values, color=colour, marker="oshv"[number % 4], markersize=3, label=words, gid=f"synthetic-nu-{nu:g}")
        if len(steps) > 1:
            low = steps[-1] / 16
            line = [values[-1] * steps[-1] / step for step in (low, steps[-1])]
            axes.plot((low, steps[-1]), line, color=colour, linestyle=":", label="slope -1" if number == 0 else None)
    style.log_scale(axes, "x")
    style.log_scale(axes, "y")
    axes.set_xlabel("steps t")
    axes.set_ylabel("E|f$_t$(x) - f*(x)|$^2$")
    style.finish(figure, "Dai et al. 2014: the ripple, distance to the exact solution of the same nu", [])
    return figure


def complexity(rows, setting=None):
    """Preprocessing, training, prediction and storage against the number of rows."""
    dai.refuse_setting("complexity", setting)
    found = dai.of(rows, "complexity")
    figure, grid = style.grid(1, len(dai.COSTS), height=2.8)
    for axes, (quantity, words) in zip(grid[0], dai.COSTS.items()):
        for method, entries in dai.costs(rows).items():
            known = [(entry["n"], entry[quantity]) for entry in entries if entry[quantity]]
            if known:
                axes.plot(
                    *zip(*known),
                    label=style.plain(dai.METHODS.get(method, method)),
                    gid=f"complexity-{quantity}-{method}",
                    **style.look(method),
                )
        style.log_scale(axes, "x")
        style.log_scale(axes, "y")
        axes.set_xlabel("rows n = features")
        axes.set_ylabel(words)
        style.head(axes, words.partition(",")[0])
    style.finish(figure, "Dai et al. 2014: computation and storage", [style.machines([run.row for run in found])])
    return figure


FIGURES = {f"fig1-{name}": partial(figure1, name) for name in dai.DATA} | {"synthetic": synthetic, "complexity": complexity}
