"""Shared by rb and sparse-rb: a linear model on random binning features, identified by the keys of
their bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rfx import env, losses
from rfx import steps as told
from rfx.data.rows import Rows
from rfx.errors import DataError, UsageError
from rfx.features.binning import BinMap, BinningMap, Bins, sample_grids
from rfx.features.widths import WIDTHS
from rfx.fitting.callbacks import StepCallback, evaluating
from rfx.fitting.method import Fitted, Method, TunedMethod, budget, each_output, kernel_params
from rfx.fitting.options import (
    KERNEL,
    MAX_MEMORY,
    MOST,
    TOL,
)
from rfx.fitting.problem import Clock, Problem
from rfx.model import Array
from rfx.operators.binned import BinnedMatrix
from rfx.options import Option
from rfx.solvers.base import Solution
from rfx.solvers.published.liblinear import solve_liblinear

N_GRIDS = Option(
    "n_grids",
    int,
    "Number R of random grids; each row falls into one bin of each grid.",
    low=1,
    high=MOST,
    default=256,
)


@dataclass(frozen=True)
class BinnedModel:
    """f(x) = the sum over grids of the weight of x's bin; a bin without training rows has weight 0.

    Parameters
    ----------
    grids : BinningMap
        The R grids that have a bin with nonzero weight.
    bins : Bins
        The bins with nonzero weight.
    coef : array, (bins, k)
    """

    grids: BinningMap
    bins: Bins
    coef: np.ndarray

    @classmethod
    def of(cls, grids: BinningMap, bins: Bins, Z: Any, coef: Any) -> BinnedModel:
        """The model of the bins of Z with a nonzero weight in any output, and their grids."""
        coef = np.asarray(coef) * Z.scale
        used = np.any(coef != 0, axis=1)
        bins = bins.select(used)
        chosen = np.flatnonzero(np.diff(bins.starts))
        return cls(grids.select(chosen), bins.grids(chosen), np.ascontiguousarray(coef[used]))

    @property
    def map(self) -> BinMap:
        """The features of the bins with nonzero weight, each 1 for the rows in its bin."""
        return BinMap(self.grids, self.bins)

    def decision(self, X: Any) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        return self.grids.decision(X, self.bins, self.coef)

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        if not len(self.coef):
            return told.constant(self.grids.n_inputs, np.zeros(self.coef.shape[1]))
        found: told.Steps = self.grids.steps(self.bins, self.coef)
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "widths": self.grids.widths,
            "offsets": self.grids.offsets,
            "keys": self.bins.keys,
            "starts": self.bins.starts,
            "coef": self.coef,
        }

    def header(self) -> dict[str, Any]:
        return {"grids": {"kernel": self.grids.kernel, "gamma": self.grids.gamma}}

    def describe(self) -> dict[str, Any]:
        gamma = self.grids.gamma
        return {
            "model_size": len(self.coef),
            "kernel_params": {"gamma": gamma, "sigma": 1 / gamma},
        }


class BinnedMethod(TunedMethod):
    """A method whose model is a `BinnedModel`.

    default_loss: the loss if none is given, None for that of the task.
    """

    kernel: str = KERNEL(choices=tuple(WIDTHS), default="laplacian")
    tol: float | None = TOL()
    max_memory: float | None = MAX_MEMORY(help="Memory limit for features, in MiB.")

    default_loss: ClassVar[str | None] = None
    evaluates_steps = True
    # the wider the kernel, the more grids are needed for the same accuracy
    loo_slack = 0.01
    arrays: ClassVar[dict[str, Array]] = {
        "coef": Array("f", "bins outputs"),
        "widths": Array("f", "grids inputs"),
        "offsets": Array("f", "grids inputs"),
        "keys": Array("u", "bins"),
        "starts": Array("i", "grids+1", cuts="bins"),
    }

    def loss_for(self, task: str) -> losses.Loss:
        if self.loss is None and self.default_loss is not None:
            return losses.get_loss(self.default_loss)
        return super().loss_for(task)

    def prepare(self, problem: Problem) -> None:
        self.memory_left(problem.X)

    def count(self, X: Any) -> int:
        """The number of grids for the rows X."""
        found: int = self.n_grids
        return found

    def entry_bytes(self, number: int) -> int:
        """Bytes of training per row and grid, for bin numbers of `number` bytes."""
        return number

    def vectors(self, X: Any) -> int:
        # up to three numbers per width, and the offset
        return BinMap.width * self.count(X)

    def memory_left(self, X: Any) -> float:
        """MiB left for the bin numbers; UsageError, before any computation, if they do not fit."""
        n_rows, available = X.share if isinstance(X, Rows) else (X.shape[0], None)
        size = self.entry_bytes(2 if n_rows < 2**16 else 4)
        limit = self.max_memory or available or env.available_memory_mb()
        number = self.count(X)
        needed = size * number * n_rows / 2**20
        if needed > limit:
            allowed = "--max-memory is" if self.max_memory else "there are only"
            fitting = int(limit * 2**20 / (size * n_rows))
            advice = f"at most {fitting:,} grids fit" if fitting else "not even one grid fits"
            raise UsageError(
                f"--n-grids is {number}; the bin numbers of {n_rows:,} rows take {needed:,.0f} "
                f"MiB, but {allowed} {limit:,.0f} MiB; {advice}"
            )
        return limit - needed

    def grids(self, problem: Problem) -> BinningMap:
        """All grids, after checking that their bin numbers fit into memory."""
        self.memory_left(problem.X)
        gamma = kernel_params(problem, self)["gamma"]
        count = self.count(problem.X)
        return sample_grids(self.kernel, problem.n_inputs, count, self.seed, gamma=gamma)

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> BinnedModel:
        if not np.all(arrays["widths"] > 0):
            raise DataError("array widths has values that are not above 0")
        kernel, gamma = header["grids"]["kernel"], header["grids"]["gamma"]
        grids = BinningMap(kernel, gamma, arrays["widths"], arrays["offsets"])
        return BinnedModel(grids, Bins(arrays["keys"], arrays["starts"]), arrays["coef"])


def numbered(grids: BinningMap, X: Any) -> tuple[Bins, Any]:
    """The bins that contain the rows of X, and the features."""
    if isinstance(X, Rows):
        return X.numbered(grids)
    ids, bins = grids.number(X)
    return bins, BinnedMatrix(ids, bins.starts)


def step_callback(problem: Problem, grids: BinningMap, bins: Bins) -> StepCallback | None:
    """A solver callback for the weights of these bins; see `callbacks.evaluating`."""
    return evaluating(problem, lambda X: grids.transform(X, bins).__matmul__)


def solve_liblinear_each(
    Z: Any, problem: Problem, method: Method, penalty: str, callback: Any = None
) -> Solution:
    """LIBLINEAR's solution for each output over the bins Z; penalty: l1 or l2."""
    limits = budget(problem, method)

    def solve(y: np.ndarray, tell: StepCallback | None) -> Solution:
        own: dict[str, Any] = {"penalty": penalty, "seed": method.seed}
        return solve_liblinear(Z, y, method.lam, problem.loss, limits, callback=tell, **own)

    return each_output(problem.Y, solve, callback)


def fitted(
    grids: BinningMap,
    bins: Bins,
    Z: Any,
    solution: Solution,
    clock: Clock,
    details: dict[str, Any] | None = None,
) -> Fitted:
    """The model of the bins with nonzero weight, and measurements of all bins.

    Wu et al. 2016: kappa is D / R, and by eq. 10 at least the mean over grids of N over the rows in
    the fullest bin.
    """
    fullest = np.maximum.reduceat(Z.squares(), Z.starts[:-1]) / Z.scale**2
    measured = {
        "n_grids": Z.n_grids,
        "n_features": Z.shape[1],
        "kappa": Z.shape[1] / Z.n_grids,
        "kappa_bound": float(np.mean(Z.shape[0] / fullest)),
    }
    model = BinnedModel.of(grids, bins, Z, solution.coef)
    return Fitted(model, solution, measured | (details or {}), clock.seconds)
