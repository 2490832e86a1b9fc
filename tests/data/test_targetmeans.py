"""Columns with many categories: target means, learnt on training rows alone. Columns of row names,
which are dropped. The message about the column types.
"""

import json
import logging
from dataclasses import replace

import numpy as np
import pandas
import pytest
from shell import run
from sklearn.preprocessing import TargetEncoder

from rfx.data import load
from rfx.data.reading import Reading
from rfx.data.stream import CsvSource
from rfx.data.tables import other_rows
from rfx.data.tabular import targetmeans
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.targetmeans import MOST_COLUMNS
from rfx.errors import DataError, RfxWarning

N, MANY = 600, 90
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, MANY, N)
EFFECT = RNG.normal(size=MANY)
TARGETS = {
    "regression": EFFECT[CODES] + RNG.normal(size=N),
    "binary": np.where(EFFECT[CODES] + RNG.normal(size=N) > 0, 5.0, -1.0),
    "multiclass": np.digitize(EFFECT[CODES] + RNG.normal(size=N), [-0.5, 0.5]).astype(float),
}


@pytest.fixture(autouse=True)
def small(own_folders):
    pass


def frame(**more):
    """Towns, with many categories, and a number and a class that depend on them."""
    a = np.round(RNG.normal(size=N), 3)
    y = np.where(EFFECT[CODES] + a > 0, "yes", "no")
    return pandas.DataFrame({"town": [f"t{code}" for code in CODES], "a": a, "y": y} | more)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.csv"
    frame().to_csv(path, index=False)
    return path


def encoder(codes, y, task):
    kind = {"regression": "continuous"}.get(task, task)
    return TargetEncoder(target_type=kind, smooth="auto").fit(codes[:, None], y)


# ---------------------------------------------------------------------- the means


@pytest.mark.parametrize("task", TARGETS)
def test_the_means_are_those_of_scikit_learn(task):
    y = TARGETS[task]
    own = encoder(CODES, y, task)
    Y = targetmeans.outputs(y, task)
    # a category of one row, and an empty one
    codes = np.unique(CODES, return_inverse=True)[1]
    found = targetmeans.smoothed(codes, codes.max() + 2, Y)
    np.testing.assert_allclose(found[:-1], np.column_stack(own.encodings_), rtol=1e-12)
    np.testing.assert_allclose(found[-1], np.atleast_1d(own.target_mean_), rtol=1e-12)


@pytest.mark.parametrize("task", TARGETS)
def test_each_part_has_the_means_of_the_other_rows(task):
    y = TARGETS[task]
    part = targetmeans.parts(y, 3)
    found = targetmeans.cross_fitted(CODES, MANY, targetmeans.outputs(y, task), part)
    for number in range(targetmeans.PARTS):
        kept = part != number
        want = encoder(CODES[kept], y[kept], task).transform(CODES[~kept][:, None])
        np.testing.assert_allclose(found[~kept], want, rtol=1e-12)


def test_missing_and_constant_targets():
    codes, y = np.array([0, 0, -1, 1]), np.array([1.0, 3.0, 8.0, 4.0])
    means = targetmeans.learn(codes, 3, y[:, None], ())
    assert means.default == [4.0] and means.values[2] == [4.0]
    assert means.of(np.array([-1, 1])).tolist() == [[4.0], [4.0]]
    assert targetmeans.smoothed(codes, 3, np.ones((4, 1))).tolist() == [[1.0]] * 3


