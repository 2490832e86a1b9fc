"""Estimators in use: signatures, labels of any kind, pandas, pipelines, searches, pickles, model
files, partial_fit.
"""

import doctest
import importlib
import inspect
import json
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from test_estimators import CHECKED, small

import rfx
from rfx import estimators, features, kernels, methods

pytestmark = pytest.mark.slow

OF_METHODS = [e for e in CHECKED if hasattr(e, "method") and not hasattr(e, "transform")]
CLASSIFIERS = [e for e in OF_METHODS if hasattr(e, "decision_function")]
REGRESSORS = [e for e in OF_METHODS if not hasattr(e, "decision_function")]
LEARNED = [e for e in CHECKED if type(e).__name__ == "LearnedMetric"]
MAPS = [e for e in CHECKED if not hasattr(e, "method") and e not in LEARNED]
# the model of auto belongs to another method
NAMED = [e for e in OF_METHODS if e.method.name != "auto"]
STREAMING = [e for e in OF_METHODS if hasattr(e, "partial_fit")]


@pytest.fixture(scope="module")
def data():
    """Rows (300, 3), and a number and a word that depend on their distance from the origin."""
    X = np.random.default_rng(0).uniform(-3, 3, (300, 3))
    radius = np.linalg.norm(X, axis=1)
    words = np.array(["near", "middle", "far"])[np.digitize(radius, [2.2, 3.2])]
    return SimpleNamespace(X=X, radius=radius, target=40 + 7 * np.sin(radius), words=words)


def each(found):
    return pytest.mark.parametrize("estimator", found, ids=lambda e: type(e).__name__)


def target_of(data, estimator):
    return data.words if hasattr(estimator, "decision_function") else data.target


# ------------------------------------------------------------------ signatures


def in_domain(estimator, rows):
    """The rows, or their absolute values for kernels of nonnegative inputs."""
    return np.abs(rows) if get_tags(estimator).input_tags.positive_only else rows


@each([*CHECKED, estimators.KmerFeatures()])
def test_every_option_is_a_parameter_with_its_documentation(estimator):
    kind = type(estimator)
    document, parameters = inspect.getdoc(kind), inspect.signature(kind).parameters
    options = {option.name: option for option in kind.options}
    if hasattr(kind, "method"):
        declared = kind.method.declared().items()
        options = {name: option for name, option in declared if name not in kind.without}
        options |= {option.name: option for option in kind.added}
    assert parameters.keys() - {"device", "random_state"} == options.keys()
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n", document, re.S | re.M)[1]
    entries = re.findall(r"^(\w+) : .*, default=(.*)\n((?:    .*(?:\n|$))+)", section, re.M)
    assert [name for name, *_ in entries] == list(parameters)
    for name, shown, text in entries:
        default = parameters[name].default
        assert shown == (json.dumps(default) if isinstance(default, str) else repr(default)), name
        # plug-ins may add kernels
        choices = options[name].meanings() if name in options.keys() - {"kernel"} else ()
        assert all(re.search(rf"\b{choice}\b", text) for choice in choices), name
    assert "--" not in re.sub("---+", "", document)
    for title in ("Attributes", "Examples"):
        assert f"\n{title}\n{'-' * len(title)}\n" in document
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_trees'"):
        kind(n_trees=3)


@pytest.mark.parametrize("name", ["models", "transformers"])
def test_the_examples_run(name, few_rows_choose):
    few_rows_choose(100)  # which takes most of the time
    done = doctest.testmod(
        importlib.import_module(f"rfx.estimators.{name}"), optionflags=doctest.ELLIPSIS
    )
    assert done.attempted and not done.failed


@each(OF_METHODS)
def test_defaults_are_those_of_the_method(estimator):
    made = type(estimator)()
    task = "binary" if hasattr(made, "decision_function") else "regression"
    assert made._create(task).method == methods.create(made.method.name, task=task).method


def test_names():
    assert {"SparseRFClassifier", "RandomBinning"} <= set(dir(estimators))
    with pytest.raises(AttributeError, match="no attribute 'ForestClassifier'"):
        _ = estimators.ForestClassifier


# ------------------------------------------------------------------ the same as the method


