"""What the L1 solvers ask of a feature matrix: predictions, gradients and weighted Gram entries.

A design is `complete` when it can say something of every column, and `exact` when its Gram entries are sums in float64 anyway.

One small class for each way a matrix can be given: an array in memory (either order), a sparse matrix, a walk over row
blocks. Features stay in their own precision; sums over rows or columns are accumulated in float64, because the duality
gap of a float32 sum can't get below a few thousandths of the objective.
"""

import numpy as np
from numba import njit
from scipy import sparse

from rfx.errors import UsageError
from rfx.operators.binned import BinnedFeatures
from rfx.operators.binned_gram import BinnedDesign
from rfx.operators.blocks import ArrayBlocks, MapBlocks
from rfx.operators.products import CHUNK, add_total, products, squares, zero_total
from rfx.parallel import for_ranges

_FAST = {"reassoc", "contract", "nsz", "arcp"}


def as_design(blocks):
    """The design of an ArrayBlocks, a walk over row blocks, BinnedFeatures, an ndarray or a scipy sparse matrix, all (N, D).

    Raises UsageError for anything else.
    """
    if isinstance(blocks, ArrayBlocks) and blocks.index is None:
        blocks = blocks.Z
    if isinstance(blocks, BinnedFeatures):
        return BinnedDesign(blocks)
    if sparse.issparse(blocks):
        return SparseDesign(blocks)
    if isinstance(blocks, np.ndarray):
        if blocks.ndim != 2:
            raise UsageError(f"the features have {blocks.ndim} dimensions; a matrix of rows and columns is needed")
        return DenseDesign(blocks)
    if hasattr(blocks, "shape") and hasattr(blocks, "select") and hasattr(blocks, "__iter__"):
        return WalkDesign(blocks)
    raise UsageError(f"the features are a {type(blocks).__name__}; give blocks of rows, an array or a sparse matrix")


class _InMemory:
    """What designs share that can give some of their columns without computing them: `take(columns)`."""

    def hold(self, columns, held=None):
        """A HeldColumns of these columns."""
        return HeldColumns(self.take(columns), columns, self.shape)

    def wide(self, columns):
        """These columns as an array in float64."""
        part = self.take(columns)
        return (part.toarray() if sparse.issparse(part) else part).astype(np.float64)


class DenseDesign(_InMemory):
    """An (N, D) float32 or float64 array in memory; C and F order need no copy."""

    complete = True

    def __init__(self, Z):
        if Z.dtype not in (np.float32, np.float64):
            Z = Z.astype(np.float64)
        if not (Z.flags.c_contiguous or Z.flags.f_contiguous):
            Z = np.ascontiguousarray(Z)
        self.Z, self.shape, self.itemsize = Z, Z.shape, Z.dtype.itemsize
        self.exact = Z.dtype == np.float64

    def predict(self, coef):
        """Z coef, (N,) float64."""
        out = np.zeros(self.shape[0])
        _predict(self.Z, coef, out)
        return out

    def gradient(self, r):
        """Z' r, (D,) float64; rows where r is zero are skipped in C order."""
        if self.Z.flags.c_contiguous:
            out = np.zeros(self.shape[1])
            _combine(self.Z, np.flatnonzero(r), r, out)
        else:
            out = np.empty(self.shape[1])
            for_ranges(lambda start, stop: _dots(self.Z.T, r, out, start, stop), len(out), 16)
        return out

    def cross(self, rows, weights, left, right=None, dtype=None):
        """sum over `rows` of weight * z[left] z[left]', (|left|, |left|) float64.

        With `right`, a pair: that and the sum of weight * z[left] z[right]', (|left|, |right|), for weights >= 0. dtype: of
        the products, at least; by default the features'.
        """
        total = products(self.Z, rows, weights, left, right, dtype)
        return total[0] if right is None else total

    def norms(self, columns):
        """Euclidean norms of these columns, float64."""
        return np.sqrt(squares(self.Z, columns))

    def take(self, columns):
        """These columns, in the order of memory of the whole."""
        return self.Z.T[columns].T if self.Z.flags.f_contiguous else self.Z.take(columns, axis=1)


