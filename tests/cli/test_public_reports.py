"""Situations from public bug reports of other projects, with files of our own: rfx must handle them
correctly, or refuse them by name.

Each test names its report. Only the facts come from it.
"""

import datetime

import pytest
from shell import called

INPUTS = [(n * 37 % 101, n * 53 % 97) for n in range(40)]
PAIRS = [((a, b), int(a > b)) for a, b in INPUTS]
OPTIONS = ("--method", "rf", "--n-features", 20, "--gamma", 1, "--lam", 0.01, "--quiet", "--force")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rfx(*words):
    """The output of `rfx words`, which must succeed."""
    done = called(*words)
    if done.exception is not None:
        raise done.exception
    return done.output


def refused(*words):
    """The error message, or the list of problems, of `rfx words`, which must fail."""
    done = called(*words)
    assert done.exception is not None, done.output
    return f"{done.output}\n{done.exception}"


def write(name, text, encoding="utf-8"):
    with open(name, "w", newline="", encoding=encoding) as file:
        file.write(text)
    return name


def converted(name, *more):
    """The rows of a file as `rfx convert` writes them."""
    rfx("convert", name, "out.svm", "--force", *more)
    with open("out.svm") as file:
        return file.read().splitlines()


def rows(table=PAIRS):
    return "".join(f"{a},{b},{y}\n" for (a, b), y in table)


# ---------------------------------------------------------------------- tables of situations

LINES = {
    "hills": "".join(f'US/"{"HILL" if y else "HAVEN"}"\t{b}\t{y}\n' for (_, b), y in PAIRS),
    "codes": "".join(f"T0037020{a % 3},{y}\n" for (a, _), y in PAIRS),
    "countries": "".join(f"{'NA' if y else 'DE'},{b},{y}\n" for (_, b), y in PAIRS),
    "many": "".join(f"{n % 7},{n % 2}\n" for n in range(30000)),
    "windows": "".join(f" {y}  1:{a}\t2:{b}  \r\n" for (a, b), y in PAIRS),
    "ends": "".join(f"{a},{b},{y},\n" for (a, b), y in PAIRS),
    "named": "".join(f"r{n},{a},{b},{y}\n" for n, ((a, b), y) in enumerate(PAIRS)),
    "spaced": "".join(f"{a} {b} {y} \n" for (a, b), y in PAIRS),
    "sums": "".join(f"{a},{b},{2.5 * a + 4 * b + 5}\n" for (a, b), _ in PAIRS),
}
SHOWN = [
    # mlpack/mlpack#1754, catboost/catboost#154: quoted cells were split at commas and line ends
    (
        "t.csv",
        'n,t,y\n1,"a, b",0\n2,"c ""d""",1\n3,"e\nf",0\n4,"a, b",1\n',
        '4 rows, 3 columns|c "d"',
    ),
    # catboost/catboost#2315: a quote within a cell of a tab-separated table ended the reading
    ("t.tsv", "place\tb\ty\n" + LINES["hills"], 'US/"HAVEN"|US/"HILL"|40 rows'),
    # wireservice/csvkit#231: the reference T00370201 was read as the first of February 2037
    ("t.csv", "ref,y\n" + LINES["codes"], "3 words: T00370200, T00370201, T00370202"),
    # dmlc/xgboost#4135: a comment after the values ended the reading
    ("t.svm", "1 1:5 2:3 # doc 7:1 9:2\n0 1:2#\n", "2 rows, 2 columns"),
    # jolibrain/deepdetect#361: a line with only a label was not counted as a row
    ("t.svm", "0 1:1 2:2\n1 \n1\n0 2:3\n", "4 rows, 2 columns, labels 0 (2), 1 (2)"),
    # apache/spark#2996, microsoft/lightgbm-benchmark#154: repeated spaces and a carriage return
    # ended the reading
    ("t.svm", LINES["windows"], "40 rows, 2 columns, labels 0"),
    # pandas-dev/pandas#21768 and #8984: spaces between cells and after the last one
    ("t.txt", "a b y \n" + LINES["spaced"], "40 rows, 3 columns"),
]


@pytest.mark.parametrize("name, text, expected", SHOWN)
def test_check_shows_what_is_there(name, text, expected):
    shown = rfx("check", write(name, text))
    assert [one for one in expected.split("|") if one not in shown] == []


# The line, counted from 0, that `rfx convert` writes, and the number of lines.
WRITTEN = [
    # mlpack/mlpack#449: a tab-separated table in a .csv file was read as one column
    ("t.csv", "a\tb\ty\n7\t3\t1\n2\t5\t0\n", 2, 1, "0 1:2 2:5"),
    # mlpack/mlpack#2889: linear regression used the header as a row of zeros
    ("t.csv", "a,b,y\n" + LINES["sums"], len(PAIRS), 1, "309.5 1:37 2:53"),
    # catboost/catboost#170: the last line end added a row of zeros
    ("t.csv", "a,b,y\n" + rows() + "\n\n", len(PAIRS), 1, "0 1:37 2:53"),
    # ClickHouse/ClickHouse#120503: values that did not fit the type of the first rows were changed
    (
        "t.csv",
        f"c,y\n{LINES['many']}18446744073709551615,1\n",
        30001,
        -1,
        "1 1:1.8446744073709552e+19",
    ),
    # deephaven/deephaven-core#1800: a separator at the end of every row became a column
    ("t.csv", "a,b,y,\n" + LINES["ends"], len(PAIRS), 1, "0 1:37 2:53"),
    ("t.psv", ("a,b,y,\n" + LINES["ends"]).replace(",", "|"), len(PAIRS), 1, "0 1:37 2:53"),
    # h2oai/datatable#771: (200) in accounting tables is -200, and a quoted 3,400 is one number
    ("t.csv", 'a,b,y\n(200),"3,400",1.5\n100,"12,000",2.5\n', 2, 0, "1.5 1:-200 2:3400"),
    # pandas-dev/pandas#21768 and #8984
    ("t.txt", "a b y \n" + LINES["spaced"], len(PAIRS), 1, "0 1:37 2:53"),
]


