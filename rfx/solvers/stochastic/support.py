"""Support vectors added a few at a time, and sums of exact kernel values over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from rfx import kernels
from rfx.parallel import matmul

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.types import Inputs

# Support vectors whose kernel values are computed together, and rows for which they are computed.
PIECE, ROWS = 2048, 4096


class Support:
    """Rows with coefficients: f = sum_j coef_j k(x_j, .).

    kernel, params: as for rfx.kernels. dtype: of the rows and the kernel values; coefficients and
    sums are float64.
    """

    def __init__(
        self, kernel: str, params: dict[str, Any], n_outputs: int, dtype: DTypeLike = np.float32
    ) -> None:
        self.kernel, self.params, self.dtype = kernel, params, np.dtype(dtype)
        self.n_rows = 0
        self._coef = np.zeros((PIECE, n_outputs))
        self._pieces: list[np.ndarray] = []
        self._prepared: list[kernels.Prepared] = []

    @property
    def coef(self) -> np.ndarray:
        """(n_rows, n_outputs), mutable."""
        return self._coef[: self.n_rows]

    @property
    def rows(self) -> np.ndarray:
        """(n_rows, d) a copy of the rows."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros((0, 0), self.dtype)

    def append(self, X: Inputs, coef: np.ndarray) -> None:
        """Append rows X (n, d), array or CSR, with coefficients coef (n, n_outputs)."""
        rows = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, self.dtype)
        stop = self.n_rows + len(rows)
        if stop > len(self._coef):
            more = np.zeros((max(stop, 2 * len(self._coef)) - len(self._coef), self._coef.shape[1]))
            self._coef = np.concatenate([self._coef, more])
        self._coef[self.n_rows : stop] = coef
        self.n_rows = stop
        while len(rows):
            if not self._pieces or len(self._pieces[-1]) == PIECE:
                self._pieces.append(rows[:0])
            room = PIECE - len(self._pieces[-1])
            self._pieces[-1] = np.concatenate([self._pieces[-1], rows[:room]])
            rows = rows[room:]
            del self._prepared[len(self._pieces) - 1 :]

    def values(self, X: Inputs, others: np.ndarray | None = None) -> np.ndarray:
        """(n, n_outputs) float64 values of f for the rows X (n, d); others: (n_rows, n_outputs)
        coefficients instead of f's own.
        """
        known = self.coef if others is None else others
        out = np.zeros((X.shape[0], self._coef.shape[1]))
        for number, piece in enumerate(self._pieces):
            coef = known[number * PIECE : number * PIECE + len(piece)]
            if number == len(self._prepared):
                like = self._prepared[0] if self._prepared else None
                self._prepared.append(
                    kernels.prepare(self.kernel, piece, self.params, self.dtype, like)
                )
            used = np.flatnonzero(np.any(coef != 0, axis=1))
            if not len(used):
                continue
            support = (
                self._prepared[number]
                if len(used) == len(piece)
                else self._prepared[number].take(used)
            )
            weights = coef[used].astype(self.dtype)
            for start in range(0, len(out), ROWS):
                K = kernels.block(
                    self.kernel, X[start : start + ROWS], support, self.params, dtype=self.dtype
                )
                out[start : start + ROWS] += matmul(K, weights)
        return out
