"""`sparse-rf`: Sparse Random Features, Algorithm 1 of Yen et al. (2014).

lam ||w||_1 + sum L(w.phi(x), y) over unscaled features phi (eq. 9), in T rounds of D/T new
features; no bias. Only features with nonzero weight are in the model. Solver prcd is the coordinate
descent of Wu et al. (2016) over all features at once, without rounds.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rfx.errors import UsageError
from rfx.features import FeatureMap
from rfx.fitting import weights
from rfx.fitting.cache import Cache
from rfx.fitting.linear import (
    CHOOSE,
    POOL,
    LinearMethod,
    LinearModel,
    ValidationRows,
    check_path,
    sampled,
    step_callback,
)
from rfx.fitting.method import Fitted, Method, budget, each_output
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
from rfx.fitting.validation import GAMMA_FACTORS, L1_HELP, error, l1_lams
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.kernels import get_kernel
from rfx.methods.rf import RF
from rfx.operators.mapped import computed, feature_matrix, told_memory_mb
from rfx.options import Chosen, option
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
    evaluates_steps = distributed = True
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMBDAS}
    choose: str | None = CHOOSE()
    pool: int | None = POOL()
    lam: float | Chosen = LAM_L1(
        choices={
            "validation": f"the best of 1000, 100, 10, 1 on held-out rows; {L1_HELP}",
            "match-rf": (
                "closest to rf on held-out rows, as in Yen et al.; the search ends when the"
                " error is at most rf's or rises"
            ),
        }
        | ON_SAMPLE,
        default=AUTO,
    )
    lam_path: str | None = LAM_PATH(help=f"{LAM_PATH.help} Each starts at the previous solution.")
    solver: str = SOLVER.adding(LIBLINEAR, PRCD)()
    tol: float | None = TOL(help=f"{TOL.help} The `-e` of LIBLINEAR.")
    rounds: int = option(
        10, "Rounds T of Algorithm 1; each draws D/T new features.", least=1, most=MOST
    )
    class_weight: str | None = CLASS_WEIGHT()

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        if (self.gamma, self.lam) == ("validation", "match-rf"):
            raise UsageError(
                "--lam is match-rf, which chooses lambda to match rf's error; --gamma validation"
                " can't be combined with it, use --gamma tuned"
            )

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        feature_map = clock.timed("features", sampled, self, problem, 1.0, cache)
        callback = step_callback(problem, feature_map, self)
        solution, details = _solve(feature_map, problem, self, clock, callback)
        return _fitted(feature_map, solution, self, clock, details)

    def fit_path(self, problem: Problem, lams: list[float], cache: Cache) -> list[Fitted]:
        clock = Clock()
        feature_map = clock.timed("features", sampled, self, problem, 1.0, cache)
        check_path(self)
        limit = self.max_memory
        Z = clock.timed("features", feature_matrix, feature_map, problem.X, 1.0, limit)
        Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
        outputs = [
            path_l1(Z, Y[:, k], lams, loss, budget(problem, self)) for k in range(Y.shape[1])
        ]
        solutions = [stack(list(each)) for each in zip(*outputs)]
        return [_fitted(feature_map, one, self, clock, {}) for one in solutions]

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        rows = ValidationRows.of(X_out, self, cache)
        for lam in lams:
            model = self.updated(lam=lam).fit(problem, cache).model
            assert isinstance(model, LinearModel)
            yield rows.decision(model)

    # ------------------------------------------------------------------ choice of options

    def candidates(self, name: str, problem: Problem) -> list[float]:
        if name == "lam":
            return l1_lams(LAMBDAS, problem, self)
        return super().candidates(name, problem)

    def tuning_lams(self, problem: Problem) -> list[float]:
        # for ridge regression, whose lambda has another meaning than that of L1
        return [problem.mean_weight]

    def target_error(
        self, problem: Problem, out: Problem, share: float, cache: Cache
    ) -> float | None:
        """With --lam match-rf: the error of rf with the same features and lambda_N = 1."""
        if self.lam != "match-rf":
            return None
        own = [option.name for option in get_kernel(self.kernel).options]
        shared = {name: self.get(name) for name in (*SHARED, *own)}
        model = RF.of(shared | {"lam": share * problem.mean_weight}).fit(problem, cache).model
        return error(problem.task, model.decision(out.X), out.Y, out.weights)


def _solve(
    feature_map: FeatureMap, problem: Problem, method: Method, clock: Clock, callback: Any
) -> tuple[Solution, dict[str, Any]]:
    """The solution over the unscaled features, and further entries of a results row."""
    Z, lam, seed = computed(feature_map, problem.X), method.lam, method.seed
    limits = budget(problem, method)
    memory_mb: float = method.max_memory or told_memory_mb(Z.size_mb)
    rounds = replace(limits, memory_mb=memory_mb)
    if method.solver == "prcd":
        Z = clock.timed("features", Z.by_columns, rounds.memory_mb)

        def descend(y, tell):
            return solve_prcd(Z, y, lam, problem.loss, rounds, callback=tell, seed=seed)

        return each_output(problem.Y, descend, callback), {}
    inner = None
    if method.solver == "liblinear":

        def published(part, y, lam, loss, budget):
            # its tolerance has another meaning, and is the same in all rounds
            return solve_liblinear(part, y, lam, loss, limits, penalty="l1", seed=seed)

        inner = in_parts(published)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)

    def solve(y, tell):
        return solve_rounds(
            Z, y, lam, loss, rounds, callback=tell, rounds=method.rounds, solve=inner
        )

    solution = each_output(Y, solve, callback)
    # --tol refers to the reported gap, over all features including dropped ones
    last = solution.trace[-1]["iteration"]
    gap = sum(entry["gap"] for entry in solution.trace if entry["iteration"] == last)
    return solution, {"round_gap": gap} if last > 1 else {}


def _fitted(
    feature_map: FeatureMap, solution: Solution, method: Method, clock: Clock, details: dict
) -> Fitted:
    model = LinearModel.of(feature_map, solution.coef)
    return Fitted(model, solution, {"n_features": method.n_features} | details, clock.seconds)
