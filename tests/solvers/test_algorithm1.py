"""Algorithm 1 of Yen et al. (2014): both solvers against a literal, slow transcription, by
objective.
"""

import functools

import numpy as np
import pytest

from rfx import methods
from rfx.features import sample
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.operators.mapped import MapMatrix, SplitRows
from rfx.operators.matrix import DenseMatrix
from rfx.parallel import Late
from rfx.solvers.base import Budget
from rfx.solvers.l1 import greedy
from rfx.solvers.l1.greedy import in_parts, solve_rounds
from rfx.solvers.l1.newton import best_dual, solve_l1
from rfx.solvers.published.libraries import solve_liblinear

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


def little_memory(monkeypatch):
    """(computed features, targets, kinds of matrix that the rounds used)."""
    rows = np.random.default_rng(7).uniform(-1, 1, (2000, 4)).astype(np.float32)
    y = np.where(np.sin(4 * rows[:, 0]) + rows[:, 1] + 0.3 * rows[:, 2] > 0, 1.0, -1.0)
    kinds = []

    def watched(part, *args, **options):
        kinds.append(type(part))
        return solve_l1(part, *args, **options)

    monkeypatch.setattr(greedy, "solve_l1", watched)
    return MapMatrix(sample("gaussian", 4, 300, 0, gamma=1.0), rows), y, kinds


@pytest.mark.parametrize("loss", [Squared, SquaredHinge, Logistic])
def test_rounds_with_some_of_their_rows_in_memory(loss, monkeypatch):
    (A, y, kinds), lam = little_memory(monkeypatch), 2.0
    solution = solve_rounds(A, y, lam, loss, Budget(memory_mb=1.25), rounds=3)
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


def test_time_that_runs_out_before_the_gap_over_all_features_is_known(monkeypatch):
    A, y, _ = little_memory(monkeypatch)

    def late(*args):
        raise Late

    monkeypatch.setattr(greedy, "l1_certificate", late)
    solution = solve_rounds(A, y, 2.0, SquaredHinge, rounds=3)
    assert solution.status == "timeout"
    assert solution.coef.any()
    assert solution.objective == solution.trace[-1]["objective"] == solution.gap
