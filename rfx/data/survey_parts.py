"""Statistics for scaling and the task from rows in parts: each part is processed where it is
stored, and the results are merged.

Parts are merged in order, so that the result does not depend on timing.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from rfx.data.survey import MOST_LABELS
from rfx.data.transforms.scaling import column_spread, extremes, joined
from rfx.errors import DataError


@dataclass
class PartSurvey:
    """count rows of `width` columns with `entries` stored numbers; low, high and mean of each
    column, and its sum of squared differences.

    mean and squares are None unless requested; weight: their total sample weight, `count` without
    weights. labels: {target: rows}, None for more than MOST_LABELS.
    """

    count: int
    width: int
    entries: int
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray | None
    squares: np.ndarray | None
    labels: dict | None
    weight: float = 0.0

    def __add__(self, other: "PartSurvey") -> "PartSurvey":
        if not self.count or not other.count:
            return self if self.count else other
        width = max(self.width, other.width)
        (low, high), (low_there, high_there) = (
            (_wide(own.low, width), _wide(own.high, width)) for own in (self, other)
        )
        count, mean, squares = self.count + other.count, None, None
        if self.mean is not None:
            moments = [
                (own.weight, _wide(own.mean, width), _wide(own.squares, width))
                for own in (self, other)
            ]
            _, mean, squares = joined(*moments[0], *moments[1])
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = dict(self.labels)
            for label, rows in other.labels.items():
                labels[label] = labels.get(label, 0) + rows
            labels = labels if len(labels) <= MOST_LABELS else None
        low, high = np.minimum(low, low_there), np.maximum(high, high_there)
        return PartSurvey(
            count,
            width,
            self.entries + other.entries,
            low,
            high,
            mean,
            squares,
            labels,
            self.weight + other.weight,
        )


def _wide(values, width):
    """For columns missing from a part, whose values are zeros there."""
    return (
        values if len(values) == width else np.concatenate([values, np.zeros(width - len(values))])
    )


def survey(source, moments: bool, weights: np.ndarray | None = None) -> PartSurvey:
    """For the rows of a source (rfx.data.ranges); moments: compute means and squares, with sample
    weights (n,), None for ones.
    """
    none = np.zeros(0)
    total = PartSurvey(0, 0, 0, none, none, none, none, {})
    for X, y in source.chunks():
        if not X.shape[0]:
            continue
        own = None if weights is None else weights[total.count : total.count + X.shape[0]]
        weight = float(X.shape[0] if own is None else own.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            mean, spread = column_spread(X, "standard", own) if moments else (None, None)
            low, high = extremes(X)
        squares = None if spread is None else spread**2 * weight
        entries = X.nnz if sp.issparse(X) else X.shape[0] * X.shape[1]
        values, counts = np.unique(y, return_counts=True)
        labels = dict(zip(values.tolist(), counts.tolist())) if len(values) <= MOST_LABELS else None
        total = total + PartSurvey(
            X.shape[0], X.shape[1], entries, low, high, mean, squares, labels, weight
        )
    return total


def targets(source) -> np.ndarray:
    """The targets (n,) of the rows of a source, in float32 if that is exact."""
    y = np.concatenate([np.empty(0), *(own for _, own in source.chunks())])
    exact = y.astype(np.float32)
    return exact if np.array_equal(exact, y) else y


def picked(source, index: np.ndarray, width: int):
    """The unscaled rows with these ascending numbers: an array, or CSR, of that many columns.

    DataError if the source has fewer rows than when it was surveyed.
    """
    found, at = [], 0
    for raw, _ in source.chunks():
        after = at + raw.shape[0]
        own = index[np.searchsorted(index, at) : np.searchsorted(index, after)] - at
        if raw.shape[1] > width:
            raise _changed()
        if len(own) and sp.issparse(raw):
            rows = raw[own]
            shape = (len(own), width)
            found.append(sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape))
        elif len(own):
            found.append(raw[own])
        at = after
    if sum(part.shape[0] for part in found) != len(index):
        raise _changed()
    return stacked(found)


def stacked(parts: list):
    """The rows of these parts, arrays or CSR, concatenated."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def load(source, count: int, width: int, scaler, dtype, finish) -> tuple:
    """(X, y) of the `count` rows of a source, scaled; finish(X): the stored form of some rows. y is
    float32 if that is exact.

    X is an array, or CSR if finish returns CSR. DataError if the rows of the source have changed
    since the survey.
    """
    y, at, dense, sparse = np.empty(count), 0, None, []
    for raw, targets in source.chunks():
        after = at + raw.shape[0]
        if after > count or raw.shape[1] > width:
            raise _changed()
        X = finish(scaler.transform(raw, dtype=dtype))
        y[at:after] = targets
        if sp.issparse(X):
            sparse.append(X)
        elif dense is None:
            dense = np.empty((count, width), dtype)
            dense[at:after] = X
        else:
            dense[at:after] = X
        at = after
    if at != count or (sparse and dense is not None):
        raise _changed()
    exact = y.astype(np.float32)
    return sp.vstack(sparse, format="csr") if sparse else dense, (
        exact if np.array_equal(exact, y) else y
    )


def _changed():
    return DataError(
        "the files changed while they were read; train again when they no longer change"
    )
