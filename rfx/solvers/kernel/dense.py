"""One exact kernel problem whose matrix K is in memory: ridge by Cholesky, squared hinge and logistic by Newton's method.

min lam/2 ||f||_H^2 + sum_n L(f(x_n), y_n) over f = sum_i a_i k(x_i, .), un-normalised, without bias (Yen et al. 2014,
equation 1). With f = K a and v = lam a + L'(f) the dual point u = L'(f) has the gap v'K v / (2 lam); u = -lam a, made
feasible, has another, and the smaller counts.
"""

import numpy as np
from scipy.linalg import lapack

from rfx.errors import UsageError
from rfx.operators.cg import check_problem, late
from rfx.solvers.base import Budget, Certificate, Solution, stack
from rfx.solvers.line_search import line_minimum, row_dual_gap


def solve_kernel_dense(K, Y, lam, loss, *, tol=1e-6, max_iter=100, deadline=None) -> Solution:
    """The coefficients a (n, k) for each column of Y.

    K: (n, n) float64, symmetric positive semidefinite. Y: (n, k) targets, or labels in {-1, +1}. loss: squared,
    squared_hinge or logistic of rfx.losses. tol: gap divided by the objective. max_iter: Newton steps a column (n_iter
    counts them; a ridge solution is one). The gap is summed over the columns. Raises UsageError for a loss without second
    derivative, a lam that is not positive or targets that are not one for each row.
    """
    if not hasattr(loss, "second_derivative"):
        raise UsageError(f"loss {loss.name!r} is not smooth; Newton's method needs squared, squared_hinge or logistic")
    check_problem(K, Y, lam)
    if loss.name == "squared":
        return _ridge(K, Y, lam, tol)
    return stack([_newton(K, y, lam, loss, tol, max_iter, deadline) for y in Y.T])


def _ridge(K, Y, lam, tol):
    """(K + lam) a = y and, once, for what rounding has left; the gap is half the squared residual."""
    factor = _factor(K, lam)
    A, R = np.zeros_like(Y), Y
    for _ in range(2):
        A = A + lapack.dpotrs(factor, np.asfortranarray(R), lower=1)[0]
        F = K @ A
        R = Y - F - lam * A
    gaps = 0.5 * np.einsum("ij,ij->j", R, R)
    objectives = 0.5 * lam * np.einsum("ij,ij->j", A, F) + 0.5 * np.einsum("ij,ij->j", F - Y, F - Y)
    status = "converged" if np.all(gaps <= tol * objectives) else "budget"
    return Solution(A, float(objectives.sum()), Certificate("gap", float(gaps.sum())), Y.shape[1], status)


def _factor(K, diagonal):
    """The Cholesky factor of K + diagonal, lower, in Fortran order; K is left alone."""
    matrix = np.array(K.T, order="F", dtype=np.float64)
    matrix[np.diag_indices(len(K))] += diagonal
    factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
    if info:
        raise UsageError(f"lambda is {np.min(diagonal):g}, below the rounding of the kernel matrix; choose a larger one")
    return factor


def _newton(K, y, lam, loss, tol, max_iter, deadline):
    """One output. The direction q solves lam q + d K q = -v with curvatures d = s^2: t = s K q solves

    (lam + S K S) t = -S K v over the rows with curvature, and lam q = -v - s t.
    """
    a, f = np.zeros(len(y)), np.zeros(len(y))
    n_iter, trace = 0, []
    while True:
        v = lam * a + loss.derivative(f, y)
        Kv = K @ v
        objective = 0.5 * lam * float(a @ f) + float(loss.value(f, y).sum())
        gap = min(max(0.0, float(v @ Kv)) / (2 * lam), row_dual_gap(lambda v: K @ v, a, f, y, lam, loss))
        trace.append({"iteration": n_iter, "objective": objective, "gap": gap})
        converged = gap <= tol * objective
        if converged or n_iter >= max_iter or late(deadline):
            status = Budget(max_iter=max_iter, deadline=deadline).status(converged, n_iter)
            return Solution(a, objective, Certificate("gap", gap), n_iter, status, trace)
        roots = np.sqrt(loss.second_derivative(f, y))
        chosen = np.flatnonzero(roots > 1e-8 * roots.max(initial=1e-8))
        q = -v
        if len(chosen):
            s = roots[chosen]
            factor = _factor(K[np.ix_(chosen, chosen)] * np.outer(s, s), lam)
            q[chosen] -= s * lapack.dpotrs(factor, -s * Kv[chosen], lower=1)[0].ravel()
        q /= lam
        Kq = K @ q
        t = line_minimum(loss, f, Kq, y, lam * float(a @ Kq), lam * float(q @ Kq))
        a, f = a + t * q, f + t * Kq
        n_iter += 1
