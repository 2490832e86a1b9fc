"""Train on rows read by the workers of a Dask cluster, each its own part of the files: `rfx train
--scheduler`.
"""

import logging
import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rfx import methods
from rfx.data import encodings, ranges, rowweights, tables
from rfx.data.libsvm import labelled
from rfx.data.loading import Split, load
from rfx.data.ranges import Taken
from rfx.data.reading import FileFormat, Reading
from rfx.data.survey import MOST_LABELS
from rfx.data.tabular import labelwords
from rfx.data.tabular.learner import KindChanged, Learner
from rfx.data.tabular.schema import Schema, label_text
from rfx.data.tasks import guess_of
from rfx.distributed import cluster, named
from rfx.distributed.rows import BY_MOMENTS, DistributedRows
from rfx.distributed.vectors import located
from rfx.distributed.workers import Workers
from rfx.errors import DataError, UsageError
from rfx.fitting import weights
from rfx.fitting.options import AUTO
from rfx.fitting.problem import error
from rfx.records.run import Run
from rfx.runs import held_out

log = logging.getLogger(__name__)
# Maximum bytes of a file per part.
_BYTES = 64 << 20
# Solvers whose vectors over the rows may be on workers.
_SOLVERS = (None, "rfx", "cg")
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


def check_method(trainer) -> None:
    """Raise UsageError for a method or options that need all rows in one process."""
    s, able = (
        trainer.method,
        [name for name, own in methods.METHODS.own().items() if own.distributed],
    )
    if not trainer.method.distributed:
        raise UsageError(
            f"method {trainer.name} needs all rows in one process; methods for rows on several"
            f" machines: {', '.join(able)}"
        )
    if s.get("solver") not in _SOLVERS:
        raise UsageError(
            f"--solver is {s.solver}, which needs all rows in one process; use --solver rfx"
        )
    for name in trainer.method.space.values:
        word = isinstance(s.get(name), str) and s.get(name) != AUTO
        word = word and (name != "gamma" or s.gamma == "validation")
        if word and not (name == "lam" and s.get("lam_path")):
            raise UsageError(
                f"--{name.replace('_', '-')} is {s.get(name)}, which needs all rows in one process;"
                " use auto or a number"
            )
    for name in ("class_weight", "grow"):
        if s.get(name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is {s.get(name)}, which needs all rows in one process;"
                " omit it"
            )


def check(trainer, run: Run) -> None:
    """Raise UsageError, before reading, for options that do not support a run's scheduler."""
    for name in _WITHOUT:
        if getattr(run, name) not in (None, False):
            raise UsageError(
                f"--{name.replace('_', '-')} needs all rows in one process; omit it or --scheduler"
            )
    if encodings.remembered(run.how_to_read().encoding) is not None:
        raise UsageError(
            "--encoding needs all rows in one process; omit it or --scheduler, or save the files in"
            " UTF-8"
        )
    check_method(trainer)
    named.check(run)


def train(trainer, run: Run, progress=None) -> tuple:
    """(Pipeline, Split) of training a method on the files of a run by its scheduler's workers;
    the latter has the test rows and the held-out results.

    Without these, info has the score on the training rows.
    """
    check(trainer, run)
    assert run.scheduler is not None
    given = named.given(run)
    if trainer.method.task is None and given.task is not None:
        trainer = trainer.with_options(task=given.task)
    with cluster.connect(run.scheduler) as client:
        workers = Workers(client, cluster.workers_of(run.scheduler) or 1)
        files = _files(given.path, workers)
        data = _read(files, given, run.parts, workers, trainer.method)
        whole, schema = data.rows, data.schema
        name = given.name or _name(files, given.path)
        split = Split(name, given.split, given.task, None, None, schema=schema)
        split.X_test, split.y_test = _test_rows(run, given, whole.shape[1], schema)
        if trainer.method.task is None:
            trainer = trainer.with_options(task=schema.task() or data.task or _task(whole.survey))
        trainer = replace(trainer, schema=schema)
        if run.sample_weight is not None:
            data.weigh(run.sample_weight)
        rows = data.training_rows(trainer)
        trained = trainer.fit(rows, rows.y, rows.weights, progress=progress)
        more = {
            "parts": len(whole.counts),
            "workers": len(workers.addresses),
            "seconds_read": rows.seconds,
        }
        if held_out.wanted(run):
            y = whole.targets()
            here = Split(name, given.split, given.task, None, y, schema=schema)
            without = partial(_without, data)
            split.held_out = held_out.evaluated(run, here, trained, progress, without)
        elif split.X_test is None and not trainer.method.get("lam_path"):
            if rows is not whole:
                rows.latest = None  # the workers need not store both
            more["train_score"] = _score(trained, whole)
    return trained.with_info(**more), split


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

    def weigh(self, path) -> None:
        """Set the sample weights from a file."""
        count = self.rows.shape[0]
        self.weights = weights.of_rows(np.empty(count), rowweights.read(path, count))

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


