"""The `rfx` command: a table of commands, each imported only when it is used."""

import importlib
import sys

import click

from rfx._version import __version__
from rfx.errors import RfxError

COMMANDS = {
    "fetch": "Fetch data sets, once, checked against their checksums.",
    "datasets": "List the data sets: what there is, what is fetched, what must be obtained by hand.",
    "check": "Report every problem of a LIBSVM file with its line and column.",
    "featurize": "Write the random features of a LIBSVM file as a LIBSVM file.",
    "train": "Train one model from a data set or file.",
    "predict": "Print predictions of a model for a file.",
    "eval": "Score a model on a data set or file.",
    "methods": "List the methods with their options.",
    "run": "Run the missing rows of a plan; resumes, one process per row.",
    "table": "Print a paper's table, ours beside theirs, from a results file.",
    "figure": "Draw a paper's figure, ours beside theirs, from a results file.",
}


class LazyGroup(click.Group):
    """Looks a command up in COMMANDS and imports rfx.cli.NAME when it is needed."""

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"rfx.cli.{name}").command

    def format_commands(self, ctx, formatter):
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rfx")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx, debug):
    """Random-feature kernel machines: from a LIBSVM file to a model, and to the tables of four papers."""
    ctx.obj = {"debug": debug}


def main(args=None):
    """Run the command line and exit: 0 done, 1 error, 2 usage, 3 some rows failed, 4 locked, 130 interrupted."""
    args = sys.argv[1:] if args is None else list(args)
    try:
        code = cli.main(args=args, prog_name="rfx", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("rfx: interrupted", err=True)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    except RfxError as error:
        if "--debug" in args:
            raise
        click.echo(f"rfx: {error}", err=True)
        code = error.exit_code
    except MemoryError as error:
        if "--debug" in args:
            raise
        click.echo(f"rfx: out of memory ({error}); a smaller --n-features or --max-memory needs less", err=True)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
