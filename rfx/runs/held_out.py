"""Scores without test rows: by cross-validation, or on a fraction of the training rows; and
probabilities from the same rows.

The models evaluated in this way are fitted without the held-out rows, including replacements of
missing cells and options chosen by validation; the final model is fitted to all rows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rfx import methods
from rfx.data.loading import Split
from rfx.errors import UsageError
from rfx.fitting.calibration import Calibration
from rfx.fitting.validation import folds
from rfx.options import Option
from rfx.records.run import Run

CV = Option("cv", int, "Folds of the training rows.", low=2, high=1000)
HOLDOUT = Option("holdout", float, "Fraction of the training rows.", low=0, high=0.5, open_low=True)
# fraction held out for probabilities by default
SHARE = 0.2


@dataclass
class HeldOut:
    """Held-out rows with the decision values of models that were fitted without them.

    by: how they were held out, in words. y: their targets or labels. decisions: for each model
    (several along a path) its decision_function values, for regression in units of the scaled
    target of the model of all rows. seconds: elapsed.
    """

    by: str
    y: np.ndarray
    decisions: list[np.ndarray]
    seconds: float = 0.0


@dataclass
class Elsewhere(Split):
    """The test rows of a run with remote training rows, and its held-out rows."""

    held: HeldOut | None = None


def check(run: Run) -> None:
    """Raise UsageError for cv, holdout and calibrate that are out of range or unsupported, and for
    groups and time if rows are not in memory.
    """
    for option in (CV, HOLDOUT):
        if getattr(run, option.name) is not None:
            option.convert(getattr(run, option.name))
    if run.cv is not None and run.holdout is not None:
        raise UsageError(f"--cv is {run.cv} and --holdout is {run.holdout:g}; use only one of them")
    if run.groups is not None and run.time is not None:
        raise UsageError(
            f"--groups is {run.groups!r:.80} and --time is {run.time!r:.80}; use only one of them"
        )
    every = ("cv", "holdout", "calibrate", "groups", "time")
    asked = [name for name in every if getattr(run, name) is not None]
    if asked and run.stream:
        other = ", or use --test FILE" if asked[0] not in ("groups", "time") else ""
        raise UsageError(f"--{asked[0]} needs all rows in memory; omit --stream{other}")
    if run.calibrate is not None and run.options.get("task") == "regression":
        raise UsageError("--calibrate is for classification, but the task is regression")


def wanted(run: Run) -> bool:
    """Whether rows are to be held out."""
    return any(getattr(run, name) for name in ("cv", "holdout", "calibrate"))


def evaluated(run: Run, split, final, progress=None, without: Callable | None = None) -> HeldOut:
    """The held-out rows of the run's cv or holdout, evaluated by models of the run; final: the
    method trained on all rows.

    without(trainer, kept, out, progress): the pipeline trained on the rows `kept`, and for each
    point of its path the decision values of the rows `out`; by default of the split's rows. Raises
    DataError for too few rows.
    """
    if isinstance(split, Elsewhere):
        assert split.held is not None
        return split.held
    start, without = time.perf_counter(), without or partial(_without, split)
    y, classes = np.asarray(split.y_train), final.task != "regression"
    share = None if run.cv else run.holdout or SHARE
    apart = split.apart
    parts = folds(y, classes, run.seed, run.cv, share, split.schema, apart)
    options = run.given() | {"task": final.task}
    found, rows = [], []
    for number, (kept, out) in enumerate(parts):
        trainer = replace(methods.create(run.method, seed=run.seed, **options), schema=split.schema)
        if apart is not None:
            # all rows of a label may be in one group
            trainer = replace(trainer, classes=final.classes)
        tell = None
        if progress is not None:
            tell = lambda entry, number=number: progress(entry | {"part": (number + 1, len(parts))})
        trained, decisions = without(trainer, kept, out, tell)
        points = trained.path or [trained]
        found.append([_in_units(final, *one) for one in zip(points, decisions, strict=True)])
        rows.append(out)
    decisions = [np.concatenate(own) for own in zip(*found, strict=True)]
    by = _words(run, parts, len(y))
    return HeldOut(by, y[np.concatenate(rows)], decisions, time.perf_counter() - start)


def _without(split, trainer, kept, out, progress) -> tuple:
    X, X_out = split.part(kept, out)
    weights = None if split.weights is None else split.weights[kept]
    sides = None if split.apart is None else split.apart.rows(kept)
    trained = _fit(trainer, X, np.asarray(split.y_train)[kept], weights, sides, progress=progress)
    return trained, [point.decision_function(X_out) for point in trained.path or [trained]]


def _words(run, parts, count) -> str:
    """A description of the held-out rows."""
    share = len(parts[0][1]) / count
    if run.time is not None:
        if run.cv:
            return f"{len(parts)} growing windows by time"
        return f"held out, the last {100 * share:.3g} % by time"
    by = "" if run.groups is None else " by groups"
    if run.cv:
        return f"{len(parts)}-fold cross-validation{by}"
    return f"held out, {share:.3g} of the training rows{by}"


def fit(trainer, split, **listening):
    """The pipeline of the split's training rows, with their sample weights if any."""
    y = np.asarray(split.y_train)
    return _fit(trainer, split.X_train, y, split.weights, split.apart, **listening)


def _fit(trainer, X, y, weights, apart, **listening):
    if apart is not None:
        listening["apart"] = apart
    return trainer.fit(X, y, weights, **listening)


def _in_units(final, point, decision):
    return (
        final.target_scaler.transform(point.labels(decision))
        if final.task == "regression"
        else decision
    )


def calibrated(kind: str, held: HeldOut, final) -> list[Calibration]:
    """For each of the models, the calibration curve of its decision values."""
    if final.task == "regression":
        raise UsageError("--calibrate is for classification, but the task is regression")
    return [
        Calibration.fit(kind, decision, held.y, final.classes, held.by, final.schema)
        for decision in held.decisions
    ]
