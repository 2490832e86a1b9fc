"""Transforms of the inputs that are learnt on the training rows and stored in the model: scaling,
nonlinear functions of columns, metrics and principal components; scaling of the targets; and the
survey of a stream that learns them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import ndtri

from rfx import lazy
from rfx import steps as told
from rfx.counters import random_rows, uniforms
from rfx.data.rows import (
    WIDE,
    Statistics,
    blocks,
    is_text,
    keeps_sparse,
    stacked,
    statistics,
)
from rfx.data.tabular.labelwords import guess_task
from rfx.errors import DataError, UsageError, warn
from rfx.model import Array
from rfx.parallel import add_gram, matmul
from rfx.types import Inputs as Rows

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# What a model file has of a transform, by name: words, numbers and arrays.
Saved: TypeAlias = Mapping[str, Any]
# A number for one target, or an array (k,) for k targets per row.
PerTarget: TypeAlias = float | np.ndarray

# ----------------------------------------------------------------------
# Linear maps of the inputs that are learnt and stored in the model: metrics, and principal
# components; and rows of unit length.

# The forms of a map.
FORMS = ("diagonal", "full")


@dataclass(frozen=True)
class Metric:
    """Scaled rows x become A'x, so that their distance is the square root of (x - y)' M (x - y), M
    = A A'.

    Parameters
    ----------
    map : array, (d,) or (d, d)
        A: the weight of each input, or a matrix.
    """

    map: np.ndarray

    @classmethod
    def of(cls, M: np.ndarray) -> Metric | None:
        """With A the square root of M (d,) or (d, d), divided by its largest weight or eigenvalue.

        None if M is 0, which does not distinguish inputs.
        """
        if M.ndim == 1:
            values, vectors = M, None
        else:
            values, vectors = scipy.linalg.eigh(M, check_finite=False)
        most = float(values.max(initial=0.0))
        if not most > 0:
            return None
        roots = np.sqrt(np.maximum(values, 0.0) / most)
        return cls(roots if vectors is None else (vectors * roots) @ vectors.T)

    @property
    def form(self) -> str:
        """``diagonal`` or ``full``."""
        return FORMS[self.map.ndim - 1]

    def matrix(self) -> np.ndarray:
        """M: (d,) its diagonal if the map is diagonal, else (d, d)."""
        return self.map**2 if self.map.ndim == 1 else self.map @ self.map.T

    def shares(self) -> np.ndarray:
        """(d,) each input's share of the trace of M; they sum to 1."""
        M = self.matrix()
        weights = M if M.ndim == 1 else M.diagonal()
        return np.asarray(weights / weights.sum())

    def steps(self, dtype: DTypeLike) -> told.Steps:
        """The computation steps of `transform` for rows of that type."""
        A = self.map.astype(dtype)
        step = told.scaled(A, len(A)) if A.ndim == 1 else told.linear(A)
        return (step, *told.rounded(dtype))

    def pulled_back(self, M: np.ndarray) -> np.ndarray:
        """Average outer products of gradients with respect to x, from those M, (d,) or (d, d), with
        respect to A'x.
        """
        A = self.map
        return M * A**2 if A.ndim == 1 else A @ M @ A.T

    def transform(self, X: Rows) -> Rows:
        """Mapped rows of X (n, d), in X's type: CSR stays CSR with a diagonal map.

        Raises
        ------
        UsageError
            For CSR rows and a matrix, which would make them dense.
        """
        A = self.map.astype(X.dtype)
        if not sp.issparse(X):
            if A.ndim == 1:
                return X * A
            # float32 sums of a row would depend on the number of rows
            rows = np.ascontiguousarray(X, np.float64)
            return matmul(rows, A.astype(np.float64)).astype(X.dtype)
        if A.ndim > 1:
            raise UsageError(
                "--metric is full, which would make sparse rows dense; use diagonal or none"
            )
        X = X.tocsr()
        values = X.data * A[X.indices]
        return sp.csr_matrix((values, X.indices, X.indptr), shape=X.shape)


# ---------------------------------------------------------------------- principal components


def unit_rows(X: Rows) -> Rows:
    """Rows of X (n, d), array or CSR, divided by their Euclidean length; rows of zeros
    stay. Float32 stays float32.
    """
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    lengths = np.sqrt(squares)
    divisors = np.where(lengths > 0, lengths, 1.0)
    if sp.issparse(X):
        factors = sp.diags_array(1.0 / divisors).astype(X.dtype)
        return factors.dot(X).tocsr()
    return X / divisors[:, None].astype(X.dtype)


