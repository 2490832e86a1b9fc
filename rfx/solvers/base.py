"""The common arguments and results of all solvers, and their line search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np

from rfx.compiled import njit
from rfx.data.transforms import as_floats
from rfx.errors import UsageError
from rfx.losses import OF_NUMBERS, Loss, SmoothLoss, Weighted
from rfx.parallel import until

# ----------------------------------------------------------------------
# The common arguments and results of all solvers.
#
# A solver is a function (matrix, targets, lam, loss, budget, warm, callback) -> Solution.

# receives every step: an entry, and a function that returns the weights (see Recorder)
# what a solver tells of a step, by name
TraceEntry: TypeAlias = dict[str, Any]
Callback: TypeAlias = Callable[[TraceEntry, Callable[[], np.ndarray]], None]
# How a solver can end, from good to bad: the certificate meets the tolerance (without one: all
# requested work is done), or the reason why not. "stalled": its objective no longer changes,
# usually for lack of precision. "budget": any other limit, such as memory.
STATUSES = ("converged", "stalled", "budget", "max_iter", "timeout")


@dataclass(frozen=True)
class Budget:
    """The required accuracy of a solution and its limits; None means the solver's default.

    tol: of the certificate, relative to the objective unless the solver states otherwise. max_iter:
    iterations, in the solver's own unit. memory_mb: working memory in MiB. deadline: value of
    time.monotonic() at which the solver ends.
    """

    tol: float | None = None
    max_iter: int | None = None
    memory_mb: float | None = None
    deadline: float | None = None

    def filled(self, **defaults: float) -> Filled:
        """This budget with a solver's defaults for None."""
        own: dict[str, Any] = {
            name: value for name, value in defaults.items() if getattr(self, name) is None
        }
        return cast(Filled, replace(self, **own))

    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def spent(self, n_iter: int) -> bool:
        """Whether n_iter iterations reach the limit."""
        return (self.max_iter is not None and n_iter >= self.max_iter) or self.late()

    def remaining(self) -> float | None:
        """Seconds to the deadline, at least a hundredth; None without one."""
        return None if self.deadline is None else max(0.01, self.deadline - time.monotonic())

    def status(self, converged: bool, n_iter: int, stalled: bool = False) -> str:
        """The status of a solver that ends now, after n_iter iterations."""
        if converged:
            return "converged"
        if stalled:
            return "stalled"
        if self.max_iter is not None and n_iter >= self.max_iter:
            return "max_iter"
        return "timeout" if self.late() else "budget"


class Filled(Budget):
    """A budget returned by `filled`: limits requested by a solver are numbers."""

    tol: float
    max_iter: int
    memory_mb: float


@dataclass
class Solution:
    """The outcome of one optimisation.

    coef: (n_columns,) or (n_columns, n_outputs) weights. objective: the un-normalised objective at
    coef, summed over outputs. gap: the certificate, a dual bound: objective - gap bounds the
    optimum from below; summed over outputs, like the objective; None if a method has none. n_iter:
    iterations, in the solver's own unit; summed over outputs. status: one of STATUSES. trace: one
    dict per step, see Recorder. left_out: predictions of training rows by the solution without each
    of them, if requested.
    """

    coef: np.ndarray
    objective: float
    gap: float | None
    n_iter: int
    status: str
    trace: list[TraceEntry] = field(default_factory=list)
    left_out: np.ndarray | None = field(default=None, kw_only=True)

    @property
    def converged(self) -> bool:
        """Whether it met its goal: see STATUSES."""
        return self.status == "converged"


def stack(
    solutions: list[Solution], coef: np.ndarray | None = None, of: str = "output"
) -> Solution:
    """One Solution for several problems solved one by one by the same solver, as in one-vs-rest.

    coef: theirs in one array; by default one column each. of: the name of the problem's number in
    the entries of the trace.
    """
    if coef is None:
        coef = np.stack([s.coef for s in solutions], axis=-1)
    gaps = [s.gap for s in solutions if s.gap is not None]
    trace = []
    for number, solution in enumerate(solutions):
        trace += [entry | {of: number} for entry in solution.trace]
    return Solution(
        coef=coef,
        objective=float(sum(s.objective for s in solutions)),
        gap=float(sum(gaps)) if len(gaps) == len(solutions) else None,
        n_iter=int(sum(s.n_iter for s in solutions)),
        status=max((s.status for s in solutions), key=STATUSES.index),
        trace=trace,
    )


class Progress:
    """Whether an objective still changes; updated after every step."""

    def __init__(self, steps: int, share: float, least: float = 0.0) -> None:
        """stalled: whether the last `steps` steps together reduced the objective by no more than
        that fraction, plus `least`.
        """
        self.steps = steps
        self.share = share
        self.least = least
        self.stalled = False
        self._past: list[float] = []

    def __call__(self, objective: float) -> bool:
        """Record the objective after one more step; return `stalled`."""
        self._past.append(objective)
        if len(self._past) > self.steps:
            gain = self._past[-1 - self.steps] - objective
            self.stalled = gain <= self.share * abs(objective) + self.least
        return self.stalled


