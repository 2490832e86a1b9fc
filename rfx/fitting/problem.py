"""The problem that a method solves: scaled rows, encoded targets, loss, weights, and listeners; the
error on held-out rows; values shared by the trials of one training; callbacks of solvers, which
evaluate held-out rows at each step and report progress.

Before it: raw rows are checked, before any allocation also whether they are too wide to become
dense in memory. After it: decision values become predictions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rfx import env
from rfx.data.rows import WIDE, keeps_sparse
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.schema import NEVER_SEEN, Schema
from rfx.data.transforms import Scaler
from rfx.errors import DataError, warn
from rfx.fitting.held_out import VECTOR_SCALING, Calibration
from rfx.fitting.progress import Progress, ProgressReport, TraceEntry
from rfx.fitting.target_coding import TargetCoding, listed_labels, squeezed_outputs
from rfx.losses import EPSILON, Loss
from rfx.measures import ROW_MEASURES, LabelledRows, root_mean_square
from rfx.options import Declared
from rfx.types import Inputs, JsonObject

T = TypeVar("T")
MSE = "mean squared error"
# Losses whose derivatives do not depend on the unit of the targets.
BOUNDED = ("absolute", "epsilon_insensitive")


@dataclass(frozen=True)
class Listening:
    """What follows a training step by step.

    Parameters
    ----------
    progress : callable or None
        Called with every step.
    held_out : (X, y) or None
        Raw rows to evaluate at every step of the solver; ``trace`` then has ``error``.
    squared : bool
        See `rfx.fitting.session.Session`.
    """

    progress: Progress | None = None
    held_out: tuple[Inputs, ArrayLike] | None = None
    squared: bool = False


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

    X: Inputs
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
    curve : SplitterCurve or None
        Held-out rows to evaluate at every step.
    constraint : SplitConstraint or None
        Groups or times for held-out splits.
    checkpointer : Checkpointer or None
        Where to write checkpoints, and whether to resume from one.
    predicts_left_out : bool
        Whether to predict rows by the model without each of them, where this costs little.
    measure : str or None
        By which options are chosen, one of ROW_MEASURES; None for the error rate of classes.
    """

    X: Inputs
    Y: np.ndarray
    loss: Loss
    task: str
    weights: np.ndarray | None = None
    deadline: float | None = None
    progress: Progress | None = None
    curve: HeldOutCurve | None = None
    constraint: SplitConstraint | None = None
    checkpointer: Any = None
    predicts_left_out: bool = False
    measure: str | None = None

    def error(self, decision: np.ndarray) -> float:
        """The error of decision values (n, k) of the rows, by which options are chosen."""
        return measured(self.measure, self.task, decision, self.Y, self.weights)

    @property
    def error_name(self) -> str:
        """What `error` is, in words."""
        if self.task == "regression":
            return MSE
        measure = ROW_MEASURES[self.measure or "accuracy"]
        return measure.error_of_choice or measure.error

    @property
    def undivided(self) -> bool:
        """Whether no row can be held out because all belong to one group or time."""
        return self.constraint is not None and self.constraint.one

    @property
    def constrained(self) -> bool:
        """Whether groups or times constrain which rows can be held out. Repeated rows do not: they
        are one row to `merged`.
        """
        return self.constraint is not None and self.constraint.given

    @property
    def repeats(self) -> np.ndarray | None:
        """(n,) numbers that rows with equal inputs share; None if all differ."""
        return None if self.constraint is None or self.constrained else self.constraint.values

    @property
    def is_local(self) -> bool:
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
        constraint = None if self.constraint is None else self.constraint.rows(index)
        rows = {"X": self.X[index], "Y": np.asarray(self.Y[index])}
        return replace(self, **rows, weights=weights, constraint=constraint).quiet()

    def centred(self, method: Declared) -> bool:
        """Whether the weighted mean of the targets is subtracted, by their scaling or the method,
        so that the machine without a row has another mean.
        """
        scaled = method.target_scaling in ("mean", "standard")
        subtracted = scaled or method.get("offset") == "mean"
        return self.loss.name == "squared" and subtracted

    def merged(self) -> tuple[Problem, np.ndarray]:
        """The problem with one row for all with equal inputs, with the mean of their targets and
        the sum of their weights; and for each row the number (n,) of its one.

        With the squared loss it has the same solution, and a row that is left out leaves no copy.
        """
        if self.constraint is None or self.constrained:
            return self, np.arange(self.n_rows)
        _, first, place = np.unique(self.constraint.values, return_index=True, return_inverse=True)
        own = np.ones(self.n_rows) if self.weights is None else self.weights
        total = np.bincount(place, own)
        sums = [np.bincount(place, own * column) for column in self.Y.T]
        some = replace(self.rows(first), Y=np.stack(sums, axis=1) / total[:, None], weights=total)
        return replace(some, constraint=None), place

    def minus_offset(self, offset: np.ndarray) -> Problem:
        """The problem with the offset (k,) subtracted from the targets."""
        return replace(self, Y=self.Y - offset)

    def doing(self, words: str) -> None:
        """Tell the listener what is done next."""
        if self.progress is not None:
            self.progress(ProgressReport(doing=words))

    def quiet(self) -> Problem:
        """The same problem without progress, curve, checkpoints and left-out rows."""
        return replace(self, progress=None, curve=None, checkpointer=None, predicts_left_out=False)


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

    A measure that needs probabilities gets those by vector scaling of these rows.
    """
    if measure in (None, "accuracy") or task == "regression":
        return error(task, decision, Y, weights)
    classes = np.arange(max(2, Y.shape[1]))
    if Y.shape[1] > 1:
        codes = np.argmax(Y, axis=1)
        predicted = np.argmax(decision, axis=1)
        values = decision
    else:
        codes, predicted = (np.asarray(part[:, 0] > 0, int) for part in (Y, decision))
        values = decision[:, 0]
    own = ROW_MEASURES[measure]
    if own.needs_probabilities:
        curve = Calibration.fit(VECTOR_SCALING, values, codes, classes, "")
        values = curve.probabilities(values)
    return own.choice_error(LabelledRows(classes, codes, predicted, values, weights))


class Clock:
    """Seconds by activity, and processor seconds of all threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.seconds_cpu: dict[str, float] = {}

    def timed(self, name: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call the function and add its time to `name`."""
        start = time.perf_counter()
        start_cpu = time.process_time()
        result = function(*args, **kwargs)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        cpu = time.process_time() - start_cpu
        self.seconds_cpu[name] = self.seconds_cpu.get(name, 0.0) + cpu
        return result


class Cache:
    """One value of each kind, recomputed when its key changes.

    Features of many inputs take longest to draw, and two sets of them may not fit into memory. So a
    new value of a kind replaces the last one, which is dropped first.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Hashable, object]] = {}

    def get(self, kind: str, key: Hashable, make: Callable[[], T]) -> T:
        """The value of that kind for the key: the cached one, or the result of `make`."""
        if kind not in self._entries or self._entries[kind][0] != key:
            self._entries.pop(kind, None)
            self._entries[kind] = (key, make())
        return cast(T, self._entries[kind][1])


