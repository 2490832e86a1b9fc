"""Tables of any results file: `summary`, with every row or the mean of each group of rows; the
comparison of two files; and `map-convergence`.
"""

import hashlib
import math
import statistics
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scipy.special import stdtr

from rfx.errors import UsageError
from rfx.parallel import cached
from rfx.records.result import picker, seconds_train
from rfx.reporting import columns, convergence, seeds
from rfx.reporting.builders import Builder
from rfx.reporting.cells import (
    BEST,
    DASH,
    Cell,
    Section,
    Table,
    count,
    decimals,
    number,
    short,
    words,
)

# columns of each row in CSV and JSON
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
_BEST = f"{BEST}: the best score of its data set"
# numbers of features in map-convergence
_SHOWN = (16, 64, 256, 1024)


# ------------------------------------------------------------------------------------------ summary


def summary(rows, setting=None, group_by=None, mean_over=None) -> Table:
    """Data set, method, varying inputs, score, size, seconds and memory of every row, or of the
    rows of one setting.

    group_by: names of columns, separated by commas. Each combination of their values has a line
    with mean, standard deviation and number of rows. mean_over: the same, grouped by all varying
    columns except those named, such as seed.
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
        by, said = _by(rows, given, group_by, mean_over)
        several = len({_data_of(row) for row in rows if row["status"] == "ok"}) > 1
        return (_ranked if several and "dataset" not in by else _grouped)(rows, given, by, said)
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
            if name == "score":
                write, scored = columns.score_format(row["metric"]), {"best": place in best}
                cells.append(number(value, write, converged=row["converged"], **scored))
            else:
                cells.append(number(value, write))
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
    """The values of a row for CSV and JSON. more: names of further inputs."""
    found = {"status": row["status"]} | {name: columns.outcome(row, name) for name in _CELLS}
    found |= {
        "converged": row["converged"],
        "label": row["params"].get("label"),
        "seed": row["seed"],
    }
    values = columns.values_of(row) if more else {}
    return found | {name: values.get(name) for name in more}


def _best(scores) -> set[int]:
    """The positions of the best scores of each family with two or more. scores: ((family, metric),
    score or None); for rmse a low score is better.
    """
    families: dict[tuple, list] = {}
    for place, ((family, metric), score) in enumerate(scores):
        if score is not None and metric:
            families.setdefault((family, metric), []).append(
                (-score if metric == "rmse" else score, place)
            )
    # if all are equal, none is the best
    highest = {family: max(score for score, _ in found) for family, found in families.items()}
    several = [
        (highest[family], found)
        for family, found in families.items()
        if min(score for score, _ in found) < highest[family]
    ]
    return {place for best, found in several for score, place in found if score == best}


# A t-test of fewer pairs is uninformative.
FEWEST_PAIRS = 3


def _by_run(rows, with_seed=True) -> dict[tuple, float]:
    """The mean score of rows on the same data with the same seed; without seed, on the same data.

    A deterministic run has the seed None.
    """
    found: dict[tuple, list] = {}
    for row in rows:
        if row["score"] is not None:
            seed = None if row["params"].get("seedless") or not with_seed else row["seed"]
            found.setdefault((*_data_of(row), seed), []).append(row["score"])
    return {name: sum(scores) / len(scores) for name, scores in found.items()}


def _data_of(row) -> tuple:
    """The values that identify the problem of a row."""
    return row["dataset"], row["split"], row["params"].get("test"), row["params"].get("target")


def _at(runs: dict[tuple, float], name: tuple) -> float | None:
    """The score of the run with that name; a deterministic run has one score for all seeds."""
    return runs.get(name, runs.get((*name[:-1], None)))


def _paired(one: dict[tuple, float], best: dict[tuple, float]) -> tuple[float | None, int]:
    """(p, pairs) of the paired t-test of two groups of rows, from their scores by `_by_run`; p is
    None if the test is undefined.
    """
    pairs = [(_at(one, name), _at(best, name)) for name in {**one, **best}]
    less = seeds.mean(a - b for a, b in pairs if a is not None and b is not None)
    if less is None or not less.sd or less.n < FEWEST_PAIRS:
        return None, 0 if less is None else less.n
    return float(2 * stdtr(less.n - 1, -abs(less.value) / (less.sd / less.n**0.5))), less.n


def _p(p: float | None, pairs: int) -> Cell:
    """The cell of a paired p, or the reason why it is missing."""
    if p is None and 0 < pairs < FEWEST_PAIRS:
        return words("1 pair" if pairs == 1 else f"{pairs} pairs")
    return number(p, "{:.2g}".format)


def _full(runs: Sequence[dict[tuple, float]]) -> list[bool]:
    """Which groups have every run that any group has."""
    every = {name for own in runs for name in own if name[-1] is not None}
    every = every or {name for own in runs for name in own}
    return [all(_at(own, name) is not None for name in every) for own in runs]


def _by(rows, given, group_by, mean_over) -> tuple[list[str], str]:
    """The columns to group by, and their description in the title."""
    names = [given.resolve(name) for name in (group_by or mean_over).split(",")]
    if group_by:
        return names, f"by {', '.join(given.heading(name) for name in names)}"
    # chosen values may differ between seeds; requested values do not
    asked = (*columns.ALWAYS, *columns.of(rows, asked=True).varying)
    return [name for name in asked if name not in names], f"{_OVER} {', '.join(names)}"


@dataclass
class _Group:
    """Rows of successful runs with the same values of some columns.

    given: these values as requested; used: for each of these columns, and for lambda, the values in
    use.
    """

    given: dict
    metric: str | None
    rows: list = field(default_factory=list)
    used: dict[str, set] = field(default_factory=dict)
    best: bool = False

    @property
    def family(self) -> tuple:
        """The identifier of the groups that are compared for the best."""
        return self.given.get("dataset"), self.given.get("seed"), self.metric

    @cached
    def runs(self) -> dict[tuple, float]:
        """The scores by run."""
        return _by_run(self.rows, "seed" not in self.given)

    @cached
    def means(self) -> dict[str, seeds.Mean | None]:
        return dict(zip(columns.OUTCOMES, map(seeds.mean, zip(*map(columns.outcomes, self.rows)))))

    def cell(self, name: str) -> Cell:
        """A column of the group: the requested value, and the chosen values."""
        asked = self.given.get(name)
        text, used = columns.written(name, asked), self.used.get(name, set()) - {asked}
        if name in self.given and (type(asked) is not str or not used):
            return columns.cell(name, asked)
        chosen = _range(name, used)
        return words(f"{text} ({chosen})" if name in self.given else chosen or DASH)

    def told(self) -> dict:
        """The values of the columns for CSV and JSON, with the range of chosen values.

        The option --metric is not the metric of the score.
        """
        found = {_OTHERWISE.get(name, name): value for name, value in self.given.items()}
        for name, used in self.used.items():
            numbers = [value for value in used if isinstance(value, (int, float))]
            if type(self.given.get(name, "")) is str and numbers:
                found |= {f"{name}_low": min(numbers), f"{name}_high": max(numbers)}
        return found


_OVER = "means over"
_OTHERWISE = {"metric": "learnt_metric"}
_MOST_WORDS = 3


def _range(name: str, used: set) -> str:
    """The values chosen in the runs of a group: the lowest and highest number, or the words."""
    numbers = [value for value in used if isinstance(value, (int, float))]
    if numbers and len(numbers) == len(used):
        ends = dict.fromkeys(columns.written(name, end) for end in (min(used), max(used)))
        return " to ".join(ends)
    texts = sorted(columns.written(name, value) for value in used)
    return ", ".join(texts[:_MOST_WORDS] + ["…"] * (len(texts) > _MOST_WORDS))


def _groups(rows, given, by) -> list[_Group]:
    """The rows of successful runs, grouped by their values of the columns `by`; also by metric if a
    group has a single data set.
    """
    groups: dict[tuple, _Group] = {}
    for row, asked, used in zip(rows, given.asked, given.values):
        if row["status"] == "ok":
            own = {name: asked.get(name) for name in by}
            group = groups.setdefault((seeds.token(own), row["metric"]), _Group(own, row["metric"]))
            group.rows.append(row)
            for name in {*by, "lam"}:
                if used.get(name) is not None:
                    group.used.setdefault(name, set()).add(used[name])
    return list(groups.values())


def _grouped(rows, given, by, said) -> Table:
    metric, outcomes = _metric(rows)
    groups = _groups(rows, given, by)
    families: dict[tuple, list[_Group]] = {}
    for group in groups:
        families.setdefault(group.family, []).append(group)
    best_of: dict[tuple, _Group] = {}
    partial = 0
    for family, members in families.items():
        full = [one for one, whole in zip(members, _full([one.runs for one in members])) if whole]
        partial += len(members) - len(full)
        scores = [one.means["score"] and one.means["score"].value for one in full]
        for place in _best(((family, family[-1]), score) for score in scores):
            full[place].best = True
            best_of[family] = full[place]
    # with groups by all but some columns, chosen values are worth a column
    wanted = said.startswith(_OVER) and "lam" not in by
    shown = by + ["lam"] * (wanted and any(len(one.used.get("lam", ())) > 1 for one in groups))
    lines, cells, few = [], [], False
    for group in groups:
        rival = None if group.best else best_of.get(group.family)
        p, pairs = (None, 0) if rival is None else _paired(group.runs, rival.runs)
        few = few or (p is None and 0 < pairs < FEWEST_PAIRS)
        score, *others = _outcomes(group, all(row["converged"] is not False for row in group.rows))
        metrics = [words(group.metric or DASH)] if metric is None else []
        names = [group.cell(name) for name in shown]
        n = number(len(group.rows), str)
        lines.append([*names, n, score, _p(p, pairs), *metrics, *others])
        told = {"metric": group.metric, "n": len(group.rows), "best": group.best}
        cells.append(group.told() | told | {"paired_p": p, "pairs": pairs} | _values(group.means))
    headings = [*(given.heading(name) for name in shown), "n", outcomes[0], "paired p"]
    headings += outcomes[1:]
    title = (
        f"{sum(row['status'] == 'ok' for row in rows)} rows in {len(groups)} groups, {said}: mean ±"
        " standard deviation"
    )
    notes = []
    if best_of:
        notes += [
            f"{_BEST}; paired p: of a t-test of the difference from it, run by run of the same seed"
        ]
    if few:
        notes += [f"Fewer than {FEWEST_PAIRS} pairs of runs have no p."]
    if partial:
        notes += [
            f"{partial} of the groups lack{'s' * (partial == 1)} runs that others of the same data"
            " set have, and can't be the best."
        ]
    notes += _notes(rows, given, (), "in at least one of the runs")
    return Table("summary", title, [Section("", headings, lines, min(len(by), 2))], notes, cells)


# ----------------------------------------------------------------- over data sets that are unlike


def _ranked(rows, given, by, said) -> Table:
    """Groups over several data sets: the mean of their ranks, because errors of different data sets
    have no meaningful mean.
    """
    groups: dict[tuple, _Group] = {}
    for group in _groups(rows, given, by):
        # accuracy and RMSE are ranked in the same way
        groups.setdefault(seeds.token(group.given), _Group(group.given, None)).rows.extend(
            group.rows
        )
    ranks: dict[tuple, dict[str, list[float]]] = {name: {} for name in groups}
    problems: set[tuple] = set()
    for outcome in columns.OUTCOMES:
        values: dict[tuple, dict[tuple, float]] = {}
        for name, group in groups.items():
            for problem, value in _by_problem(group.rows, outcome).items():
                values.setdefault(problem, {})[name] = value
        for own in values.values():
            for name, rank in zip(own, _ranks(list(own.values()))):
                ranks[name].setdefault(outcome, []).append(float(rank))
        problems |= values.keys() if outcome == "score" else set()
    full = {
        name: found["score"]
        for name, found in ranks.items()
        if len(found.get("score", ())) == len(problems)
    }
    lowest = min((sum(own) for own in full.values()), default=None)
    lines, cells = [], []
    for name, group in groups.items():
        found = {outcome: seeds.mean(own) for outcome, own in ranks[name].items()}
        best = len(full) > 1 and name in full and sum(full[name]) == lowest
        several = len({problem for problem, *_ in _by_problem(group.rows, "score")})
        line = [columns.cell(column, group.given[column]) for column in by]
        line += [number(len(group.rows), str), number(several, str)]
        for outcome in columns.OUTCOMES:
            marked = best and outcome == "score"
            line.append(Cell(found.get(outcome), decimals(2), "deviation", best=marked))
        lines.append(line)
        told: dict[str, float | None] = {"n": len(group.rows), "data_sets": several, "best": best}
        for outcome in columns.OUTCOMES:
            one = found.get(outcome)
            told |= {f"rank_{outcome}": one and one.value, f"rank_{outcome}_sd": one and one.sd}
        cells.append(group.told() | told)
    headings = [given.heading(name) for name in by] + ["n", "data sets"]
    headings += [f"rank by {heading}" for heading, _ in columns.OUTCOMES.values()]
    n_ok = sum(row["status"] == "ok" for row in rows)
    title = (
        f"{n_ok} rows in {len(groups)} groups, {said}: mean rank over {len(problems)} data sets ±"
        " standard deviation"
    )
    notes = [
        "Errors of unlike data sets have no mean: on each data set the groups are ranked by their"
        " means there, 1 is the best score, or the least of all else. Add dataset to --group-by"
        " for means."
    ]
    if lowest is not None and len(full) > 1:
        notes.append(f"{BEST}: the best mean rank among the groups that have every data set")
    notes += _notes(rows, given, (), "in at least one of the runs")
    return Table("summary", title, [Section("", headings, lines, min(len(by), 2))], notes, cells)


def _ranks(values: list[float]) -> list[float]:
    """The rank of each value in ascending order, from 1; equal values share the mean of their
    ranks.
    """
    return [
        (sum(other < value for other in values) + sum(other <= value for other in values) + 1) / 2
        for value in values
    ]


def _by_problem(rows, outcome) -> dict[tuple, float]:
    """The mean of an outcome on each data set; scores are negated if higher is better."""
    found: dict[tuple, list] = {}
    for row in rows:
        value = columns.outcome(row, outcome)
        if value is not None:
            if outcome == "score" and row["metric"] != "rmse":
                value = -value
            found.setdefault((_data_of(row), row["metric"]), []).append(value)
    return {name: sum(own) / len(own) for name, own in found.items()}


def _outcomes(group: _Group, converged: bool) -> list[Cell]:
    """A group's mean score, possibly marked as the best or as not converged, and its other
    outcomes.
    """
    score = Cell(
        group.means["score"],
        columns.score_format(group.metric),
        "deviation",
        best=group.best,
        converged=converged,
    )
    return [
        score,
        *(
            Cell(group.means[name], write, "deviation")
            for name, (_, write) in columns.OUTCOMES.items()
            if name != "score"
        ),
    ]


def _values(means) -> dict:
    """The means of a group, then their standard deviations."""
    return {name: one and one.value for name, one in means.items()} | {
        f"{name}_sd": one and one.sd for name, one in means.items()
    }


def _metric(rows) -> tuple[str | None, list[str]]:
    """The metric shared by all rows, None if there are several, and the headings of the
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


