"""L2-regularised classification, in the features or in the span of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from rfx.losses import Loss, SmoothLoss, Squared, labels_and_weights
from rfx.operators.blocks import default_memory_mb
from rfx.operators.factors import Factor, sampled_factor
from rfx.operators.linear_algebra import conjugate_gradients, dots, ratio
from rfx.operators.mapped import code_type, hold_part
from rfx.operators.matrix import READ, Matrix
from rfx.parallel import Late, until
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Progress,
    Recorder,
    Solution,
    TraceEntry,
    checked,
    line_minimum,
    start,
    start_rows,
)

# ----------------------------------------------------------------------
# L2-regularised classification: min_w lam/2 ||w||^2 + sum_n L(z_n.w, y_n) (Yen et al. 2014,
# equation 5).
#
# Newton's method; each step uses conjugate gradients on the rows with curvature (inside the margin,
# for squared hinge), with a preconditioner, and an exact line search. For a smooth loss u = L'(Z w)
# attains equality in Fenchel's inequality, so objective minus dual value -sum L*(u, y) - ||Z'u||^2
# / (2 lam) is ||gradient||^2 / (2 lam): the certificate costs nothing.

# Rows for estimating the sum of squares of all features.
_SAMPLE = 64
# Minimum rows of subsets, which must represent the whole; below four times as many, the whole is
# solved directly.
_SMALLEST_LEVEL = 1000
# Their relative gap: it hardly affects the distance of the next starting point from its optimum
# (docs/benchmarks.md). They also end after a step that reduces the objective by less than this
# fraction of its value at zero: that of fewer rows than features is near zero, and Newton's method
# approaches it for a hundred steps without a better starting point.
_LEVEL_TOLERANCE, _LEVEL_GAIN = 0.3, 3e-3
# The smallest lambda of the first level, relative to the sum of squares of its features, and its
# fraction in the next: Newton's steps for squared hinge loss are short if lambda is tiny, but not
# if they start at the solution of a larger one.
_LEVEL_LAM, _LEVEL_SHARE = 1e-5, 0.1
# Conjugate gradient steps above which a new preconditioner, from more rows, may be worthwhile.
_PATIENCE = 12
# Multiple of the requested gap below which one more step is expected to suffice, and the relative
# residual of that step.
_NEAR, _RESIDUAL = 30, 0.1
# Fraction of the memory for the preconditioner; the rest is for stored rows.
_FACTOR = 0.3
# Newton steps after which it has stalled if they reduced the objective by less than this fraction
# of the tolerance.
_STALL, _MOVED = 5, 1e-2
# A factor of m rows costs ten products of n rows if m^2 is this times n times the seconds per use
# of an entry; for computed features it is an overestimate.
_COMPUTED = 1e12
_READ = 7e11
_TEN = 10
# Fraction of the tolerance allowed for code errors: u = L'(f) has u^2 <= 4 L(f) for every loss
# here, so code errors of norm e per row add about 2 e^2 / lam of the objective to the gap through
# Z'u (and some through u, depending on the norm of w).
_CODES = 0.5
# Fraction of the tolerance to which a problem of codes is solved: another step there costs less
# than one with the features, which is needed if code errors and the remaining gap together exceed
# the tolerance.
_OWN = 0.2
# Passes over the features for which time is reserved at the end.
_KEPT = 1.5


def solve_l2(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
) -> Solution:
    """The minimiser (D,) for one output.

    Z: the (N, D) features. y: (N,) labels in {-1, +1} (any targets for squared loss). loss:
    SquaredHinge, Logistic or Squared. budget: tol is the relative duality gap (1e-4), max_iter are
    Newton steps (100; n_iter counts them), memory_mb is for the preconditioner and stored rows.
    warm: (D,) starting point; without it, one is found on increasing subsets of the rows, whose
    sizes are `rows` in the trace, and with decreasing lambdas. Raises UsageError like
    `checked`.
    """
    y = checked(y, loss)
    budget = budget.filled(tol=1e-4, max_iter=100, memory_mb=default_memory_mb())
    # the value at zero, known without the features; its dual value is zero
    at_zero = float(loss.value(np.zeros_like(y), y).sum())
    reached = np.zeros(Z.shape[1]), at_zero, at_zero
    newton = _Newton(loss, len(y), budget, Recorder(callback), reached)
    w = start(warm, Z.shape[1:])
    try:
        with until(budget.deadline):
            whole = newton.problem(Z, y, lam, budget.tol)
            if warm is None:
                source = whole.held if whole.held.cost <= READ else Z
                levels = _levels(source, y, lam, loss)
                # small ones of rows on workers are fetched before these store theirs, and solved
                # meanwhile
                parts = {n: source.subset(n) for n, _ in levels if n < len(y)}
                for count, level_lam in levels:
                    part, chosen = parts.get(count, (whole.held, None))
                    # rows of in-memory matrices need no copy
                    if count < len(y) and part.cost > READ:
                        part = part.hold(budget.memory_mb / 2)
                    w = newton.run(
                        newton.problem(
                            part, y if chosen is None else y[chosen], level_lam, _LEVEL_TOLERANCE
                        ),
                        w,
                    )
            newton.run(whole, w, final=True)
        status = budget.status(newton.converged, newton.n_iter, newton.progress.stalled)
    except Late:
        status = "timeout"
    w, objective, gap = newton.reached
    return Solution(w, objective, gap, newton.n_iter, status, newton.record.trace)


def l2_certificate(
    Z: Matrix, y: np.ndarray, coef: np.ndarray, lam: float, loss: Loss
) -> tuple[float, float]:
    """(objective, duality gap) of any coef (D,), for any loss of rfx.losses, in one pass over the
    features.

    The dual point is u = L'(Z w), which is feasible for each of them; y (N,) as in `solve_l2`.
    """
    y = np.asarray(y, dtype=np.float64)
    w = np.asarray(coef, dtype=np.float64)
    f, value, v = Z.loss_pass(w, loss, y)
    u = loss.derivative(f, y)
    objective = 0.5 * lam * float(w @ w) + float(value)
    # term by term (Fenchel-Young) instead of objective minus dual value, which would cancel
    fenchel = float(np.sum(loss.value(f, y) + loss.conjugate(u, y) - u * f))
    residual = lam * w + v
    return objective, max(0.0, fenchel) + float(residual @ residual) / (2 * lam)


@dataclass
class _Newton:
    """Newton's method on increasing sets of rows: state shared by steps and sets."""

    loss: SmoothLoss
    n_rows: int
    budget: Filled
    record: Recorder
    reached: tuple[np.ndarray, float, float]

    def __post_init__(self) -> None:
        self.factor: Factor | None = None
        self.n_iter = 0
        self.rows = 0
        self.steps = 0
        self.last = 0
        self.since = 0.0
        self.at_zero = self.reached[1]

    def problem(self, Z: Matrix, y: np.ndarray, lam: float, tol: float) -> _Problem:
        """The problem of these rows, to be solved to relative gap `tol`."""
        return _Problem(Z, y, lam, self.loss, (1 - _FACTOR) * self.budget.memory_mb, tol)

    def run(self, problem: _Problem, w: np.ndarray, final: bool = False) -> np.ndarray:
        """Solve to the problem's gap, starting from w.

        final: the problem of all rows and the given lambda; `reached` is then (w, objective, gap)
        of its last point evaluated with computed features. Late may be raised.
        """
        self.final = final
        self.progress = Progress(_STALL, _MOVED * problem.tol)
        rows = len(problem.y)
        if rows < self.n_rows:
            self.progress = Progress(1, 0.0, _LEVEL_GAIN * self.at_zero * rows / self.n_rows)
        start = time.monotonic()
        point = problem.at(w)
        kept = _KEPT * (problem.seconds + time.monotonic() - start) if final else 0.0
        try:
            while True:
                if not self._ended(problem, point):
                    with until(self._end(0.0 if problem.exact else kept)):
                        point = problem.search(point, self.direction(problem, point))
                    self.n_iter += 1
                elif problem.exact or not final:
                    return point.w
                else:
                    point = problem.look(point.w)
        except Late:
            if problem.exact or not final:
                raise
            self._ended(problem, problem.look(point.w))
            if not self.converged:
                raise
            return point.w

    def _end(self, kept: float) -> float | None:
        deadline = self.budget.deadline
        return None if deadline is None else deadline - kept

    def _ended(self, problem: _Problem, point: _Point) -> bool:
        """Whether to stop at this point; it is reported."""
        gap = float(point.g @ point.g) / (2 * problem.lam)
        at = {
            "iteration": self.n_iter,
            "rows": len(problem.y),
            "objective": point.objective,
            "gap": gap,
        }
        self.record(lambda now=point.w: now, **at, cg=self.steps, sampled=self.rows)
        self.steps = 0
        self.converged = gap <= problem.goal * point.objective
        if self.final and problem.exact:
            self.reached = point.w, point.objective, gap
        return self.converged or self.progress(point.objective) or self.budget.spent(self.n_iter)

    def direction(self, problem: _Problem, point: _Point) -> np.ndarray:
        """Newton's direction, with a residual of a small fraction of the gradient (or of the amount
        allowed by the certificate).
        """
        weights = self.loss.second_derivative(point.f, problem.y)
        chosen = np.flatnonzero(weights > 0)
        if len(chosen) == 0:
            return -point.g / problem.lam
        every = len(chosen) == len(problem.y) and not problem.held.computed
        part = problem.held if every else problem.held.rows(chosen)
        weights = weights[chosen]
        uses = len(chosen) * part.cost
        rate = _COMPUTED if part.computed else _READ
        squares = float(point.g @ point.g)
        near = squares <= 2 * problem.lam * _NEAR * problem.goal * point.objective
        if self._due(len(chosen), uses * rate, near):
            self.factor = None
            self.factor = sampled_factor(
                part, weights, problem.lam, self.rows, _FACTOR * self.budget.memory_mb
            )
            self.since = 0.0
        assert self.factor is not None
        bound = max(_RESIDUAL**2 * squares, problem.lam * problem.goal * point.objective)
        step, _, self.last = conjugate_gradients(
            lambda p: problem.lam * p + part.normal(p, weights),
            -point.g,
            self.factor,
            lambda x, r: float(r @ r) <= bound,
            200,
            self.budget.deadline,
        )
        self.steps = self.last
        self.since += self.last * uses * rate / _TEN
        return step

    def _due(self, count: int, most: float, near: bool) -> bool:
        """Whether to compute a new factor of `rows` rows (set here); most: their number for which
        it costs ten products.

        A later factor has at least twice the rows. It is computed when the steps since the previous
        one, including those of this direction if they equal the last direction's, cost as much as
        the factor.
        """
        rows = min(count, max(1024, int(np.sqrt(most)), 2 * self.rows))
        ahead = self.last * most / _TEN
        if self.factor is not None and (
            near or self.last <= _PATIENCE or self.since + ahead < rows**2
        ):
            return False
        self.rows = rows
        return True


