"""The best decision stump for given numbers: exact greedy steps of boosting (Yen et al. 2014, eq.
24).
"""

from __future__ import annotations

import numpy as np

from rfx import parallel
from rfx.compiled import njit


class StumpSearch:
    """All stumps sign(x_j - a) that distinguish the rows of X (n, d), and the constant one.

    X: float32 or float64, without nan. The order of every column is computed once.
    """

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.order = np.empty(X.shape[::-1], np.int32 if len(X) < 2**31 else np.int64)
        parallel.for_ranges(self._sort, X.shape[1])

    def _sort(self, start: int, stop: int) -> None:
        for j in range(start, stop):
            self.order[j] = np.argsort(self.X[:, j], kind="stable")

    def best(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(thresholds (d,), sums (d,)): for each input the stump with the largest |sum_n u_n
        sign(x_nj - a)|, and that sum.

        u: (n,) float64. A stump is +1 from x_nj = a on. The threshold is halfway between two
        values, or at the smallest value for the constant stump, and has X's type.
        """
        u = np.ascontiguousarray(u, np.float64)
        low, high, sums = (
            np.empty(self.X.shape[1]),
            np.empty(self.X.shape[1]),
            np.empty(self.X.shape[1]),
        )

        def part(start: int, stop: int) -> None:
            for j in range(start, stop):
                low[j], high[j], sums[j] = _best(
                    np.ascontiguousarray(self.X[:, j]), self.order[j], u
                )

        parallel.for_ranges(part, len(sums))
        middle = (low + (high - low) / 2).astype(self.X.dtype)
        return np.where((middle > low) & (middle < high), middle, high).astype(self.X.dtype), sums


@njit(cache=True, nogil=True)
def _best(x: np.ndarray, order: np.ndarray, u: np.ndarray) -> tuple[float, float, float]:
    """(value below the threshold, value above it, sum) of the best stump on one input; both are the
    smallest for the constant one.
    """
    total = 0.0
    for i in range(len(u)):
        total += u[i]
    below, best, at = 0.0, total, -1
    for k in range(len(order) - 1):
        below += u[order[k]]
        if x[order[k]] < x[order[k + 1]] and abs(total - 2.0 * below) > abs(best):
            best, at = total - 2.0 * below, k
    if at < 0:
        return x[order[0]], x[order[0]], best
    return x[order[at]], x[order[at + 1]], best
