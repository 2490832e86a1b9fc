"""Rows that are kept apart: whole groups, later rows, and the table columns that define them."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from rfx import data
from rfx.data.reading import Reading
from rfx.data.tabular import targetmeans
from rfx.data.tabular.apart import Apart
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError, UsageError

RNG = np.random.default_rng(4)
SIZES = [40, 25, 11, 11, 9, 7, 7, 5, 5, 4, 3, 3, 2, 1, 1]
GROUP = RNG.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
TIME = RNG.permutation(np.arange(97.0))


def groups_of(rows):
    return set(GROUP[rows].tolist())


def check_sides(parts):
    for kept, out in parts:
        assert len(kept) and len(out)
        assert sorted([*kept, *out]) == list(range(len(GROUP)))
        assert not groups_of(kept) & groups_of(out)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("number", [2, 3, 5, 15])
def test_each_group_is_held_out_once_as_by_group_k_fold(number, seed):
    parts = Apart("groups", GROUP).parts(number, seed)
    check_sides(parts)
    held = [groups_of(out) for _, out in parts]
    theirs = [groups_of(out) for _, out in GroupKFold(number).split(GROUP, groups=GROUP)]
    assert sorted(sum(map(sorted, held), [])) == sorted(sum(map(sorted, theirs), []))
    sizes = sorted(len(out) for _, out in parts)
    assert sizes == sorted(sum(SIZES[group] for group in groups) for groups in theirs)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_share_of_the_rows_in_whole_groups(share):
    found = [Apart("groups", GROUP).held_out(share, seed) for seed in range(5)]
    check_sides(found)
    assert len({tuple(out) for _, out in found}) > 1
    many = Apart("groups", np.arange(1000) // 4)
    _, out = many.held_out(share, 0)
    assert len(out) == pytest.approx(1000 * share, abs=8)


def test_labels_have_their_share_of_every_part():
    group = np.arange(900) // 9
    y = (group % 10 == 0).astype(float)
    for kept, out in Apart("groups", group).parts(5, 1, y):
        assert y[out].mean() == y[kept].mean() == pytest.approx(0.1)
    kept, out = Apart("groups", group).held_out(0.2, 1, y)
    assert y[out].mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("number", [2, 4, 10])
def test_windows_are_those_of_time_series_split(number):
    order = np.argsort(TIME)
    windows = Apart("time", TIME).parts(number, 0)
    theirs = TimeSeriesSplit(number).split(TIME)
    for (kept, out), (first, second) in zip(windows[::-1], theirs, strict=True):
        assert sorted(order[first]) == kept.tolist() and sorted(order[second]) == out.tolist()


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_one_time_stay_on_one_side(seed):
    times = np.random.default_rng(seed).integers(0, 9, 60).astype(float)
    apart = Apart("time", times)
    found = [apart.held_out(share, seed) for share in (0.01, 0.2, 0.5)]
    for number in range(1, apart.most + 1):
        windows = apart.parts(number, seed)
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
    path = table(tmp_path, who=["007", "7", "07", "7"])
    split = data.load(path, reading=Reading(groups="who"))
    assert split.X_train.shape == (4, 1) and split.schema.ignored == ("who",)
    assert len(set(split.apart.values[:3].tolist())) == 3
    assert split.apart.values[1] == split.apart.values[3]


@pytest.mark.parametrize(
    "cells, order",
    [
        (["2020-01-31", "2019-12-01", "2020-02-01", "2020-01-31"], [1, 0, 2, 1]),
        (["31.01.2020", "01.12.2019", "01.02.2020", "31.01.2020"], [1, 0, 2, 1]),
        (["10", "9", "11", "10"], [1, 0, 2, 1]),
        (["$1234.50", "$9", "$2000", "$1234.50"], [1, 0, 2, 1]),
        (["2020-01-31 10:00", "2020-01-31 09:30", "2020-02-01", "2020-01-31 10:00"], [1, 0, 2, 1]),
    ],
)
def test_times_are_numbers_or_dates(tmp_path, cells, order):
    split = data.load(table(tmp_path, when=cells), reading=Reading(time="when"))
    assert np.unique(split.apart.values, return_inverse=True)[1].tolist() == order
    assert split.schema.ignored == ("when",)


def test_a_column_of_npz_is_found_by_its_name(tmp_path):
    X = np.array([[1.0, 5], [2, 5], [1, 6], [3, 7]])
    np.savez(tmp_path / "t.npz", X=X, y=[1.5, 2, 3, 4], feature_names=["who", "a"])
    split = data.load(tmp_path / "t.npz", reading=Reading(groups="who"))
    assert split.apart.values.tolist() == [0, 1, 0, 2]
    np.testing.assert_array_equal(split.X_train, X[:, 1:])


@pytest.mark.parametrize("option", ["groups", "time"])
def test_80_20_keeps_rows_apart(tmp_path, option):
    who = np.random.default_rng(0).permutation(np.arange(200) // 5)
    path = write(tmp_path / "t.csv", {"who": who, "a": who + 0.5, "y": who / 4})
    split = data.load(path, split="80/20", reading=Reading(**{option: "who"}))
    train, test = split.X_train[:, 0], split.X_test[:, 0]
    assert len(test) == 40 and not set(train) & set(test)
    assert np.unique(split.apart.values).size == np.unique(train).size == 32
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


NESTED = np.random.default_rng(1).permutation(np.arange(300) // 6)


def encoded(codes, y, apart):
    """(Schema, X, messages) of a column with 50 categories."""
    words = Words(codes.astype(np.int32), [f"c{number:02}" for number in range(50)])
    schema = Schema([Input("c", 0, sorted(words.values))], True, 2, ("y", 1))
    rows = Table("t", ["c", "y"], True, [words, y])
    schema, X = targetmeans.fitted(schema, rows, y[:, None], 0, apart=apart)
    return schema, X[:, 0], list(targetmeans.notes(schema, rows, apart))


def test_means_of_nested_categories_are_informative_without_groups():
    _, X, notes = encoded(NESTED, NESTED.astype(float), None)
    assert np.corrcoef(X, NESTED)[0, 1] > 0.9
    assert notes == []


@pytest.mark.parametrize("by", ["groups", "time"])
def test_categories_of_one_group_or_time_say_nothing(by):
    """Each group has its own category: means of other groups would fall as its targets rise."""
    y = NESTED.astype(float)
    schema, X, (note,) = encoded(NESTED, y, Apart(by, NESTED))
    np.testing.assert_allclose(X, y.mean())
    np.testing.assert_allclose(schema.columns[0].means.values, y.mean())
    assert "50 of 50 categories of column 'c' occur in only one" in note
    assert "--ignore c leaves the column out" in note


@pytest.mark.parametrize("by", ["groups", "time"])
def test_means_of_targets_are_those_of_other_groups_or_earlier_rows(by):
    codes, generator = np.arange(300) % 50, np.random.default_rng(2)
    codes[codes == 49] = 48 + (NESTED[codes == 49] // 10 == 0)  # one category of the first rows
    y = codes + generator.normal(size=300)
    apart = Apart(by, NESTED // 10)
    schema, X, (note,) = encoded(codes, y, apart)
    assert "1 of 50 categories of column 'c' occur in only one" in note
    part, means = apart.numbered(5, 0), schema.columns[0].means.values
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
