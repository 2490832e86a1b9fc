"""A matrix whose rows are multiplied by numbers, as weighted least squares asks for: Z becomes S Z, the targets S y."""

import numpy as np

from rfx.operators.matrix import Matrix


class ScaledRows(Matrix):
    """S Z for a matrix Z (N, D) and S = diag(factors), factors (N,) above 0. Nothing is copied: products are scaled."""

    def __init__(self, inner: Matrix, factors):
        self.inner, self.factors = inner, np.asarray(factors, np.float64)
        self.shape, self.dtype, self.cost = inner.shape, inner.dtype, inner.cost

    def parts(self):
        for rows, part in self.inner.parts():
            yield rows, ScaledRows(part, self.factors[rows])

    def rows(self, index):
        return ScaledRows(self.inner.rows(index), self.factors[index])

    def columns(self, index):
        return ScaledRows(self.inner.columns(index), self.factors)

    def unscaled(self, weights):
        """(Z, weights (N,) with which Z'diag(weights) Z is (S Z)'diag(`weights`) S Z)."""
        return self.inner, weights * self.factors**2

    def row_blocks(self):
        for rows, Z in self.inner.row_blocks():
            yield rows, Z * self.factors[rows, None].astype(Z.dtype)

    def to_array(self, out=None):
        return np.multiply(self.inner.to_array(), self.factors[:, None].astype(self.dtype), out=out)

    def matvec(self, W):
        return _times(self.factors, self.inner.matvec(W))

    def rmatvec(self, U):
        return self.inner.rmatvec(_times(self.factors, U))

    def normal(self, P, weights=None):
        return self.inner.normal(P, self._squared(weights))

    def outer(self, U):
        return _times(self.factors, self.inner.outer(_times(self.factors, U)))

    def gram(self, left, right=None, weights=None, dtype=None):
        return self.inner.gram(left, right, self._squared(weights), dtype)

    def gram_weights(self, weights):
        return self.inner.gram_weights(self._squared(weights)) / self.factors**2

    def squares(self, weights=None):
        return self.inner.squares(self._squared(weights))

    def _squared(self, weights):
        return self.factors**2 if weights is None else weights * self.factors**2


def _times(factors, values):
    return (values.T * factors).T
