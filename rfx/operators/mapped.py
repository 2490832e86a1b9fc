"""Features of a map that are recomputed at every use, cached, or stored as small integers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from rfx import device, parallel
from rfx.compiled import njit
from rfx.operators.blocks import block_size, default_memory_mb, ranges
from rfx.operators.matrix import COMPUTED, DenseMatrix, Matrix
from rfx.operators.scaled import ScaledRows
from rfx.operators.sparse import SparseMatrix
from rfx.types import Index, Inputs

# ----------------------------------------------------------------------
# Features of a map, recomputed in blocks of rows at every use.

_DENSE_BYTES = 64 * 2**20
# The first number of MiB that was too large, of which a message tells.
_told: list[float] = []
# Features computed at a time for one vector, so that they are read from the cache, and the minimum
# number of their rows.
_CACHED_BYTES = 4 * 2**20
_LEAST_ROWS = 64


class Features(Protocol):
    """A feature map as required by a matrix, such as those of `rfx.features`."""

    @property
    def n_features(self) -> int:
        """D."""

    @property
    def dtype(self) -> np.dtype:
        """The type of the features."""

    def transform(self, X: Inputs, out: np.ndarray | None = None) -> np.ndarray:
        """(n, D) features of rows X (n, d), in `out` if given."""

    def select(self, indices: Index) -> Features:
        """The map of these features."""


class MapMatrix(Matrix):
    """scale * feature_map(X) for a map with n_features, dtype, transform(X, out) and
    select(columns).

    X: (N, d) array or CSR. block: rows computed at a time, by default as many as need 32 MiB.
    """

    cost = COMPUTED

    def __init__(
        self, feature_map: Features, X: Inputs, scale: float = 1.0, block: int | None = None
    ) -> None:
        self.map = feature_map
        self.X = dense(X, feature_map.dtype)
        self.scale = scale
        self.shape = (X.shape[0], feature_map.n_features)
        self.dtype = feature_map.dtype
        bound = getattr(feature_map, "bound", None)
        self.bound = None if bound is None else bound * abs(scale)
        self.block = block or block_size(self.shape[1], self.dtype)

    def parts(self) -> Iterator[tuple[Index, Matrix]]:
        return self._parts(self.block)

    def parts_for(self, V: np.ndarray) -> Iterator[tuple[Index, Matrix]]:
        """For one vector, of rows whose features stay in cache."""
        if V.ndim > 1:
            return self._parts(self.block)
        row_bytes = self.shape[1] * self.dtype.itemsize
        rows = max(_LEAST_ROWS, _CACHED_BYTES // row_bytes)
        return self._parts(min(rows, self.block))

    def _parts(self, block: int) -> Iterator[tuple[Index, Matrix]]:
        n_rows, n_features = self.shape
        buffer = np.empty((min(block, n_rows), n_features), self.dtype)
        for rows in ranges(n_rows, block):
            out = buffer[: rows.stop - rows.start]
            yield rows, DenseMatrix(self._features(rows, out))

    def _features(self, rows: Index, out: np.ndarray) -> np.ndarray:
        self.map.transform(self.X[rows], out=out)
        if self.scale != 1.0:
            scale = self.dtype.type(self.scale)

            def part(start: int, stop: int) -> None:
                own = out[start:stop]
                np.multiply(own, scale, out=own)

            parallel.for_ranges(part, len(out), 64, work=out.size)
        return out

    def rows(self, index: Index) -> Matrix:
        return MapMatrix(self.map, self.X[index], self.scale, self.block)

    def columns(self, index: Index) -> Matrix:
        return MapMatrix(self.map.select(index), self.X, self.scale)

    def to_array(self, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(self.shape, self.dtype) if out is None else out
        for rows in ranges(self.shape[0], self.block):
            self._features(rows, out[rows])
        return out

    def matvec(self, W: np.ndarray) -> np.ndarray:
        if W.ndim == 1 and np.count_nonzero(W) < len(W):
            used = np.flatnonzero(W)
            if not len(used):
                return np.zeros(self.shape[0])
            return self.columns(used).matvec(W[used])
        return super().matvec(W)

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        if U.ndim == 1 and np.count_nonzero(U) < len(U):
            used = np.flatnonzero(U)
            return self.rows(used).rmatvec(U[used])
        return super().rmatvec(U)


@singledispatch
def computed(
    X: Inputs, feature_map: Features, scale: float = 1.0, most_mb: float = np.inf
) -> Matrix:
    """scale * feature_map(X), recomputed at every use: here, or where the parts of X are.

    most_mb: MiB of it that may be stored in one place by workers.
    """
    return MapMatrix(feature_map, X, scale)


def feature_matrix(
    feature_map: Features,
    X: Inputs,
    scale: float = 1.0,
    max_mb: float | None = None,
    worth_mb: float = np.inf,
) -> Matrix:
    """scale * feature_map(X), in memory if it needs less than `max_mb` (by default a part of the
    free memory), else recomputed.

    Sparse features of sparse rows are stored as CSR; those of rows in parts stay with the parts.
    worth_mb: the maximum worth storing, if a solver stores part of it in its own way.
    """
    few = feature_map.sparse_features(X) if hasattr(feature_map, "sparse_features") else None
    if few is not None:
        return SparseMatrix(few * scale, feature_map.dtype)
    Z = computed(X, feature_map, scale, np.inf if max_mb is None else max_mb)
    if not Z.rows_here:
        return Z.hold(worth_mb)
    if device.current() is not None:
        return Z
    max_mb = told_memory_mb(Z.size_mb) if max_mb is None else max_mb
    return Z.hold(min(worth_mb, max_mb))


def told_memory_mb(needed: float) -> float:
    """`default_memory_mb`, with a message, once, if it is less than the features need."""
    limit = default_memory_mb()
    if needed > limit and not _told:
        message = (
            "the features need %s MiB, but the limit is %s, a third of the free memory (see"
            " --max-memory)"
        )
        _told.append(needed)
        logging.getLogger(__name__).warning(message, f"{needed:,.0f}", f"{limit:,.0f}")
    return limit


def dense(X: Inputs, dtype: DTypeLike = np.float64) -> Inputs:
    """X, as an array of that type if it is sparse and that needs little memory: products with
    sparse rows are far slower.
    """
    if not sp.issparse(X):
        return X
    n_rows, n_columns = X.shape
    size = n_rows * n_columns * np.dtype(dtype).itemsize
    if size > max(_DENSE_BYTES, X.nnz * 12):
        return X
    return X.astype(dtype).toarray()


# ----------------------------------------------------------------------
# Features in memory as 8-bit or 16-bit integers with a factor per row: two or four times as many
# rows fit, and reading is faster.
#
# The error of a code is at most half a unit and behaves randomly in sums over features or rows. A
# solution is found with codes; its quality is measured with the features themselves.

# the type of codes
Kind: TypeAlias = type[np.int8] | type[np.int16]
# MiB of features above which computing codes takes less time than new memory.
WORTH_MB = 1024
_SAMPLE = 64


def code_type(Z: Matrix, error: float) -> Kind | None:
    """The smallest type of codes that changes no row of Z by more than the square root of `error`
    in total; None if there is none.

    It is determined from 64 random rows.
    """
    if Z.exact:
        return None
    sample, _ = Z.subset(_SAMPLE)
    largest = np.abs(sample.to_array()).max(initial=0.0)
    for kind in (np.int8, np.int16):
        # errors are uniform within half a unit
        unit = float(largest) / np.iinfo(kind).max
        if Z.shape[1] * unit**2 / 12 <= error:
            return kind
    return None


def coded(Z: Matrix, kind: DTypeLike) -> ScaledRows:
    """Z as codes of that type, in memory."""
    codes = np.empty(Z.shape, kind)
    units = np.empty(Z.shape[0], np.float32)
    limit = np.float32(np.iinfo(codes.dtype).max)
    numbers = np.arange(Z.shape[0])

    def part(first: int, last: int) -> None:
        for rows, block in Z.rows(slice(first, last)).row_blocks():
            _encode(block, numbers[first:last][rows], limit, codes, units)

    parallel.for_ranges(part, len(numbers), smallest=256)
    return ScaledRows(DenseMatrix(codes), units, Z.dtype)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp", "nnan"})
def _encode(
    Z: np.ndarray, places: np.ndarray, limit: np.float32, codes: np.ndarray, units: np.ndarray
) -> None:
    half = limit / (limit + limit)
    for i in range(len(Z)):
        z = Z[i]
        row = codes[places[i]]
        largest = limit - limit
        for j in range(len(z)):
            largest = max(largest, abs(z[j]))
        units[places[i]] = largest / limit
        factor = limit / largest if largest > 0 else largest
        for j in range(len(z)):
            row[j] = np.int32(np.floor(z[j] * factor + half))


# ----------------------------------------------------------------------
# Matrices that are recomputed at every use, with some rows or columns cached in memory.


class CachedColumns(Matrix):
    """A matrix with some columns, a sorted integer array, in memory and all others zero."""

    def __init__(self, inner: Matrix, columns: np.ndarray) -> None:
        self.shape = inner.shape
        self.dtype = inner.dtype
        self.held = columns
        # the last column is zero: it represents all columns not stored
        Z = np.zeros((self.shape[0], len(columns) + 1), self.dtype)
        self._at = np.full(self.shape[1], len(columns))
        self._at[columns] = np.arange(len(columns))
        for rows, block in inner.columns(columns).row_blocks():
            Z[rows, :-1] = block
        self._matrix = DenseMatrix(Z)

    def rows(self, index: Index) -> Matrix:
        return DenseMatrix(self._matrix.Z[index].take(self._at, axis=1))

    def columns(self, index: Index) -> Matrix:
        return self._matrix.columns(self._at[index])

    def row_blocks(self) -> Iterator[tuple[Index, np.ndarray]]:
        for rows, Z in self._matrix.row_blocks():
            yield rows, Z.take(self._at, axis=1)

    def matvec(self, W: np.ndarray) -> np.ndarray:
        of_others = np.zeros((1, *W.shape[1:]))
        return self._matrix.matvec(np.concatenate([W[self.held], of_others]))

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        out = np.zeros((self.shape[1], *U.shape[1:]))
        out[self.held] = self._matrix.rmatvec(U)[:-1]
        return out

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._matrix.gram(self._at[left], self._at[right], weights, dtype)


class SplitRows(Matrix):
    """Rows from several matrices with the same columns."""

    def __init__(self, pieces: Iterable[tuple[np.ndarray, Matrix]]) -> None:
        """pieces: (row numbers, matrix of these rows), with every row in one of them; computed
        ones, which need more memory, come first.
        """
        found = [(np.asarray(numbers), Z) for numbers, Z in pieces if len(numbers)]
        self.pieces = sorted(found, key=lambda piece: not piece[1].computed)
        matrices = [Z for _, Z in self.pieces]
        n_rows = sum(Z.shape[0] for Z in matrices)
        self.shape = (n_rows, matrices[0].shape[1])
        self.dtype = matrices[0].dtype
        self.cost = sum(Z.cost * Z.shape[0] for Z in matrices) / n_rows
        self._piece = np.empty(n_rows, np.int8)
        self._place = np.empty(n_rows, np.intp)
        for k, (numbers, _) in enumerate(self.pieces):
            self._piece[numbers] = k
            self._place[numbers] = np.arange(len(numbers))

    @property
    def computed(self) -> bool:
        return any(Z.computed for _, Z in self.pieces)

    def parts(self) -> Iterator[tuple[Index, Matrix]]:
        for numbers, Z in self.pieces:
            for rows, part in Z.parts() if Z.computed else [(slice(None), Z)]:
                yield numbers[rows], part

    def row_blocks(self) -> Iterator[tuple[Index, np.ndarray]]:
        for numbers, Z in self.pieces:
            for rows, block in Z.row_blocks():
                yield numbers[rows], block

    def rows(self, index: Index) -> Matrix:
        piece = self._piece[index]
        place = self._place[index]
        matrices = [Z for _, Z in self.pieces]
        if not len(piece):
            return matrices[0].rows(place)
        chosen = [np.flatnonzero(piece == k) for k in range(len(matrices))]
        return SplitRows([(own, Z.rows(place[own])) for own, Z in zip(chosen, matrices)])

    def columns(self, index: Index) -> Matrix:
        return SplitRows([(numbers, Z.columns(index)) for numbers, Z in self.pieces])


@singledispatch
def hold_part(Z: Matrix, max_mb: float, kind: DTypeLike | None = None) -> Matrix:
    """Z with as many of its first rows in memory as fit into `max_mb`; Z itself if it is in memory
    already, or none fits.

    kind: int8 or int16 for rows as codes (rfx.operators.mapped); None for features. A matrix with
    remote rows has its own form, registered where it is defined.
    """
    n_rows, n_columns = Z.shape
    row_bytes = n_columns * np.dtype(kind or Z.dtype).itemsize
    count = min(n_rows, int(max_mb * 2**20 / max(1, row_bytes)))
    if not Z.computed or not count:
        return Z
    first = Z.rows(slice(0, count))
    stored = first.hold() if kind is None else coded(first, kind)
    if count == n_rows:
        return stored
    rest = np.arange(count, n_rows), Z.rows(slice(count, n_rows))
    return SplitRows([(np.arange(count), stored), rest])
