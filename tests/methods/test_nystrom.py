"""Nystrom features: the kernel that landmarks determine, their choice, the method; ridge regression
on classes, by each method.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env, kernels, methods
from rfx.errors import DataError
from rfx.features.nystrom import NystromMap, choose_landmarks, rpcholesky
from rfx.operators.mapped import MapMatrix

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (400, 4))
VALUES = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.where(VALUES > 0.3, 1.0, -1.0)
KERNELS = ["gaussian", "laplacian", "laplacian-l2", "perceptron", "stump", "linear"]
WAYS = ["uniform", "kmeans", "rpcholesky"]


def problem(kernel, rows=X):
    params = kernels.parameters(
        kernel, rows, 2.0 if "gamma" in kernels.get_kernel(kernel).parameters else None
    )
    return params, kernels.block(kernel, rows, rows, params, dtype=np.float64)


def landmarks(how, count, kernel="laplacian", rows=X, seed=0, memory=1000.0):
    return choose_landmarks(how, kernel, rows, problem(kernel, rows)[0], count, seed, memory)


def trace_error(kernel, chosen, rows=X):
    params, K = problem(kernel, rows)
    Z = NystromMap(kernel, chosen, params, np.float64).transform(rows)
    return float(np.trace(K) - np.sum(Z**2))


@pytest.mark.parametrize("kernel", KERNELS)
def test_products_are_the_nystrom_approximation(kernel):
    params, _ = problem(kernel)
    chosen = X[::10]
    cross, own = (
        kernels.block(kernel, X, chosen, params),
        kernels.block(kernel, chosen, chosen, params),
    )
    expected = cross @ np.linalg.pinv(own, rcond=1e-12, hermitian=True) @ cross.T
    Z = NystromMap(kernel, chosen, params, np.float64).transform(X)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_rows_as_landmarks_give_the_kernel(kernel):
    params, K = problem(kernel)
    feature_map = NystromMap(kernel, landmarks("uniform", 1000, kernel), params, np.float64)
    Z = feature_map.transform(X)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)
    assert feature_map.n_features == (4 if kernel == "linear" else 400)


def mean_error(kernel, how, count, rows=X, seeds=10):
    chosen = [landmarks(how, count, kernel, rows, seed) for seed in range(seeds)]
    return np.mean([trace_error(kernel, own, rows) for own in chosen])


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_error_falls_with_the_number_of_landmarks(kernel, how):
    errors = [mean_error(kernel, how, count, seeds=3) for count in (5, 20, 80)]
    assert errors[0] > 1.1 * errors[1] > 1.2 * errors[2] >= 0


def test_random_pivots_and_centres_are_better_than_uniform_rows():
    # few rows are far from the others: uniform sampling misses them
    rows = np.vstack([RNG.normal(0, 0.05, (380, 3)), RNG.normal(0, 1, (20, 3))])
    errors = {how: mean_error("gaussian", how, 20, rows) for how in WAYS}
    assert errors["rpcholesky"] < 0.5 * errors["uniform"]
    assert errors["kmeans"] < errors["uniform"]
    plain = {how: mean_error("laplacian", how, 40) for how in ("rpcholesky", "uniform")}
    assert plain["rpcholesky"] <= plain["uniform"]


def test_random_pivots_have_the_distribution_of_the_residual_diagonal():
    # K = diag(4, 2, 1) + ones in a block of two: the second pivot is never a row that the first one
    # explains
    rows = np.array([[2.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, np.sqrt(2), 0.0], [0.0, 0.0, 1.0]])
    pairs = [tuple(rpcholesky("linear", rows, {}, 2, seed)) for seed in range(4000)]
    assert all({0, 1} != set(pair) for pair in pairs)
    first = np.bincount([pair[0] for pair in pairs], minlength=4) / len(pairs)
    np.testing.assert_allclose(first, np.array([4, 4, 2, 1]) / 11, atol=0.03)
    # after row 0 or 1, rows 2 and 3 are drawn 2 to 1
    second = np.array([pair[1] for pair in pairs if pair[0] < 2])
    assert np.mean(second == 2) == pytest.approx(2 / 3, abs=0.04)
    assert len(rpcholesky("linear", rows, {}, 4, 0)) == 3


@pytest.mark.parametrize("how", ["uniform", "rpcholesky"])
def test_more_landmarks_keep_the_earlier_ones(how):
    few, many = landmarks(how, 30), landmarks(how, 200)
    assert np.array_equal(many[:30], few)
    assert not np.array_equal(few, landmarks(how, 30, seed=1))


def test_pivots_of_a_part_of_the_rows_where_memory_is_short():
    chosen = landmarks("rpcholesky", 10, memory=0.001)
    assert chosen.shape == (10, 4) and all((X == row).all(axis=1).any() for row in chosen)


@pytest.mark.parametrize("how", WAYS)
def test_repeated_rows(how):
    rows = np.repeat(X[:15], 20, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = landmarks(how, 40, "gaussian", rows)
    params, K = problem("gaussian", rows)
    feature_map = NystromMap("gaussian", chosen, params, np.float64)
    Z = feature_map.transform(rows)
    assert feature_map.n_features <= 15 and np.isfinite(Z).all()
    if how == "rpcholesky":
        assert len(chosen) == 15
        np.testing.assert_allclose(Z @ Z.T, K, atol=1e-9)
    method = methods.create(
        "nystrom", landmarks=how, n_features=40, gamma=2.0, dtype="float64"
    ).fit(rows, np.repeat(VALUES[:15], 20))
    assert method.info["converged"] and method.info["rank"] <= 15


def test_nearly_dependent_landmarks():
    rows = np.vstack([X[:30], X[:30] + 1e-9])
    params, K = problem("gaussian", rows)
    feature_map = NystromMap("gaussian", rows, params, np.float64)
    Z = feature_map.transform(rows)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-9)
    weights = RNG.standard_normal((feature_map.n_features, 2))
    folded = kernels.block("gaussian", rows, feature_map.landmarks, params) @ feature_map.fold(
        weights
    )
    np.testing.assert_allclose(folded, Z @ weights, atol=1e-6)


def test_what_a_matrix_asks_of_a_map():
    params, _ = problem("laplacian")
    whole = NystromMap("laplacian", X[:90], params, np.float64)
    Z = whole.transform(X)
    columns = np.array([3, 70, 0, 17])
    np.testing.assert_allclose(whole.select(columns).transform(X), Z[:, columns], atol=1e-12)
    np.testing.assert_allclose(
        whole.select(columns).select([2, 0]).transform(X), Z[:, [0, 3]], atol=1e-12
    )
    assert whole.select(slice(0, 0)).transform(X).shape == (400, 0)
    weights = RNG.standard_normal((4, 1))
    full = np.zeros((90, 1))
    full[columns] = weights
    np.testing.assert_allclose(whole.select(columns).fold(weights), whole.fold(full))
    short = NystromMap("laplacian", X[:90], params)
    assert short.transform(X).dtype == np.float32
    np.testing.assert_allclose(short.transform(X), Z, atol=1e-6)
    for features in (MapMatrix(whole, X, block=37), MapMatrix(whole, sp.csr_matrix(X), block=256)):
        np.testing.assert_allclose(features.matvec(np.arange(90.0)), Z @ np.arange(90.0), rtol=1e-9)
    assert sum(part.shape[1] for _, part in MapMatrix(whole, X).column_blocks(40)) == 90
    with pytest.raises(DataError, match="have 3 features, but the map was made for 4"):
        whole.transform(X[:, :3])


@pytest.mark.parametrize("how", WAYS)
def test_threads_change_nothing(how):
    rows, made = RNG.uniform(0, 1, (3000, 4)), []
    for threads in (1, 2):
        env.set_threads(threads)
        chosen = choose_landmarks(how, "laplacian", rows, {"gamma": 2.0}, 150, 3, 1000.0)
        features = NystromMap("laplacian", chosen, {"gamma": 2.0}).transform(rows)
        made.append(np.vstack([chosen, features[:, :4]]))
    assert np.array_equal(*made)


def dense_reference(train, test, Y, chosen, lam, gamma):
    """Predictions of ridge regression on K_nm K_mm^(-1/2), all in float64 by numpy."""
    params = {"gamma": gamma}
    own = kernels.block("laplacian", chosen, chosen, params)
    values, vectors = np.linalg.eigh(own)
    root = (vectors / np.sqrt(values)) @ vectors.T
    Z, T = (kernels.block("laplacian", rows, chosen, params) @ root for rows in (train, test))
    return T @ np.linalg.solve(Z.T @ Z + lam * np.eye(len(chosen)), Z.T @ Y)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-7), ("float32", 1e-3)])
def test_predictions_are_those_of_the_dense_reference(how, dtype, atol):
    given = {"kernel": "laplacian", "gamma": 2.0, "lam": 0.1, "dtype": dtype, "tol": 1e-12}
    given |= {"landmarks": how, "n_features": 50, "scaling": "none", "target_scaling": "none"}
    method = methods.create("nystrom", **given).fit(X[:300], VALUES[:300])
    rows = X[:300].astype(dtype)
    chosen = choose_landmarks(how, "laplacian", rows, {"gamma": 2.0}, 50, 0, 1000.0)
    chosen = chosen.astype(np.float64)
    expected = dense_reference(X[:300], X[300:], VALUES[:300], chosen, 0.1, 2.0)
    np.testing.assert_allclose(method.predict(X[300:]), expected, atol=atol)
    assert method.info["rank"] == method.info["model_size"] == 50


@pytest.mark.parametrize(("loss", "bias"), [("squared", {}), ("squared_hinge", {"bias": False})])
def test_all_rows_as_landmarks_are_the_exact_machine(loss, bias):
    own = {"kernel": "laplacian", "gamma": 2.0, "lam": 0.1, "tol": 1e-7, "loss": loss}
    exact = methods.create("kernel", **own, **bias).fit(X[:300], LABELS[:300])
    ours = methods.create("nystrom", n_features=300, dtype="float64", **own)
    ours = ours.fit(X[:300], LABELS[:300])
    expected = exact.decision_function(X[300:])
    np.testing.assert_allclose(ours.decision_function(X[300:]), expected, atol=2e-3)
    assert ours.info["objective"] == pytest.approx(exact.info["objective"], rel=1e-5)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_features_that_do_not_fit_in_memory_are_made_anew(loss):
    rows = RNG.uniform(0, 1, (3000, 4))
    y = np.where(rows[:, 0] * rows[:, 1] > 0.3, 1.0, -1.0)
    common = {
        "n_features": 150,
        "gamma": 2.0,
        "lam": 0.1,
        "loss": loss,
        "tol": 1e-6,
        "dtype": "float64",
    }
    kept, anew = (
        methods.create("nystrom", max_memory=memory, **common).fit(rows, y) for memory in (500, 2)
    )
    assert anew.info["converged"] and anew.info["objective"] == pytest.approx(
        kept.info["objective"], rel=2e-6
    )
    np.testing.assert_allclose(
        anew.decision_function(rows), kept.decision_function(rows), atol=2e-2
    )


@pytest.mark.parametrize("how", WAYS)
def test_a_model_of_sparse_rows_is_sparse(how, reloaded):
    rows = sp.random(300, 50, density=0.1, format="csr", random_state=0)
    y = np.where(np.asarray(rows[:, :25].sum(axis=1)).ravel() > 1.2, 1.0, 2.0)
    method = methods.create(
        "nystrom", landmarks=how, n_features=60, scaling="none", metric="diagonal"
    )
    method = method.fit(rows, y)
    again, expected = reloaded(method, rows), method.decision_function(rows)
    assert sp.issparse(again.model.support)
    np.testing.assert_allclose(again.decision_function(rows.toarray()), expected, atol=1e-8)


@pytest.mark.parametrize("y", [VALUES, LABELS])
def test_a_kernel_that_is_zero_everywhere_predicts_zero(y, reloaded):
    options = {"scaling": "none", "target_scaling": "none", "task": "regression"}
    method = methods.create("nystrom", kernel="linear", **options).fit(np.zeros((400, 3)), y)
    assert method.info["rank"] == 0
    assert not reloaded(method, X[:, :3]).predict(X[:, :3]).any()


SMALL = {
    "kernel": {"gamma": 2.0},
    "rf": {"gamma": 2.0, "n_features": 400},
    "rf by cg": {"gamma": 2.0, "n_features": 400, "solver": "cg"},
    "nystrom": {"gamma": 2.0, "n_features": 100},
    "nystrom by cg": {"gamma": 2.0, "n_features": 100, "solver": "cg"},
    "block": {"gamma": 2.0, "block_size": 90},
    "rb": {"n_grids": 100},
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", list(SMALL))
def test_ridge_on_classes(name, classes):
    y = LABELS if classes == 2 else np.digitize(VALUES, [0.0, 0.8]) + 4.0
    own = {"loss": "squared", "lam": 0.01, "kernel": "laplacian", **SMALL[name]}
    method = methods.create(name.split()[0], **own).fit(X[:300], y[:300])
    assert method.info["loss"] == "squared" and method.info["converged"]
    assert method.score(X[300:], y[300:])["score"] > 0.85
    targets = np.where(y[:300, None] == np.unique(y), 1.0, -1.0)
    decision = method.decision_function(X[:300]).reshape(300, -1)
    # the decision values are least-squares fits of the targets +-1, without a margin
    assert np.mean((decision - targets[:, -decision.shape[1] :]) ** 2) < 0.35


@pytest.mark.parametrize("name", ["kernel", "block"])
def test_ridge_on_classes_is_one_regression_for_each(name):
    y, own = np.digitize(VALUES, [0.0, 0.8]) + 4.0, {"lam": 0.01, "kernel": "laplacian"}
    whole = methods.create(name, loss="squared", **own, **SMALL[name]).fit(X[:300], y[:300])
    own |= {"task": "regression", "target_scaling": "none"}
    for k, label in enumerate(np.unique(y)):
        targets = np.where(y[:300] == label, 1.0, -1.0)
        alone = methods.create(name, **own, **SMALL[name]).fit(X[:300], targets)
        expected = alone.decision_function(X[300:])
        np.testing.assert_allclose(whole.decision_function(X[300:])[:, k], expected, atol=1e-6)
