"""rfx table: a paper's table from a results file, next to the published values."""

import gc

import click

from rfx import papers
from rfx.cli.common import complete_table, format_option, print_table
from rfx.errors import UsageError
from rfx.plans.catalogue import rows_for
from rfx.records.results import read
from rfx.records.traces import chosen
from rfx.reporting.report import sources


@click.command(
    "table", short_help="Print a paper's table from a results file, next to the published values."
)
@click.argument("name", required=False, shell_complete=complete_table)
@click.option(
    "--results",
    help=(
        "CSV file written by rfx run or rfx eval; for claims, the folder of the papers' results"
        " files.  [default: results.csv; for claims: results]"
    ),
)
@format_option
@click.option(
    "--trace",
    metavar="FILE",
    help="Traces of the runs.  [default: next to the results, such as results.trace.csv]",
)
@click.option(
    "--setting",
    help="Use rows of this setting, such as paper or tuned.  [default: the first one present]",
)
@click.option(
    "--group-by",
    metavar="NAME[,NAME]",
    help="summary: one line for each value of these columns, with mean ± standard deviation.",
)
@click.option(
    "--mean-over",
    metavar="NAME[,NAME]",
    help="summary: like --by, but with all varying columns except these, such as seed.",
)
@click.option("--list", "as_list", is_flag=True, help="List the tables and exit.")
def command(name, results, form, width, trace, setting, group_by, mean_over, as_list):
    """Print the table NAME from the rows of a results file. Every cell is ours / paper, with a dash
    for missing runs.

    `rfx table summary` lists all rows with the columns that vary; --mean-over seed prints means and
    deviations. `rfx table claims` lists the papers' claims with evidence and a verdict.
    """
    from rfx.reporting import claims, tables
    from rfx.reporting.tables_render import render

    known = papers.tables()
    if as_list:
        click.echo("\n".join(sorted([*known, "claims"])))
        return
    if name is None:
        raise UsageError(f"which table? There are: {', '.join(sorted([*known, 'claims']))}")
    if name == "claims":
        for option, value in (
            ("--trace", trace),
            ("--setting", setting),
            ("--group-by", group_by),
            ("--mean-over", mean_over),
        ):
            if value is not None:
                raise UsageError(f"{option} does not apply to the table claims; omit it")
        folder = sources.folder("--results", "results" if results is None else results)
        found = claims.judged(papers.folders(), lambda plan: sources.find(folder, plan).rows)
        table = claims.table(found)
        print_table(render(table, form, width), form)
        return
    results = "results.csv" if results is None else results
    rows = rows_for(known.get(name), lambda: read(results, chosen(trace, results)))
    gc.freeze()  # rows have no reference cycles, so the collector need not run
    table = tables.build(name, rows, setting, known, group_by=group_by, mean_over=mean_over)
    print_table(render(table, form, width), form)
