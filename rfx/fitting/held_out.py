"""The rows that are held out of a training: the only code that splits rows. What follows from their
predictions by models that were fitted without them: the score, calibrated probabilities, intervals
and prediction sets.

A new row is as far from its prediction as a left-out row: at least a fraction q of new rows has an
error of at most the left-out errors' value number ceil((n + 1) q) in ascending order, if rows are
exchangeable (conformal prediction: Vovk, Gammerman and Shafer 2005). The error is that of a target,
or 1 less the probability of the label. For the sets of labels each class has errors of its own, so
that a rare label is in its set as often as a common one. The error of a target is divided by the
typical error of rows with a similar prediction, where that makes intervals narrower.

Probabilities are those of the loss if it defines some. Otherwise a curve is fitted to left-out
decision values: Platt's sigmoid, with his targets between 0 and 1 (Platt 1999, equation 2), or
isotonic regression with Laplace's correction, both by scikit-learn. For several classes there is
one curve for each class against the rest, and the results are normalised to sum to 1. The
prediction of a calibrated model is its most probable label. Without a requested curve,
probabilities are the softmax of decision values, each times a slope plus an intercept of its class
(vector scaling: Guo, Pleiss, Sun and Weinberger 2017): their mean is the share of the class. Rows
that do not call for more have one slope and no intercepts. The prediction remains that of the
largest decision value, which intercepts may contradict where two labels are about equally probable:
class weights keep their effect, and a row of results does not depend on whether a model is saved,
which takes probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import expit, log_softmax, softmax

from rfx import lazy
from rfx import steps as told
from rfx.data.tabular.group_splits import Part, SplitConstraint
from rfx.data.tabular.schema import Schema, label_text
from rfx.errors import DataError, UsageError, warn
from rfx.model import read_fields
from rfx.types import JsonObject

LEAVE_ONE_OUT = "leave-one-out"
# Maximum values of a model file, and the least of those of each class.
MOST, LEAST_OF_CLASS = 1000, 100
# Kinds of requested curves.
KINDS = {
    "platt": "a sigmoid",
    "isotonic": "any increasing curve; fewer than a thousand rows get platt",
}
VECTOR_SCALING = "vector scaling"
# The penalty of differences between its slopes: on 1,500 rows of 26 letters the log-loss of new
# rows was .428 without, .423 with it; on nine sets of 3 to 10 classes it mattered less.
DRAWN_TOGETHER = 1.0
# Where the logarithm of the likelihood gains no more by them, it has no intercepts and one slope,
# and the prediction is the most probable label. On 13 tables of 29 to 1,250 left-out rows the
# log-loss of new rows was .410 without this rule, .407 with it; for two classes and a fifth of the
# rows held out, .337 and .326.
SURE = 2.0
# Minimum held-out rows of an isotonic curve.
LEAST_ROWS = 1000


def drawn(count: int, seed: int, *sizes: int) -> list[np.ndarray]:
    """For each size, that many random rows of `count`, disjoint and sorted, or those that are
    left.
    """
    order = np.random.default_rng(seed).permutation(count)
    pieces = np.split(order, np.cumsum(sizes))[: len(sizes)]
    return [np.sort(piece) for piece in pieces]


def fewer(part: Part, most: int, most_held_out: int, seed: int) -> Part:
    """At most so many rows of a part to fit and to evaluate, drawn by the seed."""
    rng = np.random.default_rng(seed)
    kept, out = (rng.permutation(rows)[:limit] for rows, limit in zip(part, (most, most_held_out)))
    return np.sort(kept), np.sort(out)


@dataclass(frozen=True)
class Splitter:
    """The ways to hold rows out. Each part is a pair (numbers of the rows to fit, held out).

    Parameters
    ----------
    count : int
        Number of rows.
    seed : int
    constraint : SplitConstraint or None
        Groups or times, which have precedence over stratification. For times the held-out rows
        follow the others.
    """

    count: int
    seed: int
    constraint: SplitConstraint | None = None

    @property
    def none(self) -> bool:
        """Whether no row can be held out because all belong to one group or time."""
        return self.constraint is not None and self.constraint.one

    def sample(self, size: int) -> Part:
        """At most so many rows to fit, and as many to evaluate."""
        if self.constraint is not None:
            return fewer(self.constraint.held_out(0.5, self.seed), size, size, self.seed)
        train, test = drawn(self.count, self.seed, size, size)
        return train, test

    def part(self, share: float, option: str) -> Part:
        """A fraction `share` of the rows is held out.

        Raises UsageError with `option` (flag and value) if either side would be empty.
        """
        if self.constraint is not None:
            if self.constraint.one:
                raise UsageError(f"{option}, which {self.constraint.lacking()}")
            return self.constraint.held_out(share, self.seed)
        cut = int(share * self.count)
        if not 0 < cut < self.count:
            least = math.ceil(1 / share)
            raise UsageError(f"{option}, which needs at least {least} rows, not {self.count}")
        out, kept = drawn(self.count, self.seed, cut, self.count - cut)
        return kept, out

    def parts(self, share: float, fewest: int, option: str) -> list[Part]:
        """`part`, or if that has fewer than `fewest` held-out rows, the 1 / share folds of a
        cross-validation.
        """
        first = self.part(share, option)
        number = round(1 / share)
        if len(first[1]) >= fewest:
            return [first]
        if self.constraint is not None:
            return self.constraint.up_to(number, self.seed)
        sizes = [len(fold) for fold in np.array_split(np.arange(self.count), number)]
        held_out = drawn(self.count, self.seed, *sizes)
        return [(np.setdiff1d(np.arange(self.count), out), out) for out in held_out]

    def folds(
        self,
        y: np.ndarray | None,
        cv: int | None = None,
        holdout: float | None = None,
        schema: Schema | None = None,
    ) -> list[Part]:
        """cv folds, or a single fraction `holdout`.

        y: labels (n,) by which folds are stratified as far as possible; None for a regression.
        schema: of the labels, for messages. For times there are cv windows, the longest first, each
        ending where its held-out rows begin. Raises DataError if there are too few rows, or a class
        has only one.
        """
        option = f"--cv {cv}" if cv else f"--holdout {holdout:g}"
        share = holdout or 0.0
        if y is not None and (self.constraint is None or not self.constraint.given):
            _check_labels(option, y, schema)
        if self.constraint is not None:
            if lacking := self.constraint.lacking(cv or 1):
                raise DataError(f"{option} {lacking}")
            if cv:
                return self.constraint.parts(cv, self.seed, y)
            return [self.constraint.held_out(share, self.seed, y)]
        of_row = self._fold_of_rows(y, cv, share)
        if len(np.unique(of_row)) < (cv or 2):
            raise DataError(f"{option} needs more rows than the {self.count} there are")
        return [(np.flatnonzero(of_row != k), np.flatnonzero(of_row == k)) for k in range(cv or 1)]

    def _fold_of_rows(self, y: np.ndarray | None, cv: int | None, share: float) -> np.ndarray:
        """The number of each row's fold; without cv it is 0 for that share of the rows, else 1."""
        order = np.random.default_rng(self.seed).permutation(self.count)
        if y is not None:
            order = order[np.argsort(y[order], kind="stable")]
        places = np.arange(self.count)
        if cv:
            fold = places % cv
        else:
            before, after = (np.floor(edge * share + 1e-9) for edge in (places, places + 1))
            fold = 1 - (after - before).astype(int)
        of_row = np.empty(self.count, int)
        of_row[order] = fold
        return of_row


