"""Products of rows with a map's vectors, x.w, bitwise independent of other rows and columns.

BLAS sums in another order for another shape, which changes the float32 phase of a heavy-tailed
frequency: features differed by up to 0.1 between a block of rows and all of them. Here entry (i, j)
is one chain of float64 additions over the inputs in order, which depends only on row i and column
j. Four rows are processed together; an input that is zero in all four is skipped, since adding it
would change nothing. A row whose inputs are mostly -1, or 1, as for scaled indicators, is
represented relative to that value.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from rfx import env, parallel
from rfx.compiled import njit

# Columns whose four sums fit into the first-level cache.
BLOCK = 256
# Rows per task of a thread: those of about this many features, within these limits.
_ENTRIES, _LEAST, _MOST = 1 << 18, 256, 4096
# Float64 multiplications count this many times, including the processing of the product.
_WORK = 1.5
_TOGETHER = 4
# A sum may be fused with its product, but nothing may be reordered.
_CHAIN = {"contract"}


# Numbers of a map stored in float64; larger maps, with many inputs, are widened during use, with
# the same products.
_HELD = 1 << 24
# rows in the form of `_packed`
Packed: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Vectors:
    """The vectors of a map, the columns of an (n_inputs, D) array, for products with rows
    in float64.
    """

    def __init__(self, matrix):
        self.W = np.ascontiguousarray(matrix, dtype=np.float64 if matrix.size <= _HELD else None)
        self.sums = np.zeros(self.W.shape[1])
        add_all(self.W, self.sums)

    def each_part(self, X, function: Callable[[slice, Packed], Any]) -> None:
        """function(rows, packed rows) for every part of the rows of X (n, n_inputs), array
        or CSR, by several threads.
        """
        if sp.issparse(X):
            X = X.tocsr()
            X.sum_duplicates()

        n_rows, threads = X.shape[0], env.threads()
        # of nearly equal size, the same number for each thread
        most = min(_MOST, max(_LEAST, _ENTRIES // max(1, self.W.shape[1])))
        count = threads * -(-n_rows // (most * threads))
        size = _TOGETHER * -(-n_rows // (_TOGETHER * max(1, count)))

        def part(first, last):
            for k in range(first, last):
                parallel.check_time()
                rows = slice(k * size, min((k + 1) * size, n_rows))
                function(rows, _packed(X[rows]))

        parallel.for_ranges(part, -(-n_rows // max(1, size)), work=_WORK * n_rows * self.W.size)

    def times(self, X, out, finish=None):
        """out (n, D) <- X W in the type of `out`, then finish(part of its rows) for each
        part, while it is in cache.
        """

        def part(rows: slice, packed: Packed) -> None:
            _products(*packed, self.W, self.sums, out[rows])
            if finish is not None:
                finish(out[rows])

        self.each_part(X, part)
        return out


def _packed(X) -> Packed:
    """The rows of X in groups of four: (values (groups, 4, width), their inputs (groups, width),
    counts, the rows' reference values (n,)).
    """
    groups = -(-X.shape[0] // _TOGETHER)
    shifts, counts = np.zeros(X.shape[0]), np.zeros(groups, np.int64)
    width = X.shape[1]
    if sp.issparse(X):
        width = min(width, _TOGETHER * int(np.diff(X.indptr).max(initial=0)))
    width = -(-width // _TOGETHER) * _TOGETHER
    values, inputs = np.zeros((groups, _TOGETHER, width)), np.zeros((groups, width), np.int64)
    if sp.issparse(X):
        _pack_sparse(X.indptr, X.indices, X.data, values, inputs, counts)
    else:
        _find_shifts(X, shifts)
        _pack_dense(X, values, inputs, counts, shifts)
    return values, inputs, counts, shifts


@njit(cache=True, nogil=True)
def _find_shifts(X, shifts):
    """shifts_i <- -1 or 1 if more than half of the inputs of row i have this value, else 0."""
    for i in range(len(X)):
        x, low, high = X[i], 0, 0
        for j in range(len(x)):
            low += x[j] == -1
            high += x[j] == 1
        shifts[i] = (2 * high > len(x)) - np.float64(2 * low > len(x))


@njit(cache=True, nogil=True)
def _pack_dense(X, values, inputs, counts, shifts):
    n, width = X.shape
    for g in range(len(counts)):
        count, own = 0, values[g]
        for t in range(width):
            used = False
            for r in range(4):
                # if the rows end within the group, the last one is repeated
                i = min(4 * g + r, n - 1)
                own[r, count] = np.float64(X[i, t]) - shifts[i]
                used |= own[r, count] != 0.0
            inputs[g, count] = t
            count += used
        if count < width:
            own[:, count] = 0.0
        counts[g] = count


@njit(cache=True, nogil=True)
def _pack_sparse(ends, columns, data, values, inputs, counts):
    n = len(ends) - 1
    at = np.zeros(4, np.int64)
    for g in range(len(counts)):
        rows = min(4, n - 4 * g)
        for r in range(rows):
            at[r] = ends[4 * g + r]
        count = 0
        while True:
            least = np.int64(2**62)
            for r in range(rows):
                if at[r] < ends[4 * g + r + 1]:
                    least = min(least, np.int64(columns[at[r]]))
            if least == 2**62:
                break
            for r in range(rows):
                if at[r] < ends[4 * g + r + 1] and columns[at[r]] == least:
                    values[g, r, count] = data[at[r]]
                    at[r] += 1
            inputs[g, count] = least
            count += 1
        counts[g] = count


@njit(cache=True, nogil=True)
def add_all(W, sums):
    """sums_j <- sums_j + sum_k W[k, j], in order of k."""
    for k in range(W.shape[0]):
        for j in range(len(sums)):
            sums[j] += W[k, j]


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def _add_group(values, inputs, count, W, low, high, sums):
    """sums (4, high - low) <- sums + values (4, count) @ W[inputs, low:high]."""
    width = high - low
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    # the values are padded with zeros to a multiple of four
    for k in range(0, count, 4):
        w0, w1 = W[inputs[k], low:high], W[inputs[k + 1], low:high]
        w2, w3 = W[inputs[k + 2], low:high], W[inputs[k + 3], low:high]
        a0, a1, a2, a3 = values[0, k], values[0, k + 1], values[0, k + 2], values[0, k + 3]
        b0, b1, b2, b3 = values[1, k], values[1, k + 1], values[1, k + 2], values[1, k + 3]
        c0, c1, c2, c3 = values[2, k], values[2, k + 1], values[2, k + 2], values[2, k + 3]
        d0, d1, d2, d3 = values[3, k], values[3, k + 1], values[3, k + 2], values[3, k + 3]
        for j in range(width):
            p, q, r, s = w0[j], w1[j], w2[j], w3[j]
            a[j] = (((a[j] + a0 * p) + a1 * q) + a2 * r) + a3 * s
            b[j] = (((b[j] + b0 * p) + b1 * q) + b2 * r) + b3 * s
            c[j] = (((c[j] + c0 * p) + c1 * q) + c2 * r) + c3 * s
            d[j] = (((d[j] + d0 * p) + d1 * q) + d2 * r) + d3 * s


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def _start_group(shift, sums, total):
    """total <- shift * sums."""
    for j in range(len(sums)):
        total[j] = shift * sums[j]


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def sum_group(g, n, values, inputs, counts, shifts, W, sums, low, high, totals):
    """The number of the n packed rows in group g; totals (4, BLOCK) <- their products with the
    columns low .. high-1 of W.
    """
    rows = min(4, n - 4 * g)
    for r in range(rows):
        _start_group(shifts[4 * g + r], sums[low:high], totals[r])
    _add_group(values[g], inputs[g], counts[g], W, low, high, totals)
    return rows


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def _products(values, inputs, counts, shifts, W, sums, out):
    """out <- the rows times W."""
    n, columns = out.shape
    totals = np.empty((4, BLOCK))
    for low in range(0, columns, BLOCK):
        high = min(low + BLOCK, columns)
        for g in range(len(counts)):
            rows = sum_group(g, n, values, inputs, counts, shifts, W, sums, low, high, totals)
            for r in range(rows):
                out[4 * g + r, low:high] = totals[r, : high - low]
