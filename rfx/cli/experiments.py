"""Commands about plans and results: run and reproduce; table, figure, report and compare."""

import contextlib
import functools
import os
import shlex
from pathlib import Path

import click

from rfx import files, methods, papers
from rfx.cli.flags import flags
from rfx.cli.output import BELOW, Progress, print_json, print_rendered, stamp
from rfx.errors import RfxError, UsageError, or_near
from rfx.fitting.options import TIMEOUT
from rfx.options import Option
from rfx.plans import catalogue
from rfx.records import results as results_file
from rfx.records.limits import Limit
from rfx.records.run import STATUSES

PAPERS = click.option(
    "--paper",
    multiple=True,
    metavar="NAME",
    help="Only this paper (repeatable).",
)
CLAIMS = click.option(
    "--claim",
    multiple=True,
    metavar="NAME",
    help="Only this claim (repeatable).",
)
RESULTS = Option(
    "results", str, "CSV file written by rfx run.", default="results.csv", metavar="FILE"
)
# of a command that also has claims, whose rows are in several files
RESULTS_OR_FOLDER = Option(
    "results",
    str,
    "CSV file of rfx run or rfx eval, by default results.csv; for claims, the folder of the papers'"
    " results files, by default results.",
    metavar="FILE|DIR",
)
FOLDER = Option(
    "output", str, "Folder for index.html and figures/.", default="report", metavar="DIR"
)


# ---------------------------------------------------------------------- run


@click.command("run")
@click.argument("plan", required=False)
@flags(
    RESULTS,
    "jobs",
    "scheduler",
    "fail_below",
    click.option(
        "--only",
        multiple=True,
        metavar="NAME=VALUE[,VALUE]",
        help="Run only the rows with this dataset, method, kernel, label, … (repeatable).",
    ),
    Option("quick", bool, "Run the plan's small form.", default=False),
    TIMEOUT.replace(
        help="Stop a run that takes longer and record this in its row.", metavar="SECONDS"
    ),
    "dry_run",
    Option(
        "retry_failed",
        bool,
        "Repeat failed and timed-out runs. Interrupted runs and runs without data are always"
        " repeated.",
        default=False,
    ),
    "json",
    "trace",
    click.option(
        "--log",
        metavar="FILE",
        help="Append progress with timestamps to this file, instead of standard error.",
    ),
    "quiet",
    "list",
    Option("example", bool, "Print an example plan with comments and exit.", default=False),
    scheduler="Run on the workers of a Dask scheduler, or on N local worker processes"
    " (rfx-kernels[distributed]).",
    json="Print the outcome of the plan, with its rows, as JSON.",
    trace="Write the solver's progress of each run to this CSV file, identified by the key of the"
    " run's row.",
    fail_below="Exit with code 5 if the score of a row is worse than this: a number (the plan's"
    " measure, else accuracy or R2), MEASURE=NUMBER such as auc=0.8 or rmse=3, or baseline for the"
    " simple models.",
)
def run(
    plan, results, jobs, scheduler, fail_below, only, quick, timeout, dry_run, retry_failed, json,
    trace, log, quiet, list, example,
):  # fmt: skip
    """Run all rows of PLAN (a name, or a TOML file) that are missing from the results file.

    Each run is a separate process and yields one row. A failed run gets a row with the reason, and
    the others continue. Exit code 0: all done; 3: some failed or did not converge; 4: another rfx
    run holds the results file; 5: a score is worse than --fail-below.
    """
    from rfx.plans import plan as plans

    names = papers.plans()
    if list or example:
        titles = "".join(f"{name:24} {plans.title(name, names)}\n" for name in names)
        click.echo(titles if list else plans.example(), nl=False)
        return 0
    if plan is None:
        raise UsageError(f"which plan? There are {', '.join(names)}, or pass a TOML file")
    pool = None if scheduler is None else _worker_pool(scheduler)
    if trace is not None:
        files.guard(("--trace", trace), [("--results", results)])
    loaded = _load_plan(plan, quick, only, fail_below, trace)
    if dry_run:
        return said_in_advance(loaded, results, retry_failed, trace, json)

    from rfx.runs import runner

    with _report(log) as report, Progress(loaded.name, quiet, report) as progress:
        say = report or progress.say
        how = {"trace": trace, "progress": progress.runs, "pool": pool}
        summary = runner.run(loaded, results, jobs, timeout, retry_failed, say, **how)
        say(f"{summary.plan}: {_outcomes(summary)}, in {summary.results}")
    if json:
        print_json(summary.as_dict(), indent=1)
    if loaded.table and log is None and not quiet:
        command = f"rfx table {loaded.table} --results {shlex.quote(str(results))}"
        click.echo(f"{command} prints the table", err=True)
    code_of_limit = _print_missed(summary.rows, fail_below)
    return summary.exit_code or code_of_limit


