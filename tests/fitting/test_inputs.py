"""What named methods choose for their inputs, and when they choose nothing; the default bandwidth:
leave-one-out errors equal those of models fitted without the row.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import kernels, methods
from rfx.features import sample
from rfx.fitting import inputs, linear, selection
from rfx.fitting.options import LAMS, LOO_FACTORS, WIDTHS
from rfx.fitting.problem import Problem
from rfx.fitting.selection import Point, SearchGrid
from rfx.kernels import KERNELS, block, scaled_family
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


@pytest.mark.parametrize("name", [*NAMED, "rfm"])
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


def test_the_sample_of_the_choice_is_bounded(monkeypatch):
    monkeypatch.setattr(inputs, "ROWS", 300)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    problem = Problem(X, X[:, :1], Squared, "regression")
    choice = inputs.choose_inputs(X, problem, scalings=("standard",), forms=())
    assert choice.step["fitted"] == choice.step["held_out"] == 300


def test_the_best_point_of_each_kernel_reaches_the_next_round():
    points = [Point("inputs", {"kernel": kernel, "scaling": n}) for kernel in "aab" for n in "xy"]
    grid = SearchGrid(points, {}, [], various="kernel")
    assert grid.kept(points, 2) == [points[0], points[4]]
    assert grid.kept(points, 3) == [points[0], points[4], points[1]]


RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (60, 3))
Y = np.stack([np.sin(3 * X[:, 0]), np.sign(X[:, 1])], axis=1)
WORDS = (
    "gaussian",
    "laplacian",
    "laplacian-l2",
    "matern-3/2",
    "polynomial-2",
    "exponential",
    "hat",
)


def loo(kernel, weights=None, slack=0.0):
    method = methods.create("kernel", kernel=kernel, seed=0).method
    object.__setattr__(method, "space", replace(method.space, slack=slack))
    return selection.loo(method, Problem(X, Y, Squared, "regression", weights), LAMS)


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 2, 60)])
def test_errors_are_those_of_models_without_the_row(weights):
    found, (step,) = loo("gaussian", weights)
    own = np.ones(60) if weights is None else weights
    assert step["error"] == "leave-one-out mean squared error" and step["fitted"] == 60
    assert (
        len(step["tried"]) == len(LOO_FACTORS) * len(LAMS)
        and found == min(step["tried"], key=lambda one: one[2])[0]
    )
    for value, lam, error in (step["tried"][k] for k in (3, 25, 40, 68)):
        K, total = block("gaussian", X, X, {"gamma": value}), 0.0
        for i in range(60):
            rest = np.arange(60) != i
            # minimises lam/2 f'K f + 1/2 sum of own (K f - y)^2
            coef = np.linalg.solve(K[np.ix_(rest, rest)] + lam * np.diag(1 / own[rest]), Y[rest])
            total += own[i] * np.mean((Y[i] - K[i, rest] @ coef) ** 2)
        assert error == pytest.approx(total / own.sum(), rel=1e-6)


# Inputs for which nothing is chosen.
FIXED = {"kernel": "gaussian", "scaling": "none", "metric": "none"}


def test_every_method_of_a_kernel_gets_the_same_and_says_it():
    y, chosen = Y[:, 0], {}
    for name, own in {
        "rf": {"n_features": 50},
        "kernel": {},
        "nystrom": {"n_features": 20},
        "sparse-rf": {"n_features": 20},
    }.items():
        method = methods.create(name, lam=1.0, **FIXED, **own).fit(X, y)
        assert (
            method.method.gamma == "loo"
            and method.info["validation"][0]["by"] == "kernel ridge regression"
        )
        chosen[name] = method.info["kernel_params"]["gamma"]
    assert np.ptp(list(chosen.values())) < 1e-5 * chosen["kernel"]  # some use the rows in float32
    again = methods.create("kernel", **FIXED, lam=1.0, gamma=chosen["kernel"]).fit(X, y)
    np.testing.assert_array_equal(
        again.predict(X), methods.create("kernel", **FIXED, lam=1.0).fit(X, y).predict(X)
    )


def test_with_slack_it_is_the_closest_to_the_median_of_those_that_are_nearly_as_good():
    _, (step,) = loo("laplacian")
    best = {
        value: min(error for one, _, error in step["tried"] if one == value)
        for value, _, _ in step["tried"]
    }
    median = list(best)[LOO_FACTORS.index(1.0)]
    for slack in (0.02, 0.2, 5.0):
        near = [value for value, error in best.items() if error <= (1 + slack) * min(best.values())]
        found, (own,) = loo("laplacian", slack=slack)
        assert (
            found == min(near, key=lambda value: abs(np.log(value / median)))
            and own["tried"] == step["tried"]
        )
    assert found == median


def test_smooth_targets_without_noise_get_smaller_lambdas_but_by_this_word_only():
    y = X[:, 0] + X[:, 1] * X[:, 2]
    assert methods.create("kernel", **FIXED).fit(X, y).info["lam"] == 0.001
    assert methods.create("kernel", **FIXED, gamma="median").fit(X, y).info["lam"] == 0.01
    classes = methods.create("kernel", **FIXED).fit(X, np.sign(y))
    assert min(lam for _, lam, _ in classes.info["validation"][0]["tried"]) == 0.01


def test_few_rows_and_kernels_without_a_bandwidth_have_nothing_to_choose():
    few = methods.create("rf", kernel="gaussian", lam=1.0, n_features=20).fit(X[:10], Y[:10, 0])
    assert "validation" not in few.info
    assert (
        few.info["kernel_params"]["gamma"]
        == kernels.parameters(
            "gaussian", few.preprocessing.scaler.transform(X[:10], np.float32), "median"
        )["gamma"]
    )
    assert (
        "validation"
        not in methods.create("rf", kernel="perceptron", lam=1.0, n_features=20)
        .fit(X, Y[:, 0])
        .info
    )


@pytest.mark.parametrize("name", WORDS)
def test_one_comparison_of_the_rows_is_enough_for_all_bandwidths(name):
    assert name in KERNELS
    wide = sp.random(40, 2000, 0.01, format="csr", random_state=3)
    for rows in (X, wide):
        for factor, K in zip(
            (0.25, 1.0, 3.0), scaled_family(name, rows, {"gamma": 0.5}, (0.25, 1.0, 3.0))
        ):
            np.testing.assert_allclose(
                K,
                block(name, rows, rows, {"gamma": 0.5 * factor}, dtype=np.float64),
                rtol=1e-6,
                atol=1e-6,
            )


@pytest.mark.parametrize("name", ["rf", "sparse-rf"])
def test_one_map_serves_all_trials_and_the_model(name, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        linear,
        "sample",
        lambda *given, **named: drawn.append(named["gamma"]) or sample(*given, **named),
    )
    for word, times in {"median": 1, "loo": 1, "validation": 5}.items():
        drawn.clear()
        method = methods.create(name, gamma=word, n_features=40).fit(X, Y[:, 0])
        # validation draws a map for each of four bandwidths, for all folds and lambdas, and the
        # model has its own
        assert 1 <= len(drawn) <= times and drawn[-1] == method.info["kernel_params"]["gamma"]
