"""Kernel SVM with the absolute and the epsilon-insensitive loss: certificate, KKT conditions, and
agreement with scikit-learn's SVR and a float64 quadratic programme.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVR

from rfx import kernels
from rfx.losses import get_loss
from rfx.operators.kernel import KernelMatrix
from rfx.solvers.base import Budget
from rfx.solvers.kernel import svm as kernel_svm
from rfx.solvers.kernel.block import solve_pairs, solve_singles
from rfx.solvers.kernel.svm import best_bias, solve_kernel_svm

CASES = [(tube, bias) for tube in (0.0, 0.2) for bias in (False, True)]
GAMMA = {"gamma": 2.0}


def problem(n_rows=120, n_inputs=3, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_inputs))
    return X, 1 + np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.standard_normal(n_rows)


def loss_of(tube):
    return get_loss("epsilon_insensitive", tube) if tube else get_loss("absolute")


def solve(name, X, y, params, lam, tube, bias, warm=None, seed=0, weights=None, **limits):
    K = KernelMatrix(name, X, params)
    return solve_kernel_svm(
        K, y, lam, loss_of(tube), Budget(**limits), warm, bias=bias, seed=seed, weights=weights
    )


def primal(K, y, coef, b, lam, tube, weights=1.0):
    f = K @ coef
    return 0.5 * lam * coef @ f + (weights * np.maximum(0, np.abs(y - f - b) - tube)).sum()


def reference(K, y, lam, tube, bias):
    """The optimal objective: the dual in 2n variables from 0 to C, by sequential quadratic
    programming.
    """
    n, both = len(y), np.vstack([np.eye(len(y)), -np.eye(len(y))])
    linear = both @ y - tube
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


@pytest.mark.parametrize("tube, bias", CASES)
@pytest.mark.parametrize("name", ["gaussian", "laplacian", "perceptron", "linear"])
def test_optimum_and_certificate(name, tube, bias):
    X, y = problem(40)
    params = kernels.parameters(name, X)
    K = kernels.block(name, X, X, params)
    solution = solve(name, X, y, params, 0.5, tube, bias, tol=1e-7)
    assert solution.converged and 0 <= solution.gap <= 1e-7 * solution.objective
    assert solution.objective == pytest.approx(reference(K, y, 0.5, tube, bias), rel=1e-6)
    value = primal(K, y, solution.coef, solution.intercept, 0.5, tube)
    assert solution.objective == pytest.approx(value, rel=1e-9)
    assert (solution.intercept == 0) != bias


@pytest.mark.parametrize("tube, bias", CASES)
def test_kkt_conditions(tube, bias):
    X, y = problem()
    lam = 1.0
    solution = solve("laplacian", X, y, {"gamma": 1.0}, lam, tube, bias, tol=1e-11)
    coef = solution.coef
    K = kernels.block("laplacian", X, X, {"gamma": 1.0})
    r = y - K @ coef - solution.intercept
    at_top, at_zero = np.abs(coef) == 1 / lam, coef == 0
    free = ~at_top & ~at_zero
    assert free.any() and at_top.any() and (at_zero.any() or not tube)
    assert np.abs(np.abs(r[free]) - tube).max() < 1e-4
    assert np.all(np.abs(r[at_zero]) <= tube + 1e-4)
    assert np.all(np.abs(r[at_top]) >= tube - 1e-4)
    assert np.all((np.sign(coef) == np.sign(r))[at_top & (np.abs(r) > 1e-4)])
    if bias:
        assert coef.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam, tube", [(1.0, 0.1), (0.05, 0.1), (0.1, 0.0)])
def test_with_bias_it_is_scikit_learns_svr(lam, tube, weighted):
    X, y = problem(600, 5)
    own = np.random.default_rng(1).uniform(0.2, 3, 600) if weighted else None
    model = SVR(C=1 / lam, gamma=2.0, epsilon=tube, tol=1e-7).fit(X, y, own)
    theirs = np.zeros(600)
    theirs[model.support_] = model.dual_coef_[0]
    solution = solve("gaussian", X, y, GAMMA, lam, tube, True, weights=own, tol=1e-7)
    K, factors = kernels.block("gaussian", X, X, GAMMA), 1.0 if own is None else own
    value = primal(K, y, theirs, model.intercept_[0], lam, tube, factors)
    # LIBSVM has kernel values in float32
    assert value * (1 - 2e-5) <= solution.objective <= value * (1 + 1e-6)
    test = problem(200, 5, seed=1)[0]
    found = kernels.decision("gaussian", GAMMA, X, solution.coef, test) + solution.intercept
    np.testing.assert_allclose(found, model.predict(test), atol=2e-3)


@pytest.mark.parametrize("tube, bias", CASES)
def test_weights_are_repetitions(tube, bias):
    X, y = problem(80)
    times = 1 + np.arange(80) % 3
    weighted = solve("gaussian", X, y, GAMMA, 0.5, tube, bias, weights=times * 1.0, tol=1e-8)
    rows = np.repeat(np.arange(80), times)
    repeated = solve("gaussian", X[rows], y[rows], GAMMA, 0.5, tube, bias, tol=1e-8)
    assert weighted.converged and repeated.converged
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)
    K = kernels.block("gaussian", X, X, GAMMA)
    together = np.bincount(rows, repeated.coef)
    np.testing.assert_allclose(K @ weighted.coef, K @ together, atol=1e-3)


@pytest.mark.parametrize("bias", [False, True])
def test_a_tube_that_holds_all_targets(bias):
    X, y = problem(50)
    width = 0.51 * (y.max() - y.min()) if bias else 1.01 * np.abs(y).max()
    solution = solve("gaussian", X, y, GAMMA, 0.1, width, bias, tol=1e-6)
    assert solution.converged and not solution.coef.any()
    assert solution.objective == solution.gap == 0
    assert np.abs(y - solution.intercept).max() <= width
    # in a slightly narrower tube, the two extreme targets matter
    other = solve("gaussian", X, y, GAMMA, 0.1, 0.97 * width, bias, tol=1e-6)
    assert other.converged and other.coef.any() and other.objective > 0


@pytest.mark.parametrize("tube, bias", CASES)
@pytest.mark.parametrize("n_rows", [1, 30])
def test_constant_targets(tube, bias, n_rows):
    X, y = problem(30)[0][:n_rows], np.full(n_rows, 3.0)
    solution = solve("gaussian", X, y, GAMMA, 0.5, tube, bias, tol=1e-6)
    assert solution.converged
    if bias:
        assert solution.objective == 0 and not solution.coef.any()
        assert solution.intercept == pytest.approx(3, abs=tube)
    else:
        K = kernels.block("gaussian", X, X, GAMMA)
        assert solution.objective == pytest.approx(reference(K, y, 0.5, tube, bias), rel=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 1e5])
@pytest.mark.parametrize("tube, bias", CASES)
def test_the_unit_of_the_targets_does_not_matter(tube, bias, scale, monkeypatch):
    monkeypatch.setattr(kernel_svm, "_FIRST_ROWS", 200)
    monkeypatch.setattr(kernel_svm, "_FEW", 0)
    X, y = problem(600)
    one = solve("gaussian", X, y, GAMMA, 0.5, tube, bias, tol=1e-6)
    other = solve("gaussian", X, scale * y, GAMMA, 0.5 / scale, scale * tube, bias, tol=1e-6)
    assert one.converged and other.converged
    assert other.objective == pytest.approx(scale * one.objective, rel=3e-6)


def test_what_float32_got_wrong_is_solved_again_in_float64(monkeypatch):
    monkeypatch.setattr(kernel_svm, "_FEW", 0)
    X, y = problem(200, 5)
    X = X + 1e3
    solution = solve("linear", X, y, {}, 1.0, 0.1, True, tol=2e-5, max_iter=5000)
    # the entry after the change to float64 is not the last, because its gap was too large
    told = [entry["active"] for entry in solution.trace]
    assert 0 in told[:-1] and solution.converged


@pytest.mark.parametrize("tube", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_best_bias_minimises_the_loss(tube, weighted):
    rng = np.random.default_rng(0)
    for n_rows in (1, 2, 9, 24):
        y, f = rng.standard_normal(n_rows), rng.standard_normal(n_rows)
        own = rng.uniform(0.1, 5, n_rows) if weighted else np.ones(n_rows)
        b = best_bias(y, f, False, own, tube)
        values = [
            own @ np.maximum(np.abs(y - f - c) - tube, 0) for c in [b, *np.linspace(-8, 8, 4001)]
        ]
        assert values[0] <= min(values) + 1e-9


def block(seed, size):
    """A random block of a dual: some variables at zero, some at either bound."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((size, size + 2))
    K, hi = A @ A.T, rng.uniform(0.5, 2, size)
    beta = np.choose(rng.integers(0, 4, size), [np.zeros(size), -hi, hi, rng.uniform(-1, 1) * hi])
    return K, np.zeros(size), 3 * rng.standard_normal(size), beta, -hi, hi