def _load_plan(name, quick, only, fail_below, trace):
    """The plan with the runs that --only selects, and the limit and the traces asked for."""
    from rfx.plans import plan as plans

    loaded = plans.load(name, quick, papers.plans())
    if only:
        loaded = loaded.only(only)
    if fail_below is not None:
        Limit.of(fail_below)
        loaded = loaded.with_runs(fail_below=fail_below)
    return loaded if trace is None else loaded.with_runs(trace=True)


def _worker_pool(scheduler: str):
    """What makes a pool of the workers of a scheduler; UsageError for an invalid one."""
    from rfx.distributed import cluster

    cluster.workers_of(scheduler)
    return functools.partial(cluster.pool, scheduler)


def _outcomes(summary) -> str:
    """The number of rows of each status, in words."""
    counts = {status: summary.count(status) for status in STATUSES}
    counts["skipped without data"] = summary.skipped
    words = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    if summary.not_converged:
        words += f", {summary.not_converged} of them did not converge"
    return words or "nothing to do"


def _print_missed(rows, fail_below: str | None) -> int:
    """Print which rows do not reach the limit on standard error, and return the exit code."""
    if fail_below is None:
        return 0
    limit, code = Limit.of(fail_below), 0
    for row in rows:
        missed = limit.missed(row) if row.status == "ok" else None
        if missed:
            click.echo(f"rfx: {row.method} on {row.dataset}, seed {row.seed}: {missed}", err=True)
            code = BELOW
    return code


@contextlib.contextmanager
def _report(log):
    """A function that appends a progress line with a timestamp to the file `log`, which also
    receives errors; None without a file.
    """
    if log is None:
        yield None
        return
    with open(log, "a", encoding="utf-8", errors="replace", buffering=1) as file:
        try:
            yield lambda text: file.write(f"{stamp()} {text}\n")
        except (KeyboardInterrupt, RfxError) as error:
            file.write(f"{stamp()} {str(error) or 'interrupted'}\n")
            raise


def said_in_advance(loaded, path, retry_failed, trace, as_json) -> int:
    """Print the missing runs of a plan."""
    from rfx.plans import plan as plans
    from rfx.runs import runner

    rows = results_file.read(path) if Path(path).exists() else []
    steps = results_file.read_steps(trace or results_file.trace_path(path))
    todo = runner.missing(loaded, rows, retry_failed, steps)
    ready, lines = runner.ahead(loaded, todo)
    if as_json:
        print_json([run.as_dict() for run in todo], indent=1)
    else:
        for run in ready:
            click.echo(plans.describe(run))
    for line in (f"{len(todo)} of {len(loaded.runs)} runs to do", *lines):
        click.echo(f"{loaded.name}: {line}", err=True)
    return 0


# ---------------------------------------------------------------------- reproduce


@click.command("reproduce")
@click.argument("name", required=False)
@flags(
    PAPERS,
    click.option("--quick", "form", flag_value="quick", help="Use the small form of every plan."),
    click.option("--full", "form", flag_value="full", help="Include the plans that take hours."),
    Option("results", str, "Folder for the results files.", default="results", metavar="DIR"),
    FOLDER,
    "jobs",
    "dry_run",
    "force",
    dry_run="Print the plans with their estimated time and memory, and exit.",
)
@click.pass_context
def reproduce(ctx, name, paper, form, results, output, jobs, dry_run, force) -> int:
    """Reproduce the table or figure NAME, such as yen2014-table1: run the missing rows of its plan,
    print the table and draw the figure.

    Without NAME: print all plans of the papers with their estimated time and memory, run them, and
    write the report. Completed runs are not repeated. Plans that take hours need --quick or --full.
    Exit code 0: all done; 1: a plan could not be run; 3: some rows failed or did not converge; 4:
    another rfx run holds the results file.
    """
    if name is not None:
        return _reproduce_one(ctx, name, form, Path(results), jobs, dry_run, force)
    from rfx.reporting.report import page
    from rfx.runs import runner

    folders = papers.folders(paper)
    steps = runner.steps_ahead(folders, form or "most", results)
    for line in runner.announced(steps, jobs):
        click.echo(line, err=not dry_run)
    if dry_run:
        return 0
    code = runner.run_steps(steps, jobs, functools.partial(click.echo, err=True))
    click.echo(page.write(results, output, folders, papers.plans(), force))
    return code