@pytest.mark.parametrize("name", ["rf", "sparse-rb", "kernel"])
def test_predictions_are_those_of_the_method(name, data):
    X = data.X
    estimator = small(estimators.estimator_class(name, "regression").__name__).fit(X, data.target)
    method = methods.create(name, task="regression", **estimator._given()).fit(X, data.target)
    np.testing.assert_array_equal(estimator.predict(X), method.predict(X))
    assert estimator.info_["objective"] == method.info["objective"]


@each(CLASSIFIERS)
def test_labels_are_words(estimator, data):
    X, words = data.X, data.words
    model = clone(estimator).fit(X, words)
    np.testing.assert_array_equal(model.classes_, ["far", "middle", "near"])
    assert model.decision_function(X).shape == (300, 3)
    assert set(model.predict(X)) <= set(words)
    two = clone(estimator).fit(X, words == "near")
    assert two.predict(X).dtype == bool
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)


def test_what_is_refused_names_the_parameter(data):
    X = data.X
    with pytest.raises(ValueError, match="^n_features is 0; it must be a whole number 1 or more"):
        estimators.RFClassifier(n_features=0).fit(X, data.words)
    with pytest.raises(ValueError, match="^loss is 'hinge'; it must be one of squared"):
        estimators.RFClassifier(loss="hinge").fit(X, data.words)
    with pytest.raises(ValueError, match="gamma is -1; it must be"):
        estimators.FourierFeatures(gamma=-1).fit(X)
    with pytest.raises(NotFittedError):
        estimators.RFClassifier().save("m.npz")


_WORDS = "has categories or words .*"
# What is said of each column.
_SAID = {
    "categories": _WORDS,
    "codes": f"{_WORDS}category.*",
    "objects": _WORDS,
    "digits": _WORDS,
    "string": f"{_WORDS}string.*",
    "dates": "has type datetime64.*convert it to numbers, or drop it",
    "spans": "has type timedelta64",
}


@pytest.fixture(scope="module")
def columns(data):
    """Columns of 300 rows that are no numbers."""
    words = data.words
    codes = np.arange(300) % 3
    return {
        "categories": pandas.Categorical(words),
        "codes": pandas.Categorical(codes),
        "objects": words.astype(object),
        "digits": codes.astype(str).astype(object),
        "string": pandas.array(words, dtype="string"),
        "dates": pandas.date_range("2020-01-01", periods=300),
        "spans": pandas.to_timedelta(np.arange(300), unit="h"),
    }


@pytest.mark.parametrize(
    "make, thing",
    [
        (make, thing)
        for make in (
            estimators.RFClassifier,
            estimators.DoublySGDRegressor,
            estimators.FourierFeatures,
        )
        for thing in _SAID
        # those of methods read dates
        if thing != "dates" or make is estimators.FourierFeatures
    ],
)
def test_a_column_of_a_frame_that_is_no_numbers_is_named(make, thing, columns, data):
    says, frame = _SAID[thing], pandas.DataFrame(data.X[:, :2], columns=["a", "b"])
    y = data.words if make is estimators.RFClassifier else data.target
    own = {} if make is estimators.FourierFeatures else {"categorical_features": None}
    if says.startswith(_WORDS):
        says += "name it in categorical_features" if own else "OneHotEncoder in a ColumnTransformer"
    with pytest.raises(ValueError, match=f"^column 'c' of X {says}") as caught:
        make(**own).fit(frame.assign(c=columns[thing]), y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "bool", "object"])
def test_numbers_of_any_type_are_the_same_numbers(kind, data):
    frame = pandas.DataFrame(data.X[:, :2], columns=["a", "b"]).assign(c=np.arange(300) % 2)
    found = [
        estimators.RFRegressor(n_features=20, gamma=1.0, lam=1.0).fit(one, data.target).predict(one)
        for one in (frame, frame.astype({"c": kind}))
    ]
    np.testing.assert_array_equal(*found)


def test_not_converged_is_a_warning(data):
    with pytest.warns(
        ConvergenceWarning,
        match="SparseRFClassifier did not converge.* max_iter",
    ):
        model = estimators.SparseRFClassifier(lam=0.01, max_iter=1, n_features=200, gamma=3.0)
        model.fit(data.X, data.words)


