"""CSV text: cells, quotes, headers, kinds of columns and what is wrong with a line, whatever the pieces that it is read in."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx.data import csvtext
from rfx.data.table import Words, joined
from rfx.errors import DataError


def read(text, chunk=csvtext.CHUNK, header=None, forced=frozenset()):
    content = text if isinstance(text, bytes) else text.encode()
    shape = csvtext.dialect(content, "f.csv", header)
    while True:
        try:
            return joined(csvtext.tables(io.BytesIO(content), shape, forced, chunk))
        except csvtext.KindChanged as change:
            forced = forced | change.columns


def cells(table):
    """The columns as lists of numbers and words."""
    return [
        [column.values[code] if code >= 0 else None for code in column.codes] if isinstance(column, Words) else column.tolist()
        for column in table.columns
    ]


# a writer leaves a carriage return without quotes, which a reader has to take for the end of a line
CELL = st.text(st.sampled_from('ab ,;"\n1.é\t'), max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=12), st.integers(1, 40), st.sampled_from(["\n", "\r\n"]))
def test_what_python_writes_is_read_in_any_pieces(rows, chunk, end):
    """The first column makes sure that no row is a blank line, the last row that columns are words."""
    rows = [*rows, ("word", "word")]
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows([["k", "l", "m"], *([f"x{i}", *row] for i, row in enumerate(rows))])
    found = cells(read(text.getvalue(), chunk))
    for position in (0, 1):
        words = [row[position].strip() for row in rows]
        assert found[position + 1] == [None if word in csvtext.ABSENT else word for word in words]


def test_numbers_are_the_nearest_doubles(rng=np.random.default_rng(0)):
    values = rng.standard_normal((200, 2)) * 10.0 ** rng.integers(-300, 300, (200, 2))
    text = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    for chunk in (50, 1 << 20):
        table = read(text, chunk)
        assert not table.named
        np.testing.assert_array_equal(np.column_stack(table.columns), values)
    assert table.lines.tolist() == list(range(1, 201))


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_headers_quotes_and_line_numbers(chunk):
    table = read('\n"a,b", c\n"two\nlines",1\n\nplain, 2\n"say ""no""",3\n', chunk)
    assert table.names == ["a,b", "c"] and table.named
    assert cells(table) == [["two\nlines", "plain", 'say "no"'], [1, 2, 3]]
    assert table.lines.tolist() == [3, 6, 7]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_told(separator):
    table = read("a,b\n1,x\n2,y\n".replace(",", separator))
    assert table.names == ["a", "b"] and cells(table) == [[1, 2], ["x", "y"]]


def test_a_header_is_told_by_its_cells_or_said():
    assert read("a,b\nc,d\n").names == ["a", "b"]
    assert read("a,1\nc,2\n").n_rows == 2
    assert read("a,b\nc,d\n", header=False).n_rows == 2
    assert read("2019,2020\n1,2\n", header=True).names == ["2019", "2020"]
    assert read("\ufeffa,b\n1,2\n").names == ["a", "b"]
    for chunk in (5, 1 << 20):  # within a text it is part of a cell
        assert cells(read("a,b\n1,2\n\ufeff3,4\n", chunk)) == [["1", "\ufeff3"], [2, 4]]
    assert read(",b\n1,2\n").names == ["column 1", "b"]


@pytest.mark.parametrize("chunk", [4, 1 << 20])
def test_a_column_is_words_where_any_of_its_cells_is(chunk):
    table = read("a,b,c,d\n01,5,true,\n2,6,False,7\nx,?,true,NA\n", chunk)
    assert cells(table)[0] == ["01", "2", "x"]
    assert cells(table)[2] == ["true", "False", "true"]
    assert cells(read("a,b\n1,true\n2,\n", chunk))[1] == ["true", None]
    np.testing.assert_array_equal(table.columns[1], [5, 6, np.nan])
    np.testing.assert_array_equal(table.columns[3], [np.nan, 7, np.nan])
    assert cells(read("a,b\n1,2\n", forced=frozenset([0])))[0] == ["1"]
    assert cells(read("a,b\n123456789012345678901234,2\n")) == [[123456789012345678901234.0], [2.0]]
    assert cells(read("a;b\n1,5;x\n-2,25e1;y\n")) == [[1.5, -22.5], ["x", "y"]]


@pytest.mark.parametrize("chunk", [3, 1 << 20])
@pytest.mark.parametrize(
    "text, message",
    [
        ("a,b\n1,2\n1,2,3\n", "f.csv, line 3: it has 3 cells, but the rows before have 2"),
        ("a,b\n1,2\n\n1\n", "f.csv, line 4: it has 1 cell, but the rows before have 2"),
        ('a,b\n1,2\n1,"x\n3,4\n', "f.csv, line 3: a quote is opened there and never closed"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("a,b\n1,\0\n", "is a binary file"),
        ("\n \n", "f.csv is empty"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(text, message, chunk):
    with pytest.raises(DataError, match=message):
        read(text, chunk)


def test_a_record_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(csvtext, "LONGEST_RECORD", 100)
    with pytest.raises(DataError, match="line 2: it is longer than 100 bytes"):
        read('a,b\n1,"' + "x\n" * 500, 50)


def test_libsvm_text_is_not_taken_for_cells():
    for text in (b"1 1:2 3:4\n", b"+1\t1:2\n", b"-1\n1 1:2", b"# a, b\n1 1:2\n", b"spam 1:2\n"):
        assert not csvtext.looks_like(text), text
    for text in (b"a,b\n1,2\n", b"1;2\n", b"x\ty\n1\t2\n", b"\xef\xbb\xbfa,b\n"):
        assert csvtext.looks_like(text), text
