"""Rows of LIBSVM and CSV texts that need not fit into memory, as sources of a stream: parsed as
they are read, with byte positions.
"""

import hashlib
import io
import logging
import os
import stat
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from rfx import files
from rfx.data import archives, encodings, tables
from rfx.data.libsvm import labelled
from rfx.data.libsvm.scan import LONGEST_LINE
from rfx.data.reading import FileFormat, Reading
from rfx.data.stream import ChunkedSource
from rfx.data.tabular import csvtext, labelwords
from rfx.data.tabular.learner import KindChanged, Learner
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError

log = logging.getLogger(__name__)
# Bytes of text parsed at a time, and the bytes and number of samples compared per file.
CHUNK, SAMPLE, SAMPLES = 8 << 20, 4096, 64
HEAD = 1 << 16  # bytes for detecting the dialect of a CSV text


class TextSource(ChunkedSource):
    """Rows of a text file, plain or compressed, or of standard input (`-`), read a few megabytes at
    a time.

    A position includes a digest of all bytes before it, and for a file its size and a digest of
    samples of its content, so that a changed or truncated input is rejected.
    """

    def __init__(self, path, n_inputs=None, chunk=CHUNK, encoding=None):
        """encoding: of the text, by default from its mark, else UTF-8. Raises DataError if the file
        can't be read.
        """
        super().__init__()
        self.encoding = encoding
        self.path, self.n_inputs, self._size = str(path), n_inputs, chunk
        self.name = "standard input" if self.path == "-" else files.shown(path)
        self.rewindable = self.path != "-" and stat.S_ISREG(_status(path, self.name).st_mode)
        self._open()

    def _open(self):
        try:
            plain = archives.open_plain(files.standard_input() if self.path == "-" else self.path)
            self._handle = encodings.opened(plain, self.name, self.encoding)
        except archives.DAMAGE as error:
            raise DataError(
                f"{self.name} can't be read: {getattr(error, 'strerror', None) or error}"
            ) from None
        self._digest, self._offset, self._line, self._rest = (
            hashlib.blake2b(digest_size=16),
            0,
            1,
            b"",
        )

    def _bytes(self, count) -> bytes:
        try:
            return self._handle.read(count)
        except archives.DAMAGE as error:
            raise DataError(
                f"{self.name} is damaged or truncated ({error}); download it again"
            ) from None

    def _texts(self):
        """Whole lines, some megabytes at a time."""
        while True:
            data = self._bytes(self._size)
            raw = self._rest + data
            cut = self._whole(raw) if data else len(raw)
            raw, self._rest = raw[:cut], raw[cut:]
            self._last = not data
            if raw:
                self._offset += len(raw)
                yield raw
            elif self._last:
                return
            elif len(self._rest) > LONGEST_LINE:
                raise DataError(
                    f"{self.name}, line {self._line}: it is longer than {LONGEST_LINE:,} bytes, the"
                    " maximum for a row"
                )

    def _whole(self, raw) -> int:
        """The number of bytes that are whole rows."""
        return raw.rfind(b"\n") + 1

    def _chunk(self):
        for raw in self._texts():
            X, y = self.parse(raw, self._line, self._last)
            self._digest.update(raw)
            self._line += raw.count(b"\n")
            if len(y):
                return X, y
        return None

    def parse(self, raw: bytes, line: int, last: bool):
        """X and y of whole lines, starting at line number `line` of the input; last: nothing
        follows.
        """
        raise TypeError(f"{type(self).__name__} does not define parse")

    def _place(self):
        return {
            "offset": self._offset,
            "line": self._line,
            "digest": self._digest.hexdigest(),
            "file": self._file(),
        }

    def _file(self):
        """Size and samples of the stored file, None without a size."""
        if not self.rewindable:
            return None
        size = _status(self.path, self.name).st_size
        if getattr(self, "_known", (None,))[0] != size:
            digest = hashlib.blake2b(digest_size=16)
            with open(self.path, "rb") as handle:
                for number in range(SAMPLES + 1):
                    handle.seek(max(0, size - SAMPLE) * number // SAMPLES)
                    digest.update(handle.read(SAMPLE))
            self._known = size, digest.hexdigest()
        return list(self._known)

    def _go(self, place):
        if place is None:
            if self._offset and not self.rewindable:
                raise DataError(
                    f"{self.name} can be read only once; save it to a file to run several epochs"
                )
            if self._offset or self._rest:
                self._open()
            return
        if self._offset > place["offset"] or self._rest:
            self._open()
        if place["file"] is not None and self._file() is not None:
            then, now = place["file"], self._file()
            if then[0] != now[0]:
                raise DataError(
                    f"{self.name} has {now[0]:,} bytes, but had {then[0]:,} when the checkpoint was"
                    " written; use the same input, or start again"
                )
            if then[1] != now[1]:
                raise DataError(
                    f"{self.name} has changed since the checkpoint was written; use the same input,"
                    " or start again"
                )
        while self._offset < place["offset"]:
            data = self._bytes(min(self._size, place["offset"] - self._offset))
            if not data:
                raise DataError(
                    f"{self.name} ends after {self._offset:,} bytes, before the position of the"
                    f" checkpoint ({place['offset']:,}); use the same input, or start again"
                )
            self._digest.update(data)
            self._offset += len(data)
        if self._digest.hexdigest() != place["digest"]:
            raise DataError(
                f"{self.name} differs from what was read before the checkpoint; use the same input,"
                " or start again"
            )
        self._line = place["line"]


def _status(path, name):
    try:
        return os.stat(path)
    except OSError as error:
        raise DataError(f"{name} can't be read: {error.strerror or error}") from None


class LibsvmSource(TextSource):
    """LIBSVM text. n_inputs: columns of X, by default the largest index of the first rows; a larger
    one later raises an error.

    Labels are numbers; after `learn` they may be words, or have a special spelling (Reader).
    """

    def __init__(self, path, n_inputs=None, zero_based=False, chunk=CHUNK, encoding=None):
        super().__init__(path, n_inputs, chunk, encoding)
        self.zero_based, self.labels = zero_based, labelled.Reader(numbers=True)

    def learn(self, task: str | None) -> str | None:
        """Learn the spelling of labels and, for a file, the number of columns; return the task,
        inferred if necessary.

        A file is scanned, to its end if needed. For standard input, the first `chunk` bytes are
        inspected; other spellings later raise an error. Raises DataError if the targets of a
        regression are words.
        """
        wanted, found, widest = (
            self.rewindable and self.n_inputs is None,
            labelwords.Spellings(labelwords.MOST),
            0,
        )
        if not (wanted or task != "regression"):
            return task
        worded = None
        for raw, line in self._passed():
            if worded is None:
                worded = labelwords.recognised(raw)
            if worded and task == "regression":
                raise labelwords.first_word(raw, self.name, line)
            stretch = labelled.parse(raw, self.zero_based, self.name, line, worded)
            if stretch.bad >= 0:
                continue  # the error is raised when it is read
            widest = max(widest, stretch.width)
            if task != "regression" and not found.full:
                labelled.count(found, stretch)
            if found.full and not wanted:
                break
        if self.rewindable:
            self.rewind()
        if wanted:
            self.n_inputs = widest or None
        return self.labels.learn(found, task, self.name, self.rewindable)

    def _passed(self):
        """(whole lines, the number of the first) of the file, or of the beginning of an input that
        can be read only once.
        """
        if self.rewindable:
            line = 1
            for raw in self._texts():
                yield raw, line
                line += raw.count(b"\n")
            return
        head = bytearray()
        while len(head) < self._size and (data := self._bytes(self._size - len(head))):
            head += data
        self._handle = archives.joined(bytes(head), self._handle)
        yield (bytes(head[: self._whole(head)]) if len(head) == self._size else bytes(head)), 1

    def parse(self, raw, line, last):
        try:
            found = self.labels.parse(raw, self.zero_based, self.name, line)
            if found.bad >= 0:
                column, message = found.problem(self.zero_based, last)
                raise DataError(
                    f"{self.name}, line {line + raw[: found.bad].count(10)}, column {column}:"
                    f" {message}"
                )
            y = self.labels.targets(found, self.name)
        except labelled.OtherSpelling:
            odd = next(
                word for word in labelwords.spelled(raw).values if not labelwords.printed(word)
            )
            raise labelled.unexpected(self.name, odd, []) from None
        width = found.width
        if self.n_inputs is None:
            self.n_inputs = width
        if width > self.n_inputs:
            raise DataError(
                f"{self.name} has feature {width - self.zero_based} after line {line}, but the"
                f" first rows have {self.n_inputs} features; set the number of columns with"
                " --n-inputs"
            )
        return (
            sp.csr_matrix((found.values, found.indices, found.indptr), (len(y), self.n_inputs)),
            y,
        )


class CsvSource(TextSource):
    """CSV text, read by its schema: the given one, else one learnt in a separate pass, for standard
    input from the first `chunk`.
    """

    def __init__(self, path, reading=None, schema=None, chunk=CHUNK, task=None):
        """task: as requested; then as inferred, if numeric targets have a special spelling."""
        reading = reading or Reading()
        super().__init__(path, None, chunk, reading.encoding)
        self.task = task
        head = bytearray()

        def read(count):
            data = self._bytes(count)
            head.extend(data)
            return data

        separator = "\t" if archives.plain_name(self.path).endswith((".tsv", ".tab")) else None
        found = csvtext.sample(read, self.name, separator)
        self.shape = found.dialect(
            reading.header if schema is None else tables.has_header(found, reading, schema)
        )
        for note in self.shape.notes:
            log.warning(note)
        while (
            not self.rewindable
            and len(head) < max(HEAD, chunk)
            and read(max(HEAD, chunk) - len(head))
        ):
            pass
        begun = bytes(head)
        self.schema = schema or self._learnt(reading, begun)
        self.n_inputs, self._as_words = self.schema.width, self.schema.words_in(self._columns())
        if self.rewindable:
            self._open()
        else:
            self._handle = archives.joined(begun, self._handle)

    def _columns(self) -> Table:
        return Table(self.name, list(self.shape.names), self.shape.header, [])

    def _learnt(self, reading, head):
        learner = Learner(reading, True, self.task)
        as_words = learner.begin(self._columns())
        while True:
            try:
                for table in csvtext.tables(self._first(head), self.shape, as_words):
                    learner.update(table)
                break
            except KindChanged as change:
                as_words = as_words | change.columns
                learner.restart()
            except archives.DAMAGE as error:
                raise DataError(
                    f"{self.name} is damaged or truncated ({error}); download it again"
                ) from None
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

    def _first(self, head):
        """A handle on the rows to learn from: the whole file, or the first rows of an input that
        can be read only once.
        """
        if self.rewindable:
            self._open()
            return self._handle
        return io.BytesIO(head[: self._whole(head)] or head)

    def _above(self, raw) -> int:
        """The bytes of raw, which follows the part already read, that precede the first record."""
        return max(0, self.shape.start - self._offset)

    def _whole(self, raw):
        above = self._above(raw)
        return (
            above + csvtext.whole_records(raw[above:], self.shape.separator)
            if len(raw) > above
            else 0
        )

    def parse(self, raw, line, last):
        first = self._offset == len(raw)
        above = self.shape.start if first else 0
        as_words = self._as_words
        if not self.rewindable and self.task != "regression":
            as_words |= {self.schema.target[1]}
        table = csvtext.parse(
            raw[above:], self.shape, self.shape.line if first else line, as_words, first
        )
        if table is None:
            assert self.n_inputs is not None  # the schema says
            return np.zeros((0, self.n_inputs)), np.zeros(0)
        if not self.rewindable and isinstance(words := table.columns[self.schema.target[1]], Words):
            self._check_labels(words)
        return self.schema.encode(table)

    def _check_labels(self, words):
        """Raise an error for labels with an unseen spelling, in rows that can be read only once."""
        labels = self.schema.labels
        known = labelwords.printed if labels is None else set(labels).__contains__
        odd = next(
            (
                word
                for word in words.values
                if not known(word) and not known(labelwords.unsigned(word))
            ),
            None,
        )
        if odd is not None:
            raise labelled.unexpected(self.name, odd, labels or [])
