"""Execute a plan's runs on Dask workers: each in a separate process, as `rfx run` executes them
locally.

distributed assigns the runs, and reassigns those of a worker that died. The result of a run is the
task's result; the requesting runner writes the row.
"""

import os
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from rfx import env
from rfx.data.registry import registry
from rfx.distributed import cluster
from rfx.distributed.cluster import dask
from rfx.errors import ClusterError
from rfx.records import keys
from rfx.records.result import Result
from rfx.records.run import Run
from rfx.runs.process import NAP, Ending, Way, failure, result_of

_TELL = 1.0  # seconds between two reported steps of a run
_LOOK = 2.0  # seconds between two checks for workers


@contextmanager
def pool(where: str, way: Way, report):
    """The workers of the scheduler of --scheduler. ClusterError, also outside the block, if they
    become unavailable.
    """
    with cluster.connect(where) as client, closing(Pool(client, way, report)) as runs:
        yield runs


class Pool:
    """See `pool`; the words are those of `rfx.runs.process.Local`."""

    def __init__(self, client, way: Way, report):
        self.client, self.way, self.report = client, way, report
        self.name, self.count = f"rfx-{uuid.uuid4().hex}", 0
        # number -> run and future of the unfinished runs
        self.taken: dict[int, tuple[Run, Any]] = {}
        # number -> the last step of its solver, None before any
        self.begun: dict[int, dict | None] = {}
        # simultaneous runs on each machine, whose cores they share, not counted yet
        self.at_once = Counter({"": 1})
        self.looked = float("-inf")
        if client.nthreads():
            cluster.check_versions(client)
        client.subscribe_topic(self.name, lambda event: self.begun.update([event[1]]))

    def at_work(self) -> list[tuple[Run, dict | None]]:
        begun = sorted(self.begun.copy().items(), key=lambda pair: pair[0])
        return [(self.taken[number][0], step) for number, step in begun if number in self.taken]

    def take(self, todo: list[Run]) -> None:
        self._look()
        # one run waits for each that is at work, so that no worker waits
        while todo and len(self.taken) < 2 * sum(self.at_once.values()):
            run, self.count = todo.pop(0), self.count + 1
            name = self.name, self.count
            args = name, _resolved(run), self.way, self.at_once
            future = self.client.submit(execute, *args, key=name, pure=False)
            self.taken[self.count] = run, future

    def ended(self) -> Iterator[tuple[Run, Result]]:
        ready = [number for number, (_, future) in self.taken.items() if future.done()]
        for number in ready:
            run, future = self.taken.pop(number)
            self.begun.pop(number, None)
            yield run, self._result(run, future)

    def close(self) -> list[Run]:
        runs = [run for run, _ in self.at_work()]
        futures = [future for _, future in self.taken.values()]
        self.taken = {}
        if futures and self.client.status == "running":
            self.client.cancel(futures)
        return runs

    def _result(self, run, future) -> Result:
        if future.status not in ("finished", "error"):
            raise cluster.lost(self.client)
        try:
            return result_of(run, future.result())
        except dask().KilledWorker as error:
            return failure(run, "failed", cluster.killed(error))
        except Exception as error:
            raise ClusterError(
                f"a worker of {cluster.address_of(self.client)} can't run:"
                f" {type(error).__name__}: {error}"
            ) from error

    def _look(self):
        if time.monotonic() - self.looked > _LOOK:
            # simultaneous runs on each machine, which is the host in its workers' addresses
            counts: Counter = Counter()
            for address, threads in self.client.nthreads().items():
                counts[_host(address)] += threads
            if self.at_once and not counts:
                address = cluster.address_of(self.client)
                self.report(f"{address} has no workers; waiting for workers")
            self.at_once, self.looked = counts, time.monotonic()


def _host(address) -> str:
    return dask().comm.get_address_host(address)


def _resolved(run: Run) -> tuple[Run, str]:
    """A run for other machines, with absolute paths; and the key, by which a worker recognises the
    same data.
    """
    paths = {name: str(getattr(run, name) or "") for name in keys.FILES}
    absolute: dict[str, Any] = {
        name: os.path.abspath(path)
        for name, path in paths.items()
        if os.path.isfile(path) and not registry.has(path.partition(":")[0])
    }
    return replace(run, **absolute), keys.key(run)


def execute(name: tuple, asked: tuple[Run, str], way: Way, at_once: Counter) -> Ending:
    """Execute a run on a worker: returns its ending.

    name: of the task, reported to the runner when it begins. The run and its process end early if
    the task is cancelled, as Dask does when its client disconnects, or if the worker closes.
    """
    worker, (run, key) = dask().get_worker(), asked
    worker.log_event(name[0], [name[1], None])
    share = max(at_once[_host(worker.address)], worker.state.nthreads)
    child, reported, step = way.child(run, max(1, env.threads() // share), key), 0.0, None
    try:
        while not child.finished():
            task, closing = worker.state.tasks.get(name), ("closing", "closed", "failed")
            if task is None or task.state == "cancelled" or worker.status.name in closing:
                raise dask().Reschedule
            if time.monotonic() - reported > _TELL and child.heard() != step:
                reported, step = time.monotonic(), child.step
                worker.log_event(name[0], [name[1], step])
            time.sleep(NAP)
    finally:
        child.kill()
    return replace(child.ending(), worker=worker.address, host=os.uname().nodename)
