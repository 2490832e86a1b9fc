"""Conjugate gradients for several right-hand sides at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rfx.parallel import Late


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    residual: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    enough: Callable[[np.ndarray, np.ndarray], Any],
    max_iter: int,
    deadline: float | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """x with H x close to `residual`, from x = 0, all columns at once (Polak-Ribiere form).

    product: p -> H p. precondition: r -> M^-1 r; the flexible form of beta keeps the directions
    conjugate when M^-1 is only symmetric up to float32 rounding (Notay 2000). enough(x, r): whether
    the residual (n,) or (n, k) is small enough. deadline: value of time.monotonic() after which no
    new step starts; a product that raises Late ends it too. Returns (x, residual, iterations).
    """
    r = residual.copy()
    x = np.zeros_like(r)
    z = precondition(r)
    p, rz = z, dots(r, z)
    for iteration in range(1, max_iter + 1):
        try:
            q = product(p)
        except Late:
            return x, r, iteration - 1
        step = ratio(rz, dots(p, q))
        x += step * p
        before = r
        r = r - step * q
        if (
            enough(x, r)
            or not np.any(step)
            or (deadline is not None and time.monotonic() >= deadline)
        ):
            return x, r, iteration
        z = precondition(r)
        beta = np.maximum(0.0, ratio(dots(r - before, z), rz))
        p, rz = z + beta * p, dots(r, z)
    return x, r, max_iter


def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a.b, column by column."""
    return np.einsum("i...,i...->...", a, b)


def ratio(a: Any, b: Any) -> np.ndarray:
    """a / b, and 0 if b is not positive: a column that is solved, or dominated by rounding."""
    return np.where(b > 0, a / np.where(b > 0, b, 1.0), 0.0)
