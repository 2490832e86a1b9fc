"""Parallel randomised coordinate descent over single columns (Wu et al. 2016, Algorithm 2), for its
Figure 6: bins or Fourier features.

Every thread takes columns of a random order and steps w_j <- S(w_j - g_j / M_j, lam / M_j), M_j =
beta ||z_j||^2 with beta the loss's curvature bound (eq. 26 with erratum Wu 5 of docs/papers.md).
Threads read and write the predictions without locks, as in the paper; a lost addition persists
until the end of the pass, when the predictions are recomputed. Simultaneous steps may together be
too long if columns are similar: a pass that did not decrease the objective is undone and repeated
by one thread. With one thread the result depends only on the seed, with several its last digits
vary.
"""

from __future__ import annotations

import time

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.losses import Loss
from rfx.operators.matrix import Matrix
from rfx.solvers.base import Budget, Callback, Certificate, Recorder, Solution, check_problem, start
from rfx.solvers.l1.dual import best_dual

_KINDS = {"squared": 0, "squared_hinge": 1, "logistic": 2}
# Passes between certificates, which cost about as much as a pass.
_CERTIFIED = 10
# Relative increase of the objective attributed to rounding.
_ROUNDING = 1e-12


def solve_prcd(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: Loss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
    *,
    seed: int = 0,
) -> Solution:
    """The minimiser (D,) of lam ||w||_1 + sum L(z.w, y) for one output.

    Z: (N, D) features; they are stored by columns: for several calls pass the result of
    `Z.by_columns`. y: (N,) targets, or labels in {-1, +1}. loss:
    Squared, SquaredHinge or Logistic. budget: tol is the relative duality gap (1e-4), max_iter are
    passes over all columns (1000; n_iter counts them). warm: (D,) starting point. seed: of the
    order of the columns.

    The trace has an entry per pass: `iteration`, `objective`, `nnz`, `pass_seconds` (of the passes,
    without certificates), `alone` (passes repeated by one thread) and, at every tenth pass and the
    last, `gap`. Raises UsageError like `check_problem`.
    """
    y, record = check_problem(Z, y, lam, loss, tuple(_KINDS)), Recorder(callback)
    budget, Z = budget.filled(tol=1e-4, max_iter=1000), Z.by_columns()
    values, rows, ends = Z.column_lists()
    w, bounds, kind = (
        start(warm, Z.shape[1:]),
        loss.curvature * Z.squares(),
        _KINDS[loss.name],
    )
    random = np.random.Generator(np.random.Philox(seed))

    def evaluate(w: np.ndarray) -> tuple[np.ndarray, float]:
        f = Z.matvec(w)
        return f, lam * float(np.abs(w).sum()) + float(loss.value(f, y).sum())

    def steps(order: np.ndarray, w: np.ndarray, f: np.ndarray, threads: int | None) -> None:
        """One step for each column of `order` by all available threads, or `threads`; w and f are
        changed.
        """
        if rows is None or ends is None:
            dense = lambda a, b: _dense_pass(order[a:b], values, w, f, y, bounds, lam, kind)
            parallel.for_ranges(dense, len(order), 1, threads)
        else:
            listed = lambda a, b: _listed_pass(
                order[a:b], rows, ends, w, f, y, bounds, lam, values, kind
            )
            parallel.for_ranges(listed, len(order), 64, threads)

    f, objective = evaluate(w)
    n_iter, alone, seconds, bound = 0, 0, 0.0, -np.inf
    while True:
        entry = {
            "iteration": n_iter,
            "objective": objective,
            "nnz": int(np.count_nonzero(w)),
            "pass_seconds": seconds,
            "alone": alone,
        }
        stopped = budget.spent(n_iter)
        if stopped or n_iter % _CERTIFIED == 0:
            u = loss.derivative(f, y)
            bound = max(bound, best_dual(loss, u, y, lam, Z.rmatvec(u))[0])
            entry["gap"] = gap = max(0.0, objective - bound)
        record(lambda now=w: now, **entry)
        if "gap" in entry and (stopped or gap <= budget.tol * objective):
            status = budget.status(gap <= budget.tol * objective, n_iter)
            return Solution(w, objective, Certificate("gap", gap), n_iter, status, record.trace)
        begun = time.perf_counter()
        order = random.permutation(len(w))
        for threads in (None, 1):
            after, f_after = w.copy(), f.copy()
            steps(order, after, f_after, threads)
            f_after, value = evaluate(after)
            if value <= objective * (1 + _ROUNDING):
                break
            alone += threads is None
        w, f, objective = after, f_after, value
        seconds += time.perf_counter() - begun
        n_iter += 1


@njit(cache=True, nogil=True)
def _step(w: float, g: float, bound: float, lam: float) -> float:
    """The change of a weight whose loss has slope g and curvature of at most `bound`."""
    if bound <= 0.0:
        return -w
    free = w - g / bound
    return np.sign(free) * max(0.0, abs(free) - lam / bound) - w


@njit(cache=True, nogil=True)
def _slope(f: float, y: float, kind: int) -> float:
    """The derivative of the loss; kind: 0 squared, 1 squared hinge, 2 logistic."""
    if kind == 0:
        return f - y
    if kind == 1:
        return -2.0 * y * max(0.0, 1.0 - y * f)
    return -y / (1.0 + np.exp(y * f))


@njit(cache=True, nogil=True)
def _listed_pass(
    order: np.ndarray,
    rows: np.ndarray,
    ends: np.ndarray,
    w: np.ndarray,
    f: np.ndarray,
    y: np.ndarray,
    bounds: np.ndarray,
    lam: float,
    value: float,
    kind: int,
) -> None:
    """One coordinate step for each column of `order`, which is `value` in its rows."""
    for j in order:
        own, g = rows[ends[j] : ends[j + 1]], 0.0
        for i in own:
            g += _slope(f[i], y[i], kind)
        step = _step(w[j], value * g, bounds[j], lam)
        if step != 0.0:
            w[j] += step
            for i in own:
                f[i] += value * step


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _dense_pass(
    order: np.ndarray,
    columns: np.ndarray,
    w: np.ndarray,
    f: np.ndarray,
    y: np.ndarray,
    bounds: np.ndarray,
    lam: float,
    kind: int,
) -> None:
    """The same for dense columns (D, N)."""
    for j in order:
        z, g = columns[j], 0.0
        for i in range(len(z)):
            g += z[i] * _slope(f[i], y[i], kind)
        step = _step(w[j], g, bounds[j], lam)
        if step != 0.0:
            w[j] += step
            for i in range(len(z)):
                f[i] += step * z[i]
