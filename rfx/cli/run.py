"""rfx run: the missing rows of a plan."""

import json
import sys

import click

from rfx.cli.common import Count, named
from rfx.methods.options import TIMEOUT


@click.command("run", short_help="Run the missing rows of a plan; resumes, one process per row.")
@click.argument("plan", required=False)
@click.option("--results", default="results.csv", show_default=True, help="CSV file that the rows are added to.")
@click.option(
    "--jobs",
    type=Count(),
    metavar="COUNT",
    default=1,
    show_default=True,
    help="Runs at a time; they share the cores, so times are only comparable with one.",
)
@click.option(
    "--only", multiple=True, metavar="NAME=VALUE[,VALUE]", help="Only the runs with this dataset, method, kernel, label, … (repeatable)."
)
@click.option("--quick", is_flag=True, help="The plan's small form, for a first look.")
@click.option("--timeout", metavar="SECONDS", help="End a run that takes longer and give it a row that says so.")
@click.option("--dry-run", is_flag=True, help="Print the runs that would be made, and stop.")
@click.option(
    "--retry-failed", is_flag=True, help="Make failed and timed-out runs again. Interrupted ones, and those without data, always are."
)
@click.option("--json", "as_json", is_flag=True, help="Print what became of the plan, rows included, as JSON.")
@click.option("--list", "as_list", is_flag=True, help="List the plans that come with rfx, and stop.")
def command(plan, results, jobs, only, quick, timeout, dry_run, retry_failed, as_json, as_list):
    """Make the runs of PLAN (a name, or a TOML file) that have no row in the results file yet.

    Each run is a process of its own and one row. A run that fails gets a row with its reason; the others go on. Exit
    code 0: all done; 3: some failed or did not converge; 4: another rfx run holds the results file.
    """
    from rfx import papers
    from rfx.errors import UsageError
    from rfx.experiments import plan as plans

    known = papers.plans()

    if as_list:
        for name in known:
            click.echo(f"{name:24} {plans.load(name, known=known).title}")
        return 0
    timeout = None if timeout is None else TIMEOUT.convert(timeout)
    if plan is None:
        raise UsageError(f"which plan? There are {', '.join(known)}, or give a TOML file")
    loaded = plans.load(plan, quick, known)
    _guard(results, plan, loaded)
    if only:
        loaded = loaded.only(only)

    from rfx.experiments import runner

    if dry_run:
        return _dry_run(loaded, results, retry_failed, as_json)
    summary = runner.run(loaded, results, jobs, timeout, retry_failed, report=lambda text: click.echo(text, err=True))
    if as_json:
        json.dump(summary.as_dict(), sys.stdout, indent=1)
        click.echo()
    counts = ", ".join(
        f"{summary.count(status)} {status}" for status in ("ok", "failed", "timeout", "interrupted") if summary.count(status)
    )
    tail = f", {summary.not_converged} of them did not converge" if summary.not_converged else ""
    click.echo(f"{summary.plan}: {counts}{tail}, in {results}", err=True)
    if loaded.table:
        click.echo(f"rfx table {loaded.table} --results {results} prints the table", err=True)
    return summary.exit_code


def _guard(results, plan, loaded):
    """Refuse to add rows to, or to lock, the plan or a data file that it names."""
    import os

    from rfx import files

    inputs = [("the plan", plan)] if os.path.isfile(plan) else []
    for name in dict.fromkeys(run[field] for run in loaded.runs for field in ("dataset", "test") if run.get(field)):
        inputs += named("the data set", name)
    for output in (("--results", results), ("the lock of --results,", f"{results}.lock")):
        files.guard(output, inputs)


def _dry_run(loaded, path, retry_failed, as_json):
    from pathlib import Path

    from rfx.experiments import plan as plans
    from rfx.experiments import results, runner

    todo = runner.missing(loaded, results.read(path) if Path(path).exists() else [], retry_failed)
    if as_json:
        json.dump(todo, sys.stdout, indent=1)
        click.echo()
    else:
        for run in todo:
            click.echo(plans.describe(run))
    click.echo(f"{loaded.name}: {len(todo)} of {len(loaded.runs)} runs to do", err=True)
    return 0
