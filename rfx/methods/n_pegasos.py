"""`n-pegasos`: Pegasos on Nystrom features (Shalev-Shwartz, Singer and Srebro 2007), a baseline of Dai et al. (2014)."""

from rfx.methods.explicit import NystromFeatures
from rfx.methods.stream_options import PROJECT
from rfx.solvers.stochastic.pegasos import Pegasos


class NPegasos(NystromFeatures):
    """Steps 1 / (nu t) for nu/2 ||w||^2 + E L(w.z, y)."""

    name = "n-pegasos"
    summary = "Pegasos on Nystrom features"
    options = (*NystromFeatures.options, PROJECT)

    def _make(self, state):
        features, count = self._map()
        return Pegasos(features, count, self.n_outputs, self.loss, self.params["nu"], self.params["project"])
