"""L2 regularisation in the span of the rows: min_w lam/2 ||w||^2 + sum_n L(z_n.w, y_n) for matrices
with many more columns than rows.

The weights are w = Z'a with one a per row, so everything is a vector over rows and only products
with Z Z' are needed. This suits random binning features (Wu et al. 2016, eq. 8), which compute and
use the sums of a grid's bins while they are in cache. Z Z' has ones on its diagonal there, so for
ridge regression a diagonal preconditioner would change nothing. The duality gap is that of u = -lam
a, where Z'u = -lam w leaves only Fenchel's sum L(f) + L*(u) - u f (for ridge regression, half the
squared residual), or that of u = L'(f), where only ||lam w + Z'u||^2 / (2 lam) is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfx.losses import Loss, SmoothLoss, Squared
from rfx.operators.cg import conjugate_gradients, dots, ratio
from rfx.operators.matrix import Matrix
from rfx.solvers.base import (
    Budget,
    Callback,
    Certificate,
    Filled,
    Recorder,
    Solution,
    check_problem,
    start_rows,
)
from rfx.solvers.line_search import line_minimum

# (v, K v, curvatures, accuracy) -> Newton's direction, see `newton`
Direction: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]
_RESTART = 500
# Rows with curvature are copied if they are a smaller fraction than this: it costs about one
# product with Z Z'.
_COPIED = 0.7
# Rows with a smaller fraction of the largest curvature count as flat.
_FLAT = 1e-12
_STEPS = 1000
# A step that differs from 1 by less than this is treated as a full step.
_WHOLE = 1e-12


@dataclass(kw_only=True)
class DualSolution(Solution):
    """A Solution and its `dual` (N,) or (N, k): coef is Z'dual. It is also a starting point for
    another matrix of the same rows.
    """

    dual: np.ndarray | None = None


def solve_dual_ridge(
    Z: Matrix,
    Y: np.ndarray,
    lam: float,
    loss: Loss = Squared,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
) -> DualSolution:
    """lam/2 ||W||^2 + 1/2 ||Z W - Y||^2 by conjugate gradients, all outputs at once.

    The steps are those of conjugate gradients on (Z'Z + lam) W = Z'Y, as in the paper, with W =
    Z'A: the inner products of directions Z'P are P'(Z Z')P, and one product with Z Z' per step is
    enough.

    Z: (N, D) features. Y: (N,) or (N, k). loss: only Squared. budget: tol is the relative duality
    gap of each output (1e-3), max_iter are conjugate gradient steps (1000; n_iter counts them).
    warm: a dual to start from. Raises UsageError like `check_problem`.
    """
    Y, record = check_problem(Z, Y, lam, loss, ("squared",)), Recorder(callback)
    budget, A, n_iter = budget.filled(tol=1e-3, max_iter=1000), start_rows(warm, Y), 0
    while True:
        F = Z.outer(A) if A.any() else np.zeros_like(Y)
        R = Y - F - lam * A
        P: np.ndarray | float = 0.0
        KP: np.ndarray | float = 0.0
        before: np.ndarray | float = np.inf
        first = n_iter
        while True:
            KR = Z.outer(R)
            squares = dots(R, KR)
            objectives = 0.5 * lam * dots(A, F) + 0.5 * dots(F - Y, F - Y)
            gaps = np.minimum(np.maximum(squares, 0.0) / (2 * lam), 0.5 * dots(R, R))
            objective, gap = float(objectives.sum()), float(gaps.sum())
            record(lambda now=A: Z.rmatvec(now), iteration=n_iter, objective=objective, gap=gap)
            solved, stopped = bool(np.all(gaps <= budget.tol * objectives)), budget.spent(n_iter)
            if solved or stopped or n_iter - first >= _RESTART:
                break
            beta = ratio(squares, before)
            P, KP, before = R + beta * P, KR + beta * KP, squares
            image = KP + lam * P
            step = ratio(squares, dots(KP, image))
            A = A + step * P
            F = F + step * KP
            R = R - step * image
            n_iter += 1
        # values updated in every step are recomputed before they are used
        if n_iter == first or stopped:
            break
    certificate, status = Certificate("gap", gap), budget.status(solved, n_iter)
    return DualSolution(Z.rmatvec(A), objective, certificate, n_iter, status, record.trace, dual=A)


def solve_dual_l2(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
) -> DualSolution:
    """One output with squared hinge, logistic or squared loss, by Newton's method with conjugate
    gradients.

    Z: (N, D) features. y: (N,) labels in {-1, +1}. budget: tol is the relative duality gap (1e-3),
    max_iter are Newton steps (100; n_iter counts them). warm: (N,) dual to start from. With v = lam
    a + L'(Z w) and curvatures d, Newton's direction Z'q solves lam q + d Z Z'q = -v; q = -v/lam +
    sqrt(d) t turns it into a positive definite system over only the rows with d > 0, with lam + d
    on its diagonal, its preconditioner. Raises UsageError like `check_problem`.
    """
    y, budget = check_problem(Z, y, lam, loss), budget.filled(tol=1e-3, max_iter=100)
    record = Recorder(
        None if callback is None else lambda entry, dual: callback(entry, lambda: Z.rmatvec(dual()))
    )

    def direction(
        v: np.ndarray, Kv: np.ndarray, curvature: np.ndarray, accuracy: float
    ) -> np.ndarray:
        return _direction(Z, v, Kv, curvature, lam, accuracy, budget.deadline)

    found = newton(
        Z.outer, direction, y, lam, loss, budget, start_rows(warm, y), record, patience=np.inf
    )
    return DualSolution(**vars(found) | {"coef": Z.rmatvec(found.coef)}, dual=found.coef)


def newton(
    times: Callable[[np.ndarray], np.ndarray],
    direction: Direction,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Filled,
    begun: np.ndarray,
    record: Recorder,
    n_iter: int = 0,
    patience: float = 3,
) -> Solution:
    """Newton's method for one output from the dual `begun` (N,); coef is the final dual.

    times(v): K v. direction(v, Kv, curvature, accuracy): q with ||lam q + D K q + v|| <= accuracy
    ||v||. n_iter: earlier steps, included in the count. patience: steps without a smaller gap after
    which it ends because of rounding.
    """
    a = begun.copy()
    f = times(a) if a.any() else np.zeros_like(y)
    best, waited = np.inf, 0
    while True:
        u, curvature = loss.derivative(f, y), loss.second_derivative(f, y)
        v = lam * a + u
        Kv = times(v)
        objective = 0.5 * lam * float(a @ f) + float(loss.value(f, y).sum())
        gap = min(max(0.0, float(v @ Kv)) / (2 * lam), row_dual_gap(times, a, f, y, lam, loss))
        record(lambda now=a: now, iteration=n_iter, objective=objective, gap=gap)
        converged = gap <= budget.tol * objective
        best, waited = min(best, gap), 0 if gap < best else waited + 1
        if converged or waited == patience or budget.spent(n_iter):
            return Solution(
                a,
                objective,
                Certificate("gap", gap),
                n_iter,
                budget.status(converged, n_iter),
                record.trace,
            )
        q = direction(v, Kv, curvature, float(min(0.1, np.sqrt(gap / objective))))
        # where the loss is flat a full step ends at exactly zero, which a model can drop, instead
        # of rounding noise
        q = np.where((u == 0) & (curvature == 0), -a, q)
        Kq = times(q)
        t = line_minimum(loss, f, Kq, y, lam * float(a @ Kq), lam * float(q @ Kq))
        t = 1.0 if abs(t - 1.0) <= _WHOLE else t
        a, f = a + t * q, f + t * Kq
        n_iter += 1


def row_dual_gap(
    kernel: Callable[[np.ndarray], np.ndarray],
    a: np.ndarray,
    f: np.ndarray,
    y: np.ndarray,
    lam: float,
    loss: Loss,
) -> float:
    """The gap of the dual point -lam a, made feasible, where f = kernel(a) (n,) is the decision of
    coefficients a (n,) over rows.

    kernel: v -> K v for the kernel matrix of the rows. y: (n,).
    """
    u = loss.clip_dual(-lam * a, y)
    left = lam * a + u
    fenchel = float(np.sum(loss.value(f, y) + loss.conjugate(u, y) - u * f))
    return max(0.0, fenchel) + (float(left @ kernel(left)) / (2 * lam) if left.any() else 0.0)


def _direction(
    Z: Matrix,
    v: np.ndarray,
    Kv: np.ndarray,
    curvature: np.ndarray,
    lam: float,
    accuracy: float,
    deadline: float | None,
) -> np.ndarray:
    """q with ||lam q + d Z Z'q + v|| <= accuracy ||v||."""
    q = -v / lam
    chosen = np.flatnonzero(curvature > _FLAT * max(curvature.max(), _FLAT))
    if len(chosen) == 0:
        return q
    part = Z
    if len(chosen) < _COPIED * len(v):
        part = Z.rows(chosen)
    roots = np.sqrt(curvature[chosen])
    diagonal = lam + roots**2

    def product(p: np.ndarray) -> np.ndarray:
        if part is not Z:
            return lam * p + roots * part.outer(roots * p)
        full = np.zeros_like(v)
        full[chosen] = roots * p
        return lam * p + roots * Z.outer(full)[chosen]

    # starting from q = 0 on the selected rows: with q = -v/lam there, the residual would be larger
    # by one over lam
    start = v[chosen] / (lam * roots)
    residual = roots * Kv[chosen] / lam - product(start)
    bound = (accuracy * np.linalg.norm(v)) ** 2
    t, _, _ = conjugate_gradients(
        product,
        residual,
        lambda r: r / diagonal,
        lambda t, r: float(np.sum((roots * r) ** 2)) <= bound,
        _STEPS,
        deadline,
    )
    q[chosen] = roots * t
    return q
