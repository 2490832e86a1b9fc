"""Random partitions of the inputs into blocks of bounded size, for the block-diagonal
kernel of Wu et al. (2016).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.compiled import njit
from rfx.counters import random_rows
from rfx.data.rows import keeps_sparse
from rfx.features.random import normals, random_permutation
from rfx.kernels.base import squared_norms
from rfx.types import Inputs

DIRECTION, ORDER = 0, 1
# Rows from which a principal direction is computed, and its power iterations.
SAMPLE, ITERATIONS = 4000, 50
# Blocks of a cell. Maximum rows, and numbers, of the sample that splits rows into cells, and the
# minimum rows of a cell in it.
CELL = 8
SAMPLED = 1 << 18
VALUES = 1 << 25
LEAST = 256

# the rows of a part of a tree, and what else decides its cut
Node = TypeVar("Node")


@dataclass(frozen=True)
class Cut(Generic[Node]):
    """A split of rows at a threshold of their projections on a direction.

    bounds: (2,) projections between which both sides share the rows. nodes: the lower and the upper
    side.
    """

    direction: np.ndarray
    threshold: float
    bounds: np.ndarray
    nodes: tuple[Node, Node]


NO_BOUNDS = np.full(2, np.nan)


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
        self.directions = directions
        self.thresholds = thresholds
        self.children = children
        self.bounds = bounds

    @property
    def n_blocks(self) -> int:
        return len(self.thresholds) + 1

    @property
    def _root(self) -> int:
        """Where every row begins: the first cut, or the only block."""
        return 0 if len(self.thresholds) else -1

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
            half = count // 2
            middle = len(rows) * half // count
            low = values[order[middle - 1]]
            high = values[order[middle]]
            lower = rows[order[:middle]], half
            upper = rows[order[middle:]], count - half
            threshold = low + (high - low) / 2
            return Cut(direction, threshold, NO_BOUNDS, (lower, upper))

        root = np.arange(X.shape[0]), n_blocks
        tree, nodes = cls._of_cuts(root, cut, X.shape[1])
        return tree, [np.sort(rows) for rows, _ in nodes]

    @classmethod
    def _of_cuts(
        cls, root: Node, find_cut: Callable[[Node], "Cut[Node] | None"], n_inputs: int
    ) -> tuple["Partition", list[Node]]:
        """The partition of a root node, breadth first, and the nodes that are its blocks;
        find_cut(node) is None for a block.
        """
        cuts: list[Cut[Node]] = []
        children: list[list[int]] = []
        blocks: list[Node] = []
        # nodes, and where their numbers go: into which entry of whose children
        waiting: list[tuple[Node, list[int], int]] = [(root, [0], 0)]
        for node, siblings, side in waiting:
            cut = find_cut(node)
            if cut is None:
                blocks.append(node)
                siblings[side] = -len(blocks)
                continue
            siblings[side] = len(cuts)
            cuts.append(cut)
            own = [0, 0]
            children.append(own)
            lower, upper = cut.nodes
            waiting += [(lower, own, 0), (upper, own, 1)]
        directions = np.array([cut.direction for cut in cuts], np.float64)
        thresholds = np.array([cut.threshold for cut in cuts], np.float64)
        bounds = np.array([cut.bounds for cut in cuts], np.float64)
        tree = cls(
            directions.reshape(len(cuts), n_inputs),
            thresholds,
            np.array(children, np.int32).reshape(-1, 2),
            bounds.reshape(-1, 2),
        )
        return tree, blocks

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
        n_rows, n_inputs = X.shape
        sample = X[sampled(n_rows, n_inputs, seed)]
        top = cls.top(sample, n_rows, size, overlap, seed)
        trees, blocks = [], []
        for rows in top.place(X, shared=True):
            tree, own = cls.grown(X, rows, size, overlap, seed)
            trees.append(tree)
            blocks += own
        return top.joined(trees), blocks

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
        # the numbers of each tree's first cut and first block
        cuts = np.cumsum([len(self.thresholds), *(len(tree.thresholds) for tree in trees)])
        blocks = np.cumsum([0, *(tree.n_blocks for tree in trees)])
        alone = [tree.n_blocks == 1 for tree in trees]
        roots = np.where(alone, -1 - blocks[:-1], cuts[:-1])
        is_block = self.children < 0
        children = [np.where(is_block, roots[-1 - self.children], self.children)]
        for tree, cut, block in zip(trees, cuts, blocks):
            first = np.where(tree.children < 0, -block, cut)
            children.append(first + tree.children)
        together = (self, *trees)
        directions = np.concatenate([tree.directions for tree in together])
        thresholds = np.concatenate([tree.thresholds for tree in together])
        return Partition(directions, thresholds, np.concatenate(children).astype(np.int32))

    def place(self, X, shared: bool = False) -> list[np.ndarray]:
        """The ascending numbers of the rows of X (m, d), array or CSR, that go into each block.

        shared: with the rows that a block shares with its neighbours.
        """
        blocks = [np.empty(0, dtype=np.intp)] * self.n_blocks
        held = {self._root: np.arange(X.shape[0])}
        while held:
            cut, rows = held.popitem()
            if cut < 0:
                blocks[-1 - cut] = rows
                continue
            values = _project(X, rows, self.directions[cut])
            low = high = self.thresholds[cut]
            if shared:
                low, high = self.bounds[cut]
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
        sides = np.zeros((cuts, cuts + 1))
        held = [(self._root, np.zeros(cuts))]
        while held:
            place, way = held.pop()
            if place < 0:
                sides[:, -1 - place] = way
                continue
            for child, side in zip(self.children[place], (1.0, -1.0)):
                longer = way.copy()
                longer[place] = side
                held.append((int(child), longer))
        sides_of_row = told.linear(-self.directions.T), told.Sign(-self.thresholds)
        # the number of cuts on whose side the row is: for its block, all that are above the block
        agreeing = told.linear(sides)
        is_block = told.Sign(np.abs(sides).sum(axis=0))
        zero_or_one = told.Scale(np.full(cuts + 1, -1.0), np.full(cuts + 1, 0.5))
        return *sides_of_row, agreeing, is_block, zero_or_one


def sampled(n_rows: int, n_inputs: int, seed: int = 0) -> np.ndarray:
    """The numbers of the random rows that split n rows into cells."""
    return random_rows(n_rows, min(SAMPLED, VALUES // max(1, n_inputs)), seed=seed)


def _median_cut(X, rows, overlap: float, seed: int) -> "Cut[np.ndarray] | None":
    """The cut of some rows at a median; None if all of them are equal."""
    for direction in _directions(X, rows, seed):
        values = _project(X, rows, direction)
        order = np.sort(values)
        middle = _middle(order)
        is_lower = values <= middle
        if is_lower.all() or not is_lower.any():
            continue
        share = np.mean(is_lower)
        shared = np.clip([share - overlap / 2, share + overlap / 2], 0, 1)
        low, high = np.quantile(order, shared)
        bounds = np.array([min(middle, low), max(middle, high)])
        in_both = values <= bounds[1], values > bounds[0]
        most = max(side.sum() for side in in_both)
        if overlap == 0 or most > 0.75 * len(rows):
            bounds = np.array([middle, middle])
            in_both = is_lower, ~is_lower
        lower, upper = in_both
        return Cut(direction, middle, bounds, (rows[lower], rows[upper]))
    return None


def _directions(X, rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first principal direction of a sample of some rows, and, for where ties or the sample
    hide differences, the single input that varies most.
    """
    some = rows[random_rows(len(rows), SAMPLE, seed=seed)]
    sample = X[some].astype(np.float64)
    if keeps_sparse(sample):
        mean = np.asarray(sample.mean(axis=0)).ravel()
        first = _first_direction(sample, mean, seed)
        spread = squared_norms(sample.T) - len(some) * np.square(mean)
    else:
        sample = sample.toarray() if sp.issparse(sample) else sample
        centred = sample - sample.mean(axis=0)
        first = _first_direction(centred, None, seed)
        spread = np.square(centred).sum(axis=0)
    widest = np.zeros(len(spread))
    widest[np.argmax(spread)] = 1
    return first, widest


