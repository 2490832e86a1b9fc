"""`rfx convert`: convert a table or arrays to LIBSVM text, and list the numbers of columns and
labels.
"""

import json

import click

from rfx import files
from rfx.cli.common import force_option, json_option, reading, reading_options, strict_option
from rfx.data.reading import Reading


@click.command("convert")
@click.argument("source", metavar="IN")
@click.argument("output", metavar="OUT")
@click.option(
    "--train",
    default=None,
    metavar="FILE",
    help="Convert IN with the columns, categories, means and labels learnt from this file.",
)
@reading_options
@strict_option
@force_option
@json_option
def command(
    source,
    output,
    train,
    target,
    ignore,
    categorical,
    dates,
    header,
    missing,
    encoding,
    strict,
    zero_based,
    force,
    as_json,
):
    """Convert the rows of IN (CSV, TSV, .npz, .npy, Parquet, LIBSVM text) to LIBSVM text in OUT; -
    is standard input or output.

    Prints one line for each column and each word label: its number in OUT, a tab, its name. If OUT
    is standard output, the lines go to standard error.

    \b
    rfx convert train.csv train.libsvm --target price --missing mean
    rfx convert test.csv test.libsvm --target price --missing mean --train train.csv
    """
    from rfx.data import tables
    from rfx.data.libsvm import svmlight
    from rfx.data.tabular import labelwords

    files.guard(
        ("OUT", output),
        [("IN", source)] + ([] if train is None else [("--train", train)]),
        svmlight.KIND,
        force,
    )
    given = Reading(
        **reading(target, ignore, categorical, dates, header, missing, encoding),
        zero_based=zero_based or None,
    )
    if train is None:
        X, y, schema = tables.written_rows(source, given)
    else:
        (X, _), _, schema, *_ = tables.training_rows(
            train, given, lambda n, apart: (None, None), labelwords.KEPT
        )
        X, y, schema = tables.written_rows(source, given, X.shape[1], schema, strict=strict)
    svmlight.write(output, X, y, zero_based)
    names = [] if schema is None or schema.inputs is None else schema.titles()
    labels = [] if schema is None or schema.labels is None else schema.labels
    if as_json:
        text = json.dumps(
            {"rows": X.shape[0], "columns": names or X.shape[1], "labels": labels or None}
        )
    else:
        first = 0 if zero_based else 1
        lines = [f"{number}\t{name}" for number, name in enumerate(names, first)]
        text = "\n".join(
            [*lines, *(f"label {number}\t{name}" for number, name in enumerate(labels))]
        )
    if text:
        click.echo(text, err=output == "-")
