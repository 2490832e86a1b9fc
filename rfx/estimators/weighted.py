"""Estimators for methods with weighted losses: sample_weight and class_weight."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from rfx.estimators.base import Classifier, Regressor, checked, in_python
from rfx.fitting import weights


class WeightedClassifier(Classifier):
    """A Classifier with sample weights."""

    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or data frame
            stays on its workers (rf, sparse-rf, rb, lkrf).
        y : array-like of shape (n_samples,)
            Labels: numbers or words.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses: weight 2 counts a row twice, weight 0 ignores it.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _given(self):
        # the method receives the sample weights
        return {name: value for name, value in super()._given().items() if name != "class_weight"}

    def _weights(self, X, y, given):
        own = numbers(X, given["sample_weight"])
        if own is None and self.class_weight is None:
            return X, y, {}
        with in_python():
            found = weights.of_rows(y, own, self.class_weight)
        # rows of weight zero are removed later, so that their classes remain
        return X, y, {} if found is None else {"sample_weight": found}


class WeightedRegressor(Regressor):
    """A Regressor with sample weights."""

    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or data frame
            stays on its workers (rf, sparse-rf, rb, lkrf).
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses: weight 2 counts a row twice, weight 0 ignores it.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _train(self, task, X, y, **weights):
        own = numbers(X, weights.get("sample_weight"))
        return super()._train(task, X, y, **({} if own is None else {"sample_weight": own}))


class ManyTargets(WeightedRegressor):
    """Numbers, one or several per row."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses: weight 2 counts a row twice, weight 0 ignores it.

        Returns
        -------
        self
        """
        X, y = checked(self, X, y, y_numeric=True, multi_output=True)
        return self._train("regression", X, np.asarray(y, np.float64), sample_weight=sample_weight)

    def predict(self, X):
        """Predict the targets of rows, in their original units.

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
    """The weights (n,) as numbers, or None."""
    return (
        None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
    )
