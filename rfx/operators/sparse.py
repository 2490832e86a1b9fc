"""A feature matrix with few nonzero entries, stored as CSR: time and memory of products are
proportional to these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from rfx.operators.blocks import GramOrPair, block_size, ranges
from rfx.operators.matrix import Matrix
from rfx.types import Index


class SparseMatrix(Matrix):
    """An (N, D) CSR matrix with entries of `dtype`, stored in float64 for sums in float64."""

    def __init__(self, Z: sp.csr_matrix, dtype: DTypeLike) -> None:
        self.Z, self.shape, self.dtype = (
            sp.csr_matrix(Z, dtype=np.float64),
            Z.shape,
            np.dtype(dtype),
        )

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
        right: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        dtype: DTypeLike | None = None,
    ) -> GramOrPair:
        first = self.Z[:, left]
        weighted = (
            first if weights is None else sp.diags_array(np.asarray(weights, np.float64)) @ first
        )
        square = (weighted.T @ first).toarray()
        return square if right is None else (square, (weighted.T @ self.Z[:, right]).toarray())

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        Z = self.Z.multiply(self.Z)
        return (
            np.asarray(Z.sum(axis=0)).ravel()
            if weights is None
            else Z.T @ np.asarray(weights, np.float64)
        )
