"""`rf`: random features as a Monte-Carlo approximation of the kernel, L2-regularised (Yen et al. 2014, eq. 5)."""

import math

import numpy as np

from rfx.methods.linear import LinearMethod
from rfx.solvers.blocks import feature_blocks
from rfx.solvers.l2 import solve_l2
from rfx.solvers.liblinear import solve_liblinear
from rfx.solvers.ridge import solve_ridge


class RF(LinearMethod):
    """lam/2 ||w||^2 + sum L(w.z(x), y) with z = D^(-1/2) [phi_1 .. phi_D]; no bias."""

    name = "rf"
    summary = "random features with L2 regularisation: approximates the kernel machine"
    options = {
        "kernel": "gaussian", "gamma": "paper", "features": "offset", "n_features": 1000, "lam": 1.0, "loss": None,
        "solver": "rfx", "tol": None, "max_iter": None, "dtype": "float32", "max_memory": None,
    }
    words = {"lam": (), "solver": ("rfx", "liblinear")}

    def _fit(self, X, Y):
        p = self.params
        self.lam = p["lam"]
        feature_map, blocks = self._timed(self._blocks, X, Y)
        if p["solver"] == "liblinear":
            tol = p["tol"] or 0.01

            def solve(y):
                return solve_liblinear(
                    blocks, y, self.lam, self.loss, "l2", tol=tol, seed=p["seed"], timeout=self._remaining()
                )

            solution = self._each_output(Y, solve)
        elif self.task == "regression":
            solution = solve_ridge(blocks, Y, self.lam, **self._limits())
        else:
            solution = self._each_output(Y, lambda y: solve_l2(blocks, y, self.lam, self.loss, **self._limits()))
        self._keep_nonzero(feature_map, np.asarray(solution.coef) / math.sqrt(p["n_features"]))
        return solution

    def _blocks(self, X, Y):
        feature_map = self._sample(X, Y, self.lam)
        return feature_map, feature_blocks(feature_map, X, 1 / math.sqrt(feature_map.n_features), self.params["max_memory"])

    def _limits(self):
        p = self.params
        limits = {"max_memory_mb": p["max_memory"], "deadline": self.deadline, "tol": p["tol"], "max_iter": p["max_iter"]}
        return {key: value for key, value in limits.items() if value is not None}
