"""What several commands share: method options, threads and the printing of rows."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from rfx import env, files, methods, papers
from rfx.cli import pages
from rfx.data.reading import listed, typed
from rfx.data.registry import fetch, registry
from rfx.errors import UsageError, quoted
from rfx.numerals import is_not_finite, is_number, significant
from rfx.options import Path as LamPath

if TYPE_CHECKING:
    from rfx.records.result import Result
    from rfx.records.run import Run


# The fields of a run that keep related rows together when some are held out.
APART = ("groups", "time")


class _Strict(click.ParamType):
    """Parses numbers as `rfx.numerals` does; a mixin for click's number types."""

    def convert(self, value, param, ctx):
        if isinstance(value, str) and not (
            is_number(value.strip()) or is_not_finite(value.strip())
        ):
            self.fail(f"{quoted(value)} is not a valid {self.name}.", param, ctx)
        return super().convert(value, param, ctx)


class Whole(_Strict, click.types.IntParamType):
    """An integer."""

    name = "whole number"


class Real(_Strict, click.types.FloatParamType):
    """A number."""

    name = "number"


class Positive(_Strict, click.FloatRange):
    """A number above 0."""

    name = "number"

    def __init__(self):
        super().__init__(min=0, min_open=True)


class Count(_Strict, click.IntRange):
    """An integer of `least` or more."""

    name = "whole number"

    def __init__(self, least: int = 1):
        super().__init__(min=least)


class OutputFile(click.ParamType):
    """The name of an output file; such as: an example for error messages."""

    name = "file"

    def __init__(self, such_as: str):
        self.such_as = such_as

    def convert(self, value, param, ctx):
        if files.names_folder(value):
            shown = shlex.quote(os.path.join(value, self.such_as))
            raise UsageError(
                f"{param.opts[0]} is {value}, which is a folder; use a file name such as {shown}"
            )
        return value


def last_value(words, flag: str) -> str | None:
    """The value of the last --flag among the words of a line, or None."""
    found = None
    for place, word in enumerate(words):
        if word == flag:
            # bash passes the = between them as a separate word
            after = [one for one in words[place + 1 : place + 3] if one != "="]
            found = after[0] if after else None
        elif word.startswith(f"{flag}="):
            found = word.partition("=")[2]
    return found


class DeclaredCommand(click.Command):
    """A command whose further options depend on the value of one of its options, or are those of
    all values if it is not given yet.
    """

    flag = ""

    def declared(self, name: str | None) -> list:
        """The options (rfx.options) declared by that name, or by all."""
        raise TypeError(f"{type(self).__name__} does not define declared")

    def parse_args(self, ctx, args):
        ctx.meta["rfx.named"] = self._named(args)
        if ctx.resilient_parsing and self._awaits_own(args):
            ctx.meta["rfx.options"] = []
        return super().parse_args(ctx, args)

    def get_params(self, ctx):
        if "rfx.options" not in ctx.meta:
            # a shell that completes an invalid line gets the options of any name
            named = None if ctx.resilient_parsing else ctx.meta.get("rfx.named")
            ctx.meta["rfx.options"] = [_parameter(option) for option in self.declared(named)]
        # the last one belongs to --help
        *own, last = super().get_params(ctx)
        return [*own, *ctx.meta["rfx.options"], last]

    def _named(self, args) -> str | None:
        """The value of the last --flag among the arguments."""
        return last_value(args, self.flag)

    def _awaits_own(self, args) -> bool:
        """Whether a shell completes the value of one of the command's own options, which needs no
        declared options.
        """
        last = next((word for word in reversed(args) if word != "="), None)
        return any(
            isinstance(option, click.Option) and not option.is_flag and last in option.opts
            for option in self.params
        )


