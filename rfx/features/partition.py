"""Random partitions of the inputs into blocks of bounded size, for the block-diagonal
kernel of Wu et al. (2016).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.compiled import njit
from rfx.counters import random_rows
from rfx.data.rows import keeps_sparse
from rfx.features.random import normals, uniforms
from rfx.kernels.base import squared_norms

DIRECTION, ORDER = 0, 1
# Rows from which a principal direction is computed, and its power iterations.
SAMPLE, ITERATIONS = 4000, 50
# Blocks of a cell. Maximum rows, and numbers, of the sample that splits rows into cells, and the
# minimum rows of a cell in it.
CELL, SAMPLED, VALUES, LEAST = 8, 1 << 18, 1 << 25, 256


class Partition:
    """Blocks of at most `size` rows, formed by random hyperplanes with normal directions N(0, I).

    n rows need ceil(n / size) blocks. A set of rows that needs b blocks is split where, ordered by
    their projections on a random direction, floor(b/2)/b of the rows come before; all blocks get
    floor or ceil of n / ceil(n / size) rows. A new row follows the same splits; a row exactly on
    one goes to the lower side, where all-equal rows can't be separated.

    directions: (cuts, d), thresholds: (cuts,), children: (cuts, 2), the split or, as -1 - block,
    the block on either side.
    """

    def __init__(self, directions, thresholds, children, bounds=None):
        """bounds: (cuts, 2), projections between which both sides share the rows; None for none."""
        self.directions, self.thresholds, self.children = directions, thresholds, children
        self.bounds = bounds

    @property
    def n_blocks(self) -> int:
        return len(self.thresholds) + 1

    @classmethod
    def fit(cls, X, size: int, seed: int) -> tuple["Partition", list[np.ndarray]]:
        """The partition of the rows X (n, d), array or CSR, and the row numbers of each block."""
        n_blocks = max(1, -(-X.shape[0] // size))
        directions = iter(normals(seed, DIRECTION, 0, n_blocks - 1, X.shape[1]))

        def cut(node):
            rows, count = node
            if count == 1:
                return None
            direction = next(directions)
            values = _project(X, rows, direction)
            order = np.argsort(values, kind="stable")
            middle = len(rows) * (count // 2) // count
            low, high = values[order[middle - 1]], values[order[middle]]
            lower = rows[order[:middle]], count // 2
            upper = rows[order[middle:]], count - count // 2
            return direction, low + (high - low) / 2, (np.nan, np.nan), (lower, upper)

        tree, nodes = cls._of_cuts((np.arange(X.shape[0]), n_blocks), cut, X.shape[1])
        return tree, [np.sort(rows) for rows, _ in nodes]

    @classmethod
    def _of_cuts(cls, root, cut, n_inputs: int) -> tuple["Partition", list]:
        """The partition of a root node, breadth first, and the nodes that are its blocks.

        cut(node): (direction, threshold, bounds, the two nodes), or None for a block.
        """
        cuts: list[tuple[np.ndarray, float, np.ndarray]] = []
        children: list[list[int]] = []
        blocks: list = []
        waiting: list[tuple[Any, tuple[int, int] | None]] = [(root, None)]
        for node, place in waiting:
            found = cut(node)
            if found is None:
                blocks.append(node)
                number = -len(blocks)
            else:
                number = len(cuts)
                cuts.append(found[:-1])
                children.append([0, 0])
                waiting += [(part, (number, side)) for side, part in enumerate(found[-1])]
            if place is not None:
                children[place[0]][place[1]] = number
        return cls(
            np.array([found[0] for found in cuts], np.float64).reshape(len(cuts), n_inputs),
            np.array([found[1] for found in cuts], np.float64),
            np.array(children, np.int32).reshape(-1, 2),
            np.array([found[2] for found in cuts], np.float64).reshape(-1, 2),
        ), blocks

    @classmethod
    def principal(
        cls, X, size: int, overlap: float = 0.0, seed: int = 0
    ) -> tuple["Partition", list[np.ndarray]]:
        """The partition of the rows X (n, d) by medians along first principal directions, and the
        rows of each block with those that it shares with its neighbours.

        At each cut the blocks share the fraction `overlap` of the rows around the median. A block
        has at most `size` rows unless all its rows are equal. Many rows are first split into cells,
        by the medians of a sample (see `top`), so that other machines can grow the rest.
        """
        top = cls.top(X[sampled(X.shape[0], X.shape[1], seed)], X.shape[0], size, overlap, seed)
        cells = [cls.grown(X, rows, size, overlap, seed) for rows in top.place(X, shared=True)]
        trees, blocks = zip(*cells)
        return top.joined(trees), [block for of_cell in blocks for block in of_cell]

    @classmethod
    def top(cls, sample, n_rows: int, size: int, overlap: float, seed: int) -> "Partition":
        """The partition of n rows into cells of about CELL blocks of that size, by the medians of a
        sample of them, array or CSR.
        """
        rows = np.arange(sample.shape[0])
        most = max(LEAST, CELL * size * len(rows) // n_rows)
        return cls.grown(sample, rows, most, overlap, seed)[0]

    @classmethod
    def grown(
        cls, X, rows: np.ndarray, size: int, overlap: float, seed: int
    ) -> tuple["Partition", list[np.ndarray]]:
        """`principal` for the rows with these numbers, without cells."""

        def cut(some):
            return None if len(some) <= size else _median_cut(X, some, overlap, seed)

        return cls._of_cuts(rows, cut, X.shape[1])

    def joined(self, trees: Sequence["Partition"]) -> "Partition":
        """The partition that splits each block further by a tree of its own; blocks are numbered
        tree by tree.
        """
        if not len(self.thresholds):
            return trees[0]
        cuts = np.cumsum([len(self.thresholds), *(len(tree.thresholds) for tree in trees)])
        blocks = np.cumsum([0, *(tree.n_blocks for tree in trees)])
        alone = [tree.n_blocks == 1 for tree in trees]
        roots = np.where(alone, -1 - blocks[:-1], cuts[:-1])
        children = [np.where(self.children < 0, roots[-1 - self.children], self.children)]
        for tree, cut, block in zip(trees, cuts, blocks):
            children.append(np.where(tree.children < 0, -block, cut) + tree.children)
        return Partition(
            np.concatenate([tree.directions for tree in (self, *trees)]),
            np.concatenate([tree.thresholds for tree in (self, *trees)]),
            np.concatenate(children).astype(np.int32),
        )

    def place(self, X, shared: bool = False) -> list[np.ndarray]:
        """The ascending numbers of the rows of X (m, d), array or CSR, that go into each block.

        shared: with the rows that a block shares with its neighbours.
        """
        blocks = [np.empty(0, dtype=np.intp)] * self.n_blocks
        held = {0 if len(self.thresholds) else -1: np.arange(X.shape[0])}
        while held:
            cut, rows = held.popitem()
            if cut < 0:
                blocks[-1 - cut] = rows
                continue
            values = _project(X, rows, self.directions[cut])
            low, high = self.bounds[cut] if shared else (self.thresholds[cut],) * 2
            for side, part in enumerate((rows[values <= high], rows[values > low])):
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


def sampled(n_rows: int, n_inputs: int, seed: int = 0) -> np.ndarray:
    """The numbers of the random rows that split n rows into cells."""
    return random_rows(n_rows, min(SAMPLED, VALUES // max(1, n_inputs)), seed=seed)


def _median_cut(X, rows, overlap: float, seed: int):
    """(direction, threshold, bounds, the rows of both sides); None if all rows are equal."""
    some = rows[random_rows(len(rows), SAMPLE, seed=seed)]
    sample = X[some].astype(np.float64)
    if keeps_sparse(sample):
        middle = np.asarray(sample.mean(axis=0)).ravel()
        first = _first_direction(sample, middle, seed)
        spread = squared_norms(sample.T) - len(some) * np.square(middle)
    else:
        sample = sample.toarray() if sp.issparse(sample) else sample
        centred = sample - sample.mean(axis=0)
        first = _first_direction(centred, None, seed)
        spread = np.square(centred).sum(axis=0)
    # where ties or a sample hide differences, a single input
    widest = np.zeros(len(spread))
    widest[np.argmax(spread)] = 1
    for direction in (first, widest):
        values = _project(X, rows, direction)
        order = np.sort(values)
        middle = (order[(len(order) - 1) // 2] + order[len(order) // 2]) / 2
        if not (values > middle).any():
            below = order[order < middle]
            if not len(below):
                continue
            middle = (below[-1] + middle) / 2
        if not (values <= middle).any() or not (values > middle).any():
            continue
        share = np.mean(values <= middle)
        low, high = np.quantile(order, np.clip([share - overlap / 2, share + overlap / 2], 0, 1))
        bounds = np.array([min(middle, low), max(middle, high)])
        most = max((values <= bounds[1]).sum(), (values > bounds[0]).sum())
        if overlap == 0 or most > 0.75 * len(rows):
            bounds = np.array([middle, middle])
        sides = rows[values <= bounds[1]], rows[values > bounds[0]]
        return direction, middle, bounds, sides
    return None


def _first_direction(X: Any, middle: np.ndarray | None, seed: int) -> np.ndarray:
    """The first principal direction of centred rows X (n, d), or of CSR rows minus `middle` (d,),
    by power iterations.
    """
    C = X.T @ X if middle is None and X.shape[1] <= X.shape[0] else None
    v = normals(seed, DIRECTION, 0, 1, X.shape[1])[0]
    for _ in range(ITERATIONS):
        if middle is not None:
            values = X @ v - middle @ v
            w = X.T @ values - middle * values.sum()
        else:
            w = X.T @ (X @ v) if C is None else C @ v
        norm = np.linalg.norm(w)
        if norm == 0:
            return v
        v = w / norm
    return v


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
