"""How rows are divided: blocks that take so many bytes, ranges of numbers, and rows that
are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rfx import env
from rfx.counters import uniforms

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

BLOCK_BYTES = 32 * 2**20
# what `Matrix.gram` gives: an array, or with `right` a pair of them
GramOrPair: TypeAlias = np.ndarray | Any
# The most rows of which some are drawn by a permutation of all, and the stream of numbers that more
# are drawn by.
_PERMUTED, _DRAW = 1 << 22, 48


def drawn(size: int, count: int, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Those of `count` different numbers below `size`, ascending, that lie in start .. stop-1.

    They depend on (size, count) alone, so each part of the rows can tell which of its own are
    drawn: the first of a permutation, or where that would take much memory, one of each of `count`
    equal stretches.
    """
    stop = size if stop is None else stop
    if count >= size:
        return np.arange(start, stop)
    if size <= _PERMUTED:
        places = np.sort(np.random.default_rng(0).permutation(size)[:count])
        return places[(places >= start) & (places < stop)]
    first, last = start * count // size, min(count, -(-stop * count // size) + 1)
    # whole numbers, for their products do not fit into 64 bits of a float
    ends = np.array([k * size // count for k in range(first, last + 1)], np.int64)
    places = ends[:-1] + (uniforms(0, _DRAW, first, last, 1)[:, 0] * np.diff(ends)).astype(np.int64)
    return places[(places >= start) & (places < stop)]


def ranges(size: int, width: int) -> Iterator[slice]:
    """Slices of at most `width` that cover range(size)."""
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def block_size(length: int, dtype: DTypeLike, target: int | None = None) -> int:
    """How many rows of that length take about `target` bytes (BLOCK_BYTES by default), at
    least 256.
    """
    return max(256, int((target or BLOCK_BYTES) // max(1, length * np.dtype(dtype).itemsize)))


def default_memory_mb() -> float:
    """What a solver may use for features when nothing is said: a third of what is free, in
    the machine and in the process's cgroup.
    """
    return env.available_memory_mb() / 3
