"""`nystrom`: the kernel approximated by its values with landmarks, L2-regularised (Williams and Seeger 2001).

A baseline of Wu et al. (2016, section 5.2), who take the landmarks at random.
"""

import numpy as np

from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.methods import l2
from rfx.methods.expansion import OPTIONS, ExpansionMethod
from rfx.methods.options import CG, CHOSEN_LAM, LIBLINEAR, LOSS, N_FEATURES, SOLVER, TOL
from rfx.methods.validation import GAMMA_FACTORS, LAMS
from rfx.methods.watch import watcher
from rfx.operators.base import default_memory_mb
from rfx.operators.mapped import feature_matrix
from rfx.options import Option

LANDMARKS = Option(
    "landmarks",
    str,
    "How landmarks are found.",
    {
        "uniform": "rows drawn uniformly",
        "kmeans": "centres of k-means",
        "rpcholesky": "pivots of randomly pivoted Cholesky",
    },
    default="uniform",
)


class Nystrom(ExpansionMethod):
    """lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)'K_mm^-1 k_m(y) over at most D landmarks; no bias.

    The model is the landmarks and the coefficients K_mm^(-1/2) w, so that predicting takes D kernel values a row.
    """

    name = "nystrom"
    watches = True
    weighted = True
    summary = "Nystrom approximation of the kernel machine from landmarks"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    decision_dtype = np.float64  # the coefficients of near-dependent landmarks cancel
    options = (
        *OPTIONS,
        LANDMARKS,
        N_FEATURES.but(help="Number D of landmarks."),
        CHOSEN_LAM,
        LOSS,
        SOLVER.but(choices=SOLVER.choices | CG | LIBLINEAR),
        TOL.but(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR."),
    )

    def _fit(self, X, Y):
        p = self.params
        feature_map, Z = self._timed(self._features, X)
        decide = lambda rows: feature_matrix(feature_map, rows, 1.0, p["max_memory"]).matvec
        solution = l2.solve(self, Z, Y, watcher(self, decide, Y.shape[1]))
        self._keep(feature_map, np.asarray(solution.coef))
        return solution

    def _fit_each(self, X, Y, lams):
        """All lambdas over the same landmarks by a path."""
        if self.params["solver"] != "rfx":
            yield from super()._fit_each(X, Y, lams)
            return
        feature_map, Z = self._features(X)
        for lam, coef in zip(lams, l2.judging_path(self, Z, Y, lams)):
            self.lam = lam
            self._keep(feature_map, coef)
            yield self

    def _keep(self, feature_map, coef):
        self.rank = feature_map.n_features
        self.intercept = np.zeros(coef.shape[1])
        self._keep_nonzero(feature_map.landmarks, feature_map.fold(coef))

    def _features(self, X):
        p = self.params
        self.kernel_params = self._learn_kernel(X)
        limit = default_memory_mb() if p["max_memory"] is None else p["max_memory"]
        landmarks = choose_landmarks(p["landmarks"], p["kernel"], X, self.kernel_params, p["n_features"], p["seed"], limit)
        feature_map = NystromMap(p["kernel"], landmarks, self.kernel_params, p["dtype"])
        return feature_map, feature_matrix(feature_map, X, 1.0, limit)

    def _describe(self):
        return super()._describe() | {"n_features": self.params["n_features"], "rank": self.rank}
