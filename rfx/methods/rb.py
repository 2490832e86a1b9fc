"""`rb`: random binning features, L2-regularised (Wu et al. 2016, equation 8).

lam/2 ||w||^2 + sum L(w.z(x), y), where z is 1/sqrt(R) in one bin of each of R grids; no bias. The
loss is squared by default, for classes too, as in the paper; lam is not multiplied by the number of
rows. With --grow, the fraction of rows to hold out, R doubles up to --n-grids as long as that
reduces their error. The results row has the R (`n_grids`) with which the model was then fitted to
all rows, and `growth` has the error of every R tried.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from rfx.features.binning import BinningMap, Bins
from rfx.fitting import weights
from rfx.fitting.binned import (
    N_GRIDS,
    BinnedMethod,
    BinnedModel,
    fitted,
    numbered,
    solve_liblinear_each,
    step_callback,
)
from rfx.fitting.cache import Cache
from rfx.fitting.method import Fitted, Method, budget
from rfx.fitting.options import CHOSEN_LAM, LIBLINEAR, SOLVER
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.validation import GAMMA_FACTORS, LAMS, error, held_out
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.operators.binned import BinnedMatrix
from rfx.options import Chosen, option
from rfx.solvers.base import Budget, for_output, stack
from rfx.solvers.dual_l2 import DualSolution, solve_dual_l2, solve_dual_ridge

# --grow: the first number of grids; the minimum relative reduction of the held-out error for
# doubling again.
FIRST, GAIN = 16, 0.01
# Relative duality gap while R grows: sufficient to compare errors.
GROW_TOL = 1e-2
# Maximum grids for the validation of gamma and lambda.
TRIED = 128
# Grids if --n-grids is not given: MANY; for more rows, PAIRS pairs of a row and a grid, but at
# least FEW.
MANY, FEW, PAIRS = 1024, 256, 2**24


class RB(BinnedMethod):
    """Random binning features with L2 regularisation."""

    name = "rb"
    summary = (
        "random binning features with L2 regularisation: approximates the Laplacian kernel machine"
    )
    default_loss = "squared"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    distributed = True
    n_grids: int | None = N_GRIDS(
        default=None,
        help=(
            f"{N_GRIDS.help} By default {MANY}; fewer above {PAIRS // MANY} rows, and {FEW}"
            f" from {PAIRS // FEW} rows."
        ),
    )
    lam: float | Chosen = CHOSEN_LAM()
    grow: float | None = option(
        None,
        "Fraction of the training rows to hold out. R doubles from 16 up to --n-grids as long as"
        " that reduces their error by at least 1 %; the model is then fitted to all rows.",
        above=0,
        most=0.5,
    )
    solver: str | None = SOLVER.adding(LIBLINEAR)(default=None)
    class_weight: str | None = CLASS_WEIGHT()

    def count(self, X: Any) -> int:
        return self.n_grids or min(MANY, max(FEW, PAIRS // X.shape[0]))

    def entry_bytes(self, number: int) -> int:
        # while R grows there is a copy of the training part, and one of the numbers
        return 3 * number if self.grow else number

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock, grids = Clock(), self.grids(problem)
        start, details = None, {}
        if self.grow is None:
            bins, Z = clock.timed("features", numbered, grids, problem.X)
        else:
            bins, Z, start, growth = _grown(grids, problem, self, clock)
            details = {"growth": growth}
        callback = step_callback(problem, grids.select(slice(0, Z.n_grids)), bins)
        if self.solver == "liblinear":
            solution = solve_liblinear_each(Z, problem, self, "l2", callback)
        else:
            limits = budget(problem, self)
            solution = _solved(Z, problem, self.lam, start, limits, callback)
        return fitted(grids, bins, Z, solution, clock, details)

    def trial(self) -> Self:
        # more grids estimate the same kernel better, at the same cost per grid
        grids = min(self.n_grids or TRIED, TRIED)
        return super().trial().updated(grow=None, n_grids=grids)

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        # all lambdas over the same grids, each started at the previous solution
        grids, limits = self.grids(problem), budget(problem, self)
        bins, Z = numbered(grids, problem.X)
        dual = None
        for lam in lams:
            solution = _solved(Z, problem, lam, dual, limits)
            dual = solution.dual
            yield BinnedModel.of(grids, bins, Z, solution.coef).decision(X_out)


def _solved(
    Z: Any, problem: Problem, lam: float, start: Any, limits: Budget, callback: Any = None
) -> DualSolution:
    """coef (D, k) and dual (n, k) of the problem's rows; start: a dual of fewer grids."""
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    if loss.name == "squared":
        return solve_dual_ridge(Z, Y, lam, loss, limits, start, callback)
    outputs: list[Any] = []
    for k in range(Y.shape[1]):
        own = None if start is None else start[:, k]
        tell = for_output(callback, k)
        outputs.append(solve_dual_l2(Z, Y[:, k], lam, loss, limits, own, tell))
    dual = np.stack([one.dual for one in outputs], axis=1) if Z.rows_here else None
    return DualSolution(**vars(stack(outputs)), dual=dual)


def _grown(
    grids: BinningMap, problem: Problem, method: Method, clock: Clock
) -> tuple[Bins, BinnedMatrix, np.ndarray, list]:
    """(bins, features, initial dual, error by R) with the number of grids determined by held-out
    rows.

    Every Z Z' estimates the same kernel, so the dual of R grids is a starting point for 2R, and
    zero is one for the held-out rows.
    """
    given = f"--grow is {method.grow:g}"
    kept, out = held_out(problem.n_rows, method.grow, method.seed, given, problem.apart)
    some, others = replace(problem, X=None, Y=problem.Y[kept]), problem.Y[out]
    some = replace(some, weights=weights.part(problem.weights, kept))
    own = weights.part(problem.weights, out)
    lam, limits = method.lam * len(kept) / problem.n_rows, budget(problem, method)
    limits = replace(limits, tol=max(GROW_TOL, limits.tol or 0.0))
    ids = np.empty((0, problem.n_rows), np.uint16)
    bins, dual = Bins(np.empty(0, np.uint64), np.zeros(1, np.int64)), None
    growth: list = []
    best = np.inf
    size = min(FIRST, grids.n_grids)
    while True:
        more = grids.select(slice(len(ids), size))
        new, numbers = clock.timed("features", numbered, more, problem.X)
        ids = np.concatenate([ids, numbers.ids]) if len(ids) else numbers.ids
        starts = np.concatenate([bins.starts, bins.starts[-1] + new.starts[1:]])
        bins = Bins(np.concatenate([bins.keys, new.keys]), starts)
        Z = BinnedMatrix(np.ascontiguousarray(ids[:, kept]), bins.starts)
        solution = _solved(Z, some, lam, dual, limits)
        dual = solution.dual
        decision = BinnedMatrix(ids[:, out], bins.starts).matvec(solution.coef)
        found = error(problem.task, decision, others, own)
        growth.append([size, found])
        enough = found > (1 - GAIN) * best
        if found < best:
            best, chosen, start = found, size, np.zeros_like(problem.Y)
            start[kept] = dual
        if enough or size == grids.n_grids:
            break
        size = min(2 * size, grids.n_grids)
    bins = Bins(bins.keys[: bins.starts[chosen]], bins.starts[: chosen + 1])
    return bins, BinnedMatrix(ids[:chosen], bins.starts), start, growth
