"""The figure of `rfx explain`: the importance of columns with intervals, and partial dependence."""

import numpy as np

from rfx.reporting import style
from rfx.reporting.charts import Chart, Curve, Panel, in_lines
from rfx.runs.explain import Dependence, Explanation

# Maximum columns and outputs drawn, panels in a line, and characters of a name at an axis.
MOST, MOST_OUTPUTS, IN_A_LINE, LONGEST = 15, 8, 3, 24


def chart(explained: Explanation) -> Chart:
    """The figure of an explained: bars, and a panel for each column with partial dependence."""
    n_columns, n_outputs = len(explained.importances), len(explained.outputs)
    panels = [_bars(explained), *(_panel(one, explained) for one in explained.dependences)]
    drawn = f" of {explained.n_given:,}, drawn by seed {explained.seed}" * (
        explained.n_rows < explained.n_given
    )
    classes = f"Those {MOST_OUTPUTS} of {n_outputs:,} classes are drawn whose means differ most."
    notes = {
        f"{explained.n_rows:,} rows{drawn}. Importance: by how much the {explained.metric}"
        f" ({explained.error:.4g}) rises when a column is shuffled, the mean of {explained.repeats}"
        " shuffles. Of the columns that tell nothing, 95 % have 0 in their interval.": True,
        f"The first {MOST} of {n_columns:,} columns.": n_columns > MOST,
        f"Partial dependence: the mean {explained.response} where all rows have the same value.": (
            bool(explained.dependences)
        ),
        classes: bool(explained.dependences) and n_outputs > MOST_OUTPUTS,
    }
    return Chart(
        "What the predictions depend on",
        [note for note, applies in notes.items() if applies],
        in_lines(panels, min(len(panels), IN_A_LINE)),
        max(2.2, 0.7 + 0.14 * min(MOST, n_columns)),
    )


def _bars(explained: Explanation) -> Panel:
    shown = explained.importances[:MOST]
    places, top = np.arange(len(shown), 0, -1).tolist(), len(shown) + 0.6
    bar = {"color": style.numbered(0)["color"], "linewidth": 6, "solid_capstyle": "butt"}
    line = {"color": "0.15", "linewidth": 1.1}
    dots = {"color": "0.15", "marker": "o", "linestyle": "none", "markersize": 2.5}
    curves = [
        curve
        for one, place in zip(shown, places)
        for curve in (
            Curve([0.0, one.mean], [place, place], bar | {"alpha": 0.55}),
            Curve([one.low, one.high], [place, place], line),
        )
    ]
    curves += [
        Curve([one.mean for one in shown], places, dots, gid="importance"),
        Curve([0.0, 0.0], [0.4, top], {"color": "0.4", "linewidth": 0.7}),
    ]

    def dress(axes) -> None:
        axes.set_yticks(places, [_name(one.name) for one in shown])
        axes.set_ylim(0.4, top)

    return Panel("Importance", f"rise of the {explained.metric}", "", curves, dress=dress)


def _panel(one: Dependence, explained: Explanation) -> Panel:
    several, places = len(explained.outputs) > 1, list(range(len(one.grid)))
    numbers, unordered = one.kind == "numbers", one.kind == "categories"
    marks = {"linestyle": "none"} if unordered else {}
    curves = [
        Curve(
            one.grid if numbers else places,
            one.means[:, place],
            style.numbered(number) | marks,
            style.plain(explained.outputs[place]) if several else "",
            style.identifier("dependence", one.name, explained.outputs[place]),
        )
        for number, place in enumerate(explained.widest(MOST_OUTPUTS))
    ]

    def dress(axes) -> None:
        step = 1 if unordered else max(1, len(places) // 5)
        texts = [_name(str(value)) for value in one.grid]
        axes.set_xticks(places[::step], texts[::step], rotation=45, ha="right")

    of = f" of {style.plain(explained.outputs[0])}" if not several and explained.outputs[0] else ""
    y_axis = f"mean {explained.response}{of}"
    return Panel(one.name, "", y_axis, curves, dress=None if numbers else dress)


def _name(text: str) -> str:
    return style.plain(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
