"""Categorical columns in estimators: by dtype, name, position or mask; the same inputs as from a
file; models and pickles that keep them.
"""

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

RNG = np.random.default_rng(0)
N, MANY = 400, 60
CODES = RNG.integers(0, MANY, N)
EFFECT = RNG.normal(size=MANY)
A = np.round(RNG.normal(size=N), 3)
TOWN = np.array([f"t{code}" for code in CODES])
JOB = np.array(["clerk", "smith", "baker"])[RNG.integers(0, 3, N)]
NUMBER = EFFECT[CODES] + A + (JOB == "smith")
LABEL = np.where(NUMBER > 0, "yes", "no")
CLASSES = np.array(["low", "mid", "top"])[np.digitize(NUMBER, [-0.5, 0.8])]
FRAME = pandas.DataFrame({"town": TOWN, "a": A, "job": JOB})
KINDS = {
    "object": FRAME.astype({"town": object, "job": object}),
    "category": FRAME.astype({"town": "category", "job": "category"}),
    "string": FRAME.astype({"town": "string", "job": "string"}),
}


def classifier(**more):
    return estimators.RFClassifier(n_features=50, gamma=1.0, lam=1.0, **more)


def regressor(**more):
    return estimators.RFRegressor(n_features=50, gamma=1.0, lam=1.0, **more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("y", [LABEL, CLASSES, NUMBER], ids=["binary", "multiclass", "numbers"])
def test_a_frame_gives_what_the_file_of_it_gives(kind, y, tmp_path):
    make = regressor if y is NUMBER else classifier
    task = {id(LABEL): "binary", id(CLASSES): "multiclass"}.get(id(y), "regression")
    model = make(seed=3).fit(KINDS[kind], y)
    FRAME.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    split = load(tmp_path / "t.csv", seed=3, task=task)
    options = {"task": task, "n_features": 50, "gamma": 1.0, "lam": 1.0, "seed": 3}
    want = methods.create("rf", **options).fit(split.X_train, split.y_train)
    table = File(tmp_path / "t.csv").read(Reading(), split.schema)
    X = split.schema.encode(table, targets="ignored")[0]
    found = model._decision(FRAME)
    np.testing.assert_array_equal(found, want.decision_function(X))
    assert model.schema_.width == split.schema.width == model.info_["n_inputs"]
    np.testing.assert_array_equal(model.feature_names_in_, ["town", "a", "job"])
    assert model.n_features_in_ == 3


def test_all_ways_to_name_the_columns_are_one():
    want = classifier().fit(FRAME, LABEL)
    for asked in (
        ["town", "job"],
        [0, 2],
        np.array([0, 2]),
        [True, False, True],
        np.array([True, False, True]),
    ):
        model = classifier(categorical_features=asked).fit(FRAME, LABEL)
        np.testing.assert_array_equal(model.decision_function(FRAME), want.decision_function(FRAME))
    array = FRAME.to_numpy(dtype=object)
    model = classifier(categorical_features=[0, 2]).fit(array, LABEL)
    np.testing.assert_array_equal(model.decision_function(array), want.decision_function(FRAME))
    rows = array.tolist()
    np.testing.assert_array_equal(model.decision_function(rows), want.decision_function(FRAME))


def test_numbers_are_categories_where_that_is_said():
    codes = np.column_stack([CODES, A])
    model = classifier(categorical_features=[0]).fit(codes, LABEL)
    assert model.schema_.columns[0].means is not None and model.info_["n_inputs"] == 2
    frame = pandas.DataFrame({"code": CODES, "a": A})
    typed = classifier().fit(frame.astype({"code": "category"}), LABEL)
    np.testing.assert_array_equal(
        typed.decision_function(frame.astype({"code": "category"})), model.decision_function(codes)
    )
    # of another type at prediction
    floats = frame.astype({"code": float})
    np.testing.assert_array_equal(typed.decision_function(floats), model.decision_function(codes))
    plain = classifier().fit(frame, LABEL)
    assert plain.schema_ is None
    few = classifier(categorical_features=["code"]).fit(frame.assign(code=CODES % 4), LABEL)
    assert few.schema_.titles() == ["code=0", "code=1", "code=2", "code=3", "a"]


@pytest.mark.parametrize("asked", [None, [], "from_dtype", [False] * 2])
def test_without_categories_nothing_changes(asked):
    frame = pandas.DataFrame({"a": A, "b": CODES})
    model = classifier(categorical_features=asked).fit(frame, LABEL)
    want = classifier(categorical_features=None).fit(frame, LABEL)
    assert model.schema_ is None and model._given() == want._given()
    np.testing.assert_array_equal(model.decision_function(frame), want.decision_function(frame))


@pytest.mark.parametrize(
    "asked, X, says",
    [
        (["city"], FRAME, "not columns of the dataframe"),
        ([5], FRAME.to_numpy(dtype=object), "all features must be in"),
        (["town"], FRAME, "column 'job' of X has categories or words .*name it in"),
    ],
)
def test_what_is_refused_is_a_sentence(asked, X, says):
    with pytest.raises(ValueError, match=says):
        classifier(categorical_features=asked).fit(X, LABEL)


@pytest.mark.parametrize(
    "rows, says",
    [
        (FRAME[["a", "town", "job"]], "feature names should match"),
        (FRAME.to_numpy(dtype=object)[:, :2], "has 2 features, but RFClassifier is expecting 3"),
        (FRAME.assign(a="x"), "row 1: column 'a' has 'x', which is not a number"),
    ],
)
def test_rows_that_do_not_go_with_the_model_are_refused(rows, says):
    model = classifier().fit(FRAME, LABEL)
    with pytest.raises(ValueError, match=says):
        model.predict(rows)


@pytest.mark.parametrize(
    "make, rows, y, says",
    [
        (classifier, FRAME, LABEL[:-1], "inconsistent numbers of samples"),
        (regressor, FRAME, np.full(N, np.nan), "NaN"),
        (classifier, FRAME[:0], LABEL[:0], "0 sample"),
    ],
)
def test_rows_and_targets_that_do_not_go_together_are_refused(make, rows, y, says):
    with pytest.raises(ValueError, match=says):
        make().fit(rows, y)


def test_unknown_and_missing_categories():
    model = classifier().fit(FRAME, LABEL)
    new = pandas.DataFrame({"town": ["x", None, "t1"], "a": 0.5, "job": "smith"})
    with pytest.warns(RfxWarning, match="'town' .* encoded by the mean of the targets"):
        found = model.decision_function(new)
    assert found[0] == found[1] != found[2]
    with pytest.warns(RfxWarning, match="'job' .* absent in training"):
        model.predict(new.assign(town="t1", job="king"))
    gaps = new.assign(town="t1", job=["smith", None, "smith"], a=[0.5, 0.5, None])
    whole = gaps.assign(job=["smith", FRAME["job"].mode()[0], "smith"])
    whole["a"] = whole["a"].fillna(FRAME["a"].mean())
    with pytest.warns(RfxWarning, match="missing cells are filled as in .*: a, job"):
        found = model.decision_function(gaps)
    np.testing.assert_array_equal(found, model.decision_function(whole))
    strict = classifier(missing="refuse").fit(FRAME, LABEL)
    with pytest.raises(ValueError, match="has no value; fill it in, or"):
        strict.predict(gaps)


def test_names_of_rows_are_left_out_with_a_warning_unless_they_are_named():
    names = FRAME.assign(name=[f"n{i}" for i in range(N)])
    with pytest.warns(RfxWarning, match="'name' of X is ignored: .*; categorical_features keeps"):
        model = classifier().fit(names, LABEL)
    want = classifier().fit(FRAME, LABEL)
    np.testing.assert_array_equal(model.decision_function(names), want.decision_function(FRAME))
    assert model.n_features_in_ == 4
    kept = classifier(categorical_features=["town", "job", "name"]).fit(names, LABEL)
    assert kept.schema_.titles()[-1] == "name"
    dates = FRAME.assign(day="2020-01-31")
    with pytest.warns(RfxWarning, match="read as dates: column 'day'; categorical_features reads"):
        assert classifier().fit(dates, LABEL).schema_.titles()[-1] == "day.days"


def test_a_warning_names_the_line_that_called_rfx():
    with pytest.warns(RfxWarning, match="read as dates: column 'since'") as found:
        classifier().fit(FRAME.assign(since="2020-01-31"), LABEL)
    assert found[0].filename == __file__


@pytest.mark.slow
def test_cross_validation_sees_no_held_out_target(rng):
    noise = rng.normal(size=N)
    towns = pandas.DataFrame({"town": [f"t{code}" for code in rng.integers(0, 150, N)]})
    scores = cross_val_score(regressor(), towns, noise, cv=5)
    assert scores.mean() < 0.05


def test_several_targets_have_means_of_each():
    y = np.column_stack([NUMBER, -2 * NUMBER])
    model = estimators.DoublySGDRegressor(gamma=1.0, block=16, batch=16).fit(FRAME, y)
    assert model.schema_.columns[0].width == 2 and model.predict(FRAME).shape == (N, 2)


@pytest.mark.slow
@each(STREAMING)
def test_the_first_part_teaches_the_categories(estimator):
    model = clone(estimator)
    if hasattr(model, "decision_function"):
        y, more = CLASSES, {"classes": np.unique(CLASSES)}
    else:
        y, more = NUMBER, {}
    model.partial_fit(FRAME[:200], y[:200], **more)
    schema = model.schema_
    with pytest.warns(RfxWarning, match="absent in training"):
        model.partial_fit(FRAME[200:].assign(job="king"), y[200:])
    assert model.schema_ is schema and len(model.predict(FRAME[:5])) == 5


def test_a_first_part_without_a_class_has_means_of_all():
    model = estimators.NormaClassifier(gamma=1.0)
    part = CLASSES != "top"
    model.partial_fit(FRAME[part], CLASSES[part], classes=["low", "mid", "top"])
    assert model.schema_.columns[0].width == 3


@pytest.mark.parametrize("asked", [[0, 2], [True, False, True], None])
def test_files_keep_what_was_asked_for(asked, tmp_path):
    array = FRAME.assign(town=CODES, job=CODES % 3).to_numpy(dtype=float)
    model = classifier(categorical_features=asked).fit(array, LABEL)
    model.save(tmp_path / "m.npz")
    back = rfx.load(tmp_path / "m.npz")
    assert back.categorical_features == asked and back.n_features_in_ == 3
    np.testing.assert_array_equal(back.decision_function(array), model.decision_function(array))
    again = clone(back).fit(array, LABEL)
    np.testing.assert_array_equal(again.decision_function(array), model.decision_function(array))


def test_the_command_line_predicts_from_the_columns(tmp_path, capfd):
    model = classifier().fit(KINDS["category"], LABEL)
    model.save(tmp_path / "m.npz")
    FRAME[["job", "town", "a"]].to_csv(tmp_path / "rows.csv", index=False)
    out = printed(capfd, "predict", tmp_path / "m.npz", tmp_path / "rows.csv")
    assert out.split() == model.predict(FRAME).tolist()


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
