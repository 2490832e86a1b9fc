"""Scores without test rows, and probabilities from the same rows."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rfx import methods
from rfx.data import guess_task
from rfx.data.tabular.group_splits import Part, SplitConstraint
from rfx.data.training_table import TrainingTable
from rfx.errors import UsageError
from rfx.fitting.held_out import OutOfSamplePredictions, Splitter
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.training import MANY_ROWS
from rfx.records.limits import Limit
from rfx.records.run import BASELINE, Run

# ----------------------------------------------------------------------
# Scores without test rows: by leave-one-out, by cross-validation, or on a fraction of the training
# rows; and probabilities from the same rows.
#
# A method that leaves rows out of its own fit (`Method.leaves_out`) needs no other model. The
# models evaluated in the other ways are fitted without the held-out rows, including replacements of
# missing cells and options chosen by validation, so that no choice sees the rows of the score; the
# final model is fitted to all rows.

# Fraction held out by default.
SHARE = 0.2
FOLDS = round(1 / SHARE)
# By default, a score is that of at least FEWEST held-out rows, in up to FOLDS folds, and at most
# MOST.
FEWEST, MOST = 200, 4000
# With at most so many folds, the final model has the options chosen in the first, which saves one
# choice. Every choice costs as much as a training.
FEW_FOLDS = 2
# The score names a bandwidth or lambda of its models that is that many times the final model's.
FAR = 5.0
# Options that are for a score.
_OF_SCORE = ("cv", "holdout", "calibrate")
# Evidence of the choices of a model.
_EVIDENCE = ("explicit", "asked", "validation", "seconds_validation")


@dataclass(frozen=True)
class CrossValidationResult:
    """Held-out rows with the decision values of models that were fitted without them.

    by: how they were held out, in words. y: their targets or labels. decisions: for each model
    (several along a path) its decision_function values, for regression in units of the scaled
    target of the model of all rows. seconds: elapsed. parts: (fitted, held out) row numbers of each
    model. again: whether these models are others than that of all rows.
    """

    by: str
    y: np.ndarray
    decisions: list[np.ndarray]
    seconds: float
    parts: list[Part]
    again: bool = True


@dataclass(frozen=True)
class Trained:
    """A training: its model, its rows, and those that were held out of it.

    Parameters
    ----------
    model : Pipeline
    table : TrainingTable
        With the rows of the training, unless they were streamed or on workers, and the test rows.
    held_out : CrossValidationResult or None
        Training rows predicted by models that were fitted without them.
    """

    model: Pipeline
    table: TrainingTable
    held_out: CrossValidationResult | None = None


def check(run: Run) -> None:
    """Raise UsageError for options that exclude each other, or that need rows in memory or
    classes.
    """
    for one, other in (("cv", "holdout"), ("groups", "time")):
        values = getattr(run, one), getattr(run, other)
        if None not in values:
            raise UsageError(
                f"--{one} is {values[0]!s:.80} and --{other} is {values[1]!s:.80}; use only one of"
                " them"
            )
    useless = [name for name in _OF_SCORE if getattr(run, name)]
    if run.score == "none" and useless:
        raise UsageError(f"--score is none, so --{useless[0]} has no effect; omit one of them")
    every = ("cv", "holdout", "calibrate", "groups", "time")
    asked = [name for name in every if getattr(run, name) is not None]
    if asked and run.stream:
        other = ", or use --test FILE" if asked[0] not in ("groups", "time") else ""
        raise UsageError(f"--{asked[0]} needs all rows in memory; omit --stream{other}")
    if run.calibrate is not None and run.options.get("task") == "regression":
        raise UsageError("--calibrate is for classification, but the task is regression")
    if run.fail_below is not None:
        _check_limit(run)


def _check_limit(run: Run) -> None:
    """Raise UsageError for a --fail-below that the run can't be compared with."""
    Limit.of(run.fail_below or "")
    without_memory = "--stream" if run.stream else "--scheduler" if run.scheduler else None
    if run.fail_below == BASELINE and without_memory:
        raise UsageError(f"--fail-below baseline needs all rows in memory; omit {without_memory}")
    if run.options.get("lam_path"):
        raise UsageError("--fail-below is for one model; omit --lam-path")


def wanted(run: Run) -> bool:
    """Whether rows are to be held out for the score."""
    return bool(run.cv or run.holdout)


