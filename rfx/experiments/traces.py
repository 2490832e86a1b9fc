"""Traces: what a solver reported step by step, kept in a CSV file beside the results, by the key of the run's row.

One line a step: seconds since the solver's start, objective, gap and, where it is known, the error on held-out rows; what
else the solver says is JSON in the column `more`. Read by column name, as the results are.
"""

import json
from datetime import UTC, datetime
from pathlib import Path

from rfx.experiments import results, sheet

COLUMNS = ("key", "created", "step", "output", "iteration", "seconds", "objective", "gap", "error", "more")
_WHOLE = frozenset(("step", "output", "iteration"))


def _value(name, text):
    if name == "more":
        value = json.loads(text) if text else {}
        if not isinstance(value, dict):
            raise ValueError
        return value
    return results.whole(text) if name in _WHOLE else float(text)


FORM = sheet.Form(
    what="file of traces",
    columns=COLUMNS,
    needed=frozenset(("key", "step")),
    text=frozenset(("key", "created")),
    value=_value,
    rest="more",
)


def beside(path) -> Path:
    """The file of the traces of a results file: results.csv has results.trace.csv."""
    path = Path(path)
    return path.with_name(f"{path.stem}.trace{path.suffix or '.csv'}")


def of(method) -> list[dict]:
    """The steps of a trained method; its end alone where its solver tells of none. At least one."""
    if getattr(method, "trace", None):
        return list(method.trace)
    names = {"iteration": "n_iter", "seconds": "seconds_fit", "objective": "objective", "gap": "gap"}
    return [{name: method.info[entry] for name, entry in names.items() if method.info.get(entry) is not None}]


def append(path, key: str, steps: list[dict]) -> None:
    """Append the trace of the run with that key in one write; of several traces of one key the last counts.

    Raises DataError when the file can't be written or is some other file.
    """
    created, rows = datetime.now(UTC).isoformat(timespec="seconds"), []
    for number, step in enumerate(steps):
        own = {name: value for name, value in step.items() if name in COLUMNS[3:-1]}
        more = {name: value for name, value in step.items() if name not in own}
        rows.append({"key": key, "created": created, "step": number} | own | {"more": more or None})
    sheet.append(path, rows, FORM)


def check(path) -> None:
    """Raise DataError when `append` could not add to `path`; nothing is made or changed."""
    sheet.check(path, FORM)


def read(path) -> dict[str, list[dict]]:
    """The traces in a file, by key: for each step what is known of it by name. Empty when there is no such file."""
    found: dict[str, list[dict]] = {}
    try:
        rows = sheet.read(path, FORM)
    except FileNotFoundError:
        return found
    for _, row in rows:
        if not row["step"]:
            found[row["key"]] = []
        known = {name: value for name, value in row.items() if name not in ("key", "created", "step", "more") and value is not None}
        found.setdefault(row["key"], []).append(known | row["more"])
    return found


def attached(rows: list[dict], path) -> list[dict]:
    """The rows of a results file, each with its trace, an empty one where it has none."""
    known = read(path)
    return [row | {"trace": known.get(row["key"], [])} for row in rows]
