"""Kernel SVM: certificate, KKT conditions, and agreement with scikit-learn's SVC and a float64
quadratic programme.
"""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.svm import SVC

from rfx import env, kernels, methods
from rfx.errors import DataError, UsageError
from rfx.losses import OF_NUMBERS, get_loss
from rfx.operators.kernel import KernelMatrix
from rfx.solvers.base import Budget
from rfx.solvers.kernel import svm as kernel_svm
from rfx.solvers.kernel.cache import ColumnCache, add_columns
from rfx.solvers.kernel.svm import best_bias, solve_kernel_svm

NAMES = ["gaussian", "laplacian", "laplacian-l2", "perceptron", "stump", "linear"]
CASES = [(loss, bias) for loss in ("hinge", "squared_hinge") for bias in (False, True)]
ALL = CASES + [
    (loss, bias) for loss in ("absolute", "epsilon_insensitive") for bias in (False, True)
]
GAMMA = {"gamma": 2.0}


def problem(n_rows=120, n_inputs=3, noise=0.1, seed=0, loss="hinge"):
    """Rows and labels, or targets for a loss of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_inputs))
    if loss in OF_NUMBERS:
        return X, 1 + np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.standard_normal(n_rows)
    y = np.where(np.sin(4 * X[:, 0]) + X[:, 1] ** 2 > 0.3, 1.0, -1.0)
    return X, np.where(rng.random(n_rows) < noise, -y, y)


def solve(name, X, y, params, lam, loss="squared_hinge", bias=False, warm=None, seed=0, **limits):
    K = KernelMatrix(name, X, params)
    return solve_kernel_svm(K, y, lam, get_loss(loss), Budget(**limits), warm, bias=bias, seed=seed)


def primal(K, y, coef, b, lam, loss):
    f = K @ coef
    return 0.5 * lam * coef @ f + get_loss(loss).value(f + b, y).sum()


def reference(K, y, lam, loss, bias):
    """The optimal objective in float64: LIBSVM on the precomputed kernel with a bias, L-BFGS-B on
    the dual without.
    """
    C, squared = 1.0 / lam, loss == "squared_hinge"
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


@pytest.mark.parametrize("loss, bias", CASES)
@pytest.mark.parametrize("name", NAMES)
def test_optimum_and_certificate(name, loss, bias):
    X, y = problem()
    params = kernels.parameters(name, X)
    K = kernels.block(name, X, X, params)
    optimum = reference(K, y, 0.5, loss, bias)
    solution = solve(name, X, y, params, 0.5, loss, bias=bias, tol=1e-7)
    assert solution.converged and 0 <= solution.gap <= 1e-7 * solution.objective
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    assert solution.objective == pytest.approx(
        primal(K, y, solution.coef, solution.intercept, 0.5, loss), rel=1e-9
    )
    assert solution.intercept == 0 or bias


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, also for small problems."""
    monkeypatch.setattr(kernel_svm, "_BLOCK", 16)
    monkeypatch.setattr(kernel_svm, "_FIRST_ROWS", 40)
    monkeypatch.setattr(kernel_svm, "_FEW", 0)
    monkeypatch.setattr(kernel_svm, "_LEAST_COLUMNS", 2)


@pytest.mark.parametrize("loss, bias", ALL)
@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_gap_bounds_the_suboptimality(loss, bias, max_iter, small_blocks, monkeypatch):
    monkeypatch.setattr(kernel_svm, "_BLOCK", 8)
    monkeypatch.setattr(kernel_svm, "_FIRST_ROWS", 30)
    X, y = problem(loss=loss)
    K = kernels.block("gaussian", X, X, GAMMA)
    if loss in OF_NUMBERS:
        optimum = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-9).objective
    else:
        optimum = reference(K, y, 1.0, loss, bias)
    solution = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-7, max_iter=max_iter)
    assert not solution.converged and solution.n_iter == max_iter
    value = primal(K, y, solution.coef, solution.intercept, 1.0, loss)
    assert value == pytest.approx(solution.objective, rel=1e-9)
    assert 0 <= value - optimum <= solution.gap * (1 + 1e-9)


