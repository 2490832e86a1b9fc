"""Doubly stochastic gradients, `doubly-sgd` (Dai et al. 2014), and its baselines: three kinds of
functions, learnt by three kinds of steps.

| | gradient step | Pegasos | dual coordinate ascent |
|---|---|---|---|
| rows, with the exact kernel | norma | | k-sdca |
| landmarks (Nystrom features) | | n-pegasos | n-sdca |
| random features | | r-pegasos | r-sdca |

Every step of doubly-sgd uses random rows and new features: f = sum_j coef_j phi_j over features
that are recomputed from (seed, j) when needed; no bias. The objective is nu/2 ||f||^2 + E L(f(x),
y).

`mlp` is scikit-learn's multilayer perceptron on the same batches. It replaces the networks compared
with doubly-sgd in Figure 1. f = dense layers of rectified linear units, trained by Adam; --nu is of
nu/2 ||weights||^2, without the intercepts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from rfx import kernels, lazy, losses
from rfx import steps as told
from rfx.data.stream import Source
from rfx.errors import DataError, UsageError
from rfx.features import MAPS, FeatureMap, form_of, sample
from rfx.features.base import PIECE, GrowingMap
from rfx.features.nystrom import NystromMap
from rfx.fitting.linear import FEATURES
from rfx.fitting.method import Method, Refusal
from rfx.fitting.options import DTYPE, KERNEL, LOSS, MOST, N_FEATURES, SCALING
from rfx.fitting.problem import input_dtype
from rfx.fitting.stream_methods import (
    Batch,
    DescentMethod,
    GradientMethod,
    OwnSolver,
    Setup,
    StreamMethod,
)
from rfx.model import Array
from rfx.options import Widths, option
from rfx.parallel import one_blas_thread
from rfx.solvers.stochastic.doubly import ROWS, Blocks, DoublySGD
from rfx.solvers.stochastic.gradient import (
    DAMPING,
    Descent,
    Norma,
    Pegasos,
    StepSizeSchedule,
    Support,
)
from rfx.solvers.stochastic.sdca import DualSolver, KernelSDCA, LinearSDCA
from rfx.types import Arrays, Inputs, JsonObject, KernelParams

# What the arrays of a model file define: the decision values of rows, and the steps to them.
Restored: TypeAlias = tuple[Callable[[Inputs], np.ndarray], Callable[[], told.Steps]]

# ---------------------------------------------------------------------- kinds of functions


class ExactKernel(StreamMethod):
    """f = sum_i coef_i k(x_i, .): the model consists of rows and their coefficients."""

    kernel: str = KERNEL(
        choices=lambda: [
            name for name, own in kernels.KERNELS.items() if own.metric and not own.needs_rows
        ]
    )
    arrays = StreamMethod.arrays | {
        "coef": Array("f", "vectors outputs"),
        "support": Array("f", "vectors prepared"),
    }

    def support(self, params: KernelParams, rows: Inputs = None) -> Support:
        """The rows with the kernel's parameters."""
        return Support(self.kernel, params, input_dtype(self), rows)

    def function(self, header: JsonObject, arrays: Arrays, setup: Setup) -> Restored:
        coef = arrays["coef"]
        rows = arrays["support"]
        params = setup.kernel_params
        kernel = kernels.get_kernel(self.kernel)

        def steps() -> told.Steps:
            return *kernel.steps(rows, params), told.linear(coef)

        return partial(self.support(params, rows).values, coef=coef), steps


class Rows(ExactKernel):
    """The rows are those of the training that have a coefficient."""

    def draw(self, setup: Setup) -> Support:
        return self.support(setup.kernel_params)

    def parameters(self, solver: OwnSolver) -> Arrays:
        return {"support": solver.support.rows, "coef": solver.coef}

    def describe(self, solver: OwnSolver) -> dict[str, object]:
        return {"n_features": None, "model_size": solver.support.n_rows}


