"""The LIBSVM text format: parse bytes into arrays, and describe the problems of a
line.

Compiled code parses and decides whether a line is valid; `line_problems` describes in Python what
is wrong with an invalid one. The rules are thus written twice, for speed and for messages, and the
tests check that both agree.

Numbers are correctly rounded, with the same bits as Python's float(). Short ones use Clinger's
exact path (a product or quotient of two exact doubles); longer ones are quotients with about a
hundred bits (T. J. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18, 1971), which decide the rounding unless they are very close to the middle
of two doubles. The others are reported as undecided, and the caller uses float().

All compiled code is in one file because numba's cache of a function only detects changes of its
own file.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from rfx.compiled import njit
from rfx.data.tabular import labelwords
from rfx.data.tabular.table import Words
from rfx.numerals import NUMBER, is_number

# What the labels of a text may be; ANY: numbers, words, or none.
NUMBERS, WORDS, ANY = 0, 1, 2

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
def _word_end(text, at, stop):
    """The end of the word label at `at`, which begins with a letter and has no colon; -1: there is
    none.
    """
    first = text[at]
    if not (65 <= first <= 90 or 97 <= first <= 122 or first == 95 or first >= 128):
        return -1
    while not _ends_token(text, at, stop):
        if text[at] == _COLON or text[at] == 0:
            return -1
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
def _label(text, at, stop, kind):
    """(value, end, status) like `_number` for a label; nan for a word, and for none, which ends
    where it begins.
    """
    value, end, status = _number(text, at, stop)
    if status != _MALFORMED and _ends_token(text, end, stop):
        return value, end, _MALFORMED if kind == WORDS else status
    if kind == ANY and _is_entry(text, at, stop):
        return np.nan, at, _EXACT
    end = -1 if kind == NUMBERS else _word_end(text, at, stop)
    return np.nan, end, _EXACT if end > 0 else _MALFORMED


@njit(cache=True, nogil=True)
def _is_plain(value, length):
    """Whether a number of so many characters, apart from a plus sign, is an integer as rfx prints
    it.
    """
    size = abs(value)
    if not size < 1e15 or size != np.floor(size):
        return False
    digits = 2 if value < 0 else 1
    while size >= 10:
        size = np.floor(size / 10)
        digits += 1
    return length == digits


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
def _parse_lines(text, at, stop, base, kind, labels, words, ends, indices, values):
    """Parse whole lines text[at:stop] into labels[row], the places words[row] of the labels in the
    text, ends[row] (entries so far), indices and values (zero-based).

    Returns (rows, entries, bad, wide, asked, plain): bad has the offsets of the bad lines, which
    are left out; wide: an index did not fit into the type of `indices` (nothing else is then
    valid); asked has (offset of a number, its entry or -1 - its row) for each number that float()
    must decide; plain: every label is certainly an integer as rfx prints it.
    """
    asked = np.empty((16, 2), np.int64)
    bad = np.empty((16, 2), np.int64)
    n_asked = 0
    n_bad = 0
    rows = 0
    entries = 0
    plain = True
    widest = np.iinfo(indices.dtype).max
    while at < stop:
        line = at
        at = _past_blanks(text, at, stop)
        if _ends_entries(text, at, stop):
            at = _line_end(text, at, stop) + 1
            continue
        asked_before, entries_before = n_asked, entries
        asked = _with_room(asked, n_asked)
        value, end, status = _label(text, at, stop, kind)
        good = status != _MALFORMED
        if status == _UNDECIDED:
            asked[n_asked, 0] = at
            asked[n_asked, 1] = -1 - rows
            n_asked += 1
        labels[rows] = value
        words[rows, 0] = at
        words[rows, 1] = end
        plain = plain and _is_plain(value, end - at - (text[at] == 43))
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
                return rows, entries, bad[:0, 0], True, asked[:0], plain
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
    return rows, entries, bad[:n_bad, 0], False, asked[:n_asked], plain


# Quantifiers of characters are possessive: they never backtrack, so a word of any length is matched
# in one pass.
_NUMBER_AT = re.compile(NUMBER.encode())
_TOKEN = re.compile(rb"[^ \t\r]+")
_INDEX = re.compile(r"[0-9]{1,18}+")
_ENTRY = re.compile(r"[0-9]+:")
_LONGEST = 40  # characters of a word that are quoted completely


@dataclass
class Rows:
    """Rows of the whole lines `raw`.

    y: (n,) float64, nan for word labels and missing ones; places: (n, 2) the first byte of each
    label and the byte after it. plain: whether all labels are certainly integers as rfx prints
    them. indptr, indices and values are those of a CSR matrix. bad: the offsets of the bad lines,
    ascending, which have no rows.
    """

    raw: bytes
    y: np.ndarray
    places: np.ndarray
    plain: bool
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

    @cached_property
    def words(self) -> Words:
        """The labels as they are spelled."""
        if self.plain:
            return labelwords.of_numbers(self.y)
        numbers: dict[bytes, int] = {}
        spelled = (self.raw[at:end] for at, end in self.places.tolist())
        codes = [numbers.setdefault(word, len(numbers)) for word in spelled]
        values = [word.decode("utf-8", "backslashreplace") for word in numbers]
        return Words(np.array(codes, np.int32), values)


def parse(raw: bytes, zero_based: bool, kind: int = NUMBERS, index_type=np.int32) -> Rows:
    """The rows of whole lines.

    kind: what the labels may be. The indices have `index_type`, or int64 if one of them needs it.
    """
    text = np.frombuffer(raw, np.uint8)
    # Every line except an unfinished last one has a newline, every entry a colon: enough space for
    # all, usually exact.
    newlines, colons = _count_marks(text, 0, len(text))
    labels, places = np.empty(newlines + 1), np.empty((newlines + 1, 2), np.int64)
    ends = np.zeros(newlines + 2, np.int64)
    indices, values = np.empty(colons, index_type), np.empty(colons)
    n_rows, n_entries, bad, wide, asked, plain = _parse_lines(
        text, 0, len(text), 1 - zero_based, kind, labels, places, ends[1:], indices, values
    )
    if wide:
        return parse(raw, zero_based, kind, np.int64)
    wrong = []  # places in lines that have a number without a double, or no label
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
    rows = Rows(
        raw, labels[:n_rows], places[:n_rows], plain, indptr, indices[entries], values[entries], bad
    )
    if kind == WORDS:
        odd = [word.lower() in ("nan", "inf", "infinity") for word in rows.words.values]
        wrong += rows.places[np.array(odd, bool)[rows.words.codes], 0].tolist()
    starts = [raw.rfind(b"\n", 0, at) + 1 for at in wrong]
    rows.bad = np.union1d(rows.bad, np.array(starts, np.int64))
    return rows


def line_problems(line: bytes, zero_based: bool, kind: int = NUMBERS, cut_off: bool = False):
    """Yield (column, message) for each problem of a line (without its newline); columns count from
    1.

    `cut_off`: the file ends here without a newline, so an incomplete last word was truncated.
    """
    row = line.partition(b"#")[0]
    if b"\0" in row:
        yield row.index(b"\0") + 1, "a NUL byte: this is a binary file, not LIBSVM text"
        return
    last = -1
    for position, word in enumerate(_TOKEN.finditer(row)):
        text = word[0].decode("utf-8", "surrogateescape")
        name, _, value = text.partition(":")
        offset = 0
        if position == 0 and not (kind == ANY and _ENTRY.match(text)):
            message = _label_problem(text, kind)
        elif (message := _index_problem(text, name, last, zero_based)) is None:
            last, offset = int(name), len(name) + 1
            if not _is_finite(value):
                message = f"the value {_shown(value)} is not a finite number"
        if message and cut_off and word.end() == len(line):
            message += "; the file ends here and may be truncated"
        if message:
            yield word.start() + 1 + offset, message


def _shown(text):
    """A word as quoted in a message: if it is longer than any number, its beginning and its
    length.
    """
    shown = text[:_LONGEST].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return repr(shown) if len(text) <= _LONGEST else f"{shown!r}... ({len(text):,} characters)"


def _is_finite(text) -> bool:
    return is_number(text) and float(text) not in (np.inf, -np.inf)


def _label_problem(text, kind):
    """The problem of a label, or None."""
    word = kind != NUMBERS and labelwords.is_word(text.encode("utf-8", "surrogateescape"))
    if word or (kind != WORDS and _is_finite(text)):
        return None
    if kind == WORDS:
        return f"the label {_shown(text)} is not a word, unlike the previous labels"
    if ":" in text:
        return f"the label is missing: the line starts with {_shown(text)}"
    several = ", but names several classes" if "," in text.strip(",") else ""
    return f"the label {_shown(text)} is not a finite number{several}"


def _index_problem(text, name, last, zero_based):
    """The problem of the index, `name`, of an index:value word, or None; last: the index before."""
    if name == "qid":
        return "query ids (ranking data) are not supported"
    if ":" not in text or not _INDEX.fullmatch(name):
        return f"{_shown(text)} is not index:value, with a whole number as index"
    if int(name) == 0 and not zero_based:
        return (
            "the index is 0 but indices start at 1 (rows with indices from 0 are trained on and"
            " read with --zero-based)"
        )
    if int(name) <= last:
        return f"the index {int(name)} comes after {last}, but indices must ascend"
    return None
