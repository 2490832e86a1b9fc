"""How good predictions are, by all measures that a person asks for; by scikit-learn's
definitions.
"""

import numpy as np

from rfx import lazy
from rfx.data.tabular import schema
from rfx.fitting import calibration


def measures(method, decision, y) -> dict:
    """Of a trained method's decision values (n,), (n, classes) or (n, targets) of rows with labels
    y (n,) or targets (n,), (n, targets).

    Classes: accuracy, balanced_accuracy, f1 (of the larger of two labels; of several the mean over
    the classes), auc (of several the mean over each class against the others), log_loss where the
    model has probabilities, labels, confusion (a row for each true label, a column for each
    predicted one). Regression, in the target's own units: rmse, mae, r2. What is not defined for
    these rows, such as auc where all are of one class, is left out.

    Rows whose label is not among the model's count as wrong: in accuracy, in balanced_accuracy, as
    classes of their own, and in f1, which is then the mean over all labels, of two classes, too.
    auc and log_loss need a value for each label and are left out.
    """
    y = np.asarray(y)
    found = method.labels(decision)
    if method.task == "regression":
        return _of_numbers(y.astype(np.float64), found)
    metrics = lazy.metrics
    labels = np.unique(np.concatenate([method.classes, y]))
    known = len(labels) == len(method.classes)
    two = known and len(method.classes) == 2
    # scikit-learn takes decimals such as 0.1 for a regression's, their places for classes
    places, own = np.searchsorted(labels, y), np.searchsorted(labels, found)
    every = np.arange(len(labels))
    counted = every[-1:] if two else every
    more = {
        "f1": float(metrics.f1_score(places, own, labels=counted, average="macro", zero_division=0))
    }
    # several classes: what tells one from all others is its probability, of two the decision value
    # is as good and has no ties
    values = (
        calibration.probabilities(method, decision)
        if decision.ndim > 1 and calibration.has(method)
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
    if known and calibration.has(method):
        sure = calibration.probabilities(method, decision)[
            np.arange(len(y)), np.searchsorted(method.classes, y)
        ]
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
