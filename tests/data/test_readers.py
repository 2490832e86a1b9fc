"""CSV text: cells, quotes, headers, column types and line errors do not depend on the pieces in
which the text is read. npy, npz and Parquet files: the values of each kind of array and column.
"""

import csv
import io
import re

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx.data import load, tables, textfiles
from rfx.data.reading import Reading
from rfx.data.tabular import readers
from rfx.data.tabular.table import Words
from rfx.errors import DataError


def parsed(text, header=None, as_words=frozenset()):
    content = text if isinstance(text, bytes) else text.encode()
    content = textfiles.opened(io.BytesIO(content), "f.csv").read()
    shape = readers.dialect(content, "f.csv", header)
    return readers.parse(content[shape.start :], shape, shape.line, as_words)


def in_pieces(text, chunk, **limits):
    """The cells of a text as words, read in pieces of so many bytes."""
    shape = readers.dialect(text.encode(), "f.csv")
    words = frozenset(range(len(shape.names)))
    read, whole = io.BytesIO(text.encode()).read, lambda raw: readers.whole_records(raw, ",")
    parts = [
        columns_of(table)
        for piece in textfiles.pieces(read, "f.csv", chunk, whole=whole, **limits)
        if (table := readers.parse(piece.raw, shape, piece.line, words, not piece.start))
    ]
    return [sum(columns, []) for columns in zip(*parts)]


def cells(column):
    """The cells of a column, None for a missing one."""
    if isinstance(column, Words):
        return [None if code < 0 else column.values[code] for code in column.codes]
    return column.tolist()


def columns_of(table):
    """The columns as lists of numbers and words."""
    return [cells(column) for column in table.columns]


# a writer does not quote a carriage return, which a reader must take for the end of a line
CELL = st.text(st.sampled_from('ab ,;"\n1.é\t'), max_size=6)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=12),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_python_writes_is_read_in_any_pieces(rows, chunk, end):
    """The first column prevents blank lines; the last row makes all columns words."""
    rows = [*rows, ("word", "word")]
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows(
        [["k", "l", "m"], *([f"x{i}", *row] for i, row in enumerate(rows))]
    )
    found = in_pieces(text.getvalue(), chunk)
    for position in (0, 1):
        words = [row[position].strip() for row in rows]
        assert found[position + 1] == [None if word in readers.ABSENT else word for word in words]


def test_numbers_are_the_nearest_doubles(rng):
    values = rng.standard_normal((200, 2)) * 10.0 ** rng.integers(-300, 300, (200, 2))
    table = parsed("\n".join(",".join(map(repr, row)) for row in values.tolist()))
    assert not table.named
    np.testing.assert_array_equal(np.column_stack(table.columns), values)
    assert table.lines.tolist() == list(range(1, 201))


NAN = float("nan")
# A text, the names of its columns, their cells, and the lines of its rows.
TEXTS = [
    (
        '\n"a,b", c\n"two\nlines",1\n\nplain, 2\n"say ""no""",3\n',
        ["a,b", "c"],
        [["two\nlines", "plain", 'say "no"'], [1, 2, 3]],
        [3, 6, 7],
    ),
    *(
        ("a,b\n1,x\n2,y\n".replace(",", separator), ["a", "b"], [[1, 2], ["x", "y"]], [2, 3])
        for separator in ",;\t|"
    ),
    (
        '  a   b\tkind\n 1.5  2   "San  Jose"\n\n\t3 \t4  x  \n5 6 "say ""no"""\n',
        ["a", "b", "kind"],
        [[1.5, 3, 5], [2, 4, 6], ["San  Jose", "x", 'say "no"']],
        [2, 4, 5],
    ),
    # a column is words where any of its cells is
    (
        "a,b,c,d\n01,5,true,\n2,6,False,7\nx,?,true,NA\n",
        ["a", "b", "c", "d"],
        [["01", "2", "x"], [5, 6, NAN], ["true", "False", "true"], [NAN, 7, NAN]],
        [2, 3, 4],
    ),
    ("a,b\n1,true\n2,\n", ["a", "b"], [[1, 2], ["true", None]], [2, 3]),
    ("a,b\n123456789012345678901234,2\n", ["a", "b"], [[123456789012345678901234.0], [2]], [2]),
    ("a;b\n1,5;x\n-2,25e1;y\n", ["a", "b"], [[1.5, -22.5], ["x", "y"]], [2, 3]),
    # alone, 1,234 could be a whole number with a thousands separator
    ("a;b\n1,234;x\n1,5;y\n", ["a", "b"], [[1.234, 1.5], ["x", "y"]], [2, 3]),
]


