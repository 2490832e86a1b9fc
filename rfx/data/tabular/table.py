"""A table whose columns are numbers or words, independent of the file format."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from rfx import lazy
from rfx.data.tabular.number_formats import shortest
from rfx.errors import DataError, UsageError, or_near

_INDEX_NAME = re.compile(r"__index_level_[0-9]+__")
# Advice about a missing cell of rows in memory.
FILL = 'fill it in, or train with missing="mean"'
_NO_NAME = re.compile(r"Unnamed: [0-9]+(?:[._][0-9]+)*")


def abbreviated(parts: Iterable[str], most: int = 5) -> str:
    """The first of some texts, and how many more there are."""
    parts = list(parts)
    more = f" and {len(parts) - most:,} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


@dataclass
class Words:
    """A column of words: codes (n,) int32 of its distinct values, -1 for missing cells."""

    codes: np.ndarray
    values: list[str]

    @classmethod
    def of(cls, codes: np.ndarray, texts: Iterable[str | None]) -> "Words":
        """The words of the codes (n,) of some texts, which may repeat; None, and the code -1, is a
        missing cell.
        """
        numbers: dict[str, int] = {}
        places = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
        return cls(np.array([*places, -1], np.int32)[codes], list(numbers))

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, index) -> "Words":
        return Words(self.codes[index], self.values)

    @property
    def missing(self) -> np.ndarray:
        """(n,) whether cells are missing."""
        return self.codes < 0


# Numbers (n,) float64, nan for missing cells, or words.
Column: TypeAlias = np.ndarray | Words


@dataclass
class Table:
    """Columns of equal length, numbers or words.

    name: of the file, for messages. names: of the columns, if `named`, else their numbers (from 1
    on). lines: (n,) the line of the file where each row begins, or None. own_target: the position
    of a column that the file declares as the target. index: the names of columns that the file
    declares as row numbers. typed: the names of columns that the file declares as words, even if
    they look like numbers; categorical: of those declared as categories. decimal: the decimal mark
    implied by the separator of a text, or None. dotted: the positions of columns of a text with
    decimal commas that have dots in their cells, and the first such cell if all dots may mark
    thousands, else "". padded: the positions of columns of a text with a cell of digits that begins
    with 0, such as 007, and the first such cell. unread: the positions of columns whose cells are
    neither numbers nor words, and what they are instead. in_memory: whether its rows are arguments
    of an estimator, whose warnings have the same text for each fold of a cross-validation.
    """

    name: str
    names: list[str]
    named: bool
    columns: list[Column]
    lines: np.ndarray | None = None
    own_target: int | None = None
    index: frozenset[str] = frozenset()
    typed: frozenset[str] = frozenset()
    categorical: frozenset[str] = frozenset()
    decimal: str | None = None
    dotted: dict[int, str] = field(default_factory=dict)
    padded: dict[int, str] = field(default_factory=dict)
    unread: dict[int, str] = field(default_factory=dict)
    in_memory: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.columns[0])

    def rows(self, index) -> "Table":
        """The table of some rows, selected by an integer array or a slice."""
        columns = [column[index] for column in self.columns]
        lines = np.arange(1, self.n_rows + 1) if self.lines is None else self.lines
        return replace(self, columns=columns, lines=lines[index])

    @property
    def advice_on_gaps(self) -> str:
        """What to do about a missing cell, for messages."""
        if self.in_memory:
            return FILL
        return "fill it in, or use --missing mean, median or most_frequent in training"

    def cells(self, position: int) -> Column:
        """A column; DataError for infinity."""
        column = self.columns[position]
        if isinstance(column, Words):
            return column
        infinite = np.isinf(column)
        if infinite.any():
            place = self.place(int(np.argmax(infinite)))
            raise DataError(
                f"{place}: {self.title(position)} is infinite, or too large for a double; correct"
                " it"
            )
        return column

    def gaps(self, position: int) -> np.ndarray:
        """(n,) whether the cells of a column are missing."""
        column = self.columns[position]
        return column.missing if isinstance(column, Words) else np.isnan(column)

    def check_read(self, positions, advice: str = "") -> None:
        """Raise DataError for columns whose cells are neither numbers nor words."""
        for position in sorted(self.unread.keys() & positions):
            raise DataError(
                f"{self.name}: {self.title(position)} {self.unread[position]}; only numbers,"
                f" booleans and words are supported{advice}"
            )

    def place(self, row: int) -> str:
        """The location of a row, for messages."""
        if self.lines is None:
            return f"{self.name}, row {row + 1}"
        return f"{self.name}, line {self.lines[row]}"

    def title(self, position: int) -> str:
        """A column, for messages."""
        numbered = not self.named or self.names[position] == f"column {position + 1}"
        return f"column {position + 1}" if numbered else f"column {self.names[position]!r:.80}"

    def is_index(self, position: int) -> bool:
        """Whether a column has the row numbers of a saved data frame, according to the file or its
        name.
        """
        name = self.names[position]
        return name in self.index or (self.named and _INDEX_NAME.fullmatch(name) is not None)

    def unnamed(self, position: int) -> bool:
        """Whether a column has no name: an empty header cell, or pandas' replacement for it."""
        name = self.names[position]
        return self.named and (
            name == f"column {position + 1}" or _NO_NAME.fullmatch(name) is not None
        )

    def find(self, wanted: str, option: str) -> int:
        """The position of a column by its name, else by its number from 1; UsageError with the
        option's name if there is none.
        """
        if self.named and wanted in self.names:
            return self.names.index(wanted)
        if wanted.isascii() and wanted.isdigit() and 0 < int(wanted[:10]) <= len(self.names):
            return int(wanted) - 1
        columns = f"; its columns are 1 to {len(self.names)}"
        if self.named:
            columns = or_near(wanted, self.names, "its columns are")
        raise UsageError(
            f"{option} is {wanted!r:.80}, which is not a column of {self.name}{columns:.400}"
        )


def words_of(column: Any) -> Words:
    """A column of numbers, of a data frame, or of an array as words: numbers in their shortest
    digits, so that 3, 3.0 and "3" are equal.
    """
    codes, values = lazy.pandas.factorize(column)
    return Words.of(codes, map(_text, values))


def _text(value: Any) -> str:
    """A cell as a word."""
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, (float, np.floating)):
        return shortest(float(value))
    return value.decode() if isinstance(value, bytes) else str(value)
