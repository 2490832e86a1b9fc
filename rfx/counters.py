"""Counter-based random numbers: item j of a stream depends on (seed, stream, j) alone, never on how
many are drawn.

Philox turns a counter into random words; every item owns a fixed run of counters, so any range of
items can be made in any order, by any thread, and growing the number of items keeps the earlier
ones.
"""

import numpy as np

_WORDS_PER_COUNTER = 4


def uniforms(seed: int, stream: int, start: int, stop: int, width: int) -> np.ndarray:
    """Uniform numbers in the open interval (0, 1) for items start..stop-1.

    seed: non-negative integer below 2**64; stream: which of a map's random quantities. Returns
    (stop-start, width) float64.
    """
    counters = -(-width // _WORDS_PER_COUNTER)
    generator = np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))
    generator.advance(start * counters)
    words = generator.random_raw((stop - start) * counters * _WORDS_PER_COUNTER)
    words = words.reshape(stop - start, counters * _WORDS_PER_COUNTER)[:, :width]
    # 53 random bits, moved by half a step so that neither 0 nor 1 occurs
    words >>= np.uint64(11)
    found = words + 0.5
    found *= 2.0**-53
    return found
