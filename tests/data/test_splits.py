"""Selections of rows; loading by name, split, spec string and file; rows that are kept apart."""

import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from rfx import data
from rfx.data import guess_task, libsvm, load, registry, splits
from rfx.data.reading import Reading
from rfx.data.tabular import targetmeans
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError, RfxWarning, UsageError


@pytest.fixture(autouse=True)
def data_folder(own_folders, tmp_path, monkeypatch):
    """A data folder for small files with the names of real ones, whose checksums do not match."""
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(registry, "in_place", lambda *_: None)


def put(tmp_path, name, rows, d, first=0, label=lambda i: 1 if i % 2 else -1):
    """A file in the data folder whose first column has the row numbers, so that a test can follow
    rows.
    """
    X = np.ones((rows, d))
    X[:, 0] = np.arange(first + 1, first + rows + 1)
    path = tmp_path / "data" / name
    libsvm.write(path, X, np.array([label(i) for i in range(rows)], float))
    return path


def numbers(X):
    return (X.toarray() if scipy.sparse.issparse(X) else X)[:, 0].astype(int)


def small(monkeypatch, name, **spec):
    """The registry's entry with another `yen2014` split."""
    info = registry.get(name)
    monkeypatch.setitem(info.splits, "yen2014", registry.SplitSpec(**spec))
    return info


def test_draw():
    same_on_every_machine = [293, 617, 652, 693, 707]
    assert splits.draw(1000, 5, 0).tolist() == same_on_every_machine
    rows = splits.draw(100, 30, 7)
    assert len(set(rows)) == 30 and (np.diff(rows) > 0).all() and rows.max() < 100
    np.testing.assert_array_equal(rows, splits.draw(100, 30, 7))
    assert not np.array_equal(rows, splits.draw(100, 30, 8))
    assert set(splits.draw(100, 20, 7)) < set(rows)
    assert splits.draw(5, None, 0).tolist() == splits.draw(5, 5, 0).tolist() == [*range(5)]
    for size in (0, 6):
        with pytest.raises(UsageError, match="from 5"):
            splits.draw(5, size, 0)


@pytest.mark.parametrize(
    "n_train, n_test, sizes",
    [(None, None, (80, 20)), (60, None, (60, 40)), (None, 5, (95, 5)), (10, 20, (10, 20))],
)
def test_cut(n_train, n_test, sizes):
    train, test = splits.cut(100, n_train, n_test, 3)
    assert (len(train), len(test)) == sizes
    assert not set(train) & set(test) and (np.diff(train) > 0).all() and (np.diff(test) > 0).all()
    assert set(train) | set(test) <= set(range(100))


@pytest.mark.parametrize("n_train, n_test", [(100, None), (0, 50), (90, 11), (None, 100)])
def test_a_cut_that_can_not_be(n_train, n_test):
    with pytest.raises(UsageError, match="100 rows can't be split"):
        splits.cut(100, n_train, n_test, 3)


@pytest.mark.parametrize(
    "y, task, seen",
    [
        ([1, -1, 1], "binary", "-1 and 1 only"),
        ([0.5, 2.5], "binary", "0.5 and 2.5 only"),
        ([1], "multiclass", "1 only"),
        ([2.5, 2.5], "regression", "2.5 only"),
        ([1, 2, 3] * 5, "multiclass", "3 different whole numbers from 1 to 3, each in 5 rows"),
        (
            np.repeat(range(26), [5, *[20] * 25]),
            "multiclass",
            "26 different whole numbers from 0 to 25, each in 5 rows",
        ),
        (np.repeat(range(26), [2, *[20] * 25]), "", ""),
        ([1, 2, 2.5], "regression", "3 different numbers from 1 to 2.5"),
        (range(101), "regression", "101 different whole numbers"),
        (range(100), "", ""),
        ([1, 2, 3], "", ""),
        (list(range(31)) * 90, "", ""),
        # like the ages of abalones
        (np.repeat(np.arange(1, 30), [1] * 4 + [60] * 20 + [2] * 5), "", ""),
    ],
)
def test_guess_task(y, task, seen, caplog):
    y = np.array(y, float)
    if not task:
        with pytest.raises(UsageError, match="--task regression or --task multiclass"):
            guess_task(y)
        return
    assert guess_task(y) == task
    assert f"task {task}, inferred from the targets: {seen}" in caplog.text


