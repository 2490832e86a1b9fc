"""rfx reproduce: every plan of the papers, then the report."""

import click

from rfx.cli.common import Count, force_option


@click.command("reproduce", short_help="Run every plan of the papers, resuming, then write the report.")
@click.option("--paper", multiple=True, metavar="NAME", help="Only this paper (repeatable).")
@click.option("--quick", "form", flag_value="quick", help="The small form of every plan.")
@click.option("--full", "form", flag_value="full", help="The plans that take hours each, too.")
@click.option("--results", default="results", show_default=True, metavar="DIR", help="Folder for the results files.")
@click.option("-o", "--output", default="report", show_default=True, metavar="DIR", help="Folder for the report.")
@click.option("--jobs", type=Count(), metavar="COUNT", default=1, show_default=True, help="Runs at a time; times are comparable with one.")
@click.option("--dry-run", is_flag=True, help="Say what would be run, for how long about and what it needs, and stop.")
@force_option
def command(paper, form, results, output, jobs, dry_run, force):
    """Say what will be run, for how long about and what it needs; run it; write the report.

    It resumes: runs that have a row are not made again. Without --quick or --full the plans that take hours each are left out.
    Exit code 0: all done; 1: a plan could not be run; 3: some rows failed or did not converge; 4: another rfx run is at it.
    """
    from rfx import papers
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
