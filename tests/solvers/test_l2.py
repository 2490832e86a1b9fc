"""Newton-CG for L2-regularised losses, and ridge: the certificate, references that share no code,
the closed form, degenerate inputs, and every path to the same weights.
"""

import time

import numpy as np
import pytest
from scipy.optimize import minimize

from rfx.features import sample
from rfx.losses import Hinge, Logistic, Squared, SquaredHinge
from rfx.operators.factors import Gram, choose_factor
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.solvers import l2, ridge
from rfx.solvers.base import Budget
from rfx.solvers.l2 import l2_certificate, solve_l2
from rfx.solvers.ridge import solve_ridge, solve_ridge_cg, solve_ridge_grid

LOSSES = [SquaredHinge, Logistic, Squared]


def gaussian_rows(n_rows, n_columns, outputs=(), seed=0, decay=0.0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_rows, n_columns)) * np.exp(-decay * np.arange(n_columns))
    Z = Z.astype(dtype)
    return Z, rng.standard_normal((n_rows, *outputs))


def make(n_rows, n_columns, seed=0, decay=0.0):
    Z, noise = gaussian_rows(n_rows, n_columns, (), seed, decay)
    return Z, np.where(Z[:, : n_columns // 2 + 1].sum(axis=1) + noise > 0, 1.0, -1.0)


def waves():
    """(map of 500 features, 2,000 rows, their labels)."""
    X = np.random.default_rng(6).uniform(-1, 1, (2000, 4)).astype(np.float32)
    y = np.where(np.sin(4 * X[:, 0]) + X[:, 1] + 0.3 * X[:, 2] > 0, 1.0, -1.0)
    return sample("gaussian", 4, 500, 0, gamma=1.0), X, y


def objective(Z, y, lam, loss, w):
    return 0.5 * lam * np.sum(w**2) + loss.value(Z.astype(np.float64) @ w, y).sum()


def reference(Z, y, lam, loss):
    """The minimum by scipy's quasi-Newton and Newton methods in float64."""
    Z = Z.astype(np.float64)

    def gradient(w):
        return lam * w + Z.T @ loss.derivative(Z @ w, y)

    def hessian(w):
        return lam * np.eye(Z.shape[1]) + (Z.T * loss.second_derivative(Z @ w, y)) @ Z

    def value(w):
        return objective(Z, y, lam, loss, w)

    start = minimize(
        value, np.zeros(Z.shape[1]), jac=gradient, method="L-BFGS-B", options={"maxiter": 2000}
    ).x
    found = minimize(
        value, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9}
    ).x
    assert np.linalg.norm(gradient(found)) ** 2 / (2 * lam) < 1e-10 * value(found)
    return found, value(found)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(250, 30), (30, 90), (1, 5), (9, 1)])
@pytest.mark.parametrize("lam", [1e-2, 1.0, 1e3])
def test_the_gap_bounds_the_suboptimality(loss, shape, lam):
    Z, y = make(*shape)
    w, best = reference(Z, y, lam, loss)
    for tol in (1e-1, 1e-4, 1e-9):
        solution = solve_l2(DenseMatrix(Z), y, lam, loss, Budget(tol=tol))
        assert solution.converged
        assert solution.gap <= tol * solution.objective
        assert -1e-9 * best <= solution.objective - best <= solution.gap + 1e-9 * best
        assert l2_certificate(DenseMatrix(Z), y, solution.coef, lam, loss) == pytest.approx(
            (solution.objective, solution.gap), rel=1e-6, abs=1e-12 * best
        )
    assert np.linalg.norm(solution.coef - w) <= np.sqrt(
        2 * solution.gap / lam
    ) * 1.01 + 1e-6 * np.linalg.norm(w)


@pytest.mark.parametrize("loss", [*LOSSES, Hinge])
def test_the_certificate_of_any_point_is_primal_minus_dual(loss):
    Z, y = make(60, 20)
    w = np.random.default_rng(3).standard_normal(20)
    lam = 0.7
    u = loss.clip_dual(loss.derivative(Z @ w, y), y)
    v = Z.astype(np.float64).T @ u
    dual = -loss.conjugate(u, y).sum() - v @ v / (2 * lam)
    value, gap = l2_certificate(DenseMatrix(Z), y, w, lam, loss)
    assert value == pytest.approx(objective(Z, y, lam, loss, w), rel=1e-9)
    assert gap == pytest.approx(value - dual, rel=1e-4)