@pytest.mark.parametrize("text, names, columns, lines", TEXTS)
def test_names_cells_and_lines_of_a_text(text, names, columns, lines):
    table = parsed(text)
    assert (table.names, table.named) == (names, True)
    np.testing.assert_equal(columns_of(table), columns)
    assert table.lines.tolist() == lines


def test_a_header_is_told_by_its_cells_or_said():
    assert parsed("a,b\nc,d\n", header=False).n_rows == 2
    assert parsed("2019,2020\n1,2\n", header=True).names == ["2019", "2020"]
    # within a text it is part of a cell
    assert parsed(",b\n1,2\n").names == ["column 1", "b"]
    assert columns_of(parsed("a,b\n1,2\n", as_words=frozenset([0])))[0] == ["1"]


def test_very_many_digits_keep_their_spelling_among_words():
    digits = "9" * 23
    text = f"0123,1_000\n{digits},{digits}\n".encode()
    shape = readers.dialect(text, "f.csv", header=False)
    table = readers.parse(text, shape, as_words=frozenset([0]), whole=True)
    assert columns_of(table) == [["0123", digits], ["1_000", digits]]


def test_dots_that_may_stand_between_thousands_are_told():
    rows = ['1.234;1.234;5;"-1.234.567";1.23', '12.345;0.500;6;"+9.000";2.345', "5;1.000;7;;3.456"]
    assert parsed("\n".join(["a;b;c;d;e", *rows, ""])).dotted == {
        0: "1.234",
        1: "",
        4: "",
    }
    assert parsed("a,b\n1.234,2\n").dotted == {}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_zeros_in_front_of_digits_are_told(separator, end):
    rows = [
        ["k", "01", "c", "d", "e", "f", "g", "h"],  # a header may be digits
        ["10", "7", "0.5", "0", "00:30", '"12"', "3", "1"],
        ["02134", "8", "00.5", "0", "01/02", '"012"', "-07", "1"],
        ["00501", "9", "01e2", "0", "0x", '"013"', "04", "02"],
    ]
    text = "".join(separator.join(row) + end for row in rows)
    assert parsed(text, True).padded == {0: "02134", 5: "012", 6: "04", 7: "02"}
    assert parsed(text.removesuffix(end), True).padded[7] == "02"
    # the first row of a text without a header counts
    assert parsed(text.split(end, 1)[1].replace("10", "09", 1), False).padded[0] == "09"


