"""The kernel machine with several classes: one machine per pair of classes."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC

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


def test_weights_are_repetitions(rows):
    X, y = rows
    weights = np.arange(len(y)) % 3
    repeated = fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    weighted = fit(X, y, weights.astype(float))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-4
    )


def test_a_saved_model_predicts_the_same(rows, tmp_path):
    X, y = rows
    model = fit(X, y)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        methods.load(tmp_path / "model.npz").decision_function(X), model.decision_function(X)
    )


def test_a_file_with_other_machines_is_refused(rows, tmp_path):
    X, y = rows
    path = tmp_path / "model.npz"
    fit(X, y).save(path)
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
