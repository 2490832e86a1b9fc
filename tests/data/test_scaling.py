"""What is learnt of the inputs of the training rows, and stored in the model: scalings, transforms
of single columns, principal components, and the survey of rows that come in pieces.
"""

import numpy as np
import pytest
import scipy.sparse
from sklearn import preprocessing

from rfx.counters import random_rows
from rfx.data import transforms
from rfx.data.transforms import (
    KINDS,
    PCA,
    TRANSFORMED,
    TRANSFORMS,
    Scaler,
    Sorted,
    Survey,
    TargetScaler,
    unit_rows,
)
from rfx.errors import DataError, RfxWarning, UsageError

VARYING = [0, 1, 2, 3]


# those that do not transform single columns
LINES = [kind for kind in KINDS if kind not in TRANSFORMS]


@pytest.fixture(scope="module")
def X():
    """Rows (200, 6) of which many values are zero; the last two columns are constant."""
    rng = np.random.default_rng(0)
    rows = rng.normal(5, 3, (200, 6)) * (rng.random((200, 6)) < 0.6)
    rows[:, 4:] = [7.1, 0]
    return rows


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("kind", LINES)
def test_agrees_with_scikit_learn(kind, form, X):
    train, test = X[:150, VARYING], X[150:, VARYING] * 3
    theirs = {
        "none": preprocessing.FunctionTransformer(),
        "standard": preprocessing.StandardScaler(),
        # does not clip either
        "minmax01": preprocessing.MinMaxScaler((0, 1)),
        "minmax11": preprocessing.MinMaxScaler((-1, 1)),
    }[kind]
    expected = theirs.fit(train).transform(test)
    np.testing.assert_allclose(Scaler.fit(form(train), kind).transform(test), expected, atol=1e-13)


def test_constant_columns_are_zero_and_large_means_lose_no_digits(rng):
    for kind in set(KINDS) - {"none"}:
        assert Scaler.fit(np.full((3, 1), 0.1), kind).transform(np.array([[99.0]])) == 0
    tiny = Scaler.fit(np.array([[0.0], [5e-324]]), "minmax01")
    assert np.isfinite(tiny.transform(np.array([[1.0]]))).all()
    far = 1e9 + rng.standard_normal((5000, 1))
    np.testing.assert_allclose(1 / Scaler.fit(far, "standard").scale, far.std(), rtol=1e-6)


