"""Losses L(z, y) of a prediction z: value, derivative, curvature and convex conjugate.

All formulas are elementwise over arrays of the same shape and leave sums to the caller; only
softmax uses the k predictions of a row together. Classification losses take labels y in {-1, +1};
softmax takes rows with a 1 at the class and 0 elsewhere. The derivative of a loss with a corner is
a subgradient there. The conjugate is L*(u, y) = sup_z u z - L(z, y), infinite outside `clip_dual`'s
range.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

# of predictions z, or dual values u, and targets y
Formula: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Loss:
    """The loss of one row and output.

    Attributes
    ----------
    name : str
    value, derivative : function of (z, y)
    clip_dual, conjugate : function of (u, y)
    curvature : float
        The largest second derivative, infinite without a bound.
    epsilon : float
        Half width of the tube of `epsilon_insensitive`.
    """

    name: str
    value: Formula
    derivative: Formula
    clip_dual: Formula
    conjugate: Formula
    curvature: float = np.inf
    epsilon: float = 0.0

    def __reduce__(self) -> tuple[object, ...]:
        return get_loss, (self.name, self.epsilon)


class SmoothLoss(Loss):
    """A loss with a second derivative, as required by Newton's method."""

    second_derivative: Formula


class Weighted(SmoothLoss):
    """A classification loss with a weight for each row: w L(z, t) for y = w t, a label t in {-1,
    +1} times a weight w > 0.

    So a row's weight stays with its label when rows are selected. For the squared loss, whose
    targets are arbitrary numbers, rows are scaled instead (rfx.operators.scaled). The conjugate of
    w L at u is w L*(u / w).
    """

    def __init__(self, loss: SmoothLoss) -> None:
        self.base = loss
        self.name = loss.name

    def __reduce__(self) -> tuple[object, ...]:
        return Weighted, (self.base,)

    def value(self, z, y):
        return np.abs(y) * self.base.value(z, np.sign(y))

    def derivative(self, z, y):
        return np.abs(y) * self.base.derivative(z, np.sign(y))

    def second_derivative(self, z, y):
        return np.abs(y) * self.base.second_derivative(z, np.sign(y))

    def clip_dual(self, u, y):
        return np.abs(y) * self.base.clip_dual(u / np.abs(y), np.sign(y))

    def conjugate(self, u, y):
        return np.abs(y) * self.base.conjugate(u / np.abs(y), np.sign(y))


def _sigmoid(t: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * t))


def _xlogx(v: np.ndarray) -> np.ndarray:
    return np.where(v > 0, v * np.log(np.where(v > 0, v, 1.0)), 0.0)


class SquaredLoss(SmoothLoss):
    """1/2 (z - y)^2 (Yen et al. 2014, section 2)."""

    name, curvature = "squared", 1.0

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return z - y

    def second_derivative(self, z, y):
        return np.ones_like(z)

    def clip_dual(self, u, y):
        return u

    def conjugate(self, u, y):
        return 0.5 * u**2 + u * y


class SquaredHingeLoss(SmoothLoss):
    """max(0, 1 - y z)^2, without a factor 1/2: LIBLINEAR's `-s 2` and `-s 5` (docs/papers.md)."""

    name, curvature = "squared_hinge", 2.0

    def value(self, z, y):
        return np.maximum(0.0, 1.0 - y * z) ** 2

    def derivative(self, z, y):
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    def second_derivative(self, z, y):
        curvature = np.where(y * z < 1.0, 2.0, 0.0)
        # z may be a vector with remote parts: its type is known without its values
        return curvature.astype(getattr(z, "dtype", np.float64))

    def clip_dual(self, u, y):
        return y * np.minimum(0.0, y * u)

    def conjugate(self, u, y):
        return u * y + 0.25 * u**2


class HingeLoss(Loss):
    """max(0, 1 - y z), LIBSVM's C-SVC loss; not differentiable at the margin."""

    name = "hinge"

    def value(self, z, y):
        return np.maximum(0.0, 1.0 - y * z)

    def derivative(self, z, y):
        return np.where(y * z < 1.0, -y, 0.0)

    def clip_dual(self, u, y):
        return y * np.clip(y * u, -1.0, 0.0)

    def conjugate(self, u, y):
        return u * y


