"""`sparse-rf`: Sparse Random Features, Algorithm 1 of Yen et al. (2014)."""

from dataclasses import replace

from rfx.errors import UsageError
from rfx.kernels import get_kernel
from rfx.methods import weights
from rfx.methods.linear import CHOOSE, OPTIONS, POOL, LinearMethod
from rfx.methods.options import LAM_L1, LAM_PATH, LIBLINEAR, MOST, PRCD, SOLVER, TOL
from rfx.methods.rf import RF
from rfx.methods.validation import GAMMA_FACTORS, L1_HELP, error, l1_lams
from rfx.operators.mapped import computed, feature_matrix, told_memory_mb
from rfx.options import Option
from rfx.solvers.base import Solution, stack
from rfx.solvers.l1.algorithm1 import in_parts, solve_rounds
from rfx.solvers.l1.newton import path_l1
from rfx.solvers.l1.prcd import solve_prcd
from rfx.solvers.published.liblinear import solve_liblinear

LAMBDAS = (1000.0, 100.0, 10.0, 1.0)


class SparseRF(LinearMethod):
    """lam ||w||_1 + sum L(w.phi(x), y) over unscaled features phi (eq. 9), T rounds of D/T new features; no bias.

    Only features with a non-zero weight are in the model. solver prcd is the coordinate descent of Wu et al. (2016) over all
    features at once, without rounds.
    """

    name = "sparse-rf"
    watches = True
    weighted = True
    spreads = True
    summary = "random features with L1 regularisation, drawn in rounds: a small model (Algorithm 1)"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMBDAS}
    options = (
        *OPTIONS,
        CHOOSE,
        POOL,
        LAM_L1.but(
            choices={
                "validation": f"the best of 1000, 100, 10, 1 on held-out rows; {L1_HELP}",
                "match-rf": "closest to rf there, as Yen et al. choose it, of those until the error is at most rf's or rises",
            },
            default="validation",
        ),
        LAM_PATH.but(help=f"{LAM_PATH.help} Each is started at the one before."),
        SOLVER.but(choices=SOLVER.choices | LIBLINEAR | PRCD),
        TOL.but(help=f"{TOL.help} The `-e` of LIBLINEAR."),
        Option("rounds", int, "Rounds T of Algorithm 1; each draws D/T new features.", low=1, high=MOST, default=10),
    )

    def _candidates(self, name, Y):
        return l1_lams(self, LAMBDAS, Y) if name == "lam" else super()._candidates(name, Y)

    def check_given(self, given):
        super().check_given(given)
        if (self.params["gamma"], self.params["lam"]) == ("validation", "match-rf"):
            raise UsageError(
                "--lam is match-rf, the lambda for which the error is that of rf, by which --gamma validation can't choose; choose tuned"
            )

    def _fit(self, X, Y):
        p = self.params
        feature_map, self.measured = self._timed(self._sample, X, 1.0), {}
        if p["lam_path"]:
            return self._fit_path(feature_map, X, Y)
        solution = self._solve(feature_map, X, Y, self.lam, self._watcher(feature_map, Y))
        self._keep_nonzero(feature_map, solution.coef)
        return solution

    def _fit_path(self, feature_map, X, Y) -> Solution:
        """All lambdas of --lam-path over all features."""
        lams = self._path_lams()
        Z = self._timed(feature_matrix, feature_map, X, 1.0, self.params["max_memory"])
        Z, Y, loss = weights.problem(Z, Y, self.loss, self.weights)
        outputs = [path_l1(Z, Y[:, k], lams, loss, self._budget()) for k in range(Y.shape[1])]
        return self._keep_path(feature_map, lams, [stack(list(solutions)) for solutions in zip(*outputs)])

    def _solve(self, feature_map, X, Y, lam, callback=None) -> Solution:
        p, Z = self.params, computed(feature_map, X)
        budget = replace(self._budget(), memory_mb=p["max_memory"] or told_memory_mb(Z.size_mb))
        if p["solver"] == "prcd":
            Z = self._timed(Z.by_columns, budget.memory_mb)
            return self._each_output(Y, lambda y, tell: solve_prcd(Z, y, lam, self.loss, budget, callback=tell, seed=p["seed"]), callback)
        solve = None
        if p["solver"] == "liblinear":

            def solve(part, y, lam, loss, budget):
                # its tolerance is another one, and the same in all rounds
                return solve_liblinear(part, y, lam, loss, self._budget(), penalty="l1", seed=p["seed"])

            solve = in_parts(solve)
        if Z.heights is not None:
            # so few bytes that all rounds share them
            Z = self._timed(Z.hold, budget.memory_mb / 2)
        Z, Y, own = weights.problem(Z, Y, self.loss, self.weights)
        solution = self._each_output(
            Y, lambda y, tell: solve_rounds(Z, y, lam, own, budget, callback=tell, rounds=p["rounds"], solve=solve), callback
        )
        # what --tol is about: the gap that is reported is over all features, dropped ones too
        last = solution.trace[-1]["iteration"]
        gap = sum(entry["gap"] for entry in solution.trace if entry["iteration"] == last)
        self.measured = {"round_gap": gap} if last > 1 else {}
        return solution

    def _describe(self):
        return super()._describe() | self.measured

    def _tuning_lams(self):
        # of ridge, whose lambda is another one than that of L1
        return [1.0]

    def _target_error(self, X, Y, X_out, Y_out, share):
        """Held-out error of rf with the same features and lambda_N = 1 for all rows, where lambda is to match it."""
        if self.params["lam"] != "match-rf":
            return None
        names = ("kernel", "gamma", "features", "n_features", "choose", "pool", "dtype", "max_memory", "seed")
        own = [option.name for option in get_kernel(self.params["kernel"]).options]
        rf = RF(**{name: self.params[name] for name in (*names, *own)}, lam=share)
        rf.task, rf.loss, rf.deadline, rf._seconds_features = self.task, self.loss, self.deadline, 0.0
        rf.lam, rf.chosen, rf.weights = share, self.chosen, self.weights
        rf._fit(X, Y)
        return error(self.task, rf._decide(X_out), Y_out, self.weights_out)