def trained(
    run: Run, table: TrainingTable, trainer, listening: dict[str, Any], progress=None
) -> tuple[Pipeline, CrossValidationResult | None]:
    """The pipeline of all training rows, and its score on rows that no choice saw.

    They are left out of the model itself if its method can do so. Otherwise a model of a part of
    very many rows predicts others (`Trainer.with_score`). With fewer rows,
    options are chosen without the held-out rows of the first part, and the final model is fitted
    with the chosen options. With few rows this would cost accuracy, so that the final model chooses
    for itself, as those of all folds do. With too few to hold any out there is no score.
    """
    start, y = time.perf_counter(), np.asarray(table.y_train)
    task = trainer.method.task or guess_task(y)
    # inferred once, and said once
    trainer = trainer.with_options(task=task)
    parts = _by_default(table, y, task, run.seed)
    without = partial(_without, table)
    given = table.constraint is not None and table.constraint.given
    if (trainer.method.leaves_out and not given) or len(y) > MANY_ROWS:
        final = fit(trainer, table, **listening)
        final = trainer.with_score(final, table.X_train, y, table.weights, table.constraint)
        if final.left_out is not None:
            return final, _of_itself(run, table, y, final) if parts else None
        start = time.perf_counter()
        models = _models(run, table, task, parts, without, progress)
        return final, _joined(run, y, final, parts, models, start) if parts else None
    first_parts = parts[:1] if len(parts) <= FEW_FOLDS else []
    models = _models(run, table, task, first_parts, without, progress)
    evidence: dict[str, Any] = {}
    if models:
        first = models[0][0]
        start += first.outcome.seconds_validation or 0.0
        trainer, evidence = _with_options_of(first, run, table, trainer)
    fitting = time.perf_counter()
    final = fit(trainer, table, **listening)
    final = replace(final, outcome=replace(final.outcome, **evidence))
    start += time.perf_counter() - fitting
    models += _models(run, table, task, parts[len(models) :], without, progress)
    return final, _joined(run, y, final, parts, models, start) if parts else None


def _with_options_of(
    first: Pipeline, run: Run, table: TrainingTable, trainer
) -> tuple[Any, dict[str, Any]]:
    """(trainer, evidence of its choices): the trainer with the options that the first model chose;
    unchanged, and without evidence, if it chose none.
    """
    numbers = first.outcome.explicit or _chosen_numbers(trainer.method, first)
    if not numbers or run.checkpoint:  # a checkpoint belongs to the trainer
        return trainer, {}
    options = explicit(run, numbers) | {"task": trainer.method.task}
    same = {"schema": table.schema, "left_out": trainer.left_out}
    trainer = replace(methods.create(first.name, seed=run.seed, **options), **same)
    evidence = {name: getattr(first.outcome, name) for name in _EVIDENCE}
    return trainer, {name: value for name, value in evidence.items() if value is not None}


def _of_itself(
    run: Run, table: TrainingTable, y: np.ndarray, final: Pipeline
) -> CrossValidationResult:
    """The rows left out of the model, in parts for models that can't leave them out one by one."""
    rows = final.left_out
    assert rows is not None and rows.numbers is not None
    if len(rows.numbers) <= SHARE * len(y):
        parts = [(_others(rows.numbers, len(y), table.constraint), rows.numbers)]
    else:
        folds = Splitter(len(y), run.seed, table.constraint).folds(_strata(y, final.task), FOLDS)
        parts = [(kept, np.intersect1d(out, rows.numbers)) for kept, out in folds]
    places = np.searchsorted(rows.numbers, np.concatenate([out for _, out in parts]))
    return CrossValidationResult(
        f"by {rows.by}", rows.y[places], [rows.decision[places]], 0.0, parts, again=False
    )


def _others(rows: np.ndarray, count: int, constraint: SplitConstraint | None) -> np.ndarray:
    """The row numbers below `count` of rows that may teach a model of `rows`: none of the same
    group, none with equal inputs, and none that is as late.
    """
    others = np.setdiff1d(np.arange(count), rows)
    if constraint is None:
        return others
    if constraint.by == "time":
        return others[constraint.values[others] < constraint.values[rows].min()]
    return others[~np.isin(constraint.values[others], constraint.values[rows])]


def _strata(y: np.ndarray, task: str) -> np.ndarray | None:
    """The labels by which folds are stratified: a single row of a class is on either side."""
    single = task == "regression" or np.unique(y, return_counts=True)[1].min() == 1
    return None if single else y


def _chosen_numbers(asked: Method, trained: Pipeline) -> dict[str, float]:
    """The bandwidth and lambda of a model, where the method was asked to choose them."""
    assert trained.chosen is not None
    words = [name for name in ("gamma", "lam") if isinstance(asked.get(name), str)]
    numbers = {name: trained.chosen.get(name) for name in words}
    return {name: value for name, value in numbers.items() if isinstance(value, float)}


def _other_options(final: Pipeline, models: list[Pipeline]) -> str:
    """What the model of some rows chose for itself far from the final model, in words."""
    if final.chosen is None or final.path or len(models) > 1:
        return ""
    found = []
    for name, word in (("gamma", "gamma"), ("lam", "lambda")):
        own = final.chosen.get(name)
        others = [one.chosen.get(name) for one in models if one.chosen is not None]
        if not all(isinstance(value, float) and value > 0 for value in (own, *others)):
            continue
        far = [value for value in others if not 1 / FAR < value / own < FAR]
        if far:
            found.append(f"{word} {far[0]:.4g}, while this one has {own:.4g}")
    return f"; by a model of {' and '.join(found)}" if found else ""


def explicit(run: Run, chosen: dict[str, Any]) -> dict[str, Any]:
    """The options of a run, with the values chosen for those that were left to the method."""
    return {name: value for name, value in run.given().items() if value != AUTO} | chosen


