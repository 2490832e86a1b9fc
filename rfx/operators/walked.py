"""Matrices with packed entries: some rows at a time are unpacked, in cache, for all uses in a
pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.operators.blocks import block_size, ranges
from rfx.operators.matrix import DenseMatrix, Matrix

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.losses import Loss
    from rfx.types import Index

_PARTS = 16
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_float = np.float32


class WalkedMatrix(Matrix):
    """A kind defines _walk(w, loss, y): (Z w, Z' loss'(Z w, y)) for w (D,), in one pass over its
    rows.
    """

    def parts(self) -> Iterator[tuple[Index, Matrix]]:
        for rows in ranges(self.shape[0], block_size(self.shape[1], self.dtype)):
            yield rows, DenseMatrix(self.rows(rows).to_array())

    @abstractmethod
    def _walk(self, w: np.ndarray, loss: Loss, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def loss_pass(
        self, W: np.ndarray, loss: Loss, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if W.ndim > 1:
            return super().loss_pass(W, loss, y)
        F, G = self._scores_and_gradient(W, loss, y)
        return F, loss.value(F, y).sum(axis=0), G

    def _scores_and_gradient(
        self, W: np.ndarray, loss: Loss, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return (
            super()._scores_and_gradient(W, loss, y)
            if W.ndim > 1
            else self._walk(np.ascontiguousarray(W, dtype=np.float64), loss, y)
        )

    def _summed(
        self,
        add: Callable[[slice, np.ndarray, Any], Any],
        together: int,
        dtype: DTypeLike = np.float64,
        room: Callable[[], Any] = lambda: None,
    ) -> np.ndarray:
        """(D,) the total of add(slice of rows, sums, room), of that type, over at most `together`
        rows each, for any number of threads.

        room: creates the array into which a thread unpacks rows.
        """
        sums, bounds = (
            np.zeros((_PARTS, self.shape[1])),
            [self.shape[0] * k // _PARTS for k in range(_PARTS + 1)],
        )

        def part(first: int, last: int) -> None:
            own, free = np.empty(self.shape[1], dtype), room()
            for k in range(first, last):
                for start in range(bounds[k], bounds[k + 1], together):
                    parallel.check_time()
                    own[:] = 0
                    add(slice(start, min(start + together, bounds[k + 1])), own, free)
                    sums[k] += own

        parallel.for_ranges(part, _PARTS, work=self.shape[0] * self.shape[1])
        found: np.ndarray = sums.sum(axis=0)
        return found


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_normal(
    codes: np.ndarray, rows: np.ndarray, factors: np.ndarray, p: np.ndarray, g: np.ndarray
) -> None:
    """g <- g + C' diag(factors) C p for C = codes[rows], eight rows at a time, each read
    from memory once.
    """
    count, width = len(rows), len(p)
    for i in range(0, count - 7, 8):
        za, zb, zc, zd = codes[rows[i]], codes[rows[i + 1]], codes[rows[i + 2]], codes[rows[i + 3]]
        ze, zf, zg, zh = (
            codes[rows[i + 4]],
            codes[rows[i + 5]],
            codes[rows[i + 6]],
            codes[rows[i + 7]],
        )
        a, b, c, d, e, f, x, y = (
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
        )
        for j in range(width):
            q = p[j]
            a += _float(za[j]) * q
            b += _float(zb[j]) * q
            c += _float(zc[j]) * q
            d += _float(zd[j]) * q
            e += _float(ze[j]) * q
            f += _float(zf[j]) * q
            x += _float(zg[j]) * q
            y += _float(zh[j]) * q
        a, b, c, d = a * factors[i], b * factors[i + 1], c * factors[i + 2], d * factors[i + 3]
        e, f, x, y = e * factors[i + 4], f * factors[i + 5], x * factors[i + 6], y * factors[i + 7]
        for j in range(width):
            low = a * _float(za[j]) + b * _float(zb[j]) + c * _float(zc[j]) + d * _float(zd[j])
            g[j] += low + (
                e * _float(ze[j]) + f * _float(zf[j]) + x * _float(zg[j]) + y * _float(zh[j])
            )
    for i in range(count - count % 8, count):
        z, a = codes[rows[i]], _float(0)
        for j in range(width):
            a += _float(z[j]) * p[j]
        a *= factors[i]
        for j in range(width):
            g[j] += a * _float(z[j])