def _check_labels(option: str, y: np.ndarray, schema: Schema | None) -> None:
    """Raise DataError if a label has a single row."""
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() > 1:
        return
    label = label_text(schema, labels[np.argmin(counts)])
    only = f"only 1 row has the label {label:.40}; remove that row"
    if counts.max() < 2:
        only = "every label has 1 row; is --target the column of the labels?"
    raise DataError(f"{option} needs at least two rows of each class, but {only}")


# ---------------------------------------------------------------------- their predictions


@dataclass(frozen=True)
class OutOfSamplePredictions:
    """Rows predicted without them.

    Parameters
    ----------
    decision : array, (n,) or (n, k)
        As returned by decision_function.
    y : array, (n,)
        Targets or labels.
    by : str
        How the rows were left out, in words.
    numbers : array, (n,), or None
        Ascending, of the rows among the training rows.
    folds : int or None
        In how many folds the rows were left out, if in folds.
    """

    decision: np.ndarray
    y: np.ndarray
    by: str
    numbers: np.ndarray | None = None
    folds: int | None = None


@dataclass(frozen=True)
class ErrorQuantiles:
    """The distribution of the errors of left-out rows.

    Parameters
    ----------
    values : array, (m,)
        Errors at evenly spaced ranks, ascending; the last is the largest.
    rows : int
        Number n of the errors.
    by : str
        How the rows were left out, in words.
    """

    values: np.ndarray
    rows: int
    by: str

    @classmethod
    def of(cls, errors: np.ndarray, by: str, most: int = MOST) -> ErrorQuantiles:
        """From all errors (n,), of which at most `most` are stored."""
        size = min(len(errors), most)
        places = _ranks(len(errors), size) - 1
        return cls(np.sort(errors)[places], len(errors), by)

    def _rank(self, level: float) -> int:
        return math.ceil((self.rows + 1) * level - 1e-9)

    def states(self, level: float) -> bool:
        """Whether there are enough rows for a level."""
        return 0 < self._rank(level) <= self.rows

    def at(self, level: float) -> float:
        """The error that a fraction `level` of new rows does not exceed.

        Raises
        ------
        UsageError
            For a level that so few rows can't state.
        """
        if not self.states(level):
            raise UsageError(
                f"{self.rows:,} left-out rows can't state the level {level:g}; it must be above 0"
                f" and at most {self.rows / (self.rows + 1):.4g}"
            )
        ranks = _ranks(self.rows, len(self.values))
        return float(self.values[np.searchsorted(ranks, self._rank(level))])

    def to_dict(self) -> JsonObject:
        """For the header of a model file."""
        return {"values": self.values.tolist(), "rows": self.rows, "by": self.by}

    @classmethod
    def from_dict(cls, saved: JsonObject) -> ErrorQuantiles:
        """Read from a model file's header."""
        found = read_fields(cls, saved)
        return replace(found, values=np.array(found.values, float))


