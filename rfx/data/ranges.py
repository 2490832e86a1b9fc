"""Split files of rows into ranges that are read independently: bytes of a text, row groups of
Parquet, whole files.

Files are given by paths, patterns or addresses that fsspec opens. A line belongs to the range that
contains its first byte, so the ranges of a file contain each of its lines once.
"""

import glob
import io
import math
from bisect import bisect_right
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import scipy.sparse

from rfx import lazy
from rfx.data import archives, encodings, pieces, tables
from rfx.data.libsvm.svmlight import Labels
from rfx.data.pieces import SIZE
from rfx.data.rows import stacked
from rfx.data.tabular import arrayfiles, csvtext
from rfx.data.tabular.labelwords import MOST, Spellings
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table
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


def remote(path) -> bool:
    """Whether a path is an address that fsspec opens."""
    return "://" in str(path)


def is_pattern(path) -> bool:
    """Whether a path may match several files."""
    return remote(path) or any(mark in str(path) for mark in "*?[")


def found(path) -> list[str]:
    """The files that a path or pattern matches, sorted; DataError if there are none."""
    names = [str(path)]
    if remote(path) and any(mark in str(path) for mark in "*?["):
        fs, inner = _filesystem(path)
        names = [fs.unstrip_protocol(name) for name in sorted(fs.glob(inner))]
    elif Path(path).is_dir():
        files_there = (file for file in Path(path).iterdir() if file.is_file())
        names = sorted(str(file) for file in files_there if not file.name.startswith((".", "_")))
    elif is_pattern(path) and not remote(path) and not Path(path).exists():
        names = sorted(glob.glob(str(path)))
    if not names:
        raise DataError(f"{path} matches no file")
    return names


def _filesystem(path):
    try:
        return lazy.fsspec.url_to_fs(str(path))
    except (ImportError, ValueError, OSError) as error:
        raise DataError(f"{path} can't be opened: {error}") from None


def opened(path):
    """A binary handle on the stored bytes of a file; raises OSError, or DataError for an address of
    an unknown kind.
    """
    if not remote(path):
        return open(path, "rb")
    fs, inner = _filesystem(path)
    return fs.open(inner, "rb")


def measured(path) -> Measured:
    """The Source of a file; DataError if it can't be read."""
    with archives.naming(str(path)), opened(path) as handle:
        size = handle.seek(0, io.SEEK_END)
        handle.seek(0)
        head = handle.read(_HEAD)
        packed = archives.compressed(head[:8]) and not head.startswith(b"PK")
        if packed:
            handle.seek(0)
            head = archives.open_plain(handle).read(_HEAD)
        kind = tables.kind_of_name(path) or tables.kind_of_content(head)
        _check_mark(head, path)
        tables.check_foreign(encodings.head(head), str(path))
        if kind not in ("libsvm", "csv", "tsv", "parquet"):
            raise DataError(
                f"{path} is a .{kind} file, which workers can't read; convert it to LIBSVM"
                " text, CSV or Parquet with rfx convert"
            )
        if not size:
            raise DataError(f"{path} is empty")
        units = 1 if packed else size
        if kind == "parquet":
            units = arrayfiles.ParquetGroups(handle, str(path)).n_groups
        return Measured(str(path), kind, units, size)


