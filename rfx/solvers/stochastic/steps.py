"""Step sizes of stochastic gradients, the requirements of the theorems, and further settings of a
descent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfx.errors import UsageError

AVERAGING = ("none", "uniform", "linear")
# The addition of the authors' program to the covariance of a block, besides nu, to make it
# invertible.
DAMPING = 1e-7
KINDS = ("theorem", "root", "decay", "constant", "normalized")


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
        """UsageError for another kind, for theta nu outside [1, 2], and for a step that would flip
        the sign of f.
        """
        if self.kind not in KINDS:
            raise UsageError(f"--step is {self.kind!r}; choose one of {', '.join(KINDS)}")
        if self.kind in ("theorem", "root"):
            if self.theta is None or not (math.isfinite(self.theta) and self.theta > 0):
                raise UsageError(
                    f"--theta is {self.theta}; it must be a number above 0, and it has no default"
                    " without --nu"
                )
            if not self.t0 >= 0:
                raise UsageError(f"--t0 is {self.t0}; it must be 0 or more")
        elif not (self.step0 > 0 and self.step1 >= 0):
            raise UsageError(
                f"--step0 is {self.step0:g} and --step1 {self.step1:g}; the first must be above 0,"
                " the second 0 or more"
            )
        self._check_theorem()
        # the first step has nothing to decay
        if self(2) * self.nu > 1 + 1e-12:
            raise UsageError(
                f"the second step, {self(2):g}, times --nu {self.nu:g} is above 1, which would flip"
                " the sign of f; reduce one of them"
            )

    def _check_theorem(self) -> None:
        if self.kind != "theorem" or self.theta is None:
            return
        product = self.theta * self.nu
        if 1 - 1e-9 <= product <= 2 + 1e-9:
            return
        reason = (
            "below 1, f converges more slowly than 1/t, and without regularisation the theorem does"
            " not apply"
            if product < 1
            else "above 2, the factor 1 - theta nu / t of the early steps is negative"
        )
        raise UsageError(
            f"--theta {self.theta:g} times --nu {self.nu:g} is {product:g}, but steps theta / (t +"
            f" t0) need a product from 1 to 2: {reason}; use theta between 1/nu and 2/nu, or --step"
            " constant or decay"
        )

    def __call__(self, t: int, derivatives: np.ndarray | None = None) -> float:
        """gamma_t; derivatives: (n, outputs) the loss's on the batch, without which a normalized
        step has its maximum length.
        """
        if self.kind == "normalized":
            size = (
                0.0
                if derivatives is None
                else math.sqrt(float(np.square(derivatives).sum()) / len(derivatives))
            )
            return self.step0 / max(size, self.step0)
        if self.kind in ("theorem", "root"):
            assert self.theta is not None  # ensured at the start
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

    Raises
    ------
    UsageError
        For an unknown averaging.
    """

    steps: Steps
    precondition: bool = False
    damping: float = DAMPING
    averaging: str = "none"

    def __post_init__(self) -> None:
        if self.averaging not in AVERAGING:
            raise UsageError(
                f"--averaging is {self.averaging!r}; choose one of {', '.join(AVERAGING)}"
            )
