"""Arc-cosine features against the formulas of the kernels of Cho and Saul (2009)."""

import numpy as np
import pytest

from rfx.errors import DataError
from rfx.features import sample

RNG = np.random.default_rng(0)
X = RNG.standard_normal((10, 5)) * RNG.uniform(0.2, 2, (10, 1))


def exact(order, X, Y):
    lengths = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Y, axis=1)[None, :]
    cosine = np.clip(X @ Y.T / lengths, -1, 1)
    angle = np.arccos(cosine)
    J = {
        0: np.pi - angle,
        1: np.sin(angle) + (np.pi - angle) * cosine,
        2: 3 * np.sin(angle) * cosine + (np.pi - angle) * (1 + 2 * cosine**2),
    }[order]
    return lengths**order * J / np.pi


@pytest.mark.parametrize("order", [0, 1, 2])
def test_mean_product_is_the_kernel(order):
    Z = sample(f"arccosine-{order}", 5, 300_000, seed=1, dtype=np.float64).transform(X)
    products = Z[:, None, :] * Z[None, :, :]
    error = products.mean(-1) - exact(order, X, X)
    assert np.all(np.abs(error) <= 4.5 * products.std(-1) / np.sqrt(Z.shape[1]) + 1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_row_of_zeros_has_features_zero(order):
    assert not sample(f"arccosine-{order}", 5, 40, seed=1).transform(np.zeros((3, 5))).any()


def test_squares_that_overflow_are_refused():
    with pytest.raises(
        DataError, match=r"inputs up to 1e\+25 overflow the arccosine-2 features in float32"
    ):
        sample("arccosine-2", 5, 40, seed=1).transform(np.full((3, 5), 1e25))
    assert np.isfinite(sample("arccosine-1", 5, 40, seed=1).transform(np.full((3, 5), 1e25))).all()
