"""Exact kernel support vector machines, for classification and regression."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from functools import partial

import numpy as np

from rfx import kernels
from rfx.compiled import njit
from rfx.losses import OF_NUMBERS, Loss, SquaredHinge, labels_and_weights
from rfx.operators.blocks import default_memory_mb
from rfx.operators.kernel import KernelMatrix
from rfx.parallel import for_ranges
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Recorder,
    Solution,
    checked,
    soft_threshold,
)
from rfx.types import Index

# ----------------------------------------------------------------------
# Solve the quadratic programme of one block of variables in an SVM's dual to a tolerance, within
# the cache.
#
# Variables are signed, beta_i in [lo_i, hi_i], so that labels appear only in the bounds. The block
# maximises sum_i e_i t_i - tube |beta_i + t_i| - 1/2 t' (K + diag(shift)) t over steps t, where e =
# y - f - shift beta. The tube is None for the hinge losses, which compiles to code without it.


@njit(cache=True, nogil=True)
def solve_singles(
    K: np.ndarray,
    shift: np.ndarray,
    error: np.ndarray,
    beta: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    tube: float | None,
    tol: float,
    max_steps: int,
) -> int:
    """Greedy coordinate ascent: the variable whose unconstrained step gains most moves to its
    optimum.

    K (q, q); shift, error, beta, lo, hi (q,) float64; error and beta are updated. Ends when no
    feasible slope exceeds tol, or after max_steps. Returns the number of steps.
    """
    size = len(beta)
    curvature = np.maximum(np.diag(K) + shift, 1e-12)
    for step in range(max_steps):
        best = 0.0
        chosen = -1
        worst = 0.0
        for i in range(size):
            e = _slope(error[i], beta[i], tube)
            if (e > 0 and beta[i] < hi[i]) or (e < 0 and beta[i] > lo[i]):
                gain = e * e / curvature[i]
                if gain > best:
                    best, chosen = gain, i
                worst = max(worst, abs(e))
        if chosen < 0 or worst <= tol:
            return step
        goal = beta[chosen] + error[chosen] / curvature[chosen]
        if tube is not None:
            goal = soft_threshold(goal, tube / curvature[chosen])
        moved = min(max(goal, lo[chosen]), hi[chosen])
        change = moved - beta[chosen]
        beta[chosen] = moved
        row = K[chosen]
        for i in range(size):
            error[i] -= change * row[i]
        error[chosen] -= change * shift[chosen]
    return max_steps


@njit(cache=True, nogil=True)
def solve_pairs(
    K: np.ndarray,
    shift: np.ndarray,
    error: np.ndarray,
    beta: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    tube: float | None,
    tol: float,
    max_steps: int,
) -> int:
    """The same with a constant sum of beta: two variables move by opposite steps.

    The first has the largest slope upwards, the second the largest gain of the pair by
    second-order information (Fan, Chen and Lin 2005). Ends when the largest slope upwards and the
    smallest downwards differ by at most tol.
    """
    size = len(beta)
    own = np.diag(K).copy()
    for step in range(max_steps):
        high = -np.inf
        i = -1
        for k in range(size):
            e = _rising(error[k], beta[k], tube)
            if e > high and beta[k] < hi[k]:
                high, i = e, k
        if i < 0:
            return step
        row = K[i]
        best = 0.0
        j = -1
        low = np.inf
        for k in range(size):
            if beta[k] > lo[k]:
                e = _falling(error[k], beta[k], tube)
                low = min(low, e)
                if e < high:
                    difference = high - e
                    gain = (
                        difference
                        * difference
                        / max(max(own[i] + own[k] - 2 * row[k], 0.0) + shift[i] + shift[k], 1e-12)
                    )
                    if gain > best:
                        best, j = gain, k
        if j < 0 or high - low <= tol:
            return step
        curvature = max(max(own[i] + own[j] - 2 * row[j], 0.0) + shift[i] + shift[j], 1e-12)
        slope = high - _falling(error[j], beta[j], tube)
        change = slope / curvature
        if tube is not None:
            # The slope drops by twice the tube where either variable passes zero.
            first = _until_zero(-beta[i])
            second = _until_zero(beta[j])
            for zero in (min(first, second), max(first, second)):
                if change > zero:
                    slope -= 2 * tube
                    change = max(zero, slope / curvature)
        change = min(change, min(hi[i] - beta[i], beta[j] - lo[j]))
        # A bound is met exactly, so that a variable at its bound is recognised.
        beta[i] = hi[i] if change >= hi[i] - beta[i] else beta[i] + change
        beta[j] = lo[j] if change >= beta[j] - lo[j] else beta[j] - change
        other = K[j]
        for k in range(size):
            error[k] -= change * (row[k] - other[k])
        error[i] -= change * shift[i]
        error[j] += change * shift[j]
    return max_steps


@njit(cache=True, nogil=True)
def _rising(error: float, beta: float, tube: float | None) -> float:
    """The slope of the objective as the variable rises."""
    if tube is None:
        return error
    return error - tube if beta >= 0 else error + tube


@njit(cache=True, nogil=True)
def _falling(error: float, beta: float, tube: float | None) -> float:
    """The slope on the side below; if it is negative, a smaller value is better."""
    if tube is None:
        return error
    return error - tube if beta > 0 else error + tube


@njit(cache=True, nogil=True)
def _slope(error: float, beta: float, tube: float | None) -> float:
    """The slope in the direction of improvement; at zero it is 0 if no direction improves."""
    if tube is None:
        return error
    if beta == 0:
        return soft_threshold(error, tube)
    return error - tube if beta > 0 else error + tube


@njit(cache=True, nogil=True)
def _until_zero(distance: float) -> float:
    """The step at which a variable passes zero; infinite if it moves away from there."""
    return distance if distance > 0 else np.inf


# ----------------------------------------------------------------------
# Kernel columns over an active set of rows, cached within the memory limit, and sums of such
# columns in float64.

# Kernel values computed at a time before they are stored or summed, so that they stay in the shared
# cache.
_SCRATCH = 1 << 20
_TILE = 8192
# Minimum columns computed at a time: source rows are read once for several.
_TOGETHER = 32


class ColumnCache:
    """Columns k(x_w, x_a) for a in the active rows, in a least-recently-used cache.

    rows: Prepared; active (n,) those of them that are active, `local` ones by their position in it.
    Keeping the columns when rows become active does not help: it takes as long as new columns.
    pool[slots[w]] is the column of local row w. `computed` counts computed columns.
    """

    def __init__(self, rows: kernels.Prepared, active: np.ndarray, memory: np.ndarray) -> None:
        """memory: 1-d array of rows.dtype for columns, with space for at least one of all rows."""
        self.rows = rows.take(active)
        width = len(active)
        # The maximum request of one call of `fetch`.
        self.capacity = min(width, len(memory) // width)
        self.pool = memory[: self.capacity * width].reshape(self.capacity, width)
        self.slots = np.full(width, -1)
        self._owner = np.full(self.capacity, -1)
        self._used = np.zeros(self.capacity, dtype=np.int64)
        self._clock = 0
        self.computed = 0

    def fetch(self, wanted: np.ndarray) -> np.ndarray:
        """Slots of the columns of the local rows `wanted` (distinct, at most `capacity`), computed
        if missing.
        """
        self._clock += 1
        slots = self.slots[wanted]
        self._used[slots[slots >= 0]] = self._clock
        missing = wanted[slots < 0]
        if len(missing):
            free = np.sort(np.argsort(self._used, kind="stable")[: len(missing)])
            evicted = self._owner[free]
            self.slots[evicted[evicted >= 0]] = -1
            self._owner[free], self.slots[missing], self._used[free] = missing, free, self._clock
            step = max(_TOGETHER, 4 * _SCRATCH // self.rows.n_rows)
            for first in range(0, len(missing), step):
                part = missing[first : first + step]
                places = free[first : first + step]
                arguments = self.rows.name, self.rows.take(part), self.rows, self.rows.params
                if places[-1] - places[0] == len(places) - 1:
                    # Contiguous, as while the cache fills: written in place, by all threads.
                    kernels.block(*arguments, out=self.pool[places[0] : places[-1] + 1])
                else:
                    self.pool[places] = kernels.block(*arguments)
            self.computed += len(missing)
            slots = self.slots[wanted]
        return slots

    def square(self, wanted: np.ndarray) -> np.ndarray:
        """(q, q) kernel values among the local rows `wanted`."""
        own = self.rows.take(wanted)
        return kernels.block(self.rows.name, own, own, self.rows.params)


def add_pooled(pool: np.ndarray, slots: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> None:
    """sums += sum_w weights[w] pool[slots[w]] in float64."""
    for_ranges(partial(_accumulate, pool, slots, weights, sums), len(sums), 1024)


def add_columns(
    sums: np.ndarray,
    rows: kernels.Prepared,
    targets: np.ndarray,
    sources: np.ndarray,
    weights: np.ndarray,
) -> None:
    """sums[targets] += sum_s weights[s] k(x_s, x_targets) in float64, without storing kernel
    values.
    """
    step = max(1, 2 * _SCRATCH // _TILE)
    for begin in range(0, len(targets), _TILE):
        chosen = targets[begin : begin + _TILE]
        part = rows.take(chosen)
        total = np.zeros(len(chosen))
        K = np.empty((min(step, len(sources)), len(chosen)), rows.dtype)
        for first in range(0, len(sources), step):
            some = sources[first : first + step]
            kernels.block(rows.name, rows.take(some), part, rows.params, out=K[: len(some)])
            add_pooled(K, np.arange(len(some)), weights[first : first + step], total)
        sums[chosen] += total


@njit(cache=True, nogil=True)
def _accumulate(
    pool: np.ndarray,
    slots: np.ndarray,
    weights: np.ndarray,
    sums: np.ndarray,
    first: int,
    stop: int,
) -> None:
    """sums[first:stop] += weights @ pool[slots, first:stop]; four columns in one pass over a tile
    of sums.
    """
    tile = 1024
    whole = len(slots) - len(slots) % 4
    for begin in range(first, stop, tile):
        end = min(begin + tile, stop)
        total = sums[begin:end]
        for w in range(0, whole, 4):
            a, b, c, d = weights[w], weights[w + 1], weights[w + 2], weights[w + 3]
            A = pool[slots[w], begin:end]
            B = pool[slots[w + 1], begin:end]
            C = pool[slots[w + 2], begin:end]
            D = pool[slots[w + 3], begin:end]
            for j in range(end - begin):
                total[j] += (a * A[j] + b * B[j]) + (c * C[j] + d * D[j])
        for w in range(whole, len(slots)):
            a = weights[w]
            A = pool[slots[w], begin:end]
            for j in range(end - begin):
                total[j] += a * A[j]


# ----------------------------------------------------------------------
# Exact kernel SVM for classification and regression, with or without bias, for any kernel:
# decomposition with large blocks.
#
# The objective is lam/2 ||f||_H^2 + sum_n L(f(x_n) + b, y_n), un-normalised (Yen et al. 2014, eq.
# 1; b = 0 without bias). L is the hinge, squared hinge, absolute or epsilon-insensitive loss. With
# C = 1/lam and signed dual variables beta, f = sum_i beta_i k(x_i, .), the dual divided by lam is
#
# max sum_i y_i beta_i - epsilon |beta_i| - 1/2 beta' (K + shift I) beta hinge: 0 <= y_i beta_i <=
# C; squared hinge: 0 <= y_i beta_i; regression: |beta_i| <= C;
#
# and sum_i beta_i = 0 with a bias. The shift is 1/(2C) for the squared hinge, else 0. epsilon is 0
# for losses without it. Let r_i = y_i - f_i - b, and xi_i = max(0, y_i r_i) for classes, max(0,
# |r_i| - epsilon) for regression. The duality gap is a sum of nonnegative terms over rows, C xi_i +
# epsilon |beta_i| - beta_i r_i, or C xi_i^2 + beta_i^2 / (4C) - beta_i r_i for the squared hinge.
# So each row's contribution to the gap is known, and only rows with a contribution need to be
# active.

# The block of few rows is solved more accurately, because few steps are left to save, and at most
# so often.
_ONLY_TOL, _ONLY_BLOCKS = 0.01, 5
# A block is solved until its largest violation is this fraction of the largest of all rows, in at
# most so many steps per variable.
_INNER_TOL, _INNER_STEPS = 0.1, 20


@dataclass(frozen=True)
class WorkSizes:
    """How much the solver does at a time.

    Attributes
    ----------
    block : int
        Variables of a block.
    first_rows : int
        The least number of rows to begin with.
    few : int
        Rows up to which all kernel values are computed at once: a pair of classes often has few
        rows.
    least_columns : int
        Columns that are cached whatever the memory.
    reported : int
        Blocks of one round between two entries of the trace.
    """

    block: int = 1024
    first_rows: int = 4096
    few: int = 512
    least_columns: int = 64
    reported: int = 100


@dataclass(kw_only=True)
class KernelSolution(Solution):
    """A Solution whose decision function is sum_i coef_i k(x_i, .) + intercept; coef: beta
    (n,).
    """

    intercept: float = 0.0


def solve_kernel_svm(
    K: KernelMatrix,
    y: np.ndarray,
    lam: float,
    loss: Loss = SquaredHinge,
    budget: Budget = Budget(),
    callback: Callback | None = None,
    *,
    bias: bool = False,
    seed: int = 0,
    weights: np.ndarray | None = None,
    sizes: WorkSizes = WorkSizes(),
) -> KernelSolution:
    """Kernel SVM over the rows of K (n, n).

    y: (n,) labels in {-1, +1}, times weights if the loss is Weighted, or the targets of a
    regression. lam: un-normalised, in (0, inf); LIBSVM's C is 1 / lam. loss: Hinge, SquaredHinge,
    Absolute or EpsilonInsensitive of rfx.losses. budget: tol is the duality gap divided by the
    objective (1e-3), max_iter are blocks of variables (100,000), memory_mb is for cached kernel
    columns. seed: of the initial rows. weights: (n,) above 0, of the rows of a regression; None for
    ones. sizes: of the parts of the work.

    Returns a KernelSolution: objective and gap in the scale of the objective above, n_iter blocks.
    The trace has one entry per round, with active rows, support vectors, columns and inner steps;
    long rounds have one every `sizes.reported` blocks, whose objective and gap use the decision
    values of inactive rows from before the round. Kernel values are float32 if that is sufficient;
    at the end all are recomputed in float64 for the objective and the gap, and if the gap is then
    too large, the solver continues in float64. Raises UsageError like `checked`.
    """
    budget = budget.filled(tol=1e-3, max_iter=100_000, memory_mb=default_memory_mb())
    problem = _Problem(K, y, lam, loss, bias, budget.tol, weights)
    run = _Run(problem, budget, Recorder(callback), seed, sizes)
    active = None
    gap = objective = np.inf
    if len(problem.y) <= sizes.few:
        gap, objective = _at_once(problem, run)
        active = np.zeros(0, np.intp)
    if not _met(gap, objective, budget.tol):
        problem.prepare()
        run.restart()
        gap, objective = _rounds(problem, run, active)
        if problem.rows.dtype == np.float32:
            problem.go_to_float64()
            gap, objective = problem.refresh(np.zeros(0, np.intp))
            run.tell((), gap, objective)
            if not _met(gap, objective, budget.tol):
                # all decision values are recomputed
                problem.f[:] = 0.0
                problem.seen[:] = 0.0
                run.restart()
                gap, objective = _rounds(problem, run, np.zeros(0, np.intp))
    return KernelSolution(
        coef=problem.beta,
        objective=float(lam * objective),
        gap=float(lam * gap),
        n_iter=run.blocks,
        status=budget.status(_met(gap, objective, budget.tol), run.blocks),
        trace=run.record.trace,
        intercept=float(problem.bias_value),
    )


def _at_once(problem: _Problem, run: _Run) -> tuple[float, float]:
    """Solve for all of few rows as one block, usually until the gap is met; return gap and
    objective.
    """
    p = problem
    every = np.arange(len(problem.y))
    K = p.K.to_array(np.float64)
    inner = solve_pairs if p.bias else solve_singles
    run.columns = len(K)
    for last in range(_ONLY_BLOCKS, -1, -1):
        p.f = K @ p.beta
        gap, objective = p.measured()
        run.tell(every, gap, objective)
        up, down, _ = p.violations()
        tol = _ONLY_TOL * float(max(up.max(), down.max()))
        if _met(gap, objective, p.tol) or not last or run.budget.spent(run.blocks):
            break
        error = p.y - p.f - p.shift * p.beta
        bounds = p.lo, p.hi, p.tube, tol, _INNER_STEPS * len(K)
        run.steps += inner(K, p.shift, error, p.beta, *bounds)
        run.blocks += 1
    return gap, objective


def _rounds(problem: _Problem, run: _Run, active: np.ndarray | None) -> tuple[float, float]:
    """Process active sets until the gap is met; return gap and objective. active: rows with current
    decision values, None to start with a sample of all."""
    tol = problem.tol
    inside_tol = max(0.3 * tol, 0.03)
    if active is None:
        # an eighth of the rows
        n_rows = len(problem.y)
        count = min(n_rows, max(run.sizes.first_rows, n_rows // 8))
        active = np.sort(np.random.default_rng(run.seed).permutation(n_rows)[:count])
        run.solve(active, inside_tol)
    before = None
    while True:
        gap, objective = problem.refresh(active)
        run.tell(active, gap, objective)
        if (
            not np.isfinite(gap)
            or _met(gap, objective, tol)
            or before == run.blocks
            or run.stalled
            or run.budget.spent(run.blocks)
        ):
            return gap, objective
        before = run.blocks
        inside_tol = min(inside_tol, max(0.3 * tol, 0.1 * gap / objective))
        active = problem.missing_rows(active, run.sizes.block)
        run.solve(active, inside_tol)


def _met(gap: float, objective: float, tol: float) -> bool:
    return bool(np.isfinite(objective) and gap <= tol * objective)


class _Problem:
    """Data, dual variables and decision values; everything divided by lam."""

    def __init__(
        self,
        K: KernelMatrix,
        y: np.ndarray,
        lam: float,
        loss: Loss,
        bias: bool,
        tol: float,
        weights: np.ndarray | None,
    ) -> None:
        self.y, own = labels_and_weights(loss, checked(y, loss))
        if weights is None:
            weights = own
        self.squared = loss.name == "squared_hinge"
        self.bias = bias
        self.tol = tol
        self.lam = lam
        # The half width of the tube for regression; None for classification.
        self.tube: float | None = None
        # The scale of residuals, for the choice of active rows.
        self.unit = 1.0
        if loss.name in OF_NUMBERS:
            self.tube = float(loss.epsilon)
            self.unit = float(np.abs(self.y - np.median(self.y)).mean())
        # of each row: its weight is that of its loss
        self.C = weights / lam
        self.shift = 0.5 * lam / weights if self.squared else np.zeros(len(weights))
        self.K = K
        top = np.inf if self.squared else self.C
        if self.tube is None:
            self.lo = np.where(self.y > 0, 0.0, -top)
            self.hi = np.where(self.y > 0, top, 0.0)
        else:
            self.lo = -self.C
            self.hi = self.C
        self.beta = np.zeros(len(self.y))
        # Decision values without bias: `seen` holds the corresponding beta, for active and inactive
        # rows.
        self.f = np.zeros(len(self.y))
        self.seen = np.zeros(len(self.y))
        self.bias_value = 0.0
        # The objective at the last refresh, as reference for gaps; unknown before.
        self.scale: float | None = None

    def prepare(self) -> None:
        """Prepare the rows for blocks of kernel values."""
        # float32 rounding must be below the shift that makes the squared hinge's dual bounded
        rounding = 8 * np.finfo(np.float32).eps
        noise = rounding * np.sqrt(len(self.y)) * self.K.diagonal.max()
        accurate = self.tol < 1e-5 or (self.squared and not noise < self.shift.min())
        self.rows = self.K.prepared(np.float64 if accurate else np.float32)

    def go_to_float64(self) -> None:
        """Use float64 kernel values from here on, and recompute the decision values of all rows
        that may contribute to the gap.

        These are the support vectors, and rows without loss whose distance from a loss is at most
        a few times the observed float32 error.
        """
        self.rows = self.K.prepared(np.float64)
        before = self.f.copy()
        excess = self.excess()
        near = (self.beta != 0) | (excess > -0.1 * self.unit)
        self._sum_anew(np.flatnonzero(near))
        wrong = np.abs(self.f - before).max(initial=0.0)
        further = ~near & (excess > -4 * wrong)
        self._sum_anew(np.flatnonzero(further))

    def _sum_anew(self, rows: np.ndarray) -> None:
        support = np.flatnonzero(self.beta)
        self.f[rows] = 0.0
        add_columns(self.f, self.rows, rows, support, self.beta[support])

    def residuals(
        self, rows: Index = slice(None), f: np.ndarray | None = None, b: float | None = None
    ) -> np.ndarray:
        values = self.f[rows] if f is None else f
        bias = self.bias_value if b is None else b
        return self.y[rows] - (values + bias)

    def excess(self, rows: Index = slice(None), residuals: np.ndarray | None = None) -> np.ndarray:
        """The distance of residuals beyond the point where their loss begins; negative without
        loss.
        """
        r = self.residuals(rows) if residuals is None else residuals
        if self.tube is None:
            return self.y[rows] * r
        return np.abs(r) - self.tube

    def shares(
        self, rows: Index = slice(None), f: np.ndarray | None = None, b: float | None = None
    ) -> np.ndarray:
        """Each row's contribution to the duality gap."""
        r = self.residuals(rows, f, b)
        beta = self.beta[rows]
        C = self.C[rows]
        xi = np.maximum(self.excess(rows, r), 0.0)
        both = C * xi**2 + beta**2 / (4 * C) if self.squared else C * xi
        if self.tube is not None:
            both += self.tube * np.abs(beta)
        # Rounding may make a contribution slightly negative.
        return np.maximum(both - beta * r, 0.0)

    def objective(self, rows: Index, beta: np.ndarray, f: np.ndarray, b: float) -> float:
        """The objective of the rows alone, with beta = 0 elsewhere."""
        residuals = self.residuals(rows, f, b)
        xi = np.maximum(self.excess(rows, residuals), 0.0)
        losses = xi**2 if self.squared else xi
        return 0.5 * float(beta @ f) + float(self.C[rows] @ losses)

    def refresh(self, active: np.ndarray) -> tuple[float, float]:
        """Update the decision values outside `active`; return gap and objective over all rows."""
        outside = np.ones(len(self.y), dtype=bool)
        outside[active] = False
        changes = self.beta - self.seen
        changed = np.flatnonzero(self.beta != self.seen)
        add_columns(self.f, self.rows, np.flatnonzero(outside), changed, changes[changed])
        return self.measured()

    def measured(self) -> tuple[float, float]:
        """Gap and objective over all rows, whose decision values are those of beta; with the best
        bias.
        """
        self.seen = self.beta.copy()
        if self.bias:
            self.bias_value = best_bias(self.y, self.f, self.squared, self.C, self.tube)
        scale = self.scale = self.objective(slice(None), self.beta, self.f, self.bias_value)
        return float(self.shares().sum()), scale

    def violations(
        self, rows: Index = slice(None), beta: np.ndarray | None = None, f: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """How strongly each row's slope requests an increase and a decrease of its beta (at most
        one positive); and the bias: half way between the largest slope upwards and the smallest
        downwards, zero without bias.
        """
        beta, f = (self.beta, self.f) if beta is None else (beta, f)
        error = self.y[rows] - f - self.shift[rows] * beta
        rising = falling = error
        if self.tube is not None:
            rising = error - np.where(beta >= 0, self.tube, -self.tube)
            falling = error - np.where(beta > 0, self.tube, -self.tube)
        can_rise = beta < self.hi[rows]
        can_fall = beta > self.lo[rows]
        b = 0.0
        if self.bias:
            high = rising[can_rise].max(initial=-np.inf)
            low = falling[can_fall].min(initial=np.inf)
            # All can only move in the same direction, so none can: the extreme bias shows that the
            # solution is optimal.
            if np.isinf(high):
                b = float(low)
            elif np.isinf(low):
                b = float(high)
            else:
                b = float(0.5 * (high + low))
        up = np.where(can_rise, rising - b, 0.0)
        down = np.where(can_fall, b - falling, 0.0)
        return up, down, b

    def missing_rows(self, active: np.ndarray, block: int) -> np.ndarray:
        """The next active rows: those that contribute to the gap, with a bias the first `block` of
        each side, and those of `active` that may still move.
        """
        share = self.shares()
        assert self.scale is not None
        order = np.argsort(share)
        wanted = np.zeros(len(share), dtype=bool)
        wanted[order[np.cumsum(share[order]) > 0.1 * self.tol * self.scale]] = True
        if self.bias:
            # With the best bias one side may have no contribution, but a pair needs both.
            for side in self.violations()[:2]:
                wanted[np.argpartition(-side, min(block, len(side) - 1))[:block]] = True
        excess = self.excess(active)
        at_zero = self.beta[active] == 0
        at_top = np.abs(self.beta[active]) >= self.C[active] if not self.squared else False
        far = 0.2 * self.unit
        wanted[active[~((at_zero & (excess < -far)) | (at_top & (excess > far)))]] = True
        return np.flatnonzero(wanted)


def best_bias(
    y: np.ndarray,
    f: np.ndarray,
    squared: bool,
    weights: np.ndarray | None = None,
    tube: float | None = None,
) -> float:
    """The b that minimises sum_n w_n L(f_n + b, y_n); weights: w (N,), None for ones; tube: half
    width of the tube of a regression, None for classes.

    The loss of row n begins or ends at b = y_n - f_n, with a tube at that number plus and minus its
    half width. For the squared hinge the slope is increasing and piecewise linear; otherwise it is
    a sum of weights, so b is an order statistic.
    """
    bounds = y - f
    weights = np.ones(len(y)) if weights is None else weights
    if tube is not None:
        ends = np.concatenate([bounds - tube, bounds + tube])
        return _lowest(ends, np.concatenate([weights, weights]), weights.sum())
    positive = y > 0
    n_positive = int(positive.sum())
    if n_positive == 0:
        return float(bounds.min())
    if n_positive == len(y):
        return float(bounds.max())
    if not squared:
        return _lowest(bounds, weights, weights[positive].sum())
    # the slope in b above the k-th bound is b rates[k] - sums[k]
    order = np.argsort(bounds)
    at = bounds[order]
    below = np.where(positive, 0.0, weights)[order]
    above = np.where(positive, weights, 0.0)[order]
    rates = np.cumsum(below) + above.sum() - np.cumsum(above)
    sums = np.cumsum(below * at) + above @ at - np.cumsum(above * at)
    is_falling = at * rates <= sums
    k = int(np.flatnonzero(is_falling)[-1]) if is_falling[0] else 0
    after = at[min(k + 1, len(at) - 1)]
    if rates[k] <= 0:
        return float(after)
    return float(np.clip(sums[k] / rates[k], at[k], after))


def _lowest(breakpoints: np.ndarray, steps: np.ndarray, down: float) -> float:
    """The middle of the minima of a convex, piecewise linear function, whose slope begins at -down
    and grows by a step at each breakpoint.
    """
    order = np.argsort(breakpoints)
    slope = np.cumsum(steps[order]) - down
    slope[np.abs(slope) <= 1e-12 * steps.sum()] = 0.0
    place = int(np.argmax(slope >= 0))
    after = min(place + 1, len(order) - 1) if slope[place] == 0 else place
    return float(0.5 * (breakpoints[order[place]] + breakpoints[order[after]]))


class _Run:
    """Blocks of variables over successive active sets, with their cost."""

    def __init__(
        self, problem: _Problem, budget: Filled, record: Recorder, seed: int, sizes: WorkSizes
    ) -> None:
        self.problem = problem
        self.budget = budget
        self.record = record
        self.sizes = sizes
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.blocks = self.steps = self.columns = 0

    def restart(self) -> None:
        """Start with memory for columns of the rows' type."""
        # At least a small block of columns of all rows. Memory pages are allocated when written to,
        # and reused by successive active sets.
        n_rows = len(self.problem.y)
        dtype = self.problem.rows.dtype
        self.memory = np.empty(0, dtype)
        least = self.sizes.least_columns * n_rows
        wanted = max(self.budget.memory_mb * 2**20 // dtype.itemsize, least)
        self.memory = np.empty(int(min(wanted, n_rows**2)), dtype)
        # True if a violating block could not be moved because of rounding.
        self.stalled = False

    def tell(self, active: Sized, gap: float, objective: float) -> None:
        """Record the current state, in the scale of the objective that is not divided by lam."""
        lam = self.problem.lam
        beta = self.problem.beta
        counts = {
            "active": len(active),
            "support": int(np.count_nonzero(beta)),
            "steps": self.steps,
            "columns": self.columns,
        }
        self.record(
            beta.copy,
            iteration=self.blocks,
            objective=float(lam * objective),
            gap=float(lam * gap),
            **counts,
        )

    def solve(self, active: np.ndarray, inside_tol: float) -> None:
        """Process blocks over the active rows until their contributions to the gap are below
        inside_tol of the objective; their decision values are then current.
        """
        p = self.problem
        self.stalled = False
        cache = ColumnCache(p.rows, active, self.memory)
        y = p.y[active]
        lo = p.lo[active]
        hi = p.hi[active]
        beta = p.beta[active]
        f = p.f[active]
        inner = solve_pairs if p.bias else solve_singles
        size = min(self.sizes.block, len(active))
        begun = self.blocks
        while not self.budget.spent(self.blocks):
            up, down, b = p.violations(active, beta, f)
            p.beta[active] = beta
            gap = float(p.shares(active, f, b).sum())
            if gap <= inside_tol * (
                p.objective(active, beta, f, b) if p.scale is None else p.scale
            ):
                break
            chosen = _violators(up, down, size, p.bias, self.rng)
            if len(chosen) == 0:
                break
            # its own values are few; columns are computed for variables that move
            K = cache.square(chosen)
            part = beta[chosen]
            before = beta[chosen]
            tol = _INNER_TOL * float(max(up.max(), down.max()))
            shift = p.shift[active[chosen]]
            error = (y[chosen] - f[chosen]) - shift * part
            self.steps += inner(
                *(K, shift, error, part, lo[chosen], hi[chosen]),
                *(p.tube, tol, _INNER_STEPS * len(chosen)),
            )
            change = part - before
            moved = np.flatnonzero(change)
            beta[chosen] = part
            for first in range(0, len(moved), cache.capacity):
                some = moved[first : first + cache.capacity]
                add_pooled(cache.pool, cache.fetch(chosen[some]), change[some], f)
            self.blocks += 1
            if len(moved) == 0:
                self.stalled = True
                break
            if (self.blocks - begun) % self.sizes.reported == 0:
                p.beta[active] = beta
                p.f[active] = f
                self.tell(
                    active, float(p.shares(b=b).sum()), p.objective(slice(None), p.beta, p.f, b)
                )
        p.beta[active] = beta
        p.f[active] = f
        self.columns += cache.computed


def _violators(
    up: np.ndarray, down: np.ndarray, size: int, pairs: bool, rng: np.random.Generator
) -> np.ndarray:
    """Indices of up to `size` variables that violate optimality; with a bias, half of them
    each way.
    """
    if not pairs:
        return _sample(np.maximum(up, down), size, rng)
    first = _sample(up, max(1, size // 2), rng)
    down[first] = 0.0
    return np.concatenate([first, _sample(down, max(1, size - len(first)), rng)])


def _sample(values: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of at most `count` positive values."""
    positive = np.flatnonzero(values > 0)
    if len(positive) <= count:
        return positive
    # The largest ensure progress on the worst violations; the others are a random sample of all
    # violators, because the worst are close to one another: after one of them moves, the rest of
    # the block has nothing left to do.
    top = max(1, count // 10)
    order = np.argpartition(values[positive], len(positive) - top - 1)
    first = order[len(positive) - top :]
    rest = order[: len(positive) - top]
    return positive[np.concatenate([first, rng.choice(rest, count - top, replace=False)])]
