"""How targets become numbers to learn, and decision values become predictions.

Raw targets are checked. Their task, classes and scaling are learnt from statistics: of all rows in
memory or on workers (`TargetArray`), or of a stream (`Survey`). Targets are labels or numbers (n,),
or for several per row numbers (n, k).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfx.data import guess_task
from rfx.data.tabular.schema import Schema, label_text
from rfx.data.transforms import LOG, LogTargetScaler, Survey, TargetScaler, as_floats
from rfx.errors import DataError, UsageError
from rfx.options import Declared
from rfx.types import Arrays, Inputs, JsonObject


@dataclass(frozen=True)
class TargetCoding:
    """The task, and how its targets are coded.

    Parameters
    ----------
    task : str
        ``regression``, ``binary`` or ``multiclass``.
    classes : array, (n_classes,), or None
        The labels, ascending; None for a regression.
    scaler : TargetScaler or None
        None for classes.
    """

    task: str
    classes: np.ndarray | None = None
    scaler: TargetScaler | None = None

    @classmethod
    def of_state(
        cls, task: str, scaler: JsonObject | None, arrays: Arrays, n_targets: int
    ) -> TargetCoding:
        """The coding in a model file or checkpoint.

        Raises DataError or KeyError if the file is damaged or incomplete.
        """
        if task != "regression":
            return cls(task, arrays["classes"])
        return cls(task, None, TargetScaler.from_dict(scaler or {}, n_targets))

    @property
    def scaling(self) -> str:
        """The kind of the scaling of a regression; ``none`` for classes."""
        return "none" if self.scaler is None else self.scaler.kind

    def encode(self, y: np.ndarray, softmax: bool = False) -> np.ndarray:
        """Targets (n, outputs): scaled, +-1 for each class against the rest (one column for two
        classes), or for softmax 0 and 1.
        """
        if self.scaler is not None:
            values: np.ndarray = self.scaler.transform(y)
            return values[:, None] if values.ndim == 1 else values
        classes = self.classes
        assert classes is not None
        if len(classes) <= 2:
            # the larger label is +1; a single class keeps its sign
            positive = classes[-1] if len(classes) == 2 or classes[0] > 0 else np.inf
            return np.where(y == positive, 1.0, -1.0)[:, None]
        return np.where(y[:, None] == classes[None, :], 1.0, 0.0 if softmax else -1.0)

    def decode(self, decision: np.ndarray) -> np.ndarray:
        """(n,) labels, or targets in their original units, of decision values (n,) or (n, k)."""
        if self.scaler is not None:
            return self.scaler.inverse(decision)
        classes = self.classes
        assert classes is not None
        places = np.argmax(decision, axis=1) if decision.ndim == 2 else (decision > 0).astype(int)
        return np.asarray(classes[np.minimum(places, len(classes) - 1)])

    def check_known(self, y: np.ndarray, schema: Schema | None = None) -> None:
        """Raise DataError for a label that is not among the classes of a stream."""
        if self.classes is not None and not (known := np.isin(y, self.classes)).all():
            raise DataError(
                f"the label {label_text(schema, y[np.argmin(known)])} did not occur in the first"
                f" rows, from which labels are learnt ({listed_labels(self.classes, schema)});"
                " increase --head"
            )


def squeezed_outputs(values: np.ndarray) -> np.ndarray:
    """Decision values (n, k) as `TargetCoding.decode` takes them: (n,) for one output."""
    return values[:, 0] if values.shape[1] == 1 else values


# ---------------------------------------------------------------------- learning a coding


@dataclass(frozen=True)
class TargetArray:
    """The targets of all rows, in memory or on workers, with the statistics that a `Survey` has of
    those of a stream.

    Parameters
    ----------
    y : array, (n,) or (n, k)
        See `checked_targets`.
    weights : array, (n,), or None
        Sample weights; None for ones.
    transform : str
        The option target_transform.
    """

    y: np.ndarray
    weights: np.ndarray | None = None
    transform: str = "none"

    @property
    def n_targets(self) -> int:
        return targets_per_row(self.y)

    @property
    def labels(self) -> np.ndarray:
        """The distinct targets, ascending."""
        return np.unique(self.y)

    def guess_task(self) -> str:
        """The task that the targets show; UsageError if they may be numbers or classes."""
        return guess_task(self.y) if self.y.ndim == 1 else "regression"

    def target_scaler(self, kind: str) -> TargetScaler:
        """The scaling of regression targets; DataError for one that has no logarithm."""
        scaler = LogTargetScaler if self.transform == LOG else TargetScaler
        return scaler.fit(self.y, kind, self.weights)


TargetStatistics: TypeAlias = TargetArray | Survey


def find_task(
    method: Declared, targets: TargetStatistics, classes: np.ndarray | None = None
) -> str:
    """The task of rows with such targets: as given, else by the number of the labels known
    beforehand, else by the targets.

    Raises UsageError for several targets per row that the method or the task does not support.
    """
    n_targets = targets.n_targets
    if n_targets > 1 and not method.several_targets:
        raise UsageError(
            f"the rows have {n_targets} targets each, but method {method.name} supports one target"
            " per row; use local or doubly-sgd for several"
        )
    if method.task is not None:
        task: str = method.task
    elif classes is not None:
        task = "binary" if len(np.unique(classes)) <= 2 else "multiclass"
    else:
        task = targets.guess_task()
    if n_targets > 1 and task != "regression":
        raise UsageError(
            f"the task is {task}, but the rows have {n_targets} targets each, which requires"
            " regression"
        )
    return task


def learn_coding(
    method: Declared, task: str, targets: TargetStatistics, classes: np.ndarray | None = None
) -> TargetCoding:
    """The coding of the targets for a task; classes: the labels, if known beforehand.

    Numbers are scaled as given, by default by `mean`, or `standard` for several targets, which may
    differ in units. Raises UsageError for scaled classes, DataError for too many classes.
    """
    scaling = method.target_scaling
    if task == "regression":
        default = "mean" if targets.n_targets == 1 else "standard"
        return TargetCoding(task, None, targets.target_scaler(scaling or default))
    if scaling not in (None, "none"):
        raise UsageError(
            f"--target-scaling is {scaling}, which is for regression, but the task is {task}"
        )
    labels = targets.labels if classes is None else np.unique(np.asarray(classes, np.float64))
    if labels is None:
        raise DataError(
            "the targets have more than 1,000 values, too many for classes; set --task regression"
        )
    if task == "binary" and len(labels) > 2:
        raise DataError(
            f"the task is binary, but the targets have {len(labels)} values; set --task multiclass"
        )
    return TargetCoding(task, labels)


def known_classes(
    classes: np.ndarray | None, task: str, every: np.ndarray, y: np.ndarray
) -> np.ndarray | None:
    """The labels known beforehand, of the targets `every` of all rows and y of those whose weight
    is not zero: a class whose rows all have weight zero remains a class.
    """
    if classes is not None or task == "regression" or len(y) == len(every):
        return classes
    return np.unique(every)


# ---------------------------------------------------------------------- raw targets


def checked_targets(X: Inputs, y: ArrayLike, n_targets: int | None = None) -> np.ndarray:
    """y as float64, (n,) or for k > 1 targets per row (n, k), of the rows X (n, d); those of rows
    on workers stay there.

    n_targets is the required k, None for any. Raises DataError if there are no rows, or another
    number of targets.
    """
    Y: np.ndarray = as_floats(y)
    if Y.ndim == 2 and Y.shape[1] == 1:
        Y = Y[:, 0]
    if X.shape[0] == 0 or X.shape[0] != len(Y):
        raise DataError(
            f"training needs rows and one target per row, but there are {X.shape[0]} rows and"
            f" {len(Y)} targets"
        )
    if n_targets is not None and targets_per_row(Y) != n_targets:
        raise DataError(
            f"the rows have {targets_per_row(Y)} targets each, but the model was trained on"
            f" {n_targets}"
        )
    return Y


def targets_per_row(y: np.ndarray) -> int:
    """The targets of a row."""
    return y.shape[1] if y.ndim == 2 else 1


def check_transform(method: Declared, task: str, y: np.ndarray) -> None:
    """Raise UsageError for a transform of targets y that are classes, several per row, or on
    workers.
    """
    transform, other = method.target_transform, None
    if transform == "none":
        return
    if task != "regression":
        other = f"regression, but the task is {task}"
    elif targets_per_row(y) > 1:
        other = f"one target per row, not {targets_per_row(y)}"
    elif not isinstance(y, np.ndarray):
        other = "rows in memory, not on workers"
    if other is not None:
        raise UsageError(f"--target-transform is {transform}, which is for {other}; omit it")


def listed_labels(labels: np.ndarray, schema: Schema | None = None) -> str:
    """The first ten labels, for a message."""
    shown = ", ".join(label_text(schema, label) for label in labels[:10])
    return shown + (", …" if len(labels) > 10 else "")
