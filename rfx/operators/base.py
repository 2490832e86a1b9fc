"""The feature matrix as solvers see it: products, Gram matrices, rows and columns, whatever holds or computes the entries.

Every reduction over the rows is a sum over the parts that `Matrix.parts` names, each part a matrix of its own rows: blocks that are
computed one after the other, rows that are held beside rows that are not, or rows on other machines. Features keep their own
type, sums are in float64: the duality gap of a float32 sum can't get below a few thousandths of the objective.
"""

from abc import ABC, abstractmethod

import numpy as np

from rfx import env
from rfx.counters import uniforms

BLOCK_BYTES = 32 * 2**20
# Seconds for an entry that is read and for one that is computed: only their ratio matters.
READ, COMPUTED = 3e-10, 1.5e-9
# The most rows of which some are drawn by a permutation of all, and the stream of numbers that more are drawn by.
_PERMUTED, _DRAW = 1 << 22, 48


class Matrix(ABC):
    """An (N, D) feature matrix Z; a kind defines `parts`, `rows` and `columns`, and what it has a quicker way for.

    shape: (N, D). dtype: of the entries, float32 or float64. cost: seconds that one use of an entry takes.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    cost = READ
    # whether what has a number for each row is an array in this process, so that an N x N matrix can be made
    rows_here = True
    # (D,) h where every entry of column j is +h_j or -h_j and bits for them are worth while, else None
    heights = None

    @property
    def computed(self) -> bool:
        """Whether the entries are computed anew at every use, so that those needed often should be held."""
        return self.cost > READ

    @property
    def exact(self) -> bool:
        """Whether Gram matrices are sums of float64 products without being asked."""
        return self.dtype == np.float64

    @property
    def size_mb(self) -> float:
        """MiB that the entries would take as an array."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize / 2**20

    @property
    def n_entries(self) -> int:
        """How many entries a product reads."""
        return self.shape[0] * self.shape[1]

    # ------------------------------------------------------------------ rows and columns

    def parts(self):
        """(rows, Matrix of these rows): every row in one of them, each valid until the next turn; rows is a slice or an index array.

        A kind that has but one part, itself, defines matvec, rmatvec, normal, gram and row_blocks.
        """
        yield slice(0, self.shape[0]), self

    @abstractmethod
    def rows(self, index) -> "Matrix":
        """The matrix of some rows, given by an integer array or a slice."""

    @abstractmethod
    def columns(self, index) -> "Matrix":
        """The matrix of some columns, given by an integer array or a slice."""

    def row_blocks(self):
        """(rows, C-contiguous (rows, D) array) for all rows, each valid until the next turn; rows as in `parts`."""
        for rows, part in self.parts():
            yield rows, np.ascontiguousarray(part.to_array())

    def cached_blocks(self, first: int, last: int):
        """`row_blocks` of the rows first .. last-1, counted from `first`, in one thread's cache where entries are computed."""
        return self.rows(slice(first, last)).row_blocks()

    def column_blocks(self, width: int | None = None):
        """(slice of columns, C-contiguous (N, columns) array) for all columns, at most `width` at a time, as `row_blocks`."""
        n_rows, n_columns = self.shape
        width = min(width or block_size(n_rows, self.dtype), n_columns)
        buffer = np.empty(n_rows * width, self.dtype)
        for columns in ranges(n_columns, width):
            count = columns.stop - columns.start
            yield columns, self.columns(columns).to_array(buffer[: n_rows * count].reshape(n_rows, count))

    def column_lists(self, width: int):
        """(slice of columns, values, rows, ends) for coordinate descent, at most `width` columns at a time where they are not held.

        values is an array (columns, N), rows and ends are None; or values is the one number that all entries have that are not
        zero, those of column j being in rows[ends[j] : ends[j + 1]].
        """
        for columns, Z in self.column_blocks(width):
            yield columns, np.ascontiguousarray(Z.T), None, None

    def to_array(self, out=None) -> np.ndarray:
        """All entries, in `out` if given; the matrix's own array, not to be written to, where it is one already."""
        out = np.empty(self.shape, self.dtype) if out is None else out
        for rows, part in self.parts():
            out[rows] = part.to_array()
        return out

    def hold(self, max_mb: float = np.inf) -> "Matrix":
        """This matrix in memory where it takes at most `max_mb`, else as it is."""
        from rfx.operators.dense import DenseMatrix

        return DenseMatrix(self.to_array()) if self.computed and self.size_mb <= max_mb else self

    def hold_rows(self, max_mb: float, kind=None) -> "Matrix":
        """This matrix, but what `rows` gives stays in memory, up to `max_mb`, and is not computed again.

        kind: int8 or int16 for rows that are held as codes (rfx.operators.coded), all of them at once where they fit; None for features.
        """
        from rfx.operators.coded import coded
        from rfx.operators.held import HeldRows

        if not self.computed:
            return self
        if kind is not None and self.size_mb * np.dtype(kind).itemsize / self.dtype.itemsize <= max_mb:
            return coded(self, kind)
        return HeldRows(self, max_mb, kind)

    def by_columns(self, max_mb: float) -> "Matrix":
        """This matrix in a form whose `column_lists` cost nothing, where that takes at most `max_mb`, else as it is."""
        from rfx.operators.dense import DenseMatrix

        if self.size_mb > max_mb:
            return self
        out = np.empty(self.shape[::-1], self.dtype)
        for columns, Z in self.column_blocks():
            out[columns] = Z.T
        return DenseMatrix(out.T)

    def draw(self, count: int):
        """What `rows` takes for `count` of the rows, as `drawn` has them."""
        return drawn(self.shape[0], count)

    def subset(self, count: int):
        """(`count` of the rows as a matrix, what `rows` and vectors over the rows take for them), as `draw` has them."""
        chosen = self.draw(count)
        return self.rows(chosen), chosen

    def constant(self, value: float):
        """(N,) the same number for every row."""
        return np.full(self.shape[0], value)

    def gathered(self) -> "Matrix":
        """This matrix in the memory of this process."""
        return self.hold()

    def total(self, function, *vectors):
        """function(matrix, *vectors), a sum over the rows: an array or a tuple of them; vectors: (N,) or (N, k), or None.

        Where the rows are parts, it is the sum of what the function, one of a module, gives for each of them.
        """
        return function(self, *vectors)

    # ------------------------------------------------------------------ products, in float64

    def matvec(self, W) -> np.ndarray:
        """Z W: (D,) or (D, k) -> (N,) or (N, k)."""
        out = np.empty((self.shape[0], *W.shape[1:]))
        for rows, part in self.parts():
            out[rows] = part.matvec(W)
        return out

    def rmatvec(self, U) -> np.ndarray:
        """Z'U: (N,) or (N, k) -> (D,) or (D, k)."""
        out = np.zeros((self.shape[1], *U.shape[1:]))
        for rows, part in self.parts():
            out += part.rmatvec(U[rows])
        return out

    def normal(self, P, weights=None) -> np.ndarray:
        """Z' diag(weights) Z P for P (D,) or (D, k), weights (N,) or None for ones."""
        out = np.zeros(P.shape)
        for rows, part in self.parts():
            out += part.normal(P, None if weights is None else weights[rows])
        return out

    def outer(self, U) -> np.ndarray:
        """Z Z'U for U (N,) or (N, k)."""
        return self.matvec(self.rmatvec(U))

    def loss_pass(self, W, loss, y):
        """(Z W, sum over rows of loss(Z W, y), its gradient Z' loss'(Z W, y)) in one pass over the features.

        W, y: (D,) and (N,), or (D, k) and (N, k); the sum has shape () or (k,).
        """
        F, G = np.empty((self.shape[0], *W.shape[1:])), np.zeros(W.shape)
        for rows, part in self.parts():
            F[rows], own = part._scores_and_gradient(W, loss, y[rows])
            G += own
        return F, loss.value(F, y).sum(axis=0), G

    def _scores_and_gradient(self, W, loss, y):
        """(Z W, Z' loss'(Z W, y)) of a part."""
        F = self.matvec(W)
        return F, self.rmatvec(loss.derivative(F, y))

    # ------------------------------------------------------------------ Gram matrices, in float64

    def gram(self, left, right=None, weights=None, dtype=None):
        """Z_l' diag(weights) Z_l for Z_l the columns `left`, (|left|, |left|); with `right`, a pair: that and Z_l' diag(weights) Z_r.

        left, right: integer arrays. weights: (N,), None for ones, those of zero cost nothing. dtype: of the products, at least.
        """
        weights = np.ones(self.shape[0]) if weights is None else weights
        columns = np.unique(left if right is None else np.concatenate([left, right]))
        used = np.flatnonzero(weights)
        own = self if len(columns) == self.shape[1] else self.columns(columns)
        own = own if len(used) == self.shape[0] else own.rows(used)
        left_at = np.searchsorted(columns, left)
        right_at = None if right is None else np.searchsorted(columns, right)
        square = np.zeros((len(left), len(left)))
        cross = None if right is None else np.zeros((len(left), len(right)))
        for rows, part in own.parts():
            found = part.gram(left_at, right_at, weights[used][rows], dtype)
            square += found if right is None else found[0]
            if right is not None:
                cross += found[1]
        return square if right is None else (square, cross)

    def gram_update(self, old, change, new, weights, dtype=None):
        """(Z_o' diag(change) Z_o, Z_n' diag(weights) Z_n, Z_n' diag(weights) Z_o), in one pass where entries are computed.

        old, new: integer arrays of columns, disjoint. change, weights: (N,).
        """
        if not self.computed:
            return self.gram(old, None, change, dtype), *self.gram(new, old, weights, dtype)
        used = np.flatnonzero((change != 0) | (weights != 0))
        change, weights = change[used], weights[used]
        own, old_at, new_at = self.columns(np.concatenate([old, new])).rows(used), np.arange(len(old)), len(old) + np.arange(len(new))
        totals = [np.zeros((len(old), len(old))), np.zeros((len(new), len(new))), np.zeros((len(new), len(old)))]
        for rows, part in own.parts():
            for total, found in zip(
                totals, (part.gram(old_at, None, change[rows], dtype), *part.gram(new_at, old_at, weights[rows], dtype))
            ):
                total += found
        return tuple(totals)

    def gram_weights(self, weights) -> np.ndarray:
        """Row weights (N,) >= 0 close to those given that `gram` is quick with, for what needs a metric and not this one."""
        return weights

    def unscaled(self, weights) -> tuple["Matrix", np.ndarray]:
        """(Z, weights (N,)) of the same Gram matrix at row weights (N,), Z without factors of its rows."""
        return self, weights

    def squares(self, weights=None) -> np.ndarray:
        """(D,) the diagonal of Z' diag(weights) Z; weights (N,), None for ones."""
        weights = np.ones(self.shape[0]) if weights is None else weights
        return sum((weights[rows] @ np.square(Z, dtype=np.float64) for rows, Z in self.row_blocks()), np.zeros(self.shape[1]))


