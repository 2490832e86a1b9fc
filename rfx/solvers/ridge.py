"""Ridge regression: min_W lam/2 ||W||^2 + 1/2 ||Z W - Y||^2 (Yen et al. 2014, equation 5 with squared loss).

Conjugate gradients on the features themselves, with float64 sums, preconditioned by one of two factors. Random features
have few directions that matter at a given lambda, so that a Gram matrix of some of the rows and a dozen products are often
cheaper than the whole Gram matrix; where they are not, or turn out not to be, the smaller of Z'Z and Z Z' is summed
into one array and factored in place, and what is left to correct is the rounding of the factor's type. A grid of
lambdas shares the Gram matrix and one factor, that of its middle: the others come from the Krylov space of its inverse. (An
eigendecomposition would do for all as well, but costs as much as about twenty-five factorisations.)
"""

import numpy as np

from rfx.losses import Squared
from rfx.operators.base import default_memory_mb
from rfx.operators.cg import check_problem, conjugate_gradients, dots, late
from rfx.operators.factors import NystromFactor, RowFactor, choose_factor, sampled_factor
from rfx.operators.shifted import solve_shifted
from rfx.solvers.base import Budget, Certificate, Solution

_RESTARTS = 20
# Steps that a sampled factor is expected to need, and those after which it is given up for the whole Gram matrix.
_EXPECTED_STEPS, _PATIENCE = 15, 40
# Numbers that the basis of a Krylov space may take.
_BASIS = 2**25
# Seconds for one float32 multiplication and addition in a Gram matrix, beside the cost of an entry of the matrix.
_GRAM = 1e-11


def solve_ridge(Z, Y, lam, *, tol=1e-6, max_iter=1000, max_memory_mb=None, deadline=None) -> Solution:
    """The minimiser for one lam > 0.

    Z: the (N, D) features. Y: (N,) or (N, k) targets. tol: relative duality gap of each output. max_iter:
    conjugate gradient steps. max_memory_mb: what the factor may take; where the Gram matrix does not fit, the
    preconditioner is of low rank. deadline: time.monotonic() at which to stop. Gap: with u = Z w - y the dual value is
    -1/2 ||u||^2 - u.y - ||Z'u||^2 / (2 lam), and the gap is ||lam w + Z'u||^2 / (2 lam). n_iter counts conjugate
    gradient steps. Raises UsageError for a lam that is not positive or targets that are not one for each row.
    """
    return solve_ridge_grid(Z, Y, [lam], tol=tol, max_iter=max_iter, max_memory_mb=max_memory_mb, deadline=deadline)[0]


def solve_ridge_cg(Z, Y, lam, *, tol=1e-3, max_iter=1000, deadline=None) -> Solution:
    """The same minimum by plain conjugate gradients on (Z'Z + lam) w = Z'y, as Wu et al. (2016, 5.2) compare methods.

    No preconditioner. tol: ||Z'y - (Z'Z + lam) w|| / ||Z'y|| of each output. max_iter: steps for each output; the paper's
    programs stop after 50. The first output starts at zero, every other at the weights of the one before (docs/papers.md, Wu et al.). The
    rest as in `solve_ridge`; converged says whether the residual, computed anew at the end, is within tol.
    """
    Y = np.asarray(Y, dtype=np.float64)
    check_problem(Z, Y, lam)
    outputs = Y.reshape(len(Y), -1)
    right = Z.rmatvec(outputs)
    norms = np.linalg.norm(right, axis=0)
    W, w, n_iter, trace = np.zeros_like(right), np.zeros(len(right)), 0, []

    def image(p):
        return lam * p + Z.normal(p)

    for k, norm in enumerate(norms):
        residual = right[:, k] - image(w) if w.any() else right[:, k]
        steps = 0
        if np.linalg.norm(residual) > tol * norm:
            step, residual, steps = conjugate_gradients(
                image, residual, lambda r: r, lambda x, r, norm=norm: np.linalg.norm(r) <= tol * norm, max_iter, deadline
            )
            w = w + step
        W[:, k] = w
        n_iter += steps
        trace.append({"output": k, "iterations": steps, "residual": float(np.linalg.norm(residual) / norm) if norm > 0 else 0.0})
    _, values, G = Z.loss_pass(W, Squared, outputs)
    G += lam * W
    objectives = 0.5 * lam * dots(W, W) + values
    converged = bool(np.all(np.linalg.norm(G, axis=0) <= 1.01 * tol * norms))
    certificate = Certificate("gap", float(dots(G, G).sum() / (2 * lam)))
    status = Budget(deadline=deadline, max_iter=max_iter).status(converged, max((entry["iterations"] for entry in trace), default=0))
    return Solution(W.reshape(right.shape[0], *Y.shape[1:]), float(objectives.sum()), certificate, n_iter, status, trace)


