"""The table `summary`: every row of a results file in one line, or the mean of each group of rows."""

from collections import Counter

from rfx.errors import UsageError
from rfx.reporting import columns, seeds
from rfx.reporting.tables import DASH, Section, Table

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


def summary(rows, setting=None, group_by=None, mean_over=None) -> Table:
    """Data set, method, what varies among the runs, score, size, seconds and memory of every row, or of one setting's.

    group_by: names of columns, with commas: a line for each combination of their values, with mean, standard deviation and
    number of its rows. mean_over: the same, by everything that varies but the columns named, such as seed.
    """
    if setting is not None:
        labels = sorted({row["params"]["label"] for row in rows if row["params"].get("label")})
        if setting not in labels:
            raise UsageError(f"--setting {setting}: no row has it (there are: {', '.join(labels) or 'none'})")
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
    best = _best(((row["dataset"], row["metric"]), row["score"] if row["status"] == "ok" else None) for row in rows)
    lines = []
    for place, (row, values) in enumerate(zip(rows, given.values)):
        line = [columns.written(name, values.get(name)) for name in shown]
        for name, (_, write) in columns.OUTCOMES.items():
            value = columns.outcome(row, name)
            line.append(DASH if value is None else write(value) + (_marks(place in best, row["converged"]) if name == "score" else ""))
        if metric is None:
            line.insert(len(shown) + 1, row["metric"] or DASH)
        lines.append(line)
    more = [name for name in given.varying if name not in _CELLS]
    cells = columns.Each(rows, lambda row: _cell_of(row, more))
    headings = [given.heading(name) for name in shown] + outcomes
    notes = ([_BEST] if best else []) + _notes(rows, given, shown)
    return Table("summary", f"{len(rows)} rows", [Section("", headings, lines, len(columns.ALWAYS))], notes, cells)


def _cell_of(row, more) -> dict:
    """What CSV and JSON hold of a row; more: names of inputs besides."""
    found = {"status": row["status"]} | {name: columns.outcome(row, name) for name in _CELLS}
    found |= {"converged": row["converged"], "label": row["params"].get("label"), "seed": row["seed"]}
    values = columns.values_of(row) if more else {}
    return found | {name: values.get(name) for name in more}


_BEST = "!: the best score of its data set"


def _marks(best, converged) -> str:
    return ("!" if best else "") + ("*" if converged is False else "")


def _best(scores) -> set[int]:
    """The places of the best scores of each family of two or more; scores: ((family, metric), score or None), rmse is better low."""
    families: dict[tuple, list] = {}
    for place, ((family, metric), score) in enumerate(scores):
        if score is not None and metric:
            families.setdefault((family, metric), []).append((-score if metric == "rmse" else score, place))
    # where all are the same, none is best
    highest = {family: max(score for score, _ in found) for family, found in families.items()}
    several = [(highest[family], found) for family, found in families.items() if min(score for score, _ in found) < highest[family]]
    return {place for best, found in several for score, place in found if score == best}


def _by_run(rows) -> dict[tuple, float]:
    """The mean score of rows on the same data with the same seed."""
    found: dict[tuple, list] = {}
    for row in rows:
        if row["score"] is not None:
            found.setdefault((row["dataset"], row["split"], row["params"].get("test"), row["seed"]), []).append(row["score"])
    return {name: sum(scores) / len(scores) for name, scores in found.items()}


def _paired(one: dict[tuple, float], best: dict[tuple, float]) -> tuple[float | None, int]:
    """(p, pairs) of the paired t-test of two groups of rows by their scores as `_by_run` has them; p None where that can't be said."""
    less = seeds.mean(one[name] - best[name] for name in one if name in best)
    if less is None or not less.sd:
        return None, 0 if less is None else less.n
    from scipy.special import stdtr

    return float(2 * stdtr(less.n - 1, -abs(less.value) / (less.sd / less.n**0.5))), less.n


