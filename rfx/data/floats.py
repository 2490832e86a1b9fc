"""Decimal text to float64 inside numba code, correctly rounded: the same bits as Python's float().

Short numbers take Clinger's exact path (a product or quotient of two exact doubles); the others Lemire's method
(D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51, 2021): the 64-bit mantissa
times a 128-bit power of five. What neither can decide is reported as UNDECIDED, and the caller asks float().
"""

import numpy as np
from numba import njit

EXACT, UNDECIDED, MALFORMED = 0, 1, 2

_SMALLEST, _LARGEST = -342, 308  # powers of ten beyond these give zero or infinity for any 64-bit mantissa


def _power_table() -> np.ndarray:
    """The leading 128 bits of 5^q, one (high, low) pair a row; q runs from _SMALLEST to _LARGEST."""
    rows = []
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        if q < 0:
            # A small power can divide the mantissa exactly: its reciprocal is rounded up in the last of 128 bits, so
            # that an exact quotient never falls short of itself. For the others, rounding up a longer one is enough.
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
    """mantissa * 10^q (mantissa > 0) as bits of a positive double and whether they are certainly right."""
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
        # The bits that decide the rounding might still change: bring in the lower half of the power.
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
    if low <= _U(1) and q >= -4 and q <= 23 and bits & _U(3) == _U(1) and bits << (top + _U(9)) == high:
        bits &= ~_U(1)  # exactly half way between two doubles: round to the even one
    bits += bits & _U(1)
    bits >>= _U(1)
    if bits >= _U(1 << 53):
        bits = _U(1 << 52)
        exponent += 1
    return (bits & _U((1 << 52) - 1)) | (_U(exponent) << _U(52)), True


@njit(cache=True, nogil=True, inline="always")  # a call for every number would cost a quarter of the time
def parse_number(text, at, stop, scratch):
    """Read [+-]digits[.digits][e[+-]digits] at text[at:stop] (uint8).

    Returns (value, end, status): end is the first byte after the number; status is EXACT, UNDECIDED (well formed, but
    float() must decide its value) or MALFORMED (end is then where the number went wrong). `scratch` is a uint64 array of
    length 1 whose memory turns bits into a double.
    """
    negative = False
    if at < stop and (text[at] == 45 or text[at] == 43):
        negative = text[at] == 45
        at += 1
    first = at
    while at < stop and text[at] == 48:
        at += 1
    zeros = at - first
    first = at
    mantissa = _U(0)
    while at < stop and 48 <= text[at] <= 57:
        mantissa = mantissa * _U(10) + _U(text[at] - 48)
        at += 1
    digits = at - first  # significant ones: 19 always fit into 64 bits
    seen = zeros + digits > 0
    q = 0
    if at < stop and text[at] == 46:
        at += 1
        point = at
        if digits == 0:
            while at < stop and text[at] == 48:
                at += 1
        first = at
        while at < stop and 48 <= text[at] <= 57:
            mantissa = mantissa * _U(10) + _U(text[at] - 48)
            at += 1
        digits += at - first
        seen = seen or at > point
        q = point - at
    if not seen:
        return 0.0, at, MALFORMED
    if at < stop and (text[at] == 101 or text[at] == 69):
        at += 1
        downwards = False
        if at < stop and (text[at] == 45 or text[at] == 43):
            downwards = text[at] == 45
            at += 1
        if at >= stop or text[at] < 48 or text[at] > 57:
            return 0.0, at, MALFORMED
        power = 0
        while at < stop and 48 <= text[at] <= 57:
            if power < 100000:
                power = power * 10 + (text[at] - 48)
            at += 1
        q += -power if downwards else power
    if digits > 19:
        return 0.0, at, UNDECIDED
    if mantissa == _U(0):
        return (-0.0 if negative else 0.0), at, EXACT
    if mantissa <= _U(1 << 53) and -22 <= q <= 22:
        value = np.float64(mantissa)
        value = value * _TENS[q] if q >= 0 else value / _TENS[-q]
    else:
        bits, certain = _scaled(mantissa, q)
        if not certain:
            return 0.0, at, UNDECIDED
        scratch[0] = bits
        value = scratch.view(np.float64)[0]
    return (-value if negative else value), at, EXACT