class Landmarks(ExactKernel):
    """f = w.z(x) with the Nystrom features z of landmarks drawn from the rows.

    Predictions, like the model file, have the landmarks' coefficients: rank kernel values per row,
    without rank^2 operations for z(x). The results row reports the seconds for computing the
    features separately.
    """

    n_features: int = option(1000, "Number D of landmarks.", least=1, most=MOST)

    def n_landmarks(self) -> int:
        return self.n_features

    def draw(self, setup: Setup) -> Features:
        start = time.perf_counter()
        landmarks = np.asarray(setup.sample[: self.n_features], np.float64)
        feature_map = NystromMap(self.kernel, landmarks, setup.kernel_params, input_dtype(self))
        return Features(feature_map, seconds=time.perf_counter() - start)

    def support(self, params: KernelParams, rows: Inputs = None) -> Support:
        # coefficients of nearly dependent landmarks cancel: use float64
        return Support(self.kernel, params, np.float64, rows)

    def predict(self, solver: OwnSolver, X: Inputs) -> np.ndarray:
        feature_map = solver.features.map
        support = self.support(feature_map.params, feature_map.landmarks)
        return support.values(X, feature_map.fold(solver.w))

    def parameters(self, solver: OwnSolver) -> Arrays:
        feature_map = solver.features.map
        return {"support": feature_map.landmarks, "coef": feature_map.fold(solver.w)}

    def training_bytes(self, solver: OwnSolver) -> int | None:
        stored = super().training_bytes(solver)
        feature_map = solver.features.map
        return stored and stored + feature_map.landmarks.nbytes + feature_map.factor.nbytes

    def describe(self, solver: OwnSolver) -> dict[str, object]:
        rank = solver.features.n_features
        return {
            "n_features": self.n_features,
            "model_size": rank,
            "rank": rank,
            "seconds_nystrom": solver.features.seconds,
        }


class RandomFeatures(StreamMethod):
    """f = w.z(x) with z the D random features of a map, divided by the square root of D."""

    n_features: int = N_FEATURES()
    features: str = FEATURES()
    arrays = StreamMethod.arrays | {"coef": Array("f", "features outputs")}

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        MAPS[self.kernel].check_variant(self.kernel, self.n_features, self.features)
        return super().refusals(given)

    def draw(self, setup: Setup) -> Features:
        feature_map = sample(
            self.kernel,
            setup.n_inputs,
            self.n_features,
            self.seed,
            dtype=input_dtype(self),
            variant=self.features,
            **setup.kernel_params,
        )
        return Features(feature_map, 1 / math.sqrt(feature_map.n_features))

    def parameters(self, solver: OwnSolver) -> Arrays:
        of_map = {f"map_{name}": values for name, values in solver.features.map.arrays.items()}
        return {"coef": solver.w} | of_map

    def header(self, solver: OwnSolver) -> JsonObject:
        return {"map": solver.features.map.header()}

    def training_bytes(self, solver: OwnSolver) -> int | None:
        stored = super().training_bytes(solver)
        arrays = solver.features.map.arrays.values()
        return stored and stored + sum(values.nbytes for values in arrays)

    def describe(self, solver: OwnSolver) -> dict[str, object]:
        return {"n_features": solver.features.n_features, "model_size": len(solver.w)}

    def saved_arrays(self, header: JsonObject) -> dict[str, Array]:
        # the map's inputs are the prepared rows, which principal components reduce
        return self.arrays | {
            f"map_{name}": Array(part.kind, part.axes.replace("inputs", "prepared"))
            for name, part in form_of(header["map"]).saved_arrays().items()
        }

    def function(self, header: JsonObject, arrays: Arrays, setup: Setup) -> Restored:
        parts = {name[4:]: values for name, values in arrays.items() if name.startswith("map_")}
        feature_map = FeatureMap.from_header(header["map"], parts)
        coef = arrays["coef"]
        root = math.sqrt(feature_map.n_features)

        def steps() -> told.Steps:
            return *feature_map.steps(), told.linear(np.asarray(coef, np.float64) / root)

        return partial(_weighted, Features(feature_map, 1 / root), coef), steps


class Features:
    """Prepared rows -> features of a map, times a scale; seconds: for computing the map."""

    def __init__(
        self, feature_map: FeatureMap | NystromMap, scale: float = 1.0, seconds: float = 0.0
    ) -> None:
        self.map, self.scale, self.seconds = feature_map, scale, seconds
        self.n_features: int = feature_map.n_features

    def __call__(self, X: Inputs) -> np.ndarray:
        Z: np.ndarray = self.map.transform(X)
        if self.scale != 1.0:
            Z *= Z.dtype.type(self.scale)
        return Z


def _weighted(features: Features, w: np.ndarray, X: Inputs) -> np.ndarray:
    """(n, outputs) float64 values of w.z(x)."""
    return np.asarray(features(X) @ w, np.float64)


# ---------------------------------------------------------------------- kinds of steps


