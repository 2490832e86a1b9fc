"""Triangular systems against scipy's."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from rfx.operators.triangular import solve_rows

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 63, 130])
@pytest.mark.parametrize("m", [1, 63, 64, 65, 200])
def test_rows_by_the_lower_triangle(n, m, dtype):
    B = RNG.standard_normal((m, 2 * m))
    # the upper part is not read
    L = np.asfortranarray(np.linalg.cholesky(B @ B.T).astype(dtype)) + np.triu(
        np.full((m, m), np.nan, dtype), 1
    )
    K = RNG.standard_normal((n, m)).astype(dtype)
    expected = solve_triangular(
        np.tril(np.nan_to_num(L)).astype(np.float64), K.T.astype(np.float64), lower=True
    ).T
    solve_rows(L, K)
    np.testing.assert_allclose(
        K, expected, rtol=0, atol=200 * np.finfo(dtype).eps * np.abs(expected).max()
    )


def test_no_columns():
    K = np.empty((3, 0))
    solve_rows(np.empty((0, 0)), K)
    assert K.shape == (3, 0)
