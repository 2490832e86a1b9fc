"""Boosting: exact search for stumps, surrogates for perceptrons, fully corrective steps down to the
optimum.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize

from rfx import losses, methods
from rfx.kernels.products import perceptron_constant
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1.greedy import (
    Perceptrons,
    Stumps,
    StumpSearch,
    fit_linear,
    solve_boosting,
)
from rfx.solvers.l1.newton import solve_l1

LOSSES = [losses.Squared, losses.SquaredHinge, losses.Logistic]
LAM = 5.0


@pytest.fixture(scope="module")
def noisy():
    """Rows of inputs with one decimal, which repeat, and labels with noise."""
    rng = np.random.default_rng(5)
    X = np.round(rng.uniform(-1, 1, (300, 3)), 1)
    values = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 - X[:, 2] + 0.5 * rng.standard_normal(300)
    return SimpleNamespace(X=X, y=np.where(values > 0.3, 1.0, -1.0))


def all_stumps(X):
    """(columns, thresholds, signs (n, stumps)) of every stump that separates rows, and of the
    constant one, by definition.
    """
    found = [(j, a) for j in range(X.shape[1]) for a in np.unique(X[:, j])]
    columns, thresholds = (np.array(part) for part in zip(*found))
    return columns, thresholds, np.where(X[:, columns] >= thresholds, 1.0, -1.0)


def perceptrons(X, surrogate=losses.Logistic, exact=True, count=1):
    return Perceptrons(
        X.astype(np.float64),
        {"radius": float(np.linalg.norm(X, axis=1).max())},
        surrogate,
        exact,
        count,
        0,
    )


def stumps(X, count=1):
    return Stumps(X, {"lo": X.min(axis=0), "hi": X.max(axis=0)}, count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("digits", [0, 1, 7])
def test_the_search_for_stumps_equals_brute_force(dtype, digits):
    rng = np.random.default_rng(digits)
    for number in range(20):
        rows = np.round(rng.uniform(-2, 2, (60, 4)), digits).astype(dtype)
        rows[:, 3] = 7.0  # an input without a threshold
        u = rng.standard_normal(60) + (number % 3 - 1)
        columns, _, signs = all_stumps(rows)
        thresholds, sums = StumpSearch(rows).best(u)
        for j in range(4):
            best = np.abs(u @ signs[:, columns == j]).max()
            assert abs(sums[j]) == pytest.approx(best, rel=1e-12)
            # the stump with that threshold attains the sum, in the map's arithmetic
            assert thresholds.dtype == dtype
            assert u @ np.where(rows[:, j] >= thresholds[j], 1.0, -1.0) == pytest.approx(
                sums[j], rel=1e-12
            )


def test_neighbouring_numbers_are_told_apart():
    low = np.float32(1.0)
    rows = np.array([[low], [np.nextafter(low, np.float32(2))], [low]], np.float32)
    thresholds, sums = StumpSearch(rows).best(np.array([1.0, -5.0, 1.0]))
    assert thresholds[0] == rows[1, 0] and sums[0] == -7.0


@pytest.mark.parametrize("surrogate", LOSSES)
def test_the_surrogate_is_the_minimiser_of_the_weighted_loss(surrogate, rng, noisy):
    u = rng.standard_normal(300) * np.abs(noisy.X[:, 0])
    u[::7] = 0.0
    theta, b = fit_linear(noisy.X, u, surrogate)
    weights, labels = np.abs(u) / np.abs(u).sum(), -np.sign(u)

    def value(w):
        losses_of_rows = surrogate.value(noisy.X @ w[:3] + w[3], labels)
        return float(weights @ losses_of_rows) + 0.5e-6 * float(w @ w)

    best = optimize.minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert value(np.append(theta, b)) == pytest.approx(best.fun, rel=1e-5)


def test_the_surrogate_of_separable_rows_is_finite_and_separates(noisy):
    u = -np.where(noisy.X[:, 0] > 0.05, 1.0, -1.0)
    theta, b = fit_linear(noisy.X, u, losses.Logistic)
    assert np.isfinite(theta).all() and np.array_equal(np.sign(noisy.X @ theta + b), -u)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("learner", [perceptrons, stumps])
def test_every_step_falls_and_is_the_minimum_over_the_features_found(learner, loss, noisy):
    found = learner(noisy.X)
    solution = solve_boosting(found, noisy.y, LAM, loss, n_features=25)
    signs = np.where(found.found.transform(found.X) > 0, 1.0, -1.0)
    objectives = [entry["objective"] for entry in solution.trace]
    assert len(objectives) > 5 and all(
        after < before for before, after in zip(objectives, objectives[1:])
    )
    assert [entry["features"] for entry in solution.trace] == list(range(len(objectives)))
    assert solution.status == "converged" and solution.n_iter == len(objectives) - 1
    assert solution.objective == objectives[-1]
    assert objectives[-1] == pytest.approx(
        LAM * np.abs(solution.coef).sum() + loss.value(signs @ solution.coef, noisy.y).sum(),
        rel=1e-12,
    )
    for count in (3, len(objectives) - 1):
        part = DenseMatrix(np.ascontiguousarray(signs[:, :count]))
        best = solve_l1(part, noisy.y, LAM, loss, Budget(tol=1e-9)).objective
        assert best * (1 - 1e-8) <= objectives[count] <= best * (1 + 1e-5)
        assert solution.trace[count]["gap"] <= 1e-5 * objectives[count]
    # each one was useful
    assert all(entry["greedy"] > LAM for entry in solution.trace[1:])


@pytest.mark.parametrize("loss", LOSSES)
def test_stumps_end_at_the_optimum_over_all_of_them(loss, noisy):
    everything = np.ascontiguousarray(all_stumps(noisy.X)[2])
    best = solve_l1(DenseMatrix(everything), noisy.y, LAM, loss, Budget(tol=1e-9)).objective
    short, long = (
        solve_boosting(stumps(noisy.X), noisy.y, LAM, loss, Budget(tol=tol), n_features=size)
        for tol, size in ((1e-5, 6), (1e-4, 1000))
    )
    # the certificate covers all stumps, not only those found
    assert short.objective - short.gap <= best * (1 + 1e-9) and short.gap > 1e-3 * best
    assert (
        long.objective - long.gap <= best * (1 + 1e-9) <= long.objective * (1 + 2e-9)
        and long.gap <= 1e-4 * long.objective
    )
    assert len(long.coef) < everything.shape[1]


@pytest.mark.parametrize("surrogate", LOSSES)
def test_it_ends_when_the_feature_found_has_too_small_a_gradient(surrogate, noisy):
    found = perceptrons(noisy.X, exact=False, surrogate=surrogate)
    solution = solve_boosting(found, noisy.y, 20.0, losses.SquaredHinge, n_features=500)
    assert 0 < len(solution.coef) < 500
    f = np.where(found.found.transform(found.X) > 0, 1.0, -1.0) @ solution.coef
    signs, largest = found.find(losses.SquaredHinge.derivative(f, noisy.y))
    assert largest is None and np.abs(
        losses.SquaredHinge.derivative(f, noisy.y) @ signs
    ).max() <= 20.0 * (1 + 1e-3)


@pytest.mark.parametrize("learner", [perceptrons, stumps])
def test_several_features_a_step(learner, noisy):
    found = learner(noisy.X, count=3)
    solution = solve_boosting(found, noisy.y, LAM, losses.SquaredHinge, n_features=10)
    assert len(solution.coef) == 10 and solution.n_iter < 10
    assert [entry["features"] for entry in solution.trace][:3] == [0, 3, 6]


@pytest.mark.parametrize("learner", [perceptrons, stumps])
def test_a_large_lambda_finds_nothing(learner, noisy):
    solution = solve_boosting(learner(noisy.X), noisy.y, 1e4, losses.Squared)
    assert (
        len(solution.coef) == 0 and solution.status == "converged" and solution.objective == 150.0
    )


def test_a_deadline_ends_it_with_what_there_is(noisy):
    solution = solve_boosting(stumps(noisy.X), noisy.y, LAM, losses.Squared, Budget(deadline=0.0))
    assert solution.status == "timeout" and len(solution.coef) == 0


@pytest.mark.parametrize("kernel", ["perceptron", "stump"])
def test_the_curve_ends_at_the_score(kernel, noisy):
    method = methods.create("boosting", kernel=kernel, lam=2.0, n_features=30)
    method = method.fit(noisy.X[:200], noisy.y[:200], held_out=(noisy.X[200:], noisy.y[200:]))
    error = 1 - method.score(noisy.X[200:], noisy.y[200:]).score
    assert method.trace[-1]["error"] == pytest.approx(error)
    assert (
        method.info["model_size"]
        == method.trace[-1]["nnz"]
        <= method.info["n_found"]
        == method.trace[-1]["features"]
    )


def test_the_objective_is_that_of_the_kernels_features(noisy):
    """+-s with scale `kernel` and lambda equals +-1 with scale `unit` and lambda/s."""
    X, y = noisy.X, noisy.y
    raw = methods.create("boosting", lam=3.0, n_features=20, threshold="exact").fit(X, y)
    s = np.sqrt(raw.model.map.params["radius"] / perceptron_constant(3))
    unit = methods.create(
        "boosting", lam=3.0 / s, n_features=20, threshold="exact", perceptron_scale="unit"
    ).fit(X, y)
    assert raw.info["objective"] == pytest.approx(unit.info["objective"], rel=1e-9)
    np.testing.assert_allclose(raw.model.coef * s, unit.model.coef, rtol=1e-6)
    np.testing.assert_allclose(
        raw.decision_function(X), unit.decision_function(X), rtol=1e-5, atol=1e-6
    )
    value = (
        3.0 * np.abs(raw.model.coef).sum()
        + losses.SquaredHinge.value(raw.decision_function(X), y).sum()
    )
    assert raw.info["objective"] == pytest.approx(value, rel=1e-5)
