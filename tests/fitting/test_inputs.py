"""What named methods choose for their inputs, and when they choose nothing."""

import numpy as np
import pytest

from rfx import methods
from rfx.fitting import inputs
from rfx.fitting.candidates import SAMPLE, WIDTHS
from rfx.fitting.problem import Problem
from rfx.losses import Squared

NAMED = ("kernel", "rf", "sparse-rf", "rb", "sparse-rb", "nystrom", "block", "lkrf")
SMALL = {"rf": {"n_features": 200}, "sparse-rf": {"n_features": 200}, "lkrf": {"pool": 500}}
SMALL |= {"rb": {"n_grids": 32}, "sparse-rb": {"n_grids": 16}, "nystrom": {"n_features": 50}}


def planted(n, d, seed=0):
    """Rows whose targets depend only on their first two inputs, which have very different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n)
    return np.exp(X), y


def settings(name, **given):
    return methods.get(name).of(given)


@pytest.mark.parametrize("name", NAMED)
def test_inputs_are_chosen_unless_the_bandwidth_is_given(name):
    asked = settings(name)
    assert (asked.scaling, asked.metric) == ("auto", "auto")
    for gamma in (0.5, "2", "paper"):
        asked = settings(name, gamma=gamma)
        assert (asked.scaling, asked.metric) == ("minmax01", "none")
        assert asked.kernel == ("laplacian" if name.endswith("rb") else "gaussian")
    for gamma in ("median", "loo", "tuned", "validation"):
        assert settings(name, gamma=gamma).scaling == "auto"
    assert settings(name, gamma=0.5, scaling="power").scaling == "power"
    assert settings(name, gamma=0.5, metric="full").metric == "full"


def test_a_kernel_without_a_bandwidth_takes_the_inputs_as_they_were():
    asked = settings("rf", kernel="perceptron")
    assert (asked.scaling, asked.metric, asked.kernel) == ("minmax01", "none", "perceptron")


@pytest.mark.parametrize("name", NAMED)
def test_the_explicit_options_train_the_same_model(name):
    X, y = planted(300, 6)
    options = {"task": "regression"} | SMALL.get(name, {})
    chosen = methods.create(name, **options).fit(X, y)
    explicit = chosen.info["explicit"]
    assert explicit["scaling"] in ("standard", "power", "robust", "quantile")
    assert isinstance(explicit["gamma"], float) and isinstance(explicit["lam"], float)
    again = methods.create(name, **options, **explicit).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), chosen.predict(X))
    assert "explicit" not in again.info


@pytest.mark.parametrize("name", ["rf", "kernel", "rb"])
def test_the_choice_pays(name):
    X, y = planted(500, 12)
    options = {"task": "regression"} | SMALL.get(name, {})
    errors = []
    for given in ({}, {"scaling": "minmax01", "metric": "none", "kernel": "laplacian"}):
        trained = methods.create(name, **options, **given).fit(X[:400], y[:400])
        errors.append(np.mean((trained.predict(X[400:]) - y[400:]) ** 2))
    assert errors[0] < 0.7 * errors[1]


def test_lambda_is_chosen_on_a_sample_of_many_rows(monkeypatch):
    monkeypatch.setattr("rfx.fitting.selection.SAMPLE", 60)
    X, y = planted(400, 3)
    steps = {}
    for word in ("auto", "validation"):
        options = {"task": "regression", "gamma": 0.5, "n_features": 20, "lam": word}
        [step] = methods.create("rf", **options).fit(X, y).info["validation"]
        steps[word] = step
    assert steps["auto"]["fitted"] == 60
    assert steps["validation"]["fitted"] == 320


def test_no_time_leaves_the_first_combination():
    X, y = planted(200, 3)
    options = {"task": "regression", "n_features": 20, "budget_seconds": 1e-9}
    trained = methods.create("rf", **options).fit(X, y)
    step = trained.info["validation"][0]
    assert {tuple(row[:2]) for row in step["tried"]} == {("standard", "laplacian-l2")}


def test_the_width_of_the_kernel_is_tried_where_there_is_no_metric():
    """For a fast-varying function the median's bandwidth is far too wide."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 1))
    Y = np.sin(40 * X)
    problem = Problem(X, Y, Squared, "regression")
    given = {"scalings": ("standard",), "tried_kernels": ("gaussian",), "forms": ()}
    assert inputs.choose_inputs(X, problem, **given).width == max(WIDTHS["gaussian"])


def test_the_sample_of_a_quick_choice_is_bounded():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    problem = Problem(X, X[:, :1], Squared, "regression")
    found = inputs.choose_inputs(X, problem, scalings=("standard",), forms=(), effort=inputs.QUICK)
    assert found.step["fitted"] == inputs.QUICK.confirmed
    assert found.step["held_out"] == inputs.QUICK.held_out
    assert SAMPLE >= inputs.QUICK.rows
