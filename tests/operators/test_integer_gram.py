"""Gram matrices of 8-bit codes in integers, against numpy's."""

import numpy as np
import pytest

from rfx import env
from rfx.operators import integer_gram
from rfx.operators.coded import coded
from rfx.operators.matrix import DenseMatrix

vnni = pytest.mark.skipif(
    not integer_gram.available(),
    reason="no AVX-512 VNNI here, or numba makes code for another processor",
)
RNG = np.random.default_rng(0)


@vnni
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("n", "left", "right"),
    [(5000, 130, None), (1025, 97, 51), (3, 49, 48), (4096, 1, 100), (2000, 48, 0), (0, 5, 7)],
)
def test_every_bit_is_numpys(n, left, right, threads, monkeypatch):
    monkeypatch.setattr(env, "threads", lambda: threads)
    codes = RNG.integers(-127, 128, (n + 10, left + (right or 0) + 7), dtype=np.int8)
    rows, numbers = RNG.permutation(n + 10)[:n], RNG.permutation(codes.shape[1])
    signs, columns = (
        RNG.choice([-0.3, 2.0], n),
        (numbers[:left], numbers[left : left + (right or 0)]),
    )
    found = integer_gram.integer_gram(
        codes, rows, signs, columns[0], None if right is None else columns[1]
    )
    own, other = (codes[np.ix_(rows, side)].astype(np.int64) for side in columns)
    weighted = own * np.where(signs > 0, 1, -1)[:, None]
    np.testing.assert_array_equal(found if right is None else found[0], weighted.T @ own)
    if right is not None:
        np.testing.assert_array_equal(found[1], weighted.T @ other)


@vnni
@pytest.mark.parametrize("sign", [1, -1])
def test_32_bits_are_enough(sign):
    """The largest codes, in more rows than a 32-bit sum holds."""
    codes = np.full((2 * 65_536 + 5, 50), 127, np.int8)
    codes[:, ::2] *= sign
    found = integer_gram.integer_gram(
        codes, np.arange(len(codes)), np.ones(len(codes)), np.arange(50)
    )
    own = codes[0].astype(np.int64)
    np.testing.assert_array_equal(found, len(codes) * np.outer(own, own))


def test_factors_that_are_one():
    assert integer_gram.one_factor(np.array([2.0, -2.0, 1.999])) == pytest.approx(2.0, rel=1e-3)
    for factors in ([2.0, 1.9], [2.0, 0.0], [0.0], []):
        assert integer_gram.one_factor(np.array(factors)) is None


@pytest.mark.parametrize("here", [pytest.param(True, marks=vnni), False])
@pytest.mark.parametrize("right", [None, np.arange(300, 350)])
@pytest.mark.parametrize("weights", ["none", "signs", "any", "none, in float64"])
def test_codes_take_whole_numbers_where_one_factor_will_do(weights, right, here, monkeypatch):
    """If all weights have one absolute value and no type is requested; otherwise in floats. Both
    ways give the same Gram matrix.
    """
    phases = RNG.uniform(0, 2 * np.pi, (8000, 400))
    Z = coded(DenseMatrix(np.cos(phases).astype(np.float32)), np.int8)
    given = {"signs": RNG.choice([0.0, 2.0, -2.0], 8000), "any": RNG.uniform(size=8000)}.get(
        weights
    )
    left, calls, make = np.arange(10, 290), [], integer_gram.integer_gram
    monkeypatch.setattr(
        integer_gram, "integer_gram", lambda *given: calls.append(1) or make(*given)
    )
    monkeypatch.setattr(integer_gram, "available", lambda: here)
    own = Z.store.codes * Z.store.units[:, None].astype(np.float64)
    weighted = own[:, left] * (1.0 if given is None else given[:, None])
    exact = "float64" in weights
    found = Z.gram(left, right, given, np.float64 if exact else None)
    assert len(calls) == (here and weights in ("none", "signs"))
    for part, side in zip([found] if right is None else found, [left, right]):
        np.testing.assert_allclose(
            part,
            weighted.T @ own[:, side],
            rtol=1e-9 if exact else 1e-3,
            atol=1e-6 if exact else 0.8,
        )
