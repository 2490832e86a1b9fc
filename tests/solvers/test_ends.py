"""How solvers stop without reaching their tolerance: on time, in the middle of a pass over the
features, or when the objective stalls.
"""

import threading
import time

import numpy as np
import pytest

from rfx import env
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.parallel import Late, check_time, for_ranges, until
from rfx.solvers.base import Budget, Progress
from rfx.solvers.l1.algorithm1 import solve_rounds
from rfx.solvers.l1.newton import solve_l1
from rfx.solvers.l2 import solve_l2
from rfx.solvers.ridge import solve_ridge

SOLVERS = {
    "l1": (solve_l1, SquaredHinge),
    "rounds": (solve_rounds, SquaredHinge),
    "l1 logistic": (solve_l1, Logistic),
    "l2": (solve_l2, SquaredHinge),
    "ridge": (solve_ridge, Squared),
}


class SlowMap:
    """tanh(X W), 10 ms per block of rows."""

    dtype = np.dtype(np.float32)

    def __init__(self, W):
        self.W, self.n_features = W, W.shape[1]

    def transform(self, X, out):
        check_time()
        time.sleep(0.01)
        out[...] = np.tanh(X @ self.W)

    def select(self, index):
        return SlowMap(self.W[:, index])


def problem(n=4000, d=5, D=60, noise=1.0):
    random = np.random.default_rng(0)
    X, W = random.normal(size=(n, d)), random.normal(size=(d, D))
    y = np.where(
        np.tanh(X @ W) @ random.normal(size=D) + noise * random.normal(size=n) > 0, 1.0, -1.0
    )
    return X, W, y


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.5])
def test_a_deadline_in_the_middle_of_a_pass_is_kept_and_the_certificate_holds(name, seconds):
    solve, loss = SOLVERS[name]
    X, W, y = problem()
    Z = MapMatrix(SlowMap(W), X, block=20)  # two seconds per pass
    start = time.monotonic()
    solution = solve(Z, y, 2.0, loss, Budget(tol=1e-9, memory_mb=0.01, deadline=start + seconds))
    assert time.monotonic() - start < seconds + 3.0
    assert solution.status == "timeout"
    exact = np.tanh(X @ W).astype(np.float32).astype(np.float64)
    l1 = name.startswith(("l1", "rounds"))
    penalty = 2.0 * np.abs(solution.coef).sum() if l1 else 1.0 * solution.coef @ solution.coef
    np.testing.assert_allclose(
        solution.objective, penalty + loss.value(exact @ solution.coef, y).sum(), rtol=1e-5
    )
    best = (solve_l1 if l1 else solve)(DenseMatrix(exact), y, 2.0, loss, Budget(tol=1e-8)).objective
    assert solution.objective - solution.gap <= best * (1 + 1e-6)


@pytest.mark.parametrize("name", ["l1", "l1 logistic", "l2", "ridge"])
def test_an_objective_that_no_longer_moves_ends_it(name):
    solve, loss = SOLVERS[name]
    X, W, y = problem()
    Z = DenseMatrix(np.tanh(X @ W).astype(np.float32))
    solution = solve(Z, y, 2.0, loss, Budget(tol=1e-40, max_iter=10_000))
    assert solution.status in ("stalled", "budget") and solution.n_iter < 1000
    best = solve(DenseMatrix(Z.Z.astype(np.float64)), y, 2.0, loss, Budget(tol=1e-9)).objective
    assert solution.objective <= best * (1 + 1e-8)


def test_progress_counts_several_steps_together():
    progress = Progress(3, 1e-3)
    assert not any(progress(objective) for objective in (100.0, 99.0, 98.98, 98.97))
    assert progress(98.96) and progress.stalled
    moving = Progress(2, 1e-3)
    assert not any(moving(100.0 * 0.99**k) for k in range(20))


def test_late_is_raised_only_within_and_only_after_the_deadline():
    with until(time.monotonic() + 60):
        assert for_ranges(lambda a, b: b - a, 4, parts=2) == [2, 2]
        with until(None):
            check_time()
    with until(0.0):
        with pytest.raises(Late):
            for_ranges(lambda a, b: None, 4)
        with until(None):
            check_time()
    check_time()


def test_little_work_is_not_shared_out():
    here = lambda a, b: threading.current_thread() is threading.main_thread()
    env.set_threads(2)
    assert (
        for_ranges(here, 4, work=10) == [True]
        and for_ranges(here, 4, parts=3, work=10) == [True] * 3
    )
    # each part waits for the other, so two threads are at work
    both = threading.Barrier(2)
    meet = lambda a, b: both.wait(60) >= 0 and threading.get_ident()
    assert len(set(for_ranges(meet, 4, work=10**9))) == 2 == len(set(for_ranges(meet, 4)))
