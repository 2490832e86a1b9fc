"""Kernel ridge regression: (K + lam I) alpha = Y, by Cholesky while K fits in memory, else by conjugate gradients.

The objective is lam/2 ||f||_H^2 + 1/2 sum_n (f(x_n) - y_n)^2 with f = sum_i alpha_i k(x_i, .), per output (Yen et al.
2014, eq. 1, squared loss). Its dual at the same alpha is lam alpha'y - lam^2/2 ||alpha||^2 - lam/2 alpha'K alpha, so
that the duality gap is exactly 1/2 ||r||^2 with the residual r = y - K alpha - lam alpha. It is measured with kernel
values made anew in float64, never with the factor or with the values that a solver worked on.
"""

import time

import numpy as np
from scipy.linalg import lapack

from rfx import kernels
from rfx.errors import DataError, UsageError
from rfx.operators.base import default_memory_mb
from rfx.operators.cholesky import factor_in_place
from rfx.parallel import matmul, one_blas_thread
from rfx.solvers.base import Budget, Certificate, Solution

# Rows and columns of one tile of K on the fly.
_TILE = 2048
_LANDMARK_BLOCK = 128


def solve_kernel_ridge(
    name: str,
    X,
    params: dict,
    Y,
    lam: float,
    *,
    tol: float = 1e-8,
    max_iter: int = 500,
    max_memory_mb: float | None = None,
    deadline: float | None = None,
    seed: int = 0,
) -> Solution:
    """Kernel ridge regression for the kernel `name` with `params` on the rows X.

    X: (n, d) dense, CSR or Prepared. Y: (n,) or (n, n_outputs) targets. lam: un-normalised, in (0, inf). tol: largest
    gap divided by the objective, per output. max_iter: passes over K when K is not kept. max_memory_mb: for K (one
    copy, in float32 with refinement where lam is large enough for it, else float64; where float32 alone fits, as a
    preconditioner) or, where neither fits, for a preconditioner of low rank. deadline: value of time.monotonic() after
    which no new pass starts. seed: of the landmarks.

    Returns a Solution: coef alpha of Y's shape, objective, gap (above), n_iter passes over K besides the one that fills
    it. `trace` says which path was taken and the gap after each pass. Raises UsageError for lam, DataError where X and
    Y do not fit together or hold values that are not finite.
    """
    if not (np.isfinite(lam) and lam > 0):
        raise UsageError(f"lam is {lam!r}, but kernel ridge takes a number in (0, inf)")
    Y = np.asarray(Y, dtype=np.float64)
    if Y.ndim not in (1, 2) or Y.shape[0] != X.shape[0]:
        raise DataError(f"targets of shape {Y.shape} do not fit {X.shape[0]} rows")
    if X.shape[0] == 0:
        raise DataError("kernel ridge needs at least one row, but there is none")
    if not np.isfinite(Y).all():
        raise DataError("a target is nan or infinite; remove that row")
    limit = default_memory_mb() if max_memory_mb is None else max_memory_mb
    system = _System(name, X, params, Y.reshape(len(Y), -1), lam, max_iter, deadline)
    n_rows = len(Y)
    # The trace bounds the largest eigenvalue: above this lam a float32 factor exists and refinement converges in a few
    # passes.
    single_is_safe = lam > 10 * np.finfo(np.float32).eps * float(system.diagonal.sum())
    solve = path = None
    for dtype, allowed in ((np.float32, single_is_safe), (np.float64, True)):
        if solve is None and allowed and n_rows**2 * np.dtype(dtype).itemsize / 2**20 <= limit:
            solve = _cholesky(system, dtype)
            path = f"cholesky-{np.dtype(dtype).name}"
    if solve is None and n_rows**2 * 4 / 2**20 <= limit:
        # Too small a lam for a factor in float32: that of a larger one is a preconditioner, at a condition number of
        # about their ratio.
        solve = _cholesky(system, np.float32, 30 * np.finfo(np.float32).eps * float(system.diagonal.sum()))
        path = "preconditioned-float32"
    if solve is None:
        solve = _landmarks(system, limit, np.random.default_rng(seed))
        path = "conjugate-gradients"
    alpha, gaps, values, trace, converged = _refine(system, solve, tol, direct=path.startswith("cholesky"))
    for entry in trace:
        entry["path"] = path
    return Solution(
        coef=alpha.reshape(Y.shape),
        objective=float(values.sum()),
        certificate=Certificate("gap", float(gaps.sum())),
        n_iter=system.passes,
        status=Budget(max_iter=max_iter, deadline=deadline).status(converged, system.passes),
        trace=trace,
    )


