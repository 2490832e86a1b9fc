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
from rfx.solvers.stochastic.expansion import Expansion, cross
from rfx.solvers.stochastic.held import Held
from rfx.solvers.stochastic.precondition import solve_covariance

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

    Raises
    ------
    UsageError
        For stored rows without reused blocks.
    """

    size: int = 1
    most: int | None = None
    keep_rows: int | None = None
    hold_rows: int | None = None

    def __post_init__(self) -> None:
        if self.hold_rows is not None and self.most is None:
            raise UsageError(
                f"hold_rows is {self.hold_rows}, which requires reused blocks; also set the maximum"
                " number of blocks"
            )


class DoublySGD:
    """f and its training steps.

    Parameters
    ----------
    growing : GrowingMap
        Its piece size is a multiple of the block size.
    n_outputs : int
    loss : Loss
        Of `rfx.losses`, for n_outputs predictions a row.
    nu : float
        Regularisation of the mean loss.
    descent : Descent
        With preconditioning, C is the covariance of the block's features, scaled by 1/sqrt(block),
        as in the authors' program; a reused block is then regularised alone, by block coordinates.
    blocks : Blocks
    seed : int
        For reused blocks.

    Raises
    ------
    UsageError
        If the map's pieces are not a multiple of blocks.
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
        if growing.piece % blocks.size:
            raise UsageError(
                f"pieces of {growing.piece} features are not a multiple of blocks of {blocks.size}"
            )
        self.loss, self.nu, self.descent, self.blocks = loss, float(nu), descent, blocks
        self.seed = seed
        self.expansion = Expansion(growing, n_outputs, descent.averaging)
        self.known = None if blocks.keep_rows is None else self.expansion.keep(blocks.keep_rows)
        self.held = None
        if blocks.hold_rows is not None and blocks.most is not None:
            self.held = Held(growing, blocks.hold_rows, blocks.most * blocks.size)
        self.t, self.largest = 0, 0

    def step(
        self,
        X: Inputs,
        Y: np.ndarray,
        index: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> float:
        """One step on the rows X (n, d) and encoded targets Y (n, n_outputs); returns the batch's
        mean loss before it.

        Losses of several outputs of an elementwise loss are summed. index: the rows' numbers in the
        set, if f is stored. weights: (n,) factors of their losses, None for ones. A batch smaller
        than the largest so far makes a proportional step, so that all rows count equally.
        """
        t, e = self.t + 1, self.expansion
        start = self._block(t)
        held = self.held if index is not None else None
        if self.known is None:
            F = e.values(X, held, index)
        else:
            assert index is not None  # with which f is stored
            F = self.known.values(X, index)
        stop = start + self.blocks.size
        Z = (
            e.transform(e.map.sampled(start, stop), X)
            if held is None or index is None
            else held.features(X, index, start, stop)
        )
        self.largest = max(self.largest, len(F))
        derivatives = times(self.loss.derivative(F, Y), weights)
        gamma = self.descent.steps(t, derivatives) * len(F) / self.largest
        gradient = cross(Z, derivatives) / (len(F) * self.blocks.size)
        fresh = start == e.n_features
        if not self.descent.precondition:
            self._decay(gamma)
            e.add(start, -gamma * gradient)
        elif fresh:
            self._decay(gamma)
            e.add(start, -gamma * self._solve(Z, gradient, weights))
        else:
            gradient += self.nu * e.last(start, stop)
            e.add(start, -gamma * self._solve(Z, gradient, weights))
        if self.known is not None and index is not None and fresh:
            self.known.add(Z, start, index)
        self.t = t
        e.count(t)
        return float(times(self.loss.value(F, Y), weights).sum() / len(F))

    def _decay(self, gamma: float) -> None:
        # step 1 has nothing to decay, and 1 - gamma nu may be negative there
        if self.nu and self.expansion.n_features:
            self.expansion.decay(1.0 - gamma * self.nu)

    def _block(self, t: int) -> int:
        """The first feature of the block of step t."""
        have, size, most = self.expansion.n_features, self.blocks.size, self.blocks.most
        if most is None or have < most * size:
            return have
        return int(uniforms(self.seed, VISIT, t, t + 1, 1)[0, 0] * most) * size

    def _solve(self, Z: np.ndarray, gradient: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """(C + (nu + damping) I)^-1 gradient for the unscaled features Z (n, block) of the batch
        and its rows' weights.
        """
        ridge = self.nu + self.descent.damping
        found = solve_covariance(Z, gradient, len(Z) * self.blocks.size, ridge, weights)
        if found is None:
            raise UsageError(
                f"--damping is {self.descent.damping:g}, below the rounding error of the features'"
                " covariance; use a larger one"
            )
        return found

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f, or of the average over the steps (algorithm 2)."""
        return self.expansion.predictions(X)

    def state(self) -> dict[str, Any]:
        """Arrays from which `restore` continues bitwise identically."""
        known = (
            {}
            if self.known is None
            else {"known": self.known.raw.copy(), "seen": self.known.seen.copy()}
        )
        return self.expansion.state() | known | {"t": np.array([self.t, self.largest])}

    def restore(self, state: dict[str, Any]) -> None:
        self.expansion.restore(state)
        if self.known is not None:
            self.known.raw[:], self.known.seen[:] = state["known"], state["seen"]
        self.t, self.largest = (int(value) for value in state["t"])
