"""Counter-based random numbers: item j of a stream depends only on (seed, stream, j), not on how
many are drawn.

Philox maps a counter to random words; every item owns a fixed range of counters, so any range of
items can be generated in any order, by any thread, and more items extend the earlier ones.
"""

import numpy as np

_WORDS_PER_COUNTER = 4
# Maximum rows from which some are drawn by a permutation of all, and the random stream for larger
# numbers.
_PERMUTED, _DRAW = 1 << 22, 48


def uniforms(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """Uniform numbers in the open interval (0, 1) for items start..stop-1.

    seed: non-negative integer below 2**64; stream: selects one of a map's random quantities.
    Returns (stop-start, width) float64.
    """
    counters = -(-width // _WORDS_PER_COUNTER)
    generator = np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))
    generator.advance(start * counters)
    words = generator.random_raw((stop - start) * counters * _WORDS_PER_COUNTER)
    words = words.reshape(stop - start, counters * _WORDS_PER_COUNTER)[:, :width]
    # 53 random bits, shifted by half a step so that neither 0 nor 1 occurs
    words >>= np.uint64(11)
    found = words + 0.5
    found *= 2.0**-53
    return found


def random_rows(
    size: int, count: int | None, start: int = 0, stop: int | None = None, seed: int = 0
) -> np.ndarray:
    """The numbers in start .. stop-1 among `count` distinct random numbers below `size`, ascending;
    None for all.

    They depend only on (size, count, seed), so each part of the rows knows which of its own are
    drawn: the first of a permutation, or if that needs much memory, one of each of `count` equal
    ranges.
    """
    stop = size if stop is None else stop
    if count is None or count >= size:
        return np.arange(start, stop)
    if size <= _PERMUTED:
        places = np.sort(np.random.default_rng(seed).permutation(size)[:count])
        return places[(places >= start) & (places < stop)]
    first, last = start * count // size, min(count, -(-stop * count // size) + 1)
    # integers, because their products do not fit into a float's 64 bits
    ends = np.array([k * size // count for k in range(first, last + 1)], np.int64)
    shares = uniforms(seed, _DRAW, first, last, 1)[:, 0]
    places = ends[:-1] + (shares * np.diff(ends)).astype(np.int64)
    return places[(places >= start) & (places < stop)]
