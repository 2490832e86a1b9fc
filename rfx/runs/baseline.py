"""Scores of simple models on the rows of a run: a constant, a linear model, gradient boosting."""

import math
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import lazy
from rfx.fitting.validation import drawn, folds
from rfx.parallel import one_blas_thread
from rfx.records.result import Result
from rfx.records.run import Run

# Maximum rows to fit and to evaluate baselines.
FITTED, EVALUATED = 10_000, 20_000
# Maximum trees of gradient boosting in total, and minimum for each class. Their number limits the
# time and, unlike a time limit, gives the same score on every machine.
TREES, ALL_TREES, FEWEST_TREES = 100, 400, 20
# Maximum numbers of the dense inputs for boosting.
_DENSE = 20_000_000


def constant(method, y_train, y) -> float:
    """The score, on rows with targets y (m,), of the most frequent label or the mean of the
    training targets y_train (n,).
    """
    y_train, y = np.asarray(y_train), np.asarray(y)
    if method.task == "regression":
        mean, y = (method.target_scaler.transform(part) for part in (np.mean(y_train, axis=0), y))
        return float(np.sqrt(np.mean((y - mean) ** 2)))
    labels, counts = np.unique(y_train, return_counts=True)
    return float(np.mean(y == labels[np.argmax(counts)]))


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


def beside(run: Run, split: Any, method: Any) -> dict[str, Any] | None:
    """Scores of a constant, a linear model and HistGradientBoosting for comparison with a run.

    The rows are those of the run's score: its test rows, the rows held out by `holdout` or by the
    first fold of `cv`, or else a fifth of the training rows, which method auto also uses. Accuracy,
    or the RMSE in units of the scaled target. Inputs are those passed to the method, before its
    scaling. Both models together take at most about two seconds.

    Parameters
    ----------
    run : Run
    split : data.Split
    method : Pipeline
        The trained method.

    Returns
    -------
    dict or None
        on, constant, linear, boosting, iterations, seconds; None if there are too few rows, or
        scikit-learn raises an error, as for numbers whose squares are not finite.
    """
    start = time.perf_counter()
    y = np.asarray(split.y_train)
    if y.ndim > 1 or len(np.unique(y)) < 2:
        return None
    rows = _rows(run, split, y, method.task != "regression")
    if rows is None or min(map(len, rows[:2])) < 2 or len(np.unique(y[rows[0]])) < 2:
        return None
    kept, out, on = rows
    if split.X_test is None:
        (X, X_out), y_out = split.part(kept, out), y[out]
    else:
        X, X_out, y_out = split.X_train[kept], split.X_test[out], np.asarray(split.y_test)[out]
    weights = None if split.weights is None else split.weights[kept]
    found: dict[str, Any] = {"on": on, "constant": constant(method, y[kept], y_out)}
    targets, labels = y[kept], None
    if method.task != "regression":
        # labels may be any numbers
        labels, targets = np.unique(targets, return_inverse=True)

    def score(model, rows):
        predicted = model.predict(rows)
        return _score(method, predicted if labels is None else labels[predicted], y_out)

    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            found["linear"] = score(_linear(method.task, X).fit(X, targets, weights), X_out)
            if X.shape[1] * max(X.shape[0], X_out.shape[0]) <= _DENSE:
                whole = [part.toarray() if sp.issparse(part) else part for part in (X, X_out)]
                boosting = _boosted(method.task, whole[0], targets, weights, run.seed)
                found["boosting"] = score(boosting, whole[1])
                found["iterations"] = int(boosting.n_iter_)
    except ValueError:
        return None
    return found | {"seconds": time.perf_counter() - start}


def _rows(run, split, y, classes):
    """(training rows, evaluation rows, their description)."""
    n = len(y)
    if split.X_test is not None:
        (out,) = drawn(split.X_test.shape[0], run.seed, EVALUATED)
        (kept,) = drawn(n, run.seed, FITTED)
        of = "" if len(out) == split.X_test.shape[0] else " of the"
        return kept, out, f"{len(out):,}{of} test rows"
    if n < 10:
        return None
    if run.cv or run.holdout:
        kept, out = folds(y, classes, run.seed, run.cv, run.holdout, split.schema, split.apart)[0]
    elif split.apart is not None:
        if split.apart.one:
            return None
        kept, out = split.apart.held_out(0.2, run.seed, y if classes else None)
    else:
        out, kept = drawn(n, run.seed, n // 5, n - n // 5)
    of = f", the first of {run.cv} parts" if run.cv else ""
    if split.apart is not None:
        of = (
            of if run.time is None or not run.cv else ", the last of all"
        ) + f" by {split.apart.by}"
    (few,) = drawn(len(kept), run.seed, FITTED)
    (some,) = drawn(len(out), run.seed, EVALUATED)
    return kept[few], out[some], f"{len(some):,} held-out rows{of}"


class _Linear:
    """Ridge or logistic regression of standardised inputs."""

    def __init__(self, model, shift, scale):
        self.model, self.shift, self.scale = model, shift, scale

    def rows(self, X):
        if sp.issparse(X):
            return X @ sp.diags(1 / self.scale)
        return (X - self.shift) / self.scale

    def fit(self, X, y, weights):
        self.model.fit(self.rows(X), y, sample_weight=weights)
        return self

    def predict(self, X):
        return self.model.predict(self.rows(X))


def _linear(task: str, X: Any) -> _Linear:
    if sp.issparse(X):
        squares = X.multiply(X).mean(axis=0)
        shift, scale = 0.0, np.sqrt(np.asarray(squares)).ravel()
    else:
        shift, scale = X.mean(axis=0), X.std(axis=0)
    models = lazy.linear_model
    model = (
        models.Ridge(alpha=1.0)
        if task == "regression"
        else models.LogisticRegression(tol=1e-2, max_iter=100)
    )
    return _Linear(model, shift, np.where(scale > 0, scale, 1.0))


def _boosted(task, X, y, weights, seed):
    """HistGradientBoosting with defaults except its trees, in one thread.

    On a busy machine its threads spend more time waiting for each other than working.
    """
    each = len(np.unique(y)) if task == "multiclass" else 1
    trees = max(FEWEST_TREES, min(TREES, ALL_TREES // each))
    kind = "Regressor" if task == "regression" else "Classifier"
    model = getattr(lazy.ensemble, f"HistGradientBoosting{kind}")(
        early_stopping=False, random_state=seed % 2**32, max_iter=trees
    )
    with lazy.threadpoolctl.threadpool_limits(1, user_api="openmp"):
        return model.fit(X, y, sample_weight=weights)


def _score(method, predicted, y) -> float:
    if method.task != "regression":
        return float(np.mean(predicted == y))
    errors = method.target_scaler.transform(predicted) - method.target_scaler.transform(y)
    return float(math.sqrt(np.mean(errors**2)))
