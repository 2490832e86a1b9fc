"""An infinite random feature map: feature j is determined by (seed, j), so parts of it are computed
when needed.

Needed by doubly stochastic gradients (Dai et al. 2014, algorithm 1), whose model is its
coefficients and a seed.
"""

import numpy as np

from rfx.features.base import MAPS, FeatureMap, sample

# Features sampled together: enough for BLAS, few enough that they fit into cache with some hundred
# rows.
PIECE = 1024


class GrowingMap:
    """The features 0, 1, 2, … of a kernel's map from n_inputs inputs.

    kernel, variant, dtype, params: as for `rfx.features.sample`. piece: features sampled together,
    which affects only the time. max_memory_mb: of cached pieces; others are recomputed each time.
    """

    def __init__(
        self,
        kernel,
        n_inputs,
        seed,
        params,
        *,
        variant=None,
        dtype=np.float32,
        piece=PIECE,
        max_memory_mb=256.0,
    ):
        """Raises UsageError if the kernel has no such variant."""
        variant = variant or MAPS[kernel].usual(kernel)
        MAPS[kernel].check_variant(kernel, piece, variant)
        self.kernel, self.n_inputs, self.seed, self.params = kernel, n_inputs, seed, params
        self.variant, self.dtype, self.piece = variant, np.dtype(dtype), int(piece)
        self._room, self._kept, self._latest = max_memory_mb * 2**20, {}, (None, None)

    def sampled(self, start: int, stop: int) -> FeatureMap:
        """The map of the features start .. stop-1."""
        first = start // self.piece * self.piece
        if stop > first + self.piece:
            return self._draw(start, stop)
        whole = self._piece(first)
        return (
            whole
            if stop - start == self.piece
            else whole.select(slice(start - first, stop - first))
        )

    def _piece(self, first):
        if first in self._kept:
            return self._kept[first]
        if self._latest[0] != first:
            made = self._draw(first, first + self.piece)
            size = sum(values.nbytes for values in made.arrays.values())
            # the first pieces are cached: a pass uses all of them in order, so caching the latest
            # would never hit
            if size <= self._room:
                self._room -= size
                self._kept[first] = made
                return made
            self._latest = first, made
        return self._latest[1]

    def _draw(self, start, stop):
        options = {"start": start, "dtype": self.dtype, "variant": self.variant}
        return sample(self.kernel, self.n_inputs, stop - start, self.seed, **options, **self.params)
