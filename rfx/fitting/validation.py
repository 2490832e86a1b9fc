"""Held-out rows of the training data, the error on them, and candidate values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from rfx.data.tabular.apart import Apart, Part
from rfx.data.tabular.schema import Schema, label_text
from rfx.errors import DataError, UsageError

if TYPE_CHECKING:
    from rfx.fitting.problem import Problem
    from rfx.options import Declared

# Candidates: multiples of the median bandwidth; lambdas of L2 regularisation, largest first.
GAMMA_FACTORS = (0.25, 1.0, 4.0, 16.0)
LAMS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
# Additional candidates when a regression's bandwidth is chosen without fitting the method: trials
# are cheap there, and targets may have no noise.
SMALLER = (0.003, 0.001)
# Lambdas of L1 regularisation for regression, as multiples of the range of the targets.
L1_SHARES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
# Lambda for too few rows.
FEW_LAM = 1.0
# Relative duality gap of models that are only evaluated, unless --tol is given.
TOL = 1e-2
# Maximum rows to fit and to evaluate, for options that are `auto`.
SAMPLE = 10_000
# Default fraction of the training rows.
HELD_OUT = 0.2
# Minimum evaluation rows: if a single split has fewer, cross-validation is used.
FEWEST_EVALUATED = 500
L1_HELP = "for regression 10, 3, 1, …, 0.03 times the range of the targets (not with minmax01)"
GAMMA_HELP = "the best of median times 1/4, 1, 4, 16 on held-out rows, with this method"
LAM_HELP = "the best of 100, 30, 10, …, 0.03, 0.01 on held-out rows"


def drawn(count: int, seed: int, *sizes: int) -> list[np.ndarray]:
    """For each size, that many random rows of `count`, disjoint and sorted, or those that are
    left.
    """
    order = np.random.default_rng(seed).permutation(count)
    return [np.sort(piece) for piece in np.split(order, np.cumsum(sizes))[: len(sizes)]]


def held_out(count: int, share: float, seed: int, option: str, apart: Apart | None = None) -> Part:
    """(kept, held out): a fraction `share` of the rows, drawn by `seed`, is held out.

    apart: groups or times. Raises UsageError with `option` (flag and value) if either part would be
    empty.
    """
    if apart is not None:
        if apart.one:
            raise UsageError(f"{option}, which {apart.too_few}")
        return apart.held_out(share, seed)
    cut = int(share * count)
    if not 0 < cut < count:
        there = "there is 1" if count == 1 else f"there are {count}"
        raise UsageError(f"{option}, which needs at least {math.ceil(1 / share)} rows, but {there}")
    out, kept = drawn(count, seed, cut, count - cut)
    return kept, out


def parts(
    count: int, share: float, fewest: int, seed: int, option: str, apart: Apart | None = None
) -> list[Part]:
    """The split of `held_out`, or if that has fewer than `fewest` rows, the 1 / share folds of a
    cross-validation."""
    first = held_out(count, share, seed, option, apart)
    number = round(1 / share)
    if apart is not None:
        return [first] if len(first[1]) >= fewest else apart.up_to(number, seed)
    if len(first[1]) >= fewest or number < 2:
        return [first]
    sizes = [len(piece) for piece in np.array_split(np.arange(count), number)]
    return [(np.setdiff1d(np.arange(count), out), out) for out in drawn(count, seed, *sizes)]


def folds(
    y: np.ndarray,
    classes: bool,
    seed: int,
    cv: int | None = None,
    holdout: float | None = None,
    schema: Schema | None = None,
    apart: Apart | None = None,
) -> list[Part]:
    """cv folds, or a single fraction `holdout`; drawn by the seed.

    Folds are stratified by class as far as possible. schema: of the labels, for messages. apart:
    groups or times, which have precedence over stratification; for times there are cv windows, the
    longest first, each ending where its held-out rows begin. Raises DataError if there are too few
    rows, or a class has only one.
    """
    option = f"--cv {cv}" if cv else f"--holdout {holdout:g}"
    if apart is not None:
        return _apart(apart, y if classes else None, seed, cv, holdout, option)
    order = np.random.default_rng(seed).permutation(len(y))
    if classes:
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            label = label_text(schema, labels[np.argmin(counts)])
            only = f"only 1 row has the label {label:.40}; remove that row"
            if counts.max() < 2:
                only = "every label has 1 row; is --target the column of the labels?"
            raise DataError(f"{option} needs at least two rows of each class, but {only}")
        order = order[np.argsort(y[order], kind="stable")]
    places = np.arange(len(y))
    if cv:
        part = places % cv
        if len(y) < cv:
            raise DataError(f"{option} needs at least {cv} rows, but there are {len(y)}")
    else:
        assert holdout is not None
        before, after = (np.floor(edge * holdout + 1e-9) for edge in (places, places + 1))
        part = 1 - (after - before).astype(int)
        if part.all() or not part.any():
            to = "evaluate on" if part.all() else "fit to"
            raise DataError(f"{option} of {len(y)} rows leaves none to {to}")
    of_row = np.empty(len(y), int)
    of_row[order] = part
    return [(np.flatnonzero(of_row != k), np.flatnonzero(of_row == k)) for k in range(cv or 1)]


def _apart(
    apart: Apart,
    labels: np.ndarray | None,
    seed: int,
    cv: int | None,
    holdout: float | None,
    option: str,
) -> list[Part]:
    """The parts of `folds` with groups or times."""
    lacking = apart.too_few if apart.one else apart.lacking(cv or 1)
    if lacking is not None:
        raise DataError(f"{option} {lacking}")
    if cv:
        return apart.parts(cv, seed, labels)
    assert holdout is not None
    return [apart.held_out(holdout, seed, labels)]


def fewer(part: Part, most: int, most_held_out: int, seed: int) -> Part:
    """At most so many rows of a part to fit and to evaluate, drawn by the seed."""
    kept, out = part
    rng = np.random.default_rng(seed)
    return np.sort(rng.permutation(kept)[:most]), np.sort(rng.permutation(out)[:most_held_out])


def evenly(count: int, most: int | None) -> np.ndarray:
    """At most `most` of so many positions, evenly spaced; all if most is None."""
    return np.arange(count) if most is None or count <= most else np.arange(most) * count // most


def l1_lams(lams: Iterable[float], problem: Problem, method: Declared) -> list[float]:
    """The candidate lambdas of L1 regularisation.

    A regression uses L1_SHARES of the targets' range, unless they are scaled to [0, 1].
    """
    unit = problem.mean_weight
    if problem.task == "regression" and method.target_scaling != "minmax01":
        lams, unit = L1_SHARES, unit * (float(np.ptp(problem.Y)) or 1.0)
    return [lam * unit for lam in lams]


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
