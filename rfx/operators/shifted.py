"""Linear systems (K + lam) x = b for many lam from one factor of K + lam_0, with one Krylov
space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import eigh_tridiagonal

from rfx.operators.cg import dots

_CHECK = 5
# Minimum ratio of the smallest eigenvalue of a system to its expected value; below, the factor's
# rounding dominates.
_TRUSTED = 0.1


def solve_shifted(
    inverse: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    base: float,
    lams: Sequence[float],
    *,
    tol: float = 1e-6,
    max_steps: int = 300,
) -> list[np.ndarray | None]:
    """x with (K + lam) x = b for every lam of `lams`, where v -> `inverse`(v) is (K + base)^-1 v
    and K is semidefinite.

    (I + (lam - base) A) x = A b for A = (K + base)^-1: all these systems have the same Krylov space
    (Frommer and Maass 1999, SIAM J. Sci. Comput. 19), for which Lanczos's method is run once, with
    full reorthogonalisation, separately for each column of b but at the same time. The space has as
    many dimensions as the worst-conditioned system needs, a multiple of the square root of lam /
    base or of its inverse.

    inverse: maps (n,) or (n, k) arrays; one call per dimension. b: (n,) or (n, k). tol: the
    residual, relative to x. Returns a list of arrays like b; None for a lam so small that the
    rounding of `inverse` makes its system indefinite.
    """
    first = inverse(b)
    columns = first.reshape(len(first), -1)
    norms = np.linalg.norm(columns, axis=0)
    basis = [columns / np.where(norms > 0, norms, 1.0)]
    alphas: list[np.ndarray] = []
    betas: list[np.ndarray] = []
    while True:
        w = inverse(basis[-1].reshape(first.shape)).reshape(columns.shape)
        alphas.append(dots(basis[-1], w))
        for _ in range(2):
            for v in basis:
                w -= dots(v, w) * v
        beta = np.linalg.norm(w, axis=0)
        if len(alphas) % _CHECK == 0 or len(alphas) >= max_steps:
            small, residuals = _small_systems(np.array(alphas), np.array(betas), beta, base, lams)
            if len(alphas) >= max_steps or not np.any(residuals > tol):
                break
        betas.append(beta)
        basis.append(w / np.where(beta > 0, beta, 1.0))
    solutions = []
    for coefficients, residual in zip(small, residuals):
        x = sum(c * norms * v for c, v in zip(coefficients, basis))
        solutions.append(None if np.isnan(residual) else x.reshape(first.shape))
    return solutions


def _small_systems(
    alphas: np.ndarray, betas: np.ndarray, beta: np.ndarray, base: float, lams: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """(I + (lam - base) T)^-1 e_1 as (lams, steps, k), and the largest relative residual for each
    lam, nan if T is unusable.
    """
    steps, k = alphas.shape
    small, residuals = np.zeros((len(lams), steps, k)), np.zeros(len(lams))
    for j in range(k):
        values, vectors = eigh_tridiagonal(alphas[:, j], betas[:, j])
        for i, lam in enumerate(lams):
            scaled = 1.0 + (lam - base) * values
            if scaled.min() < _TRUSTED * min(1.0, lam / base):
                residuals[i] = np.nan
                continue
            small[i, :, j] = x = vectors @ (vectors[0] / scaled)
            residuals[i] = np.maximum(
                residuals[i], abs(lam - base) * beta[j] * abs(x[-1]) / np.linalg.norm(x)
            )
    return small, residuals
