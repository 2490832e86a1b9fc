"""L1-regularised linear machines by proximal Newton steps on a working set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rfx.errors import DataError
from rfx.losses import Loss, SmoothLoss, Weighted, labels_and_weights
from rfx.operators.blocks import default_memory_mb
from rfx.operators.linear_algebra import corner, keep_corner
from rfx.operators.mapped import CachedColumns
from rfx.operators.matrix import DenseMatrix, Matrix
from rfx.parallel import Late, one_blas_thread, until
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Progress,
    Recorder,
    Solution,
    checked,
    l1_line_search,
    start,
)
from rfx.solvers.l1.quadratic import hinge_interior_point, residual, solve_quadratic

# ----------------------------------------------------------------------
# The dual of an L1 problem: the value of the best feasible point in a given direction.
#
# For min_w lam ||w||_1 + sum_n L(z_n . w, y_n) the dual is max_u -sum_n L*(u_n, y_n) with |z_j' u|
# <= lam for every column j.


def best_dual(
    loss: Loss, direction: np.ndarray, y: np.ndarray, lam: float, gradient: np.ndarray
) -> tuple[float, float]:
    """(value, s) of the best feasible u = s * direction, where gradient = Z' direction and
    direction is a loss's derivative (N,).

    For the squared and the squared hinge loss the best s is in closed form; for the logistic loss s
    <= 1 keeps u in the conjugate's domain. Raises DataError when the gradient is not finite.
    """
    largest = np.max(np.abs(gradient), initial=0.0)
    if not np.isfinite(largest):
        raise DataError(
            "a feature, a target or a weight is nan, infinite or too large: the gradient of the"
            " losses is not finite"
        )
    bound = lam / largest if largest > 0 else np.inf
    if loss.name == "logistic":
        s = min(1.0, bound)
    else:
        labels, weights = labels_and_weights(loss, y)
        quadratic = (1.0 if loss.name == "squared" else 0.5) * (direction @ (direction / weights))
        s = min(bound, max(0.0, -(direction @ labels) / quadratic)) if quadratic > 0 else 1.0
    return -float(loss.conjugate(loss.clip_dual(s * direction, y), y).sum()), s


def l1_certificate(
    Z: Matrix, y: np.ndarray, w: np.ndarray, lam: float, loss: Loss, f: np.ndarray | None = None
) -> tuple[float, float, np.ndarray]:
    """(objective, duality gap, gradient (D,) of the losses) of lam ||w||_1 + sum L(z.w, y) at any w
    (D,); f: Z w if known.

    Z: (N, D) features, used in one pass.
    """
    gradient = None
    if f is None:
        f, _, gradient = Z.loss_pass(w, loss, y)
    u = loss.derivative(f, y)
    gradient = Z.rmatvec(u) if gradient is None else gradient
    objective = lam * float(np.abs(w).sum()) + float(loss.value(f, y).sum())
    return objective, max(0.0, objective - best_dual(loss, u, y, lam, gradient)[0]), gradient


# ----------------------------------------------------------------------
# The weighted Gram matrix of the working columns, cached between steps (and rounds of Algorithm 1).

# Unused columns that may be cached, beyond a quarter of those in use, while they need no update.
SPARE = 256
# Relative change of a row's curvature below which its old one is kept.
STALE = 0.1


class GramCache:
    """G = sum_n h_n z_n z_n' over the working columns, updated instead of recomputed.

    `matrix` holds G in its leading k x k corner, for `columns` in this order; h is the curvature
    L'' of each row: one for the squared loss (nothing is recomputed), zero or two for the squared
    hinge (rows enter and leave the margin), smooth for the logistic loss (rows whose curvature
    hardly changed keep their old one, which gives a slightly old metric but not a wrong solution).

    Between rounds of Yen et al. 2014, Algorithm 1, pass the same object to each `solve_l1(...,
    gram=cache)`; after dropping columns call `cache.keep(kept)`, where `kept` are the column
    numbers that become 0, 1, ... of the next round; columns drawn later follow them. The rows and
    labels must stay the same.
    """

    def __init__(self) -> None:
        self.dtype: type[np.float64] | None = None
        self.columns = np.empty(0, np.int64)
        self.matrix = np.zeros((0, 0))
        self.weights = np.empty(0)
        self._churn = 0

    def use_float64(self) -> bool:
        """Recompute everything in float64 from here on; False if that is so already."""
        if self.dtype is not None:
            return False
        self.dtype = np.float64
        self.restrict(np.empty(0, np.int64))
        return True

    def restrict(self, columns: np.ndarray) -> None:
        """Drop all but these columns."""
        self._compress(np.flatnonzero(np.isin(self.columns, columns)))

    def keep(self, kept: np.ndarray) -> None:
        """Renumber: column kept[i] becomes column i, the others are dropped."""
        kept = np.asarray(kept, np.int64)
        numbers = np.full(1 + max(kept.max(initial=-1), self.columns.max(initial=-1)), -1)
        numbers[kept] = np.arange(len(kept))
        renumbered = numbers[self.columns]
        self._compress(np.flatnonzero(renumbered >= 0))
        self.columns = renumbered[renumbered >= 0]

    def update(
        self, Z: Matrix, wanted: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(columns, H): the `wanted` columns in the cache's order and their Gram matrix at row
        weights (N,).

        H is C-contiguous in its leading corner, at least as large as needed, and must not be
        changed. Unwanted columns are dropped, unless the weights stay the same (squared loss): then
        they cost nothing.
        """
        weights = Z.gram_weights(weights)
        held = np.isin(self.columns, wanted, assume_unique=True)
        unchanged = np.array_equal(weights, self.weights)
        if not held.all() and not (unchanged and len(self.columns) <= 1.25 * len(wanted) + SPARE):
            self._compress(np.flatnonzero(held))
        new = np.setdiff1d(wanted, self.columns)
        if not len(self.columns):
            self.weights = weights.copy()
            self._churn = 0
        if not unchanged and len(self.columns):
            self._reweigh(Z, weights, new)
        elif len(new):
            self._append(Z, new)
        if len(self.columns) == len(wanted):
            return self.columns, self.matrix
        chosen = np.flatnonzero(np.isin(self.columns, wanted, assume_unique=True))
        return self.columns[chosen], corner(self.matrix, chosen)

    def _append(self, Z: Matrix, new: np.ndarray) -> None:
        if not len(self.columns):
            self._begin(new, Z.square(new, self.weights, self.dtype))
            return
        square, cross = Z.gram(new, self.columns, self.weights, self.dtype)
        old = len(self.columns)
        size = len(self.columns) + len(new)
        if size > len(self.matrix):
            matrix = np.zeros((size, size))
            matrix[:old, :old] = self.matrix[:old, :old]
            self.matrix = matrix
        self.matrix[old:size, :old] = cross
        self.matrix[:old, old:size] = cross.T
        self.matrix[old:size, old:size] = square
        self.columns = np.concatenate([self.columns, new])

    def _begin(self, columns: np.ndarray, square: np.ndarray) -> None:
        # results from remote parts are read-only
        self.columns = columns
        self.matrix = np.require(square, np.float64, ["C", "W"])

    def _reweigh(self, Z: Matrix, weights: np.ndarray, new: np.ndarray) -> None:
        """The Gram matrix at other weights, with the columns `new` appended."""
        change = weights - self.weights
        changed = np.abs(change) > STALE * np.maximum(weights, self.weights)
        count = int(np.count_nonzero(changed))
        alive = np.count_nonzero(weights)
        size = len(self.columns)
        # Sums of float32 products lose digits with every update: recompute after a few times the
        # rows.
        if count > alive // 2 or self._churn + count > 4 * alive:
            columns = np.concatenate([self.columns, new])
            self.columns, self.matrix = (
                self.columns[:0],
                np.zeros((0, 0)),
            )  # release it before the new one is allocated
            square = Z.square(columns, weights, self.dtype)
            self.weights = weights.copy()
            self._churn = 0
            self._begin(columns, square)
            return
        change = np.where(changed, change, 0.0)
        after = np.where(changed, weights, self.weights)
        if count:
            self.matrix[:size, :size] += Z.square(self.columns, change, self.dtype)
        self.weights = after
        if len(new):
            self._append(Z, new)
        self._churn += count

    def _compress(self, chosen: np.ndarray) -> None:
        size = len(chosen)
        if size < len(self.columns):
            keep_corner(self.matrix, chosen)
            self.columns = self.columns[chosen]


