"""Random features of dot-product kernels: products of random signs with the row (Kar and Karnick
2012), and for the polynomial kernels TensorSketch (`rfx.features.sketch`).

k(x, y) = sum_m a_m (x.y)^m with a_m >= 0: a feature draws m with probability a_m / f(1), f(1) = sum
a_m, and is sqrt(f(1)) prod_{l <= m} s_l.x with vectors s_l of random signs, so that the mean of
phi(x) phi(y) is the kernel. For rows much longer than 1 its variance is large.
"""

import math

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.errors import UsageError
from rfx.features.base import FeatureMap
from rfx.features.products import Vectors
from rfx.features.random import uniforms
from rfx.features.sketch import SketchMap
from rfx.kernels.products import Exponential, Polynomial
from rfx.model import Array
from rfx.parallel import cached

ORDER, SIGN = 0, 1
# The exponential's series is truncated here: its remaining terms sum to less than 1e-9 of f(1) for
# gamma up to 2.
LAST = 16


class DotProductMap(FeatureMap):
    """polynomial-2, polynomial-3: (1 + gamma x.y)^p; exponential: exp(gamma x.y), gamma up to 2.

    By default those of the polynomial kernels are of a SketchMap.
    """

    kernels = (Polynomial(2), Polynomial(3), Exponential())
    parts = {
        "scales": Array("f", "features"),
        "orders": Array("i", "features"),
        "signs": Array("i", "terms inputs features"),
    }
    variants = {
        "sketch": "TensorSketch",
        "signs": "products of random signs",
    }
    forms = {"sketch": SketchMap}

    @classmethod
    def variants_of(cls, name):
        return cls.variants if name != "exponential" else {"signs": cls.variants["signs"]}

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        terms = coefficients(name, params["gamma"])
        most = len(terms) - 1
        shares = np.cumsum(terms) / terms.sum()
        orders = np.minimum(
            np.searchsorted(shares, uniforms(seed, ORDER, start, stop, 1)[:, 0], side="right"), most
        )
        signs = np.where(uniforms(seed, SIGN, start, stop, most * n_inputs) < 0.5, -1, 1).astype(
            np.int8
        )
        signs = signs.reshape(stop - start, most, n_inputs).transpose(1, 2, 0)
        return {
            "scales": np.full(stop - start, math.sqrt(terms.sum())),
            "orders": orders.astype(np.int64),
            "signs": signs,
        }

    @cached
    def _factors(self) -> list[tuple]:
        """(features of more than l terms, the number l of their vectors) for every l."""
        orders = self.arrays["orders"]
        chosen = [np.flatnonzero(orders > order) for order in range(int(orders.max(initial=0)))]
        return [
            (some, Vectors(signs[:, some])) for some, signs in zip(chosen, self.arrays["signs"])
        ]

    def compute(self, X, out):
        rows = X.astype(self.dtype) if sp.issparse(X) else np.ascontiguousarray(X, dtype=self.dtype)
        out[:] = self.arrays["scales"]
        for chosen, vectors in self._factors:
            out[:, chosen] *= vectors.times(rows, np.empty((len(out), len(chosen)), self.dtype))

    def own_steps(self):
        # a feature with fewer factors has 1 for each further one
        used = [self.arrays["orders"] > number for number in range(len(self.arrays["signs"]))]
        factors = [
            told.linear(np.where(own, signs, 0.0), np.where(own, 0.0, 1.0))
            for own, signs in zip(used, self.arrays["signs"])
            if own.any() or own is used[0]
        ]
        return (told.Product(tuple((factor,) for factor in factors)),)


def coefficients(name: str, gamma: float) -> np.ndarray:
    """a_0, a_1, … of the kernel of that name; UsageError if the exponential is too steep for the
    series.
    """
    if name == "exponential":
        if gamma > 2:
            raise UsageError(
                f"--gamma is {gamma:g}; the random features of exp(gamma x.y) need gamma of 2 or"
                " less; scale the inputs"
            )
        return np.array([gamma**m / math.factorial(m) for m in range(LAST + 1)])
    power = int(name[-1])
    return np.array([math.comb(power, m) * gamma**m for m in range(power + 1)])
