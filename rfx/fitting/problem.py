"""The problem that a method solves: scaled rows, encoded targets, loss, weights, and listeners; the
error on held-out rows; values shared by the trials of one training; callbacks of solvers, which
evaluate held-out rows at each step and report progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from rfx import lazy
from rfx.data.tabular.apart import Apart
from rfx.fitting.held_out import temperature
from rfx.fitting.options import MEASURES
from rfx.losses import Loss

T = TypeVar("T")
MSE = "mean squared error"
# Called with a solver's report of a step, or with the trials of a selection so far.
Progress = Callable[[dict[str, Any]], None]
# Losses whose derivatives do not depend on the unit of the targets.
BOUNDED = ("absolute", "epsilon_insensitive")


@dataclass(frozen=True)
class HeldOutCurve:
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
    curve : HeldOutCurve or None
        Held-out rows to evaluate at every step.
    apart : Apart or None
        Groups or times for held-out splits.
    keeper : checkpoints.Keeper or None
        Where to write checkpoints, and whether to resume from one.
    left_out : bool
        Whether to predict rows by the model without each of them, where this costs little.
    measure : str or None
        By which options are chosen, one of MEASURES; None for the error rate of classes.
    """

    X: Any
    Y: Any
    loss: Loss
    task: str
    weights: np.ndarray | None = None
    deadline: float | None = None
    progress: Progress | None = None
    curve: HeldOutCurve | None = None
    apart: Apart | None = None
    keeper: Any = None
    left_out: bool = False
    measure: str | None = None

    def error(self, decision: np.ndarray) -> float:
        """The error of decision values (n, k) of the rows, by which options are chosen."""
        return measured(self.measure, self.task, decision, self.Y, self.weights)

    @property
    def error_name(self) -> str:
        """What `error` is, in words."""
        return MEASURES[self.measure or "accuracy"] if self.task != "regression" else MSE

    @property
    def undivided(self) -> bool:
        """Whether no row can be held out because all belong to one group or time."""
        return self.apart is not None and self.apart.one

    @property
    def here(self) -> bool:
        """Whether the rows are in this process, not on workers."""
        return isinstance(self.Y, np.ndarray)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_inputs(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_outputs(self) -> int:
        return int(self.Y.shape[1])

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
        rows = {"X": self.X[index], "Y": np.asarray(self.Y[index])}
        return replace(self, **rows, weights=weights, apart=apart).quiet()

    def less(self, offset: np.ndarray) -> Problem:
        """The problem with the offset (k,) subtracted from the targets."""
        return replace(self, Y=self.Y - offset)

    def doing(self, words: str) -> None:
        """Tell the listener what is done next."""
        if self.progress is not None:
            self.progress({"doing": words})

    def quiet(self) -> Problem:
        """The same problem without progress, curve, checkpoints and left-out rows."""
        return replace(self, progress=None, curve=None, keeper=None, left_out=False)


def error(
    task: str, decision: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Mean squared error for regression, error rate for classification; decision, Y: (n, k), Y as
    +-1 for classes.

    weights: (n,) of the rows, None for ones.
    """
    if task == "regression":
        return float(np.average(np.mean((decision - Y) ** 2, axis=1), weights=weights))
    if Y.shape[1] == 1:
        return float(np.average((decision[:, 0] > 0) != (Y[:, 0] > 0), weights=weights))
    return float(np.average(np.argmax(decision, axis=1) != np.argmax(Y, axis=1), weights=weights))


def measured(
    measure: str | None,
    task: str,
    decision: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
) -> float:
    """The error by a measure, smaller for better values; the rest as in `error`.

    The log-loss is that of probabilities with the best slope for these rows. The AUC of several
    classes is the mean of each against the rest.
    """
    if measure in (None, "accuracy") or task == "regression":
        return error(task, decision, Y, weights)
    places = np.argmax(Y, axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(int)
    own = np.ones(len(Y)) if weights is None else weights
    if measure == "balanced_accuracy":
        return error(task, decision, Y, own / np.bincount(places, own)[places])
    if measure == "auc":
        columns = [column for column in range(Y.shape[1]) if np.ptp(Y[:, column])]
        areas = [
            lazy.metrics.roc_auc_score(Y[:, column] > 0, decision[:, column], sample_weight=own)
            for column in columns
        ]
        return 1 - float(np.mean(areas)) if areas else 0.5
    values = decision[:, 0] if decision.shape[1] == 1 else decision
    shares = temperature(values, places)
    return -float(np.average(np.log(shares[np.arange(len(Y)), places]), weights=own))


class Clock:
    """Seconds by activity."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call the function and add its time to `name`."""
        start = time.perf_counter()
        result = function(*args, **kwargs)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return result


class Cache:
    """One value of each kind, recomputed when its key changes.

    Features of many inputs take longest to draw, and two sets of them may not fit into memory. So a
    new value of a kind replaces the last one, which is dropped first.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Hashable, Any]] = {}

    def get(self, kind: str, key: Hashable, make: Callable[[], T]) -> T:
        """The value of that kind for the key: the cached one, or the result of `make`."""
        if kind not in self._entries or self._entries[kind][0] != key:
            self._entries.pop(kind, None)
            self._entries[kind] = (key, make())
        return cast(T, self._entries[kind][1])

    def keep_only(self, *kinds: str) -> None:
        """Drop the values of all other kinds."""
        self._entries = {kind: self._entries[kind] for kind in kinds if kind in self._entries}


# Held-out rows -> a function that maps weights, (D,) or (D, k), to decision values (m,) or (m, k).
Decide = Callable[[Any], Callable[[Any], Any]]

# Called by a solver with its report of a step, and a function that returns its current weights.
StepCallback = Callable[[dict[str, Any], Callable[[], Any]], None]


def evaluating(problem: Problem, decide: Decide, offset: Any = 0.0) -> StepCallback | None:
    """The callback of a solver that reports weights; None without a listener.

    If the problem has a curve, the entry of each step gets ``error``, outside of the solver's
    clock. Outputs solved one by one have zero decision values before their turn.

    Parameters
    ----------
    problem : Problem
    decide : callable
        See `Decide`.
    offset : float or array (k,)
        Added to the decision values.
    """
    progress, n_outputs = telling(problem), problem.n_outputs
    if problem.curve is None:
        return progress
    curve = problem.curve
    decision = decide(curve.X)
    values = np.zeros((curve.X.shape[0], n_outputs))
    offset = np.broadcast_to(offset, n_outputs)

    def tell(entry: dict[str, Any], coef: Callable[[], Any]) -> None:
        found = np.asarray(decision(coef()))
        if found.ndim == 1:
            output = entry.get("output", 0)
            values[:, output] = found + offset[output]
        else:
            values[...] = found + offset
        entry["error"] = curve.error(values[:, 0] if n_outputs == 1 else values)
        if progress is not None:
            progress(entry, coef)

    return tell


def telling(problem: Problem, machines: int | None = None) -> StepCallback | None:
    """The callback that forwards steps to the problem's listener, with ``outputs``, their number,
    or that of the machines fitted instead.
    """
    progress = problem.progress
    if progress is None:
        return None
    return lambda entry, _: progress(entry | {"outputs": machines or problem.n_outputs})
