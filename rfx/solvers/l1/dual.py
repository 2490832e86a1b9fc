"""The dual of an L1 problem: the value of the best feasible point in a given direction.

For min_w lam ||w||_1 + sum_n L(z_n . w, y_n) the dual is max_u -sum_n L*(u_n, y_n) with |z_j' u| <=
lam for every column j.
"""

from __future__ import annotations

import numpy as np

from rfx.errors import DataError
from rfx.losses import Loss, labels_and_weights
from rfx.operators.matrix import Matrix


def best_dual(
    loss: Loss, direction: np.ndarray, y: np.ndarray, lam: float, gradient: np.ndarray
) -> tuple[float, float]:
    """(value, s) of the best feasible u = s * direction, where gradient = Z' direction and
    direction is a loss's derivative (N,).

    For the squared and the squared hinge loss the best s is in closed form; for the logistic loss s
    <= 1 keeps u in the conjugate's domain. Raises DataError when the gradient is not finite.
    """
    largest = np.max(np.abs(gradient), initial=0.0)
    if not np.isfinite(largest):
        raise DataError(
            "a feature, a target or a weight is nan, infinite or too large: the gradient of the"
            " losses is not finite"
        )
    bound = lam / largest if largest > 0 else np.inf
    if loss.name == "logistic":
        s = min(1.0, bound)
    else:
        labels, weights = labels_and_weights(loss, y)
        quadratic = (1.0 if loss.name == "squared" else 0.5) * (direction @ (direction / weights))
        s = min(bound, max(0.0, -(direction @ labels) / quadratic)) if quadratic > 0 else 1.0
    return -float(loss.conjugate(loss.clip_dual(s * direction, y), y).sum()), s


def l1_certificate(
    Z: Matrix, y: np.ndarray, w: np.ndarray, lam: float, loss: Loss, f: np.ndarray | None = None
) -> tuple[float, float, np.ndarray]:
    """(objective, duality gap, gradient (D,) of the losses) of lam ||w||_1 + sum L(z.w, y) at any w
    (D,); f: Z w if known.

    Z: (N, D) features, used in one pass.
    """
    gradient = None
    if f is None:
        f, _, gradient = Z.loss_pass(w, loss, y)
    u = loss.derivative(f, y)
    gradient = Z.rmatvec(u) if gradient is None else gradient
    objective = lam * float(np.abs(w).sum()) + float(loss.value(f, y).sum())
    return objective, max(0.0, objective - best_dual(loss, u, y, lam, gradient)[0]), gradient
