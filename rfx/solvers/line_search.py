"""The step along the direction of a Newton method, without and with an l1 term."""

from __future__ import annotations

import numpy as np

from rfx.losses import Loss, SmoothLoss


def line_minimum(
    loss: SmoothLoss,
    f: np.ndarray,
    change: np.ndarray,
    y: np.ndarray,
    linear: float,
    quadratic: float,
) -> float:
    """The t >= 0 that minimises t linear + t^2 quadratic / 2 + sum L(f + t change, y), with descent
    at t = 0.

    Newton's method in a bracket, with bisection outside of it.
    """

    def slope(t: float) -> float:
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


def l1_line_search(
    loss: Loss,
    y: np.ndarray,
    f: np.ndarray,
    along: np.ndarray,
    x: np.ndarray,
    p: np.ndarray,
    lam: float,
) -> float:
    """Step t >= 0 that minimises lam ||x + t p||_1 + sum L(f + t along, y); 1 if that is nearly as
    good.

    x, p: (k,) weights and their change; f, along: (N,) decision values and theirs. 0 if the
    direction does not descend.
    """

    def slope(t: float, side: float = 1.0) -> float:
        moved = x + t * p
        sign = np.where(moved != 0, np.sign(moved), side * np.sign(p))
        return float(lam * (sign @ p) + along @ loss.derivative(f + t * along, y))

    def value(t: float) -> float:
        return float(lam * np.abs(x + t * p).sum() + loss.value(f + t * along, y).sum())

    first = slope(0.0)
    if not first < 0:
        return 0.0
    # Many coordinates reach zero exactly at t = 1, where the slope jumps: both sides matter.
    if slope(1.0, -1.0) <= -0.5 * first and slope(1.0) >= 0.5 * first:
        before = value(0.0)
        if value(1.0) <= before + 0.1 * first + 1e-14 * before:
            return 1.0
    low, high = 0.0, 1.0
    while slope(high) < 0 and high < 16:
        low, high = high, 2 * high
    while low == 0.0 or high - low > 0.02 * high:
        middle = 0.5 * (low + high)
        if middle < 1e-12:
            return 0.0
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return low
