"""Random features as transformers: the maps of rfx.features, random binning, Nystrom, and the
features selected by a sparse model.
"""

import warnings

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rfx import kernels
from rfx.data.transforms.scaling import Scaler
from rfx.estimators.base import MethodEstimator, Parametrised, checked, classes_of, in_python
from rfx.features import FeatureMap, sample
from rfx.features.arccosine import ArcCosineMap
from rfx.features.binning import BinMap
from rfx.features.chisquare import AdditiveChi2Map, SkewedChi2Map
from rfx.features.coordinates import CoordinateMap, KmerMap
from rfx.features.dotproduct import DotProductMap
from rfx.features.fourier import FourierMap
from rfx.features.hamming import HammingMap
from rfx.features.matern import MaternMap
from rfx.features.mixtures import MixtureMap
from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.features.perceptron import PerceptronMap, StumpMap
from rfx.features.widths import WIDTHS
from rfx.fitting import bandwidth, memory
from rfx.fitting.options import DTYPE, GAMMA, KERNEL, MAX_MEMORY, MOST, N_FEATURES, SCALING, SEED
from rfx.fitting.training import begin
from rfx.kernels.chisquare import ChiSquare
from rfx.methods import create
from rfx.methods.nystrom import LANDMARKS
from rfx.methods.rfm import RFM
from rfx.operators.blocks import default_memory_mb
from rfx.options import Option

# Bandwidth choices that need targets are excluded.
_GAMMA = GAMMA.but(choices={name: GAMMA.meanings()[name] for name in ("paper", "median")})
_OF_BINNING: tuple[Option, ...] = (
    KERNEL.but(choices=tuple(WIDTHS), default="laplacian"),
    _GAMMA,
    Option(
        "n_grids",
        int,
        "Number R of random grids; each row falls into one bin of each grid.",
        low=1,
        high=MOST,
        default=256,
    ),
    SCALING,
    SEED,
)
_OF_NYSTROM: tuple[Option, ...] = (
    KERNEL.but(choices=lambda: [name for name, kernel in kernels.KERNELS.items() if kernel.metric]),
    _GAMMA,
    LANDMARKS,
    N_FEATURES.but(help="Number D of landmarks; linearly dependent ones are dropped."),
    DTYPE.but(default="float64"),
    MAX_MEMORY,
    SCALING,
    SEED,
)


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Parametrised):
    """Maps rows to features whose inner product equals or estimates the kernel; a subclass defines
    `_learn` and `_features`.
    """

    # numbers in memory for each feature and input
    vectors = 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

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
            p = {option.name: self._value(option) for option in self._options()}
            memory.check(
                X, p["scaling"], self.vectors * p.get("n_features", p.get("n_grids", 1)), 8
            )
            scaler = Scaler.fit(X, p["scaling"])
            scaled = scaler.transform(X)
            kernel = p.setdefault("kernel", self._only_kernel())
            assert kernel is not None
            own = {option.name: p.get(option.name) for option in kernels.get_kernel(kernel).options}
            found = self._learn(
                scaled, p, bandwidth.resolve(kernel, p.get("gamma"), scaled, p["seed"], **own)
            )
        self.scaler_, self.map_ = scaler, found
        self._n_features_out = self._width()
        return self

    def transform(self, X):
        """Compute the features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out), or csr_matrix for random binning
        """
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        with in_python():
            return self._features(self.scaler_.transform(X))

    def _value(self, option):
        value = self._seed() if option.name == "seed" else getattr(self, option.name)
        return option.default if value is None else option.convert(value)

    def _options(self) -> tuple[Option, ...]:
        """The options that define its parameters and their values."""
        raise TypeError(f"{type(self).__name__} does not define _options")

    def _only_kernel(self) -> str | None:
        """The kernel if there is no choice."""
        return None

    def _width(self) -> int:
        """Number of features."""
        return self.map_.n_features

    def _learn(self, X, p: dict, params: dict):
        """The feature map, from scaled rows X (n, d), the options p and the kernel's parameters;
        stored as map_.
        """
        raise TypeError(f"{type(self).__name__} does not define _learn")

    def _features(self, X):
        """The features of scaled rows X (n, d)."""
        return self.map_.transform(X)


