"""Commands about one model: train and tune; predict, eval, explain, info and export; methods and
warm.
"""

import csv
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from rfx import exporting, files, lazy, methods
from rfx.cli.flags import (
    TEXT,
    DeclaringCommand,
    check_data,
    flag,
    flags,
    given_options,
    hushed,
    named,
    reading_of,
    run_of,
)
from rfx.cli.output import (
    Progress,
    baseline_pairs,
    command_of,
    describe_model,
    finish,
    json_text,
    label_text,
    print_json,
    print_measures,
    print_pairs,
    print_path,
    print_row,
    score_text,
    seconds_of,
    table,
)
from rfx.data import registry, textfiles
from rfx.data.reading import Reading
from rfx.errors import DataError, NoRows, RfxError, UsageError, warn
from rfx.fitting.run_facts import Score
from rfx.measures import SCORES
from rfx.options import Names, Option, options_of, union
from rfx.records import results as results_file
from rfx.records.limits import Limit
from rfx.records.run import BASELINE, Run

# ---------------------------------------------------------------------- train

_DATA = ("data", "target", "ignore", "categorical", "dates", "missing", "test", "split")
_HELD_OUT = ("cv", "holdout", "groups", "time", "calibrate")
_SCORE = ("score", *_HELD_OUT)
_METHOD = [
    "method",
    ("--task NAME", "regression, binary or multiclass; else inferred."),
]
_UNKEPT = "rfx: nothing is kept; --model FILE keeps the model"
_SEED = ("--seed INTEGER", "Seed of all random numbers. [default: 0]")
# The methods of a stream and of distributed rows, if none is named.
STREAMED, DISTRIBUTED = "doubly-sgd", "local"
TRAIN = {
    "Data": [*_DATA],
    "Method": [
        *_METHOD,
        ("--kernel NAME", "gaussian, laplacian, … [default: auto]"),
        ("--n-features INTEGER", "Number of random features. [default: 1000]"),
        ("--gamma NUMBER|NAME", "Bandwidth, or median, loo, … [default: loo]"),
        ("--lam NUMBER|NAME", "Regularisation, or validation. [default: auto]"),
        _SEED,
        ("--loss NAME", "squared, logistic, …; else by the task."),
        ("--class-weight NAME", "balanced, or LABEL:WEIGHT,…; else all alike."),
    ],
    "Selection": [
        ("--scaling NAME", "standard, minmax01, … [default: auto]"),
        ("--measure NAME", "accuracy, auc, log_loss, …: the aim of choices."),
        ("--budget-seconds NUMBER", "Seconds after which no more options are tried."),
        *_HELD_OUT,
    ],
    "Output": ["model", "results", "quiet", "verbose", "json", "force"],
    "Distributed": ["threads", "device", "scheduler"],
}
TUNE = {
    "Data": [*_DATA],
    "Method": [
        *_METHOD,
        ("--kernel NAME", "gaussian, laplacian, … [default: auto]"),
        ("--n-features INTEGER", "Number of random features; by default searched."),
        ("--gamma NUMBER|NAME", "Bandwidth, or median; by default searched."),
        ("--lam NUMBER", "Regularisation; by default searched."),
        _SEED,
    ],
    "Selection": ["budget_seconds", "trials", "kernels", "measure", *_HELD_OUT],
    "Output": ["model", "results", "quiet", "json", "force", "threads"],
}


_TRAIN_FLAGS = (
    *_DATA,
    "sample_weight",
    "method",
    *_SCORE,
    "model",
    "results",
    "trace",
    "fail_below",
    Option(
        "curve", bool, "With --trace: also evaluate on the test rows at every step.", default=False
    ),
    "header",
    "encoding",
    "zero_based",
    "strict",
    "stream",
    "n_inputs",
    "checkpoint",
    "every",
    "resume",
    "scheduler",
    "parts",
    Option(
        "no_baseline",
        bool,
        "Do not evaluate a constant, a linear model and gradient boosting on the same rows.",
        default=False,
    ),
    "quiet",
    "verbose",
    "log",
    "force",
    "threads",
    "device",
    "json",
)
# A new option of a run is a flag, too.
_FURTHER = [name for name in options_of(Run) if name not in _TRAIN_FLAGS]


