"""Figures of any results file: the score against lambda, over a grid of two options, against
features, and against seconds; the surface of `rfx tune`; and `map-convergence`, which computes its
own numbers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

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


def lambda_path(rows, setting=None):
    """Score and model size against lambda, a line per method. Each point is the mean over the runs
    of a line with the same lambda, such as several seeds.
    """
    found = _scored(rows, setting)
    # lambdas chosen by the runs themselves are not a path
    return _curves(
        found,
        [one.get("lam") for one in columns.of(found).asked],
        "lambda",
        "Score and size along lambda",
        sizes=True,
    )


def features(rows, setting=None):
    """Score against the number of features (of grids, of rows in a block), a line per method."""
    found = _scored(rows, setting)
    sizes = [
        next((one[name] for name in SIZES if isinstance(one.get(name), int)), None)
        for one in columns.of(found).values
    ]
    return _curves(found, sizes, "features D, grids or rows of a block R", "Score against size")


def pareto(rows, setting=None):
    """Score against training seconds, a point for each group of runs that differ only in the seed.
    The line is the Pareto front: nothing faster is better.
    """
    rows = _scored(rows, setting)
    points: dict[tuple, list[_Paid]] = {}
    for name, own in _panels(rows).items():
        for group in seeds.variants(own):
            seconds = seeds.mean(columns.outcome(row, "seconds_train") for row in group)
            if seconds is not None:
                score = seeds.mean_of([row["score"] for row in group])
                points.setdefault(name, []).append(_Paid(seconds.value, score, group[0]["method"]))
    if not points:
        raise DataError("no row of the results file has its training seconds")
    looks = style.looks(one.method for own in points.values() for one in own)
    panels = [_paid(name, metric, own, looks) for (name, metric), own in points.items()]
    notes = [
        "Up is better; of rmse down. A point: the mean over runs that differ in the seed alone,"
        " with one standard deviation of the score. " + style.machines(rows)
    ]
    title = "Score against training time, and the Pareto front"
    return Chart(title, notes, in_lines(panels, min(3, len(panels)), Panel(hidden=True)))


class _Paid(NamedTuple):
    """The cost in seconds of a score of a group of runs."""

    seconds: float
    score: seeds.Mean
    method: str


def _paid(name, metric, points: list[_Paid], looks) -> Panel:
    """The scores of each method on one data set against their cost, and the front."""
    front = _front([(one.seconds, one.score.value) for one in points], metric)
    look = {"color": "0.4", "linewidth": 0.9, "drawstyle": "steps-post", "zorder": 0}
    xs, ys = zip(*front)
    drawn = [Curve(xs, ys, look, "Pareto front", style.identifier("front", name))]
    for method in dict.fromkeys(one.method for one in points):
        mine = [one for one in points if one.method == method]
        around = {
            one.seconds: (one.score.value - one.score.sd, one.score.value + one.score.sd)
            for one in mine
            if one.score.sd is not None
        }
        drawn.append(
            Curve(
                [one.seconds for one in mine],
                [one.score.value for one in mine],
                looks[method] | {"linestyle": "none"},
                style.plain(method),
                style.identifier("points", name, method),
                around,
                "bars",
            )
        )
    return Panel(name, "training, s", style.plain(metric), drawn, dress=_log_places)


def _log_places(axes) -> None:
    if style.log_scale(axes, "x"):
        style.plain_ticks(axes.xaxis)


def surface(rows, setting=None):
    """The score over a grid of two options as a heat map, with the best marked; for a single run,
    the values that its validation tried.
    """
    found = _scored(rows, setting)
    grids = _grids(found) or _validated(found)
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
    return Chart(
        "Score over a grid",
        ["The star is the best cell; a star at the edge asks for a larger grid."],
        panels,
        2.6,
    )


@dataclass(frozen=True)
class Grid:
    """Scores over two options for one data set and method. options: their headings; cells: (first,
    second) -> score.
    """

    title: str
    options: tuple[str, str]
    cells: Mapping[tuple, float]
    metric: str
    low: bool  # whether a low score is better

    @property
    def sides(self) -> tuple[list, list]:
        """The values of both options."""
        return sorted({first for first, _ in self.cells}), sorted(
            {second for _, second in self.cells}
        )

    def panel(self) -> Panel:
        """The heat map, with a star on its best cell."""
        lines, across = self.sides
        values = np.array(
            [[self.cells.get((one, other), np.nan) for other in across] for one in lines]
        )
        best = np.unravel_index((np.nanargmin if self.low else np.nanargmax)(values), values.shape)
        star = {
            "marker": "*",
            "color": "white",
            "markeredgecolor": "black",
            "markersize": 9,
            "linestyle": "none",
        }
        heat = Heat(
            _ticks(across),
            _ticks(lines),
            values,
            style.plain(self.metric),
            "viridis_r" if self.low else "viridis",
        )
        first, second = map(style.plain, self.options)
        return Panel(self.title, second, first, [Curve([best[1]], [best[0]], star)], heat)


def _ticks(values) -> list[str]:
    return [f"{value:.3g}" for value in values]


def _scored(rows, setting) -> list[dict]:
    """The rows with a score, of one setting if requested."""
    found = [row for row in rows if row["status"] == "ok" and row["score"] is not None]
    if setting is not None:
        found = [row for row in found if row["params"].get("label") == setting]
    if not found:
        raise DataError(
            "no row of the results file has a score"
            + ("" if setting is None else f" in setting {setting}")
        )
    return found


def _panels(rows) -> dict:
    """Rows by (data set, metric)."""
    found: dict[tuple, list] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["metric"] or "score"), []).append(row)
    _refuse_many(found)
    return found


def _refuse_many(panels):
    if len(panels) > MOST:
        raise UsageError(
            f"the results file has {len(panels)} data sets, of which {MOST} at most can be drawn at"
            " once; narrow it with --setting"
        )


def _curves(rows, places, label, title, sizes=False):
    """A column of panels for each data set: the score, and the model's size if known, against
    `places`.

    A line for each method and each combination of other inputs that vary among its runs, except the
    seed and the sizes.
    """
    panels = _lines(rows, places, sizes)
    if not panels:
        raise DataError(f"no data set has scores at several values of {label}")
    _refuse_many(panels)
    if any(len(lines) > MOST_CURVES for lines in panels.values()):
        raise UsageError(f"a data set has more than {MOST_CURVES} curves; narrow it with --setting")
    sized = sizes and any(
        row["model_size"] is not None
        for lines in panels.values()
        for own in lines.values()
        for _, row in own
    )
    looks = style.looks(
        _look_of(text, own) for lines in panels.values() for text, own in lines.items()
    )
    scores, others = [], []
    for (name, metric), lines in panels.items():
        score = [
            curve
            for text, own in lines.items()
            for curve in _curve(own, "score", name, text, looks)
        ]
        size = (
            [
                curve
                for text, own in lines.items()
                for curve in _curve(own, "model_size", name, text, looks)
            ]
            if sized
            else []
        )
        scores.append(
            Panel(name, "" if size else label, style.plain(metric), score, dress=_log_places)
        )
        others.append(
            Panel("", label if size else "", "model size", size, dress=_log_both, hidden=not size)
        )
    notes = ["A band is one standard deviation over the seeds. " + style.machines(rows)]
    return Chart(title, notes, [scores, others] if sized else [scores])


def _log_both(axes) -> None:
    _log_places(axes)
    style.log_values(axes)


def _lines(rows, places, sizes) -> dict[tuple, dict[str, list[tuple]]]:
    """(data set, metric) -> the words of a line -> (place, row) of its points, if there are several
    places.
    """
    given = columns.of(rows, asked=True)
    others = [
        name for name in given.varying if name not in ("lam", "gamma", "seed", "threads", *SIZES)
    ]
    others += [
        name for name in (("gamma",) if sizes else ("gamma", "lam")) if name in given.varying
    ]
    known: dict[tuple, dict[str, list[tuple]]] = {}
    for row, place, values in zip(rows, places, given.asked):
        if _number(place):
            words = ", ".join([row["method"], *_said(values, others)])
            lines = known.setdefault((row["dataset"], row["metric"] or "score"), {})
            lines.setdefault(words, []).append((place, row))
    return {
        name: lines
        for name, lines in known.items()
        if len({place for own in lines.values() for place, _ in own}) > 1
    }


def _said(values, names) -> list[str]:
    return [
        f"{columns.heading(name)} {columns.written(name, values[name])}"
        for name in names
        if values.get(name) is not None
    ]


def _look_of(text, points) -> str:
    """The name whose style a line has: its method's, or its own if the method has several lines."""
    method = points[0][1]["method"]
    return method if text == method else text