@each([e for e in CLASSIFIERS if "class_weight" in e.get_params() and e in NAMED])
def test_weights(estimator, tmp_path, data):
    X, words = data.X, data.words
    near = words == "near"
    by_row = clone(estimator).fit(X, words, sample_weight=np.where(near, 3.0, 1.0))
    by_label = clone(estimator).set_params(class_weight={"near": 3.0}).fit(X, words)
    np.testing.assert_array_equal(by_label.decision_function(X), by_row.decision_function(X))
    by_label.save(tmp_path / "m.npz")
    back = rfx.load(tmp_path / "m.npz")
    assert back._given() == by_label._given() and '"near":3.0' in back._given()["class_weight"]
    assert clone(estimator).set_params(class_weight="balanced").fit(X, near).info_[
        "weight_sum"
    ] == pytest.approx(300)
    with pytest.raises(ValueError, match="class_weight has the label nowhere, which no row has"):
        clone(estimator).set_params(class_weight={"nowhere": 2}).fit(X, words)


def test_class_weights_of_the_command_line_and_back(tmp_path, data):
    X = data.X
    labels = np.where(data.radius > 2, 2.0, 5.0)
    given = {"n_features": 50, "gamma": 1.0, "lam": 1.0, "class_weight": "5:2"}
    methods.create("rf", **given).fit(X, labels).save(tmp_path / "m.npz")
    back = rfx.load(tmp_path / "m.npz")
    assert back.class_weight == "5:2"
    np.testing.assert_array_equal(clone(back).fit(X, labels).predict(X), back.predict(X))


def test_partial_fit_takes_weights(data):
    X, words = data.X, data.words
    near, labels = words == "near", np.unique(words)
    decisions = [
        estimators.NormaClassifier(gamma=3.0, class_weight=by_label)
        .partial_fit(X, words, labels, sample_weight=by_row)
        .decision_function(X)
        for by_label, by_row in ((None, np.where(near, 3.0, 1.0)), ({"near": 3.0}, None))
    ]
    np.testing.assert_array_equal(*decisions)
    with pytest.raises(ValueError, match="class_weight has the label nowhere, which no row has"):
        estimators.NormaClassifier(class_weight={"nowhere": 2}).partial_fit(X, words, labels)
    numbers = [
        estimators.NormaRegressor(gamma=3.0).partial_fit(X, data.target, **more).predict(X)
        for more in ({}, {"sample_weight": data.target > 40})
    ]
    assert np.abs(numbers[0] - numbers[1]).max() > 1e-3


def test_probabilities(data):
    model = estimators.RFClassifier(n_features=100, gamma=3.0, loss="logistic", lam=0.1).fit(
        data.X, data.words
    )
    shares = model.predict_proba(data.X)
    assert shares.shape == (300, 3) and np.allclose(shares.sum(axis=1), 1)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == data.words) > 0.9
    assert hasattr(estimators.RFClassifier(), "predict_proba")


# ------------------------------------------------------------------ in scikit-learn's hands


def test_sparse_random_features_select(data):
    X, words = data.X, data.words
    selector = estimators.SparseRandomFeatures(n_features=400, lam=3.0, gamma=3.0)
    Z = selector.fit(X, words).transform(X)
    assert 0 < Z.shape[1] < 400 and Z.shape[1] == len(selector.get_feature_names_out())
    model = estimators.SparseRFClassifier(n_features=400, lam=3.0, gamma=3.0).fit(X, words)
    np.testing.assert_allclose(
        Z @ model.method_.model.coef, model.decision_function(X), rtol=1e-4, atol=1e-4
    )
    assert (
        make_pipeline(clone(selector), LogisticRegression(max_iter=1000))
        .fit(X, words)
        .score(X, words)
        > 0.9
    )
    numbers = estimators.SparseRandomFeatures(n_features=400, lam=3.0, gamma=3.0)
    numbers = numbers.fit(X, data.target)
    assert numbers.method_.task == "regression"
    assert clone(selector).set_params(lam=1e6).fit(X, words).transform(X).shape == (300, 0)


@each(MAPS)
def test_the_products_of_features_estimate_the_kernel(estimator, data):
    p, few = estimator.get_params(), in_domain(estimator, data.X[:60])
    size = {name: 4000 for name in ("n_features", "n_grids") if name in p}
    made = clone(estimator).set_params(**size).fit(few)
    Z = made.transform(few)
    Z = Z.toarray() if sp.issparse(Z) else Z
    name = p.get("kernel") or made.map_class.kernels[0].name
    scaled = made.scaler_.transform(few)
    gamma = p.get("gamma") if "gamma" in kernels.get_kernel(name).parameters else None
    params = kernels.parameters(name, scaled, gamma, p["seed"])
    rows = kernels.prepare(name, scaled, params, np.float64)
    exact = kernels.block(name, rows, rows, params)
    # 60 x 60 means of 4,000 products, whose deviation is at most a few times that of the kernel's
    # values
    assert np.abs(Z @ Z.T - exact).max() < 0.25 * np.abs(exact).max()
    assert np.abs(Z @ Z.T - exact).mean() < 0.06 * np.abs(exact).max()


