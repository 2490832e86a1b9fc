"""Probabilities, intervals and importances of estimators without any option."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectFromModel

import rfx
from rfx.estimators import RBRegressor, RFClassifier, RFMClassifier, RFMRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 2))
Y = X[:, 0] + RNG.normal(size=1200)
FIXED = {"scaling": "none", "metric": "none", "kernel": "gaussian", "gamma": 0.2, "lam": 3.0}


def test_an_interval_covers_the_stated_fraction():
    model = RFMRegressor(**FIXED).fit(X[:600], Y[:600])
    prediction, lower, upper = model.predict(X[600:], return_interval=0.9)
    np.testing.assert_array_equal(prediction, model.predict(X[600:]))
    assert np.mean((lower <= Y[600:]) & (Y[600:] <= upper)) == pytest.approx(0.9, abs=0.03)


def test_a_method_without_left_out_rows_says_so():
    model = RBRegressor(metric="none", gamma=0.5, lam=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="errors of left-out rows"):
        model.predict(X, return_interval=0.9)


@pytest.mark.parametrize("kind", [RFClassifier, RFMClassifier])
def test_probabilities_need_no_option(kind):
    model = kind(**FIXED).fit(X[:600], np.where(Y[:600] > 0, "yes", "no"))
    shares = model.predict_proba(X[600:])
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X[600:]))
    assert np.mean(shares[:, 1]) == pytest.approx(np.mean(Y[600:] > 0), abs=0.05)


def test_a_categorical_column_has_one_importance(tmp_path):
    frame = pd.DataFrame({"word": RNG.choice(list("abcd"), 300), "a": X[:300, 0], "b": X[:300, 1]})
    target = frame["a"] + 2.0 * (frame["word"] == "c")
    options = {"metric": "diagonal", "metric_steps": 1, "scaling": "none", "kernel": "gaussian"}
    model = RFMRegressor(**options, gamma=0.2, lam=1.0).fit(frame, target)
    assert len(model.feature_importances_) == model.n_features_in_ == 3
    named = dict(zip(model.feature_names_in_, model.feature_importances_))
    assert named["b"] < min(named["a"], named["word"])
    select = SelectFromModel(model, prefit=True, threshold=-np.inf, max_features=2)
    assert select.get_support().tolist() == [True, True, False]
    model.save(tmp_path / "m.npz")
    loaded = rfx.load(tmp_path / "m.npz")
    np.testing.assert_allclose(loaded.feature_importances_, model.feature_importances_)
