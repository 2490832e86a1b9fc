"""Statistics of rows needed before training, learnt in passes over a stream with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx import steps as told
from rfx.counters import uniforms
from rfx.data.rows import Statistics, stacked
from rfx.data.transforms import PCA, TRANSFORMS, Scaler, TargetScaler, unit_rows
from rfx.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.data.rows import RowsLike

# Rows of the sample, rows per chunk.
SAMPLE, CHUNK = 4096, 8192
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
        first: told.Steps = (told.Unit(), *told.rounded(dtype)) if self.unit else ()
        return first if self.pca is None else first + self.pca.steps(dtype)


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
        self._y: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        seen: Statistics | None = None
        kept: tuple[Any, np.ndarray, np.ndarray] | None = None
        keys, most = np.zeros(0), max(sample, TRANSFORMED) if scaling in TRANSFORMS else sample
        learner, at = PCA(pca, centred) if pca else None, 0
        for X, y in _cut(chunks()):
            part = Statistics.of(X, scaling == "standard", y=y)
            seen = part if seen is None else seen + part
            low, high, total = y.min(axis=0), y.max(axis=0), y.sum(axis=0)
            if self._y is not None:
                low, high = np.minimum(self._y[0], low), np.maximum(self._y[1], high)
                total = self._y[2] + total
            self._y = low, high, total
            part_keys = uniforms(seed, _DRAW, at, seen.count, 1)[:, 0]
            kept, keys = _smallest(kept, keys, (X, y, np.arange(at, seen.count)), part_keys, most)
            at = seen.count
            if learner and scaling == "none":
                plain = Inputs(Scaler.of_statistics("none", part), unit)
                learner.partial_fit(plain.transform(X, dtype))
        if seen is None or kept is None:
            raise DataError(
                "there are no rows to learn from"
                if name is None
                else f"{name} has no rows to learn from"
            )
        self.n_rows, self.n_inputs = seen.count, seen.width
        self.labels = None if seen.labels is None else np.array(sorted(seen.labels))
        self.n_targets = kept[1].shape[1] if kept[1].ndim == 2 else 1
        if scaling in TRANSFORMS:
            scaler = Scaler.fit(kept[0][:TRANSFORMED], scaling)
        else:
            scaler = Scaler.of_statistics(scaling, seen)
        self.inputs = Inputs(scaler, unit)
        if learner and scaling != "none":
            for X, _ in _cut(chunks()):
                learner.partial_fit(self.inputs.transform(X, dtype))
        self.inputs.pca = learner.finish() if learner else None
        # an array or CSR
        self.X: Any = self.inputs.transform(kept[0][:sample], dtype)
        self.y, self.index = kept[1][:sample], kept[2][:sample]

    def target_scaler(self, kind: str) -> TargetScaler:
        """The scaling of regression targets that TargetScaler.fit would learn."""
        assert self._y is not None
        low, high, total = self._y
        return TargetScaler.of(kind, low, high, total / self.n_rows)


def _cut(chunks):
    for X, y in chunks:
        for start in range(0, len(y), CHUNK):
            yield X[start : start + CHUNK], y[start : start + CHUNK]


def _smallest(kept, keys, new, new_keys, count):
    """The rows with the smallest keys among stored and new ones, in the order of the keys."""
    if kept is not None:
        new = tuple(map(stacked, zip(kept, new)))
        new_keys = np.concatenate([keys, new_keys])
    chosen = np.argsort(new_keys, kind="stable")[:count]
    return tuple(part[chosen] for part in new), new_keys[chosen]


def survey_parts(
    source: Any, moments: bool, weights: np.ndarray | None = None
) -> tuple[Statistics, np.ndarray]:
    """(statistics, targets) of the rows of a source (rfx.data.ranges); moments: compute means and
    squares, with sample weights (n,), None for ones.
    """
    none = np.zeros(0)
    total, targets = Statistics(0, 0, 0, none, none, none, none, 0.0, {}), [none]
    for X, y in source.chunks():
        if X.shape[0]:
            part_weights = (
                None if weights is None else weights[total.count : total.count + X.shape[0]]
            )
            total = total + Statistics.of(X, moments, part_weights, y)
            targets.append(np.asarray(y, np.float64))
    return total, np.concatenate(targets)
