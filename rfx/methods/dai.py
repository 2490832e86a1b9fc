"""The baselines of Dai et al. (2014): three kinds of functions, learnt by three kinds of steps.

| | gradient step | Pegasos | dual coordinate ascent |
|---|---|---|---|
| rows, with the exact kernel | norma | | k-sdca |
| landmarks (Nystrom features) | | n-pegasos | n-sdca |
| random features | | r-pegasos | r-sdca |

The objective is nu/2 ||f||^2 + E L(f(x), y).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from rfx import kernels
from rfx import steps as told
from rfx.data.stream import Source
from rfx.errors import UsageError
from rfx.features import MAPS, FeatureMap, form_of, sample
from rfx.features.nystrom import NystromMap
from rfx.fitting.linear import FEATURES
from rfx.fitting.options import KERNEL, MOST, N_FEATURES
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.streaming import (
    Arrays,
    Batch,
    DescentMethod,
    GradientMethod,
    Setup,
    StreamMethod,
)
from rfx.model import Array
from rfx.options import option
from rfx.solvers.stochastic.gradient import Norma, Pegasos, Support
from rfx.solvers.stochastic.sdca import DualSolver, KernelSDCA, LinearSDCA

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

    def support(self, params: dict[str, Any], rows: Any = None) -> Support:
        """The rows with the kernel's parameters."""
        return Support(self.kernel, params, input_dtype(self), rows)

    def predictor(
        self, header: dict[str, Any], arrays: Arrays, setup: Setup
    ) -> Callable[[Any], np.ndarray]:
        support = self.support(setup.kernel_params, arrays["support"])
        return partial(support.values, coef=arrays["coef"])

    def steps(self, header: dict[str, Any], arrays: Arrays, setup: Setup) -> told.Steps:
        if not len(arrays["coef"]):
            return told.constant(setup.n_inputs, np.zeros(setup.n_outputs))
        kernel = kernels.get_kernel(self.kernel)
        return *kernel.steps(arrays["support"], setup.kernel_params), told.linear(arrays["coef"])


class Rows(ExactKernel):
    """The rows are those of the training that have a coefficient."""

    def draw(self, setup: Setup) -> Support:
        return self.support(setup.kernel_params)

    def parameters(self, solver: Any) -> Arrays:
        return {"support": solver.support.rows, "coef": solver.coef}

    def describe(self, solver: Any) -> dict[str, Any]:
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

    def support(self, params: dict[str, Any], rows: Any = None) -> Support:
        # coefficients of nearly dependent landmarks cancel: use float64
        return Support(self.kernel, params, np.float64, rows)

    def predict(self, solver: Any, X: Any) -> np.ndarray:
        m = solver.features.map
        return self.support(m.params, m.landmarks).values(X, m.fold(solver.w))

    def parameters(self, solver: Any) -> Arrays:
        m = solver.features.map
        return {"support": m.landmarks, "coef": m.fold(solver.w)}

    def training_bytes(self, solver: Any) -> int | None:
        stored, m = super().training_bytes(solver), solver.features.map
        return stored and stored + m.landmarks.nbytes + m.factor.nbytes

    def describe(self, solver: Any) -> dict[str, Any]:
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

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        MAPS[self.kernel].check_variant(self.kernel, self.n_features, self.features)

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

    def parameters(self, solver: Any) -> Arrays:
        of_map = {f"map_{name}": values for name, values in solver.features.map.arrays.items()}
        return {"coef": solver.w} | of_map

    def header(self, solver: Any) -> dict[str, Any]:
        return {"map": solver.features.map.header()}

    def training_bytes(self, solver: Any) -> int | None:
        stored, arrays = super().training_bytes(solver), solver.features.map.arrays.values()
        return stored and stored + sum(values.nbytes for values in arrays)

    def describe(self, solver: Any) -> dict[str, Any]:
        return {"n_features": solver.features.n_features, "model_size": len(solver.w)}

    def saved_arrays(self, header: dict[str, Any]) -> dict[str, Array]:
        # the map's inputs are the prepared rows, which principal components reduce
        return self.arrays | {
            f"map_{name}": Array(part.kind, part.axes.replace("inputs", "prepared"))
            for name, part in form_of(header["map"]).saved_arrays().items()
        }

    def predictor(
        self, header: dict[str, Any], arrays: Arrays, setup: Setup
    ) -> Callable[[Any], np.ndarray]:
        m = _saved_map(header, arrays)
        return partial(_weighted, Features(m, 1 / math.sqrt(m.n_features)), arrays["coef"])

    def steps(self, header: dict[str, Any], arrays: Arrays, setup: Setup) -> told.Steps:
        m = _saved_map(header, arrays)
        coef = np.asarray(arrays["coef"], np.float64) / math.sqrt(m.n_features)
        return *m.steps(), told.linear(coef)


