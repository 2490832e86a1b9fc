"""Weighted Gram matrices of some columns of an array, in chunks, in the features' own precision if
they are large.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from rfx import env
from rfx.compiled import njit
from rfx.operators.blocks import GramOrPair, ranges
from rfx.parallel import DENSE, check_time, for_ranges

# sums, products of a tile per thread, gathered rows
_Room: TypeAlias = tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]
# Rows of a chunk whose products are summed in the features' own precision before they are added to
# the float64 total.
CHUNK = 2048
# Number of multiplications too small to optimise.
SMALL = 2**28
# Rows for estimating the magnitude of a column.
_TOP = 256
# Maximum columns on all sides of a sum for a separate sum per thread, and those of a tile beyond.
_ONE_TILE, _TILE = 2**11, 512


def weighted_gram(
    Z: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    left: np.ndarray,
    right: np.ndarray | None = None,
    dtype: DTypeLike | None = None,
) -> GramOrPair:
    """Sum of weight * Z[row, left] Z[row, left]' in float64; with `right`, a pair: that and the
    same with Z[row, right].

    dtype: see GramSum.
    """
    sums = GramSum(left, right, len(rows), dtype or Z.dtype, np.abs(weights).max(initial=0.0))
    sums.add(Z, rows, weights)
    return sums.total()


class GramSum:
    """The sum of `weighted_gram`.

    GEMM and SYRK use the requested precision, float64 up to SMALL products, with columns and
    weights relative to their largest: signs and 0/1 weights are then summed without rounding, whose
    noise would otherwise exceed the smallest eigenvalues. Each thread processes some of the chunks
    or, for a large sum, some of its tiles, because a separate sum per thread would need many times
    the memory. BLAS's own threads spin while waiting for each other, which costs many times the
    work on a busy machine. numpy calls SYRK for the product of a matrix with itself, and releases
    the GIL, unlike scipy.linalg.blas.
    """

    def __init__(
        self,
        left: np.ndarray,
        right: np.ndarray | None,
        n_rows: int,
        dtype: DTypeLike,
        peak: float,
    ) -> None:
        """left, right: integer arrays of columns, right may be None; n_rows: the number to add;
        peak: the largest weight in magnitude.
        """
        self.sides = (left,) if right is None else (left, right)
        width, threads = sum(map(len, self.sides)), env.threads()
        self.dtype, self.peak = (
            np.dtype(np.float64 if n_rows * len(left) * width <= SMALL else dtype),
            peak or 1.0,
        )
        # large: one sum for all threads
        self.large, self.n_rows = width > _ONE_TILE, n_rows
        self.parts: list[_Room | None] = [None] * (
            1 if self.large else max(1, min(threads, -(-n_rows // CHUNK)))
        )
        side = _TILE if self.large else max(map(len, self.sides))
        self.tiles = [
            (k, *tile)
            for k, columns in enumerate(self.sides)
            for tile in _tiles(len(left), len(columns), side, upper=k == 0)
        ]

    def add(self, Z: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> None:
        """Add the rows of Z, an integer array, with their weights."""
        self.tops = [_largest(Z, rows[:_TOP], columns) for columns in self.sides]
        # the weights of each chunk have one sign
        chunks = [
            (sign, some[start : start + CHUNK])
            for sign in (1, -1)
            for some in [np.flatnonzero(sign * weights > 0)]
            for start in range(0, len(some), CHUNK)
        ]

        def part(first: int, last: int) -> None:
            for number in range(first, last):
                self._add(number, chunks[number :: len(self.parts)], Z, rows, weights)

        work = len(rows) * len(self.sides[0]) * sum(map(len, self.sides)) / DENSE
        for_ranges(part, len(self.parts), work=work)

    def _add(
        self,
        number: int,
        chunks: list[tuple[int, np.ndarray]],
        Z: np.ndarray,
        rows: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        room = self.parts[number] = self._room()
        for sign, chosen in chunks:
            check_time()
            self._add_chunk(
                sign, Z, rows[chosen], np.sqrt(np.abs(weights[chosen]) / self.peak), *room
            )

    def _add_chunk(
        self,
        sign: int,
        Z: np.ndarray,
        rows: np.ndarray,
        roots: np.ndarray,
        totals: list[np.ndarray],
        products: np.ndarray,
        room: list[np.ndarray],
    ) -> None:
        """Add rows times their square roots; within a part, where each thread has one, the work is
        not split further.
        """
        gathered = [block[: len(rows)] for block in room]

        def gather(first: int, last: int) -> None:
            for columns, top, block in zip(self.sides, self.tops, gathered):
                _gather(Z, rows[first:last], columns, roots[first:last], top, block[first:last])

        def multiply(first: int, last: int) -> None:
            for thread in range(first, last):
                for side, left, right in self.tiles[thread :: len(products)]:
                    total = totals[side][left, right]
                    product = products[thread][: total.size].reshape(total.shape)
                    # half the work for the product of a matrix with itself
                    np.matmul(gathered[0][:, left].T, gathered[side][:, right], out=product)
                    (np.add if sign > 0 else np.subtract)(total, product, out=total)

        widths = [len(columns) for columns in self.sides]
        for_ranges(gather, len(rows), 64, work=2 * len(rows) * sum(widths))
        for_ranges(multiply, len(products), work=len(rows) * widths[0] * sum(widths) / DENSE)

    def _room(self) -> _Room:
        """Sums, products of a tile per thread, gathered rows: reused, because new arrays for every
        chunk would be new memory pages.
        """
        left, rows = len(self.sides[0]), min(CHUNK, self.n_rows)
        largest = max(
            [
                (left.stop - left.start) * (right.stop - right.start)
                for _, left, right in self.tiles
            ],
            default=0,
        )
        threads = min(env.threads() if len(self.parts) == 1 else 1, max(1, len(self.tiles)))
        totals = [np.zeros((left, len(columns))) for columns in self.sides]
        return (
            totals,
            np.empty((threads, largest), self.dtype),
            [np.empty((rows, len(columns)), self.dtype) for columns in self.sides],
        )

    def total(self) -> GramOrPair:
        """The sum, or the pair of them."""
        totals, *others = [totals for totals, *_ in filter(None, self.parts)]
        del self.parts
        for other in others:
            for total, more in zip(totals, other):
                total += more
        tops = [top.astype(np.float64) for top in self.tops]
        _finish(totals[0], self.peak, tops[0])
        for total, top in zip(totals[1:], tops[1:]):
            total *= self.peak * tops[0][:, None]
            total *= top
        return totals[0] if len(totals) == 1 else (totals[0], totals[1])


def _tiles(height: int, width: int, side: int, upper: bool) -> list[tuple[slice, slice]]:
    """Slices of rows and columns, at most `side` long, that cover (height, width), or the part on
    and above its diagonal.
    """
    rows, columns = (list(ranges(size, max(1, side))) for size in (height, width))
    return [
        (left, right)
        for i, left in enumerate(rows)
        for right in (columns[i:] if upper else columns)
    ]


def _largest(Z: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The largest |Z[row, column]| of each column, in Z's precision; 1 where all are zero."""
    room = np.empty((len(rows), len(columns)), Z.dtype)
    top = np.abs(_gather(Z, rows, columns, np.ones(len(rows)), np.ones(len(columns)), room)).max(
        axis=0, initial=0.0
    )
    return np.where(top > 0, top, 1).astype(Z.dtype)


