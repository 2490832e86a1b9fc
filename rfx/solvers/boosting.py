"""Fully corrective boosting: greedy coordinate descent on the L1 problem over all features
of a kind (Yen et al. 2014, section 3.3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rfx.operators.scaled import ScaledRows
from rfx.operators.signs import SignColumns
from rfx.solvers.base import Budget, Certificate, Recorder, Solution, check_problem
from rfx.solvers.l1.dual import best_dual
from rfx.solvers.l1.gram_cache import GramCache
from rfx.solvers.l1.newton import filled, solve_l1

if TYPE_CHECKING:
    from rfx.losses import SmoothLoss
    from rfx.operators.matrix import Matrix
    from rfx.solvers.base import Callback, Filled

# Relative gap of a corrective step, and its minimum if a new feature has a smaller effect.
TOL, LEAST_TOL = 1e-5, 1e-9
# Consecutive steps that rounding keeps from the tolerance, and that reduce the objective by less
# than that, after which it has stalled.
IDLE = 10


class Learner(Protocol):
    """Greedy steps over features of a kind: `find` and `keep` as described in `solve_boosting`."""

    def find(self, u: np.ndarray) -> tuple[np.ndarray, float | None]: ...

    def keep(self, which: Sequence[int | np.integer[Any]]) -> None: ...


def solve_boosting(
    learner: Learner,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    callback: Callback | None = None,
    *,
    n_features: int = 1000,
    factors: np.ndarray | None = None,
) -> Solution:
    """Minimise lam ||w||_1 + sum_n L(sum_h w_h phi_h(x_n), y_n) (eq. 9) over features +-1 that are
    found step by step.

    learner.find(u) -> (signs, largest): signs (N, k) of the features found by the greedy step (24)
    for u = L'(f, y) (N,); largest is the largest |sum_n u_n phi_h(x_n)| over all features, None if
    the search can't determine it. learner.keep(which) adds some of them. After each step the
    weights of all features found so far are optimised, starting from the previous weights. Ends
    when no new feature has |sum_n u_n phi_h(x_n)| > lam, with n_features of them, or, if `largest`
    is known, when the gap over all features meets the tolerance.

    factors: (N,) by which the rows of the features are multiplied, for weighted least squares; y
    has been multiplied by them.

    y: (N,). budget: tol is the relative gap of a step (1e-5), max_iter and memory_mb are those of
    `solve_l1` for a step. The Solution's coef is (D,), the features in the order in which they were
    added, n_iter the steps. Its gap is over all features if `largest` is known, else over those
    found. The trace has an entry per step, and one before the first: `iteration`, `features`,
    `nnz`, `objective`, `gap` (over those found), `greedy` (the largest |sum_n u_n phi_h(x_n)| of a
    feature of the step). The status is that of the last step. Raises UsageError like
    `check_problem`.
    """
    Z, record, gram, seen = SignColumns(len(y)), Recorder(callback), GramCache(), set[bytes]()
    factors = np.ones(len(y)) if factors is None else factors
    y, limits = (
        check_problem(Z, y, lam, loss),
        filled(replace(budget, tol=TOL if budget.tol is None else budget.tol)),
    )
    coef, decision, status, bound = np.zeros(0), np.zeros(len(y)), "converged", -np.inf
    objective, gap, turn = float(loss.value(decision, y).sum()), 0.0, 0
    record(coef.copy, iteration=0, features=0, nnz=0, objective=objective, gap=gap)
    idle = 0
    while status == "converged" or (status == "stalled" and idle < IDLE):
        u = loss.derivative(decision, y)
        signs, largest = learner.find(u * factors)
        if largest is not None:
            bound = max(bound, best_dual(loss, u, y, lam, np.array([largest]))[0])
        sums = np.abs((u * factors) @ signs)
        new = [k for k in np.flatnonzero(sums > lam) if _is_new(signs[:, k], seen)][
            : n_features - len(coef)
        ]
        if not new or objective - bound <= limits.tol * objective:
            break
        if limits.late():
            status = "timeout"
            break
        learner.keep(new)
        Z.append(signs[:, new])
        own = Z if np.all(factors == 1) else ScaledRows(Z, factors)
        solution = _correct(
            own, y, lam, loss, limits, np.append(coef, np.zeros(len(new))), gram, objective
        )
        # a tolerance below the rounding ends a step, not the search: the next feature may help
        idle = 0 if solution.objective < objective * (1 - limits.tol) else idle + 1
        coef, objective, status = solution.coef, solution.objective, solution.status
        recalled = gram.recall(coef)
        # `solve_l1` caches and certifies its answer
        assert recalled is not None and solution.gap is not None
        decision, gap, turn = recalled, solution.gap, turn + 1
        entry = {
            "iteration": turn,
            "features": len(coef),
            "nnz": int(np.count_nonzero(coef)),
            "objective": objective,
            "gap": gap,
        }
        record(coef.copy, **entry, greedy=float(sums.max()))
    if np.isfinite(bound):
        gap = max(0.0, objective - bound)
    return Solution(coef, objective, Certificate("gap", gap), turn, status, record.trace)


def _correct(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Filled,
    coef: np.ndarray,
    gram: GramCache,
    before: float,
) -> Solution:
    """The minimiser over the features found, more exact than the budget if that would hide the
    effect of the new ones.
    """
    while True:
        solution = solve_l1(Z, y, lam, loss, budget, coef, gram=gram)
        if solution.objective < before or solution.status != "converged" or budget.tol <= LEAST_TOL:
            return solution
        budget, coef = replace(budget, tol=0.1 * budget.tol), solution.coef


def _is_new(signs: np.ndarray, seen: set[bytes]) -> bool:
    """Whether a feature and its negative are new; they are recorded as seen."""
    name = hashlib.blake2b(np.packbits(signs == signs[0]).tobytes(), digest_size=16).digest()
    new = name not in seen
    seen.add(name)
    return new
