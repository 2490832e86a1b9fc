"""The L1 solver: a correct duality gap, agreement with independent solvers, degenerate inputs,
every kind of input. Algorithm 1 of Yen et al. (2014) against a literal, slow transcription.
Parallel randomised coordinate descent over bins and over Fourier features.
"""

import functools
import time
from types import SimpleNamespace

import numpy as np
import pytest

from rfx import env, methods
from rfx.errors import DataError
from rfx.features import sample
from rfx.features.binning import sample_grids
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.operators.binned import BinnedMatrix
from rfx.operators.mapped import MapMatrix, SplitRows
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1 import newton
from rfx.solvers.l1 import quadratic as quadratic_solver
from rfx.solvers.l1.bins import solve_prcd
from rfx.solvers.l1.greedy import in_parts, solve_rounds
from rfx.solvers.l1.newton import best_dual, lambda_max, path_l1, solve_l1
from rfx.solvers.l1.quadratic import (
    hinge_interior_point,
    interior_point,
    residual,
    solve_quadratic,
)
from rfx.solvers.published.libraries import solve_liblinear

LOSSES = [Squared, SquaredHinge, Logistic]


def make(n_rows, n_columns, loss, seed=0, dtype=np.float64):
    """Correlated columns, of which a few matter."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_rows, 3))
    Z = (
        0.7 * common @ rng.standard_normal((3, n_columns))
        + rng.standard_normal((n_rows, n_columns))
    ).astype(dtype)
    truth = np.zeros(n_columns)
    truth[: min(5, n_columns)] = [1.0, -1.0, 0.5, 2.0, -0.3][:n_columns]
    score = Z @ truth + 0.5 * rng.standard_normal(n_rows)
    return Z, (score if loss is Squared else np.where(score > 0, 1.0, -1.0))


def fourier(n_rows, n_columns, n_inputs=3, seed=0, dtype=np.float32):
    """Nearly dependent Fourier features, and labels that they can't quite separate."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_inputs))
    Z = np.sqrt(2) * np.cos(
        X @ rng.normal(size=(n_inputs, n_columns)) * 2 + rng.uniform(0, 2 * np.pi, n_columns)
    )
    y = np.where(np.sin(3 * X).sum(axis=1) + 0.5 * rng.standard_normal(n_rows) > 0, 1.0, -1.0)
    return Z.astype(dtype), y


def objective(Z, y, lam, loss, w):
    return lam * np.abs(w).sum() + loss.value(np.asarray(Z, np.float64) @ w, y).sum()


def lower_bound(Z, y, lam, loss, w):
    """The dual value at the scaled derivative, from the definition."""
    Z = np.asarray(Z, np.float64)
    u = loss.derivative(Z @ w, y)
    u = u * min(1.0, lam / max(np.abs(Z.T @ u).max(), 1e-300))
    return -loss.conjugate(loss.clip_dual(u, y), y).sum()


def reference(Z, y, lam, loss):
    """Accelerated proximal gradient with restarts in float64, until its own gap is 1e-10 of the
    objective.
    """
    Z = np.asarray(Z, np.float64)
    step = 1.0 / (loss.curvature * np.linalg.norm(Z, 2) ** 2)
    w = v = np.zeros(Z.shape[1])
    t = 1.0
    for turn in range(200_000):
        moved = v - step * (Z.T @ loss.derivative(Z @ v, y))
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * lam, 0.0)
        if (v - new) @ (new - w) > 0:
            t, v = 1.0, w
            continue
        t_new = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        v = new + (t - 1) / t_new * (new - w)
        w, t = new, t_new
        if turn % 50 == 0:
            value = objective(Z, y, lam, loss, w)
            if value - lower_bound(Z, y, lam, loss, w) <= 1e-10 * value:
                return w, value
    raise AssertionError("the reference did not converge")


