"""`norma`: stochastic functional gradients with the exact kernel (Kivinen, Smola, Williamson 2004).

f = sum_i coef_i k(x_i, .) over the rows so far with a nonzero gradient; all are stored. A baseline
of Dai et al. (2014).
"""

from typing import Any, ClassVar

from rfx.fitting.learned import Learned
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.settings import Settings
from rfx.fitting.step_sizes import STEPS, check_steps, descent_of
from rfx.fitting.stream_options import AVERAGING, NUS, PRECONDITION, THETAS
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.fitting.support_rows import SupportLearner, SupportMethod
from rfx.options import Option
from rfx.solvers.stochastic.norma import Norma


class NormaLearner(SupportLearner):
    """A model of rows, and the kind of steps."""

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"step": self.solver.descent.steps.kind}


class NormaMethod(SupportMethod):
    """Stochastic gradients with the exact kernel."""

    name = "norma"
    summary = (
        "stochastic gradients with the exact kernel, storing the rows: doubly-sgd without random"
        " features"
    )
    options: ClassVar[tuple[Option, ...]] = (
        *SupportMethod.options,
        *STEPS,
        PRECONDITION,
        AVERAGING,
    )

    searched: ClassVar[dict[str, tuple[float, ...]]] = {"nu": NUS, "theta": THETAS}

    @staticmethod
    def passes(settings: Settings, n_rows: int | None) -> int:
        """One by default: it would store a row once per epoch."""
        return settings.epochs or 1

    def check(self, settings: Settings, given: dict[str, Any]) -> None:
        super().check(settings, given)
        check_steps(settings)

    def learner(
        self, learned: Learned, settings: Settings, own: BatchWeights, rewindable: bool
    ) -> Learner:
        solver = Norma(
            settings.kernel,
            learned.kernel_params,
            learned.n_outputs,
            learned.loss,
            settings.nu,
            descent_of(settings),
            input_dtype(settings),
        )
        return NormaLearner(solver)