class PCA:
    """x -> components' (x - mean), to n_components numbers.

    partial_fit processes rows a few at a time and stores their sum and second moments, d x d
    float64 numbers; `finish` computes `mean` and `components`. centred: about the mean, as
    principal components are defined; the program of Dai et al. (2014) does not centre.
    """

    def __init__(self, n_components: int, centred: bool = True):
        self.n_components, self.centred = int(n_components), centred
        self._count = 0

    def partial_fit(self, X: Rows) -> PCA:
        """Learn from the rows X (n, d), array or CSR, in addition to all earlier ones."""
        if not self._count:
            self._begin(X)
        for start in range(0, X.shape[0], 4096):
            part = X[start : start + 4096]
            part = part.toarray() if sp.issparse(part) else part
            shifted = np.asarray(part, np.float64) - self._shift
            self._sum += shifted.sum(axis=0)
            # on and above the diagonal
            add_gram(shifted, self._moments)
        self._count += X.shape[0]
        return self

    def _begin(self, X: Rows) -> None:
        """Begin the sums with the first rows."""
        d = X.shape[1]
        if self.n_components > d:
            raise UsageError(
                f"--pca is {self.n_components}, but the rows have {d} inputs; use fewer components"
            )
        self._shift = np.zeros(d)
        if self.centred:
            # about the first rows' mean, because moments far from the origin would lose digits
            self._shift = np.asarray(X.mean(axis=0), np.float64).ravel()
        # the sum of the rows and of their outer products, about the shift
        self._sum, self._moments = np.zeros(d), np.zeros((d, d))

    def finish(self) -> PCA:
        """Components of all rows so far: those of largest variance, with the sign fixed by the
        largest entry.
        """
        mean = self._sum / self._count
        covariance = self._moments / self._count
        if self.centred:
            covariance -= np.outer(mean, mean)
        _, vectors = np.linalg.eigh(covariance, UPLO="U")
        components = vectors[:, ::-1][:, : self.n_components]
        places = np.abs(components).argmax(axis=0)
        largest = components[places, np.arange(components.shape[1])]
        signs = np.where(largest < 0, -1.0, 1.0)
        self.components = np.ascontiguousarray(components * signs)
        self.mean = self._shift + mean if self.centred else np.zeros(len(mean))
        return self

    def transform(self, X: Rows) -> np.ndarray:
        """(n, n_components) in the dtype of X (n, d), array or CSR."""
        components = self.components.astype(X.dtype)
        shift = (self.mean @ self.components).astype(X.dtype)
        return np.asarray(X @ components) - shift

    def steps(self, dtype: DTypeLike) -> told.Steps:
        """The computation steps of `transform` for dense rows of that type."""
        shift = (self.mean @ self.components).astype(dtype)
        step = told.linear(self.components.astype(dtype), -shift)
        return step, *told.rounded(dtype)

    @classmethod
    def from_dict(cls, saved: Saved) -> PCA:
        """From {"centred": bool, "mean": (d,), "components": (d, n_components)}."""
        components = saved["components"]
        made = cls(components.shape[1], bool(saved["centred"]))
        made.mean, made.components = saved["mean"], components
        return made


# ----------------------------------------------------------------------
# Nonlinear transforms of single columns: Yeo-Johnson power, soft clipping about the median, ranks
# to the normal distribution.
#
# Each is learnt from the sorted values of a column, so that the order of the rows does not matter,
# and is stored as plain arrays.

# Maximum rows to learn a transform from: fewer for many columns, but never fewer than the last
# number.
MOST_ROWS, MOST_NUMBERS, FEWEST_ROWS = 50_000, 1 << 25, 2_000
# Maximum number of quantiles of a column, and the limits of ranks near 0 and 1, as in
# scikit-learn's QuantileTransformer.
QUANTILES, EDGE = 1000, 1e-7
# Bounds for Yeo-Johnson's lambda and for 2 - lambda.
LOWEST, HIGHEST = -8.0, 10.0
# The interquartile range of the normal distribution, in standard deviations.
_QUARTILES = 2 * ndtri(0.75)
# Maximum distance of a column's values from the median, in units: their powers are finite.
_FARTHEST = 1e15
# Where the soft clip bends: its values stay within -3 .. 3.
_CLIP = 3.0


