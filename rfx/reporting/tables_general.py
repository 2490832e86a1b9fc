"""Tables of any results file: `summary`, every row or the mean of each group of rows; two
files side by side; `map-convergence`.
"""

import hashlib
import math
import statistics
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

from scipy.special import stdtr

from rfx.errors import UsageError
from rfx.records.result import picker, seconds_train
from rfx.reporting import columns, convergence, seeds
from rfx.reporting.builders import Builder
from rfx.reporting.cells import DASH, Cell, Section, Table, count, decimals, number, short, words

# what CSV and JSON hold of every row
_CELLS = (
    "dataset",
    "method",
    "kernel",
    "n_features",
    "lam",
    "score",
    "metric",
    "model_size",
    "seconds_train",
    "seconds_predict",
    "peak_rss_mb",
)
_BEST = "!: the best score of its data set"
# numbers of features that map-convergence shows
_SHOWN = (16, 64, 256, 1024)


# ------------------------------------------------------------------------------------------ summary


def summary(rows, setting=None, group_by=None, mean_over=None) -> Table:
    """Data set, method, what varies among the runs, score, size, seconds and memory of every row,
    or of one setting's.

    group_by: names of columns, with commas: a line for each combination of their values, with mean,
    standard deviation and number of its rows. mean_over: the same, by everything that varies but
    the columns named, such as seed.
    """
    if setting is not None:
        labels = sorted({row["params"]["label"] for row in rows if row["params"].get("label")})
        if setting not in labels:
            raise UsageError(
                f"--setting {setting}: no row has it (there are: {', '.join(labels) or 'none'})"
            )
        rows = [row for row in rows if row["params"].get("label") == setting]
    given = columns.of(rows)
    if group_by and mean_over:
        raise UsageError(f"--group-by {group_by} and --mean-over {mean_over}: give one of the two")
    if group_by or mean_over:
        return _grouped(rows, given, *_by(given, group_by, mean_over))
    return _listed(rows, given)


def _listed(rows, given) -> Table:
    shown = [*columns.ALWAYS, *given.varying]
    metric, outcomes = _metric(rows)
    best = _best(
        ((row["dataset"], row["metric"]), row["score"] if row["status"] == "ok" else None)
        for row in rows
    )

    def line(place: int) -> list[Cell]:
        row, values = rows[place], given.values[place]
        cells = [columns.cell(name, values.get(name)) for name in shown]
        for value, (name, (_, write)) in zip(columns.outcomes(row), columns.OUTCOMES.items()):
            scored = (
                {"best": place in best, "converged": row["converged"]} if name == "score" else {}
            )
            cells.append(number(value, write, **scored))
        if metric is None:
            cells.insert(len(shown) + 1, words(row["metric"] or DASH))
        return cells

    more = [name for name in given.varying if name not in _CELLS]
    headings = [given.heading(name) for name in shown] + outcomes
    notes = ([_BEST] if best else []) + _notes(rows, given, shown)
    section = Section("", headings, columns.Each(range(len(rows)), line), len(columns.ALWAYS))
    return Table(
        "summary",
        f"{len(rows)} rows",
        [section],
        notes,
        columns.Each(rows, lambda row: _cell_of(row, more)),
    )


def _cell_of(row, more) -> dict:
    """What CSV and JSON hold of a row; more: names of inputs besides."""
    found = {"status": row["status"]} | {name: columns.outcome(row, name) for name in _CELLS}
    found |= {
        "converged": row["converged"],
        "label": row["params"].get("label"),
        "seed": row["seed"],
    }
    values = columns.values_of(row) if more else {}
    return found | {name: values.get(name) for name in more}


def _best(scores) -> set[int]:
    """The places of the best scores of each family of two or more; scores: ((family,
    metric), score or None), rmse is better low.
    """
    families: dict[tuple, list] = {}
    for place, ((family, metric), score) in enumerate(scores):
        if score is not None and metric:
            families.setdefault((family, metric), []).append(
                (-score if metric == "rmse" else score, place)
            )
    # where all are the same, none is best
    highest = {family: max(score for score, _ in found) for family, found in families.items()}
    several = [
        (highest[family], found)
        for family, found in families.items()
        if min(score for score, _ in found) < highest[family]
    ]
    return {place for best, found in several for score, place in found if score == best}


