"""Linear machines on random features: drawn, chosen by the targets, or found one by one."""

from rfx.estimators.categories import Columns
from rfx.estimators.weighted import WeightedClassifier, WeightedRegressor


class RFClassifier(WeightedClassifier):
    """Random features with L2 regularisation (classification).

    Approximates the kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y) over D random features z whose
    inner product estimates the kernel.

    Parameters
    ----------
    kernel : str, default="auto"
        Such as gaussian, laplacian or matern-3/2; `rfx methods rf` lists the kernels. auto:
        laplacian-l2, laplacian or gaussian by held-out rows, gaussian where gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    features : {"offset", "pairs", "range"}, default="offset"
        Variant of the kernel's features. offset: sqrt2 cos(w.x + b), or thresholds over the whole
        ball; pairs: cos and sin of one w; range: thresholds where they tell training rows apart.
    n_features : int, default=1000
        Number D of random features.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    choose : {"leverage"}, default=None
        leverage: draw the features from a pool by their ridge leverage on the training rows.
    pool : int, default=None
        Number of features in the pool that choose takes them from; by default 10 for each.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on 10,000 rows at most.
    offset : {"mean"}, default=None
        With squared loss, mean: subtract the mean of the targets, labels too.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        Rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; of cg the residual, of LIBLINEAR `-e`.
    class_weight : dict or str, default=None
        {label: weight}, 1 for others; balanced: in inverse proportion to how many rows there are.
    k : int, default=None
        Letters of the longest words of the kernel kmers.
    perceptron_scale : {"kernel", "unit"}, default=None
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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
        Such as gaussian, laplacian or matern-3/2; `rfx methods rf` lists the kernels. auto:
        laplacian-l2, laplacian or gaussian by held-out rows, gaussian where gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    features : {"offset", "pairs", "range"}, default="offset"
        Variant of the kernel's features. offset: sqrt2 cos(w.x + b), or thresholds over the whole
        ball; pairs: cos and sin of one w; range: thresholds where they tell training rows apart.
    n_features : int, default=1000
        Number D of random features.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    choose : {"leverage"}, default=None
        leverage: draw the features from a pool by their ridge leverage on the training rows.
    pool : int, default=None
        Number of features in the pool that choose takes them from; by default 10 for each.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on 10,000 rows at most.
    offset : {"mean"}, default=None
        With squared loss, mean: subtract the mean of the targets, labels too.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        Rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; of cg the residual, of LIBLINEAR `-e`.
    k : int, default=None
        Letters of the longest words of the kernel kmers.
    perceptron_scale : {"kernel", "unit"}, default=None
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or their mean to 0.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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
    features with a weight stay in the model.

    Parameters
    ----------
    kernel : str, default="auto"
        Such as gaussian, laplacian or matern-3/2; `rfx methods sparse-rf` lists the kernels. auto:
        laplacian-l2, laplacian or gaussian by held-out rows, gaussian where gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    features : {"offset", "pairs", "range"}, default="offset"
        Variant of the kernel's features. offset: sqrt2 cos(w.x + b), or thresholds over the whole
        ball; pairs: cos and sin of one w; range: thresholds where they tell training rows apart.
    n_features : int, default=1000
        Number D of random features.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    choose : {"leverage"}, default=None
        leverage: draw the features from a pool by their ridge leverage on the training rows.
    pool : int, default=None
        Number of features in the pool that choose takes them from; by default 10 for each.
    lam : float or {"validation", "match-rf", "auto"}, default="auto"
        Weight of lam ||w||_1. validation: the best of 1000, 100, 10, 1 on held-out rows; of a
        regression, of multiples of the targets' range; match-rf: the one whose error is closest to
        that of rf there. auto: validation on 10,000 rows at most.
    solver : {"rfx", "liblinear", "prcd"}, default="rfx"
        Rfx's own, parallel randomised coordinate descent, or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; with LIBLINEAR its `-e`.
    rounds : int, default=10
        Rounds T of Algorithm 1; each draws D/T new features.
    class_weight : dict or str, default=None
        {label: weight}, 1 for others; balanced: in inverse proportion to how many rows there are.
    k : int, default=None
        Letters of the longest words of the kernel kmers.
    perceptron_scale : {"kernel", "unit"}, default=None
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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
    features with a weight stay in the model.

    Parameters
    ----------
    kernel : str, default="auto"
        Such as gaussian, laplacian or matern-3/2; `rfx methods sparse-rf` lists the kernels. auto:
        laplacian-l2, laplacian or gaussian by held-out rows, gaussian where gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    features : {"offset", "pairs", "range"}, default="offset"
        Variant of the kernel's features. offset: sqrt2 cos(w.x + b), or thresholds over the whole
        ball; pairs: cos and sin of one w; range: thresholds where they tell training rows apart.
    n_features : int, default=1000
        Number D of random features.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    choose : {"leverage"}, default=None
        leverage: draw the features from a pool by their ridge leverage on the training rows.
    pool : int, default=None
        Number of features in the pool that choose takes them from; by default 10 for each.
    lam : float or {"validation", "match-rf", "auto"}, default="auto"
        Weight of lam ||w||_1. validation: the best of 1000, 100, 10, 1 on held-out rows; of a
        regression, of multiples of the targets' range; match-rf: the one whose error is closest to
        that of rf there. auto: validation on 10,000 rows at most.
    solver : {"rfx", "liblinear", "prcd"}, default="rfx"
        Rfx's own, parallel randomised coordinate descent, or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; with LIBLINEAR its `-e`.
    rounds : int, default=10
        Rounds T of Algorithm 1; each draws D/T new features.
    k : int, default=None
        Letters of the longest words of the kernel kmers.
    perceptron_scale : {"kernel", "unit"}, default=None
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or their mean to 0.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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
    """Random features chosen from a pool by their alignment with the targets (classification).

    Learns the kernel: of the distributions near the uniform one, that with the largest alignment
    chooses the features.

    Parameters
    ----------
    kernel : str, default="auto"
        Such as gaussian, laplacian or matern-3/2; `rfx methods lkrf` lists the kernels. auto:
        laplacian-l2, laplacian or gaussian by held-out rows, gaussian where gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    features : {"offset", "pairs", "range"}, default="offset"
        Variant of the kernel's features. offset: sqrt2 cos(w.x + b), or thresholds over the whole
        ball; pairs: cos and sin of one w; range: thresholds where they tell training rows apart.
    n_features : int or "validation", default=None
        Number D of random features that are drawn; by default as many as the support has.
        validation: 64, 256, 1024 or 4096.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    pool : int, default=None
        Number N_w of features to choose from; by default 20000, of coordinates and words all there
        are.
    divergence : {"chi2", "kl", "tv", "reverse-kl"}, default="chi2"
        Divergence from the uniform distribution over the pool.
    rho : float or "validation", default=None
        Bound on the divergence; by default 0.005 N_w (chi2). 0 leaves the pool as it is;
        validation: 0.005, 0.01, 0.02, 0.05 or 0.1 times N_w (chi2).
    rho_share : float, default=None
        The same bound, as a multiple of N_w.
    use : {"support", "draw", "weights"}, default="support"
        How the distribution is used. support: its support once where that is as small as D, else
        draws; draw: draws with replacement; weights: the whole support, weighted by the root of
        probability.
    centred : bool, default=False
        Score with labels less their mean, as regression always does.
    offset : {"none", "mean"}, default="none"
        With squared loss, mean: subtract the mean of the targets, labels too.
    sparse : bool, default=False
        L1 regularisation of the chosen features.
    joint : int, default=None
        Learn the distribution together with the weights, by so many alternations; by default by
        scores.
    joint_rows : int, default=2000
        Training rows that joint takes.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: 0.01, 0.1, 1, 10 or 100. auto: validation on 10,000
        rows at most.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        Rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; of cg the residual, of LIBLINEAR `-e`.
    class_weight : dict or str, default=None
        {label: weight}, 1 for others; balanced: in inverse proportion to how many rows there are.
    k : int, default=None
        Letters of the longest words of the kernel kmers.
    perceptron_scale : {"kernel", "unit"}, default=None
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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
    """Random features chosen from a pool by their alignment with the targets (regression).

    Learns the kernel: of the distributions near the uniform one, that with the largest alignment
    chooses the features.

    Parameters
    ----------
    kernel : str, default="auto"
        Such as gaussian, laplacian or matern-3/2; `rfx methods lkrf` lists the kernels. auto:
        laplacian-l2, laplacian or gaussian by held-out rows, gaussian where gamma is a number.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    features : {"offset", "pairs", "range"}, default="offset"
        Variant of the kernel's features. offset: sqrt2 cos(w.x + b), or thresholds over the whole
        ball; pairs: cos and sin of one w; range: thresholds where they tell training rows apart.
    n_features : int or "validation", default=None
        Number D of random features that are drawn; by default as many as the support has.
        validation: 64, 256, 1024 or 4096.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    pool : int, default=None
        Number N_w of features to choose from; by default 20000, of coordinates and words all there
        are.
    divergence : {"chi2", "kl", "tv", "reverse-kl"}, default="chi2"
        Divergence from the uniform distribution over the pool.
    rho : float or "validation", default=None
        Bound on the divergence; by default 0.005 N_w (chi2). 0 leaves the pool as it is;
        validation: 0.005, 0.01, 0.02, 0.05 or 0.1 times N_w (chi2).
    rho_share : float, default=None
        The same bound, as a multiple of N_w.
    use : {"support", "draw", "weights"}, default="support"
        How the distribution is used. support: its support once where that is as small as D, else
        draws; draw: draws with replacement; weights: the whole support, weighted by the root of
        probability.
    centred : bool, default=False
        Score with labels less their mean, as regression always does.
    offset : {"none", "mean"}, default="none"
        With squared loss, mean: subtract the mean of the targets, labels too.
    sparse : bool, default=False
        L1 regularisation of the chosen features.
    joint : int, default=None
        Learn the distribution together with the weights, by so many alternations; by default by
        scores.
    joint_rows : int, default=2000
        Training rows that joint takes.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: 0.01, 0.1, 1, 10 or 100. auto: validation on 10,000
        rows at most.
    solver : {"rfx", "cg", "liblinear"}, default="rfx"
        Rfx's own, plain conjugate gradients (squared loss), or LIBLINEAR in a child process.
    tol : float, default=None
        Relative duality gap at which the solver stops; of cg the residual, of LIBLINEAR `-e`.
    k : int, default=None
        Letters of the longest words of the kernel kmers.
    perceptron_scale : {"kernel", "unit"}, default=None
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or their mean to 0.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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

    Fully corrective boosting: each step adds the best features and fits all weights anew.

    Parameters
    ----------
    kernel : {"perceptron", "stump"}, default="perceptron"
        The kernel whose features are found: perceptrons roughly, by a convex surrogate, stumps
        exactly.
    n_features : int, default=1000
        Most features D that are found; of several classes, for each.
    per_step : int, default=20
        Features found in a step.
    surrogate : {"logistic", "squared", "squared_hinge"}, default="logistic"
        Loss of the linear classifier that stands for the best perceptron.
    threshold : {"surrogate", "exact"}, default="exact"
        Threshold of a perceptron: that of the classifier, or the best for its direction.
    lam : float or "validation", default="validation"
        Weight of lam ||w||_1. validation: the best of 1000, 100, 10, 1 on held-out rows; of a
        regression 10, 3, 1, …, 0.03 times the targets' range, where they are not scaled.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    tol : float, default=None
        Relative duality gap of the weights at every step, over the features found; by default
        0.001, of one feature a step 1e-05.
    max_iter : int, default=None
        Most iterations of rfx's solver in a step.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    class_weight : dict or str, default=None
        {label: weight}, 1 for others; balanced: in inverse proportion to how many rows there are.
    perceptron_scale : {"kernel", "unit"}, default="kernel"
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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

    Fully corrective boosting: each step adds the best features and fits all weights anew.

    Parameters
    ----------
    kernel : {"perceptron", "stump"}, default="perceptron"
        The kernel whose features are found: perceptrons roughly, by a convex surrogate, stumps
        exactly.
    n_features : int, default=1000
        Most features D that are found; of several classes, for each.
    per_step : int, default=20
        Features found in a step.
    surrogate : {"logistic", "squared", "squared_hinge"}, default="logistic"
        Loss of the linear classifier that stands for the best perceptron.
    threshold : {"surrogate", "exact"}, default="exact"
        Threshold of a perceptron: that of the classifier, or the best for its direction.
    lam : float or "validation", default="validation"
        Weight of lam ||w||_1. validation: the best of 1000, 100, 10, 1 on held-out rows; of a
        regression 10, 3, 1, …, 0.03 times the targets' range, where they are not scaled.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    tol : float, default=None
        Relative duality gap of the weights at every step, over the features found; by default
        0.001, of one feature a step 1e-05.
    max_iter : int, default=None
        Most iterations of rfx's solver in a step.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features; sums are kept in float64.
    max_memory : float, default=None
        MiB that features or kernel values may take at a time; by default a third of what is free.
    perceptron_scale : {"kernel", "unit"}, default="kernel"
        Kernel perceptron is R/c_d - ||x-y|| (kernel, the default) or 1 - (c_d/R) ||x-y|| (unit).
    scaling : str, default="minmax01"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows.
    metric : {"none", "diagonal", "full", "auto"}, default="none"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or their mean to 0.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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

    Approximates the Laplacian kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y), z of value
    1/sqrt(R) in one bin of each of R grids.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel, a mixture of random grids.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    max_memory : float, default=None
        MiB that features may take.
    n_grids : int, default=None
        Number R of random grids; a row is in one bin of each. By default 1024, of more than 16,384
        rows fewer, of 65,536 and more 256.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on 10,000 rows at most.
    grow : float, default=None
        Share of the rows to hold out while R is doubled from 16 up to n_grids, as long as that
        lowers their error by 1 % or more; by default R is n_grids.
    solver : {"rfx", "liblinear"}, default=None
        Rfx's own, the default, or LIBLINEAR in a child process.
    class_weight : dict or str, default=None
        {label: weight}, 1 for others; balanced: in inverse proportion to how many rows there are.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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

    Approximates the Laplacian kernel machine: lam/2 ||w||^2 + sum L(w.z(x), y), z of value
    1/sqrt(R) in one bin of each of R grids.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel, a mixture of random grids.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    max_memory : float, default=None
        MiB that features may take.
    n_grids : int, default=None
        Number R of random grids; a row is in one bin of each. By default 1024, of more than 16,384
        rows fewer, of 65,536 and more 256.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam/2 ||w||^2. validation: the best of 100, 30, 10, …, 0.01 on held-out rows.
        auto: validation on 10,000 rows at most.
    grow : float, default=None
        Share of the rows to hold out while R is doubled from 16 up to n_grids, as long as that
        lowers their error by 1 % or more; by default R is n_grids.
    solver : {"rfx", "liblinear"}, default=None
        Rfx's own, the default, or LIBLINEAR in a child process.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or their mean to 0.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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

    lam ||w||_1 + sum L(w.z(x), y), z of value 1/sqrt(R) in one bin of each of R grids; only bins
    with a weight stay in the model.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    max_memory : float, default=None
        MiB that features may take.
    n_grids : int, default=256
        Number R of random grids; a row is in one bin of each.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam ||w||_1. validation: the best of 100, 10, 1, 0.1 on held-out rows; of a
        regression, of multiples of the targets' range. auto: validation on 10,000 rows at most.
    solver : {"rfx", "prcd", "liblinear"}, default="rfx"
        Rfx's own, parallel randomised coordinate descent, or LIBLINEAR in a child process.
    class_weight : dict or str, default=None
        {label: weight}, 1 for others; balanced: in inverse proportion to how many rows there are.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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

    lam ||w||_1 + sum L(w.z(x), y), z of value 1/sqrt(R) in one bin of each of R grids; only bins
    with a weight stay in the model.

    Parameters
    ----------
    kernel : {"laplacian", "erlang", "rational", "hat"}, default="laplacian"
        The kernel.
    gamma : float or {"paper", "median", "tuned", "loo", "validation"}, default="loo"
        Bandwidth, as in exp(-gamma ||x-y||^2). paper: 1/2 (Gaussian) or 1 (Laplacian); median: from
        median distances; tuned: by ridge regression on held-out rows; loo: by leave-one-out ridge
        regression on 800 rows at most; validation: by this method's error on held-out rows.
    loss : {"squared", "squared_hinge", "logistic"}, default=None
        The loss; by default squared for regression, squared_hinge for classes.
    tol : float, default=None
        Relative duality gap at which the solver stops.
    max_iter : int, default=None
        Most iterations of rfx's solvers.
    max_memory : float, default=None
        MiB that features may take.
    n_grids : int, default=256
        Number R of random grids; a row is in one bin of each.
    lam : float or {"validation", "auto"}, default="auto"
        Weight of lam ||w||_1. validation: the best of 100, 10, 1, 0.1 on held-out rows; of a
        regression, of multiples of the targets' range. auto: validation on 10,000 rows at most.
    solver : {"rfx", "prcd", "liblinear"}, default="rfx"
        Rfx's own, parallel randomised coordinate descent, or LIBLINEAR in a child process.
    scaling : str, default="auto"
        Scaling of the inputs, learnt on the training rows: none, minmax01, minmax11, standard,
        power, robust or quantile, or auto: the best of these on held-out rows, minmax01 where gamma
        is a number.
    metric : {"none", "diagonal", "full", "auto"}, default="auto"
        Metric of the scaled inputs, learnt by recursive feature machines; auto: the best of the
        others on held-out rows, none where gamma is a number.
    metric_steps : int, default=None
        Iterations of the learning of the metric; by default as many as are best on held-out rows.
    budget_seconds : float, default=None
        Seconds after which no further scaling, kernel or metric is tried; by default all are.
    target_scaling : {"none", "minmax01", "mean"}, default="none"
        Scaling of the targets: to [0, 1], or their mean to 0.
    categorical_features : array-like of str, int or bool, or {"from_dtype"}, default="from_dtype"
        Columns of categories: their names, positions or a mask; from_dtype: the columns of words
        and categories of a data frame; None: none.
    seed : int, default=0
        Seed of everything random; the same seed gives the same model.
    timeout : float, default=None
        Seconds after which training is aborted.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and the like, in the words of a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 where there are none.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Not there without a metric.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names where the rows of fit had some.

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
