"""Random features as transformers: the maps of rfx.features, random binning, Nystrom, the features
selected by a sparse model, and a learnt metric.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from rfx import kernels, methods
from rfx.estimators.base import Estimator, MethodEstimator
from rfx.estimators.parameters import in_python
from rfx.estimators.rows import checked
from rfx.features import MAPS, FeatureMap
from rfx.features.binning import WIDTHS, BinMap
from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.fitting.linear import scaled_map
from rfx.fitting.options import (
    DTYPE,
    KERNEL,
    MAP_GAMMA,
    MAX_MEMORY,
    N_FEATURES,
    SCALING,
    SEED,
)
from rfx.fitting.training import prepare
from rfx.kernels.distances import ChiSquare
from rfx.operators.blocks import default_memory_mb
from rfx.options import Option

_OF_BINNING = (
    KERNEL.replace(choices=tuple(WIDTHS), default="laplacian"),
    MAP_GAMMA,
    methods.get("sparse-rb").options["n_grids"],
    SCALING,
    SEED,
)
_OF_NYSTROM = (
    KERNEL.replace(
        choices=lambda: [name for name, kernel in kernels.KERNELS.items() if kernel.metric]
    ),
    MAP_GAMMA,
    methods.get("nystrom").options["landmarks"],
    N_FEATURES.replace(help="Number D of landmarks; linearly dependent ones are dropped."),
    DTYPE.replace(default="float64"),
    MAX_MEMORY,
    SCALING,
    SEED,
)
_OF_METRIC = [
    methods.get("rfm").declared()[name]
    for name in ("kernel", "scaling", "metric", "metric_steps", "seed")
]


_EXAMPLE = """>>> from sklearn.datasets import load_digits
>>> from rfx.estimators import {name}
>>> X, _ = load_digits(return_X_y=True)
>>> {name}(n_features=100).fit_transform(X).shape
(1797, 100)"""


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The properties of all transformers; a subclass defines `_features`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.target_tags.required = isinstance(self, Supervised)
        return tags

    def transform(self, X):
        """Compute the features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Or a csr_matrix, for random binning and for rows that stay sparse.
        """
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        with in_python():
            return self._features(X)


class Supervised(Transformer):
    """A transformer that learns from targets; a subclass defines `_learn`."""

    def fit(self, X, y):
        """Learn from rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Targets: labels, or numbers that are not all integers.

        Returns
        -------
        self
        """
        # words or integers are classes
        task = "regression"
        classes = type_of_target(y) in ("binary", "multiclass")
        X, y = checked(self, X, y, numbers=not classes)
        if classes:
            labels, y = np.unique(y, return_inverse=True)
            task = "binary" if len(labels) <= 2 else "multiclass"
        self._learn(task, X, np.asarray(y, np.float64))
        return self


class MapTransformer(Transformer, Estimator):
    """Maps rows to features whose inner product equals or estimates the kernel. A subclass defines
    `_learn`, which returns the map of scaled rows from the kernel's parameters and the options by
    name.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.Scaler
        The scaling of the inputs.
    """

    # numbers in memory for each feature and input
    vectors = 1
    # the kernel if there is no choice
    only_kernel = ""

    def fit(self, X, y=None):
        """Learn the scaling, the kernel's parameters and the feature map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : ignored
            Ignored; for pipelines.

        Returns
        -------
        self
        """
        X = checked(self, X)
        with in_python():
            chosen = {option.name: self._value(option) for option in self.options}
            self.scaler_, self.map_ = self._fit_map(X, **chosen)
        self._n_features_out = self.map_.n_features
        return self

    def _fit_map(self, X, *, scaling, seed, kernel=None, gamma=None, **options):
        """The scaler and the map of the rows X, by the values of the options."""
        kernel = kernel or self.only_kernel
        count = options.get("n_features", options.get("n_grids", 1))
        own = kernels.get_kernel(kernel).options
        of_kernel = {option.name: options.get(option.name) for option in own}

        def learn(rows, params):
            return self._learn(kernel, rows, seed, params, **options)

        return scaled_map(learn, X, self.vectors * count, kernel, scaling, gamma, seed, **of_kernel)

    def _value(self, option):
        value = self._seed() if option.name == "seed" else getattr(self, option.name)
        return option.default if value is None else option.convert(value)

    def _features(self, X):
        return self.map_.transform(self.scaler_.transform(X))


def map_options(kind: type[FeatureMap]) -> list[Option]:
    """The options of a map's transformer: its kernels with their options, its variants, and the
    number of features.
    """
    names = [kernel.name for kernel in kind.kernels]
    options = [KERNEL.replace(choices=names, default=names[0])] if len(names) > 1 else []
    if any("gamma" in kernel.parameters for kernel in kind.kernels):
        options.append(MAP_GAMMA)
    if len(kind.variants) > 1:
        usual = {kind.usual(name) for name in names}
        default = usual.pop() if len(usual) == 1 else None
        text = "Variant of the features."
        options.append(Option("features", str, text, kind.variants, default=default))
    own = {option.name: option for kernel in kind.kernels for option in kernel.options}
    # letter codes, counts and categories must not be scaled
    scaled = any(kernel.metric and not kernel.scalings for kernel in kind.kernels)
    scaling = SCALING if scaled else SCALING.replace(default="none")
    return [*options, *own.values(), N_FEATURES, DTYPE, scaling, SEED]


class MapFeatures(MapTransformer):
    """D random features of a map of rfx.features, divided by the square root of D; map: the name of
    one of its kernels.
    """

    map_class: ClassVar[type[FeatureMap]]

    def __init_subclass__(cls, *, map: str, **more: Any) -> None:
        cls.map_class = MAPS[map]
        cls.only_kernel = cls.map_class.kernels[0].name
        super().__init_subclass__(options=map_options(cls.map_class), example=_EXAMPLE, **more)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        histograms = any(isinstance(kernel, ChiSquare) for kernel in self.map_class.kernels)
        tags.input_tags.positive_only = histograms and self.scaling == "none"
        return tags

    def _learn(self, kernel, X, seed, params, *, n_features, dtype, features=None, **others):
        given = kernel, X, n_features, seed, features
        return self.map_class.learn(*given, dtype=np.dtype(dtype), **params)

    def _features(self, X):
        Z = super()._features(X)
        Z *= Z.dtype.type(self._n_features_out**-0.5)
        return Z


class FourierFeatures(MapFeatures, map="gaussian"):
    """Random Fourier features.

    For exp(-gamma ||x-y||_2^2) (gaussian), exp(-gamma ||x-y||_1) (laplacian) and exp(-gamma
    ||x-y||_2) (laplacian-l2).

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.
    """


class MaternFeatures(MapFeatures, map="matern-3/2"):
    """Fourier features of the Matern kernels.

    matern-3/2: (1 + s) exp(-s), s = sqrt3 gamma ||x-y||_2; matern-5/2: (1 + s + s^2/3) exp(-s), s =
    sqrt5 gamma ||x-y||_2.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class MixtureFeatures(MapFeatures, map="multiscale"):
    """Fourier features of mixtures of Gaussian kernels.

    rational-quadratic: (1 + gamma ||x-y||_2^2 / rq_alpha)^-rq_alpha; multiscale: the mean of
    exp(-s gamma ||x-y||_2^2) over s = 1/16, 1/4, 1, 4, 16.

    References
    ----------
    .. [1] Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006.
    """


