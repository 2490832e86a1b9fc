"""Train a pipeline from raw rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfx import device, parallel
from rfx.data import repeats
from rfx.data.stream import Source
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.schema import Schema
from rfx.data.transforms import LOG, Scaler
from rfx.errors import UsageError, warn_once
from rfx.fitting import assessment, input_selection, weights
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.fitting.input_selection import INPUTS
from rfx.fitting.method import Fitted, Method, not_none
from rfx.fitting.options import AUTO
from rfx.fitting.pipeline import Checkpointer, Outcome, Pipeline, silent
from rfx.fitting.problem import (
    Cache,
    HeldOutCurve,
    Preprocessing,
    Problem,
    check_inputs,
    check_memory,
    default_epsilon,
    input_dtype,
)
from rfx.fitting.progress import Progress
from rfx.fitting.selection import choose
from rfx.fitting.session import Session
from rfx.fitting.stream_methods import StreamMethod
from rfx.fitting.target_coding import (
    TargetArray,
    check_transform,
    checked_targets,
    find_task,
    known_classes,
    learn_coding,
    squeezed_outputs,
)
from rfx.measures import root_mean_square
from rfx.options import Path
from rfx.types import Inputs, JsonObject

# The options with which a model with chosen inputs can be trained again.
CHOSEN = (*INPUTS, "gamma", "lam")


@dataclass(frozen=True)
class Trainer:
    """A method, ready to learn from raw rows. `rfx.methods.create` makes one.

    Parameters
    ----------
    method : Method
    schema : Schema or None
        How the rows were read from a table, and the spelling of labels; stored in the pipeline.
    classes : array, (n_classes,), or None
        All labels, ascending, if the rows may lack some.
    checkpointer : Checkpointer or None
        Where to write checkpoints, and whether to resume from one.
    predicts_left_out : bool
        Whether to predict rows by the model without each of them, where this costs little: for the
        score, probabilities and intervals.
    """

    method: Method
    schema: Schema | None = None
    classes: np.ndarray | None = None
    checkpointer: Checkpointer | None = None
    predicts_left_out: bool = False

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.name

    def with_options(self, **changes: object) -> Trainer:
        """The same method with other values for some options."""
        return replace(self, method=self.method.updated(**changes))

    def keep(self, path: str | File, every: int | None = None, resume: bool = False) -> Trainer:
        """The trainer that writes a checkpoint to `path` after this many steps and at the end.

        resume: start from the existing one. UsageError if the method can't write checkpoints.
        """
        if not self.method.resumable:
            raise UsageError(f"method {self.name} can't write checkpoints; omit --checkpoint")
        return replace(self, checkpointer=Checkpointer(File(path), every, resume))

    def in_batches(self, option: str) -> StreamMethod:
        """The method; UsageError for that option of the command if it does not learn in batches."""
        if not isinstance(self.method, StreamMethod):
            raise UsageError(
                f"--{option} is for methods that learn in batches, not for {self.name}"
            )
        return self.method

    def session(
        self,
        held_out: tuple[Inputs, ArrayLike] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
    ) -> Session:
        """A training batch by batch; see `Session`."""
        method = self.in_batches("stream")
        return Session(
            method, self.schema, self.classes, self.checkpointer, held_out, squared, progress
        )

    def fit_stream(self, source: Source, **listening: Any) -> Pipeline:
        """Learn from a source of rows; listening as in `session`."""
        return self.session(**listening).fit_stream(source)

    @parallel.one_blas_thread()
    @device.for_rows
    def fit(
        self,
        X: Inputs,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        held_out: tuple[Inputs, ArrayLike] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
        constraint: SplitConstraint | None = None,
    ) -> Pipeline:
        """Learn from raw rows.

        Parameters
        ----------
        X : array, CSR matrix, or rows on workers, (n, d)
        y : array, (n,)
            Targets or labels.
        sample_weight : array, (n,), or None
        held_out : (X, y) or None
            Raw rows to evaluate at every step of the solver; ``trace`` then has ``error``.
        squared : bool
            See `Session`.
        progress : callable or None
            Called with a `ProgressReport` for every step.
        constraint : SplitConstraint or None
            Groups or times for held-out splits.

        Returns
        -------
        Pipeline
            With --lam-path, that of the smallest lambda, whose ``path`` has all of them.

        Raises
        ------
        UsageError
            For options that do not match the task.
        DataError
            For unusable rows or targets, and if a number is not finite.
        """
        method = self.method.delegate_for(X)
        listening = {"held_out": held_out, "squared": squared, "progress": progress}
        if method is not self.method:
            delegate = replace(self, method=method)
            return delegate.fit(X, y, sample_weight, **listening, constraint=constraint)
        if isinstance(method, StreamMethod):
            return self.session(held_out, squared, progress).fit(X, y, sample_weight, constraint)
        if held_out is not None and (not method.evaluates_steps or method.get("lam_path")):
            raise UsageError(
                f"curves are not supported for method {method.name}, or with --lam-path; omit"
                " --curve"
            )
        if method.target_transform == AUTO:
            return self._of_best_transform(X, y, sample_weight, **listening, constraint=constraint)
        start = time.perf_counter()
        prepared = prepare(self, X, y, sample_weight, progress, constraint)
        if held_out is not None:
            prepared = prepared.with_curve(*held_out)
        fitted = self._fit_chosen(prepared)
        seconds = time.perf_counter() - start - fitted.seconds_choice
        points = self._pipelines(prepared, fitted, seconds)
        if method.get("lam_path"):
            return points[-1].replace(path=tuple(points))
        return assessment.with_left_out_rows(self, points[0], prepared, fitted)

    def _fit_chosen(self, prepared: Prepared) -> FittedPath:
        """The model with the chosen options, or that of each lambda of a path."""
        asked = prepared.method
        cache = Cache()
        problem = prepared.problem
        path = asked.get("lam_path")
        with silent():
            choice = choose(asked, problem, cache)
            steps = prepared.steps + choice.steps
            method = choice.method
            if steps:
                problem.doing("fitting the chosen model")
            leaves_out = not path and assessment.solution_leaves_out(self, asked, problem)
            problem = replace(problem, checkpointer=self.checkpointer, predicts_left_out=leaves_out)
            before = time.process_time()
            if path:
                lams = Path.values(path)
                fits = method.fit_path(problem, lams, cache)
            else:
                lams = [method.get("lam", 0.0)]
                fits = [method.fit(problem, cache)]
            seconds_cpu = time.process_time() - before
        seconds_choice = prepared.seconds + choice.seconds
        return FittedPath(method, lams, fits, leaves_out, steps, seconds_choice, seconds_cpu)

    def _pipelines(self, prepared: Prepared, fitted: FittedPath, seconds: float) -> list[Pipeline]:
        """The pipeline of each lambda; seconds: of the fit."""
        problem, method, steps = prepared.problem, fitted.method, fitted.steps
        numbers = {name: value for name, value in method.values.items() if name in CHOSEN}
        words = {name: self.method.get(name) for name in INPUTS}
        asked = {name: word for name, word in words.items() if word != numbers.get(name)}
        gpu = device.current()
        row_weights = problem.weights
        columns = {
            "validation": steps or None,
            "seconds_validation": fitted.seconds_choice if steps else None,
            "seconds_cpu": fitted.seconds_cpu,
            "device": None if gpu is None else gpu.name,
            "weight_sum": None if row_weights is None else float(row_weights.sum()),
            "explicit": numbers if asked else None,
            "asked": asked or None,
        }
        points = []
        for lam, one in zip(fitted.lams, fitted.fits, strict=True):
            outcome = Outcome.of(_columns(problem, lam, one, seconds) | not_none(columns))
            asking = prepared.asked
            if asking.get("lam_path"):
                asking = asking.updated(lam=lam)
            of_model = one.model, problem.loss, outcome, one.solution.trace
            points.append(Pipeline(asking, prepared.preprocessing, *of_model, chosen=method))
            points[-1].check_finite()
        return points

    def _of_best_transform(self, X: Inputs, y: ArrayLike, *more: Any, **listening: Any) -> Pipeline:
        """The pipeline of targets or of their logarithms: that with the smaller error on rows left
        out, in units of the targets; without a choice if a target is not positive.
        """
        y = checked_targets(X, y)
        check_transform(self.method, find_task(self.method, TargetArray(y)), y)
        kinds = ("none", LOG) if np.all(y > 0) else ("none",)
        errors, fits = [], []
        for kind in kinds:
            trainer = replace(self.with_options(target_transform=kind), predicts_left_out=True)
            fits.append(trainer.fit(X, y, *more, **listening))
            rows = fits[-1].left_out
            if rows is None:
                raise UsageError(
                    "--target-transform is auto, which compares rows left out of the model, but"
                    f" method {self.name} has none here; use log or none"
                )
            differences = fits[-1].labels(rows.decision) - rows.y
            errors.append(float(root_mean_square(differences)))
        best = int(np.argmin(errors))
        trained = fits[best]
        assert trained.chosen is not None
        chosen = {k: v for k, v in trained.chosen.values.items() if k in CHOSEN}
        outcome = replace(
            trained.outcome,
            explicit=(trained.outcome.explicit or chosen) | {"target_transform": kinds[best]},
            asked=(trained.outcome.asked or {}) | {"target_transform": AUTO},
        )
        return replace(trained, outcome=outcome)

    def along(
        self,
        X: Inputs,
        y: ArrayLike,
        lams: list[float],
        X_out: Inputs,
        constraint: SplitConstraint | None = None,
    ) -> Iterator[tuple[Pipeline, np.ndarray]]:
        """Decision values of the raw rows X_out for each lambda, largest first.

        The models are fitted to the raw rows X with targets y and are only evaluated: they are
        solved to a relative gap of `method.TOL` unless --tol is given.

        Yields
        ------
        (Pipeline, array (m,) or (m, k))
            The pipeline labels and scores decision values; it has no model.
        """
        method, cache = self.method, Cache()
        prepared = prepare(self, X, y, constraint=constraint)
        problem, preprocessing = prepared.problem, prepared.preprocessing
        method = choose(prepared.method.trial(), problem, cache).method
        rows = preprocessing.rows(X_out)
        for values in method.decisions_along(problem, lams, rows, cache):
            decision = squeezed_outputs(values)
            # neither a model nor an outcome
            nothing: Any = None
            yield Pipeline(prepared.asked, preprocessing, nothing, problem.loss, nothing), decision


@dataclass(frozen=True)
class Prepared:
    """A problem, and the values learnt before any option of the method is chosen.

    Parameters
    ----------
    problem : Problem
    preprocessing : Preprocessing
    method : Method
        With the chosen scaling, kernel and metric.
    asked : Method
        The same, with all other options unchanged.
    steps : list of ChoiceTrace
        Of the scaling, kernel and metric.
    seconds : float
        Of the choice.
    rows : (X, y, weights)
        The raw rows with nonzero weight, their targets, and their weights, with those of labels.
    """

    problem: Problem
    preprocessing: Preprocessing
    method: Method
    asked: Method
    steps: list[ChoiceTrace]
    seconds: float
    rows: tuple[Inputs, np.ndarray, np.ndarray | None]

    def with_curve(self, X: Inputs, y: ArrayLike) -> Prepared:
        """The same with raw rows X, y to evaluate at every step of the solver."""
        targets = np.asarray(y, np.float64)

        def error(decision: np.ndarray) -> float:
            return self.preprocessing.error(decision, targets)

        curve = HeldOutCurve(self.preprocessing.rows(X), error)
        return replace(self, problem=replace(self.problem, curve=curve))


@dataclass(frozen=True)
class FittedPath:
    """The fit of each lambda of a path, or of one lambda.

    Parameters
    ----------
    method : Method
        With all chosen options.
    lams : list of float
    fits : list of Fitted
    leaves_out : bool
        Whether rows were to be left out of the model.
    steps : list of ChoiceTrace
    seconds_choice, seconds_cpu : float
        Of all choices, by the clock, and of the fits, of the processor.
    """

    method: Method
    lams: list[float]
    fits: list[Fitted]
    leaves_out: bool
    steps: list[ChoiceTrace]
    seconds_choice: float
    seconds_cpu: float


def prepare(
    trainer: Trainer,
    X: Inputs,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    progress: Progress | None = None,
    constraint: SplitConstraint | None = None,
) -> Prepared:
    """The problem of raw rows and targets, and the learnt values; raises like `Trainer.fit`."""
    method, schema = trainer.method, trainer.schema
    y = every = checked_targets(X, y)
    check_inputs(X.shape[1])
    task = find_task(method, TargetArray(y))
    X, y, own, constraint = weights.counted(method, task, schema, X, y, sample_weight, constraint)
    if constraint is None:
        constraint = _found_repeats(X, trainer.predicts_left_out)
    check_transform(method, task, y)
    classes = known_classes(trainer.classes, task, every, y)
    coding = learn_coding(method, task, TargetArray(y, own, method.target_transform), classes)
    method = method.updated(target_scaling=coding.scaling)
    _check_loss(method, task)
    dtype = input_dtype(method)
    check_memory(X, method.scaling, method.vectors(X), dtype.itemsize)
    deadline = None if method.timeout is None else time.monotonic() + method.timeout
    scaler = Scaler.fit(X, "none" if method.scaling == AUTO else method.scaling, own, method.seed)
    preprocessing = Preprocessing(coding, scaler, dtype, schema)
    # rows on Dask workers get their targets only after scaling
    rows = preprocessing.rows(X)
    Y = preprocessing.targets(y)
    method = method.updated(**default_epsilon(method, Y))
    if method.measure is not None and task == "regression":
        raise UsageError(f"--measure is {method.measure}, but the task is regression; omit it")
    problem = Problem(
        *(rows, Y, method.loss_for(task), task, own, deadline, progress),
        constraint=constraint,
        measure=method.measure,
    )
    method.prepare(problem)
    start = time.perf_counter()
    chosen = input_selection.resolved(method, X, scaler, problem)
    if chosen.scaler is not scaler:
        preprocessing = replace(preprocessing, scaler=chosen.scaler)
        problem = replace(problem, X=preprocessing.rows(X))
    chosen_method = method.updated(**chosen.options, **chosen.numbers(method, problem))
    asked = trainer.method.updated(**chosen.options)
    seconds = time.perf_counter() - start
    return Prepared(
        problem, preprocessing, chosen_method, asked, chosen.steps, seconds, (X, y, own)
    )


def _found_repeats(X: Inputs, tell: bool) -> SplitConstraint | None:
    """What keeps equal rows together, which a line says."""
    constraint = repeats.find_constraint(X)
    if constraint is not None and tell:
        warn_once("X has rows that repeat the inputs of others; equal rows are left out together")
    return constraint


def _check_loss(method: Method, task: str) -> None:
    """Raise UsageError for a loss that does not go with the task or the device, before anything
    takes time.
    """
    loss = method.loss_for(task)
    gpu = device.current()
    if gpu is not None and gpu.demanded and loss.name != "squared":
        raise UsageError(
            f"--loss is {loss.name}, with which method {method.name} does not run on a GPU; use"
            " --loss squared, or --device cpu"
        )


def _columns(problem: Problem, lam: float, fitted: Fitted, seconds: float) -> JsonObject:
    """The outcome of a fit by column of a results row."""
    solution = fitted.solution
    features = fitted.seconds.get("features", 0.0)
    columns = {
        "n_train": problem.n_rows,
        "n_inputs": problem.n_inputs,
        "objective": solution.objective,
        "gap": solution.gap,
        "n_iter": solution.n_iter,
        "converged": solution.converged,
        "ended": solution.status,
        "seconds_features": features,
        "seconds_fit": seconds - features,
        "lam": lam,
    }
    return columns | fitted.model.describe() | dict(fitted.details)
