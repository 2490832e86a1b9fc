"""Blocks of rows, and Gram matrices that are summed over them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

from rfx import env
from rfx.compiled import njit
from rfx.parallel import DENSE, check_time, for_ranges

# ----------------------------------------------------------------------
# Division of rows: blocks of a given number of bytes, and ranges.

BLOCK_BYTES = 32 * 2**20


def ranges(size: int, width: int) -> Iterator[slice]:
    """Slices of at most `width` that cover range(size)."""
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def block_size(length: int, dtype: DTypeLike, target: int | None = None) -> int:
    """The number of rows of that length in about `target` bytes (BLOCK_BYTES by default), at least
    256.
    """
    row_bytes = max(1, length * np.dtype(dtype).itemsize)
    return max(256, (target or BLOCK_BYTES) // row_bytes)


def default_memory_mb() -> float:
    """Default memory of a solver for features: a third of the free memory, of the machine and of
    the process's cgroup.
    """
    return env.available_memory_mb() / 3


# ----------------------------------------------------------------------
# Weighted Gram matrices of some columns of an array, in chunks, in the features' own precision if
# they are large.

# Rows of a chunk whose products are summed in the features' own precision before they are added to
# the float64 total.
CHUNK = 2048
# Number of multiplications too small to optimise.
SMALL = 2**28
# Rows for estimating the magnitude of a column.
_TOP = 256
# Columns of a tile.
_TILE = 512


def weighted_gram(
    Z: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    dtype: DTypeLike | None = None,
    *,
    tile_columns: int = _TILE,
    small: int = SMALL,
) -> tuple[np.ndarray, np.ndarray]:
    """Sum of weight * Z[row, left] Z[row, left]' in float64, and the same with Z[row, right].

    GEMM and SYRK use the requested precision, float64 up to `small` products, with columns and
    weights relative to their largest: signs and 0/1 weights are then summed without rounding, whose
    noise would otherwise exceed the smallest eigenvalues. Threads share the tiles of the sum.
    BLAS's own threads spin while waiting for each other, which costs many times the work on a busy
    machine. numpy calls SYRK for the product of a matrix with itself, and releases the GIL, unlike
    scipy.linalg.blas.
    """
    sides = left, right
    height = len(left)
    width = sum(map(len, sides))
    peak = float(np.abs(weights).max(initial=0.0)) or 1.0
    work = len(rows) * height * width
    kind = np.dtype(np.float64 if work <= small else dtype or Z.dtype)
    tops = [_largest(Z, rows[:_TOP], columns) for columns in sides]
    totals = [np.zeros((height, len(columns))) for columns in sides]
    square, cross = totals
    # reused, because new arrays for every chunk would be new memory pages
    n_chunk = min(CHUNK, len(rows))
    room = [np.empty((n_chunk, len(columns)), kind) for columns in sides]
    tiles = [(0, *tile) for tile in _tiles(height, height, tile_columns, upper=True)]
    tiles += [(1, *tile) for tile in _tiles(height, len(right), tile_columns, upper=False)]
    # the weights of each chunk have one sign
    for sign, add in ((1, np.add), (-1, np.subtract)):
        some = np.flatnonzero(sign * weights > 0)
        for start in range(0, len(some), CHUNK):
            check_time()
            chosen = some[start : start + CHUNK]
            count = len(chosen)
            roots = np.sqrt(np.abs(weights[chosen]) / peak)
            blocks = [block[:count] for block in room]

            def gather(first: int, last: int) -> None:
                own = rows[chosen[first:last]]
                for columns, top, block in zip(sides, tops, blocks):
                    _gather(Z, own, columns, roots[first:last], top, block[first:])

            def multiply(first: int, last: int) -> None:
                for side, a, b in tiles[first:last]:
                    tile = totals[side][a, b]
                    # half the work for the product of a matrix with itself
                    add(tile, blocks[0][:, a].T @ blocks[side][:, b], out=tile)

            for_ranges(gather, count, 64, work=2 * count * width)
            for_ranges(multiply, len(tiles), work=count * height * width / DENSE)
    left_top, right_top = (top.astype(np.float64) for top in tops)
    scale_and_mirror(square, peak, left_top)
    return square, cross * (peak * left_top[:, None] * right_top)


def _tiles(height: int, width: int, side: int, upper: bool) -> list[tuple[slice, slice]]:
    """Slices of rows and columns, at most `side` long, that cover (height, width), or the part on
    and above its diagonal.
    """
    rows = _even_ranges(height, side)
    columns = _even_ranges(width, side)
    tiles = []
    for i, left in enumerate(rows):
        some = columns[i:] if upper else columns
        tiles += [(left, right) for right in some]
    return tiles


def _even_ranges(size: int, most: int) -> list[slice]:
    """Slices of at most `most`, as few as possible and of nearly equal length."""
    if size == 0:
        return []
    count = -(-size // most)
    return list(ranges(size, -(-size // count)))


def _largest(Z: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The largest |Z[row, column]| of each column, in Z's precision; 1 where all are zero."""
    n_rows, n_columns = len(rows), len(columns)
    room = np.empty((n_rows, n_columns), Z.dtype)
    values = _gather(Z, rows, columns, np.ones(n_rows), np.ones(n_columns), room)
    top = np.abs(values).max(axis=0, initial=0.0)
    return np.where(top > 0, top, 1).astype(Z.dtype)


@njit(cache=True, nogil=True)
def scale_and_mirror(total: np.ndarray, factor: float, top: np.ndarray) -> None:
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
        row = rows[i]
        factor = scale[i]
        for k in range(len(columns)):
            entry = Z[row, columns[k]]
            out[i, k] = entry / unit[k] * factor
