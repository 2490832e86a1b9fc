"""Interior-point methods for an l1 term plus a quadratic whose Hessian is too ill-conditioned for
other methods, or plus the squared hinge, when rows enter and leave the margin too fast for a
quadratic model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy import linalg

from rfx.operators.cholesky import positive, solve
from rfx.operators.corners import corner
from rfx.operators.matrix import Matrix
from rfx.parallel import check_time

# Coordinates whose barrier exceeds their curvature by this factor are excluded from the Cholesky
# factor.
DEAD = 1e5


def interior_point(
    H: np.ndarray,
    q: np.ndarray,
    x: np.ndarray,
    lam: float,
    accept: Callable[[np.ndarray, np.ndarray], bool],
    max_iter: int = 50,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Approximate minimiser of lam ||x||_1 + q'(x - x0) + 1/2 (x - x0)' H (x - x0), where q is the
    gradient at x0 = x.

    x = a - b with a, b >= 0 and slacks lam + g and lam - g for the gradient g of the smooth part:
    Mehrotra's predictor-corrector method, where each iteration solves (H + diagonal) dx = rhs. H is
    (k, k) and symmetric. After each iteration `accept` receives a candidate, with exact zeros where
    the barrier exceeds the curvature, and its gradient; it may improve both in place, and ends the
    loop by returning True.

    Returns (x, gradient at x, number of Cholesky factors).
    """
    k = len(x)
    constant = q - H @ x
    shift = max(0.1 * np.abs(x).max(initial=0.0), 1e-3 * lam / max(np.diag(H).max(), 1e-300))
    a, b = np.maximum(x, 0.0) + shift, np.maximum(-x, 0.0) + shift
    slack = np.clip(q, -0.9 * lam, 0.9 * lam)
    za, zb = lam + slack, lam - slack
    curvature = np.diag(H)
    smallest = 1e-12 * lam * max(np.abs(x).max(initial=0.0), 1e-300)
    for turn in range(max_iter + 1):
        check_time()
        g = H @ (a - b) + constant
        residual_a, residual_b = lam + g - za, lam - g - zb
        mu = (a @ za + b @ zb) / (2 * k)
        if turn:
            candidate = a - b
            candidate[np.maximum(a / za, b / zb) * curvature < 1.0] = 0.0
            gradient = H @ candidate + constant
            if accept(candidate, gradient) or mu <= smallest:
                break
        theta_a, theta_b = a / za, b / zb
        theta = theta_a + theta_b
        solve = _factor(H, theta, curvature)

        def direction(ca: np.ndarray, cb: np.ndarray) -> tuple[np.ndarray, ...]:
            e = ca / za - theta_a * residual_a - cb / zb + theta_b * residual_b
            dx = solve(e)
            dg = (e - dx) / theta
            dza, dzb = dg + residual_a, residual_b - dg
            return ca / za - theta_a * dza, cb / zb - theta_b * dzb, dza, dzb

        da, db, dza, dzb = direction(-a * za, -b * zb)
        t = _longest(((a, da), (b, db), (za, dza), (zb, dzb)))
        predicted = ((a + t * da) @ (za + t * dza) + (b + t * db) @ (zb + t * dzb)) / (2 * k)
        centre = mu * (predicted / mu) ** 3
        da, db, dza, dzb = direction(centre - a * za - da * dza, centre - b * zb - db * dzb)
        t = min(1.0, 0.995 * _longest(((a, da), (b, db), (za, dza), (zb, dzb))))
        a, b, za, zb = a + t * da, b + t * db, za + t * dza, zb + t * dzb
    return candidate, gradient, turn


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

    columns, k = np.arange(len(x)), len(x)
    best, value, bound = x, np.inf, -np.inf
    margin = y * Z.matvec(x)
    alpha = 2.0 * np.maximum(heights - margin, 0.0)
    alpha *= min(1.0, lam / max(np.abs(gradient(alpha)).max(initial=0.0), 1e-300))
    dual_point = alpha.copy()
    alpha += max(1e-3 * alpha.max(), 1e-8 * lam)
    slack = np.maximum(alpha / 2 - heights + margin, 0.1)
    g = gradient(alpha)
    za, zb = lam + np.clip(g, -0.9 * lam, 0.9 * lam), lam - np.clip(g, -0.9 * lam, 0.9 * lam)
    shift = max(0.1 * np.abs(x).max(initial=0.0), 1e-3)
    a, b = np.maximum(x, 0.0) + shift, np.maximum(-x, 0.0) + shift
    margin = y * Z.matvec(a - b)
    for _ in range(max_iter):
        residual_a, residual_b, residual_s = (
            lam + g - za,
            lam - g - zb,
            alpha / 2 - heights + margin - slack,
        )
        mu = (a @ za + b @ zb + alpha @ slack) / (2 * k + len(y))
        H = Z.gram(columns, None, alpha / (slack + alpha / 2))
        theta_a, theta_b = a / za, b / zb
        theta = theta_a + theta_b
        solve = _factor(H, theta, np.diag(H))

        def direction(ca: np.ndarray, cb: np.ndarray, cs: np.ndarray) -> tuple[np.ndarray, ...]:
            e = ca / za - theta_a * residual_a - cb / zb + theta_b * residual_b
            moved = (cs - alpha * residual_s) / (slack + alpha / 2)
            dx = solve(e - theta * gradient(moved))
            along = y * Z.matvec(dx)
            dalpha = moved - alpha / (slack + alpha / 2) * along
            dg = (e - dx) / theta
            dza, dzb = dg + residual_a, residual_b - dg
            return (
                ca / za - theta_a * dza,
                cb / zb - theta_b * dzb,
                dza,
                dzb,
                dalpha,
                residual_s + dalpha / 2 + along,
            )

        da, db, dza, dzb, dalpha, ds = direction(-a * za, -b * zb, -alpha * slack)
        t = _longest(((a, da), (b, db), (za, dza), (zb, dzb), (alpha, dalpha), (slack, ds)))
        predicted = (
            (a + t * da) @ (za + t * dza)
            + (b + t * db) @ (zb + t * dzb)
            + (alpha + t * dalpha) @ (slack + t * ds)
        )
        centre = mu * (predicted / (2 * k + len(y)) / mu) ** 3
        da, db, dza, dzb, dalpha, ds = direction(
            centre - a * za - da * dza,
            centre - b * zb - db * dzb,
            centre - alpha * slack - dalpha * ds,
        )
        t = min(
            1.0,
            0.995
            * _longest(((a, da), (b, db), (za, dza), (zb, dzb), (alpha, dalpha), (slack, ds))),
        )
        a, b, za, zb, alpha, slack = (
            a + t * da,
            b + t * db,
            za + t * dza,
            zb + t * dzb,
            alpha + t * dalpha,
            slack + t * ds,
        )
        candidate = a - b
        candidate[np.maximum(a / za, b / zb) * np.diag(H) < 1.0] = 0.0
        margin, g = y * Z.matvec(a - b), gradient(alpha)
        primal = lam * np.abs(candidate).sum() + np.sum(
            np.maximum(heights - y * Z.matvec(candidate), 0.0) ** 2
        )
        feasible = min(1.0, lam / max(np.abs(g).max(initial=0.0), 1e-300)) * alpha
        dual = np.sum(heights * feasible) - feasible @ feasible / 4
        if primal < value:
            best, value = candidate, primal
        if dual > bound:
            dual_point, bound = feasible, dual
        if value - bound <= tol * value or t < 1e-10:
            break
    return best, dual_point


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


def _longest(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """Largest step t <= 1 that keeps every value >= 0."""
    longest = 1.0
    for value, change in pairs:
        shrinking = change < 0
        if shrinking.any():
            longest = min(longest, float(np.min(-value[shrinking] / change[shrinking])))
    return longest
