"""A training in batches in progress: raw rows of arrays, files, standard input and endless streams,
within budgets. It can be stopped, saved and resumed at any batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfx import parallel
from rfx.data.stream import ArraySource, Source, Stream
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.schema import Schema
from rfx.data.transforms import SAMPLE, Scaler, Survey
from rfx.data.transforms import Inputs as InputPreparation
from rfx.data.virtual import virtual_copies, virtual_source
from rfx.errors import UsageError
from rfx.fitting import input_selection, weights
from rfx.fitting.batch_weights import BatchWeights
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.fitting.held_out import OutOfSamplePredictions
from rfx.fitting.method import not_none, scalars
from rfx.fitting.metric_learning import dense
from rfx.fitting.pipeline import PROBABILISTIC, Checkpointer, Outcome, Pipeline, silent
from rfx.fitting.problem import Preprocessing, Problem, check_inputs, input_dtype
from rfx.fitting.progress import Progress, ProgressReport, TraceEntry
from rfx.fitting.stream_methods import (
    HEAD,
    Batch,
    OwnSolver,
    SavedSetup,
    Setup,
    StreamMethod,
    StreamModel,
    inputs_of,
    pca_arrays,
)
from rfx.fitting.target_coding import (
    TargetArray,
    TargetCoding,
    checked_targets,
    find_task,
    known_classes,
    learn_coding,
    squeezed_outputs,
)
from rfx.model import read_fields
from rfx.types import Arrays, Inputs, JsonObject

# Returns an iterator of (X, y) over all rows each time it is called.
Chunks: TypeAlias = Callable[[], Iterator[tuple[Inputs, np.ndarray]]]
# Maximum rows of the sample on which options are chosen; other words for the bandwidth than loo are
# resolved on SAMPLE of them.
CHOICE_ROWS = 6144
# A curve has a point each time the samples grew by this factor.
GROWTH = 1.3
# Batches whose values before their own step give probabilities and intervals: the latest ones of
# those at which the samples doubled, and of rows in memory, which `with_probabilities` can
# hold out instead, only after so many steps.
LATEST, STEPS = 4, 16
JUDGED = ("judged_values", "judged_targets")
# Seconds between reports of progress.
TELL = 0.2


@dataclass(frozen=True)
class SavedLearning:
    """The entries of a checkpoint's header about the survey, apart from those of `SavedSetup`."""

    scaling: str
    n_inputs: int
    validation: list[JsonObject]
    chosen: dict[str, float]
    metric: str = "none"
    target_scaler: JsonObject | None = None
    weight_sum: float | None = None


@dataclass(frozen=True)
class SavedProgress:
    """The entries of a checkpoint's header about the steps that were made."""

    position: JsonObject
    # lists in JSON
    counts: tuple[int, float, float, float, float, int]
    weights: tuple[int, float]
    curve: list[TraceEntry]
    begin: JsonObject | None = None
    finished: bool = False
    continues: bool = False


