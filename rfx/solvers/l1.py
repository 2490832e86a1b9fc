"""L1-regularised linear machines: min_w lam ||w||_1 + sum_n L(z_n . w, y_n), un-normalised, without a bias.

Yen et al. 2014, eq. 9 (sparse random features), for the squared, the squared hinge and the logistic loss. A working
set of columns grows by violation; on it, proximal Newton steps: the Gram matrix of the working columns over the rows
with curvature gives a small quadratic problem with an l1 term, and a line search on the true objective takes the step.
Stopping test and certificate are the duality gap over all columns.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from rfx.errors import UsageError
from rfx.solvers.base import Solution
from rfx.solvers.l1_design import as_design
from rfx.solvers.l1_gram import GramCache
from rfx.solvers.l1_quadratic import residual, solve_quadratic

LOSSES = ("squared", "squared_hinge", "logistic")


def lambda_max(blocks, y, loss) -> float:
    """The smallest lam at which zero is optimal: ||Z' L'(0, y)||_inf."""
    y = np.asarray(y, np.float64)
    design = as_design(blocks)
    return float(np.max(np.abs(design.gradient(loss.derivative(np.zeros(len(y)), y))), initial=0.0))


def solve_l1(
    blocks,
    y,
    lam,
    loss,
    *,
    coef0=None,
    tol=1e-4,
    max_iter=200,
    working=None,
    deadline=None,
    gram=None,
    memory_mb=1024.0,
) -> Solution:
    """Minimise lam ||w||_1 + sum_n L(z_n . w, y_n) until the relative duality gap is at most `tol`.

    blocks: ArrayBlocks, MapBlocks (or another walk over row blocks), ndarray in either order or scipy sparse, (N, D).
    y: (N,) targets; -1 and +1 for the squared hinge and the logistic loss. loss: a class of rfx.losses.
    coef0: (D,) warm start. tol: on gap / objective. max_iter: Newton steps.
    working: largest number of columns in the working set (default: as many as the Gram matrix may have in `memory_mb`).
    deadline: value of time.monotonic() after which no new step starts.
    gram: a GramCache to reuse between calls on the same rows, see there.
    memory_mb: bound on working memory in MiB, for the Gram matrix and, when blocks are recomputed, for a copy of the
        working columns.

    The Solution's coef is (D,), its gap the absolute duality gap, its trace one entry per Newton step: `iteration`,
    `objective`, `gap`, `nnz`, `working`, `seconds`. `converged` is False when max_iter or the deadline came first.

    Raises UsageError when lam is not positive, when the loss is not one of the three, when shapes disagree, or when
    labels are not -1 and +1.
    """
    if loss.name not in LOSSES:
        raise UsageError(f"loss {loss.name!r} has no L1 solver; choose one of {', '.join(LOSSES)}")
    if not (np.isfinite(lam) and lam > 0):
        raise UsageError(f"lam is {lam}; it must be a positive number")
    design = as_design(blocks)
    y = _targets(y, design.shape[0], loss)
    problem = _Problem(design, y, float(lam), loss, coef0, gram if gram is not None else GramCache())
    problem.tol, problem.max_iter, problem.deadline = tol, max_iter, deadline
    problem.limit = working or max(64, int(np.sqrt(memory_mb * 2**20 / 8 / 3)))
    problem.run()
    gap = problem.objective - problem.dual
    return Solution(
        coef=problem.coef,
        objective=problem.objective,
        gap=max(0.0, gap),
        n_iter=problem.n_iter,
        converged=problem.converged,
        trace=problem.trace,
    )


def path_l1(blocks, y, lams, loss, *, coef0=None, gram=None, **options) -> list[Solution]:
    """Solutions for each of `lams` (taken from large to small), each started at the one before.

    Takes the options of solve_l1. Each Solution has its own gap; the number of non-zeros is in its trace's last entry.
    """
    design = as_design(blocks)
    gram = gram if gram is not None else GramCache()
    solutions = []
    for lam in sorted(lams, reverse=True):
        solutions.append(solve_l1(blocks, y, lam, loss, coef0=coef0, gram=gram, **options))
        coef0 = solutions[-1].coef
    return solutions


def _targets(y, rows, loss):
    y = np.ascontiguousarray(y, dtype=np.float64)
    if y.shape != (rows,):
        raise UsageError(f"y has shape {y.shape}; the features have {rows} rows, so it must be ({rows},)")
    if loss.name != "squared" and not np.all(np.abs(y) == 1.0):
        raise UsageError(f"the labels of the {loss.name} loss must be -1 and +1")
    return y


@dataclass
class _Problem:
    design: object
    y: np.ndarray
    lam: float
    loss: type
    coef0: np.ndarray | None
    gram: GramCache
    tol: float = 1e-4
    max_iter: int = 200
    deadline: float | None = None
    limit: int = 4096
    trace: list = field(default_factory=list)

    def run(self):
        self.coef = np.zeros(self.design.shape[1]) if self.coef0 is None else np.array(self.coef0, np.float64)
        if self.coef.shape != (self.design.shape[1],):
            raise UsageError(f"coef0 has shape {self.coef.shape}; there are {self.design.shape[1]} columns")
        self.decision = self.gram.recall(self.coef)
        if self.decision is None:
            self.decision = self.design.predict(self.coef)
        self.dual, self.n_iter, self.converged = -np.inf, 0, False
        began = time.monotonic()
        size = 0
        while True:
            derivative = self.loss.derivative(self.decision, self.y)
            gradient = self.design.gradient(derivative)
            self.objective = self.lam * np.abs(self.coef).sum() + self.loss.value(self.decision, self.y).sum()
            self.dual = max(self.dual, self._dual_value(derivative, gradient))
            gap = self.objective - self.dual
            nnz = np.count_nonzero(self.coef)
            self.trace.append(
                dict(iteration=self.n_iter, objective=self.objective, gap=max(0.0, gap), nnz=nnz, working=size,
                     seconds=time.monotonic() - began)
            )
            if gap <= self.tol * max(self.objective, 1e-300):
                self.converged = True
                break
            if self.n_iter >= self.max_iter or (self.deadline is not None and time.monotonic() > self.deadline):
                break
            size = self._step(gradient)
            if not size:
                break
            self.n_iter += 1
        self.gram.remember(self.coef, self.decision)

    def _step(self, gradient):
        """One proximal Newton step on a working set; returns its size, 0 when no progress is possible."""
        lam, coef = self.lam, self.coef
        violation = np.where(coef == 0, np.maximum(np.abs(gradient) - lam, 0.0), np.abs(gradient + lam * np.sign(coef)))
        wanted = self._working(violation)
        self.gram.update(self.design, wanted, self.loss.second_derivative(self.decision, self.y))
        columns = self.gram.columns
        x, q = coef[columns], gradient[columns]
        start = residual(self.gram.matrix, q, x, lam)
        # A violation of this size costs a third of the gap that is allowed.
        enough = 0.3 * self.tol * self.objective / max(np.abs(x).sum(), 1e-300)
        left, rounds = solve_quadratic(self.gram.matrix, q, x, lam, max(0.1 * start, min(enough, 0.5 * start)))
        self.trace[-1].update(viol=start, left=left, fac=rounds)
        direction = np.zeros_like(coef)
        direction[columns] = x - coef[columns]
        along = self.design.predict(direction)
        t = self._line_search(direction[columns], coef[columns], along)
        self.trace[-1].update(t=t)
        if t == 0.0:
            return 0
        if t == 1.0:
            coef[columns] = x
        else:
            coef[columns] += t * direction[columns]
        self.decision += t * along
        return len(columns)

    def _working(self, violation):
        """Columns to work on: those with a weight, and as many violators again (at least 128)."""
        used = self.coef != 0
        score = np.where(used, np.inf, violation)
        size = min(self.limit, max(128, 2 * np.count_nonzero(used)))
        candidates = np.flatnonzero(score > 0)
        if len(candidates) > size:
            order = np.argsort(-score[candidates], kind="stable")
            candidates = candidates[order[:size]]
        return np.sort(candidates)

    def _line_search(self, p, x, along):
        """Step t >= 0 that minimises the true objective along the direction, 1 when that is nearly as good."""
        loss, y, f, lam = self.loss, self.y, self.decision, self.lam

        def slope(t, side=1.0):
            moved = x + t * p
            sign = np.where(moved != 0, np.sign(moved), side * np.sign(p))
            return lam * (sign @ p) + along @ loss.derivative(f + t * along, y)

        first = slope(0.0)
        if not first < 0:
            return 0.0
        # Many coordinates reach zero exactly at t = 1, where the slope jumps: both sides of it matter.
        if slope(1.0, -1.0) <= -0.5 * first and slope(1.0) >= 0.5 * first:
            return 1.0
        low, high = 0.0, 1.0
        while slope(high) < 0 and high < 16:
            low, high = high, 2 * high
        for _ in range(12):
            middle = 0.5 * (low + high)
            if slope(middle) < 0:
                low = middle
            else:
                high = middle
        return low if low > 0 else high

    def _dual_value(self, derivative, gradient):
        """Value at the best multiple s * L'(f) that satisfies ||Z'u||_inf <= lam (and clip_dual's range)."""
        return dual_value(self.loss, derivative, self.y, self.lam, gradient)


def dual_value(loss, derivative, y, lam, gradient):
    """Dual objective -sum_n L*(u_n, y_n) at the best feasible u = s * derivative, where gradient = Z' derivative.

    For the squared and the squared hinge loss the best s is in closed form; for the logistic loss s <= 1 keeps u in
    the conjugate's domain.
    """
    largest = np.max(np.abs(gradient), initial=0.0)
    bound = lam / largest if largest > 0 else np.inf
    if loss.name == "logistic":
        s = min(1.0, bound)
    else:
        quadratic = (1.0 if loss.name == "squared" else 0.5) * (derivative @ derivative)
        s = min(bound, max(0.0, -(derivative @ y) / quadratic)) if quadratic > 0 else 1.0
    u = loss.clip_dual(s * derivative, y)
    return -float(loss.conjugate(u, y).sum())
