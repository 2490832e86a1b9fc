"""Exact machines in the leaves of a tree: leave-one-out, the tree, the method."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeCV
from sklearn.utils.estimator_checks import check_methods_subset_invariance

from rfx import kernels, methods
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.errors import UsageError
from rfx.estimators import AutoClassifier, AutoRegressor, LocalRegressor
from rfx.features import partition
from rfx.features.partition import Partition
from rfx.fitting.problem import Problem
from rfx.losses import get_loss
from rfx.methods.local import KERNELS, LINEAR_LAMS, SEVERAL_ERROR, _linear
from rfx.operators.kernel import coefficients, left_out

FIXED = {"scaling": "none", "metric": "none", "kernel": "laplacian-l2"}


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    return SimpleNamespace(X=rng.uniform(-1, 1, (600, 4)), noise=rng.normal(size=600))


@pytest.fixture(scope="module")
def X(drawn):
    return drawn.X


@pytest.fixture(scope="module")
def values(X, drawn):
    """Targets of a regression on X."""
    return np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * drawn.noise


@pytest.fixture(scope="module")
def K(X):
    """The kernel of X."""
    return kernels.block("laplacian-l2", X, X, {"gamma": 1.0})


def local(**options):
    return methods.create("local", **FIXED | {"leaf_rows": 150} | options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_rows_left_out_are_those_of_machines_fitted_without_them(lam, weighted, rng, values, K):
    weights = rng.uniform(0.5, 2, 60) if weighted else np.ones(60)
    A, Y = K[:60, :60] + np.diag(lam / weights), values[:60, None]
    coef, residuals = left_out(K[:60, :60], Y, lam, 1 / weights)
    np.testing.assert_allclose(coef, np.linalg.solve(A, Y), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(coef, coefficients(K[:60, :60], Y, lam, 1 / weights))
    for out in (0, 17, 59):
        rest = np.delete(np.arange(60), out)
        alpha = np.linalg.solve(A[np.ix_(rest, rest)], Y[rest])
        assert residuals[out] == pytest.approx(Y[out] - K[out, rest] @ alpha, abs=1e-4)


def test_rows_of_a_group_are_left_out_together(values, K):
    # some rows are groups of their own
    groups, Y = np.minimum(np.arange(60) % 25, np.arange(60)), values[:60, None]
    groups[50:] = np.arange(50, 60)
    _, residuals = left_out(K[:60, :60], Y, 0.1, groups=groups)
    for group in (0, 7, 55):
        out, rest = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + 0.1 * np.eye(len(rest)), Y[rest])
        np.testing.assert_allclose(Y[out] - residuals[out], K[np.ix_(out, rest)] @ alpha, atol=1e-4)


def test_groups_of_copies_raise_lambda(rng, X):
    """A row left out alone is predicted by its near copies; equal rows are left out together."""
    rows, y = np.repeat(X[:150], 4, axis=0), np.repeat(rng.normal(size=150), 4)
    near = rows + 1e-6 * rng.normal(size=rows.shape)
    constraint = SplitConstraint("groups", np.repeat(np.arange(150), 4))
    alone, grouped = (
        local().fit(near, y, constraint=one).info["lam"] for one in (None, constraint)
    )
    assert grouped > 10 * alone
    assert local().fit(rows, y).info["lam"] > 10 * alone


def test_equal_rows_with_a_tiny_lambda_are_solved_in_float64(X, values):
    twice = np.concatenate([X[:100], X[:100]])
    kernel = kernels.block("laplacian-l2", twice, twice, {"gamma": 1.0})
    coef, *_ = left_out(kernel, np.tile(values[:100], 2)[:, None], 1e-5)
    np.testing.assert_allclose((kernel @ coef)[:, 0], np.tile(values[:100], 2), atol=1e-3)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_a_tree_of_medians_has_equal_leaves(stored, X):
    rows = stored(X)
    partition, blocks = Partition.principal(rows, 100)
    assert sorted(map(len, blocks)) == [75] * 8
    placed = partition.place(rows)
    assert all(np.array_equal(np.sort(a), b) for a, b in zip(blocks, placed))


def test_neighbours_share_the_rows_around_a_cut(X):
    partition, blocks = Partition.principal(X, 350, overlap=0.1)
    placed = partition.place(X)
    assert [len(rows) for rows in placed] == [300, 300]
    assert all(set(own) <= set(rows) for own, rows in zip(placed, blocks))
    shared = len(blocks[0]) + len(blocks[1]) - len(X)
    assert shared == pytest.approx(60, abs=4)


@pytest.mark.parametrize(
    "tied",
    [
        lambda X: np.zeros((500, 2)),
        lambda X: np.concatenate([np.zeros((450, 2)), X[:50, :2]]),
        lambda X: np.repeat(X[:3, :2], 200, axis=0),
        lambda X: np.column_stack([np.repeat([0.0, 1.0], 300), np.zeros(600)]),
    ],
    ids=["one point", "one huge cluster", "three points", "two values"],
)
def test_ties_end_in_leaves_of_one_point(tied, X):
    rows = tied(X)
    partition, blocks = Partition.principal(rows, 50, overlap=0.05)
    for block in blocks:
        assert len(block) <= 50 or len(np.unique(rows[block], axis=0)) == 1
    assert sorted(np.concatenate(partition.place(rows)).tolist()) == list(range(len(rows)))


@pytest.mark.parametrize("overlap", [0, 0.05])
def test_cells_by_all_rows_have_the_blocks_of_a_tree_without_cells(overlap, rng):
    rows = rng.normal(size=(6000, 3))
    tree, blocks = Partition.principal(rows, 100, overlap)
    _, without = Partition.grown(rows, np.arange(6000), 100, overlap, 0)
    assert {tuple(block) for block in blocks} == {tuple(block) for block in without}
    assert tree.top(rows, 6000, 100, overlap, 0).n_blocks > 1
    for own, block in zip(tree.place(rows), blocks, strict=True):
        assert set(own) <= set(block)


def test_cells_by_a_sample_differ_little_in_size(set_sizes, rng):
    set_sizes(partition, SAMPLED=2000)
    rows = rng.normal(size=(20000, 3))
    tree, blocks = Partition.principal(rows, 500, 0.05)
    assert max(map(len, blocks)) <= 500
    assert np.bincount(list(map(len, blocks))).nonzero()[0][0] > 150
    assert sum(map(len, tree.place(rows))) == 20000


def test_one_leaf_is_the_kernel_machine_of_all_rows(X, values):
    alone = local(leaf_rows=1000, leaf_steps=0, lam=0.1, mixed=False).fit(X, values)
    gamma = float(alone.model.gammas[0])
    whole = methods.create(
        "kernel", **FIXED, gamma=gamma, lam=0.1, loss="squared", target_scaling="none"
    ).fit(X, values - values.mean())
    expected = whole.predict(X[:50]) + values.mean()
    np.testing.assert_allclose(alone.predict(X[:50]), expected, atol=2e-4)


@pytest.mark.threads
def test_threads_change_nothing(by_threads, X, values):
    one, two = by_threads(lambda: local().fit(X, values).model.arrays())
    for name, array in one.items():
        assert np.array_equal(array, two[name]), name


@pytest.mark.parametrize("targets", ["numbers", "two classes", "three classes"])
def test_models_are_saved_and_restored(reloaded, targets, X, values):
    y = {
        "numbers": values,
        "two classes": (values > 0) * 1.0,
        "three classes": np.digitize(values, [-0.5, 0.5]) * 1.0,
    }[targets]
    task = {"numbers": "regression", "two classes": "binary", "three classes": "multiclass"}[
        targets
    ]
    restored = reloaded(local(task=task).fit(X, y), X)
    assert np.mean(restored.predict(X) == y) > 0.8 or targets == "numbers"


def test_the_mean_of_two_machines_has_a_lower_error_than_each(X, values):
    errors = {}
    for kernel, mixed in ((KERNELS[0], False), (KERNELS[1], False), (KERNELS[0], True)):
        trained = local(kernel=kernel, mixed=mixed).fit(X[:500], values[:500])
        assert set(trained.model.places) == ({0, 1} if mixed else {0})
        errors[kernel, mixed] = np.mean((trained.predict(X[500:]) - values[500:]) ** 2)
    *alone, both = errors.values()
    assert both < min(alone)


@pytest.mark.parametrize("n_inputs", [4, 80], ids=["few inputs", "more inputs than rows"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_left_out_are_those_of_ridge_regressions_without_them(
    weighted, grouped, n_inputs, rng, X, values
):
    rows = np.random.default_rng(1).normal(size=(60, n_inputs))
    weights = rng.uniform(0.5, 2, 60) if weighted else None
    groups = np.arange(60) % 20 if grouped else np.arange(60)
    Y = np.stack([values[:60], X[:60, 0]], axis=1)
    constraint = SplitConstraint("groups", groups) if grouped else None
    problem = Problem(rows, Y, get_loss("squared"), "regression", weights, constraint=constraint)
    own = np.ones(60) if weights is None else weights
    middle = np.average(rows, axis=0, weights=own)
    slope, constant, out = _linear(problem, np.average(Y, axis=0, weights=own), 40)
    spread = np.linalg.svd(np.sqrt(own)[:, None] * (rows - middle), compute_uv=False)

    def ridge(lam, rest):
        centre, mean = (np.average(part[rest], axis=0, weights=own[rest]) for part in (rows, Y))
        Z, penalty = rows[rest] - centre, lam * np.mean(spread**2) * np.eye(n_inputs)
        slope = np.linalg.solve(
            (Z.T * own[rest]) @ Z + penalty, (Z.T * own[rest]) @ (Y[rest] - mean)
        )
        return slope, mean - centre @ slope

    def error(lam):
        parts = [(groups == group, *ridge(lam, groups != group)) for group in np.unique(groups)]
        return sum(np.sum(own[on, None] * (Y[on] - rows[on] @ w - c) ** 2) for on, w, c in parts)

    best = min(LINEAR_LAMS, key=error)
    expected = ridge(best, np.arange(60) >= 0)
    np.testing.assert_allclose(slope, expected[0], atol=1e-8)
    np.testing.assert_allclose(constant, expected[1], atol=1e-8)
    for row in (20, 41, 59):
        w, c = ridge(best, groups != groups[row])
        np.testing.assert_allclose(out[row - 20], rows[row] @ w + c, atol=1e-8)


@pytest.mark.parametrize(("n_rows", "n_inputs"), [(300, 20), (500, 50)])
def test_a_noisy_linear_function_has_an_error_near_that_of_ridge_regression(
    n_rows, n_inputs, reloaded
):
    """A metric learnt from few rows fits the noise."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows + 2000, n_inputs))
    y = rows @ rng.normal(size=n_inputs) / math.sqrt(n_inputs) + rng.normal(size=len(rows))
    fresh, truth = rows[n_rows:], y[n_rows:]
    trained = methods.create("local", task="regression").fit(rows[:n_rows], y[:n_rows])
    peer = RidgeCV(np.logspace(-3, 4, 30)).fit(rows[:n_rows], y[:n_rows])
    error, least = (np.std(model.predict(fresh) - truth) for model in (trained, peer))
    assert error < 1.05 * least
    assert len(trained.model.slopes) == 1
    reloaded(trained, fresh)


