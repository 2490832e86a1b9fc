"""Two-valued columns, such as one-hot categories, as bits: the distance of two rows in them is a
count of differing bits.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba.extending import intrinsic

from rfx.compiled import njit

# Minimum number of two-valued columns with the same gap for bits to be faster, and rows that few
# other columns exceed.
_FEWEST, _HEAD = 8, 256
_WORD = 32


@dataclass(frozen=True, eq=False)
class Binary:
    """Two-valued columns whose values differ by `gap`: their numbers, these values (k,), and the
    numbers of all other columns.
    """

    columns: np.ndarray
    low: np.ndarray
    high: np.ndarray
    gap: float
    rest: np.ndarray

    @property
    def words(self) -> int:
        return -(-len(self.columns) // _WORD)

    def bits(self, X) -> np.ndarray | None:
        """(n, words) uint32 of the rows of X (n, d), dense or CSR: a bit is set for the upper
        value; None if there are other values.
        """
        out = np.zeros((X.shape[0], self.words), np.uint32)
        step = max(1, (1 << 20) // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            values = (rows.toarray() if sp.issparse(rows) else np.asarray(rows))[:, self.columns]
            upper = values == self.high
            if not (upper | (values == self.low)).all():
                return None
            padded = np.zeros((len(upper), self.words * _WORD), bool)
            padded[:, : upper.shape[1]] = upper
            out[start : start + step] = np.packbits(padded, axis=1, bitorder="little").view(
                np.uint32
            )
        return out


def find(X) -> Binary | None:
    """The two-valued columns of X (n, d), dense or CSR, with the most frequent gap; None if they
    are few.
    """
    if X.shape[1] < _FEWEST or X.shape[0] < 2:
        return None
    low, high, two = _sparse_values(X) if sp.issparse(X) else _dense_values(X)
    gaps, counts = np.unique((high - low)[two], return_counts=True)
    if not len(counts) or counts.max() < _FEWEST:
        return None
    gap = gaps[np.argmax(counts)]
    chosen = two & (high - low == gap)
    columns, rest = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    return Binary(columns, low[columns], high[columns], float(gap), rest)


def _dense_values(X):
    """(minimum, maximum, whether these are the only two values) of each column."""
    low, high = X.min(axis=0), X.max(axis=0)
    two = (low < high) & ((X[:_HEAD] == low) | (X[:_HEAD] == high)).all(axis=0)
    for j in np.flatnonzero(two):
        two[j] = np.all((X[:, j] == low[j]) | (X[:, j] == high[j]))
    return low.astype(np.float64), high.astype(np.float64), two


def _sparse_values(X):
    low, high = (values.toarray().ravel() for values in (X.min(axis=0), X.max(axis=0)))
    other = (X.data != low[X.indices]) & (X.data != high[X.indices])
    strange = np.bincount(X.indices[other], minlength=X.shape[1]) > 0
    # implicit zeros
    strange |= (low < 0) & (high > 0) & (np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0])
    return low.astype(np.float64), high.astype(np.float64), (low < high) & ~strange


@intrinsic
def count_bits(typing, word):
    """The number of bits set in an unsigned word."""

    def made(context, builder, signature, given):
        return builder.ctpop(given[0])

    return word(word), made


@njit(cache=True, nogil=True)
def add_differing(left, right, place, unit, out):
    """out[i, j] += unit[0] * (bits that differ between left[i] and right[:, place + j]); left (n,
    words), right (words, at least place + m), out (n, m)."""
    words, end = left.shape[1], place + out.shape[1]
    for i in range(out.shape[0]):
        sums = out[i]
        for w in range(0, words - 1, 2):
            a, b, A, B = left[i, w], left[i, w + 1], right[w, place:end], right[w + 1, place:end]
            for j in range(len(sums)):
                # numba passes the first argument
                sums[j] += unit[0] * np.int32(count_bits(a ^ A[j]) + count_bits(b ^ B[j]))  # type: ignore[call-arg]
        if words % 2:
            a, A = left[i, words - 1], right[words - 1, place:end]
            for j in range(len(sums)):
                # numba passes the first argument
                sums[j] += unit[0] * np.int32(count_bits(a ^ A[j]))  # type: ignore[call-arg]
