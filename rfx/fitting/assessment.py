"""The assessment of a model by training rows that it was fitted without: for its score,
probabilities and intervals. No other code leaves rows out of a training to judge it.

`fit_and_assess` decides how. Where a run names no rows (`--cv`, `--holdout`), there are five ways:

- Out of the solution itself, where a method predicts each row by the solution without it
  (`Fitted.left_out`). `Trainer.fit` calls `with_left_out_rows` for it.
- With such a method, but without the rows that had a part in the choice of the inputs: these are
  not as good as new ones. On 500 rows of 17 sets, the error of new rows was 1.3 times as large in
  the geometric mean. `_rows_without_choice` takes other rows or, if these are few, folds, each
  predicted by a model of the other folds with the options of the final one. A training that chooses
  scaling, kernel or metric, as `rfx train` does by default, is evaluated so.
- Of very many rows, some by a model of a part of the others, with the options of the final one
  (`_with_part_of_many`).
- A fifth of the rows, held out of a model that chooses its own options, which the final one has
  (`_fit_with_choice_of`).
- Folds of few rows, each held out of a model that chooses its own options (`_fit_parts`).

A training batch by batch (`rfx.fitting.session`) predicts rows before their own step instead.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import TYPE_CHECKING

import numpy as np

from rfx.data import repeats
from rfx.data.tabular.group_splits import Part, SplitConstraint
from rfx.data.training_table import TrainingTable
from rfx.data.transforms import LOG
from rfx.fitting import weights
from rfx.fitting.held_out import LEAVE_ONE_OUT, OutOfSamplePredictions, Splitter, fewer
from rfx.fitting.method import Method
from rfx.fitting.metric_learning import unused
from rfx.fitting.options import AUTO
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import Listening, Problem
from rfx.fitting.progress import Progress, ProgressReport
from rfx.fitting.target_coding import TargetArray, find_task

if TYPE_CHECKING:
    from rfx.fitting.training import FittedPath, Prepared, Trainer

# The fraction of the rows that is held out by default; of less than FEWEST_ROWS rows none is.
HELD_OUT_SHARE, FEWEST_ROWS = 0.2, 10
# By default, a score is that of at least so many rows, in up to SCORE_FOLDS folds, and at most of
# MOST_SCORED.
LEAST_SCORED = 200
SCORE_FOLDS = round(1 / HELD_OUT_SHARE)
# With at most so many folds, the final model has the options chosen in the first, which saves one
# choice. Every choice costs as much as a training.
FEW_FOLDS = 2
# Of more than MANY_ROWS rows, a method that can't leave rows out of its own fit is evaluated on at
# most MOST_SCORED rows by a model of that share of the others: its time is that share of the
# training's.
MANY_ROWS, MOST_SCORED, SHARE_OF_MANY = 20_000, 4000, 0.2
# Folds for the score where left-out rows had a part in the choices. They are most where the error
# falls fast with further rows: of less than FEW_ROWS rows, or less than ROWS_OF_INPUT for each
# input. They are least from ENOUGH_ROWS rows on.
FEW_ROWS, ROWS_OF_INPUT, ENOUGH_ROWS = 50, 20, 1000
MOST_FOLDS, USUAL_FOLDS, LEAST_FOLDS = 10, 5, 3
# The score names a bandwidth or lambda of its models that is that many times the final model's.
FAR = 5.0
# Evidence of the choices of a model.
_EVIDENCE = ("explicit", "asked", "validation", "seconds_validation")


@dataclass(frozen=True)
class AssessmentPlan:
    """What an assessment is for, and which rows it must hold out.

    Parameters
    ----------
    seed : int
        Of the rows that are held out.
    cv : int or None
        A number of folds.
    holdout : float or None
        A fraction of the rows, instead of folds.
    hold_out_for_score : bool
        Whether rows are held out for a score if neither cv nor holdout is given.
    intervals : bool
        Whether the model is to have probabilities and intervals, also without a score. The
        solution then predicts rows without each of them where this costs little.
    calibrate : str or None
        The kind of probabilities, which then need rows in any case.
    """

    seed: int = 0
    cv: int | None = None
    holdout: float | None = None
    hold_out_for_score: bool = False
    intervals: bool = False
    calibrate: str | None = None

    @property
    def names_rows(self) -> bool:
        """Whether it says which rows to hold out."""
        return bool(self.cv or self.holdout)


@dataclass(frozen=True)
class Assessment:
    """Training rows predicted by models that were fitted without them.

    Parameters
    ----------
    predictions : tuple of OutOfSamplePredictions
        Of the model, or of each model along its path. For regression they are in units of the
        scaled target of the model of all rows.
    parts : list of (fitted, held out)
        The row numbers of each model that predicted some.
    refitted : bool
        Whether these models are others than that of all rows.
    seconds : float
        Of these models, by the clock.
    """

    predictions: tuple[OutOfSamplePredictions, ...]
    parts: list[Part]
    refitted: bool = True
    seconds: float = 0.0

    @property
    def by(self) -> str:
        """How the rows were left out, in words."""
        return self.predictions[0].by

    @property
    def y(self) -> np.ndarray:
        """The targets or labels (n,) of these rows."""
        return self.predictions[0].y


@dataclass(frozen=True)
class Trained:
    """A training: its model, its rows, and its assessment.

    Parameters
    ----------
    model : Pipeline
        With --lam-path, that of the smallest lambda, whose ``path`` has all of them.
    table : TrainingTable
        With test rows; and with the rows of the training, unless they were streamed or on workers.
    assessment : Assessment or None
        None if no rows were held out of the training.
    """

    model: Pipeline
    table: TrainingTable
    assessment: Assessment | None = None


@dataclass(frozen=True)
class HeldOutModel:
    """A model of a part of the rows, and its decision values of others.

    Parameters
    ----------
    model : Pipeline
    decisions : list of array, (m,) or (m, k)
        For each point of its path, or of itself.
    seconds : float
        Of both, by the clock.
    """

    model: Pipeline
    decisions: list[np.ndarray]
    seconds: float = 0.0


# ---------------------------------------------------------------------- the decision


def fit_and_assess(
    trainer: Trainer,
    table: TrainingTable,
    plan: AssessmentPlan,
    listening: Listening | None = None,
) -> Trained:
    """The model of all rows of a table, and its assessment by rows that it was fitted without.

    Raises
    ------
    DataError
        For too few rows, if the plan names those to hold out.
    """
    listening = listening or Listening()
    if plan.names_rows:
        model = fit_all_rows(trainer, table, listening)
        return Trained(model, table, assess_parts(trainer, table, model, plan, listening.progress))
    if plan.hold_out_for_score:
        model, assessment = _fit_and_score(trainer, table, plan.seed, listening)
    else:
        model = fit_all_rows(trainer, table, listening)
        assessment = None
    if assessment is None and plan.intervals:
        model = with_probabilities(trainer, model, table)
    if assessment is None and plan.calibrate and _lacks_rows(model):
        assessment = assess_parts(trainer, table, model, plan, listening.progress)
    return Trained(model, table, assessment)


def _fit_and_score(
    trainer: Trainer, table: TrainingTable, seed: int, listening: Listening
) -> tuple[Pipeline, Assessment | None]:
    """(the model of all rows, its assessment); None for too few rows.

    `Trainer.fit` itself has left out rows where the method can: the model has them as `left_out`.
    """
    y = np.asarray(table.y_train)
    # inferred once, and said once
    task = find_task(trainer.method, TargetArray(y))
    trainer = trainer.with_options(task=task)
    parts = _parts_for_score(table, task, seed)
    models: list[HeldOutModel] = []
    if _leaves_out_itself(trainer, table) or len(y) > MANY_ROWS:
        model = fit_all_rows(trainer, table, listening)
        model = _with_part_of_many(trainer, model, table)
    elif 0 < len(parts) <= FEW_FOLDS:
        models = _fit_parts(trainer, table, parts[:1], listening.progress)
        model, models[0] = _fit_with_choice_of(models[0], trainer, table, listening)
    else:
        # a choice without the held-out rows would miss them: they are few
        model = fit_all_rows(trainer, table, listening)
    if not parts:
        return model, None
    if _has_numbered_rows(model):
        return model, _assess_left_out(model, table, seed)
    models += _fit_parts(trainer, table, parts[len(models) :], listening.progress)
    return model, _assessment_by_parts(model, table, parts, models)


def _leaves_out_itself(trainer: Trainer, table: TrainingTable) -> bool:
    """Whether the solution predicts rows without each. Left out alone, a row of a group would be
    predicted by the others.
    """
    is_constrained = table.constraint is not None and table.constraint.given
    return trainer.method.leaves_out and not is_constrained


def _lacks_rows(model: Pipeline) -> bool:
    """Whether a model, or one of its path, has no rows left out."""
    return any(point.left_out is None for point in model.path or [model])


def _has_numbered_rows(model: Pipeline) -> bool:
    """Whether a model has rows left out, and it is known which."""
    return model.left_out is not None and model.left_out.numbers is not None


def solution_leaves_out(trainer: Trainer, method: Method, problem: Problem) -> bool:
    """Whether the fit of a method must predict its rows without each: for the score, or for the
    mean of a target that is learnt on its logarithm.
    """
    needed = trainer.predicts_left_out or method.target_transform == LOG
    return needed and problem.is_local and not problem.constrained


# ---------------------------------------------------------------------- fits


def fit_all_rows(trainer: Trainer, table: TrainingTable, listening: Listening) -> Pipeline:
    """The pipeline of the table's training rows, with their sample weights if any."""
    y = np.asarray(table.y_train)
    constraint = table.constraint
    return trainer.fit(table.X_train, y, table.weights, constraint=constraint, **vars(listening))


