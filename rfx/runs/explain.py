"""Explain the predictions of a model: permutation importance and partial dependence of the original
columns, each of which may have become several inputs.

Importance is that of Breiman [1]_, partial dependence that of Friedman [2]_.

References
----------
.. [1] Breiman, "Random Forests", Machine Learning 45, 2001.
.. [2] Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics
   29(5), 2001.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import stdtrit

from rfx import lazy
from rfx.data import splits
from rfx.data.tabular.number_formats import ORIGIN
from rfx.data.tabular.schema import Input, label_text
from rfx.errors import UsageError, or_near
from rfx.fitting.pipeline import Pipeline
from rfx.measures import SCORES, less_is_better, root_mean_square
from rfx.runs.evaluation import row_scores, score_of
from rfx.types import Inputs

# Minimum shuffles of a column for an interval.
LEAST_REPEATS = 10
# Maximum columns shuffled if none are named.
MOST_COLUMNS = 500
# Points of a grid, its first and last quantiles, and maximum levels of a category.
POINTS = 20
ENDS = (0.05, 0.95)
MOST_LEVELS = 12
CONFIDENCE = 0.95
_ROLE = 71  # the streams of random numbers for rows and shuffles


@dataclass(frozen=True)
class Column:
    """An original column of the rows.

    Attributes
    ----------
    name : str
    start, stop : int
        The inputs created from it.
    source : Input or None
        How they are created; None for a number that is an input itself.
    """

    name: str
    start: int
    stop: int
    source: Input | None = None

    @property
    def kind(self) -> str:
        """`categories`, `dates` or `numbers`."""
        if self.source is not None and self.source.categories is not None:
            return "categories"
        return "numbers" if self.stop - self.start == 1 else "dates"


@dataclass(frozen=True)
class Importance:
    """The importance of a column.

    Attributes
    ----------
    name : str
    mean : float
        The mean increase of the error over the shuffles.
    low, high : float
        The interval around it; see `interval`.
    rises : list of float
        The increase at each shuffle.
    share : float or None
        Its share of the learnt metric, None without one.
    """

    name: str
    mean: float
    low: float
    high: float
    rises: list[float]
    share: float | None


@dataclass(frozen=True)
class Dependence:
    """The mean response when all rows have the same value in one column.

    Attributes
    ----------
    name : str
    kind : str
        See `Column.kind`.
    grid : list of float or str
        The values: numbers, dates as text, or categories.
    means : array, (points, outputs)
    """

    name: str
    kind: str
    grid: list[float] | list[str]
    means: np.ndarray


@dataclass(frozen=True)
class Explanation:
    """The results of `explain`.

    Attributes
    ----------
    metric : str
        The name of the error.
    error : float
        Its value for the original rows.
    n_rows, n_given : int
        Rows used, and rows available.
    repeats, seed : int
        Shuffles per column, and the seed of the rows and the shuffles.
    response : str
        What the `dependences` average.
    outputs : list of str
        The names of the outputs, the classes for classification.
    importances : list of Importance
        The largest mean first.
    dependences : list of Dependence
        For the first columns among these.
    n_columns : int
        Total number of columns; only some are shuffled if there are very many.
    """

    metric: str
    error: float
    n_rows: int
    n_given: int
    repeats: int
    seed: int
    response: str
    outputs: list[str]
    importances: list[Importance]
    dependences: list[Dependence]
    n_columns: int

    def widest(self, count: int) -> list[int]:
        """The ascending positions of the outputs whose means vary most along a column."""
        if len(self.outputs) <= count or not self.dependences:
            return list(range(len(self.outputs)))
        ranges = np.max(
            [np.ptp(one.means, axis=0) for one in self.dependences if len(one.grid)], axis=0
        )
        return sorted(np.argsort(-ranges, kind="stable")[:count].tolist())


def explain(
    model: Pipeline,
    X: Inputs,
    y: np.ndarray,
    rows: int = 2000,
    repeats: int = LEAST_REPEATS,
    top: int = 4,
    columns: Sequence[str] = (),
    seed: int = 0,
    report: Callable[[int, int, str], None] = lambda done, total, words: None,
) -> Explanation:
    """Permutation importance and partial dependence on raw rows, preferably held-out ones.

    Parameters
    ----------
    model : Pipeline
    X : array or CSR matrix, (n, d)
        Inputs encoded by the model's schema.
    y : array, (n,) or (n, targets)
    rows : int
        Maximum number of rows, drawn by the seed.
    repeats : int
        Shuffles per column.
    top : int
        Columns whose partial dependence is computed.
    columns : sequence of str
        The columns to shuffle, by name or by number from 1; empty for all.
    seed : int
    report : function of (done, total, words)
        Receives the progress.

    Raises
    ------
    DataError
        If no label is the model's.
    UsageError
        For columns that do not exist.
    """
    kept = splits.draw(X.shape[0], min(rows, X.shape[0]), seed, _ROLE)
    used = _Rows(model, X[kept], np.asarray(y, np.float64)[kept])
    every = columns_of(model)
    shares = model.importances()
    chosen = _named(every, columns) if columns else _most(used, every, shares)
    importances: list[tuple[Importance, Column]] = []
    for place in chosen:
        name = every[place].name
        done = len(importances) * repeats
        report(done, len(chosen) * repeats, name)
        rises = used.rises(every[place], repeats, (seed, _ROLE, place))
        share = None if shares is None else float(shares[place])
        importances.append((Importance(name, *interval(rises), rises, share), every[place]))
    importances.sort(key=lambda pair: -pair[0].mean)
    dependences = []
    first = importances[:top]
    for number, (_, column) in enumerate(first):
        report(number, len(first), "partial dependence")
        dependences.append(used.dependence(column))
    return Explanation(
        SCORES[used.measure].error,
        used.error,
        len(kept),
        X.shape[0],
        repeats,
        seed,
        *response_of(model),
        [one for one, _ in importances],
        dependences,
        len(every),
    )


def columns_of(model: Pipeline) -> list[Column]:
    """The columns of the rows that a model accepts, in the order of their inputs."""
    inputs = None if model.schema is None else model.schema.inputs
    if inputs is None:
        return [Column(name, place, place + 1) for place, name in enumerate(model.input_names())]
    ends = np.cumsum([column.width for column in inputs]).tolist()
    return [
        Column(column.name, end - column.width, end, column) for column, end in zip(inputs, ends)
    ]


def measure_of(model: Pipeline, decision: np.ndarray, y: np.ndarray) -> str:
    """The measure by which the options of a model were chosen; accuracy where the rows or the model
    do not define it.
    """
    if model.task == "regression":
        return "rmse"
    name = str(model.method.get("measure") or "accuracy")
    return "accuracy" if row_scores(name, model, decision, y) is None else name


def error(model: Pipeline, decision: np.ndarray, y: np.ndarray, measure: str) -> float:
    """The error of decision values by one of SCORES; for several targets in the unit of the
    score.
    """
    if measure == "rmse":
        labels = model.labels(decision)
        scaler = model.target_scaler
        unit = 1.0 if labels.ndim == 1 or scaler is None else scaler.unit
        return float(root_mean_square((labels - y) / unit))
    rows = row_scores(measure, model, decision, y)
    assert rows is not None
    score = score_of(measure, rows)
    return score if less_is_better(measure) else 1 - score


def interval(rises: Sequence[float]) -> tuple[float, float, float]:
    """The mean of the increases (r,) of an error, and the bounds of its interval.

    If a column is uninformative, the original rows are equivalent to a shuffle. The increase is
    then the mean of r shuffles minus another, with standard deviation s sqrt(1 + 1/r), where s is
    that of a shuffle. The interval uses the 95 % quantile of Student's t with r - 1 degrees of
    freedom: for 95 of 100 such columns it contains 0.
    """
    count = len(rises)
    mean = float(np.mean(rises))
    deviation = float(np.std(rises, ddof=1))
    half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * deviation * math.sqrt(1 + 1 / count)
    return mean, mean - half, mean + half


def shuffle(n: int, *key: int) -> np.ndarray:
    """A random order of range(n) determined by the key."""
    return np.argsort(splits.generator(*key).bit_generator.random_raw(n), kind="stable")


def response_of(model: Pipeline) -> tuple[str, list[str]]:
    """The quantity averaged by partial dependence, in words, and the names of its outputs.

    Two classes have one output, that of the larger label.
    """
    if model.classes is None:
        targets = 1 if model.target_scaler is None else np.size(model.target_scaler.shift)
        return "prediction", [""] if targets == 1 else [f"target {k + 1}" for k in range(targets)]
    labels = [label_text(model.schema, label) for label in model.classes]
    words = "probability" if model.has_probabilities else "decision value"
    return words, labels[-1:] if len(labels) <= 2 else labels


def _responses(model: Pipeline, decision: np.ndarray) -> np.ndarray:
    """(n, outputs) of the quantity named by `response_of`, from decision values."""
    if model.classes is None:
        decision = model.labels(decision)
    elif model.has_probabilities:
        decision = model.probabilities(decision)
        decision = decision[:, -1:] if len(model.classes) <= 2 else decision
    return decision.reshape(len(decision), -1)


def _named(columns: Sequence[Column], names: Sequence[str]) -> list[int]:
    """The positions of the requested columns, by name or by number from 1."""
    places = {str(place + 1): place for place in range(len(columns))}
    places |= {column.name: place for place, column in enumerate(columns)}
    for name in names:
        if name not in places:
            near = or_near(name, [column.name for column in columns], "its columns are")
            raise UsageError(
                f"--columns has {name!r:.80}, which is not a column of the model{near:.400}"
            )
    return list(dict.fromkeys(places[name] for name in names))


def _most(rows: "_Rows", columns: Sequence[Column], shares: np.ndarray | None) -> list[int]:
    """The positions of all columns; if there are very many, of those with the largest share of the
    learnt metric, else of those whose scaled values vary most.
    """
    if len(columns) <= MOST_COLUMNS:
        return list(range(len(columns)))
    if shares is None:
        scaled = rows.model.preprocessing.rows(rows.X)
        scaled = scaled if scaled.shape[1] == rows.X.shape[1] else rows.X
        spread = lazy.preprocessing.StandardScaler(with_mean=False).fit(scaled).var_
        shares = np.array([spread[one.start : one.stop].sum() for one in columns])
    return sorted(np.argsort(-shares, kind="stable")[:MOST_COLUMNS].tolist())


class _Rows:
    """The rows, and the model's error and response when one column changes."""

    def __init__(self, model: Pipeline, X: Inputs, y: np.ndarray):
        self.model, self.X, self.y = model, X, y
        model.preprocessing.warn_of_unknown(y)
        decision = model.decision_function(X)
        model.evaluate(decision, y)  # raises an error if none of the labels is the model's
        self.measure = measure_of(model, decision, y)
        self.error = error(model, decision, y, self.measure)

    def rises(self, column: Column, repeats: int, key: tuple[int, ...]) -> list[float]:
        """The increase of the error at each shuffle of a column."""
        block = self._block(column)
        if (block == block[0]).all():
            return [0.0] * repeats
        orders = (shuffle(len(block), *key, repeat) for repeat in range(repeats))
        decisions = (self._decision(column, block[order]) for order in orders)
        errors = (error(self.model, decision, self.y, self.measure) for decision in decisions)
        return [one - self.error for one in errors]

    def dependence(self, column: Column) -> Dependence:
        """The mean response at each value of a grid over a column."""
        block = self._block(column)
        grid, values = _GRIDS[column.kind](column, block)
        each = (self._decision(column, np.broadcast_to(value, block.shape)) for value in values)
        means = [_responses(self.model, decision).mean(axis=0) for decision in each]
        width = len(response_of(self.model)[1])
        return Dependence(column.name, column.kind, grid, np.array(means).reshape(-1, width))

    def _block(self, column: Column) -> np.ndarray:
        """(n, width) the inputs of a column."""
        block = self.X[:, column.start : column.stop]
        return block.toarray() if sp.issparse(block) else np.asarray(block)

    def _decision(self, column: Column, block: np.ndarray) -> np.ndarray:
        """The decision values of the rows with other inputs (n, width) of a column."""
        parts = self.X[:, : column.start], block, self.X[:, column.stop :]
        joined = sp.hstack(parts, format="csr") if sp.issparse(self.X) else np.hstack(parts)
        return self.model.decision_function(joined)


