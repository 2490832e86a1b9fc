"""`block`: the kernel made block-diagonal by a random partition of the inputs (Wu et al. 2016, section 5.2).

The paper calls it "independent block approximation", gives it a rank R and says no more. R is read as the rows of a block:
with that, as for the other methods, there are N R kernel values, and a prediction takes R of them, as the authors' times
of prediction grow. A row to be predicted therefore belongs to one block, and the partition must be one of the inputs:
their accuracy on letter at R = 8 is 71.66 percent, and eight rows drawn at random know eight of its 26 classes at most.
`hyperplanes` is that reading: random hyperplanes cut the inputs into blocks, and a row is predicted by the block that it
falls into; with it ours are 73.6 percent on letter at R = 8 and 97.88 on ijcnn1 at R = 1024, as theirs. `uniform` is
the name read to the letter: rows are dealt out at random, a row to be predicted belongs to no block, and its prediction is
the mean over all of them (divide and conquer, Zhang, Duchi and Wainwright 2015), at N kernel values.
"""

import numpy as np
import scipy.sparse as sp

from rfx import env, kernels, parallel
from rfx.errors import DataError, UsageError
from rfx.features.partition import Partition, uniform_blocks
from rfx.methods import weights
from rfx.methods.expansion import OPTIONS, ExpansionMethod
from rfx.methods.options import CHOSEN_LAM, DTYPE, LIBLINEAR, LOSS, MOST, SOLVER, TOL
from rfx.methods.validation import GAMMA_FACTORS, LAMS
from rfx.model import Array, check_within
from rfx.operators.base import default_memory_mb
from rfx.operators.mapped import dense
from rfx.operators.sparse import SparseMatrix
from rfx.options import Option
from rfx.solvers.base import Certificate, Solution, stack
from rfx.solvers.kernel.dense import solve_kernel_dense
from rfx.solvers.published.liblinear import solve_liblinear


