"""Parts of a LIBSVM text that is never completely in memory, parsed with the spelling of their
labels.
"""

from dataclasses import dataclass

import numpy as np

from rfx.data import encodings
from rfx.data.libsvm import svmtext
from rfx.data.tabular import labelwords
from rfx.data.tabular.table import Words
from rfx.errors import DataError


class OtherSpelling(Exception):
    """Labels are words, or are spelled differently from rfx's output, although neither was
    expected.
    """


@dataclass
class Stretch:
    """Rows of whole lines: y (n,), indptr, indices, values, and bad, the offset of the first bad
    line or -1, as returned by svmtext.parse.

    raw: the parsed text. plain: whether all labels are certainly spelled as rfx prints their
    numbers. own: word labels; y is then zeros.
    """

    raw: bytes
    y: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    bad: int
    plain: bool
    own: Words | None

    @property
    def width(self) -> int:
        """The number of columns that the rows need."""
        return int(self.indices.max()) + 1 if self.bad < 0 and len(self.indices) else 0

    def words(self) -> Words:
        """The labels as they are spelled."""
        return labelwords.of_rows(self.raw, self.y, self.plain) if self.own is None else self.own

    def problem(self, zero_based: bool, cut_off: bool = False) -> tuple[int, str]:
        """(column, message) of the bad line; cut_off: whether the text ends here."""
        end = self.raw.find(b"\n", self.bad)
        line = self.raw[self.bad : end if end >= 0 else len(self.raw)]
        return next(svmtext.line_problems(line, zero_based, cut_off=cut_off and end < 0))


def parse(raw: bytes, zero_based: bool, name: str, line: int = 1, worded: bool = False) -> Stretch:
    """The rows of whole lines, starting at line number `line` of the input; worded: the labels are
    words.

    Raises DataError for an invalid label, and for text that is not UTF-8.
    """
    if not worded:
        return of_numbers(raw, None, zero_based)
    encodings.check(raw, name, line)
    return of_numbers(*labelwords.numbered(raw, name, line), zero_based)


def of_numbers(raw: bytes, own: Words | None, zero_based: bool) -> Stretch:
    """The rows of whole lines with labels as numbers; word labels become their positions among the
    given words, if any.
    """
    spelling = svmtext.Spelling()
    y, indptr, indices, values, bad = svmtext.parse(raw, zero_based, spelling)
    return Stretch(raw, y, indptr, indices, values, bad, spelling.plain, own)


class Reader:
    """How the labels of a text become numbers. names: the words represented by the numbers,
    ascending, or None; worded: whether they are words.

    numbers: labels are read as numbers regardless of their spelling. If a Reader has neither names
    nor numbers yet and needs them, `targets` raises OtherSpelling.
    """

    def __init__(self, numbers: bool = False):
        self.names: list[str] | None = None
        self.worded, self.numbers = False, numbers

    def parse(self, raw: bytes, zero_based: bool, name: str, line: int = 1) -> Stretch:
        """Like `parse` above; OtherSpelling if labels are words unexpectedly."""
        if self.unknown and labelwords.recognised(raw):
            raise OtherSpelling
        return parse(raw, zero_based, name, line, self.worded)

    @property
    def unknown(self) -> bool:
        """Whether all labels so far are numbers as rfx prints them, and nothing else is known."""
        return self.names is None and not self.numbers

    def targets(self, found: Stretch, name: str) -> np.ndarray:
        """y (n,) of one part. Raises DataError for a label that is not among the names."""
        if self.numbers or (self.unknown and found.plain):
            return found.y
        words = found.words()
        if self.names is None:
            if not all(map(labelwords.printed, words.values)):
                raise OtherSpelling
            return found.y
        places = {label: place for place, label in enumerate(self.names)}
        codes = [places.get(labelwords.unsigned(word), -1) for word in words.values]
        if -1 in codes:
            raise unexpected(name, words.values[codes.index(-1)], self.names)
        return np.array(codes, np.float64)[words.codes]

    def learn(
        self, found: labelwords.Spellings, task: str | None, name: str, whole: bool
    ) -> str | None:
        """Learn the labels from their spellings, of all rows if `whole`; return the task, inferred
        if necessary.
        """
        plain = all(map(labelwords.printed, found.counts))
        self.names, task = found.decided(task, name)
        self.worded = None in found.numbers.values()
        self.numbers = self.names is None and (
            whole or found.full or not plain or task == "regression"
        )
        return task


def count(found: labelwords.Spellings, stretch: Stretch) -> None:
    """Count the labels of one part."""
    if stretch.own is None and stretch.plain:
        found.add_numbers(stretch.y)
        return
    words = stretch.words()
    found.add(
        words,
        [None] * len(words.values) if stretch.own is not None else list(map(float, words.values)),
    )


def unexpected(name: str, word: str, labels: list[str]) -> DataError:
    """The error for a label in rows that can be read only once, if it was absent from the first
    rows.
    """
    known = (
        f"the previous labels ({', '.join(labels[:5]):.100})"
        if labels
        else "numbers as rfx prints them"
    )
    return DataError(
        f"{name} has the label {word!r:.80}, but labels were inferred from its first rows, which"
        f" have {known}; use a file, which is scanned first, or --task regression"
    )