class _System:
    """The rows, the targets (n, k) and products with K + lam I whose kernel values are made on the fly."""

    def __init__(self, name, X, params, Y, lam, max_iter, deadline):
        self.name, self.params, self.Y, self.lam = name, params, Y, lam
        self.rows = X if isinstance(X, kernels.Prepared) else kernels.prepare(name, X, params, np.float64)
        self.diagonal = kernels.diagonal(name, self.rows, params)
        self.max_iter, self.deadline, self.passes = max_iter, deadline, 0
        self.started = time.monotonic()

    def out_of_time(self) -> bool:
        return self.passes >= self.max_iter or (self.deadline is not None and time.monotonic() > self.deadline)

    def times_kernel(self, V: np.ndarray, dtype=np.float64) -> np.ndarray:
        """K V for V (n, k), summed in float64 over tiles; each tile above the diagonal serves its mirror image too."""
        rows = self.rows.astype(dtype)
        n_rows = len(V)
        product = np.zeros_like(V, dtype=np.float64)
        V = np.ascontiguousarray(V, dtype=dtype)
        buffer = np.empty(min(_TILE, n_rows) ** 2, dtype)
        self.passes += 1
        for i in range(0, n_rows, _TILE):
            left = rows.take(slice(i, i + _TILE))
            for j in range(i, n_rows, _TILE):
                right = left if i == j else rows.take(slice(j, j + _TILE))
                K = buffer[: left.n_rows * right.n_rows].reshape(left.n_rows, right.n_rows)
                kernels.block(self.name, left, right, self.params, out=K)
                product[i : i + _TILE] += matmul(K, V[j : j + _TILE])
                if i != j:
                    product[j : j + _TILE] += matmul(K.T, V[i : i + _TILE])
        return product


