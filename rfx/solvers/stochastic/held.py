"""Cached features of repeated rows of a set by reused blocks: each is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rfx.features.growing import GrowingMap
    from rfx.types import Inputs


class Held:
    """Values of the first n_features features of a GrowingMap for n_rows rows, filled batch by
    batch.

    Memory: n_rows n_features numbers of the map's type, as far as requested. Bitwise the same as
    recomputed features.
    """

    def __init__(self, growing: GrowingMap, n_rows: int, n_features: int) -> None:
        self.map, piece = growing, growing.piece
        widths = [min(piece, n_features - start) for start in range(0, n_features, piece)]
        self._values = [np.empty((n_rows, width), growing.dtype) for width in widths]
        # for every row, the number of a piece's features that are available, from its first on
        self._made = np.zeros((len(widths), n_rows), np.int32)
        self._buffer = np.empty(0, growing.dtype)

    def features(self, X: Inputs, index: np.ndarray, start: int, stop: int) -> np.ndarray:
        """(n, stop - start) values for the rows X (n, d), whose numbers in the set are `index`:
        features of one piece.

        They are in memory reused by the next call.
        """
        number = start // self.map.piece
        first, held, made = number * self.map.piece, self._values[number], self._made[number]
        missing = np.flatnonzero(made[index] < stop - first)
        if len(missing):
            rows = index[missing]
            low = int(made[rows].min())
            held[rows, low : stop - first] = self.map.sampled(first + low, stop).transform(
                X[missing]
            )
            made[rows] = stop - first
        size = len(index) * held.shape[1]
        if len(self._buffer) < size:
            self._buffer = np.empty(size, held.dtype)
        # numbers outside the set raised an error above; in another mode numpy would copy twice
        whole = np.take(
            held, index, axis=0, out=self._buffer[:size].reshape(len(index), -1), mode="clip"
        )
        return whole[:, start - first : stop - first]
