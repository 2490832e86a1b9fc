"""`nystrom`: the kernel approximated by its values at landmarks, with L2 regularisation.

Williams and Seeger (2001): lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)'K_mm^-1 k_m(y)
over at most D landmarks; no bias. The model consists of the landmarks and the coefficients
K_mm^(-1/2) w, so that a prediction needs D kernel values per row. A baseline of Wu et al. (2016,
section 5.2), who draw the landmarks at random.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.fitting.callbacks import evaluating
from rfx.fitting.expansion import ExpansionMethod, ExpansionModel
from rfx.fitting.linear import coefficients_along, left_out, solve
from rfx.fitting.method import Fitted
from rfx.fitting.options import CG, CHOSEN_LAM, CLASS_WEIGHT, LIBLINEAR, N_FEATURES, SOLVER, TOL
from rfx.fitting.problem import Cache, Clock, Problem
from rfx.operators.blocks import default_memory_mb
from rfx.operators.mapped import feature_matrix
from rfx.options import Chosen, option

# The coefficients of nearly dependent landmarks cancel.
DECISION_DTYPE = np.float64


class Nystrom(ExpansionMethod):
    """Nystrom features of landmarks with L2 regularisation."""

    name = "nystrom"
    accelerated = True
    summary = "Nystrom approximation of the kernel machine from landmarks"
    evaluates_steps = True
    landmarks: str = option(
        "uniform",
        "How landmarks are chosen.",
        of={
            "uniform": "rows drawn uniformly",
            "kmeans": "centres of k-means",
            "rpcholesky": "pivots of randomly pivoted Cholesky",
        },
    )
    n_features: int = N_FEATURES(help="Number D of landmarks.")
    lam: float | Chosen = CHOSEN_LAM()
    solver: str = SOLVER.adding(CG, LIBLINEAR)()
    tol: float | None = TOL(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR.")
    class_weight: str | None = CLASS_WEIGHT()

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock, limit = Clock(), self.max_memory
        feature_map, Z = clock.timed("features", self._features, problem)
        decide = lambda rows: feature_matrix(feature_map, rows, 1.0, limit).matvec
        solution = solve(Z, problem, self, evaluating(problem, decide))
        details = {"n_features": self.n_features, "rank": feature_map.n_features}
        model = _model(feature_map, np.asarray(solution.coef))
        values = left_out(Z, solution, problem, self)
        return Fitted(model, solution, details, clock.seconds, values)

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        if self.solver != "rfx":
            yield from super().decisions_along(problem, lams, X_out, cache)
            return
        feature_map, Z = self._features(problem)
        for coef in coefficients_along(Z, problem, self, lams):
            yield _model(feature_map, coef).decision(X_out)

    def restore(self, header, arrays) -> ExpansionModel:
        return ExpansionModel.restored(header, arrays, self, DECISION_DTYPE)

    def _features(self, problem: Problem) -> tuple[NystromMap, Any]:
        """The map of the landmarks, and its features Z (n, D) of the rows."""
        X, params = problem.X, self.kernel_params(problem.X)
        limit = default_memory_mb() if self.max_memory is None else self.max_memory
        chosen = (self.landmarks, self.kernel, X, params, self.n_features, self.seed, limit)
        feature_map = NystromMap(self.kernel, choose_landmarks(*chosen), params, self.dtype)
        return feature_map, feature_matrix(feature_map, X, 1.0, limit)


def _model(feature_map: NystromMap, coef: np.ndarray) -> ExpansionModel:
    kernel, params, rows = feature_map.name, feature_map.params, feature_map.landmarks
    intercept = np.zeros(coef.shape[1])
    return ExpansionModel.of(
        kernel, params, rows, feature_map.fold(coef), intercept, DECISION_DTYPE
    )
