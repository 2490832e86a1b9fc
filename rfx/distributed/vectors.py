"""Arrays with an entry for each row of a distributed matrix, stored with its parts; numpy functions
accept them.

An elementwise operation is a task for each part. A sum is a task for each part, whose numbers are
added here, in order.
"""

from collections.abc import Callable
from operator import getitem
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from rfx.errors import DataError
from rfx.parallel import cached

# Maximum numbers fetched: longer vectors stay on the workers.
_FETCHED = 1 << 22
# Maximum distinct values returned by `np.unique`.
_MOST_VALUES = 1000


class RowVector(NDArrayOperatorsMixin):
    """An array (N,) or (N, k) whose parts, with `counts` rows each, are on the workers."""

    __array_priority__ = 1000

    def __init__(self, workers, futures, counts, meta=None):
        """futures: one for each part, of its array; None if they are set later, before any value is
        requested. meta: an array without rows, with the columns and the type; default: (0,)
        float64.
        """
        self.workers, self.counts = workers, tuple(counts)
        self.meta = np.empty(0) if meta is None else meta
        # those of a vector without futures yet are created on first use
        self._futures = futures

    @property
    def futures(self) -> list:
        if callable(self._futures):
            self._futures = self._futures()
        return self._futures

    @futures.setter
    def futures(self, futures: list) -> None:
        self._futures = futures

    def _each(self, function, *args) -> list:
        """A future for each part of function(*args); args may include vectors and indexes."""
        parts = [
            arg.futures if isinstance(arg, (RowVector, RowIndex)) else [arg] * len(self.counts)
            for arg in args
        ]
        return self.workers.each(function, *parts)

    def _like(self, function, *args, counts=None) -> "RowVector":
        """function(*args) elementwise; args may include RowVectors."""
        vectors = [arg for arg in args if isinstance(arg, RowVector)]
        meta = function(
            *(arg.meta if isinstance(arg, (RowVector, RowIndex)) else arg for arg in args)
        )
        if meta.shape[0] != 0 or len({vector.counts for vector in vectors}) > 1:
            raise ValueError(
                "vectors on workers combine only with vectors on the same workers and with numbers"
            )

        evaluate = lambda: self._each(function, *args)
        later = any(vector._futures is None or callable(vector._futures) for vector in vectors)
        futures = evaluate if later else evaluate()
        return RowVector(self.workers, futures, counts or vectors[0].counts, meta)

    # ------------------------------------------------------------------ array interface

    @property
    def dtype(self):
        return self.meta.dtype

    @cached
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
        return RowVector(self.workers, self._futures, self.counts, self.meta)

    def astype(self, dtype, copy=True):
        return self if dtype == self.dtype else self._like(_typed, self, np.dtype(dtype))

    def reshape(self, *shape):
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        if shape[0] not in (len(self), -1):
            raise ValueError("vectors on workers can't be reshaped")
        return self._like(
            _shaped,
            self,
            tuple(int(np.prod(self.shape[1:])) if size == -1 else size for size in shape[1:]),
        )

    def __getitem__(self, key):
        if isinstance(key, RowIndex):
            return self._like(getitem, self, key, counts=key.counts)
        if isinstance(key, tuple):
            if key[0] != slice(None):
                raise TypeError(
                    "vectors on workers support only a full slice or an index of their own rows"
                )
            return self._like(_part_of, self, key)
        return self._some(np.arange(len(self))[key] if isinstance(key, slice) else np.asarray(key))

    def _some(self, index):
        """The rows of these numbers, as an array."""
        if len(index) * max(1, self.size // max(1, len(self))) > _FETCHED:
            raise TypeError(f"{len(index):,} rows are too many to fetch from the workers")
        owners, local = located(index, self.counts)
        used = np.unique(owners)
        parts = [self.futures[part] for part in used], [local[owners == part] for part in used]
        futures = self.workers.each(getitem, *parts)
        out = np.empty((len(index), *self.shape[1:]), self.dtype)
        for part, values in zip(used, self.workers.results(futures)):
            out[owners == part] = values
        return out

    def __setitem__(self, key, values):
        if not isinstance(key, RowIndex):
            raise TypeError("assignment to vectors on workers needs an index of their own rows")
        self.futures = self._each(_with, self, key, values)

    def __iter__(self):
        raise TypeError("vectors on workers can't be iterated")

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
            return self._like(_summed, self, axis)
        return sum(self._partial(_sum_all if axis is None else _sum_rows))

    def mean(self, axis=None, **_):
        return self.sum(axis) / (len(self) if axis == 0 else self.size)

    def max(self, axis=None, **_):
        return (
            np.max(self._partial(_largest), axis=0)
            if axis == 0
            else np.max(self._partial(_largest))
        )

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
        into[0]._futures, into[0].meta = values._futures, values.meta
        return into[0]

    def __array_function__(self, function, types, args, options):
        implementation = _FUNCTIONS.get(function)
        return NotImplemented if implementation is None else implementation(*args, **options)


class RowIndex:
    """Some rows of parts: for each part its ascending row numbers; counts: how many."""

    meta = np.empty(0, np.int64)

    def __init__(self, workers, futures, counts):
        self.workers, self.futures, self.counts = workers, futures, tuple(counts)

    def __len__(self):
        return sum(self.counts)


def located(index, counts):
    """(part, number in the part) of rows by their numbers over all parts."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    owners = np.searchsorted(starts, index, side="right") - 1
    return owners, index - starts[owners]


def rows_where(mask: RowVector) -> RowIndex:
    """The rows where a vector is nonzero."""
    futures = mask.workers.each(np.flatnonzero, mask.futures)
    return RowIndex(mask.workers, futures, mask.workers.results(mask.workers.each(len, futures)))


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
    return sum(a._partial(_products, b))


def _average(x, axis, weights):
    if weights is None:
        return x.mean(axis)
    if x.ndim > 1 and axis != 0:
        return NotImplemented
    return weights.dot(x) / weights.sum()


def _norm(x):
    return float(np.sqrt(x._like(np.square, x).sum()))


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: lambda mask, a, b: mask._like(np.where, mask, a, b),
    np.zeros_like: lambda x, dtype=None: x._like(
        _full, x, 0.0 if dtype is None else np.dtype(dtype).type(0)
    ),
    np.ones_like: lambda x, dtype=None: x._like(_full, x, 1.0),
    np.sum: lambda x, axis=None: x.sum(axis),
    np.mean: lambda x, axis=None: x.mean(axis),
    np.max: lambda x, axis=None: x.max(axis),
    np.min: lambda x, axis=None: x.min(axis),
    np.ptp: lambda x: x.max() - x.min(),
    np.any: lambda x: x.any(),
    np.all: lambda x: x.all(),
    np.average: lambda x, axis=None, weights=None: _average(x, axis, weights),
    np.count_nonzero: lambda x: int(sum(x._partial(np.count_nonzero))),
    np.flatnonzero: rows_where,
    np.array_equal: lambda a, b: len(a) == len(b) and bool(np.all(a._partial(np.array_equal, b))),
    np.unique: _unique,
    np.einsum: _einsum,
    np.linalg.norm: _norm,
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
}


# ---------------------------------------------------------------------- on the workers


def _typed(x, dtype):
    return x.astype(dtype)


def _shaped(x, rest):
    return x.reshape(len(x), *rest)


def _part_of(x, key):
    return np.ascontiguousarray(x[key])


def _with(x, index, values):
    out = np.array(x)
    out[index] = values
    return out


def _full(x, value):
    return np.full(x.shape, value)


def _summed(x, axis):
    return x.sum(axis=axis)


def _sum_all(x):
    return float(x.sum(dtype=np.float64)) if x.dtype.kind == "f" else int(x.sum())


def _sum_rows(x):
    return x.sum(axis=0)


def _largest(x):
    return x.max(axis=0, initial=-np.inf)


def _products(a, b):
    return np.einsum("i...,i...->...", a, b)


def _values_of(x):
    values, counts = np.unique(x, return_counts=True)
    return values[: _MOST_VALUES + 1], counts[: _MOST_VALUES + 1]