class Features:
    """Prepared rows -> features of a map, times a scale; seconds: for computing the map."""

    def __init__(self, feature_map: Any, scale: float = 1.0, seconds: float = 0.0) -> None:
        self.map, self.scale, self.seconds = feature_map, scale, seconds
        self.n_features: int = feature_map.n_features

    def __call__(self, X: Any) -> np.ndarray:
        Z: np.ndarray = self.map.transform(X)
        if self.scale != 1.0:
            Z *= Z.dtype.type(self.scale)
        return Z


def _saved_map(header: dict[str, Any], arrays: Arrays) -> FeatureMap:
    """The feature map of a model file."""
    parts = {name[4:]: values for name, values in arrays.items() if name.startswith("map_")}
    return FeatureMap.from_header(header["map"], parts)


def _weighted(features: Features, w: np.ndarray, X: Any) -> np.ndarray:
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
    without = ("softmax",)
    default_losses = StreamMethod.default_losses | {"multiclass": "squared_hinge"}

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        if self.endless:
            raise UsageError(
                f"--virtual is endless, but method {self.name} stores a number per row; set"
                " --virtual-copies"
            )
        if self.replace:
            raise UsageError(
                f"--replace may draw a row twice in one step, which method {self.name} does not"
                " support; omit it"
            )

    def check_stream(self, source: Source) -> None:
        needed = [
            (not source.rewindable, f"{source.name} can be read only once; use a file"),
            (self.head is not None, "--head limits them; omit it"),
            (
                self.class_weight is not None,
                "--class-weight does not give the weights of all rows with --stream; omit it",
            ),
        ]
        for lacking, why in needed:
            if lacking:
                raise UsageError(f"method {self.name} needs all rows beforehand, but {why}")
        super().check_stream(source)

    def check_further(self) -> None:
        raise UsageError(
            f"method {self.name} stores a number for each row of a data set; use fit, or another"
            " method"
        )

    def start(self, setup: Setup) -> DualSolver:
        drawn = self.draw(setup)
        sizes = setup.n_outputs, setup.n_rows
        more = setup.loss, self.nu, setup.weights, self.sweeps
        if isinstance(drawn, Support):
            return KernelSDCA(drawn, *sizes, *more)
        return LinearSDCA(drawn, drawn.n_features, *sizes, *more)

    def finished(
        self, solver: Any, batches: Callable[[], Iterator[Batch]], n_counted: float
    ) -> dict[str, Any]:
        if not self.gap:
            return {}
        primal, dual = solver.bounds(batches())
        # at the optimum, rounding decides the sign of the remainder
        return {"objective": n_counted * primal, "gap": n_counted * max(0.0, primal - dual)}


# ---------------------------------------------------------------------- methods

# Steps on explicit features cost as much for more rows.
LARGE_BATCH = StreamMethod.options["batch"].but(default=4096)


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

    def describe(self, solver: Any) -> dict[str, Any]:
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
