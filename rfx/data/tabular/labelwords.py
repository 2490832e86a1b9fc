"""Labels: which spellings are the same label; and the task that targets show if that is safe, which
is logged.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

import numpy as np

from rfx import numerals
from rfx.data.tabular import number_formats
from rfx.data.tabular.table import Words
from rfx.errors import UsageError, warn

# The task for rows that are only rewritten: labels keep their spelling, and nothing is inferred.
KEPT = "kept"

# Maximum distinct spellings counted for rows that are not all in memory.
MOST = 1000


def value(text: str) -> Decimal | None:
    """The exact number spelled by a text; None if it is not a number."""
    return numerals.exact(text) if numerals.is_number(text) else None


def matched(words: Iterable[str], labels: list[str]) -> list[int]:
    """The position of each word among the labels, or -1.

    A word is matched by its spelling without a plus sign, else by its value as in
    `number_formats.matched`.
    """
    spelled = set(labels)
    words = [word if word in spelled else unsigned(word) for word in words]
    return number_formats.matched(words, labels)


def unsigned(word: str) -> str:
    """A number without its plus sign, which is optional in LIBSVM files; other words unchanged."""
    return word[1:] if word[:1] == "+" and value(word) is not None else word


def words_of_numbers(y) -> Words:
    """Numbers (n,) as printed words."""
    distinct, codes = np.unique(y, return_inverse=True)
    return Words.of(codes, map(number_text, distinct))


def are_numbers(words) -> bool:
    """Whether all words are numbers in LIBSVM syntax."""
    return all(value(word) is not None for word in words)


class OpenLabels(list):
    """Labels that other rows may extend."""


def decided(
    words: Mapping[str, int], numbers: Iterable[float], task: str | None, name: str
) -> tuple[list[str] | None, str | None]:
    """(labels, task): ascending labels for classification; None if the targets remain numbers.

    words: {spelling: rows} of targets that are all numbers; numbers: their values. task: as given,
    or inferred from the distinct spellings if some are not those that rfx prints. Raises UsageError
    if it can't be inferred.
    """
    counts: Counter[str] = Counter()
    values: dict[str, float] = {}
    for (word, count), number in zip(words.items(), numbers):
        counts[unsigned(word)] += count
        values[unsigned(word)] = number
    if _stay_numbers(values, task):
        return None, task
    exact = {word: value(word) for word in counts}
    labels = sorted(counts, key=lambda word: (values[word], exact[word] or 0, word))
    if task is None:
        rows = np.array([counts[label] for label in labels])
        task = guess_of(np.array([values[label] for label in labels]), rows, labels)
        if task == "regression":
            return None, task
    known = {word: values[word] if number is None else number for word, number in exact.items()}
    twice = number_formats.alike(labels, known.__getitem__)
    if twice and task != KEPT:
        warn(
            f"labels of {name} are the same number in several spellings"
            f" ({', '.join(twice[0]):.100}): they remain different labels; spell equal labels"
            " alike"
        )
    return labels, task


def _stay_numbers(values: Mapping[str, float], task: str | None) -> bool:
    """Whether targets with these spellings are numbers, not labels."""
    if task == "regression" or all(map(printed, values)):
        return True
    if task == KEPT and not are_numbers(values):
        return True
    return task in (None, KEPT) and len(set(values.values())) > FEWEST_NUMBERS


def printed(text: str) -> bool:
    """Whether a label is a number, spelled as rfx prints it, apart from a plus sign; -0 is not, nor
    an integer from 2^53 on.
    """
    if not numerals.is_number(text) or text == "-0":
        return False
    number = float(text)
    return text.removeprefix("+") == number_text(number) and abs(number) < 2.0**53


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