class WalkDesign:
    """Row blocks that are walked, and perhaps computed anew, at each question."""

    complete = True

    def __init__(self, blocks):
        self.blocks, self.shape, self.itemsize = blocks, blocks.shape, np.dtype(blocks.dtype).itemsize
        self.exact = blocks.dtype == np.float64

    def predict(self, coef):
        """Z coef, (N,) float64, from the columns with a weight only."""
        out = np.zeros(self.shape[0])
        used = np.flatnonzero(coef)
        if len(used):
            for rows, Z in self._part(used):
                _predict(_contiguous(Z), coef[used], out[rows])
        return out

    def gradient(self, r):
        """Z' r, (D,) float64."""
        out = np.zeros(self.shape[1])
        rows = np.flatnonzero(r)
        for chosen, Z in self._rows(self.blocks, rows):
            part = r[chosen]
            _combine(np.ascontiguousarray(Z), np.arange(len(part)), part, out)
        return out

    def cross(self, rows, weights, left, right=None, dtype=None):
        """As DenseDesign.cross, in one walk over the columns and rows concerned."""
        total = zero_total(left, right)
        columns = np.unique(left if right is None else np.concatenate([left, right]))
        left_at = np.searchsorted(columns, left)
        right_at = None if right is None else np.searchsorted(columns, right)
        done = 0
        for chosen, Z in self._rows(self._part(columns), rows):
            Z, part = _contiguous(Z), weights[done : done + len(chosen)]
            done += len(chosen)
            add_total(total, products(Z, np.arange(len(part)), part, left_at, right_at, dtype))
        return total[0] if right is None else total

    def norms(self, columns):
        """As DenseDesign.norms."""
        every = np.arange(len(columns))
        return np.sqrt(sum((squares(Z, every) for _, Z in self._part(columns)), np.zeros(len(columns))))

    def hold(self, columns, held=None):
        """A HeldColumns of these columns, which takes from `held` what that has already."""
        out = np.empty((self.shape[0], len(columns)), self.blocks.dtype)
        known = np.isin(columns, held.columns) if held is not None else np.zeros(len(columns), bool)
        if known.any():
            at = np.searchsorted(held.columns, columns[known])
            for start in range(0, len(out), CHUNK):
                out[start : start + CHUNK, known] = held.inner.Z[start : start + CHUNK, at]
        new = np.flatnonzero(~known)
        if len(new):
            for rows, Z in self._part(columns[new]):
                out[rows, new] = Z
        return HeldColumns(out, columns, self.shape)

    def wide(self, columns):
        """As DenseDesign.wide."""
        return self.hold(columns).wide(columns)

    def _part(self, columns):
        return self.blocks if len(columns) == self.shape[1] else self.blocks.select(columns)

    def _rows(self, blocks, rows):
        """(row numbers, their features) block by block for sorted `rows`; a map computes these rows only."""
        if isinstance(blocks, MapBlocks) and len(rows) < len(blocks.X):
            for part, Z in MapBlocks(blocks.map, blocks.X[rows], blocks.scale, blocks.rows) if len(rows) else ():
                yield rows[part], Z
            return
        for block, Z in blocks:
            first, last = np.searchsorted(rows, (block.start, block.stop))
            if first < last:
                chosen = rows[first:last]
                yield chosen, Z if len(chosen) == len(Z) else Z[chosen - block.start]


class HeldColumns(_InMemory):
    """Some columns of a matrix, held in memory under their numbers in the whole; the others read as zero."""

    complete = False

    def __init__(self, Z, columns, shape):
        self.inner, self.columns, self.shape = as_design(Z), columns, shape
        self.itemsize, self.exact = self.inner.itemsize, self.inner.exact

    def predict(self, coef):
        """Z coef, (N,) float64; coef (D,) is zero for the columns not held."""
        return self.inner.predict(coef[self.columns])

    def gradient(self, r):
        """Z' r, (D,) float64, zero for the columns not held."""
        out = np.zeros(self.shape[1])
        out[self.columns] = self.inner.gradient(r)
        return out

    def cross(self, rows, weights, left, right=None, dtype=None):
        """As DenseDesign.cross."""
        right = None if right is None else np.searchsorted(self.columns, right)
        return self.inner.cross(rows, weights, np.searchsorted(self.columns, left), right, dtype)

    def take(self, columns):
        """As DenseDesign.take."""
        return self.inner.take(np.searchsorted(self.columns, columns))


