"""Features that are +h_j or -h_j, perceptrons and stumps, stored as one bit each: exact, in 1/32 of
the memory of float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.operators.matrix import READ, Matrix, add_rows, dot_rows
from rfx.operators.products import weighted_gram
from rfx.operators.walked import WalkedMatrix, add_normal

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.losses import Loss
    from rfx.operators.blocks import GramOrPair
    from rfx.types import Index

# Bytes of signs, one byte each, that fit into cache.
_UNPACKED = 1 << 19
# The eight signs of a byte, one byte each.
_SIGNS = (
    (
        2
        * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(
            np.int8
        )
        - 1
    )
    .view(np.int64)
    .ravel()
)


def packed(Z: Matrix, heights: np.ndarray) -> BitMatrix:
    """All rows of Z, whose entries in column j are +-heights[j], as bits."""
    n_rows, n_columns = Z.shape
    bits = np.empty((n_rows, -(-n_columns // 8)), np.uint8)

    def part(first: int, last: int) -> None:
        own = bits[first:last]
        for rows, block in Z.cached_blocks(first, last):
            _pack(block, own[rows])

    parallel.for_ranges(part, n_rows, smallest=256)
    return BitMatrix(bits, np.abs(heights), Z.dtype, np.arange(n_rows))


class BitMatrix(WalkedMatrix):
    """The rows `index` (N,) of bits (n, -(-D // 8)), as features +-heights[j] of a type; a
    set bit is a plus.
    """

    cost = READ / 2
    heights: np.ndarray

    def __init__(
        self, bits: np.ndarray, heights: np.ndarray, dtype: DTypeLike, index: np.ndarray
    ) -> None:
        self.bits, self.heights, self.dtype, self.index = (
            bits,
            np.asarray(heights, np.float64),
            np.dtype(dtype),
            index,
        )
        self.shape = (len(index), len(self.heights))

    def rows(self, index: Index) -> Matrix:
        return BitMatrix(self.bits, self.heights, self.dtype, self.index[index])

    def columns(self, index: Index) -> Matrix:
        chosen = np.arange(self.shape[1])[index]
        bits = np.empty((self.shape[0], -(-len(chosen) // 8)), np.uint8)
        parallel.for_ranges(
            lambda a, b: _take_columns(self.bits, self.index[a:b], chosen, bits[a:b]),
            len(bits),
            smallest=256,
        )
        return BitMatrix(bits, self.heights[chosen], self.dtype, np.arange(len(bits)))

    def to_array(self, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(self.shape, self.dtype) if out is None else out
        every, heights = np.arange(self.shape[1]), self.heights.astype(self.dtype)

        def part(a: int, b: int) -> None:
            self.pick(
                self.index[a:b],
                every,
                np.ones(b - a, self.dtype),
                np.ones(len(every), self.dtype),
                out[a:b],
            )
            out[a:b] *= heights

        parallel.for_ranges(part, len(out), smallest=64)
        return out

    def pick(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        scale: np.ndarray,
        unit: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Signs for `weighted_gram`, which ignores heights; rows: numbers of rows of `bits`."""
        _pick_signs(self.bits, rows, columns, scale, unit, out)

    def hold(self, max_mb: float = np.inf) -> Matrix:
        return self

    # ------------------------------------------------------------------ products

    def matvec(self, W: np.ndarray) -> np.ndarray:
        if W.ndim > 1:
            return super().matvec(W)
        w, out = self.heights * W, np.empty(self.shape[0])
        self._by_signs(lambda some, signs, numbers, own: dot_rows(signs, numbers, w, out[some]))
        return out

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        if U.ndim > 1:
            return super().rmatvec(U)
        used, u = np.flatnonzero(U), np.ascontiguousarray(U, dtype=np.float64)
        if len(used) < len(U):
            return self.rows(used).rmatvec(u[used]) if len(used) else np.zeros(self.shape[1])
        found: np.ndarray = self.heights * self._by_signs(
            lambda some, signs, numbers, own: add_rows(signs, numbers, u[some], own, 0, len(own))
        )
        return found

    def normal(self, P: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        if P.ndim > 1:
            return super().normal(P, weights)
        p, factors = (
            (self.heights * P).astype(np.float32),
            np.ones(self.shape[0]) if weights is None else weights,
        )
        factors = factors.astype(np.float32)
        found: np.ndarray = self.heights * self._by_signs(
            lambda some, signs, numbers, own: add_normal(signs, numbers, factors[some], p, own)
        )
        return found

    def _walk(self, w: np.ndarray, loss: Loss, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w, F = self.heights * w, np.empty(self.shape[0])

        def add(some: slice, signs: np.ndarray, numbers: np.ndarray, own: np.ndarray) -> None:
            dot_rows(signs, numbers, w, F[some])
            add_rows(signs, numbers, loss.derivative(F[some], y[some]), own, 0, len(own))

        return F, self.heights * self._by_signs(add)

    def _by_signs(
        self, add: Callable[[slice, np.ndarray, np.ndarray, np.ndarray], Any]
    ) -> np.ndarray:
        """`_summed` of add(slice of rows, their signs, the numbers of these, sums)."""
        together = max(16, _UNPACKED // max(8, 8 * self.bits.shape[1]))
        numbers = np.arange(together)

        def unpacked(some: slice, own: np.ndarray, room: np.ndarray) -> None:
            count = some.stop - some.start
            _unpack(self.bits, self.index[some], _SIGNS, room)
            add(some, room.view(np.int8)[:, : self.shape[1]], numbers[:count], own)

        return self._summed(
            unpacked, together, room=lambda: np.empty((together, self.bits.shape[1]), np.int64)
        )

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        dtype: DTypeLike | None = None,
    ) -> GramOrPair:
        used = slice(None) if weights is None else np.flatnonzero(weights)
        rows = self.index[used]
        factors = np.ones(len(rows)) if weights is None else weights[used]
        found = weighted_gram(self, rows, factors, left, right, dtype or self.dtype)
        by_left = self.heights[left]
        if right is None:
            return found * np.outer(by_left, by_left)
        return found[0] * np.outer(by_left, by_left), found[1] * np.outer(
            by_left, self.heights[right]
        )

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        return self.heights**2 * (self.shape[0] if weights is None else float(np.sum(weights)))


@njit(cache=True, nogil=True)
def _pack(Z: np.ndarray, bits: np.ndarray) -> None:
    for i in range(len(Z)):
        z, own = Z[i], bits[i]
        for b in range(len(own)):
            byte = 0
            for t in range(min(8, len(z) - 8 * b)):
                byte |= (z[8 * b + t] > 0) << t
            own[b] = byte


@njit(cache=True, nogil=True)
def _take_columns(bits: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(rows)):
        own, to = bits[rows[i]], out[i]
        for b in range(len(to)):
            byte = 0
            for t in range(min(8, len(columns) - 8 * b)):
                j = columns[8 * b + t]
                byte |= ((own[j >> 3] >> (j & 7)) & 1) << t
            to[b] = byte


@njit(cache=True, nogil=True)
def _unpack(bits: np.ndarray, rows: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """out[i, b] <- the eight signs of byte b of row rows[i]."""
    for i in range(len(rows)):
        own, to = bits[rows[i]], out[i]
        for b in range(len(own)):
            to[b] = table[own[b]]


@njit(cache=True, nogil=True)
def _pick_signs(
    bits: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    scale: np.ndarray,
    unit: np.ndarray,
    out: np.ndarray,
) -> None:
    for i in range(len(rows)):
        own, factor = bits[rows[i]], scale[i]
        for k in range(len(columns)):
            j = columns[k]
            out[i, k] = (factor if (own[j >> 3] >> (j & 7)) & 1 else -factor) / unit[k]