@click.command(
    "train",
    cls=DeclaringCommand,
    by="--method",
    declared=methods.options_of,
    groups=TRAIN,
    unnamed="auto",
    implied={"--stream": STREAMED, "--scheduler": DISTRIBUTED},
)
@flags(
    *_TRAIN_FLAGS,
    *_FURTHER,
    trace="Append the solver's progress to this CSV file.",
    verbose="Also print details. They are the objective, the seconds of each step, and a command"
    " with the chosen options.",
)
def train(
    method, data, model, results, trace, curve, no_baseline, quiet, verbose, force, json, **values
) -> None:
    """Train a method on data, print the score, and write the model and the row.

    The score is that of the test rows: those of --test, else of the data set. Without test rows, it
    is that of training rows held out by --cv or --holdout, else left out one by one, or held out as
    the method needs. The model is fitted to all training rows.

    \b
    rfx train --data people.csv --target income --split 0.8 --model m.npz
    rfx train --method sparse-rf --data cod-rna --gamma 2 --lam 10 --model m.npz
    """
    given = given_options(method, values)
    check_data(data, "rfx train" if method == "auto" else f"rfx train --method {method}")
    from rfx.runs import single

    # check options and files before reading the data
    trainer = methods.create(method, **given)
    seed = given.pop("seed", 0)
    run = run_of(
        values,
        dataset=data,
        method=method,
        seed=seed,
        options=given,
        trace=trace is not None,
        curve="test" if curve else None,
    )
    if no_baseline and run.fail_below == BASELINE:
        raise UsageError("--fail-below baseline and --no-baseline can't be combined; omit one")
    if model is not None and not trainer.method.saves:
        raise UsageError(
            f"models of {method} can't be saved, because the method has no restore; omit --model"
        )
    check_outputs(run, model, results, trace, force)
    place = None if model is None else Path(model)
    train_function = _train_function(run)
    # the first step follows all checks of the input
    is_kept = any((quiet, json, model, results, run.checkpoint))
    with Progress(f"training {method}", quiet, first="" if is_kept else _UNKEPT) as progress:
        if given.get("lam_path"):
            rows = single.execute_path(run, place, train_function, progress.tell)
        else:
            row = single.execute(
                run,
                place,
                train_function,
                progress.tell,
                baselines=not no_baseline,
                hold_out_for_score=True,
            )
            rows = [row]
    _store_rows(rows, results, trace)
    if json or not quiet:
        _print_trained(run, rows, json, verbose)
    finish(rows)


def _train_function(run) -> Callable | None:
    """What trains on workers, or None for this process."""
    if run.scheduler is None:
        return None
    from rfx.distributed import training

    return training.train


def _store_rows(rows, results, trace) -> None:
    """Append the rows, and the steps of their solvers, to the files that were asked for."""
    for row in rows:
        if trace is not None:
            results_file.append_steps(trace, str(row.key), row.steps or [])
        if results is not None:
            results_file.append(results, row)


def _print_trained(run, rows, json: bool, verbose: bool) -> None:
    """Print the rows of a training, and what deserves attention on standard error."""
    from rfx.fitting import selection

    if run.options.get("lam_path"):
        print_path(rows, json)
    else:
        _print_one(run, rows[0], json, verbose)
    warnings = []
    for row in rows:
        for step in row.params.choices:
            warnings += selection.edges(step)
    _print_edges(dict.fromkeys(warnings))
    poor = [row.no_better for row in rows if row.no_better]
    if poor and len(rows) > 1:
        click.echo(f"rfx: at {len(poor)} of {len(rows)} lambdas {poor[0]}", err=True)
    elif poor:
        click.echo(f"rfx: {poor[0]}", err=True)


def _print_one(run, row, json: bool, verbose: bool) -> None:
    """Print a row, and the command that trains its model again if options were chosen."""
    from rfx.runs import scoring

    chosen = row.params.explicit
    if not chosen:
        print_row(row, json, verbose)
        return
    same = replace(run, method=row.method, options=scoring.explicit(run, chosen))
    if not run.calibrate:  # rows are held out again only if they calibrate the model
        same = replace(same, cv=None, holdout=None)
    command = command_of(same)
    print_row(row, json, verbose, command=command)
    if verbose and not json:
        click.echo(
            "the same model with the options chosen here; they were chosen on these rows, so"
            f" that its score is a little too good:\n\n{command}\n"
        )


def _print_edges(edges) -> None:
    for words in edges:
        click.echo(f"rfx: at the edge: {words}; values beyond it may be better", err=True)


def check_outputs(run, model, results, trace, force) -> None:
    """Raise an error if an output is an input, another output, or a file of another kind."""
    from rfx import model as model_file
    from rfx.runs import single

    taken = named("--data", run.dataset) + named("--test", run.test)
    if run.sample_weight is not None:
        taken.append(("--sample-weight", run.sample_weight))

    def check(name, path, kind, check_file) -> None:
        if path is not None:
            files.guard((name, path), taken, kind, force)
            check_file(path)
            taken.append((name, path))

    if model is not None:
        for path in single.model_files(Path(model), run.options.get("lam_path")):
            check("--model", path, model_file.KIND, files.check)
    check("--checkpoint", run.checkpoint, model_file.KIND, files.check)
    check("--results", results, None, results_file.RESULTS.check)
    check("--trace", trace, None, results_file.TRACES.check)


# ---------------------------------------------------------------------- tune


# Options of methods that a search has no use for, or of its own.
_UNSEARCHED = ("lam_path", "budget_seconds", "measure")


def _options_of(name: str | None) -> list[Option]:
    """The options that can be searched or fixed, of a method, or of all.

    The search has its own --budget-seconds, for all of it.
    """
    from rfx.runs.tune import AUTO, SIZES

    if name not in ("auto", None):
        return [one for one in methods.options_of(name) if one.name not in _UNSEARCHED]
    declared: dict[str, list] = {}
    for method in AUTO if name == "auto" else SIZES:
        for option in methods.options_of(method):
            if option.name not in _UNSEARCHED:
                declared.setdefault(option.name, []).append((method, option))
    return list(map(union, declared.values()))


