"""Linear machines on random features: drawn, selected by the targets, or found greedily."""

from rfx.estimators.categories import Columns
from rfx.estimators.weighted import WeightedClassifier, WeightedRegressor


class RFClassifier(WeightedClassifier):
    """Random features with L2 regularisation (classification).

    Approximates the kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y) over D random features z whose
    inner product estimates the kernel.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods rf`. auto: laplacian-l2, laplacian or
        gaussian on held-out rows, gaussian if gamma is a number.
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
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    offset : {"mean"}, default=None
        mean: with squared loss, subtract the mean of the targets (or of the label codes).
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for cg the residual, for LIBLINEAR its `-e`.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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

    method_name = "rf"

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
        offset: str | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        class_weight: dict | str | None = None,
        k: int | None = None,
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


class RFRegressor(WeightedRegressor):
    """Random features with L2 regularisation (regression).

    Approximates the kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y) over D random features z whose
    inner product estimates the kernel.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods rf`. auto: laplacian-l2, laplacian or
        gaussian on held-out rows, gaussian if gamma is a number.
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
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    offset : {"mean"}, default=None
        mean: with squared loss, subtract the mean of the targets (or of the label codes).
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for cg the residual, for LIBLINEAR its `-e`.
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

    method_name = "rf"

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
        offset: str | None = None,
        solver: str = "rfx",
        tol: float | None = None,
        k: int | None = None,
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


class SparseRFClassifier(WeightedClassifier):
    """Random features with L1 regularisation: a small model (classification).

    lam ||w||_1 + sum L(w.phi(x), y) over unscaled random features phi, drawn in rounds; only
    features with nonzero weight remain in the model.

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
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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
    >>> from rfx.estimators import SparseRFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseRFClassifier(gamma="median", n_features=200, lam=3.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
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
        class_weight: dict | str | None = None,
        k: int | None = None,
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


class SparseRFRegressor(WeightedRegressor):
    """Random features with L1 regularisation: a small model (regression).

    lam ||w||_1 + sum L(w.phi(x), y) over unscaled random features phi, drawn in rounds; only
    features with nonzero weight remain in the model.

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
    >>> from rfx.estimators import SparseRFRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseRFRegressor(gamma="median", n_features=200, lam=100.0).fit(X, y)
    >>> model.score(X, y)
    0.5...
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
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class LKRFClassifier(WeightedClassifier):
    """Random features selected from a pool by their alignment with the targets (classification).

    Learns the kernel: among the distributions near the uniform one, that with the largest alignment
    selects the features.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods lkrf`. auto: laplacian-l2, laplacian or
        gaussian on held-out rows, gaussian if gamma is a number.
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
    n_features : int or "validation", default=None
        Number D of random features to draw; by default as many as the support has. validation: 64,
        256, 1024 or 4096.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    pool : int, default=None
        Number N_w of features to choose from; by default 20000, and for coordinates and words all
        of them.
    divergence : {"chi2", "kl", "tv", "reverse-kl"}, default="chi2"
        Divergence from the uniform distribution over the pool.
    rho : float or "validation", default=None
        Bound on the divergence; by default 0.005 N_w (chi2). 0 leaves the pool unchanged;
        validation: 0.005, 0.01, 0.02, 0.05 or 0.1 times N_w (chi2).
    rho_share : float, default=None
        The same bound as a multiple of N_w.
    use : {"support", "draw", "weights"}, default="support"
        How the distribution is used. support: its support if it has at most D features, else draws;
        draw: draws with replacement; weights: the whole support, weighted by the square root of the
        probability.
    centred : bool, default=False
        Compute scores with centred labels, as regression always does.
    offset : {"none", "mean"}, default="none"
        mean: with squared loss, subtract the mean of the targets (or of the label codes).
    sparse : bool, default=False
        L1 regularisation of the chosen features.
    joint : int, default=None
        Number of alternations between learning the distribution and the weights; by default scores
        are used.
    joint_rows : int, default=2000
        Training rows that joint uses.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: 0.01, 0.1, 1, 10 or 100. auto: validation on at most
        10,000 rows.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for cg the residual, for LIBLINEAR its `-e`.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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

    method_name = "lkrf"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        features: str = "offset",
        n_features: int | str | None = None,
        loss: str | None = None,
        max_iter: int | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
        pool: int | None = None,
        divergence: str = "chi2",
        rho: float | str | None = None,
        rho_share: float | None = None,
        use: str = "support",
        centred: bool = False,
        offset: str = "none",
        sparse: bool = False,
        joint: int | None = None,
        joint_rows: int = 2000,
        lam: float | str = "auto",
        solver: str = "rfx",
        tol: float | None = None,
        class_weight: dict | str | None = None,
        k: int | None = None,
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


