"""`boosting`: fully corrective boosting with L1 regularisation, Figure 1 of Yen et al. (2014).

lam ||w||_1 + sum L(w.phi(x), y) over all features phi of a kind (eq. 8), found greedily (eq. 24),
with all weights fitted again in each step; no bias. The features are those from which the kernel's
random features are drawn, in the same scale, so that the objective is that of sparse-rf. Several
classes are learnt one against the rest, each with its own features.
"""

from typing import Any, cast

import numpy as np

from rfx import kernels, losses
from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.callbacks import evaluating
from rfx.fitting.candidates import L1_LAMS, SearchSpace
from rfx.fitting.linear import LinearMethod, LinearModel
from rfx.fitting.method import Fitted, Method, budget
from rfx.fitting.options import (
    CHOSEN_SCALING,
    CLASS_WEIGHT,
    DTYPE,
    KERNEL,
    LAM_L1,
    MAX_ITER,
    MAX_MEMORY,
    METRIC,
    MOST,
    N_FEATURES,
    TOL,
    l1_choice,
)
from rfx.fitting.preprocessing import stays_sparse
from rfx.fitting.problem import Cache, Clock, Problem
from rfx.options import Chosen, option
from rfx.solvers.base import Solution, for_output, stack
from rfx.solvers.boosting import TOL as STEP_TOL
from rfx.solvers.boosting import Learner, Perceptrons, Stumps, solve_boosting

# The gap for steps of several features.
SEVERAL_TOL = 1e-3
BASES = {
    "perceptron": "each found approximately, by a convex surrogate",
    "stump": "each found exactly",
}


class Boosting(LinearMethod, without=("gamma", "features", "budget_seconds")):
    """Features found greedily, one per step, with L1 regularisation."""

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
        help="The kernel whose features are found.", choices=BASES, default="perceptron"
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
    dtype: str = DTYPE()
    max_memory: float | None = MAX_MEMORY()
    class_weight: str | None = CLASS_WEIGHT()

    def check(self, given: dict[str, Any]) -> None:
        Method.check(self, given)
        for name in ("surrogate", "threshold"):
            if name in given and self.kernel == "stump":
                raise UsageError(
                    f"--{name} is {given[name]}, which is for kernel perceptron; stumps are found"
                    " exactly"
                )

    def vectors(self, X: Any) -> int:
        # sparse rows are made dense
        sparse = stays_sparse(X, self.scaling)
        return self.n_features + (X.shape[0] if sparse else 0)

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock, kernel = Clock(), kernels.get_kernel(self.kernel)
        X = _dense(problem.X, self.dtype)
        params = kernels.parameters(self.kernel, X, **self.kernel_options)
        # +-scale are the kernel's features; +-1 with a smaller lambda are the same problem
        scale = float(np.sqrt(kernel.diagonal(params, X.shape[1], None))) or 1.0
        learners = [clock.timed("features", _learner, X, params, self) for _ in problem.Y.T]
        listen, solutions = _listeners(problem, learners), []
        Y, loss = weights.targets(problem.Y, problem.loss, problem.weights)
        more: dict[str, Any] = {"n_features": self.n_features}
        if problem.weights is not None and loss.name == "squared":
            more["factors"] = np.sqrt(problem.weights)
        tol = STEP_TOL if self.per_step == 1 else SEVERAL_TOL
        lam, limits = self.lam / scale, budget(problem, self, tol=tol)
        for k, learner in enumerate(learners):
            tell = for_output(listen(k), k)
            solutions.append(solve_boosting(learner, Y[:, k], lam, loss, limits, tell, **more))
        return _joined(learners, solutions, scale, self, clock)


def _dense(X: Any, dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=dtype)


def _learner(X: np.ndarray, params: dict, method: Method) -> Learner:
    if method.kernel == "stump":
        return Stumps(X, params, method.per_step)
    surrogate = cast(losses.SmoothLoss, losses.get_loss(method.surrogate))
    exact = method.threshold == "exact"
    return Perceptrons(X, params, surrogate, exact, method.per_step, method.seed)


def _listeners(problem: Problem, learners: list[Learner]):
    """k -> the callback for the weights of output k, whose features grow with the steps."""

    def decide(X):
        rows = _dense(X, learners[0].X.dtype)
        return lambda weighted: weighted[0].transform(rows) @ weighted[1]

    tell = evaluating(problem, decide)
    if tell is None:
        return lambda k: None
    return lambda k: lambda entry, coef: tell(entry, lambda: (learners[k].found, coef()))


def _joined(
    learners: list[Learner],
    solutions: list[Solution],
    scale: float,
    method: Method,
    clock: Clock,
) -> Fitted:
    """The model of all outputs with the features of nonzero weight, and their combined solution."""
    found = [learner.found.arrays for learner in learners]
    arrays = {name: np.concatenate([part[name] for part in found], axis=-1) for name in found[0]}
    if "scales" in arrays:
        arrays["scales"] = arrays["scales"] * arrays["scales"].dtype.type(scale)
    coef, start = np.zeros((sum(len(s.coef) for s in solutions), len(solutions))), 0
    for k, solution in enumerate(solutions):
        coef[start : start + len(solution.coef), k] = solution.coef / scale
        start += len(solution.coef)
    details: dict[str, Any] = {"n_features": method.n_features, "n_found": len(coef)}
    if method.kernel == "stump":
        # the gap covers all stumps, while --tol refers to those found
        details["round_gap"] = float(sum(s.trace[-1]["gap"] for s in solutions))
    first = learners[0].found
    feature_map = type(first)(first.name, first.n_inputs, first.params, arrays)
    model = LinearModel.of(feature_map, coef)
    return Fitted(model, stack(solutions, coef), details, clock.seconds)
