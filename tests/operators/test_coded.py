"""Codes of features."""

import numpy as np
import pytest

from rfx import env
from rfx.losses import Logistic, SquaredHinge
from rfx.operators.coded import coded
from rfx.operators.matrix import DenseMatrix

RNG = np.random.default_rng(0)


def features(columns, largest=1.0, rows=600):
    return (largest * RNG.uniform(-1, 1, (rows, columns))).astype(np.float32)


def test_rows_of_zeros():
    Z = features(4)
    Z[10] = 0
    assert not coded(DenseMatrix(Z), np.int8).to_array()[10].any()


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_the_largest_entry_is_found_wherever_it_is(columns, kind):
    Z = features(columns, 0.5, rows=columns)
    np.fill_diagonal(Z, RNG.choice([-1.0, 1.0], columns))
    np.testing.assert_array_equal(
        np.abs(np.diag(coded(DenseMatrix(Z), kind).store.codes)), np.iinfo(kind).max
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
