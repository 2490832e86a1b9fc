"""The rows that are held out of a training: the only code that splits rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfx.data.tabular.apart import Apart, Part
from rfx.data.tabular.schema import Schema, label_text
from rfx.errors import DataError, UsageError


def drawn(count: int, seed: int, *sizes: int) -> list[np.ndarray]:
    """For each size, that many random rows of `count`, disjoint and sorted, or those that are
    left.
    """
    order = np.random.default_rng(seed).permutation(count)
    return [np.sort(piece) for piece in np.split(order, np.cumsum(sizes))[: len(sizes)]]


def evenly(count: int, most: int | None) -> np.ndarray:
    """At most `most` of so many positions, evenly spaced; all if most is None."""
    return np.arange(count) if most is None or count <= most else np.arange(most) * count // most


def evenly_last(count: int, last: int) -> np.ndarray:
    """All positions, ascending but for evenly spaced ones, so many, that come last."""
    out = evenly(count, last)
    return np.concatenate([np.setdiff1d(np.arange(count), out), out])


def fewer(part: Part, most: int, most_held_out: int, seed: int) -> Part:
    """At most so many rows of a part to fit and to evaluate, drawn by the seed."""
    rng = np.random.default_rng(seed)
    kept, out = (rng.permutation(rows)[:limit] for rows, limit in zip(part, (most, most_held_out)))
    return np.sort(kept), np.sort(out)


@dataclass(frozen=True)
class HeldOut:
    """The ways to hold rows out. Each part is a pair (numbers of the rows to fit, held out).

    Parameters
    ----------
    count : int
        Number of rows.
    seed : int
    apart : Apart or None
        Groups or times, which have precedence over stratification. For times the held-out rows
        follow the others.
    """

    count: int
    seed: int
    apart: Apart | None = None

    @property
    def none(self) -> bool:
        """Whether no row can be held out because all belong to one group or time."""
        return self.apart is not None and self.apart.one

    def sample(self, kept: int, out: int, share: float, out_first: bool = False) -> Part:
        """At most so many rows to fit and to evaluate; share: of the evaluated rows, if groups or
        times determine them. out_first: draw the held-out rows first.
        """
        if self.apart is not None:
            return fewer(self.apart.held_out(share, self.seed), kept, out, self.seed)
        sizes = (out, kept) if out_first else (kept, out)
        one, other = drawn(self.count, self.seed, *sizes)
        return (other, one) if out_first else (one, other)

    def part(self, share: float, option: str) -> Part:
        """A fraction `share` of the rows is held out.

        Raises UsageError with `option` (flag and value) if either side would be empty.
        """
        if self.apart is not None:
            if self.apart.one:
                raise UsageError(f"{option}, which {self.apart.too_few}")
            return self.apart.held_out(share, self.seed)
        cut = int(share * self.count)
        if not 0 < cut < self.count:
            there = "there is 1" if self.count == 1 else f"there are {self.count}"
            least = math.ceil(1 / share)
            raise UsageError(f"{option}, which needs at least {least} rows, but {there}")
        return self.sample(self.count - cut, cut, share, out_first=True)

    def parts(self, share: float, fewest: int, option: str) -> list[Part]:
        """`part`, or if that has fewer than `fewest` held-out rows, the 1 / share folds of a
        cross-validation.
        """
        first, number = self.part(share, option), round(1 / share)
        if len(first[1]) >= fewest or (self.apart is None and number < 2):
            return [first]
        if self.apart is not None:
            return self.apart.up_to(number, self.seed)
        return self.shares([len(fold) for fold in np.array_split(np.arange(self.count), number)])

    def shares(self, sizes: list[int]) -> list[Part]:
        """A part for each size of disjoint held-out rows."""
        held_out = drawn(self.count, self.seed, *sizes)
        return [(np.setdiff1d(np.arange(self.count), out), out) for out in held_out]

    def folds(
        self,
        y: np.ndarray | None,
        cv: int | None = None,
        holdout: float | None = None,
        schema: Schema | None = None,
    ) -> list[Part]:
        """cv folds, or a single fraction `holdout`.

        y: labels (n,) by which folds are stratified as far as possible; None for a regression.
        schema: of the labels, for messages. For times there are cv windows, the longest first, each
        ending where its held-out rows begin. Raises DataError if there are too few rows, or a class
        has only one.
        """
        option, share = f"--cv {cv}" if cv else f"--holdout {holdout:g}", holdout or 0.0
        if self.apart is not None:
            lacking = self.apart.too_few if self.apart.one else self.apart.lacking(cv or 1)
            if lacking is not None:
                raise DataError(f"{option} {lacking}")
            if cv:
                return self.apart.parts(cv, self.seed, y)
            return [self.apart.held_out(share, self.seed, y)]
        order = np.random.default_rng(self.seed).permutation(self.count)
        if y is not None:
            labels, counts = np.unique(y, return_counts=True)
            if counts.min() < 2:
                label = label_text(schema, labels[np.argmin(counts)])
                only = f"only 1 row has the label {label:.40}; remove that row"
                if counts.max() < 2:
                    only = "every label has 1 row; is --target the column of the labels?"
                raise DataError(f"{option} needs at least two rows of each class, but {only}")
            order = order[np.argsort(y[order], kind="stable")]
        places = np.arange(self.count)
        if cv:
            fold = places % cv
        else:
            before, after = (np.floor(edge * share + 1e-9) for edge in (places, places + 1))
            fold = 1 - (after - before).astype(int)
        if len(np.unique(fold)) < (cv or 2):
            raise DataError(f"{option} needs more rows than the {self.count} there are")
        of_row = np.empty(self.count, int)
        of_row[order] = fold
        return [(np.flatnonzero(of_row != k), np.flatnonzero(of_row == k)) for k in range(cv or 1)]
