"""Rows of inputs and targets on Dask workers, each of which reads, scales and stores its own parts;
and Dask arrays and data frames as such rows.
"""

from __future__ import annotations

import time
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from rfx import methods
from rfx.data.ranges import Arrays, Taken, load, picked
from rfx.data.rows import Rows, stacked
from rfx.data.survey import survey_parts
from rfx.data.tabular.frames import check_columns
from rfx.distributed.cluster import Workers, dask
from rfx.distributed.matrix import PartsMatrix, RowVector, fetched, located
from rfx.errors import DataError, UsageError
from rfx.features.binning import BinningMap, Bins, merged
from rfx.fitting.options import AUTO
from rfx.operators.binned import BinnedMatrix
from rfx.operators.mapped import MapMatrix, dense
from rfx.operators.matrix import COMPUTED, READ

# Maximum numbers of rows fetched.
_FETCHED = 1 << 25
# Scalings that need means and squares of the rows, or may choose one that does.
BY_MOMENTS = ("standard", AUTO)
# Solvers whose vectors over the rows may be on workers.
_SOLVERS = (None, "rfx", "cg")


def check_method(trainer) -> None:
    """Raise UsageError for a method or options that need all rows in one process."""
    method = trainer.method
    if not method.distributed:
        able = [name for name, own in methods.METHODS.own().items() if own.distributed]
        raise UsageError(
            f"method {trainer.name} needs all rows in one process; methods for rows on several"
            f" machines: {', '.join(able)}"
        )
    refused = [name for name in ("class_weight", "grow") if method.get(name) is not None]
    refused += ["solver"] if method.get("solver") not in _SOLVERS else []
    # words for a choice on held-out rows; the bandwidth has words for other choices, too
    refused += [
        name
        for name in method.space.values
        if isinstance(method.get(name), str)
        and method.get(name) != AUTO
        and (name != "gamma" or method.gamma == "validation")
        and not (name == "lam" and method.get("lam_path"))
    ]
    for name in refused:
        raise UsageError(
            f"--{name.replace('_', '-')} is {method.get(name)}, which needs all rows in one"
            " process; omit it, or use auto or a number"
        )


