"""Rows, vectors over rows and matrices of features whose parts are on Dask workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from functools import partial, reduce
from operator import add, attrgetter, getitem, methodcaller
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

from rfx import methods
from rfx.counters import random_rows
from rfx.data import repeats
from rfx.data.rows import Statistics, is_text, keeps_sparse, room, stacked, statistics, total
from rfx.data.stream import Arrays, RowSubset, load, picked
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.readers import check_columns
from rfx.data.transforms import Scaler
from rfx.distributed.cluster import Workers, dask, itself
from rfx.errors import DataError, UsageError
from rfx.features.binning import BinningMap, Bins, merged
from rfx.features.partition import Partition, sampled
from rfx.fitting.options import AUTO
from rfx.fitting.problem import stays_sparse
from rfx.methods.local import fitted_cells, grown_cell
from rfx.methods.rb import numbered
from rfx.operators.binned import BinnedMatrix
from rfx.operators.mapped import MapMatrix, coded, computed, dense, hold_part
from rfx.operators.matrix import COMPUTED, READ, DenseMatrix, Matrix
from rfx.operators.scaled import ScaledRows, scaled_rows

# ----------------------------------------------------------------------
# Vectors over rows, and matrices of features, whose parts are on Dask workers.
#
# Each worker multiplies its own rows. An elementwise operation is a task for each part. A sum is a
# task for each part, whose results are reduced in a tree. numpy functions accept the vectors.

# Features of a subset of rows that are fetched: a pass over them here is faster than a request to
# the workers, about 30 ms.
_HERE = 1 << 26


class RowVector(NDArrayOperatorsMixin):
    """An array (N,) or (N, k) whose parts, with `counts` rows each, are on the workers."""

    __array_priority__ = 1000

    def __init__(self, workers, futures, counts, meta=None):
        """futures: one for each part, of its array. meta: an array without rows, with the columns
        and the type; default: (0,) float64.
        """
        self.workers, self.futures, self.counts = workers, futures, tuple(counts)
        self.meta = np.empty(0) if meta is None else meta

    def _each(self, function, *args) -> list:
        """A future for each part of function(*args); args may include vectors and indexes."""
        whole = (RowVector, RowIndex)
        parts = [
            arg.futures if isinstance(arg, whole) else [arg] * len(self.counts) for arg in args
        ]
        return self.workers.each(function, *parts)

    def _like(self, function, *args, counts=None) -> RowVector:
        """function(*args) elementwise; args may include RowVectors."""
        meta = function(*(getattr(arg, "meta", arg) for arg in args))
        return RowVector(self.workers, self._each(function, *args), counts or self.counts, meta)

    # ------------------------------------------------------------------ array interface

    @property
    def dtype(self):
        return self.meta.dtype

    @property
    def shape(self) -> tuple:
        return (sum(self.counts), *self.meta.shape[1:])

    @property
    def ndim(self) -> int:
        return self.meta.ndim

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self):
        return self.shape[0]

    def copy(self):
        return copy(self)

    def astype(self, dtype, copy=True):
        return self if dtype == self.dtype else self._like(methodcaller("astype", dtype), self)

    def reshape(self, *shape):
        _, *rest = shape[0] if isinstance(shape[0], tuple) else shape
        columns = int(np.prod(self.shape[1:]))
        rest = [columns if size == -1 else size for size in rest]
        return self._like(methodcaller("reshape", -1, *rest), self)

    def __getitem__(self, key):
        if isinstance(key, RowIndex):
            return self._like(getitem, self, key, counts=key.counts)
        if isinstance(key, tuple):  # a full slice, and columns
            return self._like(getitem, self, key)
        index = np.arange(len(self))[key] if isinstance(key, slice) else np.asarray(key)
        return fetched(self.workers, self.futures, self.counts, index)

    def __setitem__(self, key, values):
        self.futures = self._each(_with, self, key, values)

    __iter__ = None

    def __array__(self, dtype=None, copy=None):
        whole = np.concatenate(self.workers.results(self.futures))
        return whole.astype(dtype or self.dtype, copy=False)

    # ------------------------------------------------------------------ sums

    def _partial(self, function, *more) -> list:
        """function of each part of this vector and of the others, fetched."""
        return self.workers.results(self._each(function, self, *more))

    def sum(self, axis=None, **_):
        if axis not in (None, 0):
            return self._like(methodcaller("sum", axis=axis), self)
        return sum(self._partial(methodcaller("sum", axis=axis)))

    def mean(self, axis=None, **_):
        return self.sum(axis) / (len(self) if axis == 0 else self.size)

    def max(self, axis=None, **_):
        parts = self._partial(methodcaller("max", axis=0, initial=-np.inf))
        return np.max(parts, axis=axis)

    def min(self, axis=None, **_):
        return -(-self).max(axis)

    def any(self, **_):
        return bool(np.any(self._partial(np.any)))

    def all(self, **_):
        return bool(np.all(self._partial(np.all)))

    def dot(self, other):
        """The sum over the rows of products of this (N,) with other (N,) or (N, k)."""
        return sum(self._partial(np.matmul, other))

    # ------------------------------------------------------------------ numpy's functions

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        into = options.pop("out", None)
        if (
            method != "__call__"
            or options.keys() - {"where", "casting"}
            or any(isinstance(value, RowIndex) for value in inputs)
        ):
            return NotImplemented
        if ufunc is np.matmul:
            return inputs[0].dot(inputs[1])
        values = self._like(ufunc, *inputs)
        if into is None:
            return values
        into[0].futures, into[0].meta = values.futures, values.meta
        return into[0]

    def __array_function__(self, function, types, args, options):
        implementation = _FUNCTIONS.get(function)
        return NotImplemented if implementation is None else implementation(*args, **options)


class RowIndex:
    """Some rows of parts: for each part its ascending row numbers, or a future of them; counts: how
    many.
    """

    meta = np.empty(0, np.int64)

    def __init__(self, workers, futures, counts=None):
        """counts: by default from the workers."""
        counts = workers.results(workers.each(len, futures)) if counts is None else counts
        self.workers, self.futures, self.counts = workers, futures, tuple(counts)

    def __len__(self):
        return sum(self.counts)


def located(index, counts):
    """(part, number in the part) of rows by their numbers over all parts."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    owners = np.searchsorted(starts, index, side="right") - 1
    return owners, index - starts[owners]