@dataclass(frozen=True)
class Learned:
    """Values learnt from a survey of the rows before the first step.

    Parameters
    ----------
    preprocessing : Preprocessing
    inputs : InputPreparation
        Scaling, unit length and principal components.
    setup : Setup
        Without weights.
    n_inputs, n_targets : int
        Number of raw inputs, and of targets per row.
    steps : list of ChoiceTrace
    weight_sum : float or None
        The sum of the sample weights.
    chosen : dict
        The options given as words, and their chosen values.
    """

    preprocessing: Preprocessing
    inputs: InputPreparation
    setup: Setup
    n_inputs: int
    n_targets: int
    steps: list[ChoiceTrace]
    weight_sum: float | None = None
    chosen: dict[str, float] = field(default_factory=dict)

    @property
    def n_counted(self) -> float:
        """The effective number of rows under the sample weights."""
        return self.setup.n_rows if self.weight_sum is None else self.weight_sum

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Encode raw targets as (n, outputs)."""
        coding = self.preprocessing.coding
        coding.check_known(y, self.preprocessing.schema)
        return coding.encode(y, self.setup.loss.name == "softmax")

    def header(self) -> JsonObject:
        """For model files and checkpoints."""
        components = self.inputs.pca
        params = self.setup.kernel_params
        header = {
            "unit": self.inputs.unit,
            "centred": None if components is None else components.centred,
            "kernel_params": {name: np.asarray(v).tolist() for name, v in params.items()},
            "n_rows": self.setup.n_rows,
            "n_inputs": self.n_inputs,
            "n_prepared": self.setup.n_inputs,
            "n_targets": self.n_targets,
            "chosen": self.chosen,
        }
        return header if self.weight_sum is None else header | {"weight_sum": self.weight_sum}

    def state(self) -> tuple[JsonObject, Arrays]:
        """Header and arrays for a checkpoint."""
        coding = self.preprocessing.coding
        scaler = self.inputs.scaler.to_dict()
        header = self.header() | {
            "task": coding.task,
            "loss": self.setup.loss.name,
            "scaling": scaler.pop("kind"),
            "metric": scaler.pop("metric"),
            "target_scaler": None if coding.scaler is None else coding.scaler.to_dict(),
            "validation": [step.as_dict() for step in self.steps],
        }
        arrays = pca_arrays(self.inputs) | {"sample": self.setup.sample}
        arrays |= {f"scaler_{name}": values for name, values in scaler.items()}
        return header, arrays if coding.classes is None else arrays | {"classes": coding.classes}

    @classmethod
    def of_state(
        cls, header: JsonObject, arrays: Arrays, method: StreamMethod, schema: Schema | None
    ) -> Learned:
        """The values in a checkpoint."""
        saved = read_fields(SavedLearning, header)
        saved_setup = read_fields(SavedSetup, header)
        named = {"kind": saved.scaling, "metric": saved.metric}
        own = {name[7:]: values for name, values in arrays.items() if name.startswith("scaler_")}
        inputs = inputs_of(saved_setup, arrays, Scaler.from_dict(named | own))
        coding = TargetCoding.of_state(
            saved_setup.task, saved.target_scaler, arrays, saved_setup.n_targets
        )
        setup = Setup.of(saved_setup, method, coding.classes)
        return cls(
            Preprocessing(coding, inputs.scaler, input_dtype(method), schema),
            inputs,
            replace(setup, sample=arrays["sample"]),
            saved.n_inputs,
            saved_setup.n_targets,
            [ChoiceTrace.of_dict(step) for step in saved.validation],
            saved.weight_sum,
            saved.chosen,
        )


class Session:
    """One training in progress: the only mutable object here.

    `fit` and `fit_stream` process rows to their end; `further` makes steps over more rows. All
    return a pipeline.

    Parameters
    ----------
    asked : StreamMethod
        With the options as requested.
    schema, classes
        See `rfx.fitting.training.Trainer`.
    checkpointer : Checkpointer or None
        Where to write checkpoints, and whether to resume from one.
    held_out : (X, y) or None
        Raw rows to evaluate during training, outside of its clock. ``trace`` then has ``error``:
        the error rate or the mean absolute error.
    squared : bool
        The error of a regression is the mean squared error instead.
    progress : callable or None
    """

    def __init__(
        self,
        asked: StreamMethod,
        schema: Schema | None = None,
        classes: np.ndarray | None = None,
        checkpointer: Checkpointer | None = None,
        held_out: tuple[Inputs, ArrayLike] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.asked = self.method = asked
        self.schema, self.classes, self.checkpointer = schema, classes, checkpointer
        self.held_out = held_out and (held_out[0], checked_targets(*held_out))
        self.squared, self.progress = squared, progress
        self.constraint: SplitConstraint | None = None
        self.weights = BatchWeights()
        self._learned: Learned | None = None
        self.solver: OwnSolver = None
        self.curve: list[TraceEntry] = []
        self.samples, self.seconds, self.next_point, self.epochs = 0, 0.0, 1.0, 1
        self.loss_sum, self.loss_rows = 0.0, 0.0
        self.seconds_choice, self._evaluating = 0.0, 0.0
        # whether these rows follow those of a finished training, and whether all were read
        self.continues = self.finished = False
        self._live: Callable[[], np.ndarray] | None = None
        # values and targets of batches before they were learnt; whether no row is learnt twice
        self.next_judged, self.judged, self.fresh = 0, list[np.ndarray](), True
        self.least_steps = STEPS

    @property
    def learned(self) -> Learned:
        """What was learnt before the first step."""
        assert self._learned is not None
        return self._learned

    def __getstate__(self) -> dict[str, object]:
        # listeners are not pickled
        return self.__dict__ | {
            "_live": None,
            "progress": None,
            "held_out": None,
            "constraint": None,
        }

    # ------------------------------------------------------------------ training

    @parallel.one_blas_thread()
    def fit(
        self,
        X: Inputs,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        constraint: SplitConstraint | None = None,
    ) -> Pipeline:
        """Learn from rows in memory, with a random order in each epoch.

        Parameters
        ----------
        X : array or CSR matrix, (n, d)
        y : array, (n,) or (n, k)
            Several targets per row require regression.
        sample_weight : array, (n,), or None
        constraint : SplitConstraint or None
            Groups or times for held-out splits.
        """
        start = time.perf_counter()
        method = self.method
        every = checked_targets(X, y)
        classes = self.classes
        weighted = sample_weight is not None or method.get("class_weight") is not None
        if method.virtual != "none":
            _check_virtual(method, weighted or (constraint is not None and constraint.given))
            constraint = None
        self.constraint, own, targets = constraint, None, every
        if weighted:
            task = find_task(method, TargetArray(every))
            X, targets, own, self.constraint = weights.counted(
                method, task, self.schema, X, every, sample_weight, constraint
            )
            classes = known_classes(classes, task, every, targets)
        self.weights = BatchWeights(own)
        if method.virtual_copies is not None:
            copies = method.virtual_copies
            X, targets = virtual_copies(method.virtual, X, targets, method.seed, copies)
        source: Source = ArraySource(X, targets, method.seed, method.replace, own)
        if method.endless:
            source = virtual_source(method.virtual, X, targets, method.seed)
        return self._run(source, lambda: iter([(X, targets)]), 0, start, classes)

    @parallel.one_blas_thread()
    def fit_stream(self, source: Source) -> Pipeline:
        """Learn from a source of rows (rfx.data.stream), shuffled by the option `buffer`."""
        start = time.perf_counter()
        method = self.method
        method.check_stream(source)
        self.weights = BatchWeights(None, method.get("class_weight"), self.schema)
        self.least_steps = 0
        head = method.head or (None if source.rewindable else HEAD)

        def chunks() -> Iterator[tuple[Inputs, np.ndarray]]:
            if head is not None:
                yield source.peek(head)
                return
            source.rewind()
            while (part := source.read(65536)) is not None:
                yield part[:2]
            source.rewind()

        return self._run(source, chunks, method.buffer, start)

    @parallel.one_blas_thread()
    def further(
        self,
        X: Inputs,
        y: ArrayLike,
        classes: np.ndarray | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Pipeline:
        """Make steps over the rows X (n, d), y (n,) or (n, k), in order, in batches.

        The first call also learns scaling, gamma and, unless `classes` is given, the labels. The
        loss of each row is multiplied by its weight divided by the mean weight so far.
        """
        if not self.method.incremental:
            raise UsageError(
                f"method {self.method.name} does not learn from further rows; use fit, or another"
                " method"
            )
        n_targets = None if self._learned is None else self._learned.n_targets
        targets = checked_targets(X, y, n_targets)
        given = weights.of_rows(targets, sample_weight)
        labelled = BatchWeights(None, self.method.get("class_weight"), self.schema)
        self.weights.by_label = labelled.by_label
        if self._learned is None:
            self.learn(lambda: iter([(X, targets)]), classes, sample_weight=given)
            self.start(True)
        for X_part, y_part, index in Stream(ArraySource(X, targets), self.method.batch):
            own = self.weights.further(y_part, weights.part(given, index))
            self.advance(X_part, y_part, None, own)
        return self._pipeline(self.seconds)

    def _run(
        self,
        source: Source,
        chunks: Chunks,
        buffer: int,
        start: float,
        classes: np.ndarray | None = None,
    ) -> Pipeline:
        """Learn from the source.

        chunks() returns (X, y) for the survey of the rows; classes are labels known beforehand.
        """
        timeout = self.method.timeout
        deadline = None if timeout is None else time.monotonic() + timeout
        saved = self.checkpointer.load(self.asked) if self.checkpointer else None
        if self.checkpointer is None or saved is None:
            counted = self._reads_all(source)
            self.learn(chunks, classes, source.name, counted)
            stream = self._stream(source, buffer)
            self.start(source.rewindable)
        else:
            with self.checkpointer.restoring():
                stream = self._resumed(source, buffer, *saved)
        with silent():
            status = self._consume(stream, deadline)
        self._count_further_rows(source)
        if self.checkpointer:
            self._save(self.checkpointer, stream)
        if self._live and (not self.curve or self.curve[-1]["samples"] != self.samples):
            self._point(self._live)
        seconds = time.perf_counter() - start - self._evaluating - self.seconds_choice
        more = self.method.finished(
            self.solver, partial(self._batches, source), self.learned.n_counted
        )
        return self._pipeline(seconds, status, more)

    def _reads_all(self, source: Source) -> bool:
        """Whether the survey reads all rows of a source."""
        return source.rewindable and not self.method.head

    def _stream(self, source: Source, buffer: int) -> Stream:
        """The batches of a source, shuffled in a buffer of so many rows; sets the epochs."""
        method = self.method
        n_rows = self.learned.setup.n_rows if self._reads_all(source) else None
        self.epochs = method.passes(n_rows)
        self.fresh = method.endless or self.epochs == 1
        endless = method.budget_samples is not None or method.endless
        epochs = None if endless and source.rewindable else self.epochs
        return Stream(source, method.batch, buffer, method.seed, epochs)

    def _resumed(self, source: Source, buffer: int, header: JsonObject, arrays: Arrays) -> Stream:
        """The batches that follow those of a checkpoint, whose state is restored."""
        self._restore(header, arrays)
        saved = read_fields(SavedProgress, header)
        source.begin = saved.begin
        further = saved.finished and source.further(saved.position["source"])
        self.continues = bool(saved.continues or further)
        stream = self._stream(source, buffer)
        self.start(source.rewindable)
        of_solver = {n[7:]: v for n, v in arrays.items() if n.startswith("solver_")}
        self.solver.restore(of_solver)
        if not further:
            stream.seek(saved.position)
        return stream

    def _count_further_rows(self, source: Source) -> None:
        """Count the rows that followed those of a finished training, once all are read."""
        if self.continues and self.finished and source.row:
            setup = self.learned.setup
            setup = replace(setup, n_rows=setup.n_rows + source.row)
            self._learned = replace(self.learned, setup=setup)
            self.continues = False

    def _batches(self, source: Source) -> Iterator[Batch]:
        """All prepared rows of a source, with encoded targets and numbers."""
        source.rewind()
        for X, y, index in Stream(source, 4096):
            yield self._prepared(X), self.learned.encode(y), index

    def _prepared(self, X: Inputs) -> Inputs:
        return self.learned.inputs.transform(X, input_dtype(self.method))

    # ------------------------------------------------------------------ steps of a training

    def learn(
        self,
        chunks: Chunks,
        classes: np.ndarray | None = None,
        name: str | None = None,
        counted: bool = False,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        """Survey the rows and initialise the training.

        name: of the rows, for messages; counted: whether they are all rows; sample_weight: (n,) if
        the session does not know it yet.
        """
        method = self.method
        n_kept = max(SAMPLE, method.n_landmarks())
        survey = self._survey(chunks, max(CHOICE_ROWS, n_kept), name)
        check_inputs(survey.n_inputs)
        task = find_task(method, survey, classes)
        coding = learn_coding(method, task, survey, classes)
        loss = method.loss_for(task)
        self.weights.check(coding.classes, method.get("class_weight"))
        # first the metric, which changes distances, then the options that depend on them
        coding.check_known(survey.y, self.schema)
        Y = coding.encode(survey.y, loss.name == "softmax")
        own = self.weights.of_some(survey.y, survey.index, sample_weight)
        constraint = None if self.constraint is None else self.constraint.rows(survey.index)
        steps: list[ChoiceTrace] = []
        problem = Problem(
            survey.X, Y, loss, task, own, constraint=constraint, measure=method.measure
        )
        if method.metric != "none":
            first = problem.rows(np.arange(len(Y))[:n_kept])
            found = input_selection.with_metric(survey.inputs.scaler, method, first)
            steps, survey.inputs.scaler = found.steps, found.scaler
            if found.scaler.metric is not None:
                survey.X = found.scaler.metric.transform(survey.X)
        some = np.arange(len(Y)) if own is None else np.flatnonzero(own)
        problem = replace(problem, X=survey.X).rows(some[:CHOICE_ROWS])
        problem = replace(problem, progress=self.progress)
        with silent():
            choice = method.chosen(problem, survey.n_rows if counted else None)
        self.seconds_choice = choice.seconds
        preprocessing = Preprocessing(
            coding, survey.inputs.scaler, input_dtype(method), self.schema
        )
        params = choice.method.kernel_params(survey.X[:SAMPLE])
        sizes = survey.X.shape[1], Y.shape[1], survey.n_rows
        learned = Learned(
            preprocessing,
            survey.inputs,
            Setup(task, loss, params, *sizes, dense(survey.X[:n_kept])),
            survey.n_inputs,
            survey.n_targets,
            steps + choice.steps,
            None if self.weights.own is None else self.weights.sum,
            {name: float(value) for name, value in choice.chosen.items()},
        )
        self._know(learned)

    def _survey(self, chunks: Chunks, sample: int, name: str | None) -> Survey:
        """The survey of the rows with so many of them as a sample; name: see `learn`."""
        method = self.method
        return Survey(
            chunks,
            scaling=method.scaling,
            unit=method.unit,
            pca=method.pca,
            centred=method.pca_centred,
            dtype=input_dtype(method),
            seed=method.seed,
            sample=sample,
            name=name,
        )

    def _know(self, learned: Learned) -> None:
        self._learned, self.method = learned, self.asked.with_choice(learned.chosen)

    def start(self, rewindable: bool) -> None:
        """Create the solver, and follow its values for the held-out rows."""
        method = self.method
        self._evaluating = 0.0
        setup = self.learned.setup
        own = self.weights.relative()
        self.solver = method.start(replace(setup, weights=own, rewindable=rewindable))
        if self.held_out is not None:
            views = [self._prepared(view) for view in method.views_of(self.held_out[0])]

            def live() -> np.ndarray:
                values = [method.predict(self.solver, view) for view in views]
                return np.asarray(np.mean(values, axis=0))

            self._live = live

    def advance(
        self, X: Inputs, y: np.ndarray, index: np.ndarray | None, own: np.ndarray | None
    ) -> None:
        """One step over a batch of raw rows."""
        rows = self._prepared(X)
        Y = self.learned.encode(y)
        known = self.learned
        fresh = self.fresh or self.samples < known.setup.n_rows
        due = self.samples >= self.next_judged and self.solver.t >= self.least_steps
        if fresh and due and known.setup.loss.name not in PROBABILISTIC:
            self.next_judged = max(self.samples + 1, 2 * self.samples)
            batch = self.method.predict(self.solver, rows), y
            before = self.judged or [part[:0] for part in batch]
            together = map(np.concatenate, zip(before, batch))
            self.judged = [part[-LATEST * len(y) :] for part in together]
        loss = self.solver.step(rows, Y, index, own)
        self.samples += len(y)
        # the mean loss of the last tenth of the rows
        keep = 1.0 if (self.loss_rows < 0.1 * self.samples) else 1.0 - len(y) / self.loss_rows
        self.loss_sum = keep * self.loss_sum + loss * len(y)
        self.loss_rows = keep * self.loss_rows + len(y)

    @property
    def mean_loss(self) -> float:
        """The mean loss of the latest rows, each before its own step."""
        return self.loss_sum / max(self.loss_rows, 1e-300)

    def _consume(self, stream: Stream, deadline: float | None) -> str:
        """Make steps over the stream until its end, or that of a budget; returns the status."""
        method, checkpointer = self.method, self.checkpointer
        started = time.perf_counter()
        before = self.seconds
        last_told = started
        for X, y, index in stream:
            self.advance(X, y, index, self.weights.of(y, index))
            self.seconds = before + time.perf_counter() - started - self._evaluating
            if self._live and self.samples >= self.next_point:
                self._point(self._live)
            if self.progress is not None and time.perf_counter() - last_told > TELL:
                last_told = time.perf_counter()
                report = ProgressReport(
                    samples=self.samples,
                    seconds=self.seconds,
                    loss=self.mean_loss,
                    share=self._share(),
                )
                self.progress(report)
            if (
                checkpointer
                and checkpointer.every is not None
                and self.solver.t % checkpointer.every == 0
            ):
                self._save(checkpointer, stream)
            if method.budget_samples is not None and self.samples >= method.budget_samples:
                break
            if method.budget_seconds is not None and self.seconds >= method.budget_seconds:
                break
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
        else:
            self.finished = True
        return "converged"

    def _share(self) -> float | None:
        """The fraction of the training that is done, if its end is known."""
        method = self.method
        rows = self.learned.setup.n_rows * self.epochs
        samples = method.budget_samples or (math.inf if method.endless else rows)
        share = max(self.samples / samples, self.seconds / (method.budget_seconds or math.inf))
        return min(1.0, share) or None

    def _point(self, live: Callable[[], np.ndarray]) -> None:
        """Add a point to the curve: the error rate, or the mean absolute (or squared) error in the
        targets' original units.
        """
        start = time.perf_counter()
        preprocessing = self.learned.preprocessing
        values = live()
        _, y = self.held_out or (None, None)
        labels = preprocessing.labels(squeezed_outputs(values))
        if preprocessing.coding.task == "regression":
            errors = (labels - y) ** 2 if self.squared else np.abs(labels - y)
        else:
            errors = labels != y
        self.next_point = max(self.samples + 1, self.samples * GROWTH)
        self.curve.append(
            {
                "samples": self.samples,
                "seconds": round(self.seconds, 4),
                "steps": self.solver.t,
                "loss": self.mean_loss,
                "error": float(np.mean(errors)),
            }
        )
        self._evaluating += time.perf_counter() - start

    # ------------------------------------------------------------------ checkpoints

    def _save(self, checkpointer: Checkpointer, stream: Stream) -> None:
        """Write a checkpoint."""
        header, arrays = self.learned.state()
        header |= {
            "position": stream.position(),
            "begin": stream.source.begin,
            "finished": self.finished,
            "continues": self.continues,
            "schema": None if self.schema is None else self.schema.to_dict(),
            "counts": [
                self.samples,
                self.seconds,
                self.loss_sum,
                self.loss_rows,
                self.next_point,
                self.next_judged,
            ],
            "weights": [self.weights.rows, self.weights.sum],
            "curve": self.curve,
        }
        arrays |= {f"solver_{name}": values for name, values in self.solver.state().items()}
        arrays |= dict(zip(JUDGED, self.judged))
        checkpointer.write(self.asked, header, arrays)

    def _restore(self, header: JsonObject, arrays: Arrays) -> None:
        """Restore what a checkpoint has learnt and counted."""
        self._know(Learned.of_state(header, arrays, self.asked, self.schema))
        saved = read_fields(SavedProgress, header)
        self.curve = saved.curve
        self.samples, self.seconds, self.loss_sum, self.loss_rows = saved.counts[:4]
        self.next_point, self.next_judged = saved.counts[4:]
        self.judged = [arrays[name] for name in JUDGED if name in arrays]
        self.weights.rows, self.weights.sum = saved.weights

    # ------------------------------------------------------------------ results

    def _pipeline(
        self, seconds: float, status: str = "converged", more: dict[str, object] | None = None
    ) -> Pipeline:
        """The pipeline of the training so far."""
        method, known, solver = self.method, self.learned, self.solver
        setup = known.setup
        model = StreamModel(
            method,
            setup,
            known.inputs,
            known.header() | method.header(solver),
            partial(method.parameters, solver),
            partial(method.predict, solver),
            method.describe(solver),
        )
        info = {
            "n_train": setup.n_rows,
            "n_inputs": known.n_inputs,
            "lam": method.nu * known.n_counted,
            "objective": self.mean_loss,
            "gap": None,
            "n_iter": solver.t,
            "converged": status == "converged",
            "ended": status,
            "seconds_features": 0.0,
            "seconds_fit": seconds,
            "samples": self.samples,
            "seconds_steps": self.seconds,
            "kernel_params": scalars(setup.kernel_params),
        }
        optional = {
            "training_bytes": method.training_bytes(solver),
            "weight_sum": known.weight_sum,
            "validation": known.steps or None,
            "seconds_validation": (self.seconds_choice or None) if known.steps else None,
            "curve": self.curve or None,
        }
        outcome = Outcome.of(info | model.description | not_none(optional) | (more or {}))
        of_model = model, setup.loss, outcome, self.curve
        trained = Pipeline(self.asked, known.preprocessing, *of_model, chosen=method)
        trained.check_finite()
        if not self.judged or not np.isfinite(self.judged[0]).all():
            return trained
        values, y = self.judged
        rows = OutOfSamplePredictions(squeezed_outputs(values), y, "before they were learnt")
        return trained.judged(rows)


def _check_virtual(method: StreamMethod, constrained: bool) -> None:
    """Raise UsageError for generated rows that would never end, or that would need weights, groups
    or times.
    """
    if constrained:
        raise UsageError(
            f"--virtual is {method.virtual}, whose generated rows have no weights, groups or times;"
            " omit one of them"
        )
    if method.endless and method.budget_samples is None and method.budget_seconds is None:
        raise UsageError(
            "--virtual is endless; set --budget-samples, --budget-seconds or --virtual-copies"
        )
