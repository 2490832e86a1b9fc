"""An exact kernel problem whose matrix K is in memory: ridge regression by Cholesky, squared hinge
and logistic loss by Newton's method.

The problem and its certificates are those of `rfx.solvers.kernel.newton`; systems are solved by
factors in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rfx.device import CholeskyFactor, Values
from rfx.errors import UsageError
from rfx.losses import SmoothLoss
from rfx.operators.cg import dots
from rfx.operators.cholesky import Factor, factored
from rfx.solvers.base import (
    Budget,
    Callback,
    Certificate,
    Filled,
    Recorder,
    Solution,
    check_problem,
    stack,
    start,
)
from rfx.solvers.dual_l2 import newton
from rfx.solvers.kernel.newton import FLAT


def solve_kernel_dense(
    K: Any,
    Y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
) -> Solution:
    """The coefficients a (n, k) for each column of Y.

    K: (n, n) float64, symmetric positive semidefinite; for squared loss also on a device. Y: (n, k)
    targets, or labels in {-1, +1}. loss: squared, squared_hinge or logistic of rfx.losses. budget:
    tol is the gap divided by the objective (1e-6), max_iter are Newton steps per column (100;
    n_iter counts them, a ridge solution is one). warm: (n, k) coefficients to start from. Raises
    UsageError like `check_problem`, and for a lam below the rounding of K.
    """
    Y = check_problem(K, Y, lam, loss)
    budget = budget.filled(tol=1e-6, max_iter=100)
    if loss.name == "squared":
        return _ridge(K, Y, lam, budget, Recorder(callback))

    def direction(
        v: np.ndarray, Kv: np.ndarray, curvature: np.ndarray, accuracy: float
    ) -> np.ndarray:
        """(lam + S K S) t = -S K v over the rows with curvature, and lam q = -v - S t."""
        roots = np.sqrt(curvature)
        chosen = np.flatnonzero(roots > FLAT * roots.max(initial=FLAT))
        q = -v
        if len(chosen):
            s = roots[chosen]
            factor = _factor(K[np.ix_(chosen, chosen)] * np.outer(s, s), lam)
            q[chosen] -= s * factor.solve(-s * Kv[chosen])
        return q / lam

    return stack(
        [
            newton(
                lambda v: K @ v,
                direction,
                y,
                lam,
                loss,
                budget,
                first,
                Recorder(callback, output=k),
            )
            for k, (y, first) in enumerate(zip(Y.T, start(warm, Y.shape).T))
        ]
    )


def _ridge(
    K: np.ndarray | Values, Y: np.ndarray, lam: float, budget: Filled, record: Recorder
) -> Solution:
    """(K + lam) a = y with one step of iterative refinement; the gap is half the squared
    residual.
    """
    factor = _factor(K, lam)
    A, R = np.zeros_like(Y), Y
    for _ in range(2):
        A = A + factor.solve(R)
        F = K @ A
        R = Y - F - lam * A
    gaps = 0.5 * dots(R, R)
    objectives = 0.5 * lam * dots(A, F) + 0.5 * dots(F - Y, F - Y)
    objective, gap = float(objectives.sum()), float(gaps.sum())
    record(lambda: A, iteration=1, objective=objective, gap=gap)
    status = "converged" if np.all(gaps <= budget.tol * objectives) else "budget"
    return Solution(A, objective, Certificate("gap", gap), Y.shape[1], status, record.trace)


def _factor(K: np.ndarray | Values, diagonal: float) -> Factor | CholeskyFactor:
    """The Cholesky factor of K + diagonal; K is not changed."""
    try:
        return factored(K, diagonal, np.float64)
    except np.linalg.LinAlgError:
        raise UsageError(
            f"lambda is {np.min(diagonal):g}, below the rounding error of the kernel matrix; use a"
            " larger one"
        ) from None
