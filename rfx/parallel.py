"""Threads: loops that release the GIL run in parallel, while BLAS uses one thread.

numba functions compiled with nogil, numpy's ufuncs and its products release the GIL. Small work
runs in the calling thread. Waiting threads sleep, because spinning costs more than it saves on a
busy machine.
"""

import contextvars
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ContextDecorator, contextmanager
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from rfx import env, lazy

# Parts of a product's rows.
_PARTS = 16
# Multiplications, of about half a nanosecond each, below which one thread is faster than several: 2
# milliseconds. A busy machine may take longer than that to wake another thread.
_FEW = 1 << 22
# Multiplications of a matrix product that take as long as one of a loop, and columns of a tile of a
# Gram matrix.
DENSE, _TILE = 8, 512
_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)
# Whether this thread works on a part of a loop.
_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("inside", default=False)
T = TypeVar("T")


class cached(Generic[T]):
    """A property computed on first use and stored in the object.

    Up to Python 3.11, `functools.cached_property` holds a lock for all objects of a class, so parts
    of a loop in other threads would wait for a property that the loop is part of. Without a lock,
    two threads may compute the same value.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self.name] = self.function(instance)
        return value


class Late(Exception):
    """The deadline of `until` has passed."""


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Inside the block, parallel work and `check_time` raise Late from that value of
    time.monotonic() on.
    """
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time() -> None:
    """Raise Late if the deadline of `until` has passed: for long loops."""
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() >= deadline:
        raise Late


# ---------------------------------------------------------------------------- loops


@lru_cache(maxsize=1)
def _helpers(count: int) -> ThreadPoolExecutor:
    """The threads in addition to the caller's; those of another number end when they are idle."""
    return ThreadPoolExecutor(count, thread_name_prefix="rfx")


def for_ranges(
    function: Callable[[int, int], T],
    size: int,
    smallest: int = 1,
    parts: int | None = None,
    work: float = np.inf,
) -> list:
    """Call `function(start, stop)` over contiguous parts of range(size), distributed over threads.

    By default there is one part per thread; each has at least `smallest` items. The caller also
    works and processes every part that no other thread has begun, so it never waits for a thread
    that is not scheduled. A call from within a part uses no more threads. The caller must ensure
    that parts write to disjoint memory.

    Parameters
    ----------
    work : float
        Multiplications of all parts together, or an equivalent amount; small amounts run in one
        thread.

    Returns
    -------
    list
        The results in the order of the parts.

    Raises
    ------
    Exception
        That of a part, once no part is running; Late at once if the deadline has passed (see
        `until`).
    """
    check_time()
    threads = 1 if work < _FEW or _inside.get() else env.threads()
    parts = max(1, min(parts or threads, size // max(1, smallest)))
    ranges = list(itertools.pairwise(size * part // parts for part in range(parts + 1)))
    threads = min(threads, parts)
    if threads == 1:
        return [function(start, stop) for start, stop in ranges]
    results: list[T | None] = [None] * parts
    # an iterator in C returns each number to one thread only
    numbers = iter(range(parts))

    def work_parts() -> None:
        for number in numbers:
            results[number] = function(*ranges[number])

    helping: list[Future] = []
    failure: BaseException | None = None
    token = _inside.set(True)
    try:
        for _ in range(threads - 1):
            # in a copy of the caller's context, where numpy stores its overflow handling
            context = contextvars.copy_context()
            helping.append(_helpers(env.threads() - 1).submit(context.run, work_parts))
        work_parts()
    except Exception as error:
        failure = error
    finally:
        _inside.reset(token)
        for _ in numbers:
            pass  # after an error, no part begins; an interrupt does not wait for those that have
    for one in helping:
        if not one.cancel():
            failure = one.exception() or failure
    if failure is not None:
        raise failure
    return results


def close() -> None:
    """Let idle threads end; a later call creates new ones.

    If an interrupt arrives while a thread starts, the interpreter's shutdown waits for it forever.
    A pool without references ends all its threads.
    """
    _helpers.cache_clear()


# ---------------------------------------------------------------------------- products


def matmul(A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """A @ B by all threads: bitwise the same for any number of threads, because A's rows are always
    split into the same parts.
    """
    if out is None:
        out = np.empty((A.shape[0], *B.shape[1:]), np.result_type(A, B))
    # a product with few columns takes as long as reading A
    columns = B[:1].size
    work = A.size * max(min(columns, 1), columns / DENSE)
    with one_blas_thread():
        for_ranges(
            lambda start, stop: np.matmul(A[start:stop], B, out=out[start:stop]),
            len(A),
            64,
            _PARTS,
            work,
        )
    return out


def add_gram(A: np.ndarray, out: np.ndarray) -> None:
    """out (n, n) <- out + A'A, for A (m, n), on and above the diagonal, by all threads; `out` is
    undefined below it.

    Bitwise the same for any number of threads: each sum is one product, of a tile of at most 512 x
    512 entries.
    """
    starts = range(0, A.shape[1], _TILE)
    tiles = [(slice(i, i + _TILE), slice(j, j + _TILE)) for i in starts for j in starts if i <= j]

    def part(first: int, last: int) -> None:
        for rows, columns in tiles[first:last]:
            # numpy calls SYRK, half the work, for the product of a matrix with itself
            out[rows, columns] += A[:, rows].T @ A[:, columns]

    with one_blas_thread():
        for_ranges(part, len(tiles), 1, len(tiles), A.size * A.shape[1] / 2 / DENSE)


# ---------------------------------------------------------------------------- BLAS


class BlasLibrary(Protocol):
    """A BLAS that this process has loaded, as threadpoolctl represents it."""

    def get_num_threads(self) -> int: ...

    def set_num_threads(self, num_threads: int) -> None: ...


@lru_cache(maxsize=1)
def _libraries() -> list[BlasLibrary]:
    controllers = lazy.threadpoolctl.ThreadpoolController().lib_controllers
    return [library for library in controllers if library.user_api == "blas"]


def _set_blas_threads(counts: list[tuple[BlasLibrary, int]]) -> None:
    """Set numbers of threads: (library, number) pairs, from any thread.

    threadpoolctl allows only the first thread that ever set one to change it, and silently ignores
    others.
    """
    for library, count in counts:
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(count)
        release(force=True)


class _OneBlasThread(ContextDecorator):
    """BLAS's number of threads: one while any thread of this process is in `one_blas_thread`, else
    its previous value.

    It applies to the whole process. The first thread to enter sets it and the last to leave
    restores it, in any order.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.entered = 0
        self.before: list[tuple[BlasLibrary, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            self.entered += 1
            if self.entered == 1:
                counts = [(library, library.get_num_threads()) for library in _libraries()]
                self.before = [(library, count) for library, count in counts if count != 1]
                _set_blas_threads([(library, 1) for library, _ in self.before])

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.entered -= 1
            if not self.entered:
                _set_blas_threads(self.before)


_blas = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """A context, or decorator, in which every call of BLAS or LAPACK uses one thread, in the whole
    process.

    Every fit and every prediction uses it. OpenBLAS's own threads spin while waiting for each
    other, and are used for problems that take microseconds. Nesting costs nothing.
    """
    return _blas


def _in_child() -> None:
    """A forked child has none of its parent's other threads; it creates its own when needed."""
    close()
    _blas.lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)
