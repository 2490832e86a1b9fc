"""What rf, sparse-rf and their relatives share: a linear model on the random features of one map."""

import copy

import numpy as np

from rfx.errors import DataError, UsageError
from rfx.features import MAPS, FeatureMap, check_variant, sample
from rfx.methods import leverage
from rfx.methods.base import Method
from rfx.methods.options import DTYPE, GAMMA, KERNEL, LOSS, MAX_ITER, MAX_MEMORY, N_FEATURES
from rfx.model import Array
from rfx.operators.mapped import MapMatrix
from rfx.options import Option, Path
from rfx.solvers.base import Solution

PREDICTION_BYTES = 4 * 2**20


def _variants() -> dict[str, str]:
    """The variants of all maps, and leverage."""
    found = {name: meaning for kind in set(MAPS.values()) for name, meaning in kind.variants.items()}
    return {name: "" for name in found} | {"range": "", "leverage": ""}


FEATURES = Option(
    "features",
    str,
    "Fourier features: sqrt2 cos(w.x + b) (offset) or cos and sin of the same w (pairs). Perceptron: thresholds over the "
    "whole ball (offset), within the range of the training rows (range), where they tell rows apart, or so and drawn from ten times "
    "as many by their leverage on the training rows (leverage), for a better approximation by the same number.",
    _variants,
    default="offset",
)
OPTIONS = (
    KERNEL.but(choices=lambda: list(MAPS)),
    GAMMA,
    FEATURES,
    N_FEATURES,
    LOSS,
    MAX_ITER,
    DTYPE,
    MAX_MEMORY,
)


class LinearMethod(Method):
    """f(x) = coef' phi(x): self.map (D features) and self.coef (D, k), already scaled for unscaled phi."""

    arrays = Method.arrays | {"coef": Array("f", "features outputs")}

    @classmethod
    def saved_arrays(cls, header):
        if header["map"]["n_inputs"] != header["info"]["n_inputs"]:
            raise DataError("its map is of another number of inputs")
        return cls.arrays | {f"map_{name}": array for name, array in MAPS[header["map"]["name"]].parts.items()}

    def check_given(self, given):
        super().check_given(given)
        check_variant(self.params["kernel"], self._n_drawn(), self.params["features"])

    def _sample(self, X, Y, lam) -> FeatureMap:
        """The map of the options' kernel, features and seed; lam is the ridge parameter of `--gamma tuned` and leverage."""
        p = self.params
        params = self._learn_kernel(X, Y, lam)
        moved = p["features"] in ("range", "leverage")
        if moved and p["kernel"] != "perceptron":
            raise UsageError(
                f"--features is {p['features']}, which is for the perceptron kernel, not {p['kernel']}; choose offset or pairs"
            )
        feature_map = sample(
            p["kernel"],
            X.shape[1],
            self._n_drawn(),
            p["seed"],
            dtype=np.dtype(p["dtype"]),
            variant="offset" if moved else p["features"],
            **params,
        )
        if moved:
            feature_map = feature_map.fit_range(X)
        if p["features"] == "leverage":
            curved = 1.0 if self.loss.name == "squared" else leverage.NEAR_MARGIN
            feature_map = leverage.draw(feature_map, X, p["n_features"], lam / curved, p["seed"])
        return feature_map

    def _vectors(self, X):
        return self._n_drawn() if MAPS[self.params["kernel"]].wide else 0

    def _n_drawn(self) -> int:
        return self.params["n_features"] * (leverage.POOL if self.params["features"] == "leverage" else 1)

    def _decide(self, X):
        return linear_decision(self.map, self.coef, X)

    def _state(self):
        arrays = {f"map_{key}": value for key, value in self.map.arrays.items()}
        return {"map": self.map.header()}, arrays | {"coef": self.coef}

    def _restore(self, header, arrays):
        parts = {key[4:]: value for key, value in arrays.items() if key.startswith("map_")}
        self.map, self.coef = FeatureMap.from_header(header["map"], parts), arrays["coef"]

    def _describe(self):
        return {
            "lam": self.lam,
            "n_features": self.params["n_features"],
            "model_size": self.map.n_features,
            "kernel_params": {key: value for key, value in self.map.params.items() if np.isscalar(value)},
        }

    def _keep_nonzero(self, feature_map, coef):
        """The model of the features with a non-zero weight in any output."""
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        self.map, self.coef = feature_map.select(used), coef[used]

    def _path_lams(self) -> list[float]:
        """The lambdas of --lam-path, from the largest to the smallest."""
        if self.params["solver"] != "rfx":
            raise UsageError(f"--lam-path needs --solver rfx; {self.params['solver']} starts every lambda anew")
        return Path.values(self.params["lam_path"])

    def _keep_path(self, feature_map, lams, solutions, scale=1.0) -> Solution:
        """A trained method for each lambda into self.path, weights times `scale`; self is the last."""
        self.path = []
        for lam, solution in zip(lams, solutions, strict=True):
            point = copy.copy(self)
            point.lam = lam
            point._keep_nonzero(feature_map, np.asarray(solution.coef) * scale)
            self.path.append((point, solution))
        self.lam, self.map, self.coef = point.lam, point.map, point.coef
        return solution

    def _outcomes(self, solution):
        return self.path if self.params.get("lam_path") else super()._outcomes(solution)

    def path_points(self) -> list["LinearMethod"]:
        """After a fit with lam_path: a trained method for each lambda, from the largest to the smallest."""
        points = []
        for point, solution in self.path:
            certificate = {name: getattr(solution, name) for name in ("objective", "gap", "n_iter", "converged")} | {
                "ended": solution.status
            }
            point.params = self.params | {"lam": point.lam}
            point.info = self.info | certificate | point._describe()
            points.append(point)
        return points


def linear_decision(feature_map, coef, X) -> np.ndarray:
    """(n, k) float64 values of coef' phi(x) for the rows of X, by blocks that stay in cache."""
    if not feature_map.n_features:
        return np.zeros((X.shape[0], coef.shape[1]))
    quick = feature_map.quick_decision(X, coef)
    if quick is not None:
        return quick
    Z = MapMatrix(feature_map, X, block=max(32, PREDICTION_BYTES // (feature_map.n_features * feature_map.dtype.itemsize)))
    if coef.shape[1] == 1:
        return Z.matvec(coef[:, 0])[:, None]
    return Z.matvec(coef)
