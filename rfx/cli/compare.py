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
    """Print scores and training seconds of the runs that are in both results files, and how they
    differ.

    Runs are matched by their keys, else by all that they were given. `rfx table summary --group-by`
    looks into one file.
    """
    from rfx.reporting.tables_general import COMPARED, compare
    from rfx.reporting.tables_render import render

    rows = read(a, only=COMPARED), read(b, only=COMPARED)
    gc.freeze()  # rows refer to nothing that refers back: no cycles are to be looked for there
    print_table(render(compare(*rows), form, width), form)
