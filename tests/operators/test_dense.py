"""Dense linear algebra: the tiled Cholesky factorisation, triangular products, corners, weighted
Gram matrices; nested threads.
"""

import warnings

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from rfx import env, parallel
from rfx.operators import linear_algebra
from rfx.operators.blocks import weighted_gram
from rfx.operators.linear_algebra import corner, keep_corner, solve_rows


def positive(rng, size, dtype=np.float64):
    B = rng.standard_normal((size, size))
    return (B @ B.T / size + np.eye(size)).astype(dtype)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factor_and_the_other_triangle(size, dtype, rng):
    A = positive(rng, size, dtype)
    work = np.array(A, order="F")
    above = np.triu_indices(size, 1)
    # a signalling NaN, which uninitialised memory may contain
    kind, signalling = {4: (np.uint32, 0x7FA00000), 8: (np.uint64, 0x7FF4 << 48)}[work.itemsize]
    bits = work.view(kind)
    bits[above] = signalling
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert linear_algebra.factor_in_place(work, tile_rows=16) == 0
    np.testing.assert_allclose(np.tril(work), np.linalg.cholesky(A), atol=100 * np.finfo(dtype).eps)
    assert np.all(bits[above] == signalling)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
@pytest.mark.parametrize("size", [70, 600])
def test_systems(shape, dtype, size, rng):
    shape = (size, *shape)
    A, b = positive(rng, size), rng.standard_normal(shape)
    factor = linear_algebra.positive(np.array(A, dtype, order="F"))
    factor[np.triu_indices(size, 1)] = 7
    before = b.copy()
    found = linear_algebra.solve(factor, b)
    np.testing.assert_allclose(found, np.linalg.solve(A, b), atol=1000 * np.finfo(dtype).eps)
    assert found.shape == shape and np.array_equal(b, before)


def test_order_of_the_minor_that_is_not_positive(rng):
    A = positive(rng, 60)
    A[37, 37] = -1
    assert linear_algebra.factor_in_place(np.asfortranarray(A), tile_rows=16) == 38


@pytest.mark.usefixtures("shared_out")
def test_threads_change_nothing(by_threads, rng):
    A = positive(rng, 200)

    def factor():
        L = np.asfortranarray(A)
        assert linear_algebra.factor_in_place(L, tile_rows=32) == 0
        return L

    assert np.array_equal(*by_threads(factor))


def test_a_part_that_asks_for_threads_gets_its_own():
    seen = []

    def inner(start, stop):
        seen.append((start, stop))

    def outer(start, stop):
        parallel.for_ranges(inner, 8)
        return stop - start

    env.set_threads(2)
    assert parallel.for_ranges(outer, 4) == [2, 2]
    # in each of the two parts one thread computes all eight; afterwards there are two threads
    # again
    assert seen == [(0, 8), (0, 8)]
    assert parallel.for_ranges(lambda start, stop: stop - start, 4) == [2, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 63, 130])
@pytest.mark.parametrize("m", [1, 63, 64, 65, 200])
def test_rows_by_the_lower_triangle(n, m, dtype, rng):
    B = rng.standard_normal((m, 2 * m))
    # the upper part is not read
    L = np.asfortranarray(np.linalg.cholesky(B @ B.T).astype(dtype)) + np.triu(
        np.full((m, m), np.nan, dtype), 1
    )
    K = rng.standard_normal((n, m)).astype(dtype)
    expected = solve_triangular(
        np.tril(np.nan_to_num(L)).astype(np.float64), K.T.astype(np.float64), lower=True
    ).T
    solve_rows(L, K)
    np.testing.assert_allclose(
        K, expected, rtol=0, atol=200 * np.finfo(dtype).eps * np.abs(expected).max()
    )


@pytest.mark.parametrize("size", [1, 7, 1500])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_corner_is_what_numpy_gives(size, share, rng):
    M = rng.standard_normal((size, size))
    chosen = np.flatnonzero(rng.random(size) <= share)
    wanted = M[np.ix_(chosen, chosen)]
    np.testing.assert_array_equal(corner(M, chosen), wanted)
    np.testing.assert_array_equal(corner(M[:, :], chosen[::-1]), wanted[::-1, ::-1])
    np.testing.assert_array_equal(
        corner(M[: size // 2, : size // 2], chosen[chosen < size // 2]),
        M[np.ix_(*2 * [chosen[chosen < size // 2]])],
    )
    keep_corner(M, chosen)
    np.testing.assert_array_equal(M[: len(chosen), : len(chosen)], wanted)


def problem(dtype, n_rows=5000, n_columns=40):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_rows, n_columns)).astype(dtype)
    rows = np.sort(rng.permutation(n_rows)[: n_rows - 300])
    weights = rng.normal(size=len(rows)) * (rng.random(len(rows)) < 0.7)
    return Z, rows, weights, rng.permutation(n_columns)


def expected(Z, rows, weights, left, right):
    A = Z[rows].astype(np.float64)
    return A[:, left].T @ (weights[:, None] * A[:, right])


@pytest.mark.parametrize(
    "dtype, small, tolerance",
    [(np.float64, 0, 1e-12), (np.float32, 0, 1e-5), (np.float32, 2**40, 1e-12)],
)
@pytest.mark.parametrize("count", [1, 6, 7, 8, 29])
def test_tiles_are_the_whole(dtype, small, tolerance, count):
    Z, rows, weights, order = problem(dtype)
    left, right = order[:count], order[count:]
    in_tiles = {"tile_columns": 7, "small": small}
    square, cross = weighted_gram(Z, rows, weights, left, right, **in_tiles)
    scale = np.abs(weights).sum()
    assert np.abs(square - expected(Z, rows, weights, left, left)).max() < tolerance * scale
    assert np.abs(cross - expected(Z, rows, weights, left, right)).max() < tolerance * scale
    assert np.array_equal(square, square.T)
    alone, _ = weighted_gram(Z, rows, weights, left, left[:0], **in_tiles)
    assert np.array_equal(alone, square)


@pytest.mark.usefixtures("shared_out")
def test_tiles_by_any_number_of_threads(by_threads):
    Z, rows, weights, order = problem(np.float32)
    columns, in_tiles = (order[:30], order[30:]), {"tile_columns": 7, "small": 0}
    one, *others = by_threads(
        lambda: np.hstack(weighted_gram(Z, rows, weights, *columns, **in_tiles)), (1, 2, 3)
    )
    for other in others:
        assert np.array_equal(one, other)


def test_nothing_to_add():
    Z, rows, weights, order = problem(np.float64)
    square, cross = weighted_gram(Z, rows[:0], weights[:0], order[:3], order[3:])
    assert (
        square.shape == (3, 3) and cross.shape == (3, 37) and not square.any() and not cross.any()
    )
    assert weighted_gram(Z, rows, weights, order[:0], order[:0])[0].shape == (0, 0)
    assert weighted_gram(Z, rows, weights, order[:0], order)[1].shape == (0, 40)
