"""Signs +-1 by columns, one byte each, with added columns: the features found so far by
boosting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.operators.matrix import DenseMatrix, Matrix

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.operators.blocks import GramOrPair
    from rfx.types import Index

_FAST = {"reassoc", "contract", "nsz", "arcp"}
# Rows whose sums fit into the first-level cache, rows of a chunk of a Gram matrix, and the maximum
# columns for which products are faster.
_ROWS, _CHUNK, _FEW = 2048, 2048, 4


class SignColumns(Matrix):
    """An (N, D) matrix of entries +-1; D grows by `append`, copying only when the capacity doubles.

    Gram matrices whose weights are all one number, or zero, are exact in float32 too: sums of
    integers.
    """

    def __init__(self, n_rows: int) -> None:
        self._columns, self._count = np.empty((16, n_rows), np.int8), 0
        self.shape, self.dtype = (n_rows, 0), np.dtype(np.float32)

    def append(self, signs: np.ndarray) -> None:
        """Add the columns of signs (N, k), each entry +1 or -1."""
        room, count = len(self._columns), signs.shape[1]
        while room < self._count + count:
            room *= 2
        if room > len(self._columns):
            grown = np.empty((room, self._columns.shape[1]), np.int8)
            grown[: self._count] = self._columns[: self._count]
            self._columns = grown
        self._columns[self._count : self._count + count] = signs.T
        self._count += count
        self.shape = self._columns.shape[1], self._count

    @property
    def _own(self) -> np.ndarray:
        return self._columns[: self._count]

    def rows(self, index: Index) -> Matrix:
        return DenseMatrix(self._own[:, index].T.astype(np.float32))

    def columns(self, index: Index) -> Matrix:
        return DenseMatrix(self._own[index].astype(np.float32).T)

    def to_array(self, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return self._own.T.astype(np.float32)
        out[...] = self._own.T
        return out

    def row_blocks(self) -> Iterator[tuple[Index, np.ndarray]]:
        for start in range(0, self.shape[0], _CHUNK):
            rows = slice(start, min(start + _CHUNK, self.shape[0]))
            yield rows, np.ascontiguousarray(self._own[:, rows].T, dtype=np.float32)

    def matvec(self, W: np.ndarray) -> np.ndarray:
        W = np.asarray(W, np.float64)
        if W.ndim > 1:
            return np.stack([self.matvec(w) for w in W.T], axis=-1)
        used, out = np.flatnonzero(W), np.zeros(self.shape[0])
        values = W[used]
        parallel.for_ranges(
            lambda start, stop: _combine(self._own, used, values, out, start, stop),
            len(out),
            smallest=_ROWS,
        )
        return out

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        U = np.ascontiguousarray(U, dtype=np.float64)
        if U.ndim > 1:
            return np.stack([self.rmatvec(np.ascontiguousarray(u)) for u in U.T], axis=-1)
        out = np.zeros(self.shape[1])
        parallel.for_ranges(
            lambda start, stop: _dots(self._own[start:stop], U, out[start:stop]),
            len(out),
            smallest=4,
        )
        return out

    def normal(self, P: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        F = self.matvec(P)
        return self.rmatvec(F if weights is None else weights.reshape(-1, *[1] * (F.ndim - 1)) * F)

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        dtype: DTypeLike | None = None,
    ) -> GramOrPair:
        weights = np.ones(self.shape[0]) if weights is None else np.asarray(weights, np.float64)
        if len(left) <= _FEW:
            products = (
                np.stack([self.rmatvec(weights * self._own[column]) for column in left])
                if len(left)
                else np.zeros((0, self.shape[1]))
            )
            return products[:, left] if right is None else (products[:, left], products[:, right])
        rows = np.flatnonzero(weights)
        peak = np.abs(weights).max(initial=0.0) or 1.0
        sides = (left,) if right is None else (left, right)

        def part(first: int, last: int) -> list[np.ndarray]:
            totals = [np.zeros((len(left), len(columns))) for columns in sides]
            for start in range(first * _CHUNK, min(last * _CHUNK, len(rows)), _CHUNK):
                chosen = rows[start : start + _CHUNK]
                for sign in (1.0, -1.0):
                    some = chosen[sign * weights[chosen] > 0]
                    roots = np.sqrt(sign * weights[some] / peak).astype(dtype or self.dtype)
                    by_left, *by_right = [
                        _picked(self._own, some, columns, roots) for columns in sides
                    ]
                    # numpy recognises X' X and calls SYRK: half the work
                    totals[0] += sign * (by_left.T @ by_left)
                    for total, out in zip(totals[1:], by_right):
                        total += sign * (by_left.T @ out)
            return totals

        totals, *others = parallel.for_ranges(part, -(-len(rows) // _CHUNK))
        for other in others:
            for total, more in zip(totals, other):
                total += more
        for total in totals:
            total *= peak
        return totals[0] if right is None else (totals[0], totals[1])

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        return np.full(self.shape[1], float(self.shape[0] if weights is None else np.sum(weights)))


@njit(cache=True, nogil=True, fastmath=_FAST)
def _combine(
    columns: np.ndarray,
    used: np.ndarray,
    values: np.ndarray,
    out: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """out_i <- sum_k values_k columns[used_k, i] for start <= i < stop, four columns at a time."""
    for low in range(start, stop, _ROWS):
        high = min(low + _ROWS, stop)
        part = out[low:high]
        fours = len(used) - len(used) % 4
        for k in range(0, fours, 4):
            a, b, c, d = (
                columns[used[k], low:high],
                columns[used[k + 1], low:high],
                columns[used[k + 2], low:high],
                columns[used[k + 3], low:high],
            )
            va, vb, vc, vd = values[k], values[k + 1], values[k + 2], values[k + 3]
            for i in range(high - low):
                part[i] += va * a[i] + vb * b[i] + vc * c[i] + vd * d[i]
        for k in range(fours, len(used)):
            last, value = columns[used[k], low:high], values[k]
            for i in range(high - low):
                part[i] += value * last[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dots(columns: np.ndarray, u: np.ndarray, out: np.ndarray) -> None:
    """out_k <- sum_i columns[k, i] u_i, with rows that fit into cache at a time."""
    for low in range(0, len(u), _ROWS):
        part = u[low : low + _ROWS]
        for k in range(len(out)):
            column, total = columns[k, low : low + _ROWS], 0.0
            for i in range(len(part)):
                total += column[i] * part[i]
            out[k] += total


def _picked(
    columns: np.ndarray, rows: np.ndarray, chosen: np.ndarray, roots: np.ndarray
) -> np.ndarray:
    """columns[chosen][:, rows]' in the type of the roots, each row times its square root."""
    out = np.empty((len(rows), len(chosen)), roots.dtype)
    _pick(columns, rows, chosen, roots, out)
    return out


@njit(cache=True, nogil=True)
def _pick(
    columns: np.ndarray, rows: np.ndarray, chosen: np.ndarray, roots: np.ndarray, out: np.ndarray
) -> None:
    for k in range(len(chosen)):
        column = columns[chosen[k]]
        for i in range(len(rows)):
            out[i, k] = roots[i] * column[rows[i]]