@click.command("tune", cls=DeclaringCommand, by="--method", declared=_options_of, groups=TUNE)
@flags(
    *_DATA,
    click.option(
        "--method",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Method to search. It is rf, nystrom, rb, block, kernel, rfm, sparse-rf, sparse-rb, a"
        " plug-in, or auto for the best of rf, nystrom, rb, kernel and rfm.",
    ),
    *_HELD_OUT,
    Option(
        "measure",
        str,
        "Selection metric. By default accuracy; rmse for regression.",
        tuple(SCORES),
    ),
    Option("kernels", str, "Search these kernels too.", metavar="NAME,…"),
    Option(
        "budget_seconds",
        float,
        "Approximate time limit of the command. The trials are limited by their work, so that they"
        " don't depend on the load of the machine; the command says what the budget left out.",
        low=0,
        open_low=True,
        default=300.0,
        metavar="NUMBER",
    ),
    Option(
        "trials",
        int,
        "Maximum number of option combinations. The lambdas of one path count as one.",
        low=1,
        metavar="COUNT",
    ),
    "model",
    "results",
    "header",
    "encoding",
    "zero_based",
    "strict",
    "quiet",
    "force",
    "threads",
    "json",
    results="Store the trials in this file and resume from it.",
)
def tune(
    method,
    data,
    model,
    results,
    measure,
    kernels,
    budget_seconds,
    trials,
    quiet,
    force,
    json,
    **values,
) -> None:
    """Search bandwidth, lambda and model size on training rows, and fit the best model to all of
    them.

    Options passed on the command line stay fixed. Every trial prints one line: its round, number of
    rows, method, kernel, gamma, size, the best lambda of its path, and the score on the held-out
    rows.

    \b
    rfx tune --method rf --data ijcnn1 --split yen2014 --budget-seconds 120 \\
        --results tune.csv --model m.npz
    """
    from rfx.runs import scoring, single
    from rfx.runs.tune import Tuning

    check_data(data, "rfx tune")
    names = _searched_methods(method)
    given = _fixed(names, values)
    run = run_of(values, dataset=data, method=names[0], options=given)
    scoring.check_score(run)
    check_outputs(run, model, results, None, force)
    run = replace(run, seed=given.pop("seed", 0))
    table = single.load(run)
    if not (quiet or json or model or results):
        click.echo(_UNKEPT, err=True)
    given["task"] = given.get("task") or _searched_task(table)
    show_trial = None
    if not json and not quiet:
        show_trial = _print_trial
        click.echo(_LINE.format(*_HEADINGS))
    with Progress("tuning", quiet) as progress:
        tuning = Tuning(
            table,
            names,
            given,
            run,
            show_trial,
            kernels=_searched_kernels(names, kernels),
            score=measure,
            seconds=budget_seconds,
            most_trials=trials,
            results_file=None if results is None else Path(results),
        )
        search = tuning.run()
        best, metric = search.best, search.criterion.name
        count = sum(len(out) for _, out in tuning.parts)
        on = f"the held-out rows of the search{tuning.by}"
        chosen = Score(metric, best.score, on, count)
        run = tuning.chosen_run(best)
        place = None if model is None else Path(model)
        row = single.execute(run, place, progress=progress.tell, chosen=chosen, table=table)
    row = row.with_params(
        tuned={
            "score": best.score,
            "metric": metric,
            "trials": len(search.trials),
            "cv": tuning.source.cv,
            "holdout": tuning.share,
        }
    )
    if results is not None:
        results_file.append(results, row)
    if json or not quiet:
        _print_tuned(tuning, search, row, command_of(run), json)
    finish([row])


def _print_tuned(tuning, search, row, command: str, json: bool) -> None:
    """Print the outcome of a search, and its limits on standard error."""
    if not json:
        best = f"best {search.criterion.name} on held-out rows: {search.best.score:.5g}"
        click.echo(f"\n{best}; the same model by\n\n{command}\n")
    for words in search.limits:
        click.echo(f"rfx: the search: {words}", err=True)
    _print_edges(tuning.edges(search))
    print_row(row, json, command=command)


def _searched_methods(method: str) -> tuple[str, ...]:
    """The methods that --method names."""
    from rfx.runs.tune import AUTO, searchable

    method, choices = methods.short(method), ["auto", *searchable()]
    if method not in choices:
        raise methods.unknown(method, choices, "can't be searched")
    return AUTO if method == "auto" else (method,)


def _searched_kernels(names, kernels: str | None) -> list:
    """The kernels that --kernels lists, checked; none without it."""
    if not kernels:
        return []
    declared = [(name, methods.get(name).declared()["kernel"]) for name in names]
    kernel = union(declared).replace(name="kernels")
    return [kernel.convert(name.strip()) for name in kernels.split(",")]


def _searched_task(table) -> str:
    """The task of the rows; UsageError for several targets per row."""
    from rfx.data.tabular.labelwords import guess_task

    if table.y_train.ndim > 1:
        raise UsageError(
            f"rfx tune is for one target per row, but the rows have {table.y_train.shape[1]}; use"
            " rfx train --method local or doubly-sgd"
        )
    return table.task or guess_task(table.y_train)


def _fixed(names, values) -> dict:
    """The given options, converted and checked by each method that has them."""
    given: dict = {}
    for name in names:
        given |= given_options(name, values)
    if isinstance(given.get("lam"), str) or given.get("gamma") in ("loo", "validation", "tuned"):
        raise UsageError(
            "--lam and --gamma are searched by default; pass numbers, or --gamma median or paper"
        )
    for name in names:
        declared = methods.get(name).declared()
        own = {key: value for key, value in given.items() if key in declared}
        methods.create(name, **own)
    return given