def test_none_copies_nothing(X):
    for rows in (X, scipy.sparse.csr_matrix(X)):
        assert Scaler.fit(rows, "none").transform(rows) is rows


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_columns(kind, X):
    scaler = Scaler.fit(X, kind)
    padded = scaler.transform(scipy.sparse.csr_matrix(X[:, :4]))
    padded = padded.toarray() if scipy.sparse.issparse(padded) else padded
    np.testing.assert_array_equal(padded, scaler.transform(X * [1, 1, 1, 1, 0, 0]))
    for wrong in (np.ones((2, 7)), scipy.sparse.csr_matrix(np.ones((2, 7))), np.ones((2, 5))):
        with pytest.raises(DataError, match=f"{wrong.shape[1]} features.* 6"):
            scaler.transform(wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_saving_and_loading(kind, X):
    scaler = Scaler.fit(X, kind)
    saved = scaler.to_dict()
    own = set(TRANSFORMS[kind].forms) if kind in TRANSFORMS else set()
    assert set(saved) == {"kind", "metric", "shift", "scale"} | own and saved["shift"].shape == (6,)
    np.testing.assert_array_equal(Scaler.from_dict(saved).transform(X), scaler.transform(X))


@pytest.mark.parametrize(
    "y, kind, scaled",
    [
        ([1922.0, 2011, 1990], "minmax01", [0, 1, 68 / 89]),
        ([1.0, 2, 6], "mean", [-2, -1, 3]),
        ([3.0, 3], "minmax01", [0, 0]),
        ([[1.0, 5], [3, 5]], "mean", [[-1, 0], [1, 0]]),
    ],
)
def test_targets(y, kind, scaled):
    scaler = TargetScaler.fit(np.array(y), kind)
    np.testing.assert_allclose(scaler.transform(np.array(y)), scaled)
    saved = scaler.to_dict()
    again = TargetScaler.from_dict(saved, np.ndim(y))
    np.testing.assert_allclose(again.inverse(np.array(scaled)), y)
    # not clipped
    np.testing.assert_allclose(again.transform(again.inverse(np.full_like(y, 2.0))), 2.0)
    if np.ndim(y) == 2:
        with pytest.raises(DataError, match="not for 3 targets"):
            TargetScaler.from_dict(saved, 3)


def text_rows(seed=0, n=60, d=1500):
    """Sparse nonnegative rows in which the last column is never zero."""
    X = scipy.sparse.random(n, d, 0.01, "lil", random_state=seed)
    X[:, d - 1] = 1 + np.arange(n)[:, None]
    return X.tocsr()


@pytest.mark.parametrize("kind", ["minmax01", "minmax11", "standard"])
def test_wide_sparse_rows_stay_sparse(kind):
    X = text_rows()
    with pytest.warns(
        RfxWarning,
        match=f"1,500 columns: each is divided by its .* not shifted, .*unlike {kind} on dense",
    ):
        scaler = Scaler.fit(X, kind)
    found = scaler.transform(X)
    dense = X.toarray()
    size = dense.std(axis=0) if kind == "standard" else np.abs(dense).max(axis=0)
    assert scipy.sparse.issparse(found) and found.nnz == X.nnz and not scaler.shift.any()
    np.testing.assert_allclose(
        found.toarray(),
        np.divide(dense, size, out=np.zeros_like(dense), where=size > 0),
        rtol=1e-12,
    )
    np.testing.assert_allclose(scaler.transform(dense), found.toarray(), rtol=1e-12)
    again = Scaler.from_dict(scaler.to_dict())
    np.testing.assert_array_equal(
        again.transform(X[:7], dtype=np.float32).toarray(), found[:7].toarray().astype(np.float32)
    )


def test_sparse_rows_from_zero_up_are_scaled_as_dense_ones_are(recwarn):
    X = text_rows()[:, :-1]
    sparse, dense = Scaler.fit(X, "minmax01"), Scaler.fit(X.toarray(), "minmax01")
    np.testing.assert_array_equal(sparse.transform(X).toarray(), dense.transform(X.toarray()))
    assert not [warning for warning in recwarn if issubclass(warning.category, RfxWarning)]
    assert not scipy.sparse.issparse(Scaler.fit(X[:, :900], "minmax01").transform(X[:, :900]))


# ------------------------------------------------------------------ transforms of single columns

N = 1500
CHANGING = list(TRANSFORMS)


@pytest.fixture(scope="module")
def mixed():
    """Rows whose columns have very different distributions."""
    rng = np.random.default_rng(1)
    columns = [
        rng.normal(3, 2, N),
        rng.lognormal(0, 1, N),
        -rng.lognormal(2, 2, N),
        rng.standard_cauchy(N),
        rng.integers(0, 6, N),  # ties
        rng.integers(1950, 2010, N),
        1e-9 * rng.exponential(size=N),
        np.where(rng.random(N) < 0.8, 0.0, rng.exponential(size=N)),  # mostly one value
    ]
    return np.stack(columns, axis=1).astype(float)


@pytest.fixture(scope="module")
def beyond(mixed):
    """New rows, some of them beyond the range of the training rows."""
    return np.concatenate([mixed[:100] * 1.5, mixed[:100] - 1, [[0.0] * 8]])


def unit_of(data):
    """The robust unit of columns, by numpy's percentiles."""
    low, high = np.percentile(data, [25, 75], axis=0)
    return np.where(high > low, (high - low) / 1.3489795003921634, data.std(axis=0))


def test_power_is_scikit_learns_of_columns_in_robust_units(mixed, beyond):
    scaler = Scaler.fit(mixed, "power")
    centre, unit = np.median(mixed, axis=0), unit_of(mixed)
    theirs = preprocessing.PowerTransformer("yeo-johnson").fit((mixed - centre) / unit)
    np.testing.assert_allclose(scaler.columns.lam, theirs.lambdas_, atol=1e-5)
    for rows in (mixed, beyond):
        expected = theirs.transform((rows - centre) / unit)
        np.testing.assert_allclose(scaler.transform(rows), expected, rtol=1e-4, atol=1e-4)
    # very different columns: one is hardly transformed, others strongly
    assert abs(scaler.columns.lam[0] - 1) < 0.1 and scaler.columns.lam[1] < 0.2
    assert scaler.columns.lam[2] > 1.8


def test_robust_is_softly_clipped_in_robust_units(mixed, beyond):
    scaler = Scaler.fit(mixed, "robust")
    for rows in (mixed, beyond):
        z = (rows - np.median(mixed, axis=0)) / unit_of(mixed)
        expected = z / np.sqrt(1 + (z / 3) ** 2)
        np.testing.assert_allclose(scaler.transform(rows), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [65, 1200, N])
def test_quantile_is_scikit_learns(n, mixed, beyond):
    # it treats columns of tiny numbers as constant within 1e-7
    kept, number = np.delete(mixed[:n], 6, axis=1), min(n, 1000)
    theirs = preprocessing.QuantileTransformer(
        n_quantiles=number, output_distribution="normal", subsample=None
    ).fit(kept)
    ours = Scaler.fit(kept, "quantile")
    np.testing.assert_allclose(ours.columns.quantiles.T, theirs.quantiles_, rtol=1e-12)
    for rows in (kept, np.delete(beyond, 6, axis=1)):
        np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-7)