# ----------------------------------------------------------------------
# L1-regularised linear machines: min_w lam ||w||_1 + sum_n L(z_n . w, y_n), un-normalised, without
# a bias.
#
# Yen et al. 2014, eq. 9 (sparse random features), for the squared, the squared hinge and the
# logistic loss. A working set of columns grows by violation; on it, proximal Newton steps are made:
# the Gram matrix of the working columns over the rows with curvature gives a small quadratic
# problem with an l1 term, and a line search on the true objective determines the step. If Newton's
# method fails, for separable classes and a small lam, an interior-point method over the rows
# replaces it. The stopping test and certificate are the duality gap over all columns. Gap-safe
# screening does not help: a column of random features is so long relative to lam that none is
# excluded before the end (cod-rna, D = 2,000, lam = 10: radius times ||z_j|| is 424 at a relative
# gap of 1e-4). Extrapolation does not help either: a Newton step is solved exactly.

# A start from zero uses a sequence of decreasing lam, each this fraction of the last, with one step
# at each: the working set then grows with the support instead of far beyond it.
STAGE = 0.25
# A shorter step shows that rows enter the margin too fast for Newton's method, as with separable
# classes and a small lam: then an interior-point method over the rows is tried.
VERY_SHORT = 0.1
# Steps after which it has stalled if they reduced the objective by less than this fraction of the
# tolerance: with few columns in memory, steps are short, but longer than that.
STALL, MOVED = 12, 1e-5
# Minimum scaling of all weights if no Newton step descends.
SHRINK = 0.01


