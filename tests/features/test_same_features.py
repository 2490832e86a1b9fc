"""Feature j of row x has the same bits for every subset, block, thread and memory bound, and is
correct to 1e-5; also on real rows.
"""

import os
from functools import cache
from pathlib import Path

import by_numpy
import numpy as np
import pytest
import scipy.sparse as sp
from domains import suited

from rfx import env
from rfx.data.loading import load
from rfx.data.transforms import Scaler
from rfx.exporting.json_text import listed_steps
from rfx.features import MAPS, sample
from rfx.operators.mapped import MapMatrix, feature_matrix

MIRROR = Path(os.environ.get("RFX_MIRROR", "") or "/nowhere")
REAL = ("cod-rna", "covtype.first20k.binary")
# 30 dense inputs, and 54 of which most are -1
GENERATED = ("dense", "flags")
# the rows whose features are compared, and the features
ROWS, FEATURES = 1003, 700
GAMMA = {"laplacian": 1.0, "exponential": 0.05, "polynomial-2": 0.1, "polynomial-3": 0.1}
NAMES = [name for name in MAPS if name != "kmers"]

absent = pytest.mark.skipif(
    not (MIRROR / f"{REAL[0]}.xz").exists(), reason="RFX_MIRROR names no folder with these sets"
)
SETS = [*GENERATED, *(pytest.param(name, marks=absent) for name in REAL)]


@cache
def rows(name):
    random = np.random.default_rng(3)
    if name == "dense":
        return random.uniform(-1, 1, (ROWS, 30)).astype(np.float32)
    if name == "flags":
        return np.where(
            random.random((ROWS, 54)) < 0.2, random.uniform(-1, 1, (ROWS, 54)), -1.0
        ).astype(np.float32)
    raw = load(MIRROR / f"{name}.xz").X_train
    some = raw[np.random.default_rng(0).permutation(raw.shape[0])[:ROWS]]
    return Scaler.fit(raw, "minmax11").transform(some).astype(np.float32)


def feature_map(name, X, variant=None):
    params = {"gamma": GAMMA.get(name, 0.5)}
    if name == "perceptron":
        params = {"radius": float(np.linalg.norm(X, axis=1).max())}
    elif name == "rational-quadratic":
        params["rq_alpha"] = 0.7
    elif name == "skewed-chi2":
        params = {"skewedness": 0.5}
    elif name == "stump":
        params = {"lo": X.min(axis=0), "hi": X.max(axis=0) + 0.1}
    return sample(name, X.shape[1], FEATURES, seed=1, variant=variant, **params)


def reference(found, X):
    """The features by the steps of the map, as numpy carries them out, with its arrays in
    float64.
    """
    arrays = {
        key: values.astype(np.float64) if values.dtype.kind == "f" else values
        for key, values in found.arrays.items()
    }
    exact = type(found)(found.name, found.n_inputs, found.params, arrays)
    return by_numpy.carried_out(listed_steps(exact.steps()), X.astype(np.float64))


CASES = [
    (name, variant)
    for name in NAMES
    for variant in MAPS[name].variants_of(name)
    if variant != "range"
]


@pytest.mark.slow
@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_same_bits_and_right(data, name, variant):
    X = suited(name, rows(data))
    found = feature_map(name, X, variant)
    whole = found.transform(X)
    random = np.random.default_rng(2)
    columns, some = (
        np.sort(random.permutation(FEATURES)[:37]),
        np.sort(random.permutation(len(X))[:101]),
    )
    few = found.select(columns)
    assert np.array_equal(few.transform(X), whole[:, columns])
    assert np.array_equal(
        found.select([columns[5]]).transform(X[some]), whole[np.ix_(some, [columns[5]])]
    )
    assert np.array_equal(few.transform(X[some]), whole[np.ix_(some, columns)])
    assert np.array_equal(found.transform(X[7:8]), whole[7:8])
    assert np.array_equal(found.transform(X[some].astype(np.float64)), whole[some])
    env.set_threads(2)
    assert np.array_equal(found.transform(X), whole)
    for block in (256, 300):
        assert np.array_equal(MapMatrix(found, X, block=block).to_array(), whole)
    for max_mb in (0.0, 100.0):
        assert np.array_equal(
            feature_matrix(found, X, max_mb=max_mb).columns(columns).to_array(), whole[:, columns]
        )
    if name != "hamming":  # its hashes have no steps
        expected = reference(found, X)
        assert np.all(np.abs(whole - expected) <= 1e-5 * np.maximum(1.0, np.abs(expected)))


@pytest.mark.parametrize("name", ["laplacian", "perceptron", "arccosine-1"])
def test_sparse_rows_have_the_features_of_dense_ones(name):
    X = rows("flags").copy()
    X[X == -1] = 0
    found = feature_map(name, X)
    whole = found.transform(sp.csr_matrix(X))
    assert np.array_equal(found.transform(sp.csr_matrix(X[100:231])), whole[100:231])
    assert np.array_equal(found.select(slice(5, 9)).transform(sp.csr_matrix(X)), whole[:, 5:9])
    assert np.array_equal(found.transform(X), whole)
