"""A user's own file, through the shell: tables in every format, labels that are words, rows without
labels, columns that training did not have.
"""

import io
import json
import shlex
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from shell import printed, refused, run

from rfx import methods
from rfx.data import libsvm, load, tables
from rfx.data.reading import FileFormat, Reading
from rfx.data.stream import CsvSource
from rfx.data.tabular.schema import Schema

N = 240
pytestmark = pytest.mark.usefixtures("own_folders")
FAST = ("--method", "rf", "--n-features", 60, "--gamma", 1, "--kernel", "gaussian")
FAST += ("--scaling", "standard", "--metric", "none")


@pytest.fixture(scope="module")
def people():
    """Columns of N rows: who buys depends on age and job."""
    rng = np.random.default_rng(1)
    age, job = rng.integers(18, 80, N), rng.choice(["clerk", "smith", "baker, head"], N)
    height = np.round(rng.normal(170, 10, N), 2)
    buys = np.where((age > 50) ^ (job == "smith"), "yes", "no")
    return SimpleNamespace(age=age, job=job, height=height, buys=buys)


def csv(people, rows=slice(None), separator=",", columns=("id", "age", "job", "height", "buys")):
    known = {
        "id": np.arange(N),
        "age": people.age,
        "job": np.array([f'"{job}"' for job in people.job]),
        "height": people.height,
        "buys": people.buys,
    }
    known |= {"extra": np.arange(N)}
    lines = zip(*(known[name][rows].tolist() for name in columns))
    return "\n".join(
        [separator.join(columns), *(separator.join(map(str, line)) for line in lines), ""]
    )


@pytest.fixture
def files(tmp_path, capfd, people):
    (tmp_path / "train.csv").write_text(csv(people, slice(180)))
    (tmp_path / "test.csv").write_text(csv(people, slice(180, None)))
    own = ("--data", tmp_path / "train.csv", "--ignore", "id", "--model", tmp_path / "m.npz")
    printed(capfd, "train", *FAST, *own)
    return tmp_path


def scored(capfd, model, path, *more):
    code, out, err = run(capfd, "eval", model, "--data", path, "--json", *more)
    assert code == 0, err
    return json.loads(out)["score"], err


def test_a_table_is_read_by_the_names_of_its_columns(files, capfd, monkeypatch, people):
    score, err = scored(capfd, files / "m.npz", files / "test.csv")
    assert score > 0.9 and err == ""
    (files / "other.csv").write_text(
        csv(people, slice(180, None), ";", ("buys", "height", "age", "job"))
    )
    assert scored(capfd, files / "m.npz", files / "other.csv") == (score, "")
    out = printed(capfd, "predict", files / "m.npz", files / "other.csv")
    assert np.mean(np.array(out.split()) == people.buys[180:]) == pytest.approx(score)
    unlabelled = csv(people, slice(180, None), "\t", ("job", "age", "height")).encode()
    stdin = {"stdin": unlabelled, "monkeypatch": monkeypatch}
    assert printed(capfd, "predict", files / "m.npz", **stdin) == out


def test_what_the_model_never_saw_is_left_out_with_one_warning_or_refused(files, capfd, people):
    more = csv(people, slice(180, None), columns=("extra", "buys", "height", "age", "job"))
    (files / "more.csv").write_text(more.replace("smith", "spy", 1))
    first, second = scored(capfd, files / "m.npz", files / "more.csv")[1].splitlines()
    assert "columns that were absent in training, which are ignored: 'extra'" in first
    assert "column 'job' has categories that were absent in training" in second
    (files / "less.csv").write_text(
        csv(people, slice(180, None), columns=("buys", "height", "job"))
    )
    for name, more, says in (
        ("more.csv", ("--strict",), "absent in training: 'extra'; without --strict"),
        ("less.csv", (), "less.csv has no column 'age', which the model needs"),
        ("m.npz", (), "needs an array X with the rows"),
    ):
        assert says in refused(capfd, "eval", files / "m.npz", "--data", files / name, *more)


