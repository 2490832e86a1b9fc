"""Split files of rows into ranges that are read independently: bytes of a text, row groups of
Parquet, whole files.

Files are given by paths, patterns or addresses that fsspec opens. A line belongs to the range that
contains its first byte, so the ranges of a file contain each of its lines once.
"""

import glob
import io
from bisect import bisect_right
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import scipy.sparse

from rfx import files, lazy
from rfx.data import archives, encodings, tables
from rfx.data.libsvm import labelled
from rfx.data.libsvm.scan import LONGEST_LINE
from rfx.data.tabular import csvtext, foreign, labelwords, parquetfiles
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table
from rfx.errors import DataError, UsageError

CHUNK = 8 << 20  # bytes of a text parsed at a time
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
    if remote(path):
        fs, inner = _filesystem(path)
        names = (
            [fs.unstrip_protocol(name) for name in sorted(fs.glob(inner))]
            if any(mark in inner for mark in "*?[")
            else [str(path)]
        )
    elif Path(path).is_dir():
        names = sorted(
            str(own)
            for own in Path(path).iterdir()
            if own.is_file() and not own.name.startswith((".", "_"))
        )
    else:
        names = (
            sorted(glob.glob(str(path)))
            if is_pattern(path) and not Path(path).exists()
            else [str(path)]
        )
    if not names:
        raise DataError(f"{path} matches no file")
    return names


def _filesystem(path):
    try:
        core = lazy.fsspec
    except ImportError:
        raise UsageError(
            f"{path} is an address that needs fsspec; pip install 'rfx-kernels[distributed]'"
        ) from None
    try:
        return core.url_to_fs(str(path))
    except (ImportError, ValueError, OSError) as error:
        raise DataError(f"{path} can't be opened: {error}") from None


def opened(path):
    """A binary handle on the stored bytes of a file; raises OSError, or DataError for an address of
    an unknown kind.
    """
    if not remote(path):
        return files.open_regular(path)
    fs, inner = _filesystem(path)
    return fs.open(inner, "rb")


