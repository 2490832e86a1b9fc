"""random_state, scikit-learn's name for a seed, in every estimator that has one."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier

import rfx
from rfx import estimators
from rfx.errors import RfxWarning

GIVEN = {"n_features": 30, "gamma": 0.5, "lam": 1.0}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(80, 3))


@pytest.fixture(scope="module")
def y(X):
    """Two classes of the rows of X."""
    return (X[:, 0] * X[:, 1] > 0).astype(int)


def values(X, y, **seeds):
    return estimators.RFClassifier(**GIVEN, **seeds).fit(X, y).decision_function(X)


def test_a_number_is_a_seed(X, y):
    np.testing.assert_array_equal(values(X, y, random_state=3), values(X, y, seed=3))
    np.testing.assert_array_equal(values(X, y, random_state=np.int64(3)), values(X, y, seed=3))
    assert not np.array_equal(values(X, y, random_state=3), values(X, y))
    model = estimators.RFClassifier(random_state=3, **GIVEN).fit(X, y)
    assert model.method_.method.seed == 3 and model.get_params()["seed"] == 0
    assert "random_state=3" in repr(model)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_draws_the_seed_of_each_fit(make, X, y):
    model = estimators.RFClassifier(random_state=make(0), **GIVEN)
    first, second = (model.fit(X, y).method_.method.seed for _ in range(2))
    assert first != second
    again = estimators.RFClassifier(random_state=make(0), **GIVEN).fit(X, y)
    assert again.method_.method.seed == first
    np.testing.assert_array_equal(again.decision_function(X), values(X, y, seed=first))
    features = [estimators.FourierFeatures(random_state=make(0)).fit_transform(X) for _ in "ab"]
    np.testing.assert_array_equal(*features)
    other = clone(model)
    assert other.random_state is not model.random_state
    assert pickle.loads(pickle.dumps(again)).predict(X).tolist() == again.predict(X).tolist()


def test_all_that_is_random_in_a_fit_has_one_seed(rng, X, y):
    frame_rows = np.column_stack([rng.integers(0, 60, 80), X]).astype(object)
    make = lambda **seeds: estimators.RFClassifier(categorical_features=[0], **GIVEN, **seeds)
    model = make(random_state=np.random.RandomState(1)).fit(frame_rows, y)
    want = make(seed=model.method_.method.seed).fit(frame_rows, y)
    np.testing.assert_array_equal(
        model.decision_function(frame_rows), want.decision_function(frame_rows)
    )


def test_batches_go_on_with_the_seed_of_the_first(X):
    make = lambda **seeds: estimators.DoublySGDRegressor(gamma=0.5, **seeds)
    found = make(random_state=np.random.RandomState(1)).partial_fit(X, X[:, 0])
    seed = found.method_.method.seed
    want = make(seed=seed).partial_fit(X, X[:, 0]).partial_fit(X, X[:, 1])
    np.testing.assert_array_equal(found.partial_fit(X, X[:, 1]).predict(X), want.predict(X))


def test_it_stands_in_the_place_of_the_seed(tmp_path, X, y):
    found = values(X, y, seed=2, random_state=3)
    np.testing.assert_array_equal(found, values(X, y, seed=3))
    estimators.RFClassifier(random_state=3, **GIVEN).fit(X, y).save(tmp_path / "m.npz")
    back = rfx.load(tmp_path / "m.npz")
    assert back.seed == 3 and back.random_state is None
    np.testing.assert_array_equal(clone(back).fit(X, y).decision_function(X), found)


def test_the_members_of_an_ensemble_differ(X, y):
    bag = BaggingClassifier(
        estimators.RFClassifier(**GIVEN), n_estimators=3, bootstrap=False, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RfxWarning)
        bag.fit(X, y)
    assert len({member.method_.method.seed for member in bag.estimators_}) == 3


@pytest.mark.parametrize("wrong", ["x", -1, 0.5, True, np.random])
def test_what_is_no_seed_is_refused(wrong, X, y):
    for model in (estimators.RFClassifier, estimators.FourierFeatures, estimators.LearnedMetric):
        with pytest.raises(ValueError, match="^random_state is .*; it must be a whole number"):
            model(random_state=wrong).fit(X, y)
