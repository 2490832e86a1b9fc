"""Scores of simple models on the rows of a run, for comparison: a constant, a linear model,
gradient boosting.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import scipy.sparse as sp

from rfx import lazy
from rfx.data.tabular.native import native_inputs
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table
from rfx.data.training_table import TrainingTable
from rfx.fitting.assessment import Assessment
from rfx.fitting.held_out import drawn
from rfx.fitting.pipeline import Pipeline
from rfx.parallel import one_blas_thread
from rfx.records.params import BaselineScores
from rfx.records.run import Run
from rfx.runs.evaluation import class_row_scores, row_scores, score_of, standard_error
from rfx.types import Inputs

# Maximum rows to fit the linear model and boosting: at least FITTED, and up to MOST_FITTED of a
# narrow table, with up to VALUES numbers for each class. On 160,000 rows with three inputs boosting
# took as long as rf.
FITTED, MOST_FITTED, VALUES = 10_000, 20_000, 2_000_000
# Trees of gradient boosting for each class, if no more than ALL_TREES in total, and the classes
# above which boosting is left out because few trees would cripple it. The number of trees limits
# the time and, unlike a time limit, gives the same score on every machine.
TREES, ALL_TREES, MOST_CLASSES = 100, 400, 10
# Maximum numbers of the dense inputs for boosting.
_DENSE = 20_000_000


def constant(model: Pipeline, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """The score of the most frequent label, or the mean, of the training targets of each part.

    parts: (targets of the training rows, targets of the rows to evaluate).
    """
    typical = [np.broadcast_to(_typical(model, kept), np.shape(out)) for kept, out in parts]
    predicted = np.concatenate(typical)
    y = np.concatenate([out for _, out in parts])
    if model.task == "regression":
        return score_of("rmse", _squared_errors(model, predicted, y))
    return score_of("accuracy", predicted == y)


def _typical(model: Pipeline, y: np.ndarray) -> np.ndarray:
    if model.task == "regression":
        return np.mean(y, axis=0)
    labels, counts = np.unique(y, return_counts=True)
    return labels[np.argmax(counts)]


def baseline_scores(
    run: Run,
    table: TrainingTable,
    model: Pipeline,
    decision: np.ndarray | None = None,
    assessment: Assessment | None = None,
) -> BaselineScores | None:
    """Scores of a constant, a linear model and HistGradientBoosting for comparison with a run.

    They are fitted to the rows, and evaluated on the rows, of the run's score: its training and
    test rows, or each part of its held-out rows. Of very many, the linear model and boosting are
    fitted to some, as `on` says. Scores are by the run's measure, by default accuracy, or the RMSE
    in units of the scaled target. The inputs of the linear model are those passed to the model,
    before its scaling. Those of boosting are the cells of the table, with words as categories and
    without replacements (`rfx.data.tabular.native`), because it treats both itself.

    Parameters
    ----------
    run : Run
    table : TrainingTable
    model : Pipeline
        That of the run.
    decision : array, optional
        Its decision values for the rows of the score.
    assessment : Assessment, optional
        Of the rows of the score, if there are no test rows.

    Returns
    -------
    BaselineScores or None
        None if there are too few rows, or scikit-learn raises an error, as for numbers whose
        squares are not finite.
    """
    start = time.perf_counter()
    y = np.asarray(table.y_train)
    if y.ndim > 1 or len(np.unique(y)) < 2:
        return None
    parts: Sequence[tuple[np.ndarray, np.ndarray | None]]
    if table.X_test is not None:
        parts = [(np.arange(len(y)), None)]
        targets = [(y, np.asarray(table.y_test))]
    elif assessment is not None:
        parts = assessment.parts
        targets = [(y[kept], y[out]) for kept, out in assessment.parts]
    else:
        return None
    y_out = np.concatenate([out for _, out in targets])
    measure, own = _own_scores(run, model, decision, y_out)
    most = _most_fitted(table.X_train.shape[1], y, model.task)
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            predicted, iterations = _simple_predictions(run, table, model, parts, most)
    except ValueError:
        return None
    each = {name: _row_scores(model, measure, y_out, found) for name, found in predicted.items()}
    known = {name: rows for name, rows in each.items() if rows is not None}
    errors = None
    if own is not None:
        errors = {name: standard_error(measure, own, rows) for name, rows in known.items()}
    return BaselineScores(
        metric=measure,
        on=_rows_of_baselines(targets, most),
        constant=_constant_score(model, measure, y, targets),
        **{name: score_of(measure, rows) for name, rows in known.items()},
        iterations=iterations if "boosting" in known else None,
        standard_errors=errors,
        seconds=time.perf_counter() - start,
    )


def _most_fitted(n_inputs: int, y: np.ndarray, task: str) -> int:
    """The most rows to fit the linear model and boosting."""
    outputs = len(np.unique(y)) if task == "multiclass" else 1
    return min(MOST_FITTED, max(FITTED, VALUES // (max(1, n_inputs) * outputs)))


def _rows_of_baselines(targets: list, most: int) -> str:
    """The rows of the score and of the fits, in words; targets: (fitted, evaluated)."""
    count = sum(len(out) for _, out in targets)
    largest = max(len(kept) for kept, _ in targets)
    few_of = f", fitted to {most:,} of {largest:,} rows" if largest > most else ""
    return f"the same {count:,} rows{few_of}"


def _own_scores(
    run: Run, model: Pipeline, decision: np.ndarray | None, y: np.ndarray
) -> tuple[str, np.ndarray | None]:
    """(measure, the scores of the rows by the model's decision values): by accuracy without
    probabilities, or for rows of one class.
    """
    measure = measure_of(run, model.task)
    if decision is None:
        return measure, None
    scores = row_scores(measure, model, decision, y)
    if scores is not None:
        return measure, scores
    return "accuracy", row_scores("accuracy", model, decision, y)


def measure_of(run: Run, task: str) -> str:
    """The measure of a run's score."""
    return "rmse" if task == "regression" else run.given().get("measure") or "accuracy"


class _SimpleModel(Protocol):
    """A model of scikit-learn; with `predict_proba` if it is of classes."""

    n_iter_: int

    def fit(self, X: Inputs, y: np.ndarray, **weights: np.ndarray | None) -> Self:
        """Fit it to rows."""

    def predict(self, X: Inputs) -> np.ndarray:
        """(n,) numbers."""

    def predict_proba(self, X: Inputs) -> np.ndarray:
        """(n, classes) probabilities."""


@dataclass(frozen=True)
class _Rows:
    """Rows that simple models are fitted to, and rows that they predict.

    X (n, d) and X_out (m, d): inputs. tables: both as they were read, or None twice if the inputs
    have all that was read. y: numbers (n,), or the positions of its labels among `labels`. weights:
    (n,) or None.
    """

    X: Inputs
    X_out: Inputs
    tables: tuple[Table | None, Table | None]
    y: np.ndarray
    labels: np.ndarray | None
    weights: np.ndarray | None

    def native(self, schema: Schema | None) -> tuple[Inputs, Inputs, np.ndarray | None]:
        """(inputs, inputs to predict, whether each is a category) of boosting."""
        if schema is None or schema.inputs is None:
            return self.X, self.X_out, None
        inputs, categorical = native_inputs(schema, self.X, self.tables[0])
        return inputs, native_inputs(schema, self.X_out, self.tables[1])[0], categorical


def _rows_of_part(
    run: Run, table: TrainingTable, task: str, part: tuple[np.ndarray, np.ndarray | None], most: int
) -> _Rows:
    """The rows of a part (fitted, evaluated), of which at most `most` are fitted; without held-out
    rows, the test rows are evaluated.
    """
    kept, out = part
    X, X_out = (table.X_train, table.X_test) if out is None else table.part(kept, out)
    (few,) = drawn(len(kept), run.seed, most)
    rows = kept[few]
    y = np.asarray(table.y_train)[rows]
    labels = None
    weights = None
    if task != "regression":  # labels may be any numbers
        labels, y = np.unique(y, return_inverse=True)
    if table.weights is not None:
        weights = table.weights[rows] / np.mean(table.weights)
    return _Rows(X[few], X_out, _tables(table, rows, out), y, labels, weights)


def _tables(
    training: TrainingTable, rows: np.ndarray, out: np.ndarray | None
) -> tuple[Table | None, Table | None]:
    """The tables of the training rows `rows` and of `out`, or None twice; see `_Rows`."""
    if training.source is None or (out is None and training.test_source is None):
        return None, None
    source = training.source[0]
    return source.rows(rows), training.test_source if out is None else source.rows(out)


def _simple_predictions(
    run: Run, table: TrainingTable, model: Pipeline, parts: Sequence, most: int
) -> tuple[dict[str, np.ndarray], int]:
    """({name: predictions} of the linear model and boosting, the iterations of boosting), on the
    rows of the score, (n,) numbers or (n, classes) probabilities; each model is fitted to at most
    `most` rows of each part.
    """
    by_linear: list[np.ndarray] = []
    by_boosting: list[np.ndarray] = []
    iterations = 0
    for part in parts:
        rows = _rows_of_part(run, table, model.task, part, most)
        labels = rows.labels
        dense = rows.X.shape[0] * rows.X.shape[1] <= _DENSE
        X = _dense(rows.X) if dense else rows.X
        linear = _linear(model.task, X).fit(X, rows.y, model__sample_weight=rows.weights)
        by_linear.append(_predictions(model, linear, labels, rows.X_out, dense))
        if dense and (labels is None or len(labels) <= MOST_CLASSES):
            X, X_out, categorical = rows.native(table.schema)
            boosting = _boosted(model.task, X, rows.y, rows.weights, run.seed, categorical)
            iterations = int(boosting.n_iter_)
            by_boosting.append(_predictions(model, boosting, labels, X_out, dense))
    predicted = {"linear": np.concatenate(by_linear)}
    if len(by_boosting) == len(parts):
        predicted["boosting"] = np.concatenate(by_boosting)
    return predicted, iterations


def _predictions(
    model: Pipeline, simple: _SimpleModel, labels: np.ndarray | None, X: Inputs, dense: bool
) -> np.ndarray:
    """The numbers (n,) that a simple model predicts for rows X, or its probabilities (n, k) of the
    run's classes; labels: those of its codes; dense: whether it needs arrays.
    """
    blocks = np.array_split(np.arange(X.shape[0]), 1 + X.shape[0] * X.shape[1] // _DENSE)
    rows = (_dense(X[block]) if dense else X[block] for block in blocks)
    if labels is None:
        return np.concatenate([simple.predict(block) for block in rows])
    assert model.classes is not None
    shares = np.zeros((X.shape[0], len(model.classes)))
    columns = np.searchsorted(model.classes, labels)
    shares[:, columns] = np.concatenate([simple.predict_proba(block) for block in rows])
    return shares


def _row_scores(
    model: Pipeline, measure: str, y: np.ndarray, found: np.ndarray
) -> np.ndarray | None:
    """`row_scores` of the predictions of a simple model."""
    if model.task == "regression":
        return _squared_errors(model, found, y)
    assert model.classes is not None
    predicted = model.classes[np.argmax(found, axis=1)]
    return class_row_scores(measure, model.classes, y, predicted, found)


def _squared_errors(model: Pipeline, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of predicted numbers, in units of the scaled target."""
    assert model.target_scaler is not None
    return ((predicted - y) / model.target_scaler.unit) ** 2


def _constant_score(model: Pipeline, measure: str, y: np.ndarray, targets: list) -> float:
    """`constant` by a measure; others than accuracy and RMSE are those of the shares of the labels
    of all training rows y.
    """
    if measure in ("accuracy", "rmse"):
        return constant(model, targets)
    y_out = np.concatenate([out for _, out in targets])
    shares = np.mean(y[:, None] == model.classes, axis=0)
    own = _row_scores(model, measure, y_out, np.broadcast_to(shares, (len(y_out), len(shares))))
    return constant(model, targets) if own is None else score_of(measure, own)


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


def _linear(task: str, X: Inputs) -> _SimpleModel:
    """Ridge or logistic regression of standardised inputs, which are not centred if sparse."""
    models = lazy.linear_model
    model = (
        models.Ridge(alpha=1.0)
        if task == "regression"
        else models.LogisticRegression(tol=1e-3, max_iter=1000)
    )
    scaled = lazy.preprocessing.StandardScaler(with_mean=not sp.issparse(X))
    return lazy.pipeline.Pipeline([("scaled", scaled), ("model", model)])


def _boosted(
    task: str,
    X: Inputs,
    y: np.ndarray,
    weights: np.ndarray | None,
    seed: int,
    categorical: np.ndarray | None,
) -> _SimpleModel:
    """HistGradientBoosting with defaults except its trees, in one thread; categorical: (d,) whether
    a column has category numbers, or None.

    On a busy machine its threads spend more time waiting for each other than working.
    """
    each = len(np.unique(y)) if task == "multiclass" else 1
    trees = min(TREES, ALL_TREES // each)
    kind = "Regressor" if task == "regression" else "Classifier"
    model = getattr(lazy.ensemble, f"HistGradientBoosting{kind}")(
        early_stopping=False,
        random_state=seed % 2**32,
        max_iter=trees,
        categorical_features=categorical,
    )
    with lazy.threadpoolctl.threadpool_limits(1, user_api="openmp"):
        return model.fit(_dense(X), y, sample_weight=weights)
