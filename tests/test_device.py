"""The primitives in numpy, array-api-strict and PyTorch on the processor, against the code for the
processor; and the methods that use them.
"""

import importlib
import json
from dataclasses import replace

import array_api_compat
import numpy as np
import pytest
from shell import printed, refused

from rfx import device, kernels, methods
from rfx.errors import DataError, UsageError
from rfx.estimators import RFClassifier, RFRegressor
from rfx.features import sample
from rfx.features.nystrom import NystromMap
from rfx.kernels.gradients import outer_product
from rfx.operators import linear_algebra
from rfx.operators.accelerated import DeviceMatrix
from rfx.operators.kernel import left_out

EXACT = [
    name
    for name, kernel in kernels.KERNELS.items()
    if kernel.metric in device.COMPARED and not kernel.lengths
]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(150, 6))


@pytest.fixture(scope="module")
def Z(X):
    """Other rows, of which the first five are also in X."""
    return np.vstack([X[:5], np.random.default_rng(1).normal(size=(55, 6))])


@pytest.fixture(scope="module")
def targets(X):
    return np.sin(X[:, 0]) + 0.1 * X[:, 1] ** 2


def accelerator(name, double=True):
    library = pytest.importorskip(name)
    xp = importlib.import_module("array_api_compat.torch") if name == "torch" else library
    if name == "numpy":
        xp = array_api_compat.array_namespace(np.zeros(1))
    return device.Accelerator(xp, None, name, double, lambda: 1 << 32)


@pytest.fixture(params=["array_api_strict", "torch"])
def used(request, set_sizes):
    """In a block of small tiles."""
    set_sizes(device, ENTRIES=1000, PANEL=32, TEMPORARY=0)
    one = accelerator(request.param)
    with device.use(one):
        yield one


def on_processor(function, *arguments, **named):
    with device.use("cpu"):
        return function(*arguments, **named)


@pytest.mark.parametrize("name", EXACT)
def test_kernel_values_and_products_are_those_of_the_processor(name, used, rng, X, Z):
    params = kernels.parameters(name, np.abs(X))
    expected = on_processor(kernels.block, name, X, Z, params)
    values = kernels.values(name, X, Z, params)
    assert isinstance(values, device.Values)
    coef = rng.normal(size=(60, 2))
    np.testing.assert_allclose(used.get(values.array), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values @ coef, expected @ coef, rtol=1e-9, atol=1e-8)
    decision = kernels.decision(name, params, Z, coef, X)
    np.testing.assert_allclose(decision, expected @ coef, rtol=1e-9, atol=1e-8)


def test_equal_rows_have_exactly_the_values_of_the_diagonal(used, X):
    values = kernels.values("laplacian-l2", X * 1e3, X * 1e3, {"gamma": 1.0})
    np.testing.assert_array_equal(np.diag(used.get(values.array)), 1.0)


def test_factors_solve_and_invert(used, rng, X):
    K = on_processor(kernels.block, "laplacian-l2", X, X, {"gamma": 0.5})
    shift, Y = rng.uniform(0.1, 1, len(K)), rng.normal(size=(150, 3))
    factor = device.Values(used, used.put(K)).factored(shift)
    system = K + np.diag(shift)
    np.testing.assert_allclose(factor.solve(Y), np.linalg.solve(system, Y), rtol=1e-9)
    np.testing.assert_allclose(factor.solve(Y[:, 0]), np.linalg.solve(system, Y[:, 0]), rtol=1e-9)
    inverse = np.diag(np.linalg.inv(system))
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse, rtol=1e-9)
    on_cpu = linear_algebra.factored(K, shift, np.float64)
    np.testing.assert_allclose(on_cpu.inverse_diagonal(), inverse, rtol=1e-9)


def test_a_singular_matrix_has_no_factor(used):
    with pytest.raises(np.linalg.LinAlgError):
        device.Values(used, used.put(-np.eye(100))).factored(0.5)


