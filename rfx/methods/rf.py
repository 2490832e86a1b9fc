"""Random features as a Monte-Carlo approximation of the kernel: `rf` with L2 regularisation, and
Sparse Random Features, `sparse-rf`, Algorithm 1 of Yen et al. (2014), with L1 regularisation;
`lkrf`, features selected from a pool; `boosting`, features found greedily.

Equation 5: lam/2 ||w||^2 + sum L(w.z(x), y) with z = D^(-1/2) [phi_1 .. phi_D]. There is no bias;
--offset mean subtracts the targets' mean.

Equation 9: lam ||w||_1 + sum L(w.phi(x), y) over unscaled features phi, in T rounds of D/T new
features; no bias. Only features with nonzero weight are in the model. Solver prcd is the coordinate
descent of Wu et al. (2016) over all features at once, without rounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike

from rfx import kernels, losses
from rfx.counters import random_rows
from rfx.errors import UsageError
from rfx.features import MAPS, FeatureMap, alignment
from rfx.features.alignment import DIVERGENCES, best_distribution, maximise
from rfx.features.base import joined_arrays
from rfx.fitting import options, weights
from rfx.fitting.linear import (
    CHOOSE,
    OFFSET,
    POOL,
    LinearMethod,
    LinearModel,
    coefficients_along,
    drawn,
    left_out,
    left_out_sparse,
    sampled,
    solve,
    solve_path,
    step_callback,
    target_offset,
)
from rfx.fitting.method import Fitted, Method, Refusal, budget, each_output
from rfx.fitting.options import (
    AUTO,
    CG,
    CHOSEN_LAM,
    CHOSEN_SCALING,
    CLASS_WEIGHT,
    KERNEL,
    KERNELS,
    L1_LAMS,
    LAM,
    LAM_L1,
    LAM_PATH,
    LIBLINEAR,
    MAX_ITER,
    METRIC,
    MOST,
    N_FEATURES,
    ON_SAMPLE,
    PRCD,
    SOLVER,
    TOL,
    TOL_OF_SOLVERS,
    SearchSpace,
    l1_choice,
)
from rfx.fitting.problem import Cache, Clock, Problem, StepCallback, error, evaluating, stays_sparse
from rfx.kernels import get_kernel
from rfx.operators.mapped import WORTH_MB, computed, feature_matrix, told_memory_mb
from rfx.operators.matrix import Matrix
from rfx.options import Chosen, Path, option
from rfx.solvers.base import Callback, Solution, for_output, stack
from rfx.solvers.l1.bins import solve_prcd
from rfx.solvers.l1.greedy import TOL as STEP_TOL
from rfx.solvers.l1.greedy import (
    Learner,
    Perceptrons,
    Stumps,
    in_parts,
    solve_boosting,
    solve_rounds,
)
from rfx.solvers.l1.newton import path_l1, solve_l1
from rfx.solvers.published.libraries import solve_liblinear
from rfx.types import Inputs, KernelParams

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


class RF(LinearMethod):
    """Random features with L2 regularisation."""

    name = "rf"
    accelerated = evaluates_steps = distributed = leaves_out = True
    summary = "random features with L2 regularisation: approximates the kernel machine"
    space = SearchSpace({"gamma": options.GAMMA_FACTORS, "lam": options.LAMS}, kernels=KERNELS)
    n_features: int = N_FEATURES()
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
    tol: float | None = TOL_OF_SOLVERS()
    class_weight: str | None = CLASS_WEIGHT()

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        offset = target_offset(problem, self)
        # Newton's method for one output can store many features as 8-bit codes
        newton = problem.loss.name != "squared" and self.solver == "rfx"
        has_codes = newton and problem.n_outputs == 1
        worth_mb = WORTH_MB if has_codes else math.inf
        feature_map, Z = clock.timed("features", self._features, problem, cache, worth_mb)
        scale = 1 / math.sqrt(feature_map.n_features)
        callback = step_callback(problem, feature_map, self, scale, offset)
        solution = solve(Z, problem.minus_offset(offset), self, callback)
        fitted = self._fitted(feature_map, solution, offset, clock)
        coef = np.asarray(solution.coef)
        out = left_out(Z, coef, problem, self, self.lam, offset)
        return replace(fitted, left_out=out)

    def fit_path(self, problem: Problem, lams: list[float], cache: Cache) -> list[Fitted]:
        clock = Clock()
        offset = target_offset(problem, self)
        first = self.updated(lam=lams[0])
        feature_map, Z = clock.timed("features", first._features, problem, cache)
        solutions = solve_path(Z, problem.minus_offset(offset), first, lams)
        return [first._fitted(feature_map, one, offset, clock) for one in solutions]

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Inputs, cache: Cache
    ) -> Iterator[np.ndarray]:
        if self.solver != "rfx" or self.choose:
            # the features, or the solver's starting point, depend on lambda
            yield from super().decisions_along(problem, lams, X_out, cache)
            return
        offset = target_offset(problem, self)
        first = self.updated(lam=lams[0])
        feature_map, Z = first._features(problem, cache)
        root = math.sqrt(feature_map.n_features)
        features = functools.cache(
            lambda: feature_matrix(feature_map, X_out, max_mb=self.max_memory)
        )
        for coef in coefficients_along(Z, problem.minus_offset(offset), self, lams):
            scaled = coef / root
            decision = feature_map.quick_decision(X_out, scaled)
            if decision is None:
                decision = features().matvec(scaled)
            yield decision + offset

    def tuning_lams(self, problem: Problem) -> list[float]:
        if not self.lam_path:
            return super().tuning_lams(problem)
        largest, *_ = Path.values(self.lam_path)
        return [largest]

    def _features(
        self, problem: Problem, cache: Cache, worth_mb: float = math.inf
    ) -> tuple[FeatureMap, Matrix]:
        """The map and the matrix Z (n, D) of the scaled features."""
        feature_map = sampled(self, problem, self.lam / problem.mean_weight, cache)
        scale = 1 / math.sqrt(feature_map.n_features)
        limit = self.max_memory
        return feature_map, feature_matrix(feature_map, problem.X, scale, limit, worth_mb)

    def _fitted(
        self, feature_map: FeatureMap, solution: Solution, offset: np.ndarray, clock: Clock
    ) -> Fitted:
        scale = 1 / math.sqrt(feature_map.n_features)
        coef = np.asarray(solution.coef) * scale
        model = LinearModel.of(feature_map, coef, offset if self.offset else None)
        return Fitted(model, solution, {"n_features": self.n_features}, clock.seconds)


class SparseRF(LinearMethod):
    """Random features with L1 regularisation, drawn in rounds."""

    name = "sparse-rf"
    evaluates_steps = distributed = leaves_out = True
    summary = "random features with L1 regularisation, drawn in rounds: a small model (Algorithm 1)"
    space = SearchSpace(
        {"gamma": options.GAMMA_FACTORS, "lam": options.L1_LAMS},
        kernels=KERNELS,
        l1=True,
    )
    n_features: int = N_FEATURES()
    choose: str | None = CHOOSE()
    pool: int | None = POOL()
    lam: float | Chosen = LAM_L1(
        choices=l1_choice(options.L1_LAMS)
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

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        return [
            *super().refusals(given),
            (
                (self.gamma, self.lam) == ("validation", "match-rf"),
                "--lam is match-rf, which chooses lambda to match rf's error; --gamma validation"
                " can't be combined with it, use --gamma tuned",
            ),
        ]

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        feature_map = clock.timed("features", sampled, self, problem, 1.0, cache)
        callback = step_callback(problem, feature_map, self)
        solution, details = _solved(feature_map, problem, self, clock, callback)
        fitted = self._fitted(feature_map, solution, clock, details)
        Z = computed(problem.X, feature_map)
        coef = np.asarray(solution.coef)
        out = left_out_sparse(Z, coef, problem, self)
        return replace(fitted, left_out=out)

    def fit_path(self, problem: Problem, lams: list[float], cache: Cache) -> list[Fitted]:
        clock = Clock()
        limit = self.max_memory
        feature_map = clock.timed("features", sampled, self, problem, 1.0, cache)
        Z = clock.timed("features", feature_matrix, feature_map, problem.X, 1.0, limit)
        Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
        limits = budget(problem, self)
        # rows on workers have columns, but no transpose
        columns = [Y[:, output] for output in range(Y.shape[1])]
        outputs = [path_l1(Z, y, lams, loss, limits) for y in columns]
        solutions = [stack(list(of_lam)) for of_lam in zip(*outputs)]
        return [self._fitted(feature_map, one, clock) for one in solutions]

    def tuning_lams(self, problem: Problem) -> list[float]:
        if isinstance(self.lam, str):
            # those of rf, so that both have the same bandwidth
            return super().tuning_lams(problem)
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
        peer = RF.of(shared | {"lam": share * problem.mean_weight})
        decision = peer.fit(problem, cache).model.decision(out.X)
        return error(problem.task, decision, out.Y, out.weights)

    def _fitted(
        self,
        feature_map: FeatureMap,
        solution: Solution,
        clock: Clock,
        more: Mapping[str, object] | None = None,
    ) -> Fitted:
        details = {"n_features": self.n_features, **(more or {})}
        model = LinearModel.of(feature_map, solution.coef)
        return Fitted(model, solution, details, clock.seconds)


def _solved(
    feature_map: FeatureMap,
    problem: Problem,
    method: SparseRF,
    clock: Clock,
    callback: StepCallback | None,
) -> tuple[Solution, dict[str, object]]:
    """The solution over the unscaled features, and further entries of a results row."""
    Z = computed(problem.X, feature_map)
    lam = method.lam
    seed = method.seed
    memory_mb: float = method.max_memory or told_memory_mb(Z.size_mb)
    limits = budget(problem, method)
    rounds = budget(problem, method, memory_mb=memory_mb)
    if method.solver == "prcd":
        columns = clock.timed("features", Z.by_columns)

        def descend(y: np.ndarray, tell: Callback | None) -> Solution:
            return solve_prcd(columns, y, lam, problem.loss, rounds, callback=tell, seed=seed)

        return each_output(problem.Y, descend, callback), {}
    inner = None
    if method.solver == "liblinear":
        # its tolerance has another meaning, and is the same in all rounds
        def solve_part(part, y, lam, loss, budget):
            return solve_liblinear(part, y, lam, loss, limits, penalty="l1", seed=seed)

        inner = in_parts(solve_part)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)

    def in_rounds(y: np.ndarray, tell: Callback | None) -> Solution:
        return solve_rounds(
            Z, y, lam, loss, rounds, callback=tell, rounds=method.rounds, solve=inner
        )

    solution = each_output(Y, in_rounds, callback)
    # --tol refers to the reported gap, over all features including dropped ones
    last = solution.trace[-1]["iteration"]
    if last <= 1:
        return solution, {}
    gaps = [entry["gap"] for entry in solution.trace if entry["iteration"] == last]
    return solution, {"round_gap": sum(gaps)}


POOL_SIZE = 20_000
USES = {
    "support": ("support if it has at most D features, like the authors' program, else draws"),
    "draw": "draws with replacement",
    "weights": "the whole support, each feature times the square root of its probability",
}


class LKRF(LinearMethod):
    """Random features selected from a pool by their alignment with the targets.

    Sinha and Duchi (2016): lam/2 ||w||^2 + sum L(w.z(x), y) over features z selected from a pool;
    no bias. The pool's features are scored by their alignment with the targets. The distribution q
    over them with the largest mean score subject to D_f(q || uniform) <= rho is computed, and
    applied in one of the ways of USES. With --sparse the penalty is lam ||w||_1, and features are
    not divided by the square root of their number. The model stores only the selected features.
    """

    name = "lkrf"
    accelerated = True
    summary = (
        "random features chosen from a pool by their alignment with the targets: learns the kernel"
    )
    distributed = True
    space = SearchSpace(
        {
            "gamma": options.POOL_GAMMAS,
            "rho": options.RHO_SHARES,
            "lam": options.POOL_LAMS,
            "n_features": options.COUNTS,
        },
        # bandwidth and bound together, because they interact, then the others one by one
        stages=(("gamma", "rho"), ("lam",), ("n_features",)),
        share=0.5,
        most=5000,
        fewest=0,
        kernels=options.KERNELS,
    )
    pool: int | None = option(
        None,
        f"Number N_w of features to choose from; by default {POOL_SIZE}, and for coordinates and"
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
        of={"validation": "0.005, 0.01, 0.02, 0.05 or 0.1 times N_w, and beyond (chi2)"},
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
        choices={"validation": "0.01, 0.1, 1, 10 or 100, and beyond"} | ON_SAMPLE, default=AUTO
    )
    solver: str = SOLVER.adding(CG, LIBLINEAR)()
    tol: float | None = TOL_OF_SOLVERS()
    class_weight: str | None = CLASS_WEIGHT()

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        words = self.rho_share is None and self.rho in (None, "validation")
        return [
            *super().refusals(given),
            (
                "rho" in given and "rho_share" in given,
                f"--rho is {self.rho} and --rho-share is {self.rho_share}; use only one of them",
            ),
            (
                self.divergence != "chi2" and words,
                f"--divergence is {self.divergence}, which needs a number as --rho",
            ),
            (
                self.use == "weights" and "n_features" in given,
                f"--n-features is {self.n_features}, which has no effect with --use weights",
            ),
            (
                self.joint and (self.divergence != "chi2" or self.sparse or self.centred),
                "--joint requires --divergence chi2, without --sparse and --centred",
            ),
            (
                "joint_rows" in given and not self.joint,
                f"--joint-rows is {self.joint_rows}, which has no effect without --joint",
            ),
            (
                self.sparse and self.solver != "rfx",
                f"--solver is {self.solver}, which does not support --sparse; use --solver rfx",
            ),
        ]

    def n_drawn(self) -> int:
        return self.pool or POOL_SIZE

    def offsets(self) -> bool:
        return True

    # ------------------------------------------------------------------ training

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        count = self.n_features
        details: dict[str, object] = {}
        pool = clock.timed("features", self._pool, problem, cache)
        rho = self._rho(pool.n_features)
        if self.joint:
            q, objectives = clock.timed("seconds_joint", self._alternated, pool, rho, problem)
            details["joint_objectives"] = objectives
            before = after = None
        else:
            scores = clock.timed("seconds_scores", self._scores, pool, problem)
            q = clock.timed("seconds_maximise", maximise, scores, rho, self.divergence)
            unit = problem.n_rows**2
            before = float(scores.mean()) / unit
            after = float(q @ scores) / unit
        support = int(np.count_nonzero(q))
        features = clock.timed("features", self._selected, pool, q, count)
        solution, model = clock.timed("seconds_solve", self._solved, features, problem)
        # of the support once; more were requested than there are
        used = count or support
        if self.use == "support":
            used = min(used, support)
        steps = {name: value for name, value in clock.seconds.items() if name != "features"}
        choosing = steps.keys() - {"seconds_solve"}
        details |= {
            "seconds_cpu_choice": sum(clock.seconds_cpu[name] for name in choosing),
            "n_features": used,
            "n_features_asked": count,
            "pool": pool.n_features,
            "rho": rho,
            "support": support,
            "alignment_before": before,
            "alignment_after": after,
        }
        seconds = sum(clock.seconds.values()) - steps["seconds_solve"]
        return Fitted(model, solution, details | steps, {"features": seconds})

    # ------------------------------------------------------------------ choice of options

    def with_choice(self, chosen: Mapping[str, object]) -> Self:
        # the candidates of rho are multiples of the pool's size
        if "rho" in chosen:
            chosen = {**chosen, "rho": None, "rho_share": chosen["rho"]}
        return self.updated(**chosen)

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Inputs, cache: Cache
    ) -> Iterator[np.ndarray]:
        def scored() -> tuple[FeatureMap, np.ndarray]:
            pool = self._pool(problem, cache)
            return pool, self._scores(pool, problem)

        # the pool and its scores are reused as long as gamma is the same
        pool, scores = cache.get("scored pool", self.gamma, scored)
        q = maximise(scores, self._rho(len(scores)), self.divergence)
        features = self._selected(pool, q, self.n_features)
        for lam in lams:
            _, model = self.updated(lam=lam)._solved(features, problem)
            yield model.decision(X_out)

    # ------------------------------------------------------------------ parts of a training

    def _pool(self, problem: Problem, cache: Cache) -> FeatureMap:
        """The map of all features to choose from."""
        params = self.kernel_params(problem.X)
        total = MAPS[self.kernel].total(problem.n_inputs, params)
        size = min(self.pool or total or POOL_SIZE, total or MOST)
        return drawn(problem.X, self, size, params, cache)

    def _scores(self, pool: FeatureMap, problem: Problem) -> np.ndarray:
        """The alignment of each feature of the pool with the targets."""
        centred = self.centred or problem.task == "regression"
        Y = problem.Y
        row_weights = problem.weights
        if row_weights is None:
            return alignment.scores(pool, problem.X, Y, centred)
        # sums over rows that count as often as their weights
        if centred:
            Y = Y - weights.mean(Y, row_weights)
        return alignment.scores(pool, problem.X, Y * row_weights[:, None])

    def _rho(self, size: int) -> float:
        """The bound on the divergence for a pool of that size."""
        if self.rho is not None:
            return self.rho
        share = options.RHO_SHARES[0] if self.rho_share is None else self.rho_share
        return share * size

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
        rows = random_rows(problem.n_rows, self.joint_rows, seed=self.seed)
        lam = self.lam * len(rows) / problem.n_rows
        method = self.updated(lam=lam)
        some = problem.rows(rows)
        q = np.full(pool.n_features, 1 / pool.n_features)
        objectives = []
        for _ in range(self.joint or 0):
            places, roots = alignment.weighted(q)
            solution, _ = method._solved(pool.weighted(places, roots), some)
            objectives.append(solution.objective)
            sizes = np.zeros(pool.n_features)
            lengths = np.linalg.norm(np.asarray(solution.coef), axis=1)
            sizes[places] = roots * lengths
            q = best_distribution(sizes, rho)
        return q, objectives

    def _selected(self, pool: FeatureMap, q: np.ndarray, count: int | None) -> FeatureMap:
        """The features selected by the distribution q over the pool.

        count of them are requested, None for all with nonzero probability.
        """
        support = int(np.count_nonzero(q))
        if self.use == "weights":
            return pool.weighted(*alignment.weighted(q))
        if self.use == "support" and (count is None or count >= support):
            places, factors = alignment.support_once(q)
        else:
            places, factors = alignment.drawn(q, count or support, self.seed)
        if self.sparse:
            return pool.select(places)
        return pool.weighted(places, factors)

    def _solved(self, features: FeatureMap, problem: Problem) -> tuple[Solution, LinearModel]:
        """The fit on these features."""
        offset = target_offset(problem, self)
        Z = feature_matrix(features, problem.X, 1.0, self.max_memory)
        problem = problem.minus_offset(offset).quiet()
        if self.sparse:
            Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
            limits = budget(problem, self)
            solution = each_output(Y, lambda y, _: solve_l1(Z, y, self.lam, loss, limits))
        else:
            solution = solve(Z, problem, self)
        return solution, LinearModel.of(features, solution.coef, offset)


# The gap for steps of several features.
SEVERAL_TOL = 1e-3
WEAK = {
    "perceptron": "each found approximately, by a convex surrogate",
    "stump": "each found exactly",
}


class Boosting(LinearMethod, without=("gamma", "features", "budget_seconds")):
    """Features found greedily, one per step, with L1 regularisation: Figure 1 of Yen et al. (2014).

    lam ||w||_1 + sum L(w.phi(x), y) over all features phi of a kind (eq. 8), found greedily (eq.
    24), with all weights fitted again in each step; no bias. The features are those from which the
    kernel's random features are drawn, in the same scale, so that the objective is that of sparse-
    rf. Several classes are learnt one against the rest, each with its own features.
    """

    name = "boosting"
    summary = (
        "features found greedily, one per step, with L1 regularisation; every step fits all weights"
        " again"
    )
    evaluates_steps = True
    # a model of all rows costs far more than one used to choose lambda
    space = SearchSpace({"lam": L1_LAMS}, most=4000, l1=True)
    scaling: str = CHOSEN_SCALING()
    metric: str = METRIC()
    kernel: str = KERNEL(
        help="The kernel whose features are found.", choices=WEAK, default="perceptron"
    )
    n_features: int = N_FEATURES(
        help="Maximum number D of features, per class if there are several."
    )
    per_step: int = option(20, "Number of features found per step.", least=1, most=MOST)
    surrogate: str = option(
        "logistic",
        "The loss of the linear classifier that approximates the best perceptron, fitted to"
        " weighted pseudo-labels.",
        of=("logistic", "squared", "squared_hinge"),
    )
    threshold: str = option(
        "exact",
        "The threshold of a perceptron.",
        of={
            "surrogate": "that of the classifier",
            "exact": "the best one for the classifier's direction",
        },
    )
    lam: float | Chosen = LAM_L1(
        choices=l1_choice(L1_LAMS),
        default="validation",
    )
    tol: float | None = TOL(
        help=(
            "Relative duality gap of the weights at every step, over the features found so far;"
            f" by default {SEVERAL_TOL:g}, with one feature per step {STEP_TOL:g}."
        )
    )
    max_iter: int | None = MAX_ITER(help="Maximum iterations of rfx's solver per step.")
    class_weight: str | None = CLASS_WEIGHT()

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        why = "which is for kernel perceptron; stumps are found exactly"
        stumps = self.kernel == "stump"
        return Method.refusals(self, given) + [
            (name in given and stumps, f"--{name} is {self.get(name)}, {why}")
            for name in ("surrogate", "threshold")
        ]

    def vectors(self, X: Inputs) -> int:
        if stays_sparse(X, self.scaling):
            # they are made dense
            return self.n_features + X.shape[0]
        return self.n_features

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        kernel = kernels.get_kernel(self.kernel)
        X = _dense(problem.X, self.dtype)
        params = kernels.parameters(self.kernel, X, **self.kernel_options)
        # +-scale are the kernel's features; +-1 with a smaller lambda are the same problem
        square = kernel.diagonal(params, X.shape[1], None)
        scale = float(np.sqrt(square)) or 1.0
        learners = [clock.timed("features", _learner_of, X, params, self) for _ in problem.Y.T]
        listeners = _listeners(problem, learners)
        Y, loss = weights.targets(problem.Y, problem.loss, problem.weights)
        more: dict[str, Any] = {"n_features": self.n_features}
        if problem.weights is not None and loss.name == "squared":
            more["factors"] = np.sqrt(problem.weights)
        tol = STEP_TOL if self.per_step == 1 else SEVERAL_TOL
        lam = self.lam / scale
        limits = budget(problem, self, tol=tol)
        solutions = []
        for k, learner in enumerate(learners):
            tell = for_output(listeners[k], k)
            solution = solve_boosting(learner, Y.T[k], lam, loss, limits, tell, **more)
            solutions.append(solution)
        return _joined(learners, solutions, scale, self, clock)


def _dense(X: Inputs, dtype: DTypeLike) -> np.ndarray:
    values = X if isinstance(X, np.ndarray) else X.toarray()
    return np.ascontiguousarray(values, dtype=dtype)


def _learner_of(X: np.ndarray, params: KernelParams, method: Method) -> Learner:
    if method.kernel == "stump":
        return Stumps(X, params, method.per_step)
    surrogate = cast(losses.SmoothLoss, losses.get_loss(method.surrogate))
    exact = method.threshold == "exact"
    return Perceptrons(X, params, surrogate, exact, method.per_step, method.seed)


def _listeners(problem: Problem, learners: list[Learner]) -> list:
    """The callback for the weights of each output, whose features grow with the steps."""

    def decide(X):
        rows = _dense(X, learners[0].X.dtype)

        def decision(weighted):
            features, coef = weighted
            return features.transform(rows) @ coef

        return decision

    tell = evaluating(problem, decide)
    if tell is None:
        return [None] * len(learners)
    return [_listener(tell, learner) for learner in learners]


def _listener(tell, learner: Learner):
    def listen(entry, coef):
        tell(entry, lambda: (learner.found, coef()))

    return listen


def _joined(
    learners: list[Learner],
    solutions: list[Solution],
    scale: float,
    method: Method,
    clock: Clock,
) -> Fitted:
    """The model of all outputs with the features of nonzero weight, and their combined solution."""
    arrays = joined_arrays([learner.found.arrays for learner in learners])
    scales = arrays.get("scales")
    if scales is not None:
        arrays["scales"] = scales * scales.dtype.type(scale)
    columns = [solution.coef[:, None] / scale for solution in solutions]
    coef = scipy.linalg.block_diag(*columns)
    details: dict[str, object] = {"n_features": method.n_features, "n_found": len(coef)}
    if method.kernel == "stump":
        # the gap covers all stumps, while --tol refers to those found
        gaps = [solution.trace[-1]["gap"] for solution in solutions]
        details["round_gap"] = float(sum(gaps))
    first = learners[0].found
    found = type(first)(first.name, first.n_inputs, first.params, arrays)
    model = LinearModel.of(found, coef)
    return Fitted(model, stack(solutions, coef), details, clock.seconds)
