"""Random partitions of the inputs into blocks of bounded size, for the block-diagonal
kernel of Wu et al. (2016).
"""

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.compiled import njit
from rfx.features.random import normals, uniforms

DIRECTION, ORDER = 0, 1


class Partition:
    """Blocks of at most `size` rows, formed by random hyperplanes with normal directions N(0, I).

    n rows need ceil(n / size) blocks. A set of rows that needs b blocks is split where, ordered by
    their projections on a random direction, floor(b/2)/b of the rows come before; all blocks get
    floor or ceil of n / ceil(n / size) rows. A new row follows the same splits; a row exactly on
    one goes to the lower side, where all-equal rows can't be separated.

    directions: (cuts, d), thresholds: (cuts,), children: (cuts, 2), the split or, as -1 - block,
    the block on either side.
    """

    def __init__(self, directions, thresholds, children):
        self.directions, self.thresholds, self.children = directions, thresholds, children

    @property
    def n_blocks(self) -> int:
        return len(self.thresholds) + 1

    @classmethod
    def fit(cls, X, size: int, seed: int) -> tuple["Partition", list[np.ndarray]]:
        """The partition of the rows X (n, d), array or CSR, and the row numbers of each block."""
        n_rows = X.shape[0]
        cuts = max(1, -(-n_rows // size)) - 1
        directions = normals(seed, DIRECTION, 0, cuts, X.shape[1])
        thresholds, children = np.zeros(cuts), np.zeros((cuts, 2), dtype=np.int32)
        blocks: list[np.ndarray] = []
        # rows, their number of blocks, and the entry of `children` for them; first in, first out
        waiting: list[tuple[np.ndarray, int, tuple[int, int] | None]] = [
            (np.arange(n_rows), cuts + 1, None)
        ]
        cut = 0
        for rows, count, place in waiting:
            if count == 1:
                blocks.append(np.sort(rows))
                own = -len(blocks)
            else:
                own, cut = cut, cut + 1
                values = _project(X, rows, directions[own])
                order = np.argsort(values, kind="stable")
                middle = len(rows) * (count // 2) // count
                low, high = values[order[middle - 1]], values[order[middle]]
                thresholds[own] = low + (high - low) / 2
                waiting.append((rows[order[:middle]], count // 2, (own, 0)))
                waiting.append((rows[order[middle:]], count - count // 2, (own, 1)))
            if place is not None:
                children[place] = own
        return cls(directions, thresholds, children), blocks

    def place(self, X) -> list[np.ndarray]:
        """The row numbers of X (m, d), array or CSR, that go into each block."""
        blocks = [np.empty(0, dtype=np.intp)] * self.n_blocks
        held = {0 if len(self.thresholds) else -1: np.arange(X.shape[0])}
        while held:
            cut, rows = held.popitem()
            if cut < 0:
                blocks[-1 - cut] = rows
                continue
            above = _project(X, rows, self.directions[cut]) > self.thresholds[cut]
            for side, part in enumerate((rows[~above], rows[above])):
                if len(part):
                    held[int(self.children[cut, side])] = part
        return blocks

    def steps(self) -> told.Steps:
        """The computation steps from a row to an indicator of its block.

        A block contains the rows that are on its side of every split above it.
        """
        cuts = len(self.thresholds)
        # sides_cb: 1 where block b lies on the lower side of cut c, -1 on the upper one, else 0
        sides, held = np.zeros((cuts, cuts + 1)), [(0 if cuts else -1, np.zeros(cuts))]
        while held:
            place, way = held.pop()
            if place < 0:
                sides[:, -1 - place] = way
                continue
            for child, side in zip(self.children[place], (1.0, -1.0)):
                longer = way.copy()
                longer[place] = side
                held.append((int(child), longer))
        return (
            told.linear(-self.directions.T),
            told.Sign(-self.thresholds),
            told.linear(sides),
            told.Sign(np.abs(sides).sum(axis=0)),
            told.Scale(np.full(cuts + 1, -1.0), np.full(cuts + 1, 0.5)),
        )


def uniform_blocks(n_rows: int, size: int, seed: int) -> list[np.ndarray]:
    """The row numbers of ceil(n_rows / size) blocks of equal size (up to one row), drawn
    independently of the inputs.
    """
    order = np.argsort(uniforms(seed, ORDER, 0, n_rows, 1)[:, 0], kind="stable")
    return [np.sort(part) for part in np.array_split(order, max(1, -(-n_rows // size)))]


def _project(X, rows, direction):
    """X[rows] @ direction in float64, each row's sum in the order of the columns, independent of
    other rows.
    """
    if sp.issparse(X):
        return X[rows].astype(np.float64) @ direction
    out = np.empty(len(rows))
    _dots(X, rows, direction, out)
    return out


@njit(cache=True, nogil=True)
def _dots(X, rows, direction, out):
    for i in range(len(rows)):
        total, x = 0.0, X[rows[i]]
        for j in range(len(direction)):
            total += x[j] * direction[j]
        out[i] = total
