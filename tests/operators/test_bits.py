"""Perceptrons and stumps stored as bits."""

import numpy as np
import pytest

from rfx import env, methods
from rfx.features import sample
from rfx.losses import SquaredHinge
from rfx.operators import mapped
from rfx.operators.bits import BitMatrix, packed
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (700, 5)).astype(np.float32)
Y = np.where(np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] > 0.1, 1.0, -1.0)
STUMPS = {"lo": X.min(axis=0), "hi": X.max(axis=0)}


@pytest.fixture
def every_sign_a_bit(monkeypatch):
    monkeypatch.setattr(mapped, "WORTH_MB", 0)


@pytest.mark.parametrize(
    "made",
    [
        lambda: sample("perceptron", 5, 77, 0, radius=2.0),
        lambda: sample("perceptron", 5, 77, 0, radius=2.0, unit=True),
        lambda: sample("perceptron", 5, 77, 0, radius=2.0).fit(X, "range"),
        lambda: sample("perceptron", 5, 77, 0, radius=2.0).weighted(
            np.arange(5, 70), np.linspace(-1, 1, 65)
        ),
        lambda: sample("stump", 5, 77, 0, **STUMPS),
        lambda: sample("stump", 5, 77, 0, **STUMPS).weighted(
            np.arange(5, 70), np.linspace(0, 1, 65)
        ),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_bits_are_the_features(made, scale, every_sign_a_bit):
    Z = MapMatrix(made(), X, scale)
    held = Z.hold()
    assert isinstance(held, BitMatrix) and held.bits.nbytes == 700 * -(-Z.shape[1] // 8)
    np.testing.assert_allclose(held.to_array(), Z.to_array(), rtol=1e-6)
    assert Z.hold(max_mb=1e-6) is Z


def test_few_features_and_others_are_no_bits(every_sign_a_bit, monkeypatch):
    assert isinstance(MapMatrix(sample("gaussian", 5, 77, 0, gamma=1.0), X).hold(), DenseMatrix)
    monkeypatch.setattr(mapped, "WORTH_MB", 1)
    assert isinstance(MapMatrix(sample("stump", 5, 77, 0, **STUMPS), X).hold(), DenseMatrix)


@pytest.mark.parametrize("kernel", ["perceptron", "stump"])
@pytest.mark.parametrize(
    "name, options",
    [("rf", {"loss": "squared_hinge"}), ("rf", {"loss": "squared"}), ("sparse-rf", {"rounds": 3})],
)
def test_models_are_the_same(kernel, name, options, monkeypatch):
    options = {
        "kernel": kernel,
        "n_features": 150,
        "lam": 1.0,
        "tol": 1e-6,
        "task": "binary",
    } | options
    plain = methods.create(name, **options).fit(X, Y)
    made = []
    monkeypatch.setattr(mapped, "WORTH_MB", 0)
    monkeypatch.setattr(mapped, "packed", lambda *given: made.append(given) or packed(*given))
    by_bits = methods.create(name, **options).fit(X, Y)
    assert made and by_bits.info["converged"]
    assert by_bits.info["objective"] == pytest.approx(plain.info["objective"], rel=3e-6)
    # two perceptrons may differ on one row only, and share the weight between them
    assert np.mean(np.abs(by_bits.decision_function(X) - plain.decision_function(X))) < 2e-3


def test_sums_are_the_same_by_any_number_of_threads(monkeypatch):
    heights = RNG.uniform(0.5, 1, 3001)
    Z = packed(DenseMatrix(np.where(RNG.random((900, 3001)) > 0.5, heights, -heights)), heights)
    w, y, found = RNG.standard_normal(3001), RNG.choice([-1.0, 1.0], 900), []
    for threads in (1, 2, 3):
        monkeypatch.setattr(env, "threads", lambda count=threads: count)
        found.append((*Z.loss_pass(w, SquaredHinge, y), Z.normal(w), Z.rmatvec(y)))
    for others in found[1:]:
        for own, other in zip(found[0], others):
            np.testing.assert_array_equal(own, other)