@pytest.mark.parametrize("kind", ["power", "quantile"])
def test_two_values_are_standardised(kind, rng):
    two = (rng.random((N, 1)) < 0.1).astype(float)
    for low, high in ((0.0, 1.0), (-1e200, 3e200), (1e9, 1e9 + 1)):
        column = np.where(two > 0, high, low)
        scaled = Scaler.fit(column, kind).transform(column)
        np.testing.assert_allclose(scaled, (two - two.mean()) / two.std(), rtol=1e-7)
        assert len(np.unique(scaled)) == 2


@pytest.mark.parametrize("kind", CHANGING)
def test_what_is_not_finite_is_refused(kind, mixed):
    scaler = Scaler.fit(mixed, kind)
    for value in (np.nan, np.inf, -np.inf):
        broken = mixed.copy()
        broken[3, 1] = value
        with pytest.raises(DataError, match="column 2 of the training rows can't be scaled"):
            Scaler.fit(broken, kind)
        with pytest.raises(DataError, match="the value of row 4, column 2 is"):
            scaler.transform(broken)
    constraint = np.array([[-1.7e308], [0.0], [1.7e308]])
    with pytest.raises(DataError, match="or their range exceeds float64"):
        Scaler.fit(constraint, kind)


@pytest.mark.parametrize("kind", CHANGING)
def test_the_order_of_the_rows_changes_no_bit(kind, rng, mixed):
    shuffled = mixed[rng.permutation(N)]
    weights = np.arange(1.0, N + 1)
    order = rng.permutation(N)
    for one, other in (
        (Scaler.fit(mixed, kind), Scaler.fit(shuffled, kind)),
        (Scaler.fit(mixed, kind, weights), Scaler.fit(mixed[order], kind, weights[order])),
        (Scaler.fit(mixed, kind), Scaler.fit(scipy.sparse.csr_matrix(mixed), kind)),
        (Scaler.fit(mixed, kind), Scaler.fit(np.asfortranarray(mixed), kind)),
    ):
        for name, values in one.to_dict().items():
            np.testing.assert_array_equal(values, other.to_dict()[name])


