"""`rfx check`: the problems of a data file, or its size."""

import sys
from pathlib import Path

import click

from rfx import lazy
from rfx.cli.flags import flags, reading_of
from rfx.data import archives, encodings
from rfx.errors import DataError

_MOST_LABELS = 20
_HEAD = 1 << 16  # bytes that identify the kind of a file


@click.command("check")
@click.argument("file")
@flags("header", "encoding", "zero_based")
def command(file, zero_based, **values):
    """Print every problem of FILE (LIBSVM text, plain or compressed; - is standard input) as
    FILE:LINE:COLUMN: problem.

    Exits with 1 if there are any. For a file without problems, prints one line: its rows, columns
    and labels. For a table (CSV, TSV, .npy, .npz, Parquet), prints the first problem, or one line
    for each column: numbers, dates or words, and the number of missing cells.
    """
    from rfx.data import tables
    from rfx.data.libsvm import sequences, svmlight

    reading, encoding = reading_of(values), values["encoding"]
    if Path(file).is_file() and (table := tables.File(file, encoding=encoding)).kind != "libsvm":
        _check_table(table, reading)
        return

    count = 0
    with encodings.Text(file, encoding) as text:
        head = text.read(_HEAD)
        text.put_back(head)
        # their reader reports the first problem itself and reads them whole
        if sequences.recognised(head):
            X, y = sequences.parse(archives.gathered(text, text.name), text.name)
            scan = svmlight.Scan(text)
            scan.count(X.shape[1], y)
            scan.spellings.add_numbers(y)
        else:
            scan = svmlight.Scan(text, zero_based)
            for line, column, message in scan.problems():
                click.echo(f"{text.name}:{line}:{column}: {message}")
                count += 1
    if count:
        click.echo(f"rfx: {count:,} problem{'s' if count > 1 else ''} in {text.name}", err=True)
        sys.exit(1)
    click.echo(
        f"{text.name}: {_plural(scan.rows, 'row')}, {_plural(scan.columns, 'column')},"
        f" {_labels(scan)}"
    )


def _check_table(file, reading):
    from rfx.data.tabular import written
    from rfx.data.tabular.table import Table, Words, check_finite

    np = lazy.numpy
    try:
        found = file.read(reading)
        if isinstance(found, Table):
            for position in range(len(found.columns)):
                check_finite(found, position)
    except DataError as error:
        click.echo(str(error))
        sys.exit(1)
    if not isinstance(found, Table):
        click.echo(
            f"{file.name}: {_plural(found[0].shape[0], 'row')},"
            f" {_plural(found[0].shape[1], 'column')}, sparse"
        )
        return
    click.echo(
        f"{file.name}: {_plural(found.n_rows, 'row')}, {_plural(len(found.columns), 'column')}"
    )
    for name, column in zip(found.names, found.columns):
        gone = int(
            np.count_nonzero(column.missing if isinstance(column, Words) else np.isnan(column))
        )
        if isinstance(column, Words):
            words = sorted(column.values)
            kind = "dates" if all(written.kind(word) == "date" for word in words) else "words"
            what = f"{len(words):,} {kind}: {', '.join(words[:5])}" + (
                ", …" if len(words) > 5 else ""
            )
        else:
            what = (
                "no values"
                if gone == len(column)
                else f"numbers from {np.nanmin(column):g} to {np.nanmax(column):g}"
            )
        click.echo(f"  {name}: {what}" + (f"; {_plural(gone, 'cell')} missing" if gone else ""))


def _plural(count, word):
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _labels(scan):
    labels = scan.labels()
    if labels is not None and len(labels) <= _MOST_LABELS:
        return "labels " + ", ".join(f"{label} ({count:,})" for label, count in labels.items())
    text = f"{'very many' if labels is None else f'{len(labels):,}'} different labels"
    if scan.worded:
        return text
    return f"{text} from {scan.low:g} to {scan.high:g}, mean {scan.mean:g}"
