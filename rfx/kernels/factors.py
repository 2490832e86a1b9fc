"""Product kernels: one function of |x_j - y_j| per input, convex and decreasing from 1 to 0.

These are the kernels with random binning features (Rahimi and Recht 2007, section 4; Wu et al.
2016, equation 6): a factor k is the mean of max(0, 1 - t/width) over widths with the density width
k''(width). The Laplacian, whose product is a function of a distance, is in rfx.kernels.distances.
"""

import numpy as np

from rfx import steps as told
from rfx.compiled import njit
from rfx.kernels.base import GammaKernel

# Larger distances, in units of 1/gamma, are treated as this: avoids infinity times zero.
_FAR = 500.0
_TILE = 512
_HAT, _RATIONAL, _ERLANG = range(3)


class Factors(GammaKernel):
    metric = "product"

    def __init__(self, name: str, formula: str, factor: int):
        self.name, self.formula, self.factor = name, formula, factor

    def compare(self, rows, columns, place, out):
        """out (n, m) <- the kernel of rows (n, d) and of the m columns from number `place`
        on of (d, ...), both scaled.
        """
        _products(rows, columns, place, out, self.factor, out.dtype.type(_FAR), _TILE)

    def comparison(self, rows):
        return (told.Compare(rows, self.name),)

    def finishing(self, params, rows):
        return ()


@njit(cache=True, nogil=True)
def _products(rows, columns, place, out, factor, far, tile):
    """By tiles of columns that stay in cache; with numbers of the arrays' type, because Python's
    would make the loops float64.
    """
    zero, one = far - far, far / far
    half = one / (one + one)
    for begin in range(0, out.shape[1], tile):
        end = min(begin + tile, out.shape[1])
        for i in range(out.shape[0]):
            values = out[i, begin:end]
            values[:] = one
            for k in range(rows.shape[1]):
                a, A = rows[i, k], columns[k, place + begin : place + end]
                if factor == _HAT:
                    for j in range(end - begin):
                        values[j] *= max(zero, one - abs(a - A[j]))
                elif factor == _RATIONAL:
                    for j in range(end - begin):
                        values[j] /= one + abs(a - A[j])
                else:
                    for j in range(end - begin):
                        t = min(far, abs(a - A[j]))
                        values[j] *= (one + half * t) * np.exp(-t)


KERNELS = (
    Factors("hat", "prod_j max(0, 1 - gamma |x_j - y_j|)", _HAT),
    Factors("rational", "prod_j 1 / (1 + gamma |x_j - y_j|)", _RATIONAL),
    Factors("erlang", "prod_j (1 + gamma |x_j - y_j| / 2) exp(-gamma |x_j - y_j|)", _ERLANG),
)
