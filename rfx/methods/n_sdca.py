"""`n-sdca`: dual coordinate ascent on Nystrom features (Shalev-Shwartz and Zhang 2013).

One dual variable per row, each maximised exactly in turn; a baseline of Dai et al. (2014).
"""

from rfx.fitting.dual_ascent import DualLearner, DualMethod
from rfx.fitting.explicit_features import NystromFeatures, NystromLearner
from rfx.fitting.learned import Learned
from rfx.fitting.stream_options import BATCH
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.solvers.stochastic.sdca import LinearSDCA


class NSdcaLearner(DualLearner, NystromLearner):
    """Steps over the rows of a set; the model consists of landmarks."""


class NSdca(NystromFeatures, DualMethod):
    """Dual coordinate ascent on Nystrom features."""

    name = "n-sdca"
    summary = "dual coordinate ascent on Nystrom features"
    batch: int = BATCH(default=4096)

    def learner(self, learned: Learned, own: BatchWeights, rewindable: bool) -> Learner:
        feature_map, seconds = self.feature_map(learned)
        solver = LinearSDCA(
            feature_map.transform,
            feature_map.n_features,
            learned.n_outputs,
            learned.n_rows,
            learned.loss,
            self.nu,
            own.relative(),
            self.sweeps,
        )
        return NSdcaLearner(solver, feature_map, self, seconds)
