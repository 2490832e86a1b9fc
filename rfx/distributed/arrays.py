"""Dask arrays and data frames in `fit`: their blocks stay on the workers of the current client, and
so do all vectors over rows.
"""

import numpy as np

from rfx.data.ranges import Arrays
from rfx.data.tabular.frames import check_columns
from rfx.distributed import dask
from rfx.distributed.rows import BY_MOMENTS, DistributedRows
from rfx.distributed.training import check_method
from rfx.distributed.workers import Workers
from rfx.errors import DataError, UsageError


def is_distributed(X) -> bool:
    """Whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def distributed_rows(estimator, X, y, trainer, encode: bool) -> tuple:
    """(DistributedRows, their targets, labels) of a Dask array or data frame X (n, d) and y (n,).

    Sets the estimator's input attributes. encode: targets become positions among the labels of all
    rows, ascending; otherwise they are numbers, and labels is None. Raises UsageError without a
    client, DataError for invalid rows.
    """
    check_method(trainer)
    client = _client()
    names = getattr(X, "columns", None)
    check_columns(X)
    X, y = _array(X, "X", 2), _array(y, "y", 1)
    if X.shape[0] != y.shape[0]:
        raise DataError(f"X has {X.shape[0]:,} rows, but y has {y.shape[0]:,}")
    X = X.rechunk({1: -1})
    y = y.rechunk({0: X.chunks[0]})
    workers = Workers(client)
    blocks = list(
        zip(
            client.compute(X.to_delayed().ravel().tolist()),
            client.compute(y.to_delayed().ravel().tolist()),
        )
    )
    labels = None
    if encode:
        labels = np.unique(
            np.concatenate(workers.results(workers.each(np.unique, [own for _, own in blocks])))
        )
    sources = [workers.submit(_arrays, own, targets, labels) for own, targets in blocks]
    found = DistributedRows(workers, sources, trainer.method.scaling in BY_MOMENTS)
    estimator.n_features_in_ = X.shape[1]
    if names is not None:
        estimator.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
    return found, found.y, labels


def _client():
    try:
        return dask.distributed().get_client()
    except ValueError:
        raise UsageError(
            "X is distributed (Dask), which needs a client; create one with distributed.Client"
        ) from None


def _array(values, name, ndim):
    if not is_distributed(values):
        raise DataError(
            f"X is distributed (Dask), but {name} is not; pass both as Dask collections"
        )
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array(lengths=True)
    if any(np.isnan(size) for size in values.shape):
        values = values.compute_chunk_sizes()
    values = (
        values.reshape(-1) if ndim == 1 and values.ndim == 2 and values.shape[1] == 1 else values
    )
    if values.ndim != ndim:
        raise DataError(f"{name} has {values.ndim} dimensions, but needs {ndim}")
    return values


def _arrays(X, y, labels):
    X = X if hasattr(X, "tocsr") else np.asarray(X, np.float64)
    if not np.isfinite(X.data if hasattr(X, "tocsr") else X).all():
        raise DataError("Input X contains NaN or infinity")
    y = (
        np.searchsorted(labels, y).astype(np.float64)
        if labels is not None
        else np.asarray(y, np.float64)
    )
    if not np.isfinite(y).all():
        raise DataError("Input y contains NaN or infinity")
    return Arrays(X.tocsr() if hasattr(X, "tocsr") else X, y)
