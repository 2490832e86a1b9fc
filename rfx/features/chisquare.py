"""Fourier features of the chi-square kernels: waves of the logarithms of the inputs.

sech(t / 2) is the mean of cos(w t) over w with the density sech(pi w) (Vedaldi and Zisserman 2012,
table 1), so 2 x y / (x + y) is sqrt(x y) times the mean of cos(w (log x - log y)).
"""

import math

import numpy as np
import scipy.sparse as sp

from rfx import parallel
from rfx import steps as told
from rfx.compiled import njit
from rfx.features.base import FeatureMap
from rfx.features.coordinates import random_order
from rfx.features.fourier import FourierMap
from rfx.features.random import secants, uniforms
from rfx.kernels.chisquare import AdditiveChi2, SkewedChi2
from rfx.model import Array

# `random_order` draws from stream 0.
SHIFT, PHASE = 1, 2
_TWO_PI = 2 * math.pi
# Inputs and features of the rows that are processed together.
_VALUES = 1 << 18


class AdditiveChi2Map(FeatureMap):
    """sqrt(2 d x_m) cos(w log x_m + b) for one of the d inputs, m; 0 for x_m = 0.

    Features 2k and 2k+1 have the same m and w, and phases b ~ U[0, 2 pi] a quarter turn apart, so
    that the sum of their products does not depend on b. The inputs take turns in a random order,
    another one after each round. The frequencies of an input are the points of the van der Corput
    sequence plus a random shift, modulo 1, by the inverse distribution: each has the density
    sech(pi w), and together they are evenly distributed.
    """

    kernels = (AdditiveChi2(),)
    parts = {
        "frequencies": Array("f", "features"),
        "phases": Array("f", "features"),
        "scales": Array("f", "features"),
        "columns": Array("i", "features", places="inputs"),
    }
    width = 0

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        first, last = start // 2, -(-stop // 2)
        columns = random_order(n_inputs, first, last, seed)
        shifts = uniforms(seed, SHIFT, 0, n_inputs, 1)[:, 0]
        rounds = np.arange(first, last) // n_inputs
        w = secants((_radical_inverse(rounds) + shifts[columns]) % 1.0)
        phases = uniforms(seed, PHASE, first, last, 1)[:, 0]
        pairs, odd = np.arange(start, stop) // 2 - first, np.arange(start, stop) % 2
        return {
            "frequencies": w[pairs] / _TWO_PI,
            "phases": phases[pairs] - 0.25 * odd,
            "scales": np.full(stop - start, math.sqrt(2 * n_inputs)),
            "columns": columns[pairs],
        }

    def compute(self, X, out):
        self.kernels[0].check(X, self.params)
        columns = self.arrays["columns"].astype(np.int64)
        w, b, scales = (self.arrays[name] for name in ("frequencies", "phases", "scales"))
        step = max(1, _VALUES // (self.n_inputs + self.n_features))

        def part(first, last):
            for start in range(first * step, min(last * step, X.shape[0]), step):
                rows = slice(start, min(start + step, X.shape[0]))
                dense = X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows])
                _waves(dense.astype(np.float64), columns, w, b, scales, out[rows])

        parallel.for_ranges(part, -(-X.shape[0] // step), work=20 * out.size)

    def own_steps(self):
        inputs = told.Select(self.arrays["columns"])
        w, b = (self.arrays[name].astype(np.float64) for name in ("frequencies", "phases"))
        logarithms = inputs, told.Function("log_positive")
        cosines = *logarithms, told.Scale(-b / w, w), told.Function("cos_turns")
        return (told.Product((cosines, (inputs, told.Function("sqrt")))),)


class SkewedChi2Map(FourierMap):
    """sqrt2 cos(w.z + b) of z_j = log(1 + x_j / c), w_j with the density sech(pi w)."""

    kernels = (SkewedChi2(),)
    variants = {name: FourierMap.variants[name] for name in ("offset", "pairs", "quasi")}

    @classmethod
    def drawn(cls, name, draws, params):
        return secants(draws.uniforms())

    def _rows(self, X):
        self.kernels[0].check(X, self.params)
        Z = X.astype(np.float64)
        values = Z.data if sp.issparse(Z) else Z
        values /= self.params["skewedness"]
        np.log1p(values, out=values)
        return super()._rows(Z)

    def own_steps(self):
        c = self.params["skewedness"]
        shares = told.Scale(np.full(self.n_inputs, -c), np.full(self.n_inputs, 1 / c))
        return shares, told.Function("log_positive"), *super().own_steps()


def _radical_inverse(numbers: np.ndarray) -> np.ndarray:
    """The van der Corput sequence at these places: their bits, mirrored at the binary point."""
    found, bits, unit = np.zeros(len(numbers)), numbers.copy(), 0.5
    while bits.any():
        found += unit * (bits % 2)
        bits //= 2
        unit /= 2
    return found


@njit(cache=True, nogil=True)
def _waves(X, columns, frequencies, phases, scales, out):
    """out <- scales sqrt(x) cos(2 pi (frequencies log x + phases)) of the inputs x in columns."""
    n_inputs = X.shape[1]
    logarithms, roots = np.zeros(n_inputs), np.zeros(n_inputs)
    for i in range(len(X)):
        for k in range(n_inputs):
            x = X[i, k]
            roots[k] = math.sqrt(x)
            logarithms[k] = math.log(x) if x > 0 else 0.0
        for j in range(len(columns)):
            k = columns[j]
            if roots[k] > 0:
                t = frequencies[j] * logarithms[k] + phases[j]
                out[i, j] = scales[j] * roots[k] * math.cos(_TWO_PI * (t - np.rint(t)))
            else:
                out[i, j] = 0
