"""Functions missing from some languages, as polynomials with float64 accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import ndtri

from rfx.data.transforms.columns import EDGE

# Beyond that distance of a probability from 1/2, the normal quantile is a polynomial of the square
# root of the tail's logarithm.
CENTRAL = 0.4
# Coefficients for an error of about 1e-13.
_TERMS = 26


def _fitted(function: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> np.ndarray:
    """Coefficients, in ascending powers of u in -1 .. 1, of a smooth function of t = middle + half
    u in low .. high, from interpolation at Chebyshev nodes.
    """
    series = np.polynomial.Chebyshev.interpolate(function, _TERMS - 1, domain=[low, high])
    return np.polynomial.chebyshev.cheb2poly(series.coef)


@cache
def polynomials() -> dict[str, tuple[float, float, np.ndarray]]:
    """(low, high, coefficients) of each, for t in low .. high; see `normal_quantile` and `arccos`
    for their use.
    """
    tail_ends = math.sqrt(-math.log(0.5 - CENTRAL)), math.sqrt(-math.log(EDGE / 2))
    functions = {
        "central": (_central, 0.0, CENTRAL**2),
        "tail": (_tail, *tail_ends),
        "arccos": (_arccos, 0.0, 1.0),
    }
    return {
        name: (low, high, _fitted(function, low, high))
        for name, (function, low, high) in functions.items()
    }


def _central(t: np.ndarray) -> np.ndarray:
    """ndtri(1/2 + q) / q of t = q^2."""
    q = np.sqrt(np.maximum(t, 1e-12))
    return ndtri(0.5 + q) / q


def _tail(t: np.ndarray) -> np.ndarray:
    """-ndtri(p) of t = the square root of -log p."""
    return -ndtri(np.exp(-(t**2)))


def _arccos(t: np.ndarray) -> np.ndarray:
    """arccos(t) / sqrt(1 - t)."""
    near = np.minimum(t, 1.0 - 1e-12)
    return np.arccos(near) / np.sqrt(1.0 - near)
