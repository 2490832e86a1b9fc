"""The feature matrix as a walk over row blocks, so that no solver needs N x D in memory.

A solver iterates `for rows, Z in blocks` and reduces; `rows` is a slice and Z its (rows, D) features, valid until the
next turn of the loop.
"""

import numpy as np

from rfx import env

DEFAULT_BLOCK_BYTES = 32 * 2**20


def block_rows(n_columns: int, itemsize: int, target: int = DEFAULT_BLOCK_BYTES) -> int:
    """Rows per block so that a block takes about `target` bytes, at least 256."""
    return max(256, int(target // max(1, n_columns * itemsize)))


class ArrayBlocks:
    """Row blocks of an (N, D) array that is in memory."""

    def __init__(self, Z, rows: int | None = None):
        self.Z = Z
        self.shape = Z.shape
        self.dtype = Z.dtype
        self.rows = rows or block_rows(Z.shape[1], Z.dtype.itemsize)

    def __iter__(self):
        for start in range(0, self.shape[0], self.rows):
            rows = slice(start, min(start + self.rows, self.shape[0]))
            yield rows, self.Z[rows]

    def select(self, columns) -> "ArrayBlocks":
        """The blocks of a subset of the columns (copied)."""
        return ArrayBlocks(np.ascontiguousarray(self.Z[:, columns]), self.rows)


class MapBlocks:
    """Row blocks of scale * feature_map(X), computed anew at every walk into one reused buffer."""

    def __init__(self, feature_map, X, scale: float = 1.0, rows: int | None = None):
        self.map, self.X, self.scale = feature_map, X, scale
        self.shape = (X.shape[0], feature_map.n_features)
        self.dtype = feature_map.dtype
        self.rows = rows or block_rows(self.shape[1], self.dtype.itemsize)

    def __iter__(self):
        buffer = np.empty((min(self.rows, self.shape[0]), self.shape[1]), self.dtype)
        for start in range(0, self.shape[0], self.rows):
            rows = slice(start, min(start + self.rows, self.shape[0]))
            Z = self.map.transform(self.X[rows], out=buffer[: rows.stop - start])
            if self.scale != 1.0:
                Z *= self.dtype.type(self.scale)
            yield rows, Z

    def select(self, columns) -> "MapBlocks":
        """The blocks of a subset of the columns."""
        return MapBlocks(self.map.select(columns), self.X, self.scale)

    def materialize(self) -> ArrayBlocks:
        """All of it in memory."""
        Z = np.empty(self.shape, self.dtype)
        for rows, block in self:
            Z[rows] = block
        return ArrayBlocks(Z)


def feature_blocks(feature_map, X, scale: float = 1.0, max_memory_mb: float | None = None):
    """Blocks of scale * feature_map(X): kept in memory when they take less than `max_memory_mb`, else recomputed."""
    limit = max_memory_mb if max_memory_mb is not None else default_memory_mb()
    blocks = MapBlocks(feature_map, X, scale)
    size_mb = blocks.shape[0] * blocks.shape[1] * blocks.dtype.itemsize / 2**20
    return blocks.materialize() if size_mb <= limit else blocks


def default_memory_mb() -> float:
    """What a solver may use for features when nothing is said: a quarter of the available memory, at most 2 GiB."""
    return min(2048.0, env.available_memory_mb() / 4)
