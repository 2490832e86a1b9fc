"""Scan LIBSVM text of any size in pieces of bounded memory: every problem, the numbers of rows and
columns, the labels.
"""

import numpy as np

from rfx.data import encodings
from rfx.data.libsvm import labelled, svmtext
from rfx.data.tabular import labelwords
from rfx.errors import DataError

PIECE = 8 << 20  # bytes read and parsed at a time
LONGEST_LINE = 64 << 20  # bytes; a row of five million entries
MOST_LABELS = 1_000_000  # maximum distinct labels counted


class Scan:
    """The content of a LIBSVM text. `problems` scans it; if it finds none, the counts cover the
    whole text.

    rows; columns: the largest index (plus one if zero-based); labels: the distinct ones, and
    counts: the rows of each, both None for more than MOST_LABELS; low, high and mean of the labels.
    """

    def __init__(self, handle, zero_based: bool = False, name: str | None = None):
        """handle: a reader of plain text, such as encodings.Text.

        name: of the text, if its labels may be words, as in training: if the first label is a word,
        all must be.
        """
        self._handle, self._zero_based, self._line, self._text = handle, zero_based, 1, False
        self.rows = self.columns = 0
        self.labels: np.ndarray | None = np.zeros(0)
        self.counts: np.ndarray | None = np.zeros(0, np.int64)
        self.low, self.high, self._sum = np.inf, -np.inf, 0.0
        self._name, self._worded, self._spellings = (
            name,
            None if name else False,
            labelwords.Spellings(MOST_LABELS),
        )

    @property
    def mean(self) -> float:
        return self._sum / self.rows

    def spelled(self) -> dict[str, int] | None:
        """The rows of each label if some are words, or spelled differently from rfx's output;
        otherwise None.
        """
        found = self._spellings
        if found.full or (not self._worded and all(map(labelwords.printed, found.counts))):
            return None
        labels = labelwords.ascending(
            found.counts, None if self._worded else found.numbers.values()
        )
        return {label: found.counts[label] for label in labels}

    def problems(self):
        """Yield (line, column, message) for every problem, in order; nothing for a text that
        `svmlight.read` accepts.

        A problem of the whole text (empty, binary, no rows) is reported at line 1, column 1.
        """
        clean = True
        for raw, last in self._pieces():
            if raw is None:
                yield (
                    self._line,
                    1,
                    (
                        f"the line is longer than {LONGEST_LINE:,} bytes, so the rest of it was not"
                        " checked"
                    ),
                )
                clean = False
                continue
            self._text = True
            text, words, odd = self._numbered(raw)
            found = labelled.of_numbers(text, words, self._zero_based)
            if found.bad < 0 and not odd:
                self._count(found)
            elif clean and b"\0" in raw:
                yield 1, 1, "this is a binary file, not LIBSVM text"
                return
            else:
                clean = False
                lines = [(self._line + above, column, message) for above, column, message in odd]
                yield from (
                    sorted([*lines, *self._described(text, last)])
                    if odd
                    else self._described(text, last)
                )
            self._line += raw.count(b"\n")
            del text, found
        if not self._text and clean:
            yield 1, 1, "the file is empty"
        elif not self.rows and clean:
            yield 1, 1, "the file has no rows, only blank lines and comments"

    def _pieces(self):
        """Yield (whole lines, whether they end the text); None instead of lines for the beginning
        of a line that is too long.
        """
        rest, skipping = b"", False
        data = self._handle.read(PIECE)
        while data:
            following = self._handle.read(PIECE)
            if skipping and (end := data.find(b"\n")) >= 0:
                self._line += 1
                data, skipping = data[end + 1 :], False
            cut = len(data) if not following else data.rfind(b"\n") + 1
            if skipping:
                pass
            elif cut:
                if rest or data[:cut]:
                    yield rest + data[:cut], not following
                rest = data[cut:]
            elif len(rest) + len(data) > LONGEST_LINE:
                yield None, False
                rest, skipping = b"", True
            else:
                rest += data
            data = following

    def _numbered(self, raw):
        """(the text with numbers as labels, the word labels if any, the problems of these)."""
        if self._worded is None and labelwords.begins(raw):
            self._worded = labelwords.recognised(raw)
        if not self._worded:
            return raw, None, []
        assert self._name is not None  # if the first label is not a word, no label is
        encodings.check(raw, self._name, self._line)
        return labelwords.renumbered(raw)

    def _count(self, found):
        labels = found.y
        if not len(labels):
            return
        self.rows += len(labels)
        self.columns = max(self.columns, found.width)
        if self._name and not self._spellings.full:
            labelled.count(self._spellings, found)
        self.low, self.high, self._sum = (
            min(self.low, labels.min()),
            max(self.high, labels.max()),
            self._sum + labels.sum(),
        )
        if self.labels is None or self.counts is None:
            return
        fresh, counts = np.unique(labels, return_counts=True)
        merged, place = np.unique(np.concatenate([self.labels, fresh]), return_inverse=True)
        self.counts = np.bincount(place, np.concatenate([self.counts, counts])).astype(np.int64)
        self.labels = merged
        if len(merged) > MOST_LABELS:
            self.labels = self.counts = None

    def _described(self, raw, last):
        line, counted = self._line, 0
        for start, end in svmtext.bad_lines(raw, self._zero_based):
            line, counted = line + raw.count(b"\n", counted, start), start
            for column, message in svmtext.line_problems(
                raw[start:end], self._zero_based, cut_off=last and end == len(raw)
            ):
                yield line, column, message


def shape(path) -> tuple[int, int]:
    """Rows and columns of the LIBSVM text at `path`; DataError for the first problem."""
    with encodings.Text(path) as text:
        found = Scan(text)
        for line, column, message in found.problems():
            raise DataError(f"{text.name}, line {line}, column {column}: {message}")
    return found.rows, found.columns
