"""Execute runs, each in a separate process, and append their rows to the results file; and
reproduce everything: list the papers' plans with their requirements, and run one after another.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rfx import env, lazy
from rfx.data import registry
from rfx.errors import ClusterError, RfxError
from rfx.fitting.progress import ProgressReport
from rfx.plans import catalogue
from rfx.plans.plan import Plan, describe, load, small
from rfx.records import keys, results
from rfx.records.run import COLUMNS, STATUSES, Result, Run, seconds_train
from rfx.runs.child import NO_DATA, STEP
from rfx.types import JsonObject

# ----------------------------------------------------------------------
# A run in a separate process: start it, receive its steps, end it in time, and turn its ending into
# a result; and the pool of such processes on this machine.

COMMAND = (sys.executable, "-m", "rfx.runs.child")
NAP = 0.02  # seconds between two checks of a run
_LONGEST = 2000  # maximum characters of a message
# Options with a column, and the types of that column: lam = "validation" is a request, and the
# column has the resulting number.
_OPTION_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "kernel": str,
    "solver": str,
    "lam": (int, float),
    "n_features": int,
}


@dataclass(frozen=True)
class Ending:
    """The ending of a run.

    Parameters
    ----------
    answer : dict or None
        Its output; None unless it is complete.
    crash : str or None
        A sentence about its end if there is no output.
    timeout : float or None
        The exceeded time limit in seconds.
    peak_mb : float or None
        Its peak memory, in MiB.
    seconds : float or None
        Elapsed seconds.
    worker, host : str or None
        The address and the machine of its worker.
    """

    answer: JsonObject | None = None
    crash: str | None = None
    timeout: float | None = None
    peak_mb: float | None = None
    seconds: float | None = None
    worker: str | None = None
    host: str | None = None


class Child:
    """One run: a process in its own session, so that Ctrl-C reaches only the parent, which then
    ends it.

    `job` is the input of the child, as JSON; `timeout` the time limit in seconds.
    """

    def __init__(self, job: dict, timeout: float | None = None, command=None):
        self.timeout, self.started, self.timed_out = timeout, time.monotonic(), False
        self.report: ProgressReport | None = None
        self.peak_mb: float | None = None
        # Unnamed files: nothing is left behind when the parent is killed.
        self.answer, self.printed, self.reports = (tempfile.TemporaryFile() for _ in range(3))
        passed = self.answer.fileno(), self.reports.fileno()
        options = ["--fd", passed[0], "--tell", passed[1], "--parent", os.getpid()]
        self.process = subprocess.Popen(
            [*(command or COMMAND), json.dumps(job), *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=self.printed,
            stderr=subprocess.STDOUT,
            pass_fds=passed,
            start_new_session=True,
        )

    def heard(self) -> ProgressReport | None:
        """The last report of its training."""
        with suppress(ValueError):
            entries = json.loads(os.pread(self.reports.fileno(), STEP, 0))
            self.report = ProgressReport.of_dict(entries)
        return self.report

    def finished(self) -> bool:
        if self.process.returncode is None:
            self._reap(os.WNOHANG)
        late = self.timeout and time.monotonic() - self.started > self.timeout
        if late and self.process.returncode is None:
            self.timed_out = True
            self.kill()
        return self.process.returncode is not None

    def _reap(self, flags):
        # wait4 instead of Popen.wait: it returns the peak memory of a run that can no longer report
        # it.
        try:
            pid, status, usage = os.wait4(self.process.pid, flags)
        except ChildProcessError:
            # Started by a process that ignores SIGCHLD: the kernel has reaped it, and its row has
            # the outcome.
            self.process.returncode = 0
            return
        if pid:
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.peak_mb = usage.ru_maxrss / 1024

    def kill(self):
        if self.process.returncode is None:
            # Back ends have their own sessions, and detect their parent's death only after
            # start-up.
            with suppress(lazy.psutil.NoSuchProcess):
                process = lazy.psutil.Process(self.process.pid)
                for one in (process, *process.children(recursive=True)):
                    with suppress(lazy.psutil.NoSuchProcess):
                        one.kill()
            self._reap(0)

    def ending(self) -> Ending:
        """The ending of a finished run."""
        answer = None
        with suppress(ValueError):
            self.answer.seek(0)
            answer = json.loads(self.answer.read())
        late = self.timeout if self.timed_out else None
        seconds = time.monotonic() - self.started
        return Ending(answer, None if answer else self._crash(), late, self.peak_mb, seconds)

    def _crash(self) -> str:
        self.printed.seek(max(0, self.printed.seek(0, os.SEEK_END) - 4096))
        lines = self.printed.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        code = self.process.returncode
        text = f"the run's process ended with code {code} and no row"
        if code < 0:
            text = f"the run's process was killed by signal {-code}"
        if code == -signal.SIGKILL:
            text += " (SIGKILL), probably because memory ran out"
        return f"{text}; its last output: {last[:200]}" if last else text


@dataclass(frozen=True)
class Way:
    """How each run is executed. timeout: seconds, unless the run has its own; command: the child's
    command line.
    """

    timeout: float | None = None
    command: list | None = None

    def child(self, run: Run, threads: int | None = None, key: str | None = None) -> Child:
        """Begin a run.

        Parameters
        ----------
        run : Run
        threads : int, optional
            Default number of threads of a run.
        key : str, optional
            The run's key as requested: it fails if its data differs here.
        """
        job = replace(run, timeout=None, threads=run.threads or threads).as_dict()
        return Child(job | ({"key": key} if key else {}), self.timeout or run.timeout, self.command)


class Local:
    """`jobs` local processes at a time, which share the cores; `rfx.distributed.cluster` has the
    same interface on Dask workers.

    Not a local Dask cluster, which takes seconds to start and needs distributed: rfx's required
    dependencies are enough.

    take(todo): start as many runs as possible, removing them from the list. ended(): (run, result)
    of each run that has ended since, one by one, so that a row is written before the next is
    requested. at_work(): each running run, and its last report, None before any.
    close(): end everything at once; return the runs in progress.
    """

    def __init__(self, jobs: int, way: Way):
        self.jobs, self.way = jobs, way
        self.children: list[tuple[Run, Child]] = []

    def at_work(self) -> list[tuple[Run, ProgressReport | None]]:
        return [(run, child.heard()) for run, child in self.children]

    def take(self, todo: list[Run]) -> None:
        threads = max(1, env.threads() // self.jobs) if self.jobs > 1 else None
        while todo and len(self.children) < self.jobs:
            run = todo.pop(0)
            self.children.append((run, self.way.child(run, threads)))

    def ended(self) -> Iterator[tuple[Run, Result]]:
        for run, child in list(self.children):
            if child.finished():
                self.children.remove((run, child))
                yield run, result_of(run, child.ending())

    def close(self) -> list[Run]:
        for _, child in self.children:
            child.kill()
        runs = [run for run, _ in self.children]
        self.children = []
        return runs


# ---------------------------------------------------------------------- results


def result_of(run: Run, ending: Ending) -> Result:
    """The result of a run with this ending: the one it wrote, or one with the reason why there is
    none.

    For a run on a worker, params also has `host`, the name of its machine.
    """
    answer = ending.answer or {}
    host = {} if ending.host is None else {"host": ending.host}
    params = (answer.get("params") or {}) | host
    status = answer.get("status", "failed")
    message = answer.get("message", ending.crash)
    if ending.timeout is not None:
        status = "timeout"
        message = f"not finished within {ending.timeout:g} seconds"
    if status == "ok":
        columns = {name: answer[name] for name in COLUMNS if answer.get(name) is not None}
        asked, options = _asked(run)
        columns["params"] = options | {"seconds_process": ending.seconds} | params
        columns |= {"key": keys.key(run), "steps": answer.get("trace") or None}
        return Result(**(asked | columns))
    row = failure(run, status, message or "", ending.peak_mb, **params)
    if not host:
        return row
    # BLAS and processor are those of this machine, which did not run it
    message = f"worker {ending.worker} on {ending.host}: {row.message}"[:_LONGEST]
    return replace(row, blas=None, cpu=None, message=message)


def failure(
    run: Run, status: str, message: str, peak_mb: float | None = None, **params: object
) -> Result:
    """The result of a run without an answer; params: entries in addition to those of the run."""
    columns, options = _asked(run)
    columns |= env.describe() | {"key": keys.key(run), "peak_rss_mb": peak_mb}
    columns |= {"status": status, "message": message[:_LONGEST], "params": options | params}
    return Result(**columns)


def _asked(run: Run) -> tuple[JsonObject, JsonObject]:
    """The columns of a run, and the entries of its params."""
    names = ("dataset", "split", "method", "seed", "threads")
    options = {
        name: value
        for name, value in run.options.items()
        if isinstance(value, _OPTION_COLUMNS.get(name, ()))
    }
    params = {name: value for name, value in run.options.items() if name not in options}
    return {name: getattr(run, name) for name in names} | options, params | run.told()


def _pair(run: Run) -> tuple[int, str, str]:
    """What runs have in common that are timed one directly after the other."""
    return run.seed, run.dataset, str(run.label)


# ----------------------------------------------------------------------
# The runner: executes a plan's missing runs, each in a separate process, locally or in a pool, and
# appends a row for each.
#
# A row is on the disk before the next run starts, so that no result is lost however the runner
# ends; the next call continues with the missing rows.


@dataclass
class Summary:
    """The outcome of a plan: `rows` are the newest rows of its runs, `ran` of them from this call,
    `total` requested.
    """

    plan: str
    results: str
    total: int
    ran: int = 0
    rows: list[Result] = field(default_factory=list)
    # runs without a row because their data is unavailable
    without: int = 0

    def count(self, status) -> int:
        """The number of runs with this status; those without data are skipped, not failed."""
        return sum(row.status == status and not no_data(row) for row in self.rows)

    @property
    def skipped(self) -> int:
        """The runs with unavailable data."""
        return self.without + sum(map(no_data, self.rows))

    @property
    def not_converged(self) -> int:
        return sum(row.status == "ok" and row.converged is False for row in self.rows)

    @property
    def exit_code(self) -> int:
        """0 if every run of the plan has a row that is ok and converged, else 3."""
        return 0 if self.count("ok") == self.total and not self.not_converged else 3

    def as_dict(self) -> dict:
        counts = {status: self.count(status) for status in STATUSES}
        return {
            "plan": self.plan,
            "results": self.results,
            "total": self.total,
            "ran": self.ran,
            **counts,
            "skipped": self.skipped,
            "not_converged": self.not_converged,
            "exit_code": self.exit_code,
            "rows": [row.as_dict() for row in self.rows],
        }


def no_data(row: Result) -> bool:
    """Whether a run has no result because its data was unavailable."""
    return row.params.error == NO_DATA


def _names_of_data(run: Run) -> set[str]:
    """The data sets of a run, or what stands in their place, without the settings after a colon."""
    return {str(name).partition(":")[0] for name in (run.dataset, run.test)}


def ahead(plan: Plan, todo: list[Run], here: bool = True) -> tuple[list[Run], list[str]]:
    """Messages before the first run: (the runs that can be executed, lines).

    here: the data is read on this machine, so its availability is checked here.
    """
    sets = [_names_of_data(run) for run in todo]
    named = {name for name in set().union(*sets) if here and registry.has(name)}
    absent = {name for name in named if not registry.is_obtainable(name)}
    ready = [run for run, names in zip(todo, sets) if not names & absent]
    lines = [*plan.notes]
    for name in sorted(absent):
        obtain = registry.get(name).obtain or f"see rfx fetch {name}"
        skipped = _runs(sum(name in names for names in sets))
        lines.append(f"{name}: {skipped} skipped; its data must be obtained by hand: {obtain}")
    return ready, lines


def _runs(count: int) -> str:
    return f"{count:,} run{'s' * (count != 1)}"


def missing(
    plan: Plan,
    rows: list[Result],
    retry_failed: bool = False,
    traced=(),
    names: list[str] | None = None,
) -> list[Run]:
    """The runs of `plan` to execute, given the existing rows, and the keys of the traced runs.

    names: the keys of the plan's runs, if known.

    A successful run is not repeated, unless a requested trace or timing of it is missing. A run
    that was interrupted, has no status, or had unavailable data is always repeated; any other
    failure or timeout only with `retry_failed`, because it would probably fail again.
    """
    names = _keys(plan) if names is None else names
    found = keys.rows_of(names, rows)

    def settled(run, row):
        if row.status == "ok":
            timed = not run.timings or row.params.least_seconds_cpu is not None
            return timed and (not run.trace or row.key in traced)
        return not (row.status in (None, "interrupted") or no_data(row) or retry_failed)

    return [
        run
        for run, name in zip(plan.runs, names)
        if name not in found or not settled(run, found[name])
    ]


def _keys(plan: Plan) -> list[str]:
    return [keys.key(run) for run in plan.runs]


def run(
    plan: Plan,
    path,
    jobs=1,
    timeout=None,
    retry_failed=False,
    report=lambda text: None,
    command=None,
    trace=None,
    progress=None,
    pool=None,
) -> Summary:
    """Execute the missing runs of `plan`, `jobs` at a time, and append their rows to the results
    file `path`.

    Parameters
    ----------
    plan : Plan
    path : path
        The results file.
    jobs : int
        Simultaneous runs on this machine.
    timeout : float, optional
        Seconds for each run; overrides the plan's own.
    retry_failed : bool
        Repeat runs whose rows report a failure or timeout.
    report : callable
        Receives one line per run.
    command : list of str, optional
        The child's command line, to which the run is appended as JSON.
    trace : path, optional
        The file for the traces of the runs that request one; by default next to the results.
    progress : callable, optional
        Called with (done, total, runs) when runs begin, progress and end; runs: (description, last
        `ProgressReport` or None) for each running run.
    pool : callable, optional
        Receives a `process.Way` and `report`, and returns the context manager of the pool that
        executes the runs, such as that of `rfx.distributed.cluster`; by default this machine's.

    Raises
    ------
    LockedError
        When another runner holds `path`.
    ClusterError
        If the pool's workers are unavailable.
    KeyboardInterrupt
        After Ctrl-C or SIGTERM, when the running runs have been ended and have rows that state
        this.
    """
    with results.exclusive(path), env.terminate_as_interrupt():
        rows = results.read(path) if Path(path).exists() else []
        trace = trace or results.trace_path(path)
        asked = any(run.trace for run in plan.runs)
        if asked:
            results.TRACES.check(trace)
        names = _keys(plan)
        todo = missing(plan, rows, retry_failed, results.read_steps(trace) if asked else (), names)
        done = len(plan.runs) - len(todo)
        ready, lines = ahead(plan, todo, pool is None)
        counts = f"{len(plan.runs)} runs, {done} have a row in {path}, {len(todo)} to do"
        for line in (counts, *lines):
            report(f"{plan.name}: {line}")
        without = len(todo) - len(ready)
        if ready:
            way = Way(timeout, command)
            if any(run.timings for run in ready):
                ready.sort(key=_pair)
            with pool(way, report) if pool else closing(Local(jobs, way)) as there:
                desk = _Desk(there, path, trace, report, progress)
                desk.work(ready)
                without += desk.without
            # a file of rows that has changed meanwhile changed their keys too
            rows = results.read(path) if Path(path).exists() else []
            names = _keys(plan)
        return Summary(
            plan.name,
            str(path),
            len(plan.runs),
            len(todo) - without,
            list(keys.rows_of(names, rows).values()),
            without,
        )


class _Desk:
    """Connects a pool, which executes runs, with the files: only this class writes rows."""

    def __init__(self, pool, path, trace, report, progress=None):
        self.pool, self.path, self.trace = pool, path, trace
        self.report, self.progress = report, progress
        self.done = self.total = 0
        # runs without a row, because their data is unavailable: it is asked for once per call,
        # because downloads are retried for long
        self.without = 0

    def work(self, todo):
        self.total, todo = len(todo), list(todo)
        try:
            while self.done < self.total:
                self.pool.take(todo)
                self.tell()
                done = self.done
                for run, row in self.pool.ended():
                    self.write(run, row)
                    if no_data(row):
                        self.leave_out(run, todo)
                if self.done == done:
                    time.sleep(NAP)
        except KeyboardInterrupt:
            with suppress(ClusterError):
                for run, row in self.pool.ended():
                    self.write(run, row)
            for run in self.pool.close():
                self.write(run, failure(run, "interrupted", "interrupted while it ran"))
            raise

    def leave_out(self, run: Run, todo: list[Run]) -> None:
        """Skip the runs with the same unavailable data."""
        before = len(todo)
        todo[:] = [one for one in todo if (one.dataset, one.test) != (run.dataset, run.test)]
        if skipped := before - len(todo):
            self.without += skipped
            self.done += skipped
            self.tell()
            self.report(
                f"[{self.done}/{self.total}] {run.dataset}: {_runs(skipped)} more skipped, which"
                " need the same data"
            )

    def tell(self):
        if self.progress is not None:
            runs = [(describe(run), report) for run, report in self.pool.at_work()]
            self.progress(self.done, self.total, runs)

    def write(self, run: Run, row: Result) -> None:
        if row.steps:
            # Before the row: a run that has one is not repeated.
            results.append_steps(self.trace, keys.key(run), row.steps)
        results.append(self.path, row)
        self.done += 1
        self.tell()
        self.report(f"[{self.done}/{self.total}] {describe(run)}: {_in_words(row)}")


def _in_words(row: Result) -> str:
    """The progress text of a result."""
    if row.status != "ok":
        return f"{row.status}: {row.message}"
    words = []
    if row.score is not None:
        words.append(f"{row.metric or 'score'} {row.score:.4g}")
    elif row.params.train_score is not None:
        metric = "rmse" if row.task == "regression" else "accuracy"
        words.append(f"{metric} {row.params.train_score:.4g} on the training rows")
    if row.model_size is not None:
        words.append(f"size {row.model_size}")
    seconds = seconds_train(row)
    if seconds is not None:
        words.append(f"{seconds:.3g} s")
    if row.peak_rss_mb is not None:
        words.append(f"{row.peak_rss_mb:.0f} MB")
    if row.converged is False:
        words.append("did not converge")
    if row.no_better:
        words.append("no better than a constant")
    return ", ".join(words) or "ok"


# ----------------------------------------------------------------------
# Reproduce everything with one command: list the plans with their requirements and estimated time,
# then run one plan after another, resumable.
#
# The cost of a plan is read from `costs.csv` of its paper's folder: processor seconds and memory,
# measured or estimated as stated there.


@dataclass(frozen=True)
class Cost:
    """The cost of a form of a plan: processor seconds of all its runs, memory of the largest in
    MiB, and the basis of these numbers.

    hours: it runs only in the form "full".
    """

    seconds: float
    memory_mb: float
    basis: str
    hours: bool = False


@dataclass(frozen=True)
class Step:
    """A plan to run: its results file, the missing runs, and their requirements.

    without: why it is skipped; by_hand: data sets that neither a URL nor a mirror provides.
    """

    plan: Plan
    path: Path
    todo: list[Run]
    cost: Cost
    seconds: float
    without: str
    datasets: list[str]
    by_hand: list[str]


@dataclass(frozen=True)
class _CostLine:
    """The cells of a line of `costs.csv`."""

    plan: str
    form: str
    processor_seconds: str
    memory_mb: str
    basis: str
    hours: str


def costs(folder: catalogue.Folder) -> dict[tuple[str, str], Cost]:
    """The costs of the plans of a paper, by (plan, "quick" or "full")."""
    text = folder.costs.read_text(encoding="utf-8") if folder.costs.is_file() else ""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    known = {}
    for row in csv.DictReader(lines):
        line = _CostLine(**row)
        seconds = float(line.processor_seconds)
        memory_mb = float(line.memory_mb)
        cost = Cost(seconds, memory_mb, line.basis, line.hours == "yes")
        known[f"{folder.name}-{line.plan}", line.form] = cost
    return known


def steps_ahead(folders: list[catalogue.Folder], form: str, place) -> list[Step]:
    """Every plan of the papers in that form, its runs without a row in PLACE/PLAN.csv or
    PLAN-quick.csv, and their requirements.

    form: "quick", the small forms; "full", all runs; "most", all except the plans that take hours.
    """
    steps = []
    for folder in folders:
        known = costs(folder)
        for name in folder.plans:
            step = _step(name, folder, form, Path(place), known)
            if step is not None:
                steps.append(step)
    return steps


def _step(name, folder, form, place, known) -> Step | None:
    quick = form == "quick"
    base = name.removesuffix("-full")
    wanted = small(name, folder.plans) if quick else load(name, False, folder.plans)
    if wanted is None or (quick and base != name):
        return None
    path = place / f"{base if base in folder.plans else name}{'-quick' if quick else ''}.csv"
    rows = results.read(path) if path.exists() else []
    todo = missing(wanted, rows, False, results.read_steps(results.trace_path(path)))
    cost = known.get((name, "quick" if quick else "full"))
    if cost is None:
        # of a plan without a line in costs.csv: seconds for each run, and the memory of all imports
        cost = Cost(5.0 * len(wanted.runs), 400.0, "not measured")
    datasets = list(dict.fromkeys(run.dataset.partition(":")[0] for run in todo))
    by_hand = [one for one in datasets if registry.has(one) and not registry.is_obtainable(one)]
    ready = [run for run in todo if run.dataset.partition(":")[0] not in by_hand]
    without = _obstacle(cost, form, [] if ready else by_hand)
    seconds = cost.seconds * len(ready) / max(1, len(wanted.runs))
    return Step(wanted, path, todo, cost, seconds, without, datasets, by_hand)


def _obstacle(cost: Cost, form: str, missing_data: list[str]) -> str:
    """Why a plan of this cost can't be run, in words; empty if it can.

    missing_data: the data sets of all its runs, if no run can be executed without a download by
    hand.
    """
    free = env.available_memory_mb()
    if cost.memory_mb > free:
        return f"it needs {cost.memory_mb:,.0f} MB of memory, but {free:,.0f} MB are free"
    if cost.hours and form == "most":
        return "it takes hours; use make reproduce-full"
    if missing_data:
        return f"its data must be obtained by hand; see rfx fetch {' '.join(missing_data)}"
    return ""


def minutes(steps: list[Step], jobs: int) -> float:
    """Estimated minutes on this machine when idle: processor seconds divided by the cores used."""
    cores = max(1, min(jobs, env.threads()))
    return sum(step.seconds for step in steps if not step.without) / cores / 60


def announced(steps: list[Step], jobs: int) -> list[str]:
    """The plans to run with their estimated time and requirements, and the skipped ones with the
    reason: lines to print beforehand.
    """
    lines = [f"{'plan':24} {'runs':>6} {'about':>9} {'memory':>9}  basis, data sets"]
    for step in steps:
        name = f"{step.plan.name:24} {len(step.todo):>6,}"
        if step.without:
            lines.append(f"{name} skipped: {step.without}")
            continue
        about = f"{step.seconds / 60:,.1f} min" if step.todo else "-"
        hand = f"; by hand: {', '.join(step.by_hand)}" if step.by_hand else ""
        lines.append(
            f"{name} {about:>9} {step.cost.memory_mb:>6,.0f} MB  {step.cost.basis}:"
            f" {', '.join(step.datasets) or 'all is done'}{hand}"
        )
    total = sum(len(step.todo) for step in steps if not step.without)
    lines.append(
        f"{total:,} runs, {jobs} at a time: about {minutes(steps, jobs):,.0f} minutes on this"
        " machine when it is idle (processor minutes divided by the cores used; measured here, or"
        " estimated from another machine). Press Ctrl-C to stop; the same command resumes."
    )
    return lines


def run_steps(steps: list[Step], jobs: int, say) -> int:
    """Run the missing rows plan by plan; return 0, or 3 if a row failed or did not converge.

    Plans that compare threads run alone, one run at a time. If a plan can't be run, this is printed
    and the next one begins; the result is then 1.
    """
    code = 0
    for step in steps:
        if step.without:
            continue
        alone = any(one.fixed_threads for one in step.plan.runs)
        try:
            summary = run(step.plan, step.path, 1 if alone else jobs, report=say)
        except RfxError as error:
            if error.exit_code == 4:
                raise
            say(f"{step.plan.name}: {error}")
            code = 1
            continue
        code = code or summary.exit_code
    return code
