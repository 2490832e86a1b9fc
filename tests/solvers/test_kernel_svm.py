"""Kernel SVM for classes and numbers: certificate, KKT conditions, and agreement with a float64
quadratic programme.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.svm import SVC

from rfx import kernels, methods
from rfx.losses import OF_NUMBERS, Absolute, EpsilonInsensitiveLoss, Hinge, SquaredHinge
from rfx.operators.kernel import KernelMatrix
from rfx.solvers.base import Budget
from rfx.solvers.svm import WorkSizes, solve_kernel_svm

NAMES = ["gaussian", "laplacian", "laplacian-l2", "perceptron", "stump", "linear"]
TUBE = EpsilonInsensitiveLoss(0.2)
CASES = [(loss, bias) for loss in (Hinge, SquaredHinge) for bias in (False, True)]
TUBES = [(loss, bias) for loss in (Absolute, TUBE) for bias in (False, True)]
ALL = [*CASES, *TUBES]


def _name(value) -> str:
    """The name of a test's parameter: of a loss without its address, the same in each process."""
    return getattr(value, "name", str(value))


each_tube = pytest.mark.parametrize("loss, bias", TUBES, ids=_name)
each_loss = pytest.mark.parametrize("loss, bias", ALL, ids=_name)
GAMMA = {"gamma": 2.0}


