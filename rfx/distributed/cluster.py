"""A client of a Dask scheduler for `--scheduler`: the address of a scheduler, or a local cluster of
processes.

Scheduling, transport and restarts are left to distributed. This module configures it for rfx, and
turns its failures into one-sentence errors.
"""

import asyncio
import logging
import multiprocessing
import os
import pkgutil
import platform
import signal
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import metadata

from rfx import env, numerals
from rfx._version import __distribution__, __version__
from rfx.distributed import dask
from rfx.errors import ClusterError, UsageError

LOCAL = "local"
# must be equal on all machines
ALIKE = ("rfx", "python", "numpy", "scipy", "numba", "distributed")
DEATHS = 3  # workers that one task may end, on a local cluster
_LOGGERS = ("distributed", "distributed.client", "tornado.application", "asyncio")
_PATIENCE = 10.0  # seconds for a scheduler to answer
_STARTING = 120.0  # seconds for local workers to start, even on a busy machine
_GONE = 5.0  # seconds for a local worker process to end, and to reconnect
_SCRATCH = "rfx-workers-"  # prefix of the folders of local workers


def workers_of(where: str) -> int | None:
    """The number of processes in `local:N` (`local`: one per core); None for an address. UsageError
    for neither.
    """
    name, colon, count = where.partition(":")
    if name != LOCAL:
        if not where.strip():
            raise UsageError(
                "--scheduler is empty: expected an address such as tcp://10.0.0.1:8786, or local:N"
            )
        return None
    if not colon:
        return len(os.sched_getaffinity(0))
    number = numerals.whole(count) if count.isascii() and count.isdecimal() else 0
    if not 0 < number <= 1024:
        raise UsageError(f"--scheduler {where}: expected local:N with N processes, 1 to 1024")
    return number


@contextmanager
def connect(where: str):
    """A distributed.Client of the scheduler at the address `where`, or of N new processes with one
    thread each for `local:N`.

    At the end of the block, the client and its requests end, and so do the processes of `local:N`.
    Raises UsageError for an invalid address, ClusterError if distributed is not installed, no
    scheduler answers within seconds, the versions of `ALIKE` differ, or, outside the block, if the
    scheduler has disconnected.
    """
    count = workers_of(where)
    distributed = dask.distributed()
    with _silence():
        if count is None:
            _knock(distributed, where)
            opened = _opened(distributed, where)
        else:
            opened = _local(distributed, count)
        with opened as client:
            try:
                check_versions(client)
                yield client
            except (
                OSError,
                RuntimeError,
                TimeoutError,
                asyncio.CancelledError,
                distributed.CancelledError,
            ) as error:
                # a client that has reconnected to its scheduler has still lost its requests
                if not isinstance(error, distributed.CancelledError) and answers(client):
                    raise
                raise lost(where) from error


def answers(client) -> bool:
    """Whether the client's scheduler is reachable: a broken connection of a dying worker looks the
    same as one of the scheduler.
    """
    if client.status != "running":
        return False
    try:
        client.sync(client.scheduler.ncores, callback_timeout=_PATIENCE)
    except Exception:
        return False
    return client.status == "running"


def lost(where: str) -> ClusterError:
    """The error when the scheduler no longer answers."""
    return ClusterError(
        f"the connection to the scheduler at {where} is lost; unsaved work is lost, written files"
        " remain"
    )


@contextmanager
def _silence():
    """distributed logs every worker that joins or leaves on standard error, where progress is
    shown; rfx reports what matters.
    """
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before):
            logger.setLevel(level)


def _knock(distributed, address) -> None:
    """Raise an error if no scheduler answers at the address: a client would wait forever for a
    server that is not Dask.
    """

    async def ask():
        async with distributed.rpc(address) as there:
            return await there.identity()

    try:
        server = asyncio.run(asyncio.wait_for(ask(), _PATIENCE))
    except ValueError as error:
        raise UsageError(
            f"--scheduler {address}: {error}; expected an address such as tcp://10.0.0.1:8786, or"
            " local:N"
        ) from None
    except (OSError, TimeoutError) as error:
        reason = (
            "" if isinstance(error, TimeoutError) or "Timed out" in str(error) else f" ({error})"
        )
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {_PATIENCE:g} seconds{reason}; check"
            " that it is running and that the port is open"
        ) from None
    except Exception as error:
        # for bytes that are not a Dask message: any exception, including MemoryError
        raise ClusterError(
            f"the program at {address} is not a Dask scheduler of this version"
            f" ({type(error).__name__})"
        ) from None
    if server.get("type") != "Scheduler":
        raise ClusterError(
            f"the program at {address} is a Dask {str(server.get('type')).lower()}; use the"
            " scheduler's address"
        )


@contextmanager
def _opened(distributed, address, patience=_PATIENCE, **more):
    try:
        client = distributed.Client(address, timeout=patience, set_as_default=False, **more)
    except (OSError, TimeoutError, RuntimeError, ValueError, ImportError) as error:
        raise ClusterError(f"the Dask scheduler at {address} accepts no client: {error}") from None
    try:
        yield client
    finally:
        with suppress(TimeoutError):
            client.close(timeout=2)


