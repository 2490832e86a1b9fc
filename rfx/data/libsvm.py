"""LIBSVM text: parsing, messages for bad lines, reading, writing, and labelled sequences."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import scipy.sparse as sp

from rfx import env, files
from rfx.compiled import njit
from rfx.data import textfiles
from rfx.data.tabular.table import Words
from rfx.errors import DataError, NoRows, quoted, warn
from rfx.numerals import NUMBER, is_number
from rfx.parallel import for_ranges

# ----------------------------------------------------------------------
# The LIBSVM text format: parse bytes into arrays, and describe the problems of a line.
#
# Compiled code parses and decides whether a line is valid; `line_problems` describes in Python what
# is wrong with an invalid one. The rules are thus written twice, for speed and for messages, and
# the tests check that both agree.
#
# Numbers are correctly rounded, with the same bits as Python's float(). Short ones use Clinger's
# exact path (a product or quotient of two exact doubles); longer ones are quotients with about a
# hundred bits (T. J. Dekker, "A floating-point technique for extending the available precision",
# Numerische Mathematik 18, 1971), which decide the rounding unless they are very close to the
# middle of two doubles. The others are reported as undecided, and the caller uses float().
#
# All compiled code is in one file because numba's cache of a function only detects changes of its
# own file.

_EXACT, _UNDECIDED, _MALFORMED = 0, 1, 2
_NEWLINE, _HASH, _COLON = 10, 35, 58

_U = np.uint64
# Powers of ten as sums of two doubles; up to the exact ones, the second is zero.
_TENS = np.array([float(10**k) for k in range(61)])
_RESTS = np.array([float(10**k - int(_TENS[k])) for k in range(61)])
_EXACT_TENS = 22


# Function calls per number would cost a quarter of the time, so these parts are inlined.


@njit(cache=True, nogil=True, inline="always")
def _sign(text, at, stop):
    """(whether there is a minus at `at`, the position after a sign)."""
    if at < stop and (text[at] == 45 or text[at] == 43):
        return text[at] == 45, at + 1
    return False, at


@njit(cache=True, nogil=True, inline="always")
def _past_zeros(text, at, stop):
    while at < stop and text[at] == 48:
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _exponent(text, at, stop):
    """(the power of ten after an e, the position after it, whether there is one)."""
    downwards, first = _sign(text, at, stop)
    at, power = first, 0
    while at < stop and 48 <= text[at] <= 57:
        if power < 100000:
            power = power * 10 + (text[at] - 48)
        at += 1
    return (-power if downwards else power), at, at > first


@njit(cache=True, nogil=True, inline="always")
def _halves(x):
    """Two doubles of half as many bits whose sum is x."""
    wide = 134217729.0 * x
    high = wide - (wide - x)
    return high, x - high


@njit(cache=True, nogil=True, inline="always")
def _nearest(mantissa, q):
    """(the double closest to mantissa * 10^q, for a mantissa above 0, whether that is certain)."""
    if mantissa <= _U(1 << 53) and -_EXACT_TENS <= q <= _EXACT_TENS:
        value = np.float64(mantissa)
        return (value * _TENS[q] if q >= 0 else value / _TENS[-q]), True
    if q >= 0 or -q >= len(_TENS):
        return 0.0, False
    high, ten = np.float64(mantissa & ~_U(2047)), _TENS[-q]
    first = high / ten
    a, b = _halves(first)
    c, d = _halves(ten)
    product = first * ten
    error = ((a * c - product) + a * d + b * c) + b * d
    left = ((high - product) - error) + (np.float64(mantissa & _U(2047)) - first * _RESTS[-q])
    low, top = first + left / ten * (1 - 1e-9), first + left / ten * (1 + 1e-9)
    return low, low == top


@njit(cache=True, nogil=True, inline="always")
def _number(text, at, stop):
    """Read [+-]digits[.digits][e[+-]digits] at text[at:stop] (uint8).

    Returns (value, end, status): end is the first byte after the number; status is _EXACT,
    _UNDECIDED (well formed, but float() must decide its value) or _MALFORMED (end is then the
    position of the error).
    """
    negative, first = _sign(text, at, stop)
    at = _past_zeros(text, first, stop)
    start = at
    mantissa = _U(0)
    while at < stop and 48 <= text[at] <= 57:
        mantissa = mantissa * _U(10) + _U(text[at] - 48)
        at += 1
    digits = at - start  # significant digits: 19 always fit into 64 bits
    seen = at > first
    q = 0
    if at < stop and text[at] == 46:
        point = at + 1
        start = _past_zeros(text, point, stop) if digits == 0 else point
        at = start
        while at < stop and 48 <= text[at] <= 57:
            mantissa = mantissa * _U(10) + _U(text[at] - 48)
            at += 1
        digits += at - start
        seen = seen or at > point
        q = point - at
    if not seen:
        return 0.0, at, _MALFORMED
    if at < stop and (text[at] == 101 or text[at] == 69):
        power, at, good = _exponent(text, at + 1, stop)
        if not good:
            return 0.0, at, _MALFORMED
        q += power
    if digits > 19:
        return 0.0, at, _UNDECIDED
    if mantissa == _U(0):
        return (-0.0 if negative else 0.0), at, _EXACT
    value, certain = _nearest(mantissa, q)
    if not certain:
        return 0.0, at, _UNDECIDED
    return (-value if negative else value), at, _EXACT


@njit(cache=True, nogil=True)
def _count_marks(text, at, stop):
    """Newlines and colons in text[at:stop]: upper bounds of its rows and entries."""
    newlines = 0
    colons = 0
    for i in range(at, stop):
        newlines += text[i] == _NEWLINE
        colons += text[i] == _COLON
    return newlines, colons


@njit(cache=True, nogil=True, inline="always")
def _blank(byte):
    return byte == 32 or byte == 9 or byte == 13


@njit(cache=True, nogil=True, inline="always")
def _ends_token(text, at, stop):
    return at >= stop or _blank(text[at]) or text[at] == _NEWLINE or text[at] == _HASH


@njit(cache=True, nogil=True)
def _line_end(text, at, stop):
    while at < stop and text[at] != _NEWLINE:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _is_entry(text, at, stop):
    """Whether the token at `at` begins with digits and a colon."""
    first = at
    while at < stop and 48 <= text[at] <= 57:
        at += 1
    return at > first and at < stop and text[at] == _COLON


@njit(cache=True, nogil=True)
def _label(text, at, stop, optional):
    """(value, end, status) like `_number` for a label; nan for none, which ends where it begins."""
    value, end, status = _number(text, at, stop)
    if status != _MALFORMED and _ends_token(text, end, stop):
        return value, end, status
    return np.nan, at, _EXACT if optional and _is_entry(text, at, stop) else _MALFORMED


@njit(cache=True, nogil=True, inline="always")
def _past_blanks(text, at, stop):
    """The first position from `at` on that is not blank, or stop."""
    while at < stop and _blank(text[at]):
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _ends_entries(text, at, stop):
    """Whether no entry can begin here: at the end of the line, or at a comment."""
    return at >= stop or text[at] == _NEWLINE or text[at] == _HASH


@njit(cache=True, nogil=True, inline="always")
def _with_room(array, count):
    """The array (m, 2), doubled in length if its first `count` rows fill it."""
    if count == len(array):
        return np.concatenate((array, np.empty_like(array)))
    return array


@njit(cache=True, nogil=True)
def _parse_lines(text, at, stop, base, optional, labels, ends, indices, values):
    """Parse whole lines text[at:stop] into labels[row], ends[row] (entries so far), indices and
    values (zero-based).

    Returns (rows, entries, bad, wide, asked): bad has the offsets of the bad lines, which are left
    out; wide: an index did not fit into the type of `indices` (nothing else is then valid); asked
    has (offset of a number, its entry or -1 - its row) for each number that float() must decide.
    """
    asked = np.empty((16, 2), np.int64)
    bad = np.empty((16, 2), np.int64)
    n_asked = 0
    n_bad = 0
    rows = 0
    entries = 0
    widest = np.iinfo(indices.dtype).max
    while at < stop:
        line = at
        at = _past_blanks(text, at, stop)
        if _ends_entries(text, at, stop):
            at = _line_end(text, at, stop) + 1
            continue
        asked_before, entries_before = n_asked, entries
        asked = _with_room(asked, n_asked)
        value, end, status = _label(text, at, stop, optional)
        good = status != _MALFORMED
        if status == _UNDECIDED:
            asked[n_asked, 0] = at
            asked[n_asked, 1] = -1 - rows
            n_asked += 1
        labels[rows] = value
        at = end if good else _line_end(text, at, stop)
        last = -1
        # a condition here instead of True, or a function for the index, costs a third of the time
        while True:
            at = _past_blanks(text, at, stop)
            if _ends_entries(text, at, stop):
                break
            index = 0
            first = at
            while at < stop and 48 <= text[at] <= 57 and at - first < 18:
                index = index * 10 + (text[at] - 48)
                at += 1
            index -= base
            if at == first or at >= stop or text[at] != _COLON or index <= last:
                good = False
                break
            if index > widest:
                return rows, entries, bad[:0, 0], True, asked[:0]
            last = index
            at += 1
            asked = _with_room(asked, n_asked)
            value, end, status = _number(text, at, stop)
            if status == _MALFORMED or not _ends_token(text, end, stop):
                good = False
                break
            if status == _UNDECIDED:
                asked[n_asked, 0] = at
                asked[n_asked, 1] = entries
                n_asked += 1
            indices[entries] = index
            values[entries] = value
            entries += 1
            at = end
        if good:
            ends[rows] = entries
            rows += 1
        else:
            n_asked, entries = asked_before, entries_before
            bad = _with_room(bad, n_bad)
            bad[n_bad, 0] = line
            n_bad += 1
            at = line
        at = _line_end(text, at, stop) + 1
    return rows, entries, bad[:n_bad, 0], False, asked[:n_asked]


# Quantifiers of characters are possessive: they never backtrack, so a word of any length is matched
# in one pass.
_NUMBER_AT = re.compile(NUMBER.encode())
_TOKEN = re.compile(rb"[^ \t\r]+")
_INDEX = re.compile(r"[0-9]{1,18}+")
_ENTRY = re.compile(r"[0-9]+:")


@dataclass
class Rows:
    """Rows of whole lines.

    y: (n,) float64, nan for missing labels. indptr, indices and values are those of a CSR matrix.
    bad: the offsets of the bad lines, ascending, which have no rows.
    """

    y: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    bad: np.ndarray

    @property
    def width(self) -> int:
        """The number of columns that the rows need."""
        return int(self.indices.max()) + 1 if len(self.indices) else 0

    def matrix(self, width: int) -> sp.csr_matrix:
        """X (n, width)."""
        return sp.csr_matrix((self.values, self.indices, self.indptr), (len(self.y), width))


def parse(raw: bytes, zero_based: bool, optional: bool = False, index_type=np.int32) -> Rows:
    """The rows of whole lines.

    optional: whether labels may be missing. The indices have `index_type`, or int64 if one of them
    needs it.
    """
    text = np.frombuffer(raw, np.uint8)
    # Every line except an unfinished last one has a newline, every entry a colon: enough space for
    # all, usually exact.
    newlines, colons = _count_marks(text, 0, len(text))
    labels, ends = np.empty(newlines + 1), np.zeros(newlines + 2, np.int64)
    indices, values = np.empty(colons, index_type), np.empty(colons)
    n_rows, n_entries, bad, wide, asked = _parse_lines(
        text, 0, len(text), 1 - zero_based, optional, labels, ends[1:], indices, values
    )
    if wide:
        return parse(raw, zero_based, optional, np.int64)
    wrong = []  # places of numbers without a double
    for offset, slot in asked.tolist():
        match = _NUMBER_AT.match(raw, offset)
        assert match is not None
        number = float(match[0])
        if number in (np.inf, -np.inf):
            wrong.append(offset)
        elif slot < 0:
            labels[-1 - slot] = number
        else:
            values[slot] = number
    indptr, entries = ends[: n_rows + 1].astype(index_type), slice(n_entries)
    starts = [raw.rfind(b"\n", 0, at) + 1 for at in wrong]
    bad = np.union1d(bad, np.array(starts, np.int64))
    return Rows(labels[:n_rows], indptr, indices[entries], values[entries], bad)


def line_problems(line: bytes, zero_based: bool, optional: bool = False, cut_off: bool = False):
    """Yield (column, message) for each problem of a line (without its newline); columns count from
    1.

    `cut_off`: the file ends here without a newline, so an incomplete last word was truncated.
    """
    last = -1
    for position, word in enumerate(_TOKEN.finditer(line.partition(b"#")[0])):
        text = word[0].decode("utf-8", "surrogateescape")
        name, _, value = text.partition(":")
        offset = 0
        if position == 0 and not (optional and _ENTRY.match(text)):
            message = _label_problem(text)
        elif (message := _index_problem(text, name, last, zero_based)) is None:
            last, offset = int(name), len(name) + 1
            if not _is_finite(value):
                message = f"the value {quoted(value)} is not a finite number"
        if message and cut_off and word.end() == len(line):
            message += "; the file ends here and may be truncated"
        if message:
            yield word.start() + 1 + offset, message


def problems_at(
    piece: textfiles.Piece, offset: int, zero_based: bool, optional: bool = False
) -> Iterator[tuple[int, str]]:
    """(column, message) of each problem of the line at an offset of a piece."""
    line = piece.line_at(offset)
    return line_problems(line, zero_based, optional, offset + len(line) == len(piece.raw))


def _is_finite(text) -> bool:
    return is_number(text) and float(text) not in (np.inf, -np.inf)


def _label_problem(text):
    """The problem of a label, or None."""
    if _is_finite(text):
        return None
    if ":" in text:
        return f"the label is missing: the line starts with {quoted(text)}"
    return f"the label {quoted(text)} is not a finite number"


def _index_problem(text, name, last, zero_based):
    """The problem of the index, `name`, of an index:value word, or None; last: the index before."""
    if ":" not in text or not _INDEX.fullmatch(name):
        return f"{quoted(text)} is not index:value, with a whole number as index"
    if int(name) == 0 and not zero_based:
        return (
            "the index is 0 but indices start at 1 (rows with indices from 0 are trained on and"
            " read with --zero-based)"
        )
    if int(name) <= last:
        return f"the index {int(name)} comes after {last}, but indices must ascend"
    return None


# ----------------------------------------------------------------------
# Read text of labelled sequences, `label letters` per line, as arrays, on behalf of the LIBSVM
# reader.
#
# A letter becomes its character code, so that separately read files agree; lower case counts as
# upper case. All sequences have the same length. Blank lines and comments after # are skipped, as
# in LIBSVM text.

_FIRST_LINES = 1 << 16
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def recognised(raw) -> bool:
    """Whether the first row of these bytes is a number and a word of letters, and nothing else."""
    for line in bytes(raw[:_FIRST_LINES]).split(b"\n"):
        words = line.partition(b"#")[0].split()
        if words:
            return len(words) == 2 and words[1].isalpha() and _label_number(words[0]) is not None
    return False


def parse_sequences(raw, name: str, places: int | None = None, letters: bytes | None = None):
    """X (n, places) float64 of the letters' codes and y (n,) float64.

    places: the required length; by default that of the first sequence. letters: the allowed
    upper-case letters; by default A to Z. Raises DataError with file and line.
    """
    labels, rows, letters = [], [], bytes(letters or _LETTERS)
    for number, line in enumerate(bytes(raw).split(b"\n"), start=1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        label, where = _label_number(words[0]), f"{name}, line {number}"
        if label is None or len(words) != 2:
            raise DataError(f"{where}: a row needs a number as label and one sequence of letters")
        if odd := words[1].upper().translate(None, letters):
            odd_letter, known = odd[:1].decode("ascii", "replace"), ", ".join(map(chr, letters))
            raise DataError(
                f"{where}: {odd_letter!r} is not a known letter; the letters are {known}"
            )
        places = places or len(words[1])
        if len(words[1]) != places:
            raise DataError(
                f"{where}: the sequence has {len(words[1])} letters, but {places} are expected in"
                " every row"
            )
        labels.append(label)
        rows.append(np.frombuffer(words[1].upper(), np.uint8))
    return np.array(rows, dtype=np.float64), np.array(labels)


def letters(X) -> bytes | None:
    """The letters of rows of codes; None if X is not an array of letter codes."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return None
    values = np.unique(X)
    return (
        bytes(values.astype(np.uint8))
        if len(values) <= 26 and np.isin(values, list(_LETTERS)).all()
        else None
    )


