"""Independent blocks: the partition, exact problems in memory, the method. Nystrom features: the
kernel that landmarks determine, their choice, the method; ridge regression on classes, by each
method.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env, kernels, losses, methods
from rfx.errors import UsageError
from rfx.features.nystrom import NystromMap, choose_landmarks, rpcholesky
from rfx.features.partition import Partition, uniform_blocks
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.kernel import solve_kernel_dense
from rfx.solvers.l2 import solve_l2

GAMMA = {"gamma": 2.0}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(0, 1, (400, 4))


@pytest.fixture(scope="module")
def values(X):
    """Targets of a regression on X."""
    return np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.fixture(scope="module")
def labels(values):
    """Two classes of X."""
    return np.where(values > 0.3, 1.0, -1.0)


@pytest.mark.parametrize(
    ("rows", "size"), [(400, 400), (400, 399), (400, 70), (400, 7), (400, 1), (1, 5), (37, 10)]
)
def test_blocks_are_of_equal_size_and_hold_every_row(rows, size, X):
    partition, blocks = Partition.fit(X[:rows], size, 0)
    assert len(blocks) == partition.n_blocks == -(-rows // size)
    for made in (blocks, uniform_blocks(rows, size, 0)):
        assert np.array_equal(np.sort(np.concatenate(made)), np.arange(rows))
        sizes = [len(block) for block in made]
        assert max(sizes) <= size and max(sizes) - min(sizes) <= 1
    # placing the training rows again gives their blocks
    for placed, block in zip(partition.place(X[:rows]), blocks, strict=True):
        assert np.array_equal(placed, block)


def test_blocks_are_parts_of_the_inputs(X):
    partition, blocks = Partition.fit(X, 50, 0)
    spread = np.mean([X[block].std(axis=0).mean() for block in blocks])
    assert spread < 0.85 * np.mean(
        [X[block].std(axis=0).mean() for block in uniform_blocks(400, 50, 0)]
    )
    other = Partition.fit(X, 50, 1)[1]
    assert any(not np.array_equal(a, b) for a, b in zip(blocks, other))
    # the block of a row depends neither on the rows placed with it nor on its storage
    alone = np.concatenate(
        [[b for b, rows in enumerate(partition.place(row[None])) if len(rows)] for row in X[:60]]
    )
    together = partition.place(sp.csr_matrix(X))
    assert all(i in together[b] for i, b in enumerate(alone))


def test_rows_that_no_hyperplane_tells_apart(X):
    rows = np.repeat(X[:2], 50, axis=0)
    partition, blocks = Partition.fit(rows, 10, 0)
    assert [len(block) for block in blocks] == [10] * 10
    placed = partition.place(X[:1])
    assert sum(map(len, placed)) == 1
    method = methods.create("block", block_size=10, lam=1e-6, gamma=1.0).fit(
        rows, np.repeat([3.0, 5.0], 50)
    )
    np.testing.assert_allclose(method.predict(X[:2]), [3, 5], atol=1e-4)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("name", ["squared", "squared_hinge", "logistic"])
def test_dense_solutions_agree_with_the_linear_solver(name, lam, X, labels):
    K, loss = kernels.block("laplacian", X, X, GAMMA), losses.get_loss(name)
    solution = solve_kernel_dense(K, labels[:, None], lam, loss, Budget(tol=1e-9))
    assert solution.converged and -1e-12 <= solution.gap <= 1e-9 * solution.objective
    expected = solve_l2(DenseMatrix(np.linalg.cholesky(K)), labels, lam, loss, Budget(tol=1e-10))
    assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
    f = K @ solution.coef[:, 0]
    value = 0.5 * lam * solution.coef[:, 0] @ f + loss.value(f, labels).sum()
    assert solution.objective == pytest.approx(value, rel=1e-9)


def test_a_lambda_below_the_rounding_is_refused(labels):
    with pytest.raises(UsageError, match="lambda is 1e-30, below the rounding"):
        solve_kernel_dense(np.ones((400, 400)), labels[:, None], 1e-30, losses.Squared)


def block(**more):
    return methods.create(
        "block",
        **(
            {"kernel": "laplacian", "gamma": 2.0, "block_size": 70, "lam": 0.1, "scaling": "none"}
            | more
        ),
    )


@pytest.mark.parametrize("partition", ["hyperplanes", "uniform"])
def test_predictions_are_those_of_the_dense_reference(partition, X, values):
    train, test, expected = X[:300], X[300:], np.zeros(100)
    fixed, blocks = Partition.fit(train, 70, 0)
    placed = fixed.place(test)
    if partition == "uniform":
        blocks = uniform_blocks(300, 70, 0)
        placed = [np.arange(100)] * len(blocks)
    for rows, own in zip(blocks, placed):
        K = kernels.block("laplacian", train[rows], train[rows], GAMMA)
        coef = np.linalg.solve(K + 0.1 * np.eye(len(rows)), values[rows])
        expected[own] += kernels.block("laplacian", test[own], train[rows], GAMMA) @ coef
    expected /= len(blocks) if partition == "uniform" else 1
    method = block(partition=partition, target_scaling="none").fit(train, values[:300])
    np.testing.assert_allclose(method.predict(test), expected, atol=1e-10)
    assert method.info["n_blocks"] == 5 and method.info["model_size"] == 300


@pytest.mark.parametrize("partition", ["hyperplanes", "uniform"])
@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_one_block_is_the_exact_machine(loss, partition, X, labels):
    more = {} if loss == "squared" else {"bias": False}
    exact = methods.create(
        "kernel",
        kernel="laplacian",
        gamma=2.0,
        lam=0.1,
        scaling="none",
        loss=loss,
        tol=1e-7,
        **more,
    )
    exact = exact.fit(X[:300], labels[:300])
    ours = block(block_size=300, loss=loss, partition=partition).fit(X[:300], labels[:300])
    np.testing.assert_allclose(
        ours.decision_function(X[300:]), exact.decision_function(X[300:]), atol=2e-3
    )
    assert ours.info["objective"] == pytest.approx(exact.info["objective"], rel=1e-5)
    assert ours.info["n_blocks"] == 1


@pytest.mark.parametrize("partition", ["hyperplanes", "uniform"])
@pytest.mark.parametrize(
    ("loss", "tol"), [("squared_hinge", 1e-6), ("logistic", 1e-6), ("squared", 1e-10)]
)
def test_liblinear_solves_the_same_problem(loss, tol, partition, reloaded, X, labels):
    ours, theirs = (
        block(loss=loss, partition=partition, **more).fit(X[:300], labels[:300])
        for more in ({"tol": 1e-8}, {"solver": "liblinear", "tol": tol})
    )
    assert theirs.info["objective"] == pytest.approx(ours.info["objective"], rel=1e-4)
    assert -1e-9 <= theirs.info["gap"] <= 1e-3 * theirs.info["objective"]
    np.testing.assert_allclose(
        reloaded(theirs, X[300:]).decision_function(X), ours.decision_function(X), atol=0.02
    )


@pytest.mark.slow
def test_liblinear_on_several_classes_blocks_of_one_class_and_rows_that_are_the_same(X, values):
    y = np.digitize(values, [0.0, 0.8]) + 4.0
    rows, twice = np.repeat(X[:100], 2, axis=0), np.repeat(y[:100], 2)
    ours, theirs = (
        block(loss="logistic", block_size=20, solver=solver, tol=1e-6).fit(rows, twice)
        for solver in ("rfx", "liblinear")
    )
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=0.02)


def test_rows_without_a_weight_are_not_in_the_model(reloaded, X):
    # far from the margin, no row has a coefficient under the squared hinge
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    options = {"loss": "squared_hinge", "lam": 1e-4, "kernel": "linear", "gamma": None}
    method = block(**options, block_size=100, tol=1e-12).fit(X - 0.5, y)
    size = method.info["model_size"]
    assert size == len(method.model.coef) == method.model.starts[-1] < 400
    assert np.mean(reloaded(method, X - 0.5).predict(X - 0.5) == y) > 0.97
    assert not reloaded(block().fit(X, np.zeros(400)), X).predict(X).any()


def test_sparse_rows_and_threads_change_nothing(reloaded, X, values, labels):
    rows, made = sp.csr_matrix(np.where(X > 0.4, X, 0.0)), []
    for threads, part in ((1, rows), (2, rows), (2, rows.toarray())):
        env.set_threads(threads)
        made.append(block(loss="squared_hinge").fit(part, labels).decision_function(part))
    np.testing.assert_allclose(made[1:], [made[0]] * 2, atol=1e-12)
    assert sp.issparse(reloaded(block().fit(rows, values), rows).model.support)


def test_the_time_limit_ends_it(X, values):
    late = block(block_size=2, timeout=1e-9, target_scaling="none").fit(X, values)
    assert not late.info["converged"] and late.info["model_size"] == 0
    assert late.info["gap"] == late.info["objective"] == pytest.approx(0.5 * np.sum(values**2))


OF_KERNELS = ["gaussian", "laplacian", "laplacian-l2", "perceptron", "stump", "linear"]
WAYS = ["uniform", "kmeans", "rpcholesky"]


def problem(kernel, rows):
    params = kernels.parameters(
        kernel, rows, 2.0 if "gamma" in kernels.get_kernel(kernel).parameters else None
    )
    return params, kernels.block(kernel, rows, rows, params, dtype=np.float64)


def landmarks(how, count, rows, kernel="laplacian", seed=0, memory=1000.0):
    return choose_landmarks(how, kernel, rows, problem(kernel, rows)[0], count, seed, memory)


@pytest.mark.parametrize("kernel", OF_KERNELS)
def test_products_are_the_nystrom_approximation(kernel, X):
    params, _ = problem(kernel, X)
    chosen = X[::10]
    cross, own = (
        kernels.block(kernel, X, chosen, params),
        kernels.block(kernel, chosen, chosen, params),
    )
    expected = cross @ np.linalg.pinv(own, rcond=1e-12, hermitian=True) @ cross.T
    Z = NystromMap(kernel, chosen, params, np.float64).transform(X)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-8)


@pytest.mark.parametrize("kernel", OF_KERNELS)
def test_all_rows_as_landmarks_give_the_kernel(kernel, X):
    params, K = problem(kernel, X)
    feature_map = NystromMap(kernel, landmarks("uniform", 1000, X, kernel), params, np.float64)
    Z = feature_map.transform(X)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)
    assert feature_map.n_features == (4 if kernel == "linear" else 400)


def mean_error(kernel, how, count, rows):
    """The mean trace of the error of the kernel over ten choices of landmarks."""
    (params, K), errors = problem(kernel, rows), []
    for seed in range(10):
        chosen = landmarks(how, count, rows, kernel, seed)
        Z = NystromMap(kernel, chosen, params, np.float64).transform(rows)
        errors.append(np.trace(K) - np.sum(Z**2))
    return np.mean(errors)


def test_random_pivots_and_centres_are_better_than_uniform_rows(rng, X):
    # few rows are far from the others: uniform sampling misses them
    rows = np.vstack([rng.normal(0, 0.05, (380, 3)), rng.normal(0, 1, (20, 3))])
    errors = {how: mean_error("gaussian", how, 20, rows) for how in WAYS}
    assert errors["rpcholesky"] < 0.5 * errors["uniform"]
    assert errors["kmeans"] < errors["uniform"]
    plain = {how: mean_error("laplacian", how, 40, X) for how in ("rpcholesky", "uniform")}
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
def test_more_landmarks_keep_the_earlier_ones(how, X):
    few, many = landmarks(how, 30, X), landmarks(how, 200, X)
    assert np.array_equal(many[:30], few)
    assert not np.array_equal(few, landmarks(how, 30, X, seed=1))


def test_pivots_of_a_part_of_the_rows_where_memory_is_short(X):
    chosen = landmarks("rpcholesky", 10, X, memory=0.001)
    assert chosen.shape == (10, 4) and all((X == row).all(axis=1).any() for row in chosen)


@pytest.mark.parametrize("how", WAYS)
def test_repeated_rows(how, X, values):
    rows = np.repeat(X[:15], 20, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = landmarks(how, 40, rows, "gaussian")
    params, K = problem("gaussian", rows)
    feature_map = NystromMap("gaussian", chosen, params, np.float64)
    Z = feature_map.transform(rows)
    assert feature_map.n_features <= 15 and np.isfinite(Z).all()
    if how == "rpcholesky":
        assert len(chosen) == 15
        np.testing.assert_allclose(Z @ Z.T, K, atol=1e-9)
    method = methods.create(
        "nystrom", landmarks=how, n_features=40, gamma=2.0, dtype="float64"
    ).fit(rows, np.repeat(values[:15], 20))
    assert method.info["converged"] and method.info["rank"] <= 15


def test_nearly_dependent_landmarks(rng, X):
    rows = np.vstack([X[:30], X[:30] + 1e-9])
    params, K = problem("gaussian", rows)
    feature_map = NystromMap("gaussian", rows, params, np.float64)
    Z = feature_map.transform(rows)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-9)
    weights = rng.standard_normal((feature_map.n_features, 2))
    folded = kernels.block("gaussian", rows, feature_map.landmarks, params) @ feature_map.fold(
        weights
    )
    np.testing.assert_allclose(folded, Z @ weights, atol=1e-6)


def test_what_a_matrix_asks_of_a_map(rng, X):
    params, _ = problem("laplacian", X)
    whole = NystromMap("laplacian", X[:90], params, np.float64)
    Z = whole.transform(X)
    columns = np.array([3, 70, 0, 17])
    np.testing.assert_allclose(whole.select(columns).transform(X), Z[:, columns], atol=1e-12)
    np.testing.assert_allclose(
        whole.select(columns).select([2, 0]).transform(X), Z[:, [0, 3]], atol=1e-12
    )
    assert whole.select(slice(0, 0)).transform(X).shape == (400, 0)
    weights = rng.standard_normal((4, 1))
    full = np.zeros((90, 1))
    full[columns] = weights
    np.testing.assert_allclose(whole.select(columns).fold(weights), whole.fold(full))
    short = NystromMap("laplacian", X[:90], params)
    assert short.transform(X).dtype == np.float32
    np.testing.assert_allclose(short.transform(X), Z, atol=1e-6)
    for features in (MapMatrix(whole, X, block=37), MapMatrix(whole, sp.csr_matrix(X), block=256)):
        np.testing.assert_allclose(features.matvec(np.arange(90.0)), Z @ np.arange(90.0), rtol=1e-9)
    assert sum(part.shape[1] for _, part in MapMatrix(whole, X).column_blocks(40)) == 90


@pytest.mark.parametrize("how", WAYS)
def test_threads_change_nothing(how, by_threads, rng):
    rows = rng.uniform(0, 1, (3000, 4))

    def made():
        chosen = choose_landmarks(how, "laplacian", rows, {"gamma": 2.0}, 150, 3, 1000.0)
        return NystromMap("laplacian", chosen, {"gamma": 2.0}).transform(rows)

    assert np.array_equal(*by_threads(made))


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
def test_nystrom_predictions_are_those_of_the_dense_reference(how, dtype, atol, X, values):
    given = {"kernel": "laplacian", "gamma": 2.0, "lam": 0.1, "dtype": dtype, "tol": 1e-12}
    given |= {"landmarks": how, "n_features": 50, "scaling": "none", "target_scaling": "none"}
    method = methods.create("nystrom", **given).fit(X[:300], values[:300])
    rows = X[:300].astype(dtype)
    chosen = choose_landmarks(how, "laplacian", rows, {"gamma": 2.0}, 50, 0, 1000.0)
    chosen = chosen.astype(np.float64)
    expected = dense_reference(X[:300], X[300:], values[:300], chosen, 0.1, 2.0)
    np.testing.assert_allclose(method.predict(X[300:]), expected, atol=atol)
    assert method.info["rank"] == method.info["model_size"] == 50


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_features_that_do_not_fit_in_memory_are_made_anew(loss, rng):
    rows = rng.uniform(0, 1, (3000, 4))
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


@pytest.mark.parametrize("targets", ["values", "labels"])
def test_a_kernel_that_is_zero_everywhere_predicts_zero(targets, request, reloaded, X):
    y = request.getfixturevalue(targets)
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
def test_ridge_on_classes(name, classes, X, values, labels):
    y = labels if classes == 2 else np.digitize(values, [0.0, 0.8]) + 4.0
    own = {"loss": "squared", "lam": 0.01, "kernel": "laplacian", **SMALL[name]}
    method = methods.create(name.split()[0], **own).fit(X[:300], y[:300])
    assert method.info["loss"] == "squared" and method.info["converged"]
    assert method.score(X[300:], y[300:]).score > 0.85
    targets = np.where(y[:300, None] == np.unique(y), 1.0, -1.0)
    decision = method.decision_function(X[:300]).reshape(300, -1)
    # the decision values are least-squares fits of the targets +-1, without a margin
    assert np.mean((decision - targets[:, -decision.shape[1] :]) ** 2) < 0.35


@pytest.mark.parametrize("name", ["kernel", "block"])
def test_ridge_on_classes_is_one_regression_for_each(name, X, values):
    y, own = np.digitize(values, [0.0, 0.8]) + 4.0, {"lam": 0.01, "kernel": "laplacian"}
    whole = methods.create(name, loss="squared", **own, **SMALL[name]).fit(X[:300], y[:300])
    own |= {"task": "regression", "target_scaling": "none"}
    for k, label in enumerate(np.unique(y)):
        targets = np.where(y[:300] == label, 1.0, -1.0)
        alone = methods.create(name, **own, **SMALL[name]).fit(X[:300], targets)
        expected = alone.decision_function(X[300:])
        np.testing.assert_allclose(whole.decision_function(X[300:])[:, k], expected, atol=1e-6)