def check_kkt(Z, y, lam, loss, w, tol):
    g = np.asarray(Z, np.float64).T @ loss.derivative(np.asarray(Z, np.float64) @ w, y)
    assert np.all(np.abs(g) <= lam * (1 + tol))
    used = w != 0
    assert np.all(np.abs(g[used] + lam * np.sign(w[used])) <= lam * tol)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(80, 20), (25, 70), (1, 4), (6, 1)])
@pytest.mark.parametrize("fraction", [0.02, 0.3])
def test_gap_bounds_the_suboptimality(loss, shape, fraction):
    Z, y = make(*shape, loss)
    lam = fraction * lambda_max(DenseMatrix(Z), y, loss)
    _, best = reference(Z, y, lam, loss)
    for tol in (1e-1, 1e-3, 1e-8):
        solution = solve_l1(DenseMatrix(Z), y, lam, loss, Budget(tol=tol))
        assert solution.converged
        assert solution.gap <= tol * solution.objective
        assert solution.objective == pytest.approx(
            objective(Z, y, lam, loss, solution.coef), rel=1e-12
        )
        assert solution.objective >= best * (1 - 1e-9)
        values = [entry["objective"] for entry in solution.trace]
        assert all(after <= before * (1 + 1e-12) for before, after in zip(values, values[1:]))
        # the gap is honest at every step
        assert all(step["objective"] - best <= step["gap"] + 1e-9 * best for step in solution.trace)
    check_kkt(Z, y, lam, loss, solution.coef, 1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearly_dependent_features(loss, dtype):
    Z, y = fourier(1500, 400, dtype=dtype)
    solution = solve_l1(DenseMatrix(Z), y, 0.5, loss, Budget(tol=1e-6))
    assert solution.converged
    gap = objective(Z, y, 0.5, loss, solution.coef) - lower_bound(Z, y, 0.5, loss, solution.coef)
    assert gap <= 2e-6 * solution.objective
    check_kkt(Z, y, 0.5, loss, solution.coef, 1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_lambda_max_separates_zero_from_something(loss):
    Z, y = make(50, 20, loss)
    lam = lambda_max(DenseMatrix(Z), y, loss)
    above = solve_l1(DenseMatrix(Z), y, lam * 1.0001, loss)
    assert not above.coef.any() and above.n_iter == 0 and above.converged
    assert solve_l1(DenseMatrix(Z), y, lam * 0.99, loss, Budget(tol=1e-8)).coef.any()
    far = solve_l1(DenseMatrix(Z), y, lam * 10, loss, Budget(tol=1e-10), warm=np.ones(20))
    assert not far.coef.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_duplicates_and_zero_columns(loss):
    Z, y = make(80, 15, loss)
    lam = 0.05 * lambda_max(DenseMatrix(Z), y, loss)
    best = solve_l1(DenseMatrix(Z), y, lam, loss, Budget(tol=1e-9))
    wide = np.hstack([Z, np.zeros((80, 3)), Z, -Z[:, :4]])
    solution = solve_l1(DenseMatrix(wide), y, lam, loss, Budget(tol=1e-9))
    assert solution.converged
    assert solution.objective == pytest.approx(best.objective, rel=1e-8)
    assert not solution.coef[15:18].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_all_zero_features_and_no_columns(loss):
    y = np.array([1.0, -1.0, 1.0])
    for Z in (np.zeros((3, 4)), np.zeros((3, 0))):
        solution = solve_l1(DenseMatrix(Z), y, 1.0, loss)
        assert solution.converged and not solution.coef.any() and len(solution.coef) == Z.shape[1]
    assert lambda_max(DenseMatrix(np.zeros((3, 0))), y, loss) == 0.0


@pytest.mark.parametrize("loss", [SquaredHinge, Logistic])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_all_labels_equal(loss, label):
    Z, y = make(60, 12, loss)[0], np.full(60, label)
    solution = solve_l1(DenseMatrix(Z), y, 0.5, loss, Budget(tol=1e-8))
    assert solution.converged
    assert solution.objective == pytest.approx(reference(Z, y, 0.5, loss)[1], rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_small_working_set_gets_there_too(loss, monkeypatch):
    Z, y = make(150, 80, loss)
    lam = 0.01 * lambda_max(DenseMatrix(Z), y, loss)
    expected = solve_l1(DenseMatrix(Z), y, lam, loss, Budget(tol=1e-6))
    assert np.count_nonzero(expected.coef) > 20
    monkeypatch.setattr(newton, "largest_working_set", lambda memory_mb: 20)
    small = solve_l1(DenseMatrix(Z), y, lam, loss, Budget(tol=1e-4, max_iter=3000))
    assert small.converged
    assert max(entry["working"] for entry in small.trace) <= 20
    assert small.objective == pytest.approx(expected.objective, rel=3e-6)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.usefixtures("shared_out")
def test_threads_change_nothing_but_rounding(loss, order, by_threads):
    Z, y = fourier(3000, 300)
    Z = DenseMatrix(np.asarray(Z, order=order))
    one, two = by_threads(lambda: solve_l1(Z, y, 2.0, loss, Budget(tol=1e-8)))
    np.testing.assert_allclose(one.coef, two.coef, atol=1e-5)
    assert one.objective == pytest.approx(two.objective, rel=1e-9)


def quadratic(k=60, rank=25, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank, k)) * np.geomspace(1, 1e-3, rank)[:, None]
    return A.T @ A, A.T @ rng.standard_normal(rank) * 3


@pytest.mark.parametrize("lam", [0.01, 1.0, 1e3])
def test_small_quadratic(lam):
    """solve_quadratic as a whole, and the interior-point method alone, on a singular Hessian."""
    H, c = quadratic()
    x, q = np.zeros(60), c.copy()
    solve_quadratic(H, q, x, lam, 1e-6)
    assert residual(H, q, x, lam) <= 1e-6
    assert residual(H, H @ x + c, x, lam) <= 1e-5
    x2, _ = interior_point(H, c, np.zeros(60), lam, lambda x, q: residual(H, q, x, lam) <= 1e-5)
    value = [lam * np.abs(v).sum() + c @ v + 0.5 * v @ H @ v for v in (x, x2)]
    assert value[0] == pytest.approx(value[1], abs=1e-6 * (1 + abs(value[0])))


@pytest.mark.parametrize("form", ["float32", "computed", "path"])
@pytest.mark.parametrize("lam", [1e-2, 1e-5])
def test_separable_classes_and_a_small_lam(form, lam):
    """Where Newton steps shrink to thousandths."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(220, 10)).astype(np.float32)
    y = np.where(np.sin(4 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(220) > 1, 1.0, -1.0)
    computed = MapMatrix(sample("gaussian", 10, 400, 0, gamma=1.0), X)
    Z = computed.to_array()
    features = {"float32": DenseMatrix(Z), "computed": computed, "path": DenseMatrix(Z)}[form]
    if form == "path":
        solutions = path_l1(features, y, [1.0, 1e-1, lam], SquaredHinge)
        assert all(point.converged for point in solutions)
    solution = solutions[-1] if form == "path" else solve_l1(features, y, lam, SquaredHinge)
    assert solution.converged and solution.n_iter < 60
    wide = Z.astype(np.float64)
    value = objective(wide, y, lam, SquaredHinge, solution.coef)
    assert solution.objective == pytest.approx(value, rel=1e-9)
    x, alpha = hinge_interior_point(DenseMatrix(wide), y, np.zeros(400), lam, 1e-9)
    assert np.abs(wide.T @ (y * alpha)).max() <= lam * (1 + 1e-9) and alpha.min() >= 0
    best = objective(wide, y, lam, SquaredHinge, x)
    assert best - (alpha.sum() - alpha @ alpha / 4) <= 1e-9 * best
    assert best * (1 - 1e-9) <= value <= best * (1 + 1.01e-4)


def test_indefinite_by_noise(monkeypatch):
    """Negative eigenvalues of the size that float32 sums produce: few factorisations, a lower
    value, and the Hessian unchanged.
    """
    H, c = quadratic(k=200, rank=120)
    noise = np.random.default_rng(1).standard_normal(H.shape)
    H += 1e-5 * np.diagonal(H).max() * (noise + noise.T)
    assert np.linalg.eigvalsh(H)[0] < -1e-5 * np.diagonal(H).max()
    before, x, q = H.copy(), np.zeros(200), c.copy()
    factored, positive = [], quadratic_solver.positive
    monkeypatch.setattr(quadratic_solver, "positive", lambda A: factored.append(A) or positive(A))
    solve_quadratic(H, q, x, 0.01, 1e-4)
    assert len(factored) < 40
    np.testing.assert_array_equal(H, before)
    assert 0.01 * np.abs(x).sum() + c @ x + 0.5 * x @ H @ x < -1.0


def test_gram_of_scaled_signs_is_exact():
    """Columns of +-s and weights of 0 and 2: float32 products are sums of integers."""
    rng = np.random.default_rng(0)
    signs = np.where(rng.random((5000, 40)) < 0.3, -1.0, 1.0)
    scales = rng.random(40).astype(np.float32) + np.float32(0.1)
    rows = np.flatnonzero(rng.random(5000) < 0.7)
    weights = np.zeros(5000)
    weights[rows] = 2.0
    square, cross = DenseMatrix((signs * scales).astype(np.float32)).gram(
        np.arange(30), np.arange(30, 40), weights
    )
    wide = scales.astype(np.float64)
    expected = 2.0 * wide[:, None] * wide * (signs[rows].T @ signs[rows])
    np.testing.assert_allclose(square, expected[:30, :30], rtol=1e-14)
    np.testing.assert_allclose(cross, expected[:30, 30:], rtol=1e-14)


@pytest.mark.parametrize("Z, y, loss, start", [
    (np.ones((20, 1)), np.ones(20), SquaredHinge, [2.0]),
    (np.ones((20, 1)), np.ones(20), SquaredHinge, [1.0]),
    (np.ones((20, 1)), np.repeat([1.0, -1.0], [15, 5]), Logistic, [50.0]),
    (np.ones((20, 1)), np.repeat([1.0, -1.0], [15, 5]), Logistic, [-5000.0]),
    (np.c_[np.ones(20), np.zeros(20)], np.arange(20.0), Squared, [0.0, 1.0]),
])  # fmt: skip
def test_starts_without_curvature(Z, y, loss, start):
    solution = solve_l1(DenseMatrix(Z), y, 1.0, loss, warm=np.array(start))
    assert solution.converged
    plain = solve_l1(DenseMatrix(Z), y, 1.0, loss)
    assert solution.objective == pytest.approx(plain.objective, rel=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factor", [1.5, 10.0, 1e3])
def test_starts_far_beyond_the_margin(loss, factor):
    Z, y = make(100, 300, loss)
    largest = lambda_max(DenseMatrix(Z), y, loss)
    hardly_penalised = solve_l1(DenseMatrix(Z), y, 1e-4 * largest, loss).coef
    lam = 0.05 * largest
    solution = solve_l1(DenseMatrix(Z), y, lam, loss, warm=factor * hardly_penalised)
    assert solution.converged
    plain = solve_l1(DenseMatrix(Z), y, lam, loss)
    assert solution.objective == pytest.approx(plain.objective, rel=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite(loss, value):
    Z, y = make(50, 5, loss)
    Z[3, 2] = value
    with pytest.raises(DataError, match="not finite"):
        solve_l1(DenseMatrix(Z), y, 1.0, loss)


@pytest.mark.parametrize("lam", [1e-3, 1e-4])
def test_float32_features_and_a_small_lam(lam):
    """The noise of float32 products exceeds the smallest eigenvalues: small matrices are in
    float64, others once a step shows it.
    """
    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(300)
    for n_features in (600, 1000):
        feature_map = sample("gaussian", 3, n_features, 0, gamma=2.0)
        Z = feature_map.transform(X.astype(np.float32))
        solution = solve_l1(DenseMatrix(Z), y, lam, Squared, Budget(max_iter=60))
        assert solution.converged
    assert solution.objective == pytest.approx(
        solve_l1(DenseMatrix(Z.astype(np.float64)), y, lam, Squared).objective, rel=2e-4
    )


LAM, ROUNDS = 5.0, 3


@pytest.fixture(scope="module")
def waves():
    """Rows, labels with noise, and Fourier features of the rows."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (200, 3))
    values = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.standard_normal(200)
    Z = np.sqrt(2) * np.cos(X @ rng.normal(0, 2, (3, 60)) + rng.uniform(0, 2 * np.pi, 60))
    return SimpleNamespace(X=X, y=np.where(values > 0.3, 1.0, -1.0), Z=Z)


@pytest.fixture(scope="module")
def literal(waves):
    """A function from loss and rounds to (objective, features with a weight), as the paper prints
    the algorithm.
    """

    @functools.cache
    def solved(loss, rounds=ROUNDS):
        A, R = [], waves.Z.shape[1] // rounds
        for t in range(rounds):
            A = A + list(range(t * R, (t + 1) * R))
            w, value = reference(waves.Z[:, A], waves.y, LAM, loss)
            A = [h for h, weight in zip(A, w) if weight != 0]
        return value, A

    return solved


def by_liblinear(A, y, lam, loss, budget, warm=None):
    return solve_liblinear(A, y, lam, loss, Budget(tol=1e-6), penalty="l1")


CASES = [*((solve_l1, loss) for loss in LOSSES), (in_parts(by_liblinear), SquaredHinge)]


def exactly(solve):
    """Every round to the same accuracy, as printed."""
    return lambda A, y, lam, loss, budget, warm: solve(A, y, lam, loss, Budget(tol=1e-9), warm)


@pytest.mark.slow
@pytest.mark.parametrize(("solve", "loss"), CASES)
def test_the_answer_is_that_of_the_paper_and_its_certificate_is_over_all_features(
    solve, loss, literal, waves
):
    Z, y = waves.Z, waves.y
    expected, features = literal(loss)
    solution = solve_rounds(DenseMatrix(Z), y, LAM, loss, rounds=ROUNDS, solve=exactly(solve))
    assert solution.objective == pytest.approx(expected, rel=1e-6)
    assert set(np.flatnonzero(np.abs(solution.coef) > 1e-3)) <= set(features)
    assert solution.objective == pytest.approx(objective(Z, y, LAM, loss, solution.coef), rel=1e-9)
    # features that an early round dropped are needed at the end: the result is far from the optimum
    # over all, and the gap shows it
    best = literal(loss, rounds=1)[0]
    assert best * 1.001 < solution.objective <= best + solution.gap
    assert solution.trace[-1]["gap"] <= 1e-4 * solution.objective < solution.gap


def test_the_method_says_both_gaps(waves):
    fitted = [
        methods.create(
            "sparse-rf",
            gamma=2.0,
            n_features=120,
            lam=LAM,
            rounds=rounds,
            tol=1e-6,
            loss="logistic",
        )
        .fit(waves.X, waves.y)
        .info
        for rounds in (1, 6)
    ]
    assert fitted[0]["gap"] <= 1e-6 * fitted[0]["objective"]
    assert (
        fitted[1]["round_gap"] <= 1e-6 * fitted[1]["objective"] < fitted[1]["gap"]
        and fitted[1]["converged"]
    )
    assert (
        fitted[1]["objective"] - fitted[1]["gap"] <= fitted[0]["objective"] < fitted[1]["objective"]
    )


def computed_features():
    """Features that are computed when they are used, and targets."""
    rows = np.random.default_rng(7).uniform(-1, 1, (2000, 4)).astype(np.float32)
    y = np.where(np.sin(4 * rows[:, 0]) + rows[:, 1] + 0.3 * rows[:, 2] > 0, 1.0, -1.0)
    return MapMatrix(sample("gaussian", 4, 300, 0, gamma=1.0), rows), y


@pytest.mark.parametrize("loss", [Squared, SquaredHinge, Logistic])
def test_rounds_with_some_of_their_rows_in_memory(loss):
    (A, y), lam, kinds = computed_features(), 2.0, []

    def solve(part, *given):
        kinds.append(type(part))
        return solve_l1(part, *given)

    solution = solve_rounds(A, y, lam, loss, Budget(memory_mb=1.25), rounds=3, solve=solve)
    exact = A.to_array().astype(np.float64)
    f = exact @ solution.coef
    derivative = loss.derivative(f, y)
    objective = lam * np.abs(solution.coef).sum() + loss.value(f, y).sum()
    bound = best_dual(loss, derivative, y, lam, exact.T @ derivative)[0]
    assert SplitRows in kinds
    assert solution.converged
    assert solution.objective == pytest.approx(objective, rel=1e-6)
    assert solution.gap == pytest.approx(objective - bound, rel=1e-3)
    plenty = solve_rounds(A, y, lam, loss, rounds=3)
    assert solution.objective == pytest.approx(plenty.objective, rel=1e-2)


def test_time_that_runs_out_before_the_gap_over_all_features_is_known():
    """It runs out in the first round, or while its result is reported."""
    A, y = computed_features()
    budget = Budget(deadline=time.monotonic() + 0.5)

    def wait(entry, coef):
        while not budget.late():
            time.sleep(0.01)

    solution = solve_rounds(A, y, 2.0, SquaredHinge, budget, callback=wait, rounds=3)
    assert solution.status == "timeout"
    assert solution.coef.any()
    assert solution.objective == solution.trace[-1]["objective"] == solution.gap


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).uniform(0, 1, (400, 3))


@pytest.fixture(scope="module")
def numbers(rows):
    """Targets of a regression on the rows."""
    return np.sin(6 * rows[:, 0]) + rows[:, 1] * rows[:, 2]


@pytest.fixture(scope="module")
def labels(numbers):
    """Two classes of the rows."""
    return np.where(numbers > 0.3, 1.0, -1.0)


@pytest.fixture(scope="module")
def bins(rows):
    ids, bins = sample_grids("laplacian", 3, 60, 0, gamma=2.0).number(rows)
    return BinnedMatrix(ids, bins.starts)


@pytest.fixture(scope="module")
def fourier_features(rows):
    return MapMatrix(sample("laplacian", 3, 120, 0, gamma=2.0), rows)


@pytest.fixture(scope="module")
def array():
    """50 features that do not depend on the rows."""
    return DenseMatrix(np.random.default_rng(1).standard_normal((400, 50)))


@pytest.fixture(params=[1, 4])
def threads(request):
    env.set_threads(request.param)
    yield request.param
    env.set_threads(None)


@pytest.mark.parametrize("features", ["bins", "fourier_features", "array"])
@pytest.mark.parametrize("loss", LOSSES)
def test_prcd_reaches_the_optimum_with_any_number_of_threads(
    loss, features, threads, request, numbers, labels
):
    Z, y = request.getfixturevalue(features), numbers if loss is Squared else labels
    lam = 0.1 * lambda_max(Z, y, loss)
    expected = solve_l1(Z, y, lam, loss, Budget(tol=1e-7))
    solution = solve_prcd(Z, y, lam, loss, Budget(tol=1e-4, max_iter=5000))
    assert solution.converged and 0 <= solution.gap <= 1e-4 * solution.objective
    assert (
        0
        <= solution.objective - expected.objective + 1e-7 * expected.objective
        <= solution.gap + 2e-7 * expected.objective
    )


def test_the_trace_has_the_objective_of_every_pass(threads, bins, labels):
    budget = Budget(tol=1e-9, max_iter=25)
    solution = solve_prcd(bins, labels, 0.05, SquaredHinge, budget)
    assert (
        [entry["iteration"] for entry in solution.trace] == list(range(26))
        and solution.n_iter == 25
        and not solution.converged
    )
    values = np.array([entry["objective"] for entry in solution.trace])
    assert np.all(values[1:] <= values[:-1] * (1 + 1e-9)) and values[-1] == solution.objective
    assert [entry["iteration"] for entry in solution.trace if "gap" in entry] == [0, 10, 20, 25]
    seconds = [entry["pass_seconds"] for entry in solution.trace]
    assert seconds == sorted(seconds) and seconds[0] == 0


def test_a_pass_is_one_exact_sweep_by_one_thread(array, numbers):
    lam, w, f = 0.3, np.zeros(50), np.zeros(400)
    Z = array.Z
    env.set_threads(1)
    solution = solve_prcd(array, numbers, lam, Squared, Budget(max_iter=1), seed=7)
    for j in np.random.Generator(np.random.Philox(7)).permutation(50):
        norm = Z[:, j] @ Z[:, j]
        free = w[j] - Z[:, j] @ (f - numbers) / norm
        step = np.sign(free) * max(0.0, abs(free) - lam / norm) - w[j]
        w[j] += step
        f += step * Z[:, j]
    np.testing.assert_allclose(solution.coef, w, atol=1e-12)


def test_steps_of_several_threads_that_add_up_to_too_much_are_taken_back(rng):
    # equal columns: two threads that each move one at the same time go twice as far as they should
    column = rng.standard_normal((3000, 1))
    Z = DenseMatrix(np.repeat(column, 64, axis=1))
    y = column[:, 0] + 0.1 * rng.standard_normal(3000)
    env.set_threads(4)
    solution = solve_prcd(Z, y, 1.0, Squared, Budget(tol=1e-6, max_iter=200))
    values = [entry["objective"] for entry in solution.trace]
    assert solution.converged and all(b <= a * (1 + 1e-9) for a, b in zip(values, values[1:]))


def test_nothing_is_left_by_a_large_lambda_or_of_features_that_are_zero(
    bins, fourier_features, array, labels
):
    for Z in (bins, fourier_features, array):
        largest = lambda_max(Z, labels, SquaredHinge)
        zero = solve_prcd(Z, labels, 1.001 * largest, SquaredHinge)
        assert zero.n_iter == 0
        assert not zero.coef.any()
    empty = DenseMatrix(np.zeros((400, 3)))
    assert not solve_prcd(empty, labels, 1e-3, SquaredHinge).coef.any()


@pytest.mark.parametrize(
    ("name", "size"), [("sparse-rf", {"n_features": 60}), ("sparse-rb", {"n_grids": 30})]
)
def test_the_methods_solve_the_same_problem_by_prcd(name, size, threads, rows, labels):
    options = {
        "kernel": "laplacian",
        "gamma": 2.0,
        "lam": 20.0 if name == "sparse-rf" else 2.0,
    } | size
    prcd = methods.create(name, solver="prcd", max_iter=20_000, tol=1e-3, **options).fit(
        rows, labels
    )
    own = methods.create(
        name, tol=1e-6, **options | ({"rounds": 1} if name == "sparse-rf" else {})
    ).fit(rows, labels)
    assert prcd.info["converged"] and prcd.info["objective"] == pytest.approx(
        own.info["objective"], rel=2e-3
    )
    assert (
        prcd.trace[-1]["objective"] == prcd.info["objective"]
        and prcd.info["model_size"] <= prcd.info["n_features"]
    )
