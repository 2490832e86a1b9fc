"""scikit-learn's dense layers trained by Adam: the network for comparison with doubly stochastic
gradients on the same batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rfx import lazy
from rfx.parallel import one_blas_thread

if TYPE_CHECKING:
    from rfx.losses import Loss
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
        loss: Loss,
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
