"""Scalings that transform columns, from training to the model file: the command, estimators,
streams, checkpoints and weights agree.
"""

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner

from rfx import estimators, methods, model
from rfx.cli import cli
from rfx.data import libsvm
from rfx.data.stream import LibsvmSource
from rfx.data.transforms import TRANSFORMS
from rfx.errors import DataError

KINDS = list(TRANSFORMS)
RNG = np.random.default_rng(4)
X = np.stack(
    [
        RNG.lognormal(0, 2, 400),
        RNG.standard_cauchy(400),
        RNG.integers(0, 2, 400),
        RNG.integers(0, 5, 400),
    ],
    axis=1,
).round(6)
Y = np.where(np.log(X[:, 0]) + X[:, 3] > 2, 1.0, -1.0)
TRAIN, TEST = slice(0, 300), slice(300, None)


def files(folder):
    libsvm.write(folder / "train.svm", X[TRAIN], Y[TRAIN])
    libsvm.write(folder / "test.svm", X[TEST], Y[TEST])
    return folder / "train.svm", folder / "test.svm"


def rfx(*args):
    done = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_and_the_estimator_predict_the_same(kind, tmp_path):
    train, test = files(tmp_path)
    options = {"kernel": "gaussian", "metric": "none", "n_features": 50, "lam": 0.1, "seed": 3}
    options |= {"gamma": "median"}
    flags = [part for name in options for part in ("--" + name.replace("_", "-"), options[name])]
    path = tmp_path / "m.npz"
    rfx("train", "--method", "rf", "--data", train, "--scaling", kind, *flags, "--model", path)
    told = rfx("predict", "--decision", path, test).split()
    ours = estimators.RFClassifier(scaling=kind, **options).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_allclose(np.array(told, float), ours.decision_function(X[TEST]), rtol=1e-6)
    plain = estimators.RFClassifier(scaling="none", **options).fit(X[TRAIN], Y[TRAIN])
    assert np.abs(np.array(told, float) - plain.decision_function(X[TEST])).max() > 1e-3
    # the model's features are those of the scaled rows
    rfx("featurize", test, "--model", path, "-o", tmp_path / "z.svm")
    trained = methods.load(path)
    rows = trained.preprocessing.scaler.transform(X[TEST], np.float32)
    Z = libsvm.read(tmp_path / "z.svm")[0].toarray()
    np.testing.assert_allclose(Z, trained.model.map.transform(rows), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_featurize_scales_by_the_rows_of_train(kind, tmp_path):
    train, test = files(tmp_path)
    asked = ("--scaling", kind, "-n", 30, "--gamma", 0.5)
    rfx("featurize", test, "--train", train, *asked, "-o", tmp_path / "z.svm")
    ours = estimators.FourierFeatures(scaling=kind, n_features=30, gamma=0.5, dtype="float32")
    expected = ours.fit(X[TRAIN]).transform(X[TEST])
    Z = libsvm.read(tmp_path / "z.svm", n_features=30)[0].toarray()
    np.testing.assert_allclose(Z, expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_file_has_the_transform_and_nothing_more(kind, tmp_path):
    path = tmp_path / "m.npz"
    method = methods.create("rf", scaling=kind, n_features=30, gamma=0.5, lam=1.0)
    trained = method.fit(X[TRAIN], Y[TRAIN])
    trained.save(path)
    again = methods.load(path)
    np.testing.assert_array_equal(
        again.decision_function(X[TEST]), trained.decision_function(X[TEST])
    )
    header, arrays = model.read(path)
    own = {name for name in arrays if name.startswith("scaler_")}
    assert own == {f"scaler_{name}" for name in ("shift", "scale", *TRANSFORMS[kind].forms)}
    assert header["scaler"] == {"kind": kind, "metric": "none"}
    for name in TRANSFORMS[kind].forms:
        lacking = {key: values for key, values in arrays.items() if key != f"scaler_{name}"}
        short = arrays | {f"scaler_{name}": arrays[f"scaler_{name}"][:-1]}
        for broken in (lacking, short):
            model.write(path, {k: v for k, v in header.items() if k != "format"}, broken)
            with pytest.raises(DataError, match=f"array scaler_{name}"):
                methods.load(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["rf", "rb", "boosting"])
def test_sparse_rows_are_scaled_as_dense_ones(name, kind):
    method = methods.create(name, scaling=kind, seed=1, lam=1.0)
    dense = method.fit(X[TRAIN], Y[TRAIN])
    sparse = method.fit(scipy.sparse.csr_matrix(X[TRAIN]), Y[TRAIN])
    np.testing.assert_array_equal(
        sparse.decision_function(scipy.sparse.csr_matrix(X[TEST])),
        dense.decision_function(X[TEST]),
    )


# with fewer than 1,000 rows there is one quantile per row, so repeated rows would have more
@pytest.mark.parametrize("kind", ["power", "robust"])
def test_sample_weights_count_in_the_scaling(kind):
    weights = RNG.integers(0, 3, 300)
    weights[:3] = 1
    options = {"scaling": kind, "n_features": 40, "gamma": 0.3, "lam": 1.0, "tol": 1e-9}
    some, label = X[TRAIN], Y[TRAIN]
    ours = methods.create("rf", **options).fit(some, label, weights.astype(float))
    theirs = methods.create("rf", **options).fit(
        np.repeat(some, weights, axis=0), np.repeat(label, weights)
    )
    one, other = (found.preprocessing.scaler for found in (ours, theirs))
    np.testing.assert_allclose(one.transform(some), other.transform(some), atol=1e-5)
    np.testing.assert_allclose(
        ours.decision_function(X[TEST]), theirs.decision_function(X[TEST]), atol=1e-3
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_scales_as_rows_in_memory(kind, tmp_path):
    train, test = files(tmp_path)
    made = methods.create("doubly-sgd", scaling=kind, gamma=0.5, task="binary")
    memory = made.fit(X[TRAIN], Y[TRAIN]).preprocessing.scaler.to_dict()
    streamed = [made.fit_stream(LibsvmSource(train, 4, chunk=size)) for size in (700, 1 << 20)]
    path = tmp_path / "m.npz"
    rfx(
        *("train", "--method", "doubly-sgd", "--stream", "--data", train, "--scaling", kind),
        *("--gamma", 0.5, "--model", path),
    )
    told = rfx("predict", "--decision", path, test).split()
    for trained in (*streamed, methods.load(path)):
        for name, values in trained.preprocessing.scaler.to_dict().items():
            np.testing.assert_array_equal(values, memory[name])
        np.testing.assert_allclose(
            np.array(told, float), trained.decision_function(X[TEST]), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_goes_on_with_the_transform(kind, tmp_path):
    options = {"scaling": kind, "gamma": 0.5, "batch": 32, "seed": 2}
    path = tmp_path / "c.npz"
    methods.create("r-pegasos", **options, epochs=1).keep(path, 2).fit(X, Y)
    header, arrays = model.read(path)
    assert {f"scaler_{name}" for name in TRANSFORMS[kind].forms} <= set(arrays)
    resumed = methods.create("r-pegasos", **options, epochs=2).keep(path, 2, True).fit(X, Y)
    straight = methods.create("r-pegasos", **options, epochs=2).fit(X, Y)
    np.testing.assert_array_equal(resumed.decision_function(X), straight.decision_function(X))


@pytest.mark.parametrize("kind", KINDS)
def test_partial_fit_keeps_the_scaling_of_the_first_rows(kind):
    one = estimators.RPegasosClassifier(scaling=kind, gamma=0.5, n_features=20)
    one.partial_fit(X[:200], Y[:200], classes=[-1.0, 1.0])
    first = one.method_.preprocessing.scaler.to_dict()
    one.partial_fit(X[200:], Y[200:])
    for name, values in one.method_.preprocessing.scaler.to_dict().items():
        np.testing.assert_array_equal(values, first[name])