def test_a_model_without_places_has_one_machine_a_leaf(tmp_path, X, values):
    trained = local(mixed=False).fit(X, values)
    arrays = {k: v for k, v in trained.model.arrays().items() if k not in ("leaves", "places")}
    restored = trained.method.restore(trained.model.header(), arrays)
    assert np.array_equal(restored.decision(X), trained.model.decision(X))


def test_the_metric_of_a_leaf_finds_the_inputs_that_matter(rng):
    rows = rng.normal(size=(600, 12))
    y = np.sin(2 * rows[:, 0])
    plain, learnt = (
        local(leaf_rows=1000, leaf_steps=steps, mixed=False).fit(rows[:500], y[:500])
        for steps in (0, 2)
    )
    assert learnt.model.metrics[0] >= 0
    error, before = (
        np.sqrt(np.mean((m.predict(rows[500:]) - y[500:]) ** 2)) for m in (learnt, plain)
    )
    assert error < 0.7 * before


def test_left_out_rows_estimate_the_error_on_new_rows(rng):
    n = 2000
    rows = rng.uniform(-1, 1, (2 * n, 4))
    y = np.sin(4 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.3 * rng.normal(size=2 * n)
    trained = replace(local(leaf_rows=500), predicts_left_out=True).fit(rows[:n], y[:n])
    error = np.sqrt(np.mean((trained.predict(rows[n:]) - y[n:]) ** 2))
    assert trained.info["leave_one_out"] == pytest.approx(error, rel=0.08)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (np.concatenate([X, X]), np.tile(y, 2)),
        lambda X, y: (np.concatenate([np.zeros((400, 4)), X[:200]]), y),
        lambda X, y: (np.repeat(X[:6], 100, axis=0), y),
        lambda X, y: (np.round(X), y),
        lambda X, y: (X, np.full(600, 2.5)),
        lambda X, y: (np.zeros((600, 4)), y),
        lambda X, y: (X, np.where(np.arange(600) == 7, 1e6, y)),
    ],
    ids=["twice", "huge cluster", "few points", "ties", "constant", "one point", "outlier"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_difficult_rows_have_an_error_below_that_of_the_mean(change, weighted, rng, X, values):
    rows, y = change(X, values)
    weights = rng.integers(1, 5, len(y)) / 1e3 if weighted else None
    trained = local(leaf_rows=100).fit(rows, y, weights)
    squared = (trained.predict(rows) - y) ** 2
    mean = np.average(y, weights=weights)
    assert np.average(squared, weights=weights) <= 1.001 * np.average(
        (y - mean) ** 2, weights=weights
    )


def test_several_targets_share_the_machines_of_each(reloaded, X, values):
    y = np.column_stack([values, -3 * X[:, 0]])
    options = {"lam": 0.1, "leaf_steps": 0, "mixed": False}
    trained = local(**options).fit(X, y)
    for k in range(2):
        alone = local(**options).fit(X, y[:, k])
        np.testing.assert_allclose(trained.predict(X)[:, k], alone.predict(X), atol=1e-4)
    reloaded(trained, X)


def test_classes_have_weights(X, values):
    light, heavy = (
        local(task="binary", class_weight=f"-1:1,1:{weight}", lam=1.0).fit(X, np.sign(values + 0.7))
        for weight in (0.01, 100)
    )
    assert np.mean(heavy.predict(X) > 0) > np.mean(light.predict(X) > 0) + 0.05


@pytest.mark.parametrize(
    ("n_inputs", "n_rows", "leaf_rows"),
    [(400, 1800, 1000), (1200, 1300, 1300)],
    ids=["wide", "text"],
)
def test_sparse_rows_stay_sparse_and_have_a_diagonal_metric(n_inputs, n_rows, leaf_rows, reloaded):
    wide = np.zeros((n_rows, n_inputs))
    wide[:, :4] = np.random.default_rng(1).uniform(0, 1, (n_rows, 4))
    rows, y = sp.csr_matrix(wide), np.sin(4 * wide[:, 0])
    options = {"leaf_rows": leaf_rows, "scaling": "none", "mixed": False}
    there, here = (local(**options).fit(each, y) for each in (rows, wide))
    assert sp.issparse(there.model.rows)
    np.testing.assert_allclose(
        there.model.partition.directions, here.model.partition.directions, atol=1e-9
    )
    assert there.model.metrics.max() >= 0
    assert len(there.model.diagonals) == there.model.metrics.max() + 1
    np.testing.assert_allclose(there.predict(rows), here.predict(wide), atol=1e-4)
    reloaded(there, rows)


def test_a_metric_is_not_learnt_from_fewer_rows_than_inputs_if_it_only_helps_these():
    rng = np.random.default_rng(0)
    words, topics = rng.dirichlet(np.full(1500, 0.02), 8), rng.dirichlet(np.full(8, 0.3), 4000)
    rows, values = (
        sp.csr_matrix(1.0 * rng.poisson(40 * topics @ words)),
        topics @ rng.normal(size=8),
    )
    labels = 1.0 * (values + values.std() * rng.normal(size=4000) > np.median(values))
    trained = methods.create("local").fit(rows[:1000], labels[:1000])
    assert trained.chosen.metric == "none"
    assert (trained.model.metrics == -1).all()
    # .68 with one, which seemed to be .9
    assert np.mean(trained.predict(rows[1000:]) == labels[1000:]) > 0.71


def test_a_model_stores_every_row_once(X, values):
    trained = local(overlap=0.2).fit(X, values)
    assert len(trained.model.numbers) > len(X)
    assert len(trained.model.rows) == len(X)


# ---------------------------------------------------------------------- checkpoints


def test_rows_in_half_precision_halve_the_model(tmp_path, reloaded, rng):
    sizes, predicted = {}, {}
    rows = rng.normal(size=(600, 40))
    for dtype in ("float32", "float16"):
        trained = local(dtype=dtype, task="regression", leaf_steps=0).fit(
            rows, rows[:, 0] * rows[:, 1]
        )
        sizes[dtype] = trained.save(tmp_path / dtype)
        predicted[dtype] = reloaded(trained, rows).predict(rows)
    np.testing.assert_allclose(predicted["float16"], predicted["float32"], atol=0.01)
    assert sizes["float16"] < 0.65 * sizes["float32"]


def test_numbers_beyond_half_precision_are_refused(X, values):
    with pytest.raises(UsageError, match=r"--dtype is float16, but .* larger than 65504"):
        local(dtype="float16").fit(1e6 * X, values)


def test_an_interrupted_training_resumes_with_its_leaves_to_the_same_bits(tmp_path, X, values):
    path, told = tmp_path / "point", []
    whole = local().fit(X, values)

    def interrupt(report):
        if report.leaf == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local().keep(path).fit(X, values, progress=interrupt)
    again = local().keep(path, resume=True).fit(X, values, progress=told.append)
    # the third leaf, whose report the interruption came with, is fitted again
    leaves = [report.leaf for report in told if report.leaf is not None]
    assert leaves == [*range(3, whole.info["n_blocks"] + 1)]
    for name, array in whole.model.arrays().items():
        assert np.array_equal(again.model.arrays()[name], array), name
    with pytest.raises(UsageError, match="of other rows"):
        local().keep(path, resume=True).fit(X, values + 1e-9 * X[:, 0])
    with pytest.raises(UsageError, match="--leaf-rows"):
        local(leaf_rows=140).keep(path, resume=True).fit(X, values)


def test_a_constant_leaf_needs_no_rows(X):
    y = np.where(X[:, 0] > 0, np.sin(9 * X[:, 1]), 2.0)
    partition, blocks = Partition.principal(X, 20)
    trained = local(leaf_rows=20, overlap=0, mixed=False).fit(X, y)
    constant = [len(np.unique(y[block])) == 1 for block in blocks]
    assert any(constant)
    assert np.array_equal(~np.isin(np.arange(len(blocks)), trained.model.leaves), constant)


def test_a_lambda_without_solution_is_raised(caplog, rng, X, values):
    # so many copies on average are not merged
    rows = np.repeat(X[:20].astype(np.float32), 11, axis=0)
    trained = local(lam=1e-30).fit(rows, np.repeat(values[:20], 11) + rng.normal(size=220))
    assert "--lam is 1e-30" in caplog.text
    assert trained.info["lam"] > 1e-30


@pytest.mark.parametrize("kernel", ["matern-5/2", "matern-3/2", "gaussian", "laplacian-l2"])
def test_a_row_has_one_prediction(kernel):
    # float32 values times coefficients of 1e4 differed by .04 between a row alone and in a batch
    X, new = (np.random.default_rng(seed).normal(size=(n, 2)) for seed, n in ((0, 400), (1, 40)))
    model = LocalRegressor(
        kernel=kernel, mixed=False, scaling="standard", metric="none", lam=3e-5
    ).fit(X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]))
    alone = np.concatenate([model.predict(new[i : i + 1]) for i in range(len(new))])
    np.testing.assert_allclose(model.predict(new), alone, rtol=0, atol=1e-9)