def lambda_max(Z: Matrix, y: np.ndarray, loss: Loss) -> float:
    """The smallest lam at which zero is optimal: ||Z' L'(0, y)||_inf."""
    y = np.asarray(y, np.float64)
    return float(np.max(np.abs(Z.rmatvec(loss.derivative(np.zeros(len(y)), y))), initial=0.0))


def solve_l1(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
    *,
    gram: GramCache | None = None,
) -> Solution:
    """Minimise lam ||w||_1 + sum_n L(z_n . w, y_n) until the relative duality gap is at most the
    budget's.

    Z: the (N, D) features. y: (N,) targets; -1 and +1 for the squared hinge and the logistic loss.
    loss: Squared, SquaredHinge or Logistic. budget: tol is the relative gap (1e-4), max_iter are
    Newton steps (200; n_iter counts them), memory_mb is working memory (a third of the free
    memory), half for the Gram matrix and its factors, half for the relevant columns if the features
    are recomputed at every use. warm: (D,) weights to start from. gram: a GramCache to reuse
    between calls on the same rows.

    The Solution's coef is (D,), its trace has an entry for each Newton step: `iteration`,
    `objective`, `gap`, `nnz`, `working`. Raises UsageError like `checked`, DataError if a
    feature or a target is not finite.
    """
    y = checked(y, loss)
    coef = start(warm, Z.shape[1:])
    descent = Descent(Z, y, lam, loss, filled(budget), coef, Recorder(callback))
    descent.gram = descent.gram if gram is None else gram
    return descent.solve()


