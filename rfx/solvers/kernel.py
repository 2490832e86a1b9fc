"""Exact kernel machines with a smooth loss: ridge regression, Newton's method, and the choice of a
route.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rfx.counters import random_rows
from rfx.device import CholeskyFactor, Values
from rfx.errors import UsageError
from rfx.losses import SmoothLoss, Squared
from rfx.operators.blocks import default_memory_mb
from rfx.operators.factors import PivotedFactor, pivoted_cholesky
from rfx.operators.kernel import (
    MOST_ROWS,
    KernelMatrix,
    group_sums,
    inverse_of_sums,
    moved_mean,
)
from rfx.operators.linear_algebra import (
    Factor,
    conjugate_gradients,
    dots,
    factor_in_place,
    factored,
)
from rfx.parallel import matmul
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Recorder,
    Solution,
    checked,
    for_output,
    stack,
)
from rfx.solvers.l2 import newton

# ----------------------------------------------------------------------
# Kernel ridge regression: (K + lam I) alpha = Y, by Cholesky if K fits into memory, else by
# conjugate gradients.
#
# The objective is lam/2 ||f||_H^2 + 1/2 sum_n (f(x_n) - y_n)^2 with f = sum_i alpha_i k(x_i, .),
# per output (Yen et al. 2014, eq. 1, squared loss). Its dual at the same alpha is lam alpha'y -
# lam^2/2 ||alpha||^2 - lam/2 alpha'K alpha, so the duality gap is exactly 1/2 ||r||^2 with the
# residual r = y - K alpha - lam alpha. It is computed with new kernel values in float64, not with
# the factor or the solver's values.

# The maximum and minimum rank of a preconditioner.
_MOST, _LEAST = 2000, 128
# The remaining diagonal, relative to the largest entry, that is below float32 rounding.
_FLOOR = 1e-5


def solve_kernel_ridge(
    K: KernelMatrix,
    Y: np.ndarray,
    lam: float,
    budget: Budget = Budget(),
    callback: Callback | None = None,
    *,
    seed: int = 0,
    predicts_left_out: bool = False,
    centred: bool = False,
    repeats: np.ndarray | None = None,
) -> Solution:
    """Kernel ridge regression over the rows of K (N, N).

    Y: (N,) or (N, k) targets. lam: un-normalised, in (0, inf). budget: tol is the largest gap
    divided by the objective, of each output (1e-8); max_iter are passes over K if K is not stored
    (500); memory_mb is for K (one copy, in float32 with refinement if lam is large enough for it,
    else float64; if only float32 fits, as a preconditioner) or, if neither fits, for a
    preconditioner of low rank. seed: of the preconditioner.
    predicts_left_out: whether to predict rows by the machine without each of them, if there is a
    factor of K + lam I. centred: whether the mean of the targets was subtracted, which that machine
    repeats. repeats: (N,) numbers that equal rows share, which are left out together; None if there
    are none.

    Returns a Solution: coef alpha of Y's shape, objective, gap (above), n_iter passes over K in
    addition to the one that fills it. An entry of the trace is a pass and its `path`; within
    conjugate gradients objective and gap are those of their recursion, verified by the next pass in
    float64.
    """
    Y = checked(Y, Squared)
    system = _System(
        K,
        Y.reshape(len(Y), -1),
        lam,
        budget.filled(tol=1e-8, max_iter=500, memory_mb=default_memory_mb()),
        seed,
    )
    solution = system.refine(np.zeros_like(system.Y), Recorder(callback), Y.shape)
    if predicts_left_out and system.exact is not None and len(Y) > 1:
        alpha = solution.coef.reshape(system.Y.shape)
        solution.left_out = system.left_out(alpha, centred, repeats)
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
        solution: tuple[np.ndarray, float, float] | None = None

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
                best, solution = gap, (alpha.reshape(shape), objective, gap)
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

    def left_out(self, alpha: np.ndarray, centred: bool, repeats: np.ndarray | None) -> np.ndarray:
        """(N, k) predictions of rows by the machine without each of them and its copies, nan for
        other rows: see `rfx.operators.kernel`.
        """
        assert self.exact is not None
        n, rows = len(alpha), random_rows(len(alpha), min(len(alpha), MOST_ROWS))
        roots = np.ones((n, 1)) if self.K.factors is None else self.K.factors[:, None]
        weights, targets = np.square(roots), self.Y / roots
        # equal rows act as one, with the sum of their coefficients and their mean target
        sums = group_sums(roots * alpha, repeats)
        means = group_sums(weights * targets, repeats) / group_sums(weights, repeats)
        if centred:
            moved = moved_mean(targets, weights[:, 0], repeats)
            sums = sums + moved * group_sums(roots * self.solve(roots), repeats)
        scale = inverse_of_sums(self.exact, roots[:, 0], rows, repeats)
        out = np.full(alpha.shape, np.nan)
        out[rows] = means[rows] - sums[rows] / scale[:, None]
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
    return None if factor_in_place(upper.T) else Factor(upper.T)


# ----------------------------------------------------------------------
# Exact kernel machines with a smooth loss, mainly logistic: Newton's method over the rows, f =
# sum_i a_i k(x_i, .).
#
# min lam/2 ||f||_H^2 + sum_n L(f(x_n), y_n), un-normalised and without bias, as in equation 1 of
# Yen et al. (2014) for any loss L. With f = K a and v = lam a + L'(f), the dual point u = L'(f) has
# the gap v'K v / (2 lam); u = -lam a, made feasible, has another, and the smaller one is used.
# Newton's direction q solves lam q + D K q = -v with the curvatures D = S^2 of the loss: q = -v /
# lam + S t gives (lam + S K S) t = S K v / lam, symmetric and positive definite.

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
    callback: Callback | None = None,
) -> Solution:
    """The coefficients a (N,) or (N, k), by Newton's method with preconditioned conjugate
    gradients.

    K: (N, N), stored in float32 if it needs at most half of the budget's memory, else recomputed
    for every product. Y: (N,) or (N, k) labels in {-1, +1}; outputs are solved one by one. loss:
    one of rfx.losses with a second derivative. budget: tol is the relative gap (1e-4), max_iter are
    Newton steps per output (100).

    Kernel values are float32 until that is solved; then decision values are recomputed in float64,
    and the solver continues in float64 if the gap requires it. The final gap is always that of the
    float64 kernel. Raises UsageError like `checked`.
    """
    Y = checked(Y, loss)
    budget = budget.filled(tol=1e-4, max_iter=100, memory_mb=default_memory_mb())
    values = _Values(K, lam, budget)
    outputs = Y.reshape(len(Y), -1)
    solutions = []
    for k, y in enumerate(outputs.T):
        record = Recorder(for_output(callback, k) if Y.ndim == 2 else callback)
        nothing = np.zeros_like(y)
        rough = newton(values.quick, values.direction, y, lam, loss, budget, nothing, record)
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

    def __init__(self, K: KernelMatrix, lam: float, budget: Filled) -> None:
        self.K, self.lam, self.budget = K, lam, budget
        self.F = pivots(K, budget.memory_mb / 2, 0, _RANK)
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


# ----------------------------------------------------------------------
# An exact kernel problem whose matrix K is in memory: ridge regression by Cholesky, squared hinge
# and logistic loss by Newton's method.
#
# The problem and its certificates are those of `rfx.solvers.kernel`; systems are solved by factors
# in float64.


def solve_kernel_dense(
    K: Any,
    Y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
) -> Solution:
    """The coefficients a (n, k) for each column of Y.

    K: (n, n) float64, symmetric positive semidefinite; for squared loss also on a device. Y: (n, k)
    targets, or labels in {-1, +1}. loss: squared, squared_hinge or logistic of rfx.losses. budget:
    tol is the gap divided by the objective (1e-6), max_iter are Newton steps per column (100;
    n_iter counts them, a ridge solution is one). Raises UsageError like `checked`, and for a lam
    below the rounding of K.
    """
    Y = checked(Y, loss)
    budget = budget.filled(tol=1e-6, max_iter=100)
    if loss.name == "squared":
        return _ridge(K, Y, lam, budget, Recorder())

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
                np.zeros_like(y),
                Recorder(),
            )
            for y in Y.T
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
    return Solution(A, objective, gap, Y.shape[1], status, record.trace)


def _factor(K: np.ndarray | Values, diagonal: float) -> Factor | CholeskyFactor:
    """The Cholesky factor of K + diagonal; K is not changed."""
    try:
        return factored(K, diagonal, np.float64)
    except np.linalg.LinAlgError:
        raise UsageError(
            f"lambda is {np.min(diagonal):g}, below the rounding error of the kernel matrix; use a"
            " larger one"
        ) from None
