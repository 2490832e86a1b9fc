"""Commands about data: datasets, fetch, check, convert and featurize."""

import math
import sys
from pathlib import Path

import click

from rfx import files, lazy, methods
from rfx.cli.flags import (
    READING,
    DeclaringCommand,
    flags,
    named,
    reading_of,
)
from rfx.cli.output import print_json, table
from rfx.data import registry, textfiles
from rfx.errors import DataError, RfxError, UsageError
from rfx.options import Option

COLUMNS = ("name", "task", "n", "d", "classes", "papers", "status", "checked", "stands_in_for")

_COUNTS = ("n", "d", "classes")


@click.command("datasets")
@flags(
    "paper",
    "json",
    json="Print JSON, with titles, notes and instructions for data without a URL.",
)
def datasets(paper, json) -> None:
    """List the data sets with their sizes, the papers that use them and their status.

    The status is `built in`, `fetched`, `not fetched` (rfx fetch downloads it), `by hand` (no
    public download: `rfx fetch NAME` prints instructions), or `own file`: defined in the registry
    that RFX_DATASETS names, by default ~/.config/rfx/datasets.toml. `checked` states how the files
    are verified: by the published `sha256` of the files or of their `source`, or of a `known copy`;
    else by the `first copy` that was fetched, whose `size` was checked.

    NAME may include settings for generated sets: sphere:n=1000,d=5,seed=1.
    """
    rows = [_described(info) for info in _sets(registry.names(), paper)]
    if json:
        print_json(rows, indent=1)
        return
    lines = [[name.replace("_", " ") for name in COLUMNS]]
    for row in rows:
        lines.append([_cell(row[name]) for name in COLUMNS])
    left = [place for place, name in enumerate(COLUMNS) if name not in _COUNTS]
    click.echo("\n".join(table(lines, left)))


def _sets(names, paper) -> list:
    if paper is not None:
        return registry.for_paper(paper)
    return [registry.get(name) for name in names]


def _status(info) -> str:
    if info.own is not None:
        return "own file"
    if info.builtin:
        return "built in"
    if registry.is_fetched(info.name):
        return "fetched"
    return "not fetched" if registry.is_obtainable(info.name) else "by hand"


def _described(info) -> dict:
    own = info.own is not None
    means = {file.filename: registry.check_of(file) for file in info.files}
    return {
        "name": info.name,
        "task": info.task or None,
        "n": None if own else info.n,
        "d": None if own else info.d,
        "classes": None if own else info.classes,
        "papers": list(info.papers),
        "status": _status(info),
        "checked": ", ".join(dict.fromkeys(means.values())),
        "files": means,
        "stands_in_for": info.substitute_for,
        "title": info.title,
        "aliases": list(info.aliases),
        "note": info.note,
        "obtain": info.obtain,
    }


def _cell(value) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(value) if isinstance(value, list) else value or ""


