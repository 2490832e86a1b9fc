"""Sample weights: sum_n w_n L(f(x_n), y_n). Weight 2 counts a row twice, weight 0 ignores it.

Weights come from the rows (`sample_weight`) or their labels (the option class_weight). For the
squared loss, features and targets are multiplied by the square roots of the weights; the other
losses combine weights with labels (`rfx.losses.Weighted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from rfx.data.tabular import labelwords
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.schema import Schema, label_text
from rfx.data.transforms import as_floats
from rfx.errors import DataError, UsageError, or_near
from rfx.losses import Loss, SmoothLoss, Weighted
from rfx.operators.scaled import scaled_rows
from rfx.options import BALANCED, Declared, LabelWeights
from rfx.types import Inputs

# `balanced`, or {encoded label: weight}.
ByLabel: TypeAlias = str | Mapping[float, float]
# Maximum labels named in a message.
_SHOWN = 20
# Solvers without support for weights.
WITHOUT = ("liblinear", "libsvm", "prcd")


def counted(
    method: Declared,
    task: str,
    schema: Schema | None,
    X: Inputs,
    y: np.ndarray,
    sample_weight: ArrayLike | None,
    constraint: SplitConstraint | None = None,
) -> tuple[Inputs, np.ndarray, np.ndarray | None, SplitConstraint | None]:
    """(X, y, weights, constraint) of the rows with nonzero weight; weights are None if all are 1.

    Raises UsageError if the method, its solver or its task does not support weights.
    """
    class_weight = method.get("class_weight")
    if class_weight is not None and task == "regression":
        raise not_for_regression(class_weight)
    if sample_weight is not None:
        check_method(method)
    weights = of_rows(y, sample_weight, by_code(class_weight, schema))
    if weights is None:
        return X, y, None, constraint
    if method.get("solver") in WITHOUT:
        raise UsageError(
            f"--solver is {method.solver}, which does not support sample weights; use --solver rfx"
        )
    if np.all(weights > 0):
        return X, y, weights, constraint
    kept = np.flatnonzero(weights)
    return X[kept], y[kept], weights[kept], None if constraint is None else constraint.rows(kept)


def check_method(method: Declared) -> None:
    """Raise UsageError for a method that does not support sample weights."""
    if not method.weighted:
        raise UsageError(
            f"method {method.name} does not support sample weights; omit them, or use another"
            " method"
        )


def not_for_regression(class_weight: str | None) -> UsageError:
    """The error for class_weight without classes."""
    return UsageError(
        f"--class-weight is {class_weight}, but the task is regression; it is for classification"
    )


def of_rows(
    y: np.ndarray, sample_weight: ArrayLike | None = None, class_weight: ByLabel | None = None
) -> np.ndarray | None:
    """The weights (n,) of rows with the targets y (n,), without class_weight also (n, k); None if
    all are 1.

    sample_weight: (n,) numbers of 0 or more, on workers above 0, None for ones. class_weight:
    `balanced`, or {label: weight}; None for ones. Raises DataError for invalid weights,
    UsageError for a label without rows.
    """
    weights = np.ones(len(y)) if sample_weight is None else as_floats(sample_weight)
    if weights.shape != (len(y),):
        raise DataError(
            f"there are {len(np.atleast_1d(weights)):,} sample weights for {len(y):,} rows; there"
            " must be one per row"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        raise DataError(
            f"the weight of row {np.argmax(wrong) + 1} is {weights[wrong][0]:g}; weights must be 0"
            " or more"
        )
    if class_weight is not None:
        weights = weights * _by_label(y, class_weight, weights)
    if not np.any(weights > 0):
        raise DataError("all sample weights are zero; at least one must be positive")
    return None if np.all(weights == 1) else weights


def by_code(class_weight: str | None, schema: Schema | None) -> dict[float, float] | str | None:
    """The option class_weight with encoded targets instead of labels: {target: weight}, `balanced`,
    or None.

    Labels are matched by their spelling, else by their number. Raises UsageError for an unknown
    label.
    """
    if class_weight is None or class_weight == BALANCED:
        return class_weight
    by_label = LabelWeights.values(class_weight)
    labels = None if schema is None else schema.labels
    codes = (
        [labelwords.value(label) for label in by_label]
        if labels is None
        else labelwords.matched(list(by_label), labels)
    )
    weights: dict[float, float] = {}
    for (label, weight), code in zip(by_label.items(), codes):
        if code is None or (labels is not None and code < 0):
            raise _no_label(label, labels or [])
        weights[float(code)] = weight
    return weights


def _no_label(label: str, labels: Sequence[str]) -> UsageError:
    near = or_near(label, [f"{one:.40}" for one in labels[:_SHOWN]]) if labels else ""
    return UsageError(f"--class-weight has the label {label:.40}, which no row has{near}")


def _by_label(y: np.ndarray, class_weight: ByLabel, weights: np.ndarray) -> np.ndarray:
    labels, places = np.unique(y, return_inverse=True)
    if not isinstance(class_weight, str):
        return np.asarray(of_labels(labels, class_weight)[places])
    sums = np.bincount(places, weights, len(labels))
    present = sums > 0
    mean = sums.sum() / np.count_nonzero(present)
    return np.asarray(np.divide(mean, sums, out=np.zeros(len(labels)), where=present)[places])


def of_labels(
    labels: np.ndarray, by_label: Mapping[float, float], schema: Schema | None = None
) -> np.ndarray:
    """The weights (k,) of the distinct labels (k,), 1 for those that are not in {label: weight}.

    schema: of encoded labels, for messages. Raises UsageError for a label that is not among them.
    """
    factors = np.ones(len(labels))
    for label, weight in by_label.items():
        if not (labels == label).any():
            shown = [label_text(schema, one) for one in labels]
            raise _no_label(label_text(schema, label), shown)
        factors[labels == label] = weight
    return factors


def mean(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The mean (k,) of values (n, k) with weights (n,) or None."""
    return np.asarray(values.mean(axis=0) if weights is None else weights @ values / weights.sum())


def targets(Y: np.ndarray, loss: Loss, weights: np.ndarray | None) -> tuple[np.ndarray, SmoothLoss]:
    """(Y, loss) that include the weights (n,) of the rows of Y (n, k); unchanged if weights is
    None.

    The loss is typed as smooth, because callers use second derivatives of smooth losses only; hinge
    is unchanged.
    """
    smooth = cast(SmoothLoss, loss)
    if weights is None:
        return Y, smooth
    if loss.name == "squared":
        return Y * np.sqrt(weights)[:, None], smooth
    return Y * weights[:, None], Weighted(smooth)


def problem(
    Z: Inputs, Y: np.ndarray, loss: Loss, weights: np.ndarray | None
) -> tuple[Inputs, np.ndarray, SmoothLoss]:
    """(Z, Y, loss) of the same problem that include the weights (n,) of the rows of Z (n, D) and Y
    (n, k); None for ones.
    """
    if weights is not None and loss.name == "squared":
        Z = scaled_rows(Z, np.sqrt(weights))
    return Z, *targets(Y, loss, weights)


def part(weights: np.ndarray | None, rows: np.ndarray | slice) -> np.ndarray | None:
    """The weights of some of the rows; None if all are 1."""
    return None if weights is None else weights[rows]
