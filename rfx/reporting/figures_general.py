"""Figures of any results file: the score against lambda, over a grid of two options, against
features, and against seconds; and the surface of `rfx tune`.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rfx.errors import DataError, UsageError
from rfx.fitting.pipeline import Pipeline
from rfx.records.run import having
from rfx.reporting import columns, style
from rfx.reporting.cells import Row, good, grouped, labelled, mean_if_any, mean_of, variants
from rfx.reporting.figures import Chart, Curve, Heat, Panel, in_lines, mean_curve

# Maximum panels; a file with more data sets is narrowed by --setting or by rfx run --only.
MOST = 12
# Maximum inputs drawn.
MOST_INPUTS = 40
SIZES = ("n_features", "n_grids", "block_size")


def lambda_path(rows, setting=None) -> Chart:
    """Score and model size against lambda, a line per method. Each point is the mean over the runs
    of a line with the same lambda, such as several seeds.
    """
    rows = _scored(rows, setting)
    # lambdas chosen by the runs themselves are not a path
    lams = [run.get("lam") for run in columns.of(rows).requested]
    return _curves(rows, lams, "lambda", "Score and size along lambda", sizes=True)


def features(rows, setting=None) -> Chart:
    """Score against the number of features (of grids, of rows in a block), a line per method."""
    rows = _scored(rows, setting)
    sizes = [
        next((run[name] for name in SIZES if isinstance(run.get(name), int)), None)
        for run in columns.of(rows).values
    ]
    return _curves(rows, sizes, "features D, grids or rows of a block R", "Score against size")


def pareto(rows, setting=None) -> Chart:
    """Score against training seconds, a point for each group of runs that differ only in the seed.
    The line is the Pareto front: nothing faster is better.
    """
    rows = _scored(rows, setting)
    timed = [row for row in rows if columns.outcome(row, "seconds_train") is not None]
    if not timed:
        raise DataError("no row of the results file has its training seconds")
    place = lambda row: (row["dataset"], row["metric"] or "score")
    panels: dict[tuple[str, str], dict[str, list]] = {place(row): {} for row in timed}
    for group in variants(timed):
        seconds = mean_of([columns.outcome(row, "seconds_train") for row in group]).value
        point = seconds, mean_of([row["score"] for row in group])
        panels[place(group[0])].setdefault(columns.method(group[0]), []).append(point)
    looks = style.looks(method for costs in panels.values() for method in costs)
    drawn = [_costs(name, metric, costs, looks) for (name, metric), costs in _few(panels).items()]
    return Chart(
        "Score against training time, and the Pareto front",
        [
            "Up is better; of rmse down. A point: the mean over runs that differ in the seed alone,"
            " with one standard deviation of the score. Seconds include choosing options. "
            + style.machines(rows)
        ],
        in_lines(drawn, min(3, len(drawn)), Panel(hidden=True)),
    )


def _costs(name: str, metric: str, costs: Mapping[str, Sequence], looks: Mapping) -> Panel:
    """The scores of each method on one data set against their seconds, and the front."""
    points = [(seconds, one.value) for pairs in costs.values() for seconds, one in pairs]
    look = {"color": "0.4", "linewidth": 0.9, "drawstyle": "steps-post", "zorder": 0}
    xs, ys = zip(*_front(points, metric))
    front = Curve(xs, ys, look, "Pareto front", style.identifier("front", name))
    curves = [
        Curve(
            [seconds for seconds, _ in pairs],
            [one.value for _, one in pairs],
            looks[method] | {"linestyle": "none"},
            style.plain(method),
            style.identifier("points", name, method),
            {seconds: one.around for seconds, one in pairs if one.sd is not None},
            "bars",
        )
        for method, pairs in costs.items()
    ]
    return Panel(name, "training, s", style.plain(metric), [front, *curves], dress=style.log_places)


def _front(points: Iterable[tuple], metric: str) -> list[tuple]:
    """The (seconds, score) for which no equally fast point is better, ordered by seconds."""
    sign = -1 if columns.low_is_better(metric) else 1
    ordered = sorted(points, key=lambda point: (point[0], -sign * point[1]))
    best = itertools.accumulate((sign * score for _, score in ordered), max, initial=-np.inf)
    return [point for point, before in zip(ordered, best) if sign * point[1] > before]


# ------------------------------------------------------------------------------------------- lines


def _scored(rows: Iterable[Row], setting: str | None) -> list[Row]:
    """The rows with a score, of one setting if requested."""
    scored = [row for row in good(rows) if row["score"] is not None]
    scored = scored if setting is None else labelled(scored, setting)
    if not scored:
        where = "" if setting is None else f" in setting {setting}"
        raise DataError(f"no row of the results file has a score{where}")
    return scored


def _few(panels: Mapping, what: str = "data sets") -> Mapping:
    """The panels, unless they are too many to draw."""
    if len(panels) > MOST:
        raise UsageError(
            f"the results file has {len(panels)} {what}, of which {MOST} at most can be drawn at"
            " once; narrow it with --setting"
        )
    return panels


def _curves(rows, places: Iterable, label: str, title: str, sizes: bool = False) -> Chart:
    """A column of panels for each data set: the score, and the model's size if known, against
    `places`.

    A line for each method and each combination of other inputs that vary among its runs, except the
    seed and the sizes.
    """
    inputs = columns.of(rows, requested=True)
    hidden = ("lam", "gamma", "seed", "threads", *SIZES)
    # the inputs that come last in the words of a line
    last = [name for name in ("gamma", "lam")[: 1 if sizes else 2] if name in inputs.varying]
    names = [name for name in inputs.varying if name not in hidden] + last
    panels: dict[tuple[str, str], dict[str, dict[float, list[Row]]]] = {}
    for row, place, values in zip(rows, places, inputs.requested):
        if _is_number(place):
            words = [columns.method(row)] + [
                f"{columns.heading(name)} {columns.written(name, values[name])}"
                for name in names
                if values.get(name) is not None
            ]
            lines = panels.setdefault((row["dataset"], row["metric"] or "score"), {})
            lines.setdefault(", ".join(words), {}).setdefault(place, []).append(row)
    several = lambda lines: len({place for line in lines.values() for place in line}) > 1
    panels = {name: lines for name, lines in panels.items() if several(lines)}
    if not panels:
        raise DataError(f"no data set has scores at several values of {label}")
    looks = style.looks(text for lines in _few(panels).values() for text in lines)

    upper, lower = [], []
    for (dataset, metric), lines in panels.items():
        scores, models = (
            [
                curve
                for text, line in lines.items()
                if (curve := _curve(line, quantity, dataset, text, looks[text])).points
            ]
            for quantity in ("score", "model_size")
        )
        with_size = sizes and bool(models)
        head, dress = style.plain(metric), style.log_places
        upper.append(Panel(dataset, "" if with_size else label, head, scores, dress=dress))
        shown = {"curves": models, "x_axis": label} if with_size else {"hidden": True}
        lower.append(Panel(y_axis="model size", dress=style.log_both, **shown))
    notes = ["A band is one standard deviation over the seeds. " + style.machines(rows)]
    drawn = any(not panel.hidden for panel in lower)
    return Chart(title, notes, [upper, lower] if drawn else [upper])


def _curve(line: Mapping[float, list[Row]], quantity: str, dataset: str, text: str, look) -> Curve:
    """The mean at each place, with a band of one standard deviation if there are several runs."""
    means = {place: mean_if_any(row[quantity] for row in line[place]) for place in sorted(line)}
    gid = style.identifier(quantity, dataset, text)
    return mean_curve(means, look, style.plain(text), gid)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# -------------------------------------------------------------------------------------------- grids

_STAR = {
    "marker": "*",
    "color": "white",
    "markeredgecolor": "black",
    "markersize": 9,
    "linestyle": "none",
}


def _heat_panel(
    title: str,
    options: Iterable[str],
    cells: Mapping[tuple, float],
    metric: str | None,
    low: bool,
    gid: str = "",
) -> Panel:
    """Scores over two options for one data set and method as a heat map, with a star on its best
    cell. options: their headings, on the y axis and on the x axis; cells: (first, second) -> score;
    low: whether a low score is better; gid: the identifier of the star in the SVG file.
    """
    up, across = (sorted(set(values)) for values in zip(*cells))
    values = np.array([[cells.get((y, x), np.nan) for x in across] for y in up])
    y, x = np.unravel_index((np.nanargmin if low else np.nanargmax)(values), values.shape)
    heat = Heat(
        [f"{value:.3g}" for value in across],
        [f"{value:.3g}" for value in up],
        values,
        style.plain(metric or "score"),
        "viridis_r" if low else "viridis",
    )
    y_axis, x_axis = map(style.plain, options)
    return Panel(title, x_axis, y_axis, [Curve([x], [y], _STAR, gid=gid)], heat)


def surface(rows, setting=None) -> Chart:
    """The score over a grid of two options as a heat map, with the best marked; for a single run,
    the values that its validation tried.
    """
    rows = _scored(rows, setting)
    grids = _grids(rows) or _validated(rows)
    if not grids:
        raise DataError(
            "a grid needs runs of one method and data set that vary in two options, or one whose"
            " options validation chose"
        )
    panels = [_heat_panel(*grid) for grid in _few(grids, what="grids").values()]
    note = "The star is the best cell; a star at the edge asks for a larger grid."
    lines = in_lines(panels, min(2, len(panels)), Panel(hidden=True))
    return Chart("Score over a grid", [note], lines, 2.6)


def _grids(rows: Sequence[Row]) -> dict[Any, tuple]:
    """The arguments of `_heat_panel` for each data set and method whose runs vary in two numeric
    options.
    """
    groups = grouped(
        ((row["dataset"], columns.method(row), row["metric"]), (row["score"], values))
        for row, values in zip(rows, columns.of(rows).requested)
    )
    grids = {}
    for (dataset, method, metric), runs in groups.items():
        numbers: dict[str, set] = {name: set() for name in ("gamma", "lam", *SIZES)}
        for name, value in (item for _, values in runs for item in values.items()):
            if _is_number(value) and name not in ("seed", "threads"):
                numbers.setdefault(name, set()).add(value)
        pair = [name for name, values in numbers.items() if len(values) > 1][:2]
        scores = grouped(
            (tuple(map(values.get, pair)), score)
            for score, values in runs
            if all(_is_number(values.get(name)) for name in pair)
        )
        if len(pair) == 2:
            means = {place: float(np.mean(values)) for place, values in scores.items()}
            low, headings = columns.low_is_better(metric), map(columns.heading, pair)
            grids[dataset, method, metric] = f"{dataset}, {method}", headings, means, metric, low
    return grids


def _validated(rows: Sequence[Row]) -> dict[Any, tuple]:
    """The same for values tried by the validation of runs, if it had two options; the newest run of
    each data set and method.
    """
    grids: dict[Any, tuple] = {}
    steps = ((row, step) for row in rows for step in row["params"].get("validation") or ())
    for row, step in steps:
        numbers = all(_is_number(value) for tried in step["tried"] for value in tried)
        if len(step["options"]) == 2 and numbers:
            cells = {(y, x): error for y, x, error in step["tried"] if math.isfinite(error)}
            title = f"{row['dataset']}, {row['method']}: validation"
            headings = map(columns.heading, step["options"])
            grid = title, headings, cells, step["error"], True
            grids |= {(row["dataset"], row["method"]): grid} if cells else {}
    return grids


def tune(rows, setting=None) -> Chart:
    """The surface of `rfx tune`, the score over bandwidth and lambda, with a panel for each method
    and kernel. It shows the scores of the last round that the method reached, at its size with the
    most trials, with the best marked.
    """
    groups = grouped(
        ((row["dataset"], row["method"], row["kernel"]), row)
        for row in having(good(rows), "params.gamma", "params.round", "params.path")
        if str(row["params"].get("label")).startswith("tune ")
        and any(score is not None for _, score in row["params"]["path"])
        and _is_number(row["params"]["gamma"])
    )
    if not groups:
        raise DataError(
            "the results file has no trials over a bandwidth; rfx tune --results FILE makes them"
        )
    panels = [
        _trials(", ".join(filter(None, (f"{dataset}: {method}", kernel))), trials)
        for (dataset, method, kernel), trials in groups.items()
    ]
    notes = ["Held-out scores; white: not tried.", style.machines([rows[-1]])]
    lines = in_lines(panels, min(3, len(panels)))
    return Chart("Search over bandwidth and lambda", notes, lines, 2.8)


def _trials(title: str, rows: Sequence[Row]) -> Panel:
    """The scores of the trials of a method."""
    last = max(row["params"]["round"] for row in rows)
    rows = [row for row in rows if row["params"]["round"] == last]
    size = lambda params: params.get("n_grids") or params.get("block_size")
    sizes = [size(row["params"]) or row["n_features"] for row in rows]
    common = max(sizes, key=sizes.count)
    cells = {
        (lam, row["params"]["gamma"]): score
        for row, of in zip(rows, sizes)
        for lam, score in row["params"]["path"]
        if of == common and score is not None
    }
    words = "gamma" + (f" (size {common})" if common else "")
    metric = rows[0]["metric"]
    low = columns.low_is_better(metric)
    return _heat_panel(title, ("lambda", words), cells, metric, low, "tune-best")


FIGURES: dict[str, Callable] = {
    "lambda": lambda_path,
    "features": features,
    "grid": surface,
    "pareto": pareto,
    "tune": tune,
}


# ------------------------------------------------------------------------------------ of a model


def importance(model: Pipeline, setting: None = None) -> Chart:
    """The inputs by their share of the learnt metric, the largest first; DataError if there is
    none.
    """
    importances = model.importances()
    if importances is None:
        raise DataError(
            "the model has no learnt metric, which measures the importance of its inputs; train it"
            " with --metric diagonal or full"
        )
    order = np.argsort(-importances, kind="stable")[:MOST_INPUTS]
    shares, names = importances[order], np.asarray(model.input_names(), object)[order]
    places = np.arange(len(order), 0, -1)
    stem, dots = {"color": "0.7", "linewidth": 0.9}, style.numbered(0) | {"linestyle": "none"}
    curves = [Curve([0.0, share], [place, place], stem) for share, place in zip(shares, places)]

    def dress(axes) -> None:
        axes.set_yticks(places, names)
        axes.set_xlim(left=0.0)

    notes = [
        "The average squared gradient of the predictions by each scaled input, as a share of all:"
        " how much predictions change with an input, not what changes them."
    ]
    if len(importances) > len(order):
        notes.append(f"The first {len(order)} of {len(importances)} inputs.")
    curves.append(Curve(shares, places, dots, gid="importance"))
    panel = Panel("", "share of the metric", "", curves, dress=dress)
    return Chart("What the predictions change with", notes, [[panel]], 0.8 + 0.16 * len(order))


# Figures of a model rather than of rows, by name.
OF_MODELS = {"importance": importance}
