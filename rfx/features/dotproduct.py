"""Random features of dot-product kernels: products of signs, and TensorSketch."""

import math

import numpy as np

from rfx import steps as told
from rfx.compiled import njit
from rfx.errors import UsageError
from rfx.features.base import (
    FeatureMap,
    MapArray,
    SeededMap,
    Vectors,
    as_array,
    block_uniforms,
    each_part,
)
from rfx.features.random import uniform_numbers, uniforms
from rfx.kernels.products import Exponential, Polynomial
from rfx.model import Array
from rfx.parallel import cached

# ----------------------------------------------------------------------
# TensorSketch features of polynomial kernels (Pham and Pagh 2013).
#
# A count sketch adds each input, with a random sign, to one of 64 numbers. The sketch of the p-th
# power of (1, sqrt(gamma) x) is the circular convolution of p count sketches, so its Fourier
# transform is the product of theirs. The features are the real and imaginary parts of that product.
# Without the transform back, the inner products of a block of 64 features are those of one sketch,
# and each feature is unbiased. A block depends on (seed, block) alone.

PLACE = 0
# Numbers of a sketch, and rows that are transformed together.
SIZE, _TOGETHER = 64, 8
_LEVELS = SIZE.bit_length() - 1
_SQRT2 = math.sqrt(2)


