"""Threads of rfx: loops that release the GIL are shared out, and BLAS keeps to one thread
meanwhile.

numba functions compiled with nogil, numpy's ufuncs and its products release the GIL. The calling
thread does small work alone. A thread that waits sleeps, because spinning costs more than it saves
on a busy machine.
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
# Multiplications, of about half a nanosecond each, that one thread does sooner than it shares them
# out: 2 milliseconds. A busy machine may take longer than that to wake another thread.
_FEW = 1 << 22
# Multiplications of a matrix product that take as long as one of a loop, and columns of a tile of a
# Gram matrix.
DENSE, _TILE = 8, 512
# Bytes of OpenBLAS's buffer for a thread, how many such libraries there are (numpy's and scipy's),
# and rows of a product that takes one.
_BUFFER, _LIBRARIES, _ENOUGH = 1 << 25, 2, 256
_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)


class _Here(threading.local):
    """Of this thread: whether it works on a part, and how many `one_blas_thread` it is in."""

    inside = False
    limits = 0
    before: list[tuple] = []


T = TypeVar("T")
_here = _Here()


class cached(Generic[T]):
    """A property that is computed at its first use and kept in the object.

    Up to Python 3.11, `functools.cached_property` holds a lock for all objects of a class. A child
    that was forked while another thread held it would wait for ever. Without a lock, two threads
    may compute the same value.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self.name] = self.function(instance)
        return value


class Late(Exception):
    """The time of `until` is up."""


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Within it, shared work and `check_time` raise Late from that value of time.monotonic() on."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time() -> None:
    """Raise Late where the deadline of `until` has passed: for loops that take long."""
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() >= deadline:
        raise Late


# ---------------------------------------------------------------------------- loops


class _Helpers:
    """The threads beside the caller's, made when they are first needed."""

    def __init__(self) -> None:
        self.pool: ThreadPoolExecutor | None = None
        self.count = 0

    def get(self, count: int) -> ThreadPoolExecutor:
        """A pool of that many threads, the last one that was asked for where it has as many."""
        pool = self.pool
        if pool is None or self.count != count:
            pool = ThreadPoolExecutor(count, thread_name_prefix="rfx")
            self.pool, self.count = pool, count
        return pool

    def forget(self) -> None:
        """Hold no pool any more; its threads end when they are idle."""
        self.pool = None


_helpers = _Helpers()


class _Parts:
    """Parts of one loop, which the caller and its helpers take one after the other, and
    what they return.
    """

    def __init__(self, function: Callable[[int, int], Any], bounds: list[int]) -> None:
        self.function, self.ranges = function, list(itertools.pairwise(bounds))
        self.one_blas_thread = _here.limits > 0
        self.results: list = [None] * len(self.ranges)
        self.errors: list[BaseException | None] = [None] * len(self.ranges)
        # an iterator in C gives each number to one thread only
        self.numbers = iter(range(len(self.ranges)))

    def work(self) -> None:
        """Do parts until none is left."""
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
        """What another thread does: `work` where BLAS has as many threads as for the caller."""
        with one_blas_thread() if self.one_blas_thread else nullcontext():
            self.work()

    def stop(self) -> None:
        """Leave the parts that nobody has begun."""
        for _ in self.numbers:
            pass


