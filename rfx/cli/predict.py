"""`rfx predict`: the predictions of a model, a line a row."""

import click

from rfx.cli.common import threads_option


@click.command("predict")
@click.argument("model", type=click.Path(dir_okay=False))
@click.argument("source", metavar="NAME|FILE", default="-")
@click.option("--decision", is_flag=True, help="Print decision values (one per class where there are several) instead of labels.")
@click.option("--split", default=None, help="Which paper's split of a named data set.")
@click.option("--zero-based", is_flag=True, help="The file's indices start at 0.")
@threads_option
def command(model, source, decision, split, zero_based):
    """Print the model's prediction for each row of a LIBSVM file (default: standard input); its labels are ignored."""
    from rfx import methods
    from rfx.cli.rows import labelled_rows
    from rfx.data import svmlight

    method = methods.load(model)
    X, _ = labelled_rows(source, split, zero_based, method.info["n_inputs"], method.info.get("seed", 0), method.letters)
    values = method.decision_function(X)
    if not decision:
        values = method.labels(values)
    click.echo(svmlight.numbers(values), nl=False)
