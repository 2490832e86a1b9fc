"""Numbers in user text: options, tables, files of weights, results.

`int` and `float` accept more than users mean: `1_0` is 10, and so are digits of other scripts. All
code that reads text as numbers uses this module, so that the same numbers are valid everywhere.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

# Possessive: a text of any length is matched in one pass.
DIGITS = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
NUMBER = rf"[+-]?+{DIGITS}(?:[eE][+-]?+[0-9]++)?"
_NUMBER = re.compile(NUMBER)
_WHOLE = re.compile(r"[+-]?+[0-9]++")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_BLANKS = " \t\r\n"


def is_number(text: str) -> bool:
    """Whether a text is a number with a decimal point, and nothing else."""
    return _NUMBER.fullmatch(text) is not None


def real(text: str) -> float:
    """The number in a text, ignoring surrounding blanks; nan and inf are allowed.

    Raises
    ------
    ValueError
        For any other text.
    """
    word = text.strip(_BLANKS)
    return float(word if _NOT_FINITE.fullmatch(word) else _matching(_NUMBER, text, "a number"))


def whole(text: str) -> int:
    """The integer in a text, without a point, ignoring surrounding blanks.

    Raises
    ------
    ValueError
        For any other text, and for thousands of digits.
    """
    return int(_matching(_WHOLE, text, "a whole number"))


def exact(text: str) -> Decimal:
    """The number in a text, with all its digits, ignoring surrounding blanks.

    Raises
    ------
    ValueError
        For any other text, and for an exponent with very many digits.
    """
    try:
        return Decimal(_matching(_NUMBER, text, "a number"))
    except InvalidOperation:
        raise ValueError(f"{text[:40]!r} has too large an exponent") from None


def native(value: Any) -> Any:
    """What JSON has no form for, as Python has it: a number of numpy, a mapping; else as text."""
    if hasattr(value, "item"):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _matching(pattern: re.Pattern[str], text: str, what: str) -> str:
    word = text.strip(_BLANKS)
    if pattern.fullmatch(word) is None:
        raise ValueError(f"{text[:40]!r} is not {what}")
    return word


def significant(value: float, digits: int = 4) -> str:
    """A measured number with this many significant digits, and at least all before the point.

    From 0.0001 up to ten million it has no exponent: 0.01234, 12.34, 123457, 1.234e-09. Zero,
    infinite numbers and nan have no digits to keep.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    scientific = f"{value:.{digits - 1}e}"
    exponent = int(scientific.partition("e")[2])
    return f"{value:.{max(0, digits - 1 - exponent)}f}" if -4 <= exponent < 7 else scientific
