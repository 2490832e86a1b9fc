"""Two results files side by side: the runs that are in both, what came of them, and how much that differs."""

import json
import math
import statistics

from rfx.experiments import columns, seeds
from rfx.experiments.keys import canonical
from rfx.experiments.results import seconds_train
from rfx.experiments.tables import DASH, Section, Table, short


def compare(rows_a: list[dict], rows_b: list[dict], names=("A", "B")) -> Table:
    """Scores and training seconds of the runs that both files have; a run is found by its key, else by all that it was given."""
    pairs, only_a, only_b = _matched(rows_a, rows_b)
    given = columns.of([b for _, b in pairs])
    shown = [*columns.ALWAYS, *given.varying]
    lines, cells = [], []
    for (a, b), values in zip(pairs, given.values):
        times = seconds_train(a), seconds_train(b)
        ratio = times[1] / times[0] if None not in times and times[0] > 0 else None
        change = None if None in (a["score"], b["score"]) or a["metric"] != b["metric"] else b["score"] - a["score"]
        line = [columns.written(name, values.get(name)) for name in shown]
        line += [_score(a), _score(b), DASH if change is None else f"{change:+.2g}" if change else "0"]
        lines.append([*line, *(DASH if value is None else short(value) for value in (*times, ratio))])
        cells.append(
            {name: values.get(name) for name in shown}
            | {"metric": b["metric"], "score_a": a["score"], "score_b": b["score"], "change": change}
            | {"seconds_a": times[0], "seconds_b": times[1], "ratio": ratio, "status_a": a["status"], "status_b": b["status"]}
        )
    headings = [given.heading(name) for name in shown] + [f"score {name}" for name in names] + ["change"]
    headings += [f"train {name}, s" for name in names] + [f"{names[1]} / {names[0]}"]
    title = f"{len(pairs)} runs in both, {len(only_a)} in {names[0]} only, {len(only_b)} in {names[1]} only"
    return Table("compare", title, [Section("", headings, lines, len(columns.ALWAYS))], _notes(cells, names), cells)


def _score(row) -> str:
    return (row["status"] if row["status"] != "ok" else DASH) if row["score"] is None else f"{row['score']:.4f}"


def _matched(rows_a, rows_b):
    """Pairs of rows, and what is left of each side."""
    by_key = {row["key"]: row for row in rows_a}
    by_given = {_given(row): row for row in rows_a}
    pairs, only_b, used = [], [], set()
    for row in rows_b:
        found = by_key.get(row["key"]) or by_given.get(_given(row))
        if found is None or id(found) in used:
            only_b.append(row)
        else:
            used.add(id(found))
            pairs.append((found, row))
    return pairs, [row for row in rows_a if id(row) not in used], only_b


def _given(row) -> str:
    return json.dumps(canonical(seeds.inputs(row) | {"seed": row["seed"]}), sort_keys=True)


def _notes(cells, names) -> list[str]:
    notes = []
    changes = [abs(cell["change"]) for cell in cells if cell["change"] is not None]
    if changes:
        same = sum(change == 0 for change in changes)
        notes.append(f"Scores: {same} of {len(changes)} the same to the last digit, the largest change {max(changes):.2g}.")
    ratios = [cell["ratio"] for cell in cells if cell["ratio"]]
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        notes.append(
            f"Training time of {names[1]} over {names[0]}: {mean:.3g} in the geometric mean, {min(ratios):.3g} to {max(ratios):.3g}."
        )
    return notes
