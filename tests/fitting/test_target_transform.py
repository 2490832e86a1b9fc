"""Positive targets learnt on their logarithm: predictions, errors, intervals and choices are those
of the targets themselves.
"""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from shell import printed, refused

from rfx import methods
from rfx.data.transforms import LogTargetScaler, TargetScaler
from rfx.errors import DataError, UsageError
from rfx.estimators import KernelRegressor
from rfx.records import keys
from rfx.records.run import Run

FIXED = {"kernel": "gaussian", "gamma": 0.1, "lam": 1.0, "scaling": "standard", "metric": "none"}
TRAIN, NEW = slice(400), slice(400, None)


@pytest.fixture(scope="module")
def data():
    """Rows (3000, 2), and prices whose logarithm is the first input with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    return SimpleNamespace(X=X, prices=1e3 * np.exp(X[:, 0] + 0.4 * rng.normal(size=3000)))


def trained(X, y, how, method="kernel", **options):
    trainer = methods.create(method, **FIXED | options, task="regression", target_transform=how)
    return replace(trainer, predicts_left_out=True).fit(X[TRAIN], y[TRAIN])


def test_a_prediction_is_the_mean_of_targets_and_not_their_median(tmp_path, data):
    X, prices = data.X, data.prices
    model = trained(X, prices, "log")
    by_hand = methods.create("kernel", **FIXED, task="regression", loss="squared")
    logarithms = replace(by_hand, predicts_left_out=True).fit(X[TRAIN], np.log(prices[TRAIN]))
    left_out = np.exp(logarithms.labels(logarithms.left_out.decision))
    factor = left_out @ prices[TRAIN] / (left_out @ left_out)
    expected = factor * np.exp(logarithms.predict(X[NEW]))
    np.testing.assert_allclose(model.predict(X[NEW]), expected, rtol=1e-6)
    error = np.sqrt(np.mean((factor * left_out - prices[TRAIN]) ** 2))
    assert model.outcome.leave_one_out == pytest.approx(error)
    assert expected.mean() == pytest.approx(prices[NEW].mean(), rel=0.05)
    model.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(
        methods.load(tmp_path / "m.npz").predict(X[NEW]), model.predict(X[NEW])
    )
    plain = methods.create("kernel", **FIXED, task="regression", target_transform="log")
    again = plain.fit(X[TRAIN], prices[TRAIN]).predict(X[NEW])
    np.testing.assert_array_equal(again, model.predict(X[NEW]), "left-out rows asked for or not")


def test_errors_are_those_of_the_targets(data):
    X, prices = data.X, data.prices
    model = trained(X, prices, "log", target_scaling="minmax01")
    error = np.sqrt(np.mean((model.predict(X[NEW]) - prices[NEW]) ** 2))
    assert model.score(X[NEW], prices[NEW]).score == pytest.approx(error)
    below = model.score(X[NEW], prices[NEW] - 1e4).score
    assert np.isfinite(below), "new targets may be negative"


def test_intervals_are_positive_and_wider_above(data):
    X, prices = data.X, data.prices
    model = trained(X, prices, "log")
    decision = model.decision_function(X[NEW])
    low, high = model.interval(decision, 0.9)
    assert np.mean((low <= prices[NEW]) & (prices[NEW] <= high)) == pytest.approx(0.9, abs=0.03)
    middle = np.sqrt(low * high)
    assert low.min() > 0 and (high - middle > middle - low).all()


@pytest.mark.parametrize("kind", ["none", "mean", "minmax01"])
def test_the_scaling_is_undone(kind, data):
    prices = data.prices
    scaler = LogTargetScaler.fit(prices, kind)
    assert isinstance(scaler, LogTargetScaler)
    scaler = replace(scaler, factor=1.5)
    np.testing.assert_allclose(scaler.inverse(scaler.transform(prices)), prices)
    saved = json.loads(json.dumps(scaler.to_dict()))
    assert TargetScaler.from_dict(saved, 1) == scaler


def test_auto_is_the_one_with_the_smaller_left_out_error(data):
    X = data.X
    models = {how: trained(X, data.prices, how) for how in ("none", "log", "auto")}
    errors = {how: model.outcome.leave_one_out for how, model in models.items()}
    best = min(("none", "log"), key=errors.get)
    assert errors["auto"] == errors[best] and best == "log"
    assert models["auto"].outcome.explicit["target_transform"] == best
    negative = trained(X, X[:, 0], "none").predict(X[NEW])
    np.testing.assert_array_equal(trained(X, X[:, 0], "auto").predict(X[NEW]), negative)


def test_an_estimator_has_the_parameter(data):
    X, prices = data.X, data.prices
    model = KernelRegressor(**FIXED, target_transform="log").fit(X[TRAIN], prices[TRAIN])
    expected = trained(X, prices, "log").predict(X[NEW])
    np.testing.assert_array_equal(model.predict(X[NEW]), expected)


@pytest.mark.parametrize(
    ("method", "how", "task", "kind", "error", "said"),
    [
        ("kernel", "log", "regression", "negative", DataError, "target of row"),
        ("kernel", "log", "binary", "signs", UsageError, "the task is binary"),
        ("kernel", "auto", "binary", "signs", UsageError, "the task is binary"),
        ("local", "log", "regression", "two", UsageError, "one target per row, not 2"),
        ("doubly-sgd", "log", "regression", "prices", UsageError, "learns in batches"),
        ("rb", "auto", "regression", "prices", UsageError, "use log or none"),
    ],
)
def test_what_has_no_logarithm_is_refused(method, how, task, kind, error, said, data):
    X = data.X
    given = {"scaling": "standard", "metric": "none", "task": task, "target_transform": how}
    targets = {
        "negative": X[:, 0],
        "signs": 1.0 * (X[:, 0] > 0),
        "two": np.exp(X),
        "prices": data.prices,
    }
    with pytest.raises(error, match=f"--target-transform is {how}.*{said}"):
        methods.create(method, **given).fit(X[:100], targets[kind][:100])


def test_a_row_without_the_option_keeps_its_key():
    rows = {"dataset": "cadata", "method": "rf"}
    same = [Run.of(rows | {"options": options}) for options in ({}, {"target_transform": "none"})]
    other = Run.of(rows | {"options": {"target_transform": "log"}})
    first, second, third = (keys.key(run) for run in (*same, other))
    assert first == second != third


def test_the_command_says_what_is_learnt(tmp_path, capfd, data):
    path, model = tmp_path / "t.csv", tmp_path / "m.npz"
    rows = np.column_stack([data.X, data.prices])[:300]
    np.savetxt(path, rows, delimiter=",", header="a,b,y", comments="")
    words = ["--method", "rf", "--n-features", 50, "--gamma", 0.1, "--lam", 1, "--metric", "none"]
    words += ["--kernel", "gaussian", "--scaling", "standard", "--no-baseline"]
    words += ["--data", path, "--target", "y", "--target-transform"]
    row = json.loads(printed(capfd, "train", *words, "auto", "--model", model, "--json"))
    assert row["params"]["target_transform"] == "log"
    assert "its logarithm" in printed(capfd, "info", model)
    again = json.loads(printed(capfd, "train", *words, "log", "--json"))
    assert again["score"] == pytest.approx(row["score"])
    held_out = json.loads(printed(capfd, "train", *words, "log", "--cv", 5, "--json"))
    assert held_out["score"] == pytest.approx(row["score"], rel=0.1)
    measured = json.loads(printed(capfd, "eval", model, "--data", path, "--json"))
    assert measured["score"] == pytest.approx(measured["params"]["measures"]["rmse"])
    assert refused(capfd, "train", *words, "log", "--stream", code=2).count("\n") == 1
