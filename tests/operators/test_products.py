"""Weighted Gram matrices, chunk by chunk: a sum per thread, or one shared in tiles."""

import numpy as np
import pytest

from rfx import env
from rfx.operators import products
from rfx.operators.products import GramSum, weighted_gram


@pytest.fixture
def in_tiles(monkeypatch):
    monkeypatch.setattr(products, "_ONE_TILE", 0)
    monkeypatch.setattr(products, "_TILE", 7)


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
def test_tiles_are_the_whole(in_tiles, monkeypatch, dtype, small, tolerance, count):
    monkeypatch.setattr(products, "SMALL", small)
    Z, rows, weights, order = problem(dtype)
    left, right = order[:count], order[count:]
    square, cross = weighted_gram(Z, rows, weights, left, right)
    scale = np.abs(weights).sum()
    assert np.abs(square - expected(Z, rows, weights, left, left)).max() < tolerance * scale
    assert np.abs(cross - expected(Z, rows, weights, left, right)).max() < tolerance * scale
    assert np.array_equal(square, square.T)
    assert np.array_equal(weighted_gram(Z, rows, weights, left), square)


def test_tiles_by_any_number_of_threads(in_tiles, monkeypatch):
    monkeypatch.setattr(products, "SMALL", 0)
    Z, rows, weights, order = problem(np.float32)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(env, "threads", lambda threads=threads: threads)
        found.append(weighted_gram(Z, rows, weights, order[:30], order[30:]))
    for square, cross in found[1:]:
        assert np.array_equal(square, found[0][0])
        assert np.array_equal(cross, found[0][1])


def test_nothing_to_add(in_tiles):
    Z, rows, weights, order = problem(np.float64)
    square, cross = weighted_gram(Z, rows[:0], weights[:0], order[:3], order[3:])
    assert (
        square.shape == (3, 3) and cross.shape == (3, 37) and not square.any() and not cross.any()
    )
    assert weighted_gram(Z, rows, weights, order[:0]).shape == (0, 0)
    assert weighted_gram(Z, rows, weights, order[:0], order)[1].shape == (0, 40)


def test_a_large_sum_takes_its_own_size_once(monkeypatch):
    """Above this many entries threads have no sums of their own."""
    monkeypatch.setattr(env, "threads", lambda: 8)
    columns = np.arange(2100)
    large, few = (
        GramSum(columns, None, 10**6, np.float32, 1.0),
        GramSum(columns[:100], None, 10**6, np.float32, 1.0),
    )
    assert (len(large.parts), len(few.parts)) == (1, 8)
    totals, room, _ = large._room()
    assert totals[0].shape == (2100, 2100) and room.nbytes <= 8 * 4 * 512**2