def map_options(kind: type[FeatureMap]) -> tuple[Option, ...]:
    """The options of a map's transformer: its kernels with their options, its variants, and the
    number of features.
    """
    names = tuple(kernel.name for kernel in kind.kernels)
    found = [KERNEL.but(choices=names, default=names[0])] if len(names) > 1 else []
    if any("gamma" in kernel.parameters for kernel in kind.kernels):
        found.append(_GAMMA)
    if len(kind.variants) > 1:
        usual = {kind.usual(name) for name in names}
        found.append(
            Option(
                "features",
                str,
                "Variant of the features.",
                kind.variants,
                default=usual.pop() if len(usual) == 1 else None,
            )
        )
    found += {option.name: option for kernel in kind.kernels for option in kernel.options}.values()
    # letter codes, counts and categories must not be scaled
    scaling = (
        SCALING
        if any(kernel.metric and not kernel.scalings for kernel in kind.kernels)
        else SCALING.but(default="none")
    )
    return (*found, N_FEATURES, DTYPE, scaling, SEED)


class MapFeatures(MapTransformer):
    """D random features of a map of rfx.features, divided by the square root of D; a subclass sets
    `map_class`.
    """

    map_class: type[FeatureMap] = FeatureMap

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        counts = any(isinstance(kernel, ChiSquare) for kernel in self.map_class.kernels)
        tags.input_tags.positive_only = counts
        return tags

    def _options(self):
        return map_options(self.map_class)

    def _only_kernel(self):
        return self.map_class.kernels[0].name

    def _learn(self, X, p, params):
        kernel = p["kernel"]
        variant = p.get("features") or self.map_class.usual(kernel)
        self.map_class.check_variant(kernel, p["n_features"], variant)
        options = {"dtype": np.dtype(p["dtype"]), "variant": variant}
        return sample(kernel, X.shape[1], p["n_features"], p["seed"], **options, **params).fit(
            X, variant
        )

    def _features(self, X):
        Z = self.map_.transform(X)
        Z *= Z.dtype.type(self._n_features_out**-0.5)
        return Z


