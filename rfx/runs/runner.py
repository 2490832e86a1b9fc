"""The runner: executes a plan's missing runs, each in a separate process, locally or in a pool, and
appends a row for each.

A row is on the disk before the next run starts, so that no result is lost however the runner ends;
the next call continues with the missing rows.
"""

import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rfx import env
from rfx.data.registry import registry
from rfx.data.registry.fetch import is_obtainable
from rfx.errors import ClusterError
from rfx.plans.plan import Plan, describe
from rfx.records import keys, results, traces
from rfx.records.result import Result, seconds_train
from rfx.records.run import Run
from rfx.runs import baseline
from rfx.runs.child import NO_DATA
from rfx.runs.process import NAP, Local, Way, failure


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


def ahead(plan: Plan, todo: list[Run], here: bool = True) -> tuple[list[Run], list[str]]:
    """Messages before the first run: (the runs that can be executed, lines).

    here: the data is read on this machine, so its availability is checked here.
    """
    sets = [{str(name).partition(":")[0] for name in (run.dataset, run.test)} for run in todo]
    named = {name for name in set().union(*sets) if here and registry.has(name)}
    absent = {name for name in named if not is_obtainable(name)}
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
        step of its solver, see rfx.fitting.problem, or None) for each running run.
    pool : callable, optional
        Receives a `process.Way` and `report`, and returns the context manager of the pool that
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
    with results.exclusive(path), env.terminate_as_interrupt():
        rows = results.read(path) if Path(path).exists() else []
        trace = trace or traces.beside(path)
        asked = any(run.trace for run in plan.runs)
        if asked:
            traces.check(trace)
        names = _keys(plan)
        todo = missing(plan, rows, retry_failed, traces.read(trace) if asked else (), names)
        done = len(plan.runs) - len(todo)
        ready, lines = ahead(plan, todo, pool is None)
        counts = f"{len(plan.runs)} runs, {done} have a row in {path}, {len(todo)} to do"
        for line in (counts, *lines):
            report(f"{plan.name}: {line}")
        without = len(todo) - len(ready)
        if ready:
            way = Way(timeout, command)
            with pool(way, report) if pool else closing(Local(jobs, way)) as there:
                desk = _Desk(there, path, trace, report, progress)
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
            runs = [(describe(run), step) for run, step in self.pool.at_work()]
            self.progress(self.done, self.total, runs)

    def write(self, run: Run, row: Result) -> None:
        if row.steps:
            # Before the row: a run that has one is not repeated.
            traces.append(self.trace, keys.key(run), row.steps)
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
    elif "train_score" in row.params:
        metric = "rmse" if row.task == "regression" else "accuracy"
        words.append(f"{metric} {row.params['train_score']:.4g} on the training rows")
    seconds = seconds_train(row)
    words += [
        text
        for known, text in [
            (row.model_size is not None, f"size {row.model_size}"),
            (seconds is not None, f"{seconds or 0:.3g} s"),
            (row.peak_rss_mb is not None, f"{row.peak_rss_mb or 0:.0f} MB"),
            (row.converged is False, "did not converge"),
            (baseline.no_better(row), "no better than a constant"),
        ]
        if known
    ]
    return ", ".join(words) or "ok"
