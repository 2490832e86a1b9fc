"""Losses: derivatives, curvature bounds and conjugates against their definitions."""

import numpy as np
import pytest

from rfx.losses import LOSSES, get_loss

SMOOTH = ["squared", "squared_hinge", "logistic"]
CORNERED = {"hinge": (1.0,), "absolute": (0.0,), "epsilon_insensitive": (-0.1, 0.1)}


def drawn(name, rng):
    """400 decisions, and targets that the loss is for."""
    decisions = rng.normal(0, 2, 400)
    if name in ("squared", "absolute", "epsilon_insensitive"):
        return decisions, rng.normal(size=400)
    return decisions, rng.choice([-1.0, 1.0], 400)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_the_value(name, rng):
    loss, h = LOSSES[name], 1e-6
    z, y = drawn(name, rng)
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(z, y), slope, atol=2e-5)
    away = np.abs(1 - y * z) > 1e-3  # the squared hinge has no second derivative at the margin
    bend = (loss.derivative(z + h, y) - loss.derivative(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.second_derivative(z, y)[away], bend[away], atol=2e-5)
    assert np.all(loss.second_derivative(z, y) <= loss.curvature + 1e-12)


@pytest.mark.parametrize("name", list(CORNERED))
def test_subgradients_are_the_slope_away_from_corners_and_bound_the_value_at_them(name, rng):
    loss, h = LOSSES[name], 1e-6
    z, y = drawn(name, rng)
    margin = y * z if name == "hinge" else z - y
    away = np.min([np.abs(margin - corner) for corner in CORNERED[name]], axis=0) > 1e-3
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(z, y)[away], slope[away], atol=1e-6)
    for corner in CORNERED[name]:
        at = corner * y if name == "hinge" else y + corner
        assert np.all(
            loss.value(z, y) >= loss.value(at, y) + loss.derivative(at, y) * (z - at) - 1e-12
        )


def test_softmax_by_finite_differences_and_its_dual():
    loss, rng, h = get_loss("softmax"), np.random.default_rng(4), 1e-6
    z, y = rng.normal(0, 3, (50, 4)), np.eye(4)[rng.integers(0, 4, 50)]
    slopes = np.stack(
        [(loss.value(z + h * e, y) - loss.value(z - h * e, y)) / (2 * h) for e in np.eye(4)], axis=1
    )
    u = loss.derivative(z, y)
    np.testing.assert_allclose(u, slopes, atol=1e-7)
    np.testing.assert_allclose(
        loss.value(z, y) + loss.conjugate(u, y), (z * u).sum(axis=1), atol=1e-10
    )
    np.testing.assert_allclose(loss.clip_dual(u, y), u, atol=1e-12)
    clipped = loss.clip_dual(rng.normal(0, 2, (50, 4)), y)
    assert np.all(clipped + y >= 0)
    np.testing.assert_allclose((clipped + y).sum(axis=1), 1.0)
    assert np.all(loss.value(z, y) + loss.conjugate(clipped, y) >= (z * clipped).sum(axis=1) - 1e-9)
    far = np.array([[1e4, 0.0], [-1e4, 0.0]])
    assert np.all(np.isfinite(loss.value(far, np.eye(2)))) and np.all(
        np.isfinite(loss.derivative(far, np.eye(2)))
    )


def test_the_width_of_the_tube_is_an_argument():
    wide = get_loss("epsilon_insensitive", 0.5)
    np.testing.assert_allclose(wide.value(np.array([0.0, 0.4, 1.0]), 0.0), [0.0, 0.0, 0.5])
    assert get_loss("epsilon_insensitive").epsilon == 0.1


@pytest.mark.parametrize("name", list(LOSSES))
def test_conjugate_is_the_supremum(name):
    loss = LOSSES[name]
    grid = np.linspace(-60, 60, 240001)
    for y in (-1.0, 1.0):
        for u in np.linspace(-1.5, 1.5, 13):
            clipped = float(loss.clip_dual(np.float64(u), y))
            supremum = np.max(clipped * grid - loss.value(grid, y))
            assert float(loss.conjugate(np.float64(clipped), y)) == pytest.approx(
                supremum, abs=2e-3
            )


@pytest.mark.parametrize("name", list(LOSSES))
def test_fenchel_young_holds_and_is_tight_at_the_derivative(name, rng):
    loss = LOSSES[name]
    z, y = drawn(name, rng)
    u = loss.clip_dual(rng.normal(size=z.size), y)
    assert np.all(loss.value(z, y) + loss.conjugate(u, y) >= z * u - 1e-9)
    u = loss.derivative(z, y)
    np.testing.assert_allclose(loss.value(z, y) + loss.conjugate(u, y), z * u, atol=1e-9)
    np.testing.assert_allclose(loss.clip_dual(u, y), u, atol=1e-12)


def test_logistic_does_not_overflow():
    far = np.array([-1e4, 1e4])
    for y in (-1.0, 1.0):
        for values in (LOSSES["logistic"].value(far, y), LOSSES["logistic"].derivative(far, y)):
            assert np.all(np.isfinite(values))
