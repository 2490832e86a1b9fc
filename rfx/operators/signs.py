"""Signs +-1 by columns, with added columns: the features found so far by boosting."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from rfx.operators.blocks import GramOrPair
from rfx.operators.matrix import DenseMatrix

# The maximum columns of a Gram matrix for which products with all columns are faster.
_FEW = 4


class SignColumns(DenseMatrix):
    """An (N, D) matrix of entries +-1; D grows by `append`, copying only when the capacity doubles.

    Gram matrices whose weights are all one number, or zero, are exact in float32 too: sums of
    integers. Signs of one byte do not help: they save a tenth of the time of a training (cod-rna,
    30,000 rows, 50 steps).
    """

    def __init__(self, n_rows: int) -> None:
        self._columns = np.empty((16, n_rows), np.float32)
        super().__init__(self._columns[:0].T)

    def append(self, signs: np.ndarray) -> None:
        """Add the columns of signs (N, k), each entry +1 or -1."""
        count = self.shape[1]
        size = count + signs.shape[1]
        if size > len(self._columns):
            grown = np.empty((max(size, 2 * len(self._columns)), self.shape[0]), np.float32)
            grown[:count] = self._columns[:count]
            self._columns = grown
        self._columns[count:size] = signs.T
        super().__init__(self._columns[:size].T)

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        dtype: DTypeLike | None = None,
    ) -> GramOrPair:
        if len(left) > _FEW or not len(left):
            return super().gram(left, right, weights, dtype)
        weights = np.ones(self.shape[0]) if weights is None else weights
        products = np.stack([self.rmatvec(weights * self.Z[:, column]) for column in left])
        return products[:, left] if right is None else (products[:, left], products[:, right])

    def squares(self, weights: np.ndarray | None = None) -> np.ndarray:
        return np.full(self.shape[1], float(self.shape[0] if weights is None else np.sum(weights)))
