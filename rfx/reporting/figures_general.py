"""Figures of any results file: the score against lambda, over a grid of two options, against
features, and against seconds; the surface of `rfx tune`; and `map-convergence`, which computes its
own numbers.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfx.errors import DataError, UsageError
from rfx.fitting.pipeline import Pipeline
from rfx.records.result import having
from rfx.reporting import columns, convergence, seeds, style
from rfx.reporting.builders import Builder
from rfx.reporting.charts import Chart, Curve, Heat, Panel, in_lines

# Maximum panels; a file with more data sets is narrowed by --setting or by rfx run --only.
MOST = 12
# Maximum curves of a panel, and maximum values of an option in a grid.
MOST_CURVES, MOST_VALUES = 100, 200
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
    data_of = lambda row: (row["dataset"], row["metric"] or "score")
    groups: dict[tuple, list[list]] = {
        data_of(row): [] for row in rows if _seconds([row]) is not None
    }
    for group in seeds.variants(rows):
        if _seconds(group) is not None:
            groups[data_of(group[0])].append(group)
    if not groups:
        raise DataError("no row of the results file has its training seconds")
    looks = style.looks(group[0]["method"] for members in groups.values() for group in members)
    panels = [
        _costs(name, metric, members, looks) for (name, metric), members in _few(groups).items()
    ]
    notes = [
        "Up is better; of rmse down. A point: the mean over runs that differ in the seed alone,"
        " with one standard deviation of the score. " + style.machines(rows)
    ]
    title = "Score against training time, and the Pareto front"
    return Chart(title, notes, in_lines(panels, min(3, len(panels)), Panel(hidden=True)))


def _seconds(rows: Iterable[Mapping]) -> float | None:
    """The mean training seconds of rows, None if they have none."""
    mean = seeds.mean(columns.outcome(row, "seconds_train") for row in rows)
    return mean and mean.value


def _costs(name: str, metric: str, groups: Sequence[list], looks: Mapping) -> Panel:
    """The scores of each method on one data set against their seconds, and the front."""
    costs: dict[str, list[tuple]] = {}
    for group in groups:
        score = seeds.mean_of([row["score"] for row in group])
        costs.setdefault(group[0]["method"], []).append((_seconds(group), score))
    points = [(seconds, score.value) for pairs in costs.values() for seconds, score in pairs]
    look = {"color": "0.4", "linewidth": 0.9, "drawstyle": "steps-post", "zorder": 0}
    xs, ys = zip(*_front(points, metric))
    curves = [Curve(xs, ys, look, "Pareto front", style.identifier("front", name))]
    for method, pairs in costs.items():
        curves.append(
            Curve(
                [seconds for seconds, _ in pairs],
                [score.value for _, score in pairs],
                looks[method] | {"linestyle": "none"},
                style.plain(method),
                style.identifier("points", name, method),
                {seconds: score.around for seconds, score in pairs if score.sd is not None},
                "bars",
            )
        )
    return Panel(name, "training, s", style.plain(metric), curves, dress=_log_places)


def _front(points: Iterable[tuple], metric: str) -> list[tuple]:
    """The (seconds, score) for which no equally fast point is better, ordered by seconds."""
    sign, best, front = (-1 if columns.low_is_better(metric) else 1), -np.inf, []
    for seconds, score in sorted(points, key=lambda point: (point[0], -sign * point[1])):
        if sign * score > best:
            best = sign * score
            front.append((seconds, score))
    return front


def _log_places(axes) -> None:
    if style.log_scale(axes, "x"):
        style.plain_ticks(axes.xaxis)


def _log_both(axes) -> None:
    _log_places(axes)
    style.log_values(axes)


# ------------------------------------------------------------------------------------------- lines


def _scored(rows, setting: str | None) -> list[Mapping]:
    """The rows with a score, of one setting if requested."""
    scored = [
        row
        for row in rows
        if row["status"] == "ok"
        and row["score"] is not None
        and setting in (None, row["params"].get("label"))
    ]
    if not scored:
        where = "" if setting is None else f" in setting {setting}"
        raise DataError(f"no row of the results file has a score{where}")
    return scored


def _few(panels: Mapping) -> Mapping:
    """The panels, unless they are too many to draw."""
    if len(panels) > MOST:
        raise UsageError(
            f"the results file has {len(panels)} data sets, of which {MOST} at most can be drawn at"
            " once; narrow it with --setting"
        )
    return panels


def _curves(rows, places: Iterable, label: str, title: str, sizes: bool = False) -> Chart:
    """A column of panels for each data set: the score, and the model's size if known, against
    `places`.

    A line for each method and each combination of other inputs that vary among its runs, except the
    seed and the sizes.
    """
    panels = _lines(rows, places, ("gamma",) if sizes else ("gamma", "lam"))
    if not panels:
        raise DataError(f"no data set has scores at several values of {label}")
    if any(len(lines) > MOST_CURVES for lines in _few(panels).values()):
        raise UsageError(f"a data set has more than {MOST_CURVES} curves; narrow it with --setting")
    looks = style.looks(text for lines in panels.values() for text in lines)
    scores, models = (
        [
            [
                curve
                for text, line in lines.items()
                for curve in _curve(line, quantity, name, text, looks[text])
            ]
            for (name, _), lines in panels.items()
        ]
        for quantity in ("score", "model_size")
    )
    models = models if sizes else [[] for _ in panels]
    upper = [
        Panel(name, "" if size else label, style.plain(metric), score, dress=_log_places)
        for (name, metric), score, size in zip(panels, scores, models)
    ]
    lower = [
        Panel("", label if size else "", "model size", size, dress=_log_both, hidden=not size)
        for size in models
    ]
    notes = ["A band is one standard deviation over the seeds. " + style.machines(rows)]
    return Chart(title, notes, [upper, lower] if any(models) else [upper])


def _lines(rows, places: Iterable, last: Iterable[str]) -> dict[tuple, dict[str, dict]]:
    """(data set, metric) -> the words of a line -> place -> rows, if there are several places.
    last: the inputs that come last in the words.
    """
    inputs = columns.of(rows, requested=True)
    hidden = ("lam", "gamma", "seed", "threads", *SIZES)
    names = [name for name in inputs.varying if name not in hidden]
    names += [name for name in last if name in inputs.varying]
    panels: dict[tuple, dict[str, dict]] = {}
    for row, place, values in zip(rows, places, inputs.requested):
        if _is_number(place):
            words = [
                f"{columns.heading(name)} {columns.written(name, values[name])}"
                for name in names
                if values.get(name) is not None
            ]
            lines = panels.setdefault((row["dataset"], row["metric"] or "score"), {})
            line = lines.setdefault(", ".join([row["method"], *words]), {})
            line.setdefault(place, []).append(row)
    several = lambda lines: len({place for line in lines.values() for place in line}) > 1
    return {name: lines for name, lines in panels.items() if several(lines)}


def _curve(
    line: Mapping[float, list], quantity: str, dataset: str, text: str, look: Mapping
) -> list[Curve]:
    """The mean at each place, with a band of one standard deviation if there are several runs; no
    curve without values. line: place -> rows.
    """
    means = {
        place: mean
        for place in sorted(line)
        if (mean := seeds.mean(row[quantity] for row in line[place])) is not None
    }
    if not means:
        return []
    band = {place: mean.around for place, mean in means.items()}
    gid = style.identifier(quantity, dataset, text)
    values = [mean.value for mean in means.values()]
    around = band if any(mean.sd for mean in means.values()) else {}
    return [Curve(list(means), values, look, style.plain(text), gid, around)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# -------------------------------------------------------------------------------------------- grids


@dataclass(frozen=True)
class Grid:
    """Scores over two options for one data set and method. options: their headings, on the y axis
    and on the x axis; cells: (first, second) -> score.
    """

    title: str
    options: tuple[str, str]
    cells: Mapping[tuple, float]
    metric: str
    low: bool  # whether a low score is better
    gid: str = ""  # the identifier of the star in the SVG file

    @property
    def sides(self) -> list[list]:
        """The values of both options."""
        return [sorted(set(values)) for values in zip(*self.cells)]

    def panel(self) -> Panel:
        """The heat map, with a star on its best cell."""
        up, across = self.sides
        values = np.array([[self.cells.get((y, x), np.nan) for x in across] for y in up])
        y, x = np.unravel_index((np.nanargmin if self.low else np.nanargmax)(values), values.shape)
        colours = "viridis_r" if self.low else "viridis"
        heat = Heat(_ticks(across), _ticks(up), values, style.plain(self.metric), colours)
        first, second = map(style.plain, self.options)
        return Panel(self.title, second, first, [Curve([x], [y], _STAR, gid=self.gid)], heat)


_STAR = {
    "marker": "*",
    "color": "white",
    "markeredgecolor": "black",
    "markersize": 9,
    "linestyle": "none",
}


def _ticks(values: Iterable[float]) -> list[str]:
    return [f"{value:.3g}" for value in values]


def surface(rows, setting=None) -> Chart:
    """The score over a grid of two options as a heat map, with the best marked; for a single run,
    the values that its validation tried.
    """
    rows = _scored(rows, setting)
    grids = _grids(rows) or _validated(rows)
    if any(len(values) > MOST_VALUES for grid in grids for values in grid.sides):
        raise UsageError(
            f"a grid has more than {MOST_VALUES} values of an option; narrow it with --setting"
        )
    if not grids:
        raise DataError(
            "a grid needs runs of one method and data set that vary in two options, or one whose"
            " options validation chose"
        )
    if len(grids) > MOST:
        raise UsageError(
            f"there are {len(grids)} grids to draw, {MOST} at most; narrow them with --setting"
        )
    panels = in_lines([grid.panel() for grid in grids], min(2, len(grids)), Panel(hidden=True))
    note = "The star is the best cell; a star at the edge asks for a larger grid."
    return Chart("Score over a grid", [note], panels, 2.6)


def _grids(rows) -> list[Grid]:
    """The grid of each data set and method whose runs vary in two numeric options."""
    groups: dict[tuple, list] = {}
    for row, values in zip(rows, columns.of(rows).requested):
        group = row["dataset"], row["method"], row["metric"]
        numbers = {name: value for name, value in values.items() if _is_number(value)}
        groups.setdefault(group, []).append((row["score"], numbers))
    grids = []
    for (dataset, method, metric), runs in groups.items():
        pair = _two([values for _, values in runs])
        scores: dict[tuple, list] = {}
        for score, values in runs:
            if values.keys() >= set(pair):
                scores.setdefault(tuple(values[name] for name in pair), []).append(score)
        if pair:
            first, second = map(columns.heading, pair)
            means = {place: float(np.mean(values)) for place, values in scores.items()}
            low = columns.low_is_better(metric)
            grids.append(Grid(f"{dataset}, {method}", (first, second), means, metric, low))
    return grids


def _two(runs: Sequence[Mapping]) -> Sequence[str]:
    """The first two options that vary; none if fewer do."""
    names = dict.fromkeys(("gamma", "lam", *SIZES, *(name for values in runs for name in values)))
    varying = [
        name
        for name in names
        if name not in ("seed", "threads")
        and len({values[name] for values in runs if name in values}) > 1
    ]
    return varying[:2] if len(varying) > 1 else ()


def _validated(rows) -> list[Grid]:
    """The same for values tried by the validation of runs, if it had two options; the newest run of
    each data set and method.
    """
    grids = {}
    for row in rows:
        for step in row["params"].get("validation") or ():
            numbers = all(_is_number(value) for tried in step["tried"] for value in tried)
            if len(step["options"]) == 2 and numbers:
                cells = {(y, x): error for y, x, error in step["tried"] if math.isfinite(error)}
                first, second = map(columns.heading, step["options"])
                title = f"{row['dataset']}, {row['method']}: validation"
                if cells:
                    grid = Grid(title, (first, second), cells, step["error"], True)
                    grids[row["dataset"], row["method"]] = grid
    return list(grids.values())


def tune(rows, setting=None) -> Chart:
    """The surface of `rfx tune`, the score over bandwidth and lambda, with a panel for each method
    and kernel. It shows the scores of the last round that the method reached, at its size with the
    most trials, with the best marked.
    """
    groups: dict[tuple, list] = {}
    for row in having(rows, "params.gamma", "params.round", "params.path"):
        params = row["params"]
        tried = any(score is not None for _, score in params["path"])
        of_tune = row["status"] == "ok" and str(params.get("label")).startswith("tune ")
        if of_tune and tried and _is_number(params["gamma"]):
            groups.setdefault((row["dataset"], row["method"], row["kernel"]), []).append(row)
    if not groups:
        raise DataError(
            "the results file has no trials over a bandwidth; rfx tune --results FILE makes them"
        )
    panels = [
        _trials(", ".join(filter(None, (f"{dataset}: {method}", kernel))), trials).panel()
        for (dataset, method, kernel), trials in groups.items()
    ]
    notes = ["Held-out scores; white: not tried.", style.machines([rows[-1]])]
    lines = in_lines(panels, min(3, len(panels)))
    return Chart("Search over bandwidth and lambda", notes, lines, 2.8)


def _trials(title: str, rows: Sequence[Mapping]) -> Grid:
    """The scores of the trials of a method."""
    last = max(row["params"]["round"] for row in rows)
    rows = [row for row in rows if row["params"]["round"] == last]
    sizes = [_size(row) for row in rows]
    common = max(sizes, key=sizes.count)
    cells = {
        (lam, row["params"]["gamma"]): score
        for row, size in zip(rows, sizes)
        for lam, score in row["params"]["path"]
        if size == common and score is not None
    }
    metric = rows[0]["metric"]
    words = "gamma" + (f" (size {common})" if common else "")
    low = columns.low_is_better(metric)
    return Grid(title, ("lambda", words), cells, metric or "score", low, "tune-best")


def _size(row: Mapping) -> int | None:
    params = row["params"]
    return params.get("n_grids") or params.get("block_size") or row["n_features"]


# ---------------------------------------------------------------------------------- map-convergence


def map_convergence(rows) -> Chart:
    """A panel for each family of maps: the median error over the seeds, the range over them as a
    band, and the slope in the legend.
    """
    panels = [_approaches(family, members) for family, members in convergence.measure_all().items()]
    title = "Error of the kernel that random features estimate, and its slope"
    return Chart(title, convergence.NOTES, in_lines(panels, 2), 3.6, legend=False)


def _approaches(family: str, members: Sequence[convergence.Approach]) -> Panel:
    curves = []
    for number, one in enumerate(members):
        ends = zip(one.errors.min(axis=1).tolist(), one.errors.max(axis=1).tolist())
        look, label = style.numbered(number), f"{one.name}: {one.slope:.2f}"
        gid, band = (
            style.identifier("map-convergence", one.name),
            dict(zip(one.sizes.tolist(), ends)),
        )
        curves.append(Curve(one.sizes, one.medians, look, label, gid, band, shade=0.12))
    first = max(members, key=lambda one: one.medians[0])
    sizes = first.sizes[[0, -1]]
    look = {"color": "0.5", "linestyle": ":", "linewidth": 0.9}
    curves.append(Curve(sizes, first.medians[0] * (sizes / sizes[0]) ** -0.5, look, "slope -1/2"))

    def dress(axes) -> None:
        style.sizes_axis(axes, convergence.SIZES)
        style.log_values(axes)
        axes.legend(loc="lower left", frameon=False, fontsize=6.5)

    x_axis, y_axis = "features D (grids, landmarks)", "relative error of the kernel"
    return Panel(family, x_axis, y_axis, curves, dress=dress)


FIGURES: dict[str, Callable] = {
    "lambda": lambda_path,
    "features": features,
    "grid": surface,
    "pareto": pareto,
    "tune": tune,
    "map-convergence": Builder("map-convergence", map_convergence, alone=True),
}


# ------------------------------------------------------------------------------------ of a model


def importance(model: Pipeline) -> Chart:
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
    names, shares = [model.input_names()[place] for place in order], importances[order]
    places = np.arange(len(order), 0, -1)
    stem = {"color": "0.7", "linewidth": 0.9}
    curves = [Curve([0.0, share], [place, place], stem) for share, place in zip(shares, places)]
    dots = style.numbered(0) | {"linestyle": "none"}
    curves.append(Curve(shares, places, dots, gid="importance"))

    def dress(axes) -> None:
        axes.set_yticks(places, names)
        axes.set_xlim(left=0.0)

    notes = [
        "The average squared gradient of the predictions by each scaled input, as a share of all:"
        " how much predictions change with an input, not what changes them."
    ]
    if len(importances) > len(order):
        notes.append(f"The first {len(order)} of {len(importances)} inputs.")
    panel = Panel("", "share of the metric", "", curves, dress=dress)
    return Chart("What the predictions change with", notes, [[panel]], 0.8 + 0.16 * len(order))


# Figures of a model rather than of rows, by name.
OF_MODELS = {"importance": importance}