def drawn(size: int, count: int, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Those of `count` different numbers below `size`, ascending, that lie in start .. stop-1.

    They depend on (size, count) alone, so that whoever has a part of the rows knows those of them that are drawn: the first of a
    permutation, or where that would take much memory, one of each of `count` equal stretches.
    """
    stop = size if stop is None else stop
    if count >= size:
        return np.arange(start, stop)
    if size <= _PERMUTED:
        places = np.sort(np.random.default_rng(0).permutation(size)[:count])
        return places[(places >= start) & (places < stop)]
    first, last = start * count // size, min(count, -(-stop * count // size) + 1)
    # whole numbers, for their products do not fit into 64 bits of a float
    ends = np.array([k * size // count for k in range(first, last + 1)], np.int64)
    places = ends[:-1] + (uniforms(0, _DRAW, first, last, 1)[:, 0] * np.diff(ends)).astype(np.int64)
    return places[(places >= start) & (places < stop)]


def ranges(size: int, width: int):
    """Slices of at most `width` that cover range(size)."""
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def block_size(length: int, dtype, target: int | None = None) -> int:
    """How many rows of that length take about `target` bytes (BLOCK_BYTES by default), at least 256."""
    return max(256, int((target or BLOCK_BYTES) // max(1, length * np.dtype(dtype).itemsize)))


def default_memory_mb() -> float:
    """What a solver may use for features when nothing is said: a third of what is free, in the machine and in the process's cgroup."""
    return env.available_memory_mb() / 3
