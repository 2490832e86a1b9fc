"""Ridge regression: min_W lam/2 ||W||^2 + 1/2 ||Z W - Y||^2 (Yen et al. 2014, equation 5 with squared loss).

The smaller of the Gram matrices Z'Z and Z Z' is summed over blocks into one array and factored in place; conjugate
gradients on the features themselves, with float64 sums, correct what the factor's type has lost. Several lambdas share
the walk that makes the Gram matrix, which is factored anew for each: an eigendecomposition costs as much as about
twenty-five factorisations.
"""

import numpy as np

from rfx.solvers.base import Solution
from rfx.solvers.blocks import adjoint, default_memory_mb, product, walk
from rfx.solvers.cg import RowFactor, check_problem, choose_factor, conjugate_gradients, late

_RESTARTS = 20


def solve_ridge(blocks, Y, lam, *, tol=1e-6, max_iter=1000, max_memory_mb=None, deadline=None) -> Solution:
    """The minimiser for one lam > 0.

    blocks: the (N, D) features. Y: (N,) or (N, k) targets. tol: relative duality gap of each output. max_iter:
    conjugate gradient steps. max_memory_mb: what the Gram matrix may take; beyond it the preconditioner is of low rank.
    deadline: time.monotonic() at which to stop. Gap: with u = Z w - y the dual value is -1/2 ||u||^2 - u.y -
    ||Z'u||^2 / (2 lam), and the gap is ||lam w + Z'u||^2 / (2 lam). n_iter counts conjugate gradient steps, after the
    direct solution. Raises UsageError for a lam that is not positive or targets that are not one for each row.
    """
    return solve_ridge_grid(
        blocks, Y, [lam], tol=tol, max_iter=max_iter, max_memory_mb=max_memory_mb, deadline=deadline
    )[0]


def solve_ridge_grid(
    blocks, Y, lams, *, tol=1e-6, max_iter=1000, max_memory_mb=None, deadline=None
) -> list[Solution]:
    """A Solution for each of `lams`, from one Gram matrix; arguments as in `solve_ridge`."""
    Y = np.asarray(Y, dtype=np.float64)
    for lam in lams:
        check_problem(blocks, Y, lam)
    limit = default_memory_mb() if max_memory_mb is None else max_memory_mb
    factor = choose_factor(blocks, max_memory_mb=limit)
    target = None if isinstance(factor, RowFactor) else adjoint(blocks, Y)
    return [_solve(blocks, Y, lam, factor.prepare(lam), target, tol, max_iter, deadline) for lam in lams]


def _solve(blocks, Y, lam, factor, target, tol, max_iter, deadline):
    W = adjoint(blocks, factor.dual(Y)) if target is None else factor(target)
    n_iter, trace = 0, []

    for _ in range(_RESTARTS):
        F, G = walk(blocks, W, lambda rows, f: f - Y[rows])
        G += lam * W
        objectives = 0.5 * lam * _squares(W) + 0.5 * _squares(F - Y)
        gaps = _squares(G) / (2 * lam)
        converged = bool(np.all(gaps <= tol * objectives))
        trace.append({"iteration": n_iter, "objective": float(objectives.sum()), "gap": float(gaps.max())})
        if converged or n_iter >= max_iter or late(deadline):
            break
        # the objective falls by less than the gap, so that half of what is allowed now is enough then
        allowed = np.maximum(0.5 * tol * (objectives - gaps), 0.1 * tol * objectives) * 2 * lam
        step, _, steps = conjugate_gradients(
            lambda P: lam * P + product(blocks, P),
            -G,
            factor,
            lambda R, allowed=allowed: np.all(_squares(R) <= allowed),
            max_iter - n_iter,
            deadline,
        )
        W = W + step
        n_iter += steps
    return Solution(W, float(objectives.sum()), float(gaps.max()), n_iter, converged, trace)


def _squares(A):
    return np.einsum("i...,i...->...", A, A)
