"""Random Fourier features of shift-invariant kernels, and of the chi-square kernels."""

import itertools
import math
from typing import ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import gammaincinv, ndtr, ndtri

from rfx import steps as told
from rfx.compiled import njit
from rfx.errors import UsageError
from rfx.features import random
from rfx.features.base import (
    BLOCK,
    MAPS,
    FeatureMap,
    MapArray,
    SeededMap,
    as_array,
    block_uniforms,
    each_part,
    sum_group,
)
from rfx.features.coordinates import random_order
from rfx.features.random import (
    cauchy,
    lengths,
    normals,
    orthonormals,
    secants,
    sobol,
    uniform_numbers,
    uniforms,
)
from rfx.kernels import Kernel
from rfx.kernels.distances import (
    SCALES,
    AdditiveChi2,
    Gaussian,
    Laplacian,
    LaplacianL2,
    Matern3,
    Matern5,
    Multiscale,
    RationalQuadratic,
    SkewedChi2,
)
from rfx.model import Array
from rfx.parallel import cached
from rfx.types import KernelParams

# ----------------------------------------------------------------------
# Random Fourier features of shift-invariant kernels (Rahimi and Recht 2007; Yen et al. 2014,
# section 2.1).
#
# phi(x) = sqrt2 cos(w.x + b), or sqrt2 times the cosine and the sine of the same w.x. The
# frequencies w are independent, orthogonal in blocks (Yu et al. 2016), or from the points of a
# Sobol sequence (Avron et al. 2016). Frequencies and phases are stored in turns (divided by 2 pi),
# so that range reduction is one subtraction and the cosine one short polynomial.

_TWO_PI = 2 * math.pi
FREQUENCY = 0
PHASE = 1
SHARED = 2
LENGTH = 3


class Independent:
    """The random numbers of the frequencies start..stop-1: independent ones.

    n_shared: numbers of a frequency that all its inputs share.
    """

    def __init__(self, seed: int, start: int, stop: int, n_inputs: int, n_shared: int):
        self.seed = seed
        self.start = start
        self.stop = stop
        self.n_inputs = n_inputs
        self.n_shared = n_shared

    def normals(self) -> np.ndarray:
        """(count, n_inputs) standard normal numbers."""
        return ndtri(self.uniforms())

    def uniforms(self) -> np.ndarray:
        """(count, n_inputs) uniform numbers."""
        return uniforms(self.seed, FREQUENCY, self.start, self.stop, self.n_inputs)

    def shared(self) -> np.ndarray:
        """(count, n_shared) standard normal numbers."""
        return normals(self.seed, SHARED, self.start, self.stop, self.n_shared)


class Orthogonal(Independent):
    """Directions that are orthogonal in blocks, with the lengths of independent ones."""

    def normals(self) -> np.ndarray:
        directions = orthonormals(self.seed, FREQUENCY, self.start, self.stop, self.n_inputs)
        return directions * lengths(self.seed, LENGTH, self.start, self.stop, self.n_inputs)


class Quasi(Independent):
    """The points of a scrambled Sobol sequence, by the inverse distributions."""

    @cached
    def _points(self) -> np.ndarray:
        return sobol(self.seed, FREQUENCY, self.start, self.stop, self.n_inputs + self.n_shared)

    def uniforms(self) -> np.ndarray:
        return self._points[:, : self.n_inputs]

    def shared(self) -> np.ndarray:
        return ndtri(self._points[:, self.n_inputs :])


class Radii(Independent):
    """The lengths alone, of directions in n_inputs dimensions."""

    def normals(self) -> np.ndarray:
        return lengths(self.seed, LENGTH, self.start, self.stop, self.n_inputs)


DRAWS = {"offset": Independent, "pairs": Independent, "orthogonal": Orthogonal, "quasi": Quasi}
# for kernels of ||x - y||_2 alone: the frequencies of laplacian have no lengths apart
ISOTROPIC = ("orthogonal", "hadamard")


