"""Which solver an L2-regularised linear model gets: by the options of the method, its loss, and the task."""

import numpy as np

from rfx.errors import UsageError
from rfx.methods import weights
from rfx.solvers.base import Certificate, Solution, stack
from rfx.solvers.l2 import solve_l2
from rfx.solvers.normal import MOST, ridge_path
from rfx.solvers.published.liblinear import solve_liblinear
from rfx.solvers.ridge import solve_ridge, solve_ridge_cg, solve_ridge_grid


def solve(method, Z, Y, callback=None) -> Solution:
    """The weights (D, k) of `method` over its features: lam/2 ||w||^2 + sum L(w.z, y) for each column of Y (n, k).

    method: fitted as far as lam, loss and deadline, with the options solver, tol, max_iter and max_memory. callback: told of
    every step. Raises UsageError for a solver that does not have the loss.
    """
    p = method.params
    solver = p["solver"]
    Z, Y, loss = weights.problem(Z, Y, method.loss, method.weights)
    if not Z.shape[1]:
        # no feature, no weight: every prediction is zero, and that is the minimum
        values = loss.value(np.zeros_like(Y), Y).sum(axis=0)
        return Solution(np.zeros((0, Y.shape[1])), float(values.sum()), Certificate("gap", 0.0), 0, "converged")
    if solver == "cg":
        if loss.name != "squared":
            raise UsageError(f"--solver is cg, which is for squared loss, not {loss.name}; add --loss squared or choose rfx")
        return solve_ridge_cg(Z, Y, method.lam, loss, method._budget(), callback=callback)
    if solver == "liblinear":
        return method._each_output(
            Y,
            lambda y, tell: solve_liblinear(Z, y, method.lam, method.loss, method._budget(), callback=tell, seed=p["seed"]),
            callback,
        )
    if loss.name == "squared":
        return solve_ridge(Z, Y, method.lam, loss, method._budget(), callback=callback)
    return method._each_output(Y, lambda y, tell: solve_l2(Z, y, method.lam, loss, method._budget(), callback=tell), callback)


def judging_path(method, Z, Y, lams):
    """Yields the weights (D, k) for each of `lams`, of models that only judge: exact for squared loss, else to the method's --tol."""
    Z, Y, loss = weights.problem(Z, Y, method.loss, method.weights)
    if loss.name == "squared" and Z.shape[1] <= min(MOST, 2 * Z.shape[0]):
        yield from ridge_path(Z, Y, lams)
    elif loss.name == "squared":
        yield from (solution.coef for solution in solve_ridge_grid(Z, Y, lams, loss, method._budget()))
    else:
        coef: list = [None] * Y.shape[1]
        for lam in lams:
            for k, y in enumerate(Y.T):
                coef[k] = solve_l2(Z, y, lam, loss, method._budget(), coef[k]).coef
            yield np.stack(coef, axis=1)


def solve_path(method, Z, Y, lams) -> list[Solution]:
    """A Solution for each of `lams` by rfx's own solvers: squared loss from one Gram matrix, else each started at the last."""
    Z, Y, loss = weights.problem(Z, Y, method.loss, method.weights)
    if loss.name == "squared":
        return solve_ridge_grid(Z, Y, lams, loss, method._budget())

    def follow(y):
        coef, solutions = None, []
        for lam in lams:
            solutions.append(solve_l2(Z, y, lam, loss, method._budget(), coef))
            coef = solutions[-1].coef
        return solutions

    return [stack(list(outputs)) for outputs in zip(*(follow(y) for y in Y.T), strict=True)]
