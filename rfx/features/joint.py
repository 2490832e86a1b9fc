"""The optimal distribution over a pool for given weights: one step of learning features and weights
together.

Over weights w of unscaled features, the penalty lam/2 sum_m w_m^2 / q_m is jointly convex in w and
q: with w fixed, q minimises the sum of w_m^2 / q_m within the chi-square ball; with q fixed, w is
the solution with features q_m^(1/2) phi_m.
"""

import math

import numpy as np

from rfx import lazy
from rfx.features.divergence import distance

_STEPS = 100


def best_distribution(w, rho: float) -> np.ndarray:
    """The q (N,) that minimises the sum of w_m^2 / q_m over probabilities with N ||q - 1/N||^2 <=
    rho.

    w: (N,) weights, not all zero. Without the ball q is proportional to |w|; if that is outside,
    every q_m > 0 solves lam q^3 + mu q^2 = w^2, with lam from the ball and mu from the sum.
    """
    sizes = np.abs(np.asarray(w, dtype=np.float64))
    sizes = sizes / sizes.sum()
    if rho <= 0:
        return np.full(sizes.size, 1 / sizes.size)
    if distance(sizes) <= rho:
        return sizes

    def found(log_lam):
        lam = math.exp(log_lam)
        # at -lam each term alone is one or more; at 1 each is at most its size
        mu = lazy.optimize.brentq(
            lambda mu: _roots(sizes, lam, mu).sum() - 1, -lam, 1.0, xtol=1e-15, rtol=1e-14
        )
        q = _roots(sizes, lam, mu)
        return q / q.sum()

    low = high = math.log(1 / sizes.size)
    while distance(found(high)) > rho:
        high += 2
    while distance(found(low)) <= rho:
        low -= 2
    return found(lazy.optimize.brentq(lambda t: distance(found(t)) - rho, low, high, xtol=1e-12))


def _roots(sizes, lam, mu):
    """The largest q >= 0 of each lam q^3 + mu q^2 = size^2, by Newton's method from the right,
    where the cubic is convex.
    """
    floor = max(0.0, -mu / lam)
    q = floor + np.cbrt(sizes**2 / lam)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            step = (lam * q**3 + mu * q**2 - sizes**2) / (3 * lam * q**2 + 2 * mu * q)
            step[~np.isfinite(step)] = 0.0
            q = np.maximum(q - step, 0.0)
            if np.all(np.abs(step) <= 1e-15 * (1e-3 + q)):
                break
    return q
