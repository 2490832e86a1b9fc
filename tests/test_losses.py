"""Losses: derivatives, curvature bounds and conjugates against their definitions."""

import numpy as np
import pytest

from rfx.errors import UsageError
from rfx.losses import LOSSES, get_loss

RNG = np.random.default_rng(0)
Z = RNG.normal(0, 2, 400)
SMOOTH = ["squared", "squared_hinge", "logistic"]


def targets(name):
    return RNG.normal(size=Z.size) if name == "squared" else RNG.choice([-1.0, 1.0], Z.size)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_the_value(name):
    loss, y, h = LOSSES[name], targets(name), 1e-6
    slope = (loss.value(Z + h, y) - loss.value(Z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(Z, y), slope, atol=2e-5)
    away = np.abs(1 - y * Z) > 1e-3  # the squared hinge has no second derivative at the margin
    bend = (loss.derivative(Z + h, y) - loss.derivative(Z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.second_derivative(Z, y)[away], bend[away], atol=2e-5)
    assert np.all(loss.second_derivative(Z, y) <= loss.curvature + 1e-12)


@pytest.mark.parametrize("name", list(LOSSES))
def test_conjugate_is_the_supremum(name):
    loss = LOSSES[name]
    grid = np.linspace(-60, 60, 240001)
    for y in (-1.0, 1.0):
        for u in np.linspace(-1.5, 1.5, 13):
            clipped = float(loss.clip_dual(np.float64(u), y))
            supremum = np.max(clipped * grid - loss.value(grid, y))
            assert float(loss.conjugate(np.float64(clipped), y)) == pytest.approx(supremum, abs=2e-3)


@pytest.mark.parametrize("name", list(LOSSES))
def test_fenchel_young_holds_and_is_tight_at_the_derivative(name):
    loss, y = LOSSES[name], targets(name)
    u = loss.clip_dual(RNG.normal(size=Z.size), y)
    assert np.all(loss.value(Z, y) + loss.conjugate(u, y) >= Z * u - 1e-9)
    u = loss.derivative(Z, y)
    np.testing.assert_allclose(loss.value(Z, y) + loss.conjugate(u, y), Z * u, atol=1e-9)
    np.testing.assert_allclose(loss.clip_dual(u, y), u, atol=1e-12)


def test_logistic_does_not_overflow():
    far = np.array([-1e4, 1e4])
    for y in (-1.0, 1.0):
        for values in (LOSSES["logistic"].value(far, y), LOSSES["logistic"].derivative(far, y)):
            assert np.all(np.isfinite(values))


def test_unknown_loss():
    with pytest.raises(UsageError, match="loss 'huber' is unknown; choose one of squared, squared_hinge"):
        get_loss("huber")