def problem(n_rows=120, n_inputs=3, noise=0.1, seed=0, loss=Hinge):
    """Rows and labels, or targets for a loss of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_inputs))
    if loss.name in OF_NUMBERS:
        return X, 1 + np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.standard_normal(n_rows)
    y = np.where(np.sin(4 * X[:, 0]) + X[:, 1] ** 2 > 0.3, 1.0, -1.0)
    return X, np.where(rng.random(n_rows) < noise, -y, y)


# Blocks of a few rows, also for small problems.
SMALL_BLOCKS = WorkSizes(block=16, first_rows=40, few=0, least_columns=2)


def solve(name, X, y, params, lam, loss, bias=False, sizes=WorkSizes(), **options):
    """The machine of a kernel; options: seed, weights and those of a budget."""
    more = {name: options.pop(name) for name in ("seed", "weights") if name in options}
    K, budget = KernelMatrix(name, X, params), Budget(**options)
    return solve_kernel_svm(K, y, lam, loss, budget, bias=bias, sizes=sizes, **more)


def primal(K, y, coef, b, lam, loss):
    f = K @ coef
    return 0.5 * lam * coef @ f + loss.value(f + b, y).sum()


def tube_reference(K, y, lam, loss, bias):
    """The optimal objective: the dual in 2n variables from 0 to C, by sequential quadratic
    programming.
    """
    n, both = len(y), np.vstack([np.eye(len(y)), -np.eye(len(y))])
    linear = both @ y - loss.epsilon
    found = minimize(
        lambda a: (
            lam * (0.5 * a @ both @ K @ both.T @ a - linear @ a),
            lam * (both @ (K @ (both.T @ a)) - linear),
        ),
        np.zeros(2 * n),
        jac=True,
        bounds=[(0, 1 / lam)] * (2 * n),
        constraints={"type": "eq", "fun": lambda a: both.sum(axis=1) @ a} if bias else (),
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    assert found.success
    return -found.fun


def reference(K, y, lam, loss, bias):
    """The optimal objective in float64: LIBSVM on the precomputed kernel with a bias, L-BFGS-B on
    the dual without.
    """
    if loss.name in OF_NUMBERS:
        return tube_reference(K, y, lam, loss, bias)
    C, squared = 1.0 / lam, loss is SquaredHinge
    Q = K + (0.5 * lam * np.eye(len(y)) if squared else 0)
    if bias:
        model = SVC(C=1e9 if squared else C, kernel="precomputed", tol=1e-10, cache_size=10).fit(
            Q, y
        )
        coef = np.zeros(len(y))
        coef[model.support_] = model.dual_coef_[0]
    else:
        signed = Q * np.outer(y, y)
        found = minimize(
            lambda a: (0.5 * a @ signed @ a - a.sum(), signed @ a - 1),
            np.zeros(len(y)),
            jac=True,
            bounds=[(0, None if squared else C)] * len(y),
            method="L-BFGS-B",
            options={
                "maxiter": 100_000,
                "maxfun": 100_000,
                "ftol": 1e-14,
                "gtol": 1e-9,
                "maxcor": 30,
            },
        )
        coef = found.x * y
    return lam * (y @ coef - 0.5 * coef @ Q @ coef)


@pytest.mark.slow
@each_loss
@pytest.mark.parametrize("name", NAMES)
def test_optimum_and_certificate(name, loss, bias):
    X, y = problem(40 if loss.name in OF_NUMBERS else 120, loss=loss)
    params = kernels.parameters(name, X)
    K = kernels.block(name, X, X, params)
    solution = solve(name, X, y, params, 0.5, loss, bias=bias, tol=1e-7)
    assert solution.converged and 0 <= solution.gap <= 1e-7 * solution.objective
    assert solution.objective == pytest.approx(reference(K, y, 0.5, loss, bias), rel=1e-6)
    value = primal(K, y, solution.coef, solution.intercept, 0.5, loss)
    assert solution.objective == pytest.approx(value, rel=1e-9)
    assert solution.intercept == 0 or bias


@each_loss
@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_gap_bounds_the_suboptimality(loss, bias, max_iter):
    sizes = replace(SMALL_BLOCKS, block=8, first_rows=30)
    X, y = problem(loss=loss)
    K = kernels.block("gaussian", X, X, GAMMA)
    if loss.name in OF_NUMBERS:
        optimum = solve("gaussian", X, y, GAMMA, 1.0, loss, bias, sizes, tol=1e-9).objective
    else:
        optimum = reference(K, y, 1.0, loss, bias)
    limits = {"tol": 1e-7, "max_iter": max_iter}
    solution = solve("gaussian", X, y, GAMMA, 1.0, loss, bias, sizes, **limits)
    assert not solution.converged and solution.n_iter == max_iter
    value = primal(K, y, solution.coef, solution.intercept, 1.0, loss)
    assert value == pytest.approx(solution.objective, rel=1e-9)
    assert 0 <= value - optimum <= solution.gap * (1 + 1e-9)


@pytest.mark.slow
@each_loss
@pytest.mark.parametrize("memory", [0.0, 0.01, 10.0])
def test_small_blocks_tiny_cache_and_growing_active_sets(loss, bias, memory):
    X, y = problem(250, loss=loss)
    best = solve("gaussian", X, y, GAMMA, 1.0, loss, bias, SMALL_BLOCKS, tol=1e-6).objective
    limits = {"sizes": SMALL_BLOCKS, "tol": 1e-3, "memory_mb": memory}
    solution = solve("gaussian", sp.csr_matrix(X), y, GAMMA, 1.0, loss, bias, **limits)
    assert solution.converged
    assert best * (1 - 1e-6) <= solution.objective <= best * (1 + 1e-3)
    assert len(solution.trace) > 1 and solution.trace[0]["active"] < 250


@pytest.mark.parametrize("loss, bias", CASES, ids=_name)
def test_long_rounds_tell_how_far_they_are(loss, bias):
    X, y = problem(250)
    often = replace(SMALL_BLOCKS, reported=3)
    rounds = solve("gaussian", X, y, GAMMA, 1.0, loss, bias, SMALL_BLOCKS, tol=1e-3)
    told = solve("gaussian", X, y, GAMMA, 1.0, loss, bias, often, tol=1e-3)
    np.testing.assert_array_equal(told.coef, rounds.coef)
    assert len(told.trace) >= len(rounds.trace) + 3
    # the first round, on a sample, begins with the loss of all rows as its gap; the last ends near
    # the certificate
    gap = np.array([entry["gap"] for entry in told.trace])
    assert gap[0] > 0.3 * told.trace[0]["objective"] and (gap >= 0).all()
    assert gap[-2] < 0.3 * gap[0]


@pytest.mark.parametrize("n_rows", [1, 30])
@pytest.mark.parametrize(
    "loss, bias, value",
    [(*case, value) for case in ALL for value in ((3.0,) if case in TUBES else (-1.0, 1.0))],
    ids=_name,
)
def test_targets_that_are_all_equal(loss, bias, value, n_rows):
    X, y = problem(30)[0][:n_rows], np.full(n_rows, value)
    solution = solve("gaussian", X, y, {"gamma": 1.0}, 0.5, loss, bias=bias, tol=1e-6)
    assert solution.converged
    if bias:
        assert solution.objective == pytest.approx(0, abs=1e-12)
        assert solution.intercept == pytest.approx(value, abs=loss.epsilon)
    else:
        K = kernels.block("gaussian", X, X, {"gamma": 1.0})
        assert solution.objective == pytest.approx(reference(K, y, 0.5, loss, False), rel=1e-5)


@pytest.mark.parametrize("lam", [1e-4, 0.2, 1e6])
@pytest.mark.parametrize("loss, bias", CASES, ids=_name)
def test_duplicate_rows_with_either_label_and_extremes_of_lam(loss, bias, lam):
    X, y = problem(60)
    X, y = np.vstack([X, X]), np.concatenate([y, np.where(np.arange(60) < 20, -y, y)])
    solution = solve("laplacian", X, y, GAMMA, lam, loss, bias=bias, tol=1e-6)
    K = kernels.block("laplacian", X, X, GAMMA)
    assert solution.converged
    assert solution.objective == pytest.approx(reference(K, y, lam, loss, bias), rel=1e-4)


@pytest.mark.threads
@each_loss
def test_threads_and_seed_agree(loss, bias, by_threads):
    sizes = WorkSizes(first_rows=200, few=0)
    X, y = problem(1500, loss=loss)
    made = lambda seed: solve("gaussian", X, y, GAMMA, 1.0, loss, bias, sizes, seed=seed, tol=1e-4)
    one, two = by_threads(lambda: made(0))
    np.testing.assert_array_equal(one.coef, two.coef)
    assert made(7).objective == pytest.approx(one.objective, rel=1e-4)


@pytest.mark.parametrize("loss", [Hinge, EpsilonInsensitiveLoss(0.1)], ids=_name)
@pytest.mark.parametrize("name, lam, scale", [
    ("gaussian", 1e-4, 1), ("laplacian", 1e-6, 1), ("perceptron", 1e-6, 1),
    ("linear", 1.0, 1e3), ("laplacian", 1.0, 1e6), ("perceptron", 1.0, 1e6),
])  # fmt: skip
def test_the_gap_is_that_of_the_kernel_in_float64(name, lam, scale, loss):
    """A large C, or inputs far from zero, where float32 can't resolve the gap."""
    X, y = problem(200, 5, loss=loss)
    X = X + (scale if scale > 1 else 0)
    params = {"gamma": 0.5} if name in ("gaussian", "laplacian") else kernels.parameters(name, X)
    solution = solve(name, X, y, params, lam, loss, bias=True, max_iter=5000)
    assert solution.converged
    K = kernels.block(name, X, X, params, dtype=np.float64)
    value = primal(K, y, solution.coef, solution.intercept, lam, loss)
    assert value == pytest.approx(solution.objective, rel=1e-6)
    dual = loss.conjugate(-lam * solution.coef, y).sum()
    assert value + dual + 0.5 * lam * solution.coef @ K @ solution.coef <= 1.01e-3 * value


