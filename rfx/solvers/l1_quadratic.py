"""min_x lam ||x||_1 + q'(x - x0) + 1/2 (x - x0)' H (x - x0) for a few thousand unknowns with H at hand.

Coordinate descent finds the signs, Newton steps on the face of these signs (Cholesky) do what it can't when H is
ill-conditioned: nearly dependent random features give condition numbers of 1e6 and more.
"""

import numpy as np
from numba import njit
from scipy import linalg

# Relative size of what is added to the diagonal of a face's Hessian: float32 products leave noise of this order.
RIDGE = 1e-7


def solve_quadratic(H, q, x, lam, tol, max_rounds=50, passes=5):
    """Minimise over x, starting at x, where q is the gradient of the smooth part at x.

    H (m, m) is the leading corner of a C-order float64 array of at least k = len(x) rows; q and x are (k,) float64
    and are changed in place. Stops when the largest KKT violation is at most `tol`, or after `max_rounds` rounds of
    `passes` passes of coordinate descent and one Newton step. Returns (violation, rounds).
    """
    k = len(x)
    for turn in range(max_rounds):
        violation = _descend(H, q, x, lam, passes, tol)
        if violation <= tol:
            return violation, turn
        _newton_faces(H[:k, :k], q, x, lam)
    return kkt_violation(q, x, lam), max_rounds


def kkt_violation(q, x, lam):
    """Largest distance of -q to lam * subdifferential of ||x||_1."""
    if not len(x):
        return 0.0
    at_zero = np.maximum(np.abs(q) - lam, 0.0)
    return float(np.max(np.where(x == 0, at_zero, np.abs(q + lam * np.sign(x)))))


def _newton_faces(H, q, x, lam, attempts=10):
    """Newton steps on the face of the present signs, dropping coordinates that want to change sign."""
    for _ in range(attempts):
        face = np.flatnonzero(x)
        if not len(face):
            return
        rhs = q[face] + lam * np.sign(x[face])
        sub = H[np.ix_(face, face)]
        diagonal = np.arange(len(face))
        sub[diagonal, diagonal] *= 1.0 + RIDGE
        sub[diagonal, diagonal] += RIDGE * sub[diagonal, diagonal].max()
        try:
            factor = linalg.cho_factor(sub, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return
        step = -linalg.cho_solve(factor, rhs, check_finite=False)
        crossed = np.sign(x[face] + step) != np.sign(x[face])
        along = H[:, face] @ step
        if not crossed.any():
            x[face] += step
            q += along
            return
        # Past zeros: clip them there if that lowers the objective, else go as far as the segment allows.
        clipped = np.where(crossed, -x[face], step)
        moved = H[:, face] @ clipped
        gain = q[face] @ clipped + 0.5 * clipped @ moved[face] + lam * (np.abs(x[face] + clipped).sum() - np.abs(x[face]).sum())
        t, best = segment_minimum(x[face], step, q[face] @ step, step @ along[face], lam)
        if gain <= best:
            x[face] = np.where(crossed, 0.0, x[face] + step)
            q += moved
        else:
            x[face] += t * step
            q += t * along


def segment_minimum(x, p, slope, curvature, lam):
    """argmin over t in [0, 1] of lam ||x + t p||_1 + slope t + curvature t^2 / 2, and its change from t = 0.

    The breakpoints, where coordinates change sign, are walked in order until the slope turns.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        breaks = np.where(p != 0, -x / p, np.inf)
    inside = np.flatnonzero((breaks > 0) & (breaks < 1))
    inside = inside[np.argsort(breaks[inside])]
    rate = slope + lam * np.sum(np.where(x != 0, np.sign(x), np.sign(p)) * p)
    # Slope of the l1 term after each break; the smooth part adds curvature * t.
    rates = rate + np.concatenate([[0.0], np.cumsum(2.0 * lam * np.abs(p[inside]))])
    ends = np.concatenate([breaks[inside], [1.0]])
    starts = np.concatenate([[0.0], breaks[inside]])
    last = np.argmax((rates + curvature * ends >= 0) | (np.arange(len(ends)) == len(ends) - 1))
    t = 0.0 if curvature <= 0 and rates[last] >= 0 else 1.0
    if curvature > 0:
        t = float(np.clip(-rates[last] / curvature, starts[last], ends[last]))
    change = slope * t + 0.5 * curvature * t * t + lam * (np.abs(x + t * p).sum() - np.abs(x).sum())
    return t, float(change)


@njit(cache=True, nogil=True)
def _descend(H, q, x, lam, passes, tol):
    """Up to `passes` passes of cyclic coordinate descent; returns the largest KKT violation met in the last."""
    k = len(x)
    worst = 0.0
    for _ in range(passes):
        worst = 0.0
        for j in range(k):
            old = x[j]
            if old == 0.0:
                violation = abs(q[j]) - lam
            else:
                violation = abs(q[j] + (lam if old > 0 else -lam))
            worst = max(worst, violation)
            curvature = H[j, j]
            if violation <= 0.0 or curvature <= 0.0:
                continue
            target = old - q[j] / curvature
            threshold = lam / curvature
            if target > threshold:
                new = target - threshold
            elif target < -threshold:
                new = target + threshold
            else:
                new = 0.0
            if new != old:
                delta = new - old
                x[j] = new
                for i in range(k):
                    q[i] += H[j, i] * delta
        if worst <= tol:
            break
    return worst