def fetched(workers, parts, counts, index):
    """The rows with the numbers `index`, array or CSR, of parts given as futures."""
    owners, local = located(index, counts)
    order = np.argsort(owners, kind="stable")
    used = np.unique(owners)
    numbers = [local[owners == part] for part in used]
    having = [parts[part] for part in used]
    rows = workers.results(workers.each(getitem, having, numbers))
    is_sparse = any(map(sp.issparse, rows))
    whole = sp.vstack(rows, format="csr") if is_sparse else np.concatenate(rows)
    places = np.argsort(order, kind="stable")
    return whole[places]


def _unique(y, return_counts=False):
    values_of_parts, counts_of_parts = zip(*y._partial(partial(np.unique, return_counts=True)))
    values, places = np.unique(np.concatenate(values_of_parts), return_inverse=True)
    counts = np.bincount(places.ravel(), np.concatenate(counts_of_parts), len(values))
    if return_counts:
        return values, counts.astype(np.int64)
    return values


def _einsum(subscripts, a, b):
    if subscripts != "i...,i...->...":
        return NotImplemented
    return sum(a._partial(partial(np.einsum, subscripts), b))


def _average(x, axis=None, weights=None):
    if weights is None:
        return x.mean(axis)
    if x.ndim > 1 and axis != 0:
        return NotImplemented
    return weights.dot(x) / weights.sum()


def _full(x, value, dtype=None):
    return x._like(partial(np.full_like, fill_value=value, dtype=dtype), x)


def _where(mask, a, b):
    return mask._like(np.where, mask, a, b)


def _zeros_like(x, dtype=np.float64):
    return _full(x, 0, dtype)


def _ones_like(x, dtype=np.float64):
    return _full(x, 1, dtype)


def _sum(x, axis=None):
    return x.sum(axis)


def _mean(x, axis=None):
    return x.mean(axis)


def _max(x, axis=None):
    return x.max(axis)


def _min(x, axis=None):
    return x.min(axis)


def _any(x):
    return x.any()


def _all(x):
    return x.all()


def _ptp(x):
    return x.max() - x.min()


def _count_nonzero(x):
    return int(sum(x._partial(np.count_nonzero)))


def _flatnonzero(x):
    return RowIndex(x.workers, x.workers.each(np.flatnonzero, x.futures))


def _array_equal(a, b):
    return len(a) == len(b) and bool(np.all(a._partial(np.array_equal, b)))


def _norm(x):
    return float(np.sqrt(x._like(np.square, x).sum()))