_HEADINGS = ("round", "rows", "method", "kernel", "gamma", "size", "lambda", "score", "s")
_LINE = "{:>5} {:>8} {:<9} {:<14} {:>9} {:>6} {:>8} {:>9} {:>6}"


def _print_trial(trial, was_there: bool) -> None:
    """Print the line of a trial."""
    line = _LINE.format(*_cells_of_trial(trial))
    click.echo(f"{line} (was there)" if was_there else line)


def _cells_of_trial(trial) -> list[str]:
    from rfx.runs.tune import searchable

    method, options = trial.point.method, trial.point.options
    gamma, lam = "-", "auto"
    if "gamma" in options:
        gamma = f"{options['gamma']:.4g}"
    if trial.lam is not None:
        lam = f"{trial.lam:g}"
    size_option, *_ = searchable()[method]
    size = str(options.get(size_option, "-"))
    number, score, seconds = trial.round.number + 1, f"{trial.score:.5g}", f"{trial.seconds:.1f}"
    about = [str(number), str(trial.round.rows), method, options["kernel"]]
    return [*about, gamma, size, lam, score, seconds]


MODEL = click.argument("model", type=click.Path(dir_okay=False))

# ---------------------------------------------------------------------- predictions


@click.command("predict")
@MODEL
@click.argument("source", metavar="NAME|FILE", default="-")
@flags(
    Option(
        "decision",
        bool,
        "Print decision values (one per class if there are several) instead of labels.",
        default=False,
    ),
    Option(
        "proba",
        bool,
        "Print probabilities instead of labels, one per class in the order of `rfx info`.",
        default=False,
    ),
    Option(
        "interval",
        float,
        "Regression: also print the limits that contain this fraction of new targets, from the"
        " errors of rows left out of the training.",
        low=0,
        high=1,
        open_low=True,
        metavar="LEVEL",
    ),
    Option(
        "sets",
        float,
        "Classification: print for each label whether it is in the set that contains this fraction"
        " of new labels, 1 or 0.",
        low=0,
        high=1,
        open_low=True,
        metavar="LEVEL",
    ),
    "output",
    Option(
        "format",
        str,
        "text: one line per row, without a header, the default. csv: a table with a header. json:"
        " one object with labels, predictions, and decision values or probabilities.",
        ("text", "csv", "json"),
    ),
    Option(
        "id",
        str,
        "With --format csv: copy this column of the data. It need not be an input.",
        metavar="COLUMN",
    ),
    Option("digits", int, "Number of significant digits; by default those of float64.", low=1),
    "split",
    *TEXT,
    "log",
    "force",
    "threads",
    "device",
    "json",
    json="Short for --format json.",
)
def predict(
    model,
    source,
    decision,
    proba,
    interval,
    sets,
    output,
    format,
    id,
    digits,
    split,
    strict,
    force,
    json,
    **values,
) -> None:
    """Print the model's prediction for each row of a file (default: standard input). Labels are not
    needed and are ignored.

    -o overwrites an existing file only if it is a CSV file of predictions; --force overwrites any
    file.

    \b
    rfx predict model.npz new.csv --format csv --proba --id patient --digits 4 -o predicted.csv
    """
    from rfx import device
    from rfx.cli import rows
    from rfx.data import libsvm

    _check_exclusive(
        {"--decision": decision, "--proba": proba, "--interval": interval, "--sets": sets}
    )
    if json and format not in (None, "json"):
        raise _not_together("--json", f"--format {format}")
    _check_exclusive({"--id": id, "--split": split})
    form = "json" if json else format or "text"
    if id is not None and form != "csv":
        raise UsageError(f"--id is {id!r:.80}, which needs --format csv")
    own = files.Kind("a CSV file of predictions", _has_predictions)
    inputs = [("the model", model), *named("the data", source)]
    files.guard(("-o", output), inputs, own, force)
    method = methods.load(model)
    if proba:
        method.check_probabilities()
    reading = reading_of(values)
    X, identifiers = _rows_to_predict(method, source, reading, split, strict, id)
    with device.use(values["device"]):
        numbers = method.decision_function(X)
    labels = method.labels(numbers)
    if method.task == "regression":
        labels = rows.rounded(labels, digits)
    kind, shown = _shown_values(method, numbers, decision, proba, interval, sets)
    if shown is not None:
        shown = rows.rounded(shown, digits)
    if form == "csv":
        prefix = {"decision": "decision", "sets": "set"}.get(kind, "")
        names = ["lower", "upper"] if kind == "intervals" else None
        text = rows.predictions(method, labels, shown, prefix, identifiers, names)
    elif form == "json":
        text = _predictions_json(method, labels, kind, shown)
    else:
        text = _predictions_text(method, labels, kind, shown)
    with libsvm.open_output(output) as handle:
        handle.write(text.encode())


def _check_exclusive(flags: dict[str, object]) -> None:
    """Raise UsageError if more than one of these flags has a value."""
    given = [name for name, value in flags.items() if value not in (None, False)]
    if len(given) > 1:
        raise _not_together(given[0], given[1])


def _not_together(one: str, other: str) -> UsageError:
    return UsageError(f"{one} and {other} can't be combined; use only one of them")


