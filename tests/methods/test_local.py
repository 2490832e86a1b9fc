"""Exact machines in the leaves of a tree: leave-one-out, the tree, the method."""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env, kernels, methods
from rfx.features.partition import Partition
from rfx.operators.left_out import left_out

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 4))
VALUES = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=600)
LABELS = np.where(VALUES > 0, "up", "down")
K = kernels.block("laplacian-l2", X, X, {"gamma": 1.0})
FIXED = {"scaling": "none", "metric": "none", "kernel": "laplacian-l2"}


def local(**options):
    return methods.create("local", **FIXED | {"leaf_rows": 150} | options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_rows_left_out_are_those_of_machines_fitted_without_them(lam, weighted):
    weights = RNG.uniform(0.5, 2, 60) if weighted else np.ones(60)
    A, Y = K[:60, :60] + np.diag(lam / weights), VALUES[:60, None]
    coef, residuals = left_out(K[:60, :60], Y, lam, 1 / weights)
    np.testing.assert_allclose(coef, np.linalg.solve(A, Y), rtol=1e-4, atol=1e-5)
    for out in (0, 17, 59):
        rest = np.delete(np.arange(60), out)
        alpha = np.linalg.solve(A[np.ix_(rest, rest)], Y[rest])
        assert residuals[out] == pytest.approx(Y[out] - K[out, rest] @ alpha, abs=1e-4)


def test_equal_rows_with_a_tiny_lambda_are_solved_in_float64():
    twice = np.concatenate([X[:100], X[:100]])
    values = kernels.block("laplacian-l2", twice, twice, {"gamma": 1.0})
    coef, _ = left_out(values, np.tile(VALUES[:100], 2)[:, None], 1e-5)
    np.testing.assert_allclose((values @ coef)[:, 0], np.tile(VALUES[:100], 2), atol=1e-3)


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_a_tree_of_medians_has_equal_leaves(rows):
    partition, blocks = Partition.principal(rows, 100)
    assert sorted(map(len, blocks)) == [75] * 8
    placed = partition.place(rows)
    assert all(np.array_equal(np.sort(a), b) for a, b in zip(blocks, placed))


def test_neighbours_share_the_rows_around_a_cut():
    partition, blocks = Partition.principal(X, 350, overlap=0.1)
    placed = partition.place(X)
    assert [len(rows) for rows in placed] == [300, 300]
    assert all(set(own) <= set(rows) for own, rows in zip(placed, blocks))
    shared = len(blocks[0]) + len(blocks[1]) - len(X)
    assert shared == pytest.approx(60, abs=4)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((500, 2)),
        np.concatenate([np.zeros((450, 2)), X[:50, :2]]),
        np.repeat(X[:3, :2], 200, axis=0),
        np.column_stack([np.repeat([0.0, 1.0], 300), np.zeros(600)]),
    ],
    ids=["one point", "one huge cluster", "three points", "two values"],
)
def test_ties_end_in_leaves_of_one_point(rows):
    partition, blocks = Partition.principal(rows, 50, overlap=0.05)
    for block in blocks:
        assert len(block) <= 50 or len(np.unique(rows[block], axis=0)) == 1
    assert sorted(np.concatenate(partition.place(rows)).tolist()) == list(range(len(rows)))


def test_one_leaf_is_the_kernel_machine_of_all_rows():
    alone = local(leaf_rows=1000, leaf_steps=0, lam=0.1).fit(X, VALUES)
    gamma = float(alone.model.gammas[0])
    whole = methods.create(
        "kernel", **FIXED, gamma=gamma, lam=0.1, loss="squared", target_scaling="none"
    ).fit(X, VALUES - VALUES.mean())
    expected = whole.predict(X[:50]) + VALUES.mean()
    np.testing.assert_allclose(alone.predict(X[:50]), expected, atol=2e-4)


def test_a_weight_counts_a_row_twice():
    counts = np.where(np.arange(60) % 3 == 0, 2, 1)
    twice = np.repeat(np.arange(60), counts)
    Y = VALUES[:60, None]
    weighted, _ = left_out(K[:60, :60], Y, 0.1, 1 / counts)
    repeated, _ = left_out(K[np.ix_(twice, twice)], Y[twice], 0.1)
    np.testing.assert_allclose(
        K[60:, :60] @ weighted, K[np.ix_(np.arange(60, 600), twice)] @ repeated, atol=1e-4
    )


@pytest.mark.threads
def test_threads_change_nothing():
    models = []
    for threads in (1, 2):
        env.set_threads(threads)
        models.append(local().fit(X, VALUES))
    env.set_threads(None)
    for name, array in models[0].model.arrays().items():
        assert np.array_equal(array, models[1].model.arrays()[name]), name


@pytest.mark.parametrize("targets", ["numbers", "two classes", "three classes"])
def test_models_are_saved_and_restored(tmp_path, targets):
    y = {
        "numbers": VALUES,
        "two classes": (VALUES > 0) * 1.0,
        "three classes": np.digitize(VALUES, [-0.5, 0.5]) * 1.0,
    }[targets]
    task = {"numbers": "regression", "two classes": "binary", "three classes": "multiclass"}[
        targets
    ]
    trained = local(task=task).fit(X, y)
    trained.save(tmp_path / "m.npz")
    restored = methods.load(tmp_path / "m.npz")
    assert np.array_equal(restored.predict(X), trained.predict(X))
    assert np.mean(restored.predict(X) == y) > 0.8 or targets == "numbers"


def test_the_metric_of_a_leaf_finds_the_inputs_that_matter():
    rows = RNG.normal(size=(600, 12))
    y = np.sin(2 * rows[:, 0])
    plain, learnt = (
        local(leaf_rows=1000, leaf_steps=steps).fit(rows[:500], y[:500]) for steps in (0, 2)
    )
    assert learnt.model.metrics[0] >= 0
    error, before = (
        np.sqrt(np.mean((m.predict(rows[500:]) - y[500:]) ** 2)) for m in (learnt, plain)
    )
    assert error < 0.7 * before


def test_left_out_rows_estimate_the_error_on_new_rows():
    n = 2000
    rows = RNG.uniform(-1, 1, (2 * n, 4))
    y = np.sin(4 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.3 * RNG.normal(size=2 * n)
    trained = local(leaf_rows=500).fit(rows[:n], y[:n])
    error = np.sqrt(np.mean((trained.predict(rows[n:]) - y[n:]) ** 2))
    assert trained.info["leave_one_out"] == pytest.approx(error, rel=0.08)


def test_a_constant_leaf_needs_no_rows():
    y = np.where(X[:, 0] > 0, np.sin(9 * X[:, 1]), 2.0)
    partition, blocks = Partition.principal(X, 20)
    trained = local(leaf_rows=20, overlap=0).fit(X, y)
    constant = [len(np.unique(y[block])) == 1 for block in blocks]
    sizes = np.diff(trained.model.starts)
    assert any(constant)
    assert np.array_equal(sizes == 0, constant)


def test_a_lambda_without_solution_is_raised_with_a_warning(caplog):
    rows = np.repeat(X[:20].astype(np.float32), 10, axis=0)
    trained = local(lam=1e-30).fit(rows, np.repeat(VALUES[:20], 10) + RNG.normal(size=200))
    assert "--lam is 1e-30" in caplog.text
    assert trained.info["lam"] > 1e-30
