"""Select the solver of a linear model with L2 regularisation, by its options, its loss, and the
task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.method import Method, budget, each_output
from rfx.fitting.problem import Problem
from rfx.solvers.base import Certificate, Solution, stack
from rfx.solvers.l2 import solve_l2
from rfx.solvers.normal import MOST, ridge_path
from rfx.solvers.published.liblinear import solve_liblinear
from rfx.solvers.ridge import solve_ridge, solve_ridge_cg, solve_ridge_grid


def solve(Z: Any, problem: Problem, method: Method, callback: Any = None) -> Solution:
    """The weights (D, k) over features Z (n, D): lam/2 ||w||^2 + sum L(w.z, y) for each output.

    Parameters
    ----------
    Z : Matrix, (n, D)
    problem : Problem
        Targets, loss and sample weights.
    method : Method
        With lam, solver, tol, max_iter and max_memory.
    callback : callable or None
        Receives every step.

    Raises
    ------
    UsageError
        For a solver that does not support the loss.
    """
    solver, lam, limits = method.solver, method.lam, budget(problem, method)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    if not Z.shape[1]:
        # without features, every prediction is zero, and that is the minimum
        values = loss.value(np.zeros_like(Y), Y).sum(axis=0)
        certificate, empty = Certificate("gap", 0.0), np.zeros((0, Y.shape[1]))
        return Solution(empty, float(values.sum()), certificate, 0, "converged")
    if solver == "cg":
        if loss.name != "squared":
            raise UsageError(
                f"--solver is cg, which is for squared loss, not {loss.name}; use --loss squared or"
                " --solver rfx"
            )
        return solve_ridge_cg(Z, Y, lam, loss, limits, callback=callback)
    if solver == "liblinear":
        return each_output(
            Y,
            lambda y, tell: solve_liblinear(
                Z, y, lam, problem.loss, limits, callback=tell, seed=method.seed
            ),
            callback,
        )
    if loss.name == "squared":
        return solve_ridge(Z, Y, lam, loss, limits, callback=callback)
    return each_output(
        Y, lambda y, tell: solve_l2(Z, y, lam, loss, limits, callback=tell), callback
    )


def coefficients_along(
    Z: Any, problem: Problem, method: Method, lams: list[float]
) -> Iterator[np.ndarray]:
    """Weights (D, k) for each lambda, of models that are only evaluated.

    They are exact for squared loss, else to --tol.
    """
    limits = budget(problem, method)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    if loss.name == "squared" and Z.shape[1] <= min(MOST, 2 * Z.shape[0]):
        yield from ridge_path(Z, Y, lams)
    elif loss.name == "squared":
        yield from (one.coef for one in solve_ridge_grid(Z, Y, lams, loss, limits))
    else:
        coef: list[np.ndarray] = []
        for lam in lams:
            coef = [
                solve_l2(Z, Y[:, k], lam, loss, limits, coef[k] if coef else None).coef
                for k in range(Y.shape[1])
            ]
            yield np.stack(coef, axis=1)


def solve_path(Z: Any, problem: Problem, method: Method, lams: list[float]) -> list[Solution]:
    """A solution for each lambda by rfx's own solvers.

    Squared loss uses one Gram matrix for all of them; other losses start each at the previous
    solution.
    """
    limits = budget(problem, method)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    if loss.name == "squared":
        return solve_ridge_grid(Z, Y, lams, loss, limits)

    def follow(y: np.ndarray) -> list[Solution]:
        coef: np.ndarray | None = None
        solutions: list[Solution] = []
        for lam in lams:
            solutions.append(solve_l2(Z, y, lam, loss, limits, coef))
            coef = solutions[-1].coef
        return solutions

    return [
        stack(list(outputs))
        for outputs in zip(*(follow(Y[:, k]) for k in range(Y.shape[1])), strict=True)
    ]