def _curve(points, quantity, dataset, text, looks) -> list[Curve]:
    """The mean at each place, with a band of one standard deviation if there are several runs.
    points: (place, row) of a line.
    """
    by_place: dict[float, list] = {}
    for place, row in points:
        by_place.setdefault(place, []).append(row[quantity])
    known = {
        place: mean
        for place in sorted(by_place)
        if (mean := seeds.mean(by_place[place])) is not None
    }
    if not known:
        return []
    band = {
        place: (mean.value - (mean.sd or 0), mean.value + (mean.sd or 0))
        for place, mean in known.items()
    }
    around = band if any(mean.sd for mean in known.values()) else {}
    gid = style.identifier(quantity, dataset, text)
    return [
        Curve(
            list(known),
            [mean.value for mean in known.values()],
            looks[_look_of(text, points)],
            style.plain(text),
            gid,
            around,
        )
    ]


def _front(points, metric) -> list[tuple]:
    """The (seconds, score) for which no equally fast point is better, ordered by seconds."""
    sign, best, front = (-1 if metric == "rmse" else 1), -np.inf, []
    for seconds, score in sorted(points, key=lambda point: (point[0], -sign * point[1])):
        if sign * score > best:
            best = sign * score
            front.append((seconds, score))
    return front


def _grids(rows) -> list[Grid]:
    """The grid of each data set and method whose runs vary in two numeric options."""
    groups: dict[tuple, list] = {}
    for row, values in zip(rows, columns.of(rows).asked):
        groups.setdefault((row["dataset"], row["method"], row["metric"]), []).append((row, values))
    found = []
    for (dataset, method, metric), own in groups.items():
        pair = _two([values for _, values in own])
        cells: dict[tuple, list] = {}
        for row, values in own:
            if pair and _number(values.get(pair[0])) and _number(values.get(pair[1])):
                cells.setdefault((values[pair[0]], values[pair[1]]), []).append(row["score"])
        if pair:
            means = {place: float(np.mean(scores)) for place, scores in cells.items()}
            headings = (columns.heading(pair[0]), columns.heading(pair[1]))
            found.append(Grid(f"{dataset}, {method}", headings, means, metric, metric == "rmse"))
    return found


