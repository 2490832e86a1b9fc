"""`k-sdca`: dual coordinate ascent with the exact kernel (Shalev-Shwartz and Zhang 2013), a baseline of Dai et al. (2014)."""

from rfx.methods.dual import GAP, DualMethod
from rfx.methods.streaming import StreamMethod
from rfx.methods.support import SUPPORT, Kept, kernel_option
from rfx.solvers.stochastic.sdca import KernelSDCA


class KSdca(DualMethod):
    """f = 1/(nu n) sum_i a_i k(x_i, .); all rows are kept."""

    name = "k-sdca"
    summary = "dual coordinate ascent with the exact kernel, the rows kept"
    options = (*StreamMethod.options, kernel_option(), GAP)
    arrays = StreamMethod.arrays | SUPPORT

    def _make(self, state):
        p = self.params
        return KernelSDCA(
            p["kernel"], self.kernel_params, self.n_outputs, self.n_rows, self.loss, p["nu"], self._input_dtype(),
            self.batch_weights.relative(),
        )  # fmt: skip

    def _restore_solver(self, arrays):
        self.solver = Kept(self.params["kernel"], self.kernel_params, arrays["support"], arrays["coef"], self._input_dtype())

    def _model_arrays(self):
        return {"support": self.solver.support.rows, "coef": self.solver.coef}

    def _describe(self):
        return self._describe_model()

    def _describe_model(self):
        return {"n_features": None, "model_size": self.solver.support.n_rows}
