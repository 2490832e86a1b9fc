"""The exact kernel machine, and its approximations by landmarks and blocks."""

from rfx.estimators.categories import Columns
from rfx.estimators.weighted import WeightedClassifier, WeightedRegressor


class KernelClassifier(WeightedClassifier):
    """The exact kernel machine (classification).

    lam/2 ||f||^2 + sum L(f(x), y). The loss selects ridge regression, a support vector machine or
    kernel logistic regression.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods kernel`. auto: laplacian-l2 or
        laplacian on held-out rows, gaussian if gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||f||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows,
        fitted to at most 5,000 rows. auto: validation on at most 10,000 rows.
    loss : str, default=None
        squared, squared_hinge, hinge or logistic; for regression squared, absolute or
        epsilon_insensitive. By default squared for regression, squared_hinge for classification.
    epsilon : float, default=None
        Half width of the tube of the epsilon_insensitive loss, in units of the scaled target. By
        default 0.1.
    bias : bool, default=None
        Unpenalised bias b, as in LIBSVM; by default only for support vector machines.
    solver : {"rfx", "libsvm"}, default="rfx"
        rfx's own, or LIBSVM in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for LIBSVM, its `-e`.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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

    method_name = "kernel"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        max_iter: int | None = None,
        dtype: str = "float64",
        max_memory: float | None = None,
        lam: float | str = "auto",
        loss: str | None = None,
        epsilon: float | None = None,
        bias: bool | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        class_weight: dict | str | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class KernelRegressor(WeightedRegressor):
    """The exact kernel machine (regression).

    lam/2 ||f||^2 + sum L(f(x), y). The loss selects ridge regression or a support vector machine.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods kernel`. auto: laplacian-l2 or
        laplacian on held-out rows, gaussian if gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||f||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows,
        fitted to at most 5,000 rows. auto: validation on at most 10,000 rows.
    loss : str, default=None
        squared, squared_hinge, hinge or logistic; for regression squared, absolute or
        epsilon_insensitive. By default squared for regression, squared_hinge for classification.
    epsilon : float, default=None
        Half width of the tube of the epsilon_insensitive loss, in units of the scaled target. By
        default 0.1.
    bias : bool, default=None
        Unpenalised bias b, as in LIBSVM; by default only for support vector machines.
    solver : {"rfx", "libsvm"}, default="rfx"
        rfx's own, or LIBSVM in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for LIBSVM, its `-e`.
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

    method_name = "kernel"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        max_iter: int | None = None,
        dtype: str = "float64",
        max_memory: float | None = None,
        lam: float | str = "auto",
        loss: str | None = None,
        epsilon: float | None = None,
        bias: bool | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        target_scaling: str = "none",
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NystromClassifier(WeightedClassifier):
    """The kernel machine approximated from landmarks (classification).

    lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)' K_mm^-1 k_m(y) over at most D
    landmarks.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods nystrom`. auto: laplacian-l2 or
        laplacian on held-out rows, gaussian if gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    landmarks : {"uniform", "kmeans", "rpcholesky"}, default="uniform"
        Random rows, k-means centres, or pivots of randomly pivoted Cholesky.
    n_features : int, default=1000
        Number D of landmarks.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for cg the residual, for LIBLINEAR its `-e`.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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

    method_name = "nystrom"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        max_iter: int | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
        landmarks: str = "uniform",
        n_features: int = 1000,
        lam: float | str = "auto",
        loss: str | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        class_weight: dict | str | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class NystromRegressor(WeightedRegressor):
    """The kernel machine approximated from landmarks (regression).

    lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)' K_mm^-1 k_m(y) over at most D
    landmarks.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods nystrom`. auto: laplacian-l2 or
        laplacian on held-out rows, gaussian if gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    landmarks : {"uniform", "kmeans", "rpcholesky"}, default="uniform"
        Random rows, k-means centres, or pivots of randomly pivoted Cholesky.
    n_features : int, default=1000
        Number D of landmarks.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for cg the residual, for LIBLINEAR its `-e`.
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

    method_name = "nystrom"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        max_iter: int | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
        landmarks: str = "uniform",
        n_features: int = 1000,
        lam: float | str = "auto",
        loss: str | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        target_scaling: str = "none",
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class BlockClassifier(WeightedClassifier):
    """The exact kernel machine within each part of a random partition (classification).

    lam/2 ||f||^2 + sum L(f(x), y) in each block of rows; the kernel between blocks is 0.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods block`. auto: laplacian-l2 or laplacian
        on held-out rows, gaussian if gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    partition : {"hyperplanes", "uniform"}, default="hyperplanes"
        How rows are assigned to blocks. hyperplanes: by random hyperplanes, and the block that
        contains a row predicts it; uniform: at random, and the mean of all blocks predicts a row.
    block_size : int, default=1000
        Maximum number R of rows per block.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    solver : {"rfx", "liblinear"}, default=None
        rfx's own (the default), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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

    method_name = "block"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        max_iter: int | None = None,
        dtype: str = "float64",
        max_memory: float | None = None,
        partition: str = "hyperplanes",
        block_size: int = 1000,
        lam: float | str = "auto",
        loss: str | None = None,
        solver: str | None = None,
        tol: float | None = None,
        class_weight: dict | str | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class BlockRegressor(WeightedRegressor):
    """The exact kernel machine within each part of a random partition (regression).

    lam/2 ||f||^2 + sum L(f(x), y) in each block of rows; the kernel between blocks is 0.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods block`. auto: laplacian-l2 or laplacian
        on held-out rows, gaussian if gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    partition : {"hyperplanes", "uniform"}, default="hyperplanes"
        How rows are assigned to blocks. hyperplanes: by random hyperplanes, and the block that
        contains a row predicts it; uniform: at random, and the mean of all blocks predicts a row.
    block_size : int, default=1000
        Maximum number R of rows per block.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    solver : {"rfx", "liblinear"}, default=None
        rfx's own (the default), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops.
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

    method_name = "block"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        max_iter: int | None = None,
        dtype: str = "float64",
        max_memory: float | None = None,
        partition: str = "hyperplanes",
        block_size: int = 1000,
        lam: float | str = "auto",
        loss: str | None = None,
        solver: str | None = None,
        tol: float | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        skewedness: float | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        target_scaling: str = "none",
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RFMClassifier(WeightedClassifier):
    """The recursive feature machine (classification).

    Kernel ridge regression on targets +-1, one column per class, with a metric of the inputs learnt
    from the gradients of the machine. Scaling, kernel, metric, bandwidth and lambda are chosen on
    held-out rows.

    Parameters
    ----------
    kernel : str, default="auto"
        auto: laplacian-l2 or laplacian; `rfx methods kernel` lists the kernels.
    gamma : float or {"paper", "median", "tuned", "loo", "validation", "auto"}, default="auto"
        Bandwidth, as in exp(-gamma ||x-y||). auto: chosen with kernel and metric; paper: 1/2
        (Gaussian) or 1 (Laplacian); median: from median distances; tuned: by ridge regression on
        held-out rows; loo: by leave-one-out ridge regression on at most 800 rows; validation: by
        this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||f||^2. auto: chosen with kernel and metric; validation: the best of 100,
        30, 10, …, 0.01 on held-out rows, fitted to at most 5,000 rows.
    loss : str, default=None
        squared, the default, squared_hinge, hinge or logistic; for regression squared, absolute or
        epsilon_insensitive.
    epsilon : float, default=None
        Half width of the tube of the epsilon_insensitive loss, in units of the scaled target. By
        default 0.1.
    bias : bool, default=None
        Unpenalised bias b, as in LIBSVM; by default only for support vector machines.
    solver : {"rfx", "libsvm"}, default="rfx"
        rfx's own, or LIBSVM in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for LIBSVM, its `-e`.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    perceptron_scale : {"kernel", "unit"}, default=None
        Scale of the perceptron kernel: R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y||
        (unit).
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are tried.
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

    method_name = "rfm"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "auto",
        max_iter: int | None = None,
        dtype: str = "float64",
        max_memory: float | None = None,
        lam: float | str = "auto",
        loss: str | None = None,
        epsilon: float | None = None,
        bias: bool | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        class_weight: dict | str | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RFMRegressor(WeightedRegressor):
    """The recursive feature machine (regression).

    Kernel ridge regression with a metric of the inputs learnt from the gradients of the machine.
    Scaling, kernel, metric, bandwidth and lambda are chosen on held-out rows.

    Parameters
    ----------
    kernel : str, default="auto"
        auto: laplacian-l2 or laplacian; `rfx methods kernel` lists the kernels.
    gamma : float or {"paper", "median", "tuned", "loo", "validation", "auto"}, default="auto"
        Bandwidth, as in exp(-gamma ||x-y||). auto: chosen with kernel and metric; paper: 1/2
        (Gaussian) or 1 (Laplacian); median: from median distances; tuned: by ridge regression on
        held-out rows; loo: by leave-one-out ridge regression on at most 800 rows; validation: by
        this method's error on held-out rows.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||f||^2. auto: chosen with kernel and metric; validation: the best of 100,
        30, 10, …, 0.01 on held-out rows, fitted to at most 5,000 rows.
    loss : str, default=None
        squared, the default, squared_hinge, hinge or logistic; for regression squared, absolute or
        epsilon_insensitive.
    epsilon : float, default=None
        Half width of the tube of the epsilon_insensitive loss, in units of the scaled target. By
        default 0.1.
    bias : bool, default=None
        Unpenalised bias b, as in LIBSVM; by default only for support vector machines.
    solver : {"rfx", "libsvm"}, default="rfx"
        rfx's own, or LIBSVM in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for LIBSVM, its `-e`.
    perceptron_scale : {"kernel", "unit"}, default=None
        Scale of the perceptron kernel: R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y||
        (unit).
    rq_alpha : float, default=None
        Exponent of kernel rational-quadratic; 1 by default.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are tried.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or to mean 0.
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

    method_name = "rfm"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "auto",
        max_iter: int | None = None,
        dtype: str = "float64",
        max_memory: float | None = None,
        lam: float | str = "auto",
        loss: str | None = None,
        epsilon: float | None = None,
        bias: bool | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        perceptron_scale: str | None = None,
        rq_alpha: float | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        target_scaling: str = "none",
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())