_FUNCTIONS: dict[Callable, Callable] = {
    np.where: _where,
    np.zeros_like: _zeros_like,
    np.ones_like: _ones_like,
    np.sum: _sum,
    np.mean: _mean,
    np.max: _max,
    np.min: _min,
    np.ptp: _ptp,
    np.any: _any,
    np.all: _all,
    np.average: _average,
    np.count_nonzero: _count_nonzero,
    np.flatnonzero: _flatnonzero,
    np.array_equal: _array_equal,
    np.unique: _unique,
    np.einsum: _einsum,
    np.linalg.norm: _norm,
}
_FUNCTIONS |= {getattr(np, name): attrgetter(name) for name in ("shape", "ndim", "size")}


class PartsMatrix(Matrix):
    """An (N, D) matrix of parts on workers; vectors (N,) or (N, k) are RowVectors.

    data: a future for each part, from which `recipe(data)` makes its matrix; counts: the rows of
    each; most_mb: maximum MiB of it per worker. index: the selected rows of each part, columns: the
    selected columns, None for all. factors: a RowVector by which the rows are multiplied, None for
    ones.
    """

    # caching is left to the worker of a part
    computed = False
    rows_here = False

    def __init__(self, workers, data, recipe, counts, form, cost, most_mb=np.inf):
        """form: (columns, type)."""
        self.workers, self.data, self.counts = workers, data, tuple(counts)
        self.recipe = workers.shared(recipe)
        self.cost = cost
        self.most_mb = most_mb
        n_columns, dtype = form
        self.shape = (sum(counts), n_columns)
        self.dtype = np.dtype(dtype)
        self.index = self.chosen = self.factors = None

    # of random binning features
    starts: np.ndarray
    scale: float
    n_grids: int

    # ------------------------------------------------------------------ rows and columns

    def rows(self, index):
        other = copy(self)
        other.counts = index.counts
        other.shape = (len(index), self.shape[1])
        other.index = index.futures
        if self.index is not None:
            other.index = self.workers.each(getitem, self.index, index.futures)
        if self.factors is None:
            return other
        return other.scaled(self.factors[index])

    def columns(self, index):
        other = copy(self)
        chosen = np.arange(self.shape[1]) if self.chosen is None else self.chosen
        other.chosen = chosen[index]
        other.shape = self.shape[0], len(other.chosen)
        return other

    def scaled(self, factors) -> PartsMatrix:
        """S Z for S = diag(factors), a RowVector; each worker multiplies its own rows."""
        other = copy(self)
        other.factors = factors
        return other

    def draw(self, count):
        starts = np.concatenate([[0], np.cumsum(self.counts)]).tolist()
        n = self.shape[0]
        drawn_rows = self.workers.each(_drawn, starts[:-1], starts[1:], common=(n, count))
        return RowIndex(self.workers, drawn_rows)

    def subset(self, count):
        if count * self.shape[1] > _HERE:
            return super().subset(count)
        chosen = random_rows(self.shape[0], count)
        owners, local = located(chosen, self.counts)
        index = [local[owners == part] for part in range(len(self.counts))]
        numbers = RowIndex(self.workers, index, map(len, index))
        return self.rows(numbers).gathered(), chosen

    def constant(self, value):
        values = [float(value)] * len(self.counts)
        futures = self.workers.each(np.full, self.counts, values)
        return RowVector(self.workers, futures, self.counts)

    def hold(self, max_mb=np.inf, kind=None):
        """Cached on the workers, if that needs at most `max_mb` and each worker's own limit; kind:
        int8 or int16 for codes (rfx.operators.mapped).
        """
        as_codes = partial(coded, kind=kind), itself, READ / 2
        function, recipe, cost = ("to_array", DenseMatrix, READ) if kind is None else as_codes
        itemsize = np.dtype(kind or self.dtype).itemsize
        share_mb = self.size_mb * itemsize / self.dtype.itemsize
        share_mb /= len(self.workers.addresses)
        if self.cost <= READ or share_mb > min(max_mb, self.most_mb, self.workers.memory_mb):
            return self
        data = self.scaled(None)._each(function)
        form = (self.shape[1], self.dtype)
        held = PartsMatrix(self.workers, data, recipe, self.counts, form, cost)
        return held.scaled(self.factors)

    def gathered(self):
        return DenseMatrix(self.to_array())

    def to_array(self, out=None):
        return np.concatenate(self.workers.results(self._each("to_array")), out=out)

    # ------------------------------------------------------------------ products

    def _each(self, function, *args) -> list:
        """A future for each part of function(its matrix, *args), or of the matrix's method of that
        name; vectors among args become their parts, and futures their values.
        """
        lists = [self._of_parts(arg) for arg in (self.factors, *args)]
        index = self.index or [None] * len(self.counts)
        chosen = None if self.chosen is None else self.workers.shared(self.chosen)
        common = (function, self.recipe, chosen)
        return self.workers.each(_apply, self.data, index, *lists, common=common)

    def _of_parts(self, arg) -> list:
        """An argument for each part: the part of a vector, or the same value or future."""
        if isinstance(arg, RowVector):
            return arg.futures
        if isinstance(arg, np.ndarray):
            arg = self.workers.shared(arg)
        return [arg] * len(self.counts)

    def _vector(self, futures, columns) -> RowVector:
        return RowVector(self.workers, futures, self.counts, np.empty((0, *columns)))

    def total(self, function, *args):
        """The sum over the parts of function(its matrix, *args)."""
        return self.workers.sum(self._each(function, *args))

    def matvec(self, W):
        products = self._each("matvec", np.asarray(W, np.float64))
        return self._vector(products, W.shape[1:])

    def rmatvec(self, U):
        return self.total("rmatvec", U)

    def normal(self, P, weights=None):
        return self.total("normal", np.asarray(P, np.float64), weights)

    def outer(self, U):
        """The sums over the rows also stay on the workers."""
        sums = self.workers.total(self._each("rmatvec", U))
        products = self._each("matvec", sums)
        return self._vector(products, U.shape[1:])

    def loss_pass(self, W, loss, y):
        passes = self._each(_loss_pass, np.asarray(W, np.float64), loss, y)
        # sums are extracted before they are sent
        value, G = self.workers.sum(self.workers.entries(passes, 1))
        F = self._vector(self.workers.entries(passes, 0), W.shape[1:])
        return F, value, G

    def gram(self, left, right, weights, dtype=None):
        return self.total("gram", left, right, weights, dtype)

    def squares(self, weights=None):
        return self.total("squares", weights)


