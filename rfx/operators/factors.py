"""Gram matrices and their factors as preconditioners of H = lam I + Z' diag(d) Z.

Factors are stored in one array, in the features' type: a float32 factor is only a preconditioner.
It is useless if its own rounding is not small relative to lam; then a float64 factor of rows is
computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import blas

from rfx import kernels, parallel
from rfx.operators.blocks import ranges
from rfx.operators.linear_algebra import factor_in_place, solve, solve_rows
from rfx.operators.matrix import Matrix
from rfx.parallel import add_gram

_TILE = 1024
_ROWS_PER_COLUMN = 8
# The ratio of entries of a factor and its matrix above which its products take longer than it
# saves.
_FULLER = 10
# The rounding of a float32 Gram matrix of rows, relative to lam, above which the extra steps with
# its factor cost more than a float64 factor (docs/benchmarks.md), and the products for estimating
# its largest eigenvalue.
_LOST, _PRODUCTS = 0.1, 4


class Gram:
    """A positive semidefinite n x n Gram matrix and the Cholesky factor of (Gram + diagonal), in
    one array.

    The Gram matrix stays in the upper triangle (its diagonal separately), and the factor uses the
    lower one, so that a second diagonal needs neither another pass over the features nor another
    array.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        """matrix: (n, n), of which the upper triangle counts; it is reused if in Fortran order."""
        self.matrix = np.asfortranarray(matrix)
        self._diagonal: np.ndarray | None = None
        self.diagonal: float | np.ndarray = 0.0

    def factor(self, diagonal: float | np.ndarray) -> Gram:
        """Factor Gram + diagonal (a number or an (n,) array).

        A diagonal too small for the type is increased, to the value in `diagonal`: the factor is
        then a preconditioner for the rest of the spectrum only.
        """
        if self._diagonal is None:
            self._diagonal = self.matrix.diagonal().astype(np.float64)
        floor = float(np.finfo(self.matrix.dtype).eps) * max(
            1e-30, float(self._diagonal.max(initial=0.0))
        )
        shift = 0.0
        while True:
            self._copy_down()
            self.diagonal = diagonal + shift
            np.fill_diagonal(self.matrix, self._diagonal + self.diagonal)
            if factor_in_place(self.matrix) == 0:
                return self
            shift = max(8 * floor, 8 * shift)

    def largest(self, weights: np.ndarray | None = None) -> float:
        """A lower estimate of the largest eigenvalue of diag(weights)^1/2 Gram diag(weights)^1/2,
        weights (n,); before the first `factor`.
        """
        multiply = blas.ssymv if self.matrix.dtype == np.float32 else blas.dsymv
        root, found = 1.0 if weights is None else np.sqrt(weights), 0.0
        v = root * np.ones(len(self.matrix))
        for _ in range(_PRODUCTS):
            size = float(np.linalg.norm(v))
            if size == 0.0:
                return 0.0
            v = root * multiply(1.0, self.matrix, root * (v / size))
            found = float(np.linalg.norm(v))
        return found

    def _copy_down(self) -> None:
        n = len(self.matrix)
        for i in range(0, n, _TILE):
            for j in range(i, n, _TILE):
                tile = self.matrix[i : i + _TILE, j : j + _TILE].T.copy()
                below = np.tri(len(tile), k=-1, dtype=bool) if i == j else True
                np.copyto(self.matrix[j : j + _TILE, i : i + _TILE], tile, where=below)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """(Gram + diagonal)^-1 b in the factor's type, returned as float64."""
        return solve(self.matrix, b).astype(np.float64, copy=False)


def _column_gram(Z: Matrix, weights: np.ndarray | None, dtype: DTypeLike) -> np.ndarray:
    """Z' diag(weights) Z, D x D, at least its upper triangle."""
    matrix = np.zeros((Z.shape[1], Z.shape[1]), dtype, order="F")
    for rows, part in Z.row_blocks():
        own = part if weights is None else part * np.sqrt(weights[rows]).astype(part.dtype)[:, None]
        add_gram(own.astype(dtype, copy=False), matrix)
    return matrix


def row_gram(Z: Matrix, dtype: DTypeLike | None = None) -> Gram:
    """Z Z', N x N, in `dtype`, the features' own by default."""
    matrix = np.zeros((Z.shape[0], Z.shape[0]), dtype or Z.dtype, order="F")
    for _, part in Z.column_blocks():
        add_gram(part.T.astype(matrix.dtype, copy=False), matrix)
    return Gram(matrix)


