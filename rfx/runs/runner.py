"""The runner: executes a plan's missing runs, each in a separate process, locally or in a pool, and
appends a row for each.

A row is on the disk before the next run starts, so that no result is lost however the runner ends;
the next call continues with the missing rows.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rfx import interrupts
from rfx.data.registry import registry
from rfx.data.registry.fetch import is_obtainable
from rfx.errors import ClusterError
from rfx.plans.plan import Plan, describe
from rfx.records import keys, results, traces
from rfx.records.result import Result
from rfx.records.run import Run
from rfx.runs import endings, pools
from rfx.runs.child import NO_DATA
from rfx.runs.estimate import Estimate
from rfx.runs.process import NAP


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
        counts = {status: self.count(status) for status in results.STATUSES}
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
    return row.params.get("error") == NO_DATA


def by_hand(runs: Iterable[Run]) -> dict[str, str]:
    """The data sets of some runs that are neither present nor downloadable, each with
    instructions.
    """
    names = {name.partition(":")[0] for run in runs for name in (run.dataset, run.test) if name}
    return {
        name: registry.get(name).obtain or f"see rfx fetch {name}"
        for name in sorted(names)
        if registry.has(name) and not is_obtainable(name)
    }


def _needs(run: Run, names: Iterable[str]) -> str | None:
    """The data sets that a run needs among these."""
    own = {name.partition(":")[0] for name in (run.dataset, run.test) if name}
    return next((name for name in names if name in own), None)


def ahead(
    plan: Plan, todo: list[Run], rows: Iterable[Result], jobs: int = 1, here: bool = True
) -> tuple[list[Run], list[str], Estimate]:
    """Messages before the first run: (the runs that can be executed, lines, the estimate).

    here: the data is read on this machine, so its availability is checked here.
    """
    absent = by_hand(todo) if here else {}
    groups: dict[str, list[Run]] = {}
    for run in todo:
        if (name := _needs(run, absent)) is not None:
            groups.setdefault(name, []).append(run)
    out = {id(run) for own in groups.values() for run in own}
    made = [run for run in todo if id(run) not in out]
    estimate = Estimate(row for row in rows)
    lines = [f"{len(todo)} to do{estimate.words(made, jobs, plan.has_quick)}"]
    lines += plan.notes
    lines += [
        f"{name}: {_runs(len(own))} skipped; its data must be obtained by hand: {absent[name]}"
        for name, own in groups.items()
    ]
    return made, lines, estimate


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

    A successful run is not repeated, unless a requested trace of it is missing. A run that was
    interrupted, has no status, or had unavailable data is always repeated; any other failure or
    timeout only with `retry_failed`, because it would probably fail again.
    """
    names = _keys(plan) if names is None else names
    found = keys.rows_of(names, rows)

    def settled(run, row):
        if row.status == "ok" and run.trace and row.key not in traced:
            return False
        again = row.status in (None, "interrupted") or no_data(row) or retry_failed
        return row.status == "ok" or not again

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
        step of its solver, see rfx.fitting.callbacks, or None) for each running run.
    pool : callable, optional
        Receives a `pools.Way` and `report`, and returns the context manager of the pool that
        executes the runs, such as that of `rfx.distributed.pool`; by default this machine's.

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
    with results.exclusive(path), interrupts.terminate_as_interrupt():
        rows = results.read(path) if Path(path).exists() else []
        trace = trace or traces.beside(path)
        asked = any(run.trace for run in plan.runs)
        if asked:
            traces.check(trace)
        names = _keys(plan)
        todo = missing(plan, rows, retry_failed, traces.read(trace) if asked else (), names)
        done = len(plan.runs) - len(todo)
        ready, (first, *more), estimate = ahead(plan, todo, rows, jobs, pool is None)
        report(f"{plan.name}: {len(plan.runs)} runs, {done} have a row in {path}, {first}")
        for line in more:
            report(f"{plan.name}: {line}")
        without = len(todo) - len(ready)
        if ready:
            way = pools.Way(timeout, command, tells=progress is not None)
            with pool(way, report) if pool else pools.local(jobs, way) as there:
                desk = _Desk(there, path, trace, report, progress)
                desk.estimate, desk.jobs = (None if pool else estimate), jobs
                desk.work(ready)
                without += desk.without
            # a file of rows that has changed meanwhile changed their keys too
            rows, names = results.read(path) if Path(path).exists() else [], _keys(plan)
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
        self.pool, self.path, self.trace, self.report, self.progress = (
            pool,
            path,
            trace,
            report,
            progress,
        )
        # (data set, test rows) that are unavailable: checked once per call, because downloads are
        # retried for long
        self.absent: set[tuple[str, str | None]] = set()
        # runs without a row for that reason
        self.without = 0
        self.estimate: Estimate | None = None
        self.jobs = 1
        self.done = self.total = 0
        self.told = None

    def work(self, todo):
        self.total, todo = len(todo), list(todo)
        if self.estimate is not None and self.estimate.total(todo) is not None:
            self.estimate = None  # it has been reported
        try:
            while self.done < self.total:
                self.pool.take(todo)
                self.tell()
                done = self.done
                for run, row in self.pool.ended():
                    if no_data(row):
                        self.leave_out(run, row, todo)
                    else:
                        self.write(run, row)
                        self.reckon(row, todo)
                if self.done == done:
                    time.sleep(NAP)
        except KeyboardInterrupt:
            with suppress(ClusterError):
                for run, row in self.pool.ended():
                    self.write(run, row)
            for run in self.pool.stop():
                self.write(run, endings.failure(run, "interrupted", "interrupted while it ran"))
            raise

    def leave_out(self, run: Run, row: Result, todo: list[Run]) -> None:
        """Write the row of a run with unavailable data, and skip the others with the same data."""
        rows = run.dataset, run.test
        given_up = self.pool.withdraw(run.dataset)
        out = [one for one in given_up + todo if (one.dataset, one.test) == rows]
        todo[:] = [one for one in given_up + todo if (one.dataset, one.test) != rows]
        results.append(self.path, row)
        self.without += len(out)
        self.done += 1 + len(out)
        self.tell()
        if rows not in self.absent:
            self.absent.add(rows)
            words = f"{_runs(1 + len(out))} skipped: {row.message}"
            self.report(f"[{self.done}/{self.total}] {run.dataset}: {words}")

    def reckon(self, row: Result, todo: list[Run]) -> None:
        """Report once the estimated remaining time, when similar runs have ended."""
        if self.estimate is None:
            return
        self.estimate.add(row)
        if todo and self.estimate.total(todo) is not None:
            words = self.estimate.words(todo, self.jobs).removeprefix(", ")
            self.estimate = None
            if words:
                self.report(f"{len(todo)} runs left, {words}")

    def tell(self):
        if self.progress is None:
            return
        now = self.done, self.total, [(describe(run), step) for run, step in self.pool.at_work()]
        if now != self.told:
            self.told = now
            self.progress(*now)

    def write(self, run: Run, row: Result) -> None:
        if row.steps:
            # Before the row: a run that has one is not repeated.
            traces.append(self.trace, keys.key(run), row.steps)
        results.append(self.path, row)
        self.done += 1
        self.tell()
        self.report(f"[{self.done}/{self.total}] {describe(run)}: {endings.in_words(row)}")
