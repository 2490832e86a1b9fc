"""Rows of inputs and targets on Dask workers, each of which reads, scales and stores its own
parts.
"""

from __future__ import annotations

import time
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from rfx.data.ranges import Taken
from rfx.data.rows import Rows
from rfx.data.survey import stacked
from rfx.data.survey_parts import load, picked, survey, targets
from rfx.distributed.matrix import Binned, Computed, PartsMatrix, fetched
from rfx.distributed.vectors import RowVector, located
from rfx.errors import DataError
from rfx.features.binning import BinningMap, Bins, merged
from rfx.fitting.options import AUTO
from rfx.operators.mapped import dense

# Maximum numbers of rows fetched.
_FETCHED = 1 << 25
# Scalings that need means and squares of the rows, or may choose one that does.
BY_MOMENTS = ("standard", AUTO)


class DistributedRows(Rows):
    """Rows X (n, d) and targets `y` (n,), a RowVector, of sources read by workers
    (rfx.data.ranges), one for each part.

    They are surveyed on the workers; `scaled` reads them again, scales them and stores them. y is
    available from then on. weights: a RowVector, None for ones. seconds: of both steps.
    """

    def __init__(self, workers, sources, moments: bool = False, weights=None):
        """sources: one per part, or futures of them. moments: also survey means and deviations;
        weights: arrays of positive weights, one per part, None for ones. Raises DataError if there
        are no rows.
        """
        start = time.perf_counter()
        part_weights = [None] * len(sources)
        if weights is not None:
            part_weights = [
                workers.submit(_itself, part, worker=_home(k, sources, workers))
                for k, part in enumerate(weights)
            ]
        surveys = [
            workers.submit(
                survey, source, moments, part_weights[k], worker=_home(k, sources, workers)
            )
            for k, source in enumerate(sources)
        ]
        results = workers.results(surveys)
        kept = [k for k, result in enumerate(results) if result.count]
        if not kept:
            raise DataError("the files have no rows")
        self.workers, self.sources, self.counts = (
            workers,
            [sources[k] for k in kept],
            tuple(results[k].count for k in kept),
        )
        self.survey = results[kept[0]]
        for k in kept[1:]:
            self.survey = self.survey + results[k]
        self.shape = (self.survey.count, self.survey.width)
        # futures of the scaled rows, with their scaling and type, if any
        self.data: list[Any] | None = None
        self.latest: tuple[Any, Any, DistributedRows] | None = None
        self.y = RowVector(workers, None, self.counts)
        self.weights = (
            None
            if weights is None
            else RowVector(workers, [part_weights[k] for k in kept], self.counts)
        )
        self.seconds = time.perf_counter() - start

    def unscaled(self, index):
        """The rows with these ascending numbers, read again by the workers."""
        owners, local = located(np.arange(self.shape[0])[index], self.counts)
        return stacked(
            self.workers.results(
                [
                    self.workers.submit(
                        picked,
                        self.sources[part],
                        local[owners == part],
                        self.shape[1],
                        worker=_home(part, self.sources, self.workers),
                    )
                    for part in np.unique(owners)
                ]
            )
        )

    def targets(self) -> np.ndarray:
        """The targets (n,) of all rows, fetched, read again by the workers."""
        parts = [
            self.workers.submit(targets, source, worker=_home(k, self.sources, self.workers))
            for k, source in enumerate(self.sources)
        ]
        return np.concatenate(self.workers.results(parts)).astype(np.float64)

    def some(self, index, moments: bool = False, weights=None, sources=None) -> DistributedRows:
        """The rows with these ascending numbers, read again by the workers.

        moments: as for a new object; weights: an array (n,) for all rows, None for ones; rows with
        weight zero are dropped. sources: of the same rows, read in another way.
        """
        if weights is not None:
            index = index[weights[index] > 0]
        owners, local = located(index, self.counts)
        chosen = [
            Taken(source, local[owners == k], width=self.shape[1])
            for k, source in enumerate(sources or self.sources)
        ]
        parts = (
            None if weights is None else [weights[index][owners == k] for k in range(len(chosen))]
        )
        return DistributedRows(self.workers, chosen, moments, parts)

    def decided(self, index, pipelines, sources=None) -> list[np.ndarray]:
        """The decision values of several pipelines for the rows with these ascending numbers;
        sources: see `some`.
        """
        owners, local = located(index, self.counts)
        shared = self.workers.shared(pipelines)
        values = self.workers.results(
            [
                self.workers.submit(
                    _decisions,
                    shared,
                    Taken((sources or self.sources)[k], local[owners == k], width=self.shape[1]),
                    worker=_home(k, self.sources, self.workers),
                )
                for k in np.unique(owners)
            ]
        )
        return [np.concatenate(parts) for parts in zip(*values, strict=True)]

    def scaled(self, scaler, dtype) -> DistributedRows:
        """The scaled rows, stored on the workers; reused as long as the scaling is the same."""
        if self.latest is not None and self.latest[0] is scaler and self.latest[1] == dtype:
            return self.latest[2]
        start, finish = time.perf_counter(), partial(dense, dtype=np.dtype(dtype))
        other = copy(self)
        other.latest = None
        other.data = [
            self.workers.submit(
                load,
                source,
                count,
                self.shape[1],
                scaler,
                dtype,
                finish,
                worker=_home(k, self.sources, self.workers),
            )
            for k, (source, count) in enumerate(zip(self.sources, self.counts))
        ]
        self.y.futures = self.workers.each(_targets, other.data)
        self.workers.results(self.workers.each(len, other.data))
        self.latest, self.seconds = (
            (scaler, dtype, other),
            self.seconds + time.perf_counter() - start,
        )
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
        return PartsMatrix(
            self.workers, self.data, Computed(feature_map, scale), self.counts, most_mb=most_mb
        )

    def numbered(self, grids: BinningMap) -> tuple[Bins, PartsMatrix]:
        """The bins that contain the rows, identical to those in one process, and the features.

        Each worker numbers the bins of its own rows. Keys and numbers of the bins, of size D, are
        transferred.
        """
        workers = self.workers
        numbered = workers.each(_number, self.data, common=(workers.shared(grids),))
        bins, tables = merged(workers.results(workers.each(_bins, numbered)))
        wide = np.uint16 if int(np.diff(bins.starts).max()) < 2**16 else np.int32
        ids = workers.each(
            _renumbered, numbered, [workers.shared(table) for table in tables], common=(wide,)
        )
        return bins, PartsMatrix(
            workers, ids, Binned(bins.starts, 1.0 / np.sqrt(grids.n_grids)), self.counts
        )

    def total(self, function, shared, *vectors):
        """The sum over the parts of function(shared, X, *vectors)."""
        parts = [self.data, *(vector.futures for vector in vectors)]
        common = (function, self.workers.shared(shared))
        return self.workers.sum(self.workers.each(_apply, *parts, common=common))


def _home(part: int, parts, workers) -> int:
    """The worker that should read a part: neighbours are stored together, so that their sums need
    no transfer.
    """
    return part * len(workers.addresses) // len(parts)


def _itself(value):
    return value


def _decisions(pipelines, source):
    values = [[pipeline.decision_function(X) for pipeline in pipelines] for X, _ in source.chunks()]
    return [np.concatenate(parts) for parts in zip(*values, strict=True)]


def _targets(data):
    # those that are exact in float32 are stored so
    return np.asarray(data[1], np.float64)


def _apply(function, shared, data, *vectors):
    return function(shared, data[0], *vectors)


def _number(grids, data):
    ids, bins = grids.number(data[0])
    return ids, bins.keys, bins.starts


def _bins(numbered):
    return Bins(*numbered[1:])


def _renumbered(kind, numbered, table):
    ids, _, starts = numbered
    out = np.empty(ids.shape, kind)
    for grid in range(len(ids)):
        out[grid] = table[starts[grid] : starts[grid + 1]][ids[grid]]
    return out