@pytest.mark.parametrize(
    "text, message",
    [
        ("a,b\n1,2\n1,2,3\n", "f.csv, line 3: it has 3 cells, but the previous rows have 2"),
        ("a,b\n1,2\n\n1\n", "f.csv, line 4: it has 1 cell, but the previous rows have 2"),
        ('a,b\n1,2\n1,"x\n3,4\n', "f.csv, line 3: a quote opens there and is never closed"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("a,b\n1,\0\n", "is a binary file"),
        ("\n \n", "f.csv is empty"),
        (
            "Sales of 2024\na,b,y\n1,2,x\n2,3,z\n",
            "f.csv, line 2: it has 3 cells, but the previous rows have 1; remove it, or a title",
        ),
        ("a,b\n1,2\n# end\n", "f.csv, line 3: it has 1 cell, but the previous rows have 2"),
        ("1 1:2 2:3\n2 1:3 2:4\n", "f.csv is LIBSVM text, not CSV; rename it to end in .libsvm"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(text, message):
    with pytest.raises(DataError, match=message):
        parsed(text)


def test_a_record_without_end_is_refused():
    with pytest.raises(DataError, match="line 2: it is longer than 100 bytes"):
        in_pieces('a,b\n1,"' + "x\n" * 500, 50, longest=100)


def test_libsvm_text_is_not_taken_for_cells():
    for text in (b"1 1:2 3:4\n", b"+1\t1:2\n", b"-1\n1 1:2", b"# a, b\n1 1:2\n", b"spam 1:2\n"):
        assert not readers.looks_like(text), text
    for text in (b"a,b\n1,2\n", b"1;2\n", b"x\ty\n1\t2\n", b"\xef\xbb\xbfa,b\n"):
        assert readers.looks_like(text), text


@pytest.mark.parametrize(
    "text, separator",
    [
        ("1,5;2,5;3,1\n2,0;1,25;0,5\n", ";"),
        ("1,x;y,3\n2,z;w,4\n", ","),
        ("a b,c d\n1 2,3 4\n", ","),
        ("1;2\n3;4\n", ";"),
    ],
)
def test_decimal_commas_and_spaces_in_cells_do_not_separate(text, separator):
    assert readers.dialect(text.encode(), "f.csv").separator == separator


@pytest.mark.parametrize(
    "above, noted",
    [
        ("# exported 2024, by hand\n", "f.csv: what begins with # is ignored (line 1)"),
        ('# a "quote\n\n#,,\n', "f.csv: what begins with # is ignored (line 1, 3)"),
    ],
)
def test_what_stands_above_the_header_is_left_out(above, noted):
    text = above + "a,b\n1,2\n3,4\n"
    table = parsed(text)
    assert table.names == ["a", "b"] and columns_of(table) == [[1, 3], [2, 4]]
    assert table.lines.tolist() == [above.count("\n") + 2, above.count("\n") + 3]
    assert readers.dialect(text.encode(), "f.csv").notes == (noted,)


# first rows, rows below, whether the first is a header, whether there is a note; None: ambiguous,
# so refused
NUMBERS, FLOATS = (
    "1.5,2.5,no\n-1,0.5,yes\n0.5,1,no\n1,-2,yes\n2,1,no\n0,0.25,yes\n",
    "1.5,2.5\n-1,0.5\n0.5,1\n1,-2\n2,1\n0,0.25\n",
)
WORDS = "red,big,poison\nblue,small,edible\nred,small,poison\nblue,big,edible\n" * 3
DECIMALS = "0.5,1.0,1\n-0.25,0.5,2\n1.0,0.0,1\n0.5,2.0,2\n1.5,0.25,1\n"
GUESSES = [
    ("a,b,y", NUMBERS, True, False),
    (",b,y", NUMBERS, True, False),
    ("2019,2020,churn", NUMBERS, None, None),
    ("2019,2020,no", NUMBERS, False, False),
    ("2024-01-01,2024-01-02,churn", NUMBERS, None, None),
    ("0,1,class", NUMBERS, None, None),
    ("0.5,1,maybe", NUMBERS, False, True),
    ("0.5,1,no", NUMBERS, False, False),
    ("NA,,no", NUMBERS, False, False),
    ("NA,,maybe", NUMBERS, None, None),
    ("unknown,1,no", NUMBERS, None, None),
    ("2019,2020", FLOATS, None, None),
    ("0.25,-1", FLOATS, False, False),
    ("50.5,-31.25", FLOATS, None, None),
    ("colour,size,class", WORDS, True, True),
    ("red,small,edible", WORDS, False, False),
    ("red,tiny,edible", WORDS, False, True),
    (",small,edible", WORDS, False, False),
    (",size,class", WORDS, True, True),
    ("0,1,2,3,4", "0.5,1,0,2,7\n0,0,1,2,3\n1,0,1,0,9\n2,0,1,1,1\n0,1,1,5,5\n", None, None),
    ("0,1,2", DECIMALS, None, None),
    ("1,2,3", DECIMALS, None, None),
    (",0,1", DECIMALS, None, None),
    ("0,1,y", DECIMALS, None, None),
    ("0,1,2", "1.5,2,3\n0.5,1,4\n1,2,2\n2,2.5,1\n3,1,5\n", None, None),
    ("0,1,2", DECIMALS[:12], None, None),
    ("0.0,1.0,2.0", DECIMALS, False, False),
    ("1,2,3,4", "1,3,2,4\n2,1,3,4\n4,3,2,1\n1,2,3,4\n3,2,1,4\n4,1,2,3\n", None, None),
]


@pytest.mark.parametrize("first, below, header, noted", GUESSES)
def test_a_header_is_guessed_from_what_stands_below(first, below, header, noted):
    text = f"{first}\n{below}"
    if header is None:
        with pytest.raises(
            DataError,
            match=(
                r"f.csv, line 1: it may be a header or a row \(.*; specify --header or"
                r" --no-header$"
            ),
        ):
            readers.dialect(text.encode(), "f.csv")
        return
    shape = readers.dialect(text.encode(), "f.csv")
    assert shape.header == header and bool(shape.notes) == noted
    if noted:
        words = (
            "read as the header, .*; use --no-header if this is wrong"
            if header
            else "read as a row, .*; use --header if this is wrong"
        )
        assert re.search(f"line 1 of f.csv is {words}", shape.notes[0])


# ---------------------------------------------------------------- npy, npz and Parquet files

pytestmark = pytest.mark.usefixtures("own_folders")
N = 60


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 2))


@pytest.fixture
def y(X):
    """Two classes of the rows of X, 0 and 1."""
    return (X[:, 0] > 0).astype(int)


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def sparse_arrays(X):
    """The arrays of a file written by scipy.sparse.save_npz."""
    matrix = scipy.sparse.csr_matrix(X)
    names = ("indptr", "indices", "data", "shape")
    return {name: getattr(matrix, name) for name in names} | {"format": b"csr"}


def read(path):
    return tables.File(path).read(Reading())


# ---------------------------------------------------------------------- numpy


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["?", "u1", ">i2", "<u8", "<f2", ">f4", "<f8", "g"])
def test_numbers_of_every_layout_are_read_as_numpy_has_them(dtype, order, tmp_path):
    values = (np.arange(N * 3).reshape(N, 3) % 100).astype(dtype)
    path = saved(tmp_path / "a.npz", X=np.asarray(values, order=order), y=values[:, 0])
    found = read(path)
    np.testing.assert_array_equal(np.column_stack(found.columns[:3]), values.astype(np.float64))
    np.testing.assert_array_equal(found.columns[3], values[:, 0].astype(np.float64))
    np.save(tmp_path / "a.npy", np.asarray(values, order=order))
    np.testing.assert_array_equal(
        np.column_stack(read(tmp_path / "a.npy").columns), values.astype(np.float64)
    )


@pytest.mark.parametrize(
    "array, message",
    [
        pytest.param(np.ones((N, 2), complex), "type complex128 instead of numbers", id="complex"),
        pytest.param(np.zeros((N, 2), "M8[D]"), "type datetime64", id="dates"),
        pytest.param(np.zeros((N, 2), [("a", "f8")]), "instead of numbers", id="records"),
        pytest.param(
            np.full((N, 2), "a"),
            "type <U1 instead of numbers; save columns of several types",
            id="words",
        ),
        pytest.param(
            np.zeros(N), r"shape \(60,\); .* such as X.reshape\(len\(X\), -1\)", id="one axis"
        ),
        pytest.param(np.zeros((N, 2, 2)), r"shape \(60, 2, 2\)", id="images"),
        pytest.param(np.array(3.0), r"shape \(\)", id="no axis"),
        pytest.param(np.zeros((0, 2)), r"shape \(0, 2\)", id="no rows"),
        pytest.param(np.zeros((N, 0)), r"shape \(60, 0\)", id="no columns"),
        pytest.param(
            np.ones((N, 2), object), "not a readable .np. file .Object arrays", id="objects"
        ),
    ],
)
def test_inputs_that_are_no_table_are_refused_in_a_sentence(array, message, tmp_path, y):
    np.save(tmp_path / "a.npy", array)
    for path in (saved(tmp_path / "a.npz", X=array, y=y), tmp_path / "a.npy"):
        with pytest.raises(DataError, match=message):
            read(path)


@pytest.mark.parametrize(
    "array, message",
    [
        pytest.param(np.ones(N, complex), "the array of targets has type complex128", id="complex"),
        pytest.param(np.zeros(N, "M8[s]"), "the array of targets has type datetime64", id="dates"),
        pytest.param(np.ones((1, N)), r"60 rows, but its targets have shape \(1, 60\)", id="a row"),
        pytest.param(np.ones(N - 1), r"60 rows, but its targets have shape \(59,\)", id="too few"),
        pytest.param(np.array(1), r"60 rows, but its targets have shape \(\)", id="no axis"),
        pytest.param(np.ones(N, object), "not a readable .npz file .Object arrays", id="objects"),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_targets_that_are_none_are_refused_in_a_sentence(array, message, sparse, tmp_path, X):
    inputs = sparse_arrays(X) if sparse else {"X": X}
    with pytest.raises(DataError, match=message):
        read(saved(tmp_path / "a.npz", **inputs, y=array))


@pytest.mark.parametrize(
    "cells, labels",
    [(("0", "1"), ["0", "1"]), (("007", "7"), ["007", "7"])] + [((b"10", b"20"), ["10", "20"])],
)
def test_targets_that_are_words_of_digits_are_labels(cells, labels, tmp_path, X, y):
    schema = load(saved(tmp_path / "a.npz", X=X, y=np.where(y, *cells))).schema
    assert schema.labels == labels


def test_words_of_digits_in_parquet_are_categories(tmp_path, X, y):
    zips = np.where(np.arange(N) % 3, "94105", "02139")
    path = written(tmp_path / "a.parquet", {"a": X[:, 0], "zip": zips, "y": np.where(y, "p", "q")})
    assert load(path).schema.titles() == ["a", "zip=02139", "zip=94105"]


def test_a_damaged_npz_is_refused(tmp_path, X, y):
    path = saved(tmp_path / "a.npz", X=X, y=y)
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"x" + whole):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="is not a readable .npz file"):
            read(path)


# ---------------------------------------------------------------------- Parquet


def written(path, columns, names=None, **how):
    table = pytest.importorskip("pyarrow").table(columns, names)
    pytest.importorskip("pyarrow.parquet").write_table(table, path, **how)
    return path


@pytest.mark.parametrize(
    "kind", ["string", "large_string", "binary", "large_binary", "dictionary", "string_view"]
)
@pytest.mark.parametrize("layout", [{}, {"row_group_size": 7}, {"use_dictionary": False}])
def test_words_of_every_layout_are_read_as_pyarrow_has_them(layout, kind, tmp_path, X):
    pyarrow = pytest.importorskip("pyarrow")
    words = [None if number % 5 == 0 else f"é{number % 17}" * (number % 3) for number in range(N)]
    types = {"dictionary": pyarrow.dictionary(pyarrow.int8(), pyarrow.string())}
    column = pyarrow.array(words, types.get(kind) or getattr(pyarrow, kind)())
    path = written(
        tmp_path / "a.parquet",
        {"a": np.arange(N), "s": column, "t": pyarrow.nulls(N), "y": X[:, 0]},
        **layout,
    )
    found = read(path)
    assert found.names == ["a", "s", "t", "y"]
    assert cells(found.columns[1]) == words and cells(found.columns[2]) == [None] * N
    np.testing.assert_array_equal(found.columns[0], np.arange(N))
    np.testing.assert_array_equal(found.columns[3], X[:, 0])


@pytest.mark.parametrize("no, yes", [(0, 1), ("no", "yes"), (b"no", b"yes")])
def test_targets_in_one_column_are_targets(no, yes, tmp_path, X):
    y = np.where(X[:, 0] > 0, yes, no)
    flat = read(saved(tmp_path / "a.npz", X=X, y=y)).columns[2]
    assert cells(read(saved(tmp_path / "b.npz", X=X, y=y[:, None])).columns[2]) == cells(flat)
    targets = read(saved(tmp_path / "c.npz", **sparse_arrays(X), y=y[:, None]))[1]
    assert list(map(str, cells(targets))) == [str(cell) for cell in y.astype(str)]


@pytest.mark.parametrize(
    "cells, kind, reason",
    [
        ([[1, 2]] * N, None, "is of type list"),
        ([{"b": 1}] * N, None, "is of type struct"),
        ([b"a\xff"] * N, "binary", "has words that are not UTF-8"),
        ([b"a\xff"] * N, "string", "has words that are not UTF-8"),
    ],
)
def test_columns_that_are_no_numbers_or_words_must_be_ignored(cells, kind, reason, tmp_path, X, y):
    column = pytest.importorskip("pyarrow").array(cells)
    column = column if kind is None else column.view(kind)
    labels = np.where(y, "p", "q")
    path = written(tmp_path / "a.parquet", {"o": column, "a": X[:, 0], "y": labels})
    with pytest.raises(DataError, match=f"column 'o' {reason}.*ignore it with --ignore o"):
        load(path)
    schema = load(path, reading=Reading(ignore=("o",))).schema
    assert tables.other_rows(path, schema, 1)[0].shape == (N, 1)
    with pytest.raises(DataError, match=f"column 'a' {reason}"):
        tables.other_rows(written(path, {"a": column, "y": labels}), schema, 1, targets="ignored")


def test_two_parquet_columns_of_one_name_are_a_sentence(tmp_path):
    path = written(tmp_path / "t.parquet", [[1.0, 2.0]] * 3, names=["a", "a", "y"])
    with pytest.raises(DataError, match="two columns of the same name"):
        read(path)
