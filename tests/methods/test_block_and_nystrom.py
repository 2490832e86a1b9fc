"""Independent blocks: the partition, exact problems in memory, the method."""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env, kernels, losses, methods
from rfx.errors import UsageError
from rfx.features.partition import Partition, uniform_blocks
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.kernel import solve_kernel_dense
from rfx.solvers.l2 import solve_l2

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (400, 4))
VALUES = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.where(VALUES > 0.3, 1.0, -1.0)
GAMMA = {"gamma": 2.0}


@pytest.mark.parametrize(
    ("rows", "size"), [(400, 400), (400, 399), (400, 70), (400, 7), (400, 1), (1, 5), (37, 10)]
)
def test_blocks_are_of_equal_size_and_hold_every_row(rows, size):
    partition, blocks = Partition.fit(X[:rows], size, 0)
    assert len(blocks) == partition.n_blocks == -(-rows // size)
    for made in (blocks, uniform_blocks(rows, size, 0)):
        assert np.array_equal(np.sort(np.concatenate(made)), np.arange(rows))
        sizes = [len(block) for block in made]
        assert max(sizes) <= size and max(sizes) - min(sizes) <= 1
    # placing the training rows again gives their blocks
    for placed, block in zip(partition.place(X[:rows]), blocks, strict=True):
        assert np.array_equal(placed, block)


def test_blocks_are_parts_of_the_inputs():
    partition, blocks = Partition.fit(X, 50, 0)
    spread = np.mean([X[block].std(axis=0).mean() for block in blocks])
    assert spread < 0.85 * np.mean(
        [X[block].std(axis=0).mean() for block in uniform_blocks(400, 50, 0)]
    )
    other = Partition.fit(X, 50, 1)[1]
    assert any(not np.array_equal(a, b) for a, b in zip(blocks, other))
    # the block of a row depends neither on the rows placed with it nor on its storage
    alone = np.concatenate(
        [[b for b, rows in enumerate(partition.place(row[None])) if len(rows)] for row in X[:60]]
    )
    together = partition.place(sp.csr_matrix(X))
    assert all(i in together[b] for i, b in enumerate(alone))


def test_rows_that_no_hyperplane_tells_apart():
    rows = np.repeat(X[:2], 50, axis=0)
    partition, blocks = Partition.fit(rows, 10, 0)
    assert [len(block) for block in blocks] == [10] * 10
    placed = partition.place(X[:1])
    assert sum(map(len, placed)) == 1
    method = methods.create("block", block_size=10, lam=1e-6, gamma=1.0).fit(
        rows, np.repeat([3.0, 5.0], 50)
    )
    np.testing.assert_allclose(method.predict(X[:2]), [3, 5], atol=1e-4)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("name", ["squared", "squared_hinge", "logistic"])
def test_dense_solutions_agree_with_the_linear_solver(name, lam):
    K, loss = kernels.block("laplacian", X, X, GAMMA), losses.get_loss(name)
    solution = solve_kernel_dense(K, LABELS[:, None], lam, loss, Budget(tol=1e-9))
    assert solution.converged and -1e-12 <= solution.gap <= 1e-9 * solution.objective
    expected = solve_l2(DenseMatrix(np.linalg.cholesky(K)), LABELS, lam, loss, Budget(tol=1e-10))
    assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
    f = K @ solution.coef[:, 0]
    value = 0.5 * lam * solution.coef[:, 0] @ f + loss.value(f, LABELS).sum()
    assert solution.objective == pytest.approx(value, rel=1e-9)


def test_a_lambda_below_the_rounding_is_refused():
    with pytest.raises(UsageError, match="lambda is 1e-30, below the rounding"):
        solve_kernel_dense(np.ones((400, 400)), LABELS[:, None], 1e-30, losses.Squared)


def block(**more):
    return methods.create(
        "block",
        **(
            {"kernel": "laplacian", "gamma": 2.0, "block_size": 70, "lam": 0.1, "scaling": "none"}
            | more
        ),
    )


@pytest.mark.parametrize("partition", ["hyperplanes", "uniform"])
def test_predictions_are_those_of_the_dense_reference(partition):
    train, test, expected = X[:300], X[300:], np.zeros(100)
    fixed, blocks = Partition.fit(train, 70, 0)
    placed = fixed.place(test)
    if partition == "uniform":
        blocks = uniform_blocks(300, 70, 0)
        placed = [np.arange(100)] * len(blocks)
    for rows, own in zip(blocks, placed):
        K = kernels.block("laplacian", train[rows], train[rows], GAMMA)
        coef = np.linalg.solve(K + 0.1 * np.eye(len(rows)), VALUES[rows])
        expected[own] += kernels.block("laplacian", test[own], train[rows], GAMMA) @ coef
    expected /= len(blocks) if partition == "uniform" else 1
    method = block(partition=partition, target_scaling="none").fit(train, VALUES[:300])
    np.testing.assert_allclose(method.predict(test), expected, atol=1e-10)
    assert method.info["n_blocks"] == 5 and method.info["model_size"] == 300


@pytest.mark.parametrize("partition", ["hyperplanes", "uniform"])
@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_one_block_is_the_exact_machine(loss, partition):
    more = {} if loss == "squared" else {"bias": False}
    exact = methods.create(
        "kernel",
        kernel="laplacian",
        gamma=2.0,
        lam=0.1,
        scaling="none",
        loss=loss,
        tol=1e-7,
        **more,
    )
    exact = exact.fit(X[:300], LABELS[:300])
    ours = block(block_size=300, loss=loss, partition=partition).fit(X[:300], LABELS[:300])
    np.testing.assert_allclose(
        ours.decision_function(X[300:]), exact.decision_function(X[300:]), atol=2e-3
    )
    assert ours.info["objective"] == pytest.approx(exact.info["objective"], rel=1e-5)
    assert ours.info["n_blocks"] == 1


@pytest.mark.parametrize("partition", ["hyperplanes", "uniform"])
@pytest.mark.parametrize(
    ("loss", "tol"), [("squared_hinge", 1e-6), ("logistic", 1e-6), ("squared", 1e-10)]
)
def test_liblinear_solves_the_same_problem(loss, tol, partition, reloaded):
    ours, theirs = (
        block(loss=loss, partition=partition, **more).fit(X[:300], LABELS[:300])
        for more in ({"tol": 1e-8}, {"solver": "liblinear", "tol": tol})
    )
    assert theirs.info["objective"] == pytest.approx(ours.info["objective"], rel=1e-4)
    assert -1e-9 <= theirs.info["gap"] <= 1e-3 * theirs.info["objective"]
    np.testing.assert_allclose(
        reloaded(theirs, X[300:]).decision_function(X), ours.decision_function(X), atol=0.02
    )


def test_liblinear_on_several_classes_blocks_of_one_class_and_rows_that_are_the_same():
    y = np.digitize(VALUES, [0.0, 0.8]) + 4.0
    rows, labels = np.repeat(X[:100], 2, axis=0), np.repeat(y[:100], 2)
    ours, theirs = (
        block(loss="logistic", block_size=20, solver=solver, tol=1e-6).fit(rows, labels)
        for solver in ("rfx", "liblinear")
    )
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=0.02)


