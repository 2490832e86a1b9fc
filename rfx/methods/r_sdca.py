"""`r-sdca`: dual coordinate ascent on random features (Shalev-Shwartz and Zhang 2013).

One dual variable per row, each maximised exactly in turn; a baseline of Dai et al. (2014).
"""

from rfx.fitting.dual_ascent import DualLearner, DualMethod
from rfx.fitting.explicit_features import RandomFeatures, RandomLearner, Scaled
from rfx.fitting.learned import Learned
from rfx.fitting.stream_options import BATCH
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.solvers.stochastic.sdca import LinearSDCA


class RSdcaLearner(DualLearner, RandomLearner):
    """Steps over the rows of a set; the model consists of random features."""


class RSdca(RandomFeatures, DualMethod):
    """Dual coordinate ascent on random features."""

    name = "r-sdca"
    summary = "dual coordinate ascent on random features"
    batch: int = BATCH(default=4096)

    def learner(self, learned: Learned, own: BatchWeights, rewindable: bool) -> Learner:
        feature_map = self.feature_map(learned)
        solver = LinearSDCA(
            Scaled(feature_map),
            feature_map.n_features,
            learned.n_outputs,
            learned.n_rows,
            learned.loss,
            self.nu,
            own.relative(),
            self.sweeps,
        )
        return RSdcaLearner(solver, feature_map)
