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


def coded(Z: Matrix, kind: DTypeLike) -> Store:
    """All rows of Z as codes of that type, in memory."""
    store, numbers = Store(*Z.shape, kind, Z.dtype), np.arange(Z.shape[0])

    def part(first: int, last: int) -> None:
        for rows, block in Z.rows(slice(first, last)).row_blocks():
            store.put(numbers[first:last][rows], block)

    parallel.for_ranges(part, len(numbers), smallest=256)
    return store


class Store:
    """Memory for `count` rows of `width` features of type `dtype`: as such, or as codes of the
    integer type `kind`, with the unit (count,) of each row.
    """

    def __init__(self, count: int, width: int, kind: DTypeLike | None, dtype: DTypeLike) -> None:
        self.values, self.dtype = np.empty((count, width), kind or dtype), np.dtype(dtype)
        self.units = None if kind is None else np.zeros(count, np.float32)

    def __len__(self) -> int:
        return len(self.values)

    def put(self, places: np.ndarray, Z: np.ndarray) -> None:
        """Store the rows of Z (k, D), C-contiguous, at these positions (k,)."""
        values, units = self.values, self.units
        if units is None:
            values[places] = Z
            return
        largest = np.float32(np.iinfo(values.dtype).max)
        parallel.for_ranges(
            lambda a, b: _encode(Z[a:b], places[a:b], largest, values, units), len(Z), smallest=16
        )

    def at(self, places: np.ndarray) -> Matrix:
        """The rows at these positions (k,)."""
        values = DenseMatrix(self.values, places)
        return values if self.units is None else ScaledRows(values, self.units[places], self.dtype)


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
