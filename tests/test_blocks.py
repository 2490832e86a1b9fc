"""The walk over row and column blocks: same numbers whatever the blocks, the threads and where the features come from."""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env
from rfx.features import sample
from rfx.operators.blocks import ArrayBlocks, KeptRows, MapBlocks, adjoint, apply, feature_blocks, product, walk

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (700, 5)).astype(np.float32)
    feature_map = sample("gaussian", 5, 90, 3, gamma=1.0)
    return MapBlocks(feature_map, X, scale=0.3, rows=128), 0.3 * feature_map.transform(X)


def test_a_map_and_an_array_give_the_same_blocks(problem):
    blocks, Z = problem
    assert blocks.shape == Z.shape == (700, 90)
    for form in (blocks, ArrayBlocks(Z, rows=100), blocks.materialize()):
        seen = np.zeros_like(Z)
        for rows, part in form:
            seen[rows] = part
        np.testing.assert_allclose(seen, Z, atol=1e-6)
        seen[:] = 0
        for columns, part in form.columns(32):
            assert part.flags.c_contiguous
            seen[:, columns] = part
        np.testing.assert_allclose(seen, Z, atol=1e-6)


def test_subsets_of_rows_and_columns(problem):
    blocks, Z = problem
    rows, columns = np.array([600, 3, 4, 5, 77, 3]), np.array([8, 2, 80])
    for form in (blocks, ArrayBlocks(Z)):
        part = form.subset(rows)
        assert part.shape == (6, 90)
        np.testing.assert_allclose(part.materialize().Z, Z[rows], atol=1e-6)
        np.testing.assert_allclose(part.subset(np.array([0, 4])).materialize().Z, Z[[600, 77]], atol=1e-6)
        np.testing.assert_allclose(np.hstack([np.array(Zc) for _, Zc in part.columns(40)]), Z[rows], atol=1e-6)
        np.testing.assert_allclose(form.select(columns).materialize().Z, Z[:, columns], atol=1e-6)


def test_kept_rows_follow_a_changing_set(problem):
    blocks, Z = problem
    kept = KeptRows(blocks, limit_mb=0.1)
    rng, weights = np.random.default_rng(0), np.linspace(1, 2, 700)
    p = rng.standard_normal(90)
    for count in (200, 210, 5, 260, 700, 100):
        index = np.sort(rng.permutation(700)[:count])
        part = kept.subset(index)
        assert isinstance(part, MapBlocks if count > kept.capacity else ArrayBlocks)
        np.testing.assert_allclose(part.materialize().Z, Z[index], atol=1e-6)
        f, g = kept.walk(p, lambda rows, f: weights[rows] * f)
        np.testing.assert_allclose(f, Z.astype(np.float64) @ p, rtol=0, atol=1e-4)
        np.testing.assert_allclose(g, Z.T.astype(np.float64) @ (weights * f), rtol=0, atol=1e-3)
        exact = Z[index].astype(np.float64)
        np.testing.assert_allclose(product(part, p, weights[index]), exact.T @ (weights[index] * (exact @ p)), rtol=0, atol=1e-3)


def test_sparse_rows_give_the_same_blocks(problem):
    blocks, Z = problem
    form = MapBlocks(blocks.map, sp.csr_matrix(blocks.X.astype(np.float64)), blocks.scale)
    np.testing.assert_allclose(form.materialize().Z, Z, atol=1e-5)
    np.testing.assert_allclose(form.subset(np.array([5, 1])).materialize().Z, Z[[5, 1]], atol=1e-5)


@pytest.mark.parametrize("outputs", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_walk_sums_in_float64(outputs, dtype):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((1001, 257)).astype(dtype)
    w, u = rng.standard_normal((257, *outputs)), rng.standard_normal((1001, *outputs))
    u[::3] = 0
    exact = Z.astype(np.float64)
    for order in "CF":
        blocks = ArrayBlocks(np.asarray(Z, order=order), rows=100)
        np.testing.assert_allclose(apply(blocks, w), exact @ w, rtol=0, atol=1e-11)
        np.testing.assert_allclose(adjoint(blocks, u), exact.T @ u, rtol=0, atol=1e-11)
        f, g = walk(blocks, w, lambda rows, f: f - u[rows])
        np.testing.assert_allclose(f, exact @ w, rtol=0, atol=1e-11)
        np.testing.assert_allclose(g, exact.T @ (exact @ w - u), rtol=0, atol=1e-8)


def test_threads_change_no_bit():
    rng = np.random.default_rng(2)
    blocks = ArrayBlocks(rng.standard_normal((2000, 600)).astype(np.float32))
    w, results = rng.standard_normal(600), []
    try:
        for count in (1, 2):
            env.set_threads(count)
            results.append(walk(blocks, w, lambda rows, f: np.tanh(f)))
    finally:
        env.set_threads(1)
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1], results[1][1])


def test_features_are_kept_only_where_they_fit(problem):
    blocks, _ = problem
    assert isinstance(feature_blocks(blocks.map, blocks.X, max_memory_mb=1.0), ArrayBlocks)
    assert isinstance(feature_blocks(blocks.map, blocks.X, max_memory_mb=0.1), MapBlocks)