def _label_number(word: bytes) -> float | None:
    text = word.decode("utf-8", "replace")
    return float(text) if _is_finite(text) else None


# ----------------------------------------------------------------------
# Read and write LIBSVM text: `label index:value ...`, one row per line, ascending indices from 1.
#
# Reading is strict: a bad line is rejected with its number and column. `-` is standard input or
# output.

MOST_LABELS = 1_000_000  # maximum distinct labels that a scan counts
_PIECE = 4 << 20  # bytes of a file that a thread parses at a time
_VALUES_A_BLOCK = 1 << 16
_HEAD = 1 << 16  # bytes that identify the kind of a file
_KEPT = "\0"  # follows a label whose spelling is preserved


def checked_rows(
    piece: textfiles.Piece, zero_based: bool, name: str, optional: bool = False
) -> Rows:
    """The rows of a piece; DataError for the first bad line. optional: see `parse`."""
    rows = parse(piece.raw, zero_based, optional)
    if len(rows.bad):
        if b"\0" in piece.raw:
            raise DataError(f"{name} is a binary file, not LIBSVM text")
        offset = int(rows.bad[0])
        column, message = next(problems_at(piece, offset, zero_based, optional))
        raise DataError(f"{name}, {piece.place(offset)}, column {column}: {message}")
    return rows


