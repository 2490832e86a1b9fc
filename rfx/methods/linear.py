"""What rf, sparse-rf and their relatives share: a linear model on the random features of one map."""

import copy

import numpy as np

from rfx.errors import UsageError
from rfx.features import MAPS, FeatureMap, check_variant, sample
from rfx.methods import gamma, leverage
from rfx.methods.base import Method
from rfx.methods.options import Path
from rfx.operators.blocks import MapBlocks, apply
from rfx.solvers.base import Solution

PREDICTION_BYTES = 4 * 2**20


class LinearMethod(Method):
    """f(x) = coef' phi(x): self.map (D features) and self.coef (D, k), already scaled for unscaled phi."""

    words = Method.words | {"kernel": tuple(MAPS)}

    def check_given(self, given):
        super().check_given(given)
        check_variant(self.params["kernel"], self.params["n_features"], self.params["features"])

    def _sample(self, X, Y, lam) -> FeatureMap:
        """The map of the options' kernel, features and seed; lam is the ridge parameter of `--gamma tuned` and leverage."""
        p = self.params
        params = gamma.resolve(p["kernel"], p["gamma"], X, Y, lam, p["seed"])
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
        return self._n_drawn()

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
    blocks = MapBlocks(feature_map, X, rows=max(32, PREDICTION_BYTES // (feature_map.n_features * feature_map.dtype.itemsize)))
    if coef.shape[1] == 1:
        return apply(blocks, coef[:, 0])[:, None]
    return apply(blocks, coef)