class SparseDesign(_InMemory):
    """A scipy sparse matrix, kept by columns."""

    complete = exact = True

    def __init__(self, matrix):
        matrix = matrix.tocsc()
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self.matrix, self.shape, self.itemsize = matrix, matrix.shape, matrix.dtype.itemsize

    def predict(self, coef):
        """Z coef, (N,) float64."""
        m = self.matrix
        out = np.zeros(self.shape[0])
        _sparse_combine(m.indptr, m.indices, m.data, np.flatnonzero(coef), coef, out)
        return out

    def gradient(self, r):
        """Z' r, (D,) float64."""
        m = self.matrix
        out = np.empty(self.shape[1])
        part = lambda start, stop: _sparse_dots(m.indptr, m.indices, m.data, r, out, start, stop)
        for_ranges(part, len(out), 64)
        return out

    def cross(self, rows, weights, left, right=None, dtype=None):
        """As DenseDesign.cross, by a product of sparse matrices."""
        row_weights = np.zeros(self.shape[0])
        row_weights[rows] = weights
        by_left = self.matrix[:, left].astype(np.float64)
        weighted = by_left.copy()
        weighted.data *= row_weights[weighted.indices]
        weighted.eliminate_zeros()
        square = (weighted.T @ by_left).toarray()
        if right is None:
            return square
        return square, (weighted.T @ self.matrix[:, right].astype(np.float64)).toarray()

    def norms(self, columns):
        """As DenseDesign.norms."""
        return np.sqrt(np.asarray(self.matrix[:, columns].astype(np.float64).power(2).sum(axis=0)).ravel())

    def take(self, columns):
        """As DenseDesign.take, a sparse matrix."""
        return self.matrix[:, columns]


def _contiguous(Z):
    return Z if Z.flags.c_contiguous or Z.flags.f_contiguous else np.ascontiguousarray(Z)


def _predict(Z, coef, out):
    """out = Z coef for an array in either order; out starts as zeros."""
    used = np.flatnonzero(coef)
    if not len(used) or not len(out):
        return
    if not Z.flags.c_contiguous:
        _combine(Z.T, used, coef, out)
    elif len(used) > Z.shape[1] // 32:  # gathers cost more than reading all of a row
        for_ranges(lambda start, stop: _dots(Z, coef, out, start, stop), len(out), 512)
    else:
        values = coef[used]
        for_ranges(lambda start, stop: _picked_dots(Z, used, values, out, start, stop), len(out), 512)


def _combine(Z, rows, r, out):
    """out += sum over `rows` of r[row] * Z[row], Z in C order; split by columns, so threads change no rounding."""
    if len(rows):
        for_ranges(lambda start, stop: _sums(Z, rows, r, out, start, stop), Z.shape[1], 256)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dots(Z, w, out, start, stop):
    for n in range(start, stop):
        total = 0.0
        for j in range(Z.shape[1]):
            total += Z[n, j] * w[j]
        out[n] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _picked_dots(Z, columns, values, out, start, stop):
    for n in range(start, stop):
        total = 0.0
        for k in range(len(columns)):
            total += Z[n, columns[k]] * values[k]
        out[n] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _sums(Z, rows, r, out, first, last):
    # Slices of 2048 sums stay in the first-level cache; four rows at a time save its loads and stores.
    for start in range(first, last, 2048):
        stop = min(start + 2048, last)
        fours = len(rows) // 4 * 4
        for i in range(0, fours, 4):
            a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
            ra, rb, rc, rd = r[a], r[b], r[c], r[d]
            for j in range(start, stop):
                out[j] += Z[a, j] * ra + Z[b, j] * rb + Z[c, j] * rc + Z[d, j] * rd
        for i in range(fours, len(rows)):
            a = rows[i]
            ra = r[a]
            for j in range(start, stop):
                out[j] += Z[a, j] * ra


@njit(cache=True, nogil=True)
def _sparse_dots(indptr, indices, data, r, out, start, stop):
    for j in range(start, stop):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            total += data[k] * r[indices[k]]
        out[j] = total


@njit(cache=True, nogil=True)
def _sparse_combine(indptr, indices, data, columns, coef, out):
    for j in columns:
        for k in range(indptr[j], indptr[j + 1]):
            out[indices[k]] += data[k] * coef[j]