def _two(given: list[dict]) -> tuple[str, str] | None:
    """The first two numeric options that vary."""
    numbers = [
        name
        for name in dict.fromkeys(name for values in given for name in values)
        if name not in ("seed", "threads")
        and len({values[name] for values in given if _number(values.get(name))}) > 1
    ]
    first = [name for name in ("gamma", "lam", *SIZES) if name in numbers]
    order = first + [name for name in numbers if name not in first]
    return (order[0], order[1]) if len(order) > 1 else None


def _validated(rows) -> list[Grid]:
    """The same for values tried by the validation of runs, if it had two options; the newest run of
    each data set and method.
    """
    found = {}
    for row in rows:
        for step in row["params"].get("validation") or ():
            if len(step["options"]) == 2 and all(
                _number(value) for tried in step["tried"] for value in tried
            ):
                cells = {
                    (one, other): error
                    for one, other, error in step["tried"]
                    if math.isfinite(error)
                }
                if cells:
                    title = f"{row['dataset']}, {row['method']}: validation"
                    first, second = map(columns.heading, step["options"])
                    found[row["dataset"], row["method"]] = Grid(
                        title, (first, second), cells, step["error"], True
                    )
    return list(found.values())


def _number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# --------------------------------------------------------------------------------------------- tune


def tune(rows, setting=None):
    """The surface of `rfx tune`, the score over bandwidth and lambda, with a panel for each method
    and kernel. It shows the scores of the last round that the method reached, at its size with the
    most trials, with the best marked.
    """
    groups: dict[tuple, list[dict]] = {}
    for row in having(rows, "params.gamma", "params.round", "params.path"):
        gamma = row["params"]["gamma"]
        tried = any(score is not None for _, score in row["params"]["path"])
        if (
            row["status"] == "ok"
            and str(row["params"].get("label")).startswith("tune ")
            and isinstance(gamma, (int, float))
            and tried
        ):
            groups.setdefault((row["dataset"], row["method"], row["kernel"]), []).append(row)
    if not groups:
        raise DataError(
            "the results file has no trials over a bandwidth; rfx tune --results FILE makes them"
        )
    panels = [
        _trials(", ".join(filter(None, (f"{dataset}: {method}", kernel))), own)
        for (dataset, method, kernel), own in groups.items()
    ]
    notes = ["Held-out scores; white: not tried.", style.machines([rows[-1]])]
    return Chart(
        "Search over bandwidth and lambda", notes, in_lines(panels, min(3, len(panels))), 2.8
    )