def test_leave_one_out_is_that_of_the_processor(used, rng, X):
    K = on_processor(kernels.block, "laplacian-l2", X, X, {"gamma": 0.5})
    Y = rng.normal(size=(150, 2))
    found = left_out(kernels.values("laplacian-l2", X, X, {"gamma": 0.5}), Y, 0.1)
    expected = on_processor(left_out, K, Y, 0.1)
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    some = np.arange(0, 150, 3)
    part = kernels.values("laplacian-l2", X, X, {"gamma": 0.5})[np.ix_(some, some)]
    np.testing.assert_allclose(used.get(part.array), K[np.ix_(some, some)], atol=1e-12)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", [n for n in EXACT if kernels.KERNELS[n].has_gradient])
def test_outer_products_are_those_of_the_processor(name, full, used, rng, X):
    coef, weights = rng.normal(size=(150, 2)), rng.uniform(size=150)
    for rows in (np.arange(150), np.arange(0, 150, 2)):
        given = (name, X, coef, {"gamma": 0.3}, rows, full, weights[: len(rows)])
        expected = on_processor(outer_product, *given)
        np.testing.assert_allclose(outer_product(*given), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "name, params",
    [
        ("gaussian", {"gamma": 0.5}),
        ("laplacian", {"gamma": 0.5}),
        ("perceptron", {"radius": 3.0}),
        ("nystrom", {"gamma": 0.5}),
    ],
)
def test_features_and_their_products_are_those_of_the_processor(name, params, used, rng, X, Z):
    if name == "nystrom":
        made = NystromMap("laplacian-l2", Z, params, np.float64)
    else:
        made = sample(name, 6, 70, 0, dtype=np.float64, **params)
    expected = on_processor(made.transform, X)
    placed = DeviceMatrix.of(made, X)
    found = np.concatenate([part for _, part in placed.row_blocks()])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    W, Y = rng.normal(size=(expected.shape[1], 2)), rng.normal(size=(150, 2))
    np.testing.assert_allclose(placed.matvec(W), expected @ W, atol=1e-8)
    np.testing.assert_allclose(placed.rmatvec(Y), expected.T @ Y, atol=1e-7)
    np.testing.assert_allclose(placed.normal(W), expected.T @ (expected @ W), atol=1e-6)


# ---------------------------------------------------------------------- methods

