"""The types of table columns: row numbers, spellings of one value, numbers and dates as people
write them, declared categories.
"""

import logging
import shlex
from dataclasses import replace

import numpy as np
import pytest
from shell import run

from rfx import methods
from rfx.data import load
from rfx.data.reading import Reading, typed
from rfx.data.stream import CsvSource
from rfx.data.tables import other_rows
from rfx.data.tabular import written
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.table import Table
from rfx.errors import UsageError
from rfx.options import Names

FAST = ("--method", "rf", "--n-features", 60, "--gamma", 1)
RNG = np.random.default_rng(0)
A = np.round(RNG.normal(size=60), 2)
Y = np.where(A > 0, "yes", "no")


SAID: list[str] = []


class _Said(logging.Handler):
    """What the command line prints on standard error, one line per log record."""

    def emit(self, record):
        SAID.append(record.getMessage())


@pytest.fixture(autouse=True)
def small(own_folders):
    handler = _Said()
    logging.getLogger("rfx").addHandler(handler)
    yield
    logging.getLogger("rfx").removeHandler(handler)


def saved(path, **columns):
    """A CSV file of columns, quoted where they have to be."""
    frame = pytest.importorskip("pandas").DataFrame(columns)
    frame.to_csv(path, index=False)
    return path


def trained(capfd, path, *more):
    """(training rows, log lines) of a file, with the model next to it."""
    SAID.clear()
    code, _, err = run(
        capfd, "train", *FAST, "--data", path, "--model", path.parent / "m.npz", "--force", *more
    )
    assert code == 0, err
    return methods.load(path.parent / "m.npz"), "\n".join([*SAID, err])


def refused(capfd, path, *more):
    code, out, err = run(capfd, "train", *FAST, "--data", path, *more)
    assert code in (1, 2) and out == "" and "Traceback" not in err
    return [line for line in err.splitlines() if line.startswith("rfx: ")][-1]


def predicted(capfd, path):
    code, out, err = run(capfd, "predict", path.parent / "m.npz", path)
    return out.split() if code == 0 else code, err


# ---------------------------------------------------------------------- numbers of rows


def test_the_index_of_a_parquet_file_is_left_out_and_is_never_the_target(tmp_path, capfd):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": A, "y": Y}).sample(frac=1, random_state=0)
    frame.to_parquet(tmp_path / "t.parquet")
    model, said = trained(capfd, tmp_path / "t.parquet")
    assert model.schema.titles() == ["a"] and model.schema.target[0] == "y"
    assert (
        said.count("'__index_level_0__' of") == 1
        and "is ignored: the index of the saved data frame" in said
    )
    # the same rows with another index, without one, and with an index of another name
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.rename_axis("when").to_parquet(tmp_path / "named.parquet")
    want = predicted(capfd, tmp_path / "t.csv")
    assert want[1] == "" and len(want[0]) == 60
    assert (
        predicted(capfd, tmp_path / "t.parquet")
        == predicted(capfd, tmp_path / "named.parquet")
        == want
    )
    assert load(tmp_path / "named.parquet").schema.titles() == ["a"]


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_first_column_without_a_name_that_numbers_the_rows_is_left_out(
    name, shuffled, tmp_path, capfd
):
    order = RNG.permutation(60) if shuffled else range(60)
    lines = [f"{i},{A[i]},{Y[i]}" for i in order]
    (tmp_path / "t.csv").write_text("\n".join([f"{name},a,y", *lines, ""]))
    model, said = trained(capfd, tmp_path / "t.csv")
    assert model.schema.titles() == ["a"] and said.count(" is ignored: no name, ") == 1
    (tmp_path / "plain.csv").write_text(
        "\n".join(["a,y", *(line.partition(",")[2] for line in lines), ""])
    )
    assert predicted(capfd, tmp_path / "t.csv") == predicted(capfd, tmp_path / "plain.csv")
    assert predicted(capfd, tmp_path / "t.csv")[1] == ""
    # a model of the file without row numbers reads the file that has them
    trained(capfd, tmp_path / "plain.csv")
    assert predicted(capfd, tmp_path / "t.csv") == predicted(capfd, tmp_path / "plain.csv")


