"""A feature matrix whose rows are on Dask workers: each worker multiplies its own, and sums of size
D are reduced in a tree.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from operator import getitem
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from rfx.distributed.vectors import RowIndex, RowVector, located
from rfx.operators.binned import BinnedMatrix
from rfx.operators.blocks import drawn
from rfx.operators.cached import cache_rows
from rfx.operators.coded import Codes, coded
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import COMPUTED, READ, DenseMatrix, Matrix
from rfx.operators.scaled import ScaledRows, scaled_rows

if TYPE_CHECKING:
    from rfx.features import FeatureMap

# Maximum bytes of an array that `to_array` fetches.
_FETCHED = 1 << 31
# Features of a subset of rows that are computed and cached in this process: a pass over them is
# faster than a request to the workers, about 30 ms.
_HERE = 1 << 26


@dataclass
class Computed:
    """Features of a map, recomputed at every use from the rows of a part."""

    map: FeatureMap
    scale: float
    cost = COMPUTED

    @property
    def form(self):
        return self.map.n_features, self.map.dtype

    def matrix(self, data):
        return MapMatrix(self.map, data[0], self.scale)

    def columns(self, index):
        return Computed(self.map.select(index), self.scale)


@dataclass
class Cached:
    """Features of a part as an array; index: its selected columns, None for all."""

    form: tuple
    index: np.ndarray | None = None
    cost = READ

    def matrix(self, data):
        return DenseMatrix(data) if self.index is None else DenseMatrix(data).columns(self.index)

    def columns(self, index):
        chosen = np.arange(self.form[0])[index] if self.index is None else self.index[index]
        return Cached((len(chosen), self.form[1]), chosen)


@dataclass
class Coded:
    """Codes of features of a part, of the type `kind`, and their units."""

    form: tuple
    kind: type
    cost = READ / 2

    def matrix(self, data):
        codes, units = data
        return Codes(codes, units, self.form[1]).at(np.arange(len(codes)))


@dataclass
class Binned:
    """Bin numbers of random binning features of a part."""

    starts: np.ndarray
    scale: float
    cost = READ

    @property
    def form(self):
        return int(self.starts[-1]), BinnedMatrix.dtype

    def matrix(self, data):
        return BinnedMatrix(data, self.starts, self.scale)


class PartsMatrix(Matrix):
    """An (N, D) matrix of parts on workers; vectors (N,) or (N, k) are RowVectors.

    data: a future for each part, from which `recipe` computes its features, or a function that
    creates these futures on first use; counts: the rows of each; index: the selected rows of each
    part, a future for each part, None for all; made: the same features computed from rows of
    inputs, if available; most_mb: maximum MiB of it per worker.

    factors: a RowVector by which `scaled` multiplies the rows, None for ones.
    """

    # caching is left to the worker of a part
    computed = False
    rows_here = False

    def __init__(self, workers, data, recipe, counts, index=None, made=None, most_mb=np.inf):
        self.workers, self._data, self.recipe, self.counts, self.index = (
            workers,
            data,
            recipe,
            tuple(counts),
            index,
        )
        self.most_mb, self.factors = most_mb, None
        columns, dtype = recipe.form
        self.shape, self.dtype, self.cost = (sum(counts), columns), np.dtype(dtype), recipe.cost
        self._shared, self.made = (
            None,
            self if isinstance(recipe, Computed) and index is None else made,
        )

    @property
    def data(self):
        if callable(self._data):
            self._data = self._data()
        return self._data

    @property
    def n_grids(self):
        return len(self.recipe.starts) - 1

    @property
    def starts(self):
        return self.recipe.starts

    @property
    def scale(self):
        return self.recipe.scale

    def parts(self):
        raise TypeError("matrices on workers can't be iterated")

    # ------------------------------------------------------------------ rows and columns

    def rows(self, index):
        if not isinstance(index, RowIndex):
            raise TypeError("rows of a matrix on workers need a RowIndex")
        chosen = index.futures
        if self.index is not None:
            chosen = self.workers.each(getitem, self.index, chosen)
        other = PartsMatrix(
            self.workers, self.data, self.recipe, index.counts, chosen, most_mb=self.most_mb
        )
        other._shared = self._shared
        return other if self.factors is None else other.scaled(self.factors[index])

    def columns(self, index):
        return PartsMatrix(
            self.workers, self.data, self.recipe.columns(index), self.counts, self.index
        ).scaled(self.factors)

    def scaled(self, factors) -> PartsMatrix:
        """S Z for S = diag(factors), a RowVector; each worker multiplies its own rows."""
        other = copy(self)
        if callable(self._data):
            # deferred futures are created once
            other._data = lambda: self.data
        other.factors = factors
        return other

    def draw(self, count):
        starts, n = np.concatenate([[0], np.cumsum(self.counts)]).tolist(), self.shape[0]
        futures = self.workers.each(_drawn, starts[:-1], starts[1:], common=(n, count))
        return RowIndex(
            self.workers, futures, self.workers.results(self.workers.each(len, futures))
        )

    def subset(self, count):
        """As for every matrix; few rows are computed here, because their inputs are fetched instead
        of their features.
        """
        if self.factors is not None or self.made is None or count * self.shape[1] > _HERE:
            return super().subset(count)
        chosen, recipe = drawn(self.shape[0], count), self.made.recipe
        part = MapMatrix(
            recipe.map, fetched(self.workers, self.made.data, self.counts, chosen), recipe.scale
        )
        # the workers' codes of these rows, bitwise, so that the solver takes the same steps as on
        # one machine
        return coded(part, self.recipe.kind) if isinstance(self.recipe, Coded) else part, chosen

    def constant(self, value):
        futures = self.workers.each(np.full, self.counts, [float(value)] * len(self.counts))
        return RowVector(self.workers, futures, self.counts)

    def hold(self, max_mb=np.inf):
        """Cached on the workers, if that needs at most `max_mb` and each worker's own limit."""
        if self.cost <= READ or self._share_mb(self.dtype) > min(max_mb, self._bound_mb()):
            return self
        return self._cached(Cached((self.shape[1], self.dtype)), "to_array")

    def hold_rows(self, max_mb, kind=None):
        """Cached on the workers, within their memory, not this process's; kind: int8 or int16 for
        codes (rfx.operators.coded).
        """
        if kind is None or self.cost <= READ:
            return self.hold()
        if self._share_mb(kind) > self._bound_mb():
            return self
        return self._cached(Coded((self.shape[1], self.dtype), kind), _codes, kind)

    def _cached(self, recipe, function, *args):
        """These rows as function(features, *args) on the workers, which compute it on first use.

        Arguments common to all parts are sent at once: a worker that has begun is slow to forward
        them.
        """
        if self.factors is not None:
            return self.scaled(None)._cached(recipe, function, *args).scaled(self.factors)
        self._share(everywhere=True)
        return PartsMatrix(
            self.workers,
            lambda: self._each(function, *args),
            recipe,
            self.counts,
            made=self.made,
        )

    def _share_mb(self, dtype) -> float:
        """MiB of a worker's entries as numbers of that type."""
        return (
            self.size_mb
            * np.dtype(dtype).itemsize
            / self.dtype.itemsize
            / len(self.workers.addresses)
        )

    def _bound_mb(self) -> float:
        return min(self.most_mb, self.workers.memory_mb)

    def by_columns(self, max_mb):
        return self

    def gathered(self):
        return DenseMatrix(self.to_array())

    def to_array(self, out=None):
        if self.size_mb * 2**20 > _FETCHED:
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
        self._share()
        parts = [
            arg.futures if isinstance(arg, RowVector) else [arg] * len(self.counts)
            for arg in (self.factors, *map(self._argument, args))
        ]
        index = self.index or [None] * len(self.counts)
        common = (function, self._shared)
        return self.workers.each(_apply, self.data, index, *parts, common=common)

    def _argument(self, arg):
        """An argument as it is sent."""
        if isinstance(arg, RowVector) and arg.counts != self.counts:
            raise ValueError(
                f"{len(arg):,} values do not match the {self.shape[0]:,} rows on workers"
            )
        return self.workers.shared(arg) if isinstance(arg, np.ndarray) else arg

    def _share(self, everywhere=False):
        if self._shared is None:
            self._shared = self.workers.shared(self.recipe, everywhere)

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

    def gram_update(self, old, change, new, weights, dtype=None):
        return self.total("gram_update", old, change, new, weights, dtype)

    def squares(self, weights=None):
        return self.total("squares", weights)