def measured(path) -> Measured:
    """The Source of a file; DataError if it can't be read."""
    try:
        with opened(path) as handle:
            size = handle.seek(0, io.SEEK_END)
            handle.seek(0)
            head = handle.read(_HEAD)
            packed = archives.compressed(head[:8]) and not head.startswith(b"PK")
            if packed:
                handle.seek(0)
                head = archives.open_plain(handle).read(_HEAD)
            kind = tables.kind_of_name(path) or tables.kind_of_content(head)
            _check_mark(head, path)
            foreign.check(encodings.head(head), str(path))
            if kind not in ("libsvm", "csv", "tsv", "parquet"):
                raise DataError(
                    f"{path} is a .{kind} file, which workers can't read; convert it to LIBSVM"
                    " text, CSV or Parquet with rfx convert"
                )
            if not size:
                raise DataError(f"{path} is empty")
            return Measured(
                str(path),
                kind,
                _groups(handle, path) if kind == "parquet" else 1 if packed else size,
                size,
            )
    except archives.DAMAGE as error:
        raise DataError(
            f"{path} can't be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def _groups(handle, path) -> int:
    return parquetfiles.ParquetGroups(handle, str(path)).n_groups


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


def texts(piece: Piece, chunk: int = CHUNK):
    """(whole lines, their start) of a range of a text, or of a whole compressed text."""
    with opened(piece.path) as file:
        handle = archives.open_plain(file) if piece.whole else file
        at, stop = piece.start, None if piece.whole else piece.stop
        if at:
            handle.seek(at - 1)
            at += len(_line(handle, piece)) - 1
        rest, begin = b"", at
        while stop is None or at < stop:
            data = handle.read(chunk if stop is None else min(chunk, stop - at))
            at += len(data)
            text, last = rest + data, not data or at == stop
            if last and text and not text.endswith(b"\n"):
                text += _line(handle, piece)
            end = len(text) if last else text.rfind(b"\n") + 1
            text, rest = text[:end], text[end:]
            if len(rest) > LONGEST_LINE:
                raise DataError(
                    f"{piece.path}, byte {begin:,}: the line there is longer than {LONGEST_LINE:,}"
                    " bytes, the maximum for a row"
                )
            if text:
                yield text, begin
                begin += len(text)
            if not data:
                return


def _line(handle, piece) -> bytes:
    line = handle.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise DataError(
            f"{piece.path}: a line is longer than {LONGEST_LINE:,} bytes, the maximum for a row"
        )
    return line


def dialect(file: Measured, header: bool | None):
    """The dialect of a CSV text; DataError if its ranges can't be read independently."""
    with opened(file.path) as raw:
        handle = archives.open_plain(raw) if file.units == 1 else raw
        head = handle.read(4)
        _check_mark(head, file.path)
        rest = archives.joined(head.removeprefix(_MARK), handle)
        return csvtext.sample(rest.read, file.path, "\t" if file.kind == "tsv" else None).dialect(
            header
        )


def _check_mark(head, path):
    """Reject texts whose byte order mark is not UTF-8: ranges other than the first would be
    misread.
    """
    mark = encodings.marked(head)
    if mark is not None and mark[0] != "utf-8":
        raise DataError(f"{path} is {mark[0]}, which workers can't read in parts; save it in UTF-8")


def first_word(piece: Piece) -> DataError | None:
    """The error for word targets of a regression, raised if the first label of a LIBSVM text is a
    word.
    """
    with opened(piece.path) as file:
        head = archives.open_plain(file).read(_HEAD).removeprefix(_MARK)
    return labelwords.first_word(head, piece.path) if labelwords.recognised(head) else None


# ---------------------------------------------------------------------- rows


class LibsvmRanges:
    """Rows of LIBSVM text. labels: their reader, by default for numbers."""

    def __init__(self, zero_based: bool = False, labels: labelled.Reader | None = None):
        self.zero_based, self.labels = zero_based, labels or labelled.Reader(numbers=True)

    def chunks(self, piece):
        """(X, y) of the rows of a piece, some megabytes of text at a time; X is CSR, as wide as the
        chunk's largest index.
        """
        for raw, begin in texts(piece):
            raw = raw if begin else raw.removeprefix(_MARK)
            found = self.labels.parse(raw, self.zero_based, piece.path)
            if found.bad >= 0:
                column, message = found.problem(self.zero_based)
                raise DataError(
                    f"{piece.path}, the line at byte {begin + found.bad:,}, column {column}:"
                    f" {message}"
                )
            if len(found.y):
                y = self.labels.targets(found, piece.path)
                yield (
                    scipy.sparse.csr_matrix(
                        (found.values, found.indices, found.indptr), (len(y), found.width)
                    ),
                    y,
                )

    def spellings(self, piece, worded: bool) -> labelwords.Spellings:
        """The spellings of the labels of a piece; worded: they are words."""
        found = labelwords.Spellings(labelwords.MOST)
        for raw, begin in texts(piece):
            stretch = labelled.parse(
                raw if begin else raw.removeprefix(_MARK),
                self.zero_based,
                piece.path,
                worded=worded,
            )
            if stretch.bad < 0:
                labelled.count(found, stretch)
            if found.full:
                break
        return found


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
            groups = parquetfiles.ParquetGroups(handle, piece.path, self._words_of)
            yield from groups.tables(range(piece.start, piece.stop))

    def _records(self, piece):
        names, named = list(self.shape.names), self.shape.header
        as_words = self._words_of(Table(self.shape.name, names, named, []))
        for raw, begin in texts(piece):
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
                raw = raw.removeprefix(_MARK)
                own = csvtext.dialect(raw, piece.path, self.shape.header, self.shape.separator)
                if own.names != self.shape.names:
                    raise DataError(
                        f"{piece.path} has other columns than {self.shape.name}; all files need the"
                        " same columns"
                    )
                raw, line = raw[own.start :], own.line
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

    def chunks(self):
        for piece in self.pieces:
            yield from _said(piece.path, self.reader.chunks(piece))

    def tables(self):
        for piece in self.pieces:
            yield from _said(piece.path, self.reader.tables(piece))

    def reading_as(self, schema: Schema) -> "Pieces":
        """The same rows of a table with another schema."""
        reader = copy(self.reader)
        reader.schema = schema
        return Pieces(reader, self.pieces)

    def spellings(self, how) -> labelwords.Spellings:
        """The spellings of the labels; how: see `spellings` of the reader."""
        found = labelwords.Spellings(labelwords.MOST)
        for piece in self.pieces:
            found.merge(next(_said(piece.path, map(self.reader.spellings, [piece], [how]))))
        return found


class Taken:
    """Some rows of a source, in order.

    labels: {label: value}; rows with other labels are dropped; index: numbers of those rows,
    ascending; None for all. width: minimum number of columns of sparse rows.
    """

    def __init__(self, source, index=None, labels=None, width: int = 0):
        self.source, self.index, self.labels, self.width = source, index, labels, width

    def chunks(self):
        at = 0
        for X, y in self.source.chunks():
            if self.labels:
                kept = np.flatnonzero(np.isin(y, list(self.labels)))
                X, y = X[kept], np.array([self.labels[label] for label in y[kept].tolist()])
            after = at + len(y)
            if self.index is not None:
                low, high = np.searchsorted(self.index, (at, after))
                own = self.index[low:high] - at
                X, y = X[own], y[own]
            at = after
            if X.shape[1] < self.width and scipy.sparse.issparse(X):
                shape = (X.shape[0], self.width)
                X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape)
            if len(y):
                yield X, y

    def tables(self):
        """The rows as tables, if the source has tables."""
        at = 0
        for table in self.source.tables():
            after = at + table.n_rows
            low, high = np.searchsorted(self.index, (at, after))
            if low < high:
                yield table.rows(self.index[low:high] - at)
            at = after


class Arrays:
    """Rows X (n, d), array or CSR, and y (n,) in memory."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def chunks(self):
        yield self.X, self.y


def _said(path, found):
    try:
        yield from found
    except archives.DAMAGE as error:
        raise DataError(
            f"{path} can't be read: {getattr(error, 'strerror', None) or error}"
        ) from None
