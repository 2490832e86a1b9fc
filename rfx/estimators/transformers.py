"""Random features as transformers: the maps of rfx.features, random binning, Nystrom's, and those that a sparse model keeps."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rfx import kernels
from rfx.data.transforms.scaling import Scaler
from rfx.estimators.base import MethodEstimator, checked, classes_of, in_python
from rfx.features import FeatureMap, sample
from rfx.features.binning import BinMap
from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.features.widths import WIDTHS
from rfx.fitting import bandwidth, memory
from rfx.fitting.options import DTYPE, GAMMA, KERNEL, MAX_MEMORY, MOST, N_FEATURES, SCALING, SEED
from rfx.methods.nystrom import LANDMARKS
from rfx.operators.blocks import default_memory_mb
from rfx.options import Option

# Without targets there is nothing to validate a bandwidth by.
_GAMMA = GAMMA.but(choices={name: GAMMA.meanings()[name] for name in ("paper", "median")})


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rows to features whose inner product is the kernel, or estimates it; a subclass defines `_learn` and `_features`."""

    options: tuple[Option, ...] = ()
    # numbers that memory has to hold for each feature and input
    vectors = 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X, y=None):
        """Learn the scaling, the kernel's parameters and what else the features need.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : ignored
            There for pipelines.

        Returns
        -------
        self
        """
        X = checked(self, X)
        with in_python():
            p = {option.name: self._value(option) for option in self.options}
            memory.check(X, p["scaling"], self.vectors * p.get("n_features", p.get("n_grids", 1)), 8)
            scaler = Scaler.fit(X, p["scaling"])
            scaled = scaler.transform(X)
            kernel = p.setdefault("kernel", self._only_kernel())
            assert kernel is not None
            own = {option.name: p[option.name] for option in kernels.get_kernel(kernel).options}
            found = self._learn(scaled, p, bandwidth.resolve(kernel, p.get("gamma"), scaled, p["seed"], **own))
        self.scaler_, self.map_ = scaler, found
        self._n_features_out = self._width()
        return self

    def transform(self, X):
        """The features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out), or csr_matrix of random binning
        """
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        with in_python():
            return self._features(self.scaler_.transform(X))

    def _value(self, option):
        value = getattr(self, option.name)
        return option.default if value is None else option.convert(value)

    def _only_kernel(self) -> str | None:
        """The kernel where there is no choice."""
        return None

    def _width(self) -> int:
        """How many features there are."""
        return self.map_.n_features

    def _learn(self, X, p: dict, params: dict):
        """What becomes map_, from scaled rows X (n, d), the options p and the kernel's parameters."""
        raise TypeError(f"{type(self).__name__} does not define _learn")

    def _features(self, X):
        """Features of scaled rows X (n, d)."""
        return self.map_.transform(X)


def map_options(kind: type[FeatureMap]) -> tuple[Option, ...]:
    """What a map's transformer takes: which of the map's kernels, their own options, which of its variants, how many features."""
    names = tuple(kernel.name for kernel in kind.kernels)
    found = [KERNEL.but(choices=names, default=names[0])] if len(names) > 1 else []
    if any("gamma" in kernel.parameters for kernel in kind.kernels):
        found.append(_GAMMA)
    if len(kind.variants) > 1:
        found.append(Option("features", str, "Variant of the features.", kind.variants, default=next(iter(kind.variants))))
    found += {option.name: option for kernel in kind.kernels for option in kernel.options}.values()
    # the codes of letters are no numbers to scale
    scaling = SCALING if any(kernel.metric for kernel in kind.kernels) else SCALING.but(default="none")
    return (*found, N_FEATURES, DTYPE, scaling, SEED)


class MapFeatures(MapTransformer):
    """D random features of a map of rfx.features, divided by the root of D; a subclass names the map in `map_class`."""

    map_class: type[FeatureMap] = FeatureMap

    def _only_kernel(self):
        return self.map_class.kernels[0].name

    def _learn(self, X, p, params):
        kernel, variant = p["kernel"], p.get("features", "offset")
        self.map_class.check_variant(kernel, p["n_features"], variant)
        options = {"dtype": np.dtype(p["dtype"]), "variant": variant}
        return sample(kernel, X.shape[1], p["n_features"], p["seed"], **options, **params).fit(X, variant)

    def _features(self, X):
        Z = self.map_.transform(X)
        Z *= Z.dtype.type(self._n_features_out**-0.5)
        return Z


class BinningTransformer(MapTransformer):
    """A feature for every bin of R random grids that a training row is in; a row has 1/sqrt(R) in R of them, or fewer."""

    source = "Random binning features (Rahimi and Recht 2007; Wu et al. 2016, Algorithm 1)."
    vectors = BinMap.width
    options = (
        KERNEL.but(choices=tuple(WIDTHS), default="laplacian"),
        _GAMMA,
        Option("n_grids", int, "Number R of random grids; a row is in one bin of each.", low=1, high=MOST, default=256),
        SCALING,
        SEED,
    )

    def _learn(self, X, p, params):
        return BinMap.learn(p["kernel"], X, p["n_grids"], p["seed"], **params)

    def _width(self):
        return int(self.map_.bins.starts[-1])

    def _features(self, X):
        return self.map_.grids.transform(X, self.map_.bins)


class NystromTransformer(MapTransformer):
    """Features whose inner product is the kernel as its values with landmarks determine it, K_nm K_mm^-1 K_mn."""

    source = "Nystrom features (Williams and Seeger 2001)."
    options = (
        KERNEL.but(choices=lambda: [name for name, kernel in kernels.KERNELS.items() if kernel.metric]),
        _GAMMA,
        LANDMARKS,
        N_FEATURES.but(help="Number D of landmarks; those that depend on others linearly are left out."),
        DTYPE.but(default="float64"),
        MAX_MEMORY,
        SCALING,
        SEED,
    )

    def _learn(self, X, p, params):
        limit = p["max_memory"] or default_memory_mb()
        landmarks = choose_landmarks(p["landmarks"], p["kernel"], X, params, p["n_features"], p["seed"], limit)
        return NystromMap(p["kernel"], landmarks, params, p["dtype"])


class SelectedFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MethodEstimator):
    """The random features phi, unscaled, that have a weight in a model of the method `method_name`; `map_` is them."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.target_tags.required = True
        return tags

    def fit(self, X, y):
        """Train the method and keep the features of its model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Targets: labels, or numbers that are not all whole.

        Returns
        -------
        self
        """
        classes = classes_of(y)
        X, y = checked(self, X, y, y_numeric=not classes)
        if not classes:
            task = "regression"
        else:
            labels, y = np.unique(y, return_inverse=True)
            task = "binary" if len(labels) <= 2 else "multiclass"
        self._train(task, X, np.asarray(y, np.float64))
        self.map_, self.scaler_ = self.method_.model.map, self.method_.preprocessing.scaler
        self._n_features_out = self.map_.n_features
        if not self._n_features_out:
            warnings.warn(f"{type(self).__name__} keeps no feature: all weights are zero; a smaller lam keeps some", stacklevel=2)
        return self

    def transform(self, X):
        """The features that were kept, of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        if not self._n_features_out:
            return np.empty((X.shape[0], 0), self.map_.dtype)
        with in_python():
            return self.map_.transform(self.scaler_.transform(X, dtype=self.map_.dtype))
