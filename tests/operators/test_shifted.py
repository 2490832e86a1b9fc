"""Systems with one matrix and many diagonals, from one factor."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from rfx.operators.shifted import solve_shifted


def problem(n=120, k=3, condition=1e6, seed=0):
    """A semidefinite K with a decaying spectrum, and right-hand sides."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return (Q * np.geomspace(1, 1 / condition, n)) @ Q.T * 1000, rng.standard_normal((n, k))


@pytest.mark.parametrize("lams", [[1.0], [30.0, 1.0, 0.03], np.geomspace(1e-3, 1e3, 9)])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_agrees_with_a_factor_for_each(lams, columns):
    K, b = problem()
    b = b[:, :columns] if columns else b[:, 0]
    factor, calls = cho_factor(K + np.eye(len(K))), []
    solutions = solve_shifted(
        lambda v: calls.append(v) or cho_solve(factor, v), b, 1.0, lams, tol=1e-10
    )
    for lam, x in zip(lams, solutions, strict=True):
        exact = np.linalg.solve(K + lam * np.eye(len(K)), b)
        assert x.shape == b.shape
        assert np.linalg.norm(x - exact) <= 1e-6 * np.linalg.norm(exact)
    assert len(calls) <= len(K) + 6


def test_the_number_of_steps_grows_with_the_range():
    K, b = problem(n=400)
    factor = cho_factor(K + np.eye(len(K)))

    def steps(lams):
        calls = []
        solve_shifted(lambda v: calls.append(v) or cho_solve(factor, v), b, 1.0, lams, tol=1e-6)
        return len(calls)

    assert steps([1.0]) <= steps([0.5, 2.0]) <= steps([0.03, 30.0]) < 100


def test_zero_equal_and_single_columns():
    K, b = problem(n=5)
    factor = cho_factor(K + np.eye(5))
    b[:, 0], b[:, 2] = 0.0, b[:, 1]
    for x, lam in zip(
        solve_shifted(lambda v: cho_solve(factor, v), b, 1.0, [0.1, 10.0]), (0.1, 10.0), strict=True
    ):
        np.testing.assert_allclose(
            x, np.linalg.solve(K + lam * np.eye(5), b), rtol=1e-6, atol=1e-12
        )
    one = solve_shifted(lambda v: v / 3.0, np.array([6.0]), 1.0, [4.0])
    np.testing.assert_allclose(one[0], [1.0])


def test_a_lambda_below_the_rounding_of_the_factor_is_told():
    K, b = problem(n=60)
    wrong = K - 0.01 * np.eye(60)  # an indefinite matrix, as float32 sums may give
    factor = cho_factor(wrong + np.eye(60))
    small, fine = solve_shifted(lambda v: cho_solve(factor, v), b, 1.0, [0.005, 0.5])
    assert small is None and fine is not None


def test_the_limit_of_steps():
    K, b = problem()
    factor, calls = cho_factor(K + np.eye(len(K))), []
    (x,) = solve_shifted(
        lambda v: calls.append(v) or cho_solve(factor, v), b, 1.0, [100.0], max_steps=7
    )
    assert len(calls) == 8 and x.shape == b.shape
