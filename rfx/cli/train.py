"""`rfx train`: one model from a data set or file."""

import dataclasses
from pathlib import Path

import click

from rfx import files, methods
from rfx.cli import pages
from rfx.cli.common import (
    Count,
    MethodCommand,
    OutputFile,
    Real,
    Whole,
    apart_options,
    command_of,
    complete_data,
    complete_method,
    finish,
    force_option,
    given_options,
    json_option,
    named,
    print_path,
    print_row,
    reading,
    reading_options,
    split_option,
    strict_option,
    threads_option,
)
from rfx.cli.pages import Group, help_all_option
from rfx.cli.progress import Progress, quiet_option
from rfx.errors import UsageError
from rfx.records import results as results_file
from rfx.records import traces
from rfx.records.run import Run

# small and built in
EXAMPLE = "breast_cancer"


class TrainCommand(MethodCommand):
    """Has the options of method auto if none is named."""

    groups = (
        Group(
            "Data",
            {
                "--data NAME|FILE": "A data set, a file (CSV, LIBSVM, Parquet, …), or -.",
                **pages.DATA,
                "--test NAME|FILE": "Rows to evaluate on.",
                "--split NAME|SHARE": "A paper's split, or the fraction to train on: 0.8.",
            },
            (*pages.READING, "--sample-weight", "--stream", "--n-inputs"),
        ),
        Group(
            "Method",
            {
                "--method NAME": "Method, auto by default; see `rfx methods`.",
                "--task VALUE": "regression, binary or multiclass; else inferred.",
                "--kernel VALUE": "gaussian, laplacian, … or auto.",
                "--n-features VALUE": "Number of random features.",
                "--loss VALUE": "squared, squared_hinge, logistic, …",
                "--class-weight VALUE": "balanced, or LABEL:WEIGHT,…",
                "--seed VALUE": "Seed of all random numbers.  [default: 0]",
            },
        ),
        Group(
            "Selection",
            {
                "--gamma VALUE": "Bandwidth: a number, median, loo, validation, …",
                "--lam VALUE": "Regularisation: a number, auto or validation.",
                "--scaling VALUE": "Scaling of the inputs: standard, minmax01, …, auto.",
                "--budget-seconds VALUE": "Seconds after which no more options are tried.",
                "--cv PARTS": "Evaluate by cross-validation.",
                "--holdout SHARE": "Evaluate on this fraction of the training rows.",
                "--groups COLUMN": "Hold out whole groups, such as patients.",
                "--time COLUMN": "Hold out later rows only.",
                "--calibrate VALUE": "Calibrate probabilities: platt or isotonic.",
            },
            ("--metric", "--metric-steps", "--target-scaling", "--lam-path", "--timeout"),
        ),
        Group(
            "Output",
            {
                "--model FILE": "Write the model to this file.",
                "--results FILE": "Append the run's row to this CSV file.",
                "--trace FILE": "Append the solver's progress to this CSV file.",
                **pages.FILES,
            },
            (
                "--curve",
                "--no-baseline",
                "--checkpoint",
                "--every",
                "--resume",
                "--help-all",
                "--help",
            ),
        ),
        Group(
            "Distributed",
            {
                "--threads COUNT": "Number of threads; one per core by default.",
                "--scheduler ADDRESS": "Train on Dask workers, or on local[:N] processes.",
                "--parts COUNT": "Number of parts to split the rows into.",
            },
        ),
    )

    def _named(self, args):
        return super()._named(args) or "auto"


