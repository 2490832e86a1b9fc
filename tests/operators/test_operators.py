"""Every kind of matrix against plain numpy in float64, and every solver with every kind that it
supports.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import losses
from rfx.features import sample
from rfx.features.binning import sample_grids
from rfx.operators import blocks, mapped
from rfx.operators.binned import BinnedMatrix
from rfx.operators.mapped import CachedColumns, MapMatrix, SplitRows, code_type, coded, hold_part
from rfx.operators.matrix import COMPUTED, DenseColumns, DenseMatrix, Matrix
from rfx.operators.sparse import SignColumns, SparseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1.bins import solve_prcd, solve_rb_l1
from rfx.solvers.l1.greedy import solve_rounds
from rfx.solvers.l1.newton import solve_l1
from rfx.solvers.l2 import solve_dual_l2, solve_dual_ridge, solve_l2
from rfx.solvers.ridge import solve_ridge, solve_ridge_cg

SCALE = 0.3


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (700, 5))


class Recomputed(Matrix):
    """The minimum that a kind defines: blocks of rows that share one buffer, which is overwritten
    by the next block.
    """

    cost = COMPUTED

    def __init__(self, Z, block=37):
        self.Z, self.shape, self.dtype, self.block = Z, Z.shape, Z.dtype, block

    def parts(self):
        buffer = np.empty((self.block, self.shape[1]), self.dtype)
        for rows in blocks.ranges(self.shape[0], self.block):
            part = buffer[: rows.stop - rows.start]
            part[:] = self.Z[rows]
            yield rows, DenseMatrix(part)
            buffer[:] = np.nan

    def rows(self, index):
        return Recomputed(self.Z[index], self.block)

    def columns(self, index):
        return Recomputed(self.Z[:, index], self.block)


class SplitConstraint(Recomputed):
    """Rows on two machines, for example: each part answers for its own rows, in any order."""

    def parts(self):
        for rows in (
            np.arange(1, len(self.Z), 3),
            np.setdiff1d(np.arange(len(self.Z)), np.arange(1, len(self.Z), 3)),
        ):
            yield rows, DenseMatrix(self.Z[rows])

    def rows(self, index):
        return SplitConstraint(self.Z[index])

    def columns(self, index):
        return SplitConstraint(self.Z[:, index])


def feature_map(dtype=np.float32):
    return sample("gaussian", 5, 90, 3, gamma=1.0, dtype=dtype)


def computed(X, block=128):
    """A matrix of the features of the rows."""
    return MapMatrix(feature_map(), X.astype(np.float32), SCALE, block=block)


def features(X, dtype=np.float32):
    """The same as an array."""
    return (SCALE * feature_map(dtype).transform(X.astype(dtype))).astype(dtype)


def bins(rows, n_grids=11):
    ids, found = sample_grids("laplacian", rows.shape[1], n_grids, 0, gamma=1.0).number(rows)
    return BinnedMatrix(ids, found.starts)


def held_columns(X):
    return CachedColumns(computed(X), np.arange(0, 90, 2))


def signs(X):
    found, Z = np.where(features(X) > 0, 1, -1), SignColumns(700)
    for start, stop in ((0, 1), (1, 8), (8, 90)):
        Z.append(found[:, start:stop])
    return Z, found


def codes(X, kind):
    Z = coded(computed(X), kind)
    return Z, Z.to_array()


def few(X):
    """Features most of which are zero."""
    return np.where(np.abs(features(X)) > 0.1, features(X), np.float32(0))


# name -> function from rows to (matrix, the same as a plain array)
KINDS = {
    "dense": lambda X: (DenseMatrix(features(X)), features(X)),
    "dense in float64": lambda X: (DenseMatrix(features(X, np.float64)), features(X, np.float64)),
    "dense by columns": lambda X: (DenseMatrix(np.asfortranarray(features(X))), features(X)),
    "some rows of an array": lambda X: (
        DenseMatrix(features(X)).rows(np.arange(650, 30, -2)),
        features(X)[650:30:-2],
    ),
    "partly in memory": lambda X: (hold_part(computed(X), 0.1), features(X)),
    "computed": lambda X: (computed(X), features(X)),
    "computed from sparse rows": lambda X: (
        MapMatrix(feature_map(), sp.csr_matrix(X), SCALE),
        features(X),
    ),
    "some columns held": lambda X: (held_columns(X), features(X) * (np.arange(90) % 2 == 0)),
    "binned": lambda X: (bins(X), bins(X).to_array()),
    "binned, by columns": lambda X: (bins(X).by_columns(), bins(X).to_array()),
    "least that a kind defines": lambda X: (Recomputed(features(X)), features(X)),
    "sparse": lambda X: (SparseMatrix(sp.csr_matrix(few(X)), np.float32), few(X)),
    "signs by columns": signs,
    "codes of 8 bits": lambda X: codes(X, np.int8),
    "codes of 16 bits": lambda X: codes(X, np.int16),
    "parts elsewhere": lambda X: (SplitConstraint(features(X)), features(X)),
}


# some whose products have loops of their own
ALIKE = (
    "dense",
    "dense by columns",
    "computed",
    "some columns held",
    "binned",
    "signs by columns",
    "codes of 8 bits",
)


@pytest.fixture(params=list(KINDS))
def kind(request, X):
    """A matrix, and the same as a plain array of float64."""
    Z, plain = KINDS[request.param](X)
    return SimpleNamespace(matrix=Z, plain=np.asarray(plain, np.float64))


def near(found, expected, tolerance=1e-5):
    assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype == np.float64
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0))
    )


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_products(kind, outputs):
    Z, plain = kind.matrix, kind.plain
    rng = np.random.default_rng(1)
    W, U = rng.standard_normal((Z.shape[1], *outputs)), rng.standard_normal((Z.shape[0], *outputs))
    few, some, weights = W.copy(), U.copy(), rng.random(Z.shape[0])
    few[2:], some[::3], weights[::4] = 0, 0, 0
    assert Z.shape == plain.shape and Z.exact == (Z.dtype == np.float64)
    for w in (W, few, np.zeros_like(W)):
        near(Z.matvec(w), plain @ w)
    for u in (U, some, np.zeros_like(U)):
        near(Z.rmatvec(u), plain.T @ u)
        near(Z.outer(u), plain @ (plain.T @ u))
    near(Z.normal(W), plain.T @ (plain @ W))
    near(Z.normal(W, weights), plain.T @ (weights.reshape(-1, *[1] * len(outputs)) * (plain @ W)))
    near(Z.squares(), (plain**2).sum(axis=0))
    near(Z.squares(weights), weights @ plain**2)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [(), (3,)])
@pytest.mark.parametrize("name", ["squared", "squared_hinge", "hinge", "logistic"])
def test_loss_pass(kind, name, outputs):
    Z, plain, loss = kind.matrix, kind.plain, losses.LOSSES[name]
    rng = np.random.default_rng(2)
    W, y = (
        0.1 * rng.standard_normal((Z.shape[1], *outputs)),
        rng.choice([-1.0, 1.0], (Z.shape[0], *outputs)),
    )
    F, value, G = Z.loss_pass(W, loss, y)
    near(F, plain @ W)
    near(value, loss.value(plain @ W, y).sum(axis=0))
    near(G, plain.T @ loss.derivative(plain @ W, y))


@pytest.mark.slow
def test_gram(kind):
    Z, plain = kind.matrix, kind.plain
    rng = np.random.default_rng(3)
    left, right = np.split(rng.permutation(Z.shape[1])[:60], [25])
    margin = np.where(rng.random(Z.shape[0]) < 0.4, 2.0, 0.0)
    ones, zeros = np.ones(Z.shape[0]), np.zeros(Z.shape[0])
    for weights in (ones, margin, rng.random(Z.shape[0]), zeros):
        own = plain[:, left].T * weights
        square, cross = Z.gram(left, right, weights)
        near(square, own @ plain[:, left])
        near(cross, own @ plain[:, right])
        near(Z.square(left, weights), own @ plain[:, left])
    change = rng.choice([-2.0, 0.0, 2.0], Z.shape[0])
    near(Z.square(left, change), plain[:, left].T @ (change[:, None] * plain[:, left]))
    assert Z.gram(left[:0], right, margin)[1].shape == (0, 35)
    near(
        Z.square(np.arange(Z.shape[1]), Z.gram_weights(margin)),
        plain.T @ (margin[:, None] * plain),
    )


def test_rows_columns_and_blocks(kind):
    Z, plain = kind.matrix, kind.plain
    near(Z.to_array().astype(np.float64), plain)
    near(Z.to_array(np.empty(Z.shape, Z.dtype)).astype(np.float64), plain)
    rows, columns = np.array([3, 4, 5, 77, 300]), np.array([8, 2, 80])
    for index in (rows, slice(20, 270)):
        # the results of a kind must be matrices that support all of this again
        part = Z.rows(index)
        near(part.to_array().astype(np.float64), plain[index])
        near(
            part.rows(np.array([0, 4])).matvec(np.ones(Z.shape[1])),
            plain[index][[0, 4]].sum(axis=1),
        )
        near(part.columns(columns).to_array().astype(np.float64), plain[index][:, columns])
    for index in (columns, slice(1, 40)):
        near(Z.columns(index).to_array().astype(np.float64), plain[:, index])
        near(Z.columns(index).rmatvec(np.ones(len(plain))), plain[:, index].sum(axis=0))
    for pieces, at in (
        (Z.row_blocks(), lambda rows: (rows,)),
        (Z.column_blocks(32), lambda columns: (slice(None), columns)),
    ):
        seen = np.zeros(Z.shape)
        for chosen, block in pieces:
            assert block.flags.c_contiguous and block.dtype == Z.dtype
            seen[at(chosen)] += block
        near(seen, plain)
    for held in (Z.hold(), Z.hold(0.0)):
        near(held.matvec(np.ones(Z.shape[1])), plain.sum(axis=1))
        assert held.computed <= Z.computed
    assert not Z.hold().computed and Z.size_mb == pytest.approx(
        plain.size * Z.dtype.itemsize / 2**20
    )


def test_columns_one_by_one(kind):
    Z, plain = kind.matrix, kind.plain
    Z, seen = Z.by_columns(), np.zeros(plain.shape)
    near(Z.matvec(np.ones(Z.shape[1])), plain.sum(axis=1))
    columns = Z.column_lists()
    if isinstance(columns, DenseColumns):
        seen[:] = columns.entries.T
    else:
        for j in range(Z.shape[1]):
            own = columns.rows[columns.ends[j] : columns.ends[j + 1]]
            seen[own, j] = columns.value
    near(seen, plain)


@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_are_in_float64_whatever_the_blocks(outputs, dtype, order, set_sizes):
    set_sizes(blocks, BLOCK_BYTES=0)  # 256 rows
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((1001, 257)).astype(dtype)
    W, U = rng.standard_normal((257, *outputs)), rng.standard_normal((1001, *outputs))
    U[::3] = 0
    exact = Z.astype(np.float64)
    for matrix in (DenseMatrix(np.asarray(Z, order=order)), Recomputed(Z, 100)):
        near(matrix.matvec(W), exact @ W, 1e-12)
        near(matrix.rmatvec(U), exact.T @ U, 1e-12)
        near(matrix.normal(W), exact.T @ (exact @ W), 1e-12)
        F, value, G = matrix.loss_pass(W, losses.Squared, U)
        near(F, exact @ W, 1e-12)
        near(value, 0.5 * ((exact @ W - U) ** 2).sum(axis=0), 1e-12)
        near(G, exact.T @ (exact @ W - U), 1e-12)


def wide(order):
    """Of a size at which BLAS would split the rows of a block among its threads."""
    rng = np.random.default_rng(2)
    return DenseMatrix(np.asarray(rng.standard_normal((4000, 2000), np.float32), order=order))


@pytest.mark.slow
@pytest.mark.usefixtures("shared_out")
@pytest.mark.parametrize(
    ("make", "outputs"),
    [
        *((lambda X, name=name: KINDS[name](X)[0], ()) for name in ALIKE),
        *((lambda X, order=order: wide(order), (10,)) for order in "CF"),
        *((lambda X, block=block: computed(X, block), ()) for block in (3, 100)),
        (lambda X: computed(sp.csr_matrix(X), 100), ()),
    ],
)
def test_threads_change_no_bit(make, outputs, set_sizes, by_threads, X):
    set_sizes(mapped, _LEAST_ROWS=1, _CACHED_BYTES=7 * 90 * 4)  # seven rows at a time
    Z, rng = make(X), np.random.default_rng(2)
    W, U = rng.standard_normal((Z.shape[1], *outputs)), rng.standard_normal((Z.shape[0], *outputs))
    weights = rng.random(Z.shape[0])

    def products():
        once = Z.matvec(W), Z.rmatvec(U), Z.normal(W), Z.normal(W, weights), Z.outer(U)
        return [*Z.loss_pass(W, losses.Logistic, np.sign(U)), *once]

    one, *others = by_threads(products, (1, 2, 3))
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", [None, np.int8])
def test_as_many_rows_as_fit_are_held_and_computed_once(kind, X):
    made = []
    Z = MapMatrix(Counted(feature_map(), made), X.astype(np.float32), SCALE, block=128)
    most_mb = 0.1 if kind is None else 0.025
    part, count = hold_part(Z, most_mb, kind), int(0.1 * 2**20 / (90 * 4))
    assert isinstance(part, SplitRows)
    assert sum(made) == count < 700
    near(part.matvec(np.ones(90)), features(X).sum(axis=1), 1e-2)
    assert sum(made) == 700
    made.clear()
    assert not hold_part(Z, 10 * most_mb, kind).computed
    assert sum(made) == 700
    assert hold_part(Z, 0.0, kind) is Z


@pytest.mark.parametrize(("kind", "allowed"), [(np.int8, 1e-4), (np.int16, 1e-8)])
def test_a_code_is_off_by_half_a_unit_at_most(kind, allowed, X):
    assert code_type(computed(X), allowed) == kind
    plain = features(X)
    plain[7], limit = 0, np.iinfo(kind).max
    units = np.abs(plain).max(axis=1) / limit
    error = np.abs(coded(DenseMatrix(plain), kind).to_array() - plain)
    assert np.all(error <= (0.5 + 1e-3 * limit / 128) * units[:, None])
    assert np.any(error > 0.4 * units[:, None])
    assert np.square(error, dtype=np.float64).sum(axis=1).mean() < allowed
    # signs of one magnitude are unchanged
    signs = np.where(plain > 0, np.float32(0.3), np.float32(-0.3))
    np.testing.assert_allclose(coded(DenseMatrix(signs), kind).to_array(), signs, rtol=1e-6)


def test_features_are_coded_only_if_errors_are_allowed(X):
    assert code_type(computed(X), 1e-12) is None
    assert code_type(MapMatrix(feature_map(np.float64), X, SCALE), 1.0) is None


class Counted:
    """A map that counts the rows it was asked for."""

    def __init__(self, inner, made):
        self.inner, self.made, self.n_features, self.dtype = (
            inner,
            made,
            inner.n_features,
            inner.dtype,
        )

    def transform(self, X, out):
        self.made.append(len(X))
        return self.inner.transform(X, out=out)

    def select(self, index):
        return Counted(self.inner.select(index), self.made)


def test_what_has_no_weight_is_not_computed(X):
    made = []
    Z = MapMatrix(Counted(feature_map(), made), X.astype(np.float32), SCALE)
    Z.matvec(np.zeros(90))
    Z.square(np.arange(5), np.zeros(700))
    assert sum(made) == 0
    Z.rmatvec((np.arange(700) < 30).astype(float))
    Z.square(np.arange(5), (np.arange(700) < 40).astype(float))
    assert sum(made) == 30 + 40


EXACT, LAM = Budget(tol=1e-10, max_iter=5000), 2.0
LITTLE, SOON = replace(EXACT, memory_mb=0.02), replace(EXACT, tol=1e-6)
# name -> (targets by sign or by value, solver)
SOLVERS = {
    "ridge": ("values", lambda Z, y, **more: solve_ridge(Z, y, LAM, budget=EXACT, **more)),
    "ridge, several outputs": (
        "outputs",
        lambda Z, Y, **more: solve_ridge(Z, Y, LAM, budget=EXACT, **more),
    ),
    "ridge without room for a Gram matrix": (
        "values",
        lambda Z, y, **more: solve_ridge(Z, y, LAM, budget=LITTLE, **more),
    ),
    "ridge by plain conjugate gradients": (
        "values",
        lambda Z, y, **more: solve_ridge_cg(Z, y, LAM, budget=SOON, **more),
    ),
    "ridge in the span of the rows": (
        "values",
        lambda Z, y, **more: solve_dual_ridge(Z, y, LAM, budget=EXACT, **more),
    ),
    "L2, squared hinge": (
        "signs",
        lambda Z, y, **more: solve_l2(Z, y, LAM, losses.SquaredHinge, EXACT, **more),
    ),
    "L2, little memory": (
        "signs",
        lambda Z, y, **more: solve_l2(Z, y, LAM, losses.Logistic, LITTLE, **more),
    ),
    "L2 in the span of the rows": (
        "signs",
        lambda Z, y, **more: solve_dual_l2(Z, y, LAM, losses.Logistic, EXACT, **more),
    ),
    "L1, squared": (
        "values",
        lambda Z, y, **more: solve_l1(Z, y, LAM, losses.Squared, EXACT, **more),
    ),
    "L1, squared hinge": (
        "signs",
        lambda Z, y, **more: solve_l1(Z, y, LAM, losses.SquaredHinge, EXACT, **more),
    ),
    "L1, little memory": (
        "signs",
        lambda Z, y, **more: solve_l1(Z, y, LAM, losses.Logistic, LITTLE, **more),
    ),
    "L1 in rounds": (
        "signs",
        lambda Z, y, **more: solve_rounds(Z, y, LAM, losses.SquaredHinge, EXACT, rounds=3, **more),
    ),
    "L1 by single columns": (
        "values",
        lambda Z, y, **more: solve_prcd(Z, y, 5.0, losses.Squared, SOON, **more),
    ),
    "L1 by grids": (
        "signs",
        lambda Z, y, **more: solve_rb_l1(Z, y, LAM, losses.SquaredHinge, EXACT, **more),
    ),
}


def targets(plain, form):
    """A target that depends on the features, with noise."""
    rng = np.random.default_rng(4)
    values = plain @ rng.standard_normal(plain.shape[1]) + rng.standard_normal(len(plain))
    return {
        "values": values,
        "signs": np.where(values > 0, 1.0, -1.0),
        "outputs": np.stack([values, -2 * values, values**2], axis=1),
    }[form]


# a step of the solver by grids covers a whole grid of bins
PAIRS = [
    (name, kind)
    for name in SOLVERS
    for kind in KINDS
    if name != "L1 by grids" or kind.startswith("binned")
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), PAIRS, indirect=["kind"])
def test_every_solver_over_every_kind(name, kind):
    Z, plain = kind.matrix, kind.plain
    form, solve = SOLVERS[name]
    y = targets(plain, form)
    found = solve(Z, y)
    assert found.converged and found.coef.shape == (Z.shape[1], *y.shape[1:])
    expected = SOLVERS["L1, squared hinge" if name == "L1 by grids" else name][1](
        DenseMatrix(plain), y
    )
    assert found.objective == pytest.approx(expected.objective, rel=5e-6)
    assert found.trace[-1]["objective"] == pytest.approx(found.objective, rel=1e-6)
    np.testing.assert_allclose(
        plain @ found.coef, plain @ expected.coef, atol=2e-3 * np.abs(plain @ expected.coef).max()
    )


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "L1 by grids"])
def test_a_callback_sees_every_step(name, X):
    form, solve = SOLVERS[name]
    Z, plain = KINDS["dense"](X)
    seen, y = [], targets(np.asarray(plain, np.float64), form)

    def callback(entry, coef):
        seen.append((entry, coef().copy()))
        entry["error"] = 1.0

    solution = solve(Z, y, callback=callback)
    assert solution.trace == [entry for entry, _ in seen] and all(
        entry["error"] == 1.0 for entry in solution.trace
    )
    assert {"seconds", "iteration", "objective"} <= set(solution.trace[-1])
    np.testing.assert_allclose(seen[-1][1], solution.coef, atol=1e-6 * np.abs(solution.coef).max())
