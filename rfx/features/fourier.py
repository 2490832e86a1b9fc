"""Random Fourier features of shift-invariant kernels (Rahimi and Recht 2007; Yen et al. 2014,
section 2.1).

phi(x) = sqrt2 cos(w.x + b). Frequencies and phases are stored in turns (divided by 2 pi), so that
range reduction is one subtraction and the cosine one short polynomial.
"""

import math
from typing import ClassVar

import numpy as np

from rfx import steps as told
from rfx.compiled import njit
from rfx.errors import UsageError
from rfx.features.base import FeatureMap
from rfx.features.products import BLOCK, sum_group
from rfx.features.random import cauchys, normals, uniforms
from rfx.kernels import Kernel
from rfx.kernels.distances import Gaussian, Laplacian, LaplacianL2
from rfx.model import Array
from rfx.parallel import cached

FREQUENCY, PHASE, SHARED = 0, 1, 2


class FourierMap(FeatureMap):
    """gaussian exp(-gamma ||.||_2^2): w ~ N(0, 2 gamma I); laplacian exp(-gamma ||.||_1): w_j ~
    Cauchy(0, gamma);

    laplacian-l2 exp(-gamma ||.||_2): w ~ gamma N(0, I)/|N(0, 1)|, with one denominator per feature
    (docs/papers.md). b ~ U[0, 2 pi]; as pairs, features 2k and 2k+1 are the cosine and the sine of
    the same w.
    """

    kernels: ClassVar[tuple[Kernel, ...]] = (Gaussian(), Laplacian(), LaplacianL2())
    parts = {"frequencies": Array("f", "inputs features"), "phases": Array("f", "features")}
    variants = {"offset": "sqrt2 cos(w.x + b)", "pairs": "cos and sin of the same w"}
    aliases = {"fourier": "gaussian"}

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        first, last = (start // 2, -(-stop // 2)) if variant == "pairs" else (start, stop)
        w = cls.frequencies(name, n_inputs, first, last, seed, params["gamma"])
        if variant == "pairs":
            # sin(t) is cos(t) a quarter turn later
            w = np.repeat(w, 2, axis=0)[start - 2 * first : stop - 2 * first]
            phases = np.where(np.arange(start, stop) % 2, -0.25, 0.0)
        else:
            phases = uniforms(seed, PHASE, first, last, 1)[:, 0]
        return {"frequencies": w.T / (2 * np.pi), "phases": phases}

    @classmethod
    def frequencies(cls, name, n_inputs, first, last, seed, gamma) -> np.ndarray:
        """(last - first, n_inputs) draws of w, the frequencies number first .. last-1."""
        if name == "laplacian":
            return gamma * cauchys(seed, FREQUENCY, first, last, n_inputs)
        w = normals(seed, FREQUENCY, first, last, n_inputs)
        if name == "gaussian":
            w *= math.sqrt(2 * gamma)
        else:
            w *= gamma / np.abs(normals(seed, SHARED, first, last, 1))
        return w

    @classmethod
    def check_variant(cls, name, n_features, variant):
        super().check_variant(name, n_features, variant)
        if variant == "pairs" and n_features % 2:
            raise UsageError(
                f"--n-features is {n_features}, but --features pairs needs an even number"
            )

    @cached
    def _phases(self):
        return self.arrays["phases"].astype(np.float64)

    def compute(self, X, out):
        if self.dtype != np.float32:
            self._project_and(lambda Z: _cosine_full(Z, self._phases), X, out)
            return
        vectors, phases = self._vectors, self._phases
        # in float32 a phase of a hundred turns has lost the cosine's digits, so whole turns are
        # removed before
        vectors.each_part(
            self._rows(X),
            lambda rows, packed: _cosines(*packed, vectors.W, vectors.sums, phases, out[rows]),
        )

    def own_steps(self):
        waves = told.linear(self.arrays["frequencies"], self.arrays["phases"])
        return waves, told.Function("cos_turns"), told.scaled(_SQRT2, self.n_features)


def _polynomial(degree=7):
    """Coefficients c with sqrt2 cos(2 pi t) = sum c_k t^(2k) on |t| <= 1/2: the
    near-minimax fit at Chebyshev nodes.
    """
    nodes = (np.cos(np.pi * (np.arange(200) + 0.5) / 200) + 1) / 8  # t^2 in [0, 1/4]
    fit = np.polynomial.Chebyshev.fit(
        nodes, np.sqrt(2) * np.cos(2 * np.pi * np.sqrt(nodes)), degree, domain=[0, 0.25]
    )
    return tuple(np.float32(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = _polynomial()
_TWO_PI = 2 * math.pi
_SQRT2 = math.sqrt(2)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _cosines(values, inputs, counts, shifts, W, sums, phases, out):
    """out <- sqrt2 cos(2 pi (rows times W + phases)) of packed rows, with an error below 3e-6."""
    n, columns = out.shape
    totals = np.empty((4, BLOCK))
    for low in range(0, columns, BLOCK):
        high = min(low + BLOCK, columns)
        for g in range(len(counts)):
            rows = sum_group(g, n, values, inputs, counts, shifts, W, sums, low, high, totals)
            for r in range(rows):
                _cosine(totals[r], phases[low:high], out[4 * g + r, low:high])


@njit(cache=True, nogil=True, fastmath={"contract"})
def _cosine(turns, phases, out):
    """out <- sqrt2 cos(2 pi (turns + phases)) in float32."""
    for j in range(len(out)):
        t = turns[j] + phases[j]
        x = np.float32(t - np.rint(t))
        u = x * x
        out[j] = _C0 + u * (
            _C1 + u * (_C2 + u * (_C3 + u * (_C4 + u * (_C5 + u * (_C6 + u * _C7)))))
        )


@njit(cache=True, nogil=True)
def _cosine_full(Z, phases):
    """Z <- sqrt2 cos(2 pi (Z + phases)) in float64."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            t = Z[i, j] + phases[j]
            Z[i, j] = _SQRT2 * math.cos(_TWO_PI * (t - np.rint(t)))
