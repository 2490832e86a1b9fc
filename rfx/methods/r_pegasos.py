"""`r-pegasos`: Pegasos on random features (Shalev-Shwartz, Singer and Srebro 2007).

Steps 1 / (nu t) for nu/2 ||w||^2 + E L(w.z, y); a baseline of Dai et al. (2014).
"""

from rfx.fitting.explicit_features import RandomFeatures, RandomLearner, Scaled
from rfx.fitting.learned import Learned
from rfx.fitting.stream_options import AVERAGING, BATCH, PRECONDITION, PROJECT
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner
from rfx.solvers.stochastic.pegasos import Pegasos


class RPegasos(RandomFeatures):
    """Pegasos on random features."""

    name = "r-pegasos"
    summary = "Pegasos on random features"
    batch: int = BATCH(default=4096)
    project: bool = PROJECT()
    precondition: bool = PRECONDITION(before=False)
    averaging: str = AVERAGING(before="none")

    def learner(self, learned: Learned, own: BatchWeights, rewindable: bool) -> Learner:
        feature_map = self.feature_map(learned)
        solver = Pegasos(
            Scaled(feature_map),
            feature_map.n_features,
            learned.n_outputs,
            learned.loss,
            self.nu,
            self.project,
            precondition=self.precondition,
            averaging=self.averaging,
        )
        return RandomLearner(solver, feature_map)
