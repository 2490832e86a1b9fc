"""`auto`: the method, scaling, kernel and metric with the lowest error on held-out rows.

Scaling, kernel and metric are chosen as in `rfm` (`rfx.fitting.inputs`). With these inputs, methods
are compared on held-out rows. Up to some thousand rows these are the exact machines: with squared
loss and, for classification, squared hinge loss, the latter also with the plain Gaussian kernel.
For more rows they are methods with linear cost, compared on a sample.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfx import methods, parallel
from rfx.data.tabular.apart import Apart, Part
from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.inputs import FEWEST
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO, BUDGET_SECONDS, CHOSEN_SCALING, METRIC
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import Progress
from rfx.fitting.search import Budget, Grid, Measure, Point, Round, Stop, Tally, search
from rfx.fitting.training import CHOSEN, INPUTS, Begun, Trainer, begin
from rfx.fitting.validation import LAMS, drawn, fewer, parts
from rfx.fitting.weights import CLASS_WEIGHT

log = logging.getLogger(__name__)
# Maximum rows for exact machines fitted to all of them.
EXACT = 20_000
# Maximum rows of the sample for comparing methods, to fit and to evaluate.
FITTED, EVALUATED = 8000, 4000
# Lambdas of the machine with squared hinge loss.
FEW_LAMS = (*LAMS[::2], 0.001)
# It is also tried with the Gaussian kernel on standardised inputs, as in a usual grid search for a
# support vector machine: gamma times the number of inputs (0.25 is the median's). Above PLAIN rows
# its small lambdas take too long.
PLAIN_GAMMAS, PLAIN = (0.25, 0.06), 5000
# Machines for pairs of classes are not tried with more pairs if they have fewer rows in the mean:
# they take by far the longest, and gain nothing from so few rows.
PAIRS, ROWS_OF_PAIR = 100, 100
# With fewer held-out rows, methods are compared by cross-validation.
FEWEST_HELD_OUT = 400
# The candidates for more rows: methods with their options.
LARGE: tuple[tuple[str, dict[str, Any]], ...] = (
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
# The properties that distinguish candidates in the record of trials.
_COMPARED = ("kernel", "gamma")


@dataclass(frozen=True)
class _Candidate:
    """A method with its options and candidate lambdas."""

    name: str
    options: dict[str, Any]
    lams: Sequence[float]

    @property
    def point(self) -> Point:
        compared = {name: self.options.get(name) for name in _COMPARED}
        return Point(self.name, {"method": self.name} | compared)


class AutoTrainer(Trainer):
    """Chooses a method, and fits it to all rows."""

    @parallel.one_blas_thread()
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
        start = time.perf_counter()
        passed = {name: self.method.get(name) for name in _PASSED}
        budget, limit = Budget(), self.method.budget_seconds
        if limit is not None:
            passed["budget_seconds"] = OF_INPUTS * limit
            budget = Budget.of((1 - OF_INPUTS) * limit, deadline=time.monotonic() + limit)
        exact = replace(methods.create("rfm", **passed), schema=self.schema, classes=self.classes)
        n, seed = X.shape[0], self.method.seed
        alone = apart is not None and apart.one
        held_out_parts = _parts(n, seed, apart)
        if n > EXACT:
            kept, _ = held_out_parts[0]
            own = None if sample_weight is None else np.asarray(sample_weight)[kept]
            some = None if apart is None else apart.rows(kept)
            begun = begin(exact, X[kept], np.asarray(y)[kept], own, progress, some)
        else:
            begun = begin(exact, X, y, sample_weight, progress, apart)
        free = all(self.method.get(name) == AUTO for name in ("scaling", "metric"))
        weighted = sample_weight is not None or self.method.get("class_weight") is not None
        candidates, given = _candidates(n, begun, weighted, free), self._given(begun)
        chosen, steps, compared = candidates[0], [], time.perf_counter()
        if len(candidates) > 1 and n >= FEWEST and not alone:
            rows = np.asarray(y, np.float64)
            own = None if sample_weight is None else np.asarray(sample_weight)
            chosen, step = _compared(
                candidates, given, X, rows, held_out_parts, apart, own, budget, progress
            )
            steps = [step]
        seconds = time.perf_counter() - compared
        if chosen.name == exact.name:
            method = begun.method
            fitted = exact.finish(begun, start + seconds, progress=progress)
            steps = fitted.info.get("validation", []) + steps
        else:
            trainer = methods.create(chosen.name, **given | chosen.options)
            method, seconds = trainer.method, time.perf_counter() - start
            trainer = replace(trainer, schema=self.schema, classes=self.classes)
            begun.problem.doing("fitting the chosen model")
            fitted = trainer.fit(X, y, sample_weight, progress=progress, apart=apart)
            steps = begun.steps + steps + fitted.info.get("validation", [])
        explicit = {name: method.get(name) for name in _EXPLICIT} | {"lam": fitted.info["lam"]}
        evidence = {
            "explicit": {name: value for name, value in explicit.items() if value is not None},
            "validation": steps,
            "seconds_validation": seconds + fitted.info.get("seconds_validation", 0.0),
        }
        return fitted.with_info(**evidence)

    def _given(self, begun: Begun) -> dict[str, Any]:
        """The common options of all candidates."""
        given = {name: begun.asked.get(name) for name in INPUTS if name != "kernel"}
        more = {name: self.method.get(name) for name in _PASSED if name not in INPUTS}
        found = given | more | {"task": begun.problem.task}
        return {name: value for name, value in found.items() if value is not None}


def _parts(n: int, seed: int, apart: Apart | None) -> list[Part]:
    """The rows for fitting methods, and those for comparing them; for few rows, those of a
    cross-validation.
    """
    if n > EXACT:
        if apart is not None and not apart.one:
            return [fewer(apart.held_out(0.2, seed), FITTED, EVALUATED, seed)]
        kept, out = drawn(n, seed, FITTED, EVALUATED)
        return [(kept, out)]
    if apart is not None and apart.one:
        apart = None
    if n < FEWEST:
        return []
    return parts(n, 0.2, FEWEST_HELD_OUT, seed, "method auto", apart)


def _candidates(n: int, begun: Begun, weighted: bool, free: bool) -> list[_Candidate]:
    """The candidates for so many rows; the first is used if there are too few to hold out.

    weighted: only methods that support sample weights. free: scaling and metric may differ from
    those chosen.
    """
    unit = begun.problem.mean_weight
    lams, few_lams = ([lam * unit for lam in each] for each in (LAMS, FEW_LAMS))
    if n > EXACT:
        return [
            _Candidate(name, options, lams)
            for name, options in LARGE
            if methods.get(name).weighted or not weighted
        ]
    method = begun.method
    inputs = {"kernel": method.kernel, "gamma": method.gamma}
    lam = method.lam
    found = [
        _Candidate("rfm", inputs | {"lam": lam}, lams if isinstance(lam, str) else (lam,)),
    ]
    count = begun.problem.n_outputs
    tiny = count * (count - 1) / 2 > PAIRS and 2 * n < ROWS_OF_PAIR * count
    if begun.problem.task != "regression" and not tiny:
        found.append(_Candidate("kernel", inputs | {"loss": "squared_hinge"}, few_lams))
        if free and n <= PLAIN and isinstance(begun.problem.X, np.ndarray):
            plain = {"kernel": "gaussian", "scaling": "standard", "metric": "none"}
            own = plain | {"metric_steps": None, "loss": "squared_hinge"}
            found += [
                _Candidate("kernel", own | {"gamma": factor / begun.problem.X.shape[1]}, few_lams)
                for factor in PLAIN_GAMMAS
            ]
    return found


def _compared(
    candidates: list[_Candidate],
    given: dict[str, Any],
    X: Any,
    y: np.ndarray,
    held_out_parts: Sequence[Part],
    apart: Apart | None,
    sample_weight: np.ndarray | None,
    budget: Budget,
    progress: Progress | None,
) -> tuple[_Candidate, dict[str, Any]]:
    """The candidate with the lowest mean error on the held-out rows, with its lambda, and the
    trials.
    """
    points = [one.point for one in candidates]
    classes = None if apart is None or given["task"] == "regression" else np.unique(y)

    def errors(point: Point, round: Round, lams: Sequence[float]) -> list[float]:
        chosen = candidates[points.index(point)]
        trainer = replace(
            methods.create(chosen.name, **given | chosen.options | {"lam": 1.0}), classes=classes
        )
        stop, found = Stop(), np.zeros(0)
        for kept, out in held_out_parts:
            # lambda is that of all rows
            share = len(kept) / len(y) if len(y) <= EXACT else 1.0
            sides = None if apart is None else apart.rows(kept)
            mine: list[float] = []
            scaled = [lam * share for lam in lams]
            own = weights.part(sample_weight, kept)
            for fitted, decision in trainer.along(X[kept], y[kept], scaled, X[out], sides, own):
                mine.append(fitted.preprocessing.error(decision, y[out]))
                # the first fold determines the length of the path
                if len(mine) == len(found) or (not len(found) and stop(mine)):
                    break
            found = np.asarray(mine) + (found if len(found) else 0.0)
        tally.add(means := list(found / len(held_out_parts)), len(lams))
        return means

    tally = Tally(progress, ["method"], sum(len(one.lams) for one in candidates))
    tally.report()
    lams = {one.name: one.lams for one in candidates}
    what = "share of wrong labels" if given["task"] != "regression" else "RMSE"
    grid = Grid(points, lams, [Round(len(held_out_parts[0][0]))], lenient=True)
    found = search(errors, grid, Measure(what), budget)
    for words in found.limits:
        log.warning("the comparison of methods: %s", words)
    own = candidates[points.index(found.best.point)]
    step = found.step(True, sum(len(out) for _, out in held_out_parts)) | {"by": "auto"}
    return replace(own, options=own.options | {"lam": found.best.lam}), step


class Auto(Method):
    """The best method for the data."""

    name = "auto"
    summary = "the method, scaling, kernel and metric with the lowest error on held-out rows"
    trainer_class = AutoTrainer
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    budget_seconds: float | None = BUDGET_SECONDS()
    class_weight: str | None = CLASS_WEIGHT()
