"""Ridge regression on random features, with a certificate; and many lambdas at once without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rfx.losses import Squared
from rfx.operators.accelerated import DeviceFactor, DeviceMatrix
from rfx.operators.blocks import default_memory_mb
from rfx.operators.factors import ColumnFactor, Factor, RowFactor, choose_factor, sampled_factor
from rfx.operators.linear_algebra import conjugate_gradients, dots
from rfx.operators.mapped import hold_part
from rfx.operators.matrix import Matrix
from rfx.parallel import Late, until
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Progress,
    Recorder,
    Solution,
    checked,
)

# ----------------------------------------------------------------------
# Ridge regression: min_W lam/2 ||W||^2 + 1/2 ||Z W - Y||^2 (Yen et al. 2014, equation 5 with
# squared loss).
#
# Conjugate gradients on the features themselves, with float64 sums, preconditioned by one of two
# factors. Random features have few relevant directions at a given lambda, so a Gram matrix of some
# of the rows and a dozen products are often cheaper than the whole Gram matrix. Otherwise the
# smaller of Z'Z and Z Z' is summed into one array and factored in place, and only the rounding of
# the factor's type remains to be corrected. A grid of lambdas shares the Gram matrix and factors it
# for each. (An eigendecomposition would work for all lambdas, but costs as much as about
# twenty-five factorisations. The Krylov space of one factor's inverse would too, but takes as long
# as factors for eleven lambdas, or 1.3 times as long.)

_RESTARTS = 20
# Restarts after which it has stalled if they reduced the objective by less than this fraction of
# the tolerance.
_STALL, _MOVED = 3, 1e-2
# Expected steps with a sampled factor, and steps after which the whole Gram matrix is used instead.
_EXPECTED_STEPS, _PATIENCE = 15, 40
# Seconds per float32 multiply-add in a Gram matrix, compared with the cost of an entry of the
# matrix.
_GRAM = 1e-11


def solve_ridge(
    Z: Matrix,
    Y: np.ndarray,
    lam: float,
    budget: Budget = Budget(),
    callback: Callback | None = None,
) -> Solution:
    """The minimiser (D,) or (D, k) for one lam > 0.

    Z: the (N, D) features. Y: (N,) or (N, k) targets. budget: tol is the relative duality gap of
    each output (1e-6), max_iter are conjugate gradient steps (1000; n_iter counts them), memory_mb
    is for the factor; if the Gram matrix does not fit, it is that of some rows. Gap: with u = Z w
    - y the dual value is -1/2 ||u||^2 - u.y - ||Z'u||^2 / (2 lam), and the gap is ||lam w +
    Z'u||^2 / (2 lam).
    """
    return solve_ridge_grid(Z, Y, [lam], budget, callback)[0]


def solve_ridge_cg(
    Z: Matrix,
    Y: np.ndarray,
    lam: float,
    budget: Budget = Budget(),
    callback: Callback | None = None,
) -> Solution:
    """The same minimum by plain conjugate gradients on (Z'Z + lam) w = Z'y, as in the comparison of
    methods by Wu et al. (2016, 5.2).

    No preconditioner. budget: tol is ||Z'y - (Z'Z + lam) w|| / ||Z'y|| of each output (1e-3),
    max_iter are steps for each of them (1000); the paper's programs stop after 50. The first output
    starts at zero, every other at the weights of the previous one (docs/papers.md, Wu et al.).
    Converged states whether the residual, recomputed at the end, is within tol. The trace
    has an entry per output. The rest as in `solve_ridge`.
    """
    Y = checked(Y, Squared)
    budget = budget.filled(tol=1e-3, max_iter=1000)
    record = Recorder(callback)
    outputs = Y.reshape(len(Y), -1)
    right = Z.rmatvec(outputs)
    norms = np.linalg.norm(right, axis=0)
    W = np.zeros_like(right)
    w = np.zeros(Z.shape[1])
    n_iter = 0
    most_steps = 0

    def image(p: np.ndarray) -> np.ndarray:
        return lam * p + Z.normal(p)

    for k, norm in enumerate(norms):
        y, b = outputs[:, k], right[:, k]
        residual = b - image(w) if w.any() else b
        bound = budget.tol * norm

        def enough(x: np.ndarray, r: np.ndarray, bound: float = bound) -> bool:
            return bool(np.linalg.norm(r) <= bound)

        steps = 0
        if not enough(w, residual):
            step, residual, steps = conjugate_gradients(
                image, residual, lambda r: r, enough, budget.max_iter, budget.deadline
            )
            w = w + step
        W[:, k] = w
        n_iter += steps
        most_steps = max(most_steps, steps)
        record(
            lambda: W.reshape(-1, *Y.shape[1:]),
            output=k,
            iteration=steps,
            objective=0.5 * float(y @ y - w @ (b + residual)),
            gap=float(residual @ residual) / (2 * lam),
            residual=float(np.linalg.norm(residual) / norm) if norm > 0 else 0.0,
        )
    _, values, G = Z.loss_pass(W, Squared, outputs)
    G += lam * W
    objectives = 0.5 * lam * dots(W, W) + values
    converged = bool(np.all(np.linalg.norm(G, axis=0) <= 1.01 * budget.tol * norms))
    gap = float(dots(G, G).sum() / (2 * lam))
    status = budget.status(converged, most_steps)
    coef = W.reshape(-1, *Y.shape[1:])
    return Solution(coef, float(objectives.sum()), gap, n_iter, status, record.trace)


def solve_ridge_grid(
    Z: Matrix,
    Y: np.ndarray,
    lams: Sequence[float],
    budget: Budget = Budget(),
    callback: Callback | None = None,
) -> list[Solution]:
    """A Solution for each of `lams`, from one Gram matrix; arguments as in `solve_ridge`.

    For several lambdas on very many rows, a small factor of some rows for each may be cheaper.
    """
    Y = checked(Y, Squared)
    budget = budget.filled(tol=1e-6, max_iter=1000, memory_mb=default_memory_mb())
    Z = hold_part(Z, budget.memory_mb / 2)
    room = budget.memory_mb / 2 if Z.computed else budget.memory_mb
    factors = _Factors(Z, Y, lams, room)
    return [_solve(Z, Y, lam, factors, budget, Recorder(callback)) for lam in lams]


def _sampled_rows(n_rows: int) -> int:
    return max(1024, int(np.sqrt(500.0 * n_rows)))


def _sampling_pays(Z: Matrix, Y: np.ndarray, lams: int) -> bool:
    """Whether a sampled factor and its expected steps cost less than half of the Gram matrix."""
    n_rows, n_columns = Z.shape
    rows = _sampled_rows(n_rows)
    small, large = sorted(Z.shape)
    if rows >= n_rows:
        return False
    n_outputs = Y.size // n_rows
    whole = large * small**2 * _GRAM + small**3 / 3 * _GRAM
    sampled = rows**2 * n_columns if rows < n_columns else 8 * n_columns**3
    steps = lams * _EXPECTED_STEPS * n_rows * n_columns * n_outputs * Z.cost
    return 2 * (sampled * _GRAM + steps) < whole


class _Factors:
    """The preconditioners of one problem, each computed on first use."""

    def __init__(self, Z: Matrix, Y: np.ndarray, lams: Sequence[float], limit: float) -> None:
        self.Z = Z
        self.Y = Y
        self.lams = list(lams)
        self.limit = limit
        on_device = isinstance(Z, DeviceMatrix)
        self.sampling = not on_device and _sampling_pays(Z, Y, len(self.lams))
        self._sampled: Factor | None = None
        self._whole: Factor | None = None
        self._prepared: float | None = None
        self._right: np.ndarray | None = None

    def sampled(self, lam: float) -> Factor:
        if self._sampled is None:
            rows = _sampled_rows(self.Z.shape[0])
            self._sampled = sampled_factor(self.Z, None, lam, rows, self.limit / 2)
        return self._sampled.prepare(lam)

    def whole(self, lam: float) -> Factor:
        """The factor of the smaller Gram matrix, of some rows if it does not fit."""
        self._sampled = None
        self.sampling = False
        if self._whole is None:
            self._whole = choose_factor(self.Z, self.limit, min(self.lams))
        if self._prepared != lam:
            self._whole.prepare(lam)
            self._prepared = lam
        return self._whole

    def start(self, lam: float) -> np.ndarray:
        """(D,) or (D, k) weights close to the solution, by the whole factor."""
        factor = self.whole(lam)
        if isinstance(factor, RowFactor) and factor.Z is self.Z:
            return factor.weights(self.Y)
        if self._right is None:
            self._right = self.Z.rmatvec(self.Y)
        return factor(self._right)


@dataclass(frozen=True)
class _Point:
    """Weights, and what is known of them."""

    weights: np.ndarray
    objective: float
    gap: float
    n_iter: int


def _solve(
    Z: Matrix,
    Y: np.ndarray,
    lam: float,
    factors: _Factors,
    budget: Filled,
    record: Recorder,
) -> Solution:
    # the value at zero, known without the features; its dual value is zero
    value = 0.5 * float(np.sum(Y * Y))
    reached = [_Point(np.zeros((Z.shape[1], *Y.shape[1:])), value, value, 0)]
    try:
        with until(budget.deadline):
            status = _iterate(Z, Y, lam, factors, budget, record, reached)
    except Late:
        status = "timeout"
    last = reached[-1]
    return Solution(last.weights, last.objective, last.gap, last.n_iter, status, record.trace)


def _iterate(
    Z: Matrix,
    Y: np.ndarray,
    lam: float,
    factors: _Factors,
    budget: Filled,
    record: Recorder,
    reached: list[_Point],
) -> str:
    """Conjugate gradients, restarted until the gap is small; returns the status.

    reached: the last point, replaced at each step; Late may be raised.
    """
    factor: Factor | None = None
    n_iter = 0
    restarts = 0
    progress = Progress(_STALL, _MOVED * budget.tol)

    def image(P: np.ndarray) -> np.ndarray:
        return lam * P + Z.normal(P)

    W = reached[0].weights if factors.sampling else factors.start(lam)
    while True:
        _, values, G = Z.loss_pass(W, Squared, Y)
        G += lam * W
        objectives = 0.5 * lam * dots(W, W) + values
        gaps = dots(G, G) / (2 * lam)
        objective = float(objectives.sum())
        gap = float(gaps.sum())
        converged = bool(np.all(gaps <= budget.tol * objectives))
        reached[:] = [_Point(W, objective, gap, n_iter)]
        record(lambda now=W: now, iteration=n_iter, objective=objective, gap=gap)
        if converged or progress(objective) or restarts == _RESTARTS or budget.spent(n_iter):
            return budget.status(converged, n_iter, progress.stalled)

        def enough(
            X: np.ndarray, R: np.ndarray, objectives: np.ndarray = objectives, G: np.ndarray = G
        ) -> bool:
            # the objective at W + X is known from the residuals; half of the tolerance is for
            # rounding
            now = objectives - 0.5 * dots(X, R - G)
            return bool(np.all(dots(R, R) <= lam * budget.tol * now))

        if factor is None:
            factor = factors.sampled(lam) if factors.sampling else factors.whole(lam)
        most = budget.max_iter - n_iter
        if factors.sampling:
            most = min(most, _PATIENCE)
        step, left, steps = conjugate_gradients(image, -G, factor, enough, most, budget.deadline)
        W = W + step
        n_iter = n_iter + steps
        restarts = restarts + 1
        # up to rounding, the residuals give the objective and the gap, in case there is no time for
        # the pass that computes them
        now = objectives - 0.5 * dots(step, left - G)
        gap = float(dots(left, left).sum() / (2 * lam))
        reached[:] = [_Point(W, float(now.sum()), gap, n_iter)]
        if factors.sampling and steps >= _PATIENCE:
            factor, factors.sampling = None, False


# ----------------------------------------------------------------------
# Ridge regression for many lambdas by the normal equations, (Z'Z + lam) W = Z'Y: one Gram matrix in
# float64, one factor for each lambda.
#
# For models that only evaluate a lambda: without certificate and refinement.

# Maximum columns for which the Gram matrix and its factors are cheap.
MOST = 4096


def ridge_path(
    Z: Matrix | DeviceMatrix, Y: np.ndarray, lams: Sequence[float]
) -> Iterator[np.ndarray]:
    """For each of lams, the minimiser (D, k) of lam/2 ||W||^2 + 1/2 ||Z W - Y||^2.

    Z: the (N, D) features, D at most MOST. Y: (N, k) targets. A lam below the rounding of the Gram
    matrix is increased.
    """
    factor: Factor
    if isinstance(Z, DeviceMatrix):
        factor = DeviceFactor(Z)
    else:
        factor = ColumnFactor(Z, dtype=np.float64)
    right = Z.rmatvec(Y)
    # LAPACK refuses an empty matrix
    return (factor.prepare(lam)(right) if len(right) else right for lam in lams)
