"""Train on rows read by the workers of a Dask cluster, each its own part of the files: `rfx train
--scheduler`.
"""

import logging
import os
import time
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from rfx.data import registry, stream, tables
from rfx.data.loading import load, read_weights
from rfx.data.reading import FileFormat, Reading
from rfx.data.rows import MOST_LABELS
from rfx.data.tabular import labelwords
from rfx.data.tabular.group_splits import Part
from rfx.data.tabular.learner import KindChanged, Learner
from rfx.data.tabular.schema import Schema, label_text
from rfx.data.training_table import TrainingTable
from rfx.distributed import cluster
from rfx.distributed.rows import BY_MOMENTS, DistributedRows, check_method
from rfx.errors import DataError, UsageError
from rfx.fitting import weights
from rfx.fitting.assessment import HeldOutModel, Trained, assess_parts, fit_without
from rfx.fitting.problem import error
from rfx.fitting.progress import Progress
from rfx.fitting.run_facts import RunFacts
from rfx.fitting.training import Trainer
from rfx.records.run import Run
from rfx.runs import scoring

log = logging.getLogger(__name__)
# Maximum bytes of a file per part.
_BYTES = 64 << 20
# Options that need rows in one process.
_WITHOUT = (
    "split",
    "groups",
    "time",
    "stream",
    "n_inputs",
    "checkpoint",
    "every",
    "resume",
    "curve",
)


def check(trainer, run: Run) -> None:
    """Raise UsageError, before reading, for options and data that do not support a run's
    scheduler.
    """
    refused = [name for name in _WITHOUT if getattr(run, name) not in (None, False)]
    if run.how_to_read().encoding not in (None, "utf-8"):
        refused.append("encoding")
    for name in refused:
        raise UsageError(
            f"--{name.replace('_', '-')} needs all rows in one process; omit it or --scheduler"
        )
    check_method(trainer)
    path = str(run.dataset)
    if path == "-" or (registry.has(path.partition(":")[0]) and not os.path.exists(path)):
        raise UsageError(f"--data is {path}; with --scheduler use files that the workers can read")


def train(trainer: Trainer, run: Run, progress: Progress | None = None) -> Trained:
    """Train a method on the files of a run by its scheduler's workers, where their rows stay; the
    table has only the test rows.

    Without these and held-out rows, info has the score on the training rows.
    """
    check(trainer, run)
    assert run.scheduler is not None
    with cluster.connect(run.scheduler) as client:
        workers = cluster.Workers(client)
        files = _files(run.dataset, workers)
        data = _read(files, run, workers, trainer.method)
        whole, schema = data.rows, data.schema
        source = files[0].path if len(files) == 1 else run.dataset.rstrip("/")
        name = os.path.basename(source)
        X_test, y_test = _test_rows(run, whole.shape[1], schema)
        table = TrainingTable(name, "all", None, None, None, X_test, y_test, schema=schema)
        if trainer.method.task is None:
            trainer = trainer.with_options(task=schema.task() or data.task or _task(whole.survey))
        trainer = replace(trainer, schema=schema)
        if run.sample_weight is not None:
            count = whole.shape[0]
            sample_weights = read_weights(run.sample_weight, count)
            data.weights = weights.of_rows(np.empty(count), sample_weights)
        rows = data.training_rows(trainer)
        trained = trainer.fit(rows, rows.y, rows.weights, progress=progress)
        found = None
        facts = RunFacts(
            parts=len(whole.counts), workers=len(workers.addresses), seconds_read=rows.seconds
        )
        plan = scoring.plan_of(run)
        if plan.names_rows or plan.calibrate:
            y = np.concatenate(workers.results(whole.y.futures))
            counted = np.arange(len(y)) if data.weights is None else np.flatnonzero(data.weights)
            constraint = whole.repeats()
            constraint = None if constraint is None else constraint.rows(counted)
            targets = DistributedTable(
                name,
                "all",
                None,
                None,
                y[counted],
                schema=schema,
                constraint=constraint,
                data=data,
                counted=counted,
            )
            found = assess_parts(trainer, targets, trained, plan, progress)
        elif table.X_test is None and not trainer.method.get("lam_path"):
            facts = replace(facts, train_score=_score(trained, rows))
    return Trained(trained.of_run(facts), table, found)


