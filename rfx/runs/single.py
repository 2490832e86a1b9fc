"""One experiment in this process, on rows in memory or read in batches."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rfx import data, env, files, methods
from rfx.data import repeats, tables, textfiles
from rfx.data.loading import read_weights
from rfx.data.reading import FileFormat
from rfx.data.stream import CsvSource, LibsvmSource, Source
from rfx.data.tabular.schema import Schema
from rfx.data.training_table import TrainingTable
from rfx.data.transforms import LogTargetScaler
from rfx.errors import UsageError, quoted
from rfx.fitting import assessment, pipeline
from rfx.fitting.assessment import Assessment, AssessmentPlan, Trained
from rfx.fitting.held_out import LEAVE_ONE_OUT
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import Listening
from rfx.fitting.progress import Progress
from rfx.fitting.run_facts import RunFacts, Score
from rfx.fitting.stream_methods import StreamMethod
from rfx.fitting.training import Trainer
from rfx.options import Path as LamPath
from rfx.options import path_names
from rfx.records import keys
from rfx.records.limits import Limit
from rfx.records.params import Params
from rfx.records.run import BASELINE, COLUMNS, Result, Run
from rfx.runs import scoring
from rfx.runs.baselines import baseline_scores, constant
from rfx.runs.evaluation import Evaluation, evaluate, measures
from rfx.types import JsonObject

log = logging.getLogger(__name__)

# ----------------------------------------------------------------------
# Training on rows read in batches: `rfx train --stream`, checkpoints, and curves of held-out error.


def _with_checkpoints(trainer: Trainer, run: Run) -> Trainer:
    """The trainer that writes the checkpoints of a run, if it asks for some."""
    if not run.checkpoint:
        return trainer
    return trainer.keep(run.checkpoint, run.every, bool(run.resume))


def _listening(
    trainer: Trainer, run: Run, table: TrainingTable, progress: Progress | None
) -> Listening:
    """What follows the training of a run: progress, and the curve over the table's test rows. A
    trace of a stochastic method is its curve.

    Raises UsageError for a curve of another method.
    """
    in_batches = isinstance(trainer.method, StreamMethod)
    can_trace = run.curve == "test" and run.trace and table.X_test is not None
    if run.curve and not in_batches and not can_trace:
        raise UsageError(
            f"method {trainer.name} writes its curve only to a trace, for test rows; use curve ="
            ' "test" with a trace and test rows'
        )
    if table.X_test is None or table.y_test is None:
        return Listening(progress)
    if run.curve == "exact":
        return Listening(progress, (table.X_test, _exact(trainer, table)), squared=True)
    if run.curve or (run.trace and in_batches):
        return Listening(progress, (table.X_test, table.y_test))
    return Listening(progress)


def _exact(trainer, table: TrainingTable):
    """The test rows' values of the exact kernel ridge solution of the training rows, with the
    method's nu.
    """
    method = trainer.method
    names = ("kernel", "gamma", "scaling", "target_scaling", "seed")
    same = {name: getattr(method, name) for name in names}
    exact = methods.create(
        "kernel",
        task="regression",
        loss="squared",
        lam=method.nu * table.X_train.shape[0],
        tol=1e-8,
        **same,
    )
    return exact.fit(table.X_train, table.y_train).predict(table.X_test)


def train_streamed(trainer, run: Run, progress=None) -> Trained:
    """Train on the file or standard input of a run; its test rows must fit into memory."""
    # of the training that is resumed: other rows are read like its rows
    before = pipeline.known_before(run.checkpoint if run.resume else None)
    known = before.schema
    if known is not None:
        trainer = trainer.with_options(task=before.task)
    if run.split is not None:
        raise UsageError(f"--split is {run.split}, but a stream can't be split; use --test FILE")
    source, schema, task = _stream_source(trainer, run, known, before.n_inputs)
    if trainer.method.task is None:
        trainer = trainer.with_options(task=schema.task() or task)
    name = "stdin" if run.dataset == "-" else Path(textfiles.plain_name(run.dataset)).name
    X_test, y_test = (None, None) if run.test is None else _test_rows(run, source, schema)
    table = TrainingTable(name, "stream", "", None, None, X_test, y_test)
    trainer = _with_checkpoints(replace(trainer, schema=schema), run)
    listening = _listening(trainer, run, table, progress)
    return Trained(trainer.fit_stream(source, **vars(listening)), table)


def _stream_source(
    trainer, run: Run, known: Schema | None, n_inputs: int | None
) -> tuple[Source, Schema, str | None]:
    """(source, schema, task) of the rows of a stream; known, n_inputs: of the training that is
    resumed.
    """
    path = run.dataset
    reading = run.how_to_read()
    task = trainer.method.task
    _check_same_target(run, known)
    if _is_csv(path, reading):
        table = CsvSource(path, reading, known, task=task)
        return table, table.schema, table.task
    tables.check_reading("libsvm", str(path), reading)
    n_inputs = run.n_inputs or n_inputs
    text = LibsvmSource(path, n_inputs, bool(reading.zero_based), encoding=reading.encoding)
    text.measure()
    form = FileFormat("libsvm", text.zero_based, encoding=reading.encoding)
    return text, Schema(format=form), task


def _check_same_target(run: Run, known: Schema | None) -> None:
    """Raise UsageError if a resumed training had another target."""
    target = run.how_to_read().target
    if target is None or known is None or known.target is None:
        return
    name, place = known.target
    if target not in (name, str(place + 1)):
        raise UsageError(
            f"--target is {quoted(target)}, but the targets of {run.checkpoint} are"
            f" column {quoted(name)}; omit --target to continue it, or --resume to begin again"
        )


def _is_csv(path, reading) -> bool:
    """The format from the name; for standard input, or an unknown name, from the first bytes.
    DataError if it is not a text of rows.
    """
    if path == "-":
        stdin = files.standard_input()
        head = textfiles.head(stdin.peek(1), reading.encoding) if hasattr(stdin, "peek") else b""
        tables.check_foreign(head, "standard input")
        return tables.kind_of_content(head) == "csv"
    if not Path(path).is_file():
        return tables.kind_of_name(path) in ("csv", "tsv")
    kind = tables.File(path, encoding=reading.encoding).kind
    if kind not in ("csv", "tsv", "libsvm"):
        raise UsageError(
            f"{path} is a .{kind} file, but --stream reads LIBSVM text and CSV; omit --stream"
        )
    return kind != "libsvm"


def _test_rows(run, source, schema):
    test = str(run.test)
    if Path(test).exists():
        return tables.other_rows(
            test, schema, source.n_inputs, run.how_to_read(), strict=bool(run.strict)
        )
    loaded = data.load(test)
    return loaded.X_test, loaded.y_test


# ----------------------------------------------------------------------
# One experiment in this process: load, train, predict, and return the complete result.

# entries of info with a column; the rest of info goes into params
IN_COLUMNS = frozenset(COLUMNS)
_NOT_IN_ROW = IN_COLUMNS | {"scores", "asked"}
# Options with a column, and options that are not choices of the run.
_OF_COLUMNS = frozenset(("kernel", "solver", "lam", "n_features", "dtype"))
_NOT_ASKED = frozenset(("seed", "timeout", "task", "loss"))
# The entries of a model's info that are its last step.
_END = {
    "iteration": "n_iter",
    "seconds": "seconds_fit",
    "objective": "objective",
    "gap": "gap",
}


def train(
    run: Run,
    train_function: Callable | None = None,
    progress: Callable | None = None,
    hold_out_for_score: bool = False,
    table: TrainingTable | None = None,
    intervals: bool = False,
) -> Trained:
    """Train the method of a run on the training rows of its data.

    train_function: trains on remote rows, like `rfx.distributed.training.train`. progress: receives
    every step. hold_out_for_score: without other rows for the score, training rows are held out for
    it. table: the data, if it was loaded before. intervals: see
    `rfx.fitting.assessment.AssessmentPlan`.
    """
    trainer = methods.create(run.method, seed=run.seed, **run.given())
    scoring.check(run, trainer.method)
    if train_function is None and run.stream:
        train_function = train_streamed
    if train_function is not None:
        trained = train_function(trainer, run, progress)
    else:
        plan = scoring.plan_of(run, hold_out_for_score, intervals)
        trained = _train_in_memory(trainer, run, table, plan, progress)
    model, table = trained.model, trained.table
    facts = replace(
        model.run,
        dataset=table.name,
        split=table.split,
        seed=model.method.seed,
        threads=env.threads(),
        dtype=str(model.method.get("dtype", "float64")),
        peak_rss_mb=env.peak_rss_mb(),
        label=run.label,
        key=keys.key(run),
        n_classes=0 if model.classes is None else len(model.classes),
        sample_weight=None if run.sample_weight is None else Path(run.sample_weight).name,
        groups=run.groups or None,
        time=run.time or None,
    )
    return replace(trained, model=model.of_run(facts))


def _train_in_memory(
    trainer: Trainer,
    run: Run,
    table: TrainingTable | None,
    plan: AssessmentPlan,
    progress: Progress | None,
) -> Trained:
    """`train` on rows of this process."""
    start = time.perf_counter()
    table = load(run) if table is None else table
    labels = np.asarray(table.y_train)
    if run.sample_weight is not None:
        table = table.weighted(read_weights(run.sample_weight, len(labels)))
    if trainer.method.task is None:
        trainer = trainer.with_options(task=table.task)
    n_rows = len(np.asarray(table.y_train))
    if n_rows < len(labels) and trainer.method.task not in (None, "regression"):
        # a class whose rows all have weight zero remains a class
        trainer = replace(trainer, classes=np.unique(labels))
    trainer = replace(trainer, schema=table.schema, predicts_left_out=plan.intervals)
    trainer = _with_checkpoints(trainer, run)
    listening = _listening(trainer, run, table, progress)
    seconds = time.perf_counter() - start
    if table.X_test is not None:
        plan = replace(plan, hold_out_for_score=False)
    trained = assessment.fit_and_assess(trainer, table, plan, listening)
    return replace(trained, model=trained.model.of_run(RunFacts(seconds_read=seconds)))


def load(run: Run) -> TrainingTable:
    """The data of a run, with the repeats among its rows."""
    table = data.load(
        run.dataset,
        split=run.split,
        test=run.test,
        zero_based=run.zero_based,
        seed=run.seed,
        reading=run.how_to_read(),
        strict=run.strict,
        task=run.options.get("task"),
    )
    if table.constraint is None and table.y_train is not None:
        table = replace(table, constraint=repeats.find_constraint(table.X_train))
    if table.constraint is not None and not table.constraint.given:
        log.warning("%s", repeats.words(table.constraint))
    return table


def execute(
    run: Run,
    model: Path | None = None,
    train_function: Callable | None = None,
    progress: Callable | None = None,
    chosen: Score | None = None,
    baselines: bool = False,
    hold_out_for_score: bool = False,
    table: TrainingTable | None = None,
) -> Result:
    """Run one experiment: train, save the model (to `model`, or only to measure its size), predict,
    return the result.

    The score is computed on the test rows; without them, on training rows held out by cv, holdout
    or `hold_out_for_score`, as stated in params.scored_on. With both, held-out results are in
    params as held_out_score. With train_score in the run, and without any other score, params has
    the score on the training rows: train_score, and train_relative_error for regression. In
    addition to another score it is computed last, so that it affects neither the seconds nor the
    memory of the row. With trace in the run, the result has the solver's steps, which go into a
    separate file.

    chosen: the held-out score by which the run was selected, if it was. baselines: params has the
    scores of simple models as baseline (`rfx.runs.baselines`), if the rows are in memory.
    hold_out_for_score, table: see `train`.
    """
    start = time.perf_counter()
    hold_out_for_score = hold_out_for_score and run.score != "none"
    intervals = run.score != "none" and (hold_out_for_score or model is not None)
    limit = None if run.fail_below is None else Limit.of(run.fail_below)
    with methods.get(run.method).on(run.device):
        trained = train(run, train_function, progress, hold_out_for_score, table, intervals)
        path = model if limit is None else None
        scored = _results(run, trained, [trained.model], [path], chosen)[0]
    found = scored.result
    if run.timings:
        found = found.with_params(**_timings(run.timings, trained.model, trained.table))
    if baselines or run.fail_below == BASELINE:
        found = found.with_params(**_baselines(run, trained, scored))
    if limit is not None:
        missed = limit.missed(found)
        if missed:
            unwritten = "" if model is None else f"; {model} is not written"
            found = found.with_params(below=missed + unwritten)
        elif model is not None:
            scored.model.save(model)
    return found.with_params(seconds_total=time.perf_counter() - start)


@dataclass(frozen=True)
class _Scored:
    """A result, its model, and the model's decision values for the rows of the score, if any."""

    result: Result
    model: Pipeline
    decision: np.ndarray | None


