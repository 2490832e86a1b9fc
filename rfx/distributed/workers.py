"""Functions run on the parts of rows on Dask workers, and sums over the parts in a fixed order.

Everything is a task without side effects: Dask recomputes the data of a dead worker from the tasks
that produced it.
"""

import contextlib
import os
import pickle
import socket
import time
from functools import reduce
from operator import itemgetter
from typing import Any

import numpy as np

from rfx import env, parallel
from rfx.distributed import cluster, dask
from rfx.errors import ClusterError, RfxError

# Seconds between checks of the clock and the cluster while waiting for a result; seconds without
# any worker after which waiting ends.
_PATIENCE, _ALONE = 2.0, 60.0
# Maximum bytes of an argument sent with every task; a larger one is sent once and forwarded among
# the workers.
INLINE = 1 << 17
# Fraction of a worker's memory for features: above 60 percent Dask writes to disk.
_HELD = 0.4


class Workers:
    """The workers of a Dask client, on which the parts 0, 1, … of some rows are stored."""

    def __init__(self, client, count: int = 1):
        """count: number of workers to wait for. Raises ClusterError if there are none, or their
        versions differ.

        Decisions based on the number of workers and their memory, which affect the bits of the
        result, use the workers present now, even if some die later.
        """
        self.client, self.home = client, _process()
        with self.asked():
            threads = cluster.wait_for_workers(client, count=count)
            self.addresses, self.threads = sorted(threads), max(count, sum(threads.values()))
            cluster.check_versions(client)
            limits = [worker["memory_limit"] for worker in self._known().values()]
        # MiB for parts on each worker, within Dask's limit; infinite without a limit
        self.memory_mb = min((limit for limit in limits if limit), default=np.inf) / 2**20 * _HELD
        self._copies: list[Any] = []

    def _known(self) -> dict:
        return self.client.scheduler_info(n_workers=-1)["workers"]

    # ------------------------------------------------------------------ tasks

    def submit(self, function, *args, worker=None):
        """The future of function(*args) on a worker; worker: the number of a preferred one. Futures
        among args become values.
        """
        parallel.check_time()
        where = (
            {}
            if worker is None
            else {
                "workers": self.addresses[worker % len(self.addresses)],
                "allow_other_workers": True,
            }
        )
        with self.asked():
            return self.client.submit(
                _run, cluster.versions(), self.home, function, *args, pure=False, **where
            )

    def each(self, function, *parts, common=()) -> list:
        """A future for each part of function(*common, *its entries of these lists), all requested
        in one message.
        """
        parallel.check_time()
        calls = list(zip(*parts, strict=True))
        args = zip(*((cluster.versions(), self.home, function, *common, *call) for call in calls))
        with self.asked():
            return self.client.map(_run, *args, pure=False) if calls else []

    def everywhere(self, function, *args) -> dict:
        """function(*args) on every live worker, by its address: one that dies is omitted, and one
        that starts is included.
        """
        end = time.monotonic() + _ALONE
        answers: dict[str, Any] = {}
        while True:
            parallel.check_time()
            with self.asked():
                living = self.client.nthreads()
                missing = [address for address in living if address not in answers]
                if living and not missing:
                    break
                # an error here is between the scheduler and a worker; exceptions of the function
                # are returned as its result
                latest = (
                    self.client.run(_tried, function, args, workers=missing, on_error="return")
                    if missing
                    else {}
                )
            answers |= {
                address: answer
                for address, answer in latest.items()
                if not isinstance(answer, BaseException)
            }
            if time.monotonic() > end:
                who = f"worker {missing[0]} does not answer" if missing else "no worker is left"
                raise ClusterError(f"{who} at {self._address}; restart it and train again")
            if not missing or missing[0] not in answers:
                time.sleep(0.1)
        for _, error in answers.values():
            if error is not None:
                raise error
        return {address: answers[address][0] for address in living}

    def shared(self, value, everywhere=False):
        """The form of a common argument of all parts: itself if it is small, else a future of it.

        everywhere: let every worker fetch it now, not on first use.
        """
        size = value.nbytes if isinstance(value, np.ndarray) else len(pickle.dumps(value, 5))
        if size <= INLINE:
            return value
        future = self.submit(_same, value)
        if everywhere:
            self._copies = [
                self.submit(_nothing, future, worker=k) for k in range(len(self.addresses))
            ]
        return future

    def total(self, futures):
        """The future of the sum of arrays or tuples of them, always by the same tree."""
        return self._summed(futures, 1)[0]

    def sum(self, futures):
        """The sum of `total`. Its last two terms are added here, which saves a transfer and a
        task.
        """
        return reduce(_plus, self.results(self._summed(futures, 2)))

    def _summed(self, futures, most):
        """At most that many futures of sums, by a tree."""
        while len(futures) > most:
            even = len(futures) // 2 * 2
            futures = [*self.each(_plus, futures[:even:2], futures[1:even:2]), *futures[even:]]
        return futures

    def entries(self, futures, place: int) -> list:
        """The futures of one entry of each of some tuples, computed where these are."""
        return self.each(itemgetter(place), futures)

    # ------------------------------------------------------------------ results

    def result(self, future):
        """The result of a task, see `results`."""
        return self.results([future])[0]

    def results(self, futures) -> list:
        """The results of tasks, in order.

        Raises their exceptions, parallel.Late after the deadline, ClusterError if the cluster is
        unavailable.
        """
        distributed = dask.distributed()
        alone, last_error = None, None
        while True:
            parallel.check_time()
            with self.asked():
                with contextlib.suppress(distributed.TimeoutError), self.client.as_current():
                    distributed.wait(futures, timeout=_PATIENCE)
                    try:
                        return self.client.gather(futures)
                    except OSError as error:
                        # of a task, and the same each time, or of a worker that died during the
                        # request
                        if repr(error) == last_error or not cluster.answers(self.client):
                            raise
                        last_error = repr(error)
                        continue
                present = self._known().values()
                alone = (
                    None
                    if any(worker.get("status") != "paused" for worker in present)
                    else alone or time.monotonic()
                )
            if alone is not None and time.monotonic() - alone > _ALONE:
                if present:
                    raise ClusterError(
                        f"the workers at {self._address} are out of memory; increase their memory"
                        " or the number of parts"
                    )
                raise ClusterError(
                    f"no worker is left at {self._address}; start one (dask worker ADDRESS) and"
                    " train again"
                )

    @property
    def _address(self):
        return getattr(self.client.scheduler, "address", "the scheduler")

    @contextlib.contextmanager
    def asked(self):
        """Raise ClusterError for Dask's exceptions if the cluster does not work properly; rfx's own
        errors pass through.
        """
        distributed = dask.distributed()
        try:
            yield
        except (RfxError, parallel.Late):
            raise
        except distributed.KilledWorker as error:
            raise ClusterError(
                f"the same task ended {getattr(error, 'allowed_failures', 3) + 1} workers"
                f" ({error.last_worker.address} was the last); if memory ran out, increase it or"
                " the number of parts"
            ) from None
        except (ImportError, pickle.UnpicklingError) as error:
            raise ClusterError(
                f"a worker can't run its part ({_first(error)}); install the same rfx there"
            ) from None
        except Exception as error:
            if isinstance(error, distributed.client.FutureCancelledError) or not cluster.answers(
                self.client
            ):
                gone = f"the scheduler at {self._address} does not answer"
            elif isinstance(error, OSError):
                gone = f"a worker of {self._address} can't run its part"
            else:
                raise
            raise ClusterError(f"{gone} ({_first(error)}); train again") from None


def here() -> str:
    """The worker's name in messages that it creates."""
    try:
        return f"worker {dask.distributed().get_worker().address}"
    except ValueError:
        return "this machine"


def _first(error) -> str:
    return (str(error).splitlines() or [""])[0][:200] or type(error).__name__


def _process() -> tuple:
    return socket.gethostname(), os.getpid()


def _run(expected, home, function, *args):
    """A task: function(*args), with one thread unless it is in the client's own process, on a
    worker with the expected versions.
    """
    if expected != cluster.versions() and (
        problem := cluster.difference(expected, cluster.versions(), here())
    ):
        raise ClusterError(problem)
    if env.threads() != 1 and _process() != home:
        env.set_threads(1)
    return function(*args)


def _tried(function, args) -> tuple:
    """(function(*args), None), or None and the exception."""
    try:
        return function(*args), None
    except Exception as error:
        return None, error


def _same(value):
    return value


def _nothing(value):
    return None


def _plus(a, b):
    return tuple(map(_plus, a, b)) if isinstance(a, tuple) else a + b
