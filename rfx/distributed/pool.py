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
from contextlib import contextmanager
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
    with cluster.connect(where) as client:
        pool = Pool(client, way, report)
        try:
            yield pool
        finally:
            pool.stop()


class Pool:
    """See `pool`; the words are those of `rfx.runs.process.Local`."""

    def __init__(self, client, way: Way, report):
        self.client, self.way, self.report = client, way, report
        self.name, self.count = f"rfx-{uuid.uuid4().hex}", 0
        # number -> run and future of the unfinished runs
        self.taken: dict[int, tuple[Run, Any]] = {}
        # number -> the last step of its solver, None before any
        self.begun: dict[int, dict | None] = {}
        self.results = dask().as_completed(loop=client.loop, with_results=True, raise_errors=False)
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
        runs = todo[: max(0, 2 * sum(self.at_once.values()) - len(self.taken))]
        if not runs:
            return
        del todo[: len(runs)]
        names = [(self.name, self.count + number) for number in range(len(runs))]
        self.count += len(runs)
        futures = self.client.map(
            execute,
            names,
            list(map(_resolved, runs)),
            key=names,
            pure=False,
            way=self.way,
            at_once=self.at_once,
        )
        self.taken |= {
            number: (run, future) for (_, number), run, future in zip(names, runs, futures)
        }
        self.results.update(futures)

    def ended(self) -> Iterator[tuple[Run, Result]]:
        while self.results.has_ready():
            future, result = next(self.results)
            number = future.key[1]
            run, _ = self.taken.pop(number, (None, None))
            self.begun.pop(number, None)
            if run is not None:  # else it was cancelled
                yield run, self._result(run, future.status, result)

    def stop(self) -> list[Run]:
        runs = [run for run, _ in self.at_work()]
        futures = [future for _, future in self.taken.values()]
        self.taken = {}
        if futures and self.client.status == "running":
            self.client.cancel(futures)
        return runs

    def _result(self, run, status, result) -> Result:
        if status == "finished":
            return result_of(run, result)
        if status != "error":
            raise cluster.lost(self.client)
        error = result[1]
        if isinstance(error, dask().KilledWorker):
            return failure(run, "failed", cluster.killed(error))
        raise ClusterError(
            f"a worker of {cluster.address_of(self.client)} can't run:"
            f" {type(error).__name__}: {error}"
        )

    def _look(self):
        if time.monotonic() - self.looked > _LOOK:
            before, self.at_once = self.at_once, _at_once(self.client)
            self.looked = time.monotonic()
            if not self.at_once and self.at_once != before:
                address = cluster.address_of(self.client)
                self.report(f"{address} has no workers; waiting for workers")


def _at_once(client) -> Counter:
    """Simultaneous runs on each machine, which is the host in its workers' addresses."""
    counts: Counter = Counter()
    for address, threads in client.nthreads().items():
        counts[_host(address)] += threads
    return counts


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
            if _given_up(worker, name):
                raise dask().Reschedule
            if time.monotonic() - reported > _TELL and child.heard() != step:
                reported, step = time.monotonic(), child.step
                worker.log_event(name[0], [name[1], step])
            time.sleep(NAP)
    finally:
        child.kill()
    return replace(child.ending(), worker=worker.address, host=os.uname().nodename)


def _given_up(worker, name) -> bool:
    task = worker.state.tasks.get(name)
    closing = worker.status.name in ("closing", "closed", "failed")
    return closing or task is None or task.state == "cancelled"
