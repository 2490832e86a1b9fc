"""`auto`: `local` with every option chosen, and for wide sparse rows `rfm`.

Up to 5,000 rows, `local` is one exact machine, or the mean of two. On one split of each of twelve
tables it had a lower error than the better of `rfm` and a support vector machine on eleven, and the
same on one. Random features are not tried: a comparison on a sample misleads, because `local` gains
more from further rows. On cod-rna, they won on 8,000 rows (error of the fit to all 44,651: .053),
while `local` had .036.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import scipy.sparse

from rfx import methods
from rfx.data.tabular.apart import Apart
from rfx.errors import UsageError
from rfx.fitting.inputs import MOST_INPUTS
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO, BUDGET_SECONDS, CHOSEN_SCALING, CLASS_WEIGHT, METRIC
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import Progress
from rfx.fitting.training import Trainer

# Maximum rows of wide sparse tables for an exact machine, which keeps them sparse.
EXACT = 8000
# Options passed on to the method.
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


class AutoTrainer(Trainer):
    """Fits the method for the rows."""

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
        wide = scipy.sparse.issparse(X) and X.shape[1] > MOST_INPUTS
        name = "rfm" if wide and X.shape[0] <= EXACT else "local"
        options = {name: self.method.get(name) for name in _PASSED}
        own = {"schema": self.schema, "classes": self.classes, "left_out": self.left_out}
        trainer = replace(methods.create(name, **options), **own)
        return trainer.fit(X, y, sample_weight, progress=progress, apart=apart)


class Auto(Method):
    """The method for the data, with every option chosen."""

    name = "auto"
    accelerated = leaves_out = True
    summary = "method local with scaling, kernel and metric of the lowest leave-one-out error"
    trainer_class = AutoTrainer
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    budget_seconds: float | None = BUDGET_SECONDS()
    class_weight: str | None = CLASS_WEIGHT()
