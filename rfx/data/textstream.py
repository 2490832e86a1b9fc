"""Rows of LIBSVM and CSV texts that need not fit into memory, as sources of a stream: parsed as
they are read, with byte positions.
"""

import hashlib
import logging
import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from rfx.data import archives, encodings, tables
from rfx.data.libsvm.svmlight import Labels
from rfx.data.pieces import SIZE, Piece, pieces, whole_lines
from rfx.data.reading import FileFormat, Reading
from rfx.data.stream import ChunkedSource
from rfx.data.tabular import csvtext, labelwords
from rfx.data.tabular.labelwords import MOST, Spellings
from rfx.data.tabular.learner import KindChanged, Learner
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError

log = logging.getLogger(__name__)
# The bytes and number of samples compared per file.
SAMPLE, SAMPLES = 4096, 64
HEAD = 1 << 16  # bytes for detecting the dialect of a CSV text


class TextSource(ChunkedSource):
    """Rows of a text file, plain or compressed, or of standard input (`-`), read a few megabytes at
    a time.

    A position includes a digest of all bytes before it, and for a file its size and a digest of
    samples of its content, so that a changed or truncated input is rejected. A file may grow.
    """

    def __init__(self, path, n_inputs=None, chunk=SIZE, encoding=None):
        """encoding: of the text, by default from its mark, else UTF-8. Raises DataError if the file
        can't be read.
        """
        super().__init__()
        self.encoding = encoding
        self.path, self.n_inputs, self._size = str(path), n_inputs, chunk
        self._open()

    def _open(self):
        self._handle = text = encodings.Text(self.path, self.encoding)
        self.name, self.rewindable = text.name, text.rewindable
        self._digest, self._offset, self._line = hashlib.blake2b(digest_size=16), 0, 1
        self._pieces: Iterator[Piece] | None = None  # those after the offset

    def _bytes(self, count) -> bytes:
        return self._handle.read(count)

    def _whole(self, raw) -> int:
        """The number of bytes that are whole rows."""
        return whole_lines(raw)

    def _next_pieces(self) -> Iterator[Piece]:
        if self._pieces is None:
            place = self._offset, self._line
            self._pieces = pieces(self._bytes, self.name, self._size, *place, whole=self._whole)
        for piece in self._pieces:
            self._offset = piece.start + len(piece.raw)
            yield piece

    def _chunk(self):
        for piece in self._next_pieces():
            X, y = self.parse(piece)
            self._digest.update(piece.raw)
            self._line += piece.raw.count(b"\n")
            if len(y):
                return X, y
        return None

    def _first_pieces(self) -> Iterator[Piece]:
        """The pieces of the file, or the beginning of an input that can be read only once."""
        if self.rewindable:
            self._open()
            yield from self._next_pieces()
            return
        head = archives.beginning(self._handle, self._size)
        self._handle.put_back(head)
        yield Piece(head if len(head) < self._size else head[: self._whole(head)] or head)

    @abstractmethod
    def parse(self, piece: Piece) -> tuple:
        """X and y of whole lines."""

    def _place(self):
        return {
            "offset": self._offset,
            "line": self._line,
            "digest": self._digest.hexdigest(),
            "file": self._file(),
        }

    def _file(self, size: int | None = None) -> list | None:
        """Size and samples of the stored file, or of its first `size` bytes; None for an input that
        can be read only once.
        """
        if not self.rewindable:
            return None
        with archives.naming(self.name):
            status = os.stat(self.path)
            part = status.st_size if size is None else min(size, status.st_size)
            return _samples(self.path, part, status.st_mtime_ns)

    def further(self, end):
        before, self.begin = self.begin, end["start"] if self.rewindable else None
        if not self.rewindable:
            return True
        try:
            self._go(None)
            more = self._chunk() is not None
            self.begin = self.begin if more else before
        except DataError:
            log.warning("%s is not the input of the checkpoint: all its rows are new", self.name)
            self.begin, more = None, True
        self._open()
        self.rewind()
        return more

    def _go(self, place):
        place = self.begin if place is None else place
        if place is None:
            if self._offset and not self.rewindable:
                raise DataError(
                    f"{self.name} can be read only once; save it to a file to run several epochs"
                )
            if self._pieces is not None or self._offset:
                self._open()
            return
        if self._pieces is not None or self._offset > place["offset"]:
            self._open()
        then = place["file"]
        now = self._file(None if then is None else then[0])
        if now is not None and then is not None and now != then:
            size = f": it has {now[0]:,} bytes, but had {then[0]:,}" if now[0] != then[0] else ""
            raise self._changed(size)
        while self._offset < place["offset"]:
            data = self._bytes(min(self._size, place["offset"] - self._offset))
            if not data:
                raise self._changed(f": it ends after {self._offset:,} bytes")
            self._digest.update(data)
            self._offset += len(data)
        if self._digest.hexdigest() != place["digest"]:
            raise self._changed("")
        self._line = place["line"]

    def _changed(self, how: str) -> DataError:
        return DataError(
            f"{self.name} has changed since the checkpoint was written{how}; use the same input, or"
            " start again"
        )


