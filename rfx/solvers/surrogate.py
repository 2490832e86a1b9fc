"""A linear classifier by weighted convex loss, as a surrogate for the perceptron with the lowest
weighted error, which is intractable.

The greedy step of boosting needs the perceptron h that minimises sum_n u_n h(x_n), u_n = L'(f_n,
y_n) (Yen et al. 2014, eq. 24). Like the paper, we use a convex surrogate: the linear function that
minimises sum_n |u_n| l(s_n (theta.x_n + b)) over the pseudo-labels s_n = -sign(u_n); its sign is
the perceptron. The paper does not specify l.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rfx import parallel
from rfx.errors import UsageError

if TYPE_CHECKING:
    from rfx.losses import SmoothLoss

# Maximum inputs: a Newton step needs the Gram matrix of all of them.
MOST_INPUTS = 4000
# Ridge relative to the mean weight, so that separable rows have a minimum; relative decrease below
# which a step is the last.
_RIDGE, _TOL, _STEPS = 1e-6, 1e-5, 30
_BLOCK = 4096


def fit_linear(X: np.ndarray, u: np.ndarray, loss: SmoothLoss) -> tuple[np.ndarray, float]:
    """(theta (d,), b) that minimise the mean of |u_n| l(theta.x_n + b, -sign(u_n)) plus a small
    ridge term, by Newton's method.

    X: (n, d) array. u: (n,) float64, not all zero; rows with 0 are ignored. loss: Logistic, Squared
    or SquaredHinge of rfx.losses. theta and b are zero if nothing is better. Raises UsageError for
    too many inputs.
    """
    if X.shape[1] > MOST_INPUTS:
        raise UsageError(
            f"the rows have {X.shape[1]} inputs; a perceptron is fitted to at most {MOST_INPUTS}"
        )
    rows = np.flatnonzero(u)
    weights, labels = np.abs(u[rows]), -np.sign(u[rows])
    weights = weights / weights.sum()
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    size = X.shape[1] + 1
    w, f = np.zeros(size), np.zeros(len(rows))

    def value(w: np.ndarray, f: np.ndarray) -> float:
        return float(weights @ loss.value(f, labels)) + 0.5 * _RIDGE * float(w @ w)

    def decisions(w: np.ndarray) -> np.ndarray:
        out = np.empty(len(rows))

        def part(start: int, stop: int) -> None:
            for k in range(start, stop):
                out[k * _BLOCK : (k + 1) * _BLOCK] = (
                    X[blocks[k]].astype(np.float64, copy=False) @ w[:-1] + w[-1]
                )

        parallel.for_ranges(part, len(blocks))
        return out

    def derivatives(slopes: np.ndarray, curvatures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the losses: a sum over fixed blocks, independent of the number of
        threads.
        """
        found = np.empty((len(blocks), size + 1, size))

        def part(start: int, stop: int) -> None:
            for k in range(start, stop):
                own = slice(k * _BLOCK, (k + 1) * _BLOCK)
                Z = np.ones((len(blocks[k]), size))
                Z[:, :-1] = X[blocks[k]]
                found[k, :-1] = Z.T @ (Z * curvatures[own, None])
                found[k, -1] = slopes[own] @ Z

        parallel.for_ranges(part, len(blocks))
        total = found.sum(axis=0)
        return total[-1], total[:-1]

    # the products are small: BLAS's own threads would take longer to synchronise than to compute
    with parallel.one_blas_thread():
        now = value(w, f)
        for _ in range(_STEPS):
            slope, hessian = derivatives(
                weights * loss.derivative(f, labels), weights * loss.second_derivative(f, labels)
            )
            hessian[np.diag_indices(size)] += _RIDGE
            step = -np.linalg.solve(hessian, slope + _RIDGE * w)
            decrease = -float(step @ (slope + _RIDGE * w))
            if not decrease > _TOL * now:
                break
            along, t = decisions(step), 1.0
            while (
                then := value(w + t * step, f + t * along)
            ) > now - 1e-4 * t * decrease and t > 1e-6:
                t *= 0.5
            if t <= 1e-6:
                break
            w, f, now = w + t * step, f + t * along, then
    return w[:-1], w[-1]
