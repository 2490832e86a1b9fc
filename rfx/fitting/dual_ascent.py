"""Shared by the methods of dual coordinate ascent: one variable per row.

So the number of rows is finite and known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rfx.data.stream import Source, Stream
from rfx.errors import UsageError
from rfx.fitting import virtual_examples
from rfx.fitting.learned import Learned
from rfx.fitting.options import MOST
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.streaming import Learner, StreamMethod
from rfx.options import option


class DualLearner(Learner):
    """A learner whose steps receive the numbers of their rows in the data set."""

    def step(self, X: Any, Y: np.ndarray, index: Any, own: Any) -> float:
        loss: float = self.solver.step(X, Y, index)
        return loss


class DualMethod(StreamMethod):
    """A method by dual coordinate ascent.

    With --gap the results row has the un-normalised objective P and the gap P - D at the end.
    """

    gap: bool = option(
        False, "Compute the duality gap at the end, with one more pass over the rows."
    )
    sweeps: int = option(
        200,
        "Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables"
        " converge.",
        least=1,
        most=MOST,
        before=1,
    )
    incremental = False
    without = ("softmax",)
    default_losses = StreamMethod.default_losses | {"multiclass": "squared_hinge"}

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        if virtual_examples.endless(self):
            raise UsageError(
                f"--virtual is endless, but method {self.name} stores a number per row; set"
                " --virtual-copies"
            )
        if self.replace:
            raise UsageError(
                f"--replace may draw a row twice in one step, which method {self.name} does not"
                " support; omit it"
            )

    def check_stream(self, source: Source) -> None:
        if not source.rewindable:
            raise UsageError(
                f"method {self.name} needs the number of rows beforehand, but {source.name} can be"
                " read only once; use a file"
            )
        if self.head is not None:
            raise UsageError(
                f"--head is {self.head}, but method {self.name} has to count all rows; omit it"
            )
        if self.get("class_weight") is not None:
            raise UsageError(
                f"method {self.name} needs the weights of all rows beforehand; --class-weight does"
                " not support --stream"
            )
        super().check_stream(source)

    def check_further(self) -> None:
        raise UsageError(
            f"method {self.name} stores a number for each row of a data set; use fit, or another"
            " method"
        )

    def finished(self, learned: Learned, learner: Learner, source: Source | None) -> dict[str, Any]:
        if not self.gap or source is None:
            return {}
        source.rewind()
        dtype = input_dtype(self)

        def batches() -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
            for X, y, index in Stream(source, 4096):
                yield learned.inputs.transform(X, dtype), learned.encode(y), index

        primal, dual = learner.solver.bounds(batches())
        n = learned.n_counted
        # at the optimum, rounding decides the sign of the remainder
        return {"objective": n * primal, "gap": n * max(0.0, primal - dual)}
