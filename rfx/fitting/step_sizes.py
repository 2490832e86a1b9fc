"""Step size options shared by doubly-sgd and norma."""

from __future__ import annotations

from typing import Any, ClassVar

from rfx.errors import UsageError
from rfx.fitting.stream_options import FEW_ROWS, NUS, THETAS
from rfx.fitting.streaming import StreamMethod
from rfx.options import Declared, option
from rfx.solvers.stochastic.steps import DAMPING, Descent, Steps


class DescentMethod(StreamMethod):
    """A method of stochastic gradient steps, whose first length may be chosen."""

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
    searched: ClassVar[dict[str, tuple[float, ...]]] = {"nu": NUS, "theta": THETAS}

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        if isinstance(self.nu, str) and self.step == "theorem":
            raise UsageError(
                f"--step is theorem, which needs --nu, but --nu is {self.nu}; set it to a number"
            )
        steps_of(self.updated(nu=FEW_ROWS["nu"]) if isinstance(self.nu, str) else self)


def steps_of(method: Declared) -> Steps:
    """The steps of numeric options; UsageError if the theorem does not allow them."""
    kind, nu, theta, t0 = method.step, method.nu, method.theta, method.t0
    if kind == "theorem":
        theta = (1 / nu if nu else None) if theta is None else theta
        t0 = (2 * theta if theta else 0.0) if t0 is None else t0
    elif kind == "root":
        theta = 1.0 if theta is None else theta
    return Steps(kind, nu, theta, t0 or 0.0, method.step0, method.step1)


def descent_of(method: Declared) -> Descent:
    """The descent of numeric options."""
    damping = method.get("damping", DAMPING)
    return Descent(steps_of(method), method.precondition, damping, method.averaging)
