"""`rfx eval`: evaluate a model."""

import os
from dataclasses import replace

import click

from rfx import files, methods
from rfx.cli.common import (
    OutputFile,
    complete_data,
    finish,
    json_option,
    named,
    print_measures,
    print_row,
    split_option,
    strict_option,
    text_options,
    threads_option,
)
from rfx.data.reading import Reading
from rfx.data.registry import registry
from rfx.records import keys
from rfx.records import results as results_file


@click.command("eval")
@click.argument("model", type=click.Path(dir_okay=False))
@click.option(
    "--data",
    "dataset",
    required=True,
    metavar="NAME|FILE",
    shell_complete=complete_data,
    help="A data set's name (for its test rows), a file, or -.",
)
@split_option
@click.option(
    "--results",
    type=OutputFile("results.csv"),
    default=None,
    help="Append the row to this CSV file.",
)
@text_options
@strict_option
@threads_option
@json_option
def command(model, dataset, split, results, zero_based, header, encoding, strict, as_json):
    """Evaluate a model file on a data set's test rows, or on all rows of a file.

    Classification: accuracy, balanced accuracy, F1 (of the larger of two labels; of several labels,
    the mean), AUC (of several labels, the one-against-rest mean), log-loss if the model has
    probabilities (see `rfx info`), and the confusion matrix. Rows with an unseen label count as
    wrong and a warning names the label. F1 is then the mean over all labels, and AUC and log-loss
    are omitted. Regression: RMSE, MAE and R2 in the target's original units; `rmse` in the row is
    in units of the scaled target.
    """
    from rfx.cli.rows import rows_for
    from rfx.runs import single

    if results is not None:
        files.guard(("--results", results), [("the model", model), *named("--data", dataset)])
        results_file.check(results)
    method = methods.load(model)
    X, y = rows_for(
        method,
        dataset,
        Reading(header=header, encoding=encoding, zero_based=zero_based or None),
        split,
        strict,
    )
    evaluation = single.evaluate(method, X, y, detailed=True)
    row = single.result(method, os.path.getsize(model), evaluation)
    # a model trained in Python does not know the name of its data
    taught = row.dataset or "trained in Python"
    row = replace(row, dataset=row.dataset or os.path.basename(dataset))
    # a named set with the split of the training has the test rows of that run
    if not (registry.has(dataset) and (dataset, split or "default") == (row.dataset, row.split)):
        test = "standard input" if dataset == "-" else os.path.basename(dataset)
        params = {**row.params, "test": f"{test}, split {split}" if split else test}
        row = replace(row, key=keys.evaluated(row.key, dataset, split), params=params)
    if results is not None:
        results_file.append(results, row)
    print_row(row if as_json else replace(row, dataset=taught), as_json)
    if not as_json:
        where = "standard input" if dataset == "-" else dataset
        click.echo(f"rows               {row.n_test} of {where}")
        print_measures(row.params["measures"])
    finish([row])
