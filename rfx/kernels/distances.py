"""Kernels of the distance of two rows: Gaussian, the two Laplacians, Matern, mixtures of
Gaussians.
"""

import numpy as np

from rfx import steps as told
from rfx.kernels.base import GammaKernel
from rfx.model import Array
from rfx.options import Option

# The bandwidths of `multiscale`, in units of gamma: lengths of 1/4, 1/2, 1, 2 and 4.
SCALES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)


class Gaussian(GammaKernel):
    name = "gaussian"
    formula = "exp(-gamma ||x - y||_2^2)"
    metric = "squared"
    paper_gamma = 0.5
    has_gradient = True

    def finish(self, tile, params, n_inputs, lengths):
        np.exp(np.negative(tile, out=tile), out=tile)

    def finishing(self, params, rows):
        return (told.Function("exp_minus"),)

    def slope(self, xp, s):
        return 2 * xp.exp(-s)


class Laplacian(Gaussian):
    name = "laplacian"
    formula = "exp(-gamma ||x - y||_1)"
    metric = "l1"
    paper_gamma = GammaKernel.paper_gamma


class LaplacianL2(Laplacian):
    name = "laplacian-l2"
    formula = "exp(-gamma ||x - y||_2)"
    metric = "l2"

    def slope(self, xp, s):
        return xp.exp(-s) / xp.where(s > 0, s, xp.inf)


class Matern3(GammaKernel):
    """Smoothness 3/2 (Rasmussen and Williams 2006, equation 4.17), with gamma one over its length
    scale.
    """

    name = "matern-3/2"
    formula = "(1 + s) exp(-s), s = sqrt3 gamma ||x - y||_2"
    metric = "l2"
    has_gradient = True

    def finish(self, tile, params, n_inputs, lengths):
        tile *= tile.dtype.type(np.sqrt(3))
        rising = tile + 1
        np.exp(np.negative(tile, out=tile), out=tile)
        tile *= rising

    def finishing(self, params, rows):
        return told.scaled(np.sqrt(3), len(rows)), told.Function("matern3")

    def slope(self, xp, s):
        return 3 * xp.exp(-(3**0.5) * s)


class Matern5(GammaKernel):
    """Smoothness 5/2 (Rasmussen and Williams 2006, equation 4.17), with gamma one over its length
    scale.
    """

    name = "matern-5/2"
    formula = "(1 + s + s^2/3) exp(-s), s = sqrt5 gamma ||x - y||_2"
    metric = "l2"
    has_gradient = True

    def finish(self, tile, params, n_inputs, lengths):
        tile *= tile.dtype.type(np.sqrt(5))
        rising = 1 + tile * (1 + tile / 3)
        np.exp(np.negative(tile, out=tile), out=tile)
        tile *= rising

    def finishing(self, params, rows):
        return told.scaled(np.sqrt(5), len(rows)), told.Function("matern5")

    def slope(self, xp, s):
        s = 5**0.5 * s
        return (1 + s) * (5 / 3) * xp.exp(-s)


class RationalQuadratic(GammaKernel):
    """Rasmussen and Williams (2006), equation 4.19, with gamma = 1 / (2 l^2) for the length scale
    l: the Gaussian kernel in the limit of large alpha.
    """

    name = "rational-quadratic"
    formula = "(1 + gamma ||x - y||_2^2 / alpha)^-alpha"
    metric = "squared"
    paper_gamma = 0.5
    parameters = {"gamma": Array("f"), "rq_alpha": Array("f")}
    options = (
        Option(
            "rq_alpha",
            float,
            "Exponent of kernel rational-quadratic; the smaller it is, the more length scales the"
            " kernel mixes.",
            low=1e-3,
            high=1e6,
            default=1.0,
        ),
    )

    def learn(self, X, given, seed):
        alpha = given.get("rq_alpha")
        (option,) = self.options
        return super().learn(X, given, seed) | {
            "rq_alpha": option.convert(option.default if alpha is None else alpha)
        }

    def finish(self, tile, params, n_inputs, lengths):
        alpha = params["rq_alpha"]
        tile *= tile.dtype.type(1 / alpha)
        np.log1p(tile, out=tile)
        tile *= tile.dtype.type(-alpha)
        np.exp(tile, out=tile)

    def finishing(self, params, rows):
        alpha, m = float(params["rq_alpha"]), len(rows)
        raised = told.Scale(np.full(m, -alpha), np.full(m, 1 / alpha))
        powers = told.scaled(alpha, m), told.Function("exp_minus")
        return raised, told.Function("log_positive"), *powers


class Multiscale(GammaKernel):
    """The mean of Gaussian kernels whose length scales are octaves apart.

    The factors are those of the maximum mean discrepancy with several kernels (Long et al. 2015,
    who multiply gamma by powers of two), here 4^-2 to 4^2.
    """

    name = "multiscale"
    formula = "mean of exp(-s gamma ||x - y||_2^2) over s = 1/16, 1/4, 1, 4, 16"
    metric = "squared"
    paper_gamma = 0.5

    def finish(self, tile, params, n_inputs, lengths):
        np.negative(tile, out=tile)
        total = np.zeros_like(tile)
        for scale in SCALES:
            total += np.exp(tile * tile.dtype.type(scale))
        np.multiply(total, tile.dtype.type(1 / len(SCALES)), out=tile)

    def finishing(self, params, rows):
        return (told.Function("multiscale"),)


KERNELS = (
    Gaussian(),
    Laplacian(),
    LaplacianL2(),
    Matern3(),
    Matern5(),
    RationalQuadratic(),
    Multiscale(),
)