@dataclass
class _Point:
    """w, its predictions f = Z w, the objective and the gradient there."""

    w: np.ndarray
    f: np.ndarray
    objective: float
    g: np.ndarray


class _Problem:
    """lam/2 ||w||^2 + sum L(Z w, y) on one set of rows.

    exact: whether `at` uses the features themselves, instead of codes, which are stored if lam and
    tol allow it. seconds: for storing them.
    """

    def __init__(
        self, Z: Matrix, y: np.ndarray, lam: float, loss: SmoothLoss, limit_mb: float, tol: float
    ) -> None:
        self.y = y
        self.lam = lam
        self.loss = loss
        self.tol = tol
        start = time.monotonic()
        error = 0.5 * _CODES * tol * lam / labels_and_weights(loss, y)[1].max()
        kind = code_type(Z, error) if Z.cost > READ else None
        self.held = hold_part(Z, limit_mb, kind)
        self.exact = kind is None or self.held is Z
        self.seconds = time.monotonic() - start
        self.Z = self.held if self.exact else Z

    @property
    def goal(self) -> float:
        """The relative gap to which it is solved with the features or codes of `at`."""
        return self.tol if self.exact else _OWN * self.tol

    def look(self, w: np.ndarray) -> _Point:
        """The point w, using the features themselves from here on."""
        self.exact = True
        return self.at(w)

    def at(self, w: np.ndarray, f: np.ndarray | None = None) -> _Point:
        """The point w, in one pass over the features; f if the predictions are known."""
        Z = self.Z if self.exact else self.held
        if f is None:
            f, value, g = Z.loss_pass(w, self.loss, self.y)
        else:
            value = self.loss.value(f, self.y).sum()
            g = Z.rmatvec(self.loss.derivative(f, self.y))
        return _Point(w, f, 0.5 * self.lam * float(w @ w) + float(value), g + self.lam * w)

    def search(self, start: _Point, p: np.ndarray) -> _Point:
        """The next point on w + t p: t = 1 if the objective is nearly stationary along p there,
        else its minimum.
        """
        end = self.at(start.w + p)
        slope = float(start.g @ p)
        if end.objective <= start.objective + 1e-4 * slope and abs(float(end.g @ p)) <= 0.5 * abs(
            slope
        ):
            return end
        change = end.f - start.f
        t = line_minimum(
            self.loss,
            start.f,
            change,
            self.y,
            self.lam * float(start.w @ p),
            self.lam * float(p @ p),
        )
        return self.at(start.w + t * p, start.f + t * change)


