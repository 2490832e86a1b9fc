"""rfx run: the missing rows of a plan."""

import contextlib
import dataclasses
import functools
import json
import os
import shlex
import sys
from pathlib import Path

import click

from rfx import files, papers
from rfx.cli.common import Count, complete_plan, named
from rfx.cli.progress import Progress, quiet_option, stamp
from rfx.errors import DataError, RfxError, UsageError
from rfx.fitting.options import TIMEOUT
from rfx.records import results, traces


@click.command("run", short_help="Run the missing rows of a plan, one process per row; resumable.")
@click.argument("plan", required=False, shell_complete=complete_plan)
@click.option(
    "--results",
    default="results.csv",
    show_default=True,
    help="CSV file to append the rows to.",
)
@click.option(
    "--jobs",
    type=Count(),
    metavar="COUNT",
    default=1,
    show_default=True,
    help="Simultaneous runs. They share the cores, so times are comparable only with 1.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS|local[:N]",
    help=(
        "Run on the workers of a Dask scheduler, or on N local worker processes"
        " (rfx-kernels[distributed])."
    ),
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME=VALUE[,VALUE]",
    help="Run only the rows with this dataset, method, kernel, label, … (repeatable).",
)
@click.option("--quick", is_flag=True, help="Run the plan's small form.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    help="Stop a run that takes longer and record this in its row.",
)
@click.option("--dry-run", "only_said", is_flag=True, help="Print the missing runs and exit.")
@click.option(
    "--retry-failed",
    is_flag=True,
    help=(
        "Repeat failed and timed-out runs. Interrupted runs and runs without data are always"
        " repeated."
    ),
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the outcome of the plan, with its rows, as JSON."
)
@click.option(
    "--trace",
    metavar="FILE",
    help=(
        "Write the solver's progress of each run to this CSV file, identified by the key of the"
        " run's row."
    ),
)
@click.option(
    "--log",
    metavar="FILE",
    help="Append progress with timestamps to this file, instead of standard error.",
)
@quiet_option
@click.option("--list", "as_list", is_flag=True, help="List the built-in plans and exit.")
@click.option("--example", is_flag=True, help="Print an example plan with comments and exit.")
def command(
    plan,
    results,
    jobs,
    scheduler,
    only,
    quick,
    timeout,
    only_said,
    retry_failed,
    as_json,
    trace,
    log,
    quiet,
    as_list,
    example,
):
    """Run all rows of PLAN (a name, or a TOML file) that are missing from the results file.

    Each run is a separate process and yields one row. A failed run gets a row with the reason, and
    the others continue. Exit code 0: all done; 3: some failed or did not converge; 4: another rfx
    run holds the results file.
    """
    from rfx.plans import plan as plans

    known = papers.plans()

    if as_list:
        for name in known:
            click.echo(f"{name:24} {plans.title(name, known)}")
        return 0
    if example:
        click.echo(plans.example(), nl=False)
        return 0
    timeout = None if timeout is None else TIMEOUT.convert(timeout)
    if plan is None:
        raise UsageError(f"which plan? There are {', '.join(known)}, or pass a TOML file")
    pool = _pool(jobs, scheduler)
    loaded = plans.load(plan, quick, known)
    _guard(
        plan,
        loaded,
        ("--results", results),
        ("the lock of --results,", f"{results}.lock"),
        *_given(("--log", log), ("--trace", trace)),
    )
    if only:
        loaded = loaded.only(only)

    if trace is not None:
        loaded = dataclasses.replace(
            loaded, runs=[dataclasses.replace(run, trace=True) for run in loaded.runs]
        )
    if only_said:
        return dry_run(loaded, results, retry_failed, trace, as_json)

    from rfx.runs import runner

    with _report(log) as report, Progress(loaded.name, quiet, report if log else None) as progress:
        say = report if log else (lambda text: None) if quiet else progress.say
        summary = runner.run(
            loaded,
            results,
            jobs,
            timeout,
            retry_failed,
            say,
            trace=trace,
            progress=progress.runs,
            pool=pool,
        )
        say(_in_words(summary))
    if as_json:
        json.dump(summary.as_dict(), sys.stdout, indent=1)
        click.echo()
    if loaded.table and log is None and not quiet:
        click.echo(
            f"rfx table {loaded.table} --results {shlex.quote(str(results))} prints the table",
            err=True,
        )
    return summary.exit_code


def _pool(jobs, scheduler):
    """The pool of a scheduler's workers; None for this machine."""
    if scheduler is None:
        return None
    from rfx.distributed import cluster
    from rfx.distributed.pool import pool

    cluster.workers_of(scheduler)
    if jobs > 1:
        raise UsageError(
            "--jobs applies to this machine only; with --scheduler, the workers' threads set the"
            " number of simultaneous runs"
        )
    return functools.partial(pool, scheduler)


def _given(*outputs):
    return [(name, path) for name, path in outputs if path is not None]


def _in_words(summary) -> str:
    found = {status: summary.count(status) for status in results.STATUSES}
    found["skipped without data"] = summary.skipped
    counts = ", ".join(f"{n} {status}" for status, n in found.items() if n) or "nothing to do"
    tail = f", {summary.not_converged} of them did not converge" if summary.not_converged else ""
    return f"{summary.plan}: {counts}{tail}, in {summary.results}"


@contextlib.contextmanager
def _report(log):
    """A function that writes a progress line to standard error, or appends it with a timestamp to
    the file `log`; log files also receive errors.
    """
    if log is None:
        yield lambda text: click.echo(text, err=True)
        return

    try:
        file = open(log, "a", encoding="utf-8", errors="replace", buffering=1)
    except OSError as error:
        raise DataError(f"--log {log} can't be written: {error.strerror}") from error
    with file:

        def report(text):
            file.write(f"{stamp()} {text}\n")

        try:
            yield report
        except KeyboardInterrupt:
            report("interrupted")
            raise
        except RfxError as error:
            report(error)
            raise


def _guard(plan, loaded, *outputs):
    """Raise an error if an output or a lock is the plan or one of its data files."""
    inputs = [("the plan", plan)] if os.path.isfile(plan) else []
    for name in dict.fromkeys(
        name for run in loaded.runs for name in (run.dataset, run.test) if name
    ):
        inputs += named("the data set", name)
    for number, output in enumerate(outputs):
        files.guard(output, [*inputs, *outputs[:number]])


def dry_run(loaded, path, retry_failed, trace, as_json):
    from rfx.plans import plan as plans
    from rfx.runs import runner

    rows = results.read(path) if Path(path).exists() else []
    todo = runner.missing(loaded, rows, retry_failed, traces.read(trace or traces.beside(path)))
    if as_json:
        json.dump([run.as_dict() for run in todo], sys.stdout, indent=1)
        click.echo()
    else:
        for run in todo:
            click.echo(plans.describe(run))
    _, (first, *more), _ = runner.ahead(loaded, todo, rows)
    said = first.removeprefix(f"{len(todo)} to do")
    click.echo(f"{loaded.name}: {len(todo)} of {len(loaded.runs)} runs to do{said}", err=True)
    for line in more:
        click.echo(f"{loaded.name}: {line}", err=True)
    return 0
