"""Features on an accelerator: what ridge regression and predictions need of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, cast

import numpy as np

from rfx import device
from rfx.losses import Loss
from rfx.operators.factors import Factor, choose_factor
from rfx.operators.matrix import Matrix
from rfx.types import DeviceArray, Inputs


class DeviceFeatures(Protocol):
    """A feature map, which has `on_device` if it may be computed there (see `FeatureMap`)."""

    @property
    def n_features(self) -> int:
        """D."""


class DeviceMatrix:
    """Features of N rows, each times a factor, recomputed tile by tile at every use.

    compute: maps rows (n, d) on the device to features (n, D) there. X: (N, d). factors: (N,).
    """

    computed = False

    def __init__(
        self,
        accelerator: device.Accelerator,
        compute: Callable[[DeviceArray], DeviceArray],
        X: np.ndarray,
        n_features: int,
        factors: np.ndarray,
    ) -> None:
        self.accelerator = accelerator
        self.compute = compute
        self.X = X
        self.factors = factors
        self.shape = (len(X), n_features)
        self.dtype = np.dtype(np.float64)

    @classmethod
    def of(cls, feature_map: DeviceFeatures, X: Inputs, scale: float = 1.0) -> DeviceMatrix | None:
        """scale * feature_map(X) on the accelerator in use; None if there is none, or none for the
        map.
        """
        accelerator = device.current()
        if accelerator is None or not hasattr(feature_map, "on_device"):
            return None
        placed = feature_map.on_device(accelerator, X)
        if placed is None:
            return None
        compute, rows = placed
        factors = np.full(X.shape[0], float(scale))
        return cls(accelerator, compute, rows, feature_map.n_features, factors)

    def scaled(self, factors: np.ndarray) -> DeviceMatrix:
        """The matrix with its rows times factors (N,)."""
        inner = self.accelerator, self.compute, self.X, self.shape[1]
        return DeviceMatrix(*inner, self.factors * factors)

    def tiles(self) -> Iterator[tuple[slice, DeviceArray]]:
        """(rows, their features on the device) for all rows."""
        put = self.accelerator.put
        X = put(self.X)
        factors = put(self.factors)
        for rows in device.tiles(*self.shape):
            features = self.compute(X[rows, :])
            yield rows, features * factors[rows][:, None]

    def row_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """(rows, their features) for all rows."""
        return ((rows, self.accelerator.get(Z)) for rows, Z in self.tiles())

    def matvec(self, W: np.ndarray) -> np.ndarray:
        """Z W: (D,) or (D, k) -> (N,) or (N, k)."""
        weights = self.accelerator.put(W)
        get = self.accelerator.get
        # with no rows there are no parts
        parts = [np.zeros((0, *W.shape[1:]))]
        parts += [get(Z @ weights) for _, Z in self.tiles()]
        return np.concatenate(parts)

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        """Z'U: (N,) or (N, k) -> (D,) or (D, k)."""
        put = self.accelerator.put
        return self._summed(U.shape[1:], lambda rows, Z: put(U[rows]))

    def normal(self, P: np.ndarray) -> np.ndarray:
        """Z'Z P for P (D,) or (D, k)."""
        weights = self.accelerator.put(P)
        return self._summed(P.shape[1:], lambda rows, Z: Z @ weights)

    def loss_pass(
        self, W: np.ndarray, loss: Loss, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `Matrix.loss_pass`."""
        scores = np.empty((self.shape[0], *W.shape[1:]))
        weights = self.accelerator.put(W)

        def derivative(rows: slice, Z: DeviceArray) -> DeviceArray:
            scores[rows] = self.accelerator.get(Z @ weights)
            return self.accelerator.put(loss.derivative(scores[rows], y[rows]))

        gradient = self._summed(W.shape[1:], derivative)
        return scores, loss.value(scores, y).sum(axis=0), gradient

    def _summed(
        self, outputs: tuple[int, ...], right: Callable[[slice, DeviceArray], DeviceArray]
    ) -> np.ndarray:
        """The sum of Z' right(rows, Z) over the tiles Z."""
        total = np.zeros((self.shape[1], *outputs))
        for rows, Z in self.tiles():
            total += self.accelerator.get(Z.T @ right(rows, Z))
        return total


class DeviceFactor(Factor):
    """With the D x D factor on the accelerator."""

    def __init__(self, Z: DeviceMatrix) -> None:
        super().__init__(cast(Matrix, Z))
        accelerator = Z.accelerator
        size = Z.shape[1]
        xp = accelerator.xp
        G = xp.zeros((size, size), dtype=xp.float64, device=accelerator.device)
        for _, part in Z.tiles():
            device.add_gram(G, part if accelerator.double else xp.astype(part, xp.float32))
        self.values = device.Values(accelerator, G)
        diagonal = accelerator.get(xp.linalg.diagonal(G))
        largest = float(diagonal.max(initial=0.0))
        rounding = float(np.finfo(np.float64).eps) * size
        self.floor = rounding * max(largest, 1e-300)

    def prepare(self, lam: float) -> DeviceFactor:
        """A lambda below the rounding of the Gram matrix is increased."""
        shift = max(lam, self.floor)
        while True:
            try:
                self.factor = self.values.factored(shift, np.float64)
                return self
            except np.linalg.LinAlgError:
                shift *= 8

    def __call__(self, r: np.ndarray) -> np.ndarray:
        return self.factor.solve(r)


choose_factor.register(DeviceMatrix, lambda Z, max_memory_mb, lam: DeviceFactor(Z))
