"""What the Newton methods for L2-regularised machines share: the step along a direction, and a dual gap."""

import numpy as np


def line_minimum(loss, f, change, y, linear: float, quadratic: float) -> float:
    """The t >= 0 where t linear + t^2 quadratic / 2 + sum L(f + t change, y) is least, a descent direction at t = 0.

    Newton's method in a bracket, bisection where it leaves.
    """

    def slope(t):
        return linear + t * quadratic + float(loss.derivative(f + t * change, y) @ change)

    low, high, first = 0.0, 1.0, abs(slope(0.0))
    while slope(high) < 0 and high < 2.0**40:
        low, high = high, 2 * high
    t = 1.0 if high == 1.0 else 0.5 * (low + high)
    for _ in range(100):
        value = slope(t)
        if abs(value) <= 1e-6 * first or high - low <= 1e-12 * high:
            break
        low, high = (t, high) if value < 0 else (low, t)
        curvature = quadratic + float(loss.second_derivative(f + t * change, y) @ change**2)
        t = t - value / curvature if curvature > 0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
    return t


def row_dual_gap(kernel, a, f, y, lam, loss) -> float:
    """The gap of the dual point -lam a, made feasible, where f = kernel(a) (n,) is the decision of coefficients a (n,) over rows.

    kernel: v -> K v for the kernel matrix of the rows. y: (n,).
    """
    u = loss.clip_dual(-lam * a, y)
    left = lam * a + u
    fenchel = float(np.sum(loss.value(f, y) + loss.conjugate(u, y) - u * f))
    return max(0.0, fenchel) + (float(left @ kernel(left)) / (2 * lam) if left.any() else 0.0)