def _middle(order: np.ndarray) -> float:
    """The median of ascending numbers; if none is above it, the middle between it and the next
    lower number.
    """
    count = len(order)
    middle = (order[(count - 1) // 2] + order[count // 2]) / 2
    if order[-1] > middle:
        return middle
    below = order[order < middle]
    return (below[-1] + middle) / 2 if len(below) else middle


def _first_direction(X: Inputs, middle: np.ndarray | None, seed: int) -> np.ndarray:
    """The first principal direction of centred rows X (n, d), or of CSR rows minus `middle` (d,),
    by power iterations.
    """
    n_rows, n_inputs = X.shape
    C = X.T @ X if middle is None and n_inputs <= n_rows else None
    v = normals(seed, DIRECTION, 0, 1, n_inputs)[0]
    for _ in range(ITERATIONS):
        if middle is not None:
            values = X @ v - middle @ v
            w = X.T @ values - middle * values.sum()
        elif C is not None:
            w = C @ v
        else:
            w = X.T @ (X @ v)
        norm = np.linalg.norm(w)
        if norm == 0:
            return v
        v = w / norm
    return v


def uniform_blocks(n_rows: int, size: int, seed: int) -> list[np.ndarray]:
    """The row numbers of ceil(n_rows / size) blocks of equal size (up to one row), drawn
    independently of the inputs.
    """
    order = random_permutation(seed, ORDER, 0, n_rows)
    n_blocks = max(1, -(-n_rows // size))
    return [np.sort(part) for part in np.array_split(order, n_blocks)]


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
        total = 0.0
        x = X[rows[i]]
        for j in range(len(direction)):
            total += x[j] * direction[j]
        out[i] = total
