"""Threads: loops that release the GIL run in parallel, while BLAS uses one thread.

numba functions compiled with nogil, numpy's ufuncs and its products release the GIL. Small work
runs in the calling thread. Waiting threads sleep, because spinning costs more than it saves on a
busy machine.
"""

from __future__ import annotations

import contextvars
import itertools
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from rfx import env, lazy
from rfx.errors import RfxError

# Parts of a product's rows.
_PARTS = 16
# Multiplications, of about half a nanosecond each, below which one thread is faster than several: 2
# milliseconds. A busy machine may take longer than that to wake another thread.
_FEW = 1 << 22
# Multiplications of a matrix product that take as long as one of a loop, and columns of a tile of a
# Gram matrix.
DENSE, _TILE = 8, 512
# Bytes of OpenBLAS's buffer per thread, the number of such libraries (numpy's and scipy's), and
# rows of a product that needs one.
_BUFFER, _LIBRARIES, _ENOUGH = 1 << 25, 2, 256
_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)


class _Here(threading.local):
    """State of this thread: whether it works on a part, and its nesting depth of
    `one_blas_thread`.
    """

    inside = False
    limits = 0
    before: list[tuple] = []


T = TypeVar("T")
_here = _Here()


class cached(Generic[T]):
    """A property computed on first use and stored in the object.

    Up to Python 3.11, `functools.cached_property` holds a lock for all objects of a class. A child
    forked while another thread holds it would wait forever. Without a lock, two threads may compute
    the same value.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
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


class _Helpers:
    """The threads in addition to the caller's, created when first needed."""

    def __init__(self) -> None:
        self.pool: ThreadPoolExecutor | None = None
        self.count = 0

    def get(self, count: int) -> ThreadPoolExecutor:
        """A pool of that many threads; the last pool is reused if it has as many."""
        pool = self.pool
        if pool is None or self.count != count:
            pool = ThreadPoolExecutor(count, thread_name_prefix="rfx")
            self.pool, self.count = pool, count
        return pool

    def forget(self) -> None:
        """Release the pool; its threads end when they are idle."""
        self.pool = None


_helpers = _Helpers()


