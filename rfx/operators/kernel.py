"""The matrix of an exact kernel's values among N rows, as an operator that stores entries only on
request.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rfx import device, kernels
from rfx.parallel import matmul
from rfx.types import Inputs

# Rows and columns of one tile of values, which is computed, used and discarded.
_TILE = 2048


class KernelMatrix:
    """K with K[i, j] = k(x_i, x_j), symmetric and positive semidefinite.

    name, params: the kernel. X: (N, d) rows, dense or CSR. shape: (N, N). diagonal: (N,) float64.
    factors: multiply rows and columns, (N,), None for ones; prepared rows do not include them.
    """

    factors: np.ndarray | None = None

    def __init__(self, name: str, X: Inputs, params: dict[str, Any]) -> None:
        self.name, self.X, self.params = name, X, params
        self.shape = (X.shape[0], X.shape[0])
        self.diagonal = kernels.diagonal(name, X, params)
        self._prepared: kernels.Prepared | None = None
        self._values: np.ndarray | None = None
        self._placed: device.KernelRows | None = None

    def part(self, rows: np.ndarray) -> KernelMatrix:
        """The values among some rows; those of few rows are taken from all of them."""
        found = copy.copy(self)
        found.X, found.shape, found.diagonal = self.X[rows], (len(rows),) * 2, self.diagonal[rows]
        found._prepared = found._placed = None
        if self.shape[0] <= _TILE:
            if self._values is None:
                self._values = self.to_array(np.float64)
            found._values = self._values[np.ix_(rows, rows)]
        return found

    def prepared(self, dtype: DTypeLike = np.float64) -> kernels.Prepared:
        """The rows, prepared for blocks of values in float32 or float64; cached."""
        if self._prepared is None or (dtype == np.float64 and self._prepared.dtype != dtype):
            self._prepared = kernels.prepare(self.name, self.X, self.params, dtype)
        return self._prepared.astype(dtype)

    def on_device(self) -> device.KernelRows | None:
        """The rows on the accelerator in use, if there is one for the kernel; cached."""
        if device.current() is None:
            return None
        if self._placed is None:
            self._placed = self.prepared(np.float64).on_device()
        return self._placed

    def matvec(self, V: np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
        """K V in float64 for V (N,) or (N, k), with values in `dtype`; a tile above the diagonal is
        also used for its mirror image.
        """
        if (placed := self.on_device()) is not None:
            return placed.times(placed.rows, V)
        rows, n_rows, shape = self.prepared(dtype), len(V), V.shape
        # a single column as a vector: that uses another BLAS routine, several times as fast
        V = np.ascontiguousarray(V.ravel() if V.size == n_rows else V, dtype=dtype)
        product = np.zeros(V.shape)
        buffer = np.empty(min(_TILE, n_rows) ** 2, dtype)
        for i in range(0, n_rows, _TILE):
            left = rows.take(slice(i, i + _TILE))
            for j in range(i, n_rows, _TILE):
                right = left if i == j else rows.take(slice(j, j + _TILE))
                K = buffer[: left.n_rows * right.n_rows].reshape(left.n_rows, right.n_rows)
                kernels.block(self.name, left, right, self.params, out=K)
                product[i : i + _TILE] += matmul(K, V[j : j + _TILE])
                if i != j:
                    product[j : j + _TILE] += matmul(K.T, V[i : i + _TILE])
        return product.reshape(shape)

    def upper(self, dtype: DTypeLike) -> np.ndarray:
        """(N, N) array with the values on and above the diagonal; entries below are arbitrary."""
        n_rows, rows = self.shape[0], self.prepared(dtype)
        K = np.empty(self.shape, dtype)
        step = max(64, min(_TILE, (1 << 22) // max(1, n_rows)))
        for start in range(0, n_rows, step):
            left, right = rows.take(slice(start, start + step)), rows.take(slice(start, None))
            kernels.block(self.name, left, right, self.params, out=K[start : start + step, start:])
        return K

    def to_array(self, dtype: DTypeLike) -> np.ndarray:
        """All values (N, N)."""
        if self._values is not None:
            return self._values.astype(dtype)
        rows = self.prepared(dtype)
        return kernels.block(self.name, rows, rows, self.params)


class ScaledKernel(KernelMatrix):
    """S K S with S = diag(factors), factors (N,) above 0: the kernel matrix of weighted least
    squares.
    """

    factors: np.ndarray

    def __init__(self, name: str, X: Inputs, params: dict[str, Any], factors: np.ndarray) -> None:
        super().__init__(name, X, params)
        self.factors = np.asarray(factors, np.float64)
        self.diagonal = self.diagonal * self.factors**2

    def matvec(self, V: np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
        return (super().matvec((V.T * self.factors).T, dtype).T * self.factors).T

    def upper(self, dtype: DTypeLike) -> np.ndarray:
        return self._scaled(super().upper(dtype))

    def to_array(self, dtype: DTypeLike) -> np.ndarray:
        return self._scaled(super().to_array(dtype))

    def _scaled(self, K: np.ndarray) -> np.ndarray:
        factors = self.factors.astype(K.dtype)
        K *= factors[:, None]
        K *= factors
        return K