def _is_text(path) -> bool:
    """Whether the file begins with valid rows, at least one with a feature. Only the first bytes
    are read.
    """
    with open(path, "rb") as handle:
        head = handle.read(_HEAD)
    if len(head) == _HEAD:
        head = head[: head.rfind(b" ") + 1]  # truncated within a word
    rows = parse(head, True)
    return len(rows.values) > 0 and not len(rows.bad)


KIND = files.Kind("LIBSVM text", _is_text)


def read(path, n_features=None, zero_based=False, letters=None, optional=False, strict=True):
    """Read a LIBSVM file, or a file of sequences, recognised by its first row.

    Parameters
    ----------
    path : path, encodings.Text or "-"
        Plain or compressed (xz, bz2, gz, or zip of one file); `-` is standard input.
    n_features : int, optional
        Columns of X, by default the largest index in the file.
    zero_based : bool
        Indices start at 0 instead of 1.
    letters : bytes, optional
        The allowed letters of sequences.
    optional : bool
        Whether labels may be missing; they are nan then.
    strict : bool
        Whether to refuse columns from n_features on; otherwise they are left out, with one warning.

    Returns
    -------
    X : csr_matrix, (n, n_features)
        float64, with the entries of the file, explicit zeros too, and int32 indices (int64 if
        needed). An array of letter codes for sequences (see `parse_sequences`).
    y : array, (n,)

    Raises
    ------
    DataError
        One sentence with file, line and column, for anything that is not a strict LIBSVM file.
    """
    with path if isinstance(path, textfiles.Text) else textfiles.Text(path) as text:
        stream = textfiles.pieces(text.read, text.name, _PIECE)
        first = next(stream, None)
        if first is None:
            raise NoRows(f"{text.name} is empty")
        if recognised(first.raw):
            raw = b"".join([first.raw, *(piece.raw for piece in stream)])
            return parse_sequences(raw, text.name, n_features, letters)
        parts = _rows_of_stream(first, stream, zero_based, text.name, optional)
    y = np.concatenate([rows.y for rows in parts])
    width = max(rows.width for rows in parts)
    X = sp.vstack([rows.matrix(max(width, n_features or 0)) for rows in parts], "csr")
    if n_features is None or width <= n_features:
        return X, y
    if zero_based and width == n_features + 1:
        _check_base(X, n_features, text.name)
    return narrowed(X, n_features, text.name, strict), y