class _Parts:
    """Parts of one loop, which the caller and its helpers process one by one, and their results."""

    def __init__(self, function: Callable[[int, int], Any], bounds: list[int]) -> None:
        self.function, self.ranges = function, list(itertools.pairwise(bounds))
        self.one_blas_thread = _here.limits > 0
        self.results: list = [None] * len(self.ranges)
        self.errors: list[BaseException | None] = [None] * len(self.ranges)
        # an iterator in C returns each number to one thread only
        self.numbers = iter(range(len(self.ranges)))

    def work(self) -> None:
        """Process parts until none is left."""
        before, _here.inside = _here.inside, True
        try:
            for number in self.numbers:
                try:
                    self.results[number] = self.function(*self.ranges[number])
                except Exception as error:
                    self.errors[number] = error
        finally:
            _here.inside = before

    def help(self) -> None:
        """The work of another thread: `work` if BLAS has as many threads as for the caller."""
        with one_blas_thread() if self.one_blas_thread else nullcontext():
            self.work()

    def stop(self) -> None:
        """Cancel the parts that have not begun."""
        for _ in self.numbers:
            pass


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
        The first exception of a part, after all have ended; Late at once if the deadline has passed
        (see `until`).
    """
    check_time()
    threads = 1 if work < _FEW or _here.inside else env.threads()
    parts = max(1, min(parts or threads, size // max(1, smallest)))
    bounds = [size * part // parts for part in range(parts + 1)]
    threads = min(threads, parts)
    if threads == 1:
        return [function(start, stop) for start, stop in itertools.pairwise(bounds)]
    shared = _Parts(function, bounds)
    pool = _helpers.get(env.threads() - 1)
    # each in a copy of the caller's context, where numpy stores its overflow handling
    helping = []
    try:
        for _ in range(threads - 1):
            helping.append(pool.submit(contextvars.copy_context().run, shared.help))
        shared.work()
        for one in helping:
            # a part that has not begun by now finds nothing to do
            if not one.cancel():
                one.result()
    except BaseException:
        shared.stop()
        raise
    for error in shared.errors:
        if error is not None:
            raise error
    return shared.results


def close() -> None:
    """Let idle threads end; a later call creates new ones.

    If an interrupt arrives while a thread starts, the interpreter's shutdown waits for it forever.
    A pool without references ends all its threads.
    """
    _helpers.forget()


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


def _process_size() -> int:
    """Bytes of this process's address space; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as text:
            return int(text.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


@lru_cache(maxsize=1)
def _reserve() -> None:
    """Make BLAS map its buffers while a limit of the address space (`ulimit -v`) leaves space.

    OpenBLAS maps one for each calling thread, keeps it, and retries forever if that fails. Raises
    RfxError if there is no space for them.
    """
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return
    scipys = lazy.blas
    needed = _LIBRARIES * _BUFFER * env.threads()
    if _process_size() + needed > most:
        raise RfxError(
            f"the limit of {most >> 20} MiB of address space (ulimit -v) leaves less than the"
            f" {needed >> 20} MiB that BLAS needs; raise it or use fewer --threads"
        )
    square = np.eye(_ENOUGH)
    np.matmul(square, square)
    scipys.dgemm(1.0, square, square)


@lru_cache(maxsize=1)
def _libraries() -> tuple[list, list]:
    """BLAS libraries whose number of threads is per process, and those with one per calling
    thread.
    """
    found = [
        own
        for own in lazy.threadpoolctl.ThreadpoolController().lib_controllers
        if own.user_api == "blas"
    ]
    by_caller = [own for own in found if getattr(own, "threading_layer", None) == "openmp"]
    return [own for own in found if own not in by_caller], by_caller


def _set(counts: list[tuple]) -> None:
    """Set numbers of threads: (library, number) pairs, from any thread.

    threadpoolctl allows only the first thread that ever set one to change it, and silently ignores
    others.
    """
    for library, count in counts:
        release = getattr(library, "clear_controlling_thread", None)
        if release:
            release(force=True)
        library.set_num_threads(count)
        if release:
            release(force=True)


def _limit(libraries: list) -> list[tuple]:
    """Set these to one thread; return the arguments for `_set` that undo it."""
    before = [(own, own.get_num_threads()) for own in libraries]
    before = [(own, count) for own, count in before if count != 1]
    _set([(own, 1) for own, _ in before])
    return before


class _Blas(ContextDecorator):
    """BLAS's number of threads: one while any thread of this process is in `one_blas_thread`, else
    its previous value.

    It applies to the whole process. The first thread to enter sets it and the last to leave
    restores it, in any order.
    """

    def __init__(self) -> None:
        # reentrant, for a signal handler that forks
        self.lock, self.inside = threading.RLock(), 0
        self.before: list[tuple] = []

    def __enter__(self) -> None:
        if not _here.limits:
            _reserve()
            process, by_caller = _libraries()
            _here.before = _limit(by_caller)
            with self.lock:
                if not self.inside:
                    self.before = _limit(process)
                self.inside += 1
        _here.limits += 1

    def __exit__(self, *_: Any) -> None:
        _here.limits -= 1
        if not _here.limits:
            with self.lock:
                self.inside -= 1
                if not self.inside:
                    self._restore()
            _set(_here.before)

    def _restore(self) -> None:
        before, self.before = self.before, []
        _set(before)

    def forked(self) -> None:
        """In a child of `os.fork`, only the forking thread exists."""
        self.inside = int(_here.limits > 0)
        if not self.inside:
            self._restore()


_blas = _Blas()


def one_blas_thread() -> _Blas:
    """A context, or decorator, in which every call of BLAS or LAPACK uses one thread, in the whole
    process.

    Every fit and every prediction uses it. OpenBLAS's own threads spin while waiting for each
    other, and are used for problems that take microseconds. Nesting costs nothing.
    """
    return _blas


# ---------------------------------------------------------------------------- fork


def _compiler() -> Any:
    """The lock of numba's compiler, once numba is imported."""
    return getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)


_compiling: list = []


def _before_fork() -> None:
    # a child whose parent was compiling in another thread could never compile
    if lock := _compiler():
        lock.acquire()
        _compiling.append(lock)
    # nor would it know the number of BLAS threads while another thread was changing it
    _blas.lock.acquire()


def _after_fork() -> None:
    _blas.lock.release()
    if _compiling:
        _compiling.pop().release()


def _in_child() -> None:
    """A child has none of its parent's other threads; it creates its own when needed."""
    _after_fork()
    _helpers.forget()
    _blas.forked()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
