"""How well a model predicts rows with known targets: its score, every measure, the score of each
row, and the noise of the difference of two models on the same rows.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rfx import lazy
from rfx.data.tabular import schema
from rfx.errors import DataError
from rfx.fitting.method import not_none
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import PredictionScore
from rfx.fitting.run_facts import Score
from rfx.measures import MEASURES, OF_TARGET, ROW_MEASURES, LabelledRows, MeasuredScores
from rfx.types import Inputs, JsonObject


@dataclass(frozen=True)
class Evaluation:
    """How a model predicts some rows.

    Parameters
    ----------
    prediction : PredictionScore
    on : str
        The rows, in words.
    decision : array, (n,) or (n, outputs)
        The decision values.
    y : array, (n,) or (n, targets)
        The targets or labels.
    scored_on : str or None
        How the rows were held out of the training, in words.
    seconds_predict : float or None
        Of the decision values, if they were computed for this evaluation.
    relative_error : float or None
        ||f - y|| / ||y|| in the target's original units, as in Wu et al. (2016), if ||y|| > 0.
    measures : MeasuredScores or None
    """

    prediction: PredictionScore
    on: str
    decision: np.ndarray
    y: np.ndarray
    scored_on: str | None = None
    seconds_predict: float | None = None
    relative_error: float | None = None
    measures: MeasuredScores | None = None

    @property
    def metric(self) -> str:
        """Accuracy or rmse."""
        return self.prediction.metric

    @property
    def score(self) -> float:
        return self.prediction.score

    @property
    def score_on_rows(self) -> Score:
        """The score with its rows."""
        return Score(self.metric, self.score, self.on, len(self.y))

    def as_dict(self) -> JsonObject:
        """The entries of a results row, by column or name."""
        entries = {
            "n_test": len(self.y),
            "scored_on": self.scored_on,
            "seconds_predict": self.seconds_predict,
            "relative_error": self.relative_error,
            "measures": None if self.measures is None else self.measures.as_dict(),
        }
        return self.prediction.as_dict() | not_none(entries)


def evaluate(model: Pipeline, X: Inputs, y: ArrayLike, on: str = "the rows") -> Evaluation:
    """The evaluation of a model on raw rows.

    Parameters
    ----------
    model : Pipeline
    X : array or CSR matrix, (n, d)
    y : array, (n,) or (n, targets)
        Targets or labels; unseen labels count as wrong, with a warning.
    on : str
        The rows, in words.

    Raises
    ------
    DataError
        Without rows, or if no label of y is among the classes.
    """
    if X.shape[0] == 0:
        raise DataError("there are no rows to evaluate on")
    y = np.asarray(y, dtype=np.float64)
    model.preprocessing.warn_of_unknown(y)
    start = time.perf_counter()
    decision = model.decision_function(X)
    prediction = model.evaluate(decision, y)
    seconds = time.perf_counter() - start
    evaluation = Evaluation(prediction, on, decision, y, seconds_predict=seconds)
    if prediction.metric != "rmse" or y.ndim > 1:
        return evaluation
    mae = float(np.mean(np.abs(model.labels(decision) - y)))
    evaluation = replace(evaluation, prediction=replace(prediction, mae=mae))
    size = float(np.linalg.norm(y))
    if not size:
        return evaluation
    assert model.target_scaler is not None
    error = prediction.score * model.target_scaler.unit * len(y) ** 0.5
    return replace(evaluation, relative_error=error / size)


def measures(model: Pipeline, decision: np.ndarray, y: np.ndarray) -> MeasuredScores:
    """Every measure of a model's decision values (n,), (n, classes) or (n, targets) for rows with
    labels y (n,) or targets (n,), (n, targets); undefined measures, such as auc with a single
    class, are omitted.

    Rows whose label is not among the model's count as wrong: in accuracy; in balanced_accuracy, as
    separate classes; and in f1, which is then the mean over all labels, also for two classes. auc
    and log_loss need a value for each label and are omitted. Regression: in the target's original
    units; for several targets lists by target, and the mean of r2.
    """
    y = np.asarray(y)
    if model.task == "regression":
        return _of_numbers(y.astype(np.float64), model.labels(decision))
    assert model.classes is not None
    values: dict[str, float] = {}
    rows = LabelledRows(model.classes, y, model.labels(decision), decision)
    for name, measure in MEASURES.items():
        scores = row_scores(name, model, decision, y) if measure.of_rows else None
        if scores is not None:
            values[name] = float(scores.mean())
        elif measure.of_labels is not None:
            values[name] = measure.of_labels(rows)
    labels, codes, predicted = rows.codes()
    counts = lazy.metrics.confusion_matrix(codes, predicted, labels=np.arange(len(labels)))
    return MeasuredScores(values, labels=schema.shown(model, labels), confusion=counts.tolist())


def _of_numbers(y: np.ndarray, predicted: np.ndarray) -> MeasuredScores:
    values: dict[str, float] = {}
    by_target: dict[str, list[float]] = {}
    for name, measure in MEASURES.items():
        score = None if measure.of_numbers is None else measure.of_numbers(y, predicted)
        if score is None:
            continue
        if y.ndim == 1:
            values[name] = float(score)
            continue
        if measure.unit != OF_TARGET:  # targets may have different units
            values[name] = float(score.mean())
        by_target[name] = score.tolist()
    return MeasuredScores(values, by_target)


def row_scores(
    measure: str, model: Pipeline, decision: np.ndarray, y: np.ndarray
) -> np.ndarray | None:
    """(n,) the scores of a model's decision values for targets y (n,) or (n, targets): for classes
    numbers whose mean is one of ROW_MEASURES, None if it is undefined for these rows; for
    regression the squared errors in units of the scaled target.
    """
    if model.task == "regression":
        assert model.target_scaler is not None
        errors = (model.labels(decision) - y) / model.target_scaler.unit
        return np.mean(np.reshape(errors, (len(y), -1)) ** 2, axis=1)
    assert model.classes is not None
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
