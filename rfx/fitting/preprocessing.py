"""Convert raw rows and targets to a problem, and decision values to predictions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfx.data.tabular.schema import NEVER_SEEN, Schema, label_text
from rfx.data.transforms.scaling import Scaler, TargetScaler
from rfx.errors import DataError, RfxWarning

CLASSIFICATION = ("binary", "multiclass")


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

    @classmethod
    def learn(
        cls,
        scaler: Scaler,
        y: Any,
        task: str,
        method: Any,
        *,
        weights: Any = None,
        classes: np.ndarray | None = None,
        schema: Schema | None = None,
    ) -> Preprocessing:
        """Create from the scaling of the training rows, targets y (n,) and sample weights (n,) or
        None.

        classes: the distinct labels, ascending; by default those of y.

        Raises
        ------
        DataError
            For more than two labels in a binary task, and targets that can't be scaled.
        """
        dtype = input_dtype(method)
        if task == "regression":
            scaled = TargetScaler.fit(y, method.target_scaling, weights)
            return cls(task, scaler, dtype, target_scaler=scaled, schema=schema)
        classes = np.unique(y) if classes is None else classes
        if task == "binary" and len(classes) > 2:
            raise DataError(
                f"the task is binary, but the targets have {len(classes)} values; set --task"
                " multiclass"
            )
        return cls(task, scaler, dtype, classes, schema=schema)

    def rows(self, X: Any) -> Any:
        """Scaled rows of raw X (n, d)."""
        return self.scaler.transform(X, dtype=self.dtype)

    def targets(self, y: Any) -> np.ndarray:
        """Targets (n, k): scaled, or +-1 for each class against the rest (one column for two
        classes).
        """
        if self.target_scaler is not None:
            column: np.ndarray = self.target_scaler.transform(y)[:, None]
            return column
        classes = self.classes
        assert classes is not None
        if len(classes) <= 2:
            # the larger label is +1; a single class keeps its sign
            single = len(classes) < 2 and classes[0] <= 0
            positive = np.inf if single else classes[-1]
            return np.where(y == positive, 1.0, -1.0)[:, None]
        return np.where(y[:, None] == classes[None, :], 1.0, -1.0)

    def labels(self, decision: np.ndarray) -> np.ndarray:
        """(n,) labels, or targets in their original units, of decision values (n,) or (n, k)."""
        if self.target_scaler is not None:
            return self.target_scaler.inverse(decision)
        classes = self.classes
        assert classes is not None
        found: np.ndarray
        if decision.ndim == 2:
            found = classes[np.argmax(decision, axis=1)]
            return found
        if len(classes) == 1:
            return np.full(len(decision), classes[0])
        found = classes[(decision > 0).astype(int)]
        return found

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
            known, found = listed(self.classes, self.schema), listed(np.unique(y), self.schema)
            raise DataError(f"none of the labels ({found}) is among the model's classes ({known})")
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
            found = listed(new, self.schema)
            message = f"the rows have labels that were absent in training: {found}; {NEVER_SEEN}"
            warnings.warn(message, RfxWarning, stacklevel=2)

    def error(self, decision: np.ndarray, y: Any) -> float:
        """The error rate, or the RMSE in units of the scaled target."""
        found: float = self.score(decision, y)["score"]
        return found if self.task == "regression" else 1.0 - found


def input_dtype(method: Any) -> np.dtype:
    """The type of the scaled inputs."""
    return np.dtype(method.get("dtype") or "float64")


def listed(labels: Any, schema: Schema | None = None) -> str:
    """The first ten labels, for a message."""
    shown = ", ".join(label_text(schema, label) for label in labels[:10])
    return shown + (", …" if len(labels) > 10 else "")
