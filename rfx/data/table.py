"""A table whose columns are numbers or words, whatever file it came from."""

from dataclasses import dataclass

import numpy as np

from rfx.errors import DataError, UsageError, or_near


@dataclass
class Words:
    """A column of words: codes (n,) int32 that number its different values, -1 where a cell is missing."""

    codes: np.ndarray
    values: list[str]

    def __len__(self):
        return len(self.codes)

    def rows(self, index) -> "Words":
        return Words(self.codes[index], self.values)


@dataclass
class Table:
    """Columns of equal length: float64 arrays (n,), nan where a cell is missing, or Words.

    name: of the file, for messages. names: of the columns, where `named`, else their numbers from 1. lines: (n,) the line of the
    file that each row begins at, None where it has none. own_target: the position of a column that the file itself calls the
    targets.
    """

    name: str
    names: list[str]
    named: bool
    columns: list
    lines: np.ndarray | None = None
    own_target: int | None = None

    @property
    def n_rows(self) -> int:
        return len(self.columns[0])

    def rows(self, index) -> "Table":
        """The table of some rows, given by an integer array or a slice."""
        columns = [column.rows(index) if isinstance(column, Words) else column[index] for column in self.columns]
        lines = np.arange(1, self.n_rows + 1) if self.lines is None else self.lines
        return Table(self.name, self.names, self.named, columns, lines[index], self.own_target)

    def place(self, row: int) -> str:
        """Where a row is, as messages say it."""
        return f"{self.name}, row {row + 1}" if self.lines is None else f"{self.name}, line {self.lines[row]}"

    def title(self, position: int) -> str:
        """A column, as messages say it."""
        return f"column {self.names[position]!r:.80}" if self.named else f"column {position + 1}"

    def find(self, wanted: str, option: str) -> int:
        """The position of a column by its name, else by its number from 1; UsageError, naming the option, where there is none."""
        if self.named and wanted in self.names:
            return self.names.index(wanted)
        if wanted.lstrip("-").isascii() and wanted.lstrip("-").isdigit() and len(wanted) < 10 and 0 < int(wanted) <= len(self.names):
            return int(wanted) - 1
        known = or_near(wanted, self.names, "its columns are") if self.named else f"; its columns are 1 to {len(self.names)}"
        raise UsageError(f"{option} is {wanted!r:.80}, which is no column of {self.name}{known:.400}")


def joined(tables) -> Table:
    """The rows of several tables of the same columns, below one another, as one; DataError where there are none."""
    tables = list(tables)
    first = tables[0]
    if len(tables) == 1:
        return first
    columns = [_stacked([table.columns[position] for table in tables]) for position in range(len(first.columns))]
    lines = None if first.lines is None else np.concatenate([table.lines for table in tables])
    return Table(first.name, first.names, first.named, columns, lines, first.own_target)


def _stacked(parts):
    if not isinstance(parts[0], Words):
        return np.concatenate(parts)
    numbers: dict[str, int] = {}
    codes = []
    for part in parts:
        own = np.array([numbers.setdefault(value, len(numbers)) for value in part.values] + [-1], np.int32)
        codes.append(own[part.codes])
    return Words(np.concatenate(codes), list(numbers))


def check_finite(table: Table, position: int) -> None:
    """Refuse, with a DataError, a column of numbers with one that is infinite."""
    column = table.columns[position]
    if not isinstance(column, Words) and np.isinf(column).any():
        row = int(np.argmax(np.isinf(column)))
        raise DataError(f"{table.place(row)}: {table.title(position)} is infinite, or too large for a double; correct it")