@pytest.mark.parametrize(
    "numbers, titles", [(RNG.permutation(60), ["a"]), (np.arange(60) % 30, ["column 1", "a"])]
)
def test_what_parts_have_seen_of_row_numbers_is_merged(numbers, titles):
    table = Table("t", ["column 1", "a", "y"], True, [numbers.astype(float), A, A], own_target=2)
    parts = [
        Learner(Reading(), bounded=True).update(table.rows(rows))
        for rows in (slice(0, 25), slice(25, 60))
    ]
    parts[0].merge(parts[1])
    assert parts[0].finish().titles() == titles


def test_a_column_without_a_name_that_is_no_row_number_is_an_input(tmp_path, caplog):
    lines = [f"{a:.2f},{a},{y}" for a, y in zip(RNG.normal(size=60), Y)]
    (tmp_path / "t.csv").write_text("\n".join([",a,y", *lines, ""]))
    assert (
        load(tmp_path / "t.csv").schema.titles() == ["column 1", "a"]
        and "ignored" not in caplog.text
    )
    (tmp_path / "t.csv").write_text("a,y,\n" + "".join(f"{a},{y},\n" for a, y in zip(A, Y)))
    assert load(tmp_path / "t.csv", reading=Reading(target="y")).schema.titles() == ["a"]
    assert "column 3 of" in caplog.text and "ignored: no name and no value" in caplog.text
    assert load(tmp_path / "t.csv").schema.target == ("y", 1)
    assert "are column 'y', the last that has a name; --target" in caplog.text


@pytest.mark.parametrize(
    "values, name",
    [(range(1, 61), "n"), (range(100, 160), "id"), (RNG.permutation(60) * 1000, "Customer ID")],
)
def test_an_id_is_an_input_with_a_warning(values, name, tmp_path, capfd):
    path = saved(tmp_path / "t.csv", **{name: list(values)}, a=A, y=Y)
    model, said = trained(capfd, path)
    assert model.schema.titles() == [name, "a"]
    line = next(line for line in said.splitlines() if "looks like a row number" in line)
    advice = line.partition("; ")[2].removesuffix(" ignores it")
    assert "looks like a row number" not in trained(capfd, path, *shlex.split(advice))[1]


@pytest.mark.parametrize(
    "values, name",
    [(A, "id"), (np.arange(60) % 7, "row"), (np.sort(RNG.integers(0, 9999, 60)), "x"), (Y, "id")],
)
def test_what_is_no_row_number_brings_no_warning(values, name, tmp_path, capfd):
    assert (
        "row number" not in trained(capfd, saved(tmp_path / "t.csv", **{name: values}, a=A, y=Y))[1]
    )


def test_a_last_column_that_counts_the_rows_is_no_target_unless_it_is_named(tmp_path, capfd):
    path = saved(tmp_path / "t.csv", a=A, y=Y, id=range(60))
    assert "column 'id' of" in refused(
        capfd, path
    ) and "name the target column with --target" in refused(capfd, path)
    assert (
        trained(capfd, path, "--target", "id", "--task", "regression")[0].schema.target[0] == "id"
    )
    assert trained(capfd, path, "--target", "y", "--ignore", "id")[0].schema.titles() == ["a"]


# ------------------------------------------------------------------- one value in several spellings


def test_truth_values_are_one_value_in_any_case_and_file(tmp_path, capfd):
    pytest.importorskip("pyarrow")
    flags = A > 0.2
    path = saved(tmp_path / "t.csv", flag=flags, b=A[::-1], y=np.where(flags, "p", "q"))
    model, _ = trained(capfd, path)
    assert model.schema.titles() == ["flag=False", "flag=True", "b"]
    want = predicted(capfd, path)
    text = path.read_text()
    for number, (true, false) in enumerate(
        [("TRUE", "FALSE"), ("true", "false"), ("1", "0"), ("1.0", "0.0")]
    ):
        other = tmp_path / f"{number}.csv"
        other.write_text(text.replace("True", true).replace("False", false))
        assert predicted(capfd, other) == want and want[1] == ""
    pytest.importorskip("pandas").read_csv(path).to_parquet(tmp_path / "t.parquet")
    assert predicted(capfd, tmp_path / "t.parquet") == want
    # a model of 1 and 0 reads truth values; one of other numbers refuses them
    trained(capfd, tmp_path / "2.csv")
    assert (
        predicted(capfd, tmp_path / "0.csv")
        == predicted(capfd, tmp_path / "t.parquet")
        == predicted(capfd, tmp_path / "2.csv")
    )
    saved(tmp_path / "two.csv", flag=np.where(flags, 2, 0), b=A, y=Y)
    trained(capfd, tmp_path / "two.csv")
    assert (
        "line 2: column 'flag' has 'FALSE', which is not a number"
        in predicted(capfd, tmp_path / "0.csv")[1]
    )


