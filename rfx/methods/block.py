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

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import env, kernels, parallel
from rfx import steps as told
from rfx.errors import DataError, UsageError
from rfx.features.partition import Partition, uniform_blocks
from rfx.fitting import weights
from rfx.fitting.cache import Cache
from rfx.fitting.expansion import ExpansionMethod, ExpansionModel
from rfx.fitting.method import Fitted, Method, budget, each_output, kernel_params
from rfx.fitting.options import CHOSEN_LAM, DTYPE, LIBLINEAR, MOST, SOLVER, TOL
from rfx.fitting.problem import Clock, Problem
from rfx.fitting.validation import GAMMA_FACTORS, LAMS
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.model import Array, check_within
from rfx.operators.blocks import default_memory_mb
from rfx.operators.mapped import dense
from rfx.operators.sparse import SparseMatrix
from rfx.options import Chosen, option
from rfx.solvers.base import Certificate, Solution, stack
from rfx.solvers.kernel.dense import solve_kernel_dense
from rfx.solvers.published.liblinear import solve_liblinear

PARTITION = ("directions", "thresholds", "children")


class Block(ExpansionMethod):
    """lam/2 ||f||^2 + sum L(f(x), y) in each block of rows, no bias; k = 0 between blocks."""

    name = "block"
    summary = "independent blocks: the exact kernel machine within each part of a random partition"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
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
    arrays = ExpansionMethod.arrays | {
        "starts": Array("i", "blocks+1", cuts="vectors"),
        "partition_directions": Array("f", "cuts inputs"),
        "partition_thresholds": Array("f", "cuts"),
        "partition_children": Array("i", "cuts 2"),
    }

    def vectors(self, X: Any) -> int:
        blocks = -(-X.shape[0] // self.block_size)
        cuts = blocks - 1 if self.partition == "hyperplanes" else 0
        return super().vectors(X) + cuts

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        _check_memory(problem.n_rows, self)
        clock, params = Clock(), kernel_params(problem, self)
        partition, blocks = clock.timed("features", _cut, problem.X, self)
        if self.solver == "liblinear":
            solutions = [_published(problem, params, blocks, self)]
        else:
            solutions = _solved(problem, params, blocks, self)
        coef = np.concatenate([s.coef for s in solutions])
        if partition is None:
            coef = coef / len(blocks)
        ends = np.concatenate([[0], np.cumsum([len(rows) for rows in blocks])])
        used = np.concatenate([[0], np.cumsum(np.any(coef != 0, axis=1))])
        rows, intercept = problem.X[np.concatenate(blocks)], np.zeros(problem.n_outputs)
        own = ExpansionModel.of(self.kernel, params, rows, coef, intercept)
        model = BlockModel(**vars(own), starts=used[ends], partition=partition)
        whole = stack(solutions, model.coef, of="block")
        return Fitted(model, whole, {"n_blocks": len(blocks)}, clock.seconds)

    def restore(self, header, arrays) -> "BlockModel":
        own = ExpansionModel.restored(header, arrays, self)
        partition, starts = None, arrays["starts"]
        if self.partition == "hyperplanes":
            partition = Partition(*(arrays[f"partition_{name}"] for name in PARTITION))
            cuts, children = len(partition.thresholds), partition.children
            if len(starts) != cuts + 2:
                raise DataError("it has another number of blocks than its partition")
            check_within("partition_children", children, -cuts - 1, cuts)
            if np.any((children >= 0) & (children <= np.arange(cuts)[:, None])):
                raise DataError("array partition_children contains a cycle")
        return BlockModel(**vars(own), starts=starts, partition=partition)


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
                own = slice(self.starts[b], self.starts[b + 1])
                if len(placed[b]) and own.stop > own.start:
                    block, taken = support.take(own), rows.take(placed[b])
                    values = kernels.decision(kernel, params, block, self.coef[own], taken)
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
        found = super().arrays() | {"starts": self.starts}
        if self.partition is None:
            return found
        return found | {f"partition_{name}": getattr(self.partition, name) for name in PARTITION}


def _check_memory(n_rows: int, method: Method) -> None:
    """Raise an error for blocks whose kernel values do not fit into memory."""
    need, limit = _block_mb(min(method.block_size, n_rows)), _limit(method)
    if need > limit:
        raise UsageError(
            f"--block-size is {method.block_size}, which needs {need:.0f} MiB per block, more"
            f" than --max-memory of {limit:.0f} MiB; use smaller blocks, or method kernel"
        )


def _block_mb(rows: int) -> float:
    """MiB of a block's kernel matrix and its factor."""
    return 2 * 8 * rows**2 / 2**20


def _limit(method: Method) -> float:
    return method.max_memory or default_memory_mb()


def _cut(X: Any, method: Method) -> tuple[Partition | None, list[np.ndarray]]:
    """The partition, None for a uniform one, and the row numbers of each block."""
    if method.partition == "uniform":
        return None, uniform_blocks(X.shape[0], method.block_size, method.seed)
    return Partition.fit(dense(X), method.block_size, method.seed)


def _solved(
    problem: Problem, params: dict, blocks: list[np.ndarray], method: Method
) -> list[Solution]:
    """A Solution for each block; blocks not started at the deadline keep f = 0."""
    kernel, limits = method.kernel, budget(problem, method)
    rows = kernels.prepare(kernel, problem.X, params, np.float64)
    solutions: list[Any] = [None] * len(blocks)

    def part(start, stop):
        for b in range(start, stop):
            own_weights = weights.part(problem.weights, blocks[b])
            Y, loss = weights.targets(problem.Y[blocks[b]], problem.loss, own_weights)
            if limits.late():
                value = float(loss.value(np.zeros_like(Y), Y).sum())
                nothing = Certificate("gap", value)
                solutions[b] = Solution(np.zeros_like(Y), value, nothing, 0, "timeout")
                continue
            own = rows.take(blocks[b])
            K = kernels.block(kernel, own, own, params)
            factors = None
            if own_weights is not None and loss.name == "squared":
                factors = np.sqrt(own_weights)[:, None]
                K *= factors
                K *= factors.T
            solutions[b] = solve_kernel_dense(K, Y, method.lam, loss, limits)
            if factors is not None:
                solutions[b].coef = factors * solutions[b].coef

    largest = max(len(block) for block in blocks)
    if len(blocks) == 1 or env.threads() * _block_mb(largest) > _limit(method):
        part(0, len(blocks))
        return solutions
    with parallel.one_blas_thread():
        parallel.for_ranges(part, len(blocks))
    return solutions


def _published(
    problem: Problem, params: dict, blocks: list[np.ndarray], method: Method
) -> Solution:
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
    for block in blocks:
        own = rows.take(block)
        values, vectors = np.linalg.eigh(kernels.block(kernel, own, own, params))
        used = values > len(block) * np.finfo(float).eps * values[-1]
        roots.append(vectors[:, used] * np.sqrt(values[used]))
        inverses.append(vectors[:, used] / np.sqrt(values[used]))
    Z = SparseMatrix(sp.block_diag(roots, format="csr"), np.float64)

    def solve(y, tell):
        return solve_liblinear(
            Z, y, method.lam, problem.loss, limits, callback=tell, seed=method.seed
        )

    solution = each_output(problem.Y[np.concatenate(blocks)], solve)
    ends = np.cumsum([root.shape[1] for root in roots])[:-1]
    parts = np.split(np.asarray(solution.coef), ends)
    solution.coef = np.concatenate([inverse @ w for inverse, w in zip(inverses, parts)])
    return solution