class LogisticLoss(SmoothLoss):
    """log(1 + exp(-y z))."""

    name, curvature = "logistic", 0.25

    def value(self, z, y):
        return np.logaddexp(0.0, -y * z)

    def derivative(self, z, y):
        return -y * _sigmoid(-y * z)

    def second_derivative(self, z, y):
        p = _sigmoid(y * z)
        return p * (1.0 - p)

    def clip_dual(self, u, y):
        return y * np.clip(y * u, -1.0, 0.0)

    def conjugate(self, u, y):
        return _xlogx(-u * y) + _xlogx(1.0 + u * y)


class EpsilonInsensitiveLoss(Loss):
    """max(0, |z - y| - epsilon), the loss of support vector regression; the subgradient is 0 within
    the tube and on its boundary.
    """

    def __init__(self, epsilon: float, name: str = "epsilon_insensitive") -> None:
        self.epsilon = epsilon
        self.name = name

    def value(self, z, y):
        return np.maximum(0.0, np.abs(z - y) - self.epsilon)

    def derivative(self, z, y):
        return np.where(np.abs(z - y) > self.epsilon, np.sign(z - y), 0.0)

    def clip_dual(self, u, y):
        return np.clip(u, -1.0, 1.0)

    def conjugate(self, u, y):
        return u * y + self.epsilon * np.abs(u)


class SoftmaxLoss(Loss):
    """log sum_c exp(z_c) - z_y for the k predictions z (n, k) of a row and y (n, k) with a 1 at its
    class.

    Value and conjugate are (n,), derivative and clip_dual (n, k); the curvature is the largest
    eigenvalue. u is in the conjugate's domain when u + y is a distribution over the classes.
    """

    name, curvature = "softmax", 0.5

    def value(self, z, y):
        top = z.max(axis=-1, keepdims=True)
        return np.log(np.exp(z - top).sum(axis=-1)) + top[..., 0] - (z * y).sum(axis=-1)

    def derivative(self, z, y):
        shares = np.exp(z - z.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return shares - y

    def clip_dual(self, u, y):
        return _onto_simplex(u, y)

    def conjugate(self, u, y):
        return _xlogx(u + y).sum(axis=-1)


def _onto_simplex(u: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The nearest point whose sum with y is a distribution (Euclidean projection, by sorting)."""
    p = u + y
    descending = -np.sort(-p, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - 1.0) / np.arange(1, p.shape[-1] + 1)
    last = np.sum(descending > excess, axis=-1, keepdims=True) - 1
    return np.maximum(p - np.take_along_axis(excess, last, axis=-1), 0.0) - y


# The tube of epsilon_insensitive, by default.
EPSILON = 0.1
Squared = SquaredLoss()
SquaredHinge = SquaredHingeLoss()
Hinge = HingeLoss()
Logistic = LogisticLoss()
Softmax = SoftmaxLoss()
Absolute = EpsilonInsensitiveLoss(0.0, "absolute")  # |z - y|


def times(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The weighted losses of rows, (n,) or (n, k): losses of these shapes times the rows' weights
    (n,); None for ones.
    """
    return values if weights is None else (values.T * weights).T


def labels_and_weights(loss: Loss, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(labels, weights) of the targets y of a loss: y and ones, or for a Weighted loss its
    signs and sizes.
    """
    return (np.sign(y), np.abs(y)) if isinstance(loss, Weighted) else (y, np.ones_like(y))


# The elementwise losses; `get_loss` also knows softmax.
LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Squared, SquaredHinge, Hinge, Logistic, Absolute, EpsilonInsensitiveLoss(EPSILON))
}

# Losses for regression; the others are for classification.
OF_NUMBERS = ("squared", "absolute", "epsilon_insensitive")


def get_loss(name: str, epsilon: float | None = None) -> Loss:
    """The loss of that name; epsilon: half width of the tube of epsilon_insensitive, 0.1 by
    default.
    """
    if name == "epsilon_insensitive" and epsilon is not None:
        return EpsilonInsensitiveLoss(float(epsilon))
    known = LOSSES | {Softmax.name: Softmax}
    return known[name]
