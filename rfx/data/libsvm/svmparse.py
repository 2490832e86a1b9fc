"""The compiled part of the LIBSVM reader: parses lines of bytes into labels, indices and values.

Numbers are correctly rounded, with the same bits as Python's float(). Short ones use Clinger's
exact path (a product or quotient of two exact doubles); the others use Lemire's method (D. Lemire,
"Number parsing at a gigabyte per second", Software: Practice and Experience 51, 2021): the 64-bit
mantissa times a 128-bit power of five. Numbers that neither method decides are reported as
undecided, and the caller uses float().

Everything is in one file because numba's cache of a function only detects changes of its own file.
"""

import numpy as np

from rfx.compiled import njit

_EXACT, _UNDECIDED, _MALFORMED = 0, 1, 2
_NEWLINE, _HASH, _COLON = 10, 35, 58

# powers of ten beyond these give zero or infinity for any 64-bit mantissa
_SMALLEST, _LARGEST = -342, 308


def _power_table() -> np.ndarray:
    """The leading 128 bits of 5^q, one (high, low) pair per row; q runs from _SMALLEST to
    _LARGEST.
    """
    rows = []
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        if q < 0:
            # A small power can divide the mantissa exactly: its reciprocal is rounded up in the
            # last of 128 bits, so that an exact quotient is never too small. For the others,
            # rounding up a longer one is enough.
            width = (power - 1).bit_length()
            bits = (1 << (width + 127 if q >= -27 else 2 * width + 128)) // power + 1
        else:
            bits = power << 128
        bits >>= bits.bit_length() - 128
        rows.append((bits >> 64, bits & 0xFFFFFFFFFFFFFFFF))
    return np.array(rows, dtype=np.uint64)


