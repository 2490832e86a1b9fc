"""Statistics of rows needed before training, learnt in passes over a stream with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.counters import uniforms
from rfx.data.transforms.columns import TRANSFORMS
from rfx.data.transforms.pca import PCA, unit_rows
from rfx.data.transforms.scaling import (
    Scaler,
    TargetScaler,
    column_spread,
    joined,
    keeps_sparse,
)
from rfx.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.data.rows import RowsLike

# Rows of the sample, maximum labels counted, rows per chunk.
SAMPLE, MOST_LABELS, CHUNK = 4096, 1000, 8192
# Rows of the separate sample for learning column transforms.
TRANSFORMED = 10_000
_DRAW = 91


@dataclass
class Inputs:
    """Prepares rows for a model: scaling, unit length if requested, then principal components."""

    scaler: Scaler
    unit: bool = False
    pca: PCA | None = None

    def transform(self, X: RowsLike, dtype: DTypeLike = np.float32) -> RowsLike:
        """Rows X (n, d), array or CSR, in dtype: CSR if nothing makes them dense, else an array."""
        return self.after_scaling(self.scaler.transform(X, dtype=dtype))

    def after_scaling(self, X: RowsLike) -> RowsLike:
        """The remaining steps, for scaled rows."""
        X = unit_rows(X) if self.unit else X
        return X if self.pca is None else self.pca.transform(X)

    def steps(self, dtype: DTypeLike) -> told.Steps:
        """The computation steps of `after_scaling` for dense rows of that type."""
        own: told.Steps = (told.Unit(), *told.rounded(dtype)) if self.unit else ()
        return own if self.pca is None else own + self.pca.steps(dtype)


class Survey:
    """n_rows, n_inputs, the targets' labels or range, Inputs, and a random sample of the prepared
    rows (X, y) with their numbers `index`.

    y: (n,) or, for several targets per row, (n, k). labels: the distinct targets, ascending, None
    for more than a thousand or for several targets per row; n_targets: targets per row.
    """

    def __init__(
        self,
        chunks: Callable[[], Iterator[tuple[Any, np.ndarray]]],
        *,
        scaling: str = "none",
        unit: bool = False,
        pca: int | None = None,
        centred: bool = True,
        dtype: DTypeLike = np.float32,
        seed: int = 0,
        sample: int = SAMPLE,
        name: str | None = None,
    ) -> None:
        """chunks: a function that returns an iterator of (X, y) over all rows; called once or
        twice. name: of the rows, for messages.

        A scaling with column transforms is learnt from TRANSFORMED rows, drawn by the seed
        independently of the chunks, or from all rows if there are fewer.
        """
        self.n_rows, self.n_inputs = 0, 0
        self.labels: np.ndarray | None = np.zeros(0)
        self._scaling, sparse = scaling, True
        self._spread: tuple[np.ndarray, np.ndarray] | None = None
        self._y: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        kept: tuple[Any, np.ndarray, np.ndarray] | None = None
        keys, most = np.zeros(0), max(sample, TRANSFORMED) if scaling in TRANSFORMS else sample
        learner = PCA(pca, centred) if pca else None
        plain = Inputs(Scaler.fit(np.zeros((1, 1)), "none"), unit)
        for X, y in _cut(chunks()):
            if not self.n_rows:
                self.n_inputs = X.shape[1]
                plain.scaler = Scaler("none", np.zeros(X.shape[1]), np.ones(X.shape[1]))
            self._count(X, y)
            sparse = sparse and keeps_sparse(X)
            own = uniforms(seed, _DRAW, self.n_rows, self.n_rows + len(y), 1)[:, 0]
            numbers = np.arange(self.n_rows, self.n_rows + len(y))
            kept, keys = _smallest(kept, keys, (X, y, numbers), own, most)
            if learner and scaling == "none":
                learner.partial_fit(plain.transform(X, dtype))
            self.n_rows += len(y)
        if not self.n_rows:
            raise DataError(
                "there are no rows to learn from"
                if name is None
                else f"{name} has no rows to learn from"
            )
        assert kept is not None
        if scaling == "none":
            scaler = plain.scaler
        elif scaling in TRANSFORMS:
            scaler = Scaler.fit(kept[0][:TRANSFORMED], scaling)
        else:
            low, spread = self._final_spread()
            scaler = Scaler.from_spread(scaling, low, spread, sparse)
        self.inputs = Inputs(scaler, unit)
        if learner and scaling != "none":
            for X, _ in _cut(chunks()):
                learner.partial_fit(self.inputs.transform(X, dtype))
        self.inputs.pca = learner.finish() if learner else None
        # an array or CSR
        self.X: Any = self.inputs.transform(kept[0][:sample], dtype)
        self.y, self.index = kept[1][:sample], kept[2][:sample]

    def _count(self, X, y):
        low, high, total = y.min(axis=0), y.max(axis=0), y.sum(axis=0)
        if self._y is not None:
            low, high, total = (
                np.minimum(self._y[0], low),
                np.maximum(self._y[1], high),
                self._y[2] + total,
            )
        self._y, self.n_targets = (low, high, total), y.shape[1] if y.ndim == 2 else 1
        if self.labels is not None:
            self.labels = np.union1d(self.labels, y) if y.ndim == 1 else None
            if self.labels is not None and len(self.labels) > MOST_LABELS:
                self.labels = None
        if self._scaling == "none" or self._scaling in TRANSFORMS:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            low, spread = column_spread(X, self._scaling)
        if self._spread is None:
            self._spread = low, spread
        elif self._scaling == "standard":
            n, (mean, deviation) = self.n_rows, self._spread
            count, mean, squares = joined(
                n, mean, n * deviation**2, len(y), low, len(y) * spread**2
            )
            self._spread = mean, np.sqrt(squares / count)
        else:
            lowest = np.minimum(self._spread[0], low)
            self._spread = lowest, np.maximum(sum(self._spread), low + spread) - lowest

    def _final_spread(self) -> tuple[np.ndarray, np.ndarray]:
        assert self._spread is not None
        return self._spread

    def target_scaler(self, kind: str) -> TargetScaler:
        """The scaling of regression targets that TargetScaler.fit would learn."""
        assert self._y is not None
        low, high, total = self._y
        return TargetScaler.of(kind, low, high, total / self.n_rows)


def _cut(chunks):
    for X, y in chunks:
        for start in range(0, len(y), CHUNK):
            yield X[start : start + CHUNK], y[start : start + CHUNK]


def _smallest(kept, keys, new, own, count):
    """The rows with the smallest keys among stored and new ones, in the order of the keys."""
    if kept is not None:
        X = (
            sp.vstack([kept[0], new[0]], format="csr")
            if sp.issparse(new[0])
            else np.concatenate([kept[0], new[0]])
        )
        y, numbers = (np.concatenate([kept[k], new[k]]) for k in (1, 2))
        new, own = (X, y, numbers), np.concatenate([keys, own])
    chosen = np.argsort(own, kind="stable")[:count]
    return tuple(part[chosen] for part in new), own[chosen]
