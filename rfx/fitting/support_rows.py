"""Shared by streaming methods with an exact kernel: their kernels, and the rows stored in a
model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rfx import kernels
from rfx import steps as told
from rfx.fitting.method import Method
from rfx.fitting.options import KERNEL
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.streaming import Learner, Restored, StreamMethod
from rfx.model import Array
from rfx.options import Option
from rfx.solvers.stochastic.support import Support

SUPPORT = {"coef": Array("f", "vectors outputs"), "support": Array("f", "vectors prepared")}


def kernel_option() -> Option:
    """--kernel for kernels with exact values that do not need the range of the rows."""
    known = kernels.KERNELS
    return KERNEL.but(
        choices=lambda: [name for name, own in known.items() if own.metric and not own.needs_rows]
    )


def restored(
    method: Method, params: dict[str, Any], rows: Any, coef: np.ndarray, dtype: Any
) -> Support:
    """f = sum_i coef_i k(x_i, .) of a model file."""
    support = Support(method.kernel, params, coef.shape[1], dtype)
    support.append(rows, coef)
    return support


def support_steps(arrays: dict[str, np.ndarray], method: Method, known: Restored) -> told.Steps:
    """The computation steps of `restored` for a dense row."""
    kernel = kernels.get_kernel(method.kernel)
    if not len(arrays["coef"]):
        return told.constant(known.n_prepared, np.zeros(known.n_outputs))
    return *kernel.steps(arrays["support"], known.kernel_params), told.linear(arrays["coef"])


class SupportMethod(StreamMethod):
    """A streaming method whose model consists of rows and their coefficients."""

    kernel: str = kernel_option()()
    arrays = StreamMethod.arrays | SUPPORT

    def predictor(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> Callable[[Any], np.ndarray]:
        dtype, params = input_dtype(self), known.kernel_params
        return restored(self, params, arrays["support"], arrays["coef"], dtype).values

    def steps(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> told.Steps:
        return support_steps(arrays, self, known)


class SupportLearner(Learner):
    """The learner of a solver that stores rows in `solver.support`."""

    def parameters(self) -> dict[str, np.ndarray]:
        return {"support": self.solver.support.rows, "coef": self.solver.coef}

    def describe(self) -> dict[str, Any]:
        return {"n_features": None, "model_size": self.solver.support.n_rows}