_POWERS = _power_table()
_TENS = np.array([float(10**k) for k in range(23)])
_U = np.uint64
_MASK32 = _U(0xFFFFFFFF)
_ALL = _U(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def _product(a, b):
    """High and low halves of the 128-bit product of two uint64."""
    a_low, a_high = a & _MASK32, a >> _U(32)
    b_low, b_high = b & _MASK32, b >> _U(32)
    low = a_low * b_low
    middle = a_high * b_low + (low >> _U(32))
    cross = a_low * b_high + (middle & _MASK32)
    high = a_high * b_high + (middle >> _U(32)) + (cross >> _U(32))
    return high, (cross << _U(32)) | (low & _MASK32)


@njit(cache=True, nogil=True)
def _scaled(mantissa, q):
    """mantissa * 10^q (mantissa > 0) as the bits of a positive double, and whether they are
    certainly correct.
    """
    if q < _SMALLEST or q > _LARGEST:
        return _U(0), False
    shift = 0
    w = mantissa
    for step in (32, 16, 8, 4, 2, 1):
        if w >> _U(64 - step) == _U(0):
            w <<= _U(step)
            shift += step
    high, low = _product(w, _POWERS[q - _SMALLEST, 0])
    if high & _U(0x1FF) == _U(0x1FF):
        # The bits that decide the rounding may still change: include the lower half of the power.
        carry, _ = _product(w, _POWERS[q - _SMALLEST, 1])
        low += carry
        if low < carry:
            high += _U(1)
    if low == _ALL and (q < -27 or q > 55):
        return _U(0), False
    top = high >> _U(63)
    bits = high >> (top + _U(9))
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - shift + 1023
    if exponent <= 0 or exponent >= 2046:
        return _U(0), False
    if (
        low <= _U(1)
        and q >= -4
        and q <= 23
        and bits & _U(3) == _U(1)
        and bits << (top + _U(9)) == high
    ):
        bits &= ~_U(1)  # exactly halfway between two doubles: round to even
    bits += bits & _U(1)
    bits >>= _U(1)
    if bits >= _U(1 << 53):
        bits = _U(1 << 52)
        exponent += 1
    return (bits & _U((1 << 52) - 1)) | (_U(exponent) << _U(52)), True


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
def _nearest(mantissa, q, scratch):
    """(the double closest to mantissa * 10^q, for a mantissa above 0, whether that is certain)."""
    if mantissa <= _U(1 << 53) and -22 <= q <= 22:
        value = np.float64(mantissa)
        return (value * _TENS[q] if q >= 0 else value / _TENS[-q]), True
    bits, certain = _scaled(mantissa, q)
    scratch[0] = bits
    return scratch.view(np.float64)[0], certain


@njit(cache=True, nogil=True, inline="always")
def _number(text, at, stop, scratch):
    """Read [+-]digits[.digits][e[+-]digits] at text[at:stop] (uint8).

    Returns (value, end, status): end is the first byte after the number; status is _EXACT,
    _UNDECIDED (well formed, but float() must decide its value) or _MALFORMED (end is then the
    position of the error). `scratch` is a uint64 array of length 1 whose memory converts bits to a
    double.
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
    value, certain = _nearest(mantissa, q, scratch)
    if not certain:
        return 0.0, at, _UNDECIDED
    return (-value if negative else value), at, _EXACT


@njit(cache=True, nogil=True)
def count_marks(text, at, stop):
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
def _is_shortest(text, at, stop):
    """Whether the number text[at:stop] is certainly the shortest spelling of its double, apart from
    a plus sign.

    At most 15 digits, no exponent, no leading zeros and no trailing zeros after the point.
    """
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    if stop - at > 16 or text[at] == 46 or text[stop - 1] == 46:
        return False
    if text[at] == 48:
        if stop - at == 1:
            return not negative
        if (
            text[at + 1] != 46
            or stop - at < 3
            or (stop - at > 5 and text[at + 2] == 48 and text[at + 3] == 48)
        ):
            return False
    point = False
    for place in range(at, stop):
        byte = text[place]
        if byte == 46:
            point = True
        elif byte < 48 or byte > 57:
            return False
    if point:
        return text[stop - 1] != 48
    return stop - at <= 15


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
def _is_bad(status, text, end, stop):
    """Whether the text up to `end` is not a number, or is followed by other characters."""
    return status == _MALFORMED or not _ends_token(text, end, stop)


@njit(cache=True, nogil=True, inline="always")
def _with_room(asked, count):
    """The array (m, 2), doubled in length if its first `count` rows fill it."""
    if count == len(asked):
        return np.concatenate((asked, np.empty_like(asked)))
    return asked


@njit(cache=True, nogil=True)
def parse_lines(text, at, stop, base, labels, ends, indices, values):
    """Parse whole lines text[at:stop] into labels[row], ends[row] (entries so far), indices and
    values (zero-based).

    Returns (rows, entries, bad, wide, asked, plain): bad is the offset of the first bad line or -1;
    plain: every label is certainly spelled as rfx prints its number; wide: an index did not fit
    into the type of `indices` (nothing else is then valid); asked holds (offset of a number, its
    entry or -1 - its row) for each number that float() must decide.
    """
    scratch = np.zeros(1, np.uint64)
    asked = np.empty((16, 2), np.int64)
    n_asked = 0
    rows = 0
    entries = 0
    plain = True
    widest = np.iinfo(indices.dtype).max
    while at < stop:
        line = at
        at = _past_blanks(text, at, stop)
        if at >= stop:
            break
        if _ends_entries(text, at, stop):
            at = _line_end(text, at, stop) + 1
            continue
        asked = _with_room(asked, n_asked)
        value, end, status = _number(text, at, stop, scratch)
        if _is_bad(status, text, end, stop):
            return rows, entries, line, False, asked[:n_asked], plain
        if status == _UNDECIDED:
            asked[n_asked, 0] = at
            asked[n_asked, 1] = -1 - rows
            n_asked += 1
        labels[rows] = value
        plain = plain and _is_shortest(text, at, end)
        at = end
        last = -1
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
                return rows, entries, line, False, asked[:n_asked], plain
            if index > widest:
                return rows, entries, -1, True, asked[:n_asked], plain
            last = index
            at += 1
            asked = _with_room(asked, n_asked)
            value, end, status = _number(text, at, stop, scratch)
            if _is_bad(status, text, end, stop):
                return rows, entries, line, False, asked[:n_asked], plain
            if status == _UNDECIDED:
                asked[n_asked, 0] = at
                asked[n_asked, 1] = entries
                n_asked += 1
            indices[entries] = index
            values[entries] = value
            entries += 1
            at = end
        ends[rows] = entries
        rows += 1
        at = _line_end(text, at, stop) + 1
    return rows, entries, -1, False, asked[:n_asked], plain
