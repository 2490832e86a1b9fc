"""L2-regularised classification: min_w lam/2 ||w||^2 + sum_n L(z_n.w, y_n) (Yen et al. 2014, equation 5).

Newton's method; each step by conjugate gradients on the rows whose loss is curved there (inside the margin, for squared
hinge), with a preconditioner, and an exact line search. For a smooth loss u = L'(Z w) attains equality in Fenchel's
inequality, so that objective minus dual value -sum L*(u, y) - ||Z'u||^2 / (2 lam) is ||gradient||^2 / (2 lam): the
certificate costs nothing.
"""

import numpy as np

from rfx.errors import UsageError
from rfx.solvers.base import Solution
from rfx.solvers.blocks import default_memory_mb, size_mb, walk
from rfx.solvers.cg import check_problem, choose_factor, conjugate_gradients, late


def solve_l2(
    blocks, y, lam, loss, *, coef0=None, tol=1e-4, max_iter=100, max_memory_mb=None, deadline=None
) -> Solution:
    """The minimiser for one output.

    blocks: the (N, D) features. y: (N,) labels in {-1, +1} (any targets for squared loss). loss: squared_hinge,
    logistic or squared of rfx.losses. coef0: (D,) starting point. tol: relative duality gap. max_iter: Newton steps
    (n_iter counts them). max_memory_mb: for the preconditioner and kept rows. deadline: time.monotonic() at which to
    stop. Raises UsageError for a loss without second derivative, a lam that is not positive, labels that are not one
    for each row.
    """
    if not hasattr(loss, "second_derivative"):
        raise UsageError(f"loss {loss.name!r} is not smooth; Newton's method needs squared, squared_hinge or logistic")
    check_problem(blocks, y, lam)
    y = np.asarray(y, dtype=np.float64)
    limit = default_memory_mb() if max_memory_mb is None else max_memory_mb
    w = np.zeros(blocks.shape[1]) if coef0 is None else np.array(coef0, dtype=np.float64)
    f, objective, g = _evaluate(blocks, y, lam, loss, w)
    trace, n_iter, inner = [], 0, 0
    while True:
        gap = float(g @ g) / (2 * lam)
        trace.append({"iteration": n_iter, "objective": objective, "gap": gap, "cg": inner})
        converged = gap <= tol * objective
        if converged or n_iter >= max_iter or late(deadline):
            return Solution(w, objective, gap, n_iter, converged, trace)
        p, inner = _direction(blocks, y, lam, loss, f, g, tol * objective, limit, deadline)
        w, f, objective, g = _search(blocks, y, lam, loss, w, f, objective, g, p)
        n_iter += 1


def l2_certificate(blocks, y, coef, lam, loss) -> tuple[float, float]:
    """(objective, duality gap) of any coef (D,), for any loss of rfx.losses, in one walk over the blocks.

    The dual point is u = L'(Z w), made feasible; y (N,) as in `solve_l2`.
    """
    y = np.asarray(y, dtype=np.float64)
    w = np.asarray(coef, dtype=np.float64)
    f, v = walk(blocks, w, lambda rows, f: loss.clip_dual(loss.derivative(f, y[rows]), y[rows]))
    u = loss.clip_dual(loss.derivative(f, y), y)
    objective = 0.5 * lam * float(w @ w) + float(loss.value(f, y).sum())
    # term by term (Fenchel-Young) rather than objective minus dual value, which would cancel
    fenchel = float(np.sum(loss.value(f, y) + loss.conjugate(u, y) - u * f))
    residual = lam * w + v
    return objective, max(0.0, fenchel) + float(residual @ residual) / (2 * lam)


def _evaluate(blocks, y, lam, loss, w):
    """Predictions, objective and gradient at w, in one walk."""
    f, g = walk(blocks, w, lambda rows, f: loss.derivative(f, y[rows]))
    return f, 0.5 * lam * float(w @ w) + float(loss.value(f, y).sum()), g + lam * w


def _direction(blocks, y, lam, loss, f, g, allowed, limit, deadline):
    """Newton's direction, to a residual of a tenth of the gradient (or of what the certificate allows)."""
    weights = loss.second_derivative(f, y)
    chosen = np.flatnonzero(weights > 0)
    if len(chosen) == 0:
        return -g / lam, 0
    weights = weights[chosen]
    part = blocks if len(chosen) == len(y) else blocks.subset(chosen)
    if part is not blocks and size_mb(part) <= limit / 2:
        part = part.materialize()
    factor = choose_factor(part, weights, limit / 2).prepare(lam)

    def product(p):
        return lam * p + walk(part, p, lambda rows, f: weights[rows] * f)[1]

    bound = max(0.01 * float(g @ g), 0.5 * 2 * lam * allowed)
    step, _, count = conjugate_gradients(product, -g, factor, lambda r: float(r @ r) <= bound, 200, deadline)
    return step, count


def _search(blocks, y, lam, loss, w, f, objective, g, p):
    """The next point on the line w + t p: t = 1 where the objective is nearly stationary there, else the minimum."""
    f1, objective1, g1 = _evaluate(blocks, y, lam, loss, w + p)
    slope = float(g @ p)
    if objective1 <= objective + 1e-4 * slope and abs(float(g1 @ p)) <= 0.5 * abs(slope):
        return w + p, f1, objective1, g1
    t = _line_minimum(y, lam, loss, w, f, p, f1 - f)
    w, f = w + t * p, f + t * (f1 - f)
    u = loss.derivative(f, y)
    g = walk(blocks, None, lambda rows, _: u[rows])[1] + lam * w
    return w, f, 0.5 * lam * float(w @ w) + float(loss.value(f, y).sum()), g


def _line_minimum(y, lam, loss, w, f, p, df):
    """The t >= 0 where the convex objective along w + t p is least: Newton inside a bracket, bisection where it leaves."""
    wp, pp = lam * float(w @ p), lam * float(p @ p)

    def slope(t):
        return wp + t * pp + float(loss.derivative(f + t * df, y) @ df)

    low, high = 0.0, 1.0
    while slope(high) < 0 and high < 2.0**40:
        low, high = high, 2 * high
    t = 0.5 * (low + high)
    first = abs(slope(0.0))
    for _ in range(100):
        value = slope(t)
        if abs(value) <= 1e-6 * first or high - low <= 1e-12 * high:
            break
        low, high = (t, high) if value < 0 else (low, t)
        curvature = pp + float(loss.second_derivative(f + t * df, y) @ df**2)
        t = t - value / curvature if curvature > 0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
    return t
