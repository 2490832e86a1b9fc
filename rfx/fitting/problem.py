"""The problem that a method solves: scaled rows, encoded targets, loss, weights, and listeners."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from rfx.data.tabular.apart import Apart
from rfx.losses import Loss

T = TypeVar("T")
# Called with a solver's report of a step, or with the trials of a selection so far.
Progress = Callable[[dict[str, Any]], None]
# Losses whose derivatives do not depend on the unit of the targets.
BOUNDED = ("absolute", "epsilon_insensitive")


@dataclass(frozen=True)
class Curve:
    """Held-out rows whose error is evaluated at every step of a solver.

    Parameters
    ----------
    X : array or CSR matrix, (m, d)
        Scaled rows.
    error : callable
        Maps decision values (m,) or (m, k) to the error: the error rate, or the root mean squared
        error in units of the scaled target.
    """

    X: Any
    error: Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Problem:
    """The training data.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Scaled inputs.
    Y : array, (n, k)
        Scaled targets of a regression; for classes -1 and +1, one column for each class against the
        rest, one column for two classes.
    loss : Loss
        The loss of one row and output.
    task : str
        ``regression``, ``binary`` or ``multiclass``.
    weights : array, (n,), or None
        Sample weights; None means ones.
    deadline : float or None
        Value of time.monotonic() at which training must end.
    progress : callable or None
        Receives every step.
    curve : Curve or None
        Held-out rows to evaluate at every step.
    apart : Apart or None
        Groups or times for held-out splits.
    """

    X: Any
    Y: Any
    loss: Loss
    task: str
    weights: np.ndarray | None = None
    deadline: float | None = None
    progress: Progress | None = None
    curve: Curve | None = None
    apart: Apart | None = None

    @property
    def undivided(self) -> bool:
        """Whether no row can be held out because all belong to one group or time."""
        return self.apart is not None and self.apart.one

    @property
    def n_rows(self) -> int:
        count: int = self.X.shape[0]
        return count

    @property
    def n_inputs(self) -> int:
        count: int = self.X.shape[1]
        return count

    @property
    def n_outputs(self) -> int:
        count: int = self.Y.shape[1]
        return count

    @property
    def mean_weight(self) -> float:
        """The unit of lambda: grids of lambda are multiples of it."""
        return 1.0 if self.weights is None else float(np.mean(self.weights))

    @property
    def unit(self) -> float:
        """The distance of the targets from 0 if the loss has the same derivatives in every unit;
        else 1.
        """
        if self.loss.name not in BOUNDED:
            return 1.0
        return float(np.sqrt(np.mean(np.square(self.Y)))) or 1.0

    def rows(self, index: np.ndarray) -> Problem:
        """The problem of some of the rows, by their numbers, without listener."""
        weights = None if self.weights is None else self.weights[index]
        apart = None if self.apart is None else self.apart.rows(index)
        some = replace(self, X=self.X[index], Y=np.asarray(self.Y[index]), weights=weights)
        return replace(some, apart=apart).quiet()

    def less(self, offset: np.ndarray) -> Problem:
        """The problem with the offset (k,) subtracted from the targets."""
        return replace(self, Y=self.Y - offset)

    def doing(self, words: str) -> None:
        """Tell the listener what is done next."""
        if self.progress is not None:
            self.progress({"doing": words})

    def quiet(self) -> Problem:
        """The same problem without progress and curve."""
        return replace(self, progress=None, curve=None)


class Clock:
    """Seconds by activity."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call the function and add its time to `name`."""
        start = time.perf_counter()
        found = function(*args, **kwargs)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return found