def _quantiles(values: np.ndarray) -> np.ndarray:
    """All distinct values if these are few, else a grid of quantiles.

    Where quantiles coincide, because one value is frequent, those of the distinct values join them.
    """
    distinct = np.unique(values)
    if len(distinct) <= POINTS:
        return distinct
    grid = np.unique(np.quantile(values, _SHARES))
    more = [] if len(grid) == POINTS else np.quantile(distinct, _SHARES)
    return np.union1d(grid, more)


_SHARES = np.linspace(*ENDS, POINTS)


def _of_numbers(column: Column, block: np.ndarray) -> tuple[list[Any], np.ndarray]:
    grid = _quantiles(block[:, 0])
    return grid.tolist(), grid[:, None]


def _of_dates(column: Column, block: np.ndarray) -> tuple[list[Any], np.ndarray]:
    assert column.source is not None and column.source.form is not None
    days = np.unique(np.floor(_quantiles(block[:, -1])))
    texts = np.datetime64(ORIGIN) + days.astype(np.int64)
    return [str(text) for text in texts], column.source.form.spread(days)


def _of_categories(column: Column, block: np.ndarray) -> tuple[list[float] | list[str], np.ndarray]:
    """The most frequent categories, in the model's order. Categories with the same target mean are
    merged.
    """
    source = column.source
    assert source is not None and source.categories is not None
    every = np.arange(len(source.categories))
    coded = np.eye(len(every)) if source.means is None else source.means.of(every)
    names: dict[bytes, list[str]] = {}
    for word, inputs in zip(source.categories, coded + 0.0):
        names.setdefault(inputs.tobytes(), []).append(word)
    different, counts = np.unique(block + 0.0, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable").tolist()
    rows = {different[place].tobytes(): different[place] for place in order}
    kept = [own for own in rows if own in names][:MOST_LEVELS]
    kept.sort(key=list(names).index)
    merged = [names[own] for own in kept]
    texts = [f"{one[0]} and {len(one) - 1} more" if len(one) > 1 else one[0] for one in merged]
    return texts, np.array([rows[own] for own in kept])


_GRIDS = {"numbers": _of_numbers, "dates": _of_dates, "categories": _of_categories}
