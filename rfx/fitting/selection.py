"""Choose options on the training rows: words such as ``validation`` become numbers.

Every combination of values is fitted to some rows and evaluated on the others, for several lambdas
at once if the method supports it. Test rows are not used. The model is then fitted to all rows.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfx.data.rows import Rows
from rfx.data.tabular.apart import Part
from rfx.fitting import bandwidth
from rfx.fitting.cache import Cache
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO
from rfx.fitting.problem import Problem
from rfx.fitting.search import Found, Grid, Measure, Point, Round, Stop, Tally, Trial, search
from rfx.fitting.validation import SAMPLE, evenly, parts

log = logging.getLogger(__name__)
_TOO_FEW = "too few %s for validation; using %s = %g (set it with --%s)"
_CALLED = {"lam": "lambda"}
# Standard errors above the lowest error rate within which values count as no worse.
SURE = 0.5
# Minimum rows for validation.
FEWEST = 5


@dataclass(frozen=True)
class Choice:
    """A method whose options are numbers, and the evidence for them.

    Parameters
    ----------
    method : Method
    chosen : dict
        The options that were chosen, and their values.
    steps : list of dict
        The trials, with their rows and errors (see `search.Found.step`).
    seconds : float
    """

    method: Method
    chosen: dict[str, Any]
    steps: list[dict[str, Any]]
    seconds: float


def choose(method: Method, problem: Problem, cache: Cache) -> Choice:
    """Replace every word among the options of the method by the number that it selects.

    Raises
    ------
    UsageError
        For too few rows.
    """
    start = time.perf_counter()
    chosen: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    asked = [name for name in method.searched if isinstance(method.get(name), str)]
    grid = {name: method.candidates(name, problem) for name in asked if name != "gamma"}
    if method.get("lam_path"):
        grid.pop("lam", None)
    elif problem.n_rows < FEWEST or problem.undivided:
        few = problem.apart.by if problem.apart is not None and problem.undivided else "rows"
        for name in grid.keys() & method.few_rows.keys():
            del grid[name]
            value = method.few_rows[name] * (problem.mean_weight if name == "lam" else 1.0)
            chosen[name] = value
            log.warning(_TOO_FEW, few, _CALLED.get(name, name), value, name.replace("_", "-"))
    if "gamma" in method.options and bandwidth.has_gamma(method.kernel):
        known, tried, wanted = _gamma(method, problem, bool(grid))
        chosen |= known
        steps += tried
        grid = wanted | grid
    if grid:
        so_far = method.with_choice(chosen)
        found, tried = _validated(so_far, grid, problem, method, cache)
        chosen |= found
        steps += tried
    method = method.with_choice(chosen)
    return Choice(method, chosen, steps, time.perf_counter() - start)


def _gamma(
    method: Method, problem: Problem, others: bool
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, list[float]]]:
    """(gamma if it is known now, its trials, its candidate values for validation)."""
    kernel, word, seed = method.kernel, method.gamma, method.seed
    X, Y, options = problem.X, problem.Y, method.kernel_options
    if word == "loo":
        lams = [lam * problem.mean_weight for lam in method.ridge_lams(problem)]
        own: Any = (problem.weights, method.loo_slack, problem.apart)
        value, steps = bandwidth.loo(kernel, X, Y, lams, seed, *own, **options)
        few = problem.n_rows < FEWEST or problem.undivided
        if method.loo_multiples == (1.0,) or few:
            return {"gamma": value}, steps, {}
        return {}, steps, {"gamma": [value * factor for factor in method.loo_multiples]}
    if word == "tuned":
        lams = method.tuning_lams(problem)
        own = (problem.weights, problem.apart)
        value, steps = bandwidth.tuned(kernel, X, Y, lams, seed, *own, **options)
        return {"gamma": value}, steps, {}
    if word == "validation":
        factors = method.searched["gamma"]
        return {}, [], {"gamma": bandwidth.candidates(kernel, X, seed, factors)}
    if others and isinstance(word, str):
        # from all rows: a model of some of them uses the bandwidth of the model it selects for
        return {"gamma": bandwidth.resolve(kernel, word, X, seed)["gamma"]}, [], {}
    return {}, [], {}


def _validated(
    method: Method,
    grid: dict[str, list[float]],
    problem: Problem,
    asked: Method,
    cache: Cache,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The values of the grid's options with the lowest error on held-out rows, and the trials.

    grid: option -> values, gamma's as numbers. Options of a later stage have their first value
    until then. For equal errors the first is used.
    """
    given = " and ".join(f"--{name.replace('_', '-')} is {asked.get(name)!r}" for name in grid)
    share, fewest = method.held_out_share, method.fewest_evaluated
    most, total = method.held_out_rows, problem.n_rows
    if AUTO in (asked.get(name) for name in grid):
        most = min(most or SAMPLE, SAMPLE)
    if isinstance(problem.X, Rows):
        problem = problem.rows(evenly(total, SAMPLE + SAMPLE // 4))
    folds = [
        (kept[evenly(len(kept), most)], out[evenly(len(out), most)])
        for kept, out in parts(problem.n_rows, share, fewest, method.seed, given, problem.apart)
    ]
    own = _HeldOut(method.evaluation(), problem, total, folds, Stop(), cache)
    target = own.target()
    if target is not None:
        # with several folds, the mean error is the one to approximate
        own = replace(own, stop=Stop(True, target if len(folds) == 1 else None))
    error = "mean squared error" if problem.task == "regression" else "share of wrong labels"
    measure = Measure(error, target=target)
    best: dict[str, Any] = {name: values[0] for name, values in grid.items()}
    steps: list[dict[str, Any]] = []
    for stage in method.stages:
        wanted = {option: grid[option] for option in stage if option in grid}
        if wanted:
            step = own.step(wanted, best, measure)
            best |= dict(zip(step["options"], step["chosen"]))
            steps.append(step)
    return best, steps


@dataclass(frozen=True)
class _HeldOut:
    """Held-out rows of a problem, for models of the other rows: (fitted, held out) in each fold.

    total: number of training rows, of which the problem may have only some.
    """

    method: Method
    problem: Problem
    total: int
    folds: list[Part]
    stop: Stop
    cache: Cache

    def target(self) -> float | None:
        """The error to approximate, a mean over the folds; None minimises the error."""
        found = []
        for kept, out in self.folds:
            some, others = self.problem.rows(kept), self.problem.rows(out)
            share = len(kept) / self.total
            found.append(self.method.target_error(some, others, share, self.cache))
        known = [value for value in found if value is not None]
        return float(np.mean(known)) if known else None

    def step(
        self, grid: dict[str, list[float]], best: dict[str, Any], measure: Measure
    ) -> dict[str, Any]:
        """The trials and choice of the grid's options; the others as in `best`."""
        method, progress = self.method, self.problem.progress
        others = {option: values for option, values in grid.items() if option != "lam"}
        lams = grid.get("lam", [best.get("lam", self.method.get("lam"))])
        points = [
            Point(method.name, dict(zip(others, values)))
            for values in itertools.product(*others.values())
        ]
        tally = Tally(progress, list(grid), len(points) * len(lams))
        tally.report()

        def fit(point: Point, round: Round, lams: Sequence[float]) -> list[float]:
            chosen = method.with_choice(best | point.options)
            errors = self._errors(chosen, lams, tally)
            tally.add(errors, len(lams))
            return errors

        rounds = [Round(len(self.folds[0][0]), len(self.folds))]
        found = search(fit, Grid(points, {method.name: lams}, rounds), measure)
        count_out = sum(len(out) for _, out in self.folds)
        step = found.step("lam" in grid, count_out, self._best(found, count_out))
        return step if measure.target is None else step | {"target": measure.target}

    def _best(self, found: Found, count_out: int) -> Trial:
        """The selected trial; count_out: number of evaluation rows."""
        least = found.best.score
        if not self.method.simplest or self.problem.task == "regression" or least > 1:
            return found.best
        most = least + SURE * math.sqrt(least * (1 - least) / count_out)
        return next(trial for trial in found.trials if trial.score <= most)

    def _errors(self, method: Method, lams: Sequence[float], tally: Tally) -> list[float]:
        """The mean error over all held-out rows for each lambda."""
        problem = self.problem
        rows: list[list[float]] = []

        def stop(errors: list[float]) -> bool:
            tally.report((len(rows) * len(lams) + len(errors)) / len(self.folds))
            return self.stop(errors)

        for kept, out in self.folds:
            share = len(kept) / self.total
            own = [lam if lam is None else lam * share for lam in lams]
            some, others = problem.rows(kept), problem.rows(out)
            rows.append(method.errors_along(some, others, own, stop, self.cache))
        # if one fold tried smaller lambdas than another, the other's last error is used
        most = max(map(len, rows))
        rows = [own + own[-1:] * (most - len(own)) for own in rows]
        found: list[float] = np.average(rows, 0, [len(out) for _, out in self.folds]).tolist()
        return found
