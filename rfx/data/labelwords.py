"""LIBSVM text whose labels are words, or that has none: rewritten with numbers as labels for the reader of strict text."""

import re
import warnings
from decimal import Decimal, InvalidOperation

import numpy as np

from rfx.data import tasks
from rfx.data.table import Words
from rfx.data.tasks import number_text
from rfx.errors import DataError, RfxWarning

_HEAD = 1 << 16
# The first word of a row: a label begins with a letter, and an entry has its colon behind a whole number.
_FIRST = re.compile(rb"^[ \t\r]*+([^ \t\r\n#]++)", re.MULTILINE)
_WORD = re.compile(rb"(?:[A-Za-z_]|[^\x00-\x7f])[^:]*+")
_NO_WORD = re.compile(rb"(?:nan|inf|infinity)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?")
_ENTRY = re.compile(rb"[0-9]++:")


def is_shortest(text: str) -> bool:
    """Whether a number is spelled as `number_text` prints it, but for a plus sign; -0 is not, nor a whole number beyond 2^53."""
    number = float(text)
    return text.removeprefix("+") == number_text(number) and text != "-0" and abs(number) <= 2.0**53


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


def spelled(raw) -> Words:
    """The first words of all rows of a LIBSVM text, of which it is known that they are labels."""
    numbers: dict[bytes, int] = {}
    codes = [numbers.setdefault(found[1], len(numbers)) for found in _FIRST.finditer(bytes(raw))]
    return Words(np.array(codes, np.int32), [word.decode("ascii") for word in numbers])


def of_numbers(y) -> Words:
    """Numbers (n,) as the words that print them."""
    values, codes = np.unique(y, return_inverse=True)
    return Words(codes.astype(np.int32), [number_text(one) for one in values])


def ascending(words, numbers=None) -> list[str]:
    """Different labels in order: numbers by their size, then by their spelling; others as words.

    numbers: what the words are as numbers, where they all are some.
    """
    if numbers is None:
        return sorted(words)
    exact = [value(word) or Decimal(0) for word in words]
    return [word for _, _, word in sorted(zip(map(float, numbers), exact, words))]


def decided(words: Words, y, task: str | None, name: str) -> tuple[list[str] | None, str | None]:
    """(labels, task) of a column of numbers y (n,) with their spellings, some of which are not those that rfx prints.

    labels: ascending, where the task is of classes; None where the targets stay numbers. task: as given, or guessed by the
    different spellings. Raises UsageError where it can't be guessed.
    """
    kept, codes = np.unique(words.codes, return_inverse=True)
    texts = [words.values[code] for code in kept]
    if task == "regression" or all(map(_printed, texts)):
        return None, task
    first = np.full(len(texts), len(codes))
    np.minimum.at(first, codes, np.arange(len(codes)))
    numbers = np.asarray(y, np.float64)[first]
    labels, size = ascending(texts, numbers), dict(zip(texts, numbers.tolist()))
    if task is None:
        if len(np.unique(numbers)) > tasks.FEWEST_NUMBERS:
            return None, None
        count = dict(zip(texts, np.bincount(codes).tolist()))
        task = tasks.guess_of(np.array([size[one] for one in labels]), np.array([count[one] for one in labels]), labels)
        if task == "regression":
            return None, task
    exact: dict = {}
    for label in labels:
        exact.setdefault(value(label) or label, []).append(label)
    twice = next((same for same in exact.values() if len(same) > 1), None)
    if twice is not None:
        one = task == "binary" and len(labels) > 2 and len(exact) <= 2
        what = "they are one label" if one else "they stay different labels; spell them alike where they are one"
        warnings.warn(
            f"labels of {name} are the same number in several spellings ({', '.join(twice):.100}): {what}", RfxWarning, stacklevel=2
        )
        if one:
            return None, task
    return labels, task


def _printed(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and is_shortest(text)


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
