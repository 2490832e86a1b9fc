"""What rf, sparse-rf and their relatives share: a linear model on the random features of one map."""

import copy

import numpy as np

from rfx.errors import DataError, UsageError
from rfx.features import MAPS, FeatureMap, leverage, sample
from rfx.methods import weights
from rfx.methods.base import Method
from rfx.methods.options import CHOSEN_GAMMA, DTYPE, KERNEL, LOSS, MAX_ITER, MAX_MEMORY, MOST, N_FEATURES
from rfx.methods.watch import watcher
from rfx.model import Array
from rfx.operators.mapped import MapMatrix, feature_matrix
from rfx.options import Option, Path
from rfx.solvers.base import Solution

PREDICTION_BYTES = 4 * 2**20


# Features in the pool for each that is chosen, where --pool says nothing.
POOL_SHARE = 10


def _variants() -> dict[str, str]:
    """The variants of all maps."""
    found: dict[str, list[str]] = {}
    for kind in dict.fromkeys(MAPS.values()):
        for name, meaning in kind.variants.items():
            found.setdefault(name, []).extend([meaning] if meaning else [])
    return {name: " or ".join(dict.fromkeys(meanings)) for name, meanings in found.items()}


FEATURES = Option("features", str, "Variant of the kernel's features.", _variants, default="offset")
CHOOSE = Option(
    "choose",
    str,
    "How the features are chosen from a pool of more of them; by default there is no pool.",
    {"leverage": "drawn by their ridge leverage on the training rows, which pays for smooth kernels and for perceptrons"},
)
POOL = Option(
    "pool", int, f"Number of features in the pool that --choose takes them from; by default {POOL_SHARE} for each.", low=1, high=MOST
)
OFFSET = Option("offset", str, "With squared loss: what is taken from the targets, labels too.", {"none": "", "mean": ""}, default="none")
OPTIONS = (
    KERNEL.but(choices=lambda: list(MAPS)),
    CHOSEN_GAMMA,
    FEATURES,
    N_FEATURES,
    LOSS,
    MAX_ITER,
    DTYPE,
    MAX_MEMORY,
)


