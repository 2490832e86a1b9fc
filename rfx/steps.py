"""The computation of a model as a list of steps, for execution by other programs.

Each step maps the n numbers of a row to m numbers, in float64. Each component (a scaling, a feature
map, a kernel, a model) returns its steps, and the writers of `rfx.exporting` translate each kind of
step. Docstrings describe the effect of a step on a row x.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

# The functions of a number t for `Function`.
FUNCTIONS = {
    "cos_turns": "cos(2 pi t)",
    "cube": "t^3",
    "exp": "exp(t)",
    "exp_minus": "exp(-t)",
    "log_positive": "log(t) where t > 0, else 0",
    "matern3": "(1 + t) exp(-t)",
    "matern5": "(1 + t + t^2/3) exp(-t)",
    "multiscale": "the mean of exp(-s t) over s = 1/16, 1/4, 1, 4, 16",
    "normal_quantile": "the standard normal quantile of t",
    "positive": "1 where t > 0, else 0",
    "ramp": "max(0, t)",
    "sigmoid": "1 / (1 + exp(-t))",
    "soft_clip": "t / sqrt(1 + (t/3)^2), 3 or -3 where the square overflows",
    "sqrt": "the square root of t",
    "square": "t^2",
}
# The comparisons of a row x with another row s for `Compare`.
COMPARISONS = {
    "squared": "sum_j (x_j - s_j)^2",
    "l1": "sum_j |x_j - s_j|",
    "hat": "prod_j max(0, 1 - |x_j - s_j|)",
    "rational": "prod_j 1 / (1 + |x_j - s_j|)",
    "erlang": "prod_j (1 + |x_j - s_j| / 2) exp(-|x_j - s_j|)",
    "sech": "prod_j 1 / cosh(x_j - s_j)",
    "chi2": "sum_j 2 x_j s_j / (x_j + s_j) over x_j + s_j > 0",
    "differing": "the number of j with x_j != s_j",
}


@dataclass(frozen=True)
class Step:
    """A step of a computation; its fields are numbers, words, and arrays."""

    def width(self, before: int) -> int:
        """The number of outputs for a number of inputs."""
        return before


Steps: TypeAlias = tuple[Step, ...]


def width(steps: Steps, before: int) -> int:
    """The number of outputs of the last step for a number of inputs of the first."""
    for step in steps:
        before = step.width(before)
    return before


@dataclass(frozen=True)
class Select(Step):
    """x_c for c in columns (m,), numbered from 0."""

    columns: np.ndarray

    def width(self, before: int) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class Scale(Step):
    """(x - centre) * factor, element by element; centre and factor: (n,)."""

    centre: np.ndarray
    factor: np.ndarray


@dataclass(frozen=True)
class Linear(Step):
    """x matrix + offset; matrix: (n, m), offset: (m,)."""

    matrix: np.ndarray
    offset: np.ndarray

    def width(self, before: int) -> int:
        return len(self.offset)


@dataclass(frozen=True)
class Round(Step):
    """x, rounded to the nearest float32."""


@dataclass(frozen=True)
class Clip(Step):
    """min(max(x, low), high), element by element; low and high: (n,)."""

    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Function(Step):
    """A function of each number; name: one of FUNCTIONS."""

    name: str


@dataclass(frozen=True)
class Sign(Step):
    """1 where x_j >= thresholds_j, else -1; thresholds: (n,)."""

    thresholds: np.ndarray


@dataclass(frozen=True)
class YeoJohnson(Step):
    """((1 + x_j)^p - 1) / p for x_j >= 0 with p = powers_j, -((1 - x_j)^p - 1) / p below 0 with p =
    2 - powers_j.

    Where p is 0 it is the limit, log(1 + x_j) or -log(1 - x_j). powers: (n,).
    """

    powers: np.ndarray


@dataclass(frozen=True)
class Interpolate(Step):
    """A piecewise linear curve of each number.

    In row j of each array, (n, k), the first `sizes`_j knots are strictly increasing; the rest of
    the row is padding. At knot i the value is at_i. From a knot i to the next it is linear from
    right_i to left_{i+1}. Below the first knot it is that knot's value, above the last one the last
    one's.
    """

    sizes: np.ndarray
    knots: np.ndarray
    left: np.ndarray
    at: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, curves: Sequence[tuple[np.ndarray, ...]]) -> Self:
        """From (knots, left, at, right) of each number."""
        sizes = np.array([len(knots) for knots, *_ in curves], np.int64)
        parts = np.empty((4, len(curves), int(sizes.max(initial=1))))
        for row, curve in enumerate(curves):
            # after the last knot, an unreachable one with the last value
            parts[:, row] = curve[2][-1]
            parts[0, row] = np.finfo(np.float64).max
            parts[:, row, : sizes[row]] = curve
        return cls(sizes, *parts)


@dataclass(frozen=True)
class Unit(Step):
    """x divided by its Euclidean length; a row of zeros is unchanged."""


@dataclass(frozen=True)
class Compare(Step):
    """Compare x with each of the rows (m, n); how: one of COMPARISONS."""

    rows: np.ndarray
    how: str

    def width(self, before: int) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class ArcCosine(Step):
    """The arc-cosine kernel of x and each of the rows s (m, n).

    (||x|| ||s||)^order J(theta) / pi, theta the angle between them; J is pi - theta for order 0,
    sin theta + (pi - theta) cos theta for 1, 3 sin theta cos theta + (pi - theta)(1 + 2 cos^2
    theta) for 2. It is 0 if x or s is.
    """

    rows: np.ndarray
    order: int

    def width(self, before: int) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Bins(Step):
    """The sum of the weights of the bins that contain x, one of each grid g.

    The cell of input j in grid g is c_j = floor((x_j - offsets_gj) * inverses_gj), and the key of
    the bin is sum_j (base + c_j) multipliers_j modulo 2^64. Its weights are those of its position
    in `keys` from starts_g to starts_{g+1} - 1, and zeros if the key is absent.

    Parameters
    ----------
    offsets, inverses : array, (grids, n)
    multipliers : array, (n,)
        uint64.
    base : int
    keys : array, (bins,)
        uint64, ascending within each grid.
    starts : array, (grids + 1,)
    weights : array, (bins, m)
    """

    offsets: np.ndarray
    inverses: np.ndarray
    multipliers: np.ndarray
    base: int
    keys: np.ndarray
    starts: np.ndarray
    weights: np.ndarray

    def width(self, before: int) -> int:
        return int(self.weights.shape[1])


@dataclass(frozen=True)
class Combined(Step):
    """From the results of several lists of steps for x, all of the same width."""

    parts: tuple[Steps, ...]

    def width(self, before: int) -> int:
        return width(self.parts[0], before)


class Product(Combined):
    """The elementwise product of the results."""


class Sum(Combined):
    """The sum of the results."""


class ComplexProduct(Combined):
    """The elementwise product of m complex numbers; each result is m real parts followed by m
    imaginary parts, as is the product.
    """


@dataclass(frozen=True)
class Branch(Combined):
    """The result of one of several lists of steps for x, that of a leaf of a tree of cuts.

    From cut 0, x goes on to children_c1 of a cut c if x directions_c > thresholds_c, else to
    children_c0, until that is a leaf b, written as -1 - b. Without cuts it is leaf 0.

    Parameters
    ----------
    parts : tuple of Steps
        One for each leaf, (cuts + 1,).
    directions : array, (cuts, n)
    thresholds : array, (cuts,)
    children : array, (cuts, 2)
    """

    directions: np.ndarray
    thresholds: np.ndarray
    children: np.ndarray


@dataclass(frozen=True)
class Softmax(Step):
    """exp(x_j) / sum_i exp(x_i)."""


@dataclass(frozen=True)
class Shares(Step):
    """x_j / sum_i x_i, and 1/n for each if the sum is 0."""


def scaled(factor: ArrayLike, count: int) -> Scale:
    """The step that multiplies each of `count` numbers by a common factor, or by factors of
    (count,).
    """
    return Scale(np.zeros(count), np.broadcast_to(np.asarray(factor, np.float64), (count,)))


def linear(matrix: np.ndarray, offset: ArrayLike = 0.0) -> Linear:
    """The step x matrix + offset for a matrix (n, m) and an offset (m,) or one number."""
    made = np.broadcast_to(np.asarray(offset, np.float64), (matrix.shape[1],))
    return Linear(np.asarray(matrix), made)


def constant(count: int, values: np.ndarray) -> Steps:
    """The steps that map any row of `count` numbers to the same values (m,)."""
    return (linear(np.zeros((count, len(values))), values),)


def rounded(dtype: DTypeLike) -> Steps:
    """A `Round` for numbers stored in float32, nothing for float64."""
    return (Round(),) if np.dtype(dtype) == np.float32 else ()