def test_clusters_far_apart():
    """Inner products in float32 lose the distances within a cluster."""
    rng = np.random.default_rng(0)
    centre = np.where(rng.random(60) < 0.5, 0.0, 100.0)
    X = 0.1 * rng.normal(size=(60, 40)) + centre[:, None]
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    solution = solve("gaussian", X, y, {"gamma": 1.0}, 0.1, Hinge, bias=True)
    f = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)) @ solution.coef
    value = 0.05 * solution.coef @ f + np.maximum(0, 1 - y * (f + solution.intercept)).sum()
    assert solution.converged and value == pytest.approx(solution.objective, rel=1e-3)


@pytest.mark.parametrize("seed", [3, 7, 11])
def test_inputs_without_scaling_do_not_diverge(seed):
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(1, 1, 100), rng.normal(3, 1, 100) * 1e4, rng.random(100)]
    y = np.where(X[:, 0] - 1 + X[:, 1] / 1e4 - 3 + 0.3 * rng.standard_normal(100) > 0, 1.0, -1.0)
    objectives = []
    for blocks in (1, 200):
        solution = solve("linear", X, y, {}, 1.0, SquaredHinge, bias=True, max_iter=blocks)
        objectives.append(solution.objective)
        w = X.T @ solution.coef
        value = 0.5 * w @ w + SquaredHinge.value(X @ w + solution.intercept, y).sum()
        assert value == pytest.approx(solution.objective, rel=1e-4)
        assert solution.converged <= (solution.gap <= 1e-3 * solution.objective)
    assert np.isfinite(objectives).all() and objectives[1] < 10_000


