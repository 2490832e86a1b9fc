"""Sample weights of rows that arrive in batches."""

from __future__ import annotations

import numpy as np

from rfx.data.tabular.schema import Schema
from rfx.errors import UsageError
from rfx.fitting import weights


class BatchWeights:
    """The factors of each batch's losses: the rows' weights divided by their mean, over all rows or
    over those so far.

    own: (n,) weights of all rows of the set, by their numbers; None if unknown beforehand.
    class_weight: the option, for rows whose weights are not known. Raises UsageError for
    `balanced`, which needs all rows.
    """

    def __init__(
        self,
        own: np.ndarray | None = None,
        class_weight: str | None = None,
        schema: Schema | None = None,
    ) -> None:
        by_label = weights.by_code(class_weight, schema)
        if isinstance(by_label, str):
            raise UsageError(
                "--class-weight balanced needs the counts of all rows beforehand; with --stream use"
                " LABEL:WEIGHT"
            )
        self.own = own
        self.by_label = by_label or {}
        self.schema = schema
        self.rows, self.sum = (0, 0.0) if own is None else (len(own), float(own.sum()))

    def check(self, classes: np.ndarray | None, class_weight: str | None) -> None:
        """Raise UsageError for weights of unknown labels."""
        if self.by_label and classes is None:
            raise weights.not_for_regression(class_weight)
        if classes is not None:
            weights.of_labels(classes, self.by_label, self.schema)

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
        all_rows = self.own if given is None else given
        some = self._labelled(y, None if all_rows is None else all_rows[index])
        return None if np.all(some == 1) or not some.sum() else some

    def further(self, y: np.ndarray, given: np.ndarray | None = None) -> np.ndarray | None:
        """(m,) weights of further rows, with the targets y (m,), which update the mean; given: (m,)
        their sample weights, None for ones.
        """
        batch = self._labelled(y, given)
        self.rows, self.sum = self.rows + len(y), self.sum + float(batch.sum())
        if self.sum == self.rows and np.all(batch == 1):
            return None
        return batch * (self.rows / self.sum) if self.sum else batch

    def _labelled(self, y: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        """The given weights times those of the labels."""
        product = np.ones(len(y)) if given is None else given
        for label, weight in self.by_label.items():
            product = np.where(y == label, weight * product, product)
        return product
