"""The appearance of every figure: one colour, mark and line style per method, the same in each
figure; panels, axes, legend and remarks.

Methods also differ in mark and dashes, so that they can be distinguished without colour. Ours is
drawn solid with filled marks, the authors' pale with hollow ones. matplotlib is loaded only when
something is drawn.
"""

import itertools
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rfx import lazy, methods

# keyword arguments of a function of matplotlib that draws
Look: TypeAlias = dict[str, object]

# Okabe and Ito's colours first, which colour-blind readers can distinguish, then Tol's.
_LOOKS = {
    "rb": ("#0072B2", "o"),
    "rf": ("#D55E00", "s"),
    "nystrom": ("#009E73", "^"),
    "block": ("#CC79A7", "D"),
    "local": ("#EE3377", "$L$"),
    "kernel": ("#000000", "*"),
    "sparse-rf": ("#E69F00", "v"),
    "sparse-rb": ("#56B4E9", "P"),
    "boosting": ("#882255", "X"),
    "lkrf": ("#117733", "p"),
    "doubly-sgd": ("#332288", "h"),
    "norma": ("#999933", "<"),
    "k-sdca": ("#661100", ">"),
    "r-sdca": ("#6699CC", "d"),
    "n-sdca": ("#44AA99", "H"),
    "mlp": ("#707070", "$N$"),
    "r-pegasos": ("#AA4466", "8"),
    "n-pegasos": ("#DDCC77", "."),
    "rfm": ("#AA3377", "$R$"),
    "auto": ("#004488", "$A$"),
    # quantities of one method
    "test": ("#0072B2", "o"),
    "train": ("#E69F00", "^"),
    "": ("#444444", "o"),
}
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#332288")
# Filled marks, visible at any size, for methods from other packages.
_MARKS = "osD^vPX<>phd"
FONT = "DejaVu Sans"
LONGEST = 60  # maximum characters of a name in a figure
AUTHORS: Look = {"markerfacecolor": "white", "alpha": 0.65, "linewidth": 1.0, "linestyle": "--"}


def look(name: str, whose: str = "ours") -> Look:
    """Keyword arguments of `axes.plot` for a method (or "test", "train", "" for quantities of one
    method).

    whose: "ours" or "authors". For several names that are unknown here, see `looks`.
    """
    ours = looks([name])[name]
    if whose == "ours":
        return ours
    return ours | AUTHORS


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The style of each of some names. Methods from other packages, and after them names that are
    not methods, have pairs of a colour and a mark that differ from all others.
    """
    names = list(names)
    others = dict.fromkeys(sorted(set(methods.names()) - _LOOKS.keys()))
    others |= dict.fromkeys(sorted(set(names) - _LOOKS.keys() - others.keys()))
    pairs = _LOOKS | dict(zip(others, _cycle()))
    found: dict[str, Look] = {}
    for name in names:
        colour, mark = pairs[name]
        found[name] = {"color": colour, "marker": mark, "linestyle": "-"}
    return found


def colour(look: Mapping[str, object]) -> str:
    """The colour of a curve."""
    return str(look["color"])


def _cycle() -> Iterator[tuple[str, str]]:
    """Pairs of a colour and a mark that no method of rfx has. Each mark comes with every colour
    before a pair is repeated.
    """
    for number in itertools.count():
        pair = _COLOURS[(number + number // 12) % 8], _MARKS[number % 12]
        if pair not in _LOOKS.values():
            yield pair


def numbered(number: int) -> Look:
    """Keyword arguments of `axes.plot` for the curve with that number, for curves that are not
    methods.
    """
    colour, mark = _COLOURS[number % 8], "osv^DPXp"[number % 8]
    return {"color": colour, "marker": mark, "linestyle": "-"}


def printed(name: str) -> Look:
    """Keyword arguments of `axes.plot` for a printed number near the curve of a method: a large
    hollow mark.
    """
    return look(name) | {
        "linestyle": "",
        "markerfacecolor": "white",
        "markersize": 9,
        "markeredgewidth": 1.6,
        "zorder": 4,
    }


def label(words: str, whose: str) -> str:
    """A legend's text; `finish` puts ours above the authors' with the same words."""
    return f"{words}, ours" if whose == "ours" else f"{words}, authors'"


def identifier(*words) -> str:
    """The identifier (gid) of a curve in the SVG file."""
    return "-".join(map(str, words))


def plain(text) -> str:
    """A name from rows as text for a figure, shortened if it is long."""
    text = str(text)
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}…{text[-half:]}"


def grid(lines: int, columns: int, height: float = 2.1):
    """A figure with lines x columns panels, and the panels by line."""
    engine = lazy.layout_engine.ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06)
    size = (3.1 * max(columns, 2) + 0.6, height * lines + 1.3)
    figure = lazy.figure.Figure(figsize=size, layout=engine)
    return figure, figure.subplots(lines, columns, squeeze=False)


def log_values(axes) -> None:
    """A logarithmic y axis, labelled at 1, 2 and 5 if its range is small."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    labelled = (1.0, 2.0, 5.0) if high < 150 * low else (1.0,)
    axes.yaxis.set_major_locator(_log_locator(labelled))
    plain_ticks(axes.yaxis)


