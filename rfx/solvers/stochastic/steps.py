"""Solvers by stochastic gradients: the frame of a step, step sizes, the requirements of the
theorems, and coefficients with a common scale and their average.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx.errors import UsageError
from rfx.losses import times

if TYPE_CHECKING:
    from rfx.losses import Loss
    from rfx.types import Inputs

# The addition of the authors' program to the covariance of a block, besides nu, to make it
# invertible.
DAMPING = 1e-7


@dataclass(frozen=True)
class Steps:
    """gamma_t for t = 1, 2, …

    theorem: theta / (t + t0), which converges at the rate O(1/t) for theta nu in [1, 2] (Dai et al.
    2014, theorem 4, with t0 = 0; a shift does not change the rate). root: theta / sqrt(t + t0)
    (Kivinen, Smola and Williamson 2004). decay: step0 / (1 + step1 t), as in the authors' program.
    constant: step0. normalized: step0 over the root mean square of the loss's derivatives on the
    batch, but at most 1. Each step then adds a constant amount to f. The noise of a step of random
    features is proportional to its size times that of the derivatives; among all sequences of as
    many steps with the same sum, this one adds the least noise, as far as f depends on their sum.
    """

    kind: str = "theorem"
    nu: float = 0.0
    theta: float | None = None
    t0: float = 0.0
    step0: float = 1.0
    step1: float = 1e-4

    def __post_init__(self) -> None:
        """UsageError for theta nu outside [1, 2] in a theorem, and for a step that would flip the
        sign of f.
        """
        if self.kind == "theorem":
            if self.theta is None:
                raise UsageError("--theta has no default without --nu; set one of them")
            product = self.theta * self.nu
            if not 1 - 1e-9 <= product <= 2 + 1e-9:
                raise UsageError(
                    f"--theta {self.theta:g} times --nu {self.nu:g} is {product:g}, but steps theta"
                    " / (t + t0) need a product from 1 to 2: below, f converges more slowly than"
                    " 1/t, and above, the factor 1 - theta nu / t of the early steps is negative;"
                    " use theta between 1/nu and 2/nu, or --step constant or decay"
                )
        # the first step has nothing to decay
        if self(2) * self.nu > 1 + 1e-12:
            raise UsageError(
                f"the second step, {self(2):g}, times --nu {self.nu:g} is above 1, which would flip"
                " the sign of f; reduce one of them"
            )

    def __call__(self, t: int, derivatives: np.ndarray | None = None) -> float:
        """gamma_t; derivatives: (n, outputs) the loss's on the batch, without which a normalized
        step has its maximum length.
        """
        if self.kind == "normalized":
            size = 0.0
            if derivatives is not None:
                size = math.sqrt(float(np.square(derivatives).sum()) / len(derivatives))
            return self.step0 / max(size, self.step0)
        if self.theta is not None and self.kind in ("theorem", "root"):
            return self.theta / (t + self.t0 if self.kind == "theorem" else math.sqrt(t + self.t0))
        return self.step0 / (1 + self.step1 * t) if self.kind == "decay" else self.step0


@dataclass(frozen=True)
class Descent:
    """Settings of learning a function by stochastic gradients.

    Parameters
    ----------
    steps : Steps
    precondition : bool
        Multiply the gradient of a step by (C + nu I)^-1, C the covariance of its features on the
        batch.
    damping : float
        Added to nu there, so that C of random features is invertible.
    averaging : {"none", "uniform", "linear"}
        The predicting function: the last one, the mean over all steps, or that with weight t.
    """

    steps: Steps
    precondition: bool = False
    damping: float = DAMPING
    averaging: str = "none"


def averaging_weight(averaging: str, t: int) -> float:
    """The weight of step t in the predicting function's average; 0 without one."""
    return {"none": 0.0, "uniform": 1.0, "linear": float(t)}[averaging]


