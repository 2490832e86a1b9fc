"""The kernel machine with several classes, one machine per pair of classes; support vector
regression.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR

from rfx import methods
from rfx.errors import DataError
from rfx.methods.kernel import PAIRED

OPTIONS = {
    "scaling": "none",
    "metric": "none",
    "kernel": "gaussian",
    "gamma": 0.1,
    "lam": 0.1,
    "loss": "hinge",
    "dtype": "float64",
    "tol": 1e-9,
    "task": "multiclass",
}


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(
        240, 6, n_informative=5, n_redundant=0, n_classes=4, n_clusters_per_class=1, random_state=0
    )
    return X, y.astype(float)


def fit(X, y, *more, **options):
    return methods.create("kernel", **OPTIONS | options).fit(X, y, *more)


def pairwise(found):
    """The clipped decision values of the pairs, summed over the pairs of each class."""
    n_classes = round((1 + (1 + 8 * found.shape[1]) ** 0.5) / 2)
    sums = np.zeros((len(found), n_classes))
    for place, (first, second) in enumerate(itertools.combinations(range(n_classes), 2)):
        value = np.clip(found[:, place], -1, 1)
        sums[:, first] += value
        sums[:, second] -= value
    return sums / (n_classes - 1)


def test_pairs_are_those_of_libsvm(rows):
    X, y = rows
    oracle = SVC(C=10, gamma=0.1, tol=1e-10, decision_function_shape="ovo").fit(X, y)
    model = fit(X, y)
    wanted = pairwise(oracle.decision_function(X))
    np.testing.assert_allclose(model.decision_function(X), wanted, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_objective_gap_and_norm_are_those_of_the_pairs(rows, loss):
    X, y = rows
    found = fit(X, y, loss=loss).info
    alone = [
        fit(X[own], np.where(y[own] == first, 1.0, -1.0), loss=loss, task="binary").info
        for first, second in itertools.combinations(range(4), 2)
        for own in [(y == first) | (y == second)]
    ]
    assert found["objective"] == pytest.approx(sum(one["objective"] for one in alone), rel=1e-6)
    assert found["norm"] == pytest.approx(np.linalg.norm([one["norm"] for one in alone]), rel=1e-4)
    assert 0 <= found["gap"] <= 1e-9 * found["objective"]


def test_a_file_with_other_machines_is_refused(rows, tmp_path, reloaded):
    X, y = rows
    reloaded(fit(X, y), X)
    path = tmp_path / "saved.npz"
    with np.load(path) as file:
        arrays = dict(file)
    arrays["coef"], arrays["intercept"] = arrays["coef"][:, :5], arrays["intercept"][:5]
    np.savez(path, **arrays)
    with pytest.raises(DataError, match="5 machines do not match"):
        methods.load(path)


def test_many_classes_have_a_machine_each():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(PAIRED + 1.0), 3)
    X = rng.normal(size=(len(y), 3)) + y[:, None]
    model = fit(X, y)
    assert model.model.coef.shape[1] == PAIRED + 1


def test_pairs_without_rows_are_neutral(rows):
    X, y = rows
    trainer = methods.create("kernel", **OPTIONS)
    some = y < 2
    model = replace(trainer, classes=np.arange(4.0)).fit(X[some], y[some])
    decision = model.decision_function(X[some])
    assert decision.shape[1] == 4
    assert np.mean(np.argmax(decision, axis=1) == y[some]) > 0.9


# ------------------------------------------------------------------ regression with a tube


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (250, 3))
    return X, 100 + 10 * np.sin(2 * X[:, 0]) + 5 * X[:, 1] ** 2 + rng.standard_normal(250)


def regression(X, y, *more, **options):
    options = {"loss": "epsilon_insensitive", "task": "regression"} | options
    return fit(X, y, *more, **options)


@pytest.mark.parametrize("loss, epsilon", [("epsilon_insensitive", 1.5), ("absolute", 0.0)])
def test_a_tube_is_scikit_learns_svr(numbers, loss, epsilon):
    X, y = numbers
    more = {"epsilon": epsilon} if epsilon else {}
    model = regression(X, y, loss=loss, **more)
    oracle = SVR(C=10, gamma=0.1, epsilon=epsilon, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict(X), oracle.predict(X), atol=2e-2)
    info = model.info
    assert 0 <= info["gap"] <= 1e-9 * info["objective"] and info["loss"] == loss
    own = model.model
    norm = np.sqrt(own.coef[:, 0] @ rbf_kernel(own.support, gamma=0.1) @ own.coef[:, 0])
    assert info["norm"] == pytest.approx(norm, rel=1e-6)
    sums = np.maximum(0, np.abs(model.predict(X) - y) - epsilon).sum()
    assert info["objective"] == pytest.approx(0.05 * norm**2 + sums, rel=1e-6)


def test_without_bias_it_has_none(numbers):
    X, y = numbers
    model = regression(X, y, bias=False, epsilon=2.0)
    assert model.model.intercept == [0.0]
    assert model.info["objective"] > regression(X, y, epsilon=2.0).info["objective"]


def test_a_saved_regression_keeps_its_tube(numbers, reloaded):
    X, y = numbers
    model = regression(X, y, epsilon=0.7)
    again = reloaded(model, X)
    assert again.loss.epsilon == 0.7 and again.method == model.method
