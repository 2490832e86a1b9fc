"""Sample weights in a file: one number per line, in the order of the training rows."""

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
    name, weights = files.shown(path), []
    try:
        with files.open_regular(path) as handle:
            text = encodings.text(handle.read(), name).decode("utf-8", "replace")
    except OSError as error:
        raise DataError(f"weights {name} can't be read: {error.strerror or error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            weights.append(numerals.real(line))
        except ValueError:
            weights.append(math.nan)
        if not 0 <= weights[-1] < math.inf:
            raise DataError(
                f"{name}, line {number}: {line.strip()[:40]!r} is not a weight; weights are numbers"
                " of 0 or more, one per line"
            )
    if len(weights) != count:
        raise DataError(
            f"{name} has {len(weights):,} weights, but there are {count:,} training rows; there"
            " must be one per row"
        )
    return np.array(weights)
