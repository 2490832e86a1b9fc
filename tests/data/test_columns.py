"""The types of table columns: row numbers, spellings of one value, numbers and dates as people
write them, declared categories, many categories. The message about the column types.
"""

import json
import logging
import re
import shlex
from dataclasses import dataclass, replace
from types import SimpleNamespace

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
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table
from rfx.data.tabular.targetmeans import MOST_COLUMNS
from rfx.errors import DataError, RfxWarning
from rfx.options import Names

pytestmark = pytest.mark.usefixtures("own_folders")
PLACE = np.arange(60)


@pytest.fixture(scope="module")
def data():
    """An input a of 60 numbers, and targets y that are its sign."""
    a = np.round(np.random.default_rng(0).normal(size=60), 2)
    return SimpleNamespace(a=a, y=np.where(a > 0, "yes", "no"))


@pytest.fixture
def saved(data):
    """A function that makes a CSV or Parquet file of columns and, unless there is a `y` among them,
    of an input a and targets.
    """

    def save(path, **columns):
        more = {} if "y" in columns else vars(data)
        frame = pandas.DataFrame(columns | more)
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            pytest.importorskip("pyarrow")
            frame.to_parquet(path)
        return path

    return save


def schema_of(path, **reading):
    return load(path, reading=Reading(**reading)).schema


def inputs(path, schema):
    """X of rows without targets, read by the schema of a model."""
    return other_rows(path, schema, schema.width, targets="ignored")[0]


def some(*words):
    """A column of 60 cells that repeats these."""
    return np.array(words)[PLACE % len(words)]


# ---------------------------------------------------------------------- what is said of columns

ZIPS, DECIMALS = some("00501", "10001", "94105", "60601"), some(0.5, -1.25, 2.0)
MONTHS = [f"{1 + place % 12:02d}" for place in PLACE]


# Columns, options, names of the inputs besides a, what is said, and what is not.
@pytest.mark.parametrize(
    "columns, reading, titles, said, unsaid",
    [
        ({"n": range(1, 61)}, {}, ["n"], "looks like a row number; --ignore n ignores it", None),
        ({"id": range(100, 160)}, {}, ["id"], "looks like a row number", None),
        (
            {"Customer ID": np.random.default_rng(0).permutation(60) * 1000},
            {},
            ["Customer ID"],
            "number; --ignore 'Customer ID' ignores it",
            None,
        ),
        ({"n": range(60)}, {"ignore": ("n",)}, [], None, "row number"),
        ({"id": DECIMALS}, {}, ["id"], None, "row number"),
        ({"row": PLACE % 7}, {}, ["row"], None, "row number"),
        (
            {"x": np.sort(np.random.default_rng(0).integers(0, 9999, 60))},
            {},
            ["x"],
            None,
            "row number",
        ),
        (
            {"zip": ZIPS, "month": MONTHS},
            {},
            ["zip", "month"],
            "t.csv: read as numbers, without leading zeros: column 'zip' (00501), "
            "column 'month' (01); --categorical zip,month reads them as codes",
            None,
        ),
        (
            {"zip": ZIPS, "month": MONTHS},
            {"categorical": ("zip",)},
            ["zip=00501", "zip=10001", "zip=60601", "zip=94105", "month"],
            "leading zeros: column 'month' (01); --categorical zip,month reads it as codes",
            None,
        ),
        (
            {"zip": ZIPS, "month": MONTHS},
            {"categorical": ("zip",), "ignore": ("month",)},
            ["zip=00501", "zip=10001", "zip=60601", "zip=94105"],
            None,
            "leading zeros",
        ),
        (
            {"city": some("Paris", "paris", "Rome")},
            {},
            ["city=Paris", "city=Rome", "city=paris"],
            "similar categories, read as different: column 'city' ('Paris' and 'paris')",
            "similar labels",
        ),
        (
            {"a": DECIMALS, "y": some("Yes", "No", "yes")},
            {},
            [],
            "similar labels, read as different: column 'y' ('Yes' and 'yes')",
            None,
        ),
        ({"a": DECIMALS, "y": some("1.1", "1.10")}, {}, [], None, "similar labels"),
        (
            {"flag": some(True, False), "b": DECIMALS},
            {},
            ["flag=False", "flag=True", "b"],
            None,
            "read as numbers",
        ),
        (
            {"code": some("007", "7", "60601")},
            {"categorical": ("code",)},
            ["code=007", "code=60601", "code=7"],
            None,
            "leading zeros",
        ),
    ],
)
def test_what_columns_are_and_what_is_said(
    columns, reading, titles, said, unsaid, tmp_path, caplog, saved
):
    path = saved(tmp_path / "t.csv", **columns)
    schema = schema_of(path, **reading)
    assert schema.titles() == [*titles, "a"]
    assert caplog.text.count(said or "t.csv") >= 1
    assert unsaid is None or unsaid not in caplog.text
    assert CsvSource(path, Reading(**reading), chunk=200).schema == schema
    assert len(inputs(path, schema)) == 60


