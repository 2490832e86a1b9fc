"""Solvers by stochastic gradients: step sizes and the requirements of the theorems,
preconditioning, NORMA and Pegasos.

A plain gradient step converges in the directions in which features vary most, and hardly in the
others. Multiplied by (C + ridge I)^-1, C the covariance of the features on the batch, it is
Newton's step on the batch for squared loss, and uses the batch in every direction. With sample
weights, C is the weighted mean, like the gradient.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from rfx import kernels
from rfx.errors import UsageError
from rfx.losses import Loss, times
from rfx.operators.blocks import block_size, ranges
from rfx.operators.linear_algebra import factor_in_place, solve
from rfx.parallel import add_gram, matmul, one_blas_thread
from rfx.types import Arrays, Inputs, KernelParams

# Rows whose products are summed in float32.
SUMMED = 1024
# Support vectors whose kernel values are computed together.
PIECE = 2048


# The addition of the authors' program to the covariance of a block, besides nu, to make it
# invertible.
DAMPING = 1e-7


@dataclass(frozen=True)
class StepSizeSchedule:
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
    steps : StepSizeSchedule
    precondition : bool
        Multiply the gradient of a step by (C + nu I)^-1, C the covariance of its features on the
        batch.
    damping : float
        Added to nu there, so that C of random features is invertible.
    averaging : {"none", "uniform", "linear"}
        The predicting function: the last one, the mean over all steps, or that with weight t.
    """

    steps: StepSizeSchedule
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
        self.loss = loss
        self.nu = float(nu)
        self.t = 0
        self.largest = 0

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
    def _evaluated(self, X: Inputs, index: np.ndarray | None) -> tuple[np.ndarray, Inputs]:
        """The values F (n, n_outputs) of the last f, and what `_move` needs besides."""

    @abstractmethod
    def _move(
        self,
        features: Inputs,
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
        self.averaging = averaging
        self.smallest = smallest
        self.n = 0
        self.scale = 1.0
        self.sum = 0.0
        self.weight = 0.0
        self._raw = np.zeros((1024, n_outputs))
        self._before = np.zeros((1024, n_outputs))

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
        moved = self.scale
        self.scale = 1.0
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

    def state(self) -> Arrays:
        """Arrays that `restore` takes."""
        scales = np.array([self.scale, self.sum, self.weight])
        arrays = {"coef": self.raw.copy(), "scales": scales}
        if self.averaging != "none":
            arrays["before"] = self._before[: self.n].copy()
        return arrays

    def restore(self, state: Arrays) -> None:
        """Continue bitwise identically from another's `state`."""
        self.n = len(state["coef"])
        self._reserve(self.n)
        self._raw[: self.n] = state["coef"]
        if self.averaging != "none":
            self._before[: self.n] = state["before"]
        self.scale, self.sum, self.weight = (float(value) for value in state["scales"])


# ---------------------------------------------------------------------- explicit features


def explicit_values(
    features: Callable[[Inputs], np.ndarray], X: Inputs, w: np.ndarray
) -> np.ndarray:
    """(n, n_outputs) float64 values w.z(x) of features z, some megabytes of them at a time."""
    out = np.empty((X.shape[0], w.shape[1]))
    for rows in ranges(X.shape[0], block_size(len(w), np.float32)):
        Z = features(X[rows])
        out[rows] = matmul(Z, w.astype(Z.dtype))
    return out


def cross(Z: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Z'R (m, k) in float64 for features Z (n, m) and R (n, k): products in Z's type,
    summed over rows in float64.
    """
    out = np.zeros((Z.shape[1], R.shape[1]))
    for part in ranges(len(Z), SUMMED):
        out += matmul(Z[part].T, R[part].astype(Z.dtype))
    return out


def solve_covariance(
    Z: np.ndarray,
    gradient: np.ndarray,
    divisor: float,
    ridge: float,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """(Z'WZ / divisor + ridge I)^-1 gradient for features Z (n, m) and a gradient (m, k).

    weights: (n,) on the diagonal of W, None for ones. Raises UsageError if rounding leaves no
    inverse.
    """
    C = _lower_gram(Z if weights is None else Z * np.sqrt(weights)[:, None].astype(Z.dtype))
    C /= divisor
    return _solved(C, gradient, ridge)


def solve_few(
    Z: np.ndarray,
    gradient: np.ndarray,
    divisor: float,
    ridge: float,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """The result of `solve_covariance`, for fewer rows than features: ridge > 0.

    Uses (Z'Z + r I)^-1 = (I - Z' (ZZ' + r I)^-1 Z) / r, whose difference needs float64.
    """
    rows = Z.astype(np.float64)
    if weights is not None:
        rows *= np.sqrt(weights)[:, None]
    K = _lower_gram(np.ascontiguousarray(rows.T))
    with one_blas_thread():
        inner = _solved(K, rows @ gradient, divisor * ridge)
        return (gradient - rows.T @ inner) / ridge


def solve_kernel(
    K: np.ndarray,
    derivatives: np.ndarray,
    divisor: float,
    ridge: float,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """S (S K S / divisor + ridge I)^-1 S derivatives for the kernel matrix K (n, n) of a batch and
    the derivatives (n, k) of its unweighted losses.

    weights: (n,) the squares on the diagonal of S, None for ones. These are the coefficients of the
    rows in (C + ridge I)^-1 sum_i weights_i derivatives_i k(x_i, .), C the covariance of the
    kernel's own features: (Z'SSZ + r I)^-1 Z'S = Z'S (SZZ'S + r I)^-1.
    """
    C = np.array(K, np.float64, order="F")
    C /= divisor
    if weights is None:
        return _solved(C, derivatives, ridge)
    own = np.sqrt(weights)[:, None]
    C *= own
    C *= own.T
    return own * _solved(C, own * derivatives, ridge)


def _solved(C: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
    C[np.diag_indices(len(C))] += ridge
    if factor_in_place(C):
        raise UsageError(
            "--nu, or its sum with --damping, is below the rounding error of the covariance, so"
            " steps can't be preconditioned; use a larger one, or --precondition false"
        )
    with one_blas_thread():
        return solve(C, right)


def _lower_gram(Z: np.ndarray) -> np.ndarray:
    """Z'Z (m, m), Fortran order, at least its lower triangle: products in Z's type, summed over
    rows in float64.

    Bitwise the same for any number of threads.
    """
    C = np.zeros((Z.shape[1], Z.shape[1]), order="F")
    for rows in ranges(len(Z), SUMMED):
        add_gram(Z[rows], C.T)
    return C


class Pegasos(GradientSolver):
    """Pegasos on explicit features: w (n_features, n_outputs) (Shalev-Shwartz, Singer and Srebro
    2007).

    w <- (1 - 1/t) w - 1/(nu t n) sum over the batch of L'(w.z, y) z, for mean L(w.z, y) + nu/2
    ||w||^2; for the hinge, if requested, followed by the projection onto ||w|| <= 1/sqrt(nu), the
    ball that contains the minimum. With preconditioning, the gradient of both terms is multiplied
    by (C + nu I)^-1, C the covariance of z on the batch, and by at most 1 instead of 1/(nu t): a
    step of 1 is Newton's on the batch for squared loss.

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
        self.features = features
        self.project = project
        self.precondition = precondition
        self.averaging = averaging
        self.last = np.zeros((n_features, n_outputs))
        # of the average: the weighted sum of all w, that of the weights
        self.sum = np.zeros_like(self.last)
        self.weight = 0.0

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
        n = len(features)
        gradient = cross(features, times(derivatives, weights))
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
        self.last -= gamma * solution

    @property
    def w(self) -> np.ndarray:
        """(n_features, n_outputs) weights for prediction."""
        return self.sum / self.weight if self.weight else self.last

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values w.z(x)."""
        return explicit_values(self.features, X, self.w)

    def state(self) -> Arrays:
        """Arrays from which `restore` continues bitwise identically."""
        arrays = {"w": self.last.copy(), "t": self._counts()}
        if self.averaging != "none":
            arrays |= {"sum": self.sum.copy(), "weight": np.array([self.weight])}
        return arrays

    def restore(self, state: Arrays) -> None:
        self.last[:] = state["w"]
        if self.averaging != "none":
            self.sum[:] = state["sum"]
            self.weight = float(state["weight"][0])
        self._recount(state["t"])


# ---------------------------------------------------------------------- exact kernels


class Support:
    """Support vectors added a few at a time: the rows x_j of f = sum_j coef_j k(x_j, .).

    kernel, params: as for rfx.kernels. dtype: of the rows and the kernel values; coefficients and
    sums are float64. rows: (n, d) the first rows.
    """

    def __init__(
        self,
        kernel: str,
        params: KernelParams,
        dtype: DTypeLike = np.float32,
        rows: Inputs | None = None,
    ) -> None:
        self.kernel = kernel
        self.params = params
        self.dtype = np.dtype(dtype)
        self.n_rows = 0
        self._pieces: list[np.ndarray] = []
        self._prepared: list[kernels.Prepared] = []
        if rows is not None:
            self.append(rows)

    @property
    def rows(self) -> np.ndarray:
        """(n_rows, d) a copy of the rows."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros((0, 0), self.dtype)

    def append(self, X: Inputs) -> None:
        """Append rows X (n, d), array or CSR."""
        rows = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, self.dtype)
        self.n_rows += len(rows)
        while len(rows):
            if not self._pieces or len(self._pieces[-1]) == PIECE:
                self._pieces.append(rows[:0])
            room = PIECE - len(self._pieces[-1])
            self._pieces[-1] = np.concatenate([self._pieces[-1], rows[:room]])
            rows = rows[room:]
            del self._prepared[len(self._pieces) - 1 :]

    def values(self, X: Inputs, coef: np.ndarray) -> np.ndarray:
        """(n, n_outputs) float64 values of f for the rows X (n, d) and coefficients coef (n_rows,
        n_outputs).
        """
        out = np.zeros((X.shape[0], coef.shape[1]))
        for number, piece in enumerate(self._pieces):
            weights = coef[number * PIECE : number * PIECE + len(piece)]
            if number == len(self._prepared):
                like = self._prepared[0] if self._prepared else None
                self._prepared.append(
                    kernels.prepare(self.kernel, piece, self.params, self.dtype, like)
                )
            used = np.flatnonzero(np.any(weights != 0, axis=1))
            if not len(used):
                continue
            support = self._prepared[number]
            if len(used) < len(piece):
                support = support.take(used)
                weights = weights[used]
            out += kernels.decision(self.kernel, self.params, support, weights, X, dtype=self.dtype)
        return out


class Norma(GradientSolver):
    """NORMA: stochastic functional gradients with the exact kernel, storing all rows (Kivinen,
    Smola and Williamson 2004).

    f <- (1 - gamma_t nu) f - gamma_t / n sum over the batch of L'(f(x), y) k(x, .): doubly
    stochastic gradients without the second approximation, and memory that grows with the rows.
    Preconditioned, the sum is multiplied by (C + nu I)^-1, C the covariance of the kernel's own
    features on the batch.

    support: receives the rows; loss, nu: see `GradientSolver`. Rows with zero gradient are not
    stored; in a preconditioned step all rows have a gradient. No kernel needs damping.
    """

    def __init__(
        self, support: Support, n_outputs: int, loss: Loss, nu: float, descent: Descent
    ) -> None:
        super().__init__(loss, nu)
        self.support = support
        self.descent = descent
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
        c = self.coefficients
        n = len(derivatives)
        weighted = times(derivatives, weights)
        gamma = self.descent.steps(self.t, weighted) * n / self.largest
        if self.nu and c.n:
            c.decay(1.0 - gamma * self.nu)
        if self.descent.precondition:
            s = self.support
            K = kernels.block(s.kernel, features, features, s.params, dtype=np.float64)
            weighted = solve_kernel(K, derivatives, n, self.nu, weights)
        change = -gamma / n * weighted
        used = np.flatnonzero(np.any(change != 0, axis=1))
        if len(used):
            self.support.append(features[used])
            c.add(c.n, change[used])
        c.count(self.t)

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

    def state(self) -> Arrays:
        """Arrays from which `restore` continues bitwise identically."""
        arrays = self.coefficients.state()
        scales = arrays.pop("scales")
        if self.coefficients.averaging != "none":
            arrays["sums"] = scales[1:]
        return arrays | {"scale": scales[:1], "t": self._counts(), "rows": self.support.rows}

    def restore(self, state: Arrays) -> None:
        self.support.append(state["rows"])
        scales = np.append(state["scale"], state.get("sums", np.zeros(2)))
        self.coefficients.restore(state | {"scales": scales})
        self._recount(state["t"])
