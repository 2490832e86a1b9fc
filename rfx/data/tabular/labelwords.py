"""Labels as they are spelled: which spellings are one label, and LIBSVM text whose labels are
words, or that has none.

Such a text is rewritten with numbers as labels for the reader of strict text.
"""

import re
import warnings
from decimal import Decimal

import numpy as np

from rfx import numerals
from rfx.data import tasks
from rfx.data.tabular.table import Words
from rfx.data.tabular.written import amount, truth
from rfx.data.tasks import number_text
from rfx.errors import DataError, RfxWarning

# The task of rows that are only written anew: labels keep their spelling, and nothing is guessed.
KEPT = "kept"

# Different spellings that are counted of rows that are not all in memory.
MOST = 1000
_HEAD = 1 << 16
# The first word of a row: a label begins with a letter, and an entry has its colon behind a whole
# number.
_FIRST = re.compile(rb"^[ \t\r]*+([^ \t\r\n#]++)", re.MULTILINE)
_WORD = re.compile(rb"(?:[A-Za-z_]|[^\x00-\x7f])[^:\x00]*+")
_NO_WORD = re.compile(rb"(?:nan|inf|infinity)", re.IGNORECASE)
_ENTRY = re.compile(rb"[0-9]++:")


def is_shortest(text: str) -> bool:
    """Whether a number is spelled as `number_text` prints it, but for a plus sign; -0 is
    not, nor a whole number from 2^53 on.
    """
    number = float(text)
    return text.removeprefix("+") == number_text(number) and text != "-0" and abs(number) < 2.0**53


def value(text: str) -> Decimal | None:
    """The exact number that a text spells; None where it is no number."""
    try:
        return numerals.exact(text) if numerals.is_number(text) else None
    except ValueError:  # an exponent of very many digits
        return None


def matched(words: list[str], labels: list[str]) -> list[int]:
    """The place among the labels of each word, -1 where it is none of them.

    By the spelling, of which a plus sign is no part; else, of a word that is a number, the only
    label that is the same number: 1.0 is 1, and 10.0% is 10%. Truth values are the same in any
    case, and 1 and 0 where all labels are truth values.
    """
    places = {label: place for place, label in enumerate(labels)}
    same: dict[Decimal | tuple[str, float] | str | None, list[int]] = {}
    truths = all(truth(label) is not None for label in labels)
    words = [word if word in places else unsigned(word) for word in words]
    if any(word not in places for word in words):
        for place, label in enumerate(labels):
            same.setdefault(_quantity(label), []).append(place)
        same.pop(None, None)

    def place_of(word):
        if word in places:
            return places[word]
        quantity = _quantity(word)
        found = same.get(str(quantity == 1) if truths and quantity in (0, 1) else quantity, ())
        return found[0] if len(found) == 1 else -1

    return [place_of(word) for word in words]


def _quantity(word: str) -> Decimal | tuple[str, float] | str | None:
    """What two spellings of one label have in common: the number that they are, with its sign of
    percent or of a currency, or the truth value."""
    exact = value(word)
    return exact if exact is not None else truth(word) or amount(word)


def unsigned(word: str) -> str:
    """A number without its plus sign, which LIBSVM files write or not; another word as it is."""
    return word[1:] if word[:1] == "+" and value(word) is not None else word


def is_word(word: bytes) -> bool:
    return _WORD.fullmatch(word) is not None and _NO_WORD.fullmatch(word) is None


def spelled(raw) -> Words:
    """The first words of all rows of a LIBSVM text, of which it is known that they are labels."""
    numbers: dict[bytes, int] = {}
    codes = [numbers.setdefault(found[1], len(numbers)) for found in _FIRST.finditer(bytes(raw))]
    return Words(
        np.array(codes, np.int32), [word.decode("utf-8", "backslashreplace") for word in numbers]
    )


