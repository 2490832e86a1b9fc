"""`rb`: random binning features, L2-regularised (Wu et al. 2016, equation 8)."""

import numpy as np

from rfx.methods.binned import BinnedMethod
from rfx.solvers.binned_l2 import solve_binned_l2, solve_binned_ridge


class RB(BinnedMethod):
    """lam/2 ||w||^2 + sum L(w.z(x), y) with z of value 1/sqrt(R) in one bin of each of R grids; no bias.

    The loss is squared by default, for classes too, as in the paper; lam is not multiplied by the number of rows.
    """

    name = "rb"
    summary = "random binning features with L2 regularisation: approximates the Laplacian kernel machine"
    default_loss = "squared"
    options = {
        "kernel": "laplacian", "gamma": "paper", "n_grids": 256, "lam": 0.01, "loss": None, "tol": None, "max_iter": None,
    }
    words = {"lam": (), "kernel": ("laplacian",)}

    def _fit(self, X, Y):
        grids, bins, Z = self._timed(self._number, X, Y)
        if self.loss.name == "squared":
            solution = solve_binned_ridge(Z, Y, self.lam, **self._limits())
        else:
            solution = self._each_output(Y, lambda y: solve_binned_l2(Z, y, self.lam, self.loss, **self._limits()))
        self._keep_nonzero(grids, bins, np.asarray(solution.coef) * Z.scale)
        return solution
