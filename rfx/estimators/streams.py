"""Methods that learn from batches of rows, including those of Dai et al."""

from rfx.estimators.base import Classifier, Regressor
from rfx.estimators.incremental import IncrementalClassifier, IncrementalRegressor
from rfx.estimators.weighted import ManyTargets, WeightedClassifier
from rfx.methods.doubly_sgd import DoublySgd
from rfx.methods.k_sdca import KSdca
from rfx.methods.mlp import Mlp
from rfx.methods.n_pegasos import NPegasos
from rfx.methods.n_sdca import NSdca
from rfx.methods.norma import NormaMethod
from rfx.methods.r_pegasos import RPegasos
from rfx.methods.r_sdca import RSdca


class DoublySGDClassifier(IncrementalClassifier, method=DoublySgd):
    """Doubly stochastic gradients (classification).

    Every step uses random rows and new random features, which are recomputed from the seed when
    needed. So the number of rows is unlimited.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import DoublySGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DoublySGDClassifier(gamma="median", block=64, batch=64, nu=1e-4, epochs=10)
    >>> model.fit(X, y).score(X, y)
    0.9...
    """


class DoublySGDRegressor(IncrementalRegressor, method=DoublySgd):
    """Doubly stochastic gradients (regression).

    Every step uses random rows and new random features, which are recomputed from the seed when
    needed. So the number of rows is unlimited.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import DoublySGDRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DoublySGDRegressor(gamma="median", block=64, batch=64, nu=1e-4, epochs=10)
    >>> model.fit(X, y).score(X, y)
    0.5...
    """


class NormaClassifier(IncrementalClassifier, method=NormaMethod):
    """Stochastic gradients with the exact kernel, storing the rows (classification).

    doubly-sgd without random features.

    References
    ----------
    .. [1] Kivinen, Smola and Williamson, "Online Learning with Kernels", IEEE Trans. Signal
       Process. 52, 2004.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import NormaClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NormaClassifier(gamma="median", batch=16, nu=1e-4).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class NormaRegressor(IncrementalRegressor, method=NormaMethod):
    """Stochastic gradients with the exact kernel, storing the rows (regression).

    doubly-sgd without random features.

    References
    ----------
    .. [1] Kivinen, Smola and Williamson, "Online Learning with Kernels", IEEE Trans. Signal
       Process. 52, 2004.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import NormaRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NormaRegressor(gamma="median", batch=16, nu=1e-4, epochs=5).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class KSDCAClassifier(WeightedClassifier, method=KSdca):
    """Dual coordinate ascent with the exact kernel, storing the rows (classification).

    nu/2 ||f||^2 + mean L(f(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import KSDCAClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KSDCAClassifier(gamma="median", epochs=5, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class KSDCARegressor(ManyTargets, method=KSdca):
    """Dual coordinate ascent with the exact kernel, storing the rows (regression).

    nu/2 ||f||^2 + mean L(f(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import KSDCARegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KSDCARegressor(gamma="median", epochs=5, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class NSDCAClassifier(WeightedClassifier, method=NSdca):
    """Dual coordinate ascent on Nystrom features (classification).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import NSDCAClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NSDCAClassifier(gamma="median", n_features=100, epochs=5, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class NSDCARegressor(ManyTargets, method=NSdca):
    """Dual coordinate ascent on Nystrom features (regression).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import NSDCARegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NSDCARegressor(gamma="median", n_features=100, epochs=5, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class RSDCAClassifier(WeightedClassifier, method=RSdca):
    """Dual coordinate ascent on random features (classification).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import RSDCAClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RSDCAClassifier(gamma="median", epochs=5, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class RSDCARegressor(ManyTargets, method=RSdca):
    """Dual coordinate ascent on random features (regression).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import RSDCARegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RSDCARegressor(gamma="median", epochs=5, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class NPegasosClassifier(IncrementalClassifier, method=NPegasos):
    """Pegasos on Nystrom features (classification).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    References
    ----------
    .. [1] Shalev-Shwartz, Singer and Srebro, "Pegasos: Primal Estimated sub-GrAdient SOlver for
       SVM", ICML 2007.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import NPegasosClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NPegasosClassifier(gamma="median", n_features=100, batch=16, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class NPegasosRegressor(IncrementalRegressor, method=NPegasos):
    """Pegasos on Nystrom features (regression).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    References
    ----------
    .. [1] Shalev-Shwartz, Singer and Srebro, "Pegasos: Primal Estimated sub-GrAdient SOlver for
       SVM", ICML 2007.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import NPegasosRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NPegasosRegressor(
    ...     gamma="median", nu=1e-2, epochs=20,
    ...     loss="epsilon_insensitive", target_scaling="minmax01",
    ... ).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class RPegasosClassifier(IncrementalClassifier, method=RPegasos):
    """Pegasos on random features (classification).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    References
    ----------
    .. [1] Shalev-Shwartz, Singer and Srebro, "Pegasos: Primal Estimated sub-GrAdient SOlver for
       SVM", ICML 2007.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import RPegasosClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RPegasosClassifier(gamma="median", batch=16, nu=1e-3).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class RPegasosRegressor(IncrementalRegressor, method=RPegasos):
    """Pegasos on random features (regression).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    References
    ----------
    .. [1] Shalev-Shwartz, Singer and Srebro, "Pegasos: Primal Estimated sub-GrAdient SOlver for
       SVM", ICML 2007.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import RPegasosRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RPegasosRegressor(
    ...     gamma="median", nu=1e-2, epochs=20,
    ...     loss="epsilon_insensitive", target_scaling="minmax01",
    ... ).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class MLPClassifier(Classifier, method=Mlp):
    """A network of dense layers, trained by Adam on the same batches (classification).

    scikit-learn's multilayer perceptron, the baseline for doubly-sgd.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import MLPClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MLPClassifier(epochs=20, batch=16, rate=1e-2).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class MLPRegressor(Regressor, method=Mlp):
    """A network of dense layers, trained by Adam on the same batches (regression).

    scikit-learn's multilayer perceptron, the baseline for doubly-sgd.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import MLPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MLPRegressor(epochs=20, batch=16, rate=1e-2).fit(X, y)
    >>> model.score(X, y)
    0.6...
    """
