"""`rf`: random features as a Monte-Carlo approximation of the kernel, L2-regularised (Yen et al. 2014, eq. 5)."""

import math

import numpy as np

from rfx.methods import l2
from rfx.methods.linear import LinearMethod
from rfx.solvers.blocks import feature_blocks


class RF(LinearMethod):
    """lam/2 ||w||^2 + sum L(w.z(x), y) with z = D^(-1/2) [phi_1 .. phi_D]; no bias."""

    name = "rf"
    summary = "random features with L2 regularisation: approximates the kernel machine"
    options = {
        "kernel": "gaussian", "gamma": "paper", "features": "offset", "n_features": 1000, "lam": 1.0, "loss": None,
        "solver": "rfx", "tol": None, "max_iter": None, "dtype": "float32", "max_memory": None,
    }
    words = {"lam": (), "solver": ("rfx", "cg", "liblinear")}

    def _fit(self, X, Y):
        self.lam = self.params["lam"]
        feature_map, blocks = self._timed(self._blocks, X, Y)
        solution = l2.solve(self, blocks, Y)
        self._keep_nonzero(feature_map, np.asarray(solution.coef) / math.sqrt(self.params["n_features"]))
        return solution

    def _blocks(self, X, Y):
        feature_map = self._sample(X, Y, self.lam)
        return feature_map, feature_blocks(feature_map, X, 1 / math.sqrt(feature_map.n_features), self.params["max_memory"])