def _baselines(run: Run, trained: Trained, scored: _Scored) -> dict[str, object]:
    """The entries of a row about simple models; none if there are no rows to fit them to."""
    table = trained.table
    if table.y_train is None:
        return {}
    rows = scored.decision, trained.assessment
    scores = baseline_scores(run, table, scored.model, *rows)
    if scores is None:
        return {}
    entry = replace(scores, seconds=None).as_dict()
    return {"seconds_baseline": scores.seconds, "baseline": entry}


def _timings(times: int, model: Pipeline, table: TrainingTable) -> dict[str, float]:
    """The least processor seconds of all threads of so many fits with the chosen options, and of as
    many predictions of the test rows; and the peak memory of the fits, without their choice.
    """
    env.reset_peak_rss()
    assert model.chosen is not None
    trainer = Trainer(model.chosen, table.schema)
    fit = partial(assessment.fit_all_rows, trainer, table, Listening())
    # one model at a time, whose memory is that of a fit
    outcomes = [fit().outcome for _ in range(times)]
    found = {"fit_rss_mb": env.peak_rss_mb()}
    for name in outcomes[0].details:
        if name.startswith("seconds_cpu"):
            found[f"least_{name}"] = min(one.details[name] for one in outcomes)
    if table.X_test is None:
        return found
    ends = [time.process_time()]
    for _ in range(times):
        model.decision_function(table.X_test)
        ends.append(time.process_time())
    return found | {"least_seconds_cpu_predict": float(np.diff(ends).min())}


