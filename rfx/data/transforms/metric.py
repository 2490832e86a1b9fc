"""A learnt metric: a linear map of the scaled inputs, stored in the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from rfx import steps as told
from rfx.errors import UsageError
from rfx.parallel import matmul

# The forms of a map.
FORMS = ("diagonal", "full")


@dataclass(frozen=True)
class Metric:
    """Scaled rows x become A'x, so that their distance is the square root of (x - y)' M (x - y), M
    = A A'.

    Parameters
    ----------
    map : array, (d,) or (d, d)
        A: the weight of each input, or a matrix.
    """

    map: np.ndarray

    @classmethod
    def of(cls, M: np.ndarray) -> Metric | None:
        """With A the square root of M (d,) or (d, d), divided by its largest weight or eigenvalue.

        None if M is 0, which does not distinguish inputs.
        """
        if M.ndim == 1:
            most = float(M.max(initial=0.0))
            return cls(np.sqrt(np.maximum(M, 0.0) / most)) if most > 0 else None
        values, vectors = scipy.linalg.eigh(M, check_finite=False)
        most = float(values[-1]) if len(values) else 0.0
        if not most > 0:
            return None
        roots = np.sqrt(np.maximum(values, 0.0) / most)
        return cls((vectors * roots) @ vectors.T)

    @property
    def form(self) -> str:
        """``diagonal`` or ``full``."""
        return FORMS[self.map.ndim - 1]

    def matrix(self) -> np.ndarray:
        """M: (d,) its diagonal if the map is diagonal, else (d, d)."""
        return self.map**2 if self.map.ndim == 1 else self.map @ self.map.T

    def shares(self) -> np.ndarray:
        """(d,) each input's share of the trace of M; they sum to 1."""
        M = self.matrix()
        weights = M if M.ndim == 1 else M.diagonal()
        found: np.ndarray = weights / weights.sum()
        return found

    def steps(self, dtype: Any) -> told.Steps:
        """The computation steps of `transform` for rows of that type."""
        A = self.map.astype(dtype)
        step = told.scaled(A, len(A)) if A.ndim == 1 else told.linear(A)
        return (step, *told.rounded(dtype))

    def transform(self, X: Any) -> Any:
        """Mapped rows of X (n, d), in X's type: CSR stays CSR with a diagonal map.

        Raises
        ------
        UsageError
            For CSR rows and a matrix, which would make them dense.
        """
        A = self.map.astype(X.dtype)
        if not scipy.sparse.issparse(X):
            return X * A if A.ndim == 1 else matmul(np.ascontiguousarray(X), A)
        if A.ndim > 1:
            raise UsageError(
                "--metric is full, which would make sparse rows dense; use diagonal or none"
            )
        X = X.tocsr()
        values = X.data * A[X.indices]
        return scipy.sparse.csr_matrix((values, X.indices, X.indptr), shape=X.shape)
