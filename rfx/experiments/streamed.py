"""Training on rows that are read as they are needed: `rfx train --stream`, checkpoints, and curves of held-out error."""

from dataclasses import replace
from pathlib import Path

from rfx import data, files, methods
from rfx.data import archives, encodings, foreign, tables
from rfx.data.loading import Split
from rfx.data.reading import FileFormat, Reading
from rfx.data.schema import Schema
from rfx.data.textstream import CsvSource, LibsvmSource
from rfx.errors import UsageError


def prepared(trainer, spec: dict, split=None) -> tuple:
    """(trainer, what its fit is told besides the rows) by a spec: checkpoints, progress, the curve over the split's test rows.

    A trace of a stochastic method is its curve. Raises UsageError where another method is given what only these have, and for weights
    of the rows of a stream.
    """
    if spec.get("stream") and spec.get("sample_weight"):
        raise UsageError("--sample-weight has a weight for each row in memory; leave out --stream, or weigh rows by --class-weight")
    asked = [name for name in ("checkpoint", "every", "resume", "stream") if spec.get(name)]
    listening = {"progress": spec.get("progress")}
    if not hasattr(trainer, "fit_stream"):
        if not asked:
            return trainer, listening | _watched(trainer, spec, split)
        raise UsageError(f"--{asked[0]} is for the methods that learn batch by batch, not for {trainer.name}")
    if (spec.get("every") or spec.get("resume")) and not spec.get("checkpoint"):
        raise UsageError(f"--{asked[0]} needs --checkpoint FILE")
    if spec.get("checkpoint"):
        trainer = trainer.keep(spec["checkpoint"], spec.get("every"), bool(spec.get("resume")))
    if (spec.get("curve") or spec.get("trace")) and split is not None and split.X_test is not None:
        if spec.get("curve") == "exact":
            listening |= {"held_out": (split.X_test, _exact(trainer, split)), "squared": True}
        else:
            listening["held_out"] = split.X_test, split.y_test
    return trainer, listening


def _watched(trainer, spec, split) -> dict:
    """The error on the split's test rows into the trace of a method that does not learn batch by batch, where that is asked for."""
    if not spec.get("curve"):
        return {}
    if spec["curve"] != "test" or not spec.get("trace"):
        raise UsageError(f'method {trainer.name} has its curve in its trace alone: curve = "test" with a trace')
    if split.X_test is None:
        raise UsageError(f"there are no test rows to draw the curve of {trainer.name} over; name some")
    return {"held_out": (split.X_test, split.y_test)}


def _exact(trainer, split):
    """The test rows' values of the exact kernel ridge solution of the training rows, nu being the method's."""
    p = trainer.settings
    same = {name: p[name] for name in ("kernel", "gamma", "scaling", "target_scaling", "seed")}
    exact = methods.create("kernel", task="regression", loss="squared", lam=p["nu"] * split.X_train.shape[0], tol=1e-8, **same)
    return exact.fit(split.X_train, split.y_train).predict(split.X_test)


def train(trainer, spec: dict) -> tuple:
    """(Pipeline, Split) of training on the file or standard input of a spec; the Split has the test rows, which must fit into memory."""
    path, n_inputs = spec["dataset"], spec.get("n_inputs")
    if spec.get("split"):
        raise UsageError(f"--split is {spec['split']}, but a stream is not split; give --test FILE")
    plain, reading = archives.plain_name(path), _reading(spec)
    if _is_csv(path, reading):
        if n_inputs:
            raise UsageError(f"--n-inputs is {n_inputs}, which is for LIBSVM text; a CSV file says how many columns it has")
        source = CsvSource(path, reading, task=trainer.settings.task)
        schema, task = source.schema, source.task
    else:
        tables.check_reading("libsvm", str(path), reading)
        source = LibsvmSource(path, n_inputs or None, bool(reading.zero_based), encoding=reading.encoding)
        task = source.learn(trainer.settings.task)
        form = FileFormat("libsvm", source.zero_based, encoding=encodings.remembered(reading.encoding))
        schema = Schema(labels=source.labels.names, format=form)
    if trainer.settings.task is None:
        trainer = trainer.with_options(task=schema.task() or task)
    split = Split("stdin" if path == "-" else Path(plain).name, "stream", "", None, None)
    if spec.get("test"):
        split.X_test, split.y_test = _test_rows(spec, source, schema)
    trainer, listening = prepared(replace(trainer, schema=schema), spec, split)
    return trainer.fit_stream(source, **listening), split


def _reading(spec) -> Reading:
    return Reading(**spec.get("reading") or {}, zero_based=spec.get("zero_based") or None)


def _is_csv(path, reading) -> bool:
    """By its name; of standard input, and where the name says nothing, by how the text begins. DataError for what is no text of rows."""
    if path == "-":
        stdin = files.standard_input()
        head = encodings.head(stdin.peek(1), reading.encoding) if hasattr(stdin, "peek") else b""
        foreign.check(head, "standard input")
        return tables.kind_of_content(head) == "csv"
    if not Path(path).is_file():
        return tables.kind_of_name(path) in ("csv", "tsv")
    kind = tables.File(path, encoding=reading.encoding).kind
    if kind not in ("csv", "tsv", "libsvm"):
        raise UsageError(f"{path} is a .{kind} file, but --stream reads LIBSVM text and CSV; leave out --stream")
    return kind != "libsvm"


def _test_rows(spec, source, schema):
    test = str(spec["test"])
    if Path(test).exists():
        return tables.other_rows(test, schema, source.n_inputs, _reading(spec), strict=bool(spec.get("strict")))
    loaded = data.load(test)
    return loaded.X_test, loaded.y_test