def test_the_target_is_guessed_and_never_a_row_number(tmp_path, caplog, data, saved):
    path = saved(tmp_path / "t.csv", a=data.a, y=data.y, id=range(60))
    with pytest.raises(DataError, match="column 'id' of .*name the target column with --target"):
        load(path)
    assert schema_of(path, target="y", ignore=("id",)).titles() == ["a"]
    path.write_text("a,y,\n" + "".join(f"{a},{y},\n" for a, y in zip(data.a, data.y)))
    caplog.clear()
    assert schema_of(path).target == ("y", 1)
    assert "column 3 of" in caplog.text and "ignored: no name and no value" in caplog.text


# ---------------------------------------------------------------------- numbers of rows


def test_the_index_of_a_parquet_file_is_left_out_and_is_never_the_target(tmp_path, caplog, data):
    frame = pandas.DataFrame({"a": data.a, "y": data.y}).sample(frac=1, random_state=0)
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "t.parquet")
    schema = schema_of(tmp_path / "t.parquet")
    assert schema.titles() == ["a"] and schema.target[0] == "y"
    assert "is ignored: the index of the saved data frame" in caplog.text
    frame.rename_axis("when").to_parquet(tmp_path / "named.parquet")
    assert schema_of(tmp_path / "named.parquet").titles() == ["a"]
    np.testing.assert_array_equal(inputs(tmp_path / "named.parquet", schema)[:, 0], frame["a"])


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
@pytest.mark.parametrize(
    "order", [PLACE, np.random.default_rng(0).permutation(60)], ids=["sorted", "shuffled"]
)
def test_a_first_column_without_a_name_that_numbers_the_rows_is_left_out(
    name, order, tmp_path, caplog, data, saved
):
    path = tmp_path / "t.csv"
    path.write_text(f"{name},a,y\n" + "".join(f"{i},{data.a[i]},{data.y[i]}\n" for i in order))
    schema = schema_of(path)
    assert schema.titles() == ["a"] and caplog.text.count(" is ignored: no name, ") == 1
    plain = saved(tmp_path / "plain.csv", a=data.a[order], y=data.y[order])
    np.testing.assert_array_equal(inputs(path, schema), inputs(plain, schema))
    # a model of the file without row numbers reads the file that has them
    np.testing.assert_array_equal(inputs(path, schema_of(plain)), inputs(plain, schema))


@pytest.mark.parametrize(
    "numbers, titles",
    [
        (np.random.default_rng(0).permutation(60), ["a"]),
        (PLACE % 30, ["column 1", "a"]),
        (np.random.default_rng(0).normal(size=60), ["column 1", "a"]),
    ],
)
def test_what_parts_have_seen_of_row_numbers_is_merged(numbers, titles, data):
    columns = [numbers.astype(float), data.a, data.a]
    table = Table("t", ["column 1", "a", "y"], True, columns, own_target=2)
    parts = [
        Learner(Reading(), bounded=True).update(table.rows(rows))
        for rows in (slice(0, 25), slice(25, 60))
    ]
    parts[0].merge(parts[1])
    assert parts[0].finish().titles() == titles


