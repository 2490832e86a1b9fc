"""Traces: the reports of a solver step by step, stored in a CSV file next to the results, by the
key of the run's row.

One line per step: seconds since the solver's start, objective, gap and, if known, the error on
held-out rows; further values are JSON in the column `more`. Read by column name, like the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rfx import files
from rfx.errors import DataError
from rfx.records import sheet
from rfx.records.result import (
    FindTrace,
    Result,
    at_least_zero,
    certificate,
    params_of,
    real,
    seconds,
    whole,
)
from rfx.records.sheet import AnyPath

if TYPE_CHECKING:
    from rfx.fitting.pipeline import Pipeline

COLUMNS = (
    "key",
    "created",
    "step",
    "output",
    "iteration",
    "seconds",
    "objective",
    "gap",
    "error",
    "more",
)
FORM = sheet.Form(
    what="trace file", columns=COLUMNS, needed=frozenset(("key", "step")), rest="more"
)
_VALUES: dict[str, Callable[[str], object]] = {
    "step": whole,
    "output": whole,
    "iteration": whole,
    "seconds": seconds,
    "objective": real,
    "gap": certificate,
    "error": at_least_zero,
}
# known entries of `more`
_MORE = {
    "cpu_seconds": seconds,
    "pass_seconds": seconds,
    "features": whole,
    "nnz": whole,
    "samples": whole,
    "loss": real,
}


def beside(path: AnyPath) -> Path:
    """The trace file of a results file: results.csv has results.trace.csv."""
    path = Path(path)
    return path.with_name(f"{path.stem}.trace{path.suffix or '.csv'}") if path.name else path


def of(method: Pipeline) -> list[dict[str, Any]]:
    """The steps of a trained method; only its end if its solver reports none. At least one."""
    if getattr(method, "trace", None):
        return list(method.trace)
    names = {
        "iteration": "n_iter",
        "seconds": "seconds_fit",
        "objective": "objective",
        "gap": "gap",
    }
    return [
        {
            name: method.info[entry]
            for name, entry in names.items()
            if method.info.get(entry) is not None
        }
    ]


def append(path: AnyPath, key: str, steps: list[dict[str, Any]]) -> None:
    """Append the trace of the run with that key in one write; of several traces with one key the
    last counts.

    Raises DataError if the file can't be written or is another file.
    """
    created, rows = datetime.now(UTC).isoformat(timespec="seconds"), []
    for number, step in enumerate(steps):
        own = {name: value for name, value in step.items() if name in COLUMNS[3:-1]}
        more = {name: value for name, value in step.items() if name not in own}
        rows.append({"key": key, "created": created, "step": number} | own | {"more": more or None})
    sheet.append(path, rows, FORM)


def check(path: AnyPath) -> None:
    """Raise DataError if `append` could not add to `path`; nothing is created or changed."""
    sheet.check(path, FORM)


def read(path: AnyPath) -> dict[str, list[dict[str, Any]]]:
    """The traces in a file, by key: for each step its known values by name, checked. Empty if there
    is no such file.

    Raises DataError, with the file, the line and the column, for an invalid field.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        header, records = sheet.read(path, FORM)
    except FileNotFoundError:
        return found
    # the first of duplicate columns counts
    places = {name: place for place, name in reversed(list(enumerate(header.names)))}
    for number, fields in records:
        cells = {name: fields[place] for name, place in places.items()}
        step = _step(path, number, cells, header.delimiter == ";")
        key = sheet.plain(cells["key"])
        if not step.pop("step", None):
            found[key] = []
        found.setdefault(key, []).append(step)
    return found


def _step(path: AnyPath, number: int, cells: dict[str, str], decimal_comma: bool) -> dict[str, Any]:
    """The known values of one step by name."""
    step: dict[str, Any] = {}
    name, text = "", ""
    try:
        for name, text in cells.items():
            if name in ("key", "created", "more") or text == "":
                continue
            if name in _VALUES:
                comma = decimal_comma and text.count(",") == 1 and "." not in text
                step[name] = _VALUES[name](text.replace(",", ".") if comma else text)
            else:
                step[name] = sheet.plain(text)
        name, text = "more", cells.get("more", "")
        more = params_of(text)
        columns = more.pop("columns", None)
        for name, value in (more | (columns if isinstance(columns, dict) else {})).items():
            text = str(value)
            if name in cells and name != "more":
                continue
            check = _MORE.get(name) or _VALUES.get(name)
            step[name] = value if check is None or value is None else check(text)
    except (ValueError, OverflowError, RecursionError):
        raise DataError(
            f"{path}, line {number}: the column {name} holds the invalid value {text[:40]!r}; fix"
            " or remove that line"
        ) from None
    return {name: value for name, value in step.items() if value is not None}


def finder(path: AnyPath) -> FindTrace:
    """A function that returns the trace of a key, empty if it has none. The file is read on first
    use.
    """
    known = cache(partial(read, path))

    def find(key: str | None) -> list[dict[str, Any]]:
        found = known()
        return [] if key is None else found.get(key, [])

    return find


def chosen(trace: AnyPath | None, results: AnyPath) -> FindTrace:
    """The finder of the file `trace`, which is read at once and must exist; if None, of the one
    next to the results.
    """
    if trace is None:
        return finder(beside(results))
    if not Path(trace).exists():
        raise DataError(f"{files.shown(trace)} can't be read as a trace file: it does not exist")
    found = read(trace)
    return lambda key: [] if key is None else found.get(key, [])


def attached(rows: list[Result], path: AnyPath) -> list[Result]:
    """The rows of a results file, each with its trace, empty if it has none."""
    find = finder(path)
    return [replace(row, traces=find) for row in rows]
