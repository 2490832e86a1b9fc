"""What all estimators share: check the inputs, train a method, return its predictions, and raise
errors as ValueError.
"""

import contextlib
import dataclasses
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_y,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from rfx import methods, parallel, plugins
from rfx.data.tabular import frames
from rfx.data.tabular.frames import check_columns
from rfx.data.tabular.schema import Schema
from rfx.distributed.arrays import distributed_rows, is_distributed
from rfx.errors import DataError, UsageError
from rfx.estimators import categories, files
from rfx.estimators.parameters import CATEGORICAL, RANDOM_STATE, Parameter, derive, in_words
from rfx.estimators.seeds import Seeded
from rfx.fitting import calibration
from rfx.fitting.method import Method
from rfx.fitting.options import BUDGET_SECONDS
from rfx.options import Option


@contextlib.contextmanager
def in_python():
    """Raise rfx's errors as ValueError, with parameter names instead of command-line options.

    BLAS uses one thread inside the block; its number of threads is restored afterwards.
    """
    try:
        with parallel.one_blas_thread():
            yield
    except (UsageError, DataError) as error:
        raise ValueError(in_words(str(error))) from error


def rows(X):
    """Convert rows to the form that methods require: an array, or a csr_matrix with 32-bit indices.

    Entries of the same place are summed. Raises ValueError for a sparse matrix with more entries or
    columns than 32-bit indices support.
    """
    if not sp.issparse(X):
        return X
    most = np.iinfo(np.int32).max
    if X.nnz > most or max(X.shape) > most:
        raise ValueError(
            f"a sparse matrix of shape {X.shape} with {X.nnz:,} entries is too large: rows, columns"
            f" and entries must each be at most {most:,}; pass fewer rows, or partial_fit them in"
            " parts"
        )
    # copies of the data, because these are summed in place
    parts = X.data.copy(), X.indices.astype(np.int32), X.indptr.astype(np.int32)
    found = sp.csr_matrix(parts, shape=X.shape)
    found.sum_duplicates()
    return found


def checked(estimator, X, y="no_validation", reset=True, **options):
    """Check X, or X and y, like scikit-learn: float64, finite, an array or CSR. Sets or compares
    the number and names of the inputs.

    Sparse matrices may have 32-bit or 64-bit indices. Targets y of shape (n, 1) become (n,), with
    scikit-learn's DataConversionWarning. Rows with categorical columns become `categories.Rows`,
    whose encoding is learnt with the targets; later rows are encoded at once. If the estimator was
    trained from a file, frames in the form of that file are encoded too.
    """
    if reset:
        estimator._begin()
    table = None if reset else getattr(estimator, "table_", None)
    if table is not None and _is_like_file(X, table):
        with in_python():
            X = rows(frames.encoded(X, table))
        return X if isinstance(y, str) else (X, _targets(estimator, X, y, options))
    known = getattr(estimator, "schema_", None)
    if not reset and known is not None:
        X = categories.encoded(estimator, X, known)
        return X if isinstance(y, str) else (X, _targets(estimator, X, y, options))
    asked = getattr(estimator, "categorical_features", None)
    if reset and (places := categories.chosen(X, asked)):
        found = categories.Rows(categories.read(estimator, X, places, True))
        return found, _targets(estimator, found, y, options)
    options = {"accept_sparse": "csr", "dtype": np.float64, "reset": reset} | options
    takes = hasattr(estimator, "categorical_features")
    check_columns(X, *([categories.ADVICE] if takes else []))
    if isinstance(y, str) and y == "no_validation":
        return rows(validate_data(estimator, X, **options))
    X, y = validate_data(estimator, X, y, **options)
    if options.get("multi_output") and np.ndim(y) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    return rows(X), y


def _is_like_file(X, table: Schema) -> bool:
    """Whether X is a data frame in the form of the file from which the schema was learnt."""
    return frames.is_frame(X) and not is_distributed(X) and frames.is_like_file(X, table)


def _targets(estimator, X, y, options):
    """Check targets like scikit-learn, for rows that it does not check.

    options: of validate_data: multi_output and y_numeric.
    """
    several = bool(options.get("multi_output"))
    y = _check_y(y, several, bool(options.get("y_numeric")), estimator)
    check_consistent_length(X, y)
    return column_or_1d(y, warn=True) if several and np.ndim(y) == 2 and y.shape[1] == 1 else y


