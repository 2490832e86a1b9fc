"""Execute a plan's runs on Dask workers: each in a separate process, as `rfx run` executes them
locally.

distributed assigns the runs, and reassigns those of a worker that died. The result of a run is the
task's result; the requesting runner writes the row.
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rfx.data.registry import registry
from rfx.distributed import cluster, dask
from rfx.errors import ClusterError
from rfx.records import keys
from rfx.records.result import Result
from rfx.records.run import Run
from rfx.runs import endings
from rfx.runs.pools import Way
from rfx.runs.process import NAP, Ending

_AHEAD = 1000  # runs submitted to the scheduler at a time
_TELL = 1.0  # seconds between two reported steps of a run
_LOOK = 5.0  # seconds between two checks for workers


@contextmanager
def pool(where: str, way: Way, report):
    """The workers of the scheduler of --scheduler. ClusterError, also outside the block, if they
    become unavailable.
    """
    with cluster.connect(where) as client:
        pool = Workers(client, where, way, report)
        try:
            yield pool
        finally:
            pool.stop()


class Workers:
    """See `pool`; the words are those of `rfx.runs.pools`."""

    def __init__(self, client, where: str, way: Way, report):
        self.client, self.where, self.report = client, where, report
        self.name = f"rfx-{uuid.uuid4().hex}"
        self.told = {"way": way, "versions": cluster.versions()}
        # number -> run and future of the unfinished runs
        self.taken: dict[int, tuple[Run, Any]] = {}
        # number -> the last step of its solver, None before any
        self.begun: dict[int, dict | None] = {}
        # runs that never began, although the scheduler gave them up because of workers ended by
        # other runs
        self.again: list[Run] = []
        self.count = 0
        self.results = dask.distributed().as_completed(
            loop=client.loop, with_results=True, raise_errors=False
        )
        self.looked, self.lonely = time.monotonic(), False
        client.subscribe_topic(self.name, lambda event: self.begun.update([event[1]]))

    def at_work(self) -> list[tuple[Run, dict | None]]:
        return [
            (self.taken[number][0], step)
            for number, step in sorted(self.begun.copy().items(), key=lambda pair: pair[0])
            if number in self.taken
        ]

    def take(self, todo: list[Run]) -> None:
        todo[:0], self.again = self.again, []
        runs = todo[: max(0, _AHEAD - len(self.taken))]
        if not runs:
            return
        del todo[: len(runs)]
        numbers = range(self.count, self.count + len(runs))
        self.count += len(runs)
        names = [(self.name, number) for number in numbers]
        told = self.told | {"at_once": _at_once(self.client)}
        futures = self.client.map(
            make, names, [_resolved(run) for run in runs], key=names, pure=False, told=told
        )
        self.taken |= {number: (run, future) for number, run, future in zip(numbers, runs, futures)}
        self.results.update(futures)

    def ended(self) -> Iterator[tuple[Run, Result]]:
        self._look()
        while self.results.has_ready():
            future, result = next(self.results)
            number = future.key[1]
            run, _ = self.taken.pop(number, (None, None))
            if run is None:
                continue  # cancelled
            if future.status == "error" and number not in self.begun and _is_death(result):
                self.again.append(run)
            else:
                yield run, self._result(run, future.status, result)
            self.begun.pop(number, None)

    def withdraw(self, dataset: str) -> list[Run]:
        numbers = [
            number
            for number, (run, _) in self.taken.items()
            if run.dataset == dataset and number not in self.begun
        ]
        given_up = [self.taken.pop(number) for number in numbers]
        if given_up:
            self.client.cancel([future for _, future in given_up])
        return [run for run, _ in given_up]

    def stop(self) -> list[Run]:
        runs = [run for run, _ in self.at_work()]
        futures = [future for _, future in self.taken.values()]
        self.taken = {}
        if futures and self.client.status == "running":
            self.client.cancel(futures)
        return runs

    def _result(self, run, status, result) -> Result:
        if status == "error":
            error = result[1]
            if _is_death(result):
                return endings.failure(run, "failed", _deaths(error))
            raise ClusterError(
                f"a worker of {self.where} can't run: {type(error).__name__}: {error}"
            )
        if isinstance(result, str):
            raise ClusterError(result)
        if status != "finished" or not isinstance(result, Ending):
            raise cluster.lost(self.where)
        return endings.result_of(run, result)

    def _look(self):
        if time.monotonic() - self.looked < _LOOK or self.client.status != "running":
            return
        self.looked, before = time.monotonic(), self.lonely
        self.lonely = not self.client.nthreads()
        if self.lonely and not before:
            self.report(f"{self.where} has no workers; waiting for workers")


def _at_once(client) -> dict[str, int]:
    """Simultaneous runs on each machine, whose cores they share; a machine is the host in its
    workers' addresses.
    """
    found: dict[str, int] = {}
    for address, threads in client.nthreads().items():
        host = _host(address)
        found[host] = found.get(host, 0) + threads
    return found


def _host(address) -> str:
    return dask.distributed().comm.get_address_host(address)


def _resolved(run: Run) -> tuple[Run, str]:
    """A run for other machines, with absolute paths; and the key, by which a worker recognises the
    same data.
    """
    paths = {}
    for name in keys.FILES:
        path = getattr(run, name)
        if path and not registry.has(str(path).partition(":")[0]) and os.path.isfile(path):
            paths[name] = os.path.abspath(path)
    return replace(run, **paths), keys.key(run)


def _is_death(result) -> bool:
    return isinstance(result[1], dask.distributed().KilledWorker)


def _deaths(error) -> str:
    count, last = (
        error.allowed_failures + 1,
        getattr(error.last_worker, "address", error.last_worker),
    )
    return (
        f"{count} workers ended during this run, the last {last}; it probably needs more memory"
        " than their machines have"
    )


def make(name: tuple, asked: tuple[Run, str], told: dict) -> Ending | str:
    """Execute a run on a worker: returns its ending, or a sentence on why it can't be run there.

    name: of the task, reported to the runner when it begins. The run and its process end early if
    the task is cancelled, as Dask does when its client disconnects, or if the worker closes.
    """
    distributed = dask.distributed()
    worker, host, (run, key) = distributed.get_worker(), os.uname().nodename, asked
    worker.log_event(name[0], [name[1], None])
    refused = cluster.difference(
        told["versions"], cluster.versions(), f"worker {worker.address} on {host}"
    )
    if refused:
        return refused
    threads = cluster.threads_of_a_task(
        max(told["at_once"].get(_host(worker.address), 0), worker.state.nthreads)
    )
    child, told_at, step = told["way"].child(run, threads, key), time.monotonic(), None
    try:
        while not child.finished():
            if _given_up(worker, name):
                raise distributed.Reschedule
            if time.monotonic() - told_at > _TELL and child.heard() != step:
                told_at, step = time.monotonic(), child.step
                worker.log_event(name[0], [name[1], step])
            time.sleep(NAP)
    finally:
        child.kill()
    return replace(child.ending(), worker=worker.address, host=host)


def _given_up(worker, name) -> bool:
    task = worker.state.tasks.get(name)
    return (
        task is None
        or task.state == "cancelled"
        or worker.status.name in ("closing", "closed", "failed")
    )