def _by_run(rows) -> dict[tuple, float]:
    """The mean score of rows on the same data with the same seed."""
    found: dict[tuple, list] = {}
    for row in rows:
        if row["score"] is not None:
            found.setdefault(
                (row["dataset"], row["split"], row["params"].get("test"), row["seed"]), []
            ).append(row["score"])
    return {name: sum(scores) / len(scores) for name, scores in found.items()}


def _paired(one: dict[tuple, float], best: dict[tuple, float]) -> tuple[float | None, int]:
    """(p, pairs) of the paired t-test of two groups of rows by their scores as `_by_run`
    has them; p None where that can't be said.
    """
    less = seeds.mean(one[name] - best[name] for name in one if name in best)
    if less is None or not less.sd:
        return None, 0 if less is None else less.n
    return float(2 * stdtr(less.n - 1, -abs(less.value) / (less.sd / less.n**0.5))), less.n


def _by(given, group_by, mean_over) -> tuple[list[str], str]:
    """The columns to group by, and what the title says of it."""
    names = [given.resolve(name) for name in (group_by or mean_over).split(",")]
    if group_by:
        return names, f"by {', '.join(given.heading(name) for name in names)}"
    return [
        name for name in (*columns.ALWAYS, *given.varying) if name not in names
    ], f"means over {', '.join(names)}"


def _groups(rows, given, by) -> list[tuple[dict, list]]:
    """The rows that ended well by their values of the columns `by` and their metric, each
    with these values.
    """
    groups: dict[tuple, tuple[dict, list]] = {}
    for row, asked in zip(rows, given.asked):
        if row["status"] == "ok":
            own = {name: asked.get(name) for name in by} | {"metric": row["metric"]}
            groups.setdefault(seeds.token(own), (own, []))[1].append(row)
    return list(groups.values())


def _grouped(rows, given, by, said) -> Table:
    metric, outcomes = _metric(rows)
    groups = _groups(rows, given, by)
    means = [
        dict(zip(columns.OUTCOMES, map(seeds.mean, zip(*map(columns.outcomes, found)))))
        for _, found in groups
    ]
    families = [(own.get("dataset"), own["metric"]) for own, _ in groups]
    best = _best(
        [(family, own["score"] and own["score"].value) for family, own in zip(families, means)]
    )
    best_of = {families[place]: _by_run(groups[place][1]) for place in best}
    lines, cells = [], []
    for place, ((own, found), outcome) in enumerate(zip(groups, means)):
        rival = None if place in best else best_of.get(families[place])
        p, pairs = (None, 0) if rival is None else _paired(_by_run(found), rival)
        score, *others = _outcomes(
            outcome, place in best, all(row["converged"] is not False for row in found)
        )
        names = [columns.cell(name, own[name]) for name in by]
        metrics = [words(own["metric"] or DASH)] if metric is None else []
        lines.append(
            [*names, number(len(found), str), score, number(p, "{:.2g}".format), *metrics, *others]
        )
        told = {"n": len(found), "best": place in best, "paired_p": p, "pairs": pairs}
        cells.append(own | told | _values(outcome))
    headings = [given.heading(name) for name in by] + ["n", outcomes[0], "paired p", *outcomes[1:]]
    title = (
        f"{sum(row['status'] == 'ok' for row in rows)} rows in {len(groups)} groups, {said}: mean ±"
        " standard deviation"
    )
    notes = (
        [f"{_BEST}; paired p: of a t-test of the difference from it, run by run of the same seed"]
        if best
        else []
    )
    notes += _notes(rows, given, (), "in at least one of the runs")
    return Table("summary", title, [Section("", headings, lines, min(len(by), 2))], notes, cells)


