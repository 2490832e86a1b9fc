"""Fourier features of the Matern kernels of smoothness 3/2 and 5/2, mentioned by Dai et al. (2014,
section 2).

Their spectral density is a multivariate t distribution with 2 nu degrees of freedom (Rasmussen and
Williams 2006, equation 4.15): w = gamma sqrt(2 nu / u) N(0, I) with u from chi-squared with 2 nu
degrees. Smoothness 1/2 is laplacian-l2.
"""

import numpy as np

from rfx.features.fourier import FourierMap
from rfx.kernels.distances import Matern3, Matern5

DEGREES = {"matern-3/2": 3, "matern-5/2": 5}


class MaternMap(FourierMap):
    """matern-3/2: (1 + s) exp(-s), s = sqrt3 gamma ||x - y||_2; matern-5/2: (1 + s + s^2/3)
    exp(-s), s = sqrt5 gamma ||x - y||_2.
    """

    kernels = (Matern3(), Matern5())

    @classmethod
    def n_shared(cls, name):
        return DEGREES[name]

    @classmethod
    def frequencies(cls, name, draws, gamma):
        u = (draws.shared() ** 2).sum(axis=1, keepdims=True)
        return gamma * np.sqrt(DEGREES[name] / u) * draws.normals()
