"""`rfx tune`: search the options of a method on training rows."""

import dataclasses
import math
from pathlib import Path

import click

from rfx import methods
from rfx.cli import pages
from rfx.cli.common import (
    Count,
    MethodCommand,
    OutputFile,
    Positive,
    Real,
    Whole,
    apart_options,
    command_of,
    complete_data,
    finish,
    force_option,
    json_option,
    print_row,
    reading,
    reading_options,
    split_option,
    strict_option,
    threads_option,
)
from rfx.cli.pages import Group, help_all_option
from rfx.cli.progress import Progress, quiet_option
from rfx.cli.train import check_outputs
from rfx.errors import UsageError, or_near
from rfx.options import union
from rfx.records import results as results_file
from rfx.records.run import Run

# Options of methods that a search does not use: its own --budget-seconds covers the whole search.
_NOT_SEARCHED = ("lam_path", "budget_seconds")


class TuneCommand(MethodCommand):
    """Has the options of the method named by its --method; for `auto`, or if none is named yet, all
    options that can be searched.
    """

    groups = (
        Group(
            "Data",
            {
                "--data NAME|FILE": "A data set, a file (CSV, LIBSVM, Parquet, …), or -.",
                **pages.DATA,
                "--test NAME|FILE": "Rows to evaluate the model on; not used for selection.",
                "--split NAME|SHARE": "A paper's split, or the fraction to train on: 0.8.",
            },
            pages.READING,
        ),
        Group(
            "Method",
            {
                "--method NAME": "rf, nystrom, rb, block, kernel, …; auto: the best.",
                "--task VALUE": "regression, binary or multiclass; else inferred.",
                "--kernel VALUE": "gaussian, laplacian, …",
                "--gamma VALUE": "Bandwidth; searched by default.",
                "--lam VALUE": "Regularisation; searched by default.",
                "--n-features VALUE": "Number of random features; searched by default.",
                "--seed VALUE": "Seed of all random numbers.  [default: 0]",
            },
        ),
        Group(
            "Selection",
            {
                "--budget-seconds NUMBER": "Approximate time limit.  [default: 300]",
                "--trials COUNT": "Maximum number of option combinations.",
                "--kernels NAME,NAME…": "Search these kernels too.",
                "--measure VALUE": "Selection metric: accuracy, auc, log_loss, rmse, …",
                "--cv PARTS": "Cross-validate in the last round.",
                "--holdout SHARE": "Validate on this fraction.  [default: 0.2]",
                "--groups COLUMN": "Hold out whole groups, such as patients.",
                "--time COLUMN": "Hold out later rows only.",
                "--calibrate VALUE": "Calibrate probabilities: platt or isotonic.",
            },
        ),
        Group(
            "Output",
            {
                "--model FILE": "Write the model to this file.",
                "--results FILE": "Store the trials in this file and resume from it.",
                **pages.FILES,
                "--threads COUNT": "Number of threads; one per core by default.",
            },
            ("--help-all", "--help"),
        ),
    )

    def declared(self, name):
        from rfx.runs.tune import AUTO, SIZES

        if name is not None and name != "auto":
            return [o for o in methods.options_of(name) if o.name not in _NOT_SEARCHED]
        having: dict[str, list] = {}
        for method in AUTO if name == "auto" else SIZES:
            for option in methods.options_of(method):
                having.setdefault(option.name, []).append((method, option))
        return [union(own) for name, own in having.items() if name not in _NOT_SEARCHED]


def _methods():
    from rfx.runs.tune import SIZES

    return ["auto", *SIZES]


