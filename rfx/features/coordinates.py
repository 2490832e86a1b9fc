"""Features of single inputs: coordinates, k-mers of sequences, and codes of categories."""

from typing import NoReturn

import numpy as np
import scipy.sparse as sp

from rfx import parallel
from rfx import steps as told
from rfx.compiled import njit
from rfx.counters import uniforms
from rfx.data.rows import FILLED, WIDE
from rfx.errors import DataError, UsageError
from rfx.features.base import FeatureMap, MapArray, SeededMap, as_array, block_uniforms, each_part
from rfx.features.random import random_permutation
from rfx.kernels.distances import Hamming
from rfx.kernels.products import Kmers, Linear
from rfx.model import Array, check_within
from rfx.operators.blocks import ranges
from rfx.parallel import cached
from rfx.types import Inputs

# ----------------------------------------------------------------------
# Coordinates as random features: of the inputs themselves, and of positional k-mers of sequences.
#
# Each map selects among T indicator or input coordinates without replacement: feature j of a seed
# is the j-th coordinate of a random order of all T, and from j = T on of another order. phi(x) =
# sqrt(T) times the coordinate, so that the mean of phi(x) phi(y) estimates the inner product of all
# T, and equals it over T features (Sinha and Duchi 2016, section 4, use each once).

ORDER = 0
_VALUES = 2**22