def _without(data: _Data, trainer, kept, out, progress) -> tuple:
    """The pipeline trained on the rows `kept`, and for each point of its path the decision values
    of the rows `out`.
    """
    sources = data.rows.sources
    if data.reading is not None:
        schema = _learner(data, kept, trainer.method.task).refilled(data.schema)
        sources = [source.reading_as(schema) for source in sources]
    rows = data.training_rows(trainer, kept, sources)
    trained = trainer.fit(rows, rows.y, rows.weights, progress=progress)
    points = [point.replace(trace=[], path=()) for point in trained.path or [trained]]
    return trained, data.rows.decided(out, points, sources)


def _learner(data: _Data, kept, task) -> Learner:
    """The schema learnt from the rows `kept` of tables."""
    rows = data.rows
    owners, local = located(kept, rows.counts)
    first, *others = rows.workers.results(
        [
            rows.workers.submit(
                _learnt, Taken(rows.sources[k], local[owners == k]), data.reading, task
            )
            for k in np.unique(owners)
        ]
    )
    for other in others:
        first.merge(other)
    return first


def _files(path, workers) -> list:
    """The files that a path or pattern matches on all workers."""
    seen = workers.everywhere(_measured, str(path))
    (first, files), *others = sorted(seen.items())
    for address, found in seen.items():
        if isinstance(found, str):
            raise DataError(
                f"worker {address}: {found}; put the files where every worker can read them, under"
                " the same name"
            )
    for address, found in others:
        odd = sorted(
            {(file.path, file.size) for file in files} ^ {(file.path, file.size) for file in found}
        )
        if odd:
            raise DataError(
                f"{odd[0][0]} differs or is missing on worker {first} or on worker {address}; copy"
                " it to both"
            )
    kinds = {"csv" if file.kind == "tsv" else file.kind for file in files}
    if len(kinds) > 1:
        raise DataError(
            f"{path} matches files of several kinds ({', '.join(sorted(kinds))}); use files of one"
            " kind"
        )
    return files


def _measured(path):
    """On a worker: the files, or the error."""
    try:
        return [ranges.measured(own) for own in ranges.found(path)]
    except DataError as refused:
        return str(refused)


def _name(files, path) -> str:
    return (
        os.path.basename(files[0].path)
        if len(files) == 1
        else os.path.basename(str(path).rstrip("/")) or str(path)
    )


