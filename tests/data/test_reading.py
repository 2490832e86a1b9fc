"""How a file was read is part of the model, and other files are read in the same way."""

import io
import json
import re
import sys

import numpy as np
import pytest

from rfx import methods
from rfx.cli import main
from rfx.data.reading import FileFormat
from rfx.data.tabular.schema import Schema
from rfx.errors import DataError

FAST = ("--method", "rf", "--n-features", 50, "--gamma", 1, "--lam", 1)
LOG = []  # pytest captures what a process writes to standard error
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def small(own_folders, caplog):
    LOG.append(caplog)
    yield
    LOG.pop()


def run(capfd, *args):
    """(exit code, standard output, standard error) of `rfx args`."""
    LOG[-1].clear()
    with pytest.raises(SystemExit) as stop:
        main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    return stop.value.code, out, "".join(f"{text}\n" for text in LOG[-1].messages) + err


def good(capfd, *args):
    """Standard output and error of a command that must succeed."""
    code, out, err = run(capfd, *args)
    assert code == 0, err
    return out, err


def refused(capfd, *args):
    """The one sentence of a command that must fail."""
    code, out, err = run(capfd, *args)
    lines = [line for line in err.splitlines() if line.startswith("rfx: ")]
    assert code != 0 and "Traceback" not in err, err
    return lines[-1]


# ---------------------------------------------------------------------- where indices start


@pytest.fixture
def indexed(tmp_path):
    """Rows with label 1 where column 0 is present: zero.libsvm, its rows of label -1 alone, and
    both with indices from 1.
    """
    rows = [(i % 2, RNG.normal(size=2).round(2).tolist()) for i in range(50)]

    def text(rows, base):
        lines = [
            f"{1 if one else -1} {f'{base}:1 ' if one else ''}{base + 1}:{a} {base + 2}:{b}\n"
            for one, (a, b) in rows
        ]
        return "".join(lines)

    (tmp_path / "zero.libsvm").write_text(text(rows, 0))
    (tmp_path / "one.libsvm").write_text(text(rows, 1))
    (tmp_path / "new-zero.libsvm").write_text(text([row for row in rows if not row[0]], 0))
    (tmp_path / "new-one.libsvm").write_text(text([row for row in rows if not row[0]], 1))
    return tmp_path


STREAMED = ("--method", "doubly-sgd", "--gamma", 1, "--stream", "--batch", 32, "--epochs", 2)
TRAINED = {
    "train": ("train", *FAST),
    "stream": ("train", *STREAMED),
    "path": ("train", "--method", "sparse-rf", *FAST[2:6], "--lam-path", "2:1:2"),
    "tune": ("tune", *FAST[:6], "--budget-seconds", 5),
}


@pytest.mark.parametrize("how", TRAINED)
def test_a_model_knows_where_its_indices_start(how, indexed, capfd):
    data, new = indexed / "zero.libsvm", indexed / "new-zero.libsvm"
    good(capfd, *TRAINED[how], "--data", data, "--zero-based", "--model", indexed / "m.npz")
    model = next(indexed.glob("m*.npz"))
    assert methods.load(model).schema.format == FileFormat("libsvm", zero_based=True)
    commands = [("predict", model, new), ("eval", model, "--data", data)]
    commands += [("featurize", new, "--model", model)] if how == "train" else []
    for words in commands:
        plain, _ = good(capfd, *words)
        flagged, _ = good(capfd, *words, "--zero-based")
        # without seconds
        assert re.sub(r"\d\.\d\d", "", plain) == re.sub(r"\d\.\d\d", "", flagged)
        assert plain.count("\n") > 1


@pytest.mark.parametrize("command", ["predict", "eval", "featurize"])
def test_indices_that_start_elsewhere_are_refused(command, indexed, capfd):
    for name, more in (("zero", ["--zero-based"]), ("one", [])):
        good(
            capfd,
            "train",
            *FAST,
            "--data",
            indexed / f"{name}.libsvm",
            "--model",
            indexed / f"m-{name}.npz",
            *more,
        )
    words = {
        "predict": ["predict", "MODEL", "FILE"],
        "eval": ["eval", "MODEL", "--data", "FILE"],
        "featurize": ["featurize", "FILE", "--model", "MODEL"],
    }

    def said(model, file, *more):
        known = {"MODEL": indexed / f"m-{model}.npz", "FILE": indexed / f"{file}.libsvm"}
        return refused(capfd, *(known.get(word, word) for word in words[command]), *more)

    assert "--zero-based contradicts the model, whose training rows have indices from 1" in said(
        "one", "new-one", "--zero-based"
    )
    assert "line 2, column 3: the index is 0 but indices start at 1" in said("one", "zero")
    assert "has index 3 but no index 0, so its indices seem to start at 1" in said(
        "zero", "new-one"
    )


