"""Leave-one-out residuals of kernel ridge regression, from one factor.

With A = K + lam W^-1, W the diagonal matrix of the sample weights, the residual of row i of the
machine without that row is alpha_i / (A^-1)_ii, so that one factor gives both the machine and its
errors on rows that it has not seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from rfx.device import Values
from rfx.operators import cholesky

# A factor in float32 is accurate enough if one step of refinement changes the coefficients by at
# most this fraction; otherwise the system is factored in float64.
ACCURATE = 0.01
# Rows of a product in float64 at a time, which stay in cache.
_ROWS = 256


def left_out(
    K: np.ndarray | Values, Y: np.ndarray, lam: float, unit: Any = 1.0
) -> tuple[np.ndarray, np.ndarray] | None:
    """Coefficients of kernel ridge regression, and the residuals of each row left out.

    Parameters
    ----------
    K : array, (n, n)
    Y : array, (n, k)
    lam : float
    unit : float or array (n,)
        1 / sample weights.

    Returns
    -------
    coef, residuals : arrays, (n, k)
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
        return coef, coef / factor.inverse_diagonal()[:, None]
    return None


def products(K: np.ndarray | Values, coef: np.ndarray) -> np.ndarray:
    """K coef (n, k) in float64, for K (n, m) of either type."""
    if isinstance(K, Values):
        return K @ coef
    parts = (K[start : start + _ROWS] for start in range(0, len(K), _ROWS))
    return np.concatenate([part.astype(np.float64, copy=False) @ coef for part in parts])