class LKRFRegressor(WeightedRegressor):
    """Random features selected from a pool by their alignment with the targets (regression).

    Learns the kernel: among the distributions near the uniform one, that with the largest alignment
    selects the features.

    Parameters
    ----------
    kernel : str, default="auto"
        gaussian, laplacian, matern-3/2, …; see `rfx methods lkrf`. auto: laplacian-l2, laplacian or
        gaussian on held-out rows, gaussian if gamma is a number.
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
    n_features : int or "validation", default=None
        Number D of random features to draw; by default as many as the support has. validation: 64,
        256, 1024 or 4096.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    pool : int, default=None
        Number N_w of features to choose from; by default 20000, and for coordinates and words all
        of them.
    divergence : {"chi2", "kl", "tv", "reverse-kl"}, default="chi2"
        Divergence from the uniform distribution over the pool.
    rho : float or "validation", default=None
        Bound on the divergence; by default 0.005 N_w (chi2). 0 leaves the pool unchanged;
        validation: 0.005, 0.01, 0.02, 0.05 or 0.1 times N_w (chi2).
    rho_share : float, default=None
        The same bound as a multiple of N_w.
    use : {"support", "draw", "weights"}, default="support"
        How the distribution is used. support: its support if it has at most D features, else draws;
        draw: draws with replacement; weights: the whole support, weighted by the square root of the
        probability.
    centred : bool, default=False
        Compute scores with centred labels, as regression always does.
    offset : {"none", "mean"}, default="none"
        mean: with squared loss, subtract the mean of the targets (or of the label codes).
    sparse : bool, default=False
        L1 regularisation of the chosen features.
    joint : int, default=None
        Number of alternations between learning the distribution and the weights; by default scores
        are used.
    joint_rows : int, default=2000
        Training rows that joint uses.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: 0.01, 0.1, 1, 10 or 100. auto: validation on at most
        10,000 rows.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; for cg the residual, for LIBLINEAR its `-e`.
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

    method_name = "lkrf"

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "loo",
        features: str = "offset",
        n_features: int | str | None = None,
        loss: str | None = None,
        max_iter: int | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
        pool: int | None = None,
        divergence: str = "chi2",
        rho: float | str | None = None,
        rho_share: float | None = None,
        use: str = "support",
        centred: bool = False,
        offset: str = "none",
        sparse: bool = False,
        joint: int | None = None,
        joint_rows: int = 2000,
        lam: float | str = "auto",
        solver: str = "rfx",
        tol: float | None = None,
        k: int | None = None,
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


class BoostingClassifier(WeightedClassifier):
    """Features found greedily, with L1 regularisation (classification).

    Fully corrective boosting: each step adds the best features and fits all weights again.

    Parameters
    ----------
    kernel : {"perceptron", "stump"}, default="perceptron"
        The kernel whose features are found: perceptrons approximately, by a convex surrogate;
        stumps exactly.
    n_features : int, default=1000
        Maximum number D of features, per class if there are several.
    per_step : int, default=20
        Number of features found per step.
    surrogate : {"logistic", "squared", "squared_hinge"}, default="logistic"
        Loss of the linear classifier that approximates the best perceptron.
    threshold : {"surrogate", "exact"}, default="exact"
        Threshold of a perceptron: that of the classifier, or the best one for its direction.
    lam : float or "validation", default="validation"
        Weight of lam ||w||_1. validation: the best of 1000, 100, 10, 1 on held-out rows; for
        regression 10, 3, 1, …, 0.03 times the range of unscaled targets.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    tol : float, default=None
        Relative duality gap of the weights at every step, over the features found so far; by
        default 0.001, with one feature per step 1e-05.
    max_iter : int, default=None
        Maximum iterations of rfx's solver per step.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
    perceptron_scale : {"kernel", "unit"}, default="kernel"
        Scale of the perceptron kernel: R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y||
        (unit).
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

    method_name = "boosting"

    def __init__(
        self,
        *,
        kernel: str = "perceptron",
        n_features: int = 1000,
        per_step: int = 20,
        surrogate: str = "logistic",
        threshold: str = "exact",
        lam: float | str = "validation",
        loss: str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
        class_weight: dict | str | None = None,
        perceptron_scale: str = "kernel",
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class BoostingRegressor(WeightedRegressor):
    """Features found greedily, with L1 regularisation (regression).

    Fully corrective boosting: each step adds the best features and fits all weights again.

    Parameters
    ----------
    kernel : {"perceptron", "stump"}, default="perceptron"
        The kernel whose features are found: perceptrons approximately, by a convex surrogate;
        stumps exactly.
    n_features : int, default=1000
        Maximum number D of features, per class if there are several.
    per_step : int, default=20
        Number of features found per step.
    surrogate : {"logistic", "squared", "squared_hinge"}, default="logistic"
        Loss of the linear classifier that approximates the best perceptron.
    threshold : {"surrogate", "exact"}, default="exact"
        Threshold of a perceptron: that of the classifier, or the best one for its direction.
    lam : float or "validation", default="validation"
        Weight of lam ||w||_1. validation: the best of 1000, 100, 10, 1 on held-out rows; for
        regression 10, 3, 1, …, 0.03 times the range of unscaled targets.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    tol : float, default=None
        Relative duality gap of the weights at every step, over the features found so far; by
        default 0.001, with one feature per step 1e-05.
    max_iter : int, default=None
        Maximum iterations of rfx's solver per step.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are float64.
    max_memory : float, default=None
        Memory limit in MiB for features or kernel values; by default a third of the free memory.
    perceptron_scale : {"kernel", "unit"}, default="kernel"
        Scale of the perceptron kernel: R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y||
        (unit).
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile; auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of learning the metric; by default chosen on held-out rows.
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
    >>> from rfx.estimators import BoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostingRegressor(n_features=40, kernel="stump", lam=100.0).fit(X, y)
    >>> model.score(X, y)
    0.6...
    """

    method_name = "boosting"

    def __init__(
        self,
        *,
        kernel: str = "perceptron",
        n_features: int = 1000,
        per_step: int = 20,
        surrogate: str = "logistic",
        threshold: str = "exact",
        lam: float | str = "validation",
        loss: str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
        perceptron_scale: str = "kernel",
        scaling: str = "minmax01",
        metric: str = "none",
        metric_steps: int | None = None,
        target_scaling: str = "none",
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RBClassifier(WeightedClassifier):
    """Random binning features with L2 regularisation (classification).

    Approximates the Laplacian kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y), where z is
    1/sqrt(R) in one bin of each of R grids.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel, a mixture of random grids.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    max_memory : float, default=None
        Memory limit for features, in MiB.
    n_grids : int, default=None
        Number R of random grids; each row falls into one bin of each grid. By default 1024, fewer
        above 16,384 rows, and 256 from 65,536 rows.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    grow : float, default=None
        Fraction of the rows to hold out while R doubles from 16 up to n_grids, as long as that
        reduces their error by at least 1 %; by default R is n_grids.
    solver : {"rfx", "liblinear"}, default=None
        rfx's own (the default), or LIBLINEAR in a child process.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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
    >>> from rfx.estimators import RBClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RBClassifier(gamma="median", n_grids=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """

    method_name = "rb"

    def __init__(
        self,
        *,
        kernel: str = "laplacian",
        gamma: float | str = "loo",
        loss: str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        max_memory: float | None = None,
        n_grids: int | None = None,
        lam: float | str = "auto",
        grow: float | None = None,
        solver: str | None = None,
        class_weight: dict | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class RBRegressor(WeightedRegressor):
    """Random binning features with L2 regularisation (regression).

    Approximates the Laplacian kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y), where z is
    1/sqrt(R) in one bin of each of R grids.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel, a mixture of random grids.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    max_memory : float, default=None
        Memory limit for features, in MiB.
    n_grids : int, default=None
        Number R of random grids; each row falls into one bin of each grid. By default 1024, fewer
        above 16,384 rows, and 256 from 65,536 rows.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on at most 10,000 rows.
    grow : float, default=None
        Fraction of the rows to hold out while R doubles from 16 up to n_grids, as long as that
        reduces their error by at least 1 %; by default R is n_grids.
    solver : {"rfx", "liblinear"}, default=None
        rfx's own (the default), or LIBLINEAR in a child process.
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
    >>> from rfx.estimators import RBRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RBRegressor(gamma="median", n_grids=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.6...
    """

    method_name = "rb"

    def __init__(
        self,
        *,
        kernel: str = "laplacian",
        gamma: float | str = "loo",
        loss: str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        max_memory: float | None = None,
        n_grids: int | None = None,
        lam: float | str = "auto",
        grow: float | None = None,
        solver: str | None = None,
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


class SparseRBClassifier(WeightedClassifier):
    """Random binning features with L1 regularisation: a small model (classification).

    lam ||w||_1 + sum L(w.z(x), y), where z is 1/sqrt(R) in one bin of each of R grids; only bins
    with nonzero weight remain in the model.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    max_memory : float, default=None
        Memory limit for features, in MiB.
    n_grids : int, default=256
        Number R of random grids; each row falls into one bin of each grid.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam ||w||_1. validation: the best of 100, 10, 1, 0.1 on held-out rows, for
        regression of multiples of the targets' range. auto: validation on at most 10,000 rows.
    solver : {"rfx", "prcd", "liblinear"}, default="rfx"
        rfx's own, parallel randomised coordinate descent, or LIBLINEAR in a child process.
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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
    >>> from rfx.estimators import SparseRBClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseRBClassifier(gamma="median", n_grids=100, lam=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """

    method_name = "sparse-rb"

    def __init__(
        self,
        *,
        kernel: str = "laplacian",
        gamma: float | str = "loo",
        loss: str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        max_memory: float | None = None,
        n_grids: int = 256,
        lam: float | str = "auto",
        solver: str = "rfx",
        class_weight: dict | str | None = None,
        scaling: str = "auto",
        metric: str = "auto",
        metric_steps: int | None = None,
        budget_seconds: float | None = None,
        categorical_features: Columns = "from_dtype",
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self._store(locals())


class SparseRBRegressor(WeightedRegressor):
    """Random binning features with L1 regularisation: a small model (regression).

    lam ||w||_1 + sum L(w.z(x), y), where z is 1/sqrt(R) in one bin of each of R grids; only bins
    with nonzero weight remain in the model.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on at most 800 rows; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classification.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Maximum iterations of rfx's solvers.
    max_memory : float, default=None
        Memory limit for features, in MiB.
    n_grids : int, default=256
        Number R of random grids; each row falls into one bin of each grid.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam ||w||_1. validation: the best of 100, 10, 1, 0.1 on held-out rows, for
        regression of multiples of the targets' range. auto: validation on at most 10,000 rows.
    solver : {"rfx", "prcd", "liblinear"}, default="rfx"
        rfx's own, parallel randomised coordinate descent, or LIBLINEAR in a child process.
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
    >>> from rfx.estimators import SparseRBRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseRBRegressor(gamma="median", n_grids=100, lam=100.0).fit(X, y)
    >>> model.score(X, y)
    0.4...
    """

    method_name = "sparse-rb"

    def __init__(
        self,
        *,
        kernel: str = "laplacian",
        gamma: float | str = "loo",
        loss: str | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        max_memory: float | None = None,
        n_grids: int = 256,
        lam: float | str = "auto",
        solver: str = "rfx",
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
