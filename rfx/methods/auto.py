"""`auto`: the method, scaling, kernel and metric with the least error on held-out rows.

Scaling, kernel and metric are chosen as for `rfm` (`rfx.fitting.inputs`). Up to some thousand rows
the exact machine is the model. Of more rows a sample is taken, on which the exact machine and the
methods whose cost grows with the rows alone are compared with these inputs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from rfx import methods, parallel
from rfx.errors import UsageError
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO, CHOSEN_SCALING, METRIC
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import Progress
from rfx.fitting.search import Grid, Measure, Round, Stop, search
from rfx.fitting.settings import Settings
from rfx.fitting.training import CHOSEN, Trainer, begin
from rfx.fitting.validation import LAMS, drawn
from rfx.options import Option

# Up to so many rows the exact machine is fitted to all of them.
EXACT = 20_000
# Rows of the sample that the methods are compared on, fitted to and evaluated on.
FITTED, EVALUATED = 8000, 4000
# What is compared: methods with their options.
CANDIDATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rf", {"kernel": "gaussian", "n_features": 2000}),
    ("rf", {"kernel": "laplacian-l2", "n_features": 2000}),
    ("rb", {"kernel": "laplacian"}),
    ("nystrom", {"kernel": "laplacian-l2", "n_features": 1000}),
    ("sparse-rf", {"kernel": "gaussian", "n_features": 2000}),
)


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
        progress: Progress | None = None,
    ) -> Pipeline:
        if held_out is not None:
            raise UsageError(
                "curves are not supported for method auto; name a method, such as --method rf"
            )
        own = {name: self.settings[name] for name in _PASSED if self.settings.get(name) is not None}
        exact = replace(methods.create("rfm", **own), schema=self.schema)
        if X.shape[0] <= EXACT:
            return exact.fit(X, y, sample_weight, progress=progress)
        start = time.monotonic()
        chosen, steps = self._compared(exact, X, np.asarray(y, np.float64), sample_weight, progress)
        seconds = time.monotonic() - start
        fitted = replace(chosen, schema=self.schema).fit(X, y, sample_weight, progress=progress)
        more = fitted.info.get("seconds_validation", 0.0)
        given = {
            name: chosen.settings[name]
            for name in (*CHOSEN, "n_features", "n_grids")
            if name in chosen.settings
        }
        evidence = {
            "explicit": given | fitted.info.get("explicit", {}),
            "validation": steps + fitted.info.get("validation", []),
            "seconds_validation": seconds + more,
        }
        return fitted.with_info(**evidence)

    def _compared(
        self, exact: Trainer, X: Any, y: np.ndarray, sample_weight: Any, progress: Progress | None
    ) -> tuple[Trainer, list[dict[str, Any]]]:
        """The best method for a sample of the rows, with its options, and what was tried."""
        seed = self.settings.seed
        kept, out = drawn(len(y), seed, FITTED, EVALUATED)
        own = None if sample_weight is None else np.asarray(sample_weight)[kept]
        begun = begin(exact, X[kept], y[kept], own, progress)
        inputs = {
            name: begun.asked.get(name) for name in ("task", "scaling", "metric", "metric_steps")
        }
        inputs["task"] = begun.problem.task
        trainers = [
            methods.create(name, seed=seed, **inputs, **options) for name, options in CANDIDATES
        ]
        measure = Measure("rmse" if begun.problem.task == "regression" else "share of wrong labels")
        points = [Settings(name, {"kernel": options["kernel"]}) for name, options in CANDIDATES]

        def errors(point: Settings, round: Round, lams: Sequence[float]) -> list[float]:
            trainer = trainers[points.index(point)]
            found: list[float] = []
            for fitted, decision in trainer.along(X[kept], y[kept], list(lams), X[out]):
                found.append(fitted.preprocessing.error(decision, y[out]))
                if Stop()(found):
                    break
            return found

        grid = Grid(
            points, {name: LAMS for name, _ in CANDIDATES}, [Round(len(kept))], lenient=True
        )
        found = search(errors, grid, measure)
        best = found.best
        name, options = CANDIDATES[points.index(best.point)]
        trainer = methods.create(name, seed=seed, **inputs, **options, lam=best.lam)
        return trainer, [*begun.steps, found.step(True, len(out))]


# Options that are handed on to the method.
_PASSED = ("task", "scaling", "metric", "metric_steps", "target_scaling", "seed", "timeout")


class Auto(Method):
    """The best method for the rows."""

    name = "auto"
    summary = "the method, scaling, kernel and metric with the least error on held-out rows"
    weighted = True
    trainer_class = AutoTrainer
    options: ClassVar[tuple[Option, ...]] = (
        CHOSEN_SCALING.but(default=AUTO),
        METRIC.but(default=AUTO),
    )