class Factor(ABC):
    """r -> M^-1 r for r (D,) or (D, k), with M close to lam I + Z' diag(d) Z for the lam of
    `prepare`; d: (N,) or None for ones.
    """

    def __init__(self, Z: Matrix, weights: np.ndarray | None = None) -> None:
        self.Z, self.d = Z, weights

    @abstractmethod
    def prepare(self, lam: float) -> Factor:
        """This factor, for that lam."""

    @abstractmethod
    def __call__(self, r: np.ndarray) -> np.ndarray:
        """M^-1 r."""


class ColumnFactor(Factor):
    """With the D x D factor."""

    def __init__(
        self, Z: Matrix, weights: np.ndarray | None = None, dtype: DTypeLike | None = None
    ) -> None:
        """dtype: of the factor, the features' own by default."""
        super().__init__(Z, weights)
        self.gram = Gram(Z.total(partial(_column_gram, dtype=dtype or Z.dtype), weights))

    def prepare(self, lam: float) -> ColumnFactor:
        self.gram.factor(lam)
        return self

    def __call__(self, r: np.ndarray) -> np.ndarray:
        return self.gram.solve(r)


class RowFactor(Factor):
    """With the N x N factor: (r - Z'(lam / d + Z Z')^-1 Z r) / lam (Woodbury).

    The two terms nearly cancel, and the second has the rounding of the Gram matrix, so the
    difference is meaningless if that is as large as lam.
    """

    def __init__(self, Z: Matrix, weights: np.ndarray | None = None) -> None:
        super().__init__(Z, weights)
        self.gram = row_gram(Z)
        self._rounding = float(np.finfo(self.gram.matrix.dtype).eps) * self.gram.largest(weights)

    def loses(self, lam: float) -> bool:
        """Whether for this lam the factor is float64, or there is none."""
        return self.Z.dtype == np.float32 and self._rounding > _LOST * lam

    def widened(self) -> RowFactor:
        """This factor, from here on in float64."""
        del self.gram
        self.gram = row_gram(self.Z, np.float64)
        return self

    def prepare(self, lam: float) -> RowFactor:
        self.lam = lam
        self.gram.factor(lam if self.d is None else lam / self.d)
        return self

    def weights(self, Y: np.ndarray) -> np.ndarray:
        """M^-1 Z'Y (D,) or (D, k) for Y (N,) or (N, k) and d = 1, by the smaller system."""
        return self.Z.rmatvec(self.gram.solve(Y))

    def __call__(self, r: np.ndarray) -> np.ndarray:
        return (r - self.Z.rmatvec(self.gram.solve(self.Z.matvec(r)))) / self.lam


class DiagonalFactor(Factor):
    """With the diagonal: for features that are nearly all zero, whose columns hardly overlap."""

    def prepare(self, lam: float) -> DiagonalFactor:
        self.diagonal = lam + self.Z.squares(self.d)
        return self

    def __call__(self, r: np.ndarray) -> np.ndarray:
        return (r.T / self.diagonal).T


@singledispatch
def choose_factor(Z: Matrix, max_memory_mb: float, lam: float) -> Factor:
    """A preconditioner of lam I + Z'Z for any lam, with `lam` the smallest one, in less than
    `max_memory_mb`: from the smaller of the two Gram matrices, or if neither fits, from as many
    rows as do. A matrix on an accelerator has its own, registered where it is defined.
    """
    (n_rows, n_columns), itemsize = Z.shape, Z.dtype.itemsize
    available = max_memory_mb * 2**20
    if n_rows < n_columns and Z.rows_here and n_rows**2 * itemsize <= available:
        factor = RowFactor(Z)
        return factor.widened() if factor.loses(lam) and n_rows**2 * 8 <= available else factor
    if n_columns**2 * itemsize <= available:
        return ColumnFactor(Z)
    return sampled_factor(Z, None, lam, n_rows, max_memory_mb)


