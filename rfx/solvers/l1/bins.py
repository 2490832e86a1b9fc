"""L1 problems over random bins, and parallel coordinate descent as in Wu et al. (2016)."""

from __future__ import annotations

import time
from typing import cast

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.losses import Loss, SmoothLoss
from rfx.operators.binned import BinnedMatrix
from rfx.operators.matrix import DenseColumns, Matrix
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Recorder,
    Solution,
    checked,
    soft_threshold,
    start,
)
from rfx.solvers.l1.newton import Descent, best_dual, filled, l1_certificate, largest_working_set

# ----------------------------------------------------------------------
# L1 regularisation over random binning features: min_w lam ||w||_1 + sum_n L(z_n.w, y_n) (Wu et al.
# 2016, section 4.2).
#
# Nearly all bins end with weight zero, so proximal Newton steps on a working set of bins
# (`rfx.solvers.l1.newton`) are suitable, as long as it is small enough for its Gram matrix: how
# often two bins share a row (`rfx.operators.binned`). Small lam activates many bins before most are
# dropped. Then the quadratic model of the loss is minimised grid by grid: the bins of a grid share
# no rows, so coordinate descent over them separates, and the exact update of a whole grid is one
# sum over rows by bin, a soft threshold per bin and one look-up per row. It needs no line search,
# and uses only the rows with curvature. Extrapolation (Anderson acceleration, Bertrand and Massias
# 2021) does not help: with it, ijcnn1, cod-rna and letter took 0.98 to 1.16 times as long. The
# certificate is the duality gap of u = s L'(Z w) with the largest s <= 1 that makes
# ||Z'u||_inf <= lam.

# Maximum epochs of one Newton step.
_EPOCHS = 200
# Rows with curvature are copied if they are a smaller fraction than this.
_COPIED = 0.8
# Maximum bins in the first working sets; larger sets, mostly dropped later, use updates by grids.
_MANY = 4000
# The active bins have settled when fewer than this fraction of them changes in a step.
_SETTLED = 0.1


def solve_rb_l1(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
    most_columns: int = _MANY,
) -> Solution:
    """The minimiser (D,) for one output.

    Z: Matrix (N, D). y: (N,) targets, or labels in {-1, +1}. loss: Squared, SquaredHinge or
    Logistic. budget: tol is the relative duality gap (1e-4), max_iter are Newton steps (200; n_iter
    counts them), memory_mb is for the Gram matrix of the working set and its factors (2048), in
    addition to Z. warm: (D,) starting point. most_columns: of the working set of Newton steps.
    Raises UsageError like `checked`.
    """
    y = checked(y, loss)
    limits = filled(budget)
    record = Recorder(callback)
    largest = largest_working_set(limits.memory_mb)
    at_most = min(most_columns, largest)
    by_grids = False
    w = start(warm, Z.shape[1:])
    n_iter = 0
    bound = -np.inf
    while True:
        if by_grids:
            solution = _by_grids(Z, y, lam, loss, limits, w, record, n_iter, bound, largest)
        else:
            solution = Descent(Z, y, lam, loss, limits, w, record, n_iter, bound, at_most).solve()
        assert solution.gap is not None  # every solution here has a certificate
        w = solution.coef
        n_iter = solution.n_iter
        bound = solution.objective - solution.gap
        if solution.converged or limits.spent(n_iter):
            return solution
        at_most, by_grids = largest, not by_grids


