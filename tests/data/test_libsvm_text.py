"""The LIBSVM reader and writer: exact numbers, strict errors, long words."""

import gzip
import io
import re
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from shell import printed, refused

from rfx import env
from rfx.data import libsvm, textfiles
from rfx.errors import DataError

GOOD = (
    "+1 1:0.5 3:-2e-3 # a comment with 9:9\n\n-1\t2:1.\r\n   # only a comment\n 0.5 1:.5 2:+3"
    " 10:0\n"
)


pytestmark = pytest.mark.usefixtures("own_folders")


def put(tmp_path, content, name="data.libsvm"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problems(path):
    with textfiles.Text(path) as text:
        yield from libsvm.Scan(text).problems()


def parse(content, zero_based=False):
    """Dense X and y from bytes, without a file."""
    rows = libsvm.parse(content, zero_based)
    assert not len(rows.bad)
    return rows.matrix(rows.width), rows.y


def is_bad(content, zero_based=False):
    return len(libsvm.parse(content, zero_based).bad) > 0


def written(X, y, **options):
    handle = io.BytesIO()
    libsvm.write_rows(handle, X, y, **options)
    return handle.getvalue()


def test_reads_what_the_format_allows(tmp_path):
    X, y = libsvm.read(put(tmp_path, GOOD))
    assert y.tolist() == [1, -1, 0.5]
    # the explicit zero is kept
    entries = list(zip(*X.nonzero(), X.data[X.data != 0]))
    assert entries == [(0, 0, 0.5), (0, 2, -2e-3), (1, 1, 1), (2, 0, 0.5), (2, 1, 3)]
    assert (X.nnz, X.shape, X.format, X.dtype) == (6, (3, 10), "csr", np.float64)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.has_canonical_format


@pytest.mark.slow
def test_indices_beyond_32_bits(tmp_path):
    X, _ = libsvm.read(put(tmp_path, "1 1:2\n1 5000000000:3\n"))
    assert X.shape == (2, 5_000_000_000) and X.indices.dtype == X.indptr.dtype == np.int64
    assert X[1, 4_999_999_999] == 3


def test_many_threads_read_what_one_does(tmp_path):
    env.set_threads(7)
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(np.where(rng.random((300, 20)) < 0.3, rng.random((300, 20)), 0.0))
    y = rng.integers(0, 3, 300).astype(float)
    # colons, and lines without data
    content = written(X, y).replace(b"\n", b" # 1:1 2:2\n\n", 40)
    # enough for several parts, which threads share
    times = (12 << 20) // len(content)
    content *= times
    back, labels = libsvm.read(put(tmp_path, content))
    np.testing.assert_array_equal(labels, np.tile(y, times))
    np.testing.assert_array_equal(back.toarray(), np.tile(X.toarray(), (times, 1)))
    broken = bytearray(content)
    at = content.index(b"\n", len(content) // 2) + 1
    broken[at : at + 1] = b"?"
    line = content.count(b"\n", 0, at) + 1
    with pytest.raises(DataError, match=f"line {line}, column 1"):
        libsvm.read(put(tmp_path, bytes(broken)))


# Numbers
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.from_regex(
        r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True
    ).filter(str.isascii)
)
def test_any_decimal_has_the_value_that_float_gives_it(text):
    content = f"1 1:{text}\n".encode()
    if abs(float(text)) == np.inf:
        assert is_bad(content)
    else:
        assert parse(content)[0].data[0].tobytes() == np.float64(text).tobytes()
        assert parse(f"{text}\n".encode())[1].tobytes() == np.float64(text).tobytes()


def test_numbers_half_way_between_two_doubles():
    rng = np.random.default_rng(1)
    texts = [
        "9007199254740993",
        "429546617646932075e-2",
        "1e23",
        "8.5e22",
        "2.2250738585072011e-308",
        "5e-324",
        "0e99999",
    ]
    texts += ["%d.5" % (2**53 - 1 - k) for k in range(50)]
    texts += ["%de-%d" % (rng.integers(10**17), rng.integers(25)) for _ in range(2000)]
    texts += [
        "%.*e"
        % (int(rng.integers(14, 19)), rng.standard_normal() * 10.0 ** rng.integers(-300, 300))
        for _ in range(5000)
    ]
    _, labels = parse(("\n".join(texts) + "\n").encode())
    assert labels.tobytes() == np.array([float(text) for text in texts]).tobytes()


# Refusals
# --------------------------------------------------------------------------------------------------

ENTRY, NUMBER = "is not index:value", "is not a finite number"
REFUSED = [
    ("1:2 3:4", 1, "label is missing"),
    ("x 1:2", 1, f"'x' {NUMBER}"),
    ("nan 1:2", 1, NUMBER),
    ("1,2 1:2", 1, NUMBER),
    ("1e400 1:1", 1, NUMBER),
    ("1 0:2", 3, "index is 0 .*--zero-based"),
    ("1 2:1 2:3", 7, "2 comes after 2"),
    ("1 2:1 1:3", 7, "1 comes after 2"),
    ("1 qid:3", 3, "'qid:3' is not index:value"),
    *[(f"1 {word}", 3, ENTRY) for word in ("-3:2", "+3:2", "a:2", "1.5:2", ":2")],
    *[(f"1 {word}", 3, ENTRY) for word in ("\u0663:1", "99999999999999999999:1", "5")],
    *[(f"1 1:{word}", 5, NUMBER) for word in ("nan", "-Infinity", "1e999", "0x10", "1:2", "")],
    *[(f"1 1:{word}", 5, NUMBER) for word in ("2,3", "\u0663", "1_000", " 2")],
]


@pytest.mark.parametrize("newline", ["\n", "\r\n", ""])
@pytest.mark.parametrize("line, column, message", REFUSED)
def test_a_bad_line_is_refused_with_its_place(tmp_path, line, column, message, newline):
    path = put(tmp_path, f"1 1:2\n# comment\n\n-1 2:3\n{line}{newline}")
    with pytest.raises(
        DataError, match=f"^{re.escape(str(path))}, line 5, column {column}: .*({message})"
    ) as caught:
        libsvm.read(path)
    assert "\n" not in str(caught.value)
    assert next(problems(path))[:2] == (5, column)


@pytest.mark.parametrize(
    "tail", ["1 1:2 5", "1 1:2 5:", "1 1:2 5:-", "1 1:2 5:1e", "1 1:2 5:1e-", "-", "1 5:."]
)
def test_a_truncated_last_line(tmp_path, tail):
    with pytest.raises(DataError, match="line 2, column .*truncated"):
        libsvm.read(put(tmp_path, "1 1:2\n" + tail))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is empty"),
        (b"\n\n# nothing\n", "has no rows"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary file"),
        ("1 1:2\n".encode("utf-16-le"), "binary file"),
    ],
)
def test_files_that_hold_no_data(tmp_path, content, message):
    path = put(tmp_path, content)
    with pytest.raises(DataError, match=message):
        libsvm.read(path)
    found = list(problems(path))
    assert [where for *where, _ in found] == [[1, 1]]
    assert re.search(message.replace("is empty", "empty"), found[0][2])


