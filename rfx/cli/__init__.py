"""The `rfx` command: a table of commands, each imported only when it is used."""

import contextlib
import gc
import importlib
import os
import sys
import traceback
import warnings
from types import FunctionType

import click

from rfx import env, interrupts
from rfx._version import __version__
from rfx.errors import RfxError, RfxWarning, UsageError, or_near, plain

COMMANDS = {
    "fetch": "Download data sets once and verify their checksums.",
    "datasets": ("List the data sets: which exist, which are downloaded, which need manual steps."),
    "check": "Report the problems of a data file by line and column, or summarise its contents.",
    "featurize": "Write the random features of a LIBSVM file as a LIBSVM file.",
    "convert": "Write a CSV, npz or Parquet file as LIBSVM text.",
    "train": "Train one model from a data set or file.",
    "predict": "Print predictions of a model for a file.",
    "eval": "Evaluate a model on a data set or file.",
    "explain": "Show which columns affect the predictions of a model, and how.",
    "info": "Describe a model file: training options and scores.",
    "export": "Export a model as ONNX, C or JSON, to predict without rfx.",
    "methods": "List the methods with their options.",
    "run": "Run the missing rows of a plan, one process per row; resumable.",
    "tune": "Search the options of a method and fit the best model.",
    "table": "Print a paper's table from a results file, next to the published values.",
    "figure": "Draw a paper's figure from a results file, next to the published curves.",
    "report": "Write a page of the papers' tables and figures, from results files.",
    "reproduce": "Run every plan of the papers, then write the report; resumable.",
    "compare": "Compare two results files: scores and seconds of the runs in both.",
    "warm": "Compile all functions in advance, so that later commands start faster.",
    "help": "Show the help of a command.",
}


# Net allocations between two cycle collections: imports allocate many objects and no cycles.
# Python's own threshold is 700.
_OBJECTS = 20_000
# Entries of the frame that contains all others: more than half a MiB.
_FRAME = 66_000

# Commands that wait for numba when its cache is empty.
_COMPILING = ("train", "predict", "eval", "explain", "featurize", "run", "reproduce")
# the loader's message when memory for a library is short
_UNMAPPED = "failed to map segment"
_READER_GONE = 141  # exit code of a program ended by SIGPIPE, as a shell reports it


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
    """click would return exit code 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(_READER_GONE) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rfx")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx, debug):
    """Random-feature kernel machines: train, tune and explain models, and reproduce the tables of
    four papers.
    """
    ctx.obj = {"debug": debug}


def main(args=None):
    """Run the command line and exit.

    0 done, 1 error, 2 usage, 3 some rows failed, 4 locked, 130 interrupted (Ctrl-C or SIGTERM), 141
    the reader closed the output.
    """
    args = sys.argv[1:] if args is None else list(args)
    gc.set_threshold(_OBJECTS)
    env.keep_freed_memory()
    env.own_process()
    _say_warnings()
    with contextlib.suppress(AttributeError, ValueError):  # a closed or other stream
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with interrupts.terminate_as_interrupt():
        if (
            args
            and args[0] in _COMPILING
            and not {"--help", "-h", "--help-all"} & set(args)
            and env.nothing_compiled()
        ):
            click.echo(
                "rfx: compiling functions on first use, which takes some seconds (`rfx warm`"
                " compiles all of them)",
                err=True,
            )
        code = _with_room(_run)(args)
        _drop_unwritten()
        if "rfx.parallel" in sys.modules:
            sys.modules["rfx.parallel"].close()
    # otherwise the interpreter would collect cycles several times before exit
    gc.freeze()
    sys.exit(code)


def _with_room(function):
    """The function with a frame so large that the frames of all its calls fit behind it.

    CPython 3.11 keeps frames in pieces of 16 KiB, or up to twice the size of a larger frame. A loop
    whose calls cross the end of a piece maps and unmaps memory with every call, which can take a
    fifth of a short command's time.
    """
    return FunctionType(
        function.__code__.replace(co_stacksize=_FRAME), function.__globals__, function.__name__
    )


def _run(args) -> int | str:
    """Run a command line and return its exit code; errors print one sentence on standard error and
    return 1.
    """
    try:
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
            error = RfxError("not enough memory to load a library; raise the limit (ulimit -v)")
        if "--debug" in args:
            traceback.print_exc()
            return getattr(error, "exit_code", 1)
        click.echo(f"rfx: {plain(_sentence(error))}", err=True)
        return getattr(error, "exit_code", 1)


def _say_warnings() -> None:
    """Print warnings as one sentence on standard error, like errors."""
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
        return f"out of memory{what}; use a smaller --n-features or --max-memory"
    if isinstance(error, OSError):
        reason = error.strerror or error
        if error.filename is None:
            return f"the output can't be written: {reason}"
        return f"{error.filename} can't be read or written: {reason}"
    return str(error)


def _drop_unwritten() -> None:
    """Drop output that can't be written; otherwise the interpreter would retry at exit and report
    an error.
    """
    try:
        sys.stdout.flush()
    except (AttributeError, ValueError):  # closed from the start or later
        return
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
