"""`rf`: random features as a Monte-Carlo approximation of the kernel, with L2 regularisation.

Yen et al. (2014), equation 5: lam/2 ||w||^2 + sum L(w.z(x), y) with z = D^(-1/2) [phi_1 .. phi_D].
There is no bias; --offset mean subtracts the targets' mean.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rfx.features import FeatureMap
from rfx.fitting import solving
from rfx.fitting.cache import Cache
from rfx.fitting.linear import (
    CHOOSE,
    OFFSET,
    POOL,
    LinearMethod,
    LinearModel,
    ValidationRows,
    check_path,
    sampled,
    step_callback,
    target_offset,
)
from rfx.fitting.method import Fitted, Method
from rfx.fitting.options import CG, CHOSEN_LAM, LAM_PATH, LIBLINEAR, SOLVER, TOL
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.validation import GAMMA_FACTORS, LAMS
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.operators.coded import WORTH_MB
from rfx.operators.mapped import feature_matrix
from rfx.options import Chosen, Path
from rfx.solvers.base import Solution


class RF(LinearMethod):
    """Random features with L2 regularisation."""

    name = "rf"
    summary = "random features with L2 regularisation: approximates the kernel machine"
    evaluates_steps = distributed = True
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    choose: str | None = CHOOSE()
    pool: int | None = POOL()
    lam: float | Chosen = CHOSEN_LAM()
    offset: str | None = OFFSET(
        help=f"{OFFSET.help} By default none.", choices=("mean",), default=None
    )
    lam_path: str | None = LAM_PATH(
        help=(
            f"{LAM_PATH.help} Squared loss uses one Gram matrix; other losses start each lambda"
            " at the previous solution."
        )
    )
    solver: str = SOLVER.adding(CG, LIBLINEAR)()
    tol: float | None = TOL(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR.")
    class_weight: str | None = CLASS_WEIGHT()

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock, offset = Clock(), target_offset(problem, self)
        # Newton's method for one output can store many features as 8-bit codes
        newton = problem.loss.name != "squared" and self.solver == "rfx"
        worth_mb = WORTH_MB if newton and problem.n_outputs == 1 else math.inf
        feature_map, Z = clock.timed("features", _features, problem, self, cache, worth_mb)
        callback = step_callback(problem, feature_map, self, _scale(feature_map), offset)
        solution = solving.solve(Z, problem.less(offset), self, callback)
        return _fitted(feature_map, solution, offset, self, clock)

    def fit_path(self, problem: Problem, lams: list[float], cache: Cache) -> list[Fitted]:
        check_path(self)
        clock, offset = Clock(), target_offset(problem, self)
        self = self.updated(lam=lams[0])
        feature_map, Z = clock.timed("features", _features, problem, self, cache)
        solutions = solving.solve_path(Z, problem.less(offset), self, lams)
        return [_fitted(feature_map, one, offset, self, clock) for one in solutions]

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        rows = ValidationRows.of(X_out, self, cache)
        if self.solver != "rfx" or self.choose:
            # the features, or the solver's starting point, depend on lambda
            for lam in lams:
                model = self.updated(lam=lam).fit(problem, cache).model
                assert isinstance(model, LinearModel)
                yield rows.decision(model)
            return
        offset = target_offset(problem, self)
        feature_map, Z = _features(problem, self.updated(lam=lams[0]), cache)
        root = math.sqrt(feature_map.n_features)
        for coef in solving.coefficients_along(Z, problem.less(offset), self, lams):
            yield rows.decision(LinearModel(feature_map, coef / root, _saved(offset, self)))

    def tuning_lams(self, problem: Problem) -> list[float]:
        if self.lam_path:
            check_path(self)
            return Path.values(self.lam_path)[:1]
        return super().tuning_lams(problem)


def _features(
    problem: Problem, method: RF, cache: Cache, worth_mb: float = math.inf
) -> tuple[FeatureMap, Any]:
    """The map and the matrix Z (n, D) of the scaled features."""
    feature_map = sampled(method, problem, method.lam / problem.mean_weight, cache)
    limit = method.max_memory
    Z = feature_matrix(feature_map, problem.X, _scale(feature_map), limit, worth_mb)
    return feature_map, Z


def _scale(feature_map: FeatureMap) -> float:
    return 1 / math.sqrt(feature_map.n_features)


def _fitted(
    feature_map: FeatureMap,
    solution: Solution,
    offset: np.ndarray,
    method: Method,
    clock: Clock,
) -> Fitted:
    coef = np.asarray(solution.coef) * _scale(feature_map)
    model = LinearModel.of(feature_map, coef, _saved(offset, method))
    return Fitted(model, solution, {"n_features": method.n_features}, clock.seconds)


def _saved(offset: np.ndarray, method: Method) -> np.ndarray | None:
    return offset if method.offset == "mean" else None
