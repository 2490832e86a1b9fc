"""Two results files side by side: the runs that are in both, what came of them, and how much that differs."""

import hashlib
import math
import statistics

from rfx.records.result import seconds_train
from rfx.reporting import columns, seeds
from rfx.reporting.tables import DASH, Section, Table, short


def compare(rows_a: list, rows_b: list, names=("A", "B")) -> Table:
    """Scores and training seconds of the runs that both files have; a run is found by its key, else by all that it was given."""
    pairs, only_a, only_b = _matched(rows_a, rows_b)
    given = columns.of([b for _, b in pairs])
    shown = [*columns.ALWAYS, *given.varying]
    lines, changes, ratios = [], [], []
    for (a, b), values in zip(pairs, given.values):
        times, ratio, change = _differences(a, b)
        if change is not None:
            changes.append(abs(change))
        if ratio:
            ratios.append(ratio)
        line = [columns.written(name, values.get(name)) for name in shown]
        line += [_score(a), _score(b), DASH if change is None else f"{change:+.2g}" if change else "0"]
        lines.append([*line, *(DASH if value is None else short(value) for value in (*times, ratio))])
    cells = columns.Each(pairs, lambda pair: _cell_of(*pair, shown))
    headings = [given.heading(name) for name in shown] + [f"score {name}" for name in names] + ["change"]
    headings += [f"train {name}, s" for name in names] + [f"{names[1]} / {names[0]}"]
    title = f"{len(pairs)} runs in both, {only_a} in {names[0]} only, {only_b} in {names[1]} only"
    return Table("compare", title, [Section("", headings, lines, len(columns.ALWAYS))], _notes(changes, ratios, names), cells)


def _differences(a, b) -> tuple[tuple, float | None, float | None]:
    """(seconds of both, their ratio, the change of the score), None for what can't be said."""
    times = seconds_train(a), seconds_train(b)
    ratio = times[1] / times[0] if None not in times and times[0] > 0 else None
    change = None if None in (a["score"], b["score"]) or a["metric"] != b["metric"] else b["score"] - a["score"]
    return times, ratio, change


def _cell_of(a, b, shown) -> dict:
    """What CSV and JSON hold of a pair of rows."""
    values, (times, ratio, change) = columns.values_of(b), _differences(a, b)
    return (
        {name: values.get(name) for name in shown}
        | {"metric": b["metric"], "score_a": a["score"], "score_b": b["score"], "change": change}
        | {"seconds_a": times[0], "seconds_b": times[1], "ratio": ratio, "status_a": a["status"], "status_b": b["status"]}
    )


def _score(row) -> str:
    return (row["status"] if row["status"] != "ok" else DASH) if row["score"] is None else f"{row['score']:.4f}"


def _matched(rows_a, rows_b) -> tuple[list[tuple], int, int]:
    """Pairs of rows, and how many of each side have no partner."""
    by_key = {row["key"]: row for row in rows_a if row["key"]}
    by_given: dict[bytes, object] = {}
    pairs, used = [], set()
    for row in rows_b:
        found = by_key.get(row["key"])
        if found is None:
            if not by_given:
                by_given = {_given(one): one for one in rows_a}
            found = by_given.get(_given(row))
        if found is not None and id(found) not in used:
            used.add(id(found))
            pairs.append((found, row))
    return pairs, len(rows_a) - len(used), len(rows_b) - len(pairs)


def _given(row) -> bytes:
    """A hash of all that the run of a row was given."""
    return hashlib.blake2b(repr(seeds.token(seeds.inputs(row) | {"seed": row["seed"]})).encode(), digest_size=16).digest()


def _notes(changes, ratios, names) -> list[str]:
    notes = []
    if changes:
        same = sum(change == 0 for change in changes)
        notes.append(f"Scores: {same} of {len(changes)} the same to the last digit, the largest change {max(changes):.2g}.")
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        notes.append(
            f"Training time of {names[1]} over {names[0]}: {mean:.3g} in the geometric mean, {min(ratios):.3g} to {max(ratios):.3g}."
        )
    return notes