@pytest.fixture
def cod_rna(tmp_path):
    """Its files, with rows 1 to 30 for training, and 101 to 120, which lack a column, for tests."""
    put(tmp_path, "cod-rna", 30, 8)
    put(tmp_path, "cod-rna.t", 20, 7, first=100)


def test_the_official_files_are_the_default_split(cod_rna):
    data = load("cod_rna")
    assert (data.name, data.split, data.task) == ("cod-rna", "default", "binary")
    # as wide as the registry says
    assert data.X_train.shape == (30, 8) and data.X_test.shape == (20, 8)
    assert numbers(data.X_test).tolist() == list(range(101, 121))
    assert data.info is registry.get("cod-rna")


def test_a_papers_split_draws_test_rows(cod_rna, monkeypatch):
    small(monkeypatch, "cod-rna", train=("train",), test=("test",), n_train=30, n_test=6)
    data, other = (load("cod-rna", split="yen2014", seed=seed) for seed in (0, 5))
    assert data.X_test.shape[0] == len(data.y_test) == len(other.y_test) == 6
    assert set(numbers(data.X_test)) < set(range(101, 121))
    assert numbers(other.X_test).tolist() != numbers(data.X_test).tolist()
    # all rows, for any seed
    assert numbers(data.X_train).tolist() == numbers(other.X_train).tolist() == [*range(1, 31)]


def test_a_papers_split_pools_files_and_cuts_anew(tmp_path, monkeypatch):
    put(tmp_path, "ijcnn1", 30, 22)
    put(tmp_path, "ijcnn1.t", 20, 22, first=30)
    small(monkeypatch, "ijcnn1", pool=("train", "test"), n_train=45, n_test=5)
    data, other = (load("ijcnn1", split="yen2014", seed=seed) for seed in (0, 3))
    assert data.X_train.shape == (45, 22) and data.y_test.shape == (5,)
    assert numbers(other.X_test).tolist() != numbers(data.X_test).tolist()
    for loaded in (data, other):
        rows = np.concatenate([numbers(loaded.X_train), numbers(loaded.X_test)]) - 1
        assert sorted(rows) == list(range(50))
        # labels stay with their rows: they alternate within each file
        labels = np.concatenate([loaded.y_train, loaded.y_test])
        np.testing.assert_array_equal(labels, np.where(rows % 2, 1, -1))


def test_a_share_of_the_rows_to_train_on(tmp_path):
    """For a file, a data set and a built-in one: the seed selects training rows, the others are
    test rows.
    """
    for name in (put(tmp_path, "mine.libsvm", 50, 3), put(tmp_path, "australian", 50, 14).name):
        data, other = load(name, split="0.7"), load(name, split="0.7", seed=1)
        assert data.split == "0.7" and (data.X_train.shape[0], data.X_test.shape[0]) == (35, 15)
        assert not {*numbers(data.X_train).tolist()} & {*numbers(data.X_test).tolist()}
        assert numbers(data.X_test).tolist() != numbers(other.X_test).tolist()
        same = load(name, split="0.8"), load(name, split="80/20")
        np.testing.assert_array_equal(*(numbers(own.X_train) for own in same))
    made = load("sphere:n=30,d=3,n_test=10", split=".5")
    assert made.X_train.shape == (20, 3) and made.X_test.shape == (20, 3)
    assert load("sphere:n=30,d=3,n_test=10", split=".5", n_train=4).X_train.shape == (4, 3)


@pytest.mark.parametrize("split", ["0", "1", "1.5", "-0.2", "80", "1e-999"])
def test_what_is_no_share(split, tmp_path):
    wrong = (
        f"split {re.escape(split)} is not a fraction of the rows to train on; use a number between"
    )
    for name in (put(tmp_path, "mine.libsvm", 10, 3), "sphere:n=20,d=3"):
        with pytest.raises(UsageError, match=wrong):
            load(name, split=split)


