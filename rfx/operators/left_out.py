"""Predictions of training rows by the machine without each of them, from one factor.

Kernel ridge regression: with A = K + lam W^-1, W the diagonal matrix of the sample weights, the
residual of row i of the machine without that row is alpha_i / (A^-1)_ii, so that one factor gives
both the machine and its errors on rows that it has not seen. For a group G of rows it is
((A^-1)_GG)^-1 alpha_G.

Linear machines with a smooth loss, f = Z w at the minimum of lam/2 ||w||^2 + sum L(f_i, y_i): with
g = L', d = L'' and h_i = z_i'(Z' diag(d) Z + lam I)^-1 z_i, one step of Newton's method without row
i leads to f_i + g_i h_i / (1 - d_i h_i). This is exact for the squared loss, and for the squared
hinge loss as long as no other row crosses the margin. Only rows S with d > 0 matter, and 1 - d_i
h_i = lam/d_i (A^-1)_ii with A = Z_S Z_S' + lam diag(1/d_S), the smaller system of few rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from rfx import device, parallel
from rfx.losses import SmoothLoss
from rfx.operators import cholesky
from rfx.operators.blocks import drawn
from rfx.operators.kernel import KernelMatrix
from rfx.operators.matrix import Matrix
from rfx.operators.triangular import solve_rows

# A factor in float32 is accurate enough if one step of refinement changes the coefficients by at
# most this fraction; otherwise the system is factored in float64.
ACCURATE = 0.01
# Rows of a product in float64 at a time, which stay in cache.
_ROWS = 256
# Maximum rows that are left out: enough for a score, while their cost is below that of the factor.
MOST_ROWS = 4000
# Maximum multiplications for a factor that is needed for this purpose only.
WORK = 2e11


def left_out(
    K: np.ndarray | device.Values,
    Y: np.ndarray,
    lam: float,
    unit: Any = 1.0,
    groups: np.ndarray | None = None,
    last: int | None = None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Coefficients of kernel ridge regression, and the residuals of the last rows, each left out.

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

    Returns
    -------
    coef, residuals : arrays, (n, k) and (m, k)
        None if the system is singular in float64.
    """
    shift = lam * np.ones(len(K)) * unit
    for dtype in (np.float32, np.float64):
        try:
            factor = cholesky.factored(K, shift, dtype)
        except scipy.linalg.LinAlgError:
            continue
        coef = factor.solve(Y)
        correction = factor.solve(Y - products(K, coef) - shift[:, None] * coef)
        if np.linalg.norm(correction) > ACCURATE * np.linalg.norm(coef):
            continue
        coef += correction
        if groups is None:
            diagonal = factor.inverse_diagonal(last)
            return coef, coef[-len(diagonal) :] / diagonal[:, None]
        inverse, residuals = factor.solve(np.eye(len(coef))), np.empty_like(coef)
        for group in np.unique(groups):
            rows = np.flatnonzero(groups == group)
            residuals[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], coef[rows])
        return coef, residuals
    return None


def products(K: np.ndarray | device.Values, coef: np.ndarray) -> np.ndarray:
    """K coef (n, k) in float64, for K (n, m) of either type."""
    if isinstance(K, device.Values):
        return K @ coef
    parts = (K[start : start + _ROWS] for start in range(0, len(K), _ROWS))
    return np.concatenate([part.astype(np.float64, copy=False) @ coef for part in parts])


def inverse_diagonal(
    factor: cholesky.Factor | device.CholeskyFactor, rows: np.ndarray
) -> np.ndarray:
    """(m,) the diagonal of A^-1 at some rows, ascending; the factor of A is overwritten."""
    if len(rows) == len(factor.array) or not isinstance(factor, cholesky.Factor):
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


def svm(
    K: KernelMatrix, beta: np.ndarray, y: np.ndarray, shift: np.ndarray, f: np.ndarray, bias: bool
) -> np.ndarray:
    """The predictions (n,) of rows by the support vector machine without each of them, with squared
    hinge loss, if the other support vectors remain the same.

    beta : its coefficients (n,), with (K_SS + diag(shift_S)) beta_S + b = y_S for the support
    vectors S. y, shift, f : (n,) labels, the shift of the diagonal, and predictions, which those of
    other rows remain. nan for all if the factor would take too long.
    """
    support = np.flatnonzero(beta)
    if not len(support) or len(support) ** 3 > 3 * WORK:
        return f if not len(support) else np.full(len(f), np.nan)
    A: Any = np.asfortranarray(K.part(support).to_array(np.float64))
    A.flat[:: len(A) + 1] += shift[support]
    factor = cholesky.Factor(A)
    ones = factor.solve(np.ones(len(support)))
    scale = factor.inverse_diagonal()
    if bias:
        scale -= np.square(ones) / ones.sum()
    out = f.copy()
    # a bias alone fits a single support vector of each class
    out[support] = y[support] - beta[support] / np.where(scale > 0, scale, np.inf)
    return out


def linear(Z: Matrix, F: np.ndarray, Y: np.ndarray, lam: float, loss: SmoothLoss) -> Any:
    """The predictions of rows by the machine without each of them.

    Parameters
    ----------
    Z : Matrix, (n, D)
        Features.
    F, Y : arrays, (n, k)
        Predictions at the minimum, and targets.
    lam : float
    loss : SmoothLoss

    Returns
    -------
    array, (n, k), or None
        nan for rows that are not left out; None if a factor would take too long.
    """
    n, D = Z.shape
    if not D or not Z.rows_here or n * min(n, D) ** 2 * F.shape[1] > WORK:
        return None
    gradients, curvatures = loss.derivative(F, Y), loss.second_derivative(F, Y)
    out, rows = np.full(F.shape, np.nan), drawn(n, min(n, MOST_ROWS))
    out[rows], slack, last = F[rows], np.ones(n), np.zeros(0)
    for k, (g, d) in enumerate(zip(gradients.T, curvatures.T)):
        if not np.array_equal(d, last):
            slack, last = _slack(Z, d, lam, rows), d
        some = rows[d[rows] > 0]
        out[some, k] += (g * (1 - slack) / (d * slack))[some]
    return out


def _slack(Z: Matrix, d: np.ndarray, lam: float, rows: np.ndarray) -> np.ndarray:
    """1 - d_i h_i of some rows with d > 0, in an array (n,)."""
    active, slack = np.flatnonzero(d), np.ones(len(d))
    wanted = np.intersect1d(rows, active)
    A: Any
    if len(active) <= Z.shape[1]:
        dense = Z.rows(active).to_array().astype(np.float64)
        A = np.asfortranarray(dense @ dense.T)
        A.flat[:: len(A) + 1] += lam / d[active]
        places = np.searchsorted(active, wanted)
        slack[wanted] = lam / d[wanted] * inverse_diagonal(cholesky.Factor(A), places)
        return slack
    A = np.zeros((Z.shape[1],) * 2)
    for part, block in Z.row_blocks():
        parallel.add_gram(block * np.sqrt(d[part])[:, None], A)
    A.flat[:: len(A) + 1] += lam
    factor = cholesky.positive(A.T)
    dense = Z.rows(wanted).to_array().astype(np.float64) * np.sqrt(d[wanted])[:, None]
    solve_rows(factor, dense)
    slack[wanted] = 1 - np.square(dense).sum(axis=1)
    return slack
