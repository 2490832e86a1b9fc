"""Nonlinear transforms of single columns: Yeo-Johnson power, soft clipping about the median, ranks
to the normal distribution.

Each is learnt from the sorted values of a column, so that the order of the rows does not matter,
and is stored as plain arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from scipy.special import ndtri

from rfx import lazy
from rfx import steps as told
from rfx.errors import DataError
from rfx.model import Array

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


def sampled(n: int, d: int) -> np.ndarray | slice:
    """Which of n rows of d columns to learn from: all, or evenly spaced ones."""
    count = min(MOST_ROWS, max(FEWEST_ROWS, MOST_NUMBERS // max(d, 1)))
    return slice(None) if n <= count else np.arange(count) * n // count


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
            places = np.stack([ends - counts, ends - 1.0], axis=1).ravel()
            places, values = np.maximum.accumulate(places), np.repeat(values, 2)
        wanted = shares * places[-1]
        # a rank within rounding error of a row hits it, which matters for ties
        whole = np.rint(wanted)
        wanted = np.where(np.abs(wanted - whole) < 1e-9 * (1 + whole), whole, wanted)
        at_ranks = np.interp(wanted, places, values)
        # rounding must not make one exceed the next
        return np.maximum.accumulate(np.minimum(at_ranks, values[-1]))

    def moments(self, y: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of numbers (n,), one for each of the values."""
        if self.weights is None:
            mean = y.mean()
            return float(mean), float(np.sqrt(((y - mean) ** 2).mean()))
        share = self.weights / self.weights.sum()
        mean = (share * y).sum()
        return float(mean), float(np.sqrt((share * (y - mean) ** 2).sum()))

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
            unit = farthest * self.moments((self.values - centre) / farthest)[1]
        return float(centre), float(max(unit, farthest / _FARTHEST))


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
        cls, X: Any, weights: np.ndarray | None = None
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
            learnt.append(cls._of(column))
        arrays = [[entries[place] for entries, _, _ in learnt] for place in range(len(cls.forms))]
        shift, scale = ([column[place] for column in learnt] for place in (1, 2))
        as_arrays = [np.array(values, np.float64) for values in (*arrays, shift, scale)]
        return cls(*as_arrays[:-2]), as_arrays[-2], as_arrays[-1]

    @classmethod
    @abstractmethod
    def _of(cls, column: Sorted) -> tuple[tuple[Any, ...], float, float]:
        """(the column's entries of the arrays, its shift, its scale)."""

    @abstractmethod
    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The transformed rows of X (n, d), dense float64."""

    @abstractmethod
    def steps(self) -> told.Steps:
        """The computation steps of a call."""

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in self.forms}

    @classmethod
    def of_arrays(cls, saved: Mapping[str, Any]) -> ColumnTransform:
        """Create from the result of `arrays`; DataError if an array is missing."""
        for name in cls.forms:
            if name not in saved:
                raise DataError(f"there is no array scaler_{name}")
        return cls(**{name: np.asarray(saved[name], np.float64) for name in cls.forms})


def _columns(X: Any) -> Iterator[np.ndarray]:
    """The columns of X (n, d), dense or CSR, one by one in float64."""
    if scipy.sparse.issparse(X):
        X = X.tocsc()
        return (np.asarray(X[:, [j]].toarray(), np.float64).ravel() for j in range(X.shape[1]))
    return (np.asarray(X[:, j], np.float64) for j in range(X.shape[1]))


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
    def _of(cls, column: Sorted) -> tuple[tuple[Any, ...], float, float]:
        if column.constant:
            return (column.values[0], 1.0, 1.0), 0.0, 0.0
        centre, unit = column.middle()
        z = (column.values - centre) / unit
        lam = 1.0 if column.two_valued else _likeliest(column, z)
        mean, deviation = column.moments(_yeo_johnson(np.log1p(np.abs(z)), z < 0, lam))
        return (centre, unit, lam), mean, 1.0 / deviation

    def __call__(self, X: np.ndarray) -> np.ndarray:
        z = (X - self.centre) / self.unit
        return _yeo_johnson(np.log1p(np.abs(z)), z < 0, self.lam)

    def steps(self) -> told.Steps:
        return told.Scale(self.centre, 1 / self.unit), told.YeoJohnson(self.lam)


def _yeo_johnson(size: np.ndarray, below: np.ndarray, lam: Any) -> np.ndarray:
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
    def _of(cls, column: Sorted) -> tuple[tuple[Any, ...], float, float]:
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
    def _of(cls, column: Sorted) -> tuple[tuple[Any, ...], float, float]:
        shares = np.linspace(0.0, 1.0, min(QUANTILES, len(column.values)))
        quantiles = column.quantiles(shares)
        if column.constant:
            return (quantiles,), 0.0, 0.0
        if not column.two_valued:
            return (quantiles,), 0.0, 1.0
        mean, deviation = column.moments(_normal(column.values, quantiles))
        return (quantiles,), mean, 1.0 / deviation

    def __call__(self, X: np.ndarray) -> np.ndarray:
        out = np.empty(X.shape)
        for j, quantiles in enumerate(self.quantiles):
            out[:, j] = _normal(X[:, j], quantiles)
        return out

    def steps(self) -> told.Steps:
        ranks = told.Interpolate.of([_ranks(quantiles) for quantiles in self.quantiles])
        edges = (np.full(len(self.quantiles), edge) for edge in (EDGE, 1.0 - EDGE))
        return ranks, told.Clip(*edges), told.Function("normal_quantile")


def _normal(x: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """The normal quantiles at the ranks of numbers x (n,)."""
    last = len(quantiles) - 1
    # the nearest quantile from above, and from below; for a value equal to quantiles, the first and
    # last of them
    above = np.searchsorted(quantiles, x, "left")
    below = np.searchsorted(quantiles, x, "right") - 1
    high, low = np.minimum(above, last), np.maximum(below, 0)
    gap = quantiles[high] - quantiles[low]
    part = np.divide(x - quantiles[low], gap, out=np.full(x.shape, 0.5), where=gap > 0)
    rank = (low + part * (high - low)) / max(last, 1)
    rank = np.where(x <= quantiles[0], 0.0, np.where(x >= quantiles[-1], 1.0, rank))
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