class AdditiveChi2Features(MapFeatures, map="additive-chi2"):
    """Random features of the additive chi-square kernel, for inputs of 0 or more.

    sqrt(2 d x_m) cos(w log x_m + b) for the kernel sum_j 2 x_j y_j / (x_j + y_j); the d inputs take
    turns.

    References
    ----------
    .. [1] Vedaldi and Zisserman, "Efficient Additive Kernels via Explicit Feature Maps", TPAMI 34,
       2012.
    """


class SkewedChi2Features(MapFeatures, map="skewed-chi2"):
    """Fourier features of the skewed chi-square kernel, for inputs above -c.

    sqrt2 cos(w.z + b), z_j = log(1 + x_j / c), for the kernel prod_j 2 sqrt((x_j + c)(y_j + c)) /
    (x_j + y_j + 2c), c the skewedness.

    References
    ----------
    .. [1] Li, Ionescu and Sminchisescu, "Random Fourier Approximations for Skewed Multiplicative
       Histogram Kernels", DAGM 2010.
    """


class HammingFeatures(MapFeatures, map="hamming"):
    """Random signs of codes of categories.

    Products of random signs of the codes of a random subset of the inputs, for the kernel
    exp(-gamma m), m the number of inputs that differ.
    """


class DotProductFeatures(MapFeatures, map="exponential"):
    """Random features of dot-product kernels.

    The kernels are (1 + gamma x.y)^p and exp(gamma x.y), gamma up to 2.

    References
    ----------
    .. [1] Kar and Karnick, "Random Feature Maps for Dot Product Kernels", AISTATS 2012.
    .. [2] Pham and Pagh, "Fast and Scalable Polynomial Kernels via Explicit Feature Maps", KDD
       2013.
    """


class ArcCosineFeatures(MapFeatures, map="arccosine-0"):
    """Arc-cosine features.

    sqrt2 H(w.x) (w.x)^order: one hidden layer of threshold, ramp or squared-ramp units.

    References
    ----------
    .. [1] Cho and Saul, "Kernel Methods for Deep Learning", NIPS 2009.
    """


class PerceptronFeatures(MapFeatures, map="perceptron"):
    """Random perceptrons.

    sqrt(R/c_d) sign(theta.x - a), theta uniform on the sphere, a from -R to R, of the kernel R/c_d
    - ||x-y||_2 in a ball of radius R.

    References
    ----------
    .. [1] Lin and Li, "Support Vector Machinery for Infinite Ensemble Learning", JMLR 9, 2008.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.
    """