def _by_grids(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Filled,
    w: np.ndarray,
    record: Recorder,
    n_iter: int,
    bound: float,
    limit: int,
) -> Solution:
    """Newton steps of all bins, each by epochs over the grids, until fewer than `limit` bins are
    active and these hardly change.

    Start from w (D,) after n_iter steps with the lower bound `bound`.
    """
    f = Z.matvec(w)
    settled = False
    while True:
        objective, gap, g = l1_certificate(Z, y, w, lam, loss, f)
        bound = max(bound, objective - gap)
        gap = max(0.0, objective - bound)
        nnz = int(np.count_nonzero(w))
        record(
            lambda now=w: now,
            iteration=n_iter,
            objective=objective,
            gap=gap,
            nnz=nnz,
            working=len(w),
        )
        converged = gap <= budget.tol * objective
        few = settled and np.count_nonzero((w != 0) | (np.abs(g) > lam)) < limit
        if converged or few or budget.spent(n_iter):
            return Solution(
                w,
                objective,
                gap,
                n_iter,
                budget.status(converged, n_iter),
                record.trace,
            )
        accuracy = float(np.clip(0.3 * np.sqrt(gap / objective), 0.01, 0.1))
        target = _minimise_model(Z, w, g, loss.second_derivative(f, y), lam, accuracy, budget)
        before = w != 0
        w, f = _search(Z, y, w, f, target, lam, loss, objective)
        settled = bool(np.count_nonzero(before != (w != 0)) < _SETTLED * np.count_nonzero(w))
        n_iter += 1


def _minimise_model(
    Z: Matrix,
    w0: np.ndarray,
    g: np.ndarray,
    curvature: np.ndarray,
    lam: float,
    accuracy: float,
    budget: Filled,
) -> np.ndarray:
    """argmin of g.(w - w0) + 1/2 ||sqrt(curvature) Z (w - w0)||^2 + lam ||w||_1 by epochs over the
    grids.

    Ends when an epoch moves less than `accuracy` times the first one, in the norm of the diagonal.
    """
    inner, curvature = Z.unscaled(curvature)
    chosen = np.flatnonzero(curvature)
    if len(chosen) < _COPIED * len(curvature):
        inner = inner.rows(chosen)
        curvature = curvature[chosen]
    bins = cast("BinnedMatrix", inner)
    diagonal = bins.squares(curvature)
    largest = int(np.diff(bins.starts).max())
    sums = np.empty((2, largest))
    steps = np.empty(largest)
    w = w0.copy()
    delta = np.zeros(len(curvature))
    first = 0.0
    for _ in range(_EPOCHS):
        moved = _epoch(
            bins.ids, bins.starts, w, g, diagonal, curvature, delta, lam, bins.scale, sums, steps
        )
        first = first or moved
        if moved <= accuracy**2 * first or budget.late():
            break
    return w


