"""`lkrf`: learning kernels with random features (Sinha and Duchi 2016): features of a pool, weighed by how they go with the targets."""

import time

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.features import MAPS, alignment, chosen
from rfx.features.divergence import DIVERGENCES, maximise
from rfx.features.joint import best_distribution
from rfx.methods import gamma as bandwidth
from rfx.methods import l2, weights
from rfx.methods.linear import OFFSET, OPTIONS, LinearMethod, linear_decision
from rfx.methods.options import CG, LAM, LIBLINEAR, MOST, N_FEATURES, SOLVER, TOL
from rfx.methods.validation import error, spread
from rfx.model import Array
from rfx.operators.mapped import feature_matrix
from rfx.options import Option
from rfx.solvers.base import Solution
from rfx.solvers.l1.newton import solve_l1

POOL = 20_000
# What validation chooses from: multiples of the pool's size and of the median's bandwidth, numbers of features, lambdas.
RHO_SHARES = (0.005, 0.01, 0.02, 0.05, 0.1)
GAMMA_FACTORS = (1.0, 0.25, 4.0, 16.0)
COUNTS = (64, 256, 1024, 4096)
LAMS = (1.0, 0.1, 0.01, 10.0, 100.0)
# Most rows to fit on and to judge by.
ROWS, HELD_OUT = 5000, 0.5

USES = {
    "support": "the support once where it is as small as D, as the authors' program does, else draws",
    "draw": "draws with replacement",
    "weights": "the whole support, each feature times the root of its probability",
}


