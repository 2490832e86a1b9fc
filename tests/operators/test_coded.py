"""Codes of features, with columns that are added and removed."""

import numpy as np
import pytest

from rfx import env
from rfx.losses import Logistic, SquaredHinge
from rfx.operators.coded import coded, recoded
from rfx.operators.matrix import DenseMatrix

RNG = np.random.default_rng(0)


def features(columns, largest=1.0, rows=600):
    return (largest * RNG.uniform(-1, 1, (rows, columns))).astype(np.float32)


@pytest.mark.parametrize("kind", [np.int8, np.int16])
@pytest.mark.parametrize("kept", [[], [0], [2, 3, 17, 39], list(range(40))], ids=len)
@pytest.mark.parametrize("more", [1, 5, 60])
def test_columns_that_stay_keep_their_codes(kind, kept, more):
    Z, new, kept = features(40), features(more, 0.5), np.array(kept, int)
    before = coded(DenseMatrix(Z), kind, 100)
    codes, units = before.store.codes.copy(), before.store.units.copy()
    after = recoded(before, kept, DenseMatrix(new))
    assert after.shape == (600, len(kept) + more)
    np.testing.assert_array_equal(after.store.codes[:, : len(kept)], codes[:, kept])
    np.testing.assert_array_equal(after.store.units, units)
    # rounding in float32 adds to half a unit of 16 bits
    error = np.abs(after.to_array()[:, len(kept) :] - new)
    assert (error <= 0.51 * units[:, None]).all()


def test_a_feature_too_large_for_its_rows_unit():
    Z, new = features(40), features(3, 0.5)
    new[599, 2] = 1.01 * np.abs(Z[599]).max()
    assert recoded(coded(DenseMatrix(Z), np.int8, 100), np.arange(20), DenseMatrix(new)) is None
    new[599, 2] = 1.0001 * np.abs(Z[599]).max()
    found = recoded(coded(DenseMatrix(Z), np.int8, 100), np.arange(20), DenseMatrix(new))
    assert found.store.codes[599, 22] in (127, -127)


def test_rows_of_zeros():
    Z = features(4)
    Z[10] = 0
    found = recoded(
        coded(DenseMatrix(Z), np.int8, 100),
        np.array([1]),
        DenseMatrix(np.zeros((600, 2), np.float32)),
    )
    assert not found.to_array()[10].any()
    assert (
        recoded(coded(DenseMatrix(Z), np.int8, 100), np.array([1]), DenseMatrix(features(2)))
        is None
    )


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_the_largest_entry_is_found_wherever_it_is(columns, kind):
    Z = features(columns, 0.5, rows=columns)
    np.fill_diagonal(Z, RNG.choice([-1.0, 1.0], columns))
    np.testing.assert_array_equal(
        np.abs(np.diag(coded(DenseMatrix(Z), kind).store.codes)), np.iinfo(kind).max
    )


def test_no_room_for_more_columns():
    before = coded(DenseMatrix(features(40)), np.int16, 45)
    assert recoded(before, np.arange(40), DenseMatrix(features(6, 0.5))) is None
    assert recoded(before, np.arange(40), DenseMatrix(features(5, 0.5))).shape == (600, 45)


def test_products_leave_the_room_alone():
    Z, w, u = features(40), RNG.standard_normal(40), RNG.standard_normal(600)
    roomy, plain = coded(DenseMatrix(Z), np.int8, 64), coded(DenseMatrix(Z), np.int8)
    roomy.store.codes[:, 40:] = 100
    np.testing.assert_array_equal(roomy.matvec(w), plain.matvec(w))
    np.testing.assert_array_equal(roomy.rmatvec(u), plain.rmatvec(u))
    np.testing.assert_array_equal(roomy.normal(w, np.abs(u)), plain.normal(w, np.abs(u)))
    np.testing.assert_array_equal(roomy.gram(np.arange(40)), plain.gram(np.arange(40)))
    np.testing.assert_array_equal(roomy.hold().to_array(), plain.to_array())
    np.testing.assert_array_equal(
        roomy.columns(slice(30, None)).to_array(), plain.to_array()[:, 30:]
    )


@pytest.mark.parametrize("kind", [np.int8, np.int16])
@pytest.mark.parametrize("loss", [SquaredHinge, Logistic])
@pytest.mark.parametrize("rows", [5, 1030, 5003])
def test_a_pass_with_value_and_gradient(kind, loss, rows):
    Z, w, y = (
        coded(DenseMatrix(features(40, rows=rows)), kind),
        RNG.standard_normal(40),
        RNG.choice([-1.0, 1.0], rows),
    )
    Z = Z.rows(np.sort(RNG.permutation(rows)[: rows - 2]))
    y, plain = y[: rows - 2], Z.to_array().astype(np.float64)
    F, value, gradient = Z.loss_pass(w, loss, y)
    np.testing.assert_allclose(F, plain @ w, rtol=0, atol=1e-5)
    assert value == pytest.approx(loss.value(plain @ w, y).sum(), rel=1e-6)
    np.testing.assert_allclose(
        gradient, plain.T @ loss.derivative(plain @ w, y), rtol=0, atol=1e-4 * np.sqrt(rows)
    )


def test_a_pass_is_the_same_by_any_number_of_threads(monkeypatch):
    Z, w, y = (
        coded(DenseMatrix(features(700, rows=4000)), np.int8),
        RNG.standard_normal(700),
        RNG.choice([-1.0, 1.0], 4000),
    )
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(env, "threads", lambda count=threads: count)
        found.append(Z.loss_pass(w, SquaredHinge, y))
    for F, value, gradient in found[1:]:
        np.testing.assert_array_equal(F, found[0][0])
        np.testing.assert_array_equal(gradient, found[0][2])
        assert value == found[0][1]