@pytest.mark.parametrize("loss, bias", CASES)
def test_kkt_conditions(loss, bias):
    X, y = problem()
    lam = 0.3
    solution = solve("laplacian", X, y, {"gamma": 1.0}, lam, loss, bias=bias, tol=1e-11)
    alpha = y * solution.coef
    margin = y * (
        kernels.block("laplacian", X, X, {"gamma": 1.0}) @ solution.coef + solution.intercept
    )
    assert alpha.min() >= 0
    if bias:
        assert solution.coef.sum() == pytest.approx(0, abs=1e-9)
    assert np.all(margin[alpha == 0] >= 1 - 1e-4)
    if loss == "hinge":
        assert alpha.max() <= 1 / lam
        free = (alpha > 0) & (alpha < 1 / lam)
        assert free.any() and np.abs(margin[free] - 1).max() < 1e-4
        assert np.all(margin[alpha == 1 / lam] <= 1 + 1e-4)
    else:
        np.testing.assert_allclose(alpha, 2 / lam * np.maximum(0, 1 - margin), atol=1e-3)


@pytest.mark.parametrize("lam", [1.0, 0.05])
def test_hinge_with_bias_is_scikit_learns_svc(lam):
    X, y = problem(800, 5)
    model = SVC(C=1 / lam, gamma=2.0, tol=1e-6).fit(X, y)
    solution = solve("gaussian", X, y, GAMMA, lam, "hinge", bias=True, tol=1e-6)
    test = problem(300, 5, seed=1)[0]
    scores = kernels.decision("gaussian", GAMMA, X, solution.coef, test) + solution.intercept
    np.testing.assert_allclose(scores, model.decision_function(test), atol=0.02)
    assert solution.intercept == pytest.approx(model.intercept_[0], abs=0.02)


@pytest.mark.parametrize("loss, bias", ALL)
@pytest.mark.parametrize("memory", [0.0, 0.01, 10.0])
def test_small_blocks_tiny_cache_and_growing_active_sets(loss, bias, memory, small_blocks):
    X, y = problem(250, loss=loss)
    best = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-6).objective
    limits = {"tol": 1e-3, "memory_mb": memory}
    solution = solve("gaussian", sp.csr_matrix(X), y, GAMMA, 1.0, loss, bias=bias, **limits)
    assert solution.converged
    assert best * (1 - 1e-6) <= solution.objective <= best * (1 + 1e-3)
    assert len(solution.trace) > 1 and solution.trace[0]["active"] < 250


@pytest.mark.parametrize("loss, bias", CASES)
def test_long_rounds_tell_how_far_they_are(loss, bias, small_blocks, monkeypatch):
    X, y = problem(250)
    rounds = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-3)
    monkeypatch.setattr(kernel_svm, "_TELLING", 3)
    told = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-3)
    np.testing.assert_array_equal(told.coef, rounds.coef)
    assert len(told.trace) >= len(rounds.trace) + 3
    # the first round, on a sample, begins with the loss of all rows as its gap; the last ends near
    # the certificate
    gap = np.array([entry["gap"] for entry in told.trace])
    assert gap[0] > 0.3 * told.trace[0]["objective"] and (gap >= 0).all()
    assert gap[-2] < 0.3 * gap[0]


