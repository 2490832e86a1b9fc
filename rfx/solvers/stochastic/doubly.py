"""Doubly stochastic gradients (Dai et al. 2014, algorithms 1 and 2): random rows and random
features in every step.

The objective is E L(f(x), y) + nu/2 ||f||^2, a mean over rows. A step takes a batch of rows, a
block of features that f does not have yet, and the function so far:

    coef_block = -gamma_t / (block n) sum over the batch of L'(f(x), y) phi_block(x),
    all others *= 1 - gamma_t nu,

which for one row and one feature is algorithm 1 to the letter. f = sum_j coef_j phi_j is algorithm
2.
"""

from __future__ import annotations

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
    from rfx.solvers.stochastic.steps import Steps
    from rfx.types import Inputs

AVERAGING = ("none", "uniform", "linear")
# What the authors' program adds to the covariance of a block besides nu, so that it can be
# inverted.
DAMPING = 1e-7
VISIT = 77


class DoublySGD:
    """f and the steps that have made it.

    growing: a GrowingMap whose piece is a multiple of `block`. loss: of rfx.losses, for n_outputs
    predictions a row. nu: regularisation of the mean loss. steps:
    rfx.solvers.stochastic.steps.Steps.

    max_blocks: after so many fresh blocks a step revisits one of them, drawn from (seed, t), which
    is algorithm 1 with features from a finite set (the authors' program for graphics cards does
    so): a variant of the paper's, not its algorithm. precondition: the step of a block is
    multiplied by (C + (nu + damping) I)^-1, C the covariance of the block's features (scaled by
    1/sqrt(block)) on the batch, as in the authors' program; a block that is revisited is then
    regularised alone, by block coordinates. averaging: what predicts, see Expansion. keep_rows: of
    a set whose rows are met again their number; f is then kept for each, and a step computes only
    what was added since it met the row last: what a pass costs grows with the features, not with
    their square. hold_rows: of such a set their number, for blocks that are met again: their
    features are kept, a number for each row and feature (max_blocks * block of them).
    """

    def __init__(
        self,
        growing: GrowingMap,
        n_outputs: int,
        loss: Loss,
        nu: float,
        steps: Steps,
        *,
        block: int = 1,
        max_blocks: int | None = None,
        precondition: bool = False,
        damping: float = DAMPING,
        averaging: str = "none",
        keep_rows: int | None = None,
        hold_rows: int | None = None,
        seed: int = 0,
    ) -> None:
        if growing.piece % block:
            raise UsageError(
                f"pieces of {growing.piece} features don't consist of blocks of {block}"
            )
        if averaging not in AVERAGING:
            raise UsageError(f"--averaging is {averaging!r}; choose one of {', '.join(AVERAGING)}")
        if hold_rows is not None and max_blocks is None:
            raise UsageError(
                f"hold_rows is {hold_rows}, which is for blocks that are met again; give"
                " max_blocks, too"
            )
        self.expansion = Expansion(growing, n_outputs, averaging)
        self.loss, self.nu, self.steps, self.block = loss, float(nu), steps, int(block)
        self.max_blocks, self.precondition, self.damping, self.seed = (
            max_blocks,
            precondition,
            damping,
            seed,
        )
        self.known = None if keep_rows is None else self.expansion.keep(keep_rows)
        self.held = None
        if hold_rows is not None and max_blocks is not None:
            self.held = Held(growing, hold_rows, max_blocks * block)
        self.t, self.largest = 0, 0

    def step(
        self,
        X: Inputs,
        Y: np.ndarray,
        index: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> float:
        """One step on the rows X (n, d) and encoded targets Y (n, n_outputs); the batch's mean loss
        before it.

        For several outputs of an elementwise loss their losses are summed. index: the rows' numbers
        in the set, where f is kept. weights: (n,) what their losses are multiplied by, None for
        ones. A batch of fewer rows than the largest so far makes that share of a step, so that all
        rows count alike.
        """
        t, e = self.t + 1, self.expansion
        start = self._block(t)
        held = self.held if index is not None else None
        if self.known is None:
            F = e.values(X, held, index)
        else:
            assert index is not None  # by which f is kept
            F = self.known.values(X, index)
        stop = start + self.block
        Z = (
            e.transform(e.map.sampled(start, stop), X)
            if held is None or index is None
            else held.features(X, index, start, stop)
        )
        self.largest = max(self.largest, len(F))
        derivatives = times(self.loss.derivative(F, Y), weights)
        gamma = self.steps(t, derivatives) * len(F) / self.largest
        gradient = cross(Z, derivatives) / (len(F) * self.block)
        fresh = start == e.n_features
        if not self.precondition:
            self._decay(gamma)
            e.add(start, -gamma * gradient)
        elif fresh:
            self._decay(gamma)
            e.add(start, -gamma * self._solve(Z, gradient))
        else:
            e.add(
                start,
                -gamma * self._solve(Z, gradient + self.nu * e.last(start, start + self.block)),
            )
        if self.known is not None and index is not None and fresh:
            self.known.add(Z, start, index)
        self.t = t
        e.count(t)
        return float(times(self.loss.value(F, Y), weights).sum() / len(F))

    def _decay(self, gamma: float) -> None:
        # step 1 has nothing to decay, and 1 - gamma nu may be below zero there
        if self.nu and self.expansion.n_features:
            self.expansion.decay(1.0 - gamma * self.nu)

    def _block(self, t: int) -> int:
        """The first feature of the block of step t."""
        have = self.expansion.n_features
        if self.max_blocks is None or have < self.max_blocks * self.block:
            return have
        return int(uniforms(self.seed, VISIT, t, t + 1, 1)[0, 0] * self.max_blocks) * self.block

    def _solve(self, Z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """(C + (nu + damping) I)^-1 gradient for the unscaled features Z (n, block) of the
        batch.
        """
        ridge = self.nu + self.damping
        found = solve_covariance(Z, gradient, len(Z) * self.block, ridge)
        if found is None:
            raise UsageError(
                f"--damping is {self.damping:g}, below the rounding of the features' covariance;"
                " choose a larger one"
            )
        return found

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f, or of the average over the steps (algorithm 2)."""
        return self.expansion.predictions(X)

    def state(self) -> dict[str, Any]:
        """Arrays from which `restore` goes on to the same bits."""
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
