"""What all estimators share: parameters from declared options, a seed, checked inputs, a trained
method, and errors as ValueError.
"""

import contextlib
import dataclasses
import numbers
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from rfx import device, methods, parallel
from rfx.data.tabular import frames
from rfx.data.tabular.schema import Schema
from rfx.distributed.rows import distributed_rows, is_distributed
from rfx.errors import DataError, RfxWarning, UsageError
from rfx.estimators import categories, files
from rfx.estimators.parameters import CATEGORICAL, RANDOM_STATE, Parameter, derive, in_words
from rfx.fitting import weights
from rfx.fitting.method import Method
from rfx.fitting.options import BUDGET_SECONDS
from rfx.options import LabelWeights, Option, options_of
from rfx.records.run import Run

DEVICE = options_of(Run)["device"]
_MOST_SEEDS = 2**31  # drawn seeds are below this number


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
    """Convert rows to the form that methods require: an array, or a csr_matrix with 32-bit indices
    and no two entries of the same place.
    """
    if not sp.issparse(X):
        return X
    # a copy, because entries are summed in place; scipy takes the smallest type of indices
    matrix = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    matrix.sum_duplicates()
    return matrix


def checked(estimator, X, y="no_validation", reset=True, **options):
    """Check X, or X and y, like scikit-learn: float64, finite, an array or CSR. Sets or compares
    the number and names of the inputs.

    Targets y of shape (n, 1) become (n,), with scikit-learn's DataConversionWarning. Rows with
    categorical columns become `categories.Rows`, whose encoding is learnt with the targets; later
    rows are encoded at once. If the estimator was trained from a file, frames in the form of that
    file are encoded too.
    """
    X, y = device.numpy_of(X), device.numpy_of(y)
    if reset:
        estimator._drawn_seed = None
    encoded = _encoded(estimator, X, reset)
    several = bool(options.get("multi_output"))
    if encoded is None:
        takes = hasattr(estimator, "categorical_features")
        frames.check_columns(X, *([categories.ADVICE] if takes else []))
        options = {"accept_sparse": "csr", "dtype": np.float64, "reset": reset} | options
        found = validate_data(estimator, X, y, **options)
        encoded, y = (rows(found), y) if isinstance(y, str) else (rows(found[0]), found[1])
    elif not isinstance(y, str):
        y = _check_y(y, several, bool(options.get("y_numeric")), estimator)
        check_consistent_length(encoded, y)
    if isinstance(y, str):
        return encoded
    return encoded, column_or_1d(y, warn=True) if several and y.ndim == 2 > y.shape[1] else y


def _encoded(estimator, X, reset: bool):
    """Rows with words, which scikit-learn does not check; None for other rows."""
    if reset:
        places = categories.chosen(X, getattr(estimator, "categorical_features", None))
        return categories.Rows(categories.read(estimator, X, places, True)) if places else None
    table, schema = (getattr(estimator, name, None) for name in ("table_", "schema_"))
    if table is not None and frames.is_frame(X) and frames.is_like_file(X, table):
        with in_python():
            return rows(frames.encoded(X, table))
    return None if schema is None else categories.encoded(estimator, X, schema)


