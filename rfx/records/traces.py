"""Traces: the reports of a solver step by step, stored in a CSV file next to the results, by the
key of the run's row.

One line per step: seconds since the solver's start, objective, gap and, if known, the error on
held-out rows; further values are JSON in the column `more`. Read by column name, like the results.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rfx import files
from rfx.errors import DataError
from rfx.records import sheet
from rfx.records.run import FindTrace
from rfx.records.sheet import AnyPath

if TYPE_CHECKING:
    from rfx.fitting.pipeline import Pipeline

MEASURES = {
    "output": int,
    "iteration": int,
    "seconds": float,
    "objective": float,
    "gap": float,
    "error": float,
}
# The entries of a model's info that are its last step.
_END = {
    "iteration": "n_iter",
    "seconds": "seconds_fit",
    "objective": "objective",
    "gap": "gap",
}
TYPES = {"key": str, "created": str, "step": int, **MEASURES, "more": dict}
FORM = sheet.Form("trace file", TYPES, frozenset(("key", "step")))


def beside(path: AnyPath, what: str = "trace") -> Path:
    """The trace file of a results file: results.csv has results.trace.csv."""
    path = Path(path)
    return path.with_name(f"{path.stem}.{what}{path.suffix or '.csv'}") if path.name else path


def of(method: Pipeline) -> list[dict[str, Any]]:
    """The steps of a trained method; only its end if its solver reports none. At least one."""
    if getattr(method, "trace", None):
        return list(method.trace)
    entries = {name: method.info.get(entry) for name, entry in _END.items()}
    return [{name: value for name, value in entries.items() if value is not None}]


def append(path: AnyPath, key: str, steps: list[dict[str, Any]]) -> None:
    """Append the trace of the run with that key in one write; of several traces with one key the
    last counts.

    Raises DataError if the file can't be written or is another file.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    rows = [
        {"key": key, "created": created, "step": number}
        | {name: step[name] for name in MEASURES if name in step}
        | {"more": {name: of for name, of in step.items() if name not in MEASURES} or None}
        for number, step in enumerate(steps)
    ]
    sheet.append(path, rows, FORM)


def check(path: AnyPath) -> None:
    """Raise DataError if `append` could not add to `path`; nothing is created or changed."""
    sheet.check(path, FORM)


def read(path: AnyPath) -> dict[str, list[dict[str, Any]]]:
    """The traces in a file, by key: for each step its known values by name. Empty if there is no
    such file.

    Raises DataError, with the file, the line and the column, for an invalid field.
    """
    traces: dict[str, list[dict[str, Any]]] = {}
    if not Path(path).exists():
        return traces
    for _, values in sheet.read(path, FORM):
        if values["step"] == 0:
            traces[values["key"]] = []
        step = {name: values[name] for name in MEASURES} | (values["more"] or {})
        known = {name: value for name, value in step.items() if value is not None}
        traces.setdefault(values["key"], []).append(known)
    return traces


def finder(path: AnyPath) -> FindTrace:
    """A function that returns the trace of a key, empty if it has none. The file is read on first
    use.
    """
    known = cache(partial(read, path))
    return lambda key: known().get(key or "", [])


def chosen(trace: AnyPath | None, results: AnyPath) -> FindTrace:
    """The finder of the file `trace`, which must exist; if None, of the one next to the results."""
    if trace is not None and not Path(trace).exists():
        raise DataError(f"{files.shown(trace)} can't be read as a trace file: it does not exist")
    return finder(beside(results) if trace is None else trace)