def _by(given, group_by, mean_over) -> tuple[list[str], str]:
    """The columns to group by, and what the title says of it."""
    names = [given.resolve(name) for name in (group_by or mean_over).split(",")]
    if group_by:
        return names, f"by {', '.join(given.heading(name) for name in names)}"
    return [name for name in (*columns.ALWAYS, *given.varying) if name not in names], f"means over {', '.join(names)}"


def _grouped(rows, given, by, words) -> Table:
    metric, outcomes = _metric(rows)
    groups: dict[tuple, tuple[dict, list]] = {}
    for row, asked in zip(rows, given.asked):
        if row["status"] == "ok":
            own = {name: asked.get(name) for name in by} | {"metric": row["metric"]}
            groups.setdefault(seeds.token(own), (own, []))[1].append(row)
    lines, cells = [], []
    known = [found for _, found in groups.values()]
    means = [seeds.mean(row["score"] for row in found) for found in known]
    families = [(own.get("dataset"), own["metric"]) for own, _ in groups.values()]
    best = _best([(family, mean and mean.value) for family, mean in zip(families, means)])
    best_of = {families[place]: _by_run(known[place]) for place in best}
    for place, (own, found) in enumerate(groups.values()):
        outcome = {name: seeds.mean(columns.outcome(row, name) for row in found) for name in columns.OUTCOMES}
        line = [columns.written(name, own[name]) for name in by] + [str(len(found))]
        for name, (_, write) in columns.OUTCOMES.items():
            text = DASH if outcome[name] is None else seeds.spread(outcome[name].value, outcome[name].sd, write)
            converged = not any(row["converged"] is False for row in found)
            line.append(text + (_marks(place in best, converged) if name == "score" else ""))
        p, pairs = _paired(_by_run(found), best_of[families[place]]) if families[place] in best_of and place not in best else (None, 0)
        line.insert(len(by) + 2, DASH if p is None else f"{p:.2g}")
        if metric is None:
            line.insert(len(by) + 3, own["metric"] or DASH)
        lines.append(line)
        spreads = {f"{name}_sd": value and value.sd for name, value in outcome.items()}
        told = {"n": len(found), "best": place in best, "paired_p": p, "pairs": pairs}
        cells.append(own | told | {name: value and value.value for name, value in outcome.items()} | spreads)
    headings = [given.heading(name) for name in by] + ["n", outcomes[0], "paired p", *outcomes[1:]]
    title = f"{sum(row['status'] == 'ok' for row in rows)} rows in {len(groups)} groups, {words}: mean ± standard deviation"
    notes = [f"{_BEST}; paired p: of a t-test of the difference from it, run by run of the same seed"] if best else []
    notes += _notes(rows, given, (), "in at least one of the runs")
    return Table("summary", title, [Section("", headings, lines, min(len(by), 2))], notes, cells)


def _metric(rows) -> tuple[str | None, list[str]]:
    """The metric that all rows have, None where they have several; and the headings of the outcomes."""
    metrics = {row["metric"] for row in rows if row["metric"]}
    headings = [heading for heading, _ in columns.OUTCOMES.values()]
    if len(metrics) == 1:
        return metrics.copy().pop(), [*metrics, *headings[1:]]
    return None, [headings[0], "metric", *headings[1:]]


def _notes(rows, given, shown, where="") -> list[str]:
    failed = Counter(f"{row['dataset']} {row['method']} ({row['status']}): {row['message']}" for row in rows if row["status"] != "ok")
    notes = [text if n == 1 else f"{text} ({n:,} runs)" for text, n in failed.items()]
    if any(row["converged"] is False for row in rows):
        notes.append("*: the solver did not converge" + (f" {where}" if where else ""))
    if shown and len(rows) > 1 and given.constant():
        notes.append(f"All rows: {given.constant()}")
    return notes


TABLES = {"summary": summary}