# the columns that are compared or that identify runs
COMPARED = (
    "key", "status", "dataset", "split", "method", "kernel", "solver", "lam", "n_features",
    "params", "seed", "threads", "metric", "score", "seconds_features", "seconds_fit",
)  # fmt: skip


def compare(
    rows_a: Sequence[Mapping], rows_b: Sequence[Mapping], names: tuple[str, str] = ("A", "B")
) -> Table:
    """Scores and training seconds of the runs in both files. Runs are matched by key, else by all
    their inputs.
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
    """(seconds of both, their ratio, the change of the score), None for undefined values."""
    before, after = seconds_train(a), seconds_train(b)
    ratio = after / before if before is not None and after is not None and before > 0 else None
    (score_a, metric_a), (score_b, metric_b) = _score_and_metric(a), _score_and_metric(b)
    change = (
        None if score_a is None or score_b is None or metric_a != metric_b else score_b - score_a
    )
    return (before, after), ratio, change


def _pair_of(a, b, shown) -> dict:
    """The values of a pair of rows for CSV and JSON."""
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
    """The score of a row, or its status if it has none."""
    return (
        words(row["status"])
        if row["score"] is None and row["status"] != "ok"
        else number(row["score"], columns.score_format(row["metric"]))
    )


def _matched(rows_a, rows_b) -> tuple[list[tuple], int, int]:
    """Pairs of rows, and the number of rows without a partner in each file."""
    by_key = {row["key"]: row for row in rows_a if row["key"]}
    # only compare rows similar to one without a partner: hashing all inputs is slow
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
    """A hash of all inputs of a row's run."""
    return hashlib.blake2b(
        repr(seeds.token(seeds.inputs(row) | {"seed": row["seed"]})).encode(), digest_size=16
    ).digest()


def _signed(change: float) -> str:
    return f"{change:+.2g}" if change else "0"


def _changes(pairs, names) -> list[str]:
    """The notes on the differences in scores and seconds."""
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
    """The median error of each map at some numbers of features, and its slope with its standard
    deviation.
    """
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
