"""rfx report: one page for a results file, or for the papers' tables and figures."""

import click

from rfx import papers
from rfx.cli.common import completing, force_option
from rfx.errors import UsageError


def _papers():
    return papers.names()


@click.command(
    "report", short_help="Write a page for a results file, or for the papers' tables and figures."
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
    """Write the page DIR/index.html and print its name.

    With FILE.csv, the results of your own experiments: mean and deviation over seeds for each data
    set, paired tests, ranks over the data sets, figures, and problems.

    Without FILE.csv: every table and figure of the papers, next to the published values. They are
    built from results files and their traces: PLAN.csv, or PLAN-quick.csv if the former has no
    valid row. The page lists missing runs and the commands to run them.

    Figures are stored next to the page as PNG, SVG and PDF, with their numbers as CSV.
    """
    from rfx.reporting.report import experiment, page

    if file is None:
        results = "results" if results is None else results
        click.echo(page.write(results, output, papers.folders(paper), papers.plans(), force))
        return
    for option, value in (("--paper", paper), ("--results", results)):
        if value:
            raise UsageError(f"{option} applies to the papers' report only; omit it or {file}")
    click.echo(experiment.write(file, output, force))