def test_what_parts_have_seen_of_zeros_and_dots_is_merged(caplog, data):
    table = Table("t", ["zip", "a", "y"], True, [data.a, data.a, data.a], own_target=2)
    first, *others = [
        Learner(Reading(), bounded=True).update(replace(table, padded=zeros, dotted=dots))
        for zeros, dots in (
            ({}, {0: "1.100", 1: "1.200"}),
            ({0: "012"}, {0: ""}),
            ({0: "013", 1: "01"}, {1: "1.300"}),
        )
    ]
    for other in others:
        first.merge(other)
    first.finish()
    assert "without leading zeros: column 'zip' (012), column 'a' (01)" in caplog.text
    message = "although each dot precedes three digits: column 'a' (1.200); remove dots that mark"
    assert message in caplog.text


# ------------------------------------------------------------------- one value in several spellings


@pytest.mark.parametrize(
    "cells", [("TRUE", "FALSE"), ("true", "false"), ("1", "0"), ("1.0", "0.0")]
)
def test_truth_values_are_one_value_in_any_case_and_file(cells, tmp_path, data, saved):
    flags = data.a > 0.2
    schema = schema_of(saved(tmp_path / "t.csv", flag=flags))
    want = np.column_stack([~flags, flags, data.a])
    other = saved(tmp_path / "o.csv", flag=np.where(flags, *cells))
    np.testing.assert_array_equal(inputs(other, schema), want)
    np.testing.assert_array_equal(inputs(saved(tmp_path / "t.parquet", flag=flags), schema), want)


# ---------------------------------------------------------------------- numbers written for people

WRITTEN = [
    (["6%", "12.5 %", "-1%"], [6, 12.5, -1]),
    (["1,234.50", "7", "-5"], [1234.5, 7, -5]),
    (["1.234,50", "7", "12.345.678"], [1234.5, 7, 12345678]),
    (["5", "1,000,000", "2.25"], [5, 1e6, 2.25]),
    (["1,234,567", "12", "(1,000)"], [1234567, 12, -1000]),
    (["1 234", "12", "5 000 000"], [1234, 12, 5e6]),
    (["1\u202f234,5", "12", "5\u00a0000"], [1234.5, 12, 5000]),
    (["1'234.5", "12", "5\u2019000"], [1234.5, 12, 5000]),
    (["0,5", "1,25", "7"], [0.5, 1.25, 7]),
    (["\u22121,5", "1,25", "7"], [-1.5, 1.25, 7]),
]


@pytest.mark.parametrize("words, numbers", WRITTEN)
def test_numbers_with_signs_and_separators_are_read_and_remembered(
    words, numbers, tmp_path, caplog, saved
):
    path = saved(tmp_path / "t.csv", amount=words * 20)
    split = load(path)
    assert caplog.text.count("read as numbers: column 'amount' (") == 1
    np.testing.assert_array_equal(split.X_train[:3, 0], numbers)
    np.testing.assert_array_equal(CsvSource(path, chunk=300).read(3)[0][:3, 0], numbers)
    other = saved(tmp_path / "t.parquet", amount=words * 20)
    np.testing.assert_array_equal(inputs(other, split.schema), split.X_train)
    odd = saved(tmp_path / "odd.csv", amount=["five"], a=[1.0], y=["no"])
    with pytest.raises(DataError, match="line 2: .* not a number in the format of the training"):
        inputs(odd, split.schema)


@pytest.mark.parametrize("separator, first", [(",", 1234), (";", 1.234), ("\t", None)])
def test_a_comma_before_three_digits_is_told_by_what_separates_the_cells(
    separator, first, tmp_path, caplog, data
):
    frame = pandas.DataFrame({"x": some("1,234", "56,789", "7,000"), "a": data.a, "y": data.y})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=separator)
    if first is None:
        with pytest.raises(DataError, match="has '1,234', which may be 1234 or 1.234; "):
            load(tmp_path / "t.csv")
        return
    assert load(tmp_path / "t.csv").X_train[0, 0] == first
    assert f"column 'x' ('1,234' is {first})" in caplog.text


