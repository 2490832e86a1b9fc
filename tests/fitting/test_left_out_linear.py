"""Rows left out of linear machines, against machines that are fitted without them."""

from dataclasses import replace

import numpy as np
import pytest

from rfx import methods
from rfx.operators import kernel

OF_METHOD = {
    "rf": {"kernel": "gaussian", "gamma": 0.5, "n_features": 60, "lam": 0.3},
    "sparse-rf": {"kernel": "gaussian", "gamma": 0.5, "n_features": 60, "lam": 1.0, "rounds": 1},
    "sparse-rb": {"gamma": 0.2, "n_grids": 20, "lam": 1.0},
}


@pytest.fixture
def rows():
    """X (200, 3), y (200,)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200)


def fitted(name, X, y, **options):
    trainer = methods.create(name, tol=1e-10, **OF_METHOD[name] | options)
    return replace(trainer, predicts_left_out=True).fit(X, y)


def refitted(name, X, y, **options):
    """The decision values of the first rows by machines without each."""
    trainer = methods.create(name, tol=1e-10, **OF_METHOD[name] | options)
    others = [np.arange(len(y)) != row for row in range(8)]
    return np.array([trainer.fit(X[o], y[o]).decision_function(X[~o])[0] for o in others])


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("name", OF_METHOD)
def test_left_out_rows_are_those_of_other_fits(rows, name, loss):
    X, y = rows
    y = y if loss == "squared" else np.sign(y)
    options = {"loss": loss, "metric": "none", "scaling": "none"}
    options |= {"task": "regression", "target_scaling": "none"} if loss == "squared" else {}
    model = fitted(name, X, y, **options)
    truth = refitted(name, X, y, **options)
    found, own = model.left_out.decision[:8], model.decision_function(X[:8])
    # a row left out may change which weights are zero, and which other rows are support vectors
    assert np.linalg.norm(found - truth) < 0.6 * np.linalg.norm(own - truth)
    near = np.abs(found - truth) < 0.1 * np.abs(own - truth) + 1e-6
    assert np.count_nonzero(near) >= 4


@pytest.mark.parametrize(("name", "lam"), [("rf", 1.0), ("sparse-rf", 30.0)])
def test_some_rows_stand_for_all(name, lam, set_sizes):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 3))
    y = np.sin(2 * X[:, 0]) + rng.normal(size=4000)
    options = {"lam": lam, "n_features": 200, "task": "regression"}
    exact = fitted(name, X, y, **options)
    set_sizes(kernel, MOST_ROWS=1000, SOME_WORK=0)
    some = fitted(name, X, y, **options)
    rows = some.left_out.numbers
    assert len(rows) == 1000
    inside = some.decision_function(X[rows])
    found, truth = some.left_out.decision - inside, exact.left_out.decision[rows] - inside
    assert np.std(found - truth) < 0.5 * np.std(truth)
    assert np.std(found) == pytest.approx(np.std(truth), rel=0.3)