@contextmanager
def _local(distributed, count):
    # workers, like rfx, reuse freed memory for the next arrays, up to an eighth of their memory;
    # Dask would return it all
    reused = min(env.KEPT_BYTES, int(env.available_memory_mb() * 2**20) // (8 * count))
    malloc = {"TRIM_THRESHOLD_": reused, "MMAP_THRESHOLD_": env.KEPT_ARRAY_BYTES, "ARENA_MAX": 1}
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
        **{
            f"distributed.nanny.pre-spawn-environ.MALLOC_{name}": value
            for name, value in malloc.items()
        },
    }
    with _scratch() as folder, dask.configured(settings | {"temporary-directory": folder}):
        # first only the scheduler, in this process; workers may fail during start-up
        cluster = distributed.LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            silence_logs=logging.CRITICAL,
            # no dashboard; the remaining server must not take, nor complain about, another's port
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            memory_limit=1 / count,
        )
        try:
            _start(cluster, count)
            # workers of this machine are reachable without the scheduler
            with _opened(distributed, cluster, direct_to_workers=True) as client:
                yield client
        finally:
            _close(cluster)


def _close(cluster) -> None:
    """End a local cluster and its workers, including those that do not respond, such as stopped
    ones.
    """
    end = time.monotonic() + _STARTING
    while time.monotonic() < end:
        try:
            return cluster.close(timeout=_GONE)
        except TimeoutError:
            for process in multiprocessing.active_children():
                if process.name.startswith("Dask Worker"):
                    process.kill()


def _start(cluster, count) -> None:
    """Start this many workers. One that ends during start-up is replaced; ClusterError if that
    happens repeatedly.
    """
    end, replaced = time.monotonic() + _STARTING, 0
    gone: dict[object, float] = {}
    cluster.scale(count)
    while len(cluster.scheduler.workers) < count:
        now = time.monotonic()
        for name, nanny in list(cluster.workers.items()):
            if nanny.status.name not in ("failed", "closed") and nanny.is_alive():
                gone.pop(name, None)
            elif (
                nanny.status.name in ("failed", "closed")
                or now - gone.setdefault(name, now) > _GONE
            ):
                if name in cluster.worker_spec:
                    replaced += 1
                    cluster.worker_spec[f"{name}+"] = cluster.worker_spec.pop(name)
                    cluster.scale(count)
        if replaced >= DEATHS * count:
            raise ClusterError(
                f"{replaced} worker processes ended during start-up; they may lack memory: start"
                " fewer of them"
            )
        if now > end:
            if cluster.scheduler.workers:
                return
            raise ClusterError(
                f"no worker process started within {_STARTING:g} seconds; try again when the"
                " machine is less busy"
            )
        time.sleep(0.02)


@contextmanager
def _scratch():
    """A folder for the files of local workers, removed at the end of the block, after they have
    ended.
    """
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, ignore_cleanup_errors=True) as folder:
        try:
            yield folder
        finally:
            # Dask cleans up there again when this process ends, and would report that nothing is
            # left to remove
            logging.getLogger("distributed.diskutils").setLevel(logging.CRITICAL + 1)


def dask_setup(worker) -> None:
    """Preloaded by the workers of `local:N`, which share the terminal: rfx ends them after Ctrl-C,
    and prints for them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@lru_cache
def versions() -> dict[str, str]:
    """The versions of `ALIKE` in this process."""
    here = {"rfx": __version__, "python": platform.python_version()}
    return {name: here.get(name) or metadata.version(name) for name in ALIKE}


def difference(ours: dict, theirs: dict, who: str) -> str | None:
    """A sentence about the first version that differs on the worker `who`, or None. Python's patch
    version may differ.
    """
    for name, here in ours.items():
        there = theirs.get(name)
        if name == "python":
            here, there = (".".join(str(text).split(".")[:2]) for text in (here, there))
        if here != there:
            has = f"{name} {there}" if there else f"no {name}"
            package = f" {__distribution__}" if name == "rfx" else ""
            return (
                f"{who} has {has}, but this machine has {name} {here}; install the same{package} on"
                " all of them"
            )
    return None


def check_versions(client) -> None:
    """Raise ClusterError if the versions of a current worker, or the scheduler's distributed,
    differ from this process.
    """
    ours = versions()
    versions_there = client.get_versions(packages=["scipy", "numba"])
    theirs = versions_there["scheduler"]["packages"]["distributed"]
    if theirs != ours["distributed"]:
        raise ClusterError(
            f"the scheduler has distributed {theirs}, this machine {ours['distributed']}; install"
            " the same version on both"
        )
    # of the imported package: by distribution name it could be another one, or none in a checkout
    answers = client.run(pkgutil.resolve_name, "rfx._version:__version__", on_error="return")
    for address, worker in versions_there["workers"].items():
        # a worker that has left since returns nothing, or an OSError
        rfx = answers.get(address, OSError())
        if isinstance(rfx, OSError):
            rfx = ours["rfx"]
        rfx = None if isinstance(rfx, (ImportError, AttributeError)) else rfx
        theirs = {"rfx": rfx, "python": worker["host"]["python"], **worker["packages"]}
        if problem := difference(ours, theirs, f"worker {address}"):
            raise ClusterError(problem)


def wait_for_workers(client, seconds: float = 30.0, count: int = 1) -> dict[str, int]:
    """Threads of each worker by its address, as soon as there are `count`, or at least one after
    two minutes.

    Raises ClusterError if none connects within `seconds`.
    """
    start = time.monotonic()
    while len(threads := client.nthreads()) < count:
        waited = time.monotonic() - start
        if threads and waited > _STARTING:
            break
        if not threads and waited > seconds:
            raise ClusterError(
                f"{client.scheduler.address} has no workers, and none came within {seconds:g}"
                " seconds; start some"
            )
        time.sleep(0.1)
    return dict(threads)


def threads_of_a_task(nthreads: int) -> int:
    """Threads per task on a worker that runs so many tasks at a time: its machine's cores,
    divided.
    """
    return max(1, env.threads() // nthreads)
