"""Gap-safe screening in the L1 solver: never a column that matters, most of the others, whatever the design."""

import numpy as np
import pytest
from scipy import sparse
from test_l1 import LOSSES, Recomputed, check_kkt, fourier, make, reference

from rfx.losses import Squared
from rfx.operators.columns import as_design
from rfx.solvers.l1.dual import GapSafeScreen, best_dual
from rfx.solvers.l1.newton import lambda_max, solve_l1


def sphere(Z, y, lam, loss, w):
    """(Z' u, gap, objective) of the dual point that belongs to w."""
    direction = loss.derivative(Z @ w, y)
    value, s = best_dual(loss, direction, y, lam, Z.T @ direction)
    objective = lam * np.abs(w).sum() + loss.value(Z @ w, y).sum()
    return s * (Z.T @ direction), objective - value, objective


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fraction", [0.05, 0.5])
def test_excludes_none_that_matters_and_most_others(loss, fraction):
    Z, y = make(120, 200, loss)
    lam = fraction * lambda_max(Z, y, loss)
    best, _ = reference(Z, y, lam, loss)
    correlations, _, _ = sphere(Z, y, lam, loss, best)
    matters = (best != 0) | (np.abs(correlations) > lam * (1 - 1e-7))
    rng = np.random.default_rng(0)
    sizes = []
    for distance in (1.0, 1e-1, 1e-2, 1e-3, 0.0):
        near = best + distance * np.abs(best).max() * rng.standard_normal(len(best))
        screen = GapSafeScreen(as_design(Z), lam, loss)
        remaining = screen.remaining(*sphere(Z, y, lam, loss, near), len(best))
        assert set(np.flatnonzero(matters)) <= set(remaining)
        sizes.append(len(remaining))
    assert sizes[0] == len(best)
    assert sizes[-1] <= np.count_nonzero(matters) + 0.1 * len(best)


def test_what_is_excluded_once_stays_so():
    Z, y = make(120, 200, Squared)
    lam = 0.5 * lambda_max(Z, y, Squared)
    best, _ = reference(Z, y, lam, Squared)
    screen = GapSafeScreen(as_design(Z), lam, Squared)
    first = screen.remaining(*sphere(Z, y, lam, Squared, best), 100)
    assert len(first) < 100
    correlations, gap, objective = sphere(Z, y, lam, Squared, np.zeros(200))
    np.testing.assert_array_equal(screen.remaining(correlations, gap, objective, 100), first)
    assert screen.remaining(correlations, gap, objective, len(first) - 1) is None


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("features", [make, fourier])
def test_solver_with_screening_meets_the_optimality_conditions(loss, features, monkeypatch):
    excluded = []
    remaining = GapSafeScreen.remaining

    def watched(self, *arguments):
        columns = remaining(self, *arguments)
        excluded.append(columns is not None)
        return columns

    monkeypatch.setattr(GapSafeScreen, "remaining", watched)
    Z, y = make(500, 300, loss) if features is make else fourier(1000, 300, dtype=np.float64)
    lam = 0.3 * lambda_max(Z, y, loss)
    for blocks in (Z, np.asfortranarray(Z), sparse.csc_matrix(Z), Recomputed(Z)):
        excluded.clear()
        solution = solve_l1(blocks, y, lam, loss, tol=1e-12)
        assert any(excluded)
        assert solution.converged
        check_kkt(Z, y, lam, loss, solution.coef, 1e-5)
        correlations, gap, objective = sphere(Z, y, lam, loss, solution.coef)
        assert np.abs(correlations).max() <= lam * (1 + 1e-12)
        assert gap <= 2e-12 * objective


def test_zero_columns_do_not_matter():
    Z, y = make(200, 100, Squared)
    Z[:, 10:] = 0.0
    solution = solve_l1(Z, y, 0.1 * lambda_max(Z, y, Squared), Squared, tol=1e-12)
    assert solution.converged
    assert not solution.coef[10:].any()


@pytest.mark.parametrize("columns", [np.arange(30), np.array([0, 7, 29]), np.array([], int)])
def test_norms_of_every_design(columns):
    Z, _ = make(2100, 30, Squared, dtype=np.float32)
    expected = np.linalg.norm(Z.astype(np.float64)[:, columns], axis=0)
    for blocks in (Z, np.asfortranarray(Z), sparse.csr_matrix(Z), Recomputed(Z)):
        np.testing.assert_allclose(as_design(blocks).norms(columns), expected, rtol=1e-12)
