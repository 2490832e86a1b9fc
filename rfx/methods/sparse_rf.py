"""`sparse-rf`: Sparse Random Features, Algorithm 1 of Yen et al. (2014).

lam ||w||_1 + sum L(w.phi(x), y) over unscaled features phi (eq. 9), in T rounds of D/T new
features; no bias. Only features with nonzero weight are in the model. Solver prcd is the coordinate
descent of Wu et al. (2016) over all features at once, without rounds.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from rfx.errors import UsageError
from rfx.features import FeatureMap
from rfx.fitting import weights
from rfx.fitting.cache import Cache
from rfx.fitting.linear import (
    CHOOSE,
    OPTIONS,
    POOL,
    LinearMethod,
    LinearModel,
    ValidationRows,
    check_path,
    sampled,
    step_callback,
)
from rfx.fitting.method import Fitted, budget, each_output
from rfx.fitting.options import (
    AUTO,
    LAM_L1,
    LAM_PATH,
    LIBLINEAR,
    MOST,
    ON_SAMPLE,
    PRCD,
    SOLVER,
    TOL,
)
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.settings import Settings
from rfx.fitting.validation import GAMMA_FACTORS, L1_HELP, error, l1_lams
from rfx.kernels import get_kernel
from rfx.methods.rf import RF
from rfx.operators.mapped import computed, feature_matrix, told_memory_mb
from rfx.options import Option
from rfx.solvers.base import Solution, stack
from rfx.solvers.l1.algorithm1 import in_parts, solve_rounds
from rfx.solvers.l1.newton import path_l1
from rfx.solvers.l1.prcd import solve_prcd
from rfx.solvers.published.liblinear import solve_liblinear

LAMBDAS = (1000.0, 100.0, 10.0, 1.0)
# Options shared with rf, for --lam match-rf.
SHARED = (
    "kernel",
    "gamma",
    "features",
    "n_features",
    "choose",
    "pool",
    "dtype",
    "max_memory",
    "seed",
)


class SparseRF(LinearMethod):
    """Random features with L1 regularisation, drawn in rounds."""

    name = "sparse-rf"
    summary = "random features with L1 regularisation, drawn in rounds: a small model (Algorithm 1)"
    evaluates_steps = weighted = distributed = True
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMBDAS}
    options: ClassVar[tuple[Option, ...]] = (
        *OPTIONS,
        CHOOSE,
        POOL,
        LAM_L1.but(
            choices={
                "validation": f"the best of 1000, 100, 10, 1 on held-out rows; {L1_HELP}",
                "match-rf": (
                    "closest to rf on held-out rows, as in Yen et al.; the search ends when the"
                    " error is at most rf's or rises"
                ),
            }
            | ON_SAMPLE,
            default=AUTO,
        ),
        LAM_PATH.but(help=f"{LAM_PATH.help} Each starts at the previous solution."),
        SOLVER.adding(LIBLINEAR, PRCD),
        TOL.but(help=f"{TOL.help} The `-e` of LIBLINEAR."),
        Option(
            "rounds",
            int,
            "Rounds T of Algorithm 1; each draws D/T new features.",
            low=1,
            high=MOST,
            default=10,
        ),
    )

    def check(self, settings: Settings, given: dict[str, Any]) -> None:
        super().check(settings, given)
        if (settings.gamma, settings.lam) == ("validation", "match-rf"):
            raise UsageError(
                "--lam is match-rf, which chooses lambda to match rf's error; --gamma validation"
                " can't be combined with it, use --gamma tuned"
            )

    def fit(self, problem: Problem, settings: Settings, cache: Cache) -> Fitted:
        clock = Clock()
        feature_map = clock.timed("features", sampled, self, problem, settings, 1.0, cache)
        callback = step_callback(problem, feature_map, settings)
        solution, details = _solve(feature_map, problem, settings, clock, callback)
        return _fitted(feature_map, solution, settings, clock, details)

    def fit_path(
        self, problem: Problem, settings: Settings, lams: list[float], cache: Cache
    ) -> list[Fitted]:
        clock = Clock()
        feature_map = clock.timed("features", sampled, self, problem, settings, 1.0, cache)
        check_path(settings)
        limit = settings.max_memory
        Z = clock.timed("features", feature_matrix, feature_map, problem.X, 1.0, limit)
        Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
        outputs = [
            path_l1(Z, Y[:, k], lams, loss, budget(problem, settings)) for k in range(Y.shape[1])
        ]
        solutions = [stack(list(each)) for each in zip(*outputs)]
        return [_fitted(feature_map, one, settings, clock, {}) for one in solutions]

    def decisions_along(
        self, problem: Problem, settings: Settings, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        rows = ValidationRows.of(X_out, settings, cache)
        for lam in lams:
            model = self.fit(problem, settings.updated(lam=lam), cache).model
            assert isinstance(model, LinearModel)
            yield rows.decision(model)

    # ------------------------------------------------------------------ choice of options

    def candidates(self, name: str, problem: Problem, settings: Settings) -> list[float]:
        if name == "lam":
            return l1_lams(LAMBDAS, problem, settings)
        return super().candidates(name, problem, settings)

    def tuning_lams(self, problem: Problem, settings: Settings) -> list[float]:
        # for ridge regression, whose lambda has another meaning than that of L1
        return [problem.mean_weight]

    def target_error(
        self, problem: Problem, out: Problem, settings: Settings, share: float, cache: Cache
    ) -> float | None:
        """With --lam match-rf: the error of rf with the same features and lambda_N = 1."""
        if settings.lam != "match-rf":
            return None
        own = [option.name for option in get_kernel(settings.kernel).options]
        rf = Settings.resolve(
            RF, settings.of([*SHARED, *own]) | {"lam": share * problem.mean_weight}
        )
        model = RF().fit(problem, rf, cache).model
        return error(problem.task, model.decision(out.X), out.Y, out.weights)


def _solve(
    feature_map: FeatureMap, problem: Problem, settings: Settings, clock: Clock, callback: Any
) -> tuple[Solution, dict[str, Any]]:
    """The solution over the unscaled features, and further entries of a results row."""
    Z, lam, seed = computed(feature_map, problem.X), settings.lam, settings.seed
    limits = budget(problem, settings)
    memory_mb: float = settings.max_memory or told_memory_mb(Z.size_mb)
    rounds = replace(limits, memory_mb=memory_mb)
    if settings.solver == "prcd":
        Z = clock.timed("features", Z.by_columns, rounds.memory_mb)

        def descend(y, tell):
            return solve_prcd(Z, y, lam, problem.loss, rounds, callback=tell, seed=seed)

        return each_output(problem.Y, descend, callback), {}
    inner = None
    if settings.solver == "liblinear":

        def published(part, y, lam, loss, budget):
            # its tolerance has another meaning, and is the same in all rounds
            return solve_liblinear(part, y, lam, loss, limits, penalty="l1", seed=seed)

        inner = in_parts(published)
    if Z.heights is not None:
        # few enough bytes to share them among all rounds
        Z = clock.timed("features", Z.hold, memory_mb / 2)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)

    def solve(y, tell):
        return solve_rounds(
            Z, y, lam, loss, rounds, callback=tell, rounds=settings.rounds, solve=inner
        )

    solution = each_output(Y, solve, callback)
    # --tol refers to the reported gap, over all features including dropped ones
    last = solution.trace[-1]["iteration"]
    gap = sum(entry["gap"] for entry in solution.trace if entry["iteration"] == last)
    return solution, {"round_gap": gap} if last > 1 else {}


def _fitted(
    feature_map: FeatureMap, solution: Solution, settings: Settings, clock: Clock, details: dict
) -> Fitted:
    model = LinearModel.of(feature_map, solution.coef)
    return Fitted(model, solution, {"n_features": settings.n_features} | details, clock.seconds)