class SketchMap(SeededMap):
    """polynomial-2, polynomial-3: sqrt2 Re and sqrt2 Im of prod_l F_k(C_l (1, sqrt(gamma) x)), with
    count sketches C_l and the frequency k of the discrete Fourier transform; without sqrt2 for the
    two real frequencies.

    A model holds the seed and the numbers of the features.
    """

    parts = {"scales": Array("f", "features"), "numbers": Array("i", "features")}
    scales = MapArray()

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        numbers = np.arange(start, stop)
        return {"scales": np.where(numbers % SIZE < 2, 1.0, _SQRT2), "numbers": numbers}

    @property
    def power(self) -> int:
        """p."""
        return int(self.name[-1])

    @property
    def root(self) -> float:
        """sqrt(gamma)."""
        return math.sqrt(self.params["gamma"])

    def _hashes(self, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(places, signs) of the constant and the inputs in the sketches of the blocks, each
        (blocks, p, d + 1).
        """
        shape = self.power, self.n_inputs + 1
        u = block_uniforms(self.seed, PLACE, blocks, math.prod(shape))
        numbers = (2 * SIZE * u).astype(np.int64).reshape(-1, *shape)
        return numbers // 2, np.where(numbers % 2, 1.0, -1.0)

    @cached
    def _plan(self) -> tuple:
        """(places, signs, starts, order, parts): the hashes of the blocks that are needed, where
        the features of each begin, and by blocks the feature and its number in the block.
        """
        blocks, starts, order = self._in_blocks(SIZE)
        parts = self.numbers[order].astype(np.int64) % SIZE
        return *self._hashes(blocks), starts, order, parts

    def compute(self, X, out):
        X = self._rows(X)
        n_rows, n_inputs = X.shape
        places, *rest = self._plan
        root = self.root
        scales = self.scales.astype(np.float64)

        def part(rows, some):
            own = as_array(some)
            _sketched(own, root, _TWIDDLES, _MIRRORED, scales, out[rows], places, *rest)

        n_sketches = len(places) * self.power
        work = n_sketches * (n_inputs + 6 * SIZE) * n_rows
        each_part(X, self.n_features, part, work)

    def own_steps(self):
        numbers = self.numbers.astype(np.int64)
        blocks, of = np.unique(numbers // SIZE, return_inverse=True)
        places, signs = self._hashes(blocks)
        # the two real frequencies 0 and SIZE / 2, then the real and imaginary parts of 1, 2, …
        part = numbers % SIZE
        frequency = np.where(part < 2, part * (SIZE // 2), part // 2)
        imaginary = (part % 2) * (part >= 2)
        factors = []
        for power in range(self.power):
            turns = places[of, power] * frequency[:, None] % SIZE / SIZE
            phases = np.exp(-2j * np.pi * turns)
            waves = signs[of, power] * phases
            both = np.vstack([waves.real, waves.imag]).T
            factors.append((told.linear(self.root * both[1:], both[0]),))
        count = len(numbers)
        chosen = told.Select(np.arange(count) + count * imaginary)
        return told.ComplexProduct(tuple(factors)), chosen


# (SIZE,) where the transform of `_transform` has each frequency: its bits in reverse order.
_BITS = [f"{k:0{_LEVELS}b}" for k in range(SIZE)]
_MIRRORED = np.array([int(bits[::-1], 2) for bits in _BITS])
# (SIZE / 2, 2) the real and imaginary parts of its roots of unity
_ROOTS = np.exp(-2j * np.pi * np.arange(SIZE // 2) / SIZE)
_TWIDDLES = _ROOTS.view(np.float64).reshape(-1, 2)


@njit(cache=True, nogil=True)
def _transform(re, im, twiddles):
    """re + i im (SIZE, _TOGETHER) <- its discrete Fourier transform, in bit-reversed order."""
    half = SIZE // 2
    while half:
        stride = SIZE // 2 // half
        for low in range(0, SIZE, 2 * half):
            for k in range(half):
                c = twiddles[k * stride, 0]
                s = twiddles[k * stride, 1]
                i = low + k
                j = low + k + half
                for r in range(_TOGETHER):
                    a = re[i, r] - re[j, r]
                    b = im[i, r] - im[j, r]
                    re[i, r] += re[j, r]
                    im[i, r] += im[j, r]
                    re[j, r] = a * c - b * s
                    im[j, r] = a * s + b * c
        half //= 2


@njit(cache=True, nogil=True)
def _sketched(X, root, twiddles, mirrored, scales, out, places, signs, starts, order, parts):
    """out <- the features of the rows of X, by the plan of a SketchMap."""
    n, d = X.shape
    x = np.empty((d + 1, _TOGETHER))
    re = np.empty((SIZE, _TOGETHER))
    im = np.empty((SIZE, _TOGETHER))
    product_re = np.empty((SIZE, _TOGETHER))
    product_im = np.empty((SIZE, _TOGETHER))
    for low in range(0, n, _TOGETHER):
        count = min(_TOGETHER, n - low)
        x[:] = 0.0
        x[0] = 1.0
        for r in range(count):
            for j in range(d):
                x[j + 1, r] = root * X[low + r, j]
        for block in range(len(places)):
            for power in range(places.shape[1]):
                re[:] = 0.0
                im[:] = 0.0
                for j in range(d + 1):
                    place = places[block, power, j]
                    sign = signs[block, power, j]
                    for r in range(_TOGETHER):
                        re[place, r] += sign * x[j, r]
                _transform(re, im, twiddles)
                if power == 0:
                    product_re[:] = re
                    product_im[:] = im
                else:
                    for k in range(SIZE):
                        for r in range(_TOGETHER):
                            a = product_re[k, r]
                            b = product_im[k, r]
                            product_re[k, r] = a * re[k, r] - b * im[k, r]
                            product_im[k, r] = a * im[k, r] + b * re[k, r]
            for k in range(starts[block], starts[block + 1]):
                part = parts[k]
                j = order[k]
                place = mirrored[part // 2 if part > 1 else part * (SIZE // 2)]
                is_imaginary = part > 1 and part % 2 == 1
                for r in range(count):
                    value = product_im[place, r] if is_imaginary else product_re[place, r]
                    out[low + r, j] = scales[j] * value


# ----------------------------------------------------------------------
# Random features of dot-product kernels: products of random signs with the row (Kar and Karnick
# 2012), and for the polynomial kernels TensorSketch (`rfx.features.dotproduct`).
#
# k(x, y) = sum_m a_m (x.y)^m with a_m >= 0: a feature draws m with probability a_m / f(1), f(1) =
# sum a_m, and is sqrt(f(1)) prod_{l <= m} s_l.x with vectors s_l of random signs, so that the mean
# of phi(x) phi(y) is the kernel. For rows much longer than 1 its variance is large.

ORDER, SIGN = 0, 1
# The exponential's series is truncated here: its remaining terms sum to less than 1e-9 of f(1) for
# gamma up to 2.
LAST = 16


class DotProductMap(FeatureMap):
    """polynomial-2, polynomial-3: (1 + gamma x.y)^p; exponential: exp(gamma x.y), gamma up to 2.

    By default those of the polynomial kernels are of a SketchMap.
    """

    kernels = (Polynomial(2), Polynomial(3), Exponential())
    parts = {
        "scales": Array("f", "features"),
        "orders": Array("i", "features"),
        "signs": Array("i", "terms inputs features"),
    }
    variants = {
        "sketch": "TensorSketch",
        "signs": "products of random signs",
    }
    forms = {"sketch": SketchMap}
    scales = MapArray()
    orders = MapArray()
    signs = MapArray()

    @classmethod
    def variants_of(cls, name):
        return cls.variants if name != "exponential" else {"signs": cls.variants["signs"]}

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        terms = coefficients(name, params["gamma"])
        most = len(terms) - 1
        shares = np.cumsum(terms) / terms.sum()
        points = uniform_numbers(seed, ORDER, start, stop)
        orders = np.minimum(np.searchsorted(shares, points, side="right"), most)
        is_negative = uniforms(seed, SIGN, start, stop, most * n_inputs) < 0.5
        signs = np.where(is_negative, -1, 1).astype(np.int8)
        signs = signs.reshape(stop - start, most, n_inputs).transpose(1, 2, 0)
        scales = np.full(stop - start, math.sqrt(terms.sum()))
        return {"scales": scales, "orders": orders.astype(np.int64), "signs": signs}

    @cached
    def _factors(self) -> list[tuple]:
        """(features of more than l terms, the number l of their vectors) for every l."""
        largest = int(self.orders.max(initial=0))
        factors = []
        for order, signs in enumerate(self.signs[:largest]):
            chosen = np.flatnonzero(self.orders > order)
            factors.append((chosen, Vectors(signs[:, chosen])))
        return factors

    def compute(self, X, out):
        rows = self._rows(X)
        out[:] = self.scales
        for chosen, vectors in self._factors:
            products = np.empty((len(out), len(chosen)), self.dtype)
            out[:, chosen] *= vectors.times(rows, products)

    def own_steps(self):
        factors: list[told.Steps] = []
        for number, signs in enumerate(self.signs):
            used = self.orders > number
            if factors and not used.any():
                break
            # a feature with fewer factors has 1 for each further one
            factor = told.linear(np.where(used, signs, 0.0), np.where(used, 0.0, 1.0))
            factors.append((factor,))
        return (told.Product(tuple(factors)),)


def coefficients(name: str, gamma: float) -> np.ndarray:
    """a_0, a_1, … of the kernel of that name; UsageError if the exponential is too steep for the
    series.
    """
    if name == "exponential":
        if gamma > 2:
            raise UsageError(
                f"--gamma is {gamma:g}; the random features of exp(gamma x.y) need gamma of 2 or"
                " less; scale the inputs"
            )
        orders = range(LAST + 1)
        return np.array([gamma**m / math.factorial(m) for m in orders])
    power = int(name[-1])
    orders = range(power + 1)
    return np.array([math.comb(power, m) * gamma**m for m in orders])
