"""A random feature map without end: feature j comes from (seed, j), so pieces of it are made when
they are needed.

What doubly stochastic gradients (Dai et al. 2014, algorithm 1) ask for: a model is its coefficients
and a seed.
"""

import numpy as np

from rfx.features.base import MAPS, FeatureMap, sample

# Features that are sampled together: enough for BLAS, few enough that they stay in cache with some
# hundred rows.
PIECE = 1024


class GrowingMap:
    """The features 0, 1, 2, … of a kernel's map from n_inputs inputs.

    kernel, variant, dtype, params: as for `rfx.features.sample`. piece: features that are sampled
    together, which changes the time alone. max_memory_mb: of pieces that are kept once they are
    sampled; what has no room is regenerated each time.
    """

    def __init__(
        self,
        kernel,
        n_inputs,
        seed,
        params,
        *,
        variant="offset",
        dtype=np.float32,
        piece=PIECE,
        max_memory_mb=256.0,
    ):
        """Raises UsageError where the kernel has no such variant."""
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
            # the first pieces stay: a pass goes over all of them, and the latest of more than there
            # is room for are never met again
            if size <= self._room:
                self._room -= size
                self._kept[first] = made
                return made
            self._latest = first, made
        return self._latest[1]

    def _draw(self, start, stop):
        options = {"start": start, "dtype": self.dtype, "variant": self.variant}
        return sample(self.kernel, self.n_inputs, stop - start, self.seed, **options, **self.params)