@pytest.mark.parametrize(
    "name, more, message",
    [
        ("cod-rnn", {}, "cod-rnn is not a file, and there is no .* did you mean cod-rna"),
        ("/no/such/file", {}, "no data set called '/no/such/file'"),
        ("qqqqqq", {}, "no data set called 'qqqqqq'; `rfx datasets` lists them"),
        ("sphere:n=20", {"test": "/no/such/file"}, "no data set"),
        ("sphere:n=20,n_test=1", {"split": "0.99"}, "21 rows can't be split into"),
        ("cpu", {"split": "wu2016"}, "cpu has no split 'wu2016'; it has yen2014, 80/20"),
        ("cpu:n=3", {}, "without settings"),
    ],
)
def test_names_and_splits_that_are_nothing(name, more, message):
    with pytest.raises((DataError, UsageError), match=message):
        load(name, **more)


def test_labels_are_chosen_and_renamed(tmp_path):
    put(tmp_path, "mnist", 50, 780, label=lambda i: i % 10)
    put(tmp_path, "mnist.t", 20, 778, label=lambda i: i % 10)
    data = load("mnist-8vs6", n_train=10, n_test=4)
    assert data.y_train.tolist() == [-1, 1] * 5 and data.X_train.shape == (10, 780)
    assert (numbers(data.X_train) % 10).tolist() == [7, 9] * 5


def test_fewer_rows_on_request(cod_rna):
    data, other = (load("cod-rna", n_train=7, n_test=3, seed=seed) for seed in (0, 1))
    assert (data.X_train.shape, len(data.y_train), data.X_test.shape) == ((7, 8), 7, (3, 8))
    assert numbers(data.X_train).tolist() != numbers(other.X_train).tolist()
    with pytest.raises(UsageError, match="can't draw 31 rows from 30"):
        load("cod-rna", n_train=31)


def test_a_file_is_not_split_unless_asked(tmp_path):
    path = put(tmp_path, "mine.libsvm", 10, 3)
    data = load(path)
    assert (data.name, data.split, data.task) == ("mine.libsvm", "all", None)
    assert (
        data.X_train.shape == (10, 3)
        and data.X_test is None
        and data.y_test is None
        and data.info is None
    )
    assert load(str(path), split="80/20").X_test.shape == (2, 3)
    with pytest.raises(UsageError, match="has no split 'yen2014'; it has 80/20"):
        load(path, split="yen2014")
    with pytest.raises(UsageError, match="no test rows to draw 3 from"):
        load(path, n_test=3)


def test_another_file_or_set_to_test_on(tmp_path):
    path, narrow, wide = (
        put(tmp_path, name, 10, d) for name, d in (("train", 3), ("test", 2), ("wide", 5))
    )
    assert load(path, test=narrow, n_test=4).X_test.shape == (4, 3)
    with pytest.raises(DataError, match="has columns beyond the 3 that the model was trained on"):
        load(path, test=wide, strict=True)
    with pytest.warns(
        RfxWarning,
        match=r"wide .* 3 .*\(2 of them\)",
    ):
        assert load(path, test=wide).X_test.shape == (10, 3)
    assert load("sphere:n=20,d=3", test=path).X_test.shape == (10, 3)
    assert load(path, test="sphere:n_test=7,d=3").X_test.shape == (7, 3)
    put(tmp_path, "heart_scale", 20, 13)
    with pytest.raises(DataError, match="heart_scale has columns beyond the 3 "):
        load(path, test="heart_scale", strict=True)
    zero = tmp_path / "zero"
    zero.write_text("1 0:1\n")
    assert load(zero, test=zero, zero_based=True).X_test.shape == (1, 1)


# -------------------------------------------- rows that are kept apart: whole groups, later rows

SIZES = [40, 25, 11, 11, 9, 7, 7, 5, 5, 4, 3, 3, 2, 1, 1]


@pytest.fixture
def group():
    """The group of each of 134 rows; there are SIZES[k] rows of group k."""
    return np.random.default_rng(4).permutation(np.repeat(np.arange(len(SIZES)), SIZES))


def groups_of(group, rows):
    return set(group[rows].tolist())


def check_sides(group, parts):
    for kept, out in parts:
        assert len(kept) and len(out)
        assert sorted([*kept, *out]) == list(range(len(group)))
        assert not groups_of(group, kept) & groups_of(group, out)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("number", [2, 3, 5, 15])
