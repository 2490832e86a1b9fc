"""Validation rows of the training data, the error on them, and the values that are tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx.errors import UsageError

if TYPE_CHECKING:
    from rfx.fitting.problem import Problem
    from rfx.fitting.settings import Settings

# The values that are tried: multiples of the bandwidth of the median distance; lambdas of L2 regularisation, largest first.
GAMMA_FACTORS = (0.25, 1.0, 4.0, 16.0)
LAMS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
# Besides, where a regression's bandwidth is chosen without a fit of the method: there they are cheap, and targets may have no noise.
SMALLER = (0.003, 0.001)
# Lambdas of L1 regularisation of a regression, as multiples of the range of the targets.
L1_SHARES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
# Relative duality gap of models that are only evaluated, where --tol says nothing.
TOL = 1e-2
# Lambdas in a row with more than the least error after which smaller ones are not tried.
WAIT = 2
# Of the training rows, where a method says nothing else.
HELD_OUT = 0.2
# Rows that a choice is evaluated on, at least: where one part has fewer, all parts are in turn.
FEWEST_EVALUATED = 500
L1_HELP = "of a regression 10, 3, 1, …, 0.03 times the targets' range, where they are not scaled"
GAMMA_HELP = "the best of median times 1/4, 1, 4, 16 for this very method on held-out rows"
LAM_HELP = "the best of 100, 30, 10, …, 0.03, 0.01 on held-out rows"


def held_out(count: int, share: float, seed: int, option: str) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers (kept, held out), both sorted; `share` of the rows, drawn by `seed`, are held out.

    Raises UsageError naming `option` (its flag and value) where that would leave either without a row.
    """
    cut = int(share * count)
    if not 0 < cut < count:
        raise UsageError(
            f"{option}, which needs at least {int(np.ceil(1 / share))} rows, but there {'is 1' if count == 1 else f'are {count}'}"
        )
    order = np.random.default_rng(seed).permutation(count)
    return np.sort(order[cut:]), np.sort(order[:cut])


def parts(count: int, share: float, fewest: int, seed: int, option: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """What `held_out` gives; where that leaves fewer than `fewest` rows, the parts of a cross-validation, 1 / share of them."""
    first = held_out(count, share, seed, option)
    number = round(1 / share)
    if len(first[1]) >= fewest or number < 2:
        return [first]
    order = np.random.default_rng(seed).permutation(count)
    return [(np.sort(np.concatenate(rest)), np.sort(out)) for out, *rest in _turned(np.array_split(order, number))]


def _turned(pieces: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Each of the pieces first, then the others."""
    return ([piece, *pieces[:number], *pieces[number + 1 :]] for number, piece in enumerate(pieces))


def evenly(count: int, most: int | None) -> np.ndarray:
    """At most `most` of so many places, evenly spaced; all where most is None."""
    return np.arange(count) if most is None or count <= most else np.arange(most) * count // most


@dataclass(frozen=True)
class Stop:
    """When a falling path of lambdas has gone far enough, by the errors so far.

    Parameters
    ----------
    every : bool
        Try every lambda.
    enough : float or None
        Stop at an error of at most this, or once the error rises.
    """

    every: bool = False
    enough: float | None = None

    def __call__(self, errors: list[float]) -> bool:
        if self.enough is not None and (errors[-1] <= self.enough or errors[-1] > min(errors)):
            return True
        return not self.every and len(errors) > WAIT and min(errors[-WAIT:]) > min(errors)


def l1_lams(lams: Iterable[float], problem: Problem, settings: Settings) -> list[float]:
    """The lambdas of L1 regularisation to try.

    A regression whose targets are not scaled has L1_SHARES of the targets' range.
    """
    if problem.task != "regression" or settings.target_scaling != "none":
        return list(lams)
    return [share * (float(np.ptp(problem.Y)) or 1.0) for share in L1_SHARES]


def error(task: str, decision: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Mean squared error for regression, share of wrong labels for classification; decision, Y: (n, k), Y as +-1 for classes.

    weights: (n,) of the rows, None for ones.
    """
    if task == "regression":
        return float(np.average(np.mean((decision - Y) ** 2, axis=1), weights=weights))
    if Y.shape[1] == 1:
        return float(np.average((decision[:, 0] > 0) != (Y[:, 0] > 0), weights=weights))
    return float(np.average(np.argmax(decision, axis=1) != np.argmax(Y, axis=1), weights=weights))


def step(by: str, options: list[str], fitted: int, out: int, measure: str, tried: list[list[Any]], chosen: int) -> dict[str, Any]:
    """What one choice leaves in a results row: tried has the values of `options` and then the error, a list for each combination."""
    return {
        "by": by,
        "options": list(options),
        "fitted": fitted,
        "held_out": out,
        "error": measure,
        "tried": tried,
        "chosen": tried[chosen][: len(options)],
    }
