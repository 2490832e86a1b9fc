"""Kernels of the distance of two rows: Gaussian, the two Laplacians, Matern."""

import numpy as np

from rfx import steps as told
from rfx.kernels.base import GammaKernel


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

    def slope(self, tile):
        np.exp(np.negative(tile, out=tile), out=tile)
        tile *= 2


class Laplacian(GammaKernel):
    name = "laplacian"
    formula = "exp(-gamma ||x - y||_1)"
    metric = "l1"
    has_gradient = True

    def finish(self, tile, params, n_inputs, lengths):
        np.exp(np.negative(tile, out=tile), out=tile)

    def finishing(self, params, rows):
        return (told.Function("exp_minus"),)


class LaplacianL2(Laplacian):
    name = "laplacian-l2"
    formula = "exp(-gamma ||x - y||_2)"
    metric = "l2"

    def slope(self, tile):
        values = np.exp(-tile)
        np.divide(values, tile, out=tile, where=tile > 0)


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

    def slope(self, tile):
        tile *= -np.sqrt(3)
        np.exp(tile, out=tile)
        tile *= 3


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

    def slope(self, tile):
        tile *= np.sqrt(5)
        rising = (1 + tile) * (5 / 3)
        np.exp(np.negative(tile, out=tile), out=tile)
        tile *= rising


KERNELS = (Gaussian(), Laplacian(), LaplacianL2(), Matern3(), Matern5())
