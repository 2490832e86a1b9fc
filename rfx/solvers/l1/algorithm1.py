"""Algorithm 1 of Yen et al. (2014): L1-regularised random features as coordinate descent in
a Hilbert space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rfx.parallel import Late, until
from rfx.solvers.base import Budget, Certificate, Recorder, Solution
from rfx.solvers.l1.dual import best_dual, l1_certificate
from rfx.solvers.l1.gram_cache import GramCache
from rfx.solvers.l1.newton import filled, solve_l1
from rfx.solvers.l1.round_features import RoundFeatures

if TYPE_CHECKING:
    from rfx.losses import Loss, SmoothLoss
    from rfx.operators.matrix import Matrix
    from rfx.solvers.base import Callback, Filled

# (Z, y, lam, loss, budget, warm) -> Solution, over the given columns
Solve: TypeAlias = "Callable[[Matrix, np.ndarray, float, SmoothLoss, Budget, np.ndarray], Solution]"
# Relative duality gap of all rounds except the last.
EARLY_TOL = 1e-2
# Maximum ratio of successive gaps in corrections of code errors.
_HALF = 0.5


def solve_rounds(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
    *,
    rounds: int = 10,
    solve: Solve | None = None,
) -> Solution:
    """Minimise lam ||w||_1 + sum L(w.phi(x), y) (eq. 9) over D features, in parts.

    Each of `rounds` rounds adds the next D/rounds features to the working set, minimises over it
    from the previous weights, and permanently drops the features with weight zero.

    Z: (N, D) features, of which those of a round are stored in memory, as many of their rows as
    fit. y: (N,). budget: that of `solve_l1` for each round; only the last one needs its tol, the
    others have at least EARLY_TOL. warm: (D,) weights; the first working set includes features with
    nonzero weight. solve(Z, y, lam, loss, budget, warm) -> Solution minimises over the given
    columns, `solve_l1` by default.

    Returns coef (D,). Objective and gap are those of all D features, including dropped ones: the
    gap bounds the effect of dropping on the solution of equation 9, and usually far exceeds the
    tolerance. The status is that of the last round, whose own gap is in the trace. Each entry of
    the trace is a round: `iteration`, `features` (seen), `working_set` (its size), `nnz`,
    `objective`, `gap`. After the deadline no round is started, and if there is no time to compute
    the gap, it equals the objective.
    """
    n_features, record, gram = Z.shape[1], Recorder(callback), GramCache()
    own, solve = solve is None, partial(solve_l1, gram=gram) if solve is None else solve
    last = filled(budget)
    early = replace(last, tol=max(last.tol, EARLY_TOL))
    rounds = min(rounds, n_features)  # at least one feature per round
    bounds = [n_features * t // rounds for t in range(rounds + 1)]
    coef = np.zeros(n_features) if warm is None else np.array(warm, dtype=np.float64)
    active, iterations = np.flatnonzero(coef), 0
    features, solution, kept = RoundFeatures(Z, y, lam, loss, last.memory_mb), None, None
    for turn, (first, stop) in enumerate(zip(bounds, bounds[1:]), start=1):
        if turn > 1 and last.late():
            break
        if kept is not None:
            gram.keep(kept)
        candidates = np.concatenate([active, np.setdiff1d(np.arange(first, stop), active)])
        try:
            with until(last.deadline):
                if not own:
                    features.exact(candidates, len(active))
                elif features.take(candidates, len(active), kept):
                    gram.remember(coef[candidates], features.part.matvec(coef[candidates]))
        except Late:
            # the solver also ends at once, at the given weights
            features.part = Z.columns(candidates)
        # half of the last tolerance is reserved for code errors
        goal = (
            early
            if stop < n_features
            else last
            if features.kind is None
            else replace(last, tol=last.tol / 2)
        )
        solution = solve(features.part, y, lam, loss, goal, coef[candidates])
        kept = np.flatnonzero(solution.coef)
        coef[candidates] = solution.coef
        active = candidates[kept]
        iterations += solution.n_iter
        sizes = {"features": stop, "working_set": len(candidates), "nnz": len(active)}
        record(coef.copy, iteration=turn, **sizes, objective=solution.objective, gap=solution.gap)
    assert solution is not None  # there is a round
    found = Solution(
        coef, solution.objective, solution.certificate, iterations, solution.status, record.trace
    )
    if features.kind is None and len(candidates) == n_features:
        return found
    try:
        with until(last.deadline):
            if features.kind is None:
                at = _At(Z, y, coef, lam, loss, candidates, features.part.matvec(coef[candidates]))
            else:
                at, found = _by_features(Z, candidates, features, gram, goal, last, found)
                record.trace[-1].update(
                    nnz=int(np.count_nonzero(found.coef)), objective=at.objective, gap=at.own_gap
                )
            return replace(found, objective=at.objective, certificate=Certificate("gap", at.gap))
    except Late:
        # no loss is negative, so that zero bounds the minimum over all features
        return replace(found, certificate=Certificate("gap", solution.objective), status="timeout")


def _by_features(
    Z: Matrix,
    columns: np.ndarray,
    features: RoundFeatures,
    gram: GramCache,
    goal: Filled,
    last: Filled,
    found: Solution,
) -> tuple[_At, Solution]:
    """(_At, Solution) of the round on these columns, from its solution `found` on codes.

    If codes are too coarse for the tolerance, the round is solved again with their gradient error
    at the solution (`solve_l1`'s slope), as long as that halves the gap, and then without codes.
    """
    y, lam, loss, coef = features.y, features.lam, features.loss, found.coef.copy()
    at, before = _At(Z, y, coef, lam, loss, columns), np.inf
    while (
        features.kind is not None
        and found.status in ("converged", "stalled")
        and at.own_gap > last.tol * at.objective
    ):
        slope = None
        if at.own_gap < _HALF * before:
            slope = at.gradient[columns] - features.part.rmatvec(loss.derivative(at.decision, y))
        else:
            features.exact(columns, int(np.count_nonzero(coef)))
            gram, goal = GramCache(), last
        gram.remember(coef[columns], at.decision)
        solution = solve_l1(
            features.part, y, lam, loss, goal, coef[columns], gram=gram, slope=slope
        )
        coef[columns] = solution.coef
        found = replace(
            found, coef=coef, n_iter=found.n_iter + solution.n_iter, status=solution.status
        )
        before, at = (
            at.own_gap,
            _At(
                Z,
                y,
                coef,
                lam,
                loss,
                columns,
                None if slope is not None else features.part.matvec(solution.coef),
            ),
        )
    met = found.status == "stalled" and at.own_gap <= last.tol * at.objective
    return at, replace(found, status="converged") if met else found


class _At:
    """The features' decision values (N,), gradient (D,) of the losses, objective and gaps at coef
    (D,), zero outside `columns`.

    gap: over all features; own_gap: over these columns. f: the decision values, if known.
    """

    def __init__(
        self,
        Z: Matrix,
        y: np.ndarray,
        coef: np.ndarray,
        lam: float,
        loss: Loss,
        columns: np.ndarray,
        f: np.ndarray | None = None,
    ) -> None:
        gradient = None
        if f is None:
            f, _, gradient = Z.loss_pass(coef, loss, y)
        u = loss.derivative(f, y)
        self.decision, self.gradient = f, Z.rmatvec(u) if gradient is None else gradient
        self.objective = lam * float(np.abs(coef).sum()) + float(loss.value(f, y).sum())
        self.gap, self.own_gap = (
            max(0.0, self.objective - best_dual(loss, u, y, lam, part)[0])
            for part in (self.gradient, self.gradient[columns])
        )


def in_parts(solve: Callable[..., Solution]) -> Solve:
    """Wrap a solver without its own working set to use a part of the columns at a time: solve(Z, y,
    lam, loss, budget, warm).

    solve(part, y, lam, loss, budget) receives the columns in use and those whose gradient exceeds
    lam; then those that exceed it at the solution as well, until no excluded column violates more
    than the included ones; and all columns if it gives up on a part. Objective and gap are over all
    columns.
    """

    def over_all(
        Z: Matrix, y: np.ndarray, lam: float, loss: SmoothLoss, budget: Budget, warm: np.ndarray
    ) -> Solution:
        coef, n_iter, status = np.array(warm, dtype=np.float64), 0, "converged"
        objective, gap, gradient = l1_certificate(Z, y, coef, lam, loss)
        chosen = (coef != 0) | (np.abs(gradient) > lam)
        more = chosen.any()
        while more:
            solution = solve(Z.columns(np.flatnonzero(chosen)), y, lam, loss, budget)
            coef[chosen] = solution.coef
            n_iter, status = n_iter + solution.n_iter, solution.status
            objective, gap, gradient = l1_certificate(Z, y, coef, lam, loss)
            violation = np.abs(gradient)
            more = not chosen.all() and (
                status != "converged"
                or np.any(violation[~chosen] > max(lam, violation[chosen].max()))
            )
            chosen |= violation > (lam if status == "converged" else -1.0)
        return Solution(coef, objective, Certificate("gap", gap), n_iter, status)

    return over_all
