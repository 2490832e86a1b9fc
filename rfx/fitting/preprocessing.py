"""Convert raw rows and targets to a problem, and decision values to predictions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfx.data.tabular.schema import NEVER_SEEN, Schema
from rfx.data.transforms.scaling import Scaler, TargetScaler
from rfx.errors import DataError, RfxWarning
from rfx.fitting import targets

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
        classes = targets.check_classes(task, np.unique(y) if classes is None else classes)
        return cls(task, scaler, dtype, classes, schema=schema)

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
