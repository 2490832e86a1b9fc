"""Sample weights for the methods that learn in batches: the loss is the weighted mean, sum_n w_n
L(f(x_n), y_n) / sum_n w_n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rfx.data import guess_task
from rfx.data.tabular.apart import Apart
from rfx.data.tabular.schema import Schema
from rfx.errors import UsageError
from rfx.fitting import weights

if TYPE_CHECKING:
    from rfx.fitting.method import Method


class BatchWeights:
    """The factors of each batch's losses: the rows' weights divided by their mean, over all rows or
    over those so far.

    own: (n,) weights of all rows of the set, by their numbers; None if unknown beforehand.
    by_label: weights of labels, 1 for unlisted ones.
    """

    def __init__(
        self, own: np.ndarray | None = None, by_label: dict[float, float] | None = None
    ) -> None:
        self.own, self.by_label = own, by_label or {}
        self.rows, self.sum = (0, 0.0) if own is None else (len(own), float(own.sum()))

    @classmethod
    def of_stream(cls, class_weight: str | None, schema: Schema | None = None) -> BatchWeights:
        """Create from the option class_weight alone. Raises UsageError for `balanced`, which needs
        all rows.
        """
        by_label = weights.by_code(class_weight, schema)
        if isinstance(by_label, str):
            raise UsageError(
                "--class-weight balanced needs the counts of all rows beforehand; with --stream use"
                " LABEL:WEIGHT"
            )
        return cls(by_label=by_label)

    def check(
        self, task: str, classes: np.ndarray, class_weight: str | None, schema: Schema | None
    ) -> None:
        """Raise UsageError for weights of unknown labels."""
        if self.by_label and task == "regression":
            raise weights.not_for_regression(class_weight)
        if self.by_label:
            weights.of_labels(classes, self.by_label, schema)

    def relative(self) -> np.ndarray | None:
        """(n,) the rows' own weights divided by their mean; None without weights."""
        return None if self.own is None else self.own * (self.rows / self.sum)

    def of(self, y: np.ndarray, index: np.ndarray) -> np.ndarray | None:
        """(m,) of the rows with the targets y (m,) and the numbers `index`; None for ones."""
        return self.further(y) if self.own is None else self.own[index] * (self.rows / self.sum)

    def of_some(
        self, y: np.ndarray, index: np.ndarray, given: np.ndarray | None = None
    ) -> np.ndarray | None:
        """(m,) weights of a sample of the rows, without updating the mean; None for ones.

        given: (n,) weights of all rows by their numbers, if they differ from the set's own.
        """
        weights = self.own if given is None else given
        found = np.ones(len(y)) if weights is None else weights[index]
        for label, weight in self.by_label.items():
            found = np.where(y == label, weight * found, found)
        return None if np.all(found == 1) or not found.sum() else found

    def further(self, y: np.ndarray, given: np.ndarray | None = None) -> np.ndarray | None:
        """(m,) weights of further rows, with the targets y (m,), which update the mean; given: (m,)
        their sample weights, None for ones.
        """
        found = np.ones(len(y)) if given is None else given
        for label, weight in self.by_label.items():
            found = np.where(y == label, weight * found, found)
        self.rows, self.sum = self.rows + len(y), self.sum + float(found.sum())
        if self.sum == self.rows and np.all(found == 1):
            return None
        return found * (self.rows / self.sum) if self.sum else found


def counted(
    method: Method,
    schema: Schema | None,
    X: Any,
    y: np.ndarray,
    sample_weight: Any,
    apart: Apart | None = None,
) -> tuple[Any, np.ndarray, np.ndarray | None, Apart | None, str | None]:
    """(X, y, weights, apart, task) with the first four as in `rfx.fitting.weights.counted`, for y
    (n,) or (n, k).

    task is None without weights.

    Raises the same exceptions, and UsageError for virtual examples.
    """
    if sample_weight is None and method.get("class_weight") is None:
        return X, y, None, apart, None
    if method.virtual != "none":
        raise UsageError(
            f"--virtual is {method.virtual}, whose generated rows have no sample weights; omit"
            " the weights"
        )
    task = method.task or ("regression" if y.ndim == 2 else guess_task(y))
    return *weights.counted(method, task, schema, X, y, sample_weight, apart), task
