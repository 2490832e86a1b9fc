"""Losses L(z, y) of a prediction z: value, derivative, curvature and convex conjugate.

All functions are elementwise over arrays of the same shape and leave sums to the caller; only
softmax uses the k predictions of a row together. Classification losses take labels y in {-1, +1};
softmax takes rows with a 1 at the class and 0 elsewhere. The derivative of a loss with a corner is
a subgradient there. The conjugate is L*(u, y) = sup_z u z - L(z, y), infinite outside `clip_dual`'s
range.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rfx.errors import UsageError


class Loss(Protocol):
    """The loss of one row and output, elementwise over arrays of one shape."""

    name: str

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...

    def derivative(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...

    def clip_dual(self, u: np.ndarray, y: np.ndarray) -> np.ndarray: ...

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray: ...


class SmoothLoss(Loss, Protocol):
    """A loss with a second derivative, as required by Newton's method."""

    def second_derivative(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...


class BoundedLoss(Loss, Protocol):
    """A loss whose second derivative is at most `curvature`, infinite without a bound: all except
    Weighted ones.
    """

    curvature: float


class Squared:
    """1/2 (z - y)^2 (Yen et al. 2014, section 2; curvature 1)."""

    name = "squared"
    curvature = 1.0

    @staticmethod
    def value(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 0.5 * (z - y) ** 2

    @staticmethod
    def derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return z - y

    @staticmethod
    def second_derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.ones_like(z)

    @staticmethod
    def clip_dual(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return u

    @staticmethod
    def conjugate(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 0.5 * u**2 + u * y


class SquaredHinge:
    """max(0, 1 - y z)^2, without a factor 1/2: curvature 2, LIBLINEAR's `-s 2` and `-s 5`
    (docs/papers.md).
    """

    name = "squared_hinge"
    curvature = 2.0

    @staticmethod
    def value(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - y * z) ** 2

    @staticmethod
    def derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    @staticmethod
    def second_derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        # z may be a vector with remote parts: its type is known without its values
        return np.where(y * z < 1.0, 2.0, 0.0).astype(getattr(z, "dtype", np.float64))

    @staticmethod
    def clip_dual(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y * np.minimum(0.0, y * u)

    @staticmethod
    def conjugate(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return u * y + 0.25 * u**2


class Hinge:
    """max(0, 1 - y z), LIBSVM's C-SVC loss; not differentiable at the margin."""

    name = "hinge"
    curvature = np.inf

    @staticmethod
    def value(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - y * z)

    @staticmethod
    def derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(y * z < 1.0, -y, 0.0)

    @staticmethod
    def clip_dual(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y * np.clip(y * u, -1.0, 0.0)

    @staticmethod
    def conjugate(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return u * y


class Logistic:
    """log(1 + exp(-y z)), curvature 1/4."""

    name = "logistic"
    curvature = 0.25
    clip_dual = staticmethod(Hinge.clip_dual)

    @staticmethod
    def value(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -y * z)

    @staticmethod
    def derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * _sigmoid(-y * z)

    @staticmethod
    def second_derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        p = _sigmoid(y * z)
        return p * (1.0 - p)

    @staticmethod
    def conjugate(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        v = -u * y
        return _xlogx(v) + _xlogx(1.0 - v)


class EpsilonInsensitive:
    """max(0, |z - y| - epsilon), the loss of support vector regression; the subgradient is 0 within
    the tube and on its boundary.
    """

    name = "epsilon_insensitive"
    curvature = np.inf
    epsilon = 0.1

    def __init__(self, epsilon: float) -> None:
        self.epsilon = float(epsilon)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, np.abs(z - y) - self.epsilon)

    def derivative(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(np.abs(z - y) > self.epsilon, np.sign(z - y), 0.0)

    def clip_dual(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.clip(u, -1.0, 1.0)

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return u * y + self.epsilon * np.abs(u)


class Absolute(EpsilonInsensitive):
    """|z - y|; not differentiable at the target, where the subgradient is 0."""

    name = "absolute"

    def __init__(self) -> None:
        super().__init__(0.0)


class Softmax:
    """log sum_c exp(z_c) - z_y for the k predictions z (n, k) of a row and y (n, k) with a 1 at its
    class.

    value and conjugate are (n,), derivative and clip_dual (n, k). The largest eigenvalue of the
    second derivative is at most 1/2. u is in the conjugate's domain when u + y is a distribution
    over the classes.
    """

    name = "softmax"
    curvature = 0.5

    @staticmethod
    def value(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        top = z.max(axis=-1, keepdims=True)
        return np.log(np.exp(z - top).sum(axis=-1)) + top[..., 0] - (z * y).sum(axis=-1)

    @staticmethod
    def derivative(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        shares = np.exp(z - z.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return shares - y

    @staticmethod
    def clip_dual(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The nearest point whose sum with y is a distribution (Euclidean projection onto the
        simplex, by sorting).
        """
        p = u + y
        descending = -np.sort(-p, axis=-1)
        excess = (np.cumsum(descending, axis=-1) - 1.0) / np.arange(1, p.shape[-1] + 1)
        last = np.sum(descending > excess, axis=-1, keepdims=True) - 1
        return np.maximum(p - np.take_along_axis(excess, last, axis=-1), 0.0) - y

    @staticmethod
    def conjugate(u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return _xlogx(u + y).sum(axis=-1)


class Weighted:
    """A classification loss with a weight for each row: w L(z, t) for y = w t, a label t in {-1,
    +1} times a weight w > 0.

    So a row's weight stays with its label when rows are selected. For the squared loss, whose
    targets are arbitrary numbers, rows are scaled instead (rfx.operators.scaled). The conjugate of
    w L at u is w L*(u / w).
    """

    def __init__(self, loss: SmoothLoss) -> None:
        self.base, self.name = loss, loss.name

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(y) * self.base.value(z, np.sign(y))

    def derivative(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(y) * self.base.derivative(z, np.sign(y))

    def second_derivative(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(y) * self.base.second_derivative(z, np.sign(y))

    def clip_dual(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(y) * self.base.clip_dual(u / np.abs(y), np.sign(y))

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(y) * self.base.conjugate(u / np.abs(y), np.sign(y))


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


def _sigmoid(t: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * t))


def _xlogx(v: np.ndarray) -> np.ndarray:
    return np.where(v > 0, v * np.log(np.where(v > 0, v, 1.0)), 0.0)


# The elementwise losses; `get_loss` also knows softmax.
LOSSES: dict[str, BoundedLoss] = {
    loss.name: loss
    for loss in (
        Squared,
        SquaredHinge,
        Hinge,
        Logistic,
        Absolute(),
        EpsilonInsensitive(EpsilonInsensitive.epsilon),
    )
}

# Losses for regression; the others are for classification.
OF_NUMBERS = (Squared.name, Absolute.name, EpsilonInsensitive.name)


def get_loss(name: str, epsilon: float | None = None) -> BoundedLoss:
    """The loss of that name; epsilon: half width of the tube of epsilon_insensitive, 0.1 by
    default.

    Raises UsageError with the known losses.
    """
    if name == EpsilonInsensitive.name and epsilon is not None:
        return EpsilonInsensitive(epsilon)
    known = LOSSES | {Softmax.name: Softmax}
    try:
        return known[name]
    except KeyError:
        raise UsageError(f"loss {name!r} is unknown; choose one of {', '.join(known)}") from None
