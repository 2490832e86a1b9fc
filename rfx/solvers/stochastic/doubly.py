"""Doubly stochastic gradients (Dai et al. 2014, algorithms 1 and 2): random rows and random
features in every step.

The objective is E L(f(x), y) + nu/2 ||f||^2, a mean over rows. A step uses a batch of rows, a new
block of features, and the function so far:

    coef_block = -gamma_t / (block n) sum over the batch of L'(f(x), y) phi_block(x),
    all others *= 1 - gamma_t nu,

which for one row and one feature is exactly algorithm 1. f = sum_j coef_j phi_j is algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx.counters import uniforms
from rfx.errors import UsageError
from rfx.losses import times
from rfx.solvers.stochastic.expansion import Expansion, HeldFeatures, cross
from rfx.solvers.stochastic.precondition import solve_covariance
from rfx.solvers.stochastic.steps import GradientSolver

if TYPE_CHECKING:
    from rfx.features.growing import GrowingMap
    from rfx.losses import Loss
    from rfx.solvers.stochastic.steps import Descent
    from rfx.types import Inputs

VISIT = 77


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
        self.descent, self.blocks, self.seed = descent, blocks, seed
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
        n, e, start = len(features), self.expansion, self._block()
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
            gradient = self._solved(features, gradient, weights)
        e.add(start, -gamma * gradient)
        if self.kept is not None and index is not None and fresh:
            self.kept.add(features, start, index)
        e.coefficients.count(self.t)

    def _block(self) -> int:
        """The first feature of the block of this step."""
        have, size, most = self.expansion.n_features, self.blocks.size, self.blocks.most
        if most is None or have < most * size:
            return have
        return int(uniforms(self.seed, VISIT, self.t, self.t + 1, 1)[0, 0] * most) * size

    def _solved(
        self, Z: np.ndarray, gradient: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        """(C + (nu + damping) I)^-1 gradient for the unscaled features Z (n, block) of the batch
        and its rows' weights.
        """
        ridge = self.nu + self.descent.damping
        solution = solve_covariance(Z, gradient, len(Z) * self.blocks.size, ridge, weights)
        if solution is None:
            raise UsageError(
                f"--damping is {self.descent.damping:g}, below the rounding error of the features'"
                " covariance; use a larger one"
            )
        return solution

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f, or of the average over the steps (algorithm 2)."""
        return self.expansion.predictions(X)

    def state(self) -> dict[str, Any]:
        """Arrays from which `restore` continues bitwise identically."""
        arrays = self.expansion.coefficients.state() | {"t": self._counts()}
        if self.kept is not None:
            arrays |= {"known": self.kept.raw.copy(), "seen": self.kept.seen.copy()}
        return arrays

    def restore(self, state: dict[str, Any]) -> None:
        self.expansion.coefficients.restore(state)
        if self.kept is not None:
            self.kept.raw[:], self.kept.seen[:] = state["known"], state["seen"]
        self._recount(state["t"])
