"""`block`: the kernel made block-diagonal by a random partition of the inputs (Wu et al. 2016,
section 5.2).

The paper calls it "independent block approximation" and gives it a rank R, without details. R is
interpreted as the number of rows per block: then, as for the other methods, there are N R kernel
values, and a prediction needs R of them, consistent with the authors' prediction times. A new row
therefore belongs to one block, and the partition must be one of the inputs: their accuracy on
letter at R = 8 is 71.66 percent, while eight random rows contain at most eight of its 26 classes.
`hyperplanes` is that interpretation: random hyperplanes cut the inputs into blocks, and the block
that contains a row predicts it; ours are 73.6 percent on letter at R = 8 and 97.88 on ijcnn1 at R =
1024, like theirs. `uniform` is the literal interpretation: rows are assigned at random, a new row
belongs to no block, and its prediction is the mean over all blocks (divide and conquer, Zhang,
Duchi and Wainwright 2015), with N kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import env, kernels, parallel
from rfx import steps as told
from rfx.errors import DataError, UsageError
from rfx.features.partition import Partition, uniform_blocks
from rfx.fitting import weights
from rfx.fitting.expansion import ExpansionMethod, ExpansionModel
from rfx.fitting.method import Fitted, budget, each_output
from rfx.fitting.options import CHOSEN_LAM, CLASS_WEIGHT, DTYPE, LIBLINEAR, MOST, SOLVER, TOL
from rfx.fitting.problem import Cache, Clock, Problem
from rfx.model import Array, check_within
from rfx.operators.blocks import default_memory_mb
from rfx.operators.mapped import dense
from rfx.operators.sparse import SparseMatrix
from rfx.options import Chosen, option
from rfx.solvers.base import Certificate, Solution, stack
from rfx.solvers.kernel.dense import solve_kernel_dense
from rfx.solvers.published.liblinear import solve_liblinear

# The arrays of a partition in a model file.
PARTITION = {
    "partition_directions": Array("f", "cuts inputs"),
    "partition_thresholds": Array("f", "cuts"),
    "partition_children": Array("i", "cuts 2"),
}


def partition_arrays(partition: Partition) -> dict[str, np.ndarray]:
    """The arrays of PARTITION."""
    return {name: getattr(partition, name.partition("_")[2]) for name in PARTITION}


def restored_partition(arrays: dict[str, np.ndarray], n_blocks: int) -> Partition:
    """The partition of a model file's arrays; DataError if they are not one of so many blocks."""
    partition = Partition(*(arrays[name] for name in PARTITION))
    cuts, children = len(partition.thresholds), partition.children
    if n_blocks != cuts + 1:
        raise DataError("its tree has another number of leaves than its model")
    check_within("partition_children", children, -cuts - 1, cuts)
    if np.any((children >= 0) & (children <= np.arange(cuts)[:, None])):
        raise DataError("array partition_children contains a cycle")
    return partition


class Block(ExpansionMethod):
    """lam/2 ||f||^2 + sum L(f(x), y) in each block of rows, no bias; k = 0 between blocks."""

    name = "block"
    accelerated = True
    summary = "independent blocks: the exact kernel machine within each part of a random partition"
    dtype: str = DTYPE(default="float64")
    partition: str = option(
        "hyperplanes",
        "How rows are assigned to blocks.",
        of={
            "hyperplanes": (
                "blocks cut by random hyperplanes; the block that contains a row predicts it"
            ),
            "uniform": "rows assigned uniformly at random; the mean of all blocks predicts a row",
        },
    )
    block_size: int = option(1000, "Maximum number R of rows per block.", least=1, most=MOST)
    lam: float | Chosen = CHOSEN_LAM()
    solver: str | None = SOLVER.adding(LIBLINEAR)(default=None)
    tol: float | None = TOL()
    class_weight: str | None = CLASS_WEIGHT()
    arrays = ExpansionMethod.arrays | {"starts": Array("i", "blocks+1", cuts="vectors")} | PARTITION

    def vectors(self, X: Any) -> int:
        blocks = -(-X.shape[0] // self.block_size)
        cuts = blocks - 1 if self.partition == "hyperplanes" else 0
        return super().vectors(X) + cuts

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        need, limit = _block_mb(min(self.block_size, problem.n_rows)), _limit(self)
        if need > limit:
            raise UsageError(
                f"--block-size is {self.block_size}, which needs {need:.0f} MiB per block, more"
                f" than --max-memory of {limit:.0f} MiB; use smaller blocks, or method kernel"
            )
        clock, params = Clock(), self.kernel_params(problem.X)
        partition, blocks = clock.timed("features", _cut, problem.X, self)
        solve = _published if self.solver == "liblinear" else _solved
        solutions = solve(problem, params, blocks, self)
        coef = np.concatenate([s.coef for s in solutions])
        if partition is None:
            coef = coef / len(blocks)
        ends = np.cumsum([0] + [len(rows) for rows in blocks])
        used = np.concatenate([[0], np.cumsum(np.any(coef != 0, axis=1))])
        rows, intercept = problem.X[np.concatenate(blocks)], np.zeros(problem.n_outputs)
        expansion = ExpansionModel.of(self.kernel, params, rows, coef, intercept)
        model = BlockModel(**vars(expansion), starts=used[ends], partition=partition)
        whole = stack(solutions, model.coef, of="block")
        return Fitted(model, whole, {"n_blocks": len(blocks)}, clock.seconds)

    def restore(self, header, arrays) -> BlockModel:
        partition, starts = None, arrays["starts"]
        if self.partition == "hyperplanes":
            partition = restored_partition(arrays, len(starts) - 1)
        expansion = ExpansionModel.restored(header, arrays, self)
        return BlockModel(**vars(expansion), starts=starts, partition=partition)


@dataclass(frozen=True)
class BlockModel(ExpansionModel):
    """An expansion whose support is stored block by block, block b from starts[b] on.

    partition is None if the mean of all blocks predicts a row.
    """

    starts: np.ndarray = None  # type: ignore[assignment]
    partition: Partition | None = None

    def decision(self, X: Any) -> np.ndarray:
        if self.partition is None:
            return super().decision(X)
        kernel, params = self.kernel, self.params
        placed = self.partition.place(dense(X))
        out = np.zeros((X.shape[0], len(self.intercept)))
        if not len(self.coef):
            return out
        support = kernels.prepare(kernel, self.support, params, np.float64)
        rows = kernels.prepare(kernel, X, params, like=support)

        def part(start, stop):
            for b in range(start, stop):
                inside = slice(self.starts[b], self.starts[b + 1])
                if len(placed[b]) and inside.stop > inside.start:
                    block, taken = support.take(inside), rows.take(placed[b])
                    values = kernels.decision(kernel, params, block, self.coef[inside], taken)
                    out[placed[b]] = np.asarray(values, np.float64).reshape(len(placed[b]), -1)

        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(placed))
        return out

    def kernel_steps(self) -> told.Steps:
        """The kernel values of the row's own block, and zeros for all others."""
        if self.partition is None:
            return super().kernel_steps()
        blocks = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        inside = (*self.partition.steps(), told.Select(blocks))
        return (told.Product((super().kernel_steps(), inside)),)

    def arrays(self) -> dict[str, np.ndarray]:
        tree = {} if self.partition is None else partition_arrays(self.partition)
        return super().arrays() | {"starts": self.starts} | tree


