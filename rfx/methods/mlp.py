"""`mlp`: scikit-learn's multilayer perceptron on the same batches.

It replaces the networks compared with doubly-sgd in Dai et al. (2014), Figure 1. f = dense layers
of rectified linear units, trained by Adam; --nu is of nu/2 ||weights||^2, without the intercepts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rfx import lazy, losses
from rfx import steps as told
from rfx.errors import DataError, UsageError
from rfx.fitting.options import DTYPE, LOSS, SCALING
from rfx.fitting.streaming import Arrays, Setup, StreamMethod
from rfx.model import Array
from rfx.options import Widths, option
from rfx.parallel import one_blas_thread
from rfx.types import Inputs


class Network:
    """MLPClassifier or MLPRegressor, one partial_fit per step; f is the output of the last layer,
    before any sigmoid or softmax.

    layers: widths of the hidden layers. loss: squared, logistic or softmax, of rfx.losses, for
    n_outputs predictions per row. nu: of nu/2 ||weights||^2 in addition to the mean loss. rate:
    Adam's step. The last, shorter batch of an epoch is a full step here. unit_deviation: the
    network learns targets divided by their deviation in the first batch, per output; f is still in
    the targets' unit, and nu refers to the scaled loss.
    """

    def __init__(
        self,
        layers: Sequence[int],
        n_outputs: int,
        loss: losses.Loss,
        nu: float,
        rate: float,
        seed: int,
        *,
        unit_deviation: bool = False,
    ) -> None:
        networks = lazy.neural_network
        self.kind = networks.MLPRegressor if loss.name == "squared" else networks.MLPClassifier
        self.model = self.kind(
            hidden_layer_sizes=layers,
            learning_rate_init=rate,
            shuffle=False,
            random_state=seed % 2**32,
        )
        self.loss, self.nu, self.n_outputs, self.t = loss, nu, n_outputs, 0
        self.unit_deviation = unit_deviation
        self.scale = np.ones(n_outputs)

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(weights (inputs, outputs), intercepts (outputs,)) of each layer, from the inputs on."""
        if not self.t:
            return []
        *hidden, (weights, intercepts) = zip(self.model.coefs_, self.model.intercepts_)
        return [*hidden, (weights * self.scale, intercepts * self.scale)]

    def step(
        self,
        X: Inputs,
        Y: np.ndarray,
        index: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> float:
        """One step of Adam on the rows X (n, d) and encoded targets Y (n, n_outputs), without
        weights; returns the batch's mean loss before it.

        Losses of several outputs of the squared loss are summed.
        """
        # scikit-learn adds alpha/2 ||weights||^2 / n
        self.model.set_params(batch_size=len(Y), alpha=self.nu * len(Y))
        # its small products take longer with several threads, which wait for each other
        with one_blas_thread():
            loss = float(self.loss.value(self.predictions(X), Y).sum() / len(Y))
            if self.loss.name == "squared":
                if self.unit_deviation and not self.t:
                    found = Y.std(axis=0)
                    self.scale = np.where(found > 0, found, 1.0)
                Y = Y / self.scale
                self.model.partial_fit(X, Y if self.n_outputs > 1 else Y[:, 0])
            else:
                labels = Y.argmax(axis=1) if self.n_outputs > 1 else (Y[:, 0] > 0).astype(int)
                self.model.partial_fit(X, labels, classes=np.arange(max(2, self.n_outputs)))
        self.t += 1
        return loss

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f."""
        return forward(self.layers, X) if self.t else np.zeros((X.shape[0], self.n_outputs))


def forward(layers: Sequence[tuple[np.ndarray, np.ndarray]], X: Inputs) -> np.ndarray:
    """(n, outputs) float64: the output of dense layers of rectified linear units, the last one
    linear, for the rows X (n, d).
    """
    for number, (weights, intercepts) in enumerate(layers):
        X = (X if number == 0 else np.maximum(X, 0)) @ weights + intercepts
    return np.asarray(X, np.float64)


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
    nu: float = StreamMethod.options["nu"](choices=(), default=1e-6)
    batch: int = StreamMethod.options["batch"](default=64)
    scaling: str = SCALING(default="standard")
    layers: str = option("100", "Widths of the hidden layers, starting at the inputs.", kind=Widths)
    rate: float = option(3e-3, "Adam's step.", above=0)
    # In float32 the squares of small gradients are denormal numbers, which make a step ten times
    # slower.
    dtype: str = DTYPE(default="float64")
    arrays = StreamMethod.arrays | {"parameters": Array("f", "parameters")}
    default_losses = StreamMethod.default_losses | {"binary": "logistic"}
    space = replace(StreamMethod.space, values={})
    incremental = several_targets = resumable = False

    def kernel_params(self, X: Any) -> dict[str, Any]:
        return {}

    def loss_for(self, task: str) -> losses.Loss:
        loss = super().loss_for(task)
        if task == "multiclass" and loss.name == "logistic":
            raise UsageError("--loss is logistic, but there are several classes; choose softmax")
        return loss

    def start(self, setup: Setup) -> Network:
        return Network(
            Widths.values(self.layers),
            setup.n_outputs,
            setup.loss,
            self.nu,
            self.rate,
            self.seed,
            unit_deviation=setup.task == "regression" and self.target_scaling in (None, "mean"),
        )

    def training_bytes(self, solver: Any) -> None:
        """None: scikit-learn does not give Adam's state."""

    def parameters(self, solver: Any) -> Arrays:
        layers = [np.append(weights, intercepts) for weights, intercepts in solver.layers]
        return {"parameters": np.concatenate(layers)}

    def describe(self, solver: Any) -> dict[str, Any]:
        return {"n_features": None, "model_size": len(self.parameters(solver)["parameters"])}

    def function(
        self, header: dict[str, Any], arrays: Arrays, setup: Setup
    ) -> tuple[Callable[[Any], np.ndarray], Callable[[], told.Steps]]:
        layers = self._layers(arrays["parameters"], setup)
        ramp = told.Function("ramp")
        each = lambda: [step for layer in layers for step in (ramp, told.linear(*layer))]
        return partial(forward, layers), lambda: tuple(each()[1:])

    def _layers(self, parameters: np.ndarray, setup: Setup) -> list[tuple[np.ndarray, np.ndarray]]:
        """(weights, intercepts) of each layer; DataError if the number of parameters is wrong."""
        sizes = [setup.n_inputs, *Widths.values(self.layers), setup.n_outputs]
        shapes = list(zip(sizes, sizes[1:]))
        wanted = sum((inputs + 1) * width for inputs, width in shapes)
        if len(parameters) != wanted:
            raise DataError(
                f"its {len(parameters)} parameters are not the {wanted} of layers {self.layers}"
            )
        layers, start = [], 0
        for shape in shapes:
            end = start + math.prod(shape)
            layers.append((parameters[start:end].reshape(shape), parameters[end : end + shape[1]]))
            start = end + shape[1]
        return layers
