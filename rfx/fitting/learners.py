"""The searches by which boosting finds a feature per step: perceptrons by a convex surrogate,
stumps exactly (Yen et al. 2014, eq. 24).

Each stores the selected features as the arrays of their map, which computes them in training and
prediction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from rfx.counters import uniforms
from rfx.features import MAPS, FeatureMap
from rfx.losses import SmoothLoss
from rfx.solvers.stumps import StumpSearch
from rfx.solvers.surrogate import fit_linear

# A stream from which no map draws its own numbers.
HALVES = 32
# Thresholds this many times farther than the farthest training row define constants.
FARTHEST = 4.0


class Learner(ABC):
    """The features found for one output, among the random features of a kernel; params: that
    kernel's.

    X: (n, d) scaled rows in the type of the features.
    """

    kernel = ""

    def __init__(self, X: np.ndarray, params: dict[str, Any]) -> None:
        self.X, self.params = X, params
        self._last: Any = None
        self.found = self._map(**self._nothing(X))

    def _nothing(self, X: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of no features."""
        parts = MAPS[self.kernel].parts
        sizes = {"inputs": X.shape[1], "features": 0}
        kinds: dict[str, np.dtype] = {"f": X.dtype, "i": np.dtype(np.int64)}
        return {
            name: np.empty([sizes[axis] for axis in part.axes.split()], kinds[part.kind])
            for name, part in parts.items()
        }

    def _map(self, **arrays: np.ndarray) -> FeatureMap:
        made: FeatureMap = MAPS[self.kernel](self.kernel, self.X.shape[1], self.params, arrays)
        return made

    def _signs(self, features: FeatureMap) -> np.ndarray:
        """(n, k) int8 values of the features just found."""
        self._last = features
        return np.where(features.transform(self.X) > 0, 1, -1).astype(np.int8)

    @abstractmethod
    def find(self, u: np.ndarray) -> tuple[np.ndarray, float | None]:
        """(signs (n, k) int8 of the features of this step, the largest |sum_n u_n phi(x_n)| of all
        features, None if unknown).
        """

    def keep(self, which: Sequence[int | np.integer[Any]]) -> None:
        """Add these features, given by their numbers among the last found."""
        new = self._last.select(np.asarray(which))
        self.found = self._map(
            **{
                name: np.concatenate([values, new.arrays[name]], axis=-1)
                for name, values in self.found.arrays.items()
            }
        )


class Perceptrons(Learner):
    """sign(theta.x - a) with |theta| = 1, fitted to pseudo-labels with a weighted loss (see
    rfx.solvers.surrogate).

    The first feature of a step is fitted to all rows; further ones, if `count` exceeds one, to
    random halves of the rows, by seed. exact: the threshold is the best for the fitted direction,
    else the fit's own.
    """

    kernel = "perceptron"

    def __init__(
        self,
        X: np.ndarray,
        params: dict[str, Any],
        loss: SmoothLoss,
        exact: bool,
        count: int,
        seed: int,
    ) -> None:
        super().__init__(X, params)
        self.loss, self.exact, self.count, self.seed, self._halves = loss, exact, count, seed, 0

    def find(self, u: np.ndarray) -> tuple[np.ndarray, None]:
        """(signs (n, k) int8, None): the features of this step."""
        found = [self._fitted(u, u)]
        for _ in range(self.count - 1):
            half = uniforms(self.seed, HALVES, self._halves, self._halves + 1, len(u))[0] < 0.5
            found.append(self._fitted(u * half, u))
            self._halves += 1
        directions, thresholds = (
            np.array([theta for theta, _ in found]).T,
            np.array([a for _, a in found]),
        )
        arrays = {"directions": directions, "thresholds": thresholds, "scales": np.ones(len(found))}
        return self._signs(
            self._map(
                **{name: np.ascontiguousarray(part, self.X.dtype) for name, part in arrays.items()}
            )
        ), None

    def _fitted(self, part: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
        """(direction of length 1, threshold) of the classifier of `part` of u; a constant if no row
        can be on the other side.
        """
        theta, b = fit_linear(self.X, part, self.loss)
        size, far = float(np.linalg.norm(theta)), FARTHEST * self.params["radius"]
        if size and self.exact:
            theta = theta / size
            along = self.X @ theta.astype(self.X.dtype)
            return theta, StumpSearch(along[:, None]).best(u)[0][0]
        if abs(b) < far * size:
            return theta / size, -b / size
        return np.eye(len(theta))[0], -far


class Stumps(Learner):
    """sign(x_j - a): the best feature of each input, and of these the `count` best."""

    kernel = "stump"

    def __init__(self, X: np.ndarray, params: dict[str, Any], count: int) -> None:
        super().__init__(X, params)
        self.search, self.count = StumpSearch(X), count

    def find(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        """(signs (n, k) int8, the largest |sum_n u_n phi(x_n)| over all stumps)."""
        thresholds, sums = self.search.best(u)
        best = np.argsort(-np.abs(sums), kind="stable")[: self.count]
        return self._signs(self._map(thresholds=thresholds[best], columns=best)), float(
            np.abs(sums).max()
        )
