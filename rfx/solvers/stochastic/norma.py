"""NORMA: stochastic functional gradients with the exact kernel, storing all rows (Kivinen, Smola
and Williamson 2004).

f <- (1 - gamma_t nu) f - gamma_t / n sum over the batch of L'(f(x), y) k(x, .), for E L(f(x), y) +
nu/2 ||f||^2: doubly stochastic gradients without the second approximation, and memory that grows
with the rows. Preconditioned, the sum is multiplied by (C + nu I)^-1, C the covariance of the
kernel's own features on the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.losses import times
from rfx.solvers.stochastic.precondition import solve_kernel
from rfx.solvers.stochastic.steps import Coefficients, GradientSolver

if TYPE_CHECKING:
    from rfx.losses import Loss
    from rfx.solvers.stochastic.steps import Descent
    from rfx.solvers.stochastic.support import Support
    from rfx.types import Inputs


class Norma(GradientSolver):
    """f and its training steps.

    support: receives the rows; loss, nu: see `GradientSolver`. Rows with zero gradient are not
    stored; in a preconditioned step all rows have a gradient. No kernel needs damping.
    """

    def __init__(
        self, support: Support, n_outputs: int, loss: Loss, nu: float, descent: Descent
    ) -> None:
        super().__init__(loss, nu)
        self.support, self.descent = support, descent
        # without an average the scale loses no digits
        smallest = {"smallest": 1e-100} if descent.averaging == "none" else {}
        self.coefficients = Coefficients(n_outputs, descent.averaging, **smallest)

    def _evaluated(self, X: Inputs, index: np.ndarray | None) -> tuple[np.ndarray, Inputs]:
        c = self.coefficients
        return c.scale * self.support.values(X, c.raw), X

    def _move(
        self,
        features: Inputs,
        derivatives: np.ndarray,
        index: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> None:
        c, n, weighted = self.coefficients, len(derivatives), times(derivatives, weights)
        gamma = self.descent.steps(self.t, weighted) * n / self.largest
        if self.nu and c.n:
            c.decay(1.0 - gamma * self.nu)
        if self.descent.precondition:
            weighted = self._solved(features, derivatives, weights)
        change = -gamma / n * weighted
        used = np.flatnonzero(np.any(change != 0, axis=1))
        if len(used):
            self.support.append(features[used])
            c.add(c.n, change[used])
        c.count(self.t)

    def _solved(self, X: Inputs, derivatives: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The derivatives (n, n_outputs) of a preconditioned step, times the weights."""
        s = self.support
        K = kernels.block(s.kernel, X, X, s.params, dtype=np.float64)
        solution = solve_kernel(K, derivatives, len(derivatives), self.nu, weights)
        if solution is None:
            raise UsageError(
                f"--nu is {self.nu:g}, below the rounding error of the kernel values, so steps"
                " can't be preconditioned; use a larger one, or --precondition false"
            )
        return solution

    @property
    def coef(self) -> np.ndarray:
        """(n_rows, n_outputs) coefficients of support.rows of the predicting function."""
        return self.coefficients.predicting

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of the predicting function."""
        c = self.coefficients
        if c.averaging == "none":
            return c.scale * self.support.values(X, c.raw)
        return self.support.values(X, c.predicting)

    def state(self) -> dict[str, Any]:
        """Arrays from which `restore` continues bitwise identically."""
        arrays = self.coefficients.state()
        scales = arrays.pop("scales")
        if self.coefficients.averaging != "none":
            arrays["sums"] = scales[1:]
        return arrays | {"scale": scales[:1], "t": self._counts(), "rows": self.support.rows}

    def restore(self, state: dict[str, Any]) -> None:
        self.support.append(state["rows"])
        scales = np.append(state["scale"], state.get("sums", np.zeros(2)))
        self.coefficients.restore(state | {"scales": scales})
        self._recount(state["t"])