def test_a_percentage_needs_its_sign_when_predicting(tmp_path, saved):
    schema = schema_of(saved(tmp_path / "t.csv", rate=some("6%", "7%", "8%")))
    for name in ("new.csv", "new.parquet"):
        path = saved(tmp_path / name, rate=[0.06], a=[1.0], y=["no"])
        with pytest.raises(DataError, match="'rate' has '0.06', which is not a number in the form"):
            inputs(path, schema)


def test_targets_with_thousands_separators_are_a_regression(tmp_path, caplog, data, saved):
    split = load(saved(tmp_path / "t.csv", a=data.a, y=[f"{1000.5 * a:,.2f}" for a in data.a]))
    assert "the targets are read as numbers: '" in caplog.text
    np.testing.assert_allclose(split.y_train, 1000.5 * data.a, atol=0.01)
    assert split.task == "regression"


# ---------------------------------------------------------------------- dates

DATES = [
    (["2020-01-31", "2020-02-01", "1969-12-31"], [18292, 18293, -1]),
    (["2020-01-31T12:00:00", "2020-02-01 00:00", "1970-01-01 06:00:00.0"], [18292.5, 18293, 0.25]),
    (
        ["2020-01-31T12:00:00+02:00", "2020-02-01T00:00:00Z", "1970-01-01"],
        [18292 + 10 / 24, 18293, 0],
    ),
    (["1/31/2020", "2/1/2020", "12/31/1969"], [18292, 18293, -1]),
    (["31/01/2020", "01/02/2020", "31/12/1969"], [18292, 18293, -1]),
    (["31.01.2020", "1.2.2020", "1.1.1970"], [18292, 18293, 0]),
    (["Jan 31, 2020", "February 1, 2020", "Dec 31, 1969"], [18292, 18293, -1]),
    (["31-Jan-2020", "1 Feb 2020", "31 Dec 1969"], [18292, 18293, -1]),
    (["1/31/2020 1:30 PM", "2/1/2020 12:00 AM", "1/13/1970 12:00 PM"], [18292.5625, 18293, 12.5]),
    (["2020-01", "2020-02", "1970-01"], [18262, 18293, 0]),
    (["2019/10", "2019/2", "1970/01"], [18170, 17928, 0]),
    (["Jan-2019", "Feb-2019", "Jan 1970"], [17897, 17928, 0]),
]


@pytest.mark.parametrize("words, days", DATES)
def test_dates_become_numbers(words, days, tmp_path, caplog, saved):
    path = saved(tmp_path / "t.csv", **{"Order Date": words * 20})
    split = load(path)
    said = "read as dates: column 'Order Date'; --categorical 'Order Date' reads it"
    assert caplog.text.count(said) == 1
    assert load(path, reading=Reading(dates=("Order Date",))).schema == split.schema
    assert caplog.text.count(said) == 1
    parts = ("year", "month", "weekday", "days")
    assert split.schema.titles() == [*(f"Order Date.{part}" for part in parts), "a"]
    np.testing.assert_allclose(split.X_train[:3, 3], days)
    calendar = np.floor(days).astype("datetime64[D]").astype(object)
    expected = [[day.year, day.month, day.weekday()] for day in calendar]
    np.testing.assert_array_equal(split.X_train[:3, :3], expected)
    odd = saved(tmp_path / "odd.csv", **{"Order Date": ["soon"]}, a=[1.0], y=["no"])
    with pytest.raises(DataError, match="'Order Date' has 'soon', which is not a date"):
        inputs(odd, split.schema)


