"""`local`: exact kernel machines in the leaves of a tree, for tables of any size; and `auto`, which
chooses every option.

Medians along first principal directions in the space of the learnt metric split the rows into
leaves (xRFM: Beaglehole, Holzmüller, Radhakrishnan and Belkin 2025). Each leaf has kernel ridge
machines of two kernels, whose lambda, and a metric of their own, are chosen by leave-one-out; so is
the weight of each in their mean: on cadata the two have errors of .399 and .396, and the mean .384.
A linear machine joins the mean where that improves it. The cost grows linearly with the number of
rows.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse

from rfx import device, kernels, parallel
from rfx import steps as told
from rfx.counters import random_rows
from rfx.data import repeats
from rfx.data.rows import stacked
from rfx.data.transforms import FORMS, Metric
from rfx.errors import UsageError
from rfx.features.partition import Partition
from rfx.fitting.method import ONLY_SQUARED, Fitted, Method
from rfx.fitting.metric_learning import (
    GRADIENT_ROWS,
    MOST_INPUTS,
    OPTIMISM,
    OTHERS,
    allowed,
    bandwidth,
    best_lam,
    compact,
    criterion,
    dense,
    next_metric,
    unsampled,
    unused,
)
from rfx.fitting.options import (
    AUTO,
    BUDGET_SECONDS,
    CHOSEN_SCALING,
    CLASS_WEIGHT,
    DTYPE,
    LAM,
    LEAF_BESIDE,
    LEAF_LAM,
    LEAF_LAMS,
    LEAF_ROWS,
    LEAF_WIDEST,
    LEAF_WIDTHS,
    LEAF_WORK,
    METRIC,
    METRIC_WIDTH,
    SearchSpace,
    chosen_kernel,
)
from rfx.fitting.pipeline import Checkpointer, digest
from rfx.fitting.problem import Cache, Clock, Problem, input_dtype
from rfx.fitting.progress import ProgressReport
from rfx.fitting.weights import part
from rfx.kernels.gradients import outer_product
from rfx.losses import get_loss
from rfx.methods.kernel import (
    CSR,
    LEAST_ERROR,
    PARTITION,
    RFM,
    partition_arrays,
    restored_partition,
    restored_rows,
    rows_arrays,
)
from rfx.model import Array
from rfx.operators.kernel import coefficients, left_out, moved_mean, products
from rfx.options import Chosen, option
from rfx.solvers.base import Solution
from rfx.types import Inputs, JsonObject, KernelParams

log = logging.getLogger(__name__)
AnyFit = TypeVar("AnyFit", bound="MetricFit")
KERNELS = ("laplacian-l2", "laplacian")
# The arrays of a model apart from those of its tree: the rows, and the machines of the leaves.
ARRAYS = {
    "rows": Array("f", "rows inputs", half=True),
    # or as CSR
    "rows_data": Array("f", "entries"),
    "rows_indices": Array("i", "entries", places="inputs"),
    "rows_indptr": Array("i", "rows+1", cuts="entries"),
    "numbers": Array("i", "vectors", places="rows"),
    "coef": Array("f", "vectors outputs"),
    "starts": Array("i", "machines+1", cuts="vectors"),
    "offsets": Array("f", "leaves outputs"),
    "gammas": Array("f", "machines"),
    "diagonals": Array("f", "diagonal inputs"),
    "matrices": Array("f", "full side side"),
    "metrics": Array("i", "machines"),
    # one machine a leaf, of the method's kernel, if they are missing
    "leaves": Array("i", "machines", places="leaves"),
    "places": Array("i", "machines"),
    # 1 for a machine whose kernel values are computed in float64; 0 if missing
    "doubles": Array("i", "machines"),
    # one for each leaf, or none
    "slopes": Array("f", "slopes inputs outputs"),
}
OF_LEAVES = tuple(name for name in ARRAYS if not name.startswith("rows"))
# Maximum rows of a leaf on which its lambda is chosen: the best one depends little on their number.
CHOOSING = 1000
# A metric, or a mean of two machines, must reduce the leave-one-out error by this fraction.
GAIN = 0.005
# Ridge parameters of the linear machine of a leaf, as multiples of the mean squared singular value,
# and the most multiplications for its factor.
LINEAR_LAMS = tuple(10.0 ** (power / 2) for power in range(-12, 7))
LINEAR_WORK = 2e10
# Bound on rounding errors above which a machine of several leaves computes in float64. On 100,000
# rows of covtype, and of 8 Gaussian inputs, float32 values below it change predictions by 9e-6 and
# 3e-6 of the largest; float64 for all would take 6 % and 29 % more of `rfx predict`.
SEVERAL_ERROR = 1e-4
# Rows are rounded to float16 if that changes predictions by at most this fraction of their error,
# which then grows by half a percent. On six tables it was .006 to .04, for smooth kernels 10 and
# 31.
HALF_CHANGE = 0.1
# Maximum rows of wide sparse tables for an exact machine, which keeps them sparse.
EXACT = 8000


class Local(Method):
    """Kernel ridge regression in the leaves of a tree of median splits."""

    name = "local"
    accelerated = leaves_out = True
    summary = "exact kernel machines in the leaves of a tree, for tables of any size"
    default_losses = ONLY_SQUARED
    several_targets = distributed = resumable = True
    file_format = 2
    space = SearchSpace(kernels=KERNELS)
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    budget_seconds: float | None = BUDGET_SECONDS()
    kernel: str = chosen_kernel(
        lambda: [name for name, kernel in kernels.KERNELS.items() if kernel.has_gradient],
        KERNELS,
    )()
    leaf_rows: int | None = option(
        None,
        "Maximum rows of a leaf; by default 5,000 up to 40,000 rows, and less for more, but at"
        " least 2,500. Larger leaves are more accurate and take longer.",
        least=2,
        most=20_000,
    )
    overlap: float = option(
        0.05, "Fraction of the rows around a split that both sides use.", least=0, most=0.5
    )
    leaf_steps: int = option(
        1,
        "Iterations of a metric tried in each leaf with fewer inputs than rows; kept where"
        " leave-one-out improves.",
        least=0,
        most=20,
    )
    mixed: bool = option(
        True,
        "Whether each leaf has a second machine, of kernel laplacian, or laplacian-l2 if that is"
        " not the first, and a linear one, and predicts a mean with weights by leave-one-out.",
    )
    lam: float | Chosen = LAM(
        help="Ridge parameter of each leaf, for rows of mean weight 1.",
        choices={AUTO: "chosen in each leaf by leave-one-out"},
        default=AUTO,
    )
    dtype: str = DTYPE.adding({"float16": "float32, but dense rows of the model are rounded"})()
    class_weight: str | None = CLASS_WEIGHT()
    arrays: ClassVar[dict[str, Array]] = ARRAYS | PARTITION

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels of the machines of a leaf."""
        second = KERNELS[self.kernel == KERNELS[0]]
        return (self.kernel, second) if self.mixed else (self.kernel,)

    def vectors(self, X: Inputs) -> int:
        return min(X.shape[0], self.tree(X.shape[0])[0])

    def tree(self, n_rows: int) -> tuple[int, float, int]:
        """What a partition of n rows needs: rows of a leaf, overlap and seed."""
        size = self.leaf_rows or int(np.clip(math.sqrt(LEAF_WORK / n_rows), *LEAF_ROWS))
        return size, self.overlap, self.seed

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        if problem.weights is not None:
            problem = replace(problem, weights=problem.weights / problem.weights.mean())
        partition, cells = fitted_cells(problem.X, self, problem, clock)
        leaves = [leaf for cell in cells for leaf in cell.leaves]
        machines = [machine for leaf in leaves for machine in leaf.machines]
        if raised := sum(one.lam != self.lam for one in machines if self.lam != AUTO):
            log.warning(
                "--lam is %g, with which %d machines have no solution; larger ones are used there",
                self.lam,
                raised,
            )
        model = LocalModel.of(self.kernels, partition, cells)
        gap = sum(one.gap for one in machines)
        objective = sum(one.objective for one in machines)
        solution = Solution(model.coef, objective, gap, len(leaves), "converged")
        values = np.zeros(problem.Y.shape)
        for cell in cells:
            values[cell.own] = cell.out
        if self.dtype == "float16" and not scipy.sparse.issparse(model.rows):
            model = _halved(model, problem, values)
        details = {
            "n_blocks": len(leaves),
            "lam": float(np.median([one.lam for one in machines] or LEAF_LAMS[:1])),
        }
        return Fitted(model, solution, details, clock.seconds, values)

    def restore(self, header, arrays) -> LocalModel:
        offsets, diagonals = arrays["offsets"], arrays["diagonals"]
        partition = restored_partition(arrays, len(offsets))
        numbers = np.arange(len(arrays["gammas"]))
        no_slopes = np.zeros((0, diagonals.shape[1], offsets.shape[1]))
        nothing = np.zeros_like(numbers)
        missing = {"leaves": numbers, "places": nothing, "doubles": nothing, "slopes": no_slopes}
        arrays = missing | arrays
        rows = restored_rows("rows", arrays, header["n_inputs"])
        return LocalModel(self.kernels, partition, rows, *(arrays[name] for name in OF_LEAVES))

    def gradient_squares(self, model: Any) -> np.ndarray | None:
        total = np.zeros(model.rows.shape[1])
        for machine in range(len(model.gammas)):
            (kernel, params), metric = model.kernel(machine), model.metric(machine)
            support, coef = dense(model.support(machine)), model.coef_of(machine)
            rows = random_rows(len(coef), GRADIENT_ROWS, seed=self.seed)
            full = metric is not None and metric.form == "full"
            M = len(coef) * outer_product(kernel, support, coef, params, rows, full)
            if metric is not None:
                M = metric.pulled_back(M)
            total += np.diag(M) if full else M
        # linear leaves store no rows
        rows_of_leaf = max(1.0, model.rows.shape[0] / max(1, len(model.slopes)))
        return total + rows_of_leaf * np.square(model.slopes).sum(axis=(0, 2))