class DistributedRows(Rows):
    """Rows X (n, d) and targets `y` (n,), a RowVector, of sources read by workers
    (rfx.data.ranges), one for each part.

    They are surveyed on the workers; `scaled` reads them again, scales them and stores them.
    weights: a RowVector, None for ones. seconds: of both steps.
    """

    def __init__(self, workers, sources, moments: bool = False, weights=None):
        """sources: one per part, or futures of them. moments: also survey means and deviations;
        weights: arrays of positive weights, one per part, None for ones. Raises DataError if there
        are no rows.
        """
        start, every = time.perf_counter(), range(len(sources))
        part_weights = [None] * len(sources)
        if weights is not None:
            part_weights = workers.at_home(_weights, sources, every, weights)
        surveys = workers.at_home(
            survey_parts, sources, every, [moments] * len(sources), part_weights
        )
        results = workers.results(workers.entries(surveys, 0))
        kept = [k for k in every if results[k].count]
        if not kept:
            raise DataError("the files have no rows")
        self.workers, self.sources = workers, [sources[k] for k in kept]
        self.counts = tuple(results[k].count for k in kept)
        self.survey = results[kept[0]]
        for k in kept[1:]:
            self.survey = self.survey + results[k]
        self.shape = (self.survey.count, self.survey.width)
        vector = lambda futures: RowVector(workers, [futures[k] for k in kept], self.counts)
        self.y = vector(workers.entries(surveys, 1))
        self.weights = None if weights is None else vector(part_weights)
        # futures of the scaled rows, with their scaling and type, if any
        self.data: list[Any] | None = None
        self.latest: tuple[Any, Any, DistributedRows] | None = None
        self.seconds = time.perf_counter() - start

    def _at_home(self, function, *lists, numbers=None) -> list:
        """The results of function(source, *entries of these lists) of all parts, or some."""
        every = range(len(self.sources)) if numbers is None else numbers
        return self.workers.at_home(function, self.sources, every, *lists)

    def unscaled(self, index):
        """The rows with these ascending numbers, read again by the workers."""
        owners, local = located(np.arange(self.shape[0])[index], self.counts)
        used = np.unique(owners)
        numbers, width = [local[owners == k] for k in used], [self.shape[1]] * len(used)
        return stacked(self.workers.results(self._at_home(picked, numbers, width, numbers=used)))

    def some(self, index, moments: bool = False, weights=None, sources=None) -> DistributedRows:
        """The rows with these ascending numbers, read again by the workers.

        moments: as for a new object; weights: an array (n,) for all rows, None for ones; rows with
        weight zero are dropped. sources: of the same rows, read in another way.
        """
        if weights is not None:
            index = index[weights[index] > 0]
            owners, _ = located(index, self.counts)
            weights = [weights[index][owners == k] for k in range(len(self.counts))]
        return DistributedRows(self.workers, self.taken(index, sources), moments, weights)

    def taken(self, index, sources=None) -> list[Taken]:
        """The sources of the rows with these ascending numbers; sources: see `some`."""
        owners, local = located(index, self.counts)
        return [
            Taken(source, local[owners == k], width=self.shape[1])
            for k, source in enumerate(sources or self.sources)
        ]

    def decided(self, index, pipelines, sources=None) -> list[np.ndarray]:
        """The decision values of several pipelines for the rows with these ascending numbers;
        sources: see `some`.
        """
        shared = [self.workers.shared(pipelines)] * len(self.counts)
        values = self._at_home(_decisions, self.taken(index, sources), shared)
        parts = [part for part in self.workers.results(values) if part]
        return [np.concatenate(decisions) for decisions in zip(*parts, strict=True)]

    def scaled(self, scaler, dtype) -> DistributedRows:
        """The scaled rows, stored on the workers; reused as long as the scaling is the same."""
        if self.latest is not None and self.latest[0] is scaler and self.latest[1] == dtype:
            return self.latest[2]
        start, other = time.perf_counter(), copy(self)
        how = (self.shape[1], scaler, dtype, partial(dense, dtype=np.dtype(dtype)))
        other.latest = None
        other.data = self._at_home(
            load, self.counts, *([value] * len(self.counts) for value in how)
        )
        self.workers.results(self.workers.each(np.shape, other.data))
        self.latest = (scaler, dtype, other)
        self.seconds += time.perf_counter() - start
        return other

    def __getitem__(self, index) -> np.ndarray:
        """The scaled rows with these numbers, fetched."""
        index = np.arange(self.shape[0])[index] if isinstance(index, slice) else np.asarray(index)
        if len(index) * self.shape[1] > _FETCHED and len(index) > 5000:
            raise TypeError(f"{len(index):,} rows are too many to fetch from the workers")
        return fetched(self.workers, self.data, self.counts, index)

    @property
    def share(self) -> tuple[int, float]:
        """(rows of a worker, MiB available for them)."""
        return -(-self.shape[0] // len(self.workers.addresses)), self.workers.memory_mb

    def features(self, feature_map, scale: float = 1.0, most_mb: float = np.inf) -> PartsMatrix:
        """scale * feature_map(X), computed at every use; most_mb: maximum MiB of it per worker."""
        recipe = partial(_features, feature_map, scale)
        form = feature_map.n_features, feature_map.dtype
        return PartsMatrix(self.workers, self.data, recipe, self.counts, form, COMPUTED, most_mb)

    def numbered(self, grids: BinningMap) -> tuple[Bins, PartsMatrix]:
        """The bins that contain the rows, identical to those in one process, and the features.

        Each worker numbers the bins of its own rows. Keys and numbers of the bins, of size D, are
        transferred.
        """
        workers, scale = self.workers, 1.0 / np.sqrt(grids.n_grids)
        numbered = workers.each(_number, self.data, common=(workers.shared(grids),))
        bins, tables = merged(workers.results(workers.entries(numbered, 1)))
        kind = np.uint16 if int(np.diff(bins.starts).max()) < 2**16 else np.int32
        tables = [workers.shared(table) for table in tables]
        ids = workers.each(_renumbered, numbered, tables, common=(kind,))
        recipe = partial(BinnedMatrix, starts=bins.starts, scale=scale)
        form = (int(bins.starts[-1]), BinnedMatrix.dtype)
        Z = PartsMatrix(workers, ids, recipe, self.counts, form, READ)
        Z.starts, Z.scale, Z.n_grids = bins.starts, scale, grids.n_grids
        return bins, Z

    def total(self, function, shared, *vectors):
        """The sum over the parts of function(shared, X, *vectors)."""
        parts = [self.data, *(vector.futures for vector in vectors)]
        return self.workers.sum(
            self.workers.each(function, *parts, common=(self.workers.shared(shared),))
        )

    def grouped(self, partition, function, shared, *vectors):
        """The results of function(shared, number, numbers, X, *vectors) for each block of a
        `Partition`, on workers to which the rows X with these ascending numbers are sent.
        """
        workers, starts = self.workers, np.cumsum([0, *self.counts[:-1]]).tolist()
        parts = [starts, self.data, *(vector.futures for vector in vectors)]
        sent = workers.each(_in_blocks, *parts, common=(workers.shared(partition),))
        common = workers.shared(shared)
        results = [
            workers.submit(_of_block, function, common, block, *workers.entries(sent, block))
            for block in range(partition.n_blocks)
        ]
        return workers.results(results)


# ---------------------------------------------------------------------- on the workers


def _features(feature_map, scale, X):
    return MapMatrix(feature_map, X, scale)


def _in_blocks(partition, start, X, *vectors):
    return [
        (start + rows, X[rows], *(vector[rows] for vector in vectors))
        for rows in partition.place(X, shared=True)
    ]


def _of_block(function, shared, block, *parts):
    return function(shared, block, *map(np.concatenate, zip(*parts, strict=True)))


def _weights(source, weights):
    return weights


def _decisions(_, source, pipelines):
    values = [[pipeline.decision_function(X) for pipeline in pipelines] for X, _ in source.chunks()]
    return [np.concatenate(parts) for parts in zip(*values, strict=True)]


def _number(grids, X):
    ids, bins = grids.number(X)
    return ids, Bins(bins.keys, bins.starts)


def _renumbered(kind, numbered, table):
    ids, bins = numbered
    out = np.empty(ids.shape, kind)
    for grid in range(len(ids)):
        out[grid] = table[bins.starts[grid] : bins.starts[grid + 1]][ids[grid]]
    return out


# ---------------------------------------------------------------------- Dask collections


def is_distributed(X) -> bool:
    """Whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def distributed_rows(estimator, X, y, trainer, encode: bool) -> tuple:
    """(DistributedRows, their targets, labels) of a Dask array or data frame X (n, d) and y (n,),
    whose blocks stay on the workers of the current client.

    Sets the estimator's input attributes. encode: targets become positions among the labels of all
    rows, ascending; otherwise they are numbers, and labels is None. Raises UsageError without a
    client, DataError for invalid rows.
    """
    check_method(trainer)
    try:
        client = dask().get_client()
    except ValueError:
        raise UsageError(
            "X is distributed (Dask), which needs a client; create one with distributed.Client"
        ) from None
    names = getattr(X, "columns", None)
    check_columns(X)
    X, y = _array(X, "X", 2), _array(y, "y", 1)
    if X.shape[0] != y.shape[0]:
        raise DataError(f"X has {X.shape[0]:,} rows, but y has {y.shape[0]:,}")
    X = X.rechunk({1: -1})
    y = y.rechunk({0: X.chunks[0]})
    workers, labels = Workers(client), None
    blocks, targets = (client.compute(own.to_delayed().ravel().tolist()) for own in (X, y))
    if encode:
        labels = np.unique(np.concatenate(workers.results(workers.each(np.unique, targets))))
    sources = workers.each(_arrays, blocks, targets, [labels] * len(blocks))
    rows = DistributedRows(workers, sources, trainer.method.scaling in BY_MOMENTS)
    estimator.n_features_in_ = X.shape[1]
    if names is not None:
        estimator.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
    return rows, rows.y, labels


def _array(values, name, ndim):
    if not is_distributed(values):
        raise DataError(
            f"X is distributed (Dask), but {name} is not; pass both as Dask collections"
        )
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array(lengths=True)
    if any(np.isnan(size) for size in values.shape):
        values = values.compute_chunk_sizes()
    if ndim == 1 and values.ndim == 2 and values.shape[1] == 1:
        values = values.reshape(-1)
    if values.ndim != ndim:
        raise DataError(f"{name} has {values.ndim} dimensions, but needs {ndim}")
    return values


def _arrays(X, y, labels):
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, np.float64)
    y = np.asarray(y, np.float64) if labels is None else np.searchsorted(labels, y) * 1.0
    for name, numbers in (("X", X.data if hasattr(X, "tocsr") else X), ("y", y)):
        if not np.isfinite(numbers).all():
            raise DataError(f"Input {name} contains NaN or infinity")
    return Arrays(X, y)
