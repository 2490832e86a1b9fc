"""What rb and sparse-rb share: a linear model on random binning features, known by the keys of its bins."""

import numpy as np

from rfx import losses
from rfx.features.binning import BinningMap, Bins, sample_grids
from rfx.methods import gamma
from rfx.methods.base import Method
from rfx.solvers.binned import BinnedFeatures


class BinnedMethod(Method):
    """f(x) = the sum over grids of the weight of x's bin: self.grids (R), self.bins (those with a weight), self.coef (bins, k).

    A bin that no training row is in has no weight. default_loss: the loss where none is given, None for that of the task.
    """

    default_loss: str | None = None

    def _choose_loss(self):
        if self.params["loss"] is None and self.default_loss is not None:
            return losses.get_loss(self.default_loss)
        return super()._choose_loss()

    def _number(self, X, Y) -> tuple[BinningMap, Bins, BinnedFeatures]:
        """The grids, the bins that the rows of X are in, and the features; self.n_bins is D."""
        p = self.params
        self.lam = p["lam"]
        bandwidth = gamma.resolve(p["kernel"], p["gamma"], X, Y, self.lam, p["seed"])["gamma"]
        grids = sample_grids(p["kernel"], X.shape[1], p["n_grids"], p["seed"], gamma=bandwidth)
        ids, bins = grids.number(X)
        self.n_bins = len(bins.keys)
        return grids, bins, BinnedFeatures(ids, bins.starts)

    def _keep_nonzero(self, grids, bins, coef):
        """The model of the bins with a non-zero weight in any output, and of the grids that have such bins."""
        used = np.any(coef != 0, axis=1)
        bins = bins.select(used)
        chosen = np.flatnonzero(np.diff(bins.starts))
        self.grids, self.bins, self.coef = grids.select(chosen), bins.grids(chosen), np.ascontiguousarray(coef[used])

    def _decide(self, X):
        return self.grids.decision(X, self.bins, self.coef)

    def _describe(self):
        return {
            "lam": self.lam, "n_features": self.n_bins, "model_size": len(self.coef), "kappa": self.n_bins / self.params["n_grids"],
            "kernel_params": {"gamma": self.grids.gamma, "sigma": 1 / self.grids.gamma},
        }

    def _limits(self) -> dict:
        """The solver's keyword arguments for the limits that are set."""
        names = ("tol", "max_iter")
        return {name: self.params[name] for name in names if self.params[name] is not None} | {"deadline": self.deadline}

    def _state(self):
        header = {"grids": {"kernel": self.grids.kernel, "gamma": self.grids.gamma}}
        return header, {
            "widths": self.grids.widths, "offsets": self.grids.offsets, "keys": self.bins.keys, "starts": self.bins.starts, "coef": self.coef,
        }

    def _restore(self, header, arrays):
        self.grids = BinningMap(header["grids"]["kernel"], header["grids"]["gamma"], arrays["widths"], arrays["offsets"])
        self.bins, self.coef = Bins(arrays["keys"], arrays["starts"]), arrays["coef"]
