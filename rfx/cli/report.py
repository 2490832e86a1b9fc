"""rfx report: one page of a results file, or of the papers' tables and figures."""

import click

from rfx import papers
from rfx.cli.common import completing, force_option
from rfx.errors import UsageError


def _papers():
    return papers.names()


@click.command(
    "report", short_help="Write a page of a results file, or of the papers' tables and figures."
)
@click.argument("file", required=False, metavar="[FILE.csv]")
@click.option(
    "--paper",
    multiple=True,
    metavar="NAME",
    shell_complete=completing(_papers),
    help="Only this paper (repeatable).",
)
@click.option(
    "--results",
    metavar="DIR",
    help="Folder of the papers' results files, PLAN.csv and PLAN-quick.csv.  [default: results]",
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
def command(file, paper, results, output, force):
    """Write one page, DIR/index.html, and print its name.

    Of FILE.csv, the results of experiments of yours: the mean and deviation over seeds of what was
    run on each data set, paired tests, ranks over the data sets, figures, and what went wrong.

    Without FILE.csv, of the papers' plans: every table and figure, ours beside theirs, made of
    results files and their traces alone: PLAN.csv, or PLAN-quick.csv where the former has no good
    row. What was not run is said, with what to type.

    The figures lie beside the page as PNG, SVG, PDF, and their numbers as CSV.
    """
    from rfx.reporting.report import own, page

    if file is None:
        results = "results" if results is None else results
        click.echo(page.write(results, output, papers.folders(paper), papers.plans(), force))
        return
    for option, value in (("--paper", paper), ("--results", results)):
        if value:
            raise UsageError(
                f"{option} is for the papers' report; leave it out, or leave out {file}"
            )
    click.echo(own.write(file, output, force))
