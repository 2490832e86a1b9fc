"""Step size options shared by doubly-sgd and norma."""

from __future__ import annotations

from rfx.errors import UsageError
from rfx.fitting.settings import Settings
from rfx.fitting.stream_options import FEW_ROWS
from rfx.options import Option
from rfx.solvers.stochastic.steps import DAMPING, Descent, Steps

STEP = Option(
    "step",
    str,
    "Step sizes.",
    {
        "theorem": "theta / (t + t0), theta nu from 1 to 2",
        "root": "theta / sqrt(t + t0)",
        "decay": "step0 / (1 + step1 t)",
        "constant": "step0",
        "normalized": "step0 / root mean square of the loss derivatives on the batch, at most 1",
    },
    default="root",
)
THETA = Option(
    "theta",
    float,
    "See --step; by default 1 / nu (theorem), 1 (root), without --precondition the best of 1, 4 and"
    " 16 on held-out rows of a sample (root).",
    low=0,
    open_low=True,
)
T0 = Option("t0", float, "See --step; by default 2 theta (theorem), 0 (root).", low=0)
STEP0 = Option("step0", float, "See --step.", low=0, open_low=True, default=1.0)
STEP1 = Option("step1", float, "See --step.", low=0, default=1e-4)
STEPS = (STEP, THETA, T0, STEP0, STEP1)


def check_steps(settings: Settings) -> None:
    """Raise UsageError for step sizes that are impossible with any resolved option."""
    if isinstance(settings.nu, str) and settings.step == "theorem":
        raise UsageError(
            f"--step is theorem, which needs --nu, but --nu is {settings.nu}; set it to a number"
        )
    numbers = {"nu": FEW_ROWS["nu"]} if isinstance(settings.nu, str) else {}
    steps_of(settings.updated(**numbers))


def steps_of(settings: Settings) -> Steps:
    """The steps of numeric options; UsageError if the theorem does not allow them."""
    kind, nu, theta, t0 = settings.step, settings.nu, settings.theta, settings.t0
    if kind == "theorem":
        theta = (1 / nu if nu else None) if theta is None else theta
        t0 = (2 * theta if theta else 0.0) if t0 is None else t0
    elif kind == "root":
        theta = 1.0 if theta is None else theta
    return Steps(kind, nu, theta, t0 or 0.0, settings.step0, settings.step1)


def descent_of(settings: Settings) -> Descent:
    """The descent of numeric options."""
    damping = settings.get("damping", DAMPING)
    return Descent(steps_of(settings), settings.precondition, damping, settings.averaging)