def test_kmer_features():
    rows = np.array([[ord(letter) for letter in word] for word in ("ACGT", "ACGA", "TTTT")], float)
    made = estimators.KmerFeatures(k=2, n_features=28)
    total = features.MAPS["kmers"].total(4, {"alphabet": [65, 67, 71, 84], "k": 2})
    Z = made.set_params(n_features=total).fit_transform(rows)
    # words of one and two letters at their positions: 7 in all; ACGA shares 3 + 2, TTTT shares T
    np.testing.assert_allclose(Z @ Z.T * 1.0, [[7, 5, 1], [5, 7, 0], [1, 0, 7]], rtol=1e-5)


@each(OF_METHODS)
def test_sparse_rows_are_the_same_rows(estimator, data):
    dense = np.where(np.abs(data.X) < 1.5, 0.0, data.X)
    model = clone(estimator).set_params(scaling="none")
    target = target_of(data, estimator)
    expected, *found = (
        model.fit(rows, target).predict(rows)
        for rows in (dense, sp.csr_array(dense), sp.coo_matrix(dense))
    )
    if target is data.words:
        assert (np.mean(found == expected, axis=1) > 0.99).all()
    else:
        np.testing.assert_allclose(found, [expected] * 2, rtol=1e-4)


# ------------------------------------------------------------------ pickles, copies, files


@each([e for e in OF_METHODS + MAPS if "scaling" in e.get_params()])
def test_sparse_rows_may_have_64_bit_indices(estimator):
    rows = sp.random(60, 30, 0.2, format="csr", random_state=0)
    wide = rows.copy()
    wide.indices, wide.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    y = np.arange(60) % 2 if hasattr(estimator, "decision_function") else np.arange(60) % 7 / 2

    def outcome(rows):
        model = clone(estimator).set_params(scaling="none").fit(rows, y)
        return model.predict(rows) if hasattr(model, "predict") else model.transform(rows)

    found, expected = outcome(wide), outcome(rows)
    assert found.shape == expected.shape and not (found != expected).sum()


@each([e for e in CLASSIFIERS if "class_weight" in e.get_params()])
def test_a_class_of_weight_zero_stays_a_class(estimator, data):
    """As in LogisticRegression; this class is never predicted."""
    X = data.X
    y = np.arange(300) % 3
    by_rows = clone(estimator).fit(X, y, sample_weight=(y != 1) * 1.0)
    by_class = clone(estimator).set_params(class_weight={1: 0.0}).fit(X, y)
    for model in (by_rows, by_class):
        assert model.classes_.tolist() == [0, 1, 2] and model.decision_function(X).shape == (300, 3)
        assert not np.any(model.predict(X) == 1)
    two = clone(estimator).fit(X, y == 1, sample_weight=(y != 1) * 1.0)
    assert two.classes_.tolist() == [False, True] and not two.predict(X).any()


@each(NAMED)
def test_a_model_file_opens_as_the_estimator(estimator, tmp_path, data):
    X = data.X
    model = clone(estimator).fit(X, target_of(data, estimator))
    model.save(tmp_path / "m.npz")
    back = rfx.load(tmp_path / "m.npz")
    assert type(back) is type(model) and back.n_features_in_ == 3
    assert back._given() == model._given()
    # a loaded estimator can be saved again
    back.save(tmp_path / "again.npz")
    for loaded in (back, rfx.load(tmp_path / "again.npz")):
        if hasattr(model, "decision_function"):
            np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        else:
            np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-9)
    assert clone(back).get_params() == model.get_params()


def test_labels_and_names_come_back(tmp_path, data):
    frame = pandas.DataFrame(data.X, columns=["a", "b", "c"])
    for labels in (data.words, np.digitize(data.radius, [2.0]) * 7, data.radius > 2):
        model = estimators.RFClassifier(n_features=50, gamma=1.0, lam=1.0).fit(frame, labels)
        model.save(tmp_path / "m.npz")
        back = rfx.load(tmp_path / "m.npz")
        assert back.classes_.dtype.kind == model.classes_.dtype.kind
        np.testing.assert_array_equal(back.classes_, model.classes_)
        np.testing.assert_array_equal(back.feature_names_in_, ["a", "b", "c"])
        np.testing.assert_array_equal(back.predict(frame), model.predict(frame))


