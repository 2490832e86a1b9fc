"""`k-sdca`: dual coordinate ascent with the exact kernel (Shalev-Shwartz and Zhang 2013).

f = 1/(nu n) sum_i a_i k(x_i, .); all rows are stored. A baseline of Dai et al. (2014).
"""

from rfx.fitting.dual_ascent import DualLearner, DualMethod
from rfx.fitting.learned import Learned
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.fitting.support_rows import SupportLearner, SupportMethod
from rfx.solvers.stochastic.sdca import KernelSDCA


class KSdcaLearner(DualLearner, SupportLearner):
    """Steps over the rows of a set; the model consists of rows."""


class KSdca(SupportMethod, DualMethod):
    """Dual coordinate ascent with the exact kernel."""

    name = "k-sdca"
    summary = "dual coordinate ascent with the exact kernel, storing the rows"

    def learner(self, learned: Learned, own: BatchWeights, rewindable: bool) -> Learner:
        solver = KernelSDCA(
            self.kernel,
            learned.kernel_params,
            learned.n_outputs,
            learned.n_rows,
            learned.loss,
            self.nu,
            input_dtype(self),
            own.relative(),
            self.sweeps,
        )
        return KSdcaLearner(solver)
