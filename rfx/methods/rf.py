"""`rf`: random features as a Monte-Carlo approximation of the kernel, L2-regularised (Yen et al. 2014, eq. 5)."""

import math

from rfx.methods import l2
from rfx.methods.linear import CHOOSE, OFFSET, OPTIONS, POOL, LinearMethod
from rfx.methods.options import CG, CHOSEN_LAM, LAM_PATH, LIBLINEAR, SOLVER, TOL
from rfx.methods.validation import GAMMA_FACTORS, LAMS
from rfx.operators.coded import WORTH_MB
from rfx.operators.mapped import feature_matrix


class RF(LinearMethod):
    """lam/2 ||w||^2 + sum L(w.z(x), y) with z = D^(-1/2) [phi_1 .. phi_D]; no bias, but the targets' mean on request."""

    name = "rf"
    watches = True
    weighted = True
    spreads = True
    summary = "random features with L2 regularisation: approximates the kernel machine"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    options = (
        *OPTIONS,
        CHOOSE,
        POOL,
        CHOSEN_LAM,
        OFFSET.but(help=f"{OFFSET.help} By default nothing.", choices=("mean",), default=None),
        LAM_PATH.but(help=f"{LAM_PATH.help} With squared loss from one Gram matrix, else each started at the one before."),
        SOLVER.but(choices=SOLVER.choices | CG | LIBLINEAR),
        TOL.but(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR."),
    )

    def _fit(self, X, Y):
        lams = self._path_lams() if self.params["lam_path"] else [self.lam]
        self.lam, self.offset = lams[0], self._offset(Y)
        Y = Y - self.offset
        # Newton's method for one output holds many features as codes
        own = self.loss.name != "squared" and self.params["solver"] == "rfx" and Y.shape[1] == 1 and not self.params["lam_path"]
        feature_map, Z = self._timed(self._features, X, WORTH_MB if own else math.inf)
        scale = 1 / math.sqrt(feature_map.n_features)
        if self.params["lam_path"]:
            solutions = l2.solve_path(self, Z, Y, lams)
        else:
            solutions = [l2.solve(self, Z, Y, self._watcher(feature_map, Y, scale))]
        return self._keep_path(feature_map, lams, solutions, scale)

    def _fit_each(self, X, Y, lams):
        """All lambdas over the same features by a path, where neither depends on lambda."""
        if self.params["solver"] != "rfx" or self.params["choose"]:
            yield from super()._fit_each(X, Y, lams)
            return
        self.lam, self.map, self.offset = lams[0], None, self._offset(Y)  # of many inputs two maps at once are too much
        feature_map, Z = self._features(X)
        for lam, coef in zip(lams, l2.judging_path(self, Z, Y - self.offset, lams)):
            self.lam = lam
            self.map, self.coef = feature_map, coef / math.sqrt(feature_map.n_features)
            yield self

    def _tuning_lams(self):
        return self._path_lams()[:1] if self.params["lam_path"] else super()._tuning_lams()

    def _features(self, X, worth_mb=math.inf):
        feature_map = self._sample(X, self.lam)
        scale = 1 / math.sqrt(feature_map.n_features)
        return feature_map, feature_matrix(feature_map, X, scale, self.params["max_memory"], worth_mb)