def test_parts_are_equal_and_the_seeds_own():
    for y in TARGETS.values():
        part = targetmeans.parts(y, 0)
        assert np.bincount(part).tolist() == [N // targetmeans.PARTS] * targetmeans.PARTS
        means = [y[part == number].mean() for number in range(targetmeans.PARTS)]
        assert np.ptp(means) < 0.1 * y.std()
        np.testing.assert_array_equal(part, targetmeans.parts(y, 0))
        assert (part != targetmeans.parts(y, 1)).any()
    assert len(targetmeans.parts(np.zeros(1), 0)) == 1


# ---------------------------------------------------------------------- files


def test_many_categories_are_one_input_and_few_are_their_own(file):
    schema = load(file).schema
    assert schema.titles() == ["town", "a"] and schema.width == 2
    few = frame(town=[f"t{code % MOST_COLUMNS}" for code in CODES])
    few.to_csv(file, index=False)
    assert load(file).schema.width == MOST_COLUMNS + 1
    few["town"] = [f"t{code % (MOST_COLUMNS + 1)}" for code in CODES]
    few.to_csv(file, index=False)
    assert load(file).schema.width == 2


def test_several_classes_have_a_column_each(file):
    frame(y=TARGETS["multiclass"].astype(int)).to_csv(file, index=False)
    split = load(file)
    assert split.schema.titles() == ["town.0", "town.1", "town.2", "a"]
    np.testing.assert_allclose(split.X_train[:, :3].sum(axis=1), 1, atol=0.3)
    words = np.array(["low", "mid", "top"])[TARGETS["multiclass"].astype(int)]
    frame(y=words).to_csv(file, index=False)
    assert load(file).schema.titles()[:3] == ["town.low", "town.mid", "town.top"]


def test_test_rows_take_no_part(file, tmp_path):
    want = load(file, split="80/20", seed=1)
    table = pandas.read_csv(file)
    out = np.isin(table["a"].to_numpy(), want.X_test[:, 1])
    out &= ~np.isin(table["a"].to_numpy(), want.X_train[:, 1])
    assert out.sum() > 50
    table.loc[out, "y"] = np.where(table["y"][out] == "yes", "no", "yes")
    table.to_csv(tmp_path / "other.csv", index=False)
    found = load(tmp_path / "other.csv", split="80/20", seed=1)
    np.testing.assert_array_equal(found.X_train, want.X_train)
    np.testing.assert_array_equal(found.X_test, want.X_test)
    assert (found.y_test != want.y_test).sum() == out.sum()


@pytest.mark.parametrize("y", [None, "classes", "numbers"])
def test_a_part_is_learnt_without_the_rows_that_are_held_out(y, file):
    if y is not None:
        own = TARGETS["multiclass"] if y == "classes" else TARGETS["regression"]
        frame(y=own).to_csv(file, index=False)
    split = load(file)
    kept, out = np.arange(0, N, 2), np.arange(1, N, 2)
    X, X_out = split.part(kept, out)
    changed = split.y_train.copy()
    changed[out] = RNG.permutation(changed[out])
    again = replace(split, y_train=changed).part(kept, out)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(X_out, again[1])
    width = 3 if y == "classes" else 1
    task = split.task or "regression"
    Y = targetmeans.outputs(split.y_train, task)[kept]
    column = split.schema.columns[0]
    codes = np.array([column.categories.index(f"t{code}") for code in CODES])
    means = targetmeans.learn(codes[kept], MANY, Y, ())
    np.testing.assert_array_equal(X_out[:, :width], means.of(codes[out]))
    assert (X[:, :width] != means.of(codes[kept])).any()


def test_the_same_table_in_other_formats_gives_the_same_inputs(file, tmp_path):
    pytest.importorskip("pyarrow")
    table, split = pandas.read_csv(file), load(file)
    table.to_parquet(tmp_path / "words.parquet")
    table.astype({"town": "category"}).to_parquet(tmp_path / "categories.parquet")
    for name in ("words.parquet", "categories.parquet"):
        other = load(tmp_path / name)
        np.testing.assert_array_equal(other.X_train, split.X_train)
        assert other.schema.columns == split.schema.columns
        X, _ = other_rows(tmp_path / name, split.schema, 2)
        np.testing.assert_array_equal(X, other_rows(file, other.schema, 2)[0])


def test_unknown_and_missing_categories_become_the_mean(file, tmp_path, caplog):
    schema = load(file).schema
    share = float(np.mean(pandas.read_csv(file)["y"] == "yes"))
    (tmp_path / "new.csv").write_text("town,a\nnowhere,1\n,1\nt1,1\n")
    with pytest.warns(RfxWarning, match="which are encoded by the mean of the targets: 'nowhere'"):
        X, _ = other_rows(tmp_path / "new.csv", schema, 2, targets="ignored")
    assert X[0, 0] == X[1, 0] == share != X[2, 0]
    with pytest.raises(DataError, match="'nowhere'; without --strict they are encoded by the mean"):
        other_rows(tmp_path / "new.csv", schema, 2, strict=True, targets="ignored")
    table = pandas.read_csv(file)
    table.loc[[3, 5], "town"] = None
    table.to_csv(file, index=False)
    caplog.clear()
    split = load(file)
    assert "2 cells of column 'town' without a value become the mean of the targets" in caplog.text
    assert split.schema.columns[0].means.default == [share]
    np.testing.assert_allclose(split.X_train[[3, 5], 0], share, atol=0.01)
    # for any value that stands for missing cells in other columns
    again = load(file, reading=Reading(missing="most_frequent"))
    np.testing.assert_array_equal(again.X_train, split.X_train)


def test_names_of_rows_are_left_out_and_can_be_kept(file, caplog):
    frame(name=[f"n{i}" for i in range(N)]).to_csv(file, index=False)
    reading = Reading(target="y")
    assert load(file, reading=reading).schema.titles() == ["town", "a"]
    said = [r.getMessage() for r in caplog.records if "is ignored" in r.getMessage()]
    assert len(said) == 1 and said[0].endswith(
        "it has 600 different words in 600 rows, too many for categories; --categorical name keeps"
        " it"
    )
    kept = load(file, reading=Reading(target="y", categorical=("name",)))
    assert kept.schema.titles() == ["town", "a", "name"]
    # names of rows carry no information on other rows
    assert np.ptp(kept.X_train[:, 2]) < 0.01
    # a stream does the same; files with and without the column can be read
    assert CsvSource(file, reading).schema.ignored == ("name",)


def damaged(change):
    column = {"name": "x", "position": 0, "categories": ["a", "b"], "fill": None, "form": None}
    means = {"values": [[0.1], [0.2]], "default": [0.3], "titles": []}
    return {"inputs": [column | {"means": means | change}], "named": True, "size": 2} | {
        "target": None,
        "ignored": [],
        "labels": None,
        "target_form": None,
    }


def test_a_schema_of_before_has_columns_of_0_and_1():
    saved = damaged({})
    del saved["inputs"][0]["means"]
    assert Schema.from_dict(saved).titles() == ["x=a", "x=b"]


def test_converting_and_streaming_make_no_use_of_targets(file, tmp_path, capfd):
    code, out, err = run(capfd, "convert", file, tmp_path / "t.libsvm", "--json")
    assert code == 0 and len(json.loads(out)["columns"]) == MANY + 1
    assert " inputs from " not in err
    assert CsvSource(file).schema.width == MANY + 1


# ---------------------------------------------------------------------- what is said


def summaries(caplog):
    return [r.getMessage() for r in caplog.records if " inputs from " in r.getMessage()]


def test_one_line_says_what_the_columns_became(file, caplog):
    caplog.set_level(logging.WARNING)
    table = frame(
        b=RNG.normal(size=N),
        name=[f"n{i}" for i in range(N)],
        day=pandas.date_range("2020-01-01", periods=N).astype(str),
        same=3,
        job=np.array(["clerk", "smith"])[CODES % 2],
        old=1,
    )
    table.to_csv(file, index=False)
    load(file, reading=Reading(target="y", dates=("day",), ignore=("old",)))
    assert summaries(caplog) == [
        f"{file}: 10 inputs from 8 columns: 2 numbers, 1 category (2 values), 1 target-encoded"
        " (90 values), 1 date (4 inputs), 1 constant, 2 ignored"
    ]
    caplog.clear()
    CsvSource(file, Reading(target="y", dates=("day",), ignore=("old", "town")), chunk=1000)
    assert summaries(caplog) == [
        f"{file}: 9 inputs from 8 columns: 2 numbers, 1 category (2 values), 1 date (4 inputs),"
        " 1 constant, 3 ignored"
    ]
