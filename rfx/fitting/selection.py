"""Options chosen on the training rows: words such as ``validation`` become numbers.

Every combination of the values is fitted to some rows and evaluated on the others, for several
lambdas at once where a method can. No test row takes part. The model is then fitted to all rows.
"""

from __future__ import annotations

import itertools
import logging
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfx.fitting import bandwidth
from rfx.fitting.cache import Cache
from rfx.fitting.method import Method
from rfx.fitting.problem import Problem
from rfx.fitting.settings import Settings
from rfx.fitting.validation import Stop, evenly, parts, step

log = logging.getLogger(__name__)
# Below so many rows lambda is not chosen, but this.
FEWEST, FEW_LAM = 5, 1.0


@dataclass(frozen=True)
class Choice:
    """Settings that are all numbers, and the evidence for them.

    Parameters
    ----------
    settings : Settings
    chosen : dict
        The options that were chosen, and their values.
    steps : list of dict
        What was tried, on which rows, with which errors (see `validation.step`).
    seconds : float
    """

    settings: Settings
    chosen: dict[str, Any]
    steps: list[dict[str, Any]]
    seconds: float


def choose(method: Method, problem: Problem, settings: Settings, cache: Cache) -> Choice:
    """Replace every word among the settings that stands for a choice by the number it becomes.

    Raises
    ------
    UsageError
        Where there are too few rows to choose by.
    """
    start = time.perf_counter()
    chosen: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    asked = [name for name in method.searched if isinstance(settings.get(name), str)]
    grid = {name: method.candidates(name, problem, settings) for name in asked if name != "gamma"}
    if settings.get("lam_path"):
        grid.pop("lam", None)
    elif "lam" in grid and problem.n_rows < FEWEST:
        del grid["lam"]
        chosen["lam"] = FEW_LAM
        log.warning("too few rows for validation; using lambda = %g (set it with --lam)", FEW_LAM)
    if "gamma" in settings and bandwidth.has_gamma(settings.kernel):
        known, tried, wanted = _gamma(method, problem, settings, bool(grid))
        chosen |= known
        steps += tried
        grid = wanted | grid
    if grid:
        so_far = method.with_choice(settings, chosen)
        found, tried = _search(method, grid, problem, so_far, settings, cache)
        chosen |= found
        steps += tried
    settings = method.with_choice(settings, chosen)
    return Choice(settings, chosen, steps, time.perf_counter() - start)


def _gamma(
    method: Method, problem: Problem, settings: Settings, others: bool
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, list[float]]]:
    """(gamma where it is known now, what was tried for it, its values to try by validation)."""
    kernel, word, seed = settings.kernel, settings.gamma, settings.seed
    X, Y = problem.X, problem.Y
    if word == "loo":
        lams = method.ridge_lams(problem)
        value, steps = bandwidth.loo(kernel, X, Y, lams, seed, problem.weights, method.loo_slack)
        return {"gamma": value}, steps, {}
    if word == "tuned":
        lams = method.tuning_lams(settings)
        value, steps = bandwidth.tuned(kernel, X, Y, lams, seed, problem.weights)
        return {"gamma": value}, steps, {}
    if word == "validation":
        factors = method.searched["gamma"]
        return {}, [], {"gamma": bandwidth.candidates(kernel, X, seed, factors)}
    if others and isinstance(word, str):
        # of all rows: a model of some of them has the bandwidth of the model it chooses for
        return {"gamma": bandwidth.resolve(kernel, word, X, seed)["gamma"]}, [], {}
    return {}, [], {}


def _search(
    method: Method,
    grid: dict[str, list[float]],
    problem: Problem,
    settings: Settings,
    asked: Settings,
    cache: Cache,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The values of the grid's options with the least error on validation rows, and what was tried.

    grid: option -> values, gamma's as numbers. Options of a later stage have their first value
    until then. Of equal errors the first is taken.
    """
    given = " and ".join(f"--{name.replace('_', '-')} is {asked[name]!r}" for name in grid)
    folds = [
        (kept[evenly(len(kept), method.held_out_rows)], out[evenly(len(out), method.held_out_rows)])
        for kept, out in parts(problem.n_rows, method.held_out_share, method.fewest_evaluated, settings.seed, given)
    ]
    fitted, evaluated = len(folds[0][0]), sum(len(out) for _, out in folds)
    shares = [len(kept) / problem.n_rows for kept, _ in folds]
    sizes = [len(out) for _, out in folds]
    lam: Any = settings.get("lam")
    best: dict[str, Any] = {name: values[0] for name, values in grid.items()}
    steps: list[dict[str, Any]] = []
    cheap = method.evaluation(settings)
    goals = []
    for share, (kept, out) in zip(shares, folds):
        goals.append(method.target_error(problem.rows(kept), problem.rows(out), cheap, share, cache))
    target = _mean(goals)
    # of several parts the mean error is the one to come close to: no part alone tells
    stop = Stop(target is not None, target if len(folds) == 1 else None)
    measure = "mean squared error" if problem.task == "regression" else "share of wrong labels"
    for stage in method.stages:
        names = [name for name in stage if name in grid]
        if not names:
            continue
        others = [name for name in names if name != "lam"]
        lams = grid["lam"] if "lam" in names else [best.get("lam", lam)]
        combinations = list(itertools.product(*(grid[name] for name in others)))
        tried: list[list[Any]] = []
        for number, values in enumerate(combinations):
            trial = method.with_choice(cheap, best | dict(zip(others, values)))
            rows = []
            for part, (share, (kept, out)) in enumerate(zip(shares, folds)):
                if problem.progress is not None:
                    done, total = number * len(folds) + part, len(combinations) * len(folds)
                    problem.progress({"choosing": names, "tried": done, "of": total})
                own = [lam * share for lam in lams]
                rows.append(method.errors_along(problem.rows(kept), problem.rows(out), trial, own, stop, cache))
            # where one part went on to smaller lambdas than another, the other's last error stands
            most = max(map(len, rows))
            rows = [own + own[-1:] * (most - len(own)) for own in rows]
            mean = np.average(rows, axis=0, weights=sizes).tolist()
            tried += [[*values, *([lam] if "lam" in names else []), error] for lam, error in zip(lams, mean)]
        names = [*others, *(["lam"] if "lam" in names else [])]
        errors = np.array([one[-1] for one in tried])
        # a model that is not finite is never the best
        errors = np.where(np.isfinite(errors), errors, np.inf)
        place = int(np.argmin(errors if target is None else np.abs(errors - target)))
        chosen = step(method.name, names, fitted, evaluated, measure, tried, place)
        steps.append(chosen if target is None else chosen | {"target": target})
        best |= dict(zip(names, chosen["chosen"]))
    return best, steps


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
