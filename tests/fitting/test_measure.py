"""Options chosen by the measure that the user names."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from rfx import methods
from rfx.fitting.problem import measured
from rfx.fitting.selection import FURTHER_GAIN
from rfx.measures import ROW_MEASURES

N = 300
FIXED = {"scaling": "none", "metric": "none", "kernel": "gaussian", "gamma": 0.3}


@pytest.fixture(scope="module")
def data():
    """Rows (300, 3), and labels that depend on the first input with much noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return SimpleNamespace(X=X, noisy=X[:, 0] + 2 * rng.normal(size=N) > 1.2)


@pytest.mark.parametrize("k", [1, 3])
def test_errors_are_those_of_scikit_learn(k, rng):
    decision = rng.normal(size=(N, k))
    y = rng.integers(0, max(k, 2), N)
    Y = np.where(y[:, None] == (np.arange(k) if k > 1 else [1]), 1.0, -1.0)
    weights = rng.uniform(1, 2, N)
    labels = decision.argmax(axis=1) if k > 1 else (decision[:, 0] > 0).astype(int)
    task = "multiclass" if k > 1 else "binary"
    value = lambda name: measured(name, task, decision, Y, weights)
    balanced = balanced_accuracy_score(y, labels, sample_weight=weights)
    assert value("balanced_accuracy") == pytest.approx(1 - balanced)
    areas = [roc_auc_score(Y[:, j] > 0, decision[:, j], sample_weight=weights) for j in range(k)]
    assert value("auc") == pytest.approx(1 - np.mean(areas))
    # of the best slopes and intercepts, so at most that of equal probabilities
    assert value("log_loss") <= log_loss(y, np.full((N, max(k, 2)), 1 / max(k, 2))) + 0.01


@pytest.mark.parametrize("measure", ROW_MEASURES)
def test_lambda_is_chosen_by_it(measure, data):
    trainer = methods.create("kernel", task="binary", measure=measure, lam="validation", **FIXED)
    step = trainer.fit(data.X, data.noisy * 1.0).info["validation"][-1]
    own = ROW_MEASURES[measure]
    assert step["error"] == (own.error_of_choice or own.error)
    errors = dict(step["tried"])
    assert (1 - FURTHER_GAIN) * errors[step["chosen"][0]] <= min(errors.values())


@pytest.mark.slow
def test_the_choice_of_inputs_follows_it(data):
    chosen = {}
    for measure in ("accuracy", "log_loss"):
        given = {"measure": measure, "scaling": "standard", "metric": "none"}
        trained = methods.create("rfm", task="binary", **given).fit(data.X, data.noisy * 1.0)
        step = trained.info["validation"][0]
        own = ROW_MEASURES[measure]
        assert (own.error_of_choice or own.error) in step["error"]
        chosen[measure] = [error for *_, error in step["tried"]]
    assert chosen["accuracy"] != chosen["log_loss"]
