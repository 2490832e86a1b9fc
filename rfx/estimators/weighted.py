"""Estimators of the methods whose loss counts rows by weights: sample_weight and class_weight."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from rfx.estimators.base import Classifier, Regressor, checked, in_python
from rfx.fitting import weights


class WeightedClassifier(Classifier):
    """A Classifier of rows with weights."""

    def fit(self, X, y, sample_weight=None):
        """Learn from rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or dataframe
            stays on its workers (rf, sparse-rf, rb, lkrf).
        y : array-like of shape (n_samples,)
            Labels: numbers or words.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows' losses: a row of weight 2 counts as two, one of weight 0 as none.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _given(self):
        # the method is told the weights of rows
        return {name: value for name, value in super()._given().items() if name != "class_weight"}

    def _weights(self, X, y, given):
        own = numbers(X, given["sample_weight"])
        if own is None and self.class_weight is None:
            return X, y, {}
        with in_python():
            found = weights.of_rows(y, own, self.class_weight)
        # rows of weight zero are left out later, so that their classes stay classes
        return X, y, {} if found is None else {"sample_weight": found}


class WeightedRegressor(Regressor):
    """A Regressor of rows with weights."""

    def fit(self, X, y, sample_weight=None):
        """Learn from rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or dataframe
            stays on its workers (rf, sparse-rf, rb, lkrf).
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows' losses: a row of weight 2 counts as two, one of weight 0 as none.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _train(self, task, X, y, **weights):
        own = numbers(X, weights.get("sample_weight"))
        return super()._train(task, X, y, **({} if own is None else {"sample_weight": own}))


class ManyTargets(WeightedRegressor):
    """Numbers, one or several a row."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Learn from rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows' losses: a row of weight 2 counts as two, one of weight 0 as none.

        Returns
        -------
        self
        """
        X, y = checked(self, X, y, y_numeric=True, multi_output=True)
        return self._train("regression", X, np.asarray(y, np.float64), sample_weight=sample_weight)

    def predict(self, X):
        """The targets of rows, in the units of those that were learnt from.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return super().predict(X)


def numbers(X, sample_weight):
    """The weights (n,) as numbers; None where there are none."""
    return (
        None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
    )