def test_a_damaged_file_format_is_refused():
    saved = Schema(format=FileFormat("libsvm", True)).to_dict()
    assert Schema.from_dict(json.loads(json.dumps(saved))).format.zero_based is True
    saved["format"]["other"] = 1
    with pytest.raises(DataError, match="its schema is damaged"):
        Schema.from_dict(saved)


# ---------------------------------------------------------------------- headers and separators


def churn(tmp_path, header="2019,2020,churn", separator=",", name="churn.csv"):
    """A file of 40 rows with two numbers and the label yes or no, which depends on the sum of the
    numbers.
    """
    rows = [RNG.normal(size=2).round(2).tolist() for _ in range(40)]
    lines = ([header] if header else []) + [
        f"{a},{b},{'yes' if a + b > 0 else 'no'}" for a, b in rows
    ]
    (tmp_path / name).write_text("\n".join(lines).replace(",", separator) + "\n")
    return tmp_path / name


@pytest.mark.parametrize("how", ["train", "stream"])
def test_a_model_finds_its_names_in_the_first_row(how, tmp_path, capfd):
    data = ("--data", churn(tmp_path), "--header", "--model", tmp_path / "m.npz")
    good(capfd, *TRAINED[how], *data)
    assert methods.load(tmp_path / "m.npz").schema.format == FileFormat(
        "csv", header=True, separator=","
    )
    (tmp_path / "new.csv").write_text("2019,2020\n1,1\n-1,-1\n2,1\n")
    (tmp_path / "turned.csv").write_text("2020;2019\n1;1\n-1;-1\n1;2\n")
    plain, _ = good(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")
    assert plain.count("\n") == 3
    assert good(capfd, "predict", tmp_path / "m.npz", tmp_path / "turned.csv")[0] == plain
    out, err = good(capfd, "eval", tmp_path / "m.npz", "--data", tmp_path / "churn.csv", "--json")
    assert json.loads(out)["n_test"] == 40 and "absent in training" not in err
    assert refused(
        capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv", "--no-header"
    ).startswith("rfx: --no-header contradicts the model, whose training file has one")


def test_a_file_without_the_model_s_header_is_read_in_order_and_that_is_said(tmp_path, capfd):
    good(capfd, "train", *FAST, "--data", churn(tmp_path, "a,b,y"), "--model", tmp_path / "m.npz")
    (tmp_path / "new.csv").write_text("1,1\n-1,-1\n2,1\n")
    out, err = good(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")
    assert (
        out.count("\n") == 3
        and "new.csv does not begin with the model's header, so its columns are read in the order"
        in err
    )
    (tmp_path / "other.csv").write_text("x,y\n1,1\n-1,-1\n")
    assert "other.csv has no column 'a', 'b', which the model needs" in refused(
        capfd, "predict", tmp_path / "m.npz", tmp_path / "other.csv"
    )


def test_a_header_for_a_model_without_one_is_refused(tmp_path, capfd):
    good(capfd, "train", *FAST, "--data", churn(tmp_path, ""), "--model", tmp_path / "m.npz")
    assert methods.load(tmp_path / "m.npz").schema.format == FileFormat(
        "csv", header=False, separator=","
    )
    (tmp_path / "new.csv").write_text("a,b\n1,1\n-1,-1\n2,1\n")
    said = refused(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")
    assert (
        "new.csv, line 1: it is a header (a, b), but the model was trained on a file without"
        " one; remove the line" in said
    )
    assert "--header contradicts the model" in refused(
        capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv", "--header"
    )
    (tmp_path / "new.csv").write_text("1,1\n-1,-1\n2,1\n")
    assert good(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")[0].count("\n") == 3


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("header", [False, True])
def test_rows_of_words_alone_stay_rows(rows, header, tmp_path, capfd):
    words = ["blue,small,z,poison", "red,big,z,edible", "red,big,x,edible", "blue,big,y,poison"] * 5
    (tmp_path / "mush.csv").write_text(
        "\n".join((["colour,size,shape,class"] if header else []) + words)
    )
    out, err = good(
        capfd,
        "train",
        *FAST,
        "--data",
        tmp_path / "mush.csv",
        "--model",
        tmp_path / "m.npz",
        "--json",
    )
    row = json.loads(out)
    assert (
        row["n_train"] == 20
        and row["task"] == "binary"
        and ("is read as the header" in err) == header
    )
    (tmp_path / "new.csv").write_text("\n".join(word.rpartition(",")[0] for word in words[:rows]))
    out, err = good(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")
    assert out.split() == ["poison", "edible", "edible", "poison"][:rows]
    assert ("in the order of the training file" in err) == header


@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.data"])
def test_a_table_with_spaces_between_its_cells_is_trained_on(name, tmp_path, capfd):
    out, _ = good(
        capfd,
        "train",
        *FAST,
        "--data",
        churn(tmp_path, "a,b,y", "  ", name),
        "--model",
        tmp_path / "m.npz",
        "--json",
    )
    assert json.loads(out)["n_inputs"] == 2 and json.loads(out)["task"] == "binary"
    (tmp_path / "new.txt").write_text("a b\n1 1\n-1 -1\n")
    assert good(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.txt")[0] == "yes\nno\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_stream_leaves_out_comments_and_keeps_long_headers(end, tmp_path, capfd):
    wide = [f"gene{number:05d}" + "x" * 191 for number in range(400)]
    lines = ["# exported, by hand", ",".join([*wide, "y"])] + [
        ",".join(["1", str(i % 7)] + ["0"] * 398 + ["no yes".split()[i % 2]]) for i in range(30)
    ]
    (tmp_path / "wide.csv").write_bytes(end.join([*lines, ""]).encode())
    words = ("train", *STREAMED, "--data", tmp_path / "wide.csv", "--model", tmp_path / "m.npz")
    out, err = good(capfd, *words, "--json")
    schema = methods.load(tmp_path / "m.npz").schema
    assert json.loads(out)["n_train"] == 30 and "begins with #" in err
    assert (
        schema.titles() == wide and schema.target == ("y", 400) and schema.labels == ["no", "yes"]
    )


# ---------------------------------------------------------------------- encodings


SPAM = "spam 1:1.29 2:1.45\nham 1:-1 2:-0.76\n" * 15


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("kind", ["libsvm", "csv", "txt", "stdin", "stream"])
def test_labels_are_the_same_in_every_encoding(kind, encoding, tmp_path, capfd, monkeypatch):
    marked = encoding in ("utf-8-sig", "utf-16", "utf-32")
    text = SPAM if kind in ("libsvm", "txt") else "a,b,y\n" + "1.29,1.45,spam\n-1,-0.76,ham\n" * 15
    text = text.replace("spam", "café")
    content = text.encode(encoding)
    path = tmp_path / f"f.{kind if kind in ('libsvm', 'txt') else 'csv'}"
    path.write_bytes(content)
    words = ["train", *FAST, "--data", path, "--model", tmp_path / "m.npz"]
    if kind == "stdin":
        words[words.index(path)] = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    words = ["train", *STREAMED, *words[-4:]] if kind == "stream" else words
    good(capfd, *words, *([] if marked else ["--encoding", encoding]))
    schema = methods.load(tmp_path / "m.npz").schema
    assert schema.labels == ["café", "ham"] and schema.format.encoding == (
        None if marked else encoding
    )
    # the model reads other files of that encoding, and UTF-8 files
    (tmp_path / "new.csv").write_text("1.29,1.45\n-1,-0.76\n") if schema.inputs is None else None
    for other in (encoding, "utf-8"):
        path.write_bytes(text.encode(other))
        out, err = good(capfd, "eval", tmp_path / "m.npz", "--data", path, "--json")
        assert "absent in training" not in err and json.loads(out)["n_test"] == 30


@pytest.mark.parametrize("kind", ["libsvm", "csv"])
def test_bytes_that_are_not_utf8_are_refused_by_line(kind, tmp_path, capfd):
    text = SPAM if kind == "libsvm" else "a,b,y\n1.29,1.45,ham\n-1,-0.76,spam\n"
    (tmp_path / f"f.{kind}").write_bytes(text.replace("ham", "thé").encode("latin-1"))
    said = refused(capfd, "train", *FAST, "--data", tmp_path / f"f.{kind}")
    assert "line 2: byte 0xe9 is not UTF-8; specify the encoding, such as --encoding cp1252" in said


def test_encodings_that_can_not_be_are_refused(tmp_path, capfd):
    path = tmp_path / "f.csv"
    path.write_text("a,b,y\n1,2,x\n3,4,z\n", encoding="utf-8-sig")
    words = ("train", *FAST, "--data", path, "--encoding")
    assert "--encoding is 'klingon', which Python does not support" in refused(
        capfd, *words, "klingon"
    )
    assert "Python does not support" in refused(capfd, *words, "base64")
    assert "but " + str(
        path
    ) + " begins with the byte order mark of utf-8; omit --encoding" in refused(
        capfd, *words, "cp1252"
    )
    path.write_bytes(b"a,b,y\n1,2,x\n3,4,\x9d\n")
    assert "f.csv, line 3: it is not cp1252" in refused(capfd, *words, "cp1252")
    np.savez(tmp_path / "f.npz", X=np.eye(2), y=[0, 1])
    assert "--encoding is for texts" in refused(
        capfd, "train", *FAST, "--data", tmp_path / "f.npz", "--encoding", "cp1252"
    )


# -------------------------------------------------------------------- formats that are none of ours


FOREIGN = {
    "t.vw": (b"-1 |f a:0 b:0\n1 |f a:1 b:2\n", "Vowpal Wabbit text"),
    "vw.txt": (b"1 2.0 'tag |user age:3 |item price:4\n-1 |user age:2\n", "Vowpal Wabbit text"),
    "vw.csv": (b"1 |words the quick fox\n-1 |words a lazy dog\n", "Vowpal Wabbit text"),
    "rows.jsonl": (b'{"a": 1, "b": 2}\n{"a": 2, "b": 3}\n', "JSON"),
    "rows.csv": (b'[{"a": 1, "b": 2},\n {"a": 2, "b": 3}]\n', "JSON"),
    "lists.txt": (b"[1, 2, 3]\n[4, 5, 6]\n", "JSON"),
    "t.arff": (b"% comment\n@RELATION iris\n\n@ATTRIBUTE a NUMERIC\n@DATA\n1,2\n", "ARFF"),
    "t.csv": (b"\n@relation x\n@data\n1,2\n", "ARFF"),
    "t.xlsx": (
        b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0[Content_Types].xml",
        "an Excel workbook (.xlsx)",
    ),
    "t.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "an Excel workbook (.xls)"),
    "t.h5": (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
    "t.feather": (b"ARROW1\0\0", "a Feather or Arrow file"),
    "t.bin": (b"\x80\x04\x95\x10\0\0", "a pickle"),
    "page.csv": (
        b"<!DOCTYPE html>\n<html><body>404, not found</body></html>\n",
        "a page of HTML or XML",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_format_that_is_not_read_is_named(name, tmp_path, capfd):
    content, words = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    want = f"{name} is {words}, which rfx can't read; save its rows as CSV, Parquet or LIBSVM text"
    assert want in refused(capfd, "train", *FAST, "--data", tmp_path / name)
    assert want in refused(capfd, "train", *STREAMED, "--data", tmp_path / name)


@pytest.mark.parametrize("missing", ["refuse", "mean"])
def test_a_column_that_is_away_can_be_given_without_values(missing, tmp_path, capfd):
    words = [*FAST, "--missing", missing, "--data", churn(tmp_path, "a,b,y")]
    good(capfd, "train", *words, "--model", tmp_path / "m.npz")
    (tmp_path / "new.csv").write_text("b\n1\n-1\n")
    said = refused(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")
    hint = "to mark a column as missing, add it with empty cells"
    assert (hint in said) == (missing == "mean")
    (tmp_path / "new.csv").write_text("b,a\n1,\n-1,\n")
    if missing == "mean":
        out, _ = good(capfd, "predict", tmp_path / "m.npz", tmp_path / "new.csv")
        assert out.count("\n") == 2
