"""Dask workers, tasks on them, and runs of a plan."""

import asyncio
import logging
import os
import pickle
import platform
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from operator import itemgetter
from types import ModuleType
from typing import Any

import numpy as np

from rfx import env, lazy, numerals, parallel
from rfx._version import __distribution__, __version__
from rfx.data import registry
from rfx.errors import ClusterError, RfxError, UsageError
from rfx.fitting.progress import ProgressReport
from rfx.records import keys
from rfx.records.run import Result, Run
from rfx.runs.runner import NAP, Ending, Way, failure, result_of
from rfx.types import JsonObject

# ----------------------------------------------------------------------
# The Dask workers of `--scheduler` (the address of a scheduler, or a local cluster of processes),
# and tasks on them.
#
# Scheduling, transport and restarts are left to distributed, an optional package that is imported
# only here. This module configures it for rfx, and turns its failures into one-sentence errors.
# Every task is without side effects: Dask recomputes the data of a dead worker from the tasks that
# produced it.

LOCAL = "local"
DEATHS = 3  # workers that one task may end, on a local cluster, and attempts to start the workers
_LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.diskutils",
    "tornado.application",
    "asyncio",
)
_PATIENCE = 10.0  # seconds for a scheduler to answer
_STARTING = 120.0  # seconds for local workers to answer, even on a busy machine
_ARRIVING = 30.0  # seconds for the first worker of a scheduler to connect
_ALONE = 60.0  # seconds without any worker after which waiting for a result ends
_LOOK = 2.0  # seconds between checks of the clock and the cluster while waiting for a result
# Maximum bytes of an argument sent with every task; a larger one is sent once and forwarded among
# the workers.
INLINE = 1 << 17
# Fraction of a worker's memory for features: above 60 percent Dask writes to disk.
_SHARE = 0.4


def dask() -> ModuleType:
    """Dask's distributed; ClusterError if it is not installed."""
    try:
        return lazy.distributed
    except ModuleNotFoundError:
        raise ClusterError(
            "this needs Dask's distributed, which is not installed; pip install"
            " 'rfx-kernels[distributed]'"
        ) from None


# ---------------------------------------------------------------------- clients


def workers_of(where: str) -> int | None:
    """The number of processes in `local:N` (`local`: one per core); None for an address. UsageError
    for neither.
    """
    name, colon, count = where.partition(":")
    if name != LOCAL and where.strip():
        return None
    if name == LOCAL and not colon:
        return len(os.sched_getaffinity(0))
    number = numerals.whole(count) if count.isascii() and count.isdecimal() else 0
    if not 0 < number <= 1024:
        raise UsageError(
            f"--scheduler is {where!r}: expected an address such as tcp://10.0.0.1:8786, or local:N"
            " with N processes, 1 to 1024"
        )
    return number


@contextmanager
def connect(where: str):
    """A distributed.Client of the scheduler at the address `where`, or of N new processes with one
    thread each for `local:N`.

    At the end of the block, the client and its requests end, and so do the processes of `local:N`.
    Raises UsageError for an invalid address, ClusterError if distributed is not installed, no
    scheduler answers within seconds, the versions of a worker differ, or, outside the block, if the
    scheduler has disconnected.
    """
    count = workers_of(where)
    distributed = dask()
    # they log every worker that joins or leaves on standard error, where progress is shown
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with _address(where) if count is None else _local(count) as scheduler:
        client = distributed.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
        try:
            with reported(client):
                yield client
        finally:
            with suppress(TimeoutError):
                client.close(timeout=2)


@contextmanager
def _address(address):
    """The address of a scheduler that answers: a client would wait forever for another server."""

    async def ask():
        async with dask().rpc(address) as server:
            return (await server.identity()).get("type")

    try:
        kind = asyncio.run(asyncio.wait_for(ask(), _PATIENCE))
    except ValueError as error:
        raise UsageError(
            f"--scheduler {address}: {error}; expected an address such as tcp://10.0.0.1:8786, or"
            " local:N"
        ) from None
    except Exception as error:
        # for bytes that are not a Dask message: any exception, including MemoryError
        kind = f"no server of this version: {error}"
    if kind != "Scheduler":
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({str(kind).lower():.200}); check the address,"
            " that it is running, and that the port is open"
        )
    yield address


