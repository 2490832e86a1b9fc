"""`k-sdca`: dual coordinate ascent with the exact kernel (Shalev-Shwartz and Zhang 2013).

f = 1/(nu n) sum_i a_i k(x_i, .); all rows are stored. A baseline of Dai et al. (2014).
"""

from typing import ClassVar

from rfx.fitting.dual_ascent import DUAL, DualLearner, DualMethod
from rfx.fitting.learned import Learned
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.settings import Settings
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.fitting.support_rows import SupportLearner, SupportMethod
from rfx.options import Option
from rfx.solvers.stochastic.sdca import KernelSDCA


class KSdcaLearner(DualLearner, SupportLearner):
    """Steps over the rows of a set; the model consists of rows."""


class KSdca(DualMethod, SupportMethod):
    """Dual coordinate ascent with the exact kernel."""

    name = "k-sdca"
    summary = "dual coordinate ascent with the exact kernel, storing the rows"
    options: ClassVar[tuple[Option, ...]] = (*SupportMethod.options, *DUAL)

    def learner(
        self, learned: Learned, settings: Settings, own: BatchWeights, rewindable: bool
    ) -> Learner:
        solver = KernelSDCA(
            settings.kernel,
            learned.kernel_params,
            learned.n_outputs,
            learned.n_rows,
            learned.loss,
            settings.nu,
            input_dtype(settings),
            own.relative(),
            settings.sweeps,
        )
        return KSdcaLearner(solver)