class GradientSolver(ABC):
    """f and its training steps, for E L(f(x), y) + nu/2 ||f||^2, a mean over rows.

    loss: of rfx.losses, for n_outputs predictions a row. nu: regularisation of the mean loss.
    """

    def __init__(self, loss: Loss, nu: float) -> None:
        self.loss, self.nu = loss, float(nu)
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
        set, if f or features are stored. weights: (n,) factors of their losses, None for ones. A
        batch smaller than the largest so far makes a proportional step, so that all rows count
        equally.
        """
        self.t += 1
        F, features = self._evaluated(X, index)
        self.largest = max(self.largest, len(F))
        self._move(features, self.loss.derivative(F, Y), index, weights)
        return float(times(self.loss.value(F, Y), weights).sum() / len(F))

    @abstractmethod
    def _evaluated(self, X: Inputs, index: np.ndarray | None) -> tuple[np.ndarray, Any]:
        """The values F (n, n_outputs) of the last f, and what `_move` needs besides."""

    @abstractmethod
    def _move(
        self,
        features: Any,
        derivatives: np.ndarray,
        index: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> None:
        """Change f by the derivatives (n, n_outputs) of the unweighted losses."""

    def _counts(self) -> np.ndarray:
        return np.array([self.t, self.largest])

    def _recount(self, counts: np.ndarray) -> None:
        self.t, self.largest = (int(value) for value in counts)


class Coefficients:
    """Coefficients (n, n_outputs), float64, of a growing number of functions with a common scale:
    f = scale * sum_j raw_j phi_j.

    A step of a stochastic gradient multiplies all earlier coefficients by 1 - gamma nu; here only
    `scale` is multiplied. The average over all steps is stored similarly: with S the weighted sum
    of the scales so far, the sum of f over the steps is S raw - before, where `before` contains,
    for every change of raw, the change times the S of its time. averaging: see `Descent`. The scale
    is moved into the coefficients below `smallest`: an average is a difference of numbers as large
    as 1/scale.
    """

    def __init__(self, n_outputs: int, averaging: str = "none", smallest: float = 1e-4) -> None:
        self.averaging, self.smallest = averaging, smallest
        self.n, self.scale, self.sum, self.weight = 0, 1.0, 0.0, 0.0
        self._raw, self._before = np.zeros((1024, n_outputs)), np.zeros((1024, n_outputs))

    @property
    def raw(self) -> np.ndarray:
        """(n, n_outputs) those of the last function, without the scale."""
        return self._raw[: self.n]

    @property
    def predicting(self) -> np.ndarray:
        """(n, n_outputs) those of the predicting function: the last one, or the average."""
        if not self.weight:
            return self.scale * self.raw
        return (self.sum * self.raw - self._before[: self.n]) / self.weight

    def decay(self, factor: float) -> float:
        """Multiply every coefficient by a factor; returns the scale that moved into the
        coefficients, 1 if it did not.
        """
        self.scale *= factor
        if abs(self.scale) >= self.smallest:
            return 1.0
        moved, self.scale = self.scale, 1.0
        self._before[: self.n] -= self.sum * self.raw
        self.sum = 0.0
        self._raw[: self.n] *= moved
        return moved

    def add(self, start: int, change: np.ndarray) -> None:
        """Coefficients from `start` on += change (count, n_outputs); new ones if `start` is the
        end.
        """
        stop = start + len(change)
        self._reserve(stop)
        change = change / self.scale
        self._raw[start:stop] += change
        self._before[start:stop] += self.sum * change
        self.n = max(self.n, stop)

    def _reserve(self, count: int) -> None:
        if count > len(self._raw):
            more = np.zeros((max(count, 2 * len(self._raw)) - len(self._raw), self._raw.shape[1]))
            self._raw = np.concatenate([self._raw, more])
            self._before = np.concatenate([self._before, more])

    def count(self, t: int) -> None:
        """End step t: its function enters the average."""
        weight = averaging_weight(self.averaging, t)
        self.sum += weight * self.scale
        self.weight += weight

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that `restore` takes."""
        scales = np.array([self.scale, self.sum, self.weight])
        arrays = {"coef": self.raw.copy(), "scales": scales}
        if self.averaging != "none":
            arrays["before"] = self._before[: self.n].copy()
        return arrays

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue bitwise identically from another's `state`."""
        self.n = len(state["coef"])
        self._reserve(self.n)
        self._raw[: self.n] = state["coef"]
        if self.averaging != "none":
            self._before[: self.n] = state["before"]
        self.scale, self.sum, self.weight = (float(value) for value in state["scales"])
