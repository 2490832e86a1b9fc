"""LIBLINEAR and LIBSVM as back ends: the right objective, native and precomputed kernels, the seed,
the warning, the clock, the interrupt, memory.
"""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from rfx.errors import OutOfTime, RfxError, UsageError
from rfx.losses import (
    OF_NUMBERS,
    Absolute,
    EpsilonInsensitiveLoss,
    Hinge,
    Logistic,
    Squared,
    SquaredHinge,
)
from rfx.operators.kernel import KernelMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.published import backend
from rfx.solvers.published.libraries import solve_liblinear, solve_libsvm
from rfx.solvers.svm import solve_kernel_svm


@pytest.fixture(scope="module")
def half_planes():
    """200 rows of 12 features, and classes that two of them tell apart but for noise."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 12))
    values = Z[:, 0] - Z[:, 1] + 0.7 * rng.standard_normal(200)
    return SimpleNamespace(Z=Z, y=np.where(values > 0, 1.0, -1.0))


def solve(Z, y, lam, loss, penalty, seed=0, **limits):
    return solve_liblinear(Z, y, lam, loss, Budget(**limits), penalty=penalty, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [SquaredHinge, Logistic])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_reaches_the_optimum_and_proves_it(loss, penalty, half_planes):
    solution = solve(DenseMatrix(half_planes.Z), half_planes.y, 3.0, loss, penalty, tol=1e-8)
    assert solution.converged and solution.n_iter > 0
    assert 0 <= solution.gap <= 1e-4 * solution.objective

    def objective(w):
        # w = p - m with p, m >= 0 makes the L1 norm smooth
        v = w[:12] - w[12:] if penalty == "l1" else w
        norm = w.sum() if penalty == "l1" else 0.5 * v @ v
        return 3.0 * norm + loss.value(half_planes.Z @ v, half_planes.y).sum()

    start = np.zeros(24 if penalty == "l1" else 12)
    bounds = [(0, None)] * 24 if penalty == "l1" else None
    reference = minimize(
        objective,
        start,
        bounds=bounds,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-14},
    )
    assert solution.objective == pytest.approx(reference.fun, rel=1e-5)


@pytest.mark.slow
def test_squared_loss_is_ridge_regression(rng, half_planes):
    Z, y = half_planes.Z, half_planes.Z[:, 0] + 0.3 * rng.standard_normal(200)
    solution = solve(DenseMatrix(Z), y, 3.0, Squared, "l2", tol=1e-10)
    exact = np.linalg.solve(Z.T @ Z + 3.0 * np.eye(12), Z.T @ y)
    np.testing.assert_allclose(solution.coef, exact, atol=1e-7)
    assert solution.converged and solution.objective == pytest.approx(
        1.5 * exact @ exact + 0.5 * np.sum((Z @ exact - y) ** 2)
    )
    one_value = solve(DenseMatrix(Z), np.full(200, 2.0), 3.0, Squared, "l2")
    assert one_value.coef.any(), "targets of one value are no class"


@pytest.mark.slow
def test_labels_in_either_order_and_a_seed_give_the_same_bits(half_planes):
    def made(seed, order=1):
        Z_, y = DenseMatrix(half_planes.Z[::order].copy()), half_planes.y[::order].copy()
        return solve(Z_, y, 1.0, SquaredHinge, "l1", seed=seed, tol=1e-9).coef

    four = made(4)
    np.testing.assert_allclose(made(4, -1), four, atol=1e-6)
    assert np.array_equal(made(4), four)
    assert not np.array_equal(made(5), four)


@pytest.mark.slow
def test_sparse_rows_are_the_same_problem(half_planes):
    part = np.where(np.abs(half_planes.Z) > 0.5, half_planes.Z, 0.0)
    problem = backend.from_csr(sp.csr_matrix(part), half_planes.y)
    job = backend.LiblinearJob(n=200, C=1.0, eps=1e-9, seed=0, n_columns=12, solver=2)
    machine, _ = backend.run(problem, job, Budget())
    dense = solve(DenseMatrix(part), half_planes.y, 1.0, SquaredHinge, "l2", tol=1e-9)
    np.testing.assert_allclose(np.abs(machine.coef[:, 0]), np.abs(dense.coef), atol=1e-9)


def test_iteration_limit_is_reported():
    # nearly equal columns: coordinate descent does not reach this tolerance within LIBLINEAR's 1000
    # iterations
    t = np.linspace(0, 1, 300)[:, None]
    columns = np.cos(t * np.arange(1, 60) * 0.11)
    y = np.where(np.sin(25 * t[:, 0]) > 0, 1.0, -1.0)
    solution = solve(DenseMatrix(columns), y, 1e-3, SquaredHinge, "l1", tol=1e-9)
    assert not solution.converged
    assert solution.n_iter == 1000


def test_time_limit_ends_the_child():
    t = np.linspace(0, 1, 4000)[:, None]
    columns = np.cos(t * np.arange(1, 400) * 0.11)
    y = np.where(np.sin(25 * t[:, 0]) > 0, 1.0, -1.0)
    with pytest.raises(OutOfTime, match="LIBLINEAR did not end within --timeout"):
        solve(
            DenseMatrix(columns),
            y,
            1e-4,
            SquaredHinge,
            "l1",
            tol=1e-12,
            deadline=time.monotonic() + 1,
        )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"loss": Hinge}, "no hinge loss here"),
        ({"y": np.ones(200)}, "needs rows of both classes"),
    ],
)
def test_refusals(change, says, half_planes):
    given = {"y": half_planes.y, "lam": 1.0, "loss": SquaredHinge, "penalty": "l2"}
    with pytest.raises(UsageError, match=says):
        solve(DenseMatrix(half_planes.Z), **given | change)


def test_too_little_memory_is_refused(free_memory, half_planes):
    size = (8 * (2 * 200 + 1) + 16 * 200 * 13) / 2**20
    # not all free memory: other processes need some, too
    free_memory(1.1 * size)
    with pytest.raises(RfxError, match="the back end needs .* GiB .* are free"):
        solve(DenseMatrix(half_planes.Z), half_planes.y, 1.0, SquaredHinge, "l2")
    free_memory(1.3 * size)
    assert solve(DenseMatrix(half_planes.Z), half_planes.y, 1.0, SquaredHinge, "l2").converged


@pytest.fixture(scope="module")
def products():
    """150 rows, and classes and numbers by a product of two inputs."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (150, 4))
    product = X[:, 0] * X[:, 1]
    return SimpleNamespace(
        X=X,
        labels=np.where(product + 0.1 * rng.standard_normal(150) > 0, 1.0, -1.0),
        numbers=3 + product + 0.3 * rng.standard_normal(150),
    )


