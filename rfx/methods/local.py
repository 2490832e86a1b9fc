"""`local`: exact kernel machines in the leaves of a tree, for tables of any size.

Medians along first principal directions in the space of the learnt metric split the rows into
leaves (xRFM: Beaglehole, Holzmüller, Radhakrishnan and Belkin 2025). Each leaf has a kernel ridge
machine whose lambda, and a metric of its own, are chosen by leave-one-out. The cost grows linearly
with the number of rows.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rfx import kernels, parallel
from rfx import steps as told
from rfx.data.transforms.metric import Metric
from rfx.errors import DataError, UsageError
from rfx.features.partition import Partition
from rfx.fitting import leaves
from rfx.fitting.cache import Cache
from rfx.fitting.method import Fitted, Method
from rfx.fitting.metric import MOST_INPUTS, dense
from rfx.fitting.options import (
    AUTO,
    BUDGET_SECONDS,
    CHOSEN_SCALING,
    DTYPE,
    LAM,
    METRIC,
    chosen_kernel,
)
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.validation import error
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.losses import Loss, get_loss
from rfx.methods.block import PARTITION
from rfx.model import Array, check_within
from rfx.options import Chosen, option
from rfx.solvers.base import Certificate, Solution

KERNELS = ("laplacian-l2",)
ARRAYS = ("support", "coef", "starts", "offsets", "gammas", "diagonals", "matrices", "metrics")
# The lambda with which the first leaf begins; the others begin with the median of the first ones.
START, FIRST = 0.003, 4


class Local(Method):
    """Kernel ridge regression in the leaves of a tree of median splits."""

    name = "local"
    summary = "exact kernel machines in the leaves of a tree, for tables of any size"
    tried_kernels = KERNELS
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    budget_seconds: float | None = BUDGET_SECONDS()
    kernel: str = chosen_kernel(
        lambda: [
            name
            for name, kernel in kernels.KERNELS.items()
            if kernel.has_gradient and kernel.metric != "l1"
        ],
        KERNELS,
    )()
    leaf_rows: int = option(
        2500,
        "Maximum rows of a leaf. Larger leaves are more accurate and take longer.",
        least=2,
        most=20_000,
    )
    overlap: float = option(
        0.05, "Fraction of the rows around a split that both sides use.", least=0, most=0.5
    )
    leaf_steps: int = option(
        1,
        "Iterations of a metric tried in each leaf; kept where leave-one-out improves.",
        least=0,
        most=20,
    )
    lam: float | Chosen = LAM(
        help="Ridge parameter of each leaf, for rows of mean weight 1.",
        choices={AUTO: "chosen in each leaf by leave-one-out"},
        default=AUTO,
    )
    dtype: str = DTYPE()
    class_weight: str | None = CLASS_WEIGHT()
    arrays: ClassVar[dict[str, Array]] = {
        "support": Array("f", "vectors inputs"),
        "coef": Array("f", "vectors outputs"),
        "starts": Array("i", "leaves+1", cuts="vectors"),
        "offsets": Array("f", "leaves outputs"),
        "gammas": Array("f", "leaves"),
        "diagonals": Array("f", "diagonal inputs"),
        "matrices": Array("f", "full side side"),
        "metrics": Array("i", "leaves"),
        "partition_directions": Array("f", "cuts inputs"),
        "partition_thresholds": Array("f", "cuts"),
        "partition_children": Array("i", "cuts 2"),
    }

    def loss_for(self, task: str) -> Loss:
        return get_loss("squared")

    def vectors(self, X: Any) -> int:
        return min(X.shape[0], self.leaf_rows)

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        partition, blocks = clock.timed(
            "features",
            Partition.principal,
            problem.X,
            self.leaf_rows,
            self.overlap,
            self.seed,
        )
        weights = None if problem.weights is None else problem.weights / problem.weights.mean()
        full = problem.n_inputs <= MOST_INPUTS

        def machine(number: int, start: float) -> leaves.Leaf:
            rows = blocks[number]
            return leaves.fit(
                dense(problem.X[rows]).astype(self.dtype),
                np.asarray(problem.Y[rows], np.float64),
                self.kernel,
                problem.task,
                start,
                search=self.lam == AUTO,
                weights=None if weights is None else weights[rows],
                steps=self.leaf_steps,
                full=full,
                seed=self.seed,
            )

        machines = _machines(machine, len(blocks), self.lam, problem)
        out = np.zeros(problem.Y.shape)
        for rows, placed, leaf in zip(blocks, partition.place(problem.X), machines):
            # the rows that a leaf shares are left out of the machine of their own leaf
            order = np.argsort(rows)
            out[placed] = leaf.out[order[np.searchsorted(rows, placed, sorter=order)]]
        model = LocalModel.of(self.kernel, partition, machines, problem.n_inputs)
        solution = Solution(
            model.coef,
            sum(leaf.objective for leaf in machines),
            Certificate("gap", sum(leaf.gap for leaf in machines)),
            len(machines),
            "converged",
        )
        left_out = error(problem.task, out, problem.Y, problem.weights)
        details = {
            "n_blocks": len(blocks),
            "lam": float(np.median([leaf.lam for leaf in machines])),
            "leave_one_out": left_out**0.5 if problem.task == "regression" else left_out,
        }
        return Fitted(model, solution, details, clock.seconds)

    def saved_arrays(self, header: dict[str, Any]) -> dict[str, Array]:
        return self.arrays

    def restore(self, header, arrays) -> LocalModel:
        partition = Partition(*(arrays[f"partition_{name}"] for name in PARTITION))
        cuts, children = len(partition.thresholds), partition.children
        if len(arrays["gammas"]) != cuts + 1:
            raise DataError("it has another number of leaves than its tree")
        check_within("partition_children", children, -cuts - 1, cuts)
        if np.any((children >= 0) & (children <= np.arange(cuts)[:, None])):
            raise DataError("array partition_children contains a cycle")
        count = len(arrays["diagonals"]) + len(arrays["matrices"])
        check_within("metrics", arrays["metrics"], -1, count)
        return LocalModel(self.kernel, partition, **{name: arrays[name] for name in ARRAYS})


def _machines(machine, count: int, lam: Any, problem: Problem) -> list[leaves.Leaf]:
    """The machines of all leaves. Which lambda a leaf begins with depends on the first ones alone,
    not on threads.
    """
    start = START if lam == AUTO else lam
    first = [machine(number, start) for number in range(min(FIRST, count))]
    if lam == AUTO:
        start = float(np.median([leaf.lam for leaf in first]))
    machines: list[Any] = first + [None] * (count - len(first))
    done, lock = itertools.count(len(first) + 1), threading.Lock()

    def part(low: int, high: int) -> None:
        for number in range(len(first) + low, len(first) + high):
            machines[number] = machine(number, start)
            with lock:
                if problem.progress is not None:
                    problem.progress({"leaf": next(done), "of": count})

    with parallel.one_blas_thread():
        parallel.for_ranges(part, count - len(first))
    return machines


@dataclass(frozen=True)
class LocalModel:
    """f(x) = sum_j coef_j k(A'x, s_j) + offset over the support rows of the leaf that contains x.

    Parameters
    ----------
    kernel : str
    partition : Partition
    support : array, (m, d)
        The mapped rows of all leaves, those of leaf b from starts[b] on.
    coef : array, (m, k)
    starts : array, (leaves + 1,)
    offsets : array, (leaves, k)
    gammas : array, (leaves,)
    diagonals, matrices : arrays, (p, d) and (q, d, d)
        The metrics A of leaves.
    metrics : array, (leaves,)
        Which of them, numbered through, a leaf has; -1 for none.
    """

    kernel: str
    partition: Partition
    support: np.ndarray
    coef: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray
    gammas: np.ndarray
    diagonals: np.ndarray
    matrices: np.ndarray
    metrics: np.ndarray

    @classmethod
    def of(
        cls, kernel: str, partition: Partition, machines: list[leaves.Leaf], d: int
    ) -> LocalModel:
        """The model of the leaves' machines."""
        maps = [leaf.metric.map for leaf in machines if leaf.metric is not None]
        flat, full = ([A for A in maps if A.ndim == axes] for axes in (1, 2))
        numbers = itertools.count()
        return cls(
            kernel,
            partition,
            np.concatenate([leaf.support for leaf in machines]),
            np.concatenate([leaf.coef for leaf in machines]),
            np.cumsum([0] + [len(leaf.support) for leaf in machines]),
            np.array([leaf.offset for leaf in machines]),
            np.array([leaf.gamma for leaf in machines]),
            np.array(flat, np.float64).reshape(-1, d),
            np.array(full, np.float64).reshape(len(full), d if full else 0, d if full else 0),
            np.array([-1 if leaf.metric is None else next(numbers) for leaf in machines]),
        )

    def metric(self, leaf: int) -> Metric | None:
        """The metric of a leaf."""
        number = int(self.metrics[leaf])
        if number < 0:
            return None
        flat = len(self.diagonals)
        return Metric(self.diagonals[number] if number < flat else self.matrices[number - flat])

    def decision(self, X: Any) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        values = np.zeros((X.shape[0], self.offsets.shape[1]))
        placed = self.partition.place(X)

        def part(low: int, high: int) -> None:
            for leaf in range(low, high):
                self._fill(leaf, X, placed[leaf], values)

        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(placed))
        return values

    def _fill(self, leaf: int, X: Any, rows: np.ndarray, values: np.ndarray) -> None:
        inside = slice(self.starts[leaf], self.starts[leaf + 1])
        values[rows] = self.offsets[leaf]
        if not len(rows) or inside.start == inside.stop:
            return
        metric, support = self.metric(leaf), self.support[inside]
        own = dense(X[rows]).astype(support.dtype)
        own = own if metric is None else metric.transform(own)
        params = {"gamma": float(self.gammas[leaf])}
        sums = kernels.decision(self.kernel, params, support, self.coef[inside], own)
        values[rows] += np.asarray(sums, np.float64).reshape(len(rows), -1)

    def arrays(self) -> dict[str, np.ndarray]:
        parts = {f"partition_{name}": getattr(self.partition, name) for name in PARTITION}
        return {name: getattr(self, name) for name in ARRAYS} | parts

    def steps(self) -> told.Steps:
        raise UsageError(
            "models of method local can't be exported; export one of method kernel or nystrom"
        )

    def header(self) -> dict[str, Any]:
        return {"n_inputs": self.support.shape[1]}

    def describe(self) -> dict[str, Any]:
        return {"n_features": None, "model_size": len(self.coef), "kernel_params": {}}
