"""`rfx train`: one model from a data set or file."""

import click

from rfx.cli.common import MethodCommand, finish, force_option, given_options, json_option, named, print_path, print_row, threads_option


@click.command("train", cls=MethodCommand)
@click.option("--method", required=True, metavar="NAME", help="What to train; `rfx methods` lists them with their options.")
@click.option("--data", "dataset", required=True, metavar="NAME|FILE", help="A data set's name, a LIBSVM file, or - for standard input.")
@click.option(
    "--test", default=None, metavar="NAME|FILE", help="Score on these rows; by default on the data set's test part, if it has one."
)
@click.option("--split", default=None, help="Which paper's split of the data set, such as yen2014.")
@click.option("--model", type=click.Path(dir_okay=False), default=None, help="Write the model to this file.")
@click.option("--results", type=click.Path(dir_okay=False), default=None, help="Append the run's row to this CSV file.")
@click.option("--zero-based", is_flag=True, help="The file's indices start at 0.")
@force_option
@threads_option
@json_option
def command(method, dataset, test, split, model, results, zero_based, force, as_json, **options):
    """Train a method on a data set or LIBSVM file; report, save and record it.

    \b
    rfx train --method sparse-rf --data cod-rna --split yen2014 --kernel gaussian --gamma 2 --scaling minmax11 \\
        --n-features 10000 --lam 10 --seed 0 --model m.npz
    """
    given = given_options(method, options)
    from pathlib import Path

    from rfx import files, methods
    from rfx import model as model_file
    from rfx.experiments import results as results_file
    from rfx.experiments import single

    methods.create(method, **given)  # refuse a wrong option or file before the data is read
    sources = named("--data", dataset) + named("--test", test)
    if model is not None:
        for path in single.model_files(Path(model), given.get("lam_path")):
            files.guard(("--model", path), sources, model_file.KIND, force)
        model_file.check(model)
    if results is not None:
        files.guard(("--results", results), sources + ([] if model is None else [("--model", model)]))
        results_file.check(results)
    seed = given.pop("seed", 0)
    spec = {
        "dataset": dataset,
        "split": split,
        "test": test,
        "method": method,
        "options": given,
        "seed": seed,
        "zero_based": zero_based,
    }
    target = None if model is None else Path(model)
    if given.get("lam_path"):
        rows = single.execute_path(spec, target)
    else:
        rows = [single.execute(spec, target)]
    for row in rows if results is not None else ():
        results_file.append(results, row)
    if given.get("lam_path"):
        print_path(rows, as_json)
    else:
        print_row(rows[0], as_json)
    finish(rows)
