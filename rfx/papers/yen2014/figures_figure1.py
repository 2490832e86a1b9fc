"""Figure 1 of Yen et al. 2014: objective and test error of Sparse-RF and boosting against training time, and the kernel's line."""

from rfx.papers.yen2014 import figure1 as yen
from rfx.reporting import style

_QUANTITIES = ((1, "objective / N", "objective"), (2, "test error", "error"))
_LOOKS = {"boosting-exact": style.look("boosting") | {"marker": "+", "markersize": 6, "linestyle": ":"}}


def figure1(rows, setting=None):
    """A column of panels for each data set, objective above error; the band is lowest to highest over the seeds."""
    panels = yen.found(rows, setting)
    figure, grid = style.grid(2, len(panels), height=2.5)
    notes = []
    for column, (name, (curves, line)) in enumerate(panels.items()):
        for row, (quantity, words, short) in enumerate(_QUANTITIES):
            axes = grid[row][column]
            for key, runs in curves.items():
                at, mean, low, high = runs.band(quantity)
                look = _LOOKS.get(key) or style.look(key)
                mark = {"markevery": max(1, len(at) // 8), "gid": style.identifier("figure1", name, key, short)}
                axes.plot(at, mean, label=yen.CURVES[key], **mark, **look)
                axes.fill_between(at, low, high, color=look["color"], alpha=0.18, linewidth=0)
            if line is not None:
                value = yen.spread(line.bounds if short == "objective" else line.errors)[0]
                gid = style.identifier("figure1", name, "kernel", short)
                axes.axhline(value, color="black", linestyle="--", linewidth=1, label="Kernel", gid=gid)
            _limits(axes, name, quantity, curves)
            axes.set_ylabel(words if not column else "")
        grid[1][column].set_xlabel("training, processor seconds")
        first = next(iter(curves.values()))
        style.head(grid[0][column], yen.DATA[name])
        notes.append(f"{yen.DATA[name]}: lambda_N = {first.lam:g}, N = {first.n:,}.")
    notes += [
        "Dashed: (lambda_N/N) ||w*||_2 + mean loss of the kernel machine, and its error, means over its seeds. Bands are lowest to "
        "highest over the seeds.",
        style.machines([row for curves, _ in panels.values() for runs in curves.values() for row in runs.rows]),
    ]
    style.finish(figure, "Yen et al. 2014, Figure 1: Sparse-RF and boosting, perceptrons +-1", [" ".join(notes[:-2]), *notes[-2:]])
    return figure


def _limits(axes, name, quantity, curves):
    """Seconds from the first step to the end of the paper's axis, or of ours; the paper's objective and error, wider where ours need it."""
    times = [run[0] for runs in curves.values() for run in runs.runs]
    values = [value for runs in curves.values() for run in runs.runs for value in (run[quantity].min(), run[quantity].max())]
    (_, right), *limits = yen.AXES.get(name, ((0, 1), (max(values), min(values)), (max(values), min(values))))
    low, high = limits[quantity - 1]
    axes.set_xscale("log")
    axes.set_xlim(max(1e-2, min(time[0] for time in times)) * 0.8, max(right, *(time[-1] for time in times)) * 1.1)
    room = 0.03 * (max(high, *values) - min(low, *values))
    axes.set_ylim(min(low, *values) - room, max(high, *values) + room)


FIGURES = {"figure1": figure1}
