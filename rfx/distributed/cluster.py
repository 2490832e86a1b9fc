"""A client of Dask's scheduler, by the words of `--scheduler`: the address of one, or a cluster of
processes on this machine.

Nothing of a cluster is made here: distributed schedules, transports and starts anew. Here is how
rfx asks for it, and the one sentence that is said where it can't be had.
"""

import asyncio
import fcntl
import logging
import multiprocessing
import os
import pkgutil
import platform
import shutil
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
# what must not differ between machines
ALIKE = ("rfx", "python", "numpy", "scipy", "numba", "distributed")
DEATHS = 3  # workers that one task may end, on a cluster of ours
_LOGGERS = ("distributed", "distributed.client", "tornado.application", "asyncio")
_PATIENCE = 10.0  # seconds for a scheduler to answer
_STARTING = 120.0  # seconds for the workers of ours to start, on a busy machine too
_GONE = 5.0  # seconds for a worker process of ours to end, and to come back by itself
_SCRATCH = "rfx-workers-"  # how the folders begin that workers of ours write in


def workers_of(where: str) -> int | None:
    """The number of processes that `local:N` asks for (`local`: one for each core); None
    for an address. UsageError for neither.
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
    found = numerals.whole(count) if count.isascii() and count.isdecimal() else 0
    if not 0 < found <= 1024:
        raise UsageError(f"--scheduler {where}: expected local:N with N processes, 1 to 1024")
    return found


@contextmanager
def connect(where: str):
    """A distributed.Client of the scheduler at the address `where`, or of N new processes with one
    thread each for `local:N`.

    When the block ends, so does the client, and with it what it asked for; the processes of
    `local:N` end, too. Raises UsageError for what is no address, ClusterError where distributed is
    not installed, no scheduler answers within seconds, the versions of `ALIKE` differ, or, out of
    the block, when the scheduler has gone away.
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
                # a client that has found its scheduler again has lost all the same what it asked
                # for
                if not isinstance(error, distributed.CancelledError) and answers(client):
                    raise
                raise lost(where) from error


def answers(client) -> bool:
    """Whether the client's scheduler is there: what a worker that dies breaks off looks the
    same as what the scheduler does.
    """
    if client.status != "running":
        return False
    try:
        client.sync(client.scheduler.ncores, callback_timeout=_PATIENCE)
    except Exception:
        return False
    return client.status == "running"


def lost(where: str) -> ClusterError:
    """What is said when the scheduler does not answer any more."""
    return ClusterError(
        f"the connection to the scheduler at {where} is lost; unsaved work is lost, written files"
        " remain"
    )


