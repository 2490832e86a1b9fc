"""The kernels by name: what each compares, and its shape."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from rfx.errors import UsageError
from rfx.model import Array


@dataclass(frozen=True)
class Kernel:
    """One kernel. metric: how scaled rows are compared; shape: the function applied to the distance.

    paper_gamma: the value that `gamma='paper'` stands for (what Yen et al. 2014 seem to have used: untuned, inputs in
    [0, 1]), None for a kernel without gamma.
    """

    name: str
    formula: str
    metric: str
    shape: str
    paper_gamma: float | None = None

    @property
    def parameters(self) -> dict[str, Array]:
        """What it needs besides its name (see rfx.kernels.parameters), as a model file has it."""
        ends = {"lo": Array("f", "inputs"), "hi": Array("f", "inputs")}
        own = {"perceptron": {"radius": Array("f")}, "stump": ends}.get(self.name, {})
        return {"gamma": Array("f")} if self.paper_gamma is not None else own


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("gaussian", "exp(-gamma ||x - y||_2^2)", "squared", "exp", 0.5),
        Kernel("laplacian", "exp(-gamma ||x - y||_1)", "l1", "exp", 1.0),
        Kernel("laplacian-l2", "exp(-gamma ||x - y||_2)", "l2", "exp", 1.0),
        Kernel("perceptron", "R / c_d - ||x - y||_2", "l2", "minus"),
        Kernel("stump", "1 - 2 ||x - y||_1 / sum(hi - lo)", "l1", "minus"),
        Kernel("linear", "x . y", "dot", "none"),
    )
}


def get_kernel(name: str) -> Kernel:
    """The kernel of that name.

    Raises UsageError naming the known kernels.
    """
    try:
        return KERNELS[name]
    except KeyError:
        raise UsageError(f"kernel {name!r} is unknown; choose one of {', '.join(KERNELS)}") from None


def perceptron_constant(n_inputs: int) -> float:
    """c_d = E|theta_1| for theta uniform on the unit sphere of n_inputs dimensions (Lin and Li 2008)."""
    return float(np.exp(gammaln(n_inputs / 2) - gammaln((n_inputs + 1) / 2)) / np.sqrt(np.pi))
