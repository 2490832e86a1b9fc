"""Features of the Hamming kernel: random signs of the codes of a random subset of the inputs.

An input is in the subset with probability 1 - exp(-gamma). The product of the signs of two rows is
1 where they agree on the subset, which has probability exp(-gamma)^(number of differences), and
otherwise 1 or -1 with equal probability.
"""

import numpy as np
import scipy.sparse as sp

from rfx import parallel
from rfx.compiled import njit
from rfx.counters import uniforms
from rfx.features.base import SeededMap, block_uniforms
from rfx.kernels.categories import Hamming
from rfx.model import Array
from rfx.parallel import cached

SUBSET, KEY = 0, 1
# Features whose signs are the bits of one hash value.
TOGETHER = 64
# Rows whose signs are computed together.
_ROWS = 256


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
        scales, n = self.arrays["scales"], X.shape[0]

        def part(first, last):
            for start in range(first * _ROWS, min(last * _ROWS, n), _ROWS):
                rows = X[start : start + _ROWS]
                codes = self._codes(rows.toarray() if sp.issparse(rows) else rows)
                words = np.empty((len(codes), len(keys)), np.uint64)
                _words(codes, keys, masks, words)
                _signs(words, of, bits, scales, out[start : start + len(codes)])

        work = 20 * n * self.n_inputs * len(keys) + 2 * out.size
        parallel.for_ranges(part, -(-n // _ROWS), work=work)

    def _codes(self, values) -> np.ndarray:
        """The rows in the map's type, in which codes are compared, with 0 for -0."""
        return np.ascontiguousarray(values, self.dtype).astype(np.float64) + 0.0


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
def _words(codes, keys, masks, words):
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
