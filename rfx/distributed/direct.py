"""Small results requested directly from workers: a task through the scheduler takes several times
as long as the message.

On each worker, a Dask actor applies a function to data held by the worker. It has no state, so
nothing is lost with it: if a result is unavailable, because a value is elsewhere or a worker has
left, None is returned and the caller uses tasks.
"""

import time
from dataclasses import dataclass

from rfx import lazy, parallel
from rfx.distributed import dask

# Seconds between checks of the clock and the cluster while waiting for a result.
_PATIENCE = 2.0


@dataclass(frozen=True)
class _Held:
    """The value held by a worker under this key."""

    key: object


class Applier:
    """The actor, with the single method `apply`."""

    async def apply(self, run, common, calls):
        """[run(*common, *own) for own in calls] in the threads of the worker's tasks; None if it
        does not hold a value.
        """
        worker = dask.distributed().get_worker()
        try:
            common, calls = _values(common, worker.data), _values(calls, worker.data)
        except KeyError:
            return None
        threads = worker.executors["default"]
        return await lazy.asyncio.gather(
            *(worker.loop.run_in_executor(threads, run, *common, *own) for own in calls)
        )


class Direct:
    """The actors of a cluster's workers, created with the first request, and the worker of each
    part.
    """

    def __init__(self, client, addresses):
        self.client, self.addresses, self.works = client, addresses, True
        self._actors, self._homes = None, {}

    def answers(self, run, common, calls):
        """[run(*common, *own) for own in calls], with values in place of the futures among these;
        None if unavailable.

        Raises parallel.Late after the deadline. After any other failure, tasks report the error,
        and no actor is used again.
        """
        if not self.works or _pending(calls) or _pending(common):
            return None
        try:
            found = self._asked(run, common, calls)
        except parallel.Late:
            raise
        except Exception:
            self.works, found = False, None
        if found is None:
            self._homes.clear()
        return found

    def _asked(self, run, common, calls):
        homes = self._homes.get(len(calls)) or self._located(calls)
        if homes is None:
            return None
        if self._actors is None:
            if not set(self.addresses) <= self._known().keys():
                self.works = False  # one has already ended and would never answer
                return None
            self._actors = self._made()
        asked = {}
        with self.client.as_current():
            for home in dict.fromkeys(homes):
                own = [_keys(call) for call, place in zip(calls, homes) if place == home]
                asked[home] = self._actors[home].apply(run, _keys(common), own)
            found = {home: self._waited(future, home) for home, future in asked.items()}
        if None in found.values():
            return None
        self._homes[len(calls)] = homes
        each = {home: iter(own) for home, own in found.items()}
        return [next(each[home]) for home in homes]

    def _known(self) -> dict:
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def _made(self) -> dict:
        """An actor on each worker, by its address."""
        futures = [
            self.client.submit(Applier, actor=True, workers=[address], pure=False)
            for address in self.addresses
        ]
        with self.client.as_current():
            return dict(
                zip(
                    self.addresses,
                    [future.result(timeout=10 * _PATIENCE) for future in futures],
                    strict=True,
                )
            )

    def _located(self, calls):
        """The address of each call's first value; None if one has none, or is not on a previously
        known worker.
        """
        firsts = [_first(call) for call in calls]
        if None in firsts:
            return None
        found = self.client.who_has(firsts)
        homes = [next(iter(found.get(first.key) or ()), None) for first in firsts]
        return homes if set(homes) <= set(self.addresses) else None

    def _waited(self, future, home):
        while True:
            parallel.check_time()
            start = time.monotonic()
            try:
                return future.result(timeout=_PATIENCE)
            except dask.distributed().TimeoutError:
                if time.monotonic() - start < _PATIENCE / 2 or home not in self._known():
                    raise


def _is_future(value) -> bool:
    return isinstance(value, dask.distributed().Future)


def _pending(value) -> bool:
    """Whether a future among nested lists and tuples has no value yet."""
    if isinstance(value, (list, tuple)):
        return any(map(_pending, value))
    return _is_future(value) and value.status != "finished"


def _first(value):
    """The first future among nested lists and tuples."""
    if _is_future(value):
        return value
    if isinstance(value, (list, tuple)):
        return next((found for found in map(_first, value) if found is not None), None)
    return None


def _keys(value):
    """Nested lists and tuples with keys for futures."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_keys, value))
    return _Held(value.key) if _is_future(value) else value


def _values(value, held):
    """The inverse of `_keys`, with the data held by a worker."""
    if isinstance(value, (list, tuple)):
        return type(value)(_values(own, held) for own in value)
    return held[value.key] if isinstance(value, _Held) else value
