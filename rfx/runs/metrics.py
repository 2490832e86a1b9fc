"""Evaluation measures of predictions, by scikit-learn's definitions."""

import numpy as np

from rfx import lazy
from rfx.data.tabular import schema


def measures(method, decision, y) -> dict:
    """Evaluate a trained method's decision values (n,), (n, classes) or (n, targets) for rows with
    labels y (n,) or targets (n,), (n, targets).

    Classification: accuracy, balanced_accuracy, f1 (of the larger of two labels; of several the
    mean over the classes), auc (of several the one-against-rest mean), log_loss if the model has
    probabilities, labels, confusion (rows: true labels, columns: predicted labels). Regression, in
    the target's original units: rmse, mae, r2. Undefined measures, such as auc with a single class,
    are omitted.

    Rows whose label is not among the model's count as wrong: in accuracy; in balanced_accuracy, as
    separate classes; and in f1, which is then the mean over all labels, also for two classes. auc
    and log_loss need a value for each label and are omitted.
    """
    y = np.asarray(y)
    found = method.labels(decision)
    if method.task == "regression":
        return _of_numbers(y.astype(np.float64), found)
    metrics = lazy.metrics
    labels = np.unique(np.concatenate([method.classes, y]))
    known = len(labels) == len(method.classes)
    two = known and len(method.classes) == 2
    # scikit-learn treats decimal labels such as 0.1 as regression targets, but not their positions
    places, own = np.searchsorted(labels, y), np.searchsorted(labels, found)
    every = np.arange(len(labels))
    counted = every[-1:] if two else every
    more = {
        "f1": float(metrics.f1_score(places, own, labels=counted, average="macro", zero_division=0))
    }
    # several classes: probabilities rank one class against the rest; for two classes the decision
    # value is equivalent and has no ties
    values = (
        method.probabilities(decision)
        if decision.ndim > 1 and method.has_probabilities
        else decision
    )
    columns = values[:, None] if values.ndim == 1 else values
    areas = [
        metrics.roc_auc_score(y == label, column)
        for label, column in zip(
            method.classes[-1:] if len(method.classes) == 2 else method.classes, columns.T
        )
        if 0 < np.count_nonzero(y == label) < len(y)
    ]
    if areas and known and len(method.classes) > 1:
        more["auc"] = float(np.mean(areas))
    if known and method.has_probabilities:
        sure = method.probabilities(decision)[np.arange(len(y)), np.searchsorted(method.classes, y)]
        more["log_loss"] = float(-np.log(np.maximum(sure, np.finfo(np.float64).eps)).mean())
    confusion = metrics.confusion_matrix(places, own, labels=every)
    recalls = [
        confusion[place, place] / total
        for place, total in enumerate(confusion.sum(axis=1))
        if total
    ]
    return {
        "accuracy": float(np.mean(found == y)),
        "balanced_accuracy": float(np.mean(recalls)),
        **more,
        "labels": schema.shown(method, labels),
        "confusion": confusion.tolist(),
    }


def _of_numbers(y, found) -> dict:
    error = found - y
    spread = float(np.sum((y - y.mean(axis=0)) ** 2))
    scores = {"rmse": float(np.sqrt(np.mean(error**2))), "mae": float(np.mean(np.abs(error)))}
    return scores | ({"r2": 1 - float(np.sum(error**2)) / spread} if spread else {})