@contextmanager
def _silence():
    """distributed logs every worker that comes or goes on standard error, where progress
    is; what matters is said by rfx.
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
    """Raise where no scheduler answers at the address: a client would wait for ever for
    what is no part of Dask.
    """

    async def ask():
        async with distributed.rpc(address) as there:
            return await there.identity()

    try:
        found = asyncio.run(asyncio.wait_for(ask(), _PATIENCE))
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
        # of bytes that are no message of Dask's: anything, a MemoryError among it
        raise ClusterError(
            f"the program at {address} is not a Dask scheduler of this version"
            f" ({type(error).__name__})"
        ) from None
    if found.get("type") != "Scheduler":
        raise ClusterError(
            f"the program at {address} is a Dask {str(found.get('type')).lower()}; use the"
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
    # what a worker frees it keeps for its next arrays, as rfx does, an eighth of its memory at
    # most; Dask would have it give all back
    kept = min(env.KEPT_BYTES, int(env.available_memory_mb() * 2**20) // (8 * count))
    malloc = {"TRIM_THRESHOLD_": kept, "MMAP_THRESHOLD_": env.KEPT_ARRAY_BYTES, "ARENA_MAX": 1}
    settings = {
        # of the deaths that a task may bring about, the last is too many
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        # a task waits at the scheduler and not behind another at a worker: one that dies takes with
        # it what it works on only
        "distributed.scheduler.worker-saturation": 1.0,
        # a nanny starts its worker anew, however long that takes; Dask would end the nanny after 15
        # seconds
        "distributed.deploy.lost-worker-timeout": "1 day",
        # on a busy machine a process that is there may need long to answer; one that has ended
        # refuses at once
        "distributed.comm.timeouts.connect": f"{_STARTING:g}s",
        "distributed.worker.preload": [__name__],
        **{
            f"distributed.nanny.pre-spawn-environ.MALLOC_{name}": value
            for name, value in malloc.items()
        },
    }
    with _scratch() as folder, dask.configured(settings | {"temporary-directory": folder}):
        # the scheduler alone, which is in this process; the workers follow, for one of them may end
        # while it starts
        cluster = distributed.LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            silence_logs=logging.CRITICAL,
            # no dashboard; what is left of its server must not take, nor complain about, the port
            # of another
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            memory_limit=1 / count,
        )
        try:
            _start(cluster, count)
            # workers of this machine can be reached without the scheduler between
            with _opened(distributed, cluster, direct_to_workers=True) as client:
                yield client
        finally:
            _close(cluster)


def _close(cluster) -> None:
    """End a cluster of ours and its workers, also those that do not end when they are asked
    to, such as stopped ones.
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
    """Start so many workers. One that ends while it starts is replaced; ClusterError where
    that happens again and again.
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
    """A folder for what our workers write, removed at the end of the block, when they have ended.

    The folders of commands that were killed with all they had started are removed first: nobody
    holds their locks.
    """
    place = tempfile.gettempdir()
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_SCRATCH) and entry.is_dir(follow_symlinks=False):
                _remove_unused(entry.path)
    while True:
        folder = tempfile.mkdtemp(prefix=_SCRATCH, dir=place)
        # the lock lives as long as this process does
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(folder):
            break
        os.close(lock)  # another process took it for unused before it was locked
    try:
        yield folder
    finally:
        # Dask clears up there once more when this process ends, and would say that nothing is left
        # to remove
        logging.getLogger("distributed.diskutils").setLevel(logging.CRITICAL + 1)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_unused(folder) -> None:
    """Remove a folder that no process holds the lock of."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(lock).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def dask_setup(worker) -> None:
    """Preloaded by the workers of `local:N`, which share the terminal: rfx ends them after
    Ctrl-C, and speaks for them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@lru_cache
def versions() -> dict[str, str]:
    """Those of `ALIKE` in this process."""
    known = {"rfx": __version__, "python": platform.python_version()}
    return {name: known[name] if name in known else metadata.version(name) for name in ALIKE}


def difference(ours: dict, theirs: dict, who: str) -> str | None:
    """One sentence about the first version that differs on the worker `who`, or None.
    Python's third number makes no difference.
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
    """Raise ClusterError where the versions of a worker that is there now, or the
    scheduler's distributed, differ from ours.
    """
    ours = versions()
    found = client.get_versions(packages=["scipy", "numba"])
    theirs = found["scheduler"]["packages"]["distributed"]
    if theirs != ours["distributed"]:
        raise ClusterError(
            f"the scheduler has distributed {theirs}, this machine {ours['distributed']}; install"
            " the same version on both"
        )
    # of the package that they would import: by its name the distribution's might be of another one,
    # or of none in a checkout
    own = client.run(pkgutil.resolve_name, "rfx._version:__version__", on_error="return")
    for address, one in found["workers"].items():
        # a worker that has gone since answers nothing, or an OSError
        rfx = (
            None
            if isinstance(own.get(address), (ImportError, AttributeError))
            else own.get(address)
        )
        theirs = {"rfx": ours["rfx"] if isinstance(rfx, OSError) or address not in own else rfx}
        theirs |= {"python": one["host"]["python"], **one["packages"]}
        told = difference(ours, theirs, f"worker {address}")
        if told:
            raise ClusterError(told)


def wait_for_workers(client, seconds: float = 30.0, count: int = 1) -> dict[str, int]:
    """Threads of each worker by its address, as soon as there are `count`, or one at least after
    two minutes.

    Raises ClusterError where none comes within `seconds`.
    """
    start = time.monotonic()
    while len(found := client.nthreads()) < count:
        waited = time.monotonic() - start
        if found and waited > _STARTING:
            break
        if not found and waited > seconds:
            raise ClusterError(
                f"{client.scheduler.address} has no workers, and none came within {seconds:g}"
                " seconds; start some"
            )
        time.sleep(0.1)
    return dict(found)


def threads_of_a_task(nthreads: int) -> int:
    """Threads for each of the tasks that a worker with that many threads runs at a time:
    its machine's cores, divided.
    """
    return max(1, env.threads() // nthreads)