def test_float32_values_of_several_leaves_change_predictions_within_the_bound():
    """Coefficients just below those for which values are computed in float64."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(1200, 3)), rng.normal(size=1200)
    options = {"kernel": "matern-3/2", "leaf_rows": 400, "leaf_steps": 0, "mixed": False}
    trained = local(**options, lam=4e-2).fit(rows, y)
    model = trained.model
    machines = map(model.coef_of, range(len(model.doubles)))
    bounds = [kernels.rounding_error(coef, np.abs(y).max()) for coef in machines]
    assert not model.doubles.any() and SEVERAL_ERROR / 3 < max(bounds) < SEVERAL_ERROR
    exact = replace(model, doubles=np.ones_like(model.doubles))
    found, wanted = (trained.replace(model=one).predict(rows) for one in (model, exact))
    assert np.abs(found - wanted).max() < max(bounds) * np.abs(y).max()


@pytest.mark.parametrize("estimator", [AutoRegressor(), AutoClassifier(), LocalRegressor()])
def test_subsets_have_the_same_predictions(estimator):
    check_methods_subset_invariance(type(estimator).__name__, estimator)


@pytest.mark.parametrize("kernel", ["matern-5/2", "matern-3/2"])
def test_float16_is_refused_where_rounding_rows_changes_predictions(kernel, X):
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1])
    smooth = methods.create("local", **FIXED | {"kernel": kernel, "dtype": "float16"})
    with pytest.raises(UsageError, match="float16"):
        smooth.fit(X, y)