def test_dots_that_may_mark_thousands_are_warned_of_where_semicolons_separate(tmp_path, capfd):
    lines = [f"{1 + i % 9}.{100 + i};{i % 7}.5;{y}\n" for i, y in enumerate(Y)]
    (tmp_path / "t.csv").write_text("a;b;y\n" + "".join(lines))
    said = trained(capfd, tmp_path / "t.csv")[1]
    assert (
        said.count(
            "although each dot precedes three digits: column 'a' (1.100); remove dots that mark"
            " thousands"
        )
        == 1
    )
    assert "each dot" not in trained(capfd, tmp_path / "t.csv", "--ignore", "a")[1]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(lines).replace(";", ","))
    assert "each dot" not in trained(capfd, tmp_path / "t.csv")[1]


def padded(path):
    zips = ["00501", "10001", "94105", "60601"]
    lines = [f"{zips[i % 4]},{1 + i % 12:02d},{a},{y}\n" for i, (a, y) in enumerate(zip(A, Y))]
    path.write_text("zip,month,a,y\n" + "".join(lines))
    return path


ZEROS = "without leading zeros"


def test_codes_with_zeros_in_front_that_are_read_as_numbers_are_warned_of(tmp_path, capfd):
    data = padded(tmp_path / "t.csv")
    model, said = trained(capfd, data)
    assert model.schema.titles() == ["zip", "month", "a"]
    assert (
        f"t.csv: read as numbers, {ZEROS}: column 'zip' (00501), column 'month' (01);"
        " --categorical zip,month reads them as codes"
        in said
        and said.count(ZEROS) == 1
    )
    SAID.clear()
    assert len(predicted(capfd, data)[0]) == 60 and ZEROS not in "".join(SAID)
    model, said = trained(capfd, data, "--categorical", "zip")
    assert "zip=00501" in model.schema.titles()
    assert f"{ZEROS}: column 'month' (01); --categorical zip,month reads it as codes" in said
    assert ZEROS not in trained(capfd, data, "--categorical", "zip", "--ignore", "month")[1]
    # labels keep their leading zeros
    assert ZEROS not in trained(capfd, data, "--target", "month", "--ignore", "zip")[1]
    data.write_text(data.read_text().replace(",0", ",").replace("\n00", "\n"))
    assert ZEROS not in trained(capfd, data)[1]


def test_codes_with_zeros_in_front_are_warned_of_in_streams_and_parts(tmp_path, caplog):
    data = padded(tmp_path / "t.csv")
    source = CsvSource(data, chunk=100)
    assert source.schema.titles() == ["zip", "month", "a"]
    assert caplog.text.count(f"{ZEROS}: column 'zip' (00501), column 'month' (01)") == 1
    table = Table("t", ["zip", "a", "y"], True, [A, A, A], own_target=2)
    parts = [
        Learner(Reading(), bounded=True).update(replace(table, padded=cells))
        for cells in ({}, {0: "012"}, {0: "013", 1: "01"})
    ]
    parts[0].merge(parts[1])
    parts[0].merge(parts[2])
    parts[0].finish()
    assert f"{ZEROS}: column 'zip' (012), column 'a' (01)" in caplog.text