# The writer
# --------------------------------------------------------------------------------------------------

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8)


@settings(max_examples=150, deadline=None)
@given(
    hnp.arrays(np.float64, SHAPES, elements=st.one_of(st.just(0.0), FINITE)),
    st.data(),
    st.booleans(),
    st.booleans(),
)
def test_a_round_trip_changes_nothing(X, data, sparse, zero_based):
    y = data.draw(hnp.arrays(np.float64, X.shape[0], elements=FINITE))
    content = written(scipy.sparse.csr_matrix(X) if sparse else X, y, zero_based=zero_based)
    back, labels = parse(content, zero_based)
    np.testing.assert_array_equal(labels, y)
    back = back.toarray()
    np.testing.assert_array_equal(back, X[:, : back.shape[1]])
    assert not X[:, back.shape[1] :].any()


def test_the_text_is_short_and_plain():
    X = np.array([[1, 0, 0.1, -2e-9], [0, 0, 0, 0]])
    assert written(X, np.array([1, -0.5])) == b"1 1:1 3:0.1 4:-2e-09\n-0.5\n"
    assert written(X, [1, 3], zero_based=True) == b"1 0:1 2:0.1 3:-2e-09\n3\n"
    # unsorted, with an explicit zero
    stored = scipy.sparse.csr_matrix(([3.0, 0.0], [2, 0], [0, 2]), shape=(1, 3))
    assert written(stored, [1]) == b"1 1:0 3:3\n"


