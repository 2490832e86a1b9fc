"""Probabilities, intervals and importances of estimators without any option."""

from types import SimpleNamespace

import numpy as np
import pytest

from rfx.estimators import RBRegressor, RFClassifier, RFMClassifier, RFMRegressor

FIXED = {"scaling": "none", "metric": "none", "kernel": "gaussian", "gamma": 0.2, "lam": 3.0}


@pytest.fixture(scope="module")
def data():
    """Rows (1200, 2), and targets that are the first input with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    return SimpleNamespace(X=X, y=X[:, 0] + rng.normal(size=1200))


def test_an_interval_covers_the_stated_fraction(data):
    X, y = data.X, data.y
    model = RFMRegressor(**FIXED).fit(X[:600], y[:600])
    prediction, lower, upper = model.predict(X[600:], return_interval=0.9)
    np.testing.assert_array_equal(prediction, model.predict(X[600:]))
    assert np.mean((lower <= y[600:]) & (y[600:] <= upper)) == pytest.approx(0.9, abs=0.03)


def test_a_method_without_left_out_rows_says_so(data):
    model = RBRegressor(metric="none", gamma=0.5, lam=1.0).fit(data.X, data.y)
    with pytest.raises(ValueError, match="return_interval.* AutoRegressor"):
        model.predict(data.X, return_interval=0.9)


@pytest.mark.parametrize("kind", [RFClassifier, RFMClassifier])
def test_probabilities_need_no_option(kind, data):
    X = data.X
    model = kind(**FIXED).fit(X[:600], np.where(data.y[:600] > 0, "yes", "no"))
    shares = model.predict_proba(X[600:])
    # the prediction has the larger decision value, also where both labels are equally probable
    constraint = np.abs(shares[:, 1] - 0.5) > 0.05
    likely = model.classes_[shares.argmax(axis=1)]
    np.testing.assert_array_equal(likely[constraint], model.predict(X[600:])[constraint])
    assert np.mean(shares[:, 1]) == pytest.approx(np.mean(data.y[600:] > 0), abs=0.05)


def test_class_weights_keep_their_effect_on_predictions(data):
    X = data.X
    labels = np.where(data.y[:600] > 1.5, "yes", "no")
    model = RFClassifier(**FIXED, class_weight="balanced").fit(X[:600], labels)
    shares, often = model.predict_proba(X[600:])[:, 1], model.predict(X[600:]) == "yes"
    assert shares.mean() == pytest.approx(np.mean(labels == "yes"), abs=0.03)
    assert often.mean() > 1.5 * np.mean(labels == "yes")
