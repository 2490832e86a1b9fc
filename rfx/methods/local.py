"""`local`: exact kernel machines in the leaves of a tree, for tables of any size.

Medians along first principal directions in the space of the learnt metric split the rows into
leaves (xRFM: Beaglehole, Holzmüller, Radhakrishnan and Belkin 2025). Each leaf has a kernel ridge
machine whose lambda, and a metric of its own, are chosen by leave-one-out. The cost grows linearly
with the number of rows.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rfx import kernels, parallel
from rfx import steps as told
from rfx.data.transforms.metric import Metric
from rfx.features.partition import Partition
from rfx.fitting.candidates import (
    LEAF_BESIDE,
    LEAF_LAMS,
    METRIC_WIDTH,
    SearchSpace,
)
from rfx.fitting.inputs import MOST_INPUTS, bandwidth, criterion, dense, next_metric
from rfx.fitting.method import Fitted, Method
from rfx.fitting.options import (
    AUTO,
    BUDGET_SECONDS,
    CHOSEN_SCALING,
    CLASS_WEIGHT,
    DTYPE,
    LAM,
    METRIC,
    chosen_kernel,
)
from rfx.fitting.problem import Cache, Clock, Problem, error
from rfx.fitting.weights import part
from rfx.methods.block import PARTITION, partition_arrays, restored_partition
from rfx.model import Array, check_within
from rfx.operators.left_out import left_out, products
from rfx.options import Chosen, option
from rfx.solvers.base import Certificate, Solution

log = logging.getLogger(__name__)
KERNELS = ("laplacian-l2",)
# The arrays of a model apart from those of its tree.
ARRAYS = {
    "support": Array("f", "vectors inputs"),
    "coef": Array("f", "vectors outputs"),
    "starts": Array("i", "leaves+1", cuts="vectors"),
    "offsets": Array("f", "leaves outputs"),
    "gammas": Array("f", "leaves"),
    "diagonals": Array("f", "diagonal inputs"),
    "matrices": Array("f", "full side side"),
    "metrics": Array("i", "leaves"),
}
# Maximum rows of a leaf on which its lambda is chosen: the best one depends little on their number.
CHOOSING = 1000
# A metric must reduce the leave-one-out error by this fraction.
GAIN = 0.005


class Local(Method):
    """Kernel ridge regression in the leaves of a tree of median splits."""

    name = "local"
    accelerated = True
    summary = "exact kernel machines in the leaves of a tree, for tables of any size"
    default_loss = "squared"
    space = SearchSpace(kernels=KERNELS)
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
    arrays: ClassVar[dict[str, Array]] = ARRAYS | PARTITION

    def vectors(self, X: Any) -> int:
        return min(X.shape[0], self.leaf_rows)

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock, X = Clock(), problem.X
        size = (self.leaf_rows, self.overlap, self.seed)
        partition, blocks = clock.timed("features", Partition.principal, X, *size)
        weights = None if problem.weights is None else problem.weights / problem.weights.mean()

        def machine(number: int) -> Leaf:
            rows = blocks[number]
            Z, Y = dense(X[rows]).astype(self.dtype), np.asarray(problem.Y[rows], np.float64)
            return _leaf(Z, Y, part(weights, rows), self, problem.task)

        machines = _machines(machine, len(blocks), problem)
        if raised := sum(leaf.lam != self.lam for leaf in machines if self.lam != AUTO):
            log.warning(
                "--lam is %g, with which %d leaves have no solution; larger ones are used there",
                self.lam,
                raised,
            )
        out = np.zeros(problem.Y.shape)
        for rows, placed, leaf in zip(blocks, partition.place(X), machines):
            # the rows that a leaf shares are left out of the machine of their own leaf
            order = np.argsort(rows)
            out[placed] = leaf.out[order[np.searchsorted(rows, placed, sorter=order)]]
        model = LocalModel.of(self.kernel, partition, machines, problem.n_inputs)
        gap = Certificate("gap", sum(leaf.gap for leaf in machines))
        objective = sum(leaf.objective for leaf in machines)
        solution = Solution(model.coef, objective, gap, len(machines), "converged")
        left_out = error(problem.task, out, problem.Y, problem.weights)
        details = {
            "n_blocks": len(blocks),
            "lam": float(np.median([leaf.lam for leaf in machines])),
            "leave_one_out": left_out**0.5 if problem.task == "regression" else left_out,
        }
        return Fitted(model, solution, details, clock.seconds)

    def restore(self, header, arrays) -> LocalModel:
        partition = restored_partition(arrays, len(arrays["gammas"]))
        count = len(arrays["diagonals"]) + len(arrays["matrices"])
        check_within("metrics", arrays["metrics"], -1, count)
        return LocalModel(self.kernel, partition, **{name: arrays[name] for name in ARRAYS})


def _machines(machine: Callable[[int], Leaf], count: int, problem: Problem) -> list[Leaf]:
    """The machines of all leaves, on all cores."""
    machines: list[Any] = [None] * count
    done, lock = itertools.count(1), threading.Lock()

    def part(low: int, high: int) -> None:
        for number in range(low, high):
            machines[number] = machine(number)
            with lock:
                if problem.progress is not None:
                    problem.progress({"leaf": next(done), "of": count})

    with parallel.one_blas_thread():
        parallel.for_ranges(part, count)
    return machines


# ---------------------------------------------------------------------- one leaf


@dataclass(frozen=True)
class Leaf:
    """One machine: f(x) = sum_j coef_j k(x, s_j) + offset for mapped rows.

    Parameters
    ----------
    support : array, (m, d)
        Its rows, mapped by the metric; none if the targets are constant.
    coef : array, (m, k)
    offset : array, (k,)
    gamma : float
    metric : Metric or None
    lam, error : float
        Its lambda, and the criterion of the choice.
    out : array, (n, k)
        Decision values of each row by the machine without it.
    objective, gap : float
        Of the machine, for rows of mean weight 1.
    """

    support: np.ndarray
    coef: np.ndarray
    offset: np.ndarray
    gamma: float
    metric: Metric | None
    lam: float
    error: float
    out: np.ndarray
    objective: float = 0.0
    gap: float = 0.0


def _leaf(X: np.ndarray, Y: np.ndarray, weights: Any, method: Local, task: str) -> Leaf:
    """The machine of the rows X (n, d) of a leaf, with their encoded targets (n, k) and weights
    (n,), with mean 1 over all leaves, or None.
    """
    lam = None if method.lam == AUTO else method.lam
    offset = np.average(Y, axis=0, weights=weights)
    nothing = np.zeros((0, X.shape[1]), X.dtype), np.zeros((0, Y.shape[1]))
    best = Leaf(*nothing, offset, 1.0, None, lam or LEAF_LAMS[0], np.inf, Y * 0 + offset)
    if len(X) < 2 or not np.ptp(Y, axis=0).any() or not np.ptp(X, axis=0).any():
        return best
    metric, kernel, full = None, method.kernel, X.shape[1] <= MOST_INPUTS
    T, row_weights = Y - offset, np.ones(len(X)) if weights is None else weights
    for step in range(method.leaf_steps + 1):
        Z = X if metric is None else metric.transform(X)
        params = bandwidth(kernel, Z, method.seed, METRIC_WIDTH)
        K = kernels.values(kernel, Z, Z, params)
        if lam is None:
            lam = _best_lam(K, T, row_weights)
        # a lambda that suits some of the rows may be too small for all of them
        while not (solved := left_out(K, T, lam, 1 / row_weights)):
            lam *= 10
        coef, residuals = solved
        out = Y - residuals
        value = criterion(task, out, Y, weights)
        if value > (1 - GAIN) * best.error:
            break
        fitted = products(K, coef)
        loss = np.sum(row_weights * np.square(T - fitted).sum(axis=1))
        objective = float(lam * np.sum(coef * fitted) + loss) / 2
        remainder = T - fitted - lam * coef / row_weights[:, None]
        gap = float(np.sum(row_weights * np.square(remainder).sum(axis=1))) / 2
        best = Leaf(Z, coef, offset, params["gamma"], metric, lam, value, out, objective, gap)
        if step < method.leaf_steps:
            metric = next_metric(kernel, Z, coef, params, metric, full, weights)
            if metric is None:
                break
    return best


def _best_lam(K: np.ndarray, T: np.ndarray, weights: np.ndarray) -> float:
    """The lambda with the lowest leave-one-out squared error on some of the rows."""
    some = np.arange(0, len(K), -(-len(K) // CHOOSING))
    K, T, weights = K[np.ix_(some, some)], T[some], weights[some]
    errors: dict[float, float] = {}

    def attempt(lam: float) -> float:
        solved = left_out(K, T, lam, 1 / weights)
        error = weights @ np.square(solved[1]).sum(axis=1) if solved else math.inf
        errors[lam] = float(error)
        return errors[lam]

    # from the middle downwards, or else upwards, as long as the error falls
    middle = len(LEAF_LAMS) // 2
    for lams in (LEAF_LAMS[middle:], LEAF_LAMS[:middle][::-1]):
        for lam in lams:
            if attempt(lam) > min(errors.values()):
                break
        best = min(errors, key=lambda lam: errors[lam])
        if best < LEAF_LAMS[middle]:
            break
    for lam in (best * LEAF_BESIDE, best / LEAF_BESIDE):
        attempt(lam)
    return min(errors, key=lambda lam: errors[lam])


# ---------------------------------------------------------------------- the model


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
    def of(cls, kernel: str, partition: Partition, machines: list[Leaf], d: int) -> LocalModel:
        """The model of the leaves' machines."""
        maps = [leaf.metric.map for leaf in machines if leaf.metric is not None]
        flat, full = ([A for A in maps if A.ndim == axes] for axes in (1, 2))
        numbers, side = itertools.count(), d if full else 0
        return cls(
            kernel,
            partition,
            np.concatenate([leaf.support for leaf in machines]),
            np.concatenate([leaf.coef for leaf in machines]),
            np.cumsum([0] + [len(leaf.support) for leaf in machines]),
            np.array([leaf.offset for leaf in machines]),
            np.array([leaf.gamma for leaf in machines]),
            np.array(flat, np.float64).reshape(-1, d),
            np.array(full, np.float64).reshape(len(full), side, side),
            np.array([-1 if leaf.metric is None else next(numbers) for leaf in machines]),
        )

    def metric(self, leaf: int) -> Metric | None:
        """The metric of a leaf."""
        number, flat = int(self.metrics[leaf]), len(self.diagonals)
        if number < 0:
            return None
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
        mapped = dense(X[rows]).astype(support.dtype)
        mapped = mapped if metric is None else metric.transform(mapped)
        params = {"gamma": float(self.gammas[leaf])}
        sums = kernels.decision(self.kernel, params, support, self.coef[inside], mapped)
        values[rows] += np.asarray(sums, np.float64).reshape(len(rows), -1)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in ARRAYS} | partition_arrays(self.partition)

    def steps(self) -> told.Steps:
        """The computation steps from a scaled row to its decision values, leaf by leaf."""
        kernel, tree, parts = kernels.get_kernel(self.kernel), self.partition, []
        for leaf, (low, high) in enumerate(itertools.pairwise(self.starts)):
            support, coef, offset = self.support[low:high], self.coef[low:high], self.offsets[leaf]
            if low == high:
                parts.append(told.constant(self.support.shape[1], offset))
                continue
            metric = self.metric(leaf)
            mapped = () if metric is None else metric.steps(support.dtype)
            values = kernel.steps(support, {"gamma": float(self.gammas[leaf])})
            parts.append((*mapped, *values, told.linear(coef, offset)))
        return (told.Branch(tree.directions, tree.thresholds, tree.children, tuple(parts)),)

    def header(self) -> dict[str, Any]:
        return {"n_inputs": self.support.shape[1]}

    def describe(self) -> dict[str, Any]:
        return {"n_features": None, "model_size": len(self.coef), "kernel_params": {}}
