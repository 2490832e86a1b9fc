"""The best method for the data, chosen on held-out rows."""

from rfx.estimators.categories import Columns
from rfx.estimators.weighted import WeightedClassifier, WeightedRegressor


class AutoClassifier(WeightedClassifier):
    """The method, scaling, kernel and metric with the lowest held-out error (classification).

    Up to 20,000 rows, the recursive feature machine or a support vector machine with the same
    inputs; above that, the best of several methods on a sample.

    Parameters
    ----------
    class_weight : dict or str, default=None
        {label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class
        frequencies.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfx.estimators import AutoClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoClassifier(scaling="standard", metric="none").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.9...
    """

    method_name = "auto"

    def __init__(
        self,
        *,
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


class AutoRegressor(WeightedRegressor):
    """The method, scaling, kernel and metric with the lowest held-out error (regression).

    Up to 20,000 rows, the recursive feature machine; above that, the best of several methods on a
    sample.

    Parameters
    ----------
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

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import AutoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AutoRegressor(scaling="standard", metric="none").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.4...
    """

    method_name = "auto"

    def __init__(
        self,
        *,
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
