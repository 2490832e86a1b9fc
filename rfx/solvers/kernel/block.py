"""Solve the quadratic programme of one block of variables in an SVM's dual to a tolerance, within
the cache.

Variables are signed, beta_i = y_i alpha_i in [lo_i, hi_i], so that labels appear only in the
bounds. The block maximises sum_i e_i t_i - 1/2 t' (K + diag(shift)) t over steps t, where e = y - f
- shift beta is the gradient at t = 0.
"""

from __future__ import annotations

import numpy as np

from rfx.compiled import njit


@njit(cache=True, nogil=True)
def solve_singles(
    K: np.ndarray,
    shift: np.ndarray,
    error: np.ndarray,
    beta: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    tol: float,
    max_steps: int,
) -> int:
    """Greedy coordinate ascent: the variable whose unconstrained step gains most moves to its
    optimum.

    K (q, q); shift, error, beta, lo, hi (q,) float64; error and beta are updated. Ends when no
    feasible gradient exceeds tol, or after max_steps. Returns the number of steps.
    """
    size = len(beta)
    for step in range(max_steps):
        best, chosen, worst = 0.0, -1, 0.0
        for i in range(size):
            e = error[i]
            if (e > 0 and beta[i] < hi[i]) or (e < 0 and beta[i] > lo[i]):
                gain = e * e / max(K[i, i] + shift[i], 1e-12)
                if gain > best:
                    best, chosen = gain, i
                worst = max(worst, abs(e))
        if chosen < 0 or worst <= tol:
            return step
        moved = min(
            max(
                beta[chosen] + error[chosen] / max(K[chosen, chosen] + shift[chosen], 1e-12),
                lo[chosen],
            ),
            hi[chosen],
        )
        change = moved - beta[chosen]
        beta[chosen] = moved
        row = K[chosen]
        for i in range(size):
            error[i] -= change * row[i]
        error[chosen] -= change * shift[chosen]
    return max_steps


@njit(cache=True, nogil=True)
def solve_pairs(
    K: np.ndarray,
    shift: np.ndarray,
    error: np.ndarray,
    beta: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    tol: float,
    max_steps: int,
) -> int:
    """The same with a constant sum of beta: two variables move by opposite steps.

    The first has the largest gradient upwards, the second the largest gain of the pair by
    second-order information (Fan, Chen and Lin 2005). Ends when the largest and the smallest
    feasible gradient differ by at most tol.
    """
    size = len(beta)
    for step in range(max_steps):
        high, i = -np.inf, -1
        for k in range(size):
            if error[k] > high and beta[k] < hi[k]:
                high, i = error[k], k
        if i < 0:
            return step
        row = K[i]
        own = row[i]
        best, j, low = 0.0, -1, np.inf
        for k in range(size):
            if beta[k] > lo[k]:
                e = error[k]
                low = min(low, e)
                if e < high:
                    difference = high - e
                    gain = (
                        difference
                        * difference
                        / max(max(own + K[k, k] - 2 * row[k], 0.0) + shift[i] + shift[k], 1e-12)
                    )
                    if gain > best:
                        best, j = gain, k
        if j < 0 or high - low <= tol:
            return step
        change = (high - error[j]) / max(
            max(own + K[j, j] - 2 * row[j], 0.0) + shift[i] + shift[j], 1e-12
        )
        change = min(change, min(hi[i] - beta[i], beta[j] - lo[j]))
        # A bound is met exactly, so that a variable at its bound is recognised.
        beta[i] = hi[i] if change >= hi[i] - beta[i] else beta[i] + change
        beta[j] = lo[j] if change >= beta[j] - lo[j] else beta[j] - change
        other = K[j]
        for k in range(size):
            error[k] -= change * (row[k] - other[k])
        error[i] -= change * shift[i]
        error[j] += change * shift[j]
    return max_steps
