"""The results file, with the traces and the trials next to it: CSV files to which processes append
rows, read by column name.

A row is one line, forced to the disk before `append` returns, under a lock of the file; existing
content is never rewritten. A line truncated by a killed writer is skipped, and ended by the next
writer. A file that another program rearranged is refused.
"""

import csv
import errno
import fcntl
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from rfx import files, lazy
from rfx.errors import DataError, LockedError
from rfx.numerals import native
from rfx.records.params import Params, known
from rfx.records.run import COLUMNS as COLUMNS
from rfx.records.run import TYPES, FindTrace, Result
from rfx.types import JsonObject

AnyPath: TypeAlias = str | Path

# Spreadsheets execute a cell that starts with one of these; an original leading ' is also escaped.
_RUN = frozenset("=+-@\t\r＝＋－＠")
_TRUTHS = {"true": True, "false": False}
_CONSTANTS = {"NaN": None, "Infinity": math.inf, "-Infinity": -math.inf}


# ------------------------------------------------------------------------------------------ cells


def safe(text: str) -> str:
    """`text` as a cell that no spreadsheet executes; `plain` is the inverse."""
    return (
        f"'{text}" if text[:1] in _RUN or (text[:1] == "'" and text[1:2] in _RUN | {"'"}) else text
    )


def safe_text(value: object) -> object:
    """A text as `safe` makes it, and any other value as it is."""
    return safe(value) if isinstance(value, str) else value


