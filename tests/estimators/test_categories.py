"""Categorical columns in estimators: by dtype, name, position or mask; the same inputs as from a
file; models and pickles that keep them.
"""

from dataclasses import dataclass

import numpy as np
import pandas
import pytest
from shell import printed
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import cross_val_score
from test_estimators_use import STREAMING, each

import rfx
from rfx import estimators, methods
from rfx.data import load
from rfx.data.reading import Reading
from rfx.data.tables import File
from rfx.errors import RfxWarning

N, MANY = 400, 60
TYPES = {"object": object, "category": "category", "string": "string"}


@dataclass(frozen=True)
class Towns:
    """N rows with a town (by its code), a number and a job; a number, a label and one of three
    classes that depend on them.
    """

    codes: np.ndarray
    a: np.ndarray
    frame: pandas.DataFrame
    number: np.ndarray

    @property
    def label(self):
        return np.where(self.number > 0, "yes", "no")

    @property
    def classes(self):
        return np.array(["low", "mid", "top"])[np.digitize(self.number, [-0.5, 0.8])]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    codes, effect = rng.integers(0, MANY, N), rng.normal(size=MANY)
    a = np.round(rng.normal(size=N), 3)
    job = np.array(["clerk", "smith", "baker"])[rng.integers(0, 3, N)]
    town = np.array([f"t{code}" for code in codes])
    frame = pandas.DataFrame({"town": town, "a": a, "job": job})
    return Towns(codes, a, frame, number=effect[codes] + a + (job == "smith"))


def classifier(**more):
    return estimators.RFClassifier(n_features=50, gamma=1.0, lam=1.0, **more)


def regressor(**more):
    return estimators.RFRegressor(n_features=50, gamma=1.0, lam=1.0, **more)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_a_frame_gives_what_the_file_of_it_gives(kind, task, tmp_path, data):
    make = regressor if task == "regression" else classifier
    y = {"binary": data.label, "multiclass": data.classes, "regression": data.number}[task]
    typed = data.frame.astype({"town": TYPES[kind], "job": TYPES[kind]})
    model = make(seed=3).fit(typed, y)
    data.frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    split = load(tmp_path / "t.csv", seed=3, task=task)
    options = {"task": task, "n_features": 50, "gamma": 1.0, "lam": 1.0, "seed": 3}
    want = methods.create("rf", **options).fit(split.X_train, split.y_train)
    table = File(tmp_path / "t.csv").read(Reading(), split.schema)
    X = split.schema.encode(table, targets="ignored")[0]
    found = model._decision(data.frame)
    np.testing.assert_array_equal(found, want.decision_function(X))
    assert model.schema_.width == split.schema.width == model.info_["n_inputs"]
    np.testing.assert_array_equal(model.feature_names_in_, ["town", "a", "job"])
    assert model.n_features_in_ == 3


def test_all_ways_to_name_the_columns_are_one(data):
    want = classifier().fit(data.frame, data.label)
    for asked in (
        ["town", "job"],
        [0, 2],
        np.array([0, 2]),
        [True, False, True],
        np.array([True, False, True]),
    ):
        model = classifier(categorical_features=asked).fit(data.frame, data.label)
        np.testing.assert_array_equal(
            model.decision_function(data.frame), want.decision_function(data.frame)
        )
    array = data.frame.to_numpy(dtype=object)
    model = classifier(categorical_features=[0, 2]).fit(array, data.label)
    np.testing.assert_array_equal(
        model.decision_function(array), want.decision_function(data.frame)
    )
    rows = array.tolist()
    np.testing.assert_array_equal(model.decision_function(rows), want.decision_function(data.frame))


def test_numbers_are_categories_where_that_is_said(data):
    codes = np.column_stack([data.codes, data.a])
    model = classifier(categorical_features=[0]).fit(codes, data.label)
    assert model.schema_.columns[0].means is not None and model.info_["n_inputs"] == 2
    frame = pandas.DataFrame({"code": data.codes, "a": data.a})
    typed = classifier().fit(frame.astype({"code": "category"}), data.label)
    np.testing.assert_array_equal(
        typed.decision_function(frame.astype({"code": "category"})), model.decision_function(codes)
    )
    # of another type at prediction
    floats = frame.astype({"code": float})
    np.testing.assert_array_equal(typed.decision_function(floats), model.decision_function(codes))
    plain = classifier().fit(frame, data.label)
    assert plain.schema_ is None
    few = classifier(categorical_features=["code"]).fit(
        frame.assign(code=data.codes % 4), data.label
    )
    assert few.schema_.titles() == ["code=0", "code=1", "code=2", "code=3", "a"]


