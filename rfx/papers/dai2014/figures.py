"""Figure 1 of Dai et al. 2014, the ripple and the costs as figures, on the paper's axes with its
quoted numbers as lines.
"""

from functools import partial

from rfx.papers.dai2014 import curves as dai
from rfx.reporting import style
from rfx.reporting.builders import Builder
from rfx.reporting.charts import Chart, Curve, Panel, level

_SAMPLES = ("mnist", "cifar10", "imagenet", "qm7", "molecularspace")


def figure1(name, rows) -> Chart:
    """Error against seconds of training, a panel for each criterion; against rows for digits,
    images and molecules.
    """
    by = dai.by_criterion(dai.of(rows, name))
    found = [runs[0] for own in by.values() for runs in own.values()]
    # exact kernels have no curve and are lines in the panel of the others
    keys = [key for key in dai.criteria(found) if key not in ("gaussian", "laplacian")] or [""]
    panels = [_panel(name, key, found) for key in keys]
    notes = [
        "Seconds are of the steps, without Nystrom's preprocessing. Of several seeds the first.",
        style.machines([run.row for run in found]),
    ]
    return Chart(f"Dai et al. 2014, Figure 1: {name}", notes, [panels], 3.2)


def _panel(name, key, found) -> Panel:
    """The runs with one criterion, and the numbers that the paper quotes for their methods."""
    axis = "samples" if name in _SAMPLES else "seconds"
    # show the exact kernels of the Coulomb matrices with the methods trained on these
    beside = ("gaussian", "laplacian") if key in ("", "rows") else ()
    chosen = [run for run in found if dai.criterion_of(run) in (key, *beside)]
    (left, right), (low, high) = _limits(name, chosen, axis)
    drawn, quoted = [], []
    for run in chosen:
        places, errors = run.curve(axis)
        look = style.look(run.method)
        kernel = dai.criterion_words(dai.criterion_of(run)) if run.method == "kernel" else ""
        words = style.plain(f"{dai.METHODS.get(run.method, run.method)} {kernel}".strip())
        if places:
            drawn.append(
                Curve(
                    places,
                    errors,
                    look | {"markersize": 3},
                    words,
                    style.identifier("fig1", name, run.method),
                )
            )
        else:
            drawn.append(
                level(
                    run.error,
                    words,
                    style.identifier("fig1", name, run.method),
                    color=look["color"],
                )
            )
        paper = dai.quoted(name, run.method)
        if paper is not None:
            drawn.append(level(paper, color=look["color"], linestyle=":", linewidth=1))
            quoted.append((paper, f"{words}, paper", run.method))
    for number, (paper, words, method) in enumerate(quoted):
        # the paper does not give their position on the axis: side by side, near the right end
        place, gid = right * 0.8 * 0.6**number, style.identifier("fig1", name, method, "paper")
        drawn.append(Curve([place], [paper], style.printed(method), words, gid))

    def dress(axes):
        axes.set_xscale("log")
        axes.set_xlim(left, right)
        axes.set_ylim(low, high)

    heads = (
        "training rows" if axis == "samples" else "training, seconds",
        dai.unit(name).replace("error", "test error"),
    )
    return Panel(dai.criterion_words(key), *heads, drawn, dress=dress)


def _limits(name, chosen, axis) -> tuple[tuple[float, float], tuple[float, float]]:
    """The paper's axes, extended if ours need it."""
    (left, right), (low, high) = dai.AXES[name]
    places = [place for run in chosen for place in run.curve(axis)[0]] or [left]
    errors = [run.error for run in chosen]
    widest = min(left, *places), max(right, *places) * 1.1
    return widest, (min(low, *errors) * 0.95, max(high, *(error * 1.05 for error in errors)))


def synthetic(rows) -> Chart:
    """E|f_t - f*|^2 against steps for every nu, with the slope -1 of Theorem 4; a panel for each
    kind of steps.
    """
    dai.of(rows, "synthetic")
    panels = [
        Panel(
            f"steps {words}",
            "steps t",
            "E|f$_t$(x) - f*(x)|$^2$",
            _distances(kind, own),
            dress=_log_both,
        )
        for kind, words in dai.STEPS.items()
        if (own := dai.ripple(rows, kind)) or kind == "theorem"
    ]
    return Chart(
        "Dai et al. 2014: the ripple, distance to the exact solution of the same nu",
        [],
        [panels],
        3.4,
    )


def _distances(kind, by_nu) -> list[Curve]:
    """The mean distance for each nu, and the slope -1 through its end."""
    drawn = []
    for number, (nu, seeds) in enumerate(sorted(by_nu.items(), reverse=True)):
        steps, values = dai.mean_curve(seeds)
        colour = ("#332288", "#D55E00", "#009E73", "#56B4E9")[number % 4]
        rate = dai.rate(seeds, nu, kind)
        words = f"nu = {nu:g}" + ("" if rate is None else f", slope {rate:.2f}")
        look = {"color": colour, "marker": "oshv"[number % 4], "markersize": 3}
        drawn.append(Curve(steps, values, look, words, f"synthetic-{kind}-nu-{nu:g}"))
        if len(steps) > 1:
            ends = (steps[-1] / 16, steps[-1])
            line = [values[-1] * steps[-1] / step for step in ends]
            look = {"color": colour, "linestyle": ":"}
            drawn.append(Curve(ends, line, look, "slope -1" if number == 0 else ""))
    return drawn


def _log_both(axes) -> None:
    style.log_scale(axes, "x")
    style.log_scale(axes, "y")


def complexity(rows) -> Chart:
    """Preprocessing, training, prediction and storage against the number of rows."""
    found = dai.of(rows, "complexity")
    panels = []
    for quantity, words in dai.COSTS.items():
        drawn = []
        for method, entries in dai.costs(rows).items():
            known = [(entry["n"], entry[quantity]) for entry in entries if entry[quantity]]
            if known:
                xs, ys = zip(*known)
                label = style.plain(dai.METHODS.get(method, method))
                drawn.append(
                    Curve(xs, ys, style.look(method), label, f"complexity-{quantity}-{method}")
                )
        panels.append(
            Panel(words.partition(",")[0], "rows n = features", words, drawn, dress=_log_both)
        )
    return Chart(
        "Dai et al. 2014: computation and storage",
        [style.machines([run.row for run in found])],
        [panels],
        2.8,
    )


FIGURES = {
    f"fig1-{name}": Builder(f"dai2014-fig1-{name}", partial(figure1, name)) for name in dai.DATA
} | {
    name: Builder(f"dai2014-{name}", make)
    for name, make in (("synthetic", synthetic), ("complexity", complexity))
}
