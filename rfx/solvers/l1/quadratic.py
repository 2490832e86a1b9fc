"""Quadratic problems with an L1 term: coordinate descent, Newton steps, and interior-point
methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
from scipy import linalg

from rfx.compiled import njit
from rfx.operators.linear_algebra import corner, positive, solve
from rfx.operators.matrix import Matrix
from rfx.parallel import check_time
from rfx.solvers.base import soft_threshold

# ----------------------------------------------------------------------
# Interior-point methods for an l1 term plus a quadratic whose Hessian is too ill-conditioned for
# other methods, or plus the squared hinge, when rows enter and leave the margin too fast for a
# quadratic model.

# Coordinates whose barrier exceeds their curvature by this factor are excluded from the Cholesky
# factor.
DEAD = 1e5
# Maximum iterations of `interior_point`.
_MOST_TURNS = 50
# Nonnegative values and their slacks, whose products go to zero; or changes of both.
Pairs: TypeAlias = list[tuple[np.ndarray, np.ndarray]]


def interior_point(
    H: np.ndarray,
    q: np.ndarray,
    x: np.ndarray,
    lam: float,
    accept: Callable[[np.ndarray, np.ndarray], bool],
) -> tuple[np.ndarray, np.ndarray]:
    """Approximate minimiser of lam ||x||_1 + q'(x - x0) + 1/2 (x - x0)' H (x - x0), where q is the
    gradient at x0 = x.

    x = a - b with a, b >= 0 and slacks lam + g and lam - g for the gradient g of the smooth part:
    Mehrotra's predictor-corrector method, where each iteration solves (H + diagonal) dx = rhs. H is
    (k, k) and symmetric. After each iteration `accept` receives a candidate, with exact zeros where
    the barrier exceeds the curvature, and its gradient; it may improve both in place, and ends the
    loop by returning True.

    Returns (x, gradient at x).
    """
    constant = q - H @ x
    curvature = np.diag(H)
    shift = max(0.1 * np.abs(x).max(initial=0.0), 1e-3 * lam / max(curvature.max(), 1e-300))
    pairs = _split(x, q, lam, shift)
    smallest = 1e-12 * lam * max(np.abs(x).max(initial=0.0), 1e-300)
    for turn in range(_MOST_TURNS + 1):
        check_time()
        (a, za), (b, zb) = pairs
        g = H @ (a - b) + constant
        if turn:
            candidate = _sparse(pairs, curvature)
            gradient = H @ candidate + constant
            if accept(candidate, gradient) or _mean(pairs) <= smallest:
                break
        solve = _factor(H, a / za + b / zb, curvature)
        pairs, _ = _advance(pairs, lambda *targets: _changes(pairs, targets, g, lam, solve)[1])
    return candidate, gradient


def hinge_interior_point(
    Z: Matrix,
    y: np.ndarray,
    x: np.ndarray,
    lam: float,
    tol: float,
    max_iter: int = 60,
    *,
    heights: float | np.ndarray = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimiser over x (k,) of lam ||x||_1 + sum_n max(0, h_n - y_n z_n . x)^2, started near x.

    heights: h (N,), ones by default; with the square root of a row's weight there and in its
    features, the row has that weight. Z: (N, k) features in float64; float32 products are too
    inaccurate for small lam. Like `interior_point`, and with the rows' slacks s = alpha / 2 - h + y
    f >= 0 for f = Z x, whose products with the dual variables alpha >= 0 also go to zero: a row has
    the curvature alpha / (s + alpha / 2), between 0 and 2. Separable classes and a small lam are no
    harder than others. Ends at a relative duality gap of `tol` over these columns.

    Returns (x, alpha): the best iterate, with exact zeros, and the best dual point (N,), feasible
    in these columns.
    """

    def gradient(alpha: np.ndarray) -> np.ndarray:
        return -Z.rmatvec(y * alpha)

    columns = np.arange(len(x))
    best = x
    value = np.inf
    bound = -np.inf
    margin = y * Z.matvec(x)
    alpha = 2.0 * np.maximum(heights - margin, 0.0)
    alpha *= min(1.0, lam / max(np.abs(gradient(alpha)).max(initial=0.0), 1e-300))
    dual_point = alpha.copy()
    alpha += max(1e-3 * alpha.max(), 1e-8 * lam)
    slack = np.maximum(alpha / 2 - heights + margin, 0.1)
    g = gradient(alpha)
    pairs = [*_split(x, g, lam, max(0.1 * np.abs(x).max(initial=0.0), 1e-3)), (alpha, slack)]
    margin = y * Z.matvec(pairs[0][0] - pairs[1][0])
    for _ in range(max_iter):
        (a, za), (b, zb), (alpha, slack) = pairs
        residual = alpha / 2 - heights + margin - slack
        theta = a / za + b / zb
        weights = alpha / (slack + alpha / 2)
        H = Z.square(columns, weights)
        solve = _factor(H, theta, np.diag(H))

        def direction(ca: np.ndarray, cb: np.ndarray, cs: np.ndarray) -> Pairs:
            moved = (cs - alpha * residual) / (slack + alpha / 2)
            dx, changes = _changes(
                pairs, (ca, cb), g, lam, lambda e: solve(e - theta * gradient(moved))
            )
            along = y * Z.matvec(dx)
            dalpha = moved - weights * along
            return [*changes, (dalpha, residual + dalpha / 2 + along)]

        pairs, t = _advance(pairs, direction)
        (a, _), (b, _), (alpha, _) = pairs
        candidate = _sparse(pairs, np.diag(H))
        margin = y * Z.matvec(a - b)
        g = gradient(alpha)
        errors = np.maximum(heights - y * Z.matvec(candidate), 0.0)
        primal = lam * np.abs(candidate).sum() + np.sum(errors**2)
        steepest = max(np.abs(g).max(initial=0.0), 1e-300)
        feasible = min(1.0, lam / steepest) * alpha
        dual = np.sum(heights * feasible) - feasible @ feasible / 4
        if primal < value:
            best, value = candidate, primal
        if dual > bound:
            dual_point, bound = feasible, dual
        if value - bound <= tol * value or t < 1e-10:
            break
    return best, dual_point


