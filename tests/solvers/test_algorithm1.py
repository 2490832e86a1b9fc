"""Algorithm 1 of Yen et al. (2014): both solvers against a literal, slow transcription, by
objective.
"""

import functools

import numpy as np
import pytest

from rfx import methods
from rfx.features import sample
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.operators.cached import SplitRows
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.parallel import Late
from rfx.solvers.base import Budget
from rfx.solvers.l1 import algorithm1, round_features
from rfx.solvers.l1.algorithm1 import in_parts, solve_rounds
from rfx.solvers.l1.dual import best_dual
from rfx.solvers.l1.newton import solve_l1
from rfx.solvers.published.liblinear import solve_liblinear

LAM, ROUNDS = 5.0, 3
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (200, 3))
Y = np.where(np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * RNG.standard_normal(200) > 0.3, 1.0, -1.0)
Z = np.sqrt(2) * np.cos(X @ RNG.normal(0, 2, (3, 60)) + RNG.uniform(0, 2 * np.pi, 60))


def value(w, columns, loss):
    return LAM * np.abs(w).sum() + loss.value(Z[:, columns] @ w, Y).sum()


def minimise(columns, w, loss):
    """Coordinate descent with a bound on the curvature, until nothing moves; weights that are zero
    at the optimum are exactly zero.
    """
    f = Z[:, columns] @ w
    bounds = loss.curvature * (Z[:, columns] ** 2).sum(axis=0)
    for _ in range(20_000):
        moved = 0.0
        for j, column in enumerate(columns):
            free = w[j] - Z[:, column] @ loss.derivative(f, Y) / bounds[j]
            step = np.sign(free) * max(0.0, abs(free) - LAM / bounds[j]) - w[j]
            if step:
                w[j] += step
                f += step * Z[:, column]
                moved = max(moved, abs(step))
        if moved < 1e-6:
            return w
    raise AssertionError("the transcription did not converge")


@functools.cache
def literal(loss, rounds=ROUNDS):
    """(objective, features with a weight), as the paper prints the algorithm."""
    A, w = [], np.zeros(0)
    R = Z.shape[1] // rounds
    for t in range(rounds):
        A = A + list(range(t * R, (t + 1) * R))
        w = minimise(A, np.concatenate([w, np.zeros(R)]), loss)
        A, w = [h for h, weight in zip(A, w) if weight != 0], w[w != 0]
    return value(w, A, loss), A


def by_liblinear(A, y, lam, loss, budget, warm=None):
    return solve_liblinear(A, y, lam, loss, Budget(tol=1e-6), penalty="l1")


CASES = [(solve_l1, loss) for loss in (Squared, SquaredHinge, Logistic)] + [
    (in_parts(by_liblinear), loss) for loss in (SquaredHinge, Logistic)
]


def exactly(solve):
    """Every round to the same accuracy, as printed."""
    return lambda A, y, lam, loss, budget, warm: solve(A, y, lam, loss, Budget(tol=1e-9), warm)


@pytest.mark.parametrize(("solve", "loss"), CASES)
def test_the_answer_is_that_of_the_paper_and_its_certificate_is_over_all_features(solve, loss):
    objective, features = literal(loss)
    solution = solve_rounds(DenseMatrix(Z), Y, LAM, loss, rounds=ROUNDS, solve=exactly(solve))
    assert solution.objective == pytest.approx(objective, rel=1e-6)
    assert set(np.flatnonzero(np.abs(solution.coef) > 1e-3)) <= set(features)
    assert solution.objective == pytest.approx(
        value(solution.coef, range(Z.shape[1]), loss), rel=1e-9
    )
    # features that an early round dropped are needed at the end: the result is far from the optimum
    # over all, and the gap shows it
    best = literal(loss, rounds=1)[0]
    assert best * 1.001 < solution.objective <= best + solution.gap
    assert solution.trace[-1]["gap"] <= 1e-4 * solution.objective < solution.gap


def test_a_screen_only_orders_the_work():
    loss, seen = SquaredHinge, []

    def solve(A, y, lam, loss, budget, warm=None):
        seen.append(A.shape[1])
        return by_liblinear(A, y, lam, loss, budget)

    objective, _ = literal(loss, rounds=1)
    solution = in_parts(solve)(DenseMatrix(Z), Y, LAM, loss, Budget(), np.zeros(60))
    assert (
        solution.objective == pytest.approx(objective, rel=1e-6) and solution.relative_gap <= 1e-4
    )
    # one evaluation of the gradient at zero is not enough
    once = solve_liblinear(
        DenseMatrix(Z[:, np.abs(Z.T @ loss.derivative(np.zeros(200), Y)) > LAM]),
        Y,
        LAM,
        loss,
        Budget(tol=1e-6),
        penalty="l1",
    )
    assert once.objective > objective * 1.0005 and 1 < len(seen) < 5 and seen[0] < 60