@contextmanager
def _local(count):
    settings = {
        # the last of the deaths that a task may cause is too many
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        # tasks wait at the scheduler, not at a worker: a dying worker loses only its current task
        "distributed.scheduler.worker-saturation": 1.0,
        # a nanny may take any time to restart its worker; Dask would end the nanny after 15 seconds
        "distributed.deploy.lost-worker-timeout": "1 day",
        # on a busy machine a running process may be slow to answer; one that has ended refuses at
        # once
        "distributed.comm.timeouts.connect": f"{_STARTING:g}s",
        "distributed.worker.preload": [__name__],
        # Dask's value returns all freed memory to the system, where the next arrays wait for it
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 512 << 20,
    }
    with lazy.dask.config.set(settings):
        cluster = _started(count)
        try:
            yield cluster
        finally:
            _close(cluster)


def _started(count):
    """A local cluster of this many workers; another attempt if one ends while it starts."""
    for _ in range(DEATHS):
        try:
            return dask().LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                silence_logs=logging.CRITICAL,
                # no dashboard; the remaining server must not take, nor complain about, another's
                # port
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                memory_limit=1 / count,
            )
        except (OSError, TimeoutError, RuntimeError) as error:
            reason = error
    raise ClusterError(
        f"the {count} worker processes ended during start-up; they may lack memory: start fewer of"
        f" them ({reason})"
    )