@click.command(
    "fetch",
    epilog="Files are stored in $RFX_DATA, or in rfx's cache by default. $RFX_MIRROR names a folder"
    " or URL to search first.",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@flags(
    Option(
        "all",
        bool,
        "Every data set that can be downloaded without manual steps.",
        default=False,
    ),
    "paper",
    Option("offline", bool, "Use only a mirror folder and existing files.", default=False),
    Option(
        "trust",
        bool,
        "Accept files without a published checksum even if their content or size changed.",
        default=False,
    ),
    "json",
    json="Print the files as JSON.",
)
def fetch(names, all, paper, offline, trust, json) -> None:
    """Fetch data sets by name, all of them, or those of one paper.

    Prints the path of each file. An existing file is not downloaded again, but its checksum (see
    `rfx datasets`) is verified if it has changed. Exits with 3 if some of several sets can't be
    fetched, and prints the reasons on standard error.
    """
    if bool(names) + all + (paper is not None) != 1:
        raise click.UsageError(
            "pass data set names, --all, or --paper PAPER (`rfx datasets` lists them)"
        )
    infos = _sets(registry.names() if all else names, paper)
    infos = [info for info in infos if not all or registry.is_obtainable(info.name)]
    fetched, failed = [], 0
    for info in infos:
        try:
            paths = registry.fetch(info.name, offline=offline, trust=trust)
        except RfxError as error:
            if len(infos) == 1:
                raise
            failed += 1
            click.echo(f"rfx: {error}", err=True)
            continue
        for role, path in paths.items():
            fetched.append({"dataset": info.name, "role": role, "path": str(path)})
        if not paths:
            what = "built in" if info.own is None else "a file of your own"
            click.echo(f"{info.name} is {what}: nothing to fetch", err=True)
    if json:
        print_json(fetched, indent=1)
    else:
        for entry in fetched:
            click.echo("\t".join(entry.values()))
    if failed:
        click.echo(f"rfx: {failed} of {len(infos)} data sets could not be fetched", err=True)
        sys.exit(3)


_MOST_LABELS = 20
_HEAD = 1 << 16  # bytes that identify the kind of a file


@click.command("check")
@click.argument("file")
@flags("header", "encoding", "zero_based")
def check(file, zero_based, **values):
    """Print every problem of FILE (LIBSVM text, plain or compressed; - is standard input) as
    FILE:LINE:COLUMN: problem.

    Exits with 1 if there are any. For a file without problems, prints one line: its rows, columns
    and labels. For a table (CSV, TSV, .npy, .npz, Parquet), prints the first problem, or one line
    for each column: numbers, dates or words, and the number of missing cells.
    """
    from rfx.data import libsvm, tables

    reading, encoding = reading_of(values), values["encoding"]
    if Path(file).is_file():
        source = tables.File(file, encoding=encoding)
        if source.kind != "libsvm":
            _check_table(source, reading)
            return
    count = 0
    with textfiles.Text(file, encoding) as text:
        head = text.read(_HEAD)
        text.put_back(head)
        # their reader reports the first problem itself and reads them whole
        if libsvm.recognised(head):
            X, y = libsvm.parse_sequences(text.read(), text.name)
            scan = libsvm.Scan(text)
            scan.count(X.shape[1], y)
        else:
            scan = libsvm.Scan(text, zero_based)
            for line, column, message in scan.problems():
                click.echo(f"{text.name}:{line}:{column}: {message}")
                count += 1
    if count:
        click.echo(f"rfx: {_plural(count, 'problem')} in {text.name}", err=True)
        sys.exit(1)
    size = _size(scan.rows, scan.columns)
    click.echo(f"{text.name}: {size}, {_labels(scan)}")


def _check_table(file, reading) -> None:
    """Print the first problem of a table, or a line for each column."""
    from rfx.data.tabular.table import Table

    try:
        found = file.read(reading)
        if isinstance(found, Table):
            for position in range(len(found.columns)):
                found.cells(position)
    except DataError as error:
        click.echo(str(error))
        sys.exit(1)
    if not isinstance(found, Table):
        X, _ = found
        click.echo(f"{file.name}: {_size(*X.shape)}, sparse")
        return
    click.echo(f"{file.name}: {_size(found.n_rows, len(found.columns))}")
    for position, name in enumerate(found.names):
        line = f"  {name}: {_content(found.columns[position])}"
        gone = int(lazy.numpy.count_nonzero(found.gaps(position)))
        if gone:
            line += f"; {_plural(gone, 'cell')} missing"
        click.echo(line)


def _content(column) -> str:
    """What the cells of a column are."""
    from rfx.data.tabular import number_formats
    from rfx.data.tabular.table import Words

    if isinstance(column, Words):
        words = sorted(column.values)
        are_dates = all(number_formats.kind(word) == "date" for word in words)
        kind, count = "dates" if are_dates else "words", len(words)
        if count > 5:
            words[5:] = ["…"]
        return f"{count:,} {kind}: {', '.join(words)}"
    values = column[~lazy.numpy.isnan(column)]
    if not len(values):
        return "no values"
    return f"numbers from {values.min():g} to {values.max():g}"


def _plural(count: int, word: str) -> str:
    words = word if count == 1 else f"{word}s"
    return f"{count:,} {words}"


def _size(n_rows: int, n_columns: int) -> str:
    return f"{_plural(n_rows, 'row')}, {_plural(n_columns, 'column')}"


def _labels(scan) -> str:
    from rfx.data.tabular.labelwords import number_text

    labels = scan.labels
    if labels is not None and len(labels) <= _MOST_LABELS:
        texts = []
        for label, count in sorted(labels.items()):
            texts.append(f"{number_text(label)} ({count:,})")
        return f"labels {', '.join(texts)}"
    many = "very many" if labels is None else f"{len(labels):,}"
    return f"{many} different labels from {scan.low:g} to {scan.high:g}, mean {scan.mean:g}"


@click.command("convert")
@click.argument("source", metavar="IN")
@click.argument("output", metavar="OUT")
@flags(
    Option(
        "train",
        str,
        "Convert IN with the columns, categories, means and labels learnt from this file.",
        metavar="FILE",
    ),
    *READING,
    "zero_based",
    "strict",
    "force",
    "json",
)
def convert(source, output, train, zero_based, strict, force, json, **values) -> None:
    """Convert the rows of IN (CSV, TSV, .npz, .npy, Parquet, LIBSVM text) to LIBSVM text in OUT; -
    is standard input or output.

    Prints one line for each column and each word label: its number in OUT, a tab, its name. If OUT
    is standard output, the lines go to standard error.

    \b
    rfx convert train.csv train.libsvm --target price --missing mean
    rfx convert test.csv test.libsvm --target price --missing mean --train train.csv
    """
    from rfx.data import libsvm, tables
    from rfx.data.tabular import labelwords

    inputs = [("IN", source)]
    if train is not None:
        inputs.append(("--train", train))
    files.guard(("OUT", output), inputs, libsvm.KIND, force)
    reading = reading_of(values | {"zero_based": zero_based})
    if train is None:
        X, y, schema = tables.written_rows(source, reading)
    else:
        learnt = tables.training_rows(train, reading, task=labelwords.KEPT)
        width = learnt.X.shape[1]
        X, y, schema = tables.written_rows(source, reading, width, learnt.schema, strict=strict)
    libsvm.write(output, X, y, zero_based)
    names = [] if schema is None or schema.inputs is None else schema.titles()
    labels = [] if schema is None or schema.labels is None else schema.labels
    if json:
        n_rows, n_columns = X.shape
        print_json({"rows": n_rows, "columns": names or n_columns, "labels": labels or None})
        return
    for number, name in enumerate(names, 0 if zero_based else 1):
        click.echo(f"{number}\t{name}", err=output == "-")
    for number, label in enumerate(labels):
        click.echo(f"label {number}\t{label}", err=output == "-")


def _kernel_options(name: str | None) -> list[Option]:
    """The options of the kernel of a map, or of all kernels."""
    from rfx import features, kernels

    names = [features.find(name)[1]] if name else list(features.MAPS)
    options = {}
    for kernel in names:
        for option in kernels.get_kernel(kernel).options:
            options[option.name] = option
    return list(options.values())


class _MapCommand(DeclaringCommand):
    def format_epilog(self, ctx, formatter):
        from rfx import features

        maps = ", ".join(features.MAPS)
        aliases = [f"{alias} ({kernel})" for alias, kernel in features.ALIASES.items()]
        formatter.write_paragraph()
        formatter.write_text(f"Maps: {maps}; {', '.join(aliases)}.")


@click.command("featurize", cls=_MapCommand, by="--map", declared=_kernel_options)
@click.argument("source", metavar="NAME|FILE", default="-")
@flags(
    Option(
        "map",
        str,
        "The kernel or map whose features are written; see the list below.",
        default="gaussian",
        metavar="KERNEL",
    ),
    Option(
        "n_features",
        int,
        "Number of features; for binning, the number of grids, with a feature for each bin.",
        low=1,
        default=1000,
    ),
    "output",
    Option("gamma", str, "Bandwidth: a number, paper or median.", default="paper"),
    Option(
        "features",
        str,
        "Variant of the features: of Fourier features offset, pairs, orthogonal, hadamard or quasi;"
        " of polynomial kernels sketch or signs; of perceptrons offset or range. By default the"
        " first.",
        metavar="VARIANT",
    ),
    Option(
        "scaling",
        str,
        "Scaling of the inputs, as in training. By default minmax01; none for kernels of counts and"
        " categories.",
    ),
    Option(
        "train",
        str,
        "Learn the scaling, the ranges and the bins from these rows; by default from the rows"
        " written, or a data set's training rows.",
        metavar="NAME|FILE",
    ),
    Option(
        "unscaled",
        bool,
        "Write phi instead of phi / sqrt(n): the mean of products, not their sum, is the kernel.",
        default=False,
    ),
    "model",
    Option("seed", int, "Seed of the features.", low=0, default=0),
    *READING,
    "zero_based",
    "force",
    "threads",
    "device",
    model="Use the scaling and the features of this model; its options replace all except -o.",
)
def featurize(
    source,
    map,
    n_features,
    output,
    gamma,
    features,
    scaling,
    train,
    unscaled,
    model,
    seed,
    force,
    **values,
) -> None:
    """Write the random features of each row of a file, with its label, as LIBSVM text. For a named
    data set, these are its test rows.

    Word labels become 0, 1, …; the mapping is printed to standard error.

    Files are LIBSVM text, CSV, TSV, .npz, .npy or Parquet. A table is read like the file of --train
    or of the model, if given.

    Scaling, ranges and bins are learnt from the rows of the file, or from the data set's training
    rows; --train selects other rows.

    \b
    rfx featurize data.libsvm --map fourier -n 512 -o - | train -s 2 /dev/stdin
    rfx featurize train.libsvm --map binning -n 256 -o a.libsvm
    rfx featurize test.libsvm --train train.libsvm --map binning -n 256 -o b.libsvm
    """
    from rfx import device, kernels
    from rfx.cli.rows import labelled_rows
    from rfx.data import libsvm
    from rfx.data.loading import load
    from rfx.data.tabular import labelwords
    from rfx.features import find
    from rfx.fitting.linear import scaled_map
    from rfx.fitting.options import MAP_GAMMA, SCALING

    inputs = named("the input", source) + named("--train", train)
    if model is not None:
        inputs.append(("--model", model))
    files.guard(("-o", output), inputs, libsvm.KIND, force)
    reading, scale = reading_of(values), 1.0
    if model is not None:
        X, y, labels, scaler, feature_map = _by_model(model, source, train, reading)
    else:
        kind, name = find(map)
        kernel = kernels.get_kernel(name)
        scaling = SCALING.convert(scaling or [*kernel.scalings, SCALING.default][0])
        variant = features or kind.usual(name)
        kind.check_variant(name, n_features, variant)
        if train is None and registry.has(source.partition(":")[0]):
            train = source
        learnt = schema = width = None
        if train is not None:
            zero_based = values["zero_based"]
            taught = load(
                train, task=labelwords.KEPT, means=False, zero_based=zero_based, reading=reading
            )
            learnt, schema = taught.X_train, taught.schema
            width = learnt.shape[1]
        X, y, labels = labelled_rows(source, width, reading, schema)

        def learn_map(rows, params):
            return kind.learn(name, rows, n_features, seed, variant=variant, **params)

        params = {}
        for one in kernel.options:
            if values[one.name] is not None:
                params[one.name] = one.convert(values[one.name])
        scaler, feature_map = scaled_map(
            learn_map,
            X if learnt is None else learnt,
            kind.width * n_features,
            name,
            scaling,
            MAP_GAMMA.convert(gamma),
            seed,
            **params,
        )
        scale = 1.0 if unscaled else 1 / math.sqrt(n_features)
    with device.use(values["device"]), libsvm.open_output(output) as handle:
        scaled = scaler.transform(X, dtype=feature_map.dtype)
        for rows, Z in feature_map.row_blocks(scaled, scale):
            libsvm.write_rows(handle, Z, y[rows])
    for number, label in enumerate(labels or ()):
        click.echo(f"label {number}\t{label}", err=True)


def _by_model(model, source, train, reading):
    """(X, y, labels, scaler, feature map) of the rows of `source`, read and mapped like those of a
    model.
    """
    from rfx.cli.rows import labelled_rows

    if train is not None:
        raise UsageError(
            f"--train is {train}, but --model {model} defines the scaling and the features; use"
            " only one of them"
        )
    trained = methods.load(model)
    n_inputs = trained.outcome.n_inputs
    rows = labelled_rows(source, n_inputs, reading, trained.schema, trained.letters)
    if not hasattr(trained.model, "map"):
        raise UsageError(
            f"--model {model} was trained with method {trained.name}, which has no random features"
        )
    return *rows, trained.preprocessing.scaler, trained.model.map
