"""A trained model as a program, and functions missing from some languages."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from scipy.special import ndtri

from rfx import steps as told
from rfx._version import __version__
from rfx.data.tabular import schema
from rfx.data.transforms import EDGE
from rfx.errors import UsageError
from rfx.fitting.pipeline import Pipeline

# ----------------------------------------------------------------------
# Functions missing from some languages, as polynomials with float64 accuracy.

# Beyond that distance of a probability from 1/2, the normal quantile is a polynomial of the square
# root of the tail's logarithm.
CENTRAL = 0.4
# Coefficients for an error of about 1e-13.
_TERMS = 26


@dataclass(frozen=True)
class Polynomial:
    """A smooth function of t in low .. high; coefficients: in ascending powers of u in -1 .. 1,
    where t = middle + half u.
    """

    low: float
    high: float
    coefficients: np.ndarray


def _fitted(function: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> Polynomial:
    """The polynomial of a smooth function, from interpolation at Chebyshev nodes."""
    series = np.polynomial.Chebyshev.interpolate(function, _TERMS - 1, domain=[low, high])
    return Polynomial(low, high, np.polynomial.chebyshev.cheb2poly(series.coef))


@dataclass(frozen=True)
class Polynomials:
    """See `normal_quantile` and `arccos` of the writers for their use."""

    central: Polynomial
    tail: Polynomial
    arccos: Polynomial


@cache
def polynomials() -> Polynomials:
    tail_start = math.sqrt(-math.log(0.5 - CENTRAL))
    tail_end = math.sqrt(-math.log(EDGE / 2))
    return Polynomials(
        central=_fitted(_central, 0.0, CENTRAL**2),
        tail=_fitted(_tail, tail_start, tail_end),
        arccos=_fitted(_arccos, 0.0, 1.0),
    )


def _central(t: np.ndarray) -> np.ndarray:
    """ndtri(1/2 + q) / q of t = q^2."""
    q = np.sqrt(np.maximum(t, 1e-12))
    return ndtri(0.5 + q) / q


def _tail(t: np.ndarray) -> np.ndarray:
    """-ndtri(p) of t = the square root of -log p."""
    return -ndtri(np.exp(-(t**2)))


def _arccos(t: np.ndarray) -> np.ndarray:
    """arccos(t) / sqrt(1 - t)."""
    near = np.minimum(t, 1.0 - 1e-12)
    return np.arccos(near) / np.sqrt(1.0 - near)


# ----------------------------------------------------------------------
# A trained model as a program: columns, steps and labels, independent of the method.
#
# The writers of this package use only programs.

# The `facts` about columns whose exported inputs differ from their written form.
_DATES = (
    "reading of dates: pass year, month, weekday (Monday is 0) and days since 1970-01-01 as numbers"
)
_TEXTS = (
    "reading of percentages, decimal commas and booleans: pass plain numbers, with 1 and 0 for"
    " booleans"
)


# Booleans, which files write in any case.
TRUTHS = frozenset(("True", "False"))


@dataclass(frozen=True)
class Column:
    """A column of a table, and the encoding of its cells.

    Parameters
    ----------
    name : str
    fill : float or int or None
        The replacement of a missing cell: a number, or the number of a category; None: there is
        none.
    categories : tuple of str or None
        None for a numeric column.
    values : array, (categories + 1, width), or None
        The encoding of each category; the last row is for all others, and for a missing cell
        without a replacement. None for one-hot encoding.
    """

    name: str
    fill: float | int | None = None
    categories: tuple[str, ...] | None = None
    values: np.ndarray | None = None

    @property
    def width(self) -> int:
        """The numbers that encode a cell."""
        if self.values is not None:
            return int(self.values.shape[1])
        return 1 if self.categories is None else len(self.categories)

    def spellings(self) -> tuple[str, ...]:
        """The categories; with `True` or `False` among them, all again with these in lower case,
        and in upper case, as Booleans of a file may be written.
        """
        words = self.categories or ()
        if TRUTHS.isdisjoint(words):
            return words
        lower = (word.lower() if word in TRUTHS else word for word in words)
        upper = (word.upper() if word in TRUTHS else word for word in words)
        return *words, *lower, *upper


@dataclass(frozen=True)
class Program:
    """The computation from a row to a prediction.

    Parameters
    ----------
    columns : tuple of Column
        Of the raw rows.
    steps : tuple of Step
        From the encoded columns to decision values (classes) or to predictions in the original
        units of the targets.
    n_outputs : int
        Decision values, or targets, per row.
    labels : list of str or float, or None
        In the order of the probabilities; None for regression.
    probabilities : tuple of Step or None
        From decision values to probabilities; None if there are none.
    facts : dict of str
        A description of the model for people.
    most_probable : bool
        Whether the label is that of the largest probability, not of the decision values.
    """

    columns: tuple[Column, ...]
    steps: told.Steps
    n_outputs: int
    labels: list[str] | list[float] | None
    probabilities: told.Steps | None
    facts: dict[str, str]
    most_probable: bool = False

    @classmethod
    def of(cls, model: Pipeline) -> Self:
        """The program of a trained model.

        Raises
        ------
        UsageError
            If a part of it can't be expressed in steps.
        """
        _check(model)
        columns = _columns(model)
        n_inputs = sum(column.width for column in columns)
        preprocessing = model.preprocessing
        steps = preprocessing.scaler.steps(preprocessing.dtype) + model.model.steps()
        n_outputs = told.width(steps, n_inputs)
        if model.target_scaler is not None:
            steps += model.target_scaler.steps(n_outputs)
        labels = None if model.classes is None else schema.shown(model, model.classes)
        probabilities = model.probability_steps(n_outputs)
        facts = _facts(model, columns)
        by_probability = model.predicts_most_probable
        return cls(columns, steps, n_outputs, labels, probabilities, facts, by_probability)

    @property
    def n_inputs(self) -> int:
        """The numbers that encode the columns of a row."""
        return sum(column.width for column in self.columns)

    @property
    def has_categories(self) -> bool:
        """Whether a column is not numeric."""
        return any(column.categories is not None for column in self.columns)


def _check(model: Pipeline) -> None:
    """Raise an error for a model whose predictions are more than steps of a row."""
    if model.method.get("views"):
        raise UsageError(
            f"the model predicts by the mean over {model.method.views} transformed copies of a"
            " row (--views), which can't be exported; train it without"
        )
    if model.letters is not None:
        raise UsageError("the model reads sequences of letters, which can't be exported")
    if not hasattr(model.model, "steps"):
        raise UsageError(f"models of {model.name} can't be exported: there are no steps for them")


def _columns(model: Pipeline) -> tuple[Column, ...]:
    """The columns of raw rows; a date has one for each of its parts."""
    inputs = _inputs(model)
    if not inputs:
        return tuple(Column(name) for name in model.input_names())
    return tuple(column for own in inputs for column in _of_input(own))


def _inputs(model: Pipeline) -> list[schema.Input]:
    """The inputs of a table's schema; empty for columns found by index."""
    return [] if model.schema is None else model.schema.inputs or []