def _reproduce_one(ctx, name, form, folder, jobs, dry_run, force) -> int:
    """Run the plan of one table or figure, with --full also its long rows; print the table and draw
    the figure. UsageError if there is neither, or no plan for them.
    """
    from rfx.runs import runner

    quick = form == "quick" or name.endswith("-quick")
    name, end = name.removesuffix("-quick"), "-quick" if quick else ""
    tables, figures = papers.tables(), papers.figures()
    plan = _plan_of_result(name)
    todo = _plans_to_run(plan, quick, form)
    if dry_run:
        missing = runner.steps_ahead(papers.folders(), "quick" if quick else "full", folder)
        chosen = [step for step in missing if step.plan.name in (plan + end, *todo)]
        click.echo("\n".join(runner.announced(chosen, jobs)))
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    path, code = folder / f"{plan}{end}.csv", 0
    for one in todo:
        code = max(code, ctx.invoke(run, plan=one, results=path, jobs=jobs))
    if name in tables:
        ctx.invoke(table, name=name, results=path)
    if name in figures:
        drawn = str(folder / f"{name}{end}.png")
        ctx.invoke(figure, name=name, results=path, output=drawn, force=force)
    return code


def _plan_of_result(name: str) -> str:
    """The plan of a table or figure; UsageError if there is neither, or no plan for them."""
    plans, tables, figures = papers.plans(), papers.tables(), papers.figures()
    builder = tables.get(name) or figures.get(name)
    plan = catalogue.plan_of(builder, name)
    if builder is None or (plan not in plans and not getattr(builder, "alone", False)):
        near = or_near(name, sorted({*tables, *figures}), "there are")
        raise UsageError(f"no table or figure {name!r:.80} has a plan{near}")
    return plan


def _plans_to_run(plan: str, quick: bool, form: str | None) -> list[str]:
    """A plan in its form, with --full also that of its long rows; none if there is no such plan."""
    plans = papers.plans()
    if plan not in plans:
        return []
    if quick:
        return [f"{plan}-quick"]
    long_rows = f"{plan}-full"
    return [plan, long_rows] if form == "full" and long_rows in plans else [plan]


# ---------------------------------------------------------------------- tables and figures


def _rows(builder, results, trace) -> list:
    """The rows of a results file with their traces; none if there is no builder, or it needs
    none.
    """
    if builder is None or getattr(builder, "alone", False):
        return []
    return results_file.read(results, results_file.chosen(trace, results))


def _judged_claims(results, wanted_papers, wanted_claims) -> list:
    """The papers with their judged claims, from the rows in the folder `results`."""
    from rfx.reporting import claims
    from rfx.reporting.report import page

    folder, folders = page.results_folder(results or "results"), papers.folders(wanted_papers)
    known = [claim.name for one in folders for claim in one.claims]
    for name in wanted_claims:
        if name not in known:
            raise UsageError(f"--claim {name}: there is no such claim{or_near(name, known)}")
    return claims.judged(folders, lambda plan: page.find(folder, plan).rows, wanted_claims)


@click.command("table")
@click.argument("name", required=False)
@flags(
    RESULTS_OR_FOLDER,
    "format",
    "width",
    "trace",
    "setting",
    Option(
        "group_by",
        str,
        "summary: one line for each value of these columns, with mean ± standard deviation.",
        metavar="NAME[,NAME]",
    ),
    Option(
        "mean_over",
        str,
        "summary: like --group-by, but with all varying columns except these, such as seed.",
        metavar="NAME[,NAME]",
    ),
    "list",
)
@PAPERS
@CLAIMS
def table(name, results, format, width, trace, list, paper, claim, **how) -> None:
    """Print the table NAME from the rows of a results file. Every cell is ours / paper, with a dash
    for missing runs.

    `rfx table summary` lists all rows with the columns that vary; --mean-over seed prints means and
    deviations. `rfx table claims` prints a block for each claim of the papers, with its verdict and
    a line for each case; as Markdown and LaTeX a line for each claim.
    """
    from rfx.reporting import claim_tables, tables

    known = papers.tables()
    if list or name is None:
        click.echo("\n".join(sorted([*known, "claims"])))
        return
    if name == "claims":
        found = _judged_claims(results, paper, claim)
        if format == "text":
            click.echo(claim_tables.text(found, width), nl=False)
        else:
            print_rendered(claim_tables.table(found), format)
        return
    if paper or claim:
        raise UsageError(f"--paper and --claim choose claims; rfx table {name} has none: omit them")
    rows = _rows(known.get(name), results or "results.csv", trace)
    print_rendered(tables.build(name, rows, builders=known, **how), format, width)


