"""Stochastic solvers: against literal transcriptions, exact optima and duals; unbiased steps;
decay; checkpoints.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env
from rfx.errors import UsageError
from rfx.features import sample
from rfx.features.base import GrowingMap
from rfx.losses import get_loss
from rfx.solvers.stochastic.doubly import Blocks, DoublySGD
from rfx.solvers.stochastic.gradient import (
    Descent,
    Norma,
    Pegasos,
    StepSizeSchedule,
    Support,
    solve_covariance,
    solve_few,
    solve_kernel,
)
from rfx.solvers.stochastic.sdca import LONGEST, KernelSDCA, LinearSDCA

GAMMA = 0.3
PARAMS = {"gamma": GAMMA}


def rows(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] > 0.3 * rng.standard_normal(n), 1.0, -1.0)[
        :, None
    ]


def gram(X, Y=None):
    Y = X if Y is None else Y
    return np.exp(-GAMMA * ((X[:, None] - Y[None]) ** 2).sum(-1))


def growing(d=3, dtype=np.float64, piece=64, seed=5, map_type=GrowingMap, **options):
    return map_type("gaussian", d, seed, PARAMS, dtype=dtype, piece=piece, **options)


def doubly(
    loss="logistic",
    nu=0.1,
    steps=None,
    outputs=1,
    block=1,
    dtype=np.float64,
    piece=64,
    max_blocks=None,
    keep_rows=None,
    hold_rows=None,
    seed=0,
    map_type=GrowingMap,
    **descent,
):
    steps = steps or StepSizeSchedule("theorem", nu, 1.5 / nu, 3.0)
    return DoublySGD(
        growing(dtype=dtype, piece=piece, map_type=map_type),
        outputs,
        get_loss(loss),
        nu,
        Descent(steps, **descent),
        Blocks(block, max_blocks, keep_rows, hold_rows),
        seed,
    )


def support(dtype=np.float64):
    return Support("gaussian", PARAMS, dtype)


def norma(loss, nu, steps):
    return Norma(support(), 1, loss, nu, Descent(steps))


def block(solver):
    """The first feature of the block of the next step."""
    solver.t += 1
    start = solver._block()
    solver.t -= 1
    return start


def coef(solver):
    return solver.expansion.coefficients.predicting


def last(solver, part=slice(None)):
    c = solver.expansion.coefficients
    return c.scale * c.raw[part]


def algorithm_1(X, y, loss, nu, theta, t0):
    """Algorithms 1 and 2 of Dai et al. (2014), line by line, with the feature of step i drawn from
    (seed, i).
    """
    alpha = []
    maps = [sample("gaussian", 3, 1, 5, start=i, dtype=np.float64, **PARAMS) for i in range(len(y))]

    def feature(i, x):
        turns = x @ maps[i].arrays["frequencies"][:, 0] + maps[i].arrays["phases"][0]
        return np.sqrt(2) * np.cos(2 * np.pi * turns)

    for i in range(len(y)):
        gamma = theta / (i + 1 + t0)
        f = sum((a * feature(j, X[i]) for j, a in enumerate(alpha)), 0.0)
        new = -gamma * loss.derivative(np.array(f), y[i]) * feature(i, X[i])
        alpha = [(1 - gamma * nu) * a for a in alpha]
        alpha.append(float(new))
    return np.array(alpha)


@pytest.mark.parametrize("name", ["hinge", "squared", "logistic"])
def test_one_row_and_one_feature_a_step_is_algorithm_1(name):
    X, Y = rows(200)
    nu, theta = 0.1, 15.0
    expected = algorithm_1(X, Y[:, 0], get_loss(name), nu, theta, 3.0)
    solver = doubly(name, nu, StepSizeSchedule("theorem", nu, theta, 3.0))
    for i in range(200):
        solver.step(X[i : i + 1], Y[i : i + 1])
    np.testing.assert_allclose(coef(solver)[:, 0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("averaging", ["none", "uniform", "linear"])
def test_scale_and_average_are_those_of_the_definition(averaging):
    X, Y = rows(120)
    solver = doubly(
        "logistic",
        0.3,
        StepSizeSchedule("theorem", 0.3, 4.0, 0.5),
        block=8,
        averaging=averaging,
        max_blocks=5,
    )
    total = weights = 0.0
    for t in range(1, 13):
        before, start = solver.expansion.values(X), block(solver)
        batch, gamma = slice(10 * t - 10, 10 * t), 4.0 / (t + 0.5)
        solver.step(X[batch], Y[batch])
        Z = growing().sampled(start, start + 8).transform(X)
        change = -gamma / 80 * Z[batch].T @ get_loss("logistic").derivative(before[batch], Y[batch])
        after = before * (1 - gamma * 0.3 if t > 1 else 1.0) + Z @ change
        np.testing.assert_allclose(solver.expansion.values(X), after, atol=1e-10)
        weight = {"none": 0.0, "uniform": 1.0, "linear": t}[averaging]
        total, weights = total + weight * after, weights + weight
    assert solver.expansion.n_features == 40
    np.testing.assert_allclose(
        solver.predictions(X), total / weights if weights else after, atol=1e-10
    )


def test_preconditioned_step_solves_the_covariance_of_the_batch():
    X, Y = rows(50)
    solver = doubly(
        "squared",
        0.01,
        StepSizeSchedule("constant", 0.01, step0=1.0),
        block=16,
        precondition=True,
        max_blocks=2,
        damping=1e-3,
    )
    for t in range(1, 6):
        f, start = solver.expansion.values(X), block(solver)
        Z = growing().sampled(start, start + 16).transform(X) / 4.0
        fresh = start == solver.expansion.n_features
        old = 0.0 if fresh else last(solver, slice(start, start + 16)) * 4.0
        old = old + np.zeros((16, 1))
        alpha = old - np.linalg.solve(
            Z.T @ Z / 50 + 0.011 * np.eye(16), Z.T @ (f - Y) / 50 + 0.01 * old
        )
        expected = f * (1 - 0.01 if fresh and t > 1 else 1.0) + Z @ (alpha - old)
        solver.step(X, Y)
        np.testing.assert_allclose(solver.expansion.values(X), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("threads", "memory", "matrix", "atol"),
    [(2, 256.0, np.array, 0), (1, 0.0, np.array, 0), (1, 256.0, sp.csr_matrix, 1e-6)],
)
@pytest.mark.usefixtures("shared_out")
def test_threads_memory_and_sparse_rows_change_nothing(threads, memory, matrix, atol):
    X, Y = rows(300, d=40)
    X[X < 0.5] = 0.0

    def trained(threads=1, memory=256.0, matrix=np.array):
        env.set_threads(threads)
        source = GrowingMap("gaussian", 40, 5, PARAMS, piece=64, max_memory_mb=memory)
        descent = Descent(StepSizeSchedule("theorem", 1e-3, 1e3, 2e3))
        solver = DoublySGD(source, 1, get_loss("hinge"), 1e-3, descent, Blocks(32))
        for start in range(0, 288, 32):
            solver.step(matrix(X)[start : start + 32], Y[start : start + 32])
        return coef(solver)

    np.testing.assert_allclose(trained(threads, memory, matrix), trained(), rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("steps", "t", "size"),
    [
        (("theorem", 0.1, 15.0, 5.0), 5, 1.5),
        (("root", 0.0, 2.0), 4, 1.0),
        (("decay", 0.0, 1.0, 0.0, 2.0, 0.5), 2, 1.0),
    ],
)
def test_sizes_of_steps(steps, t, size):
    assert StepSizeSchedule(*steps)(t) == size


def test_normalized_steps_are_those_of_the_features():
    normalized = StepSizeSchedule("normalized", 1.0, step0=0.6)
    assert normalized(7, np.array([[3.0, 4.0], [0.0, 0.0]])) == pytest.approx(0.6 / np.sqrt(12.5))
    assert normalized(7, np.full((4, 1), 0.5)) == normalized(7) == 1.0


def refused_sdca(loss, outputs=3, nu=0.1):
    return lambda: LinearSDCA(features(), 40, outputs, 60, get_loss(loss), nu)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: StepSizeSchedule("theorem", 0.1, 9.0), "--theta .* need a product from 1 to 2"),
        (lambda: StepSizeSchedule("theorem", 0.1, 21.0), "--theta .* need a product from 1 to 2"),
        (lambda: StepSizeSchedule("constant", 0.5, step0=3.0), "flip the sign of f"),
        (refused_sdca("softmax"), "--loss is softmax"),
        (refused_sdca("hinge", 1, 0.0), "--nu is 0"),
        (
            lambda: Pegasos(features(), 40, 1, get_loss("logistic"), 0.1, project=True),
            "hinge loss",
        ),
    ],
)
def test_refusals(make, says):
    with pytest.raises(UsageError, match=says):
        make()


# ---------------------------------------------------------------- the baselines


def test_norma_is_its_recursion():
    X, Y = rows(60)
    loss, nu = get_loss("hinge"), 0.02
    solver = norma(loss, nu, StepSizeSchedule("root", nu, 5.0))
    f, K = np.zeros((60, 1)), gram(X)
    for t in range(1, 13):
        batch = slice(5 * t - 5, 5 * t)
        gamma = 5.0 / np.sqrt(t)
        change = -gamma / 5 * loss.derivative(f[batch], Y[batch])
        f = f * (1 - gamma * nu if t > 1 else 1.0) + K[:, batch] @ change
        solver.step(X[batch], Y[batch])
        np.testing.assert_allclose(solver.predictions(X), f, atol=1e-10)
    assert solver.support.n_rows < 60  # rows beyond the margin are not stored


def features(d=3, count=40, dtype=np.float64):
    feature_map = sample("gaussian", d, count, 2, dtype=dtype, **PARAMS)
    return lambda X: feature_map.transform(X) / dtype(np.sqrt(count))


@pytest.mark.parametrize("project", [False, True])
def test_pegasos_is_its_recursion(project):
    X, Y = rows(200)
    loss, nu, Z = get_loss("hinge"), 0.05, features()(X)
    solver = Pegasos(features(), 40, 1, loss, nu, project=project)
    w, rng = np.zeros(40), np.random.default_rng(0)
    for t in range(1, 101):
        batch = rng.integers(0, 200, 10)
        violated = Y[batch, 0] * (Z[batch] @ w) < 1
        w = (1 - 1 / t) * w + (Z[batch] * (Y[batch, 0] * violated)[:, None]).sum(axis=0) / (
            nu * t * 10
        )
        if project:
            w *= min(1.0, 1 / (np.sqrt(nu) * np.linalg.norm(w)))
        solver.step(X[batch], Y[batch])
    np.testing.assert_allclose(solver.w[:, 0], w, atol=1e-9)


@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "pegasos"])
def test_a_batch_of_fewer_rows_is_that_share_of_a_step(name):
    X, Y = rows(40)
    loss, nu = get_loss("logistic"), 0.3
    make = {
        "doubly-sgd": lambda: doubly(
            "logistic", nu, StepSizeSchedule("constant", nu, step0=0.5), block=8
        ),
        "norma": lambda: norma(loss, nu, StepSizeSchedule("constant", nu, step0=0.5)),
        "pegasos": lambda: Pegasos(features(), 40, 1, loss, nu),
    }[name]
    short, whole, resumed = make(), make(), make()
    for solver in (short, whole):
        solver.step(X[:16], Y[:16])
    before = short.predictions(X)
    resumed.restore(short.state())
    # two rows; the same two rows eight times each, with the same mean; two rows after a checkpoint
    for solver, taken in ((short, [16, 17]), (whole, [16, 17] * 8), (resumed, [16, 17])):
        solver.step(X[taken], Y[taken])
    np.testing.assert_allclose(
        short.predictions(X) - before, (whole.predictions(X) - before) / 8, atol=1e-12
    )
    assert np.abs(short.predictions(X) - before).max() > 1e-3
    assert np.array_equal(resumed.predictions(X), short.predictions(X))


SDCA_LOSSES = ["hinge", "squared_hinge", "squared", "logistic", "absolute", "epsilon_insensitive"]


@pytest.mark.parametrize("name", SDCA_LOSSES)
def test_dual_steps_lead_both_forms_to_the_optimum_that_the_gap_proves(name):
    X, Y = rows(80)
    if name in ("squared", "absolute", "epsilon_insensitive"):
        Y = np.concatenate([np.sin(2 * X[:, :1]), X[:, 1:2]], axis=1)
    loss, nu = get_loss(name), 0.05
    K, index = gram(X), np.arange(80)
    # the exact features of the kernel, so that both solve one problem
    root = np.linalg.cholesky(K + 1e-10 * np.eye(80))
    linear = LinearSDCA(
        lambda part: np.ascontiguousarray(root[np.searchsorted(order, part[:, 0])]),
        80,
        Y.shape[1],
        80,
        loss,
        nu,
    )
    order, rng = np.arange(80.0), np.random.default_rng(1)
    kernel = KernelSDCA(support(), Y.shape[1], 80, loss, nu)
    lowest = -np.inf
    for _ in range(150):
        chosen = rng.permutation(80)
        linear.step(order[chosen, None], Y[chosen], chosen)
        dual = linear.bounds([(order[:, None], Y, index)])[1]
        assert dual >= lowest - 1e-9  # ascent
        lowest = dual
        for part in np.split(chosen, 4):
            kernel.step(X[part], Y[part], part)
    for P, D in (linear.bounds([(order[:, None], Y, index)]), kernel.bounds([(X, Y, index)])):
        assert -1e-9 <= P - D < 1e-4
    np.testing.assert_allclose(
        kernel.bounds([(X, Y, index)]), linear.bounds([(order[:, None], Y, index)]), atol=2e-4
    )
    if name == "squared":
        exact = K @ np.linalg.solve(K + nu * 80 * np.eye(80), Y)
        np.testing.assert_allclose(kernel.predictions(X), exact, atol=2e-3)


def test_rows_at_rest_are_left_out_and_come_back():
    X, Y = rows(300)
    loss, nu, Z = get_loss("hinge"), 1e-3, features()(X)
    computed, rng = [], np.random.default_rng(0)

    def looked_up(taken):
        computed.append(len(taken))
        return Z[taken]

    resting, steady = (
        LinearSDCA(looked_up, 40, 1, 300, loss, nu),
        LinearSDCA(lambda X: X, 40, 1, 300, loss, nu),
    )
    for _ in range(1500):
        order = rng.permutation(300)
        resting.step(order, Y[order], order)
        steady.ascend(Z[order], Y[order], order)
    optimum, _ = steady.bounds([(Z, Y, order := np.arange(300))])
    P, D = resting.bounds([(order, Y, order)])
    assert P - D < 1e-6 and P == pytest.approx(optimum, abs=1e-6)
    assert sum(computed) < 0.6 * 300 * 1500
    # at the bound 0 for a long time; when the target of a row changes, it moves once it is visited
    # again
    still = int(np.flatnonzero((resting.a[:, 0] == 0) & (resting.skips[1] == LONGEST))[0])
    Y[still] *= -1
    for _ in range(LONGEST):
        resting.step(order[[still]], Y[[still]], np.array([still]))
    assert resting.a[still, 0] != 0


@pytest.mark.parametrize("nu, step", [(0.0, 0.5), (0.3, 1.0)])
@pytest.mark.parametrize("precondition", [False, True])
def test_kept_values_are_the_values(nu, step, precondition):
    """With nu = 0.3 the scale moves into the coefficients on the way."""
    X, Y = rows(50)
    options = {
        "loss": "squared",
        "nu": nu,
        "steps": StepSizeSchedule("constant", nu, step0=step),
        "block": 16,
        "precondition": precondition,
    }
    plain, kept = doubly(**options, damping=1e-3), doubly(**options, damping=1e-3, keep_rows=50)
    rng = np.random.default_rng(3)
    for t in range(60):
        index = rng.permutation(50)[: 20 if t % 3 else 50]
        one, two = plain.step(X[index], Y[index]), kept.step(X[index], Y[index], index)
        assert one == pytest.approx(two, rel=1e-9)
        if t == 30:
            state, kept = kept.state(), doubly(**options, damping=1e-3, keep_rows=50)
            kept.restore(state)
    np.testing.assert_allclose(
        coef(plain),
        coef(kept),
        rtol=1e-7,
        atol=1e-11,
    )


@pytest.mark.parametrize("precondition, batch", [(False, 20), (True, 20), (False, 5000)])
def test_held_features_are_the_same_bits_and_made_once(precondition, batch):
    """Blocks smaller than a piece, one of them incomplete; rows twice in a batch; a batch of 5,000
    in several parts.
    """
    X, Y = rows(50)
    options = {
        "nu": 0.1,
        "steps": StepSizeSchedule("constant", 0.1, step0=0.5),
        "block": 16,
        "max_blocks": 5,
        "averaging": "linear",
    }
    options |= {"precondition": precondition, "damping": 1e-3, "outputs": 2}
    made = []

    class Watched(GrowingMap):
        def sampled(self, start, stop):
            made.append((start, stop))
            return super().sampled(start, stop)

    plain = doubly("squared", **options)
    held = doubly("squared", **options, hold_rows=50, map_type=Watched)
    rng = np.random.default_rng(3)
    Y = np.hstack([Y, -Y])
    for _ in range(40):
        index = rng.integers(0, 50, batch)
        one = plain.step(X[index], Y[index], index)
        made.clear()
        assert held.step(X[index], Y[index], index) == one
    assert not made
    assert np.array_equal(coef(plain), coef(held))
    # rows that are not in the set
    assert held.step(X + 1, Y) == plain.step(X + 1, Y)
    assert made


@pytest.mark.parametrize("weighted", [False, True])
def test_preconditioned_gradients_are_those_of_the_definition(weighted):
    rng = np.random.default_rng(0)
    Z, gradient, ridge = rng.standard_normal((12, 30)), rng.standard_normal((30, 2)), 1e-3
    weights = rng.uniform(0, 2, 12) if weighted else None
    W = np.diag(np.ones(12) if weights is None else weights)
    C = Z.T @ W @ Z / 12 + ridge * np.eye(30)
    for solve in (solve_covariance, solve_few):
        found = solve(Z, gradient, 12, ridge, weights)
        np.testing.assert_allclose(found, np.linalg.solve(C, gradient), rtol=1e-7, atol=1e-9)
    derivatives = rng.standard_normal((12, 2))
    rows = solve_kernel(Z @ Z.T, derivatives, 12, ridge, weights)
    whole = np.linalg.solve(C, Z.T @ W @ derivatives)
    np.testing.assert_allclose(Z.T @ rows, whole, rtol=1e-7, atol=1e-9)