@singledispatch
def fit_without(
    table: TrainingTable, trainer: Trainer, part: Part, progress: Progress | None = None
) -> HeldOutModel:
    """The model of some rows of a table, which predicts others. The inputs of a table that are
    learnt, such as replacements of missing cells, are learnt again from the fitted rows.

    Parameters
    ----------
    table : TrainingTable
        By its type the rows are here or on workers.
    trainer : Trainer
    part : (fitted, held out)
        Row numbers.
    progress : callable, optional
    """
    start = time.perf_counter()
    kept, out = part
    X, X_out = table.part(kept, out)
    y = np.asarray(table.y_train)[kept]
    own_weights = weights.part(table.weights, kept)
    constraint = None if table.constraint is None else table.constraint.rows(kept)
    model = trainer.fit(X, y, own_weights, constraint=constraint, progress=progress)
    decisions = [point.decision_function(X_out) for point in model.path or [model]]
    return HeldOutModel(model, decisions, time.perf_counter() - start)


def _fit_parts(
    trainer: Trainer, table: TrainingTable, parts: list[Part], progress: Progress | None
) -> list[HeldOutModel]:
    """The models of the parts, each of which chooses its options for itself."""
    # all rows of a label may be held out together
    is_regression = trainer.method.task == "regression"
    classes = None if is_regression else np.unique(np.asarray(table.y_train))
    own = replace(trainer, classes=classes, checkpointer=None, predicts_left_out=False)
    models = []
    for number, part in enumerate(parts, 1):
        tell = None
        if progress is not None:
            tell = partial(_tell_part, progress, (number, len(parts)))
        models.append(fit_without(table, own, part, tell))
    return models


