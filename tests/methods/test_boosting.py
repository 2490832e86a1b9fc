"""Boosting: exact search for stumps, surrogates for perceptrons, fully corrective steps down to the
optimum.
"""

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

RNG = np.random.default_rng(5)
X = np.round(RNG.uniform(-1, 1, (300, 3)), 1)
Y = np.where(
    np.sin(3 * X[:, 0]) + X[:, 1] ** 2 - X[:, 2] + 0.5 * RNG.standard_normal(300) > 0.3, 1.0, -1.0
)
LOSSES = [losses.Squared, losses.SquaredHinge, losses.Logistic]
LAM = 5.0


def all_stumps(X):
    """(columns, thresholds, signs (n, stumps)) of every stump that separates rows, and of the
    constant one, by definition.
    """
    found = [(j, a) for j in range(X.shape[1]) for a in np.unique(X[:, j])]
    columns, thresholds = (np.array(part) for part in zip(*found))
    return columns, thresholds, np.where(X[:, columns] >= thresholds, 1.0, -1.0)


def perceptrons(X=X, surrogate=losses.Logistic, exact=True, count=1):
    return Perceptrons(
        X.astype(np.float64),
        {"radius": float(np.linalg.norm(X, axis=1).max())},
        surrogate,
        exact,
        count,
        0,
    )


def stumps(count=1):
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
def test_the_surrogate_is_the_minimiser_of_the_weighted_loss(surrogate, rng):
    u = rng.standard_normal(300) * np.abs(X[:, 0])
    u[::7] = 0.0
    theta, b = fit_linear(X, u, surrogate)
    weights, labels = np.abs(u) / np.abs(u).sum(), -np.sign(u)

    def value(w):
        return float(weights @ surrogate.value(X @ w[:3] + w[3], labels)) + 0.5e-6 * float(w @ w)

    best = optimize.minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert value(np.append(theta, b)) == pytest.approx(best.fun, rel=1e-5)


def test_the_surrogate_of_separable_rows_is_finite_and_separates():
    u = -np.where(X[:, 0] > 0.05, 1.0, -1.0)
    theta, b = fit_linear(X, u, losses.Logistic)
    assert np.isfinite(theta).all() and np.array_equal(np.sign(X @ theta + b), -u)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("learner", [perceptrons, stumps])
def test_every_step_falls_and_is_the_minimum_over_the_features_found(learner, loss):
    found = learner()
    solution = solve_boosting(found, Y, LAM, loss, n_features=25)
    signs = np.where(found.found.transform(found.X) > 0, 1.0, -1.0)
    objectives = [entry["objective"] for entry in solution.trace]
    assert len(objectives) > 5 and all(
        after < before for before, after in zip(objectives, objectives[1:])
    )
    assert [entry["features"] for entry in solution.trace] == list(range(len(objectives)))
    assert solution.status == "converged" and solution.n_iter == len(objectives) - 1
    assert solution.objective == objectives[-1]
    assert objectives[-1] == pytest.approx(
        LAM * np.abs(solution.coef).sum() + loss.value(signs @ solution.coef, Y).sum(), rel=1e-12
    )
    for count in (3, len(objectives) - 1):
        best = solve_l1(
            DenseMatrix(np.ascontiguousarray(signs[:, :count])), Y, LAM, loss, Budget(tol=1e-9)
        ).objective
        assert best * (1 - 1e-8) <= objectives[count] <= best * (1 + 1e-5)
        assert solution.trace[count]["gap"] <= 1e-5 * objectives[count]
    # each one was useful
    assert all(entry["greedy"] > LAM for entry in solution.trace[1:])


@pytest.mark.parametrize("loss", LOSSES)
def test_stumps_end_at_the_optimum_over_all_of_them(loss):
    everything = np.ascontiguousarray(all_stumps(X)[2])
    best = solve_l1(DenseMatrix(everything), Y, LAM, loss, Budget(tol=1e-9)).objective
    short, long = (
        solve_boosting(stumps(), Y, LAM, loss, Budget(tol=tol), n_features=size)
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
def test_it_ends_when_the_feature_found_has_too_small_a_gradient(surrogate):
    found = perceptrons(exact=False, surrogate=surrogate)
    solution = solve_boosting(found, Y, 20.0, losses.SquaredHinge, n_features=500)
    assert 0 < len(solution.coef) < 500
    f = np.where(found.found.transform(found.X) > 0, 1.0, -1.0) @ solution.coef
    signs, largest = found.find(losses.SquaredHinge.derivative(f, Y))
    assert largest is None and np.abs(
        losses.SquaredHinge.derivative(f, Y) @ signs
    ).max() <= 20.0 * (1 + 1e-3)


@pytest.mark.parametrize("learner", [perceptrons, stumps])
def test_several_features_a_step(learner):
    solution = solve_boosting(learner(count=3), Y, LAM, losses.SquaredHinge, n_features=10)
    assert len(solution.coef) == 10 and solution.n_iter < 10
    assert [entry["features"] for entry in solution.trace][:3] == [0, 3, 6]


@pytest.mark.parametrize("learner", [perceptrons, stumps])
def test_a_large_lambda_finds_nothing(learner):
    solution = solve_boosting(learner(), Y, 1e4, losses.Squared)
    assert (
        len(solution.coef) == 0 and solution.status == "converged" and solution.objective == 150.0
    )


def test_a_deadline_ends_it_with_what_there_is():
    solution = solve_boosting(stumps(), Y, LAM, losses.Squared, Budget(deadline=0.0))
    assert solution.status == "timeout" and len(solution.coef) == 0


@pytest.mark.parametrize("kernel", ["perceptron", "stump"])
def test_the_curve_ends_at_the_score(kernel):
    method = methods.create("boosting", kernel=kernel, lam=2.0, n_features=30)
    method = method.fit(X[:200], Y[:200], held_out=(X[200:], Y[200:]))
    assert method.trace[-1]["error"] == pytest.approx(1 - method.score(X[200:], Y[200:]).score)
    assert (
        method.info["model_size"]
        == method.trace[-1]["nnz"]
        <= method.info["n_found"]
        == method.trace[-1]["features"]
    )


def test_the_objective_is_that_of_the_kernels_features():
    """+-s with scale `kernel` and lambda equals +-1 with scale `unit` and lambda/s."""
    raw = methods.create("boosting", lam=3.0, n_features=20, threshold="exact").fit(X, Y)
    s = np.sqrt(raw.model.map.params["radius"] / perceptron_constant(3))
    unit = methods.create(
        "boosting", lam=3.0 / s, n_features=20, threshold="exact", perceptron_scale="unit"
    ).fit(X, Y)
    assert raw.info["objective"] == pytest.approx(unit.info["objective"], rel=1e-9)
    np.testing.assert_allclose(raw.model.coef * s, unit.model.coef, rtol=1e-6)
    np.testing.assert_allclose(
        raw.decision_function(X), unit.decision_function(X), rtol=1e-5, atol=1e-6
    )
    value = (
        3.0 * np.abs(raw.model.coef).sum()
        + losses.SquaredHinge.value(raw.decision_function(X), Y).sum()
    )
    assert raw.info["objective"] == pytest.approx(value, rel=1e-5)