def of_numbers(y) -> Words:
    """Numbers (n,) as the words that print them."""
    values, codes = np.unique(y, return_inverse=True)
    return Words(codes.astype(np.int32), [number_text(one) for one in values])


def of_rows(raw, y, plain: bool) -> Words:
    """The labels of all rows of a LIBSVM text, as they are spelled; y (n,): their numbers;
    plain: as svmtext.Spelling says.
    """
    return of_numbers(y) if plain else spelled(raw)


def are_numbers(words) -> bool:
    """Whether all words are numbers, as LIBSVM text has them."""
    return all(value(word) is not None for word in words)


class OpenLabels(list):
    """Labels to which other rows may add theirs."""


def ascending(words, numbers=None) -> list[str]:
    """Different labels in order: numbers by their size, then by their spelling; others as words.

    numbers: what the words are as numbers, where they all are some.
    """
    if numbers is None:
        return sorted(words)
    exact = [value(word) or Decimal(0) for word in words]
    return [word for _, _, word in sorted(zip(map(float, numbers), exact, words))]


class Spellings:
    """How often each spelling of the labels of some rows occurs, and its number.

    most: of different ones; `full` says that there were more, as of the numbers of a regression,
    and that no more are counted.
    """

    def __init__(self, most: int | None = None):
        self.most, self.full = most, False
        self.counts: dict[str, int] = {}
        self.numbers: dict[str, float | None] = {}

    def add(self, words: Words, numbers) -> "Spellings":
        """Of rows whose labels are words; numbers: of each of words.values, None where it
        is none.
        """
        counts = np.bincount(words.codes[words.codes >= 0], minlength=len(words.values)).tolist()
        return self._counted(
            (unsigned(word), count, number)
            for word, count, number in zip(words.values, counts, numbers)
            if count
        )

    def add_numbers(self, y) -> "Spellings":
        """Of rows whose labels are numbers y (n,), as rfx prints them."""
        values, counts = np.unique(y, return_counts=True)
        return self._counted(
            (number_text(one), count, one) for one, count in zip(values.tolist(), counts.tolist())
        )

    def merge(self, other: "Spellings") -> "Spellings":
        self.full = self.full or other.full
        return self._counted(
            (word, count, other.numbers[word]) for word, count in other.counts.items()
        )

    def _counted(self, found):
        for word, count, number in found:
            if self.full:
                break
            self.counts[word] = self.counts.get(word, 0) + count
            self.numbers[word] = number
            self.full = self.most is not None and len(self.counts) > self.most
        return self

    def decided(self, task: str | None, name: str) -> tuple[list[str] | None, str | None]:
        """(labels, task): labels ascending, where the task is of classes; None where the targets
        stay numbers.

        task: as given, or guessed by the different spellings where some are not those that rfx
        prints. Raises UsageError where it can't be guessed, DataError for too many labels.
        """
        if self.full:
            return None, self._task_of_many(task, name)
        if None in self.numbers.values():
            return ascending(self.counts), task
        if task == "regression" or self._as_printed():
            return None, task
        if task == KEPT and not are_numbers(self.counts):
            return None, task
        labels = ascending(self.counts, self.numbers.values())
        if task in (None, KEPT) and len(set(self.numbers.values())) > tasks.FEWEST_NUMBERS:
            return None, task
        if task is None:
            counts = np.array([self.counts[one] for one in labels])
            task = tasks.guess_of(np.array([self.numbers[one] for one in labels]), counts, labels)
            if task == "regression":
                return None, task
        return self._settled(labels, task, name)

    def _task_of_many(self, task: str | None, name: str) -> str:
        """The task of labels that have too many spellings to be counted. DataError where it is
        one of classes.
        """
        if task not in (None, KEPT):
            raise DataError(
                f"the labels of {name} have more than {self.most:,} distinct values, too many for"
                " classes; set --task regression"
            )
        return task or "regression"

    def _as_printed(self) -> bool:
        """Whether all labels are numbers, spelled as rfx prints them."""
        return all(
            number is not None and printed(word) and word == number_text(number)
            for word, number in self.numbers.items()
        )

    def _settled(self, labels, task, name):
        """(labels or None, task) of classes, with a warning of labels that are the same number."""
        exact: dict = {}
        for label in labels:
            number = value(label)
            exact.setdefault(self.numbers[label] if number is None else number, []).append(label)
        twice = next((same for same in exact.values() if len(same) > 1), None)
        if twice is None or task == KEPT:
            return labels, task
        one = task == "binary" and len(labels) > 2 and len(exact) <= 2
        what = (
            "they count as one label"
            if one
            else "they remain different labels; spell equal labels alike"
        )
        warnings.warn(
            f"labels of {name} are the same number in several spellings ({', '.join(twice):.100}):"
            f" {what}",
            RfxWarning,
            stacklevel=2,
        )
        return None if one else labels, task