class LKRF(LinearMethod):
    """lam/2 ||w||^2 + sum L(w.z(x), y) over features z that are chosen from a pool; no bias.

    The pool's features are scored by their alignment with the targets, the distribution q over them with the largest mean
    score within D_f(q || uniform) <= rho is found, and q used in one of the ways of USES. With --sparse the penalty is
    lam ||w||_1 and features are not divided by the root of their number. The model keeps the chosen features only.
    """

    name = "lkrf"
    weighted = True
    spreads = True
    # bandwidth and bound together, for they depend on one another, then the others one by one
    searched = {"gamma": GAMMA_FACTORS, "rho": RHO_SHARES, "lam": LAMS, "n_features": COUNTS}
    stages = (("gamma", "rho"), ("lam",), ("n_features",))
    held_out_share, held_out_rows, judges = HELD_OUT, ROWS, 0
    _scored = None
    summary = "random features chosen from a pool by their alignment with the targets: learns the kernel"
    options = (
        *OPTIONS,
        Option(
            "pool",
            int,
            f"Number N_w of features to choose from; by default {POOL}, of coordinates and words all there are.",
            low=1,
            high=MOST,
        ),
        N_FEATURES.but(
            help="Number D of random features that are drawn; by default as many as the support has.",
            choices={"validation": "64, 256, 1024 or 4096"},
            default=None,
        ),
        Option("divergence", str, "Divergence from the uniform distribution over the pool.", DIVERGENCES, default="chi2"),
        Option(
            "rho",
            float,
            "Bound on the divergence: 0 leaves the pool as it is; by default 0.005 N_w, as the authors have it (chi2).",
            {"validation": "0.005, 0.01, 0.02, 0.05 or 0.1 times N_w (chi2)"},
            low=0,
        ),
        Option("rho_share", float, "The same bound, as a multiple of N_w.", low=0),
        Option("use", str, "How the distribution is used.", USES, default="support"),
        Option("centred", bool, "Score with labels less their mean, as regression always does.", default=False),
        OFFSET,
        Option("sparse", bool, "L1 regularisation of the chosen features.", default=False),
        Option(
            "joint",
            int,
            "Instead of by scores, learn the distribution together with the weights by so many alternations, as a comparison (chi2).",
            low=1,
            high=MOST,
        ),
        Option("joint_rows", int, "Training rows that --joint takes.", low=2, high=MOST, default=2000),
        LAM.but(choices={"validation": "0.01, 0.1, 1, 10 or 100"}),
        SOLVER.but(choices=SOLVER.choices | CG | LIBLINEAR),
        TOL.but(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR."),
    )

    arrays = LinearMethod.arrays | {"offset": Array("f", "outputs")}

    def check_given(self, given):
        super().check_given(given)
        p = self.params
        if "rho" in given and "rho_share" in given:
            raise UsageError(f"--rho is {p['rho']} and --rho-share is {p['rho_share']:g}; give one of the two")
        if p["divergence"] != "chi2" and p["rho_share"] is None and p["rho"] in (None, "validation"):
            raise UsageError(f"--divergence is {p['divergence']}, for which --rho must be a number")
        if p["use"] == "weights" and "n_features" in given:
            raise UsageError(f"--n-features is {p['n_features']}, which --use weights leaves without effect")
        if p["joint"] and (p["divergence"] != "chi2" or p["sparse"] or p["centred"]):
            raise UsageError("--joint is for --divergence chi2, without --sparse and --centred")
        if "joint_rows" in given and not p["joint"]:
            raise UsageError(f"--joint-rows is {p['joint_rows']}, which is without effect unless --joint is given")
        if p["sparse"] and p["solver"] != "rfx":
            raise UsageError(f"--solver is {p['solver']}, which has no --sparse; choose rfx")

    def _n_drawn(self):
        return self.params["pool"] or POOL

    # ------------------------------------------------------------------ training

    def _fit(self, X, Y):
        p, self.offset = self.params, self._offset(Y)
        self.rho_share, count, self.seconds = self._rho_share(), self._value("n_features"), {}
        pool = self._timed(self._pool, X, self._value("gamma"))
        self.pool_size, self.rho = pool.n_features, self._rho(pool.n_features, self.rho_share)
        if p["joint"]:
            q = self._timed(self._clocked, "seconds_joint", self._alternated, pool, X, Y, self.lam)
            self.alignment = None, None
        else:
            scores = self._timed(self._clocked, "seconds_scores", self._scores, pool, X, Y)
            q = self._timed(self._clocked, "seconds_maximise", self._maximise, scores, self.rho_share)
            self.alignment = tuple(float(value) / len(Y) ** 2 for value in (scores.mean(), q @ scores))
        self.support = int(np.count_nonzero(q))
        features = self._timed(self._choose_features, pool, q, count)
        # of the support once, more were asked for than there are
        self.count = min(count or self.support, self.support) if p["use"] == "support" else count or self.support
        solution, self.map, self.coef, self.offset = self._clocked("seconds_solve", self._model, features, X, Y, self.lam)
        return solution

    def _clocked(self, name, function, *args):
        """Call and keep the time under that name."""
        start = time.perf_counter()
        found = function(*args)
        self.seconds[name] = time.perf_counter() - start
        return found

    def _pool(self, X, gamma):
        """The map of all features to choose from, of that bandwidth: a number, paper or median."""
        p, kind = self.params, MAPS[self.params["kernel"]]
        own = {option.name: p[option.name] for option in kernels.get_kernel(p["kernel"]).options}
        params = bandwidth.resolve(p["kernel"], gamma, X, p["seed"], **own)
        total = kind.total(X.shape[1], params)
        size = min(p["pool"] or total or POOL, total or MOST)
        return self._draw(X, size, params)

    def _scores(self, pool, X, Y):
        centred = self.params["centred"] or self.task == "regression"
        if self.weights is None:
            return alignment.scores(pool, X, Y, centred)
        # sums over rows that count as often as their weights say
        Y = Y - weights.mean(Y, self.weights) if centred else Y
        return alignment.scores(pool, X, Y * self.weights[:, None])

    def _rho(self, size, share) -> float:
        return self.params["rho"] if share is None else share * size

    def _maximise(self, scores, share):
        return maximise(scores, self._rho(len(scores), share), self.params["divergence"])

    def _alternated(self, pool, X, Y, lam):
        """The distribution with the least lam/2 sum_m w_m^2 / q_m + sum L(w.phi(x), y) over weights, too, on some of the rows.

        Alternating minimisation from the uniform distribution, each step exact; self.joint_objectives has the objective after each.
        """
        if self.weights is not None:
            raise UsageError(f"--joint is {self.params['joint']}, which takes no weights of rows; leave them away")
        rows = spread(len(Y), self.params["joint_rows"])
        q, self.joint_objectives = np.full(pool.n_features, 1 / pool.n_features), []
        self.lam = lam * len(rows) / len(Y)
        for _ in range(self.params["joint"]):
            places, roots = chosen.weighted(q)
            solution, _, _, _ = self._model(pool.weighted(places, roots), X[rows], Y[rows], self.lam)
            self.joint_objectives.append(solution.objective)
            sizes = np.zeros(pool.n_features)
            sizes[places] = roots * np.linalg.norm(np.asarray(solution.coef), axis=1)
            if not sizes.any():
                break
            q = best_distribution(sizes, self.rho)
        self.lam = lam
        return q

    def _choose_features(self, pool, q, count):
        """The features that the distribution q over the pool becomes; count of them are asked for, None for as many as have weight."""
        p, support = self.params, np.count_nonzero(q)
        if p["use"] == "weights":
            return pool.weighted(*chosen.weighted(q))
        if p["use"] == "support" and (count is None or count >= support):
            places, factors = chosen.support_once(q)
        else:
            places, factors = chosen.drawn(q, count or support, p["seed"])
        return pool.select(places) if p["sparse"] else pool.weighted(places, factors)

    def _model(self, features, X, Y, lam):
        """(solution, map, coef (D, k), offset (k,)) of the fit on these features."""
        p = self.params
        offset = self._offset(Y)
        Z = feature_matrix(features, X, 1.0, p["max_memory"])
        solution = self._solve_sparse(Z, Y - offset, lam) if p["sparse"] else l2.solve(self, Z, Y - offset)
        coef = np.asarray(solution.coef)
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        return solution, features.select(used), coef[used], offset

    def _solve_sparse(self, Z, Y, lam) -> Solution:
        Z, Y, loss = weights.problem(Z, Y, self.loss, self.weights)
        return self._each_output(Y, lambda y, _: solve_l1(Z, y, lam, loss, self._budget()))

    # ------------------------------------------------------------------ validation

    def _held_out_errors(self, lams, X, Y, X_out, Y_out):
        """Of a pool's scores as long as gamma stays the same."""
        value = self._value("gamma")
        if self._scored is None or self._scored[0] != value:
            pool = self._pool(X, value)
            self._scored = value, pool, self._scores(pool, X, Y)
        _, pool, scores = self._scored
        features = self._choose_features(pool, self._maximise(scores, self._rho_share()), self._value("n_features"))
        errors = []
        for self.lam in lams:
            _, own, coef, offset = self._model(features, X, Y, self.lam)
            errors.append(error(self.task, linear_decision(own, coef, X_out) + offset, Y_out, self.weights_out))
        return errors

    def _rho_share(self) -> float | None:
        """The bound as a multiple of the pool's size; None where --rho is a number."""
        p = self.params
        if p["rho"] == "validation":
            return self.chosen["rho"]
        if p["rho"] is not None:
            return None
        return RHO_SHARES[0] if p["rho_share"] is None else p["rho_share"]

    # ------------------------------------------------------------------ the model

    def _describe(self):
        own = {
            "n_features": self.count,
            "n_features_asked": self._value("n_features"),
            "pool": self.pool_size,
            "rho": self.rho,
            "support": self.support,
            "alignment_before": self.alignment[0],
            "alignment_after": self.alignment[1],
        }
        return super()._describe() | own | self.seconds

    def _state(self):
        header, arrays = super()._state()
        return header, arrays | {"offset": self.offset}