def _by_default(table, y: np.ndarray, task: str, seed: int) -> list[Part]:
    """The parts for the score of a training that names none; none for too few rows."""
    held_out = Splitter(len(y), seed, table.constraint)
    if len(y) < 10 or len(np.unique(y)) < 2 or held_out.none:
        return []
    number = min(FOLDS, math.ceil(FEWEST / (SHARE * len(y))))
    if number > 1 and table.constraint is not None and table.constraint.given:
        return table.constraint.up_to(FOLDS, seed)[:number]
    cv, share = (FOLDS, None) if number > 1 else (None, min(SHARE, MOST / len(y)))
    return held_out.folds(_strata(y, task), cv, share, table.schema)[:number]


def evaluated(
    run: Run, table: TrainingTable, final, progress=None, without: Callable | None = None
) -> CrossValidationResult:
    """The held-out rows of the run's cv or holdout, evaluated by models of the run; final: the
    method trained on all rows.

    without(trainer, kept, out, progress): the pipeline trained on the rows `kept`, and for each
    point of its path the decision values of the rows `out`; by default of the table's rows. Raises
    DataError for too few rows.
    """
    start, without = time.perf_counter(), without or partial(_without, table)
    y = np.asarray(table.y_train)
    share = None if run.cv else run.holdout or SHARE
    labels = None if final.task == "regression" else y
    parts = Splitter(len(y), run.seed, table.constraint).folds(labels, run.cv, share, table.schema)
    models = _models(run, table, final.task, parts, without, progress)
    return _joined(run, y, final, parts, models, start)


def _models(
    run: Run, table: TrainingTable, task: str, parts: list[Part], without: Callable, progress
) -> list:
    """For each part, the pipeline and the decision values of `without`."""
    models = []
    # all rows of a label may be held out together
    classes = None if task == "regression" else np.unique(np.asarray(table.y_train))
    for number, (kept, out) in enumerate(parts, 1):
        trainer = methods.create(run.method, seed=run.seed, **run.given() | {"task": task})
        trainer = replace(trainer, schema=table.schema, classes=classes)
        tell = None if progress is None else partial(_tell_part, progress, (number, len(parts)))
        models.append(without(trainer, kept, out, tell))
    return models


def _tell_part(progress: Callable, part: tuple[int, int], entry: dict[str, Any]) -> None:
    """Report a step of the model of a part."""
    progress(entry | {"part": part})


def _joined(
    run: Run, y: np.ndarray, final, parts: list[Part], models: list, start: float
) -> CrossValidationResult:
    """The results of the models of all parts; start: from `time.perf_counter`."""
    each = [
        [final.as_own(*point) for point in zip(model.path or [model], decisions, strict=True)]
        for model, decisions in models
    ]
    decisions = [np.concatenate(own) for own in zip(*each, strict=True)]
    y_out = np.concatenate([y[out] for _, out in parts])
    seconds = time.perf_counter() - start
    by = _words(run, parts, len(y)) + _other_options(final, [model for model, _ in models])
    return CrossValidationResult(by, y_out, decisions, seconds, parts)


def _without(table, trainer, kept, out, progress) -> tuple:
    X, X_out = table.part(kept, out)
    weights = None if table.weights is None else table.weights[kept]
    sides = None if table.constraint is None else table.constraint.rows(kept)
    y = np.asarray(table.y_train)[kept]
    trained = trainer.fit(X, y, weights, constraint=sides, progress=progress)
    return trained, [point.decision_function(X_out) for point in trained.path or [trained]]


def _words(run, parts, count) -> str:
    """A description of the held-out rows."""
    share, several = len(parts[0][1]) / count, len(parts) > 1
    if run.time is not None:
        windows = f"{len(parts)} growing windows by time"
        return windows if several else f"held out, the last {100 * share:.3g} % by time"
    of = f"{share:.3g} of the training rows"
    whole = sum(len(out) for _, out in parts) == count
    folds = f"{len(parts)}-fold cross-validation" if whole else f"{len(parts)} folds of {of}"
    how = folds if several else f"held out, {of}"
    return how if run.groups is None else f"{how} by groups"


def fit(trainer, table, **listening):
    """The pipeline of the table's training rows, with their sample weights if any."""
    y = np.asarray(table.y_train)
    return trainer.fit(table.X_train, y, table.weights, constraint=table.constraint, **listening)


def judged(run: Run, point: Pipeline, held: CrossValidationResult | None, place: int) -> Pipeline:
    """The model number `place` with what follows from rows left out: requested probabilities,
    intervals. These rows are held out if the run says how, else left out one by one if the method
    allows it.
    """
    if run.calibrate and point.task == "regression":
        raise UsageError("--calibrate is for classification, but the task is regression")
    rows, calibrate = point.left_out, run.calibrate
    if held is not None and (rows is None or wanted(run)):
        rows = OutOfSamplePredictions(held.decisions[place], held.y, held.by)
    elif rows is None or calibrate is None:
        return point
    point = point.judged(rows, calibrate)
    if calibrate is None or point.calibration is None:
        return point
    return point.of_run(calibration=point.calibration.words())
