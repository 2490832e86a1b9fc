"""Arrays with an entry for each row of a distributed matrix, stored with its parts; numpy functions
accept them.

Elementwise operations are recorded, and evaluated part by part with the next sum or product that
needs them, so that `loss.value(f, y).sum()` is one task per part and one number to transfer. The
numbers of the parts are summed here, in order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from rfx.errors import DataError
from rfx.parallel import cached

# Recorded steps before evaluation, so that the expression of a loop does not grow without limit.
_LONGEST = 16
# Maximum numbers fetched: longer vectors stay on the workers.
_FETCHED = 1 << 22
# Maximum distinct values returned by `np.unique`.
_MOST_VALUES = 1000


@dataclass(frozen=True)
class _Place:
    """The value of an earlier step."""

    number: int


class _Node:
    """A step: function(*args), with values in place of nodes among args; for a leaf the futures,
    one per part.
    """

    length: int

    def __init__(self, function, args, meta):
        self.function, self.args, self.meta = function, args, meta
        self.length = 1 + sum(arg.length for arg in args if isinstance(arg, _Node))


class Leaf(_Node):
    """Values on the workers; futures may be set later, before any value is requested."""

    length = 0

    def __init__(self, meta, futures=None):
        self.meta, self.futures = meta, futures


def written(nodes):
    """(steps, leaves) for `evaluated`: the values of nodes, each step once."""
    steps: list[tuple[Any, tuple[Any, ...]]] = []
    leaves: list[Any] = []
    numbers: dict[int, int] = {}

    def visit(node):
        if id(node) in numbers:
            return _Place(numbers[id(node)])
        if isinstance(node, Leaf):
            step = (None, (len(leaves),))
            leaves.append(node.futures)
        else:
            step = (
                node.function,
                tuple(visit(arg) if isinstance(arg, _Node) else arg for arg in node.args),
            )
        numbers[id(node)] = len(steps)
        steps.append(step)
        return _Place(numbers[id(node)])

    wanted = [None if node is None else visit(node).number for node in nodes]
    return (steps, wanted), leaves


def evaluated(program, leaves) -> list:
    """The values of the recorded nodes for one part."""
    steps, wanted = program
    values: list = []
    for function, args in steps:
        if function is None:
            found = leaves[args[0]]
            # targets that are exact in float32 are stored so
            values.append(
                found.astype(np.float64) if getattr(found, "dtype", None) == np.float32 else found
            )
        else:
            values.append(
                function(*(values[arg.number] if isinstance(arg, _Place) else arg for arg in args))
            )
    return [None if number is None else values[number] for number in wanted]


class RowVector(NDArrayOperatorsMixin):
    """An array (N,) or (N, k) whose parts, with `counts` rows each, are on the workers."""

    __array_priority__ = 1000

    def __init__(self, workers, node, counts):
        self.workers, self.node, self.counts = workers, node, tuple(counts)

    @classmethod
    def of(cls, workers, futures, counts, columns=(), entry=None) -> "RowVector":
        """Create from a future for each part, of float64 arrays (n, *columns), or of tuples whose
        `entry` is one.
        """
        leaf = Leaf(np.empty((0, *columns)), futures)
        return cls(
            workers, leaf if entry is None else _Node(itemgetter(entry), [leaf], leaf.meta), counts
        )

    @classmethod
    def constant(cls, workers, counts, value: float) -> "RowVector":
        """(N,) the same number for every row."""
        return cls(workers, _Node(np.full, [Leaf(0, list(counts)), value], np.empty(0)), counts)

    def _like(self, function, *args, counts=None) -> "RowVector":
        """function(*args) elementwise; args may include RowVectors."""
        given = [arg for arg in args if isinstance(arg, RowVector)]
        counts = counts or given[0].counts
        nodes = [arg.node if isinstance(arg, (RowVector, RowIndex)) else arg for arg in args]
        meta = function(*(node.meta if isinstance(node, _Node) else node for node in nodes))
        if meta.shape[0] != 0 or len({arg.counts for arg in given}) > 1:
            raise ValueError(
                "vectors on workers combine only with vectors on the same workers and with numbers"
            )
        found = RowVector(self.workers, _Node(function, nodes, meta), counts)
        return found.kept() if found.node.length > _LONGEST else found

    def kept(self) -> "RowVector":
        """The same, evaluated on the workers."""
        if not isinstance(self.node, Leaf):
            self.node = Leaf(self.node.meta, tasks(self.workers, _value, [self.node]))
        return self

    # ------------------------------------------------------------------ array interface

    @property
    def dtype(self):
        return self.node.meta.dtype

    @cached
    def shape(self) -> tuple:
        return (sum(self.counts), *self.node.meta.shape[1:])

    @property
    def ndim(self) -> int:
        return self.node.meta.ndim

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self):
        return self.shape[0]

    def copy(self):
        return RowVector(self.workers, self.node, self.counts)

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
            return self._like(_taken, self, key, counts=key.counts)
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
        (steps, wanted), leaves = written([self.node])
        program = self.workers.shared((steps, wanted))
        parts = [[own[p] for own in leaves] for p in used], [local[owners == p] for p in used]
        futures = self.workers.each(_chosen, *parts, common=(program,))
        out = np.empty((len(index), *self.shape[1:]), self.dtype)
        for part, values in zip(used, self.workers.results(futures)):
            out[owners == part] = values
        return out

    def __setitem__(self, key, values):
        if not isinstance(key, RowIndex):
            raise TypeError("assignment to vectors on workers needs an index of their own rows")
        args = self, key, values.node if isinstance(values, RowVector) else values
        nodes = [self.node, key.node, args[2]]
        self.node = _Node(_with, nodes, self.node.meta)
        if self.node.length > _LONGEST:
            self.kept()

    def __iter__(self):
        raise TypeError("vectors on workers can't be iterated")

    def __array__(self, dtype=None, copy=None):
        if self.size > _FETCHED:
            raise TypeError(f"{self.size:,} numbers are too many to fetch from the workers")
        return np.concatenate(
            self.workers.results(tasks(self.workers, _value, [self.node]))
        ).astype(dtype or self.dtype, copy=False)

    # ------------------------------------------------------------------ sums

    def _partial(self, function, *more) -> list:
        """function of each part of this vector and of the others, fetched."""
        parts, common = _question(
            self.workers, function, [self.node, *(other.node for other in more)]
        )
        return self.workers.answers(_with_values, parts, common=common)

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
        return bool(np.any(self._partial(_any)))

    def all(self, **_):
        return bool(np.all(self._partial(_all)))

    def dot(self, other):
        """The sum over the rows of products of this (N,) with other (N,) or (N, k)."""
        return sum(self._partial(_dot, other))

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
        found = self._like(ufunc, *inputs)
        if into is None:
            return found
        into[0].node = found.node
        return into[0]

    def __array_function__(self, function, types, args, options):
        own = _FUNCTIONS.get(function)
        return NotImplemented if own is None else own(*args, **options)


class RowIndex:
    """Some rows of parts: for each part its ascending row numbers; counts: how many."""

    def __init__(self, workers, futures, counts):
        self.node, self.workers, self.counts = (
            Leaf(np.empty(0, np.int64), futures),
            workers,
            tuple(counts),
        )

    def __len__(self):
        return sum(self.counts)


def tasks(workers, function, nodes) -> list:
    """A future for each part, of function of the values of these nodes."""
    parts, common = _question(workers, function, nodes)
    return workers.each(_with_values, parts, common=common)


def _question(workers, function, nodes) -> tuple:
    """(the leaves of each part, common arguments) for `_with_values`."""
    program, leaves = written(nodes)
    return [list(own) for own in zip(*leaves, strict=True)], (function, workers.shared(program))


def located(index, counts):
    """(part, number in the part) of rows by their numbers over all parts."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    owners = np.searchsorted(starts, index, side="right") - 1
    return owners, index - starts[owners]