def solve_ridge_grid(Z, Y, lams, *, tol=1e-6, max_iter=1000, max_memory_mb=None, deadline=None) -> list[Solution]:
    """A Solution for each of `lams`, from one Gram matrix and one factor of it; arguments as in `solve_ridge`.

    Of several lambdas on very many rows, a small factor of some rows for each may be what costs less.
    """
    Y = np.asarray(Y, dtype=np.float64)
    for lam in lams:
        check_problem(Z, Y, lam)
    limit = default_memory_mb() if max_memory_mb is None else max_memory_mb
    factors = _Factors(Z, Y, lams, limit)
    return [_solve(Z, Y, lam, factors, tol, max_iter, deadline) for lam in lams]


def _sampled_rows(n_rows):
    return max(1024, int(np.sqrt(500.0 * n_rows)))


def _sampling_pays(Z, Y, lams):
    """Whether a sampled factor and the steps that it is expected to need cost less than half of the Gram matrix."""
    (n_rows, n_columns), rows = Z.shape, _sampled_rows(Z.shape[0])
    small, large = sorted(Z.shape)
    if rows >= n_rows:
        return False
    sampled = rows**2 * n_columns if rows < n_columns else 8 * n_columns**3
    whole = large * small**2 * _GRAM + small**3 / 3 * _GRAM
    return 2 * (sampled * _GRAM + lams * _EXPECTED_STEPS * n_rows * n_columns * Y[:1].size * Z.cost) < whole


class _Factors:
    """The preconditioners of one problem, each made when first asked for, and the solutions that they lead to."""

    def __init__(self, Z, Y, lams, limit):
        self.Z, self.Y, self.lams, self.limit = Z, Y, list(lams), limit
        self.sampling = _sampling_pays(Z, Y, len(self.lams))
        self._sampled = self._whole = self._right = self._starts = None

    def sampled(self, lam):
        if self._sampled is None:
            ones = np.ones(self.Z.shape[0])
            self._sampled = sampled_factor(self.Z, ones, lam, _sampled_rows(len(ones)), self.limit / 2)
        return self._sampled.prepare(lam)

    def whole(self, lam):
        """The factor of the smaller Gram matrix, of low rank where it does not fit."""
        self._sampled, self.sampling = None, False
        if self._whole is None:
            self._whole = choose_factor(self.Z, self.limit)
            if not isinstance(self._whole, NystromFactor):
                self._whole.prepare(float(np.exp(np.mean(np.log([min(self.lams), max(self.lams)])))))
        return self._whole.prepare(lam) if isinstance(self._whole, NystromFactor) else self._whole

    def start(self, lam):
        """(D,) or (D, k) weights close to the solution, by the whole factor; for all lambdas at the first call."""
        factor = self.whole(lam)
        by_rows = isinstance(factor, RowFactor)
        if self._right is None:
            self._right = self.Y if by_rows else self.Z.rmatvec(self.Y)
        if isinstance(factor, NystromFactor):
            return factor(self._right)
        if self._starts is None and len(self.lams) > 1:
            steps = int(np.clip(_BASIS // max(1, self._right.size), 20, 300))
            self._starts = solve_shifted(factor.gram.solve, self._right, factor.gram.diagonal, self.lams, max_steps=steps)
        start = self._starts[self.lams.index(lam)] if self._starts else None
        if start is None:
            start = factor.gram.solve(self._right)
        return self.Z.rmatvec(start) if by_rows else start


def _solve(Z, Y, lam, factors, tol, max_iter, deadline):
    factor, W, n_iter, trace = None, None, 0, []
    if factors.sampling:
        factor = factors.sampled(lam)
        W = np.zeros((Z.shape[1], *Y.shape[1:]))
    for _ in range(_RESTARTS):
        if factor is None:
            factor = factors.whole(lam)
            if W is None:
                W = factors.start(lam)
        _, values, G = Z.loss_pass(W, Squared, Y)
        G += lam * W
        objectives = 0.5 * lam * dots(W, W) + values
        gaps = dots(G, G) / (2 * lam)
        converged = bool(np.all(gaps <= tol * objectives))
        trace.append({"iteration": n_iter, "objective": float(objectives.sum()), "gap": float(gaps.sum())})
        if converged or n_iter >= max_iter or late(deadline):
            break

        def enough(X, R, objectives=objectives, G=G):
            # the objective at W + X is known from the residuals; half of the tolerance is for rounding
            now = objectives - 0.5 * dots(X, R - G)
            return np.all(dots(R, R) <= lam * tol * now)

        most = max_iter - n_iter
        step, _, steps = conjugate_gradients(
            lambda P: lam * P + Z.normal(P),
            -G,
            factor,
            enough,
            min(most, _PATIENCE) if factors.sampling else most,
            deadline,
        )
        W = W + step
        n_iter += steps
        if factors.sampling and steps >= _PATIENCE:
            factor, factors.sampling = None, False
    status = Budget(max_iter=max_iter, deadline=deadline).status(converged, n_iter)
    return Solution(W, float(objectives.sum()), Certificate("gap", float(gaps.sum())), n_iter, status, trace)
