"""Pegasos on explicit features: r-pegasos on random ones, n-pegasos on Nystrom features
(Shalev-Shwartz, Singer and Srebro 2007).

w <- (1 - 1/t) w - 1/(nu t n) sum over the batch of L'(w.z, y) z, for mean L(w.z, y) + nu/2 ||w||^2;
for the hinge, if requested, followed by the projection onto ||w|| <= 1/sqrt(nu), the ball that
contains the minimum. With preconditioning, the gradient of both terms is multiplied by (C + nu
I)^-1, C the covariance of z on the batch, and by at most 1 instead of 1/(nu t): a step of 1 is
Newton's on the batch for squared loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx.errors import UsageError
from rfx.losses import times
from rfx.parallel import matmul
from rfx.solvers.stochastic.expansion import cross, explicit_values
from rfx.solvers.stochastic.precondition import solve_covariance, solve_few
from rfx.solvers.stochastic.steps import GradientSolver, averaging_weight

if TYPE_CHECKING:
    from rfx.losses import Loss
    from rfx.types import Inputs


class Pegasos(GradientSolver):
    """w (n_features, n_outputs) and its training steps.

    features: X (n, d) -> Z (n, n_features), scaled so that z.z' is the kernel. loss: of rfx.losses.
    nu: in (0, inf). precondition: multiply steps by the inverse of the batch's covariance.
    averaging: the predicting w: none (the last w), uniform (the mean over all steps) or linear
    (that with weight t).
    """

    def __init__(
        self,
        features: Callable[[Inputs], np.ndarray],
        n_features: int,
        n_outputs: int,
        loss: Loss,
        nu: float,
        project: bool = False,
        *,
        precondition: bool = False,
        averaging: str = "none",
    ) -> None:
        if not nu > 0:
            raise UsageError(f"--nu is {nu:g}; Pegasos steps are 1/(nu t), so it must be above 0")
        if project and loss.name != "hinge":
            raise UsageError(
                f"--project bounds the minimum of the hinge loss, not of {loss.name}; omit it"
            )
        super().__init__(loss, nu)
        self.features, self.project = features, project
        self.precondition, self.averaging = precondition, averaging
        self.last = np.zeros((n_features, n_outputs))
        # of the average: the weighted sum of all w, that of the weights
        self.sum, self.weight = np.zeros_like(self.last), 0.0

    def _evaluated(self, X: Inputs, index: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        Z = self.features(X)
        return matmul(Z, self.last.astype(Z.dtype)).astype(np.float64), Z

    def _move(
        self,
        features: np.ndarray,
        derivatives: np.ndarray,
        index: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> None:
        n, gradient = len(features), cross(features, times(derivatives, weights))
        if self.precondition:
            self._newton(features, gradient / n, weights)
        else:
            self.last *= 1.0 - n / self.largest / self.t
            self.last -= gradient / (self.nu * self.t * self.largest)
        if self.project:
            norms = np.linalg.norm(self.last, axis=0)
            self.last *= np.minimum(1.0, 1.0 / (np.sqrt(self.nu) * np.where(norms > 0, norms, 1.0)))
        weight = averaging_weight(self.averaging, self.t)
        if weight:
            self.sum += weight * self.last
            self.weight += weight

    def _newton(self, Z: np.ndarray, gradient: np.ndarray, weights: np.ndarray | None) -> None:
        """The preconditioned step; gradient: (n_features, n_outputs) of the batch's mean loss."""
        gamma = min(self.t**-0.5, 1.0 / (self.nu * self.t)) * len(Z) / self.largest
        solve = solve_few if len(Z) < Z.shape[1] else solve_covariance
        solution = solve(Z, gradient + self.nu * self.last, len(Z), self.nu, weights)
        if solution is None:
            raise UsageError(
                f"--nu is {self.nu:g}, below the rounding error of the features' covariance, so"
                " steps can't be preconditioned; use a larger one, or --precondition false"
            )
        self.last -= gamma * solution

    @property
    def w(self) -> np.ndarray:
        """(n_features, n_outputs) weights for prediction."""
        return self.sum / self.weight if self.weight else self.last

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values w.z(x)."""
        return explicit_values(self.features, X, self.w)

    def state(self) -> dict[str, Any]:
        """Arrays from which `restore` continues bitwise identically."""
        arrays = {"w": self.last.copy(), "t": self._counts()}
        if self.averaging != "none":
            arrays |= {"sum": self.sum.copy(), "weight": np.array([self.weight])}
        return arrays

    def restore(self, state: dict[str, Any]) -> None:
        self.last[:] = state["w"]
        if self.averaging != "none":
            self.sum[:], self.weight = state["sum"], float(state["weight"][0])
        self._recount(state["t"])