def test_what_is_not_finite_is_not_written(tmp_path):
    path = put(tmp_path, "before")
    with pytest.raises(DataError, match="nan or infinity"):
        libsvm.write(path, np.array([[1.0], [np.nan]]), [1, 2])
    assert path.read_text() == "before"


# Labelled sequences
# --------------------------------------------------------------------------------------------------

SEQUENCES = "# aptamers\n+1 ACGT\n\n-1 ttga # weak\n0.5   CCCC\r\n"


def test_sequences_are_codes_of_letters(tmp_path):
    for content in (SEQUENCES, gzip.compress(SEQUENCES.encode())):
        X, y = libsvm.read(put(tmp_path, content))
        np.testing.assert_array_equal(X, [list(b"ACGT"), list(b"TTGA"), list(b"CCCC")])
        np.testing.assert_array_equal(y, [1, -1, 0.5])


@pytest.mark.parametrize(
    "text, message",
    [
        ("1 ACGT\n1 ACNT\n", "line 2: 'N' is not a known letter; the letters are A, C, G, T"),
        ("1 ACGT\n1 AC3T\n", "line 2: '3' is not a known letter"),
        (
            "1 ACGT\n\n1 ACG\n",
            "line 3: the sequence has 3 letters, but 4 are expected in every row",
        ),
        ("1 ACGT\n-1\n", "line 2: a row needs a number as label and one sequence of letters"),
        ("1 ACGT\n-1 AC GT\n", "line 2: a row needs a number as label and one sequence"),
        ("1 ACGT\nnan ACGT\n", "line 2: a row needs a number as label and one sequence"),
    ],
)
def test_a_bad_sequence_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=f"data.libsvm, {message}"):
        libsvm.read(put(tmp_path, text), letters=b"ACGT")


def test_a_model_refuses_letters_that_it_never_saw(tmp_path, capfd):
    rng = np.random.default_rng(0)
    rows = ["".join(rng.choice(list("ACGT"), 8)) for _ in range(60)]
    lines = [f"{1 if row[2] in 'AC' else -1} {row}\n" for row in rows]
    train, model = put(tmp_path, "".join(lines), "train"), tmp_path / "m.npz"
    words = "--method lkrf --kernel kmers --scaling none --k 2 --rho-share 0.1".split()
    printed(capfd, "train", "--data", train, *words, "--model", model)
    test = put(tmp_path, "1 ACGTACGT\n\n1 ACGTNCGT\n", "test")
    said = refused(capfd, "predict", model, test)
    assert "test, line 3: 'N' is not a known letter; the letters are A, C, G, T" in said


# Scans in pieces
# --------------------------------------------------------------------------------------------------


def scanned(content, piece, zero_based=False):
    scan = libsvm.Scan(textfiles.Text("f", content=content), zero_based)
    with mock.patch.object(textfiles, "SIZE", piece):
        return scan, list(scan.problems())


WORDS = st.sampled_from("1,-1,2.5,1:2,2:-1,3:1e3,0:1,x,1:nan,#,5:, ,\t,\r,\0".split(","))
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
    rows = libsvm.parse(content, zero_based)
    assert (found.rows, found.columns) == (len(rows.y), rows.width)
    assert (found.low, found.high) == (rows.y.min(), rows.y.max())
    assert found.mean == pytest.approx(rows.y.mean())
    assert sum(found.labels.values()) == len(rows.y)
    assert (whole.rows, whole.columns, whole.labels) == (
        found.rows,
        found.columns,
        found.labels,
    )


@pytest.mark.parametrize("piece", [7, 30, 1000])
def test_a_line_that_is_too_long_is_refused(piece):
    read = io.BytesIO(b"1 1:1\n2 " + b"1:1 " * 500 + b"\nx 1:1\n").read
    with pytest.raises(DataError, match="f, line 2: it is longer than 50 bytes"):
        list(textfiles.pieces(read, "f", piece, longest=50))