def test_the_schema_is_learnt_on_the_training_rows_alone(tmp_path):
    """With 80/20, values that only test rows have are unknown, and means are those of the training
    rows.
    """
    values, words = np.arange(100.0), np.array(["a", "b"] * 50)
    text = "\n".join(f"{value},{word},{value % 2}" for value, word in zip(values, words))
    (tmp_path / "t.csv").write_text(text + "\n")
    plain = load(tmp_path / "t.csv", split="80/20")
    test = int(plain.X_test[3, 0])
    lines = text.split("\n")
    lines[test] = "?,only here,0"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.warns(match="which are ignored: 'only here'"):
        split = load(tmp_path / "t.csv", split="80/20", reading=Reading(missing="mean"))
    assert split.schema.inputs[1].categories == ["a", "b"]
    np.testing.assert_array_equal(split.X_train, plain.X_train)
    np.testing.assert_array_equal(split.X_test[3], [plain.X_train[:, 0].mean(), 0, 0])


@pytest.mark.parametrize(
    "how, number, word, coded",
    [
        ("mean", 19.0, "(missing)", [0, 0, 1]),
        ("median", 7.0, "(missing)", [0, 0, 1]),
        ("most_frequent", 5.0, "b", [0, 1]),
    ],
)
def test_missing_cells_are_refused_by_line_or_replaced(how, number, word, coded, tmp_path, capfd):
    rows = [
        ("5", "b", 1),
        ("5", "b", -1),
        ("", "a", 1),
        ("9", "b", -1),
        ("57", "NA", 1),
        ("null", "b", -1),
    ]
    (tmp_path / "t.csv").write_text("x,w,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    words = ("train", *FAST, "--data", tmp_path / "t.csv", "--missing")
    remedy = "fill it in, or use --missing mean, median or most_frequent"
    said = refused(capfd, *words, "refuse")
    assert f"t.csv, line 4: column 'x' has no value; {remedy}" in said
    split = load(tmp_path / "t.csv", reading=Reading(missing=how))
    np.testing.assert_array_equal(split.X_train[:, 0], [5, 5, number, 9, 57, number])
    np.testing.assert_array_equal(split.X_train[4], [57, *coded])
    printed(capfd, *words, how, "--model", tmp_path / "m.npz")
    method = methods.load(tmp_path / "m.npz")
    assert method.schema == split.schema
    assert [column.fill for column in method.schema.inputs] == [number, word]
    (tmp_path / "one.csv").write_text("w,x\nNA,NA\n")
    X, _ = tables.other_rows(tmp_path / "one.csv", method.schema, 3, targets="ignored")
    np.testing.assert_array_equal(X, [[number, *coded]])
    (tmp_path / "y.csv").write_text("x,w,y\n1,a,\n")
    said = refused(capfd, "eval", tmp_path / "m.npz", "--data", tmp_path / "y.csv")
    assert "y.csv, line 2: column 'y' has no value" in said


def test_columns_that_lack_cells_are_filled_and_named_by_default(tmp_path, capfd, caplog):
    lines = [
        f"{'' if i % 3 == 0 else i},{'' if i == 5 else 'ab'[i > 8]},{i},{i % 2}" for i in range(20)
    ]
    (tmp_path / "t.csv").write_text("x,w,z,y\n" + "\n".join(lines))
    words = "train", *FAST, "--data", tmp_path / "t.csv"
    printed(capfd, *words, "--model", tmp_path / "m.npz")
    assert "words by a category of their own: x (7), w (1); see --missing" in caplog.text
    filled, own = methods.load(tmp_path / "m.npz").schema, load(tmp_path / "t.csv")
    assert filled.inputs[2].fill == 9.5, "a column that never lacked a cell, for later rows"
    np.testing.assert_array_equal(
        own.X_train, load(tmp_path / "t.csv", reading=Reading(missing="mean")).X_train
    )
    # the held-out rows teach nothing
    X, _ = own.part(np.arange(10), np.arange(10, 20))
    assert X[0, 0] == np.mean([1, 2, 4, 5, 7, 8])
    np.testing.assert_array_equal(CsvSource(tmp_path / "t.csv").read(20)[0], own.X_train)
    caplog.clear()
    printed(capfd, *words, "--missing", "mean")
    assert "see --missing" not in caplog.text


def test_a_cell_that_no_training_row_lacked_is_filled_and_counted(tmp_path, capfd):
    """Numbers, words and target means; the mean of x is 9.5 and b the most frequent word."""
    lines = [f"{i % 20},{'ab'[i % 3 > 0]},{i},n{i % 60},{i % 2}" for i in range(120)]
    (tmp_path / "t.csv").write_text("x,w,z,town,y\n" + "\n".join(lines))
    (tmp_path / "new.csv").write_text("x,w,z,town\n,,1,\n,b,1,n1\n3,b,1,n1\n")
    (tmp_path / "whole.csv").write_text("x,w,z,town\n9.5,b,1,new\n9.5,b,1,n1\n3,b,1,n1\n")
    words = "train", *FAST, "--data", tmp_path / "t.csv", "--model"
    printed(capfd, *words, tmp_path / "m.npz")
    want = printed(capfd, "predict", tmp_path / "m.npz", tmp_path / "whole.csv", "--decision")
    code, found, said = run(
        capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv", "--decision"
    )
    assert (code, found) == (0, want)
    assert "new.csv: 4 missing cells are filled as in training: x (2), w (1), town (1)" in said


@pytest.mark.parametrize("cells", [",b,n1", "1,,n1", "1,b,"])
def test_a_model_trained_to_refuse_missing_cells_refuses_them(cells, tmp_path, capfd):
    lines = [f"{i},{'ab'[i % 3 > 0]},n{i % 50},{i % 2}" for i in range(100)]
    (tmp_path / "t.csv").write_text("x,w,town,y\n" + "\n".join(lines))
    (tmp_path / "new.csv").write_text(f"x,w,town\n{cells}\n")
    words = "train", *FAST, "--data", tmp_path / "t.csv", "--missing", "refuse"
    printed(capfd, *words, "--model", tmp_path / "m.npz")
    said = refused(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")
    assert "new.csv, line 2: column" in said and "has no value" in said


REFUSED = [
    (
        "x,y\n1,2\nabc,3\n4,3\n5,1\n",
        (),
        "line 3: column 'x' has 'abc', which is not a number, unlike most of its cells",
    ),
    (
        "x,y\n" + "".join(f"name{i},{i % 2}\n" for i in range(60)),
        (),
        "60 different words in 60 rows, too many for categories",
    ),
    ("x,y\n1,2\n1e999,3\n", (), "line 3: column 'x' is infinite"),
    ("x\n1\n2\n", (), "has one column"),
    ("x,y\n", (), "has no rows, only a header"),
    ("x,y\n1,2\n", ("--target", "z"), "--target is 'z', which is not a column of"),
    ("x,y\n1,2\n", ("--target", "3"), "--target is '3', which is not a column of"),
    ("x,y\n1,2\n", ("--ignore", "y", "--target", "y"), "column 'y' holds the targets, so --ignore"),
    ("1 1:2\n-1 1:3\n", ("--missing", "mean"), "--missing is for tables such as CSV, but"),
    (
        "red 1:2\n3 1:3\n",
        (),
        "line 1, column 1: the label 'red' is not a finite number",
    ),
]


@pytest.mark.parametrize("text, more, message", REFUSED)
def test_what_can_not_be_read_is_a_sentence(text, more, message, tmp_path, capfd):
    path = tmp_path / ("t.txt" if "1:" in text else "t.csv")
    path.write_text(text)
    code, out, err = run(capfd, "train", *FAST, "--data", path, *more)
    last = err.splitlines()[-1]
    assert code in (1, 2) and out == "" and message in last and "Traceback" not in err


def test_the_target_is_the_last_column_and_said_or_named(files, capfd, caplog, people):
    (files / "t.csv").write_text(csv(people, columns=("buys", "age", "job", "height")))
    split = load(files / "t.csv", reading=Reading(target="buys"))
    assert (split.schema.labels, split.task) == (["no", "yes"], "binary")
    assert split.X_train.shape == (N, 5)
    assert split.schema.titles() == ["age", "job=baker, head", "job=clerk", "job=smith", "height"]
    assert load(files / "t.csv", reading=Reading(target="1")).schema == split.schema
    caplog.clear()
    assert load(files / "t.csv").schema.target == ("height", 3)
    assert (
        "the targets of" in caplog.text
        and "column 'height', the last; --target selects another column" in caplog.text
    )


@pytest.mark.parametrize("named", [False, True])
def test_arrays(named, tmp_path, capfd, monkeypatch, people):
    X, old = np.column_stack([people.age, people.height]), people.age > 50
    y = np.where(old, "old", "young") if named else old.astype(int)
    names = {"feature_names": np.array(["age", "height"])} if named else {}
    np.savez(tmp_path / "t.npz", X=X, y=y, **names)
    np.save(tmp_path / "x.npy", X)
    model = tmp_path / "m.npz"
    printed(capfd, "train", *FAST, "--data", tmp_path / "t.npz", "--model", model)
    assert scored(capfd, model, tmp_path / "t.npz")[0] > 0.95
    out = printed(capfd, "predict", model, tmp_path / "x.npy")
    assert np.mean(np.array(out.split()) == y.astype(str)) > 0.95
    stdin = {"stdin": (tmp_path / "t.npz").read_bytes(), "monkeypatch": monkeypatch}
    assert printed(capfd, "predict", model, "-", **stdin) == out


@pytest.mark.slow
def test_sparse_arrays_stay_sparse(tmp_path, capfd):
    X = scipy.sparse.random(60, 3000, 0.01, "csr", random_state=0)
    scipy.sparse.save_npz(tmp_path / "x.npz", X)
    y = np.where(np.arange(60) % 2, "odd", "even")
    with np.load(tmp_path / "x.npz") as parts:
        np.savez(tmp_path / "t.npz", **parts, y=y)
    split = load(tmp_path / "t.npz")
    assert abs(split.X_train - X).max() == 0 and split.schema == Schema(
        labels=["even", "odd"], format=FileFormat("npz")
    )
    printed(capfd, "train", *FAST, "--data", tmp_path / "t.npz", "--model", tmp_path / "m.npz")
    predicted = printed(capfd, "predict", tmp_path / "m.npz", tmp_path / "x.npz").split()
    assert set(predicted) <= {"even", "odd"}


def test_rows_of_parquet_are_predicted_as_those_of_csv(files, capfd, monkeypatch):
    pytest.importorskip("pyarrow")
    import pandas

    frame = pandas.read_csv(files / "train.csv").drop(columns=["buys"])
    path = files / "u.parquet"
    frame.astype({"job": "category"}).to_parquet(path)
    want = printed(capfd, "predict", files / "m.npz", files / "train.csv")
    assert printed(capfd, "predict", files / "m.npz", path) == want
    stdin = {"stdin": path.read_bytes(), "monkeypatch": monkeypatch}
    assert printed(capfd, "predict", files / "m.npz", **stdin) == want
    path.write_bytes(path.read_bytes()[:-100])
    said = refused(capfd, "predict", files / "m.npz", path)
    assert "is not a readable Parquet file" in said


def test_labels_of_libsvm_text_may_be_missing(tmp_path, capfd, rng):
    X = rng.normal(size=(90, 2))
    names = np.where(X[:, 0] > 0.5, "3", np.where(X[:, 1] > 0, "1", "2"))
    rows = [f"1:{a:.3f} 2:{b:.3f}" for a, b in X]
    labelled = "".join(f"{name} {row}\n" for name, row in zip(names, rows))
    (tmp_path / "t.txt").write_text("# three\n" + labelled)
    (tmp_path / "u.txt").write_text("".join(f"{row}\n" for row in rows))
    model = tmp_path / "m.npz"
    out = printed(capfd, "train", *FAST, "--data", tmp_path / "t.txt", "--model", model)
    assert "multiclass" in out
    score, _ = scored(capfd, model, tmp_path / "t.txt")
    assert score > 0.8
    for name in ("u.txt", "t.txt"):
        found = np.array(printed(capfd, "predict", model, tmp_path / name).split())
        assert np.mean(found == names) == pytest.approx(score)
    said = refused(capfd, "eval", model, "--data", tmp_path / "u.txt")
    assert "the label is missing" in said


@pytest.mark.slow
def test_wide_text_is_trained_in_little_memory(tmp_path):
    """1,000 rows of 60,000 columns: 458 MiB as an array of float64, in addition to some 440 of the
    libraries and features.
    """
    X = scipy.sparse.random(1000, 60000, 0.001, "csr", random_state=0)
    libsvm.write(tmp_path / "t.txt", X, np.where(np.arange(1000) % 2, 1.0, -1.0))
    line = "-m rfx train --method rf --n-features 100 --gamma 1 --lam 1 --metric none --json --data"
    words = [sys.executable, *line.split(), tmp_path / "t.txt"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["n_inputs"] == X.indices.max() + 1
    assert row["peak_rss_mb"] < 600


def test_convert_writes_what_is_trained_on_and_says_the_mapping(files, capfd, monkeypatch, people):
    args = ("--ignore", "id")
    out = printed(capfd, "convert", files / "train.csv", files / "train.libsvm", *args)
    columns = ["age", "job=baker, head", "job=clerk", "job=smith", "height"]
    mapping = [f"{i}\t{name}" for i, name in enumerate(columns, 1)]
    assert out.splitlines() == [*mapping, "label 0\tno", "label 1\tyes"]
    split = load(files / "train.csv", reading=Reading(ignore=("id",)))
    X, y = libsvm.read(files / "train.libsvm")
    np.testing.assert_array_equal(X.toarray(), split.X_train)
    np.testing.assert_array_equal(y, split.y_train)
    # other rows, with the columns and labels of the training rows
    part = csv(people, slice(180, None), ";", ("buys", "height", "age", "job")).replace(
        "smith", "clerk"
    )
    (files / "part.csv").write_text(part)
    words = [*args, "--train", files / "train.csv", "--json"]
    told = printed(capfd, "convert", files / "part.csv", files / "part.libsvm", *words)
    assert json.loads(told) == {"rows": 60, "columns": columns, "labels": ["no", "yes"]}
    printed(capfd, "train", *FAST, "--data", files / "train.libsvm", "--model", files / "own.npz")
    score, _ = scored(capfd, files / "m.npz", files / "part.csv")
    assert score == scored(capfd, files / "own.npz", files / "part.libsvm")[0]
    monkeypatch.chdir(files)
    text = csv(people, slice(180)).encode()
    code, out, err = run(capfd, "convert", "-", "-", *args, stdin=text, monkeypatch=monkeypatch)
    assert code == 0 and out == (files / "train.libsvm").read_text() and "label 1\tyes" in err
    for target, says in (("train.csv", "is the same file as"), ("test.csv", "exists and is not")):
        assert says in refused(capfd, "convert", "train.csv", target, *args, code=2)


@pytest.mark.slow
def test_a_csv_stream_through_the_shell(files, capfd, monkeypatch):
    line = "train --method doubly-sgd --gamma 1 --batch 32 --scaling minmax01 --stream --ignore id"
    words = (*line.split(), "--epochs", 3, "--data", files / "train.csv")
    monkeypatch.chdir(files)
    stream = io.TextIOWrapper(io.BufferedReader((files / "train.csv").open("rb")))
    monkeypatch.setattr(sys, "stdin", stream)
    for more in ((), ("--data", "-", "--epochs", 1)):
        kept = ("--test", "test.csv", "--model", "s.npz", "--json", *more)
        row = json.loads(printed(capfd, *words, *kept))
        assert row["n_inputs"] == 5
        assert scored(capfd, "s.npz", "test.csv")[0] == row["score"] > 0.5
    words += ("--checkpoint", files / "c.npz", "--resume", "--target")
    for target in ("buys", "buys", "5"):
        printed(capfd, *words, target)
    said = refused(capfd, *words, "age", code=2)
    assert "--target is 'age', but the targets of" in said
    assert "are column 'buys'; omit --target" in said


OWN = """# mine
[people]
title = "who buys"
train = "train.csv"
test = "test.csv"
ignore = ["id"]
target = "buys"

[bare]
train = "train.csv"
"""


def test_a_registry_of_ones_own(files, capfd, monkeypatch):
    (files / "own.toml").write_text(OWN)
    monkeypatch.setenv("RFX_DATASETS", str(files / "own.toml"))
    words = ("train", *FAST, "--data", "people")
    row = json.loads(printed(capfd, *words, "--model", files / "own.npz", "--json"))
    facts = (row["dataset"], row["n_train"], row["n_test"], row["task"])
    assert facts == ("people", 180, 60, "binary")
    assert scored(capfd, files / "own.npz", "people")[0] == row["score"]
    assert row["score"] == scored(capfd, files / "m.npz", files / "test.csv")[0]
    listed = json.loads(printed(capfd, "datasets", "--json"))
    statuses = [entry["status"] for entry in listed if entry["name"] in ("people", "bare")]
    assert statuses == ["own file"] * 2 and "who buys" in str(listed)
    for more, code, says in (
        (("--data", "peple"), 1, "did you mean people"),
        (("--missing", "mean"), 2, "own.toml, which defines how to read it"),
        (("--model", files / "train.csv", "--force"), 2, "is the same file as --data"),
    ):
        assert says in refused(capfd, *words, *more, code=code)
    folder = files / "config" / "rfx"
    folder.mkdir(parents=True)
    (folder / "datasets.toml").write_text(OWN.replace('"t', '"../../t'))
    monkeypatch.delenv("RFX_DATASETS")
    split = load("people", split="80/20")
    assert split.X_train.shape == (144, 5) and split.X_test.shape == (36, 5)


def test_check_says_what_is_in_a_table(files, capfd):
    (files / "t.csv").write_text("a,b,c\n1,x,2020-01-31\n,y,2020-02-28\n3,x,2020-01-31\n")
    head, *columns = printed(capfd, "check", files / "t.csv").splitlines()
    assert head.endswith("t.csv: 3 rows, 3 columns")
    assert columns == [
        "  a: numbers from 1 to 3; 1 cell missing",
        "  b: 2 words: x, y",
        "  c: 2 dates: 2020-01-31, 2020-02-28",
    ]
    (files / "t.csv").write_text("a,b\n1,2\n1,2,3\n")
    said = printed(capfd, "check", files / "t.csv", code=1)
    assert "t.csv, line 3: it has 3 cells, but the previous rows have 2" in said


def test_the_command_that_works_is_said_with_the_problem(tmp_path, capfd):
    lines = [f"{i},{'€$'[i % 2]}5,{'2020-01-31' if i % 3 else 'soon'},{i % 2}" for i in range(30)]
    (tmp_path / "t.csv").write_text("a,cost,at first,y\n" + "\n".join(lines))
    said = refused(capfd, "train", *FAST, "--data", tmp_path / "t.csv")
    assert "column 'cost'" in said
    assert "column 'at first'" in said
    program, *again = shlex.split(said.partition("this works:\n\n")[2])
    assert program == "rfx"
    printed(capfd, *again)