def test_the_pairs_of_classes_take_their_values_from_one_matrix(monkeypatch):
    """30 classes of 10 rows have 435 machines, for every lambda and fold."""
    made = []
    block = kernels.block
    monkeypatch.setattr(
        kernels, "block", lambda *some, **out: made.append(1) or block(*some, **out)
    )
    y = np.repeat(np.arange(6.0), 10)
    X = np.random.default_rng(0).normal(size=(60, 3)) + y[:, None]
    methods.create("kernel", loss="squared_hinge", gamma=0.1, lam=0.1, task="multiclass").fit(X, y)
    assert len(made) <= 2


# a loss of numbers, zero within a tube around the targets


@each_tube
def test_weights_are_repetitions(loss, bias):
    X, y = problem(80, loss=loss)
    times = 1 + np.arange(80) % 3
    weighted = solve("gaussian", X, y, GAMMA, 0.5, loss, bias, weights=times * 1.0, tol=1e-8)
    rows = np.repeat(np.arange(80), times)
    repeated = solve("gaussian", X[rows], y[rows], GAMMA, 0.5, loss, bias, tol=1e-8)
    assert weighted.converged and repeated.converged
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)
    K, together = kernels.block("gaussian", X, X, GAMMA), np.bincount(rows, repeated.coef)
    np.testing.assert_allclose(K @ weighted.coef, K @ together, atol=1e-3)


@pytest.mark.parametrize("bias", [False, True])
def test_a_tube_that_holds_all_targets(bias):
    X, y = problem(50, loss=Absolute)
    width = 0.51 * (y.max() - y.min()) if bias else 1.01 * np.abs(y).max()
    # in a slightly narrower tube, the two extreme targets matter
    solution, narrower = (
        solve("gaussian", X, y, GAMMA, 0.1, EpsilonInsensitiveLoss(own), bias, tol=1e-6)
        for own in (width, 0.97 * width)
    )
    assert solution.converged and not solution.coef.any()
    assert solution.objective == solution.gap == 0
    assert np.abs(y - solution.intercept).max() <= width
    assert narrower.converged and narrower.coef.any() and narrower.objective > 0


@pytest.mark.parametrize("scale", [1e-3, 1e5])
@each_tube
def test_the_unit_of_the_targets_does_not_matter(loss, bias, scale):
    sizes = WorkSizes(first_rows=200, few=0)
    X, y = problem(600, loss=loss)
    wider = EpsilonInsensitiveLoss(scale * loss.epsilon)
    one = solve("gaussian", X, y, GAMMA, 0.5, loss, bias, sizes, tol=1e-6)
    other = solve("gaussian", X, scale * y, GAMMA, 0.5 / scale, wider, bias, sizes, tol=1e-6)
    assert one.converged and other.converged
    assert other.objective == pytest.approx(scale * one.objective, rel=3e-6)


def test_what_float32_got_wrong_is_solved_again_in_float64():
    X, y = problem(200, 5, loss=(loss := EpsilonInsensitiveLoss(0.1)))
    limits = {"sizes": WorkSizes(few=0), "tol": 2e-5, "max_iter": 5000}
    solution = solve("linear", X + 1e3, y, {}, 1.0, loss, True, **limits)
    # the entry after the change to float64 is not the last, because its gap was too large
    told = [entry["active"] for entry in solution.trace]
    assert 0 in told[:-1] and solution.converged