def _tell_part(progress: Progress, part: tuple[int, int], report: ProgressReport) -> None:
    """Report a step of the model of a part."""
    progress(replace(report, part=part))


def _predict_without(
    trainer: Trainer, model: Pipeline, method: Method, table: TrainingTable, parts: list[Part]
) -> OutOfSamplePredictions:
    """The held-out rows of all parts in order, predicted by models of the other rows by a method
    whose options are chosen; lambda is that of so many rows.
    """
    method, lam = method.updated(task=model.task), method.get("lam")
    plain = replace(trainer, classes=model.classes, checkpointer=None, predicts_left_out=False)
    decisions = []
    for kept, out in parts:
        if isinstance(lam, float):
            # not of rows of weight 0
            method = method.updated(lam=lam * len(kept) / len(np.union1d(kept, out)))
        found = fit_without(table, replace(plain, method=method), (kept, out))
        decisions.append(model.as_own(found.model, found.decisions[-1]))
    rows = np.concatenate([out for _, out in parts])
    order = np.argsort(rows)
    y = np.asarray(table.y_train)
    numbers = rows[order]
    return OutOfSamplePredictions(np.concatenate(decisions)[order], y[numbers], "", numbers)


# ---------------------------------------------------------------------- out of the solution itself


def with_left_out_rows(
    trainer: Trainer, model: Pipeline, prepared: Prepared, fitted: FittedPath
) -> Pipeline:
    """The pipeline with what follows from the rows that its solution left out, if any."""
    decision = fitted.fits[0].left_out if fitted.leaves_out else None
    if decision is None:
        return model
    rows = _rows_of_solution(prepared, decision)
    model = model.of_mean(rows.decision, rows.y)
    if not trainer.predicts_left_out:
        return model
    if _chose_by_rows(model, prepared, fitted):
        rows = _rows_without_choice(trainer, model, prepared, decision)
    return with_score(model, rows) if len(rows.y) else model