def sampled(n: int, d: int, seed: int = 0) -> np.ndarray | slice:
    """Which of n rows of d columns to learn from: all, or random ones."""
    count = min(MOST_ROWS, max(FEWEST_ROWS, MOST_NUMBERS // max(d, 1)))
    return slice(None) if n <= count else random_rows(n, count, seed=seed)


def cannot_scale(column: int) -> DataError:
    """The error for a column, numbered from 0, that can't be scaled."""
    return DataError(
        f"column {column + 1} of the training rows can't be scaled: its values are not finite, or"
        " their range exceeds float64; correct or remove it"
    )


@dataclass(frozen=True)
class Sorted:
    """The ascending values (n,) of one column, and their weights (n,), None for ones.

    Weights count as repetitions: a row of weight 2 counts as two of weight 1.
    """

    values: np.ndarray
    weights: np.ndarray | None = None

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray | None = None) -> Sorted:
        if weights is None:
            return cls(np.sort(values))
        order = np.lexsort((weights, values))
        return cls(values[order], weights[order])

    @property
    def spread(self) -> float:
        """The largest value minus the smallest; nan or infinity if a value is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.values[-1] - self.values[0])

    @property
    def constant(self) -> bool:
        return not self.spread > np.finfo(np.float64).tiny

    @property
    def two_valued(self) -> bool:
        return int(np.count_nonzero(np.diff(self.values))) == 1

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """The quantiles at the fractions, from 0 to 1, linear between neighbours like numpy's.

        With weights they are those of the repeated rows, where the smallest weight is one row.
        """
        values = self.values
        if self.weights is None:
            places = np.arange(len(values))
        else:
            # flat over the repetitions of each row, with a slope to the next
            least = max(self.weights.min(), 1e-12 * self.weights.max())
            counts = self.weights / least
            ends = np.cumsum(counts)
            limits = np.stack([ends - counts, ends - 1.0], axis=1)
            places = np.maximum.accumulate(limits.ravel())
            values = np.repeat(values, 2)
        wanted = shares * places[-1]
        # a rank within rounding error of a row hits it, which matters for ties
        whole = np.rint(wanted)
        is_whole = np.abs(wanted - whole) < 1e-9 * (1 + whole)
        wanted = np.where(is_whole, whole, wanted)
        at_ranks = np.interp(wanted, places, values)
        # rounding must not make one exceed the next
        return np.maximum.accumulate(np.minimum(at_ranks, values[-1]))

    def moments(self, y: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of numbers (n,), one for each of the values."""
        if self.weights is None:
            mean = y.mean()
            variance = ((y - mean) ** 2).mean()
        else:
            share = self.weights / self.weights.sum()
            mean = (share * y).sum()
            variance = (share * (y - mean) ** 2).sum()
        return float(mean), float(np.sqrt(variance))

    def middle(self) -> tuple[float, float]:
        """The median, and the interquartile range in standard deviations of a normal distribution.

        If the quartiles coincide, as when most values are equal, the second is the standard
        deviation.
        """
        low, centre, high = self.quantiles(np.array([0.25, 0.5, 0.75]))
        farthest = max(self.values[-1] - centre, centre - self.values[0])
        unit = (high - low) / _QUARTILES
        if unit == 0:
            # relative to the farthest value, whose square may overflow
            _, deviation = self.moments((self.values - centre) / farthest)
            unit = farthest * deviation
        return float(centre), float(max(unit, farthest / _FARTHEST))


# What a column adds to each array of a transform: a number, or an array.
Entries: TypeAlias = tuple[float | np.ndarray, ...]


class ColumnTransform(ABC):
    """A function of each column, defined by arrays; a subclass is a frozen dataclass of them.

    Attributes
    ----------
    forms : dict
        The form of each array in a model file.
    """

    forms: ClassVar[dict[str, Array]]

    @classmethod
    def learn(
        cls, X: Rows, weights: np.ndarray | None = None
    ) -> tuple[ColumnTransform, np.ndarray, np.ndarray]:
        """Learn from rows X (n, d), dense or CSR, and their weights (n,) or None.

        Returns
        -------
        (transform, shift (d,), scale (d,))
            (transform(X) - shift) * scale are the scaled rows; scale is 0 of constant columns.

        Raises
        ------
        DataError
            If values are not finite, or their range is too large.
        """
        learnt = []
        for number, values in enumerate(_columns(X)):
            column = Sorted.of(values, weights)
            if not np.isfinite(column.spread):
                raise cannot_scale(number)
            entries, shift, scale = cls._of(column)
            learnt.append((*entries, shift, scale))
        *arrays, shifts, scales = (np.array(values, np.float64) for values in zip(*learnt))
        return cls(*arrays), shifts, scales

    @classmethod
    @abstractmethod
    def _of(cls, column: Sorted) -> tuple[Entries, float, float]:
        """(the column's entries of the arrays, its shift, its scale)."""

    @abstractmethod
    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The transformed rows of X (n, d), dense float64."""

    @abstractmethod
    def steps(self) -> told.Steps:
        """The computation steps of a call."""

    @classmethod
    def of_arrays(cls, saved: Saved) -> ColumnTransform:
        """Create from the arrays of `forms`; KeyError if one is missing."""
        return cls(**{name: np.asarray(saved[name], np.float64) for name in cls.forms})


def _columns(X: Rows) -> Iterator[np.ndarray]:
    """The columns of X (n, d), dense or CSR, one by one in float64."""
    is_sparse = sp.issparse(X)
    X = X.tocsc() if is_sparse else X
    for j in range(X.shape[1]):
        column = X[:, [j]].toarray().ravel() if is_sparse else X[:, j]
        yield np.asarray(column, np.float64)


@dataclass(frozen=True)
class Power(ColumnTransform):
    """Yeo and Johnson's power of z = (x - centre) / unit (Biometrika 87, 2000, page 954).

    ((1 + z)^lam - 1) / lam for z >= 0, -((1 - z)^(2 - lam) - 1) / (2 - lam) below, and their limits
    if the divisor is 0. centre and unit are the median and the spread of `Sorted.middle`, so that
    the units of a column do not matter; lam maximises the likelihood of a normal distribution
    within -8 .. 10. A column with two values has lam = 1, which changes nothing.
    """

    centre: np.ndarray  # (d,)
    unit: np.ndarray  # (d,)
    lam: np.ndarray  # (d,)
    forms: ClassVar = {name: Array("f", "inputs") for name in ("centre", "unit", "lam")}

    @classmethod
    def _of(cls, column: Sorted) -> tuple[Entries, float, float]:
        if column.constant:
            return (column.values[0], 1.0, 1.0), 0.0, 0.0
        centre, unit = column.middle()
        z = (column.values - centre) / unit
        lam = 1.0 if column.two_valued else _likeliest(column, z)
        powers = _yeo_johnson(np.log1p(np.abs(z)), z < 0, lam)
        mean, deviation = column.moments(powers)
        return (centre, unit, lam), mean, 1.0 / deviation

    def __call__(self, X: np.ndarray) -> np.ndarray:
        z = (X - self.centre) / self.unit
        size = np.log1p(np.abs(z))
        return _yeo_johnson(size, z < 0, self.lam)

    def steps(self) -> told.Steps:
        return told.Scale(self.centre, 1 / self.unit), told.YeoJohnson(self.lam)


def _yeo_johnson(size: np.ndarray, below: np.ndarray, lam: float | np.ndarray) -> np.ndarray:
    """Yeo-Johnson of numbers z from log(1 + |z|) and whether they are below 0."""
    power = np.where(below, 2.0 - lam, lam)
    powers = np.divide(np.expm1(power * size), power, out=size.copy(), where=power != 0)
    return np.where(below, -powers, powers)


def _likeliest(column: Sorted, z: np.ndarray) -> float:
    """The maximum-likelihood lambda of the column's numbers z (n,)."""
    size, below = np.log1p(np.abs(z)), z < 0
    tilt, _ = column.moments(np.where(below, -size, size))

    def cost(lam: float) -> float:
        """Minus the log-likelihood per row, up to a constant independent of lambda; convex."""
        _, deviation = column.moments(_yeo_johnson(size, below, lam))
        return float(np.log(deviation) - (lam - 1.0) * tilt)

    best = lazy.optimize.minimize_scalar(
        cost, bounds=(LOWEST, HIGHEST), method="bounded", options={"xatol": 1e-6}
    )
    return float(best.x)


@dataclass(frozen=True)
class Robust(ColumnTransform):
    """z / sqrt(1 + (z / 3)^2) of z = (x - centre) / unit: close to z near the median, and within -3
    .. 3 far from it.

    centre and unit are the median and the interquartile range of `Sorted.middle`: the latter
    divided by 1.35, so that z of normally distributed values has variance 1. If the quartiles
    coincide, as when most values are equal, unit is the standard deviation.
    """

    centre: np.ndarray  # (d,)
    unit: np.ndarray  # (d,)
    forms: ClassVar = {name: Array("f", "inputs") for name in ("centre", "unit")}

    @classmethod
    def _of(cls, column: Sorted) -> tuple[Entries, float, float]:
        if column.constant:
            return (column.values[0], 1.0), 0.0, 0.0
        return column.middle(), 0.0, 1.0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        z = (X - self.centre) / self.unit
        return z / np.hypot(1.0, z / _CLIP)

    def steps(self) -> told.Steps:
        return told.Scale(self.centre, 1 / self.unit), told.Function("soft_clip")


@dataclass(frozen=True)
class Quantile(ColumnTransform):
    """The normal quantile at the rank of x among at most 1,000 quantiles of its column, as in
    scikit-learn's QuantileTransformer.

    Ranks are linear between quantiles; a value shared by several quantiles has the middle of their
    ranks. The smallest quantile and values below it have rank 0, the largest and values above it
    rank 1, and ranks are limited to 1e-7 from either: values stay within -5.2 .. 5.2. A column with
    two values, which would become these limits, is standardised instead.
    """

    quantiles: np.ndarray  # (d, quantiles)
    forms: ClassVar = {"quantiles": Array("f", "inputs quantiles")}

    @classmethod
    def _of(cls, column: Sorted) -> tuple[Entries, float, float]:
        shares = np.linspace(0.0, 1.0, min(QUANTILES, len(column.values)))
        quantiles = column.quantiles(shares)
        if column.constant:
            return (quantiles,), 0.0, 0.0
        if not column.two_valued:
            return (quantiles,), 0.0, 1.0
        normal = _normal(column.values, quantiles)
        mean, deviation = column.moments(normal)
        return (quantiles,), mean, 1.0 / deviation

    def __call__(self, X: np.ndarray) -> np.ndarray:
        out = np.empty(X.shape)
        for j, quantiles in enumerate(self.quantiles):
            out[:, j] = _normal(X[:, j], quantiles)
        return out

    def steps(self) -> told.Steps:
        ranks = told.Interpolate.of([_ranks(quantiles) for quantiles in self.quantiles])
        n_columns = len(self.quantiles)
        clip = told.Clip(np.full(n_columns, EDGE), np.full(n_columns, 1.0 - EDGE))
        return ranks, clip, told.Function("normal_quantile")


def _normal(x: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """The normal quantiles at the ranks of numbers x (n,)."""
    last = len(quantiles) - 1
    # the nearest quantile from above, and from below; for a value equal to quantiles, the first and
    # last of them
    above = np.searchsorted(quantiles, x, "left")
    below = np.searchsorted(quantiles, x, "right") - 1
    high, low = np.minimum(above, last), np.maximum(below, 0)
    gap = quantiles[high] - quantiles[low]
    part = np.full(x.shape, 0.5)
    np.divide(x - quantiles[low], gap, out=part, where=gap > 0)
    rank = (low + part * (high - low)) / max(last, 1)
    rank = np.where(x >= quantiles[-1], 1.0, rank)
    rank = np.where(x <= quantiles[0], 0.0, rank)
    return ndtri(np.clip(rank, EDGE, 1.0 - EDGE))


def _ranks(quantiles: np.ndarray) -> tuple[np.ndarray, ...]:
    """The ranks used by `_normal` as a curve: its knots, and its values just before, at, and just
    after each of them.
    """
    last = max(len(quantiles) - 1, 1)
    knots = np.unique(quantiles)
    first = np.searchsorted(quantiles, knots, "left") / last
    behind = (np.searchsorted(quantiles, knots, "right") - 1) / last
    at = (first + behind) / 2
    # the largest is handled after the smallest, and equals it if there is only one
    at[-1], at[0] = 1.0, 0.0
    return knots, first, at, behind


TRANSFORMS: dict[str, type[ColumnTransform]] = {
    "power": Power,
    "robust": Robust,
    "quantile": Quantile,
}


# ----------------------------------------------------------------------
# Scaling of inputs and targets: learnt on the training rows, stored in the model, applied in
# prediction.

# The scalings of inputs with their meaning.
KINDS = {
    "none": "unchanged",
    "minmax01": "to [0, 1]",
    "minmax11": "to [-1, 1]",
    "standard": "to mean 0 and variance 1",
    "power": "Yeo-Johnson power transform, then standard",
    "robust": "by median and quartiles, softly clipped",
    "quantile": "by ranks, to the normal distribution",
}
# The candidates when the scaling is chosen.
TRIED = ("standard", "power", "robust", "quantile")
TARGET_KINDS = {
    "none": "unchanged: the methods have no intercept",
    "minmax01": "to [0, 1]; RMSE, lambda and epsilon are in this unit",
    "mean": "to mean 0",
    "standard": "to mean 0 and standard deviation 1, the unit of RMSE, lambda and epsilon",
}
LOG = "log"
TARGET_TRANSFORMS = {
    "none": "unchanged",
    LOG: "the logarithm of positive targets",
    "auto": "the one with the smaller leave-one-out error of the targets themselves",
}
# Targets are divided by a power of two beyond this exponent: 1e15, whose square float32 holds.
_EXPONENT = 50


def as_floats(y: Any) -> Any:
    """Numbers in float64: an array, but data on workers stays there."""
    if isinstance(y, np.ndarray) or not hasattr(y, "__array_function__"):
        return np.asarray(y, np.float64)
    return y.astype(np.float64)


def _reciprocal(spread: np.ndarray) -> np.ndarray:
    """1 / spread, and 0 for a constant column (or one with a spread too small to divide by)."""
    usable = spread > np.finfo(np.float64).tiny
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=usable)


def _check_values(X: Rows, out: Rows) -> None:
    """Raise an error if a scaled value `out` (dense, or CSR like X) of the rows X is not finite."""
    finite = np.isfinite(out.data if sp.issparse(out) else out)
    if finite.all():
        return
    if sp.issparse(out):
        entries = out.tocoo()
        place = np.argmin(finite)
        row, column = entries.row[place], entries.col[place]
    else:
        row, column = np.argwhere(~finite)[0]
    value = float(X[row, column])
    raise DataError(
        f"the value of row {row + 1}, column {column + 1} is {value:g}, which is not finite in"
        f" {out.dtype} after scaling; correct it, or use another --scaling or --dtype"
    )


@dataclass
class Scaler:
    """x -> (x - shift) * scale for each column, after a column transform for some kinds.

    `minmax01` and `minmax11` scale the training rows to [0, 1] and [-1, 1], `standard` to mean 0
    and variance 1, `none` changes nothing. A column that is constant on the training rows becomes
    0, also in prediction. Values outside the training range are extrapolated linearly, not clipped.

    `power`, `robust` and `quantile` first transform each column (`Power`, `Robust` and `Quantile`
    of `rfx.data.transforms`). They are learnt from at most 50,000 random rows, whose
    weights count as repetitions.

    If the training rows are wide and mostly zeros (`keeps_sparse`), nothing is shifted: `minmax01`
    and `minmax11` divide each column by its largest magnitude, `standard` by its standard
    deviation, and rows stay CSR. For nonnegative columns `minmax01` is unchanged; if the result
    differs, a warning is logged. Column transforms, which do not preserve zeros, raise an error for
    such rows.

    A learnt metric, if any, maps the scaled rows (`rfx.data.transforms`).
    """

    kind: str
    shift: np.ndarray  # (n_inputs,)
    scale: np.ndarray  # (n_inputs,)
    columns: ColumnTransform | None = None
    metric: Metric | None = None

    @property
    def n_inputs(self) -> int:
        return len(self.shift)

    @classmethod
    def fit(
        cls, X: Rows, kind: str = "none", weights: np.ndarray | None = None, seed: int = 0
    ) -> Scaler:
        """Learn from the training rows X (n, d), dense, csr or in parts; weights (n,) affect
        `standard` and column transforms. seed: of the rows for these.

        Raises UsageError for a column transform of wide sparse rows.
        """
        if kind in TRANSFORMS:
            return cls._transforming(kind, X, weights, seed)
        rows = None if kind == "none" else statistics(X, kind == "standard", weights)
        return cls.of_statistics(kind, rows, X.shape[1])

    @classmethod
    def _transforming(cls, kind, X, weights, seed):
        """`fit` for a column transform."""
        d = X.shape[1]
        if keeps_sparse(X):
            raise UsageError(
                f"--scaling is {kind}, but the rows are sparse, with {d:,} columns, and zeros would"
                " become nonzero; use standard, minmax01 or none"
            )
        if weights is not None and not np.all(weights > 0):
            X = X[np.flatnonzero(weights)]
            weights = weights[weights > 0]
        chosen = sampled(X.shape[0], d, seed)
        chosen_weights = None if weights is None else weights[chosen]
        learnt, shift, scale = TRANSFORMS[kind].learn(X[chosen], chosen_weights)
        return cls(kind, shift, scale, learnt)

    @classmethod
    def of_statistics(cls, kind: str, rows: Statistics | None, width: int = 0) -> Scaler:
        """`fit` for a kind without a column transform, from the Statistics of the rows; None, and
        the number of columns, for `none`.

        Raises DataError if the range or the deviation of a column is not finite.
        """
        if kind == "none" or rows is None:
            width = width if rows is None else rows.width
            return cls(kind, np.zeros(width), np.ones(width))
        with np.errstate(over="ignore"):  # refused below
            low, spread = rows.low, rows.high - rows.low
        if kind == "standard":
            assert rows.mean is not None
            low, spread = rows.mean, rows.deviations()
        bad = np.flatnonzero(~np.isfinite(low + spread))
        if len(bad):
            raise cannot_scale(bad[0])
        if is_text(rows.count, rows.width, rows.entries):
            return cls._unshifted(kind, low, spread)
        unit = _reciprocal(spread)
        if kind == "minmax11":
            return cls(kind, low + spread / 2, 2 * unit)
        return cls(kind, low, unit)

    @classmethod
    def _unshifted(cls, kind: str, low: np.ndarray, spread: np.ndarray) -> Scaler:
        """`of_statistics` for wide and sparse rows, whose zeros stay zeros."""
        varies = _reciprocal(spread) > 0
        if kind != "minmax01" or (low[varies] != 0).any():
            what = "standard deviation" if kind == "standard" else "largest magnitude"
            warn(
                f"the rows are sparse, with {len(low):,} columns: each is divided by its"
                f" {what} but not shifted, so that zeros stay zeros, unlike {kind} on dense"
                " rows; --scaling none leaves them unchanged"
            )
        size = spread
        if kind != "standard":
            largest = np.maximum(np.abs(low), np.abs(low + spread))
            size = np.where(varies, largest, 0.0)
        return cls(kind, np.zeros(len(low)), _reciprocal(size))

    @singledispatchmethod
    def transform(self, X: Rows, dtype: DTypeLike = np.float64) -> Rows:
        """Scaled copy of X (n, n_inputs): dense, or CSR if X is sparse and nothing is shifted
        (`none`, or wide rows).

        A sparse X with fewer columns is padded with zeros, as LIBSVM files may omit them. DataError
        for any other width, and for a value that is not finite in dtype, with its row and column
        (from 1).
        """
        X = self._fitted_width(X)
        with np.errstate(over="ignore", invalid="ignore"):
            out = X.astype(dtype, copy=False) if self.kind == "none" else self._scaled(X, dtype)
        _check_values(X, out)
        if self.metric is None:
            return out
        if self.metric.form == "full" and X.shape[1] <= WIDE and sp.issparse(out):
            out = out.toarray()
        return self.metric.transform(out)

    def steps(self, dtype: DTypeLike) -> told.Steps:
        """The computation steps of `transform` for dense rows."""
        made: told.Steps = () if self.columns is None else self.columns.steps()
        if self.kind != "none":
            made = (*made, told.Scale(self.shift, self.scale))
        made = made + told.rounded(dtype)
        return made if self.metric is None else made + self.metric.steps(dtype)

    def _scaled(self, X, dtype):
        unshifted = self.columns is None and not (self.shift * self.scale).any()
        if sp.issparse(X) and X.shape[1] > WIDE and unshifted:
            X = X.tocsr()
            values = (X.data * self.scale[X.indices]).astype(dtype)
            return sp.csr_matrix((values, X.indices, X.indptr), shape=X.shape)
        out = np.empty(X.shape, dtype)
        for start, block in blocks(X):
            if self.columns is not None:
                # nan if a value is not finite, because a transform may map infinity to a number
                block = np.where(np.isfinite(block), self.columns(block), np.nan)
            shifted, stop = np.subtract(block, self.shift), start + len(block)
            np.multiply(shifted, self.scale, out=out[start:stop], casting="same_kind")
        return out

    def _fitted_width(self, X):
        n, d = X.shape
        if d == self.n_inputs:
            return X
        if d > self.n_inputs or not sp.issparse(X):
            raise DataError(
                f"the rows have {d} features, but the model was trained on {self.n_inputs}"
            )
        X = X.tocsr()
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(n, self.n_inputs))

    def to_dict(self) -> dict:
        """{"kind": str, "metric": str, "shift": array, "scale": array} and the arrays of the column
        transform and the metric, for the model file.
        """
        form = "none" if self.metric is None else self.metric.form
        saved = {"kind": self.kind, "metric": form, "shift": self.shift, "scale": self.scale}
        if self.columns is not None:
            saved |= vars(self.columns)
        if self.metric is not None:
            saved[f"metric_{form}"] = self.metric.map
        return saved

    @classmethod
    def from_dict(cls, saved: Saved) -> Scaler:
        """The scaling from the result of to_dict; KeyError if an array is missing."""
        kind, form = str(saved["kind"]), saved.get("metric", "none")
        shift = np.asarray(saved["shift"], np.float64)
        scale = np.asarray(saved["scale"], np.float64)
        learnt = TRANSFORMS[kind].of_arrays(saved) if kind in TRANSFORMS else None
        if form == "none":
            return cls(kind, shift, scale, learnt)
        metric = Metric(np.asarray(saved[f"metric_{form}"], float))
        return cls(kind, shift, scale, learnt, metric)


