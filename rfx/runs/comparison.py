"""The score of each row by a measure, and the noise of the difference of two models on the same
rows.

References
----------
.. [1] DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver
   Operating Characteristic Curves", Biometrics 44, 1988.
"""

import math
from typing import Any

import numpy as np

from rfx import lazy


def row_scores(measure: str, model: Any, decision: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """(n,) the scores of a model's decision values for targets y (n,) or (n, targets); see
    `class_row_scores`, for regression the squared errors in units of the scaled target.
    """
    if model.task == "regression":
        errors = (model.labels(decision) - y) / model.target_scaler.unit
        return np.mean(np.reshape(errors, (len(y), -1)) ** 2, axis=1)
    values = decision
    if model.has_probabilities and (decision.ndim > 1 or measure == "log_loss"):
        # of several classes they rank one against the rest; decisions of two classes have no ties
        values = model.probabilities(decision)
    elif measure == "log_loss":
        return None
    return class_row_scores(measure, model.classes, y, model.labels(decision), values)


def class_row_scores(
    measure: str, classes: np.ndarray, y: np.ndarray, predicted: np.ndarray, values: np.ndarray
) -> np.ndarray | None:
    """(n,) numbers whose mean is a measure of classes; None if it is undefined for these rows.

    The number of a row for the AUC is the AUC plus the row's influence on it, so that the variance
    of the mean is that of DeLong et al. [1]_.

    Parameters
    ----------
    measure : str
        accuracy, balanced_accuracy, auc or log_loss.
    classes : array, (k,)
        Ascending.
    y, predicted : array, (n,)
        Labels.
    values : array, (n,) or (n, k)
        Numbers that grow with the probability of the larger of two classes, or of each class;
        probabilities (n, k) for the log-loss.
    """
    right = (predicted == y).astype(np.float64)
    if measure == "accuracy":
        return right
    if measure == "balanced_accuracy":
        _, places, counts = np.unique(y, return_inverse=True, return_counts=True)
        return right * (len(y) / (len(counts) * counts))[places]
    if not np.isin(y, classes).all() or len(classes) < 2:
        return None
    if measure == "log_loss":
        likely = values[np.arange(len(y)), np.searchsorted(classes, y)]
        return -np.log(np.maximum(likely, np.finfo(np.float64).eps))
    columns = values[:, None] if values.ndim == 1 else values
    if len(classes) == 2:
        classes, columns = classes[-1:], columns[:, -1:]
    each = [
        _areas(y == label, column)
        for label, column in zip(classes, columns.T)
        if 0 < np.count_nonzero(y == label) < len(y)
    ]
    return np.mean(each, axis=0) if each else None


def _areas(positive: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(n,) numbers whose mean is the AUC of the values for the positive rows."""
    ranks, shares = lazy.stats.rankdata(values), np.empty(len(values))
    n_positive, n_negative = np.count_nonzero(positive), np.count_nonzero(~positive)
    # of the rows of the other class, those that are ordered correctly, ties by half
    above = ranks[positive] - lazy.stats.rankdata(values[positive])
    shares[positive] = above / n_negative
    below = ranks[~positive] - lazy.stats.rankdata(values[~positive])
    shares[~positive] = 1 - below / n_positive
    area = float(np.mean(shares[positive]))
    own_class = np.where(positive, n_positive, n_negative)
    return area + (shares - area) * len(values) / own_class


def score_of(measure: str, rows: np.ndarray) -> float:
    """The score by a measure of the numbers of all rows."""
    mean = float(np.mean(rows))
    return math.sqrt(mean) if measure == "rmse" else mean


def standard_error(measure: str, one: np.ndarray, other: np.ndarray) -> float | None:
    """The standard error of the difference of the scores of two models, from their numbers for the
    same rows, (n,) each; None for a single row.
    """
    if len(one) < 2:
        return None
    error = float(np.std(one - other, ddof=1)) / math.sqrt(len(one))
    scale = score_of(measure, one) + score_of(measure, other) if measure == "rmse" else 1.0
    return error / scale if scale else 0.0
