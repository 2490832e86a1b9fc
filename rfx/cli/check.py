"""`rfx check`: what is wrong with a LIBSVM file, or how large it is."""

import sys

import click

_MOST_LABELS = 20


@click.command()
@click.argument("file")
@click.option("--zero-based", is_flag=True, help="Indices start at 0.")
def command(file, zero_based):
    """Print every problem of FILE (LIBSVM text, plain or compressed; - is standard input) as FILE:LINE:COLUMN: problem.

    Exits with 1 when there are any. A file without problems gets one line: its rows, columns and labels.
    """
    from rfx.data import sequences, svmlight

    text = svmlight.Text(file)
    count = 0
    # of sequences the reader itself tells the first problem
    for line, column, message in [] if sequences.recognised(text.raw) else svmlight.problems(text, zero_based):
        click.echo(f"{text.name}:{line}:{column}: {message}")
        count += 1
    if count:
        click.echo(f"rfx: {count:,} problem{'s' if count > 1 else ''} in {text.name}", err=True)
        sys.exit(1)
    X, y = svmlight.read(text, zero_based=zero_based, cache=False)
    click.echo(f"{text.name}: {_plural(X.shape[0], 'row')}, {_plural(X.shape[1], 'column')}, {_labels(y)}")


def _plural(count, word):
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _labels(y):
    import numpy as np

    labels, counts = np.unique(y, return_counts=True)
    if len(labels) <= _MOST_LABELS:
        return "labels " + ", ".join(f"{label:g} ({count:,})" for label, count in zip(labels, counts))
    return f"{len(labels):,} different labels from {labels[0]:g} to {labels[-1]:g}, mean {y.mean():g}"