class PegasosSteps(GradientMethod):
    """Steps 1 / (nu t) (Shalev-Shwartz, Singer and Srebro 2007)."""

    project: bool = option(
        False,
        "Project onto the ball of radius 1/sqrt(nu), which contains the minimum of the hinge loss.",
    )

    def start(self, setup: Setup) -> Pegasos:
        features = self.draw(setup)
        return Pegasos(
            features,
            features.n_features,
            setup.n_outputs,
            setup.loss,
            self.nu,
            self.project,
            precondition=self.precondition,
            averaging=self.averaging,
        )


class DualAscent(StreamMethod):
    """Dual coordinate ascent (Shalev-Shwartz and Zhang 2013): one variable per row, each maximised
    exactly in turn. So the number of rows is finite and known beforehand.

    With --gap the results row has the un-normalised objective P and the gap P - D at the end.
    """

    gap: bool = option(
        False, "Compute the duality gap at the end, with one more pass over the rows."
    )
    sweeps: int = option(
        200,
        "Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables"
        " converge.",
        least=1,
        most=MOST,
        before=1,
    )
    incremental = False
    default_losses = Method.default_losses

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        return [
            *super().refusals(given),
            (
                self.loss == "softmax",
                f"--loss is softmax, which method {self.name} does not support; omit it",
            ),
            (
                self.endless,
                f"--virtual is endless, but method {self.name} stores a number per row; set"
                " --virtual-copies",
            ),
            (
                self.replace,
                f"--replace may draw a row twice in one step, which method {self.name} does not"
                " support; omit it",
            ),
        ]

    def check_stream(self, source: Source) -> None:
        if not source.rewindable or self.head is not None or self.class_weight is not None:
            raise UsageError(
                f"method {self.name} needs all rows beforehand; use a file, without --head and"
                " --class-weight"
            )
        super().check_stream(source)

    def start(self, setup: Setup) -> DualSolver:
        drawn = self.draw(setup)
        sizes = setup.n_outputs, setup.n_rows
        more = setup.loss, self.nu, setup.weights, self.sweeps
        if isinstance(drawn, Support):
            return KernelSDCA(drawn, *sizes, *more)
        return LinearSDCA(drawn, drawn.n_features, *sizes, *more)

    def finished(
        self, solver: OwnSolver, batches: Callable[[], Iterator[Batch]], n_counted: float
    ) -> dict[str, object]:
        if not self.gap:
            return {}
        primal, dual = solver.bounds(batches())
        # at the optimum, rounding decides the sign of the remainder
        gap = max(0.0, primal - dual)
        return {"objective": n_counted * primal, "gap": n_counted * gap}


# ---------------------------------------------------------------------- methods

# Steps on explicit features cost as much for more rows.
LARGE_BATCH = StreamMethod.options["batch"].replace(default=4096)


class NormaMethod(Rows, DescentMethod):
    """Stochastic gradients with the exact kernel (Kivinen, Smola and Williamson 2004)."""

    name = "norma"
    summary = (
        "stochastic gradients with the exact kernel, storing the rows: doubly-sgd without random"
        " features"
    )

    def passes(self, n_rows: int | None) -> int:
        """One by default: it would store a row once per epoch."""
        return self.epochs or 1

    def start(self, setup: Setup) -> Norma:
        return Norma(self.draw(setup), setup.n_outputs, setup.loss, self.nu, self.descent)

    def describe(self, solver: OwnSolver) -> dict[str, object]:
        return super().describe(solver) | {"step": self.step}


class KSdca(Rows, DualAscent):
    """Dual coordinate ascent with the exact kernel."""

    name = "k-sdca"
    summary = "dual coordinate ascent with the exact kernel, storing the rows"


class NPegasos(Landmarks, PegasosSteps):
    """Pegasos on Nystrom features."""

    name = "n-pegasos"
    summary = "Pegasos on Nystrom features"
    batch: int = LARGE_BATCH()


class RPegasos(RandomFeatures, PegasosSteps):
    """Pegasos on random features."""

    name = "r-pegasos"
    summary = "Pegasos on random features"
    batch: int = LARGE_BATCH()


class NSdca(Landmarks, DualAscent):
    """Dual coordinate ascent on Nystrom features."""

    name = "n-sdca"
    summary = "dual coordinate ascent on Nystrom features"
    batch: int = LARGE_BATCH()