def _block_mb(rows: int) -> float:
    """MiB of a block's kernel matrix and its factor."""
    return 2 * 8 * rows**2 / 2**20


def _limit(method: Block) -> float:
    return method.max_memory or default_memory_mb()


def _cut(X: Any, method: Block) -> tuple[Partition | None, list[np.ndarray]]:
    """The partition, None for a uniform one, and the row numbers of each block."""
    if method.partition == "uniform":
        return None, uniform_blocks(X.shape[0], method.block_size, method.seed)
    return Partition.fit(dense(X), method.block_size, method.seed)


def _solved(
    problem: Problem, params: dict, blocks: list[np.ndarray], method: Block
) -> list[Solution]:
    """A Solution for each block; blocks not started at the deadline keep f = 0."""
    kernel, limits = method.kernel, budget(problem, method)
    rows = kernels.prepare(kernel, problem.X, params, np.float64)
    solutions: list[Any] = [None] * len(blocks)

    def part(start, stop):
        for b in range(start, stop):
            block_weights = weights.part(problem.weights, blocks[b])
            Y, loss = weights.targets(problem.Y[blocks[b]], problem.loss, block_weights)
            if limits.late():
                value = float(loss.value(np.zeros_like(Y), Y).sum())
                nothing = Certificate("gap", value)
                solutions[b] = Solution(np.zeros_like(Y), value, nothing, 0, "timeout")
                continue
            block = rows.take(blocks[b])
            roots = np.ones(len(Y))
            if block_weights is not None and loss.name == "squared":
                roots = np.sqrt(block_weights)
            placed = block.on_device() if loss.name == "squared" else None
            if placed is None:
                K: Any = kernels.block(kernel, block, block, params)
                K *= roots[:, None]
                K *= roots
            else:
                K = placed.values(placed.rows, factors=roots)
            solutions[b] = solve_kernel_dense(K, Y, method.lam, loss, limits)
            solutions[b].coef = roots[:, None] * solutions[b].coef

    largest = max(len(block) for block in blocks)
    if len(blocks) == 1 or env.threads() * _block_mb(largest) > _limit(method):
        part(0, len(blocks))
    else:
        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(blocks))
    return solutions


def _published(
    problem: Problem, params: dict, blocks: list[np.ndarray], method: Block
) -> list[Solution]:
    """LIBLINEAR's Solution of all blocks at once, its coef (n, k) block by block.

    Within a block f = K c. With a factor K = L L' that is the linear machine over the rows of L,
    with c such that L'c = w; the factors together are one CSR matrix.
    """
    # stored, passed as nodes of 16 bytes, and read by the child
    need = sum(44 * len(block) ** 2 for block in blocks) / 2**20
    if need > env.available_memory_mb():
        raise UsageError(
            f"--solver is liblinear, for which the kernel values of all blocks need {need:,.0f}"
            " MiB; use smaller blocks or --solver rfx"
        )
    kernel, limits = method.kernel, budget(problem, method)
    rows = kernels.prepare(kernel, problem.X, params, np.float64)
    roots, inverses = [], []
    for numbers in blocks:
        block = rows.take(numbers)
        values, vectors = np.linalg.eigh(kernels.block(kernel, block, block, params))
        used = values > len(numbers) * np.finfo(float).eps * values[-1]
        roots.append(vectors[:, used] * np.sqrt(values[used]))
        inverses.append(vectors[:, used] / np.sqrt(values[used]))
    Z = SparseMatrix(sp.block_diag(roots, format="csr"), np.float64)
    solution = each_output(
        problem.Y[np.concatenate(blocks)],
        lambda y, tell: solve_liblinear(
            Z, y, method.lam, problem.loss, limits, callback=tell, seed=method.seed
        ),
    )
    ends = np.cumsum([root.shape[1] for root in roots])[:-1]
    parts = np.split(np.asarray(solution.coef), ends)
    solution.coef = np.concatenate([inverse @ w for inverse, w in zip(inverses, parts)])
    return [solution]