def _results(
    run: Run,
    trained: Trained,
    points: Sequence[Pipeline],
    paths: Sequence[Path | None],
    chosen: Score | None = None,
) -> list[_Scored]:
    """The result of each of the models `points` of a training, which are saved to the `paths`.
    chosen: see `execute`.
    """
    table = trained.table
    held = trained.assessment
    results = []
    for place, (point, path) in enumerate(zip(points, paths, strict=True)):
        if held is not None and held.refitted:
            point = point.of_run(replace(point.run, seconds_held_out=held.seconds))
        point = scoring.judged(run, point, held, place)
        evaluations = _Evaluations(
            _on_test_rows(point, table), _on_held_out_rows(point, held, place)
        )
        results.append(_result_of(run, trained, point, evaluations, chosen, path))
    return results


def _on_test_rows(point: Pipeline, table: TrainingTable) -> Evaluation | None:
    if table.X_test is None:
        return None
    assert table.y_test is not None
    on = f"{len(table.y_test):,} test rows"
    return evaluate(point, table.X_test, table.y_test, on)


def _on_held_out_rows(point: Pipeline, held: Assessment | None, place: int) -> Evaluation | None:
    """The evaluation of the model number `place` by the rows held out of it."""
    if held is None:
        return None
    rows = held.predictions[place]
    on = rows.by if held.refitted else f"{len(rows.y):,} rows {rows.by}"
    score = point.evaluate(rows.decision, rows.y)
    return Evaluation(score, on, rows.decision, rows.y, scored_on=rows.by)