def _rows_of_solution(prepared: Prepared, decision: np.ndarray) -> OutOfSamplePredictions:
    """The rows whose decision values (n, k) are not nan."""
    numbers = np.flatnonzero(np.isfinite(decision).all(axis=1))
    values = decision[numbers]
    targets = prepared.problem.Y[numbers]
    if values.shape[1] == 1:
        values = values[:, 0]
        targets = targets[:, 0]
    y = prepared.preprocessing.labels(targets)
    return OutOfSamplePredictions(values, y, LEAVE_ONE_OUT, numbers)


def _chose_by_rows(model: Pipeline, prepared: Prepared, fitted: FittedPath) -> bool:
    """Whether the rows of the solution had such a part in the choices that their errors are too
    small: of inputs or a metric; or of any option if they are few, by a quarter of 9 rows.
    """
    learns_metric = model.chosen is not None and bool(model.chosen.get("leaf_steps"))
    has_metric = model.preprocessing.scaler.metric is not None
    chose_any = bool(fitted.steps) or fitted.method.get("lam") == AUTO
    is_few = prepared.problem.n_rows < FEW_ROWS
    return bool(prepared.steps) or learns_metric or has_metric or (chose_any and is_few)


def _rows_without_choice(
    trainer: Trainer, model: Pipeline, prepared: Prepared, decision: np.ndarray
) -> OutOfSamplePredictions:
    """The rows that had no part in the choice of the inputs; if these are few, folds predicted by
    the options of the final model. Of less than FEW_ROWS rows, each fold's model chooses for itself
    what the choice of the inputs left open, such as lambda.
    """
    problem, seed = prepared.problem, trainer.method.seed
    free = unused(problem, prepared.method)
    if free is not None:
        return _rows_of_solution(prepared, np.where(free[:, None], decision, np.nan))
    number = _number_of_folds(problem)
    if number < 2:
        return _rows_of_solution(prepared, decision)
    problem.doing("evaluating the model on rows left out")
    splitter = Splitter(problem.n_rows, seed, problem.constraint)
    parts = splitter.parts(1 / number, problem.n_rows, "left-out rows")
    method = prepared.method if problem.n_rows < FEW_ROWS else model.chosen
    assert method is not None
    if method.get("class_weight") is not None:
        # the weights of the rows include those of their labels
        method = method.updated(class_weight=None)
    table = TrainingTable.of_rows(*prepared.rows)
    rows = _predict_without(trainer, model, method, table, parts)
    return replace(rows, by=f"{len(parts)}-fold cross-validation", folds=len(parts))


