"""The best method for the data, chosen on held-out rows."""

from rfx.estimators.weighted import WeightedClassifier, WeightedRegressor
from rfx.methods.auto import Auto


class AutoClassifier(WeightedClassifier, method=Auto):
    """The method, scaling, kernel and metric with the lowest held-out error (classification).

    Up to 20,000 rows, the recursive feature machine or a support vector machine with the same
    inputs; above that, the best of several methods on a sample.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfx.estimators import AutoClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoClassifier(scaling="standard", metric="none").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.9...
    """


class AutoRegressor(WeightedRegressor, method=Auto):
    """The method, scaling, kernel and metric with the lowest held-out error (regression).

    Up to 20,000 rows, the recursive feature machine; above that, the best of several methods on a
    sample.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfx.estimators import AutoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AutoRegressor(scaling="standard", metric="none").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2])
    0.4...
    """
