"""min_x lam ||x||_1 + q'(x - x0) + 1/2 (x - x0)' H (x - x0) for a few thousand unknowns with H at
hand.

Three methods, from cheap to reliable: coordinate descent; Newton steps on the face of the current
signs; an interior-point method. Nearly dependent random features give condition numbers of 1e8,
where the first is very slow and the second fails after thousands of sign changes, while the third
needs ten Cholesky factors.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from rfx.compiled import njit
from rfx.operators.cholesky import positive, solve
from rfx.operators.corners import corner
from rfx.solvers.l1.interior import interior_point

# Relative size of the addition to the diagonal of a face's Hessian: float32 products leave noise of
# this order.
RIDGE = 1e-7


def solve_quadratic(
    H: np.ndarray, q: np.ndarray, x: np.ndarray, lam: float, tol: float, passes: int = 20
) -> tuple[float, int]:
    """Minimise over x, starting at x, where q is the gradient of the smooth part at x.

    H is a C-order float64 array whose leading (k, k) corner is used, k = len(x); q and x are (k,)
    float64 and are changed in place. Ends when `residual` is at most `tol` or the interior-point
    method can't improve. Returns (residual, number of Cholesky factors).
    """
    violation = _descend(H, q, x, lam, passes, tol)
    if violation <= tol:
        return violation, 0
    square = H[: len(x), : len(x)]
    factors = newton_faces(square, q, x, lam)
    violation = _descend(H, q, x, lam, passes, tol)
    if violation <= tol:
        return violation, factors

    def accept(candidate: np.ndarray, gradient: np.ndarray) -> bool:
        """Whether a candidate of the interior-point method is good enough, after a few passes of
        coordinate descent.
        """
        if residual(H, gradient, candidate, lam) > 10 * tol:
            return False
        return _descend(H, gradient, candidate, lam, passes, tol) <= tol

    diagonal = np.diagonal(square).copy()
    try:
        # Adding to the diagonal is a proximal term: a shorter step, but a descending one.
        attempts = make_definite(square)
        candidate, gradient, more = interior_point(square, q, x, lam, accept)
        x[:], q[:] = candidate, gradient
        return residual(H, q, x, lam), factors + attempts + more
    finally:
        np.fill_diagonal(square, diagonal)


def make_definite(H: np.ndarray) -> int:
    """Add to the diagonal of H (k, k) the smallest of a few values for which a Cholesky factor
    exists; returns the number of factors tried.

    Nothing is added if RIDGE is enough. Noise of float32 products makes a nearly singular H
    indefinite by a fraction of its largest eigenvalue, for example with fewer rows inside the
    margin than columns: no interior-point method converges there.
    """
    diagonal = np.diagonal(H).copy()
    for attempt, share in enumerate((RIDGE, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2), start=1):  # noqa: B007
        np.fill_diagonal(H, diagonal + share * diagonal.max(initial=0.0))
        try:
            positive(H.T.copy(order="F"))
            break
        except linalg.LinAlgError:
            continue
    if attempt == 1:
        np.fill_diagonal(H, diagonal)
    return attempt


def residual(H: np.ndarray, q: np.ndarray, x: np.ndarray, lam: float) -> float:
    """Largest change, in units of the gradient, that one step of coordinate descent would make: max
    H_jj |dx_j|.

    Zero only at the minimiser. The KKT violation, in contrast, is 2 lam for a weight of 1e-12 with
    the wrong sign.
    """
    curvature = np.diagonal(H)[: len(x)]
    target = curvature * x - q
    return float(
        np.max(
            np.abs(np.sign(target) * np.maximum(np.abs(target) - lam, 0.0) - curvature * x),
            initial=0.0,
        )
    )


def newton_faces(H: np.ndarray, q: np.ndarray, x: np.ndarray, lam: float, attempts: int = 4) -> int:
    """Newton steps on the face of the current signs, as long as few coordinates change theirs.

    Changes x and q in place; returns the number of Cholesky factors.
    """
    for attempt in range(attempts):
        face = np.flatnonzero(x)
        if not len(face):
            return attempt
        sub = corner(H, face)
        diagonal = np.arange(len(face))
        sub[diagonal, diagonal] += RIDGE * sub[diagonal, diagonal].max()
        try:
            factor = positive(sub.T)
        except linalg.LinAlgError:
            return attempt + 1
        step = -solve(factor, q[face] + lam * np.sign(x[face]))
        full = np.zeros(len(x))
        full[face] = step
        along = H @ full
        crossed = np.flatnonzero(np.sign(x[face] + step) != np.sign(x[face]))
        if not len(crossed):
            x += full
            q += along
            return attempt + 1
        t = segment_minimum(x[face], step, float(q[face] @ step), float(step @ along[face]), lam)
        x += t * full
        q += t * along
        if len(crossed) > 4 + len(face) // 50:
            return attempt + 1
        # The few that crossed go to zero; coordinate descent restores them if that was wrong.
        full[:] = 0.0
        full[face[crossed]] = -x[face[crossed]]
        x[face[crossed]] = 0.0
        q += H @ full
    return attempts


def segment_minimum(
    x: np.ndarray, p: np.ndarray, slope: float, curvature: float, lam: float
) -> float:
    """argmin over t in [0, 1] of lam ||x + t p||_1 + slope t + curvature t^2 / 2.

    The breakpoints, where coordinates change sign, are processed in order until the slope changes
    sign.
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
    if curvature > 0:
        return float(np.clip(-rates[last] / curvature, starts[last], ends[last]))
    return float(ends[last] if rates[last] < 0 else starts[last])


@njit(cache=True, nogil=True)
def _descend(
    H: np.ndarray, q: np.ndarray, x: np.ndarray, lam: float, passes: int, tol: float
) -> float:
    """Up to `passes` passes of cyclic coordinate descent; returns the largest step, times
    its curvature, of the last.
    """
    k = len(x)
    worst = 0.0
    for _ in range(passes):
        worst = 0.0
        for j in range(k):
            old = x[j]
            curvature = H[j, j]
            if curvature <= 0.0:
                continue
            target = curvature * old - q[j]
            if target > lam:
                new = (target - lam) / curvature
            elif target < -lam:
                new = (target + lam) / curvature
            else:
                new = 0.0
            if new != old:
                delta = new - old
                worst = max(worst, curvature * abs(delta))
                x[j] = new
                for i in range(k):
                    q[i] += H[j, i] * delta
        if worst <= tol:
            break
    return worst