def by_ridge(Z, y, lam, loss, budget):
    return solve_ridge(Z, y, lam, budget)


@pytest.mark.parametrize(
    ("solve", "loss"), [*((solve_l2, loss) for loss in LOSSES), (by_ridge, Squared)]
)
@pytest.mark.parametrize("shape", [(500, 60), (60, 500)])
@pytest.mark.parametrize(("limit", "decay", "lam"), [(1000.0, 0.2, 1e-3), (0.005, 0.3, 1e-4)])
def test_ill_conditioned_features(solve, loss, shape, limit, decay, lam):
    """With singular values from 20 to 1e-7, lambda is far below the rounding error of a float32
    Gram matrix.
    """
    Z, y = make(*shape, decay=decay)
    Z[:, 3] = Z[:, 2]
    Z[:, 6] = 0
    w, best = reference(Z, y, lam, loss)
    solution = solve(DenseMatrix(Z), y, lam, loss, Budget(tol=1e-6, memory_mb=limit))
    assert solution.converged
    assert best * (1 - 1e-9) <= solution.objective <= best + solution.gap + 1e-9 * best
    assert abs(solution.coef[6]) <= 1e-4
    # the objective grows at least as lam/2 ||w - w*||^2 around its minimum
    assert np.linalg.norm(solution.coef - w) <= np.sqrt(2 * solution.gap / lam) * 1.01 + 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("memory_mb", [0.25, 0.6, 1.5])
def test_features_held_as_codes_give_an_answer_that_the_features_certify(loss, memory_mb):
    feature_map, X, y = waves()
    Z, exact = (
        MapMatrix(feature_map, X, 500**-0.5),
        feature_map.transform(X).astype(np.float64) / np.sqrt(500),
    )
    expected = solve_l2(DenseMatrix(exact), y, 1.0, loss, Budget(tol=1e-7))
    # the last tolerance is below the resolution of 16-bit codes
    for tol in (1e-3, 1e-4, 1e-7):
        solution = solve_l2(Z, y, 1.0, loss, Budget(tol=tol, memory_mb=memory_mb))
        objective, gap = l2_certificate(DenseMatrix(exact), y, solution.coef, 1.0, loss)
        assert solution.converged and gap <= 1.01 * tol * objective
        assert solution.objective == pytest.approx(objective, rel=1e-6)
        # a gap of 1e-8 of the objective contains float32 rounding errors
        assert solution.gap == pytest.approx(
            gap, rel=1e-3, abs=0.0 if tol > 1e-7 else 5e-11 * objective
        )
        assert solution.gap == pytest.approx(
            l2_certificate(Z, y, solution.coef, 1.0, loss)[1], rel=1e-3
        )
        assert expected.objective * (1 - 1e-6) <= objective <= expected.objective * (1 + tol)


def test_time_is_kept_for_a_look_at_the_features(set_sizes):
    feature_map, X, y = waves()
    Z = MapMatrix(feature_map, X, 500**-0.5)
    set_sizes(l2, _KEPT=1e9)  # there is never enough of it for a step on all rows
    solution = solve_l2(
        Z,
        y,
        1.0,
        SquaredHinge,
        Budget(memory_mb=0.6, deadline=time.monotonic() + 600),
        np.full(500, 0.1),
    )
    found = l2_certificate(Z, y, solution.coef, 1.0, SquaredHinge)
    assert solution.status == "timeout" and np.all(solution.coef == 0.1)
    assert (solution.objective, solution.gap) == pytest.approx(found, rel=1e-6)


def uneven(n_rows=700, n_columns=1500):
    """Features whose Gram matrix is mostly one direction, like perceptrons with thresholds outside
    the data.
    """
    rng = np.random.default_rng(3)
    Z = (3 + 0.1 * rng.standard_normal((n_rows, n_columns))).astype(np.float32)
    return Z, np.where(Z[:, :100].sum(axis=1) - 300 + rng.standard_normal(n_rows) > 0, 1.0, -1.0)