def test_spellings_that_differ_in_case_alone_are_kept_apart_and_said(tmp_path, capfd):
    path = saved(
        tmp_path / "t.csv", a=A, city=np.array(["Paris", "paris", "Rome"])[np.arange(60) % 3], y=Y
    )
    model, said = trained(capfd, path)
    assert model.schema.inputs[1].categories == ["Paris", "Rome", "paris"]
    assert "similar categories, read as different: column 'city' ('Paris' and 'paris')" in said
    assert "similar labels" not in said
    saved(tmp_path / "new.csv", a=[1.0], city=["ROME"])
    assert "'ROME' (the model has 'Rome')" in predicted(capfd, tmp_path / "new.csv")[1]


def test_labels_that_differ_in_case_or_blanks_alone_are_kept_apart_and_said(tmp_path, capfd):
    labels = np.array(["Yes", "No", "yes"])[np.arange(60) % 3]
    model, said = trained(capfd, saved(tmp_path / "t.csv", a=A, y=labels))
    assert model.classes.tolist() == [0, 1, 2]
    assert "t.csv: similar labels, read as different: column 'y' ('Yes' and 'yes')" in said
    pytest.importorskip("pyarrow")
    frame = pytest.importorskip("pandas").DataFrame({"a": A, "y": np.where(A > 0, "no", "no ")})
    frame.to_parquet(tmp_path / "t.parquet")
    assert "column 'y' ('no' and 'no ')" in trained(capfd, tmp_path / "t.parquet")[1]
    # numbers keep their spelling, without a message
    numbers = np.array(["1.1", "1.10"])[np.arange(60) % 2]
    assert "similar labels" not in trained(capfd, saved(tmp_path / "t.csv", a=A, y=numbers))[1]


# ---------------------------------------------------------------------- numbers written for people

WRITTEN = [
    (["6%", "12.5 %", "-1%"], [6, 12.5, -1]),
    (["$1,234.50", "$7", "-$5"], [1234.5, 7, -5]),
    (["1.234,50 €", "7 €", "12.345.678 €"], [1234.5, 7, 12345678]),
    (["EUR 5", "EUR 1,000,000", "EUR 2.25"], [5, 1e6, 2.25]),
    (["1,234,567", "12", "(1,000)"], [1234567, 12, -1000]),
    (["1 234", "12", "5 000 000"], [1234, 12, 5e6]),
    (["1\u202f234,5", "12", "5\u00a0000"], [1234.5, 12, 5000]),
    (["1'234.5", "12", "5\u2019000"], [1234.5, 12, 5000]),
    (["12,34,567", "12", "5,000"], [1234567, 12, 5000]),
    (["0,5", "1,25", "7"], [0.5, 1.25, 7]),
    (["\u22121,5", "1,25", "7"], [-1.5, 1.25, 7]),
]


