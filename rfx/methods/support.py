"""What stochastic methods with an exact kernel share: which kernels they take, the arrays of their models, their predictions."""

import numpy as np

from rfx import kernels
from rfx.methods.options import KERNEL
from rfx.model import Array
from rfx.solvers.stochastic.support import Support

SUPPORT = {"coef": Array("f", "vectors outputs"), "support": Array("f", "vectors prepared")}


def kernel_option():
    """--kernel for kernels that have exact values and need no range of the rows."""
    return KERNEL.but(choices=lambda: [name for name, kernel in kernels.KERNELS.items() if kernel.metric and not needs_range(kernel)])


def needs_range(kernel) -> bool:
    """Whether the kernel has parameters other than gamma, learnt from all rows."""
    return bool(set(kernel.parameters) - {"gamma"})


class Kept:
    """f = sum_i coef_i k(x_i, .) of a model file."""

    def __init__(self, kernel, params, rows, coef, dtype):
        self.support = Support(kernel, params, coef.shape[1], dtype)
        self.support.append(rows, coef)
        self.t = 0

    @property
    def coef(self) -> np.ndarray:
        """(n, outputs)."""
        return self.support.coef

    def predictions(self, X) -> np.ndarray:
        """(n, outputs) float64 values of f."""
        return self.support.values(X)
