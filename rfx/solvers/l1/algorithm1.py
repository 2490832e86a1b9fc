"""Algorithm 1 of Yen et al. (2014): L1-regularised random features as coordinate descent in
a Hilbert space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from rfx.losses import SmoothLoss
from rfx.operators.cached import hold_part
from rfx.operators.matrix import Matrix
from rfx.parallel import Late, until
from rfx.solvers.base import Budget, Callback, Certificate, Recorder, Solution
from rfx.solvers.l1.dual import l1_certificate
from rfx.solvers.l1.gram_cache import GramCache
from rfx.solvers.l1.newton import columns_held, filled, solve_l1

# (Z, y, lam, loss, budget, warm) -> Solution, over the given columns
Solve: TypeAlias = "Callable[[Matrix, np.ndarray, float, SmoothLoss, Budget, np.ndarray], Solution]"
# Relative duality gap of all rounds except the last.
EARLY_TOL = 1e-2
# Fraction of the memory for a round's features; Gram matrices use up to half of it.
_HELD = 0.5


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
    solve = partial(solve_l1, gram=gram) if solve is None else solve
    last = filled(budget)
    early = replace(last, tol=max(last.tol, EARLY_TOL))
    rounds = min(rounds, n_features)  # at least one feature per round
    bounds = [n_features * t // rounds for t in range(rounds + 1)]
    coef = np.zeros(n_features) if warm is None else np.array(warm, dtype=np.float64)
    active, iterations, solution = np.flatnonzero(coef), 0, None
    for turn, (first, stop) in enumerate(zip(bounds, bounds[1:]), start=1):
        if turn > 1 and last.late():
            break
        candidates = np.concatenate([active, np.setdiff1d(np.arange(first, stop), active)])
        part = Z.columns(candidates)
        try:
            with until(last.deadline):
                part = _held(part, len(active), last.memory_mb)
        except Late:
            pass  # the solver also ends at once, at the given weights
        goal = early if stop < n_features else last
        solution = solve(part, y, lam, loss, goal, coef[candidates])
        kept = np.flatnonzero(solution.coef)
        gram.keep(kept)
        coef[candidates] = solution.coef
        active = candidates[kept]
        iterations += solution.n_iter
        sizes = {"features": stop, "working_set": len(candidates), "nnz": len(active)}
        record(coef.copy, iteration=turn, **sizes, objective=solution.objective, gap=solution.gap)
    assert solution is not None  # there is a round
    whole = Solution(
        coef, solution.objective, solution.certificate, iterations, solution.status, record.trace
    )
    if len(candidates) == n_features:
        return whole
    try:
        with until(last.deadline):
            decision = part.matvec(coef[candidates])
            objective, gap, _ = l1_certificate(Z, y, coef, lam, loss, decision)
            return replace(whole, objective=objective, certificate=Certificate("gap", gap))
    except Late:
        # no loss is negative, so that zero bounds the minimum over all features
        return replace(whole, certificate=Certificate("gap", solution.objective), status="timeout")


def _held(part: Matrix, n_used: int, memory_mb: float) -> Matrix:
    """The columns of a round in memory if they fit; else as many of their rows as fit, unless the
    solver holds twice the `n_used` columns with nonzero weight itself.
    """
    stored = part.hold(_HELD * memory_mb)
    few = 2 * n_used <= columns_held(part, memory_mb)
    return stored if few or not stored.computed else hold_part(part, _HELD * memory_mb)


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
