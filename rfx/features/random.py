"""Random numbers of feature maps, and random orthogonal directions."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv, ndtri

from rfx import lazy
from rfx.compiled import njit
from rfx.counters import uniforms

# ----------------------------------------------------------------------
# Random numbers of feature maps: item j of a stream depends only on (seed, stream, j) (see
# rfx.counters).

# Multiplications that make a block of directions orthogonal, at most, and blocks that are kept.
_WORK = 1 << 30
_KEPT = 4
# Bits of scipy's Sobol sequence.
_BITS = 32


def normals(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """Standard normal numbers for items start..stop-1, (stop-start, width) float64, by the
    inverse distribution.
    """
    found = uniforms(seed, stream, start, stop, width)
    return ndtri(found, out=found)


def uniform_numbers(seed: int, stream: int, start: int, stop: int) -> np.ndarray:
    """(stop-start,) uniform numbers, one for each of the items start..stop-1."""
    return uniforms(seed, stream, start, stop, 1)[:, 0]


def random_permutation(seed: int, stream: int, start: int, stop: int) -> np.ndarray:
    """The numbers 0 .. stop-start-1 in a random order, that of the items' uniform numbers."""
    return np.argsort(uniform_numbers(seed, stream, start, stop), kind="stable")


def cauchy(u: np.ndarray) -> np.ndarray:
    """Uniform numbers as standard Cauchy ones, by the inverse distribution."""
    return np.tan(np.pi * (u - 0.5))


def secants(u: np.ndarray) -> np.ndarray:
    """Uniform numbers as numbers with the density sech(pi w), by the inverse distribution."""
    u = np.clip(u, 2.0**-54, 1 - 2.0**-53)
    return np.log(np.tan(np.pi / 2 * u)) / np.pi


