"""Ridge: the certificate, the closed form, and every path to the same weights."""

import numpy as np
import pytest

from rfx.features import sample
from rfx.operators.factors import Gram, choose_factor
from rfx.operators.matrix import DenseMatrix
from rfx.solvers import ridge
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge, solve_ridge_cg, solve_ridge_grid


def make(n_rows, n_columns, outputs=(), seed=0, decay=0.0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_rows, n_columns)) * np.exp(-decay * np.arange(n_columns))
    Z = Z.astype(dtype)
    return Z, rng.standard_normal((n_rows, *outputs))


def objective(Z, Y, lam, W):
    return 0.5 * lam * np.sum(W**2) + 0.5 * np.sum((Z.astype(np.float64) @ W - Y) ** 2)


def reference(Z, Y, lam):
    Z = Z.astype(np.float64)
    return np.linalg.solve(Z.T @ Z + lam * np.eye(Z.shape[1]), Z.T @ Y)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (50, 50), (1, 7), (7, 1)])
@pytest.mark.parametrize("outputs", [(), (3,)])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e4])
def test_agrees_with_the_closed_form_and_the_gap_bounds_the_error(shape, outputs, lam):
    Z, Y = make(*shape, outputs)
    exact = reference(Z, Y, lam)
    best = objective(Z, Y, lam, exact)
    for tol in (1e-2, 1e-6, 1e-12):
        solution = solve_ridge(DenseMatrix(Z), Y, lam, budget=Budget(tol=tol))
        assert solution.converged
        assert solution.coef.shape == (shape[1], *outputs)
        assert solution.objective == pytest.approx(objective(Z, Y, lam, solution.coef), rel=1e-9)
        assert -1e-9 * best <= solution.objective - best <= solution.gap + 1e-9 * best
        assert solution.gap <= tol * solution.objective
    np.testing.assert_allclose(
        solution.coef, exact, rtol=0, atol=1e-4 * max(1.0, np.abs(exact).max())
    )


@pytest.mark.parametrize("shape", [(400, 60), (60, 400)])
@pytest.mark.parametrize("limit", [1000.0, 0.005])
def test_ill_conditioned_features_need_the_correction_and_get_it(shape, limit):
    # singular values from 20 to 1e-7, lambda far below the rounding error of a float32 Gram matrix
    Z, Y = make(*shape, decay=0.3)
    Z[:, 5] = Z[:, 4]
    Z[:, 7] = 0
    lam = 1e-4
    exact = reference(Z, Y, lam)
    best = objective(Z, Y, lam, exact)
    solution = solve_ridge(DenseMatrix(Z), Y, lam, budget=Budget(tol=1e-6, memory_mb=limit))
    assert solution.converged
    assert best * (1 - 1e-9) <= solution.objective <= best + solution.gap + 1e-9 * best
    assert abs(solution.coef[7]) <= 1e-4
    # the objective grows at least as lam/2 ||w - w*||^2 around its minimum
    assert np.linalg.norm(solution.coef - exact) <= np.sqrt(2 * solution.gap / lam) * 1.001


@pytest.mark.parametrize(
    ("shape", "decay", "memory"),
    [
        ((600, 500), 0.05, None),
        ((200, 30), 0.05, None),
        ((30, 200), 0.05, None),
        ((400, 60), 0.3, 0.005),
    ],
)
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_grid_of_lambdas_has_one_gram_matrix_and_the_solutions_of_each(
    shape, decay, memory, outputs, monkeypatch
):
    """Without the memory for a factor there is none."""
    made, factor = [], Gram.factor

    def watched(self, diagonal):
        made.append((self, diagonal))
        return factor(self, diagonal)

    monkeypatch.setattr(Gram, "factor", watched)
    (Z, Y), lams = make(*shape, outputs, decay=decay), [10.0, 0.03, 1.0, 0.1]
    solutions = solve_ridge_grid(DenseMatrix(Z), Y, lams, budget=Budget(1e-9, memory_mb=memory))
    for lam, solution in zip(lams, solutions, strict=True):
        exact = reference(Z, Y, lam)
        assert solution.converged
        assert solution.objective <= objective(Z, Y, lam, exact) * (1 + 1.01e-9)
        assert np.linalg.norm(solution.coef - exact) <= np.sqrt(2 * solution.gap / lam) * 1.001
    if memory is None:
        assert len({gram for gram, _ in made}) == 1
        assert [diagonal for _, diagonal in made] == lams