def _rows_of_stream(
    first: textfiles.Piece,
    stream: Iterator[textfiles.Piece],
    zero_based: bool,
    name: str,
    optional: bool,
) -> list[Rows]:
    """`checked_rows` of the first piece and of all others, of which as many are held as there are
    threads; NoRows if there are none.
    """
    parts: list[Rows] = []
    group = [first]
    while group:
        parts += _rows_of_pieces(group, zero_based, name, optional)
        group = list(islice(stream, env.threads()))
    if not sum(len(rows.y) for rows in parts):
        raise NoRows(f"{name} has no rows, only blank lines and comments")
    return parts


def _rows_of_pieces(
    pieces: list[textfiles.Piece], zero_based: bool, name: str, optional: bool
) -> list[Rows]:
    """`checked_rows` of each piece, distributed over threads."""

    def parse_one(number: int, _: int) -> Rows:
        return checked_rows(pieces[number], zero_based, name, optional)

    return for_ranges(parse_one, len(pieces), parts=len(pieces))


def _check_base(X, n_features: int, name: str) -> None:
    """Raise DataError if the indices of X seem to start at 1 instead of 0."""
    if not (X.indices == 0).any():
        raise DataError(
            f"{name} has index {n_features} but no index 0, so its indices seem to start at 1,"
            " but the model was trained on indices that start at 0; write it with indices from 0"
        )