def _outcomes(means, best, converged) -> list[Cell]:
    """A group's mean score, which may be the best or marred, and its other outcomes."""
    score = Cell(
        means["score"], columns.OUTCOMES["score"][1], "deviation", best=best, converged=converged
    )
    return [
        score,
        *(
            Cell(means[name], write, "deviation")
            for name, (_, write) in columns.OUTCOMES.items()
            if name != "score"
        ),
    ]


def _values(means) -> dict:
    """The means of a group, then their deviations."""
    return {name: one and one.value for name, one in means.items()} | {
        f"{name}_sd": one and one.sd for name, one in means.items()
    }


def _metric(rows) -> tuple[str | None, list[str]]:
    """The metric that all rows have, None where they have several; and the headings of the
    outcomes.
    """
    metrics = {row["metric"] for row in rows if row["metric"]}
    headings = [heading for heading, _ in columns.OUTCOMES.values()]
    if len(metrics) == 1:
        return metrics.copy().pop(), [*metrics, *headings[1:]]
    return None, [headings[0], "metric", *headings[1:]]


def _notes(rows, given, shown, where="") -> list[str]:
    failed = Counter(
        f"{row['dataset']} {row['method']} ({row['status']}): {row['message']}"
        for row in rows
        if row["status"] != "ok"
    )
    notes = [text if n == 1 else f"{text} ({n:,} runs)" for text, n in failed.items()]
    if any(row["converged"] is False for row in rows):
        notes.append("*: the solver did not converge" + (f" {where}" if where else ""))
    if shown and len(rows) > 1 and given.constant():
        notes.append(f"All rows: {given.constant()}")
    return notes


# --------------------------------------------------------------------------- two files side by side


# the columns that are compared, or that tell runs apart
COMPARED = (
    "key", "status", "dataset", "split", "method", "kernel", "solver", "lam", "n_features",
    "params", "seed", "threads", "metric", "score", "seconds_features", "seconds_fit",
)  # fmt: skip


def compare(
    rows_a: Sequence[Mapping], rows_b: Sequence[Mapping], names: tuple[str, str] = ("A", "B")
) -> Table:
    """Scores and training seconds of the runs that both files have; a run is found by its
    key, else by all that it was given.
    """
    pairs, only_a, only_b = _matched(rows_a, rows_b)
    given = columns.of([b for _, b in pairs])
    shown = [*columns.ALWAYS, *given.varying]

    def line(place: int) -> list[Cell]:
        (a, b), values = pairs[place], given.values[place]
        times, ratio, change = _differences(a, b)
        cells = [columns.cell(name, values.get(name)) for name in shown]
        cells += [_score(a), _score(b), number(change, _signed)]
        return [*cells, *(number(value, short) for value in (*times, ratio))]

    lines = columns.Each(range(len(pairs)), line)
    cells = columns.Each(pairs, lambda pair: _pair_of(pair[0], pair[1], shown))
    headings = (
        [given.heading(name) for name in shown] + [f"score {name}" for name in names] + ["change"]
    )
    headings += [f"train {name}, s" for name in names] + [f"{names[1]} / {names[0]}"]
    title = f"{len(pairs)} runs in both, {only_a} in {names[0]} only, {only_b} in {names[1]} only"
    return Table(
        "compare",
        title,
        [Section("", headings, lines, len(columns.ALWAYS))],
        _changes(pairs, names),
        cells,
    )


_score_and_metric = picker("score", "metric")


def _differences(a, b) -> tuple[tuple, float | None, float | None]:
    """(seconds of both, their ratio, the change of the score), None for what can't be said."""
    before, after = seconds_train(a), seconds_train(b)
    ratio = after / before if before is not None and after is not None and before > 0 else None
    (score_a, metric_a), (score_b, metric_b) = _score_and_metric(a), _score_and_metric(b)
    change = (
        None if score_a is None or score_b is None or metric_a != metric_b else score_b - score_a
    )
    return (before, after), ratio, change