def _read(files, given, parts, workers, method) -> _Data:
    """The rows of these files."""
    size = sum(file.size for file in files)
    parts = parts or max(workers.threads, -(-size // _BYTES))
    pieces = [own for own in ranges.cut(files, parts) if own]
    reading = given.reading
    moments = method.scaling in BY_MOMENTS
    survey = partial(_surveyed, pieces=pieces, given=given, workers=workers, moments=moments)
    if files[0].kind == "libsvm":
        tables.check_reading("libsvm", files[0].path, reading)
        numbers = given.numbers or method.task == "regression"
        text = ranges.LibsvmRanges(bool(reading.zero_based), labelled.Reader(numbers))
        rows, task = _libsvm_rows(text, pieces, workers, method.task, survey, given.path)
        form = FileFormat("libsvm", text.zero_based)
        return _Data(rows, Schema(labels=text.labels.names, format=form), task)
    reader, task, gaps = _table_reader(files, reading, pieces, workers, method.task)
    return _Data(survey(reader), reader.schema, task, reading=reading if gaps else None)


def _surveyed(reader, pieces, given, workers, moments) -> DistributedRows:
    sources: list[Any] = [ranges.Pieces(reader, own) for own in pieces]
    if given.labels or given.width:
        sources = [Taken(own, labels=given.labels, width=given.width) for own in sources]
    return DistributedRows(workers, sources, moments)


def _libsvm_rows(reader, pieces, workers, task, survey, name):
    """(DistributedRows, the task); afterwards the reader knows the spelling of the labels, for
    which rows are read twice if needed.
    """
    word = workers.result(workers.submit(ranges.first_word, pieces[0][0]))
    if word is not None and task == "regression":
        raise word
    if word is None:
        try:
            return survey(reader), task
        except labelled.OtherSpelling:
            pass
    task = reader.labels.learn(
        _spellings(reader, pieces, workers, word is not None), task, name, True
    )
    return survey(reader), task


def _spellings(reader, pieces, workers, how) -> labelwords.Spellings:
    """The spellings of the labels of all pieces; how: see `spellings` of the reader."""
    found = labelwords.Spellings(labelwords.MOST)
    for own in workers.results(
        [
            workers.submit(ranges.Pieces.spellings, ranges.Pieces(reader, part), how)
            for part in pieces
        ]
    ):
        found.merge(own)
    return found


# ---------------------------------------------------------------------- tables


def _changed(learners: list) -> frozenset[int]:
    """The columns that are words in some parts and numbers in others.

    learners: of each part the Learner of its rows, or the columns that contain words unexpectedly.
    """
    refused = frozenset().union(*(own for own in learners if isinstance(own, frozenset)))
    kinds = [own.word_columns for own in learners if not isinstance(own, frozenset)]
    if not kinds:
        return refused
    return refused | (frozenset().union(*kinds) - frozenset.intersection(*kinds))


def _table_reader(files, reading, pieces, workers, task):
    """(a reader with a schema learnt from all parts, the task, inferred if the spelling of the
    targets shows classes, whether cells are missing and replaced).
    """
    shape = None
    as_words: frozenset[int] = frozenset()
    if files[0].kind != "parquet":
        shape = workers.result(workers.submit(ranges.dialect, files[0], reading.header))
        for note in shape.notes:
            log.warning(note)
    while True:
        reader = ranges.TableRanges(shape, as_words, Learner(reading, True, task))
        learners = workers.results(
            [workers.submit(_learnt, ranges.Pieces(reader, own), reading, task) for own in pieces]
        )
        learners = [own for own in learners if isinstance(own, frozenset) or own.n_rows]
        if not learners:
            raise DataError(f"{files[0].path} has no rows")
        changed = _changed(learners)
        if not changed:
            break
        if shape is None:
            raise DataError(
                f"the files of {files[0].path} have columns with words in one file and numbers in"
                " another; use one type per column"
            )
        as_words |= changed
    first, *others = learners
    for other in others:
        first.merge(other)
    form = (
        FileFormat("parquet")
        if shape is None
        else FileFormat(files[0].kind, header=shape.header, separator=shape.separator)
    )
    reader.schema, gaps = replace(first.finish(), format=form), first.has_gaps
    first.say(reader.schema)
    return reader, first.task, gaps


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
    return guess_of(values, np.array([survey.labels[value] for value in values.tolist()]))


def _test_rows(run, given, n_inputs, schema):
    """(X, y) of the run's test rows, else those of its data set; None if there are none."""
    test = run.test or given.test or (None, None)
    if isinstance(test, tuple):
        return test
    if os.path.exists(test):
        return tables.other_rows(test, schema, n_inputs, given.reading, strict=bool(run.strict))
    loaded = load(test)
    return loaded.X_test, loaded.y_test


def _score(trained, rows) -> float:
    """Accuracy, or the RMSE in units of the scaled target, on the training rows."""
    own = trained.preprocessing
    wrong = (
        own.rows(rows).total(_wrong, (trained.task, trained.model), own.targets(rows.y))
        / rows.shape[0]
    )
    return float(np.sqrt(wrong)) if trained.task == "regression" else float(1 - wrong)


def _wrong(common, X, Y):
    task, model = common
    return error(task, model.decision(X), Y) * len(Y)