class FourierMap(FeatureMap):
    """gaussian exp(-gamma ||.||_2^2): w ~ N(0, 2 gamma I); laplacian exp(-gamma ||.||_1): w_j ~
    Cauchy(0, gamma);

    laplacian-l2 exp(-gamma ||.||_2): w ~ gamma N(0, I)/|N(0, 1)|, with one denominator per feature
    (docs/papers.md). b ~ U[0, 2 pi]; in the other variants, features 2k and 2k+1 are the cosine and
    the sine of the same w.
    """

    kernels: ClassVar[tuple[Kernel, ...]] = (Gaussian(), Laplacian(), LaplacianL2())
    parts = {"frequencies": Array("f", "inputs features"), "phases": Array("f", "features")}
    phases = MapArray()
    amplitude = math.sqrt(2)
    variants = {
        "offset": "sqrt2 cos(w.x + b)",
        "pairs": "cos and sin of the same w",
        "orthogonal": "pairs, w orthogonal in blocks",
        "quasi": "pairs, w from a scrambled Sobol sequence",
        "hadamard": "pairs, w orthogonal in blocks that are not stored, with fast products",
    }

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        draws = DRAWS[variant]
        n_shared = cls.n_shared(name)
        if variant == "offset":
            w = cls.drawn(name, draws(seed, start, stop, n_inputs, n_shared), params)
            phases = uniform_numbers(seed, PHASE, start, stop)
        else:
            first, last = pairs_of(start, stop)
            w = cls.drawn(name, draws(seed, first, last, n_inputs, n_shared), params)
            w = np.repeat(w, 2, axis=0)[start - 2 * first : stop - 2 * first]
            phases = quarter_turns(start, stop)
        return {"frequencies": w.T / (2 * np.pi), "phases": phases}

    @classmethod
    def n_shared(cls, name: str) -> int:
        """Numbers of a frequency that all its inputs share."""
        return 1 if name == "laplacian-l2" else 0

    @classmethod
    def drawn(cls, name: str, draws: Independent, params: KernelParams) -> np.ndarray:
        """(count, n_inputs) draws of w, from all parameters of the kernel."""
        return cls.frequencies(name, draws, params["gamma"])

    @classmethod
    def frequencies(cls, name: str, draws: Independent, gamma: float) -> np.ndarray:
        """(count, n_inputs) draws of w."""
        if name == "laplacian":
            return gamma * cauchy(draws.uniforms())
        if name == "gaussian":
            return math.sqrt(2 * gamma) * draws.normals()
        return gamma / np.abs(draws.shared()) * draws.normals()

    @classmethod
    def variants_of(cls, name):
        if name != "laplacian":
            return cls.variants
        return {key: words for key, words in cls.variants.items() if key not in ISOTROPIC}

    @classmethod
    def check_variant(cls, name, n_features, variant):
        super().check_variant(name, n_features, variant)
        if variant != "offset" and n_features % 2:
            raise UsageError(
                f"--n-features is {n_features}, but --features {variant} needs an even number"
            )

    @cached
    def _phases(self):
        return self.phases.astype(np.float64)

    def compute(self, X, out):
        if self.dtype != np.float32:
            self._project(X, out, lambda Z: _cosine_full(Z, self._phases))
            return
        # in float32 a phase of a hundred turns has lost the cosine's digits, so whole turns are
        # removed before
        self._vectors.compute(self._rows(X), out, _cosines, self._phases)

    def own_steps(self):
        waves = told.linear(self.turns_of_inputs(), self.phases)
        return waves, told.Function("cos_turns"), told.scaled(_SQRT2, self.n_features)

    def turns_of_inputs(self) -> np.ndarray:
        """(n_inputs, n_features) frequencies in turns."""
        return self.arrays["frequencies"]


def pairs_of(start: int, stop: int) -> tuple[int, int]:
    """(first, last) pairs, of a cosine and a sine, that the features start .. stop-1 are in."""
    return start // 2, -(-stop // 2)


def quarter_turns(start: int, stop: int) -> np.ndarray:
    """The phases of pairs: sin(t) is cos(t) a quarter turn later."""
    is_sine = np.arange(start, stop) % 2
    return np.where(is_sine, -0.25, 0.0)