def _of_input(own: schema.Input) -> list[Column]:
    """The exported columns of a table's input."""
    if own.categories is None:
        titles = own.titles()
        if own.fill is None:
            return [Column(title) for title in titles]
        parts = np.array([float(own.fill)])
        if own.form is not None and own.width > 1:
            parts = own.form.spread(parts)[0]
        return [Column(title, float(part)) for title, part in zip(titles, parts)]
    values = None
    if own.means is not None:
        values = np.array([*own.means.values, own.means.default], np.float64)
    number = None if own.fill is None else own.categories.index(str(own.fill))
    return [Column(own.name, number, tuple(own.categories), values)]


def _facts(model: Pipeline, columns: tuple[Column, ...]) -> dict[str, str]:
    """The description of the model in an exported file."""
    scaler = model.preprocessing.scaler
    target_scaler = model.target_scaler
    kinds = {column.form.kind for column in _inputs(model) if column.form is not None}
    left_out = []
    if "dates" in kinds:
        left_out.append(_DATES)
    if kinds - {"dates"}:
        left_out.append(_TEXTS)
    facts = {
        "made_by": f"rfx {__version__}",
        "method": model.name,
        "task": model.task,
        "scaling": scaler.kind,
        "metric": "none" if scaler.metric is None else scaler.metric.form,
        "kernel": model.method.get("kernel"),
        "target_scaling": target_scaler and target_scaler.kind,
        "probabilities": model.probability_source,
        "not_included": "; ".join(left_out),
    }
    return {name: str(fact) for name, fact in facts.items() if fact}