def cut(files: list[Measured], count: int) -> list[list[Piece]]:
    """The pieces of each of `count` parts of about equal size in bytes, in the order of the files;
    parts may be empty.
    """
    ends = list(accumulate(file.size for file in files))
    cuts = []
    for part in range(count + 1):
        at = ends[-1] * part // count
        number = min(bisect_right(ends, at), len(files) - 1)
        file, before = files[number], ends[number] - files[number].size
        cuts.append((number, file.units * (at - before) // file.size))
    parts = []
    for (first, start), (last, stop) in zip(cuts, cuts[1:]):
        pieces = []
        for number in range(first, last + 1):
            file = files[number]
            low, high = start if number == first else 0, stop if number == last else file.units
            if low < high:
                pieces.append(Piece(file.path, low, high, high - low == file.units))
        parts.append(pieces)
    return parts


def lines(piece: Piece, chunk: int = SIZE) -> Iterator[pieces.Piece]:
    """The whole lines of a range of a text, or of a whole compressed text."""
    with archives.naming(piece.path), opened(piece.path) as file:
        handle = archives.open_plain(file) if piece.whole else file
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

        for text in pieces.pieces(read, piece.path, chunk, start, None if start else 1):
            yield text if text.start else replace(text, raw=text.raw.removeprefix(_MARK))


def dialect(file: Measured, header: bool | None):
    """The dialect of a CSV text; DataError if its ranges can't be read independently."""
    with opened(file.path) as raw:
        handle = archives.open_plain(raw) if file.units == 1 else raw
        head = handle.read(4)
        _check_mark(head, file.path)
        rest = archives.joined(head.removeprefix(_MARK), handle)
        return csvtext.sample(rest.read, file.path, "\t" if file.kind == "tsv" else None).decided(
            header
        )


def _check_mark(head, path):
    """Reject texts whose byte order mark is not UTF-8: ranges other than the first would be
    misread.
    """
    mark = encodings.marked(head)
    if mark is not None and mark[0] != "utf-8":
        raise DataError(f"{path} is {mark[0]}, which workers can't read in parts; save it in UTF-8")


# ---------------------------------------------------------------------- rows


class LibsvmRanges:
    """Rows of LIBSVM text. labels: how they become targets."""

    def __init__(self, zero_based: bool, labels: Labels):
        self.zero_based, self.labels = zero_based, labels

    def rows(self, piece):
        """The parsed rows of a piece, some megabytes of text at a time."""
        for text in lines(piece):
            rows = self.labels.parse(text, self.zero_based, piece.path)
            if len(rows.y):
                yield rows

    def chunks(self, piece):
        """(X, y) of the rows of a piece, some megabytes of text at a time; X is CSR, as wide as the
        chunk's largest index.
        """
        for rows in self.rows(piece):
            yield rows.matrix(rows.width), self.labels.targets(rows, piece.path)


class TableRanges:
    """Rows of CSV text or Parquet. shape: the dialect of a CSV text; schema: how rows become X and
    y, needed only for `chunks`; as_words: positions of columns to read as words, besides those of
    the schema or else of a learner."""

    def __init__(self, shape=None, as_words=frozenset(), learner=None):
        self.shape, self.as_words, self.learner = shape, as_words, learner
        self.schema: Schema | None = None

    def _words_of(self, table: Table) -> frozenset[int]:
        if self.schema is not None:
            return self.as_words | self.schema.words_in(table)
        return self.as_words | (self.learner.begin(table) if self.learner else frozenset())

    def tables(self, piece):
        """The tables of a piece, some megabytes at a time."""
        yield from self._groups(piece) if self.shape is None else self._records(piece)

    def _groups(self, piece):
        with opened(piece.path) as handle:
            groups = arrayfiles.ParquetGroups(handle, piece.path, self._words_of)
            yield from groups.tables(range(piece.start, piece.stop))

    def _records(self, piece):
        as_words = self._words_of(self.shape.columns())
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
                begun = csvtext.dialect(raw, piece.path, self.shape.header, self.shape.separator)
                if begun.names != self.shape.names:
                    raise DataError(
                        f"{piece.path} has other columns than {self.shape.name}; all files need the"
                        " same columns"
                    )
                raw, line = raw[begun.start :], begun.line
            try:
                table = csvtext.parse(raw, self.shape, line, as_words, begin == 0)
            except DataError as error:
                raise DataError(
                    f"{error} (lines are counted from byte {begin:,})" if begin else str(error)
                ) from None
            if table is not None:
                yield table

    def chunks(self, piece):
        """(X, y) of the rows of a piece, encoded by the schema."""
        assert self.schema is not None
        for table in self.tables(piece):
            yield self.schema.encode(table)


class Pieces:
    """The rows of the pieces of one part."""

    def __init__(self, reader, pieces):
        self.reader, self.pieces = reader, pieces

    def _each(self, read):
        for piece in self.pieces:
            with archives.naming(piece.path):
                yield from read(piece)

    def chunks(self):
        return self._each(self.reader.chunks)

    def tables(self):
        return self._each(self.reader.tables)

    def reading_as(self, schema: Schema) -> "Pieces":
        """The same rows of a table with another schema."""
        reader = copy(self.reader)
        reader.schema = schema
        return Pieces(reader, self.pieces)

    def spellings(self) -> Spellings:
        """The spellings of the labels."""
        spellings = Spellings(MOST)
        for rows in self._each(self.reader.rows):
            self.reader.labels.count(spellings, rows)
        return spellings


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

    DataError if the source has fewer rows than when it was surveyed.
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
    if at != count or (sparse and dense is not None):
        raise _changed()
    return stacked(sparse) if sparse else dense


def _changed():
    return DataError(
        "the files changed while they were read; train again when they no longer change"
    )
