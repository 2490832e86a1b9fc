"""Scalings that transform columns agree with scikit-learn, are robust, and give the same bits for
any order of rows.
"""

import numpy as np
import pytest
import scipy.sparse
from sklearn import preprocessing

from rfx.data import transforms
from rfx.data.survey import TRANSFORMED, Survey
from rfx.data.transforms import TRANSFORMS, Scaler, Sorted
from rfx.errors import DataError, UsageError

RNG = np.random.default_rng(7)
N = 1500
X = np.stack(
    [
        RNG.normal(3, 2, N),
        RNG.lognormal(0, 1, N),
        -RNG.lognormal(2, 2, N),
        RNG.standard_cauchy(N),
        RNG.integers(0, 6, N),  # ties
        RNG.integers(1950, 2010, N),
        1e-9 * RNG.exponential(size=N),
        np.where(RNG.random(N) < 0.8, 0.0, RNG.exponential(size=N)),  # mostly one value
    ],
    axis=1,
).astype(float)
TEST = np.concatenate([X[:100] * 1.5, X[:100] - 1, [[0.0] * 8]])
TWO = (RNG.random(N) < 0.1).astype(float)[:, None]
KINDS = list(TRANSFORMS)


def unit_of(data):
    """The robust unit of columns, by numpy's percentiles."""
    low, high = np.percentile(data, [25, 75], axis=0)
    return np.where(high > low, (high - low) / 1.3489795003921634, data.std(axis=0))


def test_power_is_scikit_learns_of_columns_in_robust_units():
    scaler = Scaler.fit(X, "power")
    centre, unit = np.median(X, axis=0), unit_of(X)
    theirs = preprocessing.PowerTransformer("yeo-johnson").fit((X - centre) / unit)
    np.testing.assert_allclose(scaler.columns.lam, theirs.lambdas_, atol=1e-5)
    for rows in (X, TEST):
        expected = theirs.transform((rows - centre) / unit)
        np.testing.assert_allclose(scaler.transform(rows), expected, rtol=1e-4, atol=1e-4)
    # very different columns: one is hardly transformed, others strongly
    assert abs(scaler.columns.lam[0] - 1) < 0.1 and scaler.columns.lam[1] < 0.2
    assert scaler.columns.lam[2] > 1.8


def test_robust_is_scikit_learns_softly_clipped():
    few = X[:, :7]
    scaler = Scaler.fit(few, "robust")
    theirs = preprocessing.RobustScaler(unit_variance=True).fit(few)
    for rows in (few, TEST[:, :7]):
        z = theirs.transform(rows)
        np.testing.assert_allclose(
            scaler.transform(rows), z / np.sqrt(1 + (z / 3) ** 2), rtol=1e-10, atol=1e-12
        )
    z = (X[:, 7] - 0.0) / X[:, 7].std()
    expected = z / np.sqrt(1 + (z / 3) ** 2)
    np.testing.assert_allclose(Scaler.fit(X, "robust").transform(X)[:, 7], expected, rtol=1e-12)


@pytest.mark.parametrize("n", [65, 1200, N])
def test_quantile_is_scikit_learns(n):
    # it treats columns of tiny numbers as constant within 1e-7
    kept, number = np.delete(X[:n], 6, axis=1), min(n, 1000)
    theirs = preprocessing.QuantileTransformer(
        n_quantiles=number, output_distribution="normal", subsample=None
    ).fit(kept)
    ours = Scaler.fit(kept, "quantile")
    np.testing.assert_allclose(ours.columns.quantiles.T, theirs.quantiles_, rtol=1e-12)
    for rows in (kept, np.delete(TEST, 6, axis=1)):
        np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-7)


