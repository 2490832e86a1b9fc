"""Gradients of kernel expansions against finite differences."""

import numpy as np
import pytest

from rfx import kernels
from rfx.errors import UsageError
from rfx.kernels import gradients

KNOWN = [name for name, kernel in kernels.KERNELS.items() if kernel.has_gradient]


@pytest.fixture(scope="module")
def expansion():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 5)), rng.normal(size=(40, 2))


def test_the_kernels_of_a_distance_have_gradients():
    assert set(KNOWN) >= {"gaussian", "laplacian", "laplacian-l2", "matern-3/2", "matern-5/2"}


@pytest.mark.parametrize("name", KNOWN)
def test_gradients_are_those_of_finite_differences(name, expansion):
    X, coef = expansion
    rows, params, step = np.arange(0, 40, 3), {"gamma": 0.3}, 1e-6
    found = list(gradients.gradients(name, X, coef, params, rows))
    assert len(found) == 2
    for output, gradient in enumerate(found):
        for place, row in enumerate(rows):
            others = np.arange(40) != row  # a row contributes nothing to the gradient at itself

            def f(x):
                return kernels.block(name, x, X[others], params) @ coef[others, output]

            moved = np.eye(5) * step
            expected = (f(X[row] + moved) - f(X[row] - moved)) / (2 * step)
            np.testing.assert_allclose(gradient[place], expected, atol=1e-7)


@pytest.mark.parametrize("name", KNOWN)
def test_outer_products_are_averages_over_rows_and_sums_over_outputs(name, expansion, monkeypatch):
    X, coef = expansion
    rows, weights = np.arange(40), np.arange(40) % 3 + 0.5
    found = [np.copy(one) for one in gradients.gradients(name, X, coef, {"gamma": 0.3}, rows)]
    expected = sum((one * weights[:, None]).T @ one for one in found) / weights.sum()
    for values in (1 << 22, 40 * 7):  # in one block, and in blocks of 7 rows
        monkeypatch.setattr(gradients, "_VALUES", values)
        full = gradients.outer_product(name, X, coef, {"gamma": 0.3}, rows, True, weights)
        diagonal = gradients.outer_product(name, X, coef, {"gamma": 0.3}, rows, False, weights)
        np.testing.assert_allclose(full, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(diagonal, np.diag(expected), rtol=1e-10)


def test_a_kernel_without_a_known_gradient_is_refused(expansion):
    X, coef = expansion
    with pytest.raises(UsageError, match="kernel perceptron has no implemented gradient"):
        next(gradients.gradients("perceptron", X, coef, {}, np.arange(3)))
