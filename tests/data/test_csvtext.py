"""CSV text: cells, quotes, headers, column types and line errors do not depend on the pieces in
which the text is read.
"""

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx.data import textfiles
from rfx.data.tabular import readers
from rfx.data.tabular.table import Words
from rfx.errors import DataError


def read(text, header=None, as_words=frozenset()):
    content = text if isinstance(text, bytes) else text.encode()
    content = textfiles.opened(io.BytesIO(content), "f.csv").read()
    shape = readers.dialect(content, "f.csv", header)
    return readers.parse(content[shape.start :], shape, shape.line, as_words)


def in_pieces(text, chunk):
    """The cells of a text as words, read in pieces of so many bytes."""
    shape = readers.dialect(text.encode(), "f.csv")
    words = frozenset(range(len(shape.names)))
    read, whole = io.BytesIO(text.encode()).read, lambda raw: readers.whole_records(raw, ",")
    parts = [
        cells(table)
        for piece in textfiles.pieces(read, "f.csv", chunk, whole=whole)
        if (table := readers.parse(piece.raw, shape, piece.line, words, not piece.start))
    ]
    return [sum(columns, []) for columns in zip(*parts)]


def cells(table):
    """The columns as lists of numbers and words."""
    return [
        (
            [column.values[code] if code >= 0 else None for code in column.codes]
            if isinstance(column, Words)
            else column.tolist()
        )
        for column in table.columns
    ]


# a writer does not quote a carriage return, which a reader must take for the end of a line
CELL = st.text(st.sampled_from('ab ,;"\n1.é\t'), max_size=6)


@settings(max_examples=200, deadline=None)
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


def test_numbers_are_the_nearest_doubles(rng=np.random.default_rng(0)):
    values = rng.standard_normal((200, 2)) * 10.0 ** rng.integers(-300, 300, (200, 2))
    text = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    table = read(text)
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
    table = read(text)
    assert (table.names, table.named) == (names, True)
    np.testing.assert_equal(cells(table), columns)
    assert table.lines.tolist() == lines


def test_a_header_is_told_by_its_cells_or_said():
    assert read("a,b\nc,d\n").names == ["a", "b"]
    assert read("a,1\nc,2\n").n_rows == 2
    assert read("a,b\nc,d\n", header=False).n_rows == 2
    assert read("2019,2020\n1,2\n", header=True).names == ["2019", "2020"]
    # within a text it is part of a cell
    assert read(",b\n1,2\n").names == ["column 1", "b"]
    assert cells(read("a,b\n1,2\n", as_words=frozenset([0])))[0] == ["1"]


def test_dots_that_may_stand_between_thousands_are_told():
    rows = ['1.234;1.234;5;"-1.234.567";1.23', '12.345;0.500;6;"+9.000";2.345', "5;1.000;7;;3.456"]
    assert read("\n".join(["a;b;c;d;e", *rows, ""])).dotted == {
        0: "1.234",
        1: "",
        4: "",
    }
    assert read("a,b\n1.234,2\n").dotted == {}


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
    assert read(text, True).padded == {0: "02134", 5: "012", 6: "04", 7: "02"}
    assert read(text.removesuffix(end), True).padded[7] == "02"
    # the first row of a text without a header counts
    assert read(text.split(end, 1)[1].replace("10", "09", 1), False).padded[0] == "09"


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
        read(text)


def test_a_record_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(textfiles, "LONGEST_LINE", 100)
    with pytest.raises(DataError, match="line 2: it is longer than 100 bytes"):
        in_pieces('a,b\n1,"' + "x\n" * 500, 50)


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
        ("sep=;\n", None),
        ('"sep=;"\r\n', None),
    ],
)
def test_what_stands_above_the_header_is_left_out(above, noted):
    text = above + "a;b\n1;2\n3;4\n"
    text = text if "sep" in above else above + text.removeprefix(above).replace(";", ",")
    table = read(text)
    assert table.names == ["a", "b"] and cells(table) == [[1, 3], [2, 4]]
    assert table.lines.tolist() == [above.count("\n") + 2, above.count("\n") + 3]
    assert readers.dialect(text.encode(), "f.csv").notes == (() if noted is None else (noted,))


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
    ("2019,2020,churn", NUMBERS, True, True),
    ("2019,2020,no", NUMBERS, False, False),
    ("2024-01-01,2024-01-02,churn", NUMBERS, True, True),
    ("0,1,class", NUMBERS, None, None),
    ("0.5,1,maybe", NUMBERS, False, True),
    ("0.5,1,no", NUMBERS, False, False),
    ("NA,,no", NUMBERS, False, False),
    ("NA,,maybe", NUMBERS, None, None),
    ("unknown,1,no", NUMBERS, None, None),
    ("2019,2020", FLOATS, None, None),
    ("0.25,-1", FLOATS, False, False),
    ("50.5,-31.25", FLOATS, False, False),
    ("colour,size,class", WORDS, True, True),
    ("red,small,edible", WORDS, False, False),
    ("red,tiny,edible", WORDS, False, True),
    (",small,edible", WORDS, False, False),
    (",size,class", WORDS, True, True),
    ("0,1,2,3,4", "0.5,1,0,2,7\n0,0,1,2,3\n1,0,1,0,9\n2,0,1,1,1\n0,1,1,5,5\n", None, None),
    ("0,1,2", DECIMALS, True, True),
    ("1,2,3", DECIMALS, True, True),
    (",0,1", DECIMALS, True, True),
    ("0,1,y", DECIMALS, True, True),
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
