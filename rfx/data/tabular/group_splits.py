"""Splits that keep groups together, or respect time, whenever rows are held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfx.data.reading import Reading
from rfx.data.tabular import number_formats
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError

# Numbers of the rows to fit and to evaluate on, both sorted.
Part: TypeAlias = tuple[np.ndarray, np.ndarray]
# Maximum number of groups balanced one by one; more groups are assigned at random.
WEIGHED = 5_000
# The constraint of rows that nobody named, but that have the inputs of others.
REPEATS = "repeats"
WORDS = {"groups": "groups", "time": "different times", REPEATS: "different rows"}


@dataclass(frozen=True)
class SplitConstraint:
    """Groups, times or repeated rows that constrain held-out splits.

    Parameters
    ----------
    by : {"groups", "time", "repeats"}
        Rows of one group, or with equal inputs, are never on both sides of a split; or every
        held-out row is later than all training rows.
    values : array, (n,)
        The numbers of the rows' groups, or their times; of equal rows, the number of the first.
    """

    by: str
    values: np.ndarray

    @property
    def given(self) -> bool:
        """Whether the user named groups or times; repeated rows are found."""
        return self.by != REPEATS

    def __len__(self) -> int:
        return len(self.values)

    @property
    def count(self) -> int:
        """The number of groups, or of distinct times."""
        return len(np.unique(self.values))

    @property
    def what(self) -> str:
        """What is counted, in words."""
        return WORDS[self.by]

    @property
    def one(self) -> bool:
        """Whether there is only one group, or one time, so that no row can be held out."""
        return len(self.values) == 0 or bool((self.values == self.values[0]).all())

    def rows(self, index: np.ndarray) -> SplitConstraint:
        """The same for some rows, by their numbers."""
        return SplitConstraint(self.by, self.values[index])

    @property
    def most(self) -> int:
        """The possible number of folds of a cross-validation."""
        return self.count - (self.by == "time")

    def lacking(self, number: int = 1) -> str:
        """The end of a message if there are too few groups or times for so many folds; empty if
        there are enough.
        """
        least = number + 1 if self.by == "time" else max(number, 2)
        count = self.count
        if count >= least:
            return ""
        there = "there is 1" if count == 1 else f"there are {count}"
        return f"needs {least} {self.what} at least, but {there}"

    def held_out(self, share: float, seed: int, y: np.ndarray | None = None) -> Part:
        """(kept, held out): whole groups with about this fraction of the rows, drawn by the seed,
        or the last rows.

        y: labels (n,) to stratify by, as far as groups allow.
        """
        if self.by == "time":
            count = len(self)
            last = max(1, int(share * count + 1e-9))
            part = self._blocks([count - last])
        else:
            part = self._shared_out([1 - share, share], seed, y)
        return np.flatnonzero(part == 0), np.flatnonzero(part == 1)

    def parts(self, number: int, seed: int, y: np.ndarray | None = None) -> list[Part]:
        """(kept, held out) of so many folds: each holds out different groups; or so many growing
        windows, the longest first, each followed by the rows that it holds out.
        """
        parts = []
        if self.by == "time":
            block = self.numbered(number + 1, seed)
            for k in range(number, 0, -1):
                parts.append((np.flatnonzero(block < k), np.flatnonzero(block == k)))
            return parts
        fold = self.numbered(number, seed, y)
        for k in range(number):
            parts.append((np.flatnonzero(fold != k), np.flatnonzero(fold == k)))
        return parts

    def up_to(self, number: int, seed: int) -> list[Part]:
        """`parts` of that number, or as many as possible, of about 1 / number of the rows."""
        return self.parts(min(number - (self.by == "time"), self.most), seed)

    def numbered(self, number: int, seed: int, y: np.ndarray | None = None) -> np.ndarray:
        """(n,) the fold of each row, of folds of about equal size: whole groups, or consecutive
        blocks of time.
        """
        if self.by != "time":
            return self._shared_out([1 / number] * number, seed, y, largest_first=True)
        count = len(self)
        size = count // number
        edges = [count - size * k for k in range(number - 1, 0, -1)]
        return self._blocks(edges)

    def _blocks(self, edges: list[int]) -> np.ndarray:
        """(n,) the time block of each row; edges: rows before each block except the first, moved to
        where the time changes.
        """
        times, counts = np.unique(self.values, return_counts=True)
        before = np.cumsum(counts)[:-1]
        cuts: list[int] = []
        for place, edge in enumerate(edges):
            lowest = cuts[-1] + 1 if cuts else 0
            highest = len(before) - (len(edges) - place)
            nearest = int(np.argmin(np.abs(before - edge)))
            cuts.append(min(max(nearest, lowest), highest))
        return np.searchsorted(times[1:][cuts], self.values, side="right")

    def _shared_out(
        self,
        shares: list[float],
        seed: int,
        y: np.ndarray | None = None,
        largest_first: bool = False,
    ) -> np.ndarray:
        """(n,) the fold of each row, for folds with these fractions of the rows and of each label.

        Each group goes to the fold where it increases the sum of squared rows over the fractions
        the least.
        """
        names, group = np.unique(self.values, return_inverse=True)
        y = np.zeros(len(self)) if y is None else y
        labels, label = np.unique(y, return_inverse=True)
        counts = np.zeros((len(names), len(labels)))
        np.add.at(counts, (group, label), 1.0)
        rows = counts.sum(axis=1)
        # the fractions of all rows, and of those of each label, in each group
        sizes = np.column_stack([rows / rows.sum(), counts / counts.sum(axis=0)])
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(names))
        if largest_first:
            order = order[np.argsort(-rows[order], kind="stable")]
        wanted, n_folds = np.array(shares), len(shares)
        fold = rng.choice(n_folds, len(names), p=wanted / wanted.sum())
        full = np.zeros((n_folds, sizes.shape[1]))
        empty = np.ones(n_folds, bool)
        weighed = order[:WEIGHED]
        for place, number in enumerate(weighed):
            size = sizes[number]
            cost = (2 * full + size) @ size / wanted
            if len(weighed) - place == np.count_nonzero(empty):
                cost[~empty] = np.inf  # no fold stays empty
            chosen = int(np.argmin(cost))
            fold[number] = chosen
            empty[chosen] = False
            full[chosen] += size
        return fold[group]


def kept_apart(table: Table, reading: Reading) -> SplitConstraint | None:
    """The groups or times from the column named by --groups or --time; None if neither is given.

    Raises
    ------
    UsageError
        If the table has no such column.
    DataError
        If a row has no value, or one that is not a time.
    """
    by = "groups" if reading.groups is not None else "time"
    column_name = getattr(reading, by)
    if column_name is None:
        return None
    position = table.find(column_name, f"--{by}")
    column, gaps = table.columns[position], table.gaps(position)
    if gaps.any():
        place = table.place(int(np.argmax(gaps)))
        raise DataError(
            f"{place}: {table.title(position)} has no value; --{by} needs a value in each row"
        )
    if by == "time":
        times = _times(table, position, column) if isinstance(column, Words) else column
        return SplitConstraint(by, times)
    if isinstance(column, Words):
        return SplitConstraint(by, column.codes)
    _, groups = np.unique(column, return_inverse=True)
    return SplitConstraint(by, groups)


def _times(table: Table, position: int, column: Words) -> np.ndarray:
    """(n,) the times that a column of words spells."""
    texts = [column.values[code] for code in np.unique(column.codes)]
    kinds = {number_formats.kind(text) for text in texts}
    try:
        if kinds <= {"number", "written"}:
            form = number_formats.numbers(texts, table.decimal)
        else:
            form = number_formats.dates(texts)
    except number_formats.Unclear as unclear:
        raise DataError(
            f"{table.title(position)} of {table.name} has {unclear}; --time needs numbers or dates"
        ) from None
    return form.read(column.values)[column.codes]
