"""The weighted Gram matrix of the working columns, cached between steps (and rounds of Algorithm
1).
"""

from __future__ import annotations

import numpy as np

from rfx.operators.corners import corner, keep_corner
from rfx.operators.matrix import Matrix

# Unused columns that may be cached, beyond a quarter of those in use, while they need no update.
SPARE = 256


class GramCache:
    """G = sum_n h_n z_n z_n' over the working columns, updated instead of recomputed.

    `matrix` holds G in its leading k x k corner, for `columns` in this order; h is the curvature
    L'' of each row: one for the squared loss (nothing is recomputed), zero or two for the squared
    hinge (rows enter and leave the margin), smooth for the logistic loss (rows whose curvature
    hardly changed keep their old one, which gives a slightly old metric but not a wrong solution).

    Between rounds of Yen et al. 2014, Algorithm 1, pass the same object to each `solve_l1(...,
    gram=cache)`; after dropping columns call `cache.keep(kept)`, where `kept` are the column
    numbers that become 0, 1, ... of the next round; columns drawn later follow them. The rows and
    labels must stay the same.
    """

    def __init__(self, stale: float = 0.1) -> None:
        self.stale = stale
        self.dtype: type[np.float64] | None = None
        self.clear()

    def clear(self) -> None:
        """Drop everything."""
        self.columns = np.empty(0, np.int64)
        self.matrix = np.zeros((0, 0))
        self.weights: np.ndarray | None = None
        self._churn = 0

    def use_float64(self) -> bool:
        """Recompute everything in float64 from here on; False if that is so already."""
        if self.dtype is not None:
            return False
        self.dtype = np.float64
        self.restrict(np.empty(0, np.int64))
        return True

    def restrict(self, columns: np.ndarray) -> None:
        """Drop all but these columns."""
        self._compress(np.flatnonzero(np.isin(self.columns, columns)))

    def keep(self, kept: np.ndarray) -> None:
        """Renumber: column kept[i] becomes column i, the others are dropped."""
        kept = np.asarray(kept, np.int64)
        numbers = np.full(1 + max(kept.max(initial=-1), self.columns.max(initial=-1)), -1)
        numbers[kept] = np.arange(len(kept))
        renumbered = numbers[self.columns]
        self._compress(np.flatnonzero(renumbered >= 0))
        self.columns = renumbered[renumbered >= 0]

    def update(
        self, Z: Matrix, wanted: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(columns, H): the `wanted` columns in the cache's order and their Gram matrix at row
        weights (N,).

        H is C-contiguous in its leading corner, at least as large as needed, and must not be
        changed. Unwanted columns are dropped, unless the weights stay the same (squared loss): then
        they cost nothing.
        """
        weights = Z.gram_weights(weights)
        if self.weights is not None and len(self.weights) != len(weights):
            self.clear()
        held = np.isin(self.columns, wanted, assume_unique=True)
        unchanged = self.weights is not None and np.array_equal(weights, self.weights)
        if not held.all() and not (unchanged and len(self.columns) <= 1.25 * len(wanted) + SPARE):
            self._compress(np.flatnonzero(held))
        new = np.setdiff1d(wanted, self.columns)
        if not len(self.columns):
            self.weights, self._churn = weights.copy(), 0
        if not unchanged and len(self.columns):
            self._reweigh(Z, weights, new)
        elif len(new):
            self._append(Z, new)
        if len(self.columns) == len(wanted):
            return self.columns, self.matrix
        chosen = np.flatnonzero(np.isin(self.columns, wanted, assume_unique=True))
        return self.columns[chosen], corner(self.matrix, chosen)

    def _append(self, Z: Matrix, new: np.ndarray) -> None:
        if len(self.columns):
            self._take(new, *Z.gram(new, self.columns, self.weights, self.dtype))
        else:
            self._begin(new, Z.gram(new, None, self.weights, self.dtype))

    def _begin(self, columns: np.ndarray, square: np.ndarray) -> None:
        # results from remote parts are read-only
        self.columns, self.matrix = columns, np.require(square, np.float64, ["C", "W"])

    def _take(self, new: np.ndarray, square: np.ndarray, cross: np.ndarray) -> None:
        """Append columns, of which square and cross are the Gram matrices with themselves
        and with those before.
        """
        old, size = len(self.columns), len(self.columns) + len(new)
        if size > len(self.matrix):
            matrix = np.zeros((size, size))
            matrix[:old, :old] = self.matrix[:old, :old]
            self.matrix = matrix
        self.matrix[old:size, :old] = cross
        self.matrix[:old, old:size] = cross.T
        self.matrix[old:size, old:size] = square
        self.columns = np.concatenate([self.columns, new])

    def _reweigh(self, Z: Matrix, weights: np.ndarray, new: np.ndarray) -> None:
        """The Gram matrix at other weights, with the columns `new` appended."""
        assert self.weights is not None  # of the existing columns
        change = weights - self.weights
        changed = np.abs(change) > self.stale * np.maximum(weights, self.weights)
        count, alive, size = (
            int(np.count_nonzero(changed)),
            np.count_nonzero(weights),
            len(self.columns),
        )
        # Sums of float32 products lose digits with every update: recompute after a few times the
        # rows.
        if count > alive // 2 or self._churn + count > 4 * alive:
            columns = np.concatenate([self.columns, new])
            self.columns, self.matrix = (
                self.columns[:0],
                np.zeros((0, 0)),
            )  # release it before the new one is allocated
            square = Z.gram(columns, None, weights, self.dtype)
            self.weights, self._churn = weights.copy(), 0
            self._begin(columns, square)
            return
        change, after = np.where(changed, change, 0.0), np.where(changed, weights, self.weights)
        if count:
            self.matrix[:size, :size] += Z.gram(self.columns, None, change, self.dtype)
        self.weights = after
        if len(new):
            self._append(Z, new)
        self._churn += count

    def _compress(self, chosen: np.ndarray) -> None:
        size = len(chosen)
        if size < len(self.columns):
            keep_corner(self.matrix, chosen)
            self.columns = self.columns[chosen]
