"""Vectors over rows, and matrices of features, whose parts are on Dask workers.

Each worker multiplies its own rows. An elementwise operation is a task for each part. A sum is a
task for each part, whose results are reduced in a tree. numpy functions accept the vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from operator import getitem, methodcaller
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

from rfx.errors import DataError
from rfx.operators.blocks import drawn
from rfx.operators.cached import hold_part
from rfx.operators.coded import coded
from rfx.operators.matrix import READ, DenseMatrix, Matrix
from rfx.operators.scaled import ScaledRows, scaled_rows

# Maximum numbers of a vector, and of features, that are fetched: longer ones stay on the workers.
_FETCHED, _FETCHED_FEATURES = 1 << 22, 1 << 29
# Maximum distinct values returned by `np.unique`.
_MOST_VALUES = 1000
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
        if meta.shape[0] != 0 or len({arg.counts for arg in args if _is_vector(arg)}) > 1:
            raise ValueError(
                "vectors on workers combine only with vectors on the same workers and with numbers"
            )
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
        first, *rest = shape[0] if isinstance(shape[0], tuple) else shape
        if first not in (len(self), -1):
            raise ValueError("vectors on workers can't be reshaped")
        columns = int(np.prod(self.shape[1:]))
        rest = [columns if size == -1 else size for size in rest]
        return self._like(methodcaller("reshape", -1, *rest), self)

    def __getitem__(self, key):
        if isinstance(key, RowIndex):
            return self._like(getitem, self, key, counts=key.counts)
        if isinstance(key, tuple):
            if key[0] != slice(None):
                raise TypeError(
                    "vectors on workers support only a full slice or an index of their own rows"
                )
            return self._like(getitem, self, key)
        index = np.arange(len(self))[key] if isinstance(key, slice) else np.asarray(key)
        if len(index) * max(1, self.size // max(1, len(self))) > _FETCHED:
            raise TypeError(f"{len(index):,} rows are too many to fetch from the workers")
        return fetched(self.workers, self.futures, self.counts, index)

    def __setitem__(self, key, values):
        if not isinstance(key, RowIndex):
            raise TypeError("assignment to vectors on workers needs an index of their own rows")
        self.futures = self._each(_with, self, key, values)

    __iter__ = None

    def __array__(self, dtype=None, copy=None):
        if self.size > _FETCHED:
            raise TypeError(f"{self.size:,} numbers are too many to fetch from the workers")
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


def _is_vector(value) -> bool:
    return isinstance(value, RowVector)


class RowIndex:
    """Some rows of parts: for each part its ascending row numbers, or a future of them; counts: how
    many.
    """

    meta = np.empty(0, np.int64)

    def __init__(self, workers, futures, counts):
        self.workers, self.futures, self.counts = workers, futures, tuple(counts)

    @classmethod
    def of(cls, workers, futures) -> RowIndex:
        """counts: from the workers."""
        return cls(workers, futures, workers.results(workers.each(len, futures)))

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
    order, used = np.argsort(owners, kind="stable"), np.unique(owners)
    numbers = [local[owners == part] for part in used]
    rows = workers.results(workers.each(getitem, [parts[part] for part in used], numbers))
    whole = sp.vstack(rows, format="csr") if any(map(sp.issparse, rows)) else np.concatenate(rows)
    return whole[np.argsort(order, kind="stable")]


def _unique(y, return_counts=False):
    values_of_parts, counts_of_parts = zip(*y._partial(_values_of))
    values, places = np.unique(np.concatenate(values_of_parts), return_inverse=True)
    if len(values) > _MOST_VALUES:
        raise DataError(
            f"the targets have more than {_MOST_VALUES:,} different values, too many for classes;"
            " set --task regression"
        )
    counts = np.bincount(places.ravel(), np.concatenate(counts_of_parts), len(values))
    return (values, counts.astype(np.int64)) if return_counts else values


def _einsum(subscripts, a, b):
    if subscripts != "i...,i...->...":
        return NotImplemented
    return sum(a._partial(partial(np.einsum, subscripts), b))


def _average(x, axis=None, weights=None):
    if weights is None:
        return x.mean(axis)
    return weights.dot(x) / weights.sum() if x.ndim == 1 or axis == 0 else NotImplemented


def _full(x, value, dtype=None):
    return x._like(partial(np.full_like, fill_value=value, dtype=dtype), x)


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: lambda mask, a, b: mask._like(np.where, mask, a, b),
    np.zeros_like: lambda x, dtype=np.float64: _full(x, 0, dtype),
    np.ones_like: lambda x, dtype=np.float64: _full(x, 1, dtype),
    np.sum: lambda x, axis=None: x.sum(axis),
    np.mean: lambda x, axis=None: x.mean(axis),
    np.max: lambda x, axis=None: x.max(axis),
    np.min: lambda x, axis=None: x.min(axis),
    np.ptp: lambda x: x.max() - x.min(),
    np.any: lambda x: x.any(),
    np.all: lambda x: x.all(),
    np.average: _average,
    np.count_nonzero: lambda x: int(sum(x._partial(np.count_nonzero))),
    np.flatnonzero: lambda x: RowIndex.of(x.workers, x.workers.each(np.flatnonzero, x.futures)),
    np.array_equal: lambda a, b: len(a) == len(b) and bool(np.all(a._partial(np.array_equal, b))),
    np.unique: _unique,
    np.einsum: _einsum,
    np.linalg.norm: lambda x: float(np.sqrt(x._like(np.square, x).sum())),
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
}


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
        self.recipe, self.cost, self.most_mb = workers.shared(recipe), cost, most_mb
        self.shape, self.dtype = (sum(counts), form[0]), np.dtype(form[1])
        self.index = self.chosen = self.factors = None

    # of random binning features
    starts: np.ndarray
    scale: float
    n_grids: int

    def parts(self):
        raise TypeError("matrices on workers can't be iterated")

    # ------------------------------------------------------------------ rows and columns

    def rows(self, index):
        other = copy(self)
        other.counts, other.shape = index.counts, (len(index), self.shape[1])
        other.index = index.futures
        if self.index is not None:
            other.index = self.workers.each(getitem, self.index, index.futures)
        return other if self.factors is None else other.scaled(self.factors[index])

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
        starts, n = np.concatenate([[0], np.cumsum(self.counts)]).tolist(), self.shape[0]
        drawn_rows = self.workers.each(_drawn, starts[:-1], starts[1:], common=(n, count))
        return RowIndex.of(self.workers, drawn_rows)

    def subset(self, count):
        if count * self.shape[1] > _HERE:
            return super().subset(count)
        chosen = drawn(self.shape[0], count)
        owners, local = located(chosen, self.counts)
        index = [local[owners == part] for part in range(len(self.counts))]
        return self.rows(RowIndex(self.workers, index, map(len, index))).gathered(), chosen

    def constant(self, value):
        futures = self.workers.each(np.full, self.counts, [float(value)] * len(self.counts))
        return RowVector(self.workers, futures, self.counts)

    def hold(self, max_mb=np.inf):
        """Cached on the workers, if that needs at most `max_mb` and each worker's own limit."""
        return self._stored("to_array", DenseMatrix, self.dtype, READ, max_mb)

    def hold_rows(self, max_mb, kind=None):
        """Cached on the workers, within their memory, not this process's; kind: int8 or int16 for
        codes (rfx.operators.coded).
        """
        if kind is None:
            return self.hold()
        return self._stored(partial(coded, kind=kind), _itself, kind, READ / 2)

    def _stored(self, function, recipe, dtype, cost, max_mb=np.inf):
        """The results of function(its matrix) for each part, as numbers of that type, if they fit;
        recipe: makes a matrix of them.
        """
        share_mb = self.size_mb * np.dtype(dtype).itemsize / self.dtype.itemsize
        share_mb /= len(self.workers.addresses)
        if self.cost <= READ or share_mb > min(max_mb, self.most_mb, self.workers.memory_mb):
            return self
        data, form = self.scaled(None)._each(function), (self.shape[1], self.dtype)
        held = PartsMatrix(self.workers, data, recipe, self.counts, form, cost)
        return held.scaled(self.factors)

    def by_columns(self):
        return self

    def gathered(self):
        return DenseMatrix(self.to_array())

    def to_array(self, out=None):
        if self.shape[0] * self.shape[1] > _FETCHED_FEATURES:
            raise TypeError(
                f"{self.size_mb:,.0f} MiB of features are too many to fetch from the workers"
            )
        features = np.concatenate(self.workers.results(self._each("to_array")))
        if out is None:
            return features
        out[...] = features
        return out

    # ------------------------------------------------------------------ products

    def _each(self, function, *args) -> list:
        """A future for each part of function(its matrix, *args), or of the matrix's method of that
        name; vectors among args become their parts, and futures their values.
        """
        share = self.workers.shared
        lists = [
            arg.futures
            if _is_vector(arg)
            else [share(arg) if isinstance(arg, np.ndarray) else arg] * len(self.counts)
            for arg in (self.factors, *args)
        ]
        index = self.index or [None] * len(self.counts)
        common = (function, self.recipe, None if self.chosen is None else share(self.chosen))
        return self.workers.each(_apply, self.data, index, *lists, common=common)

    def _vector(self, futures, columns) -> RowVector:
        return RowVector(self.workers, futures, self.counts, np.empty((0, *columns)))

    def total(self, function, *args):
        """The sum over the parts of function(its matrix, *args)."""
        return self.workers.sum(self._each(function, *args))

    def matvec(self, W):
        return self._vector(self._each("matvec", np.asarray(W, np.float64)), W.shape[1:])

    def rmatvec(self, U):
        return self.total("rmatvec", U)

    def normal(self, P, weights=None):
        return self.total("normal", np.asarray(P, np.float64), weights)

    def outer(self, U):
        """The sums over the rows also stay on the workers."""
        sums = self.workers.total(self._each("rmatvec", U))
        return self._vector(self._each("matvec", sums), U.shape[1:])

    def loss_pass(self, W, loss, y):
        passes = self._each(_loss_pass, np.asarray(W, np.float64), loss, y)
        # sums are extracted before they are sent
        value, G = self.workers.sum(self.workers.entries(passes, 1))
        return self._vector(self.workers.entries(passes, 0), W.shape[1:]), value, G

    def gram(self, left, right=None, weights=None, dtype=None):
        return self.total("gram", left, right, weights, dtype)

    def squares(self, weights=None):
        return self.total("squares", weights)


hold_part.register(PartsMatrix, lambda Z, max_mb, kind=None: Z.hold_rows(max_mb, kind))
scaled_rows.register(PartsMatrix, PartsMatrix.scaled)


# ---------------------------------------------------------------------- on the workers


def _with(x, index, values):
    out = np.array(x)
    out[index] = values
    return out


def _values_of(x):
    values, counts = np.unique(x, return_counts=True)
    return values[: _MOST_VALUES + 1], counts[: _MOST_VALUES + 1]


def _apply(function, recipe, chosen, data, index, factors, *args):
    Z = recipe(data)
    Z = Z if chosen is None else Z.columns(chosen)
    Z = Z if index is None else Z.rows(index)
    Z = Z if factors is None else ScaledRows(Z, factors)
    return getattr(Z, function)(*args) if isinstance(function, str) else function(Z, *args)


def _drawn(n, count, start, stop):
    return drawn(n, count, start, stop) - start


def _itself(Z):
    return Z


def _loss_pass(Z, W, loss, y):
    F, value, G = Z.loss_pass(W, loss, y)
    return F, (value, G)