def _levels(Z: Matrix, y: np.ndarray, lam: float, loss: SmoothLoss) -> list[tuple[int, float]]:
    """(rows, lambda) of the problems for finding the starting point, each from the last one's
    solution.
    """
    counts = [count for part in (64, 16, 4) if (count := len(y) // part) >= _SMALLEST_LEVEL]
    sample = Z.subset(_SAMPLE)[0]
    squares = float(sample.squares().sum()) / sample.shape[0]
    least = _LEVEL_LAM * squares * labels_and_weights(loss, y)[1].mean()
    levels = []
    while counts or least * len(y) > lam:
        count = counts.pop(0) if counts else len(y)
        levels.append((count, count * max(lam / len(y), least)))
        least *= _LEVEL_SHARE
    return levels


# ----------------------------------------------------------------------
# L2 regularisation in the span of the rows: min_w lam/2 ||w||^2 + sum_n L(z_n.w, y_n) for matrices
# with many more columns than rows.
#
# The weights are w = Z'a with one a per row, so everything is a vector over rows and only products
# with Z Z' are needed. This suits random binning features (Wu et al. 2016, eq. 8), which compute
# and use the sums of a grid's bins while they are in cache. Z Z' has ones on its diagonal there, so
# for ridge regression a diagonal preconditioner would change nothing. The duality gap is that of u
# = -lam a, where Z'u = -lam w leaves only Fenchel's sum L(f) + L*(u) - u f (for ridge regression,
# half the squared residual), or that of u = L'(f), where only ||lam w + Z'u||^2 / (2 lam) is left.

# (v, K v, curvatures, accuracy) -> Newton's direction, see `newton`
Direction: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]
_RESTART = 500
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
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
) -> DualSolution:
    """lam/2 ||W||^2 + 1/2 ||Z W - Y||^2 by conjugate gradients, all outputs at once.

    The steps are those of conjugate gradients on (Z'Z + lam) W = Z'Y, as in the paper, with W =
    Z'A: the inner products of directions Z'P are P'(Z Z')P, and one product with Z Z' per step is
    enough.

    Z: (N, D) features. Y: (N,) or (N, k). budget: tol is the relative duality
    gap of each output (1e-3), max_iter are conjugate gradient steps (1000; n_iter counts them).
    warm: a dual to start from.
    """
    Y = checked(Y, Squared)
    record = Recorder(callback)
    budget = budget.filled(tol=1e-3, max_iter=1000)
    A = start_rows(warm, Y)
    n_iter = 0
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
            objective = float(objectives.sum())
            gap = float(gaps.sum())
            record(lambda now=A: Z.rmatvec(now), iteration=n_iter, objective=objective, gap=gap)
            solved = bool(np.all(gaps <= budget.tol * objectives))
            stopped = budget.spent(n_iter)
            if solved or stopped or n_iter - first >= _RESTART:
                break
            beta = ratio(squares, before)
            P = R + beta * P
            KP = KR + beta * KP
            before = squares
            image = KP + lam * P
            step = ratio(squares, dots(KP, image))
            A = A + step * P
            F = F + step * KP
            R = R - step * image
            n_iter += 1
        # values updated in every step are recomputed before they are used
        if n_iter == first or stopped:
            break
    status = budget.status(solved, n_iter)
    return DualSolution(Z.rmatvec(A), objective, gap, n_iter, status, record.trace, dual=A)


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
    on its diagonal, its preconditioner. Raises UsageError like `checked`.
    """
    y = checked(y, loss)
    budget = budget.filled(tol=1e-3, max_iter=100)
    record = Recorder(None if callback is None else _for_weights(callback, Z))
    direction = partial(_direction, Z, lam, budget.deadline)
    found = newton(
        Z.outer, direction, y, lam, loss, budget, start_rows(warm, y), record, patience=np.inf
    )
    return DualSolution(**vars(found) | {"coef": Z.rmatvec(found.coef)}, dual=found.coef)


def _for_weights(callback: Callback, Z: Matrix) -> Callback:
    """The callback of a solver of the dual, which receives the weights of each step."""

    def tell(entry: TraceEntry, dual: Callable[[], np.ndarray]) -> None:
        callback(entry, lambda: Z.rmatvec(dual()))

    return tell


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
        u = loss.derivative(f, y)
        curvature = loss.second_derivative(f, y)
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
                gap,
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
        a = a + t * q
        f = f + t * Kq
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
    lam: float,
    deadline: float | None,
    v: np.ndarray,
    Kv: np.ndarray,
    curvature: np.ndarray,
    accuracy: float,
) -> np.ndarray:
    """q with ||lam q + d Z Z'q + v|| <= accuracy ||v||."""
    q = -v / lam
    chosen = np.flatnonzero(curvature > _FLAT * max(curvature.max(), _FLAT))
    if len(chosen) == 0:
        return q
    part = Z if len(chosen) == len(v) else Z.rows(chosen)
    roots = np.sqrt(curvature[chosen])
    diagonal = lam + roots**2

    def product(p: np.ndarray) -> np.ndarray:
        return lam * p + roots * part.outer(roots * p)

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
