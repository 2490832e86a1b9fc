"""Algorithm 1 of Yen et al. (2014): L1-regularised random features as coordinate descent in a Hilbert space."""

from dataclasses import replace
from functools import partial

import numpy as np

from rfx.parallel import Late, until
from rfx.solvers.base import Budget, Certificate, Recorder, Solution
from rfx.solvers.l1.dual import best_dual, l1_certificate
from rfx.solvers.l1.gram_cache import GramCache
from rfx.solvers.l1.newton import filled, solve_l1
from rfx.solvers.l1.round_features import RoundFeatures

# Relative duality gap of all rounds but the last.
EARLY_TOL = 1e-2


def solve_rounds(Z, y, lam, loss, budget: Budget = Budget(), warm=None, callback=None, *, rounds: int = 10, solve=None) -> Solution:
    """Minimise lam ||w||_1 + sum L(w.phi(x), y) (eq. 9) over D features, a part of them at a time.

    Each of `rounds` rounds adds the next D/rounds features to the working set, minimises over it from the last
    weights, and drops the features whose weight is zero, for good.

    Z: (N, D) features, of which those of a round are held in memory, as many rows of them as fit. y: (N,). budget: that of `solve_l1` for
    each round; only the last one needs its tol, the others have EARLY_TOL at least. warm: (D,) weights; features with one are in
    the first working set. solve(Z, y, lam, loss, budget, warm) -> Solution minimises over the columns it is given, `solve_l1`
    by default.

    Returns coef (D,). Objective and gap are those of all D features, dropped ones too: the gap says how far from the optimum of
    equation 9 the dropping can have left the answer, and is as a rule far above the tolerance. The status is that of the last
    round, whose own gap is in the trace, of which an entry is a round: `iteration`, `features` (seen), `working_set` (its size),
    `nnz`, `objective`, `gap`. After the deadline no round is begun, and where there is no time for the gap, it is the objective.
    """
    n_features, record, gram = Z.shape[1], Recorder(callback), GramCache()
    own, solve = solve is None, partial(solve_l1, gram=gram) if solve is None else solve
    last = filled(budget)
    early = replace(last, tol=max(last.tol, EARLY_TOL))
    rounds = min(rounds, n_features)  # a feature a round at least
    bounds = [n_features * t // rounds for t in range(rounds + 1)]
    coef = np.zeros(n_features) if warm is None else np.array(warm, dtype=np.float64)
    active, iterations = np.flatnonzero(coef), 0
    features, solution, kept = RoundFeatures(Z, y, lam, loss, last.memory_mb), None, None
    for turn, (first, stop) in enumerate(zip(bounds, bounds[1:]), start=1):
        if turn > 1 and last.late():
            break
        candidates = np.concatenate([active, np.setdiff1d(np.arange(first, stop), active)])
        try:
            with until(last.deadline):
                if not own:
                    features.exact(candidates, len(active))
                elif features.take(candidates, len(active), kept):
                    gram.remember(coef[candidates], features.part.matvec(coef[candidates]))
        except Late:
            # the solver ends at once, too, at the weights that it is given
            features.part = Z.columns(candidates)
        # half of the last tolerance is kept for what codes change
        goal = early if stop < n_features else last if features.kind is None else replace(last, tol=last.tol / 2)
        solution = solve(features.part, y, lam, loss, goal, coef[candidates])
        kept = np.flatnonzero(solution.coef)
        coef[candidates] = solution.coef
        active = candidates[kept]
        gram.keep(kept)
        iterations += solution.n_iter
        sizes = {"features": stop, "working_set": len(candidates), "nnz": len(active)}
        record(coef.copy, iteration=turn, **sizes, objective=solution.objective, gap=solution.gap)
    certificate, status, by_codes = solution.certificate, solution.status, features.kind is not None
    if by_codes or len(candidates) < n_features:
        try:
            with until(last.deadline):
                f = (Z.columns(candidates) if by_codes else features.part).matvec(solution.coef)
                objective, gap, own_gap = _certified(Z, y, coef, lam, loss, f, candidates)
                if by_codes and status == "converged" and own_gap > last.tol * objective:
                    features.exact(candidates, len(active))
                    solution = solve_l1(features.part, y, lam, loss, last, coef[candidates])
                    coef[candidates], status, iterations = solution.coef, solution.status, iterations + solution.n_iter
                    objective, gap, own_gap = _certified(Z, y, coef, lam, loss, features.part.matvec(solution.coef), candidates)
                certificate = Certificate("gap", gap)
                if by_codes:
                    solution = replace(solution, objective=objective)
                    record.trace[-1].update(nnz=int(np.count_nonzero(coef)), objective=objective, gap=own_gap)
        except Late:
            # no loss is negative, so that zero bounds the minimum over all features
            certificate, status = Certificate("gap", solution.objective), "timeout"
    return Solution(coef, solution.objective, certificate, iterations, status, record.trace)


def _certified(Z, y, coef, lam, loss, f, columns):
    """(objective, gap, gap over these columns alone) at coef, whose weights outside them are zero; f: Z coef."""
    objective, gap, gradient = l1_certificate(Z, y, coef, lam, loss, f)
    own = best_dual(loss, loss.derivative(f, y), y, lam, gradient[columns])[0]
    return objective, gap, max(0.0, objective - own)


def in_parts(solve):
    """A solver that keeps no working set of its own, over a part of the columns at a time: solve(Z, y, lam, loss, budget, warm).

    solve(part, y, lam, loss, budget) is given the columns in use and those whose gradient exceeds lam; then all that exceed it at
    the answer as well, until no column left out violates more than those that were not; all columns where it gives up on a part.
    Objective and gap are over all columns.
    """

    def over_all(Z, y, lam, loss, budget, warm):
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
            more = not chosen.all() and (status != "converged" or np.any(violation[~chosen] > max(lam, violation[chosen].max())))
            chosen |= violation > (lam if status == "converged" else -1.0)
        return Solution(coef, objective, Certificate("gap", gap), n_iter, status)

    return over_all
