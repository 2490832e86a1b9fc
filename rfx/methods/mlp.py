"""`mlp`: scikit-learn's multilayer perceptron on the same batches, in place of the networks beside doubly-sgd in Dai et al., Figure 1."""

import math
from functools import partial

import numpy as np

from rfx.errors import DataError, UsageError
from rfx.methods.options import DTYPE
from rfx.methods.streaming import StreamMethod
from rfx.model import Array
from rfx.options import Option, Widths
from rfx.solvers.stochastic.network import Network, forward

LAYERS = Option("layers", Widths, "Widths of the hidden layers, the first one first.", default="100")
RATE = Option("rate", float, "Adam's step.", low=0, open_low=True, default=1e-3)
# In float32 the squares of small gradients are denormal numbers, by which a step took ten times as long after 20,000 of them.
_DTYPE = DTYPE.but(default="float64")
_LEFT_OUT = ("kernel", "gamma", "epsilon", "loss", "dtype")


class Mlp(StreamMethod):
    """f = dense layers of rectified linear units, trained by Adam; --nu is of nu/2 ||weights||^2, without the intercepts."""

    name = "mlp"
    summary = "a network of dense layers, scikit-learn's, trained by Adam on the same batches: what doubly-sgd is compared with"
    options = (
        *(option for option in StreamMethod.options if option.name not in _LEFT_OUT),
        next(option for option in StreamMethod.options if option.name == "loss").but(
            help="The loss; by default squared for regression, logistic for two classes, softmax for more.",
            choices=("squared", "logistic", "softmax"),
        ),
        LAYERS,
        RATE,
        _DTYPE,
    )
    arrays = StreamMethod.arrays | {"parameters": Array("f", "parameters")}
    default_losses = StreamMethod.default_losses | {"binary": "logistic"}
    incremental = several_targets = weighted = False

    def keep(self, path, every=None, resume=False):
        raise UsageError("method mlp keeps no checkpoints: scikit-learn does not say where Adam is; leave --checkpoint out")

    def _widths(self) -> list[int]:
        return Widths.values(self.params["layers"])

    def _bandwidth(self, found):
        return {}, []

    def _choose_loss(self):
        loss = super()._choose_loss()
        if self.task == "multiclass" and loss.name == "logistic":
            raise UsageError(f"--loss is logistic, but there are {len(self.classes)} classes; choose softmax")
        return loss

    def _make(self, state):
        return Network(self._widths(), self.n_outputs, self.loss, self.params["nu"], self.params["rate"], self.params["seed"])

    def _step(self, X, Y, index, own):
        return self.solver.step(X, Y)

    def _shapes(self) -> list[tuple[int, int]]:
        sizes = [self.n_prepared, *self._widths(), self.n_outputs]
        return list(zip(sizes, sizes[1:]))

    def _model_arrays(self):
        return {"parameters": np.concatenate([np.append(weights, intercepts) for weights, intercepts in self.solver.layers])}

    def _restore_solver(self, arrays):
        parameters, layers, start = arrays["parameters"], [], 0
        wanted = sum((inputs + 1) * outputs for inputs, outputs in self._shapes())
        if len(parameters) != wanted:
            raise DataError(f"its {len(parameters)} parameters are not the {wanted} of layers {self.params['layers']}")
        for shape in self._shapes():
            weights, start = parameters[start : start + math.prod(shape)].reshape(shape), start + math.prod(shape)
            layers.append((weights, parameters[start : start + shape[1]]))
            start += shape[1]
        self.solver = Restored(layers)

    def _describe(self):
        return self._describe_model()

    def _describe_model(self):
        return {"n_features": None, "model_size": sum((inputs + 1) * outputs for inputs, outputs in self._shapes())}


class Restored:
    """The network of a model file."""

    def __init__(self, layers):
        self.layers, self.predictions = layers, partial(forward, layers)
