"""Split files of rows into ranges that are read independently: bytes of a text, row groups of
Parquet, whole files.

Files are given by paths, patterns or addresses that fsspec opens. A line belongs to the range that
contains its first byte, so the ranges of a file contain each of its lines once.
"""

import io
import math
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import scipy.sparse

from rfx import lazy
from rfx.data import tables, textfiles
from rfx.data.libsvm import Labels
from rfx.data.rows import stacked
from rfx.data.tabular import readers
from rfx.data.tabular.labelwords import MOST, Spellings
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table
from rfx.data.textfiles import SIZE
from rfx.errors import DataError

_HEAD = 1 << 16
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Measured:
    """A file: kind (libsvm, csv, tsv, parquet), the units between which it can be split, and its
    bytes.
    """

    path: str
    kind: str
    units: int
    size: int


@dataclass(frozen=True)
class Piece:
    """The units start .. stop-1 of a file; whole: all of it."""

    path: str
    start: int
    stop: int
    whole: bool


def found(path) -> list[str]:
    """The files that a path or pattern matches, sorted; DataError if there are none."""
    fs, inner = _filesystem(path)
    if fs.isdir(inner):
        names = [name for name in fs.find(inner, maxdepth=1) if Path(name).name[0] not in "._"]
    else:
        names = [inner] if fs.exists(inner) else fs.glob(inner)
    if not names:
        raise DataError(f"{path} matches no file")
    return sorted(fs.unstrip_protocol(name) if "://" in str(path) else name for name in names)


def _filesystem(path):
    try:
        return lazy.fsspec.url_to_fs(str(path))
    except (ImportError, ValueError, OSError) as error:
        raise DataError(f"{path} can't be opened: {error}") from None


def opened(path):
    """A binary handle on the stored bytes of a file; raises OSError, or DataError for an address of
    an unknown kind.
    """
    fs, inner = _filesystem(path)
    return fs.open(inner, "rb")


def measured(path) -> Measured:
    """The Source of a file; DataError if it can't be read."""
    with textfiles.naming(str(path)), opened(path) as handle:
        size = handle.seek(0, io.SEEK_END)
        handle.seek(0)
        head = handle.read(_HEAD)
        packed = textfiles.compressed(head[:8]) and not head.startswith(b"PK")
        if packed:
            handle.seek(0)
            with textfiles.open_plain(handle) as plain:
                head = plain.read(_HEAD)
        kind = tables.kind_of_name(path) or tables.kind_of_content(head)
        tables.check_foreign(textfiles.head(head), str(path))
        if kind not in ("libsvm", "csv", "tsv", "parquet"):
            raise DataError(
                f"{path} is a .{kind} file, which workers can't read; convert it to LIBSVM"
                " text, CSV or Parquet with rfx convert"
            )
        if not size:
            raise DataError(f"{path} is empty")
        units = 1 if packed else size
        if kind == "parquet":
            units = readers.ParquetGroups(handle, str(path)).n_groups
        return Measured(str(path), kind, units, size)


def cut(files: list[Measured], count: int) -> list[list[Piece]]:
    """The pieces of each of `count` parts of about equal size in bytes, in the order of the files;
    parts may be empty.
    """
    ends = list(accumulate(file.size for file in files))
    parts: list[list[Piece]] = []
    for part in range(count):
        low, high = ends[-1] * part // count, ends[-1] * (part + 1) // count
        parts.append([])
        for file, end in zip(files, ends):
            begin = end - file.size
            start = file.units * (max(low, begin) - begin) // file.size
            stop = file.units * (min(high, end) - begin) // file.size
            if start < stop:
                whole = stop - start == file.units
                parts[-1].append(Piece(file.path, start, stop, whole))
    return parts


def lines(piece: Piece, chunk: int = SIZE) -> Iterator[textfiles.Piece]:
    """The whole lines of a range of a text, or of a whole compressed text."""
    unpacked = textfiles.open_plain if piece.whole else nullcontext
    with textfiles.naming(piece.path), opened(piece.path) as file, unpacked(file) as handle:
        start = piece.start
        if start:
            handle.seek(start - 1)
            start += len(handle.readline()) - 1
        left = math.inf if piece.whole else piece.stop - start

        def read(count):
            nonlocal left
            data = handle.read(min(count, max(left, 0)))
            left -= len(data)
            ends = left > 0 or not data or data.endswith(b"\n")
            return data if ends else data + handle.readline()

        for text in textfiles.pieces(read, piece.path, chunk, start, None if start else 1):
            yield text if text.start else replace(text, raw=text.raw.removeprefix(_MARK))


def dialect(file: Measured, header: bool | None) -> readers.Dialect:
    """The dialect of a CSV text."""
    with opened(file.path) as raw, textfiles.open_plain(raw) as plain:
        text = textfiles.opened(plain, file.path)
        separator = "\t" if file.kind == "tsv" else None
        return readers.sample(text.read, file.path, separator).decided(header)


# ---------------------------------------------------------------------- rows


@dataclass
class LibsvmRanges:
    """Rows of LIBSVM text in the pieces of one part; labels: how they become targets."""

    zero_based: bool
    labels: Labels
    pieces: Iterable[Piece] = ()

    def _rows(self):
        """(parsed rows, path) of some megabytes of text at a time."""
        for piece in self.pieces:
            for text in lines(piece):
                rows = self.labels.parse(text, self.zero_based, piece.path)
                if len(rows.y):
                    yield rows, piece.path

    def chunks(self):
        """(X, y) of some megabytes of text at a time; X is CSR, as wide as the chunk's largest
        index.
        """
        for rows, path in self._rows():
            yield rows.matrix(rows.width), self.labels.targets(rows, path)

    def spellings(self) -> Spellings:
        """The spellings of the labels."""
        spellings = Spellings(MOST)
        for rows, _ in self._rows():
            self.labels.count(spellings, rows)
        return spellings


