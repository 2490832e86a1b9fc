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
    """The rows x_j of f = sum_j coef_j k(x_j, .).

    kernel, params: as for rfx.kernels. dtype: of the rows and the kernel values; coefficients and
    sums are float64. rows: (n, d) the first rows.
    """

    def __init__(
        self,
        kernel: str,
        params: dict[str, Any],
        dtype: DTypeLike = np.float32,
        rows: Inputs | None = None,
    ) -> None:
        self.kernel, self.params, self.dtype = kernel, params, np.dtype(dtype)
        self.n_rows = 0
        self._pieces: list[np.ndarray] = []
        self._prepared: list[kernels.Prepared] = []
        if rows is not None:
            self.append(rows)

    @property
    def rows(self) -> np.ndarray:
        """(n_rows, d) a copy of the rows."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros((0, 0), self.dtype)

    def append(self, X: Inputs) -> None:
        """Append rows X (n, d), array or CSR."""
        rows = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, self.dtype)
        self.n_rows += len(rows)
        while len(rows):
            if not self._pieces or len(self._pieces[-1]) == PIECE:
                self._pieces.append(rows[:0])
            room = PIECE - len(self._pieces[-1])
            self._pieces[-1] = np.concatenate([self._pieces[-1], rows[:room]])
            rows = rows[room:]
            del self._prepared[len(self._pieces) - 1 :]

    def values(self, X: Inputs, coef: np.ndarray) -> np.ndarray:
        """(n, n_outputs) float64 values of f for the rows X (n, d) and coefficients coef (n_rows,
        n_outputs).
        """
        out = np.zeros((X.shape[0], coef.shape[1]))
        for number, piece in enumerate(self._pieces):
            weights = coef[number * PIECE : number * PIECE + len(piece)]
            if number == len(self._prepared):
                like = self._prepared[0] if self._prepared else None
                self._prepared.append(
                    kernels.prepare(self.kernel, piece, self.params, self.dtype, like)
                )
            used = np.flatnonzero(np.any(weights != 0, axis=1))
            if not len(used):
                continue
            support = self._prepared[number]
            if len(used) < len(piece):
                support, weights = support.take(used), weights[used]
            weights = weights.astype(self.dtype)
            for start in range(0, len(out), ROWS):
                K = kernels.block(
                    self.kernel, X[start : start + ROWS], support, self.params, dtype=self.dtype
                )
                out[start : start + ROWS] += matmul(K, weights)
        return out