def filled(budget: Budget) -> Filled:
    """The budget with the defaults of `solve_l1`."""
    return budget.filled(tol=1e-4, max_iter=200, memory_mb=default_memory_mb())


def largest_working_set(max_memory_mb: float) -> int:
    """Number of columns whose Gram matrix and factors need half the memory."""
    return max(512, int(np.sqrt(max_memory_mb * 2**20 / 48)))


def columns_held(Z: Matrix, max_memory_mb: float) -> int:
    """Columns of Z that fit into half the memory; half of that while they are replaced, because the
    old copy and the new one exist.
    """
    return int(max_memory_mb * 2**20 / 4 // (Z.dtype.itemsize * max(1, Z.shape[0])))


def path_l1(
    Z: Matrix,
    y: np.ndarray,
    lams: Sequence[float],
    loss: SmoothLoss,
    budget: Budget = Budget(),
) -> list[Solution]:
    """Solutions for each of `lams` (in decreasing order), each started at the previous one; the
    rest as in `solve_l1`.
    """
    gram = GramCache()
    solutions: list[Solution] = []
    for lam in sorted(lams, reverse=True):
        warm = solutions[-1].coef if solutions else None
        solutions.append(solve_l1(Z, y, lam, loss, budget, warm, gram=gram))
    return solutions


@dataclass
class Descent:
    """The steps of `solve_l1` for a checked problem: the current point (coef, its decision values,
    objective) and the best dual value found (dual).

    coef (D,) is the starting point, after n_iter steps with the lower bound `dual`; it is changed.
    at_most: end early once the working set needs that many columns, for a caller with another
    method.
    """

    Z: Matrix
    y: np.ndarray
    lam: float
    loss: SmoothLoss
    budget: Filled
    coef: np.ndarray
    record: Recorder
    n_iter: int = 0
    dual: float = -np.inf
    at_most: int | None = None
    gram: GramCache = field(default_factory=GramCache, init=False)
    objective: float = np.inf
    converged: bool = False
    curvature: np.ndarray | None = None
    interior: bool = False
    dual_point: np.ndarray | None = None
    decision: np.ndarray = field(init=False)
    begun: bool = field(default=False, init=False)

    def solve(self) -> Solution:
        """The solution, or the state when the budget ends."""
        self.progress = Progress(STALL, MOVED * self.budget.tol)
        try:
            # rfx.parallel distributes the work; BLAS threads would only interfere
            with one_blas_thread(), until(self.budget.deadline):
                self.limit = self.at_most or largest_working_set(self.budget.memory_mb)
                self.held_limit = columns_held(self.Z, self.budget.memory_mb)
                self.float64_limit = self.held_limit * self.Z.dtype.itemsize // 8
                self.decision = self.Z.matvec(self.coef)
                self.begun = True
                if self.Z.computed:
                    self._minimise_held()
                else:
                    self.converged = self._minimise(self.Z, 0.0)
        except Late:
            if not self.begun:
                self.coef = np.zeros_like(self.coef)
                self.decision = np.zeros_like(self.y)
            # zero is dual feasible, and its value is zero
            self.objective = self._value(self.lam)
            self.dual = max(self.dual, 0.0)
            self._record(0)
        gap = max(0.0, self.objective - self.dual)
        status = self.budget.status(self.converged, self.n_iter, self.progress.stalled)
        return Solution(self.coef, self.objective, gap, self.n_iter, status, self.record.trace)

    def _minimise_held(self) -> None:
        """Minimise over columns in memory, check all columns, load others, until none is
        missing.
        """
        size = 0
        while True:
            _, gradient = self._evaluate(self.Z)
            gap = self.objective - self.dual
            self._record(size)
            self.converged = gap <= self.budget.tol * self.objective
            if self.converged or self.progress.stalled or self.budget.spent(self.n_iter):
                return
            before = self.n_iter
            if 2 * np.count_nonzero(self.coef) <= self.held_limit:
                stored = CachedColumns(
                    self.Z, self._working(gradient, self.lam, self.held_limit, self.held_limit)
                )
                self.gram.restrict(stored.held)
                self._minimise(stored, 0.05 * gap)
                size = 0
            if self.n_iter == before:
                # Too many columns for the memory, or no progress among those in memory: one step
                # that computes them.
                size = self._step(self.Z, gradient, self.lam)
                if not size:
                    return

    def _minimise(self, Z: Matrix, allowed: float) -> bool:
        """Newton steps until the gap over the columns of Z is at most `allowed` or meets the
        tolerance.

        Returns whether it got there.
        """
        size = 0
        bound = -np.inf
        stage = 0.0 if self.coef.any() else np.inf
        while True:
            value, gradient = self._evaluate(Z)
            bound = max(bound, self.dual if Z is self.Z else value)
            if Z is self.Z or size:
                self._record(size)
            if self.objective - bound <= max(allowed, self.budget.tol * self.objective):
                return True
            if self.progress.stalled or self.budget.spent(self.n_iter):
                return False
            stage = max(self.lam, STAGE * min(stage, np.abs(gradient).max(initial=0.0)))
            size = self._step(Z, gradient, stage)
            if not size:
                return False

    def _evaluate(self, Z: Matrix) -> tuple[float, np.ndarray]:
        """(dual value, gradient) at the present coef; sets the objective, and the bound
        when all columns are seen.
        """
        derivative = self.loss.derivative(self.decision, self.y)
        gradient = Z.rmatvec(derivative)
        self.objective = self._value(self.lam)
        value = best_dual(self.loss, derivative, self.y, self.lam, gradient)[0]
        if self.dual_point is not None:
            other = best_dual(
                self.loss, self.dual_point, self.y, self.lam, Z.rmatvec(self.dual_point)
            )[0]
            value = max(value, other)
        if Z is self.Z:
            self.dual = max(self.dual, value)
        return value, gradient

    def _record(self, working: int) -> None:
        nnz = int(np.count_nonzero(self.coef))
        gap = max(0.0, self.objective - self.dual)
        self.record(
            self.coef.copy,
            iteration=self.n_iter,
            objective=self.objective,
            gap=gap,
            nnz=nnz,
            working=working,
        )

    def _step(self, Z: Matrix, gradient: np.ndarray, lam: float) -> int:
        """One proximal Newton step on a working set; returns its size, 0 if no progress is
        possible.
        """
        coef = self.coef
        wanted = self._working(gradient, lam, self.limit, max(128, 2 * int(np.count_nonzero(coef))))
        if len(wanted) == self.at_most:
            return 0
        if self.interior and self._interior_step(Z, wanted, lam):
            return len(wanted)
        self.dual_point = None
        weights = self.loss.second_derivative(self.decision, self.y)
        if self.curvature is not None:
            weights = np.maximum(weights, self.curvature)
        columns, H = self.gram.update(Z, wanted, weights)
        start = residual(H, gradient[columns], coef[columns], lam)
        # A residual of this size costs a third of the allowed gap.
        enough = 0.3 * self.budget.tol * self.objective / max(np.abs(coef).sum(), 1e-300)
        tolerance = max(0.1 * start, min(enough, 0.5 * start))
        flat = np.diagonal(H)[: len(columns)] <= 0
        for _ in range(4):
            x = coef[columns]
            q = gradient[columns]
            solve_quadratic(H, q, x, lam, tolerance)
            # Without curvature only the penalty matters.
            x[flat & (np.abs(gradient[columns]) <= lam)] = 0.0
            direction = np.zeros_like(coef)
            direction[columns] = x - coef[columns]
            along = Z.matvec(direction)
            t = l1_line_search(
                self.loss,
                self.y,
                self.decision,
                along,
                coef[columns],
                direction[columns],
                lam,
            )
            if t > 0.0:
                break
            # Solved too inaccurately to be a descent direction.
            tolerance *= 0.01
        else:
            return len(columns) if self._coarse() or self._shrink(lam) else 0
        if not 0.5 < t < 2.0:
            self._coarse()
        # After a short step, include the rows whose curvature it met on the way: few rows inside
        # the margin are not representative.
        self.curvature = (
            None
            if t > 0.5
            else np.maximum(weights, self.loss.second_derivative(self.decision + along, self.y))
        )
        possible = self.loss.name == "squared_hinge" and self.Z.rows_here
        self.interior = possible and (self.interior or t <= VERY_SHORT)
        coef[columns] = x if t == 1.0 else coef[columns] + t * direction[columns]
        self.decision += t * along
        self.n_iter += 1
        if lam == self.lam:
            self.progress(self._value(lam))
        return len(columns)

    def _coarse(self) -> bool:
        """Whether float32 prevented a full step, the only possible cause for the squared loss;
        float64 is used from here on.
        """
        return self.loss.name == "squared" and not self.Z.exact and self.gram.use_float64()

    def _shrink(self, lam: float) -> bool:
        """Scale all weights down: from a starting point too far away, where no row has curvature,
        no Newton step descends.
        """
        used = np.flatnonzero(self.coef)
        t = min(
            1.0,
            l1_line_search(
                self.loss,
                self.y,
                self.decision,
                -self.decision,
                self.coef[used],
                -self.coef[used],
                lam,
            ),
        )
        if t < SHRINK:
            return False
        self.coef *= 1.0 - t
        self.decision *= 1.0 - t
        self.n_iter += 1
        return True

    def _interior_step(self, Z: Matrix, columns: np.ndarray, lam: float) -> bool:
        """Minimise over these columns; False if they are too many or do not include all columns in
        use.

        Even if the minimum is no lower than the current point, its dual point may close the gap.
        """
        if len(columns) > self.float64_limit or np.count_nonzero(
            self.coef[columns]
        ) < np.count_nonzero(self.coef):
            self.interior = False
            return False
        labels, weights = labels_and_weights(self.loss, self.y)
        exact = Z.columns(columns).to_array().astype(np.float64, copy=False)
        roots = np.sqrt(weights)
        if isinstance(self.loss, Weighted):
            exact = exact * roots[:, None]
        x, alpha = hinge_interior_point(
            DenseMatrix(exact),
            labels,
            self.coef[columns],
            lam,
            0.3 * self.budget.tol,
            heights=roots,
        )
        before = self.coef, self.decision, self._value(lam)
        coef = np.zeros_like(self.coef)
        coef[columns] = x
        self.decision = Z.matvec(coef)
        self.coef = coef
        self.dual_point = -labels * roots * alpha
        if self._value(lam) >= before[2]:
            self.coef = before[0]
            self.decision = before[1]
            self.interior = False
        self.n_iter += 1
        return True

    def _value(self, lam: float) -> float:
        return float(lam * np.abs(self.coef).sum() + self.loss.value(self.decision, self.y).sum())

    def _working(self, gradient: np.ndarray, lam: float, limit: int, size: int) -> np.ndarray:
        """At most `limit` columns to work on: those with nonzero weight and the largest violations,
        `size` in all; sorted.
        """
        coef = self.coef
        at_zero = np.maximum(np.abs(gradient) - lam, 0.0)
        score = np.where(coef == 0, at_zero, np.abs(gradient + lam * np.sign(coef)))
        used = coef != 0
        if np.count_nonzero(used) <= limit // 2:
            score[used] = np.inf
        candidates = np.flatnonzero(score > 0)
        size = min(limit, size)
        if len(candidates) > size:
            candidates = candidates[np.argsort(-score[candidates], kind="stable")[:size]]
        return np.sort(candidates)