def for_ranges(
    function: Callable[[int, int], T],
    size: int,
    smallest: int = 1,
    parts: int | None = None,
    work: float = np.inf,
) -> list:
    """Call `function(start, stop)` over contiguous parts of range(size), shared among threads.

    By default there is one part per thread; each holds at least `smallest` items. The caller works,
    too, and takes every part that no other thread has begun, so that it never waits for a thread
    that the machine has no time for. A call from within a part does not ask for more threads. The
    caller sees to it that parts write to disjoint places.

    Parameters
    ----------
    work : float
        Multiplications of all parts together, or what takes as long; few are not shared out.

    Returns
    -------
    list
        The results in the order of the parts.

    Raises
    ------
    Exception
        The first one of the parts, when all have ended; Late at once where there is no time left
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
    # each in a copy of the caller's context: numpy keeps there what becomes of an overflow
    helping = []
    try:
        for _ in range(threads - 1):
            helping.append(pool.submit(contextvars.copy_context().run, shared.help))
        shared.work()
        for one in helping:
            # one that has not begun by now finds nothing to do
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
    """Let idle threads end; a later call makes new ones.

    An interrupt while a thread is being started leaves it unknown to the interpreter's own clearing
    up at its end, which then waits for it for ever; a pool that nobody holds any more ends all of
    its threads.
    """
    _helpers.forget()


# ---------------------------------------------------------------------------- products


def matmul(A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """A @ B by all threads: the same bits for any number of them, for A's rows have always
    the same parts.
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
    """out (n, n) <- out + A'A, for A (m, n), on and above the diagonal, by all threads; below it
    nothing is said of `out`.

    The same bits for any number of threads: a sum is one product, of a tile of at most 512 x 512
    entries.
    """
    starts = range(0, A.shape[1], _TILE)
    tiles = [(slice(i, i + _TILE), slice(j, j + _TILE)) for i in starts for j in starts if i <= j]

    def part(first: int, last: int) -> None:
        for rows, columns in tiles[first:last]:
            # numpy calls SYRK, half the work, where a matrix is multiplied by itself
            out[rows, columns] += A[:, rows].T @ A[:, columns]

    with one_blas_thread():
        for_ranges(part, len(tiles), 1, len(tiles), A.size * A.shape[1] / 2 / DENSE)


# ---------------------------------------------------------------------------- BLAS


def _process_size() -> int:
    """Bytes of this process's address space; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as text:
            return int(text.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


@lru_cache(maxsize=1)
def _reserve() -> None:
    """Have BLAS map its buffers while a limit of the address space (`ulimit -v`) leaves room.

    OpenBLAS maps one for each thread that calls it, keeps it, and tries again for ever where that
    fails. Raises RfxError where there is no room for them.
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
    """BLAS libraries whose number of threads belongs to the process, and those with one for
    each thread that calls them.
    """
    found = [
        own
        for own in lazy.threadpoolctl.ThreadpoolController().lib_controllers
        if own.user_api == "blas"
    ]
    by_caller = [own for own in found if getattr(own, "threading_layer", None) == "openmp"]
    return [own for own in found if own not in by_caller], by_caller


def _set(counts: list[tuple]) -> None:
    """Set numbers of threads: (library, number) each, from whatever thread.

    threadpoolctl keeps the first thread that ever set one as the only one that may, and ignores
    others without a word.
    """
    for library, count in counts:
        release = getattr(library, "clear_controlling_thread", None)
        if release:
            release(force=True)
        library.set_num_threads(count)
        if release:
            release(force=True)


def _limit(libraries: list) -> list[tuple]:
    """Set these to one thread; returns what `_set` takes to undo it."""
    before = [(own, own.get_num_threads()) for own in libraries]
    before = [(own, count) for own, count in before if count != 1]
    _set([(own, 1) for own, _ in before])
    return before


class _Blas(ContextDecorator):
    """BLAS's number of threads: one while any thread of this process is in `one_blas_thread`, else
    what it was before.

    It belongs to the whole process. The first to enter sets it and the last to leave takes it back,
    in whatever order they do.
    """

    def __init__(self) -> None:
        # one that a signal handler which forks may take again
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
        """In a child of `os.fork`, only the thread that forked is there."""
        self.inside = int(_here.limits > 0)
        if not self.inside:
            self._restore()


_blas = _Blas()


def one_blas_thread() -> _Blas:
    """A context, or decorator, in which every call of BLAS or LAPACK keeps to one thread, in the
    whole process.

    Every fit and every prediction is within it. OpenBLAS's own threads spin while they wait for
    each other, and they are shared out for problems that take microseconds. Within another one it
    costs nothing.
    """
    return _blas


# ---------------------------------------------------------------------------- fork


def _compiler() -> Any:
    """The lock of numba's compiler, once numba is there."""
    return getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)


_compiling: list = []


def _before_fork() -> None:
    # a child whose parent was compiling in another thread could never compile
    if lock := _compiler():
        lock.acquire()
        _compiling.append(lock)
    # nor could it know how many threads BLAS had while another thread was changing that
    _blas.lock.acquire()


def _after_fork() -> None:
    _blas.lock.release()
    if _compiling:
        _compiling.pop().release()


def _in_child() -> None:
    """A child has none of its parent's other threads; it makes its own where it needs some."""
    _after_fork()
    _helpers.forget()
    _blas.forked()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
