"""`sparse-rb`: random binning features, L1-regularised (Wu et al. 2016, section 4.2)."""

from dataclasses import replace

import numpy as np

from rfx.methods import weights
from rfx.methods.binned import N_GRIDS, OPTIONS, BinnedMethod, solve_liblinear_each
from rfx.methods.options import LAM_L1, LIBLINEAR, PRCD, SOLVER
from rfx.methods.validation import GAMMA_FACTORS, L1_HELP, l1_lams
from rfx.solvers.l1.bins import solve_rb_l1
from rfx.solvers.l1.prcd import solve_prcd

# MiB for the Gram matrix of the bins in use: at most, and at least even where --max-memory leaves less.
MOST, LEAST = 2048.0, 64.0
# What validation chooses from.
LAMBDAS = (100.0, 10.0, 1.0, 0.1)


class SparseRB(BinnedMethod):
    """lam ||w||_1 + sum L(w.z(x), y) with z of value 1/sqrt(R) in one bin of each of R grids; no bias.

    Only bins with a non-zero weight are in the model. solver prcd is the paper's coordinate descent over single bins.
    """

    name = "sparse-rb"
    summary = "random binning features with L1 regularisation: a small model"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMBDAS}
    weighted = True
    options = (
        *OPTIONS,
        N_GRIDS,
        LAM_L1.but(choices={"validation": f"the best of 100, 10, 1, 0.1 on held-out rows; {L1_HELP}"}, default="validation"),
        SOLVER.but(choices=SOLVER.choices | PRCD | LIBLINEAR),
    )

    def _candidates(self, name, Y):
        return l1_lams(self, LAMBDAS, Y) if name == "lam" else super()._candidates(name, Y)

    def _bytes(self, number):
        # prcd keeps the rows of every bin, too
        return number + 4 if self.params["solver"] == "prcd" else number

    def _fit(self, X, Y):
        grids = self._sample(X)
        bins, Z = self._timed(self._number, grids, X)
        callback = self._watcher(grids, bins, Y)
        if self.params["solver"] == "prcd":
            Z = self._timed(Z.by_columns, np.inf)
            solution = self._each_output(
                Y, lambda y, tell: solve_prcd(Z, y, self.lam, self.loss, self._budget(), callback=tell, seed=self.params["seed"]), callback
            )
        elif self.params["solver"] == "liblinear":
            solution = solve_liblinear_each(self, Z, Y, "l1", callback)
        else:
            budget = replace(self._budget(), memory_mb=min(MOST, max(LEAST, self.memory_left)))
            own, Y, loss = weights.problem(Z, Y, self.loss, self.weights)
            solution = self._each_output(Y, lambda y, tell: solve_rb_l1(own, y, self.lam, loss, budget, callback=tell), callback)
        self._keep_nonzero(grids, bins, Z, np.asarray(solution.coef))
        return solution