class Estimator(BaseEstimator):
    """An estimator whose parameters are `options`: the base class builds the constructor, which
    stores them unchanged, as scikit-learn requires.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of inputs, and their names if the rows passed to fit had names.
    """

    options: ClassVar[tuple[Option, ...]] = ()
    random_state: Any = None
    _drawn_seed: int | None = None

    if TYPE_CHECKING:  # derived from the options

        def __init__(self, **parameters: Any) -> None: ...

    def __init_subclass__(cls, *, options: Iterable[Option] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        if options:
            cls.options = tuple(options)
            derive(cls, map(Parameter.of, cls.options))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _seed(self) -> Any:
        """The seed of this fit, from `random_state` (scikit-learn's name) or else `seed`; a
        generator draws a seed for each fit.
        """
        given, seed = self.random_state, getattr(self, "seed", 0)
        if given is None:
            return seed
        if seed != 0:
            warnings.warn(
                f"seed={seed!r:.40} is not used, because random_state is also set",
                RfxWarning,
                stacklevel=2,
            )
        if isinstance(given, (np.random.RandomState, np.random.Generator)):
            if self._drawn_seed is None:
                draw = "integers" if isinstance(given, np.random.Generator) else "randint"
                self._drawn_seed = int(getattr(given, draw)(_MOST_SEEDS))
            return self._drawn_seed
        if isinstance(given, numbers.Integral) and not isinstance(given, bool) and int(given) >= 0:
            return int(given)
        raise ValueError(
            f"random_state is {given!r:.80}; it must be None, an integer of 0 or more, or a numpy"
            " RandomState or Generator"
        )

    def _asked(self) -> dict[str, Any]:
        """The parameters by name, with the seed of this fit instead of `seed` and
        `random_state`.
        """
        values = self.get_params(deep=False)
        if values.pop(RANDOM_STATE.name, None) is not None:
            values["seed"] = self._seed()
        return values


class MethodEstimator(Estimator):
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

    method: ClassVar[type[Method]]
    task: ClassVar[str] = ""
    # options of the method that are no parameters: the class fixes the task, a path yields several
    # models, and arrays need neither of the others
    without: ClassVar[frozenset[str]] = frozenset(("task", "lam_path", "head", "buffer"))
    # by method and task
    classes: ClassVar[dict[tuple[str, str], Any]] = {}
    device: str = "cpu"
    schema_: Schema | None = None
    # for a model that `rfx train` trained on a table: how to read such tables
    table_: Schema | None = None

    def __init_subclass__(cls, *, method: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if not method:
            return
        cls.method = methods.get(method)
        cls.classes[method, cls.task] = cls
        # options of some kernels only are None by default
        always, common = cls.method.defaults(), {*Method.options, BUDGET_SECONDS.name}
        declared = cls.method.declared()
        options = [option for name, option in declared.items() if name not in cls.without]
        options.sort(key=lambda option: option.name in common)
        options += [DEVICE] * cls.method.accelerated
        parameters = [
            Parameter.of(option, option.name not in always and option is not DEVICE)
            for option in options
        ]
        derive(cls, parameters + [CATEGORICAL] * (CATEGORICAL.name not in cls.without))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "method_")

    def _given(self) -> dict:
        """The options of the method that differ from the estimator's defaults; the method gets
        class weights as sample weights.
        """
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {
            name: value
            for name, value in self._asked().items()
            if name not in (CATEGORICAL.name, DEVICE.name, "class_weight")
            and not (value is defaults[name] or value == defaults[name])
        }

    def _create(self, task: str):
        with in_python():
            made = methods.create(self.method.name, task=task, **self._given())
        return dataclasses.replace(made, left_out=True)

    def _encode(self, task: str, X, y, n_classes: int | None = None):
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

    def _train(self, task: str, X, y, sample_weight=None):
        """Train the pipeline on rows X and encoded targets y (n,), and store it as method_."""
        X, trainer = self._encode(task, X, y), self._create(task)
        with in_python(), self.method.on(self.device):
            if self.method.incremental:
                self.session_ = trainer.session()
                trained = self.session_.fit(X, y, sample_weight)
            else:
                trained = trainer.fit(X, y, sample_weight)
            trained = trainer.with_probabilities(trained, X, y, sample_weight)
        if not trained.outcome.converged:
            timed_out = trained.outcome.ended == "timeout"
            advice = "a longer timeout" if timed_out else "a larger max_iter or tol"
            warnings.warn(
                f"the solver of {type(self).__name__} did not converge; try {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._keep(trained)
        return self

    def _train_further(self, X, y, sample_weight, **first):
        """Continue the training with a batch of encoded rows; first: the task and the classes (of
        class codes) for the first batch.
        """
        if first:
            task, classes = first["task"], first["classes"]
            X = self._encode(task, X, y, None if classes is None else len(classes))
            with in_python():
                session = self._create(task).session()
        elif not hasattr(self, "session_"):
            raise ValueError(
                "a model from a file has no training state, so partial_fit can't continue it; fit a"
                " new one"
            )
        else:
            session = self.session_
        with in_python():
            trained = session.further(X, y, first.get("classes"), sample_weight)
        self.session_ = session
        self._keep(trained)
        return self

    def _on_workers(self, X, y, sample_weight, classes: bool):
        """(rows, targets, labels) of a Dask array or data frame, whose rows stay on the workers."""
        if sample_weight is not None or getattr(self, "class_weight", None) is not None:
            raise ValueError(
                "distributed rows (Dask) do not support weights; omit sample_weight and"
                " class_weight"
            )
        self._drawn_seed = None
        categories.chosen(X, self.categorical_features)  # refuses named columns
        trainer = self._create("binary" if classes else "regression")
        with in_python():
            return distributed_rows(self, X, y, trainer, classes)

    def _keep(self, trained):
        self.method_ = trained
        # a closed form counts as one iteration
        self.n_iter_ = max(1, trained.outcome.n_iter)

    def _decision(self, X):
        check_is_fitted(self)
        with in_python(), device.use(self.device):
            return self.method_.decision_function(checked(self, X, reset=False))

    @property
    def info_(self) -> dict:
        """Training information: objective, gap, model_size, …, named as in a results row."""
        check_is_fitted(self)
        return self.method_.info

    @property
    def feature_importances_(self) -> np.ndarray:
        """Each input column's share of the learnt metric, the average squared gradient over scaled
        inputs; a categorical column has the sum of its encoded ones.

        They sum to 1. Raises AttributeError if no metric was learnt.
        """
        check_is_fitted(self)
        metric = self.method_.preprocessing.scaler.metric
        if metric is None:
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_, because it has no learnt"
                " metric; set metric to diagonal or full"
            )
        shares = metric.shares()
        if self.schema_ is None:
            return shares
        sums, first = np.zeros(self.n_features_in_), 0
        for column in self.schema_.columns:
            sums[column.position] = shares[first : first + column.width].sum()
            first += column.width
        return sums

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


class Unweighted:
    """Mixin before Classifier or Regressor: a method without sample weights."""

    def fit(self, X, y):
        """Fit the model to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none".
        y : array-like of shape (n_samples,)
            Labels or numbers.

        Returns
        -------
        self
        """
        return super().fit(X, y)  # type: ignore[misc]


def weights_of(X, sample_weight):
    """The weights (n,) as numbers, or None."""
    if sample_weight is None:
        return None
    sample_weight = device.numpy_of(sample_weight)
    return _check_sample_weight(sample_weight, X, dtype=np.float64)


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

    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or data frame
            stays on its workers (rf, sparse-rf, rb, lkrf, local).
        y : array-like of shape (n_samples,)
            Labels: numbers or words.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses: weight 2 counts a row twice, weight 0 ignores it.

        Returns
        -------
        self
        """
        if is_distributed(X):
            X, codes, classes = self._on_workers(X, y, sample_weight, True)
        else:
            X, y = checked(self, X, y)
            check_classification_targets(y)
            # rows of weight zero are removed later, so that their classes remain
            sample_weight = weights_of(X, sample_weight)
            if getattr(self, "class_weight", None) is not None:
                with in_python():
                    sample_weight = weights.of_rows(y, sample_weight, self.class_weight)
            classes, codes = np.unique(y, return_inverse=True)
            codes = codes.astype(np.float64)
        self._train("binary" if len(classes) <= 2 else "multiclass", X, codes, sample_weight)
        return self._label(classes)

    @available_if(lambda self: self.method.incremental)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Continue training with these rows, in their order (methods that learn in batches).

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
        labels = np.unique(classes) if first else self.classes_
        if classes is not None and not np.array_equal(np.unique(classes), labels):
            raise ValueError(
                f"classes={classes!r} is not the same as on the first call to partial_fit:"
                f" {labels!r}"
            )
        codes = np.minimum(np.searchsorted(labels, y), len(labels) - 1)
        if np.any(labels[codes] != y):
            raise ValueError(
                f"the label {y[labels[codes] != y][0]!r} is not among the classes {labels!r}"
            )
        sample_weight = weights_of(X, sample_weight)
        if self.class_weight == LabelWeights.BALANCED:
            raise ValueError(
                "class_weight='balanced' needs the counts of all rows, which partial_fit does not"
                " know; use {label: weight}"
            )
        if self.class_weight is not None:
            with in_python():
                factors = weights.of_labels(labels, self.class_weight)[codes]
            sample_weight = factors if sample_weight is None else factors * sample_weight
        begun = {
            "task": "binary" if len(labels) <= 2 else "multiclass",
            "classes": np.arange(len(labels), dtype=np.float64),
        }
        self._train_further(X, codes.astype(np.float64), sample_weight, **(begun if first else {}))
        return self._label(labels)

    def _label(self, classes):
        """Store the labels; numeric labels are also stored in the model file."""
        self.classes_ = classes
        if files.are_doubles(classes):
            self.method_ = self.method_.replace(classes=classes.astype(np.float64))
        return self

    @device.like_rows
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

    @device.like_rows
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
        decision = self.method_.ranked(decision)
        if decision.ndim == 2:
            return self.classes_[np.argmax(decision, axis=1)]
        return self.classes_[(decision > 0) * (len(self.classes_) > 1) * 1]

    def _has_probabilities(self):
        return not hasattr(self, "method_") or self.method_.has_probabilities

    @available_if(_has_probabilities)
    @device.like_rows
    def predict_proba(self, X):
        """Predict class probabilities: those of the loss (logistic, softmax), or calibrated by rows
        left out one by one (auto, kernel, rfm, local, rf, nystrom), or by a fifth of the rows,
        predicted by a second model of the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        decision = self._decision(X)
        return self.method_.probabilities(decision)


class Regressor(RegressorMixin, MethodEstimator):
    """Predicts numbers, one or (local, stochastic methods) several per row.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        Each input's share of the learnt metric; they sum to 1. Absent without a metric.
    """

    task = "regression"
    without = MethodEstimator.without | {"class_weight"}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.method.several_targets
        return tags

    def _checked(self, X, y, reset):
        several = self.method.several_targets
        X, y = checked(self, X, y, reset, y_numeric=True, multi_output=several)
        return X, np.asarray(y, np.float64)

    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or data frame
            stays on its workers (rf, sparse-rf, rb, lkrf, local).
        y : array-like of shape (n_samples,) or (local, stochastic) (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses: weight 2 counts a row twice, weight 0 ignores it.

        Returns
        -------
        self
        """
        if is_distributed(X):
            X, y, _ = self._on_workers(X, y, sample_weight, False)
        else:
            X, y = self._checked(X, y, True)
        return self._train("regression", X, y, weights_of(X, sample_weight))

    @available_if(lambda self: self.method.incremental)
    def partial_fit(self, X, y, sample_weight=None):
        """Continue training with these rows, in their order (methods that learn in batches).

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
        X, y = self._checked(X, y, first)
        begun = {"task": "regression", "classes": None} if first else {}
        return self._train_further(X, y, weights_of(X, sample_weight), **begun)

    @device.like_rows
    def predict(self, X, return_interval=None):
        """Predict the targets of rows, in their original units.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        return_interval : float, default=None
            The fraction of new targets, such as 0.9, that the interval contains.

        Returns
        -------
        prediction : ndarray of shape (n_samples,) or (n_samples, n_targets)
        lower, upper : ndarrays of shape (n_samples,)
            Only with return_interval: limits from the errors of rows left out of the training.
        """
        decision = self._decision(X)
        prediction = self.method_.labels(decision)
        if return_interval is None:
            return prediction
        with in_python():
            return prediction, *self.method_.interval(decision, return_interval)