def sampled_factor(
    Z: Matrix, weights: np.ndarray | None, lam: float, rows: int, max_memory_mb: float
) -> Factor:
    """A preconditioner of lam I + Z' diag(weights) Z from about `rows` of the N rows, in less than
    `max_memory_mb`.

    With m rows drawn for an effective dimension d, the condition number is about ((1 + sqrt(d/m)) /
    (1 - sqrt(d/m)))^2. weights: (N,), None for ones. The rows' own Gram matrix is the smaller one
    as long as rows < D. For a matrix with far fewer entries than these, the diagonal is used.
    """
    n_rows, n_columns = Z.shape
    if _FULLER * Z.n_entries < min(rows, n_rows, n_columns) ** 2:
        return DiagonalFactor(Z, weights).prepare(lam)
    itemsize = Z.dtype.itemsize
    available = max_memory_mb * 2**20 / itemsize
    rows = min(rows, n_rows)
    if n_columns <= rows and n_columns**2 <= available:
        # here rows do not increase the size of the factor, so there can be several times D of them
        # in the same time
        part, weights = _draw(
            Z, weights, max(rows, min(_ROWS_PER_COLUMN * n_columns, rows**2 // n_columns))
        )
        return ColumnFactor(part, weights).prepare(lam)
    rows = int(min(rows, np.sqrt(n_columns**2 / 4 + available) - n_columns / 2))
    part, own = _draw(Z, weights, max(1, rows))
    factor = RowFactor(part.gathered(), None if own is None else np.asarray(own))
    return (factor.widened() if factor.loses(lam) else factor).prepare(lam)


def _draw(Z: Matrix, weights: np.ndarray | None, count: int) -> tuple[Matrix, np.ndarray | None]:
    """`count` rows without replacement, with weights increased to preserve the expectation of the
    sum.
    """
    n_rows = Z.shape[0]
    if count >= n_rows:
        return Z, weights
    chosen = Z.draw(count)
    part = Z.rows(chosen)
    return part, part.constant(n_rows / count) if weights is None else weights[chosen] * (
        n_rows / count
    )


# ----------------------------------------------------------------------
# Randomly pivoted Cholesky factorisation of a kernel matrix: few columns that explain most of it.
#
# Every pivot is drawn with probability proportional to the remaining diagonal (Chen, Epperly, Tropp
# and Webber 2025, Comm. Pure Appl. Math. 78, algorithm 2.1), so that rows already explained by F
# are avoided; a round proposes many at once and rejects as many as needed for the same distribution
# (Epperly, Tropp and Webber 2024, "Embrace rejection").

# Pivots proposed in one round.
PROPOSALS = 128
# Rows per task; the same for any number of threads, so that the result is too.
_CHUNK = 512
# Rows of a factor converted to float64 at a time for its Gram matrix, and the parts of a sum over
# rows.
_ROWS, _PARTS = 2048, 16


def pivoted_cholesky(
    rows: kernels.Prepared,
    count: int,
    draws: Callable[[int, int], np.ndarray],
    dtype: DTypeLike = np.float64,
    floor: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(pivots, F): at most `count` row numbers and F (n, pivots) with F F' close to the kernel
    matrix of `rows` (n, d).

    draws(start, stop): uniform numbers in (0, 1), (stop - start, 2), items start to stop of a
    stream. dtype: of F; kernel values are in that of `rows`. floor: the fraction of the largest
    diagonal entry below which a remainder counts as rounding, by default n eps of the rows' type.
    Fewer pivots are returned if only rounding errors remain.
    """
    n_rows = rows.n_rows
    left = np.array(kernels.diagonal(rows.name, rows, rows.params), dtype=np.float64)
    floor = (n_rows * np.finfo(rows.dtype).eps if floor is None else floor) * left.max(initial=0.0)
    F = np.empty((n_rows, count), dtype)
    pivots = np.empty(count, dtype=np.intp)
    done = turn = 0
    while done < count:
        left[left <= floor] = 0.0
        total = np.cumsum(left)
        if not total[-1] > 0:
            break
        drawn = draws(turn * PROPOSALS, (turn + 1) * PROPOSALS)
        turn += 1
        proposed = np.minimum(
            np.searchsorted(total, drawn[:, 0] * total[-1], side="right"), n_rows - 1
        )
        own = rows.take(proposed)
        known = F[proposed, :done].astype(np.float64)
        residual = kernels.block(rows.name, own, own, rows.params) - known @ known.T
        # updates of the diagonal accumulate rounding, this does not
        left[proposed] = np.maximum(np.diagonal(residual), 0.0)
        accepted, factor = _reject(residual, drawn[:, 1], count - done, floor)
        if not len(accepted):
            continue
        new = proposed[accepted]
        fresh = slice(done, done + len(new))
        pivots[fresh] = new
        _extend(
            F[:, :done],
            F[:, fresh],
            left,
            kernels.block(rows.name, rows, rows.take(new), rows.params),
            F[new, :done],
            factor,
        )
        left[new] = 0.0
        done += len(new)
    return pivots[:done], F[:, :done]


class PivotedFactor:
    """v -> (lam + S F F' S)^-1 v for F (n, r) and S = diag(scale): a preconditioner of lam + S K S
    (Woodbury).

    F keeps its own type; all products are computed in float64. Float32 products would lose the part
    of v along the largest eigenvectors, which K amplifies again.
    """

    def __init__(self, F: np.ndarray, lam: float, scale: np.ndarray | None = None) -> None:
        """scale: (n,), None for ones."""
        self.F, self.lam, self.scale = F, lam, scale
        self.gram = Gram(np.zeros((F.shape[1], F.shape[1])))
        for rows in ranges(len(F), _ROWS):
            part = F[rows].astype(np.float64)
            part = part if scale is None else part * scale[rows, None]
            add_gram(part, self.gram.matrix)
        self.gram.factor(lam)

    def __call__(self, v: np.ndarray) -> np.ndarray:
        scale = 1.0 if self.scale is None else self.scale if v.ndim == 1 else self.scale[:, None]
        inside = self.gram.solve(_inner(self.F, scale * v))
        return (v - scale * _outer(self.F, inside)) / self.lam


def _inner(F: np.ndarray, V: np.ndarray) -> np.ndarray:
    """F'V for F (n, r) and V (n,) or (n, k) in float64; the sums are the same for any number of
    threads.
    """

    def part(start: int, stop: int) -> np.ndarray:
        chunks = (slice(i, min(i + _CHUNK, stop)) for i in range(start, stop, _CHUNK))
        return sum(F[rows].astype(np.float64).T @ V[rows] for rows in chunks)

    with parallel.one_blas_thread():
        return sum(parallel.for_ranges(part, len(F), _CHUNK, _PARTS, F.size))


def _outer(F: np.ndarray, W: np.ndarray) -> np.ndarray:
    """F W for F (n, r) and W (r,) or (r, k) in float64."""
    out = np.empty((len(F), *W.shape[1:]))
    each_chunk(len(F), lambda rows: np.matmul(F[rows].astype(np.float64), W, out=out[rows]))
    return out


def _extend(
    F: np.ndarray,
    columns: np.ndarray,
    left: np.ndarray,
    G: np.ndarray,
    pivot_rows: np.ndarray,
    factor: np.ndarray,
) -> None:
    """The next columns of the factor F from G, the kernel values with their pivots, and the
    remaining diagonal.
    """

    def part(rows: slice) -> None:
        own = np.asarray(G[rows], dtype=np.float64)
        own -= F[rows] @ pivot_rows.T
        solve_rows(factor, own)
        columns[rows] = own
        left[rows] = np.maximum(left[rows] - np.einsum("ij,ij->i", own, own), 0.0)

    each_chunk(len(G), part)


def _reject(
    H: np.ndarray, draws: np.ndarray, most: int, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """(accepted, factor): the accepted proposals, at most `most`, and the Cholesky factor of H for
    these.

    H (b, b): the remainder of the kernel matrix for the proposed rows; overwritten. A proposal is
    accepted with probability (its remainder after those accepted before) / (its remainder when it
    was proposed).
    """
    before = np.diagonal(H).copy()
    columns = np.zeros_like(H)
    accepted: list[int] = []
    for i, draw in enumerate(draws):
        if len(accepted) == most:
            break
        # two numbers below the rounding are meaningless, and a row proposed twice is useless
        if H[i, i] <= floor or draw * before[i] >= H[i, i]:
            continue
        column = H[:, i] / np.sqrt(H[i, i])
        columns[:, len(accepted)] = column
        H -= np.outer(column, column)
        accepted.append(i)
    return np.array(accepted, dtype=np.intp), np.asfortranarray(columns[accepted, : len(accepted)])


def each_chunk(n_rows: int, function: Callable[[slice], Any]) -> None:
    """function(rows) for every chunk of the rows, by several threads with one BLAS thread each."""

    def part(start: int, stop: int) -> None:
        for chunk in range(start, stop):
            function(slice(chunk * _CHUNK, min((chunk + 1) * _CHUNK, n_rows)))

    with parallel.one_blas_thread():
        parallel.for_ranges(part, -(-n_rows // _CHUNK))
