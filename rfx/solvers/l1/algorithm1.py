"""Algorithm 1 of Yen et al. (2014): L1-regularised random features as coordinate descent in a Hilbert space."""

from dataclasses import replace
from functools import partial

import numpy as np

from rfx.operators.base import default_memory_mb
from rfx.solvers.base import Budget, Certificate, Recorder, Solution
from rfx.solvers.l1.gram_cache import GramCache
from rfx.solvers.l1.newton import filled, solve_l1

# Relative duality gap of all rounds but the last.
EARLY_TOL = 1e-2


def solve_rounds(Z, y, lam, loss, budget: Budget = Budget(), warm=None, callback=None, *, rounds: int = 10, solve=None) -> Solution:
    """Minimise lam ||w||_1 + sum L(w.phi(x), y) (eq. 9) over D features, a part of them at a time.

    Each of `rounds` rounds adds the next D/rounds features to the working set, minimises over it from the last
    weights, and drops the features whose weight is zero.

    Z: (N, D) features, of which those of a round are held in memory, up to the budget's. y: (N,). budget: that of `solve_l1` for
    each round; only the last one needs its tol, the others have EARLY_TOL at least. warm: (D,) weights; features with one are in
    the first working set. solve(Z, y, lam, loss, budget, warm) -> Solution minimises over the columns it is given, `solve_l1`
    by default. Returns coef (D,); objective and certificate are those of the last working set; the trace has an entry a round:
    `iteration`, `features` (seen), `working_set` (its size), `nnz`, `objective`, `gap`.
    """
    n_features, record, gram = Z.shape[1], Recorder(callback), GramCache()
    solve = partial(solve_l1, gram=gram) if solve is None else solve
    held_mb, last = default_memory_mb() if budget.memory_mb is None else budget.memory_mb, filled(budget)
    early = replace(last, tol=max(last.tol, EARLY_TOL))
    rounds = min(rounds, n_features)  # a feature a round at least
    bounds = [n_features * t // rounds for t in range(rounds + 1)]
    coef = np.zeros(n_features) if warm is None else np.array(warm, dtype=np.float64)
    active, iterations = np.flatnonzero(coef), 0
    for turn, (first, stop) in enumerate(zip(bounds, bounds[1:]), start=1):
        candidates = np.concatenate([active, np.setdiff1d(np.arange(first, stop), active)])
        part = None  # the last round's features are gone before this round's are made
        part = Z.columns(candidates).hold(held_mb)
        solution = solve(part, y, lam, loss, last if stop == n_features else early, coef[candidates])
        kept = np.flatnonzero(solution.coef)
        coef[candidates] = solution.coef
        active = candidates[kept]
        gram.keep(kept)
        iterations += solution.n_iter
        sizes = {"features": stop, "working_set": len(candidates), "nnz": len(active)}
        record(coef.copy, iteration=turn, **sizes, objective=solution.objective, gap=solution.gap)
    return Solution(coef, solution.objective, solution.certificate, iterations, solution.status, record.trace)


def screened(solve):
    """solve(Z, y, lam, loss, budget, warm) over the columns in use and those whose gradient exceeds lam alone.

    No other can leave zero in the first step. For solvers that keep no working set of their own.
    """

    def over_few(Z, y, lam, loss, budget, warm):
        columns = np.flatnonzero((np.abs(Z.loss_pass(warm, loss, y)[2]) > lam) | (warm != 0))
        if not len(columns):
            return Solution(np.zeros(len(warm)), float(loss.value(np.zeros(len(y)), y).sum()), Certificate("gap", 0.0), 0, "converged")
        solution = solve(Z.columns(columns), y, lam, loss, budget)
        coef = np.zeros(len(warm))
        coef[columns] = solution.coef
        return replace(solution, coef=coef)

    return over_few
