"""Training on rows read in batches: `rfx train --stream`, checkpoints, and curves of held-out
error.
"""

from dataclasses import replace
from pathlib import Path

from rfx import data, files, methods
from rfx.data import archives, encodings, tables
from rfx.data.libsvm import svmlight
from rfx.data.loading import Split
from rfx.data.reading import FileFormat
from rfx.data.stream import CsvSource, LibsvmSource, Source
from rfx.data.tabular.schema import Schema
from rfx.errors import UsageError, quoted
from rfx.fitting import checkpoints
from rfx.fitting.streaming import StreamMethod
from rfx.records.run import Run


def prepared(trainer, run: Run, split=None, progress=None) -> tuple:
    """(trainer, further arguments of its fit) for a run: checkpoints, progress, the curve over the
    split's test rows.

    A trace of a stochastic method is its curve. Raises UsageError for options that only these
    methods have, and for sample weights of a stream.
    """
    if run.stream and run.sample_weight is not None:
        raise UsageError(
            "--sample-weight needs all rows in memory; omit --stream, or use --class-weight"
        )
    in_batches = isinstance(trainer.method, StreamMethod)
    asked = [name for name in ("checkpoint", "every", "resume", "stream") if getattr(run, name)]
    able = trainer.method.resumable
    for name in asked:
        if name == "stream" or not able:
            trainer.in_batches(name)
    if (run.every or run.resume) and not run.checkpoint:
        raise UsageError(f"--{asked[0]} needs --checkpoint FILE")
    if run.checkpoint:
        trainer = trainer.keep(run.checkpoint, run.every, bool(run.resume))
    tested = split is not None and split.X_test is not None
    if run.curve and not in_batches and (run.curve != "test" or not run.trace or not tested):
        raise UsageError(
            f"method {trainer.name} writes its curve only to a trace, for test rows; use curve ="
            ' "test" with a trace and test rows'
        )
    listening = {"progress": progress}
    if tested and (run.curve or (run.trace and in_batches)):
        exact = run.curve == "exact"
        listening["held_out"] = split.X_test, _exact(trainer, split) if exact else split.y_test
        listening |= {"squared": True} if exact else {}
    return trainer, listening


def _exact(trainer, split):
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
        lam=method.nu * split.X_train.shape[0],
        tol=1e-8,
        **same,
    )
    return exact.fit(split.X_train, split.y_train).predict(split.X_test)


def train(trainer, run: Run, progress=None) -> tuple:
    """(Pipeline, Split) of training on the file or standard input of a run; the Split has the test
    rows, which must fit into memory.
    """
    path, n_inputs = run.dataset, run.n_inputs
    # of the training that is resumed: other rows are read like its rows
    before = checkpoints.known_before(run.checkpoint) if run.resume else {}
    known = Schema.from_dict(before["schema"]) if before.get("schema") else None
    if known is not None:
        trainer = trainer.with_options(task=before["params"]["task"])
    if run.split is not None:
        raise UsageError(f"--split is {run.split}, but a stream can't be split; use --test FILE")
    plain, reading = archives.plain_name(path), run.how_to_read()
    if reading.target is not None and known is not None and known.target is not None:
        name, place = known.target
        if reading.target not in (name, str(place + 1)):
            raise UsageError(
                f"--target is {quoted(reading.target)}, but the targets of {run.checkpoint} are"
                f" column {quoted(name)}; omit --target to continue it, or --resume to begin again"
            )
    source: Source
    if _is_csv(path, reading):
        if n_inputs:
            raise UsageError(
                f"--n-inputs is {n_inputs}, which is for LIBSVM text; omit it for a CSV file"
            )
        table = CsvSource(path, reading, known, task=trainer.method.task)
        source, schema, task = table, table.schema, table.task
    else:
        tables.check_reading("libsvm", str(path), reading)
        text = LibsvmSource(
            path,
            n_inputs or before.get("n_inputs"),
            bool(reading.zero_based),
            encoding=reading.encoding,
        )
        source, task = text, trainer.method.task
        if known is None:
            task = text.learn(task)
        else:
            text.labels = svmlight.Labels(known.labels, task=task)
        form = FileFormat(
            "libsvm", text.zero_based, encoding=encodings.remembered(reading.encoding)
        )
        schema = Schema(labels=text.labels.names, format=form)
    if trainer.method.task is None:
        trainer = trainer.with_options(task=schema.task() or task)
    split = Split("stdin" if path == "-" else Path(plain).name, "stream", "", None, None)
    if run.test is not None:
        split.X_test, split.y_test = _test_rows(run, source, schema)
    trainer, listening = prepared(replace(trainer, schema=schema), run, split, progress)
    return trainer.fit_stream(source, **listening), split


def _is_csv(path, reading) -> bool:
    """The format from the name; for standard input, or an unknown name, from the first bytes.
    DataError if it is not a text of rows.
    """
    if path == "-":
        stdin = files.standard_input()
        head = encodings.head(stdin.peek(1), reading.encoding) if hasattr(stdin, "peek") else b""
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