def _split(x: np.ndarray, g: np.ndarray, lam: float, shift: float) -> Pairs:
    """(a, lam + g) and (b, lam - g) with x = a - b for the gradient g, all moved inside."""
    slack = np.clip(g, -0.9 * lam, 0.9 * lam)
    return [(np.maximum(x, 0.0) + shift, lam + slack), (np.maximum(-x, 0.0) + shift, lam - slack)]


def _sparse(pairs: Pairs, curvature: np.ndarray) -> np.ndarray:
    """a - b, with exact zeros where the barrier exceeds the curvature."""
    (a, za), (b, zb) = pairs[:2]
    return np.where(np.maximum(a / za, b / zb) * curvature < 1.0, 0.0, a - b)


def _changes(
    pairs: Pairs,
    targets: Sequence[np.ndarray],
    g: np.ndarray,
    lam: float,
    solve: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, Pairs]:
    """(dx, the changes of the pairs of `_split`) for which the products of the pairs change by the
    targets; solve: e -> dx.
    """
    (a, za), (b, zb) = pairs[:2]
    ca, cb = targets
    theta_a = a / za
    theta_b = b / zb
    residual_a = lam + g - za
    residual_b = lam - g - zb
    e = ca / za - theta_a * residual_a - cb / zb + theta_b * residual_b
    dx = solve(e)
    dg = (e - dx) / (theta_a + theta_b)
    dza = dg + residual_a
    dzb = residual_b - dg
    return dx, [(ca / za - theta_a * dza, dza), (cb / zb - theta_b * dzb, dzb)]


