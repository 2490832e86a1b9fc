"""Kernel ridge regression: (K + lam I) alpha = Y, by Cholesky if K fits into memory, else by
conjugate gradients.

The objective is lam/2 ||f||_H^2 + 1/2 sum_n (f(x_n) - y_n)^2 with f = sum_i alpha_i k(x_i, .), per
output (Yen et al. 2014, eq. 1, squared loss). Its dual at the same alpha is lam alpha'y - lam^2/2
||alpha||^2 - lam/2 alpha'K alpha, so the duality gap is exactly 1/2 ||r||^2 with the residual r = y
- K alpha - lam alpha. It is computed with new kernel values in float64, not with the factor or the
solver's values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rfx.device import CholeskyFactor
from rfx.errors import DataError
from rfx.losses import Loss, Squared
from rfx.operators.blocks import default_memory_mb, drawn
from rfx.operators.cg import conjugate_gradients, dots
from rfx.operators.cholesky import Factor, factor_in_place
from rfx.operators.kernel import KernelMatrix
from rfx.operators.left_out import MOST_ROWS, inverse_diagonal
from rfx.operators.pivoted import PivotedFactor, pivoted_cholesky
from rfx.solvers.base import (
    Budget,
    Callback,
    Certificate,
    Filled,
    Recorder,
    Solution,
    check_problem,
    start,
)

# The maximum and minimum rank of a preconditioner.
_MOST, _LEAST = 2000, 128
# The remaining diagonal, relative to the largest entry, that is below float32 rounding.
_FLOOR = 1e-5


def solve_kernel_ridge(
    K: KernelMatrix,
    Y: np.ndarray,
    lam: float,
    loss: Loss = Squared,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
    *,
    seed: int = 0,
    left_out: bool = False,
    centred: bool = False,
) -> Solution:
    """Kernel ridge regression over the rows of K (N, N).

    Y: (N,) or (N, k) targets. lam: un-normalised, in (0, inf). budget: tol is the largest gap
    divided by the objective, of each output (1e-8); max_iter are passes over K if K is not stored
    (500); memory_mb is for K (one copy, in float32 with refinement if lam is large enough for it,
    else float64; if only float32 fits, as a preconditioner) or, if neither fits, for a
    preconditioner of low rank. warm: alpha of Y's shape to start from. seed: of the preconditioner.
    left_out: whether to predict rows by the machine without each of them, if there is a factor of K
    + lam I. centred: whether the mean of the targets was subtracted, which that machine repeats.

    Returns a Solution: coef alpha of Y's shape, objective, gap (above), n_iter passes over K in
    addition to the one that fills it. An entry of the trace is a pass and its `path`; within
    conjugate gradients objective and gap are those of their recursion, verified by the next pass in
    float64. Raises UsageError like `check_problem`, DataError if X or Y contain values that are not
    finite.
    """
    Y = check_problem(K, Y, lam, loss, ("squared",))
    if not np.isfinite(Y).all():
        raise DataError("a target is nan or infinite; remove that row")
    system = _System(
        K,
        Y.reshape(len(Y), -1),
        lam,
        budget.filled(tol=1e-8, max_iter=500, memory_mb=default_memory_mb()),
        seed,
    )
    alpha = start(warm, Y.shape).reshape(system.Y.shape)
    solution = system.refine(alpha, Recorder(callback), Y.shape)
    if left_out and system.exact is not None and len(Y) > 1:
        solution.left_out = system.left_out(solution.coef.reshape(system.Y.shape), centred)
    return solution


class _System:
    """(K + lam I) alpha = Y for targets (N, k), and its approximate solution."""

    def __init__(
        self, K: KernelMatrix, Y: np.ndarray, lam: float, budget: Filled, seed: int
    ) -> None:
        self.K, self.Y, self.lam, self.budget, self.passes = K, Y, lam, budget, 0
        K.prepared(np.float64)
        trace = float(K.diagonal.sum())
        eps = np.finfo(np.float32).eps
        size, memory_mb = len(Y) ** 2 / 2**20, budget.memory_mb
        factor: Factor | CholeskyFactor | None = None
        # The trace bounds the largest eigenvalue: above this lam a float32 factor exists and
        # refinement converges in a few passes.
        types: list[tuple[Any, bool]] = [
            (np.float32, bool(lam > 10 * eps * trace)),
            (np.float64, True),
        ]
        if (placed := K.on_device()) is not None:
            memory_mb = placed.accelerator.room_mb()
            types = types[::-1] if placed.accelerator.double else types
        for dtype, allowed in types:
            if factor is None and allowed and size * np.dtype(dtype).itemsize <= memory_mb:
                factor, self.path = _cholesky(K, dtype, lam), f"cholesky-{np.dtype(dtype).name}"
        self.exact, self.direct = factor, factor is not None
        if factor is None and 4 * size <= memory_mb:
            # lam is too small for a float32 factor: that of a larger lam is a preconditioner, with
            # a condition number of about their ratio.
            factor, self.path = _cholesky(K, np.float32, 30 * eps * trace), "preconditioned-float32"
        self.solve: Callable[[np.ndarray], np.ndarray]
        if factor is not None:
            self.solve = factor.solve
        else:
            self.solve = PivotedFactor(pivots(K, budget.memory_mb, seed), lam, K.factors)
            self.path = "conjugate-gradients"

    def times(self, V: np.ndarray, dtype: DTypeLike) -> np.ndarray:
        """(K + lam) V, a pass."""
        self.passes += 1
        return self.K.matvec(V, dtype) + self.lam * V

    def bounds(self, alpha: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The duality gap and the objective of each output, from r = Y - K alpha - lam alpha."""
        fitted = self.Y - residual - self.lam * alpha
        return 0.5 * dots(residual, residual), 0.5 * self.lam * dots(alpha, fitted) + 0.5 * dots(
            fitted - self.Y, fitted - self.Y
        )

    def refine(self, alpha: np.ndarray, record: Recorder, shape: tuple[int, ...]) -> Solution:
        """Alternate between the residual in float64 and a correction by the factor, or by
        preconditioned conjugate gradients.
        """
        Y, budget, best = self.Y, self.budget, np.inf
        solution: tuple[np.ndarray, float, Certificate] | None = None

        def tell(alpha: np.ndarray, gaps: np.ndarray, values: np.ndarray) -> None:
            entry = {
                "iteration": self.passes,
                "objective": float(values.sum()),
                "gap": float(gaps.sum()),
                "path": self.path,
            }
            record(lambda: alpha.reshape(shape), **entry)

        while True:
            residual = Y - self.times(alpha, np.float64) if alpha.any() else Y
            gaps, values = self.bounds(alpha, residual)
            gap, objective = float(gaps.sum()), float(values.sum())
            tell(alpha, gaps, values)
            good = bool(np.all(gaps <= budget.tol * np.maximum(values, 1e-300)))
            stalled = solution is not None and not gap < best
            if not stalled:
                best, solution = gap, (alpha.reshape(shape), objective, Certificate("gap", gap))
            if good or stalled or not np.isfinite(gap) or budget.spent(self.passes):
                assert solution is not None
                return Solution(
                    *solution, self.passes, budget.status(good, self.passes), record.trace
                )
            alpha = alpha + (
                self.solve(residual)
                if self.direct
                else self._conjugate_gradients(alpha, residual, tell)
            )

    def left_out(self, alpha: np.ndarray, centred: bool) -> np.ndarray:
        """(N, k) predictions of rows by the machine without each of them, nan for other rows: see
        `rfx.operators.left_out`.
        """
        assert self.exact is not None
        n, rows = len(alpha), drawn(len(alpha), min(len(alpha), MOST_ROWS))
        roots = np.ones(n) if self.K.factors is None else self.K.factors
        residuals, targets = alpha[rows], (self.Y.T / roots).T[rows]
        if centred:
            # without row i, the mean of the targets is lower by w_i y_i / (sum of w - w_i)
            weights = np.square(roots)
            moved = (weights / (weights.sum() - weights) * self.solve(roots))[rows]
            residuals = residuals + moved[:, None] * targets
        scale = inverse_diagonal(self.exact, rows) * roots[rows]
        out = np.full(alpha.shape, np.nan)
        out[rows] = targets - residuals / scale[:, None]
        return out

    def _conjugate_gradients(
        self,
        alpha: np.ndarray,
        residual: np.ndarray,
        tell: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
    ) -> np.ndarray:
        """A correction with half of the allowed gap, or whose residual is reduced by 1e-4: float32
        values achieve no more, and the caller starts again from a residual in float64. Every pass
        is reported.
        """
        least = 1e-8 * dots(residual, residual)

        def enough(x: np.ndarray, r: np.ndarray) -> Any:
            gaps, values = self.bounds(alpha + x, r)
            tell(alpha + x, gaps, values)
            return np.all((gaps <= 0.5 * self.budget.tol * values) | (2 * gaps <= least))

        return conjugate_gradients(
            lambda P: self.times(P, np.float32),
            residual,
            self.solve,
            enough,
            self.budget.max_iter - self.passes,
            self.budget.deadline,
        )[0]


