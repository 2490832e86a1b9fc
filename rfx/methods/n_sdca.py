"""`n-sdca`: dual coordinate ascent on Nystrom features (Shalev-Shwartz and Zhang 2013).

One dual variable per row, each maximised exactly in turn; a baseline of Dai et al. (2014).
"""

from typing import ClassVar

from rfx.fitting.dual_ascent import DUAL_OF_FEATURES, DualLearner, DualMethod
from rfx.fitting.explicit_features import NystromFeatures, NystromLearner
from rfx.fitting.learned import Learned
from rfx.fitting.settings import Settings
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.options import Option
from rfx.solvers.stochastic.sdca import LinearSDCA


class NSdcaLearner(DualLearner, NystromLearner):
    """Steps over the rows of a set; the model consists of landmarks."""


class NSdca(DualMethod, NystromFeatures):
    """Dual coordinate ascent on Nystrom features."""

    name = "n-sdca"
    summary = "dual coordinate ascent on Nystrom features"
    options: ClassVar[tuple[Option, ...]] = (*NystromFeatures.options, *DUAL_OF_FEATURES)

    def learner(
        self, learned: Learned, settings: Settings, own: BatchWeights, rewindable: bool
    ) -> Learner:
        feature_map, seconds = self.features(learned, settings)
        solver = LinearSDCA(
            feature_map.transform,
            feature_map.n_features,
            learned.n_outputs,
            learned.n_rows,
            learned.loss,
            settings.nu,
            own.relative(),
            settings.sweeps,
        )
        return NSdcaLearner(solver, feature_map, settings, seconds)