def _rows_to_predict(method, source, reading, split, strict, id) -> tuple:
    """(X, [name, cells] of the column `id`); the latter is None without an id."""
    from rfx.cli import rows
    from rfx.data import tables

    try:
        if id is None:
            X, _ = rows.rows_for(method, source, reading, split, strict, "ignored")
            return X, None
        X, *identifiers = tables.identified_rows(source, method.schema, id, reading, strict)
        return X, identifiers
    except NoRows as none:
        click.echo(f"rfx: {none}; there is nothing to predict", err=True)
        X = lazy.numpy.zeros((0, method.outcome.n_inputs))
        return X, None if id is None else [id, []]


def _shown_values(method, numbers, decision, proba, interval, sets) -> tuple[str, Any]:
    """(name, values) of what the flags ask for in addition to labels; ("", None) for nothing."""
    if decision:
        return "decision", numbers
    if proba:
        return "probabilities", method.probabilities(numbers)
    if sets:
        return "sets", method.sets(numbers, sets).astype(float)
    if interval:
        return "intervals", lazy.numpy.stack(method.interval(numbers, interval), 1)
    return "", None


def _predictions_json(method, labels, kind: str, shown) -> str:
    from rfx.data.tabular import schema

    answer = {}
    if method.classes is not None:
        answer["labels"] = schema.shown(method, method.classes)
    answer["predictions"] = schema.shown(method, labels)
    if shown is not None:
        answer[kind] = shown.tolist()
    return json_text(answer) + "\n"


def _predictions_text(method, labels, kind: str, shown) -> str:
    """A line per row: its label, or the values that are shown instead; its limits stand beside a
    predicted number.
    """
    from rfx.data import libsvm
    from rfx.data.tabular import schema

    if kind == "intervals":
        return libsvm.numbers(lazy.numpy.column_stack([labels, shown]))
    if shown is not None:
        return libsvm.numbers(shown)
    words = schema.shown(method, labels)
    if len(words) and isinstance(words[0], str):
        return "\n".join([*words, ""])
    return libsvm.numbers(labels)


_MOST_OF_A_HEADER = 10_000  # characters


def _has_predictions(path) -> bool:
    """Whether a file is a table of predictions: its first or second column has that name."""
    with path.open(encoding="utf-8", errors="replace") as handle:
        line = handle.readline(_MOST_OF_A_HEADER).splitlines()[:1]
    names = next(csv.reader(line), [])[:2]
    return "prediction" in names or "prediction_1" in names


@click.command("eval")
@MODEL
@flags(
    "data",
    "split",
    "results",
    "fail_below",
    *TEXT,
    Option(
        "baseline",
        str,
        "Also fit a linear model and gradient boosting to these rows, and evaluate them on the same"
        " rows as the model.",
        metavar="NAME|FILE",
    ),
    "quiet",
    "verbose",
    "log",
    "threads",
    "device",
    "json",
    verbose="Also print what `rfx info` knows of the training.",
    fail_below="Exit with code 5 if the score is worse than this: a number (the --measure of the"
    " training, else accuracy or R2), or MEASURE=NUMBER such as auc=0.8 or rmse=3.",
)
def evaluate(
    model, data, split, results, fail_below, strict, baseline, quiet, verbose, json, **values
) -> None:
    """Evaluate a model file on a data set's test rows, or on all rows of a file.

    Classification: accuracy, balanced accuracy, F1 (of the larger of two labels; of several labels,
    the mean), AUC (of several labels, the one-against-rest mean), log-loss if the model has
    probabilities (see `rfx info`), and the confusion matrix. Rows with an unseen label count as
    wrong and a warning names the label. F1 is then the mean over all labels, and AUC and log-loss
    are omitted. Regression: RMSE, MAE and R2 in the target's original units; `rmse` in the row is
    in units of the scaled target.

    \b
    rfx eval model.npz --data new.csv --baseline train.csv
    """
    from rfx import device
    from rfx.cli.rows import rows_for
    from rfx.runs import evaluation, single

    check_data(data)
    if results is not None:
        results_file.RESULTS.check(results)
    limit = None if fail_below is None else Limit.of(fail_below)
    if fail_below == BASELINE:
        raise UsageError("--fail-below baseline is for rfx train and run; use a number")
    method = methods.load(model)
    reading = reading_of(values)
    X, y = rows_for(method, data, reading, split, strict)
    with device.use(values["device"]):
        found = evaluation.evaluate(method, X, y)
        every = evaluation.measures(method, found.decision, found.y)
    row = single.result(method, os.path.getsize(model), replace(found, measures=every))
    # a model trained in Python does not know the name of its data
    trained_on = row.dataset or "trained in Python"
    row = _row_of_data(row, data, split)
    if limit is not None and (missed := limit.missed(row)):
        row = row.with_params(below=missed)
    if baseline is not None:
        row = row.with_params(baseline=_simple_scores(method, baseline, data))
    if results is not None:
        results_file.append(results, row)
    if json:
        print_json(row.as_dict())
    elif not quiet:
        if verbose:
            print_pairs(describe_model(replace(row, dataset=trained_on), every=True))
        where = "standard input" if data == "-" else data
        click.echo(f"rows               {row.n_test:,} of {where}")
        print_measures(every)
        print_pairs(baseline_pairs(row), width=18)
    finish([row])


