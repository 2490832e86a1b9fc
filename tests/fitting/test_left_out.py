"""Predictions of rows by the model without each of them, and what follows from these."""

from dataclasses import replace

import numpy as np
import pytest

from rfx import kernels, methods
from rfx.errors import UsageError
from rfx.fitting.held_out import ErrorQuantiles, HeldOut
from rfx.operators.kernel import left_out

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (60, 3))
TARGETS = np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=60)
CODES = np.digitize(TARGETS, np.quantile(TARGETS, [0.4, 0.7])).astype(float)
WEIGHTS = RNG.integers(1, 4, 60).astype(float)
FIXED = {"scaling": "none", "metric": "none", "gamma": 2.0, "lam": 0.3, "kernel": "gaussian"}
SMALL = {"lam": 1e-5}  # the factor is then in float64
# name: method, options, tolerance of each value; with the other losses a value is approximate, and
# the mean deviation is at most this fraction of that of the model of all rows
CASES = {
    "kernel": ("kernel", {"loss": "squared"}, 1e-5),
    "kernel, float64": ("kernel", {"loss": "squared"} | SMALL, 1e-9),
    "rfm": ("rfm", SMALL, 1e-9),
    "wide rf": ("rf", {"loss": "squared", "n_features": 300}, 1e-5),
    "narrow rf": ("rf", {"loss": "squared", "n_features": 20}, 1e-5),
    "nystrom": ("nystrom", {"loss": "squared", "n_features": 20}, 1e-5),
}
APPROXIMATE = {
    "hinge rf": ("rf", {"loss": "squared_hinge", "n_features": 20, "tol": 1e-9}, 0.1),
    "hinge": ("kernel", {"loss": "squared_hinge", "tol": 1e-8}, 0.2),
    "hinge, no bias": ("kernel", {"loss": "squared_hinge", "tol": 1e-8, "bias": False}, 0.2),
    "logistic": ("rf", {"loss": "logistic", "n_features": 20, "tol": 1e-9}, 0.05),
}


def values(case, task, weights):
    """For some rows: the left-out values, those of models without the row, and of all rows."""
    name, options, tolerance = (CASES | APPROXIMATE)[case]
    options = FIXED | options | {"task": task, "target_scaling": "none"}
    y = {"regression": TARGETS, "binary": np.minimum(CODES, 1), "multiclass": CODES}[task]
    model = replace(methods.create(name, **options), left_out=True).fit(X, y, weights)
    refitted, rows = [], np.arange(0, 40, 5)
    for row in rows:
        kept = np.arange(60) != row
        part = None if weights is None else weights[kept]
        without = methods.create(name, **options).fit(X[kept], y[kept], part)
        refitted.append(without.decision_function(X[row : row + 1])[0])
    every = model.decision_function(X[rows])
    return model.left_out.decision[rows], np.array(refitted), every, tolerance


@pytest.mark.parametrize("lam", [0.3, 1e-7], ids=["float32", "float64"])
def test_the_last_rows_are_left_out_alone(lam):
    K = kernels.values("laplacian", X, X, {"gamma": 1.0})
    coef, residuals = left_out(K, TARGETS[:, None], lam)
    same, last = left_out(K, TARGETS[:, None], lam, last=20)
    assert np.array_equal(same, coef)
    assert last == pytest.approx(residuals[-20:], rel=1e-5)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("case", CASES)
def test_left_out_values_are_those_of_models_without_the_row(case, task, weights, monkeypatch):
    # landmarks that no row changes
    monkeypatch.setattr("rfx.methods.kernel.choose_landmarks", lambda *_: X[40:])
    alone, refitted, _, tolerance = values(case, task, weights)
    np.testing.assert_allclose(alone, refitted, atol=tolerance)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("case", APPROXIMATE)
def test_left_out_values_of_other_losses_are_close(case, task, weights):
    alone, refitted, every, fraction = values(case, task, weights)
    assert np.abs(alone - refitted).mean() < fraction * np.abs(every - refitted).mean()


