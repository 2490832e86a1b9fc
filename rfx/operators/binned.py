"""Random binning features as bin numbers, and Gram matrices of bins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from rfx import parallel
from rfx.compiled import njit
from rfx.kernels.blocks import count_bits
from rfx.operators.blocks import block_size, ranges, scale_and_mirror
from rfx.operators.matrix import DenseMatrix, ListedColumns, Matrix
from rfx.types import Index

# ----------------------------------------------------------------------
# Z' diag(h) Z for selected bins, by counting the rows that two bins share as common bits.
#
# Random binning features are constant where they are nonzero, so an entry of the Gram matrix is the
# sum of the weights h of the rows in both bins. Rows of equal weight form one run of bits; the
# processor counts the bits of 64 rows at once. For the squared and the squared hinge loss, whose
# weights are 0 and 1 or 2, this is about twenty times as fast as a float32 product.

# 64-bit words of a bin that are counted before the next bin: what fits into the first-level cache.
_LENGTH, _BANDS = 256, 64


def meetings(
    ids: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(|left|, |left|) and (|left|, |right|) float64 sums of the weights of the rows that two bins
    share.

    ids, starts: as in BinnedMatrix. weights: (N,). left, right: column numbers.
    """
    n_left = len(left)
    n_right = len(right)
    square = np.zeros((n_left, n_left))
    cross = np.zeros((n_left, n_right))
    if not n_left or not np.any(weights):
        return square, cross
    columns = np.concatenate([left, right])
    bits, runs, values = _bits(ids, starts, weights, columns)
    words = bits.shape[1]
    own = bits[:n_left]
    other = bits[n_left:]
    # rows of the lower triangle in parts of equal size, with some entries above the diagonal
    shares = np.sqrt(np.arange(_BANDS + 1) / _BANDS)
    bounds = np.rint(n_left * shares).astype(int)

    def lower(start: int, stop: int) -> None:
        for a, b in itertools.pairwise(bounds[start : stop + 1]):
            _rectangle(own[a:b], own[:b], runs, values, square[a:b])

    def crossing(start: int, stop: int) -> None:
        _rectangle(own[start:stop], other, runs, values, cross[start:stop])

    parallel.for_ranges(lower, _BANDS, work=words * n_left**2)
    # the upper triangle from the lower one
    scale_and_mirror(square.T, 1.0, np.ones(len(square)))
    parallel.for_ranges(crossing, n_left, parts=_BANDS, work=2 * words * n_left * n_right)
    return square, cross