def _number_of_folds(problem: Problem) -> int:
    """Of how many folds the score is where left-out rows had a part in the choices."""
    count = problem.n_rows if problem.constraint is None else problem.constraint.count
    if count < FEW_ROWS or count < ROWS_OF_INPUT * problem.n_inputs:
        return min(MOST_FOLDS, count)
    return USUAL_FOLDS if count < ENOUGH_ROWS else LEAST_FOLDS


def with_score(model: Pipeline, rows: OutOfSamplePredictions) -> Pipeline:
    """The pipeline with its score on left-out rows, and what follows from these."""
    outcome = replace(
        model.outcome,
        leave_one_out=model.preprocessing.score(rows.decision, rows.y).score,
        leave_one_out_rows=len(rows.y),
        leave_one_out_by=None if rows.by == LEAVE_ONE_OUT else rows.by,
    )
    return replace(model.judged(rows), outcome=outcome)


def _assess_left_out(model: Pipeline, table: TrainingTable, seed: int) -> Assessment:
    """The rows left out of a model, in parts for models that can't leave them out one by one."""
    rows = model.left_out
    y = np.asarray(table.y_train)
    assert rows is not None and rows.numbers is not None
    if len(rows.numbers) <= HELD_OUT_SHARE * len(y):
        parts = [(_may_teach(rows.numbers, len(y), table.constraint), rows.numbers)]
    else:
        splitter = Splitter(len(y), seed, table.constraint)
        folds = splitter.folds(_strata(y, model.task), _folds_of_others(rows, len(y)))
        parts = [(kept, np.intersect1d(out, rows.numbers)) for kept, out in folds]
    places = np.searchsorted(rows.numbers, np.concatenate([out for _, out in parts]))
    found = OutOfSamplePredictions(rows.decision[places], rows.y[places], f"by {rows.by}")
    return Assessment((found,), parts, refitted=False)


def _folds_of_others(rows: OutOfSamplePredictions, count: int) -> int:
    """In how many folds other models predict the rows left out of a model of `count` rows: in those
    of the model, so that they learn from as many rows, but no more than SCORE_FOLDS.
    """
    if rows.folds is not None:
        return min(rows.folds, SCORE_FOLDS)
    return LEAST_FOLDS if count > MANY_ROWS else SCORE_FOLDS


def _may_teach(rows: np.ndarray, count: int, constraint: SplitConstraint | None) -> np.ndarray:
    """The row numbers below `count` of rows that may teach a model of `rows`: none of the same
    group, none with equal inputs, and none that is as late.
    """
    others = np.setdiff1d(np.arange(count), rows)
    if constraint is None:
        return others
    if constraint.by == "time":
        return others[constraint.values[others] < constraint.values[rows].min()]
    return others[~np.isin(constraint.values[others], constraint.values[rows])]


# ---------------------------------------------------------------------- by a model of other rows


def with_probabilities(
    trainer: Trainer, model: Pipeline, table: TrainingTable, calibrate: str | None = None
) -> Pipeline:
    """The pipeline, if it is a classification without probabilities with those from a fifth of its
    training rows: calibrated by a model of the others with the same options, which takes about
    four fifths of the time of the fit.

    The rows themselves are used if they are too few to hold any out. calibrate: the kind of
    calibration, which then takes the rows left out one by one if there are some.
    """
    if calibrate is not None and model.left_out is not None:
        return model.judged(model.left_out, calibrate)
    is_enough = model.has_probabilities and calibrate is None
    is_local = isinstance(table.y_train, np.ndarray)
    if model.chosen is None or model.classes is None or is_enough or not is_local:
        return model
    return model.judged(_rows_held_out(trainer, model, table), calibrate)