def test_intervals_cover_new_targets_as_often_as_stated(tmp_path):
    rows = RNG.uniform(-1, 1, (3000, 3))
    y = rows[:, 0] + RNG.normal(size=3000)
    model = replace(methods.create("rfm", **FIXED | {"lam": 3.0}), left_out=True)
    model.fit(rows[:1000], y[:1000]).save(tmp_path / "m.npz")
    restored = methods.load(tmp_path / "m.npz")
    low, high = restored.interval(restored.decision_function(rows[1000:]), 0.9)
    assert np.mean((low <= y[1000:]) & (y[1000:] <= high)) == pytest.approx(0.9, abs=0.02)
    # of normal noise with deviation 1
    assert np.mean(high - low) == pytest.approx(2 * 1.645, rel=0.08)


def planted(n, seed):
    """Rows of 20 inputs, and labels that depend on three of them, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(float)


def test_the_score_is_not_that_of_rows_that_taught_the_metric():
    options = {"kernel": "laplacian-l2", "scaling": "standard", "metric": "full", "task": "binary"}
    model = replace(methods.create("rfm", **options), left_out=True).fit(*planted(300, 0))
    X_new, y_new = planted(3000, 1)
    # that of rows left out one by one is higher by .18
    assert model.outcome.leave_one_out < np.mean(model.predict(X_new) == y_new) + 0.03
    assert model.left_out.by == "5-fold cross-validation"


def test_rows_that_no_choice_saw_are_left_out_one_by_one():
    options = {"kernel": "gaussian", "scaling": "standard", "metric": "diagonal", "task": "binary"}
    model = replace(methods.create("rfm", **options), left_out=True).fit(*planted(2600, 2))
    assert model.outcome.leave_one_out_rows == 600


def test_weights_of_labels_count_once_in_a_cross_validation():
    X, labels = planted(200, 3)
    options = {"task": "binary", "scaling": "none", "metric": "diagonal", "gamma": 1.0, "lam": 1.0}
    by_label = methods.create("kernel", **options, loss="squared", class_weight="0:1,1:5")
    by_row = methods.create("kernel", **options, loss="squared")
    one = replace(by_label, left_out=True).fit(X, labels)
    other = replace(by_row, left_out=True).fit(X, labels, 1 + 4 * labels)
    np.testing.assert_allclose(one.left_out.decision, other.left_out.decision)


def test_the_quantile_is_the_value_of_its_rank():
    errors = ErrorQuantiles.of(np.arange(1.0, 100), "here")
    assert [errors.at(level) for level in (0.5, 0.9, 0.99)] == [50, 90, 99]
    with pytest.raises(UsageError, match="99 left-out rows are too few"):
        errors.at(0.995)
    many = ErrorQuantiles.of(np.arange(1.0, 5000), "here")
    assert len(many.values) == 1000 and 4500 <= many.at(0.9) <= 4505


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_probabilities_of_left_out_rows_never_change_a_prediction(task):
    y = np.minimum(CODES, 1) if task == "binary" else CODES
    trainer = methods.create("rf", **FIXED | {"n_features": 20})
    plain, model = (replace(trainer, left_out=one).fit(X, y) for one in (False, True))
    shares = model.probabilities(model.decision_function(X))
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.classes[shares.argmax(axis=1)], model.predict(X))
    assert shares.sum(axis=1) == pytest.approx(np.ones(60)) and not plain.has_probabilities


@pytest.mark.parametrize("name", ["rb", "sparse-rf", "block", "r-pegasos"])
def test_a_fifth_of_the_rows_gives_probabilities_where_none_is_left_out_alone(name):
    y = np.minimum(CODES, 1)
    trainer = methods.create(name, task="binary", gamma=0.3, kernel="laplacian")
    plain = trainer.fit(X, y)
    model = trainer.with_probabilities(plain, X, y)
    assert not plain.has_probabilities and model.left_out.by.startswith("held out, 0.2 of")
    assert len(model.left_out.y) == 12
    shares = model.probabilities(model.decision_function(X))
    np.testing.assert_array_equal(model.classes[shares.argmax(axis=1)], plain.predict(X))
    # the other rows, with lambda for so few, give the held-out decision values
    kept = np.setdiff1d(np.arange(60), HeldOut(60, 0).part(0.2, "here")[1])
    again = plain.chosen
    again = again.updated(lam=0.8 * again.lam) if "lam" in again.options else again
    expected = replace(trainer, method=again, classes=plain.classes).fit(X[kept], y[kept])
    out = np.setdiff1d(np.arange(60), kept)
    np.testing.assert_array_equal(model.left_out.decision, expected.decision_function(X[out]))
