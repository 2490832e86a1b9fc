"""Convert raw rows and targets to a problem, and decision values to predictions; check targets, and
before any allocation whether rows are too wide to become dense in memory.

Targets are labels or numbers (n,), or for several per row numbers (n, k).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import env
from rfx.data import guess_task
from rfx.data.rows import WIDE, keeps_sparse
from rfx.data.tabular.schema import NEVER_SEEN, Schema, label_text
from rfx.data.transforms import Scaler, TargetScaler, as_floats
from rfx.errors import DataError, RfxWarning, UsageError
from rfx.losses import EPSILON
from rfx.options import Declared
from rfx.types import Inputs


def checked_targets(X: Any, y: Any, n_targets: int | None = None) -> Any:
    """y as float64, (n,) or for k > 1 targets per row (n, k), of the rows X (n, d); those of rows
    on workers stay there.

    n_targets is the required k, None for any. Raises DataError if there are no rows, or another
    number of targets.
    """
    Y = as_floats(y)
    if Y.ndim == 2 and Y.shape[1] == 1:
        Y = Y[:, 0]
    if X.shape[0] == 0 or X.shape[0] != len(Y):
        raise DataError(
            f"training needs rows and one target per row, but there are {X.shape[0]} rows and"
            f" {len(Y)} targets"
        )
    if Y.ndim not in (1, 2) or 0 in Y.shape:
        raise DataError(f"targets of shape {Y.shape} are not one or several numbers per row")
    if n_targets is not None and targets_per_row(Y) != n_targets:
        raise DataError(
            f"the rows have {targets_per_row(Y)} targets each, but the model was trained on"
            f" {n_targets}"
        )
    return Y


def check_inputs(n_inputs: int) -> None:
    """Raise DataError for rows whose inputs are all zero, from which no method can learn."""
    if not n_inputs:
        raise DataError(
            "all inputs of all rows are zero or missing (LIBSVM text needs inputs such as 3:0.5);"
            " check the file"
        )


def check_size(Y: np.ndarray) -> None:
    """Raise DataError for scaled targets (n,) or (n, k) whose squares are not finite."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.square([Y.min(axis=0), Y.max(axis=0)]).sum())
    if not finite:
        raise DataError(
            f"the targets are up to {np.abs(Y).max():.3g}, and their squares overflow; use a larger"
            " unit, or --target-scaling minmax01"
        )


def targets_per_row(y: np.ndarray) -> int:
    """The targets of a row."""
    return y.shape[1] if y.ndim == 2 else 1


def target_scaling(method: Declared, task: str) -> str:
    """How targets are scaled: as given, by default `mean` for regression; UsageError for scaled
    classes.
    """
    given: str | None = method.target_scaling
    if task != "regression" and given not in (None, "none"):
        raise UsageError(
            f"--target-scaling is {given}, which is for regression, but the task is {task}"
        )
    return (given or "mean") if task == "regression" else "none"


def tube(method: Declared, Y: Any) -> dict[str, float]:
    """The default of --epsilon for scaled targets Y (n, k), if the loss has a tube without a
    width.
    """
    if method.get("loss") != "epsilon_insensitive" or method.epsilon is not None:
        return {}
    return {"epsilon": EPSILON * float(np.sqrt(np.var(Y, axis=0).mean()))}


def check_several(task: str, n_targets: int) -> None:
    """Raise UsageError for several targets per row unless the task is regression."""
    if n_targets > 1 and task != "regression":
        raise UsageError(
            f"the task is {task}, but the rows have {n_targets} targets each, which requires"
            " regression"
        )


def check_classes(task: str, classes: np.ndarray) -> np.ndarray:
    """The classes; DataError for more than two of a binary task."""
    if task == "binary" and len(classes) > 2:
        raise DataError(
            f"the task is binary, but the targets have {len(classes)} values; set --task multiclass"
        )
    return classes


def learn_targets(
    method: Declared, found: Any, classes: Any = None
) -> tuple[str, Any, TargetScaler | None]:
    """(task, labels or None, target scaler or None) from a Survey and known labels."""
    labels = found.labels if classes is None else np.unique(np.asarray(classes, np.float64))
    if method.task or labels is None:
        task = method.task or "regression"
    elif classes is not None:
        task = "binary" if len(labels) <= 2 else "multiclass"
    else:
        task = guess_task(found.y)
    kind = target_scaling(method, task)
    if task == "regression":
        return task, None, found.target_scaler(kind)
    check_several(task, found.n_targets)
    if labels is None:
        raise DataError(
            "the targets have more than 1,000 values, too many for classes; set --task regression"
        )
    return task, check_classes(task, labels), None


def encoded(
    y: np.ndarray, classes: Any, target_scaler: TargetScaler | None, softmax: bool = False
) -> np.ndarray:
    """Targets (n, outputs): scaled, +-1 for each class against the rest (one column for two
    classes), or for softmax 0 and 1.
    """
    if target_scaler is not None:
        values: np.ndarray = target_scaler.transform(y)
        return values[:, None] if values.ndim == 1 else values
    if len(classes) <= 2:
        # the larger label is +1; a single class keeps its sign
        positive = classes[-1] if len(classes) == 2 or classes[0] > 0 else np.inf
        return np.where(y == positive, 1.0, -1.0)[:, None]
    return np.where(y[:, None] == classes[None, :], 1.0, 0.0 if softmax else -1.0)


def check_known(y: np.ndarray, classes: Any, schema: Schema | None = None) -> None:
    """Raise DataError for a label that is not among the classes of a stream; None: no classes."""
    if classes is not None and not (known := np.isin(y, classes)).all():
        raise DataError(
            f"the label {label_text(schema, y[np.argmin(known)])} did not occur in the first"
            f" rows, from which labels are learnt ({listed_labels(classes, schema)}); increase"
            " --head"
        )


def listed_labels(labels: Any, schema: Schema | None = None) -> str:
    """The first ten labels, for a message."""
    shown = ", ".join(label_text(schema, label) for label in labels[:10])
    return shown + (", …" if len(labels) > 10 else "")


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
        return encoded(y, self.classes, self.target_scaler)

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
            labels = listed_labels(np.unique(y), self.schema)
            classes = listed_labels(self.classes, self.schema)
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
            labels = listed_labels(new, self.schema)
            message = f"the rows have labels that were absent in training: {labels}; {NEVER_SEEN}"
            warnings.warn(message, RfxWarning, stacklevel=2)

    def error(self, decision: np.ndarray, y: Any) -> float:
        """The error rate, or the RMSE in units of the scaled target."""
        score: float = self.score(decision, y)["score"]
        return score if self.task == "regression" else 1.0 - score


def input_dtype(method: Any) -> np.dtype:
    """The type of the scaled inputs."""
    return np.promote_types(method.get("dtype") or "float64", np.float32)


def check_memory(X: Inputs, scaling: str, vectors: int, itemsize: int) -> None:
    """Raise an error for rows X (n, d), dense or CSR, that can't be scaled within memory, with
    `vectors` more vectors of length d.

    CSR rows stay sparse if they are not scaled, or wide and mostly zeros; others need itemsize
    bytes per input. Raises DataError.
    """
    rows = 0 if stays_sparse(X, scaling) else X.shape[0]
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


@singledispatch
def stays_sparse(X: Inputs, scaling: str) -> bool:
    """Whether the rows X are CSR and remain so after scaling, or need no memory here."""
    return sp.issparse(X) and (scaling == "none" or keeps_sparse(X))
