"""Statistics for scaling and the task from rows in parts: each part is processed where it is
stored, and the results are merged.

Parts are merged in order, so that the result does not depend on timing.
"""

import numpy as np
import scipy.sparse as sp

from rfx.data.survey import PartSurvey, stacked
from rfx.errors import DataError


def survey(
    source, moments: bool, weights: np.ndarray | None = None
) -> tuple[PartSurvey, np.ndarray]:
    """(statistics, targets) of the rows of a source (rfx.data.ranges); moments: compute means and
    squares, with sample weights (n,), None for ones.
    """
    none = np.zeros(0)
    total, targets = PartSurvey(0, 0, 0, none, none, none, none, {}), [none]
    for X, y in source.chunks():
        if X.shape[0]:
            own = None if weights is None else weights[total.count : total.count + X.shape[0]]
            total = total + PartSurvey.of(X, y, moments, own)
            targets.append(np.asarray(y, np.float64))
    return total, np.concatenate(targets)


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


def load(source, count: int, width: int, scaler, dtype, finish):
    """The `count` rows of a source, scaled; finish(X): the stored form of some rows.

    An array, or CSR if finish returns CSR. DataError if the rows of the source have changed
    since the survey.
    """
    at, dense, sparse = 0, None, []
    for raw, _ in source.chunks():
        after = at + raw.shape[0]
        if after > count or raw.shape[1] > width:
            raise _changed()
        X = finish(scaler.transform(raw, dtype=dtype))
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
    return sp.vstack(sparse, format="csr") if sparse else dense


def _changed():
    return DataError(
        "the files changed while they were read; train again when they no longer change"
    )