@dataclass(frozen=True)
class _Evaluations:
    """The evaluations of a model by test rows and by held-out rows; either may be missing."""

    tested: Evaluation | None
    held_out: Evaluation | None

    @property
    def shown(self) -> Evaluation | None:
        """The evaluation whose score is that of the row."""
        return self.tested or self.held_out

    @property
    def scores(self) -> list[Score]:
        return [one.score_on_rows for one in (self.tested, self.held_out) if one is not None]

    def params(self, run: Run, point: Pipeline) -> JsonObject:
        """The entries of params: the score of held-out rows in addition to test rows, and other
        measures if the run asks for one.
        """
        found: dict[str, object] = {}
        if self.tested is not None and self.held_out is not None:
            found = _prefixed("held_out", self.held_out.prediction.as_dict(), "score", "mae")
            found["held_out_on"] = self.held_out.scored_on
        asks_other = run.given().get("measure") not in (None, "accuracy") or run.fail_below
        if self.shown is not None and asks_other:
            found["measures"] = measures(point, self.shown.decision, self.shown.y).values
        return found


def _metric_of(model: Pipeline) -> str:
    """That of `Preprocessing.score`."""
    return "rmse" if model.task == "regression" else "accuracy"


def _result_of(
    run: Run,
    trained: Trained,
    point: Pipeline,
    evaluations: _Evaluations,
    chosen: Score | None,
    path: Path | None,
) -> _Scored:
    """The result of `point`, one of the models of a training, which is saved to the path with its
    scores. chosen: see `execute`.
    """
    table = trained.table
    held = trained.assessment
    shown = evaluations.shown
    scores = evaluations.scores
    more = evaluations.params(run, point)
    if table.y_train is not None:
        if shown is None:
            more |= _on_training_rows(point, table)
            count = len(table.y_train)
            scores.append(Score(_metric_of(point), more["train_score"], "the training rows", count))
        parts = _training_and_scored(table, held, shown)
        more["constant_score"] = constant(point, parts)
        more |= _doubt(scores, chosen or _score_of_choice(point), point, table, held)
    if held is None and chosen is not None:
        scores.insert(len(evaluations.scores), chosen)
        more |= _prefixed("choice", asdict(chosen), "metric", "score", "on")
    if held is None or held.refitted:
        scores += _left_out_score(point)
    point = point.of_run(replace(point.run, scores=tuple(scores)))
    row = result(point, point.save(path), shown)
    more |= _inputs_of(run, row)
    if table.y_train is not None and run.train_score and "train_score" not in more:
        more |= _on_training_rows(point, table)
    row = replace(row.with_params(**more), steps=steps_of(point) if run.trace else None)
    return _Scored(row, point, None if shown is None else shown.decision)