def solve_kernel(name, X, y, params, lam, loss, **limits):
    return solve_libsvm(KernelMatrix(name, X, params), y, lam, loss, Budget(**limits))


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Hinge, SquaredHinge, Absolute, EpsilonInsensitiveLoss(0.2)])
@pytest.mark.parametrize(
    "kernel, params",
    [("gaussian", {"gamma": 2.0}), ("laplacian", {"gamma": 1.0}), ("perceptron", {"radius": 2.0})],
)
def test_agrees_with_rfx_and_proves_it(kernel, params, loss, products):
    y = products.numbers if loss.name in OF_NUMBERS else products.labels
    theirs = solve_kernel(kernel, products.X, y, params, 0.5, loss, tol=1e-6)
    ours = solve_kernel_svm(
        KernelMatrix(kernel, products.X, params), y, 0.5, loss, Budget(tol=1e-6), bias=True
    )
    assert theirs.converged and 0 <= theirs.gap <= 1e-4 * theirs.objective
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-4)
    assert theirs.coef.sum() == pytest.approx(0, abs=1e-6)
    assert theirs.intercept == pytest.approx(ours.intercept, abs=0.05)


@pytest.mark.slow
def test_labels_in_either_order(products):
    straight, turned = (
        solve_kernel("gaussian", X, y, {"gamma": 2.0}, 1.0, Hinge, tol=1e-8)
        for X, y in (
            (products.X, products.labels),
            (products.X[::-1].copy(), products.labels[::-1].copy()),
        )
    )
    np.testing.assert_allclose(turned.coef[::-1], straight.coef, atol=1e-5)
    assert turned.intercept == pytest.approx(straight.intercept, abs=1e-5)


def test_libsvm_needs_rows_of_both_classes(products):
    with pytest.raises(UsageError, match="needs rows of both classes"):
        solve_kernel("gaussian", products.X, np.ones(150), {"gamma": 1}, 1, Hinge)