@click.command("train", cls=TrainCommand)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="NAME",
    shell_complete=complete_method,
    help="Training method; `rfx methods` lists the methods with their options.",
)
@click.option(
    "--data",
    "dataset",
    metavar="NAME|FILE",
    shell_complete=complete_data,
    help=(
        "A data set's name, a file (LIBSVM, CSV, TSV, .npz, .npy, Parquet), or - for standard"
        " input.  [required]"
    ),
)
@click.option(
    "--test",
    default=None,
    metavar="NAME|FILE",
    help="Evaluate on these rows.  [default: the data set's test rows, if it has any]",
)
@click.option(
    "--cv",
    type=Whole(),
    metavar="PARTS",
    help="Evaluate by cross-validation on the training rows with this many folds.",
)
@click.option(
    "--holdout",
    type=Real(),
    metavar="SHARE",
    help="Evaluate on this fraction of the training rows, with a model trained on the rest.",
)
@click.option(
    "--calibrate",
    type=click.Choice(["platt", "isotonic"]),
    help=(
        "Calibrate probabilities for `rfx predict --proba` on the rows of --cv or --holdout. "
        " [default rows: a fifth of the training rows]"
    ),
)
@click.option(
    "--sample-weight",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help=(
        "File with sample weights of the training rows, one per line. A row of weight 2 counts as"
        " two (rf, kernel and others)."
    ),
)
@split_option
@click.option(
    "--model", type=OutputFile("model.npz"), default=None, help="Write the model to this file."
)
@click.option(
    "--results",
    type=OutputFile("results.csv"),
    default=None,
    help="Append the run's row to this CSV file.",
)
@click.option(
    "--trace",
    type=OutputFile("trace.csv"),
    default=None,
    help="Append the solver's progress, step by step, to this CSV file.",
)
@click.option(
    "--curve", is_flag=True, help="With --trace: also evaluate on the test rows at every step."
)
@apart_options
@reading_options
@strict_option
@click.option(
    "--stream",
    is_flag=True,
    help=(
        "Read --data (a LIBSVM or .csv file, or -) in batches, so that it need not fit in memory"
        " (doubly-sgd and other stochastic methods)."
    ),
)
@click.option(
    "--n-inputs",
    type=Count(),
    default=None,
    help="Number of columns of a stream.  [default: the largest index of the file; for standard"
    " input, of the first rows]",
)
@click.option(
    "--checkpoint",
    type=OutputFile("checkpoint.npz"),
    default=None,
    help="Write a resumable checkpoint to this file (streaming methods).",
)
@click.option(
    "--every",
    type=Count(),
    default=None,
    help="Steps between checkpoints.  [default: one checkpoint at the end]",
)
@click.option(
    "--resume",
    is_flag=True,
    help=("Resume from --checkpoint if it exists. The same input and options give the same model."),
)
@click.option(
    "--scheduler",
    metavar="ADDRESS|local[:N]",
    default=None,
    help=(
        "Train on the workers of this Dask scheduler, or on N local processes. Each reads its own"
        " part of --data: a file, a pattern or folder of files, an address that fsspec opens, or a"
        " data set with test rows (rf, sparse-rf, rb, lkrf)."
    ),
)
@click.option(
    "--parts",
    type=Count(),
    default=None,
    help=(
        "Number of parts that --scheduler splits the rows into. The same parts give bitwise the"
        " same result.  [default: one per worker thread, more if a part would exceed 64 MiB of the"
        " files]"
    ),
)
@click.option(
    "--no-baseline",
    is_flag=True,
    help="Do not evaluate a constant, a linear model and gradient boosting on the same rows.",
)
@quiet_option
@force_option
@threads_option
@json_option
@help_all_option
def command(
    method,
    dataset,
    test,
    cv,
    holdout,
    calibrate,
    groups,
    time,
    sample_weight,
    split,
    model,
    results,
    trace,
    curve,
    zero_based,
    target,
    ignore,
    categorical,
    dates,
    header,
    missing,
    encoding,
    strict,
    stream,
    n_inputs,
    checkpoint,
    every,
    resume,
    scheduler,
    parts,
    no_baseline,
    quiet,
    force,
    as_json,
    **options,
):
    """Train a method on a data set or a file; print the score, and write the model and the row.

    The score is that of the test rows: those of --test, else of the data set. Without test rows, it
    is that of training rows held out by --cv or --holdout, else of a fifth of them, or of folds.
    No choice of an option sees these rows. The model is fitted to all training rows.

    \b
    rfx train --data people.csv --target income --split 0.8 --model m.npz
    rfx train --method sparse-rf --data cod-rna --split yen2014 --gamma 2 \\
        --n-features 10000 --lam 10 --model m.npz
    """
    given = given_options(method, options)

    if dataset is None:
        named_method = "" if method == "auto" else f" --method {method}"
        raise UsageError(
            f"--data is missing: a file, or a name from rfx datasets; try rfx train{named_method}"
            f" --data {EXAMPLE}, which needs no download"
        )
    if curve and trace is None:
        raise UsageError("--curve needs --trace; use --trace FILE")
    from rfx.fitting import weights
    from rfx.runs import held_out, single, streamed

    # check options and files before reading the data
    made = methods.create(method, **given)
    run = Run.of(
        {
            "dataset": dataset,
            "split": split,
            "test": test,
            "method": method,
            "seed": given.pop("seed", 0),
            "options": given,
            "zero_based": zero_based,
            "trace": trace is not None,
            "curve": "test" if curve else None,
            "reading": (
                reading(target, ignore, categorical, dates, header, missing, encoding) or None
            ),
            "strict": strict,
            "sample_weight": sample_weight,
            "scheduler": scheduler,
            "parts": parts,
            "stream": stream,
            "n_inputs": n_inputs,
            "checkpoint": checkpoint,
            "every": every,
            "resume": resume,
            "cv": cv,
            "holdout": holdout,
            "calibrate": calibrate,
            "groups": groups,
            "time": time,
        }
    )
    held_out.check(run)
    if parts and scheduler is None:
        raise UsageError(f"--parts is {parts}, which has no effect without --scheduler")
    streamed.prepared(made, dataclasses.replace(run, curve=None, trace=False))
    elsewhere = None
    if scheduler is not None:
        from rfx.distributed import training

        elsewhere = training.train
        training.check(made, run)
    if sample_weight is not None:
        weights.check_method(made.method)
    check_outputs(run, model, results, trace, force)
    place = None if model is None else Path(model)
    with Progress(f"training {method}", quiet) as progress:
        if given.get("lam_path"):
            rows = single.execute_path(run, place, elsewhere, progress.tell)
        else:
            beside = not no_baseline
            rows = [
                single.execute(run, place, elsewhere, progress.tell, beside=beside, unseen=True)
            ]
    _keep(rows, results, trace)
    if given.get("lam_path"):
        print_path(rows, as_json)
    else:
        again = _repeating(run, rows[0])
        print_row(rows[0], as_json, **({"command": again} if again else {}))
        if again and not as_json:
            click.echo(
                "the same model, without choosing again (trust the score above, not that of this"
                f" command), by\n\n{again}\n"
            )
    _warn_of_poor(rows)
    finish(rows)