def _close(cluster) -> None:
    """End a local cluster and its workers, including those that do not respond, such as stopped
    ones.
    """
    pids = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
    with suppress(TimeoutError):
        cluster.close(timeout=5)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def dask_setup(worker) -> None:
    """Preloaded by the workers of `local:N`, which share the terminal: rfx ends them after Ctrl-C,
    and prints for them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextmanager
def reported(client):
    """Raise ClusterError for Dask's exceptions; the exceptions of tasks, and rfx's own errors, pass
    through.
    """
    distributed = dask()
    cancelled = (asyncio.CancelledError, distributed.CancelledError)
    try:
        yield
    except (RfxError, parallel.Late):
        raise
    except distributed.KilledWorker as error:
        raise ClusterError(killed(error)) from None
    except (Exception, asyncio.CancelledError) as error:
        # a client that has reconnected to its scheduler has still lost its requests
        if not isinstance(error, cancelled) and _answers(client):
            raise
        raise lost(client) from error


def killed(error) -> str:
    """The sentence about a task that ended its workers."""
    last = getattr(error.last_worker, "address", error.last_worker)
    return (
        f"{error.allowed_failures + 1} workers ended during the same task, the last {last}; it"
        " probably needs more memory than they have"
    )


def _answers(client) -> bool:
    """Whether the client's scheduler is reachable: a broken connection of a dying worker looks the
    same as one of the scheduler.
    """
    try:
        client.sync(client.scheduler.ncores, callback_timeout=_PATIENCE)
    except Exception:
        return False
    return client.status == "running"


def address_of(client) -> str:
    """The address of its scheduler."""
    return getattr(client.scheduler, "address", "this address")


def lost(client) -> ClusterError:
    """The error when the scheduler no longer answers."""
    return ClusterError(
        f"the connection to the scheduler at {address_of(client)} is lost; unsaved work is lost,"
        " written files remain"
    )


def versions() -> dict[str, str]:
    """The versions that must be equal on all machines, in this process."""
    ours = {"rfx": __version__, "python": ".".join(platform.python_version_tuple()[:2])}
    return ours | {name: metadata.version(name) for name in ("numpy", "scipy", "numba")}


def everywhere(client, function, *args) -> dict[str, Any]:
    """The results or errors of function(*args) on the workers, by their addresses; one that leaves
    meanwhile is omitted. ClusterError if there are none.
    """
    answers: dict[str, object] = {}
    while not answers:
        try:
            client.wait_for_workers(1, timeout=_ARRIVING)
        except TimeoutError:
            raise ClusterError(
                f"{address_of(client)} has no workers, and none came within {_ARRIVING:g} seconds;"
                " start some"
            ) from None
        found = client.run(function, *args, on_error="return")
        answers = {who: answer for who, answer in found.items() if not isinstance(answer, OSError)}
    return answers


def check_versions(client) -> None:
    """Raise ClusterError if the versions of a current worker differ from this process."""
    ours = versions()
    for address, theirs in everywhere(client, versions).items():
        theirs = {"rfx": None} if isinstance(theirs, Exception) else theirs
        for name, version in ours.items():
            if theirs.get(name) != version:
                package = f" {__distribution__}" if name == "rfx" else ""
                raise ClusterError(
                    f"worker {address} has {name} {theirs.get(name)}, but this machine has"
                    f" {version}; install the same{package} on all of them"
                )


# ---------------------------------------------------------------------- tasks


class Workers:
    """The workers of a Dask client, on which the parts 0, 1, … of some rows are stored."""

    def __init__(self, client):
        """Raises ClusterError if there are no workers, or their versions differ.

        Decisions based on the number of workers and their memory, which affect the bits of the
        result, use the workers present now, even if some die later.
        """
        self.client = client
        with reported(client):
            check_versions(client)
            threads = client.nthreads()
            limits = [worker["memory_limit"] for worker in self._known()]
        self.addresses, self.threads = sorted(threads), sum(threads.values())
        # MiB for parts on each worker, within Dask's limit; infinite without a limit
        self.memory_mb = min((limit for limit in limits if limit), default=np.inf) / 2**20 * _SHARE

    def _known(self) -> list[dict]:
        return list(self.client.scheduler_info(n_workers=-1)["workers"].values())

    def submit(self, function, *args, worker=None):
        """The future of function(*args) on a worker; worker: the number of a preferred one. Futures
        among args become values.
        """
        where = {}
        if worker is not None:
            address = self.addresses[worker % len(self.addresses)]
            where = {"workers": address, "allow_other_workers": True}
        parallel.check_time()
        with reported(self.client):
            return self.client.submit(_run, function, *args, pure=False, **where)

    def each(self, function, *parts, common=()) -> list:
        """A future for each part of function(*common, *its entries of these lists), all requested
        in one message.
        """
        args = zip(*((function, *common, *call) for call in zip(*parts, strict=True)))
        parallel.check_time()
        with reported(self.client):
            return self.client.map(_run, *args, pure=False) if parts[0] else []

    def at_home(self, function, parts, numbers, *lists) -> list:
        """A future for each of the parts with these numbers: function(part, *its entries of these
        lists), on the worker that stores it. Neighbours are stored together, so that their sums
        need no transfer.
        """
        return [
            self.submit(function, parts[k], *entries, worker=k * len(self.addresses) // len(parts))
            for k, *entries in zip(numbers, *lists, strict=True)
        ]

    def shared(self, value):
        """The form of a common argument of all parts: itself if it is small, else a future of
        it.
        """
        size = value.nbytes if isinstance(value, np.ndarray) else len(pickle.dumps(value, 5))
        return value if size <= INLINE else self.submit(itself, value)

    def total(self, futures):
        """The future of the sum of arrays or tuples of them, always by the same tree."""
        while len(futures) > 1:
            even = len(futures) // 2 * 2
            futures = [*self.each(_plus, futures[:even:2], futures[1:even:2]), *futures[even:]]
        return futures[0]

    def sum(self, futures):
        """The result of `total`."""
        return self.results([self.total(futures)])[0]

    def entries(self, futures, place: int) -> list:
        """The futures of one entry of each of some tuples, computed where these are."""
        return self.each(itemgetter(place), futures)

    def results(self, futures) -> list:
        """The results of tasks, in order.

        Raises their exceptions, parallel.Late after the deadline, ClusterError if the cluster is
        unavailable.
        """
        distributed = dask()
        since = time.monotonic()
        while True:
            parallel.check_time()
            with reported(self.client):
                with suppress(distributed.TimeoutError), self.client.as_current():
                    distributed.wait(futures, timeout=_LOOK)
                    return self.client.gather(futures)
                # Dask pauses a worker that is close to its memory limit
                if any(worker.get("status") != "paused" for worker in self._known()):
                    since = time.monotonic()
            if time.monotonic() - since > _ALONE:
                raise ClusterError(
                    f"no worker is left at {address_of(self.client)}, or all are out of memory;"
                    " start one (dask worker ADDRESS) or increase the number of parts, and train"
                    " again"
                )


def _run(function, *args):
    """A task: function(*args), with one thread."""
    if env.threads() != 1:
        env.set_threads(1)
    return function(*args)


def itself(value):
    return value


def _plus(a: Any, b: Any) -> Any:
    return tuple(map(_plus, a, b)) if isinstance(a, tuple) else a + b


# ----------------------------------------------------------------------
# Execute a plan's runs on Dask workers: each in a separate process, as `rfx run` executes them
# locally.
#
# distributed assigns the runs, and reassigns those of a worker that died. The result of a run is
# the task's result; the requesting runner writes the row.

_TELL = 1.0  # seconds between two reported steps of a run
_LOOK_FOR_WORKERS = 2.0  # seconds between two checks for workers


@contextmanager
def pool(where: str, way: Way, report):
    """The workers of the scheduler of --scheduler. ClusterError, also outside the block, if they
    become unavailable.
    """
    with connect(where) as client, closing(Pool(client, way, report)) as runs:
        yield runs


class Pool:
    """See `pool`; the words are those of `rfx.runs.runner.Local`."""

    def __init__(self, client, way: Way, report):
        self.client, self.way, self.report = client, way, report
        self.name = f"rfx-{uuid.uuid4().hex}"
        self.count = 0
        # number -> run and future of the unfinished runs
        self.taken: dict[int, tuple[Run, Any]] = {}
        # number -> its last report, None before any
        self.begun: dict[int, ProgressReport | None] = {}
        # simultaneous runs on each machine, whose cores they share, not counted yet
        self.at_once = Counter({"": 1})
        self.looked = float("-inf")
        if client.nthreads():
            check_versions(client)
        client.subscribe_topic(self.name, self._hear)

    def _hear(self, event) -> None:
        """Store what a worker logs: the number of a run, and its last report."""
        _, (number, entries) = event
        self.begun[number] = None if entries is None else ProgressReport.of_dict(entries)

    def at_work(self) -> list[tuple[Run, ProgressReport | None]]:
        begun = sorted(self.begun.copy().items(), key=itemgetter(0))
        return [(self.taken[number][0], told) for number, told in begun if number in self.taken]

    def take(self, todo: list[Run]) -> None:
        self._look()
        # one run waits for each that is at work, so that no worker waits
        while todo and len(self.taken) < 2 * sum(self.at_once.values()):
            run = todo.pop(0)
            self.count = self.count + 1
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
            raise lost(self.client)
        try:
            return result_of(run, future.result())
        except dask().KilledWorker as error:
            return failure(run, "failed", killed(error))
        except Exception as error:
            raise ClusterError(
                f"a worker of {address_of(self.client)} can't run: {type(error).__name__}: {error}"
            ) from error

    def _look(self):
        if time.monotonic() - self.looked > _LOOK_FOR_WORKERS:
            # simultaneous runs on each machine, which is the host in its workers' addresses
            counts: Counter = Counter()
            for address, threads in self.client.nthreads().items():
                counts[_host(address)] += threads
            if self.at_once and not counts:
                address = address_of(self.client)
                self.report(f"{address} has no workers; waiting for workers")
            self.at_once, self.looked = counts, time.monotonic()


def _host(address) -> str:
    return dask().comm.get_address_host(address)


def _resolved(run: Run) -> tuple[Run, str]:
    """A run for other machines, with absolute paths; and the key, by which a worker recognises the
    same data.
    """
    paths = {name: str(getattr(run, name) or "") for name in keys.FILES}
    absolute: JsonObject = {
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
    worker = dask().get_worker()
    run, key = asked
    worker.log_event(name[0], [name[1], None])
    share = max(at_once[_host(worker.address)], worker.state.nthreads)
    child = way.child(run, max(1, env.threads() // share), key)
    reported = 0.0
    last: ProgressReport | None = None
    try:
        while not child.finished():
            task = worker.state.tasks.get(name)
            closing = ("closing", "closed", "failed")
            if task is None or task.state == "cancelled" or worker.status.name in closing:
                raise dask().Reschedule
            if time.monotonic() - reported > _TELL:
                heard = child.heard()
                if heard is not None and heard != last:
                    reported = time.monotonic()
                    last = heard
                    worker.log_event(name[0], [name[1], heard.as_dict()])
            time.sleep(NAP)
    finally:
        child.kill()
    return replace(child.ending(), worker=worker.address, host=os.uname().nodename)
