"""Doubly stochastic gradients (Dai et al. 2014, algorithms 1 and 2): random rows and random
features in every step.

The objective is E L(f(x), y) + nu/2 ||f||^2, a mean over rows. A step uses a batch of rows, a new
block of features, and the function so far:

    coef_block = -gamma_t / (block n) sum over the batch of L'(f(x), y) phi_block(x),
    all others *= 1 - gamma_t nu,

which for one row and one feature is exactly algorithm 1. f = sum_j coef_j phi_j is algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from rfx.counters import uniforms
from rfx.features.base import GrowingMap
from rfx.losses import Loss, times
from rfx.operators.blocks import ranges
from rfx.operators.mapped import MapMatrix
from rfx.parallel import matmul
from rfx.solvers.stochastic.gradient import (
    Coefficients,
    Descent,
    GradientSolver,
    cross,
    solve_covariance,
)
from rfx.types import Arrays, Inputs

# Rows of a large set for which the features of a piece are computed together.
ROWS = 4096
VISIT = 77


class Expansion:
    """Coefficients of the features of a GrowingMap, and values of the function.

    n_held: number of rows of a set whose features are cached (see `HeldFeatures`); averaging: see
    `Descent`.
    """

    def __init__(self, growing: GrowingMap, n_outputs: int, averaging: str = "none") -> None:
        self.map = growing
        self.n_outputs = n_outputs
        self.coefficients = Coefficients(n_outputs, averaging)
        self.held: HeldFeatures | None = None
        self._kept: list[KeptValues] = []

    @property
    def n_features(self) -> int:
        return self.coefficients.n

    def decay(self, factor: float) -> None:
        """Multiply every coefficient by a factor."""
        moved = self.coefficients.decay(factor)
        if moved != 1.0:
            for kept in self._kept:
                kept.raw *= moved

    def add(self, start: int, change: np.ndarray) -> None:
        """Coefficients from `start` on += change (count, n_outputs); new ones if `start` is the
        end.
        """
        if start < self.n_features:
            for kept in self._kept:
                kept.raw[:] = 0.0
                kept.seen[:] = 0
        self.coefficients.add(start, change)

    # ------------------------------------------------------------------ values

    def values(self, X: Inputs, index: np.ndarray | None = None) -> np.ndarray:
        """(n, n_outputs) float64 values of the last function; index: the rows' numbers in the set
        whose features are cached.
        """
        c = self.coefficients
        return c.scale * self.sum(X, c.raw, 0, self.n_features, index)

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of the predicting function."""
        c = self.coefficients
        if c.averaging == "none":
            return self.values(X)
        return self.sum(X, c.predicting, 0, self.n_features)

    def keep(self, n_rows: int) -> KeptValues:
        """Values for the rows of a set used again: only the features added since a row's last use
        are computed.
        """
        self._kept.append(KeptValues(self, n_rows))
        return self._kept[-1]

    def features(
        self, X: Inputs, start: int, stop: int, index: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, stop - start) features of one piece."""
        if self.held is not None and index is not None:
            return self.held.features(X, index, start, stop)
        return self.map.sampled(start, stop).transform(X)

    def sum(
        self, X: Inputs, coef: np.ndarray, start: int, stop: int, index: np.ndarray | None = None
    ) -> np.ndarray:
        """sum of coef_j phi_j(x) over the features start .. stop-1: piece by piece, and in blocks
        of rows. Distributing the pieces of small batches among threads does not help.
        """
        out = np.zeros((X.shape[0], coef.shape[1]))
        cached = self.held is not None and index is not None
        for low, high in self._pieces(start, stop):
            features = None if cached else self.map.sampled(low, high)
            if features is not None and self.n_outputs == 1 and len(out) > ROWS:
                # separately in each thread, in parts that fit into its cache
                out[:, 0] += MapMatrix(features, X).matvec(coef[low:high, 0])
                continue
            weights = coef[low:high].astype(self.map.dtype)
            for part in ranges(len(out), ROWS):
                if features is not None:
                    Z = features.transform(X[part])
                else:
                    Z = self.features(X[part], low, high, cast("np.ndarray", index)[part])
                out[part] += matmul(Z, weights)
        return out

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        while start < stop:
            high = min(stop, (start // self.map.piece + 1) * self.map.piece)
            yield start, high
            start = high


class KeptValues:
    """Values of an expansion's last function for the rows of a set, identified by their numbers:
    one number per row and output.
    """

    def __init__(self, expansion: Expansion, n_rows: int) -> None:
        self.expansion = expansion
        self.raw = np.zeros((n_rows, expansion.n_outputs))
        self.seen = np.zeros(n_rows, np.int64)

    def values(self, X: Inputs, index: np.ndarray) -> np.ndarray:
        """(n, n_outputs) float64 for the rows X (n, d), whose numbers in the set are `index`."""
        e = self.expansion
        seen = self.seen[index]
        for first in np.unique(seen[seen < e.n_features]).tolist():
            old = np.flatnonzero(seen == first)
            self.raw[index[old]] += e.sum(X[old], e.coefficients.raw, first, e.n_features)
        self.seen[index] = e.n_features
        return e.coefficients.scale * self.raw[index]

    def add(self, Z: np.ndarray, start: int, index: np.ndarray) -> None:
        """The features from `start` to the last have the values Z (n, m) for the rows `index`,
        whose values include all earlier ones.
        """
        stop = start + Z.shape[1]
        self.raw[index] += matmul(Z, self.expansion.coefficients.raw[start:stop].astype(Z.dtype))
        self.seen[index] = stop


class HeldFeatures:
    """Values of the first n_features features of a GrowingMap for n_rows rows, filled batch by
    batch: features of reused blocks are computed once.

    Memory: n_rows n_features numbers of the map's type, as far as requested. Bitwise the same as
    recomputed features.
    """

    def __init__(self, growing: GrowingMap, n_rows: int, n_features: int) -> None:
        self.map = growing
        piece = growing.piece
        widths = [min(piece, n_features - start) for start in range(0, n_features, piece)]
        self._values = [np.empty((n_rows, width), growing.dtype) for width in widths]
        # for every row, the number of a piece's features that are available, from its first on
        self._made = np.zeros((len(widths), n_rows), np.int32)

    def features(self, X: Inputs, index: np.ndarray, start: int, stop: int) -> np.ndarray:
        """(n, stop - start) values for the rows X (n, d), whose numbers in the set are `index`:
        features of one piece.
        """
        number = start // self.map.piece
        first = number * self.map.piece
        values = self._values[number]
        made = self._made[number]
        missing = np.flatnonzero(made[index] < stop - first)
        if len(missing):
            rows = index[missing]
            low = int(made[rows].min())
            features = self.map.sampled(first + low, stop)
            values[rows, low : stop - first] = features.transform(X[missing])
            made[rows] = stop - first
        return values[index, start - first : stop - first]


@dataclass(frozen=True)
class Blocks:
    """The features of steps.

    Parameters
    ----------
    size : int
        Features per step.
    most : int or None
        After this many new blocks a step reuses one of them, drawn from (seed, t), which is
        algorithm 1 with features from a finite set (like the authors' GPU program): a variant of
        the paper's algorithm.
    keep_rows : int or None
        For a set with repeated rows, their number. f is then stored for each, and a step computes
        only the additions since the row's last step: the cost of a pass is linear in the number of
        features, not quadratic.
    hold_rows : int or None
        For such a set, their number, with reused blocks: their features are cached, one number per
        row and feature (most * size of them).
    """

    size: int = 1
    most: int | None = None
    keep_rows: int | None = None
    hold_rows: int | None = None


class DoublySGD(GradientSolver):
    """f and its training steps.

    Parameters
    ----------
    growing : GrowingMap
        Its piece size is a multiple of the block size.
    n_outputs : int
    loss, nu
        See `GradientSolver`.
    descent : Descent
        With preconditioning, C is the covariance of the block's features, scaled by 1/sqrt(block),
        as in the authors' program; a reused block is then regularised alone, by block coordinates.
    blocks : Blocks
    seed : int
        For reused blocks.
    """

    def __init__(
        self,
        growing: GrowingMap,
        n_outputs: int,
        loss: Loss,
        nu: float,
        descent: Descent,
        blocks: Blocks = Blocks(),
        seed: int = 0,
    ) -> None:
        super().__init__(loss, nu)
        self.descent = descent
        self.blocks = blocks
        self.seed = seed
        self.expansion = Expansion(growing, n_outputs, descent.averaging)
        self.kept = None if blocks.keep_rows is None else self.expansion.keep(blocks.keep_rows)
        if blocks.hold_rows is not None and blocks.most is not None:
            n_held = blocks.most * blocks.size
            self.expansion.held = HeldFeatures(growing, blocks.hold_rows, n_held)

    def _evaluated(self, X: Inputs, index: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        start = self._block()
        if self.kept is not None and index is not None:
            F = self.kept.values(X, index)
        else:
            F = self.expansion.values(X, index)
        return F, self.expansion.features(X, start, start + self.blocks.size, index)

    def _move(
        self,
        features: np.ndarray,
        derivatives: np.ndarray,
        index: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> None:
        n = len(features)
        e = self.expansion
        start = self._block()
        derivatives = times(derivatives, weights)
        gamma = self.descent.steps(self.t, derivatives) * n / self.largest
        gradient = cross(features, derivatives) / (n * self.blocks.size)
        fresh = start == e.n_features
        # step 1 has nothing to decay, and 1 - gamma nu may be negative there
        if (fresh or not self.descent.precondition) and self.nu and e.n_features:
            e.decay(1.0 - gamma * self.nu)
        if self.descent.precondition:
            if not fresh:
                raw = e.coefficients.raw[start : start + self.blocks.size]
                gradient += self.nu * (e.coefficients.scale * raw)
            ridge = self.nu + self.descent.damping
            divisor = n * self.blocks.size
            gradient = solve_covariance(features, gradient, divisor, ridge, weights)
        e.add(start, -gamma * gradient)
        if self.kept is not None and index is not None and fresh:
            self.kept.add(features, start, index)
        e.coefficients.count(self.t)

    def _block(self) -> int:
        """The first feature of the block of this step."""
        have = self.expansion.n_features
        size = self.blocks.size
        most = self.blocks.most
        if most is None or have < most * size:
            return have
        return int(uniforms(self.seed, VISIT, self.t, self.t + 1, 1)[0, 0] * most) * size

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f, or of the average over the steps (algorithm 2)."""
        return self.expansion.predictions(X)

    def state(self) -> Arrays:
        """Arrays from which `restore` continues bitwise identically."""
        arrays = self.expansion.coefficients.state() | {"t": self._counts()}
        if self.kept is not None:
            arrays |= {"known": self.kept.raw.copy(), "seen": self.kept.seen.copy()}
        return arrays

    def restore(self, state: Arrays) -> None:
        self.expansion.coefficients.restore(state)
        if self.kept is not None:
            self.kept.raw[:] = state["known"]
            self.kept.seen[:] = state["seen"]
        self._recount(state["t"])