@click.command("figure")
@click.argument("name", required=False)
@flags(
    RESULTS_OR_FOLDER,
    Option(
        "output",
        str,
        "Output folder, or a file's name with .png, .svg or .pdf, whose base name all files get; by"
        " default this folder.",
        metavar="DIR|FILE",
    ),
    "trace",
    "setting",
    "model",
    "force",
    "list",
    model="Draw the figure importance of this model instead.",
)
@PAPERS
def figure(name, results, output, trace, setting, model, force, list, paper) -> None:
    """Draw the figure NAME from the rows of a results file as PNG, SVG and PDF, with its numbers as
    CSV, and print the file names.

    importance is the figure of a model: rfx figure importance --model m.npz. claims is a figure for
    each paper: the intervals of all cases of its claims against the claimed ranges.

    The CSV contains every point drawn; `rfx table NAME` prints them as a table. The same rows give
    the same files.
    """
    from rfx.reporting import figures

    known = papers.figures()
    if list or name is None:
        click.echo("\n".join([*known, *figures.OF_MODELS, "claims"]))
        return
    if name == "claims":
        drawn = _draw_claims(_judged_claims(results, paper, ()), output, force)
    elif paper:
        raise UsageError(f"--paper chooses the figure claims; rfx figure {name} has none: omit it")
    elif name in figures.OF_MODELS:
        if model is None:
            raise UsageError(f"figure {name} shows a model; pass --model FILE")
        trained = methods.load(model)
        drawn = figures.draw(name, trained, output, None, figures.OF_MODELS, force)
    else:
        rows = _rows(known.get(name), results or "results.csv", trace)
        drawn = figures.draw(name, rows, output, setting, known, force)
    for path in drawn:
        click.echo(path)


def _draw_claims(found, output, force) -> list:
    """Draw the claims of each paper into claims-PAPER.png and so on of the folder `output`."""
    from rfx.reporting import claim_figures, figures

    charts = {}
    for paper, _ in found:
        charts[f"claims-{paper.name}"] = functools.partial(claim_figures.chart, paper)
    folder, paths = os.path.join(output or "", ""), []
    for name, (_, judged) in zip(charts, found):
        paths += figures.draw(name, judged, folder, None, charts, force)
    return paths


@click.command("report")
@click.argument("file", required=False, metavar="[FILE.csv]")
@flags(
    PAPERS,
    Option(
        "results",
        str,
        "Folder of the papers' results files, PLAN.csv and PLAN-quick.csv.",
        default="results",
        metavar="DIR",
    ),
    FOLDER,
    "force",
)
def report(file, paper, results, output, force) -> None:
    """Write the page DIR/index.html and print its name.

    With FILE.csv, the results of your own experiments: mean and deviation over seeds for each data
    set, paired tests, ranks over the data sets, figures, and problems.

    Without FILE.csv: every table and figure of the papers, next to the published values. They are
    built from results files and their traces: PLAN.csv, or PLAN-quick.csv if the former has no
    valid row. The page lists missing runs and the commands to run them.

    Figures are stored next to the page as PNG, SVG and PDF, with their numbers as CSV.
    """
    from rfx.reporting.report import page

    if file is not None:
        path = page.write_experiment(file, output, force)
    else:
        path = page.write(results, output, papers.folders(paper), papers.plans(), force)
    click.echo(path)


@click.command("compare")
@click.argument("a", metavar="A.csv")
@click.argument("b", metavar="B.csv")
@flags("format", "width")
def compare(a, b, format, width) -> None:
    """Print scores and training seconds of the runs in both results files, and their differences.

    Runs are matched by their keys, or else by all their inputs. `rfx table summary --group-by`
    compares runs within one file.
    """
    from rfx.reporting import tables

    both = results_file.read(a), results_file.read(b)
    print_rendered(tables.compare(*both), format, width)
