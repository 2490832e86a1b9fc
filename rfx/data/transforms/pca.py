"""Dimension reduction: principal components learnt from rows that need not fit into memory; and
rows of unit length.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.errors import DataError, UsageError
from rfx.parallel import add_gram


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
        self._sum: np.ndarray | None = None
        self._moments: np.ndarray | None = None
        self.mean: Any = None
        self.components: Any = None

    def partial_fit(self, X) -> "PCA":
        """Learn from the rows X (n, d), array or CSR, in addition to all earlier ones."""
        if self._sum is None or self._moments is None:
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

    def finish(self) -> "PCA":
        """Components of all rows so far: those of largest variance, with the sign fixed by the
        largest entry.

        Raises DataError if there were no rows.
        """
        if not self._count or self._sum is None or self._moments is None:
            raise DataError("principal components need at least one row")
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
        if X.shape[1] != len(self.mean):
            raise DataError(
                f"the rows have {X.shape[1]} inputs, but the principal components were learnt from"
                f" {len(self.mean)}"
            )
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
    def from_dict(cls, saved) -> "PCA":
        made = cls(saved["components"].shape[1], bool(saved["centred"]))
        made.mean, made.components = saved["mean"], saved["components"]
        return made