class Auto(Method):
    """`local` with every option chosen, and for wide sparse rows `rfm`.

    Up to 5,000 rows, `local` is one exact machine, or the mean of two. On one split of each of
    twelve tables it had a lower error than the better of `rfm` and a support vector machine on
    eleven, and the same on one. Random features are not tried: a comparison on a sample misleads,
    because `local` gains more from further rows. On cod-rna, they won on 8,000 rows (error of the
    fit to all 44,651: .053), while `local` had .036.
    """

    name = "auto"
    accelerated = leaves_out = True
    summary = "method local with scaling, kernel and metric of the lowest leave-one-out error"
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    budget_seconds: float | None = BUDGET_SECONDS()
    class_weight: str | None = CLASS_WEIGHT()

    def delegate_for(self, X: Inputs) -> Method:
        wide = scipy.sparse.issparse(X) and X.shape[1] > MOST_INPUTS
        return (RFM if wide and X.shape[0] <= EXACT else Local).of(self.values)


# ---------------------------------------------------------------------- cells of leaves


@dataclass(frozen=True)
class Cell:
    """The leaves of some of the rows, by numbers among all rows.

    Parameters
    ----------
    partition : Partition
    blocks : list of array
        The rows of each leaf, ascending.
    leaves : list of Leaf
    own, out : array (n,), array (n, k)
        Rows that belong to this cell alone, and their decision values by the machine without each.
    used, rows : array (m,), array or CSR matrix (m, d)
        The rows of all machines.
    """

    partition: Partition
    blocks: list[np.ndarray]
    leaves: list[Leaf]
    own: np.ndarray
    out: np.ndarray
    used: np.ndarray
    rows: Inputs


