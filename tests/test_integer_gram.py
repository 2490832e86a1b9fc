"""Gram matrices of 8-bit codes in whole numbers, against numpy's."""

import numpy as np
import pytest

from rfx import env
from rfx.operators import integer_gram
from rfx.operators.coded import coded
from rfx.operators.dense import DenseMatrix

pytestmark = pytest.mark.skipif(not integer_gram.available(), reason="this processor has no AVX-512 VNNI, nobody calls what is tested")
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("n", "left", "right"), [(5000, 130, None), (1025, 97, 51), (3, 49, 48), (4096, 1, 100), (2000, 48, 0), (0, 5, 7)])
def test_every_bit_is_numpys(n, left, right, threads, monkeypatch):
    monkeypatch.setattr(env, "threads", lambda: threads)
    codes = RNG.integers(-127, 128, (n + 10, left + (right or 0) + 7), dtype=np.int8)
    rows, numbers = RNG.permutation(n + 10)[:n], RNG.permutation(codes.shape[1])
    signs, columns = RNG.choice([-0.3, 2.0], n), (numbers[:left], numbers[left : left + (right or 0)])
    found = integer_gram.integer_gram(codes, rows, signs, columns[0], None if right is None else columns[1])
    own, other = (codes[np.ix_(rows, side)].astype(np.int64) for side in columns)
    weighted = own * np.where(signs > 0, 1, -1)[:, None]
    np.testing.assert_array_equal(found if right is None else found[0], weighted.T @ own)
    if right is not None:
        np.testing.assert_array_equal(found[1], weighted.T @ other)


@pytest.mark.parametrize("sign", [1, -1])
def test_32_bits_are_enough(sign):
    """The largest codes there are, in more rows than one sum of 32 bits holds."""
    codes = np.full((2 * 65_536 + 5, 50), 127, np.int8)
    codes[:, ::2] *= sign
    found = integer_gram.integer_gram(codes, np.arange(len(codes)), np.ones(len(codes)), np.arange(50))
    own = codes[0].astype(np.int64)
    np.testing.assert_array_equal(found, len(codes) * np.outer(own, own))


def test_factors_that_are_one():
    assert integer_gram.one_factor(np.array([2.0, -2.0, 1.999])) == pytest.approx(2.0, rel=1e-3)
    for factors in ([2.0, 1.9], [2.0, 0.0], [0.0], []):
        assert integer_gram.one_factor(np.array(factors)) is None


@pytest.mark.parametrize("right", [None, np.arange(300, 350)])
@pytest.mark.parametrize("weights", ["none", "signs", "any"])
def test_the_same_as_by_features(weights, right, monkeypatch):
    """Where weights are one number but for their signs in whole numbers, else as ever; by both ways the Gram matrix of the same codes."""
    phases = RNG.uniform(0, 2 * np.pi, (8000, 400))
    Z = coded(DenseMatrix(np.cos(phases).astype(np.float32)), np.int8)
    given = {"none": None, "signs": RNG.choice([0.0, 2.0, -2.0], 8000), "any": RNG.uniform(size=8000)}[weights]
    left, calls = np.arange(10, 290), []
    monkeypatch.setattr(integer_gram, "integer_gram", lambda *given, make=integer_gram.integer_gram: calls.append(1) or make(*given))
    own = Z.to_array().astype(np.float64)
    weighted = own[:, left] * (1.0 if given is None else given[:, None])
    found = Z.gram(left, right, given)
    assert len(calls) == (weights != "any")
    for part, side in zip([found] if right is None else found, [left, right]):
        expected = weighted.T @ own[:, side]
        np.testing.assert_allclose(part, expected, rtol=1e-3, atol=1e-4 * 8000)
    monkeypatch.setattr(integer_gram, "available", lambda: False)
    other = Z.gram(left, right, given)
    np.testing.assert_allclose(found[0], other[0], rtol=1e-3, atol=1e-4 * 8000)
    assert len(calls) == (weights != "any")
