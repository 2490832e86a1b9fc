"""Labels: which spellings are the same label; the task that targets show if that is safe, which is
logged; and LIBSVM text with word labels or without labels.
"""

import logging
import re
import warnings
from collections.abc import Iterable
from decimal import Decimal

import numpy as np

from rfx import numerals
from rfx.data.tabular import written
from rfx.data.tabular.table import Words
from rfx.errors import DataError, RfxWarning, UsageError

# The task for rows that are only rewritten: labels keep their spelling, and nothing is inferred.
KEPT = "kept"

# Maximum distinct spellings counted for rows that are not all in memory.
MOST = 1000
_HEAD = 1 << 16
# The first word of a row: a label begins with a letter, while an entry has a colon after an
# integer.
_FIRST = re.compile(rb"^[ \t\r]*+([^ \t\r\n#]++)", re.MULTILINE)
_WORD = re.compile(rb"(?:[A-Za-z_]|[^\x00-\x7f])[^:\x00]*+")
_NO_WORD = re.compile(rb"(?:nan|inf|infinity)", re.IGNORECASE)


def value(text: str) -> Decimal | None:
    """The exact number spelled by a text; None if it is not a number."""
    try:
        return numerals.exact(text) if numerals.is_number(text) else None
    except ValueError:  # an exponent with very many digits
        return None


def matched(words: Iterable[str], labels: list[str]) -> list[int]:
    """The position of each word among the labels, or -1.

    A word is matched by its spelling without a plus sign; else, if it is a number, by the only
    label with the same value: 1.0 is 1, and 10.0% is 10%. Booleans match in any case, and 1 and 0
    match if all labels are booleans.
    """
    spelled = set(labels)
    words = [word if word in spelled else unsigned(word) for word in words]
    return written.matched(words, labels, _quantity)


def _quantity(word: str) -> Decimal | tuple[str, float] | str:
    """The common key of two spellings of one label: the number with its percent or currency sign,
    or the boolean."""
    exact = value(word)
    return exact if exact is not None else written.truth(word) or written.amount(word) or word


def unsigned(word: str) -> str:
    """A number without its plus sign, which is optional in LIBSVM files; other words unchanged."""
    return word[1:] if word[:1] == "+" and value(word) is not None else word


def is_word(word: bytes) -> bool:
    return _WORD.fullmatch(word) is not None and _NO_WORD.fullmatch(word) is None


def of_numbers(y) -> Words:
    """Numbers (n,) as printed words."""
    distinct, codes = np.unique(y, return_inverse=True)
    return Words.of(codes, map(number_text, distinct))


def are_numbers(words) -> bool:
    """Whether all words are numbers in LIBSVM syntax."""
    return all(value(word) is not None for word in words)


class OpenLabels(list):
    """Labels that other rows may extend."""


def ascending(words, numbers=None) -> list[str]:
    """Distinct labels in order: numbers by value, then by spelling; others as words.

    numbers: the words as numbers, if all of them are.
    """
    if numbers is None:
        return sorted(words)
    exact = [value(word) or Decimal(0) for word in words]
    return [word for _, _, word in sorted(zip(map(float, numbers), exact, words))]


class Spellings:
    """The counts of each spelling of the labels of some rows, and its number.

    most: maximum distinct spellings; `full`: there were more, such as regression targets, and
    counting stopped.
    """

    def __init__(self, most: int | None = None):
        self.most, self.full = most, False
        self.counts: dict[str, int] = {}
        self.numbers: dict[str, float | None] = {}

    def add(self, words: Words, numbers) -> "Spellings":
        """For rows with word labels; numbers: of each of words.values, or None."""
        counts = np.bincount(words.codes[words.codes >= 0], minlength=len(words.values)).tolist()
        return self.count(zip(words.values, counts, numbers))

    def add_numbers(self, y) -> "Spellings":
        """For rows whose labels are numbers y (n,), as rfx prints them."""
        values, counts = np.unique(y, return_counts=True)
        return self.count(zip(map(number_text, values), counts.tolist(), values.tolist()))

    def merge(self, other: "Spellings") -> "Spellings":
        self.full = self.full or other.full
        return self.count(
            (word, count, other.numbers[word]) for word, count in other.counts.items()
        )

    def count(self, labels) -> "Spellings":
        """For (spelling, rows, number or None) of labels."""
        for word, count, number in labels:
            word = unsigned(word)
            if count and not self.full:
                self.counts[word] = self.counts.get(word, 0) + count
                self.numbers[word] = number
                self.full = self.most is not None and len(self.counts) > self.most
        return self

    def decided(self, task: str | None, name: str) -> tuple[list[str] | None, str | None]:
        """(labels, task): ascending labels for classification; None if the targets remain numbers.

        task: as given, or inferred from the distinct spellings if some are not those that rfx
        prints. Raises UsageError if it can't be inferred, DataError for too many labels.
        """
        if self.full:
            return None, task_of_many(task, name)
        if None in self.numbers.values():
            return ascending(self.counts), task
        spelled = not all(map(printed, self.counts))
        if task == "regression" or not spelled or (task == KEPT and not are_numbers(self.counts)):
            return None, task
        labels = ascending(self.counts, self.numbers.values())
        if task in (None, KEPT) and len(set(self.numbers.values())) > FEWEST_NUMBERS:
            return None, task
        if task is None:
            counts = np.array([self.counts[one] for one in labels])
            task = guess_of(np.array([self.numbers[one] for one in labels]), counts, labels)
            if task == "regression":
                return None, task
        exact: dict = {}
        for label in labels:
            number = value(label)
            exact.setdefault(self.numbers[label] if number is None else number, []).append(label)
        twice = next((same for same in exact.values() if len(same) > 1), None)
        if twice is not None and task != KEPT:
            warnings.warn(
                f"labels of {name} are the same number in several spellings"
                f" ({', '.join(twice):.100}): they remain different labels; spell equal labels"
                " alike",
                RfxWarning,
                stacklevel=2,
            )
        return labels, task


