"""Duality gaps of any weight vector, from one walk over the features; float64 sums over float32 features."""

import numpy as np


def l1_certificate(blocks, y, coef, lam, loss) -> tuple[float, float]:
    """(objective, gap) of lam ||w||_1 + sum L(z.w, y) at w = coef (Yen et al. 2014, eq. 9).

    The dual point is u = s L'(Zw) with the largest s <= 1 that makes ||Z'u||_inf <= lam.
    """
    value, dual, gradient = _walk(blocks, y, coef, loss)
    largest = np.abs(gradient).max(initial=0.0)
    s = 1.0 if largest <= lam else lam / largest
    objective = value + lam * np.abs(coef).sum()
    return objective, max(0.0, objective + loss.conjugate(loss.clip_dual(s * dual, y), y).sum())


def l2_certificate(blocks, y, coef, lam, loss) -> tuple[float, float]:
    """(objective, gap) of lam/2 ||w||^2 + sum L(z.w, y) at w = coef (Yen et al. 2014, eq. 5), dual point u = L'(Zw)."""
    value, dual, gradient = _walk(blocks, y, coef, loss)
    objective = value + 0.5 * lam * (coef @ coef)
    bound = -loss.conjugate(loss.clip_dual(dual, y), y).sum() - gradient @ gradient / (2 * lam)
    return objective, max(0.0, objective - bound)


def _walk(blocks, y, coef, loss):
    """Sum of losses, L'(Zw) per row, and Z' L'(Zw)."""
    coef = np.asarray(coef, np.float64)
    value, dual, gradient = 0.0, np.empty(len(y)), np.zeros(len(coef))
    for rows, Z in blocks:
        wide = Z.astype(np.float64)
        decision = wide @ coef
        value += loss.value(decision, y[rows]).sum()
        dual[rows] = loss.derivative(decision, y[rows])
        gradient += dual[rows] @ wide
    return float(value), dual, gradient
