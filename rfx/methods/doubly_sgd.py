"""`doubly-sgd`: doubly stochastic gradients (Dai et al. 2014).

Every step uses random rows and new features. f = sum_j coef_j phi_j over features that are
recomputed from (seed, j) when needed; no bias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rfx import steps as told
from rfx.data.stream import Source
from rfx.errors import DataError, UsageError
from rfx.features import MAPS
from rfx.features.growing import PIECE, GrowingMap
from rfx.fitting.linear import FEATURES
from rfx.fitting.options import MOST
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.streaming import Arrays, Batch, DescentMethod, GradientMethod, Setup, StreamMethod
from rfx.model import Array
from rfx.options import option
from rfx.solvers.stochastic.doubly import ROWS, Blocks, DoublySGD
from rfx.solvers.stochastic.gradient import DAMPING, Descent, Steps

KEPT = "rows that repeat and blocks that are always new"


class DoublySgd(DescentMethod):
    """Doubly stochastic gradients."""

    name = "doubly-sgd"
    summary = (
        "doubly stochastic gradients: random rows and new random features in every step, for data"
        " of any size"
    )
    features: str = FEATURES()
    block: int = option(256, "Number of features per step.", least=1, most=MOST)
    max_blocks: int | None = option(
        None,
        "Number of blocks of features, after which a step reuses a random one of them. The"
        " paper's algorithm has no limit; the authors' GPU program has one.",
        least=1,
        most=MOST,
    )
    precondition: bool = GradientMethod.options["precondition"](before=None)
    damping: float = option(
        DAMPING, "Added to the diagonal of that covariance, in addition to nu.", above=0
    )
    averaging: str = GradientMethod.options["averaging"](before=None)
    max_memory: float = option(
        256.0,
        "MiB for data cached between steps: sampled frequencies, and with --max-blocks the features"
        " of rows that are reused. The rest is recomputed from the seed.",
        least=1,
    )
    keep_values: bool = option(
        False,
        "Store f of every row, so that a step computes only the blocks added since the row's"
        " last step. Use it when rows repeat and blocks are always new. Memory grows by one"
        " number per row.",
    )
    arrays = StreamMethod.arrays | {"coef": Array("f", "features outputs")}

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        MAPS[self.kernel].check_variant(self.kernel, self.block, self.features)
        once = self.endless or self.head is not None
        if self.keep_values and (once or self.max_blocks is not None):
            raise UsageError(
                f"--keep-values is for {KEPT}; omit --max-blocks and --head, and use --virtual only"
                " with --virtual-copies"
            )

    def check_further(self) -> None:
        if self.keep_values:
            raise UsageError(f"--keep-values is for {KEPT}, unlike those of partial_fit; omit it")

    def check_source(self, source: Source) -> None:
        if self.keep_values and not source.rewindable:
            raise UsageError(
                f"{source.name} can be read only once, but --keep-values is for {KEPT}; use a file"
            )

    # ------------------------------------------------------------------ training

    def start(self, setup: Setup) -> DoublySGD:
        held, n_rows = self.held_mb(setup), setup.n_rows
        kept = n_rows if self.keep_values else None
        blocks = Blocks(self.block, self.max_blocks, kept, n_rows if held else None)
        return self._solver(setup, self.nu, self.descent, blocks, held)

    def held_mb(self, setup: Setup) -> float:
        """MiB of the features of all rows in all blocks, if caching them pays.

        Rows must be used at least three times; 0 if the features do not fit, and for batches whose
        values of f are summed in another order than from cached features.
        """
        n_rows, samples = setup.n_rows, self.budget_samples
        rounds = samples / n_rows if samples else self.passes(n_rows)
        again = setup.rewindable and not self.head and not self.endless
        if not (self.max_blocks and again and rounds >= 3):
            return 0.0
        if setup.n_outputs == 1 and self.batch > ROWS:
            return 0.0
        needed = n_rows * self.max_blocks * self.block * input_dtype(self).itemsize / 2**20
        return needed if needed <= self.max_memory else 0.0

    def _solver(
        self, setup: Setup, nu: float, descent: Descent, blocks: Blocks, held_mb: float = 0.0
    ) -> DoublySGD:
        growing = GrowingMap(
            self.kernel,
            setup.n_inputs,
            self.seed,
            setup.kernel_params,
            variant=self.features,
            dtype=input_dtype(self),
            piece=self.block * max(1, PIECE // self.block),
            max_memory_mb=self.max_memory - held_mb,
        )
        return DoublySGD(growing, setup.n_outputs, setup.loss, nu, descent, blocks, self.seed)

    def finished(
        self, solver: Any, batches: Callable[[], Iterator[Batch]], n_counted: float
    ) -> dict[str, Any]:
        solver.expansion.held = None
        return {}

    def follow(self, solver: Any, X: Any) -> Callable[[], np.ndarray]:
        if self.averaging != "none":
            return super().follow(solver, X)
        values: Callable[[], np.ndarray] = solver.expansion.follow(X)
        return values

    # ------------------------------------------------------------------ models

    def parameters(self, solver: Any) -> Arrays:
        return {"coef": solver.expansion.coefficients.predicting}

    def describe(self, solver: Any) -> dict[str, Any]:
        count = solver.expansion.n_features
        return {"n_features": count, "model_size": count, "step": self.step}

    def predictor(
        self, header: dict[str, Any], arrays: Arrays, setup: Setup
    ) -> Callable[[Any], np.ndarray]:
        return self._restored(arrays, setup).predictions

    def _restored(self, arrays: Arrays, setup: Setup) -> DoublySGD:
        coef = np.asarray(arrays["coef"], np.float64)
        if len(coef) % self.block:
            raise DataError(f"its {len(coef)} coefficients are not of blocks of {self.block}")
        solver = self._solver(setup, 0.0, Descent(Steps("constant")), Blocks(self.block))
        scales = np.array([1.0, 0.0, 0.0])
        solver.expansion.coefficients.restore({"coef": coef, "scales": scales})
        return solver

    def steps(self, header: dict[str, Any], arrays: Arrays, setup: Setup) -> told.Steps:
        coef = arrays["coef"]
        if not len(coef):
            return told.constant(setup.n_inputs, np.zeros(setup.n_outputs))
        growing = self._restored(arrays, setup).expansion.map
        return *growing.sampled(0, len(coef)).steps(), told.linear(coef)
