"""Features of a map, recomputed in blocks of rows at every use."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from rfx import device, parallel
from rfx.data.rows import Rows
from rfx.losses import Loss
from rfx.operators.blocks import block_size, default_memory_mb, ranges
from rfx.operators.matrix import COMPUTED, DenseMatrix, Matrix
from rfx.operators.sparse import SparseMatrix
from rfx.types import Index, Inputs

_DENSE_BYTES = 64 * 2**20
# The first number of MiB that was too large, of which a message tells.
_told: list[float] = []
# Features computed at a time for one vector, so that they are read from the cache, and the minimum
# number of their rows.
_CACHED_BYTES, _LEAST_ROWS = 4 * 2**20, 64


class Features(Protocol):
    """A feature map as required by a matrix, such as those of `rfx.features`."""

    @property
    def n_features(self) -> int: ...

    @property
    def dtype(self) -> np.dtype: ...

    def transform(self, X: Inputs, out: np.ndarray | None = None) -> np.ndarray: ...

    def select(self, indices: Index) -> Features: ...


class MapMatrix(Matrix):
    """scale * feature_map(X) for a map with n_features, dtype, transform(X, out) and
    select(columns).

    X: (N, d) array or CSR. block: rows computed at a time, by default as many as need 32 MiB.
    """

    cost = COMPUTED

    def __init__(
        self, feature_map: Features, X: Inputs, scale: float = 1.0, block: int | None = None
    ) -> None:
        self.map, self.X, self.scale = feature_map, dense(X, feature_map.dtype), scale
        self.shape, self.dtype = (X.shape[0], feature_map.n_features), feature_map.dtype
        self.block = block or block_size(self.shape[1], self.dtype)

    def parts(self) -> Iterator[tuple[Index, Matrix]]:
        buffer = np.empty((min(self.block, self.shape[0]), self.shape[1]), self.dtype)
        for rows in ranges(self.shape[0], self.block):
            yield rows, DenseMatrix(self._features(rows, buffer[: rows.stop - rows.start]))

    def _features(self, rows: Index, out: np.ndarray) -> np.ndarray:
        self.map.transform(self.X[rows], out=out)
        if self.scale != 1.0:
            scale = self.dtype.type(self.scale)
            parallel.for_ranges(
                lambda a, b: np.multiply(out[a:b], scale, out=out[a:b]), len(out), 64, work=out.size
            )
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
            return self.columns(used).matvec(W[used]) if len(used) else np.zeros(self.shape[0])
        return Matrix.matvec(self._for(W), W)

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        if U.ndim == 1 and np.count_nonzero(U) < len(U):
            used = np.flatnonzero(U)
            return self.rows(used).rmatvec(U[used])
        return Matrix.rmatvec(self._for(U), U)

    def normal(self, P: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return Matrix.normal(self._for(P), P, weights)

    def loss_pass(
        self, W: np.ndarray, loss: Loss, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return Matrix.loss_pass(self._for(W), W, loss, y)

    def _for(self, V: np.ndarray) -> Matrix:
        """This matrix for a product with V: for one vector with blocks that stay in cache."""
        rows = max(_LEAST_ROWS, _CACHED_BYTES // (self.shape[1] * self.dtype.itemsize))
        return (
            self if V.ndim > 1 else MapMatrix(self.map, self.X, self.scale, min(rows, self.block))
        )


def computed(feature_map: Features, X: Inputs, scale: float = 1.0) -> Matrix:
    """scale * feature_map(X), recomputed at every use: here, or where the parts of X are."""
    return (
        X.features(feature_map, scale) if isinstance(X, Rows) else MapMatrix(feature_map, X, scale)
    )


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
    if isinstance(X, Rows):
        return X.features(feature_map, scale, np.inf if max_mb is None else max_mb).hold(worth_mb)
    few = feature_map.sparse_features(X) if hasattr(feature_map, "sparse_features") else None
    if few is not None:
        return SparseMatrix(few * scale, feature_map.dtype)
    Z = MapMatrix(feature_map, X, scale)
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


def dense(X: Inputs, dtype: DTypeLike = np.float64) -> Any:
    """X, as an array of that type if it is sparse and that needs little memory: products with
    sparse rows are far slower.
    """
    if not sp.issparse(X):
        return X
    size = X.shape[0] * X.shape[1] * np.dtype(dtype).itemsize
    return X.astype(dtype).toarray() if size <= max(_DENSE_BYTES, X.nnz * 12) else X