def rows_where(mask: RowVector) -> RowIndex:
    """The rows where a vector is nonzero."""
    futures = tasks(mask.workers, _nonzero, [mask.node])
    return RowIndex(mask.workers, futures, mask.workers.results(mask.workers.each(len, futures)))


def _unique(y, return_counts=False):
    found = y._partial(_values_of)
    values, places = np.unique(np.concatenate([values for values, _ in found]), return_inverse=True)
    if len(values) > _MOST_VALUES:
        raise DataError(
            f"the targets have more than {_MOST_VALUES:,} different values, too many for classes;"
            " set --task regression"
        )
    counts = np.bincount(
        places.ravel(), np.concatenate([counts for _, counts in found]), len(values)
    ).astype(np.int64)
    return (values, counts) if return_counts else values


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


def _with_values(function, program, leaves):
    return function(*evaluated(program, leaves))


def _value(x):
    return x


def _chosen(program, leaves, index):
    return evaluated(program, leaves)[0][index]


def _typed(x, dtype):
    return x.astype(dtype)


def _shaped(x, rest):
    return x.reshape(len(x), *rest)


def _part_of(x, key):
    return np.ascontiguousarray(x[key])


def _taken(x, index):
    return x[index]


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


def _any(x):
    return bool(x.any())


def _all(x):
    return bool(x.all())


def _dot(a, b):
    return a @ b


def _products(a, b):
    return np.einsum("i...,i...->...", a, b)


def _nonzero(x):
    return np.flatnonzero(x)


def _values_of(x):
    values, counts = np.unique(x, return_counts=True)
    return values[: _MOST_VALUES + 1], counts[: _MOST_VALUES + 1]
