"""Rows with weights for the tests of sample weights: a disc to be learnt in each task."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class WeightedRows:
    """X (rows, 3), targets by task, integer weights 0 to 3, real weights, and the row numbers
    repeated by the integer weights.
    """

    X: np.ndarray
    targets: dict[str, np.ndarray]
    weights: np.ndarray
    shares: np.ndarray
    repeated: np.ndarray


def weighted_rows(count: int) -> WeightedRows:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (count, 3))
    radius = np.linalg.norm(X, axis=1) + 0.3 * rng.normal(size=count)
    targets = {
        "regression": 5 + np.sin(2 * radius),
        "binary": np.where(radius > 1.9, 1.0, -1.0),
        "multiclass": np.digitize(radius, [1.5, 2.2]).astype(float),
    }
    weights = rng.integers(0, 4, count).astype(float)
    shares = rng.uniform(0.2, 3.0, count)
    repeated = np.repeat(np.arange(count), weights.astype(int))
    return WeightedRows(X, targets, weights, shares, repeated)