FIXED = {"task": "regression", "gamma": 0.5, "lam": 0.1, "scaling": "standard", "metric": "none"}
# the second rfm chooses its options
METHODS = {
    "kernel": FIXED | {"kernel": "matern-3/2"},
    "rfm": FIXED | {"kernel": "laplacian-l2", "metric": "full", "metric_steps": 2},
    "rfm, chosen": {"task": "regression", "kernel": "laplacian-l2", "scaling": "standard"},
    "local": {"task": "regression", "scaling": "standard", "metric": "none", "leaf_rows": 60},
    "rf": FIXED | {"n_features": 50},
    "nystrom": FIXED | {"n_features": 50, "kernel": "laplacian-l2"},
    "lkrf": FIXED | {"pool": 200, "kernel": "gaussian"},
    "block": FIXED | {"block_size": 60},
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_methods_predict_as_on_the_processor(name, library, rng, X, Z, targets):
    weights = rng.uniform(0.5, 2, len(X))
    there, here = same_decisions(X, Z, targets, name, accelerator(library), weights)
    assert max(info["gap"] / info["objective"] for info in (there, here)) < 1e-6
    assert (there.get("device"), here.get("device")) == (None, library)


def same_decisions(X, Z, targets, name, place, weights=None):
    """What the outcomes of both places say, whose decisions are close to each other."""
    made, trained = methods.create(name.partition(",")[0], **METHODS[name]), []
    for used in ("cpu", place):
        with device.use(used):
            one = made.fit(X, targets, weights)
            trained.append((one.info, one.decision_function(Z)))
    (there, expected), (here, found) = trained
    np.testing.assert_allclose(found, expected, atol=1e-4 * targets.std())
    return there, here


def test_leaves_are_solved_one_by_one_where_few_fit():
    with device.use(replace(accelerator("numpy"), free=lambda: 0)):
        assert device.parts(1000) == 1
    with device.use(replace(accelerator("numpy"), free=lambda: 1 << 40)):
        assert device.parts(1000) > 1000
    assert device.parts(1000) is None


def test_a_full_memory_is_one_sentence():
    class OutOfMemoryError(RuntimeError):
        pass

    with pytest.raises(DataError, match="memory of the GPU is full"), device.use("cpu"):
        raise OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize(
    "place",
    [replace(accelerator("numpy"), free=lambda: 0), accelerator("numpy", double=False)],
    ids=["values that do not fit are computed in tiles", "slow float64: float32 factors"],
)
def test_a_device_of_little_memory_or_slow_float64(place, X, Z, targets):
    made = methods.create("kernel", **METHODS["kernel"])
    with device.use(place):
        trained = made.fit(X, targets)
        found = trained.decision_function(Z)
    assert trained.info["converged"]
    assert place.double or trained.trace[-1]["path"] == "cholesky-float32"
    expected = made.fit(X, targets).decision_function(Z)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(device, "found", lambda: accelerator("numpy"))


@pytest.mark.parametrize(("n_rows", "name"), [(device.MANY, "numpy"), (device.MANY - 1, None)])
def test_auto_takes_a_device_for_many_rows_only(gpu, n_rows, name, X, targets):
    rows = np.arange(n_rows) % len(X)
    with device.use("auto"):
        info = methods.create("rf", **METHODS["rf"]).fit(X[rows], targets[rows]).info
    assert info.get("device") == name


def test_what_has_no_code_for_devices_says_so(gpu, X, targets):
    with pytest.raises(UsageError, match="method rb does not run on a GPU"):
        methods.get("rb").on("cuda").__enter__()
    classes = FIXED | {"task": "binary"}
    with device.use("cuda"), pytest.raises(UsageError, match="loss is squared_hinge"):
        methods.create("rf", **classes).fit(X, (targets > 0) * 1.0)
    with device.use("cuda"), pytest.raises(UsageError, match="kernel arccosine-1 has no values"):
        methods.create("kernel", **FIXED | {"kernel": "arccosine-1", "gamma": None}).fit(X, targets)


def test_cuda_without_a_gpu_is_refused():
    if device.found() is not None:
        pytest.skip("there is a GPU")
    with pytest.raises(UsageError, match="finds a GPU"):
        device.use("cuda").__enter__()


def test_commands_use_the_device_and_the_row_names_it(gpu, tmp_path, capfd, X, targets):
    data, model = tmp_path / "rows.npz", tmp_path / "m.npz"
    np.savez(data, X=X, y=targets)
    words = ("train", "--data", data, "--split", 0.8, "--no-baseline", "--quiet", "--method")
    device, fixed = ("--device", "cuda"), ("rf", "--gamma", 1, "--lam", 1)
    row = json.loads(printed(capfd, *words, *fixed, "--model", model, *device, "--json"))
    assert row["params"]["device"] == "numpy"
    plain = json.loads(printed(capfd, *words, *fixed, "--json"))
    assert plain["key"] == row["key"]
    assert "device" not in plain["params"]
    predict = ("predict", model, data, "--digits", 4, "--device")
    assert printed(capfd, *predict, "cpu") == printed(capfd, *predict, "cuda") != ""
    refused(capfd, *words, "rb", *device, code=2)


# ---------------------------------------------------------------------- estimators


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_estimators_take_and_return_arrays_of_a_library(library, gpu, X, targets):
    xp = accelerator(library).xp
    rows, numbers = xp.asarray(X), xp.asarray(targets)
    options = {"n_features": 50, "gamma": 0.5, "device": "cuda"}
    model = RFRegressor(**options).fit(rows, numbers)
    found = model.predict(rows)
    assert type(found) is type(rows)
    assert model.info_["device"] == "numpy"
    expected = RFRegressor(**options).fit(X, targets).predict(X)
    np.testing.assert_array_equal(np.asarray(found), expected)
    labels = RFClassifier(gamma=0.5).fit(rows, np.where(targets > 0, "high", "low")).predict(rows)
    assert set(labels) == {"high", "low"}


# ---------------------------------------------------------------------- with a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("name", METHODS)
def test_methods_predict_on_a_gpu_as_on_the_processor(name, X, Z, targets):
    if device.found() is None:
        pytest.skip("needs a GPU")
    same_decisions(X, Z, targets, name, "cuda")
