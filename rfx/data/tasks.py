"""Are the targets numbers or classes? Guessed where that is safe, and said; asked for where
it is not.
"""

import logging

import numpy as np

from rfx.errors import UsageError

log = logging.getLogger(__name__)
MOST_CLASSES = 30  # different whole numbers that are taken for classes without asking
# more different whole numbers than this are taken for a regression's without asking
FEWEST_NUMBERS = 100
_FEWEST_ROWS = 5  # of each class
_SMALLEST_SHARE = 0.1  # of a class, in what it would have if all had as many rows


def number_text(value: float) -> str:
    """A number in the shortest digits that read back to the same one of its type; whole
    numbers without `.0`.
    """
    short = isinstance(value, (np.float16, np.float32))
    return (str(value) if short else repr(float(value))).removesuffix(".0")


def guess_task(y) -> str:
    """The task that targets y (n,) are for: binary, multiclass or regression.

    Two different values are classes; so are whole numbers, up to 30 of them, when none is rare
    (fewer than five rows, or less than a tenth of an even share). Numbers that are not whole, and
    more than 100 different ones, are a regression's. What was guessed from what is logged as a
    warning, which the command line shows. Raises UsageError for anything else: targets such as 1 to
    10 may be marks or classes, and a wrong guess trains the wrong thing without a word.
    """
    return guess_of(*np.unique(y, return_counts=True))


def guess_of(values, counts, texts: list[str] | None = None) -> str:
    """`guess_task` of the different targets `values`, ascending, each of which so many rows
    have; texts: how they are spelled.
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
