"""Parallel randomised coordinate descent over single bins (Wu et al. 2016, Algorithm 2), for its Figure 6.

Every thread takes bins of a random order and steps w_j <- S(w_j - g_j / M_j, lam / M_j), M_j = beta ||z_j||^2 with beta the
loss's curvature bound (eq. 26; SPEC 3c, erratum 5). Threads read and write the predictions without locks, as the paper has
it; an addition that is lost stays so until the end of the pass, when the predictions are computed anew. With one thread
the result depends on the seed alone, with several it does not repeat to the last digits.
"""

import numpy as np
from numba import njit

from rfx import parallel
from rfx.errors import UsageError
from rfx.solvers.base import Solution
from rfx.solvers.cg import check_problem, late
from rfx.solvers.rb_l1 import rb_l1_certificate

_KINDS = {"squared": 0, "squared_hinge": 1, "logistic": 2}


def solve_rb_prcd(Z, y, lam, loss, *, coef0=None, tol=1e-4, max_iter=1000, seed=0, deadline=None) -> Solution:
    """The minimiser of lam ||w||_1 + sum L(z.w, y) for one output; arguments as in `solve_rb_l1`.

    max_iter: passes over all bins (n_iter counts them). seed: of the order of the bins.
    """
    if loss.name not in _KINDS:
        raise UsageError(f"--solver prcd has no {loss.name} loss; choose squared, squared_hinge or logistic")
    check_problem(Z, y, lam)
    y = np.asarray(y, dtype=np.float64)
    w = np.zeros(Z.shape[1]) if coef0 is None else np.array(coef0, dtype=np.float64)
    rows, ends = _rows_by_bin(Z)
    bounds = loss.curvature * Z.squares()
    random = np.random.Generator(np.random.Philox(seed))
    n_iter, trace = 0, []
    while True:
        f = Z.apply(w)
        objective, gap, _ = rb_l1_certificate(Z, y, w, lam, loss, f)
        trace.append({"iteration": n_iter, "objective": objective, "gap": gap, "nnz": int(np.count_nonzero(w))})
        converged = gap <= tol * objective
        if converged or n_iter >= max_iter or late(deadline):
            return Solution(w, objective, gap, n_iter, converged, trace)
        order = random.permutation(Z.shape[1])
        parallel.for_ranges(
            lambda start, stop, order=order, f=f: _pass(
                order[start:stop], rows, ends, w, f, y, bounds, lam, Z.scale, _KINDS[loss.name]),
            Z.shape[1], smallest=64,
        )
        n_iter += 1


def _rows_by_bin(Z):
    """(R N,) int32 row numbers sorted by column, and (D + 1,) where each column's begin."""
    rows = np.empty(Z.ids.shape, np.int32)
    ends = np.empty(Z.shape[1] + 1, np.int64)
    ends[-1] = Z.ids.size
    parallel.for_ranges(
        lambda start, stop: _sort(Z.ids[start:stop], Z.starts[start : stop + 1], start * Z.shape[0], rows[start:stop], ends), Z.n_grids
    )
    return rows.ravel(), ends


@njit(cache=True, nogil=True)
def _sort(ids, starts, before, rows, ends):
    """Counting sort of each grid's rows by bin; ends[j] <- where column j begins among all grids' rows."""
    for r in range(len(ids)):
        size = starts[r + 1] - starts[r]
        place = np.zeros(size + 1, np.int64)
        for i in range(ids.shape[1]):
            place[ids[r, i] + 1] += 1
        for b in range(size):
            place[b + 1] += place[b]
            ends[starts[r] + b] = before + r * ids.shape[1] + place[b]
        for i in range(ids.shape[1]):
            b = ids[r, i]
            rows[r, place[b]] = i
            place[b] += 1


@njit(cache=True, nogil=True)
def _pass(order, rows, ends, w, f, y, bounds, lam, scale, kind):
    """One coordinate step for each column of `order`; kind: 0 squared, 1 squared hinge, 2 logistic."""
    for j in order:
        g = 0.0
        for t in range(ends[j], ends[j + 1]):
            i = rows[t]
            if kind == 0:
                g += f[i] - y[i]
            elif kind == 1:
                g -= 2.0 * y[i] * max(0.0, 1.0 - y[i] * f[i])
            else:
                g -= y[i] / (1.0 + np.exp(y[i] * f[i]))
        free = w[j] - scale * g / bounds[j]
        step = np.sign(free) * max(0.0, abs(free) - lam / bounds[j]) - w[j]
        if step != 0.0:
            w[j] += step
            for t in range(ends[j], ends[j + 1]):
                f[rows[t]] += scale * step