@pytest.mark.parametrize(
    ("Z", "Y", "objective"),
    [(make(30, 8)[0], np.zeros(30), 0), (np.zeros((30, 8), np.float32), np.ones(30), 15)],
)
def test_degenerate_targets_and_features(Z, Y, objective):
    found = solve_ridge(DenseMatrix(Z), Y, 1.0)
    assert found.converged and not found.coef.any()
    assert found.objective == pytest.approx(objective)


@pytest.mark.parametrize("shape", [(700, 1500), (3000, 300)])
def test_lambda_below_the_rounding_of_a_float32_gram_matrix(shape):
    """It is mostly one direction; if there are fewer rows than columns, its float32 factor
    preconditions nothing.
    """
    rng = np.random.default_rng(3)
    Z = (10 + 0.1 * rng.standard_normal(shape)).astype(np.float32)
    y = Z[:, :50].sum(axis=1) - 500 + rng.standard_normal(shape[0])
    assert np.finfo(np.float32).eps * np.linalg.norm(Z, 2) ** 2 > 50 * 0.1
    solution = solve_ridge(DenseMatrix(Z), y, 0.1)
    best = objective(Z, y, 0.1, reference(Z, y, 0.1))
    assert (
        solution.converged
        and solution.n_iter < 20
        and solution.objective == pytest.approx(best, rel=2e-6)
    )


@pytest.mark.parametrize(("gamma", "lam", "direct"), [(0.3, 1.0, False), (30.0, 1e-4, True)])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_factor_of_some_rows_is_given_up_where_it_does_not_serve(
    gamma, lam, direct, outputs, monkeypatch
):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (1600, 5)).astype(np.float32)
    Y = rng.standard_normal((1600, *outputs)) + np.sin(3 * X[:, 0]).reshape(-1, *[1] * len(outputs))
    made = []
    monkeypatch.setattr(ridge, "_sampling_pays", lambda *_: True)
    monkeypatch.setattr(ridge, "_PATIENCE", 12)
    monkeypatch.setattr(
        ridge, "choose_factor", lambda *args: made.append(args) or choose_factor(*args)
    )
    Z = sample("gaussian", 5, 1300, 0, gamma=gamma).transform(X) * np.float32(1300**-0.5)
    solution, _ = solve_ridge_grid(DenseMatrix(Z), Y, [lam, 2 * lam], budget=Budget(tol=1e-8))
    assert solution.converged
    best = objective(Z, Y, lam, reference(Z, Y, lam))
    assert best * (1 - 1e-9) <= solution.objective <= best + solution.gap + 1e-9 * best
    assert len(made) == direct


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (1, 7)])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_plain_conjugate_gradients_to_a_residual(shape, outputs):
    Z, Y = make(*shape, outputs, decay=0.02)
    lam = 0.1
    exact = reference(Z, Y, lam)
    wide = Z.astype(np.float64)
    for tol in (1e-2, 1e-6):
        solution = solve_ridge_cg(DenseMatrix(Z), Y, lam, budget=Budget(tol=tol))
        right = wide.T @ Y
        residual = right - wide.T @ (wide @ solution.coef) - lam * solution.coef
        assert solution.converged
        assert np.all(
            np.linalg.norm(residual, axis=0) <= 1.01 * tol * np.linalg.norm(right, axis=0)
        )
        assert solution.objective == pytest.approx(objective(Z, Y, lam, solution.coef), rel=1e-9)
        assert solution.gap == pytest.approx(np.sum(residual**2) / (2 * lam), rel=1e-5)
    np.testing.assert_allclose(solution.coef, exact, atol=1e-3 * np.abs(exact).max())


def test_plain_conjugate_gradients_start_where_the_output_before_ended():
    Z, Y = make(300, 60, (1,), decay=0.05)
    twice = solve_ridge_cg(DenseMatrix(Z), np.hstack([Y, Y, -Y]), 0.01)
    assert [entry["iteration"] for entry in twice.trace][1] == 0
    assert twice.trace[2]["iteration"] > 0 and twice.converged
    zero = solve_ridge_cg(DenseMatrix(Z), np.zeros((300, 2)), 0.01)
    assert zero.converged and zero.n_iter == 0 and not zero.coef.any()
