"""Methods of stochastic gradient steps, and the options of their lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from rfx.errors import UsageError
from rfx.fitting.problem import Problem
from rfx.fitting.streaming import FEW_NU, NUS, StreamMethod
from rfx.options import option
from rfx.solvers.stochastic.steps import DAMPING, Descent, Steps

# The candidates of theta without preconditioning.
THETAS = (1.0, 4.0, 16.0)


class GradientMethod(StreamMethod):
    """A method of gradient steps, which may be preconditioned and averaged."""

    precondition: bool = option(
        True,
        "Multiply a step by the inverse of the covariance of its features on the batch.",
        before=False,
    )
    averaging: str = option(
        "linear",
        "What predicts.",
        of={
            "none": "the last f, as in the paper",
            "uniform": "the mean over all steps",
            "linear": "the mean with weight t",
        },
        before="none",
    )


class DescentMethod(GradientMethod):
    """A method of gradient steps whose length is given by a rule, or chosen."""

    step: str = option(
        "root",
        "Step sizes.",
        of={
            "theorem": "theta / (t + t0), theta nu from 1 to 2",
            "root": "theta / sqrt(t + t0)",
            "decay": "step0 / (1 + step1 t)",
            "constant": "step0",
            "normalized": (
                "step0 / root mean square of the loss derivatives on the batch, at most 1"
            ),
        },
    )
    theta: float | None = option(
        None,
        "See --step; by default 1 / nu (theorem), 1 (root), without --precondition the best of 1, 4"
        " and 16 on held-out rows of a sample (root).",
        above=0,
    )
    t0: float | None = option(None, "See --step; by default 2 theta (theorem), 0 (root).", least=0)
    step0: float = option(1.0, "See --step.", above=0)
    step1: float = option(1e-4, "See --step.", least=0)
    space = replace(StreamMethod.space, values={"nu": NUS, "theta": THETAS})

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        words = isinstance(self.nu, str)
        if words and self.step == "theorem":
            raise UsageError(
                f"--step is theorem, which needs --nu, but --nu is {self.nu}; set it to a number"
            )
        _ = (self.updated(nu=FEW_NU) if words else self).descent

    @property
    def descent(self) -> Descent:
        """The descent of numeric options; UsageError if the theorem does not allow its steps."""
        theta, t0 = self.theta, self.t0
        if self.step == "theorem":
            theta = 1 / self.nu if theta is None and self.nu else theta
            t0 = 2 * theta if t0 is None and theta else t0
        elif self.step == "root" and theta is None:
            theta = 1.0
        steps = Steps(self.step, self.nu, theta, t0 or 0.0, self.step0, self.step1)
        damping = self.get("damping", DAMPING)
        return Descent(steps, self.precondition, damping, self.averaging)

    def with_words(self) -> Self:
        if self.step == "root" and self.theta is None:
            return self.updated(theta="validation")
        return self

    def candidates(self, name: str, problem: Problem) -> list[float]:
        if name != "theta":
            return super().candidates(name, problem)
        # in the unit of the targets, if the loss requires it
        return [value * problem.unit for value in (THETAS[:1] if self.precondition else THETAS)]
