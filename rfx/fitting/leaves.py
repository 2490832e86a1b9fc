"""The machine of one leaf of method `local`: exact kernel ridge regression, its lambda and metric
chosen by leave-one-out.

With A = K + lam W^-1, W the diagonal matrix of the sample weights, the residual of row i of the
machine without that row is alpha_i / (A^-1)_ii, so that one factor gives both the machine and its
errors on rows that it has not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from rfx import kernels
from rfx.data.transforms.metric import Metric
from rfx.fitting.metric import WIDTH, bandwidth
from rfx.kernels.gradients import outer_product
from rfx.operators import cholesky

# Ridge parameters of a kernel with unit diagonal and rows of weight 1, largest first.
LAMS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003)
# Systems whose lambda exceeds this times the number of rows are solved in float32.
SINGLE = 1e-7
# A metric must reduce the leave-one-out error by this fraction.
GAIN = 0.005
# Weight of the squared error of classes relative to the error rate, as in `rfx.fitting.inputs`.
TIE = 0.1


@dataclass(frozen=True)
class Leaf:
    """One machine: f(x) = sum_j coef_j k(x, s_j) + offset for mapped rows.

    Parameters
    ----------
    support : array, (m, d)
        Its rows, mapped by the metric; none if the targets are constant.
    coef : array, (m, k)
    offset : array, (k,)
    gamma : float
    metric : Metric or None
    lam, error : float
        Its lambda, and the criterion of the choice.
    out : array, (n, k)
        Decision values of each row by the machine without it.
    objective, gap : float
        Of the machine, for rows of mean weight 1.
    """

    support: np.ndarray
    coef: np.ndarray
    offset: np.ndarray
    gamma: float
    metric: Metric | None
    lam: float
    error: float
    out: np.ndarray
    objective: float = 0.0
    gap: float = 0.0


def left_out(
    K: np.ndarray, Y: np.ndarray, lam: float, unit: Any = 1.0
) -> tuple[np.ndarray, np.ndarray]:
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

    Raises
    ------
    LinAlgError
        If the system is singular in float64.
    """
    for dtype in (np.float32, np.float64):
        if dtype == np.float32 and lam <= SINGLE * len(K):
            continue
        system: Any = np.array(K, dtype, order="F")
        system.flat[:: len(K) + 1] += lam * unit
        try:
            factor = cholesky.positive(system)
        except scipy.linalg.LinAlgError:
            if dtype == np.float64:
                raise
            continue
        coef = cholesky.solve(factor, Y).reshape(Y.shape).astype(np.float64)
        invert = lapack.strtri if dtype == np.float32 else lapack.dtrtri
        inverse = np.tril(invert(factor, lower=1, overwrite_c=1)[0])
        diagonal = np.einsum("ij,ij->j", inverse, inverse, dtype=np.float64)
        return coef, coef / diagonal[:, None]
    raise AssertionError


def criterion(task: str, out: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> float:
    """The error by which machines of a leaf are compared: the mean squared error, for classes that
    of targets +-1 times TIE plus the error rate.
    """
    squared = float(np.average(np.square(out - Y).mean(axis=1), weights=weights))
    if task == "regression":
        return squared
    if Y.shape[1] == 1:
        wrong = (out[:, 0] > 0) != (Y[:, 0] > 0)
    else:
        wrong = out.argmax(axis=1) != Y.argmax(axis=1)
    return float(np.average(wrong, weights=weights)) + TIE * squared


def fit(
    X: np.ndarray,
    Y: np.ndarray,
    kernel: str,
    task: str,
    start: float,
    *,
    search: bool = True,
    weights: np.ndarray | None = None,
    steps: int = 1,
    full: bool = True,
    width: float = WIDTH,
    seed: int = 0,
) -> Leaf:
    """The machine of the rows of a leaf.

    Parameters
    ----------
    X : array, (n, d)
    Y : array, (n, k)
    start : float
        The lambda to begin with.
    search : bool
        Whether other lambdas are tried.
    weights : array, (n,), or None
        With mean 1 over all leaves.
    steps : int
        Metrics to try.
    full : bool
        Whether they are matrices.
    width : float
        Bandwidth as a multiple of that of the median distance.
    """
    offset = np.average(Y, axis=0, weights=weights)
    nothing = np.zeros((0, X.shape[1]), X.dtype), np.zeros((0, Y.shape[1]))
    best = Leaf(*nothing, offset, 1.0, None, start, np.inf, Y * 0 + offset)
    if len(X) < 2 or not np.ptp(Y, axis=0).any() or not np.ptp(X, axis=0).any():
        return best
    own, metric = np.ones(len(X)) if weights is None else weights, None
    for step in range(steps + 1):
        Z = X if metric is None else metric.transform(X)
        params = bandwidth(kernel, Z, seed, width)
        K = kernels.block(kernel, Z, Z, params)
        tried = _along(K, Y, offset, own, task, best.lam, search and step == 0)
        if not tried or min(tried)[0] > (1 - GAIN) * best.error:
            break
        error, _, lam, coef, out = min(tried)
        fitted, T = K @ coef, Y - offset
        objective = lam * np.sum(coef * fitted) + np.sum(own * np.square(T - fitted).sum(axis=1))
        residual = T - fitted - lam * coef / own[:, None]
        gap = np.sum(own * np.square(residual).sum(axis=1))
        found = coef, offset, params["gamma"], metric, lam, error, out
        best = Leaf(Z, *found, float(objective) / 2, float(gap) / 2)
        if step < steps:
            metric = _next_metric(kernel, best, params, full, weights)
            if metric is None:
                break
    return best


def _along(
    K: np.ndarray,
    Y: np.ndarray,
    offset: np.ndarray,
    weights: np.ndarray,
    task: str,
    start: float,
    search: bool,
) -> list[tuple[float, int, float, np.ndarray, np.ndarray]]:
    """(error, number, lambda, coefficients, left-out values) of the machines with the lambda
    `start` and, in a search, with smaller and larger ones as long as the error falls.
    """
    tried: list[tuple[float, int, float, np.ndarray, np.ndarray]] = []

    def attempt(lam: float) -> float:
        """Infinite if the system is singular."""
        try:
            coef, residuals = left_out(K, Y - offset, lam, 1 / weights)
        except scipy.linalg.LinAlgError:
            return math.inf
        out = Y - residuals
        tried.append((criterion(task, out, Y, weights), len(tried), lam, coef, out))
        return tried[-1][0]

    first = attempt(start)
    for lams in (
        [lam for lam in LAMS if lam < start],
        [lam for lam in reversed(LAMS) if lam > start],
    ):
        least = first
        for lam in lams if search else ():
            value = attempt(lam)
            if value >= least:
                break
            least = value
        if least < first:
            break
    return tried


def _next_metric(
    kernel: str, leaf: Leaf, params: dict[str, Any], full: bool, weights: np.ndarray | None
) -> Metric | None:
    """The metric of the gradients of a leaf's machine."""
    rows = np.arange(len(leaf.support))
    M = outer_product(kernel, leaf.support, leaf.coef, params, rows, full, weights)
    if leaf.metric is not None:
        # from gradients with respect to A'x to those with respect to x
        A = leaf.metric.map
        M = M * A**2 if M.ndim == 1 else A @ M @ A.T
    return Metric.of(M)
