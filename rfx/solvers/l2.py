"""L2-regularised classification: min_w lam/2 ||w||^2 + sum_n L(z_n.w, y_n) (Yen et al. 2014,
equation 5).

Newton's method; each step uses conjugate gradients on the rows with curvature (inside the margin,
for squared hinge), with a preconditioner, and an exact line search. For a smooth loss u = L'(Z w)
attains equality in Fenchel's inequality, so objective minus dual value -sum L*(u, y) - ||Z'u||^2 /
(2 lam) is ||gradient||^2 / (2 lam): the certificate costs nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from rfx.losses import Loss, SmoothLoss, labels_and_weights
from rfx.operators.blocks import default_memory_mb
from rfx.operators.cached import hold_part
from rfx.operators.cg import conjugate_gradients
from rfx.operators.coded import code_type
from rfx.operators.factors import Factor, sampled_factor
from rfx.operators.matrix import READ, Matrix
from rfx.parallel import Late, until
from rfx.solvers.base import (
    Budget,
    Callback,
    Certificate,
    Filled,
    Progress,
    Recorder,
    Solution,
    check_problem,
    start,
)
from rfx.solvers.line_search import line_minimum

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
_COMPUTED, _READ, _TEN = 1e12, 7e11, 10
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
    `check_problem`.
    """
    y = check_problem(Z, y, lam, loss)
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
    return Solution(
        w, objective, Certificate("gap", gap), newton.n_iter, status, newton.record.trace
    )


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
        self.n_iter, self.rows, self.steps, self.last, self.since = 0, 0, 0, 0, 0.0
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
        self.progress, rows = Progress(_STALL, _MOVED * problem.tol), len(problem.y)
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
        uses, rate = len(chosen) * part.cost, _COMPUTED if part.computed else _READ
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
        self.y, self.lam, self.loss, self.tol = y, lam, loss, tol
        start = time.monotonic()
        error = 0.5 * _CODES * tol * lam / labels_and_weights(loss, y)[1].max()
        kind = code_type(Z, error) if Z.cost > READ else None
        self.held = hold_part(Z, limit_mb, kind)
        self.exact, self.seconds = kind is None or self.held is Z, time.monotonic() - start
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
            value, g = self.loss.value(f, self.y).sum(), Z.rmatvec(self.loss.derivative(f, self.y))
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
    least, levels = _LEVEL_LAM * squares * labels_and_weights(loss, y)[1].mean(), []
    while counts or least * len(y) > lam:
        count = counts.pop(0) if counts else len(y)
        levels.append((count, count * max(lam / len(y), least)))
        least *= _LEVEL_SHARE
    return levels
