"""Select features by a distribution over a pool: which of them, with which weights.

Each function returns (places, weights): increasing feature numbers and positive weights, for
`FeatureMap.weighted`. The squared weights sum to 1, so that the sum of products is the kernel of
the distribution.
"""

import numpy as np

from rfx.counters import uniforms

# A stream from which no map draws its own numbers.
DRAW = 16


def drawn(q, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` features drawn with replacement from the probabilities q (M,).

    A feature drawn c times occurs once, with weight (c / count)^(1/2): the same kernel. Draw j
    depends only on (seed, j) and q.
    """
    ends = np.cumsum(q)
    where = np.searchsorted(ends, uniforms(seed, DRAW, 0, count, 1)[:, 0] * ends[-1], side="right")
    places, times = np.unique(np.minimum(where, len(q) - 1), return_counts=True)
    return places, np.sqrt(times / count)


def support_once(q) -> tuple[np.ndarray, np.ndarray]:
    """The features with q > 0, all with equal weight."""
    places = np.flatnonzero(q)
    return places, np.full(len(places), len(places) ** -0.5)


def weighted(q) -> tuple[np.ndarray, np.ndarray]:
    """The features with q > 0, each with weight q^(1/2)."""
    places = np.flatnonzero(q)
    return places, np.sqrt(q[places])
