"""A feature matrix in memory: products of float32 or float64 entries with float64 sums, one loop over the features each.

Threads share rows or columns, never a sum, or sums are made in a fixed number of parts: no result depends on their number.
"""

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.errors import UsageError
from rfx.operators.base import Matrix, block_size, ranges
from rfx.operators.products import weighted_gram

_CAST_BYTES = 2 * 2**20
_PARTS = 4
# Where fewer than this share of the weights is not zero, these are picked out rather than all entries of a row read.
_PICKED = 1 / 32
_FAST = {"reassoc", "contract", "nsz", "arcp"}


class DenseMatrix(Matrix):
    """An (N, D) float32 or float64 array, C or F order needs no copy; or some rows of a C-order one, which are not copied either."""

    def __init__(self, Z, index=None):
        """index: the rows, an integer array, None for all. Raises UsageError where Z is no array of two dimensions."""
        if not isinstance(Z, np.ndarray) or Z.ndim != 2:
            given = f"array of {Z.ndim} dimensions" if isinstance(Z, np.ndarray) else type(Z).__name__
            raise UsageError(f"the features are a {given}; an array of rows and columns is needed")
        if Z.dtype.char not in "fd":
            Z = Z.astype(np.float64)
        if not (Z.flags.c_contiguous or (Z.flags.f_contiguous and index is None)):
            Z = np.ascontiguousarray(Z)
        self.Z, self.index, self.dtype = Z, index, Z.dtype
        self.shape = (Z.shape[0] if index is None else len(index), Z.shape[1])
        self._by_rows = Z.flags.c_contiguous

    @property
    def _own(self):
        """What Z is to be indexed with for the rows of this matrix."""
        return slice(None) if self.index is None else self.index

    @property
    def _numbers(self):
        """The rows of Z that are those of this matrix, as an array."""
        return np.arange(len(self.Z)) if self.index is None else self.index

    def parts(self):
        if not self._by_rows:
            yield slice(0, self.shape[0]), self
            return
        for rows in ranges(self.shape[0], block_size(self.shape[1], self.dtype)):
            yield rows, self.rows(rows)

    def rows(self, index):
        if self.index is not None:
            return DenseMatrix(self.Z, self.index[index])
        if isinstance(index, slice) or not self._by_rows:
            return DenseMatrix(self.Z[index])
        return DenseMatrix(self.Z, index)

    def columns(self, index):
        if not self._by_rows:
            return DenseMatrix(self.Z.T[index].T)
        if self.index is None and not isinstance(index, slice):
            return DenseMatrix(self.Z.take(index, axis=1))
        return DenseMatrix(np.ascontiguousarray(self.Z[self._own][:, index]))

    def column_blocks(self, width=None):
        for columns in ranges(self.shape[1], width or block_size(self.shape[0], self.dtype)):
            yield columns, np.ascontiguousarray(self.Z[self._own, columns])

    def column_lists(self, width):
        if self._by_rows:
            yield from super().column_lists(width)
        else:
            yield slice(0, self.shape[1]), self.Z.T, None, None

    def to_array(self, out=None):
        if out is None:
            return self.Z if self.index is None else self.Z[self.index]
        out[...] = self.Z[self._own]
        return out

    def hold(self, max_mb=np.inf):
        return self if self.index is None or self.size_mb > max_mb else DenseMatrix(self.Z[self.index])

    def by_columns(self, max_mb):
        return super().by_columns(max_mb) if self._by_rows else self

    def _bounds(self):
        """Where the parts begin and end that sums over the rows are made in."""
        return [self.shape[0] * k // _PARTS for k in range(_PARTS + 1)]

    def _for_wide(self, function, n_columns):
        """function(part, rows, these rows in float64), little by little: what BLAS multiplies by several columns.

        Threads share the parts; a BLAS with threads of its own would have them wait for work while ours widen the next rows.
        """
        size, bounds = block_size(self.shape[1], np.float64, _CAST_BYTES), self._bounds()

        def share(start, stop):
            buffer = np.empty((min(size, self.shape[0]), self.shape[1]))
            for k in range(start, stop):
                for own in ranges(bounds[k + 1] - bounds[k], size):
                    rows = slice(bounds[k] + own.start, bounds[k] + own.stop)
                    wide = buffer[: own.stop - own.start]
                    wide[...] = self.Z[rows if self.index is None else self.index[rows]]
                    function(k, rows, wide)

        with parallel.one_blas_thread():
            parallel.for_ranges(share, _PARTS, work=self.shape[0] * self.shape[1] * n_columns)

    def matvec(self, W):
        W = np.ascontiguousarray(W, dtype=np.float64)
        if W.shape[1:] == (1,):
            return self.matvec(W[:, 0])[:, None]
        out = np.zeros((self.shape[0], *W.shape[1:]))
        if W.ndim > 1:
            self._for_wide(lambda k, rows, Z: np.matmul(Z, W, out=out[rows]), W.shape[1])
            return out
        if self._by_rows and np.count_nonzero(W) > _PICKED * len(W):
            _dots(self.Z, self._numbers, W, out)
            return out
        used = np.flatnonzero(W)
        rows, values = self._numbers, W[used]
        if not self._by_rows:
            _combine(self.Z.T, used, values, out)
        elif len(used):
            parallel.for_ranges(lambda a, b: _dot_picked(self.Z, rows[a:b], used, values, out[a:b]), len(out), smallest=512)
        return out

    def rmatvec(self, U):
        U = np.ascontiguousarray(U, dtype=np.float64)
        if U.shape[1:] == (1,):
            return self.rmatvec(U[:, 0])[:, None]
        if U.ndim > 1:
            sums = np.zeros((_PARTS, self.shape[1], U.shape[1]))
            self._for_wide(lambda k, rows, Z: np.add(sums[k], Z.T @ U[rows], out=sums[k]), U.shape[1])
            return sums.sum(axis=0)
        out = np.zeros(self.shape[1])
        if self._by_rows:
            # many rows have a zero for a loss with a margin: they are not read at all
            used = np.flatnonzero(U)
            _combine(self.Z, self._numbers[used], U[used], out)
        else:
            _dots(self.Z.T, np.arange(self.shape[1]), U, out)
        return out

    def normal(self, P, weights=None):
        P = np.ascontiguousarray(P, dtype=np.float64)
        weights = np.ones(self.shape[0]) if weights is None else weights
        if P.shape[1:] == (1,):
            return self.normal(P[:, 0], weights)[:, None]
        sums = np.zeros((_PARTS, *P.shape))
        if P.ndim > 1:
            self._for_wide(lambda k, rows, Z: np.add(sums[k], Z.T @ (weights[rows, None] * (Z @ P)), out=sums[k]), 2 * P.shape[1])
            return sums.sum(axis=0)
        if not self._by_rows:
            return self.rmatvec(weights * self.matvec(P))
        rows, bounds = self._numbers, self._bounds()

        def part(start, stop):
            for k in range(start, stop):
                own = slice(bounds[k], bounds[k + 1])
                _add_normal(self.Z, rows[own], P, weights[own], sums[k])

        parallel.for_ranges(part, _PARTS, work=2 * len(rows) * len(P))
        return sums.sum(axis=0)

    def gram(self, left, right=None, weights=None, dtype=None):
        weights = np.ones(self.shape[0]) if weights is None else weights
        used = np.flatnonzero(weights)
        return weighted_gram(self.Z, self._numbers[used], weights[used], left, right, dtype)


def _dots(Z, rows, w, out):
    """out <- Z[rows] w for Z in C order."""
    parallel.for_ranges(lambda start, stop: _dot_rows(Z, rows[start:stop], w, out[start:stop]), len(rows), 16, work=len(rows) * len(w))


def _combine(Z, rows, values, out):
    """out <- out + Z[rows]' values for Z in C order."""
    parallel.for_ranges(lambda start, stop: add_rows(Z, rows, values, out, start, stop), len(out), 256, work=len(rows) * len(out))


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot_rows(Z, rows, w, out):
    """out_i <- sum_j Z[rows_i, j] w_j, two rows at a time so that w is read half as often; of an odd number, the last with itself.

    A loop of its own would add the last row's terms in another order: its sum would depend on how many rows came before it.
    """
    count, n_columns = len(rows), Z.shape[1]
    for i in range(0, count, 2):
        k = min(i + 1, count - 1)
        a, b = Z[rows[i]], Z[rows[k]]
        first, second = 0.0, 0.0
        for j in range(n_columns):
            first += a[j] * w[j]
            second += b[j] * w[j]
        out[k] = second
        out[i] = first


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot_picked(Z, rows, columns, values, out):
    """out_i <- sum_k Z[rows_i, columns_k] values_k."""
    for i in range(len(rows)):
        z, total = Z[rows[i]], 0.0
        for k in range(len(columns)):
            total += z[columns[k]] * values[k]
        out[i] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_rows(Z, rows, u, g, start, stop):
    """g_j <- g_j + sum_i u_i Z[rows_i, j] for start <= j < stop.

    Four rows at a time on so many columns that their part of g stays in the first cache.
    """
    count = len(rows)
    for low in range(start, stop, 2048):
        high = min(low + 2048, stop)
        part = g[low:high]
        for t in range(0, count - 3, 4):
            a, b, c, d = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
            ua, ub, uc, ud = u[t], u[t + 1], u[t + 2], u[t + 3]
            za, zb, zc, zd = Z[a, low:high], Z[b, low:high], Z[c, low:high], Z[d, low:high]
            for j in range(high - low):
                part[j] += ua * za[j] + ub * zb[j] + uc * zc[j] + ud * zd[j]
        for t in range(count - count % 4, count):
            last, z = u[t], Z[rows[t], low:high]
            for j in range(high - low):
                part[j] += last * z[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_normal(Z, rows, p, weights, g):
    """g <- g + Z_r' diag(weights) Z_r p for Z_r = Z[rows], four rows at a time, each read from memory once."""
    count, n_columns = len(rows), Z.shape[1]
    for i in range(0, count - 3, 4):
        za, zb, zc, zd = Z[rows[i]], Z[rows[i + 1]], Z[rows[i + 2]], Z[rows[i + 3]]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(n_columns):
            a += za[j] * p[j]
            b += zb[j] * p[j]
            c += zc[j] * p[j]
            d += zd[j] * p[j]
        a *= weights[i]
        b *= weights[i + 1]
        c *= weights[i + 2]
        d *= weights[i + 3]
        for j in range(n_columns):
            g[j] += a * za[j] + b * zb[j] + c * zc[j] + d * zd[j]
    for i in range(count - count % 4, count):
        z, a = Z[rows[i]], 0.0
        for j in range(n_columns):
            a += z[j] * p[j]
        a *= weights[i]
        for j in range(n_columns):
            g[j] += a * z[j]