# Called by a solver with its report of a step, and a function that returns its current weights.
StepCallback: TypeAlias = Callable[[TraceEntry, Callable[[], np.ndarray]], None]


def evaluating(
    problem: Problem,
    decide: Callable[[Inputs], Callable[[np.ndarray], np.ndarray]],
    offset: ArrayLike = 0.0,
) -> StepCallback | None:
    """The callback of a solver that reports weights; None without a listener.

    If the problem has a curve, the entry of each step gets ``error``, outside of the solver's
    clock. Outputs solved one by one have zero decision values before their turn.

    Parameters
    ----------
    problem : Problem
    decide : callable
        Maps held-out rows to a function from weights (D,) or (D, k) to decision values (m,) or
        (m, k).
    offset : float or array (k,)
        Added to the decision values.
    """
    progress = telling(problem)
    n_outputs = problem.n_outputs
    if problem.curve is None:
        return progress
    curve = problem.curve
    decision = decide(curve.X)
    values = np.zeros((curve.X.shape[0], n_outputs))
    offset = np.broadcast_to(offset, n_outputs)

    def tell(entry: TraceEntry, coef: Callable[[], np.ndarray]) -> None:
        found = np.asarray(decision(coef()))
        if found.ndim == 1:
            output = entry.get("output", 0)
            values[:, output] = found + offset[output]
        else:
            values[...] = found + offset
        entry["error"] = curve.error(squeezed_outputs(values))
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
    count = machines or problem.n_outputs
    return lambda entry, _: progress(ProgressReport.of_step(entry, count))


# ---------------------------------------------------------------------- raw rows


def check_inputs(n_inputs: int) -> None:
    """Raise DataError for rows whose inputs are all zero, from which no method can learn."""
    if not n_inputs:
        raise DataError(
            "all inputs of all rows are zero or missing (LIBSVM text needs inputs such as 3:0.5);"
            " check the file"
        )


def default_epsilon(method: Declared, Y: np.ndarray) -> dict[str, float]:
    """The default of --epsilon for scaled targets Y (n, k), if the loss has a tube without a
    width.
    """
    if method.get("loss") != "epsilon_insensitive" or method.epsilon is not None:
        return {}
    return {"epsilon": EPSILON * float(np.sqrt(np.var(Y, axis=0).mean()))}


CLASSIFICATION = ("binary", "multiclass")
# Bytes per input: of a vector while it is drawn in float64 (a few at a time for many inputs); of
# learning the scaling.
VECTOR, WIDE_VECTOR, SCALING = 24, 12, 64
# MiB that are always allowed.
LEAST = 64


