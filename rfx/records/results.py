"""The results file: one flat CSV row per run, appended under a lock, fsynced, never rewritten, read
by column name.
"""

import errno
import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import repeat
from types import MappingProxyType
from typing import Any, TypeAlias

from rfx.errors import DataError, LockedError, quoted
from rfx.records import sheet
from rfx.records.result import (
    COLUMNS,
    NAMED,
    STATUSES,
    VALUES,
    FindTrace,
    Packer,
    Result,
    Wrong,
    check_together,
    params_of,
    plainly,
    seconds_train,
)
from rfx.records.sheet import AnyPath

__all__ = ["COLUMNS", "STATUSES", "append", "check", "exclusive", "read", "seconds_train"]

FORM = sheet.Form(
    what="results file",
    columns=COLUMNS,
    needed=frozenset(("key", "status", "dataset", "method")),
    rest="params",
)
_NO_MORE: Mapping[str, str | None] = MappingProxyType({})
Line: TypeAlias = tuple[int, list[str]]  # its number and its cells
_BLOCK = 512  # lines read at a time
_KEPT = 4096  # texts of a column whose values are cached
_MANY = _BLOCK // 2  # new texts in a block of a column without many repetitions
_CELLS = tuple(name for name in COLUMNS if name != "params")
_PARAMS, _SCORE, _METRIC = (COLUMNS.index(name) for name in ("params", "score", "metric"))
_NAMED = [COLUMNS.index(name) for name in NAMED]


def check(path: AnyPath) -> None:
    """Raise DataError if `append` could not add a row to the results file `path`; nothing is
    created or changed.
    """
    sheet.check(path, FORM)


def append(path: AnyPath, row: Mapping[str, Any]) -> None:
    """Append `row` to the results file `path` and force it to the disk; the first row also writes
    the header.

    `created` is set here; `params` may be a dict. Missing columns are left empty; entries without a
    column in the file are stored in params. Raises DataError if the file can't be written or is
    another CSV file, ValueError for an unknown column.
    """
    cells = {**row, "created": datetime.now(UTC).isoformat(timespec="seconds")}
    if isinstance(row, Result):
        cells["params"] = dict(row.params)
    sheet.append(path, [cells], FORM)


def read(
    path: AnyPath,
    traces: FindTrace | None = None,
    torn: list[int] | None = None,
    only: Iterable[str] = COLUMNS,
) -> list[Result]:
    """Rows of the results file `path`, oldest first, each checked.

    traces: finds the trace of a row by its key, as returned by `rfx.records.traces.finder`. torn:
    receives the numbers of lines truncated by a killed writer. only: the required columns in
    addition to the key; the others are checked, and None, so that many rows need less memory.

    Empty fields are None, unknown columns are stored as text. Of several rows with one key the last
    counts. Lines truncated by a killed writer are skipped. Raises DataError, with the file, the
    line and the column, if the file does not exist, is another CSV file, or a field is invalid.
    """
    try:
        header, records = sheet.read(path, FORM, torn)
    except FileNotFoundError:
        raise DataError(
            f"{path}: there is no such results file; rfx run or rfx eval --results writes one"
        ) from None
    reader = _Reader(path, header, traces, only)
    rows: dict[object, Result] = {}
    # rows have no reference cycles: repeated cycle collection takes long
    collecting = gc.isenabled()
    gc.disable()
    try:
        for block in _blocks(records):
            for row in reader.rows(block):
                name = row.key or row.line
                rows.pop(name, None)
                rows[name] = row
    finally:
        if collecting:
            gc.enable()
    return list(rows.values())


def _blocks(records: Iterator[Line]) -> Iterator[list[Line]]:
    """The lines in blocks; lines before one that can't be parsed form a block too."""
    block: list[Line] = []
    try:
        for line in records:
            block.append(line)
            if len(block) == _BLOCK:
                yield block
                block = []
    except DataError:
        yield block
        raise
    yield block


