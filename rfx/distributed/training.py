"""Training on rows that workers of a Dask cluster read, each its own part of the files:
`rfx train --scheduler`.
"""

import logging
import os
from dataclasses import replace

import numpy as np

from rfx import data, methods
from rfx.data import encodings, ranges, tables
from rfx.data.libsvm import labelled
from rfx.data.loading import Split
from rfx.data.reading import FileFormat
from rfx.data.registry import registry
from rfx.data.survey import MOST_LABELS
from rfx.data.tabular import labelwords
from rfx.data.tabular.csvtext import KindChanged
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Words
from rfx.data.tasks import guess_of
from rfx.distributed import cluster
from rfx.distributed.rows import BY_MOMENTS, DistributedRows
from rfx.distributed.workers import Workers
from rfx.errors import DataError, UsageError
from rfx.fitting.options import AUTO
from rfx.fitting.validation import error
from rfx.records.run import Run

log = logging.getLogger(__name__)
# Bytes of a file in a part, at most.
_BYTES = 64 << 20
# Solvers whose vectors over the rows may lie on workers.
_SOLVERS = (None, "rfx", "cg")
# What is asked of rows in one process.
_WITHOUT = (
    "split",
    "cv",
    "holdout",
    "groups",
    "time",
    "calibrate",
    "sample_weight",
    "stream",
    "n_inputs",
    "checkpoint",
    "every",
    "resume",
    "curve",
)


def check_method(trainer) -> None:
    """Refuse, with a UsageError, a method or options that need all rows in one process."""
    s, able = (
        trainer.settings,
        [name for name, own in methods.METHODS.own().items() if own.distributed],
    )
    if not trainer.method.distributed:
        raise UsageError(
            f"method {trainer.name} needs all rows in one process; over rows on several machines"
            f" there are {', '.join(able)}"
        )
    if s.get("solver") not in _SOLVERS:
        raise UsageError(f"--solver is {s.solver}, which needs all rows in one process; choose rfx")
    for name in trainer.method.searched:
        word = isinstance(s.get(name), str) and s[name] != AUTO
        word = word and (name != "gamma" or s.gamma == "validation")
        if word and not (name == "lam" and s.get("lam_path")):
            raise UsageError(
                f"--{name.replace('_', '-')} is {s[name]}, which needs rows in one process;"
                " give auto or a number"
            )
    for name in ("class_weight", "grow"):
        if s.get(name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is {s[name]}, which needs all rows in one process;"
                " leave it out"
            )


def check(trainer, run: Run) -> None:
    """Refuse with a UsageError what does not go with a run's scheduler, before anything is read."""
    for name in _WITHOUT:
        if getattr(run, name) not in (None, False):
            raise UsageError(
                f"--{name.replace('_', '-')} is for rows in one process; leave it out, or"
                " --scheduler"
            )
    if encodings.remembered(run.how_to_read().encoding) is not None:
        raise UsageError(
            "--encoding is for rows in one process; leave it out, or --scheduler, or save the files"
            " in UTF-8"
        )
    check_method(trainer)
    path = str(run.dataset)
    if path == "-" or (registry.has(path.partition(":")[0]) and not os.path.exists(path)):
        what = "standard input" if path == "-" else "a data set by its name"
        raise UsageError(
            f"--data is {path}, {what}; with --scheduler give files that the workers see"
        )


def train(trainer, run: Run, progress=None) -> tuple:
    """(Pipeline, Split) of training a method on the files of a run by its scheduler's workers; the
    Split has the test rows.

    Without test rows, info has the score on the training rows.
    """
    check(trainer, run)
    assert run.scheduler is not None
    with cluster.connect(run.scheduler) as client:
        workers = Workers(client, cluster.workers_of(run.scheduler) or 1)
        files = _files(run.dataset, workers)
        rows, schema, task = _rows(files, run, workers, trainer.settings)
        split = Split(_name(files, run.dataset), "all", None, None, None, schema=schema)
        if run.test:
            split.X_test, split.y_test = _test_rows(run, rows.shape[1], schema)
        if trainer.settings.task is None:
            trainer = trainer.with_options(task=schema.task() or task or _task(rows.survey))
        trained = replace(trainer, schema=schema).fit(rows, rows.y, progress=progress)
        more = {}
        if not run.test and not trainer.settings.get("lam_path"):
            more["train_score"] = _score(trained, rows)
    more |= {
        "parts": len(rows.counts),
        "workers": len(workers.addresses),
        "seconds_read": rows.seconds,
    }
    return trained.with_info(**more), split


def _files(path, workers) -> list:
    """The files that a path or pattern stands for, as all workers see them."""
    seen = workers.everywhere(_measured, str(path))
    (first, files), *others = sorted(seen.items())
    for address, found in seen.items():
        if isinstance(found, str):
            raise DataError(
                f"worker {address}: {found}; put the files where every worker sees them, under the"
                " same name"
            )
    for address, found in others:
        odd = sorted(
            {(file.path, file.size) for file in files} ^ {(file.path, file.size) for file in found}
        )
        if odd:
            raise DataError(
                f"{odd[0][0]} is not the same, or not there, on worker {first} and on worker"
                f" {address}; copy it to both"
            )
    kinds = {"csv" if file.kind == "tsv" else file.kind for file in files}
    if len(kinds) > 1:
        raise DataError(
            f"{path} stands for files of several kinds ({', '.join(sorted(kinds))}); give files of"
            " one kind"
        )
    return files