@dataclass
class _Data:
    """The training rows of a run, and how to read them.

    task: as given, or inferred from the spelling of the labels. weights: an array (n,) for all
    rows, None for ones. reading: of a table with replaced missing cells, otherwise None.
    """

    rows: DistributedRows
    schema: Schema
    task: str | None
    weights: np.ndarray | None = None
    reading: Reading | None = None

    def training_rows(self, trainer, kept=None, sources=None) -> DistributedRows:
        """The rows for training, with the numbers `kept`, None for all; sources: of all rows, read
        in another way.
        """
        if kept is None and self.weights is None:
            return self.rows
        kept = np.arange(self.rows.shape[0]) if kept is None else kept
        moments = trainer.method.scaling in BY_MOMENTS
        found = self.rows.some(kept, moments, self.weights, sources)
        labels, own = self.rows.survey.labels, found.survey.labels
        if trainer.method.task != "regression" and labels and own and len(own) < len(labels):
            lost = label_text(self.schema, min(labels.keys() - own.keys()))
            raise DataError(
                f"all rows with the label {lost:.40} have weight 0; with --scheduler each label"
                " needs a positive weight"
            )
        return found


@dataclass(frozen=True)
class DistributedTable(TrainingTable):
    """The training rows of a run, whose inputs stay on the workers.

    Parameters
    ----------
    data : _Data
    counted : array, (n,)
        The numbers of the rows whose weight is not 0, which are the rows of this table.
    """

    data: _Data = field(kw_only=True)
    counted: np.ndarray = field(kw_only=True)


@fit_without.register(DistributedTable)
def _fit_without(
    table: DistributedTable, trainer: Trainer, part: Part, progress: Progress | None = None
) -> HeldOutModel:
    """See `fit_without`; the inputs of the rows stay on the workers."""
    start = time.perf_counter()
    data = table.data
    kept, out = (table.counted[side] for side in part)
    sources = data.rows.sources
    if data.reading is not None:
        schema = _learner(data, kept, trainer.method.task).refilled(data.schema)
        sources = [replace(source, schema=schema) for source in sources]
    rows = data.training_rows(trainer, kept, sources)
    trained = trainer.fit(rows, rows.y, rows.weights, progress=progress)
    points = [point.replace(trace=[], path=()) for point in trained.path or [trained]]
    decisions = data.rows.decided(out, points, sources)
    return HeldOutModel(trained, decisions, time.perf_counter() - start)


def _learner(data: _Data, kept, task) -> Learner:
    """The schema learnt from the rows `kept` of tables."""
    learners = [
        data.rows.workers.submit(_learnt, source, data.reading, task)
        for source in data.rows.taken(kept)
    ]
    results = data.rows.workers.results(learners)
    return reduce(Learner.merge, [one for one in results if one.n_rows])


def _files(path, workers) -> list:
    """The files that a path or pattern matches on all workers."""
    with cluster.reported(workers.client):
        seen = cluster.everywhere(workers.client, _measured, str(path))
    first = seen[min(seen)]
    for address, files in sorted(seen.items()):
        if isinstance(files, Exception):
            raise DataError(
                f"worker {address}: {files}; put the files where every worker can read them, under"
                " the same name"
            )
        if odd := set(files) ^ set(first):
            raise DataError(
                f"{min(file.path for file in odd)} differs or is missing on worker {min(seen)} or"
                f" on worker {address}; copy it to both"
            )
    return first


def _measured(path):
    """On a worker: the files."""
    return [stream.measured(own) for own in stream.matching(path)]


