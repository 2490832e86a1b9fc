"""Rows in this process, or in parts on workers; and statistics of rows that merge, the same for
rows in memory, in a stream, and on workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TypeVar

import numpy as np
import scipy.sparse

from rfx import env
from rfx.types import Inputs

# A statistic, or what a function of some rows returns.
Value = TypeVar("Value")

# ---------------------------------------------------------------------- rows here or on workers
#
# `rfx.distributed.rows` registers its own versions of these functions, as it does of others with
# `singledispatch`.


@singledispatch
def total(
    X: Inputs, function: Callable[..., Value], shared: object, *vectors: np.ndarray | None
) -> Value:
    """The sum over the parts of rows X of function(shared, part, *vectors); vectors have one entry
    per row.
    """
    return function(shared, X, *vectors)


@singledispatch
def statistics(X: Inputs, moments: bool, weights: np.ndarray | None = None) -> Statistics:
    """The statistics of rows X (n, d) with weights (n,); moments: also means and deviations."""
    return Statistics.of(X, moments, weights)


@singledispatch
def room(X: Inputs) -> tuple[int, float]:
    """(rows, MiB of memory for them) of the place with most of the rows X."""
    return X.shape[0], env.available_memory_mb()


# ---------------------------------------------------------------------- statistics


MOST_LABELS = 1000  # maximum number of distinct labels that are counted
_VALUES_A_BLOCK = 1 << 20
# CSR rows with more columns than this and a lower density than that are never made dense.
WIDE, FILLED = 1000, 0.05


@singledispatch
def keeps_sparse(X: Inputs) -> bool:
    """Whether scaling must preserve the zeros of rows X (n, d): text and similar data."""
    return scipy.sparse.issparse(X) and is_text(X.shape[0], X.shape[1], X.nnz)


def is_text(n: int, d: int, entries: int) -> bool:
    """Whether sparse rows (n, d) with so many entries are wide and mostly zeros."""
    return d > WIDE and entries < FILLED * n * d


def stacked(parts: Sequence[Inputs]) -> Inputs:
    """The rows of these parts, arrays or CSR, concatenated."""
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def blocks(X: Inputs) -> Iterator[tuple[int, np.ndarray]]:
    """X, dense or csr, as (start, dense float64 rows) of bounded size."""
    step = max(1, _VALUES_A_BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = X if X.shape[0] <= step else X[start : start + step]
        if scipy.sparse.issparse(block):
            yield start, block.toarray()
        else:
            yield start, np.asarray(block, np.float64)


@dataclass
class Statistics:
    """count rows of `width` columns with `entries` stored numbers; low, high and mean of each
    column, and its sum of squared differences.

    mean and squares are None unless requested; weight: their total sample weight, `count` without
    weights. labels: {target: rows}, None for more than MOST_LABELS.
    """

    count: int
    width: int
    entries: int
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray | None
    squares: np.ndarray | None
    weight: float
    labels: dict[float, int] | None = None

    @classmethod
    def of(
        cls,
        X: Inputs,
        moments: bool,
        weights: np.ndarray | None = None,
        y: np.ndarray | None = None,
    ) -> Statistics:
        """The statistics of rows X (n, d), their sample weights (n,), None for ones, and their
        targets y (n,), or (n, k) without labels.
        """
        n, d = X.shape
        weight = float(n if weights is None else weights.sum())
        entries = X.nnz if scipy.sparse.issparse(X) else n * d
        low, high = X.min(axis=0), X.max(axis=0)
        if scipy.sparse.issparse(X):  # including implicit zeros
            low, high = low.toarray().ravel(), high.toarray().ravel()
        low, high = low.astype(np.float64), high.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, squares = _moments(X, weights) if moments else (None, None)
        labels = None
        if y is not None and y.ndim == 1:
            values, counts = np.unique(y, return_counts=True)
            labels = _if_few(dict(zip(values.tolist(), counts.tolist())))
        return cls(n, d, entries, low, high, mean, squares, weight, labels)

    def __add__(self, other: Statistics) -> Statistics:
        if not self.count or not other.count:
            return self if self.count else other
        width = max(self.width, other.width)
        one, other = self._widened(width), other._widened(width)
        mean = squares = labels = None
        if one.mean is not None:
            mean, squares = merged(
                (one.weight, one.mean, one.squares), (other.weight, other.mean, other.squares)
            )
        if one.labels is not None and other.labels is not None:
            labels = _if_few(dict(Counter(one.labels) + Counter(other.labels)))
        return Statistics(
            one.count + other.count,
            width,
            one.entries + other.entries,
            np.minimum(one.low, other.low),
            np.maximum(one.high, other.high),
            mean,
            squares,
            one.weight + other.weight,
            labels,
        )

    def _widened(self, width: int) -> Statistics:
        """The statistics for so many columns; those missing from a part are zeros there."""
        if width == self.width:
            return self

        def wide(values):
            return np.concatenate([values, np.zeros(width - len(values))])

        mean = None if self.mean is None else wide(self.mean)
        squares = None if self.squares is None else wide(self.squares)
        return replace(
            self, width=width, low=wide(self.low), high=wide(self.high), mean=mean, squares=squares
        )

    def deviations(self) -> np.ndarray:
        """The standard deviations (d,); a variance within rounding error of a constant is 0."""
        assert self.mean is not None and self.squares is not None
        noise = np.abs(self.mean) * self.weight * np.finfo(np.float64).eps
        spread = np.sqrt(self.squares / self.weight)
        return np.where(spread > noise, spread, 0.0)


def _if_few(labels: dict[float, int]) -> dict[float, int] | None:
    """The rows of each target, None for too many targets."""
    return None if len(labels) > MOST_LABELS else labels


def merged(one: tuple, other: tuple) -> tuple[np.ndarray, np.ndarray]:
    """(mean, sum of squared differences) of the rows of two parts, from (weight, mean, squares) of
    each, so that large means lose no digits (Chan, Golub and LeVeque 1983).
    """
    (count, mean, squares), (more, other_mean, other_squares) = one, other
    total, delta = count + more, other_mean - mean
    between = delta**2 * (count * more / total)
    return mean + delta * (more / total), squares + (other_squares + between)


def _moments(X: Inputs, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Column means, and sums of squared differences."""
    d = X.shape[1]
    if keeps_sparse(X):
        return _sparse_moments(X, np.ones(X.shape[0]) if weights is None else weights)
    count, mean, squares = 0.0, np.zeros(d), np.zeros(d)
    for start, block in blocks(X):
        if weights is None:
            rows = float(len(block))
            centre = block.mean(axis=0)
            spread = ((block - centre) ** 2).sum(axis=0)
        else:
            block_weights = weights[start : start + len(block)]
            rows = block_weights.sum()
            centre = block_weights @ block / rows
            spread = block_weights @ (block - centre) ** 2
        mean, squares = merged((count, mean, squares), (rows, centre, spread))
        count += rows
    return mean, squares


def _sparse_moments(X: Inputs, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_moments` of a sparse matrix that is not made dense."""
    d, weight = X.shape[1], weights.sum()
    mean, X = X.T @ weights / weight, X.tocsc()
    column = np.repeat(np.arange(d), np.diff(X.indptr))
    entry_weights = weights[X.indices]
    squares = np.bincount(column, entry_weights * (X.data - mean[column]) ** 2, d)
    zeros = weight - np.bincount(column, entry_weights, d)
    return mean, squares + zeros * mean**2
