"""What always saying the same scores: the most frequent label, or the mean; and whether a
run is better than that.
"""

import numpy as np

from rfx.records.result import Result


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
    """The sentence that a row's score is no better than a constant's; None where it is."""
    params, rmse = row.params, row.task == "regression"
    score = params.get("train_score") if row.score is None else row.score
    least = params.get("constant_score")
    if score is None or least is None or (score < least if rmse else score > least):
        return None
    same = "the mean of the targets" if rmse else "always the most frequent label"
    return (
        f"{'rmse' if rmse else 'accuracy'} {score:.4g} is no better than {least:.4g}, which"
        f" {same} has"
    )