def _with_part_of_many(trainer: Trainer, model: Pipeline, table: TrainingTable) -> Pipeline:
    """The pipeline of many rows with its score on some of them, if its method could not leave any
    out.
    """
    is_whole = table.constraint is not None and table.constraint.one
    is_many = len(np.asarray(table.y_train)) > MANY_ROWS
    if _has_numbered_rows(model) or model.chosen is None or is_whole or not is_many:
        return model
    return with_score(model, _rows_held_out(trainer, model, table))


def _rows_held_out(
    trainer: Trainer, model: Pipeline, table: TrainingTable
) -> OutOfSamplePredictions:
    """A fifth of the rows, predicted by a model of the others with the options of the trained one;
    of many rows, some of both; the rows themselves if they are too few to hold any out.
    """
    assert model.chosen is not None
    y = np.asarray(table.y_train)
    seed = model.chosen.seed
    encoded = TrainingTable.of_rows(table.X_train, y, table.weights)
    kept = out = np.arange(len(y))
    if encoded.weights is not None:
        kept = out = np.flatnonzero(encoded.weights)
    constraint = None if table.constraint is None else table.constraint.rows(kept)
    if constraint is None:
        constraint = repeats.find_constraint(encoded.X_train[kept])
    splitter = Splitter(len(kept), seed, constraint)
    if len(kept) >= FEWEST_ROWS and not splitter.none:
        fitted, held_out = splitter.part(HELD_OUT_SHARE, "probabilities")
        kept, out = kept[fitted], kept[held_out]
    by = f"held out, {HELD_OUT_SHARE:g} of the training rows"
    if len(y) > MANY_ROWS:
        kept, out = fewer((kept, out), int(SHARE_OF_MANY * len(y)), MOST_SCORED, seed)
        by = f"a model of {len(kept):,} other rows"
    rows = _predict_without(trainer, model, model.chosen, encoded, [(kept, out)])
    return replace(rows, by=by)


# ---------------------------------------------------------------------- by folds


def assess_parts(
    trainer: Trainer,
    table: TrainingTable,
    model: Pipeline,
    plan: AssessmentPlan,
    progress: Progress | None = None,
) -> Assessment:
    """The rows that a plan holds out, by default a fifth, predicted by models that choose their
    options for themselves.

    Raises
    ------
    DataError
        For too few rows.
    """
    y = np.asarray(table.y_train)
    share = None if plan.cv else plan.holdout or HELD_OUT_SHARE
    labels = None if model.task == "regression" else y
    splitter = Splitter(len(y), plan.seed, table.constraint)
    parts = splitter.folds(labels, plan.cv, share, table.schema)
    models = _fit_parts(trainer.with_options(task=model.task), table, parts, progress)
    return _assessment_by_parts(model, table, parts, models)


def _parts_for_score(table: TrainingTable, task: str, seed: int) -> list[Part]:
    """The parts for the score of a training that names none; none for too few rows."""
    y = np.asarray(table.y_train)
    constraint = table.constraint
    splitter = Splitter(len(y), seed, constraint)
    if len(y) < FEWEST_ROWS or len(np.unique(y)) < 2 or splitter.none:
        return []
    number = min(SCORE_FOLDS, math.ceil(LEAST_SCORED / (HELD_OUT_SHARE * len(y))))
    labels = _strata(y, task)
    if number == 1:
        share = min(HELD_OUT_SHARE, MOST_SCORED / len(y))
        return splitter.folds(labels, None, share, table.schema)
    if constraint is not None and constraint.given:
        return constraint.up_to(SCORE_FOLDS, seed)[:number]
    return splitter.folds(labels, SCORE_FOLDS, None, table.schema)[:number]


def _strata(y: np.ndarray, task: str) -> np.ndarray | None:
    """The labels by which folds are stratified: a single row of a class is on either side."""
    if task == "regression" or np.unique(y, return_counts=True)[1].min() == 1:
        return None
    return y