class CoordinateMap(FeatureMap):
    """sqrt(T) times one of T coordinates of a row; a subclass defines `total`, their number, and
    `coordinates`.
    """

    parts = {"scales": Array("f", "features"), "columns": Array("i", "features", places="inputs")}
    width = 0
    scales = MapArray()
    columns = MapArray()

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        total = cls.total(n_inputs, params)
        scales = np.full(stop - start, np.sqrt(total))
        return {"scales": scales, "columns": random_order(total, start, stop, seed)}

    @classmethod
    def total(cls, n_inputs, params) -> int:
        """T, the number of different features."""
        raise TypeError(f"{cls.__name__} does not define total")

    def coordinates(self, X) -> Inputs:
        """The (n, T) coordinates of the rows of X, dense or CSR, from which the features are
        selected.
        """
        raise TypeError(f"{type(self).__name__} does not define coordinates")

    def compute(self, X, out):
        height = max(1, _VALUES // max(1, self.n_features))
        for rows in ranges(X.shape[0], height):
            part = self.coordinates(X[rows])[:, self.columns]
            np.multiply(as_array(part), self.scales, out=out[rows])

    def quick_adjoint(self, X, U):
        """(n_features, k) float64 sums over the rows of X of u_i phi(x_i), for U (n, k), without
        computing features.
        """
        sums = np.zeros((self.total(self.n_inputs, self.params), U.shape[1]))
        for rows in ranges(X.shape[0], max(1, _VALUES // X.shape[1])):
            part = self.coordinates(X[rows])
            if sp.issparse(part):
                sums += part.T @ U[rows]
            else:
                transposed = np.ascontiguousarray(part.T, dtype=np.float64)
                sums += parallel.matmul(transposed, U[rows])
        return self._scaled(sums[self.columns])

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        """Values (n_features, k) times the factors of the features, in float64."""
        return values * self.scales.astype(np.float64)[:, None]


class LinearMap(CoordinateMap):
    """linear: sqrt(d) x_m, estimates x.y. Sparse rows stay sparse unless the features are requested
    as an array.
    """

    kernels = (Linear(),)

    @classmethod
    def total(cls, n_inputs, params) -> int:
        return n_inputs

    def coordinates(self, X):
        return X

    def own_steps(self):
        return (told.Select(self.columns),)

    def sparse_features(self, X):
        if not sp.issparse(X) or X.shape[1] <= WIDE:
            return None
        found = X.tocsr()[:, self.columns].astype(self.dtype)
        if found.nnz >= FILLED * found.shape[0] * found.shape[1]:
            return None
        return found.multiply(self.scales).tocsr()

    def quick_decision(self, X, coef):
        """(n, k) float64 values of coef' phi(x) for CSR rows X, from the total coefficient of each
        input.
        """
        if not sp.issparse(X):
            return None
        weights = np.zeros((self.n_inputs, coef.shape[1]))
        np.add.at(weights, self.columns, self._scaled(coef))
        return X @ weights


class KmerMap(CoordinateMap):
    """kmers: indicator of word v at position p of the sequence, for every word of 1 to params["k"]
    letters and every position.

    Inputs are letter codes, one column per position (see rfx.data.libsvm);
    params["alphabet"] are the valid codes: with A letters, T = sum_k A^k (d - k + 1). The sum over
    all T of phi(x) phi(y) / T is the number of words of x that occur in y at the same position.
    """

    kernels = (Kmers(),)
    parts = CoordinateMap.parts | {"columns": Array("i", "features")}

    @property
    def longest(self) -> int:
        """The number of letters of the longest words."""
        return self.params["k"]

    @property
    def alphabet(self) -> list[int]:
        """The codes of the letters."""
        return self.params["alphabet"]

    def own_steps(self):
        raise UsageError(
            f"kernel {self.name} can't be exported: it reads sequences of letters, not numbers"
        )

    @classmethod
    def total(cls, n_inputs, params) -> int:
        return int(offsets(n_inputs, len(params["alphabet"]), params["k"])[-1])

    def coordinates(self, X):
        letters = self.letters(X)
        n_rows, places = letters.shape
        starts = offsets(places, len(self.alphabet), self.longest)
        total = int(starts[-1])
        width = sum(places - k + 1 for k in range(1, min(self.longest, places) + 1))
        words = np.empty((n_rows, width), np.int32 if total < 2**31 else np.int64)

        def part(start, stop):
            _words(letters[start:stop], len(self.alphabet), starts, words[start:stop])

        parallel.for_ranges(part, n_rows, smallest=64)
        kind = words.dtype if words.size < 2**31 else np.int64
        indptr = np.arange(0, words.size + 1, width, dtype=kind)
        ones = np.ones(words.size, self.dtype)
        return sp.csr_matrix((ones, words.ravel(), indptr), (n_rows, total))

    def check(self):
        if not all(isinstance(code, int) and 0 <= code < 256 for code in self.alphabet):
            raise DataError("its alphabet is not one of character codes")
        check_within("map_columns", self.columns, 0, self.total(self.n_inputs, self.params))

    def letters(self, X) -> np.ndarray:
        """(n, d) uint8 positions of the letters of X in the alphabet.

        Raises DataError with the row and position of a letter outside the alphabet."""
        X = as_array(X)
        codes = X.astype(np.int64)
        place_of_code = np.full(256, 255, np.uint8)
        place_of_code[np.asarray(self.alphabet, dtype=np.int64)] = np.arange(len(self.alphabet))
        is_code = (codes == X) & (codes >= 0) & (codes < 256)
        known = place_of_code[np.clip(codes, 0, 255)]
        places = np.where(is_code, known, 255).astype(np.uint8)
        if places.max(initial=0) == 255:
            row, column = np.argwhere(places == 255)[0]
            self._refuse(X[row, column], row, column)
        return places

    def _refuse(self, value: float, row: int, column: int) -> NoReturn:
        """Raise DataError for a number that is no letter of the alphabet."""
        if value == int(value) and 32 < value < 127:
            what = f"the letter {chr(int(value))!r}"
        else:
            what = f"{value:g}, which is not a letter's code,"
        letters = ", ".join(chr(code) for code in self.alphabet)
        raise DataError(
            f"row {row + 1} has {what} at place {column + 1}, but the letters are {letters};"
            " k-mers need --scaling none"
        )


def offsets(places: int, alphabet: int, k: int) -> np.ndarray:
    """(k + 1,) where the words of 1, 2, … k letters of a sequence of length `places` begin among
    all T, and T.
    """
    counts = []
    for size in range(1, k + 1):
        positions = max(0, places - size + 1)
        counts.append(alphabet**size * positions)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def random_order(size, start, stop, seed) -> np.ndarray:
    """Entries start .. stop-1 of consecutive random orders of range(size); int64."""
    turns = range(start // size, -(-stop // size))
    orders = [random_permutation(seed, ORDER, turn * size, (turn + 1) * size) for turn in turns]
    first = start % size
    return np.concatenate(orders)[first : first + stop - start].astype(np.int64)


@njit(cache=True, nogil=True)
def _words(letters, alphabet, starts, words):
    """words[i] <- the numbers of all words of row i: starts[k-1] + position * alphabet^k + the word
    as a number.
    """
    places = letters.shape[1]
    for i in range(letters.shape[0]):
        at = 0
        for k in range(1, min(len(starts) - 1, places) + 1):
            size = alphabet**k
            for p in range(places - k + 1):
                value = 0
                for t in range(p, p + k):
                    value = value * alphabet + letters[i, t]
                words[i, at] = starts[k - 1] + p * size + value
                at += 1


# ----------------------------------------------------------------------
# Features of the Hamming kernel: random signs of the codes of a random subset of the inputs.
#
# An input is in the subset with probability 1 - exp(-gamma). The product of the signs of two rows
# is 1 where they agree on the subset, which has probability exp(-gamma)^(number of differences),
# and otherwise 1 or -1 with equal probability.

SUBSET, KEY = 0, 1
# Features whose signs are the bits of one hash value.
TOGETHER = 64


class HammingMap(SeededMap):
    """prod_{m in S} s_m(x_m), with a subset S of the inputs and signs s_m of their codes.

    The signs of a code are bits of a hash of its float64 and of a random key of its input, for 64
    features at a time. A model holds the subsets, as bits, and the seed of the keys.
    """

    kernels = (Hamming(),)
    parts = {
        "scales": Array("f", "features"),
        "numbers": Array("i", "features"),
        "subsets": Array("u", "bytes features"),
    }
    scales = MapArray()
    subsets = MapArray()

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        share = -np.expm1(-params["gamma"])
        chosen = uniforms(seed, SUBSET, start, stop, n_inputs) < share
        subsets = np.packbits(chosen, axis=1, bitorder="little").T
        numbers = np.arange(start, stop)
        return {"scales": np.ones(len(numbers)), "numbers": numbers, "subsets": subsets}

    @cached
    def _plan(self) -> tuple:
        """(keys (blocks, d, 2), masks (blocks, d), block and bit of each feature (D,)): bit b of
        the mask of an input says whether feature b of the block has the input in its subset.
        """
        numbers = self.numbers.astype(np.int64)
        # a feature may be selected several times, but with the same subset
        blocks, of = np.unique(numbers // TOGETHER, return_inverse=True)
        bits = (numbers % TOGETHER).astype(np.uint64)
        d = self.n_inputs
        u = block_uniforms(self.seed, KEY, blocks, 2 * d)
        keys = (u * 2.0**53).astype(np.uint64).reshape(-1, d, 2)
        masks = np.zeros((len(blocks), d), np.uint64)
        for j, subset in enumerate(self.subsets.T):
            inside = np.unpackbits(np.ascontiguousarray(subset), count=d, bitorder="little")
            masks[of[j]] |= inside.astype(np.uint64) << bits[j]
        return keys, masks, of.astype(np.int64).ravel(), bits

    def compute(self, X, out):
        keys, masks, of, bits = self._plan

        def part(rows, some):
            # codes are compared in the map's type, with 0 for -0
            codes = np.ascontiguousarray(as_array(some), self.dtype).astype(np.float64) + 0.0
            words = np.empty((len(codes), len(keys)), np.uint64)
            _keyed_words(codes, keys, masks, words)
            _signs(words, of, bits, self.scales, out[rows])

        hashes = X.shape[0] * self.n_inputs * len(keys)
        each_part(X, self.n_features, part, 20 * hashes + 2 * out.size)


@njit(cache=True, nogil=True)
def _hash(bits, first, second):
    """A hash of the 64 bits of a number with two keys: twice the finaliser of SplitMix64 (Steele,
    Lea and Flood 2014).
    """
    h = bits + first
    for _ in range(2):
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h = (h ^ (h >> np.uint64(31))) + second
    return h ^ (h >> np.uint64(32))


@njit(cache=True, nogil=True)
def _keyed_words(codes, keys, masks, words):
    """words (n, blocks) <- the signs of all features of each block, as bits; codes: (n, d)."""
    n, d = codes.shape
    bits = codes.view(np.uint64)
    for i in range(n):
        for b in range(len(keys)):
            word = np.uint64(0)
            for k in range(d):
                mask = masks[b, k]
                if mask:
                    word ^= mask & _hash(bits[i, k], keys[b, k, 0], keys[b, k, 1])
            words[i, b] = word


@njit(cache=True, nogil=True)
def _signs(words, of, bits, scales, out):
    """out (n, D) <- scales times 1 where the feature's bit of its block's word is set, else -1."""
    for i in range(len(words)):
        for j in range(len(of)):
            word = words[i, of[j]]
            up = (word >> bits[j]) & np.uint64(1)
            out[i, j] = scales[j] if up else -scales[j]
