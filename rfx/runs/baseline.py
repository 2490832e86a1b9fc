"""Scores of simple models on the rows of a run: a constant, a linear model, gradient boosting."""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import lazy
from rfx.fitting.held_out import drawn
from rfx.parallel import one_blas_thread
from rfx.records.result import Result
from rfx.records.run import Run

# Maximum rows to fit the linear model and boosting: at least FITTED, and more of a narrow table,
# with up to VALUES numbers for each class.
FITTED, VALUES = 10_000, 2_000_000
# Trees of gradient boosting for each class, if no more than ALL_TREES in total, and the classes
# above which boosting is left out because few trees would cripple it. The number of trees limits
# the time and, unlike a time limit, gives the same score on every machine.
TREES, ALL_TREES, MOST_CLASSES = 100, 400, 10
# Maximum numbers of the dense inputs for boosting.
_DENSE = 20_000_000
# (targets of the training rows, targets of the rows to evaluate)
Targets = tuple[np.ndarray, np.ndarray]


def constant(method, parts: Sequence[Targets]) -> float:
    """The score of the most frequent label, or the mean, of the training targets of each part."""
    predicted = [np.broadcast_to(_typical(method, kept), np.shape(out)) for kept, out in parts]
    return _score(method, np.concatenate(predicted), np.concatenate([out for _, out in parts]))


def _typical(method, y):
    if method.task == "regression":
        return np.mean(y, axis=0)
    labels, counts = np.unique(y, return_counts=True)
    return labels[np.argmax(counts)]


def no_better(row: Result) -> str | None:
    """A warning that a row's score is no better than a constant's; None otherwise."""
    params, rmse = row.params, row.task == "regression"
    score = params.get("train_score") if row.score is None else row.score
    least = params.get("constant_score")
    if score is None or least is None or (score < least if rmse else score > least):
        return None
    if params.get("n_classes") == 1:
        return "all training rows have the same label, so the model always predicts it"
    same = "the mean target" if rmse else "the most frequent label"
    return (
        f"{'rmse' if rmse else 'accuracy'} {score:.4g} is no better than {least:.4g}, the score of"
        f" always predicting {same}"
    )


def better(row: Result) -> dict[str, float]:
    """The simple models whose score is better than the row's, and by how much."""
    sign = -1 if row.task == "regression" else 1
    named = {"linear": "a linear model", "boosting": "gradient boosting"}
    gains = {
        words: sign * (row.params["baseline"].get(name, math.nan) - row.score)
        for name, words in named.items()
    }
    return {words: gain for words, gain in gains.items() if gain > 0}


def beside(run: Run, split: Any, method: Any) -> dict[str, Any] | None:
    """Scores of a constant, a linear model and HistGradientBoosting for comparison with a run.

    They are fitted to the rows, and evaluated on the rows, of the run's score: its training and
    test rows, or each part of its held-out rows. Of very many, the linear model and boosting are
    fitted to some, as `on` says. Accuracy, or the RMSE in units of the scaled target. Inputs are
    those passed to the method, before its scaling.

    Parameters
    ----------
    run : Run
    split : data.Split
        With the results on held-out rows, unless it has test rows.
    method : Pipeline
        The trained method.

    Returns
    -------
    dict or None
        on, constant, linear, boosting, iterations, seconds; None if there are too few rows, or
        scikit-learn raises an error, as for numbers whose squares are not finite.
    """
    start, y, held = time.perf_counter(), np.asarray(split.y_train), split.X_test is None
    if y.ndim > 1 or len(np.unique(y)) < 2 or (held and split.held_out is None):
        return None
    parts = split.held_out.parts if held else [(np.arange(len(y)), None)]
    targets = [(y[kept], y[out] if held else np.asarray(split.y_test)) for kept, out in parts]
    y_out, classes = np.concatenate([out for _, out in targets]), method.task != "regression"
    outputs = len(np.unique(y)) if method.task == "multiclass" else 1
    most = max(FITTED, VALUES // (max(1, split.X_train.shape[1]) * outputs))
    predicted: dict[str, list[np.ndarray]] = {"linear": [], "boosting": []}
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            for (kept, out), (y_kept, _) in zip(parts, targets):
                (few,) = drawn(len(kept), run.seed, most)
                X, X_out = split.part(kept, out) if held else (split.X_train, split.X_test)
                X, weights = X[few], None
                if split.weights is not None:
                    weights = split.weights[kept][few] / np.mean(split.weights)
                # labels may be any numbers
                labels, codes = np.unique(y_kept[few], return_inverse=True)
                fitted_to = codes if classes else y_kept[few]
                models = {
                    "linear": _linear(method.task, X).fit(
                        X, fitted_to, model__sample_weight=weights
                    )
                }
                boosts = not classes or len(labels) <= MOST_CLASSES
                if boosts and X.shape[0] * X.shape[1] <= _DENSE:
                    models["boosting"] = _boosted(
                        method.task, _dense(X), fitted_to, weights, run.seed
                    )
                    iterations = {"iterations": int(models["boosting"].n_iter_)}
                blocks = np.array_split(
                    np.arange(X_out.shape[0]), 1 + X_out.shape[0] * X_out.shape[1] // _DENSE
                )
                for name, model in models.items():
                    as_needed = _dense if name == "boosting" else lambda X: X
                    each = [model.predict(as_needed(X_out[block])) for block in blocks]
                    values = np.concatenate(each)
                    predicted[name].append(labels[values] if classes else values)
    except ValueError:
        return None
    scores = {
        name: _score(method, np.concatenate(values), y_out)
        for name, values in predicted.items()
        if len(values) == len(parts)
    }
    largest = max(len(kept) for kept, _ in targets)
    few_of = f", fitted to {most:,} of {largest:,} rows" if largest > most else ""
    return {
        "on": f"the same {len(y_out):,} rows{few_of}",
        "constant": constant(method, targets),
        **scores,
        **(iterations if "boosting" in scores else {}),
        "seconds": time.perf_counter() - start,
    }


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


def _linear(task: str, X: Any) -> Any:
    """Ridge or logistic regression of standardised inputs."""
    models = lazy.linear_model
    model = (
        models.Ridge(alpha=1.0)
        if task == "regression"
        else models.LogisticRegression(tol=1e-2, max_iter=100)
    )
    scaled = lazy.preprocessing.StandardScaler(with_mean=not sp.issparse(X))
    return lazy.pipeline.Pipeline([("scaled", scaled), ("model", model)])


def _boosted(task, X, y, weights, seed):
    """HistGradientBoosting with defaults except its trees, in one thread.

    On a busy machine its threads spend more time waiting for each other than working.
    """
    each = len(np.unique(y)) if task == "multiclass" else 1
    trees = min(TREES, ALL_TREES // each)
    kind = "Regressor" if task == "regression" else "Classifier"
    model = getattr(lazy.ensemble, f"HistGradientBoosting{kind}")(
        early_stopping=False, random_state=seed % 2**32, max_iter=trees
    )
    with lazy.threadpoolctl.threadpool_limits(1, user_api="openmp"):
        return model.fit(X, y, sample_weight=weights)


def _score(method, predicted, y) -> float:
    if method.task != "regression":
        return float(np.mean(predicted == y))
    errors = (predicted - y) / method.target_scaler.unit
    return float(math.sqrt(np.mean(errors**2)))
