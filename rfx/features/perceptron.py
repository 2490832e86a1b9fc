"""Random hidden units: perceptrons, decision stumps, and the units of the arc-cosine kernels."""

import math

import numpy as np

from rfx import steps as told
from rfx.compiled import njit
from rfx.features.base import BLOCK, FeatureMap, MapArray, as_array, each_part, sum_group
from rfx.features.random import normals, uniform_numbers
from rfx.kernels.products import ArcCosine, Perceptron, Stump, perceptron_constant
from rfx.model import Array

# ----------------------------------------------------------------------
# Sign features: random perceptrons and decision stumps (Lin and Li 2008; Yen et al. 2014, section
# 5).

DIRECTION = 0
THRESHOLD = 1
COLUMN = 2


class PerceptronMap(FeatureMap):
    """phi(x) = sqrt(R/c_d) sign(theta.x - a), theta uniform on the sphere, a ~ U[-R, R], R =
    params["radius"].

    Estimates K_P(x, y) = R/c_d - ||x - y||_2 for ||x||, ||y|| <= R, with c_d = E|theta_1| (Lin and
    Li 2008). With params["unit"] the features are +-1, as in Yen et al. (2014, section 5), and
    estimate (c_d/R) K_P = 1 - (c_d/R) ||x - y||_2.
    """

    kernels = (Perceptron(),)
    parts = {
        "directions": Array("f", "inputs features"),
        "thresholds": Array("f", "features"),
        "scales": Array("f", "features"),
    }
    variants = {
        "offset": "thresholds over the whole ball",
        "range": "thresholds within the range of the training rows",
    }
    directions = MapArray()
    thresholds = MapArray()
    scales = MapArray()

    @property
    def radius(self) -> float:
        return self.params["radius"]

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        theta = normals(seed, DIRECTION, start, stop, n_inputs)
        theta /= np.linalg.norm(theta, axis=1, keepdims=True)
        radius = params["radius"]
        a = radius * (2 * uniform_numbers(seed, THRESHOLD, start, stop) - 1)
        scales = np.ones(stop - start)
        if not params.get("unit"):
            scales[:] = math.sqrt(radius / perceptron_constant(n_inputs))
        return {"directions": theta.T, "thresholds": a, "scales": scales}

    def fit(self, X, variant: str) -> FeatureMap:
        """For `range`, the same directions with every threshold mapped, proportionally, to the
        range of theta.x over the rows of X.

        A threshold outside that range makes a constant feature, and most are outside. Feature j is
        scaled by sqrt((hi_j - lo_j) / (2 c_d)): the mean product is then K_P minus a constant. With
        a free bias f would change by a constant only; these methods have none, so the penalty
        includes the constant, and f changes in other ways too. With params["unit"] the features
        stay +-1; their mean product is then not a multiple of K_P.
        """
        if variant != "range":
            return self
        lo, hi = self._ranges(X)
        width = hi - lo
        shares = (self.thresholds.astype(np.float64) / self.radius + 1) / 2
        thresholds = (lo + shares * width).astype(self.dtype)
        scales = np.ones(self.n_features, self.dtype)
        if not self.params.get("unit"):
            scales[:] = np.sqrt(width / (2 * perceptron_constant(self.n_inputs)))
        arrays = {"directions": self.directions, "thresholds": thresholds, "scales": scales}
        return PerceptronMap(self.name, self.n_inputs, self.params, arrays)

    def _ranges(self, X):
        """The minimum and maximum of theta.x of every feature over the rows of X."""
        lo = np.full(self.n_features, np.inf)
        hi = np.full(self.n_features, -np.inf)
        rows = max(1, 2**22 // self.n_features)
        buffer = np.empty((min(rows, X.shape[0]), self.n_features), self.dtype)
        for start in range(0, X.shape[0], rows):
            part = X[start : start + rows]
            Z = self._project(part, buffer[: part.shape[0]])
            lo = np.minimum(lo, Z.min(axis=0))
            hi = np.maximum(hi, Z.max(axis=0))
        return lo, hi

    def compute(self, X, out):
        self._vectors.compute(self._rows(X), out, _signs, self.thresholds, self.scales)

    def own_steps(self):
        products = told.linear(self.directions)
        return products, *told.rounded(self.dtype), told.Sign(self.thresholds)


class StumpMap(FeatureMap):
    """phi(x) = sign(x_j - a), column j with probability proportional to its range, a ~ U[lo_j,
    hi_j].

    Estimates 1 - 2 ||x - y||_1 / sum(hi - lo), x and y clipped to [lo, hi] = params["lo"],
    params["hi"] (docs/papers.md).
    """

    kernels = (Stump(),)
    parts = {
        "thresholds": Array("f", "features"),
        "columns": Array("i", "features", places="inputs"),
    }
    thresholds = MapArray()
    columns = MapArray()

    @classmethod
    def draw(cls, name, n_inputs, start, stop, seed, params, variant):
        lo = np.asarray(params["lo"], float)
        hi = np.asarray(params["hi"], float)
        width = hi - lo
        edges = np.cumsum(width)
        where = uniform_numbers(seed, COLUMN, start, stop) * edges[-1]
        columns = np.minimum(np.searchsorted(edges, where, side="right"), n_inputs - 1)
        shares = uniform_numbers(seed, THRESHOLD, start, stop)
        thresholds = lo[columns] + shares * width[columns]
        return {"thresholds": thresholds, "columns": columns.astype(np.int64)}

    def compute(self, X, out):
        def part(rows, some):
            dense = np.ascontiguousarray(as_array(some), dtype=self.dtype)
            _stumps(dense, self.columns, self.thresholds, out[rows])

        each_part(X, self.n_features, part, out.size)

    def own_steps(self):
        chosen = told.Select(self.columns)
        return chosen, *told.rounded(self.dtype), told.Sign(self.thresholds)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _signs(values, inputs, counts, shifts, W, sums, thresholds, scales, out):
    """out <- +scales if packed rows times W, in the map's type, reach the thresholds, else
    -scales.
    """
    n, columns = out.shape
    totals = np.empty((4, BLOCK))
    for low in range(0, columns, BLOCK):
        high = min(low + BLOCK, columns)
        for g in range(len(counts)):
            rows = sum_group(g, n, values, inputs, counts, shifts, W, sums, low, high, totals)
            for r in range(rows):
                _sign(totals[r], thresholds[low:high], scales[low:high], out[4 * g + r, low:high])


@njit(cache=True, nogil=True)
def _sign(products, thresholds, scales, out):
    for j in range(len(out)):
        product = thresholds.dtype.type(products[j])
        out[j] = scales[j] if product >= thresholds[j] else -scales[j]


@njit(cache=True, nogil=True)
def _stumps(X, columns, thresholds, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            x = X[i, columns[j]]
            out[i, j] = 1.0 if x >= thresholds[j] else -1.0


# ----------------------------------------------------------------------
# Arc-cosine features of order 0, 1 and 2: one hidden layer of threshold, ramp or squared-ramp units
# (Cho and Saul 2009).
#
# phi(x) = sqrt2 H(w.x) (w.x)^order with w ~ N(0, I) and H(t) = 1 for t > 0, else 0. The mean of
# phi(x) phi(y) is ||x||^order ||y||^order J(theta) / pi, theta the angle between x and y, J as in
# `angular`; a row of zeros has features zero. From order 1 on the features are unbounded, so the
# theory of Sinha and Duchi (2016), for |phi| <= 1, does not apply.

_SQRT2 = math.sqrt(2)


class ArcCosineMap(FeatureMap):
    """arccosine-0, arccosine-1, arccosine-2: sqrt2 H(w.x) (w.x)^order."""

    kernels = tuple(ArcCosine(order) for order in (0, 1, 2))
    parts = {"directions": Array("f", "inputs features")}
    directions = MapArray()

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
        products = told.linear(self.directions)
        root = told.scaled(_SQRT2, self.n_features)
        return products, *(told.Function(name) for name in units), root


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
