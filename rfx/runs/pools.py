"""Pools that execute the runs of a plan: in local processes, or on Dask workers; both have the same
interface.

take(todo): start as many runs as possible, removing them from the list. ended(): (run, result) of
each run that has ended since, one by one, so that a row is written before the next is requested.
at_work(): each running run, and the last step of its solver, None before any. withdraw(dataset):
give up the runs with that data set that have not begun, and return them. stop(): end everything at
once; return the runs in progress.
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
    """How each run is executed. timeout: seconds, unless the run has its own; command: the child's
    command line; tells: whether its solver's steps are reported.
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
            Default number of threads of a run.
        key : str, optional
            The run's key as requested: it fails if its data differs here.
        """
        told = replace(run, timeout=None, threads=run.threads or threads).as_dict() | (
            {"key": key} if key else {}
        )
        return Child(told, self.timeout or run.timeout, self.command, self.tells)


@contextmanager
def local(jobs: int, way: Way):
    """`jobs` local processes at a time, which share the cores.

    Not a local Dask cluster, which takes seconds to start and needs distributed: rfx's required
    dependencies are enough.
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
        return []  # a taken run starts at once

    def stop(self) -> list[Run]:
        for _, child in self.children:
            child.kill()
        runs, self.children = [run for run, _ in self.children], []
        return runs
