"""rfx table: a paper's table, ours beside theirs, from a results file."""

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
    "table", short_help="Print a paper's table, ours beside theirs, from a results file."
)
@click.argument("name", required=False, shell_complete=complete_table)
@click.option(
    "--results",
    help=(
        "CSV file that rfx run or rfx eval wrote; for claims the folder of the papers' results"
        " files.  [default: results.csv; for claims: results]"
    ),
)
@format_option
@click.option(
    "--trace",
    metavar="FILE",
    help="Traces of the runs.  [default: beside the results, results.trace.csv]",
)
@click.option(
    "--setting",
    help="Rows of this setting, such as paper or tuned.  [default: the first that there is]",
)
@click.option(
    "--group-by",
    metavar="NAME[,NAME]",
    help="summary: a line for each value of these columns, mean ± standard deviation.",
)
@click.option(
    "--mean-over",
    metavar="NAME[,NAME]",
    help="summary: the same, by all that varies but these columns, such as seed.",
)
@click.option("--list", "as_list", is_flag=True, help="List the tables there are, and stop.")
def command(name, results, form, width, trace, setting, group_by, mean_over, as_list):
    """Print the table NAME from the rows of a results file: every cell ours / paper, a dash where
    nothing was run.

    `rfx table summary` lists all rows, with all that varies among them; --mean-over seed gives
    means and their noise. `rfx table claims` lists the papers' claims, each with its evidence and
    a verdict.
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
                raise UsageError(f"{option} is not for the table claims; drop it")
        folder = sources.folder("--results", "results" if results is None else results)
        found = claims.judged(papers.folders(), lambda plan: sources.find(folder, plan).rows)
        table = claims.table(found)
        print_table(render(table, form, width), form)
        return
    results = "results.csv" if results is None else results
    rows = rows_for(known.get(name), lambda: read(results, chosen(trace, results)))
    gc.freeze()  # rows refer to nothing that refers back: no cycles are to be looked for there
    table = tables.build(name, rows, setting, known, group_by=group_by, mean_over=mean_over)
    print_table(render(table, form, width), form)
