"""Targets of the methods that learn in batches: (n,) labels or numbers, or (n, k) numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfx.data import guess_task
from rfx.data.tabular.schema import Schema, label_text
from rfx.data.transforms.scaling import TargetScaler
from rfx.errors import DataError, UsageError
from rfx.fitting.preprocessing import listed
from rfx.losses import EpsilonInsensitive
from rfx.options import Declared


def checked(X: Any, y: Any, n_targets: int | None = None) -> np.ndarray:
    """y as float64, (n,) or for k > 1 targets per row (n, k), of the rows X (n, d).

    n_targets is the required k, None for any. Raises DataError if there are no rows, or another
    number of targets.
    """
    found: np.ndarray = np.asarray(y, np.float64)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if X.shape[0] == 0 or X.shape[0] != len(found):
        raise DataError(
            f"training needs rows and one target per row, but there are {X.shape[0]} rows and"
            f" {len(found)} targets"
        )
    if found.ndim not in (1, 2) or found.size == 0:
        raise DataError(f"targets of shape {found.shape} are not one or several numbers per row")
    if n_targets is not None and count(found) != n_targets:
        raise DataError(
            f"the rows have {count(found)} targets each, but the model was trained on {n_targets}"
        )
    return found


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
        ends = (Y.min(axis=0), Y.max(axis=0))
        squares = sum(float(np.sum(np.square(part))) for part in ends)
    if not np.isfinite(squares):
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
    if task == "regression":
        return given or "mean"
    if given not in (None, "none"):
        raise UsageError(
            f"--target-scaling is {given}, which is for regression, but the task is {task}"
        )
    return "none"


def tube(method: Declared, Y: Any) -> dict[str, float]:
    """The default of --epsilon for scaled targets Y (n, k), if the loss has a tube without a
    width.
    """
    if method.get("loss") != EpsilonInsensitive.name or method.epsilon is not None:
        return {}
    return {"epsilon": EpsilonInsensitive.epsilon * float(np.sqrt(np.var(Y, axis=0).mean()))}


def learn(
    method: Declared, found: Any, classes: Any = None
) -> tuple[str, Any, TargetScaler | None]:
    """(task, labels or None, target scaler or None) from a Survey and known labels."""
    labels = found.labels
    if classes is not None:
        labels = np.unique(np.asarray(classes, np.float64))
    if method.task or labels is None:
        task = method.task or "regression"
    elif classes is not None:
        task = "binary" if len(labels) <= 2 else "multiclass"
    else:
        task = guess_task(found.y)
    if task == "regression":
        return task, None, found.target_scaler(scaling(method, task))
    if found.n_targets > 1:
        raise UsageError(
            f"the task is {task}, but the rows have {found.n_targets} targets each, which requires"
            " regression"
        )
    if labels is None:
        raise DataError(
            "the targets have more than 1,000 values, too many for classes; set --task regression"
        )
    if task == "binary" and len(labels) > 2:
        raise DataError(
            f"the task is binary, but the targets have {len(labels)} values; set --task multiclass"
        )
    scaling(method, task)
    return task, labels, None


def encode(
    y: np.ndarray,
    classes: Any,
    target_scaler: TargetScaler | None,
    softmax: bool,
    schema: Schema | None = None,
) -> np.ndarray:
    """Targets (n, outputs): scaled, +-1, or for softmax 0 and 1; DataError for an unknown label."""
    if target_scaler is not None:
        return target_scaler.transform(y).reshape(len(y), -1)
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = classes[place] != y
    if unknown.any():
        raise DataError(
            f"the label {label_text(schema, y[np.argmax(unknown)])} did not occur in the first"
            f" rows, from which labels are learnt ({listed(classes, schema)}); increase --head"
        )
    if len(classes) <= 2:
        positive = classes[-1] if len(classes) == 2 or classes[0] > 0 else np.inf
        return np.where(y == positive, 1.0, -1.0)[:, None]
    hot = np.zeros((len(y), len(classes)))
    hot[np.arange(len(y)), place] = 1.0
    return hot if softmax else 2 * hot - 1
