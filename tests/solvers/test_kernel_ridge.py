"""Kernel ridge and kernel logistic regression: every path against a direct solution or L-BFGS in
float64, and the certificate against the true suboptimality.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from test_kernel_svm import problem as labelled

from rfx import kernels, methods
from rfx.errors import UsageError
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.methods import create
from rfx.operators.kernel import KernelMatrix
from rfx.solvers.base import Budget
from rfx.solvers.kernel import solve_kernel_newton, solve_kernel_ridge
from rfx.solvers.svm import solve_kernel_svm

NAMES = ["gaussian", "laplacian", "laplacian-l2", "perceptron", "stump", "linear"]


def problem(n_rows=150, n_outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 4))
    Y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n_rows)
    return X, Y if n_outputs is None else np.stack(
        [Y * (k + 1) + X[:, k] for k in range(n_outputs)], axis=1
    )


def solve(name, X, params, Y, lam, **limits):
    return solve_kernel_ridge(KernelMatrix(name, X, params), Y, lam, budget=Budget(**limits))


def direct(name, X, params, Y, lam):
    K = kernels.block(name, X, X, params)
    return np.linalg.solve(K + lam * np.eye(len(X)), Y)


def value(name, X, params, alpha, Y, lam):
    fitted = kernels.block(name, X, X, params) @ alpha
    return 0.5 * lam * np.sum(alpha * fitted) + 0.5 * np.sum((fitted - Y) ** 2)


@pytest.mark.parametrize("memory", [100.0, 0.0], ids=["cholesky", "conjugate-gradients"])
@pytest.mark.parametrize("name", NAMES)
def test_equals_the_direct_solution(name, memory):
    X, Y = problem()
    params = kernels.parameters(name, X)
    solution = solve(name, X, params, Y, 0.5, tol=1e-12, memory_mb=memory)
    assert solution.converged
    assert solution.trace[-1]["path"].startswith("cholesky" if memory else "conjugate")
    K = kernels.block(name, X, X, params)
    np.testing.assert_allclose(K @ solution.coef, K @ direct(name, X, params, Y, 0.5), atol=1e-5)
    assert solution.objective == pytest.approx(
        value(name, X, params, solution.coef, Y, 0.5), rel=1e-10
    )
    assert solution.coef.shape == Y.shape


@pytest.mark.parametrize("memory", [100.0, 0.0])
def test_several_outputs_and_sparse_rows(memory):
    X, Y = problem(n_outputs=3)
    X[X < 0.2] = 0
    params = kernels.parameters("gaussian", X)
    solution = solve("gaussian", sp.csr_matrix(X), params, Y, 0.5, tol=1e-12, memory_mb=memory)
    np.testing.assert_allclose(solution.coef, direct("gaussian", X, params, Y, 0.5), atol=1e-4)
    assert solution.coef.shape == (150, 3) and solution.converged


def test_every_pass_of_conjugate_gradients_is_told_of_as_it_is_made():
    X, Y = problem(1000)
    params = kernels.parameters("laplacian", X, 4.0)
    told = []
    matrix, budget = KernelMatrix("laplacian", X, params), Budget(tol=1e-6, memory_mb=0.0)
    solution = solve_kernel_ridge(
        matrix,
        Y,
        0.05,
        budget=budget,
        callback=lambda entry, coef: told.append((dict(entry), coef().copy())),
    )
    assert [entry["iteration"] for entry, _ in told] == [0, *range(1, solution.n_iter + 1)]
    assert len(told) > 4 and len(solution.trace) == len(told)
    K = kernels.block("laplacian", X, X, params)
    for entry, alpha in told:
        residual = Y - K @ alpha - 0.05 * alpha
        # the recursion uses float32 values
        assert entry["gap"] == pytest.approx(
            0.5 * residual @ residual, rel=1e-2, abs=1e-8 * entry["objective"]
        )
        assert entry["objective"] == pytest.approx(
            value("laplacian", X, params, alpha, Y, 0.05), rel=1e-5
        )


@pytest.mark.parametrize(
    ("name", "lam", "memory", "path", "passes"),
    [
        ("perceptron", 1e-6, 100.0, "cholesky-float64", 3),
        ("perceptron", 1e-2, 100.0, "cholesky-float32", 4),
        ("perceptron", 1e9, 100.0, "cholesky-float32", 4),
        # that of a larger lambda, where float64 does not fit
        ("laplacian", 1e-4, 1.01 * 150**2 * 4 / 2**20, "preconditioned-float32", 40),
        ("laplacian", 1e-4, 0.0, "conjugate-gradients", 80),
    ],
)
def test_the_factor_is_that_of_lambda_and_memory(name, lam, memory, path, passes):
    X, Y = problem()
    params = {"gamma": 4.0} if name == "laplacian" else kernels.parameters(name, X)
    solution = solve(name, X, params, Y, lam, memory_mb=memory)
    assert solution.converged
    assert solution.trace[-1]["path"] == path
    assert solution.n_iter <= passes
    expected = value(name, X, params, direct(name, X, params, Y, lam), Y, lam)
    assert solution.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("memory", [100.0, 0.0])
def test_one_row_duplicate_rows_and_zero_targets(memory):
    limits, gamma = {"tol": 1e-12, "memory_mb": memory}, {"gamma": 1.0}
    one = solve("gaussian", np.zeros((1, 2)), gamma, np.array([3.0]), 0.5, **limits)
    np.testing.assert_allclose(one.coef, [2.0], rtol=1e-5)
    X, Y = (np.repeat(part, 3, axis=0) for part in problem(20))
    twins = solve("gaussian", X, gamma, Y, 0.5, **limits)
    np.testing.assert_allclose(twins.coef, direct("gaussian", X, gamma, Y, 0.5), atol=1e-5)
    zero = solve("gaussian", X, gamma, 0 * Y, 0.5, memory_mb=memory)
    assert zero.converged and zero.objective == 0 == np.abs(zero.coef).max()


@pytest.mark.usefixtures("shared_out")
@pytest.mark.parametrize("memory", [100.0, 0.0])
@pytest.mark.parametrize(
    "solve",
    [
        lambda K, Y, budget: solve_kernel_ridge(K, Y, 0.1, budget=budget),
        lambda K, Y, budget: solve_kernel_newton(K, np.sign(Y), 0.1, Logistic, budget),
    ],
    ids=["ridge", "logistic"],
)
def test_threads_change_nothing_but_rounding(solve, memory, by_threads):
    X, Y = problem(400)
    K, budget = KernelMatrix("gaussian", X, {"gamma": 2.0}), Budget(tol=1e-6, memory_mb=memory)
    one, two = by_threads(lambda: solve(K, Y, budget).objective)
    assert one == pytest.approx(two, rel=1e-7)


def test_conjugate_gradients_take_few_steps_with_a_kernel_far_from_zero():
    # K's largest eigenvalue is some thousand times the next: 25 steps with a preconditioner in
    # float32
    rng = np.random.default_rng(0)
    X = rng.random((6000, 30)).astype(np.float32)
    Y = np.sin(4 * X[:, 0]) + X[:, 1]
    K = KernelMatrix("perceptron", X, {"radius": float(np.linalg.norm(X, axis=1).max())})
    solution = solve_kernel_ridge(K, Y, 0.1, budget=Budget(tol=1e-4, memory_mb=8.0))
    assert solution.converged and solution.trace[-1]["path"] == "conjugate-gradients"
    assert solution.n_iter <= 18


@pytest.mark.parametrize("tol", [1e-8, 1e-2])
@pytest.mark.parametrize(
    ("loss", "bias"),
    [
        ("squared", None),
        ("squared_hinge", False),
        ("squared_hinge", True),
        ("hinge", True),
        ("logistic", None),
    ],
)
def test_the_norm_of_a_model_is_that_of_its_function(loss, bias, tol):
    X, Y = problem(120)
    given = {"kernel": "gaussian", "gamma": 2.0, "lam": 0.3, "scaling": "none", "task": "binary"}
    trainer = create("kernel", tol=tol, loss=loss, bias=bias, **given)
    trained = trainer.fit(X, np.where(Y > 0, 1.0, -1.0))
    coef, support = trained.model.coef, trained.model.support
    K = kernels.block("gaussian", support, support, {"gamma": 2.0})
    norm = float(np.sqrt(np.sum(coef * (K @ coef))))
    assert trained.info["norm"] == pytest.approx(norm, rel=1e-6)


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
def test_optimum_and_certificate_of_logistic_regression(name, memory):
    X, y = labelled(150)
    params = kernels.parameters(name, X)
    K = kernels.block(name, X, X, params)
    solution = solve_kernel_newton(
        KernelMatrix(name, X, params), y, 0.3, Logistic, Budget(tol=1e-8, memory_mb=memory)
    )
    assert solution.converged and 0 <= solution.gap <= 1e-8 * solution.objective
    assert solution.objective == pytest.approx(reference(K, y, 0.3), rel=1e-7)
    assert solution.objective == pytest.approx(primal(K, solution.coef, y, 0.3), rel=1e-10)


@pytest.mark.parametrize("lam", [1e-4, 1.0, 1e5])
def test_any_lambda_by_a_preconditioner_of_low_rank(lam):
    X, y = labelled(700)
    K = kernels.block("laplacian", X, X, {"gamma": 2.0})
    solution = solve_kernel_newton(
        KernelMatrix("laplacian", X, {"gamma": 2.0}), y, lam, Logistic, Budget(tol=1e-6)
    )
    assert solution.converged
    best = reference(K, y, lam)
    assert best * (1 - 1e-7) <= primal(K, solution.coef, y, lam) <= best * (1 + 2e-6)


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_gap_bounds_the_suboptimality_of_newton_steps(max_iter):
    X, y = labelled(150)
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


def test_several_tiles_of_sparse_rows_and_several_outputs():
    X, y = labelled(200)
    X[X < 0] = 0
    Y = np.stack([y, -y, np.where(X[:, 2] > 0.3, 1.0, -1.0)], axis=1)
    K, seen = KernelMatrix("gaussian", sp.csr_matrix(X), {"gamma": 2.0}), []
    K.tile_rows = 64
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


@pytest.mark.parametrize(
    ("loss", "solve"),
    [
        (Squared, lambda K, y, budget: solve_kernel_ridge(K, y, 0.2, budget=budget)),
        (SquaredHinge, lambda K, y, budget: solve_kernel_svm(K, y, 0.2, SquaredHinge, budget)),
    ],
)
def test_other_smooth_losses_have_the_solutions_of_their_own_solvers(loss, solve):
    X, y = labelled(150)
    K = KernelMatrix("laplacian", X, {"gamma": 1.0})
    expected, budget = solve(K, y, Budget(tol=1e-9)).objective, Budget(tol=1e-8)
    found = solve_kernel_newton(K, y, 0.2, loss, budget)
    assert found.objective == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((1, 2)), np.ones(1)),
        (np.ones((30, 2)), np.repeat([1.0, -1.0], 15)),
        (np.linspace(0, 1, 80).reshape(40, 2), -np.ones(40)),
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
    X, y = labelled(300)
    options = {"loss": "logistic", "gamma": 2.0, "lam": 0.1, "scaling": "none"}
    method = methods.create("kernel", **options, tol=1e-6).fit(X[:200], y[:200])
    K = kernels.block("gaussian", X[:200], X[:200], {"gamma": 2.0})
    assert method.info["objective"] == pytest.approx(reference(K, y[:200], 0.1), rel=2e-6)
    assert method.info["converged"] and method.model.intercept == [0.0]
    assert method.score(X[200:], y[200:]).score > 0.75
    with pytest.raises(UsageError, match="--bias is for .* kernel logistic regression has none"):
        methods.create("kernel", **options, bias=True).fit(X, y)
    with pytest.raises(UsageError, match="--solver is libsvm.* logistic"):
        methods.create("kernel", **options, solver="libsvm").fit(X, y)
