"""`boosting`: fully corrective boosting with L1 regularisation, the comparison of Figure 1 of Yen et al. (2014)."""

import numpy as np

from rfx import kernels, losses
from rfx.errors import UsageError
from rfx.methods import weights, width
from rfx.methods.base import Method
from rfx.methods.linear import LinearMethod
from rfx.methods.options import DTYPE, KERNEL, LAM_L1, LOSS, MAX_ITER, MAX_MEMORY, MOST, N_FEATURES, TOL
from rfx.methods.sparse_rf import LAMBDAS
from rfx.methods.watch import watcher
from rfx.methods.weak import Perceptrons, Stumps
from rfx.operators.signs import SignColumns
from rfx.options import Option
from rfx.solvers.base import Solution, for_output, stack
from rfx.solvers.boosting import TOL as STEP_TOL
from rfx.solvers.boosting import solve_boosting

BASES = {"perceptron": "each found roughly, by a convex surrogate", "stump": "each found exactly"}


class Boosting(LinearMethod):
    """lam ||w||_1 + sum L(w.phi(x), y) over all features phi of a kind (eq. 8), greedily (eq. 24), all weights anew each step; no bias.

    The features are those that kernel's random features are drawn from, in its scale, so that the objective is that of sparse-rf.
    Several classes are learnt one against the others, each with features of its own.
    """

    name = "boosting"
    watches = True
    weighted = True
    summary = "features found greedily, one a step, with L1 regularisation, all weights anew each step"
    searched = {"lam": LAMBDAS}
    options = (
        KERNEL.but(help="The kernel whose features are found.", choices=BASES, default="perceptron"),
        N_FEATURES.but(help="Most features D that are found; of several classes, for each."),
        Option("per_step", int, "Features found in a step.", low=1, high=MOST, default=1),
        Option(
            "surrogate",
            str,
            "The loss of the linear classifier that stands for the best perceptron, on the pseudo-labels' weights.",
            ("logistic", "squared", "squared_hinge"),
            default="logistic",
        ),
        Option(
            "threshold",
            str,
            "The threshold of a perceptron.",
            {"surrogate": "that of the classifier", "exact": "the best one for the classifier's direction"},
            default="surrogate",
        ),
        LAM_L1.but(choices={"validation": "best of 1, 10, 100, 1000 on held-out rows"}, default=10.0),
        LOSS,
        TOL.but(help=f"Relative duality gap of the weights at every step, over the features found; by default {STEP_TOL:g}."),
        MAX_ITER.but(help="Most iterations of rfx's solver in a step."),
        DTYPE,
        MAX_MEMORY,
    )

    def check_given(self, given):
        Method.check_given(self, given)
        for name in ("surrogate", "threshold"):
            if name in given and self.params["kernel"] == "stump":
                raise UsageError(f"--{name} is {given[name]}, which is for kernel perceptron; stumps are found exactly")

    def _vectors(self, X):
        # rows that were sparse are made dense
        return self.params["n_features"] + (X.shape[0] if width.stays_sparse(X, self.params["scaling"]) else 0)

    def _fit(self, X, Y):
        p = self.params
        X = np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=p["dtype"])
        own = {option.name: p[option.name] for option in kernels.get_kernel(p["kernel"]).options}
        params = kernels.parameters(p["kernel"], X, **own)
        # +-scale are the features of that kernel; +-1 with a smaller lambda are the same problem
        scale = float(np.sqrt(kernels.get_kernel(p["kernel"]).diagonal(params, X.shape[1], None))) or 1.0
        learners = [self._timed(self._learner, X, params) for _ in Y.T]
        watch, solutions = self._watch(learners), []
        Y, loss = weights.targets(Y, self.loss, self.weights)
        more = {"n_features": p["n_features"]}
        if self.weights is not None and loss.name == "squared":
            more["factors"] = np.sqrt(self.weights)
        for k, learner in enumerate(learners):
            tell = for_output(watch(k), k)
            solutions.append(solve_boosting(learner, Y[:, k], self.lam / scale, loss, self._budget(), tell, **more))
        return self._join(learners, solutions, scale)

    def _learner(self, X, params):
        p = self.params
        if p["kernel"] == "stump":
            return Stumps(X, params, p["per_step"])
        return Perceptrons(X, params, losses.get_loss(p["surrogate"]), p["threshold"] == "exact", p["per_step"], p["seed"])

    def _watch(self, learners):
        """The callback for the weights of each output (see rfx.methods.watch), whose features grow from step to step."""
        held = []

        def decide(rows):
            held.extend(_HeldOut(rows, learner) for learner in learners)
            return lambda values: values

        tell = watcher(self, decide, len(learners))
        return lambda k: None if tell is None else lambda entry, coef: tell(entry, lambda: held[k](coef()))

    def _join(self, learners, solutions, scale) -> Solution:
        """The model of all outputs, of the features with a weight; their solutions in one."""
        found = [learner.found.arrays for learner in learners]
        arrays = {name: np.concatenate([part[name] for part in found], axis=-1) for name in found[0]}
        if "scales" in arrays:
            arrays["scales"] = arrays["scales"] * arrays["scales"].dtype.type(scale)
        coef, start = np.zeros((sum(len(s.coef) for s in solutions), len(solutions))), 0
        for k, solution in enumerate(solutions):
            coef[start : start + len(solution.coef), k] = solution.coef / scale
            start += len(solution.coef)
        self.found = {"n_found": len(coef)}
        if self.params["kernel"] == "stump":
            # the gap is over all stumps, and what --tol is about over those found
            self.found["round_gap"] = float(sum(s.trace[-1]["gap"] for s in solutions))
        first = learners[0].found
        self._keep_nonzero(type(first)(first.name, first.n_inputs, first.params, arrays), coef)
        return stack(solutions, coef)

    def _describe(self):
        return super()._describe() | self.found


class _HeldOut:
    """Decision values of held-out rows at the weights of a learner's features, which are made as they join."""

    def __init__(self, X, learner):
        self.X, self.learner = np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=learner.X.dtype), learner
        self.Z = SignColumns(len(self.X))

    def __call__(self, coef):
        known, found = self.Z.shape[1], self.learner.found
        if found.n_features > known:
            self.Z.append(found.select(slice(known, found.n_features)).transform(self.X))
        return self.Z.matvec(coef)