def narrowed(X, n_features: int, name: str, strict: bool = False):
    """X (n, d), CSR, with n_features columns. Columns beyond are dropped with one warning, or raise
    an error if strict.
    """
    beyond = np.unique(X.indices[X.indices >= n_features])
    if len(beyond):
        what = (
            f"{name} has columns beyond the {n_features:,} that the model was trained on"
            f" ({len(beyond):,} of them)"
        )
        if strict:
            raise DataError(f"{what}; without --strict they are ignored")
        warn(f"{what}, which are ignored")
    if X.shape[1] > n_features:
        return X[:, :n_features]
    return sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], n_features))


class Scan:
    """The content of a LIBSVM text of any size, in bounded memory. `problems` scans it; if it finds
    none, the counts cover the whole text.

    rows; columns: the largest index (plus one if zero-based); labels: {label: rows}, None for more
    than MOST_LABELS; low, high and mean of the labels.
    """

    def __init__(self, text: textfiles.Text, zero_based: bool = False):
        self._text, self._zero_based = text, zero_based
        self.rows = self.columns = 0
        self.labels: Counter[float] | None = Counter()
        self.low, self.high, self._sum = np.inf, -np.inf, 0.0

    @property
    def mean(self) -> float:
        return self._sum / self.rows

    def problems(self) -> Iterator[tuple[int, int, str]]:
        """Yield (line, column, message) for every problem, in order; nothing for a text that `read`
        accepts.

        A problem of the whole text (empty, binary, no rows) is reported at line 1, column 1.
        """
        empty = clean = True
        for piece in textfiles.pieces(self._text.read, self._text.name):
            empty = False
            rows = parse(piece.raw, self._zero_based)
            if clean and len(rows.bad) and b"\0" in piece.raw:
                yield 1, 1, "this is a binary file, not LIBSVM text"
                return
            for offset in rows.bad.tolist():
                clean = False
                for column, message in problems_at(piece, offset, self._zero_based):
                    yield piece.number(offset), column, message
            if len(rows.y):
                self.count(rows.width, rows.y)
        if empty:
            yield 1, 1, "the file is empty"
        elif not self.rows and clean:
            yield 1, 1, "the file has no rows, only blank lines and comments"

    def count(self, columns: int, y: np.ndarray) -> None:
        """Count the columns and the labels y (n,) of some rows."""
        self.rows += len(y)
        self.columns = max(self.columns, columns)
        self.low, self.high = min(self.low, y.min()), max(self.high, y.max())
        self._sum += y.sum()
        if self.labels is not None:
            self.labels.update(y.tolist())
            self.labels = None if len(self.labels) > MOST_LABELS else self.labels