@pytest.mark.parametrize("asked", [None, [], "from_dtype", [False] * 2])
def test_without_categories_nothing_changes(asked, data):
    frame = pandas.DataFrame({"a": data.a, "b": data.codes})
    model = classifier(categorical_features=asked).fit(frame, data.label)
    want = classifier(categorical_features=None).fit(frame, data.label)
    assert model.schema_ is None and model._given() == want._given()
    np.testing.assert_array_equal(model.decision_function(frame), want.decision_function(frame))


@pytest.mark.parametrize(
    "asked, form, says",
    [
        (["city"], "frame", "not columns of the dataframe"),
        ([5], "array", "all features must be in"),
        (["town"], "frame", "column 'job' of X has categories or words .*name it in"),
    ],
)
def test_what_is_refused_is_a_sentence(asked, form, says, data):
    X = data.frame if form == "frame" else data.frame.to_numpy(dtype=object)
    with pytest.raises(ValueError, match=says):
        classifier(categorical_features=asked).fit(X, data.label)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda frame: frame[["a", "town", "job"]], "feature names should match"),
        (
            lambda frame: frame.to_numpy(dtype=object)[:, :2],
            "has 2 features, but RFClassifier is expecting 3",
        ),
        (lambda frame: frame.assign(a="x"), "row 1: column 'a' has 'x', which is not a number"),
    ],
)
def test_rows_that_do_not_go_with_the_model_are_refused(change, says, data):
    model = classifier().fit(data.frame, data.label)
    with pytest.raises(ValueError, match=says):
        model.predict(change(data.frame))


@pytest.mark.parametrize(
    "make, change, says",
    [
        (classifier, lambda frame, y: (frame, y[:-1]), "inconsistent numbers of samples"),
        (regressor, lambda frame, y: (frame, np.full(N, np.nan)), "NaN"),
        (classifier, lambda frame, y: (frame[:0], y[:0]), "0 sample"),
    ],
)
def test_rows_and_targets_that_do_not_go_together_are_refused(make, change, says, data):
    with pytest.raises(ValueError, match=says):
        make().fit(*change(data.frame, data.label))


def test_unknown_and_missing_categories(data):
    model = classifier().fit(data.frame, data.label)
    new = pandas.DataFrame({"town": ["x", None, "t1"], "a": 0.5, "job": "smith"})
    with pytest.warns(RfxWarning, match="'town' .* encoded by the mean of the targets"):
        found = model.decision_function(new)
    assert found[0] == found[1] != found[2]
    with pytest.warns(RfxWarning, match="'job' .* absent in training"):
        model.predict(new.assign(town="t1", job="king"))
    gaps = new.assign(town="t1", job=["smith", None, "smith"], a=[0.5, 0.5, None])
    whole = gaps.assign(job=["smith", data.frame["job"].mode()[0], "smith"])
    whole["a"] = whole["a"].fillna(data.frame["a"].mean())
    with pytest.warns(RfxWarning, match="missing cells are filled as in .*: a, job"):
        found = model.decision_function(gaps)
    np.testing.assert_array_equal(found, model.decision_function(whole))
    strict = classifier(missing="refuse").fit(data.frame, data.label)
    with pytest.raises(ValueError, match="has no value; fill it in, or"):
        strict.predict(gaps)


def test_names_of_rows_are_left_out_with_a_warning_unless_they_are_named(data):
    names = data.frame.assign(name=[f"n{i}" for i in range(N)])
    with pytest.warns(RfxWarning, match="'name' of X is ignored: .*; categorical_features keeps"):
        model = classifier().fit(names, data.label)
    want = classifier().fit(data.frame, data.label)
    np.testing.assert_array_equal(
        model.decision_function(names), want.decision_function(data.frame)
    )
    assert model.n_features_in_ == 4
    kept = classifier(categorical_features=["town", "job", "name"]).fit(names, data.label)
    assert kept.schema_.titles()[-1] == "name"
    dates = data.frame.assign(day="2020-01-31")
    with pytest.warns(RfxWarning, match="read as dates: column 'day'; categorical_features reads"):
        assert classifier().fit(dates, data.label).schema_.titles()[-1] == "day.days"


