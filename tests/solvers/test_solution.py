"""Solutions and certificates of several outputs; how solvers begin, what they refuse, and how they
stop without reaching their tolerance.
"""

import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from rfx import losses
from rfx.errors import UsageError
from rfx.losses import Logistic, Squared, SquaredHinge
from rfx.operators.binned import BinnedMatrix
from rfx.operators.kernel import KernelMatrix
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.parallel import check_time
from rfx.solvers.base import Budget, Solution, stack
from rfx.solvers.kernel import solve_kernel_dense, solve_kernel_newton, solve_kernel_ridge
from rfx.solvers.l1.bins import solve_prcd, solve_rb_l1
from rfx.solvers.l1.greedy import solve_rounds
from rfx.solvers.l1.newton import solve_l1
from rfx.solvers.l2 import solve_dual_l2, solve_dual_ridge, solve_l2
from rfx.solvers.ridge import solve_ridge, solve_ridge_cg
from rfx.solvers.svm import solve_kernel_svm


def test_a_budget_says_what_ended_a_solver():
    budget = Budget(max_iter=5)
    ends = [budget.status(*end) for end in ((True, 5), (False, 5), (False, 4))]
    assert ends == ["converged", "max_iter", "budget"]
    past = Budget(deadline=time.monotonic() - 1)
    assert past.late() and past.spent(0)
    assert past.status(False, 0) == "timeout"
    assert past.remaining() == 0.01
    assert not Budget().late() and not Budget().spent(10**9)
    assert Budget().remaining() is None
    assert Budget(tol=1e-3).filled(tol=1.0, max_iter=7) == Budget(tol=1e-3, max_iter=7)


def made(objective, gap, status="converged"):
    return Solution(
        np.full(2, objective), objective, gap, 3, status, [{"iteration": 0, "gap": gap}]
    )


def test_outputs_are_summed_in_the_objective_and_in_the_certificate():
    both = stack([made(10.0, 1.0), made(5.0, 2.0)])
    assert (both.objective, both.gap, both.n_iter) == (
        15.0,
        3.0,
        6,
    )
    assert both.converged
    assert both.coef.tolist() == [[10.0, 5.0], [10.0, 5.0]]
    assert both.trace == [
        {"iteration": 0, "gap": 1.0, "output": 0},
        {"iteration": 0, "gap": 2.0, "output": 1},
    ]


def test_a_method_without_certificate_has_no_gap():
    both = stack([made(10.0, None), made(5.0, None)])
    assert both.gap is None
    assert both.objective == 15.0 and both.converged


def test_the_worst_end_of_the_outputs_is_that_of_all():
    assert stack([made(1.0, 0.0), made(1.0, 0.5, "max_iter")]).status == "max_iter"
    assert (
        stack([made(1.0, 0.3, "timeout"), made(1.0, 0.5, "max_iter"), made(1.0, 0.5)]).status
        == "timeout"
    )


