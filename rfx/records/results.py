"""The results file: one flat CSV row per run, appended under a lock, fsynced, never rewritten, read by column name."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from rfx.errors import DataError, LockedError, quoted
from rfx.records import sheet
from rfx.records.result import COLUMNS, NAMED, STATUSES, VALUES, FindTrace, Packer, Result, Wrong, check_together, params_of, seconds_train
from rfx.records.sheet import AnyPath

__all__ = ["COLUMNS", "STATUSES", "append", "check", "exclusive", "read", "seconds_train", "torn"]

FORM = sheet.Form(
    what="results file",
    columns=COLUMNS,
    needed=frozenset(("key", "status", "dataset", "method")),
    rest="params",
)
_NO_MORE: Mapping[str, str | None] = MappingProxyType({})
_KEPT = 4096  # texts of a column whose values are remembered
_ALIKE = 13  # columns from dtype on
_PARAMS, _SCORE, _METRIC = (COLUMNS.index(name) for name in ("params", "score", "metric"))
_NAMED = [COLUMNS.index(name) for name in NAMED]


def check(path: AnyPath) -> None:
    """Raise DataError when `append` could not add a row to the results file `path`; nothing is made or changed."""
    sheet.check(path, FORM)


def append(path: AnyPath, row: Mapping[str, Any]) -> None:
    """Append `row` to the results file `path` and force it to the disk; the first row writes the header too.

    `created` is set here; `params` may be a dict. Missing columns are left empty; what the file has no column for is kept in
    params. Raises DataError when the file can't be written or is some other CSV, ValueError for a name that is no column.
    """
    cells = {**row, "created": datetime.now(UTC).isoformat(timespec="seconds")}
    if isinstance(row, Result):
        cells["params"] = dict(row.params)
    sheet.append(path, [cells], FORM)


def read(path: AnyPath, traces: FindTrace | None = None) -> list[Result]:
    """Rows of the results file `path`, oldest first, each checked.

    traces: finds the trace of a row by its key, such as `rfx.records.traces.finder` gives it.

    Empty fields are None, columns that rfx does not know are kept as text. Of several rows with one key the last counts. Lines
    that a killed writer left short are passed over. Raises DataError, with the file, the line and the column, when there is no
    such file, it is some other CSV, or a field holds what it can't.
    """
    try:
        header, records = sheet.read(path, FORM)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such results file; rfx run or rfx eval --results writes one") from None
    reader = _Reader(path, header, traces)
    rows: dict[object, Result] = {}
    # rows refer to nothing that refers back to them: looking for such circles again and again takes long
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number, fields in records:
            row = reader.row(number, fields)
            name = row.key or number
            rows.pop(name, None)
            rows[name] = row
    finally:
        if collecting:
            gc.enable()
    return list(rows.values())


class _Reader:
    """Makes a Result of each line of one file."""

    def __init__(self, path: AnyPath, header: sheet.Header, traces: FindTrace | None = None) -> None:
        self.path, self.traces, self.packer = path, traces, Packer()
        # of a column that is there twice the first counts; a column that is not there has the empty cell after the last
        self.place = {name: place for place, name in reversed(list(enumerate(header.names))) if name in COLUMNS}
        self.more = [(name, place) for place, name in enumerate(header.names) if name not in COLUMNS]
        self.lacking = len(header.names)
        self.decimal_comma = header.delimiter == ";"
        # of each column: its name, the place of its cell, and the values of texts that were there before
        self.plan: list[tuple[str, int, dict[str, Any]]] = [
            (name, self.place.get(name, self.lacking), {"": None}) for name in COLUMNS if name != "params"
        ]
        # what every run of a machine has alike is at the end, where the file has the order of rfx: looked up all at once
        places = [place for _, place, _ in self.plan[-_ALIKE:]]
        together = places == list(range(places[0], places[0] + _ALIKE))
        self.last = slice(places[0], places[0] + _ALIKE) if together else None
        self.ends: dict[tuple[str, ...] | None, list[Any]] = {}

    def row(self, number: int, fields: list[str]) -> Result:
        """The Result of the cells of a line; DataError, which names line and column, for one that can't be."""
        del fields[self.lacking :]
        fields.append("")
        values: list[Any] = []
        name, text = "", ""
        try:
            end = None if self.last is None else tuple(fields[self.last])
            for name, place, known in self.plan[:-_ALIKE] if end in self.ends else self.plan:
                text = fields[place]
                value = known.get(text, known)
                if value is known:
                    if len(known) > _KEPT:
                        known.clear()
                        known[""] = None
                    value = known[text] = self._value(name, text)
                values.append(value)
            if end in self.ends:
                values += self.ends[end]
            elif end is not None and len(self.ends) < _KEPT:
                self.ends[end] = values[-_ALIKE:]
            name, text = "params", fields[self.place.get("params", self.lacking)]
            given = params_of(text)
            if "columns" in given:
                self._take(values, given.pop("columns"))
            values.insert(_PARAMS, self.packer.params(given, self.path, number))
            check_together(values[_SCORE], values[_METRIC])
            for place in _NAMED:
                if not values[place]:
                    raise Wrong(COLUMNS[place], "", "must not be empty")
        except Wrong as error:
            raise self._refused(number, error.name, error.value, error.reason) from None
        except (ValueError, OverflowError, RecursionError) as error:
            reason = str(error) if str(error).startswith(("must ", "is ")) else "can't be read"
            raise self._refused(number, name, text, reason) from None
        more = {name: sheet.plain(fields[place]) if fields[place] else None for name, place in self.more} if self.more else _NO_MORE
        values += (self.path, number, more, self.traces, None)
        return Result.made(values)

    def _value(self, name: str, text: str) -> object:
        value = VALUES.get(name)
        return sheet.plain(text) if value is None else value(self._decimal(text))

    def _decimal(self, text: str) -> str:
        return text.replace(",", ".") if self.decimal_comma and text.count(",") == 1 and "." not in text else text

    def _take(self, values: list[Any], homeless: object) -> None:
        """Put what the file has no column for, as JSON has it, into its place among the values."""
        for name, value in homeless.items() if isinstance(homeless, dict) else ():
            if name not in COLUMNS or name in self.place or name == "params" or value is None:
                continue
            if isinstance(value, (dict, list)):
                raise Wrong(f"params.columns.{name}", value, "must be text, a number, true or false")
            text = str(value).lower() if isinstance(value, bool) else str(value)
            place = COLUMNS.index(name)
            try:
                values[place - (place > _PARAMS)] = VALUES[name](text) if name in VALUES else text
            except (ValueError, OverflowError) as error:
                raise Wrong(f"params.columns.{name}", value, str(error)) from None

    def _refused(self, number: int, name: str, value: object, reason: str) -> DataError:
        shown = f"{value[:40]!r}" if isinstance(value, str) else quoted(value)
        return DataError(f"{self.path}, line {number}: the column {name} holds {shown}, which {reason}; mend or remove that line")


def torn(path: AnyPath) -> list[int]:
    """The numbers of the lines of a results file that a killed writer left short, which `read` passes over."""
    return sheet.torn(path, FORM)


@contextmanager
def exclusive(path: AnyPath) -> Iterator[None]:
    """Hold the lock of the results file `path` (the file `PATH.lock`) while a plan runs.

    Raises LockedError when another process holds it, DataError when `path` can't be a results file or the lock can't be made.
    """
    check(path)
    with ExitStack() as held:
        try:
            held.enter_context(sheet.lock(f"{path}.lock"))
        except BlockingIOError as error:
            holder = f" (process {error})" if str(error) else ""
            raise LockedError(f"{path} is in use by another rfx run{holder}; wait for it to end or give another --results") from None
        except OSError as error:
            raise DataError(f"{path}.lock can't be written as the lock of {path}: {error.strerror or error}; remove it") from error
        yield
