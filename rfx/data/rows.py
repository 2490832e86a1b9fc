"""Rows in this process, or in parts on workers; and statistics of rows that merge, the same for
rows in memory, in a stream, and on workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse

from rfx import env
from rfx.types import Inputs

# ---------------------------------------------------------------------- rows here or on workers
#
# `rfx.distributed.rows` registers its own versions of these functions, as it does of others with
# `singledispatch`.


@singledispatch
def total(X: Inputs, function: Callable[..., Any], shared: Any, *vectors: Any) -> Any:
    """The sum over the parts of rows X of function(shared, part, *vectors); vectors have one entry
    per row.
    """
    return function(shared, X, *vectors)


@singledispatch
def statistics(X: Inputs, moments: bool, weights: Any = None) -> Statistics:
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


def stacked(parts: Any) -> Any:
    """The rows of these parts, arrays or CSR, concatenated."""
    sparse = scipy.sparse.issparse(parts[0])
    return scipy.sparse.vstack(parts, format="csr") if sparse else np.concatenate(parts)


def blocks(X: Any) -> Iterator[tuple[int, np.ndarray]]:
    """X, dense or csr, as (start, dense float64 rows) of bounded size."""
    step = max(1, _VALUES_A_BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = X if X.shape[0] <= step else X[start : start + step]
        dense = block.toarray() if scipy.sparse.issparse(block) else np.asarray(block, np.float64)
        yield start, dense


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
    mean: Any
    squares: Any
    weight: float
    labels: dict[float, int] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
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
            made = cls(n, d, entries, low, high, mean, squares, weight)
        if y is not None and y.ndim == 1:
            values, counts = np.unique(y, return_counts=True)
            made.labels = dict(zip(values.tolist(), counts.tolist()))
        return made._few_labels()

    def _few_labels(self) -> Statistics:
        self.labels = None if len(self.labels or ()) > MOST_LABELS else self.labels
        return self

    def __add__(self, other: Statistics) -> Statistics:
        if not self.count or not other.count:
            return self if self.count else other
        width, mean, squares, labels = max(self.width, other.width), None, None, None

        def wide(values):
            # columns missing from a part are zeros there
            return np.concatenate([values, np.zeros(width - len(values))])

        if self.mean is not None:
            mean, squares = merged(
                (self.weight, wide(self.mean), wide(self.squares)),
                (other.weight, wide(other.mean), wide(other.squares)),
            )
        if self.labels is not None and other.labels is not None:
            labels = dict(Counter(self.labels) + Counter(other.labels))
        return Statistics(
            self.count + other.count,
            width,
            self.entries + other.entries,
            np.minimum(wide(self.low), wide(other.low)),
            np.maximum(wide(self.high), wide(other.high)),
            mean,
            squares,
            self.weight + other.weight,
            labels,
        )._few_labels()

    def deviations(self) -> np.ndarray:
        """The standard deviations (d,); a variance within rounding error of a constant is 0."""
        noise = np.abs(self.mean) * self.weight * np.finfo(np.float64).eps
        spread = np.sqrt(self.squares / self.weight)
        return np.where(spread > noise, spread, 0.0)


def merged(one: tuple, other: tuple) -> tuple[Any, Any]:
    """(mean, sum of squared differences) of the rows of two parts, from (weight, mean, squares) of
    each, so that large means lose no digits (Chan, Golub and LeVeque 1983).
    """
    (count, mean, squares), (more, other_mean, other_squares) = one, other
    total, delta = count + more, other_mean - mean
    between = delta**2 * (count * more / total)
    return mean + delta * (more / total), squares + (other_squares + between)


def _moments(X: Any, weights: np.ndarray | None) -> tuple[Any, Any]:
    """Column means, and sums of squared differences."""
    if keeps_sparse(X):
        weights = np.ones(X.shape[0]) if weights is None else weights
        mean, X = X.T @ weights / weights.sum(), X.tocsc()
        column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        squares = np.bincount(column, weights[X.indices] * (X.data - mean[column]) ** 2, X.shape[1])
        zeros = weights.sum() - np.bincount(column, weights[X.indices], X.shape[1])
        return mean, squares + zeros * mean**2
    count, mean, squares = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start, block in blocks(X):
        block_weights = None if weights is None else weights[start : start + len(block)]
        rows = float(len(block)) if block_weights is None else block_weights.sum()
        centre = block.mean(axis=0) if block_weights is None else block_weights @ block / rows
        deviations = (block - centre) ** 2
        spread = deviations.sum(axis=0) if block_weights is None else block_weights @ deviations
        mean, squares = merged((count, mean, squares), (rows, centre, spread))
        count += rows
    return mean, squares