class MethodCommand(DeclaredCommand):
    """A command that has the options of the method named by its --method, or of all methods."""

    flag = "--method"
    groups: tuple[pages.Group, ...] = ()

    def declared(self, name):
        return methods.options_of(name)

    def help_of(self, ctx, args) -> str | None:
        """The help text if the arguments ask for help, else None."""
        asked, name = pages.asked(args), last_value(args, self.flag)
        if asked is None:
            return None
        ctx.meta["rfx.named"] = name
        if asked == "--help-all":
            return pages.everything(self, ctx, self.groups)
        # the short page, which needs no import of methods
        own = [] if name is None else [_parameter(option) for option in self.declared(name)]
        ctx.meta["rfx.options"] = own
        if name is None:
            return pages.short(self, ctx, self.groups)
        return pages.of_method(self, ctx, methods.get(name), own)

    def parse_args(self, ctx, args):
        if not ctx.resilient_parsing and (text := self.help_of(ctx, args)) is not None:
            click.echo(text)
            ctx.exit()
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if ctx.meta["rfx.named"] is None:
                raise
            more = [flag for own in self.params for flag in own.opts if flag.startswith("--")]
            raise methods.no_option(ctx.meta["rfx.named"], error.option_name, more) from None


def _parameter(option) -> click.Option:
    default = "" if option.default is None else f"; default {option.default}"
    help_text = f"{option.description()} [{option.expects()}{default}]"
    return click.Option(
        [option.flag, option.name],
        metavar="VALUE",
        help=help_text,
        shell_complete=completing(option.meanings),
    )


def completing(names):
    """A click shell_complete function: the names() that begin with the typed text."""
    return lambda ctx, param, incomplete: [name for name in names() if name.startswith(incomplete)]


def _method_names():
    return [*methods.names(), *methods.LONG_NAMES]


def data_names():
    """The names of the data sets, for shells that complete them."""
    return registry.names()


def plan_names():
    """The names of the plans that come with rfx."""
    return list(papers.plans())


def _table_names():
    return list(papers.tables())


def _figure_names():
    return list(papers.figures())


complete_table, complete_figure = completing(_table_names), completing(_figure_names)
complete_method, complete_data, complete_plan = (
    completing(_method_names),
    completing(data_names),
    completing(plan_names),
)


def given_options(method: str, values: dict) -> dict:
    """The method options given on the command line, converted and checked."""
    known = methods.get(method).declared()
    return methods.get(method).converted(
        {name: value for name, value in values.items() if name in known}
    )


def threads_option(command):
    return click.option(
        "--threads",
        type=Count(),
        metavar="COUNT",
        default=None,
        callback=_set_threads,
        expose_value=False,
        is_eager=True,
        help="Number of threads.  [default: one per available core, which is also the maximum]",
    )(command)


def _set_threads(ctx, param, value):
    if value is not None:
        if value > (cores := env.cores()):
            there = "1 core is" if cores == 1 else f"{cores} cores are"
            click.echo(
                f"rfx: --threads is {value}, but {there} available; rfx uses {cores}", err=True
            )
        env.set_threads(min(value, cores))


def text_options(command):
    """The options that describe a text file; a file for a model is read as its training file."""
    command = click.option(
        "--zero-based",
        is_flag=True,
        help="Indices of LIBSVM text start at 0.  [default: 1, or that of the model]",
    )(command)
    command = click.option(
        "--encoding",
        metavar="NAME",
        default=None,
        help=(
            "Text encoding, such as cp1252.  [default: UTF-8, or the one that the byte order mark"
            " indicates]"
        ),
    )(command)
    return click.option(
        "--header/--no-header",
        default=None,
        help=(
            "Whether the first row of a CSV file holds column names.  [default: inferred from the"
            " cells]"
        ),
    )(command)


def split_option(command):
    return click.option(
        "--split",
        metavar="NAME|SHARE",
        default=None,
        help=(
            "A paper's split of a data set, such as yen2014, or the fraction of rows to train on,"
            " such as 0.8. The seed selects these rows; the rest are test rows."
        ),
    )(command)


def strict_option(command):
    return click.option(
        "--strict",
        is_flag=True,
        help=(
            "Reject columns and categories that were absent from the training rows.  [default:"
            " ignore them]"
        ),
    )(command)


def reading_options(command):
    """The options of a command that learns how to read a table; `reading` builds a Reading from
    them.
    """
    command = click.option(
        "--missing",
        type=click.Choice(["refuse", "mean", "median", "most_frequent"]),
        default="refuse",
        show_default=True,
        help=(
            "How to fill a missing cell of a numeric column, learnt from the training rows. Missing"
            " words become the most frequent word."
        ),
    )(text_options(command))
    for name, text in (
        (
            "--dates",
            (
                "Date columns. Each is read as four numbers: year, month, weekday and days since"
                " 1970."
            ),
        ),
        (
            "--categorical",
            "Numeric columns to read as categories, such as codes.",
        ),
        ("--ignore", "Columns to ignore, such as names or row numbers."),
    ):
        command = click.option(name, metavar="COLUMN,…", default=None, help=text)(command)
    return click.option(
        "--target",
        metavar="COLUMN",
        default=None,
        help="Target column of a table, by name or number.  [default: the last]",
    )(command)


