"""Rows left out of a model are predicted as by a model that was trained without them, and without
the rows with the same inputs.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from rfx import kernels, methods
from rfx.data.training_table import TrainingTable
from rfx.fitting import assessment
from rfx.fitting.assessment import AssessmentPlan, fit_and_assess
from rfx.fitting.training import Trainer
from rfx.operators.kernel import left_out

COPIES = [*range(15), 3, 3, 7]
METHODS = {
    "kernel": {"kernel": "gaussian", "gamma": 0.5, "lam": 0.3, "loss": "squared"},
    "rfm": {
        "kernel": "laplacian-l2",
        "gamma": 0.5,
        "lam": 0.3,
        "scaling": "none",
        "metric": "none",
    },
    "rf": {"kernel": "gaussian", "gamma": 0.5, "lam": 0.3, "n_features": 40},
    "nystrom": {"kernel": "gaussian", "gamma": 0.5, "lam": 0.3, "n_features": 200},
}


@dataclass(frozen=True)
class SineRows:
    """Rows (15, 2), targets that are a sine of the first input with noise."""

    X: np.ndarray
    values: np.ndarray


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 2))
    return SineRows(X, 5 + np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=15))


@pytest.fixture(scope="module")
def K(data):
    return kernels.block("laplacian", data.X, data.X, {"gamma": 0.5})


def trained(name, rows, y, weights=None, **more):
    options = {"scaling": "none"} | METHODS.get(name, {}) | more
    return Trainer(methods.get(name).of(options), predicts_left_out=True).fit(rows, y, weights)


def check_refits(name, rows, y, weights=None, same=None, **more):
    """Every left-out row is predicted as by a training without it, and without its copies."""
    model = trained(name, rows, y, weights, **more)
    same = np.arange(len(y)) if same is None else np.array(same)
    expected = []
    for row in range(len(y)):
        kept = np.flatnonzero(same != same[row])
        own = None if weights is None else weights[kept]
        other = trained(name, rows[kept], y[kept], own, **more)
        value = other.decision_function(rows[row : row + 1])
        expected.append(model.as_own(other, value)[0])
    assert model.left_out.by == "leave-one-out"
    np.testing.assert_allclose(model.left_out.decision, expected, atol=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_the_mean_of_the_targets_leaves_the_row_out(name, weighted, rng, data):
    weights = rng.uniform(0.5, 3, 15) if weighted else None
    check_refits(name, data.X, data.values, weights)


@pytest.mark.parametrize("features", [5, 40])
def test_the_mean_that_rf_subtracts_leaves_the_row_out(features, data):
    check_refits("rf", data.X, data.values, offset="mean", n_features=features)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_rows_with_equal_inputs_are_left_out_together(name, weighted, rng, data):
    y = np.append(data.values, [4.0, 5.5, 6.0])
    weights = rng.uniform(0.5, 3, 18) if weighted else None
    check_refits(name, data.X[COPIES], y, weights, COPIES)


@pytest.mark.parametrize("bias", ["true", "false"])
def test_copies_are_left_out_of_a_support_vector_machine_together(bias, data):
    """Exact while the same rows are support vectors: here, all."""
    y = np.where(data.values > 5, 1.0, 2.0)[COPIES]
    options = {"loss": "squared_hinge", "lam": 30.0, "bias": bias == "true", "tol": 1e-9}
    check_refits("kernel", data.X[COPIES], y, None, COPIES, **options)


def test_the_mean_of_a_leaf_leaves_the_row_out(data):
    """The corners of a simplex have equal distances: the median, and with it the bandwidth of the
    leaf, stays the same without a row.
    """
    corners = np.eye(15)[COPIES]
    leaf = {"kernel": "laplacian", "lam": 0.3, "metric": "none", "mixed": False, "leaf_steps": 0}
    check_refits("local", corners, np.append(data.values, [4.0, 5.5, 6.0]), None, COPIES, **leaf)


@pytest.mark.parametrize("last", [None, 6])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_mean_leaves_out_what_the_machine_leaves_out(grouped, last, rng, data, K):
    values = data.values
    weights = rng.uniform(0.5, 3, 15)
    groups = np.arange(15) // 2 if grouped else None
    targets = (values - np.average(values, weights=weights))[:, None]
    found = left_out(K, targets, 0.3, 1 / weights, groups, last, centred=True)
    for place, row in enumerate(range(15 - len(found.residuals), 15)):
        kept = np.flatnonzero(np.arange(15) // 2 != row // 2 if grouped else np.arange(15) != row)
        mean = np.average(values[kept], weights=weights[kept])
        A = K[np.ix_(kept, kept)] + np.diag(0.3 / weights[kept])
        value = mean + K[row, kept] @ np.linalg.solve(A, values[kept] - mean)
        assert found.residuals[place, 0] == pytest.approx(values[row] - value, abs=1e-5)


@pytest.mark.parametrize("name", ["local", "kernel", "rfm"])
def test_few_rows_are_left_out_of_every_choice(name, data):
    """Lambda, and the mean of machines, are chosen again without the row."""
    X = data.X
    trainer = Trainer(methods.get(name).of({"task": "regression"}), predicts_left_out=True)
    model = trainer.fit(X[:9], data.values[:9])
    assert model.left_out.by == "9-fold cross-validation"
    for row in (0, 4, 8):
        kept = np.delete(np.arange(9), row)
        other = trainer.fit(X[kept], data.values[kept])
        expected = model.as_own(other, other.decision_function(X[row : row + 1]))
        assert model.left_out.decision[row] == pytest.approx(expected[0], abs=1e-6)


@pytest.mark.parametrize("few, many, folds", [(90, 90, 5), (0, 90, 3), (0, 40, 3)])
def test_other_models_predict_in_the_folds_of_the_score(few, many, folds, rng, set_sizes):
    """In ten folds the model's score costs little, and that of boosting much."""
    set_sizes(assessment, FEW_ROWS=few, ENOUGH_ROWS=few, MANY_ROWS=many)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    options = {"task": "regression", "scaling": "standard", "kernel": "laplacian", "lam": 0.1}
    options |= {"metric": "diagonal", "metric_steps": 1} if many > 60 else {"metric": "none"}
    trainer = Trainer(methods.get("local").of(options | {"leaf_steps": 0}), predicts_left_out=True)
    trained = fit_and_assess(
        trainer, TrainingTable.of_rows(X, y), AssessmentPlan(hold_out_for_score=True)
    )
    parts = trained.assessment.parts
    assert len(parts) == folds
    assert sorted(np.concatenate([out for _, out in parts])) == list(range(60))