@pytest.mark.parametrize(
    "cells, days",
    [
        (some(20200131, 20200201, 19700101), [18292, 18293, 0]),
        (some("2020-01-31", "", "2020-02-02"), [18292, 18293, 18294]),
    ],
)
def test_numbers_and_gaps_are_dates_where_that_is_said(cells, days, tmp_path, saved):
    path = saved(tmp_path / "t.csv", d=cells)
    X = load(path, reading=Reading(dates=("d",), missing="mean")).X_train
    np.testing.assert_array_equal(X[:3, 3], days)


def test_the_order_of_day_and_month_is_remembered(tmp_path, saved):
    schema = schema_of(saved(tmp_path / "t.csv", d=some("1/31/2020", "2/1/2020", "3/2/2020")))
    new = saved(tmp_path / "new.csv", d=["3/2/2020"], a=[1.0], y=["no"])
    assert inputs(new, schema)[0, :2].tolist() == [2020, 3]
    saved(new, d=["31/2/2020"], a=[1.0], y=["no"])
    with pytest.raises(DataError, match="line 2: column 'd' has '31/2/2020', which is not a date"):
        inputs(new, schema)


@pytest.mark.parametrize(
    "zone, first", [(None, 18292.5), ("UTC", 18292.5), ("Europe/Paris", 18292 + 11 / 24)]
)
def test_dates_and_times_of_a_parquet_file_are_dates(zone, first, tmp_path, saved):
    days = pandas.date_range("2020-01-31 12:00", periods=60, freq="D").tz_localize(zone)
    found = load(saved(tmp_path / "t.parquet", d=days)).X_train[:2, :4]
    np.testing.assert_allclose(found, [[2020, 1, 4, first], [2020, 2, 5, first + 1]])


# ---------------------------------------------------------------------- refusals and advice


def mixed(word, count, *numbers, n_rows=60):
    """Cells of a column of numbers, of which some are a word."""
    return [word] * count + [numbers[place % len(numbers)] for place in range(n_rows - count)]


@pytest.mark.parametrize("word, count", [("more", 15), ("5+", 9), ("Many", 25)])
def test_few_numbers_and_a_frequent_word_are_categories(word, count, tmp_path, caplog, saved):
    path = saved(tmp_path / "t.csv", x=mixed(word, count, "1", "2", "3"))
    assert set(load(path).schema.columns[0].categories) == {"1", "2", "3", word}
    assert f"read as categories, because a frequent value is a word: column 'x' ({word!r})" in (
        caplog.text
    )


def test_columns_without_a_value_are_ignored_unless_missing_cells_are_refused(
    tmp_path, caplog, saved
):
    path = saved(tmp_path / "t.csv", x=[None] * 60, z=[None] * 60)
    assert load(path).schema.titles() == ["a"]
    assert "column 'x', column 'z' of" in caplog.text
    assert "are ignored: no value in any training row" in caplog.text
    with pytest.raises(DataError, match="column 'x' of .* has no value in any training row"):
        load(path, reading=Reading(missing="refuse"))


NO_DATES = {"dates": ("x",)}
REFUSED = [
    (some("5%", "6", "7%"), {}, "has numbers with and without %, such as '6'"),
    (some("$5", "€6", "$7"), {}, "has amounts of money, such as '$5'; write plain numbers"),
    (some("7 €", "6 €", "5"), {}, "has amounts of money, such as '7 €'; write plain numbers"),
    (some("1,234.5", "1.234,5", "2"), {}, "disagree, such as '1,234.5' and '1.234,5'"),
    (some("1,5", "1.5", "2"), {}, "has numbers whose separators disagree, such as '1,5' and '1.5'"),
    (some("5%", "6%", "none"), {}, "has 'none', which is not a number, unlike most of its cells"),
    (
        some("1/2/2020", "3/4/2020"),
        NO_DATES,
        "other dates with an ambiguous order of day and month",
    ),
    (some("31/1/2020", "1/31/2020"), NO_DATES, "dates with the day first and with the month first"),
    (some("1/2/20", "3/4/20", "5/31/20"), NO_DATES, "has '1/2/20', which is not a date"),
    (some("2020-01-01", "2020-01-02", "soon"), NO_DATES, "has 'soon', which is not a date"),
    (some(1.5, 2.5, 3.5), NO_DATES, "has '1.5', which is not a date"),
    *[
        (
            [word if place < share * 60 else f"{place / 10}" for place in PLACE],
            {"missing": "median"},
            f"t.csv, line 2: column 'x' has {word!r}, which is not a number",
        )
        for word, share in ((".", 0.4), ("-", 0.6), ("<LOD", 0.9), (".", 0.95))
    ],
    *[
        (mixed(word, count, *numbers), {}, f"has {word!r}, which is not a number")
        for word, count, numbers in (
            ("more", 4, "123"),  # rare
            ("more", 15, map(str, range(30))),  # among many numbers
            ("more", 15, ("1.5", "2", "3")),
            ("unknown", 15, "123"),
            ("-", 15, "123"),
        )
    ],
]