def reading(target, ignore, categorical, dates, header, missing, encoding) -> dict:
    """The values of reading_options that differ from the defaults: fields of
    rfx.data.reading.Reading.
    """
    given = {
        "target": target,
        "ignore": listed(ignore) or None,
        "header": header,
        "missing": None if missing == "refuse" else missing,
    }
    given |= {"categorical": listed(categorical) or None, "dates": listed(dates) or None}
    given["encoding"] = encoding
    return {name: value for name, value in given.items() if value is not None}


def apart_options(command):
    """The options that keep related rows together when some are held out."""
    for name, text in (
        (
            "--time",
            (
                "Hold out later rows only. This column of numbers or dates sets the order and is"
                " not an input. --cv uses growing windows; --holdout uses the last part."
            ),
        ),
        (
            "--groups",
            (
                "Column of group labels, such as patients. Rows of a group are held out together."
                " The column is not an input."
            ),
        ),
    ):
        command = click.option(name, metavar="COLUMN", default=None, help=text)(command)
    return command


def output_option(command):
    return click.option(
        "-o",
        "--output",
        default="-",
        show_default=True,
        metavar="FILE",
        help="Output file; - is standard output.",
    )(command)


def force_option(command):
    return click.option(
        "--force",
        is_flag=True,
        help="Overwrite an existing output file, but never an input.",
    )(command)


def named(option: str, source: str | None) -> list[tuple[str, object]]:
    """The input of an option, a data set's name or a file, in the form required by
    `files.guard`.
    """
    return [] if source is None else [(option, path) for path in fetch.paths(source)]


def format_option(command):
    """The options of a command that prints a table: its format and, for text, the width; by default
    the terminal's, else 80.
    """
    command = click.option(
        "--width",
        type=Count(),
        metavar="COLUMNS",
        callback=_width,
        help="Text width.  [default: the terminal's, else 80]",
    )(command)
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "markdown", "latex", "csv", "json"]),
        default="text",
        show_default=True,
        help="csv and json hold one number per line, for programs; latex needs the package"
        " booktabs.",
    )(command)


def print_table(text: str, form: str) -> None:
    """Print a rendered table; csv is for programs and is written as bytes without changes."""
    click.echo(text.encode() if form == "csv" else text, nl=False)


def _width(ctx, param, value):
    return value or shutil.get_terminal_size((80, 24)).columns


def json_option(command):
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON with the names of the results columns."
    )(command)


def print_row(row: Result, as_json: bool, **more: str) -> None:
    """Print the outcome of a run: JSON with the entries `more`, or readable lines."""
    if as_json:
        print_json(row.as_dict() | more)
        return
    for name, text in _readable(row):
        click.echo(f"{name:<12} {text}")


def _readable(row):
    sizes = f"{row.n_train} rows x {row.n_inputs} inputs"
    split = f", split {row.split}" if row.split else ""
    yield "data", f"{row.dataset}{split}: {sizes}, {row.task}"
    gamma = row.params.get("kernel_params", {}).get("gamma")
    kernel = (f", {row.kernel} kernel" if row.kernel else "") + (
        f", gamma {gamma:.4g}" if gamma else ""
    )
    yield "method", f"{row.method}{kernel}, lambda {row.lam:g}"
    for step in row.params.get("validation", ()):
        if {"metric", "method"} & {*step["options"]}:
            yield "chosen", chosen_words(step)
    of = (
        f" of {row.n_features} features"
        if row.n_features
        else " support vectors"
        if row.kernel
        else " parameters"
    )
    yield (
        "model",
        (
            f"{row.model_size}{of}, {row.model_bytes / 1024:.0f} KiB"
            if row.model_bytes
            else f"{row.model_size}{of}"
        ),
    )
    gap = _relative_gap(row)
    certificate = "no certificate" if gap is None else f"relative gap {gap:.1e}"
    if "round_gap" in row.params:
        last = row.params["round_gap"] / max(abs(row.objective), 1e-300)
        certificate += f" over all features, {last:.1e} over those of the last round"
    ended = "converged" if row.converged else "DID NOT CONVERGE"
    if row.params.get("ended") == "stalled":
        ended += ": the objective no longer changes"
    yield (
        "training",
        f"objective {row.objective:.6g}, {certificate}, {row.n_iter} iterations, {ended}",
    )
    yield from _scores(row)
    yield "seconds", ", ".join(f"{what} {value:.2f}" for what, value in _seconds(row))
    yield "memory", f"{row.peak_rss_mb:.0f} MiB peak"