class StumpFeatures(MapFeatures, map="stump"):
    """Random decision stumps.

    sign(x_j - a) for the kernel 1 - 2 ||x-y||_1 / (sum of ranges); column j is drawn with
    probability proportional to its range.

    References
    ----------
    .. [1] Lin and Li, "Support Vector Machinery for Infinite Ensemble Learning", JMLR 9, 2008.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.
    """


class CoordinateFeatures(MapFeatures, map="linear"):
    """Random coordinates of the inputs.

    sqrt(d) x_m for the linear kernel x.y. Sparse rows stay sparse unless the features are requested
    as an array.
    """


class KmerFeatures(MapFeatures, map="kmers"):
    """Random words of sequences as features.

    Indicators of word v at position p of the sequence, for words of 1 to k letters. Inputs are
    letter codes, one column per position.

    Examples
    --------
    >>> import numpy as np
    >>> from rfx.estimators import KmerFeatures
    >>> sequences = np.array([list(b"ACGT"), list(b"ACGA"), list(b"TTGA")])
    >>> KmerFeatures(k=2, n_features=5).fit_transform(sequences).shape
    (3, 5)
    """


class RandomBinning(MapTransformer, options=_OF_BINNING):
    """A feature for every bin of R random grids that contains a training row.

    A row has 1/sqrt(R) in at most R features; features are a sparse matrix.

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    .. [2] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import RandomBinning
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> RandomBinning(gamma=0.5, n_grids=100).fit_transform(X).nnz
    56900
    """

    vectors = BinMap.width

    def _learn(self, kernel, X, seed, params, *, n_grids, **others):
        return BinMap.learn(kernel, X, n_grids, seed, **params)


class NystromFeatures(MapTransformer, options=_OF_NYSTROM):
    """Features whose inner product is the kernel's Nystrom approximation by landmarks.

    K_nm K_mm^-1 K_mn, from the kernel's values with at most D landmarks.

    References
    ----------
    .. [1] Williams and Seeger, "Using the Nystrom Method to Speed Up Kernel Machines", NIPS 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import NystromFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> NystromFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    def _learn(
        self, kernel, X, seed, params, *, n_features, landmarks, max_memory, dtype, **others
    ):
        limit = max_memory or default_memory_mb()
        chosen = choose_landmarks(landmarks, kernel, X, params, n_features, seed, limit)
        return NystromMap(kernel, chosen, params, dtype)


class SparseRandomFeatures(Supervised, MethodEstimator, method="sparse-rf"):  # type: ignore[misc]
    """The random features selected by sparse-rf.

    Selects unscaled features by the targets, for use before any model. Classes and numbers are
    distinguished like in scikit-learn's `type_of_target`.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.Scaler
        The scaling of the inputs.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import SparseRandomFeatures
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> selected = SparseRandomFeatures(gamma="median", n_features=200, lam=3.0)
    >>> selected.fit_transform(X, y).shape[1] < 200
    True
    """

    without = MethodEstimator.without | {"class_weight"}
    added = ()

    def _learn(self, task, X, y):
        self._train(task, X, y)
        self.map_ = self.method_.model.map
        self.scaler_ = self.method_.preprocessing.scaler
        self._n_features_out = self.map_.n_features

    def _features(self, X):
        return self.map_.transform(self.scaler_.transform(X, dtype=self.map_.dtype))


class LearnedMetric(Supervised, Estimator, options=_OF_METRIC):
    """Scales inputs and maps them by a metric learnt from the targets, for any estimator.

    A kernel machine is fitted, and the average outer product of its gradients becomes the metric of
    the next one (recursive feature machines). Euclidean distances of the mapped rows are those of
    the metric. If no metric reduces the leave-one-out error, the rows are only scaled.

    Attributes
    ----------
    scaler_ : rfx.data.transforms.Scaler
        The scaling and the metric of the inputs.
    feature_importances_ : ndarray of shape (n_features,)
        Each scaled input's share of the trace of the metric, its average squared gradient; they sum
        to 1, and are equal without a metric.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit and Belkin, "Mechanism for feature learning in neural
       networks and backpropagation-free machine learning models", Science 383, 2024.

    Examples
    --------
    >>> from rfx.estimators import LearnedMetric
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(LearnedMetric(scaling="standard"), KNeighborsClassifier())
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    0.9...
    """

    def _learn(self, task, X, y):
        with in_python():
            trainer = methods.create("rfm", task=task, **self._asked())
            self.scaler_ = prepare(trainer, X, y).preprocessing.scaler
        metric = self.scaler_.metric
        count = self.n_features_in_
        self.feature_importances_ = np.full(count, 1 / count) if metric is None else metric.shares()
        self._n_features_out = count

    def _features(self, X):
        return self.scaler_.transform(X)