@pytest.mark.parametrize("cells, reading, message", REFUSED)
def test_a_column_that_may_mean_several_things_is_refused_by_name(
    cells, reading, message, tmp_path, saved
):
    with pytest.raises(DataError, match=re.escape(message)) as error:
        load(saved(tmp_path / "t.csv", x=cells), reading=Reading(**reading))
    assert "column 'x'" in str(error.value)
    assert "ignore it with --ignore x" in str(error.value)


def test_all_columns_that_can_not_be_used_are_named_at_once_with_what_to_type(tmp_path, saved):
    names = [f"it's no. {place}" for place in PLACE]
    odd = {
        "Row ID": names,
        "Price, net": some("$5", "€5", "$6"),
        "-when": some("2020-01-01", "soon", "2020-01-02"),
        "it's": names,
        '$ "x"': names,
    }
    path = saved(tmp_path / "t.csv", **odd)
    for ignored in ((), ("Row ID",)):  # what was omitted before stays omitted
        with pytest.raises(DataError) as error:
            load(path, reading=Reading(ignore=ignored))
        flag, value = shlex.split(str(error.value).partition("ignore them with ")[2])
        assert flag == "--ignore"
        assert set(Names.values(value)) == odd.keys()
    assert schema_of(path, ignore=tuple(odd)).titles() == ["a"]


# ---------------------------------------------------------------------- declared categories


def test_numbers_are_categories_where_that_is_said(tmp_path, data, saved):
    path = saved(tmp_path / "n.parquet", n=some(1, 2, 3), x=some(0.5, 1, 2))
    titles = ["n=1", "n=2", "n=3", "x=0.5", "x=1", "x=2", "a"]
    assert schema_of(path, categorical=("n", "x")).titles() == titles
    np.savez(tmp_path / "n.npz", X=np.column_stack([some(1, 2, 3), data.a]), y=data.y)
    assert schema_of(tmp_path / "n.npz", categorical=("1",)).width == 4


# -------------------------- many categories: means of the targets, learnt on training rows alone

N, MANY = 600, 90


@dataclass(frozen=True)
class Towns:
    """The town of each row, the effect of each town on targets, and noisy targets of each task."""

    codes: np.ndarray
    effect: np.ndarray
    targets: dict[str, np.ndarray]


@pytest.fixture(scope="module")
def towns():
    rng = np.random.default_rng(0)
    codes, effect = rng.integers(0, MANY, N), rng.normal(size=MANY)
    noisy = lambda: effect[codes] + rng.normal(size=N)
    targets = {
        "regression": noisy(),
        "binary": np.where(noisy() > 0, 5.0, -1.0),
        "multiclass": np.digitize(noisy(), [-0.5, 0.5]).astype(float),
    }
    return Towns(codes, effect, targets)


def frame(towns, **more):
    """Towns, with many categories, and a number and a class that depend on them."""
    a = np.round(np.random.default_rng(1).normal(size=N), 3)
    y = np.where(towns.effect[towns.codes] + a > 0, "yes", "no")
    return pandas.DataFrame({"town": [f"t{code}" for code in towns.codes], "a": a, "y": y} | more)


