"""`doubly-sgd`: doubly stochastic gradients (Dai et al. 2014).

Every step uses random rows and new features. f = sum_j coef_j phi_j over features that are
recomputed from (seed, j) when needed; no bias.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rfx import steps as told
from rfx.data.stream import Source
from rfx.errors import DataError, UsageError
from rfx.features import MAPS
from rfx.features.growing import PIECE, GrowingMap
from rfx.fitting import virtual_examples
from rfx.fitting.learned import Learned
from rfx.fitting.method import Method
from rfx.fitting.options import MOST
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.step_sizes import DescentMethod, descent_of
from rfx.fitting.stream_options import (
    AVERAGING,
    FEATURES,
    PRECONDITION,
)
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.streaming import Learner, Restored, StreamMethod
from rfx.model import Array
from rfx.options import Option, option
from rfx.solvers.stochastic.doubly import Blocks, DoublySGD
from rfx.solvers.stochastic.expansion import ROWS
from rfx.solvers.stochastic.steps import DAMPING, Descent, Steps

KEPT = "rows that repeat and blocks that are always new"
MEMORY = Option(
    "max_memory",
    float,
    "MiB for data cached between steps: sampled frequencies, and with --max-blocks the features of"
    " rows that are reused. The rest is recomputed from the seed.",
    low=1,
    default=256.0,
)


class DoublyLearner(Learner):
    """The learner of a growing expansion."""

    def __init__(self, solver: DoublySGD, method: Method) -> None:
        super().__init__(solver)
        self.method = method

    def step(self, X: Any, Y: np.ndarray, index: Any, own: Any) -> float:
        return self.solver.step(X, Y, index, own)

    def parameters(self) -> dict[str, np.ndarray]:
        return {"coef": self.solver.expansion.coef}

    def follow(self, X: Any) -> Callable[[], np.ndarray]:
        if self.method.averaging != "none":
            return super().follow(X)
        return self.solver.expansion.track(X).values

    def describe(self) -> dict[str, Any]:
        count = self.solver.expansion.n_features
        return {"n_features": count, "model_size": count, "step": self.method.step}


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
    precondition: bool = PRECONDITION()
    damping: float = option(
        DAMPING, "Added to the diagonal of that covariance, in addition to nu.", above=0
    )
    averaging: str = AVERAGING()
    max_memory: float = MEMORY()
    keep_values: bool = option(
        False,
        "Store f of every row, so that a step computes only the blocks added since the row's"
        " last step. Use it when rows repeat and blocks are always new. Memory grows by one"
        " number per row.",
    )
    arrays = StreamMethod.arrays | {"coef": Array("f", "features outputs")}

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        s = self
        MAPS[s.kernel].check_variant(s.kernel, s.block, s.features)
        if not s.keep_values:
            return
        if virtual_examples.endless(s):
            raise UsageError(
                f"--virtual is {s.virtual}, which is endless, but --keep-values is for {KEPT}; set"
                " --virtual-copies"
            )
        for name in ("head", "max_blocks"):
            if s.get(name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise UsageError(f"{flag} is {s.get(name)}, but --keep-values is for {KEPT}")

    def check_further(self) -> None:
        if self.keep_values:
            raise UsageError(
                "--keep-values needs a data set that is known beforehand; use fit, or omit it"
            )

    def check_source(self, source: Source) -> None:
        if self.keep_values and not source.rewindable:
            raise UsageError(
                f"{source.name} can be read only once, but --keep-values is for {KEPT}; use a file"
            )

    # ------------------------------------------------------------------ training

    def learner(self, learned: Learned, own: BatchWeights, rewindable: bool) -> Learner:
        s, known, kept = self, None, held_mb(learned, self, rewindable)
        if s.keep_values:
            known, needed = learned.n_rows, 8 * learned.n_rows * (learned.n_outputs + 1) / 2**20
            if needed > s.max_memory:
                raise UsageError(
                    f"--keep-values needs {needed:,.0f} MiB for {known:,} rows, more than"
                    f" --max-memory {s.max_memory:g}"
                )
        solver = DoublySGD(
            _growing(learned.n_prepared, learned.kernel_params, s, kept),
            learned.n_outputs,
            learned.loss,
            s.nu,
            descent_of(s),
            Blocks(s.block, s.max_blocks, known, learned.n_rows if kept else None),
            s.seed,
        )
        return DoublyLearner(solver, s)

    def finished(self, learned, learner, source) -> dict[str, Any]:
        learner.solver.held = None
        return {}

    # ------------------------------------------------------------------ model files

    def predictor(self, header, arrays, known: Restored):
        coef, block = arrays["coef"], self.block
        if len(coef) % block:
            raise DataError(f"its {len(coef)} coefficients are not of blocks of {block}")
        growing = _growing(known.n_prepared, known.kernel_params, self)
        last = Descent(Steps("constant"))
        solver = DoublySGD(growing, known.n_outputs, known.loss, 0.0, last, Blocks(block))
        scales = np.array([1.0, 0.0, 0.0])
        solver.expansion.restore({"coef": np.asarray(coef, np.float64), "scales": scales})
        return solver.predictions

    def steps(self, header, arrays, known: Restored) -> told.Steps:
        coef = arrays["coef"]
        if not len(coef):
            return told.constant(known.n_prepared, np.zeros(known.n_outputs))
        growing = _growing(known.n_prepared, known.kernel_params, self)
        return *growing.sampled(0, len(coef)).steps(), told.linear(coef)


def held_mb(learned: Learned, method: Method, rewindable: bool) -> float:
    """MiB of the features of all rows in all blocks, if caching them pays.

    Rows must be used at least three times; 0 if the features do not fit, and for batches whose
    values of f are summed in another order than from cached features.
    """
    s = method
    rounds = s.budget_samples / learned.n_rows if s.budget_samples else s.passes(learned.n_rows)
    again = rewindable and not s.head and not virtual_examples.endless(s)
    if not (s.max_blocks and again and rounds >= 3):
        return 0.0
    if learned.n_outputs == 1 and s.batch > ROWS:
        return 0.0
    needed = learned.n_rows * s.max_blocks * s.block * input_dtype(s).itemsize / 2**20
    return needed if needed <= s.max_memory else 0.0


def _growing(
    n_inputs: int, kernel_params: dict, method: Method, held_mb: float = 0.0
) -> GrowingMap:
    s = method
    piece = s.block * max(1, PIECE // s.block)
    return GrowingMap(
        s.kernel,
        n_inputs,
        s.seed,
        kernel_params,
        variant=s.features,
        dtype=input_dtype(s),
        piece=piece,
        max_memory_mb=s.max_memory - held_mb,
    )