def _mean(pairs: Pairs) -> float:
    """The mean product of pairs."""
    return float(sum(p @ q for p, q in pairs) / sum(len(p) for p, _ in pairs))


def _advance(pairs: Pairs, direction: Callable[..., Pairs]) -> tuple[Pairs, float]:
    """(the pairs after Mehrotra's predictor and corrector, the length of the step).

    direction(*targets): the changes of all pairs for a target of each.
    """
    mu = _mean(pairs)
    changes = direction(*(-p * q for p, q in pairs))
    t = _longest(pairs, changes)
    centre = mu * (_mean(_moved(pairs, changes, t)) / mu) ** 3
    targets = [centre - p * q - dp * dq for (p, q), (dp, dq) in zip(pairs, changes)]
    changes = direction(*targets)
    t = min(1.0, 0.995 * _longest(pairs, changes))
    return _moved(pairs, changes, t), t


def _moved(pairs: Pairs, changes: Pairs, t: float) -> Pairs:
    return [(p + t * dp, q + t * dq) for (p, q), (dp, dq) in zip(pairs, changes)]


def _factor(
    H: np.ndarray, theta: np.ndarray, curvature: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Function that solves (H + diag(1/theta)) dx = e / theta."""
    alive = np.flatnonzero(theta * curvature * DEAD > 1.0)
    everything = len(alive) == len(theta)
    diagonal = np.arange(len(alive))
    # Equal columns leave H singular up to float32 noise of either sign: shift until it is positive.
    for shift in (0.0, 1e-6, 1e-4, 1e-2, 1.0):
        matrix = H.copy() if everything else corner(H, alive)
        matrix[diagonal, diagonal] += 1.0 / theta[alive] + shift * curvature[alive].max(initial=0.0)
        try:
            # The transpose is the same matrix in the order that LAPACK can overwrite.
            factor = positive(matrix.T)
            break
        except linalg.LinAlgError:
            continue
    else:
        raise linalg.LinAlgError("the Hessian of the working set is far from positive definite")

    def solved(e: np.ndarray) -> np.ndarray:
        if everything:
            return solve(factor, e / theta)
        dx = e.copy()
        dx[alive] = 0.0
        if len(alive):
            dx[alive] = solve(factor, e[alive] / theta[alive] - (H @ dx)[alive])
        dead = np.ones(len(e), bool)
        dead[alive] = False
        dx[dead] -= theta[dead] * (H @ dx)[dead]
        return dx

    return solved


def _longest(pairs: Pairs, changes: Pairs) -> float:
    """Largest step t <= 1 that keeps every value >= 0."""
    values = np.concatenate([*chain(*pairs)])
    moves = np.concatenate([*chain(*changes)])
    shrinking = moves < 0
    return float(np.min(-values[shrinking] / moves[shrinking], initial=1.0))


# ----------------------------------------------------------------------
# min_x lam ||x||_1 + q'(x - x0) + 1/2 (x - x0)' H (x - x0) for a few thousand unknowns with H at
# hand.
#
# Three methods, from cheap to reliable: coordinate descent; Newton steps on the face of the current
# signs; an interior-point method. Nearly dependent random features give condition numbers of 1e8,
# where the first is very slow and the second fails after thousands of sign changes, while the third
# needs ten Cholesky factors.

# Relative size of the addition to the diagonal of a face's Hessian: float32 products leave noise of
# this order.
RIDGE = 1e-7
# Passes of coordinate descent, and faces, that are tried.
_PASSES, _FACES = 20, 4


def solve_quadratic(H: np.ndarray, q: np.ndarray, x: np.ndarray, lam: float, tol: float) -> None:
    """Minimise over x, starting at x, where q is the gradient of the smooth part at x.

    H is a C-order float64 array whose leading (k, k) corner is used, k = len(x); q and x are (k,)
    float64 and are changed in place. Ends when `residual` is at most `tol` or the interior-point
    method can't improve.
    """
    if _descend(H, q, x, lam, _PASSES, tol) <= tol:
        return
    square = H[: len(x), : len(x)]
    newton_faces(square, q, x, lam)
    if _descend(H, q, x, lam, _PASSES, tol) <= tol:
        return

    def accept(candidate: np.ndarray, gradient: np.ndarray) -> bool:
        """Whether a candidate of the interior-point method is good enough, after a few passes of
        coordinate descent.
        """
        if residual(H, gradient, candidate, lam) > 10 * tol:
            return False
        return _descend(H, gradient, candidate, lam, _PASSES, tol) <= tol

    diagonal = np.diagonal(square).copy()
    try:
        # Adding to the diagonal is a proximal term: a shorter step, but a descending one.
        make_definite(square)
        x[:], q[:] = interior_point(square, q, x, lam, accept)
    finally:
        np.fill_diagonal(square, diagonal)


def make_definite(H: np.ndarray) -> None:
    """Add to the diagonal of H (k, k) the smallest of a few values for which a Cholesky factor
    exists.

    Nothing is added if RIDGE is enough. Noise of float32 products makes a nearly singular H
    indefinite by a fraction of its largest eigenvalue, for example with fewer rows inside the
    margin than columns: no interior-point method converges there.
    """
    diagonal = np.diagonal(H).copy()
    for share in (RIDGE, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        np.fill_diagonal(H, diagonal + share * diagonal.max(initial=0.0))
        try:
            positive(H.T.copy(order="F"))
            break
        except linalg.LinAlgError:
            continue
    if share == RIDGE:
        np.fill_diagonal(H, diagonal)


def residual(H: np.ndarray, q: np.ndarray, x: np.ndarray, lam: float) -> float:
    """Largest change, in units of the gradient, that one step of coordinate descent would make: max
    H_jj |dx_j|.

    Zero only at the minimiser. The KKT violation, in contrast, is 2 lam for a weight of 1e-12 with
    the wrong sign.
    """
    curvature = np.diagonal(H)[: len(x)]
    target = curvature * x - q
    minimum = np.sign(target) * np.maximum(np.abs(target) - lam, 0.0)
    return float(np.max(np.abs(minimum - curvature * x), initial=0.0))


def newton_faces(H: np.ndarray, q: np.ndarray, x: np.ndarray, lam: float) -> None:
    """Newton steps on the face of the current signs, as long as few coordinates change theirs.

    Changes x and q in place.
    """
    for _ in range(_FACES):
        face = np.flatnonzero(x)
        if not len(face):
            return
        sub = corner(H, face)
        diagonal = np.arange(len(face))
        sub[diagonal, diagonal] += RIDGE * sub[diagonal, diagonal].max()
        try:
            factor = positive(sub.T)
        except linalg.LinAlgError:
            return
        step = -solve(factor, q[face] + lam * np.sign(x[face]))
        full = np.zeros(len(x))
        full[face] = step
        along = H @ full
        crossed = np.flatnonzero(np.sign(x[face] + step) != np.sign(x[face]))
        if not len(crossed):
            x += full
            q += along
            return
        t = segment_minimum(x[face], step, float(q[face] @ step), float(step @ along[face]), lam)
        x += t * full
        q += t * along
        if len(crossed) > 4 + len(face) // 50:
            return
        # The few that crossed go to zero; coordinate descent restores them if that was wrong.
        full[:] = 0.0
        full[face[crossed]] = -x[face[crossed]]
        x[face[crossed]] = 0.0
        q += H @ full


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
            new = soft_threshold(curvature * old - q[j], lam) / curvature
            if new != old:
                delta = new - old
                worst = max(worst, curvature * abs(delta))
                x[j] = new
                for i in range(k):
                    q[i] += H[j, i] * delta
        if worst <= tol:
            break
    return worst
