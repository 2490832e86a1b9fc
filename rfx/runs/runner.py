"""The runner: has a plan's missing runs made, each in a process of its own, here or where a pool
says, and appends a row for each.

A row is on the disk before the next run starts, so that nothing finished is lost however the runner
ends; the next call takes up what has no row yet.
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
    """What became of a plan: `rows` are the newest rows of its runs, `ran` of them made
    now, `total` wanted.
    """

    plan: str
    results: str
    total: int
    ran: int = 0
    rows: list[Result] = field(default_factory=list)
    # runs without a row, whose data can't be had
    without: int = 0

    def count(self, status) -> int:
        """The runs that ended so; those without data are not failed, but skipped."""
        return sum(row.status == status and not no_data(row) for row in self.rows)

    @property
    def skipped(self) -> int:
        """The runs whose data could not be had."""
        return self.without + sum(map(no_data, self.rows))

    @property
    def not_converged(self) -> int:
        return sum(row.status == "ok" and row.converged is False for row in self.rows)

    @property
    def exit_code(self) -> int:
        """0 when every run of the plan has a row that is ok and converged, else 3."""
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
    """Whether a run has no result because its data could not be had."""
    return row.params.get("error") == NO_DATA


def by_hand(runs: Iterable[Run]) -> dict[str, str]:
    """The data sets of some runs that neither are here nor can be fetched, each with how a
    person gets it.
    """
    names = {name.partition(":")[0] for run in runs for name in (run.dataset, run.test) if name}
    return {
        name: registry.get(name).obtain or f"see rfx fetch {name}"
        for name in sorted(names)
        if registry.has(name) and not is_obtainable(name)
    }


def _needs(run: Run, names: Iterable[str]) -> str | None:
    """Which of some data sets a run needs."""
    own = {name.partition(":")[0] for name in (run.dataset, run.test) if name}
    return next((name for name in names if name in own), None)


def ahead(
    plan: Plan, todo: list[Run], rows: Iterable[Result], jobs: int = 1, here: bool = True
) -> tuple[list[Run], list[str], Estimate]:
    """What is to be said before the first run: (the runs that can be made, lines, the estimate).

    here: the data are read on this machine, which is asked whether it has them.
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
    """The runs of `plan` that are to be made, given the rows there are, and the keys of the runs
    that are traced.

    names: the keys of the plan's runs, where they are known.

    A row that is ok is never made again, unless a trace of it is asked for and not there. One that
    was interrupted, has no status, or for which the data could not be had, always is; any other
    failure or timeout only with `retry_failed`, for it would most likely fail in the same way.
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
    """Make the missing runs of `plan`, `jobs` at a time, and append their rows to the results file
    `path`.

    Parameters
    ----------
    plan : Plan
    path : path
        The results file.
    jobs : int
        Runs at a time on this machine.
    timeout : float, optional
        Seconds for each run; goes before the plan's own.
    retry_failed : bool
        Make runs again whose rows say that they failed or took too long.
    report : callable
        Gets one line a run.
    command : list of str, optional
        The child's command line, to which the run is added as JSON.
    trace : path, optional
        The file for the traces of the runs that ask for one; by default it is beside the results.
    progress : callable, optional
        Called with (done, total, runs) as runs begin, go on and end; runs: (words, the last step
        that its solver told, see rfx.fitting.callbacks, or None) for each run at work.
    pool : callable, optional
        Given a `pools.Way` and `report`, the context manager of the pool that makes the runs, such
        as that of `rfx.distributed.pool`; by default this machine's.

    Raises
    ------
    LockedError
        When another runner holds `path`.
    ClusterError
        When the pool's workers can't be had (any more).
    KeyboardInterrupt
        After Ctrl-C or SIGTERM, when the runs at work have been ended and have rows that say so.
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
            # a file of rows that changed meanwhile changed their keys, too
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
    """Between a pool, where runs are made, and the files: rows are written here alone."""

    def __init__(self, pool, path, trace, report, progress=None):
        self.pool, self.path, self.trace, self.report, self.progress = (
            pool,
            path,
            trace,
            report,
            progress,
        )
        # (data set, test rows) that can't be had: asked for once a call, for a download is tried
        # for long
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
            self.estimate = None  # it has been said
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
        """Write the row of a run whose data can't be had, and skip the others with these data."""
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
        """Say once how long the rest will take, when runs like each of them have ended."""
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
            # Before the row: a run that has one is not made again.
            traces.append(self.trace, keys.key(run), row.steps)
        results.append(self.path, row)
        self.done += 1
        self.tell()
        self.report(f"[{self.done}/{self.total}] {describe(run)}: {endings.in_words(row)}")