def test_each_group_is_held_out_once_as_by_group_k_fold(number, seed, group):
    parts = SplitConstraint("groups", group).parts(number, seed)
    check_sides(group, parts)
    held = [groups_of(group, out) for _, out in parts]
    theirs = [groups_of(group, out) for _, out in GroupKFold(number).split(group, groups=group)]
    assert sorted(sum(map(sorted, held), [])) == sorted(sum(map(sorted, theirs), []))
    sizes = sorted(len(out) for _, out in parts)
    assert sizes == sorted(sum(SIZES[number] for number in groups) for groups in theirs)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_share_of_the_rows_in_whole_groups(share, group):
    found = [SplitConstraint("groups", group).held_out(share, seed) for seed in range(5)]
    check_sides(group, found)
    assert len({tuple(out) for _, out in found}) > 1
    many = SplitConstraint("groups", np.arange(1000) // 4)
    _, out = many.held_out(share, 0)
    assert len(out) == pytest.approx(1000 * share, abs=8)


def test_labels_have_their_share_of_every_part():
    group = np.arange(900) // 9
    y = (group % 10 == 0).astype(float)
    for kept, out in SplitConstraint("groups", group).parts(5, 1, y):
        assert y[out].mean() == y[kept].mean() == pytest.approx(0.1)
    kept, out = SplitConstraint("groups", group).held_out(0.2, 1, y)
    assert y[out].mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("number", [2, 4, 10])
def test_windows_are_those_of_time_series_split(number, rng):
    times = rng.permutation(np.arange(97.0))
    order = np.argsort(times)
    windows = SplitConstraint("time", times).parts(number, 0)
    theirs = TimeSeriesSplit(number).split(times)
    for (kept, out), (first, second) in zip(windows[::-1], theirs, strict=True):
        assert sorted(order[first]) == kept.tolist() and sorted(order[second]) == out.tolist()


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_one_time_stay_on_one_side(seed):
    times = np.random.default_rng(seed).integers(0, 9, 60).astype(float)
    constraint = SplitConstraint("time", times)
    found = [constraint.held_out(share, seed) for share in (0.01, 0.2, 0.5)]
    for number in range(1, constraint.most + 1):
        windows = constraint.parts(number, seed)
        assert len(windows) == number
        found += windows
    for kept, out in found:
        assert len(kept) and len(out) and times[kept].max() < times[out].min()


# ---------------------------------------------------------------------- columns of tables


def write(path, columns):
    rows = zip(*columns.values())
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
    return path


def table(tmp_path, **more):
    count = len(next(iter(more.values())))
    return write(
        tmp_path / "t.csv", more | {"a": range(1, 2 * count, 2), "y": [3.5, 4.25] * (count // 2)}
    )


def test_the_column_is_no_input_and_spelling_tells_groups_apart(tmp_path):
    split = data.load(table(tmp_path, who=["007", "7", "07", "7"]), reading=Reading(groups="who"))
    assert split.X_train.shape == (4, 1) and split.schema.ignored == ("who",)
    assert len(set(split.constraint.values[:3].tolist())) == 3
    assert split.constraint.values[1] == split.constraint.values[3]


@pytest.mark.parametrize(
    "cells, order",
    [
        (["2020-01-31", "2019-12-01", "2020-02-01", "2020-01-31"], [1, 0, 2, 1]),
        (["31.01.2020", "01.12.2019", "01.02.2020", "31.01.2020"], [1, 0, 2, 1]),
        (["10", "9", "11", "10"], [1, 0, 2, 1]),
        (["1234.50 %", "9 %", "2000 %", "1234.50 %"], [1, 0, 2, 1]),
        (["2020-01-31 10:00", "2020-01-31 09:30", "2020-02-01", "2020-01-31 10:00"], [1, 0, 2, 1]),
    ],
)
def test_times_are_numbers_or_dates(tmp_path, cells, order):
    split = data.load(table(tmp_path, when=cells), reading=Reading(time="when"))
    assert np.unique(split.constraint.values, return_inverse=True)[1].tolist() == order
    assert split.schema.ignored == ("when",)


@pytest.mark.parametrize("option", ["groups", "time"])
def test_80_20_keeps_rows_apart(tmp_path, option):
    who = np.random.default_rng(0).permutation(np.arange(200) // 5)
    path = write(tmp_path / "t.csv", {"who": who, "a": who + 0.5, "y": who / 4})
    split = data.load(path, split="80/20", reading=Reading(**{option: "who"}))
    train, test = split.X_train[:, 0], split.X_test[:, 0]
    assert len(test) == 40 and not set(train) & set(test)
    assert np.unique(split.constraint.values).size == np.unique(train).size == 32
    if option == "time":
        assert train.max() < test.min()


@pytest.mark.parametrize(
    "columns, reading, error, message",
    [
        ({"who": ["a", "b", "", "a"]}, {"groups": "who"}, DataError, "line 4: column 'who' has no"),
        (
            {"who": [1, "", 2, 3]},
            {"time": "who"},
            DataError,
            "line 3: .* --time needs a value in each",
        ),
        ({"who": list("abca")}, {"time": "who"}, DataError, "not a date; --time needs numbers or"),
        (
            {"who": list("abca")},
            {"groups": "whom"},
            UsageError,
            "--groups is 'whom', which is not",
        ),
        (
            {"who": list("abca")},
            {"groups": "y"},
            UsageError,
            "column 'y' holds the targets, so --ignore, --dates, --groups",
        ),
        ({"who": list("abca")}, {"dates": ("y",)}, UsageError, "column 'y' holds the targets"),
        (
            {"who": list("abca")},
            {"groups": "who", "categorical": ("who",)},
            UsageError,
            "--categorical and --groups both name",
        ),
        (
            {"who": list("abca")},
            {"ignore": ("who",), "dates": ("who",)},
            UsageError,
            "--ignore and --dates both name column 'who'",
        ),
    ],
)
def test_what_is_refused(tmp_path, columns, reading, error, message):
    with pytest.raises(error, match=message):
        data.load(table(tmp_path, **columns), reading=Reading(target="y", **reading))


@pytest.mark.parametrize("name", ["t.libsvm", "sphere:n=10"])
def test_sets_without_such_columns(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.libsvm").write_text("1 1:2\n2 1:3\n")
    with pytest.raises(UsageError, match="--groups is for tables such as CSV"):
        data.load(name, reading=Reading(groups="who"))


# ---------------------------------------------------------------------- means of the targets


def encoded(codes, y, constraint):
    """(Schema, X, messages) of a column with 50 categories."""
    words = Words(codes.astype(np.int32), [f"c{number:02}" for number in range(50)])
    schema = Schema([Input("c", 0, sorted(words.values))], True, 2, ("y", 1))
    rows = Table("t", ["c", "y"], True, [words, y])
    schema, X, messages = targetmeans.fitted(schema, rows, y[:, None], 0, constraint=constraint)
    return schema, X[:, 0], messages


@pytest.mark.parametrize("by", ["groups", "time"])
def test_means_of_targets_are_those_of_other_groups_or_earlier_rows(by):
    nested = np.random.default_rng(1).permutation(np.arange(300) // 6)
    codes, generator = np.arange(300) % 50, np.random.default_rng(2)
    codes[codes == 49] = 48 + (nested[codes == 49] // 10 == 0)  # one category of the first rows
    y = codes + generator.normal(size=300)
    constraint = SplitConstraint(by, nested // 10)
    schema, X, (note,) = encoded(codes, y, constraint)
    assert "1 of 50 categories of column 'c' occur in only one" in note
    assert "--ignore c leaves the column out" in note
    part, means = constraint.numbered(5, 0), schema.columns[0].means.values
    for number in range(5):
        others = part < number if by == "time" else part != number
        own = (part == number) & (codes < 49)
        if not others.any():
            np.testing.assert_allclose(X[own], y.mean())
            continue
        want = targetmeans.smoothed(codes[others], 50, y[others, None], y.mean(keepdims=True))
        np.testing.assert_allclose(X[own], want[codes[own], 0])
    np.testing.assert_allclose(X[codes == 49], y.mean())
    np.testing.assert_allclose(means[49], y.mean())
    assert means[48][0] > y.mean()
