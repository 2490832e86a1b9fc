"""The `rfx` command: a table of commands, each imported only when it is used."""

import contextlib
import importlib
import os
import shlex
import sys
import traceback
import warnings

import click

from rfx import env
from rfx._version import __version__
from rfx.errors import RfxError, RfxWarning, UsageError, or_near, plain

# The function of each command, below rfx.cli, and its help.
COMMANDS = {
    "train": ("models.train", "Train one model from a data set or file."),
    "predict": ("models.predict", "Print predictions of a model for a file."),
    "eval": ("models.evaluate", "Evaluate a model on a data set or file."),
    "explain": (
        "models.explain",
        "Show which columns affect the predictions of a model, and how.",
    ),
    "info": ("models.info", "Describe a model file: training options and scores."),
    "export": (
        "models.export",
        "Export a model as ONNX, C or JSON, to predict without rfx.",
    ),
    "tune": ("models.tune", "Search the options of a method and fit the best model."),
    "methods": ("models.list_methods", "List the methods with their options."),
    "check": (
        "data.check",
        "Report the problems of a data file by line and column, or summarise its contents.",
    ),
    "convert": ("data.convert", "Write a CSV, npz or Parquet file as LIBSVM text."),
    "featurize": (
        "data.featurize",
        "Write the random features of a LIBSVM file as a LIBSVM file.",
    ),
    "datasets": (
        "data.datasets",
        "List the data sets: which exist, which are downloaded, which need manual steps.",
    ),
    "fetch": ("data.fetch", "Download data sets once and verify their checksums."),
    "run": (
        "experiments.run",
        "Run the missing rows of a plan, one process per row; resumable.",
    ),
    "table": (
        "experiments.table",
        "Print a paper's table from a results file, next to the published values.",
    ),
    "figure": (
        "experiments.figure",
        "Draw a paper's figure from a results file, next to the published curves.",
    ),
    "report": (
        "experiments.report",
        "Write a page of your results, or of the papers' tables and figures.",
    ),
    "compare": (
        "experiments.compare",
        "Compare two results files: scores and seconds of the runs in both.",
    ),
    "reproduce": (
        "experiments.reproduce",
        "Reproduce a table or figure of a paper, or all of them and the report.",
    ),
    "warm": (
        "models.warm",
        "Compile all functions in advance, so that later commands start faster.",
    ),
    "help": ("show_help", "Show the help of a command."),
}

# Commands that wait for numba when its cache is empty.
_COMPILING = ("train", "predict", "eval", "explain", "featurize", "run", "reproduce")
_READER_GONE = 141  # exit code of a program ended by SIGPIPE, as a shell reports it


class LazyGroup(click.Group):
    """Looks a command up in COMMANDS and imports it when it is needed."""

    def resolve_command(self, ctx, args):
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = or_near(args[0], COMMANDS, "the commands are")
            raise UsageError(f"there is no command {args[0]!r:.80}{near}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        module, _, function = f"rfx.cli.{COMMANDS[name][0]}".rpartition(".")
        return getattr(importlib.import_module(module), function)

    def format_commands(self, ctx, formatter):
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rfx")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug):
    """Random-feature kernel machines: train, tune and explain models, and reproduce the tables of
    four papers.
    """


@click.command("help", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def show_help(ctx, words):
    """Show the help of a command, like its --help; without a command, list all commands.

    \b
    rfx help train
    rfx help train --method rf
    """
    root = ctx.find_root()
    if not words:
        click.echo(root.get_help())
        return
    name, command, more = root.command.resolve_command(root, list(words))
    command.make_context(name, [*more, "--help"], parent=root)


def main(args=None):
    """Run the command line and exit.

    0 done, 1 error, 2 usage, 3 some rows failed, 4 locked, 5 below
    --fail-below, 130 interrupted (Ctrl-C or SIGTERM), 141
    the reader closed the output.
    """
    args = sys.argv[1:] if args is None else list(args)
    env.own_process()
    _say_warnings()
    with contextlib.suppress(AttributeError, ValueError):  # a closed or other stream
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with env.terminate_as_interrupt():
        asks_help = {"--help", "-h", "--help-all"} & {*args}
        if args and args[0] in _COMPILING and not asks_help and env.nothing_compiled():
            click.echo(
                "rfx: compiling functions on first use, which takes some seconds (`rfx warm`"
                " compiles all of them)",
                err=True,
            )
        code = _run(args)
        if "rfx.parallel" in sys.modules:
            sys.modules["rfx.parallel"].close()
    sys.exit(code)


def _run(args) -> int | str:
    """Run a command line and return its exit code; errors print one sentence on standard error, or
    in the file of --log.
    """
    with contextlib.ExitStack() as resources:
        return _run_within(resources, args)


def _run_within(resources: contextlib.ExitStack, args) -> int | str:
    """`_run`; resources: what the command has opened is closed after its error was printed."""
    try:
        if "_RFX_COMPLETE" in os.environ:
            cli.main(prog_name="rfx")  # completes a line for the shell and exits
        # cli.main would return exit code 1 for a closed pipe
        code = cli.invoke(resources.enter_context(cli.make_context("rfx", list(args))))
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as stop:
        return stop.code or 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("rfx: interrupted", err=True)
        return 130
    except (RfxError, MemoryError, OSError) as error:
        if isinstance(error, OSError) and error.filename is None:
            # otherwise the interpreter would write the output again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return _READER_GONE
        if "--debug" in args:
            traceback.print_exc()
        else:
            click.echo(f"rfx: {plain(_sentence(error))}", err=True)
            if remedy := getattr(error, "remedy", ""):
                click.echo(f"this works:\n\nrfx {shlex.join(args)} {remedy}\n", err=True)
        return getattr(error, "exit_code", 1)


def _say_warnings() -> None:
    """Print warnings as one sentence on standard error, like errors."""
    others = warnings.showwarning

    def show(message, category, *more):
        if issubclass(category, RfxWarning):
            click.echo(f"rfx: {message}", err=True)
        else:
            others(message, category, *more)

    warnings.showwarning = show


def _sentence(error) -> str:
    if isinstance(error, MemoryError):
        what = f" ({error})" if str(error) else ""
        return f"out of memory{what}; use a smaller --n-features or --max-memory"
    if isinstance(error, OSError):
        what = error.filename or "the output"
        return f"{what} can't be read or written: {error.strerror or error}"
    return str(error)
