"""`mlp`: scikit-learn's network on the stream of the stochastic methods; unsupported options are
refused.
"""

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from rfx import methods
from rfx.data.stream import ArraySource, Stream
from rfx.errors import DataError, UsageError

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (600, 3)).astype(np.float32)
RADIUS = np.linalg.norm(X, axis=1)
TARGETS = {
    "regression": 40 + 7 * np.cos(RADIUS),
    "binary": np.where(RADIUS > 2.2, 5.0, 2.0),
    "multiclass": np.digitize(RADIUS, [1.8, 2.5]).astype(float),
}
OPTIONS = {
    "scaling": "none",
    "batch": 50,
    "epochs": 40,
    "layers": "30,20",
    "rate": 3e-3,
    "nu": 1e-4,
    "seed": 5,
}


@pytest.mark.parametrize("task", list(TARGETS))
def test_it_is_scikit_learn_s_on_the_same_batches(task, reloaded):
    """The result of partial_fit over the batches of the stream, which are those of doubly-sgd; a
    model file keeps it. Centred targets are divided by their deviation in the first batch.
    """
    y = TARGETS[task]
    more = {"target_scaling": "mean"} if task == "regression" else {}
    method = methods.create("mlp", task=task, **OPTIONS, **more).fit(
        X[:500], y[:500], held_out=(X[500:], y[500:])
    )
    kind = MLPRegressor if task == "regression" else MLPClassifier
    network = kind(
        hidden_layer_sizes=(30, 20),
        learning_rate_init=3e-3,
        shuffle=False,
        random_state=5,
        batch_size=50,
        alpha=1e-4 * 50,
    )
    known = {} if task == "regression" else {"classes": np.unique(y)}
    mean, scale = (y[:500].mean(), None) if task == "regression" else (0.0, 1.0)
    for rows, own, _ in Stream(ArraySource(X[:500], y[:500], 5), 50, 0, 5, 40):
        scale = scale or own.std()
        network.partial_fit(rows, (own - mean) / scale, **known)
    found = method.predict(X[500:])
    np.testing.assert_allclose(found, network.predict(X[500:]) * scale + mean, atol=1e-3)
    assert (
        np.mean(np.abs(found - y[500:])) < 1.0
        if task == "regression"
        else np.mean(found == y[500:]) > 0.8
    )
    assert (
        method.trace[-1]["samples"] == 40 * 500
        and method.trace[-1]["loss"] < method.trace[0]["loss"]
    )
    reloaded(method, X)


def test_the_loss_before_the_first_step_is_that_of_nothing_learnt_and_regularisation_counts():
    y = TARGETS["binary"]
    weights = []
    for nu in (0.0, 0.1):
        method = methods.create("mlp", task="binary", **OPTIONS | {"nu": nu}).fit(X, y)
        weights.append(np.square(method.model.arrays()["parameters"]).sum())
        assert 0 < method.info["objective"] < np.log(2)
        assert method.info["model_size"] == 4 * 30 + 31 * 20 + 21
    assert weights[1] < 0.5 * weights[0]


def test_what_is_refused_of_rows(tmp_path):
    with pytest.raises(UsageError, match="method mlp can't write checkpoints"):
        methods.create("mlp").keep(tmp_path / "point")
    with pytest.raises(UsageError, match="there are several classes; choose softmax"):
        methods.create("mlp", loss="logistic", task="multiclass").fit(X, TARGETS["multiclass"])
    with pytest.raises(UsageError, match="method mlp does not support sample weights"):
        methods.create("mlp").fit(X, TARGETS["binary"], sample_weight=np.arange(len(X)))
    method = methods.create("mlp", task="binary", **OPTIONS | {"epochs": 1}).fit(
        X, TARGETS["binary"]
    )
    with pytest.raises(DataError, match="its 3 parameters are not the 761 of layers 30,20"):
        method.method.restore(
            method.model.header() | {"loss": "logistic", "task": "binary"},
            {"parameters": np.zeros(3), "classes": method.classes},
        )
