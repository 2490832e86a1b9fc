"""Values learnt from a survey of a stream's rows before the first step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rfx.data.survey import Inputs
from rfx.data.tabular.schema import Schema
from rfx.data.transforms.scaling import TargetScaler
from rfx.fitting import targets


@dataclass(frozen=True)
class Learned:
    """Values learnt from a survey of the rows before the first step.

    Parameters
    ----------
    task, classes, target_scaler, loss
        See `Preprocessing` and `Problem`.
    inputs : Inputs
        Scaling, unit length and principal components.
    kernel_params : dict
    n_rows, n_inputs, n_targets, n_prepared : int
        Number of rows, raw inputs, targets per row, and prepared inputs.
    sample : array, (m, n_prepared)
        Some of the prepared rows, in random order.
    steps : list of dict
        How options were chosen.
    weight_sum : float or None
        The sum of the sample weights.
    schema : Schema or None
        The labels' spelling, for messages.
    chosen : dict
        The options given as words, and their chosen values.
    """

    task: str
    classes: np.ndarray | None
    target_scaler: TargetScaler | None
    loss: Any
    inputs: Inputs
    kernel_params: dict[str, Any]
    n_rows: int
    n_inputs: int
    n_targets: int
    n_prepared: int
    sample: np.ndarray
    steps: list[dict[str, Any]]
    weight_sum: float | None = None
    schema: Schema | None = None
    chosen: dict[str, float] = field(default_factory=dict)

    @property
    def n_outputs(self) -> int:
        if self.classes is None:
            return self.n_targets
        return 1 if len(self.classes) <= 2 else len(self.classes)

    @property
    def n_counted(self) -> float:
        """The effective number of rows under the sample weights."""
        return self.n_rows if self.weight_sum is None else self.weight_sum

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Encode raw targets as (n, outputs)."""
        softmax = self.loss.name == "softmax"
        return targets.encode(y, self.classes, self.target_scaler, softmax, self.schema)

    def header(self) -> dict[str, Any]:
        """For model files and checkpoints."""
        p = self.inputs.pca
        found = {
            "unit": self.inputs.unit,
            "centred": None if p is None else p.centred,
            "kernel_params": {k: np.asarray(v).tolist() for k, v in self.kernel_params.items()},
            "n_rows": self.n_rows,
            "n_inputs": self.n_inputs,
            "n_prepared": self.n_prepared,
            "n_targets": self.n_targets,
            "chosen": self.chosen,
        }
        return found if self.weight_sum is None else found | {"weight_sum": self.weight_sum}

    def arrays(self) -> dict[str, np.ndarray]:
        """Principal components, for model files and checkpoints."""
        p = self.inputs.pca
        return {} if p is None else {"pca_mean": p.mean, "pca_components": p.components}
