"""Tables of any results file: `summary`, with every row or the mean of each group of rows; the
comparison of two files; and `map-convergence`.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scipy.special import stdtr

from rfx import lazy
from rfx.errors import UsageError
from rfx.parallel import cached
from rfx.records.result import seconds_train
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
_OVER = "means over"
# A t-test of fewer pairs is uninformative.
FEWEST_PAIRS = 3
_MOST_WORDS = 3
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
        labels = sorted({row["params"].get("label") or "" for row in rows} - {""})
        if setting not in labels:
            raise UsageError(
                f"--setting {setting}: no row has it (there are: {', '.join(labels) or 'none'})"
            )
        rows = [row for row in rows if row["params"].get("label") == setting]
    inputs = columns.of(rows)
    if group_by and mean_over:
        raise UsageError(f"--group-by {group_by} and --mean-over {mean_over}: give one of the two")
    if not group_by and not mean_over:
        return _listed(rows, inputs)
    names = [inputs.resolve(name) for name in (group_by or mean_over).split(",")]
    if group_by:
        by, title = names, f"by {', '.join(map(columns.heading, names))}"
    else:
        # chosen values may differ between seeds; requested values do not
        varying = (*columns.ALWAYS, *columns.of(rows, requested=True).varying)
        by = [name for name in varying if name not in names]
        title = f"{_OVER} {', '.join(names)}"
    several = len({_problem(row) for row in rows if row["status"] == "ok"}) > 1
    return (_ranked if several and "dataset" not in by else _grouped)(rows, inputs, by, title)


def _listed(rows: Sequence[Mapping], inputs: columns.Columns) -> Table:
    """Every row in a line."""
    shown = [*columns.ALWAYS, *inputs.varying]
    more = [name for name in inputs.varying if name not in _CELLS]
    several, headings = _headings(rows)
    scores = [_gain(row) if row["status"] == "ok" else None for row in rows]
    best = _best([(row["dataset"], row["metric"]) for row in rows], scores)
    lines, cells = [], []
    for place, (row, values) in enumerate(zip(rows, inputs.values)):
        means = {name: seeds.mean([columns.outcome(row, name)]) for name in columns.OUTCOMES}
        outcomes = _outcomes(means, row["metric"], place in best, row["converged"], several)
        lines.append([*(columns.cell(name, values.get(name)) for name in shown), *outcomes])
        cells.append(
            {"status": row["status"]}
            | {name: columns.outcome(row, name) for name in _CELLS}
            | {"converged": row["converged"], "label": row["params"].get("label")}
            | {name: values.get(name) for name in ("seed", *more)}
        )
    notes = ([_BEST] if best else []) + _notes(rows)
    if len(rows) > 1 and inputs.constant():
        notes.append(f"All rows: {inputs.constant()}")
    section = Section("", [*map(columns.heading, shown), *headings], lines, len(columns.ALWAYS))
    return Table("summary", f"{len(rows)} rows", [section], notes, cells)


@dataclass
class _Group:
    """Rows of successful runs with the same values of some columns.

    inputs: these values as requested; metric: that of all scores, None if there are several; used:
    the inputs in use of each row.
    """

    inputs: dict
    metric: str | None
    rows: list[Mapping] = field(default_factory=list)
    used: list[Mapping] = field(default_factory=list)

    @property
    def family(self) -> tuple:
        """The identifier of the groups that are compared for the best."""
        return self.inputs.get("dataset"), self.inputs.get("seed"), self.metric

    @cached
    def means(self) -> dict[str, seeds.Mean | None]:
        return {
            name: seeds.mean(columns.outcome(row, name) for row in self.rows)
            for name in columns.OUTCOMES
        }

    @cached
    def scores(self) -> dict[tuple, float]:
        """The mean score of each problem and seed; the seed is None for a deterministic run, and if
        seeds are not told apart.
        """
        scores: dict[tuple, list] = {}
        for row in self.rows:
            if row["score"] is not None:
                alike = row["params"].get("seedless") or "seed" in self.inputs
                name = *_problem(row), None if alike else row["seed"]
                scores.setdefault(name, []).append(row["score"])
        return {name: sum(values) / len(values) for name, values in scores.items()}

    def score(self, name: tuple) -> float | None:
        """The score of a problem and seed; a deterministic run has one score for all seeds."""
        return self.scores.get(name, self.scores.get((*name[:-1], None)))

    def chosen(self, name: str) -> set:
        """The values of an input that the runs used."""
        return {run[name] for run in self.used if run.get(name) is not None}

    def cell(self, name: str) -> Cell:
        """A column of the group: the requested value, and the chosen values."""
        requested, used = self.inputs.get(name), self.chosen(name)
        if name in self.inputs and (not isinstance(requested, str) or not used - {requested}):
            return columns.cell(name, requested)
        text = columns.written(name, requested)
        chosen = _range(name, used - {requested})
        return words(f"{text} ({chosen})" if name in self.inputs else chosen or DASH)

    @property
    def values(self) -> dict:
        """The values of the columns for CSV and JSON. The option --metric is not the metric of the
        score.
        """
        return {
            "learnt_metric" if name == "metric" else name: value
            for name, value in self.inputs.items()
        }

    @property
    def ranges(self) -> dict:
        """The range of chosen values for CSV and JSON."""
        ends: dict = {}
        for name in dict.fromkeys((*self.inputs, "lam")):
            numbers = _numbers(self.chosen(name))
            if numbers and isinstance(self.inputs.get(name, ""), str):
                ends |= {f"{name}_low": min(numbers), f"{name}_high": max(numbers)}
        return ends


def _numbers(values: Iterable) -> list:
    return [value for value in values if isinstance(value, (int, float))]


def _range(name: str, used: set) -> str:
    """The values chosen in the runs of a group: the lowest and highest number, or the words."""
    if used and len(_numbers(used)) == len(used):
        ends = (min(used), max(used))
        return " to ".join(dict.fromkeys(columns.written(name, end) for end in ends))
    texts = sorted(columns.written(name, value) for value in used)
    return ", ".join(texts[:_MOST_WORDS] + ["…"] * (len(texts) > _MOST_WORDS))


def _groups(rows, inputs: columns.Columns, by, by_metric: bool = True) -> list[_Group]:
    """The rows of successful runs, grouped by their values of the columns `by`, and by metric."""
    groups: dict[tuple, _Group] = {}
    for row, requested, used in zip(rows, inputs.requested, inputs.values):
        if row["status"] == "ok":
            values = {name: requested.get(name) for name in by}
            metric = row["metric"] if by_metric else None
            name = seeds.token(values), metric
            group = groups.setdefault(name, _Group(values, metric))
            group.rows.append(row)
            group.used.append(used)
    return list(groups.values())


def _grouped(rows: Sequence[Mapping], inputs: columns.Columns, by: list[str], title: str) -> Table:
    """The means of each group, and its paired test against the best of its data set."""
    several, headings = _headings(rows)
    groups = _groups(rows, inputs, by)
    whole = _whole(groups)
    best = _best(
        [group.family for group in groups],
        [_gain_of(group) if full else None for group, full in zip(groups, whole)],
    )
    best_of = {groups[place].family: groups[place] for place in sorted(best, reverse=True)}
    # with groups by all but some columns, chosen values are worth a column
    wanted = title.startswith(_OVER) and "lam" not in by
    shown = by + ["lam"] * (wanted and any(len(group.chosen("lam")) > 1 for group in groups))
    lines, cells, few = [], [], False
    for place, group in enumerate(groups):
        rival = None if place in best else best_of.get(group.family)
        p, pairs = (None, 0) if rival is None else _paired(group, rival)
        unclear = p is None and 0 < pairs < FEWEST_PAIRS
        few = few or unclear
        reason = words("1 pair" if pairs == 1 else f"{pairs} pairs")
        converged = all(row["converged"] is not False for row in group.rows)
        score, *others = _outcomes(group.means, group.metric, place in best, converged, several)
        n = number(len(group.rows), str)
        p_cell = reason if unclear else number(p, "{:.2g}".format)
        lines.append([*map(group.cell, shown), n, score, p_cell, *others])
        cells.append(
            group.values
            | group.ranges
            | {"metric": group.metric, "n": len(group.rows), "best": place in best}
            | {"paired_p": p, "pairs": pairs}
            | {name: mean and mean.value for name, mean in group.means.items()}
            | {f"{name}_sd": mean and mean.sd for name, mean in group.means.items()}
        )
    partial = whole.count(False)
    notes = []
    if best:
        notes.append(
            f"{_BEST}; paired p: of a t-test of the difference from it, run by run of the same seed"
        )
    if few:
        notes.append(f"Fewer than {FEWEST_PAIRS} pairs of runs have no p.")
    if partial:
        notes.append(
            f"{partial} of the groups lack{'s' * (partial == 1)} runs that others of the same data"
            " set have, and can't be the best."
        )
    return _of_groups(
        rows,
        f"{len(groups)} groups, {title}: mean ± standard deviation",
        [*map(columns.heading, shown), "n", headings[0], "paired p", *headings[1:]],
        lines,
        notes,
        cells,
    )


def _of_groups(rows, title, headings, lines, notes, cells) -> Table:
    """A table of groups of rows."""
    finished = sum(row["status"] == "ok" for row in rows)
    n_labels = min(headings.index("n"), 2)
    notes = notes + _notes(rows, " in at least one of the runs")
    sections = [Section("", headings, lines, n_labels)]
    return Table("summary", f"{finished} rows in {title}", sections, notes, cells)


def _whole(groups: Sequence[_Group]) -> list[bool]:
    """Which groups have every run that any group of their family has."""
    runs: dict[tuple, set] = {}
    for group in groups:
        runs.setdefault(group.family, set()).update(group.scores)
    for family, names in runs.items():
        runs[family] = {name for name in names if name[-1] is not None} or names
    return [all(group.score(name) is not None for name in runs[group.family]) for group in groups]


def _paired(group: _Group, best: _Group) -> tuple[float | None, int]:
    """(p, pairs) of the paired t-test of the scores of two groups of rows; p is None if the test is
    undefined.
    """
    pairs = [(group.score(name), best.score(name)) for name in {**group.scores, **best.scores}]
    less = seeds.mean(a - b for a, b in pairs if a is not None and b is not None)
    if less is None or not less.sd or less.n < FEWEST_PAIRS:
        return None, 0 if less is None else less.n
    return float(2 * stdtr(less.n - 1, -abs(less.value) / (less.sd / less.n**0.5))), less.n


# ----------------------------------------------------------------- over data sets that are unlike


def _ranked(rows: Sequence[Mapping], inputs: columns.Columns, by: list[str], title: str) -> Table:
    """Groups over several data sets: the mean of their ranks, because errors of different data sets
    have no meaningful mean.
    """
    # accuracy and RMSE are ranked in the same way
    groups = _groups(rows, inputs, by, by_metric=False)
    frame = lazy.pandas.DataFrame(
        {
            "group": place,
            "problem": str((*_problem(row), row["metric"])),
            **{name: columns.outcome(row, name) for name in columns.OUTCOMES},
            "score": None if (gain := _gain(row)) is None else -gain,
        }
        for place, group in enumerate(groups)
        for row in group.rows
    ).astype(dict.fromkeys(columns.OUTCOMES, float))
    means = frame.groupby(["problem", "group"])[list(columns.OUTCOMES)].mean()
    ranks = means.groupby("problem").rank()
    scored = ranks["score"].dropna()
    n_problems = scored.index.unique("problem").size
    totals = scored.groupby("group").agg(["sum", "size"])
    totals = totals["sum"][totals["size"] == n_problems]
    best = set(totals.index[totals == totals.min()]) if len(totals) > 1 else set()
    lines, cells = [], []
    for place, group in enumerate(groups):
        ranks_of_group = ranks.xs(place, level="group")
        mean_ranks = {name: seeds.mean(ranks_of_group[name].dropna()) for name in columns.OUTCOMES}
        data_sets = len({_problem(row) for row in group.rows if row["score"] is not None})
        lines.append(
            [
                *(columns.cell(name, group.inputs[name]) for name in by),
                number(len(group.rows), str),
                number(data_sets, str),
                *(
                    Cell(mean, decimals(2), "deviation", best=name == "score" and place in best)
                    for name, mean in mean_ranks.items()
                ),
            ]
        )
        cells.append(
            group.values
            | {"n": len(group.rows), "data_sets": data_sets, "best": place in best}
            | {
                f"rank_{name}{end}": mean and getattr(mean, part)
                for name, mean in mean_ranks.items()
                for end, part in (("", "value"), ("_sd", "sd"))
            }
        )
    notes = [
        "Errors of unlike data sets have no mean: on each data set the groups are ranked by their"
        " means there, 1 is the best score, or the least of all else. Add dataset to --group-by"
        " for means."
    ]
    if best:
        notes.append(f"{BEST}: the best mean rank among the groups that have every data set")
    return _of_groups(
        rows,
        f"{len(groups)} groups, {title}: mean rank over {n_problems} data sets ± standard"
        " deviation",
        [
            *map(columns.heading, by),
            "n",
            "data sets",
            *(f"rank by {heading}" for heading, _ in columns.OUTCOMES.values()),
        ],
        lines,
        notes,
        cells,
    )


# ------------------------------------------------------------------------------------ of all three


def _problem(row: Mapping) -> tuple:
    """The values that identify the problem of a row."""
    return row["dataset"], row["split"], row["params"].get("test"), row["params"].get("target")


def _gain(row: Mapping) -> float | None:
    """The score of a row with a sign such that more is better."""
    score = row["score"]
    return -score if score is not None and columns.low_is_better(row["metric"]) else score


def _gain_of(group: _Group) -> float | None:
    """The same of the mean score of a group."""
    mean = group.means["score"]
    return _gain({"score": mean and mean.value, "metric": group.metric})


def _best(families: Sequence[tuple], gains: Sequence[float | None]) -> set[int]:
    """The positions of the best in each family whose gains differ; the last part of a family is its
    metric, and without a metric there is no best.
    """
    judged = [gain if family[-1] else None for family, gain in zip(families, gains)]
    frame = lazy.pandas.DataFrame(
        {"family": map(repr, families), "gain": lazy.pandas.Series(judged, dtype=float)}
    ).dropna()
    members = frame.groupby("family")["gain"]
    most, least = members.transform("max"), members.transform("min")
    # if all are equal, none is the best
    return set(frame.index[(frame["gain"] == most) & (least < most)])


def _outcomes(
    means: Mapping[str, seeds.Mean | None],
    metric: str | None,
    best: bool,
    converged: bool | None,
    several: bool,
) -> list[Cell]:
    """The score, possibly marked as the best or as not converged, its metric if there are several,
    and the other outcomes.
    """
    score, *others = (
        Cell(means[name], write, "deviation") for name, (_, write) in columns.OUTCOMES.items()
    )
    score = score._replace(write=columns.score_format(metric), best=best, converged=converged)
    return [score, *([words(metric or DASH)] if several else []), *others]


def _headings(rows: Sequence[Mapping]) -> tuple[bool, list[str]]:
    """Whether there are several metrics, and the headings of the outcomes."""
    metrics = {row["metric"] for row in rows if row["metric"]}
    score, *others = (heading for heading, _ in columns.OUTCOMES.values())
    if len(metrics) == 1:
        return False, [*metrics, *others]
    return True, [score, "metric", *others]


def _notes(rows: Sequence[Mapping], where: str = "") -> list[str]:
    """The runs that failed, and the meaning of the star."""
    failed = Counter(
        f"{row['dataset']} {row['method']} ({row['status']}): {row['message']}"
        for row in rows
        if row["status"] != "ok"
    )
    notes = [text if n == 1 else f"{text} ({n:,} runs)" for text, n in failed.items()]
    if any(row["converged"] is False for row in rows):
        notes.append(f"*: the solver did not converge{where}")
    return notes


# --------------------------------------------------------------------------- two files side by side


def compare(
    rows_a: Sequence[Mapping], rows_b: Sequence[Mapping], names: tuple[str, str] = ("A", "B")
) -> Table:
    """Scores and training seconds of the runs in both files. Runs are matched by key, else by all
    their inputs.
    """
    pairs = _matched(rows_a, rows_b)
    inputs = columns.of([b for _, b in pairs])
    shown = [*columns.ALWAYS, *inputs.varying]
    lines, cells = [], []
    for (a, b), values in zip(pairs, inputs.values):
        difference = _difference(a, b)
        line = [columns.cell(name, values.get(name)) for name in shown]
        line += [_score(a), _score(b), number(difference["change"], _signed)]
        line += [number(difference[name], short) for name in ("seconds_a", "seconds_b", "ratio")]
        lines.append(line)
        cells.append(
            {name: values.get(name) for name in shown}
            | {"metric": b["metric"], "score_a": a["score"], "score_b": b["score"]}
            | difference
            | {"status_a": a["status"], "status_b": b["status"]}
        )
    headings = [*map(columns.heading, shown), *(f"score {name}" for name in names), "change"]
    headings += [*(f"train {name}, s" for name in names), f"{names[1]} / {names[0]}"]
    only = [len(rows) - len(pairs) for rows in (rows_a, rows_b)]
    title = f"{len(pairs)} runs in both, {only[0]} in {names[0]} only, {only[1]} in {names[1]} only"
    sections = [Section("", headings, lines, len(columns.ALWAYS))]
    return Table("compare", title, sections, _changes(cells, names), cells)


def _matched(rows_a: Sequence[Mapping], rows_b: Sequence[Mapping]) -> list[tuple]:
    """The rows with a partner in the other file, in the order of the second file."""
    by_key = {row["key"]: row for row in rows_a if row["key"]}
    by_inputs = {_run(row): row for row in rows_a}
    pairs: dict[int, tuple] = {}
    for row in rows_b:
        partner = by_key.get(row["key"]) or by_inputs.get(_run(row))
        if partner is not None:
            pairs.setdefault(id(partner), (partner, row))
    return list(pairs.values())


def _difference(a: Mapping, b: Mapping) -> dict:
    """The change of the score from a to b, the training seconds of both, and their ratio; None for
    undefined values.
    """
    before, after = seconds_train(a), seconds_train(b)
    unlike = a["metric"] != b["metric"] or None in (a["score"], b["score"])
    return {
        "change": None if unlike else b["score"] - a["score"],
        "seconds_a": before,
        "seconds_b": after,
        "ratio": after / before if before and after is not None else None,
    }


def _run(row: Mapping) -> str:
    """A text of all inputs of a row's run."""
    return seeds.token(seeds.inputs(row) | {"seed": row["seed"]})