class FourierFeatures(MapFeatures):
    """Random Fourier features.

    For exp(-gamma ||x-y||_2^2) (gaussian), exp(-gamma ||x-y||_1) (laplacian) and exp(-gamma
    ||x-y||_2) (laplacian-l2).

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "laplacian-l2"}, default="gaussian"
        The kernel.
    gamma : float or {"paper", "median"}, default="median"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances.
    features : {"offset", "pairs", "orthogonal", "quasi", "hadamard"}, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence.
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import FourierFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> FourierFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = FourierMap

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "median",
        features: str = "offset",
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class MaternFeatures(MapFeatures):
    """Fourier features of the Matern kernels.

    matern-3/2: (1 + s) exp(-s), s = sqrt3 gamma ||x-y||_2; matern-5/2: (1 + s + s^2/3) exp(-s), s =
    sqrt5 gamma ||x-y||_2.

    Parameters
    ----------
    kernel : {"matern-3/2", "matern-5/2"}, default="matern-3/2"
        The kernel.
    gamma : float or {"paper", "median"}, default="median"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances.
    features : {"offset", "pairs", "orthogonal", "quasi", "hadamard"}, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence.
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import MaternFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> MaternFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = MaternMap

    def __init__(
        self,
        *,
        kernel: str = "matern-3/2",
        gamma: float | str = "median",
        features: str = "offset",
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class MixtureFeatures(MapFeatures):
    """Fourier features of mixtures of Gaussian kernels.

    rational-quadratic: (1 + gamma ||x-y||_2^2 / rq_alpha)^-rq_alpha; multiscale: the mean of
    exp(-s gamma ||x-y||_2^2) over s = 1/16, 1/4, 1, 4, 16.


    Parameters
    ----------
    kernel : {"rational-quadratic", "multiscale"}, default="rational-quadratic"
        The kernel.
    gamma : float or {"paper", "median"}, default="median"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances.
    features : {"offset", "pairs", "orthogonal", "quasi", "hadamard"}, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence.
    rq_alpha : float, default=1.0
        Exponent of kernel rational-quadratic; the smaller it is, the more length scales the kernel
        mixes.
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import MixtureFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> MixtureFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = MixtureMap

    def __init__(
        self,
        *,
        kernel: str = "rational-quadratic",
        gamma: float | str = "median",
        features: str = "offset",
        rq_alpha: float = 1.0,
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class AdditiveChi2Features(MapFeatures):
    """Random features of the additive chi-square kernel, for inputs of 0 or more.

    sqrt(2 d x_m) cos(w log x_m + b) for the kernel sum_j 2 x_j y_j / (x_j + y_j); the d inputs take
    turns.


    Parameters
    ----------
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="none"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Vedaldi and Zisserman, "Efficient Additive Kernels via Explicit Feature Maps", TPAMI 34,
       2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from rfx.estimators import AdditiveChi2Features
    >>> X, _ = load_digits(return_X_y=True)
    >>> AdditiveChi2Features(n_features=100).fit_transform(X).shape
    (1797, 100)
    """

    map_class = AdditiveChi2Map

    def __init__(
        self,
        *,
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "none",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class SkewedChi2Features(MapFeatures):
    """Fourier features of the skewed chi-square kernel, for inputs above -c.

    sqrt2 cos(w.z + b), z_j = log(1 + x_j / c), for the kernel prod_j 2 sqrt((x_j + c)(y_j + c)) /
    (x_j + y_j + 2c), c the skewedness.


    Parameters
    ----------
    features : {"offset", "pairs", "quasi"}, default="offset"
        offset: sqrt2 cos(w.z + b); pairs: cos and sin of the same w; quasi: pairs with w from a
        Sobol sequence.
    skewedness : float or {"median"}, default="median"
        c, in the unit of the inputs; median: half the root of the median of ||x-y||^2.
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="none"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Li, Ionescu and Sminchisescu, "Random Fourier Approximations for Skewed Multiplicative
       Histogram Kernels", DAGM 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from rfx.estimators import SkewedChi2Features
    >>> X, _ = load_digits(return_X_y=True)
    >>> SkewedChi2Features(n_features=100).fit_transform(X).shape
    (1797, 100)
    """

    map_class = SkewedChi2Map

    def __init__(
        self,
        *,
        features: str = "offset",
        skewedness: float | str = "median",
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "none",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class HammingFeatures(MapFeatures):
    """Random signs of codes of categories.

    Products of random signs of the codes of a random subset of the inputs, for the kernel
    exp(-gamma m), m the number of inputs that differ.


    Parameters
    ----------
    gamma : float or {"paper", "median"}, default="median"
        Bandwidth. paper: 1; median: one over the median number of inputs that differ.
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="none"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from rfx.estimators import HammingFeatures
    >>> X, _ = load_digits(return_X_y=True)
    >>> HammingFeatures(n_features=100).fit_transform(X).shape
    (1797, 100)
    """

    map_class = HammingMap

    def __init__(
        self,
        *,
        gamma: float | str = "median",
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "none",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class DotProductFeatures(MapFeatures):
    """Random features of dot-product kernels.

    The kernels are (1 + gamma x.y)^p and exp(gamma x.y), gamma up to 2.

    Parameters
    ----------
    kernel : {"polynomial-2", "polynomial-3", "exponential"}, default="polynomial-2"
        The kernel.
    gamma : float or {"paper", "median"}, default="median"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances.
    features : {"sketch", "signs"}, default=None
        sketch: TensorSketch, the default for the polynomial kernels; signs: products of random
        signs with the row, the only ones of exponential.
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Kar and Karnick, "Random Feature Maps for Dot Product Kernels", AISTATS 2012.
    .. [2] Pham and Pagh, "Fast and Scalable Polynomial Kernels via Explicit Feature Maps", KDD
       2013.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import DotProductFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> DotProductFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = DotProductMap

    def __init__(
        self,
        *,
        kernel: str = "polynomial-2",
        gamma: float | str = "median",
        features: str | None = None,
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class ArcCosineFeatures(MapFeatures):
    """Arc-cosine features.

    sqrt2 H(w.x) (w.x)^order: one hidden layer of threshold, ramp or squared-ramp units.

    Parameters
    ----------
    kernel : {"arccosine-0", "arccosine-1", "arccosine-2"}, default="arccosine-0"
        The kernel.
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Cho and Saul, "Kernel Methods for Deep Learning", NIPS 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import ArcCosineFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> ArcCosineFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = ArcCosineMap

    def __init__(
        self,
        *,
        kernel: str = "arccosine-0",
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class PerceptronFeatures(MapFeatures):
    """Random perceptrons.

    sqrt(R/c_d) sign(theta.x - a), theta uniform on the sphere, a from -R to R, of the kernel R/c_d
    - ||x-y||_2 in a ball of radius R.

    Parameters
    ----------
    features : {"offset", "range"}, default="offset"
        offset: thresholds over the whole ball; range: within the range of the training rows.
    perceptron_scale : {"kernel", "unit"}, default="kernel"
        Scale of the perceptron kernel: R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y||
        (unit).
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Lin and Li, "Support Vector Machinery for Infinite Ensemble Learning", JMLR 9, 2008.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import PerceptronFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> PerceptronFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = PerceptronMap

    def __init__(
        self,
        *,
        features: str = "offset",
        perceptron_scale: str = "kernel",
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class StumpFeatures(MapFeatures):
    """Random decision stumps.

    sign(x_j - a) for the kernel 1 - 2 ||x-y||_1 / (sum of ranges); column j is drawn with
    probability proportional to its range.

    Parameters
    ----------
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    References
    ----------
    .. [1] Lin and Li, "Support Vector Machinery for Infinite Ensemble Learning", JMLR 9, 2008.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import StumpFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> StumpFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = StumpMap

    def __init__(
        self,
        *,
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class CoordinateFeatures(MapFeatures):
    """Random coordinates of the inputs.

    sqrt(d) x_m for the linear kernel x.y. Sparse rows stay sparse unless the features are requested
    as an array.

    Parameters
    ----------
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import CoordinateFeatures
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> CoordinateFeatures(n_features=100).fit_transform(X).shape
    (569, 100)
    """

    map_class = CoordinateMap

    def __init__(
        self,
        *,
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class KmerFeatures(MapFeatures):
    """Random words of sequences as features.

    Indicators of word v at position p of the sequence, for words of 1 to k letters. Inputs are
    letter codes, one column per position.

    Parameters
    ----------
    k : int, default=5
        Maximum word length (kernel kmers).
    n_features : int, default=1000
        Number D of random features.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    scaling : str, default="none"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

    Examples
    --------
    >>> import numpy as np
    >>> from rfx.estimators import KmerFeatures
    >>> sequences = np.array([list(b"ACGT"), list(b"ACGA"), list(b"TTGA")])
    >>> KmerFeatures(k=2, n_features=5).fit_transform(sequences).shape
    (3, 5)
    """

    map_class = KmerMap

    def __init__(
        self,
        *,
        k: int = 5,
        n_features: int = 1000,
        dtype: str = "float32",
        scaling: str = "none",
        seed: int = 0,
    ) -> None:
        self._store(locals())


class RandomBinning(MapTransformer):
    """A feature for every bin of R random grids that contains a training row.

    A row has 1/sqrt(R) in at most R features; features are a sparse matrix.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel.
    gamma : float or {"paper", "median"}, default="median"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances.
    n_grids : int, default=256
        Number R of random grids; each row falls into one bin of each grid.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    def __init__(
        self,
        *,
        kernel: str = "laplacian",
        gamma: float | str = "median",
        n_grids: int = 256,
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())

    def _options(self):
        return _OF_BINNING

    def _learn(self, X, p, params):
        return BinMap.learn(p["kernel"], X, p["n_grids"], p["seed"], **params)

    def _width(self):
        return int(self.map_.bins.starts[-1])

    def _features(self, X):
        return self.map_.grids.transform(X, self.map_.bins)


class NystromFeatures(MapTransformer):
    """Features whose inner product is the kernel's Nystrom approximation by landmarks.

    K_nm K_mm^-1 K_mn, from the kernel's values with at most D landmarks.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods nystrom`.
    gamma : float or {"paper", "median"}, default="median"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances.
    landmarks : {"uniform", "kmeans", "rpcholesky"}, default="uniform"
        Random rows, k-means centres, or pivots of randomly pivoted Cholesky.
    n_features : int, default=1000
        Number D of landmarks; linearly dependent ones are dropped.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile.
    seed : int, default=0
        Random seed; the same seed gives the same model.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "median",
        landmarks: str = "uniform",
        n_features: int = 1000,
        dtype: str = "float64",
        max_memory: float | None = None,
        scaling: str = "minmax01",
        seed: int = 0,
    ) -> None:
        self._store(locals())

    def _options(self):
        return _OF_NYSTROM

    def _learn(self, X, p, params):
        limit = p["max_memory"] or default_memory_mb()
        landmarks = choose_landmarks(
            p["landmarks"], p["kernel"], X, params, p["n_features"], p["seed"], limit
        )
        return NystromMap(p["kernel"], landmarks, params, p["dtype"])


class SparseRandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MethodEstimator):
    """The random features selected by sparse-rf.

    Selects unscaled features by the targets, for use before any model. Classes and numbers are
    distinguished like in scikit-learn's `type_of_target`.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods sparse-rf`. auto: laplacian-l2,
        laplacian or gaussian on held-out rows, gaussian if gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    features : str, default="offset"
        Variant of the kernel's features. offset: sqrt2 cos(w.x + b), or thresholds over the whole
        ball; pairs: cos and sin of one w; orthogonal: pairs with w orthogonal in blocks; hadamard:
        the same with fast products; quasi: pairs with w from a Sobol sequence; range: thresholds
        that separate training rows; sketch: TensorSketch, for polynomial kernels their default;
        signs: products of random signs.
    n_features : int, default=1000
        Number D of random features.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    choose : {"leverage"}, default=None
        leverage: sample the features from a pool by their ridge leverage on the training rows.
    pool : int, default=None
        Number of features in the pool of choose; by default 10 for each selected feature.
    lam : float or {"validation", "match-rf", "auto"}, default="auto"
        Weight of lam ||w||_1. validation: the best of 1000, 100, 10, 1 on held-out rows, for
        regression of multiples of the targets' range; match-rf: the one whose held-out error is
        closest to rf's. auto: validation on at most 10,000 rows.
    solver : {"rfx", "liblinear", "prcd"}, default="rfx"
        rfx's own, parallel randomised coordinate descent, or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for LIBLINEAR, its `-e`.
    rounds : int, default=10
        Rounds T of Algorithm 1; each draws D/T new features.
    k : int, default=None
        Maximum word length (kernel kmers).
    perceptron_scale : {"kernel", "unit"}, default=None
        Scale of the perceptron kernel: R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y||
        (unit).
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows, minmax01 if gamma is a
        number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none if gamma is a number.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are tried.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or to mean 0.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    map_ : object
        The feature map (rfx.features).
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling of the inputs.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "sparse-rf"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        features: str = "offset",
        n_features: int = 1000,
        loss: str | None = None,
        max_iter: int | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
        choose: str | None = None,
        pool: int | None = None,
        lam: float | str = "auto",
        solver: str = "rfx",
        tol: float | None = None,
        rounds: int = 10,
        k: int | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        target_scaling: str = "none",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.target_tags.required = True
        return tags

    def fit(self, X, y):
        """Train the method and store the features of its model.

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
        task, X, y = _task_of(self, X, y)
        self._train(task, X, y)
        self.map_, self.scaler_ = self.method_.model.map, self.method_.preprocessing.scaler
        self._n_features_out = self.map_.n_features
        if not self._n_features_out:
            warnings.warn(
                f"{type(self).__name__} has no features left, because all weights are zero; reduce"
                " lam",
                stacklevel=2,
            )
        return self

    def transform(self, X):
        """Compute the selected features of rows.

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


class LearnedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Parametrised):
    """Scales inputs and maps them by a metric learnt from the targets, for any estimator.

    A kernel machine is fitted, and the average outer product of its gradients becomes the metric of
    the next one (recursive feature machines). Euclidean distances of the mapped rows are those of
    the metric. If no metric reduces the error on held-out rows, the rows are only scaled.

    Parameters
    ----------
    kernel : str, default="auto"
        The kernel of the machines: auto, laplacian-l2, laplacian, gaussian, matern-3/2 or
        matern-5/2.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        diagonal: a weight for each input; full: a matrix; auto: the best of the others on held-out
        rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    seed : int, default=0
        Seed of the held-out rows.

    Attributes
    ----------
    scaler_ : rfx.data.transforms.scaling.Scaler
        The scaling and the metric of the inputs.
    feature_importances_ : ndarray of shape (n_features,)
        Each scaled input's share of the trace of the metric, its average squared gradient; they sum
        to 1, and are equal without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    def __init__(
        self,
        *,
        kernel: str = "auto",
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _options(self) -> tuple[Option, ...]:
        declared = RFM.declared()
        return tuple(
            declared[name] for name in ("kernel", "scaling", "metric", "metric_steps", "seed")
        )

    def fit(self, X, y):
        """Learn the scaling and the metric.

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
        task, X, y = _task_of(self, X, y)
        with in_python():
            trainer = create("rfm", task=task, **self._asked())
            begun = begin(trainer, X, y)
        self.scaler_ = begun.preprocessing.scaler
        metric = self.scaler_.metric
        count = self.n_features_in_
        self.feature_importances_ = np.full(count, 1 / count) if metric is None else metric.shares()
        self._n_features_out = count
        return self

    def transform(self, X):
        """Map rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or csr_matrix for rows that stay sparse
        """
        check_is_fitted(self)
        X = checked(self, X, reset=False)
        with in_python():
            return self.scaler_.transform(X)


def _task_of(estimator, X, y):
    """(task, rows, encoded targets (n,)) of rows and labels or numbers."""
    classes = classes_of(y)
    X, y = checked(estimator, X, y, y_numeric=not classes)
    if not classes:
        return "regression", X, np.asarray(y, np.float64)
    labels, y = np.unique(y, return_inverse=True)
    return "binary" if len(labels) <= 2 else "multiclass", X, np.asarray(y, np.float64)
