"""`norma`: stochastic functional gradients with the exact kernel (Kivinen, Smola and Williamson 2004), a baseline of Dai et al."""

from rfx.methods.doubly_sgd import STEPS, steps_of
from rfx.methods.streaming import StreamMethod
from rfx.methods.support import SUPPORT, Kept, kernel_option
from rfx.solvers.stochastic.norma import Norma


class NormaMethod(StreamMethod):
    """f = sum_i coef_i k(x_i, .) over the rows so far that had a share in the gradient; all are kept."""

    name = "norma"
    summary = "stochastic gradients with the exact kernel, the rows kept: what doubly-sgd would be without its second approximation"
    options = (*StreamMethod.options, kernel_option(), *STEPS)
    arrays = StreamMethod.arrays | SUPPORT

    def check_given(self, given):
        super().check_given(given)
        steps_of(self.params)

    def _make(self, state):
        p = self.params
        return Norma(p["kernel"], self.kernel_params, self.n_outputs, self.loss, p["nu"], steps_of(p), self._input_dtype())

    def _restore_solver(self, arrays):
        self.solver = Kept(self.params["kernel"], self.kernel_params, arrays["support"], arrays["coef"], self._input_dtype())

    def _model_arrays(self):
        return {"support": self.solver.support.rows, "coef": self.solver.coef}

    def _describe(self):
        return self._describe_model()

    def _describe_model(self):
        return {"n_features": None, "model_size": self.solver.support.n_rows, "step": self.params["step"]}