class RSdca(RandomFeatures, DualAscent):
    """Dual coordinate ascent on random features."""

    name = "r-sdca"
    summary = "dual coordinate ascent on random features"
    batch: int = LARGE_BATCH()


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

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        MAPS[self.kernel].check_variant(self.kernel, self.block, self.features)
        once = self.endless or self.head is not None
        return [
            *super().refusals(given),
            (
                self.keep_values and (once or self.max_blocks is not None),
                "--keep-values is for rows that repeat and blocks that are always new; omit"
                " --max-blocks and --head, and use --virtual only with --virtual-copies",
            ),
        ]

    # ------------------------------------------------------------------ training

    def start(self, setup: Setup) -> DoublySGD:
        held = self.held_mb(setup)
        n_rows = setup.n_rows
        kept = n_rows if self.keep_values and setup.rewindable else None
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
        itemsize = input_dtype(self).itemsize
        needed = n_rows * self.max_blocks * self.block * itemsize / 2**20
        return needed if needed <= self.max_memory else 0.0

    def _solver(
        self, setup: Setup, nu: float, descent: Descent, blocks: Blocks, held_mb: float = 0.0
    ) -> DoublySGD:
        piece = self.block * max(1, PIECE // self.block)
        free_mb = self.max_memory - held_mb
        growing = GrowingMap(
            self.kernel,
            setup.n_inputs,
            self.seed,
            setup.kernel_params,
            variant=self.features,
            dtype=input_dtype(self),
            piece=piece,
            max_memory_mb=free_mb,
        )
        return DoublySGD(growing, setup.n_outputs, setup.loss, nu, descent, blocks, self.seed)

    def finished(
        self, solver: OwnSolver, batches: Callable[[], Iterator[Batch]], n_counted: float
    ) -> dict[str, object]:
        solver.expansion.held = None
        return {}

    # ------------------------------------------------------------------ models

    def parameters(self, solver: OwnSolver) -> Arrays:
        return {"coef": solver.expansion.coefficients.predicting}

    def describe(self, solver: OwnSolver) -> dict[str, object]:
        count = solver.expansion.n_features
        return {"n_features": count, "model_size": count, "step": self.step}

    def function(self, header: JsonObject, arrays: Arrays, setup: Setup) -> Restored:
        coef = np.asarray(arrays["coef"], np.float64)
        if len(coef) % self.block:
            raise DataError(f"its {len(coef)} coefficients are not of blocks of {self.block}")
        constant = Descent(StepSizeSchedule("constant"))
        solver = self._solver(setup, 0.0, constant, Blocks(self.block))
        scales = np.array([1.0, 0.0, 0.0])
        solver.expansion.coefficients.restore({"coef": coef, "scales": scales})
        growing = solver.expansion.map

        def steps() -> told.Steps:
            features = growing.sampled(0, len(coef))
            return *features.steps(), told.linear(coef)

        return solver.predictions, steps


# ---------------------------------------------------------------------- the network


class Network:
    """MLPClassifier or MLPRegressor, one partial_fit per step; f is the output of the last layer,
    before any sigmoid or softmax.

    layers: widths of the hidden layers. loss: squared, logistic or softmax, of rfx.losses, for
    n_outputs predictions per row. nu: of nu/2 ||weights||^2 in addition to the mean loss. rate:
    Adam's step. The last, shorter batch of an epoch is a full step here. unit_deviation: the
    network learns targets divided by their deviation in the first batch, per output; f is still in
    the targets' unit, and nu refers to the scaled loss.
    """

    def __init__(
        self,
        layers: Sequence[int],
        n_outputs: int,
        loss: losses.Loss,
        nu: float,
        rate: float,
        seed: int,
        *,
        unit_deviation: bool = False,
    ) -> None:
        networks = lazy.neural_network
        self.kind = networks.MLPRegressor if loss.name == "squared" else networks.MLPClassifier
        self.model = self.kind(
            hidden_layer_sizes=layers,
            learning_rate_init=rate,
            shuffle=False,
            random_state=seed % 2**32,
        )
        self.loss = loss
        self.nu = nu
        self.n_outputs = n_outputs
        self.t = 0
        self.unit_deviation = unit_deviation
        self.scale = np.ones(n_outputs)

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(weights (inputs, outputs), intercepts (outputs,)) of each layer, from the inputs on."""
        if not self.t:
            return []
        *hidden, (weights, intercepts) = zip(self.model.coefs_, self.model.intercepts_)
        return [*hidden, (weights * self.scale, intercepts * self.scale)]

    def step(
        self,
        X: Inputs,
        Y: np.ndarray,
        index: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> float:
        """One step of Adam on the rows X (n, d) and encoded targets Y (n, n_outputs), without
        weights; returns the batch's mean loss before it.

        Losses of several outputs of the squared loss are summed.
        """
        # scikit-learn adds alpha/2 ||weights||^2 / n
        self.model.set_params(batch_size=len(Y), alpha=self.nu * len(Y))
        # its small products take longer with several threads, which wait for each other
        with one_blas_thread():
            losses_of_rows = self.loss.value(self.predictions(X), Y)
            loss = float(losses_of_rows.sum() / len(Y))
            if self.loss.name == "squared":
                if self.unit_deviation and not self.t:
                    found = Y.std(axis=0)
                    self.scale = np.where(found > 0, found, 1.0)
                Y = Y / self.scale
                self.model.partial_fit(X, Y if self.n_outputs > 1 else Y[:, 0])
            else:
                several = self.n_outputs > 1
                labels = Y.argmax(axis=1) if several else (Y[:, 0] > 0).astype(int)
                classes = np.arange(max(2, self.n_outputs))
                self.model.partial_fit(X, labels, classes=classes)
        self.t += 1
        return loss

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of f."""
        if not self.t:
            return np.zeros((X.shape[0], self.n_outputs))
        return forward(self.layers, X)


def forward(layers: Sequence[tuple[np.ndarray, np.ndarray]], X: Inputs) -> np.ndarray:
    """(n, outputs) float64: the output of dense layers of rectified linear units, the last one
    linear, for the rows X (n, d).
    """
    for number, (weights, intercepts) in enumerate(layers):
        if number:
            X = np.maximum(X, 0)
        X = X @ weights + intercepts
    return np.asarray(X, np.float64)


class Mlp(StreamMethod, without=("kernel", "gamma", "epsilon", "class_weight")):
    """A network of dense layers."""

    name = "mlp"
    summary = (
        "scikit-learn's network of dense layers, trained by Adam on the same batches: the baseline"
        " for doubly-sgd"
    )
    loss: str | None = LOSS(
        help=(
            "The loss; by default squared for regression, logistic for two classes, softmax for"
            " more."
        ),
        choices=("squared", "logistic", "softmax"),
    )
    nu: float = StreamMethod.options["nu"](choices=(), default=1e-6)
    batch: int = StreamMethod.options["batch"](default=64)
    scaling: str = SCALING(default="standard")
    layers: str = option("100", "Widths of the hidden layers, starting at the inputs.", kind=Widths)
    rate: float = option(3e-3, "Adam's step.", above=0)
    # In float32 the squares of small gradients are denormal numbers, which make a step ten times
    # slower.
    dtype: str = DTYPE(default="float64")
    arrays = StreamMethod.arrays | {"parameters": Array("f", "parameters")}
    default_losses = StreamMethod.default_losses | {"binary": "logistic"}
    space = replace(StreamMethod.space, values={})
    incremental = several_targets = resumable = False

    def kernel_params(self, X: Inputs) -> KernelParams:
        return {}

    def loss_for(self, task: str) -> losses.Loss:
        loss = super().loss_for(task)
        if task == "multiclass" and loss.name == "logistic":
            raise UsageError("--loss is logistic, but there are several classes; choose softmax")
        return loss

    def start(self, setup: Setup) -> Network:
        widths = Widths.values(self.layers)
        is_unscaled = setup.task == "regression" and self.target_scaling in (None, "mean")
        machine = widths, setup.n_outputs, setup.loss, self.nu, self.rate, self.seed
        return Network(*machine, unit_deviation=is_unscaled)

    def training_bytes(self, solver: OwnSolver) -> None:
        """None: scikit-learn does not give Adam's state."""

    def parameters(self, solver: OwnSolver) -> Arrays:
        layers = [np.append(weights, intercepts) for weights, intercepts in solver.layers]
        return {"parameters": np.concatenate(layers)}

    def describe(self, solver: OwnSolver) -> dict[str, object]:
        size = sum(weights.size + intercepts.size for weights, intercepts in solver.layers)
        return {"n_features": None, "model_size": size}

    def function(self, header: JsonObject, arrays: Arrays, setup: Setup) -> Restored:
        sizes = [setup.n_inputs, *Widths.values(self.layers), setup.n_outputs]
        parameters = arrays["parameters"]
        layers = []
        start = 0
        for shape in zip(sizes, sizes[1:]):
            end = start + math.prod(shape)
            weights = parameters[start:end].reshape(shape)
            start = end + shape[1]
            layers.append((weights, parameters[end:start]))

        def steps() -> told.Steps:
            first, *others = (told.linear(*layer) for layer in layers)
            ramp = told.Function("ramp")
            between = (step for linear in others for step in (ramp, linear))
            return first, *between

        return partial(forward, layers), steps
