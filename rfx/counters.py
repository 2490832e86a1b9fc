"""Counter-based random numbers: item j of a stream depends only on (seed, stream, j), not on how
many are drawn.

Philox maps a counter to random words; every item owns a fixed range of counters, so any range of
items can be generated in any order, by any thread, and more items extend the earlier ones.
"""

import numpy as np

_WORDS_PER_COUNTER = 4


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
