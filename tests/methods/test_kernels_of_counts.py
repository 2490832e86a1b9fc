"""Methods with kernels for counts, categories and several length scales."""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import kernels, methods
from rfx.errors import DataError, UsageError

RNG = np.random.default_rng(0)
X = RNG.poisson(2.0, (300, 6)).astype(float)
Y = np.where(X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3], 1.0, -1.0)
SMALL = {"rf": {"n_features": 64}, "sparse-rf": {"n_features": 64}, "r-sdca": {"n_features": 64}}
NAMES = ("kernel", "nystrom", "rf", "sparse-rf", "r-sdca", "doubly-sgd", "norma")
COUNTS = ("additive-chi2", "skewed-chi2", "hamming")


def create(name, kernel, **more):
    return methods.create(name, task="binary", kernel=kernel, **(SMALL.get(name, {}) | more))


@pytest.mark.parametrize("kernel", [*COUNTS, "rational-quadratic", "multiscale", "polynomial-2"])
@pytest.mark.parametrize("name", NAMES)
def test_learns_counts_and_loads(name, kernel, tmp_path):
    given = {"metric": "none"} | ({} if kernel in COUNTS else {"scaling": "standard"})
    model = create(name, kernel, gamma=0.05, **given) if kernel not in COUNTS[:2] else None
    model = (model or create(name, kernel, **given)).fit(X, Y)
    assert np.mean(model.predict(X) != Y) < (0.3 if kernel == "hamming" else 0.12)
    model.save(tmp_path / "m.npz")
    again, sparse = methods.load(tmp_path / "m.npz"), sp.csr_matrix(X)
    expected = model.decision_function(X)
    for rows in (X, sparse):
        np.testing.assert_allclose(again.decision_function(rows), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", COUNTS)
def test_counts_and_codes_are_not_scaled_by_default(kernel):
    for name in ("rf", "kernel", "doubly-sgd"):
        settings = create(name, kernel).method
        assert (settings.scaling, settings.metric) == ("none", "none")
        assert create(name, kernel, scaling="minmax01").method.scaling == "minmax01"
        with pytest.raises(UsageError, match=f"--metric is diagonal, but kernel {kernel} is for"):
            create(name, kernel, metric="diagonal")
    chosen = create("rf", kernel, scaling="auto").fit(X, Y)
    assert chosen.preprocessing.scaler.kind in kernels.get_kernel(kernel).scalings
    with pytest.raises(UsageError, match=f"--kernel is '?{kernel}"):
        create("rfm", kernel)


@pytest.mark.parametrize("name", ["kernel", "nystrom", "rf", "r-sdca", "norma"])
@pytest.mark.parametrize("kernel", ["additive-chi2", "skewed-chi2"])
def test_inputs_out_of_the_domain_are_refused_in_training_and_prediction(name, kernel):
    wrong = X.copy()
    wrong[7, 2] = -50.0
    message = f"kernel {kernel} is for inputs .*, but input 3 of a row is -50 after scaling"
    given = {"skewedness": 3.0} if kernel == "skewed-chi2" else {}
    with pytest.raises(DataError, match=message):
        create(name, kernel, **given).fit(wrong, Y)
    with pytest.raises(DataError, match=message):
        create(name, kernel, **given).fit(X, Y).predict(wrong)
    with pytest.raises(DataError, match=f"kernel {kernel} is for inputs"):
        create(name, kernel, scaling="standard", **(given and {"skewedness": 0.5})).fit(X, Y)


@pytest.mark.parametrize("gamma", ["median", "tuned", "loo", "validation"])
@pytest.mark.parametrize("name", ["rf", "kernel"])
def test_options_of_a_kernel_count_where_its_bandwidth_is_chosen(name, gamma):
    found = {
        alpha: create(
            name,
            "rational-quadratic",
            gamma=gamma,
            scaling="standard",
            metric="none",
            rq_alpha=alpha,
        )
        .fit(X, Y)
        .info
        for alpha in (0.02, 50.0)
    }
    for alpha, info in found.items():
        assert info["kernel_params"]["rq_alpha"] == alpha
    if gamma != "median":
        tried = [info["validation"][0]["tried"] for info in found.values()]
        assert tried[0] != tried[1]


def test_the_sketch_is_the_default_of_polynomial_kernels(tmp_path):
    for name in ("rf", "sparse-rf", "lkrf", "r-sdca", "doubly-sgd"):
        for kernel, variant in (("polynomial-2", "sketch"), ("exponential", "signs")):
            assert methods.create(name, kernel=kernel).method.features == variant
        assert methods.create(name, kernel="gaussian").method.features == "offset"
    given = {"gamma": 0.1, "lam": 1.0, "scaling": "standard"}
    default, sketch, signs = (
        create("rf", "polynomial-2", **given, **more).fit(X, Y).decision_function(X)
        for more in ({}, {"features": "sketch"}, {"features": "signs"})
    )
    np.testing.assert_array_equal(default, sketch)
    assert np.abs(default - signs).max() > 1e-3
    with pytest.raises(UsageError, match="--features is sketch, which is for the kernels polynomi"):
        create("rf", "exponential", features="sketch")
