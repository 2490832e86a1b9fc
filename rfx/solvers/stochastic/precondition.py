"""Steps of stochastic gradients multiplied by the inverse of a batch's covariance.

A plain gradient step converges in the directions in which features vary most, and hardly in the
others. Multiplied by (C + ridge I)^-1, C the covariance of the features on the batch, it is
Newton's step on the batch for squared loss, and uses the batch in every direction. With sample
weights, C is the weighted mean, like the gradient.
"""

from __future__ import annotations

import numpy as np

from rfx.operators.cholesky import factor_in_place, solve
from rfx.parallel import for_ranges, one_blas_thread
from rfx.solvers.stochastic.expansion import SUMMED

# Features on a side of a tile of their covariance, summed by one thread.
TILE = 512


def solve_covariance(
    Z: np.ndarray,
    gradient: np.ndarray,
    divisor: float,
    ridge: float,
    weights: np.ndarray | None = None,
) -> np.ndarray | None:
    """(Z'WZ / divisor + ridge I)^-1 gradient for features Z (n, m) and a gradient (m, k); None if
    rounding leaves no inverse.

    weights: (n,) on the diagonal of W, None for ones.
    """
    C = _lower_gram(Z if weights is None else Z * _roots(weights).astype(Z.dtype))
    C /= divisor
    return _solved(C, gradient, ridge)


def solve_few(
    Z: np.ndarray,
    gradient: np.ndarray,
    divisor: float,
    ridge: float,
    weights: np.ndarray | None = None,
) -> np.ndarray | None:
    """The result of `solve_covariance`, for fewer rows than features: ridge > 0.

    Uses (Z'Z + r I)^-1 = (I - Z' (ZZ' + r I)^-1 Z) / r, whose difference needs float64.
    """
    rows = Z.astype(np.float64)
    if weights is not None:
        rows *= _roots(weights)
    K = _lower_gram(np.ascontiguousarray(rows.T))
    with one_blas_thread():
        inner = _solved(K, rows @ gradient, divisor * ridge)
        if inner is None:
            return None
        found: np.ndarray = (gradient - rows.T @ inner) / ridge
        return found


def solve_kernel(
    K: np.ndarray,
    derivatives: np.ndarray,
    divisor: float,
    ridge: float,
    weights: np.ndarray | None = None,
) -> np.ndarray | None:
    """S (S K S / divisor + ridge I)^-1 S derivatives for the kernel matrix K (n, n) of a batch and
    the derivatives (n, k) of its unweighted losses; None if rounding leaves no inverse.

    weights: (n,) the squares on the diagonal of S, None for ones. These are the coefficients of the
    rows in (C + ridge I)^-1 sum_i weights_i derivatives_i k(x_i, .), C the covariance of the
    kernel's own features: (Z'SSZ + r I)^-1 Z'S = Z'S (SZZ'S + r I)^-1.
    """
    C = np.array(K, np.float64, order="F")
    C /= divisor
    if weights is None:
        return _solved(C, derivatives, ridge)
    own = _roots(weights)
    C *= own
    C *= own.T
    found = _solved(C, own * derivatives, ridge)
    return None if found is None else own * found


def _roots(weights: np.ndarray) -> np.ndarray:
    """(n, 1) the square roots of the weights."""
    found: np.ndarray = np.sqrt(weights)[:, None]
    return found


def _solved(C: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray | None:
    C[np.diag_indices(len(C))] += ridge
    if factor_in_place(C):
        return None
    with one_blas_thread():
        return solve(C, right)


def _lower_gram(Z: np.ndarray) -> np.ndarray:
    """Z'Z (m, m), Fortran order, at least its lower triangle: products in Z's type, summed over
    rows in float64.

    Bitwise the same for any number of threads, which share its tiles.
    """
    C = np.zeros((Z.shape[1], Z.shape[1]), order="F")
    starts = range(0, len(C), TILE)
    pairs = [(slice(i, i + TILE), slice(j, j + TILE)) for i in starts for j in starts if j <= i]

    def add(start: int, stop: int) -> None:
        for rows, columns in pairs[start:stop]:
            tile = C[rows, columns].T
            for first in range(0, len(Z), SUMMED):
                part = Z[first : first + SUMMED]
                tile += part[:, columns].T @ part[:, rows]

    with one_blas_thread():
        for_ranges(add, len(pairs))
    return C