@pytest.mark.parametrize("words, numbers", WRITTEN)
def test_numbers_with_signs_and_separators_are_read_and_remembered(words, numbers, tmp_path, capfd):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"amount": words * 20, "a": A, "y": Y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, said = trained(capfd, tmp_path / "t.csv")
    assert said.count("read as numbers: column 'amount' (") == 1
    np.testing.assert_array_equal(load(tmp_path / "t.csv").X_train[:3, 0], numbers)
    np.testing.assert_array_equal(
        CsvSource(tmp_path / "t.csv", chunk=300).read(3)[0][:3, 0], numbers
    )
    want = predicted(capfd, tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    assert predicted(capfd, tmp_path / "t.parquet") == want and want[1] == ""
    np.testing.assert_array_equal(
        load(tmp_path / "t.parquet").X_train, load(tmp_path / "t.csv").X_train
    )
    saved(tmp_path / "odd.csv", amount=["five"], a=[1.0])
    assert predicted(capfd, tmp_path / "odd.csv")[1].count(
        "odd.csv, line 2: column 'amount' has 'five', which is not a number in the format of the"
        " training rows"
    )


UNCLEAR = [
    (["5%", "6", "7%"], "has numbers with and without %, such as '6'"),
    (["$5", "€6", "$7"], "has amounts in $ and €, which can't be compared"),
    (
        ["1,234.5", "1.234,5", "2"],
        "has numbers whose separators disagree, such as '1,234.5' and '1.234,5'",
    ),
    (["1,5", "1.5", "2"], "has numbers whose separators disagree, such as '1,5' and '1.5'"),
    (["$5", "$6", "none"], "has 'none', which is not a number, unlike most of its cells"),
]


@pytest.mark.parametrize("words, message", UNCLEAR)
def test_numbers_that_may_mean_several_things_are_refused_by_name(words, message, tmp_path, capfd):
    said = refused(capfd, saved(tmp_path / "t.csv", amount=words * 20, a=A, y=Y))
    assert (
        "column 'amount'" in said and message in said and "ignore it with --ignore amount" in said
    )


def test_a_comma_before_three_digits_is_told_by_what_separates_the_cells(tmp_path, capfd):
    frame = pytest.importorskip("pandas").DataFrame(
        {"x": ["1,234", "56,789", "7,000"] * 20, "a": A, "y": Y}
    )
    numbers = {",": [1234, 56789, 7000], ";": [1.234, 56.789, 7]}
    for separator, want in numbers.items():
        frame.to_csv(tmp_path / "t.csv", index=False, sep=separator)
        model, said = trained(capfd, tmp_path / "t.csv")
        assert f"column 'x' ('1,234' is {want[0]})" in said
        np.testing.assert_array_equal(load(tmp_path / "t.csv").X_train[:3, 0], want)
    frame.to_csv(tmp_path / "t.csv", index=False, sep="\t")
    assert "has '1,234', which may be 1234 or 1.234; ignore it with --ignore x" in refused(
        capfd, tmp_path / "t.csv"
    )


def test_a_percentage_needs_its_sign_when_predicting(tmp_path, capfd):
    trained(capfd, saved(tmp_path / "t.csv", rate=["6%", "7%", "8%"] * 20, a=A, y=Y))
    saved(tmp_path / "new.csv", rate=[0.06], a=[1.0])
    assert predicted(capfd, tmp_path / "new.csv")[0] == 1
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas").DataFrame({"rate": [0.06], "a": [1.0]}).to_parquet(
        tmp_path / "new.parquet"
    )
    assert (
        "column 'rate' has '0.06', which is not a number in the format"
        in predicted(capfd, tmp_path / "new.parquet")[1]
    )


def test_targets_with_a_currency_are_a_regression(tmp_path, capfd):
    path = saved(tmp_path / "t.csv", a=A, price=[f"${1000.5 * a:,.2f}" for a in A])
    model, said = trained(capfd, path)
    assert model.task == "regression" and "the targets are read as numbers: '$" in said
    np.testing.assert_allclose(load(path).y_train, 1000.5 * A, atol=0.01)
    code, out, _ = run(capfd, "eval", tmp_path / "m.npz", "--data", path)
    assert code == 0 and "RMSE" in out


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
    (["31-Jan-2020", "1 Feb 2020", "Wed, 31 Dec 1969"], [18292, 18293, -1]),
    (["1/31/2020 1:30 PM", "2/1/2020 12:00 AM", "1/13/1970 12:00 PM"], [18292.5625, 18293, 12.5]),
    (["2020-01", "2020-02", "1970-01"], [18262, 18293, 0]),
    ([20200131, 20200201, 19700101], [18292, 18293, 0]),
]


@pytest.mark.parametrize("words, days", DATES)
def test_dates_become_numbers(words, days, tmp_path, capfd):
    path = saved(tmp_path / "t.csv", **{"Order Date": words * 20}, a=A, y=Y)
    model, said = trained(capfd, path, "--dates", "Order Date")
    assert "read as dates" not in said
    if isinstance(words[0], str):
        by_default, said = trained(capfd, path)
        assert by_default.schema == model.schema
        assert "read as dates: column 'Order Date'; --categorical 'Order Date' reads it" in said
    assert model.schema.titles() == [
        f"Order Date.{part}" for part in ("year", "month", "weekday", "days")
    ] + ["a"]
    reading = Reading(dates=("Order Date",))
    found = load(path, reading=reading).X_train[:3, :4]
    np.testing.assert_allclose(found[:, 3], days)
    calendar = np.floor(days).astype("datetime64[D]").astype(object)
    np.testing.assert_array_equal(
        found[:, :3], [[day.year, day.month, day.weekday()] for day in calendar]
    )
    np.testing.assert_array_equal(CsvSource(path, reading, chunk=300).read(3)[0][:3, :4], found)
    assert len(predicted(capfd, path)[0]) == 60
    saved(tmp_path / "odd.csv", **{"Order Date": ["soon"]}, a=[1.0])
    assert (
        "column 'Order Date' has 'soon', which is not a date"
        in predicted(capfd, tmp_path / "odd.csv")[1]
    )


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["1/2/2020", "3/4/2020", "5/6/2020"],
            "has '1/2/2020' and other dates with an ambiguous order of day and month",
        ),
        (
            ["31/1/2020", "1/31/2020", "5/6/2020"],
            "has dates with the day first and with the month first",
        ),
        (["1/2/20", "3/4/20", "5/31/20"], "has '1/2/20', which has a two-digit year"),
        (["2020-01-01", "2020-01-02", "soon"], "has 'soon', which is not a date"),
        ([1.5, 2.5, 3.5], "has '1.5', which is not a date"),
    ],
)
def test_dates_that_may_be_several_days_are_refused(words, message, tmp_path, capfd):
    said = refused(capfd, saved(tmp_path / "t.csv", d=words * 20, a=A, y=Y), "--dates", "d")
    assert message in said and "ignore it with --ignore d" in said and "--dates" not in said


