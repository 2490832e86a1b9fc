"""Scanning a text in pieces gives the same problems, rows, columns and labels as reading it whole,
in bounded memory.
"""

import gzip
import lzma
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx.data import encodings, pieces
from rfx.data.libsvm import parser, svmlight
from rfx.errors import DataError


def scanned(content, piece, zero_based=False):
    before, pieces.SIZE = pieces.SIZE, piece
    try:
        scan = svmlight.Scan(encodings.Text("f", content=content), zero_based, worded=False)
        return scan, list(scan.problems())
    finally:
        pieces.SIZE = before


WORDS = st.sampled_from(
    [
        "1",
        "-1",
        "2.5",
        "1:2",
        "2:-1",
        "3:1e3",
        "0:1",
        "x",
        "1:nan",
        "#",
        "5:",
        " ",
        "\t",
        "\r",
        "\0",
    ]
)
TEXTS = (
    st.lists(st.lists(WORDS, max_size=4).map(" ".join), max_size=8).map("\n".join).map(str.encode)
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(1, 40), st.booleans())
def test_pieces_of_any_size_tell_the_same(content, piece, zero_based):
    found, problems = scanned(content, piece, zero_based)
    whole, expected = scanned(content, 1 << 20, zero_based)
    if b"\0" in content and expected:
        # the piece of the first problem decides whether the file is binary
        assert problems
        return
    assert problems == expected
    if problems:
        return
    rows = parser.parse(content, zero_based)
    assert (found.rows, found.columns) == (len(rows.y), rows.width)
    assert (found.low, found.high) == (rows.y.min(), rows.y.max())
    assert found.mean == pytest.approx(rows.y.mean())
    assert sum(found.labels().values()) == len(rows.y)
    assert (whole.rows, whole.columns, whole.labels()) == (
        found.rows,
        found.columns,
        found.labels(),
    )


@pytest.mark.parametrize("piece", [7, 30, 1000])
def test_a_line_that_is_too_long_is_refused(monkeypatch, piece):
    monkeypatch.setattr(pieces, "LONGEST_LINE", 50)
    content = b"1 1:1\n2 " + b"1:1 " * 500 + b"\nx 1:1\n"
    with pytest.raises(DataError, match="line 2: it is longer than 50 bytes"):
        scanned(content, piece)


def test_very_many_labels_are_not_counted(monkeypatch):
    monkeypatch.setattr(svmlight, "MOST_LABELS", 3)
    found, problems = scanned(b"1\n2\n3\n4\n", 3)
    assert not problems and found.labels() is None
    assert (found.rows, found.low, found.high, found.mean) == (4, 1, 4, 2.5)


def test_shape(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(lzma.compress(b"1 1:1\n2 7:1\n\n"))
    assert svmlight.shape(path) == (2, 7)
    path.write_text("<html>log in")
    with pytest.raises(
        DataError, match="data, line 1, column 1: the label '<html>log' is not a finite number"
    ):
        svmlight.shape(path)


def bomb(line, megabytes):
    """A gzip file with this many megabytes of one line, compressed to a few hundred bytes each."""
    return gzip.compress(line * ((1 << 20) // len(line))) * megabytes


PEAK = """
import sys
from rfx.cli import main
try:
    main(["check", sys.argv[1]])
finally:
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def check(path, content):
    """The output of `rfx check` for a file, and its peak resident memory in MB."""
    path.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, timeout=120
    )
    text, _, peak = done.stdout.strip().rpartition("\n")
    return text, int(peak) / 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no /proc")
def test_a_bomb_is_checked_in_bounded_memory(tmp_path):
    text, least = check(tmp_path / "small", b"1 1:1\n")
    assert text.endswith("1 row, 1 column, labels 1 (1)")
    # 11 million rows, whose arrays alone take 300 MB
    text, peak = check(tmp_path / "rows.gz", bomb(b"1 1:1\n", 64))
    assert text.endswith("11,184,768 rows, 1 column, labels 1 (11,184,768)") and peak < least + 256
    _, peak = check(tmp_path / "zeros.gz", gzip.compress(b"1 1:0") + bomb(b"0", 256))
    assert peak < least + 250


def test_reading_a_bomb_whole_stops_at_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "bomb.xz"
    path.write_bytes(lzma.compress(b"\n" * (20 << 20)))
    monkeypatch.setenv("RFX_MAX_BYTES", "10M")
    with pytest.raises(
        DataError,
        match=(
            "bomb.xz is larger than 10,485,760 bytes when unpacked.*RFX_MAX_BYTES sets another"
            " limit"
        ),
    ):
        svmlight.read(path)
    monkeypatch.setenv("RFX_MAX_BYTES", "21M")
    with pytest.raises(DataError, match="has no rows"):
        svmlight.read(path)
