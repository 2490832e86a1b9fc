"""A trained model, which predicts from raw rows; its file; and checkpoints of a training."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from rfx import device, losses, model, parallel
from rfx import steps as told
from rfx.data import transforms
from rfx.data.tabular.schema import Schema
from rfx.data.transforms import LogTargetScaler, Scaler, TargetScaler
from rfx.errors import DataError, UsageError
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.fitting.held_out import (
    KINDS,
    LEAST_OF_CLASS,
    MOST,
    VECTOR_SCALING,
    Calibration,
    ErrorQuantiles,
    ErrorScale,
    OutOfSamplePredictions,
    of_all,
)
from rfx.fitting.method import Method, Model
from rfx.fitting.problem import CLASSIFICATION, PredictionScore, Preprocessing, input_dtype
from rfx.fitting.progress import TraceEntry
from rfx.fitting.run_facts import RunFacts
from rfx.fitting.target_coding import TargetCoding, squeezed_outputs
from rfx.types import Inputs, JsonObject

# ----------------------------------------------------------------------
# A trained model with everything needed to predict from raw rows; the content of a model file.

# Losses that define probabilities.
PROBABILISTIC = ("logistic", "softmax")
ARRAYS = transforms.ARRAYS | {"classes": model.Array("f", "classes")}


@dataclass(frozen=True)
class Outcome:
    """What a training did, how well it solved its problem, and the evidence of its choices.

    Parameters
    ----------
    n_train, n_inputs : int
        Rows and raw inputs.
    lam : float
    objective : float
    gap : float or None
        The certificate: a bound on the distance of the objective from its minimum.
    n_iter : int
    converged : bool
    ended : str
        See `rfx.solvers.base.STATUSES`.
    seconds_features, seconds_fit, seconds_validation : float
        Of computing features, of the rest of the fit, and of the choices.
    validation : list of ChoiceTrace or None
        The trials of each choice; None if nothing was chosen.
    explicit, asked : dict or None
        The options with which the model can be trained again, and those that were words instead.
    leave_one_out, leave_one_out_rows : float and int, or None
        The score on rows left out of the solution or of folds, and the number of these rows.
    leave_one_out_by : str or None
        How these rows were left out, in words, if not one by one.
    details : dict
        Sizes and further measurements of the method, by column of a results row or name.
    """

    n_train: int
    n_inputs: int
    lam: float
    objective: float
    gap: float | None
    n_iter: int
    converged: bool
    ended: str
    seconds_features: float
    seconds_fit: float
    seconds_validation: float | None = None
    validation: list[ChoiceTrace] | None = None
    explicit: dict[str, object] | None = None
    asked: dict[str, object] | None = None
    leave_one_out: float | None = None
    leave_one_out_rows: int | None = None
    leave_one_out_by: str | None = None
    details: JsonObject = field(default_factory=dict)

    @classmethod
    def of(cls, columns: JsonObject) -> Outcome:
        """From the columns of a results row."""
        typed = {one.name for one in fields(cls)}
        own = {name: value for name, value in columns.items() if name in typed}
        return cls(**own, details={k: v for k, v in columns.items() if k not in typed})

    @classmethod
    def of_dict(cls, saved: JsonObject) -> Outcome:
        """From the header of a model file."""
        steps = saved.get("validation")
        if steps is None:
            return cls.of(saved)
        return cls.of(saved | {"validation": [ChoiceTrace.of_dict(step) for step in steps]})

    def columns(self) -> dict[str, object]:
        """All values by column of a results row or name, without those that were not determined."""
        values = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.default is MISSING or getattr(self, one.name) is not None
        }
        if self.validation is not None:
            values["validation"] = [step.as_dict() for step in self.validation]
        return values | values.pop("details")


@dataclass(frozen=True)
class Pipeline:
    """Preprocessing and model of one training. It is immutable.

    Parameters
    ----------
    method : Method
        The method that trained it, with the options as requested: words such as ``validation``
        are still words.
    preprocessing : Preprocessing
    model : Model or None
        None for a pipeline that only labels and scores decision values.
    loss : Loss
    outcome : Outcome
    trace : list of dict
        The solver's reports, step by step.
    calibration : Calibration or None
        Converts decision values to probabilities.
    path : tuple of Pipeline
        With --lam-path: the pipelines of all lambdas, in decreasing order.
    left_out : OutOfSamplePredictions or None
        Training rows predicted without them. A model file has only what follows from these.
    errors : ErrorQuantiles or None
        Of left-out rows: absolute errors in units of the target or of `error_scale`, or 1 less the
        probability of the label.
    error_scale : ErrorScale or None
        Of a regression, in units of the target; None if all errors have one scale.
    class_errors : tuple of ErrorQuantiles
        The same of the rows of each class; empty for a regression.
    run : RunFacts
        About the run that trained it; nothing is known in Python, or of a model from a file, whose
        outcome has them as details.
    chosen : Method or None
        The method with every choice made; None for a model from a file.
    """

    method: Method
    preprocessing: Preprocessing
    model: Model
    loss: losses.Loss
    outcome: Outcome
    trace: list[TraceEntry] = field(default_factory=list)
    calibration: Calibration | None = None
    path: tuple[Pipeline, ...] = ()
    left_out: OutOfSamplePredictions | None = None
    errors: ErrorQuantiles | None = None
    error_scale: ErrorScale | None = None
    class_errors: tuple[ErrorQuantiles, ...] = ()
    run: RunFacts = RunFacts()
    chosen: Method | None = None

    # ------------------------------------------------------------------ properties

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.name

    @property
    def task(self) -> str:
        return self.preprocessing.coding.task

    @property
    def classes(self) -> np.ndarray | None:
        """The labels (n_classes,), ascending; None for a regression."""
        return self.preprocessing.coding.classes

    @property
    def target_scaler(self) -> TargetScaler | None:
        return self.preprocessing.coding.scaler

    @property
    def schema(self) -> Schema | None:
        """How rows of a table become X and y."""
        return self.preprocessing.schema

    @property
    def letters(self) -> bytes | None:
        """The alphabet of the model, if its rows are sequences."""
        return getattr(self.model, "letters", None)

    def replace(self, **changes: Any) -> Pipeline:
        """The same pipeline with other parts; ``classes`` and ``schema`` are those of its
        preprocessing.
        """
        inner = {name: changes.pop(name) for name in ("classes", "schema") if name in changes}
        if inner:
            changes["preprocessing"] = self.preprocessing.replace(**inner)
            changes["path"] = tuple(point.replace(**inner) for point in self.path)
        return replace(self, **changes)

    def input_names(self) -> list[str]:
        """The columns of a table, or the inputs' numbers from 1 on."""
        inputs = None if self.schema is None else self.schema.inputs
        if inputs is None:
            return [str(number) for number in range(1, self.outcome.n_inputs + 1)]
        return [column.name for column in inputs]

    def importances(self, own: bool = False) -> np.ndarray | None:
        """Each input's share of the learnt metric, the average squared gradient over scaled inputs.

        Parameters
        ----------
        own : bool
            Without a metric, take the gradients of the model itself, if it has some.

        Returns
        -------
        array, (columns,), or None
            They sum to 1. A table column has the sum of its inputs. None without gradients.
        """
        metric = self.preprocessing.scaler.metric
        shares = None if metric is None else metric.shares()
        if metric is None and own:
            squares = self.method.gradient_squares(self.model)
            shares = None if squares is None or not squares.any() else squares / squares.sum()
        if shares is None:
            return None
        inputs = None if self.schema is None else self.schema.inputs
        if inputs is None:
            return shares
        starts = np.cumsum([0, *(column.width for column in inputs)])
        return np.array([shares[a:b].sum() for a, b in itertools.pairwise(starts)])

    @property
    def info(self) -> JsonObject:
        """Outcome and run in the columns of a results row, and further names."""
        named = {name: self.method.get(name) for name in ("kernel", "solver")}
        named |= {"method": self.name, "task": self.task, "loss": self.loss.name}
        return named | self.outcome.columns() | self.run.as_dict()

    def of_run(self, run: RunFacts) -> Pipeline:
        """The same pipeline, and those of its path, with these facts about their run."""
        path = tuple(point.of_run(run) for point in self.path)
        return replace(self, run=run, path=path)

    # ------------------------------------------------------------------ prediction

    @parallel.one_blas_thread()
    @device.for_rows
    def decision_function(self, X: Inputs) -> np.ndarray:
        """(n,) or (n, classes) values before they become labels; for regression, scaled targets.

        Parameters
        ----------
        X : array or CSR matrix, (n, d)
            Raw inputs.

        Raises
        ------
        DataError
            For a wrong number of inputs, and, with the row, if a value is not finite.
        """
        views = [self._decision(rows) for rows in self.method.views_of(X)]
        return sum(views[1:], views[0]) / len(views) if len(views) > 1 else views[0]

    def _decision(self, X: Inputs) -> np.ndarray:
        scaled = self.preprocessing.rows(X)
        with silent():
            values: np.ndarray = self.model.decision(scaled)
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            row = np.argmin(finite) + 1
            raise DataError(
                f"the model has no finite value for row {row}, because its inputs are too large"
            )
        return squeezed_outputs(values)

    def ranked(self, decision: np.ndarray) -> np.ndarray:
        """Values whose sign (two labels), or largest entry, is the prediction.

        Those of decision_function; with requested probabilities these instead, less 1/2 for two
        labels, so that the prediction is the most probable label.
        """
        if not self.predicts_most_probable:
            return decision
        shares = self.probabilities(decision)
        return shares[:, 1] - 0.5 if decision.ndim == 1 else shares

    @property
    def predicts_most_probable(self) -> bool:
        """Whether the prediction is the most probable label, not that of decision values."""
        return self.calibration is not None and self.calibration.kind in KINDS

    def labels(self, decision: np.ndarray) -> np.ndarray:
        """The result of predict, from decision_function's values."""
        return self.preprocessing.labels(self.ranked(decision))

    def as_own(self, other: Pipeline, decision: np.ndarray) -> np.ndarray:
        """Decision values of another model of the same targets; for regression, in units of this
        one's scaled target.
        """
        if self.target_scaler is None:
            return decision
        return self.target_scaler.transform(other.labels(decision))

    def predict(self, X: Inputs) -> np.ndarray:
        """(n,) labels, or targets in their original units, of raw rows X (n, d)."""
        return self.labels(self.decision_function(X))

    def score(self, X: Inputs, y: ArrayLike) -> PredictionScore:
        """The score on raw rows X and targets y; see `Preprocessing.score`.

        Warns about unseen labels: rows with them count as wrong.
        """
        self.preprocessing.warn_of_unknown(y)
        return self.evaluate(self.decision_function(X), y)

    def evaluate(self, decision: np.ndarray, y: ArrayLike) -> PredictionScore:
        """The result of score, from decision_function's values."""
        return self.method.score(self.preprocessing, self.ranked(decision), y)

    def check_finite(self) -> None:
        """Raise DataError for a certificate or a model with a number that is not finite."""
        objective, gap = self.outcome.objective, self.outcome.gap
        parts = [np.array([objective, gap or 0.0]), *self.model.arrays().values()]
        if not all(np.isfinite(part).all() for part in parts):
            raise DataError(
                f"training {self.name} diverged: its numbers are not finite (objective"
                f" {objective:g}); try another --lam or --gamma, smaller steps, or scale the inputs"
            )

    # ------------------------------------------------------------------ left-out rows

    def of_mean(self, decision: np.ndarray, y: np.ndarray) -> Pipeline:
        """The pipeline whose predictions are means also if logarithms of targets are learnt with
        squared loss, by decision values and targets (n,) of rows left out.
        """
        scaler = self.target_scaler
        if not isinstance(scaler, LogTargetScaler) or self.loss.name != "squared":
            return self
        coding = replace(self.preprocessing.coding, scaler=scaler.of_mean(decision, y))
        return replace(self, preprocessing=replace(self.preprocessing, coding=coding))

    def judged(self, rows: OutOfSamplePredictions, calibrate: str | None = None) -> Pipeline:
        """The pipeline with what follows from left-out rows: probabilities and `errors`.

        calibrate: the kind of the probabilities; by default those of the loss, else vector
        scaling. Raises DataError if that kind can't be fitted.
        """
        if self.task == "regression":
            assert self.target_scaler is not None
            predicted = self.target_scaler.even_prediction(rows.decision)
            if predicted.ndim > 1:
                return replace(self, left_out=rows)
            errors = np.abs(predicted - self.target_scaler.even(rows.y))
            scale, errors = ErrorScale.narrower(predicted, errors)
            quantiles = ErrorQuantiles.of(errors, rows.by)
            return replace(self, left_out=rows, errors=quantiles, error_scale=scale)
        assert self.classes is not None
        made = replace(self, left_out=rows)
        kind = calibrate
        if kind is None and self.loss.name not in PROBABILISTIC:
            kind = VECTOR_SCALING
        if kind is not None and len(self.classes) > 1:
            fitting = kind, rows.decision, rows.y, self.classes, rows.by, self.schema
            made = replace(made, calibration=Calibration.fit(*fitting))
        shares = made.probabilities(rows.decision)
        places = np.searchsorted(self.classes, rows.y)
        misses = 1 - shares[np.arange(len(places)), places]
        most = max(LEAST_OF_CLASS, MOST // len(self.classes))
        of_class = tuple(
            ErrorQuantiles.of(misses[places == place], rows.by, most)
            for place in range(len(self.classes))
        )
        return replace(made, errors=ErrorQuantiles.of(misses, rows.by), class_errors=of_class)

    def _quantile(self, level: float) -> float:
        if self.errors is None:
            raise UsageError(
                "the model has no errors of left-out rows, which intervals and sets need; train it"
                " again, with --holdout 0.2 if its method has no leave-one-out errors"
            )
        return self.errors.at(level)

    def interval(self, decision: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits (n,) that contain a fraction `level` of new targets.

        Raises
        ------
        UsageError
            For a classification, a model without errors of left-out rows, and a level that these
            are too few for.
        """
        if self.task != "regression":
            raise UsageError(
                "--interval is for regression, but the model is a classification; use --sets"
            )
        if decision.ndim > 1:
            raise UsageError(
                f"intervals are for one target, but the model predicts {decision.shape[1]}; omit"
                " --interval"
            )
        assert self.target_scaler is not None
        quantile = self._quantile(level)
        middle = self.target_scaler.even_prediction(decision)
        typical = 1.0 if self.error_scale is None else self.error_scale.at(middle)
        limits = middle - quantile * typical, middle + quantile * typical
        lower, upper = map(self.target_scaler.uneven, limits)
        return lower, upper

    def sets(self, decision: np.ndarray, level: float) -> np.ndarray:
        """(n, classes), whether a label is in the set, which contains a fraction `level` of the new
        rows of each class, and always the most probable label; raises like `interval`.

        A class with too few left-out rows for the level has the quantile of all rows, which does
        not promise that fraction of its own rows.
        """
        if self.classes is None:
            raise UsageError(
                "--sets is for classification, but the model is a regression; use --interval"
            )
        limit = self._quantile(level)
        shares = self.probabilities(decision)
        of_class = [own.at(level) if own.states(level) else limit for own in self.class_errors]
        found = 1 - shares <= (of_class or limit)
        found[np.arange(len(found)), shares.argmax(axis=1)] = True
        return found

    # ------------------------------------------------------------------ probabilities

    @property
    def has_probabilities(self) -> bool:
        """Whether it has probabilities, of its loss or by calibration."""
        own = self.loss.name in PROBABILISTIC or self.calibration is not None
        return self.classes is not None and (own or len(self.classes) == 1)

    def check_probabilities(self) -> None:
        """Raise UsageError if it has no probabilities."""
        if self.classes is None:
            raise UsageError("--proba is for classification, but the model is a regression")
        if not self.has_probabilities and "workers" in self.info:
            raise UsageError(
                "the model has no probabilities, because it was trained with --scheduler, which"
                " holds no rows out; train it without, or with --loss logistic"
            )
        if not self.has_probabilities:
            raise UsageError(
                "the model has no probabilities, because it is one of --lam-path, or of an earlier"
                " version; train it again with --calibrate platt"
            )

    def probabilities(self, decision: np.ndarray) -> np.ndarray:
        """(n, classes) probabilities of decision values, in the order of the classes; raises like
        `check_probabilities`.
        """
        self.check_probabilities()
        if self.classes is not None and len(self.classes) == 1:
            return np.ones((len(decision), 1))
        if self.calibration is not None:
            return self.calibration.probabilities(decision)
        if self.loss.name == "softmax":
            return np.asarray(softmax(decision, axis=1))
        return of_all(expit(decision[:, None] if decision.ndim == 1 else decision))

    def probability_steps(self, outputs: int) -> told.Steps | None:
        """The computation steps from the decision values of a row to its probabilities; None if it
        has none.
        """
        if self.classes is None or not self.has_probabilities:
            return None
        if len(self.classes) == 1:
            return (told.linear(np.zeros((outputs, 1)), 1.0),)
        if self.calibration is None and self.loss.name == "softmax":
            return (told.Softmax(),)
        each: told.Steps = (told.Function("sigmoid"),)
        if self.calibration is not None:
            each = self.calibration.steps(outputs)
        if isinstance(each[-1], told.Softmax):
            return each
        if outputs > 1:
            return *each, told.Shares()
        return *each, told.linear(np.array([[-1.0, 1.0]]), np.array([1.0, 0.0]))

    @property
    def probability_source(self) -> str | None:
        """Where its probabilities come from, in words; None if it has none."""
        if not self.has_probabilities:
            return None
        own = f"from the {self.loss.name} loss itself"
        return own if self.calibration is None else self.calibration.words()

    # ------------------------------------------------------------------ files

    def save(self, path: str | Path | None, **more: object) -> int:
        """Write the model file, or nothing if path is None.

        Parameters
        ----------
        path : str, path or None
        **more
            Further entries of the header.

        Returns
        -------
        int
            Its size in bytes.
        """
        scaler = self.preprocessing.scaler.to_dict()
        plain = {k: v for k, v in scaler.items() if not isinstance(v, np.ndarray)}
        arrays = self.model.arrays() | {
            f"scaler_{k}": v for k, v in scaler.items() if isinstance(v, np.ndarray)
        }
        target = self.target_scaler
        header = self.model.header() | more
        header |= {
            "method": self.name,
            "method_format": self.method.file_format,
            "params": self.method.values,
            "task": self.task,
            "loss": self.loss.name,
            "info": self.info,
            "target_scaler": None if target is None else target.to_dict(),
            "scaling": self.method.scaling,
            "scaler": plain,
            "schema": None if self.schema is None else self.schema.to_dict(),
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "errors": None if self.errors is None else self.errors.to_dict(),
            "error_scale": None if self.error_scale is None else self.error_scale.to_dict(),
            "class_errors": [own.to_dict() for own in self.class_errors],
        }
        if self.classes is not None:
            arrays["classes"] = self.classes
        return model.write(path, header, arrays)

    @classmethod
    def of_state(cls, method: Method, header: JsonObject, arrays: Arrays) -> Pipeline:
        """The pipeline from a model file's header and arrays.

        Raises DataError or KeyError if the file is damaged or incomplete.
        """
        saved = model.read_fields(SavedPipeline, header)
        known = sizes(method, saved, arrays)
        outputs = known["outputs"]
        model.check_arrays(arrays, ARRAYS | method.saved_arrays(header), known)
        scaler = {k[7:]: v for k, v in arrays.items() if k.startswith("scaler_")}
        preprocessing = Preprocessing(
            TargetCoding.of_state(saved.task, saved.target_scaler, arrays, outputs),
            Scaler.from_dict(saved.scaler | scaler),
            input_dtype(method),
            Schema.of_header(header),
        )
        curve, errors, scale = saved.calibration, saved.errors, saved.error_scale
        return cls(
            method,
            preprocessing,
            method.restore(header, arrays),
            losses.get_loss(saved.loss, method.get("epsilon")),
            Outcome.of_dict(saved.info),
            calibration=None if curve is None else Calibration.from_dict(curve, outputs),
            errors=None if errors is None else ErrorQuantiles.from_dict(errors),
            error_scale=None if scale is None else ErrorScale.from_dict(scale),
            class_errors=tuple(map(ErrorQuantiles.from_dict, saved.class_errors)),
        )


def silent() -> np.errstate:
    """A context without numpy's overflow warnings; the result is checked instead."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@dataclass(frozen=True)
class SavedPipeline:
    """The entries of a model file's header that are those of every method; see `Pipeline.save`."""

    task: str
    loss: str
    info: JsonObject
    scaler: JsonObject
    target_scaler: JsonObject | None = None
    n_targets: int = 1
    calibration: JsonObject | None = None
    errors: JsonObject | None = None
    error_scale: JsonObject | None = None
    class_errors: Sequence[JsonObject] = ()


def sizes(method: Method, saved: SavedPipeline, arrays: Arrays) -> dict[str, int]:
    """The sizes of a model file's axes known from its header and labels."""
    task = saved.task
    inputs = saved.info["n_inputs"]
    outputs = 1
    if task not in (*CLASSIFICATION, "regression") or type(inputs) is not int or inputs < 0:
        raise DataError(f"its task is {task!r:.40}, its number of inputs {inputs!r:.40}")
    if task in CLASSIFICATION:
        (count,) = arrays["classes"].shape
        if not count:
            raise DataError("it has no classes")
        outputs = count if count > 2 else 1
    elif method.several_targets:
        outputs = saved.n_targets
    return {"inputs": inputs, "outputs": outputs}


# ----------------------------------------------------------------------
# Checkpoints of a training: the complete state for a bitwise identical continuation, written
# atomically.
#
# A digest covers all parts, so that damage is found before any of them is used.

KIND = "checkpoint"
# Options that may change when a training is resumed.
CHANGEABLE = frozenset(("budget_seconds", "budget_samples", "timeout", "epochs"))
# Options that may have been chosen on the rows.
CHOSEN_BY_ROWS = frozenset(("scaling", "kernel", "metric", "metric_steps"))
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Checkpointer:
    """Where and how often checkpoints are written.

    Parameters
    ----------
    path : path
    every : int or None
        Steps between checkpoints; None for a single one at the end.
    resume : bool
        Resume from the existing checkpoint.
    """

    path: Path
    every: int | None = None
    resume: bool = False

    def write(self, method: Method, header: JsonObject, arrays: Arrays) -> None:
        """Write the state of a training of that method."""
        header = header | {"kind": KIND, "method": method.name, "params": method.values}
        model.write(self.path, header | {"digest": digest(header, arrays)}, arrays)

    def load(self, method: Method, rows: str | None = None) -> tuple[JsonObject, Arrays] | None:
        """Header and arrays of the checkpoint to resume from; None to start from the beginning.

        rows: a hash of the rows, which may have decided options.

        Raises
        ------
        DataError
            For a file that is damaged, or no checkpoint.
        UsageError
            If its method or options differ.
        """
        if not self.resume or not self.path.exists():
            return None
        try:
            header, arrays = model.read(self.path)
        except DataError as error:
            raise self._damaged(str(error)) from error
        if header.get("kind") != KIND:
            raise DataError(
                f"{self.path} is not a checkpoint but a model file; use the file that --checkpoint"
                " wrote"
            )
        stated = header.pop("digest", None)
        header.pop("format", None)
        if stated != digest(header, arrays):
            raise self._damaged("its parts were not written together")
        of_method = header["method"]
        params = header["params"]
        if of_method != method.name:
            raise UsageError(f"checkpoint {self.path} is of method {of_method}, not {method.name}")
        other_rows = header.get("rows", rows) != rows
        for name, value in method.values.items():
            before = params.get(name)
            if name in CHOSEN_BY_ROWS and before != value and other_rows:
                raise UsageError(
                    f"checkpoint {self.path} is of other rows, or of --{name} {before}; use the"
                    " same data and options, or omit --resume"
                )
            if name not in CHANGEABLE and before != value:
                raise UsageError(
                    f"--{name.replace('_', '-')} is {value}, but was {before} when the checkpoint"
                    f" {self.path} was written; use the same value"
                )
        return header, arrays

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Raise DataError if the parts of a whole checkpoint are not those of this version."""
        try:
            yield
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, reason: str) -> DataError:
        """The error for a checkpoint that can't be resumed."""
        return DataError(
            f"checkpoint {self.path} is damaged ({' '.join(reason.split())[:300]}), or of another"
            " version of rfx; delete it to start again, or omit --resume"
        )


@dataclass(frozen=True)
class EarlierTraining:
    """What a checkpoint says of its training: the task, how rows become X and y, and the inputs."""

    task: str | None = None
    schema: Schema | None = None
    n_inputs: int | None = None


def known_before(path: str | Path | None) -> EarlierTraining:
    """The training of an existing checkpoint; nothing is known if there is none, or the file is no
    checkpoint, which `Checkpointer.load` reports.
    """
    if path is None:
        return EarlierTraining()
    try:
        header = model.read_header(path)
    except (DataError, OSError):
        return EarlierTraining()
    if header.get("kind") != KIND:
        return EarlierTraining()
    task = header["params"]["task"]
    schema = header.get("schema")
    known = None if schema is None else Schema.from_dict(schema)
    return EarlierTraining(task, known, header.get("n_inputs"))


def digest(header: JsonObject, arrays: Arrays) -> str:
    """A hash of the checkpoint's content."""
    content = hashlib.blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        # little-endian, as in the file, on every machine
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        content.update(f"{name} {values.dtype.str} {np.shape(arrays[name])}".encode())
        content.update(values.tobytes())
    return content.hexdigest()
