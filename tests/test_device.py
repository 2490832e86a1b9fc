"""The primitives in numpy, array-api-strict and PyTorch on the processor, against the code for the
processor; and the methods that use them.
"""

import importlib

import array_api_compat
import numpy as np
import pytest

from rfx import device, kernels
from rfx.features import sample
from rfx.features.nystrom import NystromMap
from rfx.kernels.gradients import outer_product
from rfx.operators import cholesky
from rfx.operators.accelerated import DeviceMatrix
from rfx.operators.left_out import left_out

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(150, 6)), RNG.normal(size=(60, 6))
Z[:5] = X[:5]
EXACT = [
    name
    for name, kernel in kernels.KERNELS.items()
    if kernel.metric in device.COMPARED and not kernel.lengths
]


def accelerator(name, double=True):
    library = pytest.importorskip(name)
    xp = importlib.import_module("array_api_compat.torch") if name == "torch" else library
    if name == "numpy":
        xp = array_api_compat.array_namespace(np.zeros(1))
    return device.Accelerator(xp, None, name, double, lambda: 1 << 32)


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def used(request, monkeypatch):
    """In a block of small tiles."""
    monkeypatch.setattr(device, "ENTRIES", 1000)
    monkeypatch.setattr(device, "PANEL", 32)
    monkeypatch.setattr(device, "TEMPORARY", 0)
    one = accelerator(request.param)
    with device.use(one):
        yield one


def on_processor(function, *arguments, **named):
    with device.use("cpu"):
        return function(*arguments, **named)


@pytest.mark.parametrize("name", EXACT)
def test_kernel_values_and_products_are_those_of_the_processor(name, used):
    params = kernels.parameters(name, np.abs(X))
    expected = on_processor(kernels.block, name, X, Z, params)
    values = kernels.values(name, X, Z, params)
    assert isinstance(values, device.Values)
    coef = RNG.normal(size=(60, 2))
    np.testing.assert_allclose(used.get(values.array), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values @ coef, expected @ coef, rtol=1e-9, atol=1e-8)
    decision = kernels.decision(name, params, Z, coef, X)
    np.testing.assert_allclose(decision, expected @ coef, rtol=1e-9, atol=1e-8)


def test_equal_rows_have_exactly_the_values_of_the_diagonal(used):
    values = kernels.values("laplacian-l2", X * 1e3, X * 1e3, {"gamma": 1.0})
    np.testing.assert_array_equal(np.diag(used.get(values.array)), 1.0)


def test_factors_solve_and_invert(used):
    K = on_processor(kernels.block, "laplacian-l2", X, X, {"gamma": 0.5})
    shift, Y = RNG.uniform(0.1, 1, len(K)), RNG.normal(size=(150, 3))
    factor = device.Values(used, used.put(K)).factored(shift)
    system = K + np.diag(shift)
    np.testing.assert_allclose(factor.solve(Y), np.linalg.solve(system, Y), rtol=1e-9)
    np.testing.assert_allclose(factor.solve(Y[:, 0]), np.linalg.solve(system, Y[:, 0]), rtol=1e-9)
    inverse = np.diag(np.linalg.inv(system))
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse, rtol=1e-9)
    on_cpu = cholesky.factored(K, shift, np.float64)
    np.testing.assert_allclose(on_cpu.inverse_diagonal(), inverse, rtol=1e-9)


def test_a_singular_matrix_has_no_factor(used):
    with pytest.raises(np.linalg.LinAlgError):
        device.Values(used, used.put(-np.eye(100))).factored(0.5)


def test_leave_one_out_is_that_of_the_processor(used):
    K = on_processor(kernels.block, "laplacian-l2", X, X, {"gamma": 0.5})
    Y = RNG.normal(size=(150, 2))
    found = left_out(kernels.values("laplacian-l2", X, X, {"gamma": 0.5}), Y, 0.1)
    expected = on_processor(left_out, K, Y, 0.1)
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    some = np.arange(0, 150, 3)
    part = kernels.values("laplacian-l2", X, X, {"gamma": 0.5})[np.ix_(some, some)]
    np.testing.assert_allclose(used.get(part.array), K[np.ix_(some, some)], atol=1e-12)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", [n for n in EXACT if kernels.KERNELS[n].has_gradient])
def test_outer_products_are_those_of_the_processor(name, full, used):
    coef, weights = RNG.normal(size=(150, 2)), RNG.uniform(size=150)
    for rows in (np.arange(150), np.arange(0, 150, 2)):
        given = (name, X, coef, {"gamma": 0.3}, rows, full, weights[: len(rows)])
        expected = on_processor(outer_product, *given)
        np.testing.assert_allclose(outer_product(*given), expected, rtol=1e-8, atol=1e-10)


MAPS = [
    ("gaussian", {"gamma": 0.5}),
    ("laplacian", {"gamma": 0.5}),
    ("perceptron", {"radius": 3.0}),
]


@pytest.mark.parametrize("name, params", MAPS)
def test_features_and_their_products_are_those_of_the_processor(name, params, used):
    made = sample(name, 6, 70, 0, dtype=np.float64, **params)
    check_features(made, used)


def test_nystrom_features_are_those_of_the_processor(used):
    check_features(NystromMap("laplacian-l2", Z, {"gamma": 0.5}, np.float64), used)


def check_features(made, used):
    expected = on_processor(made.transform, X)
    placed = DeviceMatrix.of(made, X)
    found = np.concatenate([part for _, part in placed.row_blocks()])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    W, Y = RNG.normal(size=(expected.shape[1], 2)), RNG.normal(size=(150, 2))
    np.testing.assert_allclose(placed.matvec(W), expected @ W, atol=1e-8)
    np.testing.assert_allclose(placed.rmatvec(Y), expected.T @ Y, atol=1e-7)
    np.testing.assert_allclose(placed.normal(W), expected.T @ (expected @ W), atol=1e-6)