def decided(words: Words, y, task: str | None, name: str) -> tuple[list[str] | None, str | None]:
    """What Spellings.decided says of a column of numbers y (n,) with their spellings."""
    numbers = np.zeros(len(words.values))
    numbers[words.codes] = y
    return Spellings().add(words, numbers.tolist()).decided(task, name)


def printed(text: str) -> bool:
    """Whether a label is a number, spelled as rfx prints it."""
    return numerals.is_number(text) and is_shortest(text)


def no_number(place: str, word: str, what: str = "the label") -> DataError:
    """The refusal of a word among the targets of a regression; place: of its row."""
    return DataError(
        f"{place}: {what} {word!r:.80} is a word, but --task regression needs numbers; correct it,"
        " or omit --task"
    )


def first_word(raw, name: str, line: int = 1) -> DataError:
    """`no_number` of the first row of a LIBSVM text, whose label is a word."""
    found = _FIRST.search(raw)
    assert found is not None
    line += bytes(raw[: found.start(1)]).count(b"\n")
    return no_number(f"{name}, line {line}", found[1].decode("utf-8", "backslashreplace"))


def begins(raw) -> bool:
    """Has the text a row?"""
    return _FIRST.search(raw) is not None


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
    return _FIRST.sub(
        lambda found: b"0 " + found[0].lstrip() if _ENTRY.match(found[1]) else found[0], bytes(raw)
    )


def numbered(raw, name: str, line: int = 1) -> tuple[bytes, Words]:
    """(the text with a number in the place of each label, the words of all rows' labels), as
    `renumbered` has them.

    Raises DataError, naming the line, for a label that is no word. line: the number of the text's
    first line.
    """
    text, words, odd = renumbered(raw)
    if odd:
        before, column, message = odd[0]
        raise DataError(f"{name}, line {line + before}, column {column}: {message}")
    return text, words


def renumbered(raw) -> tuple[bytes, Words, list[tuple[int, int, str]]]:
    """(the text with a number in the place of each label, the words of all rows' labels, what is
    wrong with some).

    A word becomes a number of the same length, so that columns stay where they are. What is wrong:
    (lines above, column, message) for each label that is no word.
    """
    raw = bytes(raw)
    numbers: dict[bytes, int] = {}
    codes, odd = [], []
    above = at = 0

    def replace(found):
        nonlocal above, at
        word = found[1]
        if not is_word(word):
            above, at = above + raw.count(b"\n", at, found.start(1)), found.start(1)
            shown = word[:40].decode("utf-8", "backslashreplace")
            odd.append(
                (
                    above,
                    at - raw.rfind(b"\n", 0, at),
                    f"the label {shown!r} is not a word, unlike the previous labels",
                )
            )
        codes.append(numbers.setdefault(word, len(numbers)))
        return found[0][: -len(word)] + b"0" * len(word)

    text = _FIRST.sub(replace, raw)
    return (
        text,
        Words(
            np.array(codes, np.int32),
            [word.decode("utf-8", "backslashreplace") for word in numbers],
        ),
        odd,
    )
