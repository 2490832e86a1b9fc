"""`r-sdca`: dual coordinate ascent on random features (Shalev-Shwartz and Zhang 2013).

One dual variable per row, each maximised exactly in turn; a baseline of Dai et al. (2014).
"""

from typing import ClassVar

from rfx.fitting.dual_ascent import DUAL_OF_FEATURES, DualLearner, DualMethod
from rfx.fitting.explicit_features import RandomFeatures, RandomLearner, Scaled
from rfx.fitting.learned import Learned
from rfx.fitting.settings import Settings
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.options import Option
from rfx.solvers.stochastic.sdca import LinearSDCA


class RSdcaLearner(DualLearner, RandomLearner):
    """Steps over the rows of a set; the model consists of random features."""


class RSdca(DualMethod, RandomFeatures):
    """Dual coordinate ascent on random features."""

    name = "r-sdca"
    summary = "dual coordinate ascent on random features"
    options: ClassVar[tuple[Option, ...]] = (*RandomFeatures.options, *DUAL_OF_FEATURES)

    def learner(
        self, learned: Learned, settings: Settings, own: BatchWeights, rewindable: bool
    ) -> Learner:
        feature_map = self.features(learned, settings)
        solver = LinearSDCA(
            Scaled(feature_map),
            feature_map.n_features,
            learned.n_outputs,
            learned.n_rows,
            learned.loss,
            settings.nu,
            own.relative(),
            settings.sweeps,
        )
        return RSdcaLearner(solver, feature_map)
