"""Features of single inputs: coordinates, k-mers of sequences, and codes of categories."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import parallel
from rfx import steps as told
from rfx.compiled import njit
from rfx.counters import uniforms
from rfx.data.rows import FILLED, WIDE
from rfx.errors import DataError, UsageError
from rfx.features.base import FeatureMap, SeededMap, as_array, block_uniforms, each_part
from rfx.kernels.distances import Hamming
from rfx.kernels.products import Kmers, Linear
from rfx.model import Array, check_within
from rfx.operators.blocks import ranges
from rfx.parallel import cached

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

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        total = cls.total(n_inputs, params)
        return {
            "scales": np.full(stop - start, np.sqrt(total)),
            "columns": random_order(total, start, stop, seed),
        }

    @classmethod
    def total(cls, n_inputs, params) -> int:
        """T, the number of different features."""
        raise TypeError(f"{cls.__name__} does not define total")

    def coordinates(self, X) -> Any:
        """The (n, T) coordinates of the rows of X, dense or CSR, from which the features are
        selected.
        """
        raise TypeError(f"{type(self).__name__} does not define coordinates")

    def compute(self, X, out):
        columns, scales = self.arrays["columns"], self.arrays["scales"]
        for rows in ranges(X.shape[0], max(1, _VALUES // max(1, self.n_features))):
            part = self.coordinates(X[rows])[:, columns]
            np.multiply(as_array(part), scales, out=out[rows])

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
                sums += parallel.matmul(np.ascontiguousarray(part.T, dtype=np.float64), U[rows])
        return sums[self.arrays["columns"]] * self.arrays["scales"].astype(np.float64)[:, None]


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
        return (told.Select(self.arrays["columns"]),)

    def sparse_features(self, X):
        if not sp.issparse(X) or X.shape[1] <= WIDE:
            return None
        found = X.tocsr()[:, self.arrays["columns"]].astype(self.dtype)
        return (
            found.multiply(self.arrays["scales"]).tocsr()
            if found.nnz < FILLED * found.shape[0] * found.shape[1]
            else None
        )

    def quick_decision(self, X, coef):
        """(n, k) float64 values of coef' phi(x) for CSR rows X, from the total coefficient of each
        input.
        """
        if not sp.issparse(X):
            return None
        weights = np.zeros((self.n_inputs, coef.shape[1]))
        np.add.at(
            weights,
            self.arrays["columns"],
            coef * self.arrays["scales"].astype(np.float64)[:, None],
        )
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
        alphabet, longest = len(self.params["alphabet"]), min(self.params["k"], places)
        starts = offsets(places, alphabet, self.params["k"])
        width = sum(places - k + 1 for k in range(1, longest + 1))
        words = np.empty((n_rows, width), np.int32 if starts[-1] < 2**31 else np.int64)
        parallel.for_ranges(
            lambda start, stop: _words(letters[start:stop], alphabet, starts, words[start:stop]),
            n_rows,
            smallest=64,
        )
        indptr = np.arange(
            0, words.size + 1, width, dtype=words.dtype if words.size < 2**31 else np.int64
        )
        ones = np.ones(words.size, self.dtype)
        return sp.csr_matrix((ones, words.ravel(), indptr), (n_rows, int(starts[-1])))

    def check(self):
        if not all(isinstance(code, int) and 0 <= code < 256 for code in self.params["alphabet"]):
            raise DataError("its alphabet is not one of character codes")
        check_within(
            "map_columns", self.arrays["columns"], 0, self.total(self.n_inputs, self.params)
        )

    def letters(self, X) -> np.ndarray:
        """(n, d) uint8 positions of the letters of X in the alphabet.

        Raises DataError with the row and position of a letter outside the alphabet."""
        X = as_array(X)
        codes = X.astype(np.int64)
        table = np.full(256, 255, np.uint8)
        table[np.asarray(self.params["alphabet"], dtype=np.int64)] = np.arange(
            len(self.params["alphabet"])
        )
        places = np.where(
            (codes == X) & (codes >= 0) & (codes < 256), table[np.clip(codes, 0, 255)], 255
        ).astype(np.uint8)
        if places.max(initial=0) == 255:
            row, column = np.argwhere(places == 255)[0]
            value = X[row, column]
            what = (
                f"the letter {chr(int(value))!r}"
                if value == int(value) and 32 < value < 127
                else f"{value:g}, which is not a letter's code,"
            )
            known = ", ".join(chr(code) for code in self.params["alphabet"])
            raise DataError(
                f"row {row + 1} has {what} at place {column + 1}, but the letters are {known};"
                " k-mers need --scaling none"
            )
        return places


def offsets(places: int, alphabet: int, k: int) -> np.ndarray:
    """(k + 1,) where the words of 1, 2, … k letters of a sequence of length `places` begin among
    all T, and T.
    """
    counts = [alphabet**size * max(0, places - size + 1) for size in range(1, k + 1)]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def random_order(size, start, stop, seed) -> np.ndarray:
    """Entries start .. stop-1 of consecutive random orders of range(size); int64."""
    turns = range(start // size, -(-stop // size))
    rounds = [
        np.argsort(uniforms(seed, ORDER, turn * size, (turn + 1) * size, 1)[:, 0], kind="stable")
        for turn in turns
    ]
    first = start - start // size * size
    return np.concatenate(rounds)[first : first + stop - start].astype(np.int64)


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

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        share = -np.expm1(-params["gamma"])
        subsets = uniforms(seed, SUBSET, start, stop, n_inputs) < share
        return {
            "scales": np.ones(stop - start),
            "numbers": np.arange(start, stop),
            "subsets": np.packbits(subsets, axis=1, bitorder="little").T,
        }

    @cached
    def _plan(self) -> tuple:
        """(keys (blocks, d, 2), masks (blocks, d), block and bit of each feature (D,)): bit b of
        the mask of an input says whether feature b of the block has the input in its subset.
        """
        numbers = self.arrays["numbers"].astype(np.int64)
        # a feature may be selected several times, but with the same subset
        blocks, of = np.unique(numbers // TOGETHER, return_inverse=True)
        bits = (numbers % TOGETHER).astype(np.uint64)
        d = self.n_inputs
        u = block_uniforms(self.params["seed"], KEY, blocks, 2 * d)
        keys = (u * 2.0**53).astype(np.uint64).reshape(-1, d, 2)
        masks = np.zeros((len(blocks), d), np.uint64)
        for j, subset in enumerate(self.arrays["subsets"].T):
            inside = np.unpackbits(np.ascontiguousarray(subset), count=d, bitorder="little")
            masks[of[j]] |= inside.astype(np.uint64) << bits[j]
        return keys, masks, of.astype(np.int64).ravel(), bits

    def compute(self, X, out):
        keys, masks, of, bits = self._plan
        scales = self.arrays["scales"]

        def part(rows, some):
            # codes are compared in the map's type, with 0 for -0
            codes = np.ascontiguousarray(as_array(some), self.dtype).astype(np.float64) + 0.0
            words = np.empty((len(codes), len(keys)), np.uint64)
            _keyed_words(codes, keys, masks, words)
            _signs(words, of, bits, scales, out[rows])

        work = 20 * X.shape[0] * self.n_inputs * len(keys) + 2 * out.size
        each_part(X, self.n_features, part, work)


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
                if masks[b, k]:
                    word ^= masks[b, k] & _hash(bits[i, k], keys[b, k, 0], keys[b, k, 1])
            words[i, b] = word


@njit(cache=True, nogil=True)
def _signs(words, of, bits, scales, out):
    """out (n, D) <- scales times 1 where the feature's bit of its block's word is set, else -1."""
    for i in range(len(words)):
        for j in range(len(of)):
            up = (words[i, of[j]] >> bits[j]) & np.uint64(1)
            out[i, j] = scales[j] if up else -scales[j]
