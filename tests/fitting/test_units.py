"""What is learnt depends neither on the unit of the targets and of the weights, nor on the zero of
the targets.
"""

import numpy as np
import pytest

from rfx import methods
from rfx.data.transforms import TargetScaler
from rfx.fitting.preprocessing import Preprocessing
from rfx.records import keys
from rfx.records.run import Run

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(-3, 3, (200, 2)), RNG.uniform(-3, 3, (100, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] / 3
WEIGHTS = RNG.uniform(0.5, 1.5, 200)
SMALL = {
    "rf": {"n_features": 200},
    "lkrf": {"pool": 500, "n_features": 100},
    "nystrom": {"n_features": 50},
    "sparse-rf": {"n_features": 60, "rounds": 1},
    "rb": {"n_grids": 32, "tol": 1e-5},
    "sparse-rb": {"n_grids": 16},
    "boosting": {"n_features": 10},
    "kernel": {},
    "block": {},
}
BATCHES = {"doubly-sgd": {}, "k-sdca": {"loss": "absolute"}, "r-pegasos": {"n_features": 100}}
METRIC = {"scaling": "standard", "metric": "none"}


def fitted(name, y, weights=None, inputs=X, **more):
    options = SMALL.get(name, BATCHES.get(name, {})) | more
    if name in SMALL and name != "boosting":
        options = METRIC | options
    task = options.pop("task", "regression")
    return methods.create(name, task=task, **options).fit(inputs, y, weights)


def predictions(*args, **options):
    return fitted(*args, **options).predict(NEW)


@pytest.mark.parametrize("name", [*SMALL, *BATCHES])
@pytest.mark.parametrize(("shift", "unit"), [(1013, 10), (1.6e9, 3600), (0, 1e-46), (0, 1e40)])
def test_targets_in_another_unit_give_the_same_model(name, shift, unit):
    expected = predictions(name, Y)
    found = (predictions(name, shift + unit * Y) - shift) / unit
    np.testing.assert_allclose(found, expected, atol=0.03 * np.std(Y))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("unit", [1e-9, 1 / 200, 1e8])
def test_weights_in_another_unit_give_the_same_model(name, unit):
    if methods.get(name).weighted:
        expected = predictions(name, Y, WEIGHTS)
        found = predictions(name, Y, unit * WEIGHTS)
        np.testing.assert_allclose(found, expected, atol=0.03 * np.std(Y))


def test_scaling_and_metric_chosen_with_weights_in_another_unit():
    first, second = (
        methods.create("rfm", task="regression").fit(X, Y, unit * WEIGHTS) for unit in (1, 1e-6)
    )
    np.testing.assert_allclose(first.predict(NEW), second.predict(NEW), atol=0.03 * np.std(Y))
    assert second.info["lam"] == pytest.approx(1e-6 * first.info["lam"])


def test_a_lambda_that_is_given_refers_to_the_sum_of_losses():
    given = predictions("kernel", Y, 2 * WEIGHTS, gamma=0.5, lam=0.2)
    expected = predictions("kernel", Y, WEIGHTS, gamma=0.5, lam=0.1)
    np.testing.assert_allclose(given, expected, atol=1e-4)


@pytest.mark.parametrize("loss", ["absolute", "epsilon_insensitive"])
def test_lambda_is_chosen_in_the_unit_of_the_targets(loss):
    first, second = (
        fitted("kernel", unit * Y, loss=loss, kernel="gaussian", gamma=0.5) for unit in (1, 1e4)
    )
    assert second.info["lam"] == pytest.approx(first.info["lam"] / 1e4)


def test_the_default_width_of_a_tube_is_in_the_unit_of_the_targets():
    options = {"loss": "epsilon_insensitive", "kernel": "gaussian", "gamma": 0.5}
    first, second = (fitted("kernel", unit * Y, lam=0.1 / unit, **options) for unit in (1, 1e-3))
    assert first.loss.epsilon == pytest.approx(0.1 * np.std(Y))
    np.testing.assert_allclose(1e3 * second.predict(NEW), first.predict(NEW), atol=0.01 * np.std(Y))


def test_the_scale_of_the_mean_is_1_within_the_range_of_float32():
    assert TargetScaler.fit(1e6 * Y, "mean").scale == 1


@pytest.mark.parametrize("unit", [1e-46, 1e40])
def test_the_rmse_is_in_the_unit_of_the_targets(unit):
    scaler = TargetScaler.fit(unit * Y, "mean")
    known = Preprocessing("regression", None, np.float64, target_scaler=scaler)
    decision = scaler.transform(unit * (Y + 1))
    assert known.score(decision, unit * Y)["score"] == pytest.approx(unit)


@pytest.mark.parametrize(
    ("dataset", "options", "same"),
    [
        ("breast_cancer", {}, True),
        ("diabetes-sklearn", {}, False),
        ("rows.csv", {}, False),
        ("rows.csv", {"task": "binary"}, True),
        ("rows.csv", {"task": "regression"}, False),
    ],
)
def test_the_former_default_has_the_key_of_classes_only(dataset, options, same):
    run, former = (
        Run(dataset=dataset, method="rf", options=options | more)
        for more in ({}, {"target_scaling": "none"})
    )
    assert (keys.key(run) == keys.key(former)) == same


@pytest.mark.parametrize("name", ["rf", "kernel", "rb"])
@pytest.mark.parametrize("unit", [1e-46, 1e40])
def test_scaled_inputs_in_another_unit_give_the_same_model(name, unit):
    options = METRIC | SMALL[name] | {"task": "regression", "lam": 0.1, "gamma": 0.5}
    first, second = (
        methods.create(name, **options).fit(factor * X, Y).predict(factor * NEW)
        for factor in (1, unit)
    )
    np.testing.assert_allclose(second, first, atol=0.03 * np.std(Y))
