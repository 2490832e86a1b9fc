"""Figures of any results file: the score along lambda, over a grid of two options, against features, and against seconds."""

import itertools
import math

import numpy as np

from rfx.errors import DataError, UsageError
from rfx.reporting import columns, seeds, style

# Most panels; a file with more data sets is narrowed by --setting, or by rfx run --only.
MOST = 12
# Most curves of a panel, and values of an option in a grid.
MOST_CURVES, MOST_VALUES = 100, 200
SIZES = ("n_features", "n_grids", "block_size")


def lambda_path(rows, setting=None):
    """Score and model size against lambda: a line a method, the mean over what differs in nothing else, such as the seed."""
    found = _scored(rows, setting)
    values = columns.of(found).values
    return _curves(found, [one.get("lam") for one in values], "lambda", "Score and size along lambda", sizes=True)


def features(rows, setting=None):
    """Score against the number of features (of grids, of rows in a block): a line a method."""
    found = _scored(rows, setting)
    sizes = [next((one[name] for name in SIZES if isinstance(one.get(name), int)), None) for one in columns.of(found).values]
    return _curves(found, sizes, "features D, grids or rows of a block R", "Score against size")


def pareto(rows, setting=None):
    """Score against training seconds, a point a run or a mean over seeds; the line is the Pareto front: nothing quicker is better."""
    rows = _scored(rows, setting)
    points: dict[tuple, list] = {}
    for name, own in _panels(rows).items():
        for group in seeds.variants(own):
            seconds = seeds.mean(columns.outcome(row, "seconds_train") for row in group)
            if seconds is not None:
                score = seeds.mean(row["score"] for row in group)
                points.setdefault(name, []).append((seconds.value, score.value, group[0]["method"]))
    if not points:
        raise DataError("no row of the results file has the seconds of its training")
    figure, axes = style.grid(-(-len(points) // 3), min(3, len(points)))
    notes = []
    for axis, ((name, metric), own) in itertools.zip_longest(axes.flat, points.items(), fillvalue=((None, None), None)):
        if own is None:
            axis.set_visible(False)
            continue
        for method in dict.fromkeys(method for *_, method in own):
            mine = [(seconds, score) for seconds, score, by in own if by == method]
            look = style.look(method) | {"linestyle": "none"}
            axis.plot(*zip(*mine), **look, label=style.plain(method), gid=style.identifier("points", name, method))
        front = _front([(seconds, score) for seconds, score, _ in own], metric)
        axis.plot(*zip(*front), color="0.4", linewidth=0.9, drawstyle="steps-post", zorder=0, gid=style.identifier("front", name))
        if style.log_scale(axis, "x"):
            style.plain_ticks(axis.xaxis)
        axis.set_xlabel("training, s")
        axis.set_ylabel(style.plain(metric))
        style.head(axis, name)
    notes.append("Up is better; of rmse down. A point: the mean over runs that differ in the seed alone. " + style.machines(rows))
    style.finish(figure, "Score against training time, and the Pareto front", notes)
    return figure


def surface(rows, setting=None):
    """The score over a grid of two options as a heat map, the best marked; of one run, what its validation tried."""
    found = _scored(rows, setting)
    grids = _grids(found) or _validated(found)
    if any(len(values) > MOST_VALUES for grid in grids for values in _sides(grid)):
        raise UsageError(f"a grid has more than {MOST_VALUES} values of an option; narrow it with --setting")
    if not grids:
        raise DataError("a grid needs runs of one method and data set that vary in two options, or one whose options validation chose")
    if len(grids) > MOST:
        raise UsageError(f"there are {len(grids)} grids to draw, {MOST} at most; narrow them with --setting")
    figure, axes = style.grid(-(-len(grids) // 2), min(2, len(grids)), height=2.6)
    for axis, grid in itertools.zip_longest(axes.flat, grids):
        if grid is None:
            axis.set_visible(False)
            continue
        title, (first, second), cells, metric, best = grid
        lines, across = _sides(grid)
        image = np.array([[cells.get((one, other), np.nan) for other in across] for one in lines])
        shown = axis.imshow(image, origin="lower", aspect="auto", cmap="viridis" if best is np.nanargmax else "viridis_r")
        axis.set_xticks(range(len(across)), [f"{value:.3g}" for value in across], rotation=45)
        axis.set_yticks(range(len(lines)), [f"{value:.3g}" for value in lines])
        place = np.unravel_index(best(image), image.shape)
        axis.plot(place[1], place[0], marker="*", color="white", markeredgecolor="black", markersize=9, linestyle="none")
        axis.grid(False)
        axis.set_xlabel(style.plain(second))
        axis.set_ylabel(style.plain(first))
        figure.colorbar(shown, ax=axis, label=style.plain(metric))
        style.head(axis, title)
    style.finish(figure, "Score over a grid", ["The star is the best cell; a star at the edge asks for a larger grid."])
    return figure


def _scored(rows, setting) -> list[dict]:
    """The rows with a score, of one setting where one is asked for."""
    found = [row for row in rows if row["status"] == "ok" and row["score"] is not None]
    if setting is not None:
        found = [row for row in found if row["params"].get("label") == setting]
    if not found:
        raise DataError("no row of the results file has a score" + ("" if setting is None else f" in setting {setting}"))
    return found


def _sides(grid) -> tuple[list, list]:
    """The values of both options of a grid."""
    cells = grid[2]
    return sorted({key[0] for key in cells}), sorted({key[1] for key in cells})


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
            f"the results file has {len(panels)} data sets, of which {MOST} at most can be drawn at once; narrow it with --setting"
        )


def _curves(rows, places, label, title, sizes=False):
    """A column of panels for each data set: the score, and the model's size where it is known, against `places`.

    A line for each method and each combination of what else varies among its runs, but the seed and the sizes.
    """
    given = columns.of(rows)
    others = [name for name in given.varying if name not in ("lam", "gamma", "seed", "threads", *SIZES)]
    others += [name for name in (("gamma",) if sizes else ("gamma", "lam")) if name in given.varying]
    # (data set, metric) -> the words of a line -> (place, row) of its points
    known: dict[tuple, dict[str, list[tuple]]] = {}
    for row, place, values in zip(rows, places, given.asked):
        if _number(place):
            words = ", ".join([row["method"], *_said(values, others)])
            lines = known.setdefault((row["dataset"], row["metric"] or "score"), {})
            lines.setdefault(words, []).append((place, row))
    panels = {name: lines for name, lines in known.items() if len({place for own in lines.values() for place, _ in own}) > 1}
    if not panels:
        raise DataError(f"no data set has scores at several values of {label}")
    _refuse_many(panels)
    if any(len(lines) > MOST_CURVES for lines in panels.values()):
        raise UsageError(f"a data set has more than {MOST_CURVES} curves; narrow it with --setting")
    sized = sizes and any(row["model_size"] is not None for lines in panels.values() for own in lines.values() for _, row in own)
    figure, axes = style.grid(2 if sized else 1, len(panels))
    for column, ((name, metric), lines) in enumerate(panels.items()):
        for line, (quantity, words) in enumerate([("score", metric), ("model_size", "model size")][: 1 + sized]):
            axis = axes[line][column]
            for text, own in lines.items():
                _curve(axis, own, quantity, name, text)
            if style.log_scale(axis, "x"):
                style.plain_ticks(axis.xaxis)
            axis.set_ylabel(style.plain(words))
            if quantity == "model_size":
                axis.set_visible(bool(axis.get_lines()))
                style.log_values(axis)
            if line == 0:
                style.head(axis, name)
        lowest = axes[-1][column] if axes[-1][column].get_visible() else axes[0][column]
        lowest.set_xlabel(label)
    style.finish(figure, title, ["A band is one standard deviation over the seeds. " + style.machines(rows)])
    return figure


def _said(values, names) -> list[str]:
    return [f"{columns.heading(name)} {columns.written(name, values[name])}" for name in names if values.get(name) is not None]


def _curve(axis, points, quantity, dataset, text):
    """The mean at each place, with a band of one standard deviation; points: (place, row) of a line."""
    method = points[0][1]["method"]
    name = method if text == method else text  # several lines of one method have looks of their own
    by_place: dict[float, list] = {}
    for place, row in points:
        by_place.setdefault(place, []).append(row[quantity])
    means = [(place, seeds.mean(by_place[place])) for place in sorted(by_place)]
    drawn = [(place, mean) for place, mean in means if mean is not None]
    if not drawn:
        return
    places = [place for place, _ in drawn]
    gid = style.identifier(quantity, dataset, text)
    axis.plot(places, [mean.value for _, mean in drawn], **style.look(name), label=style.plain(text), gid=gid)
    if any(mean.sd for _, mean in drawn):
        style.band(axis, places, *([mean.value + sign * (mean.sd or 0) for _, mean in drawn] for sign in (-1, 1)), name)


def _front(points, metric) -> list[tuple]:
    """The (seconds, score) that nothing as quick is better than, by seconds."""
    sign, best, front = (-1 if metric == "rmse" else 1), -np.inf, []
    for seconds, score in sorted(points, key=lambda point: (point[0], -sign * point[1])):
        if sign * score > best:
            best = sign * score
            front.append((seconds, score))
    return front


def _grids(rows) -> list[tuple]:
    """(title, two options, cells, metric, best) of each data set and method whose runs vary in two numbers."""
    groups: dict[tuple, list] = {}
    for row, values in zip(rows, columns.of(rows).values):
        groups.setdefault((row["dataset"], row["method"], row["metric"]), []).append((row, values))
    found = []
    for (dataset, method, metric), own in groups.items():
        numbers = [
            name
            for name in dict.fromkeys(name for _, values in own for name in values)
            if name not in ("seed", "threads") and len({values[name] for _, values in own if _number(values.get(name))}) > 1
        ]
        pair = [name for name in ("gamma", "lam", *SIZES) if name in numbers] + [
            name for name in numbers if name not in ("gamma", "lam", *SIZES)
        ]
        if len(pair) < 2:
            continue
        cells: dict[tuple, list] = {}
        for row, values in own:
            if _number(values.get(pair[0])) and _number(values.get(pair[1])):
                cells.setdefault((values[pair[0]], values[pair[1]]), []).append(row["score"])
        best = np.nanargmin if metric == "rmse" else np.nanargmax
        heads = [columns.heading(name) for name in pair[:2]]
        found.append((f"{dataset}, {method}", heads, {place: float(np.mean(scores)) for place, scores in cells.items()}, metric, best))
    return found


def _validated(rows) -> list[tuple]:
    """The same of what the validation of runs tried, where it was two options at once; the newest run of each data set and method."""
    found = {}
    for row in rows:
        for step in row["params"].get("validation") or ():
            if len(step["options"]) == 2 and all(_number(value) for tried in step["tried"] for value in tried):
                cells = {(one, other): error for one, other, error in step["tried"] if math.isfinite(error)}
                if not cells:
                    continue
                title = f"{row['dataset']}, {row['method']}: validation"
                heads = [columns.heading(name) for name in step["options"]]
                found[row["dataset"], row["method"]] = (title, heads, cells, step["error"], np.nanargmin)
    return list(found.values())


def _number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


FIGURES = {"lambda": lambda_path, "features": features, "grid": surface, "pareto": pareto}
