"""The kernel machine with several classes, one machine per pair of classes; support vector
regression; kernels for counts, categories and several length scales.
"""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR

from rfx import kernels, methods
from rfx.errors import DataError, UsageError
from rfx.methods.kernel import PAIRED

OPTIONS = {
    "scaling": "none",
    "metric": "none",
    "kernel": "gaussian",
    "gamma": 0.1,
    "lam": 0.1,
    "loss": "hinge",
    "dtype": "float64",
    "tol": 1e-9,
    "task": "multiclass",
}


@pytest.fixture(scope="module")
def classes():
    """240 rows of four classes."""
    X, y = make_classification(
        240, 6, n_informative=5, n_redundant=0, n_classes=4, n_clusters_per_class=1, random_state=0
    )
    return SimpleNamespace(X=X, y=y.astype(float))


def fit(X, y, *more, **options):
    return methods.create("kernel", **OPTIONS | options).fit(X, y, *more)


def pairwise(found):
    """The clipped decision values of the pairs, summed over the pairs of each class."""
    n_classes = round((1 + (1 + 8 * found.shape[1]) ** 0.5) / 2)
    sums = np.zeros((len(found), n_classes))
    for place, (first, second) in enumerate(itertools.combinations(range(n_classes), 2)):
        value = np.clip(found[:, place], -1, 1)
        sums[:, first] += value
        sums[:, second] -= value
    return sums / (n_classes - 1)


def test_pairs_are_those_of_libsvm(classes):
    X, y = classes.X, classes.y
    oracle = SVC(C=10, gamma=0.1, tol=1e-10, decision_function_shape="ovo").fit(X, y)
    wanted = pairwise(oracle.decision_function(X))
    np.testing.assert_allclose(fit(X, y).decision_function(X), wanted, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_objective_gap_and_norm_are_those_of_the_pairs(classes, loss):
    X, y = classes.X, classes.y
    found = fit(X, y, loss=loss).info
    alone = [
        fit(X[own], np.where(y[own] == first, 1.0, -1.0), loss=loss, task="binary").info
        for first, second in itertools.combinations(range(4), 2)
        for own in [(y == first) | (y == second)]
    ]
    assert found["objective"] == pytest.approx(sum(one["objective"] for one in alone), rel=1e-6)
    assert found["norm"] == pytest.approx(np.linalg.norm([one["norm"] for one in alone]), rel=1e-4)
    assert 0 <= found["gap"] <= 1e-9 * found["objective"]


def test_a_file_with_other_machines_is_refused(classes, tmp_path, reloaded):
    X, y = classes.X, classes.y
    reloaded(fit(X, y), X)
    path = tmp_path / "saved.npz"
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {name: arrays[name][..., :5] for name in ("coef", "intercept")})
    with pytest.raises(DataError, match="5 machines do not match"):
        methods.load(path)


def test_many_classes_have_a_machine_each():
    y = np.repeat(np.arange(PAIRED + 1.0), 3)
    X = np.random.default_rng(0).normal(size=(len(y), 3)) + y[:, None]
    assert fit(X, y).model.coef.shape[1] == PAIRED + 1


def test_pairs_without_rows_are_neutral(classes):
    own = classes.y < 2
    X, y = classes.X[own], classes.y[own]
    trainer = replace(methods.create("kernel", **OPTIONS), classes=np.arange(4.0))
    decision = trainer.fit(X, y).decision_function(X)
    assert decision.shape[1] == 4
    assert np.mean(np.argmax(decision, axis=1) == y) > 0.9


# ------------------------------------------------------------------ regression with a tube


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (250, 3))
    y = 100 + 10 * np.sin(2 * X[:, 0]) + 5 * X[:, 1] ** 2 + rng.standard_normal(250)
    return SimpleNamespace(X=X, y=y)


def regression(X, y, *more, **options):
    options = {"loss": "epsilon_insensitive", "task": "regression"} | options
    return fit(X, y, *more, **options)


@pytest.mark.parametrize(
    "options, epsilon",
    [({"loss": "epsilon_insensitive", "epsilon": 1.5}, 1.5), ({"loss": "absolute"}, 0.0)],
)
def test_a_tube_is_scikit_learns_svr(numbers, options, epsilon):
    X, y = numbers.X, numbers.y
    model = regression(X, y, **options)
    oracle = SVR(C=10, gamma=0.1, epsilon=epsilon, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict(X), oracle.predict(X), atol=2e-2)
    info, coef = model.info, model.model.coef[:, 0]
    assert 0 <= info["gap"] <= 1e-9 * info["objective"] and info["loss"] == options["loss"]
    norm = np.sqrt(coef @ rbf_kernel(model.model.support, gamma=0.1) @ coef)
    assert info["norm"] == pytest.approx(norm, rel=1e-6)
    sums = np.maximum(0, np.abs(model.predict(X) - y) - epsilon).sum()
    assert info["objective"] == pytest.approx(0.05 * norm**2 + sums, rel=1e-6)


@pytest.mark.slow
def test_without_bias_it_has_none(numbers):
    X, y = numbers.X, numbers.y
    model = regression(X, y, bias=False, epsilon=2.0)
    assert model.model.intercept == [0.0]
    assert model.info["objective"] > regression(X, y, epsilon=2.0).info["objective"]