def test_rows_without_a_weight_are_not_in_the_model(reloaded):
    # far from the margin, no row has a coefficient under the squared hinge
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    options = {"loss": "squared_hinge", "lam": 1e-4, "kernel": "linear", "gamma": None}
    method = block(**options, block_size=100, tol=1e-12).fit(X - 0.5, y)
    size = method.info["model_size"]
    assert size == len(method.model.coef) == method.model.starts[-1] < 400
    assert np.mean(reloaded(method, X - 0.5).predict(X - 0.5) == y) > 0.97
    assert not reloaded(block().fit(X, np.zeros(400)), X).predict(X).any()


def test_sparse_rows_and_threads_change_nothing(reloaded):
    rows, made = sp.csr_matrix(np.where(X > 0.4, X, 0.0)), []
    for threads, part in ((1, rows), (2, rows), (2, rows.toarray())):
        env.set_threads(threads)
        made.append(block(loss="squared_hinge").fit(part, LABELS).decision_function(part))
    np.testing.assert_allclose(made[1:], [made[0]] * 2, atol=1e-12)
    assert sp.issparse(reloaded(block().fit(rows, VALUES), rows).model.support)


def test_the_time_limit_ends_it():
    late = block(block_size=2, timeout=1e-9, target_scaling="none").fit(X, VALUES)
    assert not late.info["converged"] and late.info["model_size"] == 0
    assert late.info["gap"] == late.info["objective"] == pytest.approx(0.5 * np.sum(VALUES**2))
