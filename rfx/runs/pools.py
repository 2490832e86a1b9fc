"""Where the runs of a plan are made: in processes of this machine, or by Dask's workers; the same
few words for either.

take(todo): begin what there is room for, and take it off the list. ended(): (run, result) of each
run that has ended since, one by one, so that a row is written before the next is asked for.
at_work(): the run of each that runs, and the last step that its solver told, None before any.
withdraw(dataset): the runs taken with that data set that have not begun, which are given up.
stop(): end everything at once; the runs of those that ran.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rfx import env
from rfx.records.result import Result
from rfx.records.run import Run
from rfx.runs import endings
from rfx.runs.process import Child


@dataclass(frozen=True)
class Way:
    """How each run is made. timeout: seconds, before its own; command: the child's command
    line; tells: its solver's steps are wanted.
    """

    timeout: float | None = None
    command: list | None = None
    tells: bool = False

    def child(self, run: Run, threads: int | None = None, key: str | None = None) -> Child:
        """Begin a run.

        Parameters
        ----------
        run : Run
        threads : int, optional
            For one that does not say how many it takes.
        key : str, optional
            The run's key where it was asked for: it fails where its data are others here.
        """
        told = replace(run, timeout=None, threads=run.threads or threads).as_dict() | (
            {"key": key} if key else {}
        )
        return Child(told, self.timeout or run.timeout, self.command, self.tells)


@contextmanager
def local(jobs: int, way: Way):
    """`jobs` processes at a time of this machine, whose cores they share.

    Not a cluster of Dask's on one machine, which takes seconds to start, and distributed to be
    there: rfx's dependencies are enough.
    """
    pool = Local(jobs, way)
    try:
        yield pool
    finally:
        pool.stop()


class Local:
    """See `local`."""

    def __init__(self, jobs: int, way: Way):
        self.jobs, self.way = jobs, way
        self.children: list[tuple[Run, Child]] = []

    def at_work(self) -> list[tuple[Run, dict | None]]:
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
                yield run, endings.result_of(run, child.ending())

    def withdraw(self, dataset: str) -> list[Run]:
        return []  # what is taken begins at once

    def stop(self) -> list[Run]:
        for _, child in self.children:
            child.kill()
        runs, self.children = [run for run, _ in self.children], []
        return runs
