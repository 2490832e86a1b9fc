"""`r-pegasos`: Pegasos on random features (Shalev-Shwartz, Singer and Srebro 2007).

Steps 1 / (nu t) for nu/2 ||w||^2 + E L(w.z, y); a baseline of Dai et al. (2014).
"""

from typing import ClassVar

from rfx.fitting.explicit_features import RandomFeatures, RandomLearner, Scaled
from rfx.fitting.learned import Learned
from rfx.fitting.settings import Settings
from rfx.fitting.stream_options import PEGASOS
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.options import Option
from rfx.solvers.stochastic.pegasos import Pegasos


class RPegasos(RandomFeatures):
    """Pegasos on random features."""

    name = "r-pegasos"
    summary = "Pegasos on random features"
    options: ClassVar[tuple[Option, ...]] = (*RandomFeatures.options, *PEGASOS)

    def learner(
        self, learned: Learned, settings: Settings, own: BatchWeights, rewindable: bool
    ) -> Learner:
        feature_map = self.features(learned, settings)
        solver = Pegasos(
            Scaled(feature_map),
            feature_map.n_features,
            learned.n_outputs,
            learned.loss,
            settings.nu,
            settings.project,
            precondition=settings.precondition,
            averaging=settings.averaging,
        )
        return RandomLearner(solver, feature_map)
