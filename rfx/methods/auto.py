"""`auto`: the method, scaling, kernel and metric with the lowest error on held-out rows.

Scaling, kernel and metric are chosen as in `rfm` (`rfx.fitting.inputs`). With these inputs, methods
are compared on held-out rows. Up to some thousand rows these are the exact machines: with squared
loss and, for classification, squared hinge loss, the latter also with the plain Gaussian kernel.
For more rows they are methods with linear cost, compared on a sample.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfx import device, methods, parallel
from rfx.data.tabular.apart import Apart, Part
from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.candidates import HINGE_LAMS, LAMS, PLAIN_GAMMAS
from rfx.fitting.held_out import HeldOut
from rfx.fitting.inputs import FEWEST
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO, BUDGET_SECONDS, CHOSEN_SCALING, CLASS_WEIGHT, METRIC
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import Progress
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
from rfx.fitting.training import CHOSEN, INPUTS, Begun, Trainer, begin

# Maximum rows for exact machines fitted to all of them.
EXACT = 20_000
# Maximum rows of the sample for comparing methods, to fit and to evaluate.
FITTED, EVALUATED = 8000, 4000
# Above PLAIN rows the small lambdas of the machine on standardised inputs take too long.
PLAIN = 5000
# Machines for pairs of classes are not tried with more pairs if they have fewer rows in the mean:
# they take by far the longest, and gain nothing from so few rows.
PAIRS, ROWS_OF_PAIR = 100, 100
# With fewer held-out rows, methods are compared by cross-validation.
FEWEST_HELD_OUT = 400
# The candidates for more rows: methods with their options. The leaves of `local` choose their own
# lambdas, and its accuracy grows with the rows.
LARGE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("local", {"kernel": "laplacian-l2", "lam": AUTO}),
    ("rf", {"kernel": "gaussian", "n_features": 2000}),
    ("rf", {"kernel": "laplacian-l2", "n_features": 2000}),
    ("rb", {"kernel": "laplacian"}),
    ("nystrom", {"kernel": "laplacian-l2", "n_features": 1000}),
    ("sparse-rf", {"kernel": "gaussian", "n_features": 2000}),
)
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
        own = {"schema": self.schema, "classes": self.classes}
        exact, n = replace(methods.create("rfm", **passed), **own), X.shape[0]
        y = np.asarray(y)
        row_weights = None if sample_weight is None else np.asarray(sample_weight)
        folds = _folds(HeldOut(n, auto.seed, apart))
        rows = (X, y, row_weights, progress, apart)
        if n > EXACT:
            kept, _ = folds[0]
            few = None if apart is None else apart.rows(kept)
            rows = (X[kept], y[kept], weights.part(row_weights, kept), progress, few)
        begun = begin(exact, *rows)
        free = all(auto.get(name) == AUTO for name in ("scaling", "metric"))
        weighted = sample_weight is not None or auto.get("class_weight") is not None
        candidates = _candidates(n, begun, weighted, free)
        common = {name: auto.get(name) for name in _PASSED}
        common |= {name: begun.asked.get(name) for name in INPUTS} | {"task": begun.problem.task}
        del common["kernel"]
        common = {name: value for name, value in common.items() if value is not None}
        chosen, steps, compared = candidates[0], [], time.perf_counter()
        if len(candidates) > 1 and n >= FEWEST and not (apart is not None and apart.one):
            data = X, np.asarray(y, np.float64), row_weights, apart
            chosen, step = _compared(candidates, common, data, folds, budget, progress)
            steps = [step]
        seconds = time.perf_counter() - compared
        if chosen.name == exact.name:
            method = begun.method
            fitted = exact.finish(begun, start + seconds, progress=progress)
            steps = fitted.info.get("validation", []) + steps
        else:
            trainer = replace(methods.create(chosen.name, **common | chosen.options), **own)
            method, seconds = trainer.method, time.perf_counter() - start
            begun.problem.doing("fitting the chosen model")
            fitted = trainer.fit(X, y, sample_weight, progress=progress, apart=apart)
            steps = begun.steps + steps + fitted.info.get("validation", [])
        lam = AUTO if chosen.options.get("lam") == AUTO else fitted.info["lam"]
        explicit = {name: method.get(name) for name in _EXPLICIT} | {"lam": lam}
        return fitted.with_info(
            explicit={name: value for name, value in explicit.items() if value is not None},
            validation=steps,
            seconds_validation=seconds + fitted.info.get("seconds_validation", 0.0),
        )


def _folds(held_out: HeldOut) -> list[Part]:
    """The rows for fitting methods, and those for comparing them; for few rows, those of a
    cross-validation.
    """
    if held_out.none:
        held_out = replace(held_out, apart=None)
    if held_out.count > EXACT:
        return [held_out.sample(FITTED, EVALUATED, 0.2)]
    if held_out.count < FEWEST:
        return []
    return held_out.parts(0.2, FEWEST_HELD_OUT, "method auto")


def _candidates(n: int, begun: Begun, weighted: bool, free: bool) -> list[_Candidate]:
    """The candidates for so many rows; the first is used if there are too few to hold out.

    weighted: only methods that support sample weights. free: scaling and metric may differ from
    those chosen.
    """
    problem, method = begun.problem, begun.method
    lams, few_lams = ([lam * problem.mean_weight for lam in each] for each in (LAMS, HINGE_LAMS))
    if n > EXACT:
        return [
            _Candidate(name, options, [options["lam"]] if "lam" in options else lams)
            for name, options in LARGE
            if methods.get(name).weighted or not weighted
        ]
    inputs, lam = {"kernel": method.kernel, "gamma": method.gamma}, method.lam
    lams = lams if isinstance(lam, str) else [lam]
    candidates = [_Candidate("rfm", inputs | {"lam": lam}, lams)]
    count = problem.n_outputs
    tiny = count * (count - 1) / 2 > PAIRS and 2 * n < ROWS_OF_PAIR * count
    if problem.task != "regression" and not tiny:
        hinge = {"loss": "squared_hinge"}
        candidates.append(_Candidate("kernel", inputs | hinge, few_lams))
        if free and n <= PLAIN and isinstance(problem.X, np.ndarray):
            plain: dict[str, Any] = {"kernel": "gaussian", "scaling": "standard", "metric": "none"}
            plain |= hinge | {"metric_steps": None}
            gammas = [factor / problem.n_inputs for factor in PLAIN_GAMMAS]
            candidates += [_Candidate("kernel", plain | {"gamma": g}, few_lams) for g in gammas]
    return candidates


def _compared(
    candidates: list[_Candidate],
    common: dict[str, Any],
    data: tuple[Any, np.ndarray, np.ndarray | None, Apart | None],
    folds: Sequence[Part],
    budget: SearchBudget,
    progress: Progress | None,
) -> tuple[_Candidate, dict[str, Any]]:
    """The candidate with the lowest mean error on the held-out rows, with its lambda, and the
    trials; data: (rows, targets, weights, groups or times).
    """
    X, y, row_weights, apart = data
    points = [one.point for one in candidates]
    classes = None if apart is None or common["task"] == "regression" else np.unique(y)

    def errors(point: Point, round: SearchRound, lams: Sequence[float]) -> list[float]:
        candidate = candidates[points.index(point)]
        options = common | candidate.options | {"lam": 1.0}
        trainer = replace(methods.create(candidate.name, **options), classes=classes)
        stop, sums = Stop(), np.zeros(0)
        for kept, out in folds:
            # lambda is that of all rows
            share = len(kept) / len(y) if len(y) <= EXACT else 1.0
            sides = None if apart is None else apart.rows(kept)
            path: list[float] = []
            scaled = [lam if isinstance(lam, str) else lam * share for lam in lams]
            rows = X[kept], y[kept], scaled, X[out], sides
            for fitted, decision in trainer.along(*rows, weights.part(row_weights, kept)):
                path.append(fitted.preprocessing.error(decision, y[out]))
                # the first fold determines the length of the path
                if len(path) == len(sums) or (not len(sums) and stop(path)):
                    break
            sums = np.asarray(path) + (sums if len(sums) else 0.0)
        tally.add(means := list(sums / len(folds)), len(lams))
        return means

    tally = Tally(progress, ["method"], sum(len(one.lams) for one in candidates))
    tally.report()
    lams = {one.name: one.lams for one in candidates}
    what = "share of wrong labels" if common["task"] != "regression" else "RMSE"
    grid = SearchGrid(points, lams, [SearchRound(len(folds[0][0]))], lenient=True)
    evidence = search(errors, grid, Measure(what), budget)
    evidence.warn("the comparison of methods")
    best = candidates[points.index(evidence.best.point)]
    step = evidence.step(True, sum(len(out) for _, out in folds)) | {"by": "auto"}
    return replace(best, options=best.options | {"lam": evidence.best.lam}), step


class Auto(Method):
    """The best method for the data."""

    name = "auto"
    accelerated = True
    summary = "the method, scaling, kernel and metric with the lowest error on held-out rows"
    trainer_class = AutoTrainer
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    budget_seconds: float | None = BUDGET_SECONDS()
    class_weight: str | None = CLASS_WEIGHT()
