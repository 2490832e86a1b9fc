"""Convert raw rows and targets to a problem, and decision values to predictions; check before any
allocation whether rows are too wide to become dense in memory.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import env
from rfx.data.rows import Rows, RowsLike
from rfx.data.tabular.schema import NEVER_SEEN, Schema
from rfx.data.transforms.scaling import WIDE, Scaler, TargetScaler, keeps_sparse
from rfx.errors import DataError, RfxWarning
from rfx.fitting import targets

CLASSIFICATION = ("binary", "multiclass")
# Bytes per input: of a vector while it is drawn in float64 (a few at a time for many inputs); of
# learning the scaling.
VECTOR, WIDE_VECTOR, SCALING = 24, 12, 64
# MiB that are always allowed.
LEAST = 64


@dataclass(frozen=True)
class Preprocessing:
    """Properties of inputs and targets learnt from the training rows.

    Parameters
    ----------
    task : str
        ``regression``, ``binary`` or ``multiclass``.
    scaler : Scaler
        Of the inputs.
    dtype : numpy.dtype
        The type of the scaled inputs.
    classes : array, (n_classes,), or None
        The labels, ascending; None for a regression.
    target_scaler : TargetScaler or None
        None for classes.
    schema : Schema or None
        How rows of a table become X and y, and how labels are spelled.
    """

    task: str
    scaler: Scaler
    dtype: np.dtype
    classes: np.ndarray | None = None
    target_scaler: TargetScaler | None = None
    schema: Schema | None = None

    def rows(self, X: Any) -> Any:
        """Scaled rows of raw X (n, d)."""
        return self.scaler.transform(X, dtype=self.dtype)

    def targets(self, y: Any) -> np.ndarray:
        """Targets (n, k): scaled, or +-1 for each class against the rest (one column for two
        classes).
        """
        return targets.encode(y, self.classes, self.target_scaler)

    def labels(self, decision: np.ndarray) -> np.ndarray:
        """(n,) labels, or targets in their original units, of decision values (n,) or (n, k)."""
        if self.target_scaler is not None:
            return self.target_scaler.inverse(decision)
        classes = self.classes
        assert classes is not None
        places = np.argmax(decision, axis=1) if decision.ndim == 2 else (decision > 0).astype(int)
        return np.asarray(classes[np.minimum(places, len(classes) - 1)])

    def score(self, decision: np.ndarray, y: Any) -> dict[str, Any]:
        """``metric`` and ``score``: accuracy for classification, RMSE in the unit of the target,
        its range for `minmax01`.

        Raises
        ------
        DataError
            If no label of y is among the classes.
        """
        if self.target_scaler is not None:
            error = decision - self.target_scaler.transform(np.asarray(y, float))
            if error.shape != decision.shape:
                raise DataError(
                    f"targets of shape {np.shape(y)} do not match the model's values of shape"
                    f" {decision.shape}"
                )
            error = self.target_scaler.in_units(error)
            return {"metric": "rmse", "score": float(np.sqrt(np.mean(error**2)))}
        assert self.classes is not None
        if not np.isin(y, self.classes).any():
            labels = targets.listed(np.unique(y), self.schema)
            classes = targets.listed(self.classes, self.schema)
            raise DataError(
                f"none of the labels ({labels}) is among the model's classes ({classes})"
            )
        return {"metric": "accuracy", "score": float(np.mean(self.labels(decision) == y))}

    def warn_of_unknown(self, y: Any) -> None:
        """Warn about numeric labels y (n,) that are not among the classes.

        For words, the file reader warns.
        """
        words = self.schema is not None and self.schema.labels is not None
        if self.classes is None or words:
            return
        new = np.setdiff1d(y, self.classes)
        if len(new):
            labels = targets.listed(new, self.schema)
            message = f"the rows have labels that were absent in training: {labels}; {NEVER_SEEN}"
            warnings.warn(message, RfxWarning, stacklevel=2)

    def error(self, decision: np.ndarray, y: Any) -> float:
        """The error rate, or the RMSE in units of the scaled target."""
        score: float = self.score(decision, y)["score"]
        return score if self.task == "regression" else 1.0 - score


def input_dtype(method: Any) -> np.dtype:
    """The type of the scaled inputs."""
    return np.dtype(method.get("dtype") or "float64")


def check_memory(X: RowsLike, scaling: str, vectors: int, itemsize: int) -> None:
    """Raise an error for rows X (n, d), dense or CSR, that can't be scaled within memory, with
    `vectors` more vectors of length d.

    CSR rows stay sparse if they are not scaled, or wide and mostly zeros; others need itemsize
    bytes per input. Raises DataError.
    """
    # rows in parts need no memory here
    rows = 0 if stays_sparse(X, scaling) or isinstance(X, Rows) else X.shape[0]
    vector = VECTOR if X.shape[1] <= WIDE else WIDE_VECTOR
    needed = X.shape[1] * (SCALING + rows * itemsize + vector * vectors) / 2**20
    available = env.available_memory_mb()
    if needed > max(available, LEAST):
        sparser = (
            ", or --scaling none, which keeps sparse rows sparse" if rows and sp.issparse(X) else ""
        )
        raise DataError(
            f"the {X.shape[0]:,} rows have {X.shape[1]:,} columns, which need about {needed:,.0f}"
            f" MiB, but only {available:,.0f} MiB are free; check the largest column index, or use"
            f" fewer random features{sparser}"
        )


def stays_sparse(X: RowsLike, scaling: str) -> bool:
    """Whether the rows X are CSR and remain so after scaling."""
    return sp.issparse(X) and (scaling == "none" or keeps_sparse(X))
