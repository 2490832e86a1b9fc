"""Z' diag(h) Z for selected bins, by counting the rows that two bins share as common bits.

Random binning features are constant where they are nonzero, so an entry of the Gram matrix is the
sum of the weights h of the rows in both bins. Rows of equal weight form one run of bits; the
processor counts the bits of 64 rows at once. For the squared and the squared hinge loss, whose
weights are 0 and 1 or 2, this is about twenty times as fast as a float32 product.
"""

from __future__ import annotations

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.kernels.binary import count_bits
from rfx.operators.blocks import GramOrPair

# 64-bit words of a bin that are counted before the next bin: what fits into the first-level cache.
_LENGTH, _PARTS = 256, 64


def meetings(
    ids: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    left: np.ndarray,
    right: np.ndarray | None = None,
) -> GramOrPair:
    """(|left|, |left|) float64 sums of the weights of the rows that two bins share; with `right`, a
    pair: that and (|left|, |right|).

    ids, starts: as in BinnedMatrix. weights: (N,). left, right: column numbers.
    """
    columns = left if right is None else np.concatenate([left, right])
    square = np.zeros((len(left), len(left)))
    rest = None if right is None else np.zeros((len(left), len(right)))
    if len(left) and np.any(weights):
        bits, runs, values = _bits(ids, starts, weights, columns)
        own, other = bits[: len(left)], bits[len(left) :]
        # rows of the lower triangle in parts of equal size, with some entries above the diagonal
        bounds = np.rint(len(left) * np.sqrt(np.arange(_PARTS + 1) / _PARTS)).astype(int)

        def lower(start: int, stop: int) -> None:
            for a, b in zip(bounds[start:stop], bounds[start + 1 : stop + 1]):
                _rectangle(own[a:b], own[:b], runs, values, square[a:b])

        parallel.for_ranges(lower, _PARTS, work=bits.shape[1] * len(left) ** 2)
        _mirror(square)
        if right is not None and rest is not None:
            parallel.for_ranges(
                lambda a, b: _rectangle(own[a:b], other, runs, values, rest[a:b]),
                len(left),
                parts=_PARTS,
                work=2 * bits.shape[1] * len(left) * len(right),
            )
    return square if right is None else (square, rest)


def _bits(
    ids: np.ndarray, starts: np.ndarray, weights: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(bits (columns, words), runs, values): the rows in each column, those of weight values[k] in
    words runs[k] .. runs[k + 1].
    """
    rows = np.flatnonzero(weights)
    values, kind = np.unique(weights[rows], return_inverse=True)
    order = np.argsort(kind, kind="stable")
    counts = np.bincount(kind, minlength=len(values))
    runs = np.concatenate([[0], np.cumsum(-(-counts // 64))])
    firsts = np.cumsum(counts) - counts
    # the position of each row's bit: its rank among the rows of its weight, after the words of
    # earlier weights
    places = np.arange(len(rows)) + (64 * runs[:-1] - firsts)[kind[order]]
    bits = np.zeros((len(columns), int(runs[-1])), np.uint64)
    sorted_rows = rows[order]
    by_grid = np.argsort(columns, kind="stable")
    grids = np.searchsorted(starts, columns[by_grid], side="right") - 1
    used, begins = np.unique(grids, return_index=True)
    begins = np.append(begins, len(columns))

    def part(start: int, stop: int) -> None:
        table = np.full(int(np.diff(starts).max()), -1, np.int32)
        for k in range(start, stop):
            own = by_grid[begins[k] : begins[k + 1]]
            _fill(
                ids[used[k]], sorted_rows, places, columns[own] - starts[used[k]], own, table, bits
            )

    parallel.for_ranges(part, len(used), work=2 * len(used) * len(rows))
    return bits, runs, values


def _mirror(square: np.ndarray) -> None:
    """The upper triangle <- the lower one, block by block."""
    for start in range(0, len(square), 512):
        stop = start + 512
        square[start:stop, stop:] = square[stop:, start:stop].T
        block = square[start:stop, start:stop]
        block[...] = np.tril(block) + np.tril(block, -1).T


@njit(cache=True, nogil=True)
def _fill(
    ids: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    bins: np.ndarray,
    columns: np.ndarray,
    table: np.ndarray,
    bits: np.ndarray,
) -> None:
    """bits[columns_k] <- the positions of the rows in bin bins_k of the grid; table: scratch of -1,
    restored.
    """
    for k in range(len(bins)):
        table[bins[k]] = columns[k]
    for t in range(len(rows)):
        column = table[ids[rows[t]]]
        if column >= 0:
            bits[column, places[t] >> 6] |= np.uint64(1) << np.uint64(places[t] & 63)
    for k in range(len(bins)):
        table[bins[k]] = -1


@njit(cache=True, nogil=True)
def _rectangle(
    left: np.ndarray, right: np.ndarray, runs: np.ndarray, values: np.ndarray, out: np.ndarray
) -> None:
    """out[i, j] <- out[i, j] + the weight of the common bits of left_i and right_j."""
    for k in range(len(values)):
        for low in range(runs[k], runs[k + 1], _LENGTH):
            high = min(low + _LENGTH, runs[k + 1])
            for first in range(0, len(right), 64):
                for i in range(len(left)):
                    _count(
                        left[i, low:high],
                        right[:, low:high],
                        first,
                        min(first + 64, len(right)),
                        values[k],
                        out[i],
                    )


@njit(cache=True, nogil=True)
def _count(
    own: np.ndarray, others: np.ndarray, start: int, stop: int, value: float, out: np.ndarray
) -> None:
    """out_j <- out_j + value times the common bits of `own` and others_j; four at a time, a few
    beyond `stop` too.
    """
    j = start
    while j < stop and j + 4 <= len(others):
        a, b, c, d = others[j], others[j + 1], others[j + 2], others[j + 3]
        na, nb, nc, nd = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        for t in range(len(own)):
            x = own[t]
            na += count_bits(x & a[t])  # type: ignore[call-arg]  # numba passes the first one
            nb += count_bits(x & b[t])
            nc += count_bits(x & c[t])
            nd += count_bits(x & d[t])
        out[j] += value * na
        out[j + 1] += value * nb
        out[j + 2] += value * nc
        out[j + 3] += value * nd
        j += 4
    while j < stop:
        total = np.uint64(0)
        for t in range(len(own)):
            total += count_bits(own[t] & others[j, t])  # type: ignore[call-arg]
        out[j] += value * total
        j += 1
