"""Feature matrices with few nonzero entries, and matrices of signs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from rfx.operators.blocks import block_size, ranges
from rfx.operators.matrix import DenseMatrix, Matrix
from rfx.types import Index

# ----------------------------------------------------------------------
# A feature matrix with few nonzero entries, stored as CSR: time and memory of products are
# proportional to these.


class SparseMatrix(Matrix):
    """An (N, D) CSR matrix with entries of `dtype`, stored in float64 for sums in float64."""

    def __init__(self, Z: sp.csr_matrix, dtype: DTypeLike) -> None:
        self.Z = sp.csr_matrix(Z, dtype=np.float64)
        self.shape = Z.shape
        self.dtype = np.dtype(dtype)

    @property
    def n_entries(self) -> int:
        return self.Z.nnz

    def rows(self, index: Index) -> Matrix:
        return SparseMatrix(self.Z[index], self.dtype)

    def columns(self, index: Index) -> Matrix:
        return SparseMatrix(self.Z[:, index], self.dtype)

    def row_blocks(self) -> Iterator[tuple[Index, np.ndarray]]:
        for rows in ranges(self.shape[0], block_size(self.shape[1], self.dtype)):
            yield rows, self.Z[rows].astype(self.dtype).toarray()

    def to_csr(self) -> sp.csr_matrix:
        """The matrix itself, in float64."""
        return self.Z

    def matvec(self, W: np.ndarray) -> np.ndarray:
        return self.Z @ np.asarray(W, np.float64)

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        return self.Z.T @ np.asarray(U, np.float64)

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        Z = self.Z[:, left]
        diagonal = sp.diags_array(np.asarray(weights, np.float64))
        weighted = (diagonal @ Z).T
        square = weighted @ Z
        cross = weighted @ self.Z[:, right]
        return square.toarray(), cross.toarray()

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        squares = self.Z.multiply(self.Z)
        if weights is None:
            return np.asarray(squares.sum(axis=0)).ravel()
        return squares.T @ np.asarray(weights, np.float64)


# ----------------------------------------------------------------------
# Signs +-1 by columns, with added columns: the features found so far by boosting.

# The maximum columns of a Gram matrix for which products with all columns are faster.
_FEW = 4


class SignColumns(DenseMatrix):
    """An (N, D) matrix of entries +-1; D grows by `append`, copying only when the capacity doubles.

    Gram matrices whose weights are all one number, or zero, are exact in float32 too: sums of
    integers. Signs of one byte do not help: they save a tenth of the time of a training (cod-rna,
    30,000 rows, 50 steps).
    """

    def __init__(self, n_rows: int) -> None:
        self._columns = np.empty((16, n_rows), np.float32)
        super().__init__(self._columns[:0].T)

    def append(self, signs: np.ndarray) -> None:
        """Add the columns of signs (N, k), each entry +1 or -1."""
        count = self.shape[1]
        size = count + signs.shape[1]
        if size > len(self._columns):
            capacity = max(size, 2 * len(self._columns))
            grown = np.empty((capacity, self.shape[0]), np.float32)
            grown[:count] = self._columns[:count]
            self._columns = grown
        self._columns[count:size] = signs.T
        super().__init__(self._columns[:size].T)

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        if len(left) > _FEW or not len(left):
            return super().gram(left, right, weights, dtype)
        columns = [self.Z[:, column] for column in left]
        products = np.stack([self.rmatvec(weights * column) for column in columns])
        return products[:, left], products[:, right]

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        total = self.shape[0] if weights is None else np.sum(weights)
        return np.full(self.shape[1], float(total))