def shape(path) -> tuple[int, int]:
    """Rows and columns of the LIBSVM text at `path`; DataError for the first problem."""
    with textfiles.Text(path) as text:
        scan = Scan(text)
        for line, column, message in scan.problems():
            raise DataError(f"{text.name}, line {line}, column {column}: {message}")
    return scan.rows, scan.columns


def write(path, X, y, zero_based=False):
    """Write X (n, d), dense or sparse, and y (n,), numbers or Words, as a LIBSVM file.

    `path`: a path (replaced atomically) or `-` (standard output). Numbers are written in the
    shortest text that reads back as the same float64; for float32 input with nine digits, which
    read back as the same float32. Zeros of a dense X are omitted; stored zeros of a sparse X are
    written. Raises DataError if X or y contain nan or infinity.
    """
    with open_output(path) as handle:
        write_rows(handle, X, y, zero_based)


@contextlib.contextmanager
def open_output(path):
    """A binary handle that becomes the file `path` if the block succeeds; otherwise nothing is
    left.

    `-` is standard output; if its reader has closed it, BrokenPipeError is raised.
    """
    if str(path) == "-":
        handle = files.standard_output()
        yield handle
        handle.flush()
        return
    with files.whole(path) as handle:
        yield handle


def write_rows(handle, X, y, zero_based=False):
    """Append rows X (n, d), y (n,) to a binary handle in the format of `write`. Call it block by
    block to stream.
    """
    sparse = sp.issparse(X)
    X = X.tocsr() if sparse else np.asarray(X)
    y, names = (y.codes, y.values) if isinstance(y, Words) else (np.asarray(y), None)
    if sparse:
        X.sort_indices()
    per_row = max(1, X.nnz // max(1, X.shape[0]) if sparse else X.shape[1])
    step = max(1, _VALUES_A_BLOCK // per_row)
    for start in range(0, X.shape[0], step):
        block, labels = X[start : start + step], y[start : start + step]
        if sparse:
            indptr, columns, values = block.indptr, block.indices, block.data
        else:
            rows, columns = np.nonzero(block)
            values = block[rows, columns]
            indptr = np.searchsorted(rows, np.arange(len(labels) + 1))
        if not (np.isfinite(values).all() and np.isfinite(labels).all()):
            raise DataError(
                f"rows {start + 1} to {start + len(labels)} contain nan or infinity, which LIBSVM"
                " text can't represent"
            )
        # Labels are few and always exact, so that the classes remain the same numbers.
        texts = (
            map(repr, labels.astype(np.float64).tolist())
            if names is None
            else (names[code] + _KEPT for code in labels.tolist())
        )
        handle.write(_formatted(texts, indptr, columns.astype(np.int64) + (not zero_based), values))


def _formatted(labels, indptr, columns, values) -> bytes:
    form = "%d:%.9g" if values.dtype == np.float32 else "%d:%r"
    entries = list(map(form.__mod__, zip(columns.tolist(), values.astype(np.float64).tolist())))
    bounds = indptr.tolist()
    lines = ([name, *entries[a:b]] for name, a, b in zip(labels, bounds, bounds[1:]))
    return _lines(lines).encode("ascii")


def numbers(values) -> str:
    """Text of values (n,) or (n, k), one line per row, in the shortest digits that read back as the
    same float64.
    """
    rows = np.asarray(values, np.float64)
    return _lines(map(repr, row) for row in (rows if rows.ndim == 2 else rows[:, None]).tolist())


def _lines(rows: Iterable) -> str:
    """One line per row of words, integers without the `.0` of repr unless _KEPT follows."""
    text = "\n".join([*map(" ".join, rows), ""])
    # passes over the text are faster than a call per number
    return text.replace(".0 ", " ").replace(".0\n", "\n").replace(_KEPT, "")
