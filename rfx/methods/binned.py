"""What rb and sparse-rb share: a linear model on random binning features, known by the keys of its bins."""

import numpy as np

from rfx import env, losses
from rfx.errors import DataError, UsageError
from rfx.features.binning import BinMap, BinningMap, Bins, sample_grids
from rfx.features.spread_bins import number_parts
from rfx.features.widths import WIDTHS
from rfx.methods.base import Method
from rfx.methods.options import CHOSEN_GAMMA, KERNEL, LOSS, MAX_ITER, MAX_MEMORY, MOST, TOL
from rfx.methods.watch import watcher
from rfx.model import Array
from rfx.operators.binned import BinnedMatrix
from rfx.options import Option
from rfx.solvers.base import Solution
from rfx.solvers.published.liblinear import solve_liblinear

N_GRIDS = Option("n_grids", int, "Number R of random grids; a row is in one bin of each.", low=1, high=MOST, default=256)
OPTIONS = (
    KERNEL.but(choices=tuple(WIDTHS), default="laplacian"),
    CHOSEN_GAMMA,
    LOSS,
    TOL,
    MAX_ITER,
    MAX_MEMORY.but(help="MiB that features may take."),
)


def solve_liblinear_each(method, Z, Y, penalty: str, callback=None) -> Solution:
    """LIBLINEAR's solution for each column of Y (n, k) over the bins Z; penalty: l1 or l2."""

    def solve(y, tell):
        own = {"penalty": penalty, "seed": method.params["seed"]}
        return solve_liblinear(Z, y, method.lam, method.loss, method._budget(), callback=tell, **own)

    return method._each_output(Y, solve, callback)


class BinnedMethod(Method):
    """f(x) = the sum over grids of the weight of x's bin: self.grids (R), self.bins (those with a weight), self.coef (bins, k).

    A bin that no training row is in has no weight. default_loss: the loss where none is given, None for that of the task.
    """

    default_loss: str | None = None
    watches = True
    # the wider the kernel, the more grids it takes to estimate it as well
    loo_slack = 0.01
    arrays = Method.arrays | {
        "coef": Array("f", "bins outputs"),
        "widths": Array("f", "grids inputs"),
        "offsets": Array("f", "grids inputs"),
        "keys": Array("u", "bins"),
        "starts": Array("i", "grids+1", cuts="bins"),
    }

    def _choose_loss(self):
        if self.params["loss"] is None and self.default_loss is not None:
            return losses.get_loss(self.default_loss)
        return super()._choose_loss()

    def _choose(self, X, Y):
        self._check_memory(X)
        super()._choose(X, Y)

    def _count(self, X) -> int:
        """How many grids the rows X get."""
        return self.params["n_grids"]

    def _sample(self, X) -> BinningMap:
        """All grids."""
        p = self.params
        self._check_memory(X)
        bandwidth = self._learn_kernel(X)["gamma"]
        return sample_grids(p["kernel"], X.shape[1], self._count(X), p["seed"], gamma=bandwidth)

    def _check_memory(self, X):
        """Refuse more grids than there is memory for, here or where the rows lie, before any is made; sets self.memory_left, MiB."""
        n_rows, available = getattr(X, "share", (X.shape[0], None))
        size = self._bytes(2 if n_rows < 2**16 else 4)
        limit = self.params["max_memory"] or available or env.available_memory_mb()
        number = self._count(X)
        needed = size * number * n_rows / 2**20
        if needed > limit:
            allowed = "--max-memory is" if self.params["max_memory"] else "there are only"
            fitting = int(limit * 2**20 / (size * n_rows))
            advice = f"at most {fitting:,} grids fit" if fitting else "not one grid fits"
            raise UsageError(
                f"--n-grids is {number}; the bin numbers of {n_rows:,} rows take {needed:,.0f} MiB, but "
                f"{allowed} {limit:,.0f} MiB; {advice}"
            )
        self.memory_left = limit - needed

    def _vectors(self, X):
        # up to three numbers a width, and the offset
        return BinMap.width * self._count(X)

    def _bytes(self, number: int) -> int:
        """What training takes for each row and grid, where a bin number takes `number` bytes."""
        return number

    def _number(self, grids, X) -> tuple[Bins, BinnedMatrix]:
        """The bins that the rows of X are in, and the features."""
        if hasattr(X, "features"):
            return number_parts(grids, X)
        ids, bins = grids.number(X)
        return bins, BinnedMatrix(ids, bins.starts)

    def _watcher(self, grids, bins, Y):
        """The callback of a solver for the weights of these bins, see rfx.methods.watch."""
        return watcher(self, lambda X: grids.transform(X, bins).__matmul__, Y.shape[1])

    def _keep_nonzero(self, grids, bins, Z, coef):
        """The model of the bins with a non-zero weight in any output, and of the grids that have such bins."""
        # Wu et al. 2016: kappa is D / R, and by eq. 10 at least the mean over grids of N over the rows in the fullest bin
        fullest = np.maximum.reduceat(Z.squares(), Z.starts[:-1]) / Z.scale**2
        self.measured = {
            "n_grids": Z.n_grids,
            "n_features": Z.shape[1],
            "kappa": Z.shape[1] / Z.n_grids,
            "kappa_bound": float(np.mean(Z.shape[0] / fullest)),
        }
        coef = coef * Z.scale
        used = np.any(coef != 0, axis=1)
        bins = bins.select(used)
        chosen = np.flatnonzero(np.diff(bins.starts))
        self.grids, self.bins, self.coef = grids.select(chosen), bins.grids(chosen), np.ascontiguousarray(coef[used])

    @property
    def map(self) -> BinMap:
        """The features of the bins with a weight, each 1 for the rows in its bin."""
        return BinMap(self.grids, self.bins)

    def _decide(self, X):
        return self.grids.decision(X, self.bins, self.coef)

    def _describe(self):
        return {
            "lam": self.lam,
            "model_size": len(self.coef),
            "kernel_params": {"gamma": self.grids.gamma, "sigma": 1 / self.grids.gamma},
        } | self.measured

    def _state(self):
        header = {"grids": {"kernel": self.grids.kernel, "gamma": self.grids.gamma}}
        return header, {
            "widths": self.grids.widths,
            "offsets": self.grids.offsets,
            "keys": self.bins.keys,
            "starts": self.bins.starts,
            "coef": self.coef,
        }

    def _restore(self, header, arrays):
        if not np.all(arrays["widths"] > 0):
            raise DataError("array widths has values that are not above 0")
        self.grids = BinningMap(header["grids"]["kernel"], header["grids"]["gamma"], arrays["widths"], arrays["offsets"])
        self.bins, self.coef = Bins(arrays["keys"], arrays["starts"]), arrays["coef"]
