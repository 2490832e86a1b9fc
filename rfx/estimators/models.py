"""The methods as classifiers and regressors, and those of other packages."""

import functools
import inspect
import types

from rfx import methods
from rfx.estimators.base import Classifier, MethodEstimator, Regressor
from rfx.estimators.transformers import MapFeatures
from rfx.features import MAPS

# ----------------------------------------------------------------------
# The methods as classifiers and regressors, one pair for each.
#
# The docstring of a classifier is also that of its regressor. `example` has the parameters for an
# example.


class AutoClassifier(Classifier, method="auto"):
    """The scaling, kernel and metric with the lowest leave-one-out error, for tables of any size.

    Up to 5,000 rows, an exact kernel machine or the mean of two; above that, local kernel machines.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfx.estimators import AutoClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoClassifier(scaling="standard", metric="none").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.9...
    """


class AutoRegressor(Regressor, method="auto"):
    """The scaling, kernel and metric with the lowest leave-one-out error, for tables of any size.

    Up to 5,000 rows, an exact kernel machine or the mean of two; above that, local kernel machines.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import AutoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AutoRegressor(scaling="standard", metric="none").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.4...
    """


class RFClassifier(Classifier, method="rf", example='gamma="median", n_features=200, lam=1.0'):
    """Random features with L2 regularisation.

    Approximates the kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y) over D random features z whose
    inner product estimates the kernel.

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.
    """


class RFRegressor(Regressor, method="rf", example='gamma="median", n_features=200, lam=1.0'):
    """Regression by the method of `RFClassifier`."""


class SparseRFClassifier(
    Classifier, method="sparse-rf", example='gamma="median", n_features=200, lam=3.0'
):
    """Random features with L1 regularisation: a small model.

    lam ||w||_1 + sum L(w.phi(x), y) over unscaled random features phi, drawn in rounds; only
    features with nonzero weight remain in the model.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.
    """


class SparseRFRegressor(
    Regressor, method="sparse-rf", example='gamma="median", n_features=200, lam=100.0'
):
    """Regression by the method of `SparseRFClassifier`."""


class LKRFClassifier(
    Classifier, method="lkrf", example='gamma="median", n_features=200, pool=1000'
):
    """Random features selected from a pool by their alignment with the targets.

    Learns the kernel: among the distributions near the uniform one, that with the largest alignment
    selects the features.

    References
    ----------
    .. [1] Sinha and Duchi, "Learning Kernels with Random Features", NIPS 2016.
    """


class LKRFRegressor(Regressor, method="lkrf", example='gamma="median", n_features=200, pool=1000'):
    """Regression by the method of `LKRFClassifier`."""


class BoostingClassifier(Classifier, method="boosting", example='n_features=20, kernel="stump"'):
    """Features found greedily, with L1 regularisation.

    Fully corrective boosting: each step adds the best features and fits all weights again.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.
    """


class BoostingRegressor(
    Regressor, method="boosting", example='n_features=40, kernel="stump", lam=100.0'
):
    """Regression by the method of `BoostingClassifier`."""


class RBClassifier(Classifier, method="rb", example='gamma="median", n_grids=100, lam=1.0'):
    """Random binning features with L2 regularisation.

    Approximates the Laplacian kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y), where z is
    1/sqrt(R) in one bin of each of R grids.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.
    """


class RBRegressor(Regressor, method="rb", example='gamma="median", n_grids=100, lam=1.0'):
    """Regression by the method of `RBClassifier`."""


class SparseRBClassifier(
    Classifier, method="sparse-rb", example='gamma="median", n_grids=100, lam=1.0'
):
    """Random binning features with L1 regularisation: a small model.

    lam ||w||_1 + sum L(w.z(x), y), where z is 1/sqrt(R) in one bin of each of R grids; only bins
    with nonzero weight remain in the model.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.
    """


class SparseRBRegressor(
    Regressor, method="sparse-rb", example='gamma="median", n_grids=100, lam=100.0'
):
    """Regression by the method of `SparseRBClassifier`."""


class KernelClassifier(Classifier, method="kernel", example='gamma="median", lam=1.0'):
    """The exact kernel machine.

    lam/2 ||f||^2 + sum L(f(x), y). The loss selects ridge regression, a support vector machine or
    kernel logistic regression.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.
    """


class KernelRegressor(Regressor, method="kernel", example='gamma="median", lam=1.0'):
    """Regression by the method of `KernelClassifier`."""