class _Reader:
    """Creates Results from the lines of one file, in blocks, column by column."""

    def __init__(
        self, path: AnyPath, header: sheet.Header, traces: FindTrace | None, only: Iterable[str]
    ) -> None:
        self.path, self.traces, self.packer = path, traces, Packer()
        wanted = {"key", *only}
        self.left_out = [place for place, name in enumerate(COLUMNS) if name not in wanted]
        # the first of duplicate columns counts; an absent column uses the empty cell after the last
        self.place = {
            name: place
            for place, name in reversed(list(enumerate(header.names)))
            if name in COLUMNS
        }
        self.more = [
            (name, place) for place, name in enumerate(header.names) if name not in COLUMNS
        ]
        self.lacking = len(header.names)
        self.decimal_comma = header.delimiter == ";"
        # cached values of the texts of each column
        self.known: dict[str, dict[str, Any]] = {name: {"": None} for name in _CELLS}
        # those columns of which few texts repeat
        self.varied: set[str] = set()

    def rows(self, block: list[Line]) -> list[Result]:
        """The Results of some lines; DataError, with line and column, for the first invalid one."""
        if not block:
            return []
        cells = list(zip(*(fields for _, fields in block)))
        cells[self.lacking :] = [("",) * len(block)]
        columns: list[list[Any]] = []
        name, texts = "", ("",)
        try:
            for name in _CELLS:
                texts = cells[self.place.get(name, self.lacking)]
                columns.append(self._column(name, texts))
            name, texts = "params", cells[self.place.get("params", self.lacking)]
            given = list(map(params_of, texts))
            for place, found in enumerate(given):
                if "columns" in found:
                    self._take(columns, place, found.pop("columns"))
            numbers = [number for number, _ in block]
            columns.insert(_PARAMS, self.packer.params(given, self.path, numbers))
            for score, metric in zip(columns[_SCORE], columns[_METRIC]):
                check_together(score, metric)
            for column in _NAMED:
                if not all(columns[column]):
                    raise Wrong(COLUMNS[column], "", "must not be empty")
        except (ValueError, OverflowError, RecursionError) as error:
            if len(block) > 1:
                # the first invalid line alone gives the reason
                return [row for line in block for row in self.rows([line])]
            raise self._refused(block[0][0], error, name, texts[0]) from None
        for place in self.left_out:
            columns[place] = [None] * len(block)
        return Result.made(
            columns, self.path, numbers, self._others(cells, len(block)), self.traces
        )

    def _others(
        self, cells: list[tuple[str, ...]], size: int
    ) -> Iterable[Mapping[str, str | None]]:
        """The cells of the unknown columns of each line."""
        if not self.more:
            return repeat(_NO_MORE, size)
        names = [name for name, _ in self.more]
        own = [
            [sheet.plain(text) if text else None for text in cells[place]] for _, place in self.more
        ]
        return [dict(zip(names, values)) for values in zip(*own)]

    def _column(self, name: str, texts: tuple[str, ...]) -> list[Any]:
        """The values of the cells of one column; values common to many rows are stored once."""
        known = self.known[name]
        if name in self.varied:
            self.varied.discard(name)
            found = self._plainly(name, texts)
            if found is not None:
                self.varied.add(name)
                return found
        with suppress(KeyError):
            return list(map(known.__getitem__, texts))
        new = set(texts).difference(known)
        if len(new) > _MANY and len(known) > _MANY:
            self.varied.add(name)
        if len(known) > _KEPT:
            known.clear()
            known[""] = None
            new = set(texts)
            new.discard("")
        for text in new:
            known[text] = self._value(name, text)
        return list(map(known.__getitem__, texts))

    def _plainly(self, name: str, texts: tuple[str, ...]) -> list[Any] | None:
        """The values of a typical column of texts or of numbers; None if one needs a closer
        look.
        """
        kind = VALUES.get(name)
        if kind is None:
            return [sheet.plain(text) if text else None for text in texts]
        return None if self.decimal_comma else plainly(kind, texts)

    def _value(self, name: str, text: str) -> object:
        value = VALUES.get(name)
        return sheet.plain(text) if value is None else value(self._decimal(text))

    def _decimal(self, text: str) -> str:
        return (
            text.replace(",", ".")
            if self.decimal_comma and text.count(",") == 1 and "." not in text
            else text
        )

    def _take(self, columns: list[list[Any]], row: int, homeless: object) -> None:
        """Move entries without a column in the file, stored as JSON, to their place among the
        values of a row.
        """
        for name, value in homeless.items() if isinstance(homeless, dict) else ():
            if name not in COLUMNS or name in self.place or name == "params" or value is None:
                continue
            if isinstance(value, (dict, list)):
                raise Wrong(
                    f"params.columns.{name}", value, "must be text, a number, true or false"
                )
            text = str(value).lower() if isinstance(value, bool) else str(value)
            try:
                columns[_CELLS.index(name)][row] = VALUES[name](text) if name in VALUES else text
            except (ValueError, OverflowError) as error:
                raise Wrong(f"params.columns.{name}", value, str(error)) from None

    def _refused(self, number: int, error: Exception, name: str, text: str) -> DataError:
        """The error message for a line, given the reason and the column and cell."""
        value: object = text
        if isinstance(error, Wrong):
            name, value, reason = error.name, error.value, error.reason
        else:
            reason = str(error) if str(error).startswith(("must ", "is ")) else "can't be read"
        shown = f"{value[:40]!r}" if isinstance(value, str) else quoted(value)
        return DataError(
            f"{self.path}, line {number}: the column {name} holds {shown}, which {reason}; fix or"
            " remove that line"
        )


@contextmanager
def exclusive(path: AnyPath) -> Iterator[None]:
    """Hold the lock of the results file `path` (the file `PATH.lock`) while a plan runs.

    Raises LockedError if another process holds it, DataError if `path` can't be a results file or
    the lock can't be created.
    """
    check(path)
    with ExitStack() as held:
        try:
            held.enter_context(sheet.lock(f"{path}.lock"))
        except BlockingIOError as error:
            holder = f" (process {error})" if str(error) else ""
            raise LockedError(
                f"{path} is in use by another rfx run{holder}; wait for it to end or use another"
                " --results"
            ) from None
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise DataError(
                f"{path}.lock can't be written as the lock of {path}: {error.strerror or error};"
                f" {'free some space there' if full else 'remove it'}"
            ) from error
        yield
