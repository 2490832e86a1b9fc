"""`sparse-rb`: random binning features with L1 regularisation (Wu et al. 2016, section 4.2).

lam ||w||_1 + sum L(w.z(x), y), where z is 1/sqrt(R) in one bin of each of R grids; no bias. Only
bins with nonzero weight are in the model. Solver prcd is the paper's coordinate descent over single
bins.
"""

from dataclasses import replace

import numpy as np

from rfx.fitting import weights
from rfx.fitting.binned import (
    N_GRIDS,
    BinnedMethod,
    fitted,
    numbered,
    solve_liblinear_each,
    step_callback,
)
from rfx.fitting.cache import Cache
from rfx.fitting.method import Fitted, budget, each_output
from rfx.fitting.options import AUTO, LAM_L1, LIBLINEAR, ON_SAMPLE, PRCD, SOLVER
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.validation import GAMMA_FACTORS, L1_HELP, l1_lams
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.options import Chosen
from rfx.solvers.l1.bins import solve_rb_l1
from rfx.solvers.l1.prcd import solve_prcd

# MiB for the Gram matrix of the used bins: the maximum, and a minimum even if --max-memory leaves
# less.
MOST, LEAST = 2048.0, 64.0
# The candidates of validation.
LAMBDAS = (100.0, 10.0, 1.0, 0.1)


class SparseRB(BinnedMethod):
    """Random binning features with L1 regularisation."""

    name = "sparse-rb"
    summary = "random binning features with L1 regularisation: a small model"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMBDAS}
    n_grids: int = N_GRIDS()
    lam: float | Chosen = LAM_L1(
        choices={"validation": f"the best of 100, 10, 1, 0.1 on held-out rows; {L1_HELP}"}
        | ON_SAMPLE,
        default=AUTO,
    )
    solver: str = SOLVER.adding(PRCD, LIBLINEAR)()
    class_weight: str | None = CLASS_WEIGHT()

    def candidates(self, name: str, problem: Problem) -> list[float]:
        if name == "lam":
            return l1_lams(LAMBDAS, problem, self)
        return super().candidates(name, problem)

    def entry_bytes(self, number: int) -> int:
        # prcd also stores the rows of every bin
        return number + 4 if self.solver == "prcd" else number

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock, lam, seed = Clock(), self.lam, self.seed
        left, grids = self.memory_left(problem.X), self.grids(problem)
        bins, Z = clock.timed("features", numbered, grids, problem.X)
        callback, limits = step_callback(problem, grids, bins), budget(problem, self)
        if self.solver == "prcd":
            Z = clock.timed("features", Z.by_columns, np.inf)

            def descend(y, tell):
                return solve_prcd(Z, y, lam, problem.loss, limits, callback=tell, seed=seed)

            solution = each_output(problem.Y, descend, callback)
        elif self.solver == "liblinear":
            solution = solve_liblinear_each(Z, problem, self, "l1", callback)
        else:
            room = replace(limits, memory_mb=min(MOST, max(LEAST, left)))
            own, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
            solution = each_output(
                Y, lambda y, tell: solve_rb_l1(own, y, lam, loss, room, callback=tell), callback
            )
        return fitted(grids, bins, Z, solution, clock)
