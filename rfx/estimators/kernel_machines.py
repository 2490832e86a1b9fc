"""The exact kernel machine, and its approximations by landmarks and blocks."""

from rfx.estimators.weighted import WeightedClassifier, WeightedRegressor
from rfx.methods.block import Block
from rfx.methods.kernel import Kernel
from rfx.methods.local import Local
from rfx.methods.nystrom import Nystrom
from rfx.methods.rfm import RFM


class KernelClassifier(WeightedClassifier, method=Kernel):
    """The exact kernel machine (classification).

    lam/2 ||f||^2 + sum L(f(x), y). The loss selects ridge regression, a support vector machine or
    kernel logistic regression.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import KernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier(gamma="median", lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class KernelRegressor(WeightedRegressor, method=Kernel):
    """The exact kernel machine (regression).

    lam/2 ||f||^2 + sum L(f(x), y). The loss selects ridge regression or a support vector machine.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRegressor(gamma="median", lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.6...
    """


class NystromClassifier(WeightedClassifier, method=Nystrom):
    """The kernel machine approximated from landmarks (classification).

    lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)' K_mm^-1 k_m(y) over at most D
    landmarks.

    References
    ----------
    .. [1] Williams and Seeger, "Using the Nystrom Method to Speed Up Kernel Machines", NIPS 2000.
    .. [2] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import NystromClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NystromClassifier(gamma="median", n_features=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class NystromRegressor(WeightedRegressor, method=Nystrom):
    """The kernel machine approximated from landmarks (regression).

    lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)' K_mm^-1 k_m(y) over at most D
    landmarks.

    References
    ----------
    .. [1] Williams and Seeger, "Using the Nystrom Method to Speed Up Kernel Machines", NIPS 2000.
    .. [2] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import NystromRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NystromRegressor(gamma="median", n_features=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class BlockClassifier(WeightedClassifier, method=Block):
    """The exact kernel machine within each part of a random partition (classification).

    lam/2 ||f||^2 + sum L(f(x), y) in each block of rows; the kernel between blocks is 0.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import BlockClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BlockClassifier(gamma="median", block_size=200, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class BlockRegressor(WeightedRegressor, method=Block):
    """The exact kernel machine within each part of a random partition (regression).

    lam/2 ||f||^2 + sum L(f(x), y) in each block of rows; the kernel between blocks is 0.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import BlockRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BlockRegressor(gamma="median", block_size=200, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.6...
    """


class RFMClassifier(WeightedClassifier, method=RFM):
    """The recursive feature machine (classification).

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


class RFMRegressor(WeightedRegressor, method=RFM):
    """The recursive feature machine (regression).

    Kernel ridge regression with a metric of the inputs learnt from the gradients of the machine.
    Scaling, kernel, metric, bandwidth and lambda are chosen on held-out rows.

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


class LocalClassifier(WeightedClassifier, method=Local):
    """Exact kernel machines in the leaves of a tree (classification).

    Medians along principal directions split the rows; each leaf has a kernel ridge machine whose
    lambda and metric are chosen by leave-one-out. The cost grows linearly with the number of rows.

    References
    ----------
    .. [1] Beaglehole, Holzmüller, Radhakrishnan and Belkin, "xRFM: Accurate, scalable, and
       interpretable feature learning models for tabular data", 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import LocalClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LocalClassifier(leaf_rows=200, scaling="standard", metric="none").fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class LocalRegressor(WeightedRegressor, method=Local):
    """Exact kernel machines in the leaves of a tree (regression).

    Medians along principal directions split the rows; each leaf has a kernel ridge machine whose
    lambda and metric are chosen by leave-one-out. The cost grows linearly with the number of rows.

    References
    ----------
    .. [1] Beaglehole, Holzmüller, Radhakrishnan and Belkin, "xRFM: Accurate, scalable, and
       interpretable feature learning models for tabular data", 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import LocalRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LocalRegressor(leaf_rows=200, scaling="standard", metric="none").fit(X, y)
    >>> model.score(X, y)
    0...
    """
