"""Parallel randomised coordinate descent over bins and over Fourier features, against the other L1
solvers.
"""

import numpy as np
import pytest

from rfx import env, losses, methods
from rfx.errors import UsageError
from rfx.features import sample
from rfx.features.binning import sample_grids
from rfx.operators.binned import BinnedMatrix
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1.bins import solve_prcd
from rfx.solvers.l1.newton import lambda_max, solve_l1

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (400, 3))
VALUES = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.where(VALUES > 0.3, 1.0, -1.0)
LOSSES = {
    "squared": (losses.Squared, VALUES),
    "squared_hinge": (losses.SquaredHinge, LABELS),
    "logistic": (losses.Logistic, LABELS),
}


def bins():
    ids, found = sample_grids("laplacian", 3, 60, 0, gamma=2.0).number(X)
    return BinnedMatrix(ids, found.starts)


def fourier(rows=X):
    return MapMatrix(sample("laplacian", 3, 120, 0, gamma=2.0), rows)


FEATURES = {
    "bins": bins(),
    "fourier": fourier(),
    "array": DenseMatrix(RNG.standard_normal((400, 50))),
}


@pytest.fixture(params=[1, 2, 4])
def threads(request):
    env.set_threads(request.param)
    yield request.param
    env.set_threads(None)


@pytest.mark.parametrize("features", list(FEATURES))
@pytest.mark.parametrize("name", list(LOSSES))
def test_prcd_reaches_the_optimum_with_any_number_of_threads(name, features, threads):
    (loss, y), Z = LOSSES[name], FEATURES[features]
    lam = 0.1 * lambda_max(Z, y, loss)
    expected = solve_l1(Z, y, lam, loss, Budget(tol=1e-7))
    solution = solve_prcd(Z, y, lam, loss, Budget(tol=1e-4, max_iter=5000))
    assert solution.converged and 0 <= solution.gap <= 1e-4 * solution.objective
    assert (
        0
        <= solution.objective - expected.objective + 1e-7 * expected.objective
        <= solution.gap + 2e-7 * expected.objective
    )


def test_the_trace_has_the_objective_of_every_pass(threads):
    loss, y = LOSSES["squared_hinge"]
    solution = solve_prcd(FEATURES["bins"], y, 0.05, loss, Budget(tol=1e-9, max_iter=25))
    assert (
        [entry["iteration"] for entry in solution.trace] == list(range(26))
        and solution.n_iter == 25
        and not solution.converged
    )
    values = np.array([entry["objective"] for entry in solution.trace])
    assert np.all(values[1:] <= values[:-1] * (1 + 1e-9)) and values[-1] == solution.objective
    assert [entry["iteration"] for entry in solution.trace if "gap" in entry] == [0, 10, 20, 25]
    seconds = [entry["pass_seconds"] for entry in solution.trace]
    assert seconds == sorted(seconds) and seconds[0] == 0


def test_a_pass_is_one_exact_sweep_by_one_thread():
    lam, w, f = 0.3, np.zeros(50), np.zeros(400)
    Z = FEATURES["array"].Z
    env.set_threads(1)
    solution = solve_prcd(
        FEATURES["array"], VALUES, lam, losses.Squared, Budget(max_iter=1), seed=7
    )
    for j in np.random.Generator(np.random.Philox(7)).permutation(50):
        norm = Z[:, j] @ Z[:, j]
        free = w[j] - Z[:, j] @ (f - VALUES) / norm
        step = np.sign(free) * max(0.0, abs(free) - lam / norm) - w[j]
        w[j] += step
        f += step * Z[:, j]
    np.testing.assert_allclose(solution.coef, w, atol=1e-12)


def test_steps_of_several_threads_that_add_up_to_too_much_are_taken_back():
    # equal columns: two threads that each move one at the same time go twice as far as they should
    column = RNG.standard_normal((3000, 1))
    Z = DenseMatrix(np.repeat(column, 64, axis=1))
    y = column[:, 0] + 0.1 * RNG.standard_normal(3000)
    env.set_threads(4)
    solution = solve_prcd(Z, y, 1.0, losses.Squared, Budget(tol=1e-6, max_iter=200))
    values = [entry["objective"] for entry in solution.trace]
    assert solution.converged and all(b <= a * (1 + 1e-9) for a, b in zip(values, values[1:]))


def test_edges():
    loss, y = LOSSES["squared_hinge"]
    for Z in FEATURES.values():
        zero = solve_prcd(Z, y, 1.001 * lambda_max(Z, y, loss), loss)
        assert zero.n_iter == 0
        assert not zero.coef.any()
    empty = DenseMatrix(np.zeros((400, 3)))
    assert not solve_prcd(empty, y, 1e-3, loss).coef.any()


@pytest.mark.parametrize(
    ("name", "size"), [("sparse-rf", {"n_features": 60}), ("sparse-rb", {"n_grids": 30})]
)
def test_the_methods_solve_the_same_problem_by_prcd(name, size, threads):
    options = {
        "kernel": "laplacian",
        "gamma": 2.0,
        "lam": 20.0 if name == "sparse-rf" else 2.0,
    } | size
    prcd = methods.create(name, solver="prcd", max_iter=20_000, tol=1e-3, **options).fit(X, LABELS)
    own = methods.create(
        name, tol=1e-6, **options | ({"rounds": 1} if name == "sparse-rf" else {})
    ).fit(X, LABELS)
    assert prcd.info["converged"] and prcd.info["objective"] == pytest.approx(
        own.info["objective"], rel=2e-3
    )
    assert (
        prcd.trace[-1]["objective"] == prcd.info["objective"]
        and prcd.info["model_size"] <= prcd.info["n_features"]
    )


def test_prcd_refuses_features_that_exceed_the_memory():
    method = methods.create(
        "sparse-rf", solver="prcd", n_features=1000, max_memory=1, lam=1, gamma=1
    )
    with pytest.raises(UsageError, match="--solver prcd holds all features, 2 MiB, but"):
        method.fit(X, LABELS)
