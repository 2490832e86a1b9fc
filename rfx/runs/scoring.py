"""What a run asks of its score: options that exclude each other, the rows to hold out, and what
follows from their predictions.
"""

from collections.abc import Mapping
from dataclasses import replace

from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.assessment import Assessment, AssessmentPlan
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.training import Trainer
from rfx.records.limits import Limit
from rfx.records.run import BASELINE, Run

# Options that are for a score.
_OF_SCORE = ("cv", "holdout", "calibrate")


def check(run: Run, method: Method) -> None:
    """Raise UsageError for options that exclude each other, or that need rows in memory, classes or
    another method.
    """
    check_score(run)
    _check_stream(run, method)
    if run.sample_weight is not None:
        weights.check_method(method)


def check_score(run: Run) -> None:
    """Raise UsageError for options of the score that exclude each other, or that need rows in
    memory or classes.
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


def _check_stream(run: Run, method: Method) -> None:
    """Raise UsageError for options that only methods with checkpoints or batches have, and for
    sample weights of a stream.
    """
    if run.stream and run.sample_weight is not None:
        raise UsageError(
            "--sample-weight needs all rows in memory; omit --stream, or use --class-weight"
        )
    asked = [name for name in ("checkpoint", "every", "resume", "stream") if getattr(run, name)]
    for name in asked:
        if name == "stream":
            Trainer(method).in_batches(name)
        elif not method.resumable:
            raise UsageError(
                f"--{name} is for local and methods that learn in batches, not for {method.name};"
                " use --method local"
            )
    if (run.every or run.resume) and not run.checkpoint:
        raise UsageError(f"--{asked[0]} needs --checkpoint FILE")


def plan_of(run: Run, hold_out_for_score: bool = False, intervals: bool = False) -> AssessmentPlan:
    """The assessment of a run; hold_out_for_score, intervals: see `AssessmentPlan`."""
    return AssessmentPlan(
        run.seed, run.cv, run.holdout, hold_out_for_score, intervals, run.calibrate
    )


def explicit(run: Run, chosen: Mapping[str, object]) -> dict[str, object]:
    """The options of a run, with the values chosen for those that were left to the method."""
    given = {name: value for name, value in run.given().items() if value != AUTO}
    return {**given, **chosen}


def judged(run: Run, point: Pipeline, assessment: Assessment | None, place: int) -> Pipeline:
    """The model number `place` with what follows from rows left out: requested probabilities,
    intervals. These rows are held out if the run says how, else left out one by one if the method
    allows it.
    """
    if run.calibrate and point.task == "regression":
        raise UsageError("--calibrate is for classification, but the task is regression")
    rows = point.left_out
    if assessment is not None and (rows is None or plan_of(run).names_rows):
        rows = assessment.predictions[place]
    elif rows is None or run.calibrate is None:
        return point
    point = point.judged(rows, run.calibrate)
    if run.calibrate is None or point.calibration is None:
        return point
    return point.of_run(replace(point.run, calibration=point.calibration.words()))
