"""Kernel logistic regression: against L-BFGS in float64, the certificate against the true
suboptimality, the method.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit

from rfx import kernels, methods
from rfx.errors import UsageError
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.operators import kernel as kernel_operator
from rfx.operators.kernel import KernelMatrix
from rfx.solvers.base import Budget
from rfx.solvers.kernel import newton as kernel_newton
from rfx.solvers.kernel.newton import solve_kernel_newton
from rfx.solvers.kernel.ridge import solve_kernel_ridge
from rfx.solvers.kernel.svm import solve_kernel_svm

NAMES = ["gaussian", "laplacian", "laplacian-l2", "perceptron", "stump", "linear"]


def problem(n_rows=150, n_inputs=3, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_inputs))
    y = np.where(np.sin(4 * X[:, 0]) + X[:, 1] ** 2 > 0.3, 1.0, -1.0)
    return X, np.where(rng.random(n_rows) < noise, -y, y)


def primal(K, a, y, lam):
    f = K @ a
    return 0.5 * lam * a @ f + np.logaddexp(0, -y * f).sum()


def reference(K, y, lam):
    """The optimal value, by L-BFGS in the coordinates in which the norm is a sum of squares."""
    values, vectors = np.linalg.eigh(K)
    Z = vectors * np.sqrt(np.maximum(values, 0))

    def objective(w):
        f = Z @ w
        return 0.5 * lam * w @ w + np.logaddexp(0, -y * f).sum(), lam * w - Z.T @ (
            y * expit(-y * f)
        )

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 50}
    return minimize(objective, np.zeros(len(y)), jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("memory", [100.0, 0.0], ids=["stored", "recomputed"])
@pytest.mark.parametrize("name", NAMES)
def test_optimum_and_certificate(name, memory):
    X, y = problem()
    params = kernels.parameters(name, X)
    K = kernels.block(name, X, X, params)
    solution = solve_kernel_newton(
        KernelMatrix(name, X, params), y, 0.3, Logistic, Budget(tol=1e-8, memory_mb=memory)
    )
    assert solution.converged and 0 <= solution.gap <= 1e-8 * solution.objective
    assert solution.objective == pytest.approx(reference(K, y, 0.3), rel=1e-7)
    assert solution.objective == pytest.approx(primal(K, solution.coef, y, 0.3), rel=1e-10)


@pytest.mark.parametrize("lam", [1e-4, 1.0, 1e5])
def test_any_lambda_by_a_preconditioner_of_low_rank(lam, monkeypatch):
    monkeypatch.setattr(kernel_newton, "_RANK", 20)
    X, y = problem(400)
    K = kernels.block("laplacian", X, X, {"gamma": 2.0})
    solution = solve_kernel_newton(
        KernelMatrix("laplacian", X, {"gamma": 2.0}), y, lam, Logistic, Budget(tol=1e-6)
    )
    assert solution.converged
    best = reference(K, y, lam)
    assert best * (1 - 1e-7) <= primal(K, solution.coef, y, lam) <= best * (1 + 2e-6)


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_gap_bounds_the_suboptimality(max_iter):
    X, y = problem()
    K = kernels.block("gaussian", X, X, {"gamma": 4.0})
    solution = solve_kernel_newton(
        KernelMatrix("gaussian", X, {"gamma": 4.0}),
        y,
        1e-2,
        Logistic,
        Budget(tol=1e-9, max_iter=max_iter),
    )
    assert solution.status == "max_iter" and solution.n_iter == max_iter
    value, best = primal(K, solution.coef, y, 1e-2), reference(K, y, 1e-2)
    assert value == pytest.approx(solution.objective, rel=1e-9)
    assert 0 < value - best <= solution.gap


def test_several_tiles_of_sparse_rows_and_several_outputs(monkeypatch):
    monkeypatch.setattr(kernel_operator, "_TILE", 64)
    X, y = problem(200)
    X[X < 0] = 0
    Y = np.stack([y, -y, np.where(X[:, 2] > 0.3, 1.0, -1.0)], axis=1)
    K, seen = KernelMatrix("gaussian", sp.csr_matrix(X), {"gamma": 2.0}), []
    solution = solve_kernel_newton(
        K,
        Y,
        0.1,
        Logistic,
        Budget(tol=1e-7, memory_mb=0.0),
        callback=lambda entry, coef: seen.append(entry),
    )
    dense = kernels.block("gaussian", X, X, {"gamma": 2.0})
    assert solution.coef.shape == Y.shape and solution.converged
    assert solution.objective == pytest.approx(sum(reference(dense, y, 0.1) for y in Y.T), rel=1e-6)
    np.testing.assert_allclose(solution.coef[:, 0], -solution.coef[:, 1], atol=1e-4)
    assert solution.trace == seen and {entry["output"] for entry in seen} == {0, 1, 2}


def test_more_rows_than_fit_into_memory_at_once():
    X, y = problem(2500, 6)
    K = KernelMatrix("gaussian", X, {"gamma": 1.0})
    solution = solve_kernel_newton(K, y, 0.1, Logistic, Budget(memory_mb=10.0))
    assert solution.converged and solution.relative_gap <= 1e-4
    K = kernels.block("gaussian", X, X, {"gamma": 1.0})
    a, f = solution.coef, K @ solution.coef
    # the duality gap by its definition: at u = L'(f), and at u = -lam a if that is in the
    # conjugate's domain
    v, share = 0.1 * a - y * expit(-y * f), np.clip(0.1 * a * y, 1e-12, 1 - 1e-12)
    gaps = [
        v @ K @ v / 0.2,
        0.1 * a @ f
        + np.sum(np.logaddexp(0, -y * f) + share * np.log(share) + (1 - share) * np.log1p(-share)),
    ]
    assert primal(K, a, y, 0.1) == pytest.approx(solution.objective, rel=1e-10)
    assert solution.gap == pytest.approx(min(gaps), rel=1e-6)


def test_a_warm_start_from_far_away_comes_back():
    X, y = problem()
    K, far = KernelMatrix("gaussian", X, {"gamma": 2.0}), 1e3 * np.ones(150)
    near, found = (
        solve_kernel_newton(K, y, 0.1, Logistic, Budget(tol=1e-6), warm=warm)
        for warm in (None, far)
    )
    assert found.converged and found.objective == pytest.approx(near.objective, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "solve"),
    [
        (Squared, lambda K, y, budget: solve_kernel_ridge(K, y, 0.2, budget=budget)),
        (SquaredHinge, lambda K, y, budget: solve_kernel_svm(K, y, 0.2, SquaredHinge, budget)),
    ],
)
def test_other_smooth_losses_have_the_solutions_of_their_own_solvers(loss, solve):
    X, y = problem()
    K = KernelMatrix("laplacian", X, {"gamma": 1.0})
    expected, budget = solve(K, y, Budget(tol=1e-9)).objective, Budget(tol=1e-8)
    found = solve_kernel_newton(K, y, 0.2, loss, budget)
    assert found.objective == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((1, 2)), np.ones(1)),
        (np.ones((30, 2)), np.repeat([1.0, -1.0], 15)),
        (problem(40)[0], -np.ones(40)),
    ],
    ids=["one row", "repeated rows", "one class"],
)
def test_one_row_one_class_and_repeated_rows(X, y):
    K = KernelMatrix("gaussian", X, {"gamma": 1.0})
    solution = solve_kernel_newton(K, y, 0.5, Logistic, Budget(tol=1e-9))
    assert solution.converged
    best = reference(K.to_array(np.float64), y, 0.5)
    assert solution.objective == pytest.approx(best, rel=1e-8)


def test_the_method_has_no_bias_with_this_loss():
    X, y = problem(300)
    options = {"loss": "logistic", "gamma": 2.0, "lam": 0.1, "scaling": "none"}
    method = methods.create("kernel", **options, tol=1e-6).fit(X[:200], y[:200])
    K = kernels.block("gaussian", X[:200], X[:200], {"gamma": 2.0})
    assert method.info["objective"] == pytest.approx(reference(K, y[:200], 0.1), rel=2e-6)
    assert method.info["converged"] and method.model.intercept == [0.0]
    assert method.score(X[200:], y[200:])["score"] > 0.75
    with pytest.raises(UsageError, match="--bias is for .* kernel logistic regression has none"):
        methods.create("kernel", **options, bias=True).fit(X, y)
    with pytest.raises(
        UsageError,
        match="--solver is libsvm, which does not support kernel logistic regression here",
    ):
        methods.create("kernel", **options, solver="libsvm").fit(X, y)