@pytest.mark.parametrize("kind", CHANGING)
def test_blocks_and_layouts_change_no_bit(kind, mixed):
    scaler = Scaler.fit(mixed, kind)
    whole = scaler.transform(mixed)
    np.testing.assert_array_equal(scaler.transform(scipy.sparse.csr_matrix(mixed)), whole)
    np.testing.assert_array_equal(scaler.transform(np.asfortranarray(mixed)), whole)
    np.testing.assert_array_equal(scaler.transform(np.repeat(mixed, 2, axis=1)[:, ::2]), whole)
    # in several blocks
    times = 1 + (1 << 21) // mixed.size
    many, expected = np.tile(mixed, (times, 1)), np.tile(whole, (times, 1))
    np.testing.assert_array_equal(scaler.transform(many), expected)
    np.testing.assert_array_equal(scaler.transform(many, np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("kind", CHANGING)
def test_weights_are_repetitions(kind, rng, mixed):
    weights = rng.integers(0, 4, N)
    weights[:5] = 1
    some = np.delete(mixed, 3, axis=1)
    ours, theirs = Scaler.fit(some, kind, weights), Scaler.fit(np.repeat(some, weights, 0), kind)
    unweighted = Scaler.fit(some, kind).transform(some)
    if kind == "quantile":
        # both have the same number of quantiles, because more than 1,000 rows have a weight
        assert ours.columns.quantiles.shape == theirs.columns.quantiles.shape
    np.testing.assert_allclose(ours.transform(some), theirs.transform(some), atol=1e-5)
    assert np.abs(ours.transform(some) - unweighted).max() > 1e-3
    # the unit of the weights does not matter
    halves = Scaler.fit(some, kind, weights / 2)
    np.testing.assert_allclose(halves.transform(some), ours.transform(some), atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 5, 400])
def test_quantiles_are_numpys(count, rng):
    shares, values = np.linspace(0, 1, 37), np.round(rng.normal(size=count), 1)
    found = Sorted.of(values).quantiles(shares)
    np.testing.assert_allclose(found, np.quantile(values, shares), atol=1e-14)
    weights = np.append(1, rng.integers(1, 5, count - 1))
    expected = np.quantile(np.repeat(values, weights), shares)
    found = Sorted.of(values, weights.astype(float)).quantiles(shares)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("kind", CHANGING)
def test_wide_sparse_rows_are_refused(kind):
    rows = text_rows()
    message = f"--scaling is {kind}, but the rows are sparse, with 1,500 columns.*use standard"
    with pytest.raises(UsageError, match=message):
        Scaler.fit(rows, kind)
    with pytest.raises(UsageError, match=message):
        Survey(lambda: iter([(rows, np.arange(60.0))]), scaling=kind)
    # learnt on dense rows, it makes sparse rows dense, because zeros do not stay zeros
    scaler = Scaler.fit(rows.toarray() + np.arange(60.0)[:, None], kind)
    np.testing.assert_array_equal(scaler.transform(rows), scaler.transform(rows.toarray()))


@pytest.mark.parametrize("kind", CHANGING)
def test_many_rows_are_learnt_from_some_drawn_by_the_seed(kind, mixed):
    rows = mixed[np.arange(60_000) % len(mixed)]
    some = random_rows(len(rows), transforms.MOST_ROWS, seed=3)
    expected, found = Scaler.fit(rows[some], kind), Scaler.fit(rows, kind, seed=3)
    for name, values in expected.to_dict().items():
        np.testing.assert_array_equal(found.to_dict()[name], values)


def chunked(rows, y, sizes):
    """A function that returns the rows in chunks of these sizes."""
    ends = list(zip(sizes, np.cumsum(sizes)))
    return lambda: ((rows[end - size : end], y[end - size : end]) for size, end in ends)


def surveyed(rows, kind, sizes, sample):
    rows = chunked(rows, np.zeros(len(rows)), sizes)
    return Survey(rows, scaling=kind, dtype=np.float64, sample=sample)


@pytest.mark.parametrize("kind", CHANGING)
def test_a_long_stream_learns_the_same_however_it_is_cut(kind):
    many = np.random.default_rng(1).exponential(size=(2 * TRANSFORMED + 77, 2))
    one = surveyed(many, kind, [len(many)], 30)
    other = surveyed(many, kind, [3000] * 7, 30)
    larger = surveyed(many, kind, [len(many)], TRANSFORMED + 5)
    whole = Scaler.fit(many, kind).transform(many)
    for name, values in one.inputs.scaler.to_dict().items():
        np.testing.assert_array_equal(other.inputs.scaler.to_dict()[name], values)
        np.testing.assert_array_equal(larger.inputs.scaler.to_dict()[name], values)
    np.testing.assert_array_equal(one.X, other.X)
    assert one.X.shape == (30, 2) and larger.X.shape == (TRANSFORMED + 5, 2)
    # a sample of rows from everywhere gives nearly the statistics of all rows
    found = one.inputs.scaler.transform(many)
    near = np.abs(found - whole)[(np.abs(whole) < 2).all(axis=1)].max()
    assert 0 < near < 0.1


# -------------------------------------------------------------------------- principal components


@pytest.mark.parametrize("centred", [True, False])
def test_pieces_and_sparse_rows_give_the_components_of_the_singular_vectors(centred, rng):
    along = rng.standard_normal((300, 6)) * [5, 3, 2, 1, 0.5, 0.1]
    turned = along @ np.linalg.qr(rng.standard_normal((6, 6)))[0] + 100.0
    pieces = PCA(3, centred)
    parts = [turned[start : start + 70] for start in range(0, 300, 70)]
    parts[1] = scipy.sparse.csr_matrix(parts[1])
    for part in parts:
        pieces.partial_fit(part)
    pieces.finish()
    rows = turned - turned.mean(axis=0) if centred else turned
    vectors = np.linalg.svd(rows, full_matrices=False)[2][:3].T
    made = pieces.transform(turned)
    np.testing.assert_allclose(np.abs(made), np.abs(rows @ vectors), atol=1e-7)
    np.testing.assert_allclose(pieces.transform(scipy.sparse.csr_matrix(turned)), made, atol=1e-9)
    assert pieces.transform(turned.astype(np.float32)).dtype == np.float32
    again = PCA.from_dict(vars(pieces))
    np.testing.assert_array_equal(again.transform(turned), made)
    with pytest.raises(UsageError, match="--pca is 7, but the rows have 6 inputs"):
        PCA(7).partial_fit(turned)
    largest = np.abs(pieces.components).argmax(axis=0)
    assert np.all(pieces.components[largest, range(3)] > 0)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_unit_rows(form):
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    made = unit_rows(form(rows))
    made = made.toarray() if scipy.sparse.issparse(made) else made
    np.testing.assert_allclose(made, [[0.6, 0.8], [0, 0], [0, -1]])
    assert unit_rows(form(rows.astype(np.float32))).dtype == np.float32


# --------------------------------------------------------------------- surveys of rows in pieces


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_teach_what_all_rows_do(kind, form, rng):
    """One of the pieces is longer than what is learnt from at a time."""
    X = rng.standard_normal((9000, 6)) * [1, 2, 3, 4, 5, 0] + [0, 10, -5, 0, 2, 7]
    y = rng.integers(0, 4, 9000).astype(float)
    same = {"scaling": kind, "unit": True, "pca": 2, "dtype": np.float64, "seed": 3, "sample": 50}
    rows = form(X)
    found = Survey(chunked(rows, y, (100, 8300, 3, 597)), **same)
    scaler = Scaler.fit(X, kind)
    np.testing.assert_allclose(found.inputs.scaler.shift, scaler.shift, atol=1e-10)
    np.testing.assert_allclose(found.inputs.scaler.scale, scaler.scale, rtol=1e-10)
    unit = unit_rows(scaler.transform(X))
    expected = PCA(2).partial_fit(unit).finish().transform(unit)
    np.testing.assert_allclose(found.inputs.transform(rows, np.float64), expected, atol=1e-8)
    assert (found.n_rows, found.n_inputs) == (9000, 6)
    np.testing.assert_array_equal(found.labels, [0, 1, 2, 3])
    for target in ("none", "minmax01", "mean"):
        assert found.target_scaler(target) == TargetScaler.fit(y, target)
    # each row is sampled at most once, and the sample does not depend on the pieces
    again = Survey(chunked(rows, y, (8999, 1)), **same)
    np.testing.assert_allclose(found.X, again.X, atol=1e-8)
    np.testing.assert_array_equal(found.y, again.y)
    near = ((found.X[:, None] - expected[None]) ** 2).sum(-1)
    assert near.min(axis=1).max() < 1e-12 and len(set(near.argmin(axis=1))) == 50


def test_many_targets_are_no_labels_and_no_rows_are_refused(rng):
    assert Survey(lambda: iter([(np.zeros((3000, 2)), rng.standard_normal(3000))])).labels is None
    with pytest.raises(DataError, match="no rows to learn from"):
        Survey(lambda: iter([]))
