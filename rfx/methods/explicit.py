"""The explicit features of the baselines of Dai et al. (2014): random ones (r-) and Nystrom's (n-), 2^8 of either by default."""

import math
import time

import numpy as np

from rfx.features import MAPS, FeatureMap, sample
from rfx.features.nystrom import NystromMap
from rfx.methods.options import MOST, N_FEATURES
from rfx.methods.stream_options import FEATURES
from rfx.methods.streaming import StreamMethod
from rfx.methods.support import SUPPORT, Kept, kernel_option
from rfx.model import Array
from rfx.options import Option

COUNT = 256


class RandomFeatures(StreamMethod):
    """w.z(x) with z the random features of a map, as many as --n-features says, divided by their root."""

    options = (*StreamMethod.options, N_FEATURES.but(default=COUNT), FEATURES)
    arrays = StreamMethod.arrays | {"coef": Array("f", "features outputs")}

    @classmethod
    def saved_arrays(cls, header):
        parts = MAPS[header["map"]["name"]].saved_arrays()
        # the map's inputs are the prepared rows, which principal components make fewer
        form = {name: Array(part.kind, part.axes.replace("inputs", "prepared")) for name, part in parts.items()}
        return cls.arrays | {f"map_{name}": part for name, part in form.items()}

    def check_given(self, given):
        super().check_given(given)
        MAPS[self.params["kernel"]].check_variant(self.params["kernel"], self.params["n_features"], self.params["features"])

    def _map(self):
        p = self.params
        self.map = sample(
            p["kernel"], self.n_prepared, p["n_features"], p["seed"], dtype=self._input_dtype(), variant=p["features"], **self.kernel_params
        )
        return self._features, self.map.n_features

    def _features(self, X):
        Z = self.map.transform(X)
        Z *= Z.dtype.type(1 / math.sqrt(self.map.n_features))
        return Z

    def _state(self):
        header, arrays = super()._state()
        return header | {"map": self.map.header()}, arrays | {f"map_{name}": values for name, values in self.map.arrays.items()}

    def _restore(self, header, arrays):
        self.map = FeatureMap.from_header(header["map"], {name[4:]: values for name, values in arrays.items() if name.startswith("map_")})
        super()._restore(header, arrays)

    def _restore_solver(self, arrays):
        self.solver = Linear(self._features, arrays["coef"])

    def _model_arrays(self):
        return {"coef": self.solver.w}

    def _describe(self):
        return self._describe_model()

    def _describe_model(self):
        return {"n_features": self.params["n_features"], "model_size": len(self.solver.w)}


class NystromFeatures(StreamMethod):
    """w.z(x) with z the Nystrom features of landmarks drawn from the rows. info has the seconds that making them took apart."""

    options = (
        *StreamMethod.options,
        kernel_option(),
        Option("n_features", int, "Number D of landmarks.", low=1, high=MOST, default=COUNT),
    )
    arrays = StreamMethod.arrays | SUPPORT

    @property
    def n_landmarks(self) -> int:
        return self.params["n_features"]

    def _map(self):
        start = time.perf_counter()
        # the sample of the survey is in random order
        landmarks = np.asarray(self._sample[: self.params["n_features"]], np.float64)
        self.map = NystromMap(self.params["kernel"], landmarks, self.kernel_params, self._input_dtype())
        self.seconds_nystrom = time.perf_counter() - start
        return self.map.transform, self.map.n_features

    def _restore_solver(self, arrays):
        self.solver = self._kept(arrays)

    def _kept(self, arrays):
        # coefficients of near-dependent landmarks cancel: float64
        return Kept(self.params["kernel"], self.kernel_params, arrays["support"], arrays["coef"], np.float64)

    def _values(self, X):
        """By the landmarks' coefficients, before a file is written as after: rank kernel values a row, no rank^2 operations for z(x)."""
        kept = self.solver if isinstance(self.solver, Kept) else self._kept(self._model_arrays())
        return kept.predictions(X)

    def _model_arrays(self):
        if isinstance(self.solver, Kept):
            return {"support": self.solver.support.rows, "coef": self.solver.coef}
        return {"support": self.map.landmarks, "coef": self.map.fold(self.solver.w)}

    def _describe(self):
        return self._describe_model()

    def _describe_model(self):
        return {
            "n_features": self.params["n_features"],
            "model_size": self.map.n_features,
            "rank": self.map.n_features,
            "seconds_nystrom": self.seconds_nystrom,
        }


class Linear:
    """w.z(x) of a model file."""

    def __init__(self, features, w):
        self.features, self.w, self.t = features, w, 0

    def predictions(self, X) -> np.ndarray:
        """(n, outputs) float64 values."""
        return np.asarray(self.features(X) @ self.w, np.float64)