@click.command("tune", cls=TuneCommand)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="NAME",
    shell_complete=lambda ctx, param, incomplete: [
        name
        for name in [*_methods(), *methods.long_names(_methods())]
        if name.startswith(incomplete)
    ],
    help=(
        "Method to search: rf, nystrom, rb, block, kernel, sparse-rf, sparse-rb, or auto for the"
        " best of rf, nystrom, rb and kernel."
    ),
)
@click.option(
    "--data",
    "dataset",
    required=True,
    metavar="NAME|FILE",
    shell_complete=complete_data,
    help="A data set's name or a file.",
)
@click.option(
    "--test",
    default=None,
    metavar="NAME|FILE",
    help="Evaluate the model on these rows. They are not used for selection.",
)
@split_option
@click.option(
    "--cv",
    type=Whole(),
    metavar="PARTS",
    help="Use cross-validation with this many folds in the last round.",
)
@click.option(
    "--holdout",
    type=Real(),
    metavar="SHARE",
    help="Validate on this fraction of the training rows.  [default: 0.2]",
)
@click.option(
    "--measure",
    type=click.Choice(["accuracy", "balanced_accuracy", "auc", "log_loss", "rmse"]),
    help="Selection metric.  [default: accuracy; rmse for regression]",
)
@click.option(
    "--calibrate",
    type=click.Choice(["platt", "isotonic"]),
    help="Calibrate the best model's probabilities on held-out rows, for `rfx predict --proba`.",
)
@click.option("--kernels", metavar="NAME,NAME…", help="Search these kernels too.")
@click.option(
    "--budget-seconds", "budget", type=Positive(), default=300.0, show_default=True,
    help=(
        "Approximate seconds for the whole command. The trials are limited by their work, so that"
        " they don't depend on the load of the machine; the command says what the budget left out."
    ),
)  # fmt: skip
@click.option(
    "--trials",
    type=Count(),
    default=None,
    help="Maximum number of option combinations. The lambdas of one path count as one.",
)
@click.option(
    "--results",
    type=OutputFile("results.csv"),
    default=None,
    help="Store every trial in this CSV file and resume from it.",
)
@click.option(
    "--model",
    type=OutputFile("model.npz"),
    default=None,
    help="Write the model, fitted to all training rows, to this file.",
)
@apart_options
@reading_options
@strict_option
@quiet_option
@force_option
@threads_option
@json_option
@help_all_option
def command(
    method,
    dataset,
    test,
    split,
    zero_based,
    cv,
    holdout,
    measure,
    calibrate,
    groups,
    time,
    kernels,
    budget,
    trials,
    results,
    model,
    target,
    ignore,
    categorical,
    dates,
    header,
    missing,
    encoding,
    strict,
    quiet,
    force,
    as_json,
    **options,
):
    """Search bandwidth, lambda and model size on training rows, and fit the best model to all of
    them.

    Options passed on the command line stay fixed. Every trial prints one line: its round, number of
    rows, method, kernel, gamma, size, the best lambda of its path, and the score on the held-out
    rows.

    \b
    rfx tune --method rf --data ijcnn1 --split yen2014 --budget-seconds 120 \\
        --results tune.csv --model m.npz
    """
    from rfx.data.tasks import guess_task
    from rfx.runs import held_out, single
    from rfx.runs.tune import AUTO, Tuning

    method = methods.short(method)
    if method not in _methods():
        raise methods.unknown(method, _methods(), "can't be searched")
    names = AUTO if method == "auto" else (method,)
    if math.isnan(budget):
        raise UsageError("--budget-seconds is nan; it must be a number of seconds above 0")
    given = _options(names, options)
    asked = _kernels(kernels, method, names, given)
    told = {
        "dataset": dataset,
        "split": split,
        "test": test,
        "zero_based": zero_based,
        "strict": strict,
        "groups": groups,
        "time": time,
    }
    told["reading"] = reading(target, ignore, categorical, dates, header, missing, encoding) or None
    source = Run.of(told | {"method": names[0], "options": given})
    held_out.check(dataclasses.replace(source, cv=cv, holdout=holdout, calibrate=calibrate))
    check_outputs(source, model, results, None, force)
    seed = given.pop("seed", 0)
    loaded = single.load(dataclasses.replace(source, seed=seed))
    given["task"] = given.get("task") or loaded.task or guess_task(loaded.y_train)
    if not as_json and not quiet:
        click.echo(
            f"{'round':>5} {'rows':>8} {'method':<9} {'kernel':<14} {'gamma':>9} {'size':>6}"
            f" {'lambda':>8} {'score':>9} {'s':>6}"
        )

    def tell(trial, there):
        if not as_json and not quiet:
            click.echo(_line(trial) + (" (was there)" if there else ""))

    with Progress("tuning", quiet) as progress:
        file = None if results is None else Path(results)
        tuning = Tuning(
            loaded,
            names,
            given,
            tell,
            kernels=asked,
            score=measure,
            cv=cv,
            holdout=holdout,
            seed=seed,
            seconds=budget,
            most_trials=trials,
            results_file=file,
            source=source,
            calibrated=calibrate is not None,
        )
        found = tuning.run()
        best, metric = found.best, found.measure.name
        own = tuning.options(best.point) | {"lam": best.lam}
        run = dataclasses.replace(source, method=best.point.method, options=own, seed=seed)
        if calibrate is not None:
            run = dataclasses.replace(run, calibrate=calibrate, cv=cv, holdout=holdout)
        by = "" if loaded.apart is None else f" by {loaded.apart.by}"
        where = None if model is None else Path(model)
        count = sum(len(out) for _, out in tuning.parts)
        chosen = single.Score(metric, best.score, f"the held-out rows of the search{by}", count)
        row = single.execute(run, where, progress=progress.tell, chosen=chosen, split=loaded)
    row = row.with_params(
        tuned={"score": best.score, "metric": metric, "trials": len(found.trials)} | tuning.how
    )
    if results is not None:
        results_file.append(results, row)
    line = command_of(run)
    if not as_json:
        click.echo(
            f"\nbest {metric} on held-out rows: {best.score:.5g}; the same model by\n\n{line}\n"
        )
    for words in found.limits:
        click.echo(f"rfx: the search: {words}", err=True)
    for words in tuning.edges(found):
        click.echo(f"rfx: at the edge: {words}; values beyond it may be better", err=True)
    print_row(row, as_json, command=line)
    finish([row])


