"""Values learnt from a survey of a stream's rows before the first step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rfx import losses
from rfx.data.survey import Inputs
from rfx.data.tabular.schema import Schema
from rfx.data.transforms.scaling import Scaler, TargetScaler
from rfx.fitting import targets
from rfx.fitting.preprocessing import Preprocessing, input_dtype
from rfx.fitting.streaming import Arrays, Setup, StreamMethod, inputs_of, n_outputs, pca_arrays


@dataclass(frozen=True)
class Learned:
    """Values learnt from a survey of the rows before the first step.

    Parameters
    ----------
    preprocessing : Preprocessing
    inputs : Inputs
        Scaling, unit length and principal components.
    loss : Loss
    kernel_params : dict
    n_rows, n_inputs, n_targets : int
        Number of rows, raw inputs, and targets per row.
    sample : array, (m, n_prepared)
        Some of the prepared rows, in random order.
    steps : list of dict
        How options were chosen.
    weight_sum : float or None
        The sum of the sample weights.
    chosen : dict
        The options given as words, and their chosen values.
    """

    preprocessing: Preprocessing
    inputs: Inputs
    loss: Any
    kernel_params: dict[str, Any]
    n_rows: int
    n_inputs: int
    n_targets: int
    sample: np.ndarray
    steps: list[dict[str, Any]]
    weight_sum: float | None = None
    chosen: dict[str, float] = field(default_factory=dict)

    @property
    def n_outputs(self) -> int:
        return n_outputs(self.preprocessing.classes, self.n_targets)

    @property
    def n_counted(self) -> float:
        """The effective number of rows under the sample weights."""
        return self.n_rows if self.weight_sum is None else self.weight_sum

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Encode raw targets as (n, outputs)."""
        p = self.preprocessing
        targets.check_known(y, p.classes, p.schema)
        return targets.encode(y, p.classes, p.target_scaler, self.loss.name == "softmax")

    def setup(self, weights: np.ndarray | None, rewindable: bool) -> Setup:
        """What the solver is started from; see `Setup`."""
        return Setup(
            self.preprocessing.task,
            self.loss,
            self.kernel_params,
            self.sample.shape[1],
            self.n_outputs,
            self.n_rows,
            self.sample,
            weights,
            rewindable,
        )

    def header(self) -> dict[str, Any]:
        """For model files and checkpoints."""
        p = self.inputs.pca
        header = {
            "unit": self.inputs.unit,
            "centred": None if p is None else p.centred,
            "kernel_params": {k: np.asarray(v).tolist() for k, v in self.kernel_params.items()},
            "n_rows": self.n_rows,
            "n_inputs": self.n_inputs,
            "n_prepared": self.sample.shape[1],
            "n_targets": self.n_targets,
            "chosen": self.chosen,
        }
        return header if self.weight_sum is None else header | {"weight_sum": self.weight_sum}

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Header and arrays for a checkpoint."""
        p, scaler = self.preprocessing, self.inputs.scaler.to_dict()
        header = self.header() | {
            "task": p.task,
            "loss": self.loss.name,
            "scaling": scaler.pop("kind"),
            "metric": scaler.pop("metric"),
            "target_scaler": None if p.target_scaler is None else p.target_scaler.to_dict(),
            "validation": self.steps,
        }
        arrays = pca_arrays(self.inputs) | {"sample": self.sample}
        arrays |= {f"scaler_{name}": values for name, values in scaler.items()}
        return header, arrays if p.classes is None else arrays | {"classes": p.classes}

    @classmethod
    def of_state(
        cls, header: dict[str, Any], arrays: Arrays, method: StreamMethod, schema: Schema | None
    ) -> Learned:
        """The values in a checkpoint."""
        named = {"kind": header["scaling"], "metric": header.get("metric", "none")}
        own = {name[7:]: values for name, values in arrays.items() if name.startswith("scaler_")}
        inputs = inputs_of(header, arrays, Scaler.from_dict(named | own))
        target = header["target_scaler"]
        if target is not None:
            target = TargetScaler.from_dict(target, header["n_targets"])
        dtype, classes = input_dtype(method), arrays.get("classes")
        return cls(
            Preprocessing(header["task"], inputs.scaler, dtype, classes, target, schema),
            inputs,
            losses.get_loss(header["loss"], method.get("epsilon")),
            header["kernel_params"],
            header["n_rows"],
            header["n_inputs"],
            header["n_targets"],
            arrays["sample"],
            header["validation"],
            header.get("weight_sum"),
            header["chosen"],
        )
