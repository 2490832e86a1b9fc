"""Scaling is learnt on the training rows alone, is equal for sparse and dense rows, and is stored
in the model.
"""

import numpy as np
import pytest
import scipy.sparse

from rfx.data import transforms
from rfx.data.transforms import TRANSFORMS, Scaler, TargetScaler
from rfx.errors import DataError, RfxWarning, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(5, 3, (200, 6)) * (RNG.random((200, 6)) < 0.6)
X[:, 4] = 7.1  # a constant column
X[:, 5] = 0
VARYING = [0, 1, 2, 3]


# those that do not transform single columns; test_transforms.py tests the others
LINES = [kind for kind in transforms.KINDS if kind not in TRANSFORMS]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("kind", LINES)
def test_agrees_with_scikit_learn(kind, form):
    from sklearn import preprocessing

    ranges = {"minmax01": (0, 1), "minmax11": (-1, 1)}
    train, test = X[:150, VARYING], X[150:, VARYING] * 3
    if kind == "none":
        expected = test
    elif kind == "standard":
        expected = preprocessing.StandardScaler().fit(train).transform(test)
    else:
        # does not clip either
        expected = preprocessing.MinMaxScaler(ranges[kind]).fit(train).transform(test)
    scaler = Scaler.fit(form(train), kind)
    np.testing.assert_allclose(scaler.transform(test), expected, atol=1e-13)


def test_constant_columns_are_zero_at_prediction_too():
    for kind in set(transforms.KINDS) - {"none"}:
        scaler = Scaler.fit(np.full((3, 1), 0.1), kind)
        assert scaler.transform(np.array([[99.0]])) == 0
    tiny = Scaler.fit(np.array([[0.0], [5e-324]]), "minmax01")
    assert np.isfinite(tiny.transform(np.array([[1.0]]))).all()


def test_none_keeps_sparse_sparse_and_copies_nothing():
    data = scipy.sparse.csr_matrix(X)
    scaler = Scaler.fit(data, "none")
    assert scaler.transform(data) is data and scaler.transform(X) is X
    assert scaler.transform(data, np.float32).dtype == np.float32


@pytest.mark.parametrize("kind", transforms.KINDS)
def test_the_number_of_columns(kind):
    scaler = Scaler.fit(X, kind)
    narrow = scipy.sparse.csr_matrix(X[:, :4])
    padded = scaler.transform(narrow)
    padded = padded.toarray() if scipy.sparse.issparse(padded) else padded
    np.testing.assert_array_equal(
        padded, np.asarray(scaler.transform(np.hstack([X[:, :4], np.zeros((200, 2))])))
    )
    for wrong in (np.ones((2, 7)), scipy.sparse.csr_matrix(np.ones((2, 7))), np.ones((2, 5))):
        with pytest.raises(
            DataError,
            match=f"the rows have {wrong.shape[1]} features, but the model was trained on 6",
        ):
            scaler.transform(wrong)


@pytest.mark.parametrize("kind", transforms.KINDS)
def test_saving_and_loading(kind):
    scaler = Scaler.fit(X, kind)
    saved = scaler.to_dict()
    own = set(TRANSFORMS[kind].forms) if kind in TRANSFORMS else set()
    assert set(saved) == {"kind", "metric", "shift", "scale"} | own and saved["shift"].shape == (6,)
    back = Scaler.from_dict(saved)
    np.testing.assert_array_equal(np.asarray(back.transform(X)), np.asarray(scaler.transform(X)))


def test_large_means_lose_no_digits():
    data = 1e9 + RNG.standard_normal((5000, 1))
    scaler = Scaler.fit(data, "standard")
    np.testing.assert_allclose(1 / scaler.scale, data.std(), rtol=1e-6)


def test_refusals():
    with pytest.raises(UsageError, match="scaling 'minmax' is unknown; there are none, minmax01"):
        Scaler.fit(X, "minmax")
    with pytest.raises(
        UsageError, match="target scaling 'standard' is unknown; there are none, minmax01, mean"
    ):
        TargetScaler.fit(X[:, 0], "standard")
    with pytest.raises(UsageError, match="unknown"):
        Scaler.from_dict({"kind": "x", "shift": [0], "scale": [1]})
    with pytest.raises(DataError, match="needs at least one row"):
        Scaler.fit(X[:0], "standard")


def test_targets():
    y = np.array([1922.0, 2011, 1990])
    scaler = TargetScaler.fit(y, "minmax01")
    np.testing.assert_allclose(scaler.transform(y), [0, 1, 68 / 89])
    np.testing.assert_allclose(scaler.inverse(scaler.transform(y)), y)
    assert scaler.inverse(np.array([2.0])) == 2100  # not clipped
    back = TargetScaler.from_dict(scaler.to_dict(), 1)
    assert back == scaler
    centred = TargetScaler.fit(y, "mean")
    np.testing.assert_allclose(centred.transform(y), y - np.mean(y))
    np.testing.assert_allclose(
        TargetScaler.from_dict(centred.to_dict(), 1).inverse(np.array([0.0, 5.0])),
        np.mean(y) + np.array([0, 5]),
    )
    flat = TargetScaler.fit(np.array([3.0, 3.0]), "minmax01")
    assert flat.transform(np.array([3.0])) == 0 and flat.inverse(np.array([0.0])) == 3


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


def test_target_scaling_for_another_number_of_targets_is_refused():
    saved = TargetScaler("mean", np.array([1.0, 2.0])).to_dict()
    np.testing.assert_array_equal(
        TargetScaler.from_dict(saved, 2).inverse(np.zeros((3, 2))), np.tile([1.0, 2.0], (3, 1))
    )
    with pytest.raises(DataError, match="not for 3 targets"):
        TargetScaler.from_dict(saved, 3)