def _seconds(row) -> Iterator[tuple[str, float]]:
    """The seconds of each step; with the total, also the remaining time."""
    found = {
        "reading": row.params.get("seconds_read"),
        "choosing": row.params.get("seconds_validation"),
        "features": row.seconds_features,
        "training": row.seconds_fit,
        "prediction": row.seconds_predict,
        "held-out models": row.params.get("seconds_held_out"),
        "baseline": row.params.get("seconds_baseline"),
    }
    known = {what: value for what, value in found.items() if value is not None}
    yield from known.items()
    if (total := row.params.get("seconds_total")) is not None:
        yield "other", max(0.0, total - sum(known.values()))
        yield "total", total


def chosen_words(step: dict) -> str:
    """The outcome of a selection on held-out rows and the number of candidates."""
    said = [
        f"{name.replace('_', ' ')} {value:.4g}"
        if isinstance(value, (int, float))
        else f"{name} {value}"
        for name, value in zip(step["options"], step["chosen"])
        if name != "round" and value is not None and (value or name != "metric_steps")
    ]
    # the iterations of a metric are no trials of their own, as in the progress of the choice
    inner = {"metric_steps"} if "round" in step["options"] else set()
    trials = {
        tuple(value for name, value in zip(step["options"], one) if name not in inner)
        for one in step["tried"]
    }
    return f"{', '.join(said)}: the best of {len(trials)} on {step['held_out']} held-out rows"


def _scores(row):
    """The score and its rows: test rows, held-out rows, or the training rows."""
    from rfx.runs import baseline

    params = row.params
    metric = "rmse" if row.task == "regression" else "accuracy"
    shown = partial(score_text, metric)
    if row.score is not None:
        yield (
            metric,
            f"{shown(row.score)} on {row.n_test} rows"
            + (f", {params['scored_on']}" if "scored_on" in params else ""),
        )
    if "choice_score" in params:
        name = params["choice_metric"]
        yield name, f"{score_text(name, params['choice_score'])} on {params['choice_on']}"
    if row.score is None and "train_score" in params:
        yield (
            metric,
            (
                f"{shown(params['train_score'])} on the training rows; evaluate on other rows with"
                " --cv 5, --holdout 0.2 or --test FILE"
            ),
        )
    if "baseline" in params:
        yield "baseline", _beside(params["baseline"], metric)
        for name, gain in baseline.better(row).items():
            yield "", f"{name} is better than this model by {shown(gain)}"
    if "held_out_score" in params:
        yield "held out", f"{metric} {shown(params['held_out_score'])}, {params['held_out_on']}"
    if "calibration" in params:
        yield "probability", params["calibration"]


def score_text(metric: str, value: float) -> str:
    """Significant digits of an error in units of the target; four decimals of a share."""
    return significant(value) if metric in ("rmse", "mae") else f"{value:.4f}"


def _beside(found, metric):
    """Scores of simple models on the same rows."""
    parts = [f"{name} {score_text(metric, found[name])}" for name in ("constant", "linear")]
    if "boosting" in found:
        score = score_text(metric, found["boosting"])
        parts.append(f"gradient boosting {score} ({found['iterations']} iterations)")
    return f"{metric} {', '.join(parts)} on {found['on']}"


_MEASURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "auc": "AUC",
    "log_loss": "log-loss",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R2",
}
_MOST_SHOWN = 12  # classes of a confusion matrix