def plain(cell: str) -> str:
    """The original text of a result of `safe`."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _RUN | {"'"} else cell


def cell(value: Any) -> str:
    """One cell. Line ends become spaces, so that a row is always one line; numbers read back
    unchanged.
    """
    if hasattr(value, "item"):
        value = value.item()
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, sort_keys=True, default=native, separators=(",", ":"))
    return safe(" ".join(str(value).replace("\0", " ").splitlines()))


def _value(text: str, kind: type) -> Any:
    """The value of a cell; a measurement that is not a number is None. ValueError,
    KeyError or AttributeError if it is invalid.
    """
    if kind is dict:
        return dict(json.loads(text or "{}", parse_constant=_CONSTANTS.get).items())
    if not text:
        return None
    if kind is bool:
        return _TRUTHS[text]
    if kind is str:
        return plain(text)
    number = kind(text)
    return None if number != number else number


def _line(cells: Iterable[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode(errors="replace")


# ------------------------------------------------------------------------------------------ files


@dataclass(frozen=True)
class Sheet:
    """A kind of file.

    what: its name in messages. types: of the columns, in this order: int, float, bool, str, or dict
    for JSON. needed: columns that every row has.
    """

    what: str
    types: Mapping[str, type]
    needed: frozenset[str]

    def check(self, path: AnyPath) -> None:
        """Raise DataError or OSError if `append` could not add a row to the file `path`; nothing is
        created or changed.
        """
        _refuse_device(path)
        if Path(path).exists():
            with files.naming(path), open(path, "rb+") as file:
                self._check_header(file.readline(), path)
        else:
            folder = next(place for place in Path(path).absolute().parents if place.exists())
            files.check(folder / f"{Path(path).name}.part")

    def append(self, path: AnyPath, rows: list[JsonObject]) -> None:
        """Append `rows` to the file `path` in one write and force them to the disk; the first write
        includes the header.

        Raises DataError if it is another file, and OSError if it can't be written.
        """
        header = _line(self.types)
        lines = b"".join(_line(map(cell, map(row.get, self.types))) for row in rows)
        _refuse_device(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with files.naming(path), open(path, "ab+", buffering=0) as file:
            # Held for one write only; a runner's lock, for a whole plan, is another file.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            content = file.read()
            if self._is_unfinished(content):
                # Empty, or killed within the header: no row can be lost.
                file.truncate(0)
                lines = header + lines
            elif not content.startswith(header):
                self._check_header(content, path)
                raise DataError(f"{path} has other columns than those that rfx writes")
            elif not content.endswith(b"\n"):
                # truncated by a killed writer; closing an open quote keeps other CSV readers
                # from joining the line with the next one
                quotes = content.rpartition(b"\n")[2].count(b'"')
                lines = (b'"\n' if quotes % 2 else b"\n") + lines
            size = os.fstat(file.fileno()).st_size
            if file.write(lines) < len(lines):  # a full disk
                file.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)

    def read(
        self, path: AnyPath, torn: list[int] | None = None
    ) -> Iterator[tuple[int, JsonObject]]:
        """(line number, values by name) of every complete row, for the columns of the sheet.

        torn: receives, as the rows are read, the numbers of skipped lines, which a killed writer
        truncated.

        Rows appended during reading are not included. Raises DataError if it is another file, and,
        with line and column, for an invalid value.
        """
        _refuse_device(path)
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            content = file.read()
        if self._is_unfinished(content):
            return
        names = self._check_header(content, path)
        for number, line in enumerate(content.decode(errors="replace").split("\n")[1:], 2):
            name, text, values = "", line, dict.fromkeys(self.types)
            try:
                cells = next(csv.reader([line]), [])
                if len(cells) < len(names):
                    if torn is not None and line.strip():
                        torn.append(number)
                    continue
                for name, text in zip(names, cells, strict=True):
                    values[name] = _value(text, self.types[name])
                    if values[name] is None and name in self.needed:
                        raise ValueError(text)
            except (csv.Error, ValueError, KeyError, AttributeError, RecursionError):
                raise DataError(
                    f"{path}, line {number}: the column {name} holds {text[:40]!r}, which no run"
                    " writes there; fix or remove that line"
                ) from None
            yield number, values

    def _is_unfinished(self, content: bytes) -> bool:
        """Whether a file with this content is empty, or was left by a writer killed within the
        header.
        """
        header = _line(self.types)
        return len(content) < len(header) and header.startswith(content)

    def _check_header(self, content: bytes, path: AnyPath) -> list[str]:
        """The columns of a file that begins with `content`; DataError if it is another file."""
        line = content.partition(b"\n")[0].decode(errors="replace")
        names = line.split(",")
        fits = self.needed <= set(names) <= self.types.keys()
        if not fits and not self._is_unfinished(content):
            raise DataError(
                f"{path} is not an rfx {self.what}, or another program rearranged it: its first"
                f" line starts with {line[:60]!r}, not with {','.join(self.types)[:60]!r}; use"
                " another file"
            )
        return names


def _refuse_device(path: AnyPath) -> None:
    """Raise DataError for a device: /dev/full, for example, can be read without end."""
    if Path(path).is_char_device():
        raise DataError(f"{path} is a device, which keeps no rows; use a file")


# ---------------------------------------------------------------------------------------- results

RESULTS = Sheet("results file", TYPES, frozenset(("status", "dataset", "method")))


def append(path: AnyPath, row: Mapping[str, Any]) -> None:
    """Append `row` to the results file `path` and force it to the disk; the first row also writes
    the header.

    `created` is set here. Missing columns are left empty. The trials of the row's choices go to the
    file next to it, by the row's key. Raises DataError if a file can't be written
    or is another CSV file.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    params = dict(row.get("params") or {})
    if steps := params.get("validation"):
        params["validation"] = list(map(_without_trials, steps))
        trials = [
            {"choice": number, "values": values, "error": error}
            for number, step in enumerate(steps)
            for *values, error in step["tried"]
        ]
        if row.get("key"):
            append_steps(trace_path(path, "trials"), row["key"], trials)
        row = {**row, "params": params}
    RESULTS.append(path, [{**row, "created": created}])


def _without_trials(step: JsonObject) -> JsonObject:
    """A choice with the number of its trials and their lowest error in place of the trials."""
    kept = {name: value for name, value in step.items() if name != "tried"}
    errors = [error for *_, error in step["tried"]]
    return kept | {"trials": len(errors), "lowest": min(errors)}


def _with_trials(step: JsonObject, trials: list[JsonObject], number: int) -> JsonObject:
    """The choice of that number with its trials."""
    if "tried" in step:
        return step
    own = [trial for trial in trials if trial["choice"] == number]
    return step | {"tried": [[*trial["values"], trial.get("error", math.inf)] for trial in own]}


