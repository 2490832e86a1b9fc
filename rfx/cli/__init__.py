"""The `rfx` command: a table of commands, each imported only when it is used."""

import contextlib
import gc
import importlib
import os
import sys
import traceback
import warnings

import click

from rfx import env, interrupts, terminal
from rfx._version import __version__
from rfx.errors import RfxError, RfxWarning, UsageError, or_near

COMMANDS = {
    "fetch": "Fetch data sets, once, checked against their checksums.",
    "datasets": (
        "List the data sets: what there is, what is fetched, what must be obtained by hand."
    ),
    "check": "Report the problems of a file of rows by line and column, or what is in it.",
    "featurize": "Write the random features of a LIBSVM file as a LIBSVM file.",
    "convert": "Write a CSV, npz or Parquet file as LIBSVM text.",
    "train": "Train one model from a data set or file.",
    "predict": "Print predictions of a model for a file.",
    "eval": "Score a model on a data set or file.",
    "explain": "Show which columns the predictions of a model depend on, and how.",
    "info": "Describe a model file: how it was made, and its scores.",
    "export": "Write a model as ONNX, C or JSON, to predict without rfx.",
    "methods": "List the methods with their options.",
    "run": "Run the missing rows of a plan; resumes, one process per row.",
    "tune": "Search the options of a method on training rows, and fit the best.",
    "table": "Print a paper's table, ours beside theirs, from a results file.",
    "figure": "Draw a paper's figure, ours beside theirs, from a results file.",
    "report": "Write a page of the papers' tables and figures, from results files.",
    "reproduce": "Run every plan of the papers, resuming, then write the report.",
    "compare": "Compare two results files: scores and seconds of the runs in both.",
    "warm": "Compile everything beforehand, so that no later command waits for it.",
    "help": "Show how a command is used.",
}


# Objects made, less those that went, between two looks for cycles: imports make many and no cycles.
# Python's own number is 700.
_OBJECTS = 20_000

# Those that wait for numba where its cache is empty.
_COMPILING = ("train", "predict", "eval", "explain", "featurize", "run", "reproduce")
# what the loader says where memory for a library is short
_UNMAPPED = "failed to map segment"
_READER_GONE = 141  # what a shell shows for a program that SIGPIPE ended


class LazyGroup(click.Group):
    """Looks a command up in COMMANDS and imports rfx.cli.NAME when it is needed."""

    def make_context(self, *args, **more):
        with _broken_pipe_as_exit():
            return super().make_context(*args, **more)

    def invoke(self, ctx):
        with _broken_pipe_as_exit():
            return super().invoke(ctx)

    def resolve_command(self, ctx, args):
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(
                "there is no command"
                f" {args[0]!r:.80}{or_near(args[0], COMMANDS, 'the commands are')}"
            )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"rfx.cli.{name}").command

    def format_commands(self, ctx, formatter):
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@contextlib.contextmanager
def _broken_pipe_as_exit():
    """For click would make it exit code 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(_READER_GONE) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rfx")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx, debug):
    """Random-feature kernel machines: from a LIBSVM file to a model, and to the tables of
    four papers.
    """
    ctx.obj = {"debug": debug}


def main(args=None):
    """Run the command line and exit.

    0 done, 1 error, 2 usage, 3 some rows failed, 4 locked, 130 interrupted (Ctrl-C or SIGTERM), 141
    the reader of the output has gone.
    """
    args = sys.argv[1:] if args is None else list(args)
    gc.set_threshold(_OBJECTS)
    env.keep_freed_memory()
    env.own_process()
    _say_warnings()
    with terminal.plain_streams(), interrupts.terminate_as_interrupt():
        if (
            args
            and args[0] in _COMPILING
            and not {"--help", "-h", "--help-all"} & set(args)
            and env.nothing_compiled()
        ):
            click.echo(
                "rfx: compiling what is needed, this first time: some seconds (`rfx warm` does it"
                " for all)",
                err=True,
            )
        code = _run(args)
        _drop_unwritten()
        if "rfx.parallel" in sys.modules:
            sys.modules["rfx.parallel"].close()
    # the interpreter would look through all that is left for cycles, more than once, before the
    # process gives it back
    gc.freeze()
    sys.exit(code)


def _run(args) -> int | str:
    """The exit code of a command line, or what is printed before it ends with 1; an error
    is one sentence on standard error.
    """
    try:
        env.check_environment()
        code = cli.main(args=args, prog_name="rfx", standalone_mode=False)
        if sys.stdout is not None:
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
    except BrokenPipeError:
        return _READER_GONE
    except (RfxError, MemoryError, OSError, ImportError) as error:
        if isinstance(error, ImportError):
            if _UNMAPPED not in str(error):
                raise
            error = RfxError(
                "memory is too short to load a library; a limit (ulimit -v) has to be higher"
            )
        if "--debug" in args:
            traceback.print_exc()
            return getattr(error, "exit_code", 1)
        click.echo(f"rfx: {_sentence(error)}", err=True)
        return getattr(error, "exit_code", 1)


def _say_warnings() -> None:
    """What rfx warns of is a sentence on standard error, as its errors are."""
    others = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, RfxWarning):
            click.echo(f"rfx: {message}", err=True)
        else:
            others(message, category, filename, lineno, file, line)

    warnings.showwarning = show


def _sentence(error) -> str:
    if isinstance(error, MemoryError):
        what = f" ({error})" if str(error) else ""
        return f"out of memory{what}; a smaller --n-features or --max-memory needs less"
    if isinstance(error, OSError):
        reason = error.strerror or error
        if isinstance(error, terminal.OutputError):
            return f"the output can't be written: {reason}"
        return (
            f"{'a file' if error.filename is None else error.filename} can't be read or written:"
            f" {reason}"
        )
    return str(error)


def _drop_unwritten() -> None:
    """Drop output that can't be written; the interpreter would try once more when it ends,
    and complain.
    """
    try:
        sys.stdout.flush()
    except (AttributeError, ValueError):  # closed from the start, or since
        return
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