def gain(K, error, beta, moved, tube):
    t = moved - beta
    return error @ t - 0.5 * t @ K @ t - tube * (np.abs(moved) - np.abs(beta)).sum()


@pytest.mark.parametrize("tube", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("seed", range(30))
def test_one_step_of_a_pair_is_exact(seed, tube):
    K, shift, error, beta, lo, hi = block(seed, 2)
    moved, rest = beta.copy(), error.copy()
    solve_pairs(K, shift, rest, moved, lo, hi, tube, 1e-12, 1)
    assert moved.sum() == pytest.approx(beta.sum(), abs=1e-12)
    low, high = max(lo[0] - beta[0], beta[1] - hi[1]), min(hi[0] - beta[0], beta[1] - lo[1])
    steps = np.linspace(low, high, 20001)
    best = max(gain(K, error, beta, beta + [t, -t], tube) for t in steps)
    assert gain(K, error, beta, moved, tube) >= best - 1e-9
    np.testing.assert_allclose(rest, error - K @ (moved - beta), atol=1e-9)
    assert np.all((moved >= lo) & (moved <= hi))


@pytest.mark.parametrize("tube", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("seed", range(30))
def test_one_step_of_a_single_variable_is_exact(seed, tube):
    K, shift, error, beta, lo, hi = block(seed, 1)
    moved, rest = beta.copy(), error.copy()
    solve_singles(K, shift, rest, moved, lo, hi, tube, 1e-12, 1)
    best = max(gain(K, error, beta, np.array([t]), tube) for t in np.linspace(lo[0], hi[0], 20001))
    assert gain(K, error, beta, moved, tube) >= best - 1e-9
    np.testing.assert_allclose(rest, error - K @ (moved - beta), atol=1e-9)


@pytest.mark.parametrize("tube", [0.0, 0.4])
@pytest.mark.parametrize("inner", [solve_singles, solve_pairs])
def test_a_block_ends_where_no_step_gains(inner, tube):
    for seed in range(5):
        K, shift, error, beta, lo, hi = block(seed, 12)
        moved, rest = beta.copy(), error.copy()
        steps = inner(K, shift, rest, moved, lo, hi, tube, 1e-9, 100_000)
        assert 0 < steps < 100_000
        least = gain(K, error, beta, moved, tube)
        rng = np.random.default_rng(seed)
        for width in (1e-3, 1e-1, 1.0):
            for _ in range(300):
                other = moved + width * rng.standard_normal(12)
                if inner is solve_pairs:
                    i, j = rng.choice(12, 2, replace=False)
                    other = moved.copy()
                    t = width * rng.standard_normal()
                    other[i], other[j] = moved[i] + t, moved[j] - t
                    if not np.all((other >= lo) & (other <= hi)):
                        continue
                assert gain(K, error, beta, np.clip(other, lo, hi), tube) <= least + 1e-7
