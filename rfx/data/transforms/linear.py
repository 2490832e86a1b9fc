"""Linear maps of the inputs that are learnt and stored in the model: metrics, and principal
components; and rows of unit length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse as sp

from rfx import steps as told
from rfx.errors import UsageError
from rfx.parallel import add_gram, matmul

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
        return np.asarray(weights / weights.sum())

    def steps(self, dtype: Any) -> told.Steps:
        """The computation steps of `transform` for rows of that type."""
        A = self.map.astype(dtype)
        step = told.scaled(A, len(A)) if A.ndim == 1 else told.linear(A)
        return (step, *told.rounded(dtype))

    def pulled_back(self, M: np.ndarray) -> np.ndarray:
        """Average outer products of gradients with respect to x, from those M, (d,) or (d, d), with
        respect to A'x.
        """
        A = self.map
        return M * A**2 if A.ndim == 1 else A @ M @ A.T

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


# ---------------------------------------------------------------------- principal components


def unit_rows(X):
    """Rows of X (n, d), array or CSR, divided by their Euclidean length; rows of zeros
    stay. Float32 stays float32.
    """
    if sp.issparse(X):
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel())
        return (
            sp.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)).astype(X.dtype).dot(X).tocsr()
        )
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return X / np.where(lengths > 0, lengths, 1.0)[:, None].astype(X.dtype)


class PCA:
    """x -> components' (x - mean), to n_components numbers.

    partial_fit processes rows a few at a time and stores their sum and second moments, d x d
    float64 numbers; `finish` computes the components. centred: about the mean, as principal
    components are defined; the program of Dai et al. (2014) does not centre.
    """

    def __init__(self, n_components: int, centred: bool = True):
        self.n_components, self.centred = int(n_components), centred
        self._count = 0
        # the sum of the rows and of their outer products, about the shift
        self._shift: Any = None
        self._sum: Any = None
        self._moments: Any = None
        self.mean: Any = None
        self.components: Any = None

    def partial_fit(self, X) -> PCA:
        """Learn from the rows X (n, d), array or CSR, in addition to all earlier ones."""
        if not self._count:
            if self.n_components > X.shape[1]:
                raise UsageError(
                    f"--pca is {self.n_components}, but the rows have {X.shape[1]} inputs; use"
                    " fewer components"
                )
            # about the first rows' mean, because moments far from the origin would lose digits
            self._shift = (
                np.asarray(X.mean(axis=0), np.float64).ravel()
                if self.centred
                else np.zeros(X.shape[1])
            )
            self._sum, self._moments = np.zeros(X.shape[1]), np.zeros((X.shape[1], X.shape[1]))
        for start in range(0, X.shape[0], 4096):
            part = X[start : start + 4096]
            part = (
                np.asarray(part.toarray() if sp.issparse(part) else part, np.float64) - self._shift
            )
            self._sum += part.sum(axis=0)
            # on and above the diagonal
            add_gram(part, self._moments)
        self._count += X.shape[0]
        return self

    def finish(self) -> PCA:
        """Components of all rows so far: those of largest variance, with the sign fixed by the
        largest entry.
        """
        mean = self._sum / self._count
        covariance = self._moments / self._count
        if self.centred:
            covariance -= np.outer(mean, mean)
        _, vectors = np.linalg.eigh(covariance, UPLO="U")
        components = vectors[:, ::-1][:, : self.n_components]
        largest = components[np.abs(components).argmax(axis=0), np.arange(components.shape[1])]
        self.components = np.ascontiguousarray(components * np.where(largest < 0, -1.0, 1.0))
        self.mean = self._shift + mean if self.centred else np.zeros(len(mean))
        return self

    def transform(self, X) -> np.ndarray:
        """(n, n_components) in the dtype of X (n, d), array or CSR."""
        components = self.components.astype(X.dtype)
        return np.asarray(X @ components) - (self.mean @ self.components).astype(X.dtype)

    def steps(self, dtype) -> told.Steps:
        """The computation steps of `transform` for dense rows of that type."""
        offset = -(self.mean @ self.components).astype(dtype)
        return told.linear(self.components.astype(dtype), offset), *told.rounded(dtype)

    def to_dict(self) -> dict:
        """{"centred": bool, "mean": (d,), "components": (d, n_components)}, for the model file."""
        return {"centred": self.centred, "mean": self.mean, "components": self.components}

    @classmethod
    def from_dict(cls, saved) -> PCA:
        made = cls(saved["components"].shape[1], bool(saved["centred"]))
        made.mean, made.components = saved["mean"], saved["components"]
        return made
