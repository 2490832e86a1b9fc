"""rb and sparse-rb: solvers against dense references, certificates, methods on small data."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

from rfx import losses, methods
from rfx.errors import UsageError
from rfx.features.binning import WIDTHS, sample_grids
from rfx.fitting.held_out import Splitter
from rfx.operators.binned import BinnedMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget, line_minimum
from rfx.solvers.l1.bins import _epoch, solve_rb_l1
from rfx.solvers.l1.newton import l1_certificate, lambda_max, solve_l1
from rfx.solvers.l2 import l2_certificate, solve_dual_l2, solve_dual_ridge, solve_l2


def numbered(rows, n_grids=60, gamma=2.0):
    ids, bins = sample_grids("laplacian", rows.shape[1], n_grids, 0, gamma=gamma).number(rows)
    return BinnedMatrix(ids, bins.starts)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(0, 1, (400, 3))


@pytest.fixture(scope="module")
def values(X):
    """Targets of a regression on X."""
    return np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.fixture(scope="module")
def labels(values):
    """Two classes of X."""
    return np.where(values > 0.3, 1.0, -1.0)


@pytest.fixture(scope="module")
def Z(X):
    """The bins of X."""
    return numbered(X)


@pytest.fixture(scope="module")
def dense(Z):
    """Z as an array."""
    return Z.to_array()


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
def test_ridge_agrees_with_a_direct_solution(lam, values, labels, Z, dense):
    Y = np.column_stack([values, labels, 3 + values])
    solution = solve_dual_ridge(Z, Y, lam, budget=Budget(tol=1e-12))
    expected = dense.T @ np.linalg.solve(dense @ dense.T + lam * np.eye(400), Y)
    np.testing.assert_allclose(solution.coef, expected, atol=1e-5)
    certificates = [
        l2_certificate(DenseMatrix(dense), y, w, lam, losses.Squared)
        for y, w in zip(Y.T, solution.coef.T)
    ]
    assert solution.objective == pytest.approx(
        sum(objective for objective, _ in certificates), rel=1e-9
    )
    assert solution.converged and solution.gap <= 1e-12 * solution.objective
    single = solve_dual_ridge(Z, Y[:, 0], lam, budget=Budget(tol=1e-12))
    np.testing.assert_allclose(single.coef, solution.coef[:, 0], atol=1e-5)


def test_ridge_certificate_bounds_the_distance_to_the_optimum(values, Z):
    best = solve_dual_ridge(Z, values, 0.1, budget=Budget(tol=1e-12)).objective
    for tol in (1e-1, 1e-2, 1e-3):
        solution = solve_dual_ridge(Z, values, 0.1, budget=Budget(tol=tol))
        assert 0 <= solution.objective - best <= solution.gap <= tol * solution.objective
    short = solve_dual_ridge(Z, values, 0.1, budget=Budget(tol=1e-12, max_iter=3))
    assert not short.converged and short.n_iter == 3
    assert short.gap > 1e-12 * short.objective


def test_line_minimum():
    f, change = np.array([0.5, -2.0]), np.array([1.0, 1.0])
    t = line_minimum(losses.Squared, f, change, np.zeros(2), -3.0, 2.0)
    assert t == pytest.approx((3.0 + 1.5) / 4)


def test_grid_update_is_sequential_coordinate_descent(rng, Z, dense):
    lam, w0 = 0.4, rng.standard_normal(Z.shape[1]) * (rng.random(Z.shape[1]) < 0.2)
    g, curvature = rng.standard_normal(Z.shape[1]), rng.random(400)
    diagonal = Z.squares(curvature)
    w, delta = w0.copy(), np.zeros(400)
    largest = int(np.diff(Z.starts).max())
    space = np.empty((2, largest)), np.empty(largest)
    for _ in range(3):
        _epoch(Z.ids, Z.starts, w, g, diagonal, curvature, delta, lam, Z.scale, *space)
    v, image = w0.copy(), np.zeros(400)
    for _ in range(3):
        for j in range(Z.shape[1]):
            column = dense[:, j]
            h = column @ (curvature * column)
            free = v[j] - (g[j] + column @ (curvature * image)) / h
            step = np.sign(free) * max(0.0, abs(free) - lam / h) - v[j]
            v[j] += step
            image += step * column
    np.testing.assert_allclose(w, v, atol=1e-12)
    np.testing.assert_allclose(delta, image, atol=1e-12)


@pytest.mark.parametrize("loss", [losses.SquaredHinge, losses.Logistic, losses.Squared])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_newton_agrees_with_the_dense_solver(loss, lam, labels, Z, dense):
    solution = solve_dual_l2(Z, labels, lam, loss, Budget(tol=1e-8))
    expected = solve_l2(DenseMatrix(dense), labels, lam, loss, Budget(tol=1e-9))
    assert solution.converged and 0 <= solution.gap <= 1e-8 * solution.objective
    assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
    objective, _ = l2_certificate(DenseMatrix(dense), labels, solution.coef, lam, loss)
    assert objective == pytest.approx(solution.objective, rel=1e-9)


def many_rows():
    """Features of 3,000 rows, and their labels."""
    rng = np.random.default_rng(4)
    features = numbered(rng.uniform(0, 1, (3000, 3)), 16)
    return features, np.where(rng.random(3000) < 0.4, 1.0, -1.0)


def few_passes(features, y, **more):
    return solve_rb_l1(features, y, 3.0, losses.SquaredHinge, Budget(max_iter=5), **more)


@pytest.mark.parametrize(
    "solve",
    [
        partial(solve_dual_ridge, lam=1.0),
        partial(solve_dual_l2, lam=1.0, loss=losses.SquaredHinge),
        few_passes,
        partial(few_passes, most_columns=100),
    ],
)
def test_solvers_are_the_same_for_any_number_of_threads(solve, by_threads):
    features, y = many_rows()
    one, two = by_threads(lambda: solve(features, y).coef)
    assert np.array_equal(one, two)


@pytest.mark.parametrize("many", [4000, 10])
@pytest.mark.parametrize("share", [0.3, 0.03, 0.005])
@pytest.mark.parametrize("loss", [losses.Squared, losses.SquaredHinge, losses.Logistic])
def test_l1_agrees_with_the_dense_solver(loss, share, many, values, labels, Z, dense):
    y = values if loss is losses.Squared else labels
    lam = share * lambda_max(Z, y, loss)
    solution = solve_rb_l1(Z, y, lam, loss, Budget(tol=1e-6), most_columns=many)
    by_grids = [entry["working"] == Z.shape[1] for entry in solution.trace]
    assert any(by_grids) == (many == 10) and solution.trace[-1]["iteration"] == solution.n_iter
    expected = solve_l1(DenseMatrix(dense), y, lam, loss, Budget(tol=1e-7))
    assert solution.converged and 0 <= solution.gap <= 1e-6 * solution.objective
    assert solution.objective == pytest.approx(expected.objective, rel=2e-6)
    f = dense @ solution.coef
    assert solution.objective == pytest.approx(
        lam * np.abs(solution.coef).sum() + loss.value(f, y).sum(), rel=1e-9
    )
    objective, gap, g = l1_certificate(Z, y, solution.coef, lam, loss)
    # the solver keeps the best dual value of all its steps
    assert (
        objective == pytest.approx(solution.objective)
        and solution.gap <= gap * (1 + 1e-6) + 1e-9 * objective
    )
    np.testing.assert_allclose(g, dense.T @ loss.derivative(f, y), atol=1e-9)
    again = solve_rb_l1(Z, y, lam, loss, Budget(tol=1e-6), warm=solution.coef, most_columns=many)
    assert again.n_iter == 0


def test_the_gram_of_bins_counts_weighted_meetings(rng, Z, dense):
    left, right = np.split(rng.permutation(Z.shape[1])[:200], [70])
    margin, changes = np.where(rng.random(400) < 0.4, 2.0, 0.0), rng.choice([-2.0, 0.0, 2.0], 400)
    for weights in (np.ones(400), margin, changes, rng.standard_normal(400), np.zeros(400)):
        square, rest = Z.gram(left, right, weights)
        weighted = weights[:, None] * dense
        np.testing.assert_allclose(square, dense[:, left].T @ weighted[:, left], atol=1e-12)
        np.testing.assert_allclose(rest, dense[:, left].T @ weighted[:, right], atol=1e-12)
        whole = Z.square(np.arange(Z.shape[1]), weights)
        np.testing.assert_allclose(whole, dense.T @ weighted, atol=1e-12)
        assert np.array_equal(whole, whole.T)
    assert Z.gram(left[:0], right, np.ones(400))[1].shape == (0, 130)


def test_row_weights_are_rounded_to_few_values(rng, labels, Z):
    few = np.where(labels > 0, 2.0, 0.0)
    assert np.array_equal(Z.gram_weights(few), few) and not Z.gram_weights(np.zeros(3)).any()
    many = losses.Logistic.second_derivative(rng.uniform(-6, 6, 5000), np.ones(5000))
    rounded = Z.gram_weights(many)
    assert np.all(np.abs(np.log(rounded / many)) <= 0.5 * np.log(1.25) + 1e-12)
    assert len(np.unique(rounded)) < 30


def test_a_lambda_above_the_largest_leaves_nothing(values, Z):
    lam = 1.001 * lambda_max(Z, values, losses.Squared)
    zero = solve_rb_l1(Z, values, lam, losses.Squared)
    assert zero.converged and zero.n_iter == 0
    assert not zero.coef.any()


def test_an_l1_solver_stops_at_its_limit_of_iterations(labels, Z):
    short = solve_rb_l1(Z, labels, 0.01, losses.SquaredHinge, Budget(tol=1e-12, max_iter=2))
    assert not short.converged and short.n_iter == 2


def test_sparse_rb_keeps_few_bins(reloaded, X, values, labels):
    options = {"n_grids": 100, "lam": 0.5}
    sparse = methods.create("sparse-rb", **options).fit(X[:300], labels[:300])
    assert sparse.score(X[300:], labels[300:]).score > 0.85
    assert sparse.info["loss"] == "squared_hinge"
    assert sparse.info["model_size"] == len(sparse.model.coef) < 0.5 * sparse.info["n_features"]
    own = sparse.model
    assert np.all(own.coef != 0) and own.grids.n_grids == len(own.bins.starts) - 1 <= 100
    empty = methods.create("sparse-rb", lam=1e6).fit(X, values)
    assert empty.info["model_size"] == 0
    assert not reloaded(empty, X).decision_function(X).any()


@pytest.mark.parametrize("name", list(WIDTHS))
def test_rb_approaches_the_exact_kernel(name, reloaded, X, values, labels):
    own = {"kernel": name, "gamma": 1.5 if name != "hat" else 0.7, "lam": 0.5, "scaling": "none"}
    kernel = methods.create("kernel", **own).fit(X[:300], values[:300])
    rb = methods.create("rb", n_grids=4000, tol=1e-6, **own).fit(X[:300], values[:300])
    difference = kernel.decision_function(X[300:]) - rb.decision_function(X[300:])
    assert np.sqrt(np.mean(difference**2)) < 0.02
    reloaded(rb, X)
    sparse = methods.create("sparse-rb", **own | {"lam": 0.02}, n_grids=100)
    sparse = sparse.fit(X[:300], labels[:300])
    assert sparse.model.grids.kernel == name
    assert sparse.score(X[300:], labels[300:]).score > 0.85


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "logistic"])
def test_rb_learns_classes(loss, X, labels):
    rb = methods.create("rb", loss=loss, n_grids=100, gamma=1.0, lam=0.01).fit(
        X[:300], labels[:300]
    )
    assert rb.score(X[300:], labels[300:]).score > 0.85 and rb.info["loss"] == loss
    D = rb.info["n_features"]
    assert (
        rb.info["n_grids"] == 100
        and rb.info["kappa"] == D / 100
        and rb.info["model_size"] == len(rb.model.coef) <= D
    )
    # eq. 10: the mean over grids of N divided by the rows in the fullest bin
    ids, _ = sample_grids("laplacian", 3, 100, 0, gamma=1.0).number(rb.preprocessing.rows(X[:300]))
    bound = np.mean([300 / np.bincount(row).max() for row in ids])
    assert rb.info["kappa_bound"] == pytest.approx(bound, rel=1e-12) and 1 <= bound <= D / 100
    assert rb.info["kernel_params"] == {"gamma": 1.0, "sigma": 1.0}


@pytest.mark.parametrize(
    ("classes", "loss"),
    [(0, "squared"), (2, "squared"), (3, "squared"), (2, "logistic"), (3, "logistic")],
)
def test_rb_grows_until_the_held_out_error_stops_falling(classes, loss, X, values):
    noise = 0.3 * np.random.default_rng(1).standard_normal(400)
    y = (
        values + noise
        if classes == 0
        else np.digitize(values + noise, np.quantile(values, np.arange(1, classes) / classes))
    )
    options = {"lam": 1.0, "gamma": 3.0, "loss": loss, "tol": 1e-8, "scaling": "none"}
    rb = methods.create("rb", grow=0.25, n_grids=1000, **options).fit(X, y)
    sizes, errors = zip(*rb.info["growth"])
    assert list(sizes) == [min(16 * 2**k, 1000) for k in range(len(sizes))]
    assert sizes[-1] == 1000 or errors[-1] > 0.99 * min(errors[:-1])
    assert all(after <= 0.99 * before for before, after in zip(errors[:-2], errors[1:-1]))
    chosen = rb.info["n_grids"]
    assert chosen == sizes[int(np.argmin(errors))] and rb.model.grids.n_grids == chosen
    # the model is that of all rows with the chosen R
    plain = methods.create("rb", n_grids=chosen, **options).fit(X, y)
    assert (
        np.array_equal(plain.model.bins.keys, rb.model.bins.keys)
        and plain.info["n_features"] == rb.info["n_features"]
    )
    assert plain.info["kappa"] == rb.info["kappa"] == rb.info["n_features"] / chosen
    np.testing.assert_allclose(rb.decision_function(X), plain.decision_function(X), atol=2e-3)
    # the errors are those of models of the other rows
    kept, out = Splitter(400, 0).part(0.25, "")
    small = methods.create("rb", n_grids=16, **options | {"lam": 0.75, "tol": 1e-2}).fit(
        X[kept], y[kept]
    )
    score = small.score(X[out], y[out]).score
    assert errors[0] == pytest.approx(score**2 if classes == 0 else 1 - score, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "options", "free", "message"),
    [
        # 4 bytes a bin number: 256 * 100,000 * 4 / 2^20 = 97.7 MiB
        ("rb", {"max_memory": 50}, 1000.0, "take 98 MiB, but .* is 50 MiB; at most 131 grids"),
        ("sparse-rb", {"max_memory": 100, "solver": "prcd"}, 1000.0, "take 195 MiB.* 131 grids"),
        ("rb", {}, 0.1, "is 0 MiB; at most 0 grids fit"),
    ],
)
def test_more_grids_than_memory_are_refused_before_they_are_made(
    name, options, free, message, free_memory
):
    """Bin numbers of a byte would take 25 MiB."""
    free_memory(free)
    rows, y = np.zeros((100_000, 1)), np.resize([-1.0, 1.0], 100_000)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=message):
            methods.create(name, **options).fit(rows, y)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 * 2**20


@pytest.mark.parametrize("name", ["rb", "sparse-rb"])
def test_enough_memory_changes_nothing(name, X, labels):
    plain, bounded = (
        methods.create(name, max_memory=limit, n_grids=50, lam=0.5).fit(X, labels)
        for limit in (None, 1)
    )
    assert np.array_equal(plain.decision_function(X), bounded.decision_function(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        *(("rb", loss) for loss in ("squared", "squared_hinge", "logistic")),
        *(("sparse-rb", loss) for loss in ("squared_hinge", "logistic")),
    ],
)
def test_liblinear_reaches_the_same_minimum(name, loss, X, labels):
    options = {"loss": loss, "n_grids": 30, "lam": 0.5, "tol": 1e-6 if name == "rb" else 1e-5}
    own, theirs = (
        methods.create(name, solver=solver, **options).fit(X, labels).info
        for solver in ("rfx", "liblinear")
    )
    assert theirs["solver"] == "liblinear"
    assert theirs["gap"] <= 1e-3 * theirs["objective"]
    assert theirs["objective"] == pytest.approx(own["objective"], rel=1e-3)


@pytest.mark.parametrize(
    ("rows", "count"), [(1, 1024), (16384, 1024), (32768, 512), (65536, 256), (10**7, 256)]
)
def test_few_rows_get_more_grids_where_none_are_asked_for(rows, count):
    X = np.zeros((rows, 1))
    assert methods.create("rb").method.count(X) == count
    assert methods.create("rb", n_grids=7).method.count(X) == 7
