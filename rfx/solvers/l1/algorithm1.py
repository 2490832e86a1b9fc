"""Algorithm 1 of Yen et al. (2014): L1-regularised random features as coordinate descent in a Hilbert space."""

from dataclasses import replace
from functools import partial

import numpy as np

from rfx.operators.coded import code_type, coded
from rfx.operators.split import hold_part
from rfx.parallel import Late, until
from rfx.solvers.base import Budget, Certificate, Recorder, Solution
from rfx.solvers.l1.dual import best_dual, l1_certificate
from rfx.solvers.l1.gram_cache import GramCache
from rfx.solvers.l1.newton import columns_held, filled, solve_l1

# Relative duality gap of all rounds but the last.
EARLY_TOL = 1e-2
# Part of the memory that a round's features may take; Gram matrices take up to half of it.
_HELD = 0.6
# Bytes for an entry of a Gram matrix beside codes, and the part of lambda by which these may change a gradient.
_GRAM_BYTES, _GRADIENT = 40, 1e-3


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
    solution = part = before = kind = None
    for turn, (first, stop) in enumerate(zip(bounds, bounds[1:]), start=1):
        if turn > 1 and last.late():
            break
        candidates = np.concatenate([active, np.setdiff1d(np.arange(first, stop), active)])
        part = None  # the last round's features are gone before this round's are made
        try:
            with until(last.deadline):
                before, kind = kind, _codes(Z.columns(candidates), y, lam, loss, last.memory_mb) if own else None
                part = _held(Z.columns(candidates), len(active), last.memory_mb) if kind is None else coded(Z.columns(candidates), kind)
                if kind is not before and len(active):
                    # features have changed a little
                    gram.remember(coef[candidates], part.matvec(coef[candidates]))
        except Late:
            # the solver ends at once, too, at the weights that it is given
            part = Z.columns(candidates)
        # half of the last tolerance is kept for what codes change
        goal = early if stop < n_features else last if kind is None else replace(last, tol=last.tol / 2)
        solution = solve(part, y, lam, loss, goal, coef[candidates])
        kept = np.flatnonzero(solution.coef)
        coef[candidates] = solution.coef
        active = candidates[kept]
        gram.keep(kept)
        iterations += solution.n_iter
        sizes = {"features": stop, "working_set": len(candidates), "nnz": len(active)}
        record(coef.copy, iteration=turn, **sizes, objective=solution.objective, gap=solution.gap)
    certificate, status = solution.certificate, solution.status
    if kind is not None or len(candidates) < n_features:
        try:
            with until(last.deadline):
                f = (part if kind is None else Z.columns(candidates)).matvec(solution.coef)
                objective, gap, own_gap = _certified(Z, y, coef, lam, loss, f, candidates)
                if kind is not None and status == "converged" and own_gap > last.tol * objective:
                    part = None
                    part = _held(Z.columns(candidates), len(active), last.memory_mb)
                    solution = solve_l1(part, y, lam, loss, last, coef[candidates])
                    coef[candidates], status, iterations = solution.coef, solution.status, iterations + solution.n_iter
                    objective, gap, own_gap = _certified(Z, y, coef, lam, loss, part.matvec(solution.coef), candidates)
                certificate = Certificate("gap", gap)
                if kind is not None:
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


def _codes(part, y, lam, loss, memory_mb: float):
    """The type of codes as which a round's features are held; None where they fit as they are, or codes do not fit or are too coarse.

    A derivative of the losses has sum u^2 <= 4 times their sum at zero, so that an error of e in every entry of a column changes
    its gradient by 2 e sqrt(that sum): a small part of lambda is allowed, of which the dual value takes the square.
    """
    n_columns = part.shape[1]
    left_mb = memory_mb - _GRAM_BYTES * n_columns**2 / 2**20
    if not part.computed or part.size_mb <= _HELD * memory_mb or part.size_mb / 2 > left_mb:
        return None
    at_zero = float(loss.value(np.zeros(len(y)), y).sum())
    return code_type(part, n_columns * (_GRADIENT * lam) ** 2 / (12 * 4 * at_zero))


def _held(part, n_used: int, memory_mb: float):
    """A round's features in memory, if they fit; else as they are where the solver can hold twice the columns in use, or some rows."""
    found = part.hold(_HELD * memory_mb)
    if not found.computed or 2 * n_used <= columns_held(part, memory_mb):
        return found
    return hold_part(part, memory_mb / 2)


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
