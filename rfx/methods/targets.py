"""Targets of the methods that learn batch by batch: (n,) labels or numbers, or (n, k) numbers where a row has several targets."""

import numpy as np

from rfx.data import guess_task
from rfx.data.schema import label_text
from rfx.errors import DataError, UsageError


def checked(X, y, n_targets: int | None = None) -> np.ndarray:
    """y as float64, (n,) or for k > 1 targets a row (n, k), of the rows X; n_targets: what k has to be, None for any.

    Raises DataError where there are no rows, or other than that many targets.
    """
    y = np.asarray(y, np.float64)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if X.shape[0] == 0 or X.shape[0] != len(y):
        raise DataError(f"training needs rows and as many targets, but there are {X.shape[0]} rows and {len(y)} targets")
    if y.ndim not in (1, 2) or y.size == 0:
        raise DataError(f"targets of shape {y.shape} are not one or several numbers a row")
    if n_targets is not None and count(y) != n_targets:
        raise DataError(f"the rows have {count(y)} targets each, but the model was trained on {n_targets}")
    return y


def check_inputs(n_inputs: int) -> None:
    """Refuse, with a DataError, rows without any input, from which no method can learn."""
    if not n_inputs:
        raise DataError("no row has an input, such as 3:0.5 in LIBSVM text, so that there is nothing to learn from; check the file")


def check_size(Y) -> None:
    """Refuse, with a DataError, scaled targets (n,) or (n, k) so large that their squares are not finite."""
    with np.errstate(over="ignore"):
        squares = sum(float(np.sum(np.square(part))) for part in (Y.min(axis=0), Y.max(axis=0)))
    if not np.isfinite(squares):
        raise DataError(
            f"the targets are as large as {np.abs(Y).max():.3g}, and their squares are not finite; give them in a larger "
            "unit, or --target-scaling minmax01"
        )


def count(y) -> int:
    """The targets of a row."""
    return y.shape[1] if y.ndim == 2 else 1


def learn(params: dict, found, classes=None) -> tuple:
    """(task, labels or None, target scaler or None) from the options, a Survey and the labels that were said beforehand."""
    labels = np.unique(np.asarray(classes, np.float64)) if classes is not None else found.labels
    several = found.n_targets > 1
    if params["task"] or labels is None:
        task = params["task"] or "regression"
    elif classes is not None:
        task = "binary" if len(labels) <= 2 else "multiclass"
    else:
        task = guess_task(found.y)
    if task == "regression":
        return task, None, found.target_scaler(params["target_scaling"])
    if several:
        raise UsageError(f"the task is {task}, but the rows have {found.n_targets} targets each, which are a regression's")
    if labels is None:
        raise DataError("the targets have more than 1,000 values, too many for classes; set --task regression")
    if task == "binary" and len(labels) > 2:
        raise DataError(f"the task is binary, but the targets have {len(labels)} values; set --task multiclass")
    if params["target_scaling"] != "none":
        raise UsageError(f"--target-scaling is {params['target_scaling']}, which is for regression, but the task is {task}")
    return task, labels, None


def encode(method, y) -> np.ndarray:
    """Targets (n, outputs): scaled, +-1, or for softmax 0 and 1. DataError for a label that was not known beforehand."""
    if method.task == "regression":
        return method.target_scaler.transform(y).reshape(len(y), -1)
    classes = method.classes
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = classes[place] != y
    if unknown.any():
        known = ", ".join(label_text(method.schema, label) for label in classes[:10])
        new = label_text(method.schema, y[np.argmax(unknown)])
        raise DataError(f"the label {new} was not among the rows that labels were learnt from ({known}); raise --head")
    if len(classes) <= 2:
        positive = classes[-1] if len(classes) == 2 or classes[0] > 0 else np.inf
        return np.where(y == positive, 1.0, -1.0)[:, None]
    hot = np.zeros((len(y), len(classes)))
    hot[np.arange(len(y)), place] = 1.0
    return hot if method.loss.name == "softmax" else 2 * hot - 1


def saved_number(header) -> int:
    """The targets of a row in the header of a model: a file that does not say has one."""
    found = header.get("n_targets", 1)
    if type(found) is not int or found < 1:
        raise DataError(f"its number of targets is {found!r:.40}")
    return found
