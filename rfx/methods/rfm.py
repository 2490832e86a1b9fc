"""`rfm`: the recursive feature machine, an exact kernel machine with a learnt metric.

Radhakrishnan, Beaglehole, Pandit and Belkin (2024): kernel ridge regression with k(A'x, A'z), where
M = A A' is the average outer product of the gradients of the previous machine
(`rfx.fitting.metric`). Scaling, kernel, metric, bandwidth and lambda are chosen on held-out rows.
"""

from dataclasses import replace
from typing import cast

from rfx.fitting import weights
from rfx.fitting.cache import Cache
from rfx.fitting.expansion import ExpansionModel
from rfx.fitting.inputs import KERNELS
from rfx.fitting.method import Fitted
from rfx.fitting.options import AUTO, CHOSEN_GAMMA, CHOSEN_SCALING, METRIC, chosen_kernel
from rfx.fitting.problem import Problem
from rfx.kernels import KERNELS as ALL
from rfx.losses import Loss, get_loss
from rfx.methods.kernel import Kernel
from rfx.options import Chosen

OF_THE_CHOICE = "chosen together with scaling, kernel and metric"


def _with_metric() -> list[str]:
    """The kernels with exact values of rows that a metric may map."""
    return [name for name, own in ALL.items() if own.metric and not own.scalings]


class RFM(Kernel):
    """The exact kernel machine with a learnt metric."""

    name = "rfm"
    summary = "recursive feature machine: kernel ridge regression with a learnt metric"
    tried_kernels = KERNELS
    thorough = True
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    kernel: str = chosen_kernel(_with_metric, KERNELS)()
    gamma: float | Chosen = CHOSEN_GAMMA.adding({AUTO: OF_THE_CHOICE})(default=AUTO)
    lam: float | Chosen = Kernel.options["lam"].adding({AUTO: OF_THE_CHOICE})(default=AUTO)

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """The machine of the centred targets; their mean is the intercept."""
        if problem.loss.name != "squared":
            return super().fit(problem, cache)
        offset = weights.mean(problem.Y, problem.weights)
        fitted = super().fit(problem.less(offset), cache)
        model = cast(ExpansionModel, fitted.model)
        return replace(fitted, model=replace(model, intercept=offset))

    def loss_for(self, task: str) -> Loss:
        """Squared by default: classes are fitted as targets +-1."""
        if self.get("loss") is None:
            return get_loss("squared")
        return super().loss_for(task)
