"""`mlp`: scikit-learn's multilayer perceptron on the same batches.

It replaces the networks compared with doubly-sgd in Dai et al. (2014), Figure 1. f = dense layers
of rectified linear units, trained by Adam; --nu is of nu/2 ||weights||^2, without the intercepts.
"""

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from rfx import losses
from rfx import steps as told
from rfx.errors import DataError, UsageError
from rfx.fitting.learned import Learned
from rfx.fitting.method import Method
from rfx.fitting.options import DTYPE, LOSS, SCALING
from rfx.fitting.stream_options import BATCH, NU
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner, Restored, StreamMethod
from rfx.model import Array
from rfx.options import Widths, option
from rfx.solvers.stochastic.network import Network, forward


class MlpLearner(Learner):
    """The learner of a network with layers of these shapes."""

    def __init__(self, solver: Network, shapes: list[tuple[int, int]]) -> None:
        super().__init__(solver)
        self.shapes = shapes

    def step(self, X: Any, Y: np.ndarray, index: Any, own: Any) -> float:
        return self.solver.step(X, Y)

    def training_bytes(self) -> None:
        """None: scikit-learn does not give Adam's state."""

    def parameters(self) -> dict[str, np.ndarray]:
        layers = [np.append(weights, intercepts) for weights, intercepts in self.solver.layers]
        return {"parameters": np.concatenate(layers)}

    def describe(self) -> dict[str, Any]:
        size = sum((inputs + 1) * width for inputs, width in self.shapes)
        return {"n_features": None, "model_size": size}


class Mlp(StreamMethod, without=("kernel", "gamma", "epsilon", "class_weight")):
    """A network of dense layers."""

    name = "mlp"
    summary = (
        "scikit-learn's network of dense layers, trained by Adam on the same batches: the baseline"
        " for doubly-sgd"
    )
    loss: str | None = LOSS(
        help=(
            "The loss; by default squared for regression, logistic for two classes, softmax for"
            " more."
        ),
        choices=("squared", "logistic", "softmax"),
    )
    nu: float = NU(choices=(), default=1e-6)
    batch: int = BATCH(default=64)
    scaling: str = SCALING(default="standard")
    layers: str = option("100", "Widths of the hidden layers, starting at the inputs.", kind=Widths)
    rate: float = option(3e-3, "Adam's step.", above=0)
    # In float32 the squares of small gradients are denormal numbers, which make a step ten times
    # slower.
    dtype: str = DTYPE(default="float64")
    arrays = StreamMethod.arrays | {"parameters": Array("f", "parameters")}
    default_losses = StreamMethod.default_losses | {"binary": "logistic"}
    searched: ClassVar[dict[str, tuple[float, ...]]] = {}
    incremental = several_targets = resumable = False

    def kernel_params(self, X: Any) -> dict[str, Any]:
        return {}

    def loss_for(self, task: str) -> losses.Loss:
        loss = super().loss_for(task)
        if task == "multiclass" and loss.name == "logistic":
            raise UsageError("--loss is logistic, but there are several classes; choose softmax")
        return loss

    def learner(self, learned: Learned, own: BatchWeights, rewindable: bool) -> Learner:
        widths, outputs = Widths.values(self.layers), learned.n_outputs
        scaler = learned.target_scaler
        solver = Network(
            widths,
            outputs,
            learned.loss,
            self.nu,
            self.rate,
            self.seed,
            unit_deviation=scaler is not None and scaler.kind == "mean",
        )
        return MlpLearner(solver, _shapes(learned.n_prepared, self, outputs))

    def predictor(self, header, arrays, known: Restored):
        return partial(forward, _layers(arrays["parameters"], self, known))

    def steps(self, header, arrays, known: Restored) -> told.Steps:
        (weights, intercepts), *others = _layers(arrays["parameters"], self, known)
        found: told.Steps = (told.linear(weights, intercepts),)
        for layer in others:
            found += (told.Function("ramp"), told.linear(*layer))
        return found


def _layers(
    parameters: np.ndarray, method: Method, known: Restored
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(weights, intercepts) of each layer; DataError if the number of parameters is wrong."""
    layers, start = [], 0
    shapes = _shapes(known.n_prepared, method, known.n_outputs)
    wanted = sum((inputs + 1) * width for inputs, width in shapes)
    if len(parameters) != wanted:
        raise DataError(
            f"its {len(parameters)} parameters are not the {wanted} of layers {method.layers}"
        )
    for shape in shapes:
        end = start + math.prod(shape)
        weights = parameters[start:end].reshape(shape)
        layers.append((weights, parameters[end : end + shape[1]]))
        start = end + shape[1]
    return layers


def _shapes(n_inputs: int, method: Method, n_outputs: int) -> list[tuple[int, int]]:
    """(inputs, outputs) of every layer."""
    sizes = [n_inputs, *Widths.values(method.layers), n_outputs]
    return list(zip(sizes, sizes[1:]))
