"""`rfx predict`: the predictions of a model, one per line."""

import csv
import json
from itertools import islice

import click

from rfx import files, methods
from rfx.cli.common import (
    Count,
    complete_data,
    force_option,
    named,
    output_option,
    split_option,
    strict_option,
    text_options,
    threads_option,
)
from rfx.data.reading import Reading
from rfx.errors import UsageError


@click.command("predict")
@click.argument("model", type=click.Path(dir_okay=False))
@click.argument("source", metavar="NAME|FILE", default="-", shell_complete=complete_data)
@click.option(
    "--decision",
    is_flag=True,
    help="Print decision values (one per class if there are several) instead of labels.",
)
@click.option(
    "--proba",
    is_flag=True,
    help="Print probabilities instead of labels, one per class in the order of `rfx info`.",
)
@output_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "csv", "json"]),
    help=(
        "text: one line per row, without a header. csv: a table with a header. json: one object"
        " with labels, predictions, and decision values or probabilities.  [default: text]"
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option(
    "--id",
    "identify",
    metavar="COLUMN",
    help="With --format csv: copy this column of the data. It need not be an input.",
)
@click.option(
    "--digits",
    type=Count(),
    help="Number of significant digits.  [default: full float64 precision]",
)
@split_option
@text_options
@strict_option
@force_option
@threads_option
def command(
    model,
    source,
    decision,
    proba,
    output,
    form,
    as_json,
    identify,
    digits,
    split,
    zero_based,
    header,
    encoding,
    strict,
    force,
):
    """Print the model's prediction for each row of a file (default: standard input). Labels are not
    needed and are ignored.

    -o overwrites an existing file only if it is a CSV file of predictions; --force overwrites any
    file.

    \b
    rfx predict model.npz new.csv --format csv --proba --id patient --digits 4 -o predicted.csv
    """
    from rfx.cli import rows
    from rfx.data.libsvm import svmlight
    from rfx.data.tabular import schema

    if decision and proba:
        raise UsageError("--decision and --proba can't be combined; use only one of them")
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} can't be combined; use only one of them")
    form = "json" if as_json else form or "text"
    if identify is not None and form != "csv":
        raise UsageError(f"--id is {identify!r:.80}, which needs --format csv")
    if identify is not None and split is not None:
        raise UsageError("--id and --split can't be combined; use only one of them")
    own = files.Kind("a CSV file of predictions", _is_own)
    files.guard(("-o", output), [("the model", model), *named("the data", source)], own, force)
    method = methods.load(model)
    if proba:
        method.check_probabilities()
    reading = Reading(header=header, encoding=encoding, zero_based=zero_based or None)
    ids = None
    if identify is None:
        X, _ = rows.rows_for(method, source, reading, split, strict, "ignored")
    else:
        X, *ids = rows.identified_rows(method, source, identify, reading, strict)
    values = method.decision_function(X)
    labels = method.labels(values)
    shown = values if decision else method.probabilities(values) if proba else None
    if method.task == "regression":
        labels = rows.rounded(labels, digits)
    shown = None if shown is None else rows.rounded(shown, digits)
    if form == "csv":
        text = rows.predictions(method, labels, shown, "decision" if decision else "", ids)
    elif form == "json":
        found = {"predictions": schema.shown(method, labels)}
        if method.classes is not None:
            found = {"labels": schema.shown(method, method.classes)} | found
        if shown is not None:
            found["decision" if decision else "probabilities"] = shown.tolist()
        text = json.dumps(found) + "\n"
    else:
        names = schema.shown(method, labels) if shown is None else None
        text = (
            "\n".join([*names, ""])
            if names and isinstance(names[0], str)
            else svmlight.numbers(labels if shown is None else shown)
        )
    with svmlight.open_output(output) as handle:
        handle.write(text.encode())


def _is_own(path) -> bool:
    """Whether a file is a table of predictions: its first or second column has that name."""
    with path.open(encoding="utf-8", newline="") as handle:
        try:
            first = next(csv.reader(islice(handle, 1)), [])
        except (UnicodeDecodeError, csv.Error):
            return False
    return "prediction" in first[:2]
