"""Weighted Gram matrices of some columns of an array, chunk by chunk, in the features' own precision where they are large."""

import numpy as np
from numba import njit

from rfx.parallel import for_ranges

# Rows of a chunk whose products are summed in the features' own precision before they join the float64 total.
CHUNK = 2048
_TILE = 64
# Multiplications that take no time worth saving.
SMALL = 2**28


def products(Z, rows, weights, left, right, dtype=None):
    """[sum of weight * Z[row, left] Z[row, left]', the same with Z[row, right] where given], chunk by chunk.

    GEMM and SYRK in Z's precision or that of dtype, in float64 up to SMALL products, of columns and weights relative to their
    largest: signs and 0/1 weights are then summed without rounding, whose noise would otherwise outweigh the least eigenvalues.
    Each thread takes some of the chunks: BLAS's own threads spin while they wait for each other, which on a busy machine costs
    many times the work.
    """
    size = len(left) + (0 if right is None else len(right))
    dtype = np.dtype(np.float64) if len(rows) * len(left) * size <= SMALL else dtype or Z.dtype
    peak = np.abs(weights).max(initial=0.0) or 1.0
    tops = [_largest(Z, rows[:CHUNK], columns) for columns in ((left,) if right is None else (left, right))]

    def part(first, last):
        total = zero_total(left, right)
        for start in range(first * CHUNK, min(last * CHUNK, len(rows)), CHUNK):
            chosen, scale = rows[start : start + CHUNK], weights[start : start + CHUNK] / peak
            for sign in (1.0, -1.0):
                signed = np.flatnonzero(sign * scale > 0)
                if len(signed):
                    some, root = chosen[signed], np.sqrt(sign * scale[signed])
                    by_left = _gather(Z, some, left, root, tops[0], dtype)
                    # numpy sees X' X and calls SYRK: half the work, and symmetric to the last bit.
                    (np.add if sign > 0 else np.subtract)(total[0], by_left.T @ by_left, out=total[0])
                    if right is not None:
                        total[1] += by_left.T @ _gather(Z, some, right, root, tops[1], dtype)
        return total

    parts = for_ranges(part, -(-len(rows) // CHUNK))
    for other in parts[1:]:
        add_total(parts[0], other)
    for total, top in zip(parts[0], tops):
        total *= peak * tops[0].astype(np.float64)[:, None]
        total *= top
    return parts[0]


def squares(Z, columns):
    """Sums of the squares of these columns, float64."""
    out = np.zeros(len(columns))
    Z = Z if len(columns) == Z.shape[1] else Z.take(columns, axis=1)
    for_ranges(lambda first, last: _squares(Z, out, first, last), len(out), _TILE)
    return out


def _largest(Z, rows, columns):
    """The largest |Z[row, column]| of each column, in Z's precision; 1 where all are zero."""
    top = np.abs(_gather(Z, rows, columns, np.ones(len(rows)), np.ones(len(columns), Z.dtype), Z.dtype)).max(axis=0, initial=0.0)
    return np.where(top > 0, top, 1).astype(Z.dtype)


def zero_total(left, right):
    """What `products` returns for no rows."""
    return [np.zeros((len(left), len(columns))) for columns in ((left,) if right is None else (left, right))]


def add_total(total, other):
    """total += other, array by array."""
    for a, b in zip(total, other):
        a += b


def _gather(Z, rows, columns, scale, unit, dtype):
    """Z[rows][:, columns] / unit, each row times its scale, in C order."""
    out = np.empty((len(rows), len(columns)), dtype)
    _pick(Z, rows, columns, scale.astype(dtype), unit.astype(dtype), out)
    return out


@njit(cache=True, nogil=True)
def _pick(Z, rows, columns, scale, unit, out):
    for i in range(len(rows)):
        row, factor = rows[i], scale[i]
        for k in range(len(columns)):
            out[i, k] = Z[row, columns[k]] / unit[k] * factor


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _squares(Z, out, first, last):
    # A tile of columns suits both orders of memory.
    for start in range(first, last, _TILE):
        stop = min(start + _TILE, last)
        for i in range(Z.shape[0]):
            for k in range(start, stop):
                z = np.float64(Z[i, k])
                out[k] += z * z
