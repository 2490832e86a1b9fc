"""Division of rows: blocks of a given number of bytes, ranges, and random rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from rfx import env
from rfx.counters import uniforms

BLOCK_BYTES = 32 * 2**20
# result of `Matrix.gram`: an array, or with `right` a pair of them
GramOrPair: TypeAlias = np.ndarray | Any
# Maximum rows from which some are drawn by a permutation of all, and the random stream for larger
# numbers.
_PERMUTED, _DRAW = 1 << 22, 48


def drawn(size: int, count: int, start: int = 0, stop: int | None = None) -> np.ndarray:
    """The numbers in start .. stop-1 among `count` distinct random numbers below `size`, ascending.

    They depend only on (size, count), so each part of the rows knows which of its own are drawn:
    the first of a permutation, or if that needs much memory, one of each of `count` equal ranges.
    """
    stop = size if stop is None else stop
    if count >= size:
        return np.arange(start, stop)
    if size <= _PERMUTED:
        places = np.sort(np.random.default_rng(0).permutation(size)[:count])
        return places[(places >= start) & (places < stop)]
    first, last = start * count // size, min(count, -(-stop * count // size) + 1)
    # integers, because their products do not fit into a float's 64 bits
    ends = np.array([k * size // count for k in range(first, last + 1)], np.int64)
    places = ends[:-1] + (uniforms(0, _DRAW, first, last, 1)[:, 0] * np.diff(ends)).astype(np.int64)
    return places[(places >= start) & (places < stop)]


def ranges(size: int, width: int) -> Iterator[slice]:
    """Slices of at most `width` that cover range(size)."""
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def block_size(length: int, dtype: DTypeLike, target: int | None = None) -> int:
    """The number of rows of that length in about `target` bytes (BLOCK_BYTES by default), at least
    256.
    """
    return max(256, int((target or BLOCK_BYTES) // max(1, length * np.dtype(dtype).itemsize)))


def default_memory_mb() -> float:
    """Default memory of a solver for features: a third of the free memory, of the machine and of
    the process's cgroup.
    """
    return env.available_memory_mb() / 3
