"""Targets of the methods that learn in batches: (n,) labels or numbers, or (n, k) numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfx.data import guess_task
from rfx.data.tabular.schema import Schema, label_text
from rfx.data.transforms.scaling import TargetScaler
from rfx.errors import DataError, UsageError
from rfx.losses import EpsilonInsensitive
from rfx.options import Declared


def checked(X: Any, y: Any, n_targets: int | None = None) -> np.ndarray:
    """y as float64, (n,) or for k > 1 targets per row (n, k), of the rows X (n, d).

    n_targets is the required k, None for any. Raises DataError if there are no rows, or another
    number of targets.
    """
    Y: np.ndarray = np.asarray(y, np.float64)
    if Y.ndim == 2 and Y.shape[1] == 1:
        Y = Y[:, 0]
    check_count(X, Y)
    if Y.ndim not in (1, 2) or Y.size == 0:
        raise DataError(f"targets of shape {Y.shape} are not one or several numbers per row")
    if n_targets is not None and count(Y) != n_targets:
        raise DataError(
            f"the rows have {count(Y)} targets each, but the model was trained on {n_targets}"
        )
    return Y


def check_count(X: Any, y: Any) -> None:
    """Raise DataError unless there are rows X (n, d), and targets for each of them."""
    if X.shape[0] == 0 or X.shape[0] != len(y):
        raise DataError(
            f"training needs rows and one target per row, but there are {X.shape[0]} rows and"
            f" {len(y)} targets"
        )


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


def count(y: np.ndarray) -> int:
    """The targets of a row."""
    return y.shape[1] if y.ndim == 2 else 1


def scaling(method: Declared, task: str) -> str:
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
    if method.get("loss") != EpsilonInsensitive.name or method.epsilon is not None:
        return {}
    return {"epsilon": EpsilonInsensitive.epsilon * float(np.sqrt(np.var(Y, axis=0).mean()))}


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


def learn(
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
    kind = scaling(method, task)
    if task == "regression":
        return task, None, found.target_scaler(kind)
    check_several(task, found.n_targets)
    if labels is None:
        raise DataError(
            "the targets have more than 1,000 values, too many for classes; set --task regression"
        )
    return task, check_classes(task, labels), None


def encode(
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
            f" rows, from which labels are learnt ({listed(classes, schema)}); increase --head"
        )


def listed(labels: Any, schema: Schema | None = None) -> str:
    """The first ten labels, for a message."""
    shown = ", ".join(label_text(schema, label) for label in labels[:10])
    return shown + (", …" if len(labels) > 10 else "")