@pytest.fixture(scope="module")
def problem():
    """Rows, and three outputs of numbers and of labels; features and bins that do not depend on the
    rows, and two kernels of them.
    """
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-1, 1, (400, 3)), rng.standard_normal((400, 20))
    ids = np.stack([rng.integers(0, 6, 400), rng.integers(0, 5, 400)]).astype(np.uint16)
    classes = np.stack([X[:, 0] > 0, X[:, 1] > 0.3, X[:, 2] > -0.5], axis=1)
    return SimpleNamespace(
        Y=np.column_stack([np.sin(3 * X[:, 0]), 100 * X[:, 1], np.ones(400)]),
        labels=np.where(classes, 1.0, -1.0),
        matrices={
            "features": DenseMatrix(Z),
            "bins": BinnedMatrix(ids, np.array([0, 6, 11])),
            "kernel": KernelMatrix("gaussian", X, {"gamma": 20.0}),
        },
        K=np.exp(-((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)),
    )


SOLVERS = {
    "ridge": lambda problem, Y, **limits: solve_ridge(
        problem.matrices["features"], Y, 1.0, budget=Budget(memory_mb=0.001, **limits)
    ),
    "ridge by plain conjugate gradients": lambda problem, Y, **limits: solve_ridge_cg(
        problem.matrices["features"], Y, 1.0, budget=Budget(**limits)
    ),
    "ridge in the span of the rows": lambda problem, Y, **limits: solve_dual_ridge(
        problem.matrices["bins"], Y, 0.1, budget=Budget(**limits)
    ),
    "kernel ridge": lambda problem, Y, **limits: solve_kernel_ridge(
        problem.matrices["kernel"], Y, 0.01, budget=Budget(memory_mb=0.001, **limits)
    ),
    "kernel in memory": lambda problem, Y, **limits: solve_kernel_dense(
        problem.K, Y, 0.1, losses.Logistic, Budget(**limits)
    ),
    "logistic loss, one by one": lambda problem, Y, **limits: stack(
        [
            solve_l2(problem.matrices["features"], y, 1.0, losses.Logistic, Budget(**limits))
            for y in Y.T
        ]
    ),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_objective_minus_gap_bounds_the_optimum_of_all_outputs_together(name, problem):
    solve = partial(SOLVERS[name], problem)
    of_labels = name in ("kernel in memory", "logistic loss, one by one")
    targets = problem.labels if of_labels else problem.Y
    rough, exact = solve(targets, max_iter=1), solve(targets, tol=1e-9)
    assert exact.converged and rough.status == "max_iter"
    assert rough.objective - rough.gap <= exact.objective * (1 + 1e-9)
    assert exact.objective <= rough.objective * (1 + 1e-9)
    # three equal outputs have three times the gap of one, whether they are solved together or one
    # by one; but each output starts at the solution of the one before
    if name != "ridge by plain conjugate gradients":
        same = targets[:, :1].repeat(3, axis=1)
        one, three = solve(same[:, :1], max_iter=1), solve(same, max_iter=1)
        assert three.gap == pytest.approx(3 * one.gap, rel=1e-6)
        assert three.objective == pytest.approx(3 * one.objective)


# (solver, matrix, loss)
CLASSIFYING = [
    (solve_l1, "features", losses.SquaredHinge),
    (solve_l2, "features", losses.Logistic),
    (solve_prcd, "features", losses.SquaredHinge),
    (solve_dual_l2, "bins", losses.Logistic),
    (solve_rb_l1, "bins", losses.Logistic),
    (solve_kernel_newton, "kernel", losses.Logistic),
    (solve_kernel_svm, "kernel", losses.Hinge),
]


def posed(problem, solve, matrix):
    """The matrix, and labels of three outputs, if the solver takes several, or else of one."""
    labels = problem.labels if solve is solve_kernel_newton else problem.labels[:, 0]
    return problem.matrices[matrix], labels


@pytest.mark.parametrize(("solve", "name", "loss"), CLASSIFYING)
def test_every_solver_refuses_other_labels(solve, name, loss, problem):
    matrix, labels = posed(problem, solve, name)
    with pytest.raises(UsageError, match=r"labels.*-1 and \+1"):
        solve(matrix, labels + 1, 1.0, loss)


@pytest.mark.parametrize(
    ("solve", "name", "loss"), [case for case in CLASSIFYING if case[1] != "kernel"]
)
def test_a_warm_start_from_the_solution_stops_at_once(solve, name, loss, problem):
    matrix, labels = posed(problem, solve, name)
    first = solve(matrix, labels, 0.5, loss, budget=Budget(tol=1e-6))
    assert first.converged and first.n_iter > 0
    start = getattr(first, "dual", first.coef)
    again = solve(matrix, labels, 0.5, loss, budget=Budget(tol=1e-5), warm=start)
    assert again.converged and again.n_iter == 0


def test_kernel_ridge_that_is_late_says_so(problem):
    late = Budget(deadline=time.monotonic() - 1, memory_mb=0.0)
    solution = solve_kernel_ridge(problem.matrices["kernel"], problem.Y, 1e-4, budget=late)
    assert solution.status == "timeout" and solution.gap > 0


@pytest.mark.parametrize(("solve", "name", "loss"), CLASSIFYING)
def test_what_ends_a_solver_is_said(solve, name, loss, problem):
    matrix, labels = posed(problem, solve, name)
    short = solve(matrix, labels, 0.1, loss, budget=Budget(tol=1e-14, max_iter=1, memory_mb=0.01))
    assert short.status == "max_iter" and short.gap > 1e-14 * short.objective
    late = solve(matrix, labels, 0.1, loss, budget=Budget(deadline=time.monotonic() - 1))
    assert late.status == "timeout" and late.n_iter == 0
    assert late.gap > 0 and np.isfinite(late.objective)


TIMED = {
    "l1": (solve_l1, SquaredHinge),
    "rounds": (solve_rounds, SquaredHinge),
    "l1 logistic": (solve_l1, Logistic),
    "l2": (solve_l2, SquaredHinge),
    "ridge": (lambda Z, y, lam, _, budget: solve_ridge(Z, y, lam, budget), Squared),
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


def slow_problem(n=4000, d=5, D=60, noise=1.0):
    random = np.random.default_rng(0)
    X, W = random.normal(size=(n, d)), random.normal(size=(d, D))
    y = np.where(
        np.tanh(X @ W) @ random.normal(size=D) + noise * random.normal(size=n) > 0, 1.0, -1.0
    )
    return X, W, y


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_a_deadline_in_the_middle_of_a_pass_is_kept_and_the_certificate_holds(name, seconds):
    solve, loss = TIMED[name]
    X, W, y = slow_problem()
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
    solve, loss = TIMED[name]
    X, W, y = slow_problem()
    Z = DenseMatrix(np.tanh(X @ W).astype(np.float32))
    solution = solve(Z, y, 2.0, loss, Budget(tol=1e-40, max_iter=10_000))
    assert solution.status in ("stalled", "budget") and solution.n_iter < 1000
    best = solve(DenseMatrix(Z.Z.astype(np.float64)), y, 2.0, loss, Budget(tol=1e-9)).objective
    assert solution.objective <= best * (1 + 1e-8)
