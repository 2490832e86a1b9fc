"""Measures of predictions.

A measure is an entry of MEASURES with the function that computes it. `rfx eval` and `--fail-below`
then know it, and, if it has a number for each row, also `--measure` of `rfx train` and `rfx tune`,
`rfx explain` and the scores of simple models.

References
----------
.. [1] DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver
   Operating Characteristic Curves", Biometrics 44, 1988.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rfx import lazy

if TYPE_CHECKING:
    import numpy as np

# What the numbers of a measure are: between 0 and 1, in the unit of the target, or neither.
SHARE, OF_TARGET, PLAIN = "share", "of the target", "plain"


@dataclass(frozen=True)
class LabelledRows:
    """Rows with a label, and what a classifier says of them.

    Attributes
    ----------
    classes : array, (k,)
        The labels that the model knows, ascending.
    y, predicted : array, (n,)
        The labels of the rows, and the predicted ones.
    values : array, (n,) or (n, k)
        Numbers that grow with the probability of the larger of two classes, or of each class;
        probabilities (n, k) for a measure that needs them.
    weights : array, (n,), or None
        None for ones.
    """

    classes: np.ndarray
    y: np.ndarray
    predicted: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None = None

    @property
    def are_known(self) -> bool:
        """Whether the model knows the labels of all rows, of at least two classes."""
        return len(self.classes) > 1 and lazy.numpy.isin(self.y, self.classes).all()

    def codes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(labels, codes of y, codes of the predicted labels): `labels` are ascending, of the model
        and of the rows.

        scikit-learn takes labels such as 0.1 for regression targets, but not their codes.
        """
        numpy = lazy.numpy
        labels = numpy.unique(numpy.concatenate([self.classes, self.y]))
        return labels, *(numpy.searchsorted(labels, each) for each in (self.y, self.predicted))


@dataclass(frozen=True)
class Measure:
    """A measure of predictions.

    Attributes
    ----------
    title : str
        Its heading in the output of `rfx eval`; its word elsewhere is its key in MEASURES.
    error : str
        What is made small, in words: the measure if less of it is better, otherwise 1 minus it.
    of_rows : function of LabelledRows, optional
        (n,) numbers whose mean, weighted if the rows are, is the measure; None if it is undefined
        for these rows. Two models can then be compared on the same rows, and options chosen.
    of_labels : function of LabelledRows, optional
        The measure, if it is no such mean.
    of_numbers : function of (y, predicted), optional
        The measure of numeric targets (n,), or of each target (n, targets): a number, or
        (targets,); None if it is undefined.
    error_of_choice : str
        Other words for `error` in the report of a choice.
    weighted : function of LabelledRows, optional
        The measure of weighted rows, where it is no weighted mean of `of_rows`.
    less_is_better : bool
    needs_probabilities : bool
    unit : str
        SHARE, OF_TARGET or PLAIN.
    """

    title: str
    error: str
    of_rows: Callable[[LabelledRows], np.ndarray | None] | None = None
    of_labels: Callable[[LabelledRows], float] | None = None
    of_numbers: Callable[[np.ndarray, np.ndarray], Any] | None = None
    error_of_choice: str = ""
    weighted: Callable[[LabelledRows], float] | None = None
    less_is_better: bool = False
    needs_probabilities: bool = False
    unit: str = SHARE

    def choice_error(self, rows: LabelledRows) -> float:
        """The error by which options are chosen; 1 if the measure is undefined for the rows."""
        assert self.of_rows is not None
        if self.weighted is not None:
            return 1 - self.weighted(rows)
        scores = self.of_rows(rows)
        if scores is None:
            return 1.0
        score = float(lazy.numpy.average(scores, weights=rows.weights))
        return score if self.less_is_better else 1 - score


# ---------------------------------------------------------------------- of classes


def _right(rows: LabelledRows) -> np.ndarray:
    """Whether the label of each row is correct."""
    return (rows.predicted == rows.y).astype(float)


def _balanced(rows: LabelledRows) -> np.ndarray:
    """The same, times a factor that makes all labels count alike."""
    numpy = lazy.numpy
    _, codes = numpy.unique(rows.y, return_inverse=True)
    counts = numpy.bincount(codes, rows.weights)
    return _right(rows) * (counts.sum() / (len(counts) * counts))[codes]


def _f1(rows: LabelledRows) -> float:
    """F1 of the larger of two labels; of several labels, or of rows with labels that the model does
    not know, the mean over all.
    """
    labels, codes, predicted = rows.codes()
    counted = lazy.numpy.arange(len(labels))
    if len(labels) == len(rows.classes) == 2:
        counted = counted[-1:]
    score = lazy.metrics.f1_score
    return float(score(codes, predicted, labels=counted, average="macro", zero_division=0))


def _areas_of_rows(rows: LabelledRows) -> np.ndarray | None:
    """The AUC, of several classes the mean of each against the rest, plus the row's influence on
    it: the variance of the mean is that of DeLong et al. [1]_.
    """
    each = [_areas(positive, values) for positive, values in _one_against_rest(rows)]
    return lazy.numpy.mean(each, axis=0) if each else None


def _weighted_area(rows: LabelledRows) -> float:
    """The AUC of weighted rows; 1/2 if it is undefined."""
    score = lazy.metrics.roc_auc_score
    areas = [score(*pair, sample_weight=rows.weights) for pair in _one_against_rest(rows)]
    return float(lazy.numpy.mean(areas)) if areas else 0.5


