"""A survey of rows in pieces learns the same as from the whole set."""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx.data import survey
from rfx.data.survey import Survey
from rfx.data.transforms import KINDS, PCA, Scaler, TargetScaler, unit_rows
from rfx.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 6)) * [1, 2, 3, 4, 5, 0] + [0, 10, -5, 0, 2, 7]
Y = RNG.integers(0, 4, 500).astype(float)


def chunks(form=np.asarray, sizes=(100, 137, 3, 260)):
    def make():
        start = 0
        for size in sizes:
            yield form(X[start : start + size]), Y[start : start + size]
            start += size

    return make


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_teach_what_all_rows_do(kind, form, monkeypatch):
    monkeypatch.setattr(survey, "CHUNK", 64)
    found = Survey(
        chunks(form), scaling=kind, unit=True, pca=2, dtype=np.float64, seed=3, sample=50
    )
    scaler = Scaler.fit(X, kind)
    np.testing.assert_allclose(found.inputs.scaler.shift, scaler.shift, atol=1e-10)
    np.testing.assert_allclose(found.inputs.scaler.scale, scaler.scale, rtol=1e-10)
    rows = unit_rows(scaler.transform(X))
    expected = PCA(2).partial_fit(rows).finish().transform(rows)
    np.testing.assert_allclose(found.inputs.transform(form(X), np.float64), expected, atol=1e-8)
    assert (found.n_rows, found.n_inputs) == (500, 6)
    np.testing.assert_array_equal(found.labels, [0, 1, 2, 3])
    for target in ("none", "minmax01", "mean"):
        assert found.target_scaler(target) == TargetScaler.fit(Y, target)
    # each row is sampled at most once, and the sample does not depend on the pieces
    again = Survey(
        chunks(form, (499, 1)), scaling=kind, unit=True, pca=2, dtype=np.float64, seed=3, sample=50
    )
    np.testing.assert_allclose(found.X, again.X, atol=1e-8)
    np.testing.assert_array_equal(found.y, again.y)
    near = ((found.X[:, None] - expected[None]) ** 2).sum(-1)
    assert near.min(axis=1).max() < 1e-12 and len(set(near.argmin(axis=1))) == 50


def test_many_targets_are_no_labels_and_no_rows_are_refused():
    y = RNG.standard_normal(3000)
    assert Survey(lambda: iter([(np.zeros((3000, 2)), y)])).labels is None
    with pytest.raises(DataError, match="no rows to learn from"):
        Survey(lambda: iter([]))