class HadamardMap(SeededMap, FourierMap):
    """Cosines and sines of w.x with structured w (Yu et al. 2016): those of a block are the rows of
    an orthogonal matrix times lengths like those of independent ones.

    A model holds the seed, and two numbers of each feature: its frequency and its length in turns.
    """

    parts = {
        "phases": Array("f", "features"),
        "lengths": Array("f", "features"),
        "numbers": Array("i", "features"),
    }
    lengths = MapArray()

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        kind = MAPS[name]
        first, last = pairs_of(start, stop)
        draws = Radii(seed, first, last, random.padded(n_inputs), kind.n_shared(name))
        radii = kind.drawn(name, draws, params)[:, 0]
        numbers = np.arange(start, stop) // 2
        lengths = radii[numbers - first] / (2 * np.pi)
        return {"phases": quarter_turns(start, stop), "lengths": lengths, "numbers": numbers}

    @property
    def size(self) -> int:
        """Directions of a block."""
        return random.padded(self.n_inputs)

    @cached
    def _plan(self) -> tuple[np.ndarray, ...]:
        """What `_structured` takes: signs of the blocks that are needed, where the features of each
        begin, and by blocks the feature, its direction in the block and its length.
        """
        blocks, starts, order = self._in_blocks(self.size)
        u = block_uniforms(self.seed, FREQUENCY, blocks, 3 * self.size)
        signs = np.where(u < 0.5, -1.0, 1.0).reshape(-1, 3, self.size)
        lengths = self.lengths[order].astype(np.float64)
        scales = lengths * self.size**-1.5
        places = self.numbers[order].astype(np.int64) % self.size
        return signs, starts, order, places, scales, self._phases[order]

    def compute(self, X, out):
        X = self._rows(X)
        size = self.size
        signs, *rest = self._plan
        single = self.dtype == np.float32

        def part(rows, some):
            _structured(as_array(some), size, single, out[rows], signs, *rest)

        additions = 4 * size * math.log2(2 * size)
        work = len(signs) * additions * X.shape[0] + 8 * out.size
        each_part(X, self.n_features, part, work)

    def turns_of_inputs(self):
        signs, starts, order, places, scales, _ = self._plan
        w = np.zeros((self.n_inputs, self.n_features))
        H = scipy.linalg.hadamard(self.size)
        for block, (first, last) in enumerate(itertools.pairwise(starts)):
            left, middle, right = H * signs[block, :, None]
            directions = left @ middle @ right
            features = order[first:last]
            rows = directions[places[first:last], : self.n_inputs]
            w[:, features] = (scales[first:last, None] * rows).T
        return w.astype(self.dtype)


FourierMap.forms = {"hadamard": HadamardMap}


@njit(cache=True, nogil=True, fastmath={"contract"})
def _structured(X, size, single, out, signs, starts, order, places, scales, phases):
    """out <- sqrt2 cos(2 pi (turns + phases)) of the rows of X, by the plan of a HadamardMap."""
    n, n_inputs = X.shape
    rows = np.empty((n_inputs, random.TOGETHER))
    t = np.empty((size, random.TOGETHER))
    turns = np.empty(BLOCK)
    waves = np.empty(BLOCK, np.float32)
    for low in range(0, n, random.TOGETHER):
        count = min(random.TOGETHER, n - low)
        rows[:] = 0.0
        for r in range(count):
            for j in range(n_inputs):
                rows[j, r] = X[low + r, j]
        for block in range(len(signs)):
            random.directions(rows, signs[block], t)
            for first in range(starts[block], starts[block + 1], BLOCK):
                last = min(first + BLOCK, starts[block + 1])
                width = last - first
                for r in range(count):
                    row = out[low + r]
                    for k in range(first, last):
                        turns[k - first] = scales[k] * t[places[k], r]
                    if single:
                        _cosine(turns[:width], phases[first:last], waves[:width])
                        for k in range(first, last):
                            row[order[k]] = waves[k - first]
                    else:
                        for k in range(first, last):
                            s = turns[k - first] + phases[k]
                            row[order[k]] = _SQRT2 * math.cos(_TWO_PI * (s - np.rint(s)))


def _polynomial(degree=7):
    """Coefficients c with sqrt2 cos(2 pi t) = sum c_k t^(2k) on |t| <= 1/2: the
    near-minimax fit at Chebyshev nodes.
    """
    angles = np.pi * (np.arange(200) + 0.5) / 200
    squares = (np.cos(angles) + 1) / 8  # t^2 in [0, 1/4]
    cosines = np.sqrt(2) * np.cos(2 * np.pi * np.sqrt(squares))
    fit = np.polynomial.Chebyshev.fit(squares, cosines, degree, domain=[0, 0.25])
    powers = fit.convert(kind=np.polynomial.Polynomial)
    return tuple(np.float32(c) for c in powers.coef)


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = _polynomial()
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


# ----------------------------------------------------------------------
# Fourier features of mixtures of Gaussian kernels: a random bandwidth for each frequency.
#
# The rational quadratic kernel is the mean of exp(-gamma t ||x - y||^2) over t from the gamma
# distribution with shape and rate alpha (Rasmussen and Williams 2006, equation 4.20), `multiscale`
# that over a few values of t.


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
            places = (u * len(SCALES)).astype(int)
            t = np.array(SCALES)[np.minimum(places, len(SCALES) - 1)]
        else:
            alpha = params["rq_alpha"]
            t = gammaincinv(alpha, u) / alpha
        return np.sqrt(2 * params["gamma"] * t) * draws.normals()


