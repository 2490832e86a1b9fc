"""Where the runs of a plan are made: in processes of this machine, or by Dask's workers; the same few words for either.

take(todo): begin what there is room for, and take it off the list. ended(): (spec, row) of each run that has ended since, one by one,
so that a row is written before the next is asked for. at_work(): the spec of each that runs, and the last step that its solver told,
None before any. withdraw(dataset): the specs taken with that data set that have not begun, which are given up. stop(): end everything
at once; the specs of those that ran.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rfx import env
from rfx.runs import endings
from rfx.runs.process import Child


@dataclass(frozen=True)
class Way:
    """How each run is made. timeout: seconds, before its own; command: the child's command line; tells: its solver's steps are wanted."""

    timeout: float | None = None
    command: list | None = None
    tells: bool = False

    def child(self, spec: dict) -> Child:
        """Begin a run."""
        told = {name: value for name, value in spec.items() if name != "timeout"}
        return Child(told, self.timeout or spec.get("timeout"), self.command, self.tells)


def job(spec: dict, threads: int | None) -> dict:
    """What is said of a run; threads: for one that does not say how many it takes."""
    return spec if spec.get("threads") or not threads else spec | {"threads": threads}


@contextmanager
def local(jobs: int, way: Way):
    """`jobs` processes at a time of this machine, whose cores they share.

    Not a cluster of Dask's on one machine, which takes seconds to start, and distributed to be there: rfx's dependencies are enough.
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
        self.children = []

    def at_work(self) -> list[tuple[dict, dict | None]]:
        return [(spec, child.heard()) for spec, child in self.children]

    def take(self, todo: list[dict]) -> None:
        threads = max(1, env.threads() // self.jobs) if self.jobs > 1 else None
        while todo and len(self.children) < self.jobs:
            spec = todo.pop(0)
            self.children.append((spec, self.way.child(job(spec, threads))))

    def ended(self) -> Iterator[tuple[dict, dict]]:
        for spec, child in list(self.children):
            if child.finished():
                self.children.remove((spec, child))
                yield spec, endings.row_of(spec, child.ending())

    def withdraw(self, dataset: str) -> list[dict]:
        return []  # what is taken begins at once

    def stop(self) -> list[dict]:
        for _, child in self.children:
            child.kill()
        specs, self.children = [spec for spec, _ in self.children], []
        return specs