@pytest.mark.parametrize("loss, bias", ALL)
def test_warm_start_from_the_solution_stops_at_once(loss, bias):
    X, y = problem(300, loss=loss)
    first = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-4)
    again = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-3, warm=first.coef)
    assert again.n_iter == 0 and again.converged
    assert again.objective == pytest.approx(first.objective, rel=1e-6)
    # another starting point, even an infeasible one, leads to the same solution
    far = 3 * np.where(np.arange(300) < 200, 1.0, -1.0)
    other = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-4, warm=far)
    assert other.converged and other.objective == pytest.approx(first.objective, rel=2e-4)


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("loss, bias", CASES)
def test_all_labels_equal_and_one_row(loss, bias, label):
    for n_rows in (1, 30):
        X = problem(30)[0][:n_rows]
        y = np.full(n_rows, label)
        solution = solve("gaussian", X, y, {"gamma": 1.0}, 0.5, loss, bias=bias, tol=1e-6)
        assert solution.converged
        if bias:
            assert solution.objective == pytest.approx(0, abs=1e-12)
            assert solution.intercept == label and not solution.coef.any()
        else:
            K = kernels.block("gaussian", X, X, {"gamma": 1.0})
            assert solution.objective == pytest.approx(reference(K, y, 0.5, loss, False), rel=1e-5)


@pytest.mark.parametrize("loss, bias", CASES)
def test_duplicate_rows_with_either_label(loss, bias):
    X, y = problem(60)
    X, y = np.vstack([X, X, X]), np.concatenate([y, y, -y])
    solution = solve("gaussian", X, y, GAMMA, 0.2, loss, bias=bias, tol=1e-6)
    K = kernels.block("gaussian", X, X, GAMMA)
    assert solution.converged
    assert solution.objective == pytest.approx(reference(K, y, 0.2, loss, bias), rel=1e-5)


@pytest.mark.parametrize("loss, bias", CASES)
def test_extremes_of_lam(loss, bias):
    X, y = problem(80)
    K = kernels.block("laplacian", X, X, GAMMA)
    for lam in (1e-4, 1e6):
        solution = solve("laplacian", X, y, GAMMA, lam, loss, bias=bias, tol=1e-6)
        assert solution.converged
        assert solution.objective == pytest.approx(reference(K, y, lam, loss, bias), rel=1e-4)


@pytest.mark.threads
@pytest.mark.parametrize("loss, bias", ALL)
def test_threads_and_seed_agree(loss, bias, monkeypatch):
    monkeypatch.setattr(kernel_svm, "_FIRST_ROWS", 200)
    monkeypatch.setattr(kernel_svm, "_FEW", 0)
    X, y = problem(1500, loss=loss)
    solutions = []
    try:
        for count in (1, 2):
            env.set_threads(count)
            solutions.append(solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-4))
    finally:
        env.set_threads(None)
    np.testing.assert_array_equal(solutions[0].coef, solutions[1].coef)
    other = solve("gaussian", X, y, GAMMA, 1.0, loss, bias=bias, tol=1e-4, seed=7)
    assert other.objective == pytest.approx(solutions[0].objective, rel=1e-4)


@pytest.mark.parametrize("squared", [False, True])
def test_best_bias_minimises_the_loss(squared):
    rng = np.random.default_rng(0)
    for n_positive in (0, 1, 10, 24, 25):
        y = np.where(np.arange(25) < n_positive, 1.0, -1.0)
        f = rng.standard_normal(25)
        b = best_bias(y, f, squared)
        loss = get_loss("squared_hinge" if squared else "hinge")
        values = [loss.value(f + c, y).sum() for c in [b, *np.linspace(-6, 6, 4001)]]
        assert values[0] <= min(values) + 1e-9


def test_columns_are_kept_and_made_again():
    X = problem(50)[0]
    params = {"gamma": 1.0}
    K = kernels.block("gaussian", X, X, params)
    cache = ColumnCache(kernels.prepare("gaussian", X, params), np.arange(50), np.empty(50 * 4 + 3))
    assert cache.capacity == 4
    for wanted, computed in (([3, 1], 2), ([1, 7, 8], 4), ([3], 4), ([9, 10], 6), ([1, 3], 7)):
        wanted = np.array(wanted)
        slots = cache.fetch(wanted)
        np.testing.assert_allclose(cache.pool[slots], K[wanted])
        np.testing.assert_allclose(cache.square(wanted), K[np.ix_(wanted, wanted)])
        assert cache.computed == computed
    sums = np.ones(50)
    cache.add_to(sums, slots, np.array([2.0, -1.0]))
    np.testing.assert_allclose(sums, 1 + 2 * K[1] - K[3])
    targets = np.arange(5, 40)
    add_columns(sums, kernels.prepare("gaussian", X, params), targets, np.arange(9), np.ones(9))
    np.testing.assert_allclose(sums[targets], (1 + 2 * K[1] - K[3] + K[:9].sum(axis=0))[targets])


