"""`rfx predict`: the predictions of a model, a line a row."""

import json

import click

from rfx import files, methods
from rfx.cli.common import (
    complete_data,
    force_option,
    named,
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
    help="Decision values (one per class where there are several) instead of labels.",
)
@click.option(
    "--proba",
    is_flag=True,
    help="Probabilities instead of labels, one per class in the order that `rfx info` says.",
)
@click.option(
    "-o",
    "--output",
    default="-",
    show_default=True,
    metavar="FILE",
    help="Where to write; - is standard output.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write one JSON object: labels, predictions, and decision values or probabilities.",
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
    as_json,
    split,
    zero_based,
    header,
    encoding,
    strict,
    force,
):
    """Print the model's prediction for each row of a file (default: standard input), which
    needs no labels; those it has are ignored.
    """
    from rfx.cli.rows import rows_for
    from rfx.data.libsvm import svmlight
    from rfx.data.tabular import schema
    from rfx.fitting import calibration

    # any text of numbers could be somebody's data
    unknown = files.Kind("known to be predictions", lambda path: False)
    if decision and proba:
        raise UsageError("--decision and --proba: give one of the two")
    files.guard(("-o", output), [("the model", model), *named("the data", source)], unknown, force)
    method = methods.load(model)
    if proba:
        calibration.check(method)
    X, _ = rows_for(
        method,
        source,
        Reading(header=header, encoding=encoding, zero_based=zero_based or None),
        split,
        strict,
        "ignored",
    )
    values = method.decision_function(X)
    shown = values if decision else calibration.probabilities(method, values) if proba else None
    if as_json:
        found = {"predictions": schema.shown(method, method.labels(values))}
        if method.classes is not None:
            found = {"labels": schema.shown(method, method.classes)} | found
        if shown is not None:
            found["decision" if decision else "probabilities"] = shown.tolist()
        text = json.dumps(found) + "\n"
    else:
        names = schema.shown(method, method.labels(values)) if shown is None else None
        text = (
            "\n".join([*names, ""])
            if names and isinstance(names[0], str)
            else svmlight.numbers(method.labels(values) if shown is None else shown)
        )
    with svmlight.open_output(output) as handle:
        handle.write(text.encode())
