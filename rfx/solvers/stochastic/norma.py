"""NORMA: stochastic functional gradients with the exact kernel, storing all rows (Kivinen, Smola
and Williamson 2004).

f <- (1 - gamma_t nu) f - gamma_t / n sum over the batch of L'(f(x), y) k(x, .), for E L(f(x), y) +
nu/2 ||f||^2: doubly stochastic gradients without the second approximation, and memory that grows
with the rows. Preconditioned, the sum is multiplied by (C + nu I)^-1, C the covariance of the
kernel's own features on the batch.

The average over all steps is stored as in `Expansion`: with S the weighted sum of the scales so
far, the sum of f over the steps is S coef - before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.losses import times
from rfx.solvers.stochastic.precondition import solve_kernel
from rfx.solvers.stochastic.support import Support

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from rfx.losses import Loss
    from rfx.solvers.stochastic.steps import Descent
    from rfx.types import Inputs

# The scale is moved into the coefficients below this; earlier for an average, which is a difference
# of numbers as large as 1/scale.
_SMALLEST, _SMALLEST_AVERAGED = 1e-100, 1e-4


class Norma:
    """f and its training steps.

    kernel, params: as for rfx.kernels; loss, nu: as for DoublySGD. Rows with zero gradient are not
    stored; in a preconditioned step all rows have a gradient. No kernel needs damping.
    """

    def __init__(
        self,
        kernel: str,
        params: dict[str, Any],
        n_outputs: int,
        loss: Loss,
        nu: float,
        descent: Descent,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.support = Support(kernel, params, n_outputs, dtype)
        self.loss, self.nu, self.descent = loss, float(nu), descent
        self.t, self.largest, self.scale = 0, 0, 1.0
        # of the average: the weighted sum of the scales, that of the weights
        self.sum, self.weight = 0.0, 0.0
        self._before = np.zeros((0, n_outputs))

    def step(self, X: Inputs, Y: np.ndarray, weights: np.ndarray | None = None) -> float:
        """One step on the rows X (n, d) and targets Y (n, n_outputs), shorter for a short batch as
        in DoublySGD; returns its mean loss before.

        weights: (n,) factors of the rows' losses, None for ones.
        """
        self.t += 1
        F = self.scale * self.support.values(X)
        self.largest = max(self.largest, len(F))
        plain = self.loss.derivative(F, Y)
        derivatives = times(plain, weights)
        gamma = self.descent.steps(self.t, derivatives) * len(F) / self.largest
        if self.nu and self.support.n_rows:
            self.scale *= 1.0 - gamma * self.nu
            if abs(self.scale) < (
                _SMALLEST if self.descent.averaging == "none" else _SMALLEST_AVERAGED
            ):
                self._fold()
        if self.descent.precondition:
            derivatives = self._solved(X, plain, weights)
        change = -gamma / len(F) * derivatives
        used = np.flatnonzero(np.any(change != 0, axis=1))
        if len(used):
            self._append(X[used], change[used] / self.scale)
        self._count()
        return float(times(self.loss.value(F, Y), weights).sum() / len(F))

    @property
    def coef(self) -> np.ndarray:
        """(n_rows, n_outputs) coefficients of support.rows of the predicting function: the last
        one, or the average.
        """
        if self.descent.averaging == "none" or not self.weight:
            return self.scale * self.support.coef
        return (self.sum * self.support.coef - self._before) / self.weight

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of the predicting function."""
        if self.descent.averaging == "none":
            return self.scale * self.support.values(X)
        return self.support.values(X, self.coef)

    def state(self) -> dict[str, Any]:
        """Arrays from which `restore` continues bitwise identically."""
        counts = {"t": np.array([self.t, self.largest]), "scale": np.array([self.scale])}
        found = counts | {"rows": self.support.rows, "coef": self.support.coef.copy()}
        if self.descent.averaging == "none":
            return found
        sums = np.array([self.sum, self.weight])
        return found | {"before": self._before.copy(), "sums": sums}

    def restore(self, state: dict[str, Any]) -> None:
        self.support.append(state["rows"], state["coef"])
        self.t, self.largest = (int(value) for value in state["t"])
        self.scale = float(state["scale"][0])
        if self.descent.averaging != "none":
            self._before = state["before"].copy()
            self.sum, self.weight = (float(value) for value in state["sums"])

    # ------------------------------------------------------------------ parts of a step

    def _solved(self, X: Inputs, derivatives: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The derivatives (n, n_outputs) of a preconditioned step, times the weights."""
        s = self.support
        K = kernels.block(s.kernel, X, X, s.params, dtype=np.float64)
        found = solve_kernel(K, derivatives, len(derivatives), self.nu, weights)
        if found is None:
            raise UsageError(
                f"--nu is {self.nu:g}, below the rounding error of the kernel values, so steps"
                " can't be preconditioned; use a larger one, or --precondition false"
            )
        return found

    def _append(self, X: Inputs, coef: np.ndarray) -> None:
        self.support.append(X, coef)
        if self.descent.averaging != "none":
            self._before = np.concatenate([self._before, self.sum * coef])

    def _fold(self) -> None:
        """Move the scale into the coefficients."""
        if self.descent.averaging != "none":
            self._before -= self.sum * self.support.coef
            self.sum = 0.0
        self.support.coef[:] *= self.scale
        self.scale = 1.0

    def _count(self) -> None:
        """End the step: its function enters the average."""
        if self.descent.averaging != "none":
            weight = self.t if self.descent.averaging == "linear" else 1.0
            self.sum += weight * self.scale
            self.weight += weight