def _row_of_data(row, data, split):
    """The row of an evaluation, with the names of its data and of the rows that were evaluated."""
    from rfx.records import keys

    row = replace(row, dataset=row.dataset or os.path.basename(data))
    # a named set with the split of the training has the test rows of that run
    if registry.has(data) and (data, split or "default") == (row.dataset, row.split):
        return row
    test = "standard input" if data == "-" else os.path.basename(data)
    if split:
        test += f", split {split}"
    return replace(row, key=keys.evaluated(row.key, data, split)).with_params(test=test)


def _simple_scores(method, taught: str, data: str) -> dict:
    """The scores on the rows `data` of simple models of the rows `taught`, read like the training
    rows of the model.
    """
    from rfx.runs import baselines, single

    schema, reading = method.schema, Reading()
    if schema is not None and schema.inputs is not None:
        words = [one.name for one in schema.inputs if one.categories is not None]
        dates = [one.name for one in schema.inputs if one.kind == "date"]
        reading = Reading(
            target=schema.target and schema.target[0],
            ignore=schema.ignored,
            categorical=tuple(words),
            dates=tuple(dates),
        )
    run = Run(
        dataset=taught,
        method=method.name,
        test=data,
        reading=reading,
        seed=method.method.seed,
        options={"task": method.task},
    )
    with hushed():  # of both files all was said
        table = single.load(run)
    decision = method.decision_function(table.X_test)
    simple = baselines.baseline_scores(run, table, method, decision)
    if simple is None:
        raise DataError(f"no simple model can be fitted to the rows of {taught}; omit --baseline")
    return simple.as_dict()


# ---------------------------------------------------------------------- explain

# Numbers of columns, outputs and grid points that are printed; --json prints all.
MOST_SHOWN, MOST_OUTPUTS, MOST_POINTS = 40, 8, 10
_WIDEST = 40  # maximum characters of a name in a table
COVERS = (
    "The interval covers the random shuffles: for 95 % of the uninformative columns it contains 0."
    " It does not cover the choice of rows or of the training set."
)
SHARES = (
    "The share of the metric is that of the average squared gradient, as in `rfx info`. It measures"
    " how much predictions change with a column, not whether that improves them."
)


@click.command("explain")
@MODEL
@flags(
    "data",
    "target",
    Option("columns", Names, "Shuffle only these columns.", metavar="COLUMN,…"),
    Option("rows", int, "Use at most this many rows, sampled at random.", low=2, default=2000),
    Option("repeats", int, "Number of shuffles per column.", low=10, default=10),
    Option("top", int, "Number of top columns with partial dependence.", low=0, default=4),
    Option("seed", int, "Seed of the rows and the shuffles.", low=0, default=0),
    Option(
        "figure",
        str,
        "Also draw a figure; the extension, .svg, .png or .pdf, sets the format.",
        metavar="FILE",
    ),
    "split",
    "json",
    *TEXT,
    "force",
    "quiet",
    "threads",
    data="Rows that the model was not trained on: a data set's name (for its test rows), a file, or"
    " -.",
    target="Target column, if its name differs from that in the training file.",
    json="Print JSON, including every shuffle.",
)
def explain(model, data, target, split, figure, json, strict, force, quiet, **values) -> None:
    """Show which columns a model's predictions depend on, and how.

    Permutation importance: the increase of the error when the cells of one column are shuffled
    among the rows. A table column counts as one, even if it became several inputs. Partial
    dependence: the mean prediction when all rows have the same value in a column. Use held-out
    rows: on training rows, both also reflect overfitting.
    """
    from rfx.cli.rows import rows_for
    from rfx.reporting import figures
    from rfx.runs import explain as importance

    check_data(data)
    if figure is not None:
        figures.guard_one(figure, force)
    method = methods.load(model)
    read = method if target is None else method.replace(schema=_with_target(method, target))
    X, y = rows_for(read, data, reading_of(values), split, strict)
    doubt = _learnt_from(method, data, X.shape[0])
    if doubt:
        click.echo(f"rfx: {doubt}", err=True)
    with Progress("explaining", quiet) as progress:
        extent = {name: values[name] for name in ("rows", "repeats", "top", "seed")}
        columns = values["columns"] or ()
        found = importance.explain(method, X, y, columns=columns, report=progress.count, **extent)
    if figure is not None:
        figures.draw_one(figures.chart(found), figure)
    if not json:
        click.echo("\n".join(_explained(found, data)))
        return
    dependences = [asdict(one) | {"means": one.means.tolist()} for one in found.dependences]
    print_json(
        {
            "data": os.path.basename(data),
            "rows": found.n_rows,
            "rows_given": found.n_given,
            "maybe_training_rows": doubt is not None,
            "seed": found.seed,
            "repeats": found.repeats,
            "metric": found.metric,
            "error": found.error,
            "interval": COVERS,
            "columns": found.n_columns,
            "importances": [asdict(one) for one in found.importances],
            "response": f"mean {found.response}",
            "outputs": found.outputs,
            "partial_dependence": dependences,
        }
    )


def _with_target(method, target):
    """The schema of a model for a file whose target column has another name."""
    schema = method.schema
    if schema is None or schema.inputs is None or schema.target is None or not schema.named:
        raise UsageError(
            "--target is for tables, but the model was trained on rows without column names; omit"
            " it, and put the targets where the training file had them"
        )
    return replace(schema, target=(target, schema.target[1]))


