"""The feature matrix as a walk over blocks of rows or of columns, so that no solver needs N x D in memory.

A solver iterates `for rows, Z in blocks` and reduces; `rows` is a slice and Z its (rows, D) features, valid until the
next turn of the loop. `walk` is the reduction that the L2 solvers are made of: Z w and Z'u in one turn, features in
their own type, sums in float64. It splits rows or columns between threads, never a sum, so that the result does not
depend on their number.
"""

import numpy as np
import scipy.sparse as sp
from numba import njit

from rfx import env, parallel

DEFAULT_BLOCK_BYTES = 32 * 2**20
_CAST_BYTES = 4 * 2**20
_DENSE_BYTES = 64 * 2**20
_PARTS = 4


def block_rows(n_columns: int, itemsize: int, target: int = DEFAULT_BLOCK_BYTES) -> int:
    """Rows per block so that a block takes about `target` bytes, at least 256."""
    return max(256, int(target // max(1, n_columns * itemsize)))


def _ranges(size, width):
    """Slices of at most `width` that cover range(size)."""
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


class ArrayBlocks:
    """Row blocks of an (N, D) array that is in memory; of its rows `index` only, where given."""

    def __init__(self, Z, rows: int | None = None, index=None):
        self.Z, self.index = Z, index
        self.shape = (Z.shape[0] if index is None else len(index), Z.shape[1])
        self.dtype = Z.dtype
        self.rows = rows or block_rows(Z.shape[1], Z.dtype.itemsize)

    def __iter__(self):
        for rows in _ranges(self.shape[0], self.rows):
            yield rows, self.Z[rows if self.index is None else self.index[rows]]

    def columns(self, width: int | None = None):
        """(columns, (N, columns) features) over blocks of columns; the features are C-contiguous."""
        width = width or block_rows(self.shape[0], self.dtype.itemsize)
        for columns in _ranges(self.shape[1], width):
            Z = self.Z[:, columns]
            yield columns, np.ascontiguousarray(Z) if self.index is None else Z[self.index]

    def select(self, columns) -> "ArrayBlocks":
        """The blocks of a subset of the columns (copied)."""
        return ArrayBlocks(np.ascontiguousarray(self.Z[:, columns]), self.rows, self.index)

    def subset(self, index) -> "ArrayBlocks":
        """The blocks of the rows `index` (an integer array); nothing is copied."""
        return ArrayBlocks(self.Z, self.rows, index if self.index is None else self.index[index])

    def materialize(self) -> "ArrayBlocks":
        """All of it in memory."""
        return self if self.index is None else ArrayBlocks(self.Z[self.index], self.rows)


def dense(X, dtype=np.float64):
    """X, as an array of that type where it is sparse and that costs little memory: products with sparse rows are far slower."""
    if not sp.issparse(X):
        return X
    size = X.shape[0] * X.shape[1] * np.dtype(dtype).itemsize
    return X.astype(dtype).toarray() if size <= max(_DENSE_BYTES, X.nnz * 12) else X


class MapBlocks:
    """Row blocks of scale * feature_map(X), computed anew at every walk into one reused buffer."""

    def __init__(self, feature_map, X, scale: float = 1.0, rows: int | None = None):
        self.map, self.X, self.scale = feature_map, dense(X, feature_map.dtype), scale
        self.shape = (X.shape[0], feature_map.n_features)
        self.dtype = feature_map.dtype
        self.rows = rows or block_rows(self.shape[1], self.dtype.itemsize)

    def _features(self, feature_map, X, out):
        Z = feature_map.transform(X, out=out)
        if self.scale != 1.0:
            Z *= self.dtype.type(self.scale)
        return Z

    def __iter__(self):
        buffer = np.empty((min(self.rows, self.shape[0]), self.shape[1]), self.dtype)
        for rows in _ranges(self.shape[0], self.rows):
            yield rows, self._features(self.map, self.X[rows], buffer[: rows.stop - rows.start])

    def columns(self, width: int | None = None):
        """(columns, (N, columns) features) over blocks of columns, valid until the next turn; C-contiguous."""
        width = min(width or block_rows(self.shape[0], self.dtype.itemsize), self.shape[1])
        buffer = np.empty(self.shape[0] * width, self.dtype)
        for columns in _ranges(self.shape[1], width):
            count = columns.stop - columns.start
            out = buffer[: self.shape[0] * count].reshape(self.shape[0], count)
            yield columns, self._features(self.map.select(columns), self.X, out)

    def select(self, columns) -> "MapBlocks":
        """The blocks of a subset of the columns."""
        return MapBlocks(self.map.select(columns), self.X, self.scale)

    def subset(self, index) -> "MapBlocks":
        """The blocks of the rows `index` (an integer array); the inputs are copied."""
        return MapBlocks(self.map, self.X[index], self.scale, self.rows)

    def materialize(self) -> ArrayBlocks:
        """All of it in memory."""
        Z = np.empty(self.shape, self.dtype)
        for rows in _ranges(self.shape[0], self.rows):
            self._features(self.map, self.X[rows], Z[rows])
        return ArrayBlocks(Z)


class KeptRows:
    """The features of a changing set of rows, in memory as long as they take less than `limit_mb`.

    Rows that stay in the set are not computed again: newcomers take the places of those that left.
    """

    def __init__(self, blocks, limit_mb: float):
        self.blocks = blocks
        self.capacity = int(limit_mb * 2**20 / (blocks.shape[1] * blocks.dtype.itemsize))
        self._Z = None
        self._places = np.full(blocks.shape[0], -1)

    def subset(self, index):
        """Blocks of the rows `index` (sorted, without repetition), valid until the next call."""
        part = self.blocks.subset(index)
        if isinstance(part, ArrayBlocks):
            return part
        if self._Z is None or len(index) > len(self._Z):
            self._Z = None
            self._places[:] = -1
            if len(index) > self.capacity:
                return part
            rows = min(self.capacity, len(index) + len(index) // 8)
            self._Z = np.empty((rows, part.shape[1]), part.dtype)
        leaving = self._places >= 0
        leaving[index] = False
        self._places[leaving] = -1
        free = np.ones(len(self._Z), bool)
        free[self._places[self._places >= 0]] = False
        new = index[self._places[index] < 0]
        places = np.flatnonzero(free)[: len(new)]
        for rows, Z in self.blocks.subset(new):
            self._Z[places[rows]] = Z
        self._places[new] = places
        return ArrayBlocks(self._Z, index=self._places[index])

    def walk(self, w, back):
        """As the function `walk`, but rows in memory are not computed; back(rows, f) is given row numbers."""
        if self._Z is None:
            return walk(self.blocks, w, lambda rows, f: back(np.arange(rows.start, rows.stop), f))
        f, g = np.empty(self.blocks.shape[0]), np.zeros(self.blocks.shape[1])
        held, rest = np.flatnonzero(self._places >= 0), np.flatnonzero(self._places < 0)
        for part, index in ((ArrayBlocks(self._Z, index=self._places[held]), held), (self.blocks.subset(rest), rest)):
            if len(index):
                f[index], own = walk(part, w, lambda rows, z, index=index: back(index[rows], z))
                g += own
        return f, g


def feature_blocks(feature_map, X, scale: float = 1.0, max_memory_mb: float | None = None):
    """Blocks of scale * feature_map(X): kept in memory when they take less than `max_memory_mb`, else recomputed."""
    limit = max_memory_mb if max_memory_mb is not None else default_memory_mb()
    blocks = MapBlocks(feature_map, X, scale)
    return blocks.materialize() if size_mb(blocks) <= limit else blocks


def size_mb(blocks) -> float:
    """What the features of `blocks` would take in memory."""
    return blocks.shape[0] * blocks.shape[1] * blocks.dtype.itemsize / 2**20


def default_memory_mb() -> float:
    """What a solver may use for features when nothing is said: a quarter of the available memory, at most 2 GiB."""
    return min(2048.0, env.available_memory_mb() / 4)


def walk(blocks, w, back, forward=None):
    """f = Z w, then g = Z' back(rows, f[rows]), in one turn over the rows.

    w: (D,) or (D, k) float64, or None where only g is wanted. back(rows, f): what multiplies the rows from the left, an
    array like f, or None where only f is wanted. forward: f where it is known already. Returns (f, g) in float64,
    of shapes (N,) or (N, k) and (D,) or (D, k).
    """
    n_rows, n_columns = blocks.shape
    f, g = forward, None
    if w is not None:
        w = np.ascontiguousarray(w, dtype=np.float64)
        f = np.empty((n_rows, *w.shape[1:]))
    for rows, Z, chosen in _in_place(blocks):
        if w is not None:
            _forward(Z, chosen, w, f[rows])
        if back is not None:
            u = np.ascontiguousarray(back(rows, None if f is None else f[rows]), dtype=np.float64)
            if g is None:
                g = np.zeros((n_columns, *u.shape[1:]))
            _backward(Z, chosen, u, g)
    return f, g


def apply(blocks, w) -> np.ndarray:
    """Z w in float64: (D,) or (D, k) -> (N,) or (N, k)."""
    return walk(blocks, w, None)[0]


def adjoint(blocks, u) -> np.ndarray:
    """Z'u in float64: (N,) or (N, k) -> (D,) or (D, k)."""
    return walk(blocks, None, lambda rows, f: u[rows])[1]


def product(blocks, p, weights=None) -> np.ndarray:
    """Z' diag(weights) Z p in float64, for p (D,) or (D, k) and weights (N,) or None for ones; what CG asks for."""
    if weights is None:
        weights = np.ones(blocks.shape[0])
    if p.ndim > 1:
        return walk(blocks, p, lambda rows, f: weights[rows, None] * f)[1]
    p = np.ascontiguousarray(p, dtype=np.float64)
    # as many sums whatever the number of threads, so that the result is the same
    sums = np.zeros((_PARTS, blocks.shape[1]))
    for rows, Z, chosen in _in_place(blocks, whole=True):
        part = weights[rows]
        bounds = [len(chosen) * k // _PARTS for k in range(_PARTS + 1)]

        def add(start, stop, Z=Z, chosen=chosen, part=part, bounds=bounds):
            for k in range(start, stop):
                own = slice(bounds[k], bounds[k + 1])
                _add_products(Z, chosen[own], p, part[own], sums[k])

        parallel.for_ranges(add, _PARTS)
    return sums.sum(axis=0)


def _in_place(blocks, whole=False):
    """(rows, Z, chosen) with Z[chosen] the features of `rows`: uncopied where they are in memory, then `whole` at once."""
    if isinstance(blocks, ArrayBlocks) and blocks.Z.flags.c_contiguous:
        index = np.arange(blocks.shape[0]) if blocks.index is None else blocks.index
        for rows in _ranges(len(index), len(index) if whole else blocks.rows):
            yield rows, blocks.Z, index[rows]
        return
    for rows, Z in blocks:
        yield rows, np.ascontiguousarray(Z), np.arange(len(Z))


def _forward(Z, chosen, w, out):
    """out <- Z[chosen] w, sums in float64."""
    if w.ndim == 1:
        parallel.for_ranges(lambda start, stop: _dot_rows(Z, chosen[start:stop], w, out[start:stop]), len(chosen), smallest=16)
    else:
        for rows in _ranges(len(chosen), block_rows(Z.shape[1], 8, _CAST_BYTES)):
            np.matmul(Z[chosen[rows]].astype(np.float64, copy=False), w, out=out[rows])


def _backward(Z, chosen, u, g):
    """g <- g + Z[chosen]'u, sums in float64."""
    if u.ndim == 1:
        # many rows have u = 0 for a loss with a margin: they are not read at all
        nonzero = np.flatnonzero(u)
        rows, u = chosen[nonzero], u[nonzero]
        parallel.for_ranges(lambda start, stop: _add_rows(Z, rows, u, g, start, stop), len(g), smallest=256)
    else:
        for rows in _ranges(len(chosen), block_rows(Z.shape[1], 8, _CAST_BYTES)):
            g += Z[chosen[rows]].astype(np.float64, copy=False).T @ u[rows]


@njit(cache=True, nogil=True, fastmath=True)
def _dot_rows(Z, chosen, w, out):
    """out_i <- sum_j Z[chosen_i, j] w_j, two rows at a time so that w is read half as often."""
    count, n_columns = len(chosen), Z.shape[1]
    for i in range(0, count - 1, 2):
        a, b = Z[chosen[i]], Z[chosen[i + 1]]
        first, second = 0.0, 0.0
        for j in range(n_columns):
            first += a[j] * w[j]
            second += b[j] * w[j]
        out[i] = first
        out[i + 1] = second
    if count % 2:
        a, last = Z[chosen[count - 1]], 0.0
        for j in range(n_columns):
            last += a[j] * w[j]
        out[count - 1] = last


@njit(cache=True, nogil=True, fastmath=True)
def _add_rows(Z, chosen, u, g, start, stop):
    """g_j <- g_j + sum_i u_i Z[chosen_i, j] for start <= j < stop.

    Four rows at a time on so many columns that their part of g stays in the first cache.
    """
    count = len(chosen)
    for low in range(start, stop, 2048):
        high = min(low + 2048, stop)
        part = g[low:high]
        for t in range(0, count - 3, 4):
            a, b, c, d = chosen[t], chosen[t + 1], chosen[t + 2], chosen[t + 3]
            ua, ub, uc, ud = u[t], u[t + 1], u[t + 2], u[t + 3]
            za, zb, zc, zd = Z[a, low:high], Z[b, low:high], Z[c, low:high], Z[d, low:high]
            for j in range(high - low):
                part[j] += ua * za[j] + ub * zb[j] + uc * zc[j] + ud * zd[j]
        for t in range(count - count % 4, count):
            last, z = u[t], Z[chosen[t], low:high]
            for j in range(high - low):
                part[j] += last * z[j]


@njit(cache=True, nogil=True, fastmath=True)
def _add_products(Z, chosen, p, weights, g):
    """g <- g + Z_c' diag(weights) Z_c p for Z_c = Z[chosen], four rows at a time, each read from memory once."""
    count, n_columns = len(chosen), Z.shape[1]
    for i in range(0, count - 3, 4):
        za, zb, zc, zd = Z[chosen[i]], Z[chosen[i + 1]], Z[chosen[i + 2]], Z[chosen[i + 3]]
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
        z, a = Z[chosen[i]], 0.0
        for j in range(n_columns):
            a += z[j] * p[j]
        a *= weights[i]
        for j in range(n_columns):
            g[j] += a * z[j]
