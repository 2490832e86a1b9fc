"""Some features of a pool, each with a weight: what a distribution over the pool becomes before a model is fitted."""

import numpy as np

from rfx.counters import uniforms

# A stream that no map draws its own numbers from.
DRAW = 16


class Chosen:
    """The features `places` of the map `pool`, times `weights`; a map of its own for as long as weights are learnt.

    places: (m,) increasing integers; weights: (m,) positive.
    """

    def __init__(self, pool, places, weights):
        self.pool, self.places, self.weights = pool, places, np.asarray(weights, dtype=np.float64)
        self.map = pool.select(places)
        self.n_features, self.dtype = len(places), pool.dtype

    def transform(self, X, out=None):
        Z = self.map.transform(X, out=out)
        Z *= self.weights.astype(self.dtype)
        return Z

    def select(self, indices) -> "Chosen":
        return Chosen(self.pool, self.places[indices], self.weights[indices])


def drawn(pool, q, count: int, seed: int) -> Chosen:
    """`count` features drawn with replacement from the probabilities q (M,) over the pool, each with weight count^(-1/2).

    One that is drawn c times is there once, with weight (c / count)^(1/2): the same kernel. Draw j depends on (seed, j) and q alone.
    """
    ends = np.cumsum(q)
    where = np.searchsorted(ends, uniforms(seed, DRAW, 0, count, 1)[:, 0] * ends[-1], side="right")
    places, times = np.unique(np.minimum(where, len(q) - 1), return_counts=True)
    return Chosen(pool, places, np.sqrt(times / count))


def support_once(pool, q) -> Chosen:
    """The features with q > 0, all with the same weight."""
    places = np.flatnonzero(q)
    return Chosen(pool, places, np.full(len(places), len(places) ** -0.5))


def weighted(pool, q) -> Chosen:
    """The features with q > 0, each with weight q^(1/2)."""
    places = np.flatnonzero(q)
    return Chosen(pool, places, np.sqrt(q[places]))