def _training_and_scored(
    table: TrainingTable, held: Assessment | None, shown: Evaluation | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(targets to train on, targets of the score), for each part of the held-out rows."""
    y = table.y_train
    assert y is not None
    if shown is None:
        return [(y, y)]
    if held is None or table.X_test is not None:
        return [(y, shown.y)]
    return [(y[kept], y[out]) for kept, out in held.parts]


def _left_out_score(point: Pipeline) -> list[Score]:
    """The score of the rows left out of the model itself; empty if it has none."""
    outcome = point.outcome
    score, count = outcome.leave_one_out, outcome.leave_one_out_rows
    if score is None or count is None:
        return []
    on = f"{count:,} rows by {outcome.leave_one_out_by or LEAVE_ONE_OUT}"
    return [Score(_metric_of(point), score, on, count)]


def _inputs_of(run: Run, found: Result) -> JsonObject:
    """The entries of a row about what was asked for."""
    entries: JsonObject = {
        name: value for name, value in run.told().items() if name not in ("label", "test")
    }
    if content := keys.content(run):
        entries["content"] = content
    if not keys.seed_decides(run):
        entries["seedless"] = True
    if asked := _asked(run, found):
        entries["asked"] = asked
    return entries


def _doubt(
    scores: list[Score],
    chosen: Score | None,
    point: Pipeline,
    table: TrainingTable,
    held: Assessment | None,
) -> JsonObject:
    """The entry `doubt` of a row whose model scores far below the models that were evaluated when
    its options were chosen.

    scores: those of the row. Without test rows, the model is evaluated on the held-out rows, which
    it was fitted to.
    """
    final = scores[0]
    before = chosen
    if held is not None and held.refitted:
        before = scores[-1]
        if table.X_test is None:
            rows = np.concatenate([out for _, out in held.parts])
            targets = np.asarray(table.y_train)[rows]
            again = evaluate(point, table.X_train[rows], targets, "its training rows")
            final = replace(final, score=again.score, on=again.on)
    if before is None or before.metric != final.metric or not final.far_below(before):
        return {}
    return {
        "doubt": (
            f"{final.metric} {final.score:.4g} on {final.on} is far worse than {before.score:.4g}"
            f" on {before.on}, by which the options were chosen; the last fit may have failed, or"
            " these rows are of another kind"
        )
    }


def _score_of_choice(point: Pipeline) -> Score | None:
    """The score of the method's last choice of lambda on held-out rows; None if it is not that of
    the targets themselves.
    """
    if isinstance(point.target_scaler, LogTargetScaler):
        return None
    for step in reversed(point.outcome.validation or []):
        if step.by in (point.method.name, "auto") and "lam" in step.options:
            score = _score_of_error(step.error, step.chosen_error, point.target_scaler)
            if score is None:
                return None
            return Score(_metric_of(point), score, "held-out training rows", step.held_out)
    return None


def _score_of_error(kind: str, error: float, target_scaler) -> float | None:
    """The accuracy or RMSE of the error of a choice; None for an error by another measure."""
    if kind == "share of wrong labels":
        return 1 - error
    if kind == "mean squared error":
        return float(np.mean(target_scaler.in_units(error**0.5)))
    return error if kind == "RMSE" else None


def _asked(run: Run, found: Result) -> dict:
    """The requested values of a run that differ from its result: words such as ``validation`` for a
    chosen value, None for options that were not given.
    """
    told = keys.resolved(run)
    names = {*methods.get(run.method).declared(), *methods.get(found.method).declared()}
    # a column with the name of another option, such as gap, has another meaning
    names -= IN_COLUMNS - _OF_COLUMNS - {"metric"}
    if run.given().get("lam_path"):
        names -= {"lam"}
    made = {name: found.params.get(name) for name in names - _OF_COLUMNS}
    made |= {name: found[name] for name in names & _OF_COLUMNS}
    explicit = found.params.explicit or {}
    # the column of that name is that of the score
    made["metric"] = explicit.get("metric", told.get("metric"))
    own = {} if run.method == found.method else {"method": run.method}
    return own | {
        name: told.get(name)
        for name in sorted(names - _NOT_ASKED)
        if keys.canonical(made[name]) != keys.canonical(told.get(name))
    }


def _on_training_rows(model: Pipeline, table: TrainingTable) -> JsonObject:
    assert table.y_train is not None
    entries = evaluate(model, table.X_train, table.y_train).as_dict()
    return _prefixed("train", entries, "score", "relative_error")


def _prefixed(prefix: str, found: dict, *names: str) -> dict:
    """The existing ones of these entries, as PREFIX_NAME."""
    return {f"{prefix}_{name}": found[name] for name in names if name in found}


def model_files(model: Path, lam_path: str | None = None) -> list[Path]:
    """The model files written by training to `model`: itself, or one for each lambda with
    `-lamVALUE` before its extension.
    """
    if not lam_path:
        return [model]
    return [
        model.with_name(f"{model.stem}-lam{name}{model.suffix}")
        for name in path_names(LamPath.values(lam_path))
    ]


def execute_path(
    run: Run,
    model: Path | None = None,
    train_function: Callable | None = None,
    progress: Callable | None = None,
) -> list[Result]:
    """Execute a run with option lam_path: a result for each lambda; the model files get `-lamVALUE`
    before their extension.
    """
    along = run.options["lam_path"]
    options = {name: value for name, value in run.options.items() if name != "lam_path"}
    with methods.get(run.method).on(run.device):
        trained = train(run, train_function, progress)
        points = []
        for point in trained.model.path:
            of_point = options | {"lam": point.outcome.lam, "along": along}
            key = keys.key(replace(run, options=of_point))
            points.append(point.of_run(replace(point.run, key=key)))
        paths = model_files(model, along) if model else [None] * len(points)
        found = _results(run, trained, points, paths)
        return [one.result for one in found]


def steps_of(model: Pipeline) -> list[dict]:
    """The steps of a model's training; only its end if its solver reports none. At least one."""
    if getattr(model, "trace", None):
        return list(model.trace)
    entries = {name: model.info.get(entry) for name, entry in _END.items()}
    return [{name: value for name, value in entries.items() if value is not None}]


def result(model: Pipeline, model_bytes: int, evaluation: Evaluation | None = None) -> Result:
    """The result of a model and its evaluation; params holds every option and the learnt values."""
    info = model.info
    entries = {} if evaluation is None else evaluation.as_dict()
    params = {
        name: value
        for name, value in model.method.values.items()
        if value is not None and name not in IN_COLUMNS
    }
    params |= {
        name: value for name, value in info.items() if name not in _NOT_IN_ROW and value is not None
    }
    params |= {name: value for name, value in entries.items() if name not in IN_COLUMNS}
    columns = {name: value for name, value in (info | entries).items() if name in IN_COLUMNS}
    columns |= env.describe() | {
        "peak_rss_mb": max(env.peak_rss_mb(), info.get("peak_rss_mb", 0.0))
    }
    # a model trained in Python does not know the name of its data
    columns.setdefault("dataset", "")
    return Result(**columns, status="ok", model_bytes=model_bytes, params=Params(params))