def _search(
    Z: Matrix,
    y: np.ndarray,
    w: np.ndarray,
    f: np.ndarray,
    target: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    objective: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The next (w, Z w) towards the model's minimiser: the first of steps 1, 1/2, 1/4, …
    that decreases the objective.
    """
    change = target - w
    move = Z.matvec(change)
    t = 1.0
    for _ in range(40):
        trial = w + t * change
        f_trial = f + t * move
        if lam * float(np.abs(trial).sum()) + float(loss.value(f_trial, y).sum()) < objective:
            return trial, f_trial
        t *= 0.5
    return w, f


@njit(cache=True, nogil=True)
def _epoch(
    ids: np.ndarray,
    starts: np.ndarray,
    w: np.ndarray,
    g: np.ndarray,
    diagonal: np.ndarray,
    curvature: np.ndarray,
    delta: np.ndarray,
    lam: float,
    scale: float,
    sums: np.ndarray,
    steps: np.ndarray,
) -> float:
    """One exact update of every grid in turn, on the quadratic model; returns the sum of diagonal
    step^2.

    w (D,) and delta = Z (w - w0) over the rows are updated. The look-up that ends a grid's update
    and the sums that begin the next one share a loop over the rows.
    """
    moved = 0.0
    now = sums[0]
    after = sums[1]
    now[: starts[1] - starts[0]] = 0.0
    for i in range(ids.shape[1]):
        now[ids[0, i]] += curvature[i] * delta[i]
    for r in range(len(ids)):
        first = starts[r]
        size = starts[r + 1] - starts[r]
        change = False
        for b in range(size):
            j = first + b
            step = -w[j]
            if diagonal[j] > 0.0:
                free = w[j] - (g[j] + scale * now[b]) / diagonal[j]
                step += soft_threshold(free, lam / diagonal[j])
            steps[b] = scale * step
            if step != 0.0:
                w[j] += step
                moved += diagonal[j] * step * step
                change = True
        a = ids[r]
        if r + 1 == len(ids):
            if change:
                for i in range(len(a)):
                    delta[i] += steps[a[i]]
            break
        following = ids[r + 1]
        after[: starts[r + 2] - starts[r + 1]] = 0.0
        if change:
            for i in range(len(a)):
                delta[i] += steps[a[i]]
                after[following[i]] += curvature[i] * delta[i]
        else:
            for i in range(len(a)):
                after[following[i]] += curvature[i] * delta[i]
        now, after = after, now
    return moved


# ----------------------------------------------------------------------
# Parallel randomised coordinate descent over single columns (Wu et al. 2016, Algorithm 2), for its
# Figure 6: bins or Fourier features.
#
# Every thread takes columns of a random order and steps w_j <- S(w_j - g_j / M_j, lam / M_j), M_j =
# beta ||z_j||^2 with beta the loss's curvature bound (eq. 26 with erratum Wu 5 of docs/papers.md).
# Threads read and write the predictions without locks, as in the paper; a lost addition persists
# until the end of the pass, when the predictions are recomputed. Simultaneous steps may together be
# too long if columns are similar: a pass that did not decrease the objective is undone and repeated
# by one thread. With one thread the result depends only on the seed, with several its last digits
# vary.

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
    last, `gap`. Raises UsageError like `checked`.
    """
    y = checked(y, loss)
    record = Recorder(callback)
    budget = budget.filled(tol=1e-4, max_iter=1000)
    Z = Z.by_columns()
    columns = Z.column_lists()
    w = start(warm, Z.shape[1:])
    bounds = loss.curvature * Z.squares()
    kind = _KINDS[loss.name]
    random = np.random.Generator(np.random.Philox(seed))

    def evaluate(w: np.ndarray) -> tuple[np.ndarray, float]:
        f = Z.matvec(w)
        return f, lam * float(np.abs(w).sum()) + float(loss.value(f, y).sum())

    def steps(order: np.ndarray, w: np.ndarray, f: np.ndarray, threads: int | None) -> None:
        """One step for each column of `order` by all available threads, or `threads`; w and f are
        changed.
        """
        if isinstance(columns, DenseColumns):
            entries = columns.entries

            def dense(a: int, b: int) -> None:
                _dense_pass(order[a:b], entries, w, f, y, bounds, lam, kind)

            parallel.for_ranges(dense, len(order), 1, threads)
        else:
            value, rows, ends = columns.value, columns.rows, columns.ends

            def listed(a: int, b: int) -> None:
                _listed_pass(order[a:b], rows, ends, w, f, y, bounds, lam, value, kind)

            parallel.for_ranges(listed, len(order), 64, threads)

    f, objective = evaluate(w)
    n_iter = 0
    alone = 0
    seconds = 0.0
    bound = -np.inf
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
            return Solution(w, objective, gap, n_iter, status, record.trace)
        begun = time.perf_counter()
        order = random.permutation(len(w))
        for threads in (None, 1):
            after = w.copy()
            f_after = f.copy()
            steps(order, after, f_after, threads)
            f_after, value = evaluate(after)
            if value <= objective * (1 + _ROUNDING):
                break
            alone += threads is None
        w = after
        f = f_after
        objective = value
        seconds += time.perf_counter() - begun
        n_iter += 1


@njit(cache=True, nogil=True)
def _step(w: float, g: float, bound: float, lam: float) -> float:
    """The change of a weight whose loss has slope g and curvature of at most `bound`."""
    if bound <= 0.0:
        return -w
    free = w - g / bound
    return soft_threshold(free, lam / bound) - w


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
        own = rows[ends[j] : ends[j + 1]]
        g = 0.0
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
        z = columns[j]
        g = 0.0
        for i in range(len(z)):
            g += z[i] * _slope(f[i], y[i], kind)
        step = _step(w[j], g, bounds[j], lam)
        if step != 0.0:
            w[j] += step
            for i in range(len(z)):
                f[i] += step * z[i]