@njit(cache=True, nogil=True)
def _finish(total: np.ndarray, factor: float, top: np.ndarray) -> None:
    """total <- factor diag(top) total diag(top), computed from its upper triangle, tile by tile."""
    n = len(total)
    for i in range(0, n, 64):
        for j in range(i, n, 64):
            for k in range(i, min(i + 64, n)):
                scale = factor * top[k]
                for m in range(max(j, k), min(j + 64, n)):
                    total[k, m] *= scale * top[m]
                    total[m, k] = total[k, m]


def _gather(
    Z: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    scale: np.ndarray,
    unit: np.ndarray,
    room: np.ndarray,
) -> np.ndarray:
    """Z[rows][:, columns] / unit, each row times its scale, in C order and the type of `room`,
    whose first rows are used.
    """
    out = room[: len(rows)]
    _pick(Z, rows, columns, scale.astype(out.dtype), unit.astype(out.dtype), out)
    return out


@njit(cache=True, nogil=True)
def _pick(
    Z: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    scale: np.ndarray,
    unit: np.ndarray,
    out: np.ndarray,
) -> None:
    for i in range(len(rows)):
        row, factor = rows[i], scale[i]
        for k in range(len(columns)):
            out[i, k] = Z[row, columns[k]] / unit[k] * factor
