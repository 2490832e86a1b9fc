"""The rows of a training: those to learn from, those to test on, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rfx.data import registry, tables
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table


@dataclass(frozen=True)
class TrainingTable:
    """Rows for training and testing. It is complete when it is made, and never changed.

    Parameters
    ----------
    name, split : str
        Of the data, and of the choice of its training rows.
    task : {"binary", "multiclass", "regression"} or None
        None for a file, unless its labels are words.
    X_train : csr_matrix or array, (n, d)
        Float64 from files; from built-in sets float64, or float32 for the shape-alikes. None for
        rows that are read in batches or by workers.
    y_train : array, (n,), or None
        Float64.
    X_test, y_test : the same for m rows, or None
    info : DatasetInfo or None
        The registry's entry; None for a file.
    schema : Schema or None
        What the training rows determine about reading other rows.
    weights : array, (n,), or None
        Sample weights of the training rows.
    source : (Table, Learner) or None
        The training rows before they were encoded, and what encodes them, if X depends on further
        learning: cells are missing, or columns become target means.
    test_source : Table or None
        The test rows before they were encoded, if X depends on further learning.
    seed : int
        Splits the rows into parts for target means.
    constraint : SplitConstraint or None
        Keeps related training rows together when some are held out.
    """

    name: str
    split: str
    task: str | None
    X_train: Any
    y_train: np.ndarray | None
    X_test: Any = None
    y_test: np.ndarray | None = None
    info: registry.DatasetInfo | None = None
    schema: Schema | None = None
    weights: np.ndarray | None = None
    source: tuple[Table, Learner] | None = None
    test_source: Table | None = None
    seed: int = 0
    constraint: SplitConstraint | None = None

    @classmethod
    def of_rows(cls, X: Any, y: np.ndarray, weights: Any = None) -> Self:
        """The table of encoded rows X (n, d), targets y (n,) and sample weights (n,) or None, from
        which nothing is learnt again.
        """
        weights = None if weights is None else np.asarray(weights)
        return cls("", "all", None, X, y, weights=weights)

    def encoded(self) -> Self:
        """The same rows as they are encoded now: a part of them has the same inputs."""
        return replace(self, source=None)

    def part(self, kept: np.ndarray, out: np.ndarray) -> tuple[Any, Any]:
        """(X_train[kept], X_train[out]), with replacements of missing cells and target means learnt
        from the rows `kept` alone; kept, out: row numbers.
        """
        if self.source is None:
            return self.X_train[kept], self.X_train[out]
        schema, X = self._relearnt(kept)
        return X, schema.encode(self.source[0].rows(out), targets="ignored")[0]

    def _relearnt(self, kept: np.ndarray) -> tuple[Schema, Any]:
        """What the rows `kept` of the table determine about reading others, and their X."""
        assert self.schema is not None and self.y_train is not None and self.source is not None
        table, learner = self.source
        schema = learner.relearnt(self.schema, table.rows(kept))
        schema, X, _ = tables.fitted(
            schema, table, self.y_train, self.task, self.seed, kept, self.constraint
        )
        return schema, X

    def weighted(self, weights: np.ndarray) -> Self:
        """The table with sample weights (n,) of its training rows, without those of weight 0."""
        kept = np.flatnonzero(weights)
        if len(kept) in (0, len(weights)):
            return replace(self, weights=weights)
        assert self.y_train is not None
        some = replace(
            self,
            y_train=self.y_train[kept],
            weights=weights[kept],
            constraint=None if self.constraint is None else self.constraint.rows(kept),
        )
        if self.source is None:
            return replace(some, X_train=self.X_train[kept])
        table, learner = self.source
        schema, X = self._relearnt(kept)
        return replace(some, X_train=X, schema=schema, source=(table.rows(kept), learner))