def read(
    path: AnyPath, traces: FindTrace | None = None, torn: list[int] | None = None
) -> list[Result]:
    """Rows of the results file `path`, oldest first.

    traces: finds the trace of a row by its key, as returned by `finder`. torn:
    receives the numbers of lines truncated by a killed writer.

    Empty fields, and measurements that are not numbers, are None. Of several rows with one key the
    last counts. Raises DataError, with the file, the line and the column, if it is another CSV
    file, or a field is invalid.
    """
    rows: dict[object, Result] = {}
    trials: dict[str, list[JsonObject]] | None = None
    for line, values in RESULTS.read(path, torn):
        # a gap is infinite if a solver has no bound
        columns = known(values) | {"gap": values["gap"]}
        entries = values["params"] or {}
        trials = read_steps(trace_path(path, "trials")) if trials is None else trials
        if steps := entries.get("validation"):
            own = trials.get(str(values["key"]), [])
            entries["validation"] = [
                _with_trials(step, own, number) for number, step in enumerate(steps)
            ]
        columns["params"] = Params.of_file(entries, path, line)
        row = Result(**columns, traces=traces)
        rows.pop(row.key or line, None)
        rows[row.key or line] = row
    return list(rows.values())


@contextmanager
def exclusive(path: AnyPath) -> Iterator[None]:
    """Hold the lock of the results file `path` (the file `PATH.lock`) while a plan runs.

    Raises LockedError if another process holds it, DataError if `path` can't be a results file.
    """
    RESULTS.check(path)
    with ExitStack() as stack:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lazy.filelock.FileLock(f"{path}.lock", timeout=0))
        except lazy.filelock.Timeout:
            raise LockedError(
                f"{path} is in use by another rfx run; wait for it to end or use another --results"
            ) from None
        yield


# ----------------------------------------------------------------------------------------- traces
# The reports of a solver step by step, by the key of the run's row. One line per step: seconds
# since the solver's start, objective, gap and, if known, the error on held-out rows; further values
# are JSON in the column `more`.

STEP_NUMBERS = {
    "output": int,
    "iteration": int,
    "seconds": float,
    "objective": float,
    "gap": float,
    "error": float,
}
TRACES = Sheet(
    "trace file",
    {"key": str, "created": str, "step": int, **STEP_NUMBERS, "more": dict},
    frozenset(("key", "step")),
)


def trace_path(path: AnyPath, what: str = "trace") -> Path:
    """The trace file of a results file: results.csv has results.trace.csv; or that of the trials of
    its runs.
    """
    path = Path(path)
    return path.with_name(f"{path.stem}.{what}{path.suffix or '.csv'}") if path.name else path


def append_steps(path: AnyPath, key: str, steps: list[JsonObject]) -> None:
    """Append the trace of the run with that key in one write; of several traces with one key the
    last counts.

    Raises DataError if the file can't be written or is another file.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    rows = []
    for number, step in enumerate(steps):
        numbers = {name: step[name] for name in STEP_NUMBERS if name in step}
        more = {name: value for name, value in step.items() if name not in STEP_NUMBERS}
        row = {"key": key, "created": created, "step": number, "more": more or None}
        rows.append(row | numbers)
    TRACES.append(path, rows)


def read_steps(path: AnyPath) -> dict[str, list[JsonObject]]:
    """The traces in a file, by key: for each step its known values by name. Empty if there is no
    such file.

    Raises DataError, with the file, the line and the column, for an invalid field.
    """
    traces: dict[str, list[JsonObject]] = {}
    if not Path(path).exists():
        return traces
    for _, values in TRACES.read(path):
        if values["step"] == 0:
            traces[values["key"]] = []
        step = {name: values[name] for name in STEP_NUMBERS} | (values["more"] or {})
        step = {name: value for name, value in step.items() if value is not None}
        traces.setdefault(values["key"], []).append(step)
    return traces


def finder(path: AnyPath) -> FindTrace:
    """A function that returns the trace of a key, empty if it has none. The file is read on first
    use.
    """
    steps = cache(partial(read_steps, path))

    def find(key: str | None) -> list[JsonObject]:
        return steps().get(key or "", [])

    return find


def chosen(trace: AnyPath | None, results: AnyPath) -> FindTrace:
    """The finder of the file `trace`, which must exist; if None, of the one next to the results."""
    if trace is not None and not Path(trace).exists():
        raise DataError(f"{files.shown(trace)} can't be read as a trace file: it does not exist")
    return finder(trace_path(results) if trace is None else trace)
