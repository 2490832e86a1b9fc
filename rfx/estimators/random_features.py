"""Linear machines on random features: drawn, selected by the targets, or found greedily."""

from rfx.estimators.weighted import WeightedClassifier, WeightedRegressor
from rfx.methods.boosting import Boosting
from rfx.methods.lkrf import LKRF
from rfx.methods.rb import RB
from rfx.methods.rf import RF
from rfx.methods.sparse_rb import SparseRB
from rfx.methods.sparse_rf import SparseRF


class RFClassifier(WeightedClassifier, method=RF):
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


class RFRegressor(WeightedRegressor, method=RF):
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


class SparseRFClassifier(WeightedClassifier, method=SparseRF):
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


class SparseRFRegressor(WeightedRegressor, method=SparseRF):
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


class LKRFClassifier(WeightedClassifier, method=LKRF):
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


class LKRFRegressor(WeightedRegressor, method=LKRF):
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


class BoostingClassifier(WeightedClassifier, method=Boosting):
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


class BoostingRegressor(WeightedRegressor, method=Boosting):
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


class RBClassifier(WeightedClassifier, method=RB):
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


class RBRegressor(WeightedRegressor, method=RB):
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


class SparseRBClassifier(WeightedClassifier, method=SparseRB):
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


class SparseRBRegressor(WeightedRegressor, method=SparseRB):
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
    0.4...
    """
