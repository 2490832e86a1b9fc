"""A matrix with scaled rows, as required by weighted least squares: Z becomes S Z, the targets S
y.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch

import numpy as np
from numpy.typing import DTypeLike

from rfx.operators.accelerated import DeviceMatrix
from rfx.operators.matrix import Matrix
from rfx.types import Index


class ScaledRows(Matrix):
    """S Z for a matrix Z (N, D) and S = diag(factors), factors (N,) above 0. Nothing is copied:
    products are scaled. dtype: of the entries, by default that of Z, which may be integers.
    """

    def __init__(self, inner: Matrix, factors: np.ndarray, dtype: np.dtype | None = None) -> None:
        self.inner = inner
        self.factors = np.asarray(factors, np.float64)
        self.shape = inner.shape
        self.dtype = dtype or inner.dtype
        self.cost = inner.cost

    def parts(self) -> Iterator[tuple[Index, Matrix]]:
        for rows, part in self.inner.parts():
            yield rows, ScaledRows(part, self.factors[rows], self.dtype)

    def rows(self, index: Index) -> Matrix:
        return ScaledRows(self.inner.rows(index), self.factors[index], self.dtype)

    def columns(self, index: Index) -> Matrix:
        return ScaledRows(self.inner.columns(index), self.factors, self.dtype)

    def unscaled(self, weights: np.ndarray) -> tuple[Matrix, np.ndarray]:
        """(Z, weights (N,) with which Z'diag(weights) Z is (S Z)'diag(`weights`) S Z)."""
        return self.inner, weights * self.factors**2

    def row_blocks(self) -> Iterator[tuple[Index, np.ndarray]]:
        for rows, Z in self.inner.row_blocks():
            yield rows, Z * self.factors[rows, None].astype(self.dtype)

    def matvec(self, W: np.ndarray) -> np.ndarray:
        return _times(self.factors, self.inner.matvec(W))

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        return self.inner.rmatvec(_times(self.factors, U))

    def normal(self, P: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return self.inner.normal(P, self._squared(weights))

    def outer(self, U: np.ndarray) -> np.ndarray:
        return _times(self.factors, self.inner.outer(_times(self.factors, U)))

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.gram(left, right, self._squared(weights), dtype or self.dtype)

    def gram_weights(self, weights: np.ndarray) -> np.ndarray:
        return self.inner.gram_weights(self._squared(weights)) / self.factors**2

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        return self.inner.squares(self._squared(weights))

    def _squared(self, weights: np.ndarray | None) -> np.ndarray:
        return self.factors**2 if weights is None else weights * self.factors**2


@singledispatch
def scaled_rows(Z: Matrix, factors: np.ndarray) -> Matrix:
    """S Z for S = diag(factors), factors (N,) above 0.

    A matrix with remote rows has its own form, registered where it is defined.
    """
    return ScaledRows(Z, factors)


scaled_rows.register(DeviceMatrix, DeviceMatrix.scaled)  # type: ignore[arg-type]


def _times(factors: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (values.T * factors).T
