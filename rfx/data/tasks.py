"""Infer whether targets are numbers or classes if that is safe, and log it; otherwise require an
option.
"""

import logging

import numpy as np

from rfx.errors import UsageError

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
