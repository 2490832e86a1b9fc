"""Sample weights: a row of weight 2 equals two rows, a row of weight 0 none; class weights are
sample weights by label.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from weighted_rows import weighted_rows

from rfx import losses, methods
from rfx.data.training_table import TrainingTable
from rfx.errors import DataError, UsageError
from rfx.fitting import weights
from rfx.fitting.assessment import with_probabilities
from rfx.fitting.selection import beyond
from rfx.fitting.training import Trainer
from rfx.operators.binned import BinnedMatrix
from rfx.operators.kernel import KernelMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.operators.scaled import ScaledRows
from rfx.solvers.base import Budget
from rfx.solvers.kernel import solve_kernel_ridge
from rfx.solvers.l1 import newton, quadratic

# options without dependence on the number of rows: no landmarks or blocks are drawn from them
EXACT = {
    "rf": {"n_features": 60, "lam": 0.3, "dtype": "float64", "tol": 1e-12},
    "sparse-rf": {"n_features": 60, "rounds": 1, "lam": 1.0, "dtype": "float64", "tol": 1e-10},
    "lkrf": {
        "n_features": 40,
        "pool": 200,
        "rho_share": 0.02,
        "lam": 0.3,
        "dtype": "float64",
        "tol": 1e-12,
    },
    "rb": {"n_grids": 40, "lam": 0.3, "tol": 1e-12},
    "sparse-rb": {"n_grids": 40, "lam": 0.1, "tol": 1e-10},
    "kernel": {"lam": 0.3, "tol": 1e-10, "gamma": 1.0},
    "block": {"lam": 0.3, "tol": 1e-12, "block_size": 1000, "gamma": 1.0},
    "nystrom": {"lam": 0.3, "tol": 1e-12, "n_features": 1000, "dtype": "float64"},
    "boosting": {
        "kernel": "stump",
        "lam": 2.0,
        "n_features": 500,
        "per_step": 4,
        "tol": 1e-8,
        "dtype": "float64",
    },
}
LOSSES = {
    "regression": ["squared"],
    "binary": ["squared", "squared_hinge", "logistic"],
    "multiclass": ["squared_hinge"],
}
CASES = [(name, task, loss) for name in EXACT for task, known in LOSSES.items() for loss in known]


@pytest.fixture(scope="module")
def data():
    return weighted_rows(120)


def made(name, **more):
    # what is learnt from random pairs or parts of the rows changes if rows are repeated
    gamma = {} if name == "boosting" else {"gamma": "paper"}
    return methods.create(name, **gamma | EXACT[name] | more)


def compare(data, one, other, tol=2e-5):
    assert one.info["objective"] == pytest.approx(other.info["objective"], rel=1e-6)
    a, b = one.decision_function(data.X), other.decision_function(data.X)
    np.testing.assert_allclose(a, b, rtol=0, atol=tol * np.abs(b).max())


@pytest.mark.parametrize("name, task, loss", CASES + [("kernel", "binary", "hinge")])
def test_weights_are_repetitions(name, task, loss, data):
    y = data.targets[task]
    weighted = made(name, loss=loss, task=task).fit(data.X, y, sample_weight=data.weights)
    repeated = made(name, loss=loss, task=task).fit(data.X[data.repeated], y[data.repeated])
    assert weighted.info["gap"] <= 2e-3 * weighted.info["objective"]
    if name in ("sparse-rb", "boosting") and loss == "squared_hinge":
        # bins or stumps with the same rows inside the margin: the minimum is unique, the minimisers
        # are not
        assert weighted.info["objective"] == pytest.approx(repeated.info["objective"], rel=1e-7)
    else:
        # for the hinge, any bias in an interval is optimal, and the tolerance is that of the
        # objective
        compare(data, weighted, repeated, 1e-3 if loss == "hinge" else 1e-4)


@pytest.mark.parametrize("name", EXACT)
def test_weights_of_one_change_nothing_and_of_two_halve_lambda(name, data):
    X, y = data.X, data.targets["binary"]
    plain = made(name, task="binary").fit(X, y)
    assert np.array_equal(
        made(name, task="binary").fit(X, y, sample_weight=np.ones(120)).decision_function(X),
        plain.decision_function(X),
    )
    doubled = made(name, task="binary", lam=2 * EXACT[name]["lam"]).fit(
        X, y, sample_weight=np.full(120, 2.0)
    )
    assert doubled.info["objective"] == pytest.approx(2 * plain.info["objective"], rel=1e-6)
    np.testing.assert_allclose(
        doubled.decision_function(X), plain.decision_function(X), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("name", EXACT)
def test_weight_zero_is_a_row_left_out(name, data):
    X, y, kept = data.X, data.targets["regression"], data.shares > 0.9
    zeros = made(name, task="regression").fit(X, y, sample_weight=kept.astype(float))
    without = made(name, task="regression").fit(X[kept], y[kept])
    assert np.array_equal(zeros.decision_function(X), without.decision_function(X))
    assert zeros.info["n_train"] == np.count_nonzero(kept)


def test_kernel_ridge_by_conjugate_gradients_takes_weights(data):
    y = data.targets["regression"]
    K = KernelMatrix("gaussian", data.X, {"gamma": 1.0}, np.sqrt(data.shares))
    right = np.sqrt(data.shares) * y
    exact = np.linalg.solve(K.to_array(np.float64) + 0.3 * np.eye(120), right)
    for memory in (0.01, 100.0):
        solution = solve_kernel_ridge(K, right, 0.3, budget=Budget(tol=1e-10, memory_mb=memory))
        assert solution.converged
        np.testing.assert_allclose(solution.coef, exact, atol=1e-4)
    plain = KernelMatrix("gaussian", data.X, {"gamma": 1.0})
    np.testing.assert_allclose(
        K.matvec(y), np.sqrt(data.shares) * plain.matvec(np.sqrt(data.shares) * y), rtol=1e-12
    )
    np.testing.assert_allclose(K.diagonal, data.shares * plain.diagonal)


def test_small_lambda_on_separable_classes_takes_weights(monkeypatch, data):
    # where the interior-point method over the rows takes over
    X = data.X
    called = []

    def watched(*given, **named):
        called.append(named["heights"])
        return quadratic.hinge_interior_point(*given, **named)

    monkeypatch.setattr(newton, "hinge_interior_point", watched)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 1.0, -1.0)
    options = {
        "n_features": 200,
        "rounds": 1,
        "lam": 1e-3,
        "dtype": "float64",
        "tol": 1e-6,
        "gamma": 2.0,
        "task": "binary",
    }
    weighted = methods.create("sparse-rf", **options).fit(X, y, sample_weight=data.weights)
    repeated = methods.create("sparse-rf", **options).fit(X[data.repeated], y[data.repeated])
    assert weighted.info["converged"] and repeated.info["converged"]
    assert weighted.info["objective"] == pytest.approx(repeated.info["objective"], rel=1e-5)
    assert any(len(np.unique(heights)) > 1 for heights in called) and any(
        np.all(heights == 1) for heights in called
    )


@pytest.mark.slow
def test_a_path_and_validation_take_weights(data):
    X, y = data.X, data.targets["binary"]
    options = {"gamma": "paper", "lam_path": "10:0.1:4", "dtype": "float64", "tol": 1e-9}
    trainer = methods.create("sparse-rf", n_features=60, task="binary", **options)
    path = trainer.fit(X, y, sample_weight=data.weights).path
    for one, other in zip(path, trainer.fit(X[data.repeated], y[data.repeated]).path, strict=True):
        assert one.info["objective"] == pytest.approx(other.info["objective"], rel=1e-6)
    for name in ("rf", "sparse-rf", "rb", "kernel"):
        chosen = made(
            name, lam="validation", gamma="tuned" if name != "rb" else 1.0, tol=1e-3, task="binary"
        )
        chosen = chosen.fit(X, y, sample_weight=data.shares)
        grid = list(chosen.method.space.values["lam"])
        # a grid is continued beyond an end that is best
        grid.append(beyond(grid[-1], grid))
        assert np.isclose(
            chosen.info["lam"], np.mean(data.shares) * np.array(grid), rtol=1e-9
        ).any()
        assert chosen.info["converged"]
    grown = made("rb", grow=0.2, task="binary").fit(X, y, sample_weight=data.shares)
    assert grown.info["converged"]


# ------------------------------------------------------------------ by label


def test_balanced(rng):
    y = np.repeat([0.0, 1.0], [90, 30])
    np.testing.assert_allclose(
        weights.of_rows(y, None, "balanced"), np.repeat([120 / 180, 2.0], [90, 30])
    )
    # weights count like rows
    own = rng.uniform(0, 2, 120)
    own[:5] = 0.0
    found = weights.of_rows(y, own, "balanced")
    assert found[:90].sum() == pytest.approx(found[90:].sum())
    assert found.sum() == pytest.approx(own.sum())
    assert weights.of_rows(np.repeat([0.0, 1.0], 10), None, "balanced") is None


@pytest.mark.parametrize(
    "name, options, sample_weight, message",
    [
        ("rf", {}, np.ones(7), "there are 7 sample weights for 120 rows"),
        ("rf", {}, np.r_[1, 1, -1.0, np.ones(117)], "the weight of row 3 is -1; weights must be 0"),
        ("rf", {}, np.zeros(120), "all sample weights are zero"),
        ("rf", {"class_weight": "7:2"}, None, "--class-weight has the label 7, which no row has"),
        ("rf", {"task": "regression", "class_weight": "1:2"}, None, "but the task is regression"),
        (
            "rf",
            {"solver": "liblinear", "tol": None},
            np.arange(1.0, 121),
            "--solver is liblinear, which does n",
        ),
        ("sparse-rb", {"solver": "prcd", "class_weight": "1:2"}, None, "--solver is prcd, which d"),
        ("lkrf", {"joint": 2}, np.arange(1.0, 121), "--joint does not support sample weights"),
        ("rf", {"class_weight": "1:2,1:3"}, None, "it must be balanced, or LABEL:WEIGHT"),
    ],
)
def test_what_is_refused(name, options, sample_weight, message, data):
    with pytest.raises((DataError, UsageError), match=message):
        made(name, **{"task": "binary"} | options).fit(
            data.X, data.targets["binary"], sample_weight
        )


# ------------------------------------------------------------------ parts


@pytest.mark.parametrize("loss", [losses.SquaredHinge, losses.Hinge, losses.Logistic])
def test_the_weighted_loss_and_its_conjugate(loss, rng):
    weighted, z = losses.Weighted(loss), rng.normal(size=50)
    labels, own = np.sign(rng.normal(size=50)), rng.uniform(0.1, 3, 50)
    y = labels * own
    np.testing.assert_allclose(weighted.value(z, y), own * loss.value(z, labels))
    np.testing.assert_allclose(weighted.derivative(z, y), own * loss.derivative(z, labels))
    # Fenchel's equality where the loss is smooth, and the inequality everywhere
    u = weighted.derivative(z, y)
    np.testing.assert_allclose(weighted.value(z, y) + weighted.conjugate(u, y), u * z, atol=1e-9)
    other = weighted.clip_dual(rng.normal(size=50), y)
    assert np.all(weighted.value(z, y) + weighted.conjugate(other, y) >= other * z - 1e-9)


def test_scaled_rows_are_the_matrix(rng):
    Z, factors = rng.normal(size=(40, 7)), rng.uniform(0.5, 2, 40)
    dense, matrix = factors[:, None] * Z, ScaledRows(DenseMatrix(Z), factors)
    u, w, own = rng.normal(size=(40, 2)), rng.normal(size=(7, 2)), rng.uniform(0, 1, 40)
    rows = np.array([3, 9, 30])
    for found, expected in [
        (matrix.to_array(), dense),
        (matrix.matvec(w), dense @ w),
        (matrix.matvec(w[:, 0]), dense @ w[:, 0]),
        (matrix.rmatvec(u), dense.T @ u),
        (matrix.normal(w[:, 0], own), dense.T @ (own * (dense @ w[:, 0]))),
        (matrix.outer(u), dense @ (dense.T @ u)),
        (matrix.square(np.arange(7), own), dense.T @ (own[:, None] * dense)),
        (matrix.squares(own), own @ dense**2),
        (matrix.rows(rows).to_array(), dense[rows]),
        (matrix.columns(np.array([5, 2])).to_array(), dense[:, [5, 2]]),
        (np.concatenate([part.to_array() for _, part in matrix.parts()]), dense),
        (np.concatenate([block for _, block in matrix.row_blocks()]), dense),
        (
            matrix.loss_pass(w[:, 0], losses.Squared, u[:, 0])[2],
            dense.T @ (dense @ w[:, 0] - u[:, 0]),
        ),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    binned = BinnedMatrix(np.zeros((2, 40), np.uint16), np.array([0, 1, 2]))
    np.testing.assert_allclose(
        ScaledRows(binned, factors).to_array(), np.outer(factors, [0.5**0.5] * 2)
    )


def test_sparse_rows_take_weights(data):
    y, rows = data.targets["binary"], sp.csr_matrix(np.where(np.abs(data.X) < 1, 0, data.X))
    for name in ("rf", "rb", "kernel"):
        sparse = made(name, task="binary", scaling="none").fit(rows, y, sample_weight=data.weights)
        dense = made(name, task="binary", scaling="none").fit(
            rows.toarray(), y, sample_weight=data.weights
        )
        np.testing.assert_allclose(
            sparse.decision_function(rows), dense.decision_function(rows.toarray()), atol=1e-4
        )


@pytest.mark.slow
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", [*EXACT, "local", "rfm"])
def test_rows_of_weight_zero_change_no_probability(name, few, data):
    """Neither the model, nor what is drawn by the seed, nor the rows by which it is judged."""
    X = data.X
    own = np.where(np.arange(120) % (8 if few else 3) == 0, 1.0, 0.0)
    own[5] = 2.0
    kept, y = np.flatnonzero(own), data.targets["binary"]
    options = {"task": "binary"} | (EXACT[name] if name in EXACT else {})
    trainer = Trainer(methods.get(name).of(options), predicts_left_out=True)
    models = []
    for rows in (np.arange(120), kept):
        model = trainer.fit(X[rows], y[rows], own[rows])
        table = TrainingTable.of_rows(X[rows], y[rows], own[rows])
        models.append(with_probabilities(trainer, model, table, "platt"))
    zeros, without = (m.probabilities(m.decision_function(X)) for m in models)
    np.testing.assert_array_equal(zeros, without)