@dataclass
class TableRanges:
    """Rows of CSV text or Parquet in the pieces of one part.

    shape: the dialect of a CSV text; schema: how rows become X and y, needed only for `chunks`;
    as_words: positions of columns to read as words, besides those of the schema or else of a
    learner.
    """

    shape: readers.Dialect | None = None
    as_words: frozenset[int] = frozenset()
    learner: Learner | None = None
    schema: Schema | None = None
    pieces: Iterable[Piece] = ()

    def _words_of(self, table: Table) -> frozenset[int]:
        if self.schema is not None:
            return self.as_words | self.schema.words_in(table)
        return self.as_words | (self.learner.begin(table) if self.learner else frozenset())

    def tables(self):
        """Tables of some megabytes at a time."""
        for piece in self.pieces:
            if self.shape is None:
                yield from self._groups(piece)
            else:
                yield from self._records(piece, self.shape)

    def _groups(self, piece):
        with textfiles.naming(piece.path), opened(piece.path) as handle:
            groups = readers.ParquetGroups(handle, piece.path, self._words_of)
            yield from groups.tables([number] for number in range(piece.start, piece.stop))

    def _records(self, piece: Piece, shape: readers.Dialect) -> Iterator[Table]:
        as_words = self._words_of(shape.columns())
        for own_piece in lines(piece):
            raw, begin = own_piece.raw, own_piece.start
            if b'"' in raw:
                odd = next((line for line in raw.split(b"\n") if line.count(b'"') % 2), None)
                if odd is not None:
                    raise DataError(
                        f"{piece.path}: a cell spans several lines"
                        f" ({odd.decode('utf-8', 'replace'):.60} …), so the file can't be split"
                        " into ranges; save it without line breaks in cells, or as Parquet"
                    )
            line = 1
            if begin == 0:
                begun = readers.dialect(raw, piece.path, shape.header, shape.separator)
                if begun.names != shape.names:
                    raise DataError(
                        f"{piece.path} has other columns than {shape.name}; all files need the"
                        " same columns"
                    )
                raw, line = raw[begun.start :], begun.line
            try:
                table = readers.parse(raw, shape, line, as_words, begin == 0)
            except DataError as error:
                raise DataError(
                    f"{error} (lines are counted from byte {begin:,})" if begin else str(error)
                ) from None
            if table is not None:
                yield table

    def chunks(self):
        """(X, y) of the rows, encoded by the schema."""
        assert self.schema is not None
        for table in self.tables():
            yield self.schema.encode(table)


class Taken:
    """The rows of a source with some numbers, ascending.

    width: minimum number of columns of sparse rows.
    """

    def __init__(self, source, index: np.ndarray, width: int = 0):
        self.source, self.index, self.width = source, index, width

    def _wanted(self, parts, count):
        """(part, places of the wanted rows in it) of each part that has some; count(part): its
        rows.
        """
        at = 0
        for part in parts:
            after = at + count(part)
            low, high = np.searchsorted(self.index, (at, after))
            if low < high:
                yield part, self.index[low:high] - at
            at = after

    def chunks(self):
        for (X, y), places in self._wanted(self.source.chunks(), lambda part: len(part[1])):
            rows = X[places]
            if scipy.sparse.issparse(rows) and rows.shape[1] < self.width:
                rows.resize(len(places), self.width)
            yield rows, y[places]

    def tables(self):
        """The rows as tables, if the source has tables."""
        for table, places in self._wanted(self.source.tables(), lambda table: table.n_rows):
            yield table.rows(places)


class Arrays:
    """Rows X (n, d), array or CSR, and y (n,) in memory."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def chunks(self):
        yield self.X, self.y


# ---------------------------------------------------------------------- rows of a source


def picked(source, index: np.ndarray, width: int):
    """The unscaled rows with these ascending numbers: an array, or CSR, of that many columns.

    DataError if the source has fewer rows, or more columns, than when it was surveyed.
    """
    parts = [X for X, _ in Taken(source, index, width=width).chunks()]
    if sum(X.shape[0] for X in parts) != len(index) or any(X.shape[1] > width for X in parts):
        raise _changed()
    return stacked(parts)


def load(source, count: int, width: int, scaler, dtype, finish):
    """The `count` rows of a source, scaled; finish(X): the stored form of some rows.

    An array, or CSR if finish returns CSR. DataError if the rows of the source have changed
    since the survey.
    """
    at, dense, sparse = 0, None, []
    for raw, _ in source.chunks():
        start, at = at, at + raw.shape[0]
        if at > count or raw.shape[1] > width:
            raise _changed()
        X = finish(scaler.transform(raw, dtype=dtype))
        if scipy.sparse.issparse(X):
            sparse.append(X)
        else:
            dense = np.empty((count, width), dtype) if dense is None else dense
            dense[start:at] = X
    if at != count:
        raise _changed()
    return stacked(sparse) if sparse else dense


def _changed() -> DataError:
    return DataError(
        "the files changed while they were read; train again when they no longer change"
    )
