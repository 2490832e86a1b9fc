"""rfx compare: two results files side by side."""

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
    from rfx.reporting.tables_general import compare
    from rfx.reporting.tables_render import render

    print_table(render(compare(read(a), read(b)), form, width), form)