def _measured(path):
    """On a worker: the files, or what is wrong with them."""
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


def _rows(files, run, workers, settings):
    """(DistributedRows, Schema, the task as it was given, or guessed by how labels are spelled)."""
    size = sum(file.size for file in files)
    parts = run.parts or max(workers.threads, -(-size // _BYTES))
    pieces = [own for own in ranges.cut(files, parts) if own]
    reading = run.how_to_read()
    if files[0].kind == "libsvm":
        tables.check_reading("libsvm", files[0].path, reading)
        text = ranges.LibsvmRanges(
            bool(reading.zero_based), labelled.Reader(settings.task == "regression")
        )
        rows, task = _libsvm_rows(text, pieces, workers, settings, run.dataset)
        return (
            rows,
            Schema(labels=text.labels.names, format=FileFormat("libsvm", text.zero_based)),
            task,
        )
    reader, task = _table_reader(files, reading, pieces, workers, settings.task)
    return _surveyed(reader, pieces, workers, settings), reader.schema, task


def _surveyed(reader, pieces, workers, settings) -> DistributedRows:
    return DistributedRows(
        workers, [ranges.Pieces(reader, own) for own in pieces], settings.scaling in BY_MOMENTS
    )


def _libsvm_rows(reader, pieces, workers, settings, name):
    """(DistributedRows, the task); the reader then knows how labels are spelled, for which
    rows are read twice where need be.
    """
    task = settings.task
    word = workers.result(workers.submit(ranges.first_word, pieces[0][0]))
    if word is not None and task == "regression":
        raise word
    if word is None:
        try:
            return _surveyed(reader, pieces, workers, settings), task
        except labelled.OtherSpelling:
            pass
    task = reader.labels.learn(
        _spellings(reader, pieces, workers, word is not None), task, name, True
    )
    return _surveyed(reader, pieces, workers, settings), task


def _spellings(reader, pieces, workers, how) -> labelwords.Spellings:
    """How the labels of all pieces are spelled; how: as `spellings` of the reader has it."""
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
    """The columns that are words in some parts, of which others made numbers.

    learners: of each part the Learner of its rows, or the columns that turned out to be words.
    """
    refused = frozenset().union(*(own for own in learners if isinstance(own, frozenset)))
    kinds = [own.word_columns for own in learners if not isinstance(own, frozenset)]
    if not kinds:
        return refused
    return refused | (frozenset().union(*kinds) - frozenset.intersection(*kinds))


def _table_reader(files, reading, pieces, workers, task):
    """(a reader whose schema is learnt from all parts, the task, guessed where the targets
    are classes by how they are spelled).
    """
    shape = None
    forced: frozenset[int] = frozenset()
    if files[0].kind != "parquet":
        shape = workers.result(workers.submit(ranges.dialect, files[0], reading.header))
        for note in shape.notes:
            log.warning(note)
        forced = tables.words_of(shape, None, reading)
    while True:
        reader = ranges.TableRanges(shape, forced, exact=frozenset(reading.categorical))
        learners = workers.results(
            [workers.submit(_learnt, ranges.Pieces(reader, own), reading, task) for own in pieces]
        )
        learners = [
            own for own in learners if isinstance(own, frozenset) or own.columns is not None
        ]
        if not learners:
            raise DataError(f"{files[0].path} has no rows")
        changed = _changed(learners)
        if changed <= forced:
            break
        if shape is None:
            raise DataError(
                f"the files of {files[0].path} have columns that are words in one and numbers in"
                " another; make them alike"
            )
        forced |= changed
    first, *others = learners
    for other in others:
        first.merge(other)
    form = (
        FileFormat("parquet")
        if shape is None
        else FileFormat(files[0].kind, header=shape.header, separator=shape.separator)
    )
    schema = replace(first.finish(), format=form)
    first.say(schema)
    if not tables.asks_spelling(schema, task):
        reader.schema = schema
        return reader, task
    name, position = schema.target
    again = ranges.TableRanges(shape, forced | {position}, exact=reader.exact | {name})
    labels = labelled.Reader()
    found = _spellings(again, pieces, workers, (position, schema.target_form))
    task = labels.learn(found, task, files[0].path, True)
    again = reader if labels.names is None else again
    again.schema = tables.with_labels(schema, labels.names, found.counts, files[0].path)
    return again, task


def _learnt(source, reading, task):
    """On a worker: the Learner of a part's rows, or the columns whose kind changes within it."""
    learner, kinds = Learner(reading, True, task == "regression"), None
    seen: frozenset[int] = frozenset()
    for table in source.tables():
        words = frozenset(
            place for place, column in enumerate(table.columns) if isinstance(column, Words)
        )
        if kinds is not None and words != kinds:
            seen |= words ^ kinds
        kinds = words
        if not seen:
            try:
                learner.update(table)
            except KindChanged as change:
                seen |= change.columns
    return seen or learner


# ---------------------------------------------------------------------- task, test rows, score


def _task(survey) -> str:
    if survey.labels is None:
        log.warning(
            "task regression, guessed from the targets: more than %s different numbers; --task"
            " sets it",
            f"{MOST_LABELS:,}",
        )
        return "regression"
    values = np.array(sorted(survey.labels))
    return guess_of(values, np.array([survey.labels[value] for value in values.tolist()]))


def _test_rows(run, n_inputs, schema):
    test = str(run.test)
    if os.path.exists(test):
        return tables.other_rows(test, schema, n_inputs, run.how_to_read(), strict=bool(run.strict))
    loaded = data.load(test)
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
