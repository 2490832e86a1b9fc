"""The matrix of an exact kernel, and predictions of training rows by the machine without each of
them.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike

from rfx import device, kernels, parallel
from rfx.counters import random_rows
from rfx.losses import SmoothLoss
from rfx.operators import linear_algebra
from rfx.operators.linear_algebra import solve_rows
from rfx.operators.matrix import Matrix
from rfx.parallel import matmul
from rfx.types import Inputs

# ----------------------------------------------------------------------
# The matrix of an exact kernel's values among N rows, as an operator that stores entries only on
# request.


class KernelMatrix:
    """K with K[i, j] = k(x_i, x_j), symmetric and positive semidefinite.

    name, params: the kernel. X: (N, d) rows, dense or CSR. shape: (N, N). diagonal: (N,) float64.
    factors: multiply rows and columns, (N,) float64 above 0, for weighted least squares; None for
    ones. Prepared rows do not include them. tile_rows: rows and columns of one tile of values,
    which is computed, used and discarded.
    """

    tile_rows = 2048

    def __init__(
        self, name: str, X: Inputs, params: dict[str, Any], factors: np.ndarray | None = None
    ) -> None:
        self.name, self.X, self.params, self.factors = name, X, params, factors
        self.shape = (X.shape[0], X.shape[0])
        self.diagonal = kernels.diagonal(name, X, params)
        if factors is not None:
            self.diagonal = self.diagonal * factors**2
        self._prepared: kernels.Prepared | None = None
        self._values: np.ndarray | None = None
        self._placed: device.KernelRows | None = None

    def part(self, rows: np.ndarray) -> KernelMatrix:
        """The values among some rows; those of few rows are taken from all of them."""
        found = copy.copy(self)
        found.X, found.shape, found.diagonal = self.X[rows], (len(rows),) * 2, self.diagonal[rows]
        found._prepared = found._placed = None
        if self.shape[0] <= self.tile_rows:
            if self._values is None:
                self._values = self.to_array(np.float64)
            found._values = self._values[np.ix_(rows, rows)]
        return found

    def prepared(self, dtype: DTypeLike = np.float64) -> kernels.Prepared:
        """The rows, prepared for blocks of values in float32 or float64; cached."""
        if self._prepared is None or (dtype == np.float64 and self._prepared.dtype != dtype):
            self._prepared = kernels.prepare(self.name, self.X, self.params, dtype)
        return self._prepared.astype(dtype)

    def on_device(self) -> device.KernelRows | None:
        """The rows on the accelerator in use, if there is one for the kernel; cached."""
        if device.current() is None:
            return None
        if self._placed is None:
            self._placed = self.prepared(np.float64).on_device()
        return self._placed

    def matvec(self, V: np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
        """K V in float64 for V (N,) or (N, k), with values in `dtype`."""
        if self.factors is None:
            return self._times(V, dtype)
        return (self._times((V.T * self.factors).T, dtype).T * self.factors).T

    def _times(self, V: np.ndarray, dtype: DTypeLike) -> np.ndarray:
        """The same without factors; a tile above the diagonal is also used for its mirror image."""
        if (placed := self.on_device()) is not None:
            return placed.times(placed.rows, V)
        rows, n_rows, shape = self.prepared(dtype), len(V), V.shape
        # a single column as a vector: that uses another BLAS routine, several times as fast
        V = np.ascontiguousarray(V.ravel() if V.size == n_rows else V, dtype=dtype)
        product, step = np.zeros(V.shape), self.tile_rows
        buffer = np.empty(min(step, n_rows) ** 2, dtype)
        for i in range(0, n_rows, step):
            left = rows.take(slice(i, i + step))
            for j in range(i, n_rows, step):
                right = left if i == j else rows.take(slice(j, j + step))
                K = buffer[: left.n_rows * right.n_rows].reshape(left.n_rows, right.n_rows)
                kernels.block(self.name, left, right, self.params, out=K)
                product[i : i + step] += matmul(K, V[j : j + step])
                if i != j:
                    product[j : j + step] += matmul(K.T, V[i : i + step])
        return product.reshape(shape)

    def upper(self, dtype: DTypeLike) -> np.ndarray:
        """(N, N) array with the values on and above the diagonal; entries below are arbitrary."""
        n_rows, rows = self.shape[0], self.prepared(dtype)
        K = np.empty(self.shape, dtype)
        step = max(64, min(self.tile_rows, (1 << 22) // max(1, n_rows)))
        for start in range(0, n_rows, step):
            left, right = rows.take(slice(start, start + step)), rows.take(slice(start, None))
            kernels.block(self.name, left, right, self.params, out=K[start : start + step, start:])
        return self._scaled(K)

    def to_array(self, dtype: DTypeLike) -> np.ndarray:
        """All values (N, N)."""
        if self._values is not None:
            return self._values.astype(dtype)
        rows = self.prepared(dtype)
        return self._scaled(kernels.block(self.name, rows, rows, self.params))

    def _scaled(self, K: np.ndarray) -> np.ndarray:
        if self.factors is not None:
            factors = self.factors.astype(K.dtype)
            K *= factors[:, None]
            K *= factors
        return K


# ----------------------------------------------------------------------
# Predictions of training rows by the machine without each of them, from one factor.
#
# Kernel ridge regression: with A = K + lam W^-1, W the diagonal matrix of the sample weights, the
# residual of row i of the machine without that row is alpha_i / (A^-1)_ii, so that one factor gives
# both the machine and its errors on rows that it has not seen. For a group G of rows it is
# ((A^-1)_GG)^-1 alpha_G.
#
# Linear machines with a smooth loss, f = Z w at the minimum of lam/2 ||w||^2 + sum L(f_i, y_i):
# with g = L', d = L'' and h_i = z_i'(Z' diag(d) Z + lam I)^-1 z_i, one step of Newton's method
# without row i leads to f_i + g_i h_i / (1 - d_i h_i). This is exact for the squared loss, and for
# the squared hinge loss as long as no other row crosses the margin. Only rows S with d > 0 matter,
# and 1 - d_i h_i = lam/d_i (A^-1)_ii with A = Z_S Z_S' + lam diag(1/d_S), the smaller system of few
# rows. For an L1 penalty, Z has the features with nonzero weight, and lam is 0: the row is left out
# of the weights, not of the choice which of them are zero (Rahnama Rad and Maleki 2020).

# A factor in float32 is accurate enough if one step of refinement changes the coefficients by at
# most this fraction; otherwise the system is factored in float64.
ACCURATE = 0.01
# Rows of a product in float64 at a time, which stay in cache.
_ROWS = 256
# Maximum rows that are left out: enough for a score, while their cost is below that of the factor.
MOST_ROWS = 4000
# Maximum multiplications for a factor that is needed for this purpose only.
WORK = 2e11
# Multiplications from which some of the rows stand for all, if they are enough.
SOME_WORK = 2e10
# The ridge parameter without one, as a fraction of the mean diagonal.
NEARLY_ZERO = 1e-8


class LeaveOneOut(NamedTuple):
    """Kernel ridge regression with errors on rows that it has not seen.

    coef : array, (n, k)
        Of the machine of all rows.
    residuals : array, (m, k)
        Of the last rows by the machine without each of them.
    """

    coef: np.ndarray
    residuals: np.ndarray


def left_out(
    K: np.ndarray | device.Values,
    Y: np.ndarray,
    lam: float,
    unit: Any = 1.0,
    groups: np.ndarray | None = None,
    last: int | None = None,
    centred: bool = False,
) -> LeaveOneOut | None:
    """Kernel ridge regression, and the residuals of the last rows, each left out.

    Parameters
    ----------
    K : array, (n, n)
    Y : array, (n, k)
    lam : float
    unit : float or array (n,)
        1 / sample weights.
    groups : array (n,), optional
        Rows of one group are left out together.
    last : int, optional
        Number m of the rows left out, by default n, as with groups. Half of the rows take an eighth
        of the time, beside the factor.
    centred : bool
        Whether the weighted mean of the targets was subtracted, which the machine without a row
        repeats with its own targets.

    Returns
    -------
    LeaveOneOut or None
        None if the system is singular in float64.
    """
    n, k = Y.shape
    shift = lam * np.ones(n) * unit
    targets = np.column_stack([Y, np.ones(n)]) if centred else Y
    solved = _solved(K, targets, shift, k)
    if solved is None:
        return None
    factor, coef = solved
    before = 0 if last is None or groups is not None else n - last
    residuals = _residuals(factor, coef, groups, n - before)
    if centred:
        # residuals are linear in the targets; those of ones tell what another mean changes
        moved = moved_mean(Y, 1 / (np.ones(n) * unit), groups)[before:]
        residuals = residuals[:, :k] + moved * residuals[:, k:]
    return LeaveOneOut(coef[:, :k], residuals)


def coefficients(
    K: np.ndarray | device.Values, Y: np.ndarray, lam: float, unit: Any = 1.0
) -> np.ndarray | None:
    """The coefficients (n, k) of kernel ridge regression without the errors of `left_out`; None if
    the system is singular in float64.
    """
    solved = _solved(K, Y, lam * np.ones(len(Y)) * unit, Y.shape[1])
    return None if solved is None else solved[1]


def _solved(
    K: np.ndarray | device.Values, targets: np.ndarray, shift: np.ndarray, k: int
) -> tuple[linear_algebra.Factor | device.CholeskyFactor, np.ndarray] | None:
    """(the factor of K plus `shift` on the diagonal, the coefficients), in float32 if that is
    accurate for the first k targets, else in float64; None if the system is singular there.
    """
    for dtype in (np.float32, np.float64):
        try:
            factor = linear_algebra.factored(K, shift, dtype)
        except scipy.linalg.LinAlgError:
            continue
        coef = factor.solve(targets)
        correction = factor.solve(targets - products(K, coef) - shift[:, None] * coef)
        if np.linalg.norm(correction[:, :k]) <= ACCURATE * np.linalg.norm(coef[:, :k]):
            return factor, coef + correction
    return None


def _residuals(
    factor: linear_algebra.Factor | device.CholeskyFactor,
    coef: np.ndarray,
    groups: np.ndarray | None,
    last: int,
) -> np.ndarray:
    """The residuals of the last rows by the machine without each, or without its group; the factor
    is overwritten.
    """
    if groups is None:
        return np.asarray(coef[-last:] / factor.inverse_diagonal(last)[:, None])
    inverse, residuals = factor.solve(np.eye(len(coef))), np.empty_like(coef)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        residuals[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], coef[rows])
    return residuals


def moved_mean(Y: np.ndarray, weights: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """(n, k) how much the weighted mean, 0, of targets (n, k) exceeds that without each row, or
    without its group.
    """
    own = group_sums(weights[:, None], groups)
    rest = weights.sum() - own
    moved = group_sums(weights[:, None] * Y, groups)
    return np.divide(moved, rest, out=np.zeros(Y.shape), where=rest > 1e-12 * own)


def group_sums(values: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """(n, k) for each row the sum of values (n, k) over the rows of its group; None: each row is a
    group.
    """
    if groups is None:
        return values
    number = np.unique(groups, return_inverse=True)[1]
    sums = [np.bincount(number, column)[number] for column in values.T]
    return np.stack(sums, axis=1)


def group_largest(values: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """(n,) for each row the largest of the values (n,) of its group."""
    if groups is None:
        return values
    names, number = np.unique(groups, return_inverse=True)
    largest = np.full(len(names), -np.inf)
    np.maximum.at(largest, number, values)
    return largest[number]


def products(K: np.ndarray | device.Values, coef: np.ndarray) -> np.ndarray:
    """K coef (n, k) in float64, for K (n, m) of either type."""
    if isinstance(K, device.Values):
        return K @ coef
    parts = (K[start : start + _ROWS] for start in range(0, len(K), _ROWS))
    return np.concatenate([part.astype(np.float64, copy=False) @ coef for part in parts])


def inverse_diagonal(
    factor: linear_algebra.Factor | device.CholeskyFactor, rows: np.ndarray
) -> np.ndarray:
    """(m,) the diagonal of A^-1 at some rows, ascending; the factor of A is overwritten."""
    if len(rows) == len(factor.array) or not isinstance(factor, linear_algebra.Factor):
        return np.asarray(factor.inverse_diagonal()[rows])
    diagonal, L = np.empty(len(rows)), factor.array

    def part(first: int, last: int) -> None:
        for low in range(first, last, _ROWS):
            some = rows[low : min(low + _ROWS, last)]
            units = np.zeros((len(some), len(L)), L.dtype)
            units[np.arange(len(some)), some] = 1.0
            solve_rows(L, units, int(some[0]))
            diagonal[low : low + len(some)] = np.square(units, dtype=np.float64).sum(axis=1)

    with parallel.one_blas_thread():
        parallel.for_ranges(part, len(rows), _ROWS)
    return diagonal


def inverse_of_sums(
    factor: linear_algebra.Factor | device.CholeskyFactor,
    roots: np.ndarray,
    rows: np.ndarray,
    repeats: np.ndarray | None,
) -> np.ndarray:
    """(m,) e' A^-1 e for each of some rows, ascending, where e (n,) has the roots of the row and of
    those with its number in `repeats`; the factor of A is overwritten.
    """
    scale, copied = np.zeros(len(rows)), np.zeros(len(rows), bool)
    if repeats is not None:
        _, number, counts = np.unique(repeats, return_inverse=True, return_counts=True)
        copied = counts[number[rows]] > 1
        # a column for each set of equal rows
        several, column = np.unique(number[rows[copied]], return_inverse=True)
        E = (number[:, None] == several) * roots[:, None]
        scale[copied] = np.sum(E * factor.solve(E), axis=0)[column]
    single = rows[~copied]
    if len(single):
        scale[~copied] = inverse_diagonal(factor, single) * np.square(roots[single])
    return scale


def svm(
    K: KernelMatrix,
    beta: np.ndarray,
    y: np.ndarray,
    shift: np.ndarray,
    rows: np.ndarray,
    f: np.ndarray,
    bias: bool,
    repeats: np.ndarray | None = None,
) -> np.ndarray:
    """The predictions of rows by the support vector machine without each of them, with squared
    hinge loss, if the other support vectors remain the same.

    Parameters
    ----------
    K : KernelMatrix, (n, n)
    beta : array, (n,)
        Coefficients, with (K_SS + diag(shift_S)) beta_S + b = y_S for the support vectors S.
    y, shift : arrays, (n,)
        Labels, and the shift of the diagonal.
    rows : array, (m,)
        The rows to predict, ascending.
    f : array, (m,)
        Their predictions by the machine, which those of other rows than support vectors remain.
    bias : bool
        Whether the machine has one.
    repeats : array, (n,), optional
        Numbers that equal rows share, which are left out together.

    Returns
    -------
    array, (m,)
        nan for all if the factor would take too long.
    """
    support = np.flatnonzero(beta)
    if len(support) ** 3 > 3 * WORK:
        return np.full(len(f), np.nan)
    # support vectors, and copies of them
    own = None if repeats is None else repeats[support]
    names, first = (support, np.arange(len(support)))
    number = np.arange(len(beta)) if repeats is None else repeats
    if own is not None:
        names, first = np.unique(own, return_index=True)
    wanted = np.flatnonzero(np.isin(number[rows], names))
    if not len(wanted):
        return f
    places, back = np.unique(
        first[np.searchsorted(names, number[rows[wanted]])], return_inverse=True
    )
    A: Any = np.asfortranarray(K.part(support).to_array(np.float64))
    A.flat[:: len(A) + 1] += shift[support]
    factor = linear_algebra.Factor(linear_algebra.positive(A))
    ones = factor.solve(np.ones(len(support)))
    # equal rows act as one, with the sum of their coefficients and their mean label
    weights = 1 / shift[support][:, None]
    targets = group_sums(weights * y[support][:, None], own) / group_sums(weights, own)
    sums, of_ones = group_sums(beta[support][:, None], own), group_sums(ones[:, None], own)
    scale = inverse_of_sums(factor, np.ones(len(support)), places, own)
    if bias:
        scale = scale - np.square(of_ones[places, 0]) / ones.sum()
    # a bias alone fits a single support vector of each class
    found = targets[places, 0] - sums[places, 0] / np.where(scale > 0, scale, np.inf)
    out = f.copy()
    out[wanted] = found[back]
    return out


def linear(
    Z: Matrix,
    F: np.ndarray,
    Y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    roots: np.ndarray | None = None,
    repeats: np.ndarray | None = None,
    centred: bool = False,
    share: float = 1.0,
) -> np.ndarray:
    """The predictions of rows by the machine without each of them.

    Parameters
    ----------
    Z : Matrix, (n, D)
        Features.
    F, Y : arrays, (n, k)
        Predictions at the minimum, and targets.
    lam : float
    loss : SmoothLoss
    roots : array, (n,), optional
        Factors of the rows of Z, F and Y: for the squared loss, the roots of sample weights.
    repeats : array, (n,), optional
        Numbers that equal rows share, which are left out together.
    centred : bool
        For the squared loss, whether the weighted mean of the targets was subtracted, which the
        machine without a row repeats with its own targets.
    share : float
        The fraction of the machine's rows that these are. A random part of them stands for all: the
        mean of its leverages h_i, times the share, is that of all rows.

    Returns
    -------
    array, (n, k)
        nan for rows that are not left out.
    """
    n = Z.shape[0]
    own = np.ones((n, 1)) if roots is None else roots[:, None]
    gradients = own * loss.derivative(F, Y)
    curvatures = loss.second_derivative(F, Y)
    out, rows = np.full(F.shape, np.nan), random_rows(n, min(n, MOST_ROWS))
    out[rows], last = F[rows] / own[rows], np.zeros(0)
    slack = of_ones = np.ones(n)
    gradient_sums = group_sums(gradients, repeats)
    curvature_sums = group_sums(own**2 * curvatures, repeats)
    for k, d in enumerate(curvatures.T):
        if not np.array_equal(d, last):
            ones = own[:, 0] if centred else None
            (slack, of_ones), last = _slack(Z, d, share * lam, rows, ones), d
        # z' H^-1 z for rows z without their factors, the same for equal rows
        leverages = share * (1 - slack)
        steps = np.divide(leverages, d * own[:, 0] ** 2, out=np.zeros(n), where=d > 0)
        steps = group_largest(steps, repeats)[rows]
        left = 1 - steps * curvature_sums[rows, k]
        out[rows, k] += steps * gradient_sums[rows, k] / left
        if centred:
            # predictions are linear in the targets: see `left_out`
            moved = moved_mean(Y[:, k : k + 1] / own, own[:, 0] ** 2, repeats)[rows, 0]
            out[rows, k] -= moved * (1 - of_ones[rows] / own[rows, 0]) / left
    return out


def enough_rows(n: int, D: int, outputs: int = 1) -> int | None:
    """Of n rows with D features, how many `linear` takes to stand for all: all where that is cheap;
    None if too many features leave too few.
    """
    if outputs * n * min(n, D) ** 2 <= SOME_WORK:
        return n
    count = min(n, max(2 * D, MOST_ROWS, int(SOME_WORK // (outputs * D**2))))
    return count if outputs * count * min(count, D) ** 2 <= WORK else None


def _slack(
    Z: Matrix, d: np.ndarray, lam: float, rows: np.ndarray, ones: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """1 - d_i h_i of some rows with d > 0, in an array (n,); and for the squared loss the
    predictions of the targets `ones` (n,), if given.
    """
    active, slack, of_ones = np.flatnonzero(d), np.ones(len(d)), np.zeros(len(d))
    wanted = np.intersect1d(rows, active)
    A: Any
    if not lam:
        # nothing but the rows keeps the features of an L1 solution from being dependent
        lam = NEARLY_ZERO * float(Z.squares(d).mean())
    if len(active) <= Z.shape[1]:
        dense = Z.rows(active).to_array().astype(np.float64)
        A = np.asfortranarray(dense @ dense.T)
        A.flat[:: len(A) + 1] += lam / d[active]
        factor = linear_algebra.Factor(linear_algebra.positive(A))
        places = np.searchsorted(active, wanted)
        if ones is not None:
            of_ones = ones - lam * factor.solve(ones)
        slack[wanted] = lam / d[wanted] * inverse_diagonal(factor, places)
        return slack, of_ones
    A = np.zeros((Z.shape[1],) * 2)
    for part, block in Z.row_blocks():
        parallel.add_gram(block * np.sqrt(d[part])[:, None], A)
    A.flat[:: len(A) + 1] += lam
    L = linear_algebra.positive(A.T)
    dense = Z.rows(wanted).to_array().astype(np.float64) * np.sqrt(d[wanted])[:, None]
    solve_rows(L, dense)
    slack[wanted] = 1 - np.square(dense).sum(axis=1)
    if ones is not None:
        of_ones = Z.matvec(linear_algebra.Factor(L).solve(Z.rmatvec(ones)))
    return slack, of_ones
