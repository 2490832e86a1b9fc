"""Algorithm 1 of Yen et al. (2014): L1-regularised random features as coordinate descent in a Hilbert space."""

import time

import numpy as np

from rfx.operators.mapped import feature_matrix
from rfx.solvers.base import Certificate, Solution


def solve_rounds(feature_map, X, y, lam, loss, rounds, solve, *, keep=None, max_memory_mb=None) -> Solution:
    """Minimise lam ||w||_1 + sum L(w.phi(x), y) (eq. 9) over the features of a map, a part of them at a time.

    Each of `rounds` rounds adds the next D/rounds features to the working set, minimises over it from the last
    weights, and drops the features whose weight is zero.

    feature_map: D unscaled features; X: (n, d); y: (n,). solve(Z, y, lam, loss, coef0, last) -> Solution minimises
    over the columns of Z; `last` is True in the last round, which alone needs the full accuracy. keep(columns)
    is told after each round which columns become the first ones of the next.
    Returns coef (D,); objective and gap are those of the last working set; trace has one entry a round: features seen,
    size of the working set, non-zeros, objective, gap, seconds.
    """
    n_features = feature_map.n_features
    rounds = min(rounds, n_features)  # a feature a round at least
    bounds = [n_features * t // rounds for t in range(rounds + 1)]
    active, weights = np.empty(0, np.int64), np.empty(0)
    trace, iterations, status = [], 0, "converged"
    start = time.perf_counter()
    for first, stop in zip(bounds, bounds[1:]):
        if first == stop:
            continue
        candidates = np.concatenate([active, np.arange(first, stop)])
        coef0 = np.concatenate([weights, np.zeros(stop - first)])
        Z = None  # the last round's features are gone before this round's are made
        Z = feature_matrix(feature_map.select(candidates), X, 1.0, max_memory_mb)
        solution = solve(Z, y, lam, loss, coef0, stop == n_features)
        kept = np.flatnonzero(solution.coef)
        active, weights = candidates[kept], solution.coef[kept]
        if keep is not None:
            keep(kept)
        iterations += solution.n_iter
        status = solution.status
        trace.append(
            {
                "features": stop,
                "working_set": len(candidates),
                "nnz": len(active),
                "objective": solution.objective,
                "gap": solution.gap,
                "seconds": time.perf_counter() - start,
            }
        )
    coef = np.zeros(n_features)
    coef[active] = weights
    return Solution(coef, solution.objective, solution.certificate, iterations, status, trace)


def screened(Z, y, lam, loss, coef0, solve) -> Solution:
    """Solve over the columns in use and those whose gradient exceeds lam; no other can leave zero in the first step.

    For solvers that keep no working set of their own. solve(blocks, y) -> Solution over the columns it is given.
    """
    gradient = Z.loss_pass(coef0, loss, y)[2]
    columns = np.flatnonzero((np.abs(gradient) > lam) | (coef0 != 0))
    coef = np.zeros(Z.shape[1])
    if not len(columns):
        value = float(loss.value(np.zeros(len(y)), y).sum())
        return Solution(coef, value, Certificate("gap", 0.0), 0, "converged")
    solution = solve(Z.columns(columns), y)
    coef[columns] = solution.coef
    solution.coef = coef
    return solution