@dataclass(frozen=True)
class PredictionScore:
    """The score of predictions.

    Parameters
    ----------
    metric : {"accuracy", "rmse"}
    score : float
    mae : float or None
        The mean absolute error of a regression, in the target's original unit if there is one
        target per row.
    rmse_by_target : list of float or None
        For several targets per row, the RMSE of each in its own unit.
    """

    metric: str
    score: float
    mae: float | None = None
    rmse_by_target: list[float] | None = None

    def as_dict(self) -> JsonObject:
        """The entries of a results row, by column or name."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Preprocessing:
    """Properties of inputs and targets learnt from the training rows.

    Parameters
    ----------
    coding : TargetCoding
        Of the targets.
    scaler : Scaler
        Of the inputs.
    dtype : numpy.dtype
        The type of the scaled inputs.
    schema : Schema or None
        How rows of a table become X and y, and how labels are spelled.
    """

    coding: TargetCoding
    scaler: Scaler
    dtype: np.dtype
    schema: Schema | None = None

    def replace(self, **changes: Any) -> Preprocessing:
        """The same with other parts; ``classes`` are those of the coding."""
        if "classes" in changes:
            changes["coding"] = replace(self.coding, classes=changes.pop("classes"))
        return replace(self, **changes)

    def rows(self, X: Inputs) -> Inputs:
        """Scaled rows of raw X (n, d)."""
        return self.scaler.transform(X, dtype=self.dtype)

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Targets (n, k): scaled, or +-1 for each class against the rest (one column for two
        classes).
        """
        return self.coding.encode(y)

    def labels(self, decision: np.ndarray) -> np.ndarray:
        """(n,) labels, or targets in their original units, of decision values (n,) or (n, k)."""
        return self.coding.decode(decision)

    def score(self, decision: np.ndarray, y: ArrayLike) -> PredictionScore:
        """The accuracy for classification, the RMSE in the unit of the target, its range for
        `minmax01`, its standard deviation for `standard`.

        Raises
        ------
        DataError
            If no label of y is among the classes.
        """
        classes, scaler = self.coding.classes, self.coding.scaler
        if scaler is not None:
            error = scaler.differences(decision, np.asarray(y, float))
            if error.shape != decision.shape:
                raise DataError(
                    f"targets of shape {np.shape(y)} do not match the model's values of shape"
                    f" {decision.shape}"
                )
            rmse = float(root_mean_square(scaler.in_units(error)))
            if error.ndim == 1:
                return PredictionScore("rmse", rmse)
            each = root_mean_square(error * scaler.scale, axis=0)
            return PredictionScore("rmse", rmse, rmse_by_target=each.tolist())
        assert classes is not None
        if not np.isin(y, classes).any():
            labels = listed_labels(np.unique(y), self.schema)
            known = listed_labels(classes, self.schema)
            raise DataError(f"none of the labels ({labels}) is among the model's classes ({known})")
        return PredictionScore("accuracy", float(np.mean(self.labels(decision) == y)))

    def warn_of_unknown(self, y: ArrayLike) -> None:
        """Warn about numeric labels y (n,) that are not among the classes.

        For words, the file reader warns.
        """
        classes = self.coding.classes
        words = self.schema is not None and self.schema.labels is not None
        if classes is None or words:
            return
        new = np.setdiff1d(y, classes)
        if len(new):
            labels = listed_labels(new, self.schema)
            message = f"the rows have labels that were absent in training: {labels}; {NEVER_SEEN}"
            warn(message)

    def error(self, decision: np.ndarray, y: ArrayLike) -> float:
        """The error rate, or the RMSE in units of the scaled target."""
        score = self.score(decision, y).score
        return score if self.coding.task == "regression" else 1.0 - score


def input_dtype(method: Declared) -> np.dtype:
    """The type of the scaled inputs."""
    return np.promote_types(method.get("dtype") or "float64", np.float32)


def check_memory(X: Inputs, scaling: str, vectors: int, itemsize: int) -> None:
    """Raise an error for rows X (n, d), dense or CSR, that can't be scaled within memory, with
    `vectors` more vectors of length d.

    CSR rows stay sparse if they are not scaled, or wide and mostly zeros; others need itemsize
    bytes per input. Raises DataError.
    """
    rows = 0 if stays_sparse(X, scaling) else X.shape[0]
    vector = VECTOR if X.shape[1] <= WIDE else WIDE_VECTOR
    needed = X.shape[1] * (SCALING + rows * itemsize + vector * vectors) / 2**20
    available = env.available_memory_mb()
    if needed > max(available, LEAST):
        sparser = (
            ", or --scaling none, which keeps sparse rows sparse" if rows and sp.issparse(X) else ""
        )
        raise DataError(
            f"the {X.shape[0]:,} rows have {X.shape[1]:,} columns, which need about {needed:,.0f}"
            f" MiB, but only {available:,.0f} MiB are free; check the largest column index, or use"
            f" fewer random features{sparser}"
        )


@singledispatch
def stays_sparse(X: Inputs, scaling: str) -> bool:
    """Whether the rows X are CSR and remain so after scaling, or need no memory here."""
    return sp.issparse(X) and (scaling == "none" or keeps_sparse(X))