def _pair_of(a, b, shown) -> dict:
    """What CSV and JSON hold of a pair of rows."""
    values, (times, ratio, change) = columns.values_of(b), _differences(a, b)
    return (
        {name: values.get(name) for name in shown}
        | {"metric": b["metric"], "score_a": a["score"], "score_b": b["score"], "change": change}
        | {
            "seconds_a": times[0],
            "seconds_b": times[1],
            "ratio": ratio,
            "status_a": a["status"],
            "status_b": b["status"],
        }
    )


def _score(row) -> Cell:
    """The score of a row, or what came of it instead."""
    return (
        words(row["status"])
        if row["score"] is None and row["status"] != "ok"
        else number(row["score"], decimals(4))
    )


def _matched(rows_a, rows_b) -> tuple[list[tuple], int, int]:
    """Pairs of rows, and how many of each side have no partner."""
    by_key = {row["key"]: row for row in rows_a if row["key"]}
    # only rows that are near one of those without a partner may be it: all that is given takes long
    near = {_near(row) for row in rows_b if row["key"] not in by_key}
    by_given = {_given(row): row for row in rows_a if _near(row) in near}
    pairs: list[tuple] = []
    used: set[int] = set()
    for row in rows_b:
        found = by_key.get(row["key"])
        if found is None:
            found = by_given.get(_given(row))
        if found is not None and id(found) not in used:
            used.add(id(found))
            pairs.append((found, row))
    return pairs, len(rows_a) - len(used), len(rows_b) - len(pairs)


_near = picker("dataset", "split", "method", "kernel", "solver", "seed")


def _given(row) -> bytes:
    """A hash of all that the run of a row was given."""
    return hashlib.blake2b(
        repr(seeds.token(seeds.inputs(row) | {"seed": row["seed"]})).encode(), digest_size=16
    ).digest()


def _signed(change: float) -> str:
    return f"{change:+.2g}" if change else "0"


def _changes(pairs, names) -> list[str]:
    """The notes on how scores and seconds differ."""
    changes, ratios, notes = array("d"), array("d"), []
    for a, b in pairs:
        _, ratio, change = _differences(a, b)
        if change is not None:
            changes.append(abs(change))
        if ratio:
            ratios.append(ratio)
    if changes:
        same = sum(change == 0 for change in changes)
        notes.append(
            f"Scores: {same} of {len(changes)} the same to the last digit, the largest change"
            f" {max(changes):.2g}."
        )
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        notes.append(
            f"Training time of {names[1]} over {names[0]}: {mean:.3g} in the geometric mean,"
            f" {min(ratios):.3g} to {max(ratios):.3g}."
        )
    return notes


# ---------------------------------------------------------------------------------- map-convergence


def map_convergence(rows) -> Table:
    """Each map's median error at some numbers of features, and its slope with its noise."""
    sections, cells = [], []
    for family, members in convergence.measure_all().items():
        lines = []
        for one in members:
            errors = dict(zip(one.sizes.tolist(), one.medians.tolist()))
            slope = seeds.Mean(one.slope, one.noise, convergence.SEEDS, one.slope, one.slope)
            shown = [number(errors.get(size), decimals(4)) for size in _SHOWN]
            lines.append(
                [words(one.name), words(one.kernel), *shown, Cell(slope, decimals(2), "decimals")]
            )
            cells += [
                {
                    "table": "map-convergence",
                    "family": family,
                    "map": one.name,
                    "kernel": one.kernel,
                    "n_features": size,
                    "error": error,
                    "slope": one.slope,
                    "slope_sd": one.noise,
                }
                for size, error in errors.items()
            ]
        sections.append(
            Section(
                family,
                ["map", "kernel", *(f"D = {count(size)}" for size in _SHOWN), "slope"],
                lines,
                2,
            )
        )
    return Table(
        "map-convergence",
        "Error of the kernel estimated by random features",
        sections,
        list(convergence.NOTES),
        cells,
    )


TABLES = {
    "summary": summary,
    "map-convergence": Builder("map-convergence", map_convergence, alone=True),
}