cache_rows.register(PartsMatrix, lambda Z, max_mb, kind=None: Z.hold_rows(max_mb, kind))
scaled_rows.register(PartsMatrix, PartsMatrix.scaled)


def fetched(workers, data, counts, index) -> np.ndarray:
    """The scaled rows with the numbers `index`, array or CSR, of parts (X, y) given as futures."""
    owners, local = located(index, counts)
    order = np.argsort(owners, kind="stable")
    used = np.unique(owners)
    parts = [data[part] for part in used], [local[owners == part] for part in used]
    rows = workers.results(workers.each(_rows, *parts))
    whole = sp.vstack(rows, format="csr") if any(map(sp.issparse, rows)) else np.concatenate(rows)
    return whole[np.argsort(order, kind="stable")]


# ---------------------------------------------------------------------- on the workers


def _rows(data, index):
    return data[0][index]


def _apply(function, recipe, data, index, factors, *args):
    Z = recipe.matrix(data)
    Z = Z if index is None else Z.rows(index)
    Z = Z if factors is None else ScaledRows(Z, factors)
    return getattr(Z, function)(*args) if isinstance(function, str) else function(Z, *args)


def _drawn(n, count, start, stop):
    return drawn(n, count, start, stop) - start


def _codes(Z, kind):
    store = coded(Z, kind).store
    return store.codes, store.units


def _loss_pass(Z, W, loss, y):
    F, value, G = Z.loss_pass(W, loss, y)
    return F, (value, G)
