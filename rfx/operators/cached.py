"""Matrices that are recomputed at every use, with some rows or columns cached in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch

import numpy as np
from numpy.typing import DTypeLike

from rfx.operators.blocks import GramOrPair
from rfx.operators.coded import coded
from rfx.operators.matrix import DenseMatrix, Matrix
from rfx.types import Index


class CachedColumns(Matrix):
    """A matrix with some columns, a sorted integer array, in memory and all others zero."""

    def __init__(self, inner: Matrix, columns: np.ndarray) -> None:
        self.shape, self.dtype, self.held = inner.shape, inner.dtype, columns
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
        return self._matrix.matvec(self._narrow(W))

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        return self._widened(self._matrix.rmatvec(U))

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        dtype: DTypeLike | None = None,
    ) -> GramOrPair:
        return self._matrix.gram(
            self._at[left], None if right is None else self._at[right], weights, dtype
        )

    def _narrow(self, W: np.ndarray) -> np.ndarray:
        return np.concatenate([W[self.held], np.zeros((1, *W.shape[1:]))])

    def _widened(self, G: np.ndarray) -> np.ndarray:
        out = np.zeros((self.shape[1], *G.shape[1:]))
        out[self.held] = G[:-1]
        return out


class SplitRows(Matrix):
    """Rows from several matrices with the same columns."""

    def __init__(self, pieces: Iterable[tuple[np.ndarray, Matrix]]) -> None:
        """pieces: (row numbers, matrix of these rows), with every row in one of them; computed
        ones, which need more memory, come first.
        """
        self.pieces = sorted(
            [(np.asarray(numbers), Z) for numbers, Z in pieces if len(numbers)],
            key=lambda piece: not piece[1].computed,
        )
        matrices = [Z for _, Z in self.pieces]
        n_rows = sum(Z.shape[0] for Z in matrices)
        self.shape, self.dtype = (n_rows, matrices[0].shape[1]), matrices[0].dtype
        self.cost = sum(Z.cost * Z.shape[0] for Z in matrices) / n_rows
        self._piece, self._place = np.empty(n_rows, np.int8), np.empty(n_rows, np.intp)
        for k, (numbers, _) in enumerate(self.pieces):
            self._piece[numbers], self._place[numbers] = k, np.arange(len(numbers))

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
        piece, place = self._piece[index], self._place[index]
        chosen = [np.flatnonzero(piece == k) for k in range(len(self.pieces))]
        if not len(piece):
            return self.pieces[0][1].rows(place)
        return SplitRows([(own, Z.rows(place[own])) for own, (_, Z) in zip(chosen, self.pieces)])

    def columns(self, index: Index) -> Matrix:
        return SplitRows([(numbers, Z.columns(index)) for numbers, Z in self.pieces])


@singledispatch
def hold_part(Z: Matrix, max_mb: float, kind: DTypeLike | None = None) -> Matrix:
    """Z with as many of its first rows in memory as fit into `max_mb`; Z itself if it is in memory
    already, or none fits.

    kind: int8 or int16 for rows as codes (rfx.operators.coded); None for features. A matrix with
    remote rows has its own form, registered where it is defined.
    """
    n_rows, row_bytes = Z.shape[0], Z.shape[1] * np.dtype(kind or Z.dtype).itemsize
    count = min(n_rows, int(max_mb * 2**20 / max(1, row_bytes)))
    if not Z.computed or not count:
        return Z
    first = Z.rows(slice(0, count))
    stored = first.hold() if kind is None else coded(first, kind)
    if count == n_rows:
        return stored
    rest = np.arange(count, n_rows), Z.rows(slice(count, n_rows))
    return SplitRows([(np.arange(count), stored), rest])
