"""The dual of an L1 problem: the value of a feasible point, and the columns that a duality gap excludes.

For min_w lam ||w||_1 + sum_n L(z_n . w, y_n) the dual is max_u -sum_n L*(u_n, y_n) with |z_j' u| <= lam for every column j.
"""

import numpy as np

from rfx.errors import DataError

# Columns of which the norm is looked at before that of all is.
_SAMPLE = 16
# The gap is not known more exactly than this part of the objective.
_ROUNDING = 1e-12


def best_dual(loss, direction, y, lam, gradient) -> tuple[float, float]:
    """(value, s) of the best feasible u = s * direction, where gradient = Z' direction and direction is a loss's derivative (N,).

    For the squared and the squared hinge loss the best s is in closed form; for the logistic loss s <= 1 keeps u in
    the conjugate's domain. Raises DataError when the gradient is not finite.
    """
    largest = np.max(np.abs(gradient), initial=0.0)
    if not np.isfinite(largest):
        raise DataError("a feature, a target or a weight is nan, infinite or too large: the gradient of the losses is not finite")
    bound = lam / largest if largest > 0 else np.inf
    if loss.name == "logistic":
        s = min(1.0, bound)
    else:
        quadratic = (1.0 if loss.name == "squared" else 0.5) * (direction @ direction)
        s = min(bound, max(0.0, -(direction @ y) / quadratic)) if quadratic > 0 else 1.0
    return -float(loss.conjugate(loss.clip_dual(s * direction, y), y).sum()), s


class GapSafeScreen:
    """Columns that have no weight at the optimum, as a duality gap shows (Ndiaye, Fercoq, Gramfort and Salmon 2017, Theorem 6).

    A loss of curvature at most c has a dual that is 1/c-strongly concave: the optimal u is within r = sqrt(2 c gap) of any
    feasible u, so that |z_j' u| + r ||z_j|| < lam leaves w_j = 0. Norms of all columns are computed when a sample of them shows
    that the test will exclude enough; a column of random features is long, and that is late, near the end of a precise solution.
    """

    def __init__(self, design, lam, loss):
        self.design, self.lam, self.curvature = design, lam, loss.curvature
        self.typical = self.norms = None

    def remaining(self, correlations, gap, objective, limit):
        """Sorted numbers of the columns that may have a weight, or None where they are more than `limit`.

        correlations: Z' u (D,) of a feasible u. gap: objective - dual value of this u.
        """
        radius = np.sqrt(2 * self.curvature * (max(gap, 0.0) + _ROUNDING * objective))
        left = self.lam - np.abs(correlations)
        if self.norms is None:
            if self.typical is None:
                some = np.linspace(0, len(left) - 1, min(_SAMPLE, len(left))).astype(int)
                self.typical = np.median(self.design.norms(np.unique(some)))
            if np.count_nonzero(left <= radius * self.typical) > limit:
                return None
            self.norms = self.design.norms(np.arange(len(left)))
        # Once excluded, for good.
        self.norms[left > radius * self.norms] = 0.0
        columns = np.flatnonzero(self.norms)
        return columns if len(columns) <= limit else None
