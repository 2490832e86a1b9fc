"""`lkrf`: learning kernels with random features (Sinha and Duchi 2016).

lam/2 ||w||^2 + sum L(w.z(x), y) over features z selected from a pool; no bias. The pool's features
are scored by their alignment with the targets. The distribution q over them with the largest mean
score subject to D_f(q || uniform) <= rho is computed, and applied in one of the ways of USES. With
--sparse the penalty is lam ||w||_1, and features are not divided by the square root of their
number. The model stores only the selected features.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rfx.errors import UsageError
from rfx.features import MAPS, FeatureMap, alignment, chosen
from rfx.features.divergence import DIVERGENCES, maximise
from rfx.features.joint import best_distribution
from rfx.fitting import solving, weights
from rfx.fitting.cache import Cache
from rfx.fitting.linear import (
    OFFSET,
    LinearMethod,
    LinearModel,
    drawn,
    target_offset,
)
from rfx.fitting.method import Fitted, Method, budget, each_output, kernel_params
from rfx.fitting.options import (
    AUTO,
    CG,
    LAM,
    LIBLINEAR,
    MOST,
    N_FEATURES,
    ON_SAMPLE,
    SOLVER,
    TOL,
)
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.validation import error, evenly
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.operators.mapped import feature_matrix
from rfx.options import Chosen, option
from rfx.solvers.base import Solution
from rfx.solvers.l1.newton import solve_l1

POOL = 20_000
# Candidates for validation: multiples of the pool's size and of the median bandwidth, numbers of
# features, lambdas.
RHO_SHARES = (0.005, 0.01, 0.02, 0.05, 0.1)
GAMMA_FACTORS = (1.0, 0.25, 4.0, 16.0)
COUNTS = (64, 256, 1024, 4096)
LAMS = (1.0, 0.1, 0.01, 10.0, 100.0)
# Maximum rows to fit and to evaluate.
ROWS, HELD_OUT = 5000, 0.5

USES = {
    "support": ("support if it has at most D features, like the authors' program, else draws"),
    "draw": "draws with replacement",
    "weights": "the whole support, each feature times the square root of its probability",
}


class LKRF(LinearMethod):
    """Random features selected from a pool by their alignment with the targets."""

    name = "lkrf"
    summary = (
        "random features chosen from a pool by their alignment with the targets: learns the kernel"
    )
    distributed = True
    # bandwidth and bound together, because they interact, then the others one by one
    searched = {"gamma": GAMMA_FACTORS, "rho": RHO_SHARES, "lam": LAMS, "n_features": COUNTS}
    stages = (("gamma", "rho"), ("lam",), ("n_features",))
    held_out_share, held_out_rows, fewest_evaluated = HELD_OUT, ROWS, 0
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
        clock, count, objectives = Clock(), self.n_features, None
        pool = clock.timed("features", _pool, problem, self, cache)
        rho = _rho(pool.n_features, self)
        if self.joint:
            alternate = (pool, rho, problem, self)
            q, objectives = clock.timed("seconds_joint", _alternated, *alternate)
            aligned: tuple = None, None
        else:
            scores = clock.timed("seconds_scores", _scores, pool, problem, self)
            q = clock.timed("seconds_maximise", maximise, scores, rho, self.divergence)
            aligned = tuple(
                float(value) / problem.n_rows**2 for value in (scores.mean(), q @ scores)
            )
        support = int(np.count_nonzero(q))
        features = clock.timed("features", _chosen, pool, q, count, self)
        solved = clock.timed("seconds_solve", _solved, features, problem, self)
        # of the support once; more were requested than there are
        used = min(count or support, support) if self.use == "support" else count or support
        steps = {name: value for name, value in clock.seconds.items() if name != "features"}
        details = {
            "n_features": used,
            "n_features_asked": count,
            "pool": pool.n_features,
            "rho": rho,
            "support": support,
            "alignment_before": aligned[0],
            "alignment_after": aligned[1],
        }
        if objectives is not None:
            details["joint_objectives"] = objectives
        selecting = sum(value for name, value in steps.items() if name != "seconds_solve")
        seconds = {"features": clock.seconds["features"] + selecting}
        return Fitted(solved.model, solved.solution, details | steps, seconds)

    # ------------------------------------------------------------------ choice of options

    def with_choice(self, chosen: dict[str, Any]) -> Self:
        # the candidates of rho are multiples of the pool's size
        if "rho" in chosen:
            chosen = dict(chosen)
            chosen |= {"rho": None, "rho_share": chosen["rho"]}
        return self.updated(**chosen)

    def errors_along(
        self,
        problem: Problem,
        out: Problem,
        lams: list[float],
        stop: Callable[[list[float]], bool],
        cache: Cache,
    ) -> list[float]:
        # the pool and its scores are reused as long as gamma is the same
        pool, scores = cache.get("scored pool", self.gamma, lambda: _scored(problem, self, cache))
        q = maximise(scores, _rho(len(scores), self), self.divergence)
        features, errors = _chosen(pool, q, self.n_features, self), []
        for lam in lams:
            model = _solved(features, problem, self.updated(lam=lam)).model
            errors.append(error(problem.task, model.decision(out.X), out.Y, out.weights))
            # its lambdas are unordered, so all are tried
            stop(errors)
        return errors


def _pool(problem: Problem, method: Method, cache: Cache) -> FeatureMap:
    """The map of all features to choose from."""
    params = kernel_params(problem, method)
    total = MAPS[method.kernel].total(problem.n_inputs, params)
    size = min(method.pool or total or POOL, total or MOST)
    return drawn(problem.X, method, size, params, cache)


def _scores(pool: FeatureMap, problem: Problem, method: Method) -> np.ndarray:
    """The alignment of each feature of the pool with the targets."""
    centred = method.centred or problem.task == "regression"
    Y, own = problem.Y, problem.weights
    if own is None:
        return alignment.scores(pool, problem.X, Y, centred)
    # sums over rows that count as often as their weights
    Y = Y - weights.mean(Y, own) if centred else Y
    return alignment.scores(pool, problem.X, Y * own[:, None])


def _scored(problem: Problem, method: Method, cache: Cache) -> tuple[FeatureMap, np.ndarray]:
    pool = _pool(problem, method, cache)
    return pool, _scores(pool, problem, method)


def _rho(size: int, method: Method) -> float:
    """The bound on the divergence for a pool of that size."""
    if method.rho is not None:
        return method.rho
    share = RHO_SHARES[0] if method.rho_share is None else method.rho_share
    return share * size


def _alternated(
    pool: FeatureMap, rho: float, problem: Problem, method: Method
) -> tuple[np.ndarray, list[float]]:
    """The distribution learnt together with the weights, and the objectives, on some of the rows.

    It minimises lam/2 sum_m w_m^2 / q_m + sum L(w.phi(x), y), alternating from the uniform
    distribution; each step is exact.
    """
    if problem.weights is not None:
        raise UsageError("--joint does not support sample weights; omit one of them")
    rows = evenly(problem.n_rows, method.joint_rows)
    method = method.updated(lam=method.lam * len(rows) / problem.n_rows)
    some = problem.rows(rows)
    q, objectives = np.full(pool.n_features, 1 / pool.n_features), []
    for _ in range(method.joint):
        places, roots = chosen.weighted(q)
        solution = _solved(pool.weighted(places, roots), some, method).solution
        objectives.append(solution.objective)
        sizes = np.zeros(pool.n_features)
        sizes[places] = roots * np.linalg.norm(np.asarray(solution.coef), axis=1)
        if not sizes.any():
            break
        q = best_distribution(sizes, rho)
    return q, objectives


def _chosen(pool: FeatureMap, q: np.ndarray, count: int | None, method: Method) -> FeatureMap:
    """The features selected by the distribution q over the pool.

    count of them are requested, None for all with nonzero probability.
    """
    support = int(np.count_nonzero(q))
    if method.use == "weights":
        return pool.weighted(*chosen.weighted(q))
    if method.use == "support" and (count is None or count >= support):
        places, factors = chosen.support_once(q)
    else:
        places, factors = chosen.drawn(q, count or support, method.seed)
    return pool.select(places) if method.sparse else pool.weighted(places, factors)


@dataclass(frozen=True)
class _Solved:
    solution: Solution
    model: LinearModel


def _solved(features: FeatureMap, problem: Problem, method: Method) -> _Solved:
    """The fit on these features."""
    offset = target_offset(problem, method)
    Z = feature_matrix(features, problem.X, 1.0, method.max_memory)
    problem = replace(problem.less(offset), progress=None, curve=None)
    if method.sparse:
        Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
        limits = budget(problem, method)
        solution = each_output(Y, lambda y, _: solve_l1(Z, y, method.lam, loss, limits))
    else:
        solution = solving.solve(Z, problem, method)
    coef = np.asarray(solution.coef)
    used = np.flatnonzero(np.any(coef != 0, axis=1))
    return _Solved(solution, LinearModel(features.select(used), coef[used], offset))
