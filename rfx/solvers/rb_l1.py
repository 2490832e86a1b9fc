"""L1 regularisation over random binning features: min_w lam ||w||_1 + sum_n L(z_n.w, y_n) (Wu et al. 2016, section 4.2).

The bins of a grid share no rows, so that coordinate descent over them separates: the exact update of a whole grid is one
sum over rows by bin, a soft threshold per bin and one look-up per row. A Newton step replaces the loss by its quadratic
model, whose coordinate descent needs no line search and runs over the rows with curvature only. Where it crawls it is
extrapolated (Anderson acceleration, Bertrand and Massias 2021) or, as soon as few enough bins have a weight, the quadratic
of these is approached by Newton steps with its Hessian: how often two bins meet in a row. The certificate is the duality gap of u = s L'(Z w) with the largest
s <= 1 that makes ||Z'u||_inf <= lam.
"""

import numpy as np
from numba import njit

from rfx.errors import UsageError
from rfx.solvers.base import Solution
from rfx.solvers.binned import BinnedFeatures
from rfx.solvers.cg import check_problem, late
from rfx.solvers.l1_quadratic import newton_faces

# Epochs between two extrapolations, and the most epochs of one Newton step.
_MEMORY = 5
_EPOCHS = 200
# Epochs before the Hessian is made and between two of them, the most of them in one Newton step, the most bins.
_PATIENCE, _BETWEEN, _SOLVED, _LARGEST = 12, 3, 4, 4000
# Most epochs once the Hessian was used: what is left is better done after the next Newton step.
_AFTER = 10
_NEAR = 0.9
# Rows with curvature are copied out when they are a smaller share than this.
_COPIED = 0.8


def solve_rb_l1(Z, y, lam, loss, *, coef0=None, tol=1e-4, max_iter=100, deadline=None) -> Solution:
    """The minimiser for one output.

    Z: BinnedFeatures (N, D). y: (N,) targets, or labels in {-1, +1}. loss: Squared, SquaredHinge or Logistic. coef0: (D,)
    starting point. tol: relative duality gap. max_iter: Newton steps (n_iter counts them). Raises UsageError for a loss
    without second derivative, a lam that is not positive, targets that are not one for each row.
    """
    if not hasattr(loss, "second_derivative"):
        raise UsageError(f"loss {loss.name!r} is not smooth; choose squared, squared_hinge or logistic")
    check_problem(Z, y, lam)
    y = np.asarray(y, dtype=np.float64)
    w = np.zeros(Z.shape[1]) if coef0 is None else np.array(coef0, dtype=np.float64)
    f = Z.apply(w) if w.any() else np.zeros(len(y))
    n_iter, epochs, trace = 0, 0, []
    while True:
        objective, gap, g = rb_l1_certificate(Z, y, w, lam, loss, f)
        trace.append({"iteration": n_iter, "epochs": epochs, "objective": objective, "gap": gap, "nnz": int(np.count_nonzero(w))})
        converged = gap <= tol * objective
        if converged or n_iter >= max_iter or late(deadline):
            return Solution(w, objective, gap, n_iter, converged, trace)
        accuracy = float(np.clip(0.3 * np.sqrt(gap / objective), 0.01, 0.1))
        # far from the optimum the bins with a weight change too much for their Hessian to be worth it
        patience = _PATIENCE if gap < _NEAR * objective else _EPOCHS
        target, used = _minimise_model(Z, w, g, loss.second_derivative(f, y), lam, accuracy, patience, deadline)
        epochs += used
        w, f = _search(Z, y, w, f, target, lam, loss, objective)
        n_iter += 1


def rb_l1_certificate(Z, y, w, lam, loss, f=None):
    """(objective, duality gap, gradient (D,)) at w (D,); f: Z w where it is known."""
    f = Z.apply(w) if f is None else f
    u = loss.derivative(f, y)
    g = Z.adjoint(u)
    u = loss.clip_dual(u * min(1.0, lam / max(float(np.abs(g).max(initial=0.0)), 1e-300)), y)
    objective = lam * float(np.abs(w).sum()) + float(loss.value(f, y).sum())
    return objective, max(0.0, objective + float(loss.conjugate(u, y).sum())), g


def lambda_max(Z, y, loss) -> float:
    """The smallest lam whose solution is zero."""
    return float(np.abs(Z.adjoint(loss.derivative(np.zeros(len(y)), np.asarray(y, dtype=np.float64)))).max(initial=0.0))


