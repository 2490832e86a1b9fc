"""The explicit features of the baselines of Dai et al. (2014): random (r-) and Nystrom (n-)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rfx import steps as told
from rfx.features import MAPS, FeatureMap, form_of, sample
from rfx.features.nystrom import NystromMap
from rfx.fitting.learned import Learned
from rfx.fitting.method import Method
from rfx.fitting.options import MOST, N_FEATURES
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.stream_options import FEATURES
from rfx.fitting.streaming import Learner, Restored, StreamMethod, n_bytes
from rfx.fitting.support_rows import SUPPORT, kernel_option, restored, support_steps
from rfx.model import Array
from rfx.options import option
from rfx.solvers.stochastic.support import Support

COUNT = 1000


class RandomFeatures(StreamMethod):
    """w.z(x) with z the D random features of a map, divided by the square root of D."""

    n_features: int = N_FEATURES()
    features: str = FEATURES()
    arrays = StreamMethod.arrays | {"coef": Array("f", "features outputs")}

    def saved_arrays(self, header: dict[str, Any]) -> dict[str, Array]:
        parts = form_of(header["map"]).saved_arrays()
        # the map's inputs are the prepared rows, which principal components reduce
        own = {
            f"map_{name}": Array(part.kind, part.axes.replace("inputs", "prepared"))
            for name, part in parts.items()
        }
        return self.arrays | own

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        kernel, count = self.kernel, self.n_features
        MAPS[kernel].check_variant(kernel, count, self.features)

    def feature_map(self, learned: Learned) -> FeatureMap:
        """The map for the prepared rows."""
        return sample(
            self.kernel,
            learned.n_prepared,
            self.n_features,
            self.seed,
            dtype=input_dtype(self),
            variant=self.features,
            **learned.kernel_params,
        )

    def predictor(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> Callable[[Any], np.ndarray]:
        return partial(_weighted, Scaled(_map(header, arrays)), arrays["coef"])

    def steps(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> told.Steps:
        found = _map(header, arrays)
        coef = np.asarray(arrays["coef"], np.float64) / math.sqrt(found.n_features)
        return *found.steps(), told.linear(coef)


def _map(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> FeatureMap:
    """The feature map of a model file."""
    parts = {name[4:]: v for name, v in arrays.items() if name.startswith("map_")}
    return FeatureMap.from_header(header["map"], parts)


class NystromFeatures(StreamMethod):
    """w.z(x) with z the Nystrom features of landmarks drawn from the rows.

    The results row reports the seconds for computing them separately.
    """

    kernel: str = kernel_option()()
    n_features: int = option(COUNT, "Number D of landmarks.", least=1, most=MOST)
    arrays = StreamMethod.arrays | SUPPORT

    def n_landmarks(self) -> int:
        return self.n_features

    def feature_map(self, learned: Learned) -> tuple[NystromMap, float]:
        """The map of the landmarks, and the seconds for computing it."""
        start = time.perf_counter()
        # the sample of the survey is in random order
        landmarks = np.asarray(learned.sample[: self.n_features], np.float64)
        params, dtype = learned.kernel_params, input_dtype(self)
        feature_map = NystromMap(self.kernel, landmarks, params, dtype)
        return feature_map, time.perf_counter() - start

    def predictor(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> Callable[[Any], np.ndarray]:
        return _support(self, known.kernel_params, arrays["support"], arrays["coef"]).values

    def steps(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> told.Steps:
        return support_steps(arrays, self, known)


def _support(method: Method, params: dict[str, Any], rows: Any, coef: np.ndarray) -> Support:
    # coefficients of nearly dependent landmarks cancel: use float64
    return restored(method, params, rows, coef, np.float64)


class Scaled:
    """Prepared rows -> features divided by the square root of their number."""

    def __init__(self, feature_map: FeatureMap) -> None:
        self.map = feature_map

    def __call__(self, X: Any) -> np.ndarray:
        Z = self.map.transform(X)
        Z *= Z.dtype.type(1 / math.sqrt(self.map.n_features))
        return Z


def _weighted(features: Scaled, w: np.ndarray, X: Any) -> np.ndarray:
    """(n, outputs) float64 values of w.z(x)."""
    return np.asarray(features(X) @ w, np.float64)


class RandomLearner(Learner):
    """The learner of a solver for weights `solver.w` over random features."""

    def __init__(self, solver: Any, feature_map: FeatureMap) -> None:
        super().__init__(solver)
        self.map = feature_map

    def parameters(self) -> dict[str, np.ndarray]:
        own = {f"map_{name}": values for name, values in self.map.arrays.items()}
        return {"coef": self.solver.w} | own

    def training_bytes(self) -> int | None:
        stored = super().training_bytes()
        return stored and stored + sum(map(n_bytes, self.map.arrays.values()))

    def describe(self) -> dict[str, Any]:
        size = len(self.solver.w)
        return {"n_features": self.map.n_features, "model_size": size}

    def header(self) -> dict[str, Any]:
        return {"map": self.map.header()}


class NystromLearner(Learner):
    """The learner of a solver for weights `solver.w` over Nystrom features.

    It predicts with the landmarks' coefficients, like its model file: rank kernel values per row,
    without rank^2 operations for z(x).
    """

    def __init__(
        self, solver: Any, feature_map: NystromMap, method: Method, seconds: float
    ) -> None:
        super().__init__(solver)
        self.map, self.method, self.seconds = feature_map, method, seconds

    def parameters(self) -> dict[str, np.ndarray]:
        return {"support": self.map.landmarks, "coef": self.map.fold(self.solver.w)}

    def training_bytes(self) -> int | None:
        stored = super().training_bytes()
        return stored and stored + n_bytes(self.map.landmarks) + n_bytes(self.map.factor)

    def predict(self, X: Any) -> np.ndarray:
        coef = self.map.fold(self.solver.w)
        return _support(self.method, self.map.params, self.map.landmarks, coef).values(X)

    def describe(self) -> dict[str, Any]:
        rank = self.map.n_features
        return {
            "n_features": self.method.n_features,
            "model_size": rank,
            "rank": rank,
            "seconds_nystrom": self.seconds,
        }
