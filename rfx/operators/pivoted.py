"""Randomly pivoted Cholesky factorisation of a kernel matrix: few columns that explain most of it.

Every pivot is drawn with probability proportional to the remaining diagonal (Chen, Epperly, Tropp
and Webber 2025, Comm. Pure Appl. Math. 78, algorithm 2.1), so that rows already explained by F are
avoided; a round proposes many at once and rejects as many as needed for the same distribution
(Epperly, Tropp and Webber 2024, "Embrace rejection").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rfx import kernels, parallel
from rfx.operators.factors import Gram
from rfx.operators.triangular import solve_rows

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
        self.gram = Gram(F.shape[1], np.dtype(np.float64))
        for start in range(0, len(F), _ROWS):
            rows = slice(start, start + _ROWS)
            part = F[rows].astype(np.float64)
            self.gram.add_rows(part if scale is None else part * scale[rows, None])
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
