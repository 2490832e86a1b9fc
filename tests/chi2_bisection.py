"""The chi-square maximiser by the method of Sinha and Duchi (2016), the reference for the tests and
timings of `rfx.features.alignment.maximise`.
"""

import numpy as np


def chi2_by_bisection(scores, rho: float, tol: float = 1e-11) -> np.ndarray:
    """The chi-square maximiser by the paper's method: bisection on the multiplier, with a
    projection onto the simplex in each step.

    scores (N,), not all equal, rho in (0, N /
    ties - 1), tol relative to the first multiplier that is large enough.
    """
    scores = np.asarray(scores, dtype=np.float64)
    count = scores.size
    radius = rho / count

    def far(lam):
        q = simplex_projection(1 / count + scores / lam)
        return np.sum((q - 1 / count) ** 2) > radius

    high = 1.0
    while far(high):
        high *= 2
    low, least = 0.0, tol * high
    while high - low > least:
        middle = (low + high) / 2
        low, high = (middle, high) if far(middle) else (low, middle)
    return simplex_projection(1 / count + scores / high)


def simplex_projection(v) -> np.ndarray:
    """The probabilities (N,) closest to v (N,) in Euclidean distance, by one sort."""
    order = np.sort(v)[::-1]
    excess = (np.cumsum(order) - 1) / np.arange(1, v.size + 1)
    size = np.count_nonzero(order > excess)
    return np.maximum(0.0, v - excess[size - 1])
