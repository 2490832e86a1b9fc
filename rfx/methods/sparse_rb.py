"""`sparse-rb`: random binning features, L1-regularised (Wu et al. 2016, section 4.2)."""

import numpy as np

from rfx.methods.binned import BinnedMethod
from rfx.solvers.rb_l1 import solve_rb_l1
from rfx.solvers.rb_l1_prcd import solve_rb_prcd


class SparseRB(BinnedMethod):
    """lam ||w||_1 + sum L(w.z(x), y) with z of value 1/sqrt(R) in one bin of each of R grids; no bias.

    Only bins with a non-zero weight are in the model. solver prcd is the paper's coordinate descent over single bins.
    """

    name = "sparse-rb"
    summary = "random binning features with L1 regularisation: a small model"
    options = {
        "kernel": "laplacian", "gamma": "paper", "n_grids": 256, "lam": 1.0, "loss": None, "solver": "rfx", "tol": None,
        "max_iter": None,
    }
    words = {"lam": (), "kernel": ("laplacian",), "solver": ("rfx", "prcd")}

    def _fit(self, X, Y):
        p = self.params
        grids, bins, Z = self._timed(self._number, X, Y)

        def solve(y):
            if p["solver"] == "prcd":
                return solve_rb_prcd(Z, y, self.lam, self.loss, seed=p["seed"], **self._limits())
            return solve_rb_l1(Z, y, self.lam, self.loss, **self._limits())

        solution = self._each_output(Y, solve)
        self._keep_nonzero(grids, bins, np.asarray(solution.coef) * Z.scale)
        return solution