def _cholesky(system: _System, dtype, lam=None):
    """v -> (K + lam I)^-1 v by a factorisation in the memory of K's upper triangle; None where K is not positive.

    lam: by default the system's.
    """
    n_rows = len(system.Y)
    rows = system.rows.astype(dtype)
    K = np.empty((n_rows, n_rows), dtype)
    step = max(64, min(_TILE, (1 << 22) // n_rows))
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        left, right = rows.take(slice(start, stop)), rows.take(slice(start, None))
        kernels.block(system.name, left, right, system.params, out=K[start:stop, start:])
    K[np.diag_indices(n_rows)] += dtype(system.lam if lam is None else lam)
    # Rows of the upper triangle are columns of the lower one in Fortran's order: no copy is made.
    factor = K.T
    if factor_in_place(factor) != 0:
        return None
    substitute = lapack.dpotrs if dtype == np.float64 else lapack.spotrs
    return lambda V: substitute(factor, np.asfortranarray(V, dtype=dtype), lower=1)[0].astype(np.float64)


def _landmarks(system: _System, limit_mb: float, rng):
    """v -> (F F' + lam I)^-1 v with F F' close to K: a partial Cholesky factorisation with random pivots.

    Pivots are drawn, a block at a time, in proportion to what is left of the diagonal (randomly pivoted Cholesky, Chen
    et al. 2024, block form), so that regions that F explains already are left alone.
    """
    n_rows = len(system.Y)
    rank = int(min(n_rows, 2000, max(_LANDMARK_BLOCK, limit_mb * 2**20 / 2 / (4 * n_rows))))
    rows = system.rows.astype(np.float32)
    F = np.zeros((n_rows, rank), np.float32)
    left, total = system.diagonal.copy(), system.diagonal.sum()
    done = 0
    while done < rank and left.sum() > 1e-7 * total:
        count = min(_LANDMARK_BLOCK, rank - done, int(np.count_nonzero(left)))
        pivots = rng.choice(n_rows, size=count, replace=False, p=left / left.sum())
        G = kernels.block(system.name, rows, rows.take(pivots), system.params)
        G -= matmul(F[:, :done], F[pivots, :done].T)
        core = G[pivots].astype(np.float64)
        core = 0.5 * (core + core.T)
        values, vectors = _eigen(core)
        kept = values > 1e-5 * max(values[-1], 1e-30)
        if not kept.any():
            break
        root = (vectors[:, kept] / np.sqrt(values[kept])).astype(np.float32)
        fresh = F[:, done : done + root.shape[1]]
        fresh[:] = matmul(G, root)
        left -= np.einsum("ij,ij->i", fresh, fresh)
        left[pivots] = 0.0
        np.maximum(left, 0.0, out=left)
        done += root.shape[1]
    F = F[:, :done]
    inner = matmul(F.T, F).astype(np.float64)
    inner[np.diag_indices(done)] += system.lam
    values, vectors = _eigen(inner)
    inverse = matmul(vectors / np.maximum(values, system.lam), vectors.T).astype(np.float32)

    def solve(V):
        V32 = V.astype(np.float32)
        return (V - matmul(F, matmul(inverse, matmul(F.T, V32)))) / system.lam

    return solve


def _eigen(A):
    """numpy's eigh by one thread: the same whatever the threads."""
    with one_blas_thread():
        return np.linalg.eigh(A)


def _refine(system: _System, solve, tol: float, direct: bool):
    """alpha with its gaps: repeat residual in float64, correction by `solve` (direct) or by preconditioned CG."""
    Y, lam = system.Y, system.lam
    alpha = solve(Y) if direct else np.zeros_like(Y)
    fitted = None if direct else np.zeros_like(Y)
    best, trace = None, []
    while True:
        if fitted is None:
            fitted = system.times_kernel(alpha)
        residual = Y - fitted - lam * alpha
        gaps = 0.5 * np.einsum("ij,ij->j", residual, residual)
        values = 0.5 * lam * np.einsum("ij,ij->j", alpha, fitted) + 0.5 * ((fitted - Y) ** 2).sum(axis=0)
        trace.append({"passes": system.passes, "gap": float(gaps.sum()), "seconds": time.monotonic() - system.started})
        good = bool(np.all(gaps <= tol * np.maximum(values, 1e-300)))
        if best is None or gaps.sum() < best[1].sum():
            stalled, best = False, (alpha, gaps, values)
        else:
            stalled = True
        if good or stalled or system.out_of_time():
            return *best, trace, good
        if direct:
            alpha = alpha + solve(residual)
        else:
            target = np.sqrt(tol * np.maximum(values, 1e-300))
            alpha = alpha + _conjugate_gradients(system, solve, residual, target)
        fitted = None


def _conjugate_gradients(system: _System, solve, R, target):
    """(K + lam I)^-1 R, one run of preconditioned CG per column on float32 kernel values, all columns in one pass.

    Ends when each column's residual is below `target` or 1e-4 of where it started: float32 values carry no further, and
    the caller starts again from a residual in float64.
    """
    lam = system.lam
    solution = np.zeros_like(R)
    R = R.copy()
    norms = np.linalg.norm(R, axis=0)
    goal = np.maximum(target, 1e-4 * norms)
    Z = solve(R)
    direction = Z.copy()
    rho = np.einsum("ij,ij->j", R, Z)
    while np.any(np.linalg.norm(R, axis=0) > goal) and not system.out_of_time():
        product = system.times_kernel(direction, np.float32) + lam * direction
        curvature = np.einsum("ij,ij->j", direction, product)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
        if not step.any():
            break
        solution += step * direction
        R -= step * product
        Z = solve(R)
        previous, rho = rho, np.einsum("ij,ij->j", R, Z)
        direction = Z + np.divide(rho, previous, out=np.zeros_like(rho), where=previous > 0) * direction
    return solution
