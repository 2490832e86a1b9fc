"""`rfx train`: one model from a data set or file; `rfx tune`: the best options of a method."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rfx import files, methods
from rfx.cli.flags import (
    DeclaringCommand,
    check_data,
    flags,
    given_options,
    named,
    run_of,
)
from rfx.cli.output import (
    Progress,
    command_of,
    finish,
    print_path,
    print_row,
)
from rfx.errors import UsageError
from rfx.options import Option, union
from rfx.records import results as results_file

_DATA = ("data", "target", "ignore", "categorical", "dates", "missing", "test", "split")
_HELD_OUT = ("cv", "holdout", "groups", "time", "calibrate")
_METHOD = [
    "method",
    ("--task NAME", "regression, binary or multiclass; else inferred."),
]
_UNKEPT = "rfx: nothing is kept; --model FILE keeps the model"
_SEED = ("--seed INTEGER", "Seed of all random numbers. [default: 0]")
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
    "Output": ["model", "results", "trace", "quiet", "json", "force"],
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


@click.command(
    "train",
    cls=DeclaringCommand,
    by="--method",
    declared=methods.options_of,
    groups=TRAIN,
    unnamed="auto",
)
@flags(
    *_DATA,
    "sample_weight",
    "method",
    *_HELD_OUT,
    "model",
    "results",
    "trace",
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
    "force",
    "threads",
    "device",
    "json",
    trace="Append the solver's progress to this CSV file.",
)
def train(
    method, data, model, results, trace, curve, no_baseline, quiet, force, json, **values
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
    check_data(data, "rfx train" + ("" if method == "auto" else f" --method {method}"))
    if curve and trace is None:
        raise UsageError("--curve needs --trace; use --trace FILE")
    from rfx.fitting import weights
    from rfx.runs import scoring, single

    # check options and files before reading the data
    made = methods.create(method, **given)
    run = run_of(
        values,
        dataset=data,
        method=method,
        seed=given.pop("seed", 0),
        options=given,
        trace=trace is not None,
        curve="test" if curve else None,
    )
    scoring.check(run)
    if run.parts and run.scheduler is None:
        raise UsageError(f"--parts is {run.parts}, which has no effect without --scheduler")
    single.prepared(made, replace(run, curve=None, trace=False))
    elsewhere = None
    if run.scheduler is not None:
        from rfx.distributed import training

        elsewhere = training.train
        training.check(made, run)
    if model is not None and not made.method.saves:
        raise UsageError(
            f"models of {method} can't be saved, because the method has no restore; omit --model"
        )
    if run.sample_weight is not None:
        weights.check_method(made.method)
    check_outputs(run, model, results, trace, force)
    place, is_path = None if model is None else Path(model), bool(given.get("lam_path"))
    # the first step follows all checks of the input
    first = "" if quiet or json or model or results or run.checkpoint else _UNKEPT
    with Progress(f"training {method}", quiet, first=first) as progress:
        if is_path:
            rows = single.execute_path(run, place, elsewhere, progress.tell)
        else:
            more: Any = {"beside": not no_baseline, "unseen": True}
            rows = [single.execute(run, place, elsewhere, progress.tell, **more)]
    for row in rows:
        if trace is not None:
            results_file.append_steps(trace, str(row.key), row.steps or [])
        if results is not None:
            results_file.append(results, row)
    if quiet and not json:
        finish(rows)
        return
    if is_path:
        print_path(rows, json)
    else:
        again = _repeating(run, rows[0])
        print_row(rows[0], json, **({"command": again} if again else {}))
        if again and not json:
            click.echo(
                "the same model, without choosing again (trust the score above, not that of this"
                f" command), by\n\n{again}\n"
            )
    poor = [words for words in map(scoring.no_better, rows) if words]
    if poor:
        some = f"at {len(poor)} of {len(rows)} lambdas " if len(rows) > 1 else ""
        click.echo(f"rfx: {some}{poor[0]}", err=True)
    finish(rows)


def _repeating(run, row) -> str | None:
    """The command that trains the same model without selection; None if nothing was selected.

    It has the rows held out only if they calibrate the model.
    """
    from rfx.runs import scoring

    chosen = row.params.get("explicit")
    if not chosen:
        return None
    run = replace(run, method=row.method, options=scoring.explicit(run, chosen))
    return command_of(run if run.calibrate else replace(run, cv=None, holdout=None))


def check_outputs(run, model, results, trace, force) -> None:
    """Raise an error if an output is an input, another output, or a file of another kind."""
    from rfx import model as model_file
    from rfx.runs import single

    others = named("--data", run.dataset) + named("--test", run.test)
    others += [] if run.sample_weight is None else [("--sample-weight", run.sample_weight)]
    paths = [] if model is None else single.model_files(Path(model), run.options.get("lam_path"))
    outputs: list[Any] = [("--model", path, model_file.KIND) for path in paths]
    outputs += [
        ("--checkpoint", run.checkpoint, model_file.KIND),
        ("--results", results, None),
        ("--trace", trace, None),
    ]
    for name, path, kind in outputs:
        if path is not None:
            files.guard((name, path), others, kind, force)
            others.append((name, path))
    for check, path in (
        (model_file.check, model),
        (model_file.check, run.checkpoint),
        (results_file.check, results),
        (results_file.TRACES.check, trace),
    ):
        if path is not None:
            check(path)


# ---------------------------------------------------------------------- tune


def _searchable() -> list[str]:
    from rfx.runs.tune import searchable

    return ["auto", *searchable()]


def _options_of(name: str | None) -> list[Option]:
    """The options that can be searched or fixed, of a method, or of all.

    The search has its own --budget-seconds, for all of it.
    """
    from rfx.runs.tune import AUTO, SIZES

    among = AUTO if name == "auto" else SIZES if name is None else [name]
    having: dict[str, list] = {}
    for method in among:
        for option in methods.options_of(method):
            having.setdefault(option.name, []).append((method, option))
    return [
        union(declared) if len(among) > 1 else declared[0][1]
        for name, declared in having.items()
        if name not in ("lam_path", "budget_seconds", "measure")
    ]


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
        ("accuracy", "balanced_accuracy", "auc", "log_loss", "rmse"),
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
    from rfx.data.tabular.labelwords import guess_task
    from rfx.runs import scoring, single
    from rfx.runs.tune import AUTO, Tuning

    check_data(data, "rfx tune")
    method = methods.short(method)
    if method not in _searchable():
        raise methods.unknown(method, _searchable(), "can't be searched")
    names = AUTO if method == "auto" else (method,)
    given = _fixed(names, values)
    wanted = _kernels(kernels, names, given)
    run = run_of(values, dataset=data, method=names[0], options=given)
    scoring.check(run)
    check_outputs(run, model, results, None, force)
    run = replace(run, seed=given.pop("seed", 0))
    split = single.load(run)
    if not (quiet or json or model or results):
        click.echo(_UNKEPT, err=True)
    given["task"] = given.get("task") or split.task or guess_task(split.y_train)
    source = replace(run, seed=0, cv=None, holdout=None, calibrate=None)
    told = not json and not quiet
    if told:
        click.echo(_LINE.format(*_HEADINGS))

    def tell(trial, there):
        click.echo(_LINE.format(*_cells(trial)) + " (was there)" * there)

    with Progress("tuning", quiet) as progress:
        tuning = Tuning(
            split,
            names,
            given,
            tell if told else None,
            kernels=wanted,
            score=measure,
            cv=run.cv,
            holdout=run.holdout,
            seed=run.seed,
            seconds=budget_seconds,
            most_trials=trials,
            results_file=None if results is None else Path(results),
            source=source,
            calibrated=run.calibrate is not None,
        )
        search = tuning.run()
        best, metric = search.best, search.measure.name
        options = tuning.options(best.point) | ({} if best.lam is None else {"lam": best.lam})
        run = replace(
            run if run.calibrate else replace(source, seed=run.seed),
            method=best.point.method,
            options=options,
        )
        by = "" if split.apart is None else f" by {split.apart.by}"
        count = sum(len(out) for _, out in tuning.parts)
        chosen = single.Score(metric, best.score, f"the held-out rows of the search{by}", count)
        place = None if model is None else Path(model)
        row = single.execute(run, place, progress=progress.tell, chosen=chosen, split=split)
    row = row.with_params(
        tuned={"score": best.score, "metric": metric, "trials": len(search.trials)} | tuning.how
    )
    if results is not None:
        results_file.append(results, row)
    if quiet and not json:
        finish([row])
        return
    line = command_of(run)
    if not json:
        click.echo(
            f"\nbest {metric} on held-out rows: {best.score:.5g}; the same model by\n\n{line}\n"
        )
    for words in search.limits:
        click.echo(f"rfx: the search: {words}", err=True)
    for words in tuning.edges(search):
        click.echo(f"rfx: at the edge: {words}; values beyond it may be better", err=True)
    print_row(row, json, command=line)
    finish([row])


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
        methods.create(name, **{key: value for key, value in given.items() if key in declared})
    return given


def _kernels(text, names, given) -> list[str]:
    """The kernels listed by --kernels."""
    if text and "kernel" in given:
        raise UsageError(
            f"--kernel is {given['kernel']} and --kernels is {text}; use only one of them"
        )
    declared = [(name, methods.get(name).declared()["kernel"]) for name in names]
    option = union(declared).but(name="kernels")
    return [option.convert(name.strip()) for name in text.split(",")] if text else []


_HEADINGS = ("round", "rows", "method", "kernel", "gamma", "size", "lambda", "score", "s")
_LINE = "{:>5} {:>8} {:<9} {:<14} {:>9} {:>6} {:>8} {:>9} {:>6}"


def _cells(trial) -> Iterator[str]:
    from rfx.runs.tune import searchable

    options = trial.point.options
    yield from (f"{trial.round.number + 1}", f"{trial.round.rows}", trial.point.method)
    yield options["kernel"]
    yield f"{options['gamma']:.4g}" if "gamma" in options else "-"
    yield f"{options.get(searchable()[trial.point.method][0], '-')}"
    lam = "auto" if trial.lam is None else f"{trial.lam:g}"
    yield from (lam, f"{trial.score:.5g}", f"{trial.seconds:.1f}")