def checked(y: np.ndarray, loss: Loss) -> np.ndarray:
    """The targets y as float64, (N,) or (N, k).

    Raises UsageError for classification labels other than -1 and +1, unless they are multiplied by
    weights (`Weighted`).
    """
    y = as_floats(y)
    y = np.ascontiguousarray(y) if isinstance(y, np.ndarray) else y
    labels = loss.name not in OF_NUMBERS and not isinstance(loss, Weighted)
    if labels and not np.all(np.abs(y) == 1.0):
        raise UsageError(f"the labels of the {loss.name} loss must be -1 and +1")
    return y


def start_rows(warm: np.ndarray | None, like: np.ndarray) -> np.ndarray:
    """`start` for a solution with one number per row, in the shape of the targets `like`."""
    if warm is None:
        return np.zeros_like(like)
    return start(warm, like.shape) if isinstance(warm, np.ndarray) else warm.copy()


def start(warm: np.ndarray | None, shape: Sequence[int]) -> np.ndarray:
    """A float64 copy of the starting point; zeros if it is None."""
    return np.zeros(shape) if warm is None else np.array(warm, dtype=np.float64)


class Recorder:
    """The trace of a solver: every step is stored and passed to a callback.

    callback(entry, coef): entry is a dict with `seconds` and `cpu_seconds` (of all threads, also
    meaningful on a busy machine) since the start, without the time of callbacks, and the solver's
    values, including `iteration`, `objective` and `gap`; coef() returns the weights of that step.
    Additions by the callback, such as an error on held-out rows, are stored too.
    """

    def __init__(self, callback: Callback | None = None) -> None:
        self.callback = callback
        self._start = self._now()
        self.trace: list[TraceEntry] = []

    @staticmethod
    def _now() -> np.ndarray:
        return np.array([time.monotonic(), time.process_time()])

    def __call__(self, coef: Callable[..., np.ndarray], **entry: Any) -> None:
        """Record one step; coef: a function without arguments that returns its weights."""
        now = self._now()
        seconds, cpu_seconds = (now - self._start).tolist()
        entry = {"seconds": seconds, "cpu_seconds": cpu_seconds} | entry
        if self.callback is not None:
            with until(None):
                self.callback(entry, coef)
            self._start += self._now() - now
        self.trace.append(entry)


def for_output(callback: Callback | None, k: int) -> Callback | None:
    """The callback for output k of several, which adds k to every entry; None without callback."""
    if callback is None:
        return None

    def tell(entry: TraceEntry, coef: Callable[[], np.ndarray]) -> None:
        entry["output"] = k
        callback(entry, coef)

    return tell


@njit(cache=True, nogil=True)
def soft_threshold(value: float, width: float) -> float:
    """Soft thresholding: the value moved towards zero by at most the width."""
    if value > width:
        return value - width
    return value + width if value < -width else 0.0


# ----------------------------------------------------------------------
# The step along the direction of a Newton method, without and with an l1 term.


def line_minimum(
    loss: SmoothLoss,
    f: np.ndarray,
    change: np.ndarray,
    y: np.ndarray,
    linear: float,
    quadratic: float,
) -> float:
    """The t >= 0 that minimises t linear + t^2 quadratic / 2 + sum L(f + t change, y), with descent
    at t = 0.

    Newton's method in a bracket, with bisection outside of it.
    """

    def slope(t: float) -> float:
        return linear + t * quadratic + float(loss.derivative(f + t * change, y) @ change)

    low = 0.0
    high = 1.0
    first = abs(slope(0.0))
    while slope(high) < 0 and high < 2.0**40:
        low = high
        high = 2 * high
    t = 1.0 if high == 1.0 else 0.5 * (low + high)
    for _ in range(100):
        value = slope(t)
        if abs(value) <= 1e-6 * first or high - low <= 1e-12 * high:
            break
        low, high = (t, high) if value < 0 else (low, t)
        curvature = quadratic + float(loss.second_derivative(f + t * change, y) @ change**2)
        t = t - value / curvature if curvature > 0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
    return t


def l1_line_search(
    loss: Loss,
    y: np.ndarray,
    f: np.ndarray,
    along: np.ndarray,
    x: np.ndarray,
    p: np.ndarray,
    lam: float,
) -> float:
    """Step t >= 0 that minimises lam ||x + t p||_1 + sum L(f + t along, y); 1 if that is nearly as
    good.

    x, p: (k,) weights and their change; f, along: (N,) decision values and theirs. 0 if the
    direction does not descend.
    """

    def slope(t: float, side: float = 1.0) -> float:
        moved = x + t * p
        sign = np.where(moved != 0, np.sign(moved), side * np.sign(p))
        return float(lam * (sign @ p) + along @ loss.derivative(f + t * along, y))

    def value(t: float) -> float:
        return float(lam * np.abs(x + t * p).sum() + loss.value(f + t * along, y).sum())

    first = slope(0.0)
    if not first < 0:
        return 0.0
    # Many coordinates reach zero exactly at t = 1, where the slope jumps: both sides matter.
    if slope(1.0, -1.0) <= -0.5 * first and slope(1.0) >= 0.5 * first:
        before = value(0.0)
        if value(1.0) <= before + 0.1 * first + 1e-14 * before:
            return 1.0
    low, high = 0.0, 1.0
    while slope(high) < 0 and high < 16:
        low = high
        high = 2 * high
    while low == 0.0 or high - low > 0.02 * high:
        middle = 0.5 * (low + high)
        if middle < 1e-12:
            return 0.0
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return low
