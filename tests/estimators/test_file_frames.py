"""Data frames with the columns of the file that `rfx train` learnt from, in estimators from
`rfx.load`: they give the command's predictions for the file, bit for bit.
"""

import json

import numpy as np
import pandas
import pytest
from shell import called
from sklearn.feature_selection import SelectFromModel

import rfx
from rfx.errors import RfxWarning
from rfx.estimators import RFClassifier

N = 300
TARGETS = ["y", "two", "three"]
GIVEN = "--gamma 0.2 --lam 0.1 --n-features 60 --kernel gaussian --metric none --scaling standard"


def table():
    """Numbers with gaps, numbers with thousands separators, truth values, dates, few and many
    categories, codes, an id.
    """
    rng = np.random.default_rng(0)
    a, town = np.round(rng.normal(size=N), 3), rng.integers(0, 50, N)
    y = np.round(a + rng.normal(size=50)[town] + 0.1 * rng.normal(size=N), 4)
    rows = pandas.DataFrame(
        {
            "id": np.arange(N) + 1000,
            "a": a,
            "pay": [f"{one:,}" for one in rng.integers(500, 5000, N)],
            "open": rng.random(N) < 0.5,
            "day": (np.datetime64("2020-01-01") + rng.integers(0, 900, N)).astype(str),
            "town": [f"t{one}" for one in town],
            "job": np.array(["clerk", "?", "smith", "NA", "baker"])[rng.integers(0, 5, N)],
            "code": rng.integers(1, 5, N) * 10,
            "y": y,
            "two": np.where(y > 0, "yes", "no"),
            "three": np.digitize(y, [-0.5, 0.5]) + 1,
        }
    )
    rows.loc[rng.random(N) < 0.1, "a"] = np.nan
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    rows = table()
    rows[:200].to_csv(folder / "train.csv", index=False)
    rows[200:].to_csv(folder / "test.csv", index=False)
    for target in TARGETS:
        words = ["train", "--method", "rf", "--data", folder / "train.csv", "--target", target]
        words += ["--ignore", ",".join(["id", *(o for o in TARGETS if o != target)])]
        words += ["--dates", "day", "--categorical", "code", "--missing", "median", "--quiet"]
        words += ["--task", "multiclass"] if target == "three" else []
        words += ["--calibrate", "platt"] if target == "two" else []
        called(*words, *GIVEN.split(), "--model", folder / f"{target}.npz")
    return folder


def predicted(model, rows, *more):
    """What `rfx predict` says of the rows of a file."""
    return json.loads(called("predict", model, rows, "--json", *more).stdout)


def frames(path):
    """The same rows in each form that they may have."""
    plain = pandas.read_csv(path)
    yield plain
    yield pandas.read_csv(path, dtype=str, keep_default_na=False)
    yield pandas.read_csv(path, parse_dates=["day"])
    yield plain.astype({"town": "category", "job": "string", "a": "Float64", "code": "Int64"})
    yield plain.astype({"code": float, "open": object, "a": object})
    yield plain[plain.columns[::-1]]
    yield plain.drop(columns=["id", *TARGETS])
    yield plain.set_index("id")


@pytest.mark.parametrize("target", TARGETS)
def test_a_frame_gives_what_the_command_gives(folder, target):
    given = folder / f"{target}.npz", folder / "test.csv"
    model, want = rfx.load(given[0]), {"predict": predicted(*given)["predictions"]}
    if target != "y":
        want["decision_function"] = predicted(*given, "--decision")["decision"]
    if target == "two":
        want["predict_proba"] = predicted(*given, "--proba")["probabilities"]
    for frame in frames(folder / "test.csv"):
        for name, values in want.items():
            np.testing.assert_array_equal(getattr(model, name)(frame), np.array(values))


