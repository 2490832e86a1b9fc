"""Exact kernel machines with a smooth loss, mainly logistic: Newton's method over the rows, f =
sum_i a_i k(x_i, .).

min lam/2 ||f||_H^2 + sum_n L(f(x_n), y_n), un-normalised and without bias, as in equation 1 of Yen
et al. (2014) for any loss L. With f = K a and v = lam a + L'(f), the dual point u = L'(f) has the
gap v'K v / (2 lam); u = -lam a, made feasible, has another, and the smaller one is used. Newton's
direction q solves lam q + D K q = -v with the curvatures D = S^2 of the loss: q = -v / lam + S t
gives (lam + S K S) t = S K v / lam, symmetric and positive definite.
"""

from __future__ import annotations

import numpy as np

from rfx.losses import SmoothLoss
from rfx.operators.blocks import default_memory_mb
from rfx.operators.cg import conjugate_gradients
from rfx.operators.kernel import KernelMatrix
from rfx.operators.pivoted import PivotedFactor
from rfx.parallel import matmul
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Recorder,
    Solution,
    check_problem,
    stack,
    start,
)
from rfx.solvers.dual_l2 import newton
from rfx.solvers.kernel.ridge import pivots

# Rows with a smaller fraction of the largest square root of curvature than this count as flat.
FLAT = 1e-8
# Rank of the preconditioner, which is recomputed for every direction at the cost of a few products.
_RANK = 512
# Conjugate gradient steps per direction.
_STEPS = 200


def solve_kernel_newton(
    K: KernelMatrix,
    Y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
    *,
    seed: int = 0,
) -> Solution:
    """The coefficients a (N,) or (N, k), by Newton's method with preconditioned conjugate
    gradients.

    K: (N, N), stored in float32 if it needs at most half of the budget's memory, else recomputed
    for every product. Y: (N,) or (N, k) labels in {-1, +1}; outputs are solved one by one. loss:
    one of rfx.losses with a second derivative. budget: tol is the relative gap (1e-4), max_iter are
    Newton steps per output (100). warm: coefficients of Y's shape to start from. seed: of the
    preconditioner.

    Kernel values are float32 until that is solved; then decision values are recomputed in float64,
    and the solver continues in float64 if the gap requires it. The final gap is always that of the
    float64 kernel. Raises UsageError like `check_problem`.
    """
    Y = check_problem(K, Y, lam, loss)
    budget = budget.filled(tol=1e-4, max_iter=100, memory_mb=default_memory_mb())
    values = _Values(K, lam, budget, seed)
    outputs = Y.reshape(len(Y), -1)
    starts = start(warm, Y.shape).reshape(outputs.shape)
    solutions = []
    for k, (y, first) in enumerate(zip(outputs.T, starts.T)):
        record = Recorder(callback, **({"output": k} if Y.ndim == 2 else {}))
        rough = newton(values.quick, values.direction, y, lam, loss, budget, first, record)
        solutions.append(
            newton(
                K.matvec,
                values.direction,
                y,
                lam,
                loss,
                budget,
                rough.coef,
                record,
                rough.n_iter,
            )
        )
    return stack(solutions) if Y.ndim == 2 else solutions[0]


class _Values:
    """Fast products with K, and Newton's direction using them."""

    def __init__(self, K: KernelMatrix, lam: float, budget: Filled, seed: int) -> None:
        self.K, self.lam, self.budget = K, lam, budget
        self.F = pivots(K, budget.memory_mb / 2, seed, _RANK)
        held = 4 * K.shape[0] ** 2 / 2**20 <= budget.memory_mb / 2
        self.array = K.to_array(np.float32) if held else None

    def quick(self, v: np.ndarray) -> np.ndarray:
        """K v with float32 values."""
        if self.array is None:
            return self.K.matvec(v, np.float32)
        return matmul(self.array, v.astype(np.float32)).astype(np.float64)

    def direction(
        self, v: np.ndarray, Kv: np.ndarray, curvature: np.ndarray, accuracy: float
    ) -> np.ndarray:
        roots = np.sqrt(curvature)
        q = -v / self.lam
        chosen = roots > FLAT * max(roots.max(), FLAT)
        s = np.where(chosen, roots, 0.0)
        # From q = 0 on the selected rows, where the residual is v itself; from t = 0 it would be
        # larger by about K / lam.
        first = np.divide(v, self.lam * roots, out=np.zeros_like(v), where=chosen)
        residual = -self.lam * first
        if not chosen.all():
            residual -= s * self.quick(np.where(chosen, 0.0, -v)) / self.lam
        bound = (accuracy * np.linalg.norm(v)) ** 2
        t, _, _ = conjugate_gradients(
            lambda p: self.lam * p + s * self.quick(s * p),
            residual,
            PivotedFactor(self.F, self.lam, s),
            lambda t, r: float(np.sum((s * r) ** 2)) <= bound,
            _STEPS,
            self.budget.deadline,
        )
        return np.where(chosen, s * t, q)
