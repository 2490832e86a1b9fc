"""The methods as classifiers and regressors, one pair for each."""

from rfx.estimators.base import Classifier, Regressor, Unweighted


class AutoClassifier(Classifier, method="auto"):
    """The method, scaling, kernel and metric with the lowest leave-one-out error (classification).

    Up to 8,000 rows, the recursive feature machine or a support vector machine with the same
    inputs; above that, local kernel machines.

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
    """The method, scaling, kernel and metric with the lowest leave-one-out error (regression).

    Up to 8,000 rows, the recursive feature machine; above that, local kernel machines.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import AutoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AutoRegressor(scaling="standard", metric="none").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.4...
    """


class RFClassifier(Classifier, method="rf"):
    """Random features with L2 regularisation (classification).

    Approximates the kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y) over D random features z whose
    inner product estimates the kernel.

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import RFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RFClassifier(gamma="median", n_features=200, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class RFRegressor(Regressor, method="rf"):
    """Random features with L2 regularisation (regression).

    Approximates the kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y) over D random features z whose
    inner product estimates the kernel.

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    .. [2] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import RFRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RFRegressor(gamma="median", n_features=200, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class SparseRFClassifier(Classifier, method="sparse-rf"):
    """Random features with L1 regularisation: a small model (classification).

    lam ||w||_1 + sum L(w.phi(x), y) over unscaled random features phi, drawn in rounds; only
    features with nonzero weight remain in the model.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import SparseRFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseRFClassifier(gamma="median", n_features=200, lam=3.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class SparseRFRegressor(Regressor, method="sparse-rf"):
    """Random features with L1 regularisation: a small model (regression).

    lam ||w||_1 + sum L(w.phi(x), y) over unscaled random features phi, drawn in rounds; only
    features with nonzero weight remain in the model.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import SparseRFRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseRFRegressor(gamma="median", n_features=200, lam=100.0).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class LKRFClassifier(Classifier, method="lkrf"):
    """Random features selected from a pool by their alignment with the targets (classification).

    Learns the kernel: among the distributions near the uniform one, that with the largest alignment
    selects the features.

    References
    ----------
    .. [1] Sinha and Duchi, "Learning Kernels with Random Features", NIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import LKRFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LKRFClassifier(gamma="median", n_features=200, pool=1000).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class LKRFRegressor(Regressor, method="lkrf"):
    """Random features selected from a pool by their alignment with the targets (regression).

    Learns the kernel: among the distributions near the uniform one, that with the largest alignment
    selects the features.

    References
    ----------
    .. [1] Sinha and Duchi, "Learning Kernels with Random Features", NIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import LKRFRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LKRFRegressor(gamma="median", n_features=200, pool=1000).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class BoostingClassifier(Classifier, method="boosting"):
    """Features found greedily, with L1 regularisation (classification).

    Fully corrective boosting: each step adds the best features and fits all weights again.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import BoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BoostingClassifier(n_features=20, kernel="stump").fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class BoostingRegressor(Regressor, method="boosting"):
    """Features found greedily, with L1 regularisation (regression).

    Fully corrective boosting: each step adds the best features and fits all weights again.

    References
    ----------
    .. [1] Yen et al., "Sparse Random Feature Algorithm as Coordinate Descent in Hilbert Space",
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import BoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostingRegressor(n_features=40, kernel="stump", lam=100.0).fit(X, y)
    >>> model.score(X, y)
    0.6...
    """


class RBClassifier(Classifier, method="rb"):
    """Random binning features with L2 regularisation (classification).

    Approximates the Laplacian kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y), where z is
    1/sqrt(R) in one bin of each of R grids.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import RBClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RBClassifier(gamma="median", n_grids=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class RBRegressor(Regressor, method="rb"):
    """Random binning features with L2 regularisation (regression).

    Approximates the Laplacian kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y), where z is
    1/sqrt(R) in one bin of each of R grids.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import RBRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RBRegressor(gamma="median", n_grids=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.6...
    """


class SparseRBClassifier(Classifier, method="sparse-rb"):
    """Random binning features with L1 regularisation: a small model (classification).

    lam ||w||_1 + sum L(w.z(x), y), where z is 1/sqrt(R) in one bin of each of R grids; only bins
    with nonzero weight remain in the model.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rfx.estimators import SparseRBClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseRBClassifier(gamma="median", n_grids=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """


class SparseRBRegressor(Regressor, method="sparse-rb"):
    """Random binning features with L1 regularisation: a small model (regression).

    lam ||w||_1 + sum L(w.z(x), y), where z is 1/sqrt(R) in one bin of each of R grids; only bins
    with nonzero weight remain in the model.

    References
    ----------
    .. [1] Wu et al., "Revisiting Random Binning Features: Fast Convergence and Strong
       Parallelizability", KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import SparseRBRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseRBRegressor(gamma="median", n_grids=100, lam=100.0).fit(X, y)
    >>> model.score(X, y)
    0.5...
    """


class KernelClassifier(Classifier, method="kernel"):
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


class KernelRegressor(Regressor, method="kernel"):
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


class NystromClassifier(Classifier, method="nystrom"):
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


class NystromRegressor(Regressor, method="nystrom"):
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


class BlockClassifier(Classifier, method="block"):
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


class BlockRegressor(Regressor, method="block"):
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
    0.7...
    """


class RFMClassifier(Classifier, method="rfm"):
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


class RFMRegressor(Regressor, method="rfm"):
    """The recursive feature machine (regression).

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


class LocalClassifier(Classifier, method="local"):
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


class LocalRegressor(Regressor, method="local"):
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


class DoublySGDClassifier(Classifier, method="doubly-sgd"):
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


class DoublySGDRegressor(Regressor, method="doubly-sgd"):
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


class NormaClassifier(Classifier, method="norma"):
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


class NormaRegressor(Regressor, method="norma"):
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


class KSDCAClassifier(Classifier, method="k-sdca"):
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


class KSDCARegressor(Regressor, method="k-sdca"):
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


class NSDCAClassifier(Classifier, method="n-sdca"):
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


class NSDCARegressor(Regressor, method="n-sdca"):
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


class RSDCAClassifier(Classifier, method="r-sdca"):
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


class RSDCARegressor(Regressor, method="r-sdca"):
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


class NPegasosClassifier(Classifier, method="n-pegasos"):
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


class NPegasosRegressor(Regressor, method="n-pegasos"):
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


class RPegasosClassifier(Classifier, method="r-pegasos"):
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


class RPegasosRegressor(Regressor, method="r-pegasos"):
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


class MLPClassifier(Unweighted, Classifier, method="mlp"):  # type: ignore[misc]
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


class MLPRegressor(Unweighted, Regressor, method="mlp"):  # type: ignore[misc]
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
