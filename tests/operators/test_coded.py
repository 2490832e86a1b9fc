"""Features as 8-bit integers: products, Gram matrices, and columns that make room for others."""

import numpy as np
import pytest

from rfx.features import sample
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.operators import coded
from rfx.operators.coded import CHUNK, CodedColumns
from rfx.operators.mapped import MapMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1 import greedy
from rfx.solvers.l1.greedy import solve_rounds

BOUND = np.sqrt(2)


@pytest.fixture(scope="module")
def features():
    """(3000, 700) Fourier features."""
    rows = np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float32)
    return MapMatrix(sample("gaussian", 5, 700, 0, gamma=0.5), rows)


@pytest.fixture
def codes(features):
    """Their first 500, more than a chunk."""
    held = CodedColumns(features.shape[0], 1000, BOUND, features.dtype)
    held.replace(np.arange(0), features.columns(np.arange(500)))
    return held


def test_a_code_is_off_by_half_a_unit_at_most(features, codes):
    error = codes.columns(slice(None)).to_array() - features.to_array()[:, :500]
    assert np.abs(error).max() <= 1.001 * BOUND / 127 / 2
    assert features.bound == pytest.approx(BOUND)


def test_dropped_columns_make_room_for_others(features, codes):
    kept = np.arange(0, 500, 2)
    places = codes.replace(kept, features.columns(np.arange(500, 700)))
    assert codes.shape == (3000, 500)
    assert not set(places) & set(kept)
    found, wanted = codes.columns(slice(None)).to_array(), features.to_array()
    np.testing.assert_allclose(found[:, kept], wanted[:, kept], atol=0.006)
    np.testing.assert_allclose(found[:, places], wanted[:, 500:], atol=0.006)
    # fewer new columns than dropped ones
    free = np.setdiff1d(np.arange(500), [*kept, *places])
    assert len(free) == 50
    assert not found[:, free].any()


def test_products_are_those_of_the_codes(codes):
    rng, Z = np.random.default_rng(1), codes.columns(slice(None)).to_array().astype(np.float64)
    w, u = rng.normal(size=500), rng.normal(size=3000) * (rng.random(3000) < 0.5)
    np.testing.assert_allclose(codes.matvec(w), Z @ w, atol=1e-5 * np.abs(Z @ w).max())
    np.testing.assert_allclose(codes.rmatvec(u), Z.T @ u, atol=1e-5 * np.abs(Z.T @ u).max())
    np.testing.assert_array_equal(codes.rows([3, 1]).to_array(), Z[[3, 1]].astype(np.float32))


@pytest.mark.parametrize("bytes_only", [True, False])
@pytest.mark.parametrize("weights", ["hinge", "changed", "smooth"])
def test_gram_matrices_are_those_of_the_codes(codes, weights, bytes_only):
    """Enough products for those of bytes, unless another type is asked for."""
    if bytes_only and not coded.has_byte_products():
        pytest.skip("the processor has no products of bytes")
    rng = np.random.default_rng(2)
    of_rows = {
        "hinge": 2.0 * (rng.random(3000) < 0.7),
        "changed": rng.choice([-2.0, 0.0, 2.0], 3000),
        "smooth": rng.random(3000),
    }[weights]
    left, right = rng.permutation(500)[:430], np.arange(CHUNK - 20, CHUNK + 15)
    square, cross = codes.gram(left, right, of_rows, None if bytes_only else np.float64)
    Z = codes.columns(slice(None)).to_array().astype(np.float64)
    expected = (Z.T * of_rows) @ Z
    np.testing.assert_allclose(square, expected[np.ix_(left, left)], atol=0.01)
    np.testing.assert_allclose(cross, expected[np.ix_(left, right)], atol=0.01)


def test_gram_matrices_of_some_rows_estimate_those_of_all(features):
    some = CodedColumns(features.shape[0], 1000, BOUND, features.dtype, gram_rows=1000)
    some.replace(np.arange(0), features.columns(np.arange(50)))
    weights = some.gram_weights(np.ones(3000))
    assert np.count_nonzero(weights) == 1000
    assert weights.sum() == pytest.approx(3000)
    columns = np.arange(50)
    estimate = some.square(columns, weights)
    exact = some.square(columns, np.ones(3000))
    # entries have a standard error of 3000 sqrt(2 / 3 / 1000) at most
    assert np.abs(estimate - exact).max() < 5 * 3000 * np.sqrt(2 / 3 / 1000)


@pytest.mark.parametrize("loss", [Squared, SquaredHinge, Logistic])
@pytest.mark.parametrize("gram_rows", [2, 1000])
def test_rounds_of_codes_meet_the_tolerance_for_the_features(
    features, loss, gram_rows, monkeypatch, set_sizes
):
    set_sizes(greedy, _WORTH_MB=0, _GRAM_ROWS=gram_rows, _GRADIENT=100.0)
    drawn, replace = [], CodedColumns.replace

    def noted(codes, *given):
        drawn.append(len(codes.drawn))
        return replace(codes, *given)

    monkeypatch.setattr(CodedColumns, "replace", noted)
    score = np.random.default_rng(3).normal(size=3000) + features.to_array()[:, :5].sum(axis=1)
    y = score if loss is Squared else np.sign(score)
    solution = solve_rounds(features, y, 40.0, loss, Budget(tol=1e-6), rounds=2)
    # for each of 350 columns
    assert drawn == 2 * [min(3000, 350 * gram_rows)]
    assert solution.converged
    assert solution.trace[-1]["gap"] <= 1e-6 * solution.objective
    f = features.to_array().astype(np.float64) @ solution.coef
    objective = 40.0 * np.abs(solution.coef).sum() + loss.value(f, y).sum()
    assert solution.objective == pytest.approx(objective, rel=1e-6)