def test_months_and_quarters_are_dates(tmp_path, capfd):
    words = [["2019/10", "2019/2"], ["2020-Q2", "2020-Q3"], ["Jan-2019", "Feb-2019"]]
    words += [["10/2019", "2/2019"], ["Q2 2020", "Q3 2020"], ["2019 January", "2019 February"]]
    days = [[18170, 17928], [18353, 18444], [17897, 17928]]
    days += [days[0], days[1], days[2]]
    for pair, numbers in zip(words, days):
        assert [written.kind(word) for word in pair] == ["date", "date"], pair
        np.testing.assert_allclose(written.dates(pair).read(pair), numbers)
    path = saved(tmp_path / "t.csv", month=[words[1][k % 2] for k in range(60)], a=A, y=Y)
    assert trained(capfd, path)[0].schema.titles()[0] == "month.year"
    assert trained(capfd, path, "--categorical", "month")[0].schema.titles()[0] == "month=2020-Q2"


@pytest.mark.parametrize("word, share", [(".", 0.4), ("-", 0.6), ("<LOD", 0.9), (".", 0.95)])
def test_a_marker_among_decimals_is_named_however_often_it_occurs(word, share, tmp_path, capfd):
    dose = [word if k < share * 60 else f"{k / 10}" for k in range(60)]
    path = saved(tmp_path / "t.csv", dose=dose, a=A, y=Y)
    message = refused(capfd, path, "--missing", "median")
    assert f"t.csv, line 2: column 'dose' has {word!r}, which is not a number" in message
    assert "--categorical dose" in message
    assert trained(capfd, path, "--categorical", "dose")[0].schema.columns[0].categories


def test_the_order_of_day_and_month_is_remembered(tmp_path, capfd):
    trained(
        capfd,
        saved(tmp_path / "t.csv", d=["1/31/2020", "2/1/2020", "3/2/2020"] * 20, a=A, y=Y),
        "--dates",
        "d",
    )
    method = methods.load(tmp_path / "m.npz")
    saved(tmp_path / "new.csv", d=["3/2/2020"], a=[1.0])
    X, _ = other_rows(tmp_path / "new.csv", method.schema, 5, targets="ignored")
    assert X[0, :2].tolist() == [2020, 3]
    saved(tmp_path / "new.csv", d=["31/2/2020"], a=[1.0])
    assert (
        "line 2: column 'd' has '31/2/2020', which is not a date"
        in predicted(capfd, tmp_path / "new.csv")[1]
    )
    assert (
        refused(capfd, tmp_path / "t.csv", "--dates", "y").count(
            "--dates names column 'y', which holds the targets"
        )
        == 1
    )