def _trials(title, rows) -> Panel:
    last = max(row["params"]["round"] for row in rows)
    rows = [row for row in rows if row["params"]["round"] == last]
    sizes = [_size(row) for row in rows]
    common = max(sizes, key=sizes.count)
    rows = sorted(
        (row for row in rows if _size(row) == common), key=lambda row: row["params"]["gamma"]
    )
    lams = sorted({lam for row in rows for lam, _ in row["params"]["path"]})
    values = np.full((len(lams), len(rows)), np.nan)
    for column, row in enumerate(rows):
        for lam, score in row["params"]["path"]:
            values[lams.index(lam), column] = np.nan if score is None else score
    low = rows[0]["metric"] in ("rmse", "log_loss")
    best = np.unravel_index((np.nanargmin if low else np.nanargmax)(values), values.shape)
    star = {"marker": "*", "color": "#D55E00", "markersize": 9, "linestyle": ""}
    gammas = [f"{row['params']['gamma']:.3g}" for row in rows]
    heat = Heat(
        gammas,
        [f"{lam:g}" for lam in lams],
        values,
        style.plain(rows[0]["metric"] or "score"),
        "viridis_r" if low else "viridis",
    )
    words = "gamma" + (f" (size {common})" if common else "")
    return Panel(title, words, "lambda", [Curve([best[1]], [best[0]], star, gid="tune-best")], heat)


def _size(row):
    return next(
        (row["params"][name] for name in ("n_grids", "block_size") if name in row["params"]),
        row["n_features"],
    )


# ---------------------------------------------------------------------------------- map-convergence


def map_convergence(rows):
    """A panel for each family of maps: the median error over the seeds, the range over them as a
    band, and the slope in the legend.
    """
    panels = [_approaches(family, members) for family, members in convergence.measure_all().items()]
    title = "Error of the kernel that random features estimate, and its slope"
    return Chart(title, convergence.NOTES, in_lines(panels, 2), 3.6, legend=False)


def _approaches(family, members) -> Panel:
    curves = []
    for number, one in enumerate(members):
        band = dict(
            zip(
                one.sizes.tolist(),
                zip(one.errors.min(axis=1).tolist(), one.errors.max(axis=1).tolist()),
            )
        )
        gid = style.identifier("map-convergence", one.name)
        curves.append(
            Curve(
                one.sizes,
                one.medians,
                style.numbered(number),
                f"{one.name}: {one.slope:.2f}",
                gid,
                band,
                shade=0.12,
            )
        )
    first = max(members, key=lambda one: one.medians[0])
    sizes = first.sizes[[0, -1]]
    look = {"color": "0.5", "linestyle": ":", "linewidth": 0.9}
    curves.append(Curve(sizes, first.medians[0] * (sizes / sizes[0]) ** -0.5, look, "slope -1/2"))

    def dress(axes):
        style.sizes_axis(axes, convergence.SIZES)
        style.log_values(axes)
        axes.legend(loc="lower left", frameon=False, fontsize=6.5)

    return Panel(
        family, "features D (grids, landmarks)", "relative error of the kernel", curves, dress=dress
    )


FIGURES = {
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
    found = model.importances()
    if found is None:
        raise DataError(
            "the model has no learnt metric, which measures the importance of its inputs; train it"
            " with --metric diagonal or full"
        )
    order = np.argsort(-found, kind="stable")[:MOST_INPUTS]
    names, shares = [model.input_names()[place] for place in order], found[order]
    places = np.arange(len(order), 0, -1)
    look = style.numbered(0) | {"linestyle": "none"}
    curves = [
        Curve([0.0, share], [place, place], {"color": "0.7", "linewidth": 0.9})
        for share, place in zip(shares, places)
    ]
    curves.append(Curve(shares, places, look, gid="importance"))

    def dress(axes) -> None:
        axes.set_yticks(places, names)
        axes.set_xlim(left=0.0)

    notes = [
        "The average squared gradient of the predictions by each scaled input, as a share of all:"
        " how much predictions change with an input, not what changes them."
    ]
    if len(found) > len(order):
        notes.append(f"The first {len(order)} of {len(found)} inputs.")
    panel = Panel("", "share of the metric", "", curves, dress=dress)
    return Chart("What the predictions change with", notes, [[panel]], 0.8 + 0.16 * len(order))


# Figures of a model rather than of rows, by name.
OF_MODELS = {"importance": importance}
