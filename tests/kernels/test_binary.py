"""Columns with two values, compared as bits."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_kernels import reference

from rfx import kernels

KERNELS = {
    "gaussian": 0.3,
    "laplacian": 0.2,
    "laplacian-l2": 0.3,
    "matern-3/2": 0.3,
    "matern-5/2": 0.3,
}


def rows(n_rows=90, others=5, two=70, low=-1.0, high=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.hstack(
        [rng.uniform(-1, 1, (n_rows, others)), np.where(rng.random((n_rows, two)) < 0.2, high, low)]
    )
    return X[:, np.random.default_rng(1).permutation(X.shape[1])]


def literal(name, X, Y, gamma):
    return reference(name, X, Y, {"gamma": gamma})


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    ("others", "two"), [(0, 70), (40, 70), *((5, two) for two in (8, 31, 32, 33, 64, 70, 100))]
)
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_the_formula(name, others, two, form):
    params = {"gamma": KERNELS[name]}
    X, Y = (rows(n, others, two, 0.0, seed=seed) for seed, n in ((0, 90), (3, 50)))
    left = kernels.prepare(name, form(X), params, np.float64)
    right = kernels.prepare(name, form(Y), params, np.float64, like=left)
    assert left._bits is not None and right._bits is not None
    expected, some = literal(name, X, Y, params["gamma"]), np.array([4, 80, 7])
    np.testing.assert_allclose(
        kernels.block(name, left, right, params), expected, rtol=1e-11, atol=1e-14
    )
    np.testing.assert_allclose(
        kernels.block(name, left.take(some), right, params), expected[some], rtol=1e-11, atol=1e-14
    )
    np.testing.assert_allclose(
        kernels.block(name, form(X), form(Y), params, dtype=np.float32), expected, atol=2e-6
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_columns_of_other_values_are_compared_as_numbers(form):
    rng = np.random.default_rng(0)
    X = np.zeros((400, 26))
    X[:, :10] = rng.random((400, 10)) < 0.3
    X[:, 10:13] = 3.0 * (rng.random((400, 3)) < 0.5)  # another gap
    X[:, 13] = 1.0  # one value
    X[:, 14] = rng.integers(0, 3, 400)  # three
    X[:, 15:17] = rng.normal(size=(400, 2))
    X[:, 17] = np.where(rng.random(400) < 0.5, -0.5, 0.5)  # no zeros
    # zeros and others
    X[:, 18] = np.where(rng.random(400) < 0.5, -0.5, 0.5) * (rng.random(400) < 0.9)
    X[:, 19] = np.where(np.arange(400) == 399, 7.0, X[:, 0])  # two values except in the last row
    left = kernels.prepare("laplacian", form(X), {"gamma": 0.2}, np.float64)
    assert left._binary.columns.tolist() == [*range(10), 17]
    Y = np.vstack([X[:50], np.full((1, 26), 0.25)])  # of two values and of another
    for other in (X, Y):
        right = kernels.prepare("laplacian", form(other), {"gamma": 0.2}, np.float64, like=left)
        K = kernels.block("laplacian", left, right, {"gamma": 0.2})
        np.testing.assert_allclose(K, literal("laplacian", X, other, 0.2), rtol=1e-11, atol=1e-14)


def test_only_distances_are_compared_as_bits():
    assert kernels.prepare("linear", rows(), {}, np.float64)._bits is None
