"""What all estimators share: parameters from declared options, a seed, checked inputs, a trained
method, and errors as ValueError.
"""

import dataclasses
import inspect
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
)
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from rfx import device, methods
from rfx.data.tabular.schema import Input, Schema
from rfx.data.training_table import TrainingTable
from rfx.distributed.rows import distributed_rows, is_distributed
from rfx.estimators import files, rows
from rfx.estimators.parameters import (
    CALIBRATE,
    CATEGORICAL,
    DEVICE,
    MISSING,
    RANDOM_STATE,
    derive,
    in_python,
)
from rfx.estimators.rows import TableRows, checked, column_means
from rfx.fitting.assessment import with_probabilities
from rfx.fitting.method import Method
from rfx.fitting.options import BUDGET_SECONDS, SEED
from rfx.options import Option

_MOST_SEEDS = 2**31  # drawn seeds are below this number
_EXAMPLE = """>>> from sklearn.datasets import {data}
>>> from rfx.estimators import {{name}}
>>> X, y = {data}(return_X_y=True)
>>> model = {{name}}(PARAMETERS).fit(X, y)
>>> model.score(X, y) > {least}
True"""


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

    def __init_subclass__(
        cls, *, options: Iterable[Option] = (), example: str = "", **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        if options:
            cls.options = tuple(options)
            derive(cls, [(option, option.default) for option in cls.options], example)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _seed(self) -> Any:
        """The seed of this fit, from `random_state` (scikit-learn's name) or else `seed`; a
        generator draws a seed for each fit.
        """
        state = self.random_state
        if state is None:
            return getattr(self, "seed", 0)
        if isinstance(state, (np.random.RandomState, np.random.Generator)):
            if self._drawn_seed is None:
                draw: Any = getattr(state, "integers", getattr(state, "randint", None))
                self._drawn_seed = int(draw(_MOST_SEEDS))
            return self._drawn_seed
        return SEED.replace(name="random_state").convert(state)

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
    # the description in the docstring, without the task, and a template of an example
    about: ClassVar[str] = ""
    example: ClassVar[str] = ""
    # options of the method that are no parameters: the class fixes the task, a path yields several
    # models, and arrays need neither of the others
    without: ClassVar[frozenset[str]] = frozenset(("task", "lam_path", "head", "buffer"))
    # by method and task
    classes: ClassVar[dict[tuple[str, str], Any]] = {}
    device: str = "cpu"
    # of estimators only
    added: ClassVar[tuple[Option, ...]] = (MISSING, CATEGORICAL)
    # how tables are encoded; None for rows of plain numbers
    schema_: Schema | None = None
    # the replacements (n_features,) of missing cells in later rows of numbers
    fills_: np.ndarray | None = None

    def __init_subclass__(cls, *, method: str = "", example: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if not method:
            return
        cls.method = methods.get(method)
        if not cls.method.weighted:
            cls.fit = _unweighted  # type: ignore[method-assign, assignment]
        if cls.task:
            cls.classes[method, cls.task] = cls
            pair = cls.classes.get((method, "classification"))
            own = inspect.cleandoc(cls.__doc__ or "")
            cls.about = pair.about if pair is not None and "\n" not in own else own
            first, end, rest = cls.about.partition("\n")
            cls.__doc__ = f"{first.removesuffix('.')} ({cls.task}).{end}{rest}"
        # options of some kernels only are None by default
        always = cls.method.defaults()
        common = {*Method.options, BUDGET_SECONDS.name}
        declared = cls.method.declared()
        options = [option for name, option in declared.items() if name not in cls.without]
        options.sort(key=lambda option: option.name in common)
        defaults = [
            (option, option.default if option.name in always else None) for option in options
        ]
        added = [DEVICE] * cls.method.accelerated + [*cls.added]
        example = cls.example.replace("PARAMETERS", example) if example else ""
        derive(cls, defaults + [(option, option.default) for option in added], example)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(self.added)
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "method_")

    def _given(self) -> dict:
        """The options of the method that differ from the estimator's defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        options = self.method.declared()
        changed = {
            name: value
            for name, value in self._asked().items()
            if name in options and not (value is defaults[name] or value == defaults[name])
        }
        if isinstance(changed.get("class_weight"), dict):
            changed["class_weight"] = files.weights_text(changed["class_weight"])
        return changed

    def _check_added(self) -> None:
        """Raise ValueError for an invalid parameter that is no option of the method."""
        with in_python():
            for option in (MISSING, DEVICE, CALIBRATE):
                value = getattr(self, option.name, None)
                if value is not None:
                    option.convert(value)

    def _create(self, task: str, schema: Schema | None = None):
        with in_python():
            made = methods.create(self.method.name, task=task, **self._given())
        return dataclasses.replace(made, predicts_left_out=True, schema=schema)

    def _begin(self, task: str, X, y):
        """(X (n, width), the trainer) of rows returned by `checked` with encoded targets y. Sets
        `schema_` and `fills_`.
        """
        classes = getattr(self, "classes_", None)
        names = getattr(self, "feature_names_in_", None)
        schema = None
        is_table = isinstance(X, TableRows)
        self.fills_ = column_means(self, X)
        if is_table:
            with in_python():
                schema, X = X.learn(y, task, self._seed(), classes)
        elif names is not None:
            fills = [None] * len(names) if self.fills_ is None else self.fills_.tolist()
            inputs = [
                Input(name, place, fill=fill, complete=True)
                for place, (name, fill) in enumerate(zip(names.tolist(), fills))
            ]
            schema = Schema(inputs, named=True, size=len(inputs))
        if classes is not None and (words := files.words(classes)):
            schema = dataclasses.replace(schema or Schema(), labels=words)
        self.schema_ = schema if is_table else None
        return X, self._create(task, schema)

    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs; a sparse matrix stays sparse with scaling="none". A Dask array or data frame
            stays on its workers (rf, sparse-rf, rb, lkrf, local).
        y : array-like of shape (n_samples,)
            Labels, numbers or words; or targets, for `local` and stochastic methods also of shape
            (n_samples, n_targets).
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights of the rows' losses: weight 2 counts a row twice, weight 0 ignores it.

        Returns
        -------
        self
        """
        self._check_added()
        if is_distributed(X):
            X, y = self._on_workers(X, y, sample_weight)
        else:
            X, y = self._checked(X, y, True)
        return self._train(self._task(), X, y, _weights_of(X, sample_weight))

    def _train(self, task: str, X, y, sample_weight=None):
        """Train the pipeline on rows X and encoded targets y (n,), and store it as method_."""
        X, trainer = self._begin(task, X, y)
        with in_python(), self.method.on(self.device):
            if self.method.incremental:
                self.session_ = trainer.session()
                trained = self.session_.fit(X, y, sample_weight)
            else:
                trained = trainer.fit(X, y, sample_weight)
            calibrate = getattr(self, CALIBRATE.name, None)
            table = TrainingTable.of_rows(X, y, sample_weight)
            trained = with_probabilities(trainer, trained, table, calibrate)
        if not trained.outcome.converged:
            timed_out = trained.outcome.ended == "timeout"
            advice = "a longer timeout" if timed_out else "a larger max_iter or tol"
            warnings.warn(
                f"the solver of {type(self).__name__} did not converge; try {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self._keep(trained)

    def _train_further(self, X, y, sample_weight, first: bool):
        """Continue the training with a batch of encoded rows."""
        sample_weight = _weights_of(X, sample_weight)
        classes = getattr(self, "classes_", None)
        if first:
            X, trainer = self._begin(self._task(), X, y)
            self.session_ = trainer.session()
        elif not hasattr(self, "session_"):
            raise ValueError(
                "a model from a file has no training state, so partial_fit can't continue it; fit a"
                " new one"
            )
        codes = None if classes is None else files.coded(classes, classes)
        with in_python():
            return self._keep(self.session_.further(X, y, codes, sample_weight))

    def _on_workers(self, X, y, sample_weight):
        """(rows, targets) of a Dask array or data frame, whose rows stay on the workers."""
        if sample_weight is not None or getattr(self, "class_weight", None) is not None:
            raise ValueError(
                "distributed rows (Dask) do not support weights; omit sample_weight and"
                " class_weight"
            )
        self._drawn_seed = None
        rows.chosen(None, self.categorical_features)  # refuses named columns
        classes = self.task != "regression"
        trainer = self._create("binary" if classes else "regression")
        with in_python():
            X, y, labels = distributed_rows(self, X, y, trainer, classes)
        if classes:
            self.classes_ = labels
        return X, y

    def _keep(self, trained):
        classes = getattr(self, "classes_", None)
        if classes is not None and files.are_doubles(classes):  # workers count from 0
            trained = trained.replace(classes=classes.astype(np.float64))
        self.method_ = trained
        # a closed form counts as one iteration
        self.n_iter_ = max(1, trained.outcome.n_iter)
        return self

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
        """Each input column's share of the learnt metric, or without one of the model's own average
        squared gradient, over scaled inputs; a categorical column has the sum of its encoded ones.

        They sum to 1. Raises AttributeError without a metric and gradients.
        """
        check_is_fitted(self)
        shares = self.method_.importances(own=True)
        if shares is None:
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_, because it has no metric or"
                " gradients; set metric to diagonal or full"
            )
        if self.schema_ is None:
            return shares
        every = np.zeros(self.n_features_in_)
        columns = self.schema_.columns
        # a model of a file has only its inputs
        from_file = self.schema_.target is not None
        every[slice(None) if from_file else [column.position for column in columns]] = shares
        return every

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


def _unweighted(self, X, y):
    return MethodEstimator.fit(self, X, y)


_unweighted.__name__ = "fit"
_unweighted.__doc__ = MethodEstimator.fit.__doc__


def _weights_of(X, sample_weight):
    """The weights (n,) as numbers, or None."""
    if sample_weight is None:
        return None
    return _check_sample_weight(device.numpy_of(sample_weight), X, dtype=np.float64)


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
    without = MethodEstimator.without | {"target_scaling", "target_transform"}
    added = (CALIBRATE, *MethodEstimator.added)
    example = _EXAMPLE.format(data="load_breast_cancer", least=0.9)

    def _task(self) -> str:
        return "binary" if len(self.classes_) <= 2 else "multiclass"

    def _checked(self, X, y, reset, further=False):
        X, y = checked(self, X, y, reset)
        check_classification_targets(y)
        if not further:
            self.classes_ = np.unique(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"the label {unknown[0]!r} is not among the classes {self.classes_!r}")
        return X, files.coded(self.classes_, y)

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
        if self.calibrate is not None:
            raise ValueError(
                f"calibrate is {self.calibrate!r:.40}, which needs all rows at once; use fit, or"
                " set calibrate to None"
            )
        first = _check_partial_fit_first_call(self, classes) or not hasattr(self, "method_")
        X, y = self._checked(X, y, first, further=True)
        return self._train_further(X, y, sample_weight, first)

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
        labels = self.method_.labels(decision)
        return self.classes_[np.searchsorted(self.method_.classes, labels)]

    @available_if(lambda self: not hasattr(self, "method_") or self.method_.has_probabilities)
    @device.like_rows
    def predict_proba(self, X):
        """Predict class probabilities: those of the loss (logistic, softmax), or calibrated by rows
        left out one by one (auto, kernel, rfm, local, rf, nystrom), by batches before they were
        learnt (stochastic methods), or by a fifth of the rows and a second model of the others.

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
    without = MethodEstimator.without | {"class_weight", "measure"}
    example = _EXAMPLE.format(data="load_diabetes", least=0.4)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.method.several_targets
        return tags

    def _task(self) -> str:
        return self.task

    def _checked(self, X, y, reset):
        several = self.method.several_targets
        X, y = checked(self, X, y, reset, True, several)
        return X, np.asarray(y, np.float64)

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
        return self._train_further(X, y, sample_weight, first)

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
        if self.method_.errors is None and prediction.ndim == 1:
            raise ValueError(
                f"{type(self).__name__} has no errors of left-out rows, which return_interval"
                " needs; use an estimator with leave-one-out errors, such as AutoRegressor"
            )
        with in_python():
            return prediction, *self.method_.interval(decision, return_interval)
