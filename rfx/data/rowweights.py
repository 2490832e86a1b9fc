"""Sample weights in a file: one number per line, in the order of the training rows."""

import io
import math

import numpy as np

from rfx import files, numerals
from rfx.data import encodings
from rfx.errors import DataError


def read(path, count: int) -> np.ndarray:
    """(count,) float64 weights.

    Raises DataError with the line number for an invalid weight, and if there are not `count` of
    them.
    """
    found = []
    try:
        with files.open_regular(path, "rb") as handle:
            lines = io.TextIOWrapper(
                encodings.opened(handle, files.shown(path)), "utf-8", "replace"
            )
            for number, line in enumerate(lines, start=1):
                found.append(_number(path, number, line))
                if len(found) > count:
                    break
    except OSError as error:
        raise DataError(
            f"weights {files.shown(path)} can't be read: {error.strerror or error}"
        ) from error
    if len(found) != count:
        more = f"more than {count:,}" if len(found) > count else f"{len(found):,}"
        raise DataError(
            f"{files.shown(path)} has {more} weights, but there are {count:,} training rows; there"
            " must be one per row"
        )
    return np.array(found)


def _number(path, number, line) -> float:
    try:
        value = numerals.real(line)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        place = f"{files.shown(path)}, line {number}"
        raise DataError(
            f"{place}: {line.strip()[:40]!r} is not a weight; weights are numbers of 0 or more, one"
            " per line"
        )
    return value