@pytest.mark.slow
def test_lambda_below_the_rounding_of_a_float32_gram_matrix():
    """Its factor preconditions nothing: each direction takes 200 steps of conjugate gradients,
    without end. In float64 the slowest takes 16 to 23 on six such problems.
    """
    Z, y = uneven()
    assert np.finfo(np.float32).eps * np.linalg.norm(Z, 2) ** 2 > 2 * 0.3
    solution = solve_l2(DenseMatrix(Z), y, 0.3, SquaredHinge)
    value, gap = l2_certificate(
        DenseMatrix(Z.astype(np.float64)), y, solution.coef, 0.3, SquaredHinge
    )
    assert solution.converged and gap <= 1.1e-4 * value
    assert max(step["cg"] for step in solution.trace) < 50


@pytest.mark.slow
@pytest.mark.parametrize("loss", [SquaredHinge, Logistic])
@pytest.mark.parametrize("count", [2000, 5000])
def test_a_tiny_lambda_with_more_features_than_rows_of_the_first_subset(loss, count):
    """Squared hinge loss of a few interpolated rows takes a hundred steps from zero."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (count, 5)).astype(np.float32)
    y = np.where(np.sin(4 * X[:, 0]) + X[:, 1] + rng.standard_normal(count) > 0, 1.0, -1.0)
    Z = MapMatrix(sample("gaussian", 5, 1500, 0, gamma=4.0), X, 1500**-0.5).hold()
    solution = solve_l2(Z, y, 1e-4, loss)
    value, gap = l2_certificate(Z, y, solution.coef, 1e-4, loss)
    assert solution.converged
    assert solution.n_iter < 50
    assert gap <= 1.1e-4 * value


def closed_form(Z, Y, lam):
    Z = Z.astype(np.float64)
    return np.linalg.solve(Z.T @ Z + lam * np.eye(Z.shape[1]), Z.T @ Y)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (50, 50), (1, 7), (7, 1)])
@pytest.mark.parametrize("outputs", [(), (3,)])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e4])
def test_agrees_with_the_closed_form_and_the_gap_bounds_the_error(shape, outputs, lam):
    Z, Y = gaussian_rows(*shape, outputs)
    exact = closed_form(Z, Y, lam)
    best = objective(Z, Y, lam, Squared, exact)
    for tol in (1e-2, 1e-6, 1e-12):
        solution = solve_ridge(DenseMatrix(Z), Y, lam, budget=Budget(tol=tol))
        assert solution.converged
        assert solution.coef.shape == (shape[1], *outputs)
        assert solution.objective == pytest.approx(
            objective(Z, Y, lam, Squared, solution.coef), rel=1e-9
        )
        assert -1e-9 * best <= solution.objective - best <= solution.gap + 1e-9 * best
        assert solution.gap <= tol * solution.objective
    np.testing.assert_allclose(
        solution.coef, exact, rtol=0, atol=1e-4 * max(1.0, np.abs(exact).max())
    )


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
    (Z, Y), lams = gaussian_rows(*shape, outputs, decay=decay), [10.0, 0.03, 1.0, 0.1]
    solutions = solve_ridge_grid(DenseMatrix(Z), Y, lams, budget=Budget(1e-9, memory_mb=memory))
    for lam, solution in zip(lams, solutions, strict=True):
        exact = closed_form(Z, Y, lam)
        assert solution.converged
        assert solution.objective <= objective(Z, Y, lam, Squared, exact) * (1 + 1.01e-9)
        assert np.linalg.norm(solution.coef - exact) <= np.sqrt(2 * solution.gap / lam) * 1.001
    if memory is None:
        assert len({gram for gram, _ in made}) == 1
        assert [diagonal for _, diagonal in made] == lams


def test_targets_of_zero_have_coefficients_of_zero():
    Z, _ = gaussian_rows(30, 8)
    found = solve_ridge(DenseMatrix(Z), np.zeros(30), 1.0)
    assert found.converged and not found.coef.any()
    assert found.objective == 0


def test_features_of_zero_have_coefficients_of_zero():
    found = solve_ridge(DenseMatrix(np.zeros((30, 8), np.float32)), np.ones(30), 1.0)
    assert found.converged and not found.coef.any()
    assert found.objective == pytest.approx(15)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(700, 1500), (3000, 300)])
def test_ridge_with_a_lambda_below_the_rounding_of_a_float32_gram_matrix(shape):
    """It is mostly one direction; if there are fewer rows than columns, its float32 factor
    preconditions nothing.
    """
    rng = np.random.default_rng(3)
    Z = (10 + 0.1 * rng.standard_normal(shape)).astype(np.float32)
    y = Z[:, :50].sum(axis=1) - 500 + rng.standard_normal(shape[0])
    assert np.finfo(np.float32).eps * np.linalg.norm(Z, 2) ** 2 > 50 * 0.1
    solution = solve_ridge(DenseMatrix(Z), y, 0.1)
    best = objective(Z, y, 0.1, Squared, closed_form(Z, y, 0.1))
    assert (
        solution.converged
        and solution.n_iter < 20
        and solution.objective == pytest.approx(best, rel=2e-6)
    )


@pytest.mark.parametrize(("gamma", "lam", "direct"), [(0.3, 1.0, False), (30.0, 1e-4, True)])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_factor_of_some_rows_is_given_up_where_it_does_not_serve(
    gamma, lam, direct, outputs, monkeypatch, set_sizes
):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (1600, 5)).astype(np.float32)
    Y = rng.standard_normal((1600, *outputs)) + np.sin(3 * X[:, 0]).reshape(-1, *[1] * len(outputs))
    made = []
    monkeypatch.setattr(ridge, "_sampling_pays", lambda *_: True)
    set_sizes(ridge, _PATIENCE=12)
    monkeypatch.setattr(
        ridge, "choose_factor", lambda *args: made.append(args) or choose_factor(*args)
    )
    Z = sample("gaussian", 5, 1300, 0, gamma=gamma).transform(X) * np.float32(1300**-0.5)
    solution, _ = solve_ridge_grid(DenseMatrix(Z), Y, [lam, 2 * lam], budget=Budget(tol=1e-8))
    assert solution.converged
    best = objective(Z, Y, lam, Squared, closed_form(Z, Y, lam))
    assert best * (1 - 1e-9) <= solution.objective <= best + solution.gap + 1e-9 * best
    assert len(made) == direct


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (1, 7)])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_plain_conjugate_gradients_to_a_residual(shape, outputs):
    Z, Y = gaussian_rows(*shape, outputs, decay=0.02)
    lam = 0.1
    exact = closed_form(Z, Y, lam)
    wide = Z.astype(np.float64)
    for tol in (1e-2, 1e-6):
        solution = solve_ridge_cg(DenseMatrix(Z), Y, lam, budget=Budget(tol=tol))
        right = wide.T @ Y
        residual = right - wide.T @ (wide @ solution.coef) - lam * solution.coef
        assert solution.converged
        assert np.all(
            np.linalg.norm(residual, axis=0) <= 1.01 * tol * np.linalg.norm(right, axis=0)
        )
        assert solution.objective == pytest.approx(
            objective(Z, Y, lam, Squared, solution.coef), rel=1e-9
        )
        assert solution.gap == pytest.approx(np.sum(residual**2) / (2 * lam), rel=1e-5)
    np.testing.assert_allclose(solution.coef, exact, atol=1e-3 * np.abs(exact).max())


def test_plain_conjugate_gradients_start_where_the_output_before_ended():
    Z, Y = gaussian_rows(300, 60, (1,), decay=0.05)
    twice = solve_ridge_cg(DenseMatrix(Z), np.hstack([Y, Y, -Y]), 0.01)
    assert [entry["iteration"] for entry in twice.trace][1] == 0
    assert twice.trace[2]["iteration"] > 0 and twice.converged
    zero = solve_ridge_cg(DenseMatrix(Z), np.zeros((300, 2)), 0.01)
    assert zero.converged and zero.n_iter == 0 and not zero.coef.any()