def _learnt_from(method, data, n_rows) -> str | None:
    """A warning if the rows may be training rows of the model."""
    trained_on, n_train = method.info.get("dataset"), method.info.get("n_train")
    name = data if registry.has(data.partition(":")[0]) else textfiles.plain_name(data)
    if trained_on != name or n_train is None or n_rows < n_train or data == "-":
        return None
    which = "these may be" if n_rows == n_train else f"{n_train:,} of these may be"
    return (
        f"{which} training rows of the model, from a file of the same name; held-out rows give a"
        " better estimate"
    )


def _explained(found, data) -> Iterator[str]:
    """The readable output of explain."""
    rows = f"rows    {found.n_rows:,}"
    if found.n_rows < found.n_given:
        rows += f" of {found.n_given:,}, drawn by seed {found.seed}"
    yield f"{rows} of {os.path.basename(data)}"
    yield f"error   {found.metric} {found.error:.4g}\n"
    yield from _importance_lines(found)
    for one in found.dependences:
        yield from _dependence_lines(found, one)


def _importance_lines(found) -> Iterator[str]:
    """The table of the permutation importances."""
    shown = found.importances[:MOST_SHOWN]
    has_shares = any(one.share is not None for one in shown)
    cells = [["column", f"{found.metric} increases by", "95 % interval", "share of metric"]]
    for one in shown:
        interval = f"{one.low:.4g} to {one.high:.4g}"
        share = f"{one.share or 0:.1%}"
        cells.append([_short(one.name), f"{one.mean:.4g}", interval, share])
    yield from table(cells if has_shares else [line[:3] for line in cells])
    left = len(found.importances) - len(shown)
    if left:
        yield f"… and {left:,} more; see --json"
    if found.n_columns > len(found.importances):
        yield (
            f"{len(found.importances):,} of {found.n_columns:,} columns were shuffled; use"
            " --columns to select others"
        )
    yield f"\nThe mean of {found.repeats} shuffles. {COVERS}"
    if has_shares:
        yield SHARES