class Block(ExpansionMethod):
    """lam/2 ||f||^2 + sum L(f(x), y) within each block of rows, no bias; k(x, y) = 0 for x and y of different blocks.

    self.support holds the rows block after block, block b from self.starts[b] on.
    """

    name = "block"
    summary = "independent blocks: the exact kernel machine within each part of a random partition"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    weighted = True
    options = (
        *OPTIONS,
        DTYPE.but(default="float64"),
        Option(
            "partition",
            str,
            "How rows get into blocks.",
            {
                "hyperplanes": "blocks cut by random hyperplanes, a row predicted by the block that it falls into",
                "uniform": "rows dealt out uniformly, a row predicted by the mean of all blocks",
            },
            default="hyperplanes",
        ),
        Option("block_size", int, "Most rows R of a block.", low=1, high=MOST, default=1000),
        CHOSEN_LAM,
        LOSS,
        SOLVER.but(choices=SOLVER.choices | LIBLINEAR, default=None),
        TOL,
    )
    arrays = ExpansionMethod.arrays | {
        "starts": Array("i", "blocks+1", cuts="vectors"),
        "partition_directions": Array("f", "cuts inputs"),
        "partition_thresholds": Array("f", "cuts"),
        "partition_children": Array("i", "cuts 2"),
    }

    def _fit(self, X, Y):
        self._check_memory(X.shape[0])
        self.kernel_params = self._learn_kernel(X)
        self.partition, blocks = self._timed(self._cut, X)
        if self.params["solver"] == "liblinear":
            solutions = [self._published(X, Y, blocks)]
        else:
            solutions = self._solve(X, Y, blocks)
        coef = np.concatenate([s.coef for s in solutions])
        if self.partition is None:
            coef = coef / len(blocks)
        self.n_blocks = len(blocks)
        ends = np.concatenate([[0], np.cumsum([len(rows) for rows in blocks])])
        used = np.concatenate([[0], np.cumsum(np.any(coef != 0, axis=1))])
        self.starts = used[ends]
        self.intercept = np.zeros(Y.shape[1])
        self._keep_nonzero(X[np.concatenate(blocks)], coef)
        return stack(solutions, self.coef, of="block")

    def _check_memory(self, n_rows):
        need = self._block_mb(min(self.params["block_size"], n_rows))
        if need > self._limit():
            raise UsageError(
                f"--block-size is {self.params['block_size']}, which takes {need:.0f} MiB a block, more than the "
                f"{self._limit():.0f} MiB of --max-memory; choose smaller blocks, or method kernel"
            )

    def _vectors(self, X):
        cuts = -(-X.shape[0] // self.params["block_size"]) - 1 if self.params["partition"] == "hyperplanes" else 0
        return super()._vectors(X) + cuts

    @staticmethod
    def _block_mb(rows) -> float:
        """MiB of a block's kernel matrix and its factor."""
        return 2 * 8 * rows**2 / 2**20

    def _limit(self) -> float:
        return self.params["max_memory"] or default_memory_mb()

    def _cut(self, X):
        p = self.params
        if p["partition"] == "uniform":
            return None, uniform_blocks(X.shape[0], p["block_size"], p["seed"])
        return Partition.fit(dense(X), p["block_size"], p["seed"])

    def _solve(self, X, Y, blocks) -> list[Solution]:
        """A Solution for each block; blocks not begun at the deadline keep f = 0."""
        p = self.params
        rows = kernels.prepare(p["kernel"], X, self.kernel_params, np.float64)
        solutions: list[Solution | None] = [None] * len(blocks)

        def part(start, stop):
            for b in range(start, stop):
                own_weights = weights.part(self.weights, blocks[b])
                targets, loss = weights.targets(Y[blocks[b]], self.loss, own_weights)
                if self._budget().late():
                    value = float(loss.value(np.zeros_like(targets), targets).sum())
                    solutions[b] = Solution(np.zeros_like(targets), value, Certificate("gap", value), 0, "timeout")
                    continue
                own = rows.take(blocks[b])
                K = kernels.block(p["kernel"], own, own, self.kernel_params)
                factors = np.sqrt(own_weights)[:, None] if own_weights is not None and loss.name == "squared" else None
                if factors is not None:
                    K *= factors
                    K *= factors.T
                solutions[b] = solve_kernel_dense(K, targets, self.lam, loss, self._budget())
                if factors is not None:
                    solutions[b].coef = factors * solutions[b].coef

        if len(blocks) == 1 or env.threads() * self._block_mb(max(len(block) for block in blocks)) > self._limit():
            part(0, len(blocks))
            return solutions
        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(blocks))
        return solutions

    def _published(self, X, Y, blocks) -> Solution:
        """LIBLINEAR's Solution of all blocks at once, its coef (n, k) block after block.

        Within a block f = K c. With a root K = L L' that is the linear machine over the rows of L, c such that L'c = w; the roots
        side by side are one CSR matrix.
        """
        # kept, handed over as nodes of 16 bytes and read by the child
        need = sum(44 * len(block) ** 2 for block in blocks) / 2**20
        if need > env.available_memory_mb():
            raise UsageError(
                f"--solver is liblinear, for which the kernel values of all blocks take {need:,.0f} MiB; choose smaller blocks or rfx"
            )
        rows, roots, inverses = kernels.prepare(self.params["kernel"], X, self.kernel_params, np.float64), [], []
        for block in blocks:
            own = rows.take(block)
            values, vectors = np.linalg.eigh(kernels.block(self.params["kernel"], own, own, self.kernel_params))
            used = values > len(block) * np.finfo(float).eps * values[-1]
            roots.append(vectors[:, used] * np.sqrt(values[used]))
            inverses.append(vectors[:, used] / np.sqrt(values[used]))
        Z, more = SparseMatrix(sp.block_diag(roots, format="csr"), np.float64), {"seed": self.params["seed"]}
        solution = self._each_output(
            Y[np.concatenate(blocks)], lambda y, tell: solve_liblinear(Z, y, self.lam, self.loss, self._budget(), callback=tell, **more)
        )
        parts = np.split(np.asarray(solution.coef), np.cumsum([root.shape[1] for root in roots])[:-1])
        solution.coef = np.concatenate([inverse @ w for inverse, w in zip(inverses, parts)])
        return solution

    def _decide(self, X):
        if self.partition is None:
            return super()._decide(X)
        kernel, params = self.params["kernel"], self.kernel_params
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
                    values = kernels.decision(kernel, params, support.take(own), self.coef[own], rows.take(placed[b]))
                    out[placed[b]] = np.asarray(values, np.float64).reshape(len(placed[b]), -1)

        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(placed))
        return out

    def _describe(self):
        return super()._describe() | {"n_blocks": self.n_blocks}

    def _state(self):
        header, arrays = super()._state()
        arrays["starts"] = self.starts
        if self.partition is not None:
            arrays |= {f"partition_{name}": getattr(self.partition, name) for name in ("directions", "thresholds", "children")}
        return header, arrays

    def _restore(self, header, arrays):
        super()._restore(header, arrays)
        self.starts = arrays["starts"]
        self.partition = None
        if self.params["partition"] == "hyperplanes":
            self.partition = Partition(*(arrays[f"partition_{name}"] for name in ("directions", "thresholds", "children")))
            cuts, children = len(self.partition.thresholds), self.partition.children
            if len(self.starts) != cuts + 2:
                raise DataError("it has another number of blocks than its partition")
            check_within("partition_children", children, -cuts - 1, cuts)
            if np.any((children >= 0) & (children <= np.arange(cuts)[:, None])):
                raise DataError("array partition_children goes round in circles")
