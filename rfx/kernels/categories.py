"""The kernel of rows of categories, whose inputs are codes: equal or different."""

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.kernels.base import GammaKernel
from rfx.kernels.loops import DIFFERING


class Hamming(GammaKernel):
    """A product over the inputs of 1 for equal codes and exp(-gamma) for different ones.

    On one-hot groups of inputs it is the Gaussian kernel, because ||x - y||_2^2 is twice the number
    of groups that differ.
    """

    name = "hamming"
    formula = "exp(-gamma #{j: x_j != y_j})"
    metric = "product"
    of_inputs = DIFFERING
    scalings = ("none",)

    @property
    def centred(self):
        return False

    def scale(self, Z, params):
        pass

    def scaling(self, params, n_inputs):
        return ()

    def finish(self, tile, params, n_inputs, lengths):
        tile *= tile.dtype.type(-params["gamma"])
        np.exp(tile, out=tile)

    def comparison(self, rows):
        return (told.Compare(rows, "differing"),)

    def finishing(self, params, rows):
        return told.scaled(params["gamma"], len(rows)), told.Function("exp_minus")

    def distances(self, X, first, second):
        left, right = X[first], X[second]
        if sp.issparse(X):
            return np.asarray((left != right).sum(axis=1), np.float64).ravel()
        return (left != right).sum(axis=1).astype(np.float64)


KERNELS = (Hamming(),)
