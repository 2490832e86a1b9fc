"""Scanning a text in pieces gives the same problems, rows, columns and labels as reading it whole,
in bounded memory.
"""

import gzip
import io
import lzma
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx.data.libsvm import scan, svmlight, svmtext
from rfx.errors import DataError


def scanned(content, piece, zero_based=False):
    found = scan.Scan(io.BytesIO(content), zero_based)
    before, scan.PIECE = scan.PIECE, piece
    try:
        return found, list(found.problems())
    finally:
        scan.PIECE = before


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
    labels, indptr, indices, _, bad = svmtext.parse(content, zero_based)
    assert bad < 0 and (found.rows, found.columns) == (
        len(labels),
        int(indices.max(initial=-1)) + 1,
    )
    assert (found.low, found.high) == (labels.min(), labels.max()) and found.mean == pytest.approx(
        labels.mean()
    )
    distinct, counts = np.unique(labels, return_counts=True)
    assert found.labels.tolist() == distinct.tolist() and found.counts.tolist() == counts.tolist()
    assert (whole.rows, whole.columns) == (found.rows, found.columns)


def test_a_line_that_is_too_long_is_told_and_passed_over(monkeypatch):
    monkeypatch.setattr(scan, "LONGEST_LINE", 50)
    content = b"1 1:1\n2 " + b"1:1 " * 100 + b"\nx 1:1\n1 1:1\n" + b"1" * 200
    for piece in (7, 30):
        assert [
            (line, re.sub(" .*", "", message)) for line, _, message in scanned(content, piece)[1]
        ] == [
            (2, "the"),
            (3, "the"),
            (5, "the"),
        ]
    assert scanned(content, 1000)[1][0][0] == 2  # the pieces are not too long


def test_very_many_labels_are_not_counted(monkeypatch):
    monkeypatch.setattr(scan, "MOST_LABELS", 3)
    found, problems = scanned(b"1\n2\n3\n4\n", 3)
    assert (
        not problems
        and found.labels is None
        and (found.rows, found.low, found.high, found.mean) == (4, 1, 4, 2.5)
    )


def test_shape(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(lzma.compress(b"1 1:1\n2 7:1\n\n"))
    assert scan.shape(path) == (2, 7)
    path.write_text("<html>log in")
    with pytest.raises(
        DataError, match="data, line 1, column 1: the label '<html>log' is not a number"
    ):
        scan.shape(path)


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
    assert text.endswith("11,184,768 rows, 1 column, labels 1 (11,184,768)") and peak < least + 192
    text, peak = check(tmp_path / "zeros.gz", gzip.compress(b"1 1:0") + bomb(b"0", 256))
    assert (
        text.endswith(
            "1:1: the line is longer than 67,108,864 bytes, so the rest of it was not checked"
        )
        and peak < least + 192
    )


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