def print_measures(found: dict) -> None:
    """The measures of `rfx eval`, in the target's original units, and the confusion matrix, as
    text.
    """
    for name, heading in _MEASURES.items():
        if name in found:
            click.echo(f"{heading:<18} {score_text(name, found[name])}")
    from rfx.data.tasks import number_text

    labels = [
        number_text(label) if isinstance(label, float) else str(label)
        for label in found.get("labels", ())
    ]
    if len(labels) > _MOST_SHOWN:
        click.echo(f"{'confusion':<18} {len(labels)} classes; use --json to print it")
    elif labels:
        cells = [
            ["true, predicted", *labels],
            *([label, *map(str, line)] for label, line in zip(labels, found["confusion"])),
        ]
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        for line in cells:
            click.echo(
                "  ".join(
                    [
                        line[0].ljust(widths[0]),
                        *(text.rjust(width) for text, width in zip(line[1:], widths[1:])),
                    ]
                )
            )


def _relative_gap(row) -> float | None:
    return None if row.gap is None else row.gap / max(abs(row.objective), 1e-300)


def print_json(value) -> None:
    """Print JSON on one line; numbers that JSON does not support become null."""
    click.echo(json.dumps(_finite(value), default=_plain, allow_nan=False))


def _plain(value):
    return value.item() if hasattr(value, "item") else str(value)


def _finite(value):
    """Replace nan and infinity, which JSON does not support, by None."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_path(rows: list[Result], as_json: bool) -> None:
    """Print the rows of a path over lambda: a JSON list, or one line each."""
    if as_json:
        print_json([row.as_dict() for row in rows])
        return
    trained = rows[0].score is None
    metric = "train score" if trained else "score" if rows[0].metric is None else rows[0].metric
    names = LamPath.names([row.lam for row in rows if row.lam is not None])
    width = max(10, *map(len, names))
    click.echo(
        f"{'lambda':>{width}} {'nonzeros':>9} {'objective':>12} {'rel. gap':>9} {metric:>11}"
    )
    for name, row in zip(names, rows):
        score = row.params.get("train_score") if trained else row.score
        kind = "rmse" if row.task == "regression" else "accuracy"
        shown = "-" if score is None else score_text(kind, score)
        mark = "" if row.converged else "  did not converge"
        relative = _relative_gap(row)
        gap = "-" if relative is None else f"{relative:.1e}"
        click.echo(
            f"{name:>{width}} {row.model_size:>9} {row.objective:>12.6g} {gap:>9} {shown:>11}{mark}"
        )


def finish(rows: list[Result]) -> None:
    """Warn of models that score far below what was chosen; exit with 3 when a solver did not
    converge, and suggest what to try.
    """
    for doubt in [row.params["doubt"] for row in rows if "doubt" in row.params]:
        click.echo(f"rfx: {doubt}", err=True)
    stopped = [row for row in rows if row.converged is False]
    if not stopped:
        return
    if any(row.params.get("ended") == "timeout" for row in stopped):
        click.echo(
            "rfx: the solver did not converge within --timeout; try a larger one",
            err=True,
        )
    elif any(row.params.get("ended") == "stalled" for row in stopped):
        click.echo(
            "rfx: the solver stopped because its objective no longer changes; try a larger --tol,"
            " or --dtype float64",
            err=True,
        )
    else:
        click.echo("rfx: the solver did not converge; try a larger --max-iter or --tol", err=True)
    sys.exit(3)


def command_of(run: Run) -> str:
    """The command that trains this model, ready to copy."""
    words: list[str] = ["rfx", "train", "--method", run.method, "--data", run.dataset]
    for name in ("split", "test", "sample_weight", "cv", "holdout", *APART, "calibrate"):
        if (value := getattr(run, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--zero-based"] if run.zero_based else []
    for name, value in (run.reading.given() if run.reading else {}).items():
        words += (
            [("--" if value else "--no-") + name]
            if isinstance(value, bool)
            else (
                shlex.split(typed(name, value))
                if isinstance(value, (list, tuple))
                else [f"--{name}", str(value)]
            )
        )
    for name, value in run.options.items():
        if value is not None:
            text = (
                str(value).lower()
                if isinstance(value, bool)
                else repr(value)
                if isinstance(value, float)
                else str(value)
            )
            words += [f"--{name.replace('_', '-')}", text]
    return shlex.join([*words, "--seed", str(run.seed)])