class LinearMethod(Method):
    """f(x) = coef' phi(x) + offset: self.map (D features), self.coef (D, k), already scaled for unscaled phi, self.offset (k,) or 0."""

    arrays = Method.arrays | {"coef": Array("f", "features outputs")}
    offset: np.ndarray | float = 0.0
    # the map that was drawn last, and of what, while options are chosen; whether this is a trial of some
    _last: dict | None = None
    _judging = False
    # of a trial: the map, the rows and the features that it was judged by last
    _seen: tuple | None = None

    @classmethod
    def saved_arrays(cls, header):
        if header["map"]["n_inputs"] != header["info"]["n_inputs"]:
            raise DataError("its map is of another number of inputs")
        own = {"offset": Array("f", "outputs")} if header["params"].get("offset") == "mean" else {}
        return cls.arrays | own | {f"map_{name}": array for name, array in MAPS[header["map"]["name"]].saved_arrays().items()}

    @classmethod
    def converted(cls, given):
        if given.get("features") == "leverage" and CHOOSE in cls.options:  # its name up to rfx 0.1
            given = given | {"features": "range", "choose": "leverage"}
        return super().converted(given)

    def check_given(self, given):
        super().check_given(given)
        p = self.params
        MAPS[p["kernel"]].check_variant(p["kernel"], self._n_drawn(), p["features"])
        if "choose" in p and p["pool"] and not p["choose"]:
            raise UsageError(f"--pool is {p['pool']}, which is without effect unless --choose says how features are chosen from it")
        if p.get("choose") and self._n_drawn() < p["n_features"]:
            raise UsageError(f"--pool is {p['pool']}, which is fewer than the {p['n_features']} of --n-features to choose from it")

    def _sample(self, X, lam) -> FeatureMap:
        """The map of the options' kernel, features and seed; lam is the ridge parameter of `--choose`."""
        pool = self._draw(X, self._n_drawn(), self._learn_kernel(X))
        if self.params.get("choose") is None:
            return pool
        curved = 1.0 if self.loss.name == "squared" else leverage.NEAR_MARGIN
        return leverage.draw(pool, X, self.params["n_features"], lam / curved, self.params["seed"])

    def _draw(self, X, count: int, params: dict) -> FeatureMap:
        """`count` features of the options' kernel, variant and seed, learnt from X where the variant has something to learn.

        Of many inputs drawing takes longer than all the rest: trials, and the fit after them, take what was drawn last where it would
        be drawn again.
        """
        p, last = self.params, {} if self._last is None else self._last
        drawing = (p["kernel"], X.shape[1], count, p["seed"], p["dtype"], p["features"], repr(sorted(params.items())))
        if last.get("drawing") != drawing:
            last.clear()  # two at once may be too much
            drawn = sample(p["kernel"], X.shape[1], count, p["seed"], dtype=np.dtype(p["dtype"]), variant=p["features"], **params)
            last |= {"drawing": drawing, "drawn": drawn}
        if not self._judging:
            self._last = None
        return last["drawn"].fit(X, p["features"])

    def _choose(self, X, Y):
        self._last = {}
        super()._choose(X, Y)

    def _trial(self):
        trial = super()._trial()
        trial._judging = True
        return trial

    def _vectors(self, X):
        return self._n_drawn() * MAPS[self.params["kernel"]].width

    def _n_drawn(self) -> int:
        """Features that are drawn: those of the pool, where there is one."""
        p = self.params
        return (p["pool"] or POOL_SHARE * p["n_features"]) if p.get("choose") else p["n_features"]

    @property
    def letters(self):
        found = self.map.params.get("alphabet")
        return None if found is None else bytes(found)

    def _offset(self, Y) -> np.ndarray:
        """(k,) what --offset takes from the targets Y (n, k). Raises UsageError where the loss is not for that."""
        if self.params["offset"] != "mean":
            return np.zeros(Y.shape[1])
        if self.loss.name != "squared":
            raise UsageError(f"--offset is mean, which is for squared loss, but --loss is {self.loss.name}")
        return weights.mean(Y, self.weights)

    def _decide(self, X):
        return self._weighed(X) + self.offset

    def _weighed(self, X):
        """coef' phi(x). Of a trial the features are kept: one lambda after the other is judged by the same rows."""
        if not self._judging or self._seen is None or self._seen[0] is not self.map or self._seen[1] is not X:
            self._seen = (self.map, X, None) if self._judging else None
            return linear_decision(self.map, self.coef, X)
        quick = self.map.quick_decision(X, self.coef)
        if quick is not None:
            return quick
        if self._seen[2] is None:
            self._seen = *self._seen[:2], feature_matrix(self.map, X, max_mb=self.params["max_memory"])
        return self._seen[2].matvec(self.coef)

    def _state(self):
        arrays = {f"map_{key}": value for key, value in self.map.arrays.items()} | {"coef": self.coef}
        return {"map": self.map.header()}, arrays | ({"offset": self.offset} if self.params.get("offset") == "mean" else {})

    def _restore(self, header, arrays):
        parts = {key[4:]: value for key, value in arrays.items() if key.startswith("map_")}
        self.map, self.coef = FeatureMap.from_header(header["map"], parts), arrays["coef"]
        self.offset = arrays.get("offset", 0.0)

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
        whole = len(used) == feature_map.n_features
        self.map, self.coef = (feature_map, coef) if whole else (feature_map.select(used), coef[used])

    def _path_lams(self) -> list[float]:
        """The lambdas of --lam-path, from the largest to the smallest."""
        if self.params["solver"] != "rfx":
            raise UsageError(f"--lam-path needs --solver rfx; {self.params['solver']} starts every lambda anew")
        return Path.values(self.params["lam_path"])

    def _watcher(self, feature_map, Y, scale: float = 1.0):
        """The callback of a solver for weights over scale * feature_map, see rfx.methods.watch."""
        matvec = lambda X: feature_matrix(feature_map, X, scale, self.params["max_memory"]).matvec
        return watcher(self, matvec, Y.shape[1], self.offset)

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
            point.trace = solution.trace
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
