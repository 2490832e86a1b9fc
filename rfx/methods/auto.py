"""`auto`: the method, scaling, kernel and metric with the lowest error on rows left out.

Scaling, kernel and metric are chosen as in `rfm` (`rfx.fitting.inputs`). Up to some thousand rows,
the method is the exact machine with these inputs, for classification with squared or squared hinge
loss, compared on held-out rows. For more rows it is `local`. A comparison of `local` with methods
of random features on a sample misleads: `local` gains more from further rows. On cod-rna, features
won on 8,000 rows (error of the fit to all 44,651: .053), while `local` had .036.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfx import device, methods, parallel
from rfx.data.tabular.apart import Apart
from rfx.errors import UsageError
from rfx.fitting.candidates import HINGE_LAMS, LAMS
from rfx.fitting.held_out import HeldOut, fewer
from rfx.fitting.inputs import FEWEST
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO, BUDGET_SECONDS, CHOSEN_SCALING, CLASS_WEIGHT, METRIC
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import Cache, Problem, Progress
from rfx.fitting.search import (
    Measure,
    Point,
    SearchBudget,
    SearchGrid,
    SearchRound,
    Stop,
    Tally,
    search,
)
from rfx.fitting.selection import choose
from rfx.fitting.training import CHOSEN, INPUTS, Begun, Trainer, begin

# Maximum rows for exact machines fitted to all of them.
EXACT = 8000
# The method for more rows.
LARGE = "local"
# Maximum rows for comparing losses, to fit and to evaluate.
FITTED, EVALUATED = 2000, 1000
# Machines for pairs of classes are not tried with more pairs if they have fewer rows in the mean:
# they take by far the longest, and gain nothing from so few rows.
PAIRS, ROWS_OF_PAIR = 100, 100
# With fewer held-out rows, methods are compared by cross-validation.
FEWEST_HELD_OUT = 200
# Options passed on to the method, and those needed to repeat the training.
_PASSED = (
    "task",
    "scaling",
    "metric",
    "metric_steps",
    "target_scaling",
    "budget_seconds",
    "seed",
    "timeout",
    "class_weight",
    "measure",
)
_EXPLICIT = (*CHOSEN, "loss", "n_features", "n_grids")
# Fraction of the budget for scaling, kernel and metric; the rest is for comparing methods.
OF_INPUTS = 0.5


@dataclass(frozen=True)
class _Candidate:
    """A method with its options and candidate lambdas."""

    name: str
    options: dict[str, Any]
    lams: Sequence[float | str]

    @property
    def point(self) -> Point:
        """With the properties that distinguish candidates in the record of trials."""
        compared = {name: self.options.get(name) for name in ("kernel", "gamma")}
        return Point(self.name, {"method": self.name} | compared)


class AutoTrainer(Trainer):
    """Chooses a method, and fits it to all rows."""

    @parallel.one_blas_thread()
    @device.for_rows
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        held_out: tuple[Any, Any] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
        apart: Apart | None = None,
    ) -> Pipeline:
        if held_out is not None:
            raise UsageError(
                "curves are not supported for method auto; choose a method, such as --method rf"
            )
        start, auto = time.perf_counter(), self.method
        passed = {name: auto.get(name) for name in _PASSED}
        budget, limit = SearchBudget(), auto.budget_seconds
        if limit is not None:
            passed["budget_seconds"] = OF_INPUTS * limit
            budget = SearchBudget.of((1 - OF_INPUTS) * limit, deadline=time.monotonic() + limit)
        own = {"schema": self.schema, "classes": self.classes, "left_out": self.left_out}
        name = "rfm" if X.shape[0] <= EXACT else LARGE
        trainer = replace(methods.create(name, **passed), **own)
        begun = begin(trainer, X, y, sample_weight, progress, apart)
        problem, method = begun.problem, begun.method
        common = {name: auto.get(name) for name in _PASSED}
        common |= {name: begun.asked.get(name) for name in INPUTS} | {"task": problem.task}
        del common["kernel"]
        common = {name: value for name, value in common.items() if value is not None}
        candidates = _candidates(X.shape[0], begun)
        chosen, steps, compared = candidates[0], [], time.perf_counter()
        if len(candidates) > 1 and problem.n_rows >= FEWEST and not problem.undivided:
            chosen, step = _compared(candidates, common, problem, auto.seed, budget)
            steps = [step]
        seconds = time.perf_counter() - compared
        if chosen.name == trainer.name:
            fitted = trainer.finish(begun, start + seconds, progress=progress)
            steps = (fitted.outcome.validation or []) + steps
        else:
            trainer = replace(methods.create(chosen.name, **common | chosen.options), **own)
            method, seconds = trainer.method, time.perf_counter() - start
            problem.doing("fitting the chosen model")
            fitted = trainer.fit(X, y, sample_weight, progress=progress, apart=apart)
            steps = begun.steps + steps + (fitted.outcome.validation or [])
        lam = AUTO if chosen.options.get("lam") == AUTO else fitted.outcome.lam
        explicit = {name: method.get(name) for name in _EXPLICIT} | {"lam": lam}
        outcome = replace(
            fitted.outcome,
            explicit={name: value for name, value in explicit.items() if value is not None},
            validation=steps,
            seconds_validation=seconds + (fitted.outcome.seconds_validation or 0.0),
        )
        return replace(fitted, outcome=outcome)


def _candidates(n: int, begun: Begun) -> list[_Candidate]:
    """The candidates for so many rows; the first is used if there are too few to hold out."""
    problem, method = begun.problem, begun.method
    lams, few_lams = ([lam * problem.mean_weight for lam in each] for each in (LAMS, HINGE_LAMS))
    if n > EXACT:
        return [_Candidate(LARGE, {"kernel": method.kernel, "lam": method.lam}, [method.lam])]
    inputs, lam = {"kernel": method.kernel, "gamma": method.gamma}, method.lam
    lams = lams if isinstance(lam, str) else [lam]
    candidates = [_Candidate("rfm", inputs | {"lam": lam}, lams)]
    count = problem.n_outputs
    tiny = count * (count - 1) / 2 > PAIRS and 2 * n < ROWS_OF_PAIR * count
    if problem.task != "regression" and not tiny:
        candidates.append(_Candidate("kernel", inputs | {"loss": "squared_hinge"}, few_lams))
    return candidates


def _compared(
    candidates: list[_Candidate],
    common: dict[str, Any],
    problem: Problem,
    seed: int,
    budget: SearchBudget,
) -> tuple[_Candidate, dict[str, Any]]:
    """The candidate with the lowest mean error on held-out rows, with its lambda, and the trials;
    all have the scaled rows of the problem.
    """
    points = [one.point for one in candidates]
    held_out = HeldOut(problem.n_rows, seed, problem.apart)
    parts = held_out.parts(0.2, FEWEST_HELD_OUT, "method auto")
    folds = [fewer(part, FITTED, EVALUATED, seed) for part in parts]

    def errors(point: Point, round: SearchRound, lams: Sequence[float]) -> list[float]:
        candidate = candidates[points.index(point)]
        method = methods.get(candidate.name).of(common | candidate.options | {"lam": 1.0})
        of_loss = replace(problem, loss=method.loss_for(problem.task))
        stop, sums = Stop(), np.zeros(0)
        for kept, out in folds:
            # lambda is that of all rows
            share = len(kept) / problem.n_rows
            some, cache = of_loss.rows(kept), Cache()
            model = choose(method.trial(), some, cache).method
            scaled = [lam * share for lam in lams]
            # the first fold determines the length of the path
            most = len(sums)
            ends = lambda path: len(path) == most or (not most and stop(path))
            path = model.errors_along(some, of_loss.rows(out), scaled, ends, cache)
            sums = np.asarray(path) + (sums if most else 0.0)
        tally.add(means := list(sums / len(folds)), len(lams))
        return means

    tally = Tally(problem.progress, ["method"], sum(len(one.lams) for one in candidates))
    tally.report()
    lams = {one.name: one.lams for one in candidates}
    grid = SearchGrid(points, lams, [SearchRound(len(folds[0][0]))], lenient=True)
    evidence = search(errors, grid, Measure(problem.error_name), budget)
    evidence.warn("the comparison of methods")
    best = candidates[points.index(evidence.best.point)]
    step = evidence.step(True, sum(len(out) for _, out in folds)) | {"by": "auto"}
    return replace(best, options=best.options | {"lam": evidence.best.lam}), step


class Auto(Method):
    """The best method for the data."""

    name = "auto"
    accelerated = True
    summary = "the method, scaling, kernel and metric with the lowest leave-one-out error"
    trainer_class = AutoTrainer
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    budget_seconds: float | None = BUDGET_SECONDS()
    class_weight: str | None = CLASS_WEIGHT()