def test_columns_grow_with_the_active_rows():
    X = problem(50)[0]
    params = {"gamma": 1.0}
    K = kernels.block("gaussian", X, X, params)
    active = np.arange(3, 43)
    cache = ColumnCache(kernels.prepare("gaussian", X, params), active, np.empty(50 * 20))
    cache.fetch(np.arange(6))
    assert not cache.adopt(np.arange(50)), "more rows than there is room for"
    assert not cache.adopt(active[:5]), "nearly all rows can go"
    assert cache.adopt(np.concatenate([[0, 1], active[:-2]]))
    np.testing.assert_array_equal(cache.active, [*active, 0, 1])
    wanted = np.array([2, 41, 40])
    slots = cache.fetch(wanted)
    np.testing.assert_allclose(cache.pool[slots], K[np.ix_([5, 1, 0], cache.active)])
    assert cache.computed == 8


def test_deadline_is_kept_and_said():
    X, y = problem(300)
    solution = solve("gaussian", X, y, GAMMA, 1.0, "hinge", deadline=time.monotonic() - 1)
    assert not solution.converged and solution.n_iter == 0
    assert solution.gap == pytest.approx(300) and solution.objective == pytest.approx(300)


def test_bad_data_and_tolerances_are_refused():
    X, y = problem(10)
    with pytest.raises(UsageError, match="at least one row"):
        solve("gaussian", X[:0], y[:0], {"gamma": 1.0}, 1.0)
    with pytest.raises(UsageError, match="tol is 0, but a relative duality gap"):
        solve("gaussian", X, y, {"gamma": 1.0}, 1.0, tol=0)
    X[2, 1] = np.inf
    with pytest.raises(DataError, match="an input is nan or infinite"):
        solve("gaussian", X, y, {"gamma": 1.0}, 1.0)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
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
    dual = get_loss(loss).conjugate(-lam * solution.coef, y).sum()
    assert value + dual + 0.5 * lam * solution.coef @ K @ solution.coef <= 1.01e-3 * value


def test_clusters_far_apart():
    """Inner products in float32 lose the distances within a cluster."""
    rng = np.random.default_rng(0)
    centre = np.where(rng.random(60) < 0.5, 0.0, 100.0)
    X = 0.1 * rng.normal(size=(60, 40)) + centre[:, None]
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    solution = solve("gaussian", X, y, {"gamma": 1.0}, 0.1, "hinge", bias=True)
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
        solution = solve("linear", X, y, {}, 1.0, "squared_hinge", bias=True, max_iter=blocks)
        objectives.append(solution.objective)
        w = X.T @ solution.coef
        value = 0.5 * w @ w + get_loss("squared_hinge").value(X @ w + solution.intercept, y).sum()
        assert value == pytest.approx(solution.objective, rel=1e-4)
        assert solution.converged <= (solution.gap <= 1e-3 * solution.objective)
    assert np.isfinite(objectives).all() and objectives[1] < 10_000


@pytest.mark.parametrize("loss, bias", CASES)
def test_few_rows_are_one_block_with_the_optimum_of_the_others(loss, bias, monkeypatch):
    X, y = problem()
    given = "gaussian", X, y, GAMMA, 1.0, loss
    once = solve(*given, bias=bias, tol=1e-6)
    monkeypatch.setattr(kernel_svm, "_FEW", 0)
    blocks = solve(*given, bias=bias, tol=1e-6)
    assert once.converged
    assert once.objective == pytest.approx(blocks.objective, rel=3e-6)


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
