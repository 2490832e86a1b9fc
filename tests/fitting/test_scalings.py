"""Scalings that transform columns, from training to the model file: the command, estimators,
streams, checkpoints and weights agree. What is learnt depends neither on the unit of the targets
and of the weights, nor on the zero of the targets.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from shell import printed

from rfx import estimators, methods, model
from rfx.data import libsvm
from rfx.data.stream import LibsvmSource
from rfx.data.transforms import TRANSFORMS, TargetScaler
from rfx.errors import DataError
from rfx.fitting.problem import Preprocessing
from rfx.fitting.target_coding import TargetCoding
from rfx.records import keys
from rfx.records.run import Run

KINDS = list(TRANSFORMS)
TRAIN, TEST = slice(0, 300), slice(300, None)


@pytest.fixture(scope="module")
def data():
    """Rows (400, 4) of columns with long tails, two values and five values; two classes."""
    rng = np.random.default_rng(4)
    columns = [
        rng.lognormal(0, 2, 400),
        rng.standard_cauchy(400),
        rng.integers(0, 2, 400),
        rng.integers(0, 5, 400),
    ]
    X = np.stack(columns, axis=1).round(6)
    return SimpleNamespace(X=X, y=np.where(np.log(X[:, 0]) + X[:, 3] > 2, 1.0, -1.0))


def files(data, folder):
    libsvm.write(folder / "train.svm", data.X[TRAIN], data.y[TRAIN])
    libsvm.write(folder / "test.svm", data.X[TEST], data.y[TEST])
    return folder / "train.svm", folder / "test.svm"


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_and_the_estimator_predict_the_same(kind, tmp_path, capfd, data):
    X = data.X
    train, test = files(data, tmp_path)
    options = {"kernel": "gaussian", "metric": "none", "n_features": 50, "lam": 0.1, "seed": 3}
    options |= {"gamma": "median"}
    flags = [part for name in options for part in ("--" + name.replace("_", "-"), options[name])]
    path, words = tmp_path / "m.npz", ("train", "--method", "rf", "--data", train)
    printed(capfd, *words, "--scaling", kind, *flags, "--model", path)
    decision = np.array(printed(capfd, "predict", "--decision", path, test).split(), float)
    ours = estimators.RFClassifier(scaling=kind, **options).fit(X[TRAIN], data.y[TRAIN])
    np.testing.assert_allclose(decision, ours.decision_function(X[TEST]), rtol=1e-6)
    plain = estimators.RFClassifier(scaling="none", **options).fit(X[TRAIN], data.y[TRAIN])
    assert np.abs(decision - plain.decision_function(X[TEST])).max() > 1e-3
    # the model's features are those of the scaled rows
    printed(capfd, "featurize", test, "--model", path, "-o", tmp_path / "z.svm")
    trained = methods.load(path)
    rows = trained.preprocessing.scaler.transform(X[TEST], np.float32)
    Z = libsvm.read(tmp_path / "z.svm")[0].toarray()
    np.testing.assert_allclose(Z, trained.model.map.transform(rows), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_featurize_scales_by_the_rows_of_train(kind, tmp_path, capfd, data):
    train, test = files(data, tmp_path)
    asked = ("--scaling", kind, "-n", 30, "--gamma", 0.5, "-o", tmp_path / "z.svm")
    printed(capfd, "featurize", test, "--train", train, *asked)
    ours = estimators.FourierFeatures(scaling=kind, n_features=30, gamma=0.5, dtype="float32")
    Z = libsvm.read(tmp_path / "z.svm", n_features=30)[0].toarray()
    np.testing.assert_allclose(Z, ours.fit(data.X[TRAIN]).transform(data.X[TEST]), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_file_has_the_transform_and_nothing_more(kind, tmp_path, reloaded, data):
    method = methods.create("rf", scaling=kind, n_features=30, gamma=0.5, lam=1.0)
    reloaded(method.fit(data.X[TRAIN], data.y[TRAIN]), data.X[TEST])
    path = tmp_path / "saved.npz"
    header, arrays = model.read(path)
    own = {name for name in arrays if name.startswith("scaler_")}
    assert own == {f"scaler_{name}" for name in ("shift", "scale", *TRANSFORMS[kind].forms)}
    assert header["scaler"] == {"kind": kind, "metric": "none"}
    for name in TRANSFORMS[kind].forms:
        lacking = {key: values for key, values in arrays.items() if key != f"scaler_{name}"}
        for broken in (lacking, arrays | {f"scaler_{name}": arrays[f"scaler_{name}"][:-1]}):
            model.write(path, {k: v for k, v in header.items() if k != "format"}, broken)
            with pytest.raises(DataError, match=f"(array scaler_|is incomplete .*){name}"):
                methods.load(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["rf", "rb", "boosting"])
def test_sparse_rows_are_scaled_as_dense_ones(name, kind, data):
    X = data.X
    size = {"rf": {"n_features": 100}, "rb": {"n_grids": 32}, "boosting": {"n_features": 20}}
    method = methods.create(name, scaling=kind, seed=1, lam=1.0, **size[name])
    dense = method.fit(X[TRAIN], data.y[TRAIN])
    sparse = method.fit(scipy.sparse.csr_matrix(X[TRAIN]), data.y[TRAIN])
    np.testing.assert_array_equal(
        sparse.decision_function(scipy.sparse.csr_matrix(X[TEST])),
        dense.decision_function(X[TEST]),
    )


# with fewer than 1,000 rows there is one quantile per row, so repeated rows would have more
@pytest.mark.parametrize("kind", ["standard", "power", "robust"])
def test_sample_weights_count_in_the_scaling(kind, rng, data):
    X = data.X
    weights = rng.integers(0, 3, 300)
    weights[:3] = 1
    options = {"scaling": kind, "n_features": 40, "gamma": 0.3, "lam": 1.0, "tol": 1e-9}
    some, label = X[TRAIN], data.y[TRAIN]
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
def test_a_stream_scales_as_rows_in_memory(kind, tmp_path, capfd, data):
    train, test = files(data, tmp_path)
    made = methods.create("doubly-sgd", scaling=kind, gamma=0.5, task="binary")
    memory = made.fit(data.X[TRAIN], data.y[TRAIN]).preprocessing.scaler.to_dict()
    streamed = [made.fit_stream(LibsvmSource(train, 4, chunk=size)) for size in (700, 1 << 20)]
    path = tmp_path / "m.npz"
    words = ("train", "--method", "doubly-sgd", "--stream", "--data", train, "--model", path)
    printed(capfd, *words, "--scaling", kind, "--gamma", 0.5)
    decision = np.array(printed(capfd, "predict", "--decision", path, test).split(), float)
    for trained in (*streamed, methods.load(path)):
        for name, values in trained.preprocessing.scaler.to_dict().items():
            np.testing.assert_array_equal(values, memory[name])
        expected = trained.decision_function(data.X[TEST])
        np.testing.assert_allclose(decision, expected, rtol=1e-5, atol=1e-6)


SMALL = {
    "rf": {"n_features": 200},
    "lkrf": {"pool": 500, "n_features": 100},
    "nystrom": {"n_features": 50},
    "sparse-rf": {"n_features": 60, "rounds": 1},
    "rb": {"n_grids": 32, "tol": 1e-5},
    "sparse-rb": {"n_grids": 16},
    "boosting": {"n_features": 6, "per_step": 2},
    "kernel": {},
    "block": {},
}
BATCHES = {"doubly-sgd": {}, "k-sdca": {"loss": "absolute"}, "r-pegasos": {"n_features": 100}}
METRIC = {"scaling": "standard", "metric": "none"}


@dataclass(frozen=True)
class Waves:
    """Rows (200, 2) with a sine as target and with weights, and new rows (100, 2)."""

    X: np.ndarray
    new: np.ndarray
    y: np.ndarray
    weights: np.ndarray


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-3, 3, (200, 2)), rng.uniform(-3, 3, (100, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 3
    return Waves(X, new, y, weights=rng.uniform(0.5, 1.5, 200))


def fitted(waves, name, y, weights=None, **more):
    options = SMALL.get(name, BATCHES.get(name, {})) | more
    if name in SMALL and name != "boosting":
        options = METRIC | options
    task = options.pop("task", "regression")
    return methods.create(name, task=task, **options).fit(waves.X, y, weights)


def predictions(waves, *args, **options):
    return fitted(waves, *args, **options).predict(waves.new)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SMALL, *BATCHES])
@pytest.mark.parametrize(("shift", "unit"), [(1.6e9, 3600), (0, 1e-46), (0, 1e40)])
def test_targets_in_another_unit_give_the_same_model(name, shift, unit, waves):
    expected = predictions(waves, name, waves.y)
    found = (predictions(waves, name, shift + unit * waves.y) - shift) / unit
    np.testing.assert_allclose(found, expected, atol=0.03 * np.std(waves.y))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("unit", [1e-9, 1e8])
def test_weights_in_another_unit_give_the_same_model(name, unit, waves):
    if methods.get(name).weighted:
        expected = predictions(waves, name, waves.y, waves.weights)
        found = predictions(waves, name, waves.y, unit * waves.weights)
        np.testing.assert_allclose(found, expected, atol=0.03 * np.std(waves.y))


def test_scaling_and_metric_chosen_with_weights_in_another_unit(waves):
    first, second = (
        methods.create("rfm", task="regression").fit(waves.X, waves.y, unit * waves.weights)
        for unit in (1, 1e-6)
    )
    found, expected = (model.predict(waves.new) for model in (first, second))
    np.testing.assert_allclose(found, expected, atol=0.03 * np.std(waves.y))
    assert second.info["lam"] == pytest.approx(1e-6 * first.info["lam"])


def test_a_lambda_that_is_given_refers_to_the_sum_of_losses(waves):
    given = predictions(waves, "kernel", waves.y, 2 * waves.weights, gamma=0.5, lam=0.2)
    expected = predictions(waves, "kernel", waves.y, waves.weights, gamma=0.5, lam=0.1)
    np.testing.assert_allclose(given, expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["absolute", "epsilon_insensitive"])
def test_lambda_is_chosen_in_the_unit_of_the_targets(loss, waves):
    first, second = (
        fitted(waves, "kernel", unit * waves.y, loss=loss, kernel="gaussian", gamma=0.5)
        for unit in (1, 1e4)
    )
    assert second.info["lam"] == pytest.approx(first.info["lam"] / 1e4)


def test_the_default_width_of_a_tube_is_in_the_unit_of_the_targets(waves):
    options = {"loss": "epsilon_insensitive", "kernel": "gaussian", "gamma": 0.5}
    first, second = (
        fitted(waves, "kernel", unit * waves.y, lam=0.1 / unit, **options) for unit in (1, 1e-3)
    )
    assert first.loss.epsilon == pytest.approx(0.1 * np.std(waves.y))
    np.testing.assert_allclose(
        1e3 * second.predict(waves.new), first.predict(waves.new), atol=0.01 * np.std(waves.y)
    )


def test_the_scale_of_the_mean_is_1_within_the_range_of_float32(waves):
    assert TargetScaler.fit(1e6 * waves.y, "mean").scale == 1


@pytest.mark.parametrize("unit", [1e-46, 1e40])
def test_the_rmse_is_in_the_unit_of_the_targets(unit, waves):
    scaler = TargetScaler.fit(unit * waves.y, "mean")
    known = Preprocessing(TargetCoding("regression", scaler=scaler), None, np.float64)
    decision = scaler.transform(unit * (waves.y + 1))
    assert known.score(decision, unit * waves.y).score == pytest.approx(unit)


@pytest.mark.parametrize(
    ("dataset", "options", "same"),
    [
        ("breast_cancer", {}, True),
        ("diabetes-sklearn", {}, False),
        ("rows.csv", {}, False),
        ("rows.csv", {"task": "binary"}, True),
        ("rows.csv", {"task": "regression"}, False),
    ],
)
def test_the_former_default_has_the_key_of_classes_only(dataset, options, same):
    run, former = (
        Run(dataset=dataset, method="rf", options=options | more)
        for more in ({}, {"target_scaling": "none"})
    )
    assert (keys.key(run) == keys.key(former)) == same


@pytest.mark.parametrize("name", ["rf", "kernel", "rb"])
@pytest.mark.parametrize("unit", [1e-46, 1e40])
def test_scaled_inputs_in_another_unit_give_the_same_model(name, unit, waves):
    options = METRIC | SMALL[name] | {"task": "regression", "lam": 0.1, "gamma": 0.5}
    first, second = (
        methods.create(name, **options).fit(factor * waves.X, waves.y).predict(factor * waves.new)
        for factor in (1, unit)
    )
    np.testing.assert_allclose(second, first, atol=0.03 * np.std(waves.y))