def test_labels_that_no_file_has_are_refused(tmp_path, data):
    model = estimators.RFClassifier(n_features=20).fit(data.X, data.words)
    model.classes_ = np.array([b"a", b"b", b"c"])
    with pytest.raises(ValueError, match="labels of type .S1 can't be saved in a model file"):
        model.save(tmp_path / "m.npz")


# ------------------------------------------------------------------ batch by batch


@each(STREAMING)
def test_partial_fit_goes_on(estimator, tmp_path, data):
    X, words = data.X, data.words
    target = target_of(data, estimator)
    first = {"classes": np.unique(words)} if target is words else {}
    # scaling, bandwidth and target mean are learnt from the first part, where they are not the same
    same = {"scaling": "none", "gamma": 0.5, "target_scaling": "none"}
    known = estimator.get_params()
    scaled = clone(estimator).set_params(**{k: v for k, v in same.items() if k in known})
    whole = clone(scaled).partial_fit(X, target, **first)
    begun = clone(scaled).partial_fit(X[:160], target[:160], **first)
    parts = pickle.loads(pickle.dumps(begun)).partial_fit(X[160:], target[160:])
    assert parts.n_iter_ > begun.n_iter_
    if whole.method_.name in ("n-pegasos", "norma"):
        assert parts.predict(X).shape == whole.predict(X).shape
    elif target is words:
        np.testing.assert_array_equal(parts.predict(X), whole.predict(X))
    else:
        np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-6)
    whole.save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="has no training state"):
        rfx.load(tmp_path / "m.npz").partial_fit(X, target)


def test_partial_fit_refuses(data):
    X, words = data.X, data.words
    model = estimators.DoublySGDClassifier(block=16)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, words)
    model.partial_fit(X[:64], words[:64], classes=["near", "far", "middle"])
    with pytest.raises(ValueError, match="the label .*outside.* is not among the classes"):
        model.partial_fit(X[:2], ["near", "outside"])
    with pytest.raises(ValueError, match="is not the same as on last call"):
        model.partial_fit(X[:2], words[:2], classes=["near", "outside"])
    assert not hasattr(estimators.KSDCAClassifier(), "partial_fit")


def test_entries_of_a_sparse_matrix_at_the_same_place_are_summed(rng):
    values, columns = np.ones(2400), rng.integers(0, 40, 2400)
    repeated = sp.csr_matrix((values, columns, np.arange(201) * 12), shape=(200, 3000))
    summed = repeated.copy()
    summed.sum_duplicates()
    y = summed.toarray()[:, 0]
    options = {"scaling": "standard", "metric": "none", "gamma": 0.05, "lam": 1.0}
    first, second = (
        estimators.KernelRegressor(**options).fit(rows, y).predict(summed)
        for rows in (repeated, summed)
    )
    np.testing.assert_allclose(first, second, rtol=1e-10)
    assert repeated.nnz == 2400


INVALID = {
    "missing": ("wrong", 3),
    "device": ("tpu", 3),
    "calibrate": ("wrong",),
    "lam": (-1.0, [1]),
}
INVALID |= {"kernel": ("wrong", 3), "scaling": ("wrong",), "seed": (-1, 1.5), "tol": (-1.0, "x")}
ALL = [name for name in estimators.names() if name.endswith(("Regressor", "Classifier"))]


@pytest.mark.parametrize("name", ALL)
def test_parameters_are_validated_like_options(name):
    kind = getattr(estimators, name)
    rows = np.arange(20.0).reshape(10, 2)
    for parameter in INVALID.keys() & inspect.signature(kind).parameters.keys():
        for value in INVALID[parameter]:
            with pytest.raises(ValueError, match=parameter) as refused:
                kind(**{parameter: value}).fit(rows, np.arange(10) % 2)
            assert "\n" not in str(refused.value)


def test_a_series_is_no_row():
    frame = pandas.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0]})
    model = estimators.RBRegressor(n_grids=2, scaling="none", gamma=1.0, lam=1.0)
    model.fit(frame, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="Series"):
        model.predict(frame.iloc[0])