def _minimise_model(Z, w0, g, curvature, lam, accuracy, patience, deadline):
    """(w, epochs): g.(w - w0) + 1/2 ||sqrt(curvature) Z (w - w0)||^2 + lam ||w||_1 by epochs over the grids.

    Until an epoch moves less than `accuracy` of what the first one moved, in the norm of the diagonal.
    """
    ids, chosen = Z.ids, np.flatnonzero(curvature)
    if len(chosen) < _COPIED * len(curvature):
        ids, curvature = np.ascontiguousarray(ids[:, chosen]), curvature[chosen]
    part = BinnedFeatures(ids, Z.starts, Z.scale)
    diagonal = part.squares(curvature)
    largest = int(np.diff(Z.starts).max())
    sums, steps = np.empty((2, largest)), np.empty(largest)
    w, delta = w0.copy(), np.zeros(len(curvature))
    points, first, due, solved = [], 0.0, patience, 0

    def value(w, delta):
        return float(g @ (w - w0)) + 0.5 * float(curvature @ delta**2) + lam * float(np.abs(w).sum())

    for epoch in range(1, _EPOCHS + 1):
        moved = _epoch(ids, Z.starts, w, g, diagonal, curvature, delta, lam, Z.scale, sums, steps)
        first = first or moved
        if moved <= accuracy**2 * first or late(deadline) or (solved == _SOLVED and epoch >= due + _AFTER):
            break
        if epoch >= due and solved < _SOLVED and np.count_nonzero(w) <= _LARGEST:
            _solve_support(part, w, g + part.adjoint(curvature * delta), curvature, lam)
            delta = part.apply(w - w0)
            points, due, solved = [], epoch + _BETWEEN, solved + 1
            continue
        points.append((w.copy(), delta.copy()))
        if len(points) > _MEMORY:
            better = _extrapolate(points)
            if better is not None and value(*better) < value(w, delta):
                w, delta = better
            points = []
    return w, epoch


def _solve_support(Z, w, gradient, curvature, lam):
    """Newton steps for the bins with a weight, in place; gradient (D,): that of the model's smooth part at w."""
    support = np.flatnonzero(w)
    place = np.full(Z.shape[1], -1, np.int32)
    place[support] = np.arange(len(support))
    hessian = np.zeros((len(support), len(support)))
    _meetings(Z.ids, Z.starts, place, Z.scale**2 * curvature, hessian)
    hessian += np.tril(hessian, -1).T
    x, q = w[support], gradient[support]
    newton_faces(hessian, q, x, lam, attempts=2)
    w[support] = x


def _extrapolate(points):
    """The affine combination of (w, Z (w - w0)) whose last differences nearly cancel; None where it can't be found."""
    differences = np.stack([after - before for (_, before), (_, after) in zip(points, points[1:])])
    gram = differences @ differences.T
    try:
        shares = np.linalg.solve(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)), np.ones(len(gram)))
    except np.linalg.LinAlgError:
        return None
    total = shares.sum()
    if not np.isfinite(total) or total == 0:
        return None
    return tuple(sum(share / total * point[k] for share, point in zip(shares, points[1:])) for k in (0, 1))


def _search(Z, y, w, f, target, lam, loss, objective):
    """The next (w, Z w) towards the model's minimiser: the first of steps 1, 1/2, 1/4, … that decreases the objective."""
    change = target - w
    move = Z.apply(change)
    t = 1.0
    for _ in range(40):
        trial, f_trial = w + t * change, f + t * move
        if lam * float(np.abs(trial).sum()) + float(loss.value(f_trial, y).sum()) < objective:
            return trial, f_trial
        t *= 0.5
    return w, f


@njit(cache=True, nogil=True)
def _epoch(ids, starts, w, g, diagonal, curvature, delta, lam, scale, sums, steps):
    """One exact update of every grid in turn, on the quadratic model; returns the sum of diagonal step^2.

    w (D,) and delta = Z (w - w0) over the rows are updated. The look-up that ends a grid's update and the sums that begin
    the next one are one loop over the rows.
    """
    moved = 0.0
    now, after = sums[0], sums[1]
    now[: starts[1] - starts[0]] = 0.0
    for i in range(ids.shape[1]):
        now[ids[0, i]] += curvature[i] * delta[i]
    for r in range(len(ids)):
        first, size = starts[r], starts[r + 1] - starts[r]
        change = False
        for b in range(size):
            j = first + b
            step = -w[j]
            if diagonal[j] > 0.0:
                free = w[j] - (g[j] + scale * now[b]) / diagonal[j]
                step += np.sign(free) * max(0.0, abs(free) - lam / diagonal[j])
            steps[b] = scale * step
            if step != 0.0:
                w[j] += step
                moved += diagonal[j] * step * step
                change = True
        a = ids[r]
        if r + 1 == len(ids):
            if change:
                for i in range(len(a)):
                    delta[i] += steps[a[i]]
            break
        following = ids[r + 1]
        after[: starts[r + 2] - starts[r + 1]] = 0.0
        if change:
            for i in range(len(a)):
                delta[i] += steps[a[i]]
                after[following[i]] += curvature[i] * delta[i]
        else:
            for i in range(len(a)):
                after[following[i]] += curvature[i] * delta[i]
        now, after = after, now
    return moved


@njit(cache=True, nogil=True)
def _meetings(ids, starts, place, weights, hessian):
    """hessian[a, b] <- hessian[a, b] + the weights of the rows in both bins, b <= a; place (D,): a bin's index, -1 for none."""
    rows = 256
    found = np.empty((rows, len(ids)), np.int32)
    counts = np.empty(rows, np.int64)
    for start in range(0, ids.shape[1], rows):
        size = min(rows, ids.shape[1] - start)
        counts[:] = 0
        for r in range(len(ids)):
            own = place[starts[r] :]
            for i in range(size):
                index = own[ids[r, start + i]]
                if index >= 0:
                    found[i, counts[i]] = index
                    counts[i] += 1
        for i in range(size):
            weight = weights[start + i]
            # grids come in order, and with them the indices
            for s in range(counts[i]):
                row = hessian[found[i, s]]
                for t in range(s + 1):
                    row[found[i, t]] += weight
