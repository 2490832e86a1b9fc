"""Random binning: collisions estimate the kernel; keys, numbers and operators agree with plain
references.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env, kernels
from rfx.errors import DataError
from rfx.features.binning import WIDTHS, BinningMap, _starts, sample_grids
from rfx.operators.binned import BinnedMatrix

GAMMA = 0.8


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (300, 4))


def cells(grids, rows):
    """(R, n, d) cell indices by the definition."""
    return np.floor((rows[None] - grids.offsets[:, None]) / grids.widths[:, None])


def partition(ids):
    """Which pairs of rows share a bin: (R, n, n)."""
    return ids[:, :, None] == ids[:, None, :]


@pytest.mark.parametrize("kernel", list(WIDTHS))
def test_collisions_have_the_kernels_probability(kernel, X):
    n = 40_000
    ids, _ = sample_grids(kernel, 4, n, 3, gamma=GAMMA).number(X[:12])
    exact = kernels.block(kernel, X[:12], X[:12], {"gamma": GAMMA})
    deviation = np.sqrt(exact * (1 - exact) / n)
    assert np.all(np.abs(partition(ids).mean(axis=0) - exact) <= 4.5 * deviation + 1e-12)


@pytest.mark.parametrize("kernel", list(WIDTHS))
def test_widths_have_the_density_of_the_second_derivative(kernel):
    """P(width <= t), which is the integral of s k''(s) up to t, 1 - k(t) + t k'(t), with k' by
    finite differences of the exact kernel.
    """
    widths = np.sort(sample_grids(kernel, 1, 20_000, 7, gamma=2.0).widths.ravel())
    t, h = np.array([0.1, 0.3, 0.45, 0.7, 1.1, 2.5]), 1e-6
    below, at, above = (
        kernels.block(kernel, np.zeros((1, 1)), (t + step)[:, None], {"gamma": 2.0})[0]
        for step in (-h, 0, h)
    )
    expected = 1 - at + t * (above - below) / (2 * h)
    found = np.searchsorted(widths, t, side="right") / len(widths)
    assert np.all(
        np.abs(found - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / len(widths)) + 1e-8
    )


def test_bins_are_the_cells_in_order_of_appearance(X):
    grids = sample_grids("laplacian", 4, 40, 1, gamma=2.0)
    ids, bins = grids.number(X)
    assert ids.shape == (40, 300) and ids.dtype == np.uint16 and bins.starts[-1] == len(bins.keys)
    assert np.array_equal(
        partition(ids), np.all(cells(grids, X)[:, :, None] == cells(grids, X)[:, None], axis=-1)
    )
    for grid, row in enumerate(ids):
        first = np.unique(row, return_index=True)[1]
        assert np.array_equal(np.sort(first), first) and len(first) == len(bins.of(grid)) == len(
            set(bins.of(grid))
        )
    assert np.array_equal(grids.find(X, bins), ids)


def test_growing_keeps_earlier_grids_and_seeds_differ(X):
    whole, part, later = (
        sample_grids("laplacian", 4, n, 5, gamma=1.0, start=s)
        for n, s in ((30, 0), (11, 0), (19, 11))
    )
    for name in ("widths", "offsets"):
        assert np.array_equal(
            getattr(whole, name), np.vstack([getattr(part, name), getattr(later, name)])
        )
        assert np.array_equal(getattr(whole.select([3, 1]), name), getattr(whole, name)[[3, 1]])
    ids, bins = whole.number(X)
    early, early_bins = part.number(X)
    assert np.array_equal(ids[:11], early) and np.array_equal(
        bins.keys[: len(early_bins.keys)], early_bins.keys
    )
    assert not np.array_equal(whole.widths, sample_grids("laplacian", 4, 30, 6, gamma=1.0).widths)


@pytest.mark.slow
@pytest.mark.usefixtures("shared_out")
def test_sparse_rows_threads_and_blocks_change_nothing(rng):
    rows = np.where(rng.random((1500, 4)) < 0.5, rng.uniform(-1, 1, (1500, 4)), 0.0)
    grids = sample_grids("laplacian", 4, 37, 2, gamma=3.0)
    ids, bins = grids.number(rows)
    sparse = grids.number(sp.csr_matrix(rows))
    env.set_threads(1)
    for other_ids, other_bins in (sparse, grids.number(rows)):
        assert np.array_equal(other_ids, ids) and np.array_equal(other_bins.keys, bins.keys)
    parts = [grids.find(rows[:700], bins), grids.find(sp.csr_matrix(rows)[700:], bins)]
    assert np.array_equal(np.hstack(parts), ids)


def test_many_rows_take_four_bytes():
    ids, bins = sample_grids("laplacian", 1, 2, 0, gamma=1e4).number(
        np.linspace(0, 1e3, 70_000)[:, None]
    )
    assert ids.dtype == np.int32 and len(bins.of(0)) == ids[0].max() + 1 > 2**16


def test_identical_rows_and_constant_columns(X):
    rows = np.column_stack([np.repeat(X[:5, :1], 3, axis=0), np.full(15, 7.5)])
    ids, bins = sample_grids("laplacian", 2, 50, 0, gamma=1.0).number(rows)
    assert np.array_equal(ids, ids[:, ::3].repeat(3, axis=1)) and np.diff(bins.starts).max() <= 5
    constant, _ = sample_grids("laplacian", 2, 50, 0, gamma=1.0).number(np.full((9, 2), -3.0))
    assert not constant.any()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e12, 1e100, 1e307])
def test_huge_coordinates_and_tiny_widths_do_not_overflow(scale):
    rows = scale * np.array([[0.0], [-0.0], [1.0], [1.0], [-1.0], [0.5]])
    grids = BinningMap("laplacian", 1.0, np.array([[1e-300], [1e-8], [1e-3]]), np.zeros((3, 1)))
    with np.errstate(all="raise"):
        ids, _ = grids.number(rows)
    assert np.array_equal(grids.number(sp.csr_matrix(rows))[0], ids)
    with np.errstate(over="ignore"):
        quotients = np.floor(rows[:, 0] * (1 / grids.widths))
    # quotients above the largest float64 number share one bin on either side of zero
    for row, values in zip(ids, quotients):
        assert row.tolist() == [list(dict.fromkeys(values)).index(value) for value in values]


def test_width_of_zero_is_made_positive():
    grids = sample_grids("laplacian", 1, 3, 0, gamma=1.7e308)
    assert (
        np.all(grids.widths > 0)
        and grids.number(np.array([[0.0], [1.0], [1.0]]))[0].tolist() == [[0, 1, 1]] * 3
    )


def test_rows_of_another_width_are_refused(X):
    with pytest.raises(DataError, match="have 4 features, but the map was made for 2"):
        sample_grids("laplacian", 2, 3, 0, gamma=1.0).number(X)


def test_offsets_beyond_two_to_the_31():
    starts = _starts([2**31 - 1, 2**31 - 1, 5])
    assert starts.tolist() == [0, 2**31 - 1, 2**32 - 2, 2**32 + 3] and starts.dtype == np.int64
    Z = BinnedMatrix(np.array([[2**31 - 2, 0], [7, 2**31 - 2], [4, 0]], np.int32), starts, 1.0)
    first, second = np.array([2**31 - 2, 2**31 + 6, 2**32 + 2]), np.array([0, 2**32 - 3, 2**32 - 2])
    assert Z.shape == (2, 2**32 + 3)
    assert np.array_equal(
        Z.columns(np.concatenate([first, second])).to_array(), np.repeat(np.eye(2), 3, axis=1)
    )


@pytest.mark.parametrize("n_grids", [1, 3, 4, 39])
def test_transform_is_the_matrix_of_the_bins(n_grids, rng, X):
    rows = np.where(rng.random((300, 4)) < 0.5, X, 0.0)
    grids = sample_grids("laplacian", 4, n_grids, 1, gamma=2.0)
    ids, bins = grids.number(rows)
    for given in (rows, sp.csr_matrix(rows)):
        assert np.array_equal(
            grids.transform(given, bins).toarray(), BinnedMatrix(ids, bins.starts).to_array()
        )
    outside = grids.transform(rows + 1e6, bins, 2.0)
    assert outside.shape == (300, len(bins.keys)) and outside.nnz == 0
    part = grids.transform(rows[:0], bins)
    assert part.shape == (0, len(bins.keys))


def test_unseen_bins_have_weight_zero(rng, X):
    grids = sample_grids("laplacian", 4, 60, 1, gamma=2.0)
    _, bins = grids.number(X[:100])
    coef = rng.standard_normal((len(bins.keys), 2))
    found = grids.find(X, bins)
    assert np.any(found[:, 100:] < 0) and np.all(found[:, :100] >= 0)
    columns = np.where(found >= 0, found + bins.starts[:-1, None], len(bins.keys))
    expected = np.vstack([coef, np.zeros(2)])[columns].sum(axis=0)
    np.testing.assert_allclose(grids.decision(X, bins, coef), expected, atol=1e-12)
    assert not grids.decision(X + 1e6, bins, coef).any()
    used = rng.random(len(coef)) < 0.3
    np.testing.assert_allclose(
        grids.decision(X, bins.select(used), coef[used]),
        grids.decision(X, bins, coef * used[:, None]),
        atol=1e-12,
    )