def test_dates_and_times_of_a_parquet_file_are_dates(tmp_path, capfd):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    days = pandas.date_range("2020-01-31 12:00", periods=60, freq="D")
    frames = {
        "naive": days,
        "utc": days.tz_localize("UTC"),
        "zone": days.tz_localize("Europe/Paris"),
        "date": days.date,
    }
    for name, column in frames.items():
        path = tmp_path / f"{name}.parquet"
        pandas.DataFrame({"d": column, "a": A, "y": Y}).to_parquet(path)
        found = load(path).X_train[:2]
        first = {"date": 18292.0, "zone": 18292 + 11 / 24}.get(name, 18292.5)
        np.testing.assert_allclose(found[:, :4], [[2020, 1, 4, first], [2020, 2, 5, first + 1]])


def test_a_missing_date_is_filled_as_a_date(tmp_path):
    path = saved(tmp_path / "t.csv", d=["2020-01-31", "", "2020-02-02"] * 20, a=A, y=Y)
    X = load(path, reading=Reading(dates=("d",), missing="mean")).X_train
    np.testing.assert_array_equal(X[1, :4], [2020, 2, 5, 18293])


# ---------------------------------------------------------------------- advice


def test_all_columns_that_can_not_be_used_are_named_at_once_with_what_to_type(tmp_path, capfd):
    names = [f"it's no. {i}" for i in range(60)]
    path = saved(
        tmp_path / "t.csv",
        **{
            "Row ID": names,
            "a": A,
            "Price, net": ["$5", "€5", "$6"] * 20,
            "when": ["2020-01-01", "soon", "2020-01-02"] * 20,
            "it's": names,
            "y": Y,
        },
    )
    said = refused(capfd, path)
    for name in ("Row ID", "Price, net", "when", "it's"):
        assert f"column {name!r}" in said
    ignore = said.partition("ignore them with ")[2]
    assert shlex.split(ignore) == ["--ignore", 'Row ID,"Price, net",when,it\'s']
    model, _ = trained(capfd, path, *shlex.split(ignore))
    assert model.schema.titles() == ["a"]
    # what was omitted before stays omitted if the advice is typed
    more = refused(capfd, path, "--ignore", "Row ID")
    again = shlex.split(more.partition("ignore them with ")[2])
    assert trained(capfd, path, *again)[0].schema.width == 1


@pytest.mark.parametrize("names", [["a"], ["Row ID", "b"], ["a,b", 'c"d', "it's", "$x"], ["-x"]])
def test_options_that_are_advised_are_read_as_they_were_meant(names):
    option, value = shlex.split(typed("ignore", names))
    assert option == "--ignore" and list(Names.values(value)) == names


# ---------------------------------------------------------------------- declared categories


def test_numbers_are_categories_where_that_is_said(tmp_path, capfd):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    codes = np.array(["007", "7", "60601"])[np.arange(60) % 3]
    path = saved(tmp_path / "t.csv", code=codes, a=A, y=Y)
    assert load(path).schema.titles() == ["code", "a"]
    model, _ = trained(capfd, path, "--categorical", "code")
    assert model.schema.titles() == ["code=007", "code=60601", "code=7", "a"]
    assert CsvSource(path, Reading(categorical=("code",)), chunk=200).schema == model.schema
    assert predicted(capfd, path)[1] == ""
    pandas.DataFrame({"n": [1, 2, 3] * 20, "x": [0.5, 1, 2] * 20, "a": A, "y": Y}).to_parquet(
        tmp_path / "n.parquet"
    )
    reading = Reading(categorical=("n", "x"))
    assert load(tmp_path / "n.parquet", reading=reading).schema.titles() == [
        "n=1",
        "n=2",
        "n=3",
        "x=0.5",
        "x=1",
        "x=2",
        "a",
    ]
    np.savez(tmp_path / "n.npz", X=np.column_stack([[1, 2, 3] * 20, A]), y=Y)
    assert load(tmp_path / "n.npz", reading=Reading(categorical=("1",))).schema.width == 4
    with pytest.raises(UsageError, match="--ignore and --categorical both name column 'code'"):
        load(path, reading=Reading(categorical=("code",), ignore=("code",)))
    assert "--categorical is for tables such as CSV" in _libsvm_refusal(tmp_path, capfd)


def _libsvm_refusal(tmp_path, capfd):
    (tmp_path / "t.txt").write_text("1 1:2\n-1 1:3\n")
    return refused(capfd, tmp_path / "t.txt", "--categorical", "1")


# ---------------------------------------------------------------------- texts by themselves
