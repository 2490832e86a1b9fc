"""The measures of a model's predictions, the score of each row, and the noise of the difference of
two models on the same rows.
"""

import math
from typing import Any

import numpy as np

from rfx import lazy
from rfx.data.tabular import schema
from rfx.measures import MEASURES, OF_TARGET, ROW_MEASURES, LabelledRows


def measures(model: Any, decision: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Every measure of a model's decision values (n,), (n, classes) or (n, targets) for rows with
    labels y (n,) or targets (n,), (n, targets); undefined measures, such as auc with a single
    class, are omitted.

    Classification: also `labels` and `confusion` (rows: true labels, columns: predicted labels).
    Rows whose label is not among the model's count as wrong: in accuracy; in balanced_accuracy, as
    separate classes; and in f1, which is then the mean over all labels, also for two classes. auc
    and log_loss need a value for each label and are omitted. Regression: in the target's original
    units; for several targets lists by target, and the mean of r2.
    """
    y = np.asarray(y)
    if model.task == "regression":
        return _of_numbers(y.astype(np.float64), model.labels(decision))
    found: dict[str, Any] = {}
    rows = LabelledRows(model.classes, y, model.labels(decision), decision)
    for name, measure in MEASURES.items():
        scores = row_scores(name, model, decision, y) if measure.of_rows else None
        if scores is not None:
            found[name] = float(scores.mean())
        elif measure.of_labels is not None:
            found[name] = measure.of_labels(rows)
    labels, codes, predicted = rows.codes()
    counts = lazy.metrics.confusion_matrix(codes, predicted, labels=np.arange(len(labels)))
    return found | {"labels": schema.shown(model, labels), "confusion": counts.tolist()}


def _of_numbers(y: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, measure in MEASURES.items():
        score = None if measure.of_numbers is None else measure.of_numbers(y, predicted)
        if score is None:
            continue
        if y.ndim == 1:
            found[name] = float(score)
            continue
        if measure.unit != OF_TARGET:  # targets may have different units
            found[name] = float(score.mean())
        found[f"{name}_by_target"] = score.tolist()
    return found


def row_scores(measure: str, model: Any, decision: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """(n,) the scores of a model's decision values for targets y (n,) or (n, targets): for classes
    numbers whose mean is one of ROW_MEASURES, None if it is undefined for these rows; for
    regression the squared errors in units of the scaled target.
    """
    if model.task == "regression":
        errors = (model.labels(decision) - y) / model.target_scaler.unit
        return np.mean(np.reshape(errors, (len(y), -1)) ** 2, axis=1)
    needs_probabilities, values = ROW_MEASURES[measure].needs_probabilities, decision
    if needs_probabilities and not model.has_probabilities:
        return None
    if model.has_probabilities and (decision.ndim > 1 or needs_probabilities):
        # of several classes they rank one against the rest; decisions of two classes have no ties
        values = model.probabilities(decision)
    return class_row_scores(measure, model.classes, y, model.labels(decision), values)


def class_row_scores(
    measure: str, classes: np.ndarray, y: np.ndarray, predicted: np.ndarray, values: np.ndarray
) -> np.ndarray | None:
    """(n,) numbers whose mean is one of ROW_MEASURES; None if it is undefined for these rows. The
    arrays are those of `LabelledRows`.
    """
    of_rows = ROW_MEASURES[measure].of_rows
    return None if of_rows is None else of_rows(LabelledRows(classes, y, predicted, values))


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