def _options(names, options) -> dict:
    """The given options, converted and checked by each method that has them."""
    given: dict = {}
    for name in names:
        known = methods.get(name).declared()
        given |= methods.get(name).converted(
            {option: value for option, value in options.items() if option in known}
        )
    if isinstance(given.get("lam"), str) or given.get("gamma") in ("loo", "validation", "tuned"):
        raise UsageError(
            "--lam and --gamma are searched by default; pass numbers, or --gamma median or paper"
        )
    for name in names:
        methods.create(
            name,
            **{
                option: value
                for option, value in given.items()
                if option in methods.get(name).declared()
            },
        )
    return given


def _kernels(text, method, names, given) -> list[str]:
    """The kernels listed by --kernels."""
    asked = [name.strip() for name in text.split(",")] if text else []
    allowed = sorted(
        {kernel for one in names for kernel in methods.get(one).declared()["kernel"].meanings()}
    )
    for name in asked:
        if name not in allowed:
            raise UsageError(
                f"--kernels {name!r:.80} is not among those of"
                f" {method}{or_near(name, allowed, 'they are')}"
            )
    if asked and "kernel" in given:
        raise UsageError(
            f"--kernel is {given['kernel']} and --kernels is {text}; use only one of them"
        )
    return asked


def _line(trial) -> str:
    from rfx.runs.tune import SIZES

    point = trial.point
    gamma = f"{point['gamma']:.4g}" if "gamma" in point.options else "-"
    size = point.options.get(SIZES[point.method][0], "-")
    return (
        f"{trial.round.number + 1:>5} {trial.round.rows:>8} {point.method:<9} {point['kernel']:<14}"
        f" {gamma:>9} {size:>6} {trial.lam:>8g} {trial.score:>9.5g} {trial.seconds:>6.1f}"
    )