def _ranks(count: int, size: int) -> np.ndarray:
    """The ranks, from 1 on, of that many evenly spaced ones of so many errors."""
    if not size:
        return np.zeros(0, int)
    return -(-np.arange(1, size + 1) * count // size)


# The pieces of an error scale, the least rows of one, and its smallest error as a fraction of the
# mean error. On 16 sets with 1,500 rows, 16 pieces gave no better coverage of quarters than 8.
PIECES, ROWS_OF_PIECE, SMALLEST = 8, 100, 1e-3
# The level by whose intervals an error scale is chosen; the folds of its own left-out rows.
LEVEL, FOLDS = 0.9, 5


@dataclass(frozen=True)
class ErrorScale:
    """The typical error of a prediction: linear between the means of pieces, constant beyond.

    Parameters
    ----------
    predictions : array, (pieces,)
        Ascending.
    errors : array, (pieces,)
        Positive.
    """

    predictions: np.ndarray
    errors: np.ndarray

    @classmethod
    def fit(cls, predicted: np.ndarray, errors: np.ndarray) -> ErrorScale:
        """From predictions (n,) and the errors (n,) of left-out rows, in pieces of equally many
        rows with similar predictions.
        """
        count = max(1, min(PIECES, len(errors) // ROWS_OF_PIECE))
        pieces = np.array_split(np.argsort(predicted, kind="stable"), count)
        means = np.array([errors[piece].mean() for piece in pieces])
        centres = np.array([predicted[piece].mean() for piece in pieces])
        # several pieces may have one prediction
        centres, first = np.unique(centres, return_index=True)
        return cls(centres, np.maximum(means, SMALLEST * errors.mean())[first])

    @classmethod
    def narrower(
        cls, predicted: np.ndarray, errors: np.ndarray
    ) -> tuple[ErrorScale | None, np.ndarray]:
        """The scale of such rows, and their errors (n,) divided by it; None, and the errors, if
        intervals of equal width are narrower on average.

        The errors of each fold are divided by the scale of the others, so that new rows are as far
        from their predictions.
        """
        if len(errors) < 2 * ROWS_OF_PIECE or not errors.any():
            return None, errors
        typical = np.empty(len(errors))
        order = np.random.default_rng(0).permutation(len(errors))
        for fold in np.array_split(order, FOLDS):
            others = np.setdiff1d(order, fold)
            scale = cls.fit(predicted[others], errors[others])
            typical[fold] = scale.at(predicted[fold])
        scaled = errors / typical
        width, constant = (ErrorQuantiles.of(each, "").at(LEVEL) for each in (scaled, errors))
        if width * typical.mean() >= constant:
            return None, errors
        return cls.fit(predicted, errors), scaled

    def at(self, predicted: np.ndarray) -> np.ndarray:
        """The typical errors (n,) of predictions (n,)."""
        return np.interp(predicted, self.predictions, self.errors)

    def to_dict(self) -> JsonObject:
        """For the header of a model file."""
        return {"predictions": self.predictions.tolist(), "errors": self.errors.tolist()}

    @classmethod
    def from_dict(cls, saved: JsonObject) -> ErrorScale:
        """Read from a model file's header."""
        found = read_fields(cls, saved)
        predictions = np.array(found.predictions, float)
        errors = np.array(found.errors, float)
        return cls(predictions, errors)


# ---------------------------------------------------------------------- probabilities


@dataclass
class Calibration:
    """kind: one of KINDS, or VECTOR_SCALING; rows: number of held-out rows used for fitting; by:
    how these were held out, in words.

    curves: for each output (platt, vector scaling) slope and intercept, (isotonic) increasing
    decision values and their probabilities.
    """

    kind: str
    rows: int
    by: str
    curves: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def fit(
        cls,
        kind: str,
        decision: np.ndarray,
        y: np.ndarray,
        classes: np.ndarray,
        by: str,
        schema: Schema | None = None,
    ) -> Calibration:
        """Learn from decision values (n,) or (n, classes) of held-out rows with labels y (n,).

        classes: the models' labels, ascending. by: how the rows were held out. schema: of the
        labels, for messages. Fewer than `LEAST_ROWS` rows get a sigmoid, with a warning. Raises
        DataError if one of two outcomes never occurs.
        """
        if kind == "isotonic" and len(y) < LEAST_ROWS:
            warn(
                f"--calibrate isotonic needs {LEAST_ROWS:,} held-out rows, but there are only"
                f" {len(y):,}; the probabilities are by platt"
            )
            kind = "platt"
        if kind == VECTOR_SCALING:
            slopes, intercepts = vector_scaling(decision, np.searchsorted(classes, y))
            return cls(kind, len(y), by, list(zip(slopes[:, None], intercepts[:, None])))
        columns = decision[:, None] if decision.ndim == 1 else decision
        labels = classes[-1:] if decision.ndim == 1 else classes
        curves = []
        for values, label in zip(columns.T, labels, strict=True):
            hit = y == label
            if hit.all() or not hit.any():
                share = "all" if hit.all() else "none"
                raise DataError(
                    f"probabilities can't be calibrated: {share} of the held-out rows are"
                    f" {label_text(schema, label):.40}"
                )
            curves.append(_platt(values, hit) if kind == "platt" else _isotonic(values, hit))
        return cls(kind, len(y), by, curves)

    def probabilities(self, decision: np.ndarray) -> np.ndarray:
        """(n, classes) probabilities from decision values (n,) or (n, classes)."""
        if self.kind == VECTOR_SCALING and decision.ndim == 2:
            return np.asarray(softmax(self._scaled(decision), axis=1))
        columns = decision[:, None] if decision.ndim == 1 else decision
        if self.kind != "isotonic":
            return of_all(expit(self._scaled(columns)))
        each = [np.interp(values, *own) for values, own in zip(columns.T, self.curves, strict=True)]
        return of_all(np.stack(each, axis=1))

    def _slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """The slopes and intercepts (outputs,) of sigmoids, or of vector scaling."""
        slopes, intercepts = np.array(self.curves).reshape(-1, 2).T
        return slopes, intercepts

    def _scaled(self, columns: np.ndarray) -> np.ndarray:
        slopes, intercepts = self._slopes()
        return columns * slopes + intercepts

    def steps(self, outputs: int) -> told.Steps:
        """The computation steps from so many decision values to a probability for each of them."""
        if self.kind != "isotonic":
            slopes, intercepts = self._slopes()
            several = self.kind == VECTOR_SCALING and outputs > 1
            last = told.Softmax() if several else told.Function("sigmoid")
            return told.linear(np.diag(slopes), intercepts), last
        curves = []
        for first, second in self.curves:
            knots, places = np.unique(first, return_index=True)
            curves.append((knots, *[second[places]] * 3))
        return (told.Interpolate.of(curves),)

    def words(self) -> str:
        """A description in words."""
        return f"{self.kind} on {self.rows:,} rows, {self.by}"

    def to_dict(self) -> JsonObject:
        """For the header of a model file."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "by": self.by,
            "curves": [[first.tolist(), second.tolist()] for first, second in self.curves],
        }

    @classmethod
    def from_dict(cls, saved: JsonObject, outputs: int) -> Calibration:
        """Read from a model file's header; raises DataError if it is not a result of `to_dict` for
        so many outputs.
        """
        found = read_fields(cls, saved)
        curves = [(np.array(a, float), np.array(b, float)) for a, b in found.curves]
        sound = (len(a) == len(b) and np.isfinite([a, b]).all() for a, b in curves)
        is_known = found.kind in (*KINDS, VECTOR_SCALING)
        if not is_known or len(curves) != outputs or not all(sound):
            raise DataError("its calibration is damaged")
        return replace(found, curves=curves)


def vector_scaling(decision: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slopes and intercepts (outputs,) with the largest likelihood of the labels'
    numbers (n,), given decision values (n,) or (n, classes); one slope without intercepts where the
    rows do not call for more.

    No slope is negative, so that a larger decision value never makes its class less probable. As in
    Platt's targets, each label is uncertain by one more row of every class, so that decision values
    that separate the labels do not make any certain. The intercepts make the mean probability of
    each class its share of such targets.
    """
    two = decision.ndim == 1
    # of two classes, the first has the decision value 0
    values = np.stack([0 * decision, decision], axis=1) if two else decision
    rows, count = values.shape
    unit = float(np.abs(decision).mean()) or 1.0
    targets = np.full((rows, count), 1 / (rows + 2) / count)
    targets[np.arange(rows), codes] += 1 - 1 / (rows + 2)
    values = values / unit

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        slopes, intercepts = np.split(parameters, 2)
        logarithms = log_softmax(slopes * values + intercepts, axis=1)
        deviations = slopes - slopes.mean()
        excess = np.exp(logarithms) - targets
        value = DRAWN_TOGETHER / 2 * np.sum(deviations**2) - np.sum(targets * logarithms)
        of_slopes = np.sum(excess * values, axis=0) + DRAWN_TOGETHER * deviations
        return value / rows, np.concatenate([of_slopes, excess.sum(axis=0)]) / rows

    def of_one_slope(slope: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(np.repeat([slope[0], 0.0], count))
        return value, gradient[:count].sum(keepdims=True)

    search = partial(
        lazy.optimize.minimize,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-8},
    )
    alike = search(of_one_slope, [1.0], bounds=[(0, None)])
    same = np.repeat([alike.x[0], 0.0], count)
    bounds = [(0, None)] * count + [(None, None)] * count
    found = search(loss, same, bounds=bounds)
    is_better = rows * (alike.fun - found.fun) > SURE
    slopes, intercepts = np.split(found.x if is_better else same, 2)
    if two:
        return slopes[1:] / unit, np.diff(intercepts)
    return slopes / unit, intercepts


def _platt(values: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and intercept of the sigmoid: logistic regression with each row used for both outcomes,
    weighted by Platt's target.
    """
    # the solver works best with numbers of magnitude one
    scale = float(np.abs(values).max()) or 1.0
    n_hits = hit.sum()
    n_misses = (~hit).sum()
    target = np.where(hit, (n_hits + 1) / (n_hits + 2), 1 / (n_misses + 2))
    both = np.concatenate([values, values])[:, None] / scale
    outcomes = np.repeat([1, 0], len(values))
    row_weights = np.concatenate([target, 1 - target])
    model = lazy.linear_model.LogisticRegression(C=1e10, tol=1e-8, max_iter=1000)
    model.fit(both, outcomes, sample_weight=row_weights)
    return model.coef_.ravel() / scale, model.intercept_


def _isotonic(values: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The thresholds of an isotonic regression, and its probabilities.

    The share of hits among the rows of a step has Laplace's correction, (hits + 1) / (rows + 2): a
    step without hits does not make them impossible. The corrected shares are made increasing again.
    """
    regression = lazy.isotonic.IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    shares = regression.fit_transform(values, hit.astype(float))
    _, step, sizes = np.unique(shares, return_inverse=True, return_counts=True)
    rows = sizes[step]
    curve = regression.fit(values, (shares * rows + 1) / (rows + 2))
    return curve.X_thresholds_.astype(np.float64), curve.y_thresholds_.astype(np.float64)


def of_all(found: np.ndarray) -> np.ndarray:
    """(n, classes) from the probabilities of the larger of two classes (n, 1), or of each class
    against the rest.
    """
    if found.shape[1] == 1:
        return np.hstack([1 - found, found])
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1 / found.shape[1])
