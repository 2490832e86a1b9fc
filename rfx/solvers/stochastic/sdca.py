"""Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013): one dual variable per row,
each maximised exactly in turn.

P(w) = nu/2 ||w||^2 + 1/n sum_i L(w.z_i, y_i) with w = 1/(nu n) sum_i a_i z_i has the dual D(a) =
-1/n sum_i L*(-a_i, y_i) - nu/2 ||w||^2, and P - D bounds the distance of P from its minimum.
Features are explicit (r-sdca on random ones, n-sdca on Nystrom features), or implicit in kernel
values (k-sdca). n is the number of rows of the whole set, known beforehand, because steps depend on
it. Several outputs are solved side by side.

With weights c_i of mean 1 the loss is 1/n sum_i c_i L, and w = 1/(nu n) sum_i c_i a_i z_i: a_i has
the same bounds as without weights, its step has c_i ||z||^2 instead of ||z||^2, and the dual's
losses are -c_i/n L*(-a_i, y_i).

A batch may be swept several times before the next, which makes more use of computed features or
kernel values (Yu et al. 2012): with many sweeps the dual is maximised in all variables of a batch
at once.

Most variables soon stay at a bound. A row that did not move is then skipped for some epochs, see
`DualSolver.skips`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rfx import kernels
from rfx.compiled import njit
from rfx.errors import UsageError
from rfx.losses import Loss, times
from rfx.solvers.stochastic.gradient import Support, explicit_values
from rfx.types import Arrays, Inputs

# The maximum number of skipped offers of a row.
LONGEST = 64
# A batch is not swept again once no variable moves by more than this fraction of the largest.
STILL = 1e-4
CODES = {
    "hinge": 0,
    "squared_hinge": 1,
    "squared": 2,
    "logistic": 3,
    "absolute": 4,
    "epsilon_insensitive": 5,
}


class DualSolver(ABC):
    """Steps in the variables a (n_rows, n_outputs) of a set of rows.

    weights: (n_rows,) above 0 and of mean 1, None for ones. sweeps: maximum sweeps per batch.
    Raises UsageError for a loss without a dual step, or if nu is not positive.
    """

    def __init__(
        self,
        n_outputs: int,
        n_rows: int,
        loss: Loss,
        nu: float,
        weights: np.ndarray | None = None,
        sweeps: int = 1,
    ) -> None:
        if loss.name not in CODES:
            raise UsageError(
                f"--loss is {loss.name}, but dual coordinate ascent supports {', '.join(CODES)}"
            )
        if not nu > 0:
            raise UsageError(f"--nu is {nu:g}; the dual needs a number above 0")
        self.loss = loss
        self.nu = float(nu)
        self.n_rows = int(n_rows)
        self.sweeps = int(sweeps)
        self.weights = weights
        self.t = 0
        self.last = np.zeros((n_rows, n_outputs))
        self.loss_code = CODES[loss.name], float(getattr(loss, "epsilon", 0.0))
        # Offers until a row is due again, and its last number of skips, for each row: one whose
        # variables did not move skips 0, 1, 3, 7, ... offers, at most LONGEST - 1. This replaces
        # LIBLINEAR's shrinking (Hsieh et al. 2008, section 3.2) for any loss: every row returns
        # repeatedly, so the limit is the same, and the gap is over all rows.
        self.skips = np.zeros((2, n_rows), np.int16)

    def step(
        self,
        X: Inputs,
        Y: np.ndarray,
        index: Any = None,
        weights: np.ndarray | None = None,
    ) -> float:
        """Maximise, in turn, the variables of the due rows of X (n, d), whose numbers in the set
        are `index`, each at most once.

        Y: (n, n_outputs). weights: not used, because those of the set are known. Returns the mean
        loss, for every row before the last step in which it was due.
        """
        self.t += 1
        resting = self.skips[0, index] > 0
        self.skips[0, index] -= resting
        due = np.flatnonzero(~resting)
        if len(due):
            rows = index[due]
            moved = self._ascend(X if len(due) == len(Y) else X[due], Y[due], rows)
            wait = np.where(moved, 0, np.clip(2 * self.skips[1, rows], 1, LONGEST))
            self.skips[:, rows] = np.maximum(wait - 1, 0), wait
        return float(times(self.loss.value(self.last[index], Y), self._own(index)).sum() / len(Y))

    def bounds(
        self, batches: Iterable[tuple[Inputs, np.ndarray, np.ndarray]]
    ) -> tuple[float, float]:
        """(P, D) summed over the outputs; batches yields (X, Y, index) over all rows of the set."""
        loss = 0.0
        conjugate = 0.0
        norm = 0.0
        for X, Y, index in batches:
            F = self.predictions(X)
            own = self._own(index)
            a, weighted = self._dual(index, own)
            loss += float(times(self.loss.value(F, Y), own).sum())
            conjugate += float(times(self.loss.conjugate(-a, Y), own).sum())
            norm += float((weighted * F).sum())
        half = 0.5 * self._norm(norm)
        return half + loss / self.n_rows, -conjugate / self.n_rows - half

    def _own(self, index: np.ndarray) -> np.ndarray | None:
        return None if self.weights is None else self.weights[index]

    @abstractmethod
    def _ascend(self, X: Inputs, Y: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Maximise the rows' variables, and set their `last` values; returns whether each moved."""

    @abstractmethod
    def _dual(self, index: np.ndarray, own: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The variables a (n, n_outputs) of rows with these weights c, and c a."""

    @abstractmethod
    def _norm(self, products: float) -> float:
        """nu ||w||^2, given the sum of c_i a_i w.z_i."""

    @abstractmethod
    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f."""

    def state(self) -> Arrays:
        """Arrays from which `restore` continues bitwise identically."""
        return {"t": np.array([self.t]), "rests": self.skips.copy(), "last": self.last.copy()}

    def restore(self, state: Arrays) -> None:
        self.t = int(state["t"][0])
        self.skips[:] = state["rests"]
        self.last[:] = state["last"]


class LinearSDCA(DualSolver):
    """a (n_rows, n_outputs) and w (n_features, n_outputs).

    features: X (n, d) -> Z (n, n_features), scaled so that z.z' is the kernel. The other parameters
    are those of `DualSolver`.
    """

    def __init__(
        self,
        features: Callable[[Inputs], np.ndarray],
        n_features: int,
        n_outputs: int,
        n_rows: int,
        *more: Any,
        **options: Any,
    ) -> None:
        super().__init__(n_outputs, n_rows, *more, **options)
        self.features = features
        self.a = np.zeros((n_rows, n_outputs))
        self.w = np.zeros((n_features, n_outputs))

    def _ascend(self, X: Inputs, Y: np.ndarray, index: np.ndarray) -> np.ndarray:
        before = self.a[index]
        self.last[index] = self.ascend(self.features(X), Y, index)
        moved: np.ndarray = (self.a[index] != before).any(axis=1)
        return moved

    def ascend(self, Z: np.ndarray, Y: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Updates with features Z (n, n_features), C order, in all rows: the values (n, n_outputs)
        of each before its own.
        """
        units = times(np.full(len(Y), 1 / (self.nu * self.n_rows)), self._own(index))
        F = np.empty(Y.shape)
        for k in range(Y.shape[1]):
            w = self.w[:, k].copy()
            a = self.a[index, k]
            y = np.ascontiguousarray(Y[:, k])
            _rows(Z, y, a, w, units, *self.loss_code, F[:, k], self.sweeps)
            self.w[:, k] = w
            self.a[index, k] = a
        return F

    def _dual(self, index: np.ndarray, own: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        a = self.a[index]
        return a, times(a, own)

    def _norm(self, products: float) -> float:
        return self.nu * float((self.w**2).sum())

    def predictions(self, X: Inputs) -> np.ndarray:
        return explicit_values(self.features, X, self.w)

    def state(self) -> Arrays:
        return super().state() | {"a": self.a.copy(), "w": self.w.copy()}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.a[:] = state["a"]
        self.w[:] = state["w"]


class KernelSDCA(DualSolver):
    """a (n_rows, n_outputs) of the rows used so far, which are stored: f = 1/(nu n) sum_i c_i a_i
    k(x_i, .).

    support: receives the rows; their coefficients are the c_i a_i. The other parameters are those
    of `DualSolver`.
    """

    def __init__(
        self, support: Support, n_outputs: int, n_rows: int, *more: Any, **options: Any
    ) -> None:
        super().__init__(n_outputs, n_rows, *more, **options)
        self.support = support
        self._raw = np.zeros((n_rows, n_outputs))
        # the position of each row of the set in the support, -1 if unused so far
        self.place = np.full(n_rows, -1, np.int64)
        self.unit = 1 / (self.nu * self.n_rows)

    def _ascend(self, X: Inputs, Y: np.ndarray, index: np.ndarray) -> np.ndarray:
        s = self.support
        own = self._own(index)
        F = self.last[index] = self.unit * s.values(X, self._raw)
        G = times(self.unit * kernels.block(s.kernel, X, X, s.params, dtype=np.float64), own)
        new = np.flatnonzero(self.place[index] < 0)
        if len(new):
            self.place[index[new]] = s.n_rows + np.arange(len(new))
            s.append(X[new])
        where = self.place[index]
        before = _over(self._raw[where], own)
        after = before.copy(order="F")
        for k in range(Y.shape[1]):
            y = np.ascontiguousarray(Y[:, k])
            f = F[:, k].copy()
            _gram(G, y, after[:, k], f, *self.loss_code, self.sweeps)
        self._raw[where] = times(after, own)
        moved: np.ndarray = (after != before).any(axis=1)
        return moved

    def _dual(self, index: np.ndarray, own: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        place = self.place[index]
        weighted = np.where(place[:, None] >= 0, self._raw[place], 0.0)
        return _over(weighted, own), weighted

    def _norm(self, products: float) -> float:
        return products / self.n_rows

    @property
    def coef(self) -> np.ndarray:
        """(n, n_outputs) coefficients of support.rows."""
        return self._raw[: self.support.n_rows] / (self.nu * self.n_rows)

    def predictions(self, X: Inputs) -> np.ndarray:
        return self.support.values(X, self._raw) / (self.nu * self.n_rows)

    def state(self) -> Arrays:
        used = self._raw[: self.support.n_rows].copy()
        own = {"rows": self.support.rows, "coef": used, "place": self.place.copy()}
        return super().state() | own

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.support.append(state["rows"])
        self._raw[: self.support.n_rows] = state["coef"]
        self.place[:] = state["place"]


def _over(a: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    return a if weights is None else a / weights[:, None]


@njit(cache=True, nogil=True)
def dual_step(code: int, a: float, f: float, y: float, q: float, epsilon: float) -> float:
    """The a that maximises the dual in its coordinate, where f is the value of its row with the old
    a and q = ||z||^2 / (nu n).

    The logistic step is the closed-form lower bound of the exact one (Shalev-Shwartz and Zhang
    2013, section 5.1).
    """
    if code == 0:
        return (
            y * min(1.0, max(0.0, a * y + (1.0 - y * f) / q))
            if q > 0
            else (y if y * f < 1.0 else a)
        )
    if code == 1:
        return a + y * max(-y * a, (1.0 - y * f - 0.5 * y * a) / (0.5 + q))
    if code == 2:
        return a + (y - f - a) / (1.0 + q)
    if code == 3:
        return a + (y / (1.0 + math.exp(min(700.0, y * f))) - a) / max(1.0, 0.25 + q)
    if q <= 0.0:
        return a
    goal = a + (y - f) / q
    shrunk = max(0.0, abs(goal) - epsilon / q)
    return min(1.0, shrunk) if goal > 0 else -min(1.0, shrunk)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _rows(
    Z: np.ndarray,
    y: np.ndarray,
    a: np.ndarray,
    w: np.ndarray,
    units: np.ndarray,
    code: int,
    epsilon: float,
    values: np.ndarray,
    sweeps: int,
) -> None:
    for sweep in range(sweeps):
        change, size = 0.0, 0.0
        for i in range(Z.shape[0]):
            z = Z[i]
            f = 0.0
            square = 0.0
            for j in range(len(z)):
                x = np.float64(z[j])
                f += x * w[j]
                square += x * x
            if sweep == 0:
                values[i] = f
            new = dual_step(code, a[i], f, y[i], units[i] * square, epsilon)
            step = units[i] * (new - a[i])
            change = max(change, abs(new - a[i]))
            size = max(size, abs(new))
            a[i] = new
            if step != 0.0:
                for j in range(len(z)):
                    w[j] += step * np.float64(z[j])
        if change <= STILL * size:
            break


@njit(cache=True, nogil=True)
def _gram(
    G: np.ndarray,
    y: np.ndarray,
    a: np.ndarray,
    f: np.ndarray,
    code: int,
    epsilon: float,
    sweeps: int,
) -> None:
    """The same with the Gram matrix G (n, n) = c_i z_i.z_j / (nu n) of the batch and the
    values f (n,) before it.
    """
    for sweep in range(sweeps):
        change, size = 0.0, 0.0
        for i in range(len(y)):
            new = dual_step(code, a[i], f[i], y[i], G[i, i], epsilon)
            step = new - a[i]
            change = max(change, abs(step))
            size = max(size, abs(new))
            a[i] = new
            if step != 0.0:
                # the last sweep needs no values of the earlier rows
                start = i + 1 if sweep == sweeps - 1 else 0
                row = G[i, start:]
                rest = f[start:]
                for j in range(len(rest)):
                    rest[j] += step * row[j]
        if change <= STILL * size:
            break