class NystromClassifier(
    Classifier, method="nystrom", example='gamma="median", n_features=100, lam=1.0'
):
    """The kernel machine approximated from landmarks.

    lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)' K_mm^-1 k_m(y) over at most D
    landmarks.

    References
    ----------
    .. [1] Williams and Seeger, "Using the Nystrom Method to Speed Up Kernel Machines", NIPS 2000.
    .. [2] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.
    """


class NystromRegressor(
    Regressor, method="nystrom", example='gamma="median", n_features=100, lam=1.0'
):
    """Regression by the method of `NystromClassifier`."""


class BlockClassifier(
    Classifier, method="block", example='gamma="median", block_size=200, lam=1.0'
):
    """The exact kernel machine within each part of a random partition.

    lam/2 ||f||^2 + sum L(f(x), y) in each block of rows; the kernel between blocks is 0.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.
    """


class BlockRegressor(Regressor, method="block", example='gamma="median", block_size=200, lam=1.0'):
    """Regression by the method of `BlockClassifier`."""


class RFMClassifier(Classifier, method="rfm"):
    """The recursive feature machine.

    Kernel ridge regression on targets +-1, one column per class, with a metric of the inputs learnt
    from the gradients of the machine. Scaling, kernel, metric, bandwidth and lambda are chosen on
    held-out rows.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit and Belkin, "Mechanism for feature learning in neural
       networks and backpropagation-free machine learning models", Science 383, 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfx.estimators import RFMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RFMClassifier(kernel="laplacian").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.9...
    """


class RFMRegressor(Regressor, method="rfm"):
    """The recursive feature machine.

    Kernel ridge regression with a metric of the inputs learnt from the gradients of the machine.
    Scaling, kernel, metric, bandwidth and lambda are chosen by leave-one-out.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit and Belkin, "Mechanism for feature learning in neural
       networks and backpropagation-free machine learning models", Science 383, 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import RFMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RFMRegressor(kernel="laplacian").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.4...
    """


class LocalClassifier(
    Classifier, method="local", example='leaf_rows=200, scaling="standard", metric="none"'
):
    """Exact kernel machines in the leaves of a tree.

    Medians along principal directions split the rows; each leaf has a kernel ridge machine whose
    lambda and metric are chosen by leave-one-out. The cost grows linearly with the number of rows.

    References
    ----------
    .. [1] Beaglehole, Holzmüller, Radhakrishnan and Belkin, "xRFM: Accurate, scalable, and
       interpretable feature learning models for tabular data", 2025.
    """


class LocalRegressor(
    Regressor, method="local", example='leaf_rows=200, scaling="standard", metric="none"'
):
    """Regression by the method of `LocalClassifier`."""


class DoublySGDClassifier(
    Classifier,
    method="doubly-sgd",
    example='gamma="median", block=64, batch=64, nu=1e-4, epochs=10',
):
    """Doubly stochastic gradients.

    Every step uses random rows and new random features, which are recomputed from the seed when
    needed. So the number of rows is unlimited.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class DoublySGDRegressor(
    Regressor, method="doubly-sgd", example='gamma="median", block=64, batch=64, nu=1e-4, epochs=10'
):
    """Regression by the method of `DoublySGDClassifier`."""


class NormaClassifier(Classifier, method="norma", example='gamma="median", batch=16, nu=1e-4'):
    """Stochastic gradients with the exact kernel, storing the rows.

    doubly-sgd without random features.

    References
    ----------
    .. [1] Kivinen, Smola and Williamson, "Online Learning with Kernels", IEEE Trans. Signal
       Process. 52, 2004.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class NormaRegressor(
    Regressor, method="norma", example='gamma="median", batch=16, nu=1e-4, epochs=5'
):
    """Regression by the method of `NormaClassifier`."""


class KSDCAClassifier(Classifier, method="k-sdca", example='gamma="median", epochs=5, nu=1e-3'):
    """Dual coordinate ascent with the exact kernel, storing the rows.

    nu/2 ||f||^2 + mean L(f(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class KSDCARegressor(Regressor, method="k-sdca", example='gamma="median", epochs=5, nu=1e-3'):
    """Regression by the method of `KSDCAClassifier`."""


class NSDCAClassifier(
    Classifier, method="n-sdca", example='gamma="median", n_features=100, epochs=5, nu=1e-3'
):
    """Dual coordinate ascent on Nystrom features.

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class NSDCARegressor(
    Regressor, method="n-sdca", example='gamma="median", n_features=100, epochs=5, nu=1e-3'
):
    """Regression by the method of `NSDCAClassifier`."""


