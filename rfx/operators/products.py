"""Weighted Gram matrices of some columns of an array, chunk by chunk, in the features' own precision where they are large."""

import numpy as np
from numba import njit

from rfx.parallel import check_time, for_ranges

# Rows of a chunk whose products are summed in the features' own precision before they join the float64 total.
CHUNK = 2048
# Multiplications that take no time worth saving.
SMALL = 2**28


def weighted_gram(Z, rows, weights, left, right=None, dtype=None):
    """Sum of weight * Z[row, left] Z[row, left]' in float64; with `right`, a pair: that and the same with Z[row, right].

    GEMM and SYRK in Z's precision or that of dtype, in float64 up to SMALL products, of columns and weights relative to their
    largest: signs and 0/1 weights are then summed without rounding, whose noise would otherwise outweigh the least eigenvalues.
    Each thread takes some of the chunks: BLAS's own threads spin while they wait for each other, which on a busy machine costs
    many times the work.
    """
    sides = (left,) if right is None else (left, right)
    size = len(rows) * len(left) * sum(len(columns) for columns in sides)
    dtype = np.dtype(np.float64) if size <= SMALL else dtype or Z.dtype
    peak = np.abs(weights).max(initial=0.0) or 1.0
    tops = [_largest(Z, rows[:CHUNK], columns) for columns in sides]

    def part(first, last):
        totals = [np.zeros((len(left), len(columns))) for columns in sides]
        for start in range(first * CHUNK, min(last * CHUNK, len(rows)), CHUNK):
            check_time()
            chosen, scale = rows[start : start + CHUNK], weights[start : start + CHUNK] / peak
            for sign in (1.0, -1.0):
                signed = np.flatnonzero(sign * scale > 0)
                if not len(signed):
                    continue
                some, root = chosen[signed], np.sqrt(sign * scale[signed])
                by_left = _gather(Z, some, left, root, tops[0], dtype)
                # numpy sees X' X and calls SYRK: half the work, and symmetric to the last bit.
                totals[0] += sign * (by_left.T @ by_left)
                for total, columns, top in zip(totals[1:], sides[1:], tops[1:]):
                    total += sign * (by_left.T @ _gather(Z, some, columns, root, top, dtype))
        return totals

    totals, *others = for_ranges(part, -(-len(rows) // CHUNK))
    for other in others:
        for total, more in zip(totals, other):
            total += more
    for total, top in zip(totals, tops):
        total *= peak * tops[0].astype(np.float64)[:, None]
        total *= top
    return totals[0] if right is None else (totals[0], totals[1])


def _largest(Z, rows, columns):
    """The largest |Z[row, column]| of each column, in Z's precision; 1 where all are zero."""
    top = np.abs(_gather(Z, rows, columns, np.ones(len(rows)), np.ones(len(columns), Z.dtype), Z.dtype)).max(axis=0, initial=0.0)
    return np.where(top > 0, top, 1).astype(Z.dtype)


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