def test_a_saved_regression_keeps_its_tube(numbers, reloaded):
    X, y = numbers.X, numbers.y
    model = regression(X, y, epsilon=0.7)
    again = reloaded(model, X)
    assert again.loss.epsilon == 0.7 and again.method == model.method


# ------------------------------------------------------------------ counts


SMALL = {"rf": {"n_features": 64}, "sparse-rf": {"n_features": 64}, "r-sdca": {"n_features": 64}}
NAMES = ("kernel", "nystrom", "rf", "sparse-rf", "r-sdca", "doubly-sgd", "norma")
COUNTS = ("additive-chi2", "skewed-chi2", "hamming")


@pytest.fixture(scope="module")
def counts():
    """Rows of counts, and a class that depends on four of their sums."""
    X = np.random.default_rng(0).poisson(2.0, (300, 6)).astype(float)
    return SimpleNamespace(X=X, y=np.where(X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3], 1.0, -1.0))


def create(name, kernel, **more):
    return methods.create(name, task="binary", kernel=kernel, **(SMALL.get(name, {}) | more))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [*COUNTS, "rational-quadratic", "multiscale", "polynomial-2"])
@pytest.mark.parametrize("name", NAMES)
def test_learns_counts_and_loads(name, kernel, reloaded, counts):
    given = {"metric": "none"} | ({} if kernel in COUNTS else {"scaling": "standard"})
    gamma = {} if kernel in COUNTS[:2] else {"gamma": 0.05}
    model = create(name, kernel, **given, **gamma).fit(counts.X, counts.y)
    assert np.mean(model.predict(counts.X) != counts.y) < (0.3 if kernel == "hamming" else 0.12)
    expected = model.decision_function(counts.X)
    atol = 1e-5 * max(1.0, np.abs(expected).max())
    found = reloaded(model, counts.X, atol).decision_function(sp.csr_matrix(counts.X))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", COUNTS)
def test_counts_and_codes_are_not_scaled_by_default(kernel, counts):
    for name in ("rf", "kernel", "doubly-sgd"):
        settings = create(name, kernel).method
        assert (settings.scaling, settings.metric) == ("none", "none")
        assert create(name, kernel, scaling="minmax01").method.scaling == "minmax01"
        with pytest.raises(UsageError, match=f"--metric is diagonal, but kernel {kernel} is for"):
            create(name, kernel, metric="diagonal")
    chosen = create("rf", kernel, scaling="auto").fit(counts.X, counts.y)
    assert chosen.preprocessing.scaler.kind in kernels.get_kernel(kernel).scalings
    with pytest.raises(UsageError, match=f"--kernel is '?{kernel}"):
        create("rfm", kernel)


@pytest.mark.parametrize("name", ["kernel", "nystrom", "rf", "r-sdca", "norma"])
@pytest.mark.parametrize("kernel", ["additive-chi2", "skewed-chi2"])
def test_inputs_out_of_the_domain_are_refused_in_training_and_prediction(name, kernel, counts):
    wrong = counts.X.copy()
    wrong[7, 2] = -50.0
    message = f"kernel {kernel} is for inputs .*, but one is -50 after scaling"
    given = {"skewedness": 3.0} if kernel == "skewed-chi2" else {}
    with pytest.raises(DataError, match=message):
        create(name, kernel, **given).fit(wrong, counts.y)
    with pytest.raises(DataError, match=message):
        create(name, kernel, **given).fit(counts.X, counts.y).predict(wrong)
    with pytest.raises(DataError, match=f"kernel {kernel} is for inputs"):
        standard = create(name, kernel, scaling="standard", **(given and {"skewedness": 0.5}))
        standard.fit(counts.X, counts.y)


@pytest.mark.parametrize("gamma", ["median", "tuned", "loo", "validation"])
@pytest.mark.parametrize("name", ["rf", "kernel"])
def test_options_of_a_kernel_count_where_its_bandwidth_is_chosen(name, gamma, counts):
    found = {
        alpha: create(
            name,
            "rational-quadratic",
            gamma=gamma,
            scaling="standard",
            metric="none",
            rq_alpha=alpha,
        )
        .fit(counts.X, counts.y)
        .info
        for alpha in (0.02, 50.0)
    }
    for alpha, info in found.items():
        assert info["kernel_params"]["rq_alpha"] == alpha
    if gamma != "median":
        tried = [info["validation"][0]["tried"] for info in found.values()]
        assert tried[0] != tried[1]


def test_the_sketch_is_the_default_of_polynomial_kernels(tmp_path, counts):
    for name in ("rf", "sparse-rf", "lkrf", "r-sdca", "doubly-sgd"):
        for kernel, variant in (("polynomial-2", "sketch"), ("exponential", "signs")):
            assert methods.create(name, kernel=kernel).method.features == variant
        assert methods.create(name, kernel="gaussian").method.features == "offset"
    given = {"gamma": 0.1, "lam": 1.0, "scaling": "standard"}
    default, sketch, signs = (
        create("rf", "polynomial-2", **given, **more)
        .fit(counts.X, counts.y)
        .decision_function(counts.X)
        for more in ({}, {"features": "sketch"}, {"features": "signs"})
    )
    np.testing.assert_array_equal(default, sketch)
    assert np.abs(default - signs).max() > 1e-3
    with pytest.raises(UsageError, match="--features is sketch, which is for the kernels polynomi"):
        create("rf", "exponential", features="sketch")
