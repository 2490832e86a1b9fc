"""Principal components computed in pieces equal those of all rows at once; unit rows have length
one.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from rfx.data.transforms import PCA, unit_rows
from rfx.errors import UsageError

RNG = np.random.default_rng(0)
X = (
    RNG.standard_normal((300, 6))
    * [5, 3, 2, 1, 0.5, 0.1]
    @ np.linalg.qr(RNG.standard_normal((6, 6)))[0]
    + 100.0
)


@pytest.mark.parametrize("centred", [True, False])
def test_pieces_and_sparse_rows_give_the_components_of_the_singular_vectors(centred):
    pieces = PCA(3, centred)
    for start in range(0, 300, 70):
        pieces.partial_fit(
            sp.csr_matrix(X[start : start + 70]) if start == 70 else X[start : start + 70]
        )
    pieces.finish()
    rows = X - X.mean(axis=0) if centred else X
    vectors = np.linalg.svd(rows, full_matrices=False)[2][:3].T
    made = pieces.transform(X)
    np.testing.assert_allclose(np.abs(made), np.abs(rows @ vectors), atol=1e-7)
    np.testing.assert_allclose(pieces.transform(sp.csr_matrix(X)), made, atol=1e-9)
    assert pieces.transform(X.astype(np.float32)).dtype == np.float32
    again = PCA.from_dict(pieces.to_dict())
    np.testing.assert_array_equal(again.transform(X), made)
    largest = np.abs(pieces.components).argmax(axis=0)
    assert np.all(pieces.components[largest, range(3)] > 0)


def test_refusals():
    with pytest.raises(UsageError, match="--pca is 7, but the rows have 6 inputs"):
        PCA(7).partial_fit(X)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_unit_rows(form):
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    made = unit_rows(form(rows))
    made = made.toarray() if sp.issparse(made) else made
    np.testing.assert_allclose(made, [[0.6, 0.8], [0, 0], [0, -1]])
    assert unit_rows(form(rows.astype(np.float32))).dtype == np.float32
