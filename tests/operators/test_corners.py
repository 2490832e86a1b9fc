"""Rows and columns of square matrices."""

import numpy as np
import pytest

from rfx.operators.corners import corner, keep_corner

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1, 7, 1500])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_corner_is_what_numpy_gives(size, share):
    M = RNG.standard_normal((size, size))
    chosen = np.flatnonzero(RNG.random(size) <= share)
    wanted = M[np.ix_(chosen, chosen)]
    np.testing.assert_array_equal(corner(M, chosen), wanted)
    np.testing.assert_array_equal(corner(M[:, :], chosen[::-1]), wanted[::-1, ::-1])
    np.testing.assert_array_equal(
        corner(M[: size // 2, : size // 2], chosen[chosen < size // 2]),
        M[np.ix_(*2 * [chosen[chosen < size // 2]])],
    )
    keep_corner(M, chosen)
    np.testing.assert_array_equal(M[: len(chosen), : len(chosen)], wanted)