def _fit_with_choice_of(
    first: HeldOutModel, trainer: Trainer, table: TrainingTable, listening: Listening
) -> tuple[Pipeline, HeldOutModel]:
    """The model of all rows with the options that the first model chose without its held-out rows;
    and that model, whose seconds are then without its choice.
    """
    chooser = first.model
    numbers = chooser.outcome.explicit or _chosen_numbers(trainer.method, chooser)
    # a checkpoint is one of the options as they were asked for
    if not numbers or trainer.checkpointer is not None:
        return fit_all_rows(trainer, table, listening), first
    same = replace(trainer, method=chooser.method.updated(**numbers))
    model = fit_all_rows(same, table, listening)
    evidence = {name: getattr(chooser.outcome, name) for name in _EVIDENCE}
    known = {name: value for name, value in evidence.items() if value is not None}
    model = replace(model, outcome=replace(model.outcome, **known))
    seconds_choice = chooser.outcome.seconds_validation or 0.0
    return model, replace(first, seconds=first.seconds - seconds_choice)


def _chosen_numbers(asked: Method, model: Pipeline) -> dict[str, float]:
    """The bandwidth and lambda of a model, where the method was asked to choose them."""
    assert model.chosen is not None
    words = [name for name in ("gamma", "lam") if isinstance(asked.get(name), str)]
    numbers = {name: model.chosen.get(name) for name in words}
    return {name: value for name, value in numbers.items() if isinstance(value, float)}


def _assessment_by_parts(
    model: Pipeline, table: TrainingTable, parts: list[Part], models: list[HeldOutModel]
) -> Assessment:
    """The assessment by the models of all parts."""
    by_model = [_own_decisions(model, one) for one in models]
    y = np.asarray(table.y_train)
    y_out = np.concatenate([y[out] for _, out in parts])
    by = _parts_in_words(table, parts) + _other_options(model, models)
    predictions = tuple(
        OutOfSamplePredictions(np.concatenate(decisions), y_out, by)
        for decisions in zip(*by_model, strict=True)
    )
    return Assessment(predictions, parts, seconds=sum(one.seconds for one in models))


def _own_decisions(model: Pipeline, held_out: HeldOutModel) -> list[np.ndarray]:
    """The decision values of a model of some rows, in the outputs of the model of all rows."""
    points = held_out.model.path or [held_out.model]
    return [
        model.as_own(point, decision)
        for point, decision in zip(points, held_out.decisions, strict=True)
    ]


def _parts_in_words(table: TrainingTable, parts: list[Part]) -> str:
    """How the rows of the parts were held out."""
    count = len(np.asarray(table.y_train))
    share = len(parts[0][1]) / count
    by = None
    if table.constraint is not None and table.constraint.given:
        by = table.constraint.by
    if by == "time":
        if len(parts) > 1:
            return f"{len(parts)} growing windows by time"
        return f"held out, the last {100 * share:.3g} % by time"
    of_rows = f"{share:.3g} of the training rows"
    if len(parts) == 1:
        how = f"held out, {of_rows}"
    elif sum(len(out) for _, out in parts) == count:
        how = f"{len(parts)}-fold cross-validation"
    else:
        how = f"{len(parts)} folds of {of_rows}"
    return how if by is None else f"{how} by groups"


def _other_options(final: Pipeline, models: list[HeldOutModel]) -> str:
    """What the model of some rows chose for itself far from the final model, in words."""
    if final.chosen is None or final.path or len(models) > 1:
        return ""
    other = models[0].model.chosen
    found = []
    for name, word in (("gamma", "gamma"), ("lam", "lambda")):
        own = final.chosen.get(name)
        value = None if other is None else other.get(name)
        if _far_apart(own, value):
            found.append(f"{word} {value:.4g}, while this one has {own:.4g}")
    return f"; by a model of {' and '.join(found)}" if found else ""


def _far_apart(own: object, other: object) -> bool:
    """Whether both are positive numbers, of which one is FAR times the other."""
    if not isinstance(own, float) or not isinstance(other, float) or min(own, other) <= 0:
        return False
    return not 1 / FAR < other / own < FAR