def _repeating(run, row):
    """The command that trains the same model without selection; None if nothing was selected.

    It has the rows held out only if they calibrate the model.
    """
    from rfx.runs import held_out

    chosen = row.params.get("explicit")
    if not chosen:
        return None
    run = dataclasses.replace(run, method=row.method, options=held_out.explicit(run, chosen))
    return command_of(run if run.calibrate else dataclasses.replace(run, cv=None, holdout=None))


def check_outputs(run, model, results, trace, force):
    """Raise an error if an output is an input, another output, or a file of another kind."""
    from rfx import model as model_file
    from rfx.runs import single

    sources = named("--data", run.dataset) + named("--test", run.test)
    sources += [] if run.sample_weight is None else [("--sample-weight", run.sample_weight)]
    if model is not None:
        for path in single.model_files(Path(model), run.options.get("lam_path")):
            files.guard(("--model", path), sources, model_file.KIND, force)
        model_file.check(model)
    if run.checkpoint is not None:
        files.guard(("--checkpoint", run.checkpoint), sources, model_file.KIND, force)
        model_file.check(run.checkpoint)
    if results is not None:
        files.guard(
            ("--results", results), sources + ([] if model is None else [("--model", model)])
        )
        results_file.check(results)
    if trace is not None:
        files.guard(
            ("--trace", trace), [*sources, ("--model", model or ""), ("--results", results or "")]
        )
        traces.check(trace)


def _keep(rows, results, trace):
    """Append the rows and their solvers' steps to the requested files."""
    for row in rows:
        if trace is not None:
            traces.append(trace, row.key, row.steps)
        if results is not None:
            results_file.append(results, row)


def _warn_of_poor(rows):
    """Warn if a model is no better than a constant."""
    from rfx.runs import baseline

    poor = [words for words in map(baseline.no_better, rows) if words]
    if poor:
        click.echo(
            f"rfx: {f'at {len(poor)} of {len(rows)} lambdas ' if len(rows) > 1 else ''}{poor[0]}",
            err=True,
        )
