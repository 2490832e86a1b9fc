"""`n-sdca`: dual coordinate ascent on Nystrom features (Shalev-Shwartz and Zhang 2013), a baseline of Dai et al. (2014)."""

from rfx.methods.dual import GAP, DualMethod
from rfx.methods.explicit import NystromFeatures
from rfx.solvers.stochastic.sdca import LinearSDCA


class NSdca(DualMethod, NystromFeatures):
    """One dual variable a row, maximised exactly in its turn; one number a row is kept."""

    name = "n-sdca"
    summary = "dual coordinate ascent on Nystrom features"
    options = (*NystromFeatures.options, GAP)

    def _make(self, state):
        features, count = self._map()
        nu, weights = self.params["nu"], self.batch_weights.relative()
        return LinearSDCA(features, count, self.n_outputs, self.n_rows, self.loss, nu, weights)