@pytest.mark.parametrize("name, text, count, place, line", WRITTEN)
def test_convert_writes_what_is_there(name, text, count, place, line):
    found = converted(write(name, text))
    assert (len(found), found[place]) == (count, line)


REFUSED = [
    # ClickHouse/ClickHouse#120503
    ("t.csv", f"c,y\n{LINES['many']}late,0\n", "line 30002: column 'c' has 'late'"),
    # abtassociates/eva#776: zero-width spaces turned a numeric column into words
    ("t.csv", "a,b,y\n" + rows().replace("37,", "37\u200b,", 1), "line 3: column 'a' has"),
    # dmlc/xgboost#4356: labels nan gave results as if the labels were known
    ("t.svm", "0 1:1 2:nan\n1 1:2 2:1\n0 1:NaN\n", "line 1, column 9"),
    # dotnet/machinelearning#4689: an entry with an index above 32 bits was dropped
    ("t.svm", "0 1:1 2147483648:2\n1 1:2\n", "2,147,483,648 columns"),
    (
        "t.svm",
        "0 1:1 99999999999999999999:2\n1 1:2\n",
        "999999:2' is not index:value",
    ),
    # scikit-learn/scikit-learn#6350: labels separated by commas and spaces
    ("t.svm", "324,674 1:7 3:5\n1 1:1\n", "the label '324,674' is not a finite number"),
    ("t.svm", "324, 674 1:7 3:5\n1 1:1\n", "the label '324,' is not a finite number"),
    # lightgbm-org/LightGBM#1576: the second entry of ranking data caused a format error
    ("t.svm", "1 qid:1 1:2\n0 qid:1 1:3\n", "'qid:1' is not index:value"),
    # pandas-dev/pandas#14124: the first column became an index, so each cell moved
    ("t.csv", "a,b,y\n" + LINES["ends"], "line 2: it has 4 cells, but the previous rows have 3"),
    ("t.csv", "a,b,y\n1,2,0\n3,4,1,\n5,6,0\n", "line 3: it has 4 cells"),
    # pandas-dev/pandas#38830: the header was one cell shorter, and each column got the name of the
    # next; R's write.table writes row names this way
    ("t.csv", "a,b,y\n" + LINES["named"], "line 2: it has 4 cells"),
    ("t.txt", ("a,b,y\n" + LINES["named"]).replace(",", " "), "line 2: it has 4 cells"),
    # pandas-dev/pandas#64655: the cell `1 ,` was read as the number 1
    (
        "t.csv",
        "a;b;y\n" + rows().replace(",", ";").replace("37;", "1 ,;", 1),
        "line 3: column 'a' has '1 ,', which is not a number",
    ),
]


@pytest.mark.parametrize("name, text, expected", REFUSED)
def test_train_refuses_what_is_ambiguous(name, text, expected):
    assert expected in refused("train", *OPTIONS, "--data", write(name, text))


def test_a_code_that_may_mean_a_missing_cell_is_named():
    """vincentarelbundock/countrycode#261, microsoft/vscode-data-wrangler#219: the code NA of
    Namibia was read as a missing value.
    """
    words = "train", *OPTIONS, "--data", write("t.csv", "country,b,y\n" + LINES["countries"])
    assert "column 'country' has no value" in refused(*words, "--missing", "refuse")


def test_an_empty_cell_is_missing_in_whichever_row():
    """mlpack/mlpack#658: a missing cell was read as a value that depended on its row."""
    for place in range(3):
        lines = ["1,4,1", "3,4,0"]
        lines.insert(place, ",4,1")
        name = write("t.csv", "\n".join(["a,b,y", *lines]) + "\n")
        assert "column 'a' has no value" in refused("convert", name, "x.svm", "--missing", "refuse")
        assert converted(name, "--missing", "mean")[place] == "1 1:2 2:4"


def test_zeros_that_are_written_are_zeros_that_are_not():
    """dmlc/xgboost#2488: predictions changed if zeros were written."""
    full = "".join(f"{y} 1:{a} 2:{b} 3:0\n" for (a, b), y in PAIRS)
    rfx("train", *OPTIONS, "--data", write("full.svm", full), "--model", "m.npz")
    sparse = full.replace(" 1:0", "").replace(" 2:0", "").replace(" 3:0", "")
    assert sparse != full and rfx("predict", "m.npz", write("sparse.svm", sparse)) == rfx(
        "predict", "m.npz", "full.svm"
    )


# ---------------------------------------------------------------------- arrays and Parquet


def parquet(**columns):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(
        pyarrow.table({name: pyarrow.array(*column) for name, column in columns.items()}),
        "t.parquet",
    )
    return "t.parquet"


def test_durations_of_parquet_are_seconds_in_whatever_unit():
    """apache/drill#2788: a column in microseconds was compared as if it had another unit."""
    pyarrow = pytest.importorskip("pyarrow")
    times = [datetime.timedelta(seconds=1.5), datetime.timedelta(days=1)]
    for unit in ("ms", "us", "ns"):
        assert converted(parquet(took=(times, pyarrow.duration(unit)), y=([1.5, 2.5],))) == [
            "1.5 1:1.5",
            "2.5 1:86400",
        ]
