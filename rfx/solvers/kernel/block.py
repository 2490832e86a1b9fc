"""Solve the quadratic programme of one block of variables in an SVM's dual to a tolerance, within
the cache.

Variables are signed, beta_i in [lo_i, hi_i], so that labels appear only in the bounds. The block
maximises sum_i e_i t_i - tube |beta_i + t_i| - 1/2 t' (K + diag(shift)) t over steps t, where e = y
- f - shift beta. The tube is None for the hinge losses, which compiles to code without it.
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
    tube: float | None,
    tol: float,
    max_steps: int,
) -> int:
    """Greedy coordinate ascent: the variable whose unconstrained step gains most moves to its
    optimum.

    K (q, q); shift, error, beta, lo, hi (q,) float64; error and beta are updated. Ends when no
    feasible slope exceeds tol, or after max_steps. Returns the number of steps.
    """
    size = len(beta)
    curvature = np.maximum(np.diag(K) + shift, 1e-12)
    for step in range(max_steps):
        best, chosen, worst = 0.0, -1, 0.0
        for i in range(size):
            e = _slope(error[i], beta[i], tube)
            if (e > 0 and beta[i] < hi[i]) or (e < 0 and beta[i] > lo[i]):
                gain = e * e / curvature[i]
                if gain > best:
                    best, chosen = gain, i
                worst = max(worst, abs(e))
        if chosen < 0 or worst <= tol:
            return step
        goal = beta[chosen] + error[chosen] / curvature[chosen]
        if tube is not None:
            goal = _soft(goal, tube / curvature[chosen])
        moved = min(max(goal, lo[chosen]), hi[chosen])
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
    tube: float | None,
    tol: float,
    max_steps: int,
) -> int:
    """The same with a constant sum of beta: two variables move by opposite steps.

    The first has the largest slope upwards, the second the largest gain of the pair by
    second-order information (Fan, Chen and Lin 2005). Ends when the largest slope upwards and the
    smallest downwards differ by at most tol.
    """
    size = len(beta)
    own = np.diag(K).copy()
    for step in range(max_steps):
        high, i = -np.inf, -1
        for k in range(size):
            e = _rising(error[k], beta[k], tube)
            if e > high and beta[k] < hi[k]:
                high, i = e, k
        if i < 0:
            return step
        row = K[i]
        best, j, low = 0.0, -1, np.inf
        for k in range(size):
            if beta[k] > lo[k]:
                e = _falling(error[k], beta[k], tube)
                low = min(low, e)
                if e < high:
                    difference = high - e
                    gain = (
                        difference
                        * difference
                        / max(max(own[i] + own[k] - 2 * row[k], 0.0) + shift[i] + shift[k], 1e-12)
                    )
                    if gain > best:
                        best, j = gain, k
        if j < 0 or high - low <= tol:
            return step
        curvature = max(max(own[i] + own[j] - 2 * row[j], 0.0) + shift[i] + shift[j], 1e-12)
        slope = high - _falling(error[j], beta[j], tube)
        change = slope / curvature
        if tube is not None:
            # The slope drops by twice the tube where either variable passes zero.
            first, second = _until_zero(-beta[i]), _until_zero(beta[j])
            for zero in (min(first, second), max(first, second)):
                if change > zero:
                    slope -= 2 * tube
                    change = max(zero, slope / curvature)
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


@njit(cache=True, nogil=True)
def _rising(error: float, beta: float, tube: float | None) -> float:
    """The slope of the objective as the variable rises."""
    if tube is None:
        return error
    return error - tube if beta >= 0 else error + tube


@njit(cache=True, nogil=True)
def _falling(error: float, beta: float, tube: float | None) -> float:
    """The slope on the side below; if it is negative, a smaller value is better."""
    if tube is None:
        return error
    return error - tube if beta > 0 else error + tube


@njit(cache=True, nogil=True)
def _slope(error: float, beta: float, tube: float | None) -> float:
    """The slope in the direction of improvement; at zero it is 0 if no direction improves."""
    if tube is None:
        return error
    if beta == 0:
        return _soft(error, tube)
    return error - tube if beta > 0 else error + tube


@njit(cache=True, nogil=True)
def _soft(value: float, width: float) -> float:
    """Soft thresholding: the value moved towards zero by at most the width."""
    if value > width:
        return value - width
    return value + width if value < -width else 0.0


@njit(cache=True, nogil=True)
def _until_zero(distance: float) -> float:
    """The step at which a variable passes zero; infinite if it moves away from there."""
    return distance if distance > 0 else np.inf