def test_a_warning_names_the_line_that_called_rfx(data):
    with pytest.warns(RfxWarning, match="read as dates: column 'since'") as found:
        classifier().fit(data.frame.assign(since="2020-01-31"), data.label)
    assert found[0].filename == __file__


@pytest.mark.slow
def test_cross_validation_sees_no_held_out_target(rng):
    noise = rng.normal(size=N)
    towns = pandas.DataFrame({"town": [f"t{code}" for code in rng.integers(0, 150, N)]})
    scores = cross_val_score(regressor(), towns, noise, cv=5)
    assert scores.mean() < 0.05


def test_several_targets_have_means_of_each(data):
    y = np.column_stack([data.number, -2 * data.number])
    model = estimators.DoublySGDRegressor(gamma=1.0, block=16, batch=16).fit(data.frame, y)
    assert model.schema_.columns[0].width == 2 and model.predict(data.frame).shape == (N, 2)


@pytest.mark.slow
@each(STREAMING)
def test_the_first_part_teaches_the_categories(estimator, data):
    model = clone(estimator)
    if hasattr(model, "decision_function"):
        y, more = data.classes, {"classes": np.unique(data.classes)}
    else:
        y, more = data.number, {}
    model.partial_fit(data.frame[:200], y[:200], **more)
    schema = model.schema_
    with pytest.warns(RfxWarning, match="absent in training"):
        model.partial_fit(data.frame[200:].assign(job="king"), y[200:])
    assert model.schema_ is schema and len(model.predict(data.frame[:5])) == 5


def test_a_first_part_without_a_class_has_means_of_all(data):
    model = estimators.NormaClassifier(gamma=1.0)
    part = data.classes != "top"
    model.partial_fit(data.frame[part], data.classes[part], classes=["low", "mid", "top"])
    assert model.schema_.columns[0].width == 3


@pytest.mark.parametrize("asked", [[0, 2], [True, False, True], None])
def test_files_keep_what_was_asked_for(asked, tmp_path, data):
    array = data.frame.assign(town=data.codes, job=data.codes % 3).to_numpy(dtype=float)
    model = classifier(categorical_features=asked).fit(array, data.label)
    model.save(tmp_path / "m.npz")
    back = rfx.load(tmp_path / "m.npz")
    assert back.categorical_features == asked and back.n_features_in_ == 3
    np.testing.assert_array_equal(back.decision_function(array), model.decision_function(array))
    again = clone(back).fit(array, data.label)
    np.testing.assert_array_equal(again.decision_function(array), model.decision_function(array))


def test_the_command_line_predicts_from_the_columns(tmp_path, capfd, data):
    model = classifier().fit(data.frame.astype({"town": "category", "job": "category"}), data.label)
    model.save(tmp_path / "m.npz")
    data.frame[["job", "town", "a"]].to_csv(tmp_path / "rows.csv", index=False)
    out = printed(capfd, "predict", tmp_path / "m.npz", tmp_path / "rows.csv")
    assert out.split() == model.predict(data.frame).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("levels", [30, 100, 400], ids=["one-hot", "means", "few-rows-each"])
def test_importances_do_not_favour_columns_of_many_categories(levels):
    """A town without effect has what a number without effect has: the noise of gradients, which
    permutations of new rows do not show.
    """
    rng = np.random.default_rng(0)
    towns = [f"t{code}" for code in rng.integers(0, levels, 1600)]
    frame = pandas.DataFrame({"a": rng.normal(size=1600), "u": rng.normal(size=1600)})
    frame, y = frame.assign(town=towns), 2 * np.sin(frame.a) + rng.normal(size=1600)
    options = {"kernel": "laplacian", "scaling": "standard", "metric": "diagonal"}
    model = estimators.RFMRegressor(**options, metric_steps=1).fit(frame[:800], y[:800])
    found = dict(zip(frame, model.feature_importances_))
    lost = permutation_importance(model, frame[800:], y[800:], n_repeats=2, random_state=0)
    shares = dict(zip(frame, lost.importances_mean / lost.importances_mean.sum()))
    assert found["town"] < found["u"] + 0.02 and found["a"] > 0.7
    assert shares["town"] < 0.05 and shares["a"] > 0.9