@pytest.fixture
def file(tmp_path, towns):
    path = tmp_path / "t.csv"
    frame(towns).to_csv(path, index=False)
    return path


# ---------------------------------------------------------------------- the means


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_each_part_has_the_means_of_the_other_rows(task, towns):
    """The means are those of scikit-learn."""
    y, codes = towns.targets[task], towns.codes[:, None]
    part = targetmeans.parts(y, 3)
    found = targetmeans.cross_fitted(towns.codes, MANY, targetmeans.outputs(y, task), part)
    kind = {"regression": "continuous"}.get(task, task)
    for number in range(targetmeans.PARTS):
        kept = part != number
        theirs = TargetEncoder(target_type=kind, smooth="auto").fit(codes[kept], y[kept])
        want = theirs.transform(codes[~kept])
        np.testing.assert_allclose(found[~kept], want, rtol=1e-12)


def test_missing_and_constant_targets():
    codes, y = np.array([0, 0, -1, 1]), np.array([1.0, 3.0, 8.0, 4.0])
    means = targetmeans.learn(codes, 3, y[:, None], ())
    assert means.default == [4.0] and means.values[2] == [4.0]
    assert means.of(np.array([-1, 1])).tolist() == [[4.0], [4.0]]
    assert targetmeans.learn(codes, 3, np.ones((4, 1)), ()).values == [[1.0]] * 3


def test_parts_are_equal_and_the_seeds_own(towns):
    for y in towns.targets.values():
        part = targetmeans.parts(y, 0)
        assert np.bincount(part).tolist() == [N // targetmeans.PARTS] * targetmeans.PARTS
        means = [y[part == number].mean() for number in range(targetmeans.PARTS)]
        assert np.ptp(means) < 0.1 * y.std()
        np.testing.assert_array_equal(part, targetmeans.parts(y, 0))
        assert (part != targetmeans.parts(y, 1)).any()
    assert len(targetmeans.parts(np.zeros(1), 0)) == 1


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "count, width", [(MOST_COLUMNS, MOST_COLUMNS + 1), (MOST_COLUMNS + 1, 2), (MANY, 2)]
)
def test_many_categories_are_one_input_and_few_are_their_own(count, width, file, towns):
    frame(towns, town=[f"t{code % count}" for code in towns.codes]).to_csv(file, index=False)
    assert load(file).schema.width == width


@pytest.mark.parametrize("labels", [["0", "1", "2"], ["low", "mid", "top"]])
def test_several_classes_have_a_column_each(labels, file, towns):
    y = np.array(labels)[towns.targets["multiclass"].astype(int)]
    frame(towns, y=y).to_csv(file, index=False)
    split = load(file)
    assert split.schema.titles() == [*(f"town.{label}" for label in labels), "a"]
    np.testing.assert_allclose(split.X_train[:, :3].sum(axis=1), 1, atol=0.3)


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


@pytest.mark.parametrize("task", ["words", "multiclass", "regression"])
def test_a_part_is_learnt_without_the_rows_that_are_held_out(task, file, rng, towns):
    if task != "words":
        frame(towns, y=towns.targets[task]).to_csv(file, index=False)
    split = load(file)
    kept, out = np.arange(0, N, 2), np.arange(1, N, 2)
    X, X_out = split.part(kept, out)
    changed = split.y_train.copy()
    changed[out] = rng.permutation(changed[out])
    again = replace(split, y_train=changed).part(kept, out)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(X_out, again[1])
    Y = targetmeans.outputs(split.y_train, split.task)[kept]
    column = split.schema.columns[0]
    codes = np.array([column.categories.index(f"t{code}") for code in towns.codes])
    means = targetmeans.learn(codes[kept], MANY, Y, ())
    np.testing.assert_array_equal(X_out[:, :-1], means.of(codes[out]))
    assert (X[:, :-1] != means.of(codes[kept])).any()


