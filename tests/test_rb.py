"""rb and sparse-rb: solvers against dense references, certificates, methods on small data."""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env, losses, methods
from rfx.errors import UsageError
from rfx.features.binning import sample_grids
from rfx.solvers.binned import BinnedFeatures
from rfx.solvers.binned_l2 import line_minimum, solve_binned_l2, solve_binned_ridge
from rfx.solvers.blocks import ArrayBlocks
from rfx.solvers.l2 import l2_certificate, solve_l2

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (400, 3))
VALUES = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.where(VALUES > 0.3, 1.0, -1.0)


def numbered(rows=X, n_grids=60, gamma=2.0):
    ids, bins = sample_grids("laplacian", rows.shape[1], n_grids, 0, gamma=gamma).number(rows)
    return BinnedFeatures(ids, bins.starts)


Z = numbered()
DENSE = Z.csr().toarray()


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
def test_ridge_agrees_with_a_direct_solution(lam):
    Y = np.column_stack([VALUES, LABELS, 3 + VALUES])
    solution = solve_binned_ridge(Z, Y, lam, tol=1e-12)
    expected = DENSE.T @ np.linalg.solve(DENSE @ DENSE.T + lam * np.eye(400), Y)
    np.testing.assert_allclose(solution.coef, expected, atol=1e-5)
    certificates = [l2_certificate(ArrayBlocks(DENSE), y, w, lam, losses.Squared) for y, w in zip(Y.T, solution.coef.T)]
    assert solution.objective == pytest.approx(sum(objective for objective, _ in certificates), rel=1e-9)
    assert solution.converged and solution.gap <= 1e-12 * solution.objective
    single = solve_binned_ridge(Z, Y[:, 0], lam, tol=1e-12)
    np.testing.assert_allclose(single.coef, solution.coef[:, 0], atol=1e-5)


def test_ridge_certificate_bounds_the_distance_to_the_optimum():
    best = solve_binned_ridge(Z, VALUES, 0.1, tol=1e-12).objective
    for tol in (1e-1, 1e-2, 1e-3):
        solution = solve_binned_ridge(Z, VALUES, 0.1, tol=tol)
        assert 0 <= solution.objective - best <= solution.gap <= tol * solution.objective
    short = solve_binned_ridge(Z, VALUES, 0.1, tol=1e-12, max_iter=3)
    assert not short.converged and short.n_iter == 3 and short.gap > 1e-12 * short.objective


@pytest.mark.parametrize("loss", [losses.SquaredHinge, losses.Logistic, losses.Squared])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_newton_agrees_with_the_dense_solver(loss, lam):
    solution = solve_binned_l2(Z, LABELS, lam, loss, tol=1e-8)
    expected = solve_l2(ArrayBlocks(DENSE), LABELS, lam, loss, tol=1e-9)
    assert solution.converged and 0 <= solution.gap <= 1e-8 * solution.objective
    assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
    objective, _ = l2_certificate(ArrayBlocks(DENSE), LABELS, solution.coef, lam, loss)
    assert objective == pytest.approx(solution.objective, rel=1e-9)


def test_warm_starts_stop_at_once_and_help():
    ridge = solve_binned_ridge(Z, VALUES, 0.1, tol=1e-6)
    assert solve_binned_ridge(Z, VALUES, 0.1, tol=1e-6, start=ridge.dual).n_iter == 0
    newton = solve_binned_l2(Z, LABELS, 0.1, losses.SquaredHinge, tol=1e-6)
    assert solve_binned_l2(Z, LABELS, 0.1, losses.SquaredHinge, tol=1e-6, start=newton.dual).n_iter == 0
    grown = numbered(n_grids=120)
    warm, cold = (solve_binned_ridge(grown, VALUES, 0.1, start=start) for start in (ridge.dual, None))
    assert warm.n_iter <= cold.n_iter


def test_solvers_are_the_same_for_any_number_of_threads():
    big = numbered(RNG.uniform(0, 1, (3000, 3)), 16)
    y = np.where(RNG.random(3000) < 0.4, 1.0, -1.0)
    results = []
    try:
        for threads in (1, 2):
            env.set_threads(threads)
            results.append((solve_binned_ridge(big, y, 1.0).coef, solve_binned_l2(big, y, 1.0, losses.SquaredHinge).coef))
    finally:
        env.set_threads(None)
    assert all(np.array_equal(a, b) for a, b in zip(*results))


def test_line_minimum():
    f, change = np.array([0.5, -2.0]), np.array([1.0, 1.0])
    t = line_minimum(losses.Squared, f, change, np.zeros(2), -3.0, 2.0)
    assert t == pytest.approx((3.0 + 1.5) / 4)


def test_solver_refusals():
    with pytest.raises(UsageError, match="lambda is 0"):
        solve_binned_ridge(Z, VALUES, 0)
    with pytest.raises(UsageError, match="there are 399 targets for 400 rows"):
        solve_binned_l2(Z, LABELS[1:], 1.0, losses.Logistic)
    with pytest.raises(UsageError, match="'hinge' is not smooth"):
        solve_binned_l2(Z, LABELS, 1.0, losses.Hinge)


def test_rb_approaches_the_exact_laplacian_kernel():
    kernel = methods.create("kernel", kernel="laplacian", gamma=1.5, lam=0.5, scaling="none").fit(X[:300], VALUES[:300])
    rb = methods.create("rb", gamma=1.5, lam=0.5, n_grids=4000, tol=1e-6, scaling="none").fit(X[:300], VALUES[:300])
    difference = kernel.decision_function(X[300:]) - rb.decision_function(X[300:])
    assert np.sqrt(np.mean(difference**2)) < 0.02


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "logistic"])
def test_rb_learns_classes(loss):
    rb = methods.create("rb", loss=loss, n_grids=100).fit(X[:300], LABELS[:300])
    assert rb.score(X[300:], LABELS[300:])["score"] > 0.85 and rb.info["loss"] == loss
    D = rb.info["n_features"]
    assert rb.info["kappa"] == D / 100 and rb.info["model_size"] == len(rb.coef) <= D
    assert rb.info["kernel_params"] == {"gamma": 1.0, "sigma": 1.0}


def test_rows_without_a_known_bin_get_zero():
    rb = methods.create("rb", scaling="none").fit(X, VALUES)
    assert np.all(rb.decision_function(X + 1e9) == 0)


def test_rb_reads_sparse_rows():
    rows = np.where(X > 0.5, X, 0.0)
    dense = methods.create("rb", scaling="none").fit(rows, LABELS)
    sparse = methods.create("rb", scaling="none").fit(sp.csr_matrix(rows), LABELS)
    assert np.array_equal(dense.coef, sparse.coef)
    assert np.array_equal(dense.decision_function(rows), sparse.decision_function(sp.csr_matrix(rows)))


def test_refusals():
    with pytest.raises(UsageError, match="--kernel is gaussian, of which there are no random binning features"):
        methods.create("rb", kernel="gaussian").fit(X, VALUES)
    with pytest.raises(UsageError, match="--lam is validation, which is for sparse-rf"):
        methods.create("rb", lam="validation").fit(X, VALUES)
    with pytest.raises(UsageError, match="--n-grids is 0"):
        methods.create("rb", n_grids=0)