# The arrays of `Scaler.to_dict` in model files and checkpoints, by their names there.
ARRAYS = {
    "scaler_shift": Array("f", "inputs"),
    "scaler_scale": Array("f", "inputs"),
    "scaler_metric_diagonal": Array("f", "inputs"),
    "scaler_metric_full": Array("f", "inputs inputs"),
} | {
    f"scaler_{name}": form
    for transform in TRANSFORMS.values()
    for name, form in transform.forms.items()
}


def plain(value: PerTarget) -> PerTarget:
    """A float, or an array (k,) unchanged: one number for one target, one for each of several."""
    return np.asarray(value, np.float64) if np.ndim(value) else float(value)


@dataclass
class TargetScaler:
    """y -> (y - shift) / scale for regression targets; `minmax01` scales the training targets to
    [0, 1], `mean` to mean 0, `standard` to mean 0 and standard deviation 1.

    The scale of `mean` is 1, but a power of two near the largest target for targets whose squares
    are not in the range of float32, in which features and kernel values are stored.

    shift, scale: numbers, or arrays (k,) for k targets per row.
    """

    kind: str = "none"
    shift: PerTarget = 0.0
    scale: PerTarget = 1.0

    @classmethod
    def fit(
        cls, y: np.ndarray, kind: str = "none", weights: np.ndarray | None = None
    ) -> TargetScaler:
        """Learn from the training targets y (n,) or (n, k); weights (n,) affect only mean and
        deviation. Targets that are all equal get scale 1.
        """
        mean = np.average(y, axis=0, weights=weights)
        low, high = np.min(y, axis=0), np.max(y, axis=0)
        deviation: PerTarget = 1.0
        if kind == "standard":
            # targets near 1e200 have no finite squares
            spread = np.where(high > low, high - low, 1.0)
            squares = np.square((y - mean) / spread)
            variance = np.average(squares, axis=0, weights=weights)
            deviation = spread * np.sqrt(variance)
        return cls.of(kind, low, high, mean, deviation)

    @classmethod
    def of(
        cls, kind: str, low: PerTarget, high: PerTarget, mean: PerTarget, deviation: PerTarget
    ) -> TargetScaler:
        """`fit` from the smallest target, the largest, the mean, and the standard deviation."""
        if kind == "none":
            return cls()
        if kind == "standard":
            shift, scale = mean, np.where(high > low, deviation, 1.0)
        elif kind == "mean":
            _, exponent = np.frexp(np.maximum(high - mean, mean - low))
            far = np.abs(exponent) > _EXPONENT
            shift, scale = mean, np.ldexp(1.0, np.where(far, exponent, 0))
        else:
            shift, scale = low, np.where(high > low, high - low, 1.0)
        return cls(kind, plain(shift), plain(scale))

    @property
    def unit(self) -> PerTarget:
        """The unit of the RMSE: the range for `minmax01`, the standard deviation for `standard`,
        otherwise that of the targets.
        """
        return self.scale if self.kind in ("minmax01", "standard") else 1.0

    def in_units(self, differences: np.ndarray) -> np.ndarray:
        """Differences of scaled targets in the unit of the RMSE."""
        return differences * (self.scale / self.unit)

    def differences(self, decision: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Decision values less targets, for `in_units`."""
        return decision - self.transform(y)

    def transform(self, y: np.ndarray) -> np.ndarray:
        y = as_floats(y)
        return y if self.kind == "none" else (y - self.shift) / self.scale

    def inverse(self, y: np.ndarray) -> np.ndarray:
        """Convert back to the original units."""
        y = np.asarray(y, np.float64)
        return y if self.kind == "none" else y * self.scale + self.shift

    def even(self, y: np.ndarray) -> np.ndarray:
        """Targets on the scale whose errors are the most even: their own."""
        return y

    def even_prediction(self, decision: np.ndarray) -> np.ndarray:
        """Decision values on that scale."""
        return self.inverse(decision)

    def uneven(self, values: np.ndarray) -> np.ndarray:
        """Targets from that scale."""
        return values

    def steps(self, n_targets: int) -> told.Steps:
        """The computation steps of `inverse` for a row of so many targets."""
        if self.kind == "none":
            return ()
        scale = np.broadcast_to(np.asarray(self.scale, np.float64), (n_targets,))
        step = told.linear(np.diag(scale), self.shift)
        return (step,)

    def to_dict(self) -> dict:
        return {
            "kind": self.kind,
            "shift": np.asarray(self.shift).tolist(),
            "scale": np.asarray(self.scale).tolist(),
        }

    @classmethod
    def from_dict(cls, saved: Saved, n_outputs: int) -> TargetScaler:
        """The scaling from the result of to_dict, for that many targets per row; DataError if it is
        for another number.
        """
        kind = str(saved["kind"])
        shift, scale = plain(saved["shift"]), plain(saved["scale"])
        if not {np.shape(shift), np.shape(scale)} <= {(), (n_outputs,)}:
            raise DataError(f"its targets' scaling is not for {n_outputs} targets")
        if saved.get("transform") == LOG:
            return LogTargetScaler(kind, shift, scale, float(saved["factor"]))
        return cls(kind, shift, scale)


@dataclass
class LogTargetScaler(TargetScaler):
    """Scales the logarithms of positive targets. Errors are those of the targets themselves.

    factor: of all predictions, so that they are means. The exponential of the mean logarithm is
    about the median, 3 % to 60 % below the mean on skewed sets.
    """

    factor: float = 1.0

    @classmethod
    def fit(
        cls, y: np.ndarray, kind: str = "none", weights: np.ndarray | None = None
    ) -> TargetScaler:
        """As `TargetScaler.fit`; raises DataError for a target that is not positive."""
        if not np.all(y > 0):
            row = int(np.argmin(y > 0))
            raise DataError(
                f"--target-transform is log, but the target of row {row + 1} is {y[row]:g}; use"
                " none, or targets above 0"
            )
        return super().fit(np.log(y), kind, weights)

    @property
    def unit(self) -> PerTarget:
        return 1.0

    def in_units(self, differences: np.ndarray) -> np.ndarray:
        return differences

    def differences(self, decision: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.inverse(decision) - y

    def transform(self, y: np.ndarray) -> np.ndarray:
        return super().transform(np.log(np.asarray(y) / self.factor))

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return self.factor * np.exp(super().inverse(y))

    def of_mean(self, decision: np.ndarray, y: np.ndarray) -> LogTargetScaler:
        """The scaling with the factor of least squared error for decision values (n,) of rows left
        out and their targets (n,).
        """
        median = np.exp(super().inverse(decision))
        factor = np.sum(median * y) / np.sum(median**2)
        return replace(self, factor=float(factor))

    def even(self, y: np.ndarray) -> np.ndarray:
        return np.log(y)

    def even_prediction(self, decision: np.ndarray) -> np.ndarray:
        return super().inverse(decision)

    def uneven(self, values: np.ndarray) -> np.ndarray:
        return np.exp(values)

    def steps(self, n_targets: int) -> told.Steps:
        last = told.Function("exp"), told.scaled(self.factor, n_targets)
        return (*super().steps(n_targets), *last)

    def to_dict(self) -> dict:
        return super().to_dict() | {"transform": LOG, "factor": self.factor}


# ----------------------------------------------------------------------
# All that is learnt about rows before training, in passes over a stream with bounded memory.

# Rows of the sample, rows per chunk.
SAMPLE, CHUNK = 4096, 8192
# Rows of the separate sample for learning column transforms.
TRANSFORMED = 10_000
_DRAW = 91


@dataclass
class Inputs:
    """Prepares rows for a model: scaling, unit length if requested, then principal components."""

    scaler: Scaler
    unit: bool = False
    pca: PCA | None = None

    def transform(self, X: Rows, dtype: DTypeLike = np.float32) -> Rows:
        """Rows X (n, d), array or CSR, in dtype: CSR if nothing makes them dense, else an array."""
        scaled = self.scaler.transform(X, dtype=dtype)
        return self.after_scaling(scaled)

    def after_scaling(self, X: Rows) -> Rows:
        """The remaining steps, for scaled rows."""
        X = unit_rows(X) if self.unit else X
        return X if self.pca is None else self.pca.transform(X)

    def steps(self, dtype: DTypeLike) -> told.Steps:
        """The computation steps of `after_scaling` for dense rows of that type."""
        first: told.Steps = (told.Unit(), *told.rounded(dtype)) if self.unit else ()
        return first if self.pca is None else first + self.pca.steps(dtype)


class Survey:
    """n_rows, n_inputs, the targets' labels or range, Inputs, and a random sample of the prepared
    rows (X, y) with their numbers `index`.

    y: (n,) or, for several targets per row, (n, k). labels: the distinct targets, ascending, None
    for more than a thousand or for several targets per row; n_targets: targets per row.
    """

    def __init__(
        self,
        chunks: Callable[[], Iterator[tuple[Rows, np.ndarray]]],
        *,
        scaling: str = "none",
        unit: bool = False,
        pca: int | None = None,
        centred: bool = True,
        dtype: DTypeLike = np.float32,
        seed: int = 0,
        sample: int = SAMPLE,
        name: str | None = None,
    ) -> None:
        """chunks: a function that returns an iterator of (X, y) over all rows; called once or
        twice. name: of the rows, for messages.

        A scaling with column transforms is learnt from TRANSFORMED rows, drawn by the seed
        independently of the chunks, or from all rows if there are fewer.
        """
        # of the targets: the smallest, the largest, and the sum
        self._y: tuple[PerTarget, PerTarget, PerTarget] = np.inf, -np.inf, 0.0
        seen: Statistics | None = None
        kept: tuple[Rows, np.ndarray, np.ndarray] | None = None
        most = max(sample, TRANSFORMED) if scaling in TRANSFORMS else sample
        keys, at = np.zeros(0), 0
        learner = PCA(pca, centred) if pca else None
        for X, y in _cut(chunks()):
            part = Statistics.of(X, scaling == "standard", y=y)
            seen = part if seen is None else seen + part
            self._add_targets(y)
            part_keys = uniforms(seed, _DRAW, at, seen.count, 1)[:, 0]
            new = X, y, np.arange(at, seen.count)
            kept, keys = _smallest(kept, keys, new, part_keys, most)
            at = seen.count
            if learner and scaling == "none":
                plain = Inputs(Scaler.of_statistics("none", part), unit)
                learner.partial_fit(plain.transform(X, dtype))
        if seen is None or kept is None:
            what = "there are" if name is None else f"{name} has"
            raise DataError(f"{what} no rows to learn from")
        self.n_rows, self.n_inputs = seen.count, seen.width
        self.labels = None if seen.labels is None else np.array(sorted(seen.labels))
        X_sample, y_sample, index = kept
        self.n_targets = y_sample.shape[1] if y_sample.ndim == 2 else 1
        self.inputs = Inputs(_scaler_of_sample(scaling, X_sample, seen), unit)
        if learner:
            if scaling != "none":
                for X, _ in _cut(chunks()):
                    learner.partial_fit(self.inputs.transform(X, dtype))
            self.inputs.pca = learner.finish()
        self.X = self.inputs.transform(X_sample[:sample], dtype)
        self.y, self.index = y_sample[:sample], index[:sample]

    def _add_targets(self, y: np.ndarray) -> None:
        low, high, total = self._y
        low = np.minimum(low, y.min(axis=0))
        high = np.maximum(high, y.max(axis=0))
        self._y = low, high, total + y.sum(axis=0)

    def guess_task(self) -> str:
        """The task that the targets show, by those of the sample."""
        return "regression" if self.labels is None else guess_task(self.y)

    def target_scaler(self, kind: str) -> TargetScaler:
        """The scaling of regression targets that TargetScaler.fit would learn; deviations are of
        the sample.
        """
        low, high, total = self._y
        deviation = TargetScaler.fit(self.y, "standard").scale
        return TargetScaler.of(kind, low, high, total / self.n_rows, deviation)


def _scaler_of_sample(scaling: str, X: Rows, seen: Statistics) -> Scaler:
    """The scaler of all rows, or of the sample X if it has column transforms."""
    if scaling in TRANSFORMS:
        return Scaler.fit(X[:TRANSFORMED], scaling)
    return Scaler.of_statistics(scaling, seen)


def _cut(chunks):
    for X, y in chunks:
        for start in range(0, len(y), CHUNK):
            yield X[start : start + CHUNK], y[start : start + CHUNK]


def _smallest(kept, keys, new, new_keys, count):
    """The rows with the smallest keys among stored and new ones, in the order of the keys."""
    if kept is not None:
        new = tuple(map(stacked, zip(kept, new)))
        new_keys = np.concatenate([keys, new_keys])
    chosen = np.argsort(new_keys, kind="stable")[:count]
    return tuple(part[chosen] for part in new), new_keys[chosen]
