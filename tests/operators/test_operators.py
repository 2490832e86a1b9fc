"""Every kind of matrix against plain numpy in float64, and every solver with every kind that it
supports.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import env, losses
from rfx.features import sample
from rfx.features.binning import sample_grids
from rfx.operators import blocks, mapped
from rfx.operators.binned import BinnedMatrix
from rfx.operators.cached import CachedColumns, CachedRows, SplitRows, cache_rows, hold_part
from rfx.operators.coded import Store, code_type, coded
from rfx.operators.mapped import MapMatrix, feature_matrix
from rfx.operators.matrix import COMPUTED, DenseMatrix, Matrix
from rfx.operators.signs import SignColumns
from rfx.operators.sparse import SparseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.dual_l2 import solve_dual_l2, solve_dual_ridge
from rfx.solvers.l1.algorithm1 import solve_rounds
from rfx.solvers.l1.bins import solve_rb_l1
from rfx.solvers.l1.newton import solve_l1
from rfx.solvers.l1.prcd import solve_prcd
from rfx.solvers.l2 import solve_l2
from rfx.solvers.ridge import solve_ridge, solve_ridge_cg

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (700, 5))
MAP = sample("gaussian", 5, 90, 3, gamma=1.0)
WIDE = sample("gaussian", 5, 90, 3, gamma=1.0, dtype=np.float64)
SCALE = 0.3


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


class Apart(Recomputed):
    """Rows on two machines, for example: each part answers for its own rows, in any order."""

    def parts(self):
        for rows in (
            np.arange(1, len(self.Z), 3),
            np.setdiff1d(np.arange(len(self.Z)), np.arange(1, len(self.Z), 3)),
        ):
            yield rows, DenseMatrix(self.Z[rows])

    def rows(self, index):
        return Apart(self.Z[index])

    def columns(self, index):
        return Apart(self.Z[:, index])


def features(dtype=np.float32):
    return (SCALE * (MAP if dtype == np.float32 else WIDE).transform(X.astype(dtype))).astype(dtype)


def bins(rows=X, n_grids=11):
    ids, found = sample_grids("laplacian", rows.shape[1], n_grids, 0, gamma=1.0).number(rows)
    return BinnedMatrix(ids, found.starts)


def held_rows():
    Z = CachedRows(MapMatrix(MAP, X.astype(np.float32), SCALE), 1.0)
    Z.rows(np.arange(100, 300, 2))
    Z.rows(np.arange(150, 390, 3))
    return Z


def held_columns():
    Z = MapMatrix(MAP, X.astype(np.float32), SCALE, block=128)
    return CachedColumns(Z, np.arange(0, 90, 2))


def signs():
    found, Z = np.where(features() > 0, 1, -1), SignColumns(700)
    for start, stop in ((0, 1), (1, 8), (8, 90)):
        Z.append(found[:, start:stop])
    return Z, found


def codes(kind):
    store = Store(800, 90, kind, np.float32)
    store.put(np.arange(750, 50, -1), features())
    Z = store.at(np.arange(750, 50, -1))
    return Z, Z.to_array()


# name -> (matrix, the same in plain float64)
def few():
    """Features most of which are zero."""
    return np.where(np.abs(features()) > 0.1, features(), np.float32(0))


KINDS = {
    "dense": lambda: (DenseMatrix(features()), features()),
    "dense in float64": lambda: (DenseMatrix(features(np.float64)), features(np.float64)),
    "dense by columns": lambda: (DenseMatrix(np.asfortranarray(features())), features()),
    "some rows of an array": lambda: (
        DenseMatrix(features()).rows(np.arange(650, 30, -2)),
        features()[650:30:-2],
    ),
    "partly in memory": lambda: (
        hold_part(MapMatrix(MAP, X.astype(np.float32), SCALE, block=128), 0.1),
        features(),
    ),
    "computed": lambda: (MapMatrix(MAP, X.astype(np.float32), SCALE, block=128), features()),
    "computed from sparse rows": lambda: (MapMatrix(MAP, sp.csr_matrix(X), SCALE), features()),
    "computed, some rows held": lambda: (held_rows(), features()),
    "some columns held": lambda: (held_columns(), features() * (np.arange(90) % 2 == 0)),
    "binned": lambda: (bins(), bins().to_array()),
    "binned, by columns": lambda: (bins().by_columns(1.0), bins().to_array()),
    "least that a kind defines": lambda: (Recomputed(features()), features()),
    "sparse": lambda: (SparseMatrix(sp.csr_matrix(few()), np.float32), few()),
    "signs by columns": signs,
    "codes of 8 bits": lambda: codes(np.int8),
    "codes of 16 bits": lambda: codes(np.int16),
    "parts elsewhere": lambda: (Apart(features()), features()),
}


@pytest.fixture(params=list(KINDS))
def kind(request):
    """(matrix, array of float64)."""
    Z, plain = KINDS[request.param]()
    return Z, np.asarray(plain, np.float64)


def near(found, expected, tolerance=1e-5):
    assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype == np.float64
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0))
    )


@pytest.mark.parametrize("outputs", [(), (3,)])
def test_products(kind, outputs):
    Z, plain = kind
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


@pytest.mark.parametrize("outputs", [(), (3,)])
@pytest.mark.parametrize("name", ["squared", "squared_hinge", "hinge", "logistic"])
def test_loss_pass(kind, name, outputs):
    (Z, plain), loss = kind, losses.LOSSES[name]
    rng = np.random.default_rng(2)
    W, y = (
        0.1 * rng.standard_normal((Z.shape[1], *outputs)),
        rng.choice([-1.0, 1.0], (Z.shape[0], *outputs)),
    )
    F, value, G = Z.loss_pass(W, loss, y)
    near(F, plain @ W)
    near(value, loss.value(plain @ W, y).sum(axis=0))
    near(G, plain.T @ loss.derivative(plain @ W, y))


def test_gram(kind):
    Z, plain = kind
    rng = np.random.default_rng(3)
    left, right = np.split(rng.permutation(Z.shape[1])[:60], [25])
    margin = np.where(rng.random(Z.shape[0]) < 0.4, 2.0, 0.0)
    for weights in (None, margin, rng.random(Z.shape[0]), np.zeros(Z.shape[0])):
        own = plain[:, left].T * (1.0 if weights is None else weights)
        square, cross = Z.gram(left, right, weights)
        near(square, own @ plain[:, left])
        near(cross, own @ plain[:, right])
        near(Z.gram(left, None, weights), own @ plain[:, left])
    change = rng.choice([-2.0, 0.0, 2.0], Z.shape[0])
    near(Z.gram(left, weights=change), plain[:, left].T @ (change[:, None] * plain[:, left]))
    assert Z.gram(left[:0], right, margin)[1].shape == (0, 35)
    near(
        Z.gram(np.arange(Z.shape[1]), weights=Z.gram_weights(margin)),
        plain.T @ (margin[:, None] * plain),
    )


def test_rows_columns_and_blocks(kind):
    Z, plain = kind
    near(Z.to_array().astype(np.float64), plain)
    near(Z.to_array(np.empty(Z.shape, Z.dtype)).astype(np.float64), plain)
    rows, columns = np.array([3, 4, 5, 77, 300]), np.array([8, 2, 80])
    for index in (rows, slice(20, 270)):
        # the results of a kind must be matrices that support all of this again
        part = Z.rows(index if not isinstance(Z, CachedRows) else np.arange(len(plain))[index])
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


@pytest.mark.parametrize("limit", [0.0, 1000.0])
def test_columns_one_by_one(kind, limit):
    Z, plain = kind
    Z, seen = Z.by_columns(limit), np.zeros(plain.shape)
    near(Z.matvec(np.ones(Z.shape[1])), plain.sum(axis=1))
    for columns, values, rows, ends in Z.column_lists(20):
        if rows is None:
            seen[:, columns] = values.T
            continue
        for j in range(columns.start, columns.stop):
            assert np.array_equal(rows[ends[j] : ends[j + 1]], np.flatnonzero(plain[:, j]))
            seen[rows[ends[j] : ends[j + 1]], j] = values
    near(seen, plain)


@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_are_in_float64_whatever_the_blocks(outputs, dtype, order, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 0)  # 256 rows
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


@pytest.mark.parametrize(
    "name",
    [
        "dense",
        "dense by columns",
        "computed",
        "some columns held",
        "binned",
        "signs by columns",
        "codes of 8 bits",
    ],
)
def test_threads_change_no_bit(name):
    Z, _ = KINDS[name]()
    rng = np.random.default_rng(2)
    w, u, weights, results = (
        rng.standard_normal(Z.shape[1]),
        rng.standard_normal(Z.shape[0]),
        rng.random(Z.shape[0]),
        [],
    )
    for count in (1, 2, 3):
        env.set_threads(count)
        results.append(
            [
                *Z.loss_pass(w, losses.Logistic, np.sign(u)),
                Z.matvec(w),
                Z.rmatvec(u),
                Z.normal(w, weights),
                Z.outer(u),
            ]
        )
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("order", ["C", "F"])
def test_threads_change_no_bit_of_several_columns(order):
    """Products of a size at which BLAS would split the rows of a block among its threads."""
    rng = np.random.default_rng(2)
    Z = DenseMatrix(np.asarray(rng.standard_normal((4000, 2000), np.float32), order=order))
    W, U, results = rng.standard_normal((2000, 10)), rng.standard_normal((4000, 10)), []
    for count in (1, 2, 3):
        env.set_threads(count)
        results.append([Z.matvec(W), Z.rmatvec(U), Z.normal(W, np.abs(U[:, 0]))])
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_as_many_rows_as_fit_are_held():
    made = []
    Z = MapMatrix(Counted(MAP, made), X.astype(np.float32), SCALE, block=128)
    part = hold_part(Z, 0.1)
    count = int(0.1 * 2**20 / (90 * 4))
    assert isinstance(part, SplitRows) and sum(made) == count < 700
    part.matvec(np.ones(90))
    assert sum(made) == 700
    assert not hold_part(Z, 1.0).computed and hold_part(Z, 0.0) is Z
    made.clear()
    held = CachedRows(Z, 0.1)
    held.rows(np.arange(600)).rmatvec(np.ones(600))
    held.rows(np.arange(50, 700)).rmatvec(np.ones(650))
    assert sum(made) == 600 + 50 + 650 - count


@pytest.mark.parametrize("columns", [1, 65, 200])
def test_the_largest_entry_has_the_largest_code(columns):
    Z = np.random.default_rng(0).uniform(-0.5, 0.5, (columns, columns)).astype(np.float32)
    np.fill_diagonal(Z, 1.0)
    assert np.all(np.diag(coded(DenseMatrix(Z), np.int8).values) == 127)


@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_a_code_is_off_by_half_a_unit_at_most(kind):
    plain = features()
    plain[7], limit = 0, np.iinfo(kind).max
    store = Store(700, 90, kind, np.float32)
    store.put(np.arange(700), plain)
    units = np.abs(plain).max(axis=1) / limit
    error = np.abs(store.at(np.arange(700)).to_array() - plain)
    assert np.all(error <= (0.5 + 1e-3 * limit / 128) * units[:, None]) and np.any(
        error > 0.4 * units[:, None]
    )
    # signs of one magnitude are unchanged
    store.put(np.arange(700), np.where(plain > 0, np.float32(0.3), np.float32(-0.3)))
    np.testing.assert_allclose(
        store.at(np.arange(700)).to_array(), np.where(plain > 0, 0.3, -0.3), rtol=1e-6
    )


def test_the_type_of_codes_follows_the_error_that_is_allowed():
    Z = MapMatrix(MAP, X.astype(np.float32), SCALE)
    assert (
        code_type(Z, 1e-4) == np.int8
        and code_type(Z, 1e-8) == np.int16
        and code_type(Z, 1e-12) is None
    )
    assert code_type(MapMatrix(WIDE, X, SCALE), 1.0) is None
    plain = features()
    for kind, error in ((np.int8, 1e-4), (np.int16, 1e-8)):
        store = Store(700, 90, kind, np.float32)
        store.put(np.arange(700), plain)
        changed = np.square(store.at(np.arange(700)).to_array() - plain, dtype=np.float64).sum(
            axis=1
        )
        assert changed.mean() < error


@pytest.mark.usefixtures("shared_out")
@pytest.mark.parametrize("block", [None, 3, 100])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_products_with_computed_features_are_the_same_by_any_number_of_threads(
    block, kind, monkeypatch
):
    rng = np.random.default_rng(1)
    Z, plain = (
        MapMatrix(MAP, kind(X.astype(np.float32)), SCALE, block),
        features().astype(np.float64),
    )
    w, u, weights, y = (
        rng.standard_normal(90),
        rng.standard_normal(700),
        rng.random(700),
        rng.choice([-1.0, 1.0], 700),
    )
    monkeypatch.setattr(mapped, "_LEAST_ROWS", 1)
    monkeypatch.setattr(mapped, "_CACHED_BYTES", 7 * 90 * 4)  # seven rows at a time
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(env, "threads", lambda count=threads: count)
        found.append(
            [
                Z.matvec(w),
                Z.rmatvec(u),
                Z.normal(w),
                Z.normal(w, weights),
                *Z.loss_pass(w, losses.Logistic, y),
            ]
        )
    F = plain @ w
    wanted = [F, plain.T @ u, plain.T @ F, plain.T @ (weights * F), F]
    for own, value in zip(
        found[0],
        [*wanted, losses.Logistic.value(F, y).sum(), plain.T @ losses.Logistic.derivative(F, y)],
        strict=True,
    ):
        near(own, value, 1e-9)
    for other in found[1:]:
        for own, first in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(own, first)


def test_rows_that_all_fit_are_computed_once():
    made = []
    Z = MapMatrix(Counted(MAP, made), X.astype(np.float32), SCALE, block=128)
    weights, p = np.linspace(1, 2, 700), np.random.default_rng(0).standard_normal(90)
    for max_mb, kind, tolerance in ((1.0, None, 1e-5), (0.1, np.int8, 1e-2)):
        made.clear()
        held, plain = cache_rows(Z, max_mb, kind), features().astype(np.float64)
        for _ in range(2):
            near(held.loss_pass(p, losses.Logistic, np.ones(700))[0], plain @ p, tolerance)
        near(
            held.rows(np.arange(3, 90)).normal(p, weights[3:90]),
            plain[3:90].T @ (weights[3:90] * (plain[3:90] @ p)),
            tolerance,
        )
        assert sum(made) == 700


def test_held_rows_follow_a_changing_set():
    Z, plain = MapMatrix(MAP, X.astype(np.float32), SCALE, block=128), features().astype(np.float64)
    held, made = CachedRows(Z, 0.1), []
    Z.map = Counted(MAP, made)
    rng, weights = np.random.default_rng(0), np.linspace(1, 2, 700)
    p = rng.standard_normal(90)
    for count in (200, 210, 5, 260, 700, 100):
        index = np.sort(rng.permutation(700)[:count])
        part = held.rows(index)
        assert part.computed == (count > held.capacity)
        near(part.to_array().astype(np.float64), plain[index])
        near(part.normal(p, weights[index]), plain[index].T @ (weights[index] * (plain[index] @ p)))
        near(
            held.loss_pass(p, losses.Logistic, np.ones(700))[2],
            plain.T @ losses.Logistic.derivative(plain @ p, np.ones(700)),
        )
    held.rows(np.arange(50, 90))
    made.clear()
    held.rows(np.arange(60, 100))
    assert sum(made) == 10
    near(held.matvec(p), plain @ p)
    assert sum(made) == 10 + 660


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


def test_what_has_no_weight_is_not_computed():
    made = []
    Z = MapMatrix(Counted(MAP, made), X.astype(np.float32), SCALE)
    Z.matvec(np.zeros(90))
    Z.gram(np.arange(5), weights=np.zeros(700))
    assert sum(made) == 0
    Z.rmatvec((np.arange(700) < 30).astype(float))
    Z.gram(np.arange(5), weights=(np.arange(700) < 40).astype(float))
    assert sum(made) == 30 + 40


def test_features_are_held_only_where_they_fit():
    assert not feature_matrix(MAP, X, max_mb=1.0).computed
    assert feature_matrix(MAP, X, max_mb=0.1).computed


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
    "L1, some columns at a time": (
        "values",
        lambda Z, y, **more: solve_prcd(
            Z, y, 5.0, losses.Squared, replace(SOON, memory_mb=0.1), **more
        ),
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


@pytest.mark.parametrize(("name", "kind"), PAIRS, indirect=["kind"])
def test_every_solver_over_every_kind(name, kind):
    (Z, plain), (form, solve) = kind, SOLVERS[name]
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
def test_a_callback_sees_every_step(name):
    form, solve = SOLVERS[name]
    Z, plain = KINDS["dense"]()
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
