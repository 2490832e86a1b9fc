"""Arc-cosine features of order 0, 1 and 2: one hidden layer of threshold, ramp or squared-ramp
units (Cho and Saul 2009).

phi(x) = sqrt2 H(w.x) (w.x)^order with w ~ N(0, I) and H(t) = 1 for t > 0, else 0. The mean of
phi(x) phi(y) is ||x||^order ||y||^order J(theta) / pi, theta the angle between x and y, J as in
`angular`; a row of zeros has features zero. From order 1 on the features are unbounded, so the
theory of Sinha and Duchi (2016), for |phi| <= 1, does not apply.
"""

import math

import numpy as np

from rfx import steps as told
from rfx.compiled import njit
from rfx.errors import DataError
from rfx.features.base import FeatureMap
from rfx.features.random import normals
from rfx.kernels.products import ArcCosine
from rfx.model import Array

DIRECTION = 0
_SQRT2 = math.sqrt(2)


class ArcCosineMap(FeatureMap):
    """arccosine-0, arccosine-1, arccosine-2: sqrt2 H(w.x) (w.x)^order."""

    kernels = tuple(ArcCosine(order) for order in (0, 1, 2))
    parts = {"directions": Array("f", "inputs features")}

    @property
    def order(self) -> int:
        return int(self.name[-1])

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        return {"directions": normals(seed, DIRECTION, start, stop, n_inputs).T}

    def compute(self, X, out):
        order = self.order
        self._project(X, out, lambda Z: _units(Z, order))

    def own_steps(self):
        units = (("positive",), ("ramp",), ("ramp", "square"))[self.order]
        products = told.linear(self.arrays["directions"])
        root = told.scaled(_SQRT2, self.n_features)
        return products, *(told.Function(name) for name in units), root

    def _check_products(self, X):
        super()._check_products(X)
        largest = max(float(X.max()), -float(X.min())) if X.shape[0] and X.shape[1] else 0.0
        if self.order == 2 and not largest * self._steepest < math.sqrt(
            np.finfo(self.dtype).max / 2
        ):
            raise DataError(
                f"inputs up to {largest:g} overflow the {self.name} features in {self.dtype}; scale"
                " the inputs"
            )


@njit(cache=True, nogil=True)
def _units(Z, order):
    """Z <- sqrt2 H(Z) Z^order."""
    root = Z.dtype.type(_SQRT2)
    for i in range(Z.shape[0]):
        z = Z[i]
        for j in range(len(z)):
            t = max(z[j], z.dtype.type(0.0))
            if order == 0:
                z[j] = root if t > 0 else t
            elif order == 1:
                z[j] = root * t
            else:
                z[j] = root * t * t
