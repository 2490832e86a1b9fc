"""NORMA: stochastic functional gradients with the exact kernel, all rows kept (Kivinen, Smola and
Williamson 2004).

f <- (1 - gamma_t nu) f - gamma_t / n sum over the batch of L'(f(x), y) k(x, .), for E L(f(x), y) +
nu/2 ||f||^2: doubly stochastic gradients without the second approximation, and memory that grows
with the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rfx.losses import times
from rfx.solvers.stochastic.support import Support

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.losses import Loss
    from rfx.solvers.stochastic.steps import Steps
    from rfx.types import Inputs

_SMALLEST = 1e-100


class Norma:
    """f and the steps that have made it.

    kernel, params: as for rfx.kernels; loss, nu, steps: as for DoublySGD. Rows without a share in
    the gradient are not kept.
    """

    def __init__(
        self,
        kernel: str,
        params: dict[str, Any],
        n_outputs: int,
        loss: Loss,
        nu: float,
        steps: Steps,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.support = Support(kernel, params, n_outputs, dtype)
        self.loss, self.nu, self.steps = loss, float(nu), steps
        self.t, self.largest, self.scale = 0, 0, 1.0

    def step(self, X: Inputs, Y: np.ndarray, weights: np.ndarray | None = None) -> float:
        """One step on the rows X (n, d) and targets Y (n, n_outputs), shorter for a short batch as
        DoublySGD's; its mean loss before.

        weights: (n,) what the rows' losses are multiplied by, None for ones.
        """
        self.t += 1
        F = self.predictions(X)
        self.largest = max(self.largest, len(F))
        derivatives = times(self.loss.derivative(F, Y), weights)
        gamma = self.steps(self.t, derivatives) * len(F) / self.largest
        if self.nu and self.support.n_rows:
            self.scale *= 1.0 - gamma * self.nu
            if abs(self.scale) < _SMALLEST:
                self.support.coef[:] *= self.scale
                self.scale = 1.0
        change = -gamma / len(F) * derivatives
        used = np.flatnonzero(np.any(change != 0, axis=1))
        if len(used):
            self.support.append(X[used], change[used] / self.scale)
        return float(times(self.loss.value(F, Y), weights).sum() / len(F))

    @property
    def coef(self) -> np.ndarray:
        """(n_rows, n_outputs) coefficients of support.rows."""
        return self.scale * self.support.coef

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f."""
        return self.scale * self.support.values(X)

    def state(self) -> dict[str, Any]:
        """Arrays from which `restore` goes on to the same bits."""
        counts = {"t": np.array([self.t, self.largest]), "scale": np.array([self.scale])}
        return counts | {"rows": self.support.rows, "coef": self.support.coef.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self.support.append(state["rows"], state["coef"])
        self.t, self.largest = (int(value) for value in state["t"])
        self.scale = float(state["scale"][0])