@singledispatch
def fitted_cells(
    X: Inputs, method: Local, problem: Problem, clock: Clock
) -> tuple[Partition, list[Cell]]:
    """The partition of the problem's rows X and its fitted cells: one, or several on workers."""
    partition, blocks = clock.timed("features", Partition.principal, X, *method.tree(X.shape[0]))
    free = _judges(method, problem, len(blocks))
    return partition, [_cell(method, problem, partition, blocks, np.arange(problem.n_rows), free)]


def _cell(
    method: Local,
    problem: Problem,
    partition: Partition,
    blocks: list[np.ndarray],
    own: np.ndarray,
    free: np.ndarray | None,
) -> Cell:
    leaves, out = _leaves(method, problem, blocks, free), np.zeros(problem.Y.shape)
    # the rows that a leaf shares are left out of the machine of their own leaf
    for rows, placed, leaf in zip(blocks, partition.place(problem.X), leaves):
        out[placed] = leaf.out[np.searchsorted(rows, placed)]
    of_machines = [rows for rows, leaf in zip(blocks, leaves) if leaf.machines]
    used = np.unique(np.concatenate([np.empty(0, np.intp), *of_machines]))
    return Cell(partition, blocks, leaves, own, out[own], used, problem.X[used])


def grown_cell(
    shared: tuple[Local, str, Partition, int],
    number: int,
    numbers: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
) -> Cell:
    """On a worker: the cell with a number of the partition into cells, with the numbers of its
    rows.
    """
    method, task, top, n_rows = shared
    partition, blocks = Partition.grown(X, np.arange(len(X)), *method.tree(n_rows))
    constraint, loss = repeats.find_constraint(X), get_loss("squared")
    problem = Problem(X, Y, loss, task, weights, constraint=constraint, measure=method.measure)
    # by the numbers of all rows, as on one machine
    free = unsampled(n_rows, problem.n_inputs, method)
    free = free[numbers] if free.sum() >= OTHERS else np.ones(len(X), bool)
    cell = _cell(method, problem, partition, blocks, top.place(X)[number], free)
    blocks = [numbers[rows] for rows in blocks]
    return replace(cell, blocks=blocks, own=numbers[cell.own], used=numbers[cell.used])


def _judges(method: Local, problem: Problem, n_leaves: int) -> np.ndarray | None:
    """(n,) whether a row may judge what its leaf learns from others; None where a leaf learns from
    all of its rows.
    """
    if problem.constrained:
        return None
    free = unused(problem, method)
    return np.ones(problem.n_rows, bool) if free is None and n_leaves > 1 else free


