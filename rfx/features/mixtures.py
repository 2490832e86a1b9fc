"""Fourier features of mixtures of Gaussian kernels: a random bandwidth for each frequency.

The rational quadratic kernel is the mean of exp(-gamma t ||x - y||^2) over t from the gamma
distribution with shape and rate alpha (Rasmussen and Williams 2006, equation 4.20), `multiscale`
that over a few values of t.
"""

import numpy as np
from scipy.special import gammaincinv, ndtr

from rfx.features.fourier import FourierMap
from rfx.kernels.distances import SCALES, Multiscale, RationalQuadratic


class MixtureMap(FourierMap):
    """rational-quadratic: (1 + gamma ||x-y||_2^2 / alpha)^-alpha; multiscale: the mean of exp(-s
    gamma ||x-y||_2^2) over s = 1/16, 1/4, 1, 4, 16.
    """

    kernels = (RationalQuadratic(), Multiscale())

    @classmethod
    def n_shared(cls, name):
        return 1

    @classmethod
    def drawn(cls, name, draws, params):
        u = ndtr(draws.shared())
        if name == "multiscale":
            places = np.minimum((u * len(SCALES)).astype(int), len(SCALES) - 1)
            t = np.array(SCALES)[places]
        else:
            t = gammaincinv(params["rq_alpha"], u) / params["rq_alpha"]
        return np.sqrt(2 * params["gamma"] * t) * draws.normals()
