"""Threads for loops that release the GIL: numba functions compiled with nogil, numpy ufuncs, BLAS."""

import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

from rfx import env

# Parts of a product's rows.
_PARTS = 16
# Multiplications that are done sooner by one thread than told to another.
_FEW = 1 << 20
_here = threading.local()
_deadline = contextvars.ContextVar("deadline", default=None)


class Late(Exception):
    """The time of `until` is up."""


@contextmanager
def until(deadline: float | None):
    """Within it, work that is shared out here, and what asks `check_time`, raises Late from that value of time.monotonic() on."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time():
    """Raise Late where the deadline of `until` has passed: for loops that take long."""
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() >= deadline:
        raise Late


@lru_cache(maxsize=1)
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="rfx")


def for_ranges(function, size: int, smallest: int = 1, parts: int | None = None, work: int = _FEW) -> list:
    """Call `function(start, stop)` over contiguous parts of range(size), one part per thread.

    Parts hold at least `smallest` items. work: the multiplications of all parts together, of which few are not shared out. Returns
    the results in the order of the parts; the first exception is raised when all parts have ended, and Late at once where there is
    no time left (see `until`). The caller sees to it that parts write to disjoint places. A call from within a part does not ask
    for more threads.
    """
    check_time()
    threads = 1 if work < _FEW or getattr(_here, "inside", False) else env.threads()
    parts = max(1, min(parts or threads, size // max(1, smallest)))
    bounds = [size * part // parts for part in range(parts + 1)]
    if parts == 1 or threads == 1:
        return [function(start, stop) for start, stop in zip(bounds, bounds[1:])]
    # each part in a copy of the caller's context: numpy keeps there what becomes of an overflow
    futures = [
        _pool(threads).submit(contextvars.copy_context().run, _part, function, start, stop) for start, stop in zip(bounds, bounds[1:])
    ]
    return [future.result() for future in futures]


def _part(function, start, stop):
    _here.inside = True
    try:
        return function(start, stop)
    finally:
        _here.inside = False


def close() -> None:
    """Let idle threads end; a later call makes new ones.

    An interrupt while a thread is being started leaves it unknown to the interpreter's own clearing up at its end, which then
    waits for it for ever; a pool that nobody holds any more ends all of its threads.
    """
    _pool.cache_clear()


def matmul(A, B, out=None):
    """A @ B by all threads, the same to the last bit for any number of them: always the same parts of A's rows."""
    with one_blas_thread():
        return matmul_within(A, B, out)


def matmul_within(A, B, out=None):
    """What `matmul` gives, within `one_blas_thread`: that costs as much as the product of some ten rows with a thousand columns."""
    if out is None:
        out = np.empty((A.shape[0], *B.shape[1:]), np.result_type(A, B))
    work = A.size * B[:1].size
    for_ranges(lambda start, stop: np.matmul(A[start:stop], B, out=out[start:stop]), len(A), 64, _PARTS, work)
    return out


@lru_cache(maxsize=1)
def _libraries():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread():
    """A context in which every BLAS or LAPACK call keeps to one thread: for calls that are made from several of ours.

    Entered around `for_ranges`, not within its parts: it changes the whole process and takes that back at its end.
    """
    return _libraries().limit(limits=1, user_api="blas")
