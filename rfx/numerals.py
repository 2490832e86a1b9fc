"""Numbers in texts that people write: options, tables, files of weights, results.

`int` and `float` take more than anybody means: `1_0` is 10 to them, and so are the digits of other
scripts. Everything that reads a text as a number asks here, so that it is one everywhere or
nowhere.
"""

import re
from decimal import Decimal, InvalidOperation

# Possessive: a text of any length is matched, or not, in one pass.
DIGITS = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
NUMBER = rf"[+-]?+{DIGITS}(?:[eE][+-]?+[0-9]++)?"
_NUMBER = re.compile(NUMBER)
_WHOLE = re.compile(r"[+-]?+[0-9]++")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_BLANKS = " \t\r\n"


def is_number(text: str) -> bool:
    """Whether a text is a number with a decimal point, and nothing besides."""
    return _NUMBER.fullmatch(text) is not None


def is_not_finite(text: str) -> bool:
    """Whether a text is one of the words for what is no finite number, such as nan or -inf."""
    return _NOT_FINITE.fullmatch(text) is not None


def real(text: str) -> float:
    """The number that a text is, blanks around it aside; nan and inf are some.

    Raises
    ------
    ValueError
        For any other text.
    """
    own = text.strip(_BLANKS)
    if not is_number(own) and not is_not_finite(own):
        raise ValueError(f"{text[:40]!r} is not a number")
    return float(own)


def whole(text: str) -> int:
    """The whole number that a text is, without a point, blanks around it aside.

    Raises
    ------
    ValueError
        For any other text, and for thousands of digits.
    """
    own = text.strip(_BLANKS)
    if _WHOLE.fullmatch(own) is None:
        raise ValueError(f"{text[:40]!r} is not a whole number")
    return int(own)


def exact(text: str) -> Decimal:
    """The number that a text is, with all its digits, blanks around it aside.

    Raises
    ------
    ValueError
        For any other text, and for an exponent of very many digits.
    """
    own = text.strip(_BLANKS)
    if not is_number(own):
        raise ValueError(f"{text[:40]!r} is not a number")
    try:
        return Decimal(own)
    except InvalidOperation:
        raise ValueError(f"{text[:40]!r} has too large an exponent") from None