def _dependence_lines(found, dependence) -> Iterator[str]:
    """The mean prediction by a column, of the outputs that vary most, at some grid points."""
    kept, outputs = found.widest(MOST_OUTPUTS), found.outputs
    response = found.response
    if len(outputs) == 1 and outputs[0]:
        response += f" of {outputs[0]}"
    yield f"\nmean {response} by {_short(dependence.name)}"
    step = 1
    if dependence.kind != "categories":
        step = -(-len(dependence.grid) // MOST_POINTS)
    cells = []
    if len(outputs) > 1:
        cells.append(["", *(_short(outputs[place]) for place in kept)])
    for value, means in zip(dependence.grid[::step], dependence.means[::step]):
        line = [_short(value) if isinstance(value, str) else f"{value:.4g}"]
        line += [f"{means[place]:.4g}" for place in kept]
        cells.append(line)
    yield from table(cells)


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"


# ---------------------------------------------------------------------- info

MOST_SHARES = 10  # inputs of a metric that are printed
MOST_NAMED = 20  # columns and labels that are printed by name
_ABOUT_SHARES = (
    "shares of the average squared gradient over scaled inputs: how much predictions change with an"
    " input, not whether that improves them"
)


@click.command("info")
@MODEL
@flags("json", json="Print the whole file as JSON, with options and labels.")
def info(model, json) -> None:
    """Describe a model file: method, kernel, training, size, columns, labels, scores and
    probabilities.

    Labels are listed in the column order of `rfx predict --proba` and `--decision`.
    """
    from rfx.data.tabular import schema
    from rfx.runs import single

    method = methods.load(model)
    classes, table_schema = method.classes, method.schema
    has_columns = table_schema is not None and table_schema.inputs is not None
    metric, shares = method.preprocessing.scaler.metric, method.importances()
    importances = None
    if shares is not None:
        pairs = zip(method.input_names(), map(float, shares))
        importances = dict(sorted(pairs, key=itemgetter(1), reverse=True))
    facts = _ModelFacts(
        method=method.name,
        task=method.task,
        labels=None if classes is None else schema.shown(method, classes),
        columns=table_schema.titles() if has_columns else None,
        n_inputs=method.outcome.n_inputs,
        model_bytes=os.path.getsize(model),
        probabilities=method.probability_source,
        metric_shares=None if metric is None else metric.shares().tolist(),
        importances=importances,
        params=method.method.values,
        info=method.info,
    )
    if json:
        print_json(vars(facts))
        return
    row = single.result(method, facts.model_bytes)
    print_pairs(_described(method, facts, row))


@dataclass(frozen=True)
class _ModelFacts:
    """What `rfx info --json` prints."""

    method: str
    task: str
    labels: list | None
    columns: list[str] | None
    n_inputs: int
    model_bytes: int
    probabilities: str | None
    metric_shares: list[float] | None
    importances: dict[str, float] | None
    params: dict
    info: object


def _described(method, facts: _ModelFacts, row) -> Iterator[tuple[str, str]]:
    """(heading, text) pairs of the readable output of info."""
    yield "about", f"{method.name}: {method.method.summary}"
    yield from describe_model(row, every=True)
    options = f"scaling {facts.params.get('scaling')}, seed {row.seed}"
    if method.loss:
        options = f"loss {method.loss.name}, {options}"
    yield "options", options
    yield "columns", f"{facts.n_inputs}{_named(facts.columns)}"
    if shares := facts.importances:
        first = [f"{name} {share:.1%}" for name, share in shares.items()]
        if len(shares) > MOST_SHARES:
            first[MOST_SHARES:] = ["…"]
        metric = method.preprocessing.scaler.metric
        yield "metric", f"{metric.form}: {', '.join(first)}"
        yield "", f"({_ABOUT_SHARES})"
    scaler = method.target_scaler
    if facts.labels is not None:
        yield "labels", f"{len(facts.labels)}{_named(facts.labels)}"
        without = "none; train with --calibrate or --loss logistic"
        yield "probability", facts.probabilities or without
    elif scaler.kind != "none":
        shift, scale = _number_texts(scaler.shift), _number_texts(scaler.scale)
        how = f"scaled by {scaler.kind}: minus {shift}, divided by {scale}"
        is_log = scaler.to_dict().get("transform") is not None
        yield "target", f"its logarithm, {how}" if is_log else how
    for score in method.info.get("scores") or ():
        metric, rows = score["metric"], score["on"]
        value = score_text(metric, score["score"])
        yield metric, f"{value} on {rows}"
    yield seconds_of(row)


def _number_texts(values) -> str:
    return ", ".join(f"{value:g}" for value in lazy.numpy.ravel(values))


def _named(names) -> str:
    """The first names, joined."""
    if names is None:
        return ""
    texts = list(map(label_text, names[:MOST_NAMED]))
    if len(names) > MOST_NAMED:
        texts.append("…")
    return ": " + ", ".join(texts)


# ---------------------------------------------------------------------- export

_FORMS = {name: target.help for name, target in exporting.TARGETS.items()}


@click.command("export")
@MODEL
@flags(
    flag(Option("to", str, "The format.", _FORMS), required=True),
    Option(
        "prefix",
        str,
        "With --to c: begin the names of functions and macros with NAME.",
        default="rfx",
        metavar="NAME",
    ),
    "output",
    "force",
)
def export(model, to, prefix, output, force) -> None:
    """Export a model as a program that predicts without rfx. It includes scaling, metric,
    categories, labels and probabilities.

    docs/export.md describes each format, and the model file itself.
    """
    from rfx.data import libsvm
    from rfx.exporting.program import Program

    kind = files.Kind("a model exported by rfx", _is_exported)
    files.guard(("-o", output), [("the model", model)], kind, force)
    exporting.check_installed(to)
    is_terminal = output == "-" and sys.stdout is not None and sys.stdout.isatty()
    if exporting.TARGETS[to].is_binary and is_terminal:
        raise UsageError(f"--to {to} writes binary data, which a terminal can't show; use -o FILE")
    program = Program.of(methods.load(model))
    content = exporting.TARGETS[to].written(program, prefix)
    left_out = program.facts.get("not_included")
    if left_out is not None:
        warn(f"the exported file does not include {left_out}")
    with libsvm.open_output(output) as handle:
        handle.write(content)


def _is_exported(path) -> bool:
    """Whether a file begins like a program that `rfx export` writes."""
    head = path.read_bytes()[:200]
    return any(target.mark in head for target in exporting.TARGETS.values())


# ---------------------------------------------------------------------- methods


@click.command("methods")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@flags("json")
def list_methods(names, json) -> None:
    """List the methods and their options with defaults and allowed values."""
    listed = [methods.get(name) for name in names or methods.names()]
    if json:
        print_json(list(map(_method_facts, listed)))
        return
    for method in listed:
        line = f"{method.name}: {method.summary}"
        for name in methods.long_names([method.name]):
            line += f" (or {name})"
        click.echo(line)
        for option in method.declared().values():
            line = f"  {option.flag:<18} {option.expects()}"
            if option.default is not None:
                line += f", default {option.default}"
            click.echo(line)
        click.echo()


def _method_facts(method) -> dict[str, object]:
    """A method as `rfx methods --json` prints it."""
    long_names = methods.long_names([method.name])
    return {
        "name": method.name,
        "long_name": next(iter(long_names), None),
        "summary": method.summary,
        "options": method.defaults(),
    }


# Small values of the options that set the amount of work.
_SMALL = {
    "n_features": 32,
    "n_grids": 8,
    "block_size": 100,
    "rounds": 2,
    "batch": 32,
    "epochs": 1,
    "pool": None,
}


@click.command("warm")
def warm() -> None:
    """Compile all functions in advance, so that later commands start faster.

    Every method is trained on a few generated rows. The machine code is stored in rfx's cache
    ($RFX_CACHE).
    """
    from rfx.data import libsvm

    np = lazy.numpy
    random, begun = np.random.default_rng(0), time.perf_counter()
    X = random.uniform(size=(300, 5))
    noisy = X[:, 0] + 0.3 * random.normal(size=300)
    labels = np.where(noisy > X[:, 1], 1.0, -1.0)
    targets = X @ np.arange(5.0)
    libsvm.parse(b"+1 1:0.5 2:1e-3\n-1 1:12345678901234567890\n", False)
    for name in methods.names():
        declared = methods.get(name).declared()
        options = {key: value for key, value in _SMALL.items() if key in declared}
        for task, y in (("binary", labels), ("regression", targets)):
            with suppress(RfxError):  # a method without support for this needs no code for it
                trained = methods.create(name, task=task, **options).fit(X, y)
                trained.decision_function(X)
        seconds = time.perf_counter() - begun
        click.echo(f"{name}: {seconds:.1f} s so far", err=True)
