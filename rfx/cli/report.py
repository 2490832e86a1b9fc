"""rfx report: one page of the papers' tables and figures, from a folder of results files."""

import click

from rfx import papers
from rfx.cli.common import completing, force_option


def _papers():
    return papers.names()


@click.command(
    "report", short_help="Write a page of the papers' tables and figures, from results files."
)
@click.option(
    "--paper",
    multiple=True,
    metavar="NAME",
    shell_complete=completing(_papers),
    help="Only this paper (repeatable).",
)
@click.option(
    "--results",
    default="results",
    show_default=True,
    metavar="DIR",
    help="Folder of results files, PLAN.csv and PLAN-quick.csv.",
)
@click.option(
    "-o",
    "--output",
    default="report",
    show_default=True,
    metavar="DIR",
    help="Folder for index.html and figures/.",
)
@force_option
def command(paper, results, output, force):
    """Write one page, DIR/index.html, with every table and figure of the papers, ours beside
    theirs, and print its name.

    It is made of results files and their traces alone: PLAN.csv, or PLAN-quick.csv where the former
    has no good row. What was not run is said, with what to type. The figures lie beside the page as
    PNG, SVG, PDF, and their numbers as CSV.
    """
    from rfx.reporting.report import page

    click.echo(page.write(results, output, papers.folders(paper), papers.plans(), force))