class Parametrised(Seeded, BaseEstimator):
    """An estimator whose parameters are `options`: the base class builds the constructor, which
    stores them unchanged, as scikit-learn requires.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.
    """

    options: ClassVar[tuple[Option, ...]] = ()

    if TYPE_CHECKING:  # derived from the options

        def __init__(self, **parameters: Any) -> None: ...

    def __init_subclass__(cls, *, options: Iterable[Option] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        if options:
            with plugins.hidden():
                cls.options = tuple(options)
                derive(cls, map(Parameter.of, cls.options))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _asked(self) -> dict[str, Any]:
        """The parameters by name, with the seed of this fit instead of `seed` and
        `random_state`.
        """
        found = self.get_params(deep=False)
        if found.pop(RANDOM_STATE.name, None) is not None:
            found["seed"] = self._seed()
        return found


class MethodEstimator(Parametrised):
    """An estimator that trains a method, whose options are its parameters.

    Attributes
    ----------
    method_ : rfx.fitting.pipeline.Pipeline
        The trained model with its preprocessing.
    info_ : dict
        Objective, gap, model_size and more, named as in a results row.
    n_iter_ : int
        Iterations of the solver, in its own unit; 1 for a closed form.
    """

    method_name = ""
    task: ClassVar[str] = ""
    # options of the method that are no parameters: the class fixes the task, a path yields several
    # models, and arrays need neither of the others
    without: ClassVar[frozenset[str]] = frozenset(("task", "lam_path", "head", "buffer"))
    # rfx's own classes, by method and task
    classes: ClassVar[dict[tuple[str, str], Any]] = {}
    schema_: Schema | None = None
    # for a model that `rfx train` trained on a table: how to read such tables
    table_: Schema | None = None

    def __init_subclass__(cls, *, method: type[Method] | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if method is not None:
            cls.method_name = method.name
            cls.classes[method.name, cls.task] = cls
            with plugins.hidden():
                cls._derive(method)

    @classmethod
    def _derive(cls, method: type[Method]) -> None:
        """Make the options of a method the parameters of the class: its own, then the common
        ones.
        """
        always = method.defaults()
        common = {*Method.options, BUDGET_SECONDS.name}
        ours = [option for name, option in method.declare().items() if name not in cls.without]
        ours.sort(key=lambda option: option.name in common)
        # options of some kernels only are None by default
        found = [Parameter.of(option, option.name not in always) for option in ours]
        derive(cls, [*found, *([] if CATEGORICAL.name in cls.without else [CATEGORICAL])])

    def __sklearn_is_fitted__(self):
        return hasattr(self, "method_")

    def _given(self) -> dict:
        """The options of the method that differ from the estimator's defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {
            name: value
            for name, value in self._asked().items()
            if name != CATEGORICAL.name and not (value is defaults[name] or value == defaults[name])
        }

    def _create(self, task: str):
        with in_python():
            return methods.create(self.method_name, task=task, **self._given())

    def _encoded(self, task: str, X, y, n_classes: int | None = None):
        """Encode rows returned by `checked` as X (n, width), given encoded targets y. Sets
        `schema_` to the learnt categorical columns, or None.

        n_classes: see `categories.Rows.learn`.
        """
        self.schema_ = self.table_ = None
        if not isinstance(X, categories.Rows):
            return X
        with in_python():
            self.schema_, X = X.learn(y, task, self._seed(), n_classes)
        return X

    def _train(self, task: str, X, y, **weights):
        """Train the pipeline on rows X and encoded targets y (n,), and store it as method_."""
        X, trainer = self._encoded(task, X, y), self._create(task)
        with in_python():
            trained = trainer.fit(X, y, **weights)
        self._warn(trained)
        self._keep(trained)
        return self

    def _warn(self, trained):
        """Warn if a solver did not converge."""
        if not trained.info["converged"]:
            advice = (
                "a longer timeout"
                if trained.info["ended"] == "timeout"
                else "a larger max_iter or tol"
            )
            message = f"the solver of {type(self).__name__} did not converge; try {advice}"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _fit_distributed(self, X, y, classes: bool, weights):
        """Fit to a Dask array or data frame whose rows stay on the workers."""
        if (
            any(value is not None for value in weights.values())
            or getattr(self, "class_weight", None) is not None
        ):
            raise ValueError(
                "distributed rows (Dask) do not support weights; omit sample_weight and"
                " class_weight"
            )
        self._begin()
        categories.chosen(
            X, self.categorical_features
        )  # raises an error for named categorical columns
        with in_python():
            X, y, labels = distributed_rows(
                self, X, y, self._create("binary" if classes else "regression"), classes
            )
        self._train(
            ("binary" if len(labels) <= 2 else "multiclass") if classes else "regression", X, y
        )
        if classes:
            self._label(labels)
        return self

    def _keep(self, trained):
        self.method_ = trained
        # a closed form counts as one iteration
        self.n_iter_ = max(1, trained.info["n_iter"])

    def _decision(self, X):
        check_is_fitted(self)
        with in_python():
            return self.method_.decision_function(checked(self, X, reset=False))

    @property
    def info_(self) -> dict:
        """Training information: objective, gap, model_size, …, named as in a results row."""
        check_is_fitted(self)
        return self.method_.info

    @property
    def feature_importances_(self) -> np.ndarray:
        """Each input's share of the learnt metric, the average squared gradient over scaled inputs.

        They sum to 1. Raises AttributeError if no metric was learnt.
        """
        check_is_fitted(self)
        found = self.method_.importances()
        if found is None:
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_, because it has no learnt"
                " metric; set metric to diagonal or full"
            )
        return found

    def save(self, path) -> int:
        """Write the model file, which `rfx.load` and the command line read; return its size in
        bytes.

        Parameters
        ----------
        path : str or path
            The file; an existing file is replaced atomically.
        """
        check_is_fitted(self)
        return files.save(self, path)


class Classifier(ClassifierMixin, MethodEstimator):
    """Encodes labels of any type as their positions in `classes_`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    """

    task = "classification"
    without = MethodEstimator.without | {"target_scaling"}

    def fit(self, X, y):
        """Fit the model to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or data frame
            stays on its workers (rf, sparse-rf, rb, lkrf).
        y : array-like of shape (n_samples,)
            Labels: numbers or words.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _fit(self, X, y, **weights):
        if is_distributed(X):
            return self._fit_distributed(X, y, True, weights)
        X, y = checked(self, X, y)
        check_classification_targets(y)
        X, y, weights = self._weights(X, y, weights)
        classes, codes = np.unique(y, return_inverse=True)
        task = "binary" if len(classes) <= 2 else "multiclass"
        self._train(task, X, codes.astype(np.float64), **weights)
        self._label(classes)
        return self

    def _weights(self, X, y, weights):
        """Remove rows of weight zero, and compute the sample weights for the method."""
        return X, y, weights

    def _label(self, classes):
        """Store the labels; numeric labels are also stored in the model file."""
        self.classes_ = classes
        if files.are_doubles(classes):
            self.method_ = self.method_.replace(classes=classes.astype(np.float64))

    def decision_function(self, X):
        """Compute decision values; their sign (two classes) or largest entry (several) is the
        prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._decision(X)

    def predict(self, X):
        """Predict the labels of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self._decision(X)
        if hasattr(self, "method_"):
            decision = self.method_.ranked(decision)
        if decision.ndim == 2:
            return self.classes_[np.argmax(decision, axis=1)]
        return self.classes_[
            (decision > 0).astype(int) if len(self.classes_) > 1 else np.zeros(len(decision), int)
        ]

    def _has_probabilities(self):
        return (
            calibration.has(self.method_)
            if hasattr(self, "method_")
            else self.loss in calibration.OWN
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Predict class probabilities, if the loss defines them (logistic, softmax) or the model
        was calibrated.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        decision = self._decision(X)
        return calibration.probabilities(self.method_, decision)


class Regressor(RegressorMixin, MethodEstimator):
    """Predicts numbers.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    """

    task = "regression"
    without = MethodEstimator.without | {"class_weight"}

    def fit(self, X, y):
        """Fit the model to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or data frame
            stays on its workers (rf, sparse-rf, rb, lkrf).
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _fit(self, X, y, **weights):
        if is_distributed(X):
            return self._fit_distributed(X, y, False, weights)
        X, y = checked(self, X, y, y_numeric=True)
        return self._train("regression", X, np.asarray(y, np.float64), **weights)

    def predict(self, X):
        """Predict the targets of rows, in their original units.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return (
            self.method_.labels(self._decision(X))
            if hasattr(self, "method_")
            else self._decision(X)
        )


def classes_of(y) -> bool:
    """Whether targets are classes by scikit-learn's rule: words or integers."""
    return type_of_target(y) in ("binary", "multiclass")