def _log_locator(labelled: Sequence[float]):
    """Ticks at these multiples of the powers of ten."""
    return lazy.ticker.LogLocator(subs=labelled, numticks=12)


def plain_ticks(axis) -> None:
    """Write 0.01, 5, 1000 as they are, and 10^4 and beyond as powers. A logarithmic axis has at
    least two labelled ticks.
    """
    axis.set_major_formatter(lazy.ticker.FuncFormatter(_tick))
    axis.set_minor_formatter(lazy.ticker.NullFormatter())
    if axis.get_scale() != "log":
        return
    digits = [float(digit) for digit in range(1, 10)]
    finer = [_log_locator((1.0, 2.0, 5.0)), _log_locator(digits), lazy.ticker.MaxNLocator(4)]
    for locator in finer:
        low, high = sorted(axis.get_view_interval())
        n_labelled = sum(low <= place <= high for place in axis.get_majorticklocs())
        if n_labelled < 2:
            axis.set_major_locator(locator)


def _tick(value: float, _: int | None) -> str:
    """The text of a tick."""
    exponent = math.log10(value) if value > 0 else 0
    is_power = abs(exponent - round(exponent)) < 1e-9
    if exponent >= 4 and is_power:
        return f"$10^{{{exponent:.0f}}}$"
    return f"{value:g}"


def log_places(axes, base: float = 10) -> None:
    """A logarithmic x axis."""
    axes.set_xscale("log", base=base)
    plain_ticks(axes.xaxis)


def log_both(axes, base: float = 10) -> None:
    """Two logarithmic axes."""
    log_places(axes, base)
    log_values(axes)


def _order(label: str, labels: Iterable[str]) -> tuple:
    """Ours above the authors' in a legend of two lines, which is filled by column; labels without a
    partner come last.
    """
    labels = list(labels)
    ours = label.replace(", authors'", ", ours")
    authors = ours.replace(", ours", ", authors'")
    if ours.endswith(", ours") and ours in labels and authors in labels:
        return False, labels.index(ours), label != ours
    return True, labels.index(label), label != ours


def finish(figure, title: str, notes, legend: bool = True) -> None:
    """Add the title, one legend for all panels, and below them the notes for the reader. legend:
    False if each panel has its own.

    Axes have no minor ticks, which would take a quarter of the drawing time.
    """
    for axes in figure.axes:
        axes.minorticks_off()
    handles = _handles(figure) if legend else {}
    order = sorted(handles, key=lambda label: _order(label, handles))
    width = figure.get_figwidth()
    figure.legend(
        [handles[text] for text in order],
        order,
        loc="outside upper center",
        ncols=max(1, math.ceil(len(order) / 2)),
        frameon=False,
        title=textwrap.fill(title, int(width * 9)),
        title_fontproperties={"size": 11, "weight": "bold"},
    )
    wrapped = [line for note in notes for line in textwrap.wrap(note, int(width * 19))]
    figure.supxlabel("\n".join(wrapped), x=0.01, ha="left", fontsize=7, color="0.25")


def _handles(figure) -> dict[str, object]:
    """The first curve with each label."""
    handles: dict[str, object] = {}
    for axes in figure.axes:
        for handle, text in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(text, handle)
    return handles


def machines(rows, threads: bool = True) -> str:
    """The note on the machines of our runs."""
    machines = []
    for row in rows:
        machine = (row.cpu or "unknown processor")[:LONGEST]
        machines.append(f"{machine}, {row.threads or 'all'} threads" if threads else machine)
    return f"Ours: {'; '.join(dict.fromkeys(machines))}."