@lru_cache(maxsize=16)
def _samples(path: str, size: int, mtime: int) -> list:
    """A number of bytes at the beginning of a file, and a digest of samples of them."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as handle:
        for number in range(SAMPLES + 1):
            handle.seek(max(0, size - SAMPLE) * number // SAMPLES)
            digest.update(handle.read(min(SAMPLE, size)))
    return [size, digest.hexdigest()]


class LibsvmSource(TextSource):
    """LIBSVM text. n_inputs: columns of X, by default the largest index of the first rows; a larger
    one later raises an error.

    Labels are numbers; after `learn` they may be words, or have a special spelling.
    """

    def __init__(self, path, n_inputs=None, zero_based=False, chunk=SIZE, encoding=None):
        super().__init__(path, n_inputs, chunk, encoding)
        self.zero_based, self.labels = zero_based, Labels()

    def learn(self, task: str | None) -> str | None:
        """Learn the spelling of labels and, for a file, the number of columns; return the task,
        inferred if necessary.

        A file is scanned, to its end if needed. For standard input, the first `chunk` bytes are
        inspected; other spellings later raise an error.
        """
        self.labels = Labels(task=task, settled=False)
        spellings, widest = Spellings(MOST), 0
        wanted = self.rewindable and self.n_inputs is None
        for piece in self._first_pieces():
            if self.labels.settled and not wanted:
                break
            rows = self.labels.parse(piece, self.zero_based, self.name)
            widest = max(widest, rows.width)
            if not self.labels.settled:
                self.labels.count(spellings, rows)
            if spellings.full and not wanted:
                break
        if self.rewindable:
            self.rewind()
        if wanted:
            self.n_inputs = widest or None
        if not self.labels.settled:
            self.labels.learn(spellings, self.name)
        return self.labels.task

    def parse(self, piece):
        rows = self.labels.parse(piece, self.zero_based, self.name)
        if not (self.rewindable or self.labels.task == "regression" or rows.plain):
            check_labels(rows.words, self.labels.names, self.name)
        if self.n_inputs is None:
            self.n_inputs = rows.width
        if rows.width > self.n_inputs:
            raise DataError(
                f"{self.name} has feature {rows.width - self.zero_based} after"
                f" {piece.place(0)}, but the first rows have {self.n_inputs} features; set the"
                " number of columns with --n-inputs"
            )
        return rows.matrix(self.n_inputs), self.labels.targets(rows, self.name)


def check_labels(words: Words, labels: list[str] | None, name: str) -> None:
    """Raise DataError for labels with an unseen spelling, in rows that can be read only once;
    labels: those of the first rows, None for numbers as rfx prints them.
    """
    known = labelwords.printed if labels is None else set(labels).__contains__
    unseen = (word for word in words.values if not known(word))
    odd = next((word for word in unseen if not known(labelwords.unsigned(word))), None)
    if odd is not None:
        seen = (
            "numbers as rfx prints them"
            if labels is None
            else f"the previous labels ({', '.join(labels[:5]):.100})"
        )
        raise DataError(
            f"{name} has the label {odd!r:.80}, but labels were inferred from its first rows, which"
            f" have {seen}; use a file, which is scanned first, or --task regression"
        )


class CsvSource(TextSource):
    """CSV text, read by its schema: the given one, else one learnt in a separate pass, for standard
    input from the first `chunk`.
    """

    def __init__(self, path, reading=None, schema=None, chunk=SIZE, task=None):
        """task: as requested; then as inferred, if numeric targets have a special spelling."""
        reading = reading or Reading()
        super().__init__(path, None, chunk, reading.encoding)
        self.task = task
        self._size = max(HEAD, chunk)
        head = bytearray()

        def read(count):
            head.extend(data := self._bytes(count))
            return data

        separator = "\t" if archives.plain_name(self.path).endswith((".tsv", ".tab")) else None
        sample = csvtext.sample(read, self.name, separator)
        self._handle.put_back(bytes(head))
        self.shape = sample.decided(
            reading.header if schema is None else tables.has_header(sample, reading, schema)
        )
        for note in self.shape.notes:
            log.warning(note)
        self.schema = schema or self._learnt(reading)
        self.n_inputs, self._as_words = self.schema.width, self.schema.words_in(self._columns())
        self._size = chunk
        if self.rewindable:
            self._open()

    def _columns(self) -> Table:
        return Table(self.name, list(self.shape.names), self.shape.header, [])

    def _learnt(self, reading):
        learner = Learner(reading, True, self.task)
        as_words = learner.begin(self._columns())
        while True:
            try:
                for piece in self._first_pieces():
                    if (table := self._table(piece, as_words)) is not None:
                        learner.update(table)
                break
            except KindChanged as change:
                as_words = as_words | change.columns
                learner.restart()
        if not learner.n_rows:
            raise DataError(f"{self.name} has no rows")
        kind = "tsv" if self.shape.separator == "\t" else "csv"
        encoding = encodings.remembered(self.encoding)
        form = FileFormat(
            kind, header=self.shape.header, separator=self.shape.separator, encoding=encoding
        )
        schema = replace(learner.finish(), format=form)
        learner.say(schema)
        self.task = learner.task
        return schema

    def _whole(self, raw):
        # what precedes the first record is part of the first piece
        above = max(0, self.shape.start - self._offset)
        whole = csvtext.whole_records(raw[above:], self.shape.separator)
        return above + whole if len(raw) > above else 0

    def _table(self, piece, as_words) -> Table | None:
        first = piece.start == 0
        raw = piece.raw[self.shape.start :] if first else piece.raw
        line = self.shape.line if first else piece.line
        return csvtext.parse(raw, self.shape, line, as_words, first)

    def parse(self, piece):
        as_words = self._as_words
        if not self.rewindable and self.task != "regression":
            as_words |= {self.schema.target[1]}
        table = self._table(piece, as_words)
        if table is None:
            assert self.n_inputs is not None  # the schema says
            return np.zeros((0, self.n_inputs)), np.zeros(0)
        words = table.columns[self.schema.target[1]]
        if isinstance(words, Words) and not self.rewindable:
            check_labels(words, self.schema.labels, self.name)
        return self.schema.encode(table)