def pivots(K: KernelMatrix, limit_mb: float, seed: int, most: int = _MOST) -> np.ndarray:
    """F (N, r) in float32, in half of limit_mb and r at most `most`, with F F' close to K."""
    n_rows = K.shape[0]
    rng = np.random.default_rng(seed)
    return pivoted_cholesky(
        K.prepared(np.float32),
        int(min(n_rows, most, max(_LEAST, limit_mb * 2**20 / 2 / (4 * n_rows)))),
        lambda start, stop: rng.random((stop - start, 2)),
        np.float32,
        _FLOOR,
    )[1]


def _cholesky(
    K: KernelMatrix, dtype: type[np.floating[Any]], lam: float | np.floating[Any]
) -> Factor | CholeskyFactor | None:
    """The factor of K + lam I in the memory of K's upper triangle; None if K is not positive
    definite.
    """
    if (placed := K.on_device()) is not None:
        try:
            values = placed.values(placed.rows, dtype, K.factors)
            return values.factored(lam, copy=False)
        except np.linalg.LinAlgError:
            return None
    upper = K.upper(dtype)
    upper[np.diag_indices(len(upper))] += dtype(lam)
    # Rows of the upper triangle are columns of the lower one in Fortran order: no copy is needed.
    return None if factor_in_place(upper.T) else Factor.of(upper.T)