@pytest.mark.parametrize("kind", ["power", "quantile"])
def test_two_values_are_standardised(kind):
    for low, high in ((0.0, 1.0), (-1e200, 3e200), (1e9, 1e9 + 1)):
        column = np.where(TWO > 0, high, low)
        scaled = Scaler.fit(column, kind).transform(column)
        expected = (TWO - TWO.mean()) / TWO.std()
        np.testing.assert_allclose(scaled, expected, rtol=1e-7)
        assert len(np.unique(scaled)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_finite_is_refused(kind):
    scaler = Scaler.fit(X, kind)
    for value in (np.nan, np.inf, -np.inf):
        broken = X.copy()
        broken[3, 1] = value
        with pytest.raises(DataError, match="column 2 of the training rows can't be scaled"):
            Scaler.fit(broken, kind)
        with pytest.raises(DataError, match="the value of row 4, column 2 is"):
            scaler.transform(broken)
    apart = np.array([[-1.7e308], [0.0], [1.7e308]])
    with pytest.raises(DataError, match="or their range exceeds float64"):
        Scaler.fit(apart, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_rows_changes_no_bit(kind):
    shuffled = X[RNG.permutation(N)]
    weights = np.arange(1.0, N + 1)
    order = RNG.permutation(N)
    for one, other in (
        (Scaler.fit(X, kind), Scaler.fit(shuffled, kind)),
        (Scaler.fit(X, kind, weights), Scaler.fit(X[order], kind, weights[order])),
        (Scaler.fit(X, kind), Scaler.fit(scipy.sparse.csr_matrix(X), kind)),
        (Scaler.fit(X, kind), Scaler.fit(np.asfortranarray(X), kind)),
    ):
        for name, values in one.to_dict().items():
            np.testing.assert_array_equal(values, other.to_dict()[name])


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_layouts_change_no_bit(kind, monkeypatch):
    scaler = Scaler.fit(X, kind)
    whole = scaler.transform(X)
    np.testing.assert_array_equal(scaler.transform(scipy.sparse.csr_matrix(X)), whole)
    np.testing.assert_array_equal(scaler.transform(np.asfortranarray(X)), whole)
    np.testing.assert_array_equal(scaler.transform(np.repeat(X, 2, axis=1)[:, ::2]), whole)
    monkeypatch.setattr("rfx.data.rows._VALUES_A_BLOCK", 100)
    np.testing.assert_array_equal(scaler.transform(X), whole)
    np.testing.assert_array_equal(scaler.transform(X, np.float32), whole.astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions(kind):
    weights = RNG.integers(0, 4, N)
    weights[:5] = 1
    some = np.delete(X, 3, axis=1)
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


def test_quantiles_are_numpys():
    shares = np.linspace(0, 1, 37)
    for count in (1, 2, 5, 400):
        values = np.round(RNG.normal(size=count), 1)
        found = Sorted.of(values).quantiles(shares)
        np.testing.assert_allclose(found, np.quantile(values, shares), atol=1e-14)
        weights = RNG.integers(1, 5, count).astype(float)
        weights[0] = 1
        expected = np.quantile(np.repeat(values, weights.astype(int)), shares)
        np.testing.assert_allclose(
            Sorted.of(values, weights).quantiles(shares), expected, atol=1e-12
        )


def text_rows(n=60, d=1500):
    return scipy.sparse.random(n, d, 0.01, "csr", random_state=0)


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_learnt_from_evenly_spaced_ones(kind, monkeypatch):
    monkeypatch.setattr(transforms, "MOST_ROWS", 500)
    found, expected = Scaler.fit(X, kind), Scaler.fit(X[::3], kind)
    for name, values in expected.to_dict().items():
        np.testing.assert_array_equal(found.to_dict()[name], values)


def surveyed(rows, kind, sizes, **more):
    def chunks():
        start = 0
        for size in sizes:
            yield rows[start : start + size], np.zeros(len(rows[start : start + size]))
            start += size

    return Survey(chunks, scaling=kind, dtype=np.float64, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_learns_the_same_however_it_is_cut(kind):
    few = surveyed(X, kind, [700, 1, 799]).inputs.scaler
    for name, values in Scaler.fit(X, kind).to_dict().items():
        np.testing.assert_array_equal(few.to_dict()[name], values)
    many = np.random.default_rng(1).exponential(size=(2 * TRANSFORMED + 77, 2))
    one = surveyed(many, kind, [len(many)], sample=30)
    other = surveyed(many, kind, [3000] * 7, sample=30)
    larger = surveyed(many, kind, [len(many)], sample=TRANSFORMED + 5)
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