def _read(files, run, workers, method) -> _Data:
    """The rows of these files."""
    size = sum(file.size for file in files)
    parts = run.parts or max(workers.threads, -(-size // _BYTES))
    pieces = [own for own in stream.cut(files, parts) if own]
    reading = run.how_to_read()

    def rows(reader) -> DistributedRows:
        sources = [replace(reader, pieces=own) for own in pieces]
        return DistributedRows(workers, sources, method.scaling in BY_MOMENTS)

    if files[0].kind == "libsvm":
        tables.check_reading("libsvm", files[0].path, reading)
        text = stream.LibsvmRanges(bool(reading.zero_based))
        schema = Schema(format=FileFormat("libsvm", text.zero_based))
        return _Data(rows(text), schema, method.task)
    reader, task, gaps = _table_reader(files, reading, pieces, workers, method.task)
    return _Data(rows(reader), reader.schema, task, reading=reading if gaps else None)


# ---------------------------------------------------------------------- tables


def _table_reader(files, reading, pieces, workers, task):
    """(a reader with a schema learnt from all parts, the task, inferred if the spelling of the
    targets shows classes, whether cells are missing and replaced).
    """
    shape, path = None, files[0].path
    as_words: frozenset[int] = frozenset()
    if files[0].kind != "parquet":
        (shape,) = workers.results([workers.submit(stream.dialect, files[0], reading.header)])
        for note in shape.notes:
            log.warning(note)
    while True:
        reader = stream.TableRanges(shape, as_words, Learner(reading, True, task))
        learners = workers.results(
            [workers.submit(_learnt, replace(reader, pieces=own), reading, task) for own in pieces]
        )
        learners = [one for one in learners if isinstance(one, frozenset) or one.n_rows]
        if not learners:
            raise DataError(f"{path} has no rows")
        # columns that are words in some parts and numbers in others
        changed = frozenset().union(*(one for one in learners if isinstance(one, frozenset)))
        if kinds := [one.word_columns for one in learners if not isinstance(one, frozenset)]:
            changed |= frozenset().union(*kinds) - frozenset.intersection(*kinds)
        if not changed:
            break
        if shape is None:
            raise DataError(
                f"the files of {path} have columns with words in one file and numbers in another;"
                " use one type per column"
            )
        as_words |= changed
    learner = reduce(Learner.merge, learners)
    form = FileFormat("parquet") if shape is None else shape.format()
    reader.schema = replace(learner.finish(), format=form)
    learner.say(reader.schema)
    return reader, learner.task, learner.has_gaps


def _learnt(source, reading, task):
    """On a worker: the Learner of a part's rows, or the columns whose type changes within it."""
    learner = Learner(reading, True, task)
    try:
        for table in source.tables():
            learner.update(table)
    except KindChanged as change:
        return change.columns
    return learner


# ---------------------------------------------------------------------- task, test rows, score


def _task(survey) -> str:
    if survey.labels is None:
        log.warning(
            "task regression, inferred from the targets: more than %s different numbers; --task"
            " overrides it",
            f"{MOST_LABELS:,}",
        )
        return "regression"
    values = np.array(sorted(survey.labels))
    return labelwords.guess_of(
        values, np.array([survey.labels[value] for value in values.tolist()])
    )


def _test_rows(run, n_inputs, schema):
    """(X, y) of the run's test rows; None if there are none."""
    if run.test is None:
        return None, None
    if os.path.exists(run.test):
        reading = run.how_to_read()
        return tables.other_rows(run.test, schema, n_inputs, reading, strict=bool(run.strict))
    loaded = load(run.test)
    return loaded.X_test, loaded.y_test


def _score(trained, rows) -> float:
    """Accuracy, or the RMSE in units of the scaled target, on the training rows."""
    own = trained.preprocessing
    Y = own.targets(rows.y)
    total = own.rows(rows).total(_wrong, (trained.task, trained.model), Y)
    wrong = total / rows.shape[0]
    return float(np.sqrt(wrong)) if trained.task == "regression" else float(1 - wrong)


def _wrong(common, X, Y):
    task, model = common
    return error(task, model.decision(X), Y) * len(Y)