def test_nothing_is_worth_a_weight():
    solution = in_parts(by_liblinear)(DenseMatrix(Z), Y, 1e4, SquaredHinge, Budget(), np.zeros(60))
    assert not solution.coef.any() and solution.gap == pytest.approx(0) and solution.converged
    assert solution.objective == pytest.approx(200)


def test_the_method_says_both_gaps():
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
        .fit(X, Y)
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


@pytest.mark.parametrize("codes", ["enough", "coarse", "some rows", "useless"])
@pytest.mark.parametrize("loss", [Squared, SquaredHinge, Logistic])
def test_rounds_on_codes_are_certified_by_the_features(loss, codes, monkeypatch):
    rows = np.random.default_rng(7).uniform(-1, 1, (2000, 4)).astype(np.float32)
    y = np.where(np.sin(4 * rows[:, 0]) + rows[:, 1] + 0.3 * rows[:, 2] > 0, 1.0, -1.0)
    A, lam, held, slopes = MapMatrix(sample("gaussian", 4, 300, 0, gamma=1.0), rows), 2.0, [], []
    split = []
    monkeypatch.setattr(
        round_features,
        "coded",
        lambda Z, kind, *room, make=round_features.coded: held.append(kind) or make(Z, kind, *room),
    )

    def watched(part, *given, slope=None, **more):
        slopes.append(slope)
        split.append(isinstance(part, SplitRows))
        return solve_l1(part, *given, slope=slope, **more)

    monkeypatch.setattr(algorithm1, "solve_l1", watched)
    monkeypatch.setattr(
        round_features.RoundFeatures,
        "_left",
        lambda self, n_columns: n_columns * (1500 if codes == "some rows" else 4000),
    )
    monkeypatch.setattr(round_features, "_GRADIENT", 1e-2 if codes == "enough" else 1e9)
    if codes == "useless":  # no correction gains as much
        monkeypatch.setattr(algorithm1, "_HALF", 0.0)
    solution = solve_rounds(A, y, lam, loss, Budget(memory_mb=1.25), rounds=3)
    exact = A.to_array().astype(np.float64)
    f = exact @ solution.coef
    objective = lam * np.abs(solution.coef).sum() + loss.value(f, y).sum()
    assert held and set(held) == {np.int16 if codes == "enough" else np.int8} and solution.converged
    assert (
        solution.objective == pytest.approx(objective, rel=1e-6) == solution.trace[-1]["objective"]
    )
    derivative = loss.derivative(f, y)
    assert solution.gap == pytest.approx(
        objective - best_dual(loss, derivative, y, lam, exact.T @ derivative)[0], rel=1e-3
    )
    assert solution.trace[-1]["gap"] <= 1e-4 * objective
    assert codes == "useless" or any(split) == (codes == "some rows")
    rounds, after = slopes[:3], [slope is not None for slope in slopes[3:]]
    assert rounds == [None] * 3 and (
        after == [False] if codes == "useless" else after and all(after)
    )
    plenty = solve_rounds(A, y, lam, loss, rounds=3)
    assert solution.objective == pytest.approx(plenty.objective, rel=1e-2)


def test_time_that_runs_out_while_a_round_is_set_right_leaves_the_weights_that_the_objective_is_of(
    monkeypatch,
):
    rows = np.random.default_rng(7).uniform(-1, 1, (2000, 4)).astype(np.float32)
    y = np.where(np.sin(4 * rows[:, 0]) + rows[:, 1] + 0.3 * rows[:, 2] > 0, 1.0, -1.0)
    A, starts, looks = MapMatrix(sample("gaussian", 4, 300, 0, gamma=1.0), rows), [], []

    def watched(part, y, lam, loss, budget, warm, **more):
        starts.append(warm)
        return solve_l1(part, y, lam, loss, budget, warm, **more)

    class Interrupted(algorithm1._At):
        def __init__(self, *given):
            looks.append(1)
            if len(looks) == 2:
                raise Late
            super().__init__(*given)

    monkeypatch.setattr(algorithm1, "solve_l1", watched)
    monkeypatch.setattr(algorithm1, "_At", Interrupted)
    monkeypatch.setattr(round_features, "_GRADIENT", 1e9)
    monkeypatch.setattr(
        round_features.RoundFeatures, "_left", lambda self, n_columns: n_columns * 4000
    )
    solution = solve_rounds(A, y, 2.0, SquaredHinge, Budget(memory_mb=1.25), rounds=3)
    assert len(looks) == 2 and len(starts) == 4 and solution.status == "timeout"
    # where the correction began, before it moved
    np.testing.assert_array_equal(
        np.sort(solution.coef[solution.coef != 0]), np.sort(starts[3][starts[3] != 0])
    )
    assert solution.objective == solution.trace[-1]["objective"] == solution.gap
