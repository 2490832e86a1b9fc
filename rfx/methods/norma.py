"""`norma`: stochastic functional gradients with the exact kernel (Kivinen, Smola, Williamson 2004).

f = sum_i coef_i k(x_i, .) over the rows so far with a nonzero gradient; all are stored. A baseline
of Dai et al. (2014).
"""

from typing import Any

from rfx.fitting.learned import Learned
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.step_sizes import DescentMethod, descent_of
from rfx.fitting.stream_options import AVERAGING, PRECONDITION
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.fitting.support_rows import SupportLearner, SupportMethod
from rfx.solvers.stochastic.norma import Norma


class NormaLearner(SupportLearner):
    """A model of rows, and the kind of steps."""

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"step": self.solver.descent.steps.kind}


class NormaMethod(SupportMethod, DescentMethod):
    """Stochastic gradients with the exact kernel."""

    name = "norma"
    summary = (
        "stochastic gradients with the exact kernel, storing the rows: doubly-sgd without random"
        " features"
    )
    precondition: bool = PRECONDITION(before=False)
    averaging: str = AVERAGING(before="none")

    def passes(self, n_rows: int | None) -> int:
        """One by default: it would store a row once per epoch."""
        return self.epochs or 1

    def learner(self, learned: Learned, own: BatchWeights, rewindable: bool) -> Learner:
        solver = Norma(
            self.kernel,
            learned.kernel_params,
            learned.n_outputs,
            learned.loss,
            self.nu,
            descent_of(self),
            input_dtype(self),
        )
        return NormaLearner(solver)
