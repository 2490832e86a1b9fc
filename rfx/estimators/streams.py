"""Methods that learn from batches of rows, including those of Dai et al."""

from rfx.estimators.base import Classifier, Regressor
from rfx.estimators.categories import Columns
from rfx.estimators.incremental import IncrementalClassifier, IncrementalRegressor
from rfx.estimators.weighted import ManyTargets, WeightedClassifier


class DoublySGDClassifier(IncrementalClassifier):
    """Doubly stochastic gradients (classification).

    Every step uses random rows and new random features, which are recomputed from the seed when
    needed. So the number of rows is unlimited.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods doubly-sgd`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=1024
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    features : str, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence; sketch: TensorSketch, for polynomial kernels their default; signs: products
        of random signs.
    block : int, default=256
        Number of features per step.
    max_blocks : int, default=None
        Number of blocks of features, after which a step reuses a random one of them, like the
        authors' GPU program; by default always new ones.
    step : {"theorem", "root", "decay", "constant", "normalized"}, default="root"
        Step sizes. theorem: theta / (t + t0), theta nu from 1 to 2; root: theta / sqrt(t + t0);
        decay: step0 / (1 + step1 t); constant: step0; normalized: step0 / root mean square of the
        batch's derivatives.
    theta : float, default=None
        See step; by default 1 / nu (theorem), 1 (root), for steps without preconditioning the best
        of 1, 4 and 16 on held-out rows (root).
    t0 : float, default=None
        See step; by default 2 theta (theorem), 0 (root).
    step0 : float, default=1.0
        See step.
    step1 : float, default=0.0001
        See step.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    damping : float, default=1e-07
        Added to the diagonal of that covariance, in addition to nu.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    max_memory : float, default=256.0
        MiB for data cached between steps; the rest is recomputed from the seed.
    keep_values : bool, default=False
        Store f of every row (one number each), so that a repeated row costs only the blocks added
        since.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "doubly-sgd"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 1024,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        features: str = "offset",
        block: int = 256,
        max_blocks: int | None = None,
        step: str = "root",
        theta: float | None = None,
        t0: float | None = None,
        step0: float = 1.0,
        step1: float = 0.0001,
        precondition: bool = True,
        damping: float = 1e-07,
        averaging: str = "linear",
        max_memory: float = 256.0,
        keep_values: bool = False,
        class_weight: dict | str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class DoublySGDRegressor(IncrementalRegressor):
    """Doubly stochastic gradients (regression).

    Every step uses random rows and new random features, which are recomputed from the seed when
    needed. So the number of rows is unlimited.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods doubly-sgd`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=1024
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    features : str, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence; sketch: TensorSketch, for polynomial kernels their default; signs: products
        of random signs.
    block : int, default=256
        Number of features per step.
    max_blocks : int, default=None
        Number of blocks of features, after which a step reuses a random one of them, like the
        authors' GPU program; by default always new ones.
    step : {"theorem", "root", "decay", "constant", "normalized"}, default="root"
        Step sizes. theorem: theta / (t + t0), theta nu from 1 to 2; root: theta / sqrt(t + t0);
        decay: step0 / (1 + step1 t); constant: step0; normalized: step0 / root mean square of the
        batch's derivatives.
    theta : float, default=None
        See step; by default 1 / nu (theorem), 1 (root), for steps without preconditioning the best
        of 1, 4 and 16 on held-out rows (root).
    t0 : float, default=None
        See step; by default 2 theta (theorem), 0 (root).
    step0 : float, default=1.0
        See step.
    step1 : float, default=0.0001
        See step.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    damping : float, default=1e-07
        Added to the diagonal of that covariance, in addition to nu.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    max_memory : float, default=256.0
        MiB for data cached between steps; the rest is recomputed from the seed.
    keep_values : bool, default=False
        Store f of every row (one number each), so that a repeated row costs only the blocks added
        since.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "doubly-sgd"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 1024,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        features: str = "offset",
        block: int = 256,
        max_blocks: int | None = None,
        step: str = "root",
        theta: float | None = None,
        t0: float | None = None,
        step0: float = 1.0,
        step1: float = 0.0001,
        precondition: bool = True,
        damping: float = 1e-07,
        averaging: str = "linear",
        max_memory: float = 256.0,
        keep_values: bool = False,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NormaClassifier(IncrementalClassifier):
    """Stochastic gradients with the exact kernel, storing the rows (classification).

    doubly-sgd without random features.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods norma`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=1024
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    step : {"theorem", "root", "decay", "constant", "normalized"}, default="root"
        Step sizes. theorem: theta / (t + t0), theta nu from 1 to 2; root: theta / sqrt(t + t0);
        decay: step0 / (1 + step1 t); constant: step0; normalized: step0 / root mean square of the
        batch's derivatives.
    theta : float, default=None
        See step; by default 1 / nu (theorem), 1 (root), for steps without preconditioning the best
        of 1, 4 and 16 on held-out rows (root).
    t0 : float, default=None
        See step; by default 2 theta (theorem), 0 (root).
    step0 : float, default=1.0
        See step.
    step1 : float, default=0.0001
        See step.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "norma"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 1024,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        step: str = "root",
        theta: float | None = None,
        t0: float | None = None,
        step0: float = 1.0,
        step1: float = 0.0001,
        precondition: bool = True,
        averaging: str = "linear",
        class_weight: dict | str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NormaRegressor(IncrementalRegressor):
    """Stochastic gradients with the exact kernel, storing the rows (regression).

    doubly-sgd without random features.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods norma`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=1024
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    step : {"theorem", "root", "decay", "constant", "normalized"}, default="root"
        Step sizes. theorem: theta / (t + t0), theta nu from 1 to 2; root: theta / sqrt(t + t0);
        decay: step0 / (1 + step1 t); constant: step0; normalized: step0 / root mean square of the
        batch's derivatives.
    theta : float, default=None
        See step; by default 1 / nu (theorem), 1 (root), for steps without preconditioning the best
        of 1, 4 and 16 on held-out rows (root).
    t0 : float, default=None
        See step; by default 2 theta (theorem), 0 (root).
    step0 : float, default=1.0
        See step.
    step1 : float, default=0.0001
        See step.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "norma"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 1024,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        step: str = "root",
        theta: float | None = None,
        t0: float | None = None,
        step0: float = 1.0,
        step1: float = 0.0001,
        precondition: bool = True,
        averaging: str = "linear",
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class KSDCAClassifier(WeightedClassifier):
    """Dual coordinate ascent with the exact kernel, storing the rows (classification).

    nu/2 ||f||^2 + mean L(f(x), y); one dual variable per row, each maximised exactly in turn.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods k-sdca`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=1024
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    gap : bool, default=False
        Compute the duality gap at the end, with one more pass over the rows.
    sweeps : int, default=200
        Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables
        converge.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "k-sdca"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 1024,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        gap: bool = False,
        sweeps: int = 200,
        class_weight: dict | str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class KSDCARegressor(ManyTargets):
    """Dual coordinate ascent with the exact kernel, storing the rows (regression).

    nu/2 ||f||^2 + mean L(f(x), y); one dual variable per row, each maximised exactly in turn.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods k-sdca`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=1024
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    gap : bool, default=False
        Compute the duality gap at the end, with one more pass over the rows.
    sweeps : int, default=200
        Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables
        converge.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "k-sdca"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 1024,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        gap: bool = False,
        sweeps: int = 200,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NSDCAClassifier(WeightedClassifier):
    """Dual coordinate ascent on Nystrom features (classification).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods n-sdca`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of landmarks.
    gap : bool, default=False
        Compute the duality gap at the end, with one more pass over the rows.
    sweeps : int, default=200
        Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables
        converge.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "n-sdca"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        gap: bool = False,
        sweeps: int = 200,
        class_weight: dict | str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NSDCARegressor(ManyTargets):
    """Dual coordinate ascent on Nystrom features (regression).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods n-sdca`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of landmarks.
    gap : bool, default=False
        Compute the duality gap at the end, with one more pass over the rows.
    sweeps : int, default=200
        Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables
        converge.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "n-sdca"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        gap: bool = False,
        sweeps: int = 200,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RSDCAClassifier(WeightedClassifier):
    """Dual coordinate ascent on random features (classification).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods r-sdca`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of random features.
    features : str, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence; sketch: TensorSketch, for polynomial kernels their default; signs: products
        of random signs.
    gap : bool, default=False
        Compute the duality gap at the end, with one more pass over the rows.
    sweeps : int, default=200
        Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables
        converge.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "r-sdca"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        features: str = "offset",
        gap: bool = False,
        sweeps: int = 200,
        class_weight: dict | str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RSDCARegressor(ManyTargets):
    """Dual coordinate ascent on random features (regression).

    nu/2 ||w||^2 + mean L(w.z(x), y); one dual variable per row, each maximised exactly in turn.

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods r-sdca`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of random features.
    features : str, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence; sketch: TensorSketch, for polynomial kernels their default; signs: products
        of random signs.
    gap : bool, default=False
        Compute the duality gap at the end, with one more pass over the rows.
    sweeps : int, default=200
        Maximum number of sweeps over the rows of a step; sweeps stop earlier when the variables
        converge.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "r-sdca"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        features: str = "offset",
        gap: bool = False,
        sweeps: int = 200,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NPegasosClassifier(IncrementalClassifier):
    """Pegasos on Nystrom features (classification).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods n-pegasos`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of landmarks.
    project : bool, default=False
        Project onto the ball of radius 1/sqrt(nu), which contains the minimum of the hinge loss.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "n-pegasos"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        project: bool = False,
        precondition: bool = True,
        averaging: str = "linear",
        class_weight: dict | str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NPegasosRegressor(IncrementalRegressor):
    """Pegasos on Nystrom features (regression).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods n-pegasos`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of landmarks.
    project : bool, default=False
        Project onto the ball of radius 1/sqrt(nu), which contains the minimum of the hinge loss.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "n-pegasos"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        project: bool = False,
        precondition: bool = True,
        averaging: str = "linear",
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RPegasosClassifier(IncrementalClassifier):
    """Pegasos on random features (classification).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods r-pegasos`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of random features.
    features : str, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence; sketch: TensorSketch, for polynomial kernels their default; signs: products
        of random signs.
    project : bool, default=False
        Project onto the ball of radius 1/sqrt(nu), which contains the minimum of the hinge loss.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "r-pegasos"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        features: str = "offset",
        project: bool = False,
        precondition: bool = True,
        averaging: str = "linear",
        class_weight: dict | str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RPegasosRegressor(IncrementalRegressor):
    """Pegasos on random features (regression).

    Steps of length 1 / (nu t) for nu/2 ||w||^2 + mean L(w.z(x), y).

    Parameters
    ----------
    kernel : str, default="gaussian"
        gaussian, laplacian, matern-3/2, …; see `rfx methods r-pegasos`.
    gamma : float or {"paper", "median", "loo", "tuned", "median-matlab"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; loo: by leave-one-out ridge regression, then the best of that value and 4
        and 16 times as much on held-out rows; tuned: by ridge regression on held-out rows;
        median-matlab: 1 / median distance^2.
    loss : str, default=None
        One of hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive, softmax; by
        default squared for regression, squared_hinge for two classes, softmax for more if the
        method supports it.
    epsilon : float, default=0.1
        Half width of the tube of the epsilon_insensitive loss.
    nu : float or "validation", default="validation"
        Regularisation of the mean loss, nu/2 ||f||^2. validation: the best of 1e-3, 1e-4, …, 1e-7
        on held-out rows of a sample.
    batch : int, default=4096
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    n_features : int, default=1000
        Number D of random features.
    features : str, default="offset"
        offset: sqrt2 cos(w.x + b); pairs: cos and sin of the same w; orthogonal: pairs with w
        orthogonal in blocks; hadamard: the same with fast products; quasi: pairs with w from a
        Sobol sequence; sketch: TensorSketch, for polynomial kernels their default; signs: products
        of random signs.
    project : bool, default=False
        Project onto the ball of radius 1/sqrt(nu), which contains the minimum of the hinge loss.
    precondition : bool, default=True
        Multiply a step by the inverse of the covariance of its features on the batch.
    averaging : {"none", "uniform", "linear"}, default="linear"
        Which f predicts. none: the last f; uniform: the mean over all steps; linear: the mean with
        weight t.
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    skewedness : float or {"median"}, default=None
        c of kernel skewed-chi2; median, the default: half the root of the median of ||x-y||^2.
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "r-pegasos"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        gamma: float | str = "loo",
        loss: str | None = None,
        epsilon: float = 0.1,
        nu: float | str = "validation",
        batch: int = 4096,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        dtype: str = "float32",
        n_features: int = 1000,
        features: str = "offset",
        project: bool = False,
        precondition: bool = True,
        averaging: str = "linear",
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class MLPClassifier(Classifier):
    """A network of dense layers, trained by Adam on the same batches (classification).

    scikit-learn's multilayer perceptron, the baseline for doubly-sgd.

    Parameters
    ----------
    nu : float, default=1e-06
        Regularisation of the mean loss, nu/2 ||f||^2.
    batch : int, default=64
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    loss : {"squared", "logistic", "softmax"}, default=None
        The loss; by default squared for regression, logistic for two classes, softmax for more.
    layers : str, default="100"
        Widths of the hidden layers, starting at the inputs, separated by commas.
    rate : float, default=0.003
        Adam's step.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    scaling : str, default="standard"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "mlp"

    def __init__(
        self,
        *,
        nu: float = 1e-06,
        batch: int = 64,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        loss: str | None = None,
        layers: str = "100",
        rate: float = 0.003,
        dtype: str = "float64",
        scaling: str = "standard",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class MLPRegressor(Regressor):
    """A network of dense layers, trained by Adam on the same batches (regression).

    scikit-learn's multilayer perceptron, the baseline for doubly-sgd.

    Parameters
    ----------
    nu : float, default=1e-06
        Regularisation of the mean loss, nu/2 ||f||^2.
    batch : int, default=64
        Rows per step (batch size).
    epochs : int, default=None
        Epochs; by default 3 below 100,000 rows, else 1.
    replace : bool, default=False
        Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.
    unit : bool, default=False
        Normalise scaled rows to unit length.
    pca : int, default=None
        Number of principal components of the scaled rows to keep; by default all inputs.
    pca_centred : bool, default=True
        Centre the rows for the principal components.
    virtual : {"none", "digits", "images", "molecules", "molecules-sorted"}, default="none"
        Train on transformed copies of the rows. digits, images: square images, rotated, shifted,
        distorted or mirrored; molecules: Coulomb matrices with permuted atoms; molecules-sorted: by
        noisy row norms.
    virtual_copies : int, default=None
        Number of transformed copies of each row, generated once; by default new ones without end.
    views : int, default=None
        Predict by the mean over this many transformed copies of a row; by default on the row
        itself.
    budget_seconds : float, default=None
        Seconds of training, after which it stops normally.
    budget_samples : int, default=None
        Maximum number of rows to process, over all epochs.
    loss : {"squared", "logistic", "softmax"}, default=None
        The loss; by default squared for regression, logistic for two classes, softmax for more.
    layers : str, default="100"
        Widths of the hidden layers, starting at the inputs, separated by commas.
    rate : float, default=0.003
        Adam's step.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    scaling : str, default="standard"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default=None
        Scaling of the targets: to [0, 1], or to mean 0 (the default).
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Categorical columns: their names, positions or a mask; from_dtype: the string and category
        columns of a data frame; None: none.
    seed : int, default=0
        Random seed; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.

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

    method_name = "mlp"

    def __init__(
        self,
        *,
        nu: float = 1e-06,
        batch: int = 64,
        epochs: int | None = None,
        replace: bool = False,
        unit: bool = False,
        pca: int | None = None,
        pca_centred: bool = True,
        virtual: str = "none",
        virtual_copies: int | None = None,
        views: int | None = None,
        budget_seconds: float | None = None,
        budget_samples: int | None = None,
        loss: str | None = None,
        layers: str = "100",
        rate: float = 0.003,
        dtype: str = "float64",
        scaling: str = "standard",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())
