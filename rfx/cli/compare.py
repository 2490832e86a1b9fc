"""rfx compare: two results files side by side."""

import gc

import click

from rfx.cli.common import format_option, print_table
from rfx.records.results import read


@click.command(
    "compare", short_help="Compare two results files: scores and seconds of the runs in both."
)
@click.argument("a", metavar="A.csv")
@click.argument("b", metavar="B.csv")
@format_option
def command(a, b, form, width):
    """Print scores and training seconds of the runs in both results files, and their differences.

    Runs are matched by their keys, or else by all their inputs. `rfx table summary --group-by`
    compares runs within one file.
    """
    from rfx.reporting.tables_general import COMPARED, compare
    from rfx.reporting.tables_render import render

    rows = read(a, only=COMPARED), read(b, only=COMPARED)
    gc.freeze()  # rows have no reference cycles, so the collector need not run
    print_table(render(compare(*rows), form, width), form)