def task_of_many(task: str | None, name: str) -> str:
    """The task of labels with too many spellings to count. DataError for classification."""
    if task not in (None, KEPT, "regression"):
        raise DataError(
            f"the labels of {name} have more than {MOST:,} distinct values, too many for classes;"
            " set --task regression"
        )
    return task or "regression"


def printed(text: str) -> bool:
    """Whether a label is a number, spelled as rfx prints it, apart from a plus sign; -0 is not, nor
    an integer from 2^53 on.
    """
    if not numerals.is_number(text) or text == "-0":
        return False
    number = float(text)
    return text.removeprefix("+") == number_text(number) and abs(number) < 2.0**53


def recognised(raw) -> bool | None:
    """Whether the first row's label is a word; None if there is no row."""
    first = _FIRST.search(bytes(raw[:_HEAD]))
    return None if first is None else is_word(first[1])


# ---------------------------------------------------------------------- tasks


log = logging.getLogger(__name__)
MOST_CLASSES = 30  # maximum distinct integers inferred as classes
# number of distinct integers above which regression is inferred
FEWEST_NUMBERS = 100
_FEWEST_ROWS = 5  # minimum rows of each class
_SMALLEST_SHARE = 0.1  # minimum rows of a class, relative to an equal share


def number_text(value: float) -> str:
    """A number in the shortest digits that read back as the same value of its type; integers
    without `.0`.
    """
    short = isinstance(value, (np.float16, np.float32))
    return (str(value) if short else repr(float(value))).removesuffix(".0")


def guess_task(y) -> str:
    """The task of targets y (n,): binary, multiclass or regression.

    Two distinct values are classes; so are integers, up to 30 distinct ones, if none is rare (fewer
    than five rows, or less than a tenth of an equal share). Non-integers, and more than 100
    distinct values, mean regression. The inference is logged as a warning, which the command line
    shows. Raises UsageError otherwise: targets such as 1 to 10 may be grades or classes, and a
    wrong guess would silently train the wrong model.
    """
    return guess_of(*np.unique(y, return_counts=True))


def guess_of(values, counts, texts: list[str] | None = None) -> str:
    """`guess_task` for the distinct targets `values`, ascending, with the number of rows of each;
    texts: their spellings.
    """
    texts = [number_text(one) for one in values] if texts is None else texts
    whole = bool(np.all(values == np.round(values)))
    kind = "whole numbers" if whole else "numbers"
    seen = f"{len(values):,} different {kind} from {texts[0]} to {texts[-1]}"
    if len(values) <= 2:
        task = "binary" if len(values) == 2 else "multiclass" if whole else "regression"
        seen = f"{' and '.join(texts)} only"
    elif not whole or len(values) > FEWEST_NUMBERS:
        task = "regression"
    elif len(values) <= MOST_CLASSES and counts.min() >= max(
        _FEWEST_ROWS, _SMALLEST_SHARE * counts.sum() / len(values)
    ):
        task = "multiclass"
        seen += f", each in {counts.min():,} rows or more"
    else:
        rare = (
            f", the rarest in {counts.min():,} of {counts.sum():,} rows"
            if len(values) <= MOST_CLASSES
            else ""
        )
        raise UsageError(
            f"the targets are {seen}{rare}, which may be numbers or classes; use --task regression"
            " or --task multiclass"
        )
    log.warning("task %s, inferred from the targets: %s; --task overrides it", task, seen)
    return task