def _signed(change: float) -> str:
    return f"{change:+.2g}" if change else "0"


def _score(row: Mapping) -> Cell:
    """The score of a row, or its status if it has none."""
    if row["score"] is None and row["status"] != "ok":
        return words(row["status"])
    return number(row["score"], columns.score_format(row["metric"]))


def _changes(cells: Sequence[Mapping], names: tuple[str, str]) -> list[str]:
    """The notes on the differences in scores and seconds."""
    changes = [abs(cell["change"]) for cell in cells if cell["change"] is not None]
    ratios = [cell["ratio"] for cell in cells if cell["ratio"]]
    notes = []
    if changes:
        notes.append(
            f"Scores: {changes.count(0)} of {len(changes)} the same to the last digit, the largest"
            f" change {max(changes):.2g}."
        )
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
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
            names = [words(one.name), words(one.kernel)]
            lines.append([*names, *shown, Cell(slope, decimals(2), "decimals")])
            alike = {"family": family, "map": one.name, "kernel": one.kernel}
            cells += [
                {"table": "map-convergence", **alike, "n_features": size, "error": error}
                | {"slope": one.slope, "slope_sd": one.noise}
                for size, error in errors.items()
            ]
        headings = ["map", "kernel", *(f"D = {count(size)}" for size in _SHOWN), "slope"]
        sections.append(Section(family, headings, lines, 2))
    title = "Error of the kernel estimated by random features"
    return Table("map-convergence", title, sections, list(convergence.NOTES), cells)


TABLES = {
    "summary": summary,
    "map-convergence": Builder("map-convergence", map_convergence, alone=True),
}
