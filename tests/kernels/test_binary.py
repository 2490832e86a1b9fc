"""Columns with two values, compared as bits."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_kernels import reference

from rfx import kernels
from rfx.kernels import binary

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
@pytest.mark.parametrize("two", [8, 31, 32, 33, 64, 70, 100])
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_the_formula(name, two, form):
    params = {"gamma": KERNELS[name]}
    X, Y = rows(two=two, low=0.0), rows(50, two=two, low=0.0, seed=3)
    left = kernels.prepare(name, form(X), params, np.float64)
    right = kernels.prepare(name, form(Y), params, np.float64, like=left)
    assert left._bits is not None and right._bits is not None
    np.testing.assert_allclose(
        kernels.block(name, left, right, params),
        literal(name, X, Y, params["gamma"]),
        rtol=1e-12,
        atol=1e-14,
    )
    np.testing.assert_allclose(
        kernels.block(name, form(X), form(Y), params, dtype=np.float32),
        literal(name, X, Y, params["gamma"]),
        atol=2e-6,
    )


@pytest.mark.parametrize("others", [0, 1, 40])
@pytest.mark.parametrize("name", ["gaussian", "laplacian"])
def test_nothing_else_or_much_else(name, others):
    X, params = rows(others=others), {"gamma": 0.2}
    K = kernels.block(name, X, X, params)
    np.testing.assert_allclose(K, literal(name, X, X, 0.2), rtol=1e-11, atol=1e-14)
    assert np.array_equal(np.diagonal(K), np.ones(len(X)))


def test_rows_with_another_value_are_compared_as_numbers():
    X, Y = rows(low=0.0), rows(40, low=0.0, seed=2)
    Y[3] = 0.25
    left = kernels.prepare("laplacian", X, {"gamma": 0.2}, np.float64)
    right = kernels.prepare("laplacian", Y, {"gamma": 0.2}, np.float64, like=left)
    assert left._bits is not None and right._bits is None
    np.testing.assert_allclose(
        kernels.block("laplacian", left, right, {"gamma": 0.2}),
        literal("laplacian", X, Y, 0.2),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        kernels.block("laplacian", right, left, {"gamma": 0.2}),
        literal("laplacian", Y, X, 0.2),
        rtol=1e-12,
    )


def test_parts_of_rows_have_the_bits_of_these():
    X, params = rows(), {"gamma": 0.2}
    whole = kernels.prepare("laplacian", X, params, np.float64)
    some = whole.take(np.array([4, 80, 7]))
    expected = literal("laplacian", X[[4, 80, 7]], X, 0.2)
    np.testing.assert_allclose(
        kernels.block("laplacian", some, whole, params), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        kernels.block("laplacian", some.astype(np.float32), whole.astype(np.float32), params),
        expected,
        atol=1e-6,
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_found_are_columns_of_two_values_with_the_commonest_gap(form):
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
    found = binary.find(form(X))
    assert found.columns.tolist() == [*range(10), 17] and found.gap == 1.0
    assert sorted([*found.columns, *found.rest]) == list(range(26))
    bits = np.unpackbits(found.bits(form(X)).view(np.uint8), axis=1, bitorder="little")[
        :, : len(found.columns)
    ]
    assert np.array_equal(bits, X[:, found.columns] == found.high)


def test_few_such_columns_or_none():
    rng = np.random.default_rng(0)
    assert binary.find(rng.normal(size=(50, 20))) is None
    assert binary.find(rows(two=7)) is None
    assert binary.find(rows(1, two=20)) is None
    assert binary.find(np.ones((30, 20))) is None
    # not a distance
    assert kernels.prepare("linear", rows(), {}, np.float64)._bits is None