def _one_against_rest(rows: LabelledRows) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each class that has some of the rows but not all, whether a row is of this class, and its
    value for the class; of two classes, for the larger one only. Empty if the model does not know a
    label.
    """
    if not rows.are_known:
        return []
    labels = rows.classes[-1:] if len(rows.classes) == 2 else rows.classes
    columns = rows.values.reshape(len(rows.y), -1).T[-len(labels) :]
    pairs = [(rows.y == label, column) for label, column in zip(labels, columns, strict=True)]
    return [pair for pair in pairs if 0 < pair[0].sum() < len(rows.y)]


def _areas(positive: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(n,) numbers whose mean is the AUC of the values for the positive rows."""
    numpy, rankdata = lazy.numpy, lazy.stats.rankdata
    ranks, shares = rankdata(values), numpy.empty(len(values))
    n_positive, n_negative = positive.sum(), (~positive).sum()
    # of the rows of the other class, those that are ordered correctly, ties by half
    above = ranks[positive] - rankdata(values[positive])
    shares[positive] = above / n_negative
    below = ranks[~positive] - rankdata(values[~positive])
    shares[~positive] = 1 - below / n_positive
    area = float(shares[positive].mean())
    own_class = numpy.where(positive, n_positive, n_negative)
    return area + (shares - area) * len(values) / own_class


def _log_losses(rows: LabelledRows) -> np.ndarray | None:
    """The negative logarithm of the probability of each row's label."""
    if not rows.are_known:
        return None
    numpy = lazy.numpy
    codes = numpy.searchsorted(rows.classes, rows.y)
    likely = rows.values[numpy.arange(len(codes)), codes]
    return -numpy.log(numpy.maximum(likely, numpy.finfo(float).eps))


# ---------------------------------------------------------------------- of numbers


def root_mean_square(errors: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Of all errors, or along an axis: the RMSE of predictions that are wrong by so much."""
    return lazy.numpy.sqrt((errors**2).mean(axis=axis))


def _rmse(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return root_mean_square(predicted - y, axis=0)


def _mae(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return abs(predicted - y).mean(axis=0)


def _r2(y: np.ndarray, predicted: np.ndarray) -> np.ndarray | None:
    """The share of the variance of the targets that the predictions explain."""
    spread = (y - y.mean(axis=0)) ** 2
    if not spread.any(axis=0).all():
        return None
    return 1 - ((predicted - y) ** 2).sum(axis=0) / spread.sum(axis=0)


# By their words in options, rows of results and JSON, in the order in which they are printed.
MEASURES = {
    "accuracy": Measure(
        "accuracy", "error rate", of_rows=_right, error_of_choice="share of wrong labels"
    ),
    "balanced_accuracy": Measure(
        "balanced accuracy",
        "1 - balanced accuracy",
        of_rows=_balanced,
        error_of_choice="mean share of wrong labels of the classes",
    ),
    "f1": Measure("F1", "1 - F1", of_labels=_f1),
    "auc": Measure("AUC", "1 - AUC", of_rows=_areas_of_rows, weighted=_weighted_area),
    "log_loss": Measure(
        "log-loss",
        "log-loss",
        of_rows=_log_losses,
        less_is_better=True,
        needs_probabilities=True,
        unit=PLAIN,
    ),
    "rmse": Measure("RMSE", "RMSE", of_numbers=_rmse, less_is_better=True, unit=OF_TARGET),
    "mae": Measure("MAE", "MAE", of_numbers=_mae, less_is_better=True, unit=OF_TARGET),
    "r2": Measure("R2", "1 - R2", of_numbers=_r2, unit=PLAIN),
}
# Those by which options can be chosen and models compared.
ROW_MEASURES = {name: measure for name, measure in MEASURES.items() if measure.of_rows}
# Those that can be the score of a model.
SCORES = {**ROW_MEASURES, "rmse": MEASURES["rmse"]}


@dataclass(frozen=True)
class MeasuredScores:
    """The values of every measure that is defined for some predictions.

    Attributes
    ----------
    values : dict
        By the name of the measure.
    by_target : dict
        Of several targets per row: the values of all targets, by the name of the measure.
    labels : list or None
        The labels of the confusion matrix; None for a regression.
    confusion : list or None
        Numbers of rows: true labels by predicted labels.
    """

    values: dict[str, float]
    by_target: dict[str, list[float]] = field(default_factory=dict)
    labels: list[object] | None = None
    confusion: list[list[int]] | None = None

    def as_dict(self) -> dict[str, object]:
        """The entries of a results row: JSON serialisable."""
        found: dict[str, object] = {}
        for name in MEASURES:
            if name in self.values:
                found[name] = self.values[name]
            if name in self.by_target:
                found[f"{name}_by_target"] = self.by_target[name]
        if self.labels is not None:
            found |= {"labels": self.labels, "confusion": self.confusion}
        return found


def less_is_better(name: str | None) -> bool:
    """Whether less of a measure is better; False for a name that is none."""
    return name in MEASURES and MEASURES[name].less_is_better


def unit_of(name: str | None) -> str | None:
    """The unit of a measure; None for a name that is none."""
    return MEASURES[name].unit if name in MEASURES else None
