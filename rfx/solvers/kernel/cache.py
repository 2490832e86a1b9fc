"""Kernel columns over an active set of rows, cached within the memory limit, and sums of such
columns in float64.
"""

from __future__ import annotations

import numpy as np

from rfx import kernels
from rfx.compiled import njit
from rfx.parallel import for_ranges

# Kernel values computed at a time before they are stored or summed, so that they stay in the shared
# cache.
_SCRATCH = 1 << 20
_TILE = 8192
# Minimum columns computed at a time: source rows are read once for several.
_TOGETHER = 32


class ColumnCache:
    """Columns k(x_w, x_a) for a in the active rows, in a least-recently-used cache.

    rows: Prepared; active (n,) those of them that are active, `local` ones by their position in it.
    pool[slots[w]] is the column of local row w. `computed` counts computed columns.
    """

    def __init__(self, rows: kernels.Prepared, active: np.ndarray, memory: np.ndarray) -> None:
        """memory: 1-d array of rows.dtype for columns, with space for at least one of all rows."""
        self._all, self.active, self.rows = rows, active, rows.take(active)
        # A tenth more than needed now: rows that become active later then do not invalidate all
        # columns.
        width = min(rows.n_rows, len(active) + len(active) // 10)
        # The maximum request of one call of `fetch`.
        self.capacity = min(len(active), len(memory) // width)
        self._room = memory[: self.capacity * width].reshape(self.capacity, width)
        self.pool = self._room[:, : len(active)]
        self.slots = np.full(len(active), -1)
        self._owner = np.full(self.capacity, -1)
        self._used = np.zeros(self.capacity, dtype=np.int64)
        self._clock = 0
        self.computed = 0

    def adopt(self, wanted: np.ndarray) -> bool:
        """Make `wanted` (sorted) active as well, keeping all columns; False if a new cache is
        preferable.
        """
        fresh = np.setdiff1d(wanted, self.active, assume_unique=True)
        before, after = len(self.active), len(self.active) + len(fresh)
        if after > self._room.shape[1] or len(wanted) < 0.75 * after:
            return False
        if len(fresh):
            held = np.flatnonzero(self._owner >= 0)
            part = self._all.take(fresh)
            step = max(1, _SCRATCH // len(fresh))
            for start in range(0, len(held), step):
                some = held[start : start + step]
                columns = self.rows.take(self._owner[some])
                self._room[some, before:after] = kernels.block(
                    self.rows.name, columns, part, self.rows.params
                )
            self.active = np.concatenate([self.active, fresh])
            self.rows = self._all.take(self.active)
            self.pool = self._room[:, :after]
            self.slots = np.concatenate([self.slots, np.full(len(fresh), -1)])
        return True

    def fetch(self, wanted: np.ndarray) -> np.ndarray:
        """Slots of the columns of the local rows `wanted` (distinct, at most `capacity`), computed
        if missing.
        """
        self._clock += 1
        slots = self.slots[wanted]
        self._used[slots[slots >= 0]] = self._clock
        missing = wanted[slots < 0]
        if len(missing):
            free = np.sort(np.argsort(self._used, kind="stable")[: len(missing)])
            evicted = self._owner[free]
            self.slots[evicted[evicted >= 0]] = -1
            self._owner[free], self.slots[missing], self._used[free] = missing, free, self._clock
            step = max(_TOGETHER, 4 * _SCRATCH // self.rows.n_rows)
            for start in range(0, len(missing), step):
                part, places = missing[start : start + step], free[start : start + step]
                arguments = self.rows.name, self.rows.take(part), self.rows, self.rows.params
                if places[-1] - places[0] == len(places) - 1:
                    # Contiguous, as while the cache fills: written in place, by all threads.
                    kernels.block(*arguments, out=self.pool[places[0] : places[-1] + 1])
                else:
                    self.pool[places] = kernels.block(*arguments)
            self.computed += len(missing)
            slots = self.slots[wanted]
        return slots

    def square(self, wanted: np.ndarray) -> np.ndarray:
        """(q, q) kernel values among the local rows `wanted`."""
        own = self.rows.take(wanted)
        return kernels.block(self.rows.name, own, own, self.rows.params)

    def add_to(self, sums: np.ndarray, slots: np.ndarray, weights: np.ndarray) -> None:
        """sums += sum_w weights[w] pool[slots[w]] in float64."""
        for_ranges(
            lambda start, stop: _accumulate(self.pool, slots, weights, sums, start, stop),
            len(sums),
            1024,
        )


def add_columns(
    sums: np.ndarray,
    rows: kernels.Prepared,
    targets: np.ndarray,
    sources: np.ndarray,
    weights: np.ndarray,
) -> None:
    """sums[targets] += sum_s weights[s] k(x_s, x_targets) in float64, without storing kernel
    values.
    """
    step = max(1, 2 * _SCRATCH // _TILE)
    for begin in range(0, len(targets), _TILE):
        chosen = targets[begin : begin + _TILE]
        part = rows.take(chosen)
        total = np.zeros(len(chosen))
        K = np.empty((min(step, len(sources)), len(chosen)), rows.dtype)
        for start in range(0, len(sources), step):
            some = sources[start : start + step]
            kernels.block(rows.name, rows.take(some), part, rows.params, out=K[: len(some)])
            slots, some_weights = np.arange(len(some)), weights[start : start + step]
            for_ranges(
                lambda first, last: _accumulate(K, slots, some_weights, total, first, last),
                len(total),
                1024,
            )
        sums[chosen] += total


@njit(cache=True, nogil=True)
def _accumulate(
    pool: np.ndarray,
    slots: np.ndarray,
    weights: np.ndarray,
    sums: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """sums[start:stop] += weights @ pool[slots, start:stop]; four columns in one pass over a tile
    of sums.
    """
    tile = 1024
    whole = len(slots) - len(slots) % 4
    for begin in range(start, stop, tile):
        end = min(begin + tile, stop)
        total = sums[begin:end]
        for w in range(0, whole, 4):
            a, b, c, d = weights[w], weights[w + 1], weights[w + 2], weights[w + 3]
            A, B = pool[slots[w], begin:end], pool[slots[w + 1], begin:end]
            C, D = pool[slots[w + 2], begin:end], pool[slots[w + 3], begin:end]
            for j in range(end - begin):
                total[j] += (a * A[j] + b * B[j]) + (c * C[j] + d * D[j])
        for w in range(whole, len(slots)):
            a, A = weights[w], pool[slots[w], begin:end]
            for j in range(end - begin):
                total[j] += a * A[j]
