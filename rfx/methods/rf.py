"""Random features as a Monte-Carlo approximation of the kernel: `rf` with L2 regularisation, and
Sparse Random Features, `sparse-rf`, Algorithm 1 of Yen et al. (2014), with L1 regularisation.

Equation 5: lam/2 ||w||^2 + sum L(w.z(x), y) with z = D^(-1/2) [phi_1 .. phi_D]. There is no bias;
--offset mean subtracts the targets' mean.

Equation 9: lam ||w||_1 + sum L(w.phi(x), y) over unscaled features phi, in T rounds of D/T new
features; no bias. Only features with nonzero weight are in the model. Solver prcd is the coordinate
descent of Wu et al. (2016) over all features at once, without rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rfx.errors import UsageError
from rfx.features import FeatureMap
from rfx.fitting import candidates, weights
from rfx.fitting.candidates import KERNELS, SearchSpace
from rfx.fitting.linear import (
    CHOOSE,
    OFFSET,
    POOL,
    LinearMethod,
    LinearModel,
    ValidationRows,
    coefficients_along,
    left_out,
    sampled,
    solve,
    solve_path,
    step_callback,
    target_offset,
)
from rfx.fitting.method import Fitted, budget, each_output
from rfx.fitting.options import (
    AUTO,
    CG,
    CHOSEN_LAM,
    CLASS_WEIGHT,
    LAM_L1,
    LAM_PATH,
    LIBLINEAR,
    MOST,
    ON_SAMPLE,
    PRCD,
    SOLVER,
    TOL,
    l1_choice,
)
from rfx.fitting.problem import Cache, Clock, Problem, error
from rfx.kernels import get_kernel
from rfx.operators.coded import WORTH_MB
from rfx.operators.mapped import computed, feature_matrix, told_memory_mb
from rfx.options import Chosen, Path, option
from rfx.solvers.base import Solution, stack
from rfx.solvers.l1.algorithm1 import in_parts, solve_rounds
from rfx.solvers.l1.newton import path_l1
from rfx.solvers.l1.prcd import solve_prcd
from rfx.solvers.published.liblinear import solve_liblinear

# Options shared by both, for --lam match-rf.
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


class _Drawn(LinearMethod):
    """A method with one weight for each random feature, whose lambdas are evaluated one by one."""

    evaluates_steps = distributed = True

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        rows = ValidationRows.of(X_out, self, cache)
        for lam in lams:
            yield rows.decision(self.updated(lam=lam).fit(problem, cache).model)


class RF(_Drawn):
    """Random features with L2 regularisation."""

    name = "rf"
    accelerated = True
    summary = "random features with L2 regularisation: approximates the kernel machine"
    space = SearchSpace(
        {"gamma": candidates.GAMMA_FACTORS, "lam": candidates.LAMS}, kernels=KERNELS
    )
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
        feature_map, Z = clock.timed("features", self._features, problem, cache, worth_mb)
        scale = 1 / math.sqrt(feature_map.n_features)
        callback = step_callback(problem, feature_map, self, scale, offset)
        solution = solve(Z, problem.less(offset), self, callback)
        fitted = self._fitted(feature_map, solution, offset, clock)
        return replace(fitted, left_out=left_out(Z, solution, problem, self, offset))

    def fit_path(self, problem: Problem, lams: list[float], cache: Cache) -> list[Fitted]:
        clock, offset, first = Clock(), target_offset(problem, self), self.updated(lam=lams[0])
        feature_map, Z = clock.timed("features", first._features, problem, cache)
        solutions = solve_path(Z, problem.less(offset), first, lams)
        return [first._fitted(feature_map, one, offset, clock) for one in solutions]

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        if self.solver != "rfx" or self.choose:
            # the features, or the solver's starting point, depend on lambda
            yield from super().decisions_along(problem, lams, X_out, cache)
            return
        rows, offset = ValidationRows.of(X_out, self, cache), target_offset(problem, self)
        feature_map, Z = self.updated(lam=lams[0])._features(problem, cache)
        root, saved = math.sqrt(feature_map.n_features), offset if self.offset else None
        for coef in coefficients_along(Z, problem.less(offset), self, lams):
            yield rows.decision(LinearModel(feature_map, coef / root, saved))

    def tuning_lams(self, problem: Problem) -> list[float]:
        if self.lam_path:
            return Path.values(self.lam_path)[:1]
        return super().tuning_lams(problem)

    def _features(
        self, problem: Problem, cache: Cache, worth_mb: float = math.inf
    ) -> tuple[FeatureMap, Any]:
        """The map and the matrix Z (n, D) of the scaled features."""
        feature_map = sampled(self, problem, self.lam / problem.mean_weight, cache)
        scale, limit = 1 / math.sqrt(feature_map.n_features), self.max_memory
        return feature_map, feature_matrix(feature_map, problem.X, scale, limit, worth_mb)

    def _fitted(
        self, feature_map: FeatureMap, solution: Solution, offset: np.ndarray, clock: Clock
    ) -> Fitted:
        coef = np.asarray(solution.coef) * (1 / math.sqrt(feature_map.n_features))
        model = LinearModel.of(feature_map, coef, offset if self.offset else None)
        return Fitted(model, solution, {"n_features": self.n_features}, clock.seconds)


class SparseRF(_Drawn):
    """Random features with L1 regularisation, drawn in rounds."""

    name = "sparse-rf"
    summary = "random features with L1 regularisation, drawn in rounds: a small model (Algorithm 1)"
    space = SearchSpace(
        {"gamma": candidates.GAMMA_FACTORS, "lam": candidates.L1_LAMS}, kernels=KERNELS, l1=True
    )
    choose: str | None = CHOOSE()
    pool: int | None = POOL()
    lam: float | Chosen = LAM_L1(
        choices=l1_choice(candidates.L1_LAMS)
        | {
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
        solution, details = _solved(feature_map, problem, self, clock, callback)
        return self._fitted(feature_map, solution, clock, details)

    def fit_path(self, problem: Problem, lams: list[float], cache: Cache) -> list[Fitted]:
        clock, limit = Clock(), self.max_memory
        feature_map = clock.timed("features", sampled, self, problem, 1.0, cache)
        Z = clock.timed("features", feature_matrix, feature_map, problem.X, 1.0, limit)
        Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
        limits = budget(problem, self)
        outputs = [path_l1(Z, Y[:, k], lams, loss, limits) for k in range(Y.shape[1])]
        return [self._fitted(feature_map, stack(list(each)), clock) for each in zip(*outputs)]

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

    def _fitted(
        self, feature_map: FeatureMap, solution: Solution, clock: Clock, details: Any = ()
    ) -> Fitted:
        details = {"n_features": self.n_features} | dict(details)
        return Fitted(LinearModel.of(feature_map, solution.coef), solution, details, clock.seconds)


def _solved(
    feature_map: FeatureMap, problem: Problem, method: SparseRF, clock: Clock, callback: Any
) -> tuple[Solution, dict[str, Any]]:
    """The solution over the unscaled features, and further entries of a results row."""
    Z, lam, seed = computed(feature_map, problem.X), method.lam, method.seed
    memory_mb: float = method.max_memory or told_memory_mb(Z.size_mb)
    limits = budget(problem, method)
    rounds = budget(problem, method, memory_mb=memory_mb)
    if method.solver == "prcd":
        columns = clock.timed("features", Z.by_columns, rounds.memory_mb)
        descend = lambda y, tell: solve_prcd(
            columns, y, lam, problem.loss, rounds, callback=tell, seed=seed
        )
        return each_output(problem.Y, descend, callback), {}
    inner = None
    if method.solver == "liblinear":
        # its tolerance has another meaning, and is the same in all rounds
        inner = in_parts(
            lambda part, y, lam, loss, budget: solve_liblinear(
                part, y, lam, loss, limits, penalty="l1", seed=seed
            )
        )
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    solve = lambda y, tell: solve_rounds(
        Z, y, lam, loss, rounds, callback=tell, rounds=method.rounds, solve=inner
    )
    solution = each_output(Y, solve, callback)
    # --tol refers to the reported gap, over all features including dropped ones
    last = solution.trace[-1]["iteration"]
    gap = sum(entry["gap"] for entry in solution.trace if entry["iteration"] == last)
    return solution, {"round_gap": gap} if last > 1 else {}
