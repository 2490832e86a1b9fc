"""`nystrom`: the kernel approximated by its values at landmarks, with L2 regularisation.

Williams and Seeger (2001): lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)'K_mm^-1 k_m(y)
over at most D landmarks; no bias. The model consists of the landmarks and the coefficients
K_mm^(-1/2) w, so that a prediction needs D kernel values per row. A baseline of Wu et al. (2016,
section 5.2), who draw the landmarks at random.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.fitting import solving
from rfx.fitting.cache import Cache
from rfx.fitting.callbacks import evaluating
from rfx.fitting.expansion import OPTIONS, ExpansionMethod, ExpansionModel
from rfx.fitting.method import Fitted, kernel_params
from rfx.fitting.options import CG, CHOSEN_LAM, LIBLINEAR, LOSS, N_FEATURES, SOLVER, TOL
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.settings import Settings
from rfx.fitting.validation import GAMMA_FACTORS, LAMS
from rfx.operators.blocks import default_memory_mb
from rfx.operators.mapped import feature_matrix
from rfx.options import Option

LANDMARKS = Option(
    "landmarks",
    str,
    "How landmarks are chosen.",
    {
        "uniform": "rows drawn uniformly",
        "kmeans": "centres of k-means",
        "rpcholesky": "pivots of randomly pivoted Cholesky",
    },
    default="uniform",
)
# The coefficients of nearly dependent landmarks cancel.
DECISION_DTYPE = np.float64


class Nystrom(ExpansionMethod):
    """Nystrom features of landmarks with L2 regularisation."""

    name = "nystrom"
    summary = "Nystrom approximation of the kernel machine from landmarks"
    evaluates_steps = weighted = True
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    options: ClassVar[tuple[Option, ...]] = (
        *OPTIONS,
        LANDMARKS,
        N_FEATURES.but(help="Number D of landmarks."),
        CHOSEN_LAM,
        LOSS,
        SOLVER.adding(CG, LIBLINEAR),
        TOL.but(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR."),
    )

    def fit(self, problem: Problem, settings: Settings, cache: Cache) -> Fitted:
        clock, limit = Clock(), settings.max_memory
        feature_map, Z = clock.timed("features", _features, problem, settings)
        decide = lambda rows: feature_matrix(feature_map, rows, 1.0, limit).matvec
        solution = solving.solve(Z, problem, settings, evaluating(problem, decide))
        model = _model(feature_map, np.asarray(solution.coef), settings)
        details = {"n_features": settings.n_features, "rank": feature_map.n_features}
        return Fitted(model, solution, details, clock.seconds)

    def decisions_along(
        self, problem: Problem, settings: Settings, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        if settings.solver != "rfx":
            yield from super().decisions_along(problem, settings, lams, X_out, cache)
            return
        feature_map, Z = _features(problem, settings)
        for coef in solving.coefficients_along(Z, problem, settings, lams):
            yield _model(feature_map, coef, settings).decision(X_out)

    def restore(self, header, arrays, settings) -> ExpansionModel:
        return ExpansionModel.restored(header, arrays, settings, DECISION_DTYPE)


def _features(problem: Problem, settings: Settings) -> tuple[NystromMap, Any]:
    """The map of the landmarks, and its features Z (n, D) of the rows."""
    params = kernel_params(problem, settings)
    limit = default_memory_mb() if settings.max_memory is None else settings.max_memory
    landmarks = choose_landmarks(
        settings.landmarks,
        settings.kernel,
        problem.X,
        params,
        settings.n_features,
        settings.seed,
        limit,
    )
    feature_map = NystromMap(settings.kernel, landmarks, params, settings.dtype)
    return feature_map, feature_matrix(feature_map, problem.X, 1.0, limit)


def _model(feature_map: NystromMap, coef: np.ndarray, settings: Settings) -> ExpansionModel:
    return ExpansionModel.of(
        settings.kernel,
        feature_map.params,
        feature_map.landmarks,
        feature_map.fold(coef),
        np.zeros(coef.shape[1]),
        DECISION_DTYPE,
    )