# ----------------------------------------------------------------------
# Fourier features of the Matern kernels of smoothness 3/2 and 5/2, mentioned by Dai et al. (2014,
# section 2).
#
# Their spectral density is a multivariate t distribution with 2 nu degrees of freedom (Rasmussen
# and Williams 2006, equation 4.15): w = gamma sqrt(2 nu / u) N(0, I) with u from chi-squared with 2
# nu degrees. Smoothness 1/2 is laplacian-l2.

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


# ----------------------------------------------------------------------
# Fourier features of the chi-square kernels: waves of the logarithms of the inputs.
#
# sech(t / 2) is the mean of cos(w t) over w with the density sech(pi w) (Vedaldi and Zisserman
# 2012, table 1), so 2 x y / (x + y) is sqrt(x y) times the mean of cos(w (log x - log y)).

# `random_order` draws from stream 0.
SHIFT, SHIFT_PHASE = 1, 2


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
    frequencies = MapArray()
    phases = MapArray()
    scales = MapArray()
    columns = MapArray()

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        first, last = pairs_of(start, stop)
        columns = random_order(n_inputs, first, last, seed)
        shifts = uniform_numbers(seed, SHIFT, 0, n_inputs)
        rounds = np.arange(first, last) // n_inputs
        w = secants((_radical_inverse(rounds) + shifts[columns]) % 1.0)
        phases = uniform_numbers(seed, SHIFT_PHASE, first, last)
        pairs = np.arange(start, stop) // 2 - first
        return {
            "frequencies": w[pairs] / _TWO_PI,
            "phases": phases[pairs] + quarter_turns(start, stop),
            "scales": np.full(len(pairs), math.sqrt(2 * n_inputs)),
            "columns": columns[pairs],
        }

    def compute(self, X, out):
        self.kernels[0].check(X, self.params)
        columns = self.columns.astype(np.int64)

        def part(rows, some):
            own = as_array(some).astype(np.float64)
            _waves(own, columns, self.frequencies, self.phases, self.scales, out[rows])

        each_part(X, self.n_inputs + self.n_features, part, 20 * out.size)

    def own_steps(self):
        inputs = told.Select(self.columns)
        turns = self.frequencies.astype(np.float64)
        phases = self.phases.astype(np.float64)
        logarithms = inputs, told.Function("log_positive")
        cosines = *logarithms, told.Scale(-phases / turns, turns), told.Function("cos_turns")
        roots = inputs, told.Function("sqrt")
        return (told.Product((cosines, roots)),)


class SkewedChi2Map(FourierMap):
    """sqrt2 cos(w.z + b) of z_j = log(1 + x_j / c), w_j with the density sech(pi w)."""

    kernels = (SkewedChi2(),)
    variants = {name: FourierMap.variants[name] for name in ("offset", "pairs", "quasi")}

    @classmethod
    def drawn(cls, name, draws, params):
        return secants(draws.uniforms())

    @property
    def skewedness(self) -> float:
        """c."""
        return self.params["skewedness"]

    def _rows(self, X):
        self.kernels[0].check(X, self.params)
        Z = X.astype(np.float64)
        values = Z.data if sp.issparse(Z) else Z
        values /= self.skewedness
        np.log1p(values, out=values)
        return super()._rows(Z)

    def own_steps(self):
        centre = np.full(self.n_inputs, -self.skewedness)
        factor = np.full(self.n_inputs, 1 / self.skewedness)
        logarithms = told.Scale(centre, factor), told.Function("log_positive")
        return *logarithms, *super().own_steps()


def _radical_inverse(numbers: np.ndarray) -> np.ndarray:
    """The van der Corput sequence at these places: their bits, mirrored at the binary point."""
    found = np.zeros(len(numbers))
    bits = numbers.copy()
    unit = 0.5
    while bits.any():
        found += unit * (bits % 2)
        bits //= 2
        unit /= 2
    return found


@njit(cache=True, nogil=True)
def _waves(X, columns, frequencies, phases, scales, out):
    """out <- scales sqrt(x) cos(2 pi (frequencies log x + phases)) of the inputs x in columns."""
    n_inputs = X.shape[1]
    logarithms = np.zeros(n_inputs)
    roots = np.zeros(n_inputs)
    for i in range(len(X)):
        for k in range(n_inputs):
            x = X[i, k]
            roots[k] = math.sqrt(x)
            logarithms[k] = math.log(x) if x > 0 else 0.0
        for j in range(len(columns)):
            k = columns[j]
            if roots[k] > 0:
                t = frequencies[j] * logarithms[k] + phases[j]
                wave = math.cos(_TWO_PI * (t - np.rint(t)))
                out[i, j] = scales[j] * roots[k] * wave
            else:
                out[i, j] = 0
