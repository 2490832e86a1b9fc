"""The tiled Cholesky factorisation, and nested threads."""

import warnings

import numpy as np
import pytest

from rfx import env, parallel
from rfx.operators import cholesky

RNG = np.random.default_rng(0)


def positive(size, dtype=np.float64):
    B = RNG.standard_normal((size, size))
    return (B @ B.T / size + np.eye(size)).astype(dtype)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factor_and_the_other_triangle(size, dtype, monkeypatch):
    monkeypatch.setattr(cholesky, "_TILE", 16)
    A = positive(size, dtype)
    work = np.array(A, order="F")
    above = np.triu_indices(size, 1)
    work[above] = 7
    assert cholesky.factor_in_place(work) == 0
    np.testing.assert_allclose(np.tril(work), np.linalg.cholesky(A), atol=100 * np.finfo(dtype).eps)
    assert np.all(work[above] == 7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(70,), (70, 1), (70, 3)])
@pytest.mark.parametrize("small", [0, 512])
def test_systems(shape, dtype, small, monkeypatch):
    monkeypatch.setattr(cholesky, "_SMALL", small)
    A, b = positive(70), RNG.standard_normal(shape)
    factor = cholesky.positive(np.array(A, dtype, order="F"))
    factor[np.triu_indices(70, 1)] = 7
    before = b.copy()
    found = cholesky.solve(factor, b)
    np.testing.assert_allclose(found, np.linalg.solve(A, b), atol=1000 * np.finfo(dtype).eps)
    assert found.shape == shape and np.array_equal(b, before)


def test_order_of_the_minor_that_is_not_positive(monkeypatch):
    monkeypatch.setattr(cholesky, "_TILE", 16)
    A = positive(60)
    A[37, 37] = -1
    assert cholesky.factor_in_place(np.asfortranarray(A)) == 38


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(cholesky, "_TILE", 32)
    A, factors = positive(200), []
    for threads in (1, 2):
        env.set_threads(threads)
        factors.append(np.asfortranarray(A))
        cholesky.factor_in_place(factors[-1])
    assert np.array_equal(*factors)


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


def test_what_is_above_the_diagonal_is_not_computed_with(monkeypatch):
    monkeypatch.setattr(cholesky, "_TILE", 16)
    A = positive(60, np.float32)
    work = np.array(A, order="F")
    above = np.triu_indices(60, 1)
    bits = work.view(np.uint32)
    bits[above] = 0x7FA00000  # a signalling NaN, which uninitialised memory may contain
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cholesky.factor_in_place(work) == 0
    assert np.all(bits[above] == 0x7FA00000)
    np.testing.assert_allclose(np.tril(work), np.linalg.cholesky(A), atol=1e-5)
