"""`rb`: random binning features, L2-regularised (Wu et al. 2016, equation 8)."""

from dataclasses import replace

import numpy as np

from rfx.features.binning import Bins
from rfx.methods import weights
from rfx.methods.binned import N_GRIDS, OPTIONS, BinnedMethod, solve_liblinear_each
from rfx.methods.options import CHOSEN_LAM, LIBLINEAR, SOLVER
from rfx.methods.validation import GAMMA_FACTORS, LAMS, error, held_out
from rfx.operators.binned import BinnedMatrix
from rfx.options import Option
from rfx.solvers.base import for_output, stack
from rfx.solvers.dual_l2 import DualSolution, solve_dual_l2, solve_dual_ridge

# --grow: the first number of grids; what twice the grids must take off the held-out error, as a share of it, to go on.
FIRST, GAIN = 16, 0.01
# Relative duality gap while R grows: enough to tell errors apart.
GROW_TOL = 1e-2
# Most grids by which gamma and lambda are validated.
TRIED = 128
# Grids where --n-grids says nothing: MANY, of more rows so many that there are PAIRS of a row and a grid, but FEW at least.
MANY, FEW, PAIRS = 1024, 256, 2**24
GROW = Option(
    "grow",
    float,
    "Share of the training rows to hold out: R is doubled from 16 up to --n-grids while that lowers their error by 1 % of it or more; "
    "the model is then fitted to all rows.",
    low=0,
    high=0.5,
    open_low=True,
)


class RB(BinnedMethod):
    """lam/2 ||w||^2 + sum L(w.z(x), y) with z of value 1/sqrt(R) in one bin of each of R grids; no bias.

    The loss is squared by default, for classes too, as in the paper; lam is not multiplied by the number of rows. With `grow`,
    the share of the rows that is held out, R is doubled up to n_grids as long as that lowers their error; info says with
    which R (`n_grids`) the model was then fitted to all rows, and `growth` the error of every R tried.
    """

    name = "rb"
    summary = "random binning features with L2 regularisation: approximates the Laplacian kernel machine"
    default_loss = "squared"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    weighted = True
    spreads = True
    options = (
        *OPTIONS,
        N_GRIDS.but(
            default=None,
            help=f"{N_GRIDS.help} By default {MANY}, of more than {PAIRS // MANY} rows fewer, of {PAIRS // FEW} and more {FEW}.",
        ),
        CHOSEN_LAM,
        GROW,
        # without a default, for a new one would make other runs of those that were made before
        SOLVER.but(choices=SOLVER.choices | LIBLINEAR, default=None),
    )

    def _count(self, X):
        return self.params["n_grids"] or min(MANY, max(FEW, PAIRS // X.shape[0]))

    def _bytes(self, number):
        # while R grows there is a copy of the rows that are not held out, and one of the numbers so far
        return 3 * number if self.params["grow"] else number

    def _fit(self, X, Y):
        grids, start = self._sample(X), None
        if self.params["grow"] is None:
            bins, Z = self._timed(self._number, grids, X)
        else:
            bins, Z, start = self._grow(grids, X, Y)
        callback = self._watcher(grids.select(slice(0, Z.n_grids)), bins, Y)
        if self.params["solver"] == "liblinear":
            solution = solve_liblinear_each(self, Z, Y, "l2", callback)
        else:
            solution = self._solve(Z, Y, self.lam, start, self._budget(), callback)
        self._keep_nonzero(grids, bins, Z, solution.coef)
        return solution

    def _trial(self):
        trial = super()._trial()
        # more grids estimate the same kernel better, and cost as much more
        trial.params = trial.params | {"grow": None, "n_grids": min(self.params["n_grids"] or TRIED, TRIED)}
        return trial

    def _fit_each(self, X, Y, lams):
        """All lambdas over the same grids, each started at the one before."""
        grids = self._sample(X)
        bins, Z = self._number(grids, X)
        dual = None
        for lam in lams:
            self.lam = lam
            solution = self._solve(Z, Y, lam, dual, self._budget())
            dual = solution.dual
            self._keep_nonzero(grids, bins, Z, solution.coef)
            yield self

    def _solve(self, Z, Y, lam, start, budget, callback=None, *, rows=slice(None)) -> DualSolution:
        """coef (D, k) and dual (N, k); start: a dual of fewer grids. rows: which of the training rows Z and Y are."""
        Z, Y, loss = weights.problem(Z, Y, self.loss, weights.part(self.weights, rows))
        if loss.name == "squared":
            return solve_dual_ridge(Z, Y, lam, loss, budget, start, callback)
        outputs = []
        for k in range(Y.shape[1]):
            own = None if start is None else start[:, k]
            outputs.append(solve_dual_l2(Z, Y[:, k], lam, loss, budget, own, for_output(callback, k)))
        dual = np.stack([output.dual for output in outputs], axis=1) if Z.rows_here else None
        return DualSolution(**vars(stack(outputs)), dual=dual)

    def _grow(self, grids, X, Y):
        """(bins, features, dual to start from) of as many grids as the error of held-out rows asks for.

        Every Z Z' estimates the same kernel, so that the dual of R grids is as it stands a start for 2R, and zero is one for the
        rows held out.
        """
        kept, out = held_out(X.shape[0], self.params["grow"], self.params["seed"], f"--grow is {self.params['grow']:g}")
        lam, budget = self.lam * len(kept) / X.shape[0], self._budget()
        budget = replace(budget, tol=max(GROW_TOL, budget.tol or 0.0))
        ids, bins, dual = np.empty((0, X.shape[0]), np.uint16), Bins(np.empty(0, np.uint64), np.zeros(1, np.int64)), None
        self.growth, best = [], np.inf
        size = min(FIRST, grids.n_grids)
        while True:
            more_bins, more = self._timed(self._number, grids.select(slice(len(ids), size)), X)
            ids = np.concatenate([ids, more.ids]) if len(ids) else more.ids
            bins = Bins(np.concatenate([bins.keys, more_bins.keys]), np.concatenate([bins.starts, bins.starts[-1] + more_bins.starts[1:]]))
            Z = BinnedMatrix(np.ascontiguousarray(ids[:, kept]), bins.starts)
            solution = self._solve(Z, Y[kept], lam, dual, budget, rows=kept)
            dual = solution.dual
            decision = BinnedMatrix(ids[:, out], bins.starts).matvec(solution.coef)
            found = error(self.task, decision, Y[out], weights.part(self.weights, out))
            self.growth.append([size, found])
            enough = found > (1 - GAIN) * best
            if found < best:
                best, chosen, start = found, size, np.zeros_like(Y)
                start[kept] = dual
            if enough or size == grids.n_grids:
                break
            size = min(2 * size, grids.n_grids)
        bins = Bins(bins.keys[: bins.starts[chosen]], bins.starts[: chosen + 1])
        return bins, BinnedMatrix(ids[:chosen], bins.starts), start

    def _describe(self):
        return super()._describe() | ({"growth": self.growth} if self.params["grow"] else {})