def _bits(
    ids: np.ndarray, starts: np.ndarray, weights: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(bits (columns, words), runs, values): the rows in each column, those of weight values[k] in
    words runs[k] .. runs[k + 1].
    """
    rows = np.flatnonzero(weights)
    values, kind = np.unique(weights[rows], return_inverse=True)
    order = np.argsort(kind, kind="stable")
    counts = np.bincount(kind, minlength=len(values))
    words = -(-counts // 64)
    runs = np.concatenate([[0], np.cumsum(words)])
    firsts = np.cumsum(counts) - counts
    # the position of each row's bit: its rank among the rows of its weight, after the words of
    # earlier weights
    shifts = 64 * runs[:-1] - firsts
    places = np.arange(len(rows)) + shifts[kind[order]]
    bits = np.zeros((len(columns), int(runs[-1])), np.uint64)
    sorted_rows = rows[order]
    by_grid = np.argsort(columns, kind="stable")
    grids = np.searchsorted(starts, columns[by_grid], side="right") - 1
    used, begins = np.unique(grids, return_index=True)
    begins = np.append(begins, len(columns))

    def part(start: int, stop: int) -> None:
        table = np.full(int(np.diff(starts).max()), -1, np.int32)
        for k in range(start, stop):
            own = by_grid[begins[k] : begins[k + 1]]
            grid = used[k]
            bins = columns[own] - starts[grid]
            _fill(ids[grid], sorted_rows, places, bins, own, table, bits)

    parallel.for_ranges(part, len(used), work=2 * len(used) * len(rows))
    return bits, runs, values


@njit(cache=True, nogil=True)
def _fill(
    ids: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    bins: np.ndarray,
    columns: np.ndarray,
    table: np.ndarray,
    bits: np.ndarray,
) -> None:
    """bits[columns_k] <- the positions of the rows in bin bins_k of the grid; table: scratch of -1,
    restored.
    """
    for k in range(len(bins)):
        table[bins[k]] = columns[k]
    for t in range(len(rows)):
        column = table[ids[rows[t]]]
        if column >= 0:
            place = places[t]
            bit = np.uint64(1) << np.uint64(place & 63)
            bits[column, place >> 6] |= bit
    for k in range(len(bins)):
        table[bins[k]] = -1


@njit(cache=True, nogil=True)
def _rectangle(
    left: np.ndarray, right: np.ndarray, runs: np.ndarray, values: np.ndarray, out: np.ndarray
) -> None:
    """out[i, j] <- out[i, j] + the weight of the common bits of left_i and right_j."""
    for k in range(len(values)):
        for low in range(runs[k], runs[k + 1], _LENGTH):
            high = min(low + _LENGTH, runs[k + 1])
            for first in range(0, len(right), 64):
                for i in range(len(left)):
                    own = left[i, low:high]
                    for j in range(first, min(first + 64, len(right))):
                        other = right[j, low:high]
                        total = np.uint64(0)
                        for t in range(len(own)):
                            # numba passes the first argument
                            total += count_bits(own[t] & other[t])  # type: ignore[call-arg]
                        out[i, j] += values[k] * total


# ----------------------------------------------------------------------
# The binning feature matrix Z as bin numbers: Z w by gathering, Z'u by scattering grid by grid, Z
# Z'a in one pass.
#
# Bin numbers are stored grid by grid, (R, N), so that gathering and scattering use the weights of a
# few grids, which fit into cache. Threads share rows (gathering) or grids (scattering); sums over
# grids have a fixed number of parts, so that results do not depend on the number of threads.

_PARTS = 8
_TOGETHER = 4
_ROWS = 8192
# Row weights that are not few values already are rounded to powers of this, down to this fraction
# of the largest.
_RATIO, _SMALLEST = 1.25, 1e-4
_FEW = 4


class BinnedMatrix(Matrix):
    """Z (N, D) with the value `scale` in the bin of each row and grid.

    ids: (R, N) numbers of the rows' bins within their grids, uint16 or int32. starts: (R + 1,)
    int64, the first column of each grid. scale: by default 1/sqrt(R) (erratum Wu 4 of
    docs/papers.md), so that Z Z' estimates the kernel.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, ids: np.ndarray, starts: np.ndarray, scale: float | None = None) -> None:
        self.ids = ids
        self.starts = np.asarray(starts, dtype=np.int64)
        self.shape = (ids.shape[1], int(self.starts[-1]))
        self.scale = 1.0 / np.sqrt(len(ids)) if scale is None else float(scale)

    @property
    def n_grids(self) -> int:
        return len(self.ids)

    def rows(self, index: Index) -> Matrix:
        return BinnedMatrix(np.ascontiguousarray(self.ids[:, index]), self.starts, self.scale)

    def columns(self, index: Index) -> Matrix:
        """These bins as an array in memory."""
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.shape[1]))
        out = np.empty((self.shape[0], len(index)))
        grids = np.searchsorted(self.starts, index, side="right") - 1
        bins = index - self.starts[grids]
        for k, grid in enumerate(grids):
            np.multiply(self.ids[grid] == bins[k], self.scale, out=out[:, k])
        return DenseMatrix(out)

    def row_blocks(self) -> Iterator[tuple[Index, np.ndarray]]:
        for rows in ranges(self.shape[0], block_size(self.shape[1], self.dtype)):
            out = np.zeros((rows.stop - rows.start, self.shape[1]))
            columns = self.ids[:, rows].T + self.starts[:-1]
            np.put_along_axis(out, columns, self.scale, axis=1)
            yield rows, out

    def to_csr(self) -> sp.csr_matrix:
        """The same as a sparse matrix, for other programs: R values per row."""
        kind = np.int32 if self.shape[1] < 2**31 else np.int64
        indices = (self.ids.T + self.starts[:-1]).astype(kind)
        ends = np.arange(self.shape[0] + 1) * self.n_grids
        data = np.full(indices.size, self.scale)
        return sp.csr_matrix((data, indices.ravel(), ends), shape=self.shape)

    def by_columns(self) -> BinnedMatrix:
        return self

    @parallel.cached
    def _lists(self) -> ListedColumns:
        """The rows of every bin: 4 bytes for each row and grid."""
        columns = self.to_csr().tocsc()
        return ListedColumns(self.scale, columns.indices, columns.indptr.astype(np.int64))

    def column_lists(self) -> ListedColumns:
        return self._lists

    def matvec(self, W: np.ndarray) -> np.ndarray:
        """Grids without nonzero weight are skipped."""
        if W.ndim == 2:
            return _by_column(self.matvec, W, self.shape[0])
        w = np.asarray(W, dtype=np.float64)
        out = np.zeros(self.shape[0])
        grids = np.flatnonzero(np.add.reduceat(w != 0, self.starts[:-1]))

        def part(start: int, stop: int) -> None:
            for first in range(start, stop, _ROWS):
                rows = slice(first, min(first + _ROWS, stop))
                _gather(self.ids[:, rows], grids, self.starts, w, self.scale, out[rows])

        if len(grids):
            work = 2 * len(grids) * self.shape[0]
            parallel.for_ranges(part, self.shape[0], 1024, work=work)
        return out

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        """Rows with a zero are skipped."""
        if U.ndim == 2:
            return _by_column(self.rmatvec, U, self.shape[1])
        u = self.scale * np.asarray(U, dtype=np.float64)
        out = np.zeros(self.shape[1])
        rows = np.flatnonzero(u)
        values = u[rows]

        def part(start: int, stop: int) -> None:
            starts = self.starts[start : stop + 1]
            _scatter(self.ids[start:stop], starts, rows, values, out)

        parallel.for_ranges(part, self.n_grids, work=2 * self.n_grids * len(rows))
        return out

    def outer(self, U: np.ndarray) -> np.ndarray:
        """Each grid's sums are computed and gathered while they and its numbers are in cache."""
        if U.ndim == 2:
            # several grids of a column at a time take less time than several columns of a grid
            return _by_column(self.outer, U, self.shape[0])
        a = self.scale**2 * np.ascontiguousarray(U, dtype=np.float64)
        groups = -(-self.n_grids // _TOGETHER)
        parts = min(_PARTS, groups)
        firsts = [_TOGETHER * (groups * k // parts) for k in range(parts + 1)]
        bounds = np.minimum(firsts, self.n_grids)
        sums = np.zeros((parts, *a.shape))
        largest = int(np.diff(self.starts).max())

        def part(start: int, stop: int) -> None:
            held = np.empty((_TOGETHER, largest))
            for k in range(start, stop):
                first, last = bounds[k], bounds[k + 1]
                sizes = np.diff(self.starts[first : last + 1])
                _around(self.ids[first:last], sizes, a, held, sums[k])

        parallel.for_ranges(part, parts, work=4 * self.n_grids * a.size)
        return sums.sum(axis=0)

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        if weights is None:
            weights = np.ones(self.shape[0])
        return self.scale * self.rmatvec(weights)

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        return meetings(self.ids, self.starts, self.scale**2 * weights, left, right)

    def gram_weights(self, weights: np.ndarray) -> np.ndarray:
        """Few values, within 12 % of those given (or up to 1e-4 of the largest): bins of rows with
        equal weight are counted together.
        """
        largest = weights.max(initial=0.0)
        if largest <= 0 or _are_few(weights):
            return weights
        shares = np.maximum(weights / largest, _SMALLEST)
        levels = np.round(np.log(shares) / np.log(_RATIO))
        return np.where(weights > 0, largest * _RATIO**levels, 0.0)


def _are_few(values: np.ndarray) -> bool:
    """Whether there are at most _FEW different values; most often the first show more."""
    return len(np.unique(values[:1024])) <= _FEW and len(np.unique(values)) <= _FEW


def _by_column(product: Callable[[np.ndarray], np.ndarray], V: np.ndarray, size: int) -> np.ndarray:
    """(size, k) the product with each column of V (n, k)."""
    out = np.empty((size, V.shape[1]))
    for k, column in enumerate(V.T):
        out[:, k] = product(np.ascontiguousarray(column))
    return out


@njit(cache=True, nogil=True)
def _gather(
    ids: np.ndarray,
    grids: np.ndarray,
    starts: np.ndarray,
    w: np.ndarray,
    scale: float,
    out: np.ndarray,
) -> None:
    """out_i <- scale sum_{r in grids} w[starts_r + ids_ri], four grids at a time so that out is
    accessed less often.
    """
    whole = len(grids) - len(grids) % 4
    for k in range(0, whole, 4):
        ra, rb, rc, rd = grids[k], grids[k + 1], grids[k + 2], grids[k + 3]
        a, b, c, d = ids[ra], ids[rb], ids[rc], ids[rd]
        wa = w[starts[ra] :]
        wb = w[starts[rb] :]
        wc = w[starts[rc] :]
        wd = w[starts[rd] :]
        for i in range(len(out)):
            out[i] += (wa[a[i]] + wb[b[i]]) + (wc[c[i]] + wd[d[i]])
    for k in range(whole, len(grids)):
        ra = grids[k]
        a = ids[ra]
        wa = w[starts[ra] :]
        for i in range(len(out)):
            out[i] += wa[a[i]]
    for i in range(len(out)):
        out[i] *= scale


@njit(cache=True, nogil=True)
def _scatter(
    ids: np.ndarray, starts: np.ndarray, rows: np.ndarray, values: np.ndarray, out: np.ndarray
) -> None:
    """out[starts_r + ids[r, rows_t]] <- out[..] + values_t, four grids at a time so that additions
    to one bin do not wait for another's.
    """
    grids = len(ids)
    whole = grids - grids % 4
    for r in range(0, whole, 4):
        a, b, c, d = ids[r], ids[r + 1], ids[r + 2], ids[r + 3]
        ga = out[starts[r] :]
        gb = out[starts[r + 1] :]
        gc = out[starts[r + 2] :]
        gd = out[starts[r + 3] :]
        for t in range(len(rows)):
            i = rows[t]
            v = values[t]
            ga[a[i]] += v
            gb[b[i]] += v
            gc[c[i]] += v
            gd[d[i]] += v
    for r in range(whole, grids):
        a = ids[r]
        ga = out[starts[r] :]
        for t in range(len(rows)):
            ga[a[rows[t]]] += values[t]


@njit(cache=True, nogil=True)
def _around(
    ids: np.ndarray, sizes: np.ndarray, u: np.ndarray, held: np.ndarray, out: np.ndarray
) -> None:
    """out <- out + sum over grids of the bins' sums of u, scattered back to the rows; held: (4,
    most bins) scratch.
    """
    grids = len(ids)
    whole = grids - grids % 4
    ga, gb, gc, gd = held[0], held[1], held[2], held[3]
    for r in range(0, whole, 4):
        a, b, c, d = ids[r], ids[r + 1], ids[r + 2], ids[r + 3]
        for k in range(4):
            held[k, : sizes[r + k]] = 0.0
        for i in range(len(u)):
            for k in range(4):
                held[k, ids[r + k, i]] += u[i]
        for i in range(len(u)):
            out[i] += (ga[a[i]] + gb[b[i]]) + (gc[c[i]] + gd[d[i]])
    for r in range(whole, grids):
        a = ids[r]
        ga[: sizes[r]] = 0.0
        for i in range(len(u)):
            ga[a[i]] += u[i]
        for i in range(len(u)):
            out[i] += ga[a[i]]
