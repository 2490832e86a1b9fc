"""Rows that need not fit into memory: batches from a file, standard input, a generator or arrays,
epoch by epoch; and ranges of files, which are read independently.

A source returns rows in order, knows its position and can go back to it. A `Stream` forms batches
of one size, shuffled within a buffer. Its position is a small dict from which another stream
continues with the same batches.
"""

from __future__ import annotations

import hashlib
import io
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from rfx import lazy
from rfx.counters import uniforms
from rfx.data import tables, textfiles
from rfx.data.libsvm import checked_rows
from rfx.data.reading import Reading
from rfx.data.rows import stacked
from rfx.data.splits import shuffled
from rfx.data.tabular import readers
from rfx.data.tabular.learner import KindChanged, Learner
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table
from rfx.errors import DataError
from rfx.types import Inputs

_REPLACE = 92
# Rows X (n, d), array or CSR, their targets, and their numbers.
Part: TypeAlias = tuple[Inputs, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Place:
    """The number of the next row of a source. Its fields are stored in checkpoints."""

    row: int

    @classmethod
    def of_dict(cls, saved: dict) -> Self:
        """Read from a checkpoint."""
        return cls(**saved)


class Source(ABC):
    """Rows in order, with a position.

    n_inputs: columns of X, None before the first rows are read. row: the number of the next row.
    name: for messages.
    """

    n_inputs: int | None = None
    rewindable = True
    name = "the rows"
    row = 0
    begin: dict | None = None  # the place of the first row, if rows before it were learnt
    place_type: ClassVar[type[Place]] = Place

    @abstractmethod
    def read(self, count: int) -> Part | None:
        """The next rows, at most `count`: X (n, d), y (n,) and their numbers from 0 (n,); None at
        the end.
        """

    def peek(self, count: int) -> tuple[Inputs, np.ndarray]:
        """X and y of the first rows, at least `count` of them if available; the next `read` returns
        them again.
        """
        part = self.read(count)
        if part is None:
            raise DataError(f"{self.name} has no rows")
        X, y, _ = part
        self.row -= len(y)
        return X, y

    def tell(self) -> Place:
        """The place of the next row, for `seek`."""
        return Place(self.row)

    def seek(self, place: Place) -> None:
        """Go to a place returned by `tell`; DataError if the rows before it have changed."""
        self.row = place.row

    def rewind(self, epoch: int = 0) -> None:
        """Go to the first row, for the given epoch."""
        self.row = 0

    def further(self, end: dict) -> bool:
        """Let the rows begin behind those that ended at the place `end`, as a checkpoint has it, or
        all be new if the input is another one; False if there are none, and nothing changes.
        """
        return False


@dataclass(frozen=True)
class ArrayPlace(Place):
    """A place in rows in memory: the epoch, which has an order of its own, and what identifies the
    rows.
    """

    epoch: int
    digest: str


class ArraySource(Source):
    """Rows of X (n, d), array, memory map or CSR, and y (n,); with a seed, each epoch has its own
    random order, or draws as many rows with replacement. weights: (n,) sample weights, which also
    identify the rows.
    """

    name = "the rows"
    place_type = ArrayPlace

    def __init__(
        self,
        X: Inputs,
        y: np.ndarray,
        seed: int | None = None,
        replace: bool = False,
        weights: np.ndarray | None = None,
    ) -> None:
        self.X, self.weights = X, weights
        self.y = np.asarray(y, np.float64)
        self.seed, self.replace = seed, replace
        self.n_inputs = X.shape[1]
        self.rewind()

    def read(self, count: int) -> Part | None:
        taken = self._order[self.row : self.row + count]
        if not len(taken):
            return None
        self.row += len(taken)
        return self.X[taken], self.y[taken], taken

    def tell(self):
        return ArrayPlace(self.row, self._epoch, self._digest)

    @cached_property
    def _digest(self) -> str:
        """What identifies the rows: their shape, some of the inputs, all targets and weights."""
        some = np.unique(np.linspace(0, len(self.y) - 1, 256).astype(int))
        rows = self.X[some].toarray() if sp.issparse(self.X) else self.X[some]
        arrays = [rows, self.y] if self.weights is None else [rows, self.y, self.weights]
        digest = hashlib.blake2b(str(self.X.shape).encode(), digest_size=16)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def seek(self, place):
        if place.digest != self._digest:
            raise DataError(
                "the rows differ from those of the checkpoint; use the same input, --stream for"
                " further rows, or start again"
            )
        self.rewind(place.epoch)
        self.row = place.row

    def rewind(self, epoch=0):
        n = len(self.y)
        self._epoch, self.row = epoch, 0
        if self.replace:
            draws = uniforms(self.seed or 0, _REPLACE, epoch * n, (epoch + 1) * n, 1)
            self._order = (draws[:, 0] * n).astype(np.int64)
        elif self.seed is None:
            self._order = np.arange(n)
        else:
            self._order = shuffled(n, self.seed, epoch)


class GeneratedSource(Source):
    """Rows without an end, created by a function: make(start, stop) -> X, y of the rows
    start .. stop-1.
    """

    name = "the generated rows"

    def __init__(self, make: Callable, n_inputs: int):
        self.make, self.n_inputs = make, n_inputs

    def read(self, count: int) -> Part:
        first, self.row = self.row, self.row + count
        X, y = self.make(first, self.row)
        return X, y, np.arange(first, self.row)


@dataclass(frozen=True)
class Position:
    """Where a stream is: its settings, the epoch, the number of the window and the offset in it,
    the rows so far, and the place of its source where the window begins.
    """

    batch: int
    window: int
    shuffled: bool
    seed: int
    epoch: int
    number: int
    offset: int
    rows: int
    source: dict


class Stream:
    """Batches (X, y, row numbers) of a source: an iterator that can resume from a position.

    batch: rows of each batch except the last of an epoch. buffer: rows shuffled together, by (seed,
    epoch, number of the buffer); 0 keeps the order. epochs: passes over the source, None for no
    end.
    """

    def __init__(
        self, source: Source, batch: int, buffer: int = 0, seed: int = 0, epochs: int | None = 1
    ):
        self.source, self.batch, self.seed, self.epochs = source, int(batch), seed, epochs
        self.shuffled = buffer > 0
        # a window is split into whole batches, so that only the last of an epoch is smaller
        self.window = max(1, -(-max(buffer, 1) // self.batch)) * self.batch
        self.epoch, self.number, self.offset, self.rows = 0, 0, 0, 0
        self._held: Part | None = None  # what batches are cut from
        self._start = source.tell()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Part:
        while self._held is None:
            if not self._fill():
                self._next_epoch()
        X, y, index = self._held
        part = self._order[self.offset : self.offset + self.batch]
        self.offset += len(part)
        self.rows += len(part)
        if self.offset >= len(y):
            self._held, self.offset = None, 0
            self.number += 1
            self._start = self.source.tell()
        if len(part) == len(y) and not self.shuffled:
            return X, y, index
        return X[part], y[part], index[part]

    def _fill(self) -> bool:
        self._held = self.source.read(self.window)
        if self._held is None:
            return False
        n = len(self._held[1])
        self._order = np.arange(n)
        if self.shuffled:
            self._order = shuffled(n, self.seed, self.epoch, self.number)
        return True

    def _next_epoch(self):
        if self.epochs is not None and self.epoch + 1 >= self.epochs:
            raise StopIteration
        if self.number == 0:
            raise DataError(f"{self.source.name} has no rows")
        self.epoch, self.number = self.epoch + 1, 0
        self.source.rewind(self.epoch)
        self._start = self.source.tell()

    def position(self) -> dict:
        """The position of the next batch: plain numbers and words, for `seek` of a stream with the
        same settings.
        """
        position = Position(
            self.batch,
            self.window,
            self.shuffled,
            self.seed,
            self.epoch,
            self.number,
            self.offset,
            self.rows,
            asdict(self._start),
        )
        return asdict(position)

    def seek(self, saved: dict) -> None:
        """Continue where another stream with the same settings was; DataError if its input
        differs.
        """
        position = Position(**saved)
        place = self.source.place_type.of_dict(position.source)
        self.epoch, self.number, self.rows = position.epoch, position.number, position.rows
        self.source.seek(place)
        self._held, self._start, self.offset = None, place, 0
        if position.offset:
            if not self._fill() or self._held is None or len(self._held[1]) <= position.offset:
                raise DataError(
                    f"{self.source.name} has fewer rows than when the checkpoint was written; use"
                    " the same input, or start again"
                )
            self.offset = position.offset


# ---------------------------------------------------------------------- texts


log = logging.getLogger(__name__)
# The bytes and number of samples compared per file.
SAMPLE, SAMPLES = 4096, 64
HEAD = 1 << 16  # bytes for detecting the dialect of a CSV text


@dataclass(frozen=True)
class PiecePlace:
    """Where a piece of a text begins: its offset, its line, a digest of all bytes before it, and
    the size of the file with a digest of samples, None for an input that can be read only once.
    """

    offset: int
    line: int
    digest: str
    file: list | None


@dataclass(frozen=True)
class TextPlace(Place):
    """A place in a text: that of the piece with the next row, and how many of its rows precede."""

    start: PiecePlace
    used: int

    @classmethod
    def of_dict(cls, saved: dict) -> Self:
        return super().of_dict(saved | {"start": PiecePlace(**saved["start"])})


class TextSource(Source):
    """Rows of a text file, plain or compressed, or of standard input (`-`), read a few megabytes at
    a time.

    A position includes a digest of all bytes before it, and for a file its size and a digest of
    samples of its content, so that a changed or truncated input is rejected. A file may grow.
    """

    place_type = TextPlace

    def __init__(self, path, n_inputs=None, chunk=textfiles.SIZE, encoding=None):
        """encoding: of the text, by default from its mark, else UTF-8. Raises DataError if the file
        can't be read.
        """
        self.encoding = encoding
        self.path, self.n_inputs, self._size = str(path), n_inputs, chunk
        self._open()

    def _open(self):
        self._handle = text = textfiles.Text(self.path, self.encoding)
        self.name, self.rewindable = text.name, text.rewindable
        self._digest, self._offset, self._line = hashlib.blake2b(digest_size=16), 0, 1
        self._pieces: Iterator[textfiles.Piece] | None = None  # those after the offset
        # X and y of the rows of the last piece, where it began, and how many of them were returned
        self._pending: tuple[Inputs, np.ndarray] | None = None
        self._start, self._used = self._place(), 0

    @abstractmethod
    def parse(self, piece: textfiles.Piece) -> tuple[Inputs, np.ndarray]:
        """X and y of whole lines."""

    # ------------------------------------------------------------------ pieces

    def _whole(self, raw) -> int:
        """The number of bytes that are whole rows."""
        return textfiles.whole_lines(raw)

    def _next_pieces(self) -> Iterator[textfiles.Piece]:
        if self._pieces is None:
            self._pieces = textfiles.pieces(
                self._handle.read, self.name, self._size, self._offset, self._line, self._whole
            )
        for piece in self._pieces:
            self._offset = piece.start + len(piece.raw)
            yield piece

    def _first_pieces(self) -> Iterator[textfiles.Piece]:
        """The pieces of the file, or the beginning of an input that can be read only once."""
        if self.rewindable:
            self._open()
            yield from self._next_pieces()
            return
        head = self._handle.read(self._size)
        self._handle.put_back(head)
        is_all = len(head) < self._size
        yield textfiles.Piece(head if is_all else head[: self._whole(head)] or head)

    def _chunk(self) -> tuple[Inputs, np.ndarray] | None:
        """X and y of some of the next rows; None at the end."""
        for piece in self._next_pieces():
            X, y = self.parse(piece)
            self._digest.update(piece.raw)
            self._line += piece.raw.count(b"\n")
            if len(y):
                return X, y
        return None

    # ------------------------------------------------------------------ rows

    def read(self, count: int) -> Part | None:
        parts, missing = [], count
        while missing:
            if self._pending is None:
                self._start, self._used = self._place(), 0
                self._pending = self._chunk()
                if self._pending is None:
                    break
            X, y = self._pending
            start, stop = self._used, min(len(y), self._used + missing)
            parts.append((X[start:stop], y[start:stop]))
            missing -= stop - start
            self._used = stop
            if stop == len(y):
                self._pending = None
        if not parts:
            return None
        X, y = parts[0] if len(parts) == 1 else map(stacked, zip(*parts))
        first, self.row = self.row, self.row + len(y)
        return X, y, np.arange(first, self.row)

    def peek(self, count: int) -> tuple[Inputs, np.ndarray]:
        start = self.tell().start
        X, y = super().peek(count)
        if self._pending is not None:
            more_X, more_y = self._pending
            X = stacked([X, more_X[self._used :]])
            y = stacked([y, more_y[self._used :]])
        self._pending, self._used, self._start, self.row = (X, y), 0, start, 0
        return X, y

    def _place(self) -> PiecePlace:
        """The place of the next piece."""
        digest = self._digest.hexdigest()
        return PiecePlace(self._offset, self._line, digest, self._sampled())

    def _sampled(self, size: int | None = None) -> list | None:
        """The size of the file, at most `size`, and a digest of samples of so many bytes; None for
        an input that can be read only once.
        """
        if not self.rewindable:
            return None
        digest = hashlib.blake2b(digest_size=16)
        with textfiles.naming(self.name), open(self.path, "rb") as handle:
            end = handle.seek(0, io.SEEK_END)
            size = end if size is None else min(size, end)
            for number in range(SAMPLES + 1):
                handle.seek(max(0, size - SAMPLE) * number // SAMPLES)
                digest.update(handle.read(min(SAMPLE, size)))
        return [size, digest.hexdigest()]

    def tell(self) -> TextPlace:
        if self._pending is None:
            return TextPlace(self.row, self._place(), 0)
        return TextPlace(self.row, self._start, self._used)

    def seek(self, place):
        self._go(place.start)
        # the rows between the last boundary of pieces and the position
        if place.used:
            part = self.read(place.used)
            if part is None or len(part[1]) < place.used:
                raise self._changed()
        self.row = place.row

    def rewind(self, epoch: int = 0) -> None:
        self._go(None if self.begin is None else PiecePlace(**self.begin))
        self.row = 0

    def _go(self, place: PiecePlace | None) -> None:
        """Go to where a piece begins, None for the first row."""
        if self._pieces is not None or self._offset:
            if not self.rewindable:
                raise DataError(
                    f"{self.name} can be read only once; save it to a file to run several epochs"
                )
            self._open()
        if place is None:
            return
        if self.rewindable and place.file is not None:
            size, _ = place.file
            if self._sampled(size) != place.file:
                raise self._changed()
        left = place.offset - self._offset
        while data := self._handle.read(min(self._size, left)):
            self._digest.update(data)
            left -= len(data)
        if self._digest.hexdigest() != place.digest:
            raise self._changed()
        self._offset = place.offset
        self._line = place.line

    def _changed(self) -> DataError:
        return DataError(
            f"{self.name} has changed since the checkpoint was written; use the same input, or"
            " start again"
        )

    def further(self, end):
        if not self.rewindable:
            self.begin = None
            return True
        start = TextPlace.of_dict(end).start
        try:
            self._go(start)
            more = self._chunk() is not None
            self.begin = asdict(start) if more else self.begin
        except DataError:
            log.warning("%s is not the input of the checkpoint: all its rows are new", self.name)
            self.begin, more = None, True
        self.rewind()
        return more


class LibsvmSource(TextSource):
    """LIBSVM text. n_inputs: columns of X, by default the largest index of the first rows; a larger
    one later raises an error.
    """

    def __init__(self, path, n_inputs=None, zero_based=False, chunk=textfiles.SIZE, encoding=None):
        super().__init__(path, n_inputs, chunk, encoding)
        self.zero_based = zero_based

    def measure(self) -> None:
        """Find the number of columns of a file in a separate pass, if it is not given."""
        if self.rewindable and self.n_inputs is None:
            parts = (checked_rows(one, self.zero_based, self.name) for one in self._first_pieces())
            self.n_inputs = max((rows.width for rows in parts), default=0) or None
            self.rewind()

    def parse(self, piece):
        rows = checked_rows(piece, self.zero_based, self.name)
        if self.n_inputs is None:
            self.n_inputs = rows.width
        if rows.width > self.n_inputs:
            raise DataError(
                f"{self.name} has feature {rows.width - self.zero_based} after"
                f" {piece.place(0)}, but the first rows have {self.n_inputs} features; set the"
                " number of columns with --n-inputs"
            )
        return rows.matrix(self.n_inputs), rows.y


class CsvSource(TextSource):
    """CSV text, read by its schema: the given one, else one learnt in a separate pass, for standard
    input from the first `chunk`.
    """

    def __init__(self, path, reading=None, schema=None, chunk=textfiles.SIZE, task=None):
        """task: as requested; then as inferred, if numeric targets have a special spelling."""
        reading = reading or Reading()
        super().__init__(path, None, chunk, reading.encoding)
        self.task = task
        self._size = max(HEAD, chunk)
        head = bytearray()

        def read(count):
            head.extend(data := self._handle.read(count))
            return data

        self.shape = tables.dialect(read, self.path, self.name, reading, schema)
        self._handle.put_back(bytes(head))
        self.schema = schema or self._learnt(reading)
        self.n_inputs = self.schema.width
        self._as_words = self.schema.words_in(self.shape.columns())
        self._size = chunk
        if self.rewindable:
            self._open()

    def _learnt(self, reading):
        learner = Learner(reading, True, self.task)
        as_words = learner.begin(self.shape.columns())
        while True:
            try:
                for piece in self._first_pieces():
                    if (table := self.shape.table(piece, as_words)) is not None:
                        learner.update(table)
                break
            except KindChanged as change:
                as_words = as_words | change.columns
                learner.restart()
        if not learner.n_rows:
            raise DataError(f"{self.name} has no rows")
        form = self.shape.format(self.encoding)
        schema = replace(learner.finish(), format=form)
        learner.say(schema)
        self.task = learner.task
        return schema

    def _whole(self, raw):
        # what precedes the first record is part of the first piece
        above = max(0, self.shape.start - self._offset)
        whole = readers.whole_records(raw[above:], self.shape.separator)
        return above + whole if len(raw) > above else 0

    def parse(self, piece):
        table = self.shape.table(piece, self._as_words)
        if table is None:
            assert self.n_inputs is not None  # the schema says
            return np.zeros((0, self.n_inputs)), np.zeros(0)
        return self.schema.encode(table)


# ----------------------------------------------------------------------
# Files of rows in ranges that are read independently: bytes of a text, row groups of Parquet, whole
# files.
#
# Files are given by paths, patterns or addresses that fsspec opens. A line belongs to the range
# that contains its first byte, so the ranges of a file contain each of its lines once.

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
class Range:
    """The units start .. stop-1 of a file; whole: all of it."""

    path: str
    start: int
    stop: int
    whole: bool


def matching(path) -> list[str]:
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


def _stored(path):
    """A binary handle on the stored bytes of a file; raises OSError, or DataError for an address of
    an unknown kind.
    """
    fs, inner = _filesystem(path)
    return fs.open(inner, "rb")


def measured(path) -> Measured:
    """A file and where it can be split; DataError if it can't be read."""
    with textfiles.naming(str(path)), _stored(path) as handle:
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


def cut(files: list[Measured], count: int) -> list[list[Range]]:
    """The pieces of each of `count` parts of about equal size in bytes, in the order of the files;
    parts may be empty.
    """
    ends = list(accumulate(file.size for file in files))
    parts: list[list[Range]] = []
    for part in range(count):
        low, high = ends[-1] * part // count, ends[-1] * (part + 1) // count
        parts.append([])
        for file, end in zip(files, ends):
            begin = end - file.size
            start = file.units * (max(low, begin) - begin) // file.size
            stop = file.units * (min(high, end) - begin) // file.size
            if start < stop:
                whole = stop - start == file.units
                parts[-1].append(Range(file.path, start, stop, whole))
    return parts


def lines(part: Range, chunk: int = textfiles.SIZE) -> Iterator[textfiles.Piece]:
    """The whole lines of a range of a text, or of a whole compressed text."""
    unpacked = textfiles.open_plain if part.whole else nullcontext
    with textfiles.naming(part.path), _stored(part.path) as file, unpacked(file) as handle:
        start = part.start
        if start:
            handle.seek(start - 1)
            start += len(handle.readline()) - 1
        left = math.inf if part.whole else part.stop - start

        def read(count):
            nonlocal left
            data = handle.read(min(count, max(left, 0)))
            left -= len(data)
            ends = left > 0 or not data or data.endswith(b"\n")
            return data if ends else data + handle.readline()

        for text in textfiles.pieces(read, part.path, chunk, start, None if start else 1):
            yield text if text.start else replace(text, raw=text.raw.removeprefix(_MARK))


def dialect(file: Measured, header: bool | None) -> readers.Dialect:
    """The dialect of a CSV text."""
    with _stored(file.path) as raw, textfiles.open_plain(raw) as plain:
        text = textfiles.opened(plain, file.path)
        separator = "\t" if file.kind == "tsv" else None
        return readers.sample(text.read, file.path, separator).decided(header)


# ---------------------------------------------------------------------- rows


@dataclass
class LibsvmRanges:
    """Rows of LIBSVM text in the pieces of one part."""

    zero_based: bool
    pieces: Iterable[Range] = ()

    def chunks(self):
        """(X, y) of some megabytes of text at a time; X is CSR, as wide as the chunk's largest
        index.
        """
        for part in self.pieces:
            for text in lines(part):
                rows = checked_rows(text, self.zero_based, part.path)
                if len(rows.y):
                    yield rows.matrix(rows.width), rows.y


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
    pieces: Iterable[Range] = ()

    def _words_of(self, table: Table) -> frozenset[int]:
        if self.schema is not None:
            return self.as_words | self.schema.words_in(table)
        return self.as_words | (self.learner.begin(table) if self.learner else frozenset())

    def tables(self):
        """Tables of some megabytes at a time."""
        for part in self.pieces:
            if self.shape is None:
                yield from self._groups(part)
            else:
                yield from self._records(part, self.shape)

    def _groups(self, part):
        with textfiles.naming(part.path), _stored(part.path) as handle:
            groups = readers.ParquetGroups(handle, part.path, self._words_of)
            yield from groups.tables([number] for number in range(part.start, part.stop))

    def _records(self, part: Range, first: readers.Dialect) -> Iterator[Table]:
        as_words = self._words_of(first.columns())
        for piece in lines(part):
            shape = replace(first, name=part.path)
            if b'"' in piece.raw:
                odd = next((line for line in piece.raw.split(b"\n") if line.count(b'"') % 2), None)
                if odd is not None:
                    raise DataError(
                        f"{part.path}: a cell spans several lines"
                        f" ({odd.decode('utf-8', 'replace'):.60} …), so the file can't be split"
                        " into ranges; save it without line breaks in cells, or as Parquet"
                    )
            if piece.start == 0:
                shape = readers.dialect(piece.raw, part.path, first.header, first.separator)
                if shape.names != first.names:
                    raise DataError(
                        f"{part.path} has other columns than {first.name}; all files need the"
                        " same columns"
                    )
            try:
                table = shape.table(piece, as_words)
            except DataError as error:
                begin = f" (lines are counted from byte {piece.start:,})" if piece.start else ""
                raise DataError(f"{error}{begin}") from None
            if table is not None:
                yield table

    def chunks(self):
        """(X, y) of the rows, encoded by the schema."""
        assert self.schema is not None
        for table in self.tables():
            yield self.schema.encode(table)


class RowSubset:
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
            if sp.issparse(rows) and rows.shape[1] < self.width:
                rows.resize(len(places), self.width)
            yield rows, y[places]

    def tables(self):
        """The rows as tables, if the source has tables."""
        for table, places in self._wanted(self.source.tables(), attrgetter("n_rows")):
            yield table.rows(places)


class Arrays:
    """Rows X (n, d), array or CSR, and y (n,) in memory."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def chunks(self):
        yield self.X, self.y


# ---------------------------------------------------------------------- rows of a source


def picked(source, index: np.ndarray, width: int):
    """The unscaled rows with these ascending numbers: an array, or CSR, of that many columns."""
    return stacked([X for X, _ in RowSubset(source, index, width=width).chunks()])


def load(source, count: int, width: int, scaler, dtype, finish):
    """The `count` rows of a source, scaled; finish(X): the stored form of some rows.

    An array, or CSR if finish returns CSR. DataError if the number of rows has changed since the
    survey.
    """
    at, dense, sparse = 0, None, []
    for raw, _ in source.chunks():
        start, at = at, at + raw.shape[0]
        X = finish(scaler.transform(raw, dtype=dtype))
        if sp.issparse(X):
            sparse.append(X)
        elif at <= count:
            dense = np.empty((count, width), dtype) if dense is None else dense
            dense[start:at] = X
    if at != count:
        raise DataError(
            "the files changed while they were read; train again when they no longer change"
        )
    return stacked(sparse) if sparse else dense
