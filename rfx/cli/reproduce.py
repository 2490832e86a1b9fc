"""rfx reproduce: a table or figure of a paper, or all of them and the report."""

from pathlib import Path

import click

from rfx import papers
from rfx.cli.common import Count, complete_plan, force_option, print_table
from rfx.cli.progress import Progress
from rfx.errors import UsageError, or_near
from rfx.plans.catalogue import rows_for
from rfx.records.results import read
from rfx.records.traces import beside, finder


@click.command(
    "reproduce", short_help="Reproduce a table or figure of a paper, or all of them and the report."
)
@click.argument("name", required=False, shell_complete=complete_plan)
@click.option("--paper", multiple=True, metavar="NAME", help="Only this paper (repeatable).")
@click.option("--quick", "form", flag_value="quick", help="Use the small form of every plan.")
@click.option("--full", "form", flag_value="full", help="Include the plans that take hours.")
@click.option(
    "--results",
    default="results",
    show_default=True,
    metavar="DIR",
    help="Folder for the results files.",
)
@click.option(
    "-o",
    "--output",
    default="report",
    show_default=True,
    metavar="DIR",
    help="Folder for the report.",
)
@click.option(
    "--jobs",
    type=Count(),
    metavar="COUNT",
    default=1,
    show_default=True,
    help="Number of simultaneous runs. Times are comparable only with 1.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plans with their estimated time and memory, and exit.",
)
@force_option
def command(name, paper, form, results, output, jobs, dry_run, force):
    """Reproduce the table or figure NAME, such as yen2014-table1: run the missing rows of its plan,
    print the table and draw the figure.

    Without NAME: print all plans of the papers with their estimated time and memory, run them, and
    write the report. Completed runs are not repeated. Plans that take hours need --quick or --full.
    Exit code 0: all done; 1: a plan could not be run; 3: some rows failed or did not converge; 4:
    another rfx run holds the results file.
    """
    if name is not None:
        return _one(name, paper, form, results, jobs, dry_run, force)
    from rfx.reporting.report import page
    from rfx.runs import reproduce

    folders = papers.folders(paper)
    steps = reproduce.ahead(folders, form or "most", results)
    for line in reproduce.said(steps, jobs):
        click.echo(line, err=not dry_run)
    if dry_run:
        return 0
    code = reproduce.run(steps, jobs, lambda text: click.echo(text, err=True))
    click.echo(page.write(results, output, folders, papers.plans(), force))
    return code


def _one(name, paper, form, results, jobs, dry_run, force) -> int:
    """Run the plan of one table or figure, with --full also its long rows; print the table and draw
    the figure.
    """
    from rfx.plans import plan

    if paper:
        raise UsageError("NAME and --paper can't be combined; use only one of them")
    quick = form == "quick" or name.endswith("-quick")
    name, plans, tables, figures = (
        name.removesuffix("-quick"),
        papers.plans(),
        papers.tables(),
        papers.figures(),
    )
    rows = _rows_of(
        name, [own[name] for own in (tables, figures) if name in own], plans, {*tables, *figures}
    )
    folder, code = Path(results), 0
    end = "-quick" if quick else ""
    path = folder / f"{rows}{end}.csv"
    if not dry_run:
        folder.mkdir(parents=True, exist_ok=True)
    if rows in plans:
        todo = [rows + end] + (
            [f"{rows}-full"] if form == "full" and not quick and f"{rows}-full" in plans else []
        )
        for one in todo:
            ended = _ran(plan.load(one, False, plans), path, jobs, dry_run)
            if ended not in (0, 3):
                return ended
            code = code or ended
    if not dry_run:
        _show(name, path, folder / f"{name}{end}", tables, figures, force)
    return code


def _rows_of(name, builders, plans, known) -> str:
    """The plan whose rows these table and figure builders use; UsageError if one is needed but
    missing.
    """
    rows = next(
        (
            f"{name.partition('-')[0]}-{builder.plan}"
            for builder in builders
            if getattr(builder, "plan", "")
        ),
        name,
    )
    if not builders or (
        rows not in plans and not all(getattr(builder, "alone", False) for builder in builders)
    ):
        raise UsageError(
            f"no table or figure {name!r:.80} has a"
            f" plan{or_near(name, sorted({*plans, *known}), 'there are')}"
        )
    return rows


def _ran(wanted, path, jobs, dry_run) -> int:
    from rfx.cli.run import dry_run as said
    from rfx.runs import runner

    if dry_run:
        return said(wanted, path, False, None, False)
    with Progress(wanted.name) as progress:
        return runner.run(wanted, path, jobs, report=progress.say, progress=progress.runs).exit_code


def _show(name, path, stem, tables, figures, force) -> None:
    """Print the table and draw the figure of that name from the rows of a results file, if they
    exist.
    """
    from rfx.reporting import figures as figures_module
    from rfx.reporting import tables as tables_module
    from rfx.reporting.tables_render import render

    traces = beside(path)
    if name in tables:
        rows = rows_for(tables[name], lambda: read(path, finder(traces)))
        print_table(render(tables_module.build(name, rows, None, tables), "text", None), "text")
    if name in figures:
        rows = rows_for(figures[name], lambda: read(path, finder(traces)))
        inputs = [("the results", path), ("the traces", traces)]
        for drawn in figures_module.draw(name, rows, str(stem), None, figures, inputs, force):
            click.echo(drawn)
