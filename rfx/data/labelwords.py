"""LIBSVM text whose labels are words, or that has none: rewritten with numbers as labels for the reader of strict text."""

import re
from decimal import Decimal, InvalidOperation

import numpy as np

from rfx.data.table import Words
from rfx.errors import DataError

_HEAD = 1 << 16
# The first word of a row: a label begins with a letter, and an entry has its colon behind a whole number.
_FIRST = re.compile(rb"^[ \t\r]*+([^ \t\r\n#]++)", re.MULTILINE)
_WORD = re.compile(rb"(?:[A-Za-z_]|[^\x00-\x7f])[^:]*+")
_NO_WORD = re.compile(rb"(?:nan|inf|infinity)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?")
_ENTRY = re.compile(rb"[0-9]++:")


def number_text(value: float) -> str:
    """A number in the shortest digits that read back to the same float64; whole numbers without `.0`."""
    return repr(float(value)).removesuffix(".0")


def value(text: str) -> Decimal | None:
    """The exact number that a text spells; None where it is no number."""
    if _NUMBER.fullmatch(text) is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of very many digits
        return None


def matched(words: list[str], labels: list[str]) -> list[int]:
    """The place among the labels of each word, -1 where it is none of them.

    By the spelling; else, of a word that is a number, the only label that is the same number: 1.0 is 1.
    """
    places = {label: place for place, label in enumerate(labels)}
    same: dict[Decimal, list[int]] = {}
    if any(word not in places for word in words):
        for place, label in enumerate(labels):
            same.setdefault(value(label), []).append(place)
        same.pop(None, None)

    def place_of(word):
        if word in places:
            return places[word]
        found = same.get(value(word), ())
        return found[0] if len(found) == 1 else -1

    return [place_of(word) for word in words]


def is_word(word: bytes) -> bool:
    return _WORD.fullmatch(word) is not None and _NO_WORD.fullmatch(word) is None


def recognised(raw) -> bool:
    """Is the first row's label a word?"""
    first = _FIRST.search(bytes(raw[:_HEAD]))
    return first is not None and is_word(first[1])


def lacking(raw) -> bool:
    """Has the first row no label?"""
    first = _FIRST.search(bytes(raw[:_HEAD]))
    return first is not None and _ENTRY.match(first[1]) is not None


def unlabelled(raw) -> bytes:
    """The text with the label 0 before every row that has none."""
    return _FIRST.sub(lambda found: b"0 " + found[0].lstrip() if _ENTRY.match(found[1]) else found[0], bytes(raw))


def numbered(raw, name: str) -> tuple[bytes, Words]:
    """(the text with the label's number in the place of each label, the words of all rows' labels).

    A word becomes a number of the same length, so that columns stay where they are. Raises DataError, naming the line, for a
    label that is no word.
    """
    raw = bytes(raw)
    numbers: dict[bytes, int] = {}
    codes = []

    def replace(found):
        word = found[1]
        if not is_word(word):
            at = found.start(1)
            line, column = raw.count(b"\n", 0, at) + 1, at - raw.rfind(b"\n", 0, at)
            shown = word[:40].decode("utf-8", "backslashreplace")
            raise DataError(f"{name}, line {line}, column {column}: the label {shown!r} is not a word, as the labels before are")
        codes.append(numbers.setdefault(word, len(numbers)))
        return found[0][: -len(word)] + b"0" * len(word)

    text = _FIRST.sub(replace, raw)
    return text, Words(np.array(codes, np.int32), [word.decode("utf-8", "backslashreplace") for word in numbers])