class RSDCAClassifier(Classifier, method="r-sdca", example='gamma="median", epochs=5, nu=1e-3'):
    """Dual coordinate ascent on random features.

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss
       Minimization", JMLR 14, 2013.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class RSDCARegressor(Regressor, method="r-sdca", example='gamma="median", epochs=5, nu=1e-3'):
    """Regression by the method of `RSDCAClassifier`."""


class NPegasosClassifier(
    Classifier, method="n-pegasos", example='gamma="median", n_features=100, batch=16, nu=1e-3'
):
    """Pegasos on Nystrom features.

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    References
    ----------
    .. [1] Shalev-Shwartz, Singer and Srebro, "Pegasos: Primal Estimated sub-GrAdient SOlver for
       SVM", ICML 2007.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class NPegasosRegressor(
    Regressor,
    method="n-pegasos",
    example='gamma="median", nu=1e-2, epochs=20, loss="epsilon_insensitive",'
    ' target_scaling="minmax01"',
):
    """Regression by the method of `NPegasosClassifier`."""


class RPegasosClassifier(
    Classifier, method="r-pegasos", example='gamma="median", batch=16, nu=1e-3'
):
    """Pegasos on random features.

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    References
    ----------
    .. [1] Shalev-Shwartz, Singer and Srebro, "Pegasos: Primal Estimated sub-GrAdient SOlver for
       SVM", ICML 2007.
    .. [2] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class RPegasosRegressor(
    Regressor,
    method="r-pegasos",
    example='gamma="median", nu=1e-2, epochs=20, loss="epsilon_insensitive",'
    ' target_scaling="minmax01"',
):
    """Regression by the method of `RPegasosClassifier`."""


class MLPClassifier(Classifier, method="mlp", example="epochs=20, batch=16, rate=1e-2"):
    """A network of dense layers, trained by Adam on the same batches.

    scikit-learn's multilayer perceptron, the baseline for doubly-sgd.

    References
    ----------
    .. [1] Dai et al., "Scalable Kernel Methods via Doubly Stochastic Gradients", NIPS 2014.
    """


class MLPRegressor(Regressor, method="mlp", example="epochs=20, batch=16, rate=1e-2"):
    """Regression by the method of `MLPClassifier`."""


# ----------------------------------------------------------------------
# Estimator classes for the methods and feature maps of other packages, created from their
# declarations; and the class of a method.


def estimator_class(method: str, task: str) -> type[Classifier] | type[Regressor]:
    """Return the classifier or regressor of a method, including those of plug-ins.

    Parameters
    ----------
    method : str
        Name of the method, such as "sparse-rf".
    task : {"classification", "regression"}
        The task of the class.

    Returns
    -------
    type
        The class of `rfx.estimators`, or one created from the method's declaration.

    Raises
    ------
    rfx.errors.UsageError
        If there is no method of that name.

    Examples
    --------
    >>> from rfx.estimators import estimator_class
    >>> estimator_class("sparse-rf", "regression").__name__
    'SparseRFRegressor'
    """
    name = methods.get(method).name
    if (name, task) not in MethodEstimator.classes:
        added()
    return MethodEstimator.classes[name, task]


@functools.cache
def added() -> dict[str, type]:
    """The classes of other packages by name: KNNClassifier for a method declared by a class KNN or
    KNNMethod, KNNFeatures for a map KNNMap.
    """
    classes = {}
    for name, method in methods.METHODS.items():
        if methods.METHODS.package_of(name) is not None:
            stem = method.__name__.removesuffix("Method")
            about = method.summary[:1].upper() + method.summary[1:]
            for base in (Classifier, Regressor):
                classes[f"{stem}{base.__name__}"] = (base,), {"method": name}, f"{about}.", method
    for kernel, kind in MAPS.items():
        if MAPS.package_of(kernel) is not None:
            text = "Random features whose inner product estimates the kernel."
            name = f"{kind.__name__.removesuffix('Map')}Features"
            classes[name] = (MapFeatures,), {"map": kernel}, text, kind
    return {name: _new(name, *parts) for name, parts in classes.items()}


def _new(name: str, bases: tuple[type, ...], arguments: dict, about: str, kind: type) -> type:
    doc = f"{about}\n\n{inspect.cleandoc(kind.__doc__ or '')}"
    body = {"__doc__": doc, "__module__": "rfx.estimators", "__qualname__": name}
    return types.new_class(name, bases, arguments, lambda space: space.update(body))