@pytest.mark.parametrize("words", [("False", "True"), ("FALSE", "TRUE"), ("false", "true")])
def test_a_boolean_target_is_boolean_as_pandas_reads_it(tmp_path, words):
    rows = "".join(f"{i % 7},{i % 3},{words[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"a,b,y\n{rows}")
    words = ["--method", "rf", "--n-features", 10, "--gamma", 1, "--lam", 1, "--quiet"]
    called("train", "--data", tmp_path / "t.csv", *words, "--model", tmp_path / "m.npz")
    model, frame = rfx.load(tmp_path / "m.npz"), pandas.read_csv(tmp_path / "t.csv")
    assert model.predict(frame).dtype == frame["y"].dtype == bool
    assert model.score(frame, frame["y"]) == np.mean(model.predict(frame) == frame["y"])


def test_words_of_an_estimator_stay_words(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = RFClassifier(n_features=10, gamma=1.0, lam=1.0)
    model.fit(X, np.where(X[:, 0] > 0, "True", "False")).save(tmp_path / "m.npz")
    assert rfx.load(tmp_path / "m.npz").classes_.tolist() == ["False", "True"]


def test_what_is_missing_is_one_sentence(folder):
    model, frame = rfx.load(folder / "y.npz"), pandas.read_csv(folder / "test.csv")
    for wrong, says in (
        (frame.drop(columns=["town", "a"]), "X has no column 'a', 'town', which the model needs"),
        (frame.assign(a="x"), "X, row 1: column 'a' has 'x', which is not a number"),
        (frame.assign(day="soon"), "column 'day' has 'soon', which is not a date"),
        (frame.assign(a=np.inf), "column 'a' is infinite"),
        (frame[:0], "X has no rows"),
        (pandas.concat([frame, frame[["a"]]], axis=1), "X has two columns called 'a'"),
    ):
        with pytest.raises(ValueError, match=says):
            model.predict(wrong)


def test_what_the_model_never_saw_is_left_out_with_a_warning(folder):
    model, frame = rfx.load(folder / "y.npz"), pandas.read_csv(folder / "test.csv")
    want = model.predict(frame)
    with pytest.warns(RfxWarning, match="X has columns that were absent in training.*'more'"):
        np.testing.assert_array_equal(model.predict(frame.assign(more=1)), want)


def test_columns_of_a_file_are_counted_and_named_like_those_of_a_frame(folder):
    model, frame = rfx.load(folder / "y.npz"), pandas.read_csv(folder / "test.csv")
    names = ["a", "pay", "open", "day", "town", "job", "code"]
    assert model.feature_names_in_.tolist() == names and model.n_features_in_ == 7
    cells = frame[names].to_numpy(dtype=object)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(cells), model.predict(frame))


def test_each_column_of_a_file_has_one_importance(folder, tmp_path):
    words = ["train", "--method", "rfm", "--data", folder / "train.csv", "--target", "y"]
    words += ["--ignore", "id,two,three", "--metric", "diagonal", "--metric-steps", 1, "--quiet"]
    called(*words, "--scaling", "standard", "--model", tmp_path / "m.npz")
    model = rfx.load(tmp_path / "m.npz")
    assert len(model.feature_importances_) == len(model.feature_names_in_) == 7
    assert model.feature_importances_.sum() == pytest.approx(1)
    select = SelectFromModel(model, prefit=True, threshold=-np.inf, max_features=2)
    assert select.get_support().sum() == 2


def test_saving_keeps_it_and_fit_forgets_it(folder, tmp_path):
    frame = pandas.read_csv(folder / "test.csv")
    for target in TARGETS:
        model = rfx.load(folder / f"{target}.npz")
        model.save(tmp_path / "again.npz")
        again, want = rfx.load(tmp_path / "again.npz").predict(frame), model.predict(frame)
        np.testing.assert_array_equal(again, want)
        assert again.dtype == want.dtype
    model.fit(frame[["two"]].assign(a=np.arange(100) % 7), frame["y"] > 0)
    assert model.schema_.target is None and model.n_features_in_ == 2


def test_a_file_without_names_goes_by_place(tmp_path):
    rng = np.random.default_rng(0)
    rows = pandas.DataFrame(
        {0: rng.normal(size=60), 1: rng.choice(["x", "z"], 60), 2: rng.normal(size=60)}
    )
    rows[:40].to_csv(tmp_path / "train.csv", index=False, header=False)
    rows[40:].to_csv(tmp_path / "test.csv", index=False, header=False)
    words = ["train", "--method", "rf", "--data", tmp_path / "train.csv", "--target", "1"]
    called(*words, *GIVEN.split(), "--model", tmp_path / "m.npz", "--quiet", "--no-header")
    model = rfx.load(tmp_path / "m.npz")
    want = np.array(predicted(tmp_path / "m.npz", tmp_path / "test.csv")["predictions"])
    np.testing.assert_array_equal(model.predict(rows[40:]), want)
    np.testing.assert_array_equal(model.predict(rows[40:][[1, 2]]), want)
    with pytest.raises(ValueError, match="X has 4 unnamed columns"):
        model.predict(rows[40:].assign(more=1))
