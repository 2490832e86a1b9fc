"""Features in memory as 8-bit or 16-bit integers with a factor per row: two or four times as many
rows fit, and reading is faster.

The error of a code is at most half a unit and behaves randomly in sums over features or rows. A
solution is found with codes; its quality is measured with the features themselves.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from rfx import parallel
from rfx.compiled import njit
from rfx.operators.matrix import DenseMatrix, Matrix
from rfx.operators.scaled import ScaledRows

# the type of codes
Kind: TypeAlias = type[np.signedinteger[Any]]
# MiB of features above which computing codes takes less time than new memory.
WORTH_MB = 1024
_SAMPLE = 64


def code_type(Z: Matrix, error: float) -> Kind | None:
    """The smallest type of codes that changes no row of Z by more than the square root of `error`
    in total; None if there is none.

    It is determined from 64 random rows.
    """
    if Z.exact:
        return None
    largest = np.abs(Z.subset(_SAMPLE)[0].to_array()).max(initial=0.0)
    for kind in (np.int8, np.int16):
        # errors are uniform within half a unit
        if Z.shape[1] * (float(largest) / np.iinfo(kind).max) ** 2 / 12 <= error:
            return kind
    return None


def coded(Z: Matrix, kind: DTypeLike) -> ScaledRows:
    """Z as codes of that type, in memory."""
    codes, units = np.empty(Z.shape, kind), np.empty(Z.shape[0], np.float32)
    limit, numbers = np.float32(np.iinfo(codes.dtype).max), np.arange(Z.shape[0])

    def part(first: int, last: int) -> None:
        for rows, block in Z.rows(slice(first, last)).row_blocks():
            _encode(block, numbers[first:last][rows], limit, codes, units)

    parallel.for_ranges(part, len(numbers), smallest=256)
    return ScaledRows(DenseMatrix(codes), units, Z.dtype)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp", "nnan"})
def _encode(
    Z: np.ndarray, places: np.ndarray, limit: np.float32, codes: np.ndarray, units: np.ndarray
) -> None:
    half = limit / (limit + limit)
    for i in range(len(Z)):
        z, row, largest = Z[i], codes[places[i]], limit - limit
        for j in range(len(z)):
            largest = max(largest, abs(z[j]))
        units[places[i]] = largest / limit
        factor = limit / largest if largest > 0 else largest
        for j in range(len(z)):
            row[j] = np.int32(np.floor(z[j] * factor + half))
