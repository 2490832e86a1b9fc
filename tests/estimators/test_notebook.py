"""The walk-through in a notebook: a data frame with text labels, missing cells, a date and
categories, from fit to a selection of its columns.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import rfx
from rfx.errors import RfxWarning
from rfx.estimators import (
    AutoClassifier,
    AutoRegressor,
    NystromRegressor,
    RBClassifier,
    RFRegressor,
)

pytestmark = pytest.mark.slow

N = 240
SMALL = {"scaling": "standard", "metric_steps": 1}  # a small choice


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "since": pd.date_range("2020-01-01", periods=N),
            "ward": rng.choice(["north", "south", "west"], N),
            "dose": rng.normal(size=N),
            "noise": rng.normal(size=N),
            "plan": pd.Categorical(rng.choice(["basic", "full"], N)),
        }
    )
    frame.loc[rng.random(N) < 0.1, "dose"] = np.nan
    frame.loc[rng.random(N) < 0.1, "ward"] = None
    return frame


@pytest.fixture(scope="module")
def labels(frame):
    high = frame["dose"].fillna(0) + 2.0 * (frame["ward"] == "south") > 0.4
    return pd.Series(np.where(high, "ill", "well"), name="state")


@pytest.fixture(scope="module")
def model(frame, labels):
    with pytest.warns(RfxWarning, match="missing cells are filled.*ward, dose"):
        return AutoClassifier().fit(frame, labels)


def test_importances_stand_beside_the_names_of_the_columns(model, frame):
    named = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    assert list(named) == list(frame.columns)
    assert max(named, key=named.get) in ("dose", "ward")
    assert sum(named.values()) == pytest.approx(1)


@pytest.mark.parametrize("kind", [AutoRegressor, NystromRegressor])
def test_importances_need_no_metric(frame, kind):
    given = {"metric": "none", "scaling": "standard"}
    model = kind(**given).fit(frame[["noise", "plan"]], 2.0 * (frame["plan"] == "full"))
    assert model.feature_importances_.argmax() == 1


def test_columns_are_selected_before_another_model(frame, labels):
    select = SelectFromModel(AutoClassifier(), max_features=2, threshold=-np.inf)
    pipeline = make_pipeline(select.set_output(transform="pandas"), RBClassifier(n_grids=32))
    pipeline.fit(frame, labels)
    assert set(pipeline[:-1].get_feature_names_out()) == {"dose", "ward"}
    assert pipeline.score(frame, labels) > 0.8


def test_a_stored_model_predicts_the_same(model, frame, tmp_path):
    model.save(tmp_path / "m.npz")
    for again in (rfx.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
        np.testing.assert_array_equal(again.feature_names_in_, frame.columns)


def test_numbers_with_gaps_are_filled_in_arrays_and_frames_alike(frame):
    X = frame[["dose", "noise"]]
    y = X["dose"].fillna(0) + X["noise"]
    with pytest.warns(RfxWarning, match="missing cells are filled"):
        named = RFRegressor(n_features=50, gamma=0.5, lam=0.1).fit(X, y)
        plain = RFRegressor(n_features=50, gamma=0.5, lam=0.1).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(named.predict(X), plain.predict(X.to_numpy()))
    assert named.score(X, y) > 0.9


def test_missing_says_how_cells_are_filled(frame):
    X, y = frame[["dose", "noise"]].to_numpy(), frame["noise"]
    given = {"n_features": 20, "gamma": 0.5, "lam": 1.0}
    with pytest.raises(ValueError, match=r"NaN: row \d+, column 1 has no value; fill it in, or"):
        RFRegressor(missing="refuse", **given).fit(X, y)
    whole = X[~np.isnan(X[:, 0])]
    strict = RFRegressor(missing="refuse", **given).fit(whole, whole[:, 1])
    with pytest.raises(ValueError, match='train with missing="mean"') as caught:
        strict.predict(X)
    assert "sklearn" not in str(caught.value) and "HistGradient" not in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RfxWarning)
        filled = RFRegressor(missing="median", **given).fit(whole, whole[:, 1])
    middle = np.where(np.isnan(X), np.median(whole[:, 0]), X)
    np.testing.assert_array_equal(filled.predict(X), filled.predict(middle))


@pytest.mark.parametrize("rows", [np.asarray, pd.DataFrame])
def test_a_model_of_complete_numbers_fills_later_rows_by_their_means(rows, tmp_path):
    whole = np.arange(60.0).reshape(20, 3) % 7
    model = RFRegressor(n_features=20, gamma=0.5, lam=1.0).fit(rows(whole), whole[:, 1])
    gaps = whole.copy()
    gaps[3, 1] = gaps[4, 1] = np.nan
    filled = np.where(np.isnan(gaps), whole.mean(axis=0), gaps)
    model.save(tmp_path / "m.npz")
    with pytest.warns(RfxWarning, match="missing cells are filled as in training"):
        found = model.predict(rows(gaps))
    np.testing.assert_array_equal(found, model.predict(rows(filled)))
    again = rfx.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.predict(rows(gaps)), found)


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_calibrate_selects_the_curve_of_probabilities(frame, labels, kind):
    given = {"n_grids": 32, "gamma": 0.5, "lam": 1.0}
    with pytest.warns(RfxWarning):
        model = RBClassifier(calibrate=kind, **given).fit(frame, labels)
    shares = model.predict_proba(frame)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(frame))
    words = model.method_.calibration.words()
    assert words.startswith("platt on 48 rows")  # too few for isotonic
    with pytest.raises(ValueError, match="^calibrate is 'beta'; it must be"):
        RBClassifier(calibrate="beta", **given).fit(frame, labels)


def test_a_cross_validation_shows_each_warning_once():
    """Its folds lack different cells and categories, and repeat different rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shift": "day", "weight": rng.normal(size=100)})
    y = frame.weight.copy()
    frame.loc[[5, 50, 95], "shift"] = "night", "dawn", "dusk"
    frame.loc[rng.permutation(100)[:30], "weight"] = np.nan
    model = RFRegressor(kernel="gaussian", gamma=1.0, lam=1.0, metric="none")
    with warnings.catch_warnings(record=True) as shown:
        cross_val_score(model, frame, y)
    said = [str(one.message) for one in shown if one.category is RfxWarning]
    parts = ("missing cells are filled", "rows that repeat", "'shift' of X has categories")
    assert len(said) == 3 and all(part in one for part, one in zip(parts, said))
