"""Estimators for methods that learn in batches: partial_fit."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from rfx.estimators.base import MethodEstimator, checked, in_python
from rfx.estimators.weighted import ManyTargets, WeightedClassifier, numbers
from rfx.fitting import weights
from rfx.options import LabelWeights


class Incremental(MethodEstimator):
    """Mixin for Classifier or Regressor: partial_fit for methods that learn in batches."""

    def _train(self, task, X, y, **weights):
        X, trainer = self._encoded(task, X, y), self._create(task)
        with in_python():
            self.session_, trained = trainer.train(X, y, numbers(X, weights.get("sample_weight")))
        self._warn(trained)
        self._keep(trained)
        return self

    def _session(self, task):
        with in_python():
            return self._create(task).session()

    def _further(self):
        """Raise ValueError if the model can't be trained further."""
        if not hasattr(self, "session_"):
            raise ValueError(
                "a model from a file has no training state, so partial_fit can't continue it; fit a"
                " new one"
            )


class IncrementalClassifier(Incremental, WeightedClassifier):
    """A Classifier that learns in batches."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Continue training with these rows, in their order.

        The first call also learns scaling, `gamma="median"` and similar settings from its rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will occur; required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses, relative to the mean weight so far.

        Returns
        -------
        self
        """
        first = not hasattr(self, "method_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        X, y = checked(self, X, y, reset=first)
        check_classification_targets(y)
        if first:
            known = np.unique(classes)
            session = self._session("binary" if len(known) <= 2 else "multiclass")
        else:
            self._further()
            known, session = self.classes_, self.session_
            if classes is not None and not np.array_equal(np.unique(classes), known):
                raise ValueError(
                    f"classes={classes!r} is not the same as on the first call to partial_fit:"
                    f" {known!r}"
                )
        codes = np.minimum(np.searchsorted(known, y), len(known) - 1)
        if np.any(known[codes] != y):
            raise ValueError(
                f"the label {y[known[codes] != y][0]!r} is not among the classes {known!r}"
            )
        own = np.arange(len(known), dtype=np.float64)
        if first:
            task = "binary" if len(known) <= 2 else "multiclass"
            X = self._encoded(task, X, own[codes], len(known))
        weights = self._by_label(known, codes, numbers(X, sample_weight))
        with in_python():
            trained = session.further(X, own[codes], own if first else None, weights)
        self.session_ = session
        self._keep(trained)
        self._label(known)
        return self

    def _by_label(self, known, codes, sample_weight):
        """sample_weight (n,) times the class_weight of the labels known[codes]; None if all are
        one.
        """
        if self.class_weight is None:
            return sample_weight
        if self.class_weight == LabelWeights.BALANCED:
            raise ValueError(
                "class_weight='balanced' needs the counts of all rows, which partial_fit does not"
                " know; use {label: weight}"
            )
        with in_python():
            factors = weights.of_labels(known, self.class_weight)[codes]
        return factors if sample_weight is None else factors * sample_weight


class IncrementalRegressor(Incremental, ManyTargets):
    """A Regressor that learns in batches."""

    def partial_fit(self, X, y, sample_weight=None):
        """Continue training with these rows, in their order.

        The first call also learns scaling, `gamma="median"` and similar settings from its rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses, relative to the mean weight so far.

        Returns
        -------
        self
        """
        first = not hasattr(self, "method_")
        X, y = checked(self, X, y, reset=first, y_numeric=True, multi_output=True)
        if first:
            X = self._encoded("regression", X, np.asarray(y, np.float64))
            session = self._session("regression")
        else:
            self._further()
            session = self.session_
        with in_python():
            trained = session.further(
                X, np.asarray(y, np.float64), sample_weight=numbers(X, sample_weight)
            )
        self.session_ = session
        self._keep(trained)
        return self
