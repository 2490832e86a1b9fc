"""The feature matrix as used by solvers: products, Gram matrices, rows and columns, independent of
storage or computation.

Every reduction over the rows is a sum over `Matrix.parts`, each part a matrix of its own rows:
blocks computed one by one, stored rows in addition to computed ones, or rows on other machines.
Features keep their own type, sums are float64: the duality gap of a float32 sum can't fall below a
few thousandths of the objective.

`DenseMatrix` is the in-memory kind. Its products of float32 or float64 entries have float64 sums,
with one loop over the features each. Threads share rows or columns, never a sum, or sums have a
fixed number of parts: results do not depend on the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from rfx import parallel
from rfx.compiled import njit
from rfx.counters import random_rows
from rfx.losses import Loss, times
from rfx.operators.blocks import block_size, ranges, weighted_gram
from rfx.types import Index

# Seconds for an entry that is read and for one that is computed: only their ratio matters.
READ, COMPUTED = 3e-10, 1.5e-9


@dataclass(frozen=True)
class DenseColumns:
    """The columns of a matrix as rows of an array (D, N)."""

    entries: np.ndarray


@dataclass(frozen=True)
class ListedColumns:
    """The nonzero entries of a matrix by columns: all of them are `value`, and those of column j
    are in rows[ends[j] : ends[j + 1]].
    """

    value: float
    rows: np.ndarray
    ends: np.ndarray


T = TypeVar("T")
_CAST_BYTES = 2 * 2**20
_PARTS = 4
# Rows that stay in cache from one product to the next.
_CACHED = 32
_FAST = {"reassoc", "contract", "nsz", "arcp"}


class Matrix(ABC):
    """An (N, D) feature matrix Z; a kind defines `parts`, `rows` and `columns`, and overrides
    operations that it can do faster.

    shape: (N, D). dtype: of the entries, float32 or float64. cost: seconds per use of an entry.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    cost = READ
    # whether vectors over the rows are arrays in this process, so that an N x N matrix is possible
    rows_here = True
    # the largest magnitude of an entry, if it is known
    bound: float | None = None

    @property
    def computed(self) -> bool:
        """Whether the entries are recomputed at every use, so that frequently used ones should be
        stored.
        """
        return self.cost > READ

    @property
    def exact(self) -> bool:
        """Whether Gram matrices are always sums of float64 products."""
        return self.dtype == np.float64

    @property
    def size_mb(self) -> float:
        """MiB of the entries as an array."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize / 2**20

    @property
    def n_entries(self) -> int:
        """The number of entries that a product reads."""
        return self.shape[0] * self.shape[1]

    # ------------------------------------------------------------------ rows and columns

    def parts(self) -> Iterator[tuple[Index, Matrix]]:
        """(rows, Matrix of these rows): every row in one of them, each valid until the next
        iteration; rows is a slice or an index array.

        A kind with a single part, itself, defines matvec, rmatvec, gram and row_blocks.
        """
        yield slice(0, self.shape[0]), self

    def parts_for(self, V: np.ndarray) -> Iterator[tuple[Index, Matrix]]:
        """The parts for a product with V, which may be smaller for one vector."""
        return self.parts()

    @abstractmethod
    def rows(self, index: Index) -> Matrix:
        """The matrix of some rows, selected by an integer array or a slice."""

    @abstractmethod
    def columns(self, index: Index) -> Matrix:
        """The matrix of some columns, selected by an integer array or a slice."""

    def row_blocks(self) -> Iterator[tuple[Index, np.ndarray]]:
        """(rows, C-contiguous (rows, D) array) for all rows, each valid until the next iteration;
        rows as in `parts`.
        """
        for rows, part in self.parts():
            yield rows, np.ascontiguousarray(part.to_array())

    def column_blocks(self, width: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """(slice of columns, C-contiguous (N, columns) array) for all columns, at most `width` at a
        time, like `row_blocks`.
        """
        n_rows, n_columns = self.shape
        width = min(width or block_size(n_rows, self.dtype), n_columns)
        buffer = np.empty(n_rows * width, self.dtype)
        for columns in ranges(n_columns, width):
            count = columns.stop - columns.start
            out = buffer[: n_rows * count].reshape(n_rows, count)
            yield columns, self.columns(columns).to_array(out)

    def column_lists(self) -> DenseColumns | ListedColumns:
        """The entries for coordinate descent."""
        return DenseColumns(np.ascontiguousarray(self.to_array().T))

    def to_array(self, out: np.ndarray | None = None) -> np.ndarray:
        """All entries, in `out` if given; the matrix's own array, read-only, if it has one."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        for rows, Z in self.row_blocks():
            out[rows] = Z
        return out

    def hold(self, max_mb: float = np.inf) -> Matrix:
        """This matrix in memory if it needs at most `max_mb`, else unchanged."""
        if not self.computed or self.size_mb > max_mb:
            return self
        return DenseMatrix(self.to_array())

    def by_columns(self) -> Matrix:
        """This matrix in memory, in a form with free `column_lists`."""
        out = np.empty(self.shape[::-1], self.dtype)
        for columns, Z in self.column_blocks():
            out[columns] = Z.T
        return DenseMatrix(out.T)

    def draw(self, count: int) -> np.ndarray:
        """The argument of `rows` for `count` of the rows, chosen by `random_rows`."""
        return random_rows(self.shape[0], count)

    def subset(self, count: int) -> tuple[Matrix, np.ndarray]:
        """(`count` of the rows as a matrix, the argument of `rows` and vectors over the rows for
        them), chosen by `draw`.
        """
        chosen = self.draw(count)
        return self.rows(chosen), chosen

    def constant(self, value: float) -> np.ndarray:
        """(N,) the same number for every row."""
        return np.full(self.shape[0], value)

    def gathered(self) -> Matrix:
        """This matrix in the memory of this process."""
        return self.hold()

    def total(self, function: Callable[..., T], *vectors: np.ndarray | None) -> T:
        """function(matrix, *vectors), a sum over the rows: an array or a tuple of them; vectors:
        (N,) or (N, k), or None.

        If the rows are in parts, it is the sum of the results of the function, which must be
        defined in a module, for each of them.
        """
        return function(self, *vectors)

    # ------------------------------------------------------------------ products, in float64

    def matvec(self, W: np.ndarray) -> np.ndarray:
        """Z W: (D,) or (D, k) -> (N,) or (N, k)."""
        out = np.empty((self.shape[0], *W.shape[1:]))
        for rows, part in self.parts_for(W):
            out[rows] = part.matvec(W)
        return out

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        """Z'U: (N,) or (N, k) -> (D,) or (D, k)."""
        out = np.zeros((self.shape[1], *U.shape[1:]))
        for rows, part in self.parts_for(U):
            out += part.rmatvec(U[rows])
        return out

    def normal(self, P: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Z' diag(weights) Z P for P (D,) or (D, k), weights (N,) or None for ones."""
        out = np.zeros(P.shape)
        for rows, part in self.parts_for(P):
            own = None if weights is None else weights[rows]
            if part is self:
                return self.rmatvec(times(self.matvec(P), own))
            out += part.normal(P, own)
        return out

    def outer(self, U: np.ndarray) -> np.ndarray:
        """Z Z'U for U (N,) or (N, k)."""
        return self.matvec(self.rmatvec(U))

    def loss_pass(
        self, W: np.ndarray, loss: Loss, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Z W, sum over rows of loss(Z W, y), its gradient Z' loss'(Z W, y)) in one pass over the
        features.

        W, y: (D,) and (N,), or (D, k) and (N, k); the sum has shape () or (k,).
        """
        F = np.empty((self.shape[0], *W.shape[1:]))
        G = np.zeros(W.shape)
        for rows, part in self.parts_for(W):
            F[rows] = scores = part.matvec(W)
            G += part.rmatvec(loss.derivative(scores, y[rows]))
        return F, loss.value(F, y).sum(axis=0), G

    # ------------------------------------------------------------------ Gram matrices, in float64

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Z_l' diag(weights) Z_l for Z_l the columns `left`, (|left|, |left|), and
        Z_l' diag(weights) Z_r.

        left, right: integer arrays. weights: (N,); zero weights cost nothing. dtype: minimum
        precision of the products.
        """
        columns = np.unique(np.concatenate([left, right]))
        used = np.flatnonzero(weights)
        n_rows, n_columns = self.shape
        own = self if len(columns) == n_columns else self.columns(columns)
        own = own if len(used) == n_rows else own.rows(used)
        at = np.searchsorted(columns, left), np.searchsorted(columns, right)
        square = np.zeros((len(left), len(left)))
        cross = np.zeros((len(left), len(right)))
        for rows, part in own.parts():
            square_of_part, cross_of_part = part.gram(*at, weights[used][rows], dtype)
            square += square_of_part
            cross += cross_of_part
        return square, cross

    def square(
        self, columns: np.ndarray, weights: np.ndarray, dtype: DTypeLike | None = None
    ) -> np.ndarray:
        """Z_c' diag(weights) Z_c for Z_c these columns; the rest as in `gram`."""
        return self.gram(columns, columns[:0], weights, dtype)[0]

    def gram_weights(self, weights: np.ndarray) -> np.ndarray:
        """Row weights (N,) >= 0 close to those given for which `gram` is fast, if an approximate
        metric is enough.
        """
        return weights

    def unscaled(self, weights: np.ndarray) -> tuple[Matrix, np.ndarray]:
        """(Z, weights (N,)) with the same Gram matrix as row weights (N,), where Z has no row
        factors.
        """
        return self, weights

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        """(D,) the diagonal of Z' diag(weights) Z; weights (N,), None for ones."""
        if weights is None:
            weights = np.ones(self.shape[0])
        sums = np.zeros(self.shape[1])
        for rows, Z in self.row_blocks():
            sums += weights[rows] @ np.square(Z, dtype=np.float64)
        return sums


class DenseMatrix(Matrix):
    """An (N, D) array of float32, float64, int8 or int16, in C or F order without a copy; or some
    rows of a C-order one, also without a copy.
    """

    def __init__(self, Z: np.ndarray, index: np.ndarray | None = None) -> None:
        """index: the rows, an integer array, None for all."""
        if not (Z.flags.c_contiguous or (Z.flags.f_contiguous and index is None)):
            Z = np.ascontiguousarray(Z)
        self.Z = Z
        self.index = index
        self.dtype = Z.dtype
        n_rows = len(Z) if index is None else len(index)
        self.shape = (n_rows, Z.shape[1])
        self._by_rows = Z.flags.c_contiguous
        self.cost = READ / 2 if Z.dtype.kind == "i" else READ

    @property
    def _own(self) -> Index:
        """The index of Z for the rows of this matrix."""
        return slice(None) if self.index is None else self.index

    @property
    def _numbers(self) -> np.ndarray:
        """The rows of Z in this matrix, as an array."""
        return np.arange(len(self.Z)) if self.index is None else self.index

    def parts(self) -> Iterator[tuple[Index, Matrix]]:
        if not self._by_rows:
            yield slice(0, self.shape[0]), self
            return
        for rows in ranges(self.shape[0], block_size(self.shape[1], self.dtype)):
            yield rows, self.rows(rows)

    def rows(self, index: Index) -> Matrix:
        if self.index is not None:
            return DenseMatrix(self.Z, self.index[index])
        if isinstance(index, slice) or not self._by_rows:
            return DenseMatrix(self.Z[index])
        return DenseMatrix(self.Z, index)

    def columns(self, index: Index) -> Matrix:
        if not self._by_rows:
            return DenseMatrix(self.Z.T[index].T)
        if self.index is None and not isinstance(index, slice):
            return DenseMatrix(self.Z.take(index, axis=1))
        if isinstance(index, slice):
            return DenseMatrix(np.ascontiguousarray(self.Z[self._own, index]))
        entries = self.Z[self._numbers[:, None], index]
        return DenseMatrix(np.ascontiguousarray(entries))

    def to_array(self, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return self.Z if self.index is None else self.Z[self.index]
        out[...] = self.Z[self._own]
        return out

    def hold(self, max_mb: float = np.inf) -> Matrix:
        if self.index is None or self.size_mb > max_mb:
            return self
        return DenseMatrix(self.Z[self.index])

    def by_columns(self) -> Matrix:
        return super().by_columns() if self._by_rows else self

    def _bounds(self) -> list[int]:
        """The boundaries of the parts of sums over the rows."""
        return [self.shape[0] * k // _PARTS for k in range(_PARTS + 1)]

    def _for_wide(self, function: Callable[[int, slice, np.ndarray], None], n_columns: int) -> None:
        """function(part, rows, these rows in float64), in small parts: for products of several
        columns by BLAS.

        Threads share the parts; a multithreaded BLAS would wait for work while our threads convert
        the next rows.
        """
        size = block_size(self.shape[1], np.float64, _CAST_BYTES)
        bounds = self._bounds()

        def share(start: int, stop: int) -> None:
            buffer = np.empty((min(size, self.shape[0]), self.shape[1]))
            for k in range(start, stop):
                for first in range(bounds[k], bounds[k + 1], size):
                    rows = slice(first, min(first + size, bounds[k + 1]))
                    wide = buffer[: rows.stop - rows.start]
                    chosen = rows if self.index is None else self.index[rows]
                    wide[...] = self.Z[chosen]
                    function(k, rows, wide)

        work = self.n_entries * n_columns
        with parallel.one_blas_thread():
            parallel.for_ranges(share, _PARTS, work=work)

    def matvec(self, W: np.ndarray) -> np.ndarray:
        W = np.ascontiguousarray(W, dtype=np.float64)
        if W.shape[1:] == (1,):
            return self.matvec(W[:, 0])[:, None]
        out = np.zeros((self.shape[0], *W.shape[1:]))
        if W.ndim > 1:

            def multiply(k: int, rows: slice, Z: np.ndarray) -> None:
                np.matmul(Z, W, out=out[rows])

            self._for_wide(multiply, W.shape[1])
            return out
        used = np.flatnonzero(W)
        if not self._by_rows:
            _combine(self.Z.T, used, W[used], out)
        elif len(used):
            _dots(self.Z, self._numbers, W, out)
        return out

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        U = np.ascontiguousarray(U, dtype=np.float64)
        if U.shape[1:] == (1,):
            return self.rmatvec(U[:, 0])[:, None]
        if U.ndim > 1:
            sums = np.zeros((_PARTS, self.shape[1], U.shape[1]))

            def add_products(k: int, rows: slice, Z: np.ndarray) -> None:
                np.add(sums[k], Z.T @ U[rows], out=sums[k])

            self._for_wide(add_products, U.shape[1])
            return sums.sum(axis=0)
        out = np.zeros(self.shape[1])
        if self._by_rows:
            # many rows have a zero for a loss with a margin: they are skipped
            used = np.flatnonzero(U)
            _combine(self.Z, self._numbers[used], U[used], out)
        else:
            _dots(self.Z.T, np.arange(self.shape[1]), U, out)
        return out

    def normal(self, P: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        P = np.ascontiguousarray(P, dtype=np.float64)
        factors = np.ones(self.shape[0]) if weights is None else weights
        if P.shape[1:] == (1,):
            return self.normal(P[:, 0], factors)[:, None]
        sums = np.zeros((_PARTS, *P.shape))
        if P.ndim > 1:

            def add_products(k: int, rows: slice, Z: np.ndarray) -> None:
                F = factors[rows, None] * (Z @ P)
                np.add(sums[k], Z.T @ F, out=sums[k])

            self._for_wide(add_products, 2 * P.shape[1])
            return sums.sum(axis=0)
        if not self._by_rows:
            return self.rmatvec(factors * self.matvec(P))
        rows = self._numbers
        bounds = self._bounds()

        def part(start: int, stop: int) -> None:
            for k in range(start, stop):
                own = slice(bounds[k], bounds[k + 1])
                _add_normal(self.Z, rows[own], P, factors[own], sums[k])

        parallel.for_ranges(part, _PARTS, work=2 * len(rows) * len(P))
        return sums.sum(axis=0)

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        used = np.flatnonzero(weights)
        return weighted_gram(self.Z, self._numbers[used], weights[used], left, right, dtype)


def _dots(Z: np.ndarray, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """out <- Z[rows] w for Z in C order."""

    def part(start: int, stop: int) -> None:
        dot_rows(Z, rows[start:stop], w, out[start:stop])

    parallel.for_ranges(part, len(rows), 16, work=len(rows) * len(w))


def _combine(Z: np.ndarray, rows: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """out <- out + Z[rows]' values for Z in C order."""

    def part(start: int, stop: int) -> None:
        add_rows(Z, rows, values, out, start, stop)

    parallel.for_ranges(part, len(out), 256, work=len(rows) * len(out))


@njit(cache=True, nogil=True, fastmath=_FAST)
def dot_rows(Z: np.ndarray, rows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """out_i <- sum_j Z[rows_i, j] w_j, two rows at a time so that w is read half as often; for an
    odd number, the last is paired with itself.

    A separate loop for the last row would add its terms in another order: its sum would depend on
    the number of rows before it.
    """
    count = len(rows)
    n_columns = Z.shape[1]
    for i in range(0, count, 2):
        k = min(i + 1, count - 1)
        a = Z[rows[i]]
        b = Z[rows[k]]
        first, second = 0.0, 0.0
        for j in range(n_columns):
            first += a[j] * w[j]
            second += b[j] * w[j]
        out[k] = second
        out[i] = first


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_rows(
    Z: np.ndarray, rows: np.ndarray, u: np.ndarray, g: np.ndarray, start: int, stop: int
) -> None:
    """g_j <- g_j + sum_i u_i Z[rows_i, j] for start <= j < stop.

    Four rows at a time and so many columns that their part of g fits into the first-level cache.
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
            last = u[t]
            z = Z[rows[t], low:high]
            for j in range(high - low):
                part[j] += last * z[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_normal(
    Z: np.ndarray, rows: np.ndarray, p: np.ndarray, weights: np.ndarray, g: np.ndarray
) -> None:
    """g <- g + Z_r' diag(weights) Z_r p for Z_r = Z[rows], some rows at a time, which are read from
    memory once.
    """
    f = np.empty(_CACHED)
    for start in range(0, len(rows), _CACHED):
        some = rows[start : start + _CACHED]
        dot_rows(Z, some, p, f)
        for i in range(len(some)):
            f[i] *= weights[start + i]
        add_rows(Z, some, f, g, 0, len(g))
