"""The results file: one flat CSV row per run, appended under a lock, fsynced, never rewritten, read
by column name.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rfx import lazy
from rfx.errors import DataError, LockedError
from rfx.records import sheet
from rfx.records import traces as trace_file
from rfx.records.run import (
    COLUMNS,
    STATUSES,
    TYPES,
    FindTrace,
    Params,
    Result,
    known,
    seconds_train,
)
from rfx.records.sheet import AnyPath

__all__ = ["COLUMNS", "STATUSES", "append", "check", "exclusive", "read", "seconds_train"]

FORM = sheet.Form("results file", TYPES, frozenset(("status", "dataset", "method")))


def check(path: AnyPath) -> None:
    """Raise DataError if `append` could not add a row to the results file `path`; nothing is
    created or changed.
    """
    sheet.check(path, FORM)


def append(path: AnyPath, row: Mapping[str, Any]) -> None:
    """Append `row` to the results file `path` and force it to the disk; the first row also writes
    the header.

    `created` is set here. Missing columns are left empty. The trials of the row's choices go to the
    file next to it, by the row's key (`trials_beside`). Raises DataError if a file can't be written
    or is another CSV file, ValueError for an unknown column.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    params = dict(row.get("params") or {})
    if steps := params.get("validation"):
        params["validation"] = [
            {name: value for name, value in step.items() if name != "tried"}
            | {"trials": len(step["tried"]), "lowest": min(error for *_, error in step["tried"])}
            for step in steps
        ]
        trials = [
            {"choice": number, "values": values, "error": error}
            for number, step in enumerate(steps)
            for *values, error in step["tried"]
        ]
        if row.get("key"):
            trace_file.append(trials_beside(path), row["key"], trials)
        row = {**row, "params": params}
    sheet.append(path, [{**row, "created": created}], FORM)


def trials_beside(path: AnyPath) -> Path:
    """The file of the trials of a results file's runs: results.csv has results.trials.csv."""
    return trace_file.beside(path, "trials")


def read(
    path: AnyPath, traces: FindTrace | None = None, torn: list[int] | None = None
) -> list[Result]:
    """Rows of the results file `path`, oldest first.

    traces: finds the trace of a row by its key, as returned by `rfx.records.traces.finder`. torn:
    receives the numbers of lines truncated by a killed writer.

    Empty fields, and measurements that are not numbers, are None. Of several rows with one key the
    last counts. Raises DataError, with the file, the line and the column, if the file does not
    exist, is another CSV file, or a field is invalid.
    """
    if not Path(path).exists():
        raise DataError(
            f"{path}: there is no such results file; rfx run or rfx eval --results writes one"
        )
    rows: dict[object, Result] = {}
    trials: dict[str, list[dict[str, Any]]] | None = None
    for line, values in sheet.read(path, FORM, torn):
        # a gap is infinite if a solver has no bound
        columns = known(values) | {"gap": values["gap"]}
        columns["params"] = params = Params.of(values["params"] or {}, path, line)
        trials = trace_file.read(trials_beside(path)) if trials is None else trials
        own = trials.get(str(values["key"]), ())
        for number, step in enumerate(params.get("validation") or ()):
            if "tried" not in step:
                mine = [one for one in own if one["choice"] == number]
                step["tried"] = [[*one["values"], one.get("error", math.inf)] for one in mine]
        row = Result(**columns, path=path, line=line, traces=traces)
        rows.pop(row.key or line, None)
        rows[row.key or line] = row
    return list(rows.values())


@contextmanager
def exclusive(path: AnyPath) -> Iterator[None]:
    """Hold the lock of the results file `path` (the file `PATH.lock`) while a plan runs.

    Raises LockedError if another process holds it, DataError if `path` can't be a results file or
    the lock can't be created.
    """
    check(path)
    lock = f"{path}.lock"
    with ExitStack() as stack:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lazy.filelock.FileLock(lock, timeout=0))
        except lazy.filelock.Timeout:
            raise LockedError(
                f"{path} is in use by another rfx run; wait for it to end or use another --results"
            ) from None
        except OSError as error:
            raise DataError(
                f"{lock} can't be written as the lock of {path}: {error.strerror or error}; free"
                " some space there, or remove it"
            ) from error
        yield
