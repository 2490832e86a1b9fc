"""How a file was read is part of the model, and other files are read in the same way."""

import io
import re
import sys

import numpy as np
import pytest
from shell import printed, refused

from rfx import methods
from rfx.data import load
from rfx.data.reading import FileFormat, Reading
from rfx.data.stream import CsvSource
from rfx.data.tables import other_rows
from rfx.errors import DataError, RfxError

pytestmark = pytest.mark.usefixtures("own_folders")
FAST = ("--method", "rf", "--n-features", 50, "--gamma", 1, "--lam", 1)
STREAMED = ("--method", "doubly-sgd", "--gamma", 1, "--stream", "--batch", 32, "--epochs", 2)


def inputs(path, schema, width=2, **reading):
    """X of rows without targets, read by the schema of a model."""
    return other_rows(path, schema, width, Reading(**reading), targets="ignored")[0]


# ---------------------------------------------------------------------- where indices start


@pytest.fixture
def indexed(tmp_path, rng):
    """Rows with label 1 where column 0 is present: zero.libsvm, its rows of label -1 alone, and
    both with indices from 1.
    """
    numbers = rng.normal(size=(50, 2)).round(2).tolist()
    for base, name in enumerate(("zero", "one")):
        lines = [
            f"{label} {f'{base}:1 ' if label > 0 else ''}{base + 1}:{a} {base + 2}:{b}\n"
            for label, (a, b) in zip([-1, 1] * 25, numbers)
        ]
        (tmp_path / f"{name}.libsvm").write_text("".join(lines))
        (tmp_path / f"new-{name}.libsvm").write_text("".join(lines[::2]))
    return tmp_path


@pytest.mark.parametrize("how", [FAST, STREAMED, ("--method", "sparse-rf", "--lam-path", "2:1:2")])
def test_a_model_knows_where_its_indices_start(how, indexed, capfd):
    words = ("--data", indexed / "zero.libsvm", "--zero-based", "--model", indexed / "m.npz")
    printed(capfd, "train", *how, *words)
    model = next(indexed.glob("m*.npz"))
    assert methods.load(model).schema.format == FileFormat("libsvm", zero_based=True)
    plain = printed(capfd, "predict", model, indexed / "new-zero.libsvm")
    assert plain == printed(capfd, "predict", model, indexed / "new-zero.libsvm", "--zero-based")


@pytest.mark.parametrize(
    "model, name, reading, message",
    [
        ("one", "new-one", {"zero_based": True}, "--zero-based contradicts the model"),
        ("one", "zero", {}, "line 2, column 3: the index is 0 but indices start at 1"),
        ("zero", "new-one", {}, "has index 3 but no index 0, so its indices seem to start at 1"),
    ],
)
def test_indices_that_start_elsewhere_are_refused(model, name, reading, message, indexed):
    schema = load(indexed / f"{model}.libsvm", zero_based=model == "zero").schema
    with pytest.raises(RfxError, match=message):
        inputs(indexed / f"{name}.libsvm", schema, 3, **reading)


# ---------------------------------------------------------------------- headers and separators


def churn(tmp_path, header="2019,2020,churn", separator=",", name="churn.csv"):
    """A table whose targets depend on two numbers."""
    rows = np.random.default_rng(3).normal(size=(40, 2)).round(2).tolist()
    lines = ([header] if header else []) + [
        f"{a},{b},{'yes' if a + b > 0 else 'no'}" for a, b in rows
    ]
    (tmp_path / name).write_text("\n".join(lines).replace(",", separator) + "\n")
    return tmp_path / name


def put(tmp_path, text, name="new.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize(
    "header, text, in_order",
    [
        ("2019,2020,churn", "2019,2020\n1,1\n-1,-1\n2,1\n", False),
        ("2019,2020,churn", "2020;2019\n1;1\n-1;-1\n1;2\n", False),
        ("a,b,y", "1,1\n-1,-1\n2,1\n", True),
        ("", "1,1\n-1,-1\n2,1\n", False),
    ],
)
def test_a_model_reads_files_with_or_without_its_header(header, text, in_order, tmp_path, caplog):
    schema = load(churn(tmp_path, header), reading=Reading(header=bool(header))).schema
    assert schema.format == FileFormat("csv", header=bool(header), separator=",")
    assert CsvSource(tmp_path / "churn.csv", Reading(header=bool(header))).schema == schema
    assert inputs(put(tmp_path, text), schema).tolist() == [[1, 1], [-1, -1], [2, 1]]
    said = "new.csv does not begin with the model's header, so its columns are read in the order"
    assert (said in caplog.text) == in_order


@pytest.mark.parametrize(
    "header, text, asked, message",
    [
        ("a,b,y", "a,b\n1,1\n", False, "--no-header contradicts the model"),
        ("a,b,y", "x,y\n1,1\n", None, "new.csv has no column 'a', 'b', which the model needs"),
        ("", "a,b\n1,1\n", None, r"line 1: it is a header \(a, b\), but .*; correct or remove the"),
        ("", "a,b\n1,1\n", True, "--header contradicts the model"),
    ],
)
def test_another_header_than_the_model_s_is_refused(header, text, asked, message, tmp_path):
    schema = load(churn(tmp_path, header)).schema
    with pytest.raises(RfxError, match=message):
        inputs(put(tmp_path, text), schema, header=asked)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("header", [False, True])