def orthonormals(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """Uniform directions for items start..stop-1, (stop-start, width) float64 of length 1.

    Those of a block of `together(width)` items are orthogonal to each other.
    """
    size = together(width)
    out = np.empty((stop - start, width))
    for block in range(start // size, -(-stop // size)):
        first = block * size
        low = max(start, first)
        high = min(stop, first + size)
        # a direction depends on those before it in the block, not on those after it
        made = _block(seed, stream, first, high - first, width)
        out[low - start : high - start] = made[low - first :]
    return out


def together(width: int) -> int:
    """How many directions of that many inputs are orthogonal to each other.

    All inputs' worth of them, or as many as bounded work makes orthogonal: directions of very many
    inputs are nearly orthogonal anyway.
    """
    return max(1, min(width, math.isqrt(_WORK // max(1, width))))


@lru_cache(maxsize=_KEPT)
def _block(seed: int, stream: int, first: int, count: int, width: int) -> np.ndarray:
    columns = np.ascontiguousarray(normals(seed, stream, first, first + count, width).T)
    _orthogonalise(columns)
    return columns.T


@njit(cache=True, nogil=True)
def _orthogonalise(A):
    """The columns of A (width, count) orthonormal, by Gram and Schmidt's modified steps.

    A pass over A subtracts column k from the later ones and makes the products of column k + 1 with
    them. Every sum has a fixed order, so that the bits are the same on any machine.
    """
    width, count = A.shape
    shares = np.zeros(count)
    products = np.zeros(count)
    squares = np.empty(count)
    for i in range(width):
        a = A[i, 0]
        row = A[i]
        for j in range(count):
            products[j] += a * row[j]
    squares[0] = products[0]
    for k in range(count - 1):
        for j in range(k + 1, count):
            shares[j] = products[j] / squares[k]
            products[j] = 0.0
        for i in range(width):
            a = A[i, k]
            row = A[i]
            for j in range(k + 1, count):
                row[j] -= a * shares[j]
            a = row[k + 1]
            for j in range(k + 1, count):
                products[j] += a * row[j]
        squares[k + 1] = products[k + 1]
    scales = 1.0 / np.sqrt(squares)
    for i in range(width):
        for j in range(count):
            A[i, j] *= scales[j]


def lengths(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """The lengths of vectors of `width` standard normal numbers for items start..stop-1,
    (stop-start, 1) float64, by the inverse distribution.
    """
    u = uniforms(seed, stream, start, stop, 1)
    return np.sqrt(2 * gammaincinv(width / 2, u))


def sobol(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """The points start..stop-1 of a scrambled Sobol sequence in (0, 1), (stop-start, width)
    float64.

    Scrambling is by a random lower triangular binary matrix and a random shift for each dimension
    (Matousek 1998). scipy raises ValueError for more than 21201 dimensions.
    """
    engine = lazy.qmc.Sobol(width, scramble=False, bits=_BITS)
    # scipy warns where the first points that it is asked for are no power of two
    first = engine.random(1)
    if start > 1:
        engine.fast_forward(start - 1)
    found = engine.random(stop - max(1, start))
    points = np.concatenate([first[start:], found]) if start == 0 else found
    points = (points * 2.0**_BITS).astype(np.uint32)
    scrambling = uniforms(seed, stream, 0, width, _BITS + 1)
    words = (scrambling * 2.0**_BITS).astype(np.uint32)
    _scramble(points, np.ascontiguousarray(words.T))
    # moved by half a step so that neither 0 nor 1 occurs
    return (points + 0.5) * 2.0**-_BITS


@njit(cache=True, nogil=True)
def _scramble(points, words):
    """points (n, width) <- their bits times a lower triangular matrix, plus a shift; words
    (33, width): a column of the matrix for each bit, of which the bits below it count, and the
    shift.
    """
    n, width = points.shape
    for i in range(n):
        for j in range(width):
            x = points[i, j]
            y = words[32, j]
            for bit in range(32):
                if (x >> np.uint32(31 - bit)) & np.uint32(1):
                    own = np.uint32(1) << np.uint32(31 - bit)
                    y ^= own | (words[bit, j] & (own - np.uint32(1)))
            points[i, j] = y


# ----------------------------------------------------------------------
# Products with structured orthogonal matrices: three rounds of random signs and a Walsh-Hadamard
# transform (Yu et al. 2016, section 4).
#
# Block b of p directions, p a power of two, is the matrix (H D1 H D2 H D3) / p^(3/2), which is
# orthogonal: H has entries +-1, D1 to D3 are diagonal matrices of signs that depend on (seed, b)
# alone. Rows of fewer than p inputs are padded with zeros. A product takes O(p log p) additions for
# p directions.
#
# A block of few directions is one of few matrices, and the mean over them is not the kernel: with p
# = 4 and 3 inputs it is off by 0.2, with p = 64 by less than 0.001. So p is at least 64.

# Rows that are transformed together.
TOGETHER = 8
# Directions of a block, at least.
LEAST = 64


def padded(n_inputs: int) -> int:
    """The size of a block: the next power of two, at least LEAST."""
    return max(LEAST, 1 << max(0, n_inputs - 1).bit_length())


@njit(cache=True, nogil=True)
def transform(t):
    """t (p, TOGETHER) <- H t, H the Walsh-Hadamard matrix; two levels a pass."""
    size = len(t)
    h, levels = 1, 0
    while 1 << levels < size:
        levels += 1
    if levels % 2:
        for i in range(0, size, 2):
            for r in range(TOGETHER):
                a, b = t[i, r], t[i + 1, r]
                t[i, r], t[i + 1, r] = a + b, a - b
        h = 2
    while h < size:
        for i in range(0, size, 4 * h):
            for j in range(i, i + h):
                for r in range(TOGETHER):
                    a, b, c, d = t[j, r], t[j + h, r], t[j + 2 * h, r], t[j + 3 * h, r]
                    ab, ba, cd, dc = a + b, a - b, c + d, c - d
                    t[j, r], t[j + h, r] = ab + cd, ba + dc
                    t[j + 2 * h, r], t[j + 3 * h, r] = ab - cd, ba - dc
        h *= 4


@njit(cache=True, nogil=True)
def directions(rows, signs, t):
    """t (p, TOGETHER) <- p^(3/2) times the products of rows (n_inputs, TOGETHER) with a block's
    directions; signs: (3, p).
    """
    n_inputs = len(rows)
    for j in range(n_inputs):
        for r in range(TOGETHER):
            t[j, r] = signs[2, j] * rows[j, r]
    t[n_inputs:] = 0.0
    transform(t)
    for k in (1, 0):
        for j in range(len(t)):
            for r in range(TOGETHER):
                t[j, r] *= signs[k, j]
        transform(t)
