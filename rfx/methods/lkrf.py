"""`lkrf`: learning kernels with random features (Sinha and Duchi 2016).

lam/2 ||w||^2 + sum L(w.z(x), y) over features z selected from a pool; no bias. The pool's features
are scored by their alignment with the targets. The distribution q over them with the largest mean
score subject to D_f(q || uniform) <= rho is computed, and applied in one of the ways of USES. With
--sparse the penalty is lam ||w||_1, and features are not divided by the square root of their
number. The model stores only the selected features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from rfx.errors import UsageError
from rfx.features import MAPS, FeatureMap, alignment, chosen
from rfx.features.divergence import DIVERGENCES, maximise
from rfx.features.joint import best_distribution
from rfx.fitting import candidates, weights
from rfx.fitting.candidates import SearchSpace
from rfx.fitting.held_out import evenly
from rfx.fitting.linear import OFFSET, LinearMethod, LinearModel, drawn, solve, target_offset
from rfx.fitting.method import Fitted, budget, each_output
from rfx.fitting.options import (
    AUTO,
    CG,
    CLASS_WEIGHT,
    LAM,
    LIBLINEAR,
    MOST,
    N_FEATURES,
    ON_SAMPLE,
    SOLVER,
    TOL,
)
from rfx.fitting.problem import Cache, Clock, Problem, error
from rfx.operators.mapped import feature_matrix
from rfx.options import Chosen, option
from rfx.solvers.base import Solution
from rfx.solvers.l1.newton import solve_l1

POOL = 20_000
USES = {
    "support": ("support if it has at most D features, like the authors' program, else draws"),
    "draw": "draws with replacement",
    "weights": "the whole support, each feature times the square root of its probability",
}


class LKRF(LinearMethod):
    """Random features selected from a pool by their alignment with the targets."""

    name = "lkrf"
    accelerated = True
    summary = (
        "random features chosen from a pool by their alignment with the targets: learns the kernel"
    )
    distributed = True
    space = SearchSpace(
        {
            "gamma": candidates.POOL_GAMMAS,
            "rho": candidates.RHO_SHARES,
            "lam": candidates.POOL_LAMS,
            "n_features": candidates.COUNTS,
        },
        # bandwidth and bound together, because they interact, then the others one by one
        stages=(("gamma", "rho"), ("lam",), ("n_features",)),
        share=0.5,
        most=5000,
        fewest=0,
        kernels=candidates.KERNELS,
    )
    pool: int | None = option(
        None,
        f"Number N_w of features to choose from; by default {POOL}, and for coordinates and"
        " words all of them.",
        least=1,
        most=MOST,
    )
    n_features: int | Chosen | None = N_FEATURES(
        help=("Number D of random features to draw; by default as many as the support has."),
        choices={"validation": "64, 256, 1024 or 4096"},
        default=None,
    )
    divergence: str = option(
        "chi2", "Divergence from the uniform distribution over the pool.", of=DIVERGENCES
    )
    rho: float | Chosen | None = option(
        None,
        "Bound on the divergence: 0 leaves the pool unchanged; by default 0.005 N_w, as in the"
        " authors' program (chi2).",
        of={"validation": "0.005, 0.01, 0.02, 0.05 or 0.1 times N_w (chi2)"},
        least=0,
    )
    rho_share: float | None = option(None, "The same bound as a multiple of N_w.", least=0)
    use: str = option("support", "How the distribution is used.", of=USES)
    centred: bool = option(False, "Compute scores with centred labels, as regression always does.")
    offset: str = OFFSET()
    sparse: bool = option(False, "L1 regularisation of the chosen features.")
    joint: int | None = option(
        None,
        "Alternate this many times between learning the distribution and the weights, for"
        " comparison, instead of using scores (chi2).",
        least=1,
        most=MOST,
    )
    joint_rows: int = option(2000, "Training rows that --joint uses.", least=2, most=MOST)
    lam: float | Chosen = LAM(
        choices={"validation": "0.01, 0.1, 1, 10 or 100"} | ON_SAMPLE, default=AUTO
    )
    solver: str = SOLVER.adding(CG, LIBLINEAR)()
    tol: float | None = TOL(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR.")
    class_weight: str | None = CLASS_WEIGHT()

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        s = self
        if "rho" in given and "rho_share" in given:
            raise UsageError(
                f"--rho is {s.rho} and --rho-share is {s.rho_share:g}; use only one of them"
            )
        if s.divergence != "chi2" and s.rho_share is None and s.rho in (None, "validation"):
            raise UsageError(f"--divergence is {s.divergence}, which needs a number as --rho")
        if s.use == "weights" and "n_features" in given:
            raise UsageError(
                f"--n-features is {s.n_features}, which has no effect with --use weights"
            )
        if s.joint and (s.divergence != "chi2" or s.sparse or s.centred):
            raise UsageError("--joint requires --divergence chi2, without --sparse and --centred")
        if "joint_rows" in given and not s.joint:
            raise UsageError(f"--joint-rows is {s.joint_rows}, which has no effect without --joint")
        if s.sparse and s.solver != "rfx":
            raise UsageError(
                f"--solver is {s.solver}, which does not support --sparse; use --solver rfx"
            )

    def n_drawn(self) -> int:
        return self.pool or POOL

    def offsets(self) -> bool:
        return True

    # ------------------------------------------------------------------ training

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock, count = Clock(), self.n_features
        details: dict[str, Any] = {}
        pool = clock.timed("features", self._pool, problem, cache)
        rho = self._rho(pool.n_features)
        if self.joint:
            q, objectives = clock.timed("seconds_joint", self._alternated, pool, rho, problem)
            details["joint_objectives"] = objectives
            aligned: list[Any] = [None, None]
        else:
            scores = clock.timed("seconds_scores", self._scores, pool, problem)
            q = clock.timed("seconds_maximise", maximise, scores, rho, self.divergence)
            aligned = [float(value) / problem.n_rows**2 for value in (scores.mean(), q @ scores)]
        support = int(np.count_nonzero(q))
        features = clock.timed("features", self._selected, pool, q, count)
        solution, model = clock.timed("seconds_solve", self._solved, features, problem)
        # of the support once; more were requested than there are
        used = min(count or support, support) if self.use == "support" else count or support
        steps = {name: value for name, value in clock.seconds.items() if name != "features"}
        details |= {
            "n_features": used,
            "n_features_asked": count,
            "pool": pool.n_features,
            "rho": rho,
            "support": support,
            "alignment_before": aligned[0],
            "alignment_after": aligned[1],
        }
        seconds = {"features": sum(clock.seconds.values()) - steps["seconds_solve"]}
        return Fitted(model, solution, details | steps, seconds)

    # ------------------------------------------------------------------ choice of options

    def with_choice(self, chosen: dict[str, Any]) -> Self:
        # the candidates of rho are multiples of the pool's size
        if "rho" in chosen:
            chosen = chosen | {"rho": None, "rho_share": chosen["rho"]}
        return self.updated(**chosen)

    def errors_along(
        self,
        problem: Problem,
        out: Problem,
        lams: list[float],
        stop: Callable[[list[float]], bool],
        cache: Cache,
    ) -> list[float]:
        def scored() -> tuple[FeatureMap, np.ndarray]:
            pool = self._pool(problem, cache)
            return pool, self._scores(pool, problem)

        # the pool and its scores are reused as long as gamma is the same
        pool, scores = cache.get("scored pool", self.gamma, scored)
        q = maximise(scores, self._rho(len(scores)), self.divergence)
        features, errors = self._selected(pool, q, self.n_features), []
        for lam in lams:
            _, model = self.updated(lam=lam)._solved(features, problem)
            errors.append(error(problem.task, model.decision(out.X), out.Y, out.weights))
            # its lambdas are unordered, so all are tried
            stop(errors)
        return errors

    # ------------------------------------------------------------------ parts of a training

    def _pool(self, problem: Problem, cache: Cache) -> FeatureMap:
        """The map of all features to choose from."""
        params = self.kernel_params(problem.X)
        total = MAPS[self.kernel].total(problem.n_inputs, params)
        size = min(self.pool or total or POOL, total or MOST)
        return drawn(problem.X, self, size, params, cache)

    def _scores(self, pool: FeatureMap, problem: Problem) -> np.ndarray:
        """The alignment of each feature of the pool with the targets."""
        centred = self.centred or problem.task == "regression"
        Y, row_weights = problem.Y, problem.weights
        if row_weights is None:
            return alignment.scores(pool, problem.X, Y, centred)
        # sums over rows that count as often as their weights
        Y = Y - weights.mean(Y, row_weights) if centred else Y
        return alignment.scores(pool, problem.X, Y * row_weights[:, None])

    def _rho(self, size: int) -> float:
        """The bound on the divergence for a pool of that size."""
        share = candidates.RHO_SHARES[0] if self.rho_share is None else self.rho_share
        return share * size if self.rho is None else self.rho

    def _alternated(
        self, pool: FeatureMap, rho: float, problem: Problem
    ) -> tuple[np.ndarray, list[float]]:
        """The distribution learnt together with the weights, and the objectives, on some of the
        rows.

        It minimises lam/2 sum_m w_m^2 / q_m + sum L(w.phi(x), y), alternating from the uniform
        distribution; each step is exact.
        """
        if problem.weights is not None:
            raise UsageError("--joint does not support sample weights; omit one of them")
        rows = evenly(problem.n_rows, self.joint_rows)
        method = self.updated(lam=self.lam * len(rows) / problem.n_rows)
        some = problem.rows(rows)
        q, objectives = np.full(pool.n_features, 1 / pool.n_features), []
        for _ in range(self.joint or 0):
            places, roots = chosen.weighted(q)
            solution, _ = method._solved(pool.weighted(places, roots), some)
            objectives.append(solution.objective)
            sizes = np.zeros(pool.n_features)
            sizes[places] = roots * np.linalg.norm(np.asarray(solution.coef), axis=1)
            if not sizes.any():
                break
            q = best_distribution(sizes, rho)
        return q, objectives

    def _selected(self, pool: FeatureMap, q: np.ndarray, count: int | None) -> FeatureMap:
        """The features selected by the distribution q over the pool.

        count of them are requested, None for all with nonzero probability.
        """
        support = int(np.count_nonzero(q))
        if self.use == "weights":
            return pool.weighted(*chosen.weighted(q))
        if self.use == "support" and (count is None or count >= support):
            places, factors = chosen.support_once(q)
        else:
            places, factors = chosen.drawn(q, count or support, self.seed)
        return pool.select(places) if self.sparse else pool.weighted(places, factors)

    def _solved(self, features: FeatureMap, problem: Problem) -> tuple[Solution, LinearModel]:
        """The fit on these features."""
        offset = target_offset(problem, self)
        Z = feature_matrix(features, problem.X, 1.0, self.max_memory)
        problem = problem.less(offset).quiet()
        if self.sparse:
            Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
            limits = budget(problem, self)
            solution = each_output(Y, lambda y, _: solve_l1(Z, y, self.lam, loss, limits))
        else:
            solution = solve(Z, problem, self)
        return solution, LinearModel.of(features, solution.coef, offset)