def test_rows_of_words_alone_stay_rows(rows, header, tmp_path, caplog):
    words = ["blue,small,z,poison", "red,big,z,edible", "red,big,x,edible", "blue,big,y,poison"] * 5
    first = ["colour,size,shape,class"] if header else []
    split = load(put(tmp_path, "\n".join(first + words)))
    assert len(split.y_train) == 20
    assert ("is read as the header" in caplog.text) == header
    caplog.clear()
    new = put(tmp_path, "\n".join(word.rpartition(",")[0] for word in words[:rows]))
    np.testing.assert_array_equal(inputs(new, split.schema), split.X_train[:rows])
    assert ("in the order of the training file" in caplog.text) == header


@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.data"])
def test_a_table_with_spaces_between_its_cells_is_read(name, tmp_path):
    split = load(churn(tmp_path, "a,b,y", "  ", name))
    assert split.X_train.shape == (40, 2)
    new = put(tmp_path, "a b\n1 1\n-1 -1\n2 1\n", "new.txt")
    assert inputs(new, split.schema).tolist() == [[1, 1], [-1, -1], [2, 1]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_stream_leaves_out_comments_and_keeps_long_headers(end, tmp_path, caplog):
    wide = [f"gene{number:05d}" + "x" * 191 for number in range(400)]
    lines = ["# exported, by hand", ",".join([*wide, "y"])]
    lines += [",".join(["1", str(i % 7), *"0" * 398, "no yes".split()[i % 2]]) for i in range(30)]
    (tmp_path / "wide.csv").write_bytes(end.join([*lines, ""]).encode())
    source = CsvSource(tmp_path / "wide.csv")
    assert source.schema.titles() == wide
    assert source.schema.target == ("y", 400)
    assert source.read(100)[0].shape == (30, 400)
    assert "begins with #" in caplog.text


# ---------------------------------------------------------------------- encodings


ROWS_OF_TEXT = "1 1:1.29 2:1.45\n-1 1:-1 2:-0.76\n" * 15
TABLE = "a,b,y\n" + "1.29,1.45,café\n-1,-0.76,ham\n" * 15


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("name", ["f.libsvm", "f.csv", "f.txt", "-"])
def test_labels_are_the_same_in_every_encoding(name, encoding, tmp_path, monkeypatch):
    asked = None if encoding in ("utf-8-sig", "utf-16", "utf-32") else encoding
    text = TABLE if name in ("f.csv", "-") else ROWS_OF_TEXT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode(encoding))))
    path = tmp_path / name.replace("-", "f.csv")
    path.write_bytes(text.encode(encoding))
    split = load("-" if name == "-" else path, reading=Reading(encoding=asked))
    assert split.schema.labels == (["café", "ham"] if text == TABLE else None)
    assert split.schema.format.encoding == asked
    # the model reads other files of that encoding, and UTF-8 files with a mark
    for other in (encoding, "utf-8-sig"):
        path.write_bytes(text.encode(other))
        np.testing.assert_array_equal(other_rows(path, split.schema, 2)[1], split.y_train)


@pytest.mark.parametrize("text, labels", [(ROWS_OF_TEXT, ["-1", "1"]), (TABLE, ["café", "ham"])])
def test_a_stream_has_an_encoding(text, labels, tmp_path, capfd):
    path = tmp_path / "f"
    path.write_bytes(text.encode("utf-16"))
    printed(capfd, "train", *STREAMED, "--data", path, "--model", tmp_path / "m.npz")
    found = printed(capfd, "predict", tmp_path / "m.npz", path).split()
    assert sorted({*found}) == labels


@pytest.mark.parametrize(
    "name, encoding, message",
    [
        ("f.csv", "klingon", "--encoding is 'klingon', which Python does not support"),
        ("f.csv", "base64", "Python does not support"),
        ("f.csv", "cp1252", "f.csv is not cp1252; try another --encoding"),
        ("f.csv", None, "line 3: byte 0x9d is not UTF-8; specify the encoding, such as --encoding"),
        ("f.npz", "cp1252", "--encoding is for texts"),
    ],
)
def test_encodings_that_can_not_be_are_refused(name, encoding, message, tmp_path):
    (tmp_path / "f.csv").write_bytes(b"a,b,y\n1,2,x\n3,4,\x9d\n")
    np.savez(tmp_path / "f.npz", X=np.eye(2), y=[0, 1])
    with pytest.raises(RfxError, match=message):
        load(tmp_path / name, reading=Reading(encoding=encoding))


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
    message = f"{name} is {words}, which rfx can't read; save its rows as CSV, Parquet or LIBSVM"
    with pytest.raises(DataError, match=re.escape(message)):
        load(tmp_path / name)
    assert message in refused(capfd, "train", *STREAMED, "--data", tmp_path / name)


@pytest.mark.parametrize("missing", ["refuse", "mean"])
def test_a_column_that_is_away_can_be_given_without_values(missing, tmp_path):
    schema = load(churn(tmp_path, "a,b,y"), reading=Reading(missing=missing)).schema
    with pytest.raises(DataError) as error:
        inputs(put(tmp_path, "b\n1\n-1\n"), schema)
    hint = "to mark a column as missing, add it with empty cells"
    assert (hint in str(error.value)) == (missing == "mean")
    if missing == "mean":
        assert inputs(put(tmp_path, "b,a\n1,\n-1,\n"), schema).shape == (2, 2)