# within the memory of the workers, not of this process
hold_part.register(PartsMatrix, lambda Z, max_mb, kind=None: Z.hold(kind=kind))
scaled_rows.register(PartsMatrix, PartsMatrix.scaled)


# ---------------------------------------------------------------------- on the workers


def _with(x, index, values):
    out = np.array(x)
    out[index] = values
    return out


def _apply(function, recipe, chosen, data, index, factors, *args):
    Z = recipe(data)
    Z = Z if chosen is None else Z.columns(chosen)
    Z = Z if index is None else Z.rows(index)
    Z = Z if factors is None else ScaledRows(Z, factors)
    if isinstance(function, str):
        return getattr(Z, function)(*args)
    return function(Z, *args)


def _drawn(n, count, start, stop):
    return random_rows(n, count, start, stop) - start


def _loss_pass(Z, W, loss, y):
    F, value, G = Z.loss_pass(W, loss, y)
    return F, (value, G)


# ----------------------------------------------------------------------
# Rows of inputs and targets on Dask workers, each of which reads, scales and stores its own parts;
# and Dask arrays and data frames as such rows.

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


class DistributedRows:
    """Rows X (n, d) and targets `y` (n,), a RowVector, of sources read by workers
    (rfx.data.stream), one for each part.

    They are surveyed on the workers; `scaled` reads them again, scales them and stores them.
    weights: a RowVector, None for ones. seconds: of both steps.
    """

    def __init__(self, workers, sources, moments: bool = False, weights=None):
        """sources: one per part, or futures of them. moments: also survey means and deviations;
        weights: arrays of positive weights, one per part, None for ones. Raises DataError if there
        are no rows.
        """
        start = time.perf_counter()
        every = range(len(sources))
        part_weights = [None] * len(sources)
        if weights is not None:
            part_weights = workers.at_home(_weights, sources, every, weights)
        surveys = workers.at_home(_surveyed, sources, every, [moments] * len(sources), part_weights)
        results = workers.results(workers.entries(surveys, 0))
        kept = [k for k in every if results[k].count]
        if not kept:
            raise DataError("the files have no rows")
        self.workers = workers
        self.sources = [sources[k] for k in kept]
        self.counts = tuple(results[k].count for k in kept)
        self.survey = reduce(add, (results[k] for k in kept))
        self.shape = (self.survey.count, self.survey.width)
        vector = lambda futures: RowVector(workers, [futures[k] for k in kept], self.counts)
        self.y = vector(workers.entries(surveys, 1))
        self.weights = None if weights is None else vector(part_weights)
        # futures of the scaled rows, with their scaling and type, if any
        self.data: list[object] | None = None
        self.latest: tuple[object, object, DistributedRows] | None = None
        self.seconds = time.perf_counter() - start

    def _at_home(self, function, *lists, numbers=None) -> list:
        """The results of function(source, *entries of these lists) of all parts, or some."""
        every = range(len(self.sources)) if numbers is None else numbers
        return self.workers.at_home(function, self.sources, every, *lists)

    def some(self, index, moments: bool = False, weights=None, sources=None) -> DistributedRows:
        """The rows with these ascending numbers, read again by the workers.

        moments: as for a new object; weights: an array (n,) for all rows, None for ones; rows with
        weight zero are dropped. sources: of the same rows, read in another way.
        """
        if weights is not None:
            index = index[weights[index] > 0]
            owners, _ = located(index, self.counts)
            own = weights[index]
            weights = [own[owners == k] for k in range(len(self.counts))]
        return DistributedRows(self.workers, self.taken(index, sources), moments, weights)

    def taken(self, index, sources=None) -> list[RowSubset]:
        """The sources of the rows with these ascending numbers; sources: see `some`."""
        owners, local = located(index, self.counts)
        return [
            RowSubset(source, local[owners == k], width=self.shape[1])
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

    def repeats(self) -> SplitConstraint | None:
        """What keeps equal rows together when some are held out."""
        sums = self.workers.results(self._at_home(_sums))
        return repeats.of_sums(np.concatenate(sums))

    def scaled(self, scaler, dtype) -> DistributedRows:
        """The scaled rows, stored on the workers; reused as long as the scaling is the same."""
        if self.latest is not None and self.latest[0] is scaler and self.latest[1] == dtype:
            return self.latest[2]
        start = time.perf_counter()
        other = copy(self)
        densify = partial(dense, dtype=np.dtype(dtype))
        how = (self.shape[1], scaler, dtype, densify)
        same = ([value] * len(self.counts) for value in how)
        other.latest = None
        other.data = self._at_home(load, self.counts, *same)
        self.workers.results(self.workers.each(np.shape, other.data))
        self.latest = (scaler, dtype, other)
        self.seconds += time.perf_counter() - start
        return other

    def __getitem__(self, index) -> np.ndarray:
        """The rows with these numbers, fetched. Unscaled rows are read again by the workers, and
        their numbers have to ascend.
        """
        index = np.arange(self.shape[0])[index]
        if self.data is None:
            owners, local = located(index, self.counts)
            used = np.unique(owners)
            numbers = [local[owners == k] for k in used]
            width = [self.shape[1]] * len(used)
            rows = self._at_home(picked, numbers, width, numbers=used)
            return stacked(self.workers.results(rows))
        return fetched(self.workers, self.data, self.counts, index)

    def room(self) -> tuple[int, float]:
        """(rows of a worker, MiB available for them)."""
        n_workers = len(self.workers.addresses)
        return -(-self.shape[0] // n_workers), self.workers.memory_mb

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
        workers = self.workers
        scale = 1.0 / np.sqrt(grids.n_grids)
        of_parts = workers.each(_number, self.data, common=(workers.shared(grids),))
        bins, tables = merged(workers.results(workers.entries(of_parts, 1)))
        most_bins = int(np.diff(bins.starts).max())
        kind = np.uint16 if most_bins < 2**16 else np.int32
        tables = [workers.shared(table) for table in tables]
        ids = workers.each(_renumbered, of_parts, tables, common=(kind,))
        recipe = partial(BinnedMatrix, starts=bins.starts, scale=scale)
        form = (int(bins.starts[-1]), BinnedMatrix.dtype)
        Z = PartsMatrix(workers, ids, recipe, self.counts, form, READ)
        Z.starts = bins.starts
        Z.scale = scale
        Z.n_grids = grids.n_grids
        return bins, Z

    def total(self, function, shared, *vectors):
        """The sum over the parts of function(shared, X, *vectors)."""
        parts = [self.data, *(vector.futures for vector in vectors)]
        common = (self.workers.shared(shared),)
        return self.workers.sum(self.workers.each(function, *parts, common=common))

    def fitted_cells(self, method, problem, clock):
        """The partition of `local` and its cells, each fitted by a worker to which its rows are
        sent.
        """
        workers = self.workers
        n_rows = self.shape[0]
        some = self[sampled(n_rows, self.shape[1], method.seed)]
        top = Partition.top(some, n_rows, *method.tree(n_rows))
        vectors = [problem.Y]
        if problem.weights is not None:
            vectors.append(problem.weights)
        starts = np.cumsum([0, *self.counts[:-1]]).tolist()
        parts = [starts, self.data, *(vector.futures for vector in vectors)]
        sent = workers.each(_in_blocks, *parts, common=(workers.shared(top),))
        shared = workers.shared((method, problem.task, top, n_rows))
        futures = [
            workers.submit(_cell, shared, block, *workers.entries(sent, block))
            for block in range(top.n_blocks)
        ]
        cells = workers.results(futures)
        return top.joined([cell.partition for cell in cells]), cells


# What other rooms do with rows here, for rows on workers.
computed.register(DistributedRows, DistributedRows.features)
fitted_cells.register(DistributedRows, DistributedRows.fitted_cells)
numbered.register(DistributedRows, DistributedRows.numbered)
room.register(DistributedRows, DistributedRows.room)
total.register(DistributedRows, DistributedRows.total)
keeps_sparse.register(DistributedRows, lambda X: is_text(X.shape[0], X.shape[1], X.survey.entries))
stays_sparse.register(DistributedRows, lambda X, scaling: True)
statistics.register(DistributedRows, lambda X, moments, weights: X.survey)
Scaler.transform.register(  # type: ignore[attr-defined]
    DistributedRows, lambda scaler, X, dtype: X.scaled(scaler, dtype)
)


# ---------------------------------------------------------------------- on the workers


def _surveyed(
    source: Any, moments: bool, weights: np.ndarray | None = None
) -> tuple[Statistics, np.ndarray]:
    """(statistics, targets) of the rows of a source (rfx.data.stream); moments: compute means and
    squares, with sample weights (n,), None for ones.
    """
    none = np.zeros(0)
    total = Statistics(0, 0, 0, none, none, none, none, 0.0, {})
    targets = [none]
    for X, y in source.chunks():
        if X.shape[0]:
            own = slice(total.count, total.count + X.shape[0])
            part_weights = None if weights is None else weights[own]
            total = total + Statistics.of(X, moments, part_weights, y)
            targets.append(np.asarray(y, np.float64))
    return total, np.concatenate(targets)


def _features(feature_map, scale, X):
    return MapMatrix(feature_map, X, scale)


def _in_blocks(partition, start, X, *vectors):
    return [
        (start + rows, X[rows], *(vector[rows] for vector in vectors))
        for rows in partition.place(X, shared=True)
    ]


def _cell(shared, block, *parts):
    return grown_cell(shared, block, *map(np.concatenate, zip(*parts, strict=True)))


def _sums(source):
    return np.concatenate([repeats.random_sums(X) for X, _ in source.chunks()])


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
        own = slice(bins.starts[grid], bins.starts[grid + 1])
        out[grid] = table[own][ids[grid]]
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
    X = _array(X, "X")
    y = _array(y, "y")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.reshape(-1)
    X = X.rechunk({1: -1})
    y = y.rechunk({0: X.chunks[0]})
    workers = Workers(client)
    labels = None
    blocks, targets = (client.compute(own.to_delayed().ravel().tolist()) for own in (X, y))
    if encode:
        labels_of_parts = workers.results(workers.each(np.unique, targets))
        labels = np.unique(np.concatenate(labels_of_parts))
    sources = workers.each(_arrays, blocks, targets, [labels] * len(blocks))
    rows = DistributedRows(workers, sources, trainer.method.scaling in BY_MOMENTS)
    estimator.n_features_in_ = X.shape[1]
    if names is not None:
        estimator.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
    return rows, rows.y, labels


def _array(values, name):
    if not is_distributed(values):
        raise DataError(
            f"X is distributed (Dask), but {name} is not; pass both as Dask collections"
        )
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array(lengths=True)
    if any(np.isnan(size) for size in values.shape):
        values = values.compute_chunk_sizes()
    return values


def _arrays(X, y, labels):
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, np.float64)
    y = np.asarray(y, np.float64) if labels is None else np.searchsorted(labels, y) * 1.0
    for name, numbers in (("X", X.data if hasattr(X, "tocsr") else X), ("y", y)):
        if not np.isfinite(numbers).all():
            raise DataError(f"Input {name} contains NaN or infinity")
    return Arrays(X, y)