def test_unknown_and_missing_categories_become_the_mean(file, tmp_path, caplog):
    schema = load(file).schema
    share = float(np.mean(pandas.read_csv(file)["y"] == "yes"))
    (tmp_path / "new.csv").write_text("town,a\nnowhere,1\n,1\nt1,1\n")
    with pytest.warns(RfxWarning, match="mean of the targets: 'nowhere'"):
        X, _ = other_rows(tmp_path / "new.csv", schema, 2, targets="ignored")
    assert X[0, 0] == X[1, 0] == share != X[2, 0]
    with pytest.raises(DataError, match="'nowhere'.* --strict"):
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


def test_missing_words_are_a_category_of_their_own(tmp_path, data, saved):
    """0 and 1 still match False and True."""
    words = np.where(data.y == "yes", some("True", "False"), "")
    schema = schema_of(saved(tmp_path / "t.csv", w=words))
    assert schema.titles() == ["w=False", "w=True", "w=(missing)", "a"]
    (tmp_path / "new.csv").write_text("w,a\n1,0\nFalse,0\n,0\n(missing),0\n")
    found = inputs(tmp_path / "new.csv", schema)[:, :3]
    np.testing.assert_array_equal(found, [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]])


def test_a_category_named_as_that_of_missing_cells_is_the_same(tmp_path, saved):
    schema = schema_of(saved(tmp_path / "t.csv", w=some("(missing)", "x", "")))
    assert schema.titles() == ["w=x", "w=(missing)", "a"]


def test_names_of_rows_are_left_out_and_can_be_kept(file, caplog, towns):
    frame(towns, name=[f"n{i}" for i in range(N)]).to_csv(file, index=False)
    reading = Reading(target="y")
    assert load(file, reading=reading).schema.titles() == ["town", "a"]
    assert caplog.text.count("is ignored") == 1
    assert (
        "600 different words in 600 rows, too many for categories; --categorical name keeps it"
        in (caplog.text)
    )
    kept = load(file, reading=Reading(target="y", categorical=("name",)))
    assert kept.schema.titles() == ["town", "a", "name"]
    # names of rows carry no information on other rows
    assert np.ptp(kept.X_train[:, 2]) < 0.01
    # a stream does the same; files with and without the column can be read
    assert CsvSource(file, reading).schema.ignored == ("name",)


def test_a_schema_of_before_has_columns_of_0_and_1():
    column = {"name": "x", "position": 0, "categories": ["a", "b"], "fill": None, "form": None}
    saved = {"inputs": [column], "named": True, "size": 2, "target": None, "ignored": []}
    saved |= {"labels": None, "target_form": None}
    assert Schema.from_dict(saved).titles() == ["x=a", "x=b"]


def test_converting_and_streaming_make_no_use_of_targets(file, tmp_path, capfd):
    code, out, err = run(capfd, "convert", file, tmp_path / "t.libsvm", "--json")
    assert code == 0 and len(json.loads(out)["columns"]) == MANY + 1
    assert " inputs from " not in err
    assert CsvSource(file).schema.width == MANY + 1


# ---------------------------------------------------------------------- what is said


def test_one_line_says_what_the_columns_became(file, caplog, rng, towns):
    caplog.set_level(logging.WARNING)
    table = frame(
        towns,
        b=rng.normal(size=N),
        name=[f"n{i}" for i in range(N)],
        day=pandas.date_range("2020-01-01", periods=N).astype(str),
        same=3,
        job=np.array(["clerk", "smith"])[towns.codes % 2],
        old=1,
    )
    table.to_csv(file, index=False)
    load(file, reading=Reading(target="y", dates=("day",), ignore=("old",)))
    CsvSource(file, Reading(target="y", dates=("day",), ignore=("old", "town")), chunk=1000)
    assert [text for text in caplog.messages if " inputs from " in text] == [
        f"{file}: 10 inputs from 8 columns: 2 numbers, 1 category (2 values), 1 target-encoded"
        " (90 values), 1 date (4 inputs), 1 constant, 2 ignored",
        f"{file}: 9 inputs from 8 columns: 2 numbers, 1 category (2 values), 1 date (4 inputs),"
        " 1 constant, 3 ignored",
    ]