def _leaves(
    method: Local, problem: Problem, blocks: list[np.ndarray], free: np.ndarray | None
) -> list[Leaf]:
    """The machines of all leaves, on all cores, with a checkpoint after a fiftieth of them.

    free: as returned by `_judges`.
    """
    checkpointer, count = problem.checkpointer, len(blocks)
    leaves, lock = _saved(checkpointer, method, problem, count), threading.Lock()
    left = [number for number, leaf in enumerate(leaves) if leaf is None]
    done = itertools.count(count - len(left) + 1)

    def fit(low: int, high: int) -> None:
        for number in left[low:high]:
            rows, place = problem.rows(blocks[number]).merged()
            order, last = np.arange(rows.n_rows), rows.n_rows
            if free is not None and last > 1:
                first = np.unique(place, return_index=True)[1]
                order, last = _judges_last(free[blocks[number][first]], method.seed)
            rows = rows.rows(order)
            leaf = _leaf(replace(rows, X=compact(rows.X).astype(input_dtype(method))), method, last)
            leaf = leaf.of_rows(np.argsort(order)).of_rows(place)
            with lock:
                leaves[number] = leaf
                finished = next(done)
                if problem.progress is not None:
                    problem.progress(ProgressReport(leaf=finished, leaves=count))
                if (
                    checkpointer is not None
                    and finished % (checkpointer.every or -(-count // 50)) == 0
                ):
                    _save(checkpointer, method, problem, leaves)

    with parallel.one_blas_thread():
        most = max(map(len, blocks))
        parallel.for_ranges(fit, len(left), parts=device.parts(most))
    return [leaf for leaf in leaves if leaf is not None]


def _judges_last(free: np.ndarray, seed: int) -> tuple[np.ndarray, int]:
    """The rows of a leaf in an order, and the number of its last rows that judge what is learnt
    from the others: half of the rows, or fewer if fewer are free to do so.
    """
    candidates = np.flatnonzero(free)
    last = max(1, min(len(free) // 2, len(candidates)))
    judges = candidates[random_rows(len(candidates), last, seed=seed)]
    return np.concatenate([np.setdiff1d(np.arange(len(free)), judges), judges]), len(judges)


# ---------------------------------------------------------------------- one leaf


@dataclass(frozen=True)
class Machine:
    """f(x) = sum_j coef_j k(A'x, A's_j) for the rows s of a leaf.

    Parameters
    ----------
    place : int
        Of its kernel among those of the method.
    coef : array, (n, k)
    gamma : float
    lam, error : float
        Its lambda, and the criterion of the choice.
    objective, gap : float
        For rows of mean weight 1.
    rounding : float
        The error of its values with kernel values in float32, relative to the targets.
    map : array or None
        A, its metric.
    """

    place: int
    coef: np.ndarray
    gamma: float
    lam: float
    error: float
    objective: float
    gap: float
    rounding: float = 0.0
    map: np.ndarray | None = None


@dataclass(frozen=True)
class Leaf:
    """The sum of its machines, and of the linear function x slope + offset.

    Parameters
    ----------
    offset : array, (k,)
    out : array, (n, k)
        Decision values of rows by the machines without each; nan for rows that are not left out.
    machines : tuple of Machine
        None if the targets are constant, or a linear function is better.
    slope : array, (d, k), or None
        None for zero.
    """

    offset: np.ndarray
    out: np.ndarray
    machines: tuple[Machine, ...] = ()
    slope: np.ndarray | None = None

    def of_rows(self, numbers: np.ndarray) -> Leaf:
        """The leaf of rows that are equal to those with these numbers among its own: of several the
        first has the coefficient.
        """
        first = np.unique(numbers, return_index=True)[1]
        machines = []
        for machine in self.machines:
            coef = np.zeros((len(numbers), machine.coef.shape[1]))
            coef[first] = machine.coef
            machines.append(replace(machine, coef=coef))
        return replace(self, out=self.out[numbers], machines=tuple(machines))


def _save(
    checkpointer: Checkpointer, method: Local, problem: Problem, leaves: list[Leaf | None]
) -> None:
    """Write the finished leaves to a checkpoint."""
    arrays = {
        f"{number}.{part}.{name}": np.asarray(value)
        for number, leaf in enumerate(leaves)
        for part, values in enumerate((leaf, *leaf.machines) if leaf else ())
        for name, value in vars(values).items()
        if value is not None and name != "machines"
    }
    checkpointer.write(method, {"rows": _digest(problem), "leaves": len(leaves)}, arrays)


def _saved(
    checkpointer: Checkpointer | None, method: Local, problem: Problem, count: int
) -> list[Leaf | None]:
    """The finished leaves of the checkpoint to resume from, None for others."""
    leaves: list[Leaf | None] = [None] * count
    saved = None if checkpointer is None else checkpointer.load(method, _digest(problem))
    if checkpointer is None or saved is None:
        return leaves
    header, arrays = saved
    if (header.get("rows"), header.get("leaves")) != (_digest(problem), count):
        raise UsageError(
            f"checkpoint {checkpointer.path} is of other rows; use the same data, or omit --resume"
        )
    with checkpointer.restoring():
        fields: dict[int, dict[str, JsonObject]] = {}
        for name, value in arrays.items():
            number, part, field = name.split(".")
            values = fields.setdefault(int(number), {}).setdefault(part, {})
            values[field] = value if value.ndim else value.item()
        for place, parts in fields.items():
            machines = (Machine(**parts[part]) for part in sorted(parts) if part != "0")
            leaves[place] = Leaf(**parts["0"], machines=tuple(machines))
    return leaves


def _digest(problem: Problem) -> str:
    """A hash of the rows, targets and weights."""
    X, weights = problem.X, problem.weights
    sparse = scipy.sparse.issparse(X)
    arrays = {name: getattr(X, name) for name in CSR} if sparse else {"X": X}
    arrays |= {"Y": problem.Y} | ({} if weights is None else {"weights": weights})
    return digest({}, arrays)


def _leaf(rows: Problem, method: Local, last: int) -> Leaf:
    """The machines of the rows of a leaf, whose weights have mean 1 over all leaves; the last rows
    are left out.
    """
    X, Y, weights = rows.X, rows.Y, rows.weights
    offset = np.average(Y, axis=0, weights=weights)
    equal = (X.max(axis=0) - X.min(axis=0)).max() == 0
    if equal or len(Y) < 2 or not np.ptp(Y, axis=0).any():
        own = np.ones(len(Y)) if weights is None else weights
        # a single row, or its copies, can't be predicted without it
        alone = np.nan if len(Y) < 2 else 0.0
        return Leaf(offset, offset - moved_mean(Y - offset, own, _groups(rows)) + alone)
    fits = _kernel_fits(LeafRows(rows, offset, last), method)
    first, second = fits[0], fits[-1]
    share = _share(rows, first.out, second.out)
    out = first.out + share * (second.out - first.out)
    of_line, constant, line = 0.0, offset, out
    slope = np.zeros((X.shape[1], len(offset)))
    text = scipy.sparse.issparse(X)
    if method.mixed and not text and X.size * min(X.shape) <= LINEAR_WORK:
        slope, constant, line = _linear(rows, offset, last)
        of_line = _share(rows, out, line)
    machines = []
    for fit, weight in ((first, 1 - share), (second, share)):
        if weight and of_line < 1:
            machine = fit.machine(method.kernels.index(fit.kernel))
            machines.append(replace(machine, coef=(1 - of_line) * weight * machine.coef))
    values = np.full(Y.shape, np.nan)
    values[-last:] = out + of_line * (line - out)
    offset = offset + of_line * (constant - offset)
    return Leaf(offset, values, tuple(machines), of_line * slope if of_line else None)


def _share(rows: Problem, out: np.ndarray, other: np.ndarray) -> float:
    """The weight of `other` in a mean of decision values of the last rows: that with the least
    squared error, if either alone has a larger error.
    """
    Y, weights = rows.Y[-len(out) :], part(rows.weights, slice(-len(out), None))
    own = 1.0 if weights is None else weights[:, None]
    constraint = other - out
    square = np.sum(own * constraint**2)
    least = np.clip(np.sum(own * constraint * (Y - out)) / square, 0, 1) if square > 0 else 0.0

    def error(share: float) -> float:
        return criterion(rows.task, out + share * constraint, Y, weights, rows.measure)

    errors = {float(least): error(least) / (1 - GAIN), 0.0: error(0.0), 1.0: error(1.0)}
    return min(errors, key=errors.__getitem__)


def _linear(
    rows: Problem, offset: np.ndarray, last: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ridge regression with the best of LINEAR_LAMS: slope (d, k), offset (k,), and the decision
    values of the last rows by the machine without each.
    """
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    root = np.sqrt(weights)
    middle = np.average(rows.X, axis=0, weights=weights)
    T = root[:, None] * (rows.Y - offset)
    # without a row, the offset is that of the others
    constant = root / np.sqrt(weights.sum())
    groups = _groups(rows)
    with parallel.one_blas_thread():
        U, s, V = np.linalg.svd(root[:, None] * (rows.X - middle), full_matrices=False)
        projected = U.T @ T
        best: tuple[float, np.ndarray, np.ndarray] | None = None
        for lam in LINEAR_LAMS:
            kept = s**2 / (s**2 + lam * np.mean(s**2))
            residuals = T - U @ (kept[:, None] * projected)
            residuals = _linear_left_out(residuals, U, kept, constant, groups)
            error = float(np.sum(residuals**2))
            if best is None or error < best[0]:
                best = error, kept, residuals
        assert best is not None
        _, kept, residuals = best
        # directions without any rows have no slope
        inverse = kept / np.where(s > 0, s, np.inf)
        slope = V.T @ (inverse[:, None] * projected)
    out = rows.Y - residuals / root[:, None]
    return slope, offset - middle @ slope, out[-last:]


def _linear_left_out(
    residuals: np.ndarray,
    U: np.ndarray,
    kept: np.ndarray,
    constant: np.ndarray,
    groups: np.ndarray | None,
) -> np.ndarray:
    """The residuals (n, k) of rows by the linear machine without each, or without its group, from
    those by the machine of all rows, whose hat matrix is U diag(kept) U' + constant constant'.
    """
    if groups is None:
        return residuals / (1 - np.square(U) @ kept[:, None] - np.square(constant)[:, None])
    residuals = residuals.copy()
    for group in np.unique(groups):
        some = np.flatnonzero(groups == group)
        hat = U[some] * kept @ U[some].T + np.outer(constant[some], constant[some])
        residuals[some] = np.linalg.solve(np.eye(len(some)) - hat, residuals[some])
    return residuals


@dataclass(frozen=True)
class LeafRows:
    """The rows of a leaf, of which the last are left out.

    Parameters
    ----------
    rows : Problem
        With n rows.
    offset : array, (k,)
        The mean of the targets.
    last : int
    """

    rows: Problem
    offset: np.ndarray
    last: int

    @property
    def weights(self) -> np.ndarray:
        """(n,) of the rows."""
        return np.ones(self.rows.n_rows) if self.rows.weights is None else self.rows.weights

    @property
    def targets(self) -> np.ndarray:
        """(n, k) minus their mean."""
        return self.rows.Y - self.offset

    @property
    def groups(self) -> np.ndarray | None:
        """(n,) the groups of rows that are left out together."""
        return _groups(self.rows)

    @property
    def judged(self) -> bool:
        """Whether the last rows judge a metric of the others; if not, all rows judge their own."""
        return self.last < self.rows.n_rows

    @property
    def n_learning(self) -> int:
        """Number of rows from which a metric is learnt: the first ones."""
        return self.rows.n_rows - self.last if self.judged else self.rows.n_rows

    def criterion(self, out: np.ndarray) -> float:
        """The criterion of the choice for decision values of the last rows."""
        rows, end = self.rows, slice(-self.last, None)
        return criterion(rows.task, out, rows.Y[end], part(rows.weights, end), rows.measure)


@dataclass(frozen=True)
class MetricFit:
    """Kernel ridge regression with one metric, of the rows of a leaf that learn metrics.

    Parameters
    ----------
    leaf : LeafRows
    kernel : str
    params : dict
        The kernel's.
    metric : Metric or None
    Z : array, (m, d)
        The rows, mapped by the metric.
    lam : float
    coef : array, (m, k)
    error : float
        The criterion of the choice.
    """

    leaf: LeafRows
    kernel: str
    params: KernelParams
    metric: Metric | None
    Z: Inputs
    lam: float
    coef: np.ndarray
    error: float

    def next_metric(self, full: bool, seed: int) -> Metric | None:
        """The metric of the gradients of the machine; None if it is constant."""
        weights = part(self.leaf.rows.weights, slice(self.leaf.n_learning))
        return next_metric(
            self.kernel, self.Z, self.coef, self.params, self.metric, full, weights, seed
        )


@dataclass(frozen=True)
class LeafFit(MetricFit):
    """Kernel ridge regression of all rows of a leaf with one metric.

    Parameters
    ----------
    fitted : array, (n, k)
        Values of the machine at its rows, without the offset.
    out : array, (last, k)
        Decision values of the last rows by the machine without each.
    """

    fitted: np.ndarray
    out: np.ndarray

    def machine(self, place: int) -> Machine:
        """The machine with its certificate; place: of its kernel."""
        coef, fitted, weights = self.coef, self.fitted, self.leaf.weights
        T = self.leaf.targets
        loss = np.sum(weights * np.square(T - fitted).sum(axis=1))
        objective = float(self.lam * np.sum(coef * fitted) + loss) / 2
        remainder = T - fitted - self.lam * coef / weights[:, None]
        gap = float(np.sum(weights * np.square(remainder).sum(axis=1))) / 2
        return Machine(
            place,
            coef,
            gamma=self.params["gamma"],
            lam=self.lam,
            error=self.error,
            objective=objective,
            gap=gap,
            rounding=kernels.rounding_error(coef, np.abs(self.leaf.rows.Y).max(axis=0)),
            map=None if self.metric is None else self.metric.map,
        )


def _kernel_fits(leaf: LeafRows, method: Local) -> list[LeafFit]:
    """The machines of a leaf, one of each kernel."""
    fits: list[LeafFit] = []
    wide = leaf.rows.n_inputs > LEAF_WIDEST
    for kernel in method.kernels[:1] if wide else method.kernels:
        if method.lam == AUTO:
            # the best lambdas of two kernels are often close
            lam = _best_lam(leaf, kernel, method.seed, near=fits[0].lam if fits else LEAF_LAM)
        else:
            lam = float(method.lam)
        fits.append(_kernel_fit(leaf, kernel, method, lam))
    return fits


def _kernel_fit(leaf: LeafRows, kernel: str, method: Local, lam: float) -> LeafFit:
    """The machine of a kernel with the metric of the lowest error."""
    n_inputs, seed = leaf.rows.n_inputs, method.seed
    full = "full" in allowed(FORMS, leaf.rows.X, kernel)
    # a metric learnt from fewer rows than inputs only seems to improve their errors
    steps = method.leaf_steps if n_inputs < leaf.n_learning else 0
    fit_all = partial(_fit_all, leaf, kernel, seed)
    if leaf.judged and steps:
        learning = partial(_fit_learning, leaf, kernel, seed)
        learnt = _best_metric(learning, lam, steps, full, seed)
        return fit_all(learnt.metric, learnt.lam)
    # the metric of few rows owes much to them
    few = full and not leaf.judged and leaf.rows.n_rows <= CHOOSING
    optimism = OPTIMISM * n_inputs / leaf.rows.n_rows if few else 0.0
    return _best_metric(fit_all, lam, steps, full, seed, optimism)


def _best_metric(
    fit: Callable[[Metric | None, float], AnyFit],
    lam: float,
    steps: int,
    full: bool,
    seed: int,
    optimism: float = 0.0,
) -> AnyFit:
    """The last of the machines that `fit` returns for a metric and lambda, while each metric that
    the one before teaches reduces the error; optimism: by which an error is too small.
    """
    best = fit(None, lam)
    for _ in range(steps):
        metric = best.next_metric(full, seed)
        if metric is None:
            break
        one = fit(metric, best.lam)
        if (1 + optimism) * one.error > (1 - GAIN) * best.error:
            break
        best = one
    return best


def _fit_learning(
    leaf: LeafRows, kernel: str, seed: int, metric: Metric | None, lam: float
) -> MetricFit:
    """The machine of the rows that learn, judged by its values at the others: an eighth of the work
    of one of all rows.
    """
    Z, params = _mapped(leaf, kernel, metric, seed)
    n = leaf.n_learning
    K = kernels.values(kernel, Z[:n], Z[:n], params)
    unit = 1 / leaf.weights[:n]
    # a lambda that suits some of the rows may be too small for all of them
    while (coef := coefficients(K, leaf.targets[:n], lam, unit)) is None:
        lam *= 10
    out = leaf.offset + kernels.decision(kernel, params, Z[:n], coef, Z[n:])
    return MetricFit(leaf, kernel, params, metric, Z[:n], lam, coef, leaf.criterion(out))


def _fit_all(leaf: LeafRows, kernel: str, seed: int, metric: Metric | None, lam: float) -> LeafFit:
    """The machine of all rows, judged by leaving each of the last rows out."""
    Z, params = _mapped(leaf, kernel, metric, seed)
    targets, unit = leaf.targets, 1 / leaf.weights
    K = kernels.values(kernel, Z, Z, params)
    # as in `_fit_learning`
    while not (solved := left_out(K, targets, lam, unit, leaf.groups, leaf.last, centred=True)):
        lam *= 10
    out = leaf.rows.Y[-leaf.last :] - solved.residuals
    error, fitted = leaf.criterion(out), products(K, solved.coef)
    return LeafFit(leaf, kernel, params, metric, Z, lam, solved.coef, error, fitted, out)


def _mapped(
    leaf: LeafRows, kernel: str, metric: Metric | None, seed: int
) -> tuple[Inputs, KernelParams]:
    """The rows (n, d) mapped by a metric, and the kernel's parameters for these."""
    Z = leaf.rows.X if metric is None else metric.transform(leaf.rows.X)
    return Z, bandwidth(kernel, Z, seed, LEAF_WIDTHS.get(kernel, METRIC_WIDTH))


def _groups(rows: Problem) -> np.ndarray | None:
    """The groups of rows that are left out together."""
    constraint = rows.constraint
    return constraint.values if constraint is not None and constraint.by == "groups" else None


def _best_lam(leaf: LeafRows, kernel: str, seed: int, near: float) -> float:
    """The lambda with the lowest leave-one-out squared error on some of the rows; near: where the
    search begins.
    """
    some = random_rows(leaf.rows.n_rows, CHOOSING, seed=seed)
    Z, params = _mapped(leaf, kernel, None, seed)
    K = kernels.block(kernel, Z[some], Z[some], params)
    targets, weights, groups = leaf.targets[some], leaf.weights[some], part(leaf.groups, some)
    targets = targets - np.average(targets, axis=0, weights=weights)

    def error(lam: float) -> float:
        solved = left_out(K, targets, lam, 1 / weights, groups, centred=True)
        return float(weights @ np.square(solved.residuals).sum(axis=1)) if solved else math.inf

    first = min(LEAF_LAMS, key=lambda lam: abs(math.log(lam / near)))
    best, least = best_lam(LEAF_LAMS, first, error)
    errors = {best: least} | {lam: error(lam) for lam in (best * LEAF_BESIDE, best / LEAF_BESIDE)}
    return min(errors, key=errors.__getitem__)


# ---------------------------------------------------------------------- the model


def _halved(model: LocalModel, problem: Problem, left_out: np.ndarray) -> LocalModel:
    """The model with rows in float16.

    left_out: decision values of the problem's rows (n, k) by the model without each, or nan.

    Raises
    ------
    UsageError
        If a number is too large, or predictions change by more than HALF_CHANGE of their error.
    """
    largest = np.finfo(np.float16).max
    if np.abs(model.rows).max(initial=0) > largest:
        raise UsageError(
            f"--dtype is float16, but scaled inputs are larger than {largest:g}; use float32"
        )
    halved = replace(model, rows=model.rows.astype(np.float16))
    numbers = random_rows(problem.n_rows, CHOOSING)
    some = problem.rows(numbers)
    change = np.sqrt(np.mean(np.square(halved.decision(some.X) - model.decision(some.X))))
    error = np.sqrt(np.nanmean(np.square(left_out[numbers] - some.Y)))
    if change > HALF_CHANGE * error:
        raise UsageError(
            f"--dtype is float16, but rounding the rows changes predictions by {change / error:.0%}"
            " of their error; use float32"
        )
    return halved


def _shared_rows(cells: list[Cell], of_leaf: np.ndarray) -> tuple[Inputs, np.ndarray]:
    """(the rows of all cells, each once; the numbers of those of each machine, one machine after
    another); of_leaf: the leaf of each machine.
    """
    used, first = np.unique(np.concatenate([cell.used for cell in cells]), return_index=True)
    blocks = [block for cell in cells for block in cell.blocks]
    support = [np.empty(0, np.intp), *(blocks[leaf] for leaf in of_leaf)]
    numbers = np.searchsorted(used, np.concatenate(support)).astype(np.int32)
    if len(cells) == 1:
        return cells[0].rows, numbers
    return stacked([cell.rows for cell in cells])[first], numbers


def _stacked_maps(
    machines: list[Machine], n_inputs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(diagonal maps (p, d), full maps (q, d, d), the number of each machine's among these, -1 for
    none).
    """
    maps = [machine.map for machine in machines]
    axes = np.array([0 if A is None else A.ndim for A in maps], np.int64)
    diagonal = [A for A in maps if A is not None and A.ndim == 1]
    full = [A for A in maps if A is not None and A.ndim == 2]
    numbers = np.full(len(maps), -1, np.int64)
    numbers[axes == 1] = np.arange(len(diagonal))
    numbers[axes == 2] = len(diagonal) + np.arange(len(full))
    # a model file without full maps has no axis of inputs for them
    side = n_inputs if full else 0
    matrices = np.array(full, np.float64).reshape(len(full), side, side)
    return np.array(diagonal, np.float64).reshape(-1, n_inputs), matrices, numbers


def _stacked_slopes(leaves: list[Leaf], n_inputs: int) -> np.ndarray:
    """The slopes (leaves, d, k); without leaves if all are zero."""
    n_outputs = len(leaves[0].offset)
    if all(leaf.slope is None for leaf in leaves):
        return np.zeros((0, n_inputs, n_outputs))
    level = np.zeros((n_inputs, n_outputs))
    return np.array([level if leaf.slope is None else leaf.slope for leaf in leaves])


@dataclass(frozen=True)
class LocalModel:
    """The machines of the leaf that contains x: f(x) = sum_j coef_j k(A'x, A's_j) + offset over
    their rows s.

    Parameters
    ----------
    kernels : tuple of str
    partition : Partition
    rows : array or CSR matrix, (n, d)
        The training rows of the leaves, each once.
    numbers : array, (m,)
        Those of each machine, machine b's from starts[b] on.
    coef : array, (m, k)
    starts : array, (machines + 1,)
    offsets : array, (leaves, k)
    gammas : array, (machines,)
    diagonals, matrices : arrays, (p, d) and (q, d, d)
        The metrics A of machines.
    metrics : array, (machines,)
        Which of them, numbered through, a machine has; -1 for none.
    leaves, places : arrays, (machines,)
        The leaf of a machine, ascending, and the place of its kernel.
    doubles : array, (machines,)
        1 for a machine whose kernel values are computed in float64, else 0.
    slopes : array, (leaves, d, k)
        Without leaves if all are zero.
    """

    kernels: tuple[str, ...]
    partition: Partition
    rows: Inputs
    numbers: np.ndarray
    coef: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray
    gammas: np.ndarray
    diagonals: np.ndarray
    matrices: np.ndarray
    metrics: np.ndarray
    leaves: np.ndarray
    places: np.ndarray
    doubles: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(cls, names: tuple[str, ...], partition: Partition, cells: list[Cell]) -> LocalModel:
        """The model of the leaves' machines."""
        leaves = [leaf for cell in cells for leaf in cell.leaves]
        machines = [machine for leaf in leaves for machine in leaf.machines]
        of_leaf = np.repeat(np.arange(len(leaves)), [len(leaf.machines) for leaf in leaves])
        rows, numbers = _shared_rows(cells, of_leaf)
        diagonals, matrices, metrics = _stacked_maps(machines, rows.shape[1])
        no_rows = np.zeros((0, len(leaves[0].offset)))
        largest_rounding = LEAST_ERROR if len(leaves) == 1 else SEVERAL_ERROR
        is_double = [machine.rounding > largest_rounding for machine in machines]
        coefs = [machine.coef for machine in machines]
        return cls(
            kernels=names,
            partition=partition,
            rows=rows,
            numbers=numbers,
            coef=np.concatenate([no_rows, *coefs]),
            starts=np.cumsum([0, *map(len, coefs)]),
            offsets=np.array([leaf.offset for leaf in leaves]),
            gammas=np.array([machine.gamma for machine in machines], np.float64),
            diagonals=diagonals,
            matrices=matrices,
            metrics=metrics,
            leaves=of_leaf,
            places=np.array([machine.place for machine in machines], np.int64),
            doubles=np.array(is_double, np.int64),
            slopes=_stacked_slopes(leaves, rows.shape[1]),
        )

    def decision(self, X: Inputs) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        values = np.zeros((X.shape[0], self.offsets.shape[1]))
        placed = self.partition.place(X)

        def part(low: int, high: int) -> None:
            for leaf in range(low, high):
                rows = placed[leaf]
                values[rows] = self.offsets[leaf]
                if len(self.slopes):
                    values[rows] += X[rows] @ self.slopes[leaf]
                for machine in self.of_leaf(leaf) if len(rows) else ():
                    values[rows] += self._values(machine, X[rows])

        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(placed))
        return values

    def of_leaf(self, leaf: int) -> range:
        """The machines of a leaf."""
        return range(*np.searchsorted(self.leaves, [leaf, leaf + 1]))

    def _values(self, machine: int, X: Inputs) -> np.ndarray:
        mapped = self._mapped(machine, X.astype(self.dtype(machine), copy=False))
        kernel, params = self.kernel(machine)
        sums = kernels.decision(
            kernel, params, self.support(machine), self.coef_of(machine), mapped
        )
        return np.asarray(sums, np.float64).reshape(X.shape[0], -1)

    def kernel(self, machine: int) -> tuple[str, dict[str, float]]:
        """The kernel of a machine, and its parameters."""
        return self.kernels[self.places[machine]], {"gamma": float(self.gammas[machine])}

    def coef_of(self, machine: int) -> np.ndarray:
        """The coefficients (m, k) of a machine."""
        return self.coef[self.starts[machine] : self.starts[machine + 1]]

    def support(self, machine: int) -> Inputs:
        """The mapped rows of a machine."""
        inside = slice(self.starts[machine], self.starts[machine + 1])
        rows = self.rows[self.numbers[inside]]
        return self._mapped(machine, rows.astype(self.dtype(machine), copy=False))

    def dtype(self, machine: int) -> np.dtype:
        """The type of kernel values of a machine."""
        least = np.float64 if self.doubles[machine] else np.float32
        return np.promote_types(self.rows.dtype, least)

    def metric(self, machine: int) -> Metric | None:
        """The metric of a machine."""
        number, flat = int(self.metrics[machine]), len(self.diagonals)
        if number < 0:
            return None
        return Metric(self.diagonals[number] if number < flat else self.matrices[number - flat])

    def _mapped(self, machine: int, X: Inputs) -> Inputs:
        metric = self.metric(machine)
        if metric is None:
            return X
        return metric.transform(dense(X).astype(X.dtype) if metric.form == "full" else X)

    def arrays(self) -> dict[str, np.ndarray]:
        leaves = {name: getattr(self, name) for name in OF_LEAVES}
        return rows_arrays("rows", self.rows) | leaves | partition_arrays(self.partition)

    def steps(self) -> told.Steps:
        """The computation steps from a scaled row to its decision values, leaf by leaf."""
        tree, parts, d = self.partition, [], self.rows.shape[1]
        for leaf, offset in enumerate(self.offsets):
            slope = self.slopes[leaf] if len(self.slopes) else np.zeros((d, len(offset)))
            sums = [(told.linear(slope, offset),), *map(self._steps, self.of_leaf(leaf))]
            parts.append(sums[0] if len(sums) == 1 else (told.Sum(tuple(sums)),))
        return (told.Branch(tuple(parts), tree.directions, tree.thresholds, tree.children),)

    def _steps(self, machine: int) -> told.Steps:
        metric, (kernel, params) = self.metric(machine), self.kernel(machine)
        mapped = () if metric is None else metric.steps(self.dtype(machine))
        values = kernels.get_kernel(kernel).steps(dense(self.support(machine)), params)
        return (*mapped, *values, told.linear(self.coef_of(machine)))

    def header(self) -> JsonObject:
        return {"n_inputs": self.rows.shape[1], "n_targets": self.offsets.shape[1]}

    def describe(self) -> dict[str, object]:
        return {"n_features": None, "model_size": len(self.coef), "kernel_params": {}}
