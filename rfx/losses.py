"""Losses L(z, y) of a prediction z: value, derivative, curvature and convex conjugate.

All functions are elementwise over arrays of the same shape, sums are left to the caller. Classification losses take
labels y in {-1, +1}. The conjugate is L*(u, y) = sup_z u z - L(z, y), infinite outside `clip_dual`'s range.
"""

import numpy as np

from rfx.errors import UsageError


class Squared:
    """1/2 (z - y)^2 (Yen et al. 2014, section 2; curvature 1)."""

    name = "squared"
    curvature = 1.0

    @staticmethod
    def value(z, y):
        return 0.5 * (z - y) ** 2

    @staticmethod
    def derivative(z, y):
        return z - y

    @staticmethod
    def second_derivative(z, y):
        return np.ones_like(z)

    @staticmethod
    def clip_dual(u, y):
        return u

    @staticmethod
    def conjugate(u, y):
        return 0.5 * u**2 + u * y


class SquaredHinge:
    """max(0, 1 - y z)^2, without a factor 1/2: curvature 2, LIBLINEAR's `-s 2` and `-s 5` (SPEC 1a)."""

    name = "squared_hinge"
    curvature = 2.0

    @staticmethod
    def value(z, y):
        return np.maximum(0.0, 1.0 - y * z) ** 2

    @staticmethod
    def derivative(z, y):
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    @staticmethod
    def second_derivative(z, y):
        return np.where(y * z < 1.0, 2.0, 0.0).astype(np.asarray(z).dtype)

    @staticmethod
    def clip_dual(u, y):
        return y * np.minimum(0.0, y * u)

    @staticmethod
    def conjugate(u, y):
        return u * y + 0.25 * u**2


class Hinge:
    """max(0, 1 - y z), LIBSVM's C-SVC loss; not differentiable at the margin."""

    name = "hinge"
    curvature = np.inf

    @staticmethod
    def value(z, y):
        return np.maximum(0.0, 1.0 - y * z)

    @staticmethod
    def derivative(z, y):
        return np.where(y * z < 1.0, -y, 0.0)

    @staticmethod
    def clip_dual(u, y):
        return y * np.clip(y * u, -1.0, 0.0)

    @staticmethod
    def conjugate(u, y):
        return u * y


class Logistic:
    """log(1 + exp(-y z)), curvature 1/4."""

    name = "logistic"
    curvature = 0.25

    @staticmethod
    def value(z, y):
        return np.logaddexp(0.0, -y * z)

    @staticmethod
    def derivative(z, y):
        return -y * _sigmoid(-y * z)

    @staticmethod
    def second_derivative(z, y):
        p = _sigmoid(y * z)
        return p * (1.0 - p)

    @staticmethod
    def clip_dual(u, y):
        return y * np.clip(y * u, -1.0, 0.0)

    @staticmethod
    def conjugate(u, y):
        v = -u * y
        return _xlogx(v) + _xlogx(1.0 - v)


def _sigmoid(t):
    return 0.5 * (1.0 + np.tanh(0.5 * t))


def _xlogx(v):
    return np.where(v > 0, v * np.log(np.where(v > 0, v, 1.0)), 0.0)


LOSSES = {loss.name: loss for loss in (Squared, SquaredHinge, Hinge, Logistic)}


def get_loss(name: str):
    """The loss of that name.

    Raises UsageError naming the known losses.
    """
    try:
        return LOSSES[name]
    except KeyError:
        raise UsageError(f"loss {name!r} is unknown; choose one of {', '.join(LOSSES)}") from None
